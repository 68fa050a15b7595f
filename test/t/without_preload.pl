# What is done to tables while mot is not in shared_preload_libraries: the
# catalogue changes and the rows do not.  With mot back nothing is read as
# something that it is not, what can be taken over is, and what no catalogue
# knows any more goes.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\nlog_min_messages = log\n");
$node->start;

my %tables = map { $_ => 1 } qw(narrow wide back more fewer index required optional renamed keyed gone);
$node->safe_psql('postgres', 'CREATE EXTENSION mot');
for my $table (sort keys %tables)
{
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $table (id integer PRIMARY KEY, v integer, w text, x integer NOT NULL) SERVER mot_server;"
		  . "CREATE UNIQUE INDEX ${table}_v ON $table (v); CREATE INDEX ${table}_x ON $table (id DESC); INSERT INTO $table SELECT g, -g, 'w' || g, g * 2 FROM generate_series(1, 200) g");
}
$node->safe_psql('postgres', 'CREATE DATABASE lost');
$node->safe_psql('postgres', 'CREATE DATABASE closed');
for my $db (qw(lost closed))
{
	$node->safe_psql($db, "CREATE EXTENSION mot; CREATE FOREIGN TABLE t (id integer PRIMARY KEY) SERVER mot_server; INSERT INTO t SELECT generate_series(1, 300);"
		  . "CREATE FOREIGN TABLE u (id integer PRIMARY KEY) SERVER mot_server; INSERT INTO u SELECT generate_series(1, 300)");
}

sub error_of
{
	my ($sql, $db) = @_;
	my ($rc, $out, $err) = $node->psql($db // 'postgres', $sql);
	return $rc == 0 ? "no error: $out" : $err;
}

sub restart_with
{
	my ($libraries) = @_;
	$node->stop;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
	$node->start;
}

sub tables_in_memory
{
	return $node->safe_psql('postgres', 'SELECT tables FROM mot_stat_checkpoint');
}

# ------------------------------------------------ without it, and back again

restart_with('');
$node->safe_psql('postgres', <<'SQL');
ALTER FOREIGN TABLE narrow ALTER w TYPE "char";
ALTER FOREIGN TABLE wide ALTER x TYPE text;
ALTER FOREIGN TABLE back ALTER x TYPE bigint;
ALTER FOREIGN TABLE back ALTER x TYPE integer;
ALTER FOREIGN TABLE more ADD COLUMN y text;
ALTER FOREIGN TABLE fewer DROP COLUMN w;
DROP INDEX index_v;
ALTER FOREIGN TABLE required ALTER w SET NOT NULL;
ALTER FOREIGN TABLE optional ALTER x DROP NOT NULL;
ALTER FOREIGN TABLE renamed RENAME TO named;
ALTER FOREIGN TABLE named RENAME COLUMN w TO ww;
ALTER FOREIGN TABLE keyed ALTER v SET NOT NULL;
DROP FOREIGN TABLE gone;
CREATE FOREIGN TABLE new (id integer, v integer) SERVER mot_server;
DROP DATABASE lost;
ALTER DATABASE closed ALLOW_CONNECTIONS false;
SQL
$node->stop;
$node->start;
$node->psql('closed', 'SELECT 1');
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS true');
$node->safe_psql('closed', 'DROP FOREIGN TABLE u');
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS false');
my $logged = -s $node->logfile;
restart_with('mot');

my $changed = 'definition of memory-optimized table "%s" has been changed while mot was not loaded';
my %wrong = (
	narrow => 'Column "w" is of type "char", but its values have been stored as text.',
	wide => 'Column "x" is of type text, but its values have been stored as integer.',
	required => 'Column "w" is NOT NULL, but the rows have not been checked for that.',
	keyed => 'Column "v" is NOT NULL, but the rows have not been checked for that.',);
my %minor = (
	more => 'Column "y" has been added.',
	fewer => 'Column 3 has been dropped.',
	index => 'The index with OID \d+ has been dropped.',
	optional => 'Column "x" is not NOT NULL any more.',);

for my $table (sort keys %wrong)
{
	my $told = sprintf($changed, $table);
	for my $sql ("SELECT * FROM $table", "SELECT w FROM $table WHERE id = 7", "UPDATE $table SET v = 1 WHERE id = 7", "DELETE FROM $table", "INSERT INTO $table (id, x) VALUES (0, 1)",
		"COPY $table TO STDOUT", "ALTER FOREIGN TABLE $table ADD COLUMN z integer", "ALTER FOREIGN TABLE $table ALTER v TYPE bigint", "ALTER FOREIGN TABLE $table SET SCHEMA pg_catalog",
		"CREATE INDEX ON $table (x)", "REINDEX TABLE $table", "ANALYZE $table", "SELECT * FROM mot_verify('$table')")
	{
		like(error_of($sql), qr/\Q$told\E.*\n.*\Q$wrong{$table}\E/s, "refused: $sql");
	}
	like(error_of("SELECT * FROM $table"), qr/HINT:.*TRUNCATE or DROP TABLE/, "... and $table says what to do");
}
for my $table (sort keys %minor)
{
	my $told = sprintf($changed, $table);
	for my $sql ("SELECT * FROM $table", "INSERT INTO $table (id, v, x) VALUES (0, 1, 1)", "ALTER FOREIGN TABLE $table ADD COLUMN z integer", "DROP INDEX ${table}_x", "ALTER FOREIGN TABLE $table ALTER v TYPE bigint", "ALTER TABLE $table RENAME TO other", "CREATE INDEX ON $table (x)")
	{
		like(error_of($sql), qr/\Q$told\E.*\n.*$minor{$table}.*\nHINT:.*REINDEX TABLE/s, "refused: $sql");
	}
}
is($node->safe_psql('postgres', 'SELECT count(*), sum(id), sum(v), sum(x), count(w) FROM back'), '200|20100|-20100|40200|200', 'what was changed and changed back is as it was');
is($node->safe_psql('postgres', 'SELECT count(*), sum(id), sum(v), count(ww) FROM named'), '200|20100|-20100|200', 'names are no matter');
like(error_of('SELECT * FROM new'), qr/has no storage.*TRUNCATE gives it empty storage/s, 'a table that was made meanwhile has no storage');
is($node->safe_psql('postgres', 'TRUNCATE new; INSERT INTO new VALUES (1, 2); SELECT * FROM new'), '1|2', '... until it is given some');

# ------------------------------------------------------------ taken over

$node->safe_psql('postgres', "REINDEX TABLE $_") for sort keys %minor;
is($node->safe_psql('postgres', "BEGIN; REINDEX TABLE more; ROLLBACK; INSERT INTO more VALUES (0, 0, 'new', 0, 'y'); SELECT count(*), count(y), sum(x) FROM more"), '201|1|40200', 'a column more');
is($node->safe_psql('postgres', 'INSERT INTO fewer VALUES (0, 0, 0); SELECT count(*), sum(x) FROM fewer'), '201|40200', 'a column fewer');
is($node->safe_psql('postgres', "INSERT INTO index VALUES (0, -1, 'twice', 0); SELECT count(*) FROM index WHERE v = -1"), '2', 'an index fewer: what it forbade is possible');
is($node->safe_psql('postgres', "INSERT INTO optional VALUES (0, 0, 'null', NULL); SELECT count(*) FROM optional WHERE x IS NULL"), '1', 'a NOT NULL fewer');
is($node->safe_psql('postgres', "TRUNCATE narrow; INSERT INTO narrow VALUES (1, 2, '3', 4); SELECT * FROM narrow"), '1|2|3|4', 'TRUNCATE helps where nothing else does');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE wide');

# ---------------------------------------------------------------- orphans

# this server has gone through one start: postgres, closed, and the database that is gone
my $log = '';
for (1 .. 300)
{
	$log = slurp_file($node->logfile, $logged);
	last if ($log =~ /OID \d+, which is not there any more, have been dropped/ && $log =~ /of database "postgres" is not in the catalogue/ && $log =~ /of database "closed" is not in the catalogue/);
	sleep 0.1;
}
like($log, qr/memory-optimized tables of the database with OID \d+, which is not there any more, have been dropped/, 'a database that has gone');
is(scalar(() = $log =~ /with OID \d+ of database "postgres" is not in the catalogue any more/g), 1, 'a table that has gone');
is(scalar(() = $log =~ /with OID \d+ of database "closed" is not in the catalogue any more/g), 1, '... also where nobody connects to');

sub content
{
	my $sql = join(' UNION ALL ', map { "SELECT '$_', count(*), sum(id), sum(v) FROM $_" } qw(back named more fewer index optional narrow new));
	return $node->safe_psql('postgres', "$sql ORDER BY 1") . "\n" . join("\n", map { $node->safe_psql('postgres', "SELECT coalesce(sum(problems), 0) FROM mot_verify('$_')") } qw(back named more fewer index optional narrow new));
}
my $before = content();
$node->stop('immediate');
$node->start;
is(content(), $before, 'all of it survives a crash');
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
$node->start;
is(content(), $before, '... and a checkpoint and a crash');
$logged = -s $node->logfile;
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS true');
is($node->safe_psql('closed', 'SELECT count(*), sum(id) FROM t'), '300|45150', 'the others are still there');

# those that could not be taken over: changed back without it
restart_with('');
$node->safe_psql('postgres', 'ALTER FOREIGN TABLE required ALTER w DROP NOT NULL; ALTER FOREIGN TABLE keyed ALTER v DROP NOT NULL');
restart_with('mot');
is($node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM required'), '200|-20100', 'changed back');
is($node->safe_psql('postgres', 'SELECT id FROM keyed WHERE v = -100'), '100', '... a key, too');

# nothing that is just being made is taken for an orphan
$node->stop;
$node->start;
my $psql = $node->background_psql('postgres');
$psql->query_safe("BEGIN; CREATE FOREIGN TABLE young (id integer PRIMARY KEY) SERVER mot_server; INSERT INTO young VALUES (1), (2)");
sleep 1.5;
$psql->query_safe('COMMIT');
$psql->quit;
is($node->safe_psql('postgres', 'SELECT count(*) FROM young'), '2', 'a table that was being made when the server had just started');
unlike(slurp_file($node->logfile, $logged), qr/not in the catalogue any more|not there any more/, 'there are no orphans now');

$node->stop;
done_testing();
