# Transactions that change heap and memory-optimized tables, under load: no
# statement and no transaction sees half of one.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('mixed');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
synchronous_commit = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE cold (id int PRIMARY KEY, v int);
	CREATE FOREIGN TABLE hot (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE halves (how text, sum int);
	INSERT INTO cold SELECT i, 100 FROM generate_series(1, 20) i;
	INSERT INTO hot SELECT i, 100 FROM generate_series(1, 20) i;
	CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		RETURN (SELECT (SELECT sum(v) FROM cold) + (SELECT sum(v) FROM hot));
	END $$;
});

my $writers = q{
\set x random(1, 20)
\set y random(1, 20)
BEGIN;
UPDATE cold SET v = v - 1 WHERE id = :x;
UPDATE hot SET v = v + 1 WHERE id = :y;
};
my $check = q{
\if :half
INSERT INTO halves VALUES ('%s', :s);
\endif
};
my %scripts = (
	'031_commit@6' => $writers . 'COMMIT;',
	'032_rollback@1' => $writers . 'ROLLBACK;',
	'033_serializable@1' => "$writers COMMIT;" =~ s/BEGIN/BEGIN ISOLATION LEVEL SERIALIZABLE/r,
	'034_statement@4' => q{
SELECT s, s <> 4000 AS half FROM (SELECT (SELECT sum(v) FROM cold) + (SELECT sum(v) FROM hot) AS s) q \gset
} . sprintf($check, 'statement'),
	'035_function@2' => q{
SELECT s, s <> 4000 AS half FROM (SELECT total() AS s) q \gset
} . sprintf($check, 'function'),
	'036_join@2' => q{
SELECT sum(c.v + h.v) AS s, sum(c.v + h.v) <> 4000 AS half FROM cold c JOIN hot h USING (id) \gset
} . sprintf($check, 'join'),
	'037_repeatable@2' => q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT sum(v) AS cold FROM cold \gset
SELECT sum(v) + :cold AS s, sum(v) + :cold <> 4000 AS half FROM hot \gset
COMMIT;
} . sprintf($check, 'repeatable read'));

for my $protocol ('simple', 'prepared')
{
	$node->pgbench(
		"--no-vacuum --client=8 --jobs=2 --time=5 --max-tries=0 --latency-limit=100000 --protocol=$protocol",
		0,
		[ qr{number of failed transactions: 0 } ],
		[ qr{^$} ],
		"mixed transactions, $protocol protocol",
		{ map { ($protocol . $_ => $scripts{$_}) } keys %scripts });
	is($node->safe_psql('postgres', 'SELECT how, count(*), min(sum), max(sum) FROM halves GROUP BY how ORDER BY how'),
		'', 'nobody has seen half a transaction');
}
is($node->safe_psql('postgres', 'SELECT total()'), '4000', 'nothing was lost');
cmp_ok($node->safe_psql('postgres', 'SELECT sum(v) FROM hot'), '>', 2000, 'and something was done');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'in peace');

$node->stop;
done_testing();
