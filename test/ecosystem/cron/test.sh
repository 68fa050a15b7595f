# pg_cron runs jobs on memory-optimized tables.

PGOPTIONS='-c default_table_access_method=mot' sql "CREATE EXTENSION pg_cron"
is "$(sql "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 'cron.job'::regclass")" heap \
	"an extension's own tables, which it goes to by heap's routines, stay on heap"
sql "CREATE TABLE counter (id int PRIMARY KEY, n int); INSERT INTO counter VALUES (1, 0)"
ok "a job is made" sql "SELECT cron.schedule('count', '* * * * *', 'UPDATE counter SET n = n + 1'); SELECT cron.schedule('care', '* * * * *', 'VACUUM ANALYZE counter')"
for _ in $(seq 70); do
	[ "$(sql "SELECT count(DISTINCT jobid) FROM cron.job_run_details WHERE status NOT IN ('starting', 'running')")" != 2 ] || break
	sleep 1
done
is "$(sql 'SELECT n >= 1 FROM counter')" t "it runs"
is "$(sql "SELECT count(*) FROM cron.job_run_details WHERE status = 'failed'")" 0 "... and does not fail"
sql "SELECT cron.unschedule('count'); SELECT cron.unschedule('care')" >/dev/null
