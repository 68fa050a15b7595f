# Streaming replication: what memory-optimized tables hold on a standby, on a
# standby of that, and after promotion.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
max_connections = 40
wal_keep_size = '64MB'
hot_standby_feedback = off
log_error_verbosity = verbose
});
$primary->start;

# Tables with all kinds of identity, each with a heap twin of the same columns.
my %columns = (
	by_number => 'id int PRIMARY KEY, v int, t text',
	by_text => 'a text, b int, v int, t text, PRIMARY KEY (a, b)',
	by_unique => 'id bigint NOT NULL UNIQUE, v int UNIQUE, t text',
	by_content => 'id int, v int, t text',
	many => 'id int PRIMARY KEY, v int, n numeric, u uuid, d date, t text');
my %indexes = (
	by_number => ['(v)'],
	by_text => ['(v, t)'],
	by_unique => [],
	by_content => [],
	many => [ '(n DESC, id)', '(u)', '(d, v)' ]);
my @tables = sort keys %columns;

$primary->safe_psql('postgres', 'CREATE EXTENSION mot');
foreach my $t (@tables)
{
	$primary->safe_psql('postgres', "CREATE TABLE heap_$t ($columns{$t}); CREATE FOREIGN TABLE $t ($columns{$t}) SERVER mot_server");
	$primary->safe_psql('postgres', "CREATE INDEX ON heap_$t $_; CREATE INDEX ON $t $_") foreach @{ $indexes{$t} };
}
$primary->safe_psql('postgres', 'INSERT INTO by_number SELECT i, i, NULL FROM generate_series(1, 500) i;
	INSERT INTO heap_by_number SELECT i, i, NULL FROM generate_series(1, 500) i');

$primary->backup('first');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'first', has_streaming => 1);
$standby->start;
$standby->backup('second');
my $cascade = PostgreSQL::Test::Cluster->new('cascade');
$cascade->init_from_backup($standby, 'second', has_streaming => 1);
$cascade->start;

# Everything in a table, or in its twin, as one value.
sub content
{
	my ($t) = @_;
	return "(SELECT count(*) || ' ' || coalesce(md5(string_agg(r::text, '' ORDER BY r::text)), '') FROM $t r)";
}

sub compare
{
	my ($node, $what, @which) = @_;
	@which = @tables unless @which;
	is( $node->safe_psql('postgres', 'SELECT ' . join(" || '\n' || ", map { "'$_ ' || (" . content($_) . " = " . content("heap_$_") . ")" } @which)),
		join("\n", map { "$_ true" } @which),
		"$what: tables and twins are the same");
	is( $node->safe_psql('postgres', join('; ', map { 'SELECT ' . content($_) } @which)),
		$primary->safe_psql('postgres', join('; ', map { 'SELECT ' . content($_) } @which)),
		"$what: and as on the primary") if $primary->{_pid};
}

sub catch_up
{
	$primary->wait_for_catchup($standby, 'replay');
	$standby->wait_for_catchup($cascade, 'replay', $standby->lsn('replay'));
}

# The same statement on a table and on its twin: in one transaction (mixed),
# and apart (the first then has no xid).
sub both
{
	my ($t, $sql, $apart) = @_;
	my $mot = $sql =~ s/<t>/$t/gr;
	my $heap = $sql =~ s/<t>/heap_$t/gr;
	return $apart ? "$mot;\n$heap;\n" : "BEGIN;\n$mot;\n$heap;\nCOMMIT;\n";
}

my $load = '';
foreach my $apart (0, 1)
{
	foreach my $t (@tables)
	{
		my $base = $apart * 10000;
		my $new = {
			by_number => 'i, i, repeat(i::text, i % 40)',
			by_text => "'k' || (i % 50), i, i, md5(i::text)",
			by_unique => "i, i * 2, CASE WHEN i % 3 = 0 THEN NULL ELSE repeat('x', i % 2000) END",
			by_content => "i % 700, i % 10, CASE WHEN i % 5 = 0 THEN NULL ELSE (i % 4)::text END",
			many => "i, i % 100, i::numeric / 7, md5(i::text)::uuid, DATE '2000-01-01' + i, repeat(md5(i::text), 100)"
		}->{$t};
		$load .= both($t, "INSERT INTO <t> SELECT $new FROM generate_series($base + 1001, $base + 3000) i", $apart);
		$load .= both($t, 'UPDATE <t> SET t = \'new \' || v WHERE v % 7 = 1', $apart);
		$load .= both($t, 'UPDATE <t> SET v = -v WHERE v % 11 = 1', $apart);
		$load .= both($t, 'UPDATE <t> SET t = NULL WHERE v % 13 = 1', $apart);
		$load .= both($t, "UPDATE <t> SET id = id + 1000000 WHERE id % 17 = 1", $apart) unless $t eq 'by_text';
		$load .= both($t, "UPDATE <t> SET a = a || 'x' WHERE b % 17 = 1", $apart) if $t eq 'by_text';
		$load .= both($t, 'DELETE FROM <t> WHERE v % 19 = 1', $apart);
		$load .= both($t, 'DELETE FROM <t> WHERE v IN (SELECT max(v) FROM <t>)', $apart);
		$load .= "BEGIN;\n" . both($t, 'UPDATE <t> SET v = v + 100000 WHERE v % 5 = 2', 1) . "SAVEPOINT s;\n"
		  . both($t, 'DELETE FROM <t>', 1) . "ROLLBACK TO s;\n" . both($t, 'UPDATE <t> SET v = v + 1 WHERE v > 100000', 1) . "COMMIT;\n"
		  unless $t eq 'by_unique';
		$load .= "BEGIN;\n" . both($t, 'DELETE FROM <t>', 1) . "ROLLBACK;\n";
	}
}
$primary->safe_psql('postgres', $load);
compare($primary, 'primary');
catch_up();
compare($standby, 'standby');
compare($cascade, 'standby of a standby');

# ------------------------------------------------------------------- indexes

# what the indexes find is what there is
foreach my $node ($standby, $cascade)
{
	my $missing = '';
	foreach my $q (
		'SELECT count(*) FROM heap_by_number h WHERE NOT EXISTS (SELECT FROM by_number m WHERE m.id = h.id AND m.t IS NOT DISTINCT FROM h.t)',
		'SELECT count(*) FROM heap_by_text h WHERE NOT EXISTS (SELECT FROM by_text m WHERE m.a = h.a AND m.b = h.b AND m.t IS NOT DISTINCT FROM h.t)',
		'SELECT count(*) FROM heap_by_unique h WHERE v IS NOT NULL AND NOT EXISTS (SELECT FROM by_unique m WHERE m.v = h.v AND m.id = h.id)',
		'SELECT count(*) FROM heap_many h WHERE NOT EXISTS (SELECT FROM many m WHERE m.u = h.u AND m.id = h.id)',
		'SELECT count(*) FROM heap_many h WHERE NOT EXISTS (SELECT FROM many m WHERE m.d = h.d AND m.v = h.v AND m.id = h.id)')
	{
		$missing .= $node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; $q") . ' ';
	}
	is($missing, '0 0 0 0 0 ', $node->name . ': indexes find every row');
}

# ------------------------------------------------------------------ reading only

foreach my $case (
	[ 'SELECT * FROM by_number WHERE id = 1 FOR UPDATE', qr/cannot execute SELECT FOR UPDATE in a read-only transaction/ ],
	[ 'INSERT INTO by_number VALUES (-1)', qr/cannot execute INSERT in a read-only transaction/ ],
	[ 'UPDATE by_number SET v = 0', qr/cannot execute UPDATE in a read-only transaction/ ],
	[ 'DELETE FROM by_number', qr/cannot execute DELETE in a read-only transaction/ ],
	[ 'TRUNCATE by_number', qr/cannot execute TRUNCATE TABLE in a read-only transaction|cannot execute TRUNCATE/ ],
	[ "COPY by_number FROM PROGRAM 'true'", qr/cannot execute COPY/ ],
	[ 'CREATE INDEX ON by_number (t)', qr/cannot execute CREATE INDEX in a read-only transaction/ ],
	[ 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM by_number', qr/cannot use serializable mode in a hot standby/ ])
{
	my ($ret, $out, $err) = $standby->psql('postgres', $case->[0]);
	like($err, $case->[1], "refused on a standby: $case->[0]");
}

# --------------------------------------------------------------- definitions

$primary->safe_psql('postgres', join('', map { both($_->[0], $_->[1], 1) }
		[ 'by_number', 'ALTER TABLE <t> ADD COLUMN extra int DEFAULT 42' ],
		[ 'by_number', "INSERT INTO <t> VALUES (-5, -5, 'with it', 7)" ],
		[ 'by_text', 'ALTER TABLE <t> DROP COLUMN t' ],
		[ 'by_text', "INSERT INTO <t> VALUES ('after', 1, 1)" ],
		[ 'by_unique', 'TRUNCATE <t>' ],
		[ 'by_unique', "INSERT INTO <t> SELECT i, i, 'again' FROM generate_series(1, 300) i" ],
		[ 'by_content', 'CREATE INDEX <t>_v ON <t> (v, id)' ],
		[ 'by_content', 'UPDATE <t> SET v = v + 1 WHERE id % 3 = 0' ]));
$primary->safe_psql('postgres', q{
	ALTER TABLE many ALTER COLUMN v TYPE bigint; ALTER TABLE heap_many ALTER COLUMN v TYPE bigint;
	BEGIN;
	TRUNCATE by_content; TRUNCATE heap_by_content;
	INSERT INTO by_content SELECT i, i, 'twice' FROM generate_series(1, 100) i, generate_series(1, 2);
	INSERT INTO heap_by_content SELECT i, i, 'twice' FROM generate_series(1, 100) i, generate_series(1, 2);
	SAVEPOINT s;
	TRUNCATE by_content; TRUNCATE heap_by_content;
	ROLLBACK TO s;
	DELETE FROM by_content WHERE ctid IN (SELECT min(ctid) FROM by_content GROUP BY id HAVING id < 50);
	DELETE FROM heap_by_content WHERE ctid IN (SELECT min(ctid) FROM heap_by_content GROUP BY id HAVING id < 50);
	COMMIT;
	BEGIN;
	CREATE FOREIGN TABLE gone (id int PRIMARY KEY) SERVER mot_server;
	INSERT INTO gone SELECT generate_series(1, 100);
	ROLLBACK;
	CREATE FOREIGN TABLE short (id int PRIMARY KEY) SERVER mot_server;
	INSERT INTO short SELECT generate_series(1, 100);
	DROP FOREIGN TABLE short;
	CREATE FOREIGN TABLE late (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE heap_late (id int PRIMARY KEY, v int);
	INSERT INTO late SELECT i, i FROM generate_series(1, 1000) i; INSERT INTO heap_late SELECT i, i FROM generate_series(1, 1000) i;
	CREATE INDEX late_v ON late (v);
	UPDATE late SET v = v * 2; UPDATE heap_late SET v = v * 2;
	DROP INDEX late_v;
	UPDATE late SET v = v + 1; UPDATE heap_late SET v = v + 1;
});
$primary->safe_psql('postgres', 'CREATE DATABASE other');
$primary->safe_psql('other', 'CREATE EXTENSION mot; CREATE FOREIGN TABLE t (id int PRIMARY KEY) SERVER mot_server; INSERT INTO t SELECT generate_series(1, 10)');
push @tables, 'late';
compare($primary, 'primary, definitions changed');
catch_up();
compare($standby, 'standby, definitions changed');
compare($cascade, 'standby of a standby, definitions changed');
is($standby->safe_psql('other', 'SELECT count(*) FROM t'), '10', 'another database is there, too');
$primary->safe_psql('postgres', 'DROP DATABASE other');
catch_up();
is($standby->safe_psql('postgres', "SELECT count(*) FROM mot_stat_get_tables() t WHERE to_jsonb(t)::text LIKE '%other%'"), '0', '... and gone');

# a transaction of more than one record, some of whose rows are longer than one
$primary->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO late SELECT i, i FROM generate_series(10001, 60000) i;
	INSERT INTO heap_late SELECT i, i FROM generate_series(10001, 60000) i;
	COMMIT;
	INSERT INTO by_number SELECT i, i, string_agg(md5(j::text || i), '') FROM generate_series(-20, -10) i, generate_series(1, 50000) j GROUP BY i;
	INSERT INTO heap_by_number SELECT * FROM by_number WHERE id BETWEEN -20 AND -10;
	BEGIN;
	UPDATE late SET v = -v;
	SAVEPOINT s;
	DELETE FROM late;
	ROLLBACK;
});
catch_up();
compare($standby, 'large transactions', 'late', 'by_number');

# ---------------------------------------------------------- restart of a standby

$standby->restart;
$primary->safe_psql('postgres', both('late', 'UPDATE <t> SET v = v + 3 WHERE id % 2 = 0', 1));
catch_up();
compare($standby, 'standby restarted');
$primary->safe_psql('postgres', 'CHECKPOINT; ' . both('late', 'UPDATE <t> SET v = v + 5 WHERE id % 3 = 0', 1));
catch_up();
$standby->safe_psql('postgres', 'CHECKPOINT');
$primary->safe_psql('postgres', both('late', 'DELETE FROM <t> WHERE id % 7 = 0', 1));
catch_up();
$standby->stop('immediate');
$standby->start;
$primary->safe_psql('postgres', both('late', 'UPDATE <t> SET v = v + 7 WHERE id % 5 = 0', 0));
catch_up();
compare($standby, 'standby restarted after a crash');

# ------------------------------------------------------------------- promotion

$primary->stop('fast');
$primary->{_pid} = undef;
$standby->promote;
$standby->safe_psql('postgres', both('late', 'UPDATE <t> SET v = v + 11 WHERE id % 5 = 0', 0) . both('by_unique', "INSERT INTO <t> VALUES (-1, -1, 'promoted')", 1));
compare($standby, 'promoted');
my ($ret, $out, $err) = $standby->psql('postgres', "INSERT INTO by_unique VALUES (-1, -2, 'again')");
like($err, qr/duplicate key value violates unique constraint/, '... where keys are unique');
$standby->wait_for_catchup($cascade, 'replay', $standby->lsn('insert'));
compare($cascade, 'standby of the promoted server');
$standby->restart;
compare($standby, 'promoted and restarted');
$standby->stop('immediate');
$standby->start;
compare($standby, 'promoted and crashed');

foreach my $node ($primary, $standby, $cascade)
{
	unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal|XX001|XX000/, $node->name . "'s log is clean");
}
$cascade->stop;
$standby->stop;
done_testing();
