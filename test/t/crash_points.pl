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

my @points = grep { !/^(damage|decoded|deleted|failure|held|left-out|maintenance|pipeline|prepare|prepared|read|renew|standby)-/ } split(' ', $ENV{MOT_FAULT_POINTS} // '');
@points = grep { $_ =~ /$ENV{POINTS}/ } @points if $ENV{POINTS};
plan skip_all => 'not a build with fault points' unless @points;
plan skip_all => 'heap tables have no fault points' if Ledger::default_engine() eq 'heap';

my $seed = $ENV{SEED} || 1;
srand($seed);
my $ledger = Ledger->new(name => 'points', writers => 3);
my $node = $ledger->node;
$ledger->{databases} = 1;
$ledger->begin;

sub reached
{
	my ($point, $from) = @_;
	return slurp_file($node->logfile, $from) =~ /fault point "\Q$point\E" reached/;
}

# a transaction in pieces, and definitions, for replay
my $e = $ledger->{engine};
my $rare = qq{
	DROP TABLE IF EXISTS rare;
	CREATE TABLE rare (i int PRIMARY KEY, t text) USING $e;
	INSERT INTO rare SELECT i, repeat('x', 1000) FROM generate_series(1, 3000) i;
	CREATE INDEX ON rare (t);
	ALTER TABLE rare ADD COLUMN n int;
	CREATE INDEX CONCURRENTLY ON rare (n);
	CREATE INDEX CONCURRENTLY ON rare ((i % 10)) WHERE i > 5;
	UPDATE rare SET n = 1 WHERE i < 10;
	DELETE FROM rare WHERE i > 2000};

# the first change after a start
sub change
{
	my ($out) = run_command([ 'psql', '-X', '-c', 'UPDATE accounts_a SET balance = balance WHERE id = 0', $node->connstr('postgres') ]);
	return $out =~ /UPDATE/;
}

# Where did it die?
sub die_at
{
	my ($point, $from) = @_;

	# at work; a checkpoint in any case
	my $nth = 1 + int(rand(3));
	$ledger->configure('mot.fault' => "$point:killall" . ($point =~ /^(commit|mixed)-[^p]/ ? ":$nth" : ''));
	$ledger->start_clients($seed++);
	sleep 0.3;
	$ledger->in_background('psql', '-X', '-q', '-c', 'CHECKPOINT', $node->connstr('postgres'));
	# (those not reached at work need not be waited for, but some work for replay)
	for (1 .. ($point =~ /^(load|shutdown)/ ? 3 : $point =~ /^replay/ ? 8 : 30))
	{
		last if reached($point, $from);
		sleep 0.1;
	}
	# (replay makes an index only of a table that the checkpoint has)
	my $indexed = $point eq 'replay-index' ? 'DROP INDEX IF EXISTS late; CREATE INDEX late ON accounts_a (balance);' : '';
	if ($point =~ /^replay-(create|define|drop|index|piece)/ && !reached($point, $from))
	{
		# (what $rare does has to follow the last checkpoint, and each new database makes one)
		$ledger->stop_clients;
		$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'");
	}
	# (nor anything of one that is dropped behind it)
	my $dropped = $point =~ /^replay-(?!drop)/ ? '' : '; DROP TABLE IF EXISTS rare';
	run_command([ 'psql', '-X', (map { ('-c', $_) } split(/;/, $indexed . $rare . $dropped)), $node->connstr('postgres') ]) unless reached($point, $from);
	if (reached($point, $from))
	{
		$ledger->wait_death(20) or return;
		return 'at work';
	}

	# in recovery
	$ledger->kill_all or die 'processes do not die';
	$ledger->start_without_waiting;
	for (1 .. 40)
	{
		last if reached($point, $from) || $ledger->answers;
		sleep 0.1;
	}
	change() unless reached($point, $from);
	sleep 0.3 unless reached($point, $from);
	if (reached($point, $from))
	{
		$ledger->wait_death(20) or return;
		return 'in recovery';
	}

	# after a clean shutdown, or in it
	for (1 .. 100) { last if $ledger->answers; sleep 0.1 }
	system_log('pg_ctl', '-D', $node->data_dir, '-m', 'fast', 'stop');
	if (reached($point, $from))
	{
		$ledger->wait_death(20) or return;
		return 'in shutdown';
	}
	$ledger->start_without_waiting;
	for (1 .. 40)
	{
		last if reached($point, $from) || change();
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
	my $where;

	# what clients do is left to chance
	for (1 .. 4)
	{
		last if defined($where = die_at($point, $from));
		$ledger->kill_all or die 'processes do not die';
		$ledger->wait_clients;
		# (it may come to it only now)
		$ledger->configure('mot.fault' => undef);
		$node->start;
		die 'not in order' if $ledger->verify;
		$ledger->settle;
	}
	$ledger->wait_clients;
	$ledger->configure('mot.fault' => undef);
	if (!defined $where)
	{
		fail("$point: never reached, or survived");
		next;
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
