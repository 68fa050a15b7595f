--
-- Keys of text in its own collation's order: ranges, ORDER BY, unique keys, on
-- both kinds of tables, beside heap
--
SET client_min_messages = warning;
CREATE COLLATION co_us (provider = libc, locale = 'en_US.UTF-8');
CREATE COLLATION co_de (provider = libc, locale = 'de_DE.UTF-8');
-- (of a server without ICU it is glibc's)
SELECT count(*) = 0 AS without_icu FROM pg_collation WHERE collprovider = 'i' AND collname = 'und-x-icu' \gset
\if :without_icu
CREATE COLLATION co_en FROM co_us;
CREATE COLLATION co_numeric FROM co_us;
CREATE COLLATION co_upper FROM co_de;
CREATE COLLATION co_ci FROM co_us;
CREATE COLLATION co_base FROM co_us;
\else
CREATE COLLATION co_en (provider = icu, locale = 'en');
CREATE COLLATION co_numeric (provider = icu, locale = 'en@colNumeric=yes');
CREATE COLLATION co_upper (provider = icu, locale = 'de@colCaseFirst=upper');
CREATE COLLATION co_ci (provider = icu, locale = 'und@colStrength=secondary', deterministic = false);
CREATE COLLATION co_base (provider = icu, locale = 'und@colStrength=primary', deterministic = false);
\endif

-- strings that collations have to think about
SELECT setseed(0.25);
CREATE TABLE co_strings (id int, s text);
INSERT INTO co_strings
SELECT i, (SELECT string_agg((ARRAY['a','A','á','Á','ä','b','B','c','ch','z','Z','ß','ss','ñ','n','-',' ','.','''','1','2','10','9','中','文','Æ','ae','é',U&'e\0301','_','я','λ'])[1 + floor(random() * 32)::int], '') FROM generate_series(1, (random() * 5)::int + i - i))
FROM generate_series(1, 300) i;
INSERT INTO co_strings VALUES (901, ''), (902, ' '), (903, 'coop'), (904, 'co-op'), (905, 'Coop'), (906, 'CO-OP'), (907, 'résumé'), (908, 'resume'), (909, 'Resume'), (910, 'item 9'), (911, 'item 10'),
	(912, repeat('long ', 60)), (913, repeat('long ', 60) || 'x'), (914, repeat('Long ', 60)), (915, chr(1)), (916, U&'\FFFD'), (917, '😀'), (918, '😀a'), (919, NULL), (920, NULL);

CREATE FUNCTION co_compare(what text, a text, b text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	x text;
	y text;
BEGIN
	EXECUTE a INTO x;
	EXECUTE b INTO y;
	IF x IS DISTINCT FROM y THEN
		RETURN NEXT what || E'\n' || b || E'\nheap: ' || coalesce(left(x, 200), '(none)') || E'\nmot: ' || coalesce(left(y, 200), '(none)');
	END IF;
END $$;

CREATE TABLE co_queries (q text);
INSERT INTO co_queries VALUES
	('SELECT id, s FROM {t} WHERE s < $x$ ORDER BY s, id'),
	('SELECT id, s FROM {t} WHERE s <= $x$ ORDER BY s, id'),
	('SELECT id, s FROM {t} WHERE s > $x$ ORDER BY s DESC, id'),
	('SELECT id, s FROM {t} WHERE s BETWEEN $x$ AND $y$ ORDER BY s, id'),
	('SELECT id, s FROM {t} WHERE s >= $x$ AND s < $y$ ORDER BY s NULLS FIRST, id'),
	('SELECT id, s FROM {t} WHERE s = $x$ ORDER BY id'),
	('SELECT id, s FROM {t} WHERE s IN ($x$, $y$, ''coop'', ''co-op'', ''RESUME'') ORDER BY s, id'),
	('SELECT id FROM {t} WHERE s = (SELECT min(s) FROM {t}) ORDER BY id'),
	('SELECT id FROM {t} WHERE s = (SELECT max(s) FROM {t} WHERE s < $x$) ORDER BY id'),
	('SELECT s FROM {t} ORDER BY s, id LIMIT 20'),
	('SELECT s FROM {t} ORDER BY s DESC NULLS LAST, id LIMIT 20'),
	('SELECT id, n, s FROM {t} WHERE n = 3 AND s > $x$ ORDER BY s, id'),
	('SELECT id, n, s FROM {t} WHERE n = 3 ORDER BY s DESC, id'),
	('SELECT id, n, s FROM {t} WHERE n IN (1, 2) AND s BETWEEN $x$ AND $y$ ORDER BY n, s, id'),
	('SELECT id, s, n FROM {t} WHERE (s, n) > ($x$, 2) ORDER BY s, n, id LIMIT 30'),
	('SELECT id, s, n FROM {t} WHERE s = $x$ AND n >= 2 ORDER BY n, id'),
	('SELECT id, s FROM {t} WHERE s IS NULL ORDER BY id'),
	('SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.s = b.s WHERE a.n = 1 AND b.n = 2 ORDER BY a.s, a.id, b.id'),
	('SELECT count(*), min(id) FROM {t} GROUP BY s ORDER BY 1, 2'),
	('SELECT id FROM {t} WHERE s < $x$ OR s = $y$ ORDER BY id');

-- all queries with a few of the strings, in several plans
CREATE FUNCTION co_check(collation_name text, type text, door text, seed float8) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	query text;
	x text;
	y text;
	plan text;
	result text;
BEGIN
	PERFORM setseed(seed);
	FOR query IN SELECT q FROM co_queries LOOP
		FOR x, y IN SELECT coalesce(a.s, 'a'), coalesce(b.s, 'b') FROM co_strings a JOIN co_strings b ON b.id = 1 + (a.id * 37) % 300 ORDER BY random() LIMIT 1 LOOP
			query := replace(replace(query, '$x$', quote_literal(x)), '$y$', quote_literal(y));
			FOREACH plan IN ARRAY ARRAY['enable_seqscan', 'enable_sort', 'enable_hashjoin'] LOOP
				PERFORM set_config(plan, 'off', true);
			END LOOP;
			RETURN QUERY SELECT co_compare(concat_ws(' ', collation_name, type, door),
				format('SELECT string_agg(q::text, '';'') FROM (%s) q', replace(query, '{t}', 'co_heap')),
				format('SELECT string_agg(q::text, '';'') FROM (%s) q', replace(query, '{t}', 'co_mot')));
			FOREACH plan IN ARRAY ARRAY['enable_seqscan', 'enable_sort', 'enable_hashjoin'] LOOP
				PERFORM set_config(plan, 'on', true);
			END LOOP;
		END LOOP;
	END LOOP;
END $$;

CREATE FUNCTION co_all(collation_name text, type text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	door text;
	deterministic bool := (SELECT collisdeterministic FROM pg_collation WHERE collname = collation_name LIMIT 1);
BEGIN
	FOREACH door IN ARRAY ARRAY['table', 'foreign'] LOOP
		EXECUTE format('CREATE TABLE co_heap (id int PRIMARY KEY, s %s COLLATE %I, n int) USING heap', type, collation_name);
		IF door = 'table' THEN
			EXECUTE format('CREATE TABLE co_mot (id int PRIMARY KEY, s %s COLLATE %I, n int) USING mot', type, collation_name);
		ELSE
			EXECUTE format('CREATE FOREIGN TABLE co_mot (id int PRIMARY KEY, s %s COLLATE %I, n int) SERVER mot_server', type, collation_name);
		END IF;
		-- some of the indexes are filled row by row, others are built
		INSERT INTO co_heap SELECT id, s, id % 5 FROM co_strings;
		CREATE INDEX co_s ON co_mot (s);
		CREATE INDEX co_n_s ON co_mot (n, s DESC);
		INSERT INTO co_mot SELECT id, s, id % 5 FROM co_strings;
		CREATE INDEX co_s_n ON co_mot (s, n);
		CREATE INDEX co_s_desc ON co_mot (s DESC NULLS LAST, id);
		ANALYZE co_heap;
		ANALYZE co_mot;
		RETURN QUERY SELECT co_check(collation_name, type, door, 0.5);

		-- changed keys, with savepoints that are rolled back
		UPDATE co_heap SET s = s || 'x' WHERE id % 7 = 0;
		UPDATE co_mot SET s = s || 'x' WHERE id % 7 = 0;
		BEGIN
			UPDATE co_mot SET s = upper(s);
			DELETE FROM co_mot WHERE id % 2 = 0;
			RAISE EXCEPTION 'back';
		EXCEPTION WHEN raise_exception THEN NULL;
		END;
		DELETE FROM co_heap WHERE s > 'y' OR id % 11 = 0;
		DELETE FROM co_mot WHERE s > 'y' OR id % 11 = 0;
		RETURN QUERY SELECT co_check(collation_name, type, door, 0.6);
		RETURN QUERY SELECT first_problem FROM mot_verify('co_mot'::regclass) WHERE problems > 0;
		DROP TABLE co_heap;
		EXECUTE CASE door WHEN 'table' THEN 'DROP TABLE co_mot' ELSE 'DROP FOREIGN TABLE co_mot' END;
	END LOOP;
END $$;

SELECT co_all('co_us', 'text');
SELECT co_all('co_de', 'varchar');
SELECT co_all('co_en', 'text');
SELECT co_all('co_numeric', 'text');
SELECT co_all('co_upper', 'varchar(400)');
SELECT co_all('co_ci', 'text');
SELECT co_all('co_base', 'varchar');
UPDATE co_strings SET s = left(s, 12);
SELECT co_all('co_us', 'char(12)');
SELECT co_all('co_ci', 'bpchar');

-- plans: the index brings the order, and ranges bound it
CREATE TABLE co_t (id int PRIMARY KEY, s text COLLATE co_us, c char(8) COLLATE co_en, n int) USING mot;
CREATE FOREIGN TABLE co_f (id int PRIMARY KEY, s text COLLATE co_us, c char(8) COLLATE co_en, n int) SERVER mot_server;
CREATE INDEX co_t_s ON co_t (s);
CREATE INDEX co_t_cn ON co_t (c, n);
CREATE INDEX co_f_s ON co_f (s);
CREATE INDEX co_f_cn ON co_f (c, n);
INSERT INTO co_t SELECT id, s, s::char(8), id % 3 FROM co_strings;
INSERT INTO co_f SELECT * FROM co_t;
ANALYZE co_t;
ANALYZE co_f;
EXPLAIN (COSTS off) SELECT s FROM co_t WHERE s BETWEEN 'coa' AND 'coz' ORDER BY s;
EXPLAIN (COSTS off) SELECT s FROM co_f WHERE s BETWEEN 'coa' AND 'coz' ORDER BY s;
EXPLAIN (COSTS off) SELECT s FROM co_t ORDER BY s DESC LIMIT 3;
EXPLAIN (COSTS off) SELECT s FROM co_f WHERE s < 'm' ORDER BY s DESC LIMIT 1;
EXPLAIN (COSTS off) SELECT c FROM co_t WHERE c > 'd' ORDER BY c, n LIMIT 5;
-- another collation than the index's is none of its business
EXPLAIN (COSTS off) SELECT s FROM co_t WHERE s > 'coa' COLLATE "C" ORDER BY s COLLATE "C" LIMIT 1;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
EXPLAIN (COSTS off) SELECT count(*) FROM co_t a JOIN co_f b ON a.s = b.s;
SELECT (SELECT count(*) FROM co_t a JOIN co_f b ON a.s = b.s) = (SELECT sum(n * n) FROM (SELECT count(*) AS n FROM co_strings WHERE s IS NOT NULL GROUP BY s COLLATE "C") g) AS merged;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_sort;

-- statements without the executor, again and again; values whose order changes with the collation
PREPARE between_t (text, text) AS SELECT s FROM co_t WHERE s BETWEEN $1 AND $2 ORDER BY s, id LIMIT 6;
PREPARE between_f (text, text) AS SELECT s FROM co_f WHERE s BETWEEN $1 AND $2 ORDER BY s, id LIMIT 6;
DO $$
DECLARE
	a text;
	b text;
	low text;
BEGIN
	FOR i IN 1 .. 12 LOOP
		low := (ARRAY['coa', 'COA', 'résumé', '-', '', 'item'])[1 + i % 6];
		EXECUTE format('CREATE TEMP TABLE a AS EXECUTE between_t (%L, %L)', low, low || 'zz');
		EXECUTE format('CREATE TEMP TABLE b AS EXECUTE between_f (%L, %L)', low, low || 'zz');
		SELECT string_agg(s, ';') FROM a INTO a;
		SELECT string_agg(s, ';') FROM (SELECT s FROM co_strings WHERE s COLLATE co_us BETWEEN low AND low || 'zz' ORDER BY s COLLATE co_us, id LIMIT 6) x INTO b;
		IF a IS DISTINCT FROM b THEN RAISE EXCEPTION '% and %', a, b; END IF;
		SELECT string_agg(s, ';') FROM b INTO a;
		IF a IS DISTINCT FROM b THEN RAISE EXCEPTION '% and %', a, b; END IF;
		DROP TABLE a, b;
	END LOOP;
END $$;

-- unique keys: bytes decide, or what the collation takes for equal
CREATE TABLE co_u (s text COLLATE co_us PRIMARY KEY, i text COLLATE co_ci UNIQUE, v int) USING mot;
INSERT INTO co_u VALUES ('coop', 'one', 1), ('co-op', 'two', 2), ('Coop', 'three', 3);
INSERT INTO co_u VALUES ('coop', 'four', 4);
INSERT INTO co_u VALUES ('x', 'ONE', 4);
INSERT INTO co_u VALUES ('x', 'ONE', 4) ON CONFLICT (i) DO UPDATE SET v = co_u.v + 10, i = 'One' RETURNING *;
INSERT INTO co_u VALUES ('co-op', 'ONE!', 4) ON CONFLICT (s) DO UPDATE SET v = co_u.v + 10 RETURNING *;
UPDATE co_u SET i = 'TWO' WHERE s = 'Coop';
UPDATE co_u SET i = 'TWO' WHERE s = 'co-op' RETURNING *;
DELETE FROM co_u WHERE i = 'tHree' RETURNING *;
INSERT INTO co_u VALUES ('Coop', 'THREE', 5);
SELECT * FROM co_u ORDER BY s;
SELECT * FROM co_u WHERE i IN ('one', 'THREE', 'none') ORDER BY i;
CREATE TABLE co_fk (i text COLLATE co_ci REFERENCES co_u (i) ON UPDATE CASCADE ON DELETE CASCADE) USING mot;
INSERT INTO co_fk VALUES ('tWO');
INSERT INTO co_fk VALUES ('seven');
DELETE FROM co_u WHERE i = 'two';
SELECT * FROM co_fk;
DROP TABLE co_fk, co_u;
CREATE FOREIGN TABLE co_u (s varchar COLLATE co_ci PRIMARY KEY) SERVER mot_server;
INSERT INTO co_u VALUES ('abc'), ('ABC');
INSERT INTO co_u VALUES ('abc'), ('abd');
SELECT * FROM co_u WHERE s = 'AbC';
DROP FOREIGN TABLE co_u;

-- where the column is in the key, and in what direction, whatever its neighbours are
CREATE TABLE co_keys (id int, n numeric, a text COLLATE co_us, b bytea, d text COLLATE co_en, i inet, v varbit) USING mot;
CREATE TABLE co_keys_heap (LIKE co_keys) USING heap;
CREATE UNIQUE INDEX co_keys_1 ON co_keys (n, a DESC, b, d, i, v, id);
CREATE INDEX co_keys_2 ON co_keys (d DESC, a, v DESC, n);
CREATE INDEX co_keys_3 ON co_keys (i, b DESC, a NULLS FIRST, d DESC NULLS LAST);
INSERT INTO co_keys_heap SELECT x.id, (ARRAY[0, -1.5, 1e30, 'NaN', NULL, 20000])[1 + x.id % 6], x.s, (ARRAY['\x', '\x00', '\x00ff', NULL])[1 + x.id % 4]::bytea, y.s,
	(ARRAY['10.0.0.0/8', '10.1.2.3', '::1', NULL])[1 + x.id % 4]::inet, (ARRAY[B'', B'0', B'101', NULL])[1 + x.id / 7 % 4]
FROM co_strings x JOIN co_strings y ON y.id = 1 + x.id % 100;
INSERT INTO co_keys SELECT * FROM co_keys_heap;
SET enable_seqscan = off;
SET enable_sort = off;
SELECT co_compare('keys', format('SELECT string_agg(q::text, '';'') FROM (SELECT * FROM co_keys_heap %s) q', w), format('SELECT string_agg(q::text, '';'') FROM (SELECT * FROM co_keys %s) q', w))
FROM unnest(ARRAY['ORDER BY n, a DESC, b, d, i, v, id', 'WHERE n = 0 AND a < ''m'' ORDER BY a DESC, b, d, i, v, id', 'ORDER BY d DESC, a, v DESC, n, id', 'WHERE d > ''b'' AND d < ''s'' ORDER BY d, a DESC, v, n DESC, id',
	'ORDER BY i, b DESC, a NULLS FIRST, d DESC NULLS LAST, id', 'WHERE i = ''::1'' AND b = ''\x00ff'' AND a >= ''a'' ORDER BY a, id']) w;
RESET enable_seqscan;
RESET enable_sort;
SELECT * FROM mot_verify('co_keys') WHERE problems > 0;
DROP TABLE co_keys, co_keys_heap;

-- long ones: what heap has room for has room here
CREATE TABLE co_long (id int, s text COLLATE co_us, e text COLLATE co_en) USING mot;
CREATE INDEX co_long_s ON co_long (s);
CREATE INDEX co_long_e ON co_long (e);
INSERT INTO co_long SELECT i, repeat(chr(97 + i), 2600) || i, repeat(chr(97 + i), 2600) || i FROM generate_series(1, 9) i;
INSERT INTO co_long SELECT id, upper(s), upper(e) FROM co_long;
SELECT string_agg(left(s, 1) || right(s, 1), '') FROM (SELECT s FROM co_long ORDER BY s) q;
SELECT string_agg(left(e, 1) || right(e, 1), '') FROM (SELECT e FROM co_long ORDER BY e) q;
SELECT count(*) FROM co_long WHERE s > repeat('d', 100000) AND e < repeat('f', 100000);
INSERT INTO co_long VALUES (100, repeat('x', 10000), 'a');
DROP TABLE co_long;

-- several of them in a key share the room for sort keys; a bound can have any length
CREATE TABLE co_wide (id int, a text COLLATE co_us, b text COLLATE co_de, c varchar COLLATE co_us, PRIMARY KEY (a, b, c)) USING mot;
CREATE INDEX co_wide_c ON co_wide (c DESC, id, b, a);
INSERT INTO co_wide SELECT i, repeat(chr(97 + i % 3), 850) || i, repeat(chr(65 + i % 5), 850), repeat('-Ab', 280) || i FROM generate_series(1, 12) i;
SELECT string_agg(id::text, ' ') = (SELECT string_agg(id::text, ' ') FROM (SELECT id FROM co_wide ORDER BY a || '', b || '', c || '') q) AS a FROM (SELECT id FROM co_wide ORDER BY a, b, c) q;
SELECT string_agg(id::text, ' ') = (SELECT string_agg(id::text, ' ') FROM (SELECT id FROM co_wide ORDER BY c || '' DESC, id) q) AS c FROM (SELECT id FROM co_wide ORDER BY c DESC, id) q;
SET enable_seqscan = off;
SELECT id FROM co_wide WHERE a = repeat('a', 850) || 6 AND b = repeat('B', 850);
SELECT count(*) FROM co_wide WHERE a < repeat('b', 150000000);
SELECT count(*) FROM co_wide WHERE a = repeat('b', 150000000);
RESET enable_seqscan;
SELECT problems FROM mot_verify('co_wide');
DROP TABLE co_wide;

-- scans that turn round, and a computed key, which serves equality
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT s FROM co_t WHERE s > 'coo' AND s < 'd' ORDER BY s;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
COMMIT;
CREATE INDEX co_t_lower ON co_t (lower(s));
EXPLAIN (COSTS off) SELECT id FROM co_t WHERE lower(s) = 'coop';
EXPLAIN (COSTS off) SELECT id FROM co_t ORDER BY lower(s) LIMIT 1;
SELECT id FROM co_t WHERE lower(s) = 'coop' ORDER BY id;

-- another collation, and storage and indexes that are made anew
CREATE TABLE co_a (id int, s text COLLATE "C") USING mot;
CREATE FOREIGN TABLE co_b (id int, s text COLLATE "C") SERVER mot_server;
CREATE INDEX co_a_s ON co_a (s);
CREATE INDEX co_b_s ON co_b (s);
INSERT INTO co_a VALUES (1, 'a'), (2, 'B'), (3, 'c'), (4, 'D'), (5, 'coop'), (6, 'co-op');
INSERT INTO co_b SELECT * FROM co_a;
SET enable_seqscan = off;
SET enable_sort = off;
\set order_a 'SELECT string_agg(s, '' '') FROM (SELECT s FROM co_a WHERE s > '''' ORDER BY s) q;'
\set order_b 'SELECT string_agg(s, '' '') FROM (SELECT s FROM co_b WHERE s > '''' ORDER BY s) q;'
:order_a
:order_b
ALTER TABLE co_a ALTER s TYPE text COLLATE co_us;
ALTER FOREIGN TABLE co_b ALTER s TYPE text COLLATE co_us;
:order_a
:order_b
ALTER TABLE co_a ALTER s TYPE varchar COLLATE co_upper;
ALTER FOREIGN TABLE co_b ALTER s TYPE varchar COLLATE co_upper;
:order_a
:order_b
ALTER TABLE co_a ALTER s SET NOT NULL;
ALTER FOREIGN TABLE co_b ALTER s SET NOT NULL;
ALTER TABLE co_a ALTER s DROP NOT NULL;
ALTER FOREIGN TABLE co_b ALTER s DROP NOT NULL;
REINDEX TABLE co_a;
REINDEX TABLE CONCURRENTLY co_a;
VACUUM FULL co_a;
CLUSTER co_a USING co_a_s;
CREATE INDEX CONCURRENTLY co_a_us ON co_a (s COLLATE co_us DESC);
INSERT INTO co_a VALUES (7, 'CO OP');
SELECT mot_to_table('co_b');
INSERT INTO co_b VALUES (7, 'CO OP');
:order_a
:order_b
SELECT string_agg(s, ' ') FROM (SELECT s FROM co_a ORDER BY s COLLATE co_us DESC) q;
BEGIN;
TRUNCATE co_a;
INSERT INTO co_a SELECT * FROM co_b;
:order_a
ROLLBACK;
:order_a
RESET enable_seqscan;
RESET enable_sort;
SELECT sum(problems) FROM (SELECT problems FROM mot_verify('co_a') UNION ALL SELECT problems FROM mot_verify('co_b')) q;
DROP TABLE co_a, co_b;

DROP TABLE co_t;
DROP FOREIGN TABLE co_f;
DROP TABLE co_strings, co_queries;
DROP FUNCTION co_all, co_check, co_compare;
DROP COLLATION co_us, co_de, co_en, co_numeric, co_upper, co_ci, co_base;
