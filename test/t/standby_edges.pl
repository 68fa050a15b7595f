# Standbys in settings of their own: one that applies late, one whose log is not
# kept while it loads, one that nobody can read, one of a standby that loads.

use strict;
use warnings;

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
	for (1 .. 600)
	{
		return if slurp_file($node->logfile, $from) =~ /fault point "$point" reached/;
		sleep 0.05;
	}
	die "$point was not reached";
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
$late->poll_query_until('postgres', 'SELECT true');

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
$late->promote;
is(content($late), content($primary), 'a promotion does not wait for that');
$late->stop;

$primary->stop;
done_testing();
