# Random statements, the same on a heap table and on its memory-optimized
# twin: DDL and DML in transactions with savepoints.  Results and SQLSTATEs
# have to be the same all the way.  Foreign tables first, then ordinary ones, which have
# indexes that foreign ones have not.  Then several sessions, with old snapshots
# at all levels (twins/snapshots.py).

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# MOT_TWINS=first:last runs other seeds than the usual ones, and
# MOT_SNAPSHOT_TWINS the same with several sessions
my ($first, $last) = split /:/, $ENV{MOT_TWINS} || '1:12';
my $stories = $ENV{MOT_SNAPSHOT_TWINS} || '1:16';
my $python = '/usr/bin/python3';    # Debian's, which has psycopg2
my $statements = 300;

my $node = PostgreSQL::Test::Cluster->new('twins');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
fsync = off
# the server's own assertions trip over heap tables with wal_level = minimal
wal_level = replica
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot');

sub pick { return $_[ int(rand(@_)) ]; }
sub number { return 1 + int(rand(20)); }

my @types = ('int', 'bigint', 'numeric', 'text', 'varchar(20)');

sub rows
{
	return join ', ', map { sprintf "(%d, %s, %s)", number(), pick('NULL', number()), pick('NULL', number()) } 1 .. 1 + int(rand(4));
}

# what only ordinary tables have
sub more
{
	my ($column, $value, $name) = @_;

	return (
		"CREATE INDEX $name ON t ((lower(${column}::text)), id)",
		"CREATE UNIQUE INDEX $name ON t ((id::text || coalesce(${column}::text, '')), b) INCLUDE (a)",
		("CREATE UNIQUE INDEX $name ON t ($column) WHERE a::text > '5'") x 2,
		"CREATE INDEX $name ON t (b, (a::text || 'x')) WHERE $column IS NOT NULL",
		"CREATE INDEX CONCURRENTLY $name ON t ($column DESC, (b::text)) WHERE a IS NOT NULL",
		"CREATE UNIQUE INDEX $name ON t ((a::text)) NULLS NOT DISTINCT WHERE $column IS NULL",
		"DROP INDEX CONCURRENTLY $name",
		"ALTER TABLE t ADD CONSTRAINT $name UNIQUE ($column) DEFERRABLE INITIALLY DEFERRED",
		"ALTER TABLE t ADD CONSTRAINT $name UNIQUE ($column, b) DEFERRABLE",
		"ALTER TABLE t ADD CONSTRAINT d$name UNIQUE USING INDEX $name DEFERRABLE INITIALLY DEFERRED",
		"ALTER TABLE t ADD CONSTRAINT $name UNIQUE NULLS NOT DISTINCT ($column, b)",
		"ALTER TABLE t ADD CONSTRAINT $name EXCLUDE USING btree ($column WITH =, (b::text) WITH =) WHERE (a IS NOT NULL)",
		"ALTER TABLE t ADD CONSTRAINT $name EXCLUDE USING btree ($column WITH =) DEFERRABLE INITIALLY DEFERRED",
		('SET CONSTRAINTS ALL IMMEDIATE') x 2,
		'SET CONSTRAINTS ALL DEFERRED',
		"INSERT INTO t (id, a, b) VALUES ($value, $value, 1) ON CONFLICT ($column) WHERE a::text > '5' DO UPDATE SET b = 2",
		("SELECT * FROM t WHERE lower(${column}::text) = '$value' ORDER BY t::text") x 3,
		("SELECT * FROM t WHERE $column = '$value' AND a::text > '5' ORDER BY t::text") x 3,
		"SELECT * FROM t WHERE a::text || 'x' < '${value}x' AND $column IS NOT NULL AND b = '1' ORDER BY t::text",
		("UPDATE t SET a = a::int + 1 WHERE $column = '$value'") x 2);
}

sub statement
{
	my ($ordinary) = @_;
	my $column = pick('id', 'a', 'b');
	my $value = number();
	my $extra = 'x' . (1 + int(rand(3)));
	my $name = 'k' . (1 + int(rand(3)));
	my $type = pick(@types);

	return pick(
		('INSERT INTO t (id, a, b) VALUES ' . rows()) x 6,
		("UPDATE t SET $column = " . number() . " WHERE id::text = '$value'") x 3,
		"UPDATE t SET $extra = 5 WHERE id::text < '$value'",
		("DELETE FROM t WHERE id::text = '$value'") x 2,
		"DELETE FROM t WHERE $column IS NULL",
		"INSERT INTO t (id, a) VALUES ($value, $value) ON CONFLICT DO NOTHING",
		('SELECT * FROM t ORDER BY t::text') x 4,
		("SELECT * FROM t WHERE $column = '$value' ORDER BY t::text") x 4,
		("SELECT * FROM t WHERE $column > '$value' ORDER BY t::text") x 2,
		"SELECT $column FROM t ORDER BY $column DESC NULLS LAST",
		"SELECT $column FROM t WHERE $column IS NULL",
		"SELECT count(*), min(id), max(a) FROM t",
		"ALTER TABLE t ADD COLUMN $extra int DEFAULT $value",
		"ALTER TABLE t ADD COLUMN $extra $type, ADD UNIQUE ($extra)",
		"ALTER TABLE t ADD COLUMN IF NOT EXISTS $extra int NOT NULL DEFAULT 1 CHECK ($extra > 0)",
		"ALTER TABLE t ADD COLUMN $extra int GENERATED ALWAYS AS (length('q')) STORED",
		("ALTER TABLE t DROP COLUMN IF EXISTS $extra") x 2,
		("ALTER TABLE t ALTER $column TYPE $type USING ${column}::text::$type") x 2,
		"ALTER TABLE t ALTER $column TYPE $type",
		"ALTER TABLE t ALTER $column SET NOT NULL",
		("ALTER TABLE t ALTER $column DROP NOT NULL") x 2,
		"ALTER TABLE t ALTER $column SET DEFAULT 3",
		"ALTER TABLE t ADD CONSTRAINT c CHECK ($column IS NOT NULL OR id IS NOT NULL)",
		"ALTER TABLE t ADD CONSTRAINT c CHECK (length(b::text) < 2) NOT VALID",
		'ALTER TABLE t VALIDATE CONSTRAINT c',
		'ALTER TABLE t DROP CONSTRAINT IF EXISTS c',
		# which of nulls and duplicates is found first is not the point
		"DELETE FROM t WHERE $column IS NULL; ALTER TABLE t ADD PRIMARY KEY ($column)",
		"ALTER TABLE t ADD CONSTRAINT $name UNIQUE ($column, a)",
		"ALTER TABLE t ADD CONSTRAINT u$name UNIQUE USING INDEX $name",
		"ALTER TABLE t DROP CONSTRAINT IF EXISTS $name",
		'ALTER TABLE t DROP CONSTRAINT IF EXISTS t_pkey',
		"CREATE INDEX $name ON t ($column " . pick('', 'DESC', 'NULLS FIRST') . ', b)',
		"CREATE UNIQUE INDEX IF NOT EXISTS $name ON t ($column)",
		("DROP INDEX IF EXISTS $name") x 2,
		'REINDEX TABLE t',
		'TRUNCATE t',
		"ALTER TABLE t RENAME COLUMN $extra TO y",
		'ALTER TABLE t RENAME COLUMN y TO ' . $extra,
		'BEGIN', 'BEGIN', 'BEGIN', 'COMMIT', 'COMMIT', 'ROLLBACK',
		'SAVEPOINT s', 'SAVEPOINT s', 'ROLLBACK TO s', 'RELEASE s',
		$ordinary ? more($column, $value, $name) : (),
		'CREATE');
}

sub script
{
	my ($seed, $create, $ordinary) = @_;

	srand($seed);
	my $sql = "SET client_min_messages = error;\n" . ($ordinary ? "SET enable_seqscan = off;\n" : '') . "$create;\n";
	for (1 .. $statements)
	{
		my $stmt = statement($ordinary);
		$stmt = "DROP TABLE IF EXISTS t; $create" if $stmt eq 'CREATE';
		$sql .= "$stmt;\n";
	}
	return $sql . "COMMIT;\nSELECT * FROM t ORDER BY t::text;\nDROP TABLE IF EXISTS t;\n";
}

sub run
{
	my ($seed, $create, $rollback, $ordinary) = @_;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/twin_$seed.sql";
	my $psql = $node->installed_command('psql');
	my $connstr = $node->connstr('postgres');

	unlink $file;
	append_to_file($file,
		"\\set VERBOSITY sqlstate\n\\set ON_ERROR_ROLLBACK $rollback\n" . script($seed, $create, $ordinary));

	# one stream, so that errors have their place among the results
	my $out = qx{'$psql' -X -A -t -a -d "$connstr" -f '$file' 2>&1};
	$out =~ s/^psql:[^:]*:(\d+): //mg;
	$out =~ s/CREATE (FOREIGN )?TABLE.*//g;
	# of several rows that cannot be, either kind may be the first
	$out =~ s/ERROR:  23(505|514|P01)/ERROR:  23505 or 23514/g;
	return $out;
}

for my $turn (map { [ $_, 0 ], [ $_, 1 ] } $first .. $last)
{
	my ($seed, $ordinary) = @$turn;
	my $rollback = $seed % 3 ? 'on' : 'off';
	my $heap = run($seed, 'CREATE TABLE t (id int, a int, b int)', $rollback, $ordinary);
	my $mot = run($seed, $ordinary ? 'CREATE TABLE t (id int, a int, b int) USING mot' :
		'CREATE FOREIGN TABLE t (id int, a int, b int) SERVER mot_server', $rollback, $ordinary);

	ok($mot eq $heap, "seed $seed, " . ($ordinary ? 'ordinary' : 'foreign'));
	next if $mot eq $heap;

	# where they part
	my @heap = split /\n/, $heap;
	my @mot = split /\n/, $mot;
	my $i = 0;
	$i++ while $heap[$i] eq $mot[$i];
	diag(join "\n", "heap:", @heap[ ($i > 10 ? $i - 10 : 0) .. $i + 3 ], "mot:", @mot[ $i .. $i + 3 ]);
}

$ENV{PYTHONDONTWRITEBYTECODE} = 1;
my $told = '';
my $same = IPC::Run::run([ $python, 'twins/snapshots.py', '--dsn', $node->connstr('postgres'), '--seeds', $stories ],
	'>', \$told, '2>&1');
ok($same, "sessions with old snapshots, stories $stories");
diag($told) unless $same;

is($node->safe_psql('postgres', 'SELECT count(*) FROM mot_stat_get_tables()'), '0', 'no table is left');
$node->stop;
done_testing();
