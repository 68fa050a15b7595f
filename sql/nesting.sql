-- Savepoints and exception blocks, hundreds deep, with definitions among them:
-- a heap table and its memory-optimized twin go through the same.

-- savepoints: each adds a row and changes the first one
CREATE TABLE nest_heap (id int PRIMARY KEY, v int UNIQUE);
CREATE FOREIGN TABLE nest_mot (id int PRIMARY KEY, v int UNIQUE) SERVER mot_server;
INSERT INTO nest_heap VALUES (0, 0);
INSERT INTO nest_mot VALUES (0, 0);
CREATE VIEW nest AS
	SELECT (SELECT ARRAY[count(*), sum(id), max(v)] FROM nest_mot) AS mot,
		(SELECT v FROM nest_mot WHERE id = 0) AS first,
		(SELECT array_agg(h ORDER BY id) FROM nest_heap h)::text = (SELECT array_agg(m ORDER BY id) FROM nest_mot m)::text AS same;
BEGIN;
\set ECHO none
SELECT format('SAVEPOINT s%s', i),
	format('UPDATE nest_heap SET v = %s WHERE id = 0', -i), format('INSERT INTO nest_heap VALUES (%s, %s)', i, i),
	format('UPDATE nest_mot SET v = %s WHERE id = 0', -i), format('INSERT INTO nest_mot VALUES (%s, %s)', i, i)
FROM generate_series(1, 300) i
\gexec
\set ECHO all
SELECT * FROM nest;
ROLLBACK TO s201;
SELECT * FROM nest;
RELEASE s150;
INSERT INTO nest_heap VALUES (150, 0);
ROLLBACK TO s100;
INSERT INTO nest_mot VALUES (50, 1000);
ROLLBACK TO s99;
DELETE FROM nest_heap WHERE id = 7;
DELETE FROM nest_mot WHERE id = 7;
SELECT * FROM nest;
COMMIT;
SELECT * FROM nest;

-- exception blocks: some levels fail on its way out and takes with it what the levels in it did
CREATE FUNCTION nest_into(t text, level int, deepest int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int;
BEGIN
	BEGIN
		EXECUTE format('INSERT INTO %I VALUES ($1, $1)', t) USING 1000 + level;
		EXECUTE format('UPDATE %I SET v = v - 1000 WHERE id = 0', t);
		IF level % 7 = 0 THEN
			-- a duplicate, and what was done before it in this block
			BEGIN
				EXECUTE format('DELETE FROM %I WHERE id = $1', t) USING 1000 + level;
				EXECUTE format('INSERT INTO %I VALUES (1, -1)', t);
			EXCEPTION WHEN unique_violation THEN
				EXECUTE format('UPDATE %I SET v = -$1 WHERE id = $1', t) USING 1000 + level;
			END;
		END IF;
		IF level < deepest THEN
			n := nest_into(t, level + 1, deepest);
		END IF;
		IF level IN (105, 175, 235) THEN
			RAISE division_by_zero;
		END IF;
	EXCEPTION WHEN division_by_zero THEN
		EXECUTE format('INSERT INTO %I VALUES ($1, $1)', t) USING 2000 + level;
	END;
	EXECUTE format('SELECT count(*) FROM %I', t) INTO n;
	RETURN n;
END $$;
SELECT nest_into('nest_heap', 1, 250) = nest_into('nest_mot', 1, 250) AS same;
SELECT * FROM nest;

-- definitions in blocks that fail, and in blocks that do not
SET mot.default_engine = 'mot';
CREATE FUNCTION nest_define(level int, deepest int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		EXECUTE format('CREATE FOREIGN TABLE nest_t%s (id int PRIMARY KEY, v int) SERVER mot_server', level);
		EXECUTE format('INSERT INTO nest_t%s SELECT i, i FROM generate_series(1, 10) i', level);
		CASE level % 5
			WHEN 0 THEN EXECUTE format('CREATE INDEX ON nest_t%s (v)', level);
			WHEN 1 THEN EXECUTE format('ALTER TABLE nest_t%s ADD COLUMN w int DEFAULT 7', level);
			WHEN 2 THEN EXECUTE format('TRUNCATE nest_t%s', level);
			WHEN 3 THEN EXECUTE format('ALTER TABLE nest_t%s ALTER COLUMN v TYPE text', level);
			ELSE EXECUTE format('DROP TABLE nest_t%s', level);
		END CASE;
		IF level > 1 AND (level - 1) % 5 <> 4 THEN
			-- the table of the level around
			EXECUTE format('INSERT INTO nest_t%s VALUES (%s, 0)', level - 1, 100 + level);
		END IF;
		IF level % 3 = 0 THEN
			EXECUTE 'ALTER TABLE nest_mot ADD COLUMN IF NOT EXISTS c' || level || ' int DEFAULT ' || level;
			UPDATE nest_mot SET v = v + 1000000 WHERE id = 0;
		END IF;
		IF level < deepest THEN
			PERFORM nest_define(level + 1, deepest);
		END IF;
		IF level = 21 OR level = 11 THEN
			RAISE division_by_zero;
		END IF;
	EXCEPTION WHEN division_by_zero THEN
		EXECUTE format('CREATE TABLE nest_failed%s AS SELECT %s AS level', level, level);
	END;
END $$;
BEGIN;
SELECT nest_define(1, 30);
SELECT count(*) AS columns FROM pg_attribute WHERE attrelid = 'nest_mot'::regclass AND attname LIKE 'c%' AND attnum > 0;
COMMIT;
SELECT relname, relkind FROM pg_class WHERE relname ~ '^nest_(t|failed)' AND relkind IN ('r', 'f')
ORDER BY regexp_replace(relname, '\D', '', 'g')::int, relname;
SELECT * FROM nest_t1 WHERE id > 9 ORDER BY id;
SELECT * FROM nest_t2 ORDER BY id;
SELECT count(*), max(v) FROM nest_t3;
SELECT c9, count(*) FROM nest_mot GROUP BY c9;
SELECT object, problems FROM mot_verify('nest_mot') ORDER BY object::text;
SELECT bool_and(problems = 0) AS sound FROM pg_class c, mot_verify(c.oid) WHERE relname ~ '^nest_' AND relkind = 'f';

-- all of it again, and away
BEGIN;
DROP TABLE nest_t1, nest_t2, nest_t3, nest_t5, nest_t6, nest_t7, nest_t8, nest_t10, nest_failed11;
SELECT nest_define(1, 20);
ROLLBACK;
SELECT count(*) FROM nest_t1;

-- temporary tables in the same transaction
RESET mot.default_engine;
BEGIN;
CREATE TEMP TABLE nest_drop (id int) ON COMMIT DROP;
CREATE TEMP TABLE nest_keep (id int) ON COMMIT DELETE ROWS;
INSERT INTO nest_drop SELECT id FROM nest_mot WHERE id < 5;
INSERT INTO nest_keep SELECT id FROM nest_mot WHERE id < 5;
UPDATE nest_mot m SET v = m.v + 500 FROM nest_drop d WHERE d.id = m.id;
SAVEPOINT s;
INSERT INTO nest_mot (id, v) SELECT id + 5000, id + 5000 FROM nest_keep;
DROP TABLE nest_keep;
ROLLBACK TO s;
INSERT INTO nest_mot (id, v) SELECT id + 6000, id + 6000 FROM nest_keep;
COMMIT;
SELECT count(*) FROM nest_keep;
SELECT id, v FROM nest_mot WHERE id < 5 OR id >= 5000 ORDER BY id;
SELECT to_regclass('nest_drop');
-- rolled back with it
BEGIN;
CREATE TEMP TABLE nest_gone AS SELECT id FROM nest_mot WHERE id < 3;
DELETE FROM nest_mot USING nest_gone g WHERE g.id = nest_mot.id;
ROLLBACK;
SELECT count(*), to_regclass('nest_gone') FROM nest_mot WHERE id < 3;

DROP TABLE nest_keep, nest_t1, nest_t2, nest_t3, nest_t5, nest_t6, nest_t7, nest_t8, nest_t10, nest_failed11;
DROP VIEW nest;
DROP TABLE nest_heap;
DROP FOREIGN TABLE nest_mot;
DROP FUNCTION nest_into, nest_define;
