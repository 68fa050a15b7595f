# The server dies at each of the points named in the sources (MOT_FAULT), at
# whatever time it comes by there: while clients work, in a checkpoint, while
# it recovers, while it loads, while it shuts down.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my @points = grep { !/^damage-/ } split(' ', $ENV{MOT_FAULT_POINTS} // '');
@points = grep { $_ =~ /$ENV{POINTS}/ } @points if $ENV{POINTS};
plan skip_all => 'not a build with fault points' unless @points;
plan skip_all => 'heap tables have no fault points' if Ledger::default_engine() eq 'heap';

my $seed = $ENV{SEED} || 1;
srand($seed);
my $ledger = Ledger->new(name => 'points', writers => 3);
my $node = $ledger->node;
$ledger->begin;

sub set_fault
{
	my ($fault) = @_;
	my $conf = $node->data_dir . '/postgresql.conf';
	my @lines = grep { !/^mot\.fault/ } split(/^/, slurp_file($conf));
	push @lines, "mot.fault = '$fault'\n" if $fault;
	open(my $fh, '>', "$conf.new") or die;
	print $fh @lines;
	close $fh;
	rename "$conf.new", $conf or die;
	return;
}

sub reached
{
	my ($point, $from) = @_;
	return slurp_file($node->logfile, $from) =~ /fault point "\Q$point\E" reached/;
}

sub in_background
{
	my @command = @_;
	my $pid = fork;
	die unless defined $pid;
	if ($pid == 0)
	{
		open(STDOUT, '>', '/dev/null');
		open(STDERR, '>', '/dev/null');
		exec(@command) or POSIX::_exit(127);
	}
	push @{ $ledger->{pids} }, $pid;
	return;
}

sub start_without_waiting
{
	system_log('pg_ctl', '-W', '-D', $node->data_dir, '-l', $node->logfile, 'start');
	for (1 .. 500) { last if $ledger->postmaster; sleep 0.01 }
	$node->{_pid} = $ledger->postmaster;
	return;
}

sub answers
{
	my ($ret) = $node->psql('postgres', 'SELECT 1');
	return $ret == 0;
}

# Where did it die?
sub die_at
{
	my ($point, $from) = @_;

	# at work; a checkpoint in any case
	my $nth = 1 + int(rand(3));
	set_fault("$point:killall" . ($point =~ /^(commit|mixed)/ ? ":$nth" : ''));
	$node->reload;
	$ledger->start_clients($seed++);
	sleep 0.3;
	in_background('psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres'));
	for (1 .. 20)
	{
		last if reached($point, $from);
		sleep 0.1;
	}
	if (reached($point, $from))
	{
		$ledger->wait_death(20) or return;
		return 'at work';
	}

	# in recovery
	$ledger->kill_all or die 'processes do not die';
	start_without_waiting();
	for (1 .. 40)
	{
		last if reached($point, $from) || answers();
		sleep 0.1;
	}
	# the first change after a start
	$node->psql('postgres', 'UPDATE accounts_a SET balance = balance WHERE id = 0') unless reached($point, $from);
	sleep 0.3 unless reached($point, $from);
	if (reached($point, $from))
	{
		$ledger->wait_death(20) or return;
		return 'in recovery';
	}

	# after a clean shutdown, or in it
	$node->poll_query_until('postgres', 'SELECT true');
	system_log('pg_ctl', '-D', $node->data_dir, '-m', 'fast', '-t', '30', 'stop');
	if (reached($point, $from))
	{
		$ledger->wait_death(20) or return;
		return 'in shutdown';
	}
	start_without_waiting();
	for (1 .. 40)
	{
		last if reached($point, $from);
		sleep 0.1;
	}
	if (reached($point, $from))
	{
		$ledger->wait_death(20) or return;
		return 'at start';
	}
	return;
}

for my $point (@points)
{
	my $from = -s $node->logfile;
	my $where = die_at($point, $from);
	$ledger->wait_clients;
	set_fault('');
	if (!defined $where)
	{
		fail("$point: never reached, or survived");
		$ledger->kill_all;
	}
	unlink $node->data_dir . '/mot.fault.go';
	$node->start;
	my @wrong = $ledger->verify;
	is(join("\n", @wrong), '', "$point, " . ($where // 'not reached'));
	if (@wrong)
	{
		$node->stop('immediate');
		last;
	}
	$ledger->settle;
}

$node->stop if $node->{_pid};
done_testing();
