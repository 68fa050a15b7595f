--
-- VACUUM, ANALYZE, CLUSTER, LOCK TABLE, TRUNCATE, COPY
--
CREATE FOREIGN TABLE ddl_m (id int PRIMARY KEY, b text, g int GENERATED ALWAYS AS (id + 1) STORED) SERVER mot_server;
CREATE TABLE ddl_heap (id int);
INSERT INTO ddl_m VALUES (1, 'x'), (2, 'y'), (3, NULL);
INSERT INTO ddl_heap VALUES (1);
VACUUM ddl_m;
SELECT reltuples FROM pg_class WHERE relname = 'ddl_m';
VACUUM ANALYZE ddl_m;
SELECT relname, reltuples FROM pg_class WHERE relname IN ('ddl_m', 'ddl_m_pkey') ORDER BY relname;
DELETE FROM ddl_m WHERE id = 3;
ANALYZE;
SELECT reltuples FROM pg_class WHERE relname = 'ddl_m';
INSERT INTO ddl_m VALUES (3, NULL);
VACUUM (ANALYZE) ddl_heap, ddl_m (b);
SELECT relname, reltuples FROM pg_class WHERE relname IN ('ddl_m', 'ddl_heap') ORDER BY relname;
VACUUM FULL ddl_m;
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) ddl_m, ddl_heap;
VACUUM ddl_m (b);
VACUUM (ANALYZE) ddl_m (nothing);
VACUUM ddl_m, ddl_nothing;
ANALYZE ddl_m (id, b);
BEGIN;
ANALYZE ddl_m;
ANALYZE;
VACUUM ddl_m;
ROLLBACK;
CLUSTER ddl_m USING ddl_m_pkey;
CLUSTER ddl_m;
SELECT attname, null_frac FROM pg_stats WHERE tablename = 'ddl_m' ORDER BY attname;
CREATE STATISTICS ddl_stat ON id, b FROM ddl_m;
ANALYZE ddl_m;
SELECT stxname FROM pg_statistic_ext WHERE stxrelid = 'ddl_m'::regclass;
DROP STATISTICS ddl_stat;

-- LOCK TABLE
LOCK TABLE ddl_m;
BEGIN;
LOCK TABLE ddl_heap, ddl_m, ONLY ddl_m IN SHARE MODE;
LOCK TABLE ddl_m IN ROW EXCLUSIVE MODE NOWAIT;
SELECT relation::regclass, mode FROM pg_locks WHERE relation IN ('ddl_m'::regclass, 'ddl_heap'::regclass)
    AND locktype = 'relation' ORDER BY 1, 2;
COMMIT;
CREATE ROLE regress_ddl_user;
SET ROLE regress_ddl_user;
BEGIN;
LOCK TABLE ddl_m IN ACCESS SHARE MODE;
ROLLBACK;
VACUUM ANALYZE ddl_m;
ANALYZE ddl_m;
COPY ddl_m TO STDOUT;
\copy ddl_m FROM '/dev/null'
TRUNCATE ddl_m;
RESET ROLE;
GRANT SELECT ON ddl_m TO regress_ddl_user;
SET ROLE regress_ddl_user;
BEGIN;
LOCK TABLE ddl_m IN ACCESS SHARE MODE;
LOCK TABLE ddl_m IN ROW SHARE MODE;
ROLLBACK;
COPY ddl_m TO STDOUT;
RESET ROLE;
BEGIN READ ONLY;
LOCK TABLE ddl_m IN ROW EXCLUSIVE MODE;
LOCK TABLE ddl_m IN SHARE MODE;
ROLLBACK;
DROP OWNED BY regress_ddl_user;
DROP ROLE regress_ddl_user;

-- COPY TO
COPY ddl_m TO STDOUT;
COPY ddl_m (b, id) TO STDOUT WITH (FORMAT csv, HEADER, NULL 'none', FORCE_QUOTE (b));
COPY ddl_m (g) TO STDOUT;
COPY ddl_m (nothing) TO STDOUT;
COPY ddl_m FROM STDIN;
4	four
5	\N
\.
COPY ddl_m TO STDOUT;

-- TRUNCATE
BEGIN;
TRUNCATE ddl_m, ddl_heap;
SELECT count(*) FROM ddl_m;
INSERT INTO ddl_m VALUES (4);
INSERT INTO ddl_m VALUES (4);
ROLLBACK;
SELECT count(*) FROM ddl_m;
BEGIN;
SAVEPOINT s;
TRUNCATE ddl_m;
INSERT INTO ddl_m VALUES (10);
SAVEPOINT s2;
TRUNCATE ddl_m;
INSERT INTO ddl_m VALUES (11);
ROLLBACK TO s2;
SELECT * FROM ddl_m;
ROLLBACK TO s;
SELECT count(*) FROM ddl_m;
COMMIT;
SELECT count(*) FROM ddl_m;
CREATE FOREIGN TABLE ddl_serial (id serial, a int) SERVER mot_server;
INSERT INTO ddl_serial (a) VALUES (1), (2);
TRUNCATE ddl_serial RESTART IDENTITY;
INSERT INTO ddl_serial (a) VALUES (1);
TRUNCATE ddl_serial CONTINUE IDENTITY;
INSERT INTO ddl_serial (a) VALUES (1);
SELECT * FROM ddl_serial;
DROP TABLE ddl_serial;

-- COPY FREEZE has the heap's rules
\copy ddl_m FROM '/dev/null' WITH (FREEZE)
\copy ddl_m FROM '/dev/null' WITH (FREEZE, FREEZE off)
BEGIN;
TRUNCATE ddl_m;
COPY ddl_m FROM STDIN WITH (FREEZE);
1	one
2	two
\.
SELECT * FROM ddl_m ORDER BY id;
SELECT * FROM ddl_m WHERE id = 2;
COMMIT;
SELECT * FROM ddl_m ORDER BY id;
BEGIN;
TRUNCATE ddl_m;
SAVEPOINT s;
\copy ddl_m FROM '/dev/null' WITH (FREEZE)
ROLLBACK;
BEGIN;
SAVEPOINT s;
TRUNCATE ddl_m;
RELEASE s;
COPY ddl_m FROM STDIN FREEZE;
3	three
\.
SELECT * FROM ddl_m;
ROLLBACK;
BEGIN;
TRUNCATE ddl_m;
DECLARE c CURSOR FOR SELECT * FROM ddl_m;
\copy ddl_m FROM '/dev/null' WITH (FREEZE)
ROLLBACK;
BEGIN;
CREATE FOREIGN TABLE ddl_new (id int PRIMARY KEY, a int CHECK (a > 0)) SERVER mot_server;
COPY ddl_new FROM STDIN WITH (FREEZE true);
1	1
2	2
\.
SAVEPOINT s;
COPY ddl_new FROM STDIN;
1	1
\.
ROLLBACK TO s;
SELECT * FROM ddl_new;
COMMIT;
SELECT * FROM ddl_new WHERE id = 2;
BEGIN;
TRUNCATE ddl_new;
COPY ddl_new FROM STDIN WITH (FREEZE);
7	1
7	2
\.
ROLLBACK;
BEGIN;
TRUNCATE ddl_new;
COPY ddl_new FROM STDIN WITH (FREEZE);
7	0
\.
ROLLBACK;
SELECT * FROM ddl_new ORDER BY id;
COPY ddl_new FROM STDIN WITH (FREEZE off);
3	3
\.
SELECT count(*) FROM ddl_new;
DROP TABLE ddl_m, ddl_heap, ddl_new;
