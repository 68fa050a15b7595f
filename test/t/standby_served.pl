# A standby that is started serves heap tables, and replays, while its
# memory-optimized tables are loaded; so does a recovery from an archive.  The
# loading is held back at named points, meanwhile the primary goes on; the standby is
# stopped, dies, is promoted, has a full disk, or finds damage.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Served;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $conf = q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
mot.load_workers = 0
checkpoint_timeout = '1h'
min_wal_size = '2MB'
max_wal_size = '1GB'
wal_recycle = off
wal_keep_size = '64MB'
max_wal_senders = 10
restart_after_crash = on
max_standby_streaming_delay = -1
mot.fault = ''
};
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, has_archiving => 1, extra => ['--wal-segsize=1']);
$primary->append_conf('postgresql.conf', $conf);
$primary->start;
my $standby;

sub data { return $standby->data_dir }

sub fault
{
	my ($what) = @_;
	unlink data() . '/mot.fault.go';
	$standby->adjust_conf('postgresql.conf', 'mot.fault', "'$what'");
	return;
}

sub go
{
	open(my $fh, '>', data() . '/mot.fault.go') or die $!;
	close $fh;
	return;
}

sub logged
{
	my ($what, $from) = @_;
	return $standby->wait_for_log($what, $from);
}

sub reached { return logged(qr/fault point "$_[0]" reached/, $_[1]) }

my @tables = qw(big small keyless emptied altered pieces account);
my $all = join(' UNION ALL ', map { "SELECT '$_' AS n, count(*) AS c, md5(string_agg(x::text, ',' ORDER BY x::text)) AS m FROM ENGINE.$_ x" } @tables);

sub content
{
	my ($node, $engine) = @_;
	(my $sql = $all) =~ s/ENGINE/$engine/g;
	return $node->safe_psql('postgres', "SELECT string_agg(n || ' ' || c || ' ' || m, E'\n' ORDER BY n) FROM ($sql) y");
}

# the same on both sides, and in both kinds
sub same
{
	my ($what) = @_;
	my $expected = content($primary, 'h');
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
	is(content($standby, 'h'), $expected, "$what: heap tables are the primary's");
	is(content($standby, 'm'), $expected, '... and memory-optimized ones');
	is($standby->safe_psql('postgres', "SELECT string_agg(t || ': ' || first_problem, ', ') FROM unnest(ARRAY['big', 'keyless', 'altered', 'pieces']) t, mot_verify(('m.' || t)::regclass) WHERE first_problem IS NOT NULL"),
		'', '... whose rows and indexes agree');
	return;
}

# the same for tables of both kinds
sub both
{
	my ($sql) = @_;
	for my $schema ('h', 'm')
	{
		my $using = $schema eq 'h' ? 'heap' : 'mot';
		(my $own = $sql) =~ s/(CREATE TABLE \w+ \(.*\));/$1 USING $using;/g;
		$primary->safe_psql('postgres', "SET search_path = $schema; $own");
	}
	return;
}

my $round = 0;

# whatever there is, some of it
sub write_on
{
	my ($checkpoint) = @_;
	$round++;
	my $base = $round * 100000;
	my $width = 200 + $round;
	both(qq{
		UPDATE big SET t = t || 'longer than it was', k = k + 1 WHERE i % 7 = $round % 7;
		UPDATE big SET i = i + $base WHERE i BETWEEN $round * 100 AND $round * 100 + 20;
		DELETE FROM big WHERE i % 53 = $round;
		INSERT INTO big SELECT i, 1, 'new' FROM generate_series($base + 50000, $base + 50200) i;
		UPDATE small SET v = v + 1;
		UPDATE keyless SET b = b || '!' WHERE a < 50;
		DELETE FROM keyless WHERE a = 100 + $round;
		DELETE FROM pieces WHERE i % 20 <> 0;
		TRUNCATE emptied;
		INSERT INTO emptied VALUES ($round);
		ALTER TABLE altered ADD COLUMN n$round int DEFAULT 3;
		CREATE INDEX altered_v$round ON altered (v, n$round);
		UPDATE altered SET v = v + 5000, n$round = 4 WHERE i <= 100;
		ALTER TABLE altered ALTER w TYPE varchar($width);
		CREATE TABLE gone (i int PRIMARY KEY);
		INSERT INTO gone SELECT generate_series(1, 100);
		DROP TABLE gone;
		BEGIN;
			INSERT INTO pieces SELECT $base + i, repeat('p', 300) FROM generate_series(1, 6000) i;
			SAVEPOINT a;
			DELETE FROM pieces WHERE i > $base;
			ROLLBACK TO a;
			UPDATE pieces SET t = 'short' WHERE i % 2 = 0;
			COMMIT;
		BEGIN; INSERT INTO pieces SELECT -i, repeat('q', 300) FROM generate_series(1, 5000) i; ROLLBACK;
		BEGIN; INSERT INTO pieces SELECT -$base - i, repeat('r', 300) FROM generate_series(1, 6000) i; SELECT pg_current_xact_id(); COMMIT;
		DELETE FROM pieces WHERE i < -$base - 100;
	});
	for (1 .. 4)
	{
		my $n = $base + $_;
		$primary->safe_psql('postgres', "BEGIN; INSERT INTO h.account VALUES ($n, $n); INSERT INTO m.account VALUES ($n, $n); " . ($_ % 2 ? 'COMMIT' : 'ROLLBACK'));
	}
	$primary->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
	return;
}

$primary->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE SCHEMA h; CREATE SCHEMA m');
both(q{
	CREATE TABLE big (i int PRIMARY KEY, k int, t text);
	CREATE INDEX ON big (k);
	INSERT INTO big SELECT i, i % 100, repeat('b', i % 50) FROM generate_series(1, 10000) i;
	CREATE TABLE small (i int PRIMARY KEY, v int);
	INSERT INTO small SELECT i, i FROM generate_series(1, 100) i;
	CREATE TABLE keyless (a int, b text);
	INSERT INTO keyless SELECT i % 500, 'x' || i % 7 FROM generate_series(1, 2000) i;
	CREATE TABLE emptied (i int PRIMARY KEY);
	INSERT INTO emptied SELECT generate_series(1, 1000);
	CREATE TABLE altered (i int PRIMARY KEY, v int, w varchar(200));
	INSERT INTO altered SELECT i, i, 'w' FROM generate_series(1, 1000) i;
	CREATE TABLE pieces (i int PRIMARY KEY, t text);
	CREATE TABLE account (i int PRIMARY KEY, v int);
});

# somebody for whom old rows of heap tables are kept: replay is not to wait for readers of the
# standby
my $keeper = $primary->background_psql('postgres');
$keeper->query_safe('BEGIN; SELECT pg_current_xact_id()');
$primary->backup('base');
write_on(0);
my $pitr_base = content($primary, 'h');
$primary->safe_psql('postgres', "SELECT pg_create_restore_point('written once')");

# ------------------------------------- a standby's first start, and the next
sub new_standby
{
	my ($name, $backup) = @_;
	$standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, $backup, has_streaming => 1);
	$standby->append_conf('postgresql.conf', "mot.fault = ''\n");
	return;
}

sub held
{
	my ($point) = @_;
	fault("$point:wait");
	my $from = -s $standby->logfile // 0;
	$standby->start;
	reached($point, $from);
	return $from;
}

new_standby('standby', 'base');
for my $point ('load-begin', 'load-file', 'load-log')
{
	write_on(1) if $point ne 'load-begin';
	held($point);
	is($standby->safe_psql('postgres', 'SET statement_timeout = 60000; SELECT count(*) > 1000 FROM h.big'), 't', "held at $point: heap tables answer");
	my ($ret, $out, $err) = $standby->psql('postgres', 'SET statement_timeout = 300; SELECT count(*) FROM m.small');
	like($err, qr/canceling statement due to statement timeout/, '... who wants others waits, and can be cancelled');
	my $old = $standby->background_psql('postgres', on_error_stop => 0);
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM h.small');
	write_on(0);
	my $expected = content($primary, 'h');
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
	is(content($standby, 'h'), $expected, '... replay goes on meanwhile');
	isnt($standby->safe_psql('postgres', 'SELECT state FROM mot_stat_recovery'), 'ready', '... with nothing loaded');

	# restartpoints, of which the log that was read is kept back
	write_on(1);
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
	$standby->safe_psql('postgres', 'CHECKPOINT');
	cmp_ok($standby->safe_psql('postgres', "SELECT restart_lsn <= checkpoint_lsn FROM pg_replication_slots, mot_stat_recovery WHERE slot_name = 'mot'"), 'eq', 't', '... the slot keeps the log');
	# nobody can cancel it: there is no other attempt
	$standby->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'");
	# gone, and once more from the beginning
	if ($point eq 'load-file')
	{
		# a backup begins at the restartpoint, later than the checkpoint that is being loaded
		$expected = content($primary, 'h');
		$standby->backup('of_loading');
		my $copy = PostgreSQL::Test::Cluster->new('copy');
		$copy->init_from_backup($standby, 'of_loading', has_streaming => 1);
		$copy->append_conf('postgresql.conf', "mot.fault = ''\n");
		$copy->start;
		is(content($copy, 'm'), $expected, '... a backup of the standby that loads has everything');
		$copy->promote;
		is($copy->safe_psql('postgres', 'UPDATE m.small SET v = v + 1 WHERE i = 1 RETURNING i'), '1', '... and can be a server of its own');
		$copy->stop('immediate');

		$standby->stop('immediate');
		unlink data() . '/mot.fault.go';
		held($point);
	}
	elsif ($point eq 'load-log')
	{
		my $pid = $standby->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'");
		my $from = -s $standby->logfile;
		kill 'KILL', $pid;
		logged(qr/terminating any other active server processes/, $from);
		reached('load-log', $from);
		served($standby) or die;
		my $startup = $standby->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'");
		# that ends the server
		kill 'KILL', $startup;
		gone($standby) or die;
		held($point);
	}
	go();
	same("held at $point");
	if ($point eq 'load-begin')
	{
		$old->query('SELECT count(*) FROM m.small');
		like($old->{stderr}, qr/could not serialize access to memory-optimized tables, which have been loaded since/, '... and a snapshot from before is refused');
	}
	eval { $old->quit };
	write_on(0);
	same('... and on');
	fault('');
	$standby->stop($point eq 'load-file' ? 'fast' : 'immediate');
}
# --------------------------------------------------------- a stop in it
held('load-file');
my $from = -s $standby->logfile;
my $stop = IPC::Run::start([ 'pg_ctl', '-D', data(), '-m', 'fast', 'stop' ], '>', \my $stop_out, '2>', \my $stop_err);
logged(qr/received fast shutdown request/, $from);
go();
ok($stop->finish, 'a standby that loads can be stopped');
$standby->{_pid} = undef;
fault('');
$standby->start;
same('... and nothing is lost');

# ------------------------------------------------------- handing over
# what is spooled is applied with replay going on, to the last piece
$standby->stop('immediate');
write_on(1);
held('standby-apply');
write_on(0) for 1 .. 2;
my $before = content($primary, 'h');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
is(content($standby, 'h'), $before, 'replay goes on while what was spooled is applied');
go();
same('... all of it comes in its order');

# ------------------------------------------- more than a file of the spool has
$standby->stop('immediate');
write_on(1);
$from = held('load-begin');
for my $n (1 .. 30)
{
	$primary->safe_psql('postgres', "UPDATE $_.big SET t = repeat(i % 10 || '', 500 + $n) WHERE i % 100 < 40") for 'h', 'm';
}
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
is(content($standby, 'h'), content($primary, 'h'), 'many are spooled');
cmp_ok(scalar(my @spools = glob(data() . '/mot/*/*.spool')), '>=', 2, '... in several files');
go();
same('... and applied from one to the next');

# ------------------------------------------------------- the server is killed
# (a second for each transaction) who applies what is spooled ends, too, or no other one could start
$standby->stop('immediate');
write_on(1);
fault('load-begin:wait,standby-apply:sleep');
$from = -s $standby->logfile;
$standby->start;
reached('load-begin', $from);
both('UPDATE small SET v = v + 1;' x 40);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
go();
reached('standby-apply', $from);
fault('');
$standby->kill9;
my $killed = time;
my $up;
until ($up or time > $killed + 20)
{
	sleep 0.2;
	$up = IPC::Run::run([ 'env', '-u', 'PGAPPNAME', 'pg_ctl', '-s', '-w', '-D', data(), '-l', $standby->logfile, '-o', '--cluster-name=' . $standby->name, 'start' ]);
}
ok($up, 'the server is killed while what was spooled is applied: another one starts within seconds');
$standby->_update_pid(1);
same('... and has all of it');

# --------------------------------------------------------------- a full disk
$standby->stop('immediate');
write_on(1);
$from = held('load-begin');
fault('standby-full:skip,load-begin:wait');
$standby->reload;
logged(qr/parameter "mot.fault" changed/, $from);
write_on(0);
logged(qr/could not write to file .*No space left on device\n.*Replay waits until memory-optimized tables are loaded/, $from);
is($standby->safe_psql('postgres', 'SELECT count(*) > 0 FROM h.big'), 't', 'no room for what is spooled: heap tables are served');
go();
same('... and replay goes on when tables are loaded');
$standby->stop('immediate');
write_on(1);
fault('standby-full:skip');
$standby->start;
same('... with no room from the beginning, it begins when they are');
fault('');

# ------------------------------------------------------------------ damage
$standby->stop('immediate');
my ($newest) = (sort glob(data() . '/mot/' . '[0-9A-F]' x 24))[-1];
my ($file) = sort { -s $b <=> -s $a } grep { !/manifest/ } glob("$newest/*");
my $bytes = slurp_file($file);
my $damaged = $bytes;
substr($damaged, length($damaged) / 2, 1) ^= "\x10";
open(my $fh, '>:raw', $file) or die; print $fh $damaged; close $fh;
$standby->start;
write_on(1);
$before = content($primary, 'h');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
$standby->poll_query_until('postgres', "SELECT state = 'refused' FROM mot_stat_recovery") or die;
is(content($standby, 'h'), $before, 'a damaged checkpoint: heap tables are served, and replayed');
my ($ret, $out, $err) = $standby->psql('postgres', 'SELECT count(*) FROM m.small');
like($err, qr/memory-optimized tables could not be recovered.*DETAIL:.*HINT:/s, '... others are refused');
$standby->safe_psql('postgres', 'CHECKPOINT');
$standby->stop('fast');
open($fh, '>:raw', $file) or die; print $fh $bytes; close $fh;
$standby->start;
same('... with the file put back nothing is lost');

# ------------------------------------------------------ the worker's end
$standby->stop('immediate');
write_on(1);
fault('load-log:fatal');
$standby->start;
$standby->poll_query_until('postgres', "SELECT state = 'refused' FROM mot_stat_recovery") or die;
write_on(0);
$before = content($primary, 'h');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
is(content($standby, 'h'), $before, 'the worker ends while it loads: heap tables are served, and replayed');
is(join(' ', glob(data() . '/mot/pgsql_tmp/*.spool')), '', '... nothing is kept for it');
fault('');
$standby->stop('fast');
$standby->start;
same('... and the next start has all');

# ------------------------------------------------- promotion, held back
sub promoted
{
	my ($point, $how) = @_;
	$standby->stop('immediate') if $standby->{_pid};
	write_on(1);
	my $from = held($point);
	write_on(0);
	my $expected = content($primary, 'h');
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
	$standby->promote;
	is($standby->safe_psql('postgres', "SET statement_timeout = 60000; INSERT INTO h.account VALUES (-1, -1) RETURNING i"), '-1', "promoted, held at $point: heap tables are changed");
	isnt($standby->safe_psql('postgres', 'SELECT state FROM mot_stat_recovery'), 'ready', '... with nothing loaded');
	my ($ret, $out, $err) = $standby->psql('postgres', 'SET statement_timeout = 300; INSERT INTO m.account VALUES (-1, -1)');
	like($err, qr/canceling statement due to statement timeout/, '... who wants to change others waits, and can be cancelled');
	if ($point eq 'load-begin')
	{
		($ret, $out, $err) = $standby->psql('postgres', "SELECT pg_drop_replication_slot('mot')");
		like($err, qr/replication slot "mot" is active/, '... the slot cannot be dropped before the worker sees to the log');
	}
	($ret, $out, $err) = $standby->psql('postgres', 'SET statement_timeout = 300; DROP INDEX m.big_k_idx');
	like($err, qr/canceling statement due to statement timeout/, '... and so who wants to drop an index');
	$standby->safe_psql('postgres', 'CREATE TABLE filler AS SELECT repeat(md5(i::text), 30) FROM generate_series(1, 4000) i; DROP TABLE filler');
	if ($how eq 'killed')
	{
		my $checkpoint = IPC::Run::start([ 'psql', '-XAtq', '-d', $standby->connstr('postgres'), '-c', 'CHECKPOINT' ], '>', \my $cout, '2>', \my $cerr);
		sleep 0.5;
		$standby->stop('immediate');
		$checkpoint->finish;
		unlink data() . '/mot.fault.go';
		held('load-begin');
		$standby->stop('immediate');
		fault('');
		$standby->start;
	}
	go();
	$standby->safe_psql('postgres', 'DELETE FROM h.account WHERE i = -1');
	is(content($standby, 'h'), $expected, "promoted, held at $point, $how: heap tables are the primary's");
	is(content($standby, 'm'), $expected, '... and memory-optimized ones');
	$standby->safe_psql('postgres', "INSERT INTO m.account VALUES (-1, -1)");
	fault('');
	$standby->stop('immediate');
	$standby->start;
	is($standby->safe_psql('postgres', 'DELETE FROM m.account WHERE i = -1 RETURNING v'), '-1', '... which are changed for good');
	is(content($standby, 'm'), $expected, '... and else as they were');
	$standby->restart;
	is(content($standby, 'm'), $expected, '... and so after a clean stop');
	unlike(slurp_file($standby->logfile, $from), qr/PANIC|TRAP|XX00/, '... in peace');
	return;
}

promoted('load-file', 'going on');
$standby->stop;
for my $way ([ 'load-log', 'killed' ], [ 'load-begin', 'going on' ])
{
	$primary->backup($way->[0]);
	new_standby($way->[0] =~ s/-/_/r, $way->[0]);
	$standby->start;
	same('a standby');
	promoted(@$way);
	$standby->stop;
}

# ------------------------------------------------ recovery from an archive
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
my $lsn = $primary->lsn('insert');
$primary->poll_query_until('postgres', "SELECT last_archived_wal >= pg_walfile_name('$lsn'::pg_lsn - 1048576) FROM pg_stat_archiver") or die;
for my $action ('pause', 'promote')
{
	$standby = PostgreSQL::Test::Cluster->new("to_$action");
	$standby->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
	$standby->append_conf('postgresql.conf', "archive_mode = off\nmot.fault = ''\nrecovery_target_name = 'written once'\nrecovery_target_action = $action\n");
	held('load-file');
	$standby->poll_query_until('postgres', $action eq 'pause' ? "SELECT pg_get_wal_replay_pause_state() = 'paused'" : 'SELECT NOT pg_is_in_recovery()') or die;
	is(content($standby, 'h'), $pitr_base, "a target reached while tables are loaded, $action: heap tables are served");
	go();
	is(content($standby, 'm'), $pitr_base, '... the others are of the same moment');
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()') if $action eq 'pause';
	$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
	fault('');
	$standby->restart;
	is(content($standby, 'm'), $pitr_base, '... and go on from there');
	$standby->safe_psql('postgres', 'UPDATE m.small SET v = v + 1');
	$standby->stop;
}
$primary->stop;
done_testing();
