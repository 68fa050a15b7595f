# A statement makes room for itself among deleted rows, fails to make the index key of one, and is
# cancelled meanwhile: it ends when it is out of the engine, and the rows go as ever.

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
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE FOREIGN TABLE t (id int PRIMARY KEY, word text) SERVER mot_server; CREATE INDEX ON t (word)');

sub ask { return $node->safe_psql('postgres', $_[0]) }

sub wait_for
{
	my ($what, $condition) = @_;
	my $there = 0;
	for (1 .. 300)
	{
		last if $there = $condition->();
		sleep 0.1;
	}
	ok($there, $what);
	return;
}

# nobody else is to be there before it
my $other = ask(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot maintenance'});
kill 'STOP', $other;
my $session = IPC::Run::start(
	[   'psql', '-X', '-q', '-d', $node->connstr('postgres'),
		map { ('-c', $_) } "INSERT INTO t SELECT i, 'w' || i FROM generate_series(1, 30000) i",
		'DELETE FROM t WHERE id > 100',
		"SET application_name = 'cancelled'",
		"SET mot.fault = 'deleted-key:error:1,deleted-key-failed:sleep:1'",
		"INSERT INTO t SELECT i, repeat('x', 200) || i FROM generate_series(100001, 1000000) i" ],
	'<', \undef, '>', \my $said, '2>&1');
wait_for('it makes room', sub { slurp_file($node->logfile) =~ /"deleted-key-failed" reached/ });
is(ask(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cancelled'}), 't', 'it is cancelled');
$session->finish;
kill 'CONT', $other;
like($said, qr/canceling statement due to user request/, '... and says so');
like(slurp_file($node->logfile), qr/could not make an index key of a deleted row/, '... behind the message of the key');
wait_for('nothing is kept of what was deleted', sub { ask('SELECT retired_objects FROM mot_stat_memory') eq '0' });
is(ask("SELECT sum(problems), (SELECT count(*) FROM t) FROM mot_verify('t')"), '0|100', 'the others are there');
$node->stop;
done_testing();
