# Clients write; the server dies, in one way or another; it comes back; what
# was acknowledged is there, and everything agrees.  See crash/Ledger.pm.
#
# test/crash/run CYCLES=200 SEED=1 makes it as long as you like, and repeatable
# as far as the machine's timing is.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $cycles = $ENV{CYCLES} || 16;
my $seed = int($ENV{SEED} || 1);
my @points = grep { !/^damage-/ } split(' ', $ENV{MOT_FAULT_POINTS} // '');
@points = () if Ledger::default_engine() eq 'heap';
srand($seed);
diag("CYCLES=$cycles SEED=$seed");

# small segments come and go
my $ledger = Ledger->new(name => 'cycles', initdb => [ '--wal-segsize=' . ($seed % 2 ? 1 : 16) ]);
my $node = $ledger->node;
$ledger->{nuisance} = 1;
$ledger->{databases} = 1;
$ledger->begin;

# what happens: how often of 100, what
my @ways = (
	[ 22, 'all' ],
	[ 10, 'backend' ],
	[ 10, 'worker' ],
	[ 8, 'segv' ],
	[ 8, 'postmaster' ],
	[ 8, 'immediate' ],
	[ 8, 'fast' ],
	[ 10, 'recovery' ],
	[ 10, 'point' ],
	[ 6, 'point in recovery' ]);
@ways = grep { $_->[1] !~ /point/ } @ways unless @points;

sub way
{
	my $r = rand(100);
	for (@ways)
	{
		return $_->[1] if ($r -= $_->[0]) < 0;
	}
	return 'all';
}

sub one_of { return $_[ int(rand(@_)) ] }

# How it runs from the next start on.  wal_level can be changed only while
# no slot is there: after a clean stop.
sub settings
{
	my ($clean) = @_;
	my %s = (
		commit_delay => one_of(0, 0, 200),
		wal_compression => one_of('off', 'pglz'),
		full_page_writes => one_of('on', 'on', 'off'),
		max_wal_size => one_of('32MB', '1GB'),
		checkpoint_timeout => one_of('30s', '5min'),
		'mot.load_workers' => one_of(0, 1, 4),
		'mot.checkpoint_workers' => one_of(0, 1, 4),
		'mot.checkpoint_share' => one_of(1, 5, 100));
	if (Ledger::default_engine() eq 'heap') { delete $s{$_} for grep { /^mot/ } keys %s }
	if ($clean)
	{
		$s{wal_level} = one_of('minimal', 'replica', 'logical');
		$s{max_wal_senders} = $s{wal_level} eq 'minimal' ? 0 : 10;
	}
	return %s;
}

# a short run has each of them
my @planned = map { $_->[1] } @ways;

for my $cycle (1 .. $cycles)
{
	my $way = @planned ? shift @planned : way();
	my $seconds = 0.3 + rand(1.2);
	my $checkpoint = rand() < 0.5;
	my $fault = '';
	my $from = -s $node->logfile;

	$ledger->{sync} = one_of('on', 'on', 'local', 'remote_write', 'remote_apply');
	$ledger->start_clients($seed + $cycle);
	if ($way eq 'point')
	{
		# the load, replay and end points come with other ways to die
		$fault = one_of(grep { /^(commit|mixed|checkpoint|ddl|writable|slot)/ } @points);
		$fault .= ':' . one_of('kill', 'killall', 'crash') . ':' . one_of(1, 1, 1 + int(rand(60)));
		sleep rand(0.5);
		$ledger->configure('mot.fault' => $fault);
		$checkpoint = 1 if $fault =~ /^checkpoint/;
	}
	if ($checkpoint)
	{
		# dies in the middle of it, or shortly after
		sleep $seconds / 2;
		$ledger->in_background('psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres'));
		$seconds = rand(0.3);
	}
	sleep $seconds;

	if ($way eq 'point')
	{
		for (1 .. 20) { last if $ledger->reached($from); sleep 0.1 }
		$fault .= ', not reached' unless $ledger->reached($from);
		# all die while one does
		sleep rand(0.2);
		if (rand() < 0.3 || $fault =~ /killall|not reached/) { $ledger->kill_all or die 'processes do not die' }
	}
	elsif ($way eq 'all' || $way =~ 'recovery') { $ledger->kill_all or die 'processes do not die' }
	elsif ($way eq 'postmaster') { $ledger->kill_postmaster or die 'processes do not die' }
	elsif ($way eq 'backend') { $ledger->kill_one('KILL', int(rand(1000)), qr/\[local\]/) }
	elsif ($way eq 'worker') { $ledger->kill_one('KILL', int(rand(1000)), qr/mot |walwriter|checkpointer|writer/) }
	elsif ($way eq 'segv') { $ledger->kill_one('SEGV', int(rand(1000))) }
	else { $node->stop($way) }
	$ledger->configure('mot.fault' => undef) if $way eq 'point';
	$ledger->wait_clients;
	my $committed = $ledger->committed;
	$ledger->configure(settings($way eq 'fast'));

	if ($way eq 'recovery')
	{
		# and again, while it recovers
		for (1 .. 1 + int(rand(3)))
		{
			$ledger->start_without_waiting;
			sleep rand(0.4);
			$ledger->kill_all or die 'processes do not die';
		}
	}
	elsif ($way eq 'point in recovery')
	{
		$from = -s $node->logfile;
		$fault = one_of(grep { /^(load|replay|checkpoint|writable)/ } @points);
		$fault .= ':' . one_of('kill', 'killall', 'crash') . ':' . one_of(1, 1, 1 + int(rand(200)));
		$ledger->configure('mot.fault' => $fault);
		$ledger->start_without_waiting;
		for (1 .. 60) { last if $ledger->reached($from) || $ledger->answers; sleep 0.05 }
		$fault .= ', not reached' unless $ledger->reached($from);
		sleep rand(0.2);
		if (rand() < 0.3) { $ledger->kill_all or die 'processes do not die' }
		$ledger->configure('mot.fault' => undef);
	}
	if (!$ledger->ensure_up)
	{
		fail("cycle $cycle ($way $fault): the server does not come back");
		diag("SEED=$seed, cycle $cycle");
		last;
	}
	my @wrong = $ledger->undisturbed($from, sub { $ledger->verify });
	is( join("\n", @wrong),
		'',
		sprintf('cycle %d (%s%s%s): %d commits, %s',
			$cycle, $way, $checkpoint ? ', checkpoint' : '', $fault ? ", $fault" : '',
			$committed, $ledger->{settings}{cycles}{wal_level} // 'replica'));
	if (@wrong)
	{
		diag("SEED=$seed, cycle $cycle");
		$node->stop('immediate');
		last;
	}
	@wrong = $ledger->undisturbed($from, sub { $ledger->settle; () });
	die "@wrong" if @wrong;
}

$node->stop if $node->{_pid};
done_testing();
