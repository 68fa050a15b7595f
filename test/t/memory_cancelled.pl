# A statement makes room for itself among deleted rows, fails to make the index key of one, and is
# cancelled meanwhile, or has no memory to say that it failed: it ends when it is out of the engine, and
# the rows go as ever; also where a process ends, or cleans up behind another error.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = 64MB
max_prepared_transactions = 1
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE FOREIGN TABLE t (id int PRIMARY KEY, word text) SERVER mot_server; CREATE INDEX ON t (word)');

sub ask { return $node->safe_psql('postgres', $_[0]) }

sub wait_for
{
	my ($what, $condition) = @_;
	my $there = 0;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last if $there = $condition->();
		sleep 0.1;
	}
	ok($there, $what);
	return;
}

# nobody else is to be there before it
my $other = ask(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot maintenance'});

# an INSERT that finds memory full, in a session that has deleted rows, with these faults
sub begin_insert
{
	my ($faults, $said) = @_;
	kill 'STOP', $other;
	return IPC::Run::start(
		[   'psql', '-X', '-q', '-d', $node->connstr('postgres'),
			map { ('-c', $_) } "INSERT INTO t SELECT i, 'w' || i FROM generate_series(1, 30000) i",
			'DELETE FROM t WHERE id > 100',
			"SET application_name = 'cancelled'",
			"SET mot.fault = '$faults'",
			"INSERT INTO t SELECT i, repeat('x', 200) || i FROM generate_series(100001, 1000000) i" ],
		'<', \undef, '>', $said, '2>&1');
}

sub check_rows
{
	kill 'CONT', $other;
	wait_for('nothing is kept of what was deleted', sub { ask('SELECT retired_objects FROM mot_stat_memory') eq '0' });
	is(ask("SELECT sum(problems), (SELECT count(*) FROM t) FROM mot_verify('t')"), '0|100', 'the others are there');
	ask('DELETE FROM t');
	return;
}

my $session = begin_insert('deleted-key:error:1,failure-told:wait:1', \my $said);
wait_for('it makes room', sub { slurp_file($node->logfile) =~ /"failure-told" reached/ });
is(ask(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cancelled'}), 't', 'it is cancelled');
append_to_file($node->data_dir . '/mot.fault.go', '');
$session->finish;
unlink $node->data_dir . '/mot.fault.go';
like($said, qr/canceling statement due to user request/, '... and says so');
like(slurp_file($node->logfile), qr/could not make an index key of a deleted row/, '... behind the message of the key');
check_rows();

my $from = -s $node->logfile;
begin_insert('deleted-key:error:1,failure-told:error:1', \$said)->finish;
like(slurp_file($node->logfile, $from), qr/"failure-told" reached/, 'what failed cannot be said');
like($said, qr/ERROR:  out of memory for memory-optimized tables/, '... and the statement goes on until memory is full');
check_rows();
# a process that ends could not catch an error: it leaves the rows to others
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, i FROM generate_series(1, 300) i');
my $reader = $node->background_psql('postgres', on_error_stop => 1);
my $ending = $node->background_psql('postgres', on_error_stop => 1);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
$ending->query_safe("SET mot.fault = 'deleted-key:error'; DELETE FROM t WHERE id > 100");
kill 'STOP', $other;
$reader->query_safe('COMMIT');
$reader->quit;
$from = -s $node->logfile;
$ending->quit;
wait_for('a session that has deleted rows ends', sub { ask(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'}) eq '1' });
unlike(slurp_file($node->logfile, $from), qr/FATAL/, '... as it should');
check_rows();

# who cleans up behind an error meets them, too: it is that error that is told
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, i FROM generate_series(1, 300) i');
$reader = $node->background_psql('postgres', on_error_stop => 1);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
ask("BEGIN; DELETE FROM t WHERE id > 100; PREPARE TRANSACTION 'deletes'");
ask("COMMIT PREPARED 'deletes'");
kill 'STOP', $other;
$reader->query_safe('COMMIT');
$reader->quit;
$from = -s $node->logfile;
my ($ret, $out, $err) = $node->psql('postgres', q{SET mot.fault = 'prepared-claimed:error:1,deleted-key:error';
	BEGIN; INSERT INTO t VALUES (0, 'x'); PREPARE TRANSACTION 'fails'; COMMIT PREPARED 'fails'});
like($err, qr/ERROR:  fault point "prepared-claimed"/, 'COMMIT PREPARED fails as it would without them');
like(slurp_file($node->logfile, $from), qr/"deleted-key" reached.*"prepared-claimed" reached/s, '... and they have failed before');
is(ask('SELECT retired_objects > 0 FROM mot_stat_memory'), 't', '... so that the rows are there');
ask("ROLLBACK PREPARED 'fails'");
check_rows();

$node->stop;
done_testing();
