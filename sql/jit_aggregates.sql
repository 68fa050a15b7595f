-- Aggregates in compiled statements, and the executor's over the same rows in a heap table.
CREATE FUNCTION mot_jit_installed() RETURNS boolean AS '$libdir/mot' LANGUAGE C;
SELECT NOT mot_jit_installed() AS absent \gset
\if :absent
DROP FUNCTION mot_jit_installed();
\echo there is no compiler
\quit
\endif
DROP FUNCTION mot_jit_installed();

SET mot.jit_prepare_above_executions = 0;
SET mot.jit_above_executions = 0;
SET plan_cache_mode = force_generic_plan;

CREATE FOREIGN TABLE jit_agg (id integer PRIMARY KEY, g integer, i2 smallint, i4 integer, i8 bigint, f4 real, f8 float8, n numeric, d date, ts timestamp, tz timestamptz, ti time, o oid, m money, t text, b boolean) SERVER mot_server;
INSERT INTO jit_agg
SELECT i, i % 5, CASE WHEN i % 7 > 0 THEN i % 100 - 50 END, CASE WHEN i % 3 > 0 THEN 2147483647 - i END, CASE i % 4 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775808 WHEN 2 THEN i END,
	CASE WHEN i % 9 > 0 THEN i * 1.5 END, CASE i % 6 WHEN 0 THEN 'nan' WHEN 1 THEN -0.0 WHEN 2 THEN 0.0 WHEN 3 THEN null ELSE i / 7.0 END, CASE WHEN i % 2 > 0 THEN i / 3.0 END,
	date '2020-01-01' + i, timestamp '2020-01-01' + i * interval '1 hour', CASE WHEN i % 2 > 0 THEN timestamptz '2020-01-01 00:00+00' - i * interval '1 hour' END, time '00:00' + i * interval '1 minute', 4294967295 - i, i::money, 'text ' || i, i % 2 = 0
FROM generate_series(1, 200) i;
CREATE TABLE jit_agg_heap AS SELECT * FROM jit_agg ORDER BY id;

-- each list for many rows, for a few, for one with nulls and for none; with a filter that is compiled, too
CREATE FUNCTION jit_agg_check(list text, condition text DEFAULT 'true') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text;
	result record;
	answer text;
	expected text;
	tier integer;
	problems text := '';
	lo integer;
	hi integer;
BEGIN
	query := format('SELECT %s FROM jit_agg WHERE id BETWEEN $1 AND $2 AND (%s)', list, condition);
	EXECUTE 'PREPARE jit_agg_query (integer, integer) AS ' || query;
	FOR lo, hi IN VALUES (1, 200), (1, 200), (3, 5), (3, 3), (21, 21), (6, 6), (500, 600) LOOP
		BEGIN
			EXECUTE format('EXECUTE jit_agg_query (%s, %s)', lo, hi) INTO result;
			answer := result::text;
		EXCEPTION WHEN OTHERS THEN
			answer := SQLSTATE || ' ' || SQLERRM;
		END;
		BEGIN
			EXECUTE replace(query, 'jit_agg', 'jit_agg_heap') INTO result USING lo, hi;
			expected := result::text;
		EXCEPTION WHEN OTHERS THEN
			expected := SQLSTATE || ' ' || SQLERRM;
		END;
		IF answer IS DISTINCT FROM expected THEN
			problems := problems || format('%s to %s: %s, not %s; ', lo, hi, answer, expected);
		END IF;
	END LOOP;
	SELECT max(s.tier) INTO tier FROM mot_stat_jit s WHERE s.query LIKE 'PREPARE jit_agg_query%';
	DEALLOCATE jit_agg_query;
	RETURN format('tier %s: %s', tier, CASE problems WHEN '' THEN 'equal' ELSE problems END);
END
$$;

SELECT list, jit_agg_check(list) FROM unnest(ARRAY['count(*)', 'count(i4)', 'count(*), count(t)', 'sum(i2)', 'sum(i4)', 'sum(i8)', 'avg(i2)', 'avg(i4)', 'avg(i8)', 'sum(i8), avg(i8), count(i8)',
	'sum(f4)', 'sum(f8)', 'avg(f4)', 'avg(f8)', 'sum(n)', 'avg(n)', 'min(i2), max(i2)', 'min(i4), max(i4)', 'min(i8), max(i8)', 'min(f4), max(f4)', 'min(f8), max(f8)', 'min(n), max(n)',
	'min(d), max(d)', 'min(ts), max(ts)', 'min(tz), max(tz)', 'min(ti), max(ti)', 'min(o), max(o)', 'min(m), max(m)', 'min(t), max(t)', 'sum(m)', 'bool_and(b), bool_or(b), every(b)', 'bit_and(i4), bit_or(i4)',
	'stddev(i4), variance(f8)', 'string_agg(t, '','')', 'corr(f8, f4)',
	'sum(i4 + i2), sum(i8 / 3), max(i4 - g)', 'sum(case when i2 > 0 then i4 end), count(nullif(g, 3))', 'sum(f8) + count(*), avg(i4) * 2',
	'count(*) filter (where i4 > 0), sum(i2) filter (where g = 1), sum(n) filter (where f4 > 100), max(f8) filter (where f8 < 10)', 'sum(1 / (id - 21))', 'sum(1 / (id - 21)) filter (where id <> 21)', 'sum(f8 * 1e308)', 'sum(f4 * 1e36)', 'sum(n), sum(1 / (id - 21)), count(*)', 'sum(i4 * 2)', 'avg(1)', 'sum(2::smallint)', 'min(5), max(null::int)', 'count(null)']) WITH ORDINALITY AS u (list, i) ORDER BY i;
SELECT list, jit_agg_check(list, 'i2 > 0 and g <> 3') FROM unnest(ARRAY['count(*)', 'count(i4), sum(i8), avg(i4)', 'sum(f8)', 'sum(n)', 'max(ts), min(t)', 'sum(1 / (i2 - 4))']) WITH ORDINALITY AS u (list, i) ORDER BY i;
-- HAVING, and parameters among the arguments
PREPARE jit_agg_having (integer, integer) AS SELECT sum(i4), sum(i8 / 2 + $2), count(*) FILTER (WHERE g > $2) FROM jit_agg WHERE id < $1 HAVING count(*) > $2;
EXECUTE jit_agg_having (10, 1);
EXECUTE jit_agg_having (10, 2);
EXECUTE jit_agg_having (10, 9);
EXECUTE jit_agg_having (10, null);
SELECT tier, executions FROM mot_stat_jit WHERE query LIKE 'PREPARE jit_agg_having%';
DEALLOCATE jit_agg_having;

DROP FUNCTION jit_agg_check(text, text);
DROP TABLE jit_agg_heap;
DROP FOREIGN TABLE jit_agg;
