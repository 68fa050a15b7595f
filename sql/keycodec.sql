-- Key encodings: the order and equality of keys against those of btree, on
-- indexes of ordinary tables, for edge values and thousands of random ones.
CREATE SCHEMA keycodec_test;
SET search_path = keycodec_test, public;
CREATE FUNCTION mot_key_bytes(index regclass, "row" record) RETURNS bytea
    AS '$libdir/mot' LANGUAGE C STRICT;
SELECT setseed(0.5) \gset

-- n random strings of up to max letters
CREATE FUNCTION strings(letters text[], max int, n int) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT (SELECT coalesce(string_agg(letters[1 + floor(random() * cardinality(letters))::int], ''), '')
            FROM generate_series(1, len))
    FROM (SELECT floor(random() * (max + 1) + i * 0)::int AS len FROM generate_series(1, n) i OFFSET 0) s
$$;
-- n random numbers of all magnitudes up to 2^bits
CREATE FUNCTION numbers(bits int, n int) RETURNS SETOF numeric LANGUAGE sql AS $$
    SELECT trunc((random() * 2 - 1)::numeric * 2::numeric ^ (random() * bits)::int)
    FROM generate_series(1, n)
$$;

-- what to try: a type, and a query for its values
CREATE TABLE tried (id serial, type text, query text);
INSERT INTO tried (type, query) VALUES
('bool', $$VALUES (true), (false)$$),
('"char"', $$SELECT chr(i)::"char" FROM generate_series(1, 127) i UNION ALL VALUES ('\200'::"char"), ('\377'), ('')$$),
('int2', $$SELECT numbers(15, 500)::int2 UNION ALL VALUES (0), (1), (-1), (-32768), (32767), (255), (256), (-256)$$),
('int4', $$SELECT numbers(31, 1000)::int4 UNION ALL VALUES (0), (1), (-1), (-2147483648), (2147483647), (256), (-256)$$),
('int8', $$SELECT numbers(62, 1000)::int8 UNION ALL VALUES (0), (1), (-1), (-9223372036854775808), (9223372036854775807)$$),
('oid', $$SELECT abs(numbers(31, 300))::int8::oid UNION ALL VALUES ('0'::oid), ('4294967295'), ('2147483648'), ('2147483647')$$),
('regclass', $$SELECT i::oid::regclass FROM generate_series(0, 3000, 7) i UNION ALL SELECT 4294967295::oid::regclass$$),
('xid8', $$VALUES ('0'::xid8), ('1'), ('4294967296'), ('9223372036854775807'), ('9223372036854775808'), ('18446744073709551615')$$),
('pg_lsn', $$VALUES ('0/0'::pg_lsn), ('0/1'), ('1/0'), ('7FFFFFFF/FFFFFFFF'), ('80000000/0'), ('FFFFFFFF/FFFFFFFF')$$),
('tid', $$SELECT format('(%s,%s)', a, b)::tid FROM (VALUES (0), (1), (255), (256), (2147483648), (4294967295)) x(a), (VALUES (0), (1), (255), (256), (65535)) y(b)$$),
('money', $$SELECT numbers(62, 300)::int8 * '0.01'::money UNION ALL VALUES ('0'::money), ('-92233720368547758.08'), ('92233720368547758.07')$$),
('float4', $$SELECT (numbers(62, 500) * 1e-9)::float4 UNION ALL VALUES ('NaN'::float4), ('-NaN'), ('Infinity'), ('-Infinity'), ('0'), ('-0'),
    ('1e-45'), ('-1e-45'), ('3.4028235e38'), ('-3.4028235e38'), ('1.17549435e-38'), ('1'), ('-1')$$),
('float8', $$SELECT (numbers(62, 500) * 1e-9)::float8 UNION ALL VALUES ('NaN'::float8), ('-NaN'), ('Infinity'), ('-Infinity'), ('0'), ('-0'),
    ('5e-324'), ('-5e-324'), ('1.7976931348623157e308'), ('-1.7976931348623157e308'), ('2.2250738585072014e-308'), ('1'), ('-1')$$),
('numeric', $$SELECT numbers(62, 1000) * 10::numeric ^ i FROM (VALUES (-30), (-9), (-4), (-3), (-2), (-1), (0), (1), (40)) p(i)
    UNION ALL SELECT s * (10000::numeric ^ i + d) FROM (VALUES (1), (-1)) a(s), generate_series(-20, 20) i, (VALUES (0), (1), (-0.0001), (0.0001), (9999)) b(d)
    UNION ALL SELECT s * ('1e' || e)::numeric FROM (VALUES (1), (-1)) a(s),
        (VALUES (131071), (131068), (131067), (404), (403), (400), (399), (-16383), (-16380), (-64), (-65), (-68), (-60), (-61), (-255), (-256)) b(e)
    UNION ALL VALUES ('NaN'::numeric), ('Infinity'), ('-Infinity'), ('0'), ('-0.00'), ('1'), ('1.0'), ('1.000000'), ('-1'), ('-1.0'),
        ('0.5'), ('0.50'), ('0.5001'), ('0.50010000'), ('0.50010001'), ('-0.5'), ('-0.5001'), ('10000'), ('10000.0'), ('9999.9999'), ('1.00000000000000000001')$$),
('numeric(12,2)', $$SELECT numbers(30, 500) / 100$$),
('date', $$SELECT '2000-01-01'::date + numbers(20, 500)::int UNION ALL VALUES ('infinity'::date), ('-infinity'), ('4714-11-24 BC'), ('5874897-12-31'), ('1999-12-31'), ('2000-01-01')$$),
('time', $$SELECT '00:00'::time + random() * interval '1 day' FROM generate_series(1, 300) UNION ALL VALUES ('00:00'::time), ('24:00'), ('23:59:59.999999')$$),
('timetz', $$SELECT (t || z)::timetz FROM (VALUES ('00:00'), ('01:00'), ('12:00'), ('12:00:00.000001'), ('23:00'), ('24:00')) a(t),
    (VALUES ('+00'), ('+01'), ('-01'), ('+11'), ('-11'), ('+15:59:59'), ('-15:59:59'), ('+05:30')) b(z)$$),
('timestamp', $$SELECT '2000-01-01'::timestamp + numbers(57, 500) * interval '1 microsecond' UNION ALL VALUES ('infinity'::timestamp), ('-infinity'),
    ('4714-11-24 00:00:00 BC'), ('294276-12-31 23:59:59.999999'), ('2000-01-01'), ('1999-12-31 23:59:59.999999')$$),
('timestamptz', $$SELECT '2000-01-01'::timestamptz + numbers(57, 500) * interval '1 microsecond' UNION ALL VALUES ('infinity'::timestamptz), ('-infinity'), ('2000-01-01 00:00:00+00')$$),
('interval', $$SELECT make_interval(months => m, days => d, secs => s) FROM (VALUES (0), (1), (-1), (12), (2147483647), (-2147483647)) a(m),
        (VALUES (0), (1), (-1), (30), (-30), (31), (2147483647), (-2147483647)) b(d), (VALUES (0), (0.000001), (-0.000001), (86400), (-86400), (86399.999999), (2592000), (9e11), (-9e11)) c(s)
    UNION ALL SELECT numbers(62, 300) * interval '1 microsecond'$$),
('uuid', $$SELECT md5(i::text)::uuid FROM generate_series(1, 300) i UNION ALL VALUES ('00000000-0000-0000-0000-000000000000'::uuid), ('ffffffff-ffff-ffff-ffff-ffffffffffff'), ('7fffffff-0000-0000-0000-000000000000'), ('80000000-0000-0000-0000-000000000000')$$),
('macaddr', $$SELECT left(md5(i::text), 12)::macaddr FROM generate_series(1, 300) i UNION ALL VALUES ('00:00:00:00:00:00'::macaddr), ('ff:ff:ff:ff:ff:ff'), ('00:00:01:00:00:00'), ('00:00:00:ff:ff:ff')$$),
('macaddr8', $$SELECT left(md5(i::text), 16)::macaddr8 FROM generate_series(1, 300) i UNION ALL VALUES ('00:00:00:00:00:00:00:00'::macaddr8), ('ff:ff:ff:ff:ff:ff:ff:ff'), ('00:00:00:01:00:00:00:00'), ('00:00:00:00:ff:ff:ff:ff')$$),
('inet', $$SELECT set_masklen(a::inet, m) FROM (VALUES ('0.0.0.0'), ('0.0.0.1'), ('10.0.0.0'), ('10.0.0.1'), ('10.0.128.0'), ('10.1.0.0'), ('10.1.2.3'), ('127.0.0.1'), ('128.0.0.0'), ('192.168.1.5'), ('255.255.255.255')) a(a), generate_series(0, 32) m
    UNION ALL SELECT set_masklen(a::inet, m) FROM (VALUES ('::'), ('::1'), ('1::'), ('fe80::1'), ('fe80::8000:0:0:1'), ('ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff')) a(a), generate_series(0, 128, 3) m$$),
('cidr', $$SELECT network(set_masklen(a::inet, m))::cidr FROM (VALUES ('10.1.2.3'), ('10.128.0.7'), ('192.168.1.5'), ('255.255.255.255'), ('0.0.0.0')) a(a), generate_series(0, 32) m
    UNION ALL VALUES ('::/0'::cidr), ('fe80::/10'), ('::1/128')$$),
('bytea', $$SELECT decode(strings('{00,01,ff,fe,61}', 8, 1500), 'hex') UNION ALL SELECT decode(strings('{00,ff}', 4, 200), 'hex')
    UNION ALL VALUES (''::bytea), ('\x00'), ('\x0000'), ('\x00ff'), ('\xff'), ('\xffff'), ('\x0001')$$),
('varbit', $$SELECT strings('{0,1}', 20, 1500)::varbit UNION ALL SELECT strings('{0}', 40, 60)::varbit UNION ALL VALUES (B''), (B'0'), (B'1'), (B'10000000'), (B'100000000')$$),
('bit(9)', $$SELECT i::bit(9) FROM generate_series(0, 511) i$$),
('text COLLATE "C"', $$SELECT strings(ARRAY[chr(1), 'a', 'b', ' ', 'é', chr(127)], 10, 2000) UNION ALL VALUES (''), (' '), ('a'), ('a '), ('A'), (repeat('x', 2500)), (repeat('x', 2501))$$),
('text COLLATE "POSIX"', $$SELECT strings('{a,B,c}', 5, 300)$$),
('text COLLATE "C.utf8"', $$SELECT chr(i) FROM generate_series(1, 55295, 7) i UNION ALL SELECT chr(i) FROM generate_series(57344, 1114111, 131) i
    UNION ALL SELECT strings(ARRAY['a', 'B', 'é', 'ß', chr(8232), chr(65533), chr(127820)], 6, 500)$$),
('varchar(5) COLLATE "C"', $$SELECT strings('{a,b,Z}', 5, 500)$$),
('bpchar COLLATE "C"', $$SELECT strings(ARRAY['a', ' ', chr(9), 'z'], 6, 1500)::bpchar UNION ALL VALUES (''::bpchar), (' '), ('   '), ('a'), ('a  '), ('a' || chr(9))$$),
('char(4) COLLATE "C"', $$SELECT left(strings('{a,z," "}', 4, 200), 4)$$),
('name', $$SELECT strings('{a,B,_}', 6, 500)::name UNION ALL VALUES (''::name), (repeat('n', 63)::name), (repeat('n', 62)::name)$$);

-- indexes over v, a second column, and every direction and place of nulls
CREATE TABLE variants (id serial, columns text);
INSERT INTO variants (columns) VALUES
    ('v'), ('v DESC'), ('v NULLS FIRST'), ('v DESC NULLS LAST'),
    ('v, w'), ('v DESC, w'), ('v, w DESC NULLS LAST'), ('w DESC, v NULLS FIRST'), ('w, x, v DESC NULLS LAST'),
    ('n'), ('n DESC'), ('n DESC, v'), ('x DESC, n, w'), ('v DESC, x');

-- Ranks by the index's ORDER BY and by key must be the same, and no key may be the beginning of another.
CREATE FUNCTION check_index(tab regclass, columns text, OUT wrong bigint, OUT prefixes bigint) LANGUAGE plpgsql AS $$
DECLARE
    ordering text := regexp_replace(regexp_replace(columns, '\w+_pattern_ops DESC', 'USING ~>~ NULLS FIRST', 'g'),
        '\w+_pattern_ops', 'USING ~<~', 'g');
BEGIN
    -- partial, because btree could not hold the longest values
    EXECUTE format('CREATE INDEX keycodec_index ON %s (%s) WHERE false', tab, columns);
    EXECUTE format($q$
        WITH keys AS MATERIALIZED (SELECT *, mot_key_bytes('keycodec_index', whole) AS key FROM %s whole),
        ranks AS (SELECT key, rank() OVER (ORDER BY %s) AS by_value, rank() OVER (ORDER BY key) AS by_key,
                lead(key) OVER (ORDER BY key) AS next FROM keys)
        SELECT count(*) FILTER (WHERE by_value <> by_key),
            count(*) FILTER (WHERE key <> next AND substring(next FOR length(key)) = key)
        FROM ranks $q$, tab, ordering) INTO wrong, prefixes;
    DROP INDEX keycodec_index;
END $$;

-- v, w: the values (or null); n: not null; x: few different ones
CREATE FUNCTION check_type(type text, query text, OUT "values" bigint, OUT wrong bigint, OUT prefixes bigint) LANGUAGE plpgsql AS $$
DECLARE
    variant text;
    found record;
BEGIN
    EXECUTE format('CREATE TABLE keycodec_table (v %s, w %1$s, x int, n %1$s NOT NULL)', type);
    EXECUTE format('CREATE TEMP TABLE given AS SELECT row_number() OVER () AS i, v FROM (%s) q(v)', query);
    SELECT count(*) INTO "values" FROM given;
    -- neighbours and equal values of v meet different ones of w
    INSERT INTO keycodec_table SELECT a.v, b.v, a.i % 3, a.v FROM given a JOIN given b ON b.i = (a.i * 7) % "values" + 1
        UNION ALL SELECT a.v, NULL, a.i % 2, a.v FROM given a WHERE a.i % 10 = 0
        UNION ALL SELECT NULL, a.v, NULL, a.v FROM given a WHERE a.i % 10 < 2;
    wrong := 0;
    prefixes := 0;
    FOR variant IN SELECT columns FROM variants ORDER BY id LOOP
        found := check_index('keycodec_table', variant);
        IF found.wrong > 0 OR found.prefixes > 0 THEN
            RAISE WARNING '% (%): % keys out of order, % that begin others', type, variant, found.wrong, found.prefixes;
        END IF;
        wrong := wrong + found.wrong;
        prefixes := prefixes + found.prefixes;
    END LOOP;
    DROP TABLE keycodec_table, given;
END $$;

SELECT type, checked.* FROM (SELECT * FROM tried ORDER BY id) t, check_type(type, query) checked ORDER BY id;

-- byte order whatever the collation: the pattern operator classes; and a
-- column that is compared as another type than its own
CREATE TABLE keycodec_table (t text COLLATE "und-x-icu", v varchar COLLATE "und-x-icu", b bpchar COLLATE "und-x-icu", i int4);
INSERT INTO keycodec_table SELECT s, s, s, hashtext(s) FROM strings('{a,B,c,é," ",_}', 8, 1000) s;
SELECT columns, checked.* FROM (VALUES ('t text_pattern_ops'), ('t text_pattern_ops DESC'), ('v varchar_pattern_ops, t text_pattern_ops'),
    ('b bpchar_pattern_ops, t text_pattern_ops')) c(columns),
    check_index('keycodec_table', columns) checked;
DROP TABLE keycodec_table;

-- keys are equal where values are, in another order, of other collations and enums
CREATE FUNCTION check_equality(type text, query text, OUT wrong bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE keycodec_table (v %s)', type);
    EXECUTE format('INSERT INTO keycodec_table %s', query);
    CREATE INDEX keycodec_index ON keycodec_table (v) WHERE false;
    EXECUTE $q$
        WITH keys AS MATERIALIZED (SELECT v, mot_key_bytes('keycodec_index', whole) AS key FROM keycodec_table whole)
        SELECT count(DISTINCT (v, key)) - count(DISTINCT v) + count(DISTINCT (v, key)) - count(DISTINCT key) FROM keys
        $q$ INTO wrong;
    DROP TABLE keycodec_table;
END $$;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'fine' BEFORE 'happy';
ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad';
SELECT type, checked.* FROM (VALUES
    (1, 'text COLLATE "und-x-icu"', $$SELECT strings('{a,A,á,-," "}', 3, 1000)$$),
    (2, 'bpchar COLLATE "und-x-icu"', $$SELECT strings('{a,A,á,-," "}', 3, 1000)::bpchar$$),
    (3, 'name COLLATE "und-x-icu"', $$SELECT strings('{a,A,-," "}', 3, 1000)::name$$),
    (4, 'mood', $$SELECT e FROM unnest(enum_range(NULL::mood)) e, generate_series(1, 3)$$)) t(id, type, query),
    check_equality(type, query) checked
ORDER BY id;

-- values out of line and compressed
CREATE TABLE keycodec_table (i int, t text COLLATE "C", b bytea, n numeric);
ALTER TABLE keycodec_table ALTER t SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL;
INSERT INTO keycodec_table SELECT i, repeat(chr(97 + i), 7000), convert_to(repeat(chr(97 + i), 7000), 'UTF8'), repeat('1234' || i, 1000)::numeric
FROM generate_series(0, 9) i;
SELECT columns, checked.* FROM (VALUES ('t'), ('t DESC'), ('b'), ('b DESC, i'), ('n'), ('n DESC')) c(columns), check_index('keycodec_table', columns) checked;
DROP TABLE keycodec_table;

SET client_min_messages = warning;
DROP SCHEMA keycodec_test CASCADE;
