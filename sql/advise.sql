-- mot_advise() ranks heap tables, and knows what ALTER TABLE would refuse
CREATE SCHEMA advised;
SET search_path = advised, public;
CREATE TABLE hot (id int PRIMARY KEY, v int);
CREATE TABLE cold (id int PRIMARY KEY, v int);
CREATE TABLE shapes (id int PRIMARY KEY, p point, t text COLLATE "en-x-icu", a int[]);
CREATE INDEX ON shapes USING gist (p);
CREATE INDEX ON shapes (a);
CREATE INDEX ON shapes (t);
CREATE INDEX ON shapes (lower(t));
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE loosely (id int PRIMARY KEY, t text COLLATE loose);
CREATE INDEX ON loosely (t);
CREATE INDEX ON loosely (t) WHERE id > 0;
CREATE TABLE hashed (id int, name text COLLATE "C");
CREATE INDEX ON hashed USING hash (id);
CREATE INDEX ON hashed (name);
CREATE TABLE memory (id int PRIMARY KEY) USING mot;
CREATE UNLOGGED TABLE volatile (id int PRIMARY KEY, t text COLLATE "C");
CREATE UNIQUE INDEX ON volatile (lower(t)) INCLUDE (id) WHERE id > 0;
INSERT INTO hot SELECT i, 0 FROM generate_series(1, 1000) i;
INSERT INTO cold SELECT i, 0 FROM generate_series(1, 1000) i;
DO $$ BEGIN
    FOR i IN 1 .. 2000 LOOP UPDATE hot SET v = v + 1 WHERE id = i % 1000 + 1; END LOOP;
END $$;
SELECT pg_stat_force_next_flush();
SELECT row_number() OVER (ORDER BY place) AS place, tab, bytes = pg_total_relation_size(tab) AS bytes, fits, saves_ms_per_s > 0 AS saves,
       lookups, changes, updates_per_row, waiting, statements_ms, obstacles, remarks
FROM mot_advise() WHERE tab::text !~ '[.]' ORDER BY place;

-- what has no obstacle moves in, what has one does not
SELECT tab, obstacles FROM mot_advise() WHERE tab::text !~ '[.]' AND obstacles <> '{}' ORDER BY tab::text;
ALTER TABLE hot SET ACCESS METHOD mot;
ALTER TABLE volatile SET ACCESS METHOD mot;
ALTER TABLE hashed SET ACCESS METHOD mot;
ALTER TABLE shapes SET ACCESS METHOD mot;
ALTER TABLE loosely SET ACCESS METHOD mot;
DROP INDEX shapes_p_idx, loosely_t_idx1;
SELECT obstacles, remarks FROM mot_advise() WHERE tab IN ('shapes'::regclass, 'loosely'::regclass) ORDER BY tab::text;
ALTER TABLE shapes SET ACCESS METHOD mot;
ALTER TABLE loosely SET ACCESS METHOD mot;
SELECT count(*) FROM mot_advise() WHERE tab IN ('hot'::regclass, 'shapes'::regclass, 'loosely'::regclass);

-- whoever may not see a table's rows may see this much, as in the server's statistics
SET client_min_messages = warning;
DROP SCHEMA advised CASCADE;
