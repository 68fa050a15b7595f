# A standby that loads with little memory: who has a snapshot meanwhile, and can read
# none of the tables yet, keeps nothing in memory; and a table that cannot even be made
# is left out like others.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
checkpoint_timeout = 1h
wal_keep_size = '1GB'
shared_preload_libraries = 'mot'
mot.max_memory = 256MB
});
$primary->start;
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE heap (a int);
	INSERT INTO heap VALUES (1);
	CHECKPOINT});
$primary->backup('empty');
$primary->safe_psql(
	'postgres', q{
	CREATE FOREIGN TABLE changing (id int PRIMARY KEY, filler text) SERVER mot_server;
	INSERT INTO changing SELECT i, repeat('x', 1000) FROM generate_series(1, 12000) i;
	CHECKPOINT});
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "mot.max_memory = 64MB\nmot.fault = 'load-log:wait'\n");
$standby->start;

sub reader
{
	my $session = $standby->background_psql('postgres', on_error_stop => 0);
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	return $session;
}

# rows of many ages
my $reader = reader();
is($reader->query_safe('SELECT count(*) FROM heap'), '1', 'a reader of heap tables has a snapshot');
$primary->safe_psql('postgres', "UPDATE changing SET filler = repeat('$_', 1000)") for 1 .. 9;
$primary->safe_psql('postgres', 'INSERT INTO heap VALUES (2)');
$primary->wait_for_catchup($standby);
my $first = reader();
append_to_file($standby->data_dir . '/mot.fault.go', '');
ok($standby->poll_query_until('postgres', q{SELECT state = 'ready' FROM mot_stat_recovery}), 'it loads');
unlike(slurp_file($standby->logfile), qr/without table "public.changing"/, 'without leaving out what fits');
is($standby->safe_psql('postgres', 'SELECT count(*), min(filler), max(filler) FROM changing'),
	'12000|' . '9' x 1000 . '|' . '9' x 1000, '... and with all rows');

# the snapshot is of a moment before they were there
is($reader->query_safe('SELECT count(*) FROM heap'), '1', 'the reader sees what it saw');
$reader->query('SELECT count(*) FROM changing');
like($reader->{stderr}, qr/could not serialize access to memory-optimized tables, which have been loaded since/, '... and nothing that is newer');
$reader->{stderr} = '';
$reader->query('ROLLBACK');
$reader->quit;

# one that has read nothing before, or nothing that has changed since, sees both
is($first->query_safe('SELECT count(*) FROM changing'), '12000', 'who has read nothing yet reads');
is($first->query_safe('SELECT count(*) FROM heap'), '2', '... both kinds');
$primary->safe_psql('postgres', "UPDATE changing SET filler = 'new'; INSERT INTO heap VALUES (3)");
$primary->wait_for_catchup($standby);
is($first->query_safe(q{SELECT count(*) FROM changing WHERE filler = 'new'}), '0', '... and goes on seeing that');
is($first->query_safe('SELECT count(*) FROM heap'), '2', '... of both');
$first->query_safe('COMMIT');
$first->quit;
$standby->stop;

# ---- the first table of all cannot be made
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init_from_backup($primary, 'empty', has_streaming => 1);
$other->append_conf('postgresql.conf', "mot.fault = 'standby-create-full:skip'\n");
$other->start;
$primary->wait_for_catchup($other);
ok($other->poll_query_until('postgres', q{SELECT state = 'ready' FROM mot_stat_recovery}), 'a standby without any table goes on');
like(slurp_file($other->logfile), qr/going on without a table that replay has come to/, '... when it cannot make one');
ok($other->poll_query_until('postgres', 'SELECT count(*) = 0 FROM mot_stat_left_out'), '... which is brought back');
is($other->safe_psql('postgres', q{SELECT count(*) FROM changing WHERE filler = 'new'}), '12000', '... with its rows');
$other->stop;
$primary->stop;
done_testing();
