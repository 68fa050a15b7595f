# The disk is full: a checkpoint of MOT tables fails, says so, keeps the last
# good one and succeeds when there is room again; the log's disk full is what
# it is for heap tables, and nothing acknowledged is lost.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $small = $ENV{MOT_SMALL_DISK} && "$ENV{MOT_SMALL_DISK}/durability_disk";
plan skip_all => 'no small disk: only root, with the right to mount, gets one' unless $small;

sub fill_up
{
	my ($leave) = @_;
	my ($free) = (split /\n/, `df --output=avail -B1 $small`)[1] =~ /(\d+)/;
	open(my $fh, '>', "$small/ballast") or die;
	my $block = 'x' x 65536;
	for (my $n = $free - $leave; $n > 0; $n -= 65536)
	{
		print $fh $block;
	}
	close $fh;
	return;
}

sub make_room { unlink "$small/ballast" or die }

my $ledger = Ledger->new(name => 'disk', conf => "log_min_messages = warning\n");
my $node = $ledger->node;
my $engine = $ledger->{engine};
my $data = $node->data_dir;

# checkpoints
if ($engine eq 'mot')
{
	mkdir "$small/mot" or die;
	symlink("$small/mot", "$data/mot") or die;
	$ledger->begin;
	$node->safe_psql('postgres', "CREATE TABLE large (i int PRIMARY KEY, t text) USING $engine;
		INSERT INTO large SELECT i, repeat('x', 100) FROM generate_series(1, 10000) i; CHECKPOINT");
	my $good = $node->safe_psql('postgres', 'SELECT checkpoint_lsn FROM mot_stat_checkpoint');
	isnt($good, '', 'a checkpoint');
	$node->safe_psql('postgres', "INSERT INTO large SELECT i, repeat('y', 1000) FROM generate_series(20001, 40000) i");
	fill_up(4 * 1024 * 1024);
	$ledger->start_clients(1);
	sleep 0.3;
	my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '10s'; CHECKPOINT");
	ok($node->poll_query_until('postgres', 'SELECT failed > 0 FROM mot_stat_checkpoint'), 'the disk is full: the checkpoint fails');
	like($node->safe_psql('postgres', 'SELECT last_error FROM mot_stat_checkpoint'), qr/No space left on device/, '... and the view says why');
	like(slurp_file($node->logfile), qr/(?:ERROR|WARNING|LOG):.*No space left on device/, '... and so does the log');
	is($node->safe_psql('postgres', 'SELECT checkpoint_lsn FROM mot_stat_checkpoint'), $good, 'the last good one is kept');
	sleep 0.3;
	$ledger->kill_all or die;
	$ledger->wait_clients;
	$node->start;
	is(join("\n", $ledger->verify), '', 'clients have gone on, and nothing is lost in a crash');
	is($node->safe_psql('postgres', 'SELECT count(*), sum(length(t)) FROM large'), '30000|21000000', '... at all');
	($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '10s'; CHECKPOINT");
	ok($node->poll_query_until('postgres', 'SELECT failed > 0 FROM mot_stat_checkpoint'), 'the disk is still full');
	make_room();
	ok( $node->poll_query_until('postgres', "SELECT checkpoint_lsn > '$good' FROM mot_stat_checkpoint"),
		'with room, a checkpoint succeeds by itself');
	$node->safe_psql('postgres', 'CHECKPOINT');
	is(scalar(grep { /\.tmp/ } glob("$small/mot/*")), 0, '... and nothing half done is left');
	$node->restart;
	is(join("\n", $ledger->verify), '', '... and is good');
	$node->stop;
	system('rm', '-rf', "$small/mot");
}

# the log
$ledger = Ledger->new(name => 'log', initdb => [ "--waldir=$small/wal", '--wal-segsize=4' ],
	conf => "wal_recycle = off\nmin_wal_size = '8MB'\nmax_wal_size = '16MB'\nrestart_after_crash = off\n");
$node = $ledger->node;
$ledger->begin;
fill_up(6 * 1024 * 1024);
$ledger->start_clients(2);
ok($ledger->wait_death($PostgreSQL::Test::Utils::timeout_default), 'the disk of the log is full: the server stops, as it does with heap tables');
$ledger->wait_clients;
like(slurp_file($node->logfile), qr/PANIC:.*No space left on device/, '... with a PANIC');
make_room();
$node->start;
is(join("\n", $ledger->verify), '', 'with room it recovers, and nothing acknowledged is missing');
$ledger->settle;
$ledger->start_clients(3);
sleep 0.5;
$ledger->kill_all or die;
$ledger->wait_clients;
$node->start;
is(join("\n", $ledger->verify), '', '... and it goes on');
$node->stop;
done_testing();
