# Foreign keys between heap and memory, both ways and within memory, under 16
# clients that insert, move and delete on both sides, at three levels, and
# crashes: there is never an orphan.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = 128MB\nmax_connections = 40\ndeadlock_timeout = 100ms\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot');

# parent, child, what the key does when its row goes or moves
my @pairs = (
	[ 'heap', 'mot', 'ON DELETE CASCADE ON UPDATE CASCADE' ],
	[ 'mot', 'heap', 'ON DELETE CASCADE ON UPDATE CASCADE' ],
	[ 'mot', 'mot', 'ON DELETE SET NULL ON UPDATE CASCADE' ],
	[ 'mot', 'heap', '' ],
	[ 'heap', 'mot', 'DEFERRABLE INITIALLY DEFERRED' ],
	[ 'mot', 'mot', 'ON DELETE NO ACTION ON UPDATE SET NULL DEFERRABLE' ]);
for my $i (0 .. $#pairs)
{
	my ($parent, $child, $actions) = @{ $pairs[$i] };
	$node->safe_psql(
		'postgres', qq{
		CREATE TABLE p$i (id int PRIMARY KEY, v int NOT NULL DEFAULT 0) USING $parent;
		CREATE TABLE c$i (id bigserial PRIMARY KEY, p int REFERENCES p$i $actions, v int) USING $child;
		CREATE INDEX ON c$i (p);
		INSERT INTO p$i SELECT generate_series(1, 30);
		INSERT INTO c$i (p) SELECT i % 30 + 1 FROM generate_series(1, 100) i});
}
$node->safe_psql(
	'postgres', q{
	CREATE PROCEDURE change(t int, a int, b int, what int) LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE format(CASE what
			WHEN 0 THEN 'INSERT INTO p%1$s VALUES (%2$s) ON CONFLICT DO NOTHING'
			WHEN 1 THEN 'DELETE FROM p%1$s WHERE id = %2$s'
			WHEN 2 THEN 'UPDATE p%1$s SET id = %3$s WHERE id = %2$s'
			WHEN 3 THEN 'UPDATE p%1$s SET v = v + 1 WHERE id = %2$s'
			WHEN 4 THEN 'UPDATE c%1$s SET p = %3$s WHERE p = %2$s'
			WHEN 5 THEN 'DELETE FROM c%1$s WHERE p = %2$s'
			WHEN 6 THEN 'WITH x AS (DELETE FROM c%1$s WHERE p = %2$s) DELETE FROM p%1$s WHERE id = %2$s'
			ELSE 'INSERT INTO c%1$s (p) VALUES (%2$s), (%3$s)' END, t, a, b);
	END $$;
	-- two changes, with keys that are checked at once and keys that are checked behind both
	CREATE PROCEDURE work(t int, a int, b int, what int, u int, also int) LANGUAGE plpgsql AS $$
	BEGIN
		CALL change(t, a, b, what);
		CALL change(u, b, a, also);
		SET CONSTRAINTS ALL IMMEDIATE;
	EXCEPTION WHEN foreign_key_violation OR unique_violation THEN
		NULL;
	END $$});

my $script = $node->basedir . '/work.sql';
append_to_file(
	$script, q{
\set t random(0, 5)
\set u random(0, 5)
\set a random(1, 40)
\set b random(1, 40)
\set what random(0, 9)
\set also random(0, 9)
\set level random(0, 4)
\if :level = 0
BEGIN ISOLATION LEVEL SERIALIZABLE;
\elif :level = 1
BEGIN ISOLATION LEVEL REPEATABLE READ;
\else
BEGIN;
\endif
CALL work(:t, :a, :b, :what, :u, :also);
COMMIT;
});

sub orphans
{
	return $node->safe_psql('postgres',
		join(' UNION ALL ', map { "SELECT 'c$_ ' || c::text FROM c$_ c LEFT JOIN p$_ p ON p.id = c.p WHERE c.p IS NOT NULL AND p.id IS NULL" } 0 .. $#pairs));
}

my $seconds = $ENV{SECONDS_EACH} // 4;
for my $round (1 .. $ENV{ROUNDS} // 3)
{
	my ($out, $err) = ('', '');
	my $crash = $round < ($ENV{ROUNDS} // 3);
	my $sums = join(' UNION ALL ', map { "SELECT sum(v) FROM p$_" } 0 .. $#pairs) . ' ORDER BY 1';
	my $before = $node->safe_psql('postgres', $sums);
	my $load = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 16, '-j', 2, '-M', $round == 2 ? 'simple' : 'prepared', '--max-tries', 100, '-T', $seconds + ($crash ? 60 : 0),
			'-f', $script, $node->connstr('postgres') ],
		'>', \$out, '2>', \$err);
	if ($crash)
	{
		sleep $seconds;
		for (1 .. $PostgreSQL::Test::Utils::timeout_default) { last if $node->safe_psql('postgres', $sums) ne $before; sleep 1 }
		$node->stop('immediate');
		eval { $load->finish };
		$node->start;
	}
	else
	{
		ok($load->finish, 'all clients work to the end') or diag($err);
		my ($n) = $out =~ /number of transactions actually processed: (\d+)/;
		cmp_ok($n, '>', 0, "... $n transactions");
	}
	unlike($err, qr/client \d+ aborted in command.*(?!server closed|terminat)ERROR/, 'no client met another error')
	  or diag($err);
	is(orphans(), '', $crash ? "no orphan after crash $round" : 'no orphan at the end');
	isnt($node->safe_psql('postgres', $sums), $before, '... and there was work');
	is($node->safe_psql('postgres', q{SELECT string_agg(first_problem, ', ') FROM pg_class c JOIN pg_am a ON a.oid = relam AND amname = 'mot', mot_verify(c.oid) WHERE relkind = 'r'}),
		'', 'indexes have what rows say');
}

# the check would see one
$node->safe_psql('postgres', 'SET session_replication_role = replica; DELETE FROM p0; INSERT INTO c0 (p) VALUES (-1)');
like(orphans(), qr/c0 /, 'an orphan would be seen');

done_testing();
