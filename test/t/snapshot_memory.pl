# What snapshots keep in memory, and mot.snapshot_memory: it ends the report rather than the
# writers.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = PostgreSQL::Test::Cluster->new('snapshot_memory');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
mot.snapshot_memory = '3MB'
mot.analytics_hint = off
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
} . ($ENV{MOT_FAULT_POINTS} ? "mot.fault = 'held-looked:log'\n" : ''));
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE ROLE report LOGIN;
	CREATE ROLE patient LOGIN;
	ALTER ROLE patient SET mot.snapshot_memory = -1;
	CREATE ROLE dump LOGIN SUPERUSER;
	CREATE ROLE strict LOGIN SUPERUSER;
	ALTER ROLE strict SET mot.snapshot_memory = '3MB';
	CREATE FUNCTION slow(int) RETURNS int PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN $1; END $$;
	CREATE TABLE t (id int PRIMARY KEY, v int, s text) USING mot;
	INSERT INTO t SELECT i, 0, repeat('x', 1000) FROM generate_series(1, 1000) i;
	CREATE FOREIGN TABLE f (id int PRIMARY KEY, v int, s text) SERVER mot_server;
	INSERT INTO f SELECT * FROM t;
	CREATE TABLE notes (n int) USING mot;
	CREATE TABLE others (n int);
	GRANT ALL ON t, f, notes, others TO report, patient;
	ANALYZE});
my $watcher = $node->background_psql('postgres');

# a megabyte for each time
sub churn
{
	my ($times) = @_;
	$watcher->query_safe(join(';', ('UPDATE t SET v = v + 1') x $times));
}

sub wait_until
{
	my ($query, $what) = @_;
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;
	my $answer;
	do { sleep 0.05; $answer = $watcher->query("SELECT $query") } while ($answer ne 't' && time < $end);
	is($answer, 't', $what) or diag($watcher->query('TABLE mot_stat_snapshots'));
}

# the maintenance worker has looked what there is by now (the first look may have begun before)
sub noted
{
	return sleep 1.2 unless $ENV{MOT_FAULT_POINTS};
	$node->wait_for_log(qr/(?:"held-looked" reached.*){2}/s, -s $node->logfile);
	return;
}

sub begin
{
	my ($user, $sql) = @_;
	my $s = $node->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', $user ]);
	$s->{pid} = $s->query('SELECT pg_backend_pid()');
	$s->query($sql);
	return $s;
}

# (what is superseded in the second before that is not charged)
sub seen
{
	my ($s) = @_;
	wait_until("count(*) > 0 FROM mot_stat_snapshots WHERE pid = $s->{pid} AND age > '0'", '... its snapshot is seen');
}

sub is_ended
{
	my ($s, $sql, $what) = @_;
	$s->{stderr} = '';
	$s->query("\\set VERBOSITY verbose\n$sql");
	like($s->{stderr}, qr/40001: could not serialize access: too many superseded rows.*HINT:  Run it again/s, "$what: ended");
	wait_until("count(*) = 0 FROM mot_stat_snapshots WHERE pid = $s->{pid}", '... and has let go of its snapshot');
	wait_until('retired_objects < 1000 FROM mot_stat_memory', '... of all that was kept for it');
	$s->query('ROLLBACK');
	is($s->query('SELECT count(*) FROM t'), '1000', '... and can go on');
	$s->quit;
}

# ------------------------------------------------------------ what it costs
my $s = begin('report', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM t');
seen($s);
is($watcher->query("SELECT kept_bytes FROM mot_stat_snapshots WHERE pid = $s->{pid}"), '0', 'nothing is kept');
churn(2);
my $kept = $watcher->query("SELECT kept_bytes FROM mot_stat_snapshots WHERE pid = $s->{pid}");
cmp_ok($kept, '>', 2000000, "after two updates of a megabyte $kept bytes are kept");
cmp_ok($kept, '<', 2700000, '... about');
my $later = begin('report', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM t');
seen($later);
is($watcher->query("SELECT kept_bytes FROM mot_stat_snapshots WHERE pid = $later->{pid}"), '0', 'nothing for a later one');
noted();
is($s->query('SELECT sum(v) FROM t'), '0', 'less than the limit: it goes on');

# ---------------------------------------------------------- who is ended
churn(2);
wait_until("kept_bytes > 4000000 FROM mot_stat_snapshots WHERE pid = $s->{pid}", 'more than the limit');
noted();
$s->{stderr} = '';
$s->query('SELECT 1 FROM t WHERE id = 1');
like($s->{stderr}, qr/too many superseded rows/, 'the older one is ended at its next statement');
is($later->query('SELECT sum(v) FROM t'), '2000', '... the later one is not');
$s->query('ROLLBACK');
$later->query('COMMIT');
$_->quit for $s, $later;

for my $case ([ 'REPEATABLE READ, a statement of few rows', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM t', 'SELECT 1 FROM others' ],
	[ 'SERIALIZABLE', 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(v) FROM t', 'SELECT sum(v) FROM t' ],
	[ 'a prepared statement', 'PREPARE p AS SELECT v FROM f WHERE id = 7; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; BEGIN ISOLATION LEVEL REPEATABLE READ; EXECUTE p', 'EXECUTE p' ],
	[ 'a cursor', 'BEGIN; DECLARE c CURSOR FOR SELECT v FROM t; FETCH 10 FROM c', 'FETCH c' ],
	[ 'a cursor on a foreign table', 'BEGIN; DECLARE c CURSOR FOR SELECT v FROM f; FETCH 10 FROM c', 'FETCH c' ],
	[ 'another statement beside a cursor', 'BEGIN; DECLARE c CURSOR FOR SELECT v FROM t; FETCH 10 FROM c', 'SELECT 1 FROM t WHERE id = 1' ])
{
	my ($what, $begin, $next) = @$case;
	$s = begin('report', $begin);
	seen($s);
	churn(5);
	wait_until("kept_bytes > 3500000 FROM mot_stat_snapshots WHERE pid = $s->{pid}", '... and keeps much');
	noted();
	is_ended($s, $next, $what);
}

# in the middle of a statement; and of one with workers, in which the leader takes part or not
for my $case ([ 'a long statement', 'SET max_parallel_workers_per_gather = 0' ], [ 'an index scan', 'SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off; SET enable_bitmapscan = off' ],
	[ 'workers', 'SET max_parallel_workers_per_gather = 2' ], [ 'workers alone', 'SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off' ])
{
	my ($what, $set) = @$case;
	# (an index scan looks each thousand rows)
	my $sql = $what =~ /index/ ? 'SELECT count(*) FROM t a WHERE id > 0 AND v + id > (SELECT -count(*) FROM t b WHERE b.id <= a.id % 200 AND slow(b.v % 1) >= 0)' : 'SELECT count(*) FROM t WHERE slow(v) >= 0';
	$s = begin('report', $set);
	$s->{stderr} = '';
	$s->query_until(qr/begun/, "\\set VERBOSITY verbose\n\\echo begun\n$sql;\n\\echo over\n");
	wait_until("count(*) > 0 FROM mot_stat_snapshots WHERE pid = $s->{pid} AND age > '0'", "$what: seen");
	churn(5);
	$s->query_until(qr/over/, '');
	like($s->{stderr}, qr/40001: could not serialize access: too many superseded rows/, '... and ended');
	$s->quit;
}
wait_until('retired_objects < 1000 FROM mot_stat_memory', 'nothing is left');

# ------------------------------------------------------------- who is not
for my $case ([ 'a role without the limit', 'patient', 'BEGIN ISOLATION LEVEL REPEATABLE READ' ], [ 'a superuser', 'dump', 'BEGIN ISOLATION LEVEL REPEATABLE READ' ],
	[ 'who has changed something', 'report', 'BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO notes VALUES (1)' ],
	[ '... or a heap table', 'report', 'BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO others VALUES (1)' ],
	[ '... or locked a row', 'report', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT id FROM f WHERE id = 1 FOR UPDATE' ])
{
	my ($what, $user, $begin) = @$case;
	$s = begin($user, $begin);
	my $sum = $s->query('SELECT sum(v) FROM t');
	seen($s);
	churn(5);
	wait_until("kept_bytes > 3500000 FROM mot_stat_snapshots WHERE pid = $s->{pid}", "$what keeps much");
	noted();
	is($s->query('SELECT sum(v) FROM t'), $sum, '... and sees what it saw');
	is($s->query("SELECT sum(v) FROM t; COMMIT"), $sum, '... until it ends');
	$s->quit;
}
$s = begin('strict', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM t');
seen($s);
churn(5);
noted();
is_ended($s, 'SELECT sum(v) FROM t', 'a superuser for whom it is set');
my ($ret, $out, $err) = $node->psql('postgres', 'SET mot.snapshot_memory = -1', extra_params => [ '-U', 'report' ]);
like($err, qr/permission denied/, 'it is for superusers to set');

is($watcher->query("SELECT problems FROM mot_verify('t') LIMIT 1"), '0', 'nothing is amiss');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'in peace');
$watcher->quit;
$node->stop;
done_testing();
