# Clients write to a server with a standby; one of the two dies, or both, or
# the standby takes over and the old primary is rewound.  What was
# acknowledged is there, and both have the same.  See crash/Ledger.pm.
#
# test/crash/run TEST=crash_standby CYCLES=50 SEED=1

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $cycles = $ENV{CYCLES} || 8;
my $seed = int($ENV{SEED} || 1);
my @points = grep { !/^damage-/ } split(' ', $ENV{MOT_FAULT_POINTS} // '');
@points = () if Ledger::default_engine() eq 'heap';
srand($seed);
diag("CYCLES=$cycles SEED=$seed");

# (pg_rewind asks for checksums)
my $ledger = Ledger->new(
	name => 'one',
	writers => 3,
	initdb => ['--data-checksums'],
	conf => "wal_keep_size = '512MB'\nmax_standby_streaming_delay = -1\ncheckpoint_timeout = 30s\n");
my $primary = $ledger->node;
my $standby;
my %conf;	# what pg_rewind would overwrite
$ledger->begin;
$primary->backup('base');
$conf{one} = slurp_file($primary->data_dir . '/postgresql.conf');
new_standby('two', $primary, 'base');

sub one_of { return $_[ int(rand(@_)) ] }

sub new_standby
{
	my ($name, $root, $backup) = @_;
	$standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($root, $backup);
	$standby->append_conf('postgresql.conf', "cluster_name = '$name'\n");
	$conf{$name} = slurp_file($standby->data_dir . '/postgresql.conf');
	follow($standby, $root);
	return;
}

# $node becomes, or stays, a standby of $root
sub follow
{
	my ($node, $root) = @_;
	my $data = $node->data_dir;
	open(my $fh, '>', "$data/postgresql.conf") or die;
	print $fh $conf{ $node->name };
	close $fh;
	unlink "$data/cycle.conf", "$data/postgresql.auto.conf", "$data/mot.fault.go";
	$ledger->{settings}{ $node->name } = {};
	$node->enable_streaming($root);
	$node->start;
	return;
}

# The standby has all that the primary has.
sub compare
{
	my @wrong;

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	push @wrong, map { "on the standby: $_" } $ledger->verify_content($standby);
	my ($here, $there) = (Ledger::content($primary), Ledger::content($standby));
	push @wrong, "primary:\n$here\nstandby:\n$there" if $here ne $there;
	return @wrong;
}

# A paused standby keeps what it has while the primary goes on.
sub compare_paused
{
	my ($seed) = @_;
	my @wrong;

	$ledger->stop_clients;
	push @wrong, $ledger->verify;
	$ledger->settle;
	my $before = Ledger::content($primary);
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	$standby->poll_query_until('postgres', "SELECT pg_get_wal_replay_pause_state() = 'paused'") or die;
	$ledger->start_clients($seed);
	sleep 0.5;
	my $paused = Ledger::content($standby);
	push @wrong, "before:\n$before\npaused:\n$paused" if $paused ne $before;
	push @wrong, map { "paused: $_" } $ledger->verify_content($standby);
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
	$ledger->stop_clients;
	push @wrong, $ledger->verify;
	return @wrong;
}

# The two change places, in order: nothing needs to be rewound.
sub switch_over
{
	my $old = $primary;
	my $before;
	my @wrong;

	$ledger->stop_clients;
	$before = Ledger::content($old);
	$old->stop('fast');
	$standby->promote;
	$primary = $standby;
	$ledger->{node} = $primary;
	my $after = Ledger::content($primary);
	push @wrong, "primary:\n$before\npromoted:\n$after" if $after ne $before;
	push @wrong, $ledger->verify;
	follow($old, $primary);
	$standby = $old;
	return @wrong;
}

# After the death of the primary the standby takes over.
sub fail_over
{
	my $old = $primary;
	my @wrong;

	$standby->promote;
	$primary = $standby;
	$ledger->{node} = $primary;
	$ledger->configure(synchronous_standby_names => undef);
	$primary->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
	@wrong = $ledger->verify;
	if (rand() < 0.7)
	{
		# it learns of the new timeline from the control file
		$primary->safe_psql('postgres', 'CHECKPOINT');
		run_log([ 'pg_rewind', '--source-server', $primary->connstr('postgres'), '--target-pgdata', $old->data_dir,
				'--config-file', $old->data_dir . '/postgresql.conf' ])
		  or return (@wrong, 'pg_rewind fails');
		follow($old, $primary);
		$standby = $old;
	}
	else
	{
		my $name = $old->name . 'x';
		$primary->backup($name);
		$old->clean_node;
		new_standby($name, $primary, $name);
	}
	return @wrong;
}

# the standby's fate, and the primary's; a short run has each of them
my @ways = ('standby dies', 'standby dies at a point', 'primary dies and comes back', 'both die', 'paused', 'switchover', 'failover', 'failover, and again');
@ways = grep { $_ !~ /point/ } @ways unless @points;
my @planned = @ways;

for my $cycle (1 .. $cycles)
{
	my $way = @planned ? shift @planned : one_of(@ways, 'failover', 'failover');
	my $other = $ledger->on($standby);
	my $fault = '';
	my @wrong;

	$ledger->{sync} = one_of('on', 'on', 'remote_write', 'remote_apply');
	if ($way =~ /failover/)
	{
		$ledger->configure(synchronous_standby_names => $standby->name);
		$primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'") or die;
	}
	if ($way =~ /point/)
	{
		$fault = one_of(grep { /^(replay|checkpoint)/ } @points) . ':' . one_of('kill', 'killall', 'crash') . ':' . one_of(1, 1 + int(rand(100)));
		$other->configure('mot.fault' => $fault);
	}
	my $from = -s $standby->logfile;
	$ledger->start_clients($seed + $cycle);
	sleep 0.3 + rand(0.5);
	$ledger->in_background('psql', '-X', '-q', '-c', 'CHECKPOINT', $primary->connstr('postgres')) if rand() < 0.5;
	sleep rand(0.3);
	$ledger->in_background('psql', '-X', '-q', '-c', 'CHECKPOINT', $standby->connstr('postgres')) if rand() < 0.5;
	sleep rand(0.3);

	if ($way =~ /^standby dies/)
	{
		if ($fault)
		{
			for (1 .. 10) { last if $other->reached($from); sleep 0.1 }
			$fault .= ', not reached' unless $other->reached($from);
		}
		if (!$fault || rand() < 0.5 || $fault =~ /killall|not reached/) { $other->kill_all or die 'processes do not die' }
		$other->configure('mot.fault' => undef);
		$other->ensure_up or push @wrong, 'the standby does not come back';
		sleep 0.2;
		$ledger->stop_clients;
		push @wrong, $ledger->verify;
	}
	elsif ($way =~ /^primary/)
	{
		$ledger->kill_all or die 'processes do not die';
		$ledger->wait_clients;
		$ledger->ensure_up or push @wrong, 'the server does not come back';
		push @wrong, $ledger->verify;
	}
	elsif ($way =~ /^both/)
	{
		for (rand() < 0.5 ? ($ledger, $other) : ($other, $ledger)) { $_->kill_all or die 'processes do not die' }
		$ledger->wait_clients;
		for (rand() < 0.5 ? ($ledger, $other) : ($other, $ledger)) { $_->ensure_up or push @wrong, 'it does not come back' }
		push @wrong, $ledger->verify;
	}
	elsif ($way eq 'paused') { push @wrong, compare_paused($seed + 1000 * $cycle) }
	elsif ($way eq 'switchover') { push @wrong, switch_over() }
	else
	{
		$ledger->kill_all or die 'processes do not die';
		$ledger->wait_clients;
		push @wrong, fail_over();
	}
	push @wrong, $fault ? $other->undisturbed($from, \&compare) : compare() unless @wrong;
	if ($way =~ /again/ && !@wrong)
	{
		# it dies while it is promoted, and shortly after
		$ledger->kill_all or die 'processes do not die';
		$other = $ledger->on($standby);
		$ledger->in_background('pg_ctl', '-D', $standby->data_dir, 'promote');
		sleep rand(0.4);
		$other->kill_all or die 'processes do not die';
		$ledger->wait_clients;
		$other->ensure_up or push @wrong, 'the promoted standby does not come back';
		if ($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't') { push @wrong, fail_over() }
		else
		{
			($primary, $standby) = ($standby, $primary);
			$ledger->{node} = $primary;
			push @wrong, $ledger->verify;
			run_log([ 'pg_rewind', '--source-server', $primary->connstr('postgres'), '--target-pgdata', $standby->data_dir,
					'--config-file', $standby->data_dir . '/postgresql.conf' ])
			  or push @wrong, 'pg_rewind fails'
			  if $primary->safe_psql('postgres', 'CHECKPOINT; SELECT 1');
			follow($standby, $primary) unless @wrong;
		}
		push @wrong, compare() unless @wrong;
	}
	is(join("\n", @wrong), '', sprintf('cycle %d (%s%s): %d commits', $cycle, $way, $fault ? ", $fault" : '', $ledger->committed));
	if (@wrong)
	{
		diag("SEED=$seed, cycle $cycle");
		last;
	}
	$ledger->settle;
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
}

for ($primary, $standby) { $_->stop('immediate') if $_->{_pid} }
done_testing();
