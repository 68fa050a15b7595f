-- Statements as machine code from their first execution on: what changes
-- between two executions, and what ends one.  Nothing but mot_stat_jit may show it.
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;
SET client_min_messages = warning;
CREATE FUNCTION mot_jit_installed() RETURNS boolean AS '$libdir/mot' LANGUAGE C;
SELECT CASE WHEN mot_jit_installed() THEN '2' ELSE '1' END AS best \gset
DROP FUNCTION mot_jit_installed();
CREATE ROLE comp_user;
CREATE ROLE comp_owner;
CREATE DOMAIN comp_small AS int CHECK (VALUE < 1000);
CREATE TYPE comp_color AS ENUM ('red', 'green');
CREATE FOREIGN TABLE comp_t (id int PRIMARY KEY, v int NOT NULL, b bigint, n numeric, f float8, t text, s comp_small, c comp_color DEFAULT 'red', d int DEFAULT 7) SERVER mot_server;
CREATE FOREIGN TABLE comp_u (id int PRIMARY KEY, tid int) SERVER mot_server;
INSERT INTO comp_t SELECT i, i * 10, i, i, i, 'row ' || i, i, CASE WHEN i % 2 = 0 THEN 'green' ELSE 'red' END::comp_color FROM generate_series(1, 20) i;
INSERT INTO comp_u SELECT i, i FROM generate_series(1, 20) i;
-- of how many of the statements named in these tests is there code?
CREATE FUNCTION comp_tiers(names text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(name || ' ' || tier, ', ' ORDER BY name)
	FROM (SELECT substring(query FROM 'PREPARE (\w+)') AS name, tier FROM mot_stat_jit WHERE query ~ '^PREPARE') s WHERE name = ANY (string_to_array(names, ' '))
$$;

-- errors of values, and the statement after them
PREPARE mul(int, int) AS SELECT v * $2 FROM comp_t WHERE id = $1;
PREPARE mulb(int, bigint) AS SELECT b * $2 FROM comp_t WHERE id = $1;
PREPARE small(int) AS SELECT (v * 1000)::int2 FROM comp_t WHERE id = $1;
PREPARE div(int, int) AS SELECT v / $2, v % $2 FROM comp_t WHERE id = $1;
PREPARE divn(int, numeric) AS SELECT n / $2 FROM comp_t WHERE id = $1;
PREPARE divf(int, float8) AS SELECT f / $2 FROM comp_t WHERE id = $1;
PREPARE powf(int, float8) AS SELECT f ^ $2 FROM comp_t WHERE id = $1;
PREPARE num(int, text) AS SELECT v + $2::int FROM comp_t WHERE id = $1;
PREPARE chars(int, int) AS SELECT t || chr($2) FROM comp_t WHERE id = $1;
PREPARE conv(int, bytea) AS SELECT t || convert_from($2, 'UTF8') FROM comp_t WHERE id = $1;
PREPARE latin(int) AS SELECT convert_to(t || chr(8364), 'LATIN1') FROM comp_t WHERE id = $1;
PREPARE cut(int, int) AS SELECT substr(t, 2, $2) FROM comp_t WHERE id = $1;
PREPARE tot(bigint) AS SELECT sum(b * $1) FROM comp_t;
PREPARE whr(int) AS SELECT id FROM comp_t WHERE 100 / (v - $1) > 0 AND id < 5 ORDER BY id;
EXECUTE mul(2, 3); EXECUTE mul(2, 2000000000); EXECUTE mul(2, -4); EXECUTE mul(2, NULL);
EXECUTE mulb(3, 3); EXECUTE mulb(3, 9000000000000000000); EXECUTE mulb(3, 4);
EXECUTE small(3); EXECUTE small(4); EXECUTE small(1);
EXECUTE div(3, 7); EXECUTE div(3, 0); EXECUTE div(3, -1); EXECUTE div(99, 0);
EXECUTE divn(3, 7); EXECUTE divn(3, 0); EXECUTE divn(3, 'NaN');
EXECUTE divf(3, 8); EXECUTE divf(3, 0); EXECUTE divf(3, 'Infinity');
EXECUTE powf(3, 2); EXECUTE powf(3, 10000); EXECUTE powf(3, -10000); EXECUTE powf(3, 0.5);
EXECUTE num(3, '12'); EXECUTE num(3, 'x'); EXECUTE num(3, '99999999999'); EXECUTE num(3, '-5');
EXECUTE chars(3, 228); EXECUTE chars(3, -1); EXECUTE chars(3, 0); EXECUTE chars(3, 1114112); EXECUTE chars(3, 65);
EXECUTE conv(3, '\xc3a4'); EXECUTE conv(3, '\xff'); EXECUTE conv(3, '\x20'); EXECUTE latin(3);
EXECUTE cut(3, 2); EXECUTE cut(3, -1); EXECUTE cut(3, 1);
EXECUTE tot(2); EXECUTE tot(9000000000000000000); EXECUTE tot(3);
EXECUTE whr(25); EXECUTE whr(30); EXECUTE whr(25);
PREPARE updv(int, int) AS UPDATE comp_t SET v = v * $2, s = s + $2 WHERE id <= $1;
BEGIN; EXECUTE updv(2, 3); SELECT v, s FROM comp_t WHERE id < 4; SAVEPOINT s; EXECUTE updv(2, 2000000000); ROLLBACK TO s; EXECUTE updv(1, 1000);
ROLLBACK;
SELECT id, v, s FROM comp_t WHERE id < 4 ORDER BY id;
EXECUTE updv(1, 1);
SELECT replace(comp_tiers('mul mulb small div divn divf powf num chars conv cut tot whr updv'), :'best', 'best') AS tiers;
UPDATE comp_t SET v = id * 10, s = id WHERE id < 3;

-- types that change: domains, enumerations, columns
ALTER DOMAIN comp_small ADD CONSTRAINT even CHECK (VALUE % 2 = 0) NOT VALID;
EXECUTE updv(1, 2);
EXECUTE updv(1, 3);
ALTER DOMAIN comp_small DROP CONSTRAINT even;
EXECUTE updv(1, 2);
ALTER DOMAIN comp_small SET NOT NULL;
ALTER DOMAIN comp_small DROP NOT NULL;
PREPARE colors(comp_color) AS SELECT id, c FROM comp_t WHERE c >= $1 AND id < 4 ORDER BY id;
PREPARE paint(int, comp_color) AS UPDATE comp_t SET c = $2 WHERE id = $1 RETURNING c;
EXECUTE colors('green');
EXECUTE paint(1, 'blue');
ALTER TYPE comp_color ADD VALUE 'blue' BEFORE 'green';
EXECUTE paint(1, 'blue'); EXECUTE colors('green'); EXECUTE colors('blue');
ALTER TYPE comp_color RENAME VALUE 'blue' TO 'azure';
EXECUTE colors('azure');
PREPARE star(int) AS SELECT * FROM comp_t WHERE id = $1;
PREPARE txt(int) AS SELECT t || '!', length(t) FROM comp_t WHERE id = $1;
EXECUTE star(3); EXECUTE txt(3); EXECUTE mul(3, 2);
ALTER TABLE comp_t ALTER COLUMN v TYPE bigint;
EXECUTE mul(3, 2000000000);
EXECUTE star(3);
DEALLOCATE mul;
PREPARE mul(int, int) AS SELECT v * $2 FROM comp_t WHERE id = $1;
EXECUTE mul(3, 2000000000);
ALTER TABLE comp_t RENAME COLUMN t TO text;
EXECUTE txt(3);
ALTER TABLE comp_t RENAME COLUMN text TO t;
EXECUTE txt(3);
ALTER TABLE comp_t DROP COLUMN f;
EXECUTE txt(3); EXECUTE divf(3, 1); EXECUTE div(3, 7); EXECUTE updv(3, 1);
ALTER TABLE comp_t RENAME TO comp_other;
EXECUTE txt(3);
ALTER TABLE comp_other RENAME TO comp_t;
EXECUTE txt(3);

-- defaults, constraints, NOT NULL, keys, triggers
PREPARE ins(int, int) AS INSERT INTO comp_t (id, v) VALUES ($1, $2) RETURNING id, v, c, d;
EXECUTE ins(101, 1);
ALTER TABLE comp_t ALTER d SET DEFAULT 8, ALTER c SET DEFAULT 'green';
EXECUTE ins(102, 1);
ALTER TABLE comp_t ALTER d DROP DEFAULT;
EXECUTE ins(103, 1);
ALTER TABLE comp_t ADD CONSTRAINT low CHECK (v < 500);
EXECUTE ins(104, 500); EXECUTE ins(104, 499); EXECUTE updv(104, 2);
ALTER TABLE comp_t DROP CONSTRAINT low;
EXECUTE ins(105, 500); EXECUTE updv(105, 1);
ALTER TABLE comp_t ALTER v DROP NOT NULL;
EXECUTE ins(106, NULL);
DELETE FROM comp_t WHERE v IS NULL;
ALTER TABLE comp_t ALTER v SET NOT NULL;
EXECUTE ins(106, NULL);
CREATE UNIQUE INDEX comp_v ON comp_t (v) WITH (fillfactor = 90);
CREATE INDEX comp_b ON comp_t (b);
PREPARE byb(bigint) AS SELECT id FROM comp_t WHERE b = $1;
EXECUTE byb(5); EXECUTE ins(107, 1);
DROP INDEX comp_b;
EXECUTE byb(5); EXECUTE ins(108, 1);
CREATE FUNCTION comp_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.t := TG_OP; RETURN NEW; END';
CREATE TRIGGER comp_before BEFORE UPDATE OR INSERT ON comp_t FOR EACH ROW EXECUTE FUNCTION comp_trigger();
EXECUTE ins(109, 9); EXECUTE updv(1, 1); EXECUTE txt(1); EXECUTE txt(109);
ALTER TABLE comp_t DISABLE TRIGGER comp_before;
EXECUTE ins(110, 10); EXECUTE txt(110);
DROP TRIGGER comp_before ON comp_t;
EXECUTE ins(111, 11); EXECUTE txt(111);
DELETE FROM comp_t WHERE id > 100;
BEGIN; TRUNCATE comp_t; EXECUTE txt(3); EXECUTE ins(3, 3); EXECUTE star(3); ROLLBACK; EXECUTE txt(3);

-- search_path: the same statement, other tables and functions
CREATE SCHEMA comp_a; CREATE SCHEMA comp_b;
CREATE FOREIGN TABLE comp_a.tab (id int PRIMARY KEY, v text) SERVER mot_server;
CREATE FOREIGN TABLE comp_b.tab (v int, id int PRIMARY KEY) SERVER mot_server;
INSERT INTO comp_a.tab VALUES (1, 'in a'); INSERT INTO comp_b.tab VALUES (2, 1);
CREATE FUNCTION comp_a.half(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 / 2; END';
CREATE FUNCTION comp_b.half(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 * 2; END';
SET search_path = comp_a;
PREPARE path(int) AS SELECT v, half(id) FROM tab WHERE id = $1;
EXECUTE path(1);
SET search_path = comp_b;
EXECUTE path(1);
CREATE FUNCTION public.comp_path() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN SELECT * INTO r FROM tab WHERE id = 1; RETURN r; END $$;
SELECT public.comp_path();
SET search_path = comp_a;
SELECT public.comp_path(), public.comp_path();
RESET search_path;
DROP SCHEMA comp_a, comp_b CASCADE;
DEALLOCATE path;

-- privileges, checked at each execution: of tables, columns, functions, views; as whom a function runs
GRANT SELECT (id, t), UPDATE (t) ON comp_t TO comp_user;
PREPARE upt(int) AS UPDATE comp_t SET t = t || '.' WHERE id = $1 RETURNING t;
PREPARE seev(int) AS SELECT v FROM comp_t WHERE id = $1;
CREATE VIEW comp_view AS SELECT id, v FROM comp_t WHERE id < 10;
PREPARE view(int) AS SELECT v FROM comp_view WHERE id = $1;
EXECUTE view(3);
SET ROLE comp_user;
EXECUTE txt(3); EXECUTE upt(3); EXECUTE seev(3); EXECUTE view(3);
RESET ROLE;
REVOKE UPDATE (t) ON comp_t FROM comp_user; GRANT SELECT (v) ON comp_t TO comp_user; GRANT SELECT ON comp_view TO comp_user;
SET ROLE comp_user;
EXECUTE txt(3); EXECUTE upt(3); EXECUTE seev(3); EXECUTE view(3);
RESET ROLE;
REVOKE SELECT ON comp_view FROM comp_user;
CREATE FUNCTION comp_definer(int) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE r text; BEGIN UPDATE comp_t SET t = t || '~' WHERE id = $1 RETURNING t INTO r; RETURN r || ' ' || (current_user = session_user); END $$;
CREATE FUNCTION comp_invoker(int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text; BEGIN UPDATE comp_t SET t = t || '~' WHERE id = $1 RETURNING t INTO r; RETURN r; END $$;
SELECT comp_invoker(4), comp_definer(4);
SET ROLE comp_user;
EXECUTE view(3);
SELECT comp_definer(4);
SELECT comp_invoker(4);
SELECT comp_definer(4);
RESET ROLE;
ALTER FUNCTION comp_definer(int) OWNER TO comp_owner;
SELECT comp_definer(4);
GRANT SELECT, UPDATE ON comp_t TO comp_owner;
SELECT comp_definer(4);
REVOKE UPDATE ON comp_t FROM comp_owner;
SELECT comp_definer(4);
SELECT comp_invoker(4);
ALTER TABLE comp_t ENABLE ROW LEVEL SECURITY;
CREATE POLICY comp_policy ON comp_t USING (id < 5);

-- cursors
BEGIN;
DECLARE c CURSOR FOR SELECT id, v * 2 FROM comp_t WHERE id > 10 AND v % 20 = 0;
FETCH 2 FROM c;
UPDATE comp_t SET v = v + 1 WHERE id = 18;
FETCH ALL FROM c;
DECLARE s SCROLL CURSOR FOR SELECT id, v * 2 FROM comp_t WHERE id > 15;
FETCH LAST FROM s; FETCH RELATIVE -2 FROM s; FETCH ABSOLUTE 1 FROM s; MOVE ALL FROM s; FETCH PRIOR FROM s;
DECLARE e CURSOR WITH HOLD FOR SELECT id, v / (id - 19) FROM comp_t WHERE id > 16;
FETCH 1 FROM e;
COMMIT;
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT id, v * 2 FROM comp_t WHERE id > 16;
FETCH 1 FROM h;
COMMIT;
FETCH ALL FROM h;
DELETE FROM comp_t WHERE id = 20;
FETCH FIRST FROM h;
CLOSE h;

-- an end from outside, in the middle of a loop over rows that is machine code: all kinds of loops
CREATE FOREIGN TABLE comp_many (id int PRIMARY KEY, v int, t text) SERVER mot_server;
INSERT INTO comp_many SELECT i, i, 'x' FROM generate_series(1, 30000) i;
ANALYZE comp_many;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_nestloop = on;
CREATE FUNCTION comp_cancelled(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'PREPARE comp_long AS ' || statement;
	BEGIN
		EXECUTE 'EXECUTE comp_long';
		RETURN 'done';
	EXCEPTION WHEN query_canceled THEN
		EXECUTE 'DEALLOCATE comp_long';
		RETURN 'cancelled';
	END;
END $$;
SET statement_timeout = '300ms';
SELECT comp_cancelled('SELECT count(*) FROM comp_many a, comp_many b WHERE a.v + b.v < 0');
SELECT comp_cancelled('SELECT count(a.v + b.v) FROM comp_many a, comp_many b WHERE a.v + b.v > 0');
SELECT comp_cancelled('SELECT a.v FROM comp_many a, comp_many b WHERE a.v * 0 = b.v ORDER BY 1 LIMIT 3');
SELECT comp_cancelled('SELECT a.v FROM comp_many a, comp_many b WHERE a.v > b.v - 40000 ORDER BY b.t LIMIT 3');
SELECT comp_cancelled('UPDATE comp_many SET v = v + length(repeat(t, 200000)) WHERE id > 0');
SELECT comp_cancelled('DELETE FROM comp_many WHERE length(repeat(t, 200000)) > 1');
SELECT comp_cancelled('SELECT max(length(repeat(t, 200000))) FROM comp_many');
SELECT comp_cancelled('SELECT id FROM comp_many WHERE length(repeat(t, 200000)) = 1');
SELECT comp_cancelled('SELECT id FROM comp_many WHERE length(repeat(t, 200000)) > 1 FOR UPDATE');
RESET statement_timeout;
SELECT count(*), sum(v) FROM comp_many;
SELECT count(*) FROM mot_stat_jit WHERE query ~ 'comp_long';

DEALLOCATE ALL;
DROP VIEW comp_view;
DROP FUNCTION comp_definer, comp_invoker, comp_cancelled, comp_path, comp_tiers;
DROP FOREIGN TABLE comp_t, comp_u, comp_many;
DROP FUNCTION comp_trigger;
DROP DOMAIN comp_small;
DROP TYPE comp_color;
DROP ROLE comp_user, comp_owner;
