# A prepared transaction for which there is too little memory at the next start: nobody can change
# memory-optimized tables, what is there can be read, and ROLLBACK PREPARED gets out of it, since
# that needs nothing to be restored.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared;
use Test::More;

my $node = make_node('primary', "mot.max_memory = '256MB'\nmax_prepared_transactions = 10\n");
sql(q{
	CREATE ROLE nobody;
	CREATE TABLE large (id int PRIMARY KEY, t text) USING mot;
	CREATE FOREIGN TABLE small (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE cold (id int PRIMARY KEY, v int);
	INSERT INTO large SELECT i, 'before' FROM generate_series(1, 10) i;
	INSERT INTO small SELECT i, i FROM generate_series(1, 10) i;
	INSERT INTO cold SELECT i, i FROM generate_series(1, 10) i});

sub memory
{
	my ($mb) = @_;
	$node->append_conf('postgresql.conf', "mot.max_memory = '${mb}MB'\n");
	return;
}

sub prepare_both
{
	memory(256);
	$node->restart;
	sql(q{
		BEGIN; INSERT INTO large SELECT i, repeat('x', 800) FROM generate_series(1001, 100000) i;
		UPDATE small SET v = 0 WHERE id = 1; UPDATE cold SET v = 0 WHERE id = 1; PREPARE TRANSACTION 'large'});
	sql(q{BEGIN; UPDATE small SET v = v + 100 WHERE id = 2; UPDATE cold SET v = v + 100 WHERE id = 2; PREPARE TRANSACTION 'small'});
	return;
}

sub check_stuck
{
	my ($when) = @_;
	is(sql('SELECT (SELECT sum(v) FROM small), (SELECT sum(v) FROM cold), (SELECT count(*) FROM large)'), '55|55|10', "$when: what is there can be read");
	fails('UPDATE small SET v = v WHERE id = 3', qr/prepared transaction with number \d+ could not be restored/, "$when: not changed");
	is(sql('UPDATE cold SET v = v WHERE id = 3 RETURNING v'), '3', "$when: but heap tables");
	fails("COMMIT PREPARED 'large'", qr/prepared transaction with number \d+ could not be restored/, "$when: it cannot be committed");
	return;
}

sub check_over
{
	my ($when) = @_;
	is(sql("UPDATE small SET v = v WHERE id = 1; INSERT INTO large VALUES (1001, 'free'); DELETE FROM large WHERE id = 1001; SELECT count(*) FROM large"),
		'10', "$when: everything can be changed again");
	fails("SELECT 1 FROM small WHERE id = 2 FOR UPDATE NOWAIT", qr/could not obtain lock on row/, "$when: the other is prepared still");
	is(sql('SELECT gid FROM pg_prepared_xacts'), 'small', "$when: and it alone");
	return;
}

for my $checkpoint (0, 1)
{
	prepare_both();
	sql('CHECKPOINT') if $checkpoint;
	memory(64);
	$node->stop($checkpoint ? 'fast' : 'immediate');
	$node->start;
	check_stuck("checkpoint $checkpoint");
	fails("SET ROLE nobody; ROLLBACK PREPARED 'large'", qr/permission denied/, 'whoever may not, does not');
	$node->restart;
	check_stuck("checkpoint $checkpoint, restarted");
	sql("ROLLBACK PREPARED 'large'");
	is(sql('SELECT (SELECT sum(v) FROM small), (SELECT sum(v) FROM cold), (SELECT count(*) FROM large)'), '55|55|10', 'rolled back');

	# before anybody has noticed, and after
	$node->stop('immediate');
	$node->start;
	check_over('a crash after it');
	sql('CHECKPOINT');
	$node->stop('immediate');
	$node->start;
	check_over('a checkpoint and a crash');
	sql("COMMIT PREPARED 'small'; UPDATE cold SET v = v - 100 WHERE id = 2");
	is(sql('UPDATE small SET v = v - 100 WHERE id = 2 RETURNING v'), '2', 'the other has been committed');
}

# without a restart, and while the worker tries to restore it for somebody else
prepare_both();
memory(64);
$node->stop('immediate');
$node->start;
check_stuck('at once');
my @others = map { my $s = $node->background_psql('postgres', on_error_stop => 0); $s } (1 .. 3);
$_->query_until(qr/on/, "\\echo on\nUPDATE small SET v = v WHERE id = 4;\nUPDATE small SET v = v WHERE id = 5;\nUPDATE small SET v = v WHERE id = 6;\n") foreach @others;
sql("ROLLBACK PREPARED 'large'");
check_over('at once');
sql("ROLLBACK PREPARED 'small'");
$_->quit foreach @others;
is(sql('SELECT (SELECT sum(v) FROM small), (SELECT sum(v) FROM cold), (SELECT count(*) FROM large)'), '55|55|10', 'nothing is left of either');

# both ways to end one whose room is there, before and while it is restored
for my $end ('COMMIT', 'ROLLBACK')
{
	sql(q{BEGIN; UPDATE small SET v = v + 100 WHERE id = 2; UPDATE cold SET v = v + 100 WHERE id = 2; PREPARE TRANSACTION 'p'});
	$node->stop('immediate');
	$node->start;
	sql("$end PREPARED 'p'");
	is(sql('UPDATE small SET v = v WHERE id = 2 RETURNING v; SELECT v FROM cold WHERE id = 2'), "102\n102", "$end: and its rows are free");
}
is(sql("SELECT sum(problems) FROM (SELECT (mot_verify(o)).problems FROM unnest(ARRAY['small', 'large']::regclass[]) o) x"), '0', 'nothing is missing');
$node->stop;
done_testing();
