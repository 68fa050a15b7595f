-- Tables that move in and out: what the server knows of a table's indexes goes
-- with the access method, wherever in a transaction that changes.
-- (a server without the module has nothing to look with)
SELECT count(*) = 0 AS without_amcheck FROM pg_available_extensions WHERE name = 'amcheck' \gset
\if :without_amcheck
CREATE FUNCTION bt_index_check(regclass, bool) RETURNS void LANGUAGE sql AS '';
\else
CREATE EXTENSION amcheck;
\endif
CREATE FUNCTION mv_use() RETURNS TABLE (what text, answer text) LANGUAGE plpgsql AS $$
DECLARE
	one record;
	plan text;
BEGIN
	FOR one IN SELECT * FROM (VALUES
			('insert', $q$INSERT INTO mv_h SELECT i, 'v' || i FROM generate_series(1001, 1005) i$q$),
			('duplicate', $q$INSERT INTO mv_h VALUES (1001, 'x')$q$),
			('duplicate, other key', $q$INSERT INTO mv_h VALUES (1006, 'v1001')$q$),
			('do nothing', $q$INSERT INTO mv_h VALUES (1001, 'x'), (1006, 'v1006') ON CONFLICT DO NOTHING$q$),
			('do update', $q$INSERT INTO mv_h VALUES (1001, 'x'), (1007, 'v1007') ON CONFLICT (id) DO UPDATE SET v = mv_h.v || excluded.v$q$),
			('update', $q$UPDATE mv_h SET v = v || '!' WHERE id = 1002$q$),
			('update of the key', $q$UPDATE mv_h SET id = 2003 WHERE id = 1003$q$),
			('delete', $q$DELETE FROM mv_h WHERE v = 'v1004'$q$),
			('reference', $q$INSERT INTO mv_c VALUES (1005), (2003)$q$),
			('reference to none', $q$INSERT INTO mv_c VALUES (1004)$q$),
			('restricted', $q$DELETE FROM mv_h WHERE id = 1005$q$)) x (what, statement) LOOP
		BEGIN
			EXECUTE one.statement;
			what := one.what;
			answer := 'done';
		EXCEPTION WHEN others THEN
			what := one.what;
			answer := SQLSTATE || ' ' || SQLERRM;
		END;
		RETURN NEXT;
	END LOOP;
	FOR one IN SELECT * FROM (VALUES
			('by key', $q$SELECT v FROM mv_h WHERE id = 1001$q$),
			('by other key', $q$SELECT id FROM mv_h WHERE v = 'v1002!'$q$),
			('key alone', $q$SELECT id FROM mv_h WHERE id BETWEEN 1000 AND 3000 ORDER BY id$q$),
			('backwards', $q$SELECT id FROM mv_h WHERE id > 1000 ORDER BY id DESC$q$),
			('either', $q$SELECT id FROM mv_h WHERE id = 1002 OR v = 'v1001x' OR v = 'v1001' ORDER BY 1$q$),
			('for each', $q$SELECT h.id FROM generate_series(1000, 1010) i, LATERAL (SELECT id FROM mv_h WHERE id = i OFFSET 0) h$q$),
			('merged', $q$SELECT a.id FROM mv_h a JOIN mv_h b USING (id) WHERE a.id > 1000 ORDER BY 1$q$)) x (what, statement) LOOP
		BEGIN
			what := one.what;
			EXECUTE 'SELECT string_agg(r::text, '' '') FROM (' || one.statement || ') r' INTO answer;
		EXCEPTION WHEN others THEN
			answer := SQLSTATE || ' ' || SQLERRM;
		END;
		RETURN NEXT;
	END LOOP;
END $$;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE mv_c (id int);
CREATE TABLE mv_h (id int PRIMARY KEY, v text COLLATE "C" UNIQUE) USING heap;
ALTER TABLE mv_c ADD FOREIGN KEY (id) REFERENCES mv_h;
INSERT INTO mv_h SELECT i, 'v' || i FROM generate_series(1, 100) i;
PREPARE mv_one(int) AS SELECT v FROM mv_h WHERE id = $1;
PREPARE mv_each(int) AS SELECT a.id, b.v FROM mv_h a JOIN mv_h b ON b.id = a.id + 1 WHERE a.id = $1;

-- what is expected of any table
BEGIN;
SELECT * FROM mv_use();
SELECT bt_index_check('mv_h_pkey', true), bt_index_check('mv_h_v_key', true);
ROLLBACK;

-- it goes back with a savepoint
BEGIN;
TRUNCATE mv_h, mv_c;
INSERT INTO mv_h SELECT i, 'v' || i FROM generate_series(1, 100) i;
SAVEPOINT a;
ALTER TABLE mv_h SET ACCESS METHOD mot;
EXECUTE mv_one(7);
EXECUTE mv_each(7);
ROLLBACK TO a;
EXECUTE mv_each(7);
EXECUTE mv_one(7);
SELECT * FROM mv_use();
SELECT bt_index_check('mv_h_pkey', true), bt_index_check('mv_h_v_key', true);
COMMIT;
SELECT bt_index_check('mv_h_pkey', true), bt_index_check('mv_h_v_key', true);

-- each use may be the first: what comes after the savepoint
CREATE FUNCTION mv_first(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	TRUNCATE mv_h, mv_c;
	INSERT INTO mv_h SELECT i, 'v' || i FROM generate_series(1, 100) i;
	BEGIN
		ALTER TABLE mv_h SET ACCESS METHOD mot;
		PERFORM v FROM mv_h WHERE id = 7;
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END;
	IF statement LIKE 'SELECT%' THEN
		EXECUTE statement INTO answer;
	ELSE
		EXECUTE statement;
	END IF;
	PERFORM bt_index_check('mv_h_pkey', true), bt_index_check('mv_h_v_key', true);
	RETURN coalesce(answer, 'done');
EXCEPTION WHEN others THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT mv_first(s) FROM unnest(ARRAY[
	$$SELECT v FROM mv_h WHERE id = 7$$,
	$$SELECT string_agg(id::text, ' ') FROM (SELECT id FROM mv_h WHERE id < 4 ORDER BY id DESC) x$$,
	$$SELECT string_agg(id::text, ' ') FROM mv_h WHERE id = 1 OR v = 'v2'$$,
	$$SELECT count(*) FROM mv_h a JOIN mv_h b USING (id)$$,
	$$INSERT INTO mv_h VALUES (1000, 'v1000')$$,
	$$INSERT INTO mv_h VALUES (100, 'v1000')$$,
	$$INSERT INTO mv_h VALUES (100, 'v1000') ON CONFLICT DO NOTHING$$,
	$$INSERT INTO mv_h VALUES (101, 'v1000') ON CONFLICT DO NOTHING$$,
	$$UPDATE mv_h SET id = id + 1000$$,
	$$UPDATE mv_h SET id = id + 1$$,
	$$INSERT INTO mv_c VALUES (1)$$,
	$$INSERT INTO mv_c VALUES (101)$$,
	$$ANALYZE mv_h$$,
	$$CREATE INDEX ON mv_h (v, id)$$,
	$$REINDEX TABLE mv_h$$,
	$$ALTER TABLE mv_h ALTER id TYPE bigint$$,
	$$ALTER TABLE mv_h ALTER v TYPE varchar(10) COLLATE "C"$$,
	$$TRUNCATE mv_h, mv_c$$]) s;

-- functions that run while a table moves
CREATE FUNCTION mv_ended() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN SELECT '    ' || what || ': ' || answer FROM mv_use() LOOP
		RAISE NOTICE '%', line;
	END LOOP;
	DELETE FROM mv_c WHERE id > 1000;
	DELETE FROM mv_h WHERE id > 1000;
END $$;
TRUNCATE mv_h, mv_c;
INSERT INTO mv_h SELECT i, 'v' || i FROM generate_series(1, 100) i;
CREATE EVENT TRIGGER mv_ended ON ddl_command_end WHEN tag IN ('ALTER TABLE') EXECUTE FUNCTION mv_ended();
BEGIN;
TRUNCATE mv_h, mv_c;
ALTER TABLE mv_h SET ACCESS METHOD mot;
INSERT INTO mv_h SELECT i, 'v' || i FROM generate_series(1, 100) i;
ALTER TABLE mv_h SET ACCESS METHOD heap;
COMMIT;
DROP EVENT TRIGGER mv_ended;
SELECT bt_index_check('mv_h_pkey', true), bt_index_check('mv_h_v_key', true);
BEGIN;
CREATE TABLE mv_new (id int PRIMARY KEY) USING mot;
INSERT INTO mv_new VALUES (1), (2);
ALTER TABLE mv_new SET ACCESS METHOD heap;
INSERT INTO mv_new VALUES (3);
SELECT * FROM mv_new WHERE id > 1;
SAVEPOINT a;
ALTER TABLE mv_new SET ACCESS METHOD mot;
SELECT * FROM mv_new WHERE id > 1;
ROLLBACK TO a;
INSERT INTO mv_new VALUES (3);
ROLLBACK TO a;
SELECT * FROM mv_new WHERE id > 1;
COMMIT;
SELECT bt_index_check('mv_new_pkey', true);
-- how far it is, is shown: by a function that is called for each row
CREATE FUNCTION mv_progress(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	p record;
BEGIN
	IF i % 1000 = 0 THEN
		PERFORM pg_stat_clear_snapshot();
		SELECT * INTO p FROM pg_stat_progress_cluster WHERE pid = pg_backend_pid();
		RAISE NOTICE 'row %: % %: % rows written, % indexes built, % of the blocks', i, p.relid::regclass, p.phase, p.heap_tuples_written, p.index_rebuild_count,
			CASE WHEN p.heap_blks_scanned > p.heap_blks_total THEN 'too many' WHEN p.heap_blks_scanned > 0 THEN 'some' ELSE 'none' END;
	END IF;
	RETURN i;
END $$;
CREATE TABLE mv_p (id int PRIMARY KEY, n int, v text UNIQUE) USING heap;
INSERT INTO mv_p SELECT i, i, 'v' || i FROM generate_series(1, 3000) i;
CREATE INDEX mv_p_n ON mv_p (n);
ALTER TABLE mv_p SET ACCESS METHOD mot, ALTER n TYPE int USING mv_progress(n);
CREATE FUNCTION mv_at_end() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM mv_progress(1000); END $$;
CREATE EVENT TRIGGER mv_at_end ON ddl_command_end WHEN tag IN ('ALTER TABLE') EXECUTE FUNCTION mv_at_end();
ALTER TABLE mv_p SET ACCESS METHOD heap, ALTER n TYPE int USING mv_progress(n);
ALTER TABLE mv_p SET ACCESS METHOD mot, ALTER n TYPE int USING 1 / (n - 1000);
ALTER TABLE mv_p SET ACCESS METHOD mot;
DROP EVENT TRIGGER mv_at_end;
ALTER TABLE mv_p ALTER n TYPE int USING mv_progress(n);
SELECT count(*) FROM pg_stat_progress_cluster;
DROP TABLE mv_p;
DROP FUNCTION mv_progress;
DROP FUNCTION mv_at_end;

DEALLOCATE ALL;
DROP TABLE mv_c, mv_h, mv_new;
DROP FUNCTION mv_use, mv_first, mv_ended;
\if :without_amcheck
DROP FUNCTION bt_index_check;
\else
DROP EXTENSION amcheck;
\endif
RESET enable_seqscan;
RESET enable_hashjoin;
RESET plan_cache_mode;
