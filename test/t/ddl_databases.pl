# Definitions and storage where databases and servers come and go.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('databases');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
CONF
$node->start;

sub tables
{
	# seen by the server as a whole
	return $node->safe_psql('postgres',
		'SELECT count(*) FROM mot_stat_get_tables()');
}

# ------------------------------------------- a database without the extension

my ($ret, $out, $err) = $node->psql('postgres',
	q{SET mot.default_engine = mot; CREATE TABLE t (id int PRIMARY KEY)});
isnt($ret, 0, 'default_engine = mot without the extension is an error');
like($err, qr/access method "mot" does not exist in this database/, 'that says why');
like($err, qr/HINT:  Run CREATE EXTENSION mot/, 'and what to do');
($ret, $out, $err) = $node->psql('postgres', 'CREATE FOREIGN TABLE t (id int PRIMARY KEY) SERVER mot_server');
like($err, qr/server "mot_server" does not exist in this database/, 'as is CREATE FOREIGN TABLE');
$node->safe_psql('postgres', 'CREATE TABLE h (id int PRIMARY KEY, r int REFERENCES h); CREATE INDEX ON h (r);
	ALTER TABLE h ADD COLUMN x int DEFAULT 1; VACUUM; DROP TABLE h');
pass('ordinary tables are as ever');

$node->safe_psql('postgres', 'CREATE EXTENSION mot');

# --------------------------------------------------------------- databases

$node->safe_psql('postgres', 'CREATE DATABASE one');
$node->safe_psql('one', <<'SQL');
CREATE EXTENSION mot;
CREATE FOREIGN TABLE t (id int PRIMARY KEY, v text) SERVER mot_server;
CREATE INDEX t_v ON t (v DESC);
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 100) i;
CREATE TABLE o (a int PRIMARY KEY, b text UNIQUE, c int UNIQUE DEFERRABLE) USING mot;
INSERT INTO o SELECT i, nullif(repeat('k', i % 3 * 100) || i, '7'), nullif(i % 500, 0) FROM generate_series(499, 1, -1) i;
INSERT INTO o SELECT i, NULL, NULL FROM generate_series(500, 2000) i;
CREATE INDEX o_lower ON o (lower(b), a) WHERE a > 10;
SQL

my $session = $node->background_psql('one');
$session->query_safe('SELECT 1');
($ret, $out, $err) = $node->psql('postgres', 'DROP DATABASE one');
like($err, qr/is being accessed by other users/, 'a database in use is not dropped');
is($node->safe_psql('one', 'SELECT count(*) FROM t'), '100', 'and its rows are there');
$session->quit;

($ret, $out, $err) = $node->psql('postgres', 'CREATE DATABASE two TEMPLATE one');
is($ret, 0, 'a database with MOT tables as a template');
is($node->safe_psql('two', "SELECT count(*), sum(id), min(v), max(v) FROM t"), '100|5050|v1|v99', 'has its rows');
is($node->safe_psql('two', "SELECT id FROM t WHERE v = 'v77'"), '77', 'and its indexes');
($ret, $out, $err) = $node->psql('two', "INSERT INTO t VALUES (7, 'again')");
like($err, qr/duplicate key value violates unique constraint "t_pkey"/, 'and its keys');
is($node->safe_psql('two', q{SELECT count(*), sum(problems), min(entries) FILTER (WHERE entries > 0) FROM mot_verify('o')}),
	$node->safe_psql('one', q{SELECT count(*), sum(problems), min(entries) FILTER (WHERE entries > 0) FROM mot_verify('o')}),
	'indexes of all kinds have what those of the template have');
($ret, $out, $err) = $node->psql('two', 'INSERT INTO o VALUES (3000, NULL, 5)');
like($err, qr/duplicate key value violates unique constraint "o_c_key"/, 'a deferrable key, too');
$node->safe_psql('two', "INSERT INTO t VALUES (101, 'x'); DELETE FROM t WHERE id < 50");
is($node->safe_psql('one', 'SELECT count(*) FROM t'), '100', "the template's rows are its own");

# what cannot be made leaves nothing behind
my $all_rows = q{SELECT rows FROM mot_stat_memory};
my $rows = $node->safe_psql('postgres', $all_rows);
($ret, $out, $err) = $node->psql('postgres', 'CREATE DATABASE two TEMPLATE one');
like($err, qr/database "two" already exists/, 'a name that is taken');
($ret, $out, $err) = $node->psql('postgres', 'BEGIN; CREATE DATABASE three TEMPLATE one');
like($err, qr/CREATE DATABASE cannot run inside a transaction block/, 'not in a transaction block');
($ret, $out, $err) = $node->psql('postgres', "CREATE DATABASE three TEMPLATE one LC_COLLATE 'no_such_locale'");
like($err, qr/invalid LC_COLLATE locale name|invalid locale name/, 'an option that the server refuses');
$session = $node->background_psql('one');
$session->query_safe('SELECT 1');
($ret, $out, $err) = $node->psql('postgres', 'CREATE DATABASE three TEMPLATE one');
like($err, qr/source database "one" is being accessed by other users/, 'a template in use');
$session->quit;
$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; CREATE ROLE maker LOGIN CREATEDB');
for my $role ('plain', 'maker')
{
	($ret, $out, $err) = $node->psql('postgres', 'CREATE DATABASE three TEMPLATE one', extra_params => [ '-U', $role ]);
	like($err, qr/permission denied to (create|copy) database/, "$role may not");
}
is($node->safe_psql('postgres', $all_rows), $rows, 'no tables are left of them');
$node->safe_psql('postgres', 'CREATE DATABASE three TEMPLATE one OID 77777 STRATEGY file_copy');
is($node->safe_psql('three', "SELECT count(*), d.oid FROM t, pg_database d WHERE datname = 'three' GROUP BY d.oid"),
	'100|77777', 'with an OID that was asked for');
$node->safe_psql('postgres', 'DROP DATABASE three');
is($node->safe_psql('postgres', $all_rows), $rows, 'and DROP DATABASE takes them along');

my $used = q{SELECT used_bytes FROM mot_stat_memory};
$node->safe_psql('one', q{INSERT INTO t SELECT i, repeat('x', 1000) || i FROM generate_series(101, 20000) i});
my $full = $node->safe_psql('postgres', $used);
$node->safe_psql('postgres', 'ALTER DATABASE one RENAME TO uno');
is($node->safe_psql('uno', 'SELECT count(*) FROM t'), '20000', 'a renamed database keeps its rows');
$node->safe_psql('postgres', 'DROP DATABASE uno');
ok($node->poll_query_until('postgres', "SELECT used_bytes < $full / 4 FROM mot_stat_memory"),
	'a dropped database gives its memory back');
$node->safe_psql('postgres', 'DROP DATABASE two');

# --------------------------------------- a database that has another name by then, or more tables

$node->safe_psql('postgres', 'CREATE DATABASE kept');
$node->safe_psql('kept', 'CREATE EXTENSION mot; CREATE FOREIGN TABLE t (id int PRIMARY KEY) SERVER mot_server; INSERT INTO t VALUES (1), (2)');
$node->safe_psql('postgres', 'CREATE DATABASE empty');

# starts a statement, which waits for another session
sub dropping
{
	my ($sql, $said) = @_;
	my $run = IPC::Run::start([ 'psql', '-X', '-q', '-c', $sql, $node->connstr('postgres') ], '<', \undef, '>', $said, '2>&1');
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
		WHERE query LIKE 'DROP DATABASE%' AND locktype = 'object' AND mode = 'AccessExclusiveLock'")
	  or die 'it does not come to its lock';
	return $run;
}

my $other = $node->background_psql('postgres', on_error_stop => 1);
$other->query_safe('BEGIN; ALTER DATABASE kept RENAME TO renamed');
my $run = dropping('DROP DATABASE IF EXISTS kept', \my $said);
$other->query_safe('COMMIT');
$run->finish;
like($said, qr/^NOTICE:  database "kept" does not exist, skipping$/, 'what has another name meanwhile is not dropped');
is($node->safe_psql('renamed', 'SELECT count(*) FROM t'), '2', '... and has its rows');

$other->query_safe('BEGIN; ALTER DATABASE renamed RENAME TO away; ALTER DATABASE empty RENAME TO renamed');
$run = dropping('DROP DATABASE renamed', \$said);
$other->query_safe('COMMIT');
$run->finish;
is($said, '', 'of two that have changed names the one is dropped that has it by then');
is($node->safe_psql('postgres', q{SELECT datname FROM pg_database WHERE datname IN ('renamed', 'empty', 'away')}), 'away', '... and is gone');
is($node->safe_psql('away', 'SELECT count(*) FROM t'), '2', "... with no rows of the other's");
$node->safe_psql('postgres', 'CREATE DATABASE empty');
$other->query_safe('BEGIN; ALTER DATABASE empty RENAME TO filled; ALTER DATABASE away RENAME TO empty');
$run = dropping('DROP DATABASE empty', \$said);
$other->query_safe('COMMIT');
$run->finish;
$other->quit;
is($said, '', 'and the other way about');
is($node->safe_psql('postgres', q{SELECT datname FROM pg_database WHERE datname IN ('filled', 'empty', 'away')}), 'filled', '... likewise');
ok($node->poll_query_until('postgres', 'SELECT rows = 0 FROM mot_stat_memory'), '... and its rows have gone');

# who is still connected makes its first table while DROP DATABASE waits for him
$session = $node->background_psql('filled', on_error_stop => 1);
$session->query_safe('SELECT 1');
$run = dropping('DROP DATABASE filled', \$said);
$session->query_safe('CREATE EXTENSION mot; CREATE FOREIGN TABLE t (id int PRIMARY KEY) SERVER mot_server; INSERT INTO t VALUES (1)');
$session->quit;
$run->finish;
is($said, '', 'a database whose first table comes while DROP DATABASE waits');
ok($node->poll_query_until('postgres', 'SELECT rows = 0 FROM mot_stat_memory'), '... goes with it');

# ------------------------------------------------------------------ restart

$node->safe_psql('postgres', <<'SQL');
CREATE FOREIGN TABLE r (id serial PRIMARY KEY, a int NOT NULL DEFAULT 3, b text UNIQUE CHECK (b <> '')) SERVER mot_server;
CREATE INDEX r_a ON r (a, b DESC);
ALTER TABLE r ADD COLUMN c int DEFAULT 4, DROP COLUMN b;
INSERT INTO r (a) SELECT i FROM generate_series(1, 10) i;
SQL
my $describe = '\d r';
my $before = $node->safe_psql('postgres', $describe);
for my $mode ('fast', 'immediate')
{
	$node->stop($mode);
	$node->start;
	is($node->safe_psql('postgres', $describe), $before, "the definition is there after a stop ($mode)");
	is($node->safe_psql('postgres', 'SELECT count(*), sum(id), sum(c) FROM r'), '10|55|40', 'and its rows');
	is($node->safe_psql('postgres', 'BEGIN; INSERT INTO r (id, a) VALUES (11, 5), (12, 60); SELECT id, c FROM r WHERE a = 60; ROLLBACK'),
		'12|4', 'and works, with its indexes');
	($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO r (id, a) VALUES (2, 1)');
	like($err, qr/duplicate key value violates unique constraint "r_pkey"/, 'and its keys');
}
$node->safe_psql('postgres', 'DELETE FROM r WHERE id > 1');

# DDL is the first thing that touches a table after a restart
$node->restart;
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX r_c ON r (c)');
$node->restart;
$node->safe_psql('postgres', 'ALTER TABLE r ALTER a TYPE text, ADD COLUMN d int DEFAULT 1');
$node->restart;
$node->safe_psql('postgres', 'DROP INDEX r_c');
$node->restart;
$node->safe_psql('postgres', 'BEGIN; TRUNCATE r; INSERT INTO r (a) VALUES (1); COMMIT');
is($node->safe_psql('postgres', 'SELECT a, c, d FROM r'), '1|4|1', 'changed right after restarts');
$node->restart;
$node->safe_psql('postgres', 'DROP TABLE r');
is(tables(), '0', 'and dropped');

# a statement that fails, a transaction that is cut off
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE k (id int) SERVER mot_server; INSERT INTO k VALUES (1), (1)');
my $cut = $node->background_psql('postgres');
$cut->query_safe('BEGIN; TRUNCATE k; CREATE UNIQUE INDEX k_u ON k (id); ALTER TABLE k ADD COLUMN x int DEFAULT 1; DROP TABLE k');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'});
ok($node->poll_query_until('postgres', 'SELECT count(*) = 2 FROM k'), 'a terminated session leaves no trace');
eval { $cut->quit; };
$node->safe_psql('postgres', 'DROP EXTENSION mot CASCADE');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relkind = 'f'}), '0', 'all gone with the extension');
$node->safe_psql('postgres', 'CREATE EXTENSION mot');
is(tables(), '0', 'also for the engine');

$node->stop;
done_testing();
