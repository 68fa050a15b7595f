# PREPARE TRANSACTION of transactions that have only read memory-optimized tables (others:
# prepared.pl); and hot standbys, which have the rows as well.

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
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
max_prepared_transactions = 5
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE hot (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE cold (id int PRIMARY KEY, v int);
	INSERT INTO hot VALUES (1, 1), (2, 2);
});

my ($ret, $out, $err);
# after an undone change there is nothing to lose
($ret, $out, $err) = $node->psql('postgres', q{
	BEGIN;
	SAVEPOINT s;
	UPDATE hot SET v = 10 WHERE id = 1;
	ROLLBACK TO s;
	INSERT INTO cold SELECT id, v FROM hot;
	PREPARE TRANSACTION 'read'});
is($ret, 0, 'a transaction that has read can be prepared');
is($node->safe_psql('postgres', 'UPDATE hot SET v = v + 1; SELECT sum(v) FROM hot'), '5', 'it holds no row');
$node->safe_psql('postgres', "COMMIT PREPARED 'read'");
is($node->safe_psql('postgres', 'SELECT sum(v) FROM cold'), '3', '... and commits what it has read');
($ret) = $node->psql('postgres', q{
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	UPDATE cold SET v = (SELECT sum(v) FROM hot);
	PREPARE TRANSACTION 'level'});
is($ret, 0, '... at REPEATABLE READ');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'level'");

($ret) = $node->psql('postgres', q{
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	UPDATE cold SET v = (SELECT sum(v) FROM hot);
	PREPARE TRANSACTION 'level'});
is($ret, 0, '... and SERIALIZABLE');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'level'");
# the session that prepared goes on
is($node->safe_psql('postgres', q{
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	SELECT count(*) FROM hot;
	PREPARE TRANSACTION 'same';
	UPDATE hot SET v = 0;
	ROLLBACK PREPARED 'same';
	SELECT sum(v) FROM hot}), "2\n0", 'the session that has prepared goes on with new snapshots');
ok($node->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'), 'and nothing is held');

# a standby has rows and definitions
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE later (id int PRIMARY KEY) SERVER mot_server; INSERT INTO later VALUES (1)');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*), sum(v) FROM hot'),
	$node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM hot'), 'a standby has the table');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM later WHERE id = 1'), '1', '... also one that is made later');
($ret, $out, $err) = $standby->psql('postgres', 'INSERT INTO hot VALUES (1, 1)');
like($err, qr/cannot execute INSERT in a read-only transaction/, '... which cannot be written');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE later; TRUNCATE hot; INSERT INTO hot VALUES (7, 7); CREATE INDEX ON hot (v)');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM hot WHERE v = 7'), '1', '... and follows the definitions');
$node->stop;
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO hot VALUES (1, 1)');
is($standby->safe_psql('postgres', 'SELECT v FROM hot WHERE id = 1'), '1', 'once promoted it takes rows');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT id FROM hot WHERE v = 1'), '1', '... with all indexes');
is($standby->safe_psql('postgres', "SELECT count(*) FROM mot_stat_indexes WHERE relname = 'hot'"), '2', '... which are there');
ok( $standby->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'mot maintenance'"),
	'... and has a maintenance worker');
$standby->stop;
done_testing();
