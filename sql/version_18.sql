-- What PostgreSQL 18 brought: RETURNING OLD and NEW, of foreign and ordinary tables as of a heap table
SELECT current_setting('server_version_num')::int < 180000 AS before_18 \gset
\if :before_18
\quit
\endif
CREATE TABLE ro_heap (id int PRIMARY KEY, a text, n int);
CREATE FOREIGN TABLE ro_foreign (id int PRIMARY KEY, a text, n int) SERVER mot_server;
CREATE TABLE ro_mot (id int PRIMARY KEY, a text, n int) USING mot;

-- the statement on each; those whose answer is not heap's
CREATE FUNCTION ro(stmt text) RETURNS TABLE (kind text, rows text[]) AS $$
DECLARE
    heap text[];
BEGIN
    FOREACH kind IN ARRAY '{heap,foreign,mot}'::text[] LOOP
        EXECUTE format('WITH c AS (' || stmt || ') SELECT array_agg(c::text) FROM c', 'ro_' || kind) INTO rows;
        IF kind = 'heap' THEN
            heap := rows;
            RETURN NEXT;
        ELSIF rows IS DISTINCT FROM heap THEN
            RETURN NEXT;
        END IF;
    END LOOP;
END $$ LANGUAGE plpgsql;

SELECT * FROM ro('INSERT INTO %I AS t VALUES (1, ''one'', 1), (2, repeat(''two'', 2), 2) RETURNING old.a, new.a, t.n, old IS NULL, new');
-- updated and inserted by one statement, in either order
SELECT * FROM ro('INSERT INTO %I AS t VALUES (1, ''x'', 10), (3, ''three'', 3), (2, ''y'', 20), (4, ''four'', 4) ON CONFLICT (id) DO UPDATE SET a = excluded.a, n = t.n + excluded.n RETURNING id, old.a, new.a, old.n, n, old IS NULL AS inserted, old, new');
-- versions of the same transaction
DO $$
DECLARE
    kind text;
    r record;
BEGIN
    FOREACH kind IN ARRAY '{ro_heap,ro_foreign,ro_mot}'::text[] LOOP
        FOR i IN 1..3 LOOP
            EXECUTE format('INSERT INTO %I AS t VALUES (1, repeat(''long'', 20 + %s), 0) ON CONFLICT (id) DO UPDATE SET a = excluded.a, n = t.n + 1 RETURNING length(old.a) AS l, old.n AS o, new.n AS n', kind, i) INTO r;
            RAISE NOTICE '% %', kind, r;
        END LOOP;
    END LOOP;
END $$;
SELECT * FROM ro('INSERT INTO %I AS t VALUES (1, ''x'', 10) ON CONFLICT (id) DO UPDATE SET n = 0 WHERE t.n < 0 RETURNING old, new');
SELECT * FROM ro('INSERT INTO %I AS t VALUES (1, ''x'', 10) ON CONFLICT DO NOTHING RETURNING old, new');
SELECT * FROM ro('UPDATE %I SET n = n * 2 WHERE id < 3 RETURNING id, old.n, new.n, old, new');
SELECT * FROM ro('DELETE FROM %I WHERE id = 2 RETURNING id, old.a, new.a, old, new');

-- and by a prepared statement, which may go without the executor
PREPARE ro_foreign AS INSERT INTO ro_foreign AS t VALUES ($1, 'p', $1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING old.n, new.n;
PREPARE ro_mot AS INSERT INTO ro_mot AS t VALUES ($1, 'p', $1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING old.n, new.n;
EXECUTE ro_foreign (5);
EXECUTE ro_foreign (5);
EXECUTE ro_mot (5);
EXECUTE ro_mot (5);
DROP TABLE ro_heap, ro_foreign, ro_mot;
DROP FUNCTION ro;

-- EXPLAIN counts how often an index is gone to
CREATE TABLE ro_index (id int PRIMARY KEY, n int) USING mot;
INSERT INTO ro_index SELECT i, i FROM generate_series(1, 1000) i;
ANALYZE ro_index;
EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) SELECT n FROM ro_index WHERE id = 5;
EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) SELECT n FROM ro_index WHERE id IN (5, 7, 9);
SET enable_indexscan = off;
EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) SELECT n FROM ro_index WHERE id IN (5, 7, 9);
RESET enable_indexscan;
DROP TABLE ro_index;

-- ... and NOT NULL as a constraint with a name
CREATE TABLE ro_null (id int PRIMARY KEY, u text CONSTRAINT u_given NOT NULL, UNIQUE (u)) USING mot;
CREATE FOREIGN TABLE ro_foreign_null (id int PRIMARY KEY, u text CONSTRAINT u_given NOT NULL, UNIQUE (u)) SERVER mot_server;
INSERT INTO ro_null VALUES (1, 'a'), (2, 'b');
INSERT INTO ro_foreign_null VALUES (1, 'a'), (2, 'b');
ALTER TABLE ro_null DROP CONSTRAINT u_given;
ALTER FOREIGN TABLE ro_foreign_null DROP CONSTRAINT u_given;
INSERT INTO ro_null VALUES (3, NULL), (4, NULL);
INSERT INTO ro_foreign_null VALUES (3, NULL), (4, NULL);
SELECT id FROM ro_null WHERE u = 'b';
SELECT id FROM ro_foreign_null WHERE u = 'b';
SELECT id FROM ro_null WHERE u IS NULL ORDER BY id;
SELECT id FROM ro_foreign_null WHERE u IS NULL ORDER BY id;
SELECT mot_verify(c::regclass) FROM unnest('{ro_null,ro_foreign_null}'::text[]) c;
-- not valid yet
ALTER TABLE ro_null ADD CONSTRAINT again NOT NULL u NOT VALID;
ALTER FOREIGN TABLE ro_foreign_null ADD CONSTRAINT again NOT NULL u NOT VALID;
INSERT INTO ro_null VALUES (5, NULL);
INSERT INTO ro_foreign_null VALUES (5, NULL);
ALTER TABLE ro_null VALIDATE CONSTRAINT again;
ALTER FOREIGN TABLE ro_foreign_null VALIDATE CONSTRAINT again;
SELECT count(*), count(u) FROM ro_null;
SELECT count(*), count(u) FROM ro_foreign_null;
DELETE FROM ro_null WHERE u IS NULL;
DELETE FROM ro_foreign_null WHERE u IS NULL;
ALTER TABLE ro_null VALIDATE CONSTRAINT again;
ALTER FOREIGN TABLE ro_foreign_null VALIDATE CONSTRAINT again;
INSERT INTO ro_null VALUES (6, 'c'), (7, NULL);
INSERT INTO ro_null VALUES (6, 'c');
INSERT INTO ro_foreign_null VALUES (6, 'c');
SELECT id FROM ro_null WHERE u >= 'b' ORDER BY u;
SELECT id FROM ro_foreign_null WHERE u >= 'b' ORDER BY u;
DROP TABLE ro_null, ro_foreign_null;

-- EXPLAIN of EXECUTE says how the statement is run, and of each node whether it is ours
CREATE TABLE ex_18 (id int PRIMARY KEY, v int) USING mot;
INSERT INTO ex_18 SELECT i, i % 10 FROM generate_series(1, 1000) i;
ANALYZE ex_18;
SET max_parallel_workers_per_gather = 0;
PREPARE ex_18 AS SELECT v FROM ex_18 WHERE id = $1;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE ex_18 (1);
DO $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) SELECT count(*) FROM (SELECT v, count(*) FROM ex_18 WHERE v > 1 GROUP BY v) s' INTO plan;
    RAISE NOTICE '%', jsonb_path_query_array(plan, 'strict $.**."MOT Batches"');
    RAISE NOTICE '%', plan->0->'Statement';
END $$;
DEALLOCATE ex_18;
DROP TABLE ex_18;

-- virtual columns, of which rows have nothing, in conditions that rows have to meet
CREATE TABLE vc_heap (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a * 2) VIRTUAL);
CREATE FOREIGN TABLE vc_foreign (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a * 2) VIRTUAL) SERVER mot_server;
CREATE TABLE vc_mot (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a * 2) VIRTUAL) USING mot;
DO $$
DECLARE
    kind text;
    stmt text;
    result text[];
    heap text[];
BEGIN
    FOREACH kind IN ARRAY '{heap,foreign,mot}'::text[] LOOP
        EXECUTE format('INSERT INTO vc_%s (id, a) SELECT i, i FROM generate_series(1, 9) i', kind);
        result := '{}';
        FOREACH stmt IN ARRAY ARRAY['ALTER v SET NOT NULL', 'ALTER v SET EXPRESSION AS (nullif(a, 5))', 'ALTER v SET EXPRESSION AS (a * 3)',
            'ALTER v DROP NOT NULL', 'ALTER v SET EXPRESSION AS (nullif(a, 5))', 'ALTER v SET NOT NULL', 'ADD CONSTRAINT n NOT NULL v NOT VALID',
            'VALIDATE CONSTRAINT n', 'DROP CONSTRAINT n', 'ADD w int GENERATED ALWAYS AS (a + 1) VIRTUAL NOT NULL',
            'ADD x int GENERATED ALWAYS AS (nullif(a, 9)) VIRTUAL NOT NULL', 'ADD x int GENERATED ALWAYS AS (a) VIRTUAL CHECK (x < 10)',
            'ADD y int GENERATED ALWAYS AS (a) VIRTUAL CHECK (y < 9)', 'ADD CHECK (w < 11)', 'ADD CHECK (w + x < 19)', 'ADD CONSTRAINT c CHECK (w < 10) NOT VALID',
            'VALIDATE CONSTRAINT c', 'ALTER v TYPE bigint', 'ALTER v TYPE bigint USING 1', 'ADD p int DEFAULT 7',
            'ALTER p TYPE bigint USING w * 100', 'ADD s int GENERATED ALWAYS AS (a * 4) STORED', 'ALTER w SET EXPRESSION AS (1)'] LOOP
            BEGIN
                EXECUTE format('ALTER TABLE vc_%s %s', kind, stmt);
                result := result || 'done'::text;
            EXCEPTION WHEN OTHERS THEN
                result := result || replace(SQLSTATE || ' ' || SQLERRM, 'vc_' || kind, 'vc');
            END;
        END LOOP;
        EXECUTE format('SELECT $1 || array_agg(t::text ORDER BY id) FROM vc_%s t', kind) INTO result USING result;
        IF kind = 'heap' THEN
            heap := result;
            FOREACH stmt IN ARRAY result LOOP
                RAISE NOTICE '%', stmt;
            END LOOP;
        ELSIF result IS DISTINCT FROM heap THEN
            RAISE NOTICE '% %', kind, result;
        END IF;
    END LOOP;
END $$;
SELECT mot_verify('vc_foreign'), mot_verify('vc_mot');
DROP TABLE vc_heap, vc_mot;
DROP FOREIGN TABLE vc_foreign;

-- NOT NULL that children get from a parent that had it for itself; ONLY makes no difference
DO $$
DECLARE
    kind text;
    clause text;
    result text[];
    heap text[];
    stmt text;
BEGIN
    FOREACH kind IN ARRAY '{heap,foreign,mot}'::text[] LOOP
        result := '{}';
        clause := CASE kind WHEN 'foreign' THEN 'SERVER mot_server' WHEN 'mot' THEN 'USING mot' ELSE '' END;
        CREATE TABLE ni_parent (id int, v int CONSTRAINT given NOT NULL NO INHERIT);
        EXECUTE format('CREATE %s TABLE ni_child () INHERITS (ni_parent) %s', CASE kind WHEN 'foreign' THEN 'FOREIGN' ELSE '' END, clause);
        EXECUTE format('CREATE %s TABLE ni_below (w int) INHERITS (ni_child) %s', CASE kind WHEN 'foreign' THEN 'FOREIGN' ELSE '' END, clause);
        CREATE INDEX ON ni_below (v);
        INSERT INTO ni_below VALUES (1, NULL), (2, 5), (3, 4);
        FOREACH stmt IN ARRAY ARRAY['ALTER TABLE ni_parent ALTER CONSTRAINT given INHERIT', 'ALTER TABLE ONLY ni_parent ALTER CONSTRAINT given INHERIT',
            'UPDATE ni_below SET v = 3 WHERE v IS NULL', 'ALTER TABLE ONLY ni_parent ALTER CONSTRAINT given INHERIT', 'UPDATE ni_below SET v = NULL', 'ALTER TABLE ni_parent ALTER CONSTRAINT given NO INHERIT',
            'INSERT INTO ni_below VALUES (4, 6)'] LOOP
            BEGIN
                EXECUTE stmt;
                result := result || 'done'::text;
            EXCEPTION WHEN OTHERS THEN
                result := result || (SQLSTATE || ' ' || SQLERRM);
            END;
        END LOOP;
        SET LOCAL enable_seqscan = off;
        result := result || array(SELECT id::text FROM ni_below WHERE v > 0 ORDER BY v);
        SET LOCAL enable_seqscan = on;
        IF kind = 'heap' THEN
            heap := result;
            FOREACH stmt IN ARRAY result LOOP
                RAISE NOTICE '%', stmt;
            END LOOP;
        ELSIF result IS DISTINCT FROM heap THEN
            RAISE NOTICE '% %', kind, result;
        END IF;
        DROP TABLE ni_parent CASCADE;
    END LOOP;
END $$;

-- a column that has a key, and NOT NULL that is not valid, goes
CREATE TABLE nv_parent (id int, v int);
CREATE TABLE nv_mot () INHERITS (nv_parent) USING mot;
CREATE FOREIGN TABLE nv_foreign () INHERITS (nv_parent) SERVER mot_server;
CREATE INDEX ON nv_mot (v);
CREATE INDEX ON nv_foreign (v);
INSERT INTO nv_mot VALUES (1, NULL);
INSERT INTO nv_foreign VALUES (2, NULL);
ALTER TABLE nv_parent ADD CONSTRAINT later NOT NULL v NOT VALID;
ALTER TABLE nv_parent DROP COLUMN v;
SELECT * FROM nv_parent ORDER BY id;
ALTER TABLE nv_parent ADD CONSTRAINT later NOT NULL id NOT VALID;
CREATE INDEX ON nv_mot (id);
CREATE INDEX ON nv_foreign (id);
DROP TABLE nv_parent, nv_mot, nv_foreign;
