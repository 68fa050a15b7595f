--
-- Changes of all kinds, each run on a heap table and a memory-optimized one
--
CREATE TABLE dml_heap (id int PRIMARY KEY, a int, b text, c numeric NOT NULL DEFAULT 1.5 CHECK (c >= 0), d int GENERATED ALWAYS AS (a * 2) STORED);
CREATE UNIQUE INDEX ON dml_heap (b);
CREATE INDEX ON dml_heap (a, c);
CREATE FOREIGN TABLE dml_mot (id int PRIMARY KEY, a int, b text, c numeric NOT NULL DEFAULT 1.5 CHECK (c >= 0), d int GENERATED ALWAYS AS (a * 2) STORED) SERVER mot_server;
CREATE UNIQUE INDEX dml_mot_b ON dml_mot (b);
CREATE INDEX dml_mot_a_c ON dml_mot (a, c);
CREATE TABLE dml_other AS SELECT i AS k, i % 5 AS v, 'b' || i AS s FROM generate_series(1, 20) i;

-- Run a statement on both; say how many rows it affected or what the error
-- was, and whether both agree in that, in what they return, and in what the
-- tables hold.  What it returns is compared in any order.
CREATE FUNCTION dml(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text;
	outcome text[];
	n int;
	one record;
	got text[];
	message text;
	detail text;
	state text;
	different int;
BEGIN
	FOREACH name IN ARRAY ARRAY['dml_heap', 'dml_mot'] LOOP
		got := '{}';
		BEGIN
			IF statement ~* 'returning|^select' AND statement !~ '^WITH gone' THEN
				n := 0;
				FOR one IN EXECUTE replace(statement, '{t}', name) LOOP
					got := got || one::text;
					n := n + 1;
				END LOOP;
			ELSE
				EXECUTE replace(statement, '{t}', name);
				GET DIAGNOSTICS n = ROW_COUNT;
			END IF;
			SELECT array_agg(x ORDER BY x) INTO got FROM unnest(got) x;
			outcome := outcome || concat_ws(' ', n, got);
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, state = RETURNED_SQLSTATE;
			outcome := outcome || (state || ': ' || replace(replace(message, 'dml_mot', 'dml_heap'), '_b"', '_b_idx"') || ' / ' || detail);
		END;
	END LOOP;
	SELECT count(*) INTO different FROM (
		(TABLE dml_heap EXCEPT ALL TABLE dml_mot) UNION ALL (TABLE dml_mot EXCEPT ALL TABLE dml_heap)) x;
	IF different > 0 THEN
		RETURN outcome[1] || ' BUT ' || different || ' ROWS DIFFER';
	ELSIF outcome[1] IS DISTINCT FROM outcome[2] THEN
		RETURN 'heap: ' || outcome[1] || ' MOT: ' || outcome[2];
	END IF;
	RETURN 'both: ' || outcome[1];
END $$;

CREATE TABLE statements (n serial, statement text);
INSERT INTO statements (statement) VALUES
	('INSERT INTO {t} (id, a, b) VALUES (1, 1, ''b1''), (2, 2, ''b2''), (3, NULL, NULL), (4, 4, NULL)'),
	('INSERT INTO {t} (id, a, b) SELECT i, i % 7, ''b'' || i FROM generate_series(5, 100) i'),
	('INSERT INTO {t} (id, a, b, c) VALUES (101, 1, ''new'', 7) RETURNING id, a, b, c, d'),
	-- errors
	('INSERT INTO {t} (id, a, b) VALUES (1, 1, ''dup'')'),
	('INSERT INTO {t} (id, a, b) VALUES (201, 1, ''b1'')'),
	('INSERT INTO {t} (id, a, b) VALUES (202, 1, ''x202''), (203, 1, ''x203''), (202, 1, ''x204'')'),
	('INSERT INTO {t} (id, a, b, c) VALUES (204, 1, ''x'', NULL)'),
	('INSERT INTO {t} (id, a, b, c) VALUES (204, 1, ''x'', -1)'),
	('INSERT INTO {t} (a) VALUES (1)'),
	('UPDATE {t} SET c = -1 WHERE id = 1'),
	('UPDATE {t} SET c = NULL WHERE a = 1'),
	('UPDATE {t} SET id = 2 WHERE id = 1'),
	('UPDATE {t} SET b = ''b2'' WHERE id = 1'),
	-- changes of other columns
	('UPDATE {t} SET c = c + 1 WHERE id = 1'),
	('UPDATE {t} SET c = c + 1 WHERE id = 0'),
	('UPDATE {t} SET c = c + 1 WHERE id = 1 RETURNING id, c, d'),
	('UPDATE {t} SET c = c + 1 WHERE id BETWEEN 10 AND 20'),
	('UPDATE {t} SET c = c + 1 WHERE id IN (1, 2, 2, 3)'),
	('UPDATE {t} SET c = c + 1 WHERE a IS NULL'),
	('UPDATE {t} SET c = c * 2 WHERE b LIKE ''b1%'''),
	('UPDATE {t} SET c = c * 2'),
	('UPDATE {t} SET c = c + 3 WHERE id = 9 OR a = 5 OR b = ''b9'''),
	-- of key columns: found rows must not be met again
	('UPDATE {t} SET a = a + 1 WHERE a = 3'),
	('UPDATE {t} SET a = a + 100 WHERE a > 2'),
	('UPDATE {t} SET a = a + 1 WHERE a = 5 OR a = 6 OR id = 90 RETURNING id, a'),
	('UPDATE {t} SET id = id + 1000'),
	('UPDATE {t} SET id = id - 1000 WHERE id > 0'),
	('UPDATE {t} SET id = 500 WHERE id = 5'),
	('UPDATE {t} SET id = 5 WHERE id = 500'),
	('UPDATE {t} SET b = NULL WHERE id = 7'),
	('UPDATE {t} SET b = ''b7'' WHERE id = 7'),
	('UPDATE {t} SET b = b || b, a = NULL, c = c / 3 WHERE id % 9 = 0 RETURNING id, a, b, c, d'),
	('UPDATE {t} SET a = DEFAULT, c = DEFAULT WHERE id = 12'),
	('UPDATE {t} SET (a, b) = (77, ''seventy-seven'') WHERE id = 77'),
	('UPDATE {t} SET a = id, c = a WHERE a IS NOT NULL AND id < 15'),
	-- with other tables
	('UPDATE {t} SET a = v FROM dml_other WHERE k = id AND id < 10'),
	('UPDATE {t} SET a = v FROM dml_other WHERE s = b RETURNING id, k, v, a'),
	('UPDATE {t} t SET c = (SELECT count(*) FROM {t} s WHERE s.id < t.id) WHERE id < 30'),
	('UPDATE {t} t SET (a, c) = (SELECT v, k FROM dml_other WHERE k = t.id) WHERE id < 5'),
	('UPDATE {t} t SET a = s.id FROM {t} s WHERE s.id = t.id + 1 AND t.id < 20'),
	('UPDATE {t} t SET c = c + 1 FROM generate_series(1, 3) g WHERE t.id = 30'),
	('UPDATE {t} SET c = c + 1 WHERE EXISTS (SELECT 1 FROM dml_other WHERE k = id)'),
	('UPDATE {t} SET c = c + 1 WHERE id = (SELECT max(k) FROM dml_other)'),
	('UPDATE {t} SET c = (SELECT avg(v) FROM dml_other) WHERE id IN (SELECT k FROM dml_other WHERE v = 3)'),
	('UPDATE {t} SET c = random() * 0 WHERE random() >= 0 AND id = 33'),
	-- deletes
	('DELETE FROM {t} WHERE id = 40'),
	('DELETE FROM {t} WHERE id = 40'),
	('DELETE FROM {t} WHERE id = 41 RETURNING id, a, b, c, d'),
	('DELETE FROM {t} USING dml_other WHERE k = id AND v = 4'),
	('DELETE FROM {t} USING dml_other WHERE k = id AND v = 3 RETURNING id, v, a'),
	('DELETE FROM {t} WHERE a > 100 AND c > 2'),
	('INSERT INTO {t} (id, a, b) VALUES (40, 40, ''forty'')'),
	('INSERT INTO {t} (id, a, b) SELECT id + 2000, a, NULL FROM {t}'),
	('DELETE FROM {t} t WHERE id > 2000 AND EXISTS (SELECT 1 FROM {t} s WHERE s.id = t.id - 2000 AND s.a = t.a)'),
	-- together
	('WITH gone AS (DELETE FROM {t} WHERE id < 10 RETURNING *) INSERT INTO {t} (id, a, b) SELECT id + 3000, a, ''again'' || id FROM gone'),
	('WITH a AS (UPDATE {t} SET c = c + 1 WHERE id = 50 RETURNING id, c), b AS (UPDATE {t} SET c = c + 10 WHERE id = 51 RETURNING id, c) SELECT * FROM a UNION ALL SELECT * FROM b ORDER BY 1'),
	('WITH a AS (UPDATE {t} SET c = c + 1 WHERE id = 50) UPDATE {t} SET c = 9 WHERE id = 52'),
	('WITH a AS (INSERT INTO {t} (id, a) VALUES (4000, 1) RETURNING id) SELECT count(*) FROM {t}, a WHERE {t}.id = a.id'),
	('SELECT count(*), sum(id), sum(c) FROM {t}'),
	-- conflicts
	('INSERT INTO {t} (id, a, b) VALUES (50, 1, ''n''), (5000, 1, ''n5000'') ON CONFLICT DO NOTHING'),
	('INSERT INTO {t} (id, a, b) VALUES (50, 1, ''n''), (5001, 1, ''n5001'') ON CONFLICT DO NOTHING RETURNING id, b'),
	('INSERT INTO {t} (id, a, b) VALUES (6000, 1, ''b60'') ON CONFLICT (id) DO NOTHING'),
	('INSERT INTO {t} (id, a, b) VALUES (6000, 1, ''b60'') ON CONFLICT (b) DO NOTHING'),
	('INSERT INTO {t} (id, a, b) VALUES (6001, 1, ''q''), (6001, 2, ''r'') ON CONFLICT DO NOTHING'),
	('INSERT INTO {t} AS t (id, a, b) VALUES (60, 1, ''sixty''), (6002, 1, ''n6002'') ON CONFLICT (id) DO UPDATE SET b = excluded.b, a = t.a + excluded.a, c = t.c + 1 RETURNING id, a, b, c, d'),
	('INSERT INTO {t} AS t (id, a, b) VALUES (60, 1, ''s2'') ON CONFLICT (id) DO UPDATE SET b = excluded.b WHERE t.a > 1000 RETURNING id'),
	('INSERT INTO {t} AS t (id, a, b) VALUES (60, 1, ''s2'') ON CONFLICT (id) DO UPDATE SET b = excluded.b WHERE t.id = 60'),
	('INSERT INTO {t} AS t (id, a, b) VALUES (7000, 1, ''s2'') ON CONFLICT (b) DO UPDATE SET id = excluded.id'),
	('INSERT INTO {t} (id, a, b) VALUES (61, 1, ''x61''), (61, 2, ''x61'') ON CONFLICT (id) DO UPDATE SET a = excluded.a'),
	('INSERT INTO {t} (id, a, b) VALUES (8000, 1, ''x61''), (8000, 2, ''x62'') ON CONFLICT (id) DO UPDATE SET a = excluded.a'),
	('INSERT INTO {t} (id, a, b) VALUES (61, 1, ''s2'') ON CONFLICT (id) DO UPDATE SET b = excluded.b'),
	('INSERT INTO {t} (id, a, b) VALUES (61, 1, ''zz'') ON CONFLICT (id) DO UPDATE SET c = -5'),
	('INSERT INTO {t} (id, a, b) VALUES (61, 1, ''zz'') ON CONFLICT (a) DO UPDATE SET c = 5'),
	('INSERT INTO {t} AS t (id, a, b) SELECT i, i, ''m'' || i FROM generate_series(55, 70) i ON CONFLICT (id) DO UPDATE SET (a, b) = (SELECT excluded.a + t.a, excluded.b || ''!'')'),
	('INSERT INTO {t} (id, a, b) VALUES (61, 1, ''zz''), (62, 1, ''yy'') ON CONFLICT ON CONSTRAINT {t}_pkey DO UPDATE SET b = excluded.b RETURNING id, b');
SELECT n, left(statement, 60) AS statement, left(dml(statement), 150) AS result FROM statements ORDER BY n;

-- the same from PL/pgSQL, with loops, exceptions and cursors
CREATE FUNCTION dml_loop(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	total numeric := 0;
BEGIN
	FOR r IN EXECUTE 'SELECT * FROM ' || name || ' WHERE id > 60 ORDER BY id' LOOP
		EXECUTE 'UPDATE ' || name || ' SET c = c + $1 WHERE id = $2' USING r.id, r.id;
		BEGIN
			EXECUTE 'UPDATE ' || name || ' SET c = c + 1000 WHERE id = $1' USING r.id;
			IF r.id % 2 = 0 THEN
				RAISE EXCEPTION 'no';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			EXECUTE 'INSERT INTO ' || name || ' (id, a) VALUES ($1, 0) ON CONFLICT (id) DO UPDATE SET a = excluded.a' USING r.id + 100000;
		END;
	END LOOP;
	EXECUTE 'SELECT sum(c) FROM ' || name INTO total;
	RETURN total || ' ' || (SELECT count(*) FROM dml_mot);
END $$;
SELECT dml_loop('dml_heap') IS NOT NULL AS heap, dml_loop('dml_mot') IS NOT NULL AS mot;
SELECT count(*) FROM ((TABLE dml_heap EXCEPT ALL TABLE dml_mot) UNION ALL (TABLE dml_mot EXCEPT ALL TABLE dml_heap)) x;

-- COPY, with errors part of the way
COPY dml_mot (id, a, b) FROM stdin;
900001	1	c1
900002	2	c2
\.
COPY dml_heap (id, a, b) FROM stdin;
900001	1	c1
900002	2	c2
\.
COPY dml_mot (id, a, b) FROM stdin;
900003	1	c3
900003	2	c4
\.
COPY dml_mot (id, a, b, c) FROM stdin;
900004	1	c3	-1
\.
COPY dml_mot (id, a, b) FROM stdin WHERE a > 1;
900005	1	c5
900006	2	c6
\.
DELETE FROM dml_mot WHERE id = 900006 RETURNING id, a, b, c, d;
SELECT count(*) FROM ((TABLE dml_heap EXCEPT ALL TABLE dml_mot) UNION ALL (TABLE dml_mot EXCEPT ALL TABLE dml_heap)) x;

-- every index leads to every row, and to nothing else
SET enable_seqscan = off;
SELECT count(*) = (SELECT count(*) FROM dml_heap) AS pkey FROM (SELECT id FROM dml_mot ORDER BY id) s;
SELECT count(*) = (SELECT count(*) FROM dml_heap) AS b FROM (SELECT id FROM dml_mot ORDER BY b COLLATE "C") s;
SELECT count(*) = (SELECT count(*) FROM dml_heap) AS a_c FROM (SELECT id FROM dml_mot ORDER BY a, c) s;
RESET enable_seqscan;

-- system columns
UPDATE dml_mot SET c = 1 WHERE id = 900001 RETURNING tableoid::regclass, ctid IS NOT NULL AS has_ctid;
SELECT count(DISTINCT ctid) = count(*) AS distinct_ctids FROM dml_mot;
SELECT xmin FROM dml_mot WHERE id = 900001;

-- a view with a check
CREATE VIEW dml_view AS SELECT * FROM dml_mot WHERE a < 10 WITH CHECK OPTION;
INSERT INTO dml_view (id, a) VALUES (910001, 5);
INSERT INTO dml_view (id, a) VALUES (910002, 15);
UPDATE dml_view SET a = 20 WHERE id = 910001;
UPDATE dml_view SET a = 6 WHERE id = 910001 RETURNING id, a, d;
INSERT INTO dml_view (id, a) VALUES (910001, 50) ON CONFLICT (id) DO UPDATE SET a = 50;

TRUNCATE dml_mot;
SELECT count(*) FROM dml_mot;
DROP VIEW dml_view;
DROP FUNCTION dml(text), dml_loop(text);
DROP TABLE dml_heap, dml_other, statements;
DROP FOREIGN TABLE dml_mot;
