-- PREPARE TRANSACTION of changes and row locks of memory-optimized tables, by both doors.

CREATE FOREIGN TABLE tp (id int PRIMARY KEY, v int) SERVER mot_server;
CREATE TABLE tp_table (id int PRIMARY KEY, v int, t text) USING mot;
CREATE INDEX ON tp_table (t);
CREATE TABLE tp_heap (id int PRIMARY KEY, v int);
INSERT INTO tp VALUES (1, 1), (2, 2);
INSERT INTO tp_table VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, repeat('a key that is longer than eight bytes ', 5));
INSERT INTO tp_heap VALUES (1, 1);

-- changes of all kinds, with a savepoint and a heap table
BEGIN;
UPDATE tp SET v = 10 WHERE id = 1;
INSERT INTO tp VALUES (3, 3);
UPDATE tp_table SET t = upper(t), v = v + 1;
DELETE FROM tp_table WHERE id = 2;
SAVEPOINT s;
UPDATE tp SET v = 0;
INSERT INTO tp_table VALUES (5, 5, 'not');
ROLLBACK TO s;
INSERT INTO tp_table VALUES (4, 4, repeat('another long key ', 10));
UPDATE tp_heap SET v = 10;
PREPARE TRANSACTION 'mot-changed';

-- nothing of it is seen, the rows are locked, and the server shows it
SELECT * FROM tp ORDER BY id;
SELECT id, v, left(t, 20) FROM tp_table ORDER BY id;
SELECT gid, owner = current_user AS mine, database = current_database() AS here FROM pg_prepared_xacts;
SELECT relation::regclass, mode, granted, pid IS NULL AS prepared FROM pg_locks
	WHERE relation IN ('tp'::regclass, 'tp_table'::regclass) AND pid IS NULL ORDER BY 1, 2;
SELECT v FROM tp WHERE id = 1 FOR UPDATE NOWAIT;
SELECT id FROM tp ORDER BY id FOR UPDATE SKIP LOCKED;
-- (from 19 on with a context that has an xid)
\set SHOW_CONTEXT never
SET lock_timeout = '50ms';
UPDATE tp_table SET v = 0 WHERE id = 1;
INSERT INTO tp VALUES (3, 33);
TRUNCATE tp;
RESET lock_timeout;
\set SHOW_CONTEXT errors
SET mot.write_conflicts = abort;
UPDATE tp SET v = 0 WHERE id = 1;
RESET mot.write_conflicts;

COMMIT PREPARED 'mot-changed';
SELECT * FROM tp ORDER BY id;
SELECT id, v, left(t, 20) FROM tp_table ORDER BY id;
SELECT v FROM tp_heap;
SELECT id FROM tp_table WHERE t = 'ONE';
SELECT count(*) FROM pg_prepared_xacts;
SELECT object, entries, problems FROM mot_verify('tp_table');

-- taken back
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE tp SET v = v + 100;
DELETE FROM tp_table;
PREPARE TRANSACTION 'mot-undone';
SELECT sum(v) FROM tp;
ROLLBACK PREPARED 'mot-undone';
SELECT sum(v) FROM tp;
SELECT count(*) FROM tp_table;
UPDATE tp SET v = v + 1;
SELECT object, entries, problems FROM mot_verify('tp_table');

-- row locks alone, and two that share one
BEGIN;
SELECT v FROM tp WHERE id = 1 FOR SHARE;
PREPARE TRANSACTION 'mot-shares';
BEGIN;
SELECT v FROM tp WHERE id = 1 FOR KEY SHARE;
SELECT id FROM tp_table WHERE id = 1 FOR UPDATE;
PREPARE TRANSACTION 'mot-locks';
SELECT v FROM tp WHERE id = 1 FOR SHARE NOWAIT;
SELECT v FROM tp WHERE id = 1 FOR NO KEY UPDATE NOWAIT;
SELECT id FROM tp_table WHERE id = 1 FOR KEY SHARE NOWAIT;
COMMIT PREPARED 'mot-shares';
SELECT v FROM tp WHERE id = 1 FOR NO KEY UPDATE NOWAIT;
SELECT v FROM tp WHERE id = 1 FOR UPDATE NOWAIT;
ROLLBACK PREPARED 'mot-locks';
SELECT v FROM tp WHERE id = 1 FOR UPDATE NOWAIT;
SELECT id FROM tp_table WHERE id = 1 FOR UPDATE NOWAIT;

-- of a row without a key only its content says which it is
CREATE TABLE tp_keyless (v int) USING mot;
INSERT INTO tp_keyless VALUES (1);
BEGIN;
SELECT v FROM tp_keyless FOR NO KEY UPDATE;
PREPARE TRANSACTION 'mot-keyless';
SELECT v FROM tp_keyless FOR SHARE NOWAIT;
ROLLBACK PREPARED 'mot-keyless';
SELECT v FROM tp_keyless FOR SHARE NOWAIT;
DROP TABLE tp_keyless;

-- what has only been read holds nothing
BEGIN;
SELECT v FROM tp WHERE id = 1;
PREPARE TRANSACTION 'mot-read';
UPDATE tp SET v = v;
COMMIT PREPARED 'mot-read';

-- deferred constraints are checked by PREPARE TRANSACTION
CREATE TABLE tp_deferred (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, tp int REFERENCES tp_table DEFERRABLE INITIALLY DEFERRED) USING mot;
INSERT INTO tp_deferred VALUES (1, 1);
BEGIN;
INSERT INTO tp_deferred VALUES (1, 1);
PREPARE TRANSACTION 'mot-deferred';
BEGIN;
INSERT INTO tp_deferred VALUES (2, 99);
PREPARE TRANSACTION 'mot-deferred';
BEGIN;
INSERT INTO tp_deferred VALUES (1, 1);
DELETE FROM tp_deferred;
INSERT INTO tp_deferred VALUES (2, 1);
PREPARE TRANSACTION 'mot-deferred';
COMMIT PREPARED 'mot-deferred';
SELECT * FROM tp_deferred;
DROP TABLE tp_deferred;

-- whole tables
BEGIN;
TRUNCATE tp;
PREPARE TRANSACTION 'mot-truncated';
ROLLBACK PREPARED 'mot-truncated';
BEGIN;
CREATE TABLE tp_new (id int) USING mot;
PREPARE TRANSACTION 'mot-created';
ROLLBACK PREPARED 'mot-created';
-- refused before anything is done: definitions
BEGIN;
ALTER TABLE tp_table ADD COLUMN n int;
PREPARE TRANSACTION 'mot-altered';
-- at SERIALIZABLE, also of one that has changed heap tables only
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE tp SET v = 0;
PREPARE TRANSACTION 'mot-serializable';
ROLLBACK PREPARED 'mot-serializable';
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT id FROM tp WHERE id = 1;
INSERT INTO tp_heap VALUES (2);
PREPARE TRANSACTION 'mot-read';
ROLLBACK PREPARED 'mot-read';
SELECT count(*) FROM tp_heap;
SELECT count(*) FROM tp;
SELECT count(*) FROM pg_prepared_xacts;
-- a definition that was taken back is none
BEGIN;
SAVEPOINT s;
TRUNCATE tp;
ROLLBACK TO s;
UPDATE tp SET v = 7 WHERE id = 1;
PREPARE TRANSACTION 'mot-undone';
COMMIT PREPARED 'mot-undone';
SELECT v FROM tp WHERE id = 1;

-- the identifier is taken, or is none
BEGIN;
UPDATE tp SET v = 8 WHERE id = 1;
PREPARE TRANSACTION 'mot-twice';
BEGIN;
UPDATE tp SET v = 9 WHERE id = 2;
PREPARE TRANSACTION 'mot-twice';
SELECT v FROM tp WHERE id = 2 FOR UPDATE NOWAIT;
BEGIN;
COMMIT PREPARED 'mot-twice';
ROLLBACK;
COMMIT PREPARED 'mot-twice';
COMMIT PREPARED 'mot-twice';
SELECT v FROM tp WHERE id = 1;

-- as many as the server has, and no more
\set ECHO none
SELECT format('BEGIN; INSERT INTO tp VALUES (%s, 0); PREPARE TRANSACTION ''mot-many-%s''', 1000 + i, i)
	FROM generate_series(1, current_setting('max_prepared_transactions')::int) i \gexec
\set ECHO all
BEGIN;
INSERT INTO tp VALUES (999, 0);
PREPARE TRANSACTION 'mot-one-more';
SELECT count(*) FROM tp WHERE id > 900;
\set ECHO none
SELECT format('%s PREPARED ''mot-many-%s''', CASE i WHEN 1 THEN 'COMMIT' ELSE 'ROLLBACK' END, i)
	FROM generate_series(1, current_setting('max_prepared_transactions')::int) i \gexec
\set ECHO all
SELECT id FROM tp WHERE id > 900;

DROP TABLE tp_heap, tp_table;
DROP FOREIGN TABLE tp;
