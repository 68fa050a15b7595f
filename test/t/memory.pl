# Memory runs out, for the statement that asked, and comes back.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
checkpoint_timeout = 1h
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE full_up (id int PRIMARY KEY, t text) SERVER mot_server;
	CREATE FOREIGN TABLE bystander (id int PRIMARY KEY, v int) SERVER mot_server;
	INSERT INTO bystander SELECT i, 0 FROM generate_series(1, 100) i;
});

# one large statement
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query("INSERT INTO full_up SELECT i, repeat('x', 1000) FROM generate_series(1, 1000000) i");
like($session->{stderr}, qr/ERROR:  out of memory for memory-optimized tables/, 'a statement that needs too much fails');
like($session->{stderr}, qr/DETAIL:  mot\.max_memory is 64 MB\./, '... and names the setting');
like($session->{stderr}, qr/HINT:  Delete rows/, '... and what to do');
$session->{stderr} = '';
is($session->query('SELECT count(*) FROM full_up'), '0', 'it has left nothing, and its session goes on');

my ($ret, $out, $err) = $node->psql('postgres', q{
	\set VERBOSITY sqlstate
	INSERT INTO full_up SELECT i, repeat('x', 1000) FROM generate_series(1, 1000000) i});
like($err, qr/ERROR:  53200/, 'the SQLSTATE is 53200');

# many small ones, until no row fits (whoever is gone has given back what it had by then)
ok( $node->poll_query_until('postgres', q{SELECT (SELECT retired_objects = 0 FROM mot_stat_memory) AND
	(SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'client backend')}),
	'what failed is gone');
my $rows = $session->query(q{
	DO $$
	DECLARE
		i int := 0;
	BEGIN
		LOOP
			i := i + 1;
			BEGIN
				INSERT INTO full_up VALUES (i, repeat('x', 1000));
			EXCEPTION WHEN out_of_memory THEN
				EXIT;
			END;
			COMMIT;
		END LOOP;
	END
	$$;
	SELECT count(*) FROM full_up});
cmp_ok($rows, '>', 20000, "$rows rows of 1 kB fit into 64 MB");
cmp_ok($rows, '<', 64 * 1024, '... and no more than can be');

# what is there can still be read, changed and deleted
is($session->query('SELECT sum(length(t)) FROM full_up'), $rows * 1000, 'rows can be read');
($ret) = $node->psql('postgres', 'UPDATE bystander SET v = v + 1');
is($ret, 0, 'others can update');
is($node->safe_psql('postgres', 'SELECT sum(v) FROM bystander'), '100', '... correctly');
($ret) = $node->psql('postgres', "INSERT INTO full_up VALUES (0, repeat('x', 1000))");
isnt($ret, 0, 'there is no room for another row');
$session->query('DELETE FROM full_up WHERE id % 2 = 0');
is($session->{stderr}, '', 'rows can be deleted');
ok( $node->poll_query_until('postgres', 'SELECT retired_objects < 100 FROM mot_stat_memory'),
	'what was deleted is reclaimed');

# room again, for rows of the same size and, after TRUNCATE, of another
my $half = int($rows / 2) - 200;
$session->query("INSERT INTO full_up SELECT 10000000 + i, repeat('y', 1000) FROM generate_series(1, $half) i");
is($session->{stderr}, '', 'after DELETE there is room again');
$session->query('TRUNCATE full_up');
ok($node->poll_query_until('postgres', 'SELECT used_bytes < 8000000 FROM mot_stat_memory'), 'TRUNCATE gives memory back');
$session->query("INSERT INTO full_up SELECT i, repeat('z', 100) FROM generate_series(1, 200000) i");
is($session->{stderr}, '', '... which rows of another size can use');
is($session->query('SELECT count(*) FROM full_up'), '200000', '... all of them');

# a transaction that fails in a savepoint goes on
$session->query('BEGIN');
$session->query('UPDATE bystander SET v = -1 WHERE id = 1');
$session->query('SAVEPOINT s');
$session->query("INSERT INTO full_up SELECT 1000000 + i, repeat('x', 1000) FROM generate_series(1, 1000000) i");
like($session->{stderr}, qr/out of memory for memory-optimized tables/, 'memory runs out in a savepoint');
$session->{stderr} = '';
$session->query('ROLLBACK TO s');
$session->query("INSERT INTO full_up VALUES (-1, 'after')");
$session->query('COMMIT');
is($session->{stderr}, '', 'the transaction commits what it kept');
is($node->safe_psql('postgres', 'SELECT v FROM bystander WHERE id = 1'), '-1', '... what came before');
is($node->safe_psql('postgres', 'SELECT t FROM full_up WHERE id = -1'), 'after', '... and what came after');

# an index build, COPY and CREATE TABLE fail cleanly as well
$session->query("INSERT INTO full_up SELECT 2000000 + i, repeat('w', 100) FROM generate_series(1, 200000) i");
$session->{stderr} = '';
for (1 .. 20)
{
	$session->query("CREATE INDEX full_up_$_ ON full_up (t, id)");
	last if $session->{stderr} ne '';
}
like($session->{stderr}, qr/out of memory for memory-optimized tables/, 'an index build that does not fit fails');
$session->{stderr} = '';
my $indexes = $node->safe_psql('postgres', "SELECT count(*) FROM pg_index WHERE indrelid = 'full_up'::regclass");
is($node->safe_psql('postgres', "SELECT count(*) FROM mot_stat_indexes WHERE relname = 'full_up'"),
	$indexes, '... and leaves no index behind');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE full_up');
ok($node->poll_query_until('postgres', 'SELECT used_bytes < 8000000 FROM mot_stat_memory'), 'DROP gives memory back');

# a large transaction's own bookkeeping goes with it
$session->query('CREATE FOREIGN TABLE brief (id int) SERVER mot_server');
$session->query('BEGIN');
$session->query('INSERT INTO brief SELECT generate_series(1, 300000)');
my $during = $session->query('SELECT engine_bytes FROM mot_stat_memory');
$session->query('COMMIT');
is($session->{stderr}, '', 'a large transaction');
ok($node->poll_query_until('postgres', "SELECT engine_bytes < $during - 4000000 FROM mot_stat_memory"),
	'... keeps nothing for itself');
$session->query('DROP FOREIGN TABLE brief');

# sessions that come and go leave nothing
my $before = $node->safe_psql('postgres', 'SELECT used_bytes FROM mot_stat_memory');
for (1 .. 30)
{
	$node->safe_psql('postgres', 'UPDATE bystander SET v = v + 1; DELETE FROM bystander WHERE id = 100; INSERT INTO bystander VALUES (100, 0)');
}
ok($node->poll_query_until('postgres', 'SELECT retired_objects < 100 FROM mot_stat_memory'),
	'what departed sessions owed is reclaimed');
cmp_ok($node->safe_psql('postgres', 'SELECT used_bytes FROM mot_stat_memory'),
	'<=', $before + 2 * 1024 * 1024, 'sessions that come and go cost no memory');

$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE full_up (id int PRIMARY KEY, v int, t text) SERVER mot_server;
	CREATE INDEX ON full_up (t);
	INSERT INTO full_up SELECT i, i, i::text FROM generate_series(1, 10000) i});

# what large transactions leave does not wait for the worker's next round: there is none
my $log = -s $node->logfile;
$node->append_conf('postgresql.conf', "mot.fault = 'maintenance-round:skip'\n");
$node->reload;
$node->wait_for_log(qr/fault point "maintenance-round" reached/, $log);
my $reclaimed = 0;
for (1 .. 8)
{
	$node->safe_psql('postgres', 'UPDATE full_up SET v = v + 1');
	$node->psql('postgres', 'INSERT INTO full_up SELECT i, 1 / (20000 - i), i::text FROM generate_series(10001, 20000) i');
	$node->poll_query_until('postgres', 'SELECT retired_objects < 100 FROM mot_stat_memory') or last;
	$reclaimed++;
}
is($reclaimed, 8, 'large transactions wake the maintenance worker');

# nor does what a session leaves that closes: its own snapshot is in the way of the memory of rows
# which it has only just taken out of their indexes (here too few for a large transaction)
$reclaimed = 0;
for (1 .. 8)
{
	$node->safe_psql('postgres', 'DELETE FROM full_up WHERE id <= 500');
	my $done = $node->poll_query_until('postgres', 'SELECT retired_objects < 100 FROM mot_stat_memory');
	$node->safe_psql('postgres', 'INSERT INTO full_up SELECT i, i, i::text FROM generate_series(1, 500) i');
	last unless $done;
	$reclaimed++;
}
is($reclaimed, 8, 'so do sessions that close and leave something');
$node->append_conf('postgresql.conf', "mot.fault = ''\n");
$node->reload;
is($node->safe_psql('postgres', 'SELECT count(*) FROM full_up'), '10000', '... and leave what they should');

# an idle session does not hold anything up; one with an open cursor does, and only while it is open
my $reader = $node->background_psql('postgres', on_error_stop => 0);
is($reader->query('SELECT count(*) FROM bystander'), '100', 'a reader');
$node->safe_psql('postgres', 'UPDATE bystander SET v = 1');
ok($node->poll_query_until('postgres', 'SELECT retired_objects < 100 FROM mot_stat_memory'), 'an idle session holds nothing');
$reader->query('BEGIN');
is($reader->query('SELECT count(*) FROM bystander'), '100', 'a statement in a transaction');
$node->safe_psql('postgres', 'UPDATE bystander SET v = 2');
ok($node->poll_query_until('postgres', 'SELECT retired_objects < 100 FROM mot_stat_memory'), 'neither does one that is idle in a transaction');
$reader->query('DECLARE c CURSOR FOR SELECT sum(v) OVER () FROM bystander');
is($reader->query('FETCH 1 FROM c'), '200', 'a cursor is open');
$node->safe_psql('postgres', 'UPDATE bystander SET v = 3');
$node->safe_psql('postgres', 'SELECT pg_sleep(2.5)');
cmp_ok($node->safe_psql('postgres', 'SELECT retired_objects FROM mot_stat_memory'), '>=', 100, 'an open cursor keeps what it may see');
$reader->query('COMMIT');
ok($node->poll_query_until('postgres', 'SELECT retired_objects < 100 FROM mot_stat_memory'), '... until it is closed');

$reader->quit;
$session->quit;
$node->stop;
done_testing();
