# Standbys in settings of their own: one that applies late, one whose log is not
# kept while it loads, one that nobody can read, one of a standby that loads.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Served;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => ['--wal-segsize=1']);
$primary->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
mot.load_workers = 0
checkpoint_timeout = '1h'
min_wal_size = '2MB'
wal_recycle = off
wal_keep_size = '64MB'
mot.fault = ''
});
$primary->start;
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE h (i int PRIMARY KEY, v int);
	CREATE TABLE m (i int PRIMARY KEY, v int) USING mot;
	CREATE FOREIGN TABLE f (i int PRIMARY KEY, v int) SERVER mot_server;
	INSERT INTO h SELECT i, 0 FROM generate_series(1, 1000) i;
	INSERT INTO m SELECT * FROM h;
	INSERT INTO f SELECT * FROM h});

sub content
{
	my ($node) = @_;
	return $node->safe_psql('postgres', join(' UNION ALL ', map { "SELECT '$_', count(*), sum(v), md5(string_agg(x::text, ',' ORDER BY i)) FROM $_ x" } qw(h m f)));
}

# a transaction for each table, so two of them have no xid
sub write_on
{
	$primary->safe_psql('postgres', "UPDATE $_ SET v = v + 1 WHERE i % 3 = 0; DELETE FROM $_ WHERE i = (SELECT min(i) FROM $_)") for qw(f m h);
	return;
}

sub standby
{
	my ($name, $of, $conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init_from_backup($primary, 'base', has_streaming => 1);
	$node->append_conf('postgresql.conf', "primary_conninfo = '" . $of->connstr . " application_name=$name'\n" . ($conf // ''));
	return $node;
}

sub same
{
	my ($node, $what) = @_;
	$primary->wait_for_catchup($node, 'replay', $primary->lsn('flush')) if $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	is(content($node), content($primary), $what);
	return;
}

sub held
{
	my ($node, $point) = @_;
	my $from = -s $node->logfile // 0;
	$node->adjust_conf('postgresql.conf', 'mot.fault', "'$point:wait'");
	unlink $node->data_dir . '/mot.fault.go';
	$node->start;
	$node->wait_for_log(qr/fault point "$point" reached/, $from);
	return;
}

sub go
{
	my ($node) = @_;
	append_to_file($node->data_dir . '/mot.fault.go', '');
	return;
}

$primary->backup('base');

# ------------------------------------- what is applied late is so in all tables
my $late = standby('late', $primary, "recovery_min_apply_delay = '1h'\n");
my $before = content($primary);
$late->start;
served($late) or die;

sub waits
{
	return $late->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'RecoveryApplyDelay'");
}

# with nothing else in the log before it that would have to wait
write_on();
ok(waits(), 'a standby with recovery_min_apply_delay waits');
is(content($late), $before, '... before a commit of memory-optimized tables only');
$late->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$late->adjust_conf('postgresql.conf', 'recovery_min_apply_delay', '0');
$late->reload;
sleep 0.5;
is(content($late), $before, '... and if replay is paused, after that time, too');
$late->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
same($late, '... until it goes on');
$late->adjust_conf('postgresql.conf', 'recovery_min_apply_delay', "'1h'");
$late->reload;
$before = content($primary);
write_on();
ok(waits(), '... and waits again');
is(content($late), $before, '... with all of it');
# (it applies what it has received)
$primary->wait_for_catchup($late, 'flush', $primary->lsn('flush'));
$late->promote;
is(content($late), content($primary), 'a promotion does not wait for that');
$late->stop;

# ------------------- the log that another start would need goes while it loads
my $standby = standby('standby', $primary, "wal_keep_size = 0\n");
for my $way ('dropped', 'limited, then killed')
{
	held($standby, 'load-begin');
	write_on();
	$standby->safe_psql('postgres', "SELECT pg_drop_replication_slot('mot')") if $way =~ /dropped/;
	if ($way =~ /limited/)
	{
		$standby->append_conf('postgresql.conf', "max_slot_wal_keep_size = '1MB'\n");
		$standby->reload;
	}
	for (1 .. 2)
	{
		$primary->safe_psql('postgres', 'CREATE TABLE filler AS SELECT repeat(md5(i::text), 30) FROM generate_series(1, 2000) i; DROP TABLE filler; CHECKPOINT');
		write_on();
		$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
		$standby->safe_psql('postgres', 'CHECKPOINT');
	}
	my (undef, $lsn) = split('/', $standby->safe_psql('postgres', 'SELECT checkpoint_lsn FROM mot_stat_recovery'));
	ok(!-e $standby->data_dir . sprintf('/pg_wal/0000000100000000%08X', hex($lsn) >> 20), "the slot is $way while a standby loads, the log has gone");
	if ($way =~ /killed/)
	{
		$standby->stop('immediate');
		$standby->adjust_conf('postgresql.conf', 'mot.fault', "''");
		$standby->start;
	}
	go($standby);
	same($standby, '... and all is there');
	$standby->stop('immediate');
}
$standby->append_conf('postgresql.conf', "max_slot_wal_keep_size = -1\nwal_keep_size = '64MB'\nmot.fault = ''\n");
$standby->start;
same($standby, '... also later, when it is not limited any more');
$standby->stop;

# ------------------------------------------- one that nobody reads; one of one that loads
$standby->append_conf('postgresql.conf', "hot_standby = off\n");
$standby->start;
write_on();
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
$standby->stop('immediate');
$standby->append_conf('postgresql.conf', "hot_standby = on\n");
held($standby, 'load-begin');
$standby->backup('base_of_standby');
my $below = PostgreSQL::Test::Cluster->new('below');
$below->init_from_backup($standby, 'base_of_standby', has_streaming => 1);
$below->append_conf('postgresql.conf', "mot.fault = ''\n");
$below->start;
write_on();
$standby->wait_for_catchup($below, 'replay', $primary->lsn('flush'));
is(content($below), content($primary), 'a standby of one that loads has everything');
go($standby);
same($standby, '... and so has that');
$standby->promote;
$standby->safe_psql('postgres', "UPDATE $_ SET v = v + 1; DELETE FROM $_ WHERE i > 900") for qw(h m f);
$standby->wait_for_catchup($below, 'replay', $standby->lsn('flush'));
is(content($below), content($standby), '... also when it is promoted');
$below->stop;
$standby->stop;

# promoted without ever having been read
my $unread = standby('unread', $primary, "hot_standby = off\n");
$unread->start;
$primary->wait_for_catchup($unread, 'replay', $primary->lsn('flush'));
$unread->promote;
# (it is in production before anybody is let in)
served($unread) or die;
is(content($unread), content($primary), 'hot_standby = off, promoted');
$unread->stop;

$primary->stop;
done_testing();
