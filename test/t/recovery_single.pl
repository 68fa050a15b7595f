# Recovery in a server for a single user, as pg_rewind asks for it: of a standby
# that was promoted and died before the server's next checkpoint was complete,
# while one of memory-optimized tables was.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $ledger = Ledger->new(name => 'primary');
plan skip_all => 'heap tables have no checkpoints of their own' if $ledger->{engine} eq 'heap';
my $primary = $ledger->node;
$ledger->begin;
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "checkpoint_timeout = 5min\ncheckpoint_completion_target = 0.9\n");
$standby->start;

# a table of which the standby's restartpoint knows nothing, and much for the checkpoint to write
$primary->safe_psql(
	'postgres', q{
	CREATE TABLE made (i int PRIMARY KEY, t text) USING mot;
	INSERT INTO made SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
	CREATE TABLE much USING heap AS SELECT repeat('x', 500) FROM generate_series(1, 30000);
});
$primary->wait_for_catchup($standby, 'replay');
$standby->promote;
$standby->safe_psql('postgres', "INSERT INTO made VALUES (5000, 'on the new timeline')");
my $content = Ledger::content($standby);
my $data = $standby->data_dir;
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default) { last if () = glob("$data/mot/00000002*/manifest"); sleep 0.1 }
ok(scalar(glob("$data/mot/00000002*/manifest")), 'a checkpoint of memory-optimized tables is on the new timeline');
my $log = slurp_file($standby->logfile);
ok($log =~ /checkpoint starting: force.*/s && $& !~ /checkpoint complete: wrote/, '... and none of the server');

$ledger->on($standby)->kill_all or die 'processes do not die';
my $copy = "$data.copy";
system_or_bail('cp', '-a', $data, $copy);
my ($out, $err) = run_command([ 'postgres', '--single', '-F', '-D', $data, 'template1' ]);
like($err, qr/crash recovery starts in timeline 1 and has target timeline 2/, 'a server for a single user recovers across the promotion');
unlike($err, qr/FATAL|PANIC|passed over/, '... without a complaint');
$standby->start;
is(Ledger::content($standby), $content, '... and all is there');
$standby->stop;

system_or_bail('rm', '-rf', $data);
system_or_bail('mv', $copy, $data);
$standby->start;
is(Ledger::content($standby), $content, 'and by a server for many');

$standby->stop;
$primary->stop;
done_testing();
