# PREPARE TRANSACTION of transactions that have changed or locked rows of memory-optimized
# tables: locks and visibility, restarts and crashes, who waits for them, what is refused, a
# thousand of them, and memory that is full.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared;
use Test::More;
use Time::HiRes qw(usleep);

my $node = make_node('primary', "max_prepared_transactions = 1100\nmax_locks_per_transaction = 200\ndeadlock_timeout = '100ms'\n");

sql(q{
	CREATE TABLE o (id int PRIMARY KEY, v int, t text) USING mot;
	CREATE INDEX ON o (v);
	CREATE FOREIGN TABLE f (id int PRIMARY KEY, v int, t text) SERVER mot_server;
	CREATE FOREIGN TABLE keyless (v int, t text) SERVER mot_server;
	CREATE TABLE referring (id int PRIMARY KEY, o int REFERENCES o) USING mot;
	CREATE TABLE cold (id int PRIMARY KEY, v int);
	INSERT INTO o SELECT i, i, 'o' || i FROM generate_series(1, 100) i;
	INSERT INTO f SELECT i, i, 'f' || i FROM generate_series(1, 100) i;
	INSERT INTO keyless SELECT i % 3, 'same' FROM generate_series(1, 30) i;
	INSERT INTO keyless SELECT 7, 'shared' FROM generate_series(1, 4);
	INSERT INTO cold SELECT i, i FROM generate_series(1, 100) i;
});

# ------------------------------------------------------------ one of each kind

my $sums = q{SELECT (SELECT count(*) || ' ' || sum(v) FROM o), (SELECT count(*) || ' ' || sum(v) FROM f),
	(SELECT count(*) || ' ' || sum(v) FROM keyless), (SELECT count(*) || ' ' || sum(v) FROM cold), (SELECT count(*) FROM referring)};
my $work = q{
	INSERT INTO o VALUES (101, 1000, repeat('a long key ', 3));
	UPDATE o SET v = v + 1000 WHERE id = 1;
	UPDATE o SET id = 102 WHERE id = 2;
	DELETE FROM o WHERE id = 3;
	INSERT INTO f VALUES (101, 1000, 'f');
	UPDATE f SET v = v + 1000 WHERE id BETWEEN 1 AND 2;
	DELETE FROM f WHERE id BETWEEN 50 AND 59;
	DELETE FROM keyless WHERE ctid = (SELECT min(ctid) FROM keyless WHERE v = 0);
	UPDATE keyless SET v = 100 WHERE v = 1;
	SELECT 1 FROM keyless WHERE v = 7 FOR SHARE;
	UPDATE keyless SET v = 200 WHERE v = 7;
	SELECT 1 FROM o WHERE id = 24 FOR KEY SHARE;
	SELECT 1 FROM o WHERE id = 24 FOR SHARE;
	UPDATE o SET id = 124 WHERE id = 24;
	INSERT INTO referring VALUES (1, 10);
	SAVEPOINT s;
	UPDATE o SET v = 0;
	ROLLBACK TO s;
	UPDATE cold SET v = v + 1000 WHERE id = 1;
	SELECT 1 FROM o WHERE id = 20 FOR UPDATE;
	SELECT 1 FROM o WHERE id = 21 FOR NO KEY UPDATE;
	SELECT 1 FROM o WHERE id = 22 FOR SHARE;
	SELECT 1 FROM o WHERE id = 23 FOR KEY SHARE;
};
$work =~ s/DELETE FROM keyless WHERE ctid = .*?;//;
my $before = sql($sums);

# what it is to be, from COMMIT
my $after = (split /\n/, sql("BEGIN; $work $sums; ROLLBACK"))[-1];
isnt($after, $before, 'the work changes something');
is(sql($sums), $before, '... and is taken back');

# Everything that holds while a transaction is prepared.
sub check_prepared
{
	my ($when) = @_;
	is(sql($sums), $before, "$when: nothing of it is seen");
	is(sql("SELECT gid, owner, database FROM pg_prepared_xacts"), "one|" . sql('SELECT current_user') . "|postgres", "$when: pg_prepared_xacts has it");
	is( sql(q{SELECT string_agg(c.relname || ' ' || mode, ', ' ORDER BY c.relname::text COLLATE "C", mode) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
		WHERE pid IS NULL AND c.relname IN ('o', 'f', 'keyless', 'referring', 'cold')}),
		'cold RowExclusiveLock, f RowExclusiveLock, keyless RowExclusiveLock, keyless RowShareLock, o RowExclusiveLock, o RowShareLock, referring RowExclusiveLock, referring RowShareLock',
		"$when: its table locks are in pg_locks");
	my $busy = qr/could not obtain lock on row/;
	fails("SELECT 1 FROM o WHERE id = 1 FOR UPDATE NOWAIT", $busy, "$when: an updated row is locked");
	fails("SELECT 1 FROM o WHERE id = 2 FOR UPDATE NOWAIT", $busy, "$when: one with a new key");
	fails("SELECT 1 FROM o WHERE id = 2 FOR KEY SHARE NOWAIT", $busy, "$when: ... also its key");
	fails("SELECT 1 FROM o WHERE id = 3 FOR KEY SHARE NOWAIT", $busy, "$when: a deleted one");
	is(sql("SELECT 1 FROM o WHERE id = 1 FOR KEY SHARE NOWAIT"), '1', "$when: not the key of an updated one");
	fails("SELECT 1 FROM o WHERE id = 20 FOR KEY SHARE NOWAIT", $busy, "$when: FOR UPDATE");
	fails("SELECT 1 FROM o WHERE id = 21 FOR SHARE NOWAIT", $busy, "$when: FOR NO KEY UPDATE");
	is(sql("SELECT 1 FROM o WHERE id = 21 FOR KEY SHARE NOWAIT"), '1', "$when: ... not its key");
	fails("SELECT 1 FROM o WHERE id = 22 FOR NO KEY UPDATE NOWAIT", $busy, "$when: FOR SHARE");
	is(sql("SELECT 1 FROM o WHERE id = 22 FOR SHARE NOWAIT"), '1', "$when: ... is shared");
	fails("SELECT 1 FROM o WHERE id = 23 FOR UPDATE NOWAIT", $busy, "$when: FOR KEY SHARE");
	is(sql("SELECT 1 FROM o WHERE id = 23 FOR NO KEY UPDATE NOWAIT"), '1', "$when: ... is of the key");
	fails("SELECT 1 FROM o WHERE id = 10 FOR UPDATE NOWAIT", $busy, "$when: a row that a foreign key refers to");
	is(sql("SELECT id FROM o WHERE id BETWEEN 1 AND 5 ORDER BY id FOR UPDATE SKIP LOCKED"), "4\n5", "$when: SKIP LOCKED skips them");
	is(sql("SELECT count(*) FROM (SELECT 1 FROM keyless FOR UPDATE SKIP LOCKED) x"), '20', "$when: rows without a key");
	fails("SET lock_timeout = '50ms'; UPDATE f SET v = 0 WHERE id = 1", qr/canceling statement due to lock timeout/, "$when: lock_timeout");
	fails("SET lock_timeout = '50ms'; INSERT INTO o VALUES (101, 1, 'x')", qr/canceling statement due to lock timeout/, "$when: its new key is taken");
	fails("SET lock_timeout = '50ms'; INSERT INTO o VALUES (3, 1, 'x')", qr/canceling statement due to lock timeout/, "$when: nor is its old one free");
	fails("SET lock_timeout = '50ms'; BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE o SET v = 0 WHERE id = 1; COMMIT", qr/canceling statement due to lock timeout/, "$when: at REPEATABLE READ");
	fails("SET lock_timeout = '50ms'; TRUNCATE keyless", qr/canceling statement due to lock timeout/, "$when: the table is locked");
	fails("SET lock_timeout = '50ms'; DROP TABLE referring", qr/canceling statement due to lock timeout/, "$when: ... also against DROP");
	sql('VACUUM; ANALYZE o; ANALYZE f');
	is(sql($sums), $before, "$when: nothing has changed");
	return;
}

for my $end ('ROLLBACK', 'COMMIT')
{
	sql("BEGIN; $work PREPARE TRANSACTION 'one'");
	check_prepared("$end, prepared");
	sql('CHECKPOINT');
	check_prepared("$end, checkpoint");
	if ($end eq 'COMMIT')
	{
		$node->restart;
		check_prepared("$end, restarted");
		$node->restart;
		$node->stop('immediate');
		$node->start;
		check_prepared("$end, crashed");
		sql("INSERT INTO f VALUES (1000, 0, 'later'); DELETE FROM f WHERE id = 1000; CHECKPOINT");
		$node->stop('immediate');
		$node->start;
		check_prepared("$end, crashed again");
	}
	sql("$end PREPARED 'one'");
	is(sql($sums), $end eq 'COMMIT' ? $after : $before, "$end PREPARED");
	is(sql('SELECT count(*) FROM pg_prepared_xacts'), '0', '... it is gone');
	is(sql("SELECT count(*) FROM (SELECT 1 FROM o FOR UPDATE NOWAIT) x"), '100', '... its locks, too');
	is(sql("SELECT sum(problems) FROM (SELECT * FROM mot_verify('o') UNION ALL SELECT * FROM mot_verify('f')) x"), '0', '... and all agrees');
}
$node->restart;
is(sql($sums), $after, 'and so it stays');
$node->stop('immediate');
$node->start;
is(sql($sums), $after, '... after a crash, too');



# ---------------------------------------------------------------------- waits

sql('CREATE TABLE w (id int PRIMARY KEY, v int) USING mot; CREATE TABLE wc (id int PRIMARY KEY, w int REFERENCES w) USING mot;');
for my $case (
	[ 'UPDATE w SET v = v * 2 WHERE id = 1 RETURNING v', '22', '20' ],
	[ 'DELETE FROM w WHERE id = 2 RETURNING v', '', '20' ],
	[ 'INSERT INTO w VALUES (4, 44) ON CONFLICT DO NOTHING RETURNING v', '', '44' ],
	[ 'INSERT INTO w VALUES (2, 22) RETURNING v', '22', qr/duplicate key/ ],
	[ 'INSERT INTO w VALUES (4, 44) RETURNING v', qr/duplicate key/, '44' ],
	[ 'INSERT INTO wc VALUES (1, 2) RETURNING w', qr/violates foreign key constraint/, '2' ],
	[ 'SELECT v FROM w WHERE id = 1 FOR UPDATE', '11', '10' ],
	[ 'BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE w SET v = 0 WHERE id = 1; COMMIT; SELECT v FROM w WHERE id = 1', qr/could not serialize access/, '0' ],
	[ 'BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE w SET v = 0 WHERE id = 1; COMMIT; SELECT v FROM w WHERE id = 1', qr/could not serialize access/, '0' ])
{
	my ($statement, @results) = @$case;
	for my $i (0, 1)
	{
		my $before = $statement =~ /UPDATE/ ? $i : 1 - $i;
		my $end = $i ? 'ROLLBACK' : 'COMMIT';
		sql('DELETE FROM wc; DELETE FROM w; INSERT INTO w VALUES (1, 10), (2, 20), (3, 30)');
		my $prepares = $node->background_psql('postgres');
		$prepares->query_safe('BEGIN; UPDATE w SET v = v + 1 WHERE id = 1; DELETE FROM w WHERE id = 2; INSERT INTO w VALUES (4, 40); UPDATE cold SET v = v WHERE id = 1');
		$prepares->query_safe("PREPARE TRANSACTION 'wait'") unless $before;
		my ($got, $err) = ('', '');
		my $waiter = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=waiter', map { ('-c', $_) } split(/; /, $statement) ], '>', \$got, '2>', \$err);
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'waiter' AND wait_event_type = 'Lock'"), "$end, $statement: it waits");
		$prepares->query_safe("PREPARE TRANSACTION 'wait'") if $before;
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'waiter' AND wait_event_type = 'Lock' AND wait_event = 'transactionid'"),
			"... for the transaction's number");
		# (the session that has prepared has done with it)
		$prepares->query_safe('UPDATE w SET v = v WHERE id = 3');
		sql("$end PREPARED 'wait'");
		$waiter->finish;
		chomp $got;
		if (ref $results[$i]) { like($err, $results[$i], "... and fails as it should") }
		else { is($got, $results[$i], "... and goes on") }
		$prepares->quit;
	}
}
sql("BEGIN; UPDATE w SET v = v WHERE id = 1; PREPARE TRANSACTION 'wait'");
fails("SET statement_timeout = '300ms'; UPDATE w SET v = v WHERE id = 1", qr/canceling statement due to statement timeout/, 'statement_timeout ends a wait for one');
sql("ROLLBACK PREPARED 'wait'");
sql('DROP TABLE wc, w');

# ------------------------------------------------------------------- refusals

fails("BEGIN; UPDATE o SET v = v WHERE id = 20; CREATE TEMP TABLE n (i int); PREPARE TRANSACTION 'no'", qr/temporary objects/, 'refused by the server: temporary tables');
fails("BEGIN; UPDATE o SET v = v WHERE id = 20; NOTIFY n; PREPARE TRANSACTION 'no'", qr/cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY/, 'refused by the server: NOTIFY');
fails("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT * FROM o; UPDATE o SET v = v WHERE id = 20; PREPARE TRANSACTION 'no'", qr/cursor WITH HOLD/, 'refused by the server: a cursor');
is(prepared(), '0', 'none of them is prepared');
sql("BEGIN; SELECT 1 FROM keyless WHERE v = 2 FOR UPDATE; PREPARE TRANSACTION 'equal'");
$node->restart;
is(sql('SELECT count(*) FROM (SELECT 1 FROM keyless FOR UPDATE SKIP LOCKED) x'), '24', 'equal rows without a key are all locked after a restart');

# FOR KEY SHARE of rows without a key: others may change them until then, and not any more
for my $level ('READ COMMITTED', 'REPEATABLE READ')
{
	sql("ROLLBACK PREPARED 'equal'; INSERT INTO keyless VALUES (50, 'key'), (50, 'key'), (51, 'changed'), (52, 'own'), (53, 'undone')");
	my $shares = $node->background_psql('postgres', on_error_stop => 0);
	$shares->query("BEGIN ISOLATION LEVEL $level; SELECT 1 FROM keyless WHERE v BETWEEN 50 AND 52 FOR KEY SHARE; UPDATE keyless SET v = 152 WHERE v = 52; SAVEPOINT s; SELECT 1 FROM keyless WHERE v = 53 FOR KEY SHARE; ROLLBACK TO s");
	my $changes = $node->background_psql('postgres', on_error_stop => 0);
	$changes->query("UPDATE keyless SET v = 151 WHERE v = 51");
	$changes->query("BEGIN; UPDATE keyless SET v = 251 WHERE v = 151");
	$shares->query_until(qr/started/, "\\echo started\nPREPARE TRANSACTION 'shares';\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'PREPARE%' AND wait_event_type = 'Lock'"), "$level: PREPARE waits for who changes a row of a key that there is not");
	$changes->query('COMMIT');
	$shares->query('SELECT 1');
	for my $when ('prepared', 'restarted', 'crashed')
	{
		$node->restart if $when eq 'restarted';
		if ($when eq 'crashed') { sql('CHECKPOINT'); $node->stop('immediate'); $node->start }
		is(sql("SELECT string_agg(v::text, ' ' ORDER BY v) FROM (SELECT v FROM keyless WHERE t IN ('key', 'changed', 'own', 'undone') FOR SHARE SKIP LOCKED) x"), '50 50 53 251', "$level, $when: they can be shared");
		is(sql("SELECT string_agg(v::text, ' ') FROM (SELECT v FROM keyless WHERE t IN ('key', 'changed', 'own', 'undone') FOR NO KEY UPDATE SKIP LOCKED) x"), '53', '... not changed');
		fails("SET lock_timeout = '50ms'; DELETE FROM keyless WHERE v = 251", qr/canceling statement due to lock timeout/, '... nor deleted');
	}
	my $end = $level =~ /COMMITTED/ ? 'COMMIT' : 'ROLLBACK';
	sql("$end PREPARED 'shares'");
	is(sql("SELECT string_agg(v::text, ' ' ORDER BY v) FROM (SELECT v FROM keyless WHERE t IN ('key', 'changed', 'own', 'undone') FOR UPDATE NOWAIT) x"), $end eq 'COMMIT' ? '50 50 53 152 251' : '50 50 52 53 251', "... until it has ended ($end)");
	sql("DELETE FROM keyless WHERE t IN ('key', 'changed', 'own', 'undone'); BEGIN; SELECT 1 FROM keyless WHERE v = 2 FOR UPDATE; PREPARE TRANSACTION 'equal'");
	$_->quit for $shares, $changes;
}

# what a foreign key refers to, by a key that may be null
sql(q{CREATE TABLE maybe (code int UNIQUE, v int) USING mot; CREATE TABLE refers (id int PRIMARY KEY, code int REFERENCES maybe (code)) USING mot;
	INSERT INTO maybe VALUES (1, 1), (2, 2), (NULL, 3);
	BEGIN; INSERT INTO refers VALUES (1, 1); PREPARE TRANSACTION 'refers'});
for my $restart (0, 1)
{
	$node->restart if $restart;
	fails("SET lock_timeout = '50ms'; DELETE FROM maybe WHERE code = 1", qr/canceling statement due to lock timeout/, 'a row that a foreign key refers to by a key that may be null is not deleted');
	fails("SET lock_timeout = '50ms'; UPDATE maybe SET code = 5 WHERE code = 1", qr/canceling statement due to lock timeout/, '... nor given another key');
	is(sql("SELECT count(*) FROM (SELECT 1 FROM maybe FOR UPDATE SKIP LOCKED) x"), '2', '... the others are free');
}
sql("COMMIT PREPARED 'refers'");
fails("DELETE FROM maybe WHERE code = 1", qr/violates foreign key constraint/, '... and when it is committed it is referred to');
sql("DELETE FROM refers; DELETE FROM maybe WHERE code = 1; DROP TABLE refers, maybe");

# an exclusion constraint's columns are no key, but the log names rows by them if there is no other
sql(q{CREATE TABLE excluded (id int NOT NULL, v int, EXCLUDE USING btree (id WITH =)) USING mot; INSERT INTO excluded VALUES (1, 1), (2, 2);
	BEGIN; SELECT 1 FROM excluded WHERE id = 1 FOR KEY SHARE; PREPARE TRANSACTION 'excluded'});
for my $restart (0, 1)
{
	$node->restart if $restart;
	fails("SET lock_timeout = '50ms'; UPDATE excluded SET id = 5 WHERE id = 1", qr/canceling statement due to lock timeout/, 'a row that the log names by an exclusion constraint keeps its columns while it is prepared');
	is(sql("UPDATE excluded SET v = v + 1 WHERE id = 1 RETURNING v"), 2 + $restart, '... others are changed');
}
sql("ROLLBACK PREPARED 'excluded'; DROP TABLE excluded");

# ... and is free to change where it names rows by a primary key, as long as there is one
sql(q{CREATE TABLE excluded (id int PRIMARY KEY, v int NOT NULL, EXCLUDE USING btree (v WITH =)) USING mot; INSERT INTO excluded VALUES (1, 1), (2, 2);
	BEGIN; SELECT 1 FROM excluded WHERE id = 1 FOR KEY SHARE; PREPARE TRANSACTION 'excluded'});
for my $restart (0, 1)
{
	$node->restart if $restart;
	fails("SET lock_timeout = '50ms'; UPDATE excluded SET id = 5 WHERE id = 1", qr/canceling statement due to lock timeout/, 'a row that the log names by its primary key keeps that while it is prepared');
	is(sql("UPDATE excluded SET v = v + 10 WHERE id = 1 RETURNING v"), 11 + 10 * $restart, "... an exclusion constraint's column is changed");
}
sql(q{ROLLBACK PREPARED 'excluded'; ALTER TABLE excluded DROP CONSTRAINT excluded_pkey;
	BEGIN; SELECT 1 FROM excluded WHERE id = 1 FOR KEY SHARE; PREPARE TRANSACTION 'excluded'});
for my $restart (0, 1)
{
	$node->restart if $restart;
	fails("SET lock_timeout = '50ms'; UPDATE excluded SET v = 5 WHERE id = 1", qr/canceling statement due to lock timeout/, '... until there is no primary key');
}
sql("ROLLBACK PREPARED 'excluded'; DROP TABLE excluded");
fails("BEGIN; UPDATE o SET v = 0 WHERE id = 20; PREPARE TRANSACTION 'equal'", qr/already in use/, 'an identifier that is in use');
is(sql('SELECT 1 FROM o WHERE id = 20 FOR UPDATE NOWAIT'), '1', '... leaves nothing');
fails("COMMIT PREPARED 'none'", qr/prepared transaction with identifier "none" does not exist/, 'one that is not there');
fails("BEGIN; COMMIT PREPARED 'equal'", qr/cannot run inside a transaction block/, 'not in a transaction');
sql('CREATE ROLE nobody LOGIN; CREATE DATABASE other');
($_) = $node->psql('postgres', "COMMIT PREPARED 'equal'", connstr => $node->connstr('postgres') . ' user=nobody');
my ($ret, $out, $err) = $node->psql('other', "COMMIT PREPARED 'equal'");
like($err, qr/belongs to another database/, 'not from another database');
is(prepared(), '1', 'it is there still');
is(sql('SELECT count(*) FROM (SELECT 1 FROM keyless FOR UPDATE SKIP LOCKED) x'), '24', '... with its locks');
sql("ROLLBACK PREPARED 'equal'");
is(sql('SELECT count(*) FROM (SELECT 1 FROM keyless FOR UPDATE SKIP LOCKED) x'), '34', '... until it is ended');

$node->safe_psql('other', q{
	CREATE EXTENSION mot; CREATE TABLE m (i int PRIMARY KEY) USING mot; BEGIN; INSERT INTO m VALUES (1); PREPARE TRANSACTION 'other'});
fails('DROP DATABASE other', qr/prepared transaction using the database/, 'a database that has one cannot be dropped');
$node->safe_psql('other', "ROLLBACK PREPARED 'other'");
sql('DROP DATABASE other');

# keys whose form is made anew at each start
sql(q{
	CREATE TABLE named (name text COLLATE "en-x-icu" PRIMARY KEY, v int) USING mot;
	INSERT INTO named SELECT n, 1 FROM unnest(ARRAY['a', 'B', 'c', 'ä', 'Zebra', 'é']) n;
	BEGIN;
	UPDATE named SET v = 2 WHERE name = 'B';
	UPDATE named SET name = 'Ångström' WHERE name = 'a';
	DELETE FROM named WHERE name = 'c';
	INSERT INTO named VALUES ('ß', 3);
	SELECT 1 FROM named WHERE name = 'ä' FOR UPDATE;
	PREPARE TRANSACTION 'named'});
for my $restart (0, 1)
{
	$node->restart if $restart;
	is(sql("SELECT string_agg(name, ' ' ORDER BY name) FROM (SELECT name FROM named FOR UPDATE SKIP LOCKED) x"), 'é Zebra', 'rows with collated keys are locked');
	is(sql("SELECT string_agg(name || v, ' ' ORDER BY name) FROM named"), 'a1 ä1 B1 c1 é1 Zebra1', '... and as they were');
}
sql("COMMIT PREPARED 'named'");
is(sql("SELECT string_agg(name || v, ' ' ORDER BY name) FROM named"), 'ä1 Ångström1 B2 é1 ß3 Zebra1', '... until it is committed');

# -------------------------------------------------------------------- a thousand

sql('CREATE TABLE many (id int PRIMARY KEY, v int) USING mot; INSERT INTO many SELECT i, 0 FROM generate_series(1, 1000) i; CREATE TABLE many_h (id int, v int)');
my $many = join("\n", map { "BEGIN; UPDATE many SET v = $_ WHERE id = $_; INSERT INTO many VALUES ($_ + 10000, $_); INSERT INTO many_h VALUES ($_, $_); PREPARE TRANSACTION 'many $_';" } 1 .. 1000);
sql($many);
is(prepared(), '1000', 'a thousand are prepared');
sql('CHECKPOINT');
$node->stop('immediate');
$node->start;
is(prepared(), '1000', '... and after a crash');
is(sql('SELECT count(*) FROM (SELECT 1 FROM many FOR UPDATE SKIP LOCKED) x'), '0', '... with their locks');
sql(join("\n", map { ($_ % 3 ? 'COMMIT' : 'ROLLBACK') . " PREPARED 'many $_';" } 1 .. 1000));
is(sql('SELECT count(*), sum(v) FROM many WHERE id > 10000'), sql('SELECT count(*), sum(v) FROM many_h'), '... two in three are committed');
is(sql('SELECT count(*), sum(v) FROM many WHERE id <= 1000 AND v > 0'), sql('SELECT count(*), sum(v) FROM many_h'), '... all of each');
is(sql('SELECT count(*) FROM (SELECT 1 FROM many FOR UPDATE NOWAIT) x'), '1667', '... and no lock is left');
ok($node->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'), '... nor anything owed');

$node->stop;

# ------------------------------------------------------------------- the brim

$node = use_node(PostgreSQL::Test::Cluster->new('brim'));
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '64MB'\nmax_prepared_transactions = 2\n");
$node->start;
sql(q{CREATE EXTENSION mot; CREATE TABLE b (id int PRIMARY KEY, t text) USING mot;});
$node->psql('postgres', q{DO $$ BEGIN FOR i IN 1 .. 100000 LOOP INSERT INTO b VALUES (i, repeat('x', 1000)); END LOOP; EXCEPTION WHEN out_of_memory THEN NULL; END $$});
my $n = 0;
for my $size (1000, 100, 10, 1)
{
	while ($n < 100000)
	{
		my ($r) = $node->psql('postgres', "INSERT INTO b SELECT 1000000 + $n + i, repeat('x', 1000) FROM generate_series(1, $size) i");
		last if $r;
		$n += $size;
	}
}
my $rows = sql('SELECT count(*) FROM b');
cmp_ok($rows, '>', 1000, 'the memory is full');
my ($ok, $failed) = (0, 0);
for my $half ('id % 2 = 0', 'true')
{
	my ($r, $o, $e) = $node->psql('postgres', "BEGIN; UPDATE b SET t = t || 'y' WHERE $half; PREPARE TRANSACTION 'brim'");
	if ($r == 0) { $ok++; sql("ROLLBACK PREPARED 'brim'") }
	else { $failed++; like($e, qr/out of memory/, 'memory is out') }
	is(sql('SELECT count(*), count(*) FILTER (WHERE length(t) = 1000) FROM b'), "$rows|$rows", '... nothing has changed');
}
my ($r) = $node->psql('postgres', "BEGIN; DELETE FROM b WHERE id % 2 = 0; PREPARE TRANSACTION 'less'");
is(sql('SELECT count(*) FROM b'), $rows, 'rows deleted by a prepared transaction are there') if $r == 0;
if ($r == 0)
{
	$node->stop('immediate');
	$node->start;
	is(sql('SELECT count(*) FROM b'), $rows, '... after a crash, too');
	sql("COMMIT PREPARED 'less'");
	cmp_ok(sql('SELECT count(*) FROM b'), '<', $rows, '... until it is committed');
}
$node->append_conf('postgresql.conf', 'max_prepared_transactions = 0');
$node->restart;
fails("BEGIN; INSERT INTO b VALUES (-1); PREPARE TRANSACTION 'no'", qr/prepared transactions are disabled/, 'max_prepared_transactions = 0');
is(sql('SELECT count(*) FROM b WHERE id = -1'), '0', '... leaves nothing');
$node->stop;
done_testing();
