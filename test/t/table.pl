# Ordinary tables (USING mot) after crashes and restarts, on a standby, in a copied
# database, in a dump, and in a server that has not preloaded mot.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = 128MB\nautovacuum = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE SCHEMA h; CREATE SCHEMA m');

# the same for tables of both kinds
sub both
{
	my ($sql) = @_;
	for my $kind ([ 'h', 'heap' ], [ 'm', 'mot' ])
	{
		(my $s = $sql) =~ s/ENGINE/$kind->[1]/g;
		$node->safe_psql('postgres', "SET search_path = $kind->[0]; $s");
	}
	return;
}

sub content
{
	my ($server, $schema, $db) = @_;
	return $server->safe_psql($db // 'postgres',
		"SET search_path = $schema; SELECT 'p', string_agg(p::text, ' ' ORDER BY id) FROM p; SELECT 'c', string_agg(c::text, ' ' ORDER BY id) FROM c;
		SELECT 'n', string_agg(n::text, ' ' ORDER BY n::text) FROM n; SELECT 'b', count(*), sum(v), sum(length(t)) FROM b;
		SELECT 'k', string_agg(k::text, ' ' ORDER BY id) FROM k;
		SET enable_seqscan = off; SELECT string_agg(id::text, ' ' ORDER BY id) FROM k WHERE public.slug(t) BETWEEN 'text-1' AND 'text-3';
		SELECT string_agg(id::text, ' ' ORDER BY v) FROM k WHERE open AND v > 0; SELECT count(*) FROM k WHERE d IS NULL; SELECT t FROM b WHERE id = 77; SELECT count(*), sum(id) FROM b WHERE v BETWEEN 10 AND 20"
	);
}

sub same
{
	my ($what, $server, $db) = @_;
	$server //= $node;
	is(content($server, 'm', $db), content($server, 'h', $db), $what);
	is($server->safe_psql($db // 'postgres', q{SELECT coalesce(string_agg(first_problem, ', '), '') FROM pg_class c, mot_verify(c.oid)
		WHERE relnamespace = 'm'::regnamespace AND relkind = 'r'}), '', '... and indexes have what rows say')
	  unless $server->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	return;
}

both('CREATE TABLE p (id int PRIMARY KEY, v text) USING ENGINE; CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, UNIQUE (p, id)) USING ENGINE;
	CREATE TABLE n (a int, b text) USING ENGINE; CREATE TABLE b (id bigint PRIMARY KEY, v int, t text) USING ENGINE; CREATE INDEX ON b (v, id DESC)');
# keys that no other process could compute
$node->safe_psql('postgres', q{CREATE FUNCTION public.slug(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN lower(replace($1, ' ', '-')); END $$});
both(q{CREATE TABLE k (id int PRIMARY KEY DEFERRABLE, v int, t text, open bool, d int UNIQUE NULLS NOT DISTINCT, EXCLUDE USING btree (v WITH =) WHERE (NOT open)) USING ENGINE;
	INSERT INTO k SELECT i, i, 'Text ' || i, i % 3 = 0, i FROM generate_series(1, 100) i; CREATE UNIQUE INDEX ON k (public.slug(t));
	CREATE UNIQUE INDEX ON k (v) INCLUDE (t) WHERE open});
both(q{INSERT INTO p SELECT i, 'p' || i FROM generate_series(1, 20) i; INSERT INTO c SELECT i, i % 20 + 1 FROM generate_series(1, 50) i;
	INSERT INTO n SELECT i % 3, 'n' FROM generate_series(1, 10) i; INSERT INTO b SELECT i, i % 100, 'text ' || i FROM generate_series(1, 2000) i});

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
same('on a standby', $standby);

# changes of all kinds, before and after a checkpoint
sub changes
{
	both(q{UPDATE p SET v = v || '!' WHERE id % 2 = 0; DELETE FROM p WHERE id = 3; UPDATE n SET b = b || a WHERE a = 1; DELETE FROM n WHERE a = 2;
		INSERT INTO b SELECT max(id) + 1, 5, 'new' FROM b; UPDATE b SET v = v + 1 WHERE id % 10 = 0; DELETE FROM b WHERE id % 50 = 0;
		INSERT INTO b VALUES (77, 1, 'x'), (-1, 1, 'y') ON CONFLICT (id) DO UPDATE SET t = b.t || excluded.t;
		UPDATE k SET id = id + 1; UPDATE k SET t = upper(t) || '-' || id, open = NOT open, v = v + 1000 WHERE id % 7 = 0; DELETE FROM k WHERE id % 11 = 0;
		INSERT INTO k SELECT max(id) + 1, max(id) + 1, 'Text NEW ' || max(id), true, max(d) + 1 FROM k; UPDATE k SET d = NULL WHERE d = 50;
		INSERT INTO k VALUES (-1, (SELECT min(v) FROM k WHERE open), 'x', true) ON CONFLICT (v) WHERE open DO UPDATE SET t = k.t || '+';
		BEGIN; SAVEPOINT a; DELETE FROM b; UPDATE k SET t = t || 'gone'; ROLLBACK TO a; INSERT INTO n VALUES (9, 'kept'); COMMIT; BEGIN; TRUNCATE p CASCADE; ROLLBACK});
	return;
}
changes();
same('after changes');
$node->safe_psql('postgres', 'CHECKPOINT');
changes();
$node->stop('immediate');
$node->start;
same('after a crash');
both(q{ALTER TABLE b ALTER v TYPE bigint, ADD COLUMN extra int DEFAULT 3; ALTER TABLE n ADD COLUMN d date DEFAULT '2026-01-01';
	CREATE TABLE gone (a int PRIMARY KEY) USING ENGINE; INSERT INTO gone VALUES (1); DROP TABLE gone; TRUNCATE c; INSERT INTO c SELECT id, id FROM p;
	DROP INDEX k_slug_idx; CREATE UNIQUE INDEX ON k (public.slug(t)); CREATE INDEX ON k ((v + 1)) WHERE id > 5; REINDEX TABLE k; DROP INDEX b_v_id_idx; CREATE INDEX ON b (v); ALTER TABLE p ALTER v SET NOT NULL});
changes();
$node->stop('immediate');
$node->start;
same('after a crash behind DDL');
both('ALTER TABLE n SET ACCESS METHOD heap; ALTER TABLE n SET ACCESS METHOD ENGINE; REINDEX TABLE b; TRUNCATE n; INSERT INTO n VALUES (1)');
changes();
$node->stop;
$node->start;
same('after a restart');
$node->wait_for_catchup($standby, 'replay');
same('on the standby', $standby);
is(content($standby, 'm'), content($node, 'm'), '... which has what the primary has');

# a transaction in progress does not come back
my $session = $node->background_psql('postgres');
$session->query_safe("BEGIN; SET search_path = m; DELETE FROM b; CREATE TABLE half (a int PRIMARY KEY) USING mot; INSERT INTO half VALUES (1); SELECT 1");
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
$session->{run}->finish;
$node->start;
same('after a crash in a transaction');
is($node->safe_psql('postgres', "SELECT string_agg(relname, ' ' ORDER BY relname) FROM mot_stat_tables WHERE loaded"), 'b c k n p', 'no table is left behind');

# copies
$node->safe_psql('template1', 'CREATE DATABASE twin TEMPLATE postgres');
same('in a copied database', $node, 'twin');
$node->safe_psql('twin', "INSERT INTO m.b VALUES (10000, 1, 'twin'); TRUNCATE m.n; ALTER TABLE m.b DROP COLUMN extra");
same('... beside which the original is as it was');
$node->safe_psql('postgres', 'DROP DATABASE twin');
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump without any flag');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'its script runs');
same('what pg_dump has written, restored', $node, 'restored');
is(content($node, 'm', 'restored'), content($node, 'm'), '... with all rows');
is($node->safe_psql('restored', q{SELECT count(*) FROM pg_class WHERE relam = (SELECT oid FROM pg_am WHERE amname = 'mot')}), 5, '... as tables of the access method');
$node->safe_psql('postgres', 'DROP DATABASE restored');

# without the module
my $before = content($node, 'm');
$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->append_conf('postgresql.conf', "mot.max_memory = 128MB\n");
$node->start;
for my $sql ('SELECT * FROM m.b', 'SELECT id FROM m.b WHERE id = 1', "INSERT INTO m.n VALUES (1)", 'DROP TABLE m.n', 'TRUNCATE m.n', 'ALTER TABLE m.b ADD COLUMN z int', 'VACUUM m.b', 'COPY m.b TO STDOUT')
{
	my ($ret, $out, $err) = $node->psql('postgres', $sql);
	like($err, qr/mot must be loaded at server start/, "without mot: $sql");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM h.p'), $node->safe_psql('postgres', 'SELECT count(*) FROM h.p'), 'heap tables are there');
$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'mot'");
$node->start;
is(content($node, 'm'), $before, 'with it again, all is there');

$standby->promote;
$standby->safe_psql('postgres', "INSERT INTO m.b VALUES (20000, 1, 'promoted'); INSERT INTO h.b VALUES (20000, 1, 'promoted')");
same('on the promoted standby', $standby);
my ($ret, $out, $err) = $standby->psql('postgres', "INSERT INTO m.b VALUES (20000, 1, 'again')");
like($err, qr/duplicate key value violates unique constraint "b_pkey"/, '... whose keys are unique');
$standby->stop;

$node->stop;
done_testing();
