# mot_stat_tables while tables are still loading after a start: they are there,
# only their figures are not.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '64MB'\nmot.load_workers = 0\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot');
$node->safe_psql('postgres', "CREATE FOREIGN TABLE t$_ (id integer PRIMARY KEY) SERVER mot_server; INSERT INTO t$_ SELECT generate_series(1, $_ * 100)") for 1 .. 3;
my $tables = 'SELECT relname, rows, loaded FROM mot_stat_tables ORDER BY relname';
my $all = "t1|100|t\nt2|200|t\nt3|300|t";
is($node->safe_psql('postgres', $tables), $all, 'tables with their figures');

# (after a clean stop the server serves before everything is there)
$node->stop;
$node->append_conf('postgresql.conf', "mot.fault = 'load-file:wait'\n");
$node->start;
is($node->safe_psql('postgres', $tables), "t1||f\nt2||f\nt3||f", 'while nothing is loaded yet');
append_to_file($node->data_dir . '/mot.fault.go', '');
ok($node->poll_query_until('postgres', 'SELECT bool_and(loaded) FROM mot_stat_tables'), 'then all are loaded');
is($node->safe_psql('postgres', $tables), $all, '... with their figures');

$node->stop;
done_testing();
