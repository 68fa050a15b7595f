# Served.pm
#	  Waiting for a server that comes back by itself.
#
# served($node): true once it answers, false after three minutes.  (poll_query_until()
# writes its query to a psql which, while nobody is let in, may have ended before; from 17
# on that is the end of the test.)

package Served;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Utils;
use Time::HiRes qw(sleep);

our @EXPORT = qw(served);

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

1;
