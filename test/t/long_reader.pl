# A snapshot that is held for long costs memory and nothing else: its reader
# sees what it saw, the statistics show who it is, and what was kept for it is
# freed when it ends.  And LOCK TABLE excludes what it excludes on heap tables.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('long_reader');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
synchronous_commit = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE hot (id int PRIMARY KEY, v int, filler text) SERVER mot_server;
	CREATE INDEX ON hot (v);
	INSERT INTO hot SELECT i, i, repeat('x', 200) FROM generate_series(1, 500) i;
	CREATE TABLE cold (id int PRIMARY KEY);
});

sub value
{
	return $node->safe_psql('postgres', "SELECT $_[0]");
}
my $kept = '(SELECT retired_objects FROM mot_stat_memory)';
my $used = '(SELECT used_bytes FROM mot_stat_memory)';
# (the worker that reclaims has one while it does)
my $snapshots = q{mot_stat_snapshots WHERE pid IN (SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend')};
my $churns = 60;

sub churn
{
	my ($what) = @_;
	my %scripts = (
		++$churns . '_churn' => q{
\set id random(1, 500)
UPDATE hot SET v = v + 1000 WHERE id = :id;
DELETE FROM hot WHERE id = :id;
INSERT INTO hot VALUES (:id, :id, repeat('x', 200)) ON CONFLICT DO NOTHING;
});
	$node->pgbench('--no-vacuum --client=4 --jobs=2 --transactions=3000 --protocol=prepared',
		0, [qr{number of failed transactions: 0 }], [qr{^$}], $what, \%scripts);
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'}) or die;
}

# as much work without a reader, for comparison
churn('work without a reader');
$node->poll_query_until('postgres', "SELECT $kept = 0") or die 'nothing is reclaimed';
my $before = value($used);
is(value("(SELECT count(*) FROM $snapshots)"), 0, 'nobody holds a snapshot');

my $after_first;
my %readers = (
	'a transaction with one snapshot' =>
	  [ 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT sum(v), count(*), max(filler) FROM hot', 'COMMIT' ],
	'a serializable transaction' =>
	  [ 'BEGIN ISOLATION LEVEL SERIALIZABLE', 'SELECT sum(v), count(*), max(filler) FROM hot', 'COMMIT' ],
	'an open cursor' => [
		'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT sum(v), count(*), max(filler) FROM hot; '
		  . 'DECLARE d CURSOR FOR SELECT id FROM hot ORDER BY v',
		'FETCH ABSOLUTE 1 FROM c', 'CLOSE c; SELECT 1; COMMIT' ]);
for my $what (sort keys %readers)
{
	my ($begin, $read, $end) = @{ $readers{$what} };
	my $reader = $node->background_psql('postgres');
	my $pid = $reader->query_safe('SELECT pg_backend_pid()');
	$reader->query_safe($begin);
	my $seen = $reader->query_safe($read);
	my $ids = $what =~ /cursor/ ? $reader->query_safe('FETCH 1 FROM d') : undef;
	churn("work beside $what");
	is(value("(SELECT pid || ' ' || (commits_since >= 9000) FROM $snapshots)"),
		"$pid true", "$what: who holds the snapshot, and for how long");
	cmp_ok(value($kept), '>', 9000, "$what: superseded rows are kept");
	my $most = value($used);
	cmp_ok($most, '>', $before + 2 * 1024 * 1024, "$what: that takes memory");
	is($reader->query_safe($read), $seen, "$what: sees what it saw");
	is(scalar(split(/\n/, $reader->query_safe('FETCH ALL FROM d'))), 499, 'and the rows that were there') if defined $ids;
	$reader->query_safe($end);
	ok($node->poll_query_until('postgres', "SELECT $kept = 0"), "$what: all of it is freed when it ends");
	# rows that came meanwhile are spread over pages, which others can use
	cmp_ok(value($used), '<', $most - 2 * 1024 * 1024, "$what: and memory comes back");
	$after_first //= value($used);
	is(value("(SELECT count(*) FROM $snapshots)"), 0, "$what: no snapshot is left");
	$reader->quit;
}

cmp_ok(value($used), '<', $after_first + 2 * 1024 * 1024, 'it does not grow from reader to reader');

# what others roll back is back beside a reader who goes on reading
my $long = $node->background_psql('postgres');
$long->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $count = $long->query_safe('SELECT count(*) FROM hot');
my $beside = value($used);
my %errors;
for (1 .. 12)
{
	my ($ret, $out, $err) = $node->psql('postgres',
		q{INSERT INTO hot SELECT i, 1 / (101000 - i), repeat('x', 200) FROM generate_series(1001, 101000) i});
	$errors{$err =~ s/.*ERROR: +//sr}++;
	is($long->query_safe('SELECT count(*) FROM hot'), $count, 'a reader does not see what fails');
}
is(join(', ', %errors), 'division by zero, 12', 'statements fail with their own errors, not for want of memory');
my $back = 0;
for (1 .. 100)
{
	$long->query_safe('SELECT id FROM hot WHERE id = 1');
	last if $back = value($used) < $beside + 4 * 1024 * 1024;
	$node->safe_psql('postgres', 'SELECT pg_sleep(0.1)');
}
ok($back, 'what they took is back while the reader has its snapshot');
$long->query_safe('COMMIT');
$long->quit;

# what was put aside for a cursor WITH HOLD needs no snapshot any more
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT id, v FROM hot ORDER BY id');
$holder->query_safe('UPDATE hot SET v = -1 WHERE id = 1; COMMIT');
is(value("(SELECT count(*) FROM $snapshots)"), 0, 'a cursor WITH HOLD holds no snapshot');
$node->safe_psql('postgres', 'DELETE FROM hot WHERE id > 1');
like($holder->query_safe('MOVE 498 FROM h; FETCH 1 FROM h'), qr/^499\|/, 'but has its rows');
$holder->quit;

# ------------------------------------------------------------- LOCK TABLE

my @modes = (
	'ACCESS SHARE', 'ROW SHARE', 'ROW EXCLUSIVE', 'SHARE UPDATE EXCLUSIVE',
	'SHARE', 'SHARE ROW EXCLUSIVE', 'EXCLUSIVE', 'ACCESS EXCLUSIVE');
my @statements = (
	(map { "LOCK TABLE %s IN $_ MODE NOWAIT" } @modes),
	'SELECT FROM %s', 'SELECT FROM %s FOR UPDATE', 'DELETE FROM %s', 'INSERT INTO %s (id) VALUES (9999)');
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION refused(statements text[]) RETURNS text LANGUAGE plpgsql SET lock_timeout = '5ms' AS $$
	DECLARE
		s text;
		result text := '';
	BEGIN
		FOREACH s IN ARRAY statements LOOP
			BEGIN
				EXECUTE s;
				result := result || '-';
				RAISE division_by_zero;
			EXCEPTION
				WHEN division_by_zero THEN NULL;
				WHEN lock_not_available THEN result := result || 'x';
			END;
		END LOOP;
		RETURN result;
	END $$;
});
my $locker = $node->background_psql('postgres');
for my $mode (@modes)
{
	my %got;
	for my $table ('cold', 'hot')
	{
		$locker->query_safe("BEGIN; LOCK TABLE $table IN $mode MODE");
		$got{$table} = value('refused(ARRAY[' . join(',', map { "'" . sprintf($_, $table) . "'" } @statements) . '])');
		$locker->query_safe('ROLLBACK');
	}
	is($got{hot}, $got{cold}, "LOCK TABLE in mode $mode: $got{cold}");
}
$locker->query_safe('BEGIN; SAVEPOINT s; LOCK TABLE hot; ROLLBACK TO s');
is(value("refused(ARRAY['LOCK TABLE hot IN SHARE MODE NOWAIT'])"), '-', 'released by ROLLBACK TO');
$locker->quit;

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'in peace');

$node->stop;
done_testing();
