# After a crash heap tables are served at once, and memory-optimized ones as
# they come, those that somebody waits for first; all that was acknowledged is
# there.  The loading is held back at named points, the server dies in it, is
# stopped, its log is in danger; and what cannot be recovered is refused without
# keeping heap tables from being served.

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

my $node = PostgreSQL::Test::Cluster->new('served');
$node->init(allows_streaming => 1, extra => ['--wal-segsize=1']);
$node->append_conf('postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
mot.load_workers = 0
log_min_messages = debug1
restart_after_crash = off
checkpoint_timeout = '1h'
min_wal_size = '2MB'
max_wal_size = '1GB'
wal_recycle = off
mot.fault = ''
});
my $data = $node->data_dir;
my $go = "$data/mot.fault.go";
$node->start;

sub query { return $node->safe_psql('postgres', $_[0]) }

sub fault
{
	my ($what) = @_;
	unlink $go;
	$node->adjust_conf('postgresql.conf', 'mot.fault', "'$what'");
	return;
}

sub go
{
	open(my $fh, '>', $go) or die "$go: $!";
	close $fh;
	return;
}

sub reached
{
	my ($point, $from) = @_;
	return $node->wait_for_log(qr/fault point "$point" reached/, $from);
}

# a session with statements on their way, whose answers come later
sub ask
{
	my ($sql) = @_;
	my %s = (out => '', err => '', in => '');
	$s{run} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', $sql ],
		'<', \$s{in}, '>', \$s{out}, '2>', \$s{err});
	return \%s;
}

sub answer
{
	my ($s) = @_;
	$s->{run}->finish;
	chomp $s->{out};
	return $s->{out} . $s->{err};
}

# who waits for a table says so; it is in the view of activity
sub waiting
{
	my ($sql) = @_;
	return $node->poll_query_until('postgres', "SELECT count(*) >= 1 FROM pg_stat_activity WHERE query LIKE '%$sql%' AND wait_event IS NOT NULL AND state = 'active' AND pid <> pg_backend_pid()");
}

my @tables = qw(big small keyless made emptied altered pieces gone);
my $all = join(' UNION ALL ', map { "SELECT '$_' AS n, count(*) AS c, md5(string_agg(x::text, ',' ORDER BY x::text)) AS m FROM ENGINE.$_ x" } grep { $_ ne 'gone' } @tables);

sub content
{
	my ($engine) = @_;
	(my $sql = $all) =~ s/ENGINE/$engine/g;
	return query("SELECT string_agg(n || ' ' || c || ' ' || m, E'\n' ORDER BY n) FROM ($sql) y");
}

sub same
{
	my ($what) = @_;
	is(content('m'), content('h'), $what);
	return;
}

# the same for tables of both kinds
sub make
{
	my ($schema, $sql) = @_;
	my $using = $schema eq 'h' ? 'heap' : 'mot';
	$sql =~ s/(CREATE TABLE \w+ \(.*\));/$1 USING $using;/g;
	query("SET search_path = $schema; $sql");
	return;
}

query('CREATE EXTENSION mot; CREATE SCHEMA h; CREATE SCHEMA m');
for my $e ('h', 'm')
{
	make($e, q{
		CREATE TABLE big (i int PRIMARY KEY, k int, t text);
		CREATE INDEX ON big (k);
		INSERT INTO big SELECT i, i % 100, repeat('b', i % 50) FROM generate_series(1, 20000) i;
		CREATE TABLE small (i int PRIMARY KEY, v int);
		INSERT INTO small SELECT i, i FROM generate_series(1, 100) i;
		CREATE TABLE still (i int PRIMARY KEY);
		INSERT INTO still SELECT generate_series(1, 10);
		CREATE TABLE keyless (a int, b text);
		INSERT INTO keyless SELECT i % 500, 'x' || i % 7 FROM generate_series(1, 2000) i;
		CREATE TABLE emptied (i int PRIMARY KEY);
		INSERT INTO emptied SELECT generate_series(1, 1000);
		CREATE TABLE altered (i int PRIMARY KEY, v int, w text);
		INSERT INTO altered SELECT i, i, 'w' FROM generate_series(1, 1000) i;
		CREATE TABLE gone (i int PRIMARY KEY);
		INSERT INTO gone VALUES (1);
		CREATE TABLE pieces (i int PRIMARY KEY, t text);
	});
}
query('CHECKPOINT');
for my $e ('h', 'm')
{
	make($e, q{
		UPDATE big SET t = t || 'longer than it was' WHERE i % 3 = 0;
		UPDATE big SET k = k + 1000, t = 's' WHERE i % 5 = 0;
		UPDATE big SET i = -i WHERE i % 70 = 0;
		DELETE FROM big WHERE i % 11 = 0;
		INSERT INTO big SELECT i, 1, 'new' FROM generate_series(20001, 21000) i;
		INSERT INTO big SELECT i, NULL, NULL FROM generate_series(11, 1000, 11) i;
		UPDATE small SET v = v + 1;
		UPDATE keyless SET b = b || '!' WHERE a < 50;
		DELETE FROM keyless WHERE a % 3 = 0;
		INSERT INTO keyless SELECT a, b FROM keyless WHERE a > 400;
		UPDATE keyless SET a = NULL WHERE a = 7;
		CREATE TABLE made (i int PRIMARY KEY, t text);
		INSERT INTO made SELECT i, 'made' FROM generate_series(1, 500) i;
		UPDATE made SET t = 'changed' WHERE i < 10;
		TRUNCATE emptied;
		INSERT INTO emptied VALUES (7);
		ALTER TABLE altered ADD COLUMN n int DEFAULT 3;
		CREATE UNIQUE INDEX altered_v ON altered (v);
		UPDATE altered SET v = v + 5000, n = 4 WHERE i <= 100;
		ALTER TABLE altered ALTER w SET NOT NULL;
		ALTER TABLE altered DROP CONSTRAINT altered_pkey;
		DELETE FROM altered WHERE i BETWEEN 500 AND 600;
		ALTER TABLE altered ADD PRIMARY KEY (v);
		UPDATE altered SET n = 5 WHERE v > 5050;
		DROP TABLE gone;
		BEGIN;
			INSERT INTO pieces SELECT i, repeat('p', 300) FROM generate_series(1, 5000) i;
			SAVEPOINT a;
			DELETE FROM pieces;
			ROLLBACK TO a;
			UPDATE pieces SET t = 'short' WHERE i % 2 = 0;
			COMMIT;
		BEGIN; INSERT INTO pieces SELECT -i, repeat('q', 300) FROM generate_series(1, 5000) i; ROLLBACK;
	});
}

# both kinds in one transaction, committed or not
query('CREATE TABLE h.account (i int PRIMARY KEY, v int); CREATE TABLE m.account (i int PRIMARY KEY, v int) USING mot');
query("BEGIN; INSERT INTO h.account VALUES ($_, $_); INSERT INTO m.account VALUES ($_, $_); " . ($_ % 2 ? 'COMMIT' : 'ROLLBACK')) for 1 .. 6;
same('before the crash');

# ------------------------------------------------- held back: heap is served
query('CREATE INDEX still_twice ON m.still (i)');
fault('load-sorted:wait');
$node->stop('immediate');
my $from = -s $node->logfile;
$node->start;
ok(reached('load-sorted', $from), 'the loading is held back');
is(query('SET statement_timeout = 60000; SELECT count(*) FROM h.big'), query('SELECT count(*) FROM h.big'), '... heap tables answer');
is(query('INSERT INTO h.small VALUES (0, 0) RETURNING i; DELETE FROM h.small WHERE i = 0'), '0', '... and are changed');
is(query('SELECT state FROM mot_stat_recovery'), 'loading', '... memory-optimized tables are on their way');
my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = 300; SELECT count(*) FROM m.still");
like($err, qr/canceling statement due to statement timeout/, '... who wants one waits, and can be cancelled');

my $old = $node->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM h.still');
my $big = ask('SELECT count(*) FROM m.big');
ok(waiting('FROM m.big'), '... one waits for the largest table');
my $write = ask('INSERT INTO m.account VALUES (100, 100)');
ok(waiting('INSERT INTO m.account'), '... one wants to write');
my $drop = ask('DROP INDEX m.still_twice');
ok(waiting('DROP INDEX'), '... one to change a definition');
my $checkpoint = ask('CHECKPOINT');
go();
is(answer($big), query('SELECT count(*) FROM h.big'), 'it gets the table');
is(answer($write), '', '... the other one writes');
is(answer($drop), '', '... the third one drops an index');
is(query('SELECT count(*) FROM m.still'), '10', '... and the table knows');
is(answer($checkpoint), '', '... and a checkpoint goes through');
query('INSERT INTO h.account VALUES (100, 100)');
my %oid = reverse(map { split /=/ } split(/\n/, query("SELECT oid || '=' || relname FROM pg_class WHERE relnamespace = 'm'::regnamespace")));
my @order = slurp_file($node->logfile, $from) =~ /memory-optimized table with OID (\d+) of database/g;
cmp_ok(scalar(@order), '>=', 8, 'all tables came');
my ($first) = grep { $order[$_] == $oid{big} } 0 .. $#order;
my ($smaller) = grep { $order[$_] == $oid{keyless} } 0 .. $#order;
cmp_ok($first, '<', $smaller, '... that which was waited for before a smaller one') or diag("@order, big is $oid{big}");
same('all is as it was acknowledged');
is(query('SELECT string_agg(v::text, $$,$$ ORDER BY i) FROM m.account'), query('SELECT string_agg(v::text, $$,$$ ORDER BY i) FROM h.account'),
	'... also transactions over both kinds');
is($old->query_safe('SELECT count(*), sum(v) FROM m.small'), query('SELECT count(*), sum(v) FROM h.small'), '... for a snapshot taken before the tables were there');
$old->query_safe('COMMIT');
$old->quit;
is(query("SELECT string_agg(t || ': ' || first_problem, ', ') FROM unnest(ARRAY['big', 'keyless', 'altered', 'pieces']) t, mot_verify(('m.' || t)::regclass) WHERE first_problem IS NOT NULL"), '', '... and rows and indexes agree');
($ret, $out, $err) = $node->psql('postgres', "INSERT INTO m.altered SELECT * FROM m.altered LIMIT 1");
like($err, qr/duplicate key value violates unique constraint "altered_(?:pkey|v)"/, '... indexes made since the checkpoint among them');
query('SET enable_seqscan = off; SELECT count(*) FROM m.big WHERE k = 1');

# --------------------------------------------------- dying in it, and again
for my $e ('h', 'm')
{
	query("UPDATE $e.big SET k = k + 1 WHERE i < 5000; DELETE FROM $e.keyless WHERE a = 10; INSERT INTO $e.small VALUES (200, 200)");
}
for my $point (qw(replay-end replay-over load-begin load-sorted load-file load-advance load-advanced load-table load-log load-end))
{
	fault("$point:killall");
	$node->stop('immediate') if $node->{_pid};
	for my $round (1 .. 2)
	{
		my $seen = -s $node->logfile;
		$node->start(fail_ok => 1);
		reached($point, $seen);
		gone($node) or die;
	}
	fault('');
	$node->start;
	same("killed twice at $point");
	query("UPDATE $_.small SET v = v + 1") for ('h', 'm');
}

# -------------------------------- the disk is full when some of the log is sorted
fault('load-sort:skip:3');
$node->stop('immediate');
$from = -s $node->logfile;
$node->start;
same('without room on the disk the log is sorted in memory');
is(() = slurp_file($node->logfile, $from) =~ /LOG:  the log of memory-optimized tables is sorted in memory, for want of room on the disk/g, 1, '... which is said once');

# ------------------------------------------------------------ a stop in it
fault('load-sorted:wait');
$node->stop('immediate');
$from = -s $node->logfile;
$node->start;
reached('load-sorted', $from);
my $stop = IPC::Run::start([ 'pg_ctl', '-D', $data, '-m', 'fast', 'stop' ], '>', \my $stop_out, '2>', \my $stop_err);
$node->wait_for_log(qr/received fast shutdown request/, $from);
go();
ok($stop->finish, 'a server that loads can be stopped');
$node->{_pid} = undef;
like(slurp_file($node->logfile, $from), qr/were not loaded completely, because the server is to stop/, '... without loading to the end');
fault('');
$node->start;
same('... and nothing is lost');

# --------------------------------------- the slot is dropped while it loads
query("UPDATE $_.small SET v = v + 1") for ('h', 'm');
fault('load-begin:wait');
$node->stop('immediate');
$from = -s $node->logfile;
$node->start;
reached('load-begin', $from);
my $first_segment = (sort glob("$data/pg_wal/" . '[0-9A-F]' x 24))[0];
($ret, $out, $err) = $node->psql('postgres', "SELECT pg_drop_replication_slot('mot')");
like($err, qr/replication slot "mot" is active/, 'the slot cannot be dropped before the loading has begun');
go();
same('... and all is there');
query("UPDATE $_.small SET v = v + 1") for ('h', 'm');
fault('load-file:wait');
$node->stop('immediate');
$from = -s $node->logfile;
$node->start;
reached('load-file', $from);
$first_segment = (sort glob("$data/pg_wal/" . '[0-9A-F]' x 24))[0];
query("SELECT pg_drop_replication_slot('mot')");
query("CREATE TABLE filler AS SELECT repeat(md5(i::text), 30) FROM generate_series(1, 4000) i; DROP TABLE filler");
$checkpoint = ask('CHECKPOINT');
sleep 0.3;
ok(-e $first_segment, 'log that is needed is there, slot or not');
go();
is(answer($checkpoint), '', '... until all is loaded');
same('... and it is');
fault('');
$node->stop('immediate');
$node->start;
same('... also after another crash');

# ----------------------------------------- a base backup begins meanwhile
query("UPDATE $_.small SET v = v + 1") for ('h', 'm');
fault('load-file:wait');
$node->stop('immediate');
$from = -s $node->logfile;
$node->start;
reached('load-file', $from);
query("CREATE TABLE filler AS SELECT repeat(md5(i::text), 30) FROM generate_series(1, 4000) i; DROP TABLE filler");
my $copy = PostgreSQL::Test::Cluster->new('copy');
my $backup = IPC::Run::start([ 'pg_basebackup', '-D', $node->backup_dir . '/b', '-c', 'fast', '-h', $node->host, '-p', $node->port, '--no-sync' ],
	'>', \my $backup_out, '2>', \my $backup_err);
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_progress_basebackup");
sleep 0.3;
go();
ok($backup->finish, 'a base backup begins while tables are loaded') or diag($backup_err);
fault('');
$copy->init_from_backup($node, 'b');
$copy->append_conf('postgresql.conf', "mot.fault = ''\n");
$copy->start;
is($copy->safe_psql('postgres', 'SELECT sum(v) FROM m.small'), query('SELECT sum(v) FROM h.small'), '... and has all it needs');
$copy->stop('immediate');

# ----------------------------------------------------- refused, and served
query("UPDATE $_.small SET v = v + 1") for ('h', 'm');
my ($newest) = (sort glob("$data/mot/" . '[0-9A-F]' x 24))[-1];
for my $file ("$newest/manifest", (sort { -s $b <=> -s $a } grep { !/manifest/ } glob("$newest/*"))[0])
{
	my $bytes = slurp_file($file);
	$node->stop('immediate');
	my $damaged = $bytes;
	substr($damaged, length($damaged) / 2, 1) ^= "\x10";
	open(my $fh, '>:raw', $file) or die; print $fh $damaged; close $fh;
	$from = -s $node->logfile;
	$node->start;
	is(query('SELECT count(*) FROM h.still'), '10', 'a damaged checkpoint: heap tables are served');
	$node->poll_query_until('postgres', "SELECT state = 'refused' FROM mot_stat_recovery");
	($ret, $out, $err) = $node->psql('postgres', 'SELECT count(*) FROM m.small');
	like($err, qr/memory-optimized tables could not be recovered.*DETAIL:.*HINT:/s, '... others are refused');
	($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO m.small VALUES (300, 300)');
	like($err, qr/memory-optimized tables could not be recovered/, '... and not written');
	my ($name) = $file =~ m{([^/]+)$};
	like(slurp_file($node->logfile, $from), qr/ERROR: .*\Q$name\E/, '... the log says why');
	query('CREATE TABLE filler AS SELECT repeat(md5(i::text), 30) FROM generate_series(1, 4000) i; DROP TABLE filler; CHECKPOINT');
	$node->stop('immediate');
	$node->start;
	query('CHECKPOINT');
	$node->restart;
	open($fh, '>:raw', $file) or die; print $fh $bytes; close $fh;
	$node->restart;
	same('... with the file put back nothing is lost');
	query("UPDATE $_.small SET v = v + 1") for ('h', 'm');
	($newest) = (sort glob("$data/mot/" . '[0-9A-F]' x 24))[-1];
	last if !-e $file;
}

# ------------------------------------------ nothing keeps the log: as before
$node->stop('fast');
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\n");
$node->start;
query("UPDATE $_.small SET v = v + 1") for ('h', 'm');
$node->stop('immediate');
$from = -s $node->logfile;
$node->start;
like(slurp_file($node->logfile, $from), qr/loaded memory-optimized tables.*ready to accept connections/s, 'without a slot tables are loaded before the server is open');
same('... all of them');
$node->stop('immediate');
$node->start;
same('... and once more');
$node->stop;
done_testing();
