--
-- ORDER BY and DISTINCT of statements that run without the executor (src/statement/sort.c): few rows and
-- many, of all kinds of keys, are in the order that heap's are in.
--
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
SET enable_hashagg = off;
SET enable_incremental_sort = off;
SET jit = off;
CREATE COLLATION so_us (provider = libc, locale = 'en_US.UTF-8');
-- (of a server without ICU it is glibc's)
SELECT count(*) = 0 AS without_icu FROM pg_collation WHERE collprovider = 'i' AND collname = 'und-x-icu' \gset
\if :without_icu
CREATE COLLATION so_ci FROM so_us;
\else
CREATE COLLATION so_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
\endif
CREATE TYPE so_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE so_mood ADD VALUE 'meh' BEFORE 'ok';
CREATE TABLE so_h (id int PRIMARY KEY, b bool, c "char", i2 int2, i4 int, i8 int8, o oid, f4 float4, f8 float8, n numeric,
	d date, ts timestamptz, ti timetz, iv interval, u uuid, m macaddr, ip inet, cash money, by bytea, bits varbit,
	tc text COLLATE "C", t text, us text COLLATE so_us, ci varchar COLLATE so_ci, p text COLLATE "POSIX", bp char(12) COLLATE "C", bpd char(12), vc varchar COLLATE "C", na name,
	e so_mood, a int[], j jsonb, big text COLLATE "C");
INSERT INTO so_h
SELECT g, nullif(r % 3, 2) = 1, nullif(chr(60 + r % 90), 'Z'), nullif(r % 300 - 150, 7), nullif(r % 500 - 250, 8), nullif(r * 1000000007::int8, 3000000021) * (r % 3 - 1),
	nullif(r * 4000000::int8, 0)::oid, (r % 41 - 20) / 3.0, CASE r % 50 WHEN 1 THEN 'NaN' WHEN 2 THEN '-0' WHEN 3 THEN 0 WHEN 4 THEN '-inf' ELSE (r % 97 - 48) * 1e10 / 7 END,
	CASE r % 50 WHEN 1 THEN 'NaN' WHEN 2 THEN 1.0 WHEN 3 THEN 1.00 WHEN 4 THEN 'inf' WHEN 5 THEN NULL ELSE (r % 83 - 41) * 1.01 ^ (r % 200) END,
	CASE r % 40 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE date '1990-01-01' + r % 600 END, timestamptz '2001-01-01' + r % 777 * interval '7 h',
	(timetz '10:00+01' + r % 20 * interval '1 h'), CASE r % 3 WHEN 0 THEN interval '1 day' ELSE r % 60 * interval '1 h' END, md5((r % 400)::text)::uuid,
	('08:00:2b:01:02:' || lpad(to_hex(r % 256), 2, '0'))::macaddr, ('10.0.' || r % 9 || '.' || r % 200 || '/' || 8 + r % 25)::inet, (r % 77 - 30)::money,
	decode(repeat(lpad(to_hex(r % 5), 2, '0'), r % 12), 'hex'), ((r % 64)::bit(6))::varbit,
	CASE r % 9 WHEN 0 THEN '' WHEN 1 THEN NULL WHEN 2 THEN 'abcdefg' WHEN 3 THEN 'abcdefgh' WHEN 4 THEN 'abcdefg' || chr(1 + r % 5) ELSE repeat(chr(97 + r % 3), r % 20) END,
	CASE r % 5 WHEN 0 THEN NULL ELSE chr(65 + r % 60) || r % 70 END, chr(33 + r % 90) || chr(60 + r % 60) || r % 9, chr(65 + r % 60) || r % 5, repeat(chr(200 + r % 100), r % 5) || r % 13,
	CASE r % 4 WHEN 0 THEN 'ab' WHEN 1 THEN 'ab' || chr(9) WHEN 2 THEN 'ab c' ELSE repeat(' ', r % 9) || r % 11 END, chr(65 + r % 60), 'varying ' || r % 300, 'name' || r % 200,
	(enum_range(NULL::so_mood))[1 + r % 5], ARRAY[r % 5, nullif(r % 7, 3)], to_jsonb(r % 20 / 4.0), repeat(md5((r % 100)::text), r % 100)
FROM (SELECT g, (g * 7919 + g * g * 31) % 1009 r FROM generate_series(1, 700) g) x;
CREATE TABLE so_m (LIKE so_h INCLUDING ALL) USING mot;
INSERT INTO so_m SELECT * FROM so_h ORDER BY id;
VACUUM ANALYZE so_h, so_m;

-- what differs from heap's answers, for each call
CREATE FUNCTION so_differences(query text, types text, VARIADIC calls text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	call text; answers text[]; r record; tabs text[] := ARRAY['so_h', 'so_m']; tier int;
BEGIN
	FOR i IN 1 .. 2 LOOP
		EXECUTE format('PREPARE so_p%s AS %s', types, replace(query, 'TWIN', tabs[i]));
		FOREACH call IN ARRAY calls LOOP
			answers[i] := coalesce(answers[i], '') || E'\n' || call || ':';
			BEGIN
				FOR r IN EXECUTE 'EXECUTE so_p' || call LOOP
					answers[i] := answers[i] || ' ' || r::text;
				END LOOP;
			EXCEPTION WHEN OTHERS THEN
				answers[i] := answers[i] || ' ' || SQLSTATE || ' ' || SQLERRM;
			END;
		END LOOP;
		SELECT max(s.tier) INTO tier FROM mot_stat_jit s WHERE s.query ~ '^PREPARE so_p';
		DEALLOCATE so_p;
	END LOOP;
	IF answers[1] IS DISTINCT FROM answers[2] THEN
		RETURN NEXT format(E'DIFFERENT: %s:\n%s\n%s', query, answers[1], answers[2]);
	END IF;
	IF tier IS NULL OR tier = 0 THEN
		RETURN NEXT format('left to the executor: %s', query);
	END IF;
END $$;

-- each kind of key, in each direction; as few rows as none, as many as are sorted here, and more
SELECT d FROM pg_attribute att, unnest(ARRAY['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST']) dir,
	so_differences(format('SELECT id, %1$I FROM TWIN WHERE id <= $1 ORDER BY %1$I %2$s, id', attname, dir), '(int)', '(0)', '(1)', '(2)', '(100)', '(255)', '(256)', '(257)', '(700)', '(100)') d
	WHERE attrelid = 'so_h'::regclass AND attnum > 0;
SELECT d FROM pg_attribute att, unnest(ARRAY['', 'DESC']) dir,
	so_differences(format('SELECT DISTINCT ON (%1$I) %1$I, id FROM TWIN WHERE id > $1 AND id <= $2 ORDER BY %1$I %2$s, id', attname, dir), '(int, int)', '(0, 0)', '(9, 10)', '(0, 90)', '(0, 700)', '(300, 500)') d
	WHERE attrelid = 'so_h'::regclass AND attnum > 0;

-- several keys; keys that are not among the results; expressions; rows wider than is kept here
SELECT so_differences('SELECT i2, tc, d FROM TWIN WHERE id <= $1 ORDER BY b NULLS FIRST, tc DESC, bp, i2, id', '(int)', '(200)', '(600)');
SELECT so_differences('SELECT id FROM TWIN WHERE id <= $1 ORDER BY n * $2, tc || bp, id DESC', '(int, int)', '(150, -1)', '(600, 1)');
SELECT so_differences('SELECT * FROM TWIN WHERE id BETWEEN $1 AND $2 ORDER BY tc, id', '(int, int)', '(1, 30)', '(1, 200)', '(7, 7)');
SELECT so_differences('SELECT big, id FROM TWIN WHERE id BETWEEN $1 AND $2 ORDER BY big, id', '(int, int)', '(1, 10)', '(1, 200)', '(1, 15)');
SELECT so_differences('SELECT DISTINCT tc, b FROM TWIN WHERE id <= $1 ORDER BY tc, b', '(int)', '(0)', '(60)', '(700)');
SELECT so_differences('SELECT DISTINCT i2 % 5 m, tc COLLATE "C" FROM TWIN WHERE id <= $1 ORDER BY m DESC', '(int)', '(1)', '(60)', '(700)');
SELECT so_differences('SELECT DISTINCT id FROM TWIN WHERE id <= $1 ORDER BY id', '(int)', '(9)', '(700)', '(0)');

-- LIMIT, locks, joins, sub-selects, cursors; twice in one execution
SELECT so_differences('SELECT id FROM TWIN WHERE id <= $1 ORDER BY tc, id LIMIT $2 OFFSET $3', '(int, int, int)',
	'(100, 5, 0)', '(100, 5, 98)', '(700, 5, 0)', '(700, 300, 10)', '(700, NULL, 690)', '(100, 0, 0)', '(100, -1, 0)', '(700, 3, 1)');
SELECT so_differences('SELECT DISTINCT tc FROM TWIN WHERE id <= $1 ORDER BY tc LIMIT $2', '(int, int)', '(100, 3)', '(700, 3)', '(3, 9)');
SELECT so_differences('SELECT id, tc FROM TWIN WHERE id <= $1 ORDER BY tc DESC, id LIMIT 9 FOR UPDATE', '(int)', '(50)', '(500)');
SELECT so_differences('SELECT x.id, (SELECT y.id FROM TWIN y WHERE y.id BETWEEN x.id AND x.id + $2 ORDER BY y.tc, y.id LIMIT 1),
	ARRAY(SELECT DISTINCT y.i2 % 3 FROM TWIN y WHERE y.id BETWEEN x.id AND x.id + $2 ORDER BY 1) FROM TWIN x WHERE x.id <= $1 ORDER BY x.n, x.id', '(int, int)', '(20, 5)', '(5, 400)', '(300, 2)');
SELECT so_differences('SELECT x.id, s.* FROM TWIN x, LATERAL (SELECT i4, tc FROM TWIN y WHERE y.id % 50 = x.id ORDER BY tc, y.id LIMIT 3) s WHERE x.id < $1 ORDER BY x.id, tc, i4', '(int)', '(4)', '(12)');
SELECT so_differences('SELECT count(*), sum(i), min(tc) FROM (SELECT DISTINCT i2 % 7 i, tc FROM TWIN WHERE id <= $1) s', '(int)', '(100)', '(700)');
SELECT so_differences('SELECT id FROM TWIN WHERE id <= $1 ORDER BY 10 / $2, id', '(int, int)', '(3, 1)', '(3, 0)', '(0, 0)');
SELECT so_differences('SELECT id, 10 / (id - $2) FROM TWIN WHERE id <= $1 ORDER BY 10 / (id - $2), id', '(int, int)', '(20, 30)', '(20, 5)', '(20, 30)', '(400, 399)', '(400, 500)');
CREATE FUNCTION so_loop(upto int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; inner_r record; result text := '';
BEGIN
	FOR r IN SELECT id, tc FROM so_m WHERE id <= upto ORDER BY tc, id LOOP
		EXIT WHEN length(result) > 300;
		FOR inner_r IN SELECT DISTINCT b, e FROM so_m WHERE id BETWEEN r.id AND r.id + 9 ORDER BY b, e LOOP
			result := result || r.id || inner_r::text;
			EXIT WHEN inner_r.b;
		END LOOP;
	END LOOP;
	RETURN md5(result);
END $$;
DO $$ BEGIN EXECUTE format('CREATE FUNCTION so_loop_h(upto int) RETURNS text LANGUAGE plpgsql AS %L', (SELECT replace(prosrc, 'so_m', 'so_h') FROM pg_proc WHERE proname = 'so_loop')); END $$;
SELECT n FROM unnest(ARRAY[0, 3, 100, 700, 100]) n WHERE so_loop(n) IS DISTINCT FROM so_loop_h(n);
BEGIN;
DECLARE c CURSOR FOR SELECT id, tc FROM so_m WHERE id <= 300 ORDER BY tc, id;
FETCH 3 FROM c;
UPDATE so_m SET tc = 'changed' WHERE id <= 300;
FETCH 2 FROM c;
SAVEPOINT s;
SELECT 1 / 0;
ROLLBACK TO s;
FETCH 2 FROM c;
ROLLBACK;

-- what the last row was in goes with the execution
PREPARE so_wide AS SELECT count(*) FROM (SELECT DISTINCT repeat('x', $2) || id wide FROM so_m WHERE id <= $1) s;
EXECUTE so_wide(2, 3000000);
SELECT tier > 0 AS run_here FROM mot_stat_jit WHERE query ~ '^PREPARE so_wide';
SELECT name FROM pg_backend_memory_contexts WHERE name LIKE 'MOT %' AND total_bytes > 1000000;
DEALLOCATE so_wide;

-- operators that somebody has written
CREATE FUNCTION so_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT ($1 % 10 > $2 % 10)::int - ($1 % 10 < $2 % 10)::int';
CREATE FUNCTION so_lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 % 10 < $2 % 10';
CREATE FUNCTION so_gt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 % 10 > $2 % 10';
CREATE FUNCTION so_eq(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 % 10 = $2 % 10';
CREATE OPERATOR <# (FUNCTION = so_lt, LEFTARG = int, RIGHTARG = int, COMMUTATOR = >#);
CREATE OPERATOR ># (FUNCTION = so_gt, LEFTARG = int, RIGHTARG = int, COMMUTATOR = <#);
CREATE OPERATOR =# (FUNCTION = so_eq, LEFTARG = int, RIGHTARG = int, COMMUTATOR = =#, MERGES);
CREATE OPERATOR CLASS so_digits FOR TYPE int USING btree AS OPERATOR 1 <#, OPERATOR 3 =#, OPERATOR 5 >#, FUNCTION 1 so_cmp(int, int);
SELECT so_differences('SELECT id FROM TWIN WHERE id <= $1 ORDER BY id USING >#, id / 10', '(int)', '(30)', '(400)');
-- a family that gets another comparison
CREATE OPERATOR <## (FUNCTION = so_lt, LEFTARG = int, RIGHTARG = int, COMMUTATOR = >##);
CREATE OPERATOR >## (FUNCTION = so_gt, LEFTARG = int, RIGHTARG = int, COMMUTATOR = <##);
CREATE FUNCTION so_cmp_back(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT so_cmp($2, $1)';
CREATE OPERATOR FAMILY so_loose USING btree;
ALTER OPERATOR FAMILY so_loose USING btree ADD OPERATOR 1 <## (int, int), OPERATOR 3 =# (int, int), OPERATOR 5 >## (int, int), FUNCTION 1 (int, int) so_cmp(int, int);
PREPARE so_loose AS SELECT id, tc FROM so_m WHERE id <= $1 ORDER BY id USING <##, id LIMIT 3;
EXECUTE so_loose(20);
SELECT tier > 0 AS run_here FROM mot_stat_jit WHERE query ~ '^PREPARE so_loose';
ALTER OPERATOR FAMILY so_loose USING btree DROP FUNCTION 1 (int, int);
\set VERBOSITY sqlstate
EXECUTE so_loose(20);
\set VERBOSITY default
ALTER OPERATOR FAMILY so_loose USING btree ADD FUNCTION 1 (int, int) so_cmp_back(int, int);
EXECUTE so_loose(20);
DROP OPERATOR FAMILY so_loose USING btree;
DROP OPERATOR <## (int, int);
DROP OPERATOR >## (int, int);
DROP FUNCTION so_cmp_back;
DEALLOCATE so_loose;

DROP OPERATOR CLASS so_digits USING btree;
DROP OPERATOR FAMILY so_digits USING btree;
DROP OPERATOR <# (int, int);
DROP OPERATOR ># (int, int);
DROP OPERATOR =# (int, int);
DROP FUNCTION so_cmp, so_lt, so_gt, so_eq;
DROP FUNCTION so_loop, so_loop_h, so_differences;
DROP TABLE so_h, so_m;
DROP TYPE so_mood;
DROP COLLATION so_us, so_ci;
