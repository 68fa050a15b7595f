-- Functions in PL/pgSQL as machine code: the same as by the interpreter, and what of it can be seen.
CREATE FUNCTION mot_jit_installed() RETURNS boolean AS '$libdir/mot' LANGUAGE C;
SELECT NOT mot_jit_installed() AS absent \gset
\if :absent
DROP FUNCTION mot_jit_installed();
\echo there is no compiler
\quit
\endif
DROP FUNCTION mot_jit_installed();

\set VERBOSITY terse
CREATE SCHEMA proc;
SET search_path = proc, public;
-- what a call returns, or how it fails
CREATE FUNCTION outcome(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text; said text; m text;
BEGIN
	EXECUTE 'SELECT (' || call || ')::text' INTO r;
	RETURN r;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, said = PG_EXCEPTION_CONTEXT;
	-- (which later servers call otherwise)
	RETURN SQLSTATE || ' ' || m || ' | ' || split_part(replace(said, 'PL/pgSQL expression', 'SQL expression'), E'\nSQL statement "SELECT (', 1);
END $$;
-- what is called, in this order; each once more in the same transaction, in which what failed shows
CREATE TABLE calls (id serial, call text) USING heap;
CREATE VIEW outcomes AS SELECT id, call, array_agg(outcome(call) ORDER BY n) AS answers
	FROM (SELECT * FROM calls, generate_series(1, 2) n ORDER BY id, n) c GROUP BY id, call;
CREATE VIEW seen AS SELECT function, executions, compiled_executions AS compiled, statements AS stmts, interpreted_statements AS by_interpreter,
	expressions AS exprs, interpreted_expressions AS interpreted, code_bytes > 0 AS has_code, why_not FROM mot_stat_procedures;

-- statements, variables, errors where they happen
CREATE FUNCTION sums(n int, OUT total bigint, OUT words text) LANGUAGE plpgsql AS $$
DECLARE one CONSTANT int NOT NULL := 1; half float8 = 0.5;
BEGIN
	total := 0;
	words := '';
	<<outermost>>
	FOR i IN one .. n LOOP
		FOR j IN REVERSE i .. 1 BY 2 LOOP
			CONTINUE outermost WHEN j = 4;
			total := total + j * half;
			EXIT outermost WHEN total > 1000;
		END LOOP;
		words := words || i::text || CASE WHEN FOUND THEN ',' ELSE ';' END;
	END LOOP;
	total := total / (n - 7);
END $$;
INSERT INTO calls (call) SELECT format('sums(%L)', n) FROM unnest(ARRAY[0, 1, 5, 7, 9, 100, NULL]) n;
CREATE FUNCTION narrow(a bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	s smallint := a;
	i int NOT NULL := NULLIF(a, 3);
	v varchar(3) := a;
	n numeric(4, 2) := a;
BEGIN
	i := i + 2147483647 - a;
	RETURN s || ' ' || i || ' ' || v || ' ' || n;
END $$;
INSERT INTO calls (call) SELECT format('narrow(%L)', a) FROM unnest(ARRAY[1, 3, 99, 100, 1000, 40000, 10000000000, NULL]) a;
CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0);
CREATE DOMAIN given AS text NOT NULL;
CREATE FUNCTION domains(a int, t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE e even := a; n int := 0;
BEGIN
	IF a > 2 THEN
		DECLARE g given := t; BEGIN
			n := length(g);
			g := NULLIF(g, 'x');
		END;
	ELSIF a < 0 THEN
		DECLARE g given; BEGIN n := 1; END;
	END IF;
	e := e + n;
	RETURN e;
END $$;
INSERT INTO calls (call) SELECT format('domains(%L, %L)', a, t) FROM (VALUES (1, 'a'), (2, 'a'), (4, 'ab'), (4, 'a'), (4, 'x'), (4, NULL), (-2, 'a'), (NULL, 'a')) v (a, t);
CREATE FUNCTION cases(a int, t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := '';
BEGIN
	CASE WHEN a = 1 THEN r := 'one'; WHEN a / (a - 2) > 100 THEN r := 'much'; ELSE NULL; END CASE;
	CASE t WHEN 'a', 'b' THEN r := r || 'ab'; WHEN NULL THEN r := 'never'; WHEN 'c' THEN r := r || 'c'; END CASE;
	CASE a WHEN 1 THEN r := r || 1; WHEN 1 / a THEN r := r || '!'; ELSE r := r || '?'; END CASE;
	RETURN r;
END $$;
INSERT INTO calls (call) SELECT format('cases(%L, %L)', a, t) FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c'), (0, 'b'), (3, 'd'), (3, NULL), (NULL, 'a')) v (a, t);
CREATE FUNCTION bounds(a text, b bigint, c int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := '';
BEGIN
	FOR i IN a .. b BY c LOOP
		r := r || ' ' || i;
		i := i + 100;
	END LOOP;
	RETURN r || ' ' || FOUND;
END $$;
INSERT INTO calls (call) SELECT format('bounds(%L, %L, %L)', a, b, c) FROM (VALUES ('1', 3, 1), ('1', 0, 1), ('2147483640', 2147483647, 5),
	('1', 2147483648, 1), ('x', 1, 1), ('1', 2, 0), ('1', 2, -1), (NULL, 1, 1), ('1', NULL, 1), ('1', 1, NULL)) v (a, b, c);
CREATE FUNCTION nothing_returned(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF a > 0 THEN RETURN a; END IF; END $$;
INSERT INTO calls (call) VALUES ('nothing_returned(1)'), ('nothing_returned(0)');
CREATE FUNCTION not_this_type() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 'x'; END $$;
INSERT INTO calls (call) VALUES ('not_this_type()');
CREATE FUNCTION nothing_at_all() RETURNS void LANGUAGE plpgsql AS $$ DECLARE i int := 1; BEGIN i := i + 1; END $$;
INSERT INTO calls (call) VALUES ('nothing_at_all() IS NULL');

-- it calls itself, and others, in expressions and in statements
CREATE FUNCTION fib(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r int := 1;
BEGIN
	IF n > 2 THEN
		r := fib(n - 1);
		r := r + fib(n - 2);
		IF n = 9 THEN r := r / (r - 34); END IF;
	END IF;
	RETURN r;
END $$;
INSERT INTO calls (call) VALUES ('fib(8)'), ('fib(9)'), ('fib(12)');
-- what the interpreter does as a whole, with loops around and within
CREATE FUNCTION handled(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := ''; x record; k int := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		BEGIN
			k := 10 / (i - 2);
			r := r || k;
		EXCEPTION WHEN division_by_zero THEN
			r := r || ' ' || SQLSTATE;
		END;
	END LOOP;
	FOR x IN SELECT g FROM generate_series(1, n) g LOOP
		CONTINUE WHEN x.g = 1;
		EXIT WHEN x.g > 3;
		r := r || ' ' || x.g;
	END LOOP;
	LOOP
		k := k + 1;
		BEGIN
			EXIT WHEN k > 3;
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
	END LOOP;
	GET DIAGNOSTICS k = ROW_COUNT;
	RETURN r || ' ' || k;
END $$;
INSERT INTO calls (call) VALUES ('handled(1)'), ('handled(4)');
CREATE FUNCTION only_handled(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	LOOP
		BEGIN
			n := n + 1;
			EXIT WHEN n > 3;
		EXCEPTION WHEN OTHERS THEN NULL;
		END;
	END LOOP;
	RETURN n;
END $$;
INSERT INTO calls (call) VALUES ('only_handled(1)');
-- statements in SQL: rows into variables, too few, too many, in functions that may not change anything, their own errors
CREATE TABLE items (id int PRIMARY KEY, v int NOT NULL, w text) USING mot;
INSERT INTO items SELECT i, i * 10, 'w' || i FROM generate_series(1, 5) i;
CREATE FUNCTION queried(k int, m int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a int := -1; b varchar(2) := 'b'; c even := 2; n bigint; r text := '';
BEGIN
	SELECT v, w INTO a, b FROM items WHERE id = k;
	r := r || a || b || FOUND;
	SELECT v, w, id INTO STRICT a, b, c FROM items WHERE id >= k AND id < k + m;
	UPDATE items SET v = v + 1 WHERE id = k RETURNING v INTO a;
	GET DIAGNOSTICS n = ROW_COUNT;
	r := r || ' ' || a || ' ' || n;
	DELETE FROM items WHERE id = k + 1;
	r := r || ' ' || FOUND || (SELECT count(*) FROM items);
	INSERT INTO items VALUES (k + 1, 10 / (k - 4), 'w');
	UPDATE items SET v = id * 10;
	PERFORM 1 FROM items WHERE v > 1000;
	RETURN r || FOUND;
END $$;
INSERT INTO calls (call) SELECT format('queried(%L, %L)', k, m) FROM (VALUES (2, 1), (2, 2), (4, 1), (5, 1), (9, 1), (1, 1), (NULL, 1)) v (k, m);
-- elements of arrays: none, outside, of a null array (whose subscripts are not evaluated), of an unusual one, changed
CREATE FUNCTION elements(a int[], b numeric[], c text[], n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := ''; x int; y numeric(6, 1); z varchar(3); square int[] := ARRAY[[1, 2], [3, n]]; own int[];
BEGIN
	FOR i IN 0 .. n LOOP
		x := a[i];
		y := b[i + 1];
		z := c[a[i]];
		own[i] := x + 1;
		IF a[i] > 1 OR b[10 / (n - i + 1)] IS NULL THEN
			r := r || COALESCE(c[i], '?');
		END IF;
		r := r || format('%s %s %s %s %s|', x, y, z, own[i], square[i][2]);
	END LOOP;
	RETURN r || square[n / 2][n / 2] || a[n / (n - 3)];
END $$;
INSERT INTO calls (call) SELECT format('elements(%L, %L, %L, %L)', a, b, c, n) FROM (VALUES
	('{1,2,3}', '{1.25,2.5,NULL,4}', '{one,two,three}', 2), ('{1,NULL,3}', '{1.25,2.5,NULL,4}', '{one,two,three}', 4),
	('[0:2]={5,6,7}', NULL, '{{a,b},{c,d}}', 2), ('{}', '{1}', NULL, 1), (NULL, NULL, NULL, 2), (NULL, NULL, NULL, 3), ('{1,2}', '{1}', '{x}', 3), ('{1}', '{}', '{}', NULL)) v (a, b, c, n);
CREATE FUNCTION members(j jsonb, k text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := ''; x jsonb;
BEGIN
	FOR i IN 0 .. 2 LOOP
		x := j[k];
		IF j[k][i] IS NULL THEN r := r || '-'; END IF;
		x := x[i];
		r := r || COALESCE(x::text, '?');
	END LOOP;
	RETURN r;
END $$;
INSERT INTO calls (call) VALUES ('members(''{"a": [1, 2], "b": {"1": 5}}'', ''a'')'), ('members(''{"a": [1, 2], "b": {"1": 5}}'', ''b'')'), ('members(''[]'', NULL)'), ('members(NULL, ''a'')');
-- values that variables do not take
CREATE FUNCTION taken(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a int NOT NULL := 0; b varchar(2) := 'x'; c text; d numeric(3, 1); e even;
BEGIN
	SELECT w, w, id + 0.25 INTO b, c, d FROM items WHERE id = k;
	SELECT NULLIF(v, 30), id INTO a, e FROM items WHERE id = k;
	RETURN concat_ws(' ', a, b, c, d, e);
END $$;
INSERT INTO calls (call) SELECT format('taken(%L)', k) FROM generate_series(1, 6) k;
CREATE FUNCTION reading(k int) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE a int;
BEGIN
	SELECT v INTO a FROM items WHERE id = k;
	IF a > 30 THEN UPDATE items SET v = 0; END IF;
	RETURN a;
END $$;
INSERT INTO calls (call) VALUES ('reading(1)'), ('reading(4)');
CREATE FUNCTION within_itself(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE a int := 0;
BEGIN
	IF n > 0 THEN
		SELECT within_itself(n - 1) + v INTO a FROM items WHERE id = 3;
		a := a / (n - 4);
	END IF;
	RETURN a;
END $$;
INSERT INTO calls (call) VALUES ('within_itself(3)'), ('within_itself(4)');
CREATE FUNCTION checked(k int) RETURNS text LANGUAGE plpgsql SET plpgsql.extra_errors = 'too_many_rows' AS $$
DECLARE a int;
BEGIN
	SELECT v INTO a FROM items WHERE id > k;
	RETURN a;
END $$;
INSERT INTO calls (call) VALUES ('checked(4)'), ('checked(1)');
-- where no row is, no domain of its columns says that they may be null
CREATE FUNCTION none_found(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE g given := 'g'; e even := 2;
BEGIN
	SELECT e, g INTO e, g FROM items WHERE id = k;
	RETURN g || e;
END $$;
INSERT INTO calls (call) VALUES ('none_found(1)'), ('none_found(9)');
-- rows without columns have nowhere to go either
CREATE FUNCTION no_columns(a int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF a > 0 THEN SELECT FROM items; END IF;
	RETURN a;
END $$;
INSERT INTO calls (call) VALUES ('no_columns(1)'), ('no_columns(0)');
-- the variable whose block has failed names the line until another block begins
CREATE FUNCTION left_over(a int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE said text;
BEGIN
	BEGIN
		DECLARE
			failing int := 1 / (a - a);
		BEGIN
			NULL;
		END;
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END;
	a := a + 1;
	IF a = 2 THEN GET DIAGNOSTICS said = PG_CONTEXT; END IF;
	BEGIN
		IF a > 2 THEN a := a / (a - a); END IF;
	END;
	RETURN said;
END $$;
INSERT INTO calls (call) VALUES ('left_over(1)'), ('left_over(2)');
-- plans that are not right any more: another operator by another search path, a function that has changed
CREATE FUNCTION times(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT $1 * $2 $$;
CREATE SCHEMA other;
CREATE OPERATOR other.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = proc.times);
CREATE FUNCTION paths(a int, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := ''; s int;
BEGIN
	FOR i IN 1 .. n LOOP
		s := a + 3;
		r := r || ' ' || s;
		IF i = 2 THEN
			PERFORM set_config('search_path', 'other, pg_catalog, proc, public', true);
		ELSIF i = 4 THEN
			PERFORM set_config('search_path', 'proc, public', true);
		END IF;
	END LOOP;
	PERFORM set_config('search_path', 'proc, public', true);
	RETURN r;
END $$;
INSERT INTO calls (call) VALUES ('paths(5, 6)');
-- ... which makes what CASE tests another type
CREATE FUNCTION halved(int, int) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT $1::numeric / $2 $$;
CREATE OPERATOR other.- (LEFTARG = int, RIGHTARG = int, FUNCTION = proc.halved);
CREATE FUNCTION types(a int, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := '';
BEGIN
	FOR i IN 1 .. n LOOP
		CASE a - 2
			WHEN 2 THEN r := r || ' two';
			WHEN 3 THEN r := r || ' three';
			ELSE r := r || ' neither';
		END CASE;
		PERFORM set_config('search_path', CASE i % 2 WHEN 1 THEN 'other, pg_catalog, ' ELSE '' END || 'proc, public', true);
	END LOOP;
	PERFORM set_config('search_path', 'proc, public', true);
	RETURN r;
END $$;
INSERT INTO calls (call) VALUES ('types(4, 5)'), ('types(5, 5)');
CREATE FUNCTION changing(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := ''; a int := 3;
BEGIN
	FOR i IN 1 .. n LOOP
		r := r || ' ' || times(a, a) || ' ' || (a OPERATOR(other.+) 2);
		IF i = 2 THEN
			CREATE OR REPLACE FUNCTION times(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -1';
		END IF;
	END LOOP;
	CREATE OR REPLACE FUNCTION times(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * $2';
	RETURN r;
END $$;
INSERT INTO calls (call) VALUES ('changing(4)');

-- ... of tables, settings that say which plan it is, roles who see other rows
CREATE TABLE shifting (id int PRIMARY KEY, v int) USING mot;
INSERT INTO shifting SELECT i, i FROM generate_series(1, 9) i;
CREATE FUNCTION shifted(n int) RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE r text := ''; a text;
BEGIN
	FOR i IN 1 .. n LOOP
		SELECT v INTO a FROM shifting WHERE id = i;
		r := r || ' ' || a;
		IF i = 3 THEN
			ALTER TABLE shifting ALTER v TYPE text USING v || 'th';
		ELSIF i = 5 THEN
			ALTER TABLE shifting RENAME v TO u;
			ALTER TABLE shifting ADD v int DEFAULT 7;
		END IF;
	END LOOP;
	ALTER TABLE shifting DROP v;
	ALTER TABLE shifting RENAME u TO v;
	ALTER TABLE shifting ALTER v TYPE int USING rtrim(v, 'th')::int;
	RETURN r;
END $$;
INSERT INTO calls (call) VALUES ('shifted(8)');
CREATE FUNCTION planned(k int, n int) RETURNS int LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE a int := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		-- (who plans it for this k divides by zero)
		SELECT v INTO a FROM items WHERE id = -1 AND v > 10 / k;
		IF i = 3 THEN PERFORM set_config('plan_cache_mode', 'force_custom_plan', true); END IF;
	END LOOP;
	RETURN a;
END $$;
INSERT INTO calls (call) VALUES ('planned(0, 3)'), ('planned(0, 4)');
CREATE ROLE proc_user;
GRANT USAGE ON SCHEMA proc TO proc_user;
CREATE TABLE owned (id int PRIMARY KEY, owner name) USING mot;
INSERT INTO owned VALUES (1, 'proc_user'), (2, 'nobody');
GRANT SELECT ON owned TO proc_user;
CREATE POLICY own ON owned USING (owner = current_user);
ALTER TABLE owned ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION seen_by(n int) RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE r text := ''; a name;
BEGIN
	FOR i IN 1 .. n LOOP
		FOR k IN 1 .. 2 LOOP
			SELECT owner INTO a FROM owned WHERE id = k;
			r := r || ' ' || COALESCE(a::text, '-');
		END LOOP;
		PERFORM set_config('role', CASE i % 3 WHEN 2 THEN 'proc_user' ELSE 'none' END, true);
	END LOOP;
	PERFORM set_config('role', 'none', true);
	RETURN r;
END $$;
INSERT INTO calls (call) VALUES ('seen_by(6)');

-- by the interpreter; compiled at the first call, before there is any plan, and after it
SET mot.jit_procedures = off;
CREATE TABLE interpreted USING heap AS SELECT * FROM outcomes;
SET mot.jit_procedures = on;
SET mot.jit_procedures_above_executions = 0;
CREATE TABLE compiled USING heap AS SELECT * FROM outcomes;
CREATE TABLE again USING heap AS SELECT * FROM outcomes;
\pset format unaligned
SELECT i.call, i.answers[1], CASE WHEN i.answers[2] <> i.answers[1] THEN i.answers[2] END AS once_more,
	c.answers = i.answers AS same, a.answers = i.answers AS again
	FROM interpreted i JOIN compiled c USING (id) JOIN again a USING (id) ORDER BY id;
\pset format aligned
SELECT function, stmts, by_interpreter, exprs, interpreted, has_code, why_not FROM seen WHERE function::text !~ '^outcome' ORDER BY function::text;

-- what is not compiled
CREATE FUNCTION set_returned() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. 2 LOOP RETURN NEXT i; END LOOP; END $$;
CREATE FUNCTION all_handled() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / 0; EXCEPTION WHEN OTHERS THEN RETURN -1; END $$;
CREATE FUNCTION all_sql() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1'; RETURN (SELECT 2); END $$;
CREATE FUNCTION of_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v + 1; RETURN NEW; END $$;
CREATE TABLE triggered (v int) USING mot;
CREATE TRIGGER t BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION of_trigger();
INSERT INTO triggered VALUES (1), (2) RETURNING v;
SELECT * FROM set_returned();
SELECT all_handled(), all_sql() FROM generate_series(1, 3);
SELECT function, compiled, has_code, why_not FROM seen WHERE function::text ~ '^(set_returned|all_|of_trigger|only_)' ORDER BY function::text;

-- a function that is replaced while it runs
CREATE FUNCTION replaced(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r int := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		r := r + i;
		EXECUTE $x$ CREATE OR REPLACE FUNCTION replaced(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN n := n * 100; RETURN n; END' $x$;
	END LOOP;
	RETURN r + replaced(0) + n;
END $$;
SELECT replaced(3), replaced(3), replaced(3);
CREATE FUNCTION discarding(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r int := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		r := r + i;
		EXECUTE 'DISCARD PLANS';
	END LOOP;
	RETURN r;
END $$;
SELECT discarding(4) FROM generate_series(1, 4);
-- ... before a CASE, and after an expression has failed: the next plan may lie where the last one was
CREATE FUNCTION tested(a int, t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text := ''; c int;
BEGIN
	CASE COALESCE(NULLIF(-1, a), length(t)) WHEN 3 THEN r := r || '3'; WHEN a THEN r := r || 'a'; ELSE r := r || '?'; END CASE;
	CASE upper(t || 'x') WHEN 'AX' THEN r := r || 'AX'; WHEN t THEN r := r || 't'; ELSE r := r || '?'; END CASE;
	c := COALESCE(NULLIF(-1, a), length(t)) / a;
	CASE (a * a - a) WHEN 2 THEN r := r || '2'; WHEN a THEN r := r || 'a'; ELSE r := r || '?'; END CASE;
	RETURN r || c;
END $$;
SELECT tested(1, 'a'), tested(1, 'a'), tested(1, 'a');
DISCARD PLANS;
SELECT tested(1, 'a');
SELECT tested(2, 'a');
SELECT tested(1, 'b');
DISCARD PLANS;
SELECT tested(1, 'a');
SELECT tested(2, 'a');
BEGIN;
SET LOCAL plan_cache_mode = force_generic_plan;
SAVEPOINT s;
SELECT tested(0, 'a');
ROLLBACK TO s;
DISCARD PLANS;
SELECT tested(1, 'a');
COMMIT;
SELECT tested(1, 'a');
SELECT tested(2, 'b');

-- transactions end in the middle
CREATE TABLE steps (id int PRIMARY KEY, v int) USING mot;
CREATE PROCEDURE stepwise(n int, INOUT undone int) LANGUAGE plpgsql AS $$
DECLARE t text := 'x';
BEGIN
	undone := 0;
	FOR i IN 1 .. n LOOP
		INSERT INTO steps VALUES (i, length(t));
		t := t || i;
		IF i % 3 = 0 THEN
			ROLLBACK;
			undone := undone + 1;
		ELSE
			COMMIT;
		END IF;
	END LOOP;
END $$;
CALL stepwise(7, NULL);
SELECT * FROM steps ORDER BY id;
DELETE FROM steps;
CALL stepwise(7, NULL);
SELECT * FROM steps ORDER BY id;
DELETE FROM steps;
CALL stepwise(7, NULL);
SELECT function, compiled > 0 AS compiled FROM seen WHERE function::text ~ 'stepwise';

-- an endless loop can be ended
CREATE FUNCTION endless(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN WHILE n <> 0 LOOP n := n % 7 + 1; END LOOP; RETURN n; END $$;
SELECT endless(0) FROM generate_series(1, 3);
CREATE FUNCTION endless_nothing(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF n = 0 THEN RETURN 0; END IF; LOOP END LOOP; END $$;
SELECT endless_nothing(0) FROM generate_series(1, 3);
SET statement_timeout = '500ms';
SELECT endless(1);
SELECT endless_nothing(1);
RESET statement_timeout;
SELECT function, compiled FROM seen WHERE function::text ~ 'endless' ORDER BY function::text;

-- the setting changes while it runs; memory does not grow with passes
CREATE FUNCTION switching(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r int := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		r := r + i;
		PERFORM set_config('mot.jit_procedures', CASE i % 2 WHEN 0 THEN 'on' ELSE 'off' END, false);
	END LOOP;
	RETURN r;
END $$;
SELECT switching(i) FROM generate_series(1, 6) i;
SET mot.jit_procedures = on;
CREATE FUNCTION strings(n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE t text := ''; d numeric := 0; before bigint; used bigint;
BEGIN
	SELECT sum(total_bytes) INTO before FROM pg_backend_memory_contexts;
	FOR i IN 1 .. n LOOP
		t := substr(t || repeat('x', 100), 1, 300);
		IF t LIKE '%y' THEN d := 0; END IF;
		d := d + length(t);
		CASE t WHEN 'a' THEN d := 0; ELSE NULL; END CASE;
	END LOOP;
	SELECT sum(total_bytes) INTO used FROM pg_backend_memory_contexts;
	RETURN (used - before) / 1000000;
END $$;
SELECT strings(100) + strings(100) + strings(20000) AS megabytes;

-- a plan that is had again without asking has its tables locked: after what locked them has been undone, in the next transaction
CREATE FUNCTION looked(k int, OUT v int, OUT locks text) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 3 LOOP
		SELECT items.v INTO v FROM items WHERE id = k;
	END LOOP;
	SELECT string_agg(mode, ' ') INTO locks FROM pg_locks WHERE relation = 'items'::regclass AND pid = pg_backend_pid();
END $$;
SET plan_cache_mode = force_generic_plan;
SELECT looked(1), looked(1), looked(1);
BEGIN;
SAVEPOINT s;
SELECT looked(1);
ROLLBACK TO s;
SELECT looked(1);
ROLLBACK;
CREATE PROCEDURE locking(n int, INOUT locks text) LANGUAGE plpgsql AS $$
DECLARE a int; l text;
BEGIN
	locks := '';
	FOR i IN 1 .. n LOOP
		SELECT v INTO a FROM items WHERE id = i;
		SELECT string_agg(mode, ' ') INTO l FROM pg_locks WHERE relation = 'items'::regclass AND pid = pg_backend_pid();
		locks := concat_ws(' ', locks, a, l);
		IF i % 2 = 0 THEN COMMIT; END IF;
	END LOOP;
END $$;
CALL locking(4, NULL);
CALL locking(4, NULL);
RESET plan_cache_mode;
SELECT function, compiled > 0 AS compiled, by_interpreter FROM seen WHERE function::text ~ '^lock|^looked' ORDER BY function::text;

-- who may not call a function any more
CREATE FUNCTION absolutely(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN n := abs(n) + 1; RETURN n; END $$;
SET ROLE proc_user;
SELECT absolutely(-1) FROM generate_series(1, 3);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION abs(int) FROM PUBLIC;
SET ROLE proc_user;
SELECT absolutely(-1);
SELECT absolutely(-1);
RESET ROLE;
SELECT absolutely(-1) FROM generate_series(1, 9);
SELECT function, exprs, interpreted FROM seen WHERE function::text ~ 'absolutely';
GRANT EXECUTE ON FUNCTION abs(int) TO PUBLIC;

-- who has a plugin of PL/pgSQL has all functions; who gets one while a function runs hears of it
CREATE FUNCTION mot_other_plugin(boolean) RETURNS void AS '$libdir/mot' LANGUAGE C STRICT;
CREATE FUNCTION plugged(n int, other boolean) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 3 LOOP
		n := n + i;
		IF i = 2 THEN PERFORM mot_other_plugin(other); END IF;
	END LOOP;
	RETURN n;
END $$;
SELECT plugged(1, false), plugged(1, false), plugged(1, false);
SELECT plugged(1, true);
SELECT plugged(1, true), plugged(1, true);
SELECT function, executions, compiled, why_not FROM seen WHERE function::text ~ 'plugged';
SELECT mot_other_plugin(false);
SELECT plugged(1, false);
SELECT function, executions, compiled, why_not FROM seen WHERE function::text ~ 'plugged';

-- a function that goes takes its code along
DROP FUNCTION fib(int);
CREATE FUNCTION fib(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN n := n + 1; RETURN n; END $$;
SELECT fib(1), fib(2), fib(3);
SELECT executions, compiled FROM seen WHERE function::text ~ '^fib';
RESET ALL;
SET client_min_messages = warning;
DROP SCHEMA other, proc CASCADE;
DROP ROLE proc_user;
