# Counters of the whole server: from PostgreSQL 18 on they survive a clean stop, as the
# server's own, and begin anew after a crash and when they are reset; before, at each start.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Served;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\nfsync = off\nautovacuum = off\n");
$node->start;
my $kept = $node->safe_psql('postgres', 'SHOW server_version_num') >= 180000;
$node->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE TABLE t (id int PRIMARY KEY) USING mot; CREATE ROLE curious');

sub query { return $node->safe_psql('postgres', shift) }

sub counters { return map { int } split /\|/, query('SELECT commits, aborts, conflict_changed, completed, failed FROM mot_stat_transactions, mot_stat_checkpoint') }
my $since = 'SELECT stats_reset FROM mot_stat_transactions';

query("INSERT INTO t VALUES ($_)") for 1 .. 20;
query("BEGIN; INSERT INTO t VALUES ($_ + 100); ROLLBACK") for 1 .. 5;
query('CHECKPOINT');
ok($node->poll_query_until('postgres', 'SELECT completed > 0 FROM mot_stat_checkpoint'), 'a checkpoint is counted');
my @before = counters();
cmp_ok($before[0], '>=', 20, 'so are commits');
cmp_ok($before[1], '>=', 5, 'and what is rolled back');
my $from = query($since);

# (nothing is written in between; the stop writes a checkpoint, and a start one when it has none)
for my $how ('fast', 'fast', 'smart')
{
	$node->stop($how);
	$node->start;
	my @after = counters();
	if ($kept)
	{
		is_deeply([ @after[ 0 .. 2 ] ], [ @before[ 0 .. 2 ] ], "after a clean stop ($how) they are what they were");
		cmp_ok($after[3], '>=', $before[3], '... and checkpoints no fewer');
		is(query($since), $from, '... since when they were');
	}
	else
	{
		is_deeply([ @after[ 0 .. 2 ] ], [ 0, 0, 0 ], "after a stop ($how) they begin anew");
		isnt(query($since), $from, '... and since when');
	}
	@before = @after;
	$from = query($since);
}
query("INSERT INTO t VALUES ($_)") for 21 .. 23;
is((counters())[0], $before[0] + 3, 'what comes is added');

# a reset, and what comes after it, over a stop
query('SELECT mot_stat_reset()');
is_deeply([ (counters())[ 0 .. 2 ] ], [ 0, 0, 0 ], 'reset');
is(query("SELECT stats_reset > '$from' AND stats_reset > now() - interval '1 minute' FROM mot_stat_transactions"), 't', '... since now');
is(query('SELECT completed, failed FROM mot_stat_checkpoint'), '0|0', '... of the other views, too');
query("INSERT INTO t VALUES ($_)") for 31 .. 32;
$node->stop;
$node->start;
is((counters())[0], $kept ? 2 : 0, 'what has come since');
like(($node->psql('postgres', 'SET ROLE curious; SELECT mot_stat_reset()'))[2], qr/permission denied for function mot_stat_reset/, 'not everybody may');

# after a crash, as the server's own
$from = query($since);
$node->stop('immediate');
$node->start;
is((counters())[0], 0, 'after a crash they begin anew');
is(query("SELECT stats_reset > '$from' FROM mot_stat_transactions"), 't', '... since the start');
query('INSERT INTO t VALUES (41)');
is((counters())[0], 1, '... with what comes');

# of a server that goes on after a backend has crashed
query('INSERT INTO t VALUES (42)');
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->restart;
$node->psql('postgres', q{COPY (SELECT 1) TO PROGRAM 'kill -KILL $PPID'});
served($node) or die;
is((counters())[0], 0, 'so they do when the server starts over by itself');
query('INSERT INTO t VALUES (43)');
is((counters())[0], 1, '... with what comes');

SKIP:
{
	skip 'this server keeps no statistics of modules', 7 unless $kept;

	# an ID that is somebody else's, one that none can have, another, and none
	my $log = -s $node->logfile;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$ENV{MOT_OTHER_RMGR}, mot'\nmot.resource_manager_id = 128\nother.id = 200\nother.statistics_id = 24\n");
	$node->restart;
	like(slurp_file($node->logfile, $log), qr/WARNING:  cumulative statistics of memory-optimized tables are not kept when the server stops\n.*Another module in shared_preload_libraries, "other", has the same ID 24.*\n.*Set mot.statistics_id to another number from 24 to 32, or to 0/, 'a module that has our ID is named');
	query('SELECT mot_stat_reset(); INSERT INTO t VALUES (50)');
	is(query('SELECT commits FROM mot_stat_transactions; SHOW mot.statistics_id'), "1\n0", '... and they are counted');
	$log = -s $node->logfile;
	$node->append_conf('postgresql.conf', "mot.statistics_id = 1\n");
	$node->restart;
	like(slurp_file($node->logfile, $log), qr/invalid value for parameter "mot.statistics_id": 1\n.*It must be from 24 to 32, or 0/, "an ID of the server's own is refused");
	$node->append_conf('postgresql.conf', "mot.statistics_id = 30\n");
	$node->restart;
	query('INSERT INTO t VALUES (51)');
	$node->restart;
	is((counters())[0], 1, 'another ID keeps them as well');
	$node->append_conf('postgresql.conf', "mot.statistics_id = 0\n");
	$node->restart;
	query('INSERT INTO t VALUES (52)');
	is((counters())[0], 1, 'with none they are there');
	query('SELECT mot_stat_reset(); INSERT INTO t VALUES (53)');
	is((counters())[0], 1, '... can be reset');
	$node->restart;
	is((counters())[0], 0, '... and begin anew at each start');
}

$node->stop;
done_testing();
