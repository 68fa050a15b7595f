# The disk of checkpoints is full, at each moment at which that matters: before
# the first change, in rows, in the manifest, with a slot and without one, at a
# clean stop.  It is said loudly, the last good checkpoint stays, writers go
# on, nothing is lost, and with room everything goes on by itself.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

srand(int($ENV{SEED} || 1));

my $small = $ENV{MOT_SMALL_DISK} && "$ENV{MOT_SMALL_DISK}/checkpoint_disk";
plan skip_all => 'no small disk: only root, with the right to mount, gets one' unless $small;

sub room
{
	return (split /\n/, `df --output=avail -B1 $small`)[1] =~ /(\d+)/ ? $1 : die;
}

# no more than "leave" bytes are left
sub fill_up
{
	my ($leave) = @_;
	open(my $fh, '>>', "$small/ballast") or die;
	while ((my $n = room() - $leave) > 0)
	{
		syswrite($fh, 'x' x ($n < 1 << 20 ? $n : 1 << 20)) or last;
	}
	close $fh;
	return;
}

sub make_room { unlink "$small/ballast" or die; return }

my $node = PostgreSQL::Test::Cluster->new('disk');
$node->init(allows_streaming => 1, extra => ['--wal-segsize=1']);
$node->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
restart_after_crash = off
min_wal_size = '2MB'
max_wal_size = '100MB'
wal_recycle = off
});
my $data = $node->data_dir;
mkdir "$small/mot" or die;
symlink("$small/mot", "$data/mot") or die;
$node->start;

sub query { return $node->safe_psql('postgres', $_[0]) }

sub error_of
{
	my ($ret, $out, $err) = $node->psql('postgres', $_[0]);
	return $ret == 0 ? "no error: $out" : $err;
}

sub wait_for
{
	my ($what, $sql) = @_;
	ok($node->poll_query_until('postgres', $sql), $what);
	return;
}

my $seen = 0;

sub new_log
{
	my $log = slurp_file($node->logfile, $seen);
	$seen = -s $node->logfile;
	return $log;
}

sub half_done { return join(' ', grep { !m{/(?:[0-9A-F]{24}|open)$} } glob("$small/mot/*")) }

# ------------------------------------------------------------ before a change

query('CREATE ROLE curious; CREATE EXTENSION mot');
fill_up(0);
like(error_of('CREATE FOREIGN TABLE t (id int PRIMARY KEY, v text) SERVER mot_server'),
	qr/ERROR:  memory-optimized tables cannot be changed: their changes would not be recoverable\nDETAIL:  .*No space left on device.*\nHINT:  Remove the cause/, 'the first change needs a first checkpoint');
is(query('SELECT count(*) FROM pg_class WHERE relname = $$t$$'), '0', '... and there is none of it');
is(half_done(), '', '... nor of the checkpoint');
make_room();
query(q{CREATE FOREIGN TABLE t (id int PRIMARY KEY, v text) SERVER mot_server; INSERT INTO t SELECT i, repeat(md5(i::text), 10) FROM generate_series(1, 10000) i});
query(q{CREATE FOREIGN TABLE small (id int PRIMARY KEY) SERVER mot_server; INSERT INTO small VALUES (1); CREATE TABLE cold (id int)});
query('CHECKPOINT');
my $good = query('SELECT checkpoint_lsn FROM mot_stat_checkpoint');
my @files = glob("$small/mot/*/*");

# after a clean start, too: definitions and rows can be read, and not changed
$node->restart;
fill_up(0);
is(query('SELECT count(*) FROM t'), '10000', 'a full disk at a clean start: rows are there');
like(error_of('INSERT INTO small VALUES (2)'), qr/ERROR:  memory-optimized tables cannot be changed: their changes would not be recoverable\nDETAIL:  .*No space left/, '... and cannot be changed');
query('INSERT INTO cold VALUES (1)');
make_room();
query('INSERT INTO small VALUES (2)');
is(query('SELECT count(*) FROM small'), '2', '... before there is room');
query('CHECKPOINT');

# ---------------------------------------------------- with a slot: no waiting

# anywhere: rows of the first table, of the second, the manifest
my $size = query('SELECT bytes FROM mot_stat_checkpoint');
my $id = 10;
for my $leave (0, 4096 + int(rand($size - 100_000)), $size + 2 * 4096)
{
	$good = query('SELECT checkpoint_lsn FROM mot_stat_checkpoint');
	my $failed = query('SELECT failed FROM mot_stat_checkpoint');
	query('UPDATE t SET v = reverse(v)');
	$id++;
	query("INSERT INTO small VALUES ($id)");
	new_log();
	fill_up($leave);
	my $began = time;
	query('CHECKPOINT');
	cmp_ok(time - $began, '<', 20, "room for $leave bytes: the server's checkpoint does not wait");
	SKIP:
	{
		skip 'there was room', 5 if query("SELECT failed FROM mot_stat_checkpoint") eq $failed;
		like(query('SELECT last_error FROM mot_stat_checkpoint'), qr/^could not \w+ .*"mot\/.*No space left on device/, '... ours fails, and the view says why');
		is(query('SET ROLE curious; SELECT last_error FROM mot_stat_checkpoint'), '<insufficient privilege>', '... not to everybody');
		like(new_log(), qr/WARNING:  checkpoint of memory-optimized tables failed: could not .*No space left on device\n.*DETAIL:  It will be tried again; the log back to the last good one is kept/, '... and so does the log');
		is(query('SELECT checkpoint_lsn FROM mot_stat_checkpoint'), $good, '... the last good one stays');
		is(half_done(), '', '... room is given back');
	}
	$id++;
	query("INSERT INTO small VALUES ($id)");
	make_room();
	wait_for('... with room it is tried again', "SELECT checkpoint_lsn > '$good' FROM mot_stat_checkpoint");
}

# ... and the log is kept, through checkpoints of the server and a crash
fill_up(0);
$good = query('SELECT checkpoint_lsn FROM mot_stat_checkpoint');
for (1 .. 3)
{
	$id++;
	query("UPDATE t SET v = reverse(v) WHERE id % 3 = 0; INSERT INTO small VALUES ($id); CHECKPOINT");
}
my $everything = q{SELECT count(*), md5(string_agg(v, ',' ORDER BY id)) FROM t UNION ALL SELECT sum(id), NULL FROM small};
my $before = query($everything);
$node->stop('immediate');
$node->start;
is(query($everything), $before, 'a crash with a full disk: the log from the last good one on is there');
is(query('SELECT checkpoint_lsn FROM mot_stat_recovery'), $good, '... which was loaded');
like(error_of('SELECT 1/0'), qr/division by zero/, '... and the server works');

# a clean stop
$node->stop;
ok(-e "$small/mot/open", 'a clean stop with a full disk leaves it to the log');
$node->start;
is(query($everything), $before, '... which has everything');
make_room();
$id++;
query("INSERT INTO small VALUES ($id)");
$before = query($everything);
$node->restart;
is(query($everything), $before, '... with room it ends with a checkpoint');
ok(!-e "$small/mot/open", '... that needs no log');

# ------------------------------------------ without one: checkpoints wait

$node->append_conf('postgresql.conf', "max_replication_slots = 0\nmax_wal_senders = 0\n");
$node->restart;
query('SELECT mot_stat_reset()');
query('UPDATE t SET v = reverse(v); CHECKPOINT');
$good = query('SELECT checkpoint_lsn FROM mot_stat_checkpoint');
my $redo = query('SELECT redo_lsn FROM pg_control_checkpoint()');
query('UPDATE t SET v = reverse(v)');
fill_up(0);
new_log();
my $session = $node->background_psql('postgres');
$session->query_until(qr/begun/, "\\echo begun\nCHECKPOINT;\n\\echo done\n");
wait_for('without a slot: ours fails', q{SELECT failed > 0 FROM mot_stat_checkpoint});
$id++;
query("UPDATE t SET v = reverse(v) WHERE id % 2 = 0; INSERT INTO small VALUES ($id)");
is(query('SELECT redo_lsn FROM pg_control_checkpoint()'), $redo, "... and the server's waits");
like(new_log(), qr/WARNING:  checkpoint of memory-optimized tables failed: could not .*No space left on device\n.*DETAIL:  It will be tried again; checkpoints of the server wait until it succeeds/, '... which the log says');
$before = query($everything);
$node->stop('immediate');
eval { $session->quit };
make_room();
$node->start;
is(query($everything), $before, '... a crash at that time');
query('UPDATE t SET v = reverse(v)');
$good = query('SELECT checkpoint_lsn FROM mot_stat_checkpoint');
fill_up(0);
$session = $node->background_psql('postgres');
$session->query_until(qr/begun/, "\\echo begun\nCHECKPOINT;\n\\echo done\n");
wait_for('... another one waits', q{SELECT failed > 0 FROM mot_stat_checkpoint});
make_room();
wait_for('... with room it succeeds by itself', "SELECT checkpoint_lsn > '$good' FROM mot_stat_checkpoint");
wait_for("... and the server's with it", "SELECT redo_lsn > '$redo' FROM pg_control_checkpoint()");
$session->quit;
$before = query($everything);
$node->stop('immediate');
$node->start;
is(query($everything), $before, '... and is good');
$node->stop;
system('rm', '-rf', "$small/mot");

# ------------------------------------------------------------ on a standby

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "autovacuum = off\nshared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\n");
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE FOREIGN TABLE t (id int PRIMARY KEY, v text) SERVER mot_server; INSERT INTO t VALUES (1, $$first$$)');
$primary->backup('base');
$node = PostgreSQL::Test::Cluster->new('standby');
$node->init_from_backup($primary, 'base', has_streaming => 1);
$data = $node->data_dir;
system_or_bail('mv', "$data/mot", "$small/mot");
symlink("$small/mot", "$data/mot") or die;
$node->start;
$primary->wait_for_catchup($node, 'replay');
$seen = 0;
is(scalar(my @trails = glob("$small/mot/*.trail")), 1, 'a standby notes its log');
fill_up(0);
$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(2, 20000) i; CHECKPOINT});
$primary->wait_for_catchup($node, 'replay');
$everything = q{SELECT count(*), md5(string_agg(v, ',' ORDER BY id)) FROM t};
is(query($everything), $primary->safe_psql('postgres', $everything), '... and goes on without when the disk is full');
like(new_log(), qr/LOG:  could not extend a file in "mot" for records of memory-optimized tables: No space left on device\n.*DETAIL:  A base backup of this standby may need log from before it/, '... which it says');
is(scalar(@trails = glob("$small/mot/*.trail")), 0, '... and keeps none that ends too early');
make_room();
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for('... with room, its checkpoint succeeds', 'SELECT completed > 0 AND checkpoint_lsn >= (pg_control_checkpoint()).redo_lsn FROM mot_stat_checkpoint');
$node->stop('immediate');
$node->start;
$primary->safe_psql('postgres', q{INSERT INTO t VALUES (30000, 'last')});
$primary->wait_for_catchup($node, 'replay');
is(query($everything), $primary->safe_psql('postgres', $everything), '... it starts from there');
is(scalar(@trails = glob("$small/mot/*.trail")), 1, '... and notes its log again');
$node->stop;
$primary->stop;
system('rm', '-rf', "$small/mot");
done_testing();
