-- PREPARE TRANSACTION is refused for changes, and harmless after reads.

CREATE FOREIGN TABLE tp (id int PRIMARY KEY, v int) SERVER mot_server;
INSERT INTO tp VALUES (1, 1);

BEGIN;
UPDATE tp SET v = 2;
PREPARE TRANSACTION 'mot-changed';
SELECT v FROM tp;

BEGIN;
SELECT v FROM tp FOR UPDATE;
PREPARE TRANSACTION 'mot-locked';

BEGIN;
TRUNCATE tp;
PREPARE TRANSACTION 'mot-truncated';
SELECT v FROM tp;

-- SERIALIZABLE: the order of what was read has to be known at the end
CREATE TABLE tp_heap (id int PRIMARY KEY);
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT v FROM tp;
INSERT INTO tp_heap VALUES (1);
PREPARE TRANSACTION 'mot-read';
SELECT count(*) FROM tp_heap;

DROP TABLE tp_heap;
DROP FOREIGN TABLE tp;
