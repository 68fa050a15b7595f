# Full memory can be emptied: DELETE works where INSERT and UPDATE do not any
# more, takes little itself, and what it leaves is room for the next statement.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('brim');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE f (id int PRIMARY KEY, v int, t text) SERVER mot_server;
	CREATE INDEX ON f (v);
	CREATE FOREIGN TABLE bounded (id int PRIMARY KEY, v int, t text) SERVER mot_server OPTIONS (max_size '8MB');
	CREATE INDEX ON bounded (v);
	CREATE PROCEDURE fill(name text, size int, OUT n int) LANGUAGE plpgsql AS $$
	DECLARE
		step int := 4096;
	BEGIN
		n := 0;
		WHILE step > 0 LOOP
			BEGIN
				EXECUTE format('INSERT INTO %I SELECT i, i, repeat(''x'', %s) FROM generate_series(%s, %s) i',
					name, size, n + 1, n + step);
				n := n + step;
			EXCEPTION WHEN out_of_memory OR configuration_limit_exceeded THEN
				step := step / 4;
			END;
			COMMIT;
		END LOOP;
	END $$;
});

my $session = $node->background_psql('postgres', on_error_stop => 0);
my $reader = $node->background_psql('postgres');

sub does
{
	my ($sql, $what) = @_;
	$session->{stderr} = '';
	my $out = $session->query($sql);
	is($session->{stderr}, '', $what);
	return $out;
}

for my $case ([ 'f', 4 ], [ 'f', 400 ], [ 'bounded', 4 ])
{
	my ($table, $size) = @$case;
	my $what = "$table, $size bytes";

	my $rows = $node->safe_psql('postgres', "CALL fill('$table', $size, NULL)");
	cmp_ok($rows, '>', 10000, "$what: $rows rows are all there is room for");

	# of changing all of them nothing is left
	my ($ret, $out, $err) = $node->psql('postgres', "UPDATE $table SET v = -v");
	like($err, qr/ERROR:  (out of memory for|memory limit of)/, "$what: not for changing all of them");
	($ret, $out, $err) = $node->psql('postgres', "UPDATE $table SET v = -v WHERE id % 100 = 0");
	is($err, '', "$what: but some");
	$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM $table");

	# all rows by one statement, with that reader and without
	does("BEGIN; DELETE FROM $table; ROLLBACK", "$what: they can be deleted");
	is($session->query("SELECT count(*) FROM $table"), $rows, "$what: and be there again");
	does("DELETE FROM $table", "$what: they can be deleted for good");
	is($reader->query_safe("SELECT count(*) FROM $table"), $rows, "$what: a reader sees them");
	$reader->query_safe('COMMIT');
	my $most = refill($table, $size);
	cmp_ok($most, '>', $rows * 0.95, "$what: there is room at once");
	does("BEGIN ISOLATION LEVEL REPEATABLE READ; DELETE FROM $table; COMMIT", "$what: once more, locked at commit");
	$most = refill($table, $size);
	cmp_ok($most, '>', $rows * 0.95, "$what: there is room at once");
	is($node->safe_psql('postgres', "SELECT sum(problems) FROM mot_verify('$table')"), '0', "$what: in order");

	does("DELETE FROM $table", "$what: deleted");
}

# in the session that has deleted
sub refill
{
	my ($table, $size) = @_;
	return $session->query("CALL fill('$table', $size, NULL)");
}

# what a DELETE takes until it is reclaimed, as the statistics have it
$node->safe_psql('postgres', "INSERT INTO f SELECT i, i, 'x' FROM generate_series(1, 100000) i");
$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM f");
my $used = '(SELECT used_bytes FROM mot_stat_memory)';
my $before = $node->safe_psql('postgres', "SELECT $used");
$node->safe_psql('postgres', 'DELETE FROM f');
my $after = $node->safe_psql('postgres', "SELECT $used");
cmp_ok(($after - $before) / 100000, '<=', 48, 'a deleted row takes ' . ($after - $before) / 100000 . ' bytes');
$reader->query_safe('COMMIT');
ok($node->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'), 'all is reclaimed');

$session->quit;
$reader->quit;
$node->stop;
done_testing();
