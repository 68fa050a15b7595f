# Limits of what the tables of a database, and those of a role, take together, and what new rows
# leave free for changes: in sessions that run, with owners, after a start, a crash and a promotion,
# in copies of databases and in dumps.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $MB = 1 << 20;
my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
max_prepared_transactions = 2
shared_preload_libraries = 'mot'
mot.max_memory = 96MB
});
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION mot;
CREATE ROLE one; CREATE ROLE two;
CREATE TABLE a (id int PRIMARY KEY, b text) USING mot;
CREATE TABLE b (id int PRIMARY KEY, b text) USING mot;
CREATE FOREIGN TABLE f (id int PRIMARY KEY, b text) SERVER mot_server;
CREATE TABLE c (id int PRIMARY KEY, b text) USING mot;
ALTER TABLE a OWNER TO one;
ALTER TABLE b OWNER TO one;
ALTER TABLE f OWNER TO one;
ALTER TABLE c OWNER TO two;
});

sub rows { my ($table, $from, $to) = @_; return "INSERT INTO $table SELECT i, repeat('x', 1000) FROM generate_series($from, $to) i" }

sub sql { return $node->safe_psql('postgres', $_[0]) }

# what psql says in stderr
sub failure
{
	my ($sql, $where, $database) = @_;
	my (undef, undef, $error) = ($where // $node)->psql($database // 'postgres', $sql, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	return $error;
}

sub counted { my ($role) = @_; return sql("SELECT counted_bytes FROM mot_stat_memory_roles WHERE rolname = '$role'") }
my $full = qr/ERROR:  53200: memory limit of role "one" for memory-optimized tables exceeded\nDETAIL:  Its memory-optimized tables take (\d+) kB, and may take (\d+) kB\.\nHINT:  .*SECURITY LABEL FOR mot ON ROLE/;

# --- a role's
my $session = $node->background_psql('postgres', on_error_stop => 0);
sql("SECURITY LABEL FOR mot ON ROLE one IS 'max_size=8MB'");
sql(rows('a', 1, 4000));
my $error = failure(rows('b', 1, 6000));
like($error, $full, 'two tables of a role exceed its limit together');
my ($has, $may) = $error =~ $full;
ok($may == 8192 && $has > 6000 && $has <= 8192, "which DETAIL says ($has kB)");
like(failure(rows('f', 1, 6000)), $full, 'a foreign table likewise');
is(sql('SELECT count(*) FROM b'), '0', 'nothing is left of them');
cmp_ok(counted('one'), '<', 8 * $MB, 'nor counts');
sql(rows('c', 1, 10000));
sql(rows('b', 1, 1000));
pass('another role, and what there is room for');
is(sql("SELECT max_bytes FROM mot_stat_memory_roles WHERE rolname = 'one'"), 8 * $MB, 'the view has the limit');
is(sql("SELECT max_bytes IS NULL FROM mot_stat_memory_roles WHERE rolname = 'two'"), 't', '... and none');
ok( sql(q{SELECT bool_and(counted_bytes >= total_bytes) FROM mot_stat_memory_roles}) eq 't'
	  && sql(q{SELECT counted_bytes >= total_bytes AND max_bytes IS NULL FROM mot_stat_memory_databases WHERE datname = 'postgres'}) eq 't',
	'what counts is at least what the tables have');

# --- sessions that run, rollbacks
sub session_fails
{
	my ($sql, $what) = @_;
	$session->{stderr} = '';
	$session->query("$sql");
	like($session->{stderr}, qr/memory limit of role "one"/, $what);
	$session->{stderr} = '';
}
session_fails(rows('b', 2000, 9000), 'a session that was there before meets it');
my $labels = $node->background_psql('postgres');
$labels->query_safe("BEGIN; SECURITY LABEL FOR mot ON ROLE one IS 'max_size=40MB'");
session_fails(rows('b', 2000, 9000), '... and still, before another one is committed');
$labels->query_safe('ROLLBACK');
session_fails(rows('b', 2000, 9000), '... and if it is not');
$labels->query_safe("BEGIN; SAVEPOINT s; SECURITY LABEL FOR mot ON ROLE one IS 'max_size=40MB'; ROLLBACK TO s; COMMIT");
session_fails(rows('b', 2000, 9000), '... nor after ROLLBACK TO');
$labels->query_safe("SECURITY LABEL FOR mot ON ROLE one IS 'max_size=20MB'");
is($session->query(rows('b', 2000, 9000)) . $session->{stderr}, '', 'another one holds at once');
$labels->query_safe("BEGIN; SECURITY LABEL FOR mot ON ROLE one IS NULL; SECURITY LABEL FOR mot ON ROLE one IS 'max_size=8MB'; COMMIT");
session_fails(rows('b', 20000, 20500), '... also one that is less than there is');
$labels->query_safe('DELETE FROM b WHERE id >= 2000');
is($session->query('UPDATE b SET b = b WHERE id = 1') . $session->{stderr}, '', 'changes and deletes go on');
ok($node->poll_query_until('postgres', "SELECT counted_bytes < 7000000 AND retired_objects = 0 FROM mot_stat_memory_roles, mot_stat_memory WHERE rolname = 'one'"), 'what was deleted does not count');
like(failure("BEGIN; SECURITY LABEL FOR mot ON ROLE one IS 'max_size=40MB'; PREPARE TRANSACTION 'p'"),
	qr/0A000: cannot PREPARE a transaction that has set limits/, 'it cannot be prepared');

# --- owners
my $before = counted('one');
$labels->query_safe('BEGIN; ALTER TABLE b OWNER TO two; SELECT count(*) FROM b; ROLLBACK');
is(counted('one'), $before, 'a change of owner that is rolled back');
my $two = counted('two');
$labels->query_safe('BEGIN; SAVEPOINT s; ALTER TABLE a OWNER TO two; ROLLBACK TO s; ALTER TABLE b OWNER TO two; SELECT count(*) FROM b; COMMIT');
my $b = sql("SELECT total_bytes FROM mot_stat_tables WHERE relname = 'b'");
is(counted('one') + $b, $before, 'one that is not: it counts for the other one');
is(counted('two') - $b, $two, '... with all it has');
is($session->query(rows('b', 2000, 9000)) . $session->{stderr}, '', '... and the limit is no concern of it');
sql('REASSIGN OWNED BY one TO two');
is(sql("SELECT count(*) FROM mot_stat_memory_roles WHERE rolname = 'one'"), '0', 'REASSIGN OWNED');
sql('ALTER TABLE a OWNER TO one; ALTER TABLE f OWNER TO one');
my $a = sql("SELECT sum(total_bytes) FROM mot_stat_tables WHERE relname IN ('a', 'f')");
is(counted('one'), $a, 'and back');

# --- rewriting
sql("SECURITY LABEL FOR mot ON ROLE one IS 'max_size=30MB'");
for my $does ('VACUUM FULL a', 'ALTER TABLE a ALTER id TYPE bigint', 'ALTER TABLE a SET ACCESS METHOD heap', 'ALTER TABLE a SET ACCESS METHOD mot', 'CREATE INDEX ON a (b)', 'DROP INDEX a_b_idx')
{
	sql($does);
	ok( $node->poll_query_until(
			'postgres', q{SELECT counted_bytes = (SELECT sum(total_bytes) FROM mot_stat_tables WHERE relname IN ('a', 'f')) FROM mot_stat_memory_roles WHERE rolname = 'one'}),
		"what there is counts after $does");
}
sql("SECURITY LABEL FOR mot ON ROLE one IS 'max_size=6MB'");
like(failure('VACUUM FULL a'), $full, 'what stores rows anew has both for a while');
like(failure('CREATE INDEX ON a (id, b)'), $full, 'an index is to have room, too');

# --- a start, and a crash: limits keep nothing from coming back
sql("SECURITY LABEL FOR mot ON ROLE one IS 'max_size=1MB'");
for my $how ('fast', 'immediate')
{
	sql("SECURITY LABEL FOR mot ON DATABASE postgres IS 'max_size=2MB'");
	$session->quit;
	$labels->quit;
	$node->stop($how);
	$node->start;
	$session = $node->background_psql('postgres', on_error_stop => 0);
	$labels = $node->background_psql('postgres');
	ok($node->poll_query_until('postgres', "SELECT counted_bytes > 4000000 FROM mot_stat_memory_roles WHERE rolname = 'one'"), "$how: tables count before anybody reads them");
	is(sql('SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT count(*) FROM c)'), '4000|8001|10000', "$how: all rows are there");
	like(failure(rows('c', 10001, 10200)), qr/53200: memory limit of database "postgres" for memory-optimized tables exceeded\nDETAIL:  .* may take 2048 kB/, "$how: the database's");
	sql("SECURITY LABEL FOR mot ON DATABASE postgres IS NULL");
	session_fails(rows('a', 10001, 10200), "$how: the role's");
	is(failure(rows('c', 10001, 10200) . '; DELETE FROM c WHERE id > 10000'), '', "$how: and not without");
}

# --- a start while somebody has a table to himself, prepared
sql(q{BEGIN; TRUNCATE b; PREPARE TRANSACTION 'p'});
$_->quit for $session, $labels;
$node->restart;
ok( $node->poll_query_until(
		'postgres', q{SELECT counted_bytes = (SELECT sum(total_bytes) FROM mot_stat_tables t JOIN pg_class c ON c.oid = t.relid WHERE relowner = 'one'::regrole) FROM mot_stat_memory_roles WHERE rolname = 'one'}),
	'the other tables count');
ok( $node->poll_query_until(
		'postgres', q{SELECT counted_bytes > 18000000 FROM mot_stat_memory_roles WHERE rolname = 'two'}),
	'... and his');
is(sql('SELECT count(*) FROM mot_stat_snapshots'), '0', 'nobody keeps old rows meanwhile');
sql(q{ROLLBACK PREPARED 'p'});

# --- several sessions of a database at a time
sql('CREATE DATABASE d');
$node->safe_psql('d', "CREATE EXTENSION mot; CREATE TABLE t (id bigserial PRIMARY KEY, n int, b text) USING mot; CREATE INDEX ON t (n)");
sql("SECURITY LABEL FOR mot ON DATABASE d IS 'max_size=10MB'");
my @running = map { $node->background_psql('d') } 1 .. 4;
$_->query_until(qr/go/, q{\echo go
DO $$ DECLARE n int := 0; BEGIN WHILE n < 100 LOOP BEGIN
INSERT INTO t (n, b) SELECT i, repeat('x', i % 500) FROM generate_series(1, 300) i; EXCEPTION WHEN out_of_memory THEN n := n + 20; END; COMMIT; END LOOP; END $$;
}) for @running;
$_->query_safe('SELECT 1') for @running;
$_->quit for @running;
my ($most, $rows) = split /\|/, $node->safe_psql('d', "SELECT counted_bytes, (SELECT count(*) FROM t) FROM mot_stat_memory_databases WHERE datname = 'd'");
ok($most <= 10 * $MB / 16 * 17 && $most > 8 * $MB && $rows > 5000, "four sessions stop at a database's limit ($most bytes, $rows rows)");
is($node->safe_psql('d', 'DELETE FROM t; SELECT count(*) FROM t'), '0', 'and it can be emptied');

# --- copies of a database, and dumps
$node->safe_psql('d', q{ALTER TABLE t OWNER TO one; SECURITY LABEL FOR mot ON ROLE one IS NULL; INSERT INTO t (b) SELECT repeat('x', 1000) FROM generate_series(1, 2000)});
sql('CREATE DATABASE e TEMPLATE d');
is($node->safe_psql('e', rows('t (n, b)', 1, 12000) . "; SELECT max_bytes IS NULL FROM mot_stat_memory_databases WHERE datname = 'e'"), 't', "a copy has no limit");
ok($node->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'), 'nothing is about to go');
is(counted('one'), $node->safe_psql('d', q{SELECT sum(counted_bytes) FROM mot_stat_memory_databases}) - counted('two'), 'a role has what it has in all databases');
sql('DROP DATABASE e');
sql("SECURITY LABEL FOR mot ON ROLE one IS 'max_size=9MB'");
like(failure('CREATE DATABASE e TEMPLATE d'), $full, "but the owners' limits hold");
$node->safe_psql('d', "SELECT count(*) FROM t");
command_like([ 'pg_dumpall', '-h', $node->host, '-p', $node->port ], qr/SECURITY LABEL FOR mot ON ROLE one IS 'max_size=9MB'.*SECURITY LABEL FOR mot ON DATABASE d IS 'max_size=10MB'/s, 'a dump of all has both');
sql('DROP DATABASE d');

# --- what new rows leave free
sql("SECURITY LABEL FOR mot ON ROLE one IS NULL");
sql(q{ALTER SYSTEM SET mot.insert_reserve = 70});
sql('SELECT pg_reload_conf()');
my $out_of = qr/53200: out of memory for memory-optimized tables\nDETAIL:  mot.max_memory is 96 MB, of which new rows leave 70 % free \(mot.insert_reserve\)/;
my $some = 20001;
for (my $tries = 0; $tries < 100; $tries++)
{
	last if failure(rows('c', $some, $some + 4000)) =~ $out_of;
	$some += 4001;
	sleep 1 if $some > 40000;
}
like(failure(rows('c', $some, $some + 4000)), $out_of, 'new rows leave room');
cmp_ok(sql('SELECT used_bytes FROM mot_stat_memory'), '<=', 96 * $MB * 0.35, '... that is theirs otherwise');
is(failure(q{UPDATE c SET b = b || 'y'}), '', '... for changes');
$node->restart;
sql('SELECT count(*) FROM c');
is(sql('SELECT count(*) FROM a'), '4000', 'all is there after a start');
like(failure(rows('c', $some, $some + 9000)), $out_of, '... and so is the reserve');
sql('ALTER SYSTEM RESET mot.insert_reserve; SELECT pg_reload_conf()');
for (my $tries = 0; $tries < 100 && failure(rows('c', $some, $some + 4000)) ne ''; $tries++) { sleep 1 }
is(sql("SELECT count(*) FROM c WHERE id >= $some"), '4001', 'without it there is room');

# --- a standby that is promoted, with a session that was there before
sql(q{TRUNCATE b, c; SECURITY LABEL FOR mot ON ROLE one IS 'max_size=8MB'});
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'CREATE TABLE late (id int PRIMARY KEY, b text) USING mot; ALTER TABLE late OWNER TO one');
$node->wait_for_catchup($standby);
my $reader = $standby->background_psql('postgres', on_error_stop => 0);
$reader->query_safe('SELECT count(*) FROM a; SELECT count(*) FROM late');
$node->stop;
$standby->promote;
ok($standby->poll_query_until('postgres', "SELECT counted_bytes > 4000000 FROM mot_stat_memory_roles WHERE rolname = 'one'"), 'a standby counts when it is promoted');
$reader->query(rows('late', 1, 9000));
like($reader->{stderr}, qr/memory limit of role "one"/, '... and has the limit');
$reader->quit;
$standby->stop;
done_testing();
