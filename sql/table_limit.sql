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
