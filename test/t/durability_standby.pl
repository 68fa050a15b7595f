# A standby under random load, definitions included: whenever replay is
# stopped, what it shows is in order; caught up, it has what the primary has;
# promoted, it goes on.  A standby of the standby has it, too.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = int($ENV{SEED} || 1);
srand($seed);
diag("SEED=$seed");
my $ledger = Ledger->new(name => 'main', writers => 3);
my $primary = $ledger->node;
$primary->append_conf('postgresql.conf', "wal_keep_size = '512MB'\n");
$ledger->begin;
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('near');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
$standby->start;
$standby->backup('of_standby');
my $cascaded = PostgreSQL::Test::Cluster->new('far');
$cascaded->init_from_backup($standby, 'of_standby', has_streaming => 1);
$cascaded->start;

# what a running or paused standby shows; one snapshot a query
my $steps = 3;
for my $step (1 .. $steps)
{
	$ledger->start_clients($seed + $step);
	sleep 0.4;
	my @wrong;
	for my $try (1 .. 20)
	{
		# stopped in the middle of a DROP or TRUNCATE, whose lock nobody releases: elsewhere, then
		$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
		$standby->poll_query_until('postgres', "SELECT pg_get_wal_replay_pause_state() = 'paused'") or die;
		local $ENV{PGOPTIONS} = '-c lock_timeout=300ms';
		@wrong = $ledger->verify_content($standby);
		last unless grep { /lock timeout/ } @wrong;
		$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
		sleep rand(0.2);
	}
	is(join("\n", @wrong), '', "step $step: a paused standby is in order");
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');

	# while replay goes on, a statement sees both halves of every transaction or none
	for (1 .. 3)
	{
		my $torn = $standby->safe_psql(
			'postgres', q{
			SELECT (SELECT count(*) FROM twin_a), (SELECT count(*) FROM twin_b)
			WHERE EXISTS (TABLE twin_a EXCEPT TABLE twin_b) OR EXISTS (TABLE twin_b EXCEPT TABLE twin_a)});
		is($torn, '', "step $step: a statement sees transactions whole");
		my $sum = $standby->safe_psql('postgres', q{SELECT (SELECT sum(balance) FROM accounts_a) + (SELECT sum(balance) FROM accounts_b)});
		is($sum, '40000', "step $step: balances sum");
	}
	if ($step == 2)
	{
		# a standby starts from its own restartpoints
		$primary->safe_psql('postgres', 'CHECKPOINT');
		$primary->wait_for_catchup($standby, 'replay');
		$standby->safe_psql('postgres', 'CHECKPOINT');
		$standby->restart;
	}
	if ($step == 3)
	{
		kill 'KILL', (my @pids = ($standby->{_pid}, Ledger::children($standby->{_pid})));
		Ledger::wait_gone(30, @pids) or die;
		unlink $standby->data_dir . '/postmaster.pid', $standby->host . '/.s.PGSQL.' . $standby->port . '.lock';
		$standby->{_pid} = undef;
		$standby->start;
	}
	$ledger->stop_clients;
	$primary->wait_for_catchup($standby, 'replay');
	$standby->wait_for_catchup($cascaded, 'replay', $primary->lsn('write'));
	my $content = Ledger::content($primary);
	is(Ledger::content($standby), $content, "step $step: the standby has what the primary has");
	is(Ledger::content($cascaded), $content, "step $step: its standby, too");
}

# the primary dies under load; the standby takes over with all that it was sent
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'near'\n");
$primary->reload;
$primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'") or die;
$ledger->start_clients($seed + 100);
sleep 0.7;
$ledger->kill_all or die;
$ledger->wait_clients;
$standby->promote;
$ledger->{node} = $standby;
is(join("\n", $ledger->verify_notes), '', 'what was acknowledged is on the promoted synchronous standby');
is(join("\n", $ledger->verify_content), '', '... in order');
$standby->safe_psql('postgres', "INSERT INTO twin_a VALUES (5000, 0, 0, 'new'); INSERT INTO twin_b VALUES (5000, 0, 0, 'new')");
$standby->wait_for_catchup($cascaded, 'replay');
is(Ledger::content($cascaded), Ledger::content($standby), 'a cascaded standby follows to the new timeline');
$ledger->kill_all or die;
$standby->start;
is($standby->safe_psql('postgres', 'SELECT t FROM twin_a WHERE k = 5000'), 'new', 'a promoted standby writes durably');
is(join("\n", $ledger->verify_content), '', '... in order');

$standby->stop;
$cascaded->stop;
done_testing();
