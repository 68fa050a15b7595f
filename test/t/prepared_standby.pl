# Prepared transactions on a standby: they are not seen, outlive its restart and the primary's, and
# have their locks when it is promoted.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared;
use Test::More;
use Time::HiRes qw(usleep);

my $node = make_node('primary');
make_steps();
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
sub equal_there { return all_equal($_[0], $standby) }
my $was = all_equal('primary of a standby');
sql('BEGIN;' . step_work(0) . "PREPARE TRANSACTION 'first'");
$node->wait_for_catchup($standby);
is(equal_there('standby: all agree'), $was, 'standby: a prepared transaction is not seen');
sql("COMMIT PREPARED 'first'");
$node->wait_for_catchup($standby);
is(equal_there('standby: all agree'), all_equal('primary'), 'standby: it is when committed');
sql('BEGIN;' . step_work(1) . "PREPARE TRANSACTION 'second'");
sql('CHECKPOINT');
$node->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
usleep(2_000_000);
$standby->restart;
is(equal_there('standby restarted: all agree'), all_equal('primary'), 'standby restarted: not seen');
# the primary begins anew, and goes on to write
$node->stop('immediate');
$node->start;
sql("UPDATE step_$_ SET v = v + 1 WHERE id = 8") for qw(o f h);
$node->wait_for_catchup($standby);
is(equal_there('primary crashed: all agree'), all_equal('primary'), 'primary crashed: not seen');
sql("COMMIT PREPARED 'second'");
$node->wait_for_catchup($standby);
is(equal_there('... committed: all agree'), all_equal('primary'), '... committed: seen');
sql('BEGIN;' . join('', map { "UPDATE step_$_ SET v = v + 100 WHERE id = 7;" } qw(o f h)) . "PREPARE TRANSACTION 'third'");
sql('BEGIN;' . join('', map { "UPDATE step_$_ SET v = v + 100 WHERE id = 8;" } qw(o f h)) . "PREPARE TRANSACTION 'fourth'");
sql('BEGIN;' . join('', map { "UPDATE step_$_ SET v = v + 100 WHERE id = 9;" } qw(o f h)) . "PREPARE TRANSACTION 'fifth'");
sql("ROLLBACK PREPARED 'fifth'");
$node->wait_for_catchup($standby);
$was = all_equal('primary');
$node->stop('immediate');
$standby->promote;
$node = use_node($standby);
is(prepared(), '2', 'promoted: both are prepared');
is(all_equal('promoted: all agree'), $was, 'promoted: not seen');
fails("SELECT 1 FROM step_$_ WHERE id = 7 FOR UPDATE NOWAIT", qr/could not obtain lock/, "promoted: a row of step_$_ is locked") for qw(o f h);
is(sql('SELECT 1 FROM step_o WHERE id = 9 FOR UPDATE NOWAIT'), '1', '... one that was rolled back is not');
sql("COMMIT PREPARED 'third'; ROLLBACK PREPARED 'fourth'");
isnt(all_equal('promoted: all agree'), $was, 'promoted: one of them committed');
is(sql('SELECT count(*) FROM (SELECT 1 FROM step_o FOR UPDATE NOWAIT) x'), sql('SELECT count(*) FROM step_h'), 'promoted: no lock is left');
$was = all_equal('promoted');
$node->stop('immediate');
$node->start;
is(all_equal('promoted, crashed: all agree'), $was, 'promoted, crashed: as before');
$node->stop;

done_testing();
