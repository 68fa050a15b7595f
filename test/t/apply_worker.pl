# A background worker executes statements on memory-optimized tables, too: here
# that of a subscription, whose triggers look rows up and change them.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('worker');
$node->init(allows_streaming => 'logical');
$node->append_conf(
	'postgresql.conf', q{
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
mot.jit_prepare_above_executions = 0
plan_cache_mode = force_generic_plan
});
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql(
	'source', q{
	CREATE TABLE change (n int PRIMARY KEY, id int);
	CREATE PUBLICATION changes FOR TABLE change;
	SELECT pg_create_logical_replication_slot('changes', 'pgoutput');
});
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE change (n int PRIMARY KEY, id int);
	CREATE FOREIGN TABLE hot (id int PRIMARY KEY, v int) SERVER mot_server;
	INSERT INTO hot SELECT i, 0 FROM generate_series(1, 10) i;
	CREATE TABLE seen (n int, id int, v int);
	CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
	DECLARE
		r record;
		one CURSOR (key int) FOR SELECT id, v FROM hot WHERE id = key;
	BEGIN
		FOR r IN SELECT id, v FROM hot WHERE id = new.id LOOP
			INSERT INTO seen VALUES (new.n, r.id, r.v);
		END LOOP;
		UPDATE hot SET v = v + 1 WHERE id = new.id;
		OPEN one (new.id);
		UPDATE hot SET v = v + 1 WHERE id = new.id;
		FETCH one INTO r;
		IF found THEN
			INSERT INTO seen VALUES (new.n, r.id, r.v);
		END IF;
		CLOSE one;
		RETURN NULL;
	END $$;
	CREATE TRIGGER follow AFTER INSERT ON change FOR EACH ROW EXECUTE FUNCTION follow();
	ALTER TABLE change ENABLE REPLICA TRIGGER follow;
});
my $from = $node->connstr('source') =~ s{'}{''}gr;
$node->safe_psql('postgres',
	"CREATE SUBSCRIPTION changes CONNECTION '$from' PUBLICATION changes WITH (create_slot = false, copy_data = false)");
my $log = -s $node->logfile;
$node->safe_psql('source', join(' ', map { "INSERT INTO change VALUES ($_, 1 + $_ % 12);" } 1 .. 60));
ok($node->poll_query_until('postgres', 'SELECT count(*) = 60 FROM change'), 'all changes have come');
is( $node->safe_psql(
		'postgres', q{SELECT count(*), count(*) FILTER (WHERE s.v = e.v) FROM seen s FULL JOIN (
		SELECT n, 1 + n % 12 AS id, 2 * (n / 12) - CASE WHEN n % 12 = 0 THEN 2 ELSE 0 END + later AS v
		FROM generate_series(1, 60) n, generate_series(0, 1) later WHERE n % 12 < 10) e ON s.n = e.n AND s.id = e.id AND s.v = e.v}),
	'100|100', 'triggers saw each row as it was, and as they had changed it');
is($node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM hot'), '10|100', 'and changed them');
my $messages = substr(slurp_file($node->logfile), $log);
unlike($messages, qr/PANIC|terminated by signal|reinitializing/, 'nobody crashed');
$node->stop;
done_testing();
