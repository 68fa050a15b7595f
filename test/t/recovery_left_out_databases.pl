# Tables that memory has no room for, in databases that are dropped: one comes back just when
# DROP DATABASE begins, and the server has no room for the locks of another.

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
checkpoint_timeout = 1h
max_connections = 12
max_locks_per_transaction = 10
shared_preload_libraries = 'mot'
mot.max_memory = 256MB
});
$node->start;
my $make = "CREATE EXTENSION mot; CREATE FOREIGN TABLE big (id int PRIMARY KEY, filler text) SERVER mot_server;
	INSERT INTO big SELECT i, repeat('x', 400) FROM generate_series(1, ";
$node->safe_psql('postgres', 'CREATE DATABASE raced');
$node->safe_psql('postgres', 'CREATE DATABASE locked');
$node->safe_psql('postgres', "${make}60000) i");
$node->safe_psql('raced', "${make}90000) i");
$node->safe_psql('locked', "${make}100000) i; CHECKPOINT");
$node->append_conf('postgresql.conf', 'mot.max_memory = 64MB');
$node->restart;

sub ask { return $node->safe_psql('postgres', $_[0]) }
sub left_out { return ask('SELECT count(*) FROM mot_stat_left_out') }
sub database { return ask("SELECT oid FROM pg_database WHERE datname = '$_[0]'") }

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

$node->poll_query_until('postgres', q{SELECT state = 'ready' FROM mot_stat_recovery}) or die 'not loaded';
is(left_out(), '2', 'two are left out');
my $owner = $node->background_psql('locked', on_error_stop => 1);
$owner->query_safe('BEGIN; LOCK TABLE big IN SHARE UPDATE EXCLUSIVE MODE');

# ---- DROP DATABASE finds it, be it left out or not
my $from = -s $node->logfile;
my $dropping = IPC::Run::start([ 'psql', '-X', '-q', '-c', "SET mot.fault = 'ddl-database-named:wait'", '-c', 'DROP DATABASE raced', $node->connstr('postgres') ],
	'<', \undef, '>', \my $said, '2>&1');
wait_for('DROP DATABASE begins', sub { slurp_file($node->logfile, $from) =~ /"ddl-database-named" reached/ });
ask('DELETE FROM big');
wait_for('the one comes back', sub { left_out() eq '1' });
append_to_file($node->data_dir . '/mot.fault.go', '');
$dropping->finish;
is($said, '', 'the database is dropped');
is(database('raced'), '', '... and gone');
wait_for('... with its rows', sub { ask('SELECT rows FROM mot_stat_memory') eq '0' });

# ---- there is room for one more lock, of two: that one is not kept
my $filler = $node->background_psql('postgres', on_error_stop => 1);
$filler->query_safe('DO $$ BEGIN FOR i IN 1 .. 1000000 LOOP
	BEGIN PERFORM pg_advisory_lock(i); EXCEPTION WHEN out_of_memory THEN EXIT; END; END LOOP; END $$');
$from = -s $node->logfile;
$owner->query_safe('ROLLBACK');
wait_for('there is no room for the locks', sub { slurp_file($node->logfile, $from) =~ /ERROR:  out of shared memory/ });
$filler->quit;
$owner->quit;
wait_for('the other comes back', sub { left_out() eq '0' });
is(ask("SELECT count(*) FROM pg_locks l JOIN pg_stat_activity USING (pid) WHERE backend_type = 'mot checkpointer' AND locktype IN ('object', 'relation')"),
	'0', 'its locks are gone');
my ($status, $out, $error) = $node->psql('template1', 'DROP DATABASE locked', timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \my $late);
ok(!$late && $status == 0, 'and the database can be dropped') or diag $error;

done_testing();
