# docs/upgrading.md, command after command: from the server that is tested to the last one of
# UPGRADE_PATH, where the extension has a newer version.  (What it says of rsync is run in
# upgrade_modes.pl.)
# Alone: the server has a newer version of the extension meanwhile.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../upgrade";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Upgrade;

my ($first, @servers) = servers();
my $server = $servers[-1];
my $old = cluster('old', $first);
$old->start;
fill($old);
my $contents = contents($old);

# only where the clusters are comes from here
my $new = PostgreSQL::Test::Cluster->new('new', defined $server ? (install_path => $server) : ());
my $standby = PostgreSQL::Test::Cluster->new('standby', defined $server ? (install_path => $server) : ());
system_or_bail('mkdir', '-p', $_->basedir) for $new, $standby;
my $work = PostgreSQL::Test::Utils::tempdir_short;
local %ENV = (%ENV, OLD => $old->data_dir, OLD_BIN => bin_of($old), NEW => $new->data_dir, NEW_BIN => bin_of($new), STANDBY => $standby->data_dir,
	PGHOST => $new->host, PGPORT => $new->port, PGDATABASE => 'postgres');
chdir $work;

# a version of the extension that only the new server has
my $share = $new->config_data('--sharedir') . '/extension';
my $control = slurp_file("$share/mot.control");
sub write_control { my ($text) = @_; open my $f, '>', "$share/mot.control" or die "mot.control: $!"; print $f $text; return close $f }
append_to_file("$share/mot--1.0--next.sql", 'CREATE VIEW mot_next AS SELECT 1 AS next;');
write_control($control =~ s/^default_version = .*/default_version = 'next'/mr);
END { if (defined $control) { write_control($control); unlink "$share/mot--1.0--next.sql" } }

my ($page) = slurp_file("$FindBin::Bin/../../docs/upgrading.md") =~ /^(## Another version of PostgreSQL.*)/ms;
my @commands = grep { !/^OLD=|^rm -r "\$OLD|^rsync/ } $page =~ /```sh by-hand\n(.*?)```/gs;
is(scalar(@commands), 5, 'the page has its commands');
for my $command (@commands)
{
	command_ok([ 'bash', '-euxc', $command ], (split /\n/, $command)[0]);
	if ($command =~ /initdb/)
	{
		$new->append_conf('postgresql.conf', "port = " . $new->port . "\nlisten_addresses = ''\nunix_socket_directories = '" . $new->host . "'\nautovacuum = off\nfsync = off\n");
	}
	$new->_update_pid(1) if $command =~ /" start$/m;
}
$old->_update_pid(0);
$new->_update_pid(1);

check_contents($new, $contents, 'as the page says');
is($new->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'mot'}), '1.0', 'the extension is as it was');
ok(-f "$work/update_extensions.sql", 'pg_upgrade knows a newer one');
command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', "$work/update_extensions.sql" ], 'and updates it');
is($new->safe_psql('postgres', q{SELECT extversion, (SELECT next FROM mot_next) FROM pg_extension WHERE extname = 'mot'}), 'next|1', 'to that');
cmp_ok($new->safe_psql('postgres', q{SELECT count(*) FROM pg_stats WHERE tablename = 'child'}), '>', 3, 'there are statistics');

$standby->append_conf('postgresql.conf', 'port = ' . $standby->port . "\n");
$standby->start;
$new->safe_psql('postgres', q{UPDATE parent SET t = 'changed' WHERE id = 50});
my $target = $new->lsn('write');
$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$target'");
is(contents($standby), contents($new), 'the standby follows');

command_ok([ 'bash', "$work/delete_old_cluster.sh" ], 'the old cluster is removed');
$new->restart;
is(contents($standby), contents($new), 'and not missed');
$new->stop;
done_testing();
