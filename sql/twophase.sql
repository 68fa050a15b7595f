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

DROP FOREIGN TABLE tp;
