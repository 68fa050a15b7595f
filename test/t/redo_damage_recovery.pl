# Damaged redo where it is met by recovery to a point in time, or is in doubt, or nobody knows of
# which table it is and it is ignored: heap tables are served, but where what is later than the
# target of recovery could come back.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

use constant { COMMIT => 0x10, MIXED => 0x20 };

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, has_archiving => 1, extra => ['--wal-segsize=1']);
$primary->append_conf('postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
log_error_verbosity = verbose
});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE DATABASE other;
	CREATE EXTENSION mot;
	CREATE FUNCTION mot_test_log(int, bytea) RETURNS pg_lsn LANGUAGE c AS 'mot';
	CREATE TABLE heap (v int) USING heap;
	CREATE TABLE keyed (v int PRIMARY KEY) USING mot;
	CREATE TABLE beside (v int PRIMARY KEY) USING mot;
	CREATE TABLE named (v text PRIMARY KEY) USING mot;
	INSERT INTO beside VALUES (1);
	INSERT INTO keyed VALUES (100)});

sub query { return $primary->safe_psql('postgres', $_[0]) }

# a row that is not there is deleted; a compressed text that is none; or what is no record
sub record
{
	my ($name, $operation) = @_;
	my ($db, $table) = split /\|/, query("SELECT d.oid, c.relfilenode FROM pg_database d, pg_class c WHERE datname = 'postgres' AND relname = '$name'");
	return unpack('H*', chr(2) . chr(0) . pack('q<', 0) . pack('CVV', 1, $db, $table) . $operation);
}
sub damaged_row { return record('keyed', chr(9) . chr(4) . pack('N', 9 + 2**31)) }
sub value_that_is_none { return record('named', chr(7) . chr(1) . chr(100) . pack('VV', 100 << 2 | 2, 0x3fffffff) . "\xff" x 92) }
sub damage { my ($kind, $bytes) = @_; return "SELECT mot_test_log($kind, '\\x$bytes')" }
my $ROW = 'redo at [0-9A-F/]+ does not fit memory-optimized table "public\.keyed": a row is not there';
my $SHORT = 'redo of memory-optimized tables at [0-9A-F/]+ is damaged: too short';

sub error_of
{
	my ($server, $sql) = @_;
	my ($rc, $out, $err) = $server->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	return $rc == 0 ? "no error: $out" : $err;
}

sub loaded { return $_[0]->poll_query_until('postgres', "SELECT state IN ('ready', 'refused') FROM mot_stat_recovery") || die 'not loaded' }

# ---------------------------------------------------------- to a point in time

$primary->backup('base');
query('INSERT INTO beside VALUES (2)');
query('INSERT INTO heap VALUES (2)');
query(damage(COMMIT, damaged_row()));
query('INSERT INTO beside VALUES (3)');
query('INSERT INTO heap VALUES (3)');
sleep 1;
my $time = query('SELECT now()');
sleep 1;
# later than the target: passed over, until the server stops at its own
query('INSERT INTO beside VALUES (4)');
query('INSERT INTO heap VALUES (4)');
query('SELECT pg_switch_wal()');
my $last = query('SELECT pg_current_wal_lsn()');
query('CHECKPOINT; SELECT pg_switch_wal()');
$primary->poll_query_until('postgres', "SELECT last_archived_wal >= pg_walfile_name('$last'::pg_lsn - 1) FROM pg_stat_archiver") or die;

sub recovered
{
	my ($name, $settings) = @_;
	my $server = PostgreSQL::Test::Cluster->new($name);
	$server->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
	$server->append_conf('postgresql.conf', "archive_mode = off\nrecovery_target_action = promote\nrecovery_target_time = '$time'\n$settings");
	$server->start(fail_ok => 1);
	return $server;
}

# (what has been passed over would be read with the next start)
my $node = recovered('refused', '');
ok($node->wait_for_log(qr/FATAL: .*memory-optimized tables could not be recovered\n.*DETAIL:  $ROW/s), 'recovery to a time, behind damaged redo, does not end');
for (my $i = 0; $i < 600 && -e $node->data_dir . '/postmaster.pid'; $i++) { select(undef, undef, undef, 0.1) }
ok(!-e $node->data_dir . '/postmaster.pid', '... nor does the server go on');
$node->stop('immediate', fail_ok => 1);

$node = recovered('ignored', "mot.ignore_damaged = on\n");
$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
for my $what ('if damage is ignored', 'after a crash')
{
	loaded($node);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM heap'), 2, "$what heap tables are as of then");
	is($node->safe_psql('postgres', q{SELECT string_agg(v::text, ' ' ORDER BY v) FROM beside}), '1 2 3', '... and so are others');
	like(error_of($node, 'SELECT * FROM keyed'), qr/XX001: memory-optimized table with OID \d+ is damaged|55000/, '... but for the one that is damaged');
	$node->stop('immediate');
	$node->start if $what =~ /ignored/;
}

# ------------------------------------------------------------------- in doubt

for my $case ([ 'row', \&damaged_row, "XX001: $ROW" ], [ 'value', \&value_that_is_none, 'XX000: invalid memory alloc request size \d+' ])
{
	my ($what, $bytes, $why) = @$case;
	query('TRUNCATE keyed; CHECKPOINT');
	$primary->backup("in_doubt_$what");
	my $standby = PostgreSQL::Test::Cluster->new("in_doubt_$what");
	$standby->init_from_backup($primary, "in_doubt_$what", has_streaming => 1);
	$standby->start;
	loaded($standby);
	query('BEGIN; INSERT INTO heap VALUES (6);' . damage(MIXED, $bytes->()) . '; COMMIT');
	$primary->wait_for_catchup($standby, 'replay');
	for my $round (1, 2)
	{
		for my $sql ('SELECT count(*) > 0 FROM heap', 'COPY (SELECT true) TO STDOUT', 'DECLARE c CURSOR FOR SELECT true FROM heap; FETCH c')
		{
			is($standby->safe_psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; $sql; COMMIT"), 't', "$what in doubt: $sql");
		}
		is($standby->safe_psql('other', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) > 0 FROM pg_class; COMMIT'), 't', '... in another database, too');
		for my $level ('READ COMMITTED', 'REPEATABLE READ')
		{
			like(error_of($standby, "BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM heap; SELECT * FROM beside"), qr/$why/, "... no others, $level");
		}
	}
	$standby->stop;
}

# ---------------------------------------- ignored, and nobody knows of which table it is

for my $slots (10, 0)
{
	query('TRUNCATE keyed, beside; INSERT INTO beside VALUES (1); CHECKPOINT');
	$primary->backup("ignoring$slots");
	my $standby = PostgreSQL::Test::Cluster->new("ignoring$slots");
	$standby->init_from_backup($primary, "ignoring$slots", has_streaming => 1);
	$standby->append_conf('postgresql.conf', "max_replication_slots = $slots\nmot.ignore_damaged = on\n");
	$standby->start;
	loaded($standby);
	for my $case ([ COMMIT, '', $SHORT ], [ COMMIT, '0280200000000000000000', 'redo of memory-optimized tables at [0-9A-F/]+ goes on what began at 0/1000, which was not read' ],
		[ MIXED, '0200000000000000000063', 'redo of memory-optimized tables at [0-9A-F/]+ is damaged: there is an unknown operation' ])
	{
		my ($kind, $bytes, $why) = @$case;
		query('TRUNCATE keyed, beside; INSERT INTO beside VALUES (1)');
		$primary->wait_for_catchup($standby, 'replay');
		is($standby->safe_psql('postgres', 'SELECT * FROM beside'), '1', "$slots slots, $why: it is there before");
		my $reader = $standby->background_psql('postgres', on_error_stop => 0);
		my $pid = $reader->query_safe('SELECT pg_backend_pid()');
		$reader->query_safe('BEGIN; SELECT count(*) FROM beside');
		my $from = -s $standby->logfile;
		query('BEGIN; INSERT INTO heap VALUES (7);' . damage($kind, $bytes) . '; COMMIT');
		query('INSERT INTO beside VALUES (2)');
		query('TRUNCATE keyed; INSERT INTO keyed VALUES (3)');
		$standby->wait_for_log(qr/WARNING:  XX001: $why\n.*DETAIL:  Going on without any memory-optimized table, as mot\.ignore_damaged says/, $from);
		$primary->wait_for_catchup($standby, 'replay');
		is($standby->safe_psql('postgres', 'SELECT * FROM keyed'), '3', '... what is made anew behind it is there');
		like(error_of($standby, 'SELECT * FROM beside'), qr/XX001: memory-optimized table with OID \d+ is damaged/, '... no others');
		is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid"), '0', '... and nothing is read of them');
		eval { $reader->quit };
	}
	$standby->stop;
}

done_testing();
