# What transactions write to the log, and what they do not; and that it is
# enough to bring everything back.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('redo');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
autovacuum = off
CONF
$node->start;

$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION mot;
CREATE EXTENSION pg_walinspect;
CREATE TABLE heap (i int);
CREATE FOREIGN TABLE t (id int PRIMARY KEY, a int, c char(84)) SERVER mot_server;
CREATE FOREIGN TABLE nokey (a int, b text) SERVER mot_server;
INSERT INTO t SELECT i, 0, '' FROM generate_series(1, 100) i;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
SQL

# where the log ends, all of it flushed
sub position
{
	$node->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, 'a', 'position')});
	return $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
}

# our records of what "sql" does, and whether it had an xid
sub logged
{
	my ($sql) = @_;
	my $lsn = position();
	my ($ret, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 0);
	diag($err) if $err;
	my $to = position();
	return $node->safe_psql('postgres', <<SQL);
SELECT record_type || CASE WHEN xid <> '0' THEN ' with xid' ELSE '' END || ': ' ||
       regexp_replace(regexp_replace(description, '^stream 0/0(; )?', ''), '\\d+/\\d+', 'table', 'g')
FROM pg_get_wal_records_info('$lsn', '$to') WHERE resource_manager = 'mot' AND record_type <> 'START' ORDER BY start_lsn
SQL
}

# ------------------------------------------------------------------- rows

is(logged('UPDATE t SET a = a + 1 WHERE id = 3'),
	'COMMIT: update table key \x80000003, 5 bytes',
	'an update is one record, without an xid, of what has changed');
is(logged('BEGIN; UPDATE t SET a = 7 WHERE id = 3; UPDATE t SET a = 8 WHERE id = 4; DELETE FROM t WHERE id = 5; COMMIT'),
	'COMMIT: update table key \x80000003, 5 bytes; update table key \x80000004, 5 bytes; delete table key \x80000005',
	'so is a transaction of several');
is(logged(q{INSERT INTO t VALUES (101, 1, 'x')}), 'COMMIT: insert table, 96 bytes', 'an insert');
is(logged(q{INSERT INTO nokey VALUES (1, 'one'); DELETE FROM nokey}),
	"COMMIT: insert table, 8 bytes\nCOMMIT: delete table row of 8 bytes",
	'a row without a key is told by all of it');
is(logged('BEGIN; SAVEPOINT a; UPDATE t SET a = 9; ROLLBACK TO a; UPDATE t SET a = 9 WHERE id = 7; COMMIT'),
	'COMMIT: update table key \x80000007, 5 bytes', 'a savepoint rolled back leaves nothing');
is(logged('BEGIN; SAVEPOINT a; UPDATE t SET a = 9; ROLLBACK TO a; COMMIT'), '', 'nor does a transaction that was nothing else');
is(logged('BEGIN; UPDATE t SET a = 9; INSERT INTO heap VALUES (1); ROLLBACK'), '', 'or rolled back');
is(logged('BEGIN; SELECT count(*) FROM t; SELECT * FROM t WHERE id = 7 FOR UPDATE; COMMIT'), '', 'or reads and locks');
for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	is(logged("BEGIN ISOLATION LEVEL $level; UPDATE t SET a = a + 1 WHERE id = 9; COMMIT"),
		'COMMIT: update table key \x80000009, 5 bytes', "at $level");
	is(logged("BEGIN ISOLATION LEVEL $level; INSERT INTO heap VALUES (2); UPDATE t SET a = a + 1 WHERE id = 9; COMMIT"),
		'MIXED with xid: update table key \x80000009, 5 bytes', "at $level, with a heap table");
}
like(logged('BEGIN; NOTIFY n; UPDATE t SET a = 1 WHERE id = 10; COMMIT'), qr/^MIXED with xid[^\n]*: update table key \\x8000000a, 5 bytes$/,
	'NOTIFY takes an xid, and before the commit begins');
is($node->safe_psql('postgres',
		'BEGIN; UPDATE t SET a = 0 WHERE id = 1; SELECT pg_current_xact_id_if_assigned() IS NULL; COMMIT'),
	't', 'a change of memory-optimized tables takes no xid');

# --------------------------------------------------------------- definitions

like(logged('CREATE INDEX t_a ON t (a)'), qr/^MIXED with xid: define table; index table \d+$/, 'an index');
is(logged('ALTER FOREIGN TABLE t ADD COLUMN e int'), 'MIXED with xid: define table', 'a column');
is(logged('ALTER FOREIGN TABLE t RENAME TO tt; ALTER FOREIGN TABLE tt RENAME TO t'),
	"MIXED with xid: define table\nMIXED with xid: define table", 'a name');
is(logged(q{ALTER FOREIGN TABLE t OPTIONS (ADD max_size '100MB')}), 'MIXED with xid: define table', 'an option');
is(logged(q{COMMENT ON FOREIGN TABLE t IS 'x'; GRANT SELECT ON t TO PUBLIC; ANALYZE t}), '', 'what does not concern rows');
is(logged('DROP INDEX t_a'), 'MIXED with xid: define table', 'an index less');
like(logged('BEGIN; DELETE FROM nokey; INSERT INTO nokey VALUES (1); TRUNCATE nokey; INSERT INTO nokey VALUES (2); COMMIT'),
	qr/^\w+( with xid)?: create table; insert table, 16 bytes$/, 'of an emptied table, what is in it at the end');
is(logged('BEGIN; CREATE FOREIGN TABLE u (i int PRIMARY KEY) SERVER mot_server; INSERT INTO u VALUES (1); DROP FOREIGN TABLE u; COMMIT'),
	'', 'a table that came and went');
is(logged('BEGIN; SAVEPOINT a; DROP FOREIGN TABLE t, nokey; ROLLBACK TO a; COMMIT'), '', 'a table that did not go');
is(logged('CREATE FOREIGN TABLE u (i int PRIMARY KEY) SERVER mot_server; DROP FOREIGN TABLE u'),
	"MIXED with xid: create table\nMIXED with xid: drop table", 'a table that came, and went');

# ------------------------------------------------------------ large transactions

like(logged(q{INSERT INTO t SELECT i, 0, '' FROM generate_series(1000, 15999) i}),
	qr/^PIECE with xid: [^\n]*\nPIECE with xid: stream [^\n]*\nPIECE with xid: stream [^\n]*\nMIXED with xid: stream [^\n]*$/, 'a large transaction is written in pieces, with an xid');
like(logged(q{BEGIN; INSERT INTO heap VALUES (3); DELETE FROM t WHERE id >= 1000; INSERT INTO t SELECT i, 0, '' FROM generate_series(20000, 25999) i; COMMIT}),
	qr/^PIECE with xid: [^\n]*\nMIXED with xid: stream [^\n]*$/, 'with a heap table, too');
like(logged(q{INSERT INTO nokey SELECT 3, string_agg(md5(i::text), '') FROM generate_series(1, 50000) i}),
	qr/^(PIECE with xid: [^\n]*\n)+MIXED with xid: stream [^\n]*$/, 'and a row larger than a piece');

# COMMIT of very many rows is interrupted when it has written some of them
my $writer = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $writer->query_safe('SELECT pg_backend_pid()');
my $taken_back = '';
for my $try (1 .. 10)
{
	my $from = position();
	$writer->query_safe(q{BEGIN; INSERT INTO t SELECT i, 0, '' FROM generate_series(100000, 300000) i});
	my $canceller = $node->background_psql('postgres');
	$canceller->query_until(qr/started/, <<SQL);
\\echo started
DO \$\$ BEGIN
	WHILE pg_current_wal_insert_lsn() - '$from' < 1000000 LOOP END LOOP;
	PERFORM pg_cancel_backend($pid);
END \$\$;
SQL
	$writer->query('COMMIT');
	$canceller->quit;
	my $to = position();
	$taken_back = $node->safe_psql('postgres', <<SQL);
SELECT string_agg(DISTINCT record_type, ' ' ORDER BY record_type) FROM pg_get_wal_records_info('$from', '$to') WHERE resource_manager = 'mot'
SQL
	last if $taken_back ne 'MIXED PIECE';
	$writer->query_safe('DELETE FROM t WHERE id >= 100000');
}
$writer->quit;
is($taken_back, 'FORGET PIECE', 'pieces of a transaction that failed are taken back');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id >= 100000'), '0', 'and so are its rows');

# --------------------------------------------------------- a benchmark's figures

my $dir = $node->basedir;
append_to_file("$dir/tpcb.sql", <<'SQL');
\set aid random(1, 1000)
\set tid random(1, 10)
\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE branches SET bbalance = bbalance + :delta WHERE bid = 1;
INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);
END;
SQL
my %bytes;
for my $engine ('heap', 'mot')
{
	$node->safe_psql('postgres', <<SQL);
SET mot.default_engine = $engine;
DROP TABLE IF EXISTS accounts, tellers, branches, history;
CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO accounts SELECT i, 1, 0, '' FROM generate_series(1, 1000) i;
INSERT INTO tellers SELECT i, 1, 0 FROM generate_series(1, 10) i;
INSERT INTO branches VALUES (1, 0);
CHECKPOINT;
SQL
	# the first changes of heap's pages are logged whole; that is not to be counted
	my @pgbench = ('pgbench', '-n', '-c', '1', '-t', '1000', '-f', "$dir/tpcb.sql", '-h', $node->host, '-p', $node->port, '-U', 'postgres', 'postgres');
	command_ok(\@pgbench, "TPC-B on $engine");
	my $before = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	command_ok(\@pgbench, "again");
	$bytes{$engine} = $node->safe_psql('postgres', "SELECT (pg_current_wal_insert_lsn() - '$before') / 1000");
}
note("bytes of the log a transaction: heap $bytes{heap}, memory-optimized $bytes{mot}");
cmp_ok($bytes{mot}, '<=', $bytes{heap} / 2, 'a TPC-B transaction writes at most half of what heap does');

# ------------------------------------------------------ what it is written for

$node->safe_psql('postgres', <<'SQL');
CREATE FOREIGN TABLE r (id int PRIMARY KEY, n numeric, s text COLLATE "C" UNIQUE, d int, z text) SERVER mot_server;
INSERT INTO r SELECT i, i * 1.5, 's' || i, i, repeat('z', i % 200) FROM generate_series(1, 3000) i;
UPDATE r SET n = n + 1, z = left(z, 30) WHERE id % 3 = 0;
DELETE FROM r WHERE id % 7 = 0;
BEGIN;
CREATE INDEX rd ON r (d);
UPDATE r SET d = d + 10 WHERE id < 100;
SAVEPOINT a;
DELETE FROM r;
ROLLBACK TO a;
ALTER TABLE r ALTER d SET NOT NULL;
UPDATE r SET d = d + 1 WHERE id < 50;
COMMIT;
ALTER TABLE r ADD COLUMN e text DEFAULT 'added';
INSERT INTO r (id, s, d) VALUES (-1, 'm1', 5);
ALTER TABLE r DROP COLUMN n;
UPDATE r SET id = -id WHERE id BETWEEN 10 AND 20;
BEGIN;
UPDATE r SET d = d + 1 WHERE id < 200;
ALTER TABLE r ALTER d DROP NOT NULL;
UPDATE r SET d = NULL WHERE id BETWEEN 300 AND 400;
DELETE FROM r WHERE id BETWEEN 500 AND 600;
INSERT INTO r VALUES (-1000, 'new', NULL);
COMMIT;
BEGIN;
UPDATE r SET d = d + 3 WHERE id < 500;
REINDEX TABLE r;
UPDATE r SET d = d + 3 WHERE id < 500;
COMMIT;
BEGIN;
INSERT INTO heap VALUES (4);
UPDATE r SET e = 'mixed' WHERE id = 1;
COMMIT;
BEGIN;
INSERT INTO heap VALUES (4);
UPDATE r SET e = 'lost' WHERE id = 2;
ROLLBACK;
CREATE FOREIGN TABLE dup (a int, b text) SERVER mot_server;
INSERT INTO dup SELECT i % 10, 'x' FROM generate_series(1, 1000) i;
DELETE FROM dup WHERE a = 3;
UPDATE dup SET b = 'y' WHERE a = 4;
BEGIN;
DELETE FROM dup WHERE a IN (4, 5);
UPDATE dup SET b = 'u' WHERE a = 6;
ALTER TABLE dup ADD COLUMN k serial PRIMARY KEY;
COMMIT;
BEGIN;
DELETE FROM dup WHERE k % 2 = 0;
ALTER TABLE dup DROP CONSTRAINT dup_pkey;
UPDATE dup SET k = 7 WHERE a = 1;
COMMIT;
CREATE TABLE parent (id int, v text) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE part PARTITION OF parent FOR VALUES FROM (1) TO (100) SERVER mot_server;
INSERT INTO parent SELECT i, 'p' || i FROM generate_series(1, 99) i;
CREATE DATABASE copy TEMPLATE postgres;

-- more tables than a session remembers definitions of
CREATE TABLE many (id int PRIMARY KEY, v int) PARTITION BY LIST (id);
DO $$ BEGIN FOR i IN 1 .. 1100 LOOP
	EXECUTE format('CREATE TABLE many%s PARTITION OF many FOR VALUES IN (%s) USING mot', i, i);
END LOOP; END $$;
INSERT INTO many SELECT i, i FROM generate_series(1, 1100) i;
ALTER TABLE many ADD COLUMN w int DEFAULT 5;
UPDATE many SET w = id WHERE id % 3 = 0;
BEGIN;
UPDATE many SET v = 0 WHERE id IN (1, 2);
UPDATE many SET v = v + 1;
UPDATE many SET v = v + 1 WHERE id < 10;
COMMIT;
SQL
$node->safe_psql('copy', q{UPDATE r SET e = 'copy' WHERE id = 3; DROP TABLE dup});

my %tables = (postgres => [qw(r dup part t nokey accounts history many)], copy => [qw(r part t nokey accounts history)]);

sub contents
{
	my $all = '';
	for my $db (sort keys %tables)
	{
		for my $table (@{$tables{$db}})
		{
			$all .= "$db.$table: " . $node->safe_psql($db,
				"SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM $table x") . "\n";
		}
	}
	return $all;
}

sub faults
{
	my $all = '';
	for my $db (sort keys %tables)
	{
		$all .= $node->safe_psql($db, "SELECT '$db', v.* FROM mot_verify('$_') v WHERE problems <> 0")
			for grep { $_ ne 'many' } @{$tables{$db}};
	}
	return $all;
}

my $contents = contents();
for my $way ('immediate', 'fast', 'immediate')
{
	$node->stop($way);
	$node->start;
	is(contents(), $contents, "everything is there after a stop ($way)");
	is(faults(), '', 'and the indexes agree');
	is($node->safe_psql('postgres', q{SELECT count(*), sum(problems) FROM pg_inherits, mot_verify(inhrelid) WHERE inhparent = 'many'::regclass}), '2200|0', '... those of very many, too');
}
is($node->safe_psql('postgres', 'SELECT i FROM heap WHERE i = 4'), '4', 'the other half of a mixed transaction is, too');
is($node->safe_psql('postgres', q{SELECT id, e FROM r WHERE id IN (1, 2) ORDER BY 1}), "1|mixed\n2|added", 'and what was rolled back is not');

is(logged('DROP DATABASE copy') =~ s/\d+/N/gr, 'MIXED with xid: drop database N', 'a database goes with its tables');
delete $tables{copy};
$contents = contents();
$node->stop('immediate');
$node->start;
is(contents(), $contents, 'for good');
is($node->safe_psql('postgres', 'SELECT (SELECT sum(rows) FROM mot_stat_get_tables()) = rows FROM mot_stat_memory'), 't',
	'and leaves nothing behind');

$node->stop;
done_testing();
