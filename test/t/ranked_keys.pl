# Keys whose order only a function knows (ranked.h): several clients change a table and its heap
# twin, which has no indexes that are asked, while the server is killed, a standby reads, and is
# promoted.  What indexes say is compared with what the heap table says, in order, by ranges and
# values.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = int($ENV{SEED} || 1);
my $clients = 3;
my $seconds = $ENV{RANKED_SECONDS} || 4;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', qq{
autovacuum = off
jit = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
restart_after_crash = off
max_standby_streaming_delay = '5min'
hot_standby_feedback = on
wal_receiver_status_interval = '1s'
});
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION mot;
CREATE TYPE pair AS (a int, b text);
CREATE TYPE mood AS ENUM ('sad', 'happy');
ALTER TYPE mood ADD VALUE 'so so' BEFORE 'happy';
CREATE TABLE h (id int PRIMARY KEY, k int, j jsonb, a int[], r numrange, p pair, e mood);
CREATE UNIQUE INDEX h_p ON h (p);
CREATE TABLE m (LIKE h) USING mot;
ALTER TABLE m ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX m_p ON m (p);
CREATE INDEX m_j ON m (j);
CREATE INDEX m_a ON m (k, a DESC);
CREATE INDEX m_r ON m (r DESC, k) WHERE id % 2 = 0;
CREATE INDEX m_e ON m (e, j);
-- (these have no labels: enumerated.h)
CREATE UNIQUE INDEX m_ei ON m (e, id);
CREATE UNIQUE INDEX m_ke ON m (k, e DESC, id);

-- values that several clients draw, from few
CREATE FUNCTION draw_j() RETURNS jsonb LANGUAGE sql VOLATILE AS $$SELECT CASE (random() * 3)::int
	WHEN 0 THEN to_jsonb(round((random() * 50)::numeric, (random() * 2)::int)) WHEN 1 THEN jsonb_build_array((random() * 9)::int, (random() * 9)::int)
	WHEN 2 THEN jsonb_build_object('a', (random() * 5)::int, 'b', (random() * 1000)::int) ELSE NULL END$$;
CREATE PROCEDURE work(client int, seconds float8, seed float8) LANGUAGE plpgsql AS $$
DECLARE
	until timestamptz := clock_timestamp() + seconds * interval '1 second';
	n int := 0; i int; op int; v h; d int;
BEGIN
	PERFORM setseed(seed);
	WHILE clock_timestamp() < until LOOP
		FOR s IN 1 .. 1 + (random() * 3)::int LOOP
			BEGIN
				i := client + 10 * (random() * 150)::int;
				op := (random() * 9)::int;
				v := ROW(i, (random() * 3)::int, draw_j(), ARRAY[(random() * 9)::int, (random() * 9)::int], numrange((random() * 5)::int, 5 + (random() * 5)::int),
					ROW((random() * 20)::int, chr(97 + (random() * 25)::int))::pair, (enum_range(NULL::mood))[1 + (random() * 2)::int]);
				IF op < 4 THEN
					INSERT INTO h SELECT v.* ON CONFLICT (id) DO UPDATE SET j = EXCLUDED.j, k = EXCLUDED.k;
					INSERT INTO m SELECT v.* ON CONFLICT (id) DO UPDATE SET j = EXCLUDED.j, k = EXCLUDED.k;
				ELSIF op < 6 THEN
					UPDATE h SET a = v.a, r = v.r, p = v.p WHERE id = i;
					UPDATE m SET a = v.a, r = v.r, p = v.p WHERE id = i;
				ELSIF op < 7 THEN
					UPDATE h SET e = v.e, j = v.j WHERE id = i;
					UPDATE m SET e = v.e, j = v.j WHERE id = i;
				ELSE
					DELETE FROM h WHERE id = i;
					DELETE FROM m WHERE id = i;
				END IF;
				IF random() < 0.2 THEN
					RAISE EXCEPTION 'back';
				END IF;
			EXCEPTION WHEN raise_exception OR unique_violation OR deadlock_detected THEN
				NULL;
			END;
		END LOOP;
		n := n + 1;
		IF random() < 0.2 THEN ROLLBACK; ELSE COMMIT; END IF;
	END LOOP;
END
$$;

CREATE FUNCTION indexed(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true);
	EXECUTE query INTO result;
	RETURN result;
END
$$;
CREATE FUNCTION plain(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
	EXECUTE query INTO result;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true);
	RETURN result;
END
$$;
-- what is not the same: of the index, and of "twin"
CREATE FUNCTION problems(twin text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE q text; c text; o text; x text; y text;
BEGIN
	FOREACH q IN ARRAY ARRAY['j', 'p', 'k, a DESC', 'e, j', 'e, id', 'k, e DESC, id'] LOOP
		x := indexed(format('SELECT string_agg((%1$s)::text, chr(10)) FROM (SELECT * FROM m ORDER BY %2$s) x', 'ROW(' || replace(q, ' DESC', '') || ')', q));
		y := plain(format('SELECT string_agg((%1$s)::text, chr(10)) FROM (SELECT * FROM %3$s ORDER BY %2$s) x', 'ROW(' || replace(q, ' DESC', '') || ')', q, twin));
		-- (equal numbers may be written in several ways)
		x := regexp_replace(regexp_replace(x, '(\.[0-9]*?)0+(?![0-9])', '\1', 'g'), '\.(?![0-9])', '', 'g');
		y := regexp_replace(regexp_replace(y, '(\.[0-9]*?)0+(?![0-9])', '\1', 'g'), '\.(?![0-9])', '', 'g');
		IF x IS DISTINCT FROM y THEN
			RETURN NEXT 'order by ' || q;
		END IF;
	END LOOP;
	FOREACH c IN ARRAY ARRAY['j', 'a', 'p', 'e', 'r'] LOOP
		FOREACH o IN ARRAY ARRAY['<', '<=', '=', '>=', '>'] LOOP
			q := format('SELECT string_agg(n::text, '','' ORDER BY %1$s) FROM (SELECT v.%1$s, (SELECT count(*) FROM %%s t WHERE t.%1$s %2$s v.%1$s %3$s) n FROM (SELECT DISTINCT %1$s FROM %4$s WHERE id %% 7 = 0 AND %1$s IS NOT NULL) v) x',
				c, o, CASE c WHEN 'a' THEN 'AND k = 1' WHEN 'r' THEN 'AND id % 2 = 0' ELSE '' END, twin);
			IF indexed(replace(q, '%s', 'm')) IS DISTINCT FROM plain(replace(q, '%s', twin)) THEN
				RETURN NEXT c || ' ' || o;
			END IF;
		END LOOP;
	END LOOP;
END
$$;
SQL

my $problems = sub {
	my ($node, $twin) = @_;
	return $node->safe_psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT problems('$twin'); COMMIT");
};

# clients, and what is asked meanwhile
sub work
{
	my ($round, $meanwhile) = @_;
	my @running;

	for my $client (1 .. $clients)
	{
		my $out = '';
		my $setseed = (($seed * 31 + $round * 7 + $client) % 1000) / 1000;
		push @running, IPC::Run::start(
			[ 'psql', '-XAtq', '-d', $primary->connstr('postgres'), '-c', "CALL work($client, $seconds, $setseed)" ],
			'>&', \$out, IPC::Run::timeout(180));
	}
	my $until = time + $seconds - 1;
	$meanwhile->() while $meanwhile && time < $until;
	return @running;
}

$_->finish for work(1, undef);
cmp_ok($primary->safe_psql('postgres', 'SELECT count(*) FROM m'), '>', 50, 'there are rows');
is($problems->($primary, 'h'), '', 'indexes have the order of the heap table');

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay');
is($problems->($standby, 'h'), '', '... on a standby of a base backup, too');

# readers of the standby see versions that the primary has forgotten, beside labels that were given
# since
my $old = $standby->background_psql('postgres', on_error_die => 1);
$old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM m");
# (heap's versions are kept for him)
$primary->poll_query_until('postgres', 'SELECT backend_xmin IS NOT NULL FROM pg_stat_replication');
my $asked = 0;
my $wrong = '';
$_->finish for work(2, sub {
	$wrong .= $problems->($standby, 'h');
	$asked++;
});
is($wrong, '', "... while it replays ($asked times)");
is($old->query_safe("SELECT problems('h')"), '', '... and for a snapshot that is older');
$old->query_safe('COMMIT');
$old->quit;
$primary->wait_for_catchup($standby, 'replay');
is($problems->($standby, 'h'), '', '... beside that');

# killed under load
my @running = work(3, undef);
sleep($seconds / 2);
$primary->stop('immediate');
$_->finish for @running;
$primary->start;
is($problems->($primary, 'h'), '', 'after a crash');
$_->finish for work(4, undef);
is($problems->($primary, 'h'), '', '... and more changes');
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->restart;
is($problems->($primary, 'h'), '', 'after a restart');
$primary->safe_psql('postgres', 'REINDEX TABLE m');
is($problems->($primary, 'h'), '', 'reindexed');
is($primary->safe_psql('postgres', "SELECT sum(problems) FROM mot_verify('m')"), '0', '... and sound');

# who was reading before the promotion goes on, and new labels wait for him
$primary->wait_for_catchup($standby, 'replay');
$old = $standby->background_psql('postgres', on_error_die => 1);
$old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM m");
$primary->safe_psql('postgres', 'DELETE FROM m WHERE id % 3 = 0; DELETE FROM h WHERE id % 3 = 0');
$primary->wait_for_catchup($standby, 'replay');
$primary->stop('immediate');
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is($old->query_safe("SELECT problems('h')"), '', 'an old snapshot after the promotion');
is($problems->($standby, 'h'), '', '... and a new one');
my ($ret, $stdout, $stderr) = $standby->psql('postgres', "SET statement_timeout = '1s'; INSERT INTO m (id, j) VALUES (100001, '1.5')");
like($stderr, qr/statement timeout/, 'a new key waits for it');
is($standby->safe_psql('postgres', "UPDATE m SET k = k WHERE id = 1; SELECT count(*) FROM m WHERE id = 100001"), '0', '... others do not');
$old->query_safe('COMMIT');
$old->quit;
$standby->safe_psql('postgres', "INSERT INTO m (id, j) VALUES (100001, '1.5'); DELETE FROM m WHERE id = 100001");
$primary = $standby;
$_->finish for work(5, undef);
is($problems->($standby, 'h'), '', 'the former standby has the order, too');

# a run between two other values, by several sessions, none of which knows what label came before
# its own
$standby->safe_psql('postgres', <<'SQL');
CREATE TABLE run (a int[]) USING mot;
CREATE INDEX ON run (a);
CREATE SEQUENCE numbers;
INSERT INTO run VALUES ('{1}'), ('{2}'), ('{3}');
SQL
for my $sign ('', '-')
{
	my $script = $standby->basedir . '/run.sql';
	append_to_file($script, "INSERT INTO run SELECT ARRAY[1, ${sign}nextval('numbers')::int];\n");
	my $out = '';
	ok(eval {
		IPC::Run::run([ 'pgbench', '-n', '-c', 2, '-t', 3500, '-f', $script, $standby->connstr('postgres') ],
			'>&', \$out, IPC::Run::timeout(100));
	}, "values come in order, by turns ($sign)") or diag($out);
	unlink $script;
}
is($standby->safe_psql('postgres', <<'SQL'), '14003|0', '... and are in order');
SET enable_seqscan = off;
SET enable_sort = off;
SELECT count(*), count(*) FILTER (WHERE before > a) FROM (SELECT a, lag(a) OVER () AS before FROM (SELECT a FROM run ORDER BY a) x) y;
SQL
$standby->stop;

done_testing();
