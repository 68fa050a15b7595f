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
