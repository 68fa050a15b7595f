--
-- Every way to read an index gives what a heap table gives, in the same order
--
CREATE TABLE twin_heap (
	id int NOT NULL, i int, b bigint, t text COLLATE "C", u text COLLATE "en-x-icu",
	n numeric, f float8, ts timestamptz, d date, o bool, y bytea);
CREATE INDEX ON twin_heap (id);
CREATE FOREIGN TABLE twin_mot (
	id int PRIMARY KEY, i int, b bigint, t text COLLATE "C", u text COLLATE "en-x-icu",
	n numeric, f float8, ts timestamptz, d date, o bool, y bytea) SERVER mot_server;
CREATE INDEX twin_i_t ON twin_mot (i, t);
CREATE INDEX twin_i_b ON twin_mot (i DESC, b);
CREATE INDEX twin_b_nf ON twin_mot (b NULLS FIRST, id);
CREATE INDEX twin_b_dn ON twin_mot (b DESC NULLS LAST, n DESC);
CREATE INDEX twin_t_u ON twin_mot (t, u, i);
CREATE INDEX twin_u_i ON twin_mot (u, i);
CREATE INDEX twin_n ON twin_mot (n);
CREATE INDEX twin_f ON twin_mot (f);
CREATE INDEX twin_ts ON twin_mot (ts, id);
CREATE INDEX twin_d ON twin_mot (d, i);
CREATE INDEX twin_o ON twin_mot (o, i, t);
CREATE INDEX twin_y ON twin_mot (y);
CREATE UNIQUE INDEX twin_bi ON twin_mot (b, i, id);

SELECT setseed(0.5);
INSERT INTO twin_heap
SELECT id,
	CASE WHEN random() > 0.1 THEN floor(random() * 20)::int - 10 END,
	CASE WHEN random() > 0.1 THEN floor(random() * 10)::bigint END,
	CASE WHEN random() > 0.1 THEN chr(96 + (random() * 5)::int) || repeat('x', (random() * 12)::int) || chr(96 + (random() * 5)::int) END,
	CASE WHEN random() > 0.1 THEN (ARRAY['a', 'A', 'b', 'B', 'Z', 'z', '-a', ''])[1 + floor(random() * 8)] END,
	CASE WHEN random() > 0.1 THEN (ARRAY[-1.5, 0, 0.00, 2.50, 2.5, 1e20, 'NaN', 3])[1 + floor(random() * 8)] END,
	CASE WHEN random() > 0.1 THEN (ARRAY['-0', '0', 'NaN', 'Infinity', '-Infinity', 1.5, -2.5, 100])[1 + floor(random() * 8)]::float8 END,
	CASE WHEN random() > 0.1 THEN timestamptz '2024-01-01 00:00+00' + floor(random() * 20) * interval '12 hours' END,
	CASE WHEN random() > 0.1 THEN date '2024-01-01' + floor(random() * 10)::int END,
	CASE WHEN random() > 0.1 THEN random() > 0.5 END,
	CASE WHEN random() > 0.1 THEN decode((ARRAY['', '00', '0000', '01', '0001', 'ff', 'ff00'])[1 + floor(random() * 7)], 'hex') END
FROM generate_series(1, 600) id;
INSERT INTO twin_mot SELECT * FROM twin_heap;
ANALYZE twin_heap;
ANALYZE twin_mot;

-- Run a query on both; say what differs.
CREATE FUNCTION twin_differs(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	heap text;
	mot text;
BEGIN
	EXECUTE format('SELECT string_agg(q::text, E''\n'') FROM (%s) q', replace(query, '{t}', 'twin_heap')) INTO heap;
	EXECUTE format('SELECT string_agg(q::text, E''\n'') FROM (%s) q', replace(query, '{t}', 'twin_mot')) INTO mot;
	IF heap IS DISTINCT FROM mot THEN
		RETURN 'on ' || query || E'\nheap: ' || coalesce(left(heap, 300), '(none)') || E'\nmot: ' || coalesce(left(mot, 300), '(none)');
	END IF;
	RETURN NULL;
END $$;

CREATE TABLE predicates (p text);
INSERT INTO predicates VALUES
	('true'), ('id = 17'), ('id = 0'), ('id < 10'), ('id <= 10'), ('id > 590'), ('id >= 590'), ('id BETWEEN 100 AND 110'),
	('id > 50 AND id < 50'), ('id >= 50 AND id <= 50'), ('id > 10 AND id > 20 AND id < 30 AND id <= 29'),
	('id IN (5, 3, 5, 900, NULL)'), ('id = ANY (ARRAY[]::int[])'), ('id = ANY (NULL::int[])'), ('id = NULL'),
	('id IN (1, 2) AND id IN (2, 3)'), ('id = 5 AND id IN (5, 6)'), ('id > ANY (ARRAY[595, 598])'), ('id < ALL (ARRAY[5, 7])'),
	('id = 5::bigint'), ('id = 3000000000'), ('id < 3000000000'), ('id > 3000000000'), ('id > -3000000000'), ('id = 5::smallint'),
	('id < 7.5'), ('id IS NULL'), ('id IS NOT NULL AND id < 4'),
	('i = 3'), ('i IS NULL'), ('i IS NOT NULL'), ('i = 3 AND t IS NULL'), ('i = 3 AND t = ''axxa'''), ('i = 3 AND t > ''b'''), ('i = 3 AND t LIKE ''b%'''),
	('i IS NULL AND t IS NULL'), ('i IS NULL AND t > ''c'''), ('i IN (1, 2, -4) AND t > ''b'' AND t <= ''d'''), ('i > 7'), ('i < -8'), ('i >= 9'), ('i <= -10'), ('i <> 3 AND id < 50'),
	('i IN (1, NULL) AND t IN (''axa'', ''b'', ''bxxa'')'), ('i > 5 AND t = ''b'''), ('i BETWEEN -3 AND 3 AND b = 4'), ('i = 2 AND b < 3'), ('i = 2 AND b IS NULL'), ('i = 2 AND b IS NOT NULL'),
	('b = 3'), ('b = 3 AND i = 2'), ('b = 3 AND i = 2 AND id < 300'), ('b IS NULL AND n > 1'), ('b = 4 AND n >= 2.5'), ('b = 4 AND n = 2.5'), ('b < 2.5::int'), ('b > 8'), ('b = 2::int'),
	('b IN (1, 7, 8) AND i IN (3, 4, 5)'), ('b IN (1, 7, 8) AND i IN (3, 4, 5) AND id IN (1,2,3,100,200,300,400,500)'), ('b = 1 AND i IS NULL'),
	('t = ''axxxa'''), ('t < ''b'''), ('t >= ''d'' AND u = ''a'''), ('t LIKE ''cx%'''), ('t LIKE ''c_x%'''), ('t ~ ''^bx'''), ('t IN (''b'', ''a'', ''cxc'')'), ('t = ''bxb'' AND u = ''A'' AND i > 0'), ('t = ''bxb'' AND u > ''A'' AND i > 0'),
	('t = repeat(''a'', 10000)'), ('t > repeat(''a'', 10000)'), ('t < ''b'' || repeat(''x'', 20000)'),
	('u = ''a'''), ('u = ''A'' AND i = 3'), ('u = ''a'' AND i > 3'), ('u > ''a'''), ('u < ''b'' AND i = 1'), ('u IN (''a'', ''Z'')'), ('u IN (''a'', ''Z'') AND i IN (1, 2)'), ('u IS NULL AND i = 4'), ('u = '''''),
	('n = 2.5'), ('n = 2.50000'), ('n = ''NaN'''), ('n > 3'), ('n >= 1e20'), ('n < 0'), ('n = 0'), ('n IN (0.0, 3, -1.50)'), ('n IS NULL'), ('n > 2.5 AND n < ''NaN'''),
	('f = 0'), ('f = ''-0'''), ('f = ''NaN'''), ('f > 100'), ('f < -2.5'), ('f >= ''-Infinity'' AND f < 0'), ('f = 1.5::float4'), ('f < ''NaN'''), ('f <= ''Infinity'''),
	('ts = ''2024-01-03 12:00+00'''), ('ts > ''2024-01-08 00:00+00'''), ('ts = date ''2024-01-03'''), ('ts < date ''2024-01-03'''), ('ts >= timestamp ''2024-01-03 12:00'''), ('ts IS NULL AND id < 200'),
	('d = ''2024-01-03'''), ('d = timestamp ''2024-01-03 00:00'''), ('d = timestamp ''2024-01-03 12:00'''), ('d < timestamp ''2024-01-03 12:00'''), ('d > timestamptz ''2024-01-03 12:00+00'''), ('d = timestamptz ''2024-01-03 00:00+00'''), ('d = ''2024-01-03'' AND i > 2'), ('d BETWEEN ''2024-01-02'' AND ''2024-01-03'' AND i = 2'),
	('o'), ('NOT o'), ('o IS TRUE AND i = 2'), ('o IS FALSE AND i > 5'), ('o IS NULL'), ('o IS NOT NULL AND i = 1'), ('o = true AND i IN (1, 3)'), ('o IS NOT TRUE AND i = 1'), ('o AND i = 2 AND t > ''b'''),
	('y = ''\x'''), ('y = ''\x0000'''), ('y > ''\x00'''), ('y < ''\x0001'''), ('y >= ''\xff'''),
	('(i, t) > (3, ''b'')'), ('(i, t) >= (3, ''b'')'), ('(i, t) < (3, ''b'')'), ('(i, t) <= (-5, ''c'')'), ('(3, ''b'') > (i, t)'), ('(i, t) > (3, NULL)'), ('(i, t) > (NULL, ''b'')'), ('(i, b) > (3, 4)'), ('(i, b) < (3, 4)'),
	('(b, id) >= (3, 200)'), ('(b, n) <= (3, 2.5)'), ('(b, n) > (8, 2.5)'), ('(b, i, id) > (4, 2, 100) AND (b, i, id) < (6, 1, 1)'), ('(b, i) > (4::int, 2::bigint)'), ('(ts, id) > (''2024-01-05 00:00+00'', 300)'), ('(d, i) > (timestamp ''2024-01-03 12:00'', 3)'),
	('(t, u) > (''b'', ''a'')'), ('(id, i) > (100, 2) AND id < 120'), ('i = 3 AND (t, u) > (''b'', ''a'')'), ('(i, id) = (3, 100)'), ('(i, t) IN ((1, ''b''), (2, ''bxb''))'),
	('i = 3 OR id = 7'), ('i = 3 OR i = 4'), ('id < 20 OR id > 590 OR id = 10'), ('(i = 3 AND t > ''b'') OR b IS NULL'), ('(i = 2 OR n = 2.5) AND (b = 4 OR f = 0)'),
	('id IN (1, 2) OR i IN (2, NULL) OR u = ''Z'''), ('i = 3 OR coalesce(b, 1) = 2'), ('(i = 3 AND o) OR (d = ''2024-01-03'' AND NOT o)'), ('(i, t) > (8, ''b'') OR id = 3'), ('i = NULL OR id = 9'), ('y = ''\x'' OR t LIKE ''cx%'''), ('id = (SELECT 5)'), ('id IN (SELECT x FROM generate_series(10, 15) x)'), ('i = (SELECT max(i) FROM twin_heap)'), ('id < random() * 0 + 5'),
	('coalesce(i, 0) = 3'), ('id + 1 = 8'), ('id = 8 - 1'), ('t IS DISTINCT FROM ''b'' AND id < 60');

CREATE TABLE orders (o text);
INSERT INTO orders VALUES
	('id'), ('id DESC'), ('i, t, id'), ('i DESC, t DESC, id'), ('i DESC NULLS LAST, b, id'), ('i DESC, b, id'), ('i, b DESC, id'),
	('b NULLS FIRST, id'), ('b DESC NULLS LAST, id DESC'), ('b DESC NULLS LAST, n DESC, id'), ('b, n NULLS FIRST, id'), ('b, i, id'),
	('t, u, i, id'), ('u, i, id'), ('t, id'), ('n, id'), ('n DESC, id'), ('f, id'), ('f DESC, id'), ('ts, id'), ('ts DESC, id DESC'),
	('d, i, id'), ('o, i, t, id'), ('o DESC, i DESC, t DESC, id'), ('y, id'), ('y DESC, id');

-- all together, by every access path the planner can be talked into
CREATE FUNCTION twin_all(l text) RETURNS TABLE (checked bigint, different bigint, example text) LANGUAGE sql AS $$
	SELECT count(*), count(d), min(d)
	FROM (SELECT twin_differs('SELECT id, i, b, t, u, n, f, ts, d, o, y FROM {t} WHERE ' || p || ' ORDER BY ' || o || ' ' || l) d
		  FROM predicates, orders) s
$$;
SET jit = off;
SET timezone = 'America/New_York';
SELECT * FROM twin_all('LIMIT 7');
SET enable_seqscan = off;
SELECT * FROM twin_all('');
SET enable_sort = off;
SET enable_incremental_sort = off;
SELECT * FROM twin_all('LIMIT 20');
RESET enable_sort;
RESET enable_incremental_sort;
RESET enable_seqscan;

-- as the inner side of joins, and with values that are not known when planning
SELECT count(*), count(d), left(min(d), 900) FROM (
	SELECT twin_differs('SELECT a.id AS ida, b.* FROM twin_heap a JOIN {t} b ON ' || j || ' WHERE a.id < 40 ORDER BY a.id, b.id') d
	FROM (VALUES ('b.id = a.i'), ('b.id = a.b'), ('b.i = a.i AND b.t = a.t'), ('b.i = a.i AND b.t > a.t'), ('b.i = a.b AND b.b < a.i'),
		('b.id > a.id AND b.id < a.id + 3'), ('b.u = a.u AND b.i = a.i'), ('b.n = a.n'), ('b.f = a.f'), ('b.f = a.i'), ('b.ts = a.ts'), ('b.d = a.ts'), ('b.ts = a.d'),
		('b.o = a.o AND b.i = a.i'), ('b.id = ANY (ARRAY[a.i, a.b, NULL])'), ('b.y = a.y AND b.id < 50'), ('(b.b, b.id) > (a.b, 590)'),
		('b.i IS NULL AND b.t = a.t'), ('b.id IN (a.id, a.id + 1)'), ('b.id = a.i OR b.id = a.b'), ('(b.i = a.i OR b.b = a.b) AND b.id < 100')) joins (j)) s;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT count(*), count(d), left(min(d), 900) FROM (
	SELECT twin_differs('SELECT a.id AS ida, b.* FROM twin_heap a LEFT JOIN {t} b ON ' || j || ' WHERE a.id < 40 ORDER BY a.id, b.id') d
	FROM (VALUES ('b.id = a.i'), ('b.id = a.b'), ('b.i = a.i AND b.t = a.t'), ('b.i = a.i AND b.t > a.t'), ('b.i = a.b AND b.b < a.i'),
		('b.id > a.id AND b.id < a.id + 3'), ('b.u = a.u AND b.i = a.i'), ('b.n = a.n'), ('b.f = a.f'), ('b.f = a.i'), ('b.ts = a.ts'), ('b.d = a.ts'), ('b.ts = a.d'),
		('b.o = a.o AND b.i = a.i'), ('b.id = ANY (ARRAY[a.i, a.b, NULL])'), ('b.y = a.y AND b.id < 50'), ('(b.b, b.id) > (a.b, 590)'),
		('b.i IS NULL AND b.t = a.t'), ('b.id IN (a.id, a.id + 1)'), ('b.id = a.i OR b.id = a.b'), ('(b.i = a.i OR b.b = a.b) AND b.id < 100')) joins (j)) s;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;

SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION twin_params(query text, params text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	heap text;
	mot text;
BEGIN
	EXECUTE 'PREPARE heap_p AS ' || replace(query, '{t}', 'twin_heap');
	EXECUTE 'PREPARE mot_p AS ' || replace(query, '{t}', 'twin_mot');
	EXECUTE 'CREATE TEMP TABLE heap_r AS EXECUTE heap_p' || params;
	EXECUTE 'CREATE TEMP TABLE mot_r AS EXECUTE mot_p' || params;
	SELECT string_agg(q::text, E'\n') FROM heap_r q INTO heap;
	SELECT string_agg(q::text, E'\n') FROM mot_r q INTO mot;
	DEALLOCATE heap_p;
	DEALLOCATE mot_p;
	DROP TABLE heap_r, mot_r;
	RETURN CASE WHEN heap IS DISTINCT FROM mot THEN query || params || E'\n' || coalesce(heap, '') || E'\n' || coalesce(mot, '') END;
END $$;
SELECT twin_params('SELECT id FROM {t} WHERE id = $1', '(5)');
SELECT twin_params('SELECT id FROM {t} WHERE id = $1', '(NULL::int)');
SELECT twin_params('SELECT id FROM {t} WHERE id = $1::bigint', '(5)');
SELECT twin_params('SELECT id FROM {t} WHERE id = ANY ($1::int[]) ORDER BY id DESC', '(''{5,9,1,NULL,9}'')');
SELECT twin_params('SELECT id, i, t FROM {t} WHERE i = $1::int AND t >= $2::text ORDER BY t, id LIMIT 10', '(3, ''b'')');
SELECT twin_params('SELECT id, i, t FROM {t} WHERE (b, id) > ($1::bigint, $2::int) ORDER BY b, id LIMIT 10', '(3, 100)');
SELECT twin_params('SELECT id FROM {t} WHERE t LIKE $1::text ORDER BY id', '(''bx%'')');
RESET plan_cache_mode;
RESET timezone;
RESET jit;

DROP FUNCTION twin_all(text), twin_differs(text), twin_params(text, text);
DROP TABLE twin_heap, predicates, orders;
DROP FOREIGN TABLE twin_mot;
