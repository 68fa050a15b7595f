--
-- COPY FROM in batches: what a heap table makes of the same input, with the
-- same errors in the same order, the same lines named and the same counts.
--
SET client_min_messages = warning;
CREATE SCHEMA copy_heap;
CREATE SCHEMA copy_mot;
CREATE SCHEMA copy_table;		-- ordinary ones

-- Run "COPY t <how> FROM PROGRAM ..." on all tables t and compare what came
-- of it: errors with all they say, rows counted, rows there.
CREATE FUNCTION copy_one(schema text, how text, program text, tail text, OUT result text, OUT rows text)
LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	context text;
	name text;
	n bigint;
BEGIN
	PERFORM set_config('search_path', schema || ', public', true);
	BEGIN
		EXECUTE format('COPY t %s FROM PROGRAM %L %s', how, program, tail);
		GET DIAGNOSTICS n = ROW_COUNT;
		result := 'COPY ' || n;
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
			context = PG_EXCEPTION_CONTEXT, name = CONSTRAINT_NAME;
		context := regexp_replace(context, '\n?SQL statement.*', '');
		result := concat_ws(E'\n  ', SQLSTATE || ' ' || message, nullif(detail, ''), nullif(name, ''), nullif(context, ''));
	END;
	EXECUTE 'SELECT count(*) || '' '' || coalesce(md5(string_agg(t::text, '','' ORDER BY t::text)), ''-'') FROM t' INTO rows;
END $$;

CREATE FUNCTION copy_twins(how text, program text, tail text DEFAULT '') RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	heap record;
	mot record;
	ordinary record;
	path text := current_setting('search_path');
BEGIN
	heap := copy_one('copy_heap', how, program, tail);
	mot := copy_one('copy_mot', how, program, tail);
	ordinary := copy_one('copy_table', how, program, tail);
	PERFORM set_config('search_path', path, true);
	IF heap IS NOT DISTINCT FROM mot AND heap IS NOT DISTINCT FROM ordinary THEN
		RETURN mot.result || ' (' || split_part(mot.rows, ' ', 1) || ' rows)';
	END IF;
	RETURN 'DIFFERENT: heap: ' || heap::text || E'\nmot:  ' || mot::text || E'\nordinary:  ' || ordinary::text;
END $$;

-- the same statements for all
CREATE PROCEDURE twice(statements text) LANGUAGE plpgsql AS $$
DECLARE
	path text := current_setting('search_path');
BEGIN
	SET LOCAL search_path = copy_heap, public;
	EXECUTE statements;
	SET LOCAL search_path = copy_mot, public;
	EXECUTE regexp_replace(statements, 'CREATE TABLE (t \([^;]*)', 'CREATE FOREIGN TABLE \1 SERVER mot_server', 'g');
	SET LOCAL search_path = copy_table, public;
	SET LOCAL default_table_access_method = mot;
	EXECUTE statements;
	RESET default_table_access_method;
	PERFORM set_config('search_path', path, true);
END $$;

CALL twice('CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE, b text CHECK (b <> ''bad''), c int NOT NULL DEFAULT 7)');
SELECT relkind FROM pg_class WHERE oid IN ('copy_heap.t'::regclass, 'copy_mot.t'::regclass) ORDER BY 1;

\t on
\pset format unaligned
SELECT copy_twins('(id)', 'seq 1 10');
SELECT copy_twins('(id, a)', 'seq -f "%.0f	%.0f" 1 0; seq 11 2510 | sed "s/.*/&	-&/"');
SELECT copy_twins('(id)', 'true');
SELECT copy_twins('(id, b)', 'printf "3000	x\n3001	\\\\N\n"');

-- duplicates: in the batch, of a row from before, of an earlier batch
SELECT copy_twins('(id)', 'printf "5000\n5001\n5000\n"');
SELECT copy_twins('(id)', 'printf "5000\n5001\n7\n5002\n"');
SELECT copy_twins('(id)', 'seq 5001 6500; echo 5001');
SELECT copy_twins('(id, a)', 'printf "5001	1\n5002	-600\n5003	2\n"');

-- several: the first row in trouble, and its first index
SELECT copy_twins('(id, a)', 'printf "5001	1\n5002	-600\n5003	2\n5001	3\n"');
SELECT copy_twins('(id, a)', 'printf "5001	1\n5002	-600\n7	-601\n"');
SELECT copy_twins('(id, a)', 'printf "5001	1\n7	-601\n5002	-600\n"');

-- other errors come when the row is read, duplicates when a batch is full
SELECT copy_twins('(id)', 'printf "5001\n7\n5003\nx\n"');
SELECT copy_twins('(id)', 'printf "5001\n7\n"; seq 5003 6200; echo x');
SELECT copy_twins('(id, b)', 'printf "5001	a\n7	b\n5003	bad\n"');
SELECT copy_twins('(id, c)', 'printf "5001	1\n7	2\n5003	\\\\N\n"');
SELECT copy_twins('(id, b)', 'printf "5001	a\n7	b\n5003	x	y\n"');
-- by their size
SELECT copy_twins('(id, b)', 'printf "5001	a\n7	b\n"; seq 5003 5500 | sed "s/$/	1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890/"; echo x');
SELECT copy_twins('(id, b)', 'printf "5001	a\n7	b\n"; seq 5003 5450 | sed "s/$/	1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890/"; echo x');

-- a row too large for a batch
SELECT copy_twins('(id, b)', 'printf "5001	a\n5002	"; head -c 3000000 /dev/zero | tr "\\0" x; printf "\n5003	\n7	\n"');
SELECT copy_twins('(id, b)', 'printf "5001	a\n5002	"; head -c 3000000 /dev/zero | tr "\\0" x; printf "\n5003	\n"');

-- formats, options, WHERE
SELECT copy_twins('', 'printf "id,a,b,c\n6001,,x,1\n6002,,\"y\nz\",2\n"', '(FORMAT csv, HEADER)');
SELECT copy_twins('', 'printf "id,a,b,c\n6003,,x,1\n6004,,\"y\nz\",2\n6001,,,5\n"', '(FORMAT csv, HEADER)');
SELECT copy_twins('(id, a)', 'seq 7001 9000 | sed "s/.*/&	-&/"', 'WHERE a % 2 = 0');
SELECT copy_twins('(id, b)', 'printf "9901	\344\n9902	\344\n1	\344\n"', '(ENCODING latin1)');
COPY (SELECT g, g, repeat('x', g), 1 FROM generate_series(10001, 11200) g UNION ALL SELECT 7, 0, '', 0)
	TO PROGRAM 'cat >mot_copy_batch.bin' (FORMAT binary);
SELECT copy_twins('', 'head -c 11000000 mot_copy_batch.bin', '(FORMAT binary)');
SELECT copy_twins('', 'cat mot_copy_batch.bin', '(FORMAT binary)');
CALL twice('DELETE FROM t WHERE id = 7');
SELECT copy_twins('', 'cat mot_copy_batch.bin', '(FORMAT binary)');
COPY (SELECT) TO PROGRAM 'cat >/dev/null; rm mot_copy_batch.bin';

-- other rows of the same transaction
SELECT copy_twins('(id)', 'seq 20001 20010');
BEGIN;
CALL twice('DELETE FROM t WHERE id BETWEEN 20001 AND 20005');
SELECT copy_twins('(id)', 'seq 20001 20005');
SELECT copy_twins('(id)', 'seq 20001 20010');
SAVEPOINT s;
SELECT copy_twins('(id)', 'seq 30001 32000');
ROLLBACK TO s;
SELECT copy_twins('(id)', 'seq 30001 32000');
ROLLBACK;
SELECT copy_twins('(id)', 'seq 30001 30005');

-- keys of all kinds, nulls among them
CALL twice('DROP TABLE t; CREATE TABLE t (k text UNIQUE, n numeric, d date, UNIQUE (n, d)); CREATE INDEX ON t (d, k); CREATE INDEX ON t (n)');
SELECT copy_twins('', 'printf "\\\\N	1	\\\\N\n\\\\N	1	\\\\N\na	1.0	2026-01-01\nb	1	2026-01-02\n"');
SELECT copy_twins('', 'printf "c	2	2026-01-01\nd	1.00	2026-01-01\n"');
SELECT copy_twins('(k)', 'seq 1 600 | sed "s/$/234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890/"');
SELECT copy_twins('(k)', 'seq 601 1200 | sed "s/$/234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890/"; echo b');
SELECT count(*) FROM copy_mot.t WHERE k > '1' AND k < '2';
SELECT count(*) FROM copy_heap.t WHERE k > '1' AND k < '2';

-- no key, no columns, generated and default columns
CALL twice('DROP TABLE t; CREATE TABLE t (a int, b serial, c int GENERATED ALWAYS AS (a * 2) STORED, d text DEFAULT repeat(''d'', 5000))');
SELECT copy_twins('(a)', 'seq 1 2500');
SELECT copy_twins('(a, c)', 'echo 1');
CALL twice('DROP TABLE t; CREATE TABLE t ()');
SELECT copy_twins('', 'printf "\n\n\n"');

-- what looks at the table sees what it would see of heap's
CALL twice($$
DROP TABLE t;
CREATE FUNCTION seen() RETURNS int VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM t); END';
CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT seen())
$$);
SELECT copy_twins('(id)', 'seq 1 5');
SELECT copy_twins('(id)', 'seq 6 8; echo 7');
SELECT n FROM copy_mot.t ORDER BY id;
SELECT copy_twins('(id, n)', 'seq 11 20 | sed "s/$/	-1/"', 'WHERE seen() < 9');
CALL twice('DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, n int, CHECK (seen() < 1500))');
SELECT copy_twins('(id)', 'seq 1 4000');
CALL twice($$
CREATE FUNCTION shown(i int) RETURNS int VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM t WHERE id = i); END';
DROP TABLE t;
CREATE TABLE t (id int PRIMARY KEY, n int, CHECK (shown(id - 1) = 0))
$$);
SELECT copy_twins('(id)', 'seq 1 4000');

-- triggers
CALL twice($$
DROP TABLE t;
CREATE TABLE t (id int PRIMARY KEY, n int);
CREATE TABLE log (what text, n int);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
	IF TG_LEVEL = 'ROW' AND TG_WHEN = 'BEFORE' THEN
		IF NEW.id = 4 THEN RETURN NULL; END IF;
		NEW.n := seen();
	END IF;
	INSERT INTO log VALUES (TG_WHEN || ' ' || TG_LEVEL, seen());
	RETURN NEW;
END $f$
$$);
SELECT copy_twins('(id)', 'seq 101 103');
CALL twice('CREATE TRIGGER b BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note()');
SELECT copy_twins('(id)', 'seq 201 203');
SELECT copy_twins('(id)', 'seq 204 206; echo 201');
CALL twice('CREATE TRIGGER c AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION note()');
SELECT copy_twins('(id)', 'seq 301 303');
CALL twice('DROP TRIGGER c ON t; CREATE TRIGGER d AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()');
SELECT copy_twins('(id)', 'seq 401 403');
CALL twice('DROP TRIGGER d ON t; CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()');
SELECT copy_twins('(id)', 'seq 1 5');
SELECT copy_twins('(id)', 'seq 6 8; echo 7');
SELECT what, n FROM copy_heap.log EXCEPT ALL SELECT what, n FROM copy_mot.log;
SELECT what, n FROM copy_mot.log EXCEPT ALL SELECT what, n FROM copy_heap.log;
SELECT count(*) FROM copy_mot.log;
SELECT what, n FROM copy_heap.log EXCEPT ALL SELECT what, n FROM copy_table.log;
SELECT what, n FROM copy_table.log EXCEPT ALL SELECT what, n FROM copy_heap.log;

-- a partition by its own name
CALL twice($$
DROP TABLE t, log;
CREATE TABLE p (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE t PARTITION OF p FOR VALUES FROM (1) TO (1000)
$$);
SELECT copy_twins('(id)', 'seq 1 100');
SELECT copy_twins('(id)', 'seq 101 103; echo 5; echo 1001');
-- from above, with its columns in another order
CALL twice($$
DROP TABLE p;
CREATE TABLE p (id int PRIMARY KEY, n text) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (1000);
CREATE TABLE p2 (n text, gone int, id int NOT NULL);
ALTER TABLE p2 DROP gone;
ALTER TABLE p2 ADD PRIMARY KEY (id);
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (1000) TO (100000)
$$);
CREATE FUNCTION copy_parts(program text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	context text;
	schema text;
BEGIN
	FOREACH schema IN ARRAY ARRAY['copy_heap', 'copy_table'] LOOP
		PERFORM set_config('search_path', schema || ', public', true);
		BEGIN
			EXECUTE format('COPY p FROM PROGRAM %L', program);
			SET CONSTRAINTS ALL IMMEDIATE;
			SELECT count(*) || ' ' || md5(string_agg(p::text, ',' ORDER BY id)) FROM p INTO answer;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS answer = MESSAGE_TEXT, context = PG_EXCEPTION_CONTEXT;
			answer := answer || ': ' || regexp_replace(context, '\n?SQL statement.*', '');
		END;
		RETURN NEXT answer;
	END LOOP;
END $$;
SELECT copy_parts('for i in `seq 1 700`; do printf "%s	x%s\n%s	y\n" $i $i $((i + 2000)); done');
SELECT copy_parts('for i in `seq 701 800`; do printf "%s	x%s\n%s	y\n" $i $i $((i + 2000)); done; printf "900	a\n2005	b\n901	c\n5	d\n"');
-- a trigger's condition is asked when a row has its keys, before those of the next
CALL twice($$
DROP TABLE p;
CREATE TABLE p (id int PRIMARY KEY, n int UNIQUE);
CREATE TRIGGER d AFTER INSERT ON p FOR EACH ROW WHEN (1 / NEW.n > 0) EXECUTE FUNCTION note()
$$);
SELECT copy_parts('printf "1	1\n2	0\n1	2\n"');
SELECT copy_parts('printf "1	1\n1	2\n2	0\n"');
SELECT copy_parts('printf "1	1\n2	1\n2	0\n"');
-- keys that are looked at again
CALL twice('DROP TABLE p; CREATE TABLE p (id int PRIMARY KEY, n int UNIQUE DEFERRABLE, m int, EXCLUDE USING btree (m WITH =))');
SELECT copy_parts('printf "1	1	1\n2	2	1\n1	3	2\n"');
SELECT copy_parts('printf "1	1	1\n2	1	2\n1	3	3\n"');
SELECT copy_parts('printf "1	1	1\n2	1	2\n3	3	3\n"');
SELECT copy_parts('printf "1	1	1\n2	2	2\n3	3	3\n"');
-- keys whose making raises errors
CALL twice('DROP TABLE p; CREATE TABLE p (id int, n int); CREATE UNIQUE INDEX ON p (id); CREATE UNIQUE INDEX ON p ((10 / n))');
SELECT copy_parts('printf "1	1\n2	2\n3	0\n4	4\n"');
SELECT copy_parts('printf "1	1\n1	2\n3	0\n4	4\n"');
SELECT copy_parts('printf "1	1\n2	2\n3	2\n4	0\n"');
SELECT copy_parts('printf "1	1\n2	2\n3	3\n"');
CALL twice('DROP TABLE p; CREATE TABLE p (id int, n int); CREATE UNIQUE INDEX ON p (id) WHERE 10 / n > 0');
SELECT copy_parts('printf "1	1\n2	2\n1	3\n4	0\n"');
SELECT copy_parts('printf "1	1\n2	2\n1	30\n4	0\n5	5\n"');

-- progress is counted row by row
CREATE FUNCTION progress() RETURNS text VOLATILE LANGUAGE sql AS
	$$SELECT concat_ws(' ', command, type, relname, tuples_processed, tuples_excluded)
	FROM pg_stat_progress_copy JOIN pg_class c ON c.oid = relid WHERE pid = pg_backend_pid()$$;
CALL twice('DROP TABLE p; CREATE TABLE t (id int PRIMARY KEY, CONSTRAINT c CHECK (id < 10 OR (progress() || ''x'')::int > 0))');
SELECT copy_twins('', 'seq 2 30', 'WHERE id > 3');
\t off
\pset format aligned

-- COPY FREEZE
BEGIN;
CALL twice('DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE)');
COMMIT;
SET search_path = copy_heap, public;
BEGIN;
TRUNCATE t;
COPY t FROM PROGRAM 'seq 1 2500 | sed "s/.*/&	-&/"' (FREEZE);
SELECT count(*), count(DISTINCT a) FROM t;
SAVEPOINT s;
TRUNCATE t;
COPY t FROM PROGRAM 'seq 1 1500 | sed "s/.*/&	-&/"; printf "1501	-3\n1	1\n"' (FREEZE);
ROLLBACK TO s;
SELECT count(*), count(DISTINCT a) FROM t;
COMMIT;
SET search_path = copy_mot, public;
BEGIN;
TRUNCATE t;
COPY t FROM PROGRAM 'seq 1 2500 | sed "s/.*/&	-&/"' (FREEZE);
SELECT count(*), count(DISTINCT a) FROM t;
SAVEPOINT s;
TRUNCATE t;
COPY t FROM PROGRAM 'seq 1 1500 | sed "s/.*/&	-&/"; printf "1501	-3\n1	1\n"' (FREEZE);
ROLLBACK TO s;
SELECT count(*), count(DISTINCT a) FROM t;
COMMIT;

-- rights, and transactions that may not write
RESET search_path;
CREATE ROLE copy_user;
GRANT USAGE ON SCHEMA copy_mot TO copy_user;
GRANT INSERT (id) ON copy_mot.t TO copy_user;
SET ROLE copy_user;
\copy copy_mot.t FROM '/dev/null'
\copy copy_mot.t (a) FROM '/dev/null'
COPY copy_mot.t (id) FROM STDIN;
90001
90002
\.
\copy copy_mot.t (id) FROM '/dev/null' WHERE a IS NULL
COPY copy_mot.t (id) FROM PROGRAM 'true';
-- a key that may not be shown
COPY copy_mot.t (id) FROM STDIN;
90003
1
\.
RESET ROLE;
BEGIN READ ONLY;
\copy copy_mot.t (id) FROM '/dev/null'
ROLLBACK;

DROP SCHEMA copy_mot, copy_heap, copy_table CASCADE;
DROP FUNCTION copy_one, copy_twins, copy_parts, progress;
DROP PROCEDURE twice;
DROP ROLE copy_user;
