# Clients write; the server dies, in one way or another; it comes back; what
# was acknowledged is there, and everything agrees.  See crash/Ledger.pm.
#
# CYCLES=200 SEED=1 test/crash/run makes it as long as you like, and repeatable
# as far as the machine's timing is.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $cycles = $ENV{CYCLES} || 12;
my $seed = $ENV{SEED} || time % 1_000_000;
$seed = int($seed);
srand($seed);
diag("CYCLES=$cycles SEED=$seed");

my $ledger = Ledger->new(name => 'cycles');
my $node = $ledger->node;
$ledger->begin;

# what happens: how often of 100, what
my @ways = (
	[ 40, 'all' ],
	[ 12, 'one' ],
	[ 8, 'segv' ],
	[ 10, 'postmaster' ],
	[ 10, 'immediate' ],
	[ 5, 'fast' ],
	[ 15, 'recovery' ]);

sub way
{
	my $r = rand(100);
	for (@ways)
	{
		return $_->[1] if ($r -= $_->[0]) < 0;
	}
	return 'all';
}

# a short run has each of them
my @planned = map { $_->[1] } @ways;

for my $cycle (1 .. $cycles)
{
	my $way = @planned ? shift @planned : way();
	my $seconds = 0.3 + rand(1.2);
	my $checkpoint = rand() < 0.5;

	$ledger->start_clients($seed + $cycle);
	if ($checkpoint)
	{
		# dies in the middle of it, or shortly after
		sleep $seconds / 2;
		my $pid = fork;
		die unless defined $pid;
		if ($pid == 0)
		{
			open(STDOUT, '>', '/dev/null');
			open(STDERR, '>', '/dev/null');
			exec('psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres')) or POSIX::_exit(127);
		}
		push @{ $ledger->{pids} }, $pid;
		$seconds = rand(0.3);
	}
	sleep $seconds;

	if ($way eq 'all' || $way eq 'recovery') { $ledger->kill_all or die 'processes do not die' }
	elsif ($way eq 'postmaster') { $ledger->kill_postmaster or die 'processes do not die' }
	elsif ($way eq 'one') { $ledger->kill_one('KILL', int(rand(1000))) }
	elsif ($way eq 'segv') { $ledger->kill_one('SEGV', int(rand(1000))) }
	else { $node->stop($way) }
	$ledger->wait_clients;
	my $committed = $ledger->committed;

	if ($way eq 'recovery')
	{
		# and again, while it recovers
		for (1 .. 1 + int(rand(3)))
		{
			system_log('pg_ctl', '-W', '-D', $node->data_dir, '-l', $node->logfile, 'start');
			for (1 .. 500) { last if $ledger->postmaster; sleep 0.01 }
			sleep rand(0.4);
			$ledger->kill_all or die 'processes do not die';
		}
	}
	my $start = time;
	$node->start unless $node->{_pid};
	$node->poll_query_until('postgres', 'SELECT true') or die 'the server does not come back';
	my @wrong = $ledger->verify;
	is(join("\n", @wrong), '', sprintf('cycle %d (%s%s): %d commits', $cycle, $way, $checkpoint ? ', checkpoint' : '', $committed));
	if (@wrong)
	{
		diag("SEED=$seed, cycle $cycle");
		$node->stop('immediate');
		last;
	}
	$ledger->settle;
}

$node->stop if $node->{_pid};
done_testing();
