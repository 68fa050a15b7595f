# Checkpoints of the server wait for ours; none may wait for ever: while the
# worker is terminated, again and again, under load, with and without a slot;
# while helpers die or are terminated; while a backup begins.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $rounds = $ENV{ROUNDS} || 12;
my $seed = int($ENV{SEED} || 1);
srand($seed);
diag("ROUNDS=$rounds SEED=$seed");

my $ledger = Ledger->new(name => 'hang', writers => 2);
my $node = $ledger->node;
$ledger->begin;

sub terminate
{
	my ($what) = @_;
	return "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type ~ '$what';";
}

for my $wal_level ('replica', 'minimal')
{
	my (@late, @wrong, @asked);

	$node->stop;
	$ledger->configure(wal_level => $wal_level, max_wal_senders => $wal_level eq 'minimal' ? 0 : 10);
	$node->start;
	$ledger->start_clients($seed++);
	sleep 0.2;
	for my $round (1 .. $rounds)
	{
		my $what = (qw(checkpointer checkpointer helper maintenance))[ int(rand(4)) ];
		my $began = time;

		# terminated before, during or after the checkpoint's beginning
		push @asked, $ledger->in_background('psql', '-X', '-q', '-c', 'SELECT pg_sleep(' . rand(0.05) . ')', '-c', terminate("mot $what"), $node->connstr('postgres'));
		push @asked, $ledger->in_background('psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres')) if rand() < 0.5;
		sleep rand(0.05);
		my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '30s'; CHECKPOINT");
		push @late, "round $round ($what): $err after " . int(time - $began) . ' s' if $ret != 0;
		last if @late;
	}
	is(join("\n", @late), '', "wal_level = $wal_level: no checkpoint waits for ever");
	is($node->safe_psql('postgres', 'SELECT failed FROM mot_stat_checkpoint'), '0', '... and none has failed') if $ledger->{engine} eq 'mot';
	if ($wal_level eq 'replica')
	{
		push @asked, $ledger->in_background('psql', '-X', '-q', '-c', terminate('mot checkpointer'), $node->connstr('postgres'));
		$node->backup('meanwhile');
		ok(1, 'a backup begins while the worker is terminated');
	}
	if ($wal_level eq 'replica' && $ledger->{engine} eq 'mot')
	{
		# a checkpoint is under way, slowly, when the worker comes
		my $worker = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'";
		my $from = -s $node->logfile;
		my $other_than = sub {
			$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($worker) w WHERE pid <> $_[0]") or die;
			return $node->safe_psql('postgres', $worker);
		};

		# the one that was terminated above may still be on its way out: the next one, then
		waitpid($_, 0) for @asked;
		my $pid = $other_than->(0);
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		$pid = $other_than->($pid);
		$node->safe_psql('postgres', 'CHECKPOINT; CREATE TABLE much USING heap AS SELECT repeat($$x$$, 500) FROM generate_series(1, 30000)');
		$ledger->in_background('psql', '-X', '-q', '-c', q{SELECT pg_backup_start('slow', false)}, $node->connstr('postgres'));
		$node->wait_for_log(qr/checkpoint starting: force wait/, $from);
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		$other_than->($pid);
		sleep 0.2;
		unlike(slurp_file($node->logfile, $from), qr/checkpoint starting: force wait.*checkpoint complete: wrote/s, 'a slow checkpoint is under way');
		my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '30s'; CHECKPOINT");
		is($err, '', '... and completes when the worker has come back meanwhile');
	}
	$ledger->kill_all or die 'processes do not die';
	$ledger->wait_clients;
	$node->start;
	is(join("\n", $ledger->verify), '', '... and nothing is lost');
	$ledger->settle;
}

$node->stop;
done_testing();
