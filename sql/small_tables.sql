--
-- What many small tables take.
--
CREATE TABLE small_before AS SELECT used_bytes FROM mot_stat_memory;
DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		EXECUTE format('CREATE FOREIGN TABLE small_%s (id int PRIMARY KEY, v text) SERVER mot_server', i);
		EXECUTE format('INSERT INTO small_%s VALUES (1, ''one'')', i);
	END LOOP;
END $$;
SELECT (m.used_bytes - b.used_bytes) / 300 <= 32 * 1024 AS small FROM mot_stat_memory m, small_before b;
SELECT count(*), max(row_bytes + index_bytes) FROM mot_stat_tables WHERE relname LIKE 'small_%';
-- they grow, and look as before
INSERT INTO small_7 SELECT i, 'row ' || i FROM generate_series(2, 5000) i;
UPDATE small_7 SET v = v || '.' WHERE id % 3 = 0;
SELECT count(*), sum(id), count(DISTINCT v) FROM small_7;
SELECT v FROM small_7 WHERE id = 4998;
SELECT sum(problems) FROM mot_verify('small_7');
SELECT sum(problems) FROM mot_verify('small_8');
DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		EXECUTE format('DROP FOREIGN TABLE small_%s', i);
	END LOOP;
END $$;
DROP TABLE small_before;
