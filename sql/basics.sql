-- Rows of all kinds go in and come out again; constraints hold.

-- every shape of column: by value, fixed, variable, aligned in all ways
CREATE TYPE basics_mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE basics_pair AS (a int, b text);
CREATE DOMAIN basics_positive AS int CHECK (VALUE > 0);

CREATE FOREIGN TABLE basics_types (
    id int,
    b bool,
    c "char",
    i2 int2,
    i8 int8,
    f4 float4,
    f8 float8,
    n numeric,
    t text,
    vc varchar(10),
    bc char(5),
    nm name,
    ba bytea,
    d date,
    tm time,
    ttz timetz,
    ts timestamp,
    tstz timestamptz,
    iv interval,
    u uuid,
    ip inet,
    net cidr,
    mac macaddr,
    bits varbit,
    js json,
    jb jsonb,
    arr int[],
    arrt text[],
    r int4range,
    pt point,
    mood basics_mood,
    pair basics_pair,
    pos basics_positive,
    lsn pg_lsn,
    m money,
    tv tsvector
) SERVER mot_server;

SET timezone = 'UTC';
INSERT INTO basics_types VALUES
    (1, true, 'x', 12, 1234567890123, 1.5, 2.25, 123.456, 'text', 'varchar', 'char', 'name', '\xdeadbeef',
     '2024-02-29', '12:34:56.789', '12:34:56+02', '2024-02-29 12:34:56', '2024-02-29 12:34:56+00', '1 year 2 days',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '192.168.0.1/24', '10.0.0.0/8', '08:00:2b:01:02:03', B'10110',
     '{"a": 1}', '{"b": [1, 2]}', '{1,2,NULL,4}', '{a,"b c",NULL}', '[1,10)', '(1.5,2.5)', 'happy',
     ROW(7, 'seven'), 42, '16/B374D848', '12.34', 'a fat cat');
INSERT INTO basics_types VALUES (2);
INSERT INTO basics_types (id, t, i8, n, mood, arr) VALUES
    (3, '', -9223372036854775808, 'NaN', 'sad', '{}'),
    (4, repeat('long ', 100), 9223372036854775807, -0.00001, 'ok', ARRAY[[1, 2], [3, 4]]);
\x on
SELECT * FROM basics_types WHERE id = 1;
\x off
SELECT id, b, t, i8, n, mood, arr, pair, pos FROM basics_types WHERE id > 1 ORDER BY id;
SELECT count(*), count(b), count(t), count(tv), sum(length(t)) FROM basics_types;
-- whole rows, and rows compared
SELECT t.pair, (t.pair).b, t IS NULL AS isnull FROM basics_types t WHERE id = 1;
SELECT basics_types FROM basics_types WHERE id = 2;

-- null bitmaps of rows with one column of each kind missing in turn
CREATE FOREIGN TABLE basics_nulls (a int2, b int8, c text, d "char", e float8, f text, g bool, h int8, i int4) SERVER mot_server;
INSERT INTO basics_nulls
    SELECT CASE WHEN m & 1 = 0 THEN 1 END, CASE WHEN m & 2 = 0 THEN 2 END,
           CASE WHEN m & 4 = 0 THEN 'c' END, CASE WHEN m & 8 = 0 THEN 'd' END::"char",
           CASE WHEN m & 16 = 0 THEN 5.5 END, CASE WHEN m & 32 = 0 THEN repeat('f', m) END,
           CASE WHEN m & 64 = 0 THEN true END, CASE WHEN m & 128 = 0 THEN m END, CASE WHEN m & 256 = 0 THEN m END
    FROM generate_series(0, 511) m;
SELECT count(*), count(a), count(b), count(c), count(d), count(e), count(f), count(g), count(h), count(i),
       sum(a), sum(b), sum(e), sum(length(f)), sum(h), sum(i)
FROM basics_nulls;
SELECT count(*) FROM basics_nulls WHERE a = 1 AND c = 'c' AND e = 5.5 AND i = h;

-- values of many megabytes, and values stored out of line by another table
CREATE FOREIGN TABLE basics_big (id int PRIMARY KEY, t text, b bytea) SERVER mot_server;
INSERT INTO basics_big VALUES (1, repeat('0123456789', 1000000), NULL);
INSERT INTO basics_big SELECT 2, t, decode(repeat('00ff', 1000000), 'hex') FROM basics_big WHERE id = 1;
CREATE TEMP TABLE basics_heap (id int, t text);
ALTER TABLE basics_heap ALTER t SET STORAGE EXTERNAL;
INSERT INTO basics_heap VALUES (3, repeat('external ', 100000));
ALTER TABLE basics_heap ALTER t SET STORAGE EXTENDED;
INSERT INTO basics_heap VALUES (4, repeat('compressed ', 100000));
INSERT INTO basics_big SELECT id, t FROM basics_heap;
DROP TABLE basics_heap;
SELECT id, length(t), md5(t), length(b), md5(b) FROM basics_big ORDER BY id;
UPDATE basics_big SET t = t || 'x' WHERE id IN (1, 3);
SELECT id, length(t), right(t, 2) FROM basics_big ORDER BY id;
DELETE FROM basics_big WHERE id < 3;
SELECT id, length(t) FROM basics_big ORDER BY id;

-- an expanded array goes in flat
DO $$
DECLARE
    a int[] := '{1,2,3}';
BEGIN
    a[2] := 20;
    INSERT INTO basics_types (id, arr) VALUES (5, a);
    a[3] := 30;
    UPDATE basics_types SET arr = a WHERE id = 5;
END
$$;
SELECT arr FROM basics_types WHERE id = 5;

-- NOT NULL, CHECK, domains, defaults, generated columns
CREATE FOREIGN TABLE basics_checked (
    id int PRIMARY KEY,
    owner text NOT NULL DEFAULT 'nobody',
    balance numeric CHECK (balance >= 0),
    twice numeric GENERATED ALWAYS AS (balance * 2) STORED
) SERVER mot_server;
INSERT INTO basics_checked (id, balance) VALUES (1, 10), (2, NULL);
INSERT INTO basics_checked VALUES (3, NULL, 1);
INSERT INTO basics_checked VALUES (3, 'x', -1);
INSERT INTO basics_checked VALUES (NULL, 'x', 1);
UPDATE basics_checked SET owner = NULL WHERE id = 1;
UPDATE basics_checked SET balance = balance - 100 WHERE id = 1;
UPDATE basics_checked SET balance = balance - 1 WHERE id = 1;
INSERT INTO basics_types (id, pos) VALUES (6, -1);
INSERT INTO basics_types (id, vc) VALUES (6, 'longer than ten');
SELECT * FROM basics_checked ORDER BY id;

-- a dropped and an added column
ALTER FOREIGN TABLE basics_checked DROP COLUMN owner;
ALTER FOREIGN TABLE basics_checked ADD COLUMN note text;
INSERT INTO basics_checked (id, balance, note) VALUES (4, 4, 'four');
UPDATE basics_checked SET note = 'one' WHERE id = 1;
SELECT * FROM basics_checked ORDER BY id;

DROP FOREIGN TABLE basics_types, basics_nulls, basics_big, basics_checked;
DROP TYPE basics_mood, basics_pair;
DROP DOMAIN basics_positive;
