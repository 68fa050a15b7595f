# TPC-C on memory-optimized tables, and with some of its tables on heap: at
# every isolation level, as procedures and as a client sends it, nothing fails
# but what may be tried again, and the conditions of consistency hold beside
# the writers, after them, and after crashes.  The load is bench/sql/tpcc.

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

my $bench = "$FindBin::Bin/../../bench";
my $sql = "$bench/sql/tpcc";
my $seconds = $ENV{SECONDS_EACH} || 2;
my $crashes = $ENV{CRASHES} || 3;
my %size = (warehouses => $ENV{WAREHOUSES} || 2, items => 3000, customers => 60);
my @size = map { ('-D', "$_=$size{$_}") } sort keys %size;

# which tables are heap tables; the others are foreign tables, or by mot.default_engine ordinary
# ones, which have all foreign keys of the schema, among them and to heap tables
my %databases = (mot => '', mixed => 'history|orders', halves => 'stock|customer|new_order|warehouse');

# statements compile at once, after some executions as by default, and never
my %settings = (
	mot => '',
	mixed => 'ALTER DATABASE mixed SET mot.jit_prepare_above_executions = 0; ALTER DATABASE mixed SET mot.jit_above_executions = 5;',
	halves => 'ALTER DATABASE halves SET mot.jit = off;');

my $node = PostgreSQL::Test::Cluster->new('tpcc');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '512MB'
shared_buffers = 64MB
max_connections = 50
deadlock_timeout = 20ms
});
$node->start;

my $scripts = "$PostgreSQL::Test::Utils::tmp_check/tpcc_scripts";
system_or_bail("$bench/tpcc-scripts", $scripts);

# beside the writers: no statement sees a state that is not consistent
append_to_file("$scripts/check.sql",
	"SELECT 1 / (sum(violations) = 0)::integer FROM tpcc_check();\n");

my %weights = (new_order => 45, payment => 43, order_status => 4, delivery => 6, stock_level => 4);
my @load = map {
	my $form = $_;
	map { ('-f', "$scripts/$form/$_.sql\@$weights{$_}") } sort keys %weights
} 'procedures', 'client';

for my $db (sort keys %databases)
{
	my $schema = slurp_file("$sql/schema.sql");
	$schema =~ s/^(CREATE TABLE (?:$databases{$db}) .*?^\));/$1 USING heap;/gms if $databases{$db};
	$schema =~ s/^CREATE (TABLE .*?^\));/CREATE FOREIGN $1 SERVER mot_server;/gms if $db eq 'mot';
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, "CREATE EXTENSION mot; $settings{$db} SET mot.default_engine = 'mot'; $schema");
	is($node->safe_psql($db, q{SELECT string_agg(c.relname, '|' ORDER BY c.relname) FROM pg_class c JOIN pg_am a ON a.oid = relam
		WHERE amname = 'heap' AND relkind = 'r' AND relnamespace = 'public'::regnamespace}),
		join('|', sort split(/\|/, $databases{$db})), "heap tables of $db");
	command_ok(
		[ 'psql', '-X', '-q', '-o', '/dev/null', '-v', 'ON_ERROR_STOP=1', map({ ('-v', "$_=$size{$_}") } keys %size),
			map({ ('-f', "$sql/$_.sql") } 'load', 'procedures', 'check', $db eq 'mot' ? () : 'keys'), $node->connstr($db) ],
		"loaded $db");
}

# what does not hold
sub wrong
{
	my ($db) = @_;
	return $node->safe_psql($db, 'SELECT * FROM tpcc_check() WHERE violations > 0');
}

sub orders { return $node->safe_psql($_[0], 'SELECT count(*) FROM orders') }

for my $db (sort keys %databases)
{
	is(wrong($db), '', "$db is consistent as loaded");
	for my $level ('read committed', 'repeatable read', 'serializable')
	{
		my $before = orders($db);
		local $ENV{PGOPTIONS} = '-c default_transaction_isolation=' . ($level =~ s/ /\\ /r);
		my ($out, $err);
		my $done = IPC::Run::run(
			[ 'pgbench', '-n', '-M', 'prepared', '-c', 6, '-j', 2, '-T', $seconds, '--max-tries=10000', '--failures-detailed',
				@size, @load, '-f', "$scripts/check.sql\@2", $node->connstr($db) ],
			'>', \$out, '2>', \$err);
		ok($done && $err !~ /error|aborted/i && $out =~ /^number of failed transactions: 0 /m,
			"$db at $level: nothing fails but what may be tried again")
		  or diag("$out$err");
		note("$db at $level: $1; $2")
		  if $out =~ /^(number of transactions actually processed: \d+)\n(?:.*\n)*?(total number of retries: \d+)$/m;
		cmp_ok(orders($db), '>', $before, "$db at $level: something was ordered");
		is(wrong($db), '', "$db at $level: consistent");
	}
}

# everything dies under load, at each level, with or without a checkpoint before, and comes back
my $server = bless { node => $node }, 'Ledger';
for my $crash (1 .. $crashes)
{
	my @clients;
	my $level = ('read committed', 'repeatable read', 'serializable')[($crash - 1) % 3];
	local $ENV{PGOPTIONS} = '-c default_transaction_isolation=' . ($level =~ s/ /\\ /r);
	my %before = map { $_ => orders($_) } keys %databases;
	for my $db (sort keys %databases)
	{
		my $pid = fork;
		die unless defined $pid;
		if ($pid == 0)
		{
			open(STDOUT, '>', '/dev/null');
			open(STDERR, '>', '/dev/null');
			exec('pgbench', '-n', '-M', 'prepared', '-c', 3, '-T', 60, '--max-tries=10000', @size, @load, $node->connstr($db))
			  or POSIX::_exit(127);
		}
		push @clients, $pid;
	}
	# (until all of them are at work)
	for (1 .. 600)
	{
		last unless grep { orders($_) <= $before{$_} } keys %databases;
		sleep 0.1;
	}
	sleep rand(1);
	$node->safe_psql('postgres', 'CHECKPOINT') if $crash % 2;
	sleep rand(0.5) if $crash % 2;
	$server->kill_all or die 'processes do not die';
	waitpid($_, 0) for @clients;
	$node->start;
	for my $db (sort keys %databases)
	{
		is(wrong($db), '', "crash $crash at $level: $db is consistent");
		cmp_ok(orders($db), '>', $before{$db}, "crash $crash at $level: $db kept what was ordered");
	}
}

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'no process failed by itself');
$node->stop;
done_testing();
