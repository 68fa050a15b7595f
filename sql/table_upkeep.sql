-- What maintenance of ordinary tables does beside storing rows, the same statements on heap
-- and on memory-optimized tables: in whose name functions of indexes are called (by who reads: never), what becomes
-- of indexes that a failed command has left, which tables updates may be published of.
CREATE ROLE regress_upkeep_owner;
CREATE SCHEMA tu_heap AUTHORIZATION regress_upkeep_owner;
CREATE SCHEMA tu_mot AUTHORIZATION regress_upkeep_owner;
CREATE FUNCTION tu_owner(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF current_user <> 'regress_upkeep_owner' THEN
		RAISE 'tu_owner(%) called by %', $1, current_user;
	END IF;
	PERFORM txid_current();
	RETURN $1;
END $$;
-- called in the middle of a commit it cannot say anything
CREATE FUNCTION tu_never_fails(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1;
	RETURN 1;
EXCEPTION WHEN others THEN
	RETURN 2;
END $$;

-- statements for both, in turns; ENGINE is the schema's second part
CREATE TABLE tu (id serial, statement text);
INSERT INTO tu (statement) VALUES
	('CREATE TABLE tu_ENGINE.t (a int, b int) USING ENGINE'),
	('ALTER TABLE tu_ENGINE.t OWNER TO regress_upkeep_owner'),
	('INSERT INTO tu_ENGINE.t VALUES (1, 1), (2, 2), (3, 3)'),
	('CREATE INDEX i ON tu_ENGINE.t ((tu_owner(a) + tu_owner(0))) WHERE tu_owner(a + 10) > tu_owner(10)'),
	('REINDEX TABLE tu_ENGINE.t'),
	('REINDEX INDEX tu_ENGINE.i'),
	('REINDEX TABLE CONCURRENTLY tu_ENGINE.t'),
	('REINDEX INDEX CONCURRENTLY tu_ENGINE.i'),
	('CREATE INDEX c ON tu_ENGINE.t ((tu_owner(a) - tu_owner(1)))'),
	('CLUSTER tu_ENGINE.t USING c'),
	('VACUUM FULL tu_ENGINE.t'),
	('VACUUM ANALYZE tu_ENGINE.t'),
	('DROP INDEX tu_ENGINE.i'),
	('CREATE INDEX CONCURRENTLY i ON tu_ENGINE.t ((tu_owner(a) + tu_owner(0))) WHERE tu_owner(a + 10) > tu_owner(10)'),
	('REINDEX TABLE CONCURRENTLY tu_ENGINE.t'),
	('DROP INDEX CONCURRENTLY tu_ENGINE.i'),

	('DROP INDEX tu_ENGINE.c'),
	('CREATE UNIQUE INDEX ON tu_ENGINE.t (tu_owner(a))'),
	('SELECT count(*) FROM tu_ENGINE.t'),
	('SELECT 1 AS one FROM tu_ENGINE.t'),
	('SET enable_seqscan = off'),
	('SELECT count(*) FROM tu_ENGINE.t'),
	('RESET enable_seqscan'),

	('CREATE MATERIALIZED VIEW tu_ENGINE.v USING ENGINE AS SELECT 1 AS c'),
	('CREATE UNIQUE INDEX ON tu_ENGINE.v (c) WHERE tu_never_fails(1) > 0'),
	('REFRESH MATERIALIZED VIEW tu_ENGINE.v'),

	('CREATE TABLE tu_ENGINE.k (a int, b int) USING ENGINE'),
	('INSERT INTO tu_ENGINE.k VALUES (1, 1), (2, 1)'),
	('CREATE UNIQUE INDEX CONCURRENTLY tu_k ON tu_ENGINE.k (b)'),
	('INSERT INTO tu_ENGINE.k VALUES (3, 1)'),
	('VACUUM FULL tu_ENGINE.k'),
	('INSERT INTO tu_ENGINE.k VALUES (4, 1)'),
	('REINDEX TABLE tu_ENGINE.k'),
	('SELECT count(*), (SELECT reltuples FROM pg_class WHERE oid = ''tu_ENGINE.k''::regclass),
		(SELECT indisready OR indisvalid FROM pg_index WHERE indexrelid = ''tu_ENGINE.tu_k''::regclass) AS used FROM tu_ENGINE.k WHERE b = 1'),
	('TRUNCATE tu_ENGINE.k'),
	('INSERT INTO tu_ENGINE.k VALUES (5, 1), (6, 1)'),
	('DELETE FROM tu_ENGINE.k WHERE a = 5'),
	('REINDEX TABLE tu_ENGINE.k'),
	('INSERT INTO tu_ENGINE.k VALUES (7, 1)'),

	('CREATE TABLE tu_ENGINE.p (a int UNIQUE, b int) USING ENGINE'),
	('SET client_min_messages = error'),
	('CREATE PUBLICATION tu_ENGINE FOR TABLE tu_ENGINE.p'),
	('INSERT INTO tu_ENGINE.p VALUES (1, 1) ON CONFLICT (a) DO UPDATE SET b = 2'),
	('INSERT INTO tu_ENGINE.p VALUES (1, 1) ON CONFLICT DO NOTHING'),
	('UPDATE tu_ENGINE.p SET b = 3'),
	('DROP PUBLICATION tu_ENGINE');
\set VERBOSITY terse
\set ECHO queries
SELECT replace(statement, 'ENGINE', engine) FROM tu, unnest('{heap,mot}'::text[]) engine ORDER BY id, engine \gexec
\set ECHO all
RESET client_min_messages;

SET client_min_messages = warning;
DROP SCHEMA tu_heap, tu_mot CASCADE;
DROP TABLE tu;
DROP FUNCTION tu_owner, tu_never_fails;
DROP ROLE regress_upkeep_owner;
