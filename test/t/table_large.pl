# A table of more than 1 GB, which on disk would be several files: ANALYZE, which may read
# ahead in them, alone, with VACUUM, of a partitioned table, by autovacuum.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('large');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'mot'
mot.max_memory = '2GB'
autovacuum = off
autovacuum_naptime = 1s
log_autovacuum_min_duration = 0
fsync = off
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION mot;
CREATE TABLE parts (id int, v int, t text) PARTITION BY RANGE (id);
CREATE UNLOGGED TABLE large PARTITION OF parts FOR VALUES FROM (1) TO (160000) USING mot;
CREATE UNLOGGED TABLE small PARTITION OF parts FOR VALUES FROM (160000) TO (1000000) USING mot;
INSERT INTO large SELECT i, i % 4, repeat('x', 8000) FROM generate_series(1, 150000) i;
INSERT INTO small SELECT i, 7, 'y' FROM generate_series(160000, 169999) i;
SQL
my $pages = $node->safe_psql('postgres', "SELECT pg_relation_size('large') / 8192");
cmp_ok($pages, '>', 131072, 'it is larger than a file');

sub known
{
	return $node->safe_psql('postgres', <<'SQL');
SELECT CASE WHEN reltuples NOT BETWEEN 135000 AND 165000 THEN reltuples::text ELSE 't' END AS rows, relpages, (SELECT n_distinct FROM pg_stats WHERE tablename = 'large' AND attname = 'v') AS values
FROM pg_class WHERE relname = 'large'
SQL
}

sub forget
{
	$node->safe_psql('postgres', "UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relname = 'large'; DELETE FROM pg_statistic WHERE starelid = 'large'::regclass");
}

for my $command ('ANALYZE large', 'VACUUM (ANALYZE) large')
{
	forget();
	my ($rc, $out, $err) = $node->psql('postgres', $command);
	is($err, '', "$command succeeds");
	is(known(), "t|$pages|4", 'rows, pages and values are known by it');
}
$node->safe_psql('postgres', 'ANALYZE parts');
is($node->safe_psql('postgres', "SELECT n_distinct FROM pg_stats WHERE tablename = 'parts' AND inherited AND attname = 'v'"), 5, 'of all partitions');
# (of 16 rows one is; if each partition had as many in the sample, one of two)
cmp_ok($node->safe_psql('postgres', "SELECT f FROM pg_stats, unnest(most_common_vals::text::int[], most_common_freqs) m(v, f) WHERE tablename = 'parts' AND attname = 'v' AND inherited AND m.v = 7"),
	'<', 0.2, 'each with as much of the sample as it is large');
forget();
$node->safe_psql('postgres', 'SET track_activities = off; ANALYZE large');
like(known(), qr/^t\|\d+\|4$/, 'without progress that is reported');
forget();
$node->append_conf('postgresql.conf', 'autovacuum = on');
$node->reload;
$node->safe_psql('postgres', 'DELETE FROM large WHERE id > 120000; INSERT INTO large SELECT i, i % 4, repeat(\'x\', 8000) FROM generate_series(120001, 150000) i');
ok($node->poll_query_until('postgres', "SELECT autoanalyze_count > 0 FROM pg_stat_user_tables WHERE relname = 'large'"), 'autovacuum analyzes it');
# (it is counted before its commit)
ok($node->poll_query_until('postgres', "SELECT reltuples > 0 FROM pg_class WHERE relname = 'large'"), 'to its end');
like(known(), qr/^t\|\d+\|4$/, 'and finds what there is');
unlike(slurp_file($node->logfile), qr/could not open file/, 'nobody looks for a second file');
$node->stop;
done_testing();
