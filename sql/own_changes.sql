-- What a statement, its functions and its triggers see of their own
-- transaction's changes: the same on a heap table and its twin.

-- (costs of disabled scans would have the server compile all expressions, which takes its time;
-- jit_server has triggers and own changes with compiled expressions)
SET jit = off;

CREATE TABLE own_heap (id int PRIMARY KEY, v int, w int);
CREATE INDEX ON own_heap (v);
CREATE FOREIGN TABLE own_mot (id int PRIMARY KEY, v int, w int) SERVER mot_server;
CREATE INDEX ON own_mot (v);
CREATE TABLE own_log (n serial, line text);

CREATE FUNCTION own_sum(t text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	r text;
BEGIN
	EXECUTE format('SELECT count(*) || ''/'' || coalesce(sum(v), 0) FROM %I', t) INTO r;
	RETURN r;
END $$;
CREATE FUNCTION own_sum_stable(t text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	r text;
BEGIN
	EXECUTE format('SELECT count(*) || ''/'' || coalesce(sum(v), 0) FROM %I', t) INTO r;
	RETURN r;
END $$;
CREATE FUNCTION own_set(t text, k int, n int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	EXECUTE format('UPDATE %I SET v = $2 WHERE id = $1', t) USING k, n;
	RETURN n;
END $$;
-- that it changes nothing is not true
CREATE FUNCTION own_claim(t text, k int, n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM own_set(t, k, n);
	RETURN n;
END $$;
CREATE FUNCTION own_guard(t text, k int, w int) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	IF w < 0 THEN
		PERFORM own_set(t, k - w - 100, 55);
	END IF;
	RETURN true;
END $$;
CREATE FUNCTION own_add(t text, k int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	EXECUTE format('INSERT INTO %I VALUES ($1, $1, 0)', t) USING k;
	RETURN k;
END $$;
CREATE FUNCTION own_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO own_log (line) VALUES (concat_ws(' ', TG_NAME, TG_OP, OLD.id, NEW.id, own_sum(TG_TABLE_NAME), own_sum_stable(TG_TABLE_NAME)));
	RETURN COALESCE(NEW, OLD);
END $$;
-- an AFTER trigger that goes on changing the table, some steps far
CREATE FUNCTION own_chain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.w BETWEEN 1 AND 5 THEN
		EXECUTE format('UPDATE %I SET w = w + 1, v = v + 1 WHERE id = $1', TG_TABLE_NAME) USING NEW.id;
		EXECUTE format('INSERT INTO %I VALUES ($1, $1, $2)', TG_TABLE_NAME) USING NEW.id * 10 + NEW.w, NEW.w + 3;
	END IF;
	RETURN NULL;
END $$;

-- run a statement, and show rows, what it returned and what its triggers saw
CREATE FUNCTION own_run(t text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result text[];
	rows text;
	n int;
BEGIN
	EXECUTE format('TRUNCATE %I', t);
	EXECUTE format('INSERT INTO %I SELECT i, i * 10, 0 FROM generate_series(1, 8) i', t);
	TRUNCATE own_log RESTART IDENTITY;
	BEGIN
		FOR r IN EXECUTE replace(statement, '{t}', t) LOOP
			result := array_append(result, r::text);
		END LOOP;
	EXCEPTION
		WHEN invalid_cursor_definition THEN
			-- it returns nothing
			BEGIN
				EXECUTE replace(statement, '{t}', t);
				GET DIAGNOSTICS n = ROW_COUNT;
				result := ARRAY[n || ' rows'];
			EXCEPTION WHEN OTHERS THEN
				result := ARRAY[SQLSTATE];
			END;
		WHEN OTHERS THEN
			result := ARRAY[SQLSTATE];
	END;
	EXECUTE format('SELECT string_agg(concat_ws('' '', id, v, w), '', '' ORDER BY id) FROM %I', t) INTO rows;
	RETURN concat_ws(E'\n', (SELECT string_agg(x, '' ORDER BY x) FROM unnest(result) x), rows, (SELECT string_agg(line, E'\n' ORDER BY l.n) FROM own_log l));
END $$;

CREATE TABLE own_statements (n serial, plan text DEFAULT 'enable_seqscan', statement text);
INSERT INTO own_statements (statement) VALUES
	-- Halloween: rows that move along the index that is being walked
	('UPDATE {t} SET v = v + 35 WHERE v > 0 RETURNING id, v'),
	('UPDATE {t} SET v = v - 35 WHERE v < 1000 RETURNING id, v'),
	('UPDATE {t} SET id = id + 100 WHERE id > 0 RETURNING id'),
	('UPDATE {t} SET id = id + 1 RETURNING id'),
	('UPDATE {t} SET id = -id, v = -v WHERE v BETWEEN 20 AND 60 RETURNING id, v'),
	('INSERT INTO {t} SELECT id + 100, v + 5, w FROM {t} WHERE v > 0 RETURNING id'),
	('INSERT INTO {t} SELECT max(id) + 1, 0, count(*) FROM {t} RETURNING *'),
	('DELETE FROM {t} a USING {t} b WHERE b.id = a.id + 1 RETURNING a.id'),
	('UPDATE {t} a SET v = b.v FROM {t} b WHERE b.id = a.id - 1 RETURNING a.id, a.v'),
	('UPDATE {t} a SET v = (SELECT sum(b.v) FROM {t} b) RETURNING id, v'),
	('UPDATE {t} SET w = w + 1 WHERE id IN (SELECT id FROM {t} WHERE v > 30 ORDER BY v DESC LIMIT 3) RETURNING id'),
	-- a volatile function sees what has been changed so far, a stable one does not
	('UPDATE {t} SET v = v + 1 WHERE id <= 4 RETURNING id, own_sum(''{t}''), own_sum_stable(''{t}'')'),
	('INSERT INTO {t} SELECT i, 0, 0 FROM generate_series(11, 13) i RETURNING own_sum(''{t}''), own_sum_stable(''{t}'')'),
	('DELETE FROM {t} WHERE id > 5 RETURNING own_sum(''{t}''), own_sum_stable(''{t}'')'),
	('SELECT own_add(''{t}'', 20), own_sum(''{t}''), own_sum_stable(''{t}''), own_add(''{t}'', 21), own_sum(''{t}'')'),
	('SELECT id, own_add(''{t}'', id + 50) FROM {t}'),
	('SELECT id, v, own_set(''{t}'', id + 1, 0) FROM {t} ORDER BY id'),
	('SELECT id, v FROM {t} WHERE own_set(''{t}'', 9 - id, -1) < 0 ORDER BY id'),
	-- one that changes the row that is to be changed
	('UPDATE {t} SET w = own_set(''{t}'', id, 77) WHERE id = 3 RETURNING *'),
	('UPDATE {t} SET w = own_set(''{t}'', 4, 77) WHERE id = 3 RETURNING *'),
	('UPDATE {t} SET w = own_set(''{t}'', id + 1, 77) WHERE id IN (3, 4) RETURNING *'),
	('DELETE FROM {t} WHERE id = 3 AND own_set(''{t}'', id, 77) = 77 RETURNING *'),
	('UPDATE {t} SET w = own_claim(''{t}'', id, 77) WHERE id = 3 RETURNING *'),
	('UPDATE {t} SET w = own_claim(''{t}'', id, 77), v = v + 1'),
	('UPDATE {t} SET w = own_claim(''{t}'', 4, 77) WHERE id = 3 RETURNING *'),
	('UPDATE {t} SET w = own_claim(''{t}'', id - 1, 77) WHERE id IN (3, 4)'),
	('UPDATE {t} SET w = w + 1 WHERE id = 3 AND own_claim(''{t}'', id, 77) = 77 RETURNING *'),
	('DELETE FROM {t} WHERE id = 3 AND own_claim(''{t}'', id, 77) = 77 RETURNING *'),
	('INSERT INTO {t} AS t VALUES (1, 1, 1) ON CONFLICT (id) DO UPDATE SET w = own_claim(''{t}'', t.id, 77), v = t.v + 1'),
	-- statements in a statement: all see the same snapshot
	('WITH a AS (UPDATE {t} SET v = 0 WHERE id = 1 RETURNING *), b AS (DELETE FROM {t} WHERE id = 2 RETURNING *),
		c AS (INSERT INTO {t} VALUES (30, 30, 30) RETURNING *)
		SELECT (SELECT array_agg(id ORDER BY id) FROM {t}) AS seen, a.*, b.*, c.* FROM a, b, c'),
	('WITH a AS (UPDATE {t} SET v = v + 1 WHERE id < 4 RETURNING id), b AS (UPDATE {t} SET v = v + 1 WHERE id IN (SELECT id + 4 FROM a) RETURNING id)
		SELECT * FROM b ORDER BY id'),
	('WITH a AS (INSERT INTO {t} VALUES (31, 1, 1) RETURNING id) UPDATE {t} SET v = 5 WHERE id IN (SELECT id FROM a) RETURNING id'),
	('WITH a AS (DELETE FROM {t} WHERE id = 1 RETURNING *) INSERT INTO {t} SELECT id + 31, v, w FROM a RETURNING *'),
	('WITH a AS (DELETE FROM {t} WHERE id > 6 RETURNING *) SELECT count(*), (SELECT count(*) FROM {t}) FROM a'),
	('WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 4)
		UPDATE {t} SET v = -i FROM r WHERE id = i RETURNING id, v'),
	-- the same row twice
	('WITH a AS (UPDATE {t} SET w = 1 WHERE id = 1 RETURNING id) UPDATE {t} SET w = w + 10 WHERE id = 2 RETURNING id, w'),
	('UPDATE {t} a SET v = v + b.w + 1 FROM (SELECT id % 2 + 1 AS id, w FROM {t}) b WHERE a.id = b.id AND a.id = 2 RETURNING a.id, a.v'),
	('INSERT INTO {t} AS t VALUES (1, 1, 1), (9, 9, 9) ON CONFLICT (id) DO UPDATE SET v = t.v + (SELECT count(*) FROM {t}) RETURNING *'),
	('INSERT INTO {t} AS t VALUES (1, 1, 1), (1, 2, 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v');
INSERT INTO own_statements (plan, statement) SELECT 'enable_indexscan', statement FROM own_statements;

CREATE FUNCTION own_compare() RETURNS TABLE (plan text, statement text, heap text, mot text) LANGUAGE plpgsql AS $$
DECLARE
	s own_statements;
BEGIN
	FOR s IN SELECT * FROM own_statements ORDER BY n LOOP
		PERFORM set_config(s.plan, 'off', true), set_config('enable_bitmapscan', 'off', true);
		heap := own_run('own_heap', s.statement);
		mot := own_run('own_mot', s.statement);
		PERFORM set_config(s.plan, 'on', true);
		plan := s.plan;
		statement := s.statement;
		IF replace(heap, 'own_heap', 'T') IS DISTINCT FROM replace(mot, 'own_mot', 'T') THEN
			RETURN NEXT;
		END IF;
	END LOOP;
END $$;
SELECT * FROM own_compare();
SELECT own_run('own_mot', statement) FROM own_statements WHERE n IN (1, 12, 17, 23, 25, 30) ORDER BY n;

-- a constraint that changes the row it is to judge, or another one
ALTER TABLE own_heap ADD CONSTRAINT guard CHECK (own_guard('own_heap', id, w));
ALTER TABLE own_mot ADD CONSTRAINT guard CHECK (own_guard('own_mot', id, w));
SELECT own_run('own_mot', statement) AS mot,
	own_run('own_heap', statement) = replace(own_run('own_mot', statement), 'own_mot', 'own_heap') AS same
FROM (VALUES ('UPDATE {t} SET w = -100, v = v + 1 WHERE id < 4'), ('UPDATE {t} SET w = -99, v = v + 1 WHERE id = 3'), ('INSERT INTO {t} VALUES (3, 3, 0) ON CONFLICT (id) DO UPDATE SET v = 5, w = -100'),
	('INSERT INTO {t} VALUES (30, 3, -127)'), ('WITH d AS (DELETE FROM {t} WHERE id = 2 RETURNING id) UPDATE {t} SET w = -100 FROM d WHERE {t}.id = d.id + 1')) s (statement);
SELECT object, problems FROM mot_verify('own_mot') WHERE problems > 0;
ALTER TABLE own_heap DROP CONSTRAINT guard;
ALTER TABLE own_mot DROP CONSTRAINT guard;

-- (for a row that a join meets several times BEFORE triggers fire each time, on a heap table once)
DELETE FROM own_statements WHERE statement LIKE '%b.w%';

-- row triggers: BEFORE sees what the statement did so far, AFTER sees all of it
CREATE TRIGGER a_before BEFORE INSERT OR UPDATE OR DELETE ON own_heap FOR EACH ROW EXECUTE FUNCTION own_note();
CREATE TRIGGER a_before BEFORE INSERT OR UPDATE OR DELETE ON own_mot FOR EACH ROW EXECUTE FUNCTION own_note();
CREATE TRIGGER z_after AFTER INSERT OR UPDATE OR DELETE ON own_heap FOR EACH ROW EXECUTE FUNCTION own_note();
CREATE TRIGGER z_after AFTER INSERT OR UPDATE OR DELETE ON own_mot FOR EACH ROW EXECUTE FUNCTION own_note();
SELECT * FROM own_compare();
SELECT own_run('own_mot', 'UPDATE {t} SET v = v + 1 WHERE id <= 2 RETURNING id');

-- triggers that change the table their statement changes
CREATE TRIGGER chain AFTER INSERT OR UPDATE ON own_heap FOR EACH ROW EXECUTE FUNCTION own_chain();
CREATE TRIGGER chain AFTER INSERT OR UPDATE ON own_mot FOR EACH ROW EXECUTE FUNCTION own_chain();
SELECT * FROM own_compare();
SELECT own_run('own_heap', statement) = replace(own_run('own_mot', statement), 'own_mot', 'own_heap') AS same
FROM (VALUES ('UPDATE {t} SET w = 1 WHERE id = 1 RETURNING *'), ('INSERT INTO {t} VALUES (10, 10, 1), (11, 11, 4)'),
	('UPDATE {t} SET w = id WHERE id < 4'), ('WITH a AS (UPDATE {t} SET w = 2 WHERE id = 2 RETURNING *) INSERT INTO {t} SELECT id + 50, v, w FROM a')) s (statement);

DROP TABLE own_heap, own_log, own_statements;
DROP FOREIGN TABLE own_mot;
DROP FUNCTION own_sum, own_sum_stable, own_set, own_claim, own_guard, own_add, own_note, own_chain, own_run, own_compare;
