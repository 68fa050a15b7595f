# Exported snapshots: who imports one sees tables of both kinds as of one moment, and
# so does a pg_dump with several jobs.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\nfsync = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot');
my @tables = qw(a b h);
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE a (id int PRIMARY KEY, v int) SERVER mot_server; CREATE FOREIGN TABLE b (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE h (id int PRIMARY KEY, v int)');
$node->safe_psql('postgres', "INSERT INTO $_ SELECT g, 100 FROM generate_series(1, 100) g") for @tables;
my $sums = join ', ', map { "(SELECT sum(v) || ' ' || count(*) FROM $_)" } @tables;

sub session
{
	my ($on) = @_;
	return ($on // $node)->background_psql('postgres', on_error_stop => 0);
}

# ---------------------------------------------------------------- one by one

sub begin
{
	my ($session, $snapshot, $level) = @_;
	$session->query_safe('BEGIN ISOLATION LEVEL ' . ($level // 'REPEATABLE READ') . "; SET TRANSACTION SNAPSHOT '$snapshot'");
}

my $changes = join '', map { "UPDATE $_ SET v = v + 1; DELETE FROM $_ WHERE id = (SELECT min(id) FROM $_); INSERT INTO $_ SELECT max(id) + 1, 5 FROM $_;" } @tables;

my $exporter = session();
my $importer = session();
my $second = session();
$exporter->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $snapshot = $exporter->query_safe('SELECT pg_export_snapshot()');
$node->safe_psql('postgres', $changes);
begin($importer, $snapshot);
is($importer->query_safe("SELECT $sums"), join('|', ('10000 100') x 3), 'both kinds as of the exporting transaction');
$node->safe_psql('postgres', $changes) for 1 .. 20;
is($exporter->query_safe("SELECT $sums"), join('|', ('10000 100') x 3), 'which sees the same');
begin($second, $importer->query_safe('SELECT pg_export_snapshot()'));
$exporter->query_safe('COMMIT');
# (what nobody needed any more would go now)
$node->safe_psql('postgres', $changes) for 1 .. 20;
is($importer->query_safe("SELECT $sums"), join('|', ('10000 100') x 3), 'also when that has ended');
$importer->query_safe('COMMIT');
$node->safe_psql('postgres', $changes) for 1 .. 20;
is($second->query_safe("SELECT $sums"), join('|', ('10000 100') x 3), 'and by a snapshot that was exported once more');
$second->query_safe('COMMIT');
isnt($second->query_safe("SELECT $sums"), join('|', ('10000 100') x 3), 'as long as the transaction lasts');

my ($rc, $out, $err) = $node->psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$snapshot'");
like($err, qr/invalid snapshot identifier|not running|does not exist/, 'one that is over is refused by the server');

# exported by a function, after savepoints, with changes of its own that stay its own
my $before = $exporter->query_safe("SELECT $sums");
$exporter->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE a SET v = 0; UPDATE h SET v = 0; SAVEPOINT s; UPDATE b SET v = 0; ROLLBACK TO s; RELEASE s');
$exporter->query_safe(q{DO $$ BEGIN PERFORM set_config('test.snapshot', pg_export_snapshot(), false); END $$});
$snapshot = $exporter->query_safe('SHOW test.snapshot');
begin($importer, $snapshot);
is($importer->query_safe("SELECT $sums"), $before, 'not what the exporter has changed itself');
$exporter->query_safe('COMMIT');
is($importer->query_safe("SELECT $sums"), $before, 'also after its commit');
$importer->query_safe('UPDATE b SET v = v + 1 WHERE id = (SELECT max(id) FROM b)');
$importer->query('UPDATE a SET v = 1 WHERE id = (SELECT max(id) FROM a)');
like($importer->{stderr}, qr/could not serialize/, 'and changes are checked against it');
$importer->{stderr} = '';
$importer->query('ROLLBACK');

# ------------------------------------------------------------------ a standby

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\n");
$standby->start;
$node->wait_for_catchup($standby);
my ($there, $reader) = (session($standby), session($standby));
my $then = $standby->safe_psql('postgres', "SELECT $sums");
$there->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$snapshot = $there->query_safe('SELECT pg_export_snapshot()');
$node->safe_psql('postgres', $changes);
$node->wait_for_catchup($standby);
begin($reader, $snapshot);
is($reader->query_safe("SELECT $sums"), $then, 'on a standby');
$_->quit for $there, $reader;
$standby->stop;

# ------------------------------------------------------------------- pg_dump

# Money goes from one table to another.  A dump has all of it.  (Of foreign tables
# pg_dump takes no rows with several jobs.)
$node->safe_psql('postgres', 'SELECT mot_to_table(ftrelid) FROM pg_foreign_table');
$node->safe_psql('postgres', "UPDATE $_ SET v = 100; DELETE FROM $_ WHERE id % 2 = 0") for @tables;
my $all = $node->safe_psql('postgres', "SELECT (SELECT sum(v) FROM a) + (SELECT sum(v) FROM b) + (SELECT sum(v) FROM h)");
my $script = PostgreSQL::Test::Utils::tempdir . '/transfer.sql';
append_to_file($script, "BEGIN;\n" . join('', map { "UPDATE $tables[$_] SET v = v - 1 WHERE id = (SELECT min(id) FROM $tables[$_]);\nUPDATE $tables[($_ + 1) % 3] SET v = v + 1 WHERE id = (SELECT max(id) FROM $tables[($_ + 1) % 3]);\n" } 0 .. 1) . "COMMIT;\n");
my ($pgbench_out, $pgbench_err) = ('', '');
my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', 2, '-T', 60, '-f', $script, '-d', $node->connstr('postgres') ], '>', \$pgbench_out, '2>', \$pgbench_err);
for my $n (1 .. 3)
{
	my $to = PostgreSQL::Test::Utils::tempdir . "/dump$n";
	command_ok([ 'pg_dump', '-Fd', '-j', 3, '-f', $to, '-d', $node->connstr('postgres') ], "pg_dump with three jobs, $n");
	$node->safe_psql('postgres', "CREATE DATABASE copy$n");
	command_ok([ 'pg_restore', '-d', $node->connstr("copy$n"), $to ], 'its restore');
	is($node->safe_psql("copy$n", 'SELECT (SELECT sum(v) FROM a) + (SELECT sum(v) FROM b) + (SELECT sum(v) FROM h)'), $all, 'nothing is missing in it');
}
$pgbench->signal('INT');
$pgbench->finish;
$_->quit for $exporter, $importer, $second;
done_testing();
