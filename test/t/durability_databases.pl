# Databases that are copied and dropped, the extension dropped, tablespaces:
# what goes leaves nothing behind, in memory or on disk; what stays is there
# after a crash.

use strict;
use warnings;

use Cwd ();
use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $ledger = Ledger->new(name => 'databases');
my $node = $ledger->node;
my $engine = $ledger->{engine};
$node->start;

sub crash
{
	$ledger->kill_all or die;
	$node->start;
	return;
}

sub fill
{
	my ($database) = @_;
	$node->safe_psql(
		$database, qq{
		CREATE TABLE t (id int PRIMARY KEY, v text) USING $engine;
		CREATE INDEX ON t (v);
		INSERT INTO t SELECT i, '$database ' || i FROM generate_series(1, 1000) i;
		CREATE TABLE nokey (v text) USING $engine;
		INSERT INTO nokey VALUES ('one'), ('two'), ('two');
	});
	return;
}

# files of checkpoints that name a database
sub files_of
{
	my ($oid) = @_;
	my $dir = $node->data_dir . '/mot';
	return grep { m{/$oid\.} } glob("$dir/*/*");
}

sub memory_of
{
	my ($oid) = @_;
	return $node->safe_psql('one', "SELECT count(*) FROM mot_stat_get_tables()");
}

for my $database ('one', 'two')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION mot');
	fill($database);
}
my $two = $node->safe_psql('postgres', "SELECT oid FROM pg_database WHERE datname = 'two'");
my %content = map { $_ => Ledger::content($node, $_) } ('one', 'two');
crash();
is(Ledger::content($node, $_), $content{$_}, "database $_ after a crash") for 'one', 'two';

# a copy: with its rows, or without and said so; the same after a crash either way
my ($ret, $out, $err) = $node->psql('postgres', 'CREATE DATABASE copied TEMPLATE two');
if ($ret != 0)
{
	like($err, qr/ERROR:  .*memory-optimized/, 'a template with MOT tables is refused, clearly');
	unlike($node->safe_psql('postgres', 'SELECT string_agg(datname, $$,$$) FROM pg_database'), qr/copied/, '... and nothing is left');
}
else
{
	my $copy = Ledger::content($node, 'copied');
	is($copy, $content{two}, 'a copied database has the rows') unless $err =~ /WARNING/;
	crash();
	is(Ledger::content($node, 'copied'), $copy, 'a copied database is the same after a crash');
	$node->safe_psql('copied', "INSERT INTO t VALUES (5000, 'copied only')");
	$node->safe_psql('two', "INSERT INTO t VALUES (5001, 'two only')");
	$content{$_} = Ledger::content($node, $_) for 'two', 'copied';
	isnt($content{two}, $content{copied}, 'the two are apart');
	crash();
	is(Ledger::content($node, $_), $content{$_}, "$_ after a crash") for 'two', 'copied';
	$node->safe_psql('postgres', 'DROP DATABASE copied');
}

# a database that goes
$node->safe_psql('postgres', 'CHECKPOINT');
SKIP:
{
	skip 'heap tables', 1 if $engine eq 'heap';
	cmp_ok(scalar(files_of($two)), '>', 0, 'a checkpoint has files of the database');
}
my $used = $node->safe_psql('one', 'SELECT used_bytes FROM mot_stat_memory');
$node->safe_psql('postgres', 'DROP DATABASE two');
crash();
is(Ledger::content($node, 'one'), $content{one}, 'after DROP DATABASE of another and a crash');
$node->safe_psql('postgres', 'CHECKPOINT');
is(scalar(files_of($two)), 0, '... no file of it is left');
$node->restart;
is(Ledger::content($node, 'one'), $content{one}, '... nor after a restart is anything missing');
is(scalar(files_of($two)), 0, '... or there again');
SKIP:
{
	skip 'heap tables', 1 if $engine eq 'heap';
	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS mot');
	is($node->safe_psql('one', 'SELECT count(*), sum(rows) FROM mot_stat_get_tables()'), '2|1003', 'in memory is what is in the catalogue');
	is($node->safe_psql('one', 'SELECT rows FROM mot_stat_memory'), '1003', '... of all databases');
}

# a drop that is not committed
$node->psql('one', 'BEGIN; DROP TABLE t; TRUNCATE nokey; ROLLBACK');
crash();
is(Ledger::content($node, 'one'), $content{one}, 'a drop rolled back is no drop after a crash');

# moved, renamed
mkdir $node->data_dir . '/../space' or die;
my $space = $node->data_dir . '/../space';
$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '" . Cwd::abs_path($space) . "'");
$node->safe_psql('postgres', 'CREATE DATABASE in_space TABLESPACE space');
$node->safe_psql('in_space', 'CREATE EXTENSION mot');
fill('in_space');
$content{in_space} = Ledger::content($node, 'in_space');
crash();
is(Ledger::content($node, 'in_space'), $content{in_space}, 'a database in a tablespace after a crash');
$node->safe_psql('postgres', 'ALTER DATABASE in_space SET TABLESPACE pg_default');
$node->safe_psql('postgres', 'ALTER DATABASE in_space RENAME TO moved');
crash();
is(Ledger::content($node, 'moved'), $content{in_space}, '... moved and renamed');
$node->safe_psql('postgres', 'DROP DATABASE moved; ');
$node->safe_psql('postgres', 'DROP TABLESPACE space');

# the extension goes, with all tables
if ($engine eq 'mot')
{
	$node->safe_psql('one', 'SET client_min_messages = error; DROP EXTENSION mot CASCADE');
	is($node->safe_psql('one', "SELECT count(*) FROM pg_class WHERE relname IN ('t', 'nokey')"), '0', 'DROP EXTENSION CASCADE drops the tables');
	crash();
	$node->safe_psql('postgres', 'CHECKPOINT');
	is($node->safe_psql('postgres', 'SELECT rows FROM mot_stat_memory'), '0', '... nothing is left in memory after a crash');
	is(join(' ', grep { m{/\d+\.\d+\.\d+$} } glob($node->data_dir . '/mot/*/*')), '', '... or on disk');
	$node->safe_psql('one', 'CREATE EXTENSION mot');
	fill('one');
	crash();
	is(Ledger::content($node, 'one'), $content{one}, 'the extension comes again, with new tables');
}

$node->stop;
done_testing();
