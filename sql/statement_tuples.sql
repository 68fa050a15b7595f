-- Rows as heap tuples, as functions get them (src/statement/result.c): size and
-- contents are those that the executor's have, column by column and as a whole,
-- for values of all kinds of lengths and alignments, with nulls here and there.

SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET jit = off;
CREATE TABLE tuples_heap (
	id int PRIMARY KEY, i2 int2, b bool, ch "char", i8 int8, n name, u uuid, f4 float4, tz timestamptz, iv interval, o oid,
	t text, c char(5), vc varchar(300), nu numeric, by bytea, j jsonb, a int8[], ta text[], net inet, p point, bits varbit, q tsquery, v int2vector
) USING heap;
INSERT INTO tuples_heap
SELECT i, i, i % 2 = 0, chr(64 + i % 60)::"char", i::int8 << 33, 'name ' || i, md5(i::text)::uuid, i / 3.0, '2026-11-21 20:00+00'::timestamptz + i * interval '1 hour',
	i * interval '1 day 1 second', i,
	repeat('t', len), left('abcde', i % 6), repeat('v', len % 300), 10::numeric ^ (len % 300) + 0.1 ^ i, convert_to(repeat('b', len), 'UTF8'),
	jsonb_build_object('k', repeat('j', len)), array_fill(i::int8, ARRAY[len % 20]), ARRAY[repeat('a', len), NULL, ''], '10.0.0.1', point(i, -i),
	repeat('10', len % 50)::varbit, ('word' || i)::tsquery, (SELECT string_agg(x::text, ' ') FROM generate_series(1, i % 5) x)::int2vector
FROM (SELECT i, (ARRAY[0, 1, 2, 3, 7, 8, 9, 123, 124, 125, 126, 127, 128, 129, 1000, 3000, 30000, 200000])[i % 18 + 1] AS len FROM generate_series(1, 54) i) s;
UPDATE tuples_heap SET t = NULL, i8 = NULL WHERE id % 11 = 5;
CREATE FOREIGN TABLE tuples_mot (LIKE tuples_heap) SERVER mot_server;
ALTER FOREIGN TABLE tuples_mot ADD PRIMARY KEY (id);
INSERT INTO tuples_mot SELECT * FROM tuples_heap ORDER BY id;
ANALYZE tuples_mot;

CREATE FUNCTION tuples_of(query text) RETURNS TABLE (size int, contents text) LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN EXECUTE query LOOP
		size := pg_column_size(r);
		contents := md5(record_send(r));
		RETURN NEXT;
	END LOOP;
END $$;

-- columns' lists; each begins with other lengths and alignments
CREATE TABLE tuples_queries (columns text, rows_where text);
INSERT INTO tuples_queries
SELECT columns, rows_where
FROM (VALUES
	('id'), ('id, i8, i2, b, ch'), ('b, i8, ch, f4, i2, o, b'), ('i2, t'), ('b, t, i8, b, i2'), ('t, t || ''x'', id'), ('ch, by, ch, by, tz'),
	('c, vc, c, i2'), ('nu, b, nu * 2, i8'), ('b, u, b, iv, b, p, b'), ('n, b, n'), ('b, a, b, ta, b, j'), ('net, bits, b, net'), ('b, q, b, v, i8'),
	('v, q, v'), ('b, lower(t), repeat(''y'', id), length(by)'), ('b, ROW(id, t), i2'), ('b, ARRAY[t, vc], f4'), ('b, NULLIF(i2, 7), i8'), ('i8, t, i8'),
	('b, t::varchar, substr(by, 1, 126), substr(by, 1, 127), substr(t, 2)'), ('*'), ('id, tuples'), ('b, j -> ''k'', j'), ('b, ''const'', NULL, 1'),
	('b, t::name, i8')) c (columns),
	(VALUES ('true'), ('id % 11 <> 5'), ('id % 11 = 5'), ('id > 16 AND id % 18 < 17'), ('id % 18 IN (1, 10, 11)')) w (rows_where);

CREATE TABLE tuples_seen AS
SELECT columns, rows_where, x.* FROM tuples_queries,
	tuples_of(format('SELECT %s FROM tuples_mot AS tuples WHERE %s ORDER BY id', columns, rows_where)) WITH ORDINALITY x;
SET mot.jit = off;
CREATE TABLE tuples_wanted AS
SELECT columns, rows_where, x.* FROM tuples_queries,
	tuples_of(format('SELECT %s FROM tuples_mot AS tuples WHERE %s ORDER BY id', columns, rows_where)) WITH ORDINALITY x;
(TABLE tuples_seen EXCEPT TABLE tuples_wanted) UNION ALL (TABLE tuples_wanted EXCEPT TABLE tuples_seen) ORDER BY 1, 2, 3;
-- there was something to compare
SELECT count(*), count(DISTINCT size) > 200 AS sizes FROM tuples_seen;

-- what the first of them was like stays, and none of its values
CREATE FUNCTION tuples_long() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r record;
	bytes int := 0;
BEGIN
	FOR r IN SELECT id, repeat(t, 30) AS long FROM tuples_mot WHERE id >= 17 LOOP
		bytes := greatest(bytes, length(r.long));
	END LOOP;
	RETURN bytes;
END $$;
SET mot.jit = on;
SELECT tuples_long();
SELECT tier > 0 AS run_here, (SELECT max(total_bytes) < 1000000 FROM pg_backend_memory_contexts WHERE name = 'MOT statement') AS small
	FROM mot_stat_jit WHERE query ~ 'AS long';

DROP FUNCTION tuples_of, tuples_long;
DROP TABLE tuples_queries, tuples_seen, tuples_wanted, tuples_heap;
DROP FOREIGN TABLE tuples_mot;
