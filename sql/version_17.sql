-- What PostgreSQL 17 brought: names of what an extension's processes wait for
SELECT current_setting('server_version_num')::int < 170000 AS before_17 \gset
\if :before_17
\quit
\endif
SELECT name FROM pg_wait_events WHERE type = 'Extension' AND name LIKE 'mot%' ORDER BY name COLLATE "C";
-- the workers, when they have nothing to do
DO $$
BEGIN
    FOR i IN 1..18000 LOOP
        PERFORM pg_stat_clear_snapshot();
        IF (SELECT count(DISTINCT wait_event) FROM pg_stat_activity
            WHERE wait_event_type = 'Extension' AND wait_event IN ('mot_maintenance', 'mot_checkpoint_worker')) = 2 THEN
            RAISE NOTICE 'both wait';
            EXIT;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;

-- another expression of a stored column: rows that are there get its values, and indexes are made again
CREATE TABLE se_heap (id int PRIMARY KEY, a int, s int GENERATED ALWAYS AS (a + 1) STORED CHECK (s < 100) NOT NULL);
CREATE FOREIGN TABLE se_foreign (id int PRIMARY KEY, a int, s int GENERATED ALWAYS AS (a + 1) STORED CHECK (s < 100) NOT NULL) SERVER mot_server;
CREATE TABLE se_mot (id int PRIMARY KEY, a int, s int GENERATED ALWAYS AS (a + 1) STORED CHECK (s < 100) NOT NULL) USING mot;
CREATE INDEX ON se_heap (s, id);
CREATE INDEX ON se_foreign (s, id);
CREATE INDEX ON se_mot (s, id);
DO $$
DECLARE
    kind text;
    stmt text;
    result text[];
    heap text[];
BEGIN
    FOREACH kind IN ARRAY '{se_heap,se_foreign,se_mot}'::text[] LOOP
        EXECUTE format('INSERT INTO %I (id, a) SELECT i, i FROM generate_series(1, 9) i', kind);
        result := '{}';
        FOREACH stmt IN ARRAY ARRAY['a * 10', 'a * 20', 'nullif(a, 5)', 'id - a', 'a * 3'] LOOP
            BEGIN
                EXECUTE format('ALTER TABLE %I ALTER s SET EXPRESSION AS (%s)', kind, stmt);
            EXCEPTION WHEN integrity_constraint_violation THEN
                result := result || SQLSTATE::text;
            END;
            EXECUTE format('SELECT $1 || array_agg(s::text ORDER BY id) FROM %I', kind) INTO result USING result;
        END LOOP;
        EXECUTE format('SELECT $1 || id::text FROM %I WHERE s = 27', kind) INTO result USING result;
        IF kind = 'se_heap' THEN
            heap := result;
            RAISE NOTICE '%', result;
        ELSIF result IS DISTINCT FROM heap THEN
            RAISE NOTICE '% %', kind, result;
        END IF;
    END LOOP;
END $$;
SELECT mot_verify('se_foreign'), mot_verify('se_mot');
DROP TABLE se_heap, se_mot;
DROP FOREIGN TABLE se_foreign;
-- and of a partition of either kind
CREATE TABLE se (id int, s int GENERATED ALWAYS AS (id + 1) STORED) PARTITION BY RANGE (id);
CREATE TABLE se_1 PARTITION OF se FOR VALUES FROM (0) TO (10) USING mot;
CREATE FOREIGN TABLE se_2 PARTITION OF se FOR VALUES FROM (10) TO (20) SERVER mot_server;
INSERT INTO se VALUES (5), (15);
ALTER TABLE se ALTER s SET EXPRESSION AS (id * 10);
SELECT * FROM se ORDER BY id;
DROP TABLE se;

-- NOT NULL of a domain as a constraint: rows are looked at
CREATE DOMAIN version_domain AS int;
CREATE DOMAIN version_inner AS version_domain;
CREATE FOREIGN TABLE version_rows (id int, v version_domain, w version_inner) SERVER mot_server;
INSERT INTO version_rows VALUES (1, 1, NULL);
ALTER DOMAIN version_domain ADD NOT NULL;
ALTER DOMAIN version_inner ADD CONSTRAINT filled NOT NULL;
UPDATE version_rows SET v = NULL, w = 2;
ALTER DOMAIN version_domain ADD CONSTRAINT filled NOT NULL;
UPDATE version_rows SET v = 1;
ALTER DOMAIN version_domain ADD CONSTRAINT filled NOT NULL;
-- (there already)
ALTER DOMAIN version_domain ADD NOT NULL;
ALTER DOMAIN version_domain SET NOT NULL;
INSERT INTO version_rows VALUES (2, NULL, 2);
TABLE version_rows;
DROP FOREIGN TABLE version_rows;
DROP DOMAIN version_inner, version_domain;
