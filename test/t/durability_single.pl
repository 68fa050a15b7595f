# A server in single-user mode: it has none of our workers, so memory-optimized
# tables cannot be used there; but it recovers from a crash as any, and leaves
# everything to the next start.  pg_rewind relies on that when the old primary
# has crashed.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $ledger = Ledger->new(name => 'main', writers => 3, conf => "wal_log_hints = on\nwal_keep_size = '512MB'\n");
my $node = $ledger->node;
my $data = $node->data_dir;
$ledger->begin;
$node->backup('base');

# what it prints
sub single
{
	my ($sql, $data) = @_;
	my ($out, $err);
	$data //= $node->data_dir;
	IPC::Run::run([ 'postgres', '--single', '-F', '-D', $data, '-c', 'log_min_messages=warning', 'postgres' ], '<', \"$sql\n", '>', \$out, '2>', \$err);
	return $out . $err;
}

# ------------------------------------------------------ after a crash

$ledger->start_clients(1);
sleep 1;
$ledger->kill_all or die;
$ledger->wait_clients;
my $said = single('SELECT count(*) FROM noted');
like($said, qr/count = /, 'single-user mode after a crash: heap tables');
unlike($said, qr/PANIC|TRAP|FATAL/, '... in peace');
like(single('SELECT count(*) FROM twin_a'), qr/ERROR:  memory-optimized tables cannot be used in single-user mode/, '... memory-optimized tables, no');
like(single("INSERT INTO twin_a VALUES (1, 1, 1, 'x')"), qr/ERROR:  memory-optimized tables cannot be used in single-user mode/, '... nor changed');
like(single('CREATE FOREIGN TABLE single (i int) SERVER mot_server'), qr/ERROR:  memory-optimized tables cannot be /, '... nor made');
# several of its checkpoints, that wait for nobody, and log of others
unlike(single("CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 30000); CHECKPOINT; DROP TABLE filler; CHECKPOINT") . single('VACUUM'), qr/PANIC|TRAP|FATAL|ERROR/, '... checkpoints');
$node->start;
is(join("\n", $ledger->verify), '', 'started again nothing is lost');
$ledger->settle;

# ---------------------------------------------------- after a clean stop

my $content = Ledger::content($node);
$node->stop;
unlike(single("CREATE TABLE of_single AS SELECT 1 AS i; CHECKPOINT"), qr/PANIC|TRAP|FATAL|ERROR/, 'single-user mode after a clean stop');
$node->start;
$node->safe_psql('postgres', 'DROP TABLE of_single');
is(Ledger::content($node), $content, '... leaves everything as it was');

# ------------------------------------------- with nothing that keeps log

my $alone = PostgreSQL::Test::Cluster->new('alone');
$alone->init(extra => ['--wal-segsize=1']);
$alone->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
min_wal_size = '2MB'
max_wal_size = '4MB'
wal_recycle = off
});
$alone->start;
$alone->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE t (id int PRIMARY KEY) SERVER mot_server;
	INSERT INTO t VALUES (1);
	CHECKPOINT;
	INSERT INTO t VALUES (2);
});
$alone->stop('immediate');
my $filler = q{CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 30000); CHECKPOINT; DROP TABLE filler; CHECKPOINT};
for my $round (1 .. 2)
{
	unlike(single($filler, $alone->data_dir), qr/PANIC|TRAP|FATAL|ERROR/, "without a slot, $round: single-user mode");
}
$alone->start;
is($alone->safe_psql('postgres', 'SELECT sum(id) FROM t'), '3', '... and the next start');
$alone->safe_psql('postgres', 'INSERT INTO t VALUES (3)');
$alone->stop('immediate');
$alone->start;
is($alone->safe_psql('postgres', 'SELECT sum(id) FROM t'), '6', '... and a crash');
$alone->stop;

# --------------------------------------- an old primary that has crashed

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay');
$standby->stop;
# the standby does not see any of this
$ledger->start_clients(2);
sleep 0.7;
$ledger->kill_all or die;
$ledger->wait_clients;
$standby->start;
$standby->promote;
$standby->safe_psql('postgres', "INSERT INTO twin_a VALUES (7000, 0, 0, 'new'); INSERT INTO twin_b VALUES (7000, 0, 0, 'new'); CHECKPOINT");
command_ok(
	[ 'pg_rewind', '--source-server', $standby->connstr('postgres'), '--target-pgdata', $data, '--config-file', "$data/postgresql.conf" ],
	'pg_rewind of a primary that has crashed');
$node->append_conf('postgresql.conf', 'port = ' . $node->port . "\nunix_socket_directories = '" . $node->host . "'\nprimary_conninfo = '" . $standby->connstr . "'\n");
$node->set_standby_mode;
$node->start;
$standby->safe_psql('postgres', "INSERT INTO twin_a VALUES (7001, 0, 0, 'after'); INSERT INTO twin_b VALUES (7001, 0, 0, 'after')");
$standby->wait_for_catchup($node, 'replay');
is(Ledger::content($node), Ledger::content($standby), 'the rewound server has what the new primary has');
is(join("\n", $ledger->verify_content($node)), '', '... in order');
$node->stop;
$standby->stop;
done_testing();
