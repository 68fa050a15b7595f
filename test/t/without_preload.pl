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

my %tables = map { $_ => 1 } qw(narrow wide lengths scales back more fewer index required optional renamed keyed gone);
$node->safe_psql('postgres', 'CREATE EXTENSION mot');
for my $table (sort keys %tables)
{
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $table (id integer PRIMARY KEY, v integer, w text, x integer NOT NULL) SERVER mot_server;"
		  . "CREATE UNIQUE INDEX ${table}_v ON $table (v); CREATE INDEX ${table}_x ON $table (id DESC); INSERT INTO $table SELECT g, -g, 'w' || g, g * 2 FROM generate_series(1, 200) g");
}
$node->safe_psql('postgres', "ALTER FOREIGN TABLE lengths ALTER w TYPE varchar(5); ALTER FOREIGN TABLE lengths ALTER w TYPE varchar(10);
	ALTER FOREIGN TABLE back ALTER w TYPE varchar(20); ALTER FOREIGN TABLE back ALTER w TYPE varchar(30); ALTER FOREIGN TABLE scales ALTER x TYPE numeric(10, 2)");
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
ALTER FOREIGN TABLE lengths ALTER w TYPE varchar(3);
ALTER FOREIGN TABLE scales ALTER x TYPE numeric(10, 4);
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
	lengths => 'Column "w" is of type character varying(3), but its values have been stored as character varying(10).',
	scales => 'Column "x" is of type numeric(10,4), but its values have been stored as numeric(10,2).',
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
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
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

# ------------------------------------------- what is said of rows, not looked at

my %said = (
	checked => [ 'ALTER FOREIGN TABLE checked ADD CONSTRAINT positive CHECK (v > 0)', 'ALTER FOREIGN TABLE checked DROP CONSTRAINT positive', 'The rows have not been checked for "positive"', 'check constraint "positive".*violated' ],
	validated => [ 'ALTER FOREIGN TABLE validated VALIDATE CONSTRAINT later', 'ALTER FOREIGN TABLE validated DROP CONSTRAINT later', 'The rows have not been checked for "later"', 'check constraint "later".*violated' ],
	attached => [ 'ALTER TABLE whole ATTACH PARTITION attached FOR VALUES FROM (1) TO (100)', 'ALTER TABLE whole DETACH PARTITION attached', 'not been checked for the bounds of partitions', 'partition constraint.*violated' ],
	others => [ 'CREATE TABLE beside PARTITION OF divided FOR VALUES FROM (1) TO (10)', 'DROP TABLE beside', 'not been checked for the bounds of partitions', 'partition constraint.*violated' ],
	domained => [ 'ALTER DOMAIN small ADD CONSTRAINT smaller CHECK (value < 100)', 'ALTER DOMAIN small DROP CONSTRAINT smaller', 'The rows have not been checked for "smaller"', 'violate' ],
	nulls => [ 'ALTER DOMAIN base SET NOT NULL', 'ALTER DOMAIN base DROP NOT NULL', 'The rows have not been checked for "base"', 'contains null' ],
	filled => [ 'ALTER FOREIGN TABLE filled ADD COLUMN y integer DEFAULT 9', 'ALTER FOREIGN TABLE filled DROP COLUMN y', 'default or generated values', 'default or generated values' ],
	typed => [ 'ALTER FOREIGN TABLE typed ADD COLUMN y preset', 'ALTER FOREIGN TABLE typed DROP COLUMN y', 'default or generated values', 'default or generated values' ],
	computed => [ 'ALTER FOREIGN TABLE computed ADD COLUMN y integer GENERATED ALWAYS AS (v * 2) STORED', 'ALTER FOREIGN TABLE computed DROP COLUMN y', 'default or generated values', 'default or generated values' ],);
my %true = (
	checks => 'ALTER FOREIGN TABLE checks ADD CONSTRAINT negative CHECK (v < 0)',
	attaches => 'ALTER TABLE whole ATTACH PARTITION attaches FOR VALUES FROM (1000) TO (2000)',
	defaults => 'CREATE TABLE beside2 PARTITION OF split FOR VALUES FROM (300) TO (400)',
	domains => 'ALTER DOMAIN tiny ADD CONSTRAINT tinier CHECK (value < 1000)',);

sub said_setup
{
	$node->safe_psql('postgres', 'DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE EXTENSION IF NOT EXISTS mot;'
		  . 'CREATE DOMAIN small AS integer; CREATE DOMAIN base AS integer; CREATE DOMAIN over AS base; CREATE DOMAIN tiny AS integer; CREATE DOMAIN preset AS integer DEFAULT 9;'
		  . 'CREATE TABLE whole (id integer, v integer) PARTITION BY RANGE (id); CREATE TABLE divided (id integer, v integer) PARTITION BY RANGE (id); CREATE TABLE split (id integer, v integer) PARTITION BY RANGE (id);'
		  . 'CREATE FOREIGN TABLE others PARTITION OF divided DEFAULT SERVER mot_server; CREATE FOREIGN TABLE defaults PARTITION OF split DEFAULT SERVER mot_server;'
		  . join(';', map { "CREATE FOREIGN TABLE $_ (id integer, v integer) SERVER mot_server" } qw(checked validated attached filled typed computed checks attaches))
		  . ';CREATE FOREIGN TABLE domained (id small, v integer) SERVER mot_server; CREATE FOREIGN TABLE nulls (id integer, v over) SERVER mot_server; CREATE FOREIGN TABLE domains (id tiny, v integer) SERVER mot_server;'
		  . join(';', map { "INSERT INTO $_ SELECT g + " . ($_ eq 'attaches' ? 1000 : 0) . ', ' . ($_ eq 'nulls' ? 'NULL' : '-g') . ' FROM generate_series(1, 200) g' } keys %said, keys %true)
		  . ';ALTER FOREIGN TABLE validated ADD CONSTRAINT later CHECK (v > 0) NOT VALID');
}

said_setup();
my $sums = join(' UNION ALL ', map { "SELECT '$_', count(*), sum(id), sum(v) FROM $_" } sort(keys %said, keys %true)) . ' ORDER BY 1';
my $were = $node->safe_psql('postgres', $sums);
restart_with('');
$node->safe_psql('postgres', join(';', map { $said{$_}[0] } sort keys %said) . ';' . join(';', map { $true{$_} } sort keys %true));
restart_with('mot');
for my $table (sort keys %said)
{
	like(error_of("SELECT * FROM $table"), qr/$said{$table}[2]/, "$table is refused");
	like(error_of("REINDEX TABLE $table"), qr/$said{$table}[3]/, '... and rows that are something else cannot be taken over');
	like(error_of("SELECT * FROM $table"), qr/$said{$table}[2]/, '... which changes nothing');
}
like(error_of('SELECT * FROM whole'), qr/not been checked for the bounds/, 'so is what they are partitions of');
for my $table (sort keys %true)
{
	like(error_of("SELECT * FROM $table"), qr/The rows have not been checked.*REINDEX TABLE/s, "$table is refused");
	$node->safe_psql('postgres', "REINDEX TABLE $table");
	is($node->safe_psql('postgres', "SELECT count(*), sum(v) FROM $table"), '200|-20100', '... until its rows have been looked at');
}
is($node->safe_psql('postgres', 'ALTER FOREIGN TABLE checked DROP CONSTRAINT positive; SELECT count(*), sum(v) FROM checked'), '200|-20100', 'a constraint that goes');
restart_with('');
$node->safe_psql('postgres', join(';', map { $said{$_}[1] } grep { $_ ne 'checked' } sort keys %said));
restart_with('mot');
$node->safe_psql('postgres', "REINDEX TABLE $_") for qw(filled typed computed);
is($node->safe_psql('postgres', $sums), $were, 'changed back');

# with mot the server is told what is wrong, and nothing has to be taken over afterwards
said_setup();
for my $table (grep { !/filled|typed|computed/ } sort keys %said)
{
	like(error_of($said{$table}[0]), qr/ERROR:  .*(violated|contain)/, "with mot: $said{$table}[0]");
	$node->safe_psql('postgres', 'UPDATE ' . $table . ' SET v = 7' . ($table =~ /attached|others|domained/ ? ', id = id + ' . ($table eq 'others' ? 10 : -101) : ''));
	$node->safe_psql('postgres', 'UPDATE attached SET id = 50') if $table eq 'attached';
	$node->safe_psql('postgres', $said{$table}[0]);
}
$node->safe_psql('postgres', $said{$_}[0]) for qw(filled typed computed);
$node->safe_psql('postgres', $true{$_}) for sort keys %true;
$were = $node->safe_psql('postgres', $sums);
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $sums), $were, 'all of it is known after a crash');
$node->safe_psql('postgres', 'ALTER TABLE whole DETACH PARTITION attaches CONCURRENTLY; ALTER TABLE whole DETACH PARTITION attached; ALTER FOREIGN TABLE checked DROP CONSTRAINT positive; DROP TABLE beside; INSERT INTO checked VALUES (1, -1); INSERT INTO attached VALUES (1000, 7); INSERT INTO others VALUES (5, 7)');
$were = $node->safe_psql('postgres', $sums);
$node->restart;
is($node->safe_psql('postgres', $sums), $were, '... and what is detached or dropped');
restart_with('');
$node->safe_psql('postgres', "$said{checked}[0]; $said{attached}[0]; $said{others}[0]");
restart_with('mot');
like(error_of("SELECT * FROM $_"), qr/The rows have not been checked/, "$_: the same once more, without mot") for qw(checked attached others);

# what goes with mot, and comes again without it
said_setup();
$node->safe_psql('postgres', "DELETE FROM $_") for qw(others domained);
$node->safe_psql('postgres', "$said{$_}[0]; $said{$_}[1]") for qw(others domained);
$node->safe_psql('postgres', 'INSERT INTO divided VALUES (5, 5); INSERT INTO domained VALUES (500)');
restart_with('');
$node->safe_psql('postgres', $said{$_}[0]) for qw(others domained);
restart_with('mot');
like(error_of("SELECT * FROM $_"), qr/The rows have not been checked|not been checked for the bounds/, "$_: gone with mot, come without it") for qw(others domained);

# what goes without mot, and comes again without it: what rows came with it in between, nobody knows
said_setup();
$node->safe_psql('postgres', "DELETE FROM checked; $said{checked}[0]");
restart_with('');
$node->safe_psql('postgres', $said{checked}[1]);
restart_with('mot');
$node->safe_psql('postgres', 'INSERT INTO checked VALUES (1, -1)');
restart_with('');
$node->safe_psql('postgres', $said{checked}[0]);
restart_with('mot');
like(error_of('SELECT * FROM checked'), qr/The rows have not been checked for "positive"/, 'gone and come without mot');


# --------------------------------- the same goes and comes again, and rows in between

# each: made with mot; taken away; rows that would not have been allowed; put back without mot
my %same = (
	others => [ 'CREATE TABLE beside (id integer, v integer); ALTER TABLE divided ATTACH PARTITION beside FOR VALUES FROM (1000) TO (1010)', 'ALTER TABLE divided DETACH PARTITION beside', 'INSERT INTO divided VALUES (1005, 5)', 'ALTER TABLE divided ATTACH PARTITION beside FOR VALUES FROM (1000) TO (1010)' ],
	attached => [ 'DELETE FROM attached WHERE id >= 100; ALTER TABLE whole ATTACH PARTITION attached FOR VALUES FROM (1) TO (100)', 'ALTER TABLE whole DETACH PARTITION attached', 'INSERT INTO attached VALUES (1000, 7)', 'ALTER TABLE whole ATTACH PARTITION attached FOR VALUES FROM (1) TO (100)' ],
	below => [ 'CREATE TABLE middle (id integer, v integer) PARTITION BY RANGE (v); CREATE FOREIGN TABLE below PARTITION OF middle DEFAULT SERVER mot_server; ALTER TABLE whole ATTACH PARTITION middle FOR VALUES FROM (5000) TO (6000)', 'ALTER TABLE whole DETACH PARTITION middle', 'INSERT INTO middle VALUES (1, 7)', 'ALTER TABLE whole ATTACH PARTITION middle FOR VALUES FROM (5000) TO (6000)' ],
	nulls => [ 'UPDATE nulls SET v = 1; ALTER DOMAIN base SET NOT NULL', 'ALTER DOMAIN base DROP NOT NULL', 'INSERT INTO nulls VALUES (1, NULL)', 'ALTER DOMAIN base SET NOT NULL' ],);
my @same = sort keys %same;

for my $taken ('without', 'with')
{
	said_setup();
	$node->safe_psql('postgres', $same{$_}[0]) for @same;
	# somebody who has had the tables before
	my $other = $node->background_psql('postgres');
	$other->query_safe(join(';', map { "SELECT count(*) FROM $_; DELETE FROM $_ WHERE false; INSERT INTO $_ SELECT * FROM $_ LIMIT 1" } @same));
	if ($taken eq 'without')
	{
		$other->quit;
		restart_with('');
		$node->safe_psql('postgres', $same{$_}[1]) for @same;
		restart_with('mot');
	}
	else
	{
		$node->safe_psql('postgres', $same{$_}[1]) for @same;
	}
	# a transaction that fails leaves no rows
	$node->psql('postgres', "BEGIN; $same{$_}[2]; ROLLBACK") for @same;
	if ($taken eq 'without')
	{
		# two at a time, in opposite order
		my @sessions = map { $node->background_psql('postgres') } 1 .. 2;
		$sessions[0]->query_safe(join(';', 'BEGIN', map { $same{$_}[2] } @same));
		$sessions[1]->query_safe(join(';', 'BEGIN', map { $same{$_}[2] } reverse @same));
		$_->query_safe('COMMIT') for @sessions;
		$_->quit for @sessions;
	}
	else
	{
		$other->query_safe($same{$_}[2]) for @same;
		$other->quit;
	}
	# nor does it make a difference that the server crashes, or has a checkpoint
	$node->safe_psql('postgres', 'CHECKPOINT') if $taken eq 'with';
	$node->stop('immediate');
	$node->start;
	restart_with('');
	$node->safe_psql('postgres', $same{$_}[3]) for @same;
	restart_with('mot');
	for my $table (@same)
	{
		like(error_of("SELECT * FROM $table"), qr/The rows have not been checked|not been checked for the bounds/, "$table: the same goes $taken mot, and comes again without it");
	}
}

# if no rows have come meanwhile, all is as it was
said_setup();
$node->safe_psql('postgres', $same{$_}[0]) for @same;
restart_with('');
$node->safe_psql('postgres', $same{$_}[1]) for @same;
restart_with('mot');
$node->psql('postgres', "BEGIN; $same{$_}[2]; ROLLBACK") for @same;
$node->safe_psql('postgres', "SELECT count(*) FROM $_") for @same;
# (in other words, too)
for my $words ('the same', 'the same in other words')
{
	restart_with('');
	$node->safe_psql('postgres', $words eq 'the same' ? $same{$_}[3] : "$same{$_}[1]; " . ($same{$_}[3] =~ s/FROM \((\d+)\)/\n\tFROM ( 1 * $1 )/r)) for @same;
	restart_with('mot');
	unlike(error_of("SELECT count(*) FROM $_"), qr/ERROR/, "$_: $words again, and no rows in between") for @same;
}

# Stored definitions are looked at by commits to tables that may be stale, by no others.
SKIP:
{
	skip 'not a build with fault points', 5 unless $ENV{MOT_FAULT_POINTS};
	$node->safe_psql('postgres', 'CREATE DOMAIN needed AS integer NOT NULL; CREATE FOREIGN TABLE stale (v needed) SERVER mot_server;'
		  . 'CREATE FOREIGN TABLE altered (v integer CHECK (v > 0)) SERVER mot_server; CREATE FOREIGN TABLE plain (v integer) SERVER mot_server; INSERT INTO stale VALUES (1)');
	my $session = $node->background_psql('postgres');
	my $looked = sub {
		my ($sql) = @_;
		my $from = -s $node->logfile;
		$session->query_safe($sql);
		return scalar(() = slurp_file($node->logfile, $from) =~ /fault point "renew-definitions" reached/g);
	};
	my $writes = 'INSERT INTO plain VALUES (1); ' x 5;
	$session->query_safe("SET mot.fault = 'renew-definitions:log'; PREPARE p AS INSERT INTO stale VALUES (\$1); SELECT count(*) FROM altered; $writes");
	is($looked->($writes), 0, 'a commit looks at no definition');
	$node->safe_psql('postgres', 'ALTER DOMAIN needed DROP NOT NULL; ALTER FOREIGN TABLE altered ALTER v SET DEFAULT 3');
	cmp_ok($looked->('SELECT count(*) FROM stale; BEGIN; ' . ('EXECUTE p(1); ' x 20) . "ROLLBACK; $writes"), '<=', 1, '... but once, when some have changed');
	is($looked->("SELECT count(*) FROM stale; $writes"), 0, '... and no more, with one still stale that is only read, and another not looked at');
	is($looked->('BEGIN; EXECUTE p(NULL); COMMIT'), 1, '... and when rows come into that');
	$session->quit;
	restart_with('');
	$node->safe_psql('postgres', 'ALTER DOMAIN needed SET NOT NULL');
	restart_with('mot');
	like(error_of('SELECT * FROM stale'), qr/The rows have not been checked for "needed"/, '... which are told from those before');
}

$node->stop;
done_testing();
