-- Statements of compiled procedures that run without a snapshot of PostgreSQL's: what they call must
-- not miss it (see also specs/procedure-statements).
CREATE SCHEMA bare;
SET search_path = bare;
SET mot.jit_procedures_above_executions = 1;
SET mot.jit_prepare_above_executions = 0;
SET plan_cache_mode = force_generic_plan;

-- Operators that look into a table: by others' operators, in arrays of enums and ranges, rows are
-- sorted, told apart and compared, by functions that are the server's own or not called by name.
CREATE TYPE mood AS ENUM ('a', 'b', 'c', 'd');
CREATE TABLE ranks (m int PRIMARY KEY, k int) USING heap;
INSERT INTO ranks VALUES (1, 1), (2, 2), (3, 3), (4, 4);
CREATE FUNCTION ranked(x int, y int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN sign((SELECT k FROM ranks WHERE m = x) - (SELECT k FROM ranks WHERE m = y));
END $$;
CREATE FUNCTION ranked(x mood, y mood) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN ranked(ascii(x::text) - 96, ascii(y::text) - 96);
END $$;
DO $do$
DECLARE
	t text;
	o text[];
BEGIN
	FOREACH t IN ARRAY ARRAY['int', 'mood'] LOOP
		FOREACH o SLICE 1 IN ARRAY ARRAY[['lt', '<', '<#'], ['le', '<=', '<=#'], ['eq', '=', '=#'], ['ge', '>=', '>=#'], ['gt', '>', '>#']] LOOP
			EXECUTE format('CREATE FUNCTION %s(x %s, y %2$s) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN ranked(x, y) %s 0; END $$', o[1], t, o[2]);
			EXECUTE format('CREATE OPERATOR %s (LEFTARG = %s, RIGHTARG = %2$s, FUNCTION = %s)', o[3], t, o[1]);
		END LOOP;
		EXECUTE format('CREATE OPERATOR CLASS ranked_%s %s FOR TYPE %1$s USING btree AS
			OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#, FUNCTION 1 ranked(%1$s, %1$s)', t, CASE t WHEN 'mood' THEN 'DEFAULT' END);
	END LOOP;
END $do$;
CREATE FUNCTION ranked(x box, y box) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN ranked(area(x)::int, area(y)::int);
END $$;
CREATE OPERATOR CLASS ranked_box DEFAULT FOR TYPE box USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 ranked(box, box);
CREATE TYPE ranks_of AS RANGE (subtype = int, subtype_opclass = ranked_int);

CREATE TABLE felt_heap (id int PRIMARY KEY, m mood, ms mood[], k int, r ranks_of, size box) USING heap;
INSERT INTO felt_heap VALUES (1, 'a', '{a,b}', 1, '[1,3)', '(0,0),(1,1)'), (2, 'b', '{b,a}', 2, '[2,4)', '(0,0),(1,2)'),
	(3, 'c', '{c,a}', 3, '[1,2)', '(0,0),(1,3)'), (4, 'd', '{d,b}', 4, '[3,4)', '(0,0),(1,4)');
CREATE TABLE felt_mot (LIKE felt_heap INCLUDING INDEXES) USING mot;
INSERT INTO felt_mot SELECT * FROM felt_heap;
DO $do$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['heap', 'mot'] LOOP
		EXECUTE format($f$
			CREATE FUNCTION felt_%1$s() RETURNS text LANGUAGE plpgsql AS $$
			DECLARE
				a int; b int; c int; d int; e int; f int; g bool; h mood; l mood; n int; p int;
				few mood[] := '{a,b}';
				said text := '';
			BEGIN
				FOR i IN 1 .. 4 LOOP
					SELECT count(*) INTO a FROM felt_%1$s WHERE ms < few;
					SELECT id INTO b FROM felt_%1$s ORDER BY m;
					SELECT id INTO c FROM felt_%1$s ORDER BY k USING <# LIMIT 1;
					SELECT count(*) INTO d FROM felt_%1$s WHERE r @> k;
					SELECT count(DISTINCT m) INTO e FROM felt_%1$s;
					SELECT count(DISTINCT ms) INTO f FROM felt_%1$s;
					UPDATE felt_%1$s SET k = k WHERE id = 2 RETURNING ms < few INTO g;
					SELECT DISTINCT m INTO h FROM felt_%1$s ORDER BY m;
					SELECT greatest(m, 'a') INTO l FROM felt_%1$s WHERE id = 2;
					SELECT count(*) INTO n FROM felt_%1$s WHERE (size, id) < (box '(0,0),(1,3)', 0);
					p := 0;
					INSERT INTO felt_%1$s VALUES (2, 'b', '{b,a}', 2) ON CONFLICT (id) DO UPDATE SET k = felt_%1$s.k
						WHERE felt_%1$s.ms < excluded.ms OR felt_%1$s.ms < few RETURNING 1 INTO p;
					said := said || a || b || c || d || e || f || g || h || l || n || coalesce(p, 2) || ' ';
					UPDATE ranks SET k = 10 - k WHERE m < 3;
					UPDATE ranks SET k = CASE i WHEN 3 THEN 1 ELSE 3 END WHERE m = 3;
				END LOOP;
				UPDATE ranks SET k = m;
				RETURN said;
			END $$ $f$, t);
	END LOOP;
END $do$;
SELECT felt_heap(), felt_heap(), felt_heap();
SET mot.jit_procedures = on;
SELECT felt_mot(), felt_mot(), felt_mot();

-- What a function has changed of catalogs, and left to the next command to see, is seen by that.
CREATE FUNCTION mot_test_only_owner(oid) RETURNS int AS '$libdir/mot' LANGUAGE C STRICT;
CREATE ROLE bare_user;
GRANT USAGE ON SCHEMA bare TO bare_user;
GRANT SELECT ON felt_heap, felt_mot TO bare_user;
DO $do$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['heap', 'mot'] LOOP
		EXECUTE format($f$
			CREATE FUNCTION refused_%1$s(at int) RETURNS int LANGUAGE plpgsql AS $$
			DECLARE
				a int;
				x int;
			BEGIN
				FOR i IN 1 .. 3 LOOP
					IF i = at THEN
						x := mot_test_only_owner('felt_%1$s'::regclass);
					END IF;
					SELECT k INTO a FROM felt_%1$s WHERE id = 1;
				END LOOP;
				RETURN a;
			END $$ $f$, t);
	END LOOP;
END $do$;
SET ROLE bare_user;
SELECT refused_heap(0), refused_heap(0), refused_mot(0), refused_mot(0);
SELECT refused_heap(3);
SELECT refused_mot(3);
SELECT refused_mot(0);
RESET ROLE;

-- What is left to the interpreter when it has a plan already is planned as often as by the interpreter alone:
-- with values at first, of which the last is out of range.
DO $do$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['heap', 'mot'] LOOP
		EXECUTE format($f$
			CREATE FUNCTION locks_%1$s(b int8) RETURNS text LANGUAGE plpgsql STABLE AS $$
			DECLARE a int; BEGIN SELECT id INTO a FROM felt_%1$s WHERE id = b::int4 FOR UPDATE; RETURN a; END $$;
			CREATE FUNCTION locked_%1$s(b int8) RETURNS text LANGUAGE plpgsql AS $$
			BEGIN RETURN locks_%1$s(b); EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$ $f$, t);
	END LOOP;
END $do$;
SET plan_cache_mode = auto;
SELECT locked_heap(1), locked_heap(2), locked_heap(3), locked_heap(9223372036854775807);
SELECT locked_mot(1), locked_mot(2), locked_mot(3), locked_mot(9223372036854775807);
SET client_min_messages = warning;
DROP SCHEMA bare CASCADE;
DROP ROLE bare_user;
