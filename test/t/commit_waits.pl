# Who waits for a commit that waits itself, for NOTIFY's lock, for a standby that
# is not there, for another module: nobody who would not with heap tables, and no
# checkpoint; whoever does wait can be interrupted.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('waits');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
synchronous_standby_names = 'absent'
synchronous_commit = local
deadlock_timeout = 100ms
});
$node->start;
my $go = $node->data_dir . '/mot.fault.go';
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE m (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE h (id int PRIMARY KEY, v int);
	INSERT INTO m SELECT i, 0 FROM generate_series(1, 5) i;
	INSERT INTO h SELECT i, 0 FROM generate_series(1, 5) i;
	CHECKPOINT});

my %session;

sub session
{
	my ($name) = @_;
	if (!$session{$name})
	{
		$session{$name} = $node->background_psql('postgres', on_error_stop => 0);
		$session{$name}->query_safe("SET application_name = '$name'");
	}
	return $session{$name};
}

# begin what will wait
sub begin
{
	my ($name, $sql) = @_;
	session($name)->query_until(qr/begun/, "\\echo begun\n$sql;\n");
	return;
}

# what has been begun has come to its end
sub ended
{
	my ($name, $what) = @_;
	my $s = session($name);
	my ($ok) = eval { $s->query('SELECT 1'); 1 };
	my $said = $s->{stderr};
	$s->{stderr} = '';
	ok($ok, $what);
	return $said;
}

sub waits
{
	my ($name, $how) = @_;
	my $is = $node->poll_query_until('postgres', "SELECT $how FROM pg_stat_activity WHERE application_name = '$name'");
	ok($is, "$name waits: $how");
	return;
}

sub cancel { return $node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '$_[0]'") }

my $standby = "wait_event = 'SyncRep'";
my $notify = "wait_event_type = 'Lock' AND wait_event = 'object'";

# does it answer soon?  Returns the answer, or what went wrong
sub soon
{
	my ($sql) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '10s'; $sql");
	return $ret == 0 ? $out : $err;
}

# ------------------------------------------------ NOTIFY's lock and checkpoints

# keeper has NOTIFY's lock and waits; the others wait for it
for my $round ('SERIALIZABLE', 'READ COMMITTED')
{
	begin('keeper', q{SET synchronous_commit = on; BEGIN; UPDATE m SET v = v + 1 WHERE id = 1; NOTIFY c; COMMIT});
	waits('keeper', $standby);
	begin('second', "BEGIN ISOLATION LEVEL $round; UPDATE m SET v = v + 1 WHERE id = 2; NOTIFY c; COMMIT");
	waits('second', $notify);
	begin('third', "BEGIN ISOLATION LEVEL $round; SELECT v FROM h WHERE id = 3; UPDATE m SET v = v + 1 WHERE id = 3; UPDATE h SET v = v + 1 WHERE id = 3; NOTIFY c; COMMIT");
	waits('third', $notify);
	is(soon('SELECT sum(v) FROM m'), $round eq 'SERIALIZABLE' ? '0' : '2', "$round: what waits is not seen");
	is(soon('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(v) FROM m; COMMIT'), $round eq 'SERIALIZABLE' ? '0' : '2', '... at SERIALIZABLE either');
	is(soon('CHECKPOINT'), '', '... and keeps no checkpoint');
	like(soon("SET statement_timeout = '100ms'; BEGIN ISOLATION LEVEL $round; UPDATE m SET v = v + 1 WHERE id = 4; NOTIFY c; COMMIT"),
		qr/canceling statement due to statement timeout/, '... nor anybody for longer than statement_timeout');
	begin('checkpoint', 'CHECKPOINT');
	cancel('second');
	like(ended('second', 'who waits for the lock can be cancelled'), qr/canceling statement due to user request/, '... and is told so');
	cancel('keeper');
	like(ended('keeper', 'the lock is let go'), qr/canceling wait for synchronous replication/, '... with a warning');
	ended('third', 'and the next one goes on');
	ended('checkpoint', 'as does the checkpoint');
}

# a large transaction, which is logged before the server comes to its temporary tables
session('keeper')->query_safe('SET synchronous_commit = local; CREATE TEMP TABLE tt (id int) ON COMMIT DELETE ROWS');
my $temporary = session('keeper')->query_safe('SELECT pg_my_temp_schema()::regnamespace') =~ s/\s//gr;
session('second')->query_safe("BEGIN; LOCK TABLE $temporary.tt IN ACCESS SHARE MODE");
begin('keeper', 'BEGIN; SELECT FROM tt; INSERT INTO m SELECT i, 0 FROM generate_series(1000, 90000) i; COMMIT');
waits('keeper', "wait_event_type = 'Lock' AND wait_event = 'relation'");
is(soon('CHECKPOINT'), '', 'a large commit that waits keeps no checkpoint');
is(soon('INSERT INTO m SELECT i, 0 FROM generate_series(100000, 190000) i'), '', '... and no other large commit');
is(soon('DELETE FROM m WHERE id >= 100000'), '', '... whose rows can be deleted');
is(soon('SELECT count(*) FROM m WHERE id >= 1000'), '0', '... and is not seen');
session('second')->query_safe('CHECKPOINT');
pass('who is waited for can wait for a checkpoint');
$node->stop('immediate');
eval { $_->quit } for values %session;
%session = ();
$node->start;
is(soon('SELECT count(*) FROM m WHERE id >= 1000'), '0', '... nor after a crash');
for my $end ('cancelled', 'committed')
{
	session('keeper')->query_safe('SET synchronous_commit = local; CREATE TEMP TABLE tt (id int) ON COMMIT DELETE ROWS');
	$temporary = session('keeper')->query_safe('SELECT pg_my_temp_schema()::regnamespace') =~ s/\s//gr;
	session('second')->query_safe("BEGIN; LOCK TABLE $temporary.tt IN ACCESS SHARE MODE");
	begin('keeper', 'BEGIN; SELECT FROM tt; INSERT INTO m SELECT i, 0 FROM generate_series(1000, 90000) i; COMMIT');
	waits('keeper', "wait_event_type = 'Lock' AND wait_event = 'relation'");
	is(soon('CHECKPOINT'), '', 'a checkpoint meanwhile');
	cancel('keeper') if $end eq 'cancelled';
	session('second')->query_safe('COMMIT') if $end eq 'committed';
	my $said = ended('keeper', "the commit is $end");
	is($said =~ /canceling statement due to user request/ ? 'cancelled' : 'committed', $end, '... as it says');
	$node->stop('immediate');
	eval { $_->quit } for values %session;
	%session = ();
	$node->start;
	is(soon('SELECT count(*) FROM m WHERE id >= 1000'), $end eq 'cancelled' ? '0' : '89001', '... and so it is after a crash');
}
$node->safe_psql('postgres', 'DELETE FROM m WHERE id >= 1000');

# those that are SERIALIZABLE over both kinds of tables commit one at a time
my $both = 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT FROM h WHERE id = 5; UPDATE m SET v = v + 0 WHERE id =';
begin('keeper', "SET synchronous_commit = on; $both 4; COMMIT");
waits('keeper', $standby);
like(soon("SET statement_timeout = '100ms'; $both 5; COMMIT"), qr/canceling statement due to statement timeout/, 'who waits for another commit over both kinds is timed');
begin('second', "$both 5; COMMIT");
waits('second', "wait_event_type = 'Lock' AND wait_event = 'spectoken'");
cancel('second');
like(ended('second', '... and can be cancelled'), qr/canceling statement due to user request/, '... and is told so');
cancel('keeper');
ended('keeper', 'the commit goes on');
is(soon('SELECT string_agg(v::text, $$ $$ ORDER BY id) FROM m'), '2 0 2 0 0', 'what was committed is there');
is(soon('SELECT v FROM h WHERE id = 3'), '2', '... of both kinds');

SKIP:
{
	skip 'not a build with fault points', 21 unless $ENV{MOT_FAULT_POINTS};

	# both at once, and the checkpoint's gate between them
	begin('keeper', q{SET synchronous_commit = local; SET mot.fault = 'commit-drawn:wait'; BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE m SET v = v + 1 WHERE id = 4; INSERT INTO m VALUES (6, 6); COMMIT});
	ok($node->wait_for_log(qr/fault point "commit-drawn" reached/), 'a timestamp has been drawn');
	is(soon('UPDATE m SET v = 50 WHERE id = 5; INSERT INTO m VALUES (7, 7)'), '', 'others commit after it');
	is(soon('CHECKPOINT'), '', 'a checkpoint does not wait for who has drawn');
	is(soon('SELECT v FROM m WHERE id = 5'), '50', 'nor do readers of other rows');
	like(soon(q{SET statement_timeout = '200ms'; SELECT v FROM m WHERE id = 4}), qr/statement timeout/, 'who waits for it can be interrupted');
	begin('reader', 'SELECT v FROM m WHERE id = 4');
	waits('reader', "wait_event_type = 'Extension' AND wait_event = CASE WHEN current_setting('server_version_num')::int < 170000 THEN 'Extension' ELSE 'mot_commit' END");
	append_to_file($go, '');
	ended('keeper', 'it goes on');
	unlink $go;
	ended('reader', 'as does who waited for it');

	# no listener is told of a row that it does not see yet
	for my $half ('', 'UPDATE h SET v = 100 WHERE id = 5;')
	{
		my $what = $half ? 'mixed' : 'memory only';
		session('listener')->query_safe('LISTEN c; BEGIN');
		$node->safe_psql('postgres', q{NOTIFY c, 'earlier'});
		my $from = -s $node->logfile;
		begin('writer', qq{SET mot.fault = 'commit-inserted:wait'; BEGIN; UPDATE m SET v = 100 WHERE id = 5; $half NOTIFY c, 'told'; COMMIT});
		ok($node->wait_for_log(qr/fault point "commit-inserted" reached/, $from), "$what: committed, not installed");
		my $told = session('listener')->query_until(qr/told/, "COMMIT;\n\\echo\nSELECT;\n");
		like($told, qr/told/, '... the listener has been told');
		session('listener')->query_until(qr/looks/, "\\echo looks\nSELECT 'sees ' || v FROM m WHERE id = 5;\n");
		append_to_file($go, '');
		like(session('listener')->query('SELECT 1'), qr/sees 100/, '... and sees the row');
		ended('writer', '... of which it was told');
		unlink $go;
		session('writer')->query_safe(q{SET mot.fault = ''; UPDATE m SET v = 0 WHERE id = 5});
	}

	# a compiled procedure's statement, which takes no snapshot that would say what is committed
	session('procedure')->query_safe(q{
		CREATE FUNCTION halves(hold bool) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE a int; b int; said text := '';
		BEGIN
			FOR i IN 4 .. 6 LOOP
				SELECT v INTO a FROM h WHERE id = LEAST(i, 5);
				SELECT v INTO b FROM m WHERE id = LEAST(i, 5);
				said := said || a || ' ' || b || ';';
				IF hold THEN
					PERFORM pg_advisory_xact_lock(i);
				END IF;
			END LOOP;
			RETURN said;
		END $$;
		SET mot.jit_procedures = on; SET mot.jit_procedures_above_executions = 2; SET mot.jit_prepare_above_executions = 0;
		SET plan_cache_mode = force_generic_plan;
		UPDATE h SET v = 0; UPDATE m SET v = 0;
		SELECT halves(false), halves(true), halves(false) FROM generate_series(1, 5)});
	session('listener')->query_safe('SELECT pg_advisory_lock(4)');
	begin('procedure', q{SELECT 'saw ' || halves(true)});
	waits('procedure', "wait_event_type = 'Lock' AND wait_event = 'advisory'");
	my $from = -s $node->logfile;
	begin('writer', q{SET mot.fault = 'commit-inserted:wait'; BEGIN; UPDATE m SET v = 100 WHERE id = 5; UPDATE h SET v = 100 WHERE id = 5; COMMIT});
	ok($node->wait_for_log(qr/fault point "commit-inserted" reached/, $from), 'committed, not installed');
	session('listener')->query_safe('SELECT pg_advisory_unlock(4)');
	waits('procedure', "wait_event_type IS DISTINCT FROM 'Lock'");
	sleep 1;
	append_to_file($go, '');
	like(session('procedure')->query('SELECT 1'), qr/saw 0 0;100 100;100 100;/, "a procedure that has seen one half waits for the other");
	ended('writer', '... which comes');
	unlink $go;
}

$_->quit for values %session;
my $rows = $node->safe_psql('postgres', 'SELECT string_agg(v::text, $$ $$ ORDER BY id) FROM m');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT string_agg(v::text, $$ $$ ORDER BY id) FROM m'), $rows, 'and so it is after a crash');
$node->stop;
done_testing();
