# Doors.pm
#	  The same tests through both doors of the engine.
#
# A test writes its tables as foreign ones.  With "use Doors", what it gives to psql
# makes ordinary tables of every second one, so that a run has both without taking
# longer.  DOOR=table makes all of them ordinary and DOOR=foreign none; DOOR=other
# asks for the door that each table does not have by itself.

package Doors;

use strict;
use warnings;

use File::Basename qw(basename);
use PostgreSQL::Test::Cluster;

my $door = $ENV{DOOR} // '';
# which one comes first differs from test to test: some have one table only
my $turn = unpack('%32C*', basename($0)) + ($door eq 'other');
my $parentheses = qr/(?<p>\((?:[^()]++|(?&p))*+\))/;

sub ordinary
{
	return $door eq 'table' if $door eq 'table' || $door eq 'foreign';
	return $turn++ % 2;
}

# (tables with options and foreign partitions are what they are)
sub doors
{
	my ($sql) = @_;

	$sql =~ s/\bCREATE FOREIGN TABLE (\w+ ?$parentheses) SERVER mot_server(?! OPTIONS)/ordinary() ? "CREATE TABLE $1 USING mot" : $&/ge;
	# understood of both kinds
	$sql =~ s/\b(DROP|ALTER) FOREIGN TABLE\b/$1 TABLE/g;
	return $sql;
}

my $psql = \&PostgreSQL::Test::Cluster::psql;

{
	no warnings 'redefine';
	*PostgreSQL::Test::Cluster::psql = sub {
		my ($node, $database, $sql, @options) = @_;
		return $psql->($node, $database, doors($sql), @options);
	};
}

1;
