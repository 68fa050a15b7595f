# Base backups that take their time, while checkpoints come and go: what the
# backup began with is kept for it, whatever it copies of the others.  By the
# replication protocol, and by hand between pg_backup_start and pg_backup_stop.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

srand(int($ENV{SEED} || 1));

# (pg_basebackup's slot is made a moment after the backup has begun, and goes back to where that was:
# in between, or then, checkpoints may take the log away, and the slot with it)

my $ledger = Ledger->new(name => 'primary', writers => 3, initdb => ['--wal-segsize=1'], conf => "max_wal_size = '1GB'\nwal_keep_size = '1GB'\n");
my $primary = $ledger->node;
$primary->enable_archiving;
$ledger->begin;
my $data = $primary->data_dir;
my $nodes = 0;

sub checkpoints { return sort map { s/.*\///r } glob("$data/mot/" . '[0-9A-F]' x 24) }

sub checkpoint
{
	$primary->safe_psql('postgres', 'CHECKPOINT');
	sleep rand(0.2);
	return;
}

# what it brings along is enough; nobody else's log
sub verify_backup
{
	my ($name, $what) = @_;
	my $node = PostgreSQL::Test::Cluster->new('copy' . $nodes++);
	$node->init_from_backup($primary, $name);
	$node->append_conf('postgresql.conf', "archive_mode = off\n");
	$node->start;
	is(join("\n", $ledger->verify_content($node)), '', "$what: in order");
	$node->safe_psql('postgres', "INSERT INTO twin_a VALUES (1000, 0, 0, 'new')");
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', 'SELECT t FROM twin_a WHERE k = 1000'), 'new', '... and works');
	$node->stop;
	$node->clean_node;
	return;
}

# -------------------------------------------------- by the replication protocol

for my $rate ('5M', '12M')
{
	my $name = "slow_$rate";
	$ledger->start_clients(1);
	my $backup = IPC::Run::start(
		[ 'pg_basebackup', '-D', $primary->backup_dir . "/$name", '-h', $primary->host, '-p', $primary->port, '--checkpoint', 'fast', '--no-sync', '--max-rate', $rate ],
		'>', \my $out, '2>', \my $err);
	checkpoint() for 1 .. 12;
	ok($backup->finish, "a base backup at ${rate}B/s with checkpoints under way") or diag($err);
	$ledger->stop_clients;
	command_ok([ 'pg_verifybackup', '--exit-on-error', $primary->backup_dir . "/$name" ], '... pg_verifybackup is content');
	verify_backup($name, '... restored');
	is(join("\n", $ledger->verify), '', '... the primary, too');
	$ledger->settle;
}
checkpoint();
checkpoint();
is(scalar(my @left = checkpoints()), 1, 'when it has ended older checkpoints go');

# ------------------------------------------------------------------- by hand

$ledger->start_clients(2);
my $session = $primary->background_psql('postgres');
$session->query_safe(q{SET client_min_messages = warning});
$session->query_safe(q{SELECT pg_backup_start('by hand', true)});
my ($first) = (checkpoints())[-1];
my $name = 'by_hand';
my $to = $primary->backup_dir . "/$name";
mkdir $to or die;
# files vanish under tar's hands, which is as it should be
my $copy = IPC::Run::start([ 'sh', '-c', "cd '$data' && for f in *; do case \$f in postmaster.*|pg_wal|pg_replslot) ;; *) tar cf - \$f | tar xf - -C '$to'; sleep 0.1 ;; esac; done; mkdir -p '$to/pg_wal' '$to/pg_replslot'" ],
	'>', \my $said, '2>', \my $said_too);
checkpoint() for 1 .. 10;
$copy->finish;
my @now = checkpoints();
ok((grep { $_ eq $first } @now), 'the checkpoint with which the backup began is kept');
cmp_ok(scalar(@now), '>', 1, '... among those since');
my $label = $session->query_safe(q{\\t on \\\\ \\a \\\\ SELECT labelfile FROM pg_backup_stop(true)});
$ledger->stop_clients;
$label = join('', map { s/\s*\+?\s*$/\n/r } $label =~ /^ *([A-Z ]+: .*)$/mg);
like($label, qr/START WAL LOCATION/, 'a backup by hand');
append_to_file("$to/backup_label", $label);
is(join("\n", $ledger->verify), '', '... the primary is in order');
checkpoint();
checkpoint();
is(scalar(@now = checkpoints()), 1, '... when it has ended older checkpoints go');
$session->quit;
my $node = PostgreSQL::Test::Cluster->new('restored');
$node->init_from_backup($primary, $name, has_restoring => 1, standby => 0);
$node->append_conf('postgresql.conf', "archive_mode = off\nrecovery_target = 'immediate'\nrecovery_target_action = promote\n");
$node->start;
$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
is(join("\n", $ledger->verify_content($node)), '', '... restored to where it ended: in order');
$node->stop;

$primary->stop;
done_testing();
