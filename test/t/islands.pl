# On a machine that pretends to have two nodes, ranges of tables go where they are used
# together: two tables, each used by sessions of its own, come to a node each; and when the
# sessions work on other things, to others.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{HWLOC_SYNTHETIC} = 'node:2 core:2 pu:1';
my $node = PostgreSQL::Test::Cluster->new('islands');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE a (id int PRIMARY KEY, v int) USING mot;
	CREATE FOREIGN TABLE b (k text COLLATE "C" PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE unused (id int PRIMARY KEY) USING mot;
	INSERT INTO a SELECT i, 0 FROM generate_series(1, 20000) i;
	INSERT INTO b SELECT 'a long beginning, always the same ' || to_char(i, 'FM00000'), 0 FROM generate_series(1, 20000) i;
	INSERT INTO unused VALUES (1)});

sub query { return $node->safe_psql('postgres', shift) }

# two rows of one table in each transaction
my $a_a = q{
\set i random(1, 20000)
\set j random(1, 20000)
BEGIN; UPDATE a SET v = v + 1 WHERE id = :i; UPDATE a SET v = v + 1 WHERE id = :j; END;
};
my $b_b = q{
\set i random(10000, 20000)
\set j random(10000, 20000)
BEGIN;
UPDATE b SET v = v + 1 WHERE k = 'a long beginning, always the same ' || :i;
UPDATE b SET v = v + 1 WHERE k = 'a long beginning, always the same ' || :j;
END;
};
# rows of both, the lower half with the upper one of the other
my $lower_a = q{
\set i random(1, 9999)
BEGIN; UPDATE a SET v = v + 1 WHERE id = :i; UPDATE b SET v = v + 1 WHERE k = 'a long beginning, always the same ' || (:i + 10000); END;
};
my $upper_a = q{
\set i random(10001, 20000)
\set j random(10001, 19999)
BEGIN; UPDATE a SET v = v + 1 WHERE id = :i; UPDATE a SET v = v + 1 WHERE id = :j; END;
};

# the two scripts, until the query says true
sub run_until
{
	my ($one, $other, $until, $what) = @_;
	my @runs;
	my $n = 0;
	for my $script ($one, $other)
	{
		my $file = $node->basedir . '/script' . $n++;
		PostgreSQL::Test::Utils::append_to_file($file, '');
		open my $f, '>', $file or die;
		print $f $script;
		close $f;
		push @runs, IPC::Run::start([ 'pgbench', '-n', '-M', 'prepared', '-c', 2, '-T', 120, '-f', $file, '-h', $node->host, '-p', $node->port, 'postgres' ],
			'>', \my $out, '2>', \my $err);
	}
	ok($node->poll_query_until('postgres', $until), $what) or diag(query('TABLE mot_islands') . "\n" . query('TABLE mot_island_decisions'));
	$_->kill_kill for @runs;
}

# wanted nodes of a table's ranges that are used
my $nodes = q{(SELECT array_agg(DISTINCT wanted_node) FROM mot_islands WHERE tab = '%s'::regclass AND heat > 0.02)};
my ($of_a, $of_b) = map { sprintf($nodes, $_) } qw(a b);
# (Costs are those of the last load that was looked at: of one table alone, when the other's clients
# have stopped or not begun, unevenness costs more than the scheme saves.  So they are compared
# while both work.)
my $apart = "SELECT cardinality($of_a) = 1 AND cardinality($of_b) = 1 AND $of_a <> $of_b AND $of_a <> '{NULL}' AND $of_b <> '{NULL}'" .
	" AND (SELECT bool_and(cost_after < cost_before) FROM mot_islands)";

is(query('SELECT count(*) FROM mot_islands'), '0', 'off: nothing is shown');
query('ALTER SYSTEM SET mot.islands = advise');
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT count(DISTINCT tab) = 3 FROM mot_islands'), 'advise: tables are watched');

run_until($a_a, $b_b, $apart, 'tables of two groups are wanted on a node each, which costs less');
is(query("SELECT bool_and(node IS NULL) FROM mot_islands"), 't', 'advised only: nothing has been placed');
is(query("SELECT count(*) > 0, bool_or(done), bool_and(cost_after < cost_before), bool_and(milliseconds < 1000), bool_and(moves > 0) FROM mot_island_decisions"),
	't|f|t|t|t', 'the decision is remembered');
is(query("SELECT sum(heat) BETWEEN 0.5 AND 1.0001 FROM mot_islands"), 't', 'heat is a part of all work');
like(query("SELECT actions FROM mot_island_decisions ORDER BY decided_at LIMIT 1"), qr/move [ab] from \\\\x[0-9a-f]* on to node [01]/, 'the actions say what moves');

# a table may have gone since the last round
is(query("BEGIN; DROP TABLE unused; SELECT count(*) > 0 FROM mot_islands; ROLLBACK"), 't', 'a table that is dropped');
query('CREATE ROLE nobody');
is(query("SET ROLE nobody; SELECT count(*) > 0, count(low) FROM mot_islands; SELECT bool_or(actions::text ~ 'x61') FROM mot_island_decisions"),
	"t|0\nf", 'keys are shown to those who may read them');
query('GRANT SELECT ON a TO nobody');
my $shown = "SET ROLE nobody; SELECT count(low) > 0 FROM mot_islands WHERE tab = 'a'::regclass; SELECT bool_or(actions::text ~ 'move a from') FROM mot_island_decisions";
like(query($shown), qr/^t\n/, 'as are those of a table that all may read');
query('ALTER TABLE a ENABLE ROW LEVEL SECURITY');
is(query($shown), "f\nf", 'but not to those who may read some rows only');
query('ALTER TABLE a DISABLE ROW LEVEL SECURITY');
query('ALTER SYSTEM SET mot.islands = on');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT bool_and(node = wanted_node) FROM mot_islands WHERE tab IN ('a'::regclass, 'b'::regclass)"),
	'on: ranges are placed where they are wanted');

# a key that is made anew has another index: ranges go by that one, whether or not they are cut
# otherwise
query(q{CREATE FUNCTION mot_places_rows("table" regclass, OUT wanted int, OUT node int, OUT system_node int,
	OUT version_node int, OUT "rows" bigint) RETURNS SETOF record AS '$libdir/mot' LANGUAGE C STRICT});
my $known = "SELECT min(wanted) >= 0 FROM mot_places_rows('a')";
is(query($known), 't', 'rows have a place');
query('ALTER TABLE a DROP CONSTRAINT a_pkey, ADD PRIMARY KEY (id)');
ok($node->poll_query_until('postgres', $known), 'as they do with a new key');

# Rows that a worker has not come to are moved by the next one.  (They are brought to the other node
# by hand, between two rounds of this one, if they can be.)
query(q{CREATE FUNCTION mot_places_set("table" regclass, keys bytea[], nodes int[]) RETURNS text AS '$libdir/mot' LANGUAGE C STRICT;
	CREATE FUNCTION mot_places_move("table" regclass) RETURNS text AS '$libdir/mot' LANGUAGE C STRICT});
my $astray = "SELECT coalesce(sum(rows), 0) < 5000 FROM mot_places_rows('a') WHERE wanted <> node";
ok($node->poll_query_until('postgres', $astray), 'rows are where they are wanted');
query(q{SELECT mot_places_set('a', low, other), mot_places_move('a'), mot_places_set('a', low, node)
	FROM (SELECT array_agg(low ORDER BY range) AS low, array_agg(node ORDER BY range) AS node, array_agg(1 - node ORDER BY range) AS other
		FROM (SELECT *, lag(node) OVER (ORDER BY range) AS before FROM mot_islands WHERE tab = 'a'::regclass) r
		WHERE node IS DISTINCT FROM before) places});
query("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'mot maintenance'");
ok($node->poll_query_until('postgres', $astray), 'as they are after another worker has come');

# rows that are stored anew, or come after all have gone, have the places that those had
query('VACUUM FULL a');
ok($node->poll_query_until('postgres', $known), 'VACUUM FULL');
query('CREATE TABLE kept AS SELECT * FROM a; TRUNCATE a');
my $round = 'SELECT count(*) = 0 FROM mot_islands WHERE tab = \'a\'::regclass';
ok($node->poll_query_until('postgres', $round), 'an empty table is not watched');
query('INSERT INTO a TABLE kept');
ok($node->poll_query_until('postgres', $known), 'TRUNCATE');

# who only wants advice has no places, and has them again when he wants them again
for my $back (qw(advise off))
{
	query("ALTER SYSTEM SET mot.islands = $back");
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT max(wanted) = -1 FROM mot_places_rows('a')"), "$back: no places any more");
	query('ALTER SYSTEM SET mot.islands = on');
	$node->reload;
	ok($node->poll_query_until('postgres', $known), 'on: places again');
}

# the lower half of a goes with b now: it has to leave the upper one
sub at
{
	my ($table, $key) = @_;
	return "(SELECT node FROM mot_islands WHERE tab = '$table'::regclass AND low <= $key ORDER BY low DESC LIMIT 1)";
}
my ($lower, $upper, $other) = (at('a', q('\x80001388')), at('a', q('\x80003a98')), at('b', q('a long beginning, always the same 15000'::bytea)));
run_until($lower_a, $upper_a, "SELECT $lower <> $upper AND $other = $lower", 'a changed load changes it again');
is(query('SELECT bool_or(done) FROM mot_island_decisions'), 't', 'the decision was carried out');

# and nothing is lost by it
is(query('SELECT count(*), count(DISTINCT id), sum(id) FROM a'), '20000|20000|200010000', 'all rows of a');
is(query('SELECT count(*), count(DISTINCT k) FROM b'), '20000|20000', 'all rows of b');
is(query("SELECT sum(problems) FROM mot_verify('a')") . query("SELECT sum(problems) FROM mot_verify('b')"), '00', 'verified');

# sessions of one transaction are counted, too
my $short = $node->basedir . '/short';
PostgreSQL::Test::Utils::append_to_file($short, "\\set i random(10000, 20000)\n" .
	"UPDATE b SET v = v + 1 WHERE k = 'a long beginning, always the same ' || :i;\n");
my $runs = IPC::Run::start([ 'pgbench', '-n', '-C', '-c', 2, '-T', 120, '-f', $short, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'>', \my $out, '2>', \my $err);
ok($node->poll_query_until('postgres', "SELECT sum(heat) > 0.99 FROM mot_islands WHERE tab = 'b'::regclass"), 'short sessions are counted');
$runs->kill_kill;

# ranges of one key mean nothing for another one
query('ALTER TABLE a DROP CONSTRAINT a_pkey, ADD PRIMARY KEY (v, id)');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 AND max(node) IS NULL AND max(wanted_node) IS NULL FROM mot_islands WHERE tab = 'a'::regclass"),
	'a key of other columns begins anew');

query('ALTER SYSTEM SET mot.islands = off');
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM mot_islands'), 'off again');
$node->stop;
done_testing();
