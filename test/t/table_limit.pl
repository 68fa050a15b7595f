# An ordinary table's own limit of memory: in other sessions, after a start and a crash, in a
# dump, with other storage, and on a standby that is promoted.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = 128MB
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE ROLE other');
$node->backup('empty');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'empty', has_streaming => 1);
$standby->start;

# does the table take some rows, and no more than its limit allows?
sub is_limited
{
	my ($where, $what, $database) = @_;
	my ($rc, $out, $error) = $where->psql($database // 'postgres', q{INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(20001, 40000) i}, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	like($error, qr/ERROR:  53200: memory limit of memory-optimized table "t" exceeded/, $what);
	$where->safe_psql($database // 'postgres', q{TRUNCATE t; INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 1000) i});
}

my $session = $node->background_psql('postgres');
$node->safe_psql('postgres', 'CREATE TABLE t (id int PRIMARY KEY, b text) USING mot');
$session->query_safe('INSERT INTO t VALUES (0)');
$node->safe_psql('postgres', q{SECURITY LABEL FOR mot ON TABLE t IS 'max_size=4MB'});
$session->query_safe(q{DO $$ BEGIN INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i; RAISE 'no limit'; EXCEPTION WHEN out_of_memory THEN NULL; END $$});
$session->quit;
is_limited($node, 'a session');
is_limited($node, 'after TRUNCATE');
$node->restart;
is_limited($node, 'after a start');
$node->stop('immediate');
$node->start;
is_limited($node, 'after a crash');
$node->safe_psql('postgres', 'VACUUM FULL t');
is_limited($node, 'after VACUUM FULL');
$node->safe_psql('postgres', "ALTER TABLE t SET ACCESS METHOD heap; INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1001, 20000) i");
my ($rc, $out, $error) = $node->psql('postgres', 'ALTER TABLE t SET ACCESS METHOD mot');
like($error, qr/memory limit of memory-optimized table .* exceeded/, 'a heap table that is larger than its limit does not move in');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '20000', '... and is as it was');
$node->safe_psql('postgres', 'DELETE FROM t WHERE id > 1000; ALTER TABLE t SET ACCESS METHOD mot');
is_limited($node, 'one that is not does, with its limit');
for my $other (q{ALTER TABLE t ALTER id TYPE bigint}, q{CLUSTER t USING t_pkey})
{
	$node->safe_psql('postgres', $other);
	is_limited($node, $other);
}
($rc, $out, $error) = $node->psql('postgres', q{SECURITY LABEL FOR mot ON TABLE t IS 'max_size=64kB'; VACUUM FULL t});
like($error, qr/memory limit of memory-optimized table .* exceeded/, 'what stores its rows anew meets the limit');
$node->safe_psql('postgres', q{SECURITY LABEL FOR mot ON TABLE t IS 'max_size=4MB'; CREATE DATABASE copy});
my $dump = $node->data_dir . '/../dump.sql';
$node->command_ok([ 'pg_dump', '-h', $node->host, '-p', $node->port, '-f', $dump, 'postgres' ], 'pg_dump');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $node->host, '-p', $node->port, '-f', $dump, 'copy' ], '... into another database');
is_limited($node, '... brings it along', 'copy');
$node->wait_for_catchup($standby);
my $reader = $standby->background_psql('postgres');
$reader->query_safe('SELECT count(*) FROM t');
$standby->promote;
$reader->query_safe(q{DO $$ BEGIN INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1001, 20000) i; RAISE 'no limit'; EXCEPTION WHEN out_of_memory THEN NULL; END $$});
$reader->quit;
is_limited($standby, 'a standby that is promoted');
$node->safe_psql('postgres', q{SECURITY LABEL FOR mot ON TABLE t IS NULL; INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1001, 20000) i});
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '20000', 'without a label there is none');
$_->stop for $standby, $node;
done_testing();
