# SERIALIZABLE over heap and memory-optimized tables: what specs/mixed-skew.spec
# cannot show, because it takes many transactions, or a server that waits.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('serializable');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
max_connections = 20
wal_level = replica
max_wal_senders = 2
max_worker_processes = 2
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE cold (id int PRIMARY KEY, v int);
	CREATE FOREIGN TABLE hot (id int PRIMARY KEY, v int) SERVER mot_server;
	INSERT INTO cold SELECT i, 20 FROM generate_series(1, 20) i;
	INSERT INTO hot SELECT i, 20 FROM generate_series(1, 20) i;
	CREATE TABLE other (id int PRIMARY KEY, v int);
	INSERT INTO other VALUES (1, 0);
});

sub session
{
	my ($level) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("BEGIN ISOLATION LEVEL $level") if $level;
	return $session;
}

sub ends_with
{
	my ($session, $command) = @_;
	my (undef, $stderr);
	$session->{stderr} = '';
	$session->query($command);
	$stderr = $session->{stderr};
	$session->{stderr} = '';
	return $stderr =~ /ERROR:  (.*)/ ? $1 : '';
}

# without waiting for the answer
sub start
{
	my ($session, $command) = @_;
	$session->{stdin} .= "$command;\n";
	$session->{run}->pump_nb();
}

# ------------------------------------------------------------ write skew

# Who finds that both halves together have something takes it from one of
# them.  Serially no sum falls below zero.
my $take = q{
\set id random(1, 20)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT (SELECT v FROM cold WHERE id = :id) + (SELECT v FROM hot WHERE id = :id) >= 1 AS some \gset
\if :some
UPDATE %s SET v = v - 1 WHERE id = :id;
\endif
COMMIT;
};
# and an auditor, who writes down what he saw
$node->safe_psql('postgres', 'CREATE TABLE seen (id int, cold int, hot int)');
my $audit = q{
\set id random(1, 20)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT v AS h FROM cold WHERE id = :id \gset
SELECT v AS m FROM hot WHERE id = :id \gset
COMMIT;
INSERT INTO seen VALUES (:id, :h, :m);
};
$node->pgbench(
	'--no-vacuum --client=8 --jobs=2 --transactions=400 --max-tries=0 --latency-limit=100000 --protocol=prepared',
	0,
	[qr{number of failed transactions: 0 }],
	[qr{^$}],
	'taking from either half',
	{
		'041_from_heap@4' => sprintf($take, 'cold'),
		'042_from_memory@4' => sprintf($take, 'hot'),
		'043_audit@1' => $audit
	});
is($node->safe_psql('postgres', 'SELECT count(*), min(c.v + h.v) FROM cold c JOIN hot h USING (id) WHERE c.v + h.v <> 0'),
	'0|', 'all was taken, and nothing twice');

# What the auditor saw of one row falls on both sides: of two pictures one is
# older in both halves.
is( $node->safe_psql(
		'postgres',
		'SELECT count(*) FROM seen a JOIN seen b USING (id) WHERE a.cold < b.cold AND a.hot > b.hot'),
	'0',
	'all pictures fit one order');

# ------------------------------------------------- summarised transactions

# The server forgets details of committed transactions when there are many.
my $reader = session('SERIALIZABLE');
$reader->query_safe('SELECT v FROM cold WHERE id = 1; SELECT v FROM hot WHERE id = 1');
my $writer = session('SERIALIZABLE');
$writer->query_safe('UPDATE cold SET v = 1 WHERE id = 1; UPDATE hot SET v = 1 WHERE id = 2; COMMIT');
$node->pgbench(
	'--no-vacuum --client=1 --transactions=600',
	0,
	[qr{number of failed transactions: 0 }],
	[qr{^$}],
	'many serializable transactions',
	{ '044_many' => "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE other SET v = v + 1 WHERE id = 1; COMMIT;" });
$reader->query_safe('UPDATE hot SET v = 2 WHERE id = 3');
like(ends_with($reader, 'COMMIT;'), qr/could not serialize access/, 'a missed commit that the server has summarised');
$reader->quit;
$writer->quit;

# ------------------------------------------------------------- DEFERRABLE

# A deferrable transaction waits for its turn, and then never fails.
$node->safe_psql('postgres', 'UPDATE cold SET v = 500; UPDATE hot SET v = 500');
$node->pgbench(
	'--no-vacuum --client=5 --jobs=2 --time=3 --max-tries=0 --latency-limit=100000',
	0,
	[qr{number of failed transactions: 0 }],
	[qr{^$}],
	'beside deferrable readers',
	{
		'045_from_heap@4' => sprintf($take, 'cold'),
		'046_from_memory@4' => sprintf($take, 'hot'),
		'047_deferrable@2' => q{
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;
SELECT sum(v) AS h FROM cold \gset
SELECT sum(v) AS m FROM hot \gset
COMMIT;
}
	});
unlike(slurp_file($node->logfile), qr/snapshots of heap and memory-optimized tables were taken/,
	'no deferrable transaction was refused');

# ----------------------------------------------------- who only reads

# While both kinds of tables change under them, and after retries of nobody's:
# declared READ ONLY or not, at every level.
my ($out, $err) = ('', '');
my $load = $node->basedir . '/load.sql';
append_to_file($load, sprintf($take, 'cold') . sprintf($take, 'hot') . q{
BEGIN;
UPDATE cold SET v = v + 1 WHERE id = :id;
UPDATE hot SET v = v + 1 WHERE id = :id;
COMMIT;
DELETE FROM hot WHERE id = :id + 100;
INSERT INTO hot VALUES (:id + 100, 0) ON CONFLICT DO NOTHING;
});
my $writers = IPC::Run::start(
	[ 'pgbench', '-n', '-c', '4', '-T', '5', '--max-tries=0', '-f', $load, $node->connstr('postgres') ],
	'>', \$out, '2>', \$err);
my $only_reads = q{
SELECT sum(v) FROM hot;
SELECT v FROM hot WHERE id BETWEEN 1 AND 200;
%s
COMMIT;
};
my $too = 'SELECT sum(v) FROM cold; SELECT h.v, c.v FROM hot h JOIN cold c USING (id);';
my %readers = (
	'051_read_committed' => 'BEGIN;' . sprintf($only_reads, $too),
	'052_repeatable_read' => 'BEGIN ISOLATION LEVEL REPEATABLE READ;' . sprintf($only_reads, $too),
	'053_repeatable_read_declared' => 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;' . sprintf($only_reads, $too),
	'054_serializable' => 'BEGIN ISOLATION LEVEL SERIALIZABLE;' . sprintf($only_reads, ''),
	'055_serializable_declared' => 'BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;' . sprintf($only_reads, ''),
	'056_serializable_mixed' => 'BEGIN ISOLATION LEVEL SERIALIZABLE;' . sprintf($only_reads, $too),
	'057_serializable_mixed_declared' => 'BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;' . sprintf($only_reads, $too));
$node->pgbench(
	'--no-vacuum --client=4 --jobs=2 --time=3',
	0,
	[qr{number of failed transactions: 0 }],
	[qr{^$}],
	'readers never fail',
	\%readers);
$writers->finish;
like($out, qr/number of failed transactions: 0 /, 'while others wrote') or diag($err);

# ---------------------------------------------------- an imported snapshot

# ... is one of heap tables: at SERIALIZABLE it cannot be used for both.
my $exporter = session('SERIALIZABLE');
my $snapshot = $exporter->query_safe('SELECT pg_export_snapshot()');
$node->safe_psql('postgres', 'UPDATE cold SET v = 1000 WHERE id = 1; UPDATE hot SET v = 1000 WHERE id = 1');
my $import = "BEGIN ISOLATION LEVEL SERIALIZABLE; SET TRANSACTION SNAPSHOT '$snapshot';";
my (undef, undef, $refused) = $node->psql('postgres',
	"$import SELECT v FROM cold WHERE id = 1; SELECT v FROM hot WHERE id = 1;");
like($refused, qr/could not serialize access due to a concurrent commit/, 'not with an imported snapshot');
is($node->safe_psql('postgres', "$import SELECT v FROM hot WHERE id = 1;"), 1000, 'but one kind of tables may be read');
is($node->safe_psql('postgres', 'SELECT conflict_snapshot FROM mot_stat_transactions'), 1, 'that was counted');
$exporter->quit;

# -------------------------------------- a commit that is on its way for long

# Its timestamp is drawn, and it waits for a standby that never comes.
$node->safe_psql('postgres', 'UPDATE cold SET v = 0 WHERE id <= 2; UPDATE hot SET v = 0 WHERE id <= 2');
$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
$node->reload;
$writer = session('SERIALIZABLE');
$writer->query_safe('UPDATE cold SET v = 7 WHERE id = 1; UPDATE hot SET v = 7 WHERE id = 1');
start($writer, 'COMMIT');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
  or die 'no commit waits';

$ENV{PGOPTIONS} = '-c statement_timeout=500';
my %waits = (
	'changing it' => 'UPDATE hot SET v = 8 WHERE id = 1',
	'a mixed commit behind it' => 'BEGIN ISOLATION LEVEL SERIALIZABLE; '
	  . 'UPDATE cold SET v = 3 WHERE id = 2; UPDATE hot SET v = 3 WHERE id = 2; COMMIT');
for my $what (sort keys %waits)
{
	my (undef, undef, $stderr) = $node->psql('postgres', $waits{$what});
	like($stderr, qr/canceling statement due to statement timeout/, "$what can be interrupted");
}
delete $ENV{PGOPTIONS};
for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	my $begin = "BEGIN ISOLATION LEVEL $level;";
	is($node->safe_psql('postgres', "$begin SELECT v FROM hot WHERE id = 1"), 0, "$level: who reads the row does not wait");
	is($node->safe_psql('postgres', "$begin SELECT sum(v) FROM hot WHERE id < 3"), 0, '... nor who scans');
	is($node->safe_psql('postgres', "$begin SELECT (SELECT v FROM cold WHERE id = 1) + (SELECT v FROM hot WHERE id = 1)"), 0, '... nor a statement over both');
}
is($node->safe_psql('postgres', 'SELECT v FROM cold WHERE id = 1'), 0, 'who reads heap tables does not wait');
is($node->safe_psql('postgres', 'SELECT v FROM hot WHERE id = 2'), 0, 'nor who reads other rows');

my $waiting = session('READ COMMITTED');
start($waiting, 'UPDATE hot SET v = v + 10 WHERE id = 1 RETURNING v');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
$node->reload;
ok($node->poll_query_until('postgres', 'SELECT v = 7 FROM hot WHERE id = 1'), 'the commit has arrived');
like($waiting->query('SELECT 1'), qr/17.*1/s, 'and who waited has read it');
$waiting->quit;
$writer->quit;

# One that changes heap tables only has its place by what it has read in the others:
# before who changes that.  Who sees the latter does not miss the former.
$node->safe_psql('postgres', 'UPDATE cold SET v = 0 WHERE id = 2; UPDATE hot SET v = 0 WHERE id = 2');
$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
$node->reload;
$writer = session('SERIALIZABLE');
is($writer->query_safe('SELECT v FROM hot WHERE id = 2'), 0, 'before who changes what it reads');
$writer->query_safe('UPDATE cold SET v = 1 WHERE id = 2');
start($writer, 'COMMIT');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
  or die 'no commit waits';
my $both = 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT cold.v, hot.v FROM cold, hot WHERE cold.id = 2 AND hot.id = 2; COMMIT';
is($node->safe_psql('postgres', $both), '0|0', 'its half is not seen');
$node->safe_psql('postgres', 'SET synchronous_commit = local; BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE hot SET v = 1 WHERE id = 2; COMMIT');
my $later = session();
start($later, $both);
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT cold.v%'"),
	'who would see what came after it waits for it');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
$node->reload;
$writer->query('SELECT 1');
like($later->query('SELECT 1'), qr/^1\|1$/m, '... and sees both');
$later->quit;
$writer->quit;

# Others come before who waits as long as nobody has committed behind it.
$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
$node->reload;
$writer = session('SERIALIZABLE');
$writer->query_safe('UPDATE hot SET v = 10 WHERE id = 1');
start($writer, 'COMMIT');
my $commit_waits = "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
$node->poll_query_until('postgres', $commit_waits) or die 'no commit waits';
my $behind = $node->background_psql('postgres', on_error_stop => 0);
$behind->query_safe('SET synchronous_commit = local; BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE hot SET v = 10 WHERE id = 2; COMMIT');
$behind->query_safe('BEGIN; SELECT * FROM hot WHERE id = 3 FOR UPDATE; COMMIT');
is($node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM hot WHERE id = 2'),
	'10', 'what was committed behind it is seen, also if that session has locked a row since');
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
$writer->query('SELECT 1');
$writer->{stderr} = '';

# Who waits may come before what was committed before it drew its number.
$writer->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM hot WHERE id = 1; UPDATE hot SET v = 20 WHERE id = 2');
$behind->query_safe('UPDATE hot SET v = 20 WHERE id = 1');
start($writer, 'COMMIT');
$node->poll_query_until('postgres', $commit_waits) or die 'no commit waits';
$later = session();
start($later, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT a.v, b.v FROM hot a, hot b WHERE a.id = 1 AND b.id = 2; COMMIT');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND query LIKE 'SELECT a.v%'"),
	'who sees what came after it waits for it');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
$node->reload;
$writer->query('SELECT 1');
like($later->query('SELECT 1'), qr/^20\|20$/m, '... and sees both');
$_->quit foreach $later, $behind, $writer;

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'in peace');

$node->stop;
done_testing();
