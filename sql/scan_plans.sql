--
-- Plans: which index, which conditions, no sort where the index has the order
--
CREATE FOREIGN TABLE plans (
	id int PRIMARY KEY, a int, b int, c text COLLATE "C", e text COLLATE "en-x-icu", o bool, ts timestamp) SERVER mot_server;
CREATE INDEX plans_a_b ON plans (a, b DESC);
CREATE INDEX plans_c ON plans (c);
CREATE INDEX plans_e_b ON plans (e, b);
CREATE INDEX plans_o_id ON plans (o, id);
CREATE INDEX plans_ts_id ON plans (ts, id);

-- planned as if it had rows: plans made now are used later
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id = 1;

INSERT INTO plans SELECT i, i % 50, i % 7, 'c' || i % 100, 'e' || i % 100, i % 2 = 0, '2024-01-01'::timestamp + i * interval '1 hour'
FROM generate_series(1, 2000) i;
ANALYZE plans;
SELECT reltuples FROM pg_class WHERE relname = 'plans';
SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'plans' AND attname IN ('a', 'b', 'id') ORDER BY attname;

-- points, ranges, and what is left to a filter
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id = 1;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id = 1 AND a = 2;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE a = 3 AND b > 2 AND c <> 'x';
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE a = 3 AND b = 2 AND id > 5;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id IN (1, 2, 3);
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE a = ANY ('{1,2}') AND b = 3;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE a IS NULL;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE c LIKE 'c1%';
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id < 20::bigint;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE o AND id < 10;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE ts < timestamptz '2024-01-01 05:00+00';
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE (a, b) > (48, 3);
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE (ts, id) > ('2024-03-23', 3) AND id > 0;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE b = 3;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id = 3 OR a = 5 AND b > 2 OR c = 'c7';
EXPLAIN (COSTS OFF, FORMAT YAML) SELECT * FROM plans WHERE id = 3 OR a = 5;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id = 3 OR b = 5;
EXPLAIN (COSTS OFF) UPDATE plans SET b = 1 WHERE id = 3 OR a = 5;
EXPLAIN (COSTS OFF) SELECT * FROM plans;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id = 1;
RESET enable_indexscan;

-- order
EXPLAIN (COSTS OFF) SELECT * FROM plans ORDER BY id LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM plans ORDER BY id DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE a = 3 ORDER BY b DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE a = 3 ORDER BY b LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM plans ORDER BY a, b DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id IN (9, 3, 5) ORDER BY id;
EXPLAIN (COSTS OFF) SELECT max(id), min(id) FROM plans;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (a) a, b FROM plans ORDER BY a, b DESC LIMIT 3;

-- a collation whose order the key bytes do not have: only equality
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE e = 'e1';
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE e IN ('e1', 'e2');
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE e > 'e98';
EXPLAIN (COSTS OFF) SELECT * FROM plans ORDER BY e LIMIT 1;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE e = 'e1' ORDER BY b LIMIT 1;

-- joins
CREATE TABLE plans_heap AS SELECT i AS k, i % 10 AS m FROM generate_series(1, 30) i;
ANALYZE plans_heap;
EXPLAIN (COSTS OFF) SELECT * FROM plans_heap h JOIN plans p ON p.id = h.k;
EXPLAIN (COSTS OFF) SELECT * FROM plans_heap h LEFT JOIN plans p ON p.a = h.k AND p.b < h.m;
EXPLAIN (COSTS OFF) SELECT (SELECT max(p.b) FROM plans p WHERE p.a = h.k) FROM plans_heap h;
EXPLAIN (COSTS OFF) SELECT * FROM plans_heap h, LATERAL (SELECT * FROM plans p WHERE p.a = h.m ORDER BY b LIMIT 2) l;
EXPLAIN (COSTS OFF) SELECT * FROM plans_heap h JOIN plans p ON p.id = h.k OR p.id = h.m;
-- a unique index makes a join removable
EXPLAIN (COSTS OFF) SELECT h.* FROM plans_heap h LEFT JOIN plans p ON p.id = h.k;

-- parameters
PREPARE one (int) AS SELECT a FROM plans WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE one (5);
EXECUTE one (5);
EXECUTE one (NULL);
DEALLOCATE one;
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id = (SELECT max(k) FROM plans_heap);

-- what EXPLAIN ANALYZE counts; other formats
EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM plans WHERE a = 3 AND c <> 'c3';
EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) UPDATE plans SET o = NOT o WHERE a = 3 AND c <> 'c3';
EXPLAIN (COSTS OFF, FORMAT JSON) SELECT * FROM plans WHERE a = 3 AND c <> 'c3' ORDER BY b;
EXPLAIN (COSTS OFF, FORMAT JSON) DELETE FROM plans WHERE id = 3 AND c <> 'c3';
EXPLAIN (COSTS OFF, VERBOSE) SELECT a FROM plans WHERE id = 3;

-- modifications in one node, and when not
EXPLAIN (COSTS OFF) UPDATE plans SET b = b + 1 WHERE id = 3;
EXPLAIN (COSTS OFF) UPDATE plans SET b = b + 1 WHERE id = 3 RETURNING *;
EXPLAIN (COSTS OFF) DELETE FROM plans WHERE a = 3 AND o;
EXPLAIN (COSTS OFF) UPDATE plans SET b = h.m FROM plans_heap h WHERE h.k = plans.id;
EXPLAIN (COSTS OFF) UPDATE plans SET (a, b) = (SELECT k, m FROM plans_heap WHERE k = plans.id) WHERE id = 3;
EXPLAIN (COSTS OFF) SELECT * FROM plans WHERE id = 3 FOR UPDATE;
EXPLAIN (COSTS OFF) INSERT INTO plans VALUES (1) ON CONFLICT (id) DO UPDATE SET a = excluded.a WHERE plans.b > 1;

-- a cursor that can go back gets a copy to go back in
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM plans WHERE a = 3 ORDER BY id;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
COMMIT;

-- options
CREATE FOREIGN TABLE plans_limit (a int) SERVER mot_server OPTIONS (max_size '64MB');
CREATE FOREIGN TABLE plans_wrong (a int) SERVER mot_server OPTIONS (max_size 'big');
CREATE FOREIGN TABLE plans_wrong (a int) SERVER mot_server OPTIONS (size '1');
ALTER SERVER mot_server OPTIONS (ADD host 'x');

DROP TABLE plans_heap;
DROP FOREIGN TABLE plans, plans_limit;

-- a plan made while there is one row still serves when there are many
CREATE FOREIGN TABLE few (id int PRIMARY KEY, a int) SERVER mot_server;
INSERT INTO few VALUES (1, 1);
ANALYZE few;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE id = 1;
TRUNCATE few;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE id = 1;
EXPLAIN (COSTS OFF) SELECT * FROM few WHERE a = 1;
DROP FOREIGN TABLE few;
