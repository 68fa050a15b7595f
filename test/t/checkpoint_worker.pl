# The checkpoint worker fails, or ends, in the middle of its work, on a server
# without a slot for it: no checkpoint of the server passes meanwhile, so that
# ours is never behind it, and the log that we need is there.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $node = PostgreSQL::Test::Cluster->new('worker');
$node->init;
$node->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
wal_level = minimal
max_wal_senders = 0
max_replication_slots = 0
restart_after_crash = off
});
$node->start;

sub query { return $node->safe_psql('postgres', $_[0]) }

my $in_step = 'SELECT checkpoint_lsn >= (pg_control_checkpoint()).redo_lsn FROM mot_stat_checkpoint';

query('CREATE EXTENSION mot; CREATE FOREIGN TABLE a (id int PRIMARY KEY) SERVER mot_server; INSERT INTO a VALUES (0); CHECKPOINT');
is(query('SELECT count(*) FROM pg_replication_slots'), '0', 'there is no slot');

my $from = 0;

# the worker does this from now on
sub fault
{
	$from = -s $node->logfile;
	$node->append_conf('postgresql.conf', "mot.fault = '$_[0]'");
	$node->reload;
	return;
}

sub wait_for_log
{
	my ($what, $server) = @_;
	for (1 .. 1800)
	{
		return 1 if slurp_file(($server // $node)->logfile, $from) =~ $what;
		select(undef, undef, undef, 0.1);
	}
	return 0;
}

sub redo_lsn { return query('SELECT redo_lsn FROM pg_control_checkpoint()') }

# an error where there is no checkpoint of ours to fail
my $before = redo_lsn();
fault('checkpoint-watch:error');
ok(wait_for_log(qr/fault point "checkpoint-watch" reached: error/), 'the worker fails');
query('INSERT INTO a VALUES (1)');
my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '3s'; CHECKPOINT");
like($err, qr/statement timeout/, '... and a checkpoint of the server waits');
is(redo_lsn(), $before, '... which does not complete');
fault('');
is(query("CHECKPOINT; $in_step"), 't', '... until the worker goes on');
unlike(slurp_file($node->logfile), qr/was terminated|exited with|PANIC|WARNING:  .*leak/, '... as if nothing had been');

# the end, in a checkpoint and between two
my $id = 2;
for my $point ('checkpoint-begin', 'checkpoint-line', 'checkpoint-renamed', 'checkpoint-watch')
{
	query("INSERT INTO a VALUES ($id)");
	fault("$point:fatal");
	# (the server may have begun to end, and psql before it has been told what to run)
	$out = '';
	eval { ($ret, $out, $err) = $node->psql('postgres', "CHECKPOINT; $in_step") };
	ok(wait_for_log(qr/fault point "$point" reached: fatal/), "$point: the worker ends");
	ok($out ne 'f', '... no checkpoint of the server has passed');
	ok(wait_for_log(qr/mot checkpointer ends by an error: without its replication slot the server has to start over/), '... but the server starts over');
	ok(wait_for_log(qr/database system is shut down/), '... or would: it is started anew here, without the fault');
	$node->append_conf('postgresql.conf', "mot.fault = ''");
	$node->stop('immediate', fail_ok => 1);
	$node->start;
	is(query("SELECT count(*) FROM a"), $id + 1, '... and nothing is lost');
	is(query("CHECKPOINT; $in_step"), 't', '... and checkpoints are in step');
	$id++;
}

# ------------------------------------------------------------- the server is killed

# ... while somebody is at something that takes long: who is ends, too, or no other one could start
sub kill_server
{
	my ($server) = @_;
	$server->append_conf('postgresql.conf', "mot.fault = ''");
	$server->kill9;
	my $killed = time;
	my $up;
	until ($up or time > $killed + 20)
	{
		select(undef, undef, undef, 0.2);
		$up = IPC::Run::run([ 'pg_ctl', '-s', '-w', '-D', $server->data_dir, '-l', $server->logfile, 'start' ]);
	}
	$server->_update_pid(1);
	return $up;
}

# (a second for each table)
query(join ';', map { "CREATE FOREIGN TABLE kill_$_ (id int) SERVER mot_server; INSERT INTO kill_$_ VALUES (1)" } 1 .. 100);
fault('checkpoint-rows:sleep');
my $checkpoint = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', 'CHECKPOINT' ], '<', \'', '>', \$out, '2>', \$err);
ok(wait_for_log(qr/fault point "checkpoint-rows" reached/), 'rows are being written');
ok(kill_server($node), '... when the server is killed; another one starts within seconds');
$checkpoint->finish;
is(query("SELECT count(*) FROM a, kill_100"), $id, '... and nothing is lost');
$node->stop;

# with a slot the worker reads the log (a second for 1,024 records), and applies it to the tables
my $reads = PostgreSQL::Test::Cluster->new('reads');
$reads->init(allows_streaming => 1);
$reads->append_conf('postgresql.conf', "autovacuum = off\nshared_preload_libraries = 'mot'\nmot.max_memory = '256MB'\nrestart_after_crash = off\n");
$reads->start;
$reads->safe_psql('postgres', $_)
	for 'CREATE EXTENSION mot; CREATE FOREIGN TABLE b (id int) SERVER mot_server; CHECKPOINT',
	'INSERT INTO b SELECT generate_series(1, 50000)',
	"SELECT count(pg_logical_emit_message(false, 'test', 'x')) FROM generate_series(1, 50000)",
	'INSERT INTO b VALUES (0)';
for my $point ('read-log', 'read-part')
{
	ok(kill_server($reads), 'the server is killed');
	$reads->append_conf('postgresql.conf', "mot.fault = '$point:sleep'");
	$reads->stop('immediate');
	$from = -s $reads->logfile;
	$reads->start;
	ok(wait_for_log(qr/fault point "$point" reached/, $reads), "$point is reached");
	ok(kill_server($reads), '... when the server is killed; another one starts within seconds');
}
is($reads->safe_psql('postgres', 'SELECT count(*) FROM b'), 50001, '... and nothing is lost');

# on a standby it applies what was spooled, here one large transaction
$reads->backup('backup');
my $applies = PostgreSQL::Test::Cluster->new('applies');
$applies->init_from_backup($reads, 'backup', has_streaming => 1);
$applies->append_conf('postgresql.conf', "mot.fault = 'load-begin:wait,load-log:sleep,load-end:sleep,standby-apply:sleep,replay-insert:wait'");
$from = 0;
$applies->start;
ok(wait_for_log(qr/fault point "load-begin" reached/, $applies), 'a standby is about to load');
$reads->safe_psql('postgres', 'INSERT INTO b SELECT generate_series(50001, 55000)');
$reads->wait_for_catchup($applies, 'replay', $reads->lsn('flush'));
my $go = $applies->data_dir . '/mot.fault.go';
append_to_file($go, '');
# (three seconds are left from here until it would go on at the next one, too)
ok(wait_for_log(qr/fault point "load-log" reached/, $applies), '... goes on');
unlink $go;
ok(wait_for_log(qr/fault point "standby-apply" reached/, $applies), '... applies a transaction');
ok(wait_for_log(qr/fault point "replay-insert" reached/, $applies), '... of which it is at the first row');
ok(kill_server($applies), '... when the server is killed; another one starts within seconds');
my $rows = () = slurp_file($applies->logfile) =~ /fault point "replay-insert" reached/g;
cmp_ok($rows, '<', 3000, '... and it has not applied the rest');
$applies->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") or die 'not loaded';
is($applies->safe_psql('postgres', 'SELECT count(*) FROM b'), 55001, '... which the next one has');
$applies->stop;

# it brings back a table that there was no room for
$reads->safe_psql('postgres', $_)
	for map { "CREATE FOREIGN TABLE large_$_ (id int, filler text) SERVER mot_server; INSERT INTO large_$_ SELECT i, repeat('x', 400) FROM generate_series(1, 90000 + $_) i" } 1, 2;
$reads->append_conf('postgresql.conf', "mot.max_memory = '64MB'");
$reads->restart;
$reads->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") or die 'not loaded';
my ($there) = grep { $reads->safe_psql('postgres', "SELECT count(*) FROM mot_stat_left_out WHERE tab = 'large_$_'::regclass") == 0 } 1, 2;
my $left = 3 - $there;
$reads->append_conf('postgresql.conf', "mot.fault = 'left-out-look:sleep'");
$reads->reload;
$from = -s $reads->logfile;
$reads->safe_psql('postgres', "SET mot.fault = ''; TRUNCATE large_$there");
ok(wait_for_log(qr/fault point "left-out-look" reached/, $reads), 'a table is brought back');
ok(kill_server($reads), '... when the server is killed; another one starts within seconds');
$reads->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") or die 'not loaded';
is($reads->safe_psql('postgres', "SELECT count(*), sum(length(filler)) FROM large_$left"), (90000 + $left) . '|' . 400 * (90000 + $left), '... and has it');
$reads->stop;
done_testing();
