# Pipelines that are read ahead (src/pipeline): which statements run there, and what others see of them;
# waits for rows, cancelling, timeouts, sessions that are ended, settings that change, in the middle of
# one.  (That answers are the same, byte for byte: test/differential/pipelines.py.)

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Protocol;
use Served;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('pipeline');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
plan_cache_mode = force_generic_plan
mot.jit_prepare_above_executions = 0
jit = off
log_statement = none
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL, w text) USING mot;
	INSERT INTO t SELECT i, 0, 'row ' || i FROM generate_series(1, 100) i;
	CREATE TABLE h (id int PRIMARY KEY, v int NOT NULL, w text);
	INSERT INTO h SELECT * FROM t;
	CREATE TABLE l (id int PRIMARY KEY, v int) USING mot;
	INSERT INTO l SELECT i, 0 FROM generate_series(1, 100) i;
	CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER x BEFORE UPDATE ON l FOR EACH ROW EXECUTE FUNCTION nothing();
	CREATE FOREIGN TABLE f (id int PRIMARY KEY, v int NOT NULL, w text) SERVER mot_server;
	INSERT INTO f SELECT * FROM t;
});

my %statements = (
	get => 'SELECT id, w FROM t WHERE id = $1::int4',
	getf => 'SELECT id, w FROM f WHERE id = $1::int4',
	geth => 'SELECT id, w FROM h WHERE id = $1::int4',
	lock => 'SELECT id FROM t WHERE id = $1::int4 FOR UPDATE',
	add => 'UPDATE t SET v = v + 1 WHERE id = $1::int4',
	addf => 'UPDATE f SET v = v + 1 WHERE id = $1::int4',
	addl => 'UPDATE l SET v = v + 1 WHERE id = $1::int4',
	back => 'UPDATE t SET v = v + 1 WHERE id = $1::int4 RETURNING v',
	del => 'DELETE FROM t WHERE id = $1::int4 + 1000',
	put => "INSERT INTO t VALUES (\$1::int4 + 200, 1, 'new')",
	ups => "INSERT INTO t VALUES (\$1::int4, 1, 'new') ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v",
	upsf => "INSERT INTO f VALUES (\$1::int4, 1, 'new') ON CONFLICT (id) DO UPDATE SET v = f.v + excluded.v",
	sum => 'SELECT sum(v), count(*) FROM t WHERE id < $1::int4');

sub connect_ready
{
	my $c = connect_raw($node, @_);
	parse($c, $_, $statements{$_}) for sort keys %statements;
	for my $name (sort keys %statements)
	{
		# from its second execution on it is known
		bind_portal($c, '', 'get', 0, 1), execute($c, ''), bind_portal($c, '', $name, 0, 50 + $_), execute($c, '') for 1 .. 4;
		sync_it($c);
	}
	unlike($c->{transcript}, qr/^E/m, 'a client is ready');
	simple($c, 'DELETE FROM t WHERE id > 200');
	$c->{transcript} = '';
	return $c;
}

# ------------------------------------------------------------- what runs there

my $c = connect_ready();
sub runs
{
	my ($c, $name) = @_;
	simple($c, "SET mot.fault = 'pipeline-run:error'");
	$c->{transcript} = '';
	bind_portal($c, '', 'get', 0, 1); execute($c, '');
	bind_portal($c, '', $name, 0, 2); execute($c, '');
	sync_it($c);
	my $transcript = $c->{transcript};
	simple($c, 'RESET mot.fault');
	$c->{transcript} = '';
	return $transcript =~ /^2\nD 1 row 1\nC SELECT 1\n2\nE .*pipeline-run.*\nZ I$/;
}
ok(runs($c, $_), "$_ runs") for qw(get getf lock add addf back del put ups upsf sum);
ok(!runs($c, $_), "$_ does not") for qw(geth addl);
for my $setting ("SET mot.pipeline = off", "SET log_statement = 'all'", "SET log_min_duration_statement = 0",
	"SET default_transaction_isolation = 'repeatable read'", 'SET mot.jit = off', 'SET log_parameter_max_length_on_error = -1')
{
	simple($c, $setting);
	ok(!runs($c, 'add'), "with $setting nothing does");
	simple($c, 'RESET ALL');
}
$node->safe_psql('postgres', 'CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION nothing()');
ok(!runs($c, 'add'), 'a trigger has come');
$node->safe_psql('postgres', 'DROP TRIGGER x ON t');
bind_portal($c, '', 'get', 0, 1), execute($c, ''), bind_portal($c, '', 'add', 0, 50), execute($c, '') for 1 .. 3;
sync_it($c);
ok(runs($c, 'add'), 'and gone');

# ------------------------------------------------------------- waits, and ends of waits

sub begin_pipeline
{
	my ($c) = @_;
	$c->{transcript} = '';
	bind_portal($c, '', 'get', 0, 1); execute($c, '');
	bind_portal($c, '', 'add', 0, $_), execute($c, '') for 5, 6, 7;
	bind_portal($c, '', 'ups', 0, 8); execute($c, '');
	message($c, 'S', '');
	flush_out($c);
	return;
}
my $before = "2\nD 1 row 1\nC SELECT 1\n2\nC UPDATE 1\n2\nC UPDATE 1\n2\n";
my $waits = "SELECT wait_event_type = 'Lock' AND query = '$statements{add}' AND state = 'active' AND query_start > xact_start FROM pg_stat_activity WHERE pid = ";
my $values = 'SELECT string_agg(v::text, \' \' ORDER BY id) FROM t WHERE id BETWEEN 5 AND 8';
$node->safe_psql('postgres', 'UPDATE t SET v = 0');
my $holder = $node->background_psql('postgres');
for my $end ('cancel', 'timeout', 'lock timeout', 'goes on', 'terminate')
{
	my $was = $node->safe_psql('postgres', $values);
	$holder->query_safe('BEGIN');
	$holder->query_safe('SELECT FROM t WHERE id = 7 FOR UPDATE');
	simple($c, "SET statement_timeout = '1s'") if $end eq 'timeout';
	simple($c, "SET lock_timeout = '1s'") if $end eq 'lock timeout';
	begin_pipeline($c);
	ok($node->poll_query_until('postgres', $waits . $c->{pid}), "$end: it waits, and is seen to");
	cancel($c) if $end eq 'cancel';
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($c->{pid}, 60000)") if $end eq 'terminate';
	$holder->query_safe('COMMIT') if $end eq 'goes on';
	eval { until_ready($c) };
	$holder->query_safe('COMMIT') if $end ne 'goes on';
	my %errors = (cancel => '57014 canceling statement due to user request', timeout => '57014 canceling statement due to statement timeout',
		'lock timeout' => '55P03 canceling statement due to lock timeout');
	if ($end eq 'goes on')
	{
		is($c->{transcript}, $before . "C UPDATE 1\n2\nC INSERT 0 1\nZ I\n", "$end: it does");
		is($node->safe_psql('postgres', $values), '1 1 1 1', "$end: all of it");
	}
	elsif ($end eq 'terminate')
	{
		like($c->{transcript}, qr/E 57P01 terminating connection due to administrator command\n$/, "$end: it does");
	}
	else
	{
		is($c->{transcript}, $before . "E $errors{$end}\nZ I\n", "$end: what came before is answered, then the error");
		is($node->safe_psql('postgres', $values), $was, "$end: and undone");
	}
	simple($c, 'RESET ALL') if $end ne 'terminate';
}
$holder->quit;

# ------------------------------------------------- messages that come in pieces

$c = connect_ready();
for my $cut (1, 3, 5, 12, 20)
{
	bind_portal($c, '', 'get', 0, 1); execute($c, '');
	my $whole = length $c->{out};
	bind_portal($c, '', 'get', 0, 2); execute($c, '');
	message($c, 'S', '');
	my $out = $c->{out};
	$c->{out} = substr($out, 0, $whole + $cut);
	flush_out($c);
	usleep(100_000);
	$c->{out} = substr($out, $whole + $cut);
	flush_out($c);
	until_ready($c);
	is($c->{transcript}, "2\nD 1 row 1\nC SELECT 1\n2\nD 2 row 2\nC SELECT 1\nZ I\n", "$cut bytes more than a message, then the rest");
	$c->{transcript} = '';
}
bind_portal($c, '', 'get', 0, 1); execute($c, '');
message($c, 'B', '');
$c->{out} = substr($c->{out}, 0, -2);
flush_out($c);
usleep(100_000);
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($c->{pid}, 60000)"), 't', 'who has sent half a message is ended as any other');
$c->{socket}->close;

# ------------------------------------------------------- settings that change

$c = connect_ready();
my $offset = -s $node->logfile;
ok(runs($c, 'get'), 'it runs');
$node->append_conf('postgresql.conf', "log_statement = 'all'");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT setting = 'all' FROM pg_settings WHERE name = 'log_statement'"), 'log_statement is set');
simple($c, 'SELECT 1');
bind_portal($c, '', 'get', 0, $_), execute($c, '') for 1, 2, 3;
sync_it($c);
my $logged = () = slurp_file($node->logfile, $offset) =~ /execute get: /g;
is($logged, 3, '... and each of a pipeline is logged');
$node->append_conf('postgresql.conf', "log_statement = 'none'");
$node->reload;
$c->{socket}->close;

# -------------------------------------------------------- what others could see

$c = connect_ready();
my $counted = "SELECT 'counted ' || generic_plans + custom_plans FROM pg_prepared_statements WHERE name = 'back'";
simple($c, $counted);
my ($count) = $c->{transcript} =~ /^D counted (\d+)$/m;
simple($c, 'BEGIN');
for (1 .. 4)
{
	bind_portal($c, '', 'get', 0, 1); execute($c, '');
	bind_portal($c, '', 'back', 0, $_), execute($c, '') for 1 .. 5;
	sync_it($c);
}
simple($c, 'COMMIT');
$c->{transcript} = '';
simple($c, $counted);
like($c->{transcript}, qr/^D counted @{[$count + 20]}$/m, 'each execution is counted once');

$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION opens(v int) RETURNS bool LANGUAGE plpgsql AS $$
	DECLARE c refcursor := 'opened';
	BEGIN
		IF v = 99 THEN OPEN c FOR SELECT 'in it'; END IF;
		RETURN true;
	END $$;
	CREATE DOMAIN opening AS int CHECK (opens(VALUE));
});
parse($c, 'opens', 'SELECT id FROM t WHERE id = $1::opening');
for my $n (1, 1, 1, 99)
{
	$c->{transcript} = '';
	bind_portal($c, '', 'get', 0, 1), execute($c, '') for 1 .. 3;
	bind_portal($c, '', 'opens', 0, $n); execute($c, '');
	bind_portal($c, '', 'opens', 0, $n == 99 ? 98 : $n); execute($c, $n == 99 ? 'opened' : '');
	sync_it($c);
}
like($c->{transcript}, qr/^D 99\nC SELECT 1\n2\nD in it\nC SELECT 1\nZ I$/m, 'what the input function of a type has opened is there');
$c->{socket}->close;

$c = connect_ready();
parse($c, 'divides', 'UPDATE t SET v = 1 WHERE id BETWEEN 20 AND 29 RETURNING id, 1 / ($1::int4 - id)');
for my $n (50, 50, 50, 25, 50)
{
	simple($c, 'BEGIN');
	$c->{transcript} = '';
	bind_portal($c, '', 'get', 0, 1); execute($c, '');
	bind_portal($c, '', 'divides', 0, $n); execute($c, '');
	sync_it($c);
	my $rows = join('', map { "D $_ 0\n" } 20 .. 29);
	is($c->{transcript}, "2\nD 1 row 1\nC SELECT 1\n2\n" .
		($n == 25 ? "E 22012 division by zero\nZ E\n" : "${rows}C UPDATE 10\nZ T\n"),
		$n == 25 ? 'an error takes back what RETURNING has made' : 'RETURNING has all rows');
	simple($c, 'ROLLBACK');
}
parse($c, 'long', "UPDATE t SET v = 1 WHERE id <= 100 RETURNING id, repeat('x', \$1::int4)");
for my $n (1, 1, 1, 30000)
{
	$c->{transcript} = '';
	bind_portal($c, '', 'get', 0, 1); execute($c, '');
	bind_portal($c, '', 'long', 0, $n); execute($c, '');
	sync_it($c);
}
is(scalar(() = $c->{transcript} =~ /^D \d+ x{30000}$/mg), 100, '... also if these are long');
$c->{socket}->close;

# ----------------------------------------------------------------- many of it

$c = connect_ready();
$c->{transcript} = '';
for my $round (1 .. 20)
{
	for (1 .. 500)
	{
		bind_portal($c, '', 'add', 0, $_ % 100 + 1); execute($c, '');
	}
	message($c, 'H', '');
	flush_out($c);
	one_message($c) for 1 .. 1000;
}
sync_it($c);
is(scalar(() = $c->{transcript} =~ /^C UPDATE 1$/mg), 10000, '10,000 in one transaction');
is($node->safe_psql('postgres', 'SELECT count(DISTINCT v) <= 4 FROM t WHERE id BETWEEN 60 AND 100'), 't', '... have been done');
simple($c, 'SELECT sum(total_bytes) < 20e6 FROM pg_backend_memory_contexts');
like($c->{transcript}, qr/^D t$/m, '... and keep no memory');
$c->{socket}->close;

# ------------------------------------------------------- the server is killed

# what ReadyForQuery has said is there, of the pipeline that is under way nothing
$node->safe_psql('postgres', 'UPDATE t SET v = 0');
$c = connect_ready();
for my $round (1 .. 3)
{
	bind_portal($c, '', 'add', 0, $_), execute($c, '') for 31 .. 35;
	bind_portal($c, '', 'ups', 0, 36); execute($c, '');
	sync_it($c);
}
simple($c, "SET mot.fault = 'pipeline-run:killall'");
bind_portal($c, '', 'get', 0, 1); execute($c, '');
bind_portal($c, '', 'add', 0, $_), execute($c, '') for 31 .. 36;
message($c, 'S', '');
flush_out($c);
ok($node->wait_for_log(qr/fault point "pipeline-run" reached: killall/), 'killed in the middle of a pipeline');
$c->{socket}->close;
$node->stop('immediate', fail_ok => 1);
gone($node) or die 'processes do not die';
$node->start;
is($node->safe_psql('postgres', "SELECT string_agg(v::text, ' ' ORDER BY id) FROM t WHERE id BETWEEN 31 AND 36"), '3 3 3 3 3 3',
	'what had been acknowledged is there, and nothing else');

$node->stop;
done_testing();
