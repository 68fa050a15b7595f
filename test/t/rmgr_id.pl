# mot.resource_manager_id: another module that has the same ID is named, another ID works as
# well, and one that is not that of the log is refused as long as there is log to be read.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $other = $ENV{MOT_OTHER_RMGR};
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\nfsync = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE TABLE t (id int PRIMARY KEY) USING mot; INSERT INTO t VALUES (1); CREATE TABLE heap (v int) USING heap');
$node->stop;

sub refused
{
	my ($conf, $expected, $what) = @_;
	my $from = -s $node->logfile;
	$node->append_conf('postgresql.conf', $conf);
	my $started = $node->start(fail_ok => 1);
	$node->stop if $started;
	ok(!$started, "$what: the server does not start");
	return like(slurp_file($node->logfile, $from), $expected, 'and says why');
}

refused("shared_preload_libraries = '$other, mot'\n",
	qr/FATAL:  resource manager of memory-optimized tables cannot have ID 128\n.*DETAIL:  Another module in shared_preload_libraries has a resource manager "other" with that ID.\n.*HINT:  Set mot.resource_manager_id to another number from 128 to 255, the same on all standbys/,
	'a module before us that has our ID');
refused("shared_preload_libraries = 'mot, $other'\n", qr/Custom resource manager "mot" already registered with the same ID/, 'one behind us');

# another one, after a clean shutdown
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$other, mot'\nmot.resource_manager_id = 130\n");
$node->start;
$node->safe_psql('postgres', 'INSERT INTO t VALUES (2)');
is($node->safe_psql('postgres', q{SELECT rm_id, rm_name FROM pg_get_wal_resource_managers() WHERE NOT rm_builtin ORDER BY 1}), "128|other\n130|mot", 'both are there, with another ID');
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'INSERT INTO t VALUES (3)');
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t'), 3, 'a standby with that ID replays it');
$standby->stop;
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 3, 'as does a start after a crash');

# Log behind a checkpoint of ours that the server's own recovery does not come to: what another ID
# has it cannot be.
$node->safe_psql('postgres', q{INSERT INTO t VALUES (4); CHECKPOINT});
$node->stop('immediate');
$node->append_conf('postgresql.conf', "mot.resource_manager_id = 131\n");
$node->start;
my ($rc, $out, $err) = $node->psql('postgres', 'SELECT count(*) FROM t');
like($err, qr/the log of memory-optimized tables was written with mot.resource_manager_id = 130, and it is 131 now/, 'another ID than that of the log is refused');
like($err, qr/HINT:  Set it to 130 again/, 'with the one to be set');
is($node->safe_psql('postgres', 'INSERT INTO heap VALUES (1); SELECT count(*) FROM heap'), 1, 'heap tables are served');
$node->stop;
$node->append_conf('postgresql.conf', "mot.resource_manager_id = 130\n");
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 4, 'with that one all is there');
$node->stop;

done_testing();
