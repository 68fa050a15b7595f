-- Updates of a few columns, which copy the rest of the row as it is: all kinds
-- of columns, orders, nulls, and values that grow and shrink; beside a heap table.
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;
SET plan_cache_mode = force_generic_plan;

CREATE FOREIGN TABLE patch_mot (id integer PRIMARY KEY, a smallint, b text, c bigint NOT NULL, d boolean, e numeric, f float8, g varchar(200), h "char", i bytea, j uuid, k text, l date, m integer[], n name) SERVER mot_server;
CREATE TABLE patch_heap (id integer PRIMARY KEY, a smallint, b text, c bigint NOT NULL, d boolean, e numeric, f float8, g varchar(200), h "char", i bytea, j uuid, k text, l date, m integer[], n name);

-- values for a column by its name and a number
CREATE FUNCTION patch_value(name text, n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN n % 7 = 0 AND name <> 'c' THEN 'null' ELSE
		CASE name WHEN 'a' THEN (n % 100)::text WHEN 'b' THEN quote_literal(repeat('b', n % 5 * 40)) WHEN 'c' THEN (n * 1000)::text WHEN 'd' THEN (n % 2 = 0)::text
			WHEN 'e' THEN (n * 1.5)::text || repeat('9', n % 20) WHEN 'f' THEN (n / 3.0)::text WHEN 'g' THEN quote_literal(repeat('g', n % 200)) WHEN 'h' THEN quote_literal(chr(65 + n % 26))
			WHEN 'i' THEN quote_literal('\x' || repeat('ab', n % 300)) WHEN 'j' THEN quote_literal(md5(n::text)) WHEN 'k' THEN quote_literal(repeat('k', n % 3)) WHEN 'l' THEN quote_literal(date '2020-01-01' + n)
			WHEN 'm' THEN quote_literal('{' || repeat('1,', n % 9) || '2}') ELSE quote_literal('name ' || n) END END
$$;

DO $$
DECLARE
	names text[] := '{a,b,c,d,e,f,g,h,i,j,k,l,m,n}';
	list text;
	target text;
	differences bigint;
BEGIN
	FOR i IN 1 .. 30 LOOP
		list := (SELECT string_agg(patch_value(name, i * 3 + o::int), ', ' ORDER BY o) FROM unnest(names) WITH ORDINALITY AS u (name, o));
		EXECUTE format('INSERT INTO patch_mot VALUES (%s, %s)', i, list);
		EXECUTE format('INSERT INTO patch_heap VALUES (%s, %s)', i, list);
	END LOOP;

	-- each column alone, neighbours, and far ones
	FOR round IN 1 .. 60 LOOP
		list := (SELECT string_agg(name || ' = ' || patch_value(name, round + round / 14 * 2 + o::int), ', ' ORDER BY (o * round) % 11) FROM unnest(names) WITH ORDINALITY AS u (name, o)
				 WHERE o = 1 + round % 14 OR (round % 3 = 0 AND o = 1 + round % 5) OR (round % 4 = 0 AND o = 1 + round % 13));
		FOREACH target IN ARRAY ARRAY['patch_mot', 'patch_heap'] LOOP
			EXECUTE format('PREPARE patch_update (integer) AS UPDATE %s SET %s WHERE id BETWEEN $1 AND $1 + 20', target, list);
			EXECUTE format('EXECUTE patch_update (%s)', round % 10);
			EXECUTE format('EXECUTE patch_update (%s)', round % 7);
			EXECUTE 'DEALLOCATE patch_update';
		END LOOP;
		SELECT count(*) INTO differences FROM (SELECT * FROM patch_mot EXCEPT SELECT * FROM patch_heap) d;
		IF differences > 0 THEN
			RAISE 'round %: % rows differ after %', round, differences, list;
		END IF;
	END LOOP;
END
$$;

-- what was a value becomes padding, and the other way round
CREATE FOREIGN TABLE patch_gap (id integer PRIMARY KEY, h0 "char", h "char", i text, f float8, s smallint, k text) SERVER mot_server;
INSERT INTO patch_gap SELECT i, 'w', 'x', repeat('i', i * 64 + 124), i, i, repeat('k', i * 64 + 60) FROM generate_series(1, 6) i;
PREPARE patch_h ("char") AS UPDATE patch_gap SET h = $1 WHERE id > 0;
PREPARE patch_s (smallint) AS UPDATE patch_gap SET s = $1 WHERE id > 0;
PREPARE patch_both ("char", smallint) AS UPDATE patch_gap SET s = $2, h = $1 WHERE id > 0;
EXECUTE patch_h (null);
SELECT id, h, length(i), f, s, length(k) FROM patch_gap ORDER BY id;
EXECUTE patch_s (null);
SELECT id, h, length(i), f, s, length(k) FROM patch_gap ORDER BY id;
EXECUTE patch_both ('y', 7);
SELECT id, h, length(i), f, s, length(k) FROM patch_gap ORDER BY id;
EXECUTE patch_both (null, null);
SELECT id, h, i = repeat('i', id * 64 + 124), f, s, k = repeat('k', id * 64 + 60) FROM patch_gap ORDER BY id;
EXECUTE patch_h ('z');
SELECT id, h, i = repeat('i', id * 64 + 124), f, s, k = repeat('k', id * 64 + 60) FROM patch_gap ORDER BY id;
DROP FOREIGN TABLE patch_gap;

-- of the row's own columns; what is null in a NOT NULL column; what lies out of line
PREPARE patch_own (integer) AS UPDATE patch_mot SET a = a + 1, b = b || 'x', e = e * 2, k = g, d = NOT d WHERE id <= $1;
PREPARE patch_own_heap (integer) AS UPDATE patch_heap SET a = a + 1, b = b || 'x', e = e * 2, k = g, d = NOT d WHERE id <= $1;
EXECUTE patch_own (20);
EXECUTE patch_own (25);
EXECUTE patch_own_heap (20);
EXECUTE patch_own_heap (25);
SELECT * FROM patch_mot EXCEPT SELECT * FROM patch_heap;
PREPARE patch_null (integer, bigint) AS UPDATE patch_mot SET c = $2, a = 5 WHERE id = $1;
EXECUTE patch_null (1, 10);
EXECUTE patch_null (1, null);
SELECT c, a FROM patch_mot WHERE id = 1;
CREATE TABLE patch_long (t text);
ALTER TABLE patch_long ALTER COLUMN t SET STORAGE EXTERNAL;
INSERT INTO patch_long VALUES (repeat('long', 5000));
CREATE FUNCTION patch_from_long() RETURNS text LANGUAGE plpgsql AS 'DECLARE r record; BEGIN SELECT t INTO r FROM patch_long; UPDATE patch_mot SET k = r.t, b = ''short'' WHERE id < 4; RETURN (SELECT max(length(k)) FROM patch_mot WHERE id < 4); END';
SELECT patch_from_long(), patch_from_long();

-- rows that are older than a column
ALTER FOREIGN TABLE patch_mot ADD COLUMN o integer DEFAULT 7, ADD COLUMN p text;
PREPARE patch_added (integer) AS UPDATE patch_mot SET o = o + 1 WHERE id = $1;
EXECUTE patch_added (5);
EXECUTE patch_added (5);
EXECUTE patch_added (6);
SELECT id, o, p FROM patch_mot WHERE id IN (4, 5, 6) ORDER BY id;

-- undone, and seen by others as it was
BEGIN;
EXECUTE patch_added (5);
SAVEPOINT s;
EXECUTE patch_added (5);
SELECT o FROM patch_mot WHERE id = 5;
ROLLBACK TO s;
SELECT o FROM patch_mot WHERE id = 5;
ROLLBACK;
SELECT o FROM patch_mot WHERE id = 5;

-- an index on a column that was not in one
PREPARE patch_index (integer) AS UPDATE patch_mot SET a = a + 100 WHERE id = $1;
EXECUTE patch_index (7);
EXECUTE patch_index (7);
CREATE INDEX patch_mot_a ON patch_mot (a);
EXECUTE patch_index (8);
EXECUTE patch_index (8);
SELECT count(*) FROM mot_verify('patch_mot') WHERE problems > 0;

-- a CHECK that comes later, and RETURNING
PREPARE patch_check (integer, integer) AS UPDATE patch_mot SET o = $2 WHERE id = $1;
EXECUTE patch_check (9, 1);
EXECUTE patch_check (9, 2);
ALTER FOREIGN TABLE patch_mot ADD CONSTRAINT patch_o CHECK (o < 1000);
EXECUTE patch_check (9, 1000);
EXECUTE patch_check (9, 999);
PREPARE patch_returning (integer) AS UPDATE patch_mot SET l = l + 1, o = o - 1 WHERE id = $1 RETURNING id, o, c;
EXECUTE patch_returning (9);
EXECUTE patch_returning (9);

DEALLOCATE ALL;
DROP FOREIGN TABLE patch_mot;
DROP TABLE patch_heap, patch_long;
DROP FUNCTION patch_value(text, integer), patch_from_long();
