-- Ranges of tuple ids of ordinary tables, beside heap twins: the rows are those of the range, in the ids'
-- order, whatever has become of them; who pages through a table by ctid comes by each once.
CREATE TABLE tids_heap (id int PRIMARY KEY, v text) USING heap;
CREATE TABLE tids_mot (id int PRIMARY KEY, v text) USING mot;
INSERT INTO tids_heap SELECT i, repeat('x', i % 50) FROM generate_series(1, 5000) i;
INSERT INTO tids_mot SELECT i, repeat('x', i % 50) FROM generate_series(1, 5000) i;

EXPLAIN (COSTS OFF) SELECT * FROM tids_mot WHERE ctid >= '(1,0)' AND ctid < '(9,0)' AND v <> '';
EXPLAIN (COSTS OFF) SELECT * FROM tids_mot WHERE ctid > '(1,0)' LIMIT 1;
EXPLAIN (COSTS OFF) UPDATE tids_mot SET v = 'y' WHERE '(9,0)'::tid >= ctid;
EXPLAIN (COSTS OFF) SELECT * FROM tids_mot WHERE ctid > '(1,0)' AND id = 7;
SET enable_tidscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM tids_mot WHERE ctid > '(1,0)';
RESET enable_tidscan;

-- Rows between two of the table, from the n-th id on and m long, forward and back: are they those that a
-- condition finds which is no range, and in order?  How many there are is the same in both tables.
CREATE FUNCTION tids_between(n int, m int, OUT heap text, OUT mot text) LANGUAGE plpgsql AS $$
DECLARE
	low tid;
	high tid;
	rows tid[];
	result text;
	c refcursor;
	one tid;
	back tid[];
BEGIN
	FOR i IN 1 .. 2 LOOP
		EXECUTE format('SELECT min(ctid), max(ctid) FROM (SELECT ctid FROM %s ORDER BY ctid OFFSET %s LIMIT %s) r',
			(ARRAY['tids_heap', 'tids_mot'])[i], n, m) INTO low, high;
		EXECUTE format('SELECT array_agg(ctid) FROM %s WHERE ctid > %L AND ctid <= %L', (ARRAY['tids_heap', 'tids_mot'])[i], low, high) INTO rows;
		result := coalesce(cardinality(rows), 0);
		EXECUTE format('SELECT %L || CASE WHEN array_agg(ctid ORDER BY ctid) IS DISTINCT FROM %L::tid[] THEN '' WRONG'' ELSE '''' END
			FROM %s WHERE (ctid > %L) IS TRUE AND (ctid <= %L) IS TRUE', result, rows, (ARRAY['tids_heap', 'tids_mot'])[i], low, high) INTO result;
		back := '{}';
		OPEN c SCROLL FOR EXECUTE format('SELECT ctid FROM %s WHERE ctid > %L AND ctid <= %L', (ARRAY['tids_heap', 'tids_mot'])[i], low, high);
		MOVE FORWARD ALL FROM c;
		LOOP
			FETCH BACKWARD FROM c INTO one;
			EXIT WHEN NOT FOUND;
			back := one || back;
		END LOOP;
		FETCH FORWARD FROM c INTO one;
		CLOSE c;
		IF back IS DISTINCT FROM coalesce(rows, '{}') OR one IS DISTINCT FROM rows[1] THEN
			result := result || ' BACK ' || cardinality(back);
		END IF;
		IF i = 1 THEN heap := result; ELSE mot := result; END IF;
	END LOOP;
END $$;
-- the ids that paging brings
CREATE FUNCTION tids_pages(t regclass, size int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	ids int[] := '{}';
	one int[];
	last tid := '(0,0)';
BEGIN
	LOOP
		EXECUTE format('SELECT array_agg(id), max(ctid) FROM (SELECT id, ctid FROM %s WHERE ctid > %L LIMIT %s) r', t, last, size) INTO one, last;
		EXIT WHEN one IS NULL;
		ids := ids || one;
	END LOOP;
	RETURN (SELECT array_agg(i ORDER BY i) FROM unnest(ids) i);
END $$;
CREATE VIEW tids_check AS
	SELECT n, m, heap, CASE WHEN mot <> heap THEN mot END AS mot FROM (VALUES (0, 5000), (0, 1), (100, 7), (1000, 2500), (4000, 100000)) r (n, m), tids_between(n, m)
	UNION ALL
	SELECT NULL, size, cardinality(tids_pages('tids_heap', size))::text, nullif(tids_pages('tids_mot', size), tids_pages('tids_heap', size))::text
	FROM unnest(ARRAY[333, 6000]) size;

SELECT * FROM tids_check;
DELETE FROM tids_heap WHERE id % 3 = 0 OR id BETWEEN 2000 AND 3000;
DELETE FROM tids_mot WHERE id % 3 = 0 OR id BETWEEN 2000 AND 3000;
SELECT * FROM tids_check;
-- what a transaction has changed itself
BEGIN;
UPDATE tids_heap SET v = v || 'y' WHERE id % 7 = 0;
UPDATE tids_mot SET v = v || 'y' WHERE id % 7 = 0;
UPDATE tids_mot SET v = v || 'z' WHERE id % 14 = 0;
INSERT INTO tids_heap SELECT i, 'new' FROM generate_series(5001, 5500) i;
INSERT INTO tids_mot SELECT i, 'new' FROM generate_series(5001, 5500) i;
DELETE FROM tids_heap WHERE id % 10 = 1;
DELETE FROM tids_mot WHERE id % 10 = 1;
SELECT * FROM tids_check;
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE tids_heap SET v = v || 'y' WHERE id % 7 = 0;
UPDATE tids_mot SET v = v || 'y' WHERE id % 7 = 0;
SELECT * FROM tids_check;
COMMIT;
SELECT * FROM tids_check;

-- bounds of all kinds
SELECT count(*) FROM tids_mot WHERE ctid >= '(0,0)';
SELECT count(*) FROM tids_mot WHERE ctid >= '(0,0)' AND ctid <= '(4294967295,65535)';
SELECT count(*) FROM tids_mot WHERE ctid < '(0,0)';
SELECT count(*) FROM tids_mot WHERE ctid > '(4294967295,65535)';
SELECT count(*) FROM tids_mot WHERE ctid > '(9,0)' AND ctid < '(9,0)';
SELECT count(*) FROM tids_mot WHERE ctid > NULL;
SELECT count(*) = (SELECT count(*) FROM tids_mot) FROM tids_mot WHERE ctid <= (SELECT max(ctid) FROM tids_mot) AND ctid >= (SELECT min(ctid) FROM tids_mot);
-- in each row of a join another range
SELECT (SELECT count(*) FROM tids_mot b WHERE b.ctid <= a.ctid) = rank() OVER (ORDER BY a.ctid) AS right
	FROM (SELECT ctid FROM tids_mot ORDER BY ctid LIMIT 3) a;
-- changes by ranges, in batches, and WHERE CURRENT OF
CREATE FUNCTION tids_batches(t regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	total bigint := 0;
	n bigint;
	one record;
	low tid := '(0,0)';
	high tid;
BEGIN
	LOOP
		EXECUTE format('SELECT max(ctid) FROM (SELECT ctid FROM %s WHERE ctid > %L LIMIT 400) r', t, low) INTO high;
		EXIT WHEN high IS NULL;
		EXECUTE format('DELETE FROM %s WHERE ctid > %L AND ctid <= %L AND id < 4000', t, low, high);
		GET DIAGNOSTICS n = ROW_COUNT;
		total := total + n;
		low := high;
	END LOOP;
	FOR one IN EXECUTE format('SELECT ctid FROM %s WHERE ctid > ''(0,1)'' FOR UPDATE', t) LOOP
		EXECUTE format('UPDATE %s SET v = ''locked'' WHERE ctid >= %L AND ctid <= %2$L', t, one.ctid);
	END LOOP;
	RETURN total;
END $$;
SELECT tids_batches('tids_heap') = tids_batches('tids_mot') AS as_many;
SELECT count(*), count(*) FILTER (WHERE v = 'locked') FROM tids_heap;
SELECT count(*), count(*) FILTER (WHERE v = 'locked') FROM tids_mot;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM tids_mot WHERE ctid > '(0,0)' FOR UPDATE;
MOVE 3 FROM c;
DELETE FROM tids_mot WHERE CURRENT OF c;
COMMIT;
SELECT count(*) FROM tids_mot;

DROP VIEW tids_check;
DROP FUNCTION tids_between, tids_pages, tids_batches;
DROP TABLE tids_heap, tids_mot;
