# A standby is open before its memory-optimized tables are loaded: a transaction
# that has its snapshot by then must not see them as they were in a checkpoint.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
mot.load_workers = 0
});
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE TABLE h (i int); CREATE FOREIGN TABLE m (i int) SERVER mot_server;
	CREATE FUNCTION seen() RETURNS bigint STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM m); END $$');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->safe_psql('postgres', 'INSERT INTO h VALUES (1); INSERT INTO m VALUES (1); CHECKPOINT');
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
$standby->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_replication_slots WHERE slot_name = 'mot'") or die;
my $checkpoint = $standby->safe_psql('postgres', 'SELECT checkpoint_lsn FROM mot_stat_checkpoint');

# all of it is on the standby, and in no checkpoint of ours there
$standby->append_conf('postgresql.conf', "mot.fault = 'checkpoint-begin:error,load-log:wait'\n");
$standby->reload;
$primary->safe_psql('postgres', 'BEGIN; INSERT INTO h VALUES (2); INSERT INTO m VALUES (2); COMMIT; INSERT INTO m VALUES (3); INSERT INTO h VALUES (3)');
$primary->stop;
$standby->poll_query_until('postgres', 'SELECT pg_last_wal_replay_lsn() = pg_last_wal_receive_lsn()') or die;
$standby->safe_psql('postgres', 'CHECKPOINT');
$standby->stop('immediate');
my $log = -s $standby->logfile;
my $start = IPC::Run::start([ 'pg_ctl', '-D', $standby->data_dir, '-l', $standby->logfile, 'start' ], '>&', \my $started);
$start->finish;
$standby->_update_pid(1);
$standby->wait_for_log(qr/"load-log" reached/, $log);

my $old = $standby->background_psql('postgres', on_error_stop => 0);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($old->query_safe('SELECT count(*) FROM h'), '3', 'heap tables are served before others are there');

# queries of heap tables that come to read others, in functions, with workers and without
sub readers
{
	my ($node, @levels) = @_;
	my @readers;
	for my $level (@levels)
	{
		for my $mode ('off', 'regress')
		{
			my $reader = $node->background_psql('postgres', on_error_stop => 0);
			$reader->query_safe("SELECT set_config(name, '$mode', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');"
				. " SET application_name = 'reader'");
			$reader->query_until(qr/begun/, "\\echo begun\nBEGIN ISOLATION LEVEL $level;\nSELECT count(*), sum(seen()) FROM h;\n");
			push @readers, [ "$level, forced to be parallel: $mode", $reader ];
		}
	}
	$node->poll_query_until('postgres', "SELECT count(*) >= 2 * " . @levels . " FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND query LIKE 'SELECT count%seen%'") or die;
	return @readers;
}

sub answers
{
	for my $reader (@_)
	{
		my $answer = $reader->[1]->query('SELECT 1') . $reader->[1]->{stderr};
		like($answer, qr/^3\|9\n1$|could not serialize access to memory-optimized tables, which have been loaded since/, "$reader->[0]: all or nothing");
		$reader->[1]->quit;
	}
	return;
}

my @readers = readers($standby, 'READ COMMITTED', 'REPEATABLE READ');
open(my $go, '>', $standby->data_dir . '/mot.fault.go') or die;
close $go;
is($standby->safe_psql('postgres', 'SELECT count(*) FROM m'), '3', 'these follow');
my $out = $old->query('SELECT count(*) FROM m');
is($out, '', 'an older snapshot does not see them as they were in a checkpoint');
like($old->{stderr}, qr/could not serialize access to memory-optimized tables, which have been loaded since/, '... but is told so');
$old->{stderr} = '';
$old->query('ROLLBACK');
is($old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM m; COMMIT'), '3', '... and a new one sees all');
$old->quit;
answers(@readers);
$standby->stop;
done_testing();
