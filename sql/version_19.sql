-- What PostgreSQL 19 brought: ON CONFLICT DO SELECT, of ordinary tables as of a heap table; REPACK
SELECT current_setting('server_version_num')::int < 190000 AS before_19 \gset
\if :before_19
\quit
\endif
CREATE TABLE cs_heap (id int PRIMARY KEY, a text, n int);
CREATE TABLE cs_mot (id int PRIMARY KEY, a text, n int) USING mot;
CREATE FOREIGN TABLE cs_foreign (id int PRIMARY KEY, a text, n int) SERVER mot_server;

-- the statement on each; that of ours if it is not heap's
CREATE FUNCTION cs(stmt text) RETURNS TABLE (kind text, rows text[]) AS $$
DECLARE
    heap text[];
BEGIN
    FOREACH kind IN ARRAY '{heap,mot}'::text[] LOOP
        BEGIN
            EXECUTE format('WITH c AS (' || stmt || ') SELECT array_agg(c::text) FROM c', 'cs_' || kind) INTO rows;
        EXCEPTION WHEN OTHERS THEN
            rows := ARRAY[SQLSTATE, SQLERRM];
        END;
        IF kind = 'heap' THEN
            heap := rows;
            RETURN NEXT;
        ELSIF rows IS DISTINCT FROM heap THEN
            RETURN NEXT;
        END IF;
    END LOOP;
END $$ LANGUAGE plpgsql;

SELECT * FROM cs('INSERT INTO %I AS t VALUES (1, ''one'', 1), (2, ''two'', 2) ON CONFLICT (id) DO SELECT RETURNING t.*');
SELECT * FROM cs('INSERT INTO %I AS t VALUES (1, ''x'', 10), (3, ''three'', 3) ON CONFLICT (id) DO SELECT RETURNING t.*, old, new');
SELECT * FROM cs('INSERT INTO %I AS t VALUES (2, ''x'', 10), (1, ''y'', 3) ON CONFLICT (id) DO SELECT FOR UPDATE WHERE t.n > 1 RETURNING t.*, old.a, new.a');
SELECT * FROM cs('INSERT INTO %I AS t VALUES (2, ''x'', 10) ON CONFLICT (id) DO SELECT WHERE excluded.n < t.n RETURNING t.*');
-- the same row twice
SELECT * FROM cs('INSERT INTO %I AS t VALUES (4, ''x'', 4), (4, ''y'', 5) ON CONFLICT (id) DO SELECT RETURNING t.*');
SELECT * FROM cs('INSERT INTO %I AS t VALUES (5, ''x'', 4), (5, ''y'', 5) ON CONFLICT (id) DO SELECT FOR SHARE RETURNING t.*');
-- nothing has changed
SELECT * FROM cs('INSERT INTO %I AS t VALUES (0, NULL, 0) ON CONFLICT (id) DO NOTHING RETURNING (SELECT count(*) FROM %1$I)');
TABLE cs_mot ORDER BY id;
TABLE cs_heap EXCEPT TABLE cs_mot;

-- prepared, by PL/pgSQL and as often as it takes to go without the executor, which such a statement does not
DO $$
DECLARE
    r record;
    k bigint;
BEGIN
    FOR i IN 1..20 LOOP
        INSERT INTO cs_mot VALUES (1, 'z', i) ON CONFLICT (id) DO SELECT RETURNING * INTO r;
        IF r.a <> 'one' OR r.n <> 1 THEN
            RAISE '%', r;
        END IF;
        INSERT INTO cs_mot VALUES (100 + i, 'z', i) ON CONFLICT (id) DO SELECT RETURNING * INTO r;
        GET DIAGNOSTICS k = ROW_COUNT;
        IF r.a <> 'z' OR r.n <> i OR k <> 1 THEN
            RAISE '% %', r, k;
        END IF;
    END LOOP;
END $$;
SELECT count(*), sum(n) FROM cs_mot WHERE id > 100;

-- foreign tables say that they do not know it; also as it is prepared, and nothing is inserted
INSERT INTO cs_foreign VALUES (1, 'a', 1) ON CONFLICT (id) DO SELECT RETURNING *;
PREPARE cs_foreign AS INSERT INTO cs_foreign VALUES ($1, 'a', 1) ON CONFLICT (id) DO SELECT RETURNING *;
EXECUTE cs_foreign (1);
EXECUTE cs_foreign (1);
SELECT count(*) FROM cs_foreign;

-- REPACK is what CLUSTER and VACUUM FULL were
CREATE INDEX cs_mot_n ON cs_mot (n DESC);
DELETE FROM cs_mot WHERE id % 2 = 1;
REPACK cs_mot;
SELECT count(*), sum(n) FROM cs_mot;
REPACK cs_mot USING INDEX cs_mot_n;
SELECT count(*), sum(n) FROM cs_mot;
SELECT id FROM cs_mot ORDER BY n DESC LIMIT 3;
INSERT INTO cs_mot VALUES (102, 'again', 1);
REPACK (ANALYZE) cs_mot;
REPACK (CONCURRENTLY) cs_mot;
REPACK cs_foreign;
REPACK (CONCURRENTLY) cs_foreign;
CLUSTER cs_foreign USING cs_foreign_pkey;
VACUUM FULL cs_foreign;

-- a range of ctids, which the server would now read in parallel, is still read by one
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE cs_range (id int) USING mot WITH (parallel_workers = 2);
INSERT INTO cs_range SELECT generate_series(1, 20000);
ANALYZE cs_range;
SELECT count(*), count(DISTINCT id) FROM cs_range WHERE ctid >= '(0,0)';
EXPLAIN (COSTS OFF) SELECT id FROM cs_range WHERE ctid >= '(0,0)';
SET max_parallel_workers_per_gather = 0;
EXPLAIN (ANALYZE, IO, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM cs_range WHERE id < 3;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

-- offsets that do not depend on the row are remembered in 16 bits
DO $$
BEGIN
    EXECUTE (SELECT 'CREATE TABLE cs_wide (' || string_agg(format('c%s name', i), ', ') || ') USING mot' FROM generate_series(1, 1500) i);
    EXECUTE (SELECT 'INSERT INTO cs_wide VALUES (' || string_agg(format('''v%s''', i), ', ') || ')' FROM generate_series(1, 1500) i);
    EXECUTE (SELECT 'INSERT INTO cs_wide VALUES (' || string_agg(format('''w%s''', i), ', ') || ')' FROM generate_series(1, 1500) i);
END $$;
SELECT c1, c511, c512, c513, c1100, c1500 FROM cs_wide;
SELECT c1, c511, c512, c513, c1100, c1500 FROM cs_wide ORDER BY c1 DESC;
SELECT c1500 FROM cs_wide WHERE c600 = 'w600';

DROP TABLE cs_heap, cs_mot, cs_range, cs_wide;
DROP FOREIGN TABLE cs_foreign;
DROP FUNCTION cs;
