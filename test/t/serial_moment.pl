# A commit in heap and memory-optimized tables waits for a standby while somebody at
# SERIALIZABLE takes his snapshots, and is over before he knows what they are worth:
# he sees neither of its halves, and cannot commit if he sees what came after it
# began, and before which it has to be.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $node = PostgreSQL::Test::Cluster->new('moment');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
synchronous_commit = local
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE m (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE TABLE h (id int PRIMARY KEY, v int);
	CREATE TABLE other (id int);
	INSERT INTO m VALUES (1, 0);
	INSERT INTO h VALUES (1, 0)});
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
$node->reload;
$node->poll_query_until('postgres', q{SELECT setting = 'nobody' FROM pg_settings WHERE name = 'synchronous_standby_names'});

# the writer has not seen what comes next, so it comes before that
my $writer = $node->background_psql('postgres', on_error_stop => 0);
$writer->query_safe(q{SET application_name = 'writer'; SET synchronous_commit = on});
$writer->query_until(qr/begun/, "\\echo begun\nBEGIN ISOLATION LEVEL SERIALIZABLE; SELECT v FROM h; UPDATE m SET v = 1; INSERT INTO other VALUES (1); COMMIT;\n");
ok($node->poll_query_until('postgres', q{SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE application_name = 'writer'}), 'the commit waits');
$node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE h SET v = 1; COMMIT');

my $log = -s $node->logfile;
my $reader = $node->background_psql('postgres', on_error_stop => 0);
$reader->query_safe(q{SET mot.fault = 'moment-taken:wait:1'});
$reader->query_until(qr/begun/, "\\echo begun\nBEGIN ISOLATION LEVEL SERIALIZABLE; SELECT h.v, m.v FROM h, m;\n");
$node->wait_for_log(qr/"moment-taken" reached/, $log);
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'writer'});
$writer->query('SELECT 1');
append_to_file($node->data_dir . '/mot.fault.go', '');
my ($answer) = $reader->query('SELECT 0');
like($answer, qr/^1\|0$/m, 'the commit is left out');
$reader->query('COMMIT');
like($reader->{stderr}, qr/could not serialize access due to read.write dependencies/, '... and the reader, who sees what came after it, fails');
$reader->quit;
$writer->quit;
$node->stop;
done_testing();
