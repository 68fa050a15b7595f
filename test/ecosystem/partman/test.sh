# pg_partman makes, fills and drops partitions of a memory-optimized parent.

sql "CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman;
	CREATE TABLE event (id bigint GENERATED ALWAYS AS IDENTITY, made timestamptz NOT NULL DEFAULT now(), what text, PRIMARY KEY (id, made)) PARTITION BY RANGE (made);
	CREATE INDEX ON event (what)"
ok "a set of partitions is made" sql "SELECT partman.create_parent('public.event', 'made', 'native', 'daily', p_premake := 3, p_start_partition := (current_date - 5)::text)"
ok "rows go to them" sql "INSERT INTO event (made, what) SELECT now() - i * interval '1 hour', 'w' || i % 5 FROM generate_series(0, 71) i;
	INSERT INTO event (made, what) SELECT now() + interval '10 days', 'late'"
is "$(sql "SELECT count(*) FROM event WHERE what = 'w3'")" 14 "... and are found"
is "$(sql "SELECT count(*) FROM event_default")" 1 "one is in the default partition"
ok "... and moves to one of its own" sql "CALL partman.partition_data_proc('public.event')"
is "$(sql "SELECT count(*) FROM event_default")" 0 "so that none is left there"
ok "maintenance" sql "CALL partman.run_maintenance_proc()"
ok "old partitions are dropped" sql "UPDATE partman.part_config SET retention = '2 days', retention_keep_table = false; SELECT partman.run_maintenance('public.event')"
is "$(sql "SELECT min(made) >= current_date - 3 AND count(*) BETWEEN 40 AND 73 FROM event")" t "... and no others"
is "$(sql "SELECT count(*) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid JOIN pg_am a ON a.oid = relam WHERE amname <> 'mot' AND c.relkind = 'r'")" 0 \
	"partitions are memory-optimized"
