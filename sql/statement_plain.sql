-- Plain columns of a scan's rows, which are read where they lie: rows with nulls,
-- rows older than a column, and columns that do not always lie at one place.
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = -1;
CREATE FOREIGN TABLE sp (id int PRIMARY KEY, s smallint, c "char", u uuid, b bigint, n name, d date, t text, z int) SERVER mot_server;
INSERT INTO sp SELECT i, i * 10, chr(64 + i), md5(i::text)::uuid, i * 5000000000, 'name ' || i, date '2020-01-01' + i, repeat('t', i), -i
	FROM generate_series(1, 4) i;
INSERT INTO sp VALUES (5);
INSERT INTO sp VALUES (6, 60, NULL, NULL, 30000000000, 'name 6');
ALTER TABLE sp ADD COLUMN e int DEFAULT 7;
INSERT INTO sp SELECT 7, 70, 'G', md5('7')::uuid, 35000000000, 'name 7', '2020-01-08', 'ttttttt', -7, 8;

PREPARE s1(int) AS SELECT b, id, s FROM sp WHERE id = $1;
PREPARE s2(int, int) AS SELECT d, n, u, c, c, s, b FROM sp WHERE id BETWEEN $1 AND $2 ORDER BY id;
PREPARE s3(int, int) AS SELECT z, t, id, e FROM sp WHERE id BETWEEN $1 AND $2 ORDER BY id;
PREPARE s4(int) AS SELECT s, tableoid::regclass, b FROM sp WHERE id = $1;
PREPARE s5(int) AS SELECT b FROM sp WHERE id = $1;
EXECUTE s1(3); EXECUTE s1(5); EXECUTE s1(6); EXECUTE s1(8);
EXECUTE s2(1, 9); EXECUTE s3(1, 9); EXECUTE s4(2);
EXECUTE s5(2); EXECUTE s5(5); EXECUTE s5(7);
SELECT substring(query FROM 'PREPARE (\w+)') AS name, tier FROM mot_stat_jit WHERE query ~ '^PREPARE s\d' ORDER BY name;

-- a join's inner and outer side, and what is above
PREPARE j1(int) AS SELECT a.b, x.s, x.z FROM sp a JOIN sp x ON x.id = a.s / 10 WHERE a.id <= $1 ORDER BY a.id;
EXECUTE j1(7);
PREPARE a1(int) AS SELECT sum(b), count(u), min(d) FROM sp WHERE id >= $1;
EXECUTE a1(2);

-- another definition
ALTER TABLE sp DROP COLUMN c;
EXECUTE s1(3); EXECUTE s5(7);
ALTER TABLE sp ALTER COLUMN s TYPE bigint;
EXECUTE s5(3); EXECUTE s5(6);

-- rows older than the column
CREATE FOREIGN TABLE sq (id int PRIMARY KEY, a bigint) SERVER mot_server;
INSERT INTO sq VALUES (1, 10), (2, 20);
ALTER TABLE sq ADD COLUMN x int DEFAULT 7;
INSERT INTO sq VALUES (3, 30, 8), (4, 40, NULL);
PREPARE q1(int) AS SELECT x, a FROM sq WHERE id >= $1 ORDER BY id;
EXECUTE q1(1);
DROP TABLE sq;

-- a cursor's row
BEGIN;
DECLARE cur CURSOR FOR SELECT b, d FROM sp WHERE id >= 2;
FETCH 1 FROM cur;
UPDATE sp SET b = 0 WHERE CURRENT OF cur;
FETCH 2 FROM cur;
DELETE FROM sp WHERE CURRENT OF cur;
FETCH 1 FROM cur;
SELECT id, b FROM sp ORDER BY id;
COMMIT;
DROP TABLE sp;
