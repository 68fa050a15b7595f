# How fast checkpoints of memory-optimized tables are written: slowly beside
# clients, as fast as can be on an idle server, and whoever cannot wait
# does not have to.
# Alone: it judges by the processor time that helpers get.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

chomp(my $processors = `getconf _NPROCESSORS_ONLN`);
plan skip_all => 'the smallest limit is a lot of so many processors' if $processors > 8;

my $node = PostgreSQL::Test::Cluster->new('pace');
$node->init(allows_streaming => 1, extra => ['--wal-segsize=1']);
$node->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '1GB'
mot.checkpoint_workers = 2
mot.checkpoint_share = 1
min_wal_size = '2MB'
max_wal_size = '4GB'
});
$node->start;

sub query { return $node->safe_psql('postgres', $_[0]) }

sub seconds
{
	my ($what) = @_;
	my $began = time;
	ref $what ? $what->() : query($what);
	return time - $began;
}

# the 19th field of what the system says of a process
sub niceness
{
	my ($pid) = @_;
	return (split ' ', slurp_file("/proc/$pid/stat") =~ s/.*\) //sr)[16];
}

# a checkpoint has come to its rows
sub helpers
{
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	return grep { Ledger::title($_) =~ /mot checkpoint helper/ } Ledger::children($postmaster);
}

sub under_way
{
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	sleep 0.05 while (() = helpers()) < 2 && time < $until;
	return;
}

my $change = 'UPDATE big SET n = n + 1 WHERE id = 1';
my $worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'};
my ($load, $load_in, $load_out);

sub begin_load
{
	($load_in, $load_out) = ('', '');
	$load = IPC::Run::start([ 'psql', '-X', '-q', $node->connstr('postgres') ], '<', \$load_in, '>&', \$load_out);
	$load_in .= 'DO $$ BEGIN LOOP UPDATE small SET n = n + 1 WHERE id = 1; COMMIT; PERFORM pg_sleep(0.0001); END LOOP; END $$;' . "\n\\q\n";
	$load->pump while length $load_in;
	$node->poll_query_until('postgres', 'SELECT n > ' . query('SELECT n FROM small') . ' FROM small') or die;
	return;
}

sub end_load
{
	query(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %'});
	$load->finish;
	return;
}

query(q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE big (id int PRIMARY KEY, n int, t text) SERVER mot_server;
	CREATE FOREIGN TABLE small (id int PRIMARY KEY, n int) SERVER mot_server;
	INSERT INTO small VALUES (1, 0);
	INSERT INTO big SELECT i, 0, repeat('x', 200) FROM generate_series(1, 600000) i;
	ALTER SYSTEM SET synchronous_commit = off;
	SELECT pg_reload_conf();
});

# The machine may have other work, which helpers give way to: the best of a few.
my $idle = 1000;
for (1 .. 10)
{
	query($change);
	my $this = seconds('CHECKPOINT');
	$idle = $this if $this < $idle;
	last if $idle < 1.5;
}
cmp_ok($idle, '<', 8, 'on an idle server a checkpoint is fast');

# it would take half a minute and more
begin_load();
query($change);
my $completed = query('SELECT completed FROM mot_stat_checkpoint');
my $busy = IPC::Run::start([ 'psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres') ], '>&', \my $checkpoint);
under_way();
sleep 2.5;
is(query('SELECT completed FROM mot_stat_checkpoint'), $completed, 'beside a client it takes its time');

# helpers give way to everybody else, also where each session has its own part of the processors
my ($pm) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my @helpers = helpers();
is(scalar(@helpers), 2, 'helpers are at it');
is(scalar(grep { niceness($_) > niceness($pm) } @helpers), 2, '... with lowered priority');
SKIP:
{
	skip 'the kernel does not group by sessions', 1 unless -e '/proc/self/autogroup';
	is(join(' ', map { slurp_file("/proc/$_/autogroup") =~ /nice (\d+)/ } @helpers), '10 10', '... as sessions');
}

# whoever says so while it goes on
cmp_ok(
	seconds(sub {
		query("ALTER SYSTEM SET mot.checkpoint_share = 100; SELECT pg_reload_conf()");
		$busy->finish;
	}),
	'<', 8, '... until the limit is taken away');
is(query('SELECT completed, failed FROM mot_stat_checkpoint'), ($completed + 1) . '|0', '... and is complete');
query("ALTER SYSTEM RESET mot.checkpoint_share; SELECT pg_reload_conf()");

# a cancelled one; the server's goes on, with what the slot keeps
query($change);
$busy = IPC::Run::start([ 'psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres') ], '>&', \$checkpoint);
under_way();
sleep 1;
cmp_ok(
	seconds(sub {
		query("SELECT pg_cancel_backend(pid) FROM ($worker) w");
		$busy->finish;
	}),
	'<', 4, 'cancelled in a pause, it ends at once');
is(query('SELECT failed, last_error FROM mot_stat_checkpoint'), '1|canceling statement due to user request', '... and says so');

# (a failure is followed by some rest)
$node->poll_query_until('postgres', 'SELECT completed = ' . ($completed + 2) . ' FROM mot_stat_checkpoint') or die;

# no longer than the server takes for its own
query('ALTER SYSTEM SET checkpoint_timeout = 30; ALTER SYSTEM SET checkpoint_completion_target = 0.1; SELECT pg_reload_conf()');
query($change);
cmp_ok(seconds('CHECKPOINT'), '<', 15, 'it keeps to checkpoint_completion_target');
query('ALTER SYSTEM RESET checkpoint_timeout; ALTER SYSTEM RESET checkpoint_completion_target; SELECT pg_reload_conf()');

# terminated by hand: finishes, and another one comes
query($change);
my $pid = query($worker);
$busy = IPC::Run::start([ 'psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres') ], '>&', \$checkpoint);
under_way();
sleep 1;
cmp_ok(
	seconds(sub {
		query("SELECT pg_terminate_backend($pid)");
		$busy->finish;
	}),
	'<', 8, 'terminated in a pause, the worker finishes without further ones');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($worker) w WHERE pid <> $pid") or die;

# the server's stop; what was committed is there
query($change);
$busy = IPC::Run::start([ 'psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres') ], '>&', \$checkpoint);
under_way();
sleep 1;
my $n = query('SELECT n FROM small');
cmp_ok(seconds(sub { $node->stop('fast') }), '<', 10, 'a pause does not keep the server from stopping');
$_->finish for $busy, $load;
$node->start;
cmp_ok(query('SELECT n FROM small'), '>=', $n, 'nothing is lost');
is(query(q{SELECT sum(problems) FROM mot_verify('big')}), '0', '... and all is whole');

# it dies in a pause
begin_load();
query($change);
my $sums = 'SELECT count(*), sum(n) FROM big';
my $before = query($sums);
$busy = IPC::Run::start([ 'psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres') ], '>&', \$checkpoint);
under_way();
sleep 1;
$node->stop('immediate');
$_->finish for $busy, $load;
$node->start;
is(query($sums), $before, 'a crash in a pause: all is there');

# The postmaster dies in a pause: the server's checkpoint must not complete
# without ours, least of all when no slot keeps the log.
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\n");
$node->restart;
begin_load();
query($change);
query('UPDATE big SET n = n + 1 WHERE id < 100000');
$before = query($sums);
my $oldest = (glob($node->data_dir . '/pg_wal/' . '[0-9A-F]' x 24))[0];
$busy = IPC::Run::start([ 'psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres') ], '>&', \$checkpoint);
under_way();
sleep 1;
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my @all = ($postmaster, Ledger::children($postmaster));
kill 'KILL', $postmaster;
my $until = time + 20;
sleep 0.02 while time < $until && grep { Ledger::slurp_state($_) ne 'Z' } @all;
is(join(' ', grep { Ledger::slurp_state($_) ne 'Z' } @all), '', 'without the postmaster everybody ends');
ok(-e $oldest, '... and the log stays');
$_->finish for $busy, $load;

# where nobody collects dead processes, it would be taken for a living one
unlink $node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock';
$node->{_pid} = undef;
$node->start;
is(query($sums), $before, '... so that all is there');

# at the end of a recovery that no slot keeps the log for, all wait for a checkpoint: nobody gives
# way
SKIP:
{
	skip 'not a build with fault points', 2 unless $ENV{MOT_FAULT_POINTS};
	query($change);
	$node->stop('immediate');
	$node->append_conf('postgresql.conf', "mot.fault = 'checkpoint-items:wait'\n");
	my $log = -s $node->logfile;
	my $start = IPC::Run::start([ 'pg_ctl', '-D', $node->data_dir, '-l', $node->logfile, 'start' ], '>&', \my $started);
	$node->wait_for_log(qr/(?:"checkpoint-items" reached.*){3}/s, $log);
	($pm) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	@helpers = helpers();
	is(join(' ', map { niceness($_) - niceness($pm) } @helpers), '0 0', 'helpers keep their priority when all wait');
	$node->append_conf('postgresql.conf', "mot.fault = ''\n");
	open(my $go, '>', $node->data_dir . '/mot.fault.go') or die;
	ok($start->finish, '... and the server starts');
	$node->_update_pid(1);
}
$node->stop;

done_testing();
