-- Privileges may be gone between two executions of one prepared statement,
-- whatever they came from; what was prepared for them goes with them.  Heap
-- tables say what is right.
CREATE ROLE roles_reader;
CREATE ROLE roles_group;
CREATE ROLE roles_owner;
CREATE FOREIGN TABLE roles_mot (id integer PRIMARY KEY, v integer) SERVER mot_server;
CREATE TABLE roles_heap (id integer PRIMARY KEY, v integer) WITH (autovacuum_enabled = off);
INSERT INTO roles_mot SELECT g, g FROM generate_series(1, 10) g;
INSERT INTO roles_heap SELECT g, g FROM generate_series(1, 10) g;
CREATE TABLE roles_secret (id integer PRIMARY KEY);
INSERT INTO roles_secret SELECT g FROM generate_series(1, 10) g;
CREATE VIEW roles_mot_view AS SELECT * FROM roles_mot WHERE v < 8;
CREATE VIEW roles_heap_view AS SELECT * FROM roles_heap WHERE v < 8;
CREATE VIEW roles_mot_rls AS SELECT t.* FROM roles_mot t WHERE EXISTS (SELECT FROM roles_secret s WHERE s.id = t.id);
CREATE VIEW roles_heap_rls AS SELECT t.* FROM roles_heap t WHERE EXISTS (SELECT FROM roles_secret s WHERE s.id = t.id);
GRANT SELECT ON roles_mot_view, roles_heap_view, roles_mot_rls, roles_heap_rls TO roles_reader;
CREATE FUNCTION roles_function(i integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN i + 1; END $$;
REVOKE ALL ON FUNCTION roles_function(integer) FROM PUBLIC;

-- Is the statement allowed after "given", again and again, and after "taken"?
CREATE FUNCTION roles_tries(given text, statement text, taken text, kind text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text := '';
BEGIN
	EXECUTE replace('PREPARE roles_statement (integer) AS ' || statement, '@', kind);
	EXECUTE replace(given, '@', kind);
	SET LOCAL ROLE roles_reader;
	FOR i IN 1 .. 7 LOOP
		IF i = 7 THEN
			RESET ROLE;
			EXECUTE replace(taken, '@', kind);
			SET LOCAL ROLE roles_reader;
		END IF;
		BEGIN
			EXECUTE format('EXECUTE roles_statement (%s)', i);
			result := result || ' allowed';
		EXCEPTION WHEN insufficient_privilege THEN
			result := result || ' ' || replace(sqlerrm, 'foreign ', '');
		END;
	END LOOP;
	RESET ROLE;
	DEALLOCATE roles_statement;
	RETURN replace(result, kind, '@');
END
$$;
CREATE FUNCTION roles_case(given text, statement text, taken text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	mot text := roles_tries(given, statement, taken, 'roles_mot');
	heap text := roles_tries(given, statement, taken, 'roles_heap');
BEGIN
	RETURN CASE WHEN mot = heap THEN 'same:' || mot ELSE 'mot:' || mot || ', heap:' || heap END;
END
$$;
CREATE FUNCTION roles_all() RETURNS TABLE (given text, statement text, result text) LANGUAGE plpgsql AS $$
DECLARE
	owner text := (SELECT r.rolname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE datname = current_database());
	pairs text[] := ARRAY[
		['GRANT ALL ON @ TO roles_reader', 'REVOKE ALL ON @ FROM roles_reader'],
		['GRANT ALL ON @ TO PUBLIC', 'REVOKE ALL ON @ FROM PUBLIC'],
		['GRANT SELECT (id), UPDATE (v), INSERT (id, v) ON @ TO roles_reader', 'REVOKE ALL (id, v) ON @ FROM roles_reader'],
		['GRANT ALL ON @ TO roles_group; GRANT roles_group TO roles_reader', 'REVOKE roles_group FROM roles_reader; REVOKE ALL ON @ FROM roles_group'],
		['ALTER ROLE roles_reader INHERIT; GRANT ALL ON @ TO roles_group; GRANT roles_group TO roles_reader', 'ALTER ROLE roles_reader NOINHERIT'],
		['ALTER ROLE roles_reader INHERIT; GRANT ALL ON @ TO roles_group; GRANT roles_owner TO roles_reader; GRANT roles_group TO roles_owner', 'REVOKE roles_group FROM roles_owner, roles_reader'],
		['REVOKE roles_owner FROM roles_reader; REVOKE ALL ON @ FROM roles_group; GRANT pg_read_all_data, pg_write_all_data TO roles_reader', 'REVOKE pg_read_all_data, pg_write_all_data FROM roles_reader'],
		['ALTER ROLE roles_reader SUPERUSER', 'ALTER ROLE roles_reader NOSUPERUSER'],
		['ALTER TABLE @ OWNER TO roles_reader', 'ALTER TABLE @ OWNER TO CURRENT_USER'],
		[format('GRANT ALL ON @ TO pg_database_owner; ALTER DATABASE %I OWNER TO roles_reader', current_database()),
		 format('ALTER DATABASE %I OWNER TO %I', current_database(), owner)],
		[format('CREATE ROLE roles_gone; GRANT ALL ON @ TO roles_gone; GRANT roles_gone TO roles_reader'),
		 'REVOKE ALL ON @ FROM roles_gone; DROP ROLE roles_gone']];
	statements text[] := ARRAY['SELECT id FROM @ WHERE id = $1', 'UPDATE @ SET v = 3 WHERE id = $1', 'INSERT INTO @ SELECT $1 + 100, 1 WHERE false',
		'DELETE FROM @ WHERE id = $1 + 100', 'SELECT count(*) FROM (SELECT id FROM @ WHERE id > $1 FOR UPDATE) s'];
BEGIN
	FOR i IN 1 .. array_length(pairs, 1) LOOP
		FOREACH statement IN ARRAY statements LOOP
			given := pairs[i][1];
			result := roles_case(pairs[i][1], statement, pairs[i][2]);
			RETURN NEXT;
		END LOOP;
	END LOOP;
	-- functions, of which privileges are asked when an expression is made
	GRANT ALL ON roles_mot, roles_heap TO roles_reader;
	statement := 'SELECT roles_function(v) FROM @ WHERE id = $1';
	pairs := ARRAY[
		['GRANT EXECUTE ON FUNCTION roles_function(integer) TO roles_reader', 'REVOKE ALL ON FUNCTION roles_function(integer) FROM roles_reader'],
		['GRANT EXECUTE ON FUNCTION roles_function(integer) TO roles_group; GRANT roles_group TO roles_reader', 'REVOKE roles_group FROM roles_reader'],
		['ALTER ROLE roles_reader SUPERUSER', 'ALTER ROLE roles_reader NOSUPERUSER'],
		[format('GRANT EXECUTE ON FUNCTION roles_function(integer) TO pg_database_owner; ALTER DATABASE %I OWNER TO roles_reader', current_database()),
		 format('ALTER DATABASE %I OWNER TO %I', current_database(), owner)]];
	FOR i IN 1 .. array_length(pairs, 1) LOOP
		given := pairs[i][1];
		result := roles_case(pairs[i][1], statement, pairs[i][2]);
		RETURN NEXT;
	END LOOP;
	REVOKE ALL ON roles_mot, roles_heap FROM roles_reader;
	-- views: what counts is what their owner may
	statement := 'SELECT id FROM @_view WHERE id = $1';
	pairs := ARRAY[
		['ALTER VIEW @_view OWNER TO roles_owner; GRANT SELECT ON @ TO roles_owner', 'REVOKE SELECT ON @ FROM roles_owner'],
		['GRANT SELECT ON @ TO roles_group; GRANT roles_group TO roles_owner', 'REVOKE roles_group FROM roles_owner'],
		[format('GRANT ALL ON @ TO pg_database_owner; ALTER DATABASE %I OWNER TO roles_owner', current_database()),
		 format('ALTER DATABASE %I OWNER TO %I', current_database(), owner)],
		['ALTER VIEW @_view OWNER TO CURRENT_USER', 'ALTER VIEW @_view OWNER TO roles_owner'],
		['ALTER VIEW @_view SET (security_invoker); GRANT SELECT ON @ TO roles_reader', 'REVOKE SELECT ON @ FROM roles_reader']];
	FOR i IN 1 .. array_length(pairs, 1) LOOP
		given := pairs[i][1];
		result := roles_case(pairs[i][1], statement, pairs[i][2]);
		RETURN NEXT;
	END LOOP;
END
$$;
SET client_min_messages = error;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE roles_results AS SELECT * FROM roles_all();
SELECT * FROM roles_results WHERE result NOT LIKE 'same:%';
SELECT right(result, 48) AS result, count(*) FROM roles_results GROUP BY 1 ORDER BY 2 DESC, 1;
SELECT given, statement FROM roles_results WHERE result NOT LIKE 'same: allowed%';
DROP TABLE roles_results;
SET mot.jit_prepare_above_executions = 0;
SELECT * FROM roles_all() WHERE result NOT LIKE 'same:%';
SET mot.jit = off;
SELECT * FROM roles_all() WHERE result NOT LIKE 'same:%';
RESET mot.jit;

-- who asks: SET ROLE, SET SESSION AUTHORIZATION, functions of another
GRANT SELECT ON roles_mot TO roles_reader;
PREPARE roles_who (integer) AS SELECT v, current_user FROM roles_mot WHERE id = $1;
SET ROLE roles_reader;
EXECUTE roles_who (8);
EXECUTE roles_who (8);
SET ROLE roles_owner;
EXECUTE roles_who (8);
SET SESSION AUTHORIZATION roles_reader;
EXECUTE roles_who (8);
RESET SESSION AUTHORIZATION;
RESET ROLE;
REVOKE SELECT ON roles_mot FROM roles_reader;

-- a policy on a heap table beneath a view
ALTER TABLE roles_secret ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON roles_secret, roles_mot, roles_heap TO roles_owner;
ALTER VIEW roles_mot_rls OWNER TO roles_owner;
ALTER VIEW roles_heap_rls OWNER TO roles_owner;
PREPARE roles_rls_mot AS SELECT count(*) FROM roles_mot_rls;
PREPARE roles_rls_heap AS SELECT count(*) FROM roles_heap_rls;
CREATE FUNCTION roles_rls() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	texts text[] := '{}';
	n bigint;
	kind text;
BEGIN
	SET LOCAL ROLE roles_reader;
	FOREACH kind IN ARRAY ARRAY['mot', 'heap'] LOOP
		texts := array_append(texts, '');
		FOR i IN 1 .. 3 LOOP
			BEGIN
				FOR n IN EXECUTE 'EXECUTE roles_rls_' || kind LOOP
					texts[cardinality(texts)] := texts[cardinality(texts)] || n || ' ';
				END LOOP;
			EXCEPTION WHEN insufficient_privilege THEN
				texts[cardinality(texts)] := texts[cardinality(texts)] || sqlerrm || ' ';
			END;
		END LOOP;
	END LOOP;
	RESET ROLE;
	RETURN CASE WHEN texts[1] = texts[2] THEN 'same: ' || texts[1] ELSE 'mot ' || texts[1] || ', heap ' || texts[2] END;
END
$$;
SELECT roles_rls();
CREATE POLICY roles_policy ON roles_secret USING (id > 4);
SELECT roles_rls();
ALTER POLICY roles_policy ON roles_secret USING (id > 7);
SELECT roles_rls();
ALTER ROLE roles_owner BYPASSRLS;
-- (whether at once depends on the minor release)
SELECT roles_rls() LIKE 'same: %' AS same;
DISCARD PLANS;
SELECT roles_rls();
ALTER ROLE roles_owner NOBYPASSRLS;
ALTER TABLE roles_secret DISABLE ROW LEVEL SECURITY;
SELECT roles_rls();
ALTER TABLE roles_secret ENABLE ROW LEVEL SECURITY;
SET row_security = off;
SELECT roles_rls();
RESET row_security;

DEALLOCATE ALL;
DROP FUNCTION roles_rls(), roles_all(), roles_case(text, text, text), roles_tries(text, text, text, text), roles_function(integer);
DROP VIEW roles_mot_view, roles_heap_view, roles_mot_rls, roles_heap_rls;
DROP TABLE roles_heap, roles_secret;
DROP FOREIGN TABLE roles_mot;
DROP ROLE roles_reader, roles_group, roles_owner;
