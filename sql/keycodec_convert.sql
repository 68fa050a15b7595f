-- Comparisons of a key column with another type of its operator family: what
-- conversion and comparison of keys say, against the operators themselves.
CREATE SCHEMA keycodec_test;
SET search_path = keycodec_test, public;
CREATE FUNCTION mot_key_answers(index regclass, "row" record, strategy int, value anyelement) RETURNS bool
    AS '$libdir/mot' LANGUAGE C STRICT;
CREATE FUNCTION mot_key_is_lossy(index regclass, value anyelement) RETURNS bool
    AS '$libdir/mot' LANGUAGE C STRICT;

CREATE TABLE i2 (v int2);
INSERT INTO i2 VALUES (0), (1), (-1), (100), (-32768), (-32767), (32766), (32767);
CREATE TABLE i4 (v int4);
INSERT INTO i4 SELECT v FROM i2 UNION ALL VALUES (-32769), (32768), (-2147483648), (-2147483647), (2147483646), (2147483647);
CREATE TABLE i8 (v int8);
INSERT INTO i8 SELECT v FROM i4 UNION ALL VALUES (-2147483649), (2147483648), (4294967296), (-9223372036854775808), (9223372036854775807);

CREATE TABLE f4 (v float4);
INSERT INTO f4 SELECT unnest('{0,-0,0.1,-0.1,0.5,1,16777216,16777218,1e-45,-1e-45,1e-40,3.4028235e38,-3.4028235e38,3.4028233e38,NaN,Infinity,-Infinity}'::float4[]);
CREATE TABLE f8 (v float8);
INSERT INTO f8 SELECT v FROM f4 UNION ALL SELECT unnest('{0.1,-0.1,0.5,16777217,1e-46,1e-45,5e-324,-5e-324,7e-46,3.4028235e38,3.4028236e38,-3.4028236e38,3.5e38,-3.5e38,1e308,-1e308}'::float8[]);

CREATE TABLE n (v name COLLATE "C");
INSERT INTO n VALUES (''), ('a'), ('a '), ('ab'), ('b'), (repeat('x', 62)), (repeat('x', 63)), (repeat('x', 62) || 'y'), (repeat('x', 62) || 'w'), ('xy');
CREATE TABLE t (v text COLLATE "C");
INSERT INTO t SELECT v::text FROM n UNION ALL VALUES ('aa'), (repeat('x', 64)), (repeat('x', 63) || 'a'), (repeat('x', 62) || 'yy'), (repeat('x', 62) || 'ww'), (repeat('x', 100)), ('w' || repeat('x', 70)), ('y' || repeat('x', 70));

-- times near changes of offset in several zones, and the ends of the types
CREATE TABLE ts (v timestamp);
INSERT INTO ts SELECT day + hours * interval '1 hour'
FROM (VALUES ('2011-03-13'::timestamp), ('2011-03-27'), ('2011-11-06'), ('2011-12-30'), ('2011-04-03'), ('2011-10-02'), ('1993-08-21'), ('1883-11-18')) d(day), (SELECT generate_series(-14, 26) UNION ALL VALUES (0.5), (1.5), (2.5), (3.5)) h(hours)
UNION ALL SELECT unnest('{-infinity,infinity,4714-11-24 BC,4714-11-24 00:00:00.000001 BC,4714-11-24 08:00 BC,4714-11-24 15:00 BC,4714-11-25 BC,4713-01-01 BC,294276-12-31 23:59:59.999999,294276-12-31 23:59:59.999998,294276-12-31,294276-12-30 23:00,
    2000-01-01,1999-12-31 23:59:59.999999,2000-01-01 00:00:00.000001,1969-12-31 12:00,2011-03-13 02:30:00.000001,2500-06-15 12:00}'::timestamp[]);
CREATE TABLE d (v date);
INSERT INTO d SELECT DISTINCT v::date FROM ts WHERE isfinite(v) UNION ALL SELECT unnest('{-infinity,infinity,294277-01-01,294277-01-02,5874897-12-31}'::date[]);
CREATE TABLE tz (v timestamptz);
-- the same moments whatever the time zone
SET timezone = 'UTC';
INSERT INTO tz SELECT v AT TIME ZONE 'UTC' FROM ts;
RESET timezone;

CREATE TABLE tables (name text, type regtype);
INSERT INTO tables VALUES ('i2', 'int2'), ('i4', 'int4'), ('i8', 'int8'), ('f4', 'float4'), ('f8', 'float8'), ('n', 'name'), ('t', 'text'), ('ts', 'timestamp'), ('d', 'date'), ('tz', 'timestamptz');
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT t.name FROM tables t LOOP
        EXECUTE format('CREATE INDEX %I ON %I (v)', name || '_up', name);
        EXECUTE format('CREATE INDEX %I ON %I (v DESC)', name || '_down', name);
    END LOOP;
END $$;

-- all operators between different types of a btree family
CREATE VIEW crossings AS
SELECT l.name AS lname, r.name AS rname, amopstrategy AS strategy, oprname AS op, l.type AS ltype, r.type AS rtype
FROM pg_amop a JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am am ON am.oid = opfmethod AND amname = 'btree'
    JOIN pg_operator o ON o.oid = amopopr
    JOIN tables l ON l.type = amoplefttype JOIN tables r ON r.type = amoprighttype
WHERE amoplefttype <> amoprighttype;
SELECT count(*) FROM crossings;
-- other families have none
SELECT DISTINCT opfname FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am am ON am.oid = opfmethod AND amname = 'btree'
WHERE amoplefttype <> amoprighttype AND f.oid < 16384 ORDER BY 1;

-- missed: pairs the operator accepts and the keys do not; extra: the other way round
CREATE FUNCTION check_crossing(lname text, rname text, strategy int, op text, OUT pairs bigint, OUT missed bigint, OUT extra bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($q$
        SELECT count(*), count(*) FILTER (WHERE truth AND NOT (up AND down)), count(*) FILTER (WHERE NOT truth AND (up OR down))
        FROM (SELECT l.v %1$s r.v AS truth, mot_key_answers(%2$L, l, %3$s, r.v) AS up, mot_key_answers(%4$L, l, %3$s, r.v) AS down
              FROM %5$I l, %6$I r) s $q$,
        op, lname || '_up', strategy, lname || '_down', lname, rname) INTO pairs, missed, extra;
END $$;

-- integers, floats, text and name, and in a zone without changes dates and times: exactly
SET timezone = 'UTC';
SELECT ltype, rtype, count(*) AS operators, sum(pairs) > 100 AS pairs, sum(missed) AS missed, sum(extra) AS extra
FROM crossings, check_crossing(lname, rname, strategy, op) GROUP BY ltype, rtype ORDER BY ltype::text, rtype::text;
SET timezone = '+05:45';
SELECT sum(missed) AS missed, sum(extra) AS extra FROM crossings, check_crossing(lname, rname, strategy, op) WHERE lname IN ('ts', 'd', 'tz');

-- which may admit too much near a change
SELECT mot_key_is_lossy('ts_up', tz.v) AS timestamp_timestamptz, mot_key_is_lossy('d_up', tz.v) AS date_timestamptz,
    mot_key_is_lossy('tz_up', ts.v) AS timestamptz_timestamp, mot_key_is_lossy('d_up', ts.v) AS date_timestamp,
    mot_key_is_lossy('tz_up', d.v) AS timestamptz_date, mot_key_is_lossy('ts_up', d.v) AS timestamp_date,
    mot_key_is_lossy('tz_up', tz.v) AS timestamptz
FROM tz, ts, d LIMIT 1;

-- zones with changes: nothing is missed; too much only where it may be
CREATE FUNCTION check_zone(zone text, OUT missed bigint, OUT extra_exact bigint, OUT extra_lossy bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('timezone', zone, true);
    SELECT sum(c.missed), coalesce(sum(c.extra) FILTER (WHERE NOT lossy), 0), coalesce(sum(c.extra) FILTER (WHERE lossy), 0) INTO missed, extra_exact, extra_lossy
    FROM (SELECT *, rname = 'tz' AS lossy FROM crossings WHERE lname IN ('ts', 'd', 'tz')) x, check_crossing(lname, rname, strategy, op) c;
END $$;
SELECT zone, missed, extra_exact, extra_lossy > 0 AS extra_lossy FROM (VALUES (1, 'America/New_York'), (2, 'Europe/Dublin'), (3, 'Australia/Lord_Howe'), (4, 'Pacific/Apia'),
    (5, 'Pacific/Kwajalein'), (6, 'Asia/Manila'), (7, 'America/Caracas')) z(id, zone), check_zone(zone) ORDER BY id;

-- away from changes nothing too much is admitted there either
SET timezone = 'America/New_York';
DELETE FROM tz WHERE isfinite(v) AND NOT (extract(month FROM v) IN (1, 6, 8, 12) AND extract(year FROM v) NOT IN (1883));
SELECT sum(pairs) > 1000 AS pairs, sum(missed) AS missed, sum(extra) AS extra FROM crossings, check_crossing(lname, rname, strategy, op) WHERE rname = 'tz';

-- values longer than any key, in comparisons
CREATE TABLE long (v text COLLATE "C");
INSERT INTO long VALUES ('a'), ('x'), ('y'), (repeat('x', 8000)), (repeat('x', 8158)), (''), (repeat('x', 8000) || 'y'), (repeat('x', 8000) || 'a');
CREATE INDEX long_up ON long (v) WHERE false;
SELECT count(*) AS pairs, count(*) FILTER (WHERE answer <> truth) AS wrong
FROM (SELECT mot_key_answers('long_up', l, s, r.v) AS answer,
        CASE s WHEN 1 THEN l.v < r.v WHEN 2 THEN l.v <= r.v WHEN 3 THEN l.v = r.v WHEN 4 THEN l.v >= r.v ELSE l.v > r.v END AS truth
      FROM long l, generate_series(1, 5) s,
        (VALUES (repeat('x', 8160)), (repeat('x', 8161)), (repeat('x', 20000)), (repeat('x', 8000) || repeat('y', 8000)), (repeat('x', 8000) || 'a' || repeat('y', 8000))) r(v)) c;

SET client_min_messages = warning;
DROP SCHEMA keycodec_test CASCADE;
