--
-- CREATE INDEX, DROP INDEX, REINDEX
--
CREATE FOREIGN TABLE ddl_i (id int, a int, b text, c text COLLATE "C", d date, j json) SERVER mot_server;
INSERT INTO ddl_i SELECT i, i % 5, 'b' || i, 'c' || i, date '2020-01-01' + i, '{}' FROM generate_series(1, 50) i;
INSERT INTO ddl_i (id) VALUES (51), (52);

-- names are chosen as always
CREATE INDEX ON ddl_i (a);
CREATE INDEX ON ddl_i (a);
CREATE INDEX ON ddl_i USING btree (b, a);
CREATE INDEX ON ddl_i USING mot_index (d DESC);
CREATE UNIQUE INDEX ON ddl_i (id);
CREATE INDEX ddl_i_orders ON ddl_i (a ASC NULLS FIRST, d DESC NULLS LAST, c, (b));
CREATE INDEX ddl_i_same ON ddl_i (a, a);
CREATE INDEX ddl_i_pattern ON ddl_i (b text_pattern_ops, c COLLATE "C" DESC);
CREATE INDEX IF NOT EXISTS ddl_i_same ON ddl_i (b);
CREATE INDEX ddl_i_same ON ddl_i (b);
CREATE INDEX ON ddl_i (a) WITH (fillfactor = 70);
CREATE INDEX ON ddl_i (a) TABLESPACE pg_default;
\d ddl_i
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'ddl_i'::regclass ORDER BY indexrelid::regclass::text;
\di ddl_i_d_idx

-- refused
CREATE INDEX ON ddl_i USING hash (a);
CREATE INDEX ON ddl_i USING gin (a);
CREATE INDEX ON ddl_i USING nonsense (a);
CREATE INDEX ON ddl_i ((a + 1));
CREATE INDEX ON ddl_i (lower(b));
CREATE INDEX ON ddl_i (a) INCLUDE (b);
CREATE INDEX ON ddl_i (a) WHERE a > 3;
CREATE UNIQUE INDEX ON ddl_i (a) NULLS NOT DISTINCT;
CREATE INDEX ON ddl_i (nothing);
CREATE INDEX ON ddl_i (tableoid);
CREATE INDEX ON ddl_i (j);
CREATE INDEX ON ddl_i (a COLLATE "C");
CREATE INDEX ON ddl_i (a int8_ops);
CREATE INDEX ON ddl_i (a nonsense_ops);
CREATE INDEX ON ddl_i (a) WITH (nonsense = 1);
CREATE INDEX ON ddl_i (a) TABLESPACE nowhere;
CREATE UNIQUE INDEX ON ddl_i (a);
SELECT count(*) = 0 AS without_icu FROM pg_collation WHERE collprovider = 'i' AND collname = 'und-x-icu' \gset
\if :without_icu
CREATE COLLATION ddl_ci (provider = libc, locale = 'en_US.UTF-8');
\else
CREATE COLLATION ddl_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
\endif
CREATE INDEX ON ddl_i (b COLLATE ddl_ci);
DROP COLLATION ddl_ci CASCADE;
-- the access method is for memory-optimized tables only
CREATE TABLE ddl_heap (a int);
CREATE INDEX ON ddl_heap USING mot_index (a);
DROP TABLE ddl_heap;

-- what belongs to files it has not: a tablespace, options
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_ddl_space LOCATION '';
SET default_tablespace = regress_ddl_space;
CREATE INDEX ddl_i_space ON ddl_i (a) WITH (fillfactor = 50);
CREATE INDEX ddl_i_space2 ON ddl_i (b DESC, a) TABLESPACE regress_ddl_space;
SELECT relname, reltablespace, reloptions FROM pg_class WHERE relname ~ 'ddl_i_space' ORDER BY 1;
RESET default_tablespace;
DROP INDEX ddl_i_space, ddl_i_space2;
DROP TABLESPACE regress_ddl_space;
RESET allow_in_place_tablespaces;

-- a unique index works from its creation on, also for the rows there were
CREATE UNIQUE INDEX ddl_i_c ON ddl_i (c);
INSERT INTO ddl_i (id, c) VALUES (60, 'c7');
INSERT INTO ddl_i (id) VALUES (60);
INSERT INTO ddl_i (id) VALUES (60);
DROP INDEX ddl_i_id_idx;
INSERT INTO ddl_i (id) VALUES (60);

-- dropped and created with the transaction
BEGIN;
DROP INDEX ddl_i_c;
INSERT INTO ddl_i (id, c) VALUES (70, 'c7');
SAVEPOINT s;
CREATE UNIQUE INDEX ddl_i_c ON ddl_i (c);
ROLLBACK TO s;
DELETE FROM ddl_i WHERE id = 70;
CREATE UNIQUE INDEX ddl_i_c2 ON ddl_i (c);
INSERT INTO ddl_i (id, c) VALUES (71, 'c7');
ROLLBACK;
INSERT INTO ddl_i (id, c) VALUES (71, 'c7');
INSERT INTO ddl_i (id, c) VALUES (71, 'c71');
SELECT id FROM ddl_i WHERE c = 'c71';
BEGIN;
CREATE UNIQUE INDEX ddl_i_d ON ddl_i (d);
INSERT INTO ddl_i (id, d) VALUES (72, '2020-01-02');
ROLLBACK;
INSERT INTO ddl_i (id, d) VALUES (72, '2020-01-02');

-- CONCURRENTLY is plain, outside of transactions
CREATE INDEX CONCURRENTLY ddl_i_conc ON ddl_i (a, id);
DROP INDEX CONCURRENTLY ddl_i_conc;
BEGIN;
CREATE INDEX CONCURRENTLY ddl_i_conc ON ddl_i (a, id);
ROLLBACK;
BEGIN;
DROP INDEX CONCURRENTLY ddl_i_c;
ROLLBACK;

-- REINDEX keeps what it finds
REINDEX INDEX ddl_i_c;
REINDEX TABLE ddl_i;
REINDEX TABLE CONCURRENTLY ddl_i;
BEGIN;
INSERT INTO ddl_i (id, c) VALUES (80, 'c80');
SAVEPOINT s;
REINDEX TABLE ddl_i;
INSERT INTO ddl_i (id, c) VALUES (81, 'c81');
ROLLBACK TO s;
SELECT id FROM ddl_i WHERE c IN ('c80', 'c81');
REINDEX TABLE ddl_i;
COMMIT;
SELECT id FROM ddl_i WHERE c IN ('c80', 'c81');
INSERT INTO ddl_i (id, c) VALUES (82, 'c80');

-- comments, renaming
COMMENT ON INDEX ddl_i_c IS 'unique c';
ALTER INDEX ddl_i_c RENAME TO ddl_i_renamed;
INSERT INTO ddl_i (id, c) VALUES (82, 'c80');
SELECT obj_description('ddl_i_renamed'::regclass);
ALTER INDEX ddl_i_renamed SET (fillfactor = 50);
DROP INDEX ddl_i_renamed, ddl_i_orders, ddl_i_pattern;
\d ddl_i
DROP TABLE ddl_i;

-- not while a query of our own uses the table
CREATE FOREIGN TABLE ddl_i (id int) SERVER mot_server;
INSERT INTO ddl_i VALUES (1), (2);
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM ddl_i;
FETCH c;
CREATE INDEX ON ddl_i (id);
ROLLBACK;
DROP TABLE ddl_i;

-- more columns and indexes than there may be
SELECT 'CREATE FOREIGN TABLE ddl_i (' || string_agg('c' || i || ' int', ', ') || ') SERVER mot_server'
    FROM generate_series(1, 33) i \gexec
SELECT 'CREATE INDEX ON ddl_i (' || string_agg('c' || i, ', ') || ')' FROM generate_series(1, 33) i \gexec
SELECT 'CREATE INDEX ON ddl_i (' || string_agg('c' || i, ', ') || ')' FROM generate_series(1, 32) i \gexec
INSERT INTO ddl_i (c1, c32) VALUES (1, 2);
SELECT c1, c32, c33 FROM ddl_i;
DROP TABLE ddl_i;
SELECT count(*) FROM mot_stat_indexes;
