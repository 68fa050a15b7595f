-- Keys by their types' equality: what is a duplicate, and what is found.
CREATE SCHEMA index_keys;
SET search_path = index_keys, public;
SET intervalstyle = postgres;
CREATE TYPE mood AS ENUM ('sad', 'happy');

CREATE FOREIGN TABLE k (id serial, n numeric UNIQUE, f float8 UNIQUE, c char(4) UNIQUE, t text COLLATE "und-x-icu" UNIQUE, i interval UNIQUE, a inet UNIQUE,
    m mood UNIQUE, b bit varying UNIQUE, o name UNIQUE, tz timetz UNIQUE) SERVER mot_server;
INSERT INTO k (n) VALUES (1.0);
INSERT INTO k (n) VALUES (1.00);
INSERT INTO k (n) VALUES ('NaN'), ('NaN');
INSERT INTO k (f) VALUES ('-0');
INSERT INTO k (f) VALUES (0);
INSERT INTO k (f) VALUES ('NaN');
INSERT INTO k (f) VALUES ('-NaN');
INSERT INTO k (c) VALUES ('a');
INSERT INTO k (c) VALUES ('a ');
INSERT INTO k (t) VALUES ('a'), ('A'), ('a '), ('á'), ('');
INSERT INTO k (t) VALUES ('á');
INSERT INTO k (i) VALUES ('1 month');
INSERT INTO k (i) VALUES ('30 days');
INSERT INTO k (i) VALUES ('29 days 24:00:00');
INSERT INTO k (a) VALUES ('10.0.0.1'), ('10.0.0.1/8'), ('10.0.0.0/8'), ('::a00:1');
INSERT INTO k (a) VALUES ('10.0.0.1/32');
INSERT INTO k (m) VALUES ('sad'), ('happy');
INSERT INTO k (m) VALUES ('sad');
INSERT INTO k (b) VALUES (''), ('0'), ('00'), ('000000000');
INSERT INTO k (b) VALUES ('00');
INSERT INTO k (o) VALUES ('abc');
INSERT INTO k (o) VALUES ('abc');
INSERT INTO k (tz) VALUES ('12:00+00'), ('13:00+01');
INSERT INTO k (tz) VALUES ('13:00+01');
SELECT n, f, c, t, i, a, m, b, o, tz FROM k ORDER BY n, f, c, t COLLATE "C", i, a, m, b, o, tz;

-- an equal value that looks different takes the row's place
UPDATE k SET n = 1.000 WHERE n = 1;
UPDATE k SET c = 'a  ' WHERE c = 'a';
UPDATE k SET i = '30 days' WHERE i = '1 month';
SELECT n, c, i FROM k WHERE n = 1 OR c = 'a' OR i = '720:00:00' ORDER BY n, c;
INSERT INTO k (n) VALUES (1);
UPDATE k SET n = 2 WHERE n = 1;
INSERT INTO k (n) VALUES (1);
SELECT count(*) FROM k WHERE n IN (1, 2);

-- an enum's labels may move
INSERT INTO k (n) SELECT generate_series(100, 200);
ALTER TYPE mood ADD VALUE 'worse' BEFORE 'sad';
ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy';
INSERT INTO k (m) VALUES ('worse'), ('ok');
INSERT INTO k (m) VALUES ('ok');
SELECT m FROM k WHERE m < 'happy' ORDER BY m;
SELECT m FROM k WHERE m = 'ok';
EXPLAIN (COSTS OFF) SELECT m FROM k WHERE m = 'ok';

-- equality in other collations by index, order not
EXPLAIN (COSTS OFF) SELECT t FROM k WHERE t = 'A';
SELECT t FROM k WHERE t = 'A';
SELECT t FROM k WHERE t IN ('a', 'A', 'b') ORDER BY t;
SELECT t FROM k WHERE t > 'a' ORDER BY t;
SELECT t FROM k WHERE t = 'A' COLLATE "C";

-- keys too long, and comparisons with values longer than any key
CREATE FOREIGN TABLE long (id int PRIMARY KEY, t text COLLATE "C") SERVER mot_server;
CREATE INDEX long_t ON long (t);
INSERT INTO long SELECT i, repeat('x', 8000 + i) FROM generate_series(1, 150) i;
INSERT INTO long VALUES (1000, 'a'), (1001, repeat('x', 9000));
INSERT INTO long VALUES (1000, 'a');
UPDATE long SET t = repeat('y', 9000) WHERE id = 1000;
SELECT count(*), max(length(t)) FROM long;
SELECT count(*) FROM long WHERE t = repeat('x', 9000);
SELECT count(*) FROM long WHERE t = repeat('x', 8150);
SELECT count(*) FROM long WHERE t < repeat('x', 9000);
SELECT count(*) FROM long WHERE t <= repeat('x', 8000) || repeat('y', 9000);
SELECT count(*) FROM long WHERE t >= repeat('x', 9000);
SELECT count(*) FROM long WHERE t > repeat('x', 8000) || repeat('a', 9000);
SELECT id FROM long WHERE t IN (repeat('x', 9000), 'a', repeat('x', 8002), repeat('0', 9000), repeat('x', 8001)) ORDER BY id;
SELECT count(*) FROM long WHERE t IN ('a', repeat('x', 20000));
SELECT id FROM long ORDER BY t DESC LIMIT 2;
DROP INDEX long_t;
INSERT INTO long VALUES (1001, repeat('x', 9000));
CREATE INDEX long_t ON long (t);
DELETE FROM long WHERE id = 1001;
CREATE INDEX long_t ON long (t);

-- a column that may be null, and no longer, and again
CREATE FOREIGN TABLE nullable (a int, b int) SERVER mot_server;
INSERT INTO nullable SELECT i, i % 10 FROM generate_series(1, 100) i;
CREATE INDEX nullable_b ON nullable (b, a);
ALTER TABLE nullable ALTER b SET NOT NULL;
INSERT INTO nullable VALUES (101, 5);
SELECT a FROM nullable WHERE b = 5 AND a > 80 ORDER BY a;
ALTER TABLE nullable ALTER b DROP NOT NULL;
INSERT INTO nullable VALUES (102, NULL), (NULL, 5);
SELECT a FROM nullable WHERE b = 5 AND a > 80 ORDER BY a;
SELECT a FROM nullable WHERE b IS NULL;
SELECT count(*) FROM nullable WHERE b = 5 AND a IS NULL;
ALTER TABLE nullable ALTER b SET NOT NULL;
ALTER TABLE nullable ALTER b TYPE numeric;
INSERT INTO nullable VALUES (103, 5.00);
SELECT a, b FROM nullable WHERE b = 5 AND a > 80 ORDER BY a;

-- operator classes by name
CREATE FOREIGN TABLE opclasses (t text COLLATE "und-x-icu", v varchar COLLATE "und-x-icu", i int) SERVER mot_server;
INSERT INTO opclasses SELECT s, s, i FROM unnest('{a,B,c,A,b,é}'::text[]) WITH ORDINALITY u(s, i), generate_series(1, 20);
CREATE INDEX opclasses_t ON opclasses (t text_pattern_ops);
CREATE INDEX opclasses_v ON opclasses (v varchar_pattern_ops DESC, i int4_ops);
CREATE INDEX opclasses_no ON opclasses (i text_ops);
CREATE INDEX opclasses_no ON opclasses (t int4_ops);
EXPLAIN (COSTS OFF) SELECT DISTINCT t FROM opclasses WHERE t ~>=~ 'a';
SELECT DISTINCT t COLLATE "C" FROM opclasses WHERE t ~>=~ 'a' ORDER BY 1;
SELECT DISTINCT t COLLATE "C" FROM opclasses WHERE t >= 'a' ORDER BY 1;
SELECT count(*) FROM opclasses WHERE v = 'B' AND i = 2;
-- btree's are meant by their names, wherever ours are
SET search_path = '';
CREATE INDEX opclasses_b ON index_keys.opclasses USING btree (t text_pattern_ops, i pg_catalog.int4_ops, v varchar_ops);
CREATE INDEX opclasses_no ON index_keys.opclasses USING btree (t jsonb_ops);
CREATE INDEX opclasses_no ON index_keys.opclasses USING btree (t no_such_ops);
SET search_path = index_keys, public;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'opclasses'::regclass ORDER BY 1;

-- plans for rows that only this transaction sees, once it has counted them
BEGIN;
CREATE FOREIGN TABLE own (a int, b int) SERVER mot_server;
CREATE INDEX own_a ON own (a);
INSERT INTO own SELECT i, i FROM generate_series(1, 1000) i;
ANALYZE own;
EXPLAIN (COSTS OFF) SELECT b FROM own WHERE a = 5;
SELECT b FROM own WHERE a = 5;
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA index_keys CASCADE;
