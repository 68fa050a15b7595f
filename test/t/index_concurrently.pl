# CREATE INDEX and REINDEX CONCURRENTLY of ordinary tables: writers go on, and
# what comes of it has all rows, whatever they did; what fails is an index that is
# not valid, keeps nobody from anything, and is not there after a crash.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $faults = ($ENV{MOT_FAULT_POINTS} // '') =~ /\bindex-catch-up\b/;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "restart_after_crash = on\nshared_preload_libraries = 'mot'\nmot.max_memory = 256MB\nautovacuum = off\n");
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE t (id int PRIMARY KEY, v int, u text NOT NULL) USING mot;
	INSERT INTO t SELECT i, i % 1000, 'u' || i FROM generate_series(1, 20000) i});
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

my $go = $node->data_dir . '/mot.fault.go';
my ($rc, $out, $err, $log);

sub ask
{
	return $node->safe_psql('postgres', $_[0]);
}

# every index is sound, and finds what the table has
sub sound
{
	my ($server, $what) = @_;
	is($server->safe_psql('postgres', "SELECT string_agg(first_problem, ', ') FROM mot_verify('t')"), '', "$what: sound");
	for my $column (split ' ', $server->safe_psql('postgres', "SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass AND indisvalid AND NOT indisprimary)"))
	{
		is( $server->safe_psql('postgres', "SELECT md5(string_agg(t.id || ' ' || t.$column, ',' ORDER BY t.$column, t.id)) FROM (SELECT DISTINCT $column FROM t) d, LATERAL (SELECT * FROM t WHERE t.$column = d.$column OFFSET 0) t"),
			$server->safe_psql('postgres', "SET enable_indexscan = off; SELECT md5(string_agg(id || ' ' || $column, ',' ORDER BY $column, id)) FROM t"),
			"$what: all rows are found by $column");
	}
	return;
}

# --- a writer that takes its time is waited for, and nobody behind us
my $writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; UPDATE t SET v = -1 WHERE id = 1');
my $builder = $node->background_psql('postgres', on_error_stop => 0);
$builder->query_until(qr/begun/, "\\echo begun\nCREATE INDEX CONCURRENTLY t_v ON t (v);\n");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND wait_event_type = 'Lock'"), 'it waits for a writer');
# (who would wait would wait for the writer)
is(ask("SET statement_timeout = '60s'; " . join('; ', map { "UPDATE t SET v = v + 1 WHERE id = $_" } 2 .. 21) . '; SELECT count(*) FROM t WHERE id BETWEEN 2 AND 21 AND v = id + 1'), '20', 'others write meanwhile');
$writer->query_safe('UPDATE t SET v = 1001 WHERE id = 1; COMMIT');
$builder->query_safe('SELECT 1');
is(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_v'::regclass"), 't', 'it is built');
sound($node, 'after a writer');

SKIP:
{
	skip 'not a build with fault points', 1 unless $faults;

	# --- changes of all kinds while rows are gone through
	ask('DROP INDEX t_v');
	my $old = $node->background_psql('postgres');
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
	$builder->query_safe("SET mot.fault = 'index-catch-up:wait:5000'");
	$log = -s $node->logfile;
	$builder->query_until(qr/begun/, "\\echo begun\nCREATE INDEX CONCURRENTLY t_v ON t (v);\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_index WHERE indexrelid = 't_v'::regclass AND indisready AND NOT indisvalid"), 'rows are gone through');
	$node->wait_for_log(qr/fault point "index-catch-up" reached/, $log);
	ask("SET statement_timeout = '20s'; $_") for (
		# rows before and behind it: away, back, there and away again
		'UPDATE t SET v = v + 5000 WHERE id % 7 = 0',
		'UPDATE t SET v = v - 5000 WHERE id % 14 = 0',
		'UPDATE t SET v = v + 1 WHERE id % 11 = 0; UPDATE t SET v = v - 1 WHERE id % 22 = 0',
		'BEGIN; UPDATE t SET v = v + 1; SAVEPOINT a; UPDATE t SET v = 3; ROLLBACK TO a; UPDATE t SET v = v - 1 WHERE id % 3 = 0; ROLLBACK',
		'BEGIN; UPDATE t SET v = v + 1 WHERE id % 5 = 0; SAVEPOINT a; UPDATE t SET v = v - 1 WHERE id % 5 = 0; ROLLBACK TO a; COMMIT',
		'DELETE FROM t WHERE id % 13 = 0',
		"INSERT INTO t SELECT id, 17, 'n' || id FROM generate_series(13, 20000, 26) id",
		"INSERT INTO t SELECT id, id % 10, 'u' || id FROM generate_series(20001, 22000) id",
		'UPDATE t SET v = NULL WHERE id % 17 = 0',
		"BEGIN; INSERT INTO t SELECT id, 1, 'x' FROM generate_series(30001, 32000) id; ROLLBACK");
	my $undecided = $node->background_psql('postgres');
	$undecided->query_safe('BEGIN; UPDATE t SET v = 70000 WHERE id % 29 = 0; DELETE FROM t WHERE id % 31 = 0');
	append_to_file($go, '');
	$old->query_safe('COMMIT');
	$undecided->query_safe('ROLLBACK');
	$builder->query_safe('SET mot.fault = DEFAULT');
	unlink $go;
	is(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_v'::regclass"), 't', 'it is valid');
	sound($node, 'after writers');
	ask('UPDATE t SET v = v + 1; DELETE FROM t WHERE id % 3 = 1');
	sound($node, 'and used');
	$node->wait_for_catchup($standby);
	sound($standby, 'on a standby');

	# --- duplicates that come while rows are gone through
	$builder->query_safe("SET mot.fault = 'index-catch-up:wait:10'");
	$log = -s $node->logfile;
	$builder->query_until(qr/begun/, "\\echo begun\nCREATE UNIQUE INDEX CONCURRENTLY t_u ON t (u);\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_index WHERE indexrelid = to_regclass('t_u') AND indisready"), 'a unique index');
	$node->wait_for_log(qr/fault point "index-catch-up" reached/, $log);
	ask("UPDATE t SET u = (SELECT max(u) FROM t) WHERE id = (SELECT min(id) FROM t)");
	append_to_file($go, '');
	$builder->query('SET mot.fault = DEFAULT');
	unlink $go;
	is(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_u'::regclass"), 'f', 'is not valid if duplicates have come');

	# --- and who has one of them has begun to change it, and taken that back
	ask('DROP INDEX t_u');
	ask("UPDATE t SET u = 'first' WHERE id = (SELECT min(id) FROM t)");
	$builder->query("SET mot.fault = 'index-catch-up:wait'");
	$log = -s $node->logfile;
	$builder->query_until(qr/begun/, "\\echo begun\nCREATE UNIQUE INDEX CONCURRENTLY t_u ON t (u);\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_index WHERE indexrelid = to_regclass('t_u') AND indisready"), 'a unique index again');
	$node->wait_for_log(qr/fault point "index-catch-up" reached/, $log);
	ask("UPDATE t SET u = 'first' WHERE id = (SELECT max(id) FROM t)");
	ask("BEGIN; UPDATE t SET u = 'another' WHERE u = 'first' AND id < 1000; ROLLBACK");
	append_to_file($go, '');
	$builder->query('SET mot.fault = DEFAULT');
	unlink $go;
	is(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_u'::regclass"), 'f', 'is not valid either if one has been changed and put back');
	ask("UPDATE t SET u = 'last' WHERE id = (SELECT max(id) FROM t)");
	ask("UPDATE t SET u = u || '-' WHERE id % 3 = 0; DELETE FROM t WHERE id % 19 = 0; ALTER TABLE t ADD COLUMN x int; VACUUM FULL t");
	ask('CHECKPOINT; UPDATE t SET v = v');
	sound($node, 'with it');
	$node->stop('immediate');
	$node->start;
	is(ask('SELECT count(*) = count(x IS NULL) AND count(*) > 10000 FROM t'), 't', '... and a crash does no harm');
	sound($node, 'with it, after a crash');
	ask('DROP INDEX t_u; ALTER TABLE t DROP COLUMN x');
	sound($node, 'without it');
	$builder = $node->background_psql('postgres', on_error_stop => 0);

	# --- who has written already by which key rows are found logs that after another index has come
	ask(q{
		CREATE TABLE d (k int, v int NOT NULL) USING mot;
		CREATE UNIQUE INDEX d_k ON d (k);
		CREATE UNIQUE INDEX d_v ON d (v);
		ALTER TABLE d ALTER k SET NOT NULL;
		INSERT INTO d SELECT i, 100 + i FROM generate_series(1, 50) i});
	$writer = $node->background_psql('postgres');
	my @readers = map { $node->background_psql('postgres') } 1 .. 2;
	$readers[0]->query_safe('BEGIN; SELECT count(*) FROM d');
	$builder->query_until(qr/begun/, "\\echo begun\nREINDEX INDEX CONCURRENTLY d_k;\n");
	my $waits = "SELECT count(*) = 1 FROM pg_index, pg_locks WHERE indexrelid = to_regclass('d_k_ccold') AND NOT granted AND locktype = 'virtualxid'";
	ok($node->poll_query_until('postgres', "$waits AND indislive"), 'a reader of an index that is replaced is waited for');
	$readers[1]->query_safe('BEGIN; SELECT count(*) FROM d');
	$readers[0]->query_safe('COMMIT');
	ok($node->poll_query_until('postgres', "$waits AND NOT indislive"), '... and again');
	$writer->query_safe("BEGIN; UPDATE d SET v = v + 1000 WHERE k <= 5; DELETE FROM d WHERE k = 7; SET mot.fault = 'commit-ready:wait'");
	$log = -s $node->logfile;
	$writer->query_until(qr/begun/, "\\echo begun\nCOMMIT;\n");
	$node->wait_for_log(qr/fault point "commit-ready" reached/, $log);
	$readers[1]->query_safe('COMMIT');
	$builder->query_safe('SELECT 1');
	is(ask("SELECT to_regclass('d_k_ccold') IS NULL"), 't', 'it is replaced while somebody commits');
	append_to_file($go, '');
	$writer->query_safe('SELECT 1');
	unlink $go;
	$node->stop('immediate');
	$node->start;
	is(ask('SELECT count(*), sum(v) FROM d'), '49|11168', '... who is found in the log');
	$builder = $node->background_psql('postgres', on_error_stop => 0);

	# --- a deferrable key: who writes meanwhile has equal keys until he commits, and not longer
	my @twins = ('e', 'e_heap');
	ask("CREATE TABLE $_ (id int PRIMARY KEY DEFERRABLE, u int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO $_ SELECT i, i FROM generate_series(1, 3000) i") for @twins;
	ask('ALTER TABLE e SET ACCESS METHOD mot');

	# done to both with the same outcome; $_[0]: how often each key is refused
	my $both = sub {
		my ($sql) = @_;
		my @results = map { my $t = $_; my ($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = '20s'; " . ($sql =~ s/\be\b/$t/gr)); $err =~ s/e_heap/e/g; $err =~ s/\nDETAIL:.*//s; "$rc $err" } @twins;
		is($results[0], $results[1], "$sql: as on heap: " . substr($results[0], 0, 80));
		return;
	};
	my $same = sub {
		is(ask('SELECT md5(string_agg(e::text, $$,$$ ORDER BY id, u)) FROM e'), ask('SELECT md5(string_agg(e::text, $$,$$ ORDER BY id, u)) FROM e_heap e'), "$_[0]: the same rows");
		is(ask("SELECT string_agg(first_problem, ', ') FROM mot_verify('e')"), '', '... and sound indexes');
	};
	my @writes = (
		'UPDATE e SET u = u + 1, id = id + 1',
		'UPDATE e SET u = 77 WHERE id % 500 = 3',
		'BEGIN; UPDATE e SET u = 77 WHERE id % 500 = 3; UPDATE e SET u = -id WHERE id % 500 = 3; COMMIT',
		'BEGIN; UPDATE e SET u = u + 1; SAVEPOINT a; UPDATE e SET u = 1; ROLLBACK TO a; COMMIT',
		'BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO e SELECT id, 100000 + id FROM e WHERE id % 7 = 0; DELETE FROM e WHERE u < 100000 AND id % 7 = 0; COMMIT',
		'BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO e SELECT id, 200000 + id FROM e WHERE id % 5 = 0; COMMIT',
		'INSERT INTO e SELECT i, i FROM generate_series(300000, 300100) i',
		'DELETE FROM e WHERE id % 11 = 0');
	for my $key ('e_pkey', 'e_u_key')
	{
		$builder->query_safe("SET mot.fault = 'index-catch-up:wait:1000'");
		$log = -s $node->logfile;
		$builder->query_until(qr/begun/, "\\echo begun\nREINDEX INDEX CONCURRENTLY $key;\n");
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_index WHERE indexrelid = to_regclass('${key}_ccnew') AND indisready"), "$key is remade");
		$node->wait_for_log(qr/fault point "index-catch-up" reached/, $log);
		$both->($_) for @writes;
		append_to_file($go, '');
		$builder->query_safe('SET mot.fault = DEFAULT');
		unlink $go;
		is(ask("SELECT string_agg(indexrelid::regclass || ' ' || indisvalid || ' ' || indimmediate, ', ' ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = 'e'::regclass"),
			'e_pkey true false, e_u_key true false', '... and nothing is left');
		$same->('beside writers');
		$both->($_) for 'DELETE FROM e WHERE id >= 300000', @writes[ 0 .. 3, 5 ];
		$same->('afterwards');
	}
	# what is begun, and killed, is nobody's, and can be dropped
	$builder->query_safe("SET mot.fault = 'index-catch-up:kill:1000'");
	$builder->query_until(qr/begun/, "\\echo begun\nREINDEX INDEX CONCURRENTLY e_u_key;\n");
	ok($node->poll_query_until('postgres', "SELECT to_regclass('e_u_key_ccnew') IS NOT NULL AND count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'REINDEX%'"), 'the server is back');
	$builder = $node->background_psql('postgres', on_error_stop => 0);
	$both->($_) for @writes[ 0 .. 3 ];
	$same->('after a crash');
	ask('REINDEX INDEX e_u_key_ccnew');
	$same->('with what is left');
	# (before 15.19 it is no deferrable one)
	my $immediate = ask("SELECT indimmediate FROM pg_index WHERE indexrelid = 'e_u_key_ccnew'::regclass");
	($rc, $out, $err) = $node->psql('postgres', 'BEGIN; UPDATE e SET u = 5 WHERE id IN (SELECT id FROM e LIMIT 2)');
	is($err =~ /duplicate key value violates unique constraint "e_u_key_ccnew"/ ? 't' : 'f', $immediate, '... which is what the catalogue says');
	ask('DROP INDEX e_u_key_ccnew');
	$both->($_) for @writes[ 0 .. 3 ];
	$same->('without it');
	$node->wait_for_catchup($standby);
	is($standby->safe_psql('postgres', "SELECT string_agg(first_problem, ', ') FROM mot_verify('e')"), '', 'on a standby');

	# --- killed in the middle
	ask('DROP INDEX t_v');
	$builder->query_safe("SET mot.fault = 'index-catch-up:kill:3000'");
	$builder->query_until(qr/begun/, "\\echo begun\nCREATE INDEX CONCURRENTLY t_v ON t (v);\n");
	ok($node->poll_query_until('postgres', "SELECT to_regclass('t_v') IS NOT NULL AND count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%'"), 'the server is back');
	is(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_v'::regclass"), 'f', 'after a crash the index is invalid');
	ask("SET mot.jit = off; INSERT INTO t SELECT i, 1, 'c' || i FROM generate_series(70001, 70003) i ON CONFLICT DO NOTHING");
	ask('UPDATE t SET v = v + 1 WHERE id % 2 = 0; DELETE FROM t WHERE id % 5 = 0');
	ask('REINDEX INDEX t_v');
	is(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_v'::regclass"), 't', '... until it is built anew');
	sound($node, 'after a crash');
}

# --- duplicates: it fails, and can be dropped, or built when they are gone
ask("UPDATE t SET u = 'twice' WHERE id IN (SELECT id FROM t ORDER BY id LIMIT 2)");
($rc, $out, $err) = $node->psql('postgres', 'CREATE UNIQUE INDEX CONCURRENTLY t_u ON t (u)');
like($err, qr/could not create unique index "t_u".*Key \(u\)=\(twice\) is duplicated/s, 'duplicates are refused');
is(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_u'::regclass"), 'f', '... and leave an invalid index');
ask("UPDATE t SET u = 'thrice' WHERE id % 1000 = 7");
ask("UPDATE t SET u = 'u' || id || 'x' WHERE id % 4 = 1; DELETE FROM t WHERE id % 4 = 2; INSERT INTO t SELECT id, 5, 'v' || id FROM generate_series(40000, 41000) id");
($rc, $out, $err) = $node->psql('postgres', "UPDATE t SET u = 'twice' WHERE id = (SELECT max(id) FROM t)");
ask("ALTER TABLE t ADD COLUMN w int DEFAULT 5");
$node->stop('immediate');
$node->start;
is(ask("SELECT count(*) FROM t WHERE w = 5"), ask('SELECT count(*) FROM t'), 'a crash after that loses nothing');
ask("UPDATE t SET u = 'u' || id || 'y'");
ask('REINDEX INDEX CONCURRENTLY t_u');
is(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_u'::regclass"), 't', 'it is built when they are gone');
($rc, $out, $err) = $node->psql('postgres', "UPDATE t SET u = (SELECT u FROM t ORDER BY id LIMIT 1) WHERE id = (SELECT max(id) FROM t)");
like($err, qr/duplicate key value/, '... and sees to keys');
sound($node, 'unique');

# --- with writers that never stop
ask("DROP TABLE IF EXISTS log; CREATE INDEX IF NOT EXISTS t_v ON t (v); INSERT INTO t SELECT i, i % 1000, 'u' || i || 'z', 5 FROM generate_series(1, 20000) i ON CONFLICT DO NOTHING");
my $script = $node->basedir . '/writers.sql';
append_to_file($script, q{\set id random(1, 20000)
\set v random(1, 50)
\set what random(1, 8)
\if :what < 5
UPDATE t SET v = :v, u = 'u' || :id || CASE :v % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'z' END WHERE id = :id;
\elif :what < 7
DELETE FROM t WHERE id = :id;
\else
INSERT INTO t VALUES (:id, :v, 'u' || :id || 'z', 5) ON CONFLICT DO NOTHING;
\endif
});
my $bench = IPC::Run::start([ 'pgbench', '-n', '-M', 'prepared', '-c', '4', '-T', '4', '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'>', \my $bench_out, '2>', \my $bench_err);
my $until = time + 3;
my $times = 0;
while (time < $until)
{
	ask('DROP INDEX t_v');
	ask('CREATE INDEX CONCURRENTLY t_v ON t (v)');
	ask('REINDEX INDEX CONCURRENTLY t_u');
	ask('REINDEX INDEX CONCURRENTLY t_pkey');
	$times++;
}
ok($bench->finish, 'writers have no error');
cmp_ok($times, '>', 0, "$times rounds");
sound($node, 'beside writers');
ask('DELETE FROM t WHERE id % 2 = 0; UPDATE t SET v = 1');
sound($node, 'and used');
$node->wait_for_catchup($standby);
sound($standby, 'on a standby');
$node->stop('immediate');
$node->start;
sound($node, 'after a crash');
# --- a deferrable key is remade, but not in place yet, and after that: rows change keys with each
# other, which the log tells one by one
ask("CREATE TABLE k (id int PRIMARY KEY DEFERRABLE, u int UNIQUE DEFERRABLE) USING mot; INSERT INTO k SELECT i, i FROM generate_series(1, 300) i");
my $old = $node->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$builder = $node->background_psql('postgres', on_error_stop => 0);
$builder->query_until(qr/begun/, "\\echo begun\nREINDEX TABLE CONCURRENTLY k;\n");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_index i JOIN pg_stat_activity ON query LIKE 'REINDEX%' AND wait_event_type = 'Lock' WHERE i.indexrelid = to_regclass('k_u_key_ccnew') AND indisready"), 'it waits for a snapshot');
ask('UPDATE k SET id = 301 - id, u = 301 - u');
ask('CHECKPOINT; UPDATE k SET u = u % 300 + 1');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT string_agg(first_problem, ', ') FROM mot_verify('k')"), '', 'keys change places: on a standby');
$node->stop('immediate');
$node->start;
is(ask('SELECT count(*), sum(id - 301 + u) FROM k'), '300|0', '... and after a crash');
ask('DROP INDEX k_pkey_ccnew, k_u_key_ccnew');
ask('REINDEX TABLE CONCURRENTLY k');
ask('UPDATE k SET id = 301 - id, u = 301 - u');
$node->stop('immediate');
$node->start;
is(ask('SELECT count(*) FROM k'), '300', '... of keys that are in place, too');
is(ask("SELECT string_agg(first_problem, ', ') FROM mot_verify('k')"), '', '... and sound');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT string_agg(first_problem, ', ') FROM mot_verify('k')"), '', '... and on the standby');
$standby->stop;

done_testing();
