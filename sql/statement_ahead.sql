-- The row of a statement that looks up one is fetched ahead, as its execution
-- starts: whatever the transaction does until it is asked for, the answer is
-- that of the statement's snapshot.
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
CREATE TABLE ahead_heap (id int PRIMARY KEY, v int, t text);
CREATE FOREIGN TABLE ahead_mot (id int PRIMARY KEY, v int, t text) SERVER mot_server;
INSERT INTO ahead_heap SELECT i * 100, i, 'row ' || i FROM generate_series(1, 500) i;
INSERT INTO ahead_mot SELECT * FROM ahead_heap;

-- one function for each table: what cursors see that are opened before and read after a change
DO $$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['heap', 'mot'] LOOP
		EXECUTE format($f$
			CREATE FUNCTION ahead_%1$s(change text, key int) RETURNS text LANGUAGE plpgsql AS $b$
			DECLARE
				c CURSOR FOR SELECT v, t FROM ahead_%1$s WHERE id = key;
				r record;
				result text;
			BEGIN
				OPEN c;
				CASE change
					WHEN 'none' THEN NULL;
					WHEN 'update' THEN UPDATE ahead_%1$s SET v = -v, t = t || '!' WHERE id = key;
					WHEN 'move' THEN UPDATE ahead_%1$s SET id = id + 50 WHERE id = key;
					WHEN 'delete' THEN DELETE FROM ahead_%1$s WHERE id = key;
					WHEN 'renew' THEN
						DELETE FROM ahead_%1$s WHERE id = key;
						INSERT INTO ahead_%1$s VALUES (key, 0, 'new');
					WHEN 'insert' THEN INSERT INTO ahead_%1$s VALUES (key, 1, 'mine') ON CONFLICT DO NOTHING;
					WHEN 'neighbours' THEN
						INSERT INTO ahead_%1$s SELECT key + i, 0, 'beside' FROM generate_series(-40, 40) i WHERE i <> 0
							ON CONFLICT DO NOTHING;
					WHEN 'emptied' THEN DELETE FROM ahead_%1$s WHERE id BETWEEN key - 5000 AND key + 5000;
				END CASE;
				FETCH c INTO r;
				result := concat_ws(' ', r.v, r.t, found);
				FETCH c INTO r;
				result := result || ' ' || found;
				CLOSE c;
				SELECT result || ', then ' || coalesce(max(concat_ws(' ', v, t)), 'nothing') INTO result FROM ahead_%1$s WHERE id = key;
				RETURN result;
			END $b$ $f$, name);
	END LOOP;
END $$;

-- several times, so that the later ones run without the executor
SELECT change, key, ahead_heap(change, key), ahead_mot(change, key)
	FROM unnest(ARRAY['none', 'insert']) change, (VALUES (100), (200), (150)) k (key), generate_series(1, 2);
CREATE FUNCTION ahead_compare(change text) RETURNS TABLE (n bigint, different bigint, example text) LANGUAGE sql VOLATILE AS $$
	SELECT count(*), count(*) FILTER (WHERE h IS DISTINCT FROM m), min(h)
	FROM (SELECT ahead_heap(change, key) AS h, ahead_mot(change, key) AS m
		FROM generate_series(10000, 40000, 2050) key) s
$$;
SELECT change, c.* FROM unnest(ARRAY['none', 'update', 'neighbours', 'move', 'renew', 'insert', 'delete', 'emptied', 'insert', 'neighbours', 'none']) change,
	ahead_compare(change) c;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT change, c.* FROM unnest(ARRAY['none', 'update', 'neighbours', 'move', 'renew', 'delete', 'insert']) change, ahead_compare(change) c;
COMMIT;
SELECT count(*) FROM (SELECT * FROM ahead_heap EXCEPT SELECT * FROM ahead_mot) s;
SELECT count(*) FROM (SELECT * FROM ahead_mot EXCEPT SELECT * FROM ahead_heap) s;

-- a prepared statement whose parameter is none, or of another type
PREPARE ahead_null(int) AS SELECT v FROM ahead_mot WHERE id = $1;
EXECUTE ahead_null(NULL);
EXECUTE ahead_null(100);
EXECUTE ahead_null(NULL);
EXECUTE ahead_null(2147483647);
PREPARE ahead_wide(bigint) AS SELECT v FROM ahead_mot WHERE id = $1;
EXECUTE ahead_wide(100);
EXECUTE ahead_wide(8589934692);
EXECUTE ahead_wide(-1);
PREPARE ahead_lock(int) AS SELECT v FROM ahead_mot WHERE id = $1 FOR UPDATE;
EXECUTE ahead_lock(100);
EXECUTE ahead_lock(100);
PREPARE ahead_update(int, int) AS UPDATE ahead_mot SET v = v + $2 WHERE id = $1 RETURNING id, v;
EXECUTE ahead_update(100, 1);
EXECUTE ahead_update(100, 1);
EXECUTE ahead_update(NULL, 1);
EXECUTE ahead_update(101, NULL);
PREPARE ahead_delete(int) AS DELETE FROM ahead_mot WHERE id = $1;
EXECUTE ahead_delete(100);
EXECUTE ahead_delete(100);
EXECUTE ahead_null(100);
SELECT DISTINCT tier FROM mot_stat_jit WHERE query ~ '^PREPARE ahead' AND executions > 0 AND tier = 0;

DEALLOCATE ALL;
DROP FUNCTION ahead_heap, ahead_mot, ahead_compare;
DROP TABLE ahead_heap;
DROP FOREIGN TABLE ahead_mot;
