-- What a statement that runs without the executor knows of its tables, when
-- they change under it; and the rows that callers copy.
SET client_min_messages = warning;
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
CREATE FOREIGN TABLE st_t (id int PRIMARY KEY, a int) SERVER mot_server;
INSERT INTO st_t SELECT i, i * 10 FROM generate_series(1, 20) i;
CREATE FUNCTION st_get(k int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r int;
BEGIN
	SELECT a INTO r FROM st_t WHERE id = k;
	RETURN r;
END $$;
CREATE FUNCTION st_set(k int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r int;
BEGIN
	UPDATE st_t SET a = a + 1 WHERE id = k RETURNING a INTO r;
	RETURN r;
END $$;
PREPARE st_p(int) AS SELECT * FROM st_t WHERE id = $1;
SELECT sum(st_get(i)), sum(st_set(i)) FROM generate_series(1, 10) i;
EXECUTE st_p(1);
EXECUTE st_p(1);
SELECT count(*) > 2 AS run_here FROM mot_stat_jit WHERE executions > 0;

-- changed by the transaction itself, and changed back
BEGIN;
SAVEPOINT s;
ALTER TABLE st_t ALTER a TYPE bigint;
SELECT st_get(1), st_set(1), st_get(1);
ROLLBACK TO s;
SELECT st_get(1), st_set(1), st_get(1);
EXECUTE st_p(2);
SAVEPOINT s;
TRUNCATE st_t;
SELECT st_get(1) IS NULL AS gone, st_set(1) IS NULL AS gone;
ROLLBACK TO s;
SELECT st_get(1), st_set(1), st_get(1);
CREATE INDEX st_a ON st_t (a);
SELECT st_get(1), st_set(1), st_get(1);
SELECT id FROM st_t WHERE a = 14;
COMMIT;
SELECT st_get(1), st_set(1), st_get(1);

-- another table of this name; first one that never was
DROP TABLE st_t;
BEGIN;
CREATE FOREIGN TABLE st_t (a int, id int PRIMARY KEY) SERVER mot_server;
INSERT INTO st_t SELECT -i, i FROM generate_series(1, 20) i;
SELECT sum(st_get(i)), sum(st_set(i)) FROM generate_series(1, 10) i;
SAVEPOINT s;
DROP TABLE st_t;
CREATE FOREIGN TABLE st_t (id int PRIMARY KEY, x text, a int) SERVER mot_server;
INSERT INTO st_t SELECT i, 'x', i * 100 FROM generate_series(1, 20) i;
SELECT sum(st_get(i)), sum(st_set(i)) FROM generate_series(1, 10) i;
ROLLBACK TO s;
SELECT sum(st_get(i)), sum(st_set(i)) FROM generate_series(1, 10) i;
ROLLBACK;
SELECT st_get(1);
CREATE FOREIGN TABLE st_t (id int PRIMARY KEY, a int) SERVER mot_server;
INSERT INTO st_t SELECT i, i * 1000 FROM generate_series(1, 20) i;
SELECT sum(st_get(i)), sum(st_set(i)) FROM generate_series(1, 10) i;

-- changed by a statement between two executions of another
DO $$
DECLARE
	total int := 0;
BEGIN
	FOR i IN 1 .. 20 LOOP
		total := total + st_get(i);
		IF i % 7 = 0 THEN
			EXECUTE format('ALTER TABLE st_t ADD COLUMN c%s int DEFAULT %s', i, i);
		END IF;
	END LOOP;
	RAISE WARNING 'total %', total;
END $$;

-- a table that a query is reading stays
CREATE FUNCTION st_hold() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR (k int) FOR SELECT a FROM st_t WHERE id >= k;
	r int;
BEGIN
	FOR i IN 1 .. 8 LOOP
		OPEN c(i);
		FETCH c INTO r;
		IF i = 8 THEN
			BEGIN
				ALTER TABLE st_t DROP COLUMN c7;
			EXCEPTION WHEN object_in_use THEN
				RETURN 'in use, ' || r;
			END;
		END IF;
		CLOSE c;
	END LOOP;
	RETURN 'dropped';
END $$;
SELECT st_hold();
ALTER TABLE st_t DROP COLUMN c7;
SELECT st_get(7);

-- rows of fixed width are copied as they are, nulls and other types not
CREATE FOREIGN TABLE st_r (id int PRIMARY KEY, s smallint, b bool, l bigint, c "char", f real, d date, t text) SERVER mot_server;
INSERT INTO st_r SELECT i, i, i % 2 = 0, i::bigint << 33, 'x', i / 4.0, date '2026-01-01' + i, 'text ' || i FROM generate_series(1, 12) i;
INSERT INTO st_r (id) VALUES (13);
INSERT INTO st_r (id, b, f) VALUES (14, true, 1.5);
INSERT INTO st_r (id, s, l, c, d) VALUES (15, -1, -1, 'y', 'infinity');
INSERT INTO st_r SELECT i, i, i % 2 = 0, i::bigint << 33, 'z', i / 4.0, date '2026-01-01' + i, 'text ' || i FROM generate_series(16, 17) i;
CREATE TYPE st_pair AS (b bool, l bigint, s smallint);
CREATE FUNCTION st_rows() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	w record;
	p st_pair;
	n bool;
BEGIN
	FOR i IN 1 .. 18 LOOP
		SELECT b, s, c, l, f, d INTO r FROM st_r WHERE id = i;
		SELECT t, s, l INTO w FROM st_r WHERE id = i;
		SELECT b, l, s INTO p FROM st_r WHERE id = i;
		PERFORM FROM st_r WHERE id = i;
		n := FOUND;
		CONTINUE WHEN i < 10;
		RETURN NEXT concat_ws(' ', i, to_json(r), to_json(w), to_json(p), n);
	END LOOP;
END $$;
SELECT * FROM st_rows();
CREATE FUNCTION st_query(k int) RETURNS TABLE (s smallint, l bigint, b bool) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT x.s, x.l, x.b FROM st_r x WHERE x.id >= k AND x.id < k + 2;
END $$;
SELECT q.* FROM generate_series(8, 16) i, st_query(i) q;
PREPARE st_c(int) AS SELECT id, s, l FROM st_r WHERE id = $1;
EXECUTE st_c(1);
CREATE TEMP TABLE st_copy USING heap AS EXECUTE st_c(2);
CREATE TEMP TABLE st_copy2 USING heap AS EXECUTE st_c(13);
SELECT *, pg_column_size(st_copy.*) FROM st_copy;
SELECT *, pg_column_size(st_copy2.*) FROM st_copy2;

-- references to a table: a cursor keeps it from being altered while it is
-- open, not any more when it has failed; and one that a savepoint outlives
CREATE FOREIGN TABLE st_u (id int PRIMARY KEY, a int NOT NULL) SERVER mot_server;
INSERT INTO st_u SELECT i, i * 10 FROM generate_series(1, 20) i;
BEGIN;
DECLARE c CURSOR FOR SELECT 100 / (a - 100) FROM st_u ORDER BY id;
FETCH 2 FROM c;
SAVEPOINT s;
ALTER TABLE st_u ADD COLUMN b int;
ROLLBACK TO s;
FETCH 2 FROM c;
ROLLBACK TO s;
FETCH ALL FROM c;
ROLLBACK TO s;
FETCH 1 FROM c;
ROLLBACK TO s;
ALTER TABLE st_u ADD COLUMN b int;
COMMIT;
SELECT * FROM st_u WHERE id = 1;
BEGIN;
SAVEPOINT s;
DECLARE c CURSOR FOR SELECT id FROM st_u ORDER BY id;
FETCH 1 FROM c;
RELEASE s;
SAVEPOINT s;
FETCH 1 FROM c;
ALTER TABLE st_u DROP COLUMN b;
ROLLBACK TO s;
FETCH 1 FROM c;
CLOSE c;
ALTER TABLE st_u DROP COLUMN b;
COMMIT;
CREATE FUNCTION st_fails(k int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 / (a - 100) FROM st_u WHERE id = k;
	RETURN 1;
EXCEPTION WHEN division_by_zero THEN
	RETURN 0;
END $$;
SELECT i, st_fails(i) FROM generate_series(8, 12) i;
BEGIN;
SELECT sum(st_fails(id)) FROM st_u;
ALTER TABLE st_u ADD COLUMN c text;
SELECT sum(st_fails(id)) FROM st_u;
ROLLBACK;
SELECT st_fails(id) FROM st_u WHERE id = 10;
ALTER TABLE st_u ADD COLUMN c text;
SELECT * FROM st_u WHERE id = 10;
DROP FUNCTION st_fails(int);
DROP FOREIGN TABLE st_u;

DROP TABLE st_copy, st_copy2, st_t, st_r;
DROP FUNCTION st_get, st_set, st_hold, st_rows, st_query;
DROP TYPE st_pair;
DEALLOCATE st_p;
DEALLOCATE st_c;
RESET plan_cache_mode;
RESET mot.jit_prepare_above_executions;
RESET client_min_messages;
