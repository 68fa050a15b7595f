-- Indexes and keys of ordinary tables that are more than columns, beside heap twins:
-- INCLUDE, expressions, predicates, deferrable keys, NULLS NOT DISTINCT, exclusion
-- constraints, CONCURRENTLY.
CREATE SCHEMA ti_heap;
CREATE SCHEMA ti_mot;

-- a statement in both; rows of a query in their order, how many of others, or the error
CREATE FUNCTION ti(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text[];
	one text;
	result text;
	n bigint;
	message text;
	detail text;
BEGIN
	FOREACH one IN ARRAY ARRAY['heap', 'mot'] LOOP
		BEGIN
			EXECUTE 'SET LOCAL search_path = ti_' || one || ', public';
			IF statement ~* '^(select|with|table)' THEN
				EXECUTE 'SELECT string_agg(r::text, '' '') FROM (' || statement || ') r' INTO result;
				answer := answer || coalesce(result, 'nothing');
			ELSE
				EXECUTE replace(statement, 'ENGINE', one);
				GET DIAGNOSTICS n = ROW_COUNT;
				answer := answer || n::text;
			END IF;
		EXCEPTION WHEN others THEN
			GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
			answer := answer || (SQLSTATE || ' ' || message || ' ' || coalesce(detail, ''));
		END;
	END LOOP;
	RETURN CASE WHEN answer[1] IS DISTINCT FROM answer[2] THEN 'heap: ' || answer[1] || E'\nmot: ' || answer[2] ELSE answer[2] END;
END $$;
-- how a query on the memory-optimized table is planned (18 has a line more for what is off)
CREATE FUNCTION ti_plan(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	SET LOCAL search_path = ti_mot, public;
	SET LOCAL enable_seqscan = off;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		CONTINUE WHEN line ~ '^ *Disabled: ';
		RETURN NEXT line;
	END LOOP;
END $$;
-- what is not as it should be in memory
CREATE VIEW ti_problems AS SELECT c.relname, v.first_problem FROM pg_class c, mot_verify(c.oid) v
	WHERE relnamespace = 'ti_mot'::regnamespace AND relkind = 'r' AND v.first_problem IS NOT NULL;
CREATE FUNCTION ti_slug(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF $1 = 'bad' THEN RAISE EXCEPTION 'a bad name'; END IF;
	RETURN lower(replace($1, ' ', '-'));
END $$;
CREATE FUNCTION ti_parity(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 % 2';

-- INCLUDE
SELECT ti('CREATE TABLE i (a int, b text, c int, PRIMARY KEY (a) INCLUDE (b)) USING ENGINE');
SELECT ti('CREATE UNIQUE INDEX i_c ON i (c) INCLUDE (a, b)');
SELECT ti($$INSERT INTO i SELECT n, 'b' || n, n * 2 FROM generate_series(1, 50) n$$);
SELECT ti($$INSERT INTO i VALUES (1, 'other', 1000)$$);
SELECT ti($$INSERT INTO i VALUES (1000, 'other', 4)$$);
SELECT ti($$INSERT INTO i VALUES (1, 'conflict', 0) ON CONFLICT (a) DO UPDATE SET b = excluded.b$$);
SELECT ti('SELECT a, b FROM i WHERE a < 3 ORDER BY a');
SELECT ti($$UPDATE i SET b = 'later' WHERE a = 2$$);
SELECT ti('SELECT b FROM i WHERE c BETWEEN 2 AND 6 ORDER BY c');
SELECT ti_plan('SELECT a, b FROM i WHERE c = 4');
SELECT ti($$SELECT indexdef FROM pg_indexes WHERE tablename = 'i' AND schemaname = current_schema$$) LIKE 'heap%USING btree (a) INCLUDE (b)%' AS shown;

-- expressions, of any function
SELECT ti('CREATE TABLE e (id int PRIMARY KEY, name text, n int, d timestamp) USING ENGINE');
SELECT ti($$INSERT INTO e SELECT i, 'Name ' || i, i, '2026-01-01'::timestamp + i * interval '1 hour' FROM generate_series(1, 100) i$$);
SELECT ti('CREATE UNIQUE INDEX e_name ON e (ti_slug(name))');
SELECT ti('CREATE INDEX e_day ON e ((d::date), ti_parity(n) DESC, id)');
SELECT ti($$SELECT id FROM e WHERE ti_slug(name) = 'name-7'$$);
SELECT ti_plan($$SELECT id FROM e WHERE ti_slug(name) = 'name-7'$$);
SELECT ti($$SELECT id FROM e WHERE d::date = '2026-01-02' AND ti_parity(n) = 1 ORDER BY id LIMIT 5$$);
SELECT ti($$SELECT id FROM e WHERE d::date >= '2026-01-05' ORDER BY d::date, ti_parity(n) DESC, id$$);
SELECT ti_plan($$SELECT id FROM e WHERE d::date >= '2026-01-05' ORDER BY d::date, ti_parity(n) DESC, id$$);
SELECT ti($$INSERT INTO e VALUES (200, 'NAME 7')$$);
SELECT ti($$INSERT INTO e VALUES (201, 'bad')$$);
SELECT ti($$UPDATE e SET name = 'bad' WHERE id = 3$$);
SELECT ti($$UPDATE e SET name = 'Name-8' WHERE id = 7$$);
SELECT ti($$UPDATE e SET name = upper(name), n = n + 1 WHERE id < 10$$);
SELECT ti($$INSERT INTO e VALUES (300, 'naME 20', 5) ON CONFLICT (ti_slug(name)) DO UPDATE SET name = excluded.name || '!' RETURNING id$$);
SELECT ti($$SELECT id, name FROM e WHERE ti_slug(name) IN ('name-20!', 'name-20', 'name-21') ORDER BY id$$);
SELECT ti($$INSERT INTO e SELECT 400, NULL$$);
SELECT ti($$INSERT INTO e SELECT 401, NULL$$);
SELECT ti('SELECT id FROM e WHERE ti_slug(name) IS NULL ORDER BY id');
SELECT ti('DELETE FROM e WHERE id = 400');
SELECT ti($$MERGE INTO e USING (VALUES (5, 'merged'), (500, 'new')) v(id, name) ON e.id = v.id WHEN MATCHED THEN UPDATE SET name = v.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (v.id, v.name)$$);
SELECT ti($$SELECT id FROM e WHERE ti_slug(name) IN ('merged', 'new', 'name-5') ORDER BY id$$);
SELECT ti('CREATE UNIQUE INDEX e_no ON e ((n / 50))');
SELECT ti('CREATE INDEX e_bad ON e ((1 / (n - 50)))');
SELECT ti($$CREATE INDEX e_whole ON e ((e.*::text))$$);
SELECT ti($$SELECT id FROM e WHERE e.*::text LIKE '(500%'$$);
SELECT * FROM ti_problems;

-- savepoints
BEGIN;
SELECT ti($$UPDATE e SET name = 'other ' || id WHERE id < 30$$);
SAVEPOINT a;
SELECT ti('DELETE FROM e WHERE id > 20');
SELECT ti($$INSERT INTO e VALUES (600, 'within')$$);
SELECT ti($$SELECT id FROM e WHERE ti_slug(name) = 'within'$$);
ROLLBACK TO a;
SELECT ti($$SELECT count(*) FROM e WHERE ti_slug(name) LIKE 'other%' OR ti_slug(name) = 'within'$$);
DROP INDEX ti_mot.e_name, ti_heap.e_name;
SELECT ti($$UPDATE e SET name = 'twice'$$);
ROLLBACK;
SELECT ti($$SELECT id FROM e WHERE ti_slug(name) = 'name-15'$$);
BEGIN;
CREATE INDEX e_within ON ti_mot.e ((n + 1));
CREATE INDEX e_within ON ti_heap.e ((n + 1));
SELECT ti('INSERT INTO e VALUES (700, NULL, 7000)');
SELECT ti('SELECT id FROM e WHERE n + 1 = 7001');
ROLLBACK;
SELECT ti('INSERT INTO e VALUES (700, NULL, 7000)');
SELECT * FROM ti_problems;

-- a transaction whose snapshot is older than the index
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM ti_mot.e;
SAVEPOINT a;
CREATE INDEX e_new ON ti_mot.e ((id * 2)) WHERE id < 50;
SET LOCAL enable_seqscan = off;
SELECT id FROM ti_mot.e WHERE id * 2 = 40 AND id < 50;
ROLLBACK;

-- predicates
SELECT ti($$CREATE TABLE p (id int, state text, v int) USING ENGINE$$);
SELECT ti($$INSERT INTO p SELECT i, CASE WHEN i % 10 = 0 THEN 'open' ELSE 'done' END, i % 7 FROM generate_series(1, 200) i$$);
SELECT ti($$CREATE UNIQUE INDEX p_open ON p (id) WHERE state = 'open'$$);
SELECT ti($$CREATE INDEX p_v ON p (v) WHERE id > 100 AND v IS NOT NULL$$);
SELECT ti_plan($$SELECT id FROM p WHERE id = 50 AND state = 'open'$$);
SELECT ti_plan($$SELECT id FROM p WHERE id = 50$$);
SELECT ti_plan('SELECT id FROM p WHERE id > 100 AND v = 3');
SELECT ti('SELECT id FROM p WHERE id > 100 AND v = 3 ORDER BY id LIMIT 4');
SELECT ti($$SELECT id FROM p WHERE state = 'open' AND id < 60 ORDER BY id$$);
SELECT ti($$INSERT INTO p VALUES (11, 'done'), (11, 'done')$$);
SELECT ti($$INSERT INTO p VALUES (11, 'open')$$);
SELECT ti($$INSERT INTO p VALUES (11, 'open')$$);
SELECT ti($$UPDATE p SET state = 'open' WHERE id = 11$$);
SELECT ti($$UPDATE p SET state = 'done' WHERE id = 11$$);
SELECT ti($$UPDATE p SET state = 'open' WHERE id = 11 AND v = 4$$);
SELECT ti($$INSERT INTO p VALUES (11, 'open', 77), (12, 'open', 77) ON CONFLICT (id) WHERE state = 'open' DO UPDATE SET v = excluded.v$$);
SELECT ti($$INSERT INTO p VALUES (11, 'done', 78) ON CONFLICT (id) WHERE state = 'open' DO UPDATE SET v = excluded.v$$);
SELECT ti($$INSERT INTO p VALUES (11, 'open', 79) ON CONFLICT DO NOTHING$$);
SELECT ti($$INSERT INTO p VALUES (11, 'open', 80) ON CONFLICT (id) DO NOTHING$$);
SELECT ti($$SELECT state, v FROM p WHERE id IN (11, 12) ORDER BY 1, 2$$);
SELECT ti($$UPDATE p SET v = v + 1 WHERE state = 'open'$$);
SELECT ti($$SELECT sum(v) FROM p WHERE state = 'open' AND id > 0$$);
SELECT ti('UPDATE p SET id = id + 1000');
SELECT ti($$SELECT id FROM p WHERE id BETWEEN 1000 AND 1060 AND state = 'open' ORDER BY id$$);
SELECT ti($$DELETE FROM p WHERE state = 'open' AND id > 1100$$);
SELECT ti('ALTER TABLE p ADD COLUMN extra int DEFAULT 5');
SELECT ti('CREATE INDEX p_extra ON p (id) WHERE extra = 5');
SELECT ti('INSERT INTO p (id, extra) VALUES (1, 6), (2, 5)');
SELECT ti('SELECT min(id) FROM p WHERE extra = 5 AND id < 10');
SELECT ti('ALTER TABLE p ALTER v TYPE bigint, ALTER id TYPE bigint');
SELECT ti('SELECT id FROM p WHERE id > 1100 AND v = 3 ORDER BY id LIMIT 4');
SELECT ti('TRUNCATE p');
SELECT ti($$INSERT INTO p VALUES (11, 'open', 80), (11, 'done', 80)$$);
SELECT ti($$INSERT INTO p VALUES (11, 'open', 80)$$);
SELECT * FROM ti_problems;

-- foreign keys and locks beside a partial key; REINDEX asks functions again
SELECT ti('CREATE TABLE q (id int PRIMARY KEY, n int) USING ENGINE');
SELECT ti('CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS ''BEGIN RETURN $1 * 10; END''');
SELECT ti('INSERT INTO q SELECT i, i FROM generate_series(1, 20) i');
SELECT ti('CREATE INDEX q_f ON q (f(n))');
SELECT ti('CREATE TABLE r (q int REFERENCES q) USING ENGINE');
SELECT ti('INSERT INTO r VALUES (3)');
SELECT ti('UPDATE q SET n = 33 WHERE id = 3');
SELECT ti('DELETE FROM q WHERE id = 3');
SELECT ti('CREATE OR REPLACE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS ''BEGIN RETURN $1 * 100; END''');
SELECT ti('REINDEX INDEX q_f');
SELECT ti_plan('SELECT id FROM q WHERE f(n) = 700');
SELECT ti('SELECT id FROM q WHERE f(n) = 700');
SELECT * FROM ti_problems;

-- to heap and back, a copy, partitions
ALTER TABLE ti_mot.e SET ACCESS METHOD heap;
SELECT ti($$INSERT INTO e VALUES (800, 'naME 12')$$);
ALTER TABLE ti_mot.e SET ACCESS METHOD mot;
SELECT ti($$INSERT INTO e VALUES (801, 'naME 12')$$);
SELECT ti($$SELECT id FROM e WHERE ti_slug(name) = 'name-12'$$);
SELECT ti('CREATE TABLE e2 (LIKE e INCLUDING ALL) USING ENGINE');
SELECT ti('INSERT INTO e2 SELECT * FROM e');
SELECT ti($$INSERT INTO e2 VALUES (801, 'naME 12')$$);
SELECT ti('CREATE TABLE part (id int, t text) PARTITION BY RANGE (id)');
SELECT ti('CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (10) USING ENGINE');
SELECT ti('CREATE UNIQUE INDEX ON part (id, lower(t)) WHERE t > ''a''');
SELECT ti('CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (10) TO (20) USING ENGINE');
SELECT ti($$INSERT INTO part VALUES (1, 'X'), (1, 'x'), (11, 'y')$$);
SELECT ti($$INSERT INTO part VALUES (1, 'x'), (11, 'y'), (11, 'A'), (11, 'A')$$);
SELECT ti($$UPDATE part SET id = id + 10 WHERE t = 'x'$$);
SELECT ti($$INSERT INTO part VALUES (11, 'x')$$);
SELECT ti($$INSERT INTO part VALUES (11, 'X') ON CONFLICT DO NOTHING$$);
SELECT * FROM ti_problems;

-- deferrable keys
SELECT ti('CREATE TABLE d (id int PRIMARY KEY DEFERRABLE, u int, UNIQUE (u) DEFERRABLE INITIALLY DEFERRED) USING ENGINE');
SELECT ti('INSERT INTO d SELECT i, i FROM generate_series(1, 5) i');
SELECT ti('UPDATE d SET id = id + 1');
SELECT ti('INSERT INTO d VALUES (3, 30)');
SELECT ti('INSERT INTO d VALUES (30, 30), (30, 31)');
SELECT ti('UPDATE d SET id = 4 WHERE id = 5');
SELECT ti('SELECT id, u FROM d ORDER BY id, u');
SELECT ti('INSERT INTO d VALUES (100, 1) ON CONFLICT (id) DO NOTHING');
SELECT ti('INSERT INTO d VALUES (2, 1) ON CONFLICT DO NOTHING');
SELECT ti('CREATE TABLE d2 (id int REFERENCES d (u)) USING ENGINE');
BEGIN;
SELECT ti('SET CONSTRAINTS d_pkey DEFERRED');
SELECT ti('INSERT INTO d VALUES (3, 1)');
SELECT ti('SELECT count(*) FROM d WHERE id = 3');
SELECT ti('SELECT count(*) FROM d WHERE u = 1');
SAVEPOINT a;
SELECT ti('SET CONSTRAINTS ALL IMMEDIATE');
ROLLBACK TO a;
SELECT ti('UPDATE d SET id = 300 WHERE id = 3 AND u <> 1');
SELECT ti('SET CONSTRAINTS d_pkey IMMEDIATE');
SAVEPOINT b;
SELECT ti('SET CONSTRAINTS d_u_key IMMEDIATE');
ROLLBACK TO b;
SELECT ti('DELETE FROM d WHERE u = 1 AND id <> 3');
SELECT ti('SET CONSTRAINTS ALL IMMEDIATE');
COMMIT;
BEGIN;
INSERT INTO ti_mot.d VALUES (77, 5);
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE ti_mot.d SET u = u - 1;
INSERT INTO ti_mot.d VALUES (77, 4);
COMMIT;
SELECT ti('SELECT id, u FROM d ORDER BY id, u');
SELECT ti('ALTER TABLE d ADD v int DEFAULT 0');
SELECT ti('ALTER TABLE d ADD UNIQUE (v) DEFERRABLE');
SELECT ti('UPDATE d SET v = id');
SELECT ti('ALTER TABLE d ADD CONSTRAINT d_v UNIQUE (v) DEFERRABLE');
SELECT ti('UPDATE d SET v = v + 1');
SELECT ti('CREATE UNIQUE INDEX d_uv ON d (u, v)');
SELECT ti('ALTER TABLE d ADD CONSTRAINT d_uv UNIQUE USING INDEX d_uv DEFERRABLE INITIALLY DEFERRED');
SELECT ti('INSERT INTO d SELECT 1000, u, v FROM d WHERE id = 3');
SELECT ti('SELECT id FROM d WHERE u > 1 AND v > 2 ORDER BY u, v');
SELECT * FROM ti_problems;

-- equal keys of which nobody was to know
SELECT ti('CREATE TABLE twice (id int, u int UNIQUE DEFERRABLE, v int) USING ENGINE');
SELECT ti('CREATE INDEX twice_v ON twice (v)');
SET session_replication_role = replica;
SELECT ti('INSERT INTO twice VALUES (1, 1, 1), (2, 1, 2)');
RESET session_replication_role;
SELECT ti('UPDATE twice SET id = 3 WHERE v = 1');
SELECT ti('UPDATE twice SET v = 3 WHERE v = 1');
SELECT ti('UPDATE twice SET u = 1, v = 3 WHERE v = 1');
SELECT ti('UPDATE twice SET u = 3, v = 3 WHERE v = 1');

-- nulls that are not distinct
SELECT ti('CREATE TABLE n (a int, b text, UNIQUE NULLS NOT DISTINCT (a, b)) USING ENGINE');
SELECT ti('INSERT INTO n VALUES (1, NULL), (NULL, NULL), (NULL, ''x'')');
SELECT ti('INSERT INTO n VALUES (1, NULL)');
SELECT ti('INSERT INTO n VALUES (NULL, NULL)');
SELECT ti('INSERT INTO n VALUES (NULL, ''x'') ON CONFLICT (a, b) DO UPDATE SET b = ''y''');
SELECT ti('UPDATE n SET a = NULL WHERE a = 1');
SELECT ti('SELECT a, b FROM n WHERE a IS NULL ORDER BY b');
SELECT ti('DELETE FROM n WHERE a IS NULL AND b IS NULL');
SELECT ti('UPDATE n SET a = NULL WHERE a = 1');
SELECT ti('SELECT a, b FROM n WHERE a IS NULL AND b IS NULL');
SELECT ti('CREATE UNIQUE INDEX ON n ((a + 1)) NULLS NOT DISTINCT WHERE b IS NULL');
SELECT ti('INSERT INTO n VALUES (NULL, NULL), (5, NULL)');
SELECT ti('CREATE UNIQUE INDEX ON n (a) NULLS NOT DISTINCT');
SELECT * FROM ti_problems;

-- exclusion
SELECT ti('CREATE TABLE x (a int, b text, EXCLUDE USING btree (a WITH =, lower(b) WITH =) WHERE (a > 0)) USING ENGINE');
SELECT ti($$INSERT INTO x VALUES (1, 'a'), (1, 'b'), (0, 'a'), (0, 'a'), (NULL, 'a'), (NULL, 'a')$$);
SELECT ti($$INSERT INTO x VALUES (1, 'A')$$) ~ 'heap.*mot' AS differs;
SELECT ti($$INSERT INTO x VALUES (1, 'a')$$);
SELECT ti($$UPDATE x SET a = a + 1$$);
SELECT ti($$INSERT INTO x VALUES (2, 'a'), (3, 'c') ON CONFLICT DO NOTHING$$);
SELECT ti($$INSERT INTO x VALUES (1, 'a') ON CONFLICT ON CONSTRAINT x_a_lower_excl DO NOTHING$$);
SELECT ti('SELECT a, b FROM x ORDER BY a, b');
SELECT ti('ALTER TABLE x ADD EXCLUDE USING btree (b WITH =)');
SELECT ti('CREATE TABLE y (a int, EXCLUDE USING btree (a WITH =) DEFERRABLE) USING ENGINE');
SELECT ti('INSERT INTO y VALUES (1), (2), (3)');
SELECT ti('UPDATE y SET a = a + 1');
SELECT ti('INSERT INTO y VALUES (2)');
SELECT ti('UPDATE y SET a = 4 WHERE a = 3');
SELECT ti('SELECT a FROM y ORDER BY a');
SELECT ti('ALTER TABLE y ADD CONSTRAINT y2 EXCLUDE (a WITH =), ADD EXCLUDE (a WITH =) DEFERRABLE INITIALLY DEFERRED');
SELECT ti('REINDEX TABLE y');
BEGIN;
SELECT ti('ALTER TABLE y DROP CONSTRAINT y2, DROP CONSTRAINT y_a_excl');
SELECT ti('UPDATE y SET a = 3 WHERE a = 2');
SELECT ti('UPDATE y SET a = 3 WHERE a = 3');
SAVEPOINT a;
SELECT ti('SET CONSTRAINTS ALL IMMEDIATE');
ROLLBACK TO a;
SELECT ti('UPDATE y SET a = 7 WHERE a = 3 AND ctid = (SELECT min(ctid) FROM y WHERE a = 3)');
SELECT ti('UPDATE y SET a = 8 WHERE a = 7');
SELECT ti('SET CONSTRAINTS ALL IMMEDIATE');
SELECT ti('SELECT a FROM y ORDER BY a');
COMMIT;
SELECT * FROM ti_problems;

-- CONCURRENTLY
CREATE INDEX CONCURRENTLY e_c ON ti_mot.e (n, (id + 1)) WHERE n > 5;
SELECT ti_plan('SELECT id FROM e WHERE n = 30 AND n > 5');
CREATE UNIQUE INDEX CONCURRENTLY e_u ON ti_mot.e ((id % 50));
SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 'ti_mot.e_u'::regclass;
INSERT INTO ti_mot.e VALUES (900, 'after', 901);
REINDEX INDEX CONCURRENTLY ti_mot.e_u;
SELECT indexrelid::regclass, indisvalid, indisready FROM pg_index WHERE indrelid = 'ti_mot.e'::regclass AND NOT indisvalid ORDER BY 1;
DROP INDEX CONCURRENTLY ti_mot.e_u;
DROP INDEX CONCURRENTLY ti_mot.e_u_ccnew;
REINDEX TABLE CONCURRENTLY ti_mot.e;
REINDEX INDEX CONCURRENTLY ti_mot.d_pkey;
REINDEX TABLE CONCURRENTLY ti_mot.d;
REINDEX TABLE CONCURRENTLY ti_mot.n;
SELECT ti('UPDATE d SET id = id + 1');
SELECT ti('INSERT INTO d SELECT min(id), 200 FROM d');
-- a key beside a deferrable one is none, and remains that
CREATE UNIQUE INDEX CONCURRENTLY d_now ON ti_mot.d (id);
UPDATE ti_mot.d SET id = id + 1;
REINDEX INDEX CONCURRENTLY ti_mot.d_now;
UPDATE ti_mot.d SET id = id + 1;
REINDEX INDEX CONCURRENTLY ti_mot.d_pkey;
SELECT indexrelid::regclass, indimmediate FROM pg_index WHERE indrelid = 'ti_mot.d'::regclass AND (NOT indisvalid OR indkey::text = '1') ORDER BY indexrelid::regclass::text;
DROP INDEX ti_mot.d_now;
SELECT ti('UPDATE d SET id = id + 1');
INSERT INTO ti_mot.e VALUES (900, 'again', 901);
INSERT INTO ti_mot.e VALUES (901, 'AFTER', 901);
SELECT id FROM ti_mot.e WHERE ti_slug(name) = 'after';
UPDATE ti_mot.e SET n = n + 1 WHERE id > 50;
SELECT count(*) FROM ti_mot.e WHERE n = 902 AND n > 5;
DROP INDEX CONCURRENTLY ti_mot.e_c;
SELECT * FROM ti_problems;

CREATE SCHEMA ti_concurrent;
CREATE TABLE ti_concurrent.c (id int PRIMARY KEY, v int) USING mot;
INSERT INTO ti_concurrent.c SELECT i, i % 10 FROM generate_series(1, 100) i;
-- (a session that has not seen the table yet)
CREATE INDEX CONCURRENTLY c_v ON ti_concurrent.c (v);
\c -
UPDATE ti_concurrent.c SET v = v + 1 WHERE id < 20;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM ti_concurrent.c WHERE v = 10;
SELECT count(*) FROM ti_concurrent.c WHERE v = 10;
RESET enable_seqscan;
DROP SCHEMA ti_concurrent CASCADE;

-- what is used to compute goes with its transaction: in its place there may be another index's
CREATE TABLE ti_mot.place (id int PRIMARY KEY, a int, c int, u text) USING mot;
CREATE INDEX ON ti_mot.place (c) WHERE a = 34;
CREATE INDEX ON ti_mot.place (upper(u), c);
INSERT INTO ti_mot.place VALUES (31, 40, 10, 'z1');
SET enable_seqscan = off;
SELECT id FROM ti_mot.place WHERE c < 11 AND tableoid::regclass::text ~ 'place';
UPDATE ti_mot.place SET a = 3, c = 11;
SELECT id FROM ti_mot.place WHERE upper(u) = 'Z1';
RESET enable_seqscan;

-- the ends of a column are not looked for in an index without an order
CREATE TABLE ti_mot.ends (id int, s text COLLATE "en-x-icu") USING mot;
CREATE INDEX ON ti_mot.ends (s);
CREATE INDEX ON ti_mot.ends (id, s);
INSERT INTO ti_mot.ends SELECT i, 'a' || i FROM generate_series(1, 200) i;
ANALYZE ti_mot.ends;
SELECT count(*) FROM ti_mot.ends WHERE s <= 'z';
SELECT count(*) FROM ti_mot.ends WHERE id > 200;

-- nor is what INCLUDE has of a row then too long
CREATE TABLE ti_mot.long (id int, s text) USING mot;
CREATE INDEX ON ti_mot.long (id) INCLUDE (s);
INSERT INTO ti_mot.long SELECT i, (SELECT string_agg(md5(i::text || j), '') FROM generate_series(1, 500) j) FROM generate_series(1, 20) i;
ANALYZE ti_mot.long;
SELECT count(*) FROM ti_mot.long WHERE id > 20;

-- others are refused, with what to do
CREATE INDEX ON ti_mot.e USING hash (n);
CREATE INDEX ON ti_mot.e USING gin ((string_to_array(name, ' ')));
CREATE INDEX ON ti_mot.e USING gist ((point(n, n)));
CREATE INDEX CONCURRENTLY ti_brin ON ti_mot.e USING brin (n);
DROP INDEX ti_mot.ti_brin;
CREATE TABLE ti_mot.g (c circle, EXCLUDE USING gist (c WITH &&)) USING mot;

SET client_min_messages = warning;
DROP VIEW ti_problems;
DROP SCHEMA ti_heap, ti_mot CASCADE;
DROP FUNCTION ti, ti_plan, ti_slug, ti_parity;
