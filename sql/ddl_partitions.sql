--
-- Rows of memory-optimized tables that a new partition concerns: those that
-- it brings along, and those of the default partition
--
CREATE FUNCTION pg_temp.try(stmt text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE stmt;
	RETURN 'done';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || ' ' || sqlerrm;
END $$;
SET client_min_messages = error;

-- what is made of "kind" differs, what happens does not
CREATE FUNCTION pg_temp.story(kind text) RETURNS TABLE (step text, result text) LANGUAGE plpgsql AS $$
DECLARE
	make text := CASE kind WHEN 'heap' THEN 'CREATE TABLE ' ELSE 'CREATE FOREIGN TABLE ' END;
	server text := CASE kind WHEN 'heap' THEN '' ELSE ' SERVER mot_server' END;
	stmt text;
BEGIN
	CREATE TABLE part (a int, b int) PARTITION BY RANGE (a);
	EXECUTE make || 'rest PARTITION OF part DEFAULT' || server;
	INSERT INTO part VALUES (1, 1), (50, 50), (NULL, 3);
	FOREACH stmt IN ARRAY ARRAY[
		'CREATE TABLE one PARTITION OF part FOR VALUES FROM (0) TO (10)',
		make || 'one PARTITION OF part FOR VALUES FROM (0) TO (10)' || server,
		make || 'one PARTITION OF part FOR VALUES FROM (10) TO (20)' || server,
		'CREATE TABLE two (a int, b int)',
		'ALTER TABLE part ATTACH PARTITION two FOR VALUES FROM (40) TO (60)',
		'DELETE FROM part WHERE a = 50',
		'ALTER TABLE part ATTACH PARTITION two FOR VALUES FROM (40) TO (60)',
		'INSERT INTO part VALUES (50, 51)',
		'ALTER TABLE part DETACH PARTITION rest',
		'INSERT INTO rest VALUES (15, 1)',
		'ALTER TABLE part ATTACH PARTITION rest DEFAULT',
		'DELETE FROM rest WHERE a = 15',
		'ALTER TABLE part ATTACH PARTITION rest DEFAULT',
		-- a default partition that has partitions
		'ALTER TABLE part DETACH PARTITION rest',
		'DROP TABLE rest',
		'CREATE TABLE rest PARTITION OF part DEFAULT PARTITION BY LIST (b)',
		make || 'rest_1 PARTITION OF rest FOR VALUES IN (1)' || server,
		make || 'rest_n (b int, a int)' || server,
		'ALTER TABLE rest ATTACH PARTITION rest_n DEFAULT',
		'INSERT INTO part VALUES (1, 1), (2, 2)',
		'CREATE TABLE three PARTITION OF part FOR VALUES FROM (1) TO (2)',
		'CREATE TABLE three PARTITION OF part FOR VALUES FROM (2) TO (3)',
		'CREATE TABLE three PARTITION OF part FOR VALUES FROM (3) TO (4)',
		'CREATE TABLE four (b int, a int)',
		'ALTER TABLE part ATTACH PARTITION four FOR VALUES FROM (2) TO (3)',
		'CREATE TABLE rest_2 PARTITION OF rest FOR VALUES IN (2)',
		-- a partition that has partitions
		'CREATE TABLE tree (a int, b int) PARTITION BY RANGE (b)',
		make || 'tree_1 (b int, gone int, a int)' || server,
		'ALTER TABLE tree_1 DROP COLUMN gone',
		'ALTER TABLE tree ATTACH PARTITION tree_1 FOR VALUES FROM (0) TO (1000)',
		'INSERT INTO tree VALUES (500, 5)',
		'ALTER TABLE part ATTACH PARTITION tree FOR VALUES FROM (100) TO (200)',
		'UPDATE tree SET a = 150',
		'ALTER TABLE part ATTACH PARTITION tree FOR VALUES FROM (100) TO (200)'
	] LOOP
		step := replace(replace(stmt, server, ''), 'FOREIGN ', '');
		IF kind <> 'heap' AND stmt LIKE 'DROP TABLE rest' THEN
			stmt := 'DROP FOREIGN TABLE rest';
		END IF;
		result := pg_temp.try(stmt);
		RETURN NEXT;
	END LOOP;
	step := 'rows';
	SELECT string_agg(tableoid::regclass || ' ' || p::text, ', ' ORDER BY p::text) INTO result FROM part p;
	RETURN NEXT;
	DROP TABLE part, four;
END $$;

CREATE TEMP TABLE heap AS SELECT row_number() OVER () AS n, * FROM pg_temp.story('heap');
CREATE TEMP TABLE mot AS SELECT row_number() OVER () AS n, * FROM pg_temp.story('mot');
SELECT step, result FROM mot ORDER BY n;
SELECT h.step, h.result AS heap, m.result AS mot FROM heap h FULL JOIN mot m USING (n)
	WHERE h.result IS DISTINCT FROM m.result OR h.step IS DISTINCT FROM m.step;
DROP TABLE heap, mot;

-- one that is there already concerns nobody
CREATE TABLE part (a int) PARTITION BY LIST (a);
CREATE FOREIGN TABLE rest PARTITION OF part DEFAULT SERVER mot_server;
CREATE FOREIGN TABLE one PARTITION OF part FOR VALUES IN (1) SERVER mot_server;
CREATE TABLE two PARTITION OF part FOR VALUES IN (2);
INSERT INTO part VALUES (5), (6);
BEGIN;
CREATE FOREIGN TABLE IF NOT EXISTS one PARTITION OF part FOR VALUES IN (1) SERVER mot_server;
CREATE TABLE IF NOT EXISTS two PARTITION OF part FOR VALUES IN (2);
SELECT mode FROM pg_locks WHERE relation = 'rest'::regclass;
COMMIT;
-- but of the same name only
CREATE SCHEMA part_other;
SET search_path = part_other, public;
CREATE FOREIGN TABLE IF NOT EXISTS one PARTITION OF part FOR VALUES IN (5) SERVER mot_server;
CREATE TABLE IF NOT EXISTS two PARTITION OF part FOR VALUES IN (6);
CREATE TABLE IF NOT EXISTS two PARTITION OF part FOR VALUES IN (7);
RESET search_path;
DROP TABLE part;
DROP SCHEMA part_other;
SELECT count(*) FROM mot_stat_tables;

-- an event trigger that gets over its own failure is no reason not to look
CREATE FUNCTION part_tries() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE part_nothing;
EXCEPTION WHEN undefined_table THEN
	NULL;
END $$;
CREATE TABLE part (a int) PARTITION BY LIST (a);
CREATE FOREIGN TABLE seven (a int) SERVER mot_server;
INSERT INTO seven VALUES (7);
CREATE FOREIGN TABLE rest (a int) SERVER mot_server;
INSERT INTO rest VALUES (2);
ALTER TABLE part ATTACH PARTITION rest DEFAULT;
CREATE EVENT TRIGGER part_tries ON ddl_command_start WHEN TAG IN ('ALTER TABLE', 'CREATE TABLE', 'CREATE FOREIGN TABLE')
	EXECUTE FUNCTION part_tries();
ALTER TABLE part ATTACH PARTITION seven FOR VALUES IN (1);
CREATE TABLE two PARTITION OF part FOR VALUES IN (2);
CREATE FOREIGN TABLE two PARTITION OF part FOR VALUES IN (2) SERVER mot_server;
DROP EVENT TRIGGER part_tries;
SELECT tableoid::regclass, a FROM part WHERE a = 2;
DROP TABLE part, seven;
DROP FUNCTION part_tries;

-- one that puts things right when all is done comes too late, as with heap tables
CREATE FUNCTION part_mends() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM seven WHERE a = 7;
	DELETE FROM rest WHERE a = 2;
END $$;
CREATE TABLE part (a int) PARTITION BY LIST (a);
CREATE FOREIGN TABLE seven (a int) SERVER mot_server;
INSERT INTO seven VALUES (7);
CREATE FOREIGN TABLE rest PARTITION OF part DEFAULT SERVER mot_server;
INSERT INTO rest VALUES (2);
CREATE EVENT TRIGGER part_mends ON ddl_command_end WHEN TAG IN ('ALTER TABLE', 'CREATE TABLE', 'CREATE FOREIGN TABLE')
	EXECUTE FUNCTION part_mends();
ALTER TABLE part ATTACH PARTITION seven FOR VALUES IN (1);
CREATE TABLE two PARTITION OF part FOR VALUES IN (2);
CREATE FOREIGN TABLE two PARTITION OF part FOR VALUES IN (2) SERVER mot_server;
DROP EVENT TRIGGER part_mends;
DROP TABLE part, seven;
DROP FUNCTION part_mends;
