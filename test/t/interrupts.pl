# A backend is cancelled, and terminated, at each named point on the way of its
# commit and of its definitions, and in each kind of wait.  All of the
# transaction is there afterwards or nothing, in tables of both kinds, and
# nothing of the backend is left: no lock, no snapshot, no memory.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my @points = grep { /^(commit|mixed|ddl)-/ } split(' ', $ENV{MOT_FAULT_POINTS} // '');
plan skip_all => 'not a build with fault points' unless @points;

my $node = PostgreSQL::Test::Cluster->new('interrupts');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
deadlock_timeout = 20ms
});
$node->start;
my $go = $node->data_dir . '/mot.fault.go';

# one session asks all the questions
my $admin;

sub ask
{
	my ($sql) = @_;
	if (!$admin)
	{
		$admin = $node->background_psql('postgres');
		$admin->query_safe('SET client_min_messages = error');
	}
	return $admin->query_safe($sql);
}

$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE m (id int PRIMARY KEY, v int NOT NULL, u int UNIQUE, t text) SERVER mot_server;
	CREATE INDEX ON m (v);
	CREATE TABLE h (id int PRIMARY KEY, v int NOT NULL);
	INSERT INTO m SELECT i, 0, i, 'as it was' FROM generate_series(1, 20) i;
	INSERT INTO h VALUES (1, 0);
	CREATE FUNCTION mot_test_object_bytes() RETURNS bigint LANGUAGE c AS '$libdir/mot'});
$node->safe_psql('postgres', 'CREATE DATABASE pattern');
$node->safe_psql('pattern', 'CREATE EXTENSION mot; CREATE FOREIGN TABLE p (i int PRIMARY KEY) SERVER mot_server; INSERT INTO p VALUES (1)');

# What is at work, and afterwards all there or not at all: "$n" is what tells
# one time from the next.
my $changes = q{
	UPDATE m SET v = $n WHERE id IN (1, 2);
	UPDATE m SET u = -u, t = repeat('x', 300) WHERE id = 3;
	DELETE FROM m WHERE id = 4;
	INSERT INTO m VALUES (100, $n, 100);
	INSERT INTO m VALUES (5, 0, 5) ON CONFLICT (id) DO UPDATE SET v = $n;
	SAVEPOINT s;
	UPDATE m SET v = -1 WHERE id = 6;
	ROLLBACK TO s;
	SELECT count(*) FROM (SELECT FROM m WHERE id > 10 FOR SHARE) t;
	DECLARE c CURSOR FOR SELECT * FROM m ORDER BY v;
	FETCH 3 FROM c;};
my %work = (
	memory => "BEGIN; $changes COMMIT;",
	'memory, serializable' => "BEGIN ISOLATION LEVEL SERIALIZABLE; $changes COMMIT;",
	mixed => "BEGIN; $changes UPDATE h SET v = \$n; COMMIT;",
	'mixed, repeatable read' => "BEGIN ISOLATION LEVEL REPEATABLE READ; $changes UPDATE h SET v = \$n; COMMIT;",
	'mixed, serializable' => "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM h; $changes UPDATE h SET v = \$n; COMMIT;",
	definitions => "BEGIN; $changes CREATE FOREIGN TABLE made (i int PRIMARY KEY) SERVER mot_server; INSERT INTO made VALUES (1);
		ALTER FOREIGN TABLE made ADD COLUMN j int DEFAULT 3; CREATE INDEX ON made (j); TRUNCATE made; UPDATE h SET v = \$n; COMMIT;",
	large => "BEGIN; $changes INSERT INTO m SELECT i, 0, i, repeat('y', 1000) FROM generate_series(1001, 4000) i; UPDATE h SET v = \$n; COMMIT;",
	database => 'CREATE DATABASE copied TEMPLATE pattern; DROP DATABASE copied;');

my $n = 0;
my %reached;
my %done;

# psql in the background, which we know by its application_name
sub begin_client
{
	my ($sql, $out) = @_;
	local $ENV{PGAPPNAME} = 'interrupted';
	return IPC::Run::start([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', (map { ('-c', $_) } split(/;\s*/, $sql)), $node->connstr('postgres') ],
		'<', \undef, '>', $out, '2>&1');
}

sub interrupt
{
	my ($how) = @_;
	return ask("SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE application_name = 'interrupted'");
}

sub wait_until
{
	my ($condition) = @_;
	for (1 .. 3000)
	{
		return 1 if $condition->();
		sleep 0.02;
	}
	return 0;
}

# What is wrong after it?  And then everything is as before.
sub left
{
	my ($mixed) = @_;
	my @wrong;

	push @wrong, 'the backend is still there'
	  unless wait_until(sub { ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interrupted'") eq '0' });
	my $out = ask(qq{
		SELECT count(*) FILTER (WHERE v = $n AND id IN (1, 2, 5, 100)) || ' ' || count(*) FILTER (WHERE u = -3) || ' ' ||
			count(*) FILTER (WHERE id = 4) FROM m});
	push @wrong, "half of it is there: $out" unless $out eq '4 1 0' || $out eq '0 0 1';
	my $there = $out eq '4 1 0';
	my $heap = ask("SELECT v = $n FROM h") eq 't';
	push @wrong, "memory-optimized: $there, heap: $heap" if $mixed && $there != $heap;
	$done{ $there ? 'committed' : 'not' }++;

	$out = ask('SELECT count(*) FROM (SELECT id FROM m FOR UPDATE SKIP LOCKED) t') - ask('SELECT count(*) FROM m');
	push @wrong, "locked: $out rows" if $out != 0;
	$out = ask(q{
		SELECT 'lock', pid, mode, locktype FROM pg_locks WHERE pid <> pg_backend_pid() AND pid IN (SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend')
		UNION ALL SELECT 'problem', problems, object::text, first_problem FROM mot_verify('m') WHERE problems <> 0});
	push @wrong, $out if $out ne '';
	# (whoever reclaims, or writes a checkpoint, has one meanwhile)
	push @wrong, "snapshot: $out"
	  unless wait_until(sub { ($out = ask('SELECT pid FROM mot_stat_snapshots WHERE pid <> pg_backend_pid()')) eq '' });
	ask(q{
		DROP FOREIGN TABLE IF EXISTS made;
		BEGIN;
		DELETE FROM m WHERE id >= 100;
		INSERT INTO m VALUES (4, 0, 4, 'as it was') ON CONFLICT DO NOTHING;
		UPDATE m SET v = 0, u = abs(u), t = 'as it was' WHERE v <> 0 OR u < 0;
		COMMIT});
	ask('DROP DATABASE IF EXISTS copied');
	return join("\n", @wrong);
}

sub at_point
{
	my ($kind, $point, $how) = @_;
	my $out = '';
	my $from = -s $node->logfile;

	$n++;
	unlink $go;
	my $client = begin_client("SET mot.fault = '$point:wait:1'; " . ($work{$kind} =~ s/\$n/$n/gr), \$out);
	wait_until(sub { $client->pump_nb; slurp_file($node->logfile, $from) =~ /fault point "\Q$point\E" reached/ || !$client->pumpable });
	my $there = slurp_file($node->logfile, $from) =~ /fault point "\Q$point\E" reached/;
	interrupt($how) if $there;
	append_to_file($go, '');
	$client->finish;
	if ($there)
	{
		$reached{$point}++;
		is(left($kind =~ /mixed|definitions|large/), '', "$how at $point: $kind");
	}
	else
	{
		left(0);
	}
	unlink $go;
	return;
}

# Which way leads to which points?  One run with all of them told.
my %points_of;

sub points_of
{
	my ($kind) = @_;
	return @{ $points_of{$kind} } if $points_of{$kind};
	my $out = '';
	my $from = -s $node->logfile;

	$n++;
	my @some = @points;
	my %found;
	while (my @now = splice(@some, 0, 16))
	{
		my $client = begin_client('SET mot.fault = \'' . join(',', map { "$_:log:1" } @now) . '\'; ' . ($work{$kind} =~ s/\$n/$n/gr), \$out);
		$client->finish;
		left(0);
	}
	my $log = slurp_file($node->logfile, $from);
	$found{$1} = 1 while $log =~ /fault point "([^"]+)" reached/g;
	$points_of{$kind} = [ sort keys %found ];
	return @{ $points_of{$kind} };
}

# Bytes of all objects that are in use, when there are no rows and all is
# reclaimed.  Exact: what the views count are pages, more or fewer of which are
# partly used, and what sessions leave in their caches for those after them.
sub memory
{
	ask('DELETE FROM m');
	wait_until(sub { ask('SELECT retired_objects FROM mot_stat_memory') eq '0' });
	my $used = ask('SELECT mot_test_object_bytes()');
	ask(q{INSERT INTO m SELECT i, 0, i, 'as it was' FROM generate_series(1, 20) i});
	return $used;
}

sub round
{
	my (@how) = @_;
	for my $kind (sort keys %work)
	{
		for my $point (points_of($kind))
		{
			at_point($kind, $point, $_) for @how;
		}
	}
	return;
}

# Each kind of wait: what the holder does, and what waits for it
my @waits = (
	[ 'a row', 'UPDATE m SET v = 7 WHERE id = 1', 'UPDATE m SET v = 8 WHERE id = 1' ],
	[ 'a row, of a join with triggers', 'UPDATE m SET v = 7 WHERE id = 7', 'UPDATE m SET v = 8 FROM h WHERE m.id = h.id + 6' ],
	[ 'a row lock', 'SELECT FROM m WHERE id = 1 FOR SHARE', 'SELECT FROM m WHERE id = 1 FOR UPDATE' ],
	[ 'a share', 'SELECT FROM m WHERE id = 1 FOR UPDATE', 'SELECT FROM m WHERE id = 1 FOR KEY SHARE' ],
	[ 'a key', 'INSERT INTO m VALUES (100, 7, 100)', 'INSERT INTO m VALUES (100, 8, 101)' ],
	[ 'a key, on conflict', 'INSERT INTO m VALUES (100, 7, 100)', 'INSERT INTO m VALUES (100, 8, 101) ON CONFLICT (id) DO UPDATE SET v = 9' ],
	[ 'a key in COPY', 'INSERT INTO m VALUES (100, 7, 100)', q{COPY m (id, v, u) FROM PROGRAM 'printf "101,1,101\\n100,8,102\\n"' (FORMAT csv)} ],
	[ 'a row at commit', 'SELECT FROM m WHERE id = 1 FOR UPDATE', 'UPDATE m SET v = 8 WHERE id = 1', 'REPEATABLE READ' ],
	[ 'a row at commit, serializable', 'SELECT FROM m WHERE id = 1 FOR UPDATE', 'UPDATE m SET v = 8 WHERE id = 1', 'SERIALIZABLE' ],
	[ 'a row, in a savepoint', 'UPDATE m SET v = 7 WHERE id = 1', 'UPDATE m SET v = 7 WHERE id = 9; SAVEPOINT s; DELETE FROM m WHERE id = 8; UPDATE m SET v = 8 WHERE id = 1' ],
	[ 'a table', 'LOCK TABLE m IN ACCESS EXCLUSIVE MODE', 'DELETE FROM m' ]);

sub in_wait
{
	my ($what, $holds, $waits, $level, $how, $whom) = @_;
	my ($out, $out2) = ('', '');
	my $holder = $node->background_psql('postgres', on_error_stop => 0);

	$n++;
	$level ||= 'READ COMMITTED';
	$holder->query_safe("BEGIN; $holds");
	my $client = begin_client("BEGIN ISOLATION LEVEL $level; $waits; COMMIT", \$out);
	ok(wait_until(sub { $node->safe_psql('postgres',
				"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interrupted' AND wait_event_type = 'Lock'") eq '1' }),
		"somebody waits for $what") or diag($out);
	if ($whom eq 'waiter')
	{
		interrupt($how);
		$client->finish;
		like($out, $how eq 'cancel' ? qr/canceling statement|cancel/ : qr/terminating connection/, "$how while waiting for $what");
		$holder->query_safe('ROLLBACK');
	}
	else
	{
		# who waited goes on
		ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'");
		$client->finish;
		unlike($out, qr/ERROR|FATAL/, "the holder of $what is terminated");
	}
	$holder->{run}->kill_kill;
	ask(q{
		DELETE FROM m;
		INSERT INTO m SELECT i, 0, i, 'as it was' FROM generate_series(1, 20) i});
	is(left(0), '', "nothing is left of $how while waiting for $what");
	return;
}

sub all_waits
{
	for my $wait (@waits)
	{
		in_wait(@$wait[ 0 .. 3 ], $_, 'waiter') for 'cancel', 'terminate';
		in_wait(@$wait[ 0 .. 3 ], 'terminate', 'holder');
	}
	return;
}

# (a tree that has been higher keeps its root)
ask(q{INSERT INTO m SELECT i, 0, i, repeat('y', 1000) FROM generate_series(1001, 4000) i});
# (and what has counted for a database is kept for the next one: more than there will be at a time, be
# it of dropped ones that are not reclaimed yet)
ask("CREATE DATABASE copied$_ TEMPLATE pattern") for 1 .. 8;
ask("DROP DATABASE copied$_") for 1 .. 8;
my $before = memory();
all_waits();
round('cancel', 'terminate');
is(memory(), $before, 'nothing at all is left in memory');

# all points but those of other work have been met
is(join(' ', grep { !$reached{$_} } @points), '', 'all points were reached');
note("committed in spite of it: $done{committed}; not: $done{not}");
ok($done{committed} && $done{not}, 'interrupted before the commit, and after it');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'no process failed');
$admin->{run}->kill_kill;

# a key that cannot be made while the session commits, and reclaims what was deleted: it is interrupted as before
my ($ret, $out, $err) = $node->psql(
	'postgres', q{
	CREATE TABLE k (id int PRIMARY KEY, v int) USING mot;
	INSERT INTO k SELECT i, i FROM generate_series(1, 200) i;
	SET mot.fault = 'deleted-key:error';
	DELETE FROM k WHERE id <= 100;} . "UPDATE k SET v = v + 1 WHERE id = 200;\n" x 100 . q{
	RESET mot.fault;
	SET statement_timeout = '1s';
	SELECT pg_sleep(20)});
like(slurp_file($node->logfile), qr/could not make an index key of a deleted row/, 'a key cannot be made');
like($err, qr/canceling statement due to statement timeout/, '... and the session can be interrupted afterwards');
$node->stop;
done_testing();
