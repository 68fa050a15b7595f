# mot_to_table() and what comes after: crashes before and after its commit, with and without a
# checkpoint between, a standby, and the number of the table's file.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = 128MB\nautovacuum = off\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE t (id int PRIMARY KEY, v int, w text COLLATE "C" UNIQUE) SERVER mot_server;
	CREATE INDEX t_v ON t (v, id);
	INSERT INTO t SELECT i, i % 10, 'w' || i FROM generate_series(1, 1000) i;
	CREATE FOREIGN TABLE u (a int, b text) SERVER mot_server;
	INSERT INTO u SELECT i % 3, 'b' FROM generate_series(1, 30) i});
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

my $kind = q{SELECT string_agg(relkind::text, '' ORDER BY relname) FROM pg_class WHERE relname IN ('t', 'u')};
my $content = q{SET enable_seqscan = off; SELECT count(*), sum(v) FROM t; SELECT id FROM t WHERE w = 'w77'; SELECT count(*) FROM t WHERE v = 3;
	SELECT a, count(*), min(b), max(b) FROM u GROUP BY a ORDER BY a};

sub verify
{
	my ($what) = @_;
	is($node->safe_psql('postgres', q{SELECT coalesce(string_agg(first_problem, ', '), '') FROM unnest('{t,u}'::regclass[]) r, mot_verify(r)}), '',
		"$what: indexes have what rows say");
	return;
}

# it dies before the commit: nothing has happened, and it can be done again
my $session = $node->background_psql('postgres');
$session->query_safe(q{BEGIN; SELECT mot_to_table('t'); UPDATE t SET v = 100; SELECT mot_to_table('u')});
$node->stop('immediate');
$session->{run}->finish;
$node->start;
is($node->safe_psql('postgres', $kind), 'ff', 'a crash before the commit: foreign tables as before');
is($node->safe_psql('postgres', $content), "1000|4500\n77\n100\n0|10|b|b\n1|10|b|b\n2|10|b|b", '... with their rows');
verify('...');

# it dies after the commit
$node->safe_psql('postgres', q{BEGIN; UPDATE t SET v = v + 1 WHERE id <= 10; SELECT mot_to_table('t'); SELECT mot_to_table('u');
	UPDATE t SET v = v + 1 WHERE id <= 10; UPDATE u SET b = 'c' WHERE a = 1; COMMIT});
$node->safe_psql('postgres', q{DELETE FROM t WHERE id = 1000; INSERT INTO u VALUES (4, 'd')});
my $now = "999|4520\n77\n100\n0|10|b|b\n1|10|c|c\n2|10|b|b\n4|1|d|d";
is($node->safe_psql('postgres', $content), $now, 'ordinary tables');
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $kind), 'rr', 'on the standby');
is($standby->safe_psql('postgres', $content), $now, '... too');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $kind), 'rr', 'a crash after the commit: ordinary tables');
is($node->safe_psql('postgres', $content), $now, '... with their rows');
verify('...');
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $content), $now, 'and from a checkpoint');
$node->restart;
is($node->safe_psql('postgres', $content), $now, 'and after a clean stop');

# the storage goes with the file from now on
$node->safe_psql('postgres', 'TRUNCATE u; INSERT INTO u VALUES (5, $$e$$)');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT * FROM u'), '5|e', 'TRUNCATE, and a crash');
$node->safe_psql('postgres', 'DROP TABLE u');
$node->safe_psql('postgres', q{ALTER TABLE t SET ACCESS METHOD heap});
is($node->safe_psql('postgres', 'SELECT count(*) FROM mot_stat_get_tables()'), '0', 'nothing is left in memory');
is($node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM t'), '999|4520', 'and all rows are in the heap table');
$node->restart;
is($node->safe_psql('postgres', 'SELECT count(*) FROM mot_stat_get_tables()'), '0', 'nor after a start');
unlike(slurp_file($node->logfile), qr/is not in the catalogue any more|has no storage|PANIC|TRAP/, 'nothing was lost or left over');
$standby->stop;
$node->stop;

done_testing();
