# Prepared transactions in a base backup, and recovery to a moment between PREPARE TRANSACTION and
# its end; and one that is open for long keeps nothing that others have superseded.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared;
use Test::More;

my $primary = make_node('primary');
$primary->enable_archiving;
$primary->restart;
make_steps();
my $serial = 'BEGIN ISOLATION LEVEL SERIALIZABLE;';

# one before the backup, large and of all kinds; two small ones after it
sql('BEGIN;' . step_work(1) . "PREPARE TRANSACTION 'before'");
my $was = all_equal('primary');
$primary->backup('base');
sub small
{
	my ($id, $gid, $begin) = @_;
	sql($begin . join('', map { "SELECT v FROM step_$_ WHERE id = 10; UPDATE step_$_ SET v = v + 100 WHERE id = $id;" } qw(o f h)) . "PREPARE TRANSACTION '$gid'");
	return;
}
small(7, 'after', 'BEGIN;');
small(8, 'serial', $serial);
sql("SELECT pg_create_restore_point('all prepared')");
sql("COMMIT PREPARED 'serial'");
my $one = all_equal('primary');
sql("SELECT pg_create_restore_point('one committed')");
sql("ROLLBACK PREPARED 'after'");
sql("COMMIT PREPARED 'before'");
my $all = all_equal('primary');
sql("SELECT pg_create_restore_point('over')");
sql('SELECT pg_switch_wal()');
ok($primary->poll_query_until('postgres', "SELECT pg_walfile_name(pg_current_wal_lsn()) > last_archived_wal FROM pg_stat_archiver"), 'archived');

my %end;
for my $case ([ 'all prepared', 'after before serial', $was ], [ 'one committed', 'after before', $one ], [ 'over', '', $all ])
{
	my ($target, $gids, $expected) = @$case;
	(my $name = $target) =~ s/ /_/;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
	$node->append_conf('postgresql.conf', "recovery_target_name = '$target'\nrecovery_target_action = promote\narchive_mode = off\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
	use_node($node);
	for my $crash (0, 1)
	{
		if ($crash)
		{
			$node->stop('immediate');
			$node->start;
		}
		is(sql("SELECT coalesce(string_agg(gid, ' ' ORDER BY gid), '') FROM pg_prepared_xacts"), $gids, "$target, crash $crash: these are prepared");
		is(all_equal("$target, crash $crash: all agree"), $expected, "$target, crash $crash: of the others all is there");
		for my $id (grep { $gids =~ /$_->[1]/ } [ 1, 'before' ], [ 7, 'after' ], [ 8, 'serial' ])
		{
			fails("SELECT 1 FROM step_$_ WHERE id = $id->[0] FOR UPDATE NOWAIT", qr/could not obtain lock/, "$target, crash $crash: $id->[1] has its row of step_$_") for qw(o f h);
		}
		fails("SET lock_timeout = '100ms'; $serial UPDATE step_o SET v = 0 WHERE id = 10; COMMIT", qr/canceling statement due to lock timeout/, "$target, crash $crash: what one has read stands") if $gids =~ /serial/;
		is(sql("SET lock_timeout = '5s'; $serial UPDATE step_o SET v = v WHERE id = 9 RETURNING id; COMMIT"), '9', "$target, crash $crash: others go on") unless $gids =~ /serial/;
	}
	sql("COMMIT PREPARED 'serial'") if $gids =~ /serial/;
	sql("ROLLBACK PREPARED 'after'; COMMIT PREPARED 'before'") if $gids =~ /before/;
	is(all_equal("$target: all agree in the end"), $all, "$target: ... as on the primary");
	is(sql("SELECT count(*) FROM (SELECT 1 FROM step_o FOR UPDATE NOWAIT) x"), sql('SELECT count(*) FROM step_h'), "$target: no lock is left");
	is(sql("SELECT sum(problems) FROM (SELECT (mot_verify(t)).problems FROM unnest(ARRAY['step_o', 'step_f']::regclass[]) t) x"), '0', "$target: nothing is missing");
	$node->stop;
}

# one that is old
use_node($primary);
sql("UPDATE step_$_ SET v = v WHERE id = 9") for qw(o f h);
small(7, 'old', 'BEGIN;');
my $used = sql('SELECT used_bytes FROM mot_stat_memory');
sql("DO \$\$BEGIN FOR i IN 1 .. 300 LOOP UPDATE step_o SET v = v + 1 WHERE id <> 7; COMMIT; END LOOP; END\$\$");
ok($primary->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'), 'beside an old one nothing is kept that was superseded');
cmp_ok(sql('SELECT used_bytes FROM mot_stat_memory'), '<', $used + (8 << 20), '... so memory does not grow');
sql("COMMIT PREPARED 'old'");
$primary->stop;
done_testing();
