# Transfers between heap and memory-optimized accounts by PREPARE TRANSACTION and COMMIT PREPARED,
# while servers are killed and checkpoints come: no reader sees one half done, what was acknowledged
# is there, and what is left prepared can be ended either way.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use POSIX qw(_exit);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared;
use Test::More;
use Time::HiRes qw(usleep sleep time);

my $cycles = $ENV{CYCLES} || 4;
my $seconds = 4;
srand($ENV{SEED} || 1);

my $node = make_node('ledger', "max_prepared_transactions = 60\nmax_connections = 60\nrestart_after_crash = off\n");
sql(q{
	CREATE TABLE acc_o (id int PRIMARY KEY, b bigint) USING mot;
	CREATE FOREIGN TABLE acc_f (id int PRIMARY KEY, b bigint) SERVER mot_server;
	CREATE TABLE acc_h (id int PRIMARY KEY, b bigint);
	CREATE TABLE journal_o (gid text COLLATE "C" PRIMARY KEY, n int) USING mot;
	CREATE TABLE journal_h (gid text PRIMARY KEY, n int);
	INSERT INTO acc_o SELECT i, 1000 FROM generate_series(1, 20) i;
	INSERT INTO acc_f SELECT i, 1000 FROM generate_series(1, 20) i;
	INSERT INTO acc_h SELECT i, 1000 FROM generate_series(1, 20) i;
});
my $total = 60000;
my $sum = '(SELECT sum(b) FROM acc_o) + (SELECT sum(b) FROM acc_f) + (SELECT sum(b) FROM acc_h)';
my $both = '(SELECT count(*) FROM journal_o) - (SELECT count(*) FROM journal_h)';

my $dir = PostgreSQL::Test::Utils::tempdir;

sub note_down
{
	my ($file, $line) = @_;
	open my $f, '>>', "$dir/$file" or die;
	syswrite $f, "$line\n";
	close $f;
	return;
}

# statements of one connection; did all succeed?
sub run_all
{
	my @statements = @_;
	my ($out, $err) = ('', '');
	my $done = IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), map { ('-c', $_) } @statements ], '>', \$out, '2>', \$err);
	return ($done, $out, $err);
}

sub transfers
{
	my ($cycle, $client, $until) = @_;
	my $i = 0;
	srand($cycle * 100 + $client);
	while (time < $until)
	{
		my $gid = "$cycle.$client." . $i++;
		my $n = 1 + int rand 100;
		my @tables = (qw(o f h))[ rand > 0.3 ? (rand > 0.5 ? (0, 2) : (1, 2)) : (0, 1) ];
		@tables = reverse @tables if rand > 0.8;
		my ($level) = rand > 0.5 ? 'READ COMMITTED' : 'REPEATABLE READ';
		my ($prepared) = run_all("SET lock_timeout = '2s'", "BEGIN ISOLATION LEVEL $level",
			"UPDATE acc_$tables[0] SET b = b - $n WHERE id = " . (1 + int rand 20),
			"UPDATE acc_$tables[1] SET b = b + $n WHERE id = " . (1 + int rand 20),
			"INSERT INTO journal_o VALUES ('$gid', $n)", "INSERT INTO journal_h VALUES ('$gid', $n)",
			"PREPARE TRANSACTION '$gid'");
		next unless $prepared;
		note_down("notes.$client", "PREPARED $gid");
		# some are left for a while, or for ever
		next if rand > 0.95;
		my $end = rand > 0.25 ? 'COMMIT' : 'ROLLBACK';
		note_down("notes.$client", "TRIES $gid");
		my ($ended) = run_all("$end PREPARED '$gid'");
		note_down("notes.$client", "$end $gid") if $ended;
	}
	return;
}

# (each of these is a statement over tables of all kinds)
sub reads
{
	my ($until) = @_;
	my $n = 0;
	while (time < $until)
	{
		my ($done, $out) = run_all(("SELECT $sum, $both") x 20, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT $sum; SELECT $both; COMMIT");
		for (split /\n/, $out)
		{
			$n++;
			note_down('wrong', $_) unless $_ eq "$total|0" || $_ eq $total || $_ eq '0';
		}
	}
	note_down('reads', $n);
	return;
}

my %state;
for my $cycle (1 .. $cycles)
{
	my $until = time + $seconds;
	my @pids;
	for my $client (1 .. 6)
	{
		my $pid = fork // die;
		if ($pid == 0)
		{
			eval { $client <= 4 ? transfers($cycle, $client, $until) : reads($until); 1 } or note_down('wrong', $@);
			_exit(0);
		}
		push @pids, $pid;
	}
	sleep 1 + rand 1;
	$node->psql('postgres', 'CHECKPOINT') if $cycle % 2;
	sleep rand 2;
	# the last one is left to end in order
	if ($cycle < $cycles)
	{
		my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
		kill 9, $postmaster;
		kill 9, grep { (readlink("/proc/$_/cwd") // '') eq $node->data_dir } map { m{/proc/(\d+)} } glob('/proc/[0-9]*');
	}
	waitpid $_, 0 for @pids;
	if ($cycle < $cycles)
	{
		wait_death();
		$node->start;
	}

	is(sql("SELECT $sum, $both"), "$total|0", "cycle $cycle: the total is right, with " . prepared() . ' prepared');
	for my $client (1 .. 4)
	{
		next unless -f "$dir/notes.$client";
		for (split /\n/, slurp_file("$dir/notes.$client"))
		{
			my ($what, $gid) = split / /;
			$state{$gid} = $what unless ($state{$gid} // '') =~ /ENDED/;
		}
		unlink "$dir/notes.$client";
	}
	my %is_prepared = map { $_ => 1 } split /\n/, sql('SELECT gid FROM pg_prepared_xacts');
	my %is_there = map { $_ => 1 } split /\n/, sql('SELECT gid FROM journal_o');
	my @wrong;
	for my $gid (keys %state)
	{
		my $what = $state{$gid};
		push @wrong, "$gid was prepared" if $what eq 'PREPARED' && !$is_prepared{$gid};
		push @wrong, "$gid was committed" if $what eq 'COMMIT' && (!$is_there{$gid} || $is_prepared{$gid});
		push @wrong, "$gid was rolled back" if $what eq 'ROLLBACK' && ($is_there{$gid} || $is_prepared{$gid});
		push @wrong, "$gid is prepared and seen" if $is_prepared{$gid} && $is_there{$gid};
	}
	is("@wrong", '', "cycle $cycle: what was acknowledged holds");

	# who is left: their rows are held, and they can be ended, some after another crash
	for my $gid (sort keys %is_prepared)
	{
		next if $gid =~ /\.[1-3]\./ && rand > 0.8;
		my $end = rand > 0.5 ? 'COMMIT' : 'ROLLBACK';
		sql("$end PREPARED '$gid'");
		$state{$gid} = $end;
	}
	is(sql("SELECT $sum, $both"), "$total|0", "cycle $cycle: the total is right with " . prepared() . ' prepared');
	diag("cycle $cycle: " . scalar(keys %state) . ' transactions so far, ' . scalar(keys %is_prepared) . ' were left');
}
sql("ROLLBACK PREPARED '$_'") for split /\n/, sql('SELECT gid FROM pg_prepared_xacts');
ok(!-f "$dir/wrong", 'no reader has seen a half') or diag(slurp_file("$dir/wrong"));
cmp_ok(eval(join '+', split /\n/, slurp_file("$dir/reads")), '>', 20, '... and there were some');
is(sql("SELECT $sum, $both"), "$total|0", 'the total is right in the end');
is(sql("SELECT sum(problems) FROM (SELECT * FROM mot_verify('acc_o') UNION ALL SELECT * FROM mot_verify('acc_f') UNION ALL SELECT * FROM mot_verify('journal_o')) x"), '0', '... and indexes agree');
is(sql('SELECT count(*) FROM (SELECT 1 FROM acc_o FOR UPDATE NOWAIT) x'), '20', '... and no lock is left');
ok($node->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'), '... nor anything owed');
$node->stop;
done_testing();
