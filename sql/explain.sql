-- EXPLAIN (VERBOSE) says of ordinary tables, too, how a statement is run
CREATE TABLE ex_t (id int PRIMARY KEY, v int) USING mot;
CREATE TABLE ex_heap (id int PRIMARY KEY, v int);
CREATE FOREIGN TABLE ex_foreign (id int PRIMARY KEY, v int) SERVER mot_server;
INSERT INTO ex_t SELECT i, i FROM generate_series(1, 100) i;
INSERT INTO ex_heap SELECT i, i FROM generate_series(1, 100) i;
ANALYZE ex_t, ex_heap;
EXPLAIN (VERBOSE, COSTS OFF) SELECT v FROM ex_t WHERE id = 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT a.v FROM ex_t a, ex_t b WHERE a.id = 1 AND b.id = a.v FOR UPDATE;
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO ex_t VALUES (101, 1);
EXPLAIN (VERBOSE, COSTS OFF) UPDATE ex_t SET v = v + 1 WHERE id = 1;
EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM ex_t WHERE id = 1 RETURNING v;
EXPLAIN (VERBOSE, COSTS OFF) SELECT (SELECT v FROM ex_foreign WHERE id = t.v) FROM ex_t t WHERE id = 1;
-- and if not without the executor, why
EXPLAIN (VERBOSE, COSTS OFF) SELECT v, count(*) FROM ex_t GROUP BY v;
EXPLAIN (VERBOSE, COSTS OFF) SELECT t.v FROM ex_t t, ex_heap h WHERE t.id = 1 AND h.id = 1;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE ex_heap SET v = 0 FROM ex_t t WHERE ex_heap.id = 1 AND t.id = 1;
SET mot.jit = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT v FROM ex_t WHERE id = 1;
RESET mot.jit;
-- a plan that is nobody's of ours, and EXPLAIN that is not verbose, have no word for it
EXPLAIN (VERBOSE, COSTS OFF) SELECT v FROM ex_heap WHERE id = 1;
EXPLAIN (COSTS OFF) SELECT v FROM ex_t WHERE id = 1;
-- it belongs to the plan
DO $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) SELECT v FROM ex_t WHERE id = 1' INTO plan;
	RAISE NOTICE '%', plan->0->'Statement';
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT v FROM ex_t WHERE id = 1' INTO plan;
	RAISE NOTICE '%, loops: %', plan->0->'Statement', plan->0->'Plan'->'Actual Loops';
END $$;
-- of a rule's queries, to each its own
CREATE RULE ex_rule AS ON UPDATE TO ex_heap DO ALSO DELETE FROM ex_t WHERE id = old.id;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE ex_heap SET v = 0 WHERE id = 1;
DROP TABLE ex_heap, ex_t;
DROP FOREIGN TABLE ex_foreign;
