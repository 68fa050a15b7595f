--
-- Rows that change because something else does: types, domains, parents
--
CREATE TYPE ddl_comp AS (a int, b int);
CREATE DOMAIN ddl_dom AS int;
CREATE DOMAIN ddl_dom2 AS ddl_dom;
CREATE FOREIGN TABLE ddl_u (c ddl_comp, d ddl_dom, e ddl_dom2, f ddl_comp[]) SERVER mot_server;
INSERT INTO ddl_u VALUES (ROW (1, 2), 5, 6, ARRAY[ROW (1, 2)::ddl_comp]);

-- stored composite values keep their form
ALTER TYPE ddl_comp ALTER ATTRIBUTE a TYPE text;
ALTER TYPE ddl_comp ADD ATTRIBUTE c int;
SELECT * FROM ddl_u;
CREATE TABLE ddl_rowtype (x int);
ALTER TABLE ddl_u ADD COLUMN r ddl_rowtype;
ALTER TABLE ddl_rowtype ALTER x TYPE text;
ALTER TABLE ddl_u DROP COLUMN r;
ALTER TABLE ddl_rowtype ALTER x TYPE text;
DROP TABLE ddl_rowtype;

-- domains that become stricter look at the rows
ALTER DOMAIN ddl_dom ADD CONSTRAINT c1 CHECK (VALUE < 6);
ALTER DOMAIN ddl_dom ADD CONSTRAINT c1 CHECK (VALUE < 6) NOT VALID;
ALTER DOMAIN ddl_dom VALIDATE CONSTRAINT c1;
UPDATE ddl_u SET e = 4;
ALTER DOMAIN ddl_dom VALIDATE CONSTRAINT c1;
INSERT INTO ddl_u (d) VALUES (NULL);
ALTER DOMAIN ddl_dom SET NOT NULL;
DELETE FROM ddl_u WHERE d IS NULL;
ALTER DOMAIN ddl_dom SET NOT NULL;
ALTER TABLE ddl_u ADD COLUMN g ddl_dom;
ALTER TABLE ddl_u ADD COLUMN g ddl_dom DEFAULT 7;
ALTER TABLE ddl_u ADD COLUMN g ddl_dom DEFAULT 3;
SELECT d, e, g FROM ddl_u;
ALTER TABLE ddl_u ALTER f TYPE text, ALTER c TYPE text;
SELECT c, f FROM ddl_u;
DROP TABLE ddl_u;
DROP TYPE ddl_comp;
DROP DOMAIN ddl_dom CASCADE;

-- indexed domains and enums
CREATE DOMAIN ddl_code AS text COLLATE "C" CHECK (VALUE ~ '^[a-z]+$');
CREATE TYPE ddl_mood AS ENUM ('sad', 'ok', 'happy');
CREATE FOREIGN TABLE ddl_u (k ddl_code PRIMARY KEY, m ddl_mood) SERVER mot_server;
CREATE INDEX ON ddl_u (m);
INSERT INTO ddl_u VALUES ('b', 'happy'), ('a', 'sad'), ('c', 'ok');
INSERT INTO ddl_u VALUES ('A', 'sad');
INSERT INTO ddl_u VALUES ('a', 'sad');
SELECT * FROM ddl_u ORDER BY m;
SELECT * FROM ddl_u ORDER BY k DESC;
DROP TABLE ddl_u;
DROP DOMAIN ddl_code;
DROP TYPE ddl_mood;

-- a child of a heap table
CREATE TABLE ddl_parent (x int, y text);
CREATE FOREIGN TABLE ddl_child (z int PRIMARY KEY) INHERITS (ddl_parent) SERVER mot_server;
CREATE INDEX ON ddl_child (x);
INSERT INTO ddl_child VALUES (1, '1', 1), (2, '2', 2);
INSERT INTO ddl_parent VALUES (3, '3');
ALTER TABLE ddl_parent ADD COLUMN d int DEFAULT 9;
SELECT tableoid::regclass, * FROM ddl_parent ORDER BY x;
ALTER TABLE ddl_parent ALTER y TYPE int USING y::int;
ALTER TABLE ddl_parent ALTER x TYPE bigint;
ALTER TABLE ddl_parent ALTER x SET NOT NULL;
ALTER TABLE ddl_parent ADD CHECK (x > 1);
ALTER TABLE ONLY ddl_parent ADD CHECK (x > 2) NO INHERIT;
\d ddl_child
INSERT INTO ddl_child (z) VALUES (3);
SELECT x FROM ddl_child WHERE x >= 2;
BEGIN;
LOCK TABLE ddl_parent IN SHARE MODE;
SELECT count(*) FROM pg_locks WHERE relation = 'ddl_child'::regclass AND mode = 'ShareLock';
ROLLBACK;
ALTER TABLE ddl_child NO INHERIT ddl_parent;
DROP TABLE ddl_parent, ddl_child;

-- a partition
CREATE TABLE ddl_p (a int, b text) PARTITION BY RANGE (a);
CREATE FOREIGN TABLE ddl_p1 PARTITION OF ddl_p (PRIMARY KEY (a)) FOR VALUES FROM (0) TO (10) SERVER mot_server;
CREATE INDEX ON ddl_p (b);
\d ddl_p1
CREATE FOREIGN TABLE ddl_p2 (a int, b text) SERVER mot_server;
INSERT INTO ddl_p2 VALUES (15, 'a'), (25, 'b');
ALTER TABLE ddl_p ATTACH PARTITION ddl_p2 FOR VALUES FROM (10) TO (20);
ALTER TABLE ddl_p ATTACH PARTITION ddl_p2 FOR VALUES FROM (10) TO (30);
INSERT INTO ddl_p VALUES (5, 'q'), (15, 'r');
INSERT INTO ddl_p VALUES (5, 'q');
SELECT tableoid::regclass, * FROM ddl_p ORDER BY a, b;
ALTER TABLE ddl_p ADD COLUMN c int DEFAULT 3;
SELECT tableoid::regclass, * FROM ddl_p ORDER BY a, b;
ALTER TABLE ddl_p DETACH PARTITION ddl_p2;
DROP TABLE ddl_p2;
DROP TABLE ddl_p;
SELECT count(*) FROM mot_stat_tables;

-- a new constraint of a domain is looked at alone, in domains made from it, too
CREATE DOMAIN ddl_base AS int;
CREATE DOMAIN ddl_derived AS ddl_base;
CREATE FOREIGN TABLE ddl_t (x ddl_derived, y ddl_base) SERVER mot_server;
INSERT INTO ddl_t VALUES (1, 2), (NULL, 3);
ALTER DOMAIN ddl_base ADD CONSTRAINT later CHECK (VALUE > 2) NOT VALID;
ALTER DOMAIN ddl_base ADD CHECK (VALUE < 10);
ALTER DOMAIN ddl_base SET NOT NULL;
ALTER DOMAIN ddl_base ADD CHECK (VALUE > 1);
ALTER DOMAIN ddl_base VALIDATE CONSTRAINT later;
DELETE FROM ddl_t WHERE x = 1;
ALTER DOMAIN ddl_base VALIDATE CONSTRAINT later;
ALTER DOMAIN ddl_base VALIDATE CONSTRAINT later;
DROP FOREIGN TABLE ddl_t;
DROP DOMAIN ddl_derived, ddl_base;
