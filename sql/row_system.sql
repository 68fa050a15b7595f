-- System columns in RETURNING: what of them means something is as on a heap
-- table, the rest is an error; never what happens to lie in the memory.
-- (There are none but ctid and tableoid in the rows themselves.)  Through both doors.
SET timezone = 'UTC';

CREATE FOREIGN TABLE sys_mot (id integer PRIMARY KEY, v integer, w text) SERVER mot_server;
CREATE TABLE sys_table (id integer PRIMARY KEY, v integer, w text) USING mot;
CREATE TABLE sys_heap (id integer PRIMARY KEY, v integer, w text);

-- rounds of the same statements on both, prepared so that they run in every way there is
CREATE FUNCTION sys_all(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	lines text[] := '{}';
BEGIN
	FOR r IN EXECUTE statement LOOP
		lines := lines || r::text;
	END LOOP;
	RETURN array_to_string(lines, ' ');
END
$$;
CREATE FUNCTION sys_rounds(rounds integer, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	target text;
	texts text[] := '{}';
	line text;
BEGIN
	FOREACH target IN ARRAY ARRAY['sys_mot', 'sys_table', 'sys_heap'] LOOP
		EXECUTE format('PREPARE sys_statement (integer, integer) AS ' || statement, target);
		line := '';
		FOR i IN 1 .. rounds LOOP
			line := line || sys_all(format('EXECUTE sys_statement (%s, %s)', i / 2, i)) || ' ';
		END LOOP;
		texts := texts || line;
		EXECUTE 'DEALLOCATE sys_statement';
	END LOOP;
	RETURN CASE WHEN texts[1] = texts[3] AND texts[2] = texts[3] THEN 'the same: ' || texts[1]
		ELSE 'mot ' || texts[1] || ', ordinary ' || texts[2] || ', heap ' || texts[3] END;
END
$$;
CREATE FUNCTION sys_inserts() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM sys_heap;
	DELETE FROM sys_mot;
	DELETE FROM sys_table;
	RETURN NEXT sys_rounds(12, 'INSERT INTO %s VALUES ($1, 0, ''a'') ON CONFLICT (id) DO UPDATE SET v = excluded.v + 1 RETURNING (xmax = 0) AS inserted, id, v');
	RETURN NEXT sys_rounds(12, 'INSERT INTO %s SELECT g, 0 FROM generate_series($1, $1 + 2) g ON CONFLICT (id) DO UPDATE SET w = ''b'' WHERE excluded.id <> 7 RETURNING xmax <> 0 AS updated, id, w');
	RETURN NEXT sys_rounds(12, 'INSERT INTO %s VALUES ($1 + 5, 0), ($1 + 6, 0) ON CONFLICT (id) DO NOTHING RETURNING xmax, id');
	RETURN NEXT sys_rounds(12, 'INSERT INTO %s VALUES (100 + $2, 0, ''c'') RETURNING xmax, (xmax = 0)::text, w');
	RETURN NEXT sys_rounds(6, 'WITH u AS (INSERT INTO %s VALUES ($1, 0, ''a'') ON CONFLICT (id) DO UPDATE SET v = 0 RETURNING xmax = 0 AS inserted) SELECT count(*) FILTER (WHERE inserted), count(*) FILTER (WHERE NOT inserted) FROM u');
	RETURN NEXT sys_rounds(6, 'DELETE FROM %s WHERE id = $1 RETURNING xmax <> 0 AS deleted, id, w');
	RETURN NEXT sys_rounds(6, 'DELETE FROM %s t USING (VALUES (3), (4)) o (id) WHERE t.id = o.id RETURNING t.xmax <> 0, t.id');
	DELETE FROM sys_heap;
	DELETE FROM sys_mot;
	DELETE FROM sys_table;
	INSERT INTO sys_heap SELECT g, g FROM generate_series(0, 12) g;
	INSERT INTO sys_mot SELECT g, g FROM generate_series(0, 12) g;
	INSERT INTO sys_table SELECT g, g FROM generate_series(0, 12) g;
END
$$;
CREATE FUNCTION sys_updates() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN NEXT sys_rounds(12, 'UPDATE %s SET v = v + 1 WHERE id = $1 RETURNING xmax, id, v');
	RETURN NEXT sys_rounds(12, 'UPDATE %s SET v = v + 1, w = (random() < 2)::text WHERE id = $1 RETURNING xmax, id, w');
	RETURN NEXT sys_rounds(12, 'UPDATE %s t SET v = t.v + o.v FROM (VALUES (1, 2), (3, 4)) o (id, v) WHERE t.id = o.id AND t.id <> $1 RETURNING t.xmax, t.id, o.v');
	RETURN NEXT sys_rounds(6, 'UPDATE %1$s t SET v = t.v + 1 FROM %1$s o WHERE t.id = o.id + 1 AND t.id = $1 RETURNING t.xmax, t.id, o.id');
END
$$;
SELECT * FROM sys_inserts();
SELECT * FROM sys_updates();
SET plan_cache_mode = force_generic_plan;
SET mot.jit_above_executions = 0;
SET mot.jit_prepare_above_executions = 0;
SELECT * FROM sys_inserts() s WHERE s NOT LIKE 'the same: %';
SELECT * FROM sys_updates() s WHERE s NOT LIKE 'the same: %';
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM sys_inserts() s WHERE s NOT LIKE 'the same: %';
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM sys_updates() s WHERE s NOT LIKE 'the same: %';
COMMIT;
SET mot.jit = off;
SELECT * FROM sys_inserts() s WHERE s NOT LIKE 'the same: %';
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM sys_updates() s WHERE s NOT LIKE 'the same: %';
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM sys_inserts() s WHERE s NOT LIKE 'the same: %';
COMMIT;
RESET mot.jit;

-- is it run without the executor?
PREPARE sys_upsert (integer) AS INSERT INTO sys_mot VALUES ($1, 0, 'a') ON CONFLICT (id) DO UPDATE SET v = excluded.v + 1 RETURNING (xmax = 0) AS inserted, id;
EXECUTE sys_upsert (1);
EXECUTE sys_upsert (100);
SELECT tier FROM mot_stat_jit WHERE query LIKE 'PREPARE sys_upsert %';
DEALLOCATE sys_upsert;

-- with triggers, before and after
CREATE FUNCTION sys_touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; NEW.w := NEW.w || '!'; RETURN NEW; END $$;
CREATE TRIGGER sys_after AFTER INSERT OR UPDATE OR DELETE ON sys_mot FOR EACH ROW EXECUTE FUNCTION sys_touch();
CREATE TRIGGER sys_after AFTER INSERT OR UPDATE OR DELETE ON sys_table FOR EACH ROW EXECUTE FUNCTION sys_touch();
CREATE TRIGGER sys_after AFTER INSERT OR UPDATE OR DELETE ON sys_heap FOR EACH ROW EXECUTE FUNCTION sys_touch();
SELECT * FROM sys_inserts() s WHERE s NOT LIKE 'the same: %';
SELECT * FROM sys_updates() s WHERE s NOT LIKE 'the same: %';
CREATE TRIGGER sys_before BEFORE INSERT OR UPDATE OR DELETE ON sys_mot FOR EACH ROW EXECUTE FUNCTION sys_touch();
CREATE TRIGGER sys_before BEFORE INSERT OR UPDATE OR DELETE ON sys_table FOR EACH ROW EXECUTE FUNCTION sys_touch();
CREATE TRIGGER sys_before BEFORE INSERT OR UPDATE OR DELETE ON sys_heap FOR EACH ROW EXECUTE FUNCTION sys_touch();
SELECT * FROM sys_inserts() s WHERE s NOT LIKE 'the same: %';
DROP TRIGGER sys_after ON sys_mot;
DROP TRIGGER sys_after ON sys_table;
DROP TRIGGER sys_after ON sys_heap;
DROP TRIGGER sys_before ON sys_mot;
DROP TRIGGER sys_before ON sys_table;
DROP TRIGGER sys_before ON sys_heap;
-- triggers that do the same in between, with an outcome and without one
CREATE TABLE sys_other (id integer PRIMARY KEY, n integer) USING mot;
CREATE FUNCTION sys_again() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	updated boolean;
BEGIN
	INSERT INTO sys_other VALUES (NEW.id, 1) ON CONFLICT (id) DO UPDATE SET n = sys_other.n + 1 RETURNING xmax <> 0 INTO updated;
	INSERT INTO sys_other VALUES (NEW.id, 1) ON CONFLICT (id) DO UPDATE SET n = 0 WHERE false;
	NEW.w := NEW.w || updated;
	RETURN NEW;
END
$$;
CREATE TRIGGER sys_again BEFORE UPDATE ON sys_table FOR EACH ROW EXECUTE FUNCTION sys_again();
DELETE FROM sys_table;
INSERT INTO sys_table SELECT g, g, '' FROM generate_series(1, 3) g;
BEGIN;
INSERT INTO sys_table SELECT g, 0, '' FROM generate_series(2, 4) g ON CONFLICT (id) DO UPDATE SET v = 0 RETURNING xmax = 0 AS inserted, id, w;
INSERT INTO sys_table SELECT g, 0, '' FROM generate_series(1, 5) g ON CONFLICT (id) DO UPDATE SET v = 1 WHERE sys_table.v = 0 RETURNING xmax = 0 AS inserted, id, w;
UPDATE sys_table SET v = 2 WHERE id < 3 RETURNING xmax, id, w;
COMMIT;
DROP TRIGGER sys_again ON sys_table;
DROP TABLE sys_other;
DROP FUNCTION sys_again();
-- rows that go to a partition
CREATE TABLE sys_list (id integer PRIMARY KEY, v integer) PARTITION BY LIST (id);
CREATE TABLE sys_list1 (v integer, id integer NOT NULL) USING mot;
ALTER TABLE sys_list ATTACH PARTITION sys_list1 FOR VALUES IN (1, 2);
INSERT INTO sys_list VALUES (1, 1) RETURNING xmax, id;
INSERT INTO sys_list VALUES (1, 1), (2, 2) ON CONFLICT (id) DO UPDATE SET v = 3 RETURNING xmax = 0 AS inserted, id;
DELETE FROM sys_list WHERE id = 1 RETURNING xmax <> 0 AS deleted, id;
DELETE FROM sys_list RETURNING xmin;
DROP TABLE sys_list;
-- what a trigger would be shown of them
CREATE TRIGGER sys_when AFTER UPDATE ON sys_mot FOR EACH ROW WHEN (OLD.xmin <> NEW.xmin) EXECUTE FUNCTION sys_touch();
CREATE TRIGGER sys_when AFTER UPDATE ON sys_table FOR EACH ROW WHEN (OLD.xmin <> NEW.xmin) EXECUTE FUNCTION sys_touch();
CREATE TABLE sys_moves (id int, v int);
CREATE TRIGGER sys_when AFTER UPDATE ON sys_moves FOR EACH ROW WHEN (OLD.xmax <> NEW.xmax) EXECUTE FUNCTION sys_touch();
ALTER TABLE sys_moves SET ACCESS METHOD mot;
DROP TABLE sys_moves;
-- ... what it is shown of those that are written
CREATE TRIGGER sys_when AFTER INSERT OR UPDATE ON sys_table FOR EACH ROW WHEN (NEW.xmax = 0 AND NEW.ctid IS NOT NULL) EXECUTE FUNCTION sys_touch();
COPY sys_table FROM STDIN;
101	1	a
102	1	b
\.
UPDATE sys_table SET v = 2 WHERE id > 100;
DROP TRIGGER sys_when ON sys_table;
-- nor is a partition given one, by either end
CREATE TABLE sys_parted (id int, v int) PARTITION BY LIST (id);
CREATE FOREIGN TABLE sys_part (id int, v int) SERVER mot_server;
CREATE TRIGGER sys_when AFTER UPDATE ON sys_parted FOR EACH ROW WHEN (OLD.ctid <> NEW.ctid) EXECUTE FUNCTION sys_touch();
ALTER TABLE sys_parted ATTACH PARTITION sys_part DEFAULT;
CREATE FOREIGN TABLE sys_new PARTITION OF sys_parted DEFAULT SERVER mot_server;
DROP TRIGGER sys_when ON sys_parted;
CREATE TRIGGER sys_when AFTER UPDATE ON sys_parted FOR EACH ROW WHEN (OLD.xmax <> NEW.xmax) EXECUTE FUNCTION sys_touch();
CREATE TABLE sys_new PARTITION OF sys_parted DEFAULT USING mot;
DROP TRIGGER sys_when ON sys_parted;
ALTER TABLE sys_parted ATTACH PARTITION sys_part DEFAULT;
CREATE TRIGGER sys_when AFTER UPDATE ON sys_parted FOR EACH ROW WHEN (OLD.v <> NEW.v AND OLD.xmin <> NEW.xmin) EXECUTE FUNCTION sys_touch();
CREATE TRIGGER sys_when AFTER UPDATE ON sys_parted FOR EACH ROW WHEN (OLD.v <> NEW.v AND OLD.tableoid = NEW.tableoid) EXECUTE FUNCTION sys_touch();
DROP TABLE sys_parted;

-- ctid and tableoid are those of the row
DELETE FROM sys_mot;
DELETE FROM sys_table;
CREATE FUNCTION sys_same(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	i integer;
	t regclass;
	at tid;
	same boolean;
BEGIN
	EXECUTE statement INTO i, t, at;
	same := t = 'sys_mot'::regclass AND i = (SELECT id FROM sys_mot WHERE ctid = at);
	EXECUTE replace(statement, 'sys_mot', 'sys_table') INTO i, t, at;
	RETURN same AND t = 'sys_table'::regclass AND i = (SELECT id FROM sys_table WHERE ctid = at);
END
$$;
SELECT sys_same('INSERT INTO sys_mot VALUES (1, 1) RETURNING id, tableoid, ctid');
SELECT sys_same('INSERT INTO sys_mot VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = 2 RETURNING id, tableoid, ctid');
SELECT sys_same('UPDATE sys_mot SET v = random() RETURNING id, tableoid, ctid');
SELECT sys_same('UPDATE sys_mot SET v = 3 RETURNING id, tableoid, ctid');
SELECT sys_same('INSERT INTO sys_mot VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = 2 RETURNING id, CASE WHEN xmax <> 0 THEN tableoid END, ctid');

-- the others are refused in every way
CREATE SEQUENCE sys_seq START 1000;
CREATE FUNCTION sys_refused(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	name text;
	target text;
BEGIN
	FOREACH target IN ARRAY ARRAY['sys_mot', 'sys_table'] LOOP
		FOREACH name IN ARRAY ARRAY['xmin', 'cmin', 'cmax'] LOOP
			BEGIN
				EXECUTE format(replace(statement, 'sys_mot', target), name);
				RETURN NEXT target || ' passed: ' || statement || ' ' || name;
			EXCEPTION WHEN feature_not_supported THEN
				IF name = 'xmin' THEN RETURN NEXT sqlerrm; END IF;
			END;
		END LOOP;
	END LOOP;
END
$$;
CREATE FUNCTION sys_refusals() RETURNS SETOF text LANGUAGE sql AS $$
SELECT sys_refused('INSERT INTO sys_mot VALUES (nextval(''sys_seq''), 1) RETURNING %s') UNION ALL
SELECT sys_refused('INSERT INTO sys_mot VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = 2 RETURNING %s') UNION ALL
SELECT sys_refused('UPDATE sys_mot SET v = 1 RETURNING %s') UNION ALL
SELECT sys_refused('UPDATE sys_mot SET v = random() RETURNING %s') UNION ALL
SELECT sys_refused('UPDATE sys_mot t SET v = 1 FROM sys_mot o WHERE t.id = o.id RETURNING t.%s') UNION ALL
SELECT sys_refused('DELETE FROM sys_mot RETURNING %s') UNION ALL
SELECT sys_refused('DELETE FROM sys_mot t USING sys_mot o WHERE t.id = o.id RETURNING t.%s') UNION ALL
SELECT sys_refused('INSERT INTO sys_mot AS t VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = 2 WHERE t.%s IS NOT NULL RETURNING xmax') UNION ALL
SELECT sys_refused('SELECT %s FROM sys_mot')
$$;
SELECT * FROM sys_refusals();
SET mot.jit = off;
SELECT * FROM sys_refusals();
RESET mot.jit;
CREATE TRIGGER sys_before BEFORE INSERT OR UPDATE OR DELETE ON sys_mot FOR EACH ROW EXECUTE FUNCTION sys_touch();
SELECT * FROM sys_refusals();
DROP TRIGGER sys_before ON sys_mot;
SELECT xmin FROM sys_mot;

-- rows that are routed, and that move, between partitions of both kinds
CREATE TABLE sys_parts (id integer, v integer) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE sys_part1 PARTITION OF sys_parts FOR VALUES FROM (0) TO (10) SERVER mot_server;
CREATE TABLE sys_part2 PARTITION OF sys_parts FOR VALUES FROM (10) TO (20);
CREATE FOREIGN TABLE sys_part3 PARTITION OF sys_parts FOR VALUES FROM (20) TO (30) SERVER mot_server;
-- (a heap table's partitions have none then)
INSERT INTO sys_parts VALUES (1, 1), (21, 1) RETURNING tableoid::regclass, xmax, id;
INSERT INTO sys_parts VALUES (11, 1);
INSERT INTO sys_parts VALUES (2, 2) RETURNING xmin;
UPDATE sys_parts SET v = v + 1 RETURNING tableoid::regclass, xmax, id;
UPDATE sys_parts SET id = id + 1 WHERE id = 1 RETURNING tableoid::regclass, xmax, id;
UPDATE sys_parts SET id = 22 WHERE id = 11 RETURNING tableoid::regclass, xmax, id;
DELETE FROM sys_parts WHERE id >= 20 RETURNING tableoid::regclass, xmax <> 0, id;
DROP TABLE sys_parts;

-- a view that hands them on
CREATE VIEW sys_view AS SELECT id, v, xmax FROM sys_mot WHERE v < 10 WITH CHECK OPTION;
INSERT INTO sys_view VALUES (30, 1) RETURNING xmax, id;
INSERT INTO sys_view VALUES (30, 1) ON CONFLICT (id) DO UPDATE SET v = 2 RETURNING xmax = 0 AS inserted, v;
UPDATE sys_view SET v = 11 WHERE id = 30;
DROP VIEW sys_view;

DROP FUNCTION sys_inserts(), sys_updates(), sys_rounds(integer, text), sys_all(text), sys_same(text), sys_refusals(), sys_refused(text);
DROP FOREIGN TABLE sys_mot;
DROP TABLE sys_table, sys_heap;
DROP SEQUENCE sys_seq;
DROP FUNCTION sys_touch();
