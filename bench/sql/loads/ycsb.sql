-- ycsb.sql
--	  YCSB's table, a thousand bytes in ten columns a row, and a table of keys
--	  and values as Redis has them; psql -v records=100000.
--
-- Keys have one width, so that their order as text is that of the numbers.

CREATE TABLE usertable (
	ycsb_key text PRIMARY KEY,
	field0 text, field1 text, field2 text, field3 text, field4 text,
	field5 text, field6 text, field7 text, field8 text, field9 text
);

INSERT INTO usertable
SELECT 'user' || 100000000000 + i, f, f, f, f, f, f, f, f, f, f
FROM (SELECT i, repeat(md5(i::text), 3) || 'abcd' AS f FROM generate_series(1, :records) i) t;

CREATE SEQUENCE ycsb_next CACHE 100;
SELECT setval('ycsb_next', 100000000000 + :records) \g /dev/null

CREATE TABLE kv (key text PRIMARY KEY, value text NOT NULL);

INSERT INTO kv SELECT 'key:' || 100000000000 + i, repeat('x', 100) FROM generate_series(1, :records) i;

ANALYZE;
