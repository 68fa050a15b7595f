# Served.pm
#	  Waiting for a server that comes back by itself, or that has died.
#
# served($node): true once it answers, false after PG_TEST_TIMEOUT_DEFAULT.  (poll_query_until()
# writes its query to a psql which, while nobody is let in, may have ended before; from 17
# on that is the end of the test.)
#
# gone($node): true once no process works in its data directory any more; a server can be started
# there then.

package Served;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Utils;
use Time::HiRes qw(sleep);

our @EXPORT = qw(served gone);

sub served
{
	my ($node) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my ($out) = run_command([ 'psql', '-X', '-A', '-t', '-c', 'SELECT true', $node->connstr('postgres') ]);
		return 1 if $out eq 't';
		sleep 0.1;
	}
	return 0;
}

sub gone
{
	my ($node) = @_;
	my $data = $node->data_dir;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		if (!grep { (readlink($_) // '') eq $data } glob('/proc/[0-9]*/cwd'))
		{
			$node->{_pid} = undef;
			# where nobody collects dead processes, the postmaster would be taken for a living one
			unlink "$data/postmaster.pid", $node->host . '/.s.PGSQL.' . $node->port . '.lock';
			return 1;
		}
		sleep 0.1;
	}
	return 0;
}

1;
