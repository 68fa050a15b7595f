# What a server held within mot.max_memory comes back within it: after a crash
# at the brim, and on a standby of the same size.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $memory = 64;

sub new_server
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => $params{streaming} ? 1 : 0);
	$node->append_conf(
		'postgresql.conf', qq{
autovacuum = off
fsync = off
checkpoint_timeout = 1h
shared_preload_libraries = 'mot'
mot.max_memory = '${memory}MB'
mot.load_workers = 2
});
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION mot');
	return $node;
}

sub crash_and_start
{
	my ($node, $what) = @_;
	$node->stop('immediate');
	my $started = $node->start(fail_ok => 1);
	ok($started, "$what: the server starts");
	return $started;
}

my $sum = q{SELECT count(*) || ' ' || coalesce(sum(hashtext(t::text)::numeric), 0) FROM f t};

# as many rows as there is room for
sub fill
{
	my ($node, $row, $batch) = @_;
	$batch ||= 10000;
	$node->safe_psql(
		'postgres', qq{
		DO \$\$
		DECLARE n int := 0;
		BEGIN
			LOOP
				BEGIN
					INSERT INTO f SELECT $row FROM generate_series(n + 1, n + $batch) i;
				EXCEPTION WHEN out_of_memory THEN
					EXIT;
				END;
				n := n + $batch;
				COMMIT;
			END LOOP;
		END \$\$});
}

sub standby_of
{
	my ($primary, $name) = @_;
	$primary->backup($name);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->start;
	return $standby;
}

# rows without a key are found by their content, and the rows fill memory
{
	my $node = new_server('content', streaming => 1);
	my $standby = standby_of($node, 'content_standby');
	$node->safe_psql('postgres', 'CREATE FOREIGN TABLE f (a int, b text) SERVER mot_server');
	fill($node, "i % 400000, 'row ' || i % 400000");
	cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM f'), '>', 1000000, 'memory is full of rows');
	$node->safe_psql(
		'postgres', q{
		CHECKPOINT;
		UPDATE f SET b = 'changed' WHERE a = 4711;
		DELETE FROM f WHERE a = 4712;
		DELETE FROM f WHERE a < 1000;
		INSERT INTO f SELECT i, 'new ' || i FROM generate_series(1, 1000) i;
		UPDATE f SET b = b || 'er' WHERE b LIKE 'new %'});
	my $before = $node->safe_psql('postgres', $sum);
	$node->wait_for_catchup($standby);
	is($standby->safe_psql('postgres', $sum), $before, 'a table without a key: its standby has all rows');
	if (crash_and_start($node, 'a table without a key'))
	{
		is($node->safe_psql('postgres', $sum), $before, 'a table without a key: all rows are there');
		$node->stop('immediate');
	}
	$standby->stop('immediate', fail_ok => 1);
	ok(!-e $node->data_dir . '/mot/pgsql_tmp', 'what only replay needed has gone');
}

# the shape of psql -1 and pg_restore --single-transaction
{
	my $node = new_server('restore', streaming => 1);
	my $standby = standby_of($node, 'restore_standby');
	$node->safe_psql('postgres', 'CREATE TABLE h (a int)');
	my $begin = q{
		CREATE FOREIGN TABLE f (a int PRIMARY KEY, b text) SERVER mot_server;
		CREATE INDEX ON f (b);
		INSERT INTO h VALUES (1);
		INSERT INTO f SELECT i, repeat('x', 1000) || i FROM generate_series(1, 45000) i};
	$node->safe_psql('postgres', "BEGIN; $begin; COMMIT");
	my $before = $node->safe_psql('postgres', $sum);
	$node->wait_for_catchup($standby);
	is($standby->safe_psql('postgres', $sum), $before, 'a transaction with everything: the standby has it');
	if (crash_and_start($node, 'a transaction with everything'))
	{
		is($node->safe_psql('postgres', $sum), $before, 'a transaction with everything: all rows are there');
		$node->stop('immediate');
	}
	$standby->stop('immediate', fail_ok => 1);
}

# updates and deletes in what the rows leave, some of which fail
{
	my $node = new_server('full');
	$node->safe_psql('postgres', 'CREATE FOREIGN TABLE f (a int PRIMARY KEY, b text, c int) SERVER mot_server; CREATE INDEX ON f (c)');
	fill($node, "i, repeat('x', i % 300), i % 1000", 1000);
	my $failed = 0;
	for my $round (1 .. 8)
	{
		my $first = $round * 1000;
		for my $statement (
			"UPDATE f SET b = repeat('y', (a + $round) % 400), c = c + $round WHERE a > $first",
			"UPDATE f SET b = repeat('y', (a + $round) % 400), c = c + $round WHERE a BETWEEN $first AND $first + 10000",
			"DELETE FROM f WHERE a % 50 = $round",
			"DELETE FROM f WHERE a % 500 = $round",
			"INSERT INTO f SELECT i, repeat('x', i % 300), i % 1000 FROM generate_series(1000000 + $first, 1000500 + $first) i")
		{
			$failed++ if $node->psql('postgres', $statement, on_error_stop => 1) != 0;
		}
	}
	cmp_ok($failed, '>', 0, 'memory is full');
	my $before = $node->safe_psql('postgres', $sum);
	if (crash_and_start($node, 'changes at the brim'))
	{
		is($node->safe_psql('postgres', $sum), $before, 'changes at the brim: all rows are there');
		$node->stop('immediate');
	}
}

# a standby frees what nobody can see any more as its primary does: while it
# replays, and when it has nothing to replay
{
	my $primary = new_server('primary', streaming => 1);
	my $standby = standby_of($primary, 'standby');
	$primary->safe_psql('postgres', 'CREATE FOREIGN TABLE f (id int PRIMARY KEY, v int, filler text) SERVER mot_server');
	$primary->safe_psql('postgres', q{INSERT INTO f SELECT i, 0, repeat('x', 200) FROM generate_series(1, 30000) i});
	for my $n (1 .. 40)
	{
		$primary->safe_psql('postgres', 'UPDATE f SET v = v + 1');
		$primary->safe_psql('postgres', 'CHECKPOINT') if $n % 15 == 0;
	}
	$primary->wait_for_catchup($standby);
	is($standby->safe_psql('postgres', 'SELECT count(*), min(v), max(v) FROM f'), '30000|40|40', 'a standby goes on');
	ok( $standby->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'),
		'idle, it frees what is left');
	cmp_ok(
		$standby->safe_psql('postgres', 'SELECT used_bytes FROM mot_stat_memory'), '<',
		2 * $primary->safe_psql('postgres', 'SELECT used_bytes FROM mot_stat_memory'),
		'and has no more in use than its primary had');
	$standby->stop('immediate', fail_ok => 1);
	$primary->stop('immediate');
}

done_testing();
