-- Assignments that are the same for every row of an UPDATE: computed once an
-- execution, but only what nobody could tell from computing them each time.
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;
SET jit = off;
CREATE FOREIGN TABLE sf (id int PRIMARY KEY, n int, at timestamp, d date NOT NULL, t text, z timestamptz) SERVER mot_server;
INSERT INTO sf SELECT i, i, CASE WHEN i % 2 = 0 THEN '2000-01-01'::timestamp END, '2000-01-01', 't' || i FROM generate_series(1, 6) i;

-- alone, and among others in any order; rows with and without nulls
PREPARE p1(int) AS UPDATE sf SET at = localtimestamp WHERE id > $1;
PREPARE p2(int) AS UPDATE sf SET z = now(), n = n + $1, d = current_date, t = t || '!', at = NULL WHERE id BETWEEN $1 AND 5;
PREPARE p3(int) AS UPDATE sf SET n = n * 2, z = now() + interval '1 day' WHERE id >= $1 RETURNING id, n, z = now() + interval '1 day' AS z;
EXECUTE p1(4); EXECUTE p1(2);
SELECT id, n, at = (SELECT max(at) FROM sf) AS at, d, t, z FROM sf ORDER BY id;
BEGIN;
EXECUTE p2(2); EXECUTE p2(4);
SELECT id, n, at IS NULL AS at, d = current_date AS d, t, z = now() AS z FROM sf ORDER BY id;
EXECUTE p3(3);
COMMIT;
-- another execution, another time
BEGIN;
EXECUTE p3(5);
SELECT id, z = now() + interval '1 day' AS z FROM sf WHERE id > 2 ORDER BY id;
COMMIT;

-- a null where there may be none
PREPARE p4(interval) AS UPDATE sf SET d = (now() + $1)::date;
EXECUTE p4(NULL);
EXECUTE p4('0');
SELECT count(*), count(DISTINCT d) FROM sf;

-- an error only if there is a row
PREPARE p5(int, int) AS UPDATE sf SET n = extract(year FROM now())::int / $1 * 0 WHERE id = $2;
EXECUTE p5(0, 100);
EXECUTE p5(0, 1);
EXECUTE p5(1, 1);

-- functions of others are called for each row
CREATE FUNCTION sf_seen(timestamptz) RETURNS timestamptz STABLE LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'called'; RETURN $1; END $$;
CREATE DOMAIN sf_date AS date CHECK (sf_seen(now()) IS NOT NULL);
PREPARE p6(int) AS UPDATE sf SET z = sf_seen(now()) WHERE id <= $1;
EXECUTE p6(3);
PREPARE p7(int) AS UPDATE sf SET d = current_date::sf_date WHERE id <= $1;
EXECUTE p7(2);

DROP TABLE sf;
DROP DOMAIN sf_date;
DROP FUNCTION sf_seen;
