# Unlogged ordinary tables: rows neither in the log nor in checkpoints, empty after a
# crash with all that they are defined as, out of reach on a standby.  Temporary ones
# with them: nothing of those is left.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = 128MB\nautovacuum = off\n");
$node->start;
$node->safe_psql('postgres', q{CREATE EXTENSION mot; SET default_table_access_method = mot;
	CREATE UNLOGGED TABLE u (id int PRIMARY KEY, v text); CREATE INDEX ON u (v);
	CREATE UNLOGGED TABLE no_key (v text); CREATE TABLE l (id int PRIMARY KEY, v text);
	CREATE UNLOGGED TABLE was_unlogged (id int PRIMARY KEY); CREATE TABLE was_logged (id int PRIMARY KEY); CREATE UNLOGGED TABLE emptied (id int);
	INSERT INTO was_unlogged SELECT generate_series(1, 10); INSERT INTO was_logged SELECT generate_series(1, 10); INSERT INTO emptied VALUES (1)});
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

sub content
{
	my ($server) = @_;
	return $server->safe_psql('postgres', q{SELECT 'u', count(*), max(v) FROM u; SELECT 'no_key', count(*) FROM no_key; SELECT 'l', count(*), max(v) FROM l;
		SELECT 'was_unlogged', count(*), max(id) FROM was_unlogged; SELECT 'was_logged', count(*) FROM was_logged; SELECT 'emptied', count(*) FROM emptied;
		SELECT 'wrong', count(*) FROM pg_class c, mot_verify(c.oid) WHERE relname IN ('u', 'l', 'was_unlogged', 'was_logged') AND problems > 0});
}

# one transaction with all kinds, others beside a checkpoint
my $before = $node->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
$node->safe_psql('postgres', q{INSERT INTO u SELECT i, repeat('x', 1000) || i FROM generate_series(1, 5000) i; INSERT INTO no_key SELECT 'n' FROM generate_series(1, 100)});
cmp_ok($node->safe_psql('postgres', "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '$before')"), '<', 100000, 'rows of unlogged tables are not in the log');
$node->safe_psql('postgres', q{BEGIN; INSERT INTO l VALUES (1, 'one'), (2, 'two'); UPDATE u SET v = 'changed' WHERE id <= 10; DELETE FROM no_key; CREATE TEMP TABLE t (a int) USING mot;
	INSERT INTO t VALUES (1); COMMIT; ALTER TABLE was_unlogged SET LOGGED; ALTER TABLE was_logged SET UNLOGGED; TRUNCATE emptied});
$node->safe_psql('postgres', 'CHECKPOINT');
$node->safe_psql('postgres', q{BEGIN; UPDATE l SET v = 'zwei' WHERE id = 2; INSERT INTO u VALUES (5001, 'new'); INSERT INTO was_unlogged VALUES (11); INSERT INTO was_logged VALUES (11); COMMIT;
	INSERT INTO emptied VALUES (2); CREATE UNLOGGED TABLE late (a int PRIMARY KEY) USING mot; INSERT INTO late VALUES (1)});
my $full = "u|5001|xNN\nno_key|0\nl|2|zwei\nwas_unlogged|11|11\nwas_logged|11\nemptied|1\nwrong|0";
(my $now = content($node)) =~ s/x{1000}\d+/xNN/;
is($now, $full, 'all is there while the server runs');
is($node->safe_psql('postgres', q{SELECT string_agg(relname || ' ' || rows, ', ' ORDER BY relname) FROM mot_stat_tables WHERE relname IN ('late', 'emptied')}),
	'emptied 1, late 1', 'views know them');

my $empty = "u|0|\nno_key|0\nl|2|zwei\nwas_unlogged|11|11\nwas_logged|0\nemptied|0\nwrong|0";
for my $how ('immediate', 'fast')
{
	$node->stop($how);
	$node->start;
	is(content($node), $empty, "unlogged tables are empty after a stop: $how");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM late'), '0', '... one that is newer than the checkpoint, too');
	$node->safe_psql('postgres', q{INSERT INTO u VALUES (1, 'again'); UPDATE u SET v = 'and again' WHERE id = 1; INSERT INTO late VALUES (1)});
	is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT id FROM u WHERE v = 'and again'}), '1', '... and can be written');
	isnt($node->psql('postgres', q{INSERT INTO u VALUES (1, 'twice')}), 0, '... under their keys');
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 't'}), '0', 'no temporary table is left');

# (as long as this snapshot is held no row of pg_class is pruned that the standby's below can see:
# replay of that ends transactions there after max_standby_streaming_delay)
my $keeper = $node->background_psql('postgres');
$keeper->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->wait_for_catchup($standby, 'replay');
my ($ret, $out, $err) = $standby->psql('postgres', 'SELECT * FROM u');
like($err, qr/cannot access temporary or unlogged relations during recovery/, 'a standby does not read unlogged tables');
is($standby->safe_psql('postgres', 'SELECT count(*), max(v) FROM l'), '2|zwei', '... and has logged ones');

# a snapshot there from before a table got other storage
my $old = $standby->background_psql('postgres', on_error_stop => 0);
is($old->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM was_unlogged'), '11', 'a transaction on the standby');
$node->safe_psql('postgres', 'VACUUM FULL l');
$node->wait_for_catchup($standby, 'replay');
$old->query('SELECT count(*) FROM l');
like($old->{stderr}, qr/could not serialize access/, '... is not shown an empty table that has been stored anew');
$old->quit;
$keeper->quit;
is($standby->safe_psql('postgres', 'SELECT count(*), max(v) FROM l'), '2|zwei', '... whose rows the next one sees');
$standby->promote;
is(content($standby), $empty, 'they are empty when it has been promoted');
$standby->safe_psql('postgres', q{INSERT INTO u VALUES (1, 'there'); ALTER TABLE u SET LOGGED});
$standby->stop('immediate');
$standby->start;
is($standby->safe_psql('postgres', q{SELECT v FROM u WHERE id = 1}), 'there', '... and can become logged ones');

done_testing();
