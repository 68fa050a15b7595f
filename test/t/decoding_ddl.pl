# What logical decoding finds of ordinary tables beside DDL, old identities, long values, triggers
# and all that changes rows by another way than a plain statement: the same scripts run on a heap
# table and on its twin in memory, and test_decoding and pgoutput say the same of both.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('publisher');
$node->init(allows_streaming => 'logical');
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
mot.jit_prepare_above_executions = 1
max_prepared_transactions = 10
logical_decoding_work_mem = '64kB'
wal_sender_timeout = 0
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot');
my $version = $node->safe_psql('postgres', 'SHOW server_version_num') + 0;

# name, what is there before, and what is decoded; XAM: the access method, OTHER: the other one
my @scripts = (
	[ 'an identity whose columns get the values that they have',
		q{CREATE TABLE t (k text NOT NULL, n numeric NOT NULL, v int, PRIMARY KEY (k, n)) USING XAM; INSERT INTO t VALUES ('abc', 1.50, 1), (repeat('long', 100), 2, 2);},
		q{UPDATE t SET k = 'abc', v = 2 WHERE v = 1; UPDATE t SET k = k || '', v = 3 WHERE v = 2; UPDATE t SET n = n + 0; UPDATE t SET k = k || 'x'; UPDATE t SET n = 1.5 WHERE n = 1.50;} ],
	[ 'identities changed within a transaction',
		q{CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL, c text, UNIQUE (b)) USING XAM; INSERT INTO t SELECT i, i, 'c' FROM generate_series(1, 4) i;},
		q{BEGIN; UPDATE t SET c = 'd'; UPDATE t SET b = b + 10; ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET c = 'e'; DELETE FROM t WHERE a = 1; SAVEPOINT a; ALTER TABLE t REPLICA IDENTITY USING INDEX t_b_key;
		UPDATE t SET b = b + 10 WHERE a = 2; UPDATE t SET a = a + 10 WHERE a = 2; DELETE FROM t WHERE a = 12; ROLLBACK TO a; UPDATE t SET b = 5 WHERE a = 2; ALTER TABLE t REPLICA IDENTITY NOTHING; UPDATE t SET a = 50 WHERE a = 3; DELETE FROM t; COMMIT;
		INSERT INTO t VALUES (1, 1, 'x'); ALTER TABLE t REPLICA IDENTITY DEFAULT; UPDATE t SET c = 'y'; ALTER TABLE t DROP CONSTRAINT t_pkey; UPDATE t SET c = 'z'; DELETE FROM t;} ],
	[ 'an identity that goes, and a deferrable one',
		q{CREATE TABLE t (a int NOT NULL, b int, c text) USING XAM; CREATE UNIQUE INDEX i ON t (a); ALTER TABLE t REPLICA IDENTITY USING INDEX i; INSERT INTO t VALUES (1, 1, 'c'), (2, 2, 'd');
		CREATE TABLE d (a int PRIMARY KEY DEFERRABLE, b int) USING XAM; INSERT INTO d VALUES (1, 1), (2, 2);},
		q{UPDATE t SET a = a + 5; DROP INDEX i; UPDATE t SET a = a + 5; DELETE FROM t WHERE b = 1; ALTER TABLE t ADD PRIMARY KEY (a); UPDATE t SET a = a + 5; UPDATE d SET a = a + 1; DELETE FROM d WHERE b = 1;} ],
	[ 'columns that come and go, the identity among them',
		q{CREATE TABLE t (id int PRIMARY KEY, gone int, a text, b int NOT NULL DEFAULT 3) USING XAM; INSERT INTO t SELECT i, i, 'a' || i FROM generate_series(1, 4) i; ALTER TABLE t REPLICA IDENTITY FULL;},
		q{ALTER TABLE t DROP COLUMN gone; UPDATE t SET a = 'x' WHERE id = 1; ALTER TABLE t ADD COLUMN n int DEFAULT 7, ADD COLUMN o text DEFAULT 'old'; UPDATE t SET a = 'y' WHERE id = 2; UPDATE t SET o = NULL WHERE id = 2; DELETE FROM t WHERE id = 3;
		ALTER TABLE t ADD COLUMN r float8 DEFAULT random() * 0; UPDATE t SET b = 4; BEGIN; ALTER TABLE t DROP COLUMN n; UPDATE t SET b = 5; ROLLBACK; UPDATE t SET b = 6 WHERE id = 1;
		ALTER TABLE t ALTER b TYPE text USING b || 'text'; UPDATE t SET b = b || 'x' WHERE id = 1; ALTER TABLE t REPLICA IDENTITY DEFAULT; ALTER TABLE t RENAME id TO key; UPDATE t SET key = key + 10 WHERE key = 1; ALTER TABLE t RENAME TO u; DELETE FROM u; ALTER TABLE u RENAME TO t;} ],
	[ 'access methods that change',
		q{CREATE TABLE t (id int PRIMARY KEY, a text) USING XAM; INSERT INTO t SELECT i, 'a' || i FROM generate_series(1, 3) i;},
		q{UPDATE t SET a = 'x' WHERE id = 1; ALTER TABLE t SET ACCESS METHOD OTHER; UPDATE t SET a = 'y' WHERE id = 1; BEGIN; INSERT INTO t VALUES (5, '5'); ALTER TABLE t SET ACCESS METHOD XAM; INSERT INTO t VALUES (6, '6'); SAVEPOINT a; UPDATE t SET id = 7 WHERE id = 6;
		ALTER TABLE t SET ACCESS METHOD OTHER; DELETE FROM t WHERE id = 7; ROLLBACK TO a; DELETE FROM t WHERE id = 5; COMMIT; UPDATE t SET a = 'z';} ],
	[ 'tables of the same transaction',
		'',
		q{BEGIN; CREATE TABLE t (id int PRIMARY KEY, a text) USING XAM; INSERT INTO t VALUES (1, 'a'); UPDATE t SET id = 2; TRUNCATE t; INSERT INTO t VALUES (3, 'b'); ALTER TABLE t ADD COLUMN n int DEFAULT 5; INSERT INTO t VALUES (4, 'c'); ALTER TABLE t ALTER n TYPE bigint; UPDATE t SET n = 8 WHERE id = 3; COMMIT;
		BEGIN; CREATE TABLE u USING XAM AS SELECT * FROM t; DELETE FROM u; DROP TABLE u; INSERT INTO t VALUES (9, 'd', 1); COMMIT; SELECT * INTO v FROM t; DROP TABLE v; CREATE MATERIALIZED VIEW w USING XAM AS SELECT * FROM t; CREATE UNIQUE INDEX ON w (id); INSERT INTO t VALUES (10, 'e', 1); REFRESH MATERIALIZED VIEW w; DELETE FROM t WHERE id = 3; REFRESH MATERIALIZED VIEW CONCURRENTLY w; DROP MATERIALIZED VIEW w;} ],
	[ 'TRUNCATE in all forms',
		q{CREATE TABLE t (id serial PRIMARY KEY, a int) USING XAM; CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t) USING XAM; CREATE TABLE u (a int) USING XAM; INSERT INTO t (a) VALUES (1), (2); INSERT INTO c VALUES (1, 1); INSERT INTO u VALUES (1);},
		q{BEGIN; INSERT INTO t (a) VALUES (3); TRUNCATE t CASCADE; INSERT INTO t (a) VALUES (4); COMMIT; TRUNCATE t, c, u RESTART IDENTITY; INSERT INTO t (a) VALUES (5); BEGIN; SAVEPOINT a; TRUNCATE u; INSERT INTO u VALUES (7); ROLLBACK TO a; INSERT INTO u VALUES (8); TRUNCATE ONLY u; TRUNCATE u; INSERT INTO u VALUES (9); COMMIT;} ],
	[ 'triggers, foreign keys, rules and generated columns',
		q{CREATE TABLE p (id int PRIMARY KEY, a text) USING XAM; CREATE TABLE c (id int PRIMARY KEY, p int DEFAULT 1 REFERENCES p ON DELETE SET DEFAULT ON UPDATE CASCADE, g text GENERATED ALWAYS AS ('g' || id) STORED) USING XAM; CREATE TABLE log (n serial, what text) USING OTHER;
		INSERT INTO p SELECT i, 'a' FROM generate_series(1, 4) i; INSERT INTO c (id, p) SELECT i, i FROM generate_series(1, 4) i;
		CREATE FUNCTION tr() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log (what) VALUES (TG_OP || TG_WHEN || coalesce(NEW.id, OLD.id)); IF TG_WHEN = 'BEFORE' AND TG_OP = 'UPDATE' THEN NEW.a := NEW.a || 't'; IF NEW.id = 3 THEN RETURN NULL; END IF; END IF; RETURN coalesce(NEW, OLD); END $$;
		CREATE TRIGGER b BEFORE INSERT OR UPDATE OR DELETE ON p FOR EACH ROW EXECUTE FUNCTION tr(); CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON p FOR EACH ROW EXECUTE FUNCTION tr();},
		q{UPDATE p SET id = id + 10 WHERE id > 1; UPDATE p SET a = 'x'; DELETE FROM p WHERE id = 12; INSERT INTO p VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET a = 'upd'; INSERT INTO p VALUES (40, 'new') ON CONFLICT DO NOTHING; INSERT INTO p VALUES (1, 'new') ON CONFLICT DO NOTHING; UPDATE c SET id = id + 100; DELETE FROM p WHERE id = 40;} ],
	[ 'partitions',
		q{CREATE TABLE t (id int, k int, v text, PRIMARY KEY (k, id)) PARTITION BY RANGE (k); CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10) USING XAM; CREATE TABLE t2 (v text, gone int, k int NOT NULL, id int NOT NULL) USING XAM; ALTER TABLE t2 DROP COLUMN gone; ALTER TABLE t ATTACH PARTITION t2 FOR VALUES FROM (10) TO (20); CREATE TABLE t3 PARTITION OF t DEFAULT USING OTHER;},
		q{INSERT INTO t VALUES (1, 5, 'a'), (2, 15, 'b'), (3, 25, 'c'); UPDATE t SET k = k + 10; UPDATE t SET v = 'x'; INSERT INTO t VALUES (1, 15, 'a') ON CONFLICT (k, id) DO UPDATE SET v = 'upd'; BEGIN; ALTER TABLE t DETACH PARTITION t2; UPDATE t2 SET v = 'alone'; UPDATE t SET v = 'others'; ALTER TABLE t ATTACH PARTITION t2 FOR VALUES FROM (10) TO (20); COMMIT; DELETE FROM t WHERE k > 30; MERGE INTO t USING (SELECT 1 AS id, 15 AS k UNION ALL SELECT 9, 9) s ON t.id = s.id AND t.k = s.k WHEN MATCHED THEN UPDATE SET k = 5 WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.k, 'm'); TRUNCATE t;} ],
	[ 'cursors, writing WITH, RETURNING, ctids',
		q{CREATE TABLE t (id int PRIMARY KEY, a int, b text) USING XAM; INSERT INTO t SELECT i, i, 'b' FROM generate_series(1, 6) i;},
		q{BEGIN; DECLARE c CURSOR FOR SELECT * FROM t WHERE id IN (2, 3) FOR UPDATE; FETCH c; UPDATE t SET a = 20 WHERE CURRENT OF c; FETCH c; DELETE FROM t WHERE CURRENT OF c; COMMIT; WITH d AS (DELETE FROM t WHERE id = 4 RETURNING *), i AS (INSERT INTO t SELECT id + 10, a, b FROM d RETURNING id) UPDATE t SET b = (SELECT id::text FROM i) WHERE id = 5; UPDATE t SET a = 9 WHERE ctid = (SELECT ctid FROM t WHERE id = 1); DELETE FROM t WHERE id = 1 OR id = 2;
		BEGIN; LOCK t; SELECT * FROM t FOR UPDATE; SELECT * FROM t FOR SHARE; COMMIT; BEGIN; SELECT * FROM t FOR KEY SHARE OF t NOWAIT; ROLLBACK; UPDATE t SET a = 1 WHERE false; COPY t FROM PROGRAM 'seq -f "%.0f,1,copied" 100 104' (FORMAT csv); COPY t (id) FROM PROGRAM 'seq 200 202' (FORMAT csv, FREEZE false);} ],
	[ 'many subtransactions',
		q{CREATE TABLE t (id int PRIMARY KEY, a int) USING XAM; CREATE FUNCTION one(i int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (i, 0); IF i % 3 = 0 THEN RAISE 'no'; END IF; UPDATE t SET a = a + 1 WHERE id = i; EXCEPTION WHEN raise_exception THEN INSERT INTO t VALUES (-i, 1); END $$;},
		q{BEGIN; SELECT count(one(i)) FROM generate_series(1, 500) i; SAVEPOINT a; SAVEPOINT b; UPDATE t SET a = 3 WHERE id < 100; RELEASE b; DELETE FROM t WHERE id > 400; ROLLBACK TO a; SAVEPOINT c; DELETE FROM t WHERE id > 450; RELEASE c; COMMIT;} ],
	[ 'types, domains, composites, null and empty values',
		q{CREATE TYPE e AS ENUM ('x', 'y'); CREATE TYPE ct AS (a int, b text, c numeric[]); CREATE DOMAIN dm AS text CHECK (value <> 'bad'); CREATE TABLE t (id int PRIMARY KEY, e e, c ct, d dm, b bit varying, n name, ch char(5), i interval, r int4range, j jsonb, f float8, o oid, x xid, bo bool, c1 "char", u uuid, m macaddr8, p point, ts tsvector, em text, ar text[][]) USING XAM; ALTER TABLE t REPLICA IDENTITY FULL;},
		q{INSERT INTO t VALUES (1, 'x', ROW(1, 'b', '{1.5,NULL}'), 'd', B'101', 'name', 'ch', '1 day', '[1,5)', '{"a": [1, null]}', 'NaN', 5, '7', true, 'c', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '08:00:2b:01:02:03:04:05', '(1,2)', 'a b c', '', '{{a,NULL},{"",d}}'); INSERT INTO t (id) VALUES (2); UPDATE t SET c.b = repeat('z', 3000), j = j || jsonb_build_object('k', repeat('y', 5000)), ar = ar || ARRAY[['p', 'q']]; UPDATE t SET c = NULL, e = 'y', em = NULL; ALTER TYPE e RENAME VALUE 'y' TO 'yy'; UPDATE t SET id = id + 1 WHERE id = 2; ALTER TYPE ct ADD ATTRIBUTE d int; UPDATE t SET c = ROW(1, 'b', '{}', 4); ALTER TYPE e ADD VALUE 'z'; UPDATE t SET e = 'z'; DELETE FROM t;} ],
	[ 'two-phase commit',
		q{CREATE TABLE t (id int PRIMARY KEY, a int) USING XAM;},
		q{BEGIN; INSERT INTO t VALUES (1, 1); PREPARE TRANSACTION 'a'; BEGIN; INSERT INTO t VALUES (2, 1); SAVEPOINT s; INSERT INTO t VALUES (3, 3); ROLLBACK TO s; PREPARE TRANSACTION 'b'; COMMIT PREPARED 'b'; ROLLBACK PREPARED 'a'; BEGIN; UPDATE t SET a = 5; PREPARE TRANSACTION 'c'; INSERT INTO t VALUES (10, 10); COMMIT PREPARED 'c';} ],
	[ 'where rows are stored anew, beside changes',
		q{CREATE TABLE t (id int PRIMARY KEY, a int, b text) USING XAM; INSERT INTO t SELECT i, i, 'b' FROM generate_series(1, 3) i;},
		q{BEGIN; UPDATE t SET a = 5 WHERE id = 1; ALTER TABLE t ALTER a TYPE bigint; UPDATE t SET a = 6 WHERE id = 1; CLUSTER t USING t_pkey; UPDATE t SET a = 7 WHERE id = 1; ALTER TABLE t SET UNLOGGED; COMMIT; UPDATE t SET a = 8; ALTER TABLE t SET LOGGED; UPDATE t SET a = 9 WHERE id = 1; VACUUM FULL t; DELETE FROM t WHERE id = 2; ALTER TABLE t ALTER b SET STORAGE external, ALTER b SET NOT NULL; REINDEX TABLE t; UPDATE t SET a = 10; ALTER TABLE t ADD CONSTRAINT u UNIQUE (a, id); UPDATE t SET a = 11; } ],
	[ 'messages, and sequences beside',
		q{CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int) USING XAM;},
		q{BEGIN; INSERT INTO t (a) VALUES (1); SELECT pg_logical_emit_message(true, 'pre', 'between'); INSERT INTO t (a) VALUES (2); SELECT pg_logical_emit_message(false, 'pre', 'not in it'); COMMIT; BEGIN; INSERT INTO t (a) VALUES (3); SELECT pg_logical_emit_message(true, 'pre', 'lost'); ROLLBACK;} ]);

# pgoutput's messages without what differs: oids, positions, times and xids
sub readable
{
	my ($hex) = @_;
	my $bytes = pack 'H*', $hex;
	my $kind = substr $bytes, 0, 1;

	return $kind if $kind =~ /[BCSbPKrp]/;
	return 'R ' . unpack('H*', substr $bytes, 5) =~ s/0000[4-9a-f][0-9a-f]{3}/type/gr if $kind eq 'R';
	return 'T ' . unpack('N C', substr $bytes, 1) if $kind eq 'T';
	return "$kind " . unpack('H*', substr $bytes, 5);
}

# The rows of a statement come in the order in which its scan finds them, which is not the same; and
# what the server says of a table it may say again.
sub ordered
{
	my (@lines, %said);
	my ($last, @run) = ('');

	for (split /\n/, $_[0])
	{
		next if /^R / && $said{$_}++;
		my ($kind) = /^(table \S+ \w+:|[IUD] )/;
		$kind //= '';
		push(@lines, sort @run), @run = () if $kind ne $last;
		$last = $kind;
		push @run, $_;
	}
	return (@lines, sort @run);
}

sub run_script
{
	my ($xam, $before, $script, $name) = @_;
	my $other = $xam eq 'heap' ? 'mot' : 'heap';
	my $schema = 'CREATE SCHEMA s; SET search_path = s;';

	s/\bXAM\b/$xam/g, s/\bOTHER\b/$other/g for $before, $script;
	$node->safe_psql('postgres', "$schema SET default_table_access_method = $xam; $before");
	$node->safe_psql('postgres', "CREATE PUBLICATION p FOR ALL TABLES; SELECT pg_create_logical_replication_slot('text', 'test_decoding'), pg_create_logical_replication_slot('binary', 'pgoutput'), pg_create_logical_replication_slot('two', 'test_decoding', false, true), pg_create_logical_replication_slot('stream', 'test_decoding')");
	# (a publication for all tables would have none changed that has no identity)
	$node->safe_psql('postgres', "ALTER PUBLICATION p SET (publish = 'insert, truncate')") if $name =~ /identit|columns|tables|cursors|stored/;
	my ($ret, $out, $err) = $node->psql('postgres', "SET search_path = s; SET default_table_access_method = $xam; SET plan_cache_mode = force_generic_plan; $script", on_error_stop => 0);
	my $options = "'include-xids', '0', 'skip-empty-xacts', '1'";
	my %got = (errors => join("\n", $err =~ /(?:ERROR|WARNING): .*/g));
	$got{text} = $node->safe_psql('postgres', "SELECT data FROM pg_logical_slot_get_changes('text', NULL, NULL, $options, 'include-rewrites', '0')");
	$got{two} = $node->safe_psql('postgres', "SELECT data FROM pg_logical_slot_get_changes('two', NULL, NULL, $options)");
	$got{stream} = $node->safe_psql('postgres', "SELECT data FROM pg_logical_slot_get_changes('stream', NULL, NULL, $options, 'stream-changes', '1')");
	$got{binary} = join "\n", map { readable($_) } split /\n/, $node->safe_psql('postgres', "SELECT encode(data, 'hex') FROM pg_logical_slot_get_binary_changes('binary', NULL, NULL, 'proto_version', '1', 'publication_names', 'p')");
	$got{rows} = $node->safe_psql('postgres', "SET search_path = s; SELECT t FROM t ORDER BY t::text") if $script =~ /\bt\b/;
	s/\b\d{5,}\b/N/g, s/_\d{5,}\b/_N/g for $got{text}, $got{two}, $got{stream}, $got{errors};
	$node->safe_psql('postgres', "DROP PUBLICATION p; DROP SCHEMA s CASCADE; SELECT pg_drop_replication_slot(s) FROM unnest(ARRAY['text', 'two', 'binary', 'stream']) s");
	return %got;
}

for (@scripts)
{
	my ($name, $before, $script) = @$_;
	my %heap = run_script('heap', $before, $script, $name);
	my %mot = run_script('mot', $before, $script, $name);

	for (sort keys %heap)
	{
		my @lines = ordered($heap{$_});
		my @twins = ordered($mot{$_});
		my $n = 0;
		$n++ while $n < @lines && $n < @twins && $lines[$n] eq $twins[$n];
		is(substr($twins[$n] // '', 0, 2000), substr($lines[$n] // '', 0, 2000), "$name: $_, of " . @lines . ' lines');
	}
	cmp_ok(scalar(() = $heap{text} =~ /^table/mg), '>', 1, "$name: there were changes");
}

$node->stop;
done_testing();
