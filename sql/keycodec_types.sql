-- Which columns can be indexed, what is made of them, and what is refused.
CREATE SCHEMA keycodec_test;
SET search_path = keycodec_test, public;
CREATE FUNCTION mot_key_type_supported(regtype) RETURNS bool AS '$libdir/mot' LANGUAGE C STRICT;
CREATE FUNCTION mot_key_describe(index regclass) RETURNS text AS '$libdir/mot' LANGUAGE C STRICT;
CREATE FUNCTION mot_key_bytes(index regclass, "row" record) RETURNS bytea AS '$libdir/mot' LANGUAGE C STRICT;

CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TYPE pair AS (a int, b int);
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE DOMAIN code AS varchar(4) NOT NULL;
CREATE DOMAIN feeling AS mood;
CREATE DOMAIN doc AS jsonb;
SELECT count(*) = 0 AS without_icu FROM pg_collation WHERE collprovider = 'i' AND collname = 'und-x-icu' \gset
\if :without_icu
CREATE COLLATION nocase (provider = libc, locale = 'en_US.UTF-8');
\else
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
\endif

-- the server's own types by whether they have an encoding, and some of ours
SELECT mot_key_type_supported(oid) AS supported, string_agg(format_type(oid, NULL), ', ' ORDER BY format_type(oid, NULL) COLLATE "C") AS types
FROM pg_type WHERE oid < 10000 AND typtype = 'b' AND typelem = 0 OR oid IN ('name'::regtype, 'box'::regtype, 'int4[]'::regtype)
GROUP BY 1 ORDER BY 1;
SELECT t, mot_key_type_supported(t) FROM unnest('{mood,pair,posint,code,feeling,doc,int4range,mood[]}'::regtype[]) t;

-- a column is encoded as its operator class's input type
CREATE TABLE tab (v varchar(10) COLLATE "C", c cidr, r regclass, m mood, f feeling NOT NULL, p posint, d code COLLATE "POSIX", i int NOT NULL,
    t text COLLATE "und-x-icu", b char(3) COLLATE "und-x-icu", n name, u varchar COLLATE "C.utf8", bits bit(5));
CREATE INDEX idx1 ON tab (v, c DESC, r NULLS FIRST, m DESC NULLS LAST, f, p, d, i, t, b, n, u) INCLUDE (bits);
SELECT regexp_split_to_table(mot_key_describe('idx1'), ', ');
CREATE INDEX idx2 ON tab (t text_pattern_ops, b bpchar_pattern_ops, v bpchar_ops, i oid_ops, u varchar_ops, bits varbit_ops);
SELECT regexp_split_to_table(mot_key_describe('idx2'), ', ');

-- the layout itself: it is on no disk, but a change should be meant
CREATE TABLE layout (i int NOT NULL, j int, t text COLLATE "C" NOT NULL, n numeric NOT NULL, b bytea NOT NULL);
INSERT INTO layout VALUES (1, 2, 'ab', 1234.5, '\x0041'), (-1, NULL, '', -1234.5, '');
CREATE INDEX layout_i ON layout (i);
CREATE INDEX layout_j ON layout (j);
CREATE INDEX layout_jd ON layout (j DESC);
CREATE INDEX layout_t ON layout (t, i);
CREATE INDEX layout_td ON layout (t DESC, i DESC);
CREATE INDEX layout_n ON layout (n, b);
SELECT idx, mot_key_bytes(idx, l) FROM layout l, unnest('{layout_i,layout_j,layout_jd,layout_t,layout_td,layout_n}'::regclass[]) idx ORDER BY idx::text COLLATE "C", i;

-- refused
CREATE TABLE no (a int[], j jsonb, c name COLLATE nocase, i int, p pair, x text COLLATE "C", b bytea, n numeric);
CREATE INDEX no_a ON no (a);
SELECT mot_key_describe('no_a');
CREATE INDEX no_j ON no (i, j);
SELECT mot_key_describe('no_j');
CREATE INDEX no_p ON no (p);
SELECT mot_key_describe('no_p');
CREATE INDEX no_c ON no (c);
SELECT mot_key_describe('no_c');
CREATE INDEX no_e ON no ((i + 1));
SELECT mot_key_describe('no_e');

-- the longest keys, and longer ones
CREATE INDEX no_x ON no (x) WHERE false;
CREATE INDEX no_b ON no (b) WHERE false;
CREATE INDEX no_n ON no (n) WHERE false;
SELECT length(mot_key_bytes('no_x', no)) FROM (SELECT (NULL, NULL, NULL, NULL, NULL, repeat('x', 8158), NULL, NULL)::no AS no) s;
SELECT length(mot_key_bytes('no_x', no)) FROM (SELECT (NULL, NULL, NULL, NULL, NULL, repeat('x', 8159), NULL, NULL)::no AS no) s;
SELECT length(mot_key_bytes('no_x', no)) FROM (SELECT (NULL, NULL, NULL, NULL, NULL, repeat('x', 10000000), NULL, NULL)::no AS no) s;
SELECT length(mot_key_bytes('no_b', no)) FROM (SELECT (NULL, NULL, NULL, NULL, NULL, NULL, decode(repeat('00', 4078), 'hex'), NULL)::no AS no) s;
SELECT length(mot_key_bytes('no_b', no)) FROM (SELECT (NULL, NULL, NULL, NULL, NULL, NULL, decode(repeat('00', 4079), 'hex'), NULL)::no AS no) s;
SELECT length(mot_key_bytes('no_n', no)) FROM (SELECT (NULL, NULL, NULL, NULL, NULL, NULL, NULL, repeat('7', 60000)::numeric)::no AS no) s;
SELECT length(mot_key_bytes('no_n', no)) FROM (SELECT (NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1e60000)::no AS no) s;

SET client_min_messages = warning;
DROP SCHEMA keycodec_test CASCADE;
