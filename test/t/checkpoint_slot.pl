# The replication slot of memory-optimized tables is not there, or not for
# long: dropped again and again by somebody who does not know it, moved on by another
# who uses it, cut short by max_slot_wal_keep_size, not possible at all; under load, with
# log that is removed as soon as nothing keeps it.  After a crash nothing is missing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = int($ENV{SEED} || 1);
srand($seed);
diag("SEED=$seed");

my $ledger = Ledger->new(name => 'slot', initdb => ['--wal-segsize=1'],
	conf => "min_wal_size = '2MB'\nmax_wal_size = '4MB'\nwal_recycle = off\ncheckpoint_completion_target = 0.1\n");
my $node = $ledger->node;
my $data = $node->data_dir;
$ledger->begin;

sub query { return $node->safe_psql('postgres', $_[0]) }

sub segments { return scalar(my @files = glob("$data/pg_wal/" . '[0-9A-F]' x 24)) }

# load, a crash, what holds
sub crash_and_verify
{
	my ($what, $meanwhile, $patiently) = @_;
	for my $round (1 .. 2)
	{
		# enough log for several checkpoints, by itself or because somebody asks
		my $first = (glob("$data/pg_wal/" . '[0-9A-F]' x 24))[0];
		$ledger->start_clients($seed++);
		my $until = time + 1.5;
		# (longer where the machine has other work, too)
		while (time < $until || ($round == 2 && -e $first && time < $until + 30))
		{
			$meanwhile->() if $meanwhile;
			sleep rand(0.05);
		}
		query('CHECKPOINT') if $round == 1;
		for (1 .. 50)
		{
			last if !$patiently || !-e $first;
			$meanwhile->();
			query('CHECKPOINT');
		}
		sleep rand(0.2);
		$ledger->kill_all or die;
		$ledger->wait_clients;
		ok(!-e $first, "$what, $round: old log has been removed");
		$node->start;
		is(join("\n", $ledger->verify), '', "$what, $round: nothing is lost");
		$ledger->settle;
	}
	return;
}

# dropped while it is nobody's, which it is but for moments
crash_and_verify('slot dropped', sub {
	$node->psql('postgres', q{SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'mot' AND NOT active});
});

# and a moment after the crash: nothing but it keeps the log then
query('CHECKPOINT; INSERT INTO twin_a VALUES (9001, 0, 0, $$a$$); INSERT INTO twin_b VALUES (9001, 0, 0, $$a$$)');
is(query(q{SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'mot'}), '1', 'it is made again');
$ledger->kill_all or die;
$node->start;
query(q{SELECT pg_drop_replication_slot('mot')});
query('CREATE TABLE filler AS SELECT repeat($$x$$, 1000) FROM generate_series(1, 20000); DROP TABLE filler; CHECKPOINT');
$ledger->kill_all or die;
$node->start;
is(query('SELECT t FROM twin_a WHERE k = 9001'), 'a', 'dropped right after a crash');
query('DELETE FROM twin_a WHERE k = 9001; DELETE FROM twin_b WHERE k = 9001');

# in use by somebody who receives log, and moves it as he does
my $seen = -s $node->logfile;
my $received = PostgreSQL::Test::Utils::tempdir();
my $receiver;
query('CHECKPOINT');
crash_and_verify('slot in use', sub {
	return if $receiver && $receiver->pumpable;
	$receiver->finish if $receiver;
	$receiver = IPC::Run::start([ 'pg_receivewal', '-D', $received, '-S', 'mot', '-s', '1', '--no-loop', '-h', $node->host, '-p', $node->port ], '<', \undef, '>&', \my $said);
}, 1);
$receiver->kill_kill;
like(slurp_file($node->logfile, $seen), qr/replication slot "mot" of memory-optimized tables is not available: another process uses it/, '... and the log says so');

# too short for what a checkpoint leaves behind; and less from one moment to the next
query(q{ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'; SELECT pg_reload_conf()});
crash_and_verify('slot cut short');
query('CREATE TABLE filler AS SELECT repeat($$x$$, 1000) FROM generate_series(1, 20000); DROP TABLE filler');
query(q{ALTER SYSTEM RESET max_slot_wal_keep_size; SELECT pg_reload_conf()});
query('INSERT INTO twin_a VALUES (9002, 0, 0, $$a$$); INSERT INTO twin_b VALUES (9002, 0, 0, $$a$$); CHECKPOINT; CHECKPOINT');
is(query(q{SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'mot'}), 'reserved', 'a slot that was cut short is mended');

# cut short while its log was kept: by a server that starts with another setting
query('CREATE TABLE filler AS SELECT repeat($$x$$, 1000) FROM generate_series(1, 20000)');
my $content = Ledger::content($node);
$ledger->kill_all or die;
$node->append_conf('postgresql.conf', "max_slot_wal_keep_size = '1MB'\n");
$node->start;
is(Ledger::content($node), $content, 'cut short by a restart: nothing is lost');
query('DROP TABLE filler; CHECKPOINT');
$content = Ledger::content($node);
$ledger->kill_all or die;
$node->start;
is(Ledger::content($node), $content, '... nor after the next crash');

# another one has its name
$node->append_conf('postgresql.conf', "max_slot_wal_keep_size = -1\nwal_level = logical\n");
$node->restart;
is(query('SELECT count(*) FROM pg_replication_slots'), '0', 'a clean stop gives back a slot of no use, too');
query(q{SELECT pg_create_logical_replication_slot('mot', 'pgoutput')});
$seen = -s $node->logfile;
# it keeps log, too, until it has come upon what checkpoints leave there for such slots
crash_and_verify('name taken', sub { $node->psql('postgres', q{SELECT pg_replication_slot_advance('mot', pg_current_wal_lsn())}) }, 1);
like(slurp_file($node->logfile, $seen), qr/replication slot "mot" of memory-optimized tables is not available: a logical slot has its name/, '... and the log says so');
query(q{SELECT pg_drop_replication_slot('mot')});

# not possible; as on any server with these settings, no definition goes without
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\nmax_replication_slots = 0\n");
$node->restart;
crash_and_verify('wal_level = minimal');
is(query('SELECT count(*) FROM pg_replication_slots'), '0', '... without a slot');
$content = Ledger::content($node);
$node->restart;
is(Ledger::content($node), $content, '... nor is anything lost in a clean restart');
$node->stop;
done_testing();
