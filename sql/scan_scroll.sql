-- WHERE CURRENT OF: cursors that scroll, and what the planner thinks of it
CREATE FOREIGN TABLE scroll_mot (id integer PRIMARY KEY, v integer) SERVER mot_server;
CREATE TABLE scroll_heap (id integer PRIMARY KEY, v integer);
CREATE TABLE scroll_other (id integer PRIMARY KEY);
INSERT INTO scroll_mot SELECT g, 0 FROM generate_series(1, 9) g;
INSERT INTO scroll_heap SELECT g, 0 FROM generate_series(1, 9) g;
ANALYZE scroll_mot;

-- the planner keeps others away from it with a cost for which the server would compile the plan
CREATE FUNCTION scroll_cost(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
	RETURN (plan->0->'Plan'->>'Total Cost')::float BETWEEN 0 AND 100;
END
$$;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM scroll_mot;
FETCH 1 FROM c;
SELECT scroll_cost('UPDATE scroll_mot SET v = 1 WHERE CURRENT OF c'), scroll_cost('DELETE FROM scroll_mot WHERE CURRENT OF c'),
	scroll_cost('UPDATE scroll_mot SET v = 1 FROM (VALUES (1)) o WHERE CURRENT OF c');
COMMIT;
CREATE TABLE scroll_parts (id integer, v integer) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE scroll_part1 PARTITION OF scroll_parts FOR VALUES FROM (0) TO (10) SERVER mot_server;
CREATE FOREIGN TABLE scroll_part2 PARTITION OF scroll_parts FOR VALUES FROM (10) TO (20) SERVER mot_server;
INSERT INTO scroll_parts VALUES (1, 1), (11, 11);
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM scroll_parts;
FETCH 2 FROM c;
SELECT scroll_cost('UPDATE scroll_parts SET v = 1 WHERE CURRENT OF c');
UPDATE scroll_parts SET v = 12 WHERE CURRENT OF c RETURNING *;
COMMIT;
DROP TABLE scroll_parts;
-- (an ordinary table of few rows, for which reading all of them costs less)
CREATE TABLE scroll_few (id integer PRIMARY KEY, v integer) USING mot;
INSERT INTO scroll_few VALUES (1, 1), (2, 2);
ANALYZE scroll_few;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM scroll_few;
FETCH 1 FROM c;
UPDATE scroll_few SET v = 12 WHERE CURRENT OF c RETURNING *;
FETCH 1 FROM c;
UPDATE scroll_few SET v = o.v FROM (VALUES (13)) o(v) WHERE CURRENT OF c RETURNING *;
ROLLBACK;
DROP TABLE scroll_few;

-- the same moves on both kinds of table
CREATE FUNCTION scroll_run(kind text, query text, moves text[], statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	move text;
	r record;
	result text := '';
BEGIN
	EXECUTE 'DECLARE scroll_cursor SCROLL CURSOR FOR ' || replace(query, '@', 'scroll_' || kind);
	FOREACH move IN ARRAY moves LOOP
		BEGIN
			EXECUTE 'FETCH ' || move || ' FROM scroll_cursor' INTO r;
			result := result || move || ' ' || coalesce(r::text, '-');
			FOR r IN EXECUTE replace(statement, '@', 'scroll_' || kind) || ' WHERE CURRENT OF scroll_cursor RETURNING *' LOOP
				result := result || ' ' || r::text;
			END LOOP;
		EXCEPTION WHEN invalid_cursor_state THEN
			result := result || ' ' || replace(sqlerrm, kind, '@');
		END;
		result := result || E'\n';
	END LOOP;
	EXECUTE 'CLOSE scroll_cursor';
	FOR r IN EXECUTE 'SELECT * FROM scroll_' || kind || ' ORDER BY id' LOOP
		result := result || r::text;
	END LOOP;
	RETURN result;
END
$$;
CREATE FUNCTION scroll_both(query text, moves text[], statement text, shape text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	mot text := scroll_run(shape || 'mot', query, moves, statement);
	heap text := scroll_run(shape || 'heap', query, moves, statement);
BEGIN
	RETURN CASE WHEN mot = heap THEN E'the same:\n' || mot ELSE E'mot:\n' || mot || E'\nheap:\n' || heap END;
END
$$;
SET enable_seqscan = off;
SELECT scroll_both('SELECT * FROM @ ORDER BY id', '{NEXT,NEXT,PRIOR,LAST,PRIOR,FIRST,"ABSOLUTE 4","RELATIVE -2","RELATIVE 0","FORWARD 2","BACKWARD 1","ABSOLUTE 0",NEXT,"ABSOLUTE 100",PRIOR,"ABSOLUTE -3"}', 'UPDATE @ SET v = v + 1');
SELECT scroll_both('SELECT v FROM @ WHERE id > 2 ORDER BY id', '{LAST,NEXT,PRIOR,PRIOR,FIRST,PRIOR,NEXT}', 'UPDATE @ SET v = v + 10');
SELECT scroll_both('SELECT id + v AS s FROM @ ORDER BY id LIMIT 3', '{LAST,FIRST,NEXT,NEXT,NEXT,PRIOR}', 'UPDATE @ SET v = v + 100');
SELECT scroll_both('SELECT count(*) FROM @', '{NEXT}', 'UPDATE @ SET v = v + 1000');
SELECT scroll_both('SELECT * FROM scroll_other', '{NEXT}', 'UPDATE @ SET v = v + 1000');
SELECT scroll_both('SELECT * FROM @ WHERE id < 6 ORDER BY id', '{LAST,FIRST,NEXT,"RELATIVE 0"}', 'DELETE FROM @');
RESET enable_seqscan;
-- what the cursor hands out has no column more
BEGIN;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT * FROM scroll_mot ORDER BY id;
FETCH LAST FROM c;
UPDATE scroll_mot SET v = -1 WHERE CURRENT OF c RETURNING *;
COMMIT;
FETCH PRIOR FROM c;
UPDATE scroll_mot SET v = -1 WHERE CURRENT OF c RETURNING *;
CLOSE c;
-- in functions
DO $$
DECLARE
	c SCROLL CURSOR FOR SELECT * FROM scroll_mot ORDER BY id;
	r record;
BEGIN
	FOR i IN 1 .. 5 LOOP
		OPEN c;
		FETCH LAST FROM c INTO r;
		UPDATE scroll_mot SET v = 70 + i WHERE CURRENT OF c;
		FETCH PRIOR FROM c INTO r;
		UPDATE scroll_mot SET v = 80 + i WHERE CURRENT OF c;
		CLOSE c;
	END LOOP;
END
$$;
SELECT * FROM scroll_mot ORDER BY id;

-- partitions of both kinds: above them, heap tables' rows wait in the Material, too
CREATE TABLE scroll_partsmot (id integer, v integer, t text) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE scroll_partsmot1 PARTITION OF scroll_partsmot FOR VALUES FROM (0) TO (3) SERVER mot_server;
CREATE TABLE scroll_partsmot2 PARTITION OF scroll_partsmot FOR VALUES FROM (3) TO (6);
CREATE FOREIGN TABLE scroll_partsmot3 PARTITION OF scroll_partsmot FOR VALUES FROM (6) TO (9) SERVER mot_server;
CREATE TABLE scroll_partsmot4 PARTITION OF scroll_partsmot DEFAULT;
CREATE TABLE scroll_partsheap (id integer, v integer, t text) PARTITION BY RANGE (id);
CREATE TABLE scroll_partsheap1 PARTITION OF scroll_partsheap FOR VALUES FROM (0) TO (3);
CREATE TABLE scroll_partsheap2 PARTITION OF scroll_partsheap FOR VALUES FROM (3) TO (6);
CREATE TABLE scroll_partsheap3 PARTITION OF scroll_partsheap FOR VALUES FROM (6) TO (9);
CREATE TABLE scroll_partsheap4 PARTITION OF scroll_partsheap DEFAULT;
CREATE INDEX ON scroll_partsmot1 (id);
CREATE INDEX ON scroll_partsmot2 (id);
CREATE INDEX ON scroll_partsmot3 (id);
CREATE INDEX ON scroll_partsmot4 (id);
CREATE INDEX ON scroll_partsheap (id);
INSERT INTO scroll_partsmot SELECT g, 0, 't' || g FROM generate_series(1, 11) g;
INSERT INTO scroll_partsheap SELECT g, 0, 't' || g FROM generate_series(1, 11) g;
VACUUM ANALYZE scroll_partsmot2, scroll_partsmot4, scroll_partsheap;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF, VERBOSE) DECLARE c SCROLL CURSOR FOR SELECT v, id FROM scroll_partsmot WHERE id > 0;
SELECT scroll_both('SELECT v, id FROM @ WHERE id > 0', '{NEXT,NEXT,PRIOR,LAST,PRIOR,FIRST,"ABSOLUTE 4","RELATIVE -2","RELATIVE 0","FORWARD 2","BACKWARD 1","ABSOLUTE 0",NEXT,"ABSOLUTE 100",PRIOR,"ABSOLUTE -5","BACKWARD ALL",NEXT}', 'UPDATE @ SET v = v + 1', 'parts');
-- scans of indexes only; a limit; partitions pruned when planned and when run; no scan of the table's at all
SELECT scroll_both('SELECT id FROM @ WHERE id > 0', '{LAST,"ABSOLUTE 5","ABSOLUTE 4","ABSOLUTE 1","RELATIVE 6"}', 'UPDATE @ SET v = v + 10', 'parts');
SELECT scroll_both('SELECT id + v AS s FROM @ WHERE id > 1 LIMIT 4', '{LAST,FIRST,NEXT,NEXT,NEXT,NEXT,NEXT,PRIOR}', 'UPDATE @ SET v = v + 100', 'parts');
SELECT scroll_both('SELECT * FROM (SELECT id, v FROM @ WHERE id > 0) s WHERE v < 100', '{LAST,FIRST}', 'UPDATE @ SET v = v + 100', 'parts');
SELECT scroll_both('SELECT * FROM @ WHERE id > 6', '{NEXT}', 'UPDATE @ SET v = v + 1000', 'parts');
SELECT scroll_both('SELECT * FROM @ WHERE id > length(current_setting(''search_path'')) / 100 + 6', '{NEXT}', 'UPDATE @ SET v = v + 1000', 'parts');
SELECT scroll_both('SELECT * FROM @ WHERE id > 6', '{NEXT,LAST}', 'UPDATE @3 SET v = v + 1000', 'parts');
SELECT scroll_both('SELECT id FROM @ UNION ALL SELECT id FROM @', '{NEXT}', 'UPDATE @ SET v = v + 1000', 'parts');
SELECT scroll_both('SELECT id FROM @ UNION ALL SELECT id FROM scroll_other', '{FIRST,LAST}', 'UPDATE @ SET v = v + 1000', 'parts');
-- scans that have not ended when the next one has a row
SELECT scroll_both('(SELECT id FROM @1 WHERE id > 0 LIMIT 1) UNION ALL (SELECT id FROM @3 WHERE id > 0 LIMIT 2)', '{LAST,PRIOR}', 'UPDATE @3 SET v = v', 'parts');
SELECT scroll_both('(SELECT id FROM @2 WHERE id > 0 LIMIT 1) UNION ALL (SELECT id FROM @1 WHERE id > 0 LIMIT 2) UNION ALL SELECT id FROM @3 WHERE id > 0', '{"ABSOLUTE 3","RELATIVE -1"}', 'UPDATE @1 SET v = v', 'parts');
SELECT scroll_both('SELECT count(*) FROM @', '{NEXT}', 'UPDATE @ SET v = v + 1000', 'parts');
SELECT scroll_both('SELECT v FROM @ ORDER BY v', '{NEXT}', 'UPDATE @ SET v = v + 1000', 'parts');
-- from a heap partition into one of ours; what is gone is not found again; and deleted
SELECT scroll_both('SELECT * FROM @ WHERE id > 0', '{"ABSOLUTE 5","RELATIVE 0",LAST}', 'UPDATE @ SET id = 7', 'parts');
SELECT scroll_both('SELECT * FROM @ WHERE id < 8', '{LAST,FIRST,NEXT,"RELATIVE 0","ABSOLUTE 4",PRIOR}', 'DELETE FROM @', 'parts');
-- savepoints, and held
CREATE PROCEDURE scroll_undo(kind text) LANGUAGE plpgsql AS $$
DECLARE
	c SCROLL CURSOR FOR SELECT * FROM scroll_partsmot WHERE id > 0;
	d SCROLL CURSOR FOR SELECT * FROM scroll_partsheap WHERE id > 0;
	r record;
BEGIN
	IF kind = 'mot' THEN OPEN c; ELSE OPEN d; c := d; END IF;
	FETCH LAST FROM c INTO r;
	BEGIN
		EXECUTE format('UPDATE scroll_parts%s SET v = -1 WHERE CURRENT OF %I', kind, c);
		FETCH FIRST FROM c INTO r;
		EXECUTE format('DELETE FROM scroll_parts%s WHERE CURRENT OF %I', kind, c);
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END;
	FETCH NEXT FROM c INTO r;
	EXECUTE format('UPDATE scroll_parts%s SET v = -2 WHERE CURRENT OF %I', kind, c);
	FETCH FIRST FROM c INTO r;
	EXECUTE format('UPDATE scroll_parts%s SET v = -3 WHERE CURRENT OF %I', kind, c);
END
$$;
CALL scroll_undo('mot');
CALL scroll_undo('heap');
SELECT * FROM scroll_partsmot ORDER BY id, v, t;
(TABLE scroll_partsmot EXCEPT ALL TABLE scroll_partsheap) UNION ALL (TABLE scroll_partsheap EXCEPT ALL TABLE scroll_partsmot);
BEGIN;
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT id, t FROM scroll_partsmot WHERE id > 0;
FETCH LAST FROM c;
SAVEPOINT s;
UPDATE scroll_partsmot SET v = 21 WHERE CURRENT OF c RETURNING *;
FETCH PRIOR FROM c;
UPDATE scroll_partsmot SET v = 22 WHERE CURRENT OF c RETURNING *;
ROLLBACK TO s;
UPDATE scroll_partsmot SET v = v + 1 WHERE CURRENT OF c RETURNING *;
FETCH FIRST FROM c;
UPDATE scroll_partsmot SET v = v + 1 WHERE CURRENT OF c RETURNING *;
COMMIT;
FETCH LAST FROM c;
FETCH BACKWARD 2 FROM c;
UPDATE scroll_partsmot SET v = v + 1 WHERE CURRENT OF c RETURNING *;
CLOSE c;
-- these scroll not, and lock
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT * FROM scroll_partsmot FOR UPDATE;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM scroll_partsmot WHERE id > 0 FOR UPDATE;
FETCH 1 FROM c;
UPDATE scroll_partsmot SET v = 31 WHERE CURRENT OF c RETURNING *;
FETCH 4 FROM c;
UPDATE scroll_partsmot SET v = 32 WHERE CURRENT OF c RETURNING *;
ROLLBACK;
-- children with their columns in another order
CREATE TABLE scroll_treemot (id integer, v integer);
CREATE FOREIGN TABLE scroll_treemot1 (x text, v integer, id integer) SERVER mot_server;
ALTER FOREIGN TABLE scroll_treemot1 INHERIT scroll_treemot;
CREATE TABLE scroll_treeheap (id integer, v integer);
CREATE TABLE scroll_treeheap1 (x text, v integer, id integer);
ALTER TABLE scroll_treeheap1 INHERIT scroll_treeheap;
INSERT INTO scroll_treemot VALUES (1, 0), (2, 0);
INSERT INTO scroll_treeheap VALUES (1, 0), (2, 0);
INSERT INTO scroll_treemot1 VALUES ('a', 0, 3), ('b', 0, 4);
INSERT INTO scroll_treeheap1 VALUES ('a', 0, 3), ('b', 0, 4);
SELECT scroll_both('SELECT * FROM @', '{LAST,FIRST}', 'DELETE FROM @', 'tree');
SELECT scroll_both('SELECT @ FROM @', '{LAST,FIRST,"ABSOLUTE 2"}', 'UPDATE @ SET v = v + 1', 'tree');
DROP TABLE scroll_treemot, scroll_treeheap CASCADE;
DROP PROCEDURE scroll_undo(text);
DROP TABLE scroll_partsmot, scroll_partsheap;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP FUNCTION scroll_both(text, text[], text, text), scroll_run(text, text, text[], text), scroll_cost(text);
DROP TABLE scroll_heap, scroll_other;
DROP FOREIGN TABLE scroll_mot;
