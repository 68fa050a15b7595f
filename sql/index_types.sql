-- Every type that can be indexed, through indexes of a memory-optimized table
-- and against a heap table with the same rows: comparisons with values of the
-- type and of others, as parameters of nested loops, constants and lists;
-- IS NULL; order in both directions.
CREATE SCHEMA index_types;
SET search_path = index_types, public;
SET timezone = 'America/New_York';
SET intervalstyle = postgres;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SET jit = off;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'fine' BEFORE 'happy';
ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad';
CREATE DOMAIN amount AS int CHECK (VALUE > 0);

CREATE TABLE tried (id serial, type text, query text);
INSERT INTO tried (type, query) VALUES
('bool', $$VALUES (true), (false), (true)$$),
('"char"', $$SELECT chr(i)::"char" FROM generate_series(65, 122) i$$),
('int2', $$SELECT i * 1000 FROM generate_series(-32, 32) i$$),
('int4', $$SELECT i * 67108864 FROM generate_series(-32, 31) i UNION ALL SELECT generate_series(-5, 5)$$),
('int8', $$SELECT i * 288230376151711744 FROM generate_series(-32, 31) i UNION ALL SELECT generate_series(-5, 5)$$),
('oid', $$SELECT (i * 67108864::int8)::oid FROM generate_series(0, 63) i$$),
('float4', $$SELECT i / 10.0 FROM generate_series(-30, 30) i UNION ALL SELECT unnest('{NaN,Infinity,-Infinity,-0,0,3.4e38,1e-45}'::float4[])$$),
('float8', $$SELECT i / 10.0 FROM generate_series(-30, 30) i UNION ALL SELECT unnest('{NaN,Infinity,-Infinity,-0,0,1e300,5e-324}'::float8[])$$),
('numeric', $$SELECT i / 10.0 FROM generate_series(-30, 30) i UNION ALL SELECT unnest('{NaN,Infinity,-Infinity,0,0.00,1e100,-1e100,1e-100,1.0,1.00,9999.9999,10000}'::numeric[])$$),
('numeric(9,2)', $$SELECT i * 1234.56 FROM generate_series(-30, 30) i$$),
('money', $$SELECT i * '12.34'::money FROM generate_series(-30, 30) i$$),
('date', $$SELECT '2011-03-01'::date + i FROM generate_series(-30, 30) i UNION ALL SELECT unnest('{infinity,-infinity,5874897-12-31}'::date[])$$),
('time', $$SELECT '00:00'::time + i * interval '23 minutes' FROM generate_series(0, 60) i$$),
('timetz', $$SELECT ('12:00'::time + i * interval '1 hour')::text || z FROM generate_series(0, 23) i, (VALUES ('+00'), ('-05'), ('+05:30')) x(z)$$),
('timestamp', $$SELECT '2011-03-13'::timestamp + i * interval '30 minutes' FROM generate_series(-30, 30) i UNION ALL SELECT unnest('{infinity,-infinity}'::timestamp[])$$),
('timestamptz', $$SELECT '2011-03-13'::timestamptz + i * interval '30 minutes' FROM generate_series(-30, 30) i UNION ALL SELECT unnest('{infinity,-infinity}'::timestamptz[])$$),
('interval', $$SELECT i * interval '15 days' FROM generate_series(-10, 10) i UNION ALL SELECT i * interval '1 month' FROM generate_series(-5, 5) i UNION ALL SELECT i * interval '12 hours' FROM generate_series(-30, 30) i$$),
('uuid', $$SELECT md5(i::text)::uuid FROM generate_series(1, 60) i$$),
('inet', $$SELECT set_masklen('10.1.2.3'::inet + i * 4099, 8 + i % 25) FROM generate_series(0, 60) i UNION ALL SELECT '::1'::inet + i FROM generate_series(0, 5) i$$),
('cidr', $$SELECT network(set_masklen('10.1.2.3'::inet + i * 4099, 8 + i % 25)) FROM generate_series(0, 60) i$$),
('macaddr', $$SELECT left(md5(i::text), 12)::macaddr FROM generate_series(1, 60) i$$),
('macaddr8', $$SELECT left(md5(i::text), 16)::macaddr8 FROM generate_series(1, 60) i$$),
('pg_lsn', $$SELECT '0/0'::pg_lsn + i * 1234567890123 FROM generate_series(0, 60) i$$),
('xid8', $$SELECT i::text::xid8 FROM generate_series(0, 60) i$$),
('bytea', $$SELECT decode(repeat('00', i % 5) || lpad(to_hex(i), 2, '0'), 'hex') FROM generate_series(0, 60) i$$),
('bit(8)', $$SELECT i::bit(8) FROM generate_series(0, 60) i$$),
('varbit', $$SELECT substring(i::bit(8) FOR i % 9) FROM generate_series(0, 80) i$$),
('text COLLATE "C"', $$SELECT repeat(chr(65 + i % 7), i % 4) || i % 10 FROM generate_series(0, 60) i UNION ALL SELECT repeat('x', 1000 + i) FROM generate_series(1, 5) i UNION ALL VALUES ('')$$),
('varchar(20) COLLATE "C"', $$SELECT repeat(chr(65 + i % 7), i % 4) || i % 10 FROM generate_series(0, 60) i$$),
('char(5) COLLATE "C"', $$SELECT repeat(chr(65 + i % 7), i % 4) || i % 10 FROM generate_series(0, 60) i$$),
('name', $$SELECT repeat(chr(65 + i % 7), i % 4) || i % 10 FROM generate_series(0, 60) i$$),
('text COLLATE "und-x-icu"', $$SELECT repeat(substring('aAbBéÉ-' FROM 1 + i % 7 FOR 1), i % 4) || i % 3 FROM generate_series(0, 60) i$$),
('varchar(20) COLLATE "und-x-icu"', $$SELECT repeat(substring('aAbBéÉ-' FROM 1 + i % 7 FOR 1), i % 4) || i % 3 FROM generate_series(0, 60) i$$),
('mood', $$SELECT e FROM unnest(enum_range(NULL::mood)) e, generate_series(1, 9)$$),
('amount', $$SELECT generate_series(1, 60)$$);

-- a table of values of each type: v_1, v_2 ...
DO $$
DECLARE t record;
BEGIN
    FOR t IN SELECT * FROM tried LOOP
        EXECUTE format('CREATE TABLE v_%s (id serial, v %s)', t.id, t.type);
        EXECUTE format('INSERT INTO v_%s (v) SELECT q.v::%s FROM (%s) q(v)', t.id, split_part(t.type, ' COLLATE', 1), t.query);
    END LOOP;
END $$;

-- does a query with @ for the table find the same in the MOT table m as in heap table h?
CREATE FUNCTION same(query text, OUT "right" bool, OUT indexed bool) LANGUAGE plpgsql AS $$
DECLARE
    plan text;
BEGIN
    EXECUTE format('SELECT (%s) IS NOT DISTINCT FROM (%s)', replace(query, '@', 'm'), replace(query, '@', 'h')) INTO "right";
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || replace(query, '@', 'm') INTO plan;
    indexed := plan ~ '"Index (Cond|Name)"';
    IF NOT "right" THEN
        RAISE WARNING 'wrong: %', query;
    END IF;
END $$;

-- the queries to try with a type, whose values are in table "own"; "others":
-- tables of values of the types it can be compared with
CREATE FUNCTION queries(own text, others text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    -- parameters of a nested loop
    RETURN QUERY SELECT format('SELECT array_agg((c.id, t.id) ORDER BY c.id, t.id) FROM %s c JOIN @ t ON t.v %s c.v', other, op)
        FROM unnest(own || others) other, unnest('{<,<=,=,>=,>}'::text[]) op;
    -- constants, both bounds, lists, a column before or behind
    EXECUTE format('CREATE TEMP TABLE c AS SELECT id, v::text FROM %s', own);
    RETURN QUERY SELECT format('SELECT array_agg(id ORDER BY id) FROM @ WHERE v %s %L', op, v)
        FROM c, unnest('{<,=,>=}'::text[]) op WHERE id % 13 = 0;
    RETURN QUERY SELECT format('SELECT array_agg(id ORDER BY id) FROM @ WHERE v > %L AND v <= %L', a.v, b.v)
        FROM c a, c b WHERE a.id % 17 = 0 AND b.id % 11 = 0;
    RETURN QUERY SELECT format('SELECT array_agg(id ORDER BY id) FROM @ WHERE v IN (%s)', string_agg(quote_literal(v), ',')) FROM c WHERE id % 3 = 0;
    RETURN QUERY SELECT format(q, v) FROM c, unnest(ARRAY[
        'SELECT array_agg(id ORDER BY id) FROM @ WHERE v = %L AND x = 1',
        'SELECT array_agg(id ORDER BY id) FROM @ WHERE v = %L AND x > 0',
        'SELECT array_agg(id ORDER BY id) FROM @ WHERE x = 2 AND v < %L',
        'SELECT array_agg(v) FROM (SELECT v FROM @ WHERE v >= %L ORDER BY v DESC) s',
        'SELECT array_agg(x) FROM (SELECT x FROM @ WHERE v = %L ORDER BY x) s']) q WHERE id % 19 = 0;
    RETURN QUERY SELECT unnest(ARRAY[
        'SELECT array_agg(id ORDER BY id) FROM @ WHERE v IS NULL',
        'SELECT array_agg(id ORDER BY id) FROM @ WHERE v IS NOT NULL',
        'SELECT array_agg(id ORDER BY id) FROM @ WHERE x = 1 AND v IS NULL',
        'SELECT array_agg(v) FROM (SELECT v FROM @ ORDER BY v LIMIT 20) s',
        'SELECT array_agg(v) FROM (SELECT v FROM @ ORDER BY v DESC LIMIT 20) s',
        'SELECT array_agg(v) FROM (SELECT v FROM @ ORDER BY v NULLS FIRST LIMIT 20) s',
        'SELECT array_agg(v) FROM (SELECT v FROM @ ORDER BY v DESC NULLS LAST) s',
        'SELECT array_agg(x) FROM (SELECT x FROM @ ORDER BY v, x DESC) s',
        'SELECT array_agg(v) FROM (SELECT v FROM @ WHERE x = 1 ORDER BY v) s',
        'SELECT count(DISTINCT v) FROM @']);
    DROP TABLE c;
END $$;

CREATE TABLE result (id int, queries bigint, indexed bigint, wrong bigint);
-- commits, because plans are made for the rows committed
CREATE PROCEDURE check_type(tried) LANGUAGE plpgsql AS $$
DECLARE
    queries bigint := 0;
    indexed bigint := 0;
    wrong bigint := 0;
    own text := 'v_' || $1.id;
    base oid := (SELECT atttypid FROM pg_attribute WHERE attrelid = own::regclass AND attname = 'v');
    others text[];
    variant text;
    found record;
BEGIN
    EXECUTE format('CREATE TABLE h (id serial, v %s, x int)', $1.type);
    EXECUTE format('INSERT INTO h (v, x) SELECT v, row_number() OVER () %% 3 FROM (SELECT v FROM %s UNION ALL SELECT NULL FROM generate_series(1, 3)) q(v)', own);
    EXECUTE format('CREATE FOREIGN TABLE m (id int, v %s, x int) SERVER mot_server', $1.type);
    INSERT INTO m SELECT * FROM h;
    COMMIT;

    SELECT array_agg(v.attrelid::regclass::text) INTO others
    FROM pg_amop a JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am am ON am.oid = opfmethod AND amname = 'mot_index'
        JOIN pg_attribute v ON v.atttypid = amoprighttype AND v.attname = 'v' AND v.attrelid IN (SELECT ('v_' || id)::regclass FROM tried WHERE type !~ 'icu')
    WHERE amoplefttype = base AND amoprighttype <> base AND amopstrategy = 3 AND $1.type !~ 'icu';

    FOREACH variant IN ARRAY '{v,"v DESC NULLS LAST, x","x, v DESC","v NULLS FIRST, x DESC"}'::text[] LOOP
        EXECUTE format('CREATE INDEX i ON m (%s)', variant);
        ANALYZE m;
        SELECT count(*) AS queries, count(*) FILTER (WHERE s.indexed) AS indexed, count(*) FILTER (WHERE NOT s."right") AS wrong
        INTO found FROM queries(own, others) q, same(q) s;
        queries := queries + found.queries;
        indexed := indexed + found.indexed;
        wrong := wrong + found.wrong;
        DROP INDEX i;
    END LOOP;
    INSERT INTO result VALUES ($1.id, queries, indexed, wrong);
    DROP TABLE h;
    DROP FOREIGN TABLE m;
    COMMIT;
END $$;

DO $$
DECLARE t tried;
BEGIN
    FOR t IN SELECT * FROM tried ORDER BY id LOOP
        CALL check_type(t);
    END LOOP;
END $$;
SELECT type, queries, indexed > 20 AS indexed, wrong FROM result JOIN tried USING (id) ORDER BY id;

SET client_min_messages = warning;
DROP SCHEMA index_types CASCADE;
