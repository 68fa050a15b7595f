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

# SERIALIZABLE commits that wait for a standby, which comes and goes, and have
# drawn their place in the order long before: others see all of each, or nothing,
# and nothing that has come of it without it.
$node->append_conf('postgresql.conf', "wal_level = replica\nmax_wal_senders = 2");
$node->restart;
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE pair (id int PRIMARY KEY, k int UNIQUE, v int) SERVER mot_server;
	INSERT INTO pair SELECT i, i, 100 FROM generate_series(1, 10) i});
my $pair = q{
\set x random(1, 10)
\set y random(1, 10)
};
my $waits = 'BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL synchronous_commit = on;';
my $transfer = 'UPDATE pair SET v = v - 1 WHERE id = :x; UPDATE pair SET v = v + 1 WHERE id = :y; COMMIT;';
my $move = 'UPDATE pair SET k = -k WHERE id = :x; DELETE FROM pair WHERE id = 100 + :y; INSERT INTO pair VALUES (100 + :y, NULL, 0); COMMIT;';
$node->pgbench(
	'--no-vacuum --client=8 --jobs=2 --time=6 --max-tries=0 --latency-limit=100000',
	0,
	[ qr{number of failed transactions: 0 } ],
	[ qr{^$} ],
	'beside commits that wait for a standby',
	{
		'041_standby@1' => q{
ALTER SYSTEM SET synchronous_standby_names = 'nobody';
SELECT pg_reload_conf();
\sleep 20 ms
ALTER SYSTEM RESET synchronous_standby_names;
SELECT pg_reload_conf();
\sleep 10 ms
},
		'042_both@3' => $writers =~ s/BEGIN;/$waits/r . 'COMMIT;',
		'043_alone@3' => "$pair $waits $transfer",
		'044_moves@2' => "$pair $waits $move",
		'045_others@3' => "$pair BEGIN; $transfer" . "\n$writers COMMIT;",
		'046_pair@4' => 'SELECT sum(v) AS s, sum(v) <> 1000 OR count(*) < 10 AS half FROM pair \gset' . sprintf($check, 'one kind'),
		'047_pair_twice@2' => q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT sum(v) AS a, sum(abs(k)) + count(*) AS b FROM pair \gset
SELECT sum(v) AS s, sum(v) <> 1000 OR sum(abs(k)) + count(*) <> :b OR sum(abs(k)) <> 55 AS half FROM pair \gset
UPDATE pair SET v = v WHERE id = 3;
COMMIT;
} . sprintf($check, 'one kind, twice'),
		map { ("sync$_" => $scripts{$_}) } grep { /03[4-7]/ } keys %scripts });
is($node->safe_psql('postgres', 'SELECT how, count(*), min(sum), max(sum) FROM halves GROUP BY how ORDER BY how'),
	'', 'nobody has seen half a transaction');
is($node->safe_psql('postgres', q{SELECT sum(v), sum(abs(k)), (SELECT sum(problems) FROM mot_verify('pair')) FROM pair}), '1000|55|0', 'all is there');
is($node->safe_psql('postgres', 'SELECT total()'), '4000', 'nothing was lost');
cmp_ok($node->safe_psql('postgres', 'SELECT sum(v) FROM hot'), '>', 2000, 'and something was done');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'in peace');

$node->stop;
done_testing();
