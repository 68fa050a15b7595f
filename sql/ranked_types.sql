-- Types whose values have no key encoding: an index has labels in their order (ranked.h).  Each query and
-- change is tried on a heap table and on its twin; what differs is shown.
CREATE SCHEMA ranked_types;
SET search_path = ranked_types, public;
SET client_min_messages = warning;
SET jit = off;

CREATE TABLE differences (type text, what text, heap text, mot text);
CREATE TABLE tried (id serial, type text, query text);

CREATE TYPE pair AS (a int, b text);
CREATE TYPE spot AS RANGE (subtype = text, collation = "C");
CREATE FUNCTION len_cmp(text, text) RETURNS int LANGUAGE sql IMMUTABLE STRICT
	AS $$SELECT CASE WHEN length($1) <> length($2) THEN sign(length($1) - length($2))::int ELSE bttextcmp($1, $2) END$$;
CREATE FUNCTION len_lt(text, text) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$SELECT len_cmp($1, $2) < 0$$;
CREATE FUNCTION len_le(text, text) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$SELECT len_cmp($1, $2) <= 0$$;
CREATE FUNCTION len_eq(text, text) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$SELECT len_cmp($1, $2) = 0$$;
CREATE FUNCTION len_ge(text, text) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$SELECT len_cmp($1, $2) >= 0$$;
CREATE FUNCTION len_gt(text, text) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$SELECT len_cmp($1, $2) > 0$$;
CREATE OPERATOR <# (leftarg = text, rightarg = text, procedure = len_lt, commutator = >#, restrict = scalarltsel);
CREATE OPERATOR <=# (leftarg = text, rightarg = text, procedure = len_le, restrict = scalarltsel);
CREATE OPERATOR =# (leftarg = text, rightarg = text, procedure = len_eq, commutator = =#, restrict = eqsel, merges);
CREATE OPERATOR >=# (leftarg = text, rightarg = text, procedure = len_ge, restrict = scalargtsel);
CREATE OPERATOR ># (leftarg = text, rightarg = text, procedure = len_gt, restrict = scalargtsel);
CREATE OPERATOR CLASS len_ops FOR TYPE text USING btree AS
	OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#, FUNCTION 1 len_cmp(text, text);
-- integers that end in the same digit are equal, by a function in PL/pgSQL
CREATE FUNCTION digit_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT
	AS $$BEGIN RETURN btint4cmp(mod($1, 10), mod($2, 10)); END$$;
CREATE FUNCTION digit_lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$SELECT digit_cmp($1, $2) < 0$$;
CREATE FUNCTION digit_eq(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$SELECT digit_cmp($1, $2) = 0$$;
CREATE FUNCTION digit_gt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$SELECT digit_cmp($1, $2) > 0$$;
CREATE OPERATOR <% (leftarg = int, rightarg = int, procedure = digit_lt, restrict = scalarltsel);
CREATE OPERATOR =% (leftarg = int, rightarg = int, procedure = digit_eq, restrict = eqsel);
CREATE OPERATOR >% (leftarg = int, rightarg = int, procedure = digit_gt, restrict = scalargtsel);
CREATE OPERATOR CLASS digit_ops FOR TYPE int USING btree AS
	OPERATOR 1 <%, OPERATOR 3 =%, OPERATOR 5 >%, FUNCTION 1 digit_cmp(int, int);

DO $$
BEGIN
	INSERT INTO tried (type, query) VALUES
	('int[]', 'SELECT (ARRAY[i % 7, NULLIF(i % 5, 0), i])[1:i % 4] FROM generate_series(0, 60) i UNION ALL SELECT ''{{1,2},{3,4}}'' UNION ALL SELECT ''[2:3]={1,2}'' UNION ALL SELECT ''{}'''),
	('text[]', 'SELECT (ARRAY[repeat(chr(65 + i % 7), i % 4), NULL, i::text])[1:i % 4] FROM generate_series(0, 60) i'),
	('numeric[]', 'SELECT ARRAY[i % 7, i / 10.0] FROM generate_series(0, 60) i UNION ALL SELECT ''{1.0}'' UNION ALL SELECT ''{1.00,NaN}'''),
	('int4range', 'SELECT int4range(i % 8, i % 8 + i % 5, CASE i % 2 WHEN 0 THEN ''[]'' ELSE ''[)'' END) FROM generate_series(0, 60) i UNION ALL SELECT unnest(''{empty,"(,)","[3,)","(,3)"}''::int4range[])'),
	('numrange', 'SELECT numrange(i % 8, i % 8 + i % 5, CASE i % 2 WHEN 0 THEN ''[]'' ELSE ''[)'' END) FROM generate_series(0, 60) i UNION ALL SELECT unnest(''{empty,"(,)","[1.0,2]","[1.00,2.0]"}''::numrange[])'),
	('spot', 'SELECT spot(chr(97 + i % 7), chr(104 + i % 9)) FROM generate_series(0, 60) i'),
	('int4multirange', 'SELECT int4multirange(int4range(i % 8, i % 8 + i % 5), int4range(10, 11 + i % 3)) FROM generate_series(0, 60) i UNION ALL SELECT ''{}'''),
	('jsonb', 'SELECT jsonb_build_object(''a'', i % 7, chr(97 + i % 5), i) FROM generate_series(0, 60) i UNION ALL SELECT unnest(ARRAY[''1'', ''1.0'', ''1.00'', ''null'', ''"x"'', ''[]'', ''{}'', ''[1, 2]'', ''true'', ''{"a": [1, {"b": null}]}'', ''-5'', ''"é"''])::jsonb'),
	('pair', 'SELECT ROW(i % 7, NULLIF(repeat(chr(65 + i % 7), i % 4), ''''))::pair FROM generate_series(0, 60) i UNION ALL SELECT ROW(NULL, NULL)::pair'),
	('tsvector', 'SELECT to_tsvector(''simple'', repeat(chr(65 + i % 7), 1 + i % 4) || '' '' || i % 10) FROM generate_series(0, 60) i'),
	('tsquery', 'SELECT to_tsquery(''simple'', chr(97 + i % 7) || '' & '' || chr(97 + i % 11)) FROM generate_series(0, 60) i'),
	('oidvector', 'SELECT (i % 7 || '' '' || i)::oidvector FROM generate_series(0, 60) i');
	IF (SELECT count(*) FROM pg_available_extensions WHERE name IN ('citext', 'ltree', 'hstore', 'cube', 'seg')) = 5 THEN
		CREATE EXTENSION citext;
		CREATE EXTENSION ltree;
		CREATE EXTENSION hstore;
		CREATE EXTENSION cube;
		CREATE EXTENSION seg;
		INSERT INTO tried (type, query) VALUES
		('citext', 'SELECT repeat(CASE i % 3 WHEN 0 THEN ''a'' WHEN 1 THEN ''A'' ELSE ''b'' END, i % 4) || i % 5 FROM generate_series(0, 60) i'),
		('ltree', 'SELECT (chr(65 + i % 7) || ''.'' || chr(65 + i % 11) || repeat(''.x'', i % 3))::ltree FROM generate_series(0, 60) i'),
		('hstore', 'SELECT hstore(chr(65 + i % 7), (i % 13)::text) FROM generate_series(0, 60) i'),
		('cube', 'SELECT cube(i % 7, i % 11) FROM generate_series(0, 60) i'),
		('seg', 'SELECT ((i % 7) || '' .. '' || (i % 7 + i % 5))::seg FROM generate_series(0, 60) i');
	END IF;
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

-- both: "%t" is the table
CREATE FUNCTION twin(type text, query text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE h text; m text;
BEGIN
	h := replace(answer(replace(query, '%t', 'h')), 'h_', 'm_');
	m := answer(replace(query, '%t', 'm'));
	IF h IS DISTINCT FROM m THEN
		INSERT INTO differences VALUES (type, query, left(h, 200), left(m, 200));
	END IF;
END
$$;

-- does a plan read the index, without sorting?
CREATE FUNCTION uses_index(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE line text; used bool := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		used := used OR line ~ 'Index (Only )?Scan';
		IF line ~ 'Sort|Seq Scan on m' THEN
			RETURN false;
		END IF;
	END LOOP;
	RETURN used;
END
$$;

SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;

CREATE PROCEDURE try_type(type text, query text) LANGUAGE plpgsql AS $$
DECLARE
	op text; ops text[] := ARRAY['<', '<=', '=', '>=', '>'];
BEGIN
	DROP TABLE IF EXISTS v;
	EXECUTE format('CREATE TABLE v AS SELECT row_number() OVER () AS n, x::%s AS x FROM (%s) q(x)', type, query);
	EXECUTE format('CREATE TABLE h (id int, k int, v %s)', type);
	EXECUTE format('CREATE TABLE m (id int, k int, v %s) USING mot', type);
	PERFORM twin(type, 'INSERT INTO %t SELECT n, n % 3, x FROM v WHERE n % 2 = 0');
	PERFORM twin(type, 'INSERT INTO %t VALUES (1001, 1, NULL), (1002, NULL, NULL)');
	-- of rows that are there, and then one by one
	PERFORM twin(type, 'CREATE INDEX %t_v ON %t (v)');
	PERFORM twin(type, 'CREATE INDEX %t_kv ON %t (k, v DESC NULLS LAST)');
	PERFORM twin(type, 'CREATE INDEX %t_vk ON %t (v DESC, k) INCLUDE (id)');
	PERFORM twin(type, 'CREATE INDEX %t_part ON %t (v) WHERE k = 1');
	PERFORM twin(type, 'INSERT INTO %t SELECT n, n % 3, x FROM v WHERE n % 2 = 1 ORDER BY md5(n::text)');
	IF type = 'hstore' THEN
		ops := ARRAY['#<#', '#<=#', '=', '#>=#', '#>#'];
	END IF;
	IF NOT uses_index('SELECT v FROM m ORDER BY v') OR NOT uses_index(format('SELECT v FROM m WHERE v %s (SELECT x FROM v LIMIT 1) ORDER BY v DESC', ops[5])) THEN
		INSERT INTO differences VALUES (type, 'no index', NULL, NULL);
	END IF;
	PERFORM twin(type, 'SELECT id, k, v FROM %t ORDER BY v, id');
	PERFORM twin(type, 'SELECT v FROM %t ORDER BY v, id');
	PERFORM twin(type, 'SELECT v FROM %t ORDER BY v DESC, id');
	PERFORM twin(type, 'SELECT v FROM %t ORDER BY v DESC NULLS LAST, id LIMIT 5');
	PERFORM twin(type, 'SELECT k, v FROM %t ORDER BY k, v DESC NULLS LAST, id');
	PERFORM twin(type, 'SELECT k, v FROM %t WHERE k = 1 ORDER BY v, id');
	PERFORM twin(type, 'SELECT k, v FROM %t WHERE v IS NULL ORDER BY k');
	FOREACH op IN ARRAY ops LOOP
		PERFORM twin(type, format('SELECT v.n, (SELECT string_agg(id::text, '','' ORDER BY id) FROM %%t t WHERE t.v %s v.x) FROM v ORDER BY n', op));
		PERFORM twin(type, format('SELECT v.n, (SELECT string_agg(id::text, '','' ORDER BY id) FROM %%t t WHERE t.k = 1 AND t.v %s v.x) FROM v ORDER BY n', op));
	END LOOP;
	PERFORM twin(type, format('SELECT a.n, b.n, (SELECT string_agg(id::text, '','' ORDER BY id) FROM %%t t WHERE t.v %s a.x AND t.v %s b.x) FROM v a, v b WHERE a.n %% 7 = 0 AND b.n %% 5 = 0 ORDER BY 1, 2', ops[4], ops[1]));
	PERFORM twin(type, 'SELECT n, (SELECT string_agg(id::text, '','' ORDER BY id) FROM %t t WHERE t.v = ANY (ARRAY(SELECT x FROM v w WHERE w.n % 10 = v.n % 10))) FROM v ORDER BY n');
	PERFORM twin(type, 'SELECT v FROM %t WHERE v = ANY (ARRAY(SELECT x FROM v w WHERE w.n % 4 = 1)) ORDER BY v DESC, id');
	IF type NOT IN ('int4range', 'numrange', 'spot', 'int4multirange', 'jsonb', 'pair', 'tsvector', 'tsquery', 'oidvector', 'ltree', 'hstore', 'cube', 'seg') THEN
		PERFORM twin(type, 'SELECT min(v), max(v) FROM %t');
	END IF;
	SET enable_hashjoin = off; SET enable_nestloop = off;
	PERFORM twin(type, 'SELECT count(*) FROM %t a JOIN %t b USING (v)');
	RESET enable_hashjoin; RESET enable_nestloop;

	-- changes
	PERFORM twin(type, 'UPDATE %t SET v = (SELECT x FROM v WHERE n = %t.id % 20 + 1) WHERE id % 3 = 0 AND id < 1000');
	PERFORM twin(type, 'DELETE FROM %t WHERE id % 4 = 1 AND id < 1000');
	PERFORM twin(type, 'UPDATE %t SET k = k + 1 WHERE id % 5 = 0');
	PERFORM twin(type, 'SELECT v FROM %t ORDER BY v, id');
	PERFORM twin(type, 'SELECT k, v FROM %t ORDER BY k, v DESC NULLS LAST, id');
	BEGIN
		PERFORM twin(type, 'DELETE FROM %t');
		PERFORM twin(type, 'INSERT INTO %t SELECT n, 0, x FROM v ORDER BY n DESC');
		PERFORM twin(type, 'SELECT v FROM %t ORDER BY v, id');
		RAISE EXCEPTION 'back';
	EXCEPTION WHEN raise_exception THEN
		NULL;
	END;
	PERFORM twin(type, 'SELECT v FROM %t ORDER BY v, id');
	FOREACH op IN ARRAY ops LOOP
		PERFORM twin(type, format('SELECT v.n, (SELECT string_agg(id::text, '','' ORDER BY id) FROM %%t t WHERE t.v %s v.x) FROM v ORDER BY n', op));
	END LOOP;

	-- unique keys
	PERFORM twin(type, 'CREATE UNIQUE INDEX %t_u ON %t (v)');
	EXECUTE format('CREATE TABLE h_k (v %s PRIMARY KEY, n int DEFAULT 0)', type);
	EXECUTE format('CREATE TABLE m_k (v %s PRIMARY KEY, n int DEFAULT 0) USING mot', type);
	PERFORM twin(type, 'INSERT INTO %t_k SELECT x FROM v WHERE x IS NOT NULL ON CONFLICT DO NOTHING');
	PERFORM twin(type, 'INSERT INTO %t_k SELECT x FROM v WHERE n = 5');
	PERFORM twin(type, 'INSERT INTO %t_k VALUES (NULL)');
	PERFORM twin(type, 'INSERT INTO %t_k SELECT DISTINCT ON (x) x FROM v ON CONFLICT (v) DO UPDATE SET n = %t_k.n + 1');
	PERFORM twin(type, 'INSERT INTO %t_k SELECT x, 100 FROM v WHERE n = 7 ON CONFLICT (v) DO UPDATE SET n = EXCLUDED.n RETURNING v, n');
	PERFORM twin(type, 'UPDATE %t_k SET v = (SELECT x FROM v WHERE n = 3) WHERE v = (SELECT x FROM v WHERE n = 10)');
	PERFORM twin(type, 'SELECT v, n FROM %t_k ORDER BY v');
	-- foreign keys
	EXECUTE format('CREATE TABLE h_f (v %s REFERENCES h_k ON UPDATE CASCADE ON DELETE CASCADE, n int)', type);
	EXECUTE format('CREATE TABLE m_f (v %s REFERENCES m_k ON UPDATE CASCADE ON DELETE CASCADE, n int) USING mot', type);
	PERFORM twin(type, 'INSERT INTO %t_f SELECT x, n FROM v');
	PERFORM twin(type, 'DELETE FROM %t_k WHERE v = (SELECT x FROM v WHERE n = 11)');
	PERFORM twin(type, 'INSERT INTO %t_f SELECT x, n FROM v WHERE n = 11');
	PERFORM twin(type, 'UPDATE %t_k SET v = (SELECT x FROM v WHERE n = 11) WHERE v = (SELECT x FROM v WHERE n = 6)');
	PERFORM twin(type, 'SELECT v, n FROM %t_f ORDER BY n');
	PERFORM twin(type, 'SELECT v, n FROM %t_k ORDER BY v');
	-- deferrable and exclusion constraints
	PERFORM twin(type, 'CREATE UNIQUE INDEX %t_kd ON %t_k (v DESC)');
	PERFORM twin(type, 'ALTER TABLE %t_k ADD CONSTRAINT %t_e EXCLUDE USING btree (v WITH =)');
	PERFORM twin(type, 'ALTER TABLE %t_k ADD CONSTRAINT %t_d UNIQUE (v) DEFERRABLE INITIALLY DEFERRED');
	PERFORM twin(type, 'UPDATE %t_k SET n = n + 1');
	PERFORM twin(type, 'INSERT INTO %t_k SELECT x, 100 FROM v WHERE n = 7');

	-- built again
	PERFORM twin(type, 'REINDEX TABLE %t');
	PERFORM twin(type, 'SELECT v FROM %t ORDER BY v, id');
	PERFORM twin(type, 'ALTER TABLE %t ADD COLUMN filler text DEFAULT random()::text');
	PERFORM twin(type, 'SELECT k, v FROM %t ORDER BY k, v DESC NULLS LAST, id');
	PERFORM twin(type, 'TRUNCATE %t');
	PERFORM twin(type, 'INSERT INTO %t SELECT n, n % 3, x FROM v ORDER BY x');
	PERFORM twin(type, 'SELECT v FROM %t ORDER BY v, id');
	DROP TABLE h, m, h_f, m_f, h_k, m_k;
END
$$;

DO $$
DECLARE t record;
BEGIN
	FOR t IN SELECT * FROM tried ORDER BY id LOOP
		CALL try_type(t.type, t.query);
	END LOOP;
END
$$;
SELECT * FROM differences;

-- operator classes of one's own
CREATE TABLE h (id int, t text, d int);
CREATE TABLE m (id int, t text, d int) USING mot;
DO $$
DECLARE op text;
BEGIN
	PERFORM twin('len', 'CREATE INDEX %t_len ON %t (t len_ops)');
	PERFORM twin('len', 'CREATE INDEX %t_dlen ON %t (d digit_ops, t len_ops DESC)');
	PERFORM twin('len', 'INSERT INTO %t SELECT i, repeat(chr(97 + i % 7), i % 11), i FROM generate_series(1, 300) i');
	PERFORM twin('len', 'SELECT id, t FROM %t ORDER BY t USING <#, id');
	PERFORM twin('len', 'SELECT id, t FROM %t ORDER BY t USING >#, id');
	PERFORM twin('len', 'SELECT d, t FROM %t ORDER BY d USING <%, t USING >#, id');
	FOREACH op IN ARRAY ARRAY['<#', '<=#', '=#', '>=#', '>#'] LOOP
		PERFORM twin('len', format('SELECT s, (SELECT count(*) FROM %%t WHERE t %s s) FROM (SELECT repeat(chr(97 + i %% 9), i %% 13) FROM generate_series(0, 100) i) x(s) ORDER BY 1', op));
		PERFORM twin('len', format('SELECT s, (SELECT count(*) FROM %%t WHERE d =%% 13 AND t %s s) FROM (SELECT repeat(chr(97 + i %% 9), i %% 13) FROM generate_series(0, 100) i) x(s) ORDER BY 1', op));
	END LOOP;
	PERFORM twin('len', 'SELECT count(*), sum(id) FROM %t WHERE d >% 17');
	PERFORM twin('len', 'DELETE FROM %t WHERE id > 10');
	PERFORM twin('digit', 'CREATE UNIQUE INDEX %t_digit ON %t (d digit_ops)');
	PERFORM twin('digit', 'INSERT INTO %t VALUES (11, ''eleven'', 11)');
	PERFORM twin('digit', 'INSERT INTO %t VALUES (11, ''eleven'', 11) ON CONFLICT (d digit_ops) DO UPDATE SET t = EXCLUDED.t, d = EXCLUDED.d');
	PERFORM twin('digit', 'INSERT INTO %t VALUES (12, ''twelve'', 12), (13, ''x'', 3) ON CONFLICT DO NOTHING');
	PERFORM twin('digit', 'UPDATE %t SET d = d + 10');
	PERFORM twin('digit', 'UPDATE %t SET d = d + 1 WHERE d =% 4');
	PERFORM twin('digit', 'SELECT * FROM %t ORDER BY d USING <%');
END
$$;
SELECT * FROM differences;
DROP TABLE h, m;

-- values that come in order, in several gaps; lists; expressions; what is too long
CREATE TABLE h (id int, j jsonb);
CREATE TABLE m (id int, j jsonb) USING mot;
DO $$
BEGIN
	PERFORM twin('runs', 'CREATE INDEX %t_j ON %t (j)');
	PERFORM twin('runs', 'CREATE INDEX %t_x ON %t ((j -> ''a''), (j -> ''b'') DESC) WHERE id % 2 = 0');
	PERFORM twin('runs', 'INSERT INTO %t SELECT i, jsonb_build_object(''a'', i % 5, ''b'', i) FROM generate_series(1, 2000) i');
	PERFORM twin('runs', 'INSERT INTO %t SELECT i, jsonb_build_object(''a'', i % 7, ''b'', -i) FROM generate_series(2001, 4000) i');
	PERFORM twin('runs', 'INSERT INTO %t SELECT i, jsonb_build_object(''a'', 3.5, ''b'', md5(i::text)) FROM generate_series(4001, 6000) i');
	PERFORM twin('runs', 'SELECT id FROM %t ORDER BY j');
	PERFORM twin('runs', 'SELECT id FROM %t WHERE j > ''{"a": 2, "b": 100}'' AND j <= ''{"a": 3, "b": 0}'' ORDER BY j DESC');
	PERFORM twin('runs', 'SELECT id FROM %t WHERE id % 2 = 0 AND j -> ''a'' = ''3.5'' ORDER BY j -> ''b'' DESC');
	PERFORM twin('runs', 'SELECT id FROM %t WHERE id % 2 = 0 ORDER BY j -> ''a'', j -> ''b'' DESC');
END
$$;
SELECT * FROM differences;
INSERT INTO m SELECT 0, jsonb_agg(md5(i::text)) FROM generate_series(1, 300) i;

-- beside writers, who wait
CREATE INDEX CONCURRENTLY m_c ON m (j DESC);
REINDEX INDEX CONCURRENTLY m_c;
REINDEX TABLE CONCURRENTLY m;
SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid = 'm'::regclass ORDER BY 1;
SELECT count(*) FROM (SELECT id, row_number() OVER () AS n FROM (SELECT id FROM m ORDER BY j DESC) x) a
	JOIN (SELECT id, row_number() OVER (ORDER BY j DESC) AS n FROM h) b USING (id, n);
CREATE UNIQUE INDEX CONCURRENTLY m_u ON m ((j -> 'a'));
DROP INDEX m_u;
SELECT object, problems, first_problem FROM mot_verify('m') WHERE problems > 0;

-- COPY says the line
CREATE TABLE c (id int, j jsonb PRIMARY KEY, a int[] UNIQUE) USING mot;
COPY c FROM stdin;
1	1	{1}
2	2	{2}
3	1.0	{3}
\.
COPY c FROM stdin;
1	1	{1}
2	2	{2}
3	3	{3}
\.
SELECT * FROM c WHERE j >= '2.00' ORDER BY j DESC;

-- a foreign table has no place for them
CREATE FOREIGN TABLE f (j jsonb PRIMARY KEY) SERVER mot_server;

SET client_min_messages = error;
DROP SCHEMA ranked_types CASCADE;
DROP EXTENSION IF EXISTS citext, ltree, hstore, seg, cube;
