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
	RETURN (plan->0->'Plan'->>'Total Cost')::float < 100;
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
CREATE FUNCTION scroll_both(query text, moves text[], statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	mot text := scroll_run('mot', query, moves, statement);
	heap text := scroll_run('heap', query, moves, statement);
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
DROP FUNCTION scroll_both(text, text[], text), scroll_run(text, text, text[], text), scroll_cost(text);
DROP TABLE scroll_heap, scroll_other;
DROP FOREIGN TABLE scroll_mot;
