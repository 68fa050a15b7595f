-- RETURNING of updates that copy the row and put a few new values in, and of deletes:
-- beside a heap table, by prepared expressions and compiled.
SET mot.jit_prepare_above_executions = 0;
SET plan_cache_mode = force_generic_plan;

CREATE FOREIGN TABLE ret_mot (id integer PRIMARY KEY, a smallint, b text, c bigint NOT NULL, d boolean, e numeric, f float8, g varchar(200), h "char", i bytea, j uuid, k char(5), l date, m integer[], n name) SERVER mot_server;
CREATE TABLE ret_heap (id integer PRIMARY KEY, a smallint, b text, c bigint NOT NULL, d boolean, e numeric, f float8, g varchar(200), h "char", i bytea, j uuid, k char(5), l date, m integer[], n name);

-- values for a column by its name and a number
CREATE FUNCTION ret_value(name text, n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN n % 7 = 0 AND name <> 'c' THEN 'null' ELSE
		CASE name WHEN 'a' THEN (n % 100)::text WHEN 'b' THEN quote_literal(repeat('b', n % 5 * 40)) WHEN 'c' THEN (n * 1000)::text WHEN 'd' THEN (n % 2 = 0)::text
			WHEN 'e' THEN (n * 1.5)::text || repeat('9', n % 20) WHEN 'f' THEN (n / 3.0)::text WHEN 'g' THEN quote_literal(repeat('g', n % 200)) WHEN 'h' THEN quote_literal(chr(65 + n % 26))
			WHEN 'i' THEN quote_literal('\x' || repeat('ab', n % 300)) WHEN 'j' THEN quote_literal(md5(n::text)) WHEN 'k' THEN quote_literal(repeat('k', n % 6)) WHEN 'l' THEN quote_literal(date '2020-01-01' + n)
			WHEN 'm' THEN quote_literal('{' || repeat('1,', n % 9) || '2}') ELSE quote_literal('name ' || n) END END
$$;

-- what a prepared statement returns, in one text
CREATE FUNCTION ret_all(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	lines text[] := '{}';
BEGIN
	FOR r IN EXECUTE command LOOP
		lines := lines || r::text;
	END LOOP;
	RETURN (SELECT string_agg(line, E'\n' ORDER BY line) FROM unnest(lines) line);
END
$$;

CREATE FUNCTION ret_rounds(rounds integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	names text[] := '{a,b,c,d,e,f,g,h,i,j,k,l,m,n}';
	outputs text[] := ARRAY['*', 'n, a, id', 'b || g, c + a, NOT d, e * 2, f / 3', 'id, coalesce(length(b), -1), k || ''|'', m[2], h, l + 1', 'i, j, $1 + c', '1', 'm || 3, upper(n), CASE WHEN d THEN b ELSE g END, ret'];
	list text;
	texts text[];
	target text;
	lines bigint := 0;
BEGIN
	FOR round IN 1 .. rounds LOOP
		list := (SELECT string_agg(name || ' = ' || ret_value(name, round + round / 14 * 2 + o::int), ', ' ORDER BY (o * round) % 11) FROM unnest(names) WITH ORDINALITY AS u (name, o)
				 WHERE o = 1 + round % 14 OR (round % 3 = 0 AND o = 1 + round % 5) OR (round % 4 = 0 AND o = 1 + round % 13));
		texts := '{}';
		FOREACH target IN ARRAY ARRAY['ret_mot', 'ret_heap'] LOOP
			EXECUTE format('PREPARE ret_update (integer) AS UPDATE %s ret SET %s WHERE id BETWEEN $1 AND $1 + 9 RETURNING %s', target, list, outputs[1 + round % 7]);
			texts := texts || (ret_all(format('EXECUTE ret_update (%s)', round % 10)) || E'\n' || ret_all(format('EXECUTE ret_update (%s)', round % 7)));
			EXECUTE 'DEALLOCATE ret_update';
		END LOOP;
		IF texts[1] IS DISTINCT FROM texts[2] THEN
			RAISE 'round %: % after % instead of %', round, texts[1], list, texts[2];
		END IF;
		lines := lines + cardinality(string_to_array(texts[1], E'\n'));
	END LOOP;
	RETURN lines;
END
$$;

DO $$
DECLARE
	names text[] := '{a,b,c,d,e,f,g,h,i,j,k,l,m,n}';
	list text;
BEGIN
	FOR i IN 1 .. 20 LOOP
		list := (SELECT string_agg(ret_value(name, i * 3 + o::int), ', ' ORDER BY o) FROM unnest(names) WITH ORDINALITY AS u (name, o));
		EXECUTE format('INSERT INTO ret_mot VALUES (%s, %s)', i, list);
		EXECUTE format('INSERT INTO ret_heap VALUES (%s, %s)', i, list);
	END LOOP;
END
$$;
SET mot.jit_above_executions = -1;
SELECT ret_rounds(42);
SET mot.jit_above_executions = 0;
SELECT ret_rounds(42);
SELECT count(*) FROM (SELECT * FROM ret_mot EXCEPT SELECT * FROM ret_heap) differences;

-- the row's identifiers, and all of it
PREPARE ret_ids (integer) AS UPDATE ret_mot SET a = a + 1 WHERE id = $1 RETURNING id, tableoid::regclass, ctid;
PREPARE ret_whole (integer) AS UPDATE ret_mot r SET h = 'W', k = 'whole' WHERE id = $1 RETURNING r IS DISTINCT FROM (SELECT s FROM ret_mot s WHERE s.id = r.id) AS differs, (r).k;
CREATE FUNCTION ret_same_ids(nr integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	i integer;
	t regclass;
	at tid;
BEGIN
	UPDATE ret_mot SET a = a + 1 WHERE id = nr RETURNING id, tableoid::regclass, ctid INTO i, t, at;
	RETURN i = nr AND t = 'ret_mot'::regclass AND at = (SELECT ctid FROM ret_mot WHERE id = nr) AND nr = (SELECT id FROM ret_mot WHERE ctid = at);
END
$$;
SELECT ret_same_ids(4), ret_same_ids(5), ret_same_ids(5);
EXECUTE ret_whole (6);
EXECUTE ret_whole (6);

-- in a loop of PL/pgSQL, from one row, several, none
CREATE FUNCTION ret_next(nr integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	x bigint;
	y numeric;
	r record;
	result text := '';
BEGIN
	FOR i IN 1 .. 3 LOOP
		UPDATE ret_mot SET c = c + 1 WHERE id = nr RETURNING c - 1, e INTO x, y;
		result := result || x || ' ' || coalesce(y::text, '-') || ', ';
	END LOOP;
	FOR r IN UPDATE ret_mot SET c = id, b = NULL WHERE id BETWEEN nr AND nr + 2 RETURNING id, b, c LOOP
		result := result || r::text;
	END LOOP;
	UPDATE ret_mot SET c = 0 WHERE id = -nr RETURNING c INTO x;
	result := result || coalesce(x::text, 'none') || found;
	BEGIN
		UPDATE ret_mot SET c = 0 WHERE id BETWEEN nr AND nr + 2 RETURNING c INTO STRICT x;
	EXCEPTION WHEN too_many_rows THEN
		result := result || ' too many';
	END;
	RETURN result || (SELECT sum(c) FROM ret_mot WHERE id BETWEEN nr AND nr + 2);
END
$$;
SELECT ret_next(3);
SELECT ret_next(3);

-- what fails takes the change with it
PREPARE ret_fails (integer, integer) AS UPDATE ret_mot SET c = 7, a = 1 WHERE id BETWEEN $1 AND $1 + 1 RETURNING id, 10 / (id - $2);
UPDATE ret_mot SET c = 5 WHERE id IN (8, 9);
EXECUTE ret_fails (8, 0);
UPDATE ret_mot SET c = 5 WHERE id IN (8, 9);
EXECUTE ret_fails (8, 8);
EXECUTE ret_fails (8, 9);
EXECUTE ret_fails (9, 11);
SELECT c FROM ret_mot WHERE id IN (8, 9);
PREPARE ret_system AS UPDATE ret_mot SET c = 6 WHERE id = 8 RETURNING xmin;
EXECUTE ret_system;
EXECUTE ret_system;
PREPARE ret_null (bigint) AS UPDATE ret_mot SET c = $1 WHERE id = 8 RETURNING c;
EXECUTE ret_null (NULL);
EXECUTE ret_null (77);

-- parameters and sub-selects in it, and a function that changes the row once more
CREATE FUNCTION ret_again(nr integer) RETURNS text LANGUAGE plpgsql AS $$ BEGIN UPDATE ret_mot SET b = 'again', c = c + 1 WHERE id = nr; RETURN (SELECT b || c FROM ret_mot WHERE id = nr); END $$;
PREPARE ret_params (text, numeric) AS UPDATE ret_mot SET e = $2 WHERE id = 8 RETURNING $1 || e, $2 IS NULL, (SELECT max(id) FROM ret_heap), (SELECT count(*) FROM ret_heap h WHERE h.id < ret_mot.id);
EXECUTE ret_params ('e', 1.50);
EXECUTE ret_params ('e', NULL);
PREPARE ret_function AS UPDATE ret_mot SET b = 'once', c = 100 WHERE id = 8 RETURNING ret_again(id), b, c, g;
EXECUTE ret_function;
EXECUTE ret_function;
SELECT b, c FROM ret_mot WHERE id = 8;

-- at the level at which changes wait in the journal
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT ret_next(10);
EXECUTE ret_function;
SAVEPOINT s;
EXECUTE ret_null (78);
ROLLBACK TO s;
EXECUTE ret_ids (-1);
EXECUTE ret_ids (-2);
SELECT c FROM ret_mot WHERE id = 8;
COMMIT;

-- rows that are older than a column, and a column that has gone
ALTER FOREIGN TABLE ret_mot ADD COLUMN o integer DEFAULT 7, ADD COLUMN p text;
PREPARE ret_old (integer) AS UPDATE ret_mot SET a = 3 WHERE id = $1 RETURNING id, a, o, p;
PREPARE ret_added (integer) AS UPDATE ret_mot SET o = o + 1 WHERE id = $1 RETURNING id, a, o, p;
EXECUTE ret_old (12);
EXECUTE ret_old (12);
EXECUTE ret_added (13);
EXECUTE ret_added (13);
ALTER FOREIGN TABLE ret_mot DROP COLUMN m, DROP COLUMN i;
EXECUTE ret_added (14);
EXECUTE ret_added (14);
SET mot.jit_above_executions = -1;
PREPARE ret_gone (integer) AS UPDATE ret_mot SET o = o + 1, b = 'gone' WHERE id = $1 RETURNING id, a, o, p, b;
EXECUTE ret_gone (14);
EXECUTE ret_gone (14);
EXECUTE ret_gone (15);
SET mot.jit_above_executions = 0;

-- columns that are in an index
PREPARE ret_key (integer, integer) AS UPDATE ret_mot SET id = $2, a = a + 1 WHERE id = $1 RETURNING id, a, o;
EXECUTE ret_key (16, 116);
EXECUTE ret_key (116, 117);
EXECUTE ret_key (117, 1);
SELECT count(*) FROM ret_mot WHERE id IN (16, 116, 117);

-- deletes
PREPARE ret_delete (integer) AS DELETE FROM ret_mot WHERE id BETWEEN $1 AND $1 + 1 RETURNING id, c + 1 AS c, b || 'x' AS b, o, p;
BEGIN;
EXECUTE ret_delete (12);
EXECUTE ret_delete (14);
ROLLBACK;
PREPARE ret_delete_all (integer) AS DELETE FROM ret_mot r WHERE id = $1 RETURNING r.*, (r).id;
EXECUTE ret_delete_all (12);
EXECUTE ret_delete_all (15);
EXECUTE ret_delete_all (15);
SELECT count(*) FROM mot_verify('ret_mot') WHERE problems > 0;

-- an array that functions extend in place, if it is theirs alone
CREATE FOREIGN TABLE ret_array (id integer PRIMARY KEY, m integer[], checked integer CHECK (checked > 0)) SERVER mot_server;
CREATE FOREIGN TABLE ret_array2 (id integer PRIMARY KEY, m integer[]) SERVER mot_server;
PREPARE ret_insert (integer, integer[]) AS INSERT INTO ret_array VALUES ($1, $2 || 1, 1) RETURNING m || 2 AS more, m;
PREPARE ret_insert2 (integer, integer[]) AS INSERT INTO ret_array2 VALUES ($1, $2 || 1), ($1 + 1, $2 || 1) RETURNING m || 2 AS more, m;
PREPARE ret_extend (integer) AS UPDATE ret_array SET m = m || 3 WHERE id <= $1 RETURNING m || 4 AS more, m || 5 AS other, m;
PREPARE ret_extend2 (integer) AS UPDATE ret_array2 SET m = m || 3 WHERE id <= $1 RETURNING m || 4 AS more, m || 5 AS other, m;
EXECUTE ret_insert (1, '{0}');
EXECUTE ret_insert (2, '{0}');
EXECUTE ret_insert2 (1, '{0}');
EXECUTE ret_insert2 (3, '{0}');
EXECUTE ret_extend (1);
EXECUTE ret_extend (2);
EXECUTE ret_extend2 (1);
EXECUTE ret_extend2 (2);
SELECT * FROM ret_array ORDER BY id;
SELECT * FROM ret_array2 ORDER BY id;
DROP FOREIGN TABLE ret_array, ret_array2;

-- checks, generated columns, triggers, views
CREATE FOREIGN TABLE ret_more (id integer PRIMARY KEY, a integer CHECK (a < 100), t text, twice integer GENERATED ALWAYS AS (a * 2) STORED) SERVER mot_server;
INSERT INTO ret_more SELECT i, i, 't' || i FROM generate_series(1, 5) i;
PREPARE ret_check (integer, integer) AS UPDATE ret_more SET a = $2 WHERE id = $1 RETURNING a, twice, t;
EXECUTE ret_check (1, 10);
EXECUTE ret_check (1, 20);
EXECUTE ret_check (1, 100);
CREATE VIEW ret_view AS SELECT id, t FROM ret_more WHERE t LIKE 't%' WITH CHECK OPTION;
PREPARE ret_through (integer, text) AS UPDATE ret_view SET t = $2 WHERE id = $1 RETURNING id, t;
EXECUTE ret_through (2, 'tt');
EXECUTE ret_through (2, 'tu');
EXECUTE ret_through (2, 'uu');
CREATE FUNCTION ret_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.t := NEW.t || '!'; RETURN NEW; END $$;
CREATE TRIGGER ret_before BEFORE UPDATE ON ret_more FOR EACH ROW EXECUTE FUNCTION ret_trigger();
EXECUTE ret_check (3, 30);
EXECUTE ret_check (3, 31);
EXECUTE ret_through (3, 'tv');

DEALLOCATE ALL;
DROP VIEW ret_view;
DROP FOREIGN TABLE ret_mot, ret_more;
DROP TABLE ret_heap;
DROP FUNCTION ret_value(text, integer), ret_all(text), ret_rounds(integer), ret_same_ids(integer), ret_next(integer), ret_again(integer), ret_trigger();
