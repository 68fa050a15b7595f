-- Where statements notice that they are cancelled: after any row, whatever is
-- done with the rows.  Each cancels itself at its 100th row, and a sequence tells
-- how many more it has gone through.  Heap tables say how it has to be.

SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET jit = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
CREATE SEQUENCE cancel_rows;
CREATE TABLE cancel_heap (id int PRIMARY KEY, v bigint NOT NULL, t text) USING heap;
INSERT INTO cancel_heap SELECT i, i, 'row ' || i FROM generate_series(1, 300) i;
CREATE FOREIGN TABLE cancel_mot (LIKE cancel_heap) SERVER mot_server;
ALTER FOREIGN TABLE cancel_mot ADD PRIMARY KEY (id);
INSERT INTO cancel_mot SELECT * FROM cancel_heap ORDER BY id;
ANALYZE cancel_heap, cancel_mot;

CREATE TABLE cancel_statements (what text, statement text);
INSERT INTO cancel_statements VALUES
	('rows', 'SELECT t, nextval(''cancel_rows''), CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END FROM TABLE'),
	('rows by an index', 'SELECT t, nextval(''cancel_rows''), CASE WHEN id = 101 THEN pg_cancel_backend(pg_backend_pid()) END FROM TABLE WHERE id > 1 ORDER BY id'),
	('a filter', 'SELECT t FROM TABLE WHERE nextval(''cancel_rows'') > 0 AND (id <> 100 OR pg_cancel_backend(pg_backend_pid()))'),
	('rows sorted', 'SELECT t FROM TABLE ORDER BY nextval(''cancel_rows'') % 7, CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END'),
	('LIMIT', 'SELECT t FROM (SELECT t, nextval(''cancel_rows''), CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END FROM TABLE LIMIT 250 OFFSET 50) s'),
	('sums', 'SELECT sum(nextval(''cancel_rows'')), count(CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END) FROM TABLE'),
	('a sub-select', 'SELECT ARRAY(SELECT nextval(''cancel_rows'') + CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid())::int ELSE 0 END FROM TABLE)'),
	('IN', 'SELECT 1 FROM TABLE WHERE id = 1 AND v + 7 NOT IN (SELECT nextval(''cancel_rows'') + 1000 + CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid())::int ELSE 0 END FROM TABLE)'),
	('a join', 'SELECT nextval(''cancel_rows''), CASE WHEN a.id = 100 THEN pg_cancel_backend(pg_backend_pid()) END FROM TABLE a JOIN TABLE b ON b.id = a.id'),
	('row locks', 'SELECT nextval(''cancel_rows''), CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END FROM TABLE FOR UPDATE'),
	('UPDATE', 'UPDATE TABLE SET v = nextval(''cancel_rows'') + CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid())::int ELSE 0 END'),
	('UPDATE of other lengths', 'UPDATE TABLE SET t = t || nextval(''cancel_rows'') || coalesce(CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END::text, '''')'),
	('UPDATE, RETURNING', 'UPDATE TABLE SET v = v + 1 RETURNING nextval(''cancel_rows''), CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END'),
	('UPDATE of all columns, RETURNING', 'UPDATE TABLE SET id = -id, t = '''' RETURNING nextval(''cancel_rows''), CASE WHEN id = -100 THEN pg_cancel_backend(pg_backend_pid()) END'),
	('UPDATE, FROM', 'UPDATE TABLE a SET v = b.v FROM TABLE b WHERE b.id = a.id RETURNING nextval(''cancel_rows''), CASE WHEN a.id = 100 THEN pg_cancel_backend(pg_backend_pid()) END'),
	('DELETE', 'DELETE FROM TABLE WHERE nextval(''cancel_rows'') > 0 AND (id <> 100 OR pg_cancel_backend(pg_backend_pid()))'),
	('DELETE, RETURNING', 'DELETE FROM TABLE RETURNING nextval(''cancel_rows''), CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END'),
	('INSERT', 'INSERT INTO TABLE SELECT id + 1000, nextval(''cancel_rows''), CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END::text FROM TABLE'),
	('INSERT, ON CONFLICT, RETURNING', 'INSERT INTO TABLE SELECT id, v FROM TABLE ON CONFLICT (id) DO UPDATE SET v = excluded.v
		RETURNING nextval(''cancel_rows''), CASE WHEN id = 100 THEN pg_cancel_backend(pg_backend_pid()) END');

CREATE FUNCTION cancel_try(statement text, kind text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows bigint;
BEGIN
	PERFORM setval('cancel_rows', 1, false);
	BEGIN
		EXECUTE replace(statement, 'TABLE', kind);
		RETURN 'all';
	EXCEPTION WHEN query_canceled THEN
		SELECT last_value INTO rows FROM cancel_rows;
		RETURN rows || ' rows';
	END;
END $$;

SELECT what, cancel_try(statement, 'cancel_heap') AS heap, cancel_try(statement, 'cancel_mot') AS mot FROM cancel_statements;
SET mot.jit = off;
SELECT what, cancel_try(statement, 'cancel_heap') AS heap, cancel_try(statement, 'cancel_mot') AS mot FROM cancel_statements
WHERE cancel_try(statement, 'cancel_heap') <> cancel_try(statement, 'cancel_mot');
RESET mot.jit;
SELECT count(*), sum(v), min(t) FROM cancel_mot;

-- as they are executed in turns with others
PREPARE rows(int) AS SELECT t, CASE WHEN id = $1 THEN pg_cancel_backend(pg_backend_pid()) END AS c FROM cancel_mot WHERE id <= 3 ORDER BY id;
EXECUTE rows(0);
EXECUTE rows(2);
EXECUTE rows(0);
EXECUTE rows(3);
BEGIN;
SAVEPOINT s;
EXECUTE rows(1);
ROLLBACK TO s;
EXECUTE rows(0);
COMMIT;

DEALLOCATE rows;
DROP FUNCTION cancel_try;
DROP TABLE cancel_statements, cancel_heap;
DROP FOREIGN TABLE cancel_mot;
DROP SEQUENCE cancel_rows;
