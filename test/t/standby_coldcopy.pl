# A standby made of a copy of a server that was stopped: what it begins with is
# a final checkpoint, that needs no log.  As soon as it follows its primary it
# does, whatever becomes of its own checkpoints.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
wal_keep_size = '256MB'
restart_after_crash = off
});
$primary->start;
sub die_and_start
{
	my ($node) = @_;
	kill 'KILL', (my @pids = ($node->{_pid}, Ledger::children($node->{_pid})));
	Ledger::wait_gone(30, @pids) or die;
	unlink $node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock';
	$node->{_pid} = undef;
	$node->start;
	return;
}

$primary->backup('early');
my $early = PostgreSQL::Test::Cluster->new('early');
$early->init_from_backup($primary, 'early', has_streaming => 1);
$early->start;
my $is_worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'};
kill 'STOP', $early->safe_psql('postgres', $is_worker) or die;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE t (id int PRIMARY KEY, v text) SERVER mot_server;
	INSERT INTO t SELECT i, 'before' FROM generate_series(1, 1000) i;
	CHECKPOINT;
});
$primary->wait_for_catchup($early, 'replay');
$early->safe_psql('postgres', 'CHECKPOINT');
die_and_start($early);
$primary->wait_for_catchup($early, 'replay');
is($early->safe_psql('postgres', 'SELECT count(*) FROM t'), '1000', 'the first table of a standby, its restartpoint, and a crash');
$early->stop;
$primary->stop;
$primary->backup_fs_cold('cold');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'cold', has_streaming => 1);
$primary->start;
$standby->start;
my $content = 'SELECT count(*), sum(id), md5(string_agg(v, $$,$$ ORDER BY id)) FROM t';

$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, 'streamed' FROM generate_series(1001, 2000) i; CHECKPOINT});
$primary->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $content), $primary->safe_psql('postgres', $content), 'a standby of a cold copy follows');

# Its restartpoint goes on while its checkpointer of ours is kept from its work.
my $worker = $standby->safe_psql('postgres', $is_worker);
my @before = glob($standby->data_dir . '/mot/' . '[0-9A-F]' x 24);
kill 'STOP', $worker or die;
$standby->safe_psql('postgres', 'CHECKPOINT');
is( $standby->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()'),
	$primary->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()'), 'a restartpoint');
is(join(' ', glob($standby->data_dir . '/mot/' . '[0-9A-F]' x 24)), join(' ', @before), '... without a checkpoint of ours');
die_and_start($standby);
$primary->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $content), $primary->safe_psql('postgres', $content), 'after a crash at that moment nothing is missing');

# a standby that is promoted, and stopped, has a final checkpoint, too
$standby->promote;
$standby->safe_psql('postgres', q{INSERT INTO t VALUES (3000, 'promoted')});
$standby->stop;
ok(!-e $standby->data_dir . '/mot/open', 'promoted and stopped: no log belongs to its checkpoint');
$standby->start;
is($standby->safe_psql('postgres', 'SELECT v FROM t WHERE id = 3000'), 'promoted', '... which has everything');
die_and_start($standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t'), '2001', '... after a crash, too');
$standby->stop;
$primary->stop;
done_testing();
