-- Ordinary tables: CREATE TABLE ... USING mot, beside a heap twin wherever the
-- answer should be the same.
CREATE FUNCTION tb_twins(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text[];
	one text;
	code text;
	message text;
	detail text;
BEGIN
	FOREACH one IN ARRAY ARRAY['heap', 'mot'] LOOP
		BEGIN
			EXECUTE 'SET LOCAL search_path = tb_' || one || ', public';
			EXECUTE 'SELECT string_agg(r::text, '' '') FROM (' || statement || ') r' INTO message;
			answer := answer || coalesce(message, 'nothing');
		EXCEPTION WHEN others THEN
			GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
			answer := answer || (code || ' ' || message || ' ' || coalesce(detail, ''));
		END;
	END LOOP;
	IF answer[1] IS DISTINCT FROM answer[2] THEN
		RETURN 'heap: ' || answer[1] || E'\nmot: ' || answer[2];
	END IF;
	RETURN answer[2];
END $$;

-- the same for a statement that changes things
CREATE FUNCTION tb_both(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text[];
	one text;
	n bigint;
	code text;
	message text;
	detail text;
BEGIN
	FOREACH one IN ARRAY ARRAY['heap', 'mot'] LOOP
		BEGIN
			EXECUTE 'SET LOCAL search_path = tb_' || one || ', public';
			EXECUTE replace(statement, 'ENGINE', one);
			GET DIAGNOSTICS n = ROW_COUNT;
			answer := answer || n::text;
		EXCEPTION WHEN others THEN
			GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
			answer := answer || (code || ' ' || message || ' ' || coalesce(detail, ''));
		END;
	END LOOP;
	IF answer[1] IS DISTINCT FROM answer[2] THEN
		RETURN 'heap: ' || answer[1] || E'\nmot: ' || answer[2];
	END IF;
	RETURN answer[2];
END $$;
CREATE SCHEMA tb_heap;
CREATE SCHEMA tb_mot;

-- rows
SELECT tb_both('CREATE TABLE t (a int, b text, c numeric) USING ENGINE');
SELECT relkind, amname FROM pg_class JOIN pg_am m ON m.oid = relam WHERE pg_class.oid = 'tb_mot.t'::regclass;
SELECT tb_both($$INSERT INTO t SELECT i, 'row ' || i, i * 1.5 FROM generate_series(1, 100) i$$);
SELECT tb_twins('SELECT count(*), sum(a), min(b), max(c) FROM t');
SELECT tb_both($$UPDATE t SET b = b || '!' WHERE a % 2 = 0$$);
SELECT tb_both('DELETE FROM t WHERE a > 50');
SELECT tb_twins('SELECT * FROM t WHERE a < 5 ORDER BY a');
SELECT tb_both($$WITH gone AS (DELETE FROM t WHERE a = 50 RETURNING *) INSERT INTO t SELECT a + 1000, b, c FROM gone$$);
SELECT tb_both($$UPDATE t SET c = t.a FROM t AS other WHERE t.a = other.a - 1$$);
SELECT tb_both('INSERT INTO t SELECT * FROM t');
SELECT tb_twins('SELECT count(*), sum(a), sum(c) FROM t');
SELECT tb_both('UPDATE t SET a = a + 1 WHERE a IN (SELECT a + 1 FROM t)');
SELECT tb_twins('SELECT count(*), sum(a), sum(c) FROM t');
SELECT tb_both($$INSERT INTO t VALUES (1, repeat('long ', 300000), 1)$$);
SELECT tb_twins('SELECT length(b), md5(b) FROM t WHERE length(b) > 1000');
SELECT count(*) FROM tb_mot.t TABLESAMPLE SYSTEM (100);
SELECT xmin FROM tb_mot.t LIMIT 1;
SELECT t.ctid IS NOT NULL, t.tableoid::regclass FROM tb_mot.t LIMIT 1;

-- a row by its tuple id
SELECT count(*) FROM tb_mot.t x JOIN tb_mot.t y ON x.ctid = y.ctid;
SELECT count(*) FROM tb_mot.t WHERE ctid IN ('(0,1)', '(4294967294,65535)', '(0,2)');
SELECT count(*) FROM (SELECT ctid AS id FROM tb_mot.t WHERE a = 7 LIMIT 1) s, LATERAL (SELECT * FROM tb_mot.t WHERE ctid = s.id) u;

-- savepoints, rollbacks
BEGIN;
SELECT tb_both('INSERT INTO t VALUES (2000)');
SAVEPOINT one;
SELECT tb_both('UPDATE t SET a = a + 1 WHERE a = 2000');
SELECT tb_both('DELETE FROM t WHERE a < 10');
SELECT tb_twins('SELECT count(*), max(a), min(a) FROM t');
ROLLBACK TO one;
SELECT tb_twins('SELECT count(*), max(a), min(a) FROM t');
TRUNCATE tb_mot.t;
SELECT count(*) FROM tb_mot.t;
INSERT INTO tb_mot.t VALUES (1);
SAVEPOINT two;
TRUNCATE tb_mot.t;
ROLLBACK TO two;
SELECT * FROM tb_mot.t;
ROLLBACK;
SELECT tb_twins('SELECT count(*), max(a), min(a) FROM t');
BEGIN;
CREATE TABLE tb_new (a int PRIMARY KEY) USING mot;
INSERT INTO tb_new VALUES (1);
SAVEPOINT one;
DROP TABLE tb_new;
ROLLBACK TO one;
SELECT * FROM tb_new;
TRUNCATE tb_new;
INSERT INTO tb_new VALUES (1), (2);
SELECT * FROM tb_new;
ROLLBACK;
SELECT relname FROM mot_stat_tables ORDER BY 1;

-- cursors go both ways
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a FROM tb_mot.t WHERE a < 20;
MOVE FORWARD ALL c;
MOVE BACKWARD ALL c;
FETCH 2 FROM c;
MOVE LAST FROM c;
FETCH 1 FROM c;
MOVE FIRST FROM c;
UPDATE tb_mot.t SET a = -1 WHERE CURRENT OF c;
UPDATE tb_mot.t SET a = a - 1 WHERE CURRENT OF c;
SELECT a FROM tb_mot.t WHERE a < 0;
DELETE FROM tb_mot.t WHERE CURRENT OF c;
DELETE FROM tb_mot.t WHERE CURRENT OF c;
ROLLBACK;

-- triggers see old and new, each version
CREATE TABLE tb_log (n serial, engine text, line text);
CREATE FUNCTION tb_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO tb_log (engine, line) VALUES (TG_TABLE_SCHEMA, TG_WHEN || ' ' || TG_OP || ' ' || coalesce(OLD::text, '-') || ' ' || coalesce(NEW::text, '-'));
	RETURN coalesce(NEW, OLD);
END $$;
SELECT tb_both('CREATE TABLE tr (a int, b int) USING ENGINE');
SELECT tb_both('CREATE TRIGGER b BEFORE INSERT OR UPDATE OR DELETE ON tr FOR EACH ROW EXECUTE FUNCTION tb_trigger()');
SELECT tb_both('CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON tr FOR EACH ROW EXECUTE FUNCTION tb_trigger()');
SELECT tb_both('CREATE CONSTRAINT TRIGGER d AFTER INSERT OR UPDATE OR DELETE ON tr DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tb_trigger()');
CREATE FUNCTION tb_story() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tb_both('INSERT INTO tr VALUES (1, 1), (2, 2)');
	PERFORM tb_both('UPDATE tr SET b = b + 1');
	PERFORM tb_both('UPDATE tr SET b = b + 1 WHERE a = 1');
	BEGIN
		PERFORM tb_both('UPDATE tr SET b = b + 100');
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
		PERFORM tb_both('UPDATE tr SET b = b + 1');
	END;
	PERFORM tb_both('DELETE FROM tr WHERE a = 2');
END $$;
BEGIN;
SELECT tb_story();
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT tb_story();
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT tb_story();
COMMIT;
SELECT count(*) FROM tb_log WHERE engine = 'tb_mot';
SELECT line, count(*) FILTER (WHERE engine = 'tb_heap') AS heap, count(*) FILTER (WHERE engine = 'tb_mot') AS mot FROM tb_log GROUP BY line
	HAVING count(*) FILTER (WHERE engine = 'tb_heap') <> count(*) FILTER (WHERE engine = 'tb_mot');
SELECT tb_twins('SELECT * FROM tr ORDER BY a, b');
CREATE FUNCTION tb_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO tb_log (engine, line) SELECT TG_TABLE_SCHEMA, 'old ' || count(*) || ' ' || sum(b) FROM o;
	INSERT INTO tb_log (engine, line) SELECT TG_TABLE_SCHEMA, 'new ' || count(*) || ' ' || sum(b) FROM n;
	RETURN NULL;
END $$;
SELECT tb_both('CREATE TRIGGER s AFTER UPDATE ON tr REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION tb_transition()');
TRUNCATE tb_log;
SELECT tb_both('UPDATE tr SET b = b * 2');
SELECT line, count(*) FROM tb_log GROUP BY line ORDER BY line;

-- keys and indexes: btree to everybody
SELECT tb_both($$CREATE TABLE k (id int PRIMARY KEY, v int, w text COLLATE "C", UNIQUE (v, w)) USING ENGINE$$);
SELECT tb_both('CREATE INDEX ON k (w DESC NULLS LAST, id)');
\d tb_mot.k
SELECT tb_both($$INSERT INTO k SELECT i, i % 50, nullif('w' || i % 37, 'w5') FROM generate_series(1, 500) i$$);
ANALYZE tb_heap.k, tb_mot.k;
EXPLAIN (COSTS OFF) SELECT * FROM tb_mot.k WHERE id = 7;
EXPLAIN (COSTS OFF) SELECT w, id FROM tb_mot.k ORDER BY w DESC NULLS LAST, id LIMIT 3;
SELECT tb_twins('SELECT * FROM k WHERE id = 7');
SELECT tb_twins('SELECT * FROM k WHERE id IN (3, 1, 7, NULL, 1000) ORDER BY id DESC');
SELECT tb_twins($$SELECT id FROM k WHERE w = 'w7' AND id < 100 ORDER BY id$$);
SELECT tb_twins('SELECT count(*), sum(id) FROM k WHERE w IS NULL');
SELECT tb_twins('SELECT count(*), sum(id) FROM k WHERE w IS NOT NULL AND id BETWEEN 10 AND 20');
SELECT tb_twins($$SELECT w, id FROM k WHERE w > 'w35' ORDER BY w DESC NULLS LAST, id LIMIT 7$$);
SELECT tb_twins($$SELECT id FROM k WHERE (v, w) > (8, 'w35') ORDER BY id LIMIT 7$$);
SELECT tb_twins($$SELECT id FROM k WHERE id > 495.5 ORDER BY id$$);
SELECT tb_twins('SELECT max(id), min(id) FROM k');
SELECT tb_twins('SELECT count(*) FROM k x JOIN k y USING (id) WHERE x.v = 3');
SELECT tb_twins($$SELECT count(*) FROM k x JOIN k y ON x.w = y.w WHERE x.id < 20$$);
SELECT tb_both($$INSERT INTO k VALUES (7, 7, 'seven')$$);
SELECT tb_both($$INSERT INTO k SELECT 1000, v, w FROM k WHERE id = 7$$);
SELECT tb_both('UPDATE k SET id = 8 WHERE id = 7');
SELECT tb_both('UPDATE k SET id = id + 1000');
SELECT tb_twins('SELECT count(*), min(id) FROM k WHERE id > 0');
SELECT tb_both($$INSERT INTO k VALUES (1001, 0, 'x') ON CONFLICT DO NOTHING$$);
SELECT tb_both($$INSERT INTO k VALUES (1001, 0, 'x'), (1, 1, 'new') ON CONFLICT (id) DO UPDATE SET w = excluded.w || k.v$$);
SELECT tb_both($$INSERT INTO k VALUES (2, 0, 'x'), (2, 1, 'y') ON CONFLICT (id) DO UPDATE SET w = 'twice'$$);
SELECT tb_both($$INSERT INTO k VALUES (2, 0, 'x'), (2, 1, 'y') ON CONFLICT (id) DO NOTHING$$);
SELECT tb_both($$INSERT INTO k VALUES (3, 0, 'x') ON CONFLICT (id) DO NOTHING$$);
SELECT tb_twins('SELECT * FROM k WHERE id < 1002 ORDER BY id');
SELECT tb_both('DELETE FROM k WHERE id > 1010');
SELECT tb_twins('SELECT count(*), sum(v) FROM k');
-- (entries of what has been deleted go when nobody can see it any more)
DO $$ BEGIN
	FOR i IN 1 .. 1800 LOOP
		EXIT WHEN (SELECT max(entries) = 12 FROM mot_verify('tb_mot.k'));
		PERFORM pg_sleep(0.1);
	END LOOP;
END $$;
SELECT (mot_verify('tb_mot.k')).*;

-- cursors on them go both ways, too
BEGIN;
SET LOCAL enable_seqscan = off;
DECLARE c SCROLL CURSOR FOR SELECT id FROM tb_mot.k WHERE id > 1000 ORDER BY id DESC;
FETCH 3 FROM c;
FETCH PRIOR FROM c;
FETCH PRIOR FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH BACKWARD 2 FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT id FROM tb_mot.k WHERE id = 1005;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
COMMIT;

-- what a column may be changes under its index
SELECT tb_both('CREATE TABLE n (id int, u varchar(10), UNIQUE (id, u)) USING ENGINE');
SELECT tb_both($$INSERT INTO n VALUES (1, 'a'), (NULL, 'b'), (NULL, 'b')$$);
SELECT tb_both('DELETE FROM n WHERE id IS NULL');
SELECT tb_both('ALTER TABLE n ALTER id SET NOT NULL');
SELECT tb_twins($$SELECT * FROM n WHERE id = 1 AND u = 'a'$$);
SELECT tb_both($$INSERT INTO n VALUES (1, 'a')$$);
SELECT tb_both('ALTER TABLE n ADD PRIMARY KEY (id)');
SELECT tb_both('ALTER TABLE n DROP CONSTRAINT n_pkey, ALTER id DROP NOT NULL');
SELECT tb_both($$INSERT INTO n VALUES (NULL, 'b'), (NULL, 'b')$$);
SELECT tb_both('ALTER TABLE n ALTER u TYPE varchar(20)');
SELECT tb_both($$INSERT INTO n VALUES (1, 'a')$$);
SELECT tb_both('ALTER TABLE n ALTER id TYPE bigint, ADD d int DEFAULT 5');
SELECT tb_both($$INSERT INTO n VALUES (1, 'a')$$);
SELECT tb_both('ALTER TABLE n DROP COLUMN u');
SELECT tb_twins('SELECT * FROM n ORDER BY id');
SELECT tb_both('ALTER TABLE n ADD CHECK (d > 5)');
SELECT (mot_verify('tb_mot.n')).*;
DROP TABLE tb_heap.n, tb_mot.n;

-- an index whose routine is not there is none that answers wrongly
CREATE FUNCTION mot_test_put_back(regclass) RETURNS void AS '$libdir/mot' LANGUAGE C STRICT;
SET plan_cache_mode = force_generic_plan;
PREPARE tb_one(int) AS SELECT id FROM tb_mot.k WHERE id = $1;
PREPARE tb_join(int) AS SELECT count(*) FROM tb_mot.k x, tb_mot.k y WHERE x.id = $1 AND y.id = x.id;
EXECUTE tb_one(1008);
EXECUTE tb_join(1008);
SELECT mot_test_put_back('tb_mot.k');
EXECUTE tb_one(1008);
SELECT mot_test_put_back('tb_mot.k');
EXECUTE tb_join(1008);
SELECT mot_test_put_back('tb_mot.k');
INSERT INTO tb_mot.k VALUES (1008, 1, 'one');
SELECT mot_test_put_back('tb_mot.k');
INSERT INTO tb_mot.k VALUES (1008, 1, 'one') ON CONFLICT DO NOTHING;
SELECT mot_test_put_back('tb_mot.k');
SELECT id FROM tb_mot.k WHERE id = 1008 AND v > 0;
DEALLOCATE tb_one;
DEALLOCATE tb_join;
RESET plan_cache_mode;
DROP FUNCTION mot_test_put_back;

-- a table moves in and out
SELECT tb_both($$CREATE TABLE m (id int PRIMARY KEY, v text UNIQUE) USING heap$$);
SELECT tb_both($$INSERT INTO m SELECT i, 'v' || i FROM generate_series(1, 100) i$$);
SELECT tb_both('ALTER TABLE m SET ACCESS METHOD ENGINE');
SELECT rows FROM mot_stat_tables WHERE relname = 'm';
SELECT tb_both($$INSERT INTO m VALUES (1000, 'v7')$$);
SELECT tb_both($$UPDATE m SET v = 'w' WHERE id = 7$$);
BEGIN;
ALTER TABLE tb_mot.m SET ACCESS METHOD heap;
INSERT INTO tb_mot.m VALUES (1000, 'v7');
SELECT * FROM tb_mot.m WHERE id = 7;
INSERT INTO tb_mot.m VALUES (1001, 'w');
ROLLBACK;
SELECT tb_both($$INSERT INTO m VALUES (1000, 'w')$$);
BEGIN;
ALTER TABLE tb_heap.m SET ACCESS METHOD mot;
INSERT INTO tb_heap.m VALUES (2000, 'v2000');
ROLLBACK;
SELECT tb_both($$INSERT INTO m VALUES (1000, 'w')$$);
ALTER TABLE tb_mot.m SET ACCESS METHOD heap;
SELECT tb_twins('SELECT count(*), min(v), max(v) FROM m');
SELECT count(*) FROM mot_stat_tables WHERE relname = 'm';

-- foreign keys
SELECT tb_both('CREATE TABLE parent (id int PRIMARY KEY) USING ENGINE');
SELECT tb_both('CREATE TABLE cold_parent (id int PRIMARY KEY) USING heap');
SELECT tb_both('CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent, c int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, n int REFERENCES cold_parent ON DELETE SET NULL) USING ENGINE');
SELECT tb_both('CREATE TABLE cold_child (id int PRIMARY KEY, p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED) USING heap');
SELECT tb_both('INSERT INTO parent SELECT generate_series(1, 9)');
SELECT tb_both('INSERT INTO cold_parent SELECT generate_series(1, 9)');
SELECT tb_both('INSERT INTO child VALUES (1, 1, 2, 3), (2, 4, 5, 6)');
SELECT tb_both('INSERT INTO child VALUES (3, 10, 1, 1)');
SELECT tb_both('INSERT INTO child VALUES (3, 1, 1, 10)');
SELECT tb_both('UPDATE child SET p = 10');
SELECT tb_both('DELETE FROM parent WHERE id = 1');
SELECT tb_both('UPDATE parent SET id = 11 WHERE id = 1');
SELECT tb_both('UPDATE parent SET id = id WHERE id = 1');
SELECT tb_both('DELETE FROM parent WHERE id = 5');
SELECT tb_both('UPDATE parent SET id = 22 WHERE id = 2');
SELECT tb_both('DELETE FROM cold_parent WHERE id = 3');
SELECT tb_twins('SELECT * FROM child ORDER BY id');
SELECT tb_both('INSERT INTO cold_child VALUES (1, 7)');
BEGIN;
SELECT tb_both('DELETE FROM parent WHERE id = 7');
SELECT tb_both('SET CONSTRAINTS ALL IMMEDIATE');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT tb_both('DELETE FROM parent WHERE id = 22');
SELECT tb_both('DELETE FROM parent WHERE id = 7');
SELECT tb_both('INSERT INTO child VALUES (9, 8, 8, 8)');
SELECT tb_both('UPDATE parent SET id = 80 WHERE id = 8');
SELECT tb_twins('SELECT * FROM child ORDER BY id');
COMMIT;
SELECT tb_both('TRUNCATE parent');
SELECT tb_both('TRUNCATE parent CASCADE');
SELECT tb_twins('SELECT count(*) FROM child');

-- row security, views, rules, MERGE, partitions, inheritance
SELECT tb_both('CREATE TABLE s (id int PRIMARY KEY, who text, v int) USING ENGINE');
SELECT tb_both($$INSERT INTO s SELECT i, CASE i % 2 WHEN 0 THEN 'tb_user' ELSE 'other' END, i FROM generate_series(1, 10) i$$);
SELECT tb_both($$MERGE INTO s USING (VALUES (1, 100), (77, 7)) x (id, v) ON s.id = x.id WHEN MATCHED THEN UPDATE SET v = x.v WHEN NOT MATCHED THEN INSERT VALUES (x.id, 'merge', x.v)$$);
SELECT tb_both($$MERGE INTO s USING (VALUES (1), (1)) x (id) ON s.id = x.id WHEN MATCHED THEN DELETE$$);
SELECT tb_twins('SELECT * FROM s WHERE id IN (1, 77) ORDER BY id');
SELECT tb_both('CREATE VIEW sv AS SELECT id, v FROM s WHERE v < 100 WITH CHECK OPTION');
SELECT tb_both('UPDATE sv SET v = 101 WHERE id = 2');
SELECT tb_both('UPDATE sv SET v = 50 WHERE id = 2');
SELECT tb_twins('SELECT count(*) FROM sv');
SELECT tb_both('ALTER TABLE s ENABLE ROW LEVEL SECURITY');
SELECT tb_both('CREATE POLICY p ON s USING (who = current_user)');
CREATE ROLE tb_user;
GRANT USAGE ON SCHEMA tb_heap, tb_mot TO tb_user;
GRANT ALL ON tb_heap.s, tb_mot.s TO tb_user;
SET ROLE tb_user;
SELECT tb_twins('SELECT count(*), sum(v) FROM s');
SELECT tb_both('UPDATE s SET v = 0');
SELECT tb_both($$INSERT INTO s VALUES (100, 'other', 0)$$);
RESET ROLE;
SELECT tb_twins('SELECT count(*), sum(v) FROM s');
SELECT tb_both('CREATE TABLE pt (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)');
SELECT tb_both('CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (10) USING ENGINE');
SELECT tb_both('CREATE TABLE pt2 PARTITION OF pt FOR VALUES FROM (10) TO (20) USING heap');
SELECT tb_both('CREATE TABLE pt3 PARTITION OF pt DEFAULT USING ENGINE');
SELECT tb_both('INSERT INTO pt SELECT i, i FROM generate_series(0, 30) i');
SELECT tb_both('UPDATE pt SET id = id + 100 WHERE id IN (1, 11, 21)');
SELECT tb_both('UPDATE pt SET id = id - 20 WHERE id = 22');
SELECT tb_both('UPDATE pt SET id = 5 WHERE id = 6');
SELECT tb_both('INSERT INTO pt VALUES (5, 0) ON CONFLICT (id) DO UPDATE SET v = -1');
SELECT tb_both('INSERT INTO pt VALUES (102, 0) ON CONFLICT (id) DO UPDATE SET v = -1');
SELECT tb_twins('SELECT id, v, count(*) OVER () FROM pt WHERE id > 100 OR id < 7 ORDER BY id');
SELECT tb_both('CREATE INDEX ON pt (v)');
SELECT tb_both('CREATE TABLE ch (extra text) INHERITS (s) USING ENGINE');
SELECT tb_both($$INSERT INTO ch VALUES (500, 'x', 1, 'y')$$);
SELECT tb_twins('SELECT count(*) FROM s');
SELECT tb_both('ALTER TABLE s ADD COLUMN z int DEFAULT 3');
SELECT tb_twins('SELECT id, z FROM s ORDER BY id DESC LIMIT 2');
SELECT tb_both('CREATE MATERIALIZED VIEW mv USING ENGINE AS SELECT id, v FROM s');
SELECT tb_both('CREATE UNIQUE INDEX ON mv (id)');
SELECT tb_both('DELETE FROM s WHERE id = 2');
SELECT tb_both('REFRESH MATERIALIZED VIEW mv');
SELECT tb_twins('SELECT count(*) FROM mv');
SELECT tb_both('DELETE FROM s WHERE id = 4');
REFRESH MATERIALIZED VIEW CONCURRENTLY tb_mot.mv;

-- both doors and heap in one statement
CREATE FOREIGN TABLE tb_foreign (id int PRIMARY KEY, v int) SERVER mot_server;
INSERT INTO tb_foreign SELECT id, v FROM tb_mot.s;
SELECT count(*) FROM tb_foreign f JOIN tb_mot.s USING (id) JOIN tb_heap.s h USING (id);
DROP TABLE tb_foreign;

-- workers (parallel.sql)
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT name AS forced FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query') \gset
SET :forced = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM tb_mot.t;
EXPLAIN (COSTS OFF) SELECT count(*) FROM tb_heap.t h, tb_mot.k k WHERE h.a = k.id;
SELECT count(*) FROM tb_mot.t;
CREATE TABLE tb_as USING mot AS SELECT a, count(*) FROM tb_heap.t GROUP BY a;
SELECT count(*) FROM tb_as;
DROP TABLE tb_as;
RESET :forced;
RESET min_parallel_table_scan_size;
RESET parallel_tuple_cost;
RESET parallel_setup_cost;
RESET max_parallel_workers_per_gather;

-- statistics, maintenance
VACUUM tb_mot.t;
ANALYZE tb_mot.t;
SELECT reltuples = (SELECT count(*) FROM tb_mot.t), relfrozenxid FROM pg_class WHERE oid = 'tb_mot.t'::regclass;
SELECT pg_relation_size('tb_mot.t') > 0;
REINDEX TABLE tb_mot.k;
BEGIN;
REINDEX TABLE tb_mot.k;
ROLLBACK;
SELECT tb_both($$INSERT INTO k VALUES (1001, 7, 'seven')$$);
DROP INDEX CONCURRENTLY tb_mot.k_w_id_idx;

-- what is not done yet says so
CREATE INDEX ON tb_mot.k USING hash (v);
CREATE INDEX ON tb_mot.k USING brin (v);

DROP MATERIALIZED VIEW tb_heap.mv, tb_mot.mv;
SET client_min_messages = warning;
DROP SCHEMA tb_heap CASCADE;
DROP SCHEMA tb_mot CASCADE;
DROP TABLE tb_log;
DROP FUNCTION tb_twins, tb_both, tb_trigger, tb_story, tb_transition;
DROP ROLE tb_user;
SELECT count(*) FROM mot_stat_tables;
