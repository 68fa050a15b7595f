-- Unique keys: messages, nulls, multi-row statements, keys freed and taken again.

CREATE FOREIGN TABLE uniq (
    id int PRIMARY KEY,
    a int,
    b text,
    c numeric UNIQUE,
    CONSTRAINT uniq_ab UNIQUE (a, b)
) SERVER mot_server;

INSERT INTO uniq VALUES (1, 1, 'one', 1.0), (2, 2, 'two', 2.0);

-- PostgreSQL's own message, constraint name and detail
INSERT INTO uniq VALUES (1, 3, 'three', 3.0);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO uniq VALUES (3, 2, 'two', 3.0);
-- equal by the operator class, not by bytes
INSERT INTO uniq VALUES (3, 3, 'three', 2.000);
DO $$
DECLARE
    con text; tab text; sch text;
BEGIN
    INSERT INTO uniq VALUES (3, 1, 'one', 3.0);
EXCEPTION WHEN unique_violation THEN
    GET STACKED DIAGNOSTICS con = CONSTRAINT_NAME, tab = TABLE_NAME, sch = SCHEMA_NAME;
    RAISE NOTICE '% % %', sch, tab, con;
END
$$;

-- nulls are distinct
INSERT INTO uniq VALUES (3, NULL, 'x', NULL), (4, NULL, 'x', NULL), (5, 5, NULL, NULL), (6, 5, NULL, NULL);
SELECT * FROM uniq ORDER BY id;

-- a failed statement leaves nothing, whatever it did before it failed
INSERT INTO uniq SELECT i, i, 'n' || i, i FROM generate_series(15, 1, -1) i;
SELECT count(*) FROM uniq;
INSERT INTO uniq VALUES (10, 10, 'ten', 10), (11, 10, 'ten', 11);
SELECT count(*) FROM uniq;

-- keys change
UPDATE uniq SET id = 2 WHERE id = 1;
UPDATE uniq SET id = 20 WHERE id = 2;
INSERT INTO uniq VALUES (2, 2, 'zwei', 2.5);
INSERT INTO uniq VALUES (21, 2, 'two', 21);
UPDATE uniq SET b = 'TWO' WHERE id = 20;
INSERT INTO uniq VALUES (21, 2, 'two', 21);
-- to itself, and to a value that is equal with other bytes
UPDATE uniq SET id = id, c = c + 0.00 WHERE id = 20;
UPDATE uniq SET a = NULL WHERE id = 21;
INSERT INTO uniq VALUES (22, 2, 'two', 22);
UPDATE uniq SET a = 2 WHERE id = 21;
SELECT * FROM uniq ORDER BY id;

-- deleted and inserted again, in one transaction and over several
BEGIN;
DELETE FROM uniq WHERE id = 1;
INSERT INTO uniq VALUES (1, 1, 'one', 1);
DELETE FROM uniq WHERE id = 1;
INSERT INTO uniq VALUES (1, 1, 'eins', 1);
INSERT INTO uniq VALUES (1, 1, 'eins', 1);
ROLLBACK;
DELETE FROM uniq WHERE id = 1;
INSERT INTO uniq VALUES (1, 1, 'eins', 1);
SELECT * FROM uniq WHERE id = 1;
SELECT * FROM uniq WHERE c = 1;
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        DELETE FROM uniq WHERE id = 1;
        INSERT INTO uniq VALUES (1, 1, 'round ' || i, 1);
    END LOOP;
END
$$;
SELECT * FROM uniq WHERE id = 1;

-- the key moves to and fro between two rows
BEGIN;
UPDATE uniq SET id = -1 WHERE id = 1;
UPDATE uniq SET id = 1 WHERE id = 2;
UPDATE uniq SET id = 2 WHERE id = -1;
SELECT id, b FROM uniq WHERE id IN (1, 2) ORDER BY id;
COMMIT;
SELECT id, b FROM uniq WHERE id IN (1, 2) ORDER BY id;
SELECT id, b FROM uniq WHERE id = -1;

-- savepoints give keys back
BEGIN;
SAVEPOINT s;
INSERT INTO uniq VALUES (30, 30, 'thirty', 30);
ROLLBACK TO s;
INSERT INTO uniq VALUES (30, 30, 'thirty again', 30);
SAVEPOINT s2;
DELETE FROM uniq WHERE id = 30;
INSERT INTO uniq VALUES (30, 30, 'thirty, third', 30);
ROLLBACK TO s2;
SAVEPOINT s3;
INSERT INTO uniq VALUES (30, 31, 'thirty, fourth', 31);
ROLLBACK TO s3;
COMMIT;
SELECT * FROM uniq WHERE id = 30;

-- the values are shown only to those who may see them
CREATE ROLE uniq_user;
GRANT INSERT ON uniq TO uniq_user;
SET ROLE uniq_user;
INSERT INTO uniq VALUES (30, 99, 'secret', 99);
RESET ROLE;
GRANT SELECT (id) ON uniq TO uniq_user;
SET ROLE uniq_user;
INSERT INTO uniq VALUES (30, 99, 'secret', 99);
RESET ROLE;
DROP OWNED BY uniq_user;
DROP ROLE uniq_user;

-- an index on rows that are there
CREATE UNIQUE INDEX uniq_b ON uniq (b);
DELETE FROM uniq WHERE b IS NULL;
CREATE UNIQUE INDEX uniq_b ON uniq (b);
DELETE FROM uniq WHERE id IN (4, 22);
CREATE UNIQUE INDEX uniq_b ON uniq (b);
INSERT INTO uniq VALUES (40, 40, 'TWO', 40);
SELECT id, b FROM uniq WHERE b = 'TWO';

DROP FOREIGN TABLE uniq;

-- many keys changed and taken back, by statement, savepoint and transaction: they are free at once, and the old ones are not
CREATE FOREIGN TABLE uniq_many (id int PRIMARY KEY, v text) SERVER mot_server;
CREATE INDEX ON uniq_many (v);
INSERT INTO uniq_many SELECT g, 'old' || g FROM generate_series(1, 3000) g;
BEGIN;
UPDATE uniq_many SET id = id + 10000, v = 'a longer new one ' || id;
ROLLBACK;
UPDATE uniq_many SET id = id / CASE id WHEN 2999 THEN 0 ELSE 1 END + 20000;
BEGIN;
UPDATE uniq_many SET v = v || '!' WHERE id <= 1000;
SAVEPOINT s;
UPDATE uniq_many SET id = id + 30000, v = 'new' || id;
UPDATE uniq_many SET id = id + 10000, v = 'newer' || id WHERE id > 32000;
ROLLBACK TO s;
INSERT INTO uniq_many SELECT g, 'in its place' FROM generate_series(30001, 33000) g;
COMMIT;
INSERT INTO uniq_many SELECT g + d, 'in its place' FROM generate_series(1, 3000) g, (VALUES (10000), (20000)) d (d);
INSERT INTO uniq_many SELECT g FROM generate_series(3000, 4000) g;
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE v LIKE 'old%!'), count(*) FILTER (WHERE v LIKE 'old%') FROM uniq_many;
SET enable_seqscan = off;
SELECT count(*), min(v), max(v) FROM uniq_many WHERE v >= 'a' AND v < 'o';
SELECT * FROM uniq_many WHERE id IN (1, 1001, 10001, 30001, 33000, 42001) ORDER BY id;
RESET enable_seqscan;
DELETE FROM uniq_many;
INSERT INTO uniq_many SELECT g + 30000, 'old' || g FROM generate_series(1, 3000) g;
SELECT count(*), min(id), max(id) FROM uniq_many;
SELECT * FROM mot_verify('uniq_many') WHERE problems <> 0;

-- many rows inserted and taken back, also some that are changed meanwhile, or made by a definition that goes as well
BEGIN;
INSERT INTO uniq_many SELECT g, 'new' || g FROM generate_series(1, 3000) g;
UPDATE uniq_many SET v = 'newer' || id WHERE id BETWEEN 1000 AND 1500;
DELETE FROM uniq_many WHERE id BETWEEN 500 AND 600;
ROLLBACK;
INSERT INTO uniq_many SELECT g, 1 / (3000 - g) FROM generate_series(1, 3000) g;
BEGIN;
ALTER FOREIGN TABLE uniq_many ADD COLUMN w int DEFAULT 7;
CREATE INDEX ON uniq_many (w);
INSERT INTO uniq_many SELECT g, 'new' || g, g FROM generate_series(1, 3000) g;
ROLLBACK;
BEGIN;
SAVEPOINT s;
INSERT INTO uniq_many SELECT g, 'new' || g FROM generate_series(1, 3000) g;
ROLLBACK TO s;
INSERT INTO uniq_many SELECT g, 'new' || g FROM generate_series(1, 3000) g;
COMMIT;
SELECT count(*), count(DISTINCT id), count(DISTINCT v) FROM uniq_many;
SET enable_seqscan = off;
SELECT count(*), min(v), max(v) FROM uniq_many WHERE v < 'o';
SELECT * FROM uniq_many WHERE id IN (1, 550, 1400, 3000, 33000) ORDER BY id;
RESET enable_seqscan;
SELECT * FROM mot_verify('uniq_many') WHERE problems <> 0;
DROP FOREIGN TABLE uniq_many;
