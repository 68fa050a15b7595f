-- Key encodings of values whose bytes are changed at random, against btree's comparison:
-- 2,000 rounds for each type, or FUZZ_ROUNDS of whoever runs it for longer
CREATE SCHEMA keycodec_fuzz;
SET search_path = keycodec_fuzz, public;
CREATE FUNCTION mot_key_fuzz(index regclass, rounds bigint, seed bigint) RETURNS bigint
    AS '$libdir/mot' LANGUAGE C STRICT;
\set rounds 2000
\set seed 1
\getenv rounds FUZZ_ROUNDS
\getenv seed FUZZ_SEED
CREATE TABLE fuzzed (id serial, type text, rows text);
INSERT INTO fuzzed (type, rows) VALUES
('bool', '(true), (false)'),
('"char"', $$('a'), ('')$$),
('int2', '(0), (-1), (255)'),
('int4', '(0), (-1), (65536)'),
('int8', '(0), (-1), (4294967296)'),
('oid', '(0), (4294967295)'),
('xid8', $$('0'), ('4294967296')$$),
('pg_lsn', $$('0/0'), ('1/0')$$),
('tid', $$('(0,0)'), ('(1,65535)')$$),
('money', $$('0'), ('-1.01')$$),
('float4', $$('0'), ('-0'), ('NaN'), ('-Infinity'), ('1e-45')$$),
('float8', $$('0'), ('-0'), ('NaN'), ('-Infinity'), ('5e-324')$$),
('numeric', $$(0), (-1), (0.0001), (-10000), (12345678901234567890.000001), ('NaN'), ('Infinity'), ('1e400'), ('-1e-400')$$),
('numeric(12,2)', '(0), (-1.5), (9999999999.99)'),
('date', $$('2000-01-01'), ('infinity'), ('4714-11-24 BC')$$),
('time', $$('00:00'), ('24:00')$$),
('timetz', $$('00:00+00'), ('24:00-15:59')$$),
('timestamp', $$('2000-01-01'), ('-infinity')$$),
('timestamptz', $$('2000-01-01'), ('infinity')$$),
('interval', $$('0'), ('1 month'), ('-30 days'), ('720 hours')$$),
('uuid', $$('00000000-0000-0000-0000-000000000000')$$),
('macaddr', $$('00:00:01:00:00:00')$$),
('macaddr8', $$('00:00:01:00:00:00:ff:ff')$$),
('inet', $$('0.0.0.0/0'), ('10.1.2.3/9'), ('::/0'), ('fe80::1/65'), ('::1')$$),
('cidr', $$('10.0.0.0/8'), ('fe80::/10')$$),
('bytea', $$(''), ('\x00'), ('\x00ff'), ('\x0001ff')$$),
('varbit', $$(B''), (B'0'), (B'10000000'), (B'100000001')$$),
('bit(9)', $$(B'000000000'), (B'111111111')$$),
('text COLLATE "C"', $$(''), (' '), ('a'), ('a '), (U&'\00e9\ffff')$$),
('text COLLATE "en-x-icu"', $$(''), (' '), ('a'), ('A'), ('co-op'), (U&'\00e9'), (U&'e\0301')$$),
('varchar(9) COLLATE "C"', $$(''), ('a'), ('abcdefghi')$$),
('bpchar COLLATE "C"', $$(''), (' '), ('a'), ('a  '), (E'a\t')$$),
('bpchar COLLATE "en-x-icu"', $$(''), ('a'), ('a  '), (E'a\t')$$),
('name', $$(''), ('a'), ('pg_class')$$);
CREATE TABLE found (id int, direction text, taken bigint);
SELECT set_config('fuzz.rounds', :'rounds', false), set_config('fuzz.seed', :'seed', false) \gset
DO $$
DECLARE f fuzzed; direction text; n bigint;
BEGIN
    FOR f IN SELECT * FROM fuzzed ORDER BY id LOOP
        FOREACH direction IN ARRAY ARRAY['', 'DESC'] LOOP
            EXECUTE format('CREATE TABLE t (v %s)', f.type);
            EXECUTE format('INSERT INTO t VALUES %s', f.rows);
            EXECUTE format('CREATE INDEX t_v ON t (v %s)', direction);
            n := mot_key_fuzz('t_v', current_setting('fuzz.rounds')::bigint, current_setting('fuzz.seed')::bigint + f.id);
            INSERT INTO found VALUES (f.id, direction, n);
            DROP TABLE t;
        END LOOP;
    END LOOP;
END $$;
-- the type's receive function has taken at least a twentieth of what there was
SELECT type, direction, taken FROM found JOIN fuzzed USING (id) WHERE taken < :rounds / 20 ORDER BY id, direction;
SELECT count(*) FROM found;

SET client_min_messages = warning;
DROP SCHEMA keycodec_fuzz CASCADE;
