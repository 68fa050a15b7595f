-- Ordinary tables of other kinds (temporary, unlogged), samples of them, and what
-- gives all rows new storage: CLUSTER, VACUUM FULL, SET TABLESPACE.

SET default_table_access_method = mot;

-- a temporary table is heap's, however it came to be
CREATE TEMP TABLE tk_temp (a int PRIMARY KEY, b text);
CREATE TEMP TABLE tk_as USING mot ON COMMIT DROP AS SELECT 1 AS a;
CREATE TEMP TABLE tk_rows (a int) USING mot ON COMMIT DELETE ROWS;
CREATE TABLE pg_temp.tk_named (LIKE tk_temp INCLUDING ALL) USING mot;
SELECT relname, relpersistence, amname FROM pg_class c JOIN pg_am a ON a.oid = relam
WHERE relname LIKE 'tk\_%' AND relkind = 'r' ORDER BY 1;
INSERT INTO tk_temp SELECT i, 'row ' || i FROM generate_series(1, 5) i;
CREATE INDEX ON tk_temp USING gin (to_tsvector('simple', b));
SELECT * FROM tk_temp WHERE to_tsvector('simple', b) @@ '3';
ALTER TABLE tk_temp SET ACCESS METHOD mot;
ALTER TABLE tk_temp ALTER b TYPE varchar, ADD c int DEFAULT 7;
SELECT * FROM tk_temp WHERE a = 2;
TRUNCATE tk_temp;
BEGIN;
INSERT INTO tk_rows VALUES (1);
SELECT count(*) FROM tk_rows;
COMMIT;
SELECT count(*) FROM tk_rows;
DROP TABLE tk_temp, tk_rows, tk_named;

CREATE TABLE tk (a int PRIMARY KEY, gone text, b int, c text);
INSERT INTO tk SELECT i, 'gone', i % 10, 'row ' || i FROM generate_series(1, 2000) i;
CREATE INDEX tk_b ON tk (b, a);
ALTER TABLE tk DROP gone;
CREATE VIEW tk_all AS SELECT (SELECT count(*) FROM tk) AS rows, (SELECT sum(a) FROM tk WHERE b = 3) AS by_b,
	(SELECT c FROM tk WHERE a = 77), (SELECT count(*) FROM mot_verify('tk') WHERE problems > 0) AS wrong;
CREATE TABLE tk_files (n oid);

CREATE MATERIALIZED VIEW tk_view AS SELECT b, count(*) FROM tk GROUP BY b;
CREATE UNIQUE INDEX ON tk_view (b);
DELETE FROM tk WHERE a = 2000;
REFRESH MATERIALIZED VIEW CONCURRENTLY tk_view;
SELECT * FROM tk_view WHERE b IN (0, 1) ORDER BY b;
DROP MATERIALIZED VIEW tk_view;

-- all rows to new storage
INSERT INTO tk_files VALUES (pg_relation_filenode('tk'));
CLUSTER tk USING tk_b;
INSERT INTO tk_files VALUES (pg_relation_filenode('tk'));
SELECT a, b FROM tk LIMIT 3;
TABLE tk_all;
UPDATE tk SET c = c || '!' WHERE a = 77;
VACUUM FULL tk;
INSERT INTO tk_files VALUES (pg_relation_filenode('tk'));
TABLE tk_all;
SELECT relfrozenxid, reltuples FROM pg_class WHERE relname = 'tk';
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE tk_space LOCATION '';
BEGIN;
ALTER TABLE tk SET TABLESPACE tk_space;
TABLE tk_all;
ROLLBACK;
TABLE tk_all;
BEGIN;
UPDATE tk SET b = 3 WHERE a = 77;
SAVEPOINT s;
ALTER TABLE tk SET TABLESPACE tk_space;
ROLLBACK TO s;
ALTER TABLE tk SET TABLESPACE tk_space;
UPDATE tk SET b = 7 WHERE a = 77;
COMMIT;
INSERT INTO tk_files VALUES (pg_relation_filenode('tk'));
TABLE tk_all;
SELECT spcname FROM pg_class c JOIN pg_tablespace s ON s.oid = reltablespace WHERE relname = 'tk';
ALTER INDEX tk_b SET TABLESPACE tk_space;
INSERT INTO tk VALUES (77, 1, 'twice');
ALTER TABLE ALL IN TABLESPACE tk_space SET TABLESPACE pg_default;
ALTER INDEX tk_b SET TABLESPACE pg_default;
TABLE tk_all;
SELECT count(DISTINCT n) FROM tk_files;
-- indexes of all kinds, built when the rows are there
CREATE TABLE tk_keys (a int PRIMARY KEY, b text UNIQUE, c int UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX tk_lower ON tk_keys (lower(b), a) WHERE a > 10;
INSERT INTO tk_keys SELECT i, nullif('Row ' || i, 'Row 7'), nullif(i % 500, 0) FROM generate_series(499, 1, -1) i;
BEGIN;
INSERT INTO tk_keys SELECT i, NULL, NULL FROM generate_series(1000, 501, -1) i;
ALTER TABLE tk_keys SET TABLESPACE tk_space;
SELECT object, entries, problems FROM mot_verify('tk_keys');
SELECT a FROM tk_keys WHERE lower(b) = 'row 77' AND a > 10;
SAVEPOINT s;
INSERT INTO tk_keys VALUES (2000, 'Row 8', 2000);
ROLLBACK TO s;
INSERT INTO tk_keys VALUES (2000, 'Row 2000', 8);
COMMIT;
ALTER TABLE tk_keys SET TABLESPACE tk_space;
SELECT object, entries, problems FROM mot_verify('tk_keys');
INSERT INTO tk_keys VALUES (2000, 'Row 2000', 8);
DROP TABLE tk_keys;
DROP TABLESPACE tk_space;


-- samples
SELECT count(*) FROM tk TABLESAMPLE BERNOULLI (100);
SELECT count(*) FROM tk TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM tk TABLESAMPLE SYSTEM (0);
SELECT count(*) BETWEEN 100 AND 400 FROM tk TABLESAMPLE BERNOULLI (10) REPEATABLE (1);
SELECT (SELECT sum(a) FROM tk TABLESAMPLE BERNOULLI (20) REPEATABLE (5)) = (SELECT sum(a) FROM tk TABLESAMPLE BERNOULLI (20) REPEATABLE (5)) AS repeatable;
SELECT p, (SELECT count(*) FROM tk TABLESAMPLE BERNOULLI (p)) FROM (VALUES (0), (100)) v(p);

-- unlogged ones keep their rows as long as the server runs (t/table_unlogged.pl)
CREATE UNLOGGED TABLE tk_unlogged (a int PRIMARY KEY, b text);
INSERT INTO tk_unlogged VALUES (1, 'one'), (2, 'two');
CHECKPOINT;
UPDATE tk_unlogged SET b = 'zwei' WHERE a = 2;
ALTER TABLE tk SET UNLOGGED;
TABLE tk_all;
ALTER TABLE tk SET LOGGED;
TABLE tk_all;
ALTER TABLE tk_unlogged SET LOGGED;
SELECT * FROM tk_unlogged WHERE a = 2;
CREATE TABLE tk_refers (a int REFERENCES tk_unlogged);
ALTER TABLE tk_unlogged SET UNLOGGED;

-- rows that only this transaction has so far are reckoned with
BEGIN;
CREATE TABLE tk_new AS SELECT i FROM generate_series(1, 5000) i;
EXPLAIN SELECT * FROM tk_new;
DELETE FROM tk_new WHERE i > 4000;
EXPLAIN SELECT * FROM tk_new;
COMMIT;
EXPLAIN SELECT * FROM tk_new;

-- an index is not built in parallel, whatever is set
SET min_parallel_table_scan_size = 0;
ALTER TABLE tk SET (parallel_workers = 2);
CREATE INDEX ON tk (c);
SELECT count(*) FROM tk WHERE c = 'row 5';

-- an index is built before the server looks for nulls
CREATE TABLE tk_null (a int, b int);
INSERT INTO tk_null VALUES (1, 2), (2, NULL);
ALTER TABLE tk_null ADD PRIMARY KEY (a, b);
ALTER TABLE tk_null ADD c int PRIMARY KEY;
DROP TABLE tk_null;

DROP VIEW tk_all;
DROP TABLE tk, tk_refers, tk_unlogged, tk_new, tk_files;
