# Logical decoding of ordinary tables: what the same statements do to a heap table and to one
# in memory, in the same transactions, comes out of test_decoding and of pgoutput as the same,
# in the same order, whatever the replica identity; and a subscriber ends with the publisher's rows,
# under load, after immediate stops.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = int($ENV{SEED} || 1);
diag("SEED=$seed");
srand($seed);

my $node = PostgreSQL::Test::Cluster->new('publisher');
$node->init(allows_streaming => 'logical');
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
mot.jit_prepare_above_executions = 1
max_prepared_transactions = 10
plan_cache_mode = force_generic_plan
logical_decoding_work_mem = '64kB'
wal_sender_timeout = 0
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot');

sub one_of
{
	return $_[ int(rand(scalar @_)) ];
}

# each statement for a heap table, and then for its twin
sub twins
{
	return join "\n", map {
		my $sql = $_;
		map { (my $one = $sql) =~ s/\bS\./$_./g; $one =~ s/USING X/USING @{[$_ eq 'h' ? 'heap' : 'mot']}/g; "$one;" } 'h', 'm'
	} @_;
}

my @tables = qw(t full_ none_ byx nokey parent child part);
my $shape = '(id int %s, a int, b text, c numeric, d bytea, e int[])';
$node->safe_psql(
	'postgres', 'CREATE SCHEMA h; CREATE SCHEMA m;' . twins(
		'CREATE TABLE S.t ' . sprintf($shape, 'PRIMARY KEY') . ' USING X',
		'CREATE TABLE S.full_ ' . sprintf($shape, 'PRIMARY KEY') . ' USING X',
		'ALTER TABLE S.full_ REPLICA IDENTITY FULL',
		'CREATE TABLE S.none_ ' . sprintf($shape, 'PRIMARY KEY') . ' USING X',
		'ALTER TABLE S.none_ REPLICA IDENTITY NOTHING',
		'CREATE TABLE S.byx ' . sprintf($shape, 'PRIMARY KEY') . ' USING X',
		"ALTER TABLE S.byx ALTER b SET NOT NULL, ALTER b SET DEFAULT 'none'",
		'CREATE UNIQUE INDEX byx_b ON S.byx (b, id)',
		'ALTER TABLE S.byx REPLICA IDENTITY USING INDEX byx_b',
		'CREATE TABLE S.nokey ' . sprintf($shape, '') . ' USING X',
		'CREATE TABLE S.parent (id int PRIMARY KEY, v text) USING X',
		'CREATE TABLE S.child (id int PRIMARY KEY, p int REFERENCES S.parent ON UPDATE CASCADE ON DELETE CASCADE, g int GENERATED ALWAYS AS (id * 2) STORED) USING X',
		'CREATE INDEX ON S.child ((p + 1)) WHERE p > 3',
		'CREATE INDEX ON S.child (p)',
		'CREATE TABLE S.part (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)',
		'CREATE TABLE S.part1 PARTITION OF S.part FOR VALUES FROM (MINVALUE) TO (50) USING X',
		'CREATE TABLE S.part2 PARTITION OF S.part FOR VALUES FROM (50) TO (MAXVALUE) USING X'));

# statements whose plans are kept, so those of memory-optimized tables are executed without the
# executor
for my $t (qw(t full_ none_ byx))
{
	$node->safe_psql('postgres', twins(qq{CREATE FUNCTION S.act_$t(kind int, i int, n int, v text) RETURNS void LANGUAGE plpgsql AS \$\$
	BEGIN
		IF kind = 0 THEN INSERT INTO S.$t (id, a, b) VALUES (n, i, v);
		ELSIF kind = 1 THEN UPDATE S.$t SET a = a + 1 WHERE id = i;
		ELSIF kind = 2 THEN UPDATE S.$t SET b = v || 'p', c = n WHERE id = i;
		ELSIF kind = 3 THEN UPDATE S.$t SET id = n WHERE id = i;
		ELSIF kind = 4 THEN DELETE FROM S.$t WHERE id = i;
		ELSIF kind = 5 THEN INSERT INTO S.$t (id, a, b) VALUES (i, n, v) ON CONFLICT (id) DO UPDATE SET b = excluded.b, a = 1;
		ELSIF kind = 6 THEN INSERT INTO S.$t (id, a, b) VALUES (i, n, v) ON CONFLICT DO NOTHING;
		ELSIF kind = 7 THEN UPDATE S.$t x SET c = y.id FROM S.parent y WHERE x.id = y.id AND y.id = i;
		ELSIF kind = 8 THEN INSERT INTO S.$t (id, a, b) SELECT n + 40000, a, b FROM S.$t WHERE id = i;
		END IF;
	END \$\$}));
}

# ------------------------------------------------------------ random statements

my $key = 100;
my $renamed = 0;

sub value_b
{
	return one_of("'b" . int(rand(20)) . "'", "repeat('x" . int(rand(9)) . "', " . int(rand(300)) . ')', "repeat(md5('" . int(rand(99)) . "'), 400)");
}

sub statement
{
	my $t = one_of(qw(t t full_ none_ byx nokey parent child part));
	my $id = int(rand(60));
	my $n = $key++;
	my $b = $t eq 'byx' ? "'b" . int(rand(20)) . "'" : value_b();

	if ($t eq 'parent')
	{
		return one_of("INSERT INTO S.parent VALUES ($id, $b) ON CONFLICT (id) DO UPDATE SET v = excluded.v || 'u'",
			"DELETE FROM S.parent WHERE id = $id", "UPDATE S.parent SET id = id + 1000 WHERE id = $id AND NOT EXISTS (SELECT FROM S.parent WHERE id = $id + 1000)",
			"DELETE FROM S.parent WHERE id > 1000");
	}
	if ($t eq 'child')
	{
		return one_of("INSERT INTO S.child SELECT $n, id FROM S.parent ORDER BY id LIMIT 2 ON CONFLICT DO NOTHING",
			"DELETE FROM S.child WHERE p = $id", "UPDATE S.child SET p = (SELECT max(id) FROM S.parent) WHERE p = $id");
	}
	if ($t eq 'part')
	{
		return one_of("INSERT INTO S.part VALUES ($id, $n) ON CONFLICT (id) DO UPDATE SET v = S.part.v + 1",
			"UPDATE S.part SET id = 100 - id WHERE id = $id AND NOT EXISTS (SELECT FROM S.part WHERE id = 100 - $id)", "DELETE FROM S.part WHERE id = $id");
	}
	return "SELECT S.act_$t(" . int(rand(9)) . ", $id, $n, $b)" if $t ne 'nokey' && rand() < 0.5;
	return one_of(
		"INSERT INTO S.$t SELECT g, g % 7, $b, g * 1.5, NULL, ARRAY[g, 1] FROM generate_series($n, $n) g",
		"INSERT INTO S.$t (id, a, b) VALUES ($n + 10000, NULL, $b), ($n + 20000, 2, $b)",
		$t eq 'nokey' ? "INSERT INTO S.nokey (id) VALUES ($id)" : "INSERT INTO S.$t (id, a, b) VALUES ($id, 1, $b) ON CONFLICT (id) DO UPDATE SET a = S.$t.a + 1, d = '\\x00ff'",
		$t eq 'nokey' ? "DELETE FROM S.nokey WHERE id = $id" : "INSERT INTO S.$t (id, b) VALUES ($id, $b) ON CONFLICT DO NOTHING",
		"UPDATE S.$t SET a = a + 1 WHERE id = $id",
		"UPDATE S.$t SET a = a + 1, b = $b WHERE id BETWEEN $id AND $id + 3",
		"UPDATE S.$t SET e = e || 5, c = NULL WHERE id = $id",
		"UPDATE S.$t SET id = id + 100000 + $n WHERE id = $id",
		"UPDATE S.$t SET id = id WHERE id = $id",
		"UPDATE S.$t x SET c = y.id FROM S.parent y WHERE y.id = x.id AND x.id < $id",
		"DELETE FROM S.$t WHERE id = $id",
		"DELETE FROM S.$t WHERE id > 10000",
		"MERGE INTO S.$t x USING (SELECT $id AS id, 5 AS a) y ON x.id = y.id WHEN MATCHED AND x.a > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET a = y.a WHEN NOT MATCHED THEN INSERT (id, a, b) VALUES (y.id, y.a, 'merged')",
		"COPY S.$t (id, a, b) FROM PROGRAM 'seq -f ''%.0f,3,copied'' " . ($n + 300000) . ' ' . ($n + 300005) . "' (FORMAT csv)");
}

# what fails for one fails for the other
sub caught
{
	my ($sql) = @_;
	return "DO \$_\$ BEGIN BEGIN EXECUTE \$__\$$sql\$__\$; EXCEPTION WHEN unique_violation OR foreign_key_violation OR cardinality_violation THEN NULL; END; END \$_\$";
}

sub transaction
{
	my $level = one_of('READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE');
	my @sql = ("BEGIN ISOLATION LEVEL $level;");
	my $depth = 0;

	for (1 .. 1 + int(rand(7)))
	{
		my $what = rand;
		if ($what < 0.08)
		{
			push @sql, 'SAVEPOINT s' . ++$depth . ';';
		}
		elsif ($what < 0.14 && $depth > 0)
		{
			push @sql, "ROLLBACK TO s$depth;";
		}
		elsif ($what < 0.18 && $depth > 0)
		{
			push @sql, 'RELEASE s' . $depth-- . ';';
		}
		elsif ($what < 0.20)
		{
			push @sql, twins('TRUNCATE S.' . one_of(qw(t full_ nokey part)));
		}
		elsif ($what < 0.22)
		{
			my $t = one_of(qw(t full_));
			my $c = 'n' . ++$renamed;
			push @sql, twins(one_of("ALTER TABLE S.$t ADD COLUMN $c int DEFAULT 7", "ALTER TABLE S.$t ADD COLUMN $c text", "ALTER TABLE S.$t ADD COLUMN $c int GENERATED ALWAYS AS (a + 1) STORED", "ALTER TABLE S.$t DROP COLUMN IF EXISTS n" . int(rand(1 + $renamed)),
				"ALTER TABLE S.$t ALTER a TYPE bigint", "ALTER TABLE S.$t ALTER a TYPE int"));
		}
		else
		{
			push @sql, twins(caught(statement()));
		}
	}
	push @sql, rand() < 0.15 ? 'ROLLBACK;' : $level ne 'SERIALIZABLE' && rand() < 0.1 && "@sql" !~ /ALTER|TRUNCATE/ ? "PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p';" : 'COMMIT;';
	return join "\n", @sql;
}

# runs of changes of tables of one kind and of the other are the same
sub compare
{
	my ($name, @lines) = @_;
	my (@runs, $n);
	my $last = '';

	for (@lines)
	{
		my ($kind, $rest) = /^table ([hm])\.(.*)$/s;
		if (!defined $kind)
		{
			# (both tables of a TRUNCATE come in lines of their own)
			$last = '';
			push @runs, [$_];
			next;
		}
		push @runs, [$kind] if $kind ne $last;
		$last = $kind;
		# (a partitioned table's TRUNCATE names its partitions)
		push @{ $runs[-1] }, $rest =~ /TRUNCATE: / ? $rest =~ s/\b$kind\.//gr : $rest;
		$n++;
	}
	my ($bad, $pairs) = (0, 0);
	while (my $run = shift @runs)
	{
		my ($kind, @rows) = @$run;
		next if $kind !~ /^[hm]$/;
		my $other = shift @runs // ['none'];
		my ($second, @twins) = @$other;
		$pairs++;
		if ($kind ne 'h' || $second ne 'm' || join("\n", sort @rows) ne join("\n", sort @twins))
		{
			diag("$name: $kind: " . join("\n", map { substr($_, 0, 300) } @rows) . "\n$second: " . join("\n", map { substr($_, 0, 300) } @twins)) if $bad++ < 3;
			last if $kind ne 'h' || $second ne 'm';
		}
	}
	is($bad, 0, "$name: $pairs pairs of statements, " . ($n // 0) . ' changes');
	cmp_ok($pairs, '>', 20, "$name: they did something") if $name !~ /one/;
}

sub changes
{
	my ($slot, $options) = @_;
	my $out = $node->safe_psql('postgres', "SELECT encode(convert_to(data, 'UTF8'), 'hex') FROM pg_logical_slot_get_changes('$slot', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1'$options)");
	return map { pack 'H*', $_ } split /\n/, $out;
}

$node->safe_psql('postgres', "SELECT pg_create_logical_replication_slot('twins', 'test_decoding'), pg_create_logical_replication_slot('streamed', 'test_decoding'), pg_create_logical_replication_slot('two', 'test_decoding', false, true)");
for my $round (1 .. 4)
{
	my $script = join "\n", 'BEGIN;', twins(map { "INSERT INTO S.$_ SELECT FROM generate_series(1, 0)" =~ s/SELECT.*/$_ eq 'parent' ? "SELECT g, 'first' FROM generate_series(1, 60) g ON CONFLICT DO NOTHING" : "(id, a, b) SELECT g, g % 7, 'first' || g FROM generate_series(1, 60) g" . ($_ eq 'nokey' ? '' : ' ON CONFLICT DO NOTHING')/er } qw(parent t full_ none_ byx nokey)), 'COMMIT;',
	  map { transaction() } 1 .. 60;
	my ($ret, $out, $err) = $node->psql('postgres', $script, on_error_stop => 0);
	my @errors = grep { !/transaction is aborted|Invalid|no transaction/ } ($err =~ /ERROR:.*/g);
	diag("round $round: " . join("\n", @errors[ 0 .. ($#errors > 4 ? 4 : $#errors) ])) if @errors;
	$node->stop('immediate'), $node->start if $round == 2;
	compare("round $round", changes('twins', ''));
	compare("round $round, two-phase", changes('two', ''));
	my $sums = join ' UNION ALL ', map { "SELECT '$_', (SELECT md5(string_agg(x::text, ' ' ORDER BY x::text)) FROM h.$_ x) IS NOT DISTINCT FROM (SELECT md5(string_agg(x::text, ' ' ORDER BY x::text)) FROM m.$_ x)" } @tables;
	is($node->safe_psql('postgres', "SELECT * FROM ($sums) AS s (t, same) WHERE NOT same"), '', "round $round: the tables are the same");
}

# ------------------------------------------------------------ streams

$node->safe_psql('postgres', twins('TRUNCATE S.t'));
changes($_, '') for 'twins', 'streamed', 'two';
$node->safe_psql('postgres', 'BEGIN;' . twins("INSERT INTO S.t (id, b) SELECT g, repeat('long', 50) FROM generate_series(1, 2000) g", 'SAVEPOINT a') .
	  twins("UPDATE S.t SET a = 1") . 'ROLLBACK TO a;' . twins("UPDATE S.t SET a = 2 WHERE id <= 1000", "DELETE FROM S.t WHERE id > 1900") . 'COMMIT');
my @streamed = changes('streamed', ", 'stream-changes', '1'");
cmp_ok(scalar(grep { /^opening a streamed block/ } @streamed), '>', 1, 'a large transaction is streamed in blocks');
my @spilled = changes('twins', '');
compare('one that is spilled', @spilled);
is(scalar(grep { /^table m\.t: INSERT/ } @spilled), 2000, 'all of it');
is(scalar(grep { /^table m\.t: UPDATE/ } @spilled), 1000, '... but what was rolled back to a savepoint');
changes('two', '');

# ------------------------------------------------------------ 1 MB

my @long_ones = ("INSERT INTO S.full_ (id, b) VALUES (-1, (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 40000) g))", "UPDATE S.full_ SET a = 3 WHERE id = -1", "DELETE FROM S.full_ WHERE id = -1");
$node->safe_psql('postgres', 'BEGIN;' . twins($long_ones[0]) . 'COMMIT');
my @long = changes('twins', '');
compare('one of a megabyte', @long);
cmp_ok(length($long[1] // ''), '>', 1_000_000, 'rows of a megabyte');
# (of a heap table's row, what lies out of line comes only if it has changed)
$node->safe_psql('postgres', twins($long_ones[1]));
my ($whole) = grep { /^table m/ } changes('twins', '');
cmp_ok(length($whole), '>', 2_500_000, '... old and new');
$node->safe_psql('postgres', 'BEGIN;' . twins($long_ones[2]) . 'COMMIT');
compare('one of a megabyte, deleted', changes('twins', ''));

# ------------------------------------------------------------ what is not logged

$node->safe_psql(
	'postgres', q{CREATE UNLOGGED TABLE u (id int PRIMARY KEY) USING mot; INSERT INTO u VALUES (1); CREATE FOREIGN TABLE f (id int PRIMARY KEY) SERVER mot_server; INSERT INTO f VALUES (1);
	ALTER TABLE m.parent ALTER v TYPE varchar USING v || 'x'; CLUSTER m.parent USING parent_pkey; VACUUM FULL m.parent; REINDEX TABLE m.parent; CREATE INDEX ON m.parent ((id + 1))});
is(join("\n", grep { /^table/ } changes('twins', '')), '', 'unlogged and foreign tables, and rows that are stored anew');
$node->safe_psql('postgres', 'CREATE TABLE made USING mot AS SELECT g FROM generate_series(1, 3) g');
is(join("\n", grep { /^table/ } changes('twins', '')), join("\n", map { "table public.made: INSERT: g[integer]:$_" } 1 .. 3), 'CREATE TABLE AS');
$node->safe_psql('postgres', "BEGIN; SELECT pg_replication_origin_create('elsewhere'); COMMIT");
$node->safe_psql('postgres', "SELECT pg_replication_origin_session_setup('elsewhere'); INSERT INTO made VALUES (4)");
is(join("\n", grep { /^table/ } changes('twins', ", 'only-local', '1'")), '', 'what comes from elsewhere can be left out');
$node->safe_psql('postgres', "SELECT pg_drop_replication_slot(s) FROM unnest(ARRAY['twins', 'streamed', 'two']) s");

# ------------------------------------------------------------ a subscriber

my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical');
$subscriber->append_conf('postgresql.conf', "fsync = off\nautovacuum = off\nwal_retrieve_retry_interval = '100ms'");
$subscriber->start;
my $ddl = 'CREATE SCHEMA h; CREATE SCHEMA m;';
for my $s ('h', 'm')
{
	$node->safe_psql('postgres', "DROP SCHEMA $s CASCADE; CREATE SCHEMA $s");
}
my @published = twins('CREATE TABLE S.acc (id int PRIMARY KEY, v int, b text) USING X', 'CREATE TABLE S.whole (id int, v int, b text) USING X', 'ALTER TABLE S.whole REPLICA IDENTITY FULL',
	'CREATE TABLE S.listed (id int PRIMARY KEY, v int, hidden text) USING X', 'CREATE TABLE S.some (id int, v int, PRIMARY KEY (id, v)) USING X',
	'CREATE TABLE S.p (id int PRIMARY KEY, v int) PARTITION BY HASH (id)', 'CREATE TABLE S.p1 PARTITION OF S.p FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING X',
	'CREATE TABLE S.p2 PARTITION OF S.p FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING X');
$node->safe_psql('postgres', "@published");
(my $there = "@published") =~ s/ USING (heap|mot)//g;
$there =~ s/PARTITION BY HASH \(id\)//g;
$there =~ s/CREATE TABLE \w\.p\d PARTITION[^;]*;//g;
$subscriber->safe_psql('postgres', "$ddl $there");
$node->safe_psql('postgres', 'CREATE PUBLICATION pub FOR TABLE ' . join(', ', map { ("$_.acc", "$_.whole", "$_.listed (id, v)", "$_.some WHERE (v % 2 = 0)", "$_.p") } 'h', 'm') . ' WITH (publish_via_partition_root = true)');
my $connstr = $node->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connstr' PUBLICATION pub WITH (copy_data = false, streaming = on)");
$subscriber->poll_query_until('postgres', "SELECT count(*) = 10 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel") or die 'no subscription';

my $load = q{
\set id random(1, 200)
\set v random(1, 1000000)
BEGIN;
} . join('', map { my $s = $_; qq{
INSERT INTO $s.acc VALUES (:id, :v, repeat('b', :id)) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
UPDATE $s.acc SET b = b || 'x' WHERE id = (:id + 1) % 200;
DELETE FROM $s.acc WHERE id = (:id + 7) % 200;
INSERT INTO $s.whole VALUES (:id, :v);
UPDATE $s.whole SET b = 'changed' WHERE id = :id AND v < 500000;
DELETE FROM $s.whole WHERE id = (:id + 3) % 200;
INSERT INTO $s.listed VALUES (:id, :v, 'hidden') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
UPDATE $s.some SET v = v + 1 WHERE id = :id;
INSERT INTO $s.some VALUES (:id, :v);
INSERT INTO $s.p VALUES (:id, :v) ON CONFLICT DO NOTHING;
UPDATE $s.p SET id = id + 1000 WHERE id = :id AND :v % 10 = 0 AND NOT EXISTS (SELECT FROM $s.p WHERE id = :id + 1000);
} } 'h', 'm') . "COMMIT;\n";
my $file = $node->basedir . '/load.sql';
append_to_file($file, $load);

sub run_load
{
	my ($seconds) = @_;
	return IPC::Run::start(
		[ 'pgbench', '-n', '-M', 'prepared', '-c', '4', '-T', $seconds, '--max-tries=100', '-f', $file, '-h', $node->host, '-p', $node->port, 'postgres' ],
		'>', '/dev/null', '2>', '/dev/null');
}

sub same
{
	my ($name) = @_;
	$node->wait_for_catchup('sub');
	my @differ;
	for my $t ('acc', 'whole', 'listed', 'some', 'p')
	{
		for my $s ('h', 'm')
		{
			my $columns = $t eq 'listed' ? '(id, v)' : 'x';
			my $where = $t eq 'some' ? 'WHERE v % 2 = 0' : '';
			my $sql = "SELECT count(*), md5(string_agg($columns\::text, ' ' ORDER BY $columns\::text)) FROM $s.$t x $where";
			my $here = $node->safe_psql('postgres', $sql);
			push @differ, "$s.$t: $here, " . $subscriber->safe_psql('postgres', $sql) if $here ne $subscriber->safe_psql('postgres', $sql);
			push @differ, "$s.$t is empty" if $here =~ /^0\|/;
		}
	}
	is(join("\n", @differ), '', $name);
}

my $h = run_load(5);
$h->finish;
same('under load');
$h = run_load(20);
sleep 3;
$node->stop('immediate');
$h->finish;
$node->start;
same('after an immediate stop');
$h = run_load(5);
sleep 1;
$subscriber->stop('immediate');
$subscriber->start;
$h->finish;
same('after one of the subscriber');
$node->restart;
$node->safe_psql('postgres', twins('UPDATE S.acc SET v = v + 1', 'TRUNCATE S.whole', "COPY S.whole FROM PROGRAM 'seq -f ''%.0f	1	x'' 1 3000'"));
same('after a restart, with a change of all rows, TRUNCATE and COPY');
$node->safe_psql('postgres', twins(q{COPY S.whole FROM PROGRAM 'perl -e ''printf qq{%d\t2\t%s\n}, $_, q{x} x ($_ % 1500 ? 100 : 100000) for 10001 .. 13000'''}));
same('after COPY of rows of which some share a record, and some are too large for that');

# ------------------------------------------------------- what is said of records

$node->safe_psql('postgres', 'CREATE EXTENSION pg_walinspect; CREATE TABLE m.told (id int PRIMARY KEY, v text) USING mot');
my $told_from = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$node->safe_psql('postgres', q{
	INSERT INTO m.told VALUES (1, 'one');
	COPY m.told FROM PROGRAM 'seq -f "%.0f	more" 2 10';
	UPDATE m.told SET v = 'another' WHERE id = 2;
	DELETE FROM m.told WHERE id = 3});
my $told_to = $node->safe_psql('postgres', 'SELECT pg_logical_emit_message(true, $$a$$, $$end$$)');
is($node->safe_psql('postgres', qq{
	SELECT string_agg(regexp_replace(regexp_replace(description, 'rel [0-9]+/[0-9]+/[0-9]+', 'rel'), '[0-9]+ bytes', 'bytes'), ' | ' ORDER BY start_lsn)
	FROM pg_get_wal_records_info('$told_from', '$told_to') WHERE resource_manager = 'mot' AND record_type = 'CHANGES'}),
	'rel; insert, bytes | rel; insert, bytes; 8 more | rel; update, bytes | rel; delete, bytes', 'records of changes are described');

# ------------------------------------------------------------ without an identity

my ($ret, $out, $err);
$node->safe_psql('postgres', 'CREATE TABLE bare (id int) USING mot; INSERT INTO bare VALUES (1)');
is($node->safe_psql('postgres', "PREPARE u AS UPDATE bare SET id = id + 1;" . 'EXECUTE u;' x 8 . 'SELECT id FROM bare'), 9, 'a table that nobody publishes');
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query('PREPARE u AS UPDATE bare SET id = id + 1; PREPARE d AS DELETE FROM bare; PREPARE i AS INSERT INTO bare VALUES (5)');
$session->query('EXECUTE u') for 1 .. 8;
$node->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE bare');
$session->query('EXECUTE u');
$session->query('EXECUTE d');
$session->query('EXECUTE i');
is($node->safe_psql('postgres', 'SELECT count(*), min(id) FROM bare'), '2|5', 'published, its rows are not changed or deleted without an identity');
like($session->{stderr}, qr/cannot update table "bare" because it does not have a replica identity and publishes updates/, '... as of a heap table');
$session->quit;
$node->safe_psql('postgres', 'ALTER TABLE bare REPLICA IDENTITY FULL; UPDATE bare SET id = 0');

$subscriber->stop;
$node->stop;
done_testing();
