# pg_upgrade, from server to server along UPGRADE_PATH (test/upgrade/Upgrade.pm): definitions go
# with it, rows by mot_upgrade.  Each cluster is worked on, crashed, and followed by a standby
# before it is upgraded again.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../upgrade";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Upgrade;

my ($first, @servers) = servers();
my $directory = PostgreSQL::Test::Utils::tempdir;
mkdir "$directory/$_" for 'here', 'there';

my $old = cluster('first', $first);
$old->start;
# (pg_upgrade between servers of one version knows no tablespaces)
fill($old, defined $servers[0] ? "$directory/here" : undef);
my $contents = contents($old);

my $step = 0;
for my $server (@servers)
{
	$step++;
	my $new = cluster("upgraded_$step", $server);
	my $what = 'version ' . $old->pg_version . ' to ' . $new->pg_version;
	my @link = $step % 2 ? ('--link') : ();
	my $tool = bin_of($new) . '/mot_upgrade';
	my $statistics = statistics($old);

	$old->stop;
	command_like([ $tool, '--check', $old->data_dir ], qr/can be taken over/, "$what: there is what has to be");
	ok(upgrade($old, $new, @link), "$what: pg_upgrade @link");
	command_like([ $tool, @link, $old->data_dir, $new->data_dir ], qr/has the rows/, 'mot_upgrade');
	$new->start;
	check_contents($new, $contents, $what);
	is(statistics($new), $statistics, 'statistics came along') if $new->pg_version >= 18;
	$new->restart;
	is(contents($new), $contents, 'also after another start');

	# a standby, from before the first change
	my $standby = PostgreSQL::Test::Cluster->new("standby_$step", defined $server ? (install_path => $server) : ());
	mkdir "$directory/there/$step";
	command_ok([ bin_of($new) . '/pg_basebackup', '-D', $standby->data_dir, '-d', $new->connstr('postgres'), '-c', 'fast', '-T', "$directory/here=$directory/there/$step" ], 'a base backup');
	$standby->append_conf('postgresql.conf', 'port = ' . $standby->port . "\n");
	$standby->enable_streaming($new);
	$standby->start;
	check_contents($standby, $contents, "$what, on a standby");

	$new->safe_psql('postgres', qq{INSERT INTO child (parent, t) VALUES (99, 'new in $step'); UPDATE parent SET t = 'changed in $step' WHERE id = 50; DELETE FROM f WHERE id = 7 + $step;
		BEGIN; INSERT INTO list VALUES ('b', -$step); INSERT INTO on_heap VALUES (1000 + $step); COMMIT; ALTER TABLE large ADD more_$step int DEFAULT $step; CREATE TABLE made_$step (id int) USING mot});
	$new->safe_psql('postgres', q{INSERT INTO moved VALUES (-1, 'new') ON CONFLICT DO NOTHING}) if defined $servers[0];
	$new->safe_psql('an other', qq{DELETE FROM ft WHERE id % 10 = $step; INSERT INTO t VALUES (-$step, 'new')});
	my $changed = contents($new);
	isnt($changed, $contents, 'it can be changed');
	$contents = $changed;
	$new->wait_for_catchup($standby);
	is(contents($standby), $contents, 'and the standby follows');
	$new->stop('immediate');
	$new->start;
	is(contents($new), $contents, 'a crash loses nothing');
	$new->safe_psql('postgres', q{UPDATE f SET t = t WHERE id = 1; CHECKPOINT; UPDATE f SET t = t WHERE id = 1; CHECKPOINT});
	is(scalar(grep { /\.upgraded$/ } glob($new->data_dir . '/mot/*')), 0, 'the files of the old cluster are not needed any more');
	$new->wait_for_catchup($standby);
	$standby->promote;
	check_contents($standby, $contents, "$what, on the standby, promoted");
	$standby->stop;
	$old = $new;
}

# again with all that has happened, which is what the next release will find
$old->restart;
check_contents($old, $contents, 'in the end');
done_testing();
