-- a table's own limit: the statement that meets it fails, and room made is room again
CREATE FOREIGN TABLE bounded (id int PRIMARY KEY, b text) SERVER mot_server OPTIONS (max_size '4MB');
-- (with something older owed before it)
INSERT INTO bounded VALUES (0, 'a');
UPDATE bounded SET b = 'b';
DELETE FROM bounded;
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) i;
SELECT count(*) FROM bounded;
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(1, 1000) i;
ALTER FOREIGN TABLE bounded OPTIONS (SET max_size '64MB');
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(1001, 20000) i;
ALTER FOREIGN TABLE bounded OPTIONS (DROP max_size);
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(20001, 80000) i;
SELECT count(*) FROM bounded;
DROP FOREIGN TABLE bounded;

-- an ordinary table's limit is a label
CREATE TABLE bounded (id int PRIMARY KEY, b text) USING mot;
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size=4MB';
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) i;
SELECT count(*) FROM bounded;
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(1, 1000) i;
BEGIN;
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size=64MB';
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(1001, 20000) i;
ROLLBACK;
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(1001, 20000) i;
BEGIN;
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size=64MB';
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(1001, 20000) i;
COMMIT;
SECURITY LABEL FOR mot ON TABLE bounded IS NULL;
INSERT INTO bounded SELECT i, repeat('x', 1000) FROM generate_series(20001, 80000) i;
SELECT count(*) FROM bounded;
-- what it cannot be, and of what
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size';
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size=-1';
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size=4 miles';
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size=1e300';
SECURITY LABEL FOR mot ON TABLE bounded IS 'size=4MB';
SECURITY LABEL FOR mot ON COLUMN bounded.b IS 'max_size=4MB';
SECURITY LABEL FOR mot ON SCHEMA public IS 'max_size=4MB';
CREATE TABLE bounded_parts (id int) PARTITION BY LIST (id);
SECURITY LABEL FOR mot ON TABLE bounded_parts IS 'max_size=4MB';
CREATE FOREIGN TABLE bounded_foreign (id int PRIMARY KEY, b text) SERVER mot_server OPTIONS (max_size '4MB');
SECURITY LABEL FOR mot ON TABLE bounded_foreign IS 'max_size=4MB';
SECURITY LABEL FOR mot ON FOREIGN TABLE bounded_foreign IS 'max_size=4MB';
CREATE ROLE regress_bounded;
SET ROLE regress_bounded;
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size=4MB';
RESET ROLE;
DROP ROLE regress_bounded;
-- a heap table keeps it for later
ALTER TABLE bounded SET ACCESS METHOD heap;
SECURITY LABEL FOR mot ON TABLE bounded IS 'max_size=256MB';
ALTER TABLE bounded SET ACCESS METHOD mot;
DROP TABLE bounded, bounded_parts;
-- and an option becomes one
SELECT mot_to_table('bounded_foreign');
SELECT objname, provider, label FROM pg_seclabels WHERE objname LIKE 'bounded%';
INSERT INTO bounded_foreign SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) i;
DROP TABLE bounded_foreign;
SELECT count(*) FROM pg_seclabels WHERE objname LIKE 'bounded%';

-- what a role's tables may take together, or a database's (test/t/memory_limits.pl): how it is said
CREATE ROLE regress_limited;
SECURITY LABEL FOR mot ON ROLE regress_limited IS 'max_size=big';
SECURITY LABEL FOR mot ON DATABASE regression IS '4MB';
SECURITY LABEL FOR mot ON ROLE regress_limited IS 'max_size=4MB';
CREATE TABLE limited_one (id int PRIMARY KEY, b text) USING mot;
CREATE TABLE limited_two (id int PRIMARY KEY, b text) USING mot;
CREATE TABLE limited_three (id int) USING mot;
ALTER TABLE limited_one OWNER TO regress_limited;
ALTER TABLE limited_two OWNER TO regress_limited;
INSERT INTO limited_one SELECT i, repeat('x', 1000) FROM generate_series(1, 2000) i;
\set VERBOSITY terse
INSERT INTO limited_two SELECT i, repeat('x', 1000) FROM generate_series(1, 2000) i;
\set VERBOSITY default
SELECT rolname, tables, counted_bytes BETWEEN 2000000 AND max_bytes / 16 * 17 AS counted, max_bytes FROM mot_stat_memory_roles
    WHERE rolname = 'regress_limited';
-- what counts for others is not shown, and who is limited does not say how much
SET ROLE regress_limited;
SELECT rolname = 'regress_limited' AS own, bool_and(counted_bytes IS NULL) AS hidden FROM mot_stat_memory_roles GROUP BY 1 ORDER BY 1;
DO $$
BEGIN
    SECURITY LABEL FOR mot ON ROLE regress_limited IS 'max_size=64MB';
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'nor may it set its own';
END $$;
RESET ROLE;
ALTER TABLE limited_two OWNER TO CURRENT_USER;
INSERT INTO limited_two SELECT i, repeat('x', 1000) FROM generate_series(1, 2000) i;
DROP TABLE limited_one, limited_two, limited_three;
DROP ROLE regress_limited;
SHOW mot.insert_reserve;
SET mot.insert_reserve = 20;
ALTER SYSTEM SET mot.insert_reserve = 1;
