-- Expressions by machine code and by the executor: the same answers and errors.
-- See test/module/jit.c.  Without a compiler there is nothing to see.
CREATE FUNCTION mot_jit_installed() RETURNS boolean AS '$libdir/mot' LANGUAGE C;
SELECT NOT mot_jit_installed() AS absent \gset
\if :absent
DROP FUNCTION mot_jit_installed();
\echo there is no compiler
\quit
\endif

CREATE FUNCTION mot_jit_compare(query text, VARIADIC params "any") RETURNS text AS '$libdir/mot' LANGUAGE C;

-- "select <outputs> from <table> [where ...]" for each of several outputs
CREATE FUNCTION jit_each(source text, VARIADIC expressions text[]) RETURNS TABLE (expression text, outcome text)
LANGUAGE sql AS $$
	SELECT e, mot_jit_compare('SELECT ' || e || ' FROM ' || source, 1) FROM unnest(expressions) WITH ORDINALITY AS u (e, n) ORDER BY n
$$;

-- as conditions
CREATE FUNCTION jit_where(source text, VARIADIC expressions text[]) RETURNS TABLE (expression text, outcome text)
LANGUAGE sql AS $$
	SELECT e, mot_jit_compare('SELECT FROM ' || source || ' WHERE ' || e, 1) FROM unnest(expressions) WITH ORDINALITY AS u (e, n) ORDER BY n
$$;

-- an expression for each operator of a list between two columns
CREATE FUNCTION jit_operators(source text, a text, b text, VARIADIC operators text[]) RETURNS TABLE (expression text, outcome text)
LANGUAGE sql AS $$
	SELECT format('%s %s %s', a, o, b), mot_jit_compare(format('SELECT %s %s %s FROM %s', a, o, b, source), 1)
	FROM unnest(operators) WITH ORDINALITY AS u (o, n) ORDER BY n
$$;

-- integers of all sizes, among them the edges
CREATE FOREIGN TABLE jit_int (a2 smallint, b2 smallint, a4 integer, b4 integer, a8 bigint, b8 bigint) SERVER mot_server;
INSERT INTO jit_int
SELECT a::smallint, b::smallint,
	CASE a WHEN 32767 THEN 2147483647 WHEN -32768 THEN -2147483648 ELSE a END, CASE b WHEN 32767 THEN 2147483647 WHEN -32768 THEN -2147483648 ELSE b END,
	CASE a WHEN 32767 THEN 9223372036854775807 WHEN -32768 THEN -9223372036854775808 ELSE a END, CASE b WHEN 32767 THEN 9223372036854775807 WHEN -32768 THEN -9223372036854775808 ELSE b END
FROM unnest('{-32768,-7,-1,0,1,2,7,32767,null}'::int[]) a, unnest('{-32768,-7,-1,0,1,2,7,32767,null}'::int[]) b;

SELECT * FROM jit_operators('jit_int', 'a2', 'b2', '+', '-', '*', '/', '%', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_int', 'a4', 'b4', '+', '-', '*', '/', '%', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_int', 'a8', 'b8', '+', '-', '*', '/', '%', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_int', 'a2', 'b4', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_int', 'a4', 'b2', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_int', 'a2', 'b8', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_int', 'a8', 'b2', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_int', 'a4', 'b8', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_int', 'a8', 'b4', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_each('jit_int', '- a2', '- a4', '- a8', '@ a4', 'abs(a8)', 'a2::int', 'a2::bigint', 'a4::smallint', 'a4::bigint', 'a8::smallint', 'a8::int',
	'a2::real', 'a4::real', 'a8::real', 'a2::float8', 'a4::float8', 'a8::float8', 'a4::text', 'a4::numeric', 'a4 & b4', 'a4 << 3', '~a8', 'a4 # b4',
	'mod(a2, b2)', 'mod(a4, b4)', 'mod(a8, b8)', 'div(a8::numeric, 3)', 'btint4cmp(a4, b4)', 'btint8cmp(a8, b8)', 'btint2cmp(a2, b2)', 'a4::oid < b4::oid', 'btoidcmp(a4::oid, b4::oid)',
	'a4::bool', '(a4 > 0)::int', 'chr(65 + abs(a2 % 20))', 'factorial(a4 % 5)', 'a4 between b4 and 5', 'a4 + b4 * 2 - a2 / 3');

-- null logic
SELECT * FROM jit_each('jit_int', 'a4 is null', 'a4 is not null', 'a4 > 0 is null', 'not (a4 > b4)', 'a4 > 0 and b4 > 0', 'a4 > 0 or b4 > 0',
	'a4 > 0 and b4 > 0 and a2 > b2', 'a4 > 0 or b4 > 0 or a2 > b2', 'a4 > 0 and (b4 > 0 or a2 > 1) and not (a8 = b8)',
	'(a4 > 0) is true', '(a4 > 0) is not true', '(a4 > 0) is false', '(a4 > 0) is not false', '(a4 > 0) is unknown', '(a4 > 0) is not unknown',
	'a4 is distinct from b4', 'a4 is not distinct from b4', 'nullif(a4, b4)', 'nullif(a4, 7)', 'coalesce(a4, b4)', 'coalesce(a4, b4, 5)', 'coalesce(null, a4)',
	'a4 = b4 and b4 <> 0 and a4 / b4 = 1', 'b4 = 0 or a4 / b4 > 1', 'a4 / b4 > 1 or b4 = 0', 'null::int = a4', 'a4 = 1 or null', 'a4 = 1 and null',
	'greatest(a4, b4)', 'least(a4, b4)', 'greatest(a4, null, b4, 5)', 'least(a8, b8, 3)', 'greatest(a2, b2)', 'least(a4::text, b4::text)', 'num_nulls(a4, b4)', 'concat(a4, b4)');
SELECT * FROM jit_where('jit_int', 'a4 > 0', 'a4 > 0 and b4 > 0', 'a4 is null and b4 is not null', 'a4 = $1', 'a4 = $1 and b4 = $1', 'not (a4 = $1)', 'b4 <> 0 and a4 / b4 = 1', 'a4 / b4 = 1 and b4 <> 0',
	'case when b4 <> 0 then a4 % b4 = 1 end', 'a4 in (1, 2, 7)', 'a4 not in (1, 2, 7)', 'a4 in (1, 2, null)', 'a4 not in (1, 2, null)', 'a4 = any (''{1,2,3}''::int[])', 'a4 > all (''{-1,0}'')', 'a4 < any (''{}''::int[])', 'a4 < all (''{}''::int[])',
	'a4 = any (null::int[])', 'a4::text in (''1'', ''7'')', 'a8 in (1, 2, 3)');

-- choice
SELECT * FROM jit_each('jit_int', 'case when a4 > b4 then 1 when a4 = b4 then 0 else -1 end', 'case a4 when 1 then ''one'' when 2 then ''two'' end', 'case a4 when b4 then a4 when 1 then b4 else 9 end',
	'case when b4 = 0 then 0 else a4 / b4 end', 'case when a4 is null then 0 when b4 = 0 then null else a4 / b4 end',
	'case a4 + 1 when 1 then case b4 when 1 then ''x'' else ''y'' end when 2 then ''z'' end', 'case upper(a4::text) when ''7'' then 1 when ''1'' then 2 end',
	'coalesce(case when a4 > 0 then b4 end, a2, -1)');

-- floating-point numbers
CREATE FOREIGN TABLE jit_float (a4 real, b4 real, a8 float8, b8 float8) SERVER mot_server;
INSERT INTO jit_float
SELECT CASE WHEN abs(a) < 1e-40 AND a <> 0 THEN 1e-38 WHEN abs(a) > 1e40 AND abs(a) < 'inf' THEN 3e38 ELSE a END, CASE WHEN abs(b) < 1e-40 AND b <> 0 THEN 1e-38 WHEN abs(b) > 1e40 AND abs(b) < 'inf' THEN 3e38 ELSE b END, a, b
FROM unnest('{-inf,-1.5,-0,0,1e-300,0.1,2,1e300,inf,nan,null}'::float8[]) a, unnest('{-inf,-1.5,-0,0,1e-300,0.1,2,1e300,inf,nan,null}'::float8[]) b;
SELECT * FROM jit_operators('jit_float', 'a4', 'b4', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_float', 'a8', 'b8', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=', '^');
SELECT * FROM jit_operators('jit_float', 'a4', 'b8', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_operators('jit_float', 'a8', 'b4', '+', '-', '*', '/', '=', '<>', '<', '<=', '>', '>=');
SELECT * FROM jit_each('jit_float', '- a4', '- a8', 'a4::float8', 'a8::real', 'a8::int', 'a8::bigint', 'a4::smallint', 'abs(a8)', 'btfloat8cmp(a8, b8)', 'btfloat4cmp(a4, b4)', 'greatest(a8, b8)', 'least(a4, b4)',
	'a8 is distinct from b8', 'nullif(a8, b8)', 'round(a8)', 'sqrt(a8)', 'a8::text', 'a8 in (0, 2, ''nan'')');

-- sums, differences and products of numeric: the same bytes, whether they have few digits or many
CREATE FOREIGN TABLE jit_number (a numeric, b numeric) SERVER mot_server;
INSERT INTO jit_number SELECT a * s, b FROM unnest('{0,0.000,1,-1,9999,10000,1e8,99999999.9999,0.0001,0.00010,-12.3400,5e-20,1e-40,1e-63,1e-64,9223372036854775807,9223372036854775808,
	999999999999999999999999,1000000000000000000000000.5,123456789012345678901234567890.12345,1e300,NaN,Infinity,-Infinity,null}'::numeric[]) a,
	unnest('{0,0.0,1,-1,2.50,-9999.9999,10000.0000,1e16,0.00000001,-5e-9,1e-62,18446744073709551615,-999999999999999999999999.99999999,1e130,NaN,Infinity,null}'::numeric[]) b,
	unnest('{1,-1,7919}'::int[]) s;
SELECT * FROM jit_operators('jit_number', 'a', 'b', '+', '-', '*');
SELECT * FROM jit_each('jit_number', 'a * a + b * b', '(a - b) * (a + b)', 'a - a', 'a * 3::int', 'length(b::text)::numeric * a', '(length(a::text) - 30)::numeric', 'length(a::text) * 100000 - b');
-- everything else
CREATE DOMAIN jit_domain AS integer;
CREATE FOREIGN TABLE jit_rest (id integer NOT NULL, t text, v varchar(30), c char(10), n numeric, f numeric(12, 2), b boolean, o oid, ch "char", na name, by bytea, u uuid,
	d date, ti time, ts timestamp, tz timestamptz, iv interval, m money, j jsonb, ar integer[], dom jit_domain, b2 boolean) SERVER mot_server;
INSERT INTO jit_rest VALUES
	(1, 'abc', 'abc', 'abc', 1.5, 1.50, true, 1, 'a', 'n', '\x01', '00000000-0000-0000-0000-000000000001', '2020-01-01', '10:00', '2020-01-01 10:00', '2020-01-01 10:00+00', '1 day', 1.5, '{"a": 1}', '{1,2}', 1, false),
	(2, '', '', '', 0, 0, false, 4294967295, '', '', '', '00000000-0000-0000-0000-000000000000', 'infinity', '00:00', '-infinity', 'infinity', '0', 0, '[]', '{}', 2, true),
	(3, repeat('long ', 200), repeat('x', 30), 'abc  d', 'NaN', -99.99, null, 3, 'é', repeat('n', 63), decode(repeat('ab', 500), 'hex'), 'ffffffff-ffff-ffff-ffff-ffffffffffff', '-infinity', '24:00', 'infinity', '-infinity', '-1 mon', -1, 'null', '{null}', 3, null);
INSERT INTO jit_rest (id) VALUES (4);
INSERT INTO jit_rest (id, t, n, ts) VALUES (5, 'Abc', 10000000000000000000.5, '2020-01-01 10:00'), (6, 'abc', -1.5, '2020-06-01');
INSERT INTO jit_rest (id, t) VALUES (7, repeat('compresses well ', 1000));
SELECT * FROM jit_each('jit_rest', 'id, t, v, c, n, f, b, o, ch, na, by, u, d, ti, ts, tz, iv, m, j, ar, dom, b2', 'b2', 'b', 'j', 'ar', 'dom', 'c, b2', 'na', 'd, m', 'ti, iv',
	't = ''abc''', 't <> ''abc''', 't < ''abc''', 't = v', 't = v::text', 'v = c', 'c = ''abc''', 'c <> ''abc''', 'c = ''abc  ''', 't || v', 'length(t)', 'upper(t)', 'substr(t, 2, 3)', 't like ''a%''', 't ~ ''^a''', 't in (''abc'', ''x'')', 'coalesce(t, v, ''none'')',
	't = repeat(''long '', 200)', 't = repeat(''compresses well '', 1000)', 't = t', 't <> t', 't = ''abc'' collate "C"', 'greatest(t, v, c)', 'nullif(t, v)', 'md5(t)', 'replace(t, ''a'', ''b'')');
SELECT * FROM jit_each('jit_rest', 'n + 1', 'n * f', 'n / f', 'n = f', 'n > 1', 'round(n, 1)', 'n::int', 'n::text', '-n', 'greatest(n, f)', 'f::float8', 'n is distinct from f',
	'not b', 'b and b2', 'b or b2', 'b = b2', 'b < b2', 'b is not true', 'b::int', 'o = 3', 'o > 3', 'o < 4294967295', 'ch = ''a''', 'ch < ''b''', 'ch > ''b''', 'na = ''n''');
SELECT * FROM jit_each('jit_rest', 'd = ''2020-01-01''', 'd < ''2020-01-02''', 'd >= ''infinity''', 'd + 1', 'd - date ''2019-01-01''', 'd::timestamp', 'date_cmp(d, ''2020-01-01'')', 'ti < ''12:00''', 'ts > ''2020-01-01''', 'ts + interval ''1 day''', 'ts - timestamp ''2020-01-01''', 'date_trunc(''hour'', ts)', 'extract(year from ts)',
	'tz >= ''2020-01-01 00:00+00''', 'timestamptz_cmp(tz, ''2020-01-01 00:00+00'')', 'iv > ''1 hour''', 'm > 1::money', 'm * 2', 'j -> ''a''', 'j ->> ''a''', 'j @> ''{"a": 1}''', 'ar[1]', 'array_length(ar, 1)', 'ar || 5', 'dom + 1', 'dom', 'u > ''00000000-0000-0000-0000-000000000000''', 'by || by', 'length(by)',
	'hashtext(t)', 'row(id, t) is null', '(1 / (id - 3))::text || t', 'pg_typeof(n)', 'array[id, 2]', 'id::jit_domain', 'id::text::varchar(1)', 'to_char(ts, ''YYYY'')', 'format(''%s-%s'', id, t)');

-- parameters of all kinds, and null ones
SELECT mot_jit_compare('SELECT $1 + id, $2 || t, $3 * n, $4 AND b, $5, $1 FROM jit_rest WHERE id < $1 OR t = $2', 3, 'abc'::text, 2.5, true, 1.5::float8);
SELECT mot_jit_compare('SELECT $1 + id, $2 || t, $3 * n, $4 AND b, $5, $1 FROM jit_rest WHERE id < $1 OR t = $2 OR $4 IS NULL', null::int, null::text, null::numeric, null::boolean, null::float8);
SELECT mot_jit_compare('SELECT CASE $1 WHEN id THEN $2 ELSE t END FROM jit_rest WHERE ($1 = id) IS NOT FALSE', 1, 'abc'::text);

-- rows that are older than a column, or have a dropped one
ALTER FOREIGN TABLE jit_int ADD COLUMN z integer, ADD COLUMN y text DEFAULT 'missing', ADD COLUMN x bigint NOT NULL DEFAULT 77;
INSERT INTO jit_int VALUES (1, 1, 1, 1, 1, 1, 5, 'there', 8), (null, null, null, null, null, null, null, null, 8);
SELECT * FROM jit_each('jit_int', 'z', 'y', 'x', 'a8, x', 'z, y, x, a2', 'coalesce(z, a4)', 'y || a4', 'x + a8');
SELECT * FROM jit_where('jit_int', 'x = 77', 'y = ''missing''', 'z is null and x = 8', 'a4 = 1 and x = 8');
ALTER FOREIGN TABLE jit_int DROP COLUMN b2, DROP COLUMN y;
INSERT INTO jit_int VALUES (1, 1, 1, 1, 1, 5, 8), (2, null, 2, null, 2, null, 9);
SELECT * FROM jit_each('jit_int', 'z', 'x', 'a2, a4, b4, a8, b8, z, x', 'b8');

-- many columns: null bitmaps of several words
SELECT 'CREATE FOREIGN TABLE jit_wide (' || string_agg(format('c%s %s', i, (ARRAY['int', 'text', 'smallint', 'bool', 'float8'])[1 + i % 5]), ', ') || ') SERVER mot_server' FROM generate_series(1, 150) i \gexec
INSERT INTO jit_wide (c1, c2, c63, c64, c65, c128, c129, c150) VALUES (1, 1, true, 2, 3, true, 4, 5);
INSERT INTO jit_wide (c1) VALUES (1);
INSERT INTO jit_wide (c150) VALUES (1);
SELECT 'INSERT INTO jit_wide VALUES (' || string_agg((ARRAY['12', '''text''', '3', 'true', '2.5'])[1 + i % 5], ', ') || ')' FROM generate_series(1, 150) i \gexec
SELECT * FROM jit_each('jit_wide', 'c1', 'c64', 'c65', 'c66', 'c128', 'c129', 'c130, c1', 'c150, c149, c148', 'c63 and c128');

-- arrays, rows, domains
CREATE DOMAIN jit_positive AS integer CHECK (VALUE > 2);
SELECT * FROM jit_each('jit_rest', 'array[id, 2]', 'array[[id], [o::int]]', 'ar[1] + id', 'ar[id]', 'ar[1:2]', 'ar::text[]', 'id = any (ar)', 'id <> all (ar)', 'id < any (array[1, id, null])', 'id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, null)',
	'row(id, t)::text', '(id, t) < (3, ''b'')', '(id, t) = (1, v)', 'row(id, t) is not null', 'row(null, t) is null', 'id::jit_positive', 'coalesce(dom::jit_positive, 9)', 'case id when 1 then array[1] else array[2, id] end', 'current_user', 'current_date > d', 'greatest(array[id], ar)', 'string_to_array(t, '' '')',
	'j #>> array[''a'']', 'jsonb_build_object(''id'', id, ''t'', t)', '$1 = any (ar)', 'array_append(ar, $1)');
SELECT * FROM jit_each('jit_rest', 'j[''a'']', 'j[t]', 'j[''a''][0]', 'ar[$1]', 'ar[1][1]', 'ar[id / (id - 3)]');
SELECT * FROM jit_where('jit_rest', 'j[''a''] is null', 'id = any (ar)', 'id::jit_positive > 3', '(id, t) > (2, '''')', 'array[id] <@ ar');

-- functions in other languages, with and without state
CREATE FUNCTION jit_plpgsql(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN IF $1 = 3 THEN RAISE ''three''; END IF; RETURN $1 * 2; END';
CREATE FUNCTION jit_sql(integer, text) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS 'SELECT $2 || count(*) FROM pg_class WHERE oid < $1';
CREATE FUNCTION jit_poly(anyelement) RETURNS anyarray LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN ARRAY[$1, $1]; END';
SELECT * FROM jit_each('jit_rest', 'jit_plpgsql(id)', 'jit_plpgsql(null)', 'jit_plpgsql(case when id <> 3 then id end)', 'jit_sql(id, v)', 'array[jit_sql(id, v)]', 'jit_poly(id)', 'jit_poly(t)', 'jit_poly((jit_poly(id))[1])');

-- what is not compiled says so
SELECT * FROM jit_each('jit_rest', 'jit_rest', 'ctid');

DROP FOREIGN TABLE jit_int, jit_float, jit_number, jit_rest, jit_wide;
DROP DOMAIN jit_domain;
DROP FUNCTION jit_sql(integer, text), jit_plpgsql(integer), jit_poly(anyelement);
DROP DOMAIN jit_positive;
DROP FUNCTION jit_each(text, text[]), jit_where(text, text[]), jit_operators(text, text, text, text[]);
DROP FUNCTION mot_jit_compare(text, "any"), mot_jit_installed();
