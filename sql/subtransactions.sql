-- Twenty thousand subtransactions in one transaction: no lock is kept for each
-- of them, by heap tables nor by memory-optimized ones.
CREATE FOREIGN TABLE st_mot (id int PRIMARY KEY, v int) SERVER mot_server;
CREATE TABLE st_heap (id int PRIMARY KEY, v int) USING heap;
INSERT INTO st_mot SELECT i, 0 FROM generate_series(1, 100) i;
INSERT INTO st_heap SELECT i, 0 FROM generate_series(1, 100) i;

-- every fifth block fails; every third has another one in it, of which every seventh fails
CREATE FUNCTION st_locks() RETURNS bigint LANGUAGE sql AS
	$$ SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype IN ('spectoken', 'transactionid') $$;
DO $$
DECLARE
	body text := $body$
	BEGIN
		FOR i IN 1 .. 20000 LOOP
			BEGIN
				UPDATE TAB SET v = v + 1 WHERE id = i % 100 + 1;
				IF i % 3 = 0 THEN
					BEGIN
						UPDATE TAB SET v = v + 1000 WHERE id = (i + 1) % 100 + 1;
						INSERT INTO TAB VALUES (1000 + i, i);
						PERFORM 1 / (i % 7);
						IF i = 9999 THEN
							RAISE NOTICE 'deep inside: at most 3 locks: %', st_locks() <= 3;
						END IF;
					EXCEPTION WHEN division_by_zero THEN NULL;
					END;
				END IF;
				PERFORM 1 / (i % 5);
			EXCEPTION WHEN division_by_zero THEN NULL;
			END;
		END LOOP;
		RAISE NOTICE 'at the end: at most 1 lock: %', st_locks() <= 1;
	END $body$;
BEGIN
	EXECUTE format('CREATE PROCEDURE st_run_mot() LANGUAGE plpgsql AS %L', replace(body, 'TAB', 'st_mot'));
	EXECUTE format('CREATE PROCEDURE st_run_heap() LANGUAGE plpgsql AS %L', replace(body, 'TAB', 'st_heap'));
END $$;

BEGIN;
CALL st_run_heap();
COMMIT;
BEGIN;
CALL st_run_mot();
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
DELETE FROM st_mot WHERE id > 1000;
CALL st_run_mot();
ROLLBACK;

SELECT count(*), sum(v), sum(id) FROM st_heap;
SELECT count(*), sum(v), sum(id) FROM st_mot;
SELECT count(*) FROM st_heap FULL JOIN st_mot USING (id) WHERE st_heap.v IS DISTINCT FROM st_mot.v;

-- a savepoint released in a savepoint that had written nothing itself
BEGIN;
SAVEPOINT a;
SAVEPOINT b;
UPDATE st_mot SET v = 0 WHERE id = 1;
RELEASE b;
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'spectoken';
SAVEPOINT c;
UPDATE st_mot SET v = 0 WHERE id = 2;
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'spectoken';
RELEASE c;
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'spectoken';
RELEASE a;
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'spectoken';
ROLLBACK;

DROP FUNCTION st_locks;
DROP PROCEDURE st_run_mot, st_run_heap;
DROP FOREIGN TABLE st_mot;
DROP TABLE st_heap;
