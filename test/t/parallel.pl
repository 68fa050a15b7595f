# Parallel workers on ordinary tables: no answer changes with their number, beside writers, when
# they are cancelled or ended, and on a standby; and what they held is given back.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
mot.analytics_hint = off
max_worker_processes = 16
max_parallel_workers = 8
max_parallel_workers_per_gather = 2
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE SCHEMA h;
	CREATE SCHEMA m;
	CREATE FUNCTION slow(int) RETURNS int PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN $1; END $$});

my @kinds = ([ 'h', 'heap' ], [ 'm', 'mot' ]);

sub both
{
	my ($session, $sql) = @_;
	my @answers;
	for my $kind (@kinds)
	{
		(my $s = $sql) =~ s/ENGINE/$kind->[1]/g;
		push @answers, join('|', $session->query("SET search_path = $kind->[0], public;\n$s"));
	}
	return @answers;
}

# random changes and queries, the same for both kinds, each query with all numbers of workers
my $seed = $ENV{PARALLEL_SEED} // int(rand(1000000));
srand($seed);
note("PARALLEL_SEED=$seed");
my @tables = qw(a b p);

sub pick { return $_[ int(rand(@_)) ] }
sub table { return pick(@tables) }

sub condition
{
	my ($t) = @_;
	my $n = int(rand(40));
	return pick("$t.v < $n", "$t.id % " . ($n + 2) . ' = 1', "$t.s LIKE '%$n%'", "$t.v IS NULL", "$t.id BETWEEN $n * 10 AND $n * 25",
		"$t.v IN (SELECT v FROM " . table() . " i WHERE i.id < $n)", "EXISTS (SELECT FROM " . table() . " i WHERE i.id = $t.v)");
}

sub change
{
	my $t = table();
	my $c = condition('x');
	return pick("UPDATE $t x SET v = v + 1 WHERE $c", "UPDATE $t x SET s = s || id, v = id % 30 WHERE $c", "DELETE FROM $t x WHERE $c AND id % 3 = 0",
		"INSERT INTO $t SELECT (SELECT coalesce(max(id), 0) FROM $t) + i, i % 20, 'new ' || i FROM generate_series(1, 30) i");
}

sub question
{
	my ($t, $u) = (table(), table());
	my $c = condition('x');
	my $d = condition('y');
	return pick(
		"SELECT count(*), count(v), sum(v), sum(id), min(s), max(s) FROM $t x WHERE $c",
		"SELECT v, count(*), sum(length(s)) FROM $t x WHERE $c GROUP BY v ORDER BY v",
		"SELECT count(*), sum(x.v), sum(y.id) FROM $t x JOIN $u y ON x.id = y.v WHERE $d",
		"SELECT count(*), sum(x.v) FROM $t x JOIN $u y USING (id) WHERE $c AND $d",
		"SELECT count(*), sum(x.v), count(y.id) FROM $t x LEFT JOIN $u y ON y.id = x.v + 3 WHERE $c",
		"SELECT id, v, s FROM $t x WHERE $c ORDER BY id, s LIMIT 7",
		"SELECT count(*) FROM (SELECT v FROM $t x WHERE $c UNION ALL SELECT v FROM $u y WHERE $d) z",
		"SELECT sum(n) FROM (SELECT v, count(*) AS n FROM $t x WHERE $c GROUP BY v OFFSET 0) z JOIN $u y ON y.id = z.v");
}

my $session = $node->background_psql('postgres', on_error_stop => 0);
both($session, q{CREATE TABLE a (id int, v int, s text, PRIMARY KEY (id)) USING ENGINE; CREATE TABLE b (id int PRIMARY KEY, v int, s text) USING ENGINE; CREATE INDEX ON b (v);
	CREATE TABLE p (id int, v int, s text) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (300) USING heap;
	CREATE TABLE p2 PARTITION OF p DEFAULT USING ENGINE; INSERT INTO a SELECT i, i % 37, 'text ' || i FROM generate_series(1, 1500) i;
	INSERT INTO b SELECT i, nullif(i % 50, 7), 'b' || i FROM generate_series(1, 700) i; INSERT INTO p SELECT i, i % 60, 'p' || i FROM generate_series(1, 900) i; ANALYZE});
my ($differ, $asked, $launched) = ('', 0, 0);
for my $round (1 .. 8)
{
	my $level = pick('READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE');
	my $savepoint = 0;
	$session->query("BEGIN ISOLATION LEVEL $level");
	for my $step (1 .. 6)
	{
		my $what = rand();
		my $sql = $what < 0.6 ? change() : $what < 0.8 ? 'SAVEPOINT s' : $savepoint ? 'ROLLBACK TO s' : change();
		if ($sql =~ /SAVEPOINT|ROLLBACK/)
		{
			$session->query($sql);
			$savepoint = 1;
		}
		else { both($session, $sql); }
		my $q = question();
		my %answers;
		for my $workers (0, 1, 2, 4)
		{
			# planned with two or four; one is what the server has left
			my $planned = $workers == 1 ? 2 : $workers;
			my $hint = pick('on', 'off');
			$session->query("SET max_parallel_workers = $workers; SET max_parallel_workers_per_gather = $planned; SET mot.analytics_hint = $hint");
			my ($heap, $mot) = both($session, "$q;");
			$answers{$heap}{"heap $workers"} = 1;
			$answers{$mot}{"mot $workers"} = 1;
		}
		$asked++;
		$session->query('SET mot.analytics_hint = off');
		$launched++ if $session->query("EXPLAIN (ANALYZE, COSTS OFF) $q") =~ /Launched: [1-4]/;
		next if keys(%answers) == 1;
		$differ .= "$level: $q\n" . join("\n", map { join(', ', sort keys %{ $answers{$_} }) . ": $_" } sort keys %answers) . "\n";
	}
	$session->query(pick('COMMIT', 'COMMIT', 'ROLLBACK'));
}
is($differ, '', "$asked random queries in transactions, with 0, 1, 2 and 4 workers");
cmp_ok($launched, '>', 5, "... which have been there");
$session->query('SET max_parallel_workers = 8; SET max_parallel_workers_per_gather = 2');

# beside writers who move amounts from row to row, and rows to other places, the sum is always the
# same
$node->safe_psql('postgres', q{
	CREATE TABLE bank (id int PRIMARY KEY, v int) USING mot; INSERT INTO bank SELECT i, 100 FROM generate_series(1, 2000) i; ANALYZE bank;
	CREATE PROCEDURE move(n int) LANGUAGE plpgsql AS $$ BEGIN
		FOR i IN 1 .. n LOOP
			UPDATE bank SET v = v - 1 WHERE id = 1 + i * 7 % 1000; UPDATE bank SET v = v + 1 WHERE id = 1001 + i * 11 % 1000;
			DELETE FROM bank WHERE id = 1 + i % 1000; INSERT INTO bank SELECT 1 + i % 1000, 100 * 2000 - (SELECT sum(v) FROM bank); COMMIT;
		END LOOP; END $$});
my $writer = $node->background_psql('postgres');
$writer->query_until(qr/begun/, "\\echo begun\nSET max_parallel_workers_per_gather = 0;\nCALL move(1500);\n\\echo over\n");
my %sums;
for my $level (('READ COMMITTED', 'REPEATABLE READ') x 10)
{
	my $hint = pick('on', 'off');
	my ($answer) = $session->query("SET search_path = public; SET mot.analytics_hint = $hint; SET parallel_leader_participation = " . pick('on', 'off') . "; BEGIN ISOLATION LEVEL $level;
		INSERT INTO bank SELECT -i, 5 FROM generate_series(1, 100) i; SELECT count(*), sum(v) FROM bank; ROLLBACK; SELECT count(*), sum(v) FROM bank;");
	$sums{$answer}++;
}
is(join(', ', map { s/\s+/ /gr } sort keys %sums), '2100|200500 2000|200000', 'one state, beside a writer');
$writer->query_until(qr/over/, '');
$writer->quit;

# a worker that is ended, a leader that is cancelled or ended
my $slow = 'SELECT count(*) FROM bank WHERE slow(v) > -100000;';
my $workers = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'};
for my $how ([ 'pg_terminate_backend(pid)', "backend_type = 'parallel worker'", qr/terminating background worker|lost connection to parallel worker/, 'ended worker' ],
	[ 'pg_cancel_backend(pid)', "application_name = 'leader' AND leader_pid IS NULL", qr/canceling statement/, 'cancelled leader' ],
	[ 'pg_terminate_backend(pid)', "application_name = 'leader' AND leader_pid IS NULL", qr/terminating connection/, 'ended leader' ])
{
	my $leader = $node->background_psql('postgres', on_error_stop => 0);
	$leader->query(q{SET application_name = 'leader'; SET parallel_leader_participation = off; BEGIN; UPDATE bank SET v = v + 1 WHERE id > 1500; INSERT INTO bank VALUES (-1, 0)});
	$leader->query_until(qr/begun/, "\\echo begun\n$slow\n");
	ok($node->poll_query_until('postgres', "SELECT ($workers) = 2"), "$how->[3]: workers are there");
	my $at = -s $node->logfile;
	$node->safe_psql('postgres', "SELECT $how->[0] FROM pg_stat_activity WHERE $how->[1] LIMIT 1");
	ok($node->poll_query_until('postgres', "SELECT ($workers) = 0"), '... and go');
	like(slurp_file($node->logfile, $at), $how->[2], '... with an error');
	eval { $leader->query('ROLLBACK'); $leader->quit };
	is($node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM bank; SELECT count(*) FROM bank WHERE v > 100 AND id < 0'), "2000|200000\n0", '... the changes are taken back');
}
$session->quit;

# nobody holds anything: what is deleted is given back
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type IN ('parallel worker', 'client backend') AND pid <> pg_backend_pid()}), 'all are gone');
$node->safe_psql('postgres', 'DELETE FROM bank WHERE id % 2 = 0');
my ($out, $verbose);
# (whoever reclaims just now has one)
for (1 .. 50)
{
	$node->psql('postgres', 'VACUUM (VERBOSE) bank', stdout => \$out, stderr => \$verbose);
	last if $verbose =~ /\. 0 objects/;
	sleep 0.2;
}
like($verbose, qr/1000 rows are in \d+ bytes, indexes in \d+\. 0 objects/, 'no snapshot is left');

# a standby
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'BEGIN; UPDATE bank SET v = v + 1; UPDATE h.a SET v = v + 1; UPDATE m.a SET v = v + 1; COMMIT');
$node->wait_for_catchup($standby);
my $query = q{SET parallel_leader_participation = off; SELECT count(*), sum(v) FROM bank; SELECT count(*), sum(x.v - y.v) FROM h.a x JOIN m.a y USING (id)};
is($standby->safe_psql('postgres', $query), $node->safe_psql('postgres', $query), 'on a standby');
like($standby->safe_psql('postgres', 'EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*), sum(v) FROM bank'), qr/Workers Launched: 2/, '... with workers');
$standby->stop;
$node->stop;
done_testing();
