# Which tables are left out for want of memory, and that they come back as soon as
# there is room: foreign tables, ordinary ones with computed keys, and changes that
# came after the checkpoint.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
checkpoint_timeout = 1h
shared_preload_libraries = 'mot'
mot.load_workers = 2
mot.max_memory = 256MB
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE rows (id int PRIMARY KEY, v int, filler text) SERVER mot_server;
	CREATE INDEX ON rows (v);
	CREATE TABLE computed (id int, word text, filler text) USING mot;
	CREATE UNIQUE INDEX computed_word ON computed (upper(word));
	CREATE INDEX computed_odd ON computed (id) WHERE id % 2 = 1;
	CREATE FUNCTION halved(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 / 2';
	CREATE INDEX computed_half ON computed (halved(id)) WHERE id < 100;
	CREATE FOREIGN TABLE small (id int PRIMARY KEY) SERVER mot_server;
	INSERT INTO small SELECT generate_series(1, 100);
	INSERT INTO rows SELECT i, i, repeat('x', 400) FROM generate_series(1, 80000) i;
	INSERT INTO computed SELECT i, 'w' || i, repeat('y', 380) FROM generate_series(1, 60000) i;
	CHECKPOINT});

sub settings
{
	my ($memory, $fault) = @_;
	$node->append_conf('postgresql.conf', "mot.max_memory = '${memory}MB'\nmot.fault = '$fault'\n");
}

sub left_out
{
	$node->poll_query_until('postgres', q{SELECT state = 'ready' FROM mot_stat_recovery}) or die 'not loaded';
	return $node->safe_psql('postgres', 'SELECT tab FROM mot_stat_left_out ORDER BY tab::text');
}

sub comes_back
{
	my ($what) = @_;
	$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM mot_stat_left_out');
	is(left_out(), '', $what) or diag $node->safe_psql('postgres', 'SELECT * FROM mot_stat_left_out; SELECT * FROM mot_stat_tables');
}

my %sum;

sub remember { $sum{$_} = sum($_) for 'rows', 'computed' }

sub sum
{
	my ($table) = @_;
	return $node->safe_psql('postgres', "SELECT count(*), sum(hashtext(t::text)::numeric) FROM $table t");
}

sub whole
{
	my ($table, $what) = @_;
	is(sum($table), $sum{$table}, $what);
	is($node->safe_psql('postgres', "SELECT sum(problems) FROM mot_verify('$table')"), '0', '... and its indexes agree');
}

# it comes back with those that it had, and the log goes by them
sub keeps_index
{
	my ($index) = @_;
	my ($status, $out, $error) = $node->psql('postgres', "DROP INDEX $index");
	like($error, qr/is not in memory, which has no room for it/, "index $index does not go alone meanwhile");
}

# every row, in the log; twice
$node->safe_psql('postgres', "UPDATE rows SET v = v + 100000, filler = repeat('z', 399) || v % 10") for 1 .. 2;
$node->safe_psql('postgres', "UPDATE computed SET word = 'W' || id || '_', id = id + 1 WHERE id % 3 = 0");
$node->safe_psql('postgres', 'DELETE FROM computed WHERE id % 100 = 7');
remember();

# ---- what is left out: a reader keeps no memory of what was loaded in vain
for my $workers (1, 2, 4)
{
	$node->stop('immediate');
	settings(64, 'load-begin:wait');
	$node->append_conf('postgresql.conf', "mot.load_workers = $workers\n");
	$node->start;
	my $reader = $node->background_psql('postgres', on_error_stop => 1);
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
	append_to_file($node->data_dir . '/mot.fault.go', '');

	is(left_out(), 'rows', "the largest, with $workers workers and a reader");
	whole('computed', '... and the other is there');
	$reader->query_safe('COMMIT');
	$reader->quit;
	unlink $node->data_dir . '/mot.fault.go';
}

# ---- it comes back, with every row changed since the checkpoint; there is room for it once only,
# and twice it fails when all has been loaded, the second time with another error meanwhile
settings(64, '');
$node->stop('immediate');
$node->start;
is(left_out(), 'rows', 'left out');
keeps_index('rows_v_idx');

sub fails
{
	my ($fault, $sql, $what) = @_;
	my $from = -s $node->logfile;
	settings(64, $fault);
	$node->reload;
	my $reader = $node->background_psql('postgres', on_error_stop => 1);
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM small');
	$node->safe_psql('postgres', "SET mot.fault = ''; $sql");
	$reader->query_safe('COMMIT');
	$reader->quit;
	my ($error) = $node->wait_for_log(qr/ERROR:  .*/, $from) ? slurp_file($node->logfile, $from) =~ /ERROR:  (?:XX000: )?(.*)/ : '';
	is($error, 'fault point "left-out-loaded"', $what);
	return;
}
fails('left-out-loaded:error:1', 'DELETE FROM computed', 'in vain when the rows of another are deleted');
my $maintenance = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot maintenance'});
kill 'STOP', $maintenance;
fails('left-out-loaded:error:1,deleted-key:error', 'DELETE FROM small WHERE id > 50', '... and again, with a key that failed, too');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
	WHERE backend_type = 'mot checkpointer' AND locktype IN ('object', 'relation')}), '0', '... and nothing is locked');
settings(64, '');
$node->reload;
kill 'CONT', $maintenance;
comes_back('it comes back');
whole('rows', 'with all its rows');

# ---- more memory, and less again
settings(256, '');
$node->restart;
is(left_out(), '', 'with more memory there is nothing left out');
$node->safe_psql('postgres', q{INSERT INTO computed SELECT i, 'w' || i, repeat('y', 380) FROM generate_series(1, 70000) i; CHECKPOINT});
$node->safe_psql('postgres', "UPDATE computed SET word = 'W' || id || '_', id = id + 1 WHERE id % 3 = 0");
$node->safe_psql('postgres', 'UPDATE computed SET filler = md5(filler) || filler WHERE id % 5 = 0') for 1 .. 3;
$node->safe_psql('postgres', 'DELETE FROM computed WHERE id % 100 = 7');
remember();
$node->safe_psql(
	'postgres', q{
	CREATE TABLE unknown () INHERITS (computed) USING mot;
	CREATE TABLE later AS SELECT generate_series(1, 100) AS id;
	ANALYZE});

# what the server knows of the table
sub statistics
{
	return $node->safe_psql('postgres', q{SELECT relpages, reltuples FROM pg_class WHERE relname IN ('computed', 'computed_word') ORDER BY relname;
		SELECT count(*), md5(string_agg(s::text, '|' ORDER BY attname)) FROM pg_stats s WHERE tablename = 'computed' AND NOT inherited});
}
my $statistics = statistics();
settings(64, '');
$node->stop('immediate');
$node->start;
is(left_out(), 'computed', 'with less the one that is larger now is not there');
whole('rows', '... and the other is');

# ---- a whole database is cared for nevertheless
for my $command ('ANALYZE', 'VACUUM', 'VACUUM (ANALYZE)', 'ANALYZE computed')
{
	$node->safe_psql('postgres', 'INSERT INTO later SELECT generate_series(1, 100); INSERT INTO small SELECT max(id) + 1 FROM small');
	my ($status, $out, $error) = $node->psql('postgres', $command);
	is($status, 0, "$command does not end at a table that is not there");
	like($error, qr/WARNING:  skipping (analyze|vacuum) of "computed" --- it is not in memory/, '... but says so');
	is(statistics(), $statistics, '... keeps what is known of it');
	is($node->safe_psql('postgres', q{SELECT reltuples = (SELECT count(*) FROM later) FROM pg_class WHERE relname = 'later'}), 't', '... and goes on') if $command !~ /computed/;
}
$node->command_ok([ 'vacuumdb', '-z', '-j', '2', '-h', $node->host, '-p', $node->port, 'postgres' ], 'so does vacuumdb -z');
is(statistics(), $statistics, '... with the same statistics');

# ---- in vain so far: the next time it is there
usleep(1_000_000);
is(left_out(), 'computed', 'there is no room yet');
$node->stop('immediate');
$node->start;
is(left_out(), 'computed', 'nor after a crash');
keeps_index($_) for 'computed_word', 'computed_odd';
$node->safe_psql('postgres', 'BEGIN; UPDATE small SET id = -id WHERE id = 1; TRUNCATE computed; ROLLBACK;
	BEGIN; SAVEPOINT s; UPDATE small SET id = -id WHERE id = 1; TRUNCATE computed; ROLLBACK TO s; UPDATE small SET id = 0 WHERE id = 1; COMMIT');
is(left_out(), 'computed', '... nor after a TRUNCATE that is taken back');
my ($status, $out, $error) = $node->psql('postgres', 'DROP FUNCTION halved CASCADE');
like($error, qr/is not in memory, which has no room for it/, '... nor does one with what it is made of');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE rows');
comes_back('it comes back when another is dropped');
whole('computed', 'with all its rows');
is( $node->safe_psql('postgres', "SET enable_seqscan = off; SELECT word, id FROM computed WHERE upper(word) = 'W30_'"),
	'W30_|31', 'found by a computed key');
$node->stop('immediate');
$node->start;
is(left_out(), '', 'and is there after a crash');
whole('computed', 'with all its rows');

# ---- not while its database is being dropped or renamed
settings(256, '');
$node->restart;
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', q{CREATE EXTENSION mot; CREATE TABLE t (i int PRIMARY KEY, filler text) USING mot;
	INSERT INTO t SELECT i, repeat('x', 400) FROM generate_series(1, 90000) i; CHECKPOINT});
settings(64, '');
$node->stop('immediate');
$node->start;
left_out();
is($node->safe_psql('postgres', 'SELECT datname FROM mot_stat_left_out'), 'other', 'another database has a table that is not there');
my $renames = $node->background_psql('postgres', on_error_stop => 1);
$renames->query_safe('BEGIN; ALTER DATABASE other RENAME TO renamed');
$node->safe_psql('postgres', 'DELETE FROM computed');
usleep(5_000_000);
is($node->safe_psql('postgres', 'SELECT count(*) FROM mot_stat_left_out'), '1', 'it does not come back while that is being renamed');
$renames->query_safe('ROLLBACK');
$renames->quit;
comes_back('... but afterwards');
is($node->safe_psql('other', 'SELECT count(*), sum(length(filler)) FROM t'), '90000|36000000', 'with all its rows');
$node->stop;
done_testing();
