-- Publications of ordinary tables: made, changed and shown as those of heap tables.  (What comes
-- out of them: test/t/decoding.pl.)
SET client_min_messages = error;
CREATE SCHEMA pub_s;
CREATE TABLE pub_a (id int PRIMARY KEY, v int, w text) USING mot;
CREATE TABLE pub_s.b (id int, v int NOT NULL) USING mot;
CREATE UNIQUE INDEX b_v ON pub_s.b (v);
CREATE TABLE pub_p (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE pub_p1 PARTITION OF pub_p FOR VALUES FROM (0) TO (10) USING mot;
CREATE TABLE pub_p2 PARTITION OF pub_p FOR VALUES FROM (10) TO (20) USING heap;
CREATE UNLOGGED TABLE pub_u (id int PRIMARY KEY) USING mot;
CREATE FOREIGN TABLE pub_f (id int PRIMARY KEY) SERVER mot_server;

CREATE PUBLICATION pub_1 FOR TABLE pub_a (id, v), pub_s.b WHERE (v > 10), pub_p;
CREATE PUBLICATION pub_2 FOR TABLES IN SCHEMA pub_s;
CREATE PUBLICATION pub_3 FOR TABLE pub_u;
CREATE PUBLICATION pub_3 FOR TABLE pub_f;
CREATE PUBLICATION pub_4 FOR TABLE pub_p WITH (publish_via_partition_root = true);
SELECT pubname, tablename, rowfilter FROM pg_publication_tables WHERE pubname LIKE 'pub_%' ORDER BY 1, 2;

-- of those that are updated and deleted is asked what is asked of heap tables
UPDATE pub_s.b SET v = 1;
DELETE FROM pub_s.b;
INSERT INTO pub_s.b VALUES (1, 1), (2, 20);
PREPARE pub_u AS UPDATE pub_s.b SET v = v + 1;
EXECUTE pub_u;
INSERT INTO pub_s.b VALUES (1, 1) ON CONFLICT (v) DO UPDATE SET id = 2;
ALTER TABLE pub_s.b REPLICA IDENTITY USING INDEX b_v;
EXECUTE pub_u;
DELETE FROM pub_s.b WHERE v = 2;
INSERT INTO pub_s.b VALUES (1, 21) ON CONFLICT (v) DO UPDATE SET id = 3;
SELECT * FROM pub_s.b;
ALTER TABLE pub_s.b REPLICA IDENTITY NOTHING;
EXECUTE pub_u;
ALTER TABLE pub_s.b REPLICA IDENTITY FULL;
EXECUTE pub_u;
ALTER PUBLICATION pub_1 SET TABLE pub_a (v);
INSERT INTO pub_a VALUES (1, 1, 'w');
UPDATE pub_a SET v = 2;
ALTER PUBLICATION pub_1 SET TABLE pub_a WHERE (v > 0);
UPDATE pub_a SET v = 2;
ALTER TABLE pub_a REPLICA IDENTITY FULL;
UPDATE pub_a SET v = 2;
TRUNCATE pub_a, pub_s.b, pub_p;

DROP PUBLICATION pub_1, pub_2, pub_4;
DROP TABLE pub_a, pub_p, pub_u;
DROP FOREIGN TABLE pub_f;
DROP SCHEMA pub_s CASCADE;
