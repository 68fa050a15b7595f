-- What is kept of prepared statements, and what is remembered of others, is told of changes: both are, in whichever
-- order a session has begun with them.
CREATE ROLE watched_group;
CREATE ROLE watched_reader IN ROLE watched_group;
CREATE DOMAIN watched_small AS int CHECK (VALUE < 10);
CREATE TABLE watched (id int PRIMARY KEY, v watched_small) USING mot;
INSERT INTO watched SELECT g, g FROM generate_series(1, 9) g;

-- remembered ones first
\c -
SELECT v FROM watched WHERE id = 1;
SELECT v FROM watched WHERE id = 2;
SELECT v FROM watched WHERE id = 3;
SELECT v FROM watched WHERE id = 4;
DO $$ BEGIN FOR i IN 1 .. 10 LOOP UPDATE watched SET v = i % 3 WHERE id = 1; END LOOP; END $$;
ALTER TABLE watched DROP CONSTRAINT watched_pkey;
SELECT v FROM watched WHERE id = 4;
INSERT INTO watched VALUES (4, 1);
SELECT v FROM watched WHERE id = 4 ORDER BY v;
DELETE FROM watched WHERE id = 4;
ALTER TABLE watched ADD PRIMARY KEY (id);
SELECT v FROM watched WHERE id = 5;

-- prepared ones first: a role's privileges, and what a domain asks
GRANT SELECT, UPDATE ON watched TO watched_group;
CREATE FUNCTION watched_do(command text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN EXECUTE command; END $$;
\c -
SET mot.remember_plans = off;
SET plan_cache_mode = force_generic_plan;
PREPARE watched_select (int) AS SELECT v FROM watched WHERE id = $1;
PREPARE watched_update (int) AS UPDATE watched SET v = $1 WHERE id = 1 RETURNING v;
SET ROLE watched_reader;
SELECT format('EXECUTE watched_%s (%s)', what, i % 3) FROM generate_series(1, 8) i, (VALUES ('select'), ('update')) w (what) \gexec
RESET plan_cache_mode;
RESET mot.remember_plans;
SELECT v FROM watched WHERE id = 1;
SELECT v FROM watched WHERE id = 2;
SELECT v FROM watched WHERE id = 3;
SELECT watched_do('ALTER DOMAIN watched_small ADD CONSTRAINT not_three CHECK (VALUE <> 3) NOT VALID');
EXECUTE watched_update (3);
SELECT watched_do('REVOKE watched_group FROM watched_reader');
EXECUTE watched_select (1);
EXECUTE watched_update (2);
RESET ROLE;

DROP TABLE watched;
DROP FUNCTION watched_do(text);
DROP DOMAIN watched_small;
DROP ROLE watched_reader, watched_group;
