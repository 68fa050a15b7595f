# Processes that work for long keep away from a processor that others use, and
# go back to it.  /proc/stat is a file of ours, in which a neighbour comes and goes.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

sub allowed
{
	my $status = slurp_file("/proc/$_[0]/status");
	return $status =~ /^Cpus_allowed_list:\s*(\S+)/m ? join(',', map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split(/,/, $1)) : '';
}

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};
my $all = allowed('self');
my @cpus = split(/,/, $all);
plan skip_all => 'a machine of one processor' if @cpus < 2;
# few enough that each counts
if (@cpus > 4)
{
	@cpus = @cpus[ 0 .. 3 ];
	$all = join(',', @cpus);
	system('taskset', '-cp', $all, $$) == 0 or plan skip_all => 'cannot choose processors';
}
my $busy = $cpus[-1];
my $others = join(',', @cpus[ 0 .. $#cpus - 1 ]);

# ------------------------------------------------- the neighbour, in a file

my $dir = PostgreSQL::Test::Utils::tempdir;
$ENV{MOT_TEST_PROC_STAT} = "$dir/stat";

sub neighbour { unlink("$dir/now"); append_to_file("$dir/now", $_[0]) }

neighbour("busy $busy");
my $child = fork;
if ($child == 0)
{
	my (%ticks, %idle);
	my $last = time;
	my $parent = getppid;
	while (getppid == $parent)
	{
		my $now = time;
		my $state = -e "$dir/now" ? slurp_file("$dir/now") : '';
		my $text = '';
		for my $cpu (@cpus)
		{
			my $counter = $state eq "busy $cpu" ? \%ticks : \%idle;
			$counter->{$cpu} += ($now - $last) * 100;
			next if $state eq "offline $cpu";
			$text .= sprintf("cpu%d %d 0 0 %d 0 0 0 0 0 0\n", $cpu, $ticks{$cpu} // 0, $idle{$cpu} // 0);
		}
		$last = $now;
		open(my $out, '>', "$dir/stat.new") or POSIX::_exit(1);
		print $out $text;
		close($out);
		$state eq 'nothing' ? unlink("$dir/stat") : rename("$dir/stat.new", "$dir/stat");
		sleep 0.02;
	}
	require POSIX;
	POSIX::_exit(0);
}
sleep 0.02 until -e "$dir/stat";

# ------------------------------------------------------------------ the server

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
mot.load_workers = 1
mot.checkpoint_workers = 1
mot.fault = ''
});
$node->start;
sub query { return $node->safe_psql('postgres', $_[0]) }

# processes of ours whose title has this in it
sub processes
{
	my ($title) = @_;
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	return grep { Ledger::title($_) =~ /$title/ } Ledger::children($postmaster);
}

# does each process of that title come to have these CPUs?
sub comes_to
{
	my ($title, $wanted, $what) = @_;
	my $seen = 'none';
	my $end = time + 20;
	while (time < $end)
	{
		for my $pid (processes($title))
		{
			$seen = eval { allowed($pid) } // next;
			return pass($what) if $seen eq $wanted;
		}
		sleep 0.02;
	}
	return is($seen, $wanted, $what);
}

query('CREATE EXTENSION mot');
query("CREATE TABLE t$_ USING mot AS SELECT i, repeat('x', 100) FROM generate_series(1, 2000) i; ALTER TABLE t$_ ADD PRIMARY KEY (i)") for 1 .. 6;
query("CREATE TABLE large USING mot AS SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i; ANALYZE large");

sub machine_says
{
	my ($usable, $why, $what) = @_;
	return ok($node->poll_query_until('postgres',
		"SELECT usable = $usable AND coalesce(why_not, '') ~ '$why' FROM mot_machine WHERE cpu = $busy"), $what);
}
machine_says('false', '^busy \d+ % with others$', 'the neighbour is seen');
is(query("SELECT partitions FROM mot_suggest_partitions(1 << 30, 'compute')"), $#cpus, '... and left out');
is(query("SELECT count(*) FROM mot_suggest_placement($#cpus, 1 << 20, 'compute', false) WHERE cpu = $busy"), 0, '... of placements, too');

# a checkpoint's helper
query("UPDATE t$_ SET i = i") for 1 .. 3;
$node->append_conf('postgresql.conf', "mot.fault = 'checkpoint-rows:sleep'\n");
$node->reload;
my $checkpoint = $node->background_psql('postgres');
$checkpoint->query_until(qr/begins/, "\\echo begins\nCHECKPOINT;\n");
comes_to('mot checkpoint helper', $others, "a checkpoint's helper keeps away");
$checkpoint->quit;

# parallel workers
my $masks = query(
	q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 1;
	SELECT DISTINCT substring(pg_read_file('/proc/self/status') FROM 'Cpus_allowed_list:\s*(\S+)')
	FROM large WHERE substring(pg_read_file('/proc/self/stat') FROM '^\d+')::int <> (SELECT pg_backend_pid()) AND i % 1000 = 0});
like($masks, qr/^$|^@{[ @cpus == 2 ? $others : "$cpus[0]-$cpus[-2]" ]}$/, 'parallel workers keep away, if there are any');

# loading: who leads and who helps; until the neighbour has gone
$node->stop;
$node->append_conf('postgresql.conf', "mot.fault = 'load-file:sleep,load-index:sleep'\n");
$node->start;
comes_to('mot checkpointer', $others, 'who leads the loading keeps away');
comes_to('mot load helper', $others, '... and who helps');
neighbour('nobody');
comes_to('mot checkpointer', $all, '... until the neighbour has gone');
ok($node->poll_query_until('postgres', 'SELECT bool_and(loaded) FROM mot_stat_tables'), 'the tables are loaded');
is(query('SELECT count(*), sum(i) FROM t1'), '2000|2001000', '... with their rows');
comes_to('mot checkpointer', $all, 'who has loaded goes anywhere again');
machine_says('true', '^$', 'the processor is back');

# it is switched off, the processor goes, there is nothing to read
neighbour("busy $busy");
machine_says('false', '^busy \d+ % with others$', 'the neighbour comes again');
query('ALTER SYSTEM SET mot.adviser = off');
$node->reload;
machine_says('true', '^$', 'without the adviser nothing is known');
query('ALTER SYSTEM RESET mot.adviser');
$node->reload;
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
system("taskset -cp $others $postmaster >/dev/null");
machine_says('false', '^not among the server.s CPUs', 'a processor that the server may no longer use');
neighbour("offline $busy");
machine_says('false', '^offline$', '... and that goes');
system("taskset -cp $all $postmaster >/dev/null");
neighbour('nothing');
machine_says('true', '^$', 'without /proc/stat all are free');
ok(query('SELECT free = cpus FROM mot_stat_machine') eq 't', '... and nobody else is there');

$node->stop;
kill 'KILL', $child;
waitpid($child, 0);
done_testing();
