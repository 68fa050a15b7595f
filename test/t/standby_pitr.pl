# Recovery from an archive to a point in time, to a transaction, to a name and
# to a position; and the same from a base backup taken under load.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, has_archiving => 1);
$primary->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
});
$primary->start;
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE steps (n int PRIMARY KEY, what text) SERVER mot_server;
	CREATE TABLE cold_steps (n int PRIMARY KEY, what text);
	CREATE FOREIGN TABLE ticks (n int) SERVER mot_server;
	INSERT INTO steps VALUES (0, 'before the backup');
	INSERT INTO cold_steps VALUES (0, 'before the backup');
});

# a backup while somebody writes
my $ticks = $primary->basedir . '/ticks.sql';
append_to_file($ticks, "INSERT INTO ticks VALUES (1);\n");
my $writer = IPC::Run::start(
	[ 'pgbench', '--no-vacuum', '--client=2', '--time=3', "--file=$ticks", $primary->connstr('postgres') ],
	'>', \my $out, '2>', \my $err);
select(undef, undef, undef, 0.5);
$primary->backup('base');
$writer->finish;
my $all_ticks = $primary->safe_psql('postgres', 'SELECT count(*) FROM ticks');
cmp_ok($all_ticks, '>', 10, 'somebody wrote while the backup ran');

# One step after the other; of each the moment after it.
my (%time, %xid, %lsn);
my $n = 0;

sub step
{
	my ($name, $sql) = @_;
	$n++;
	my $did = $primary->safe_psql('postgres', $sql =~ s/STEP/($n, '$name')/gr);
	($xid{$name}) = $did =~ /(\d+)/;
	# a clock that has moved, and a little room for a commit of the server's
	select(undef, undef, undef, 1.2);
	$time{$name} = $primary->safe_psql('postgres', 'SELECT now()');
	$lsn{$name} = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	$primary->safe_psql('postgres', "SELECT pg_create_restore_point('after $name')");
	select(undef, undef, undef, 0.2);
	return;
}

step('hot only', 'INSERT INTO steps VALUES STEP');
$primary->safe_psql('postgres', 'CHECKPOINT');
step('mixed', 'BEGIN; INSERT INTO steps VALUES STEP; INSERT INTO cold_steps VALUES STEP; SELECT pg_current_xact_id(); COMMIT');
step('hot again', "INSERT INTO steps VALUES STEP; UPDATE steps SET what = 'changed' WHERE n = 0");
step('definition', 'ALTER FOREIGN TABLE steps ADD COLUMN more int DEFAULT 5; INSERT INTO steps VALUES STEP');
step('mixed again', 'BEGIN; DELETE FROM steps WHERE n = 1; INSERT INTO steps VALUES STEP; INSERT INTO cold_steps VALUES STEP; SELECT pg_current_xact_id(); COMMIT');
step('cold only', 'INSERT INTO cold_steps VALUES STEP');
step('large', "INSERT INTO ticks SELECT 2 FROM generate_series(1, 100000)");
$primary->safe_psql('postgres', 'TRUNCATE steps; TRUNCATE cold_steps; SELECT pg_switch_wal()');
$primary->poll_query_until('postgres', "SELECT last_archived_wal IS NOT NULL AND last_archived_wal >= pg_walfile_name('$lsn{large}') FROM pg_stat_archiver")
  or die 'the log was not archived';

my $nodes = 0;

sub recover
{
	my ($what, $setting, $steps, $cold_steps, $large) = @_;
	my $node = PostgreSQL::Test::Cluster->new('recovered' . $nodes++);
	$node->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
	$node->append_conf('postgresql.conf', "recovery_target_action = promote\narchive_mode = off\n$setting\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
	is( $node->safe_psql('postgres',
			"SELECT string_agg(n || ' ' || what, ', ' ORDER BY n) FROM steps; SELECT string_agg(n::text, ' ' ORDER BY n) FROM cold_steps; SELECT count(*) FROM ticks"),
		"$steps\n$cold_steps\n" . ($all_ticks + ($large ? 100000 : 0)),
		$what);
	$node->safe_psql('postgres', "INSERT INTO steps (n, what) VALUES (100, 'after')");
	$node->restart;
	is($node->safe_psql('postgres', 'SELECT what FROM steps WHERE n = 100'), 'after', '... and goes on from there');
	unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal|XX00/, '... in peace');
	$node->stop;
	return;
}

my $first = '0 before the backup';
recover('to a time, after a commit of memory-optimized tables only', "recovery_target_time = '$time{'hot only'}'", "$first, 1 hot only", '0', 0);
recover('to a transaction', "recovery_target_xid = '$xid{mixed}'", "$first, 1 hot only, 2 mixed", '0 2', 0);
recover('to a name', "recovery_target_name = 'after hot again'", '0 changed, 1 hot only, 2 mixed, 3 hot again', '0 2', 0);
recover('to a time, after a definition', "recovery_target_time = '$time{definition}'", '0 changed, 1 hot only, 2 mixed, 3 hot again, 4 definition', '0 2', 0);
recover('to just before a transaction', "recovery_target_xid = '$xid{'mixed again'}'\nrecovery_target_inclusive = off",
	'0 changed, 1 hot only, 2 mixed, 3 hot again, 4 definition', '0 2', 0);
recover('to a position', "recovery_target_lsn = '$lsn{'cold only'}'", '0 changed, 2 mixed, 3 hot again, 4 definition, 5 mixed again', '0 2 5 6', 0);
recover('to a time, after a large transaction', "recovery_target_time = '$time{large}'", '0 changed, 2 mixed, 3 hot again, 4 definition, 5 mixed again', '0 2 5 6', 1);
recover('to the end', '', '', '', 1);

# Commits of memory-optimized tables only that are later than the target have been passed over
# before the server stops: they are still there when the target is moved, and never come back
# otherwise.
for my $moved (0, 1)
{
	my $node = PostgreSQL::Test::Cluster->new("moved$moved");
	$node->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
	$node->append_conf('postgresql.conf', "archive_mode = off\nrecovery_target_action = pause\nrecovery_target_time = '$time{'cold only'}'\n");
	$node->start;
	$node->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused' AND state = 'ready' FROM mot_stat_recovery}) or die;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM ticks'), $all_ticks, 'later commits are passed over');
	$node->safe_psql('postgres', 'CHECKPOINT') if $moved;
	# our checkpoint would follow now
	select(undef, undef, undef, 0.5);
	$node->stop if $moved;
	$node->adjust_conf('postgresql.conf', 'recovery_target_time', "'$time{large}'") if $moved;
	$node->start if $moved;
	$node->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused' AND state = 'ready' FROM mot_stat_recovery}) or die;
	$node->safe_psql('postgres', 'SELECT pg_create_physical_replication_slot($$mot$$, true)') if !$node->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots');
	# so that no other checkpoint comes between that and the crash
	$node->append_conf('postgresql.conf', "mot.fault = 'checkpoint-watch:wait'\n") if $ENV{MOT_FAULT_POINTS};
	$node->reload;
	$node->promote;
	my $ticks = $all_ticks + ($moved ? 100000 : 0);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM ticks'), $ticks, $moved ? '... and are not, if the target is moved' : '... for good');
	$node->stop('immediate');
	$node->append_conf('postgresql.conf', "mot.fault = ''\n") if $ENV{MOT_FAULT_POINTS};
	$node->start;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM ticks'), $ticks, '... also after a crash');
	$node->stop;
}

$primary->stop;
done_testing();
