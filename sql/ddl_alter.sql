--
-- ALTER TABLE and ALTER FOREIGN TABLE
--
CREATE FOREIGN TABLE ddl_a (id int, a int, b text) SERVER mot_server;
INSERT INTO ddl_a SELECT i, i * 10, 'b' || i FROM generate_series(1, 5) i;

-- keys
ALTER TABLE ddl_a ADD PRIMARY KEY (id);
ALTER FOREIGN TABLE ddl_a ADD CONSTRAINT ddl_a_b UNIQUE (b), ADD UNIQUE (a, id);
ALTER TABLE ONLY ddl_a ADD CONSTRAINT again PRIMARY KEY (a);
\d ddl_a
INSERT INTO ddl_a VALUES (1, 1, 'x');
INSERT INTO ddl_a VALUES (6, 1, 'b1');
ALTER TABLE ddl_a DROP CONSTRAINT ddl_a_pkey, DROP CONSTRAINT IF EXISTS nothing;
DROP INDEX ddl_a_b;
ALTER TABLE ddl_a DROP CONSTRAINT ddl_a_b;
INSERT INTO ddl_a VALUES (1, 1, 'b1');
ALTER TABLE ddl_a ADD PRIMARY KEY (id);
ALTER TABLE ddl_a ADD UNIQUE (id) DEFERRABLE;
ALTER TABLE ddl_a ADD EXCLUDE (id WITH =);
DELETE FROM ddl_a WHERE a = 1;
INSERT INTO ddl_a VALUES (NULL, 7, 'b7');
ALTER TABLE ddl_a ADD PRIMARY KEY (id);
DELETE FROM ddl_a WHERE id IS NULL;
CREATE UNIQUE INDEX ddl_a_u ON ddl_a (id);
CREATE INDEX ddl_a_n ON ddl_a (id DESC);
ALTER TABLE ddl_a ADD CONSTRAINT ddl_a_key PRIMARY KEY USING INDEX ddl_a_n;
ALTER TABLE ddl_a ADD CONSTRAINT ddl_a_key PRIMARY KEY USING INDEX nothing;
ALTER TABLE ddl_a ADD CONSTRAINT ddl_a_key PRIMARY KEY USING INDEX ddl_a_u;
ALTER TABLE ddl_a ADD CONSTRAINT ddl_a_key2 UNIQUE USING INDEX ddl_a_key;
\d ddl_a
INSERT INTO ddl_a VALUES (2, 7, 'b7');
INSERT INTO ddl_a VALUES (NULL, 7, 'b7');

-- ADD COLUMN: the rows that were there get the value, too
ALTER TABLE ddl_a ADD COLUMN n int;
ALTER TABLE ddl_a ADD COLUMN c int DEFAULT 7;
ALTER TABLE ddl_a ADD COLUMN s serial, ADD COLUMN g text GENERATED ALWAYS AS (b || '!') STORED;
ALTER TABLE ddl_a ADD COLUMN i int GENERATED ALWAYS AS IDENTITY (START 10);
ALTER TABLE ddl_a ADD COLUMN u uuid DEFAULT gen_random_uuid();
SELECT id, a, b, n, c, s, g, i FROM ddl_a ORDER BY id;
SELECT count(DISTINCT u) FROM ddl_a;
ALTER TABLE ddl_a ADD COLUMN z int DEFAULT 1, ALTER COLUMN z SET DEFAULT 2;
INSERT INTO ddl_a (id, a, b) VALUES (20, 200, 'b20');
SELECT id, c, s, g, i, z FROM ddl_a ORDER BY id;
ALTER TABLE ddl_a ADD COLUMN x int NOT NULL;
ALTER TABLE ddl_a ADD COLUMN x int PRIMARY KEY DEFAULT 1;
ALTER TABLE ddl_a ADD COLUMN x int DEFAULT 1 UNIQUE;
ALTER TABLE ddl_a ADD COLUMN x int CHECK (x > 1) DEFAULT 1;
ALTER TABLE ddl_a ADD COLUMN x int NOT NULL DEFAULT 1 CHECK (x > 0);
ALTER TABLE ddl_a ADD COLUMN IF NOT EXISTS x int UNIQUE;
ALTER TABLE ddl_a ADD COLUMN y int UNIQUE;
ALTER TABLE IF EXISTS ddl_nothing ADD COLUMN y int UNIQUE;
\d ddl_a
ALTER TABLE ddl_a DROP COLUMN y, DROP COLUMN x, DROP COLUMN z, DROP COLUMN u, DROP COLUMN s;
-- a dropped column takes its indexes along
ALTER TABLE ddl_a DROP COLUMN id;
\d ddl_a
SELECT * FROM ddl_a ORDER BY a;
DROP TABLE ddl_a;

-- NOT NULL and CHECK look at the rows
CREATE FOREIGN TABLE ddl_a (id int PRIMARY KEY, a int, b int) SERVER mot_server;
INSERT INTO ddl_a VALUES (1, 1, 1), (2, NULL, 2);
CREATE INDEX ddl_a_ab ON ddl_a (a, b);
ALTER TABLE ddl_a ALTER a SET NOT NULL;
ALTER TABLE ddl_a ADD CONSTRAINT ck CHECK (b < 2);
ALTER TABLE ddl_a ADD CONSTRAINT ck CHECK (b < 2) NOT VALID;
ALTER TABLE ddl_a VALIDATE CONSTRAINT ck;
INSERT INTO ddl_a VALUES (3, 3, 3);
UPDATE ddl_a SET a = 2, b = 0 WHERE id = 2;
ALTER TABLE ddl_a VALIDATE CONSTRAINT ck;
ALTER TABLE ddl_a ALTER a SET NOT NULL;
INSERT INTO ddl_a VALUES (4, NULL, 1);
-- the index changed its form, and serves on
INSERT INTO ddl_a VALUES (5, 1, 1), (6, 3, 1);
SELECT id FROM ddl_a WHERE a = 1 ORDER BY id;
SELECT id FROM ddl_a WHERE a > 1 ORDER BY a;
BEGIN;
ALTER TABLE ddl_a ALTER a DROP NOT NULL;
INSERT INTO ddl_a VALUES (7, NULL, 1), (8, 9, 1);
SELECT id FROM ddl_a WHERE a IS NULL;
SELECT id FROM ddl_a WHERE a > 1 ORDER BY a;
ROLLBACK;
SELECT id FROM ddl_a WHERE a > 1 ORDER BY a;
BEGIN;
INSERT INTO ddl_a VALUES (9, 10, 1);
DELETE FROM ddl_a WHERE id = 1;
ALTER TABLE ddl_a ALTER a DROP NOT NULL;
UPDATE ddl_a SET a = NULL WHERE id = 5;
COMMIT;
SELECT id, a FROM ddl_a WHERE a >= 1 ORDER BY a;
SELECT id FROM ddl_a WHERE a IS NULL;
DROP TABLE ddl_a;

-- ALTER COLUMN TYPE stores the rows anew
CREATE FOREIGN TABLE ddl_a (id int PRIMARY KEY, a text COLLATE "C", b varchar(10), c int, d numeric) SERVER mot_server;
INSERT INTO ddl_a SELECT i, i::text, 'b' || i, i, i / 4.0 FROM generate_series(1, 12) i;
CREATE INDEX ddl_a_a ON ddl_a (a DESC);
CREATE UNIQUE INDEX ddl_a_bc ON ddl_a (b, c);
ALTER TABLE ddl_a ADD CONSTRAINT ddl_a_d UNIQUE (d), ADD CONSTRAINT ddl_a_pos CHECK (c > 0);
COMMENT ON INDEX ddl_a_a IS 'index on a';
COMMENT ON CONSTRAINT ddl_a_d ON ddl_a IS 'unique d';
ALTER TABLE ddl_a ALTER id TYPE bigint;
ALTER TABLE ddl_a ALTER a TYPE int;
ALTER TABLE ddl_a ALTER a TYPE int USING a::int + id::int;
ALTER TABLE ddl_a ALTER b TYPE text, ALTER c TYPE text USING 'c' || c;
ALTER TABLE ddl_a DROP CONSTRAINT ddl_a_pos, ALTER b TYPE text, ALTER c TYPE text USING 'c' || c,
    ALTER d TYPE float8, ADD COLUMN e int DEFAULT 4, ADD UNIQUE (c);
\d ddl_a
SELECT obj_description('ddl_a_a'::regclass), obj_description(oid) FROM pg_constraint WHERE conname = 'ddl_a_d';
SELECT * FROM ddl_a ORDER BY id;
SELECT id FROM ddl_a WHERE a BETWEEN 8 AND 12 ORDER BY a DESC;
INSERT INTO ddl_a VALUES (2, 100, 'b100', 'c100', 100);
INSERT INTO ddl_a VALUES (100, 100, 'b100', 'c100', 0.5);
ALTER TABLE ddl_a ALTER d TYPE int;
SELECT id, d FROM ddl_a ORDER BY id LIMIT 2;
ALTER TABLE ddl_a ALTER nothing TYPE int;
ALTER TABLE ddl_a ALTER a TYPE json USING to_json(a);
SELECT id, a FROM ddl_a WHERE id = 3;
BEGIN;
ALTER TABLE ddl_a ALTER id TYPE text;
INSERT INTO ddl_a (id) VALUES ('x');
SELECT id FROM ddl_a WHERE id IN ('1', 'x') ORDER BY id;
SAVEPOINT s;
ALTER TABLE ddl_a ALTER id TYPE int USING ascii(id) * 100 + length(id);
SELECT id FROM ddl_a ORDER BY id;
ROLLBACK TO s;
ALTER TABLE ddl_a ALTER a TYPE bigint USING -a;
SELECT id, a FROM ddl_a ORDER BY a LIMIT 2;
ROLLBACK;
SELECT id, a FROM ddl_a ORDER BY a LIMIT 2;
ALTER TABLE ddl_a ADD COLUMN g int GENERATED ALWAYS AS (a + 1) STORED;
ALTER TABLE ddl_a ALTER a TYPE bigint;
ALTER TABLE ddl_a ALTER g TYPE bigint USING 1;
ALTER TABLE ddl_a ALTER g TYPE bigint;
SELECT id, g FROM ddl_a WHERE id = 3;
-- not while our own query uses the table
BEGIN;
DECLARE cur CURSOR FOR SELECT id FROM ddl_a;
FETCH cur;
ALTER TABLE ddl_a ALTER d TYPE text;
ROLLBACK;
DROP TABLE ddl_a;

-- what means nothing to a table in memory, and what is refused
CREATE FOREIGN TABLE ddl_a (id int PRIMARY KEY, a int) SERVER mot_server;
ALTER TABLE ddl_a SET (fillfactor = 70);
ALTER TABLE ddl_a RESET (fillfactor);
ALTER TABLE ddl_a SET TABLESPACE pg_default;
ALTER TABLE ddl_a SET TABLESPACE nowhere;
ALTER TABLE ddl_a SET LOGGED;
ALTER TABLE ddl_a SET UNLOGGED;
ALTER TABLE ddl_a SET WITHOUT CLUSTER;
ALTER TABLE ddl_a CLUSTER ON ddl_a_pkey;
ALTER TABLE ddl_a REPLICA IDENTITY DEFAULT;
ALTER TABLE ddl_a REPLICA IDENTITY FULL;
ALTER TABLE ddl_a ALTER a SET STATISTICS 200;
ALTER TABLE ddl_a ENABLE ROW LEVEL SECURITY;

-- names, schema, owner, comments
CREATE ROLE regress_ddl_one;
CREATE ROLE regress_ddl_two;
CREATE SCHEMA ddl_s;
GRANT ALL ON SCHEMA ddl_s TO regress_ddl_one, regress_ddl_two;
ALTER TABLE ddl_a ADD COLUMN s serial;
COMMENT ON TABLE ddl_a IS 'a table';
COMMENT ON COLUMN ddl_a.a IS 'a column';
SELECT obj_description('ddl_a'::regclass), col_description('ddl_a'::regclass, 2);
INSERT INTO ddl_a VALUES (1, 1);
ALTER TABLE ddl_a RENAME TO ddl_r;
ALTER TABLE ddl_r RENAME COLUMN a TO r;
ALTER TABLE ddl_r RENAME CONSTRAINT ddl_a_pkey TO ddl_r_key;
ALTER TABLE ddl_r SET SCHEMA ddl_s;
ALTER TABLE ddl_s.ddl_r OWNER TO regress_ddl_one;
SELECT relname, relnamespace::regnamespace, relowner::regrole FROM pg_class
    WHERE relname IN ('ddl_r', 'ddl_r_key', 'ddl_a_s_seq') ORDER BY relname;
REASSIGN OWNED BY regress_ddl_one TO regress_ddl_two;
SELECT relname, relowner::regrole FROM pg_class
    WHERE relname IN ('ddl_r', 'ddl_r_key', 'ddl_a_s_seq') ORDER BY relname;
INSERT INTO ddl_s.ddl_r VALUES (1, 1);
SELECT * FROM ddl_s.ddl_r;
SET ROLE regress_ddl_one;
ALTER TABLE ddl_s.ddl_r ADD UNIQUE (r);
ALTER TABLE ddl_s.ddl_r ADD COLUMN q int DEFAULT 1;
CREATE INDEX ON ddl_s.ddl_r (r);
REINDEX TABLE ddl_s.ddl_r;
DROP TABLE ddl_s.ddl_r;
RESET ROLE;
DROP OWNED BY regress_ddl_one, regress_ddl_two;
SELECT count(*) FROM mot_stat_tables;
DROP SCHEMA ddl_s;
DROP ROLE regress_ddl_one, regress_ddl_two;

-- functions called for each row cannot have the table while it is rewritten: its rows are not yet what the catalogue says
CREATE FOREIGN TABLE alter_busy (id int PRIMARY KEY, v int) SERVER mot_server;
CREATE INDEX alter_busy_v ON alter_busy (v);
INSERT INTO alter_busy SELECT i, i FROM generate_series(1, 3) i;
CREATE FUNCTION alter_reads(k int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(v) FROM alter_busy); END $$;
CREATE FUNCTION alter_writes(k int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN UPDATE alter_busy SET v = v + 100 WHERE id = k; RETURN k; END $$;
CREATE FUNCTION alter_tries(k int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN alter_writes(k); EXCEPTION WHEN object_in_use THEN RETURN -k; END $$;
SELECT alter_reads(1), alter_writes(1);
ALTER TABLE alter_busy ALTER v TYPE bigint USING alter_reads(id);
ALTER TABLE alter_busy ADD n bigint DEFAULT alter_writes(2);
SELECT * FROM alter_busy ORDER BY id;
ALTER TABLE alter_busy ALTER v TYPE bigint USING alter_tries(id);
SELECT * FROM alter_busy WHERE v < 0 ORDER BY id;
ALTER TABLE alter_busy ADD CHECK (alter_reads(id) < 0);
INSERT INTO alter_busy VALUES (4, -4);
SELECT alter_reads(1), object, problems FROM mot_verify('alter_busy') WHERE problems > 0;
DROP FOREIGN TABLE alter_busy;
DROP FUNCTION alter_reads, alter_writes, alter_tries;

-- a column that goes and comes back has the key that it is said to have
CREATE FOREIGN TABLE alter_again (id int, v int) SERVER mot_server;
ALTER TABLE alter_again DROP COLUMN v, ADD COLUMN IF NOT EXISTS v int UNIQUE;
INSERT INTO alter_again VALUES (1, 1), (2, 1);
ALTER TABLE alter_again ADD COLUMN IF NOT EXISTS v int UNIQUE;
SELECT count(*) FROM pg_index WHERE indrelid = 'alter_again'::regclass;
DROP FOREIGN TABLE alter_again;

-- ... also one that goes with another, and below; and none twice
CREATE FOREIGN TABLE alter_again (id int, w int, v int GENERATED ALWAYS AS (w + 1) STORED) SERVER mot_server;
CREATE FOREIGN TABLE alter_below () INHERITS (alter_again) SERVER mot_server;
INSERT INTO alter_below VALUES (1, 1);
ALTER TABLE alter_again DROP COLUMN w CASCADE, ADD COLUMN IF NOT EXISTS v int DEFAULT 5 NOT NULL UNIQUE;
SELECT * FROM alter_again;
ALTER TABLE alter_again ADD COLUMN IF NOT EXISTS x int UNIQUE, ADD COLUMN IF NOT EXISTS x int PRIMARY KEY,
	ADD COLUMN IF NOT EXISTS id int REFERENCES nothing;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'alter_again'::regclass ORDER BY 1;
DROP FOREIGN TABLE alter_again, alter_below;

-- keys come before what wants their columns NOT NULL
CREATE TABLE alter_above (id int NOT NULL, v int);
CREATE FOREIGN TABLE alter_again (id int, v int) SERVER mot_server;
ALTER TABLE alter_again ALTER id ADD GENERATED ALWAYS AS IDENTITY, INHERIT alter_above, ADD PRIMARY KEY (id);
INSERT INTO alter_again (v) VALUES (7);
SELECT * FROM alter_above;
DROP TABLE alter_above, alter_again;

-- ... and what the server has last comes last, in its order
CREATE TABLE alter_above (id int NOT NULL);
CREATE FOREIGN TABLE alter_again (id int NOT NULL) SERVER mot_server;
ALTER TABLE alter_again INHERIT alter_above, NO INHERIT alter_above, ADD PRIMARY KEY (id),
	ALTER id SET START 5 RESTART SET GENERATED BY DEFAULT, ALTER id ADD GENERATED ALWAYS AS IDENTITY;
INSERT INTO alter_again DEFAULT VALUES;
SELECT * FROM alter_again;
-- not as what others make of its default is an added column filled, nor below
ALTER TABLE alter_again ADD COLUMN w int NOT NULL, ALTER w ADD GENERATED ALWAYS AS IDENTITY;
ALTER TABLE alter_again INHERIT alter_above;
ALTER TABLE alter_above ADD COLUMN v int DEFAULT 5 NOT NULL, ADD COLUMN w int, ALTER v SET DEFAULT 6, ALTER w SET DEFAULT 7;
SELECT * FROM alter_above;
DROP TABLE alter_above, alter_again;

-- event triggers come before it is looked which table it is
CREATE FOREIGN TABLE alter_named (id int, v int) SERVER mot_server;
CREATE FOREIGN TABLE alter_other (id int, v int) SERVER mot_server;
INSERT INTO alter_named VALUES (1, 1);
INSERT INTO alter_other VALUES (2, 2);
CREATE FUNCTION alter_swaps() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	ALTER TABLE alter_named RENAME TO alter_swap;
	ALTER TABLE alter_other RENAME TO alter_named;
	ALTER TABLE alter_swap RENAME TO alter_other;
END $$;
CREATE EVENT TRIGGER alter_swaps ON ddl_command_start WHEN TAG IN ('ALTER FOREIGN TABLE') EXECUTE FUNCTION alter_swaps();
ALTER FOREIGN TABLE alter_named ALTER v TYPE text;
DROP EVENT TRIGGER alter_swaps;
SELECT id, pg_typeof(v) FROM alter_named WHERE v = '2';
SELECT id, pg_typeof(v) FROM alter_other;
DROP FOREIGN TABLE alter_named, alter_other;
DROP FUNCTION alter_swaps;

-- ... nor whether it is there
CREATE FUNCTION alter_comes() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	IF to_regclass('alter_late') IS NULL THEN
		CREATE FOREIGN TABLE alter_late (id int, v int) SERVER mot_server;
		INSERT INTO alter_late VALUES (1, 7);
	END IF;
END $$;
CREATE EVENT TRIGGER alter_comes ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION alter_comes();
ALTER TABLE IF EXISTS alter_late ALTER v TYPE text;
DROP EVENT TRIGGER alter_comes;
SELECT id, pg_typeof(v) FROM alter_late WHERE v = '7';
DROP FOREIGN TABLE alter_late;
DROP FUNCTION alter_comes;

-- and after all is done
CREATE TABLE alter_mended (id int, v int NOT NULL) USING mot;
CREATE INDEX alter_mended_v ON alter_mended (v);
CREATE FUNCTION alter_ends() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO alter_mended VALUES (1, NULL); END $$;
CREATE EVENT TRIGGER alter_ends ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION alter_ends();
ALTER TABLE alter_mended ALTER v DROP NOT NULL;
DROP EVENT TRIGGER alter_ends;
SELECT id FROM alter_mended WHERE v IS NULL;
DROP TABLE alter_mended;
DROP FUNCTION alter_ends;
