# PREPARE TRANSACTION at SERIALIZABLE: what such a transaction has read, in tables of both kinds,
# stays as it is until it is decided, also over crashes; readers do not wait for it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared;
use Test::More;

my $node = make_node('serial', "deadlock_timeout = '100ms'\n");
sql(q{
	CREATE TABLE o (id int PRIMARY KEY, v int, k int) USING mot;
	CREATE INDEX ON o (k);
	CREATE FOREIGN TABLE f (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE h (id int PRIMARY KEY, v int);
	CREATE TABLE beside (id int PRIMARY KEY, v int) USING mot;
	INSERT INTO o SELECT i, i, i FROM generate_series(1, 20) i;
	INSERT INTO f SELECT i, i FROM generate_series(1, 20) i;
	INSERT INTO h SELECT i, i FROM generate_series(1, 2000) i;
	INSERT INTO beside SELECT i, i FROM generate_series(1, 20) i;
	ANALYZE;
});

my $serial = 'BEGIN ISOLATION LEVEL SERIALIZABLE;';
my $timeout = qr/canceling statement due to lock timeout/;
my $failure = qr/could not serialize access/;

sub prepare { my ($work) = @_; sql("$serial $work; PREPARE TRANSACTION 'p'"); return }

# who changes what it has read waits; who does not, does not
for my $after ('at once', 'after a crash')
{
	prepare('SELECT v FROM o WHERE id = 1; UPDATE o SET v = 100 WHERE id = 2');
	if ($after ne 'at once')
	{
		sql('CHECKPOINT');
		$node->stop('immediate');
		$node->start;
	}
	fails("SET lock_timeout = '100ms'; $serial UPDATE o SET v = 7 WHERE id = 1; COMMIT", $timeout, "$after: a row that it has read is changed by nobody who is serializable");
	fails("SET lock_timeout = '100ms'; $serial DELETE FROM o WHERE id = 1; COMMIT", $timeout, "$after: nor deleted");
	fails("SET lock_timeout = '100ms'; $serial UPDATE o SET v = 7 WHERE id = 1; PREPARE TRANSACTION 'q'", $timeout, "$after: nor is that prepared");
	fails("SET statement_timeout = '300ms'; $serial UPDATE o SET v = 7 WHERE id = 1; COMMIT", qr/canceling statement due to statement timeout/, "$after: statement_timeout ends the wait");
	is(sql("$serial SELECT v FROM o WHERE id = 1; SELECT v FROM o WHERE id = 2; COMMIT"), "1\n2", "$after: readers do not wait");
	is(sql("UPDATE o SET v = 1 WHERE id = 1 RETURNING v"), '1', "$after: nor do others");
	is(sql("SET lock_timeout = '1s'; $serial UPDATE h SET v = v WHERE id = 1 RETURNING v; COMMIT"), '1', "$after: nor heap tables, of which it knows nothing");
	my $waits = $node->background_psql('postgres');
	$waits->query_until(qr/begun/, "SET application_name = 'waits';\n$serial\nUPDATE o SET v = v + 10 WHERE id = 1;\n\\echo begun\nCOMMIT;\nSELECT 'done';\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'waits' AND wait_event_type = 'Lock' AND wait_event = 'transactionid'"), "$after: one waits for its number");
	sql("COMMIT PREPARED 'p'");
	is($waits->query_safe('SELECT sum(v) FROM o WHERE id <= 2'), "done\n111", "$after: ... and goes on");
	$waits->quit;
	sql('UPDATE o SET v = id');
}

# new rows in what it has looked for
for my $case ([ 'SELECT count(*) FROM o WHERE k BETWEEN 100 AND 200', 'INSERT INTO o VALUES (150, 150, 150)' ],
	[ 'SELECT count(*) FROM o WHERE k BETWEEN 100 AND 200', 'UPDATE o SET k = 150 WHERE id = 3' ],
	[ 'SELECT v FROM o WHERE id = 300', 'INSERT INTO o VALUES (300, 1, 1)' ],
	[ 'SELECT sum(v) FROM f', 'INSERT INTO f VALUES (300, 1)' ])
{
	my ($reads, $writes) = @$case;
	prepare("$reads; UPDATE o SET v = 100 WHERE id = 2");
	fails("SET lock_timeout = '100ms'; $serial $writes; COMMIT", $timeout, "$reads: not $writes");
	sql("ROLLBACK PREPARED 'p'");
	sql("$serial $writes; ROLLBACK; $serial $writes; COMMIT");
	is(sql('SELECT v FROM o WHERE id = 2'), '2', '... until it is rolled back');
	sql('DELETE FROM o WHERE id > 20; DELETE FROM f WHERE id > 20; UPDATE o SET k = id');
}

# write skew: two of which each has read what the other changes
for my $case ([ 'o', 'o' ], [ 'f', 'o' ], [ 'o', 'h' ], [ 'h', 'o' ], [ 'h', 'h' ])
{
	my ($one, $other) = @$case;
	for my $end ('COMMIT', "PREPARE TRANSACTION 'q'")
	{
		sql("UPDATE $_ SET v = id WHERE id <= 2") for qw(o f h);
		my $touch = "SELECT v FROM beside WHERE id = 1";
		my $late = $node->background_psql('postgres', on_error_stop => 0);
		$late->query_safe("SET lock_timeout = '300ms'");
		$late->query_safe("$serial $touch; SELECT v FROM $other WHERE id = 2; UPDATE $one SET v = 50 WHERE id = 1");
		my ($ret, $out, $err) = $node->psql('postgres', "$serial $touch; SELECT v FROM $one WHERE id = 1; UPDATE $other SET v = 50 WHERE id = 2; UPDATE beside SET v = v WHERE id = 2; PREPARE TRANSACTION 'p'");
		my $prepared = $ret == 0;
		$late->query($end);
		$late->quit;
		# heap tables may have told one of them of the other before
		sql("COMMIT PREPARED '$_'") for split /\n/, sql('SELECT gid FROM pg_prepared_xacts');
		my $both = sql("SELECT count(*) FROM (SELECT v FROM $one WHERE id = 1 UNION ALL SELECT v FROM $other WHERE id = 2) x WHERE v = 50");
		is($both, '1', "$one, $other, $end: of a skew one comes through" . ($prepared ? ', the prepared one' : ''));
	}
}

# F overwrites in a heap table what T has read, P sees F and not T: a circle if F could commit
prepare('SELECT v FROM h WHERE id = 5; UPDATE o SET v = 200 WHERE id = 5');
fails("SET lock_timeout = '100ms'; $serial UPDATE h SET v = 200 WHERE id = 5; COMMIT", $timeout, 'a heap row that it has read, and nothing else touched');
$node->stop('immediate');
$node->start;
fails("SET lock_timeout = '100ms'; $serial UPDATE h SET v = 200 WHERE id = 5; COMMIT", $timeout, '... after a crash');
sql('UPDATE beside SET v = v WHERE id = 1');
fails("SET lock_timeout = '100ms'; $serial UPDATE h SET v = 200 WHERE id = 5; COMMIT", $timeout, '... and restored');
sql("COMMIT PREPARED 'p'");
sql("$serial UPDATE h SET v = 200 WHERE id = 5; COMMIT");

# what a transaction has read is being changed already
{
	my $active = $node->background_psql('postgres');
	$active->query_safe("$serial UPDATE h SET v = 6 WHERE id = 6");
	fails("$serial SELECT v FROM h WHERE id = 6; UPDATE o SET v = 6 WHERE id = 6; PREPARE TRANSACTION 'no'", $failure, 'heap rows read that are being changed: not prepared');
	$active->query_safe('ROLLBACK');
	$active->quit;
	prepare('SELECT v FROM o WHERE id = 7; UPDATE o SET v = 6 WHERE id = 6');
	fails("$serial SELECT v FROM o WHERE id = 6; UPDATE o SET v = 8 WHERE id = 8; PREPARE TRANSACTION 'no'", $failure, 'rows read that a prepared one has changed: not prepared');
	is(sql("$serial SELECT v FROM o WHERE id = 6; UPDATE o SET v = 8 WHERE id = 8; COMMIT; SELECT v FROM o WHERE id = 8"), "6\n8", '... but committed, before it');
	sql("ROLLBACK PREPARED 'p'");
}

# those that have nothing to keep
sql("$serial SELECT sum(v) FROM o; PREPARE TRANSACTION 'reads'");
is(sql("SET lock_timeout = '1s'; $serial UPDATE o SET v = v; COMMIT; SELECT count(*) FROM pg_prepared_xacts"), '1', 'who has only read keeps nobody');
sql("COMMIT PREPARED 'reads'");
sql("$serial SELECT 1 FROM o WHERE id = 1 FOR UPDATE; PREPARE TRANSACTION 'locks'");
is(sql("SET lock_timeout = '1s'; $serial UPDATE o SET v = v WHERE id = 2 RETURNING id; COMMIT"), '2', 'who has only locked keeps what is locked');
fails("SELECT 1 FROM o WHERE id = 1 FOR UPDATE NOWAIT", qr/could not obtain lock/, '... and that');
sql("ROLLBACK PREPARED 'locks'");

# heap changed after reading here, and nothing changed here
prepare('SELECT v FROM o WHERE id = 9; UPDATE h SET v = 9 WHERE id = 9');
for my $restart (0, 1)
{
	$node->restart if $restart;
	fails("SET lock_timeout = '100ms'; $serial UPDATE o SET v = 10 WHERE id = 9; COMMIT", $timeout, "restart $restart: read here, changed there");
}
sql("COMMIT PREPARED 'p'; $serial UPDATE o SET v = 10 WHERE id = 9; COMMIT");
is(sql("SELECT sum(problems) FROM (SELECT (mot_verify(t)).problems FROM unnest(ARRAY['o', 'f', 'beside']::regclass[]) t) x"), '0', 'nothing is missing');
ok($node->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'), '... nor left');
$node->stop;
done_testing();
