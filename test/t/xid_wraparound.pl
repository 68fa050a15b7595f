# Three thousand million transactions after a process's last commit of both kinds
# of tables (more than half of what 32 bits hold: its xid is one of the future
# then), everything goes on: queries over both kinds, at all levels, commits of
# all kinds, a crash.  The server is told that it has had these transactions;
# between them its databases are frozen, as autovacuum would have it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $node = PostgreSQL::Test::Cluster->new('xids');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
max_prepared_transactions = 2
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE m (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE h (id int PRIMARY KEY, v int);
	INSERT INTO m SELECT i, 0 FROM generate_series(1, 10) i;
	INSERT INTO h SELECT i, 0 FROM generate_series(1, 10) i;
	CREATE FUNCTION mot_test_advance_xid(bigint) RETURNS void LANGUAGE c AS '$libdir/mot';
	UPDATE pg_database SET datallowconn = true});

my $move = 'BEGIN; UPDATE m SET v = v + 1; UPDATE h SET v = v - 1; COMMIT;';
my $look = 'SELECT (SELECT sum(v) FROM m), (SELECT sum(v) FROM h);';
my $done = 0;

sub works
{
	my ($when) = @_;
	for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
	{
		my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '5s'; SET default_transaction_isolation = '$level'; $look");
		is($ret == 0 ? $out : $err, $done * 10 . '|' . $done * -10, "$when, $level: both kinds of tables are read");
	}
	for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
	{
		my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '5s'; SET default_transaction_isolation = '$level'; $move $look");
		$done++;
		is($ret == 0 ? $out : $err, $done * 10 . '|' . $done * -10, "$when, $level: and changed");
	}
	return;
}

sub advance
{
	$node->safe_psql('postgres', 'SELECT mot_test_advance_xid(1500000000)');
	for my $database ($node->safe_psql('postgres', 'SELECT datname FROM pg_database') =~ /\S+/g)
	{
		$node->safe_psql($database, 'VACUUM (FREEZE, SKIP_LOCKED false)');
	}
	return;
}

# one process's place keeps the old commit: no later process may take it
my $old = $node->background_psql('postgres');
$old->query_safe($move);
$done++;
works('before');
advance();
advance();
cmp_ok($node->safe_psql('postgres', 'SELECT pg_current_xact_id()::text::bigint'), '>', 3000000000, 'three thousand million transactions later');
works('after');

# there are younger commits of both kinds than the oldest transaction running
my $running = $node->background_psql('postgres');
$running->query_safe('BEGIN; SELECT pg_current_xact_id()');
works('beside an open transaction');
works('beside an open transaction, and younger commits');
$running->quit;
is($old->query($look), $done * 10 . '|' . $done * -10, 'the old process');
$old->query_safe($move);
$done++;
works('once more');
$old->quit;

advance();
works('the numbers have gone round');
$node->stop('immediate');
$node->start;
works('after a crash');
is($node->safe_psql('postgres', q{SELECT mot_verify('m')}), "(m,10,0,)\n(m_pkey,10,0,)", 'the table is whole');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|terminated by signal/, 'in peace');
$node->stop;
done_testing();
