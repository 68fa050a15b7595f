-- Enums in keys that have no labels (enumerated.h): unique ones, and those of foreign tables.  Each query and change is
-- tried on a heap table h and on its twins, m and the foreign f; what differs is shown.
CREATE SCHEMA enum_keys;
SET search_path = enum_keys, public;
SET client_min_messages = warning;
SET jit = off;

CREATE TABLE differences (step text, what text, heap text, mot text);
CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy');
CREATE DOMAIN temper AS mood CHECK (VALUE::text <> 'grim');

CREATE TABLE h (id int, a int, t text COLLATE "C", e mood NOT NULL, d temper, n mood);
CREATE TABLE m (LIKE h) USING mot;
CREATE FOREIGN TABLE f (id int, a int, t text COLLATE "C", e mood NOT NULL, d temper, n mood) SERVER mot_server;
DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['h', 'm', 'f'] LOOP
		EXECUTE format('CREATE UNIQUE INDEX %1$s_e ON %1$s (e, id)', t);
		EXECUTE format('CREATE UNIQUE INDEX %1$s_dn ON %1$s (d DESC, n NULLS FIRST, id)', t);
		EXECUTE format('CREATE UNIQUE INDEX %1$s_ate ON %1$s (a, t DESC, e DESC, id)', t);
		EXECUTE format('CREATE UNIQUE INDEX %1$s_c ON %1$s (t COLLATE "und-x-icu", e, id)', t);
		EXECUTE format('CREATE UNIQUE INDEX %1$s_ad ON %1$s (a, d DESC NULLS LAST, t, n, id DESC)', t);
	END LOOP;
	FOREACH t IN ARRAY ARRAY['h', 'm'] LOOP
		EXECUTE format('CREATE UNIQUE INDEX %1$s_x ON %1$s ((id %% 2), e, id) WHERE a < 3', t);
		EXECUTE format('CREATE UNIQUE INDEX %1$s_r ON %1$s ((ARRAY[a]), e, id)', t);
		EXECUTE format('CREATE INDEX %1$s_l ON %1$s (n, id)', t);
	END LOOP;
END
$$;

-- what a query says: its rows in their order, or its error
CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; result text := ''; n int := 0; rows bigint;
BEGIN
	IF query ~ '^(SELECT|WITH)' OR query ~ 'RETURNING' THEN
		FOR r IN EXECUTE query LOOP
			result := result || r::text || E'\n';
			n := n + 1;
		END LOOP;
		RETURN n || ' rows: ' || result;
	END IF;
	EXECUTE query;
	GET DIAGNOSTICS rows = ROW_COUNT;
	RETURN 'done ' || rows;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;

-- "%t" is the table; "twins": those that are to be asked
CREATE FUNCTION twin(step text, query text, twins text[] DEFAULT '{m,f}') RETURNS bool LANGUAGE plpgsql AS $$
DECLARE h text; m text; t text; same bool := true;
BEGIN
	h := answer(replace(query, '%t', 'h'));
	FOREACH t IN ARRAY twins LOOP
		m := answer(replace(query, '%t', t));
		IF replace(h, 'h_', t || '_') IS DISTINCT FROM m OR h ~ '^42[0-9A-Z]{3} ' THEN
			INSERT INTO differences VALUES (step, t || ': ' || query, left(h, 200), left(m, 200));
			same := false;
		END IF;
	END LOOP;
	RETURN same;
END
$$;

-- of the order of an index, to be had of it without sorting
CREATE FUNCTION by_index(step text, query text, twins text[] DEFAULT '{m,f}') RETURNS bool LANGUAGE plpgsql AS $$
DECLARE line text; plan text; t text;
BEGIN
	FOREACH t IN ARRAY twins LOOP
		plan := '';
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(query, '%t', t) LOOP
			plan := plan || line || E'\n';
		END LOOP;
		IF plan !~ 'Index' OR plan ~ 'Sort|Seq Scan' THEN
			INSERT INTO differences VALUES (step, query, NULL, plan);
		END IF;
	END LOOP;
	RETURN twin(step, query, twins);
END
$$;

CREATE PROCEDURE ask(step text) LANGUAGE plpgsql AS $$
DECLARE v mood; w mood; op text; way text; null_way text; enable text;
BEGIN
	FOREACH enable IN ARRAY ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'enable_incremental_sort', 'enable_hashagg'] LOOP
		PERFORM set_config(enable, 'off', true);
	END LOOP;
	FOREACH way IN ARRAY ARRAY['', 'DESC'] LOOP
		null_way := CASE way WHEN '' THEN 'DESC' ELSE '' END;
		PERFORM by_index(step, format('SELECT e, id FROM %%t ORDER BY e %1$s, id %1$s', way));
		PERFORM by_index(step, format('SELECT e, id FROM %%t ORDER BY e %1$s, id %1$s LIMIT 3', way));
		PERFORM by_index(step, format('SELECT d, n, id FROM %%t ORDER BY d %s, n %s, id %s', null_way,
			CASE way WHEN '' THEN 'NULLS FIRST' ELSE 'DESC NULLS LAST' END, way));
		PERFORM by_index(step, format('SELECT a, t, e, id FROM %%t ORDER BY a %1$s, t %2$s, e %2$s, id %1$s', way, null_way));
		PERFORM by_index(step, format('SELECT a, t, e, id FROM %%t WHERE a > 1 AND t < ''x3'' ORDER BY a %1$s, t %2$s, e %2$s, id %1$s', way, null_way));
		PERFORM by_index(step, format('SELECT e, id FROM %%t WHERE a = 2 AND t = ''x2'' ORDER BY e %2$s, id %1$s', way, null_way));
		PERFORM by_index(step, format('SELECT a, t, e, id FROM %%t WHERE a IN (4, 1, 2) AND t = ANY (''{x3,x1}'') ORDER BY a %1$s, t %2$s, e %2$s, id %1$s', way, null_way), '{m}');
		PERFORM by_index(step, format('SELECT a, d, t, n, id FROM %%t ORDER BY a %1$s, d %2$s, t %1$s, n %1$s, id %3$s', way,
			CASE way WHEN '' THEN 'DESC NULLS LAST' ELSE 'ASC NULLS FIRST' END, null_way));
		PERFORM by_index(step, format('SELECT e, id FROM %%t WHERE a < 3 AND id %% 2 = 1 ORDER BY e %1$s, id %1$s', way), '{m}');
		PERFORM by_index(step, format('SELECT a, e, id FROM %%t ORDER BY ARRAY[a] %1$s, e %1$s, id %1$s', way), '{m}');
		PERFORM by_index(step, format('SELECT n, id FROM %%t ORDER BY n %1$s, id %1$s', way), '{m}');
		PERFORM by_index(step, format('SELECT t, e, id FROM %%t ORDER BY t COLLATE "und-x-icu" %1$s, e %1$s, id %1$s', way));
	END LOOP;
	PERFORM twin(step, 'SELECT a, d, t FROM %t WHERE a IN (2, 3) AND d::mood IN (''happy'', ''sad'', ''so so'') ORDER BY a, d DESC, t, n, id DESC');
	PERFORM by_index(step, 'SELECT min(e), max(e) FROM %t', '{m}');
	PERFORM twin(step, 'SELECT min(e), max(e), min(n), max(d::mood) FROM %t');
	-- (each of a few, some of many)
	FOR v IN SELECT e FROM unnest(enum_range(NULL::mood)) WITH ORDINALITY x(e, i) WHERE i % (1 + array_length(enum_range(NULL::mood), 1) / 5) = 0 LOOP
		FOREACH op IN ARRAY ARRAY['<', '<=', '=', '>=', '>'] LOOP
			PERFORM by_index(step, format('SELECT e, id FROM %%t WHERE e %s %L ORDER BY e, id', op, v));
			PERFORM twin(step, format('SELECT a, count(*), sum(id) FROM %%t WHERE d::mood %s %L GROUP BY a ORDER BY a', op, v));
			PERFORM by_index(step, format('SELECT e, id FROM %%t WHERE a = 3 AND t = ''x1'' AND e %s %L ORDER BY e DESC, id', op, v));
			PERFORM twin(step, format('SELECT n, id FROM %%t WHERE a = 1 AND d::mood IN (''sad'', ''happy'') AND t = ''x1'' AND n %s %L ORDER BY d DESC, n, id DESC', op, v));
		END LOOP;
		PERFORM twin(step, format('SELECT e, id FROM %%t WHERE (e, id) > (%L, 30) ORDER BY e, id LIMIT 7', v));
		PERFORM twin(step, format('SELECT e, id FROM %%t WHERE (e, id) <= (%L, 30) ORDER BY e DESC, id DESC LIMIT 7', v));
		PERFORM twin(step, format('SELECT t, e, id FROM %%t WHERE a = 1 AND (t, e, id) < (''x2'', %L, 30) ORDER BY t DESC, e DESC, id LIMIT 7', v));
		w := (enum_range(NULL::mood))[1 + array_length(enum_range(NULL::mood), 1) / 2];
		PERFORM by_index(step, format('SELECT e, id FROM %%t WHERE e >= %L AND e < %L ORDER BY e DESC, id DESC', v, w));
		PERFORM by_index(step, format('SELECT e, id FROM %%t WHERE e > %L AND e <= %L ORDER BY e, id', w, v));
	END LOOP;
	PERFORM by_index(step, 'SELECT e, id FROM %t WHERE ARRAY[a] = ''{2}'' AND e > ''sad'' ORDER BY e, id', '{m}');
	PERFORM by_index(step, 'SELECT e, id FROM %t WHERE ARRAY[a] IN (''{2}'', ''{77}'', ''{1}'') AND e > ''sad'' ORDER BY ARRAY[a], e, id', '{m}');
	PERFORM by_index(step, 'SELECT a, e, id FROM %t WHERE ARRAY[a] > ''{2}'' ORDER BY ARRAY[a], e, id', '{m}');
	PERFORM twin(step, 'SELECT count(*), sum(id) FROM %t WHERE n IS NULL AND d IS NOT NULL');
	PERFORM set_config('enable_hashjoin', 'off', true), set_config('enable_nestloop', 'off', true), set_config('enable_material', 'off', true);
	PERFORM by_index(step, 'SELECT x.id, y.id FROM %t x JOIN h y ON x.e = y.e AND x.id = y.id ORDER BY x.e, x.id');
	PERFORM twin(step, 'SELECT count(*), sum(x.id * y.id) FROM h x JOIN %t y ON x.e = y.e WHERE x.id < 40');
	PERFORM twin(step, 'SELECT count(*), sum(x.id * y.id) FROM %t x JOIN h y ON x.e = y.e WHERE y.id < 40');
	PERFORM set_config('enable_hashjoin', 'on', true), set_config('enable_nestloop', 'on', true), set_config('enable_material', 'on', true);
	PERFORM set_config(name, 'on', true) FROM unnest(ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'enable_incremental_sort', 'enable_hashagg']) name;
END
$$;

-- rows of all values there are
CREATE PROCEDURE fill(step text, first int, rows int) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM twin(step, format('INSERT INTO %%t SELECT i, i %% 5, ''x'' || i %% 4, r[1 + i * 7 %% c], NULLIF(r[1 + i * 3 %% c], ''happy''), NULLIF(r[1 + i %% c], ''sad'')
		FROM generate_series(%s, %s) i, (SELECT enum_range(NULL::mood), array_length(enum_range(NULL::mood), 1)) x(r, c)
		WHERE r[1 + i * 3 %% c]::text <> ''grim''', first, first + rows - 1));
END
$$;

-- plans that are kept
PREPARE by_e(text) AS SELECT array_agg(m.e) = array_agg(m.e ORDER BY m.e) AND count(*) = (SELECT count(*) FROM h WHERE t <> $1)
	FROM (SELECT e FROM m WHERE t <> $1 ORDER BY e, id) m;
PREPARE least(text) AS SELECT (SELECT e FROM m WHERE t <> $1 ORDER BY e, id LIMIT 1) = (SELECT min(e) FROM h WHERE t <> $1) AND
	(SELECT e FROM m WHERE t <> $1 ORDER BY e DESC, id DESC LIMIT 1) = (SELECT max(e) FROM h WHERE t <> $1);
PREPARE from_e(mood) AS SELECT (SELECT array_agg(id) FROM (SELECT id FROM m WHERE e >= $1 ORDER BY e, id) x)
	IS NOT DISTINCT FROM (SELECT array_agg(id ORDER BY e, id) FROM h WHERE e >= $1) AS "right";
PREPARE of_e(mood, int) AS SELECT (SELECT t FROM m WHERE e = $1 AND id = $2) IS NOT DISTINCT FROM (SELECT t FROM h WHERE e = $1 AND id = $2) AS "right";
CREATE FUNCTION prepared(generic bool) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE v mood; q text; x text;
BEGIN
	PERFORM set_config('plan_cache_mode', CASE WHEN generic THEN 'force_generic_plan' ELSE 'force_custom_plan' END, true);
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true);
	FOREACH q IN ARRAY ARRAY['EXECUTE by_e(''x1'')', 'EXECUTE least(''x2'')'] LOOP
		EXECUTE q INTO x;
		IF x IS DISTINCT FROM 'true' THEN RETURN NEXT q; END IF;
	END LOOP;
	FOR v IN SELECT unnest(enum_range(NULL::mood)) LOOP
		FOREACH q IN ARRAY ARRAY['EXECUTE from_e(%L)', 'EXECUTE of_e(%L, 17)'] LOOP
			EXECUTE format(q, v) INTO x;
			IF x IS DISTINCT FROM 'true' THEN RETURN NEXT format(q, v); END IF;
		END LOOP;
	END LOOP;
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true);
END
$$;

-- in order, as they were made; then one at the end
CALL fill('made', 1, 60);
CALL ask('made');
SELECT prepared(true), prepared(false);
ALTER TYPE mood ADD VALUE 'merry';
CALL ask('one at the end');
CALL fill('one at the end', 101, 40);
CALL ask('rows of one at the end');
SELECT count(*) FILTER (WHERE oid::int8 % 2 = 1) AS odd FROM pg_enum WHERE enumtypid = 'mood'::regtype;

-- one between, of which there are no rows, and then some; one that is taken back
ALTER TYPE mood ADD VALUE 'fair' BEFORE 'happy';
SELECT count(*) FILTER (WHERE oid::int8 % 2 = 1) AS odd FROM pg_enum WHERE enumtypid = 'mood'::regtype;
CALL ask('one between');
BEGIN;
ALTER TYPE mood ADD VALUE 'hmm' BEFORE 'so so';
SELECT by_index('in the transaction', 'SELECT e, id FROM %t ORDER BY e, id');
INSERT INTO m VALUES (1000, 1, 'x', 'hmm');
ROLLBACK;
CALL ask('rolled back');
ALTER TYPE mood ADD VALUE 'grim' BEFORE 'sad';
CALL fill('rows of one between', 201, 60);
CALL ask('rows of one between');
SELECT prepared(true), prepared(false);

-- until all are numbered anew
SELECT string_agg(format('ALTER TYPE mood ADD VALUE %L BEFORE ''so so''', 'v' || i), ';') AS alters FROM generate_series(1, 40) i \gset
:alters;
SELECT count(*), max(enumsortorder) > 20 AS numbered_anew FROM pg_enum WHERE enumtypid = 'mood'::regtype;
CALL ask('many between');
CALL fill('rows of many between', 301, 150);
CALL ask('rows of many between');
SELECT prepared(true), prepared(false);

-- changes
SELECT bool_and(twin('change', q)) FROM (VALUES
	('UPDATE %t SET e = ''v17'' WHERE e = ''v18'''),
	('UPDATE %t SET d = ''v3'', n = d WHERE e < ''v10'''),
	('UPDATE %t SET n = NULL WHERE a = 1 AND t = ''x1'' AND e >= ''v20'' AND e <= ''merry'''),
	('DELETE FROM %t WHERE e BETWEEN ''v30'' AND ''v33'''),
	('UPDATE %t SET a = a + 1 WHERE d::mood > ''fair'''),
	('INSERT INTO %t SELECT id, a, t, e FROM %t LIMIT 1')) q(q);
CALL ask('changed');
BEGIN;
SAVEPOINT s;
SELECT twin('undone', 'DELETE FROM %t WHERE e > ''v5''');
SELECT twin('undone', 'INSERT INTO %t VALUES (2000, 1, ''x1'', ''v31''), (2001, 1, ''x1'', ''v2'')');
CALL ask('undone');
ROLLBACK TO s;
CALL ask('undo');
COMMIT;

-- keys of enums alone: ON CONFLICT, foreign keys
CREATE TABLE h_k (e mood PRIMARY KEY, n int);
CREATE TABLE m_k (e mood PRIMARY KEY, n int) USING mot;
CREATE TABLE h_f (e mood REFERENCES h_k ON UPDATE CASCADE ON DELETE CASCADE, id int, PRIMARY KEY (id, e));
CREATE TABLE m_f (e mood REFERENCES m_k ON UPDATE CASCADE ON DELETE CASCADE, id int, PRIMARY KEY (id, e)) USING mot;
SELECT bool_and(twin('keys', q, '{m}')) FROM (VALUES
	('INSERT INTO %t_k SELECT unnest(enum_range(NULL::mood)), 0'),
	('INSERT INTO %t_k VALUES (''v7'', 1)'),
	('INSERT INTO %t_k VALUES (''v7'', 1), (''sad'', 2) ON CONFLICT (e) DO UPDATE SET n = EXCLUDED.n RETURNING e, n'),
	('INSERT INTO %t_k VALUES (''v8'', 1) ON CONFLICT DO NOTHING'),
	('DELETE FROM %t_k WHERE e >= ''v35'' AND e < ''v38'''),
	('INSERT INTO %t_f SELECT e, i FROM %t_k, generate_series(1, 3) i'),
	('INSERT INTO %t_f VALUES (''v36'', 1)'),
	('UPDATE %t_k SET e = ''v36'' WHERE e = ''v9'''),
	('DELETE FROM %t_k WHERE e <= ''v2'''),
	('SELECT * FROM %t_k ORDER BY e'),
	('SELECT * FROM %t_f ORDER BY id, e'),
	('SELECT * FROM %t_f WHERE id = 2 AND e > ''v20'' ORDER BY e DESC'),
	('SELECT min(e), max(e) FROM %t_k')) q(q);

-- sent as text again and again: how many entries a plan that is remembered would read is counted before there is a snapshot
SELECT count(*), min(e), max(e) FROM m WHERE e >= 'v3' AND e < 'v7';
SELECT count(*), min(e), max(e) FROM m WHERE e >= 'v4' AND e < 'merry';
SELECT count(*), min(e), max(e) FROM m WHERE e >= 'v12' AND e < 'v15';
SELECT count(*), min(e), max(e) FROM h WHERE e >= 'v12' AND e < 'v15';
SELECT a, e, id FROM m WHERE a IN (1, 3) AND t = 'x1' AND e > 'v14' AND e <= 'v19' ORDER BY a, e DESC, id;
SELECT a, e, id FROM m WHERE a IN (1, 4) AND t = 'x1' AND e > 'v11' AND e <= 'v19' ORDER BY a, e DESC, id;
SELECT a, e, id FROM m WHERE a IN (1, 2) AND t = 'x1' AND e > 'v11' AND e <= 'v16' ORDER BY a, e DESC, id;
SELECT a, e, id FROM h WHERE a IN (1, 2) AND t = 'x1' AND e > 'v11' AND e <= 'v16' ORDER BY a, e DESC, id;

-- scans that turn round, and cursors that are open while rows of other values come
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT e, id FROM m WHERE a = 3 AND t = 'x1' AND id < 300 ORDER BY e DESC, id;
FETCH 3 FROM c;
INSERT INTO m VALUES (3, 3, 'x1', 'v1'), (4, 3, 'x1', 'v40');
FETCH 2 FROM c;
FETCH BACKWARD 4 FROM c;
FETCH ALL FROM c;
ROLLBACK;

-- stored anew
SELECT bool_and(twin('anew', q, '{m}')) FROM (VALUES ('REINDEX TABLE %t'), ('ALTER TABLE %t ALTER a TYPE bigint')) q(q);
CALL ask('anew');
DELETE FROM h WHERE e < 'fair' OR d::mood < 'fair' OR n < 'fair';
DELETE FROM m WHERE e < 'fair' OR d::mood < 'fair' OR n < 'fair';
DELETE FROM f WHERE e < 'fair' OR d::mood < 'fair' OR n < 'fair';
REINDEX TABLE m;
CALL ask('rows are in order again');
SELECT object, problems, first_problem FROM mot_verify('m') WHERE problems > 0;

-- equality is as it was: without the executor
EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM m WHERE e = 'fair' AND id = 17;
EXPLAIN (COSTS OFF) SELECT e FROM m_k WHERE e > 'v20' ORDER BY e DESC LIMIT 3;

SELECT * FROM differences;
SET client_min_messages = error;
DROP SCHEMA enum_keys CASCADE;
