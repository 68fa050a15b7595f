--
-- Row and statement triggers on a heap table and on a memory-optimized one
-- leave the same log
--
CREATE TABLE trig_log (n serial, line text);
CREATE FUNCTION trig_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO trig_log (line) VALUES (concat_ws(' ', TG_WHEN, TG_LEVEL, TG_OP, TG_NAME,
		CASE WHEN TG_LEVEL = 'ROW' AND TG_OP IN ('UPDATE', 'DELETE') THEN 'old ' || OLD::text END,
		CASE WHEN TG_LEVEL = 'ROW' AND TG_OP IN ('UPDATE', 'INSERT') THEN 'new ' || NEW::text END));
	IF TG_LEVEL = 'STATEMENT' OR TG_WHEN = 'AFTER' THEN
		RETURN NULL;
	ELSIF TG_OP = 'DELETE' THEN
		RETURN CASE WHEN OLD.a = 99 THEN NULL ELSE OLD END;
	END IF;
	-- what a BEFORE trigger may do: change the row, or leave it out
	IF NEW.b = 'skip' THEN
		RETURN NULL;
	ELSIF NEW.b = 'double' THEN
		NEW.a := NEW.a * 2;
	END IF;
	RETURN NEW;
END $$;
CREATE FUNCTION trig_run(name text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result text := '';
	rows text;
BEGIN
	TRUNCATE trig_log;
	BEGIN
		IF statement ~* 'returning' THEN
			FOR r IN EXECUTE replace(statement, '{t}', name) LOOP
				result := result || r::text;
			END LOOP;
		ELSE
			EXECUTE replace(statement, '{t}', name);
		END IF;
	EXCEPTION WHEN OTHERS THEN
		result := SQLERRM;
	END;
	EXECUTE format('SELECT string_agg(concat_ws('' '', id, a, b), '', '' ORDER BY id) FROM %I', name) INTO rows;
	RETURN concat_ws(E'\n', result, (SELECT string_agg(line, E'\n' ORDER BY n) FROM trig_log), rows);
END $$;
CREATE TABLE trig_heap (id int PRIMARY KEY, a int, b text, g int GENERATED ALWAYS AS (a + 1) STORED);
CREATE FOREIGN TABLE trig_mot (id int PRIMARY KEY, a int, b text, g int GENERATED ALWAYS AS (a + 1) STORED) SERVER mot_server;
DO $$
DECLARE
	name text;
	moment text;
BEGIN
	FOREACH name IN ARRAY ARRAY['trig_heap', 'trig_mot'] LOOP
		FOREACH moment IN ARRAY ARRAY['before', 'after'] LOOP
			EXECUTE format('CREATE TRIGGER row_%s %s INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION trig_note()', moment, moment, name);
			EXECUTE format('CREATE TRIGGER stmt_%s %s INSERT OR UPDATE OR DELETE ON %s FOR EACH STATEMENT EXECUTE FUNCTION trig_note()', moment, moment, name);
		END LOOP;
		EXECUTE format('CREATE TRIGGER when_changed AFTER UPDATE OF a ON %s FOR EACH ROW WHEN (OLD.a IS DISTINCT FROM NEW.a) EXECUTE FUNCTION trig_note()', name);
	END LOOP;
END $$;

CREATE TABLE trig_statements (n serial, statement text);
INSERT INTO trig_statements (statement) VALUES
	('INSERT INTO {t} (id, a, b) VALUES (1, 1, ''x''), (2, 2, ''skip''), (3, 3, ''double'')'),
	('INSERT INTO {t} (id, a, b) VALUES (4, 4, ''double''), (5, 5, ''skip'') RETURNING id, a, g'),
	('UPDATE {t} SET a = a + 10'),
	('UPDATE {t} SET b = ''skip'' WHERE id = 1'),
	('UPDATE {t} SET b = ''double'' WHERE id = 1 RETURNING id, a, b, g'),
	('UPDATE {t} SET id = 10 WHERE id = 1'),
	('UPDATE {t} t SET a = v FROM (VALUES (3, 33), (4, 44)) x (k, v) WHERE t.id = k'),
	('INSERT INTO {t} AS t (id, a, b) VALUES (10, 1, ''x''), (11, 1, ''y'') ON CONFLICT (id) DO UPDATE SET a = t.a + 1000 RETURNING id, a, g'),
	('INSERT INTO {t} AS t (id, a, b) VALUES (10, 1, ''x'') ON CONFLICT (id) DO UPDATE SET b = ''skip'''),
	('INSERT INTO {t} AS t (id, a, b) VALUES (10, 1, ''x'') ON CONFLICT (id) DO UPDATE SET b = ''no'' WHERE t.a < 0'),
	('INSERT INTO {t} AS t (id, a, b) VALUES (10, 1, ''x''), (12, 12, ''z'') ON CONFLICT DO NOTHING'),
	('UPDATE {t} SET a = 99, b = NULL WHERE id = 12'),
	('DELETE FROM {t} WHERE id IN (11, 12)'),
	('DELETE FROM {t} WHERE id = 10 RETURNING id, a, b, g'),
	('DELETE FROM {t} t USING (VALUES (3), (4)) x (k) WHERE t.id = k RETURNING t.id, k'),
	('INSERT INTO {t} (id, a) VALUES (12, 1)'),
	-- a join that finds a row several times: it is changed, and its triggers fire, once
	('INSERT INTO {t} (id, a, b) SELECT i, i, ''j'' FROM generate_series(20, 23) i'),
	('UPDATE {t} t SET a = t.a + 100, b = x.k::text FROM (VALUES (20), (21), (20), (20), (22)) x (k) WHERE t.id = k'),
	('UPDATE {t} t SET b = ''skip'' FROM (VALUES (20), (21), (20)) x (k) WHERE t.id = k'),
	('UPDATE {t} t SET b = ''double'' FROM generate_series(1, 3) i WHERE t.id = 21 RETURNING t.*'),
	('UPDATE {t} t SET id = t.id + 30 FROM generate_series(1, 2) i WHERE t.id = 21 RETURNING t.*'),
	('DELETE FROM {t} t USING (VALUES (20), (20), (51), (20)) x (k) WHERE t.id = k RETURNING t.id, k'),
	('UPDATE {t} SET a = 99 FROM generate_series(1, 2) WHERE id = 22'),
	('DELETE FROM {t} t USING (VALUES (22), (22)) x (k) WHERE t.id = k RETURNING t.id, k'),
	('UPDATE {t} t SET a = t.a + 1 FROM {t} o WHERE t.id = 12 AND o.id >= t.id'),
	('DELETE FROM {t} WHERE id = 777');
SELECT n, statement FROM trig_statements
WHERE replace(trig_run('trig_heap', statement), 'trig_heap', 'T') <> replace(trig_run('trig_mot', statement), 'trig_mot', 'T');
SELECT trig_run('trig_mot', 'INSERT INTO {t} AS t (id, a, b) VALUES (12, 1, ''x''), (13, 1, ''double'') ON CONFLICT (id) DO UPDATE SET a = t.a + 1000');
-- rows of a statement with row triggers come locked: no modification in one node
EXPLAIN (COSTS OFF) UPDATE trig_mot SET a = 1 WHERE id = 12;

-- a BEFORE trigger that changes the row it runs for
CREATE FUNCTION trig_meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('UPDATE %I SET b = ''meddled'' WHERE id = $1', TG_TABLE_NAME) USING OLD.id;
	RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE FUNCTION trig_take() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('DELETE FROM %I WHERE id = $1', TG_TABLE_NAME) USING OLD.id;
	RETURN NEW;
END $$;
CREATE TABLE meddle_heap (id int PRIMARY KEY, b text);
CREATE FOREIGN TABLE meddle_mot (id int PRIMARY KEY, b text) SERVER mot_server;
INSERT INTO meddle_heap VALUES (1, 'one'), (2, 'two');
INSERT INTO meddle_mot VALUES (1, 'one'), (2, 'two');
CREATE TRIGGER a BEFORE UPDATE ON meddle_heap FOR EACH ROW WHEN (NEW.b = 'x') EXECUTE FUNCTION trig_meddle();
CREATE TRIGGER a BEFORE UPDATE ON meddle_mot FOR EACH ROW WHEN (NEW.b = 'x') EXECUTE FUNCTION trig_meddle();
CREATE TRIGGER d BEFORE DELETE ON meddle_heap FOR EACH ROW EXECUTE FUNCTION trig_meddle();
CREATE TRIGGER d BEFORE DELETE ON meddle_mot FOR EACH ROW EXECUTE FUNCTION trig_meddle();
CREATE TRIGGER t BEFORE UPDATE ON meddle_heap FOR EACH ROW WHEN (NEW.b = 'gone') EXECUTE FUNCTION trig_take();
CREATE TRIGGER t BEFORE UPDATE ON meddle_mot FOR EACH ROW WHEN (NEW.b = 'gone') EXECUTE FUNCTION trig_take();
UPDATE meddle_heap SET b = 'x' WHERE id = 1;
UPDATE meddle_mot SET b = 'x' WHERE id = 1;
UPDATE meddle_mot m SET b = 'x' FROM meddle_heap h WHERE h.id = m.id AND m.id = 1;
DELETE FROM meddle_heap h USING meddle_mot m WHERE h.id = m.id AND h.id = 1;
DELETE FROM meddle_mot m USING meddle_heap h WHERE h.id = m.id AND m.id = 1;
DELETE FROM meddle_heap WHERE id = 1;
DELETE FROM meddle_mot WHERE id = 1;
UPDATE meddle_heap SET b = 'gone' WHERE id = 2;
UPDATE meddle_mot SET b = 'gone' WHERE id = 2;
INSERT INTO meddle_heap VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET b = excluded.b;
INSERT INTO meddle_mot VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET b = excluded.b;
SELECT * FROM meddle_heap ORDER BY id;
SELECT * FROM meddle_mot ORDER BY id;

-- a function in the statement that changes the row
CREATE FUNCTION meddle_f(name text, k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('UPDATE %I SET b = b || ''+'' WHERE id = $1', name) USING k;
	RETURN 'f';
END $$;
UPDATE meddle_heap SET b = 'q' WHERE id = 1 AND meddle_f('meddle_heap', id) = 'f';
UPDATE meddle_mot SET b = 'q' WHERE id = 1 AND meddle_f('meddle_mot', id) = 'f';
-- and of another row: that one is met as it was
UPDATE meddle_heap SET b = meddle_f('meddle_heap', 2) WHERE id = 1;
UPDATE meddle_mot SET b = meddle_f('meddle_mot', 2) WHERE id = 1;
SELECT * FROM meddle_heap ORDER BY id;
SELECT * FROM meddle_mot ORDER BY id;

CREATE FUNCTION trig_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO trig_log (line) VALUES (concat_ws(' ', TG_TABLE_NAME, TG_OP, OLD));
	RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
-- partitions: routed rows, and constraints of a partition used directly
CREATE TABLE parted (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE parted_cold PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE FOREIGN TABLE parted_hot PARTITION OF parted FOR VALUES FROM (100) TO (200) SERVER mot_server;
CREATE INDEX parted_hot_k ON parted_hot (k);
INSERT INTO parted SELECT i, 'v' || i FROM generate_series(90, 110) i;
COPY parted FROM stdin;
50	copied
150	copied
\.
SELECT tableoid::regclass, count(*), min(k), max(k) FROM parted GROUP BY 1 ORDER BY 1;
EXPLAIN (COSTS OFF) SELECT * FROM parted WHERE k = 150;
EXPLAIN (COSTS OFF) SELECT * FROM parted WHERE k IN (50, 150);
EXPLAIN (COSTS OFF) UPDATE parted SET v = v || '!' WHERE k > 105;
UPDATE parted SET v = v || '!' WHERE k > 95;
UPDATE parted SET v = v || '?' WHERE k BETWEEN 99 AND 101 RETURNING tableoid::regclass, *;
SELECT tableoid::regclass, * FROM parted WHERE k BETWEEN 98 AND 101 ORDER BY k;
UPDATE parted SET k = 120 WHERE k = 50 RETURNING tableoid::regclass, *;
-- partitions of both kinds in a join that finds rows several times
CREATE TRIGGER row_before BEFORE UPDATE OR DELETE ON parted_hot FOR EACH ROW EXECUTE FUNCTION trig_once();
CREATE TRIGGER row_before BEFORE UPDATE OR DELETE ON parted_cold FOR EACH ROW EXECUTE FUNCTION trig_once();
TRUNCATE trig_log;
UPDATE parted p SET v = p.v || '.' FROM (VALUES (99), (100), (100), (99), (101)) x (n) WHERE k = n;
SELECT line, count(*) FROM trig_log GROUP BY line ORDER BY line;
TRUNCATE trig_log;
DELETE FROM parted p USING (VALUES (99), (100), (100), (99), (101)) x (n) WHERE k = n;
SELECT line, count(*) FROM trig_log GROUP BY line ORDER BY line;
INSERT INTO parted_hot VALUES (10, 'wrong');
UPDATE parted_hot SET k = 10 WHERE k = 150;
DELETE FROM parted WHERE v LIKE '%!%' RETURNING k;
SELECT tableoid::regclass, count(*) FROM parted GROUP BY 1 ORDER BY 1;

DROP TABLE parted, meddle_heap, trig_heap, trig_log, trig_statements;
DROP FOREIGN TABLE meddle_mot, trig_mot;
DROP FUNCTION trig_once(), trig_note(), trig_run(text, text), trig_meddle(), trig_take(), meddle_f(text, int);
