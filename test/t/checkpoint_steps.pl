# Checkpoints of memory-optimized tables in step with the server's: position,
# files, what is kept and what goes; clean restarts; without a slot.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('steps');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '512MB'
log_checkpoints = on
});
$node->start;

my $log_seen = 0;

sub new_log
{
	my $log = slurp_file($node->logfile, $log_seen);
	$log_seen = -s $node->logfile;
	return $log;
}

sub query { return $node->safe_psql('postgres', $_[0]) }

sub entries
{
	opendir(my $dir, $node->data_dir . '/mot' . ($_[0] ? "/$_[0]" : '')) or return ();
	return sort grep { !/^\.\.?$/ } readdir $dir;
}

sub checkpoints { return grep { /^[0-9A-F]{24}$/ } entries() }

# does the checkpoint of ours stand where the server's redo begins, or later?
my $in_step = 'SELECT checkpoint_lsn >= (pg_control_checkpoint()).redo_lsn FROM mot_stat_checkpoint';

# nothing, as long as there is no table
query('CREATE EXTENSION mot; CHECKPOINT');
ok(!-e $node->data_dir . '/mot', 'without a table there is no directory');
is(query('SELECT count(*) FROM pg_replication_slots'), '0', '... and no slot');
is(query('SELECT checkpoint_lsn IS NULL, completed, last_error IS NULL FROM mot_stat_checkpoint'), 't|0|t', '... and no checkpoint');

query(q{
	CREATE FOREIGN TABLE a (id int PRIMARY KEY, t text) SERVER mot_server;
	CREATE FOREIGN TABLE b (id int, t text) SERVER mot_server;
	CREATE INDEX ON b (id);
	CREATE FOREIGN TABLE empty (id int) SERVER mot_server;
	INSERT INTO a SELECT i, 'a' || i FROM generate_series(1, 20000) i;
	INSERT INTO b SELECT i % 10, CASE WHEN i % 7 > 0 THEN 'b' || i END FROM generate_series(1, 3000) i;
	INSERT INTO b SELECT 0, string_agg(md5(i::text), '') FROM generate_series(1, 40000) i;
});
is(query('SELECT slot_name, slot_type, active FROM pg_replication_slots'), 'mot|physical|f', 'with the first table comes the slot');
is(query('CHECKPOINT; ' . $in_step), 't', 'CHECKPOINT includes ours');
is(query('SELECT rows, failed FROM mot_stat_checkpoint'), '23001|0', 'it has all rows');
my @steps = map { query("INSERT INTO a VALUES (30000 + $_); CHECKPOINT; CHECKPOINT; $in_step; CHECKPOINT; $in_step") } 1 .. 10;
is(join(' ', @steps), join(' ', ("t\nt") x 10), 'one after the other, none passes without ours');
is(scalar(checkpoints()), 1, 'old ones go');
my ($name) = checkpoints();
my ($oid_a, $oid_b, $db) = split /\|/, query("SELECT 'a'::regclass::oid, 'b'::regclass::oid, d.oid FROM pg_database d WHERE datname = 'postgres'");
is(join(' ', entries($name)), join(' ', sort "$db.$oid_a.0", "$db.$oid_b.0", 'manifest'), 'a file for each table with rows, and the manifest');
is((stat($node->data_dir . "/mot/$name/$db.$oid_b.0"))[7] > 1200000, 1, 'a row larger than a block is in it');
query('CHECKPOINT');
like(new_log(), qr/checkpoint of memory-optimized tables complete: wrote 3 tables, 23011 rows, \d+ kB in 2 files \(2 of them unchanged\)/,
	'what nobody changed is not written again');
is(query("SELECT restart_lsn = checkpoint_lsn FROM pg_replication_slots, mot_stat_checkpoint WHERE slot_name = 'mot'"), 't', 'the slot keeps the log from there');

# a transaction that is not committed is not in it, and one's own definition neither
my $session = $node->background_psql('postgres');
$session->query('BEGIN');
$session->query("INSERT INTO a VALUES (40000, 'not yet')");
$session->query('TRUNCATE b');
$session->query('INSERT INTO b VALUES (1)');
$session->query('CREATE FOREIGN TABLE c (id int) SERVER mot_server');
query('CHECKPOINT');
is(query('SELECT rows FROM mot_stat_checkpoint'), '23011', 'what is not committed is not in it');
$session->quit;

# clean restarts
my $sums = 'SELECT count(*), sum(id), md5(string_agg(t, $$,$$ ORDER BY id, t)) FROM a UNION ALL SELECT count(*), sum(id), md5(string_agg(t, $$,$$ ORDER BY id, t)) FROM b UNION ALL SELECT count(*), sum(id), NULL FROM empty';
my $before = query($sums);
my $whole = q{SELECT count(*) FROM (VALUES ('a'), ('b'), ('empty')) v (t), mot_verify(t::regclass) f WHERE f.first_problem IS NOT NULL};
is(query($whole), '0', 'all is whole');
$node->stop;
is(join(' ', grep { !/^[0-9A-F]{24}$/ } entries()), '', 'after a clean stop nothing but a checkpoint is there');
$node->start;
is(query('SELECT count(*) FROM pg_replication_slots'), '0', 'a clean stop gives the slot back: no log is needed');
is(query($sums), $before, 'all is back');
is(query($whole), '0', '... and whole');
is(query('SELECT state, tables_total, tables_loaded, rows_loaded, records_applied, damaged_tables FROM mot_stat_recovery'), 'ready|3|3|23011|0|0', 'without any log');
my @once = checkpoints();
$node->restart;
is(join(' ', checkpoints()), join(' ', @once), 'a server in which nothing changed leaves the checkpoint alone');
like(query("CHECKPOINT; $in_step"), qr/^t/, 'CHECKPOINT includes ours, written or not');
query('INSERT INTO a VALUES (50001)');
ok(-e $node->data_dir . '/mot/open', 'with the first change the log counts');
$node->stop('immediate');
$node->start;
is(query('SELECT count(*) FROM a'), 20011, 'after a crash, too');
is(query($whole), '0', '... all is whole');

# the worker
my $worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'};
my $pid = query($worker);
query("SELECT pg_terminate_backend($pid)");
query('INSERT INTO a VALUES (50002)');
ok(query($worker) != $pid, 'a worker terminated by hand comes back');
is(query("CHECKPOINT; $in_step"), 't', '... and goes on');
is(query('SELECT failed FROM mot_stat_checkpoint'), '0', 'none has failed');

# a slot that somebody drops
query(q{SELECT pg_drop_replication_slot('mot'); INSERT INTO a VALUES (50003)});
$node->stop('immediate');
$node->start;
is(query('SELECT count(*) FROM a'), 20013, 'without its slot nothing is lost in a crash');
query('INSERT INTO a VALUES (50004)');
is(query(q{SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'mot'}), '1', '... and it is made again');

# no free slot
$node->append_conf('postgresql.conf', 'max_replication_slots = 1');
$node->restart;
query(q{SELECT pg_create_physical_replication_slot('other')});
new_log();
query('INSERT INTO a VALUES (50005); CHECKPOINT');
like(new_log(), qr/replication slot "mot" of memory-optimized tables is not available/, 'the log says when no slot is free');
for my $round (1 .. 2)
{
	query("INSERT INTO a VALUES (50005 + $round)");
	$node->stop('immediate');
	$node->start;
}
is(query('SELECT count(*) FROM a'), 20017, 'crashes one after the other lose nothing');
$node->append_conf('postgresql.conf', "max_replication_slots = 0\nmax_wal_senders = 0\nwal_level = minimal\nmin_wal_size = '32MB'\nmax_wal_size = '32MB'");
query(q{SELECT pg_drop_replication_slot('other')});
$node->restart;
for my $round (1 .. 3)
{
	# enough log to have the old removed
	query("INSERT INTO a VALUES (50010 + $round); CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 20000); DROP TABLE filler");
	$node->stop('immediate');
	$node->start;
	is(query('SELECT count(*) FROM a'), 20017 + $round, "with wal_level = minimal: after crash $round");
}
is(query('SELECT count(*) FROM pg_replication_slots'), '0', '... without a slot');
$pid = query($worker);
query("SELECT pg_terminate_backend($pid)");
query('SELECT pg_sleep(0.5)');
is(query($worker), $pid, 'without a slot the worker does not go');
like(new_log(), qr/mot checkpointer was asked to terminate and goes on/, '... and says so');

# what is dropped leaves nothing
query('DROP TABLE a; CHECKPOINT');
($name) = checkpoints();
is(join(' ', entries($name)), "$db.$oid_b.0 manifest", 'a dropped table has no file any more');
$node->safe_psql('postgres', 'CREATE DATABASE d');
$node->safe_psql('d', 'CREATE EXTENSION mot; CREATE FOREIGN TABLE x (id int) SERVER mot_server; INSERT INTO x VALUES (1)');
query('CHECKPOINT');
($name) = checkpoints();
is(scalar(my @files = entries($name)), 3, 'tables of another database are there');
query('DROP DATABASE d');
query('DROP EXTENSION mot CASCADE; CREATE EXTENSION mot; CHECKPOINT');
($name) = checkpoints();
is(join(' ', entries($name)), 'manifest', 'without any table a checkpoint is empty');
$node->restart;
is(query('SELECT count(*) FROM mot_stat_tables'), '0', '... and so is the server');

# a worker that has no place
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->restart;
my ($ret, $out, $err) = $node->psql('postgres', 'CREATE FOREIGN TABLE y (id int) SERVER mot_server');
like($err, qr/ERROR:  memory-optimized tables are not available: the checkpoint worker is not running.*HINT:  Increase max_worker_processes/s,
	'a server without the worker says so');

$node->stop;
done_testing();
