# A client that sends ahead, and stops in the middle of a message: it holds up no
# standby's replay, and no longer than its transaction_timeout (17) a transaction.

use strict;
use warnings;

use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = 256MB
max_standby_streaming_delay = 1s
log_statement = none
});
$primary->start;
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE hot (id int PRIMARY KEY, v int) USING mot;
	INSERT INTO hot SELECT i, 0 FROM generate_series(1, 10) i});
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay');

sub message { return $_[0] . pack('N', 4 + length $_[1]) . $_[1]; }

sub until_ready
{
	my ($client) = @_;
	for (my $type = ''; $type ne 'Z';)
	{
		my ($head, $body) = ('', '');
		$client->read($head, 5) == 5 or die 'the connection has gone';
		($type, my $length) = unpack('a N', $head);
		$client->read($body, $length - 4);
	}
	return;
}

# executes a statement some times, and half of one time more
sub stopped
{
	my ($node, $statement, $settings) = @_;
	my $client = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die "no connection: $!";
	my %start = (
		user => $node->safe_psql('postgres', 'SELECT current_user'),
		database => 'postgres',
		options => "-c jit=off -c plan_cache_mode=force_generic_plan -c mot.jit_prepare_above_executions=0 $settings");
	my $once = message('B', "\0s\0" . pack('n n N a n', 0, 1, 1, '1', 0)) . message('E', "\0\0\0\0\0");

	my $body = pack('N', 196608) . join('', map { "$_\0" } %start) . "\0";
	$client->print(pack('N', 4 + length $body) . $body);
	$client->flush;
	until_ready($client);
	for (1 .. 3)
	{
		$client->print($_ == 1 ? message('P', "s\0$statement\0\0\0") : '', $once, message('S', ''));
		$client->flush;
		until_ready($client);
	}
	$client->print($once x 3, substr($once, 0, 15));
	$client->flush;
	return $client;
}

my $client = stopped($standby, 'SELECT v FROM hot WHERE id = $1', '');
ok( $standby->poll_query_until(
		'postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'hot'::regclass AND pid <> pg_backend_pid()}),
	'a client of the standby has read, and stops in the middle of a message');
$primary->safe_psql('postgres', 'ALTER TABLE hot ADD COLUMN more int');
my $there = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
ok($standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$there'"), 'replay goes on without it');

SKIP:
{
	skip 'there is no transaction_timeout', 1 if $primary->pg_version < 17;
	my $updater = stopped($primary, 'UPDATE hot SET v = v + 1 WHERE id = $1', '-c transaction_timeout=2s');
	ok( $primary->poll_query_until(
			'postgres', q{SELECT count(*) = 0 FROM pg_locks WHERE relation = 'hot'::regclass AND pid <> pg_backend_pid()}),
		'a transaction ends in time');
}

done_testing();
