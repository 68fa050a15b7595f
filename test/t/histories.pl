# What concurrent clients saw (test/history), with crashes, on a standby, and
# when a standby takes over: judged by test/history/checker.py.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $scripts = "$FindBin::Bin/../history";
my $python = '/usr/bin/python3';    # Debian's, which has psycopg2
$ENV{PYTHONDONTWRITEBYTECODE} = 1;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
wal_keep_size = '64MB'
wal_writer_delay = 200ms
max_prepared_transactions = 10
restart_after_crash = on
});
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION mot');

# options of workload.py and level and place; the server may be another process afterwards
sub history
{
	my ($what, $place, $level, $seconds, @options) = @_;
	my $file = $primary->basedir . "/$place-$level.json";
	local $ENV{PGDATA} = $primary->data_dir;
	local $ENV{CLUSTER_LOG} = $primary->logfile;
	local $ENV{PGHOST} = $primary->host;
	local $ENV{PGPORT} = $primary->port;
	local $ENV{PGDATABASE} = 'postgres';
	my ($out, $err);
	my $ran = IPC::Run::run(
		[ $python, "$scripts/workload.py", '--place', $place, '--level', $level, '--seconds', $seconds, '--clients', 5, '--seed', int($ENV{SEED} || 1), @options, $file ],
		'>', \$out, '2>&1');
	diag("$what: $out");
	ok($ran, "$what: clients on $place tables at $level");
	$ran = IPC::Run::run([ $python, "$scripts/checker.py", $file ], '>', \$out, '2>&1');
	is($out, '', '... saw what they may see');
	ok($ran, '... says the checker');
	return;
}

# -------------------------------------------------------------------- crashes

history('crashes', 'mixed', 'ser', 5, '--crash', 'any');
history('crashes', 'table', 'rc', 5, '--crash', 'any');
history('crashes that lose commits', 'mixed', 'rr', 5, '--crash', 'any', '--async');
$primary->_update_pid(1);

# ------------------------------------------------------ compiled procedures

history('compiled procedures', 'mixed', 'rc', 4, '--procedures', '--prepare');
history('compiled procedures, and crashes', 'table', 'rc', 4, '--procedures', '--crash', 'any');
history('compiled procedures', 'mixed', 'ser', 2, '--procedures');
$primary->_update_pid(1);

# ------------------------------------------------------- commits that wait

history('commits that wait', 'mixed', 'ser', 4, '--stall', '--clients', 8);
history('commits that wait', 'table', 'ser', 4, '--stall', '--clients', 8);
history('commits that wait', 'mixed', 'rr', 2, '--stall', '--clients', 8);
$primary->_update_pid(1);

# ------------------------------------------------------------------ a standby

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
my $there = $standby->connstr('postgres');

history('a standby', 'mixed', 'rc', 2, '--standby', $there);
history('a standby', 'table', 'rr', 2, '--standby', $there);
history('a standby', 'foreign', 'rr', 2, '--standby', $there);
history('a standby, and crashes', 'mixed', 'rr', 4, '--standby', $there, '--crash', 'immediate');
$ENV{STANDBY_DATA} = $standby->data_dir;
history('a standby that is promoted', 'mixed', 'ser', 5, '--standby', $there, '--failover', $there);

# the tests killed on purpose, but nothing else went wrong
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal (?!9)/, $_->name . "'s log is clean") foreach $primary, $standby;
$primary->_update_pid(0);
$standby->stop;
done_testing();
