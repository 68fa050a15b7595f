-- What the views show.

CREATE FUNCTION mon_wait(condition text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    ok boolean;
BEGIN
    FOR i IN 1..1800 LOOP
        EXECUTE 'SELECT ' || condition INTO ok;
        EXIT WHEN ok;
        PERFORM pg_sleep(0.1);
    END LOOP;
    RETURN ok;
END
$$;
CREATE FOREIGN TABLE mon (id int PRIMARY KEY, t text) SERVER mot_server;
CREATE INDEX mon_t ON mon (t);

SELECT schemaname, relname, relid = 'mon'::regclass AS relid, rows, row_bytes, used_bytes, inserts, updates, deletes
FROM mot_stat_tables WHERE relname = 'mon';

INSERT INTO mon SELECT i, 'row ' || i FROM generate_series(1, 10000) i;
UPDATE mon SET t = 'changed' WHERE id <= 100;
DELETE FROM mon WHERE id > 9990;
BEGIN;
INSERT INTO mon VALUES (0, 'never');
UPDATE mon SET t = 'never';
ROLLBACK;
-- (what is being given back is in none of the sums)
SELECT mon_wait('(SELECT retired_objects = 0 FROM mot_stat_memory)') AS reclaimed;
SELECT rows, inserts, updates, deletes, row_bytes > 500000 AS rows_use, used_bytes BETWEEN 1 AND row_bytes AS used,
       index_bytes > 200000 AS indexes_use, total_bytes = row_bytes + index_bytes AS total
FROM mot_stat_tables WHERE relname = 'mon';
SELECT schemaname, relname, indexrelname, relid = 'mon'::regclass AS relid, indexrelid = indexrelname::regclass AS indexrelid,
       is_unique, bytes > 100000 AS bytes, used_bytes BETWEEN 1 AND bytes AS used, stale_entries >= 0 AS stale
FROM mot_stat_indexes WHERE relname = 'mon' ORDER BY indexrelname;
SELECT sum(bytes) = (SELECT index_bytes FROM mot_stat_tables WHERE relname = 'mon') AS sum_of_indexes
FROM mot_stat_indexes WHERE relname = 'mon';

SELECT max_bytes = pg_size_bytes(current_setting('mot.max_memory')) AS max,
       used_bytes BETWEEN 1000000 AND max_bytes AS used,
       rows >= 9990 AS rows, row_bytes > 500000 AS row_bytes, index_bytes > 200000 AS index_bytes,
       row_bytes + index_bytes + engine_bytes <= used_bytes AS parts,
       system_bytes > 0 AS system,
       cardinality(node_bytes) >= 1 AS nodes, clock >= horizon AS horizon, retired_objects >= 0 AS retired
FROM mot_stat_memory;
SELECT count(*) = (SELECT cardinality(node_bytes) FROM mot_stat_memory) AS nodes,
       sum(chunk_bytes) >= sum(page_bytes) AS chunks
FROM mot_stat_nodes;

-- whose it is
SELECT d.tables = count(*) AS tables, d.rows = sum(t.rows) AS rows, d.row_bytes = sum(t.row_bytes) AS row_bytes,
       d.index_bytes = sum(t.index_bytes) AS index_bytes, d.total_bytes = sum(t.row_bytes + t.index_bytes) AS total,
       d.datid = (SELECT oid FROM pg_database WHERE datname = current_database()) AS datid
FROM mot_stat_memory_databases d, mot_stat_get_tables() t WHERE d.datname = current_database()
GROUP BY d.tables, d.rows, d.row_bytes, d.index_bytes, d.total_bytes, d.datid;
CREATE ROLE regress_monitor;
CREATE TABLE mon_owned (id int PRIMARY KEY) USING mot;
INSERT INTO mon_owned SELECT generate_series(1, 1000);
ALTER TABLE mon_owned OWNER TO regress_monitor;
SELECT r.roleid = 'regress_monitor'::regrole AS roleid, r.tables, r.rows, r.row_bytes = t.row_bytes AS row_bytes,
       r.index_bytes = t.index_bytes AS index_bytes, r.total_bytes = t.total_bytes AS total
FROM mot_stat_memory_roles r, mot_stat_tables t WHERE r.rolname = 'regress_monitor' AND t.relname = 'mon_owned';
SELECT sum(r.total_bytes) = (SELECT sum(total_bytes) FROM mot_stat_tables) AS all_roles FROM mot_stat_memory_roles r;
DROP TABLE mon_owned;
DROP ROLE regress_monitor;

-- transactions are counted
CREATE TEMP TABLE mon_before AS SELECT * FROM mot_stat_transactions;
DO $$ BEGIN FOR i IN 1..10 LOOP UPDATE mon SET t = 'again' WHERE id = i; COMMIT; END LOOP; END $$;
BEGIN;
DELETE FROM mon WHERE id = 1;
ROLLBACK;
SELECT t.commits >= b.commits + 10 AS commits, t.aborts > b.aborts AS aborts, t.waits >= b.waits AS waits
FROM mot_stat_transactions t, mon_before b;

-- what is superseded is reclaimed, memory comes back
UPDATE mon SET t = 'all';
SELECT mon_wait('(SELECT sum(stale_entries) = 0 FROM mot_stat_indexes WHERE relname = ''mon'')') AS stale_gone;
TRUNCATE mon;
SELECT rows FROM mot_stat_tables WHERE relname = 'mon';
SELECT mon_wait('(SELECT row_bytes < 500000 AND total_bytes < 1000000 FROM mot_stat_tables WHERE relname = ''mon'')') AS truncated;

-- visible to all; only this database's tables
CREATE ROLE mon_user;
SET ROLE mon_user;
SELECT count(*) FROM mot_stat_tables WHERE relname = 'mon';
SELECT count(*) FROM mot_stat_indexes WHERE relname = 'mon';
SELECT count(*) FROM mot_stat_memory;
SELECT count(*) > 0 AS nodes FROM mot_stat_nodes;
SELECT count(*) FROM mot_stat_transactions;
SELECT hint <= processors AS hint, active > 0 AS active, most >= 0 AS most, running, parked, asked >= granted AS granted FROM mot_stat_workers;
-- but whose snapshots are held only to whom it may concern
RESET ROLE;
GRANT SELECT ON mon TO mon_user;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM mon;
SET ROLE mon_user;
SELECT count(*) > 0 AS snapshots, count(pid) AS of_whom FROM mot_stat_snapshots;
RESET ROLE;
GRANT pg_monitor TO mon_user;
SET ROLE mon_user;
SELECT count(*) > 0 AS ours FROM mot_stat_snapshots WHERE pid = pg_backend_pid();
COMMIT;
RESET ROLE;
DROP OWNED BY mon_user;
DROP ROLE mon_user;

DROP FOREIGN TABLE mon;
SELECT count(*) FROM mot_stat_tables WHERE relname = 'mon';
DROP FUNCTION mon_wait;

-- settings
SHOW mot.default_engine;
SET mot.default_engine = 'row';
SET mot.write_conflicts = 'hope';
SET mot.max_memory = '1GB';
SET mot.no_such_setting = 1;
SELECT name, setting, unit, context, vartype, min_val FROM pg_settings
WHERE name IN ('mot.default_engine', 'mot.huge_pages', 'mot.write_conflicts') ORDER BY name;

-- statements that fail each time are among those that are shown
CREATE FOREIGN TABLE mon_fails (id integer PRIMARY KEY) SERVER mot_server;
INSERT INTO mon_fails VALUES (1);
PREPARE mon_fails (integer) AS SELECT 1 / (id - $1) FROM mon_fails;
SET plan_cache_mode = force_generic_plan;
DO $$
BEGIN
	FOR i IN 1 .. 8 LOOP
		BEGIN
			EXECUTE 'EXECUTE mon_fails (1)';
		EXCEPTION WHEN division_by_zero THEN
		END;
	END LOOP;
END
$$;
SELECT tier, shape, executions, why_not FROM mot_stat_jit WHERE query LIKE 'PREPARE mon_fails %';
EXECUTE mon_fails (2);
SELECT tier > 0 AS without, executions FROM mot_stat_jit WHERE query LIKE 'PREPARE mon_fails %';
RESET plan_cache_mode;
DEALLOCATE mon_fails;
SELECT relname, rows, loaded FROM mot_stat_tables;
DROP FOREIGN TABLE mon_fails;
