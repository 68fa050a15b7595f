-- A row is found where it was found last, if it can be told from the row that
-- it has the key: for keys of all fixed widths, wherever their columns lie in
-- the row, whatever happened to rows and table meanwhile.
SET plan_cache_mode = force_generic_plan;
CREATE TABLE hints_heap (v varchar(20), a int, b bigint, c smallint, d date, e numeric, f int,
	u uuid DEFAULT md5(random()::text)::uuid);
INSERT INTO hints_heap (v, a, b, c, d, e, f)
	SELECT CASE WHEN i % 5 > 0 THEN repeat('x', i % 7) END, i, -i * 10000000000, i % 300, date '2020-01-01' + i,
		CASE WHEN i % 3 > 0 THEN i / 3.0 END, i / 300 FROM generate_series(-1000, 1000) i;
-- what is compared: every row, by every unique key, twice (the second time by the hint)
CREATE FUNCTION hints_check(tables text[]) RETURNS TABLE (name text, key text, rows bigint, wrong bigint, strays bigint)
LANGUAGE plpgsql AS $$
DECLARE
	columns text;
BEGIN
	FOREACH name IN ARRAY tables LOOP
		FOR key, columns IN
			SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY k.n)
			FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid,
				unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, n) JOIN pg_attribute a ON a.attnum = k.attnum
			WHERE i.indrelid = name::regclass AND a.attrelid = i.indrelid AND i.indisunique
			GROUP BY c.relname ORDER BY c.relname COLLATE "C"
		LOOP
			-- LATERAL, not a join: one look-up for each row
			EXECUTE format($f$
				SELECT count(*), count(*) FILTER (WHERE n IS DISTINCT FROM 1 OR NOT same)
				FROM hints_heap h, generate_series(1, 2),
					LATERAL (SELECT count(*) AS n, bool_and((m.a, m.b, m.c, m.d, m.f) IS NOT DISTINCT FROM (h.a, h.b, h.c, h.d, h.f)) AS same
						FROM %1$I m WHERE ROW(%2$s) = ROW(%3$s)) l $f$, name,
				'm.' || replace(columns, ', ', ', m.'), 'h.' || replace(columns, ', ', ', h.')) INTO rows, wrong;
			EXECUTE format('SELECT count(*) FROM %1$I m WHERE NOT EXISTS (SELECT FROM hints_heap h WHERE ROW(%2$s) = ROW(%3$s))',
				name, 'm.' || replace(columns, ', ', ', m.'), 'h.' || replace(columns, ', ', ', h.')) INTO strays;
			RETURN NEXT;
		END LOOP;
	END LOOP;
END $$;
-- rows with and without nulls, keys before and behind them, of one and of several columns, up and down
CREATE FOREIGN TABLE hints_first (a int PRIMARY KEY, b bigint NOT NULL UNIQUE, c smallint NOT NULL, d date NOT NULL UNIQUE,
	f int NOT NULL, v varchar(20), e numeric, u uuid NOT NULL UNIQUE) SERVER mot_server;
CREATE UNIQUE INDEX hints_first_baf ON hints_first (b DESC, a, f DESC);
CREATE UNIQUE INDEX hints_first_fc ON hints_first (f, c, d);
CREATE FOREIGN TABLE hints_last (v varchar(20), e numeric, u uuid UNIQUE, f int, d date UNIQUE, c smallint, b bigint UNIQUE,
	a int PRIMARY KEY) SERVER mot_server;
CREATE UNIQUE INDEX hints_last_ab ON hints_last (a, b);
INSERT INTO hints_first (a, b, c, d, e, f, v, u) SELECT a, b, c, d, e, f, v, u FROM hints_heap;
INSERT INTO hints_last (a, b, c, d, e, f, v, u) SELECT a, b, c, d, e, f, v, u FROM hints_heap ORDER BY a DESC;
SELECT * FROM hints_check('{hints_first, hints_last}');
-- keys go from row to row: each to its neighbour's
UPDATE hints_heap SET a = a + 5000;
UPDATE hints_first SET a = a + 5000;
UPDATE hints_last SET a = a + 5000;
UPDATE hints_heap SET a = a - 4999;
UPDATE hints_first SET a = a - 4999;
UPDATE hints_last SET a = a - 4999;
SELECT * FROM hints_check('{hints_first, hints_last}');
-- rows are replaced
DELETE FROM hints_first WHERE a % 2 = 0;
DELETE FROM hints_last WHERE a % 2 = 0;
INSERT INTO hints_first (a, b, c, d, e, f, v, u) SELECT a, b, c, d, e, f, v, u FROM hints_heap WHERE a % 2 = 0 ORDER BY b;
INSERT INTO hints_last (a, b, c, d, e, f, v, u) SELECT a, b, c, d, e, f, v, u FROM hints_heap WHERE a % 2 = 0 ORDER BY a;
SELECT * FROM hints_check('{hints_first, hints_last}');
-- and taken back
BEGIN;
DELETE FROM hints_first WHERE a % 3 = 0;
INSERT INTO hints_first (a, b, c, d, e, f, v, u) SELECT a, b, c, d, 0, f, v, u FROM hints_heap WHERE a % 3 = 0 ORDER BY b;
UPDATE hints_last SET a = a + 5000, b = b + 5;
SELECT count(*), count(m.a) FROM hints_heap h LEFT JOIN hints_last m ON m.a = h.a;
SELECT * FROM hints_check('{hints_first}');
ROLLBACK;
SELECT * FROM hints_check('{hints_first, hints_last}');
-- columns come and go: rows of before have what they had
ALTER FOREIGN TABLE hints_first ADD COLUMN g int;
ALTER FOREIGN TABLE hints_first ADD COLUMN h int NOT NULL DEFAULT 7;
ALTER FOREIGN TABLE hints_last DROP COLUMN v;
ALTER FOREIGN TABLE hints_last DROP COLUMN e;
UPDATE hints_first SET g = a WHERE a % 4 = 0;
UPDATE hints_last SET c = c WHERE a % 4 = 0;
CREATE UNIQUE INDEX hints_first_ha ON hints_first (h, a) ;
ALTER TABLE hints_heap ADD COLUMN h int NOT NULL DEFAULT 7;
SELECT * FROM hints_check('{hints_first, hints_last}');
-- a column that is added becomes part of a key; rows that were stored before do not have it
CREATE FOREIGN TABLE hints_added (a int NOT NULL, b bigint NOT NULL, c smallint NOT NULL, d date NOT NULL, f int NOT NULL)
	SERVER mot_server;
INSERT INTO hints_added SELECT a, b, c, d, f FROM hints_heap;
ALTER FOREIGN TABLE hints_added ADD COLUMN h int NOT NULL DEFAULT 7;
CREATE UNIQUE INDEX hints_added_ha ON hints_added (h, a);
SELECT * FROM hints_check('{hints_added}');
BEGIN;
UPDATE hints_heap SET a = a + 5000 WHERE a % 4 = 1;
UPDATE hints_added SET a = a + 5000 WHERE a % 4 = 1;
SELECT * FROM hints_check('{hints_added}');
ROLLBACK;
SELECT * FROM hints_check('{hints_added}');
-- other contents, and none
TRUNCATE hints_last;
SELECT count(m.a) FROM hints_heap h LEFT JOIN hints_last m ON m.a = h.a;
INSERT INTO hints_last (a, b, c, d, f, u) SELECT a, b, c, d, f, u FROM hints_heap ORDER BY c;
SELECT * FROM hints_check('{hints_last}');
ALTER FOREIGN TABLE hints_last ALTER COLUMN a TYPE bigint;
SELECT * FROM hints_check('{hints_last}');
-- values that no key has, of other types, and null
PREPARE hints_int (int) AS SELECT a FROM hints_first WHERE a = $1;
PREPARE hints_big (bigint) AS SELECT a FROM hints_first WHERE a = $1;
PREPARE hints_two (bigint, int) AS SELECT a FROM hints_first WHERE b = $1 AND a = $2 AND f = -3;
EXECUTE hints_int (1);
EXECUTE hints_int (1);
EXECUTE hints_int (NULL);
EXECUTE hints_int (100000);
EXECUTE hints_big (1);
EXECUTE hints_big (4294967297);
EXECUTE hints_big (NULL);
EXECUTE hints_two (9000000000000, -899);
EXECUTE hints_two (9000000000000, NULL);
EXECUTE hints_two (NULL, -899);
DROP FOREIGN TABLE hints_first, hints_last, hints_added;
DROP TABLE hints_heap;
DROP FUNCTION hints_check(text[]);
