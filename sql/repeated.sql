-- Plans that are executed again and again: what is kept between two executions may not show.
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 1;
CREATE ROLE keep_reader;
CREATE FOREIGN TABLE keep_t (id int PRIMARY KEY, v int NOT NULL, t text) SERVER mot_server;
CREATE FOREIGN TABLE keep_u (id int PRIMARY KEY, tid int) SERVER mot_server;
INSERT INTO keep_t SELECT i, i * 10, 'row ' || i FROM generate_series(1, 20) i;
INSERT INTO keep_u SELECT i, 21 - i FROM generate_series(1, 20) i;

-- parameters, nulls, no row, several shapes
PREPARE one(int) AS SELECT t, v FROM keep_t WHERE id = $1;
EXECUTE one(1); EXECUTE one(2); EXECUTE one(3); EXECUTE one(NULL); EXECUTE one(99); EXECUTE one(4);
PREPARE part(int, int) AS SELECT sum(v), count(*), min(t) FROM keep_t WHERE id BETWEEN $1 AND $2;
EXECUTE part(1, 3); EXECUTE part(2, 4); EXECUTE part(50, 60); EXECUTE part(1, 20); EXECUTE part(5, 5);
PREPARE top(int, int) AS SELECT id FROM keep_t WHERE id > $1 ORDER BY id DESC LIMIT $2;
EXECUTE top(15, 2); EXECUTE top(10, 1); EXECUTE top(17, 10); EXECUTE top(0, 0); EXECUTE top(18, 3);
PREPARE pair(int) AS SELECT u.id, t.t FROM keep_u u JOIN keep_t t ON t.id = u.tid WHERE u.id = $1;
EXECUTE pair(1); EXECUTE pair(2); EXECUTE pair(3); EXECUTE pair(20); EXECUTE pair(21);
PREPARE list(int[]) AS SELECT id FROM keep_t WHERE id = ANY ($1) ORDER BY id;
EXECUTE list('{1,2}'); EXECUTE list('{5,4,4}'); EXECUTE list('{}'); EXECUTE list(NULL); EXECUTE list('{7,8,9}');

-- changes, and what they return
PREPARE ins(int, int, text) AS INSERT INTO keep_t VALUES ($1, $2, $3) RETURNING id;
EXECUTE ins(101, 1, 'a'); EXECUTE ins(102, 2, 'b'); EXECUTE ins(103, 3, 'c'); EXECUTE ins(103, 3, 'c'); EXECUTE ins(104, NULL, 'd'); EXECUTE ins(104, 4, 'd');
PREPARE upd(int, int) AS UPDATE keep_t SET v = v + $2 WHERE id = $1;
EXECUTE upd(101, 1); EXECUTE upd(101, 1); EXECUTE upd(101, 1); EXECUTE upd(101, NULL); EXECUTE upd(101, 1); EXECUTE upd(999, 1);
EXECUTE one(101);
PREPARE del(int) AS DELETE FROM keep_t WHERE id = $1 RETURNING t;
EXECUTE del(101); EXECUTE del(102); EXECUTE del(103); EXECUTE del(104); EXECUTE del(104);

-- an own change is seen by the next execution, not by the one that makes it
BEGIN;
EXECUTE upd(1, 1); EXECUTE one(1); EXECUTE upd(1, 1); EXECUTE one(1);
SAVEPOINT s;
EXECUTE upd(1, 100); EXECUTE one(1);
ROLLBACK TO s;
EXECUTE one(1); EXECUTE upd(1, 1); EXECUTE one(1);
ROLLBACK;
EXECUTE one(1);

-- a function in SQL whose table changes in the same transaction
CREATE TABLE keep_h (a int, b int);
INSERT INTO keep_h SELECT i, i FROM generate_series(1, 2000) i;
CREATE INDEX keep_h_a ON keep_h (a);
CREATE FUNCTION keep_sql(int) RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM keep_h WHERE a = $1';
SET mot.jit = off;
PREPARE calls(int) AS SELECT keep_sql(id) FROM keep_t WHERE id = $1;
BEGIN;
SET LOCAL enable_seqscan = off;
EXECUTE calls(1); EXECUTE calls(1); EXECUTE calls(1);
DROP INDEX keep_h_a;
EXECUTE calls(1);
COMMIT;
RESET mot.jit;
DROP FUNCTION keep_sql;
DROP TABLE keep_h;

-- read only
BEGIN READ ONLY; EXECUTE one(1); EXECUTE upd(1, 1); ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ; EXECUTE one(1); EXECUTE upd(1, 1); EXECUTE one(1); ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE; EXECUTE one(1); EXECUTE upd(1, 1); EXECUTE one(1); ROLLBACK;

-- errors in the middle; recursion; exceptions
CREATE FUNCTION keep_walk(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r record; total int := 0;
BEGIN
	FOR r IN SELECT id, v FROM keep_t WHERE id >= n ORDER BY id LIMIT 3 LOOP
		total := total + r.v;
		IF n > 1 THEN total := total + keep_walk(n - 1); END IF;
	END LOOP;
	RETURN total;
END $$;
SELECT keep_walk(1), keep_walk(2), keep_walk(3), keep_walk(4);
CREATE FUNCTION keep_divide(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r int;
BEGIN
	SELECT 100 / (v - 50) INTO r FROM keep_t WHERE id = i;
	RETURN r;
EXCEPTION WHEN division_by_zero THEN RETURN -1;
END $$;
SELECT i, keep_divide(i) FROM generate_series(1, 8) i;
CREATE FUNCTION keep_self(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r int;
BEGIN
	UPDATE keep_t SET v = keep_self_depth(id, i) WHERE id = i RETURNING v INTO r;
	RETURN r;
END $$;
CREATE FUNCTION keep_self_depth(a int, b int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF b > 1 THEN PERFORM keep_self(b - 1); END IF;
	RETURN a * 1000;
END $$;
SELECT keep_self(3), keep_self(4), keep_self(4);
SELECT id, v FROM keep_t WHERE id < 5 ORDER BY id;

-- cursors that stay open, and go on
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM keep_t WHERE id > 2 ORDER BY id;
FETCH 2 FROM c; EXECUTE top(15, 2); FETCH 1 FROM c;
COMMIT;
DO $$
DECLARE c refcursor; i int;
BEGIN
	FOR n IN 1 .. 6 LOOP
		OPEN c FOR SELECT id FROM keep_t WHERE id > n ORDER BY id;
		FETCH c INTO i;
		RAISE NOTICE '%', i;
		IF n % 2 = 0 THEN CLOSE c; ELSE c := NULL; END IF;
	END LOOP;
END $$;

-- privileges
GRANT SELECT ON keep_t TO keep_reader;
SET ROLE keep_reader; EXECUTE one(5); EXECUTE one(5); EXECUTE one(5); EXECUTE upd(5, 1); RESET ROLE;
EXECUTE upd(5, 1); EXECUTE one(5);
REVOKE SELECT ON keep_t FROM keep_reader;
SET ROLE keep_reader; EXECUTE one(5); RESET ROLE;
EXECUTE one(5);

-- definitions change: indexes, columns, storage, checks, triggers, functions
CREATE INDEX keep_v ON keep_t (v);
EXECUTE one(6); EXECUTE upd(6, 1); EXECUTE upd(6, 1);
SELECT id FROM keep_t WHERE v = 62;
ALTER FOREIGN TABLE keep_t ADD COLUMN extra int DEFAULT 7;
EXECUTE one(6); EXECUTE upd(6, 1); EXECUTE upd(6, 1); EXECUTE one(6);
SELECT * FROM keep_t WHERE id = 6;
ALTER FOREIGN TABLE keep_t ADD CHECK (v < 100000);
EXECUTE upd(6, 100000); EXECUTE upd(6, 1); EXECUTE upd(6, 200000);
CREATE FUNCTION keep_say() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'row %', NEW.id; RETURN NEW; END $$;
CREATE TRIGGER keep_tr BEFORE UPDATE ON keep_t FOR EACH ROW EXECUTE FUNCTION keep_say();
EXECUTE upd(6, 1); EXECUTE upd(7, 1);
DROP TRIGGER keep_tr ON keep_t;
EXECUTE upd(6, 1); EXECUTE upd(7, 1);
CREATE FUNCTION keep_f(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 1; END';
PREPARE fun(int) AS SELECT keep_f(v) FROM keep_t WHERE id = $1;
EXECUTE fun(8); EXECUTE fun(8); EXECUTE fun(8);
CREATE OR REPLACE FUNCTION keep_f(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 2; END';
EXECUTE fun(8); EXECUTE fun(8);
REVOKE EXECUTE ON FUNCTION keep_f(int) FROM PUBLIC;
GRANT SELECT ON keep_t TO keep_reader;
SET ROLE keep_reader; EXECUTE fun(8); RESET ROLE;
EXECUTE fun(8);
TRUNCATE keep_t;
EXECUTE one(6); EXECUTE ins(1, 1, 'again'); EXECUTE ins(2, 1, 'again'); EXECUTE ins(3, 1, 'again'); EXECUTE one(2);
BEGIN; TRUNCATE keep_t; EXECUTE one(2); EXECUTE ins(2, 2, 'other'); EXECUTE one(2); ROLLBACK;
EXECUTE one(2); EXECUTE ins(4, 1, 'again');
DROP FOREIGN TABLE keep_u;
EXECUTE pair(1);
DEALLOCATE one;
PREPARE one(int) AS SELECT id FROM keep_t WHERE id = $1;
EXECUTE one(1); EXECUTE one(2); EXECUTE one(3);

DEALLOCATE ALL;
DROP FOREIGN TABLE keep_t;
DROP FUNCTION keep_walk(int), keep_divide(int), keep_self(int), keep_self_depth(int, int), keep_say(), keep_f(int);
DROP ROLE keep_reader;
RESET plan_cache_mode;
RESET mot.jit_prepare_above_executions;
