-- mot_estimate() says what tables take once they have moved in: of all rows within a
-- tenth, of a sample of 1000 within two fifths, or 64 kB.  (Where rows lie matters to non-unique
-- indexes on less than eight bytes, and so, in this test, what has run before.)
CREATE SCHEMA estimated;
SET search_path = estimated, public;
CREATE FUNCTION text_of(i int, letters int) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT left(string_agg(md5((i * k)::text), ''), letters) FROM generate_series(1, 1 + letters / 32) k $$;
CREATE TABLE shapes (id serial, name text, columns text, rows text);
INSERT INTO shapes (name, columns, rows) VALUES
('empty', 'id int PRIMARY KEY, v int', 'SELECT i, i FROM generate_series(1, 0) i'),
('few', 'id int PRIMARY KEY, v int', 'SELECT i, i FROM generate_series(1, 20) i'),
('numbers', 'id int PRIMARY KEY, v bigint', 'SELECT i, i FROM generate_series(1, 50000) i'),
('strings', 'id bigint PRIMARY KEY, t text COLLATE "C" UNIQUE', $$SELECT i, 'customer number ' || i || repeat('.', i % 70) FROM generate_series(1, 30000) i$$),
('hashes', 'u uuid PRIMARY KEY, t text COLLATE "C" UNIQUE', $$SELECT md5(i::text)::uuid, md5(i::text) FROM generate_series(1, 30000) i$$),
('numerics', 'n numeric PRIMARY KEY, d timestamp NOT NULL, m bigint', $$SELECT i / 7.0, timestamp '2020-01-01' + i % 365 * interval '1 day', i FROM generate_series(1, 30000) i$$),
('nulls', 'a int, b text, c int, d int, UNIQUE (a, d)', $$SELECT i, CASE WHEN i % 2 = 0 THEN repeat('y', 30) END, nullif(i % 3, 0), nullif(i % 5, 0) FROM generate_series(1, 50000) i$$),
('wide', 'id int PRIMARY KEY, t text', 'SELECT i, text_of(i, 500 + 13 * (i % 1000)) FROM generate_series(1, 2000) i'),
('long', 'id int PRIMARY KEY, t text', 'SELECT i, text_of(i, 100000) FROM generate_series(1, 50) i'),
('compressed', 'id int PRIMARY KEY, t text', $$SELECT i, repeat('abc', 10000) FROM generate_series(1, 3000) i$$),
('dropped', 'id int PRIMARY KEY, gone text, v int', $$SELECT i, 'gone', i FROM generate_series(1, 30000) i$$);
DO $$
DECLARE s shapes;
BEGIN
    FOR s IN SELECT * FROM shapes ORDER BY id LOOP
        EXECUTE format('CREATE TABLE %I (%s)', s.name, s.columns);
        EXECUTE format('INSERT INTO %I %s', s.name, s.rows);
    END LOOP;
END $$;
CREATE INDEX ON numbers ((v / 10)) WHERE false;
CREATE INDEX numbers_scattered ON numbers (v);
UPDATE numbers SET v = (id * 7919::bigint) % 5000;
VACUUM FULL numbers;
CREATE INDEX ON numerics (d, m DESC);
CREATE INDEX ON numerics (d) INCLUDE (m);
CREATE INDEX ON nulls (c);
ALTER TABLE dropped DROP COLUMN gone;

-- what is said before, and what it is then
CREATE TABLE said AS SELECT s.id, s.name, sample, e.* FROM shapes s, (VALUES (30000), (1000)) n(sample), mot_estimate(s.name::regclass, sample) e;
DO $$
DECLARE s shapes;
BEGIN
    FOR s IN SELECT * FROM shapes ORDER BY id LOOP
        EXECUTE format('ALTER TABLE %I SET ACCESS METHOD mot', s.name);
    END LOOP;
END $$;
CREATE VIEW real AS
    SELECT relid::regclass AS object, row_bytes AS bytes, rows FROM mot_stat_tables
    UNION ALL SELECT indexrelid::regclass, bytes, NULL FROM mot_stat_indexes;
-- (a number says how far off it is)
CREATE FUNCTION far(said numeric, really numeric, part numeric) RETURNS numeric LANGUAGE sql AS
    $$ SELECT CASE WHEN abs(said - really) > greatest(really * part, 65536) THEN round(said / nullif(really, 0), 2) END $$;
SELECT s.name, s.object, far(sum(s.bytes) FILTER (WHERE sample = 30000), r.bytes, 0.1) AS whole,
       far(sum(s.bytes) FILTER (WHERE sample = 1000), r.bytes, 0.4) AS sampled
FROM said s JOIN real r USING (object) GROUP BY s.id, s.name, s.object, r.bytes ORDER BY s.id, s.object::text;
SELECT part, count(*) FROM said WHERE sample = 30000 GROUP BY part ORDER BY part;
SELECT bool_and(s.entries = r.rows) AS counted, bool_and(s.bytes = 24 * r.rows) AS heads
FROM said s JOIN real r USING (object) WHERE s.part = 'heads' AND sample = 30000;

-- of memory-optimized tables, too
SELECT s.name, far(sum(e.bytes), max(t.total_bytes), 0.1)
FROM shapes s, mot_estimate(s.name::regclass) e, mot_stat_tables t WHERE t.relid = s.name::regclass
GROUP BY s.name, s.id HAVING far(sum(e.bytes), max(t.total_bytes), 0.1) IS NOT NULL ORDER BY s.id;
CREATE FOREIGN TABLE outside (id int PRIMARY KEY, t text COLLATE "C") SERVER mot_server;
INSERT INTO outside SELECT i, md5(i::text) FROM generate_series(1, 20000) i;
CREATE INDEX ON outside (t);
SELECT far(sum(e.bytes), max(t.total_bytes), 0.1), count(*) FROM mot_estimate('outside') e, mot_stat_tables t WHERE t.relid = 'outside'::regclass;

-- keys that are computed are in the rows
CREATE TABLE computed (id int, t text);
INSERT INTO computed SELECT i, 'Name ' || i FROM generate_series(1, 20000) i;
CREATE INDEX ON computed (lower(t)) WHERE id % 2 = 0;
CREATE INDEX ON computed ((id + 1));
CREATE TABLE stored (LIKE computed INCLUDING INDEXES) USING mot;
INSERT INTO stored SELECT * FROM computed;
SELECT far(sum(e.bytes), max(t.row_bytes), 0.1) FROM mot_estimate('computed') e, mot_stat_tables t
WHERE t.relid = 'stored'::regclass AND e.part <> 'index';

-- each partition
CREATE TABLE parted (id int PRIMARY KEY, t text) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10000);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10000) TO (30000) PARTITION BY RANGE (id);
CREATE TABLE parted_21 PARTITION OF parted_2 FOR VALUES FROM (10000) TO (30000) USING mot;
INSERT INTO parted SELECT i, md5(i::text) FROM generate_series(0, 29999) i;
SELECT leaf, object, part, entries FROM mot_estimate('parted') ORDER BY leaf::text, object::text, part;

-- refused: what the move would refuse, and what is no table
CREATE TABLE refused (id int, p point);
CREATE INDEX ON refused USING gist (p);
SELECT * FROM mot_estimate('refused');
SELECT * FROM mot_estimate('real');
SELECT * FROM mot_estimate('numbers_pkey');
SELECT * FROM mot_estimate('numbers', 0);
SELECT * FROM mot_estimate(0);
SELECT count(*) FROM mot_estimate(NULL);

-- whoever may read all rows may ask; functions of indexes are called in the owner's name
CREATE ROLE regress_estimate;
GRANT USAGE ON SCHEMA estimated TO regress_estimate;
CREATE FUNCTION caller(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN IF current_user = 'regress_estimate' THEN RAISE 'called by %', current_user; END IF; RETURN 'x'; END $$;
CREATE TABLE secret (id int, v int);
INSERT INTO secret SELECT i, i FROM generate_series(1, 10) i;
CREATE INDEX ON secret (caller(v));
SET ROLE regress_estimate;
SELECT count(*) FROM mot_estimate('secret');
RESET ROLE;
GRANT SELECT ON secret TO regress_estimate;
SET ROLE regress_estimate;
SELECT count(*) FROM mot_estimate('secret');
SELECT current_user;
RESET ROLE;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
SET ROLE regress_estimate;
SELECT count(*) FROM mot_estimate('secret');
RESET ROLE;
-- (rows that a policy hides from their owner take memory, too)
ALTER TABLE secret OWNER TO regress_estimate, FORCE ROW LEVEL SECURITY;
ALTER FUNCTION caller(int) OWNER TO regress_estimate;
DROP INDEX secret_caller_idx;
SELECT DISTINCT entries FROM mot_estimate('secret');
SET ROLE regress_estimate;
SELECT DISTINCT entries FROM mot_estimate('secret');
SELECT count(*) FROM secret;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA estimated CASCADE;
DROP ROLE regress_estimate;
