# Commits that nobody waits for become durable soon, whoever tells the server
# of them: themselves, or under load the maintenance worker.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

# with wal_level = minimal nobody else has a reason to flush a page that is not full
my $node = PostgreSQL::Test::Cluster->new('async');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
autovacuum = off
wal_level = minimal
max_wal_senders = 0
synchronous_commit = off
wal_writer_delay = 200ms
CONF
$node->start;

$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION mot;
CREATE FOREIGN TABLE t (id int PRIMARY KEY, a int) SERVER mot_server;
INSERT INTO t VALUES (1, 0);
CREATE PROCEDURE burst(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		UPDATE t SET a = a + 1 WHERE id = 1;
		COMMIT;
	END LOOP;
END $$;
SQL

my $done = 0;

# commit n times; how long until the last one is durable?
sub burst
{
	my ($n) = @_;

	# after a record that ends with its page the next one's place is told, behind
	# that page's header; nothing of the page has to be flushed for the record
	my $lsn = $node->safe_psql('postgres', "CALL burst($n);" . q{
		SELECT CASE WHEN (l - '0/0') % size = 40 THEN l - 40
			WHEN (l - '0/0') % 8192 = 24 THEN l - 24
			ELSE l END
		FROM pg_current_wal_insert_lsn() l,
			(SELECT setting::numeric FROM pg_settings WHERE name = 'wal_segment_size') s(size)});
	my $start = time;
	$done += $n;
	until ($node->safe_psql('postgres', "SELECT pg_current_wal_flush_lsn() >= '$lsn'") eq 't')
	{
		return 1000 if time - $start > 20;
		usleep(20_000);
	}
	return time - $start;
}

sub slowest
{
	my ($times, $n) = @_;
	my $max = 0;
	for (1 .. $times)
	{
		my $t = burst($n);
		$max = $t if $t > $max;
	}
	note("at most $max s");
	return $max;
}

# three times wal_writer_delay and a quarter of it, and time for a slow machine
my $bound = 5;

cmp_ok(slowest(3, 1), '<', $bound, 'single commits');
cmp_ok(slowest(15, 500), '<', $bound, 'many commits');
cmp_ok(slowest(3, 1), '<', $bound, 'single commits after many');

$node->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'mot maintenance'});
cmp_ok(slowest(5, 500), '<', $bound, 'many commits while the worker is away');
cmp_ok(slowest(15, 500), '<', $bound, 'many commits when it is back');

# a page's worth of log after page's worth, without anybody else
cmp_ok(slowest(2, 20_000), '<', $bound, 'very many commits');

$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT a FROM t'), $done, 'what was durable is there after a crash');
$node->stop;

done_testing();
