-- What plans on ordinary tables heap has, too: scans of the index only, merge joins that come back
-- to a place in an index, tables that were never analyzed; and the order of a small table's rows.
CREATE SCHEMA tp_heap;
CREATE SCHEMA tp_mot;
-- how both plan it, if alike, and what they answer
CREATE FUNCTION tp(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE plans text[]; plan text; line text; answers text[]; answer text; sorted text[]; schema text;
BEGIN
	FOREACH schema IN ARRAY ARRAY['heap', 'mot'] LOOP
		PERFORM set_config('search_path', 'tp_' || schema || ', public', true);
		plan := '';
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP
			plan := plan || line || E'\n';
		END LOOP;
		EXECUTE 'SELECT count(*) || '' rows '' || coalesce(md5(string_agg(r::text, '' '')), ''none'') FROM (' || q || ') r' INTO answer;
		plans := plans || plan;
		answers := answers || answer;
		EXECUTE 'SELECT md5(string_agg(r::text, '' '' ORDER BY r::text)) FROM (' || q || ') r' INTO answer;
		sorted := sorted || answer;
	END LOOP;
	IF plans[1] = plans[2] THEN
		RETURN QUERY SELECT unnest(string_to_array(rtrim(plans[1], E'\n'), E'\n'));
	ELSE
		RETURN QUERY SELECT 'heap: ' || plans[1] || 'mot: ' || plans[2];
	END IF;
	RETURN NEXT CASE WHEN answers[1] = answers[2] THEN 'same'
		WHEN plans[1] <> plans[2] AND sorted[1] = sorted[2] THEN 'same, in another order' ELSE 'DIFFER: heap ' || answers[1] || ', mot ' || answers[2] END;
END $$;
CREATE FUNCTION tp_both(q text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE schema text;
BEGIN
	FOREACH schema IN ARRAY ARRAY['heap', 'mot'] LOOP
		PERFORM set_config('search_path', 'tp_' || schema || ', public', true);
		EXECUTE replace(q, 'ENGINE', schema);
	END LOOP;
END $$;
SELECT tp_both('CREATE TABLE t (gone int, id int PRIMARY KEY, a int, n name, s text, d numeric, x text) USING ENGINE');
SELECT tp_both('INSERT INTO t SELECT 1, i, nullif(i % 50, 7), ''n'' || i % 100, repeat(''s'', i % 40), i / 7.0, repeat(''x'', i % 3 * 1000) FROM generate_series(1, 2000) i');
SELECT tp_both('ALTER TABLE t DROP gone');
SELECT tp_both('ALTER TABLE t ADD e int DEFAULT 5');
SELECT tp_both('CREATE INDEX t_a ON t (a, d) INCLUDE (x, e)');
SELECT tp_both('CREATE INDEX t_n ON t (n)');
SELECT tp_both('CREATE INDEX t_part ON t (d) INCLUDE (s) WHERE a = 3');
SELECT tp_both('CREATE INDEX t_lower ON t (id, upper(s))');
SELECT tp_both('UPDATE t SET e = 6, a = a + 1 WHERE id % 9 = 0');
VACUUM ANALYZE tp_heap.t;
ANALYZE tp_mot.t;

-- the index only
SELECT tp('SELECT id FROM t WHERE id BETWEEN 10 AND 20 ORDER BY id');
SELECT tp('SELECT id FROM t ORDER BY id DESC LIMIT 5');
SELECT tp('SELECT d, x, e FROM t WHERE a = 4 AND d > 100 ORDER BY d');
SELECT tp('SELECT a, d, e FROM t WHERE a IS NULL ORDER BY d');
SELECT tp('SELECT DISTINCT n FROM t WHERE n > ''n50'' AND n < ''n60'' ORDER BY n');
SELECT tp('SELECT d, s FROM t WHERE a = 3 ORDER BY d');
SELECT tp('SELECT count(*) FROM t WHERE id < 20');
SELECT tp('SELECT max(id), min(id) FROM t');
-- not all that is needed is in it
SELECT tp('SELECT id, a FROM t WHERE id = 4');
SELECT tp('SELECT upper(s) FROM t WHERE id = 3');
-- values that are as long as a row may be
SELECT tp_both('INSERT INTO t SELECT 5000 + i, 60, ''long'', '''', i, string_agg(md5(i * 1000 + j::text::int || ''''), '''') FROM generate_series(1, 3) i, generate_series(1, 60) j GROUP BY i');
SELECT tp('SELECT d, x FROM t WHERE a = 60 ORDER BY d');

-- the same statement again and again, and without the executor
SET search_path = tp_mot, public;
PREPARE few(int, int) AS SELECT id FROM t WHERE id BETWEEN $1 AND $2 ORDER BY id DESC;
PREPARE covered(int) AS SELECT sum(d), count(x), max(e) FROM t WHERE a = $1 AND d > 20 AND e <> 7;
EXECUTE few(3, 5);
EXECUTE few(3, 5);
EXECUTE few(3, 5);
EXECUTE few(3, 5);
EXECUTE few(3, 5);
EXECUTE few(3, 5);
EXECUTE few(3, 5);
EXECUTE few(3, 5);
EXPLAIN (COSTS OFF) EXECUTE few(3, 5);
EXECUTE covered(4);
EXECUTE covered(4);
EXECUTE covered(4);
EXECUTE covered(4);
EXECUTE covered(4);
EXECUTE covered(4);
EXECUTE covered(4);
EXECUTE covered(4);
SELECT sum(d), count(x), max(e) FROM tp_heap.t WHERE a = 4 AND d > 20 AND e <> 7;
-- what the transaction has changed; a cursor that turns round; and the row that it is at
BEGIN;
DELETE FROM t WHERE id = 11;
INSERT INTO t (id) VALUES (-1);
UPDATE t SET id = -2 WHERE id = 12;
SELECT id FROM t WHERE id BETWEEN -5 AND 13 ORDER BY id;
SET LOCAL enable_seqscan = off;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE id < 6;
FETCH 4 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH 1 FROM c;
UPDATE t SET e = 77 WHERE CURRENT OF c;
SELECT id FROM t WHERE e = 77;
ROLLBACK;
SET search_path = public;

-- merge joins, with many equal keys on both sides
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SET enable_material = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT tp_both('CREATE TABLE m (k int, v int) USING ENGINE');
SELECT tp_both('INSERT INTO m SELECT i / 10, i FROM generate_series(1, 200) i');
SELECT tp_both('CREATE INDEX m_k ON m (k, v)');
VACUUM ANALYZE tp_heap.m;
ANALYZE tp_mot.m;
SELECT tp('SELECT x.k, x.v, y.v AS w FROM m x JOIN m y ON x.k = y.k');
SELECT tp('SELECT x.k, x.v, y.a FROM m x JOIN t y ON x.k = y.a WHERE x.v <> y.a');
SELECT tp('SELECT count(*), sum(x.v), max(y.s) FROM m x LEFT JOIN t y ON x.k = y.a AND x.v < y.id');
SELECT tp('SELECT x.v, y.v AS w FROM m x LEFT JOIN m y ON x.k = y.k AND y.v % 3 = 0');
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_sort;
RESET enable_material;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- nobody knows yet what will be in them
SELECT tp_both('CREATE TABLE p (id int PRIMARY KEY, s text) USING ENGINE');
SELECT tp_both('CREATE TABLE q (id int, pid int) USING ENGINE');
SELECT tp('SELECT * FROM p JOIN q ON p.id = q.pid');
SELECT tp_both('INSERT INTO p VALUES (1, ''a'')');
SELECT tp('SELECT * FROM p JOIN q ON p.id = q.pid');

-- a small table's rows, of different lengths, in the order in which they came
SELECT tp_both('CREATE TABLE o (id int, s text) USING ENGINE');
SELECT tp_both('INSERT INTO o VALUES (1, ''one''), (2, ''a longer one''), (3, ''three''), (4, ''''), (5, ''some twenty letters..'')');
SELECT tp_both('INSERT INTO o SELECT i, repeat(''o'', i % 20) FROM generate_series(6, 100) i');
SELECT tp('SELECT * FROM o');

-- nulls of a unique key are not one row
SELECT tp_both('CREATE TABLE u (id int UNIQUE, b int) USING ENGINE');
SELECT tp_both('INSERT INTO u SELECT CASE WHEN i % 10 = 0 THEN i END, i FROM generate_series(1, 5000) i');
SELECT tp_both('ANALYZE u');
SELECT tp('SELECT * FROM u WHERE id IS NULL');
SELECT tp('SELECT * FROM u WHERE id = 10');

DROP SCHEMA tp_heap, tp_mot CASCADE;
DROP FUNCTION tp, tp_both;
