# Starting the server: with and without the module preloaded, with memory that
# cannot be had, after a shutdown, after a crash.
# Alone: it looks at how many huge pages the machine has, which any server takes.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Served;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('startup');
$node->init;
$node->append_conf('postgresql.conf', "autovacuum = off\nrestart_after_crash = on\n");

# the part of the log written since we last looked
my $log_seen = 0;

sub new_log
{
	my $log = slurp_file($node->logfile, $log_seen);
	$log_seen = -s $node->logfile;
	return $log;
}

sub wait_for_log
{
	my ($pattern) = @_;
	my $log = '';
	for (1 .. 1800)
	{
		$log .= new_log();
		return $log if $log =~ $pattern;
		select(undef, undef, undef, 0.1);
	}
	return $log;
}

# not preloaded
$node->start;
my ($ret, $out, $err) = $node->psql('postgres', 'CREATE EXTENSION mot');
isnt($ret, 0, 'without preloading there is no extension');
like($err, qr/ERROR:  mot must be loaded at server start/, '... which is an error');
like(
	$err,
	qr/HINT:  Add shared_preload_libraries = 'mot' to postgresql.conf and restart the server\./,
	'... that says which line to add');
($ret, $out, $err) = $node->psql('postgres', "LOAD 'mot'");
like($err, qr/WARNING:  mot was not loaded at server start.*HINT:  Add shared_preload_libraries/s, 'LOAD warns');
($ret, $out, $err) = $node->psql('postgres', "LOAD 'mot'; CREATE EXTENSION mot");
like($err, qr/ERROR:  mot must be loaded at server start/, 'the error comes in a session that loaded the module, too');

# preloaded; the default size
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\n");
$node->restart;
my $mb = $node->safe_psql('postgres', "SELECT setting FROM pg_settings WHERE name = 'mot.max_memory'");
cmp_ok($mb, '>=', 64, "a default for mot.max_memory was found: $mb MB");
my ($installed) = slurp_file('/proc/meminfo') =~ /^MemTotal:\s+(\d+) kB/m;
cmp_ok($mb, '<=', $installed / 1024 / 4 + 1, '... at most a quarter of what the machine has');

# less than the least there is: not the default, which is far more than what was asked for
$node->append_conf('postgresql.conf', "mot.max_memory = '32MB'\n");
$node->restart;
like(new_log(), qr/WARNING:  mot\.max_memory is 64MB instead of 32MB\s.*DETAIL:  mot\.max_memory must be at least 64MB\./, 'who asks for too little memory is told');
is($node->safe_psql('postgres', 'SHOW mot.max_memory'), '64MB', '... and has the least there is');
$node->reload;
is($node->safe_psql('postgres', q{SELECT pending_restart FROM pg_settings WHERE name = 'mot.max_memory'}), 'f', '... also when the file is read again');
($ret, $out, $err) = $node->psql('postgres', q{ALTER SYSTEM SET mot.max_memory = '63MB'});
like($err, qr/ERROR:  invalid value for parameter "mot.max_memory": 63.*DETAIL:  mot\.max_memory must be at least 64MB\./s, 'ALTER SYSTEM refuses it');
$node->append_conf('postgresql.conf', "mot.max_memory = '256MB'\n");
$node->restart;
is($node->safe_psql('postgres', 'SHOW mot.max_memory'), '256MB', 'a set size is taken');

# tables come back, in every database
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('postgres', 'CREATE DATABASE without');
for my $db ('postgres', 'other')
{
	$node->safe_psql(
		$db, qq{
		CREATE EXTENSION mot;
		CREATE FOREIGN TABLE kept_$db (id int PRIMARY KEY, t text) SERVER mot_server;
		CREATE INDEX ON kept_$db (t);
		INSERT INTO kept_$db SELECT i, 'row ' || i FROM generate_series(1, 100) i;
	});
}
$node->safe_psql('other', 'CREATE SCHEMA s; CREATE FOREIGN TABLE s.second (id int) SERVER mot_server');
$node->restart;
is($node->safe_psql('other', 'SELECT count(*), sum(id) FROM kept_other'), '100|5050', 'rows come back');
is($node->safe_psql('other', 'SELECT count(*) FROM s.second'), '0', '... or none, where there were none');
like(new_log(), qr/LOG:  loaded memory-optimized tables: 3 tables, 200 rows/, '... and the log tells');
($ret, $out, $err) = $node->psql('other', "INSERT INTO kept_other VALUES (1, 'again')");
like($err, qr/duplicate key value violates unique constraint "kept_other_pkey"/, 'its indexes work');
is($node->safe_psql('other', "SET enable_seqscan = off; SELECT count(*) FROM kept_other WHERE t = 'row 7'"), '1', '... all of them');

# a crash: everything starts over, no memory is lost
sub memory { return $node->safe_psql('postgres', 'SELECT used_bytes FROM mot_stat_memory') }
$node->safe_psql('postgres', "INSERT INTO kept_postgres SELECT i, repeat('x', 100) FROM generate_series(101, 100000) i");
my $before = memory();
for my $round (1 .. 3)
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query('SELECT pg_backend_pid()');
	$session->query('BEGIN');
	$session->query("UPDATE kept_postgres SET t = 'half done' WHERE id < 1000");
	new_log();
	kill 'KILL', $pid;
	wait_for_log(qr/database system is ready to accept connections/);
	eval { $session->quit };
	served($node) or die;
	is($node->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE t = 'half done') FROM kept_postgres"),
		'100000|0', "what was committed is there after crash $round");
}
cmp_ok(memory(), '<=', $before + 4 * 1024 * 1024, 'crashes cost no memory');
$node->safe_psql('postgres', "TRUNCATE kept_postgres");
$node->safe_psql('postgres', "INSERT INTO kept_postgres VALUES (1, 'after the crash')");
is($node->safe_psql('postgres', 'SELECT t FROM kept_postgres'), 'after the crash', 'the table works after a crash');

# the maintenance worker comes back by itself
my $worker = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot maintenance'");
ok($worker, 'there is a maintenance worker');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
ok( $node->poll_query_until(
		'postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'mot maintenance' AND pid <> $worker"),
	'... which is started again');
is($node->safe_psql('postgres', 'SELECT t FROM kept_postgres'), 'after the crash', '... without harm');

# a database that is dropped takes its tables' memory along
$node->safe_psql('other', "INSERT INTO kept_other SELECT i, repeat('x', 1000) FROM generate_series(1000, 20000) i");
$before = memory();
$node->safe_psql('postgres', 'DROP DATABASE other');
ok($node->poll_query_until('postgres', "SELECT used_bytes < $before - 15000000 FROM mot_stat_memory"),
	'DROP DATABASE gives memory back');

# memory that cannot be had does not stop the server
SKIP:
{
	my ($huge) = slurp_file('/proc/meminfo') =~ /^HugePages_Free:\s+(\d+)/m;
	skip 'this machine has huge pages', 5 if $huge;
	new_log();
	$node->append_conf('postgresql.conf', "mot.huge_pages = on\n");
	$node->restart;
	my $log = new_log();
	like($log, qr/LOG:  could not reserve 256 MB for memory-optimized tables: the server starts without them/, 'the log says what happened');
	like($log, qr/DETAIL:  \S/, '... and why');
	is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server works');
	($ret, $out, $err) = $node->psql('postgres', 'SELECT * FROM kept_postgres');
	like($err, qr/ERROR:  memory-optimized tables are not available: their memory could not be reserved at server start.*HINT:/s, 'a statement that needs the engine says so');
	$node->safe_psql('postgres', 'DROP FOREIGN TABLE kept_postgres');
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'kept_postgres'"), '0', 'tables can be dropped');
}

$node->stop;
done_testing();
