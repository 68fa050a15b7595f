--
-- LOCK TABLE of a view locks the memory-optimized tables below it, too
--
CREATE FOREIGN TABLE lock_mot (a int) SERVER mot_server;
CREATE TABLE lock_heap (a int);
CREATE FOREIGN TABLE lock_child () INHERITS (lock_heap) SERVER mot_server;
CREATE FOREIGN TABLE lock_deep (a int) SERVER mot_server;
CREATE VIEW lock_view AS SELECT * FROM lock_mot;
CREATE VIEW lock_views AS SELECT v.a, (SELECT count(*) FROM lock_heap) FROM lock_view v
	WHERE EXISTS (SELECT FROM lock_deep d WHERE d.a = v.a);
CREATE FUNCTION held() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT relation::regclass::text || ' ' || mode FROM pg_locks
		WHERE locktype = 'relation' AND pid = pg_backend_pid() AND mode LIKE 'Share%' ORDER BY 1
$$;
BEGIN; LOCK TABLE lock_view IN SHARE MODE; SELECT * FROM held(); ROLLBACK;
BEGIN; LOCK TABLE lock_views IN SHARE ROW EXCLUSIVE MODE; SELECT * FROM held(); ROLLBACK;
BEGIN; LOCK TABLE ONLY lock_heap, lock_view IN SHARE MODE NOWAIT; SELECT * FROM held(); ROLLBACK;
LOCK TABLE lock_view;

-- who may is who may change the table: the view's owner, or with security_invoker the user
CREATE ROLE lock_user;
GRANT SELECT ON lock_view TO lock_user;
GRANT SELECT, UPDATE ON lock_views TO lock_user;
SET ROLE lock_user;
BEGIN; LOCK TABLE lock_view IN SHARE MODE; ROLLBACK;
BEGIN; LOCK TABLE lock_views IN SHARE MODE; SELECT * FROM held(); ROLLBACK;
RESET ROLE;
GRANT UPDATE ON lock_view TO lock_user;
CREATE OR REPLACE VIEW lock_view WITH (security_invoker) AS SELECT * FROM lock_mot;
SET ROLE lock_user;
BEGIN; LOCK TABLE lock_view IN SHARE MODE; ROLLBACK;
RESET ROLE;
GRANT UPDATE ON lock_mot TO lock_user;
SET ROLE lock_user;
BEGIN; LOCK TABLE lock_view IN SHARE MODE; SELECT * FROM held(); ROLLBACK;
RESET ROLE;
DROP VIEW lock_views, lock_view;
DROP FOREIGN TABLE lock_mot, lock_child, lock_deep;
DROP TABLE lock_heap;
DROP FUNCTION held();
DROP ROLE lock_user;

-- tables of all databases, too
BEGIN;
LOCK TABLE pg_database IN ACCESS SHARE MODE;
LOCK TABLE pg_class, pg_database, pg_tables IN ACCESS SHARE MODE;
COMMIT;
