# Base backups of a standby.  Its restartpoints wait for nobody, so a backup
# may begin at one that our checkpoint is behind; what lies between is in the
# backup nevertheless.

use strict;
use warnings;

use File::Basename qw(basename);
use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use lib "$FindBin::Bin/../crash";
use Ledger;
use lib "$FindBin::Bin/../fixtures";
use Fixtures;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

srand(int($ENV{SEED} || 1));

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => ['--wal-segsize=1']);
$primary->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
wal_keep_size = '256MB'
restart_after_crash = off
});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE t (id int PRIMARY KEY, v text) SERVER mot_server;
	INSERT INTO t SELECT i, 'before' FROM generate_series(1, 1000) i;
	CHECKPOINT;
});
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay');
my $content = 'SELECT count(*), sum(id), md5(string_agg(v, $$,$$ ORDER BY id)) FROM t';

my $worker = $standby->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'});
kill 'STOP', $worker or die;
$primary->safe_psql('postgres', q{
	INSERT INTO t SELECT i, repeat(md5(i::text), 20) FROM generate_series(1001, 5000) i;
	UPDATE t SET v = 'changed' WHERE id % 2 = 0;
	CHECKPOINT;
});
$primary->wait_for_catchup($standby, 'replay');
command_ok([ 'pg_basebackup', '-D', $standby->backup_dir . '/late', '-h', $standby->host, '-p', $standby->port, '--checkpoint', 'fast', '--no-sync' ], 'a base backup of the standby, whose checkpointer of ours is late');

my $nodes = 0;

# a server of a backup, by itself
sub restored
{
	my ($name) = @_;
	my $copy = PostgreSQL::Test::Cluster->new('copy' . $nodes++);
	$copy->init_from_backup($standby, $name);
	return $copy;
}

sub content_of
{
	my ($copy) = @_;
	$copy->start(fail_ok => 1) or return 'not started: ' . join("\n", slurp_file($copy->logfile) =~ /FATAL: .*/g);
	my $found = $copy->safe_psql('postgres', $content);
	$copy->stop('immediate');
	return $found;
}

sub trails { return map { s/.*\///r } glob($_[0]->data_dir . '/mot/*.trail') }

my $expected = $primary->safe_psql('postgres', $content);
is(content_of(my $copy = restored('late')), $expected, '... has everything');
is(content_of($copy), $expected, '... and again, after a crash');

# what it has beside the checkpoint is checked as that is
my $backup = $standby->backup_dir . '/late';
my @trail = glob("$backup/mot/*.trail");
is(scalar(@trail), 1, 'the log since the checkpoint is in a file of its own');
my $whole = slurp_file($trail[0]);
my ($end) = $whole =~ /^(.*[^\0])\0*$/s or die;
my %wrong;

my $damaged = restored('late');
my $file = $damaged->data_dir . '/mot/' . basename($trail[0]);

sub try
{
	my ($what, $bytes) = @_;
	if (defined $bytes)
	{
		open(my $fh, '>:raw', $file) or die;
		print $fh $bytes;
		close $fh;
	}
	else { unlink $file or die }
	my $seen = -s $damaged->logfile // 0;
	if (!$damaged->start(fail_ok => 1))
	{
		my ($fatal) = slurp_file($damaged->logfile, $seen) =~ /(FATAL: .*)/;
		$wrong{$what} = $fatal
		  unless $fatal =~ /FATAL:  (?:checkpoint file "mot\/[0-9A-F]{16}\.trail" is damaged at offset \d+|log segment [0-9A-F]{24}, which memory-optimized tables need)/;
		return 1;
	}
	my $found = $damaged->safe_psql('postgres', $content);
	$wrong{$what} = $found if $found ne $expected;
	$damaged->stop('immediate');
	system_or_bail('rm', '-rf', $damaged->data_dir);
	system_or_bail('cp', '-a', $backup, $damaged->data_dir);
	$damaged->append_conf('postgresql.conf', 'port = ' . $damaged->port . "\nunix_socket_directories = '" . $damaged->host . "'\n");
	return 0;
}

my $noticed = 0;
for my $at (0, 16, 33, 40, 56, 72, 110, map { 120 + int(rand(length($end) - 120)) } 1 .. 4)
{
	my $bytes = $whole;
	substr($bytes, $at, 1) = chr(ord(substr($bytes, $at, 1)) ^ 1 << int(rand(8)));
	$noticed += try("bit at $at", $bytes);
}
cmp_ok($noticed, '>=', 7, "most changed bits matter ($noticed)");

# one that is newer, with a checksum that is right
my $newer = $whole;
substr($newer, 7, 1) = '2';
substr($newer, 32, 4) = pack 'V', Fixtures::crc32c(substr $newer, 0, 32);
try('newer', $newer);
like(delete $wrong{newer}, qr/FATAL:  checkpoint file "mot\/[0-9A-F]{16}\.trail" is of format 2, and this version of mot reads formats 1 to 1/, 'that of a newer version is refused');
$noticed = 0;
$noticed += try("cut to $_", substr($whole, 0, $_)) for 0, 50, 4096, length($end) - 100;
$noticed += try("zero from $_", substr($end, 0, $_) . "\0" x 10000) for 4096, length($end) - 100;
$noticed += try('gone', undef);
is($noticed, 7, 'it is noticed when it is cut');
is(join("\n", map { "$_: $wrong{$_}" } sort keys %wrong), '', '... everything comes, or it is refused with the place');

# the standby goes on; what it does not need any more goes
kill 'CONT', $worker;
for my $round (1 .. 3)
{
	$primary->safe_psql('postgres', "UPDATE t SET v = v || $round WHERE id % 3 = 0; CHECKPOINT");
	$primary->wait_for_catchup($standby, 'replay');
	my $before = $standby->safe_psql('postgres', 'SELECT checkpoint_lsn FROM mot_stat_checkpoint');
	$standby->safe_psql('postgres', 'CHECKPOINT');
	$standby->poll_query_until('postgres', "SELECT checkpoint_lsn > '$before' FROM mot_stat_checkpoint") or die;
}
cmp_ok(scalar(trails($standby)), '<=', 2, 'a standby keeps the log since its newest checkpoint, and of the one before');

# killed, and a backup at once, of what it has found in its own log
$primary->safe_psql('postgres', "UPDATE t SET v = 'once more' WHERE id % 5 = 0; CHECKPOINT");
$primary->wait_for_catchup($standby, 'replay');
$worker = $standby->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'});
kill 'STOP', $worker or die;
$standby->safe_psql('postgres', 'CHECKPOINT');
kill 'KILL', (my @pids = ($standby->{_pid}, Ledger::children($standby->{_pid})));
Ledger::wait_gone(30, @pids) or die;
unlink $standby->data_dir . '/postmaster.pid', $standby->host . '/.s.PGSQL.' . $standby->port . '.lock';
$standby->{_pid} = undef;
$standby->start;
$worker = $standby->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'});
kill 'STOP', $worker or die;
$standby->backup('killed');
kill 'CONT', $worker;
is(content_of(restored('killed')), $primary->safe_psql('postgres', $content), 'a backup of a standby that was killed');

# under load, slowly, with checkpoints at both
my $script = $primary->basedir . '/load.sql';
append_to_file($script, "\\set id random(1, 5000)\nUPDATE t SET v = md5(random()::text) WHERE id = :id;\n");
my $load = IPC::Run::start([ 'pgbench', '--no-vacuum', '--client=2', '--time=6', "--file=$script", $primary->connstr('postgres') ], '>', \my $said, '2>', \my $said_too);
my $slow = IPC::Run::start(
	[ 'pg_basebackup', '-D', $standby->backup_dir . '/slow', '-h', $standby->host, '-p', $standby->port, '--checkpoint', 'fast', '--no-sync', '--max-rate', '8M' ],
	'>', \my $out2, '2>', \my $err2);
for (1 .. 8)
{
	$primary->safe_psql('postgres', 'CHECKPOINT');
	$standby->safe_psql('postgres', 'CHECKPOINT');
	sleep 0.4;
}
ok($slow->finish, 'a slow base backup of a standby under load') or diag($err2);
$load->finish;
$copy = restored('slow');
$copy->append_conf('postgresql.conf', "primary_conninfo = '" . $primary->connstr . "'\n");
$copy->set_standby_mode;
$copy->start;
$primary->wait_for_catchup($copy, 'replay');
is($copy->safe_psql('postgres', $content), $primary->safe_psql('postgres', $content), '... follows the primary, and has everything');
$copy->stop;

$primary->wait_for_catchup($standby, 'replay');
$standby->promote;
$standby->safe_psql('postgres', "INSERT INTO t VALUES (10000, 'promoted'); CHECKPOINT");
is(join(' ', trails($standby)), '', 'a promoted standby keeps no such file');
$standby->restart;
is($standby->safe_psql('postgres', 'SELECT v FROM t WHERE id = 10000'), 'promoted', '... and works');
$standby->stop;
$primary->stop;
done_testing();
