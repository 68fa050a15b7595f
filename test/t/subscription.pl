# Memory-optimized tables on both ends of a subscription: the initial copy is of
# the moment at which the slot's changes begin, while others write, and nothing is
# applied twice or lost when either end is killed.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $clients = 3;

sub make_node
{
	my ($name, $level) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 'logical');
	$node->append_conf(
		'postgresql.conf', qq{
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
autovacuum = off
wal_level = $level
max_logical_replication_workers = 12
max_sync_workers_per_subscription = 2
max_worker_processes = 24
wal_retrieve_retry_interval = '100ms'
});
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION mot');
	return $node;
}

my $publisher = make_node('publisher', 'logical');
my $subscriber = make_node('subscriber', 'replica');

# "once" has no key: what is applied twice is there twice
my $tables = '';
for my $there ('heap', 'mot')
{
	for my $here ('heap', 'mot')
	{
		$tables .= "CREATE TABLE ${here}_${there}_once (client int, n int) USING THIS;" =~ s/THIS/$here-$there/r;
		$tables .= "CREATE TABLE ${here}_${there}_sum (id int PRIMARY KEY, v bigint) USING $here-$there;";
	}
}
$publisher->safe_psql('postgres', $tables =~ s/USING (\w+)-(\w+)/USING $1/gr);
$subscriber->safe_psql('postgres', $tables =~ s/USING (\w+)-(\w+)/USING $2/gr);
my @names = map { my $here = $_; map { "${here}_$_" } 'heap', 'mot' } 'heap', 'mot';
my @sums = map { "${_}_sum" } @names;
$publisher->safe_psql('postgres', join(';', map { "INSERT INTO $_ SELECT i, 0 FROM generate_series(1, 200) i; ALTER TABLE $_ REPLICA IDENTITY FULL" } @sums));
$publisher->safe_psql('postgres', 'CREATE SEQUENCE s; CREATE PUBLICATION pub FOR ALL TABLES');

# rows of all tables in one transaction, and of one that is memory-optimized on both ends
my $script = $publisher->basedir . '/load.sql';
append_to_file(
	$script, q{
\set id random(1, 200)
\set v random(1, 9)
\set alone random(0, 1)
} . join('', map { my ($all, $names) = @$_; ($all ? "\\if :alone\n" : "\\else\n") . "BEGIN;\n" . join('', map { "INSERT INTO ${_}_once VALUES (:client_id, :v);\nUPDATE ${_}_sum SET v = v + :v WHERE id = :id;\n" } @$names) . "COMMIT;\n" }
		[ 1, [@names] ], [ 0, ['mot_mot'] ]) . "\\endif\n");

sub load
{
	my ($seconds) = @_;
	return IPC::Run::start(
		[ 'pgbench', '-n', '-c', $clients, '-j', 1, '-T', $seconds, '--max-tries=1000', '-f', $script, '-h', $publisher->host, '-p', $publisher->port, 'postgres' ],
		'>', '/dev/null', '2>', '/dev/null');
}

sub states { return $_[0]->safe_psql('postgres', join(' UNION ALL ', map { "SELECT '${_}', (SELECT count(*) || ' ' || coalesce(sum(n), 0) || ' ' || (SELECT sum(v) FROM ${_}_sum) FROM ${_}_once)" } @names) . ' ORDER BY 1') }

sub same
{
	my ($name) = @_;
	$publisher->wait_for_catchup('sub');
	is(states($subscriber), states($publisher), $name);
}

my $connstr = $publisher->connstr . ' dbname=postgres';
$connstr =~ s/'//g;
my $log = -s $subscriber->logfile;
for my $round (1 .. 4)
{
	my $load = load(6);
	sleep 1;
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connstr' PUBLICATION pub");
	$subscriber->poll_query_until('postgres', "SELECT count(*) = 8 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel") or die 'not copied';
	$load->finish;
	same("initial copy beside writers, round $round");
	last if $round == 4;
	$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION sub; TRUNCATE ' . join(', ', map { ("${_}_once", "${_}_sum") } @names));
}
unlike(slurp_file($subscriber->logfile, $log), qr/duplicate key|could not serialize/, 'the copies fit at once');
cmp_ok($publisher->safe_psql('postgres', 'SELECT count(*) FROM mot_mot_once'), '>', 100, 'there were writers');

# what has been applied is known to be, also of memory-optimized tables alone
my $begin = $publisher->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$publisher->safe_psql('postgres', 'INSERT INTO mot_mot_once VALUES (0, 1)');
$publisher->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', "SELECT bool_or(remote_lsn > '$begin') FROM pg_replication_origin_status"), 't',
	'progress of a transaction of memory-optimized tables alone');

for my $round (1 .. 3)
{
	my $load = load(6);
	sleep 2;
	$subscriber->stop('immediate');
	$subscriber->start;
	sleep 1;
	$subscriber->stop('immediate');
	$subscriber->start;
	$load->finish;
	same("subscriber killed, round $round");
}
my $load = load(20);
sleep 2;
$publisher->stop('immediate');
$load->finish;
$publisher->start;
same('publisher killed');

$subscriber->stop;
$publisher->stop;
done_testing();
