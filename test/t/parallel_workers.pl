# How many parallel workers queries on ordinary tables have: as many as processors are free when
# they start, and between two pages they give way and come back.  Nobody waits for one that is
# parked.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = PostgreSQL::Test::Cluster->new('workers');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
mot.analytics_share = 1
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
	CREATE FUNCTION processors(float8, float8) RETURNS void AS 'mot', 'mot_test_processors' LANGUAGE C;
	CREATE FUNCTION restricted(float8, float8) RETURNS void PARALLEL RESTRICTED AS 'mot', 'mot_test_processors' LANGUAGE C;
	CREATE FUNCTION burn(int) RETURNS int PARALLEL SAFE COST 0.000001 LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. 60 LOOP END LOOP; RETURN $1; END $$;
	CREATE FUNCTION slow(int) RETURNS int PARALLEL SAFE COST 0.000001 LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. 50000 LOOP END LOOP; RETURN $1; END $$;
	CREATE FUNCTION inner_query() RETURNS bigint PARALLEL RESTRICTED LANGUAGE plpgsql AS $$
		BEGIN RAISE LOG 'the inner query is over, of %', (SELECT count(*) FROM t WHERE v >= 0); RETURN 1; END $$;
	CREATE TABLE t (id int PRIMARY KEY, v int, s text) USING mot;
	INSERT INTO t SELECT i, i % 1000, 'text ' || i FROM generate_series(1, 60000) i;
	CREATE TABLE h (id int PRIMARY KEY, v int, s text) USING heap;
	INSERT INTO h SELECT * FROM t;
	ANALYZE});

# how many workers a query has, in all its Gathers, as it says itself
sub launched
{
	my ($sql, $settings) = @_;
	my $plan = $node->safe_psql('postgres', ($settings // '') . ";EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql");
	my $n = 0;
	$n += $1 while $plan =~ /Workers Launched: (\d+)/g;
	return $n . ' of ' . ($plan =~ /Workers Planned: (\d+)/ ? $1 : 'none');
}

sub room
{
	my ($processors, $room) = @_;
	$node->safe_psql('postgres', "SELECT processors($processors, $room)");
}

my $watcher = $node->background_psql('postgres');
$watcher->set_query_timer_restart;
my $sum = 'SELECT count(*), sum(v), sum(id) FROM t';
# (so that it is not worth while to start workers that wait for better times)
my $small = 'SET cpu_tuple_cost = 0.000001; SET cpu_operator_cost = 0.000001; SET jit = off; SET max_parallel_workers_per_gather = 4; ALTER TABLE t SET (parallel_workers = 4)';
my $large = 'SET cpu_tuple_cost = 10; SET jit = off; SET enable_nestloop = off; SET max_parallel_workers_per_gather = 4';

# ------------------------------------------------------------------ at the start
for my $case ([ 8, 0, '', 0 ], [ 8, 1, '', 1 ], [ 8, 2.4, '', 2 ], [ 8, 2.6, '', 3 ], [ 8, 8, '', 4 ], [ 8, 8, 'mot.analytics_share = 0.25', 2 ],
	[ 8, 8, 'mot.analytics_share = 0.01', 1 ], [ 8, 8, 'mot.analytics_share = 0', 0 ], [ 8, 0, 'mot.analytics_hint = off', 4 ])
{
	my ($processors, $room, $setting, $want) = @$case;
	room($processors, $room);
	is(launched($sum, $small . ($setting ? ";SET $setting" : '')), "$want of 4", "$processors processors, $room of them free" . ($setting && ", $setting"));
}
room(8, 0);
is(launched($sum, $large), '4 of 4', 'a large query has workers, though none is free');
is(launched('SELECT count(*), sum(v) FROM h', 'SET parallel_leader_participation = off'), '2 of 2', 'heap tables are the server\'s matter');
is(launched('SELECT count(*), sum(v) FROM h', 'SET mot.analytics_share = 0'), '2 of 2', '... all the time');

# two at a time share what there is
room(8, 3);

sub begin
{
	my ($settings, $sql) = @_;
	my $s = $node->background_psql('postgres', on_error_stop => 0);
	$s->query("SET application_name = 'leader'; $settings");
	$s->query_until(qr/begun/, "\\echo begun\n$sql;\n\\echo over\n");
	return $s;
}

sub workers_are
{
	my ($running, $parked, $what) = @_;
	my $are;
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;
	do { sleep 0.03; $are = $watcher->query('SELECT running, parked FROM mot_stat_workers') } while ($are ne "$running|$parked" && time < $end);
	is($are, "$running|$parked", $what);
}

sub quit
{
	my ($s, $cancel) = @_;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'leader' AND leader_pid IS NULL") if $cancel;
	$s->query_until(qr/over/, '');
	$s->quit;
}

my $burn_long = 'SELECT count(*) FROM t a JOIN generate_series(1, 300) g ON burn(v + g) >= 0';
my $first = begin($small, $burn_long);
workers_are(3, 0, 'three are free: the first query has them');
is(launched($sum, $small), '0 of 4', '... and the second none');
my $asked = $node->safe_psql('postgres', 'SELECT asked, granted FROM mot_stat_workers');
room(8, 5);
is(launched($sum, $small), '2 of 4', '... or what is left');
is($node->safe_psql('postgres', 'SELECT asked, granted FROM mot_stat_workers'), join('|', (split /\|/, $asked)[0] + 4, (split /\|/, $asked)[1] + 2), '... which the view counts');

# ------------------------------------------------------------------ while it runs
room(8, 1);
workers_are(1, 2, 'there is room for one only: two are parked');
is($node->safe_psql('postgres', q{SELECT count(*), max(wait_event) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND wait_event IS NOT NULL}), '2|mot_parked', '... which shows');
room(8, 0);
workers_are(0, 3, '... for none');
room(8, 2);
workers_are(2, 1, '... for two: they go on');
room(8, 8);
workers_are(3, 0, '... for all');
room(8, 0);
workers_are(0, 3, 'and none again');
quit($first, 1);
workers_are(0, 0, 'workers that are parked go when the leader is cancelled');

# without the leader one of them goes on
$first = begin("$large; SET parallel_leader_participation = off", $burn_long);
workers_are(1, 3, 'the leader takes no part: one goes on, without room');
room(8, 3);
workers_are(3, 1, '... or more');
quit($first, 1);
workers_are(0, 0, '... and all go');

# a query within a function of another: the outer one's worker that goes on does nothing for it, and
# its own are not parked
room(8, 0);
my $at_inner = -s $node->logfile;
$first = begin("$large; SET parallel_leader_participation = off",
	'SELECT CASE WHEN id = 1 THEN inner_query() END, s FROM t WHERE id <= 1000 OR slow(v) < 0');
ok($node->wait_for_log(qr/the inner query is over/, $at_inner), 'a query within another ends');
workers_are(1, 3, '... long before that one does');
quit($first, 1);
workers_are(0, 0, '... whose workers go when it is cancelled');

# a worker that is ended while it is parked ends the query
room(8, 0);
my $at = -s $node->logfile;
$first = begin($large, $burn_long);
workers_are(0, 4, 'four are parked');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker' LIMIT 1});
quit($first, 0);
like(slurp_file($node->logfile, $at), qr/terminating background worker|lost connection to parallel worker/, 'a worker that is parked and terminated ends the query');
workers_are(0, 0, '... and all go');

# ------------------------------------------------------------------ nobody waits for them
my @questions = (
	[ 'an aggregate', $sum, 'Gather' ],
	[ 'groups', 'SELECT v, count(*), sum(id) FROM t GROUP BY v ORDER BY v', 'Gather' ],
	[ 'Gather Merge', 'SELECT id, v FROM t ORDER BY v, id', 'Gather Merge' ],
	[ 'rows', 'SELECT id, v, s FROM t WHERE v < 500', 'Gather' ],
	[ 'LIMIT', 'SELECT v >= 0 FROM t LIMIT 3', 'Gather' ],
	[ 'LIMIT over Gather Merge', 'SELECT id, v FROM t ORDER BY v, id LIMIT 10', 'Gather Merge' ],
	[ 'Parallel Hash', 'SELECT count(*), sum(a.v), sum(b.id) FROM t a JOIN t b ON a.id = b.v', 'Parallel Hash' ],
	[ 'Parallel Hash that grows', 'SELECT count(*), sum(a.v), sum(length(b.s)) FROM t a JOIN t b ON a.id = b.id + 0', 'Parallel Hash', q{SET work_mem = '64kB'} ],
	[ 'two of them', 'SELECT count(*), sum(a.v), sum(c.v) FROM t a JOIN t b ON a.id = b.v JOIN t c ON c.id = b.id', 'Parallel Hash' ],
	[ 'with heap tables', 'SELECT count(*), sum(a.v), sum(b.id) FROM t a JOIN h b ON a.id = b.v', 'Gather' ],
	[ 'Parallel Append', 'SELECT count(*), sum(v) FROM (SELECT v FROM t UNION ALL SELECT v FROM t WHERE v < 300 UNION ALL SELECT v FROM h) x', 'Parallel Append' ],
	[ 'a sub-select', 'SELECT count(*) FROM t WHERE v > (SELECT avg(v) FROM t)', 'Gather' ],
	[ 'rescans', 'SELECT k.v, x.n FROM (VALUES (3), (5), (7)) k(v) CROSS JOIN LATERAL (SELECT count(*) AS n FROM t WHERE v % 3 = 0 OFFSET 0) x', 'Gather', 'SET enable_nestloop = on; SET enable_material = off; SET enable_memoize = off' ]);
my ($slowest, $seconds) = ('', 0);
for my $question (@questions)
{
	my ($what, $sql, $plan, $settings) = @$question;
	my %answers;
	my $all = "SET client_min_messages = error; $large;" . ($settings ? "$settings;" : '');
	like($node->safe_psql('postgres', "$all EXPLAIN (COSTS OFF) $sql"), qr/$plan/, "$what: $plan");
	my $count = $what eq 'LIMIT' ? $sql : "SELECT count(*), md5(string_agg(r::text, ',' ORDER BY r::text)) FROM ($sql OFFSET 0) r";
	$answers{ $node->safe_psql('postgres', "SET max_parallel_workers_per_gather = 0; $count") } = 'none';
	for my $how ('on', 'off')
	{
		for my $room (0, 1, 2, 8)
		{
			room(8, $room);
			my $begun = time;
			my $answer = $node->safe_psql('postgres', "$all SET parallel_leader_participation = $how; $count");
			$answers{$answer} .= " $room/$how";
			($slowest, $seconds) = ("$what, $room, $how", time - $begun) if time - $begun > $seconds;
		}
	}
	is(keys(%answers), 1, '... has one answer, however many there are') or diag(join("\n", %answers));
}
note("slowest: $slowest, $seconds s");
workers_are(0, 0, 'nobody is left');

# a Gather that is scanned again, while room comes and goes between the scans
for my $what ('SELECT count(*), sum(a.v) AS v FROM t a JOIN h b USING (id)', 'SELECT v FROM t WHERE v = 7 LIMIT 2', 'SELECT v FROM t ORDER BY id LIMIT 2',
	'SELECT sum(v) FROM (SELECT v FROM t UNION ALL SELECT v FROM h) u')
{
	my %answers;
	for my $rooms ('8', '0', 'CASE i % 3 WHEN 1 THEN 0 ELSE 8 END', 'CASE i % 3 WHEN 0 THEN 0 ELSE 8 END')
	{
		my ($ret, $out, $err) = $node->psql('postgres', "$small; SET enable_nestloop = on; SET enable_material = off; SET enable_mergejoin = off;
			SELECT x.i, s.* FROM (SELECT i, restricted(8, $rooms) IS NULL AS n FROM generate_series(1, 4) i OFFSET 0) x LEFT JOIN ($what) s ON x.i > 0 OR x.n");
		$answers{"$out$err"} .= " $rooms";
	}
	is(keys(%answers), 1, "rescans while room comes and goes: $what") or diag(explain(\%answers));
	unlike(join('', keys %answers), qr/WARNING|ERROR/, '... and nothing is left open');
}

# while room comes and goes
my $coming = $node->background_psql('postgres');
$coming->query_until(qr/begun/, "\\echo begun\nDO \$\$ BEGIN FOR i IN 1 .. 400 LOOP PERFORM processors(8, (random() * 4)::int); PERFORM pg_sleep(0.003); END LOOP; END \$\$;\n\\echo over\n");
my %answers;
for my $i (1 .. 12)
{
	my $question = $questions[ $i % 2 ? 7 : 8 ];
	$answers{ $i % 2 }{ $node->safe_psql('postgres', "$large; SET work_mem = '256kB'; $question->[1]") } = 1;
}
is(join(',', map { scalar keys %{ $answers{$_} } } 0, 1), '1,1', 'and while room comes and goes');
$coming->query_until(qr/over/, '');
$coming->quit;

# an error in a worker, beside others that are parked
room(8, 1);
my ($ret, $out, $err) = $node->psql('postgres', "$large; SET parallel_leader_participation = off; SELECT count(*) FROM t WHERE 1 / (id - 59999) < 5");
like($err, qr/division by zero/, 'an error in a worker');
workers_are(0, 0, '... ends those that are parked');
($ret, $out, $err) = $node->psql('postgres', "$large; SET statement_timeout = '300ms'; $burn_long");
like($err, qr/statement timeout/, 'a timeout');
workers_are(0, 0, '... as well');

# cursors have no workers, but those WITH HOLD and what PL/pgSQL returns
is($node->safe_psql('postgres', "$large; BEGIN; DECLARE c CURSOR FOR SELECT count(*) FROM t; FETCH c; COMMIT"), '60000', 'a cursor');
is($node->safe_psql('postgres', "$large; CREATE TABLE made AS SELECT * FROM t WHERE burn(1) > 0 AND id % 100 = 0; SELECT count(*) FROM made"), '600', 'CREATE TABLE AS');

# ------------------------------------------------------------------ the real thing
room(-1, 0);
my ($processors, $hint) = split /\|/, $node->safe_psql('postgres', 'SELECT processors, hint FROM mot_stat_workers');
cmp_ok($processors, '>=', 1, "$processors processors");
cmp_ok($hint, '<=', $processors, "... $hint of them free");
cmp_ok($node->safe_psql('postgres', 'SELECT active FROM mot_stat_workers'), '>=', 1, 'who asks is active');
for (map { $node->background_psql('postgres') } 1 .. 6) { $_->quit; }
ok($node->poll_query_until('postgres', 'SELECT active <= 4 FROM mot_stat_workers'), '... and who has gone is not');
# backends that burn processors leave none; those that wait take none
my @busy = map { begin('SET max_parallel_workers_per_gather = 0', $burn_long) } 1 .. $processors + 1;
ok($node->poll_query_until('postgres', 'SELECT hint < 0.5 AND active > processors FROM mot_stat_workers'), 'sessions that are active leave nothing') or diag($node->safe_psql('postgres', 'TABLE mot_stat_workers'));
is(launched($sum, $small), '0 of 4', '... so there is no worker');
for (@busy) { quit($_, 1); }
my @waiting = map { begin('', "SELECT pg_sleep(100)") } 1 .. $processors + 1;
ok($node->poll_query_until('postgres', 'SELECT blocked > processors FROM mot_stat_workers'), 'those that wait are not active');
for (@waiting) { quit($_, 1); }

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'in peace');
$watcher->quit;
$node->stop;
done_testing();
