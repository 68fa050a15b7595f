# A synchronous standby that is not there.  Who waits for it has changed nothing
# that others see, and keeps its locks, in memory-optimized tables as in heap
# tables: everything is done with a table of either kind, and compared.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('absent');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
synchronous_commit = local
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE mot_t (id int PRIMARY KEY, v int, u int UNIQUE) SERVER mot_server;
	CREATE TABLE ordinary_t (id int PRIMARY KEY, v int, u int UNIQUE) USING mot;
	CREATE TABLE heap_t (id int PRIMARY KEY, v int, u int UNIQUE);
	CREATE TABLE other (id int PRIMARY KEY, v int)});
for my $table ('mot_t', 'ordinary_t', 'heap_t')
{
	$node->safe_psql('postgres', "ALTER TABLE $table ADD CONSTRAINT small CHECK (v < 1000000) NOT VALID");
	$node->safe_psql('postgres', "CREATE TABLE child_$table (id int PRIMARY KEY REFERENCES $table)") if $table ne 'mot_t';
}

# what must not wait is given 10 s
sub ask
{
	my ($table, $sql) = @_;
	my $stuck = 0;
	my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '10s'; SET lock_timeout = '50ms'; SET synchronous_commit = on; " . $sql =~ s/\b(child_)?T\b/($1 || '') . $table/egr,
		timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \$stuck);
	die "not even statement_timeout ends it on $table: $sql" if $stuck;
	my $answer = $ret == 0 ? $out : $err =~ s/^(LINE|HINT|DETAIL|CONTEXT|SQL statement|\s+\^).*\n?//gmr;
	$answer =~ s/\s+\z//;
	return "$sql\n" . $answer =~ s/$table/T/gr . "\n";
}

my $name = 0;

# what a commit that waits lets others do, and what becomes of it
sub story
{
	my ($table, $level, $work, $end, $more) = @_;
	my $story = '';
	my $writer;

	$name++;
	$node->safe_psql('postgres', "TRUNCATE $table, other CASCADE; INSERT INTO $table SELECT i, 0, i FROM generate_series(1, 5) i; INSERT INTO other SELECT i, 0 FROM generate_series(1, 5) i");
	$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
	$node->reload;
	$node->poll_query_until('postgres', q{SELECT setting = 'nobody' FROM pg_settings WHERE name = 'synchronous_standby_names'});
	$writer = $node->background_psql('postgres', on_error_stop => 0);
	$writer->query_safe("SET application_name = 'writer $name'; SET synchronous_commit = on");
	$writer->query_until(qr/begun/, "\\echo begun\n" . "BEGIN ISOLATION LEVEL $level; $work COMMIT;\n" =~ s/\bT\b/$table/gr);
	ok($node->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE application_name = 'writer $name'"),
		"$table, $level: the commit waits");

	my @readers = ('READ COMMITTED', 'REPEATABLE READ', $level eq 'SERIALIZABLE' ? () : 'SERIALIZABLE');
	my $all = 'SELECT * FROM T ORDER BY id; SELECT sum(v) FROM T; SELECT * FROM T WHERE u = 100';
	my $both = 'SELECT * FROM T JOIN other USING (id) ORDER BY id; SELECT (SELECT sum(v) FROM T), (SELECT sum(v) FROM other)';
	$story .= ask($table, "BEGIN ISOLATION LEVEL $_; $all; $both; COMMIT") for @readers;
	if ($more)
	{
		$story .= ask($table, "SET synchronous_commit = local; SET default_transaction_isolation = '$_'; ANALYZE T") for 'read committed', 'serializable';
		$story .= join("\n", sort split /\n/, ask($table, 'COPY T TO STDOUT')) . "\n";
		$story .= ask($table, 'COPY (SELECT * FROM T ORDER BY id) TO STDOUT');
		$story .= ask($table, 'BEGIN; ALTER TABLE T VALIDATE CONSTRAINT small; ROLLBACK');
		$story .= ask($table, 'CREATE INDEX ON T (v)');
		$story .= ask($table, "BEGIN ISOLATION LEVEL $_; SELECT id, v FROM T WHERE id = 3 FOR KEY SHARE; SELECT id, v FROM T WHERE id IN (3, 4, 5) ORDER BY id FOR KEY SHARE; ROLLBACK")
		  for @readers;
		$story .= ask($table, "SET synchronous_commit = local; SELECT id, v FROM T WHERE id = $_ FOR KEY SHARE") for 1, 2, 100;
		$story .= ask($table, 'SELECT id FROM T WHERE id = 3 FOR SHARE');
	}
	$story .= ask($table, 'SELECT id FROM T WHERE id = 1 FOR UPDATE NOWAIT');
	$story .= ask($table, 'SET synchronous_commit = local; SELECT id FROM T ORDER BY id FOR SHARE SKIP LOCKED');
	$story .= ask($table, 'UPDATE T SET v = 7 WHERE id = 1');
	$story .= ask($table, 'DELETE FROM T WHERE id = 2');
	$story .= ask($table, 'INSERT INTO T VALUES (100, 1, 7)');
	$story .= ask($table, 'INSERT INTO T VALUES (7, 1, 100) ON CONFLICT (u) DO NOTHING');
	$story .= ask($table, 'SET synchronous_commit = local; UPDATE T SET v = 70 WHERE id = 4; SELECT v FROM T WHERE id = 4');
	$story .= ask($table, 'SET synchronous_commit = local; BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE T SET v = v + 1 WHERE id = 4; SELECT v FROM T WHERE id = 4; COMMIT');
	$story .= ask($table, "BEGIN ISOLATION LEVEL $_; UPDATE T SET v = v + 1 WHERE id IN (4, 5); $all; $both; SET LOCAL synchronous_commit = local; COMMIT") for @readers;
	$story .= ask($table, 'SET synchronous_commit = local; INSERT INTO T VALUES (50, 50, 50); UPDATE other SET v = 50 WHERE id = 5');
	$story .= ask($table, "BEGIN ISOLATION LEVEL $_; $all; $both; COMMIT") for @readers;
	$story .= ask($table, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM T WHERE id = 4; COMMIT");
	if ($more)
	{
		$story .= ask($table, 'SET synchronous_commit = local; ANALYZE T');
		for my $begin (map { "BEGIN ISOLATION LEVEL $_; SELECT 1;" } $table ne 'mot_t' ? @readers : ())
		{
			$$more .= ask($table, "$begin INSERT INTO child_T VALUES ($_); ROLLBACK") for 1, 2, 3, 4;
			$$more .= ask($table, "$begin DELETE FROM T WHERE id = 5; ROLLBACK");
		}
	}
	$story .= ask($table, 'CHECKPOINT');

	# who has begun to read by now goes on with what it has seen
	my @seen;
	for my $reader (@readers)
	{
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		$session->query_safe("BEGIN ISOLATION LEVEL $reader; DECLARE c CURSOR FOR SELECT * FROM $table ORDER BY id");
		$session->query_safe("DECLARE d CURSOR FOR SELECT a.v, other.v FROM $table a JOIN other USING (id) ORDER BY id");
		$story .= $session->query_safe('FETCH 1 FROM c') . "\n";
		$story .= $session->query_safe("SELECT sum(v) FROM $table") . "\n" if $reader ne 'READ COMMITTED';
		push @seen, [ $session, $reader ];
	}

	if ($end eq 'crash')
	{
		$node->stop('immediate');
		eval { $_->quit } for $writer, map { $_->[0] } @seen;
		$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
		$node->start;
		return $story . ask($table, 'SELECT * FROM T ORDER BY id');
	}
	if ($end eq 'cancel')
	{
		$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'writer $name'");
	}
	else
	{
		$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
		$node->reload;
	}
	$writer->query('SELECT 1');
	$story .= $writer->{stderr} =~ s/^(psql:\S+ |background_psql.*\n)//gmr;
	$story .= ask($table, 'SELECT * FROM T ORDER BY id');
	$node->safe_psql('postgres', "SET synchronous_commit = local; UPDATE $table SET v = v + 1000");
	is($node->safe_psql('postgres', q{SELECT sum(problems) FROM mot_verify('mot_t')}), '0', '... indexes and rows agree');
	for (@seen)
	{
		my ($session, $reader) = @$_;
		$story .= $session->query_safe('FETCH ALL FROM c') . "\n" . $session->query_safe('FETCH ALL FROM d') . "\n";
		$story .= $session->query_safe("SELECT sum(v), count(*) FROM $table") . "\n" . $session->query_safe("SELECT sum(a.v), sum(other.v) FROM $table a JOIN other USING (id)") . "\n";
		$story .= $session->query_safe('COMMIT') . "\n";
		$session->quit;
	}
	$writer->quit;
	$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
	$node->reload;
	return $story;
}

my $changes = 'UPDATE T SET v = v + 1 WHERE id IN (1, 3); DELETE FROM T WHERE id = 2; INSERT INTO T VALUES (100, 100, 100);';
for ([ 'READ COMMITTED', 'cancel' ], [ 'REPEATABLE READ', 'forgo' ], [ 'READ COMMITTED', 'crash' ],
	[ 'SERIALIZABLE', 'cancel' ], [ 'SERIALIZABLE', 'crash' ],
	[ 'REPEATABLE READ', 'cancel', 'UPDATE other SET v = v + 7 WHERE id < 4;' ],
	[ 'SERIALIZABLE', 'cancel', 'UPDATE other SET v = v + 7 WHERE id < 4;' ],
	[ 'SERIALIZABLE', 'forgo', 'NOTIFY c;' ])
{
	my ($level, $end, $too) = (@$_, '');
	is(story('mot_t', $level, $changes . $too, $end), story('heap_t', $level, $changes . $too, $end), "$level, $end $too: as with heap tables");
}
for my $level ('READ COMMITTED', 'SERIALIZABLE')
{
	my %keys = (mot_t => '', ordinary_t => '', heap_t => '');
	my %story = map { ($_ => story($_, $level, $changes, 'cancel', \$keys{$_})) } keys %keys;
	is($story{mot_t}, $story{heap_t}, "$level: maintenance and row locks as with heap tables");
	is($story{ordinary_t}, $story{heap_t}, '... with ordinary tables, too');
	is($keys{ordinary_t}, $keys{heap_t}, '... and foreign keys');
}
$node->safe_psql('postgres', 'TRUNCATE mot_t, heap_t CASCADE; INSERT INTO mot_t SELECT i, 0, i FROM generate_series(1, 5) i; INSERT INTO heap_t SELECT * FROM mot_t; UPDATE mot_t SET v = 71 WHERE id = 4');

# A procedure that commits again and again has begun before standbys were
# configured: it hears of that as the server does, and not at its end.
for my $table ('mot_t', 'heap_t')
{
	$node->safe_psql('postgres', qq{
		CREATE OR REPLACE PROCEDURE work() LANGUAGE plpgsql AS \$\$
		BEGIN
			FOR i IN 1 .. 100000 LOOP
				UPDATE $table SET v = v + 1 WHERE id = 5;
				COMMIT;
				PERFORM pg_sleep(0.01);
			END LOOP;
		END \$\$});
	my $worker = $node->background_psql('postgres', on_error_stop => 0);
	$worker->query_safe(qq{SET application_name = 'procedure $table'; SET synchronous_commit = on});
	$worker->query_until(qr/begun/, "\\echo begun\nCALL work();\n");
	my $before = $node->safe_psql('postgres', "SELECT v FROM $table WHERE id = 5");
	ok($node->poll_query_until('postgres', "SELECT v > $before FROM $table WHERE id = 5"), "$table: a procedure commits");
	$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE application_name = 'procedure $table'"), '... and then waits for the standby');
	like(ask($table, 'SELECT id FROM T WHERE id = 5 FOR UPDATE NOWAIT'), qr/could not obtain lock/, '... with its locks');
	my $seen = $node->safe_psql('postgres', "SELECT v FROM $table WHERE id = 5");
	$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT v > $seen FROM $table WHERE id = 5"), '... which goes on when it is no longer wanted');
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'procedure $table'");
	eval { $worker->quit };
}
$node->safe_psql('postgres', 'UPDATE mot_t SET v = 0 WHERE id = 5; UPDATE heap_t SET v = 0');

# Nor does who reads one kind of tables wait for a commit in both.
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
$node->reload;
$node->poll_query_until('postgres', q{SELECT setting = 'nobody' FROM pg_settings WHERE name = 'synchronous_standby_names'});
my $both = $node->background_psql('postgres', on_error_stop => 0);
$both->query_safe(q{SET application_name = 'both'; SET synchronous_commit = on});
$both->query_until(qr/begun/, "\\echo begun\nBEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE mot_t SET v = 8 WHERE id = 5; UPDATE heap_t SET v = 8 WHERE id = 5; COMMIT;\n");
ok($node->poll_query_until('postgres', q{SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE application_name = 'both'}), 'SERIALIZABLE, in both: the commit waits');
like(ask('mot_t', 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM T WHERE id = 5; SELECT sum(v) FROM T; COMMIT'), qr/\n0\n71\n$/, '... readers of one kind do not');
like(ask('heap_t', 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM T WHERE id = 5; SELECT sum(v) FROM T; COMMIT'), qr/\n0\n0\n$/, '... nor of the other');
$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$node->reload;
$both->query('SELECT 1');
$both->quit;
like(ask('mot_t', 'SET synchronous_commit = local; BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT T.v, heap_t.v FROM T JOIN heap_t USING (id) WHERE id = 5; COMMIT'), qr/\n8\|8\n$/, '... and then it is there');
$node->safe_psql('postgres', 'UPDATE mot_t SET v = 0 WHERE id = 5; UPDATE heap_t SET v = 0 WHERE id = 5');

# Who reads both comes before it in both, unless that could not be: who has seen
# what came after something that it has missed.
sub before_both
{
	my ($table) = @_;
	my $story = '';

	$node->safe_psql('postgres', "TRUNCATE $table, other CASCADE; INSERT INTO $table SELECT i, 0, i FROM generate_series(1, 5) i; INSERT INTO other SELECT i, 0 FROM generate_series(1, 5) i");
	$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
	$node->reload;
	$node->poll_query_until('postgres', q{SELECT setting = 'nobody' FROM pg_settings WHERE name = 'synchronous_standby_names'});
	my $writer = $node->background_psql('postgres', on_error_stop => 0);
	$writer->query_safe("SET application_name = 'before $table'; SET synchronous_commit = on; SET enable_seqscan = off");
	$writer->query_until(qr/begun/, "\\echo begun\nBEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM other WHERE id = 4; UPDATE $table SET v = 8 WHERE id = 5; UPDATE other SET v = 8 WHERE id = 5; COMMIT;\n");
	ok($node->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE application_name = 'before $table'"), "$table: the commit waits");
	my @readers = map { "SET enable_seqscan = off; BEGIN ISOLATION LEVEL SERIALIZABLE$_;" } '', ' READ ONLY';
	for my $begin (@readers)
	{
		$story .= ask($table, "$begin SELECT v FROM T WHERE id = 5; SELECT v FROM other WHERE id = 5; COMMIT");
		$story .= ask($table, "$begin SELECT v FROM other WHERE id = 4; SELECT v FROM T WHERE id = 5; COMMIT");
		$story .= ask($table, "$begin SELECT T.v, other.v FROM T JOIN other USING (id) ORDER BY id; COMMIT");
	}
	my $early = $node->background_psql('postgres', on_error_stop => 0);
	$early->query_safe("$readers[1] SELECT v FROM other WHERE id = 3");
	$story .= ask($table, 'SET enable_seqscan = off; SET synchronous_commit = local; BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE other SET v = 44 WHERE id = 4; COMMIT');
	for my $begin (@readers)
	{
		my $answer = ask($table, "$begin SELECT v FROM other WHERE id = 4; SELECT v FROM T WHERE id = 5; COMMIT");

		# (heap tables say so earlier)
		$story .= $answer =~ /could not serialize access due to read\/write dependencies/ ? "fails\n" : $answer;
		# (memory-optimized tables alone fail no reader)
		like(ask($table, "$begin SELECT v FROM T WHERE id = 5; COMMIT"), qr/\n0\n$/, '... but one kind can be read') if $table ne 'heap_t';
	}
	$story .= $early->query_safe("SELECT v FROM $table WHERE id = 5; SELECT v FROM other WHERE id = 4; COMMIT") . "\n";
	$early->quit;

	# somebody has committed behind it: who reads one kind only need not care, others wait
	$node->safe_psql('postgres', "SET synchronous_commit = local; UPDATE $table SET v = 11 WHERE id = 1");
	$story .= ask($table, "$_ SELECT v FROM other WHERE id = 3; COMMIT") . ask($table, "$_ SELECT v FROM T WHERE id = 1; COMMIT") for @readers;
	my $late = $node->background_psql('postgres', on_error_stop => 0);
	$late->query_until(qr/begun/, "\\echo begun\nSET application_name = 'late'; $readers[0] SELECT T.v, other.v AS other FROM $table T, other WHERE T.id = 1 AND other.id = 3 \\gset\nCOMMIT;\n");
	ok($node->poll_query_until('postgres', "SELECT wait_event = 'transactionid' FROM pg_stat_activity WHERE application_name = 'late'"), '... and somebody for it, as the server waits') if $table ne 'heap_t';
	$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
	$node->reload;
	$writer->query('SELECT 1');
	$writer->quit;
	# (what it prints at once, as with heap tables, may come before it is listened to)
	$story .= $late->query('\echo :v :other') . "\n";
	$late->quit;
	return $story . ask($table, "$readers[0] SELECT T.v, other.v FROM T JOIN other USING (id) ORDER BY id; COMMIT");
}
my $heap_before = before_both('heap_t');
like($heap_before, qr/\nfails\nfails\n/, 'heap tables: not before what comes before the snapshot');
is(before_both($_), $heap_before, "$_: as with heap tables") for 'mot_t', 'ordinary_t';
$node->safe_psql('postgres', 'TRUNCATE mot_t, heap_t CASCADE; INSERT INTO mot_t SELECT i, 0, i FROM generate_series(1, 5) i; INSERT INTO heap_t SELECT * FROM mot_t; UPDATE mot_t SET v = 71 WHERE id = 4');

# At SERIALIZABLE the place in the order of commits has been drawn.  As long as
# nobody has one behind it, readers of this level come before; afterwards they wait
# at what has changed, for as long as they want to; nobody else does.
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
$node->reload;
$node->poll_query_until('postgres', q{SELECT setting = 'nobody' FROM pg_settings WHERE name = 'synchronous_standby_names'});
my $writer = $node->background_psql('postgres', on_error_stop => 0);
$writer->query_safe(q{SET application_name = 'serializable'; SET synchronous_commit = on});
$writer->query_until(qr/begun/, "\\echo begun\nBEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE mot_t SET v = 9 WHERE id = 5; COMMIT;\n");
ok($node->poll_query_until('postgres', q{SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE application_name = 'serializable'}), 'SERIALIZABLE: the commit waits');
for my $only ('', ' READ ONLY')
{
	like(ask('mot_t', "BEGIN ISOLATION LEVEL SERIALIZABLE$only; SELECT v FROM T WHERE id = 5; SELECT sum(v) FROM T; COMMIT"), qr/\n0\n71\n$/, '... and readers of this level see what was before');
	like(ask('mot_t', "BEGIN ISOLATION LEVEL SERIALIZABLE$only; SELECT v FROM T WHERE id = 5; SELECT count(*) FROM heap_t; COMMIT"), qr/\n0\n5\n$/, '... in both kinds of tables');
}
like(ask('mot_t', q{SET synchronous_commit = local; UPDATE T SET v = 71 WHERE id = 4; BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM T WHERE id = 4}), qr/\n71\n$/, '... and who has committed sees that');

# all that waits shows that it does, and can be told not to
my @waits = (
	'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM mot_t WHERE id = 5',
	'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(v) FROM mot_t',
	'SELECT v FROM mot_t WHERE id = 5 FOR SHARE',
	'UPDATE mot_t SET v = 1 WHERE id = 5',
	'DELETE FROM mot_t WHERE id = 5',
	'BEGIN ISOLATION LEVEL REPEATABLE READ; DELETE FROM mot_t WHERE id = 5; COMMIT',
	'CREATE INDEX ON mot_t (v)',
	q{SELECT * FROM mot_verify('mot_t')});
for my $end ('cancel', 'terminate', 'timeout')
{
	my $n = 0;
	my @sessions;
	for my $sql (@waits)
	{
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		$session->query_safe("SET application_name = 'waits " . $n++ . "'");
		$session->query_safe(q{SET statement_timeout = '300ms'}) if $end eq 'timeout';
		# (DDL stands in the others' way)
		$session->query_safe(q{SET deadlock_timeout = '1h'});
		$session->query_until(qr/begun/, "\\echo begun\n$sql;\n\\echo over\n");
		push @sessions, $session;
	}
	if ($end ne 'timeout')
	{
		ok($node->poll_query_until('postgres', "SELECT count(*) = $n FROM pg_stat_activity WHERE application_name LIKE 'waits %' AND wait_event_type IN ('Lock', 'Extension')"), "$end: all wait, and say so");
		$node->safe_psql('postgres', "SELECT pg_${end}_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'waits %'");
	}
	for my $i (0 .. $#sessions)
	{
		eval { $sessions[$i]->query_until(qr/over/, '') };
		eval { $sessions[$i]->query('SELECT 1') };
		like($sessions[$i]->{stderr}, $end eq 'cancel' ? qr/user request/ : $end eq 'timeout' ? qr/statement timeout/ : qr/terminating connection/, "... $waits[$i]");
		eval { $sessions[$i]->quit };
	}
}
like(ask('mot_t', 'SELECT v FROM T WHERE id = 4'), qr/\n71\n$/, '... but nobody else');
for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	my $begin = "BEGIN ISOLATION LEVEL $level;";
	like(ask('mot_t', "$begin SELECT (SELECT v FROM T WHERE id = 4), count(*) FROM heap_t; COMMIT"), qr/\n71\|5\n$/, "... $level: in both kinds of tables");
	like(ask('mot_t', "$begin SELECT count(*) FROM heap_t; COMMIT"), qr/\n5\n$/, '... and in heap tables');
}
like(ask('mot_t', q{SET synchronous_commit = local; UPDATE T SET v = 72 WHERE id = 4; SELECT v FROM T WHERE id = 4}), qr/\n72\n$/, '... nor does who changes one');
like(ask('mot_t', 'CHECKPOINT'), qr/^CHECKPOINT\n\n$/, '... nor a checkpoint');
$node->stop('immediate');
eval { $writer->quit };
$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$node->start;
like(ask('mot_t', 'SELECT v FROM T WHERE id IN (4, 5) ORDER BY id'), qr/\n72\n9\n$/, '... of which nothing is missing after a crash');
$node->stop;
done_testing();
