# Base backups taken under load, restored as they are, and brought forward from
# an archive to a time, a transaction, a named point; an old primary rewound.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $ledger = Ledger->new(name => 'primary', writers => 3);
my $primary = $ledger->node;
$primary->enable_archiving;
$primary->append_conf('postgresql.conf', "wal_keep_size = '256MB'\n");
$ledger->begin;

# a backup under load, with definitions that come and go
$ledger->start_clients(1);
sleep 0.5;
$primary->backup('under_load');
ok(1, 'a base backup under load');
sleep 0.2;
$ledger->stop_clients;
is(join("\n", $ledger->verify), '', 'the primary is in order');
$ledger->settle;

# points in time to go back to, each with what was there then
my %then;

sub change
{
	my ($name) = @_;
	$primary->safe_psql('postgres', "CREATE TABLE IF NOT EXISTS steps (n text) USING $ledger->{engine}; INSERT INTO steps VALUES ('$name')");
	return;
}

change('before the time');
$primary->safe_psql('postgres', "CREATE TABLE later_dropped USING $ledger->{engine} AS SELECT i FROM generate_series(1, 100) i");
$then{time} = Ledger::content($primary);
sleep 1.2;
my $time = $primary->safe_psql('postgres', 'SELECT clock_timestamp()');
sleep 1.2;

change('after the time');
$primary->safe_psql('postgres', 'DROP TABLE later_dropped');
my $xid = $primary->safe_psql(
	'postgres', q{
	BEGIN;
	INSERT INTO steps VALUES ('the transaction');
	INSERT INTO noted VALUES (0, 0, 'the', 'xid');
	SELECT pg_current_xact_id();
	COMMIT;
});
$then{xid} = Ledger::content($primary);
change('after the transaction');
$primary->safe_psql('postgres', "CREATE TABLE big USING $ledger->{engine} AS SELECT i, repeat('x', 100) AS t FROM generate_series(1, 20000) i");
$then{name} = Ledger::content($primary);
$primary->safe_psql('postgres', "SELECT pg_create_restore_point('here')");
change('after the point');
$primary->safe_psql('postgres', 'TRUNCATE big');
$then{latest} = Ledger::content($primary);
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
my $walfile = $primary->safe_psql('postgres', "SELECT pg_walfile_name(pg_current_wal_lsn())");
$primary->poll_query_until('postgres', "SELECT last_archived_wal >= (SELECT max(name) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}\$' AND name < pg_walfile_name(pg_current_wal_lsn())) FROM pg_stat_archiver");

# as it is, by what the backup brought along
my $plain = PostgreSQL::Test::Cluster->new('plain');
$plain->init_from_backup($primary, 'under_load');
$plain->append_conf('postgresql.conf', "archive_mode = off\n");
$plain->start;
is(join("\n", $ledger->verify_content($plain)), '', 'a backup restored without an archive is in order');
$plain->safe_psql('postgres', "INSERT INTO twin_a VALUES (1000, 0, 0, 'new')");
$plain->stop;
$plain->start;
is($plain->safe_psql('postgres', 'SELECT t FROM twin_a WHERE k = 1000'), 'new', '... and works');
$plain->stop;

my %target = (
	time => "recovery_target_time = '$time'",
	xid => "recovery_target_xid = '$xid'",
	name => "recovery_target_name = 'here'",
	latest => '');
for my $to (sort keys %target)
{
	my $node = PostgreSQL::Test::Cluster->new("to_$to");
	$node->init_from_backup($primary, 'under_load', has_restoring => 1, standby => 0);
	$node->append_conf('postgresql.conf', "archive_mode = off\n$target{$to}\nrecovery_target_action = promote\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
	is(Ledger::content($node), $then{$to}, "recovered to: $to");
	is(join("\n", $ledger->verify_content($node)), '', '... in order');
	$node->safe_psql('postgres', "INSERT INTO steps VALUES ('a new timeline')");
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', "SELECT count(*) FROM steps WHERE n = 'a new timeline'"), '1', '... and writes on, durably');
	$node->stop;
	$node->clean_node;
}

# a standby takes over; the old primary, which went on for a while, is rewound
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'under_load', has_streaming => 1);
$standby->append_conf('postgresql.conf', "archive_mode = off\n");
$standby->start;
$primary->wait_for_catchup($standby, 'replay');
is(Ledger::content($standby), Ledger::content($primary), 'a standby has what the primary has');
$standby->promote;
# (pg_rewind learns of the new timeline from the control file)
$standby->safe_psql('postgres', "INSERT INTO steps VALUES ('on the new primary'); CHECKPOINT");
$primary->safe_psql('postgres', "INSERT INTO steps VALUES ('lost'); CREATE TABLE lost USING $ledger->{engine} AS SELECT 1 AS i; TRUNCATE twin_a; CHECKPOINT");
$primary->stop;
command_ok(
	[ 'pg_rewind', '--source-server', $standby->connstr('postgres'), '--target-pgdata', $primary->data_dir,
		'--config-file', $primary->data_dir . '/postgresql.conf' ],
	'pg_rewind of the old primary');
$primary->append_conf('postgresql.conf', 'port = ' . $primary->port . "\nunix_socket_directories = '" . $primary->host . "'\narchive_mode = off\n"
	  # what it archived after the fork is not to be found
	  . "restore_command = ''\n");
$primary->set_standby_mode;
$primary->append_conf('postgresql.conf', "primary_conninfo = '" . $standby->connstr . "'\n");
$primary->start;
$standby->safe_psql('postgres', "INSERT INTO steps VALUES ('after the rewind')");
$standby->wait_for_catchup($primary, 'replay');
is(Ledger::content($primary), Ledger::content($standby), 'the rewound server has what the new primary has');
is(join("\n", $ledger->verify_content($primary)), '', '... in order');

$primary->stop;
$standby->stop;
done_testing();
