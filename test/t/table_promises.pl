# What an ordinary table has, tried on heap and on memory-optimized ones with the same
# output (twins/promises.sql); and what only statistics and other tools show of it:
# sizes, log, autovacuum, wraparound, modules that look into files.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('promises');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'mot, pg_stat_statements'
mot.max_memory = '256MB'
autovacuum_naptime = 1s
fsync = off
CONF
$node->start;

my $script = slurp_file("$FindBin::Bin/../twins/promises.sql");
my %said;
for my $engine ('heap', 'mot')
{
	(my $sql = $script) =~ s/ENGINE/$engine/g;
	$node->safe_psql('postgres', "CREATE DATABASE $engine");
	$node->safe_psql($engine, 'CREATE EXTENSION mot');
	IPC::Run::run([ 'psql', '-X', '-a', '-d', $node->connstr($engine) ], '<', \$sql, '>', \$said{$engine}, '2>&1');
	$said{$engine} =~ s/\b(heap|mot)\b/ENGINE/g;
	$said{$engine} =~ s/promises_\w+/promises/g;
}
my @heap = split /\n/, $said{heap};
my @mot = split /\n/, $said{mot};
my $line = 0;
$line++ while $line < @heap && $line < @mot && $heap[$line] eq $mot[$line];
cmp_ok(scalar(@heap), '>', 500, 'the script runs on heap');
is($mot[$line], $heap[$line], 'memory-optimized tables answer as heap tables do') or diag(join "\n", '...', @heap[ $line - 8 .. $line - 1 ]);
is($node->safe_psql('mot', "SELECT string_agg(first_problem, ', ') FROM pg_class c, mot_verify(c.oid) WHERE relkind IN ('r', 'm') AND relam = (SELECT oid FROM pg_am WHERE amname = 'mot')"),
	'', '... and are in order');

# ------------------------------------------------- statistics and other tools

$node->safe_psql('mot', q{
	CREATE EXTENSION pg_stat_statements;
	CREATE TABLE s (id int PRIMARY KEY, v text) USING mot;
	CREATE INDEX s_v ON s (v);
	CREATE FUNCTION size_of(regclass) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN pg_total_relation_size($1); END';
	CREATE VIEW sizes AS SELECT relname, pg_relation_size(oid) AS bytes FROM pg_class WHERE relname IN ('s', 's_v');
	INSERT INTO s SELECT i, 'value ' || i FROM generate_series(1, 5000) i;
	UPDATE s SET v = 'value 1!' WHERE id = 1;
	UPDATE s SET v = 'value 1' WHERE id = 1});
is($node->safe_psql('mot', q{SELECT wal_bytes / rows BETWEEN 30 AND 60 FROM pg_stat_statements WHERE query LIKE 'INSERT INTO s SELECT%'}), 't', 'pg_stat_statements knows what a statement logs');
is($node->safe_psql('mot', q{SELECT calls, wal_bytes BETWEEN 30 AND 80 FROM pg_stat_statements WHERE query LIKE 'UPDATE s SET v%'}), '2|t', '... of an update what it changes');
is($node->safe_psql('mot', q{SELECT pg_relation_size('s') = row_bytes, pg_relation_size('s', 'main') = row_bytes, pg_table_size('s') = row_bytes, pg_indexes_size('s') >= index_bytes,
	pg_total_relation_size('s') >= row_bytes + index_bytes, size_of('s') = pg_total_relation_size('s'), (SELECT bytes FROM sizes WHERE relname = 's') = row_bytes,
	pg_relation_size('s_v') >= (SELECT bytes FROM mot_stat_indexes WHERE indexrelname = 's_v') AND pg_relation_size('s_v') > 50000, pg_relation_size('s', 'fsm'), pg_relation_size(1::oid) IS NULL
	FROM mot_stat_tables WHERE relname = 's'}), 't|t|t|t|t|t|t|t|0|t', 'pg_relation_size and its like count what is in memory');
like($node->safe_psql('mot', '\dt+ s'), qr/\d\d\d kB/, '... so \dt+ shows it');
$node->safe_psql('mot', 'CREATE ROLE unsized; GRANT SELECT ON s TO unsized; REVOKE EXECUTE ON FUNCTION pg_table_size(regclass) FROM PUBLIC');
my ($unsized_rc, $unsized_out, $unsized) = $node->psql('mot', "SET ROLE unsized; SELECT pg_table_size('s')");
like($unsized, qr/permission denied for function pg_table_size/, 'who may not ask for sizes is refused');
$node->safe_psql('mot', 'GRANT EXECUTE ON FUNCTION pg_table_size(regclass) TO PUBLIC');
is($node->safe_psql('mot', "SELECT pg_relation_size('pg_class') = pg_relation_size('pg_class', 'main') AND pg_table_size('pg_class') > pg_relation_size('pg_class')"), 't', '... and files of all else');

my $owner = $node->background_psql('mot');
$owner->query_safe('CREATE TABLE hs (id int); CREATE INDEX hs_id ON hs (id); BEGIN; LOCK TABLE s, hs');
is($node->safe_psql('mot', "SET lock_timeout = '5s'; SELECT pg_relation_size('s_v') > 50000, pg_relation_size('hs_id')"), 't|8192', '... without a lock on an index\'s table');
$owner->query_safe('ROLLBACK; DROP TABLE hs');
$owner->quit;
ok($node->poll_query_until('mot', q{SELECT autoanalyze_count > 0 AND last_autoanalyze IS NOT NULL AND n_tup_ins = 5000 FROM pg_stat_user_tables WHERE relname = 's'}), 'autovacuum analyzes it');
$node->safe_psql('mot', q{SELECT count(*) FROM s; SET enable_seqscan = off; SELECT * FROM s WHERE v = 'value 7'; UPDATE s SET v = 'new' WHERE id = 7; DELETE FROM s WHERE id = 8});
ok($node->poll_query_until('mot', q{SELECT seq_scan > 0 AND seq_tup_read >= 5000 AND idx_scan >= 3 AND n_tup_upd = 3 AND n_tup_del = 1 AND n_live_tup BETWEEN 4990 AND 5000
	AND (SELECT idx_scan = 1 AND idx_tup_fetch = 1 FROM pg_stat_user_indexes WHERE indexrelname = 's_v') FROM pg_stat_user_tables WHERE relname = 's'}), '... and statistics count what is done with it');
is($node->safe_psql('mot', q{SELECT relfrozenxid, relminmxid FROM pg_class WHERE relname = 's'}), '0|0', 'it has no xids that could wrap around');
unlike(slurp_file($node->logfile), qr/wraparound/, '... of which nobody warns');

my ($ret, $out, $err);
my $verbose = '\set VERBOSITY verbose' . "\n";
for my $query ('SELECT xmin FROM s WHERE id = 1', "UPDATE s SET v = 'x' WHERE id = 1 AND xmin = '5'", 'SELECT id FROM s WHERE xmax = 0', 'SELECT cmin FROM s LIMIT 1',
	'UPDATE s SET v = v WHERE id = 1 RETURNING xmin', "SELECT xmin FROM s WHERE ctid = (SELECT ctid FROM s WHERE id = 1)", 'SELECT xmin FROM s WHERE id = 1 FOR UPDATE')
{
	($ret, $out, $err) = $node->psql('mot', $verbose . $query);
	like($err, qr/ERROR:  0A000: memory-optimized tables have no system columns but ctid and tableoid/, "$query: an error");
	like($err, qr/HINT:  .* a column that every update changes/, '... that says what to do') if $query !~ /xmax/;
}
for my $type ('int[]', 'int4range', 'jsonb', 'tsvector', 'int4multirange', 'tt')
{
	($ret, $out, $err) = $node->psql('mot', $verbose . "CREATE TABLE key (k $type PRIMARY KEY) USING mot; INSERT INTO key VALUES (NULL)");
	like($err, qr/ERROR:  23502/, "a key of type $type");
	$node->safe_psql('mot', 'DROP TABLE key');
	($ret, $out, $err) = $node->psql('mot', $verbose . "CREATE FOREIGN TABLE key (k $type PRIMARY KEY) SERVER mot_server");
	like($err, qr/ERROR:  0A000: column "k" of type \S+ cannot be indexed in memory-optimized table.*HINT:/s, '... not of a foreign table');
}
($ret, $out, $err) = $node->psql('mot', "CREATE TABLE key (k text PRIMARY KEY) USING mot; INSERT INTO key SELECT string_agg(md5(i::text), '') FROM generate_series(1, 254) i;
	INSERT INTO key SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) i");
like($err, qr/ERROR:  index row (size|requires)/, 'a key that is too long');

# (of what has been deleted, others may give back a part first)
my $gave = 0;
for (my $try = 0; $try < 20 && $gave < 1000; $try++)
{
	($ret, $out, $err) = $node->psql('mot', "SELECT 1;\nCREATE TABLE given (id int PRIMARY KEY) USING mot;\nINSERT INTO given SELECT generate_series(1, 20000);\n"
		  . "DELETE FROM given WHERE id > 5000;\nVACUUM (VERBOSE) given;\nDROP TABLE given;");
	$gave = $1 if $err =~ /INFO:  "given": gave back (\d+) rows and superseded versions, \d{5,} bytes, and pages of \d+ bytes to other tables\nDETAIL:  5000 rows are in \d+ bytes, indexes in \d+\. \d+ objects/;
}
cmp_ok($gave, '>=', 1000, 'VACUUM (VERBOSE) says what it gave back') or diag($err);

# modules that read blocks find none of a table's: an error, or nothing
$node->safe_psql('mot', "CREATE EXTENSION $_") for 'amcheck', 'pageinspect', 'pgstattuple', 'pg_prewarm', 'pg_visibility', 'pg_surgery', 'pgrowlocks', 'pg_freespacemap', 'tsm_system_rows';
for my $query ("verify_heapam('s')", "pgstattuple('s')", "pgstattuple_approx('s')", "heap_force_kill('s', ARRAY['(0,1)']::tid[])", "heap_force_freeze('s', ARRAY['(0,1)']::tid[])", "pgrowlocks('s')")
{
	($ret, $out, $err) = $node->psql('mot', "SELECT * FROM $query");
	like($err, qr/ERROR:  only heap AM is supported/, "$query: refused");
}
for my $query ("get_raw_page('s', 0)", "pg_prewarm('s')", "pg_visibility('s')")
{
	($ret, $out, $err) = $node->psql('mot', "SELECT * FROM $query");
	like($err, qr/ERROR:  /, "$query: an error");
}
is($node->safe_psql('mot', "SELECT sum(avail), max(leaf_pages) FROM pg_freespace('s'), pgstatindex('s_v')"), '0|0', 'others find nothing');
is($node->safe_psql('mot', 'SELECT count(*) FROM s TABLESAMPLE system_rows (100)'), '100', 'samples by a module');
$node->command_ok([ 'pg_amcheck', '-d', 'mot', '-p', $node->port, '-h', $node->host ], 'pg_amcheck passes');
is($node->safe_psql('mot', 'SELECT count(*), sum(id) FROM s'), '4999|12502492', 'its rows are all there');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing has crashed');
done_testing();
