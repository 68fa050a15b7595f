# An upgrade to a minor release, as it is done under load: the standby is
# restarted, then they change places, then the old primary is restarted as the standby
# and they change back.  What was acknowledged is there in the end, in tables of both kinds,
# and who reads memory-optimized tables is refused by nothing that readers of heap
# tables are not refused by.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use POSIX qw(_exit);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $rows = 20000;
my $first = PostgreSQL::Test::Cluster->new('a');
$first->init(allows_streaming => 1);
$first->append_conf('postgresql.conf', q{
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
wal_keep_size = '256MB'
});
$first->start;
$first->safe_psql('postgres', 'CREATE EXTENSION mot');
$first->safe_psql('postgres', 'CREATE FOREIGN TABLE m (id text COLLATE "C" PRIMARY KEY, filler text) SERVER mot_server; CREATE TABLE h (id text PRIMARY KEY, filler text)');
$first->safe_psql('postgres', "INSERT INTO $_ SELECT 'old ' || g, repeat('x', 100) FROM generate_series(1, $rows) g") for qw(m h);
$first->backup('b');
my $second = PostgreSQL::Test::Cluster->new('b');
$second->init_from_backup($first, 'b', has_streaming => 1);
$second->start;

# ------------------------------------------------------------------ clients

my $dir = PostgreSQL::Test::Utils::tempdir;
my $route = "$dir/primary";

sub say_to
{
	my ($file, $line) = @_;
	open my $f, '>>', $file or die "$file: $!";
	syswrite $f, "$line\n";
	close $f;
}

sub lead_to
{
	my ($node) = @_;
	PostgreSQL::Test::Utils::append_to_file("$route.new", $node->connstr('postgres'));
	rename "$route.new", $route;
}

# one statement of a client: what it printed, or undef and why not
sub ask
{
	my ($sql, $connection) = @_;
	my ($out, $err) = ('', '');
	$connection //= slurp_file($route);
	my $done = IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connection, '-c', $sql ], '<', \undef, '>', \$out, '2>', \$err);
	chomp $out;
	return $done ? ($out, undef) : (undef, $err);
}

my @clients;

sub client
{
	my ($what) = @_;
	my $pid = fork;
	if ($pid == 0)
	{
		my $n = 0;
		$what->($n++) until -e "$dir/stop";
		_exit(0);
	}
	push @clients, $pid;
}

lead_to($first);
for my $c (1, 2)
{
	client(sub {
		my ($n) = @_;
		my ($out, $err) = ask("BEGIN; INSERT INTO m VALUES ('$c-$n'); INSERT INTO h VALUES ('$c-$n'); COMMIT");
		say_to("$dir/acknowledged", "$c-$n") if !defined $err;
	});
}
for my $t (qw(m h))
{
	client(sub {
		my ($out, $err) = ask("SELECT count(*) FROM $t WHERE id LIKE 'old%'");
		if (!defined $err) { say_to("$dir/reads.$t", time . " $out"); return }
		# the line that says what it is, without what differs from one to the next
		my ($why) = $err =~ /(?:FATAL|ERROR):\s*([^\n]+)/;
		$why //= $err =~ /(No such file|refused|closed the connection|terminat)/ ? "not there: $1" : $err;
		say_to("$dir/errors.$t", $why);
		sleep 0.01;
	});
}

# (children leave by _exit)
END { kill 'KILL', @clients }

sub acknowledged
{
	return -e "$dir/acknowledged" ? scalar(() = slurp_file("$dir/acknowledged") =~ /\n/g) : 0;
}

# clients get on with it
sub goes_on
{
	my ($what) = @_;
	my $before = acknowledged();
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	sleep 0.05 while acknowledged() < $before + 20 && time < $until;
	cmp_ok(acknowledged(), '>=', $before + 20, "commits go on $what");
}

goes_on('at the beginning');

# ------------------------------------------------------- the standby's release

$second->restart;
goes_on('while the standby has been restarted');

# --------------------------------------------------------------- and they change

sub change_places
{
	my ($primary, $standby) = @_;
	$primary->stop('fast');
	$standby->promote;
	lead_to($standby);
	goes_on('on ' . $standby->name);
	$primary->enable_streaming($standby);
	$primary->start;
	$standby->wait_for_catchup($primary);
}

change_places($first, $second);
change_places($second, $first);

# a release without a standby's help
$first->restart;
goes_on('after a restart of the primary');

# -------------------------------------------------------------------- the end

say_to("$dir/stop", '');
waitpid $_, 0 for @clients;
@clients = ();

$first->wait_for_catchup($second);
my $acknowledged = slurp_file("$dir/acknowledged");
for my $node ($first, $second)
{
	for my $t (qw(m h))
	{
		my %there = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', "SELECT id FROM $t");
		is(scalar(grep { !$there{$_} } split /\n/, $acknowledged), 0, 'nothing that was acknowledged is missing in ' . $node->name . ", table $t");
	}
	is($node->safe_psql('postgres', 'SELECT (SELECT count(*) FROM m) - (SELECT count(*) FROM h), (SELECT count(*) FROM (SELECT id FROM m EXCEPT SELECT id FROM h) d)'),
		'0|0', 'and the tables are of one mind in ' . $node->name);
}

my (%gap, %why);
for my $t (qw(m h))
{
	my $last;
	my $wrong = 0;
	for (split /\n/, slurp_file("$dir/reads.$t"))
	{
		my ($at, $count) = split;
		$wrong++ if $count != $rows;
		$gap{$t} = $at - $last if defined $last && $at - $last > ($gap{$t} // 0);
		$last = $at;
	}
	is($wrong, 0, "each answer of table $t was complete");
	$why{$t} = { map { $_ => 1 } split /\n/, -e "$dir/errors.$t" ? slurp_file("$dir/errors.$t") : '' };
}
# what heap's readers happened not to meet, and any server says
my $any = qr/^(not there: |the database system is |terminating connection due to )/;
is(join('; ', grep { !$why{h}{$_} && !/$any/ } sort keys %{ $why{m} }), '', 'readers of memory-optimized tables are refused by nothing else');
note(sprintf 'longest time without an answer: memory-optimized %.2f s, heap %.2f s; %d commits acknowledged', $gap{m}, $gap{h}, acknowledged());

done_testing();
