# The way by pg_dump, from the server that is tested to each along UPGRADE_PATH: rows, keys and all
# that is defined, in each format; and what ANALYZE has found, where pg_dump takes that along.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../upgrade";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Upgrade;

my ($first, @servers) = servers();
my $old = cluster('old', $first);
$old->start;
fill($old);
my $contents = contents($old);
my $statistics = statistics($old);

my $n = 0;
for my $server (@servers)
{
	my $what = 'version ' . $old->pg_version . ' to ' . PostgreSQL::Test::Cluster->new('version_' . ++$n, defined $server ? (install_path => $server) : ())->pg_version;
	for my $format ('plain', 'custom', 'directory')
	{
		my $new = cluster('new' . ++$n, $server);
		my $bin = bin_of($new);
		my @statistics = qx("$bin/pg_dump" --help) =~ /--statistics\b/ ? ('--statistics') : ();
		my $dir = PostgreSQL::Test::Utils::tempdir;
		# (the old server's own pg_dump writes what the new one's psql reads)
		my $dump = $format eq 'plain' ? bin_of($old) . '/pg_dump' : "$bin/pg_dump";
		@statistics = () if $format eq 'plain';
		$new->start;
		$new->safe_psql('postgres', 'CREATE ROLE reader; CREATE DATABASE "an other"');
		for my $database ('postgres', 'an other')
		{
			my $file = "$dir/$format $database";
			command_ok([ $dump, '-h', $old->host, '-p', $old->port, "--format=$format", '--include-foreign-data=mot_server', @statistics, '-f', $file, $database ],
				"$what: pg_dump --format=$format @statistics, $database");
			command_ok($format eq 'plain'
				? [ "$bin/psql", '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $new->host, '-p', $new->port, '-f', $file, $database ]
				: [ "$bin/pg_restore", '--exit-on-error', '-h', $new->host, '-p', $new->port, $format eq 'directory' ? ('-j', 2) : (), '-d', $database, $file ], 'and restored');
			# (with --jobs a table's number of rows may come before its rows, whose TRUNCATE undoes
			# it)
			command_ok([ "$bin/pg_restore", '--exit-on-error', '--statistics-only', '-h', $new->host, '-p', $new->port, '-d', $database, $file ], '... statistics')
			  if @statistics && $format eq 'directory';
		}
		is(statistics($new), $statistics, 'with statistics') if @statistics;
		check_contents($new, $contents, "$what, dump of format $format", unlogged => 100);
		$new->stop('immediate');
		$new->start;
		check_contents($new, $contents, "$what, dump of format $format, after a crash");
		$new->clean_node;
	}
}

done_testing();
