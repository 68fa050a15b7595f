# Whoever keeps a snapshot and is idle is reading nothing: what failed statements
# of others took is back beside him, index entries included.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('idle');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE t (id int PRIMARY KEY, a int, b text) SERVER mot_server;
	CREATE INDEX t_a ON t (a);
	CREATE INDEX t_b ON t (b);
	INSERT INTO t SELECT i, i, 'row ' || i FROM generate_series(1, 1000) i});

# reclaimed are 100 and more at a time, so a few may be left
my $retired = 'SELECT retired_objects FROM mot_stat_memory';

sub used
{
	return $node->safe_psql('postgres', "SELECT row_bytes + index_bytes FROM mot_stat_tables WHERE relname = 't'");
}

sub fail_statements
{
	my ($ret, $out, $err) = $node->psql('postgres', q{INSERT INTO t SELECT i, i, 'row ' || i FROM generate_series(40000, 1000, -1) i});
	like($err, qr/duplicate key/, '... a large INSERT fails');
	$node->safe_psql('postgres', q{BEGIN; UPDATE t SET a = -a, b = b || 'x'; DELETE FROM t WHERE id % 2 = 0; ROLLBACK});
}

# once, so that pages that stay are there
fail_statements();
ok($node->poll_query_until('postgres', "SELECT ($retired) < 100"), 'nobody reads: all is back');
my $used = used();

for ([ 'REPEATABLE READ', 'a scan', 'SELECT sum(a) FROM t' ],
	[ 'REPEATABLE READ', 'an index', 'SET LOCAL enable_seqscan = off; SELECT sum(a) FROM t WHERE id BETWEEN 1 AND 1000' ],
	[ 'REPEATABLE READ', 'look-ups', 'SELECT sum(a) FROM t WHERE id IN (1, 2, 3, 4, 5, 6, 7, 8) OR id > 8' ],
	[ 'REPEATABLE READ', 'a join', 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SELECT sum(t.a) FROM t JOIN generate_series(1, 1000) i ON t.id = i' ],
	[ 'REPEATABLE READ', 'a change', 'UPDATE t SET a = a WHERE id = 7; SELECT sum(a) FROM t' ],
	[ 'REPEATABLE READ', 'a cursor', 'DECLARE c CURSOR FOR SELECT a FROM t; MOVE 10 FROM c; SELECT sum(a) FROM t' ],
	[ 'READ COMMITTED', 'a cursor', 'DECLARE c CURSOR FOR SELECT a FROM t; MOVE 10 FROM c; SELECT sum(a) FROM t' ])
{
	my ($level, $what, $sql) = @$_;
	my $session = $node->background_psql('postgres');

	$session->query_safe("BEGIN ISOLATION LEVEL $level");
	is($session->query_safe($sql), '500500', "$level, $what");
	fail_statements();
	ok($node->poll_query_until('postgres', "SELECT ($retired) < 100"), '... what it had made is gone while the session is idle');
	# (a process that ends leaves pages that are not full)
	cmp_ok(used(), '<', $used + 1000000, '... and takes no memory');
	# and what the session sees stays, and is found
	$node->safe_psql('postgres', q{DELETE FROM t WHERE id > 500 AND id <> 7; SELECT pg_sleep(0.1)});
	is($session->query_safe(q{SELECT count(*) FROM t}), $level eq 'READ COMMITTED' ? '500' : '1000', '... which sees what it saw');
	is($session->query_safe(q{SET LOCAL enable_seqscan = off; SELECT a FROM t WHERE a = 900}), $level eq 'READ COMMITTED' ? '' : '900', '... in an index, too');
	is($session->query_safe(q{MOVE ALL FROM c}) // '', '', '... and to the end of its cursor') if $what eq 'a cursor';
	$session->query_safe('COMMIT');
	$session->quit;
	$node->safe_psql('postgres', q{INSERT INTO t SELECT i, i, 'row ' || i FROM generate_series(501, 1000) i});
	ok($node->poll_query_until('postgres', "SELECT ($retired) < 100"), '... when it has ended all is back');
	$used = used();
	is($node->safe_psql('postgres', q{SELECT sum(problems) FROM mot_verify('t')}), '0', '... and nothing is amiss');
}
$node->stop;
done_testing();
