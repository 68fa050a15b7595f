# CREATE INDEX and REINDEX CONCURRENTLY of keys that are computed: writers at all levels go on and
# none fails, answers are those of a heap twin, and neither a crash nor a checkpoint at any time
# takes an entry away, or a row.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $faults = ($ENV{MOT_FAULT_POINTS} // '') =~ /\bindex-compute\b/;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "restart_after_crash = on\nshared_preload_libraries = 'mot'\nmot.max_memory = 256MB\nautovacuum = off\nenable_seqscan = off\nenable_bitmapscan = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

my $go = $node->data_dir . '/mot.fault.go';

sub ask
{
	return $node->safe_psql('postgres', $_[0]);
}

# c and its heap twin c_heap; and a table without a key, of rows that are equal
sub make
{
	for my $t ('c', 'c_heap')
	{
		ask("DROP TABLE IF EXISTS $t; CREATE TABLE $t (id int PRIMARY KEY, v int, s text, live bool, n int) USING "
			  . ($t eq 'c' ? 'mot' : 'heap')
			  . "; INSERT INTO $t SELECT i, i % 300, 'S' || i, i % 3 = 0, 0 FROM generate_series(1, 1500) i");
	}
	ask("DROP TABLE IF EXISTS k; CREATE TABLE k (v int, s text) USING mot; INSERT INTO k SELECT i % 50, 'K' || i % 10 FROM generate_series(1, 1500) i");
	return;
}

# the same on both tables, with the same outcome: true if there is no error
sub both
{
	my ($sql, $quiet) = @_;
	my @results = map {
		my $t = $_;
		my ($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = '20s'; " . ($sql =~ s/\bc(_\w+)?\b/$t . ($1 \/\/ '')/ger));
		$err =~ s/c_heap/c/g;
		$err =~ s/(LINE|CONTEXT|DETAIL).*//s;
		"$rc $out $err"
	} 'c', 'c_heap';
	is($results[0], $results[1], substr($sql, 0, 100)) unless $quiet && $results[0] eq $results[1];
	return;
}

# same rows; every index sound; all that the twin's rows say is found by it
sub same
{
	my ($server, $what, @keys) = @_;
	my $rows = 'SELECT md5(string_agg(c::text, $$,$$ ORDER BY id)) FROM';
	is($server->safe_psql('postgres', "$rows c"), $server->safe_psql('postgres', "$rows c_heap c"), "$what: the same rows");
	is($server->safe_psql('postgres', "SELECT string_agg(first_problem, ', ') FROM mot_verify('c')"), '', "$what: sound");
	for my $key (@keys)
	{
		my ($expr, $where) = split / WHERE /, $key;
		my $and = $where ? "AND c.$where" : '';
		my $found = sub {
			"SELECT md5(string_agg(c.id || ' ' || d.k, ',' ORDER BY d.k, c.id)) FROM (SELECT DISTINCT $expr k FROM c_heap) d, LATERAL (SELECT id FROM $_[0] c WHERE $expr = d.k $and OFFSET 0) c";
		};
		is($server->safe_psql('postgres', $found->('c')), $server->safe_psql('postgres', $found->('c_heap')), "$what: rows are found by $key");
	}
	return;
}

sub valid
{
	return ask("SELECT indisready, indisvalid FROM pg_index WHERE indexrelid = to_regclass('$_[0]')");
}

sub wait_for_point
{
	my ($point, $from) = @_;
	return $node->wait_for_log(qr/fault point "\Q$point\E" reached/, $from);
}

# the statement, held where the fault says, and what happens meanwhile
sub held
{
	my ($fault, $sql, $meanwhile, $afterwards) = @_;
	my $from = -s $node->logfile;
	my ($point) = split /:/, $fault;
	my $builder = $node->background_psql('postgres', on_error_stop => 0);
	$builder->query("SET mot.fault = '$fault'");
	$builder->query_until(qr/begun/, "\\echo begun\n$sql;\n");
	ok(wait_for_point($point, $from), "$sql: held");
	$meanwhile->();
	append_to_file($go, '');
	$builder->query('SET mot.fault = DEFAULT');
	$afterwards->() if $afterwards;
	unlink $go;
	$builder->quit;
	return;
}

# what fails on heap fails here, and in the same state
make();
both("$_; SELECT 1") for "CREATE INDEX CONCURRENTLY c_bad ON c ((1 / (v - 7)))", "CREATE UNIQUE INDEX CONCURRENTLY c_dup ON c ((v + 1))",
	"CREATE UNIQUE INDEX CONCURRENTLY c_part ON c (v) WHERE live";
is(valid("c$_"), valid("c_heap$_"), "c$_ is as on heap") for '_bad', '_dup', '_part';
both('UPDATE c SET v = 7 WHERE id < 10; INSERT INTO c SELECT -i, 7, $$x$$, true, 0 FROM generate_series(1, 3) i');
ask('DROP INDEX c_bad, c_dup, c_part');

# without anybody, of a table of equal rows, and of one that is not logged
ask('CREATE INDEX CONCURRENTLY c_lower ON c (lower(s)); CREATE INDEX CONCURRENTLY c_live ON c (v) WHERE live');
same($node, 'alone', 'lower(s)', 'v WHERE live');
ask('CREATE INDEX CONCURRENTLY k_lower ON k (lower(s)) WHERE v < 40; CREATE UNLOGGED TABLE u USING mot AS SELECT i FROM generate_series(1, 100) i; CREATE INDEX CONCURRENTLY u_neg ON u ((-i))');
is(ask("SELECT count(*) FROM k WHERE lower(s) = 'k3' AND v < 40"), '120', 'equal rows');
is(ask('SELECT count(*) FROM u WHERE -i < -50'), '50', 'an unlogged table');
like(ask("EXPLAIN SELECT id FROM c WHERE lower(s) = 's5'"), qr/c_lower/, 'by the index');

# (rows with a 1 at the end are others')
my $writes = join "; ", map { s/\bMINE\b/id % 10 <> 1/gr } (
	'UPDATE c SET v = v + 1000 WHERE MINE AND id % 7 = 0',
	'UPDATE c SET n = n + 1 WHERE MINE AND id % 5 = 0',
	'UPDATE c SET live = NOT live WHERE MINE AND id % 11 = 0',
	"UPDATE c SET s = 'T' || id WHERE MINE AND id % 13 = 0",
	'DELETE FROM c WHERE MINE AND id % 17 = 0',
	"INSERT INTO c SELECT id, id % 300, 'S' || id, id % 2 = 0, 1 FROM generate_series(17, 3000, 34) id WHERE MINE ON CONFLICT (id) DO UPDATE SET n = excluded.n + 1",
	'BEGIN; UPDATE c SET live = NOT live, v = v + 1 WHERE MINE AND id % 3 = 0; SAVEPOINT a; UPDATE c SET live = false WHERE MINE; DELETE FROM c WHERE MINE AND id % 4 = 0; ROLLBACK TO a; UPDATE c SET n = n + 1 WHERE MINE AND id % 4 = 2; COMMIT',
	'BEGIN; UPDATE c SET live = NOT live WHERE MINE; DELETE FROM c WHERE MINE AND id % 2 = 0; ROLLBACK',
	'PREPARE p AS UPDATE c SET n = n + 1 WHERE id = $1; ' . join('; ', map { "EXECUTE p ($_)" } map { $_ * 98 } 1 .. 15));

# of others: some before the builder, some behind it
sub ids
{
	my ($n) = @_;
	return 'id IN (' . join(',', map { $n + 100 * $_ } 0 .. 14) . ')';
}

my @levels = ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE');

SKIP:
{
	skip 'not a build with fault points', 1 unless $faults;
	my @kinds = (
		[ 'CREATE INDEX CONCURRENTLY c_i ON c (lower(s))', 'lower(s)' ],
		[ 'CREATE INDEX CONCURRENTLY c_i ON c (v) WHERE live', 'v WHERE live' ],
		[ 'CREATE UNIQUE INDEX CONCURRENTLY c_i ON c (lower(s))', 'lower(s)' ],
		[ 'CREATE UNIQUE INDEX CONCURRENTLY c_i ON c ((id % 10), id) WHERE live', 'id WHERE live' ]);
	my $n = 0;
	for my $kind (@kinds, [ 'REINDEX INDEX CONCURRENTLY c_i', 'id WHERE live' ], [ 'REINDEX TABLE CONCURRENTLY c', 'id WHERE live' ])
	{
		my ($sql, $key) = @$kind;
		$n++;
		make() if $sql =~ /^CREATE/;
		ask('CREATE UNIQUE INDEX c_heap_i ON c_heap ((id % 10), id) WHERE live') if $sql =~ /^REINDEX INDEX/;

		# whose snapshots are older than all of it, who write in the midst of it, and one of them to
		# its end (REINDEX TABLE waits for them between two indexes)
		my @old;
		for my $t ($sql =~ /TABLE/ ? () : ('c', 'c_heap'))
		{
			for my $first (1, 51)
			{
				my $s = $node->background_psql('postgres', on_error_stop => 0);
				my $level = $t eq 'c' && $first == 51 ? 'SERIALIZABLE' : 'REPEATABLE READ';
				$s->query_safe("BEGIN ISOLATION LEVEL $level; SELECT sum(v) FROM $t WHERE " . ids($first));
				push @old, [ $s, $t, $first ];
			}
		}
		my $undecided = $node->background_psql('postgres', on_error_stop => 0);
		held('index-compute:wait:700', $sql, sub {
				for my $o (@old)
				{
					my ($s, $t, $first) = @$o;
					# other columns, into and out of the index, other keys
					$s->query_safe("UPDATE $t SET n = n + 1 WHERE " . ids($first));
					$s->query_safe("UPDATE $t SET live = NOT live WHERE " . ids($first + 10));
					$s->query_safe("UPDATE $t SET s = 'O' || id, n = 5 WHERE " . ids($first + 20));
					$s->query_safe("UPDATE $t SET n = 7 WHERE " . ids($first + 20));
					$s->query_safe("DELETE FROM $t WHERE " . ids($first + 30));
					$s->query_safe("INSERT INTO $t VALUES (4000 + 100 * $n + $first, 5, 'I$n.$first', true, 0)");
					is($s->query_safe('COMMIT; SELECT 1'), '1', "an older transaction commits, $t") if $first == 1;
				}
				$undecided->query_safe('BEGIN; UPDATE c SET v = -1, live = NOT live, s = $$gone$$ || id WHERE ' . ids(41) . '; DELETE FROM c WHERE ' . ids(91));
				both("SET default_transaction_isolation = '$levels[$n % 3]'; SET lock_timeout = '5s'; $writes");
				append_to_file($go, '');
				sleep 0.2;
				$undecided->query_safe('ROLLBACK');
				is($_->[0]->query_safe('COMMIT; SELECT 1'), '1', "another commits, $_->[1]") for grep { $_->[2] == 51 } @old;
		});
		$undecided->quit;
		$_->[0]->quit for @old;
		is(valid('c_i'), 't|t', "$sql: valid");
		same($node, $sql, $key);
		both($writes, 1);
		same($node, "$sql, used", $key);
	}
	$node->wait_for_catchup($standby);
	same($standby, 'on a standby', 'id WHERE live');

	# --- duplicates, and what cannot be computed, of writers meanwhile
	make();
	held('index-compute:wait:700', 'CREATE UNIQUE INDEX CONCURRENTLY c_i ON c (lower(s))', sub { ask("INSERT INTO c VALUES (5000, 1, 's1400', true, 0)") });
	is(valid('c_i'), 't|f', 'duplicates that come: not valid');
	my ($rc, $out, $err) = $node->psql('postgres', "INSERT INTO c VALUES (5001, 1, 's1400', true, 0)");
	ask('DELETE FROM c WHERE id = 5000; REINDEX INDEX CONCURRENTLY c_i');
	is(valid('c_i'), 't|t', '... until they are gone');
	same($node, 'after duplicates', 'lower(s)');
	held('index-compute:wait:700', 'CREATE INDEX CONCURRENTLY c_d ON c ((1 / (v + 1)))', sub {
			($rc, $out, $err) = $node->psql('postgres', 'UPDATE c SET v = -1 WHERE id = 1');
			like($err, qr/division by zero/, 'who stores what cannot be computed is told');
	});
	is(valid('c_d'), 't|t', '... and the index is built');

	# --- killed in the middle: no row is lost, and the index comes with another attempt
	make();
	my $from = -s $node->logfile;
	$node->psql('postgres', "SET mot.fault = 'index-compute:kill:1000'; CREATE INDEX CONCURRENTLY c_i ON c (lower(s)) WHERE live");
	ok($node->poll_query_until('postgres', "SELECT to_regclass('c_i') IS NOT NULL AND count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%'"), 'the server is back');
	like(valid('c_i'), qr/\|f$/, 'an index that is not valid is left');
	same($node, 'after a crash');
	both($writes, 1);
	ask('REINDEX INDEX CONCURRENTLY c_i');
	same($node, 'built after a crash', 'lower(s) WHERE live');
	ask('DROP INDEX c_i');
	both($writes, 1);
	same($node, 'dropped');

	# --- a checkpoint was begun before, and comes to the rows afterwards: its log has them once
	# more
	make();
	my $checkpoint;
	my $begin_checkpoint = sub {
		$node->append_conf('postgresql.conf', "mot.fault = 'checkpoint-rows:wait'\n");
		$node->reload;
		$checkpoint = $node->background_psql('postgres', on_error_stop => 0);
		$from = -s $node->logfile;
		$checkpoint->query_until(qr/begun/, "SELECT pg_sleep(0.2);\n\\echo begun\nCHECKPOINT;\n");
		ok(wait_for_point('checkpoint-rows', $from), 'a checkpoint has drawn its line');
	};
	my $crash = sub {
		$node->append_conf('postgresql.conf', "mot.fault = ''\n");
		$checkpoint->query_safe('SELECT 1');
		$node->stop('immediate');
		$node->start;
	};
	$begin_checkpoint->();
	held('index-catch-up:wait', "CREATE INDEX CONCURRENTLY k_i ON k (lower(s)) WHERE v < 40", sub { ask('DELETE FROM k WHERE ctid IN (SELECT ctid FROM k WHERE v = 3 LIMIT 5)') }, sub { $checkpoint->query_safe('SELECT 1') });
	$crash->();
	is(ask("SELECT count(*), sum(v) FROM k"), '1495|36735', 'equal rows are all there');
	is(ask("SELECT count(*) FROM k WHERE lower(s) = 'k3' AND v < 40"), '115', '... and found');
	is(ask("SELECT string_agg(first_problem, ', ') FROM mot_verify('k')"), '', '... soundly');

	# equal rows, some of which have got their entries and some not yet: those go, and the
	# checkpoint has more of the others than the log knows of
	ask('DROP INDEX k_i; INSERT INTO k SELECT 60, $$E$$ FROM generate_series(1, 300)');
	$begin_checkpoint->();
	my $last = 'ctid IN (SELECT ctid FROM k WHERE v = 60 ORDER BY ctid DESC LIMIT 20)';
	held('index-compute:wait:1600', 'CREATE INDEX CONCURRENTLY k_i ON k (lower(s))', sub { ask("DELETE FROM k WHERE $last; UPDATE k SET v = 61 WHERE $last") },
		sub { $checkpoint->query_safe('SELECT 1') });
	$crash->();
	my $equal = "SELECT v, count(*) FROM k WHERE lower(s) = 'e' GROUP BY v ORDER BY v";
	is(ask($equal), "60|260\n61|20", 'equal rows that went without entries, and came with them');
	is(ask("SELECT string_agg(first_problem, ', ') FROM mot_verify('k')"), '', '... soundly');

	# rows that get entries of two indexes before a checkpoint comes to them
	ask('DROP INDEX k_i');
	$begin_checkpoint->();
	ask('CREATE INDEX CONCURRENTLY k_i ON k (lower(s))');
	ask('CREATE INDEX CONCURRENTLY k_j ON k (upper(s)) WHERE v > 50');
	append_to_file($go, '');
	$checkpoint->query_safe('SELECT 1');
	unlink $go;
	$crash->();
	is(ask($equal =~ s/lower.* 'e'/upper(s) = 'E' AND v > 50/r), ask($equal), 'of two indexes');
	is(ask("SELECT string_agg(first_problem, ', ') FROM mot_verify('k')"), '', '... soundly');

	# (who writes first after a crash waits for a checkpoint)
	both($writes, 1);
	$begin_checkpoint->();
	held('index-catch-up:wait', 'CREATE INDEX CONCURRENTLY c_i ON c (v) WHERE live', sub { both($writes, 1) }, sub { $checkpoint->query_safe('SELECT 1') });
	$crash->();
	same($node, 'after a checkpoint and a crash', 'v WHERE live');
	$node->wait_for_catchup($standby);
	same($standby, 'on the standby', 'v WHERE live');
	is($standby->safe_psql('postgres', "SELECT count(*) FROM k WHERE lower(s) = 'k3' AND v < 40"), '115', '... equal rows, too');
}
$standby->stop;
done_testing();
