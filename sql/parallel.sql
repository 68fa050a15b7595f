-- Parallel workers read ordinary tables with the leader's snapshot and what it has changed.
-- The leader does not take part, so what is answered here comes from workers.
CREATE SCHEMA pa_heap;
CREATE SCHEMA pa_mot;
SET mot.analytics_hint = off;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE pa_heap.t (id int PRIMARY KEY, v int, s text) USING heap;
CREATE TABLE pa_mot.t (id int PRIMARY KEY, v int, s text) USING mot;
CREATE TABLE pa_heap.k (id int PRIMARY KEY, w text) USING heap;
CREATE TABLE pa_mot.k (id int PRIMARY KEY, w text) USING mot;

-- how many workers there were, as EXPLAIN ANALYZE says; and the answers of both
CREATE FUNCTION pa_workers(q text, OUT heap int, OUT mot int) LANGUAGE plpgsql AS $$
DECLARE plan json; n int; schema text;
BEGIN
	FOREACH schema IN ARRAY ARRAY['heap', 'mot'] LOOP
		PERFORM set_config('search_path', 'pa_' || schema || ', public', true);
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || q INTO plan;
		SELECT sum(w::text::int) INTO n FROM jsonb_path_query(plan::jsonb, 'strict $.**."Workers Launched"') w;
		IF schema = 'heap' THEN heap := n; ELSE mot := n; END IF;
	END LOOP;
END $$;
CREATE FUNCTION pa_analyzed(q text) RETURNS TABLE ("QUERY PLAN" text) LANGUAGE plpgsql AS $$
BEGIN
	FOR "QUERY PLAN" IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) ' || q LOOP
		"QUERY PLAN" := replace("QUERY PLAN", '.00 loops', ' loops');
		RETURN NEXT;
	END LOOP;
END $$;
CREATE FUNCTION pa_twins(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a text[]; schema text; r text;
BEGIN
	FOREACH schema IN ARRAY ARRAY['heap', 'mot'] LOOP
		PERFORM set_config('search_path', 'pa_' || schema || ', public', true);
		EXECUTE 'WITH r AS MATERIALIZED (' || q || ') SELECT coalesce(string_agg(r::text, '' '' ORDER BY r::text), ''none'') FROM r' INTO r;
		a := a || r;
	END LOOP;
	RETURN CASE WHEN a[1] = a[2] THEN a[1] ELSE 'DIFFER: heap ' || a[1] || ', mot ' || a[2] END;
END $$;
CREATE FUNCTION pa_both(q text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE schema text;
BEGIN
	FOREACH schema IN ARRAY ARRAY['heap', 'mot'] LOOP
		PERFORM set_config('search_path', 'pa_' || schema || ', public', true);
		EXECUTE replace(q, 'ENGINE', schema);
	END LOOP;
END $$;
DO $$ BEGIN
	PERFORM pa_both('INSERT INTO t SELECT i, i % 10, ''text '' || i FROM generate_series(1, 3000) i');
	PERFORM pa_both('INSERT INTO k SELECT i, ''k'' || i FROM generate_series(1, 10) i');
	PERFORM pa_both('ANALYZE t; ANALYZE k');
END $$;

-- plans
SET search_path = pa_mot, public;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM t WHERE s LIKE '%7%';
EXPLAIN (COSTS OFF) SELECT count(*) FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.v < 5;
EXPLAIN (COSTS OFF) SELECT v, count(*) FROM t GROUP BY v ORDER BY v;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t JOIN k ON k.id = t.v WHERE w <> 'k3';
RESET enable_hashjoin;
RESET enable_mergejoin;
-- small tables and single rows go without, as ever
RESET min_parallel_table_scan_size;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM t WHERE s LIKE '%7%';
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id = 7;

-- READ COMMITTED: with what the transaction has done, but for savepoints taken back
BEGIN;
SELECT pa_both('UPDATE t SET v = v + 100 WHERE id % 7 = 0; DELETE FROM t WHERE id % 11 = 0; INSERT INTO t SELECT i, 1, ''new'' FROM generate_series(5001, 5100) i');
SAVEPOINT a;
SELECT pa_both('UPDATE t SET v = 0, id = -id WHERE id % 2 = 0; DELETE FROM t WHERE id % 3 = 0; INSERT INTO t VALUES (0, 0, ''gone'')');
SELECT * FROM pa_workers('SELECT count(*), sum(v) FROM t');
SELECT pa_twins('SELECT count(*), sum(v), sum(id), sum(length(s)) FROM t');
ROLLBACK TO a;
SELECT pa_both('UPDATE t SET v = v + 1000 WHERE id % 7 < 2');
SELECT * FROM pa_workers('SELECT count(*), sum(v) FROM t');
SELECT pa_twins('SELECT count(*), sum(v), sum(id), sum(length(s)) FROM t');
SELECT pa_twins('SELECT count(*), sum(a.v), sum(b.id) FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.s LIKE ''%7%''');
SELECT pa_twins('SELECT v % 10, count(*), min(s), max(s) FROM t GROUP BY 1');
SELECT pa_twins('SELECT count(*), sum(t.v) FROM t JOIN k ON k.id = t.v % 1000 WHERE w <> ''k3''');
-- rows of the tables as they are, with ids of rows
SELECT count(*) FROM pa_mot.t a JOIN pa_mot.t b ON a.ctid = b.ctid AND a.id = b.id;
COMMIT;
SELECT pa_twins('SELECT count(*), sum(v), sum(id), sum(length(s)) FROM t');

-- a query in a function sees what came before it in the function, not what the statement does
CREATE FUNCTION public.pa_step(int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	UPDATE t SET v = v + 1 WHERE id = $1;
	RETURN (SELECT sum(v) FROM t);
END $$;
SELECT pa_twins('SELECT pa_step(i) FROM generate_series(1, 3) i');

-- REPEATABLE READ: workers as long as no row's lock waits for the commit
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM pa_workers('SELECT count(*), sum(v) FROM t');
SELECT pa_both('INSERT INTO t SELECT i, 1, ''rr'' FROM generate_series(6001, 6100) i');
SELECT * FROM pa_workers('SELECT count(*), sum(v) FROM t');
SELECT pa_twins('SELECT count(*), sum(v), sum(id) FROM t');
SELECT pa_both('UPDATE t SET v = v - 5 WHERE id % 5 = 0');
SELECT * FROM pa_workers('SELECT count(*), sum(v) FROM t');
SELECT pa_twins('SELECT count(*), sum(v), sum(id) FROM t');
ROLLBACK;

-- SERIALIZABLE: without, also if the plan is of another level
PREPARE pa_p AS SELECT count(*), sum(v) FROM pa_mot.t;
SET plan_cache_mode = force_generic_plan;
SELECT * FROM pa_analyzed('EXECUTE pa_p');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT mot FROM pa_workers('SELECT count(*), sum(v) FROM t');
SELECT * FROM pa_analyzed('EXECUTE pa_p');
EXECUTE pa_p;
ROLLBACK;
EXECUTE pa_p;

-- tables of this transaction's own making or altering: the leader alone knows them
BEGIN;
SELECT pa_both('CREATE TABLE own USING ENGINE AS SELECT * FROM t; ALTER TABLE t ADD COLUMN more int DEFAULT 3; UPDATE t SET more = 4 WHERE id < 50');
SELECT mot FROM pa_workers('SELECT count(*), sum(v) FROM own');
SELECT pa_twins('SELECT count(*), sum(v) FROM own');
SELECT pa_twins('SELECT count(*), sum(more) FROM t');
EXECUTE pa_p;
ROLLBACK;
DEALLOCATE pa_p;
RESET plan_cache_mode;

-- made from what workers read
SELECT pa_both('CREATE TABLE made USING ENGINE AS SELECT v, count(*) FROM t GROUP BY v; CREATE MATERIALIZED VIEW mv USING ENGINE AS SELECT v, sum(id) FROM t GROUP BY v');
SELECT pa_both('UPDATE t SET id = id + 10000 WHERE id < 10; REFRESH MATERIALIZED VIEW mv');
SELECT pa_twins('SELECT * FROM made JOIN mv USING (v)');

-- partitions of both kinds
SELECT pa_both('CREATE TABLE p (id int, v int) PARTITION BY RANGE (id);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000) USING ENGINE; CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) USING heap;
	CREATE TABLE p3 PARTITION OF p DEFAULT USING ENGINE; INSERT INTO p SELECT id, v FROM t; ANALYZE p');
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM pa_mot.p;
SELECT * FROM pa_workers('SELECT count(*), sum(v) FROM p');
BEGIN;
SELECT pa_both('UPDATE p SET id = id + 1000 WHERE id % 9 = 0');
SELECT pa_twins('SELECT count(*), sum(v), sum(id) FROM p');
SELECT pa_twins('SELECT count(*), sum(p.v), sum(t.id) FROM p JOIN t USING (id)');
COMMIT;
SELECT pa_twins('SELECT tableoid::regclass::text LIKE ''%1'', count(*) FROM p GROUP BY 1');

-- scans that begin again: all workers anew, and parts that are not dealt out, in each worker
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SELECT pa_twins('SELECT (SELECT count(*) FROM t WHERE t.v > k.id), k.id FROM k');
SELECT pa_twins('SELECT k.id, x.n FROM (VALUES (3), (5)) k(id) CROSS JOIN (SELECT count(*) AS n FROM t WHERE v % 3 = 0) x');
SELECT pa_twins('SELECT count(*) FROM t JOIN k ON t.v % 20 = k.id + 1');
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;

-- samples, and cursors, which have no workers
SELECT pa_twins('SELECT count(*), sum(v) FROM t TABLESAMPLE BERNOULLI (100)');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT count(*), sum(v) > 0 FROM pa_mot.t;
FETCH c;
FETCH BACKWARD c;
COMMIT;

-- functions that read in workers; those that are VOLATILE have snapshots of their own there, too
CREATE FUNCTION public.pa_look(int) RETURNS text STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT w FROM k WHERE id = $1); END $$;
CREATE FUNCTION public.pa_look_now(int) RETURNS text VOLATILE PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT w FROM k WHERE id = $1); END $$;
CREATE FUNCTION public.pa_look_sql(int) RETURNS SETOF text STABLE PARALLEL SAFE LANGUAGE sql AS $$ SELECT w FROM k WHERE id < $1 $$;
CREATE FOREIGN TABLE public.pa_foreign (id int PRIMARY KEY, w text) SERVER mot_server;
INSERT INTO pa_foreign SELECT * FROM pa_mot.k;
CREATE FUNCTION public.pa_look_foreign(int) RETURNS text STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT w FROM pa_foreign WHERE id = $1); END $$;
BEGIN;
SELECT pa_both('UPDATE k SET w = w || ''!'' WHERE id % 2 = 0; INSERT INTO k VALUES (0, ''zero''); UPDATE pa_foreign SET w = w || ''?''');
SELECT * FROM pa_workers('SELECT count(pa_look(v % 10)) FROM t');
SELECT pa_twins('SELECT pa_look(v % 10), count(*) FROM t GROUP BY 1');
SELECT pa_twins('SELECT pa_look_now(v % 10), count(*) FROM t GROUP BY 1');
SELECT pa_twins('SELECT x, count(*) FROM t, LATERAL (SELECT string_agg(w, '','' ORDER BY w) FROM pa_look_sql(v % 10) w) x GROUP BY 1');
SELECT pa_twins('SELECT pa_look_foreign(v % 10), count(*) FROM t GROUP BY 1');
-- in a query that names heap tables only
SET search_path = pa_mot, public;
EXPLAIN (COSTS OFF) SELECT pa_look(v % 10), count(*) FROM pa_heap.t GROUP BY 1;
SELECT pa_look(v % 10), count(*) FROM pa_heap.t GROUP BY 1 ORDER BY 1;
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT pa_both('UPDATE k SET w = w || ''!'' WHERE id % 2 = 0');
SET search_path = pa_mot, public;
SELECT pa_look(v % 10), count(*) FROM pa_heap.t GROUP BY 1 ORDER BY 1;
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT pa_look(v % 10), count(*) FROM pa_heap.t GROUP BY 1 ORDER BY 1;
ROLLBACK;

-- row-level security and privileges
CREATE ROLE pa_reader;
SELECT pa_both('GRANT SELECT (id, v) ON t TO pa_reader; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (pa_look(v % 10) LIKE ''k%'')');
GRANT USAGE ON SCHEMA pa_mot, pa_heap TO pa_reader;
SELECT pa_both('GRANT SELECT ON k TO pa_reader');
SET ROLE pa_reader;
SELECT * FROM pa_workers('SELECT count(*), sum(v) FROM t');
SELECT pa_twins('SELECT count(*), sum(v) FROM t');
SET search_path = pa_mot, public;
SELECT count(s) FROM t;
RESET ROLE;

-- a single process that runs all of a plan
SELECT pa_both('DROP POLICY p ON t; ALTER TABLE t DISABLE ROW LEVEL SECURITY');
SELECT name AS forced FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query') \gset
SET :forced = regress;
BEGIN;
SELECT pa_both('UPDATE t SET v = v + 3 WHERE id % 5 = 0');
SELECT pa_twins('SELECT * FROM t WHERE id = 15');
SELECT pa_twins('SELECT t.*, w FROM t JOIN k ON k.id = t.v WHERE t.id BETWEEN 10 AND 40');
SELECT pa_twins('SELECT id FROM t WHERE id IN (5, 10, 15, 99999) ORDER BY id DESC LIMIT 2');
COMMIT;
RESET :forced;

-- the leader changes nothing beside workers, by functions that it alone runs either
CREATE FUNCTION public.pa_lock(int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS $$ BEGIN PERFORM 1 FROM pa_mot.k WHERE id = $1 FOR SHARE; RETURN $1; END $$;
EXPLAIN (COSTS OFF) SELECT pa_lock(v) FROM pa_mot.t WHERE s LIKE '%77%';
SELECT pa_lock(v) FROM pa_mot.t WHERE s LIKE '%77%';

-- nobody else says what workers see
SET mot.leader_view = '1 2';
ALTER DATABASE regression SET mot.leader_view = '1 2';
SHOW mot.leader_view;

RESET search_path;
RESET mot.analytics_hint;
RESET max_parallel_workers_per_gather;
RESET parallel_leader_participation;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET client_min_messages = warning;
DROP FOREIGN TABLE pa_foreign;
DROP SCHEMA pa_heap, pa_mot CASCADE;
DROP ROLE pa_reader;
DROP FUNCTION pa_workers, pa_analyzed, pa_twins, pa_both, pa_step, pa_look, pa_look_now, pa_look_sql, pa_look_foreign, pa_lock;
RESET client_min_messages;
