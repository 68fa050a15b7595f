# Logical slots and a standby that takes over: a slot made with "failover" is kept up to date there
# (PostgreSQL 17 and later), and after a kill of the primary and a promotion a subscription goes on
# with it, with memory-optimized tables as with heap tables.  And logical decoding on a standby (16
# and later): slots made there while the primary is written to, with their initial copies.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($version) = `pg_config --version` =~ /(\d+)/;
plan skip_all => 'there is no logical decoding on a standby before PostgreSQL 16' if $version < 16;

sub configure
{
	my ($node, $more) = @_;
	$node->append_conf(
		'postgresql.conf', qq{
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
autovacuum = off
max_worker_processes = 24
wal_retrieve_retry_interval = '100ms'
hot_standby_feedback = on
wal_receiver_status_interval = 1
$more});
}

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 'logical');
configure($primary, '');
$primary->start;
$primary->safe_psql('postgres', "CREATE EXTENSION mot; SELECT pg_create_physical_replication_slot('standby')");
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'\nprimary_conninfo = '" . $primary->connstr('postgres') =~ s/'/''/gr . "'\n" . ($version >= 17 ? "sync_replication_slots = on\n" : ''));
$standby->start;
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical');
configure($subscriber, '');
$subscriber->start;
$subscriber->safe_psql('postgres', 'CREATE EXTENSION mot');

# "once" has no key: what is applied twice is there twice
my $tables = join ';', map { ("CREATE TABLE ${_}_once (client int, n int) USING $_", "CREATE TABLE ${_}_sum (id int PRIMARY KEY, v bigint) USING $_", "ALTER TABLE ${_}_sum REPLICA IDENTITY FULL") } 'heap', 'mot';
$_->safe_psql('postgres', $tables) for $primary, $subscriber;
$primary->safe_psql('postgres', join(';', map { "INSERT INTO ${_}_sum SELECT i, 0 FROM generate_series(1, 200) i" } 'heap', 'mot') . '; CREATE SEQUENCE s; CREATE PUBLICATION pub FOR ALL TABLES');

my $script = $primary->basedir . '/load.sql';
append_to_file(
	$script, q{
\set id random(1, 200)
\set v random(1, 9)
\set kind random(1, 3)
BEGIN;
} . join('', map { my ($t, $if) = @$_; "\\if :kind $if\nINSERT INTO ${t}_once VALUES (:client_id, :v);\nUPDATE ${t}_sum SET v = v + :v WHERE id = :id;\n\\endif\n" } ['heap', '!= 1'], ['mot', '!= 2']) . "COMMIT;\n");

sub load
{
	my ($seconds) = @_;
	return IPC::Run::start([ 'pgbench', '-n', '-M', 'prepared', '-c', 3, '-T', $seconds, '--max-tries=100', '-f', $script, '-h', $primary->host, '-p', $primary->port, 'postgres' ],
		'>', '/dev/null', '2>', '/dev/null');
}

sub states { return $_[0]->safe_psql('postgres', join(' UNION ALL ', map { "SELECT '${_}', (SELECT count(*) || ' ' || coalesce(sum(n), 0) || ' ' || (SELECT sum(v) FROM ${_}_sum) FROM ${_}_once)" } 'heap', 'mot') . ' ORDER BY 1') }

sub subscribe
{
	my ($node, $name, $options) = @_;
	my $connstr = $node->connstr('postgres') =~ s/'/''/gr;
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION $name CONNECTION '$connstr' PUBLICATION pub WITH (connect_slot)" =~ s/ WITH \(connect_slot\)/$options/r);
}

sub copied
{
	my ($what) = @_;
	ok($subscriber->poll_query_until('postgres', "SELECT count(*) = 4 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel"), "$what: tables are copied");
}

# ------------------------------------------------- decoding on the standby

$primary->wait_for_replay_catchup($standby);
my $load = load(12);
sleep 1;
# (making a slot there, or keeping one, waits for what the primary logs of its running transactions)
sub log_transactions
{
	return IPC::Run::start([ 'psql', '-X', '-q', '-d', $primary->connstr('postgres'), '-c', 'DO $$ BEGIN LOOP PERFORM pg_log_standby_snapshot(); PERFORM pg_sleep(0.1); COMMIT; END LOOP; END $$' ], '>', '/dev/null', '2>', '/dev/null');
}

sub end_of_logs
{
	my ($logs) = @_;
	$primary->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %'});
	$logs->finish;
	return;
}

my $logs = log_transactions();
subscribe($standby, 'there', '');
copied('from a standby, beside writers');
$load->finish;
end_of_logs($logs);
my $end = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
$primary->wait_for_catchup($standby, 'replay', $end);
$standby->wait_for_catchup('there', 'replay', $end);
is(states($subscriber), states($primary), 'decoded on a standby: the same rows');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION there; TRUNCATE heap_once, heap_sum, mot_once, mot_sum');

# ------------------------------------------------- slots that fail over

if ($version >= 17)
{
	$primary->append_conf('postgresql.conf', "synchronized_standby_slots = 'standby'");
	$primary->reload;
	$load = load(6);
	subscribe($primary, 'over', ' WITH (failover = true, streaming = ' . ($version >= 18 ? 'parallel' : 'on') . ')');
	copied('a slot that fails over');
	$load->finish;
	$logs = log_transactions();
	ok($standby->poll_query_until('postgres', "SELECT synced AND NOT temporary AND invalidation_reason IS NULL FROM pg_replication_slots WHERE slot_name = 'over'"), 'it is on the standby');
	end_of_logs($logs);
	$load = load(20);
	sleep 4;
	$primary->stop('immediate');
	$load->finish;
	$standby->promote;
	my $connstr = $standby->connstr('postgres') =~ s/'/''/gr;
	$subscriber->safe_psql('postgres', "ALTER SUBSCRIPTION over CONNECTION '$connstr'");
	is($standby->safe_psql('postgres', "SELECT failover, synced, active_pid IS NULL OR active FROM pg_replication_slots WHERE slot_name = 'over'"), 't|t|t', 'it is there after the promotion');
	$standby->safe_psql('postgres', join ';', map { "INSERT INTO ${_}_once VALUES (9, 9); UPDATE ${_}_sum SET v = v + 1" } 'heap', 'mot');
	$standby->wait_for_catchup('over');
	is(states($subscriber), states($standby), 'nothing is lost or applied twice');
	cmp_ok($standby->safe_psql('postgres', 'SELECT count(*) FROM mot_once'), '>', 100, 'there were writers');
	$standby->restart;
	$standby->safe_psql('postgres', join ';', map { "UPDATE ${_}_sum SET v = v + 1" } 'heap', 'mot');
	$standby->wait_for_catchup('over');
	is(states($subscriber), states($standby), '... nor after a restart');
}

$subscriber->stop;
$standby->stop;
done_testing();
