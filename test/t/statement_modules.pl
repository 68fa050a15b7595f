# Statements without the executor, and modules that watch executions: these
# see what they would see otherwise.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('modules');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
shared_preload_libraries = 'mot, pg_stat_statements, auto_explain'
mot.max_memory = '64MB'
mot.jit_prepare_above_executions = 0
mot.jit_above_executions = -1
plan_cache_mode = force_generic_plan
auto_explain.log_min_duration = -1
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE EXTENSION pg_stat_statements;
	CREATE FOREIGN TABLE t (id int PRIMARY KEY, v int) SERVER mot_server;
	INSERT INTO t SELECT i, i FROM generate_series(1, 10) i;
	SELECT pg_stat_statements_reset();
});

# the same statements with and without the executor
my $statements = q{
	PREPARE r(int) AS SELECT id AS watched_r FROM t WHERE id <= $1;
	PREPARE w(int) AS UPDATE t AS watched_w SET v = v + 1 WHERE id <= $1;
	EXECUTE r(1); EXECUTE r(2); EXECUTE r(3); EXECUTE r(4);
	EXECUTE w(1); EXECUTE w(2); EXECUTE w(3); EXECUTE w(4);
	DO $$ BEGIN FOR i IN 1..5 LOOP PERFORM v AS watched_p FROM t WHERE id <= i; END LOOP; END $$;
};
my $seen = q{
	SELECT string_agg(concat_ws(' ', substring(query FROM 'watched_.'), calls, rows, total_exec_time > 0), ', ' ORDER BY query)
	FROM pg_stat_statements WHERE query ~ 'watched_[rwp]' AND query !~ '^DO|pg_stat' AND calls > 1
};
my $nested = "SET pg_stat_statements.track = 'all';";
my $tiers = $node->safe_psql('postgres',
	"$nested $statements SELECT sum(executions), count(*) FROM mot_stat_jit WHERE query ~ 'watched_' AND tier = 1");
# (those of the DO block are gone)
like($tiers, qr/^8\|2$/m, 'the statements run without the executor');
my $without = $node->safe_psql('postgres', $seen);
$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
$node->safe_psql('postgres', "$nested SET mot.jit = off; $statements");
is($without, $node->safe_psql('postgres', $seen), 'pg_stat_statements counts calls and rows');
like($without, qr/watched_r 4 10 t/, 'as they were');

# a client's CALL, whose plan is kept
$node->safe_psql(
	'postgres', q{
	CREATE PROCEDURE counted_a(a int, b int[]) LANGUAGE plpgsql AS 'BEGIN END';
	CREATE PROCEDURE counted_b(a int, b int) LANGUAGE plpgsql AS 'BEGIN END';
});
my $calls = PostgreSQL::Test::Utils::tempdir() . '/calls.sql';
append_to_file($calls, "\\set a 5\nCALL counted_a(:a, ARRAY[:a, 2]);\nCALL counted_b(:a, 1 + :a);\n");

sub called
{
	my ($jit) = @_;
	local $ENV{PGOPTIONS} = "-c mot.jit=$jit -c plan_cache_mode=auto";
	$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
	$node->command_ok([ 'pgbench', '-n', '-M', 'prepared', '-t', '10', '-f', $calls, '-h', $node->host, '-p', $node->port, 'postgres' ],
		"procedures are called, mot.jit = $jit");
	return $node->safe_psql('postgres', "SELECT string_agg(calls::text, ' ' ORDER BY query) FROM pg_stat_statements WHERE query LIKE 'CALL counted%'");
}
is(called('off'), '10 10', 'pg_stat_statements counts each CALL');
is(called('on'), '10 10', '... evaluated, too');

# auto_explain shows the plan when it is asked to
my $offset = -s $node->logfile;
$node->safe_psql('postgres', "SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; $statements");
my $log = slurp_file($node->logfile, $offset);
my @plans = $log =~ /Index Cond: \(id <= \$1\)/g;
is(scalar(@plans), 8, 'auto_explain logs the plan of each execution');
like($log, qr/Foreign Scan on t .*actual time/, 'with what happened');
$offset = -s $node->logfile;
$node->safe_psql('postgres', "SET auto_explain.log_min_duration = 0; $statements");
@plans = slurp_file($node->logfile, $offset) =~ /Index Cond: \(id <= \$1\)/g;
is(scalar(@plans), 8, 'without ANALYZE, too');
my $explain = 'EXPLAIN (VERBOSE, COSTS OFF) SELECT v FROM t WHERE id = 1';
like($node->safe_psql('postgres', $explain), qr/without the executor/, 'EXPLAIN says that statements run without the executor');
like(
	$node->safe_psql('postgres', "SET auto_explain.log_min_duration = '1h'; $explain"),
	qr/by the executor \(a module may want to look at plans\)/,
	'or that they do not, while plans may be logged');

# the adviser asks it, too, for statements that name a table
$node->safe_psql('postgres', "CREATE TABLE advised (id int); INSERT INTO advised VALUES (1); CREATE TABLE advise (id int)");
is($node->safe_psql('postgres', "SELECT string_agg(concat_ws(' ', tab, statements_ms > 0), ', ' ORDER BY tab::text) FROM mot_advise() WHERE tab::text ~ '^advise'"),
	'advise t, advised t', 'mot_advise() sums the time of statements');

# what the server itself counts and logs: calls of functions, durations, parameters
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION counted(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
	CREATE VIEW counts AS SELECT calls FROM pg_stat_user_functions WHERE funcname = 'counted';
});
my @seen;
for my $settings ('SET mot.jit = off', 'SET mot.jit_above_executions = -1', 'SET mot.jit_above_executions = 0')
{
	$offset = -s $node->logfile;
	$node->safe_psql('postgres', 'SELECT pg_stat_reset()');
	my ($pid) = split /\n/, $node->safe_psql(
		'postgres', qq{
		SELECT pg_backend_pid();
		$settings;
		SET track_functions = 'pl';
		SET log_min_duration_statement = 0;
		PREPARE c(int) AS SELECT counted(v) FROM t WHERE id <= \$1 AND counted(id) > 1;
		EXECUTE c(3); EXECUTE c(5); EXECUTE c(0);
		EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE c(4);
	});
	# (a session that goes on for a second tells of some of its calls before it ends)
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
	$node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM counts');
	my @logged = slurp_file($node->logfile, $offset) =~ /duration: [0-9.]+ ms/g;
	push @seen, $node->safe_psql('postgres', 'TABLE counts') . ' calls, ' . scalar(@logged) . ' durations';
}
is($seen[0], '21 calls, 6 durations', 'track_functions counts, durations are logged');
is($seen[1], $seen[0], 'without the executor, too');
is($seen[2], $seen[0], 'and as machine code');

# behind a module whose hooks would miss it, nothing runs without the executor
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements, mot'");
$node->restart;
$tiers = $node->safe_psql('postgres', "$statements SELECT count(*) FROM mot_stat_jit");
like($tiers, qr/^0$/m, 'a module below is not bypassed');
like(
	$node->safe_psql('postgres', $explain),
	qr/by the executor \(a module with hooks in the executor is before mot in shared_preload_libraries\)/,
	'and EXPLAIN says so');
is(called('on'), '10 10', 'it counts each CALL');

$node->stop;
done_testing();
