-- ordinary tables: statements without the executor, beside heap twins
SET client_min_messages = warning;
SET plan_cache_mode = force_generic_plan;
SET mot.jit_prepare_above_executions = 0;
CREATE TABLE p (id int PRIMARY KEY, name text UNIQUE) USING mot;
CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p, v int DEFAULT 0 CHECK (v <> 13), t text) USING mot;
CREATE INDEX ON c (p, v);
CREATE TABLE hp (id int PRIMARY KEY, name text UNIQUE);
CREATE TABLE hc (id int PRIMARY KEY, p int REFERENCES hp, v int DEFAULT 0 CHECK (v <> 13), t text);
CREATE INDEX ON hc (p, v);

-- the same on both: rows, or the error
CREATE FUNCTION twins(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text[];
	answer text;
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['', 'h'] LOOP
		BEGIN
			EXECUTE format('EXECUTE %s%s', t, statement) INTO answer;
		EXCEPTION WHEN OTHERS THEN
			answer := replace(SQLSTATE || ' ' || SQLERRM, '"hc', '"c');
		END;
		answers := answers || replace(answer, '"hp', '"p');
	END LOOP;
	IF answers[1] IS DISTINCT FROM answers[2] THEN
		RETURN 'DIFFERENT: ' || answers::text;
	END IF;
	RETURN answers[1];
END $$;
SELECT format($$
	PREPARE %1$sip(int, text) AS INSERT INTO %1$sp VALUES ($1, $2) RETURNING name;
	PREPARE %1$sic(int, int, int) AS INSERT INTO %1$sc VALUES ($1, $2, $3, 't' || $1) RETURNING id || '/' || v;
	PREPARE %1$sins(int) AS INSERT INTO %1$sc (id, p) SELECT id + $1, id FROM %1$sp ORDER BY id RETURNING id || '/' || p;
	PREPARE %1$sup(int, int) AS UPDATE %1$sc SET p = $2 WHERE id = $1 RETURNING id || '/' || p;
	PREPARE %1$suv(int, int) AS UPDATE %1$sc SET v = v + $2 WHERE id = $1 RETURNING id || '/' || v;
	PREPARE %1$suk(int, int) AS UPDATE %1$sp SET id = $2 WHERE id = $1 RETURNING id::text;
	PREPARE %1$sun(int, text) AS UPDATE %1$sp SET name = $2 WHERE id = $1 RETURNING name;
	PREPARE %1$suj(int) AS UPDATE %1$sc SET t = %1$sp.name FROM %1$sp WHERE %1$sp.id = %1$sc.p AND %1$sc.id = $1 RETURNING %1$sc.t;
	PREPARE %1$sdc(int) AS DELETE FROM %1$sc WHERE id = $1 RETURNING id::text;
	PREPARE %1$sdp(int) AS DELETE FROM %1$sp WHERE id = $1 RETURNING id::text;
	PREPARE %1$sdj(int) AS DELETE FROM %1$sp USING %1$sc WHERE %1$sc.p = %1$sp.id AND %1$sc.id = $1 RETURNING %1$sp.id::text;
	PREPARE %1$soc(int, text) AS INSERT INTO %1$sp VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET name = excluded.name || %1$sp.name RETURNING name;
	PREPARE %1$sdn(int, text) AS INSERT INTO %1$sp VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name;
	PREPARE %1$ssr(int, int) AS SELECT count(*) || '/' || sum(id * v) FROM %1$sc WHERE p = $1 AND v >= $2;
	PREPARE %1$sra(int, int) AS SELECT count(*) || '/' || sum(id * v) FROM %1$sc WHERE (p, v) >= ($1, $2);
	PREPARE %1$ssb(int) AS SELECT string_agg(id || ':' || v, ',') FROM (SELECT * FROM %1$sc WHERE p = $1 ORDER BY v DESC LIMIT 2) x;
	PREPARE %1$sia(int[]) AS SELECT count(*) || max(name) FROM %1$sp WHERE id = ANY ($1);
	PREPARE %1$sjo(int) AS SELECT max(name || v) || count(*) FROM %1$sc JOIN %1$sp ON %1$sp.id = %1$sc.p WHERE %1$sc.id < $1;
	PREPARE %1$sex(int) AS SELECT count(*)::text FROM %1$sp WHERE EXISTS (SELECT FROM %1$sc WHERE %1$sc.p = %1$sp.id AND v > $1);
	PREPARE %1$sfu(int) AS SELECT name FROM %1$sp WHERE id = $1 FOR KEY SHARE;
	PREPARE %1$swh AS SELECT sum(id) || max(t) FROM %1$sc WHERE t LIKE 't%%';
$$, prefix) FROM unnest(ARRAY['', 'h']) prefix \gexec
SELECT s, twins(s) FROM unnest(ARRAY[
	'ip(1, ''a'')', 'ip(2, ''b'')', 'ip(3, ''c'')', 'ip(2, ''d'')', 'ip(4, ''a'')', 'ip(NULL, ''e'')',
	'ic(1, 1, 5)', 'ic(2, 1, 7)', 'ic(3, 2, 1)', 'ic(4, 9, 1)', 'ic(4, NULL, 1)', 'ic(5, 1, 13)', 'ic(1, 1, 1)',
	'ins(100)', 'up(1, 2)', 'up(1, 9)', 'up(1, 1)', 'up(99, 1)', 'uv(1, 1)', 'uv(1, 7)', 'uk(1, 10)', 'uk(3, 3)', 'uk(4, 5)',
	'un(1, ''A'')', 'un(2, ''A'')', 'uj(1)', 'dc(4)', 'dc(4)', 'dp(1)', 'dp(2)', 'dp(77)', 'dj(1)', 'dj(77)', 'ip(78, ''q'')', 'un(78, ''r'')', 'dp(78)',
	'oc(1, ''x'')', 'oc(8, ''y'')', 'oc(9, ''y'')', 'dn(8, ''z'')', 'dn(9, ''z'')', 'dn(10, ''z'')',
	'sr(1, 0)', 'sr(1, 6)', 'sr(1, NULL)', 'ra(1, 6)', 'sb(1)', 'ia(''{3,1,1,NULL,77}'')', 'jo(50)', 'ex(0)', 'ex(5)', 'fu(1)', 'fu(50)', 'wh']) s;
SELECT DISTINCT shape FROM mot_stat_jit WHERE tier > 0 ORDER BY 1;
SELECT DISTINCT why_not FROM mot_stat_jit WHERE why_not IS NOT NULL ORDER BY 1;

-- deferred, and actions of foreign keys
CREATE TABLE d (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED) USING mot;
PREPARE id(int, int) AS INSERT INTO d VALUES ($1, $2);
PREPARE ud(int, int) AS UPDATE d SET p = $2 WHERE id = $1;
BEGIN;
EXECUTE id(1, 500);
EXECUTE id(2, 501);
EXECUTE ud(2, 502);
EXECUTE ip(500, 'later');
EXECUTE ud(2, 500);
COMMIT;
BEGIN;
EXECUTE id(3, 600);
COMMIT;
EXECUTE uk(500, 700);
SELECT * FROM d ORDER BY id;
EXECUTE dp(700);
SELECT * FROM d;
BEGIN;
EXECUTE ip(700, 'x');
EXECUTE id(7, 700);
SAVEPOINT s;
EXECUTE ud(7, 701);
ROLLBACK TO s;
EXECUTE ud(7, 700);
COMMIT;
SELECT * FROM d;
-- what an action has changed fires triggers of its own, in each execution, at once
CREATE TABLE e (id int PRIMARY KEY, p int REFERENCES p, q int REFERENCES p ON UPDATE CASCADE ON DELETE CASCADE) USING mot;
INSERT INTO p VALUES (900, 'e'), (901, 'f');
INSERT INTO e VALUES (1, 901, 900), (2, 901, 900);
PREPARE um(int, int) AS UPDATE p SET id = $2 WHERE id = $1;
DO $$ BEGIN FOR i IN 1 .. 9 LOOP
	EXECUTE format('EXECUTE um(%s, %s)', 900 + i - (i = 1)::int, 901 + i);
END LOOP; END $$;
SELECT * FROM e ORDER BY id;
EXECUTE um(901, 950);
EXECUTE um(910, 950);
EXECUTE dp(950);
SELECT count(*) FROM e;
DROP TABLE e;
EXECUTE dp(901);
-- a row that the transaction has changed itself, and one for which there is no place
BEGIN;
EXECUTE un(700, 'changed');
EXECUTE dp(700);
SELECT * FROM d;
ROLLBACK;
SELECT * FROM d;
BEGIN;
EXECUTE dp(2);
ROLLBACK;

-- a row's tuple id, with and without the executor
PREPARE st(int) AS SELECT ctid::text FROM p WHERE id = $1;
PREPARE ut(int) AS UPDATE p SET name = name || '!' WHERE id = $1 RETURNING ctid::text;
BEGIN;
EXECUTE ut(1) \gset a_
EXECUTE ut(1) \gset b_
EXECUTE st(1) \gset c_
SET LOCAL mot.jit = off;
EXECUTE st(1) \gset d_
SELECT :'a_ctid' <> :'b_ctid' AS changed, :'b_ctid' = :'c_ctid' AS read, :'c_ctid' = :'d_ctid' AS executor;
COMMIT;

-- what a loop in a function reads
CREATE FUNCTION loops(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text := '';
	r record;
BEGIN
	FOR r IN SELECT id, v FROM c WHERE p = n ORDER BY v LOOP
		answer := answer || r.id || ':' || r.v || ' ';
	END LOOP;
	RETURN answer;
END $$;
SELECT loops(1);
SELECT loops(1);
SELECT tier > 0 AS here FROM mot_stat_jit WHERE query LIKE 'SELECT id, v FROM c WHERE p = n%';

-- WHERE CURRENT OF
BEGIN;
DECLARE cur NO SCROLL CURSOR FOR SELECT * FROM c WHERE p = 1 FOR UPDATE;
FETCH 1 FROM cur;
UPDATE c SET t = 'current' WHERE CURRENT OF cur RETURNING t;
CLOSE cur;
ROLLBACK;

-- ON CONFLICT takes no transaction id
BEGIN;
INSERT INTO p VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING *;
INSERT INTO p VALUES (1, 'again') ON CONFLICT DO NOTHING;
SELECT pg_current_xact_id_if_assigned();
ROLLBACK;

-- what else the server would do
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE WARNING '% %', TG_OP, NEW; RETURN NEW; END$$;
CREATE TRIGGER t BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION tell();
EXECUTE ip(800, 'trigger');
DROP TRIGGER t ON p;
CREATE TABLE r (id int PRIMARY KEY, owner name DEFAULT current_user, v int, twice int GENERATED ALWAYS AS (v * 2) STORED) USING mot;
ALTER TABLE r ENABLE ROW LEVEL SECURITY;
CREATE POLICY r ON r USING (owner = current_user);
CREATE ROLE regress_table_reader;
GRANT ALL ON r TO regress_table_reader;
INSERT INTO r (id, v) VALUES (1, 1);
INSERT INTO r (id, v, owner) VALUES (2, 2, 'regress_table_reader');
PREPARE sr2 AS SELECT id, twice FROM r;
PREPARE ir(int, name) AS INSERT INTO r (id, owner) VALUES ($1, $2);
PREPARE ur(int) AS UPDATE r SET v = v + 1 WHERE id = $1 RETURNING twice;
EXECUTE sr2;
EXECUTE ur(1);
EXECUTE ir(3, 'somebody');
SET ROLE regress_table_reader;
EXECUTE sr2;
EXECUTE ur(1);
EXECUTE ur(2);
EXECUTE ir(4, 'somebody');
RESET ROLE;
REVOKE SELECT ON r FROM regress_table_reader;
SET ROLE regress_table_reader;
EXECUTE sr2;
RESET ROLE;

-- statistics of use
SELECT pg_stat_force_next_flush();
SELECT idx_scan > 0 AS scans, n_tup_ins > 0 AS inserted, n_tup_upd > 0 AS updated, n_tup_del > 0 AS deleted
FROM pg_stat_user_tables WHERE relid = 'c'::regclass;
SELECT sum(idx_scan) > 0 AS scans, sum(idx_tup_read) > 0 AS read FROM pg_stat_user_indexes WHERE relid = 'p'::regclass;

-- a materialized view without rows is no empty table
CREATE MATERIALIZED VIEW mv USING mot AS SELECT * FROM p WITH NO DATA;
PREPARE smv AS SELECT count(*) FROM mv;
EXECUTE smv;
REFRESH MATERIALIZED VIEW mv;
EXECUTE smv;
DROP MATERIALIZED VIEW mv;

-- plans of one execution each are not shown
SET plan_cache_mode = force_custom_plan;
EXECUTE fu(1);
RESET mot.jit_prepare_above_executions;
EXECUTE fu(1);
SELECT count(*) FROM mot_stat_jit WHERE query IS NULL;
SET mot.jit_prepare_above_executions = 0;
SET plan_cache_mode = force_generic_plan;

-- indexes and tables change between executions
EXECUTE sr(1, 0);
CREATE INDEX c_v ON c (v);
EXECUTE sr(1, 0);
ALTER TABLE c SET ACCESS METHOD heap;
EXECUTE sr(1, 0);
EXECUTE ic(50, 1, 1);
ALTER TABLE c SET ACCESS METHOD mot;
EXECUTE sr(1, 0);
TRUNCATE c;
EXECUTE sr(1, 0);
EXECUTE ic(50, 77, 1);
EXECUTE ic(50, 1, 1);

-- COPY names the line, as for heap tables
CREATE TABLE k (id int PRIMARY KEY, u int UNIQUE) USING mot;
COPY k FROM stdin;
1	1
2	2

3	3
\.
COPY k FROM stdin;
1	1
2	2
3	3
4	2
1	5
\.
COPY k FROM stdin WHERE id <> 2;
1	1
2	2
3	3
\.
INSERT INTO k VALUES (3, 9);
COPY k FROM stdin;
4	4
5	5
3	3
\.
BEGIN;
COPY k FROM stdin;
4	4
5	5
\.
SELECT * FROM k ORDER BY id;
COMMIT;
DROP TABLE c, d, p, hc, hp, r, k;
DROP ROLE regress_table_reader;
DROP FUNCTION twins, tell;

-- a condition that is never true excludes the table, however small it is
CREATE TABLE excluded (id int PRIMARY KEY, v numeric) USING mot;
INSERT INTO excluded SELECT i, i FROM generate_series(1, 20) i;
EXPLAIN (COSTS OFF) SELECT * FROM excluded WHERE id = 3 AND v = NULL::numeric(6, 2);
SELECT count(*) FROM excluded WHERE id = 3 AND v = NULL::numeric(6, 2);
SELECT count(*) FROM excluded WHERE false;
DROP TABLE excluded;
-- ON CONFLICT DO UPDATE: what is looked up before it is stored, and written over a copy of the row
SET mot.jit_prepare_above_executions = 0;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE up (k text PRIMARY KEY, v text NOT NULL, n int, u int UNIQUE, d date) USING mot;
CREATE TABLE hup (k text PRIMARY KEY, v text NOT NULL, n int, u int UNIQUE, d date);
CREATE FUNCTION ups(statements text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text[];
	answer text;
	said text;
	t text;
	s text;
BEGIN
	FOREACH t IN ARRAY ARRAY['', 'h'] LOOP
		said := '';
		BEGIN
			FOREACH s IN ARRAY string_to_array(statements, '; ') LOOP
				EXECUTE replace(s, '@', t);
			END LOOP;
		EXCEPTION WHEN OTHERS THEN
			said := replace(SQLSTATE || ' ' || SQLERRM, '"hup', '"up') || ', ';
		END;
		EXECUTE format('SELECT string_agg(concat_ws(''/'', k, left(v, 6), length(v), n, u, d), '' '' ORDER BY k) FROM %sup', t) INTO answer;
		answers := answers || (said || coalesce(answer, 'nothing'));
	END LOOP;
	RETURN CASE WHEN answers[1] IS DISTINCT FROM answers[2] THEN 'DIFFERENT: ' || answers::text ELSE answers[1] END;
END $$;
SELECT format($$
	PREPARE %1$sset(text, text) AS INSERT INTO %1$sup VALUES ($1, $2, 1) ON CONFLICT (k) DO UPDATE SET v = excluded.v, n = %1$sup.n + 1;
	PREPARE %1$snul(text) AS INSERT INTO %1$sup VALUES ($1, 'nul') ON CONFLICT (k) DO UPDATE SET v = NULLIF(excluded.v, 'nul'), n = 0;
	PREPARE %1$swhe(text, int) AS INSERT INTO %1$sup VALUES ($1, 'whe', $2) ON CONFLICT (k) DO UPDATE SET n = NULL, d = '2000-01-01' WHERE %1$sup.n < excluded.n;
	PREPARE %1$suni(text, int) AS INSERT INTO %1$sup VALUES ($1, 'uni', 1, $2) ON CONFLICT (u) DO UPDATE SET n = 100 + $2;
	PREPARE %1$skey(text, int) AS INSERT INTO %1$sup VALUES ($1, 'key', 1, $2) ON CONFLICT (k) DO UPDATE SET u = $2;
	PREPARE %1$sown(text, text) AS INSERT INTO %1$sup VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET k = %1$sup.k || 'o', v = 'own';
	PREPARE %1$stwo(text, text) AS INSERT INTO %1$sup VALUES ($1, 'one', 1), ($2, 'two', 1) ON CONFLICT (k) DO UPDATE SET v = excluded.v, n = 7;
	PREPARE %1$spair(text) AS INSERT INTO %1$sup VALUES ($1, 'pair', 5) ON CONFLICT (k) DO UPDATE SET (v, n) = (SELECT excluded.v || %1$sup.v, excluded.n);
$$, prefix) FROM unnest(ARRAY['', 'h']) prefix \gexec
SELECT s, ups(s) FROM unnest(ARRAY[
	'EXECUTE @set(''a'', ''1'')', 'EXECUTE @set(''a'', ''2'')', 'EXECUTE @set(''a'', ''3'')', 'EXECUTE @set(''b'', ''4'')', 'EXECUTE @set(''a'', repeat(''ab'', 3000))',
	'EXECUTE @set(''b'', repeat(''c'', 200))', 'EXECUTE @set(''b'', NULL)', 'EXECUTE @set(NULL, ''x'')', 'EXECUTE @set(''b'', ''short'')',
	'EXECUTE @nul(''c'')', 'EXECUTE @nul(''c'')', 'EXECUTE @nul(''c'')', 'EXECUTE @nul(''d'')',
	'EXECUTE @whe(''a'', 3)', 'EXECUTE @whe(''a'', 30)', 'EXECUTE @whe(''b'', 30)', 'EXECUTE @whe(''b'', 30)',
	'EXECUTE @uni(''e'', 1)', 'EXECUTE @uni(''f'', 1)', 'EXECUTE @uni(''g'', 1)', 'EXECUTE @uni(''e'', 2)', 'EXECUTE @uni(''a'', NULL)', 'EXECUTE @uni(''h'', 1)',
	'EXECUTE @key(''a'', 7)', 'EXECUTE @key(''a'', 8)', 'EXECUTE @key(''b'', 8)', 'EXECUTE @key(''a'', NULL)',
	'EXECUTE @own(''a'', ''x'')', 'EXECUTE @own(''ao'', ''x'')', 'EXECUTE @own(''ao'', ''y'')', 'EXECUTE @own(''aoo'', ''y'')',
	'EXECUTE @two(''b'', ''c'')', 'EXECUTE @two(''b'', ''b'')', 'EXECUTE @two(''x'', ''x'')', 'EXECUTE @two(''b'', ''y'')', 'EXECUTE @two(''z'', ''c'')',
	'EXECUTE @pair(''b'')', 'EXECUTE @pair(''b'')',
	'EXECUTE @set(''b'', ''5''); DELETE FROM @up WHERE k = ''b''; EXECUTE @set(''b'', ''6''); EXECUTE @set(''b'', ''7'')',
	'EXECUTE @set(''b'', ''8''); UPDATE @up SET k = ''bb'' WHERE k = ''b''; EXECUTE @set(''b'', ''9''); EXECUTE @set(''b'', ''10''); UPDATE @up SET k = ''q'' WHERE k = ''b''; EXECUTE @set(''bb'', ''11'')'
]) s;
SELECT sum(executions) > 20 AS here FROM mot_stat_jit WHERE query ~ 'INTO up VALUES';
SELECT s, ups(s) FROM unnest(ARRAY[
	'EXECUTE @set(''c'', ''12''); TRUNCATE @up; EXECUTE @set(''c'', ''13''); EXECUTE @set(''c'', ''14''); EXECUTE @set(''c'', ''15'')',
	'ALTER TABLE @up ADD CHECK (n < 6); EXECUTE @set(''c'', ''16''); EXECUTE @set(''c'', ''17''); EXECUTE @set(''c'', ''18'')',
	'ALTER TABLE @up ADD x int; ALTER TABLE @up DROP COLUMN x; EXECUTE @set(''c'', ''19''); EXECUTE @set(''c'', ''20'')',
	'CREATE UNIQUE INDEX ON @up (n); EXECUTE @set(''c'', ''21''); EXECUTE @set(''c'', ''22''); EXECUTE @set(''d'', ''23'')'
]) s;
DROP TABLE up, hup;
DROP FUNCTION ups;
