# Memory is full of many small tables, none of which is worth much: the server goes on
# without some of them, in replay as in recovery, made one by one or all by one
# transaction.  And a transaction of both kinds that only a query on a standby
# finds committed, while its primary is idle, has room made for it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $tables = 400;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
checkpoint_timeout = 1h
wal_keep_size = '1GB'
max_locks_per_transaction = 500
shared_preload_libraries = 'mot'
mot.max_memory = '384MB'
mot.load_workers = 2
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE TABLE heap (a int)');
$node->backup('empty');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'empty', has_streaming => 1);
$standby->append_conf('postgresql.conf', "mot.max_memory = '64MB'\n");
$standby->start;

sub make
{
	my ($from, $commit) = @_;
	$node->safe_psql('postgres', qq{DO \$\$ BEGIN FOR i IN $from + 1 .. $from + $tables LOOP
		EXECUTE format('CREATE FOREIGN TABLE t%s (id int PRIMARY KEY, filler text) SERVER mot_server', i);
		EXECUTE format('INSERT INTO t%s SELECT i, repeat(''x'', 300) FROM generate_series(1, 450) i', i);
		$commit
		END LOOP; END \$\$});
	return;
}

# what is there is whole; and how much that is
sub there
{
	my ($where, $upto) = @_;
	$where->poll_query_until('postgres', q{SELECT state = 'ready' FROM mot_stat_recovery}) or die 'not loaded';
	# whoever reads first may have a last transaction to apply
	$where->psql('postgres', 'SELECT count(*) FROM t1');
	my $out = $where->safe_psql('postgres', 'SELECT tab::text FROM mot_stat_left_out');
	my %out = map { $_ => 1 } split /\n/, $out;
	my @here = grep { !$out{"t$_"} } 1 .. $upto;
	my $rows = $where->safe_psql('postgres', 'SELECT sum(n) FROM (' . join(' UNION ALL ', map { "SELECT count(*) AS n FROM t$_ WHERE length(filler) = 300" } @here) . ') x');
	is($rows, 450 * @here, '... those that are there are whole');
	return scalar(@here);
}

make(0, 'COMMIT;');
$node->wait_for_catchup($standby);
my $here = there($standby, $tables);
cmp_ok($here, '<', $tables, 'a standby goes on without some of many small tables');
cmp_ok($here, '>', $tables / 4, '... and with the others');

make($tables, '');
$node->wait_for_catchup($standby);
# (more goes at a time than would do, and comes back by and by)
ok($standby->poll_query_until('postgres', "SELECT count(*) < 2 * $tables - $tables / 4 FROM mot_stat_left_out"), 'also if one transaction makes them');
there($standby, 2 * $tables);

# the primary is idle when this is replayed, and has said nothing of ours since
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE grown (id int PRIMARY KEY, filler text) SERVER mot_server; INSERT INTO grown VALUES (0, NULL)');
$node->safe_psql('postgres', q{BEGIN; INSERT INTO grown SELECT i, repeat('y', 1000) FROM generate_series(1, 40000) i; INSERT INTO heap VALUES (1); COMMIT});
$node->wait_for_catchup($standby);
my ($first) = $standby->safe_psql('postgres', "SELECT 't' || i FROM generate_series(1, 2 * $tables) i EXCEPT SELECT tab::text FROM mot_stat_left_out LIMIT 1");
my ($ret, $out, $err) = $standby->psql('postgres', "SELECT count(*) FROM $first");
unlike($err, qr/memory for memory-optimized tables is full/, 'a query that finds a transaction committed has room made for it, while its primary is idle');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM heap'), '1', '... and sees both halves');
there($standby, 2 * $tables);

# less memory after a crash
$node->stop('immediate');
$node->append_conf('postgresql.conf', "mot.max_memory = '64MB'\n");
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM heap'), '1', 'with less memory the server starts');
$here = there($node, 2 * $tables);
cmp_ok($here, '>', $tables / 4, '... with what fits');
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop;
$standby->stop;
$node->append_conf('postgresql.conf', "mot.max_memory = '384MB'\n");
$node->start;
is(there($node, 2 * $tables), 2 * $tables, 'with more memory all are back');
$node->stop;
done_testing();
