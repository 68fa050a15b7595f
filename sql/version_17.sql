-- What PostgreSQL 17 brought: names of what an extension's processes wait for
SELECT current_setting('server_version_num')::int < 170000 AS before_17 \gset
\if :before_17
\quit
\endif
SELECT name FROM pg_wait_events WHERE type = 'Extension' AND name LIKE 'mot%' ORDER BY name COLLATE "C";
-- the workers, when they have nothing to do
DO $$
BEGIN
    FOR i IN 1..6000 LOOP
        PERFORM pg_stat_clear_snapshot();
        IF (SELECT count(DISTINCT wait_event) FROM pg_stat_activity
            WHERE wait_event_type = 'Extension' AND wait_event IN ('mot_maintenance', 'mot_checkpoint_worker')) = 2 THEN
            RAISE NOTICE 'both wait';
            EXIT;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
