# mot_verify finds damage, where it is, and only damage.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('verify');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE t (id int PRIMARY KEY, v int, s text) SERVER mot_server;
	CREATE INDEX t_v ON t (v);
	CREATE UNIQUE INDEX t_s ON t (s);
	INSERT INTO t SELECT i, i % 10, 'row ' || i FROM generate_series(1, 1000) i;
});

sub verify
{
	my ($table) = @_;
	return $node->safe_psql('postgres', "SELECT object, entries, problems, first_problem FROM mot_verify('$table')");
}

sub problems
{
	return $node->safe_psql('postgres', "SELECT object, problems FROM mot_verify('t') WHERE problems > 0");
}

is(verify('t'), "t|1000|0|\nt_pkey|1000|0|\nt_v|1000|0|\nt_s|1000|0|", 'a table in order');

# entries that await removal are in order, those of an older snapshot included
my $reader = $node->background_psql('postgres');
$reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($reader->query('SELECT count(*) FROM t'), '1000', 'an old snapshot');
$node->safe_psql(
	'postgres', q{
	UPDATE t SET v = v + 1, s = s || '!' WHERE id <= 100;
	UPDATE t SET s = replace(s, '!', '') WHERE id <= 50;
	DELETE FROM t WHERE id > 900;
	INSERT INTO t SELECT i, NULL, NULL FROM generate_series(901, 910) i;
});
is(problems(), '', 'superseded entries are no problem');
$reader->query('COMMIT');
$node->poll_query_until('postgres', q{SELECT bool_and(entries = 910) FROM mot_verify('t')});
is(verify('t'), "t|910|0|\nt_pkey|910|0|\nt_v|910|0|\nt_s|910|0|", '... and go');
$reader->quit;

# changes of the transaction that asks
is( $node->safe_psql(
		'postgres', q{
	BEGIN;
	DELETE FROM t WHERE id <= 10;
	UPDATE t SET v = -v, s = 'own ' || s WHERE id <= 20;
	INSERT INTO t SELECT i, i FROM generate_series(2001, 2100) i;
	SELECT object, problems FROM mot_verify('t') WHERE problems > 0 OR object = 't'::regclass;
	ROLLBACK;}),
	't|0', 'own changes are no problem');
is( $node->safe_psql(
		'postgres', q{
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	UPDATE t SET v = -v, s = 'own ' || s WHERE id <= 20;
	SELECT sum(problems) FROM mot_verify('t');
	ROLLBACK;}),
	'0', '... at SERIALIZABLE, where they wait for the commit');
is(problems(), '', 'nor is a rollback');

# while others write to other tables and read this one
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE other (id int PRIMARY KEY, v int) SERVER mot_server');
$node->safe_psql(
	'postgres', q{
	BEGIN;
	INSERT INTO other SELECT i, 0 FROM generate_series(1, 1000) i;
	COMMIT;
	SELECT * FROM mot_verify('other');
	UPDATE other SET v = 1, id = id + 1000;
});
is($node->safe_psql('postgres', "SELECT sum(problems) FROM mot_verify('other')"), '0', 'just after a change of all keys');

# writers wait for the end of the transaction, readers do not
my $verifier = $node->background_psql('postgres');
$verifier->query('BEGIN');
is($verifier->query("SELECT sum(problems) FROM mot_verify('t')"), '0', 'a transaction verifies');
my ($ret, $out, $err) = $node->psql('postgres', "SET lock_timeout = '100ms'; UPDATE t SET v = 0 WHERE id = 1");
like($err, qr/canceling statement due to lock timeout/, 'a writer waits');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '910', 'a reader does not');
$verifier->query('COMMIT');
$verifier->quit;

# who may, and what
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN; GRANT SELECT ON t TO somebody; CREATE TABLE heap (id int)');
($ret, $out, $err) = $node->psql('postgres', "SET ROLE somebody; SELECT * FROM mot_verify('t')");
like($err, qr/ERROR:  must be owner of foreign table t/, 'only the owner may');
($ret, $out, $err) = $node->psql('postgres', "SELECT * FROM mot_verify('heap')");
like($err, qr/ERROR:  "heap" is not a memory-optimized table/, 'heap tables are not for it');
($ret, $out, $err) = $node->psql('postgres', 'SELECT * FROM mot_verify(1::regclass)');
isnt($ret, 0, 'nor are tables that do not exist');

# damage
SKIP:
{
	skip 'not a build with fault points', 9 unless $ENV{MOT_FAULT_POINTS};

	$node->safe_psql('postgres', q{
		SET mot.fault = 'damage-entry-missing:skip:2';
		INSERT INTO t VALUES (5000, 1, 'has no entry');});
	my @line = grep { /\|[1-9]\d*\|[a-z]/ } split(/\n/, verify('t'));
	is(scalar(@line), 1, 'an entry that is missing: one object has a problem');
	like($line[0], qr/^t_\w+\|910\|1\|row \(\d+,\d+\) has no entry$/, '... which index, and which row');
	my ($index, $tid) = $line[0] =~ /^(\w+).*row (\(\d+,\d+\))/;
	is($node->safe_psql('postgres', "SELECT id FROM t WHERE ctid = '$tid'"), '5000', '... by its ctid');
	$node->safe_psql('postgres', "REINDEX INDEX $index") if $index ne 't_pkey';
	is(problems(), '', 'REINDEX mends an index');

	$node->safe_psql('postgres', q{
		SET mot.fault = 'damage-entry-stays:skip';
		UPDATE t SET v = 77 WHERE id BETWEEN 31 AND 40;});
	like(verify('t'), qr/^t_v\|921\|10\|10 entries are not their row's key, and 0 await removal$/m, 'entries that should have gone');
	unlike(verify('t'), qr/^t(_s|_pkey)?\|\d+\|[1-9]/m, '... of one index only');
	$node->safe_psql('postgres', 'REINDEX INDEX t_v');
	is(problems(), '', 'REINDEX mends that, too');
}

is($node->safe_psql('postgres', "DROP FOREIGN TABLE other; SELECT sum(problems) FROM mot_verify('t')"), '0', 'in order at the end');
$node->stop;
done_testing();
