-- Statements without the executor: nothing but mot_stat_jit may show it.
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = -1;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
CREATE ROLE st_reader;
CREATE ROLE st_group;
CREATE FOREIGN TABLE st_t (id int PRIMARY KEY, v int NOT NULL CHECK (v < 1000), t text) SERVER mot_server;
CREATE FOREIGN TABLE st_u (id int PRIMARY KEY, tid int, g int GENERATED ALWAYS AS (tid * 2) STORED) SERVER mot_server;
INSERT INTO st_t SELECT i, i * 10, 'row ' || i FROM generate_series(1, 20) i;
INSERT INTO st_u (id, tid) SELECT i, 21 - i FROM generate_series(1, 20) i;

-- each of these shapes is run here
PREPARE one(int) AS SELECT t, v FROM st_t WHERE id = $1;
PREPARE whole(int) AS SELECT * FROM st_t WHERE id = $1;
PREPARE part(int, int) AS SELECT sum(v), count(*), min(t), max(v), avg(v) FROM st_t WHERE id BETWEEN $1 AND $2 HAVING count(*) <> 3;
PREPARE top(int, int, int) AS SELECT id FROM st_t WHERE id > $1 ORDER BY id DESC LIMIT $2 OFFSET $3;
PREPARE pair(int) AS SELECT u.id, t.t FROM st_u u LEFT JOIN st_t t ON t.id = u.tid + 1 WHERE u.id <= $1 ORDER BY u.id;
PREPARE list(int[]) AS SELECT id FROM st_t WHERE id = ANY ($1) ORDER BY id;
PREPARE has(int) AS SELECT id FROM st_u u WHERE id < $1 AND EXISTS (SELECT FROM st_t t WHERE t.id = u.tid + 15) ORDER BY id;
PREPARE never(int) AS SELECT id FROM st_t WHERE $1 > 5 AND id < 3 ORDER BY id;
PREPARE place(int) AS SELECT tableoid::regclass, ctid = ctid AS here FROM st_t WHERE id = $1;
PREPARE lock(int) AS SELECT t, v FROM st_t WHERE id > $1 ORDER BY id LIMIT 2 FOR UPDATE;
PREPARE sorted(int) AS SELECT id, v % 30 AS m FROM st_t WHERE id < $1 ORDER BY v % 30 DESC, t LIMIT 5;
PREPARE ins(int, int, text) AS INSERT INTO st_t VALUES ($1, $2, $3), ($1 + 1, $2, lower($3)) RETURNING id, t, tableoid::regclass;
PREPARE gen(int, int) AS INSERT INTO st_u (id, tid) VALUES ($1, $2) RETURNING g;
PREPARE nothing(int, int) AS INSERT INTO st_t VALUES ($1, $2, 'n'), ($1 + 1, $2, 'm') ON CONFLICT DO NOTHING RETURNING id;
PREPARE upsert(int, int) AS INSERT INTO st_t AS s VALUES ($1, $2, 'new') ON CONFLICT (id) DO UPDATE SET v = s.v + excluded.v, t = 'upserted'
	WHERE s.v < 500 RETURNING id, v, t;
PREPARE upd(int, int) AS UPDATE st_t SET v = v + $2 WHERE id = $1;
PREPARE ret(int) AS UPDATE st_t SET t = t || '!' WHERE id < $1 RETURNING id, t;
PREPARE del(int) AS DELETE FROM st_t WHERE id >= $1 RETURNING id, t;
EXECUTE one(1); EXECUTE one(2); EXECUTE one(NULL); EXECUTE one(99); EXECUTE one(4);
EXECUTE whole(1); EXECUTE whole(2);
EXECUTE part(1, 4); EXECUTE part(2, 4); EXECUTE part(50, 60); EXECUTE part(1, 20);
EXECUTE top(15, 2, 0); EXECUTE top(10, 1, 3); EXECUTE top(17, NULL, NULL); EXECUTE top(0, 0, 0); EXECUTE top(0, -1, 0); EXECUTE top(0, 1, -1);
EXECUTE pair(3); EXECUTE pair(1);
EXECUTE list('{5,2,2,NULL}'); EXECUTE list(NULL);
EXECUTE has(20); EXECUTE has(3);
EXECUTE never(5); EXECUTE never(6);
EXECUTE place(3);
EXECUTE lock(18); EXECUTE lock(19); EXECUTE lock(20);
EXECUTE sorted(20); EXECUTE sorted(3); EXECUTE sorted(0);
EXECUTE ins(101, 1, 'A'); EXECUTE ins(101, 1, 'A'); EXECUTE ins(103, NULL, 'B'); EXECUTE ins(103, 1000, 'B'); EXECUTE ins(103, 3, NULL);
EXECUTE gen(101, 7); EXECUTE gen(102, NULL);
EXECUTE nothing(101, 5); EXECUTE nothing(103, 5); EXECUTE nothing(104, 5); EXECUTE nothing(106, 1000);
EXECUTE upsert(103, 100); EXECUTE upsert(103, 600); EXECUTE upsert(103, 600); EXECUTE upsert(107, 7); EXECUTE upsert(108, NULL); EXECUTE upsert(104, 995);
EXECUTE upd(101, 1); EXECUTE upd(101, 5000); EXECUTE upd(101, NULL); EXECUTE upd(999, 1); EXECUTE upd(102, 1);
EXECUTE ret(3); EXECUTE ret(0);
EXECUTE del(101); EXECUTE del(101);
SELECT query ~ '^PREPARE' AS prepared, substring(query FROM 'PREPARE (\w+)') AS name, tier, shape, executions, why_not
	FROM mot_stat_jit WHERE query ~ '^PREPARE' ORDER BY name;

-- what is not, and why
PREPARE uni AS SELECT id FROM st_t WHERE id = 1 UNION ALL SELECT id FROM st_u WHERE id = 1;
PREPARE grp AS SELECT v % 3, count(*) FROM st_t GROUP BY 1;
PREPARE wth AS WITH q AS MATERIALIZED (SELECT id FROM st_u WHERE id = 1) SELECT id FROM q;
PREPARE cls AS SELECT st_t.t, c.relname FROM st_t, pg_class c WHERE id = 1 AND c.oid = 'st_t'::regclass;
PREPARE qry AS INSERT INTO st_t SELECT id + 500, v, t FROM st_t WHERE id = 1;
PREPARE wrw AS SELECT st_t FROM st_t WHERE id = 1;
EXECUTE uni; EXECUTE grp; EXECUTE wth; EXECUTE cls; EXECUTE wrw;
SELECT substring(query FROM 'PREPARE (\w+)') AS name, tier, why_not FROM mot_stat_jit
	WHERE query ~ '^PREPARE' AND tier = 0 ORDER BY name;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE one(1);
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE qry;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE upd(1, 1);
SET mot.jit = off;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE one(1);
EXECUTE one(5);
RESET mot.jit;
DO $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) EXECUTE one(1)' LOOP
		RAISE NOTICE '%', replace(line, '.00 loops', ' loops');
	END LOOP;
END $$;

-- an own change is seen by the next execution, not by the one that makes it
BEGIN;
EXECUTE upd(1, 1); EXECUTE one(1); EXECUTE upd(1, 1); EXECUTE one(1);
SAVEPOINT s;
EXECUTE upd(1, 100); EXECUTE one(1);
ROLLBACK TO s;
EXECUTE one(1);
ROLLBACK;
EXECUTE one(1);
BEGIN READ ONLY; EXECUTE one(1); EXECUTE upd(1, 1); ROLLBACK;
BEGIN READ ONLY; EXECUTE one(1); EXECUTE lock(1); ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ; EXECUTE one(1); EXECUTE upd(1, 1); EXECUTE one(1); ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE; EXECUTE one(1); EXECUTE upd(1, 1); EXECUTE one(1); ROLLBACK;

-- privileges, also through a role's membership, and of columns
GRANT st_group TO st_reader;
GRANT SELECT ON st_t TO st_group;
SET ROLE st_reader;
EXECUTE one(1); EXECUTE upd(1, 1);
RESET ROLE;
REVOKE st_group FROM st_reader;
SET ROLE st_reader;
EXECUTE one(1);
RESET ROLE;
GRANT SELECT (id, t) ON st_t TO st_reader;
SET ROLE st_reader;
EXECUTE one(1);
RESET ROLE;
GRANT SELECT (v) ON st_t TO st_reader;
SET ROLE st_reader;
EXECUTE one(1);
RESET ROLE;
EXECUTE one(1);
CREATE FUNCTION st_f(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
PREPARE fun AS SELECT st_f(id) FROM st_t WHERE id = 1;
EXECUTE fun;
REVOKE EXECUTE ON FUNCTION st_f(int) FROM PUBLIC;
SET ROLE st_reader;
EXECUTE fun;
RESET ROLE;
CREATE OR REPLACE FUNCTION st_f(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 41; END';
EXECUTE fun;

-- tables that change
ALTER TABLE st_t ADD COLUMN n int DEFAULT 7;
PREPARE n AS SELECT n, id FROM st_t WHERE id = 1;
EXECUTE n; EXECUTE one(1);
ALTER TABLE st_t DROP CONSTRAINT st_t_v_check;
EXECUTE upd(1, 5000); EXECUTE one(1);
ALTER TABLE st_t ADD CONSTRAINT small CHECK (v < 10000);
EXECUTE upd(1, 5000);
CREATE FUNCTION st_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.t := ''by trigger''; RETURN NEW; END';
CREATE TRIGGER st_before BEFORE UPDATE ON st_t FOR EACH ROW EXECUTE FUNCTION st_trigger();
EXECUTE upd(1, 1); EXECUTE one(1);
DROP TRIGGER st_before ON st_t;
EXECUTE upd(2, 1); EXECUTE one(2);
CREATE INDEX st_v ON st_t (v);
PREPARE by_v(int) AS SELECT id FROM st_t WHERE v = $1;
EXECUTE by_v(30);
DROP INDEX st_v;
EXECUTE by_v(30);
BEGIN;
TRUNCATE st_u;
EXECUTE pair(3);
ROLLBACK;
EXECUTE pair(3);

-- cursors: fetched in pieces, positions, and their end
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM st_t WHERE id > 10;
FETCH 2 FROM c;
UPDATE st_t SET v = -1 WHERE CURRENT OF c;
FETCH 2 FROM c;
DELETE FROM st_t WHERE CURRENT OF c;
FETCH ALL FROM c;
UPDATE st_t SET v = -2 WHERE CURRENT OF c;
ROLLBACK;
BEGIN;
DECLARE l CURSOR FOR SELECT id, v FROM st_t WHERE id > 10 ORDER BY id FOR UPDATE;
FETCH 2 FROM l;
UPDATE st_t SET v = -1 WHERE CURRENT OF l RETURNING id;
FETCH 1 FROM l;
ROLLBACK;
BEGIN;
DECLARE j CURSOR FOR SELECT u.id FROM st_u u JOIN st_t t ON t.id = u.tid WHERE u.id < 5;
FETCH 1 FROM j;
DELETE FROM st_t WHERE CURRENT OF j;
ROLLBACK;
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT id FROM st_t WHERE id > 17;
FETCH ALL FROM s; FETCH BACKWARD 2 FROM s; FETCH FIRST FROM s;
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM st_t WHERE id > 15;
FETCH 2 FROM h;
COMMIT;
FETCH ALL FROM h;
CLOSE h;
-- one that fails in a savepoint, and the same plan after it
CREATE FUNCTION st_fail() RETURNS text LANGUAGE plpgsql AS $$
DECLARE c refcursor; r record;
BEGIN
	OPEN c FOR SELECT 100 / (v - 120) AS q FROM st_t WHERE id > 10;
	FETCH c INTO r;
	BEGIN
		FETCH c INTO r;
		RETURN r.q;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	RETURN 'failed';
END $$;
SELECT st_fail(), st_fail();
SELECT st_fail();

-- recursion, loops, exceptions
CREATE FUNCTION st_walk(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r record; total int := 0;
BEGIN
	FOR r IN SELECT id, v FROM st_t WHERE id >= n ORDER BY id LIMIT 3 LOOP
		total := total + r.id;
		IF n > 1 THEN total := total + st_walk(n - 1); END IF;
	END LOOP;
	RETURN total;
END $$;
SELECT st_walk(1), st_walk(2), st_walk(3), st_walk(4);
CREATE FUNCTION st_many() RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int := 0; x int;
BEGIN
	FOR i IN 1..30 LOOP
		BEGIN
			INSERT INTO st_t VALUES (i, i, 'again');
			n := n + 1;
		EXCEPTION WHEN unique_violation THEN
			UPDATE st_t SET v = v + 1 WHERE id = i;
			GET DIAGNOSTICS x = ROW_COUNT;
			n := n + 100 * x;
		END;
		SELECT v INTO x FROM st_t WHERE id = i;
		n := n + x;
		FOR x IN SELECT id FROM st_t WHERE id >= i ORDER BY id LOOP
			EXIT WHEN x > i + 12;
			n := n + x;
		END LOOP;
	END LOOP;
	DELETE FROM st_t WHERE t = 'again';
	RETURN n;
END $$;
SELECT st_many();
SELECT st_many();
CREATE FUNCTION st_sql(int) RETURNS SETOF text LANGUAGE sql AS 'SELECT t FROM st_t WHERE id > $1 ORDER BY id LIMIT 3';
SELECT st_sql(3), st_sql(12);
SELECT * FROM st_t WHERE id = 1 AND 1 / (id - 1) = 1;
PREPARE whole2(int) AS SELECT * FROM st_t WHERE id = $1;
CREATE TABLE st_copy AS EXECUTE whole2(3);
TABLE st_copy;
PREPARE own AS SELECT * FROM st_t WHERE tableoid = 'st_t'::regclass AND id < 4;
CREATE TABLE st_copy2 AS EXECUTE own;
SELECT count(*) FROM st_copy2;
CREATE TABLE st_copy3 AS EXECUTE own;
SELECT count(*) FROM st_copy3;
COPY (SELECT id, t FROM st_t WHERE id < 3 ORDER BY id) TO STDOUT;

-- statement_timeout
CREATE FUNCTION st_timeout() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM count(*) FROM st_t a JOIN st_t b ON b.id >= a.id - 1000 JOIN st_t c ON c.id >= a.id - 1000 JOIN st_t d ON d.id > b.id - 1000
		JOIN st_t e ON e.id > b.id - 1000 JOIN st_t f ON f.id > b.id - 1000;
	RETURN 'done';
EXCEPTION WHEN query_canceled THEN RETURN 'cancelled';
END $$;
SET statement_timeout = '500ms';
SELECT st_timeout();
RESET statement_timeout;

DEALLOCATE ALL;
DROP FUNCTION st_fail, st_walk, st_many, st_sql, st_timeout, st_f;
DROP TABLE st_copy, st_copy2, st_copy3;
DROP TABLE st_t, st_u;
DROP FUNCTION st_trigger;
DROP ROLE st_reader, st_group;
SELECT count(*) FROM mot_stat_jit WHERE query ~ '^PREPARE';
