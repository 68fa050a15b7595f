--
-- All the ways a table goes
--
CREATE SCHEMA ddl_s;
CREATE FOREIGN TABLE ddl_a (id int PRIMARY KEY, s text) SERVER mot_server;
CREATE FOREIGN TABLE ddl_b (id int PRIMARY KEY) SERVER mot_server;
CREATE FOREIGN TABLE ddl_s.ddl_c (id int PRIMARY KEY) SERVER mot_server;
CREATE TABLE ddl_heap (id int PRIMARY KEY);
CREATE VIEW ddl_view AS SELECT a.id FROM ddl_a a JOIN ddl_heap h USING (id);
CREATE SEQUENCE ddl_seq OWNED BY ddl_a.id;
ALTER TABLE ddl_heap ALTER id SET DEFAULT nextval('ddl_seq');
INSERT INTO ddl_a VALUES (1, 'one');
DROP TABLE ddl_a;
DROP TABLE ddl_a, ddl_heap;
DROP VIEW ddl_a;
DROP TABLE ddl_view;
DROP TABLE ddl_a, ddl_view;
DROP TABLE ddl_a, ddl_nothing;
BEGIN;
DROP TABLE ddl_a, ddl_heap, ddl_s.ddl_c CASCADE;
SELECT relname FROM mot_stat_tables ORDER BY relname;
ROLLBACK;
SELECT * FROM ddl_a;
DROP VIEW ddl_view;
-- they depend on each other, in one list
DROP TABLE IF EXISTS ddl_heap, ddl_nothing, ddl_a, ddl_noschema.nothing;
SELECT relname FROM mot_stat_tables ORDER BY relname;
DROP TABLE IF EXISTS ddl_a;
BEGIN;
SAVEPOINT s;
DROP TABLE ddl_b;
ROLLBACK TO s;
INSERT INTO ddl_b VALUES (1);
SAVEPOINT s2;
DROP TABLE ddl_b;
RELEASE s2;
ROLLBACK TO s;
INSERT INTO ddl_b VALUES (2);
COMMIT;
SELECT * FROM ddl_b;

-- the schema's owner may, too, but not others
CREATE ROLE regress_ddl_owner;
ALTER SCHEMA ddl_s OWNER TO regress_ddl_owner;
SET ROLE regress_ddl_owner;
DROP TABLE ddl_b;
DROP TABLE ddl_s.ddl_c, ddl_b;
BEGIN;
DROP TABLE ddl_s.ddl_c;
ROLLBACK;
RESET ROLE;
ALTER SCHEMA ddl_s OWNER TO CURRENT_USER;
DROP ROLE regress_ddl_owner;

-- with its schema
DROP SCHEMA ddl_s;
DROP SCHEMA ddl_s CASCADE;
SELECT relname FROM mot_stat_tables ORDER BY relname;

-- with its owner
CREATE ROLE regress_ddl_owner;
ALTER TABLE ddl_b OWNER TO regress_ddl_owner;
DROP OWNED BY regress_ddl_owner;
DROP ROLE regress_ddl_owner;
SELECT relname FROM mot_stat_tables ORDER BY relname;

-- with its server, and with the extension
BEGIN;
CREATE SERVER ddl_server FOREIGN DATA WRAPPER mot_fdw;
CREATE FOREIGN TABLE ddl_d (id int PRIMARY KEY) SERVER ddl_server;
INSERT INTO ddl_d VALUES (1);
SELECT * FROM ddl_d;
DROP SERVER ddl_server CASCADE;
SELECT relname FROM mot_stat_tables ORDER BY relname;
CREATE FOREIGN TABLE ddl_e (id int PRIMARY KEY) SERVER mot_server;
INSERT INTO ddl_e VALUES (1);
DROP EXTENSION mot;
ROLLBACK;
BEGIN;
CREATE FOREIGN TABLE ddl_e (id int PRIMARY KEY) SERVER mot_server;
INSERT INTO ddl_e VALUES (1);
DROP EXTENSION mot CASCADE;
SELECT * FROM pg_am WHERE amname IN ('mot', 'mot_index');
ROLLBACK;
SELECT relname FROM mot_stat_tables ORDER BY relname;

-- event triggers see the statements
CREATE FUNCTION ddl_event() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    IF tg_event = 'ddl_command_end' THEN
        FOR r IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
            RAISE NOTICE '%: % % %', tg_tag, r.command_tag, r.object_type, r.object_identity;
        END LOOP;
    ELSIF tg_event = 'sql_drop' THEN
        FOR r IN SELECT * FROM pg_event_trigger_dropped_objects() WHERE object_type ~ 'table$|index' LOOP
            RAISE NOTICE '%: dropped % %', tg_tag, r.object_type, r.object_identity;
        END LOOP;
    ELSIF tg_event = 'table_rewrite' THEN
        RAISE NOTICE '%: rewrites % (%)', tg_tag, pg_event_trigger_table_rewrite_oid()::regclass,
            pg_event_trigger_table_rewrite_reason();
    ELSE
        RAISE NOTICE '% %', tg_tag, tg_event;
    END IF;
END $$;
CREATE EVENT TRIGGER ddl_start ON ddl_command_start EXECUTE FUNCTION ddl_event();
CREATE EVENT TRIGGER ddl_end ON ddl_command_end EXECUTE FUNCTION ddl_event();
CREATE EVENT TRIGGER ddl_drop ON sql_drop EXECUTE FUNCTION ddl_event();
CREATE EVENT TRIGGER ddl_rewrite ON table_rewrite EXECUTE FUNCTION ddl_event();
CREATE FOREIGN TABLE ddl_ev (id int PRIMARY KEY, a int UNIQUE) SERVER mot_server;
CREATE INDEX ddl_ev_i ON ddl_ev (a, id);
CREATE FOREIGN TABLE ddl_ev2 (id serial PRIMARY KEY) SERVER mot_server;
SET mot.default_engine = mot;
CREATE TABLE ddl_ev3 AS SELECT 1 AS one;
RESET mot.default_engine;
ALTER TABLE ddl_ev DROP CONSTRAINT ddl_ev_pkey;
ALTER TABLE ddl_ev ADD PRIMARY KEY (a), ALTER id TYPE bigint;
ALTER TABLE ddl_ev ADD COLUMN c int DEFAULT 1;
ALTER TABLE ddl_ev ADD COLUMN d int;
DROP INDEX ddl_ev_i;
DROP TABLE ddl_ev, ddl_ev2, ddl_ev3;
DROP EVENT TRIGGER ddl_start;
DROP EVENT TRIGGER ddl_end;
DROP EVENT TRIGGER ddl_drop;
DROP EVENT TRIGGER ddl_rewrite;
DROP FUNCTION ddl_event;

-- thousands of names that are none take no memory of each other
CREATE FOREIGN TABLE ddl_one (a int) SERVER mot_server;
SET client_min_messages = warning;
DO $$
DECLARE
	peak text := '^.*VmHWM:\s*(\d+).*$';
	before int := regexp_replace(pg_read_file('/proc/self/status'), peak, '\1');
BEGIN
	EXECUTE 'DROP TABLE IF EXISTS ddl_one' || (SELECT string_agg(', ddl_none_' || i, '') FROM generate_series(1, 2000) i);
	IF regexp_replace(pg_read_file('/proc/self/status'), peak, '\1')::int - before > 200000 THEN
		RAISE 'it took more than 200 MB';
	END IF;
END $$;
RESET client_min_messages;
SELECT to_regclass('ddl_one');
SELECT count(*) FROM mot_stat_tables;
SELECT count(*) FROM pg_class WHERE relam IN (SELECT oid FROM pg_am WHERE amname IN ('mot', 'mot_index'));
