# pgaudit writes what statements on memory-optimized tables do.

sql "CREATE EXTENSION pgaudit; CREATE TABLE audited (id int PRIMARY KEY, v int); CREATE ROLE auditor; GRANT SELECT, UPDATE ON audited TO auditor"
ok "statements of all kinds" bash -c "PGOPTIONS='-c pgaudit.log=all' psql -X -q -v ON_ERROR_STOP=1 -c 'INSERT INTO audited VALUES (1, 1)' \
	-c 'PREPARE p(int) AS SELECT v FROM audited WHERE id = \$1' -c 'EXECUTE p(1)' -c 'EXECUTE p(1)' -c 'EXECUTE p(1)' -c 'EXECUTE p(1)' -c 'EXECUTE p(1)' -c 'EXECUTE p(1)' \
	-c 'UPDATE audited SET v = 2' -c 'ALTER TABLE audited ADD w int'"
is "$(grep -c 'AUDIT: SESSION,.*,READ,SELECT,.*audited WHERE id' "$CLUSTER_LOG")" 6 "each execution is written"
is "$(grep -c 'AUDIT: SESSION,.*,WRITE,\(INSERT\|UPDATE\),' "$CLUSTER_LOG")" 2 "each change, too"
is "$(grep -c 'AUDIT: SESSION,.*,DDL,ALTER TABLE,TABLE,public.audited' "$CLUSTER_LOG")" 1 "... and definitions"
ok "by objects" bash -c "PGOPTIONS='-c pgaudit.role=auditor' psql -X -q -v ON_ERROR_STOP=1 -c 'SELECT count(*) FROM audited' -c 'DELETE FROM audited'"
is "$(grep -c 'AUDIT: OBJECT,.*,READ,SELECT,TABLE,public.audited' "$CLUSTER_LOG")" 1 "what was granted is written, other things are not"
