-- Transactions, savepoints, what a statement sees of its own transaction.

CREATE FOREIGN TABLE xa (id int PRIMARY KEY, v int, t text) SERVER mot_server;
CREATE INDEX xa_v ON xa (v);

-- commit and rollback
BEGIN;
INSERT INTO xa SELECT i, i, 'row ' || i FROM generate_series(1, 10) i;
SELECT count(*) FROM xa;
ROLLBACK;
SELECT count(*) FROM xa;
BEGIN;
INSERT INTO xa SELECT i, i, 'row ' || i FROM generate_series(1, 10) i;
UPDATE xa SET v = v * 10 WHERE id <= 5;
DELETE FROM xa WHERE id = 6;
COMMIT;
SELECT * FROM xa ORDER BY id;

-- an error rolls the whole transaction back
BEGIN;
UPDATE xa SET v = 0;
DELETE FROM xa WHERE id = 7;
SELECT 1 / 0;
SELECT count(*) FROM xa;
COMMIT;
SELECT sum(v), count(*) FROM xa;

-- savepoints, nested
BEGIN;
UPDATE xa SET t = 'outer' WHERE id = 1;
SAVEPOINT a;
UPDATE xa SET t = 'a' WHERE id = 1;
INSERT INTO xa VALUES (100, 100, 'a');
SAVEPOINT b;
UPDATE xa SET t = 'b', v = 1 WHERE id IN (1, 100);
DELETE FROM xa WHERE id = 2;
SELECT * FROM xa WHERE id IN (1, 2, 100) ORDER BY id;
ROLLBACK TO b;
SELECT * FROM xa WHERE id IN (1, 2, 100) ORDER BY id;
RELEASE a;
SELECT * FROM xa WHERE id IN (1, 2, 100) ORDER BY id;
SAVEPOINT c;
DELETE FROM xa WHERE v = 100;
SELECT count(*) FROM xa WHERE v = 100;
ROLLBACK TO c;
SELECT count(*) FROM xa WHERE v = 100;
COMMIT;
SELECT * FROM xa WHERE id IN (1, 2, 100) ORDER BY id;

-- the engine's transaction begins inside a savepoint that is rolled back
BEGIN;
SAVEPOINT a;
SAVEPOINT b;
INSERT INTO xa VALUES (200, 200, 'b');
RELEASE b;
ROLLBACK TO a;
SELECT count(*) FROM xa WHERE id = 200;
INSERT INTO xa VALUES (201, 201, 'a');
COMMIT;
SELECT id FROM xa WHERE id >= 200 ORDER BY id;

-- exception blocks
DO $$
BEGIN
    FOR i IN 1..20 LOOP
        BEGIN
            UPDATE xa SET v = v + 1000 WHERE id = i;
            INSERT INTO xa VALUES (i, i, 'again');
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END LOOP;
END
$$;
SELECT count(*), sum(v) FILTER (WHERE v > 1000) FROM xa;
SELECT id, v FROM xa WHERE id BETWEEN 5 AND 12 ORDER BY id;
DELETE FROM xa WHERE id > 10 OR t = 'again';

-- a statement does not see its own changes
UPDATE xa SET v = v + 1;
UPDATE xa SET v = v + 100 WHERE v < 200;
INSERT INTO xa SELECT id + 50, v, t FROM xa;
SELECT count(*) FROM xa;
UPDATE xa SET id = id + 1000;
SELECT min(id), max(id), count(*) FROM xa;
DELETE FROM xa WHERE id > 1050;
WITH ins AS (INSERT INTO xa VALUES (1, 1, 'cte') RETURNING id), upd AS (UPDATE xa SET t = 'upd' WHERE id = 1 RETURNING id)
SELECT (SELECT count(*) FROM ins) AS ins, (SELECT count(*) FROM upd) AS upd, (SELECT count(*) FROM xa WHERE id = 1) AS seen;
SELECT * FROM xa WHERE id = 1;

-- a row met twice by one statement is changed once
UPDATE xa SET v = xa.v + x.n FROM (VALUES (1), (1), (1)) x(n) WHERE xa.id = 1;
SELECT v FROM xa WHERE id = 1;
DELETE FROM xa USING (VALUES (1), (1)) x(n) WHERE xa.id = 1;
SELECT count(*) FROM xa WHERE id = 1;

-- a function sees what was changed before it was called (VOLATILE), or what
-- its statement sees (STABLE)
CREATE FUNCTION xa_count_volatile() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN RETURN (SELECT count(*) FROM xa WHERE t = 'counted'); END $$;
CREATE FUNCTION xa_count_stable() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN RETURN (SELECT count(*) FROM xa WHERE t = 'counted'); END $$;
CREATE FUNCTION xa_insert(i int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN INSERT INTO xa VALUES (i, i, 'counted'); RETURN i; END $$;
SELECT xa_insert(i) AS i, xa_count_volatile() AS volatile, xa_count_stable() AS stable
FROM generate_series(501, 503) i;
DELETE FROM xa WHERE t = 'counted';

-- cursors keep what they saw
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM xa WHERE id BETWEEN 1001 AND 1005 ORDER BY id;
FETCH 2 FROM c;
DELETE FROM xa WHERE id BETWEEN 1001 AND 1005;
INSERT INTO xa VALUES (1004, 0, 'new');
FETCH 2 FROM c;
SAVEPOINT s;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH ALL FROM c;
CLOSE c;
ROLLBACK;
-- one opened inside a savepoint goes with it; one that fails inside is dead, and the rest works on
BEGIN;
DECLARE outside CURSOR FOR SELECT 1 / (v - 111) FROM xa WHERE id = 1001;
SELECT v FROM xa WHERE id = 1001;
SAVEPOINT s;
DECLARE inside CURSOR FOR SELECT id FROM xa WHERE id = 1002;
FETCH 1 FROM inside;
FETCH 1 FROM outside;
ROLLBACK TO s;
FETCH 1 FROM inside;
ROLLBACK TO s;
FETCH 1 FROM outside;
ROLLBACK TO s;
CLOSE outside;
UPDATE xa SET v = 77 WHERE id = 1001;
SELECT v FROM xa WHERE id = 1001;
COMMIT;
SELECT v FROM xa WHERE id = 1001;
-- and one that outlives the transaction
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM xa WHERE id BETWEEN 1001 AND 1003 ORDER BY id;
FETCH 1 FROM held;
COMMIT;
DELETE FROM xa WHERE id = 1002;
FETCH ALL FROM held;
CLOSE held;

-- procedures that commit on their way
CREATE PROCEDURE xa_steps() LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT id FROM xa WHERE id BETWEEN 1003 AND 1007 ORDER BY id LOOP
        UPDATE xa SET t = 'step' WHERE id = r.id;
        IF r.id % 2 = 0 THEN
            ROLLBACK;
        ELSE
            COMMIT;
        END IF;
    END LOOP;
END $$;
CALL xa_steps();
SELECT id, t FROM xa WHERE id BETWEEN 1003 AND 1008 ORDER BY id;

-- isolation levels, alone
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE xa SET v = 1 WHERE id = 1003;
SELECT v FROM xa WHERE id = 1003;
UPDATE xa SET v = v + 1 WHERE id = 1003;
SAVEPOINT s;
UPDATE xa SET v = v + 1 WHERE id = 1003;
DELETE FROM xa WHERE id = 1004;
ROLLBACK TO s;
INSERT INTO xa VALUES (2000, 2, 'rr');
UPDATE xa SET id = 2001 WHERE id = 2000;
SELECT id, v FROM xa WHERE id IN (1003, 1004, 2000, 2001) ORDER BY id;
COMMIT;
SELECT id, v FROM xa WHERE id IN (1003, 1004, 2000, 2001) ORDER BY id;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT v FROM xa WHERE id = 1003;
UPDATE xa SET v = v + 1 WHERE id = 1003;
INSERT INTO xa SELECT 3000 + id, v FROM xa WHERE id IN (1003, 1004);
SELECT id FROM xa WHERE id > 3000 ORDER BY id;
COMMIT;
SELECT id, v FROM xa WHERE id = 1003 OR id > 3000 ORDER BY id;
-- what a transaction has written itself, and perhaps taken back, is nobody else's change
BEGIN ISOLATION LEVEL SERIALIZABLE;
SAVEPOINT s;
UPDATE xa SET v = v + 1 WHERE id = 1003;
DELETE FROM xa WHERE id = 1004;
SELECT count(*) FROM xa WHERE id IN (1003, 1004);
ROLLBACK TO s;
SELECT count(*) FROM xa WHERE id IN (1003, 1004);
UPDATE xa SET v = v WHERE id = 4003;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE xa SET v = v WHERE id IN (1003, 4003);
SELECT count(*) FROM xa WHERE id IN (1003, 4003);
INSERT INTO xa VALUES (2001);
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
SELECT count(*) FROM xa WHERE id > 3000;
UPDATE xa SET v = 0;
ROLLBACK;
BEGIN TRANSACTION READ ONLY;
INSERT INTO xa VALUES (0);
ROLLBACK;

-- heap and memory-optimized tables in one transaction
CREATE TEMP TABLE xa_heap (id int);
BEGIN;
INSERT INTO xa_heap VALUES (1);
INSERT INTO xa VALUES (4000, 1, 'both');
SAVEPOINT s;
INSERT INTO xa_heap VALUES (2);
INSERT INTO xa VALUES (4001, 2, 'both');
ROLLBACK TO s;
COMMIT;
SELECT h.id, x.id FROM xa_heap h JOIN xa x ON x.v = h.id AND x.t = 'both' ORDER BY 1;

DROP FUNCTION xa_count_volatile, xa_count_stable, xa_insert;
DROP PROCEDURE xa_steps;
DROP FOREIGN TABLE xa;
