# An index that recovery finds in the log is one like any other: deleted rows
# leave it, and their memory comes back.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = 128MB\nautovacuum = off\n");
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE f (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE t (id int PRIMARY KEY, v int) USING mot;
	INSERT INTO f SELECT i, i % 100 FROM generate_series(1, 5000) i;
	INSERT INTO t SELECT * FROM f});
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

# (a backup is a checkpoint)
$node->safe_psql(
	'postgres', q{
	CREATE INDEX f_v ON f (v);
	CREATE INDEX t_v ON t (v);
	CREATE FOREIGN TABLE f2 (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE INDEX f2_v ON f2 (v);
	INSERT INTO f2 SELECT * FROM f;
	REINDEX TABLE f2;
	ALTER FOREIGN TABLE f2 ALTER v SET NOT NULL});

# deletes and undone inserts, of rows from before and after
sub worn
{
	my ($server, $what) = @_;
	for my $table ('f', 't', 'f2')
	{
		$server->safe_psql('postgres', "INSERT INTO $table SELECT i, i % 100 FROM generate_series(10001, 12000) i; DELETE FROM $table WHERE id % 10 <> 0");
		$server->psql('postgres', "BEGIN; INSERT INTO $table SELECT i, i % 100 FROM generate_series(20001, 22000) i; ROLLBACK");
		ok($server->poll_query_until('postgres', "SELECT max(entries) = 700 AND min(entries) = 700 FROM mot_verify('$table')"),
			"$what: deleted rows leave the indexes of $table");
		# the same memory again, under the same keys
		$server->safe_psql('postgres', "INSERT INTO $table SELECT i, 7 FROM generate_series(30001, 36000) i");
		is($server->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM $table WHERE v = 7"), '6000', '... and are not found there');
		is($server->safe_psql('postgres', "SELECT string_agg(first_problem, ', ') FROM mot_verify('$table')"), '', '... which are sound');
	}
	return;
}

$node->wait_for_catchup($standby);
$node->stop('immediate');
$standby->promote;
worn($standby, 'on a promoted standby');
$node->start;
worn($node, 'after a crash');

done_testing();
