# Servers die while transactions are prepared, committed, rolled back, restored, and beside
# checkpoints: afterwards each is what the server says of it, in tables of all kinds.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared;
use Test::More;
use Time::HiRes qw(usleep);

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $node = make_node('steps');
make_steps();

my $round = 0;
for my $point (qw(prepare-kept prepare-packed prepare-logged prepare-decided prepare-handed prepare-done))
{
	for my $large ($round++ % 2)
	{
		my $was = all_equal("before $point");
		my $expected = $point =~ /kept|packed|logged/ ? 0 : 1;
		# (the first of them at SERIALIZABLE only)
		my $begin = $round % 2 ? 'BEGIN ISOLATION LEVEL SERIALIZABLE;' : 'BEGIN;';
		with_fault("$point:killall", $begin . step_work($large) . "PREPARE TRANSACTION 'step'");
		wait_death();
		$node->start;
		is(prepared(), $expected, "$point: killed there, it is " . ($expected ? '' : 'not ') . 'prepared');
		is(all_equal("$point: all or nothing"), $was, '... and not seen');
		if ($expected)
		{
			fails("SELECT 1 FROM step_$_ WHERE id = 1 FOR UPDATE NOWAIT", qr/could not obtain lock/, "... its rows in step_$_ are locked") for qw(o f h);
			my $end = $round % 3 ? 'COMMIT' : 'ROLLBACK';
			sql("$end PREPARED 'step'");
			my $is = all_equal("$point: $end");
			is($is eq $was ? 'ROLLBACK' : 'COMMIT', $end, '... it is what was asked for');
		}
		sql("UPDATE step_$_ SET v = v + 1 WHERE id = 1") for qw(o f h);
		# an error there takes it back, or there is none
		with_fault("$point:error", $begin . step_work($large) . "PREPARE TRANSACTION 'step'") if $point =~ /kept|packed|logged/;
		is(prepared(), '0', "$point: nothing is left");
		all_equal("$point: all rows agree");
	}
}

for my $end ('COMMIT', 'ROLLBACK')
{
	for my $point (qw(prepared-claimed prepared-decided), ($end eq 'COMMIT' ? 'prepared-installed' : 'prepared-undone'), qw(prepared-left prepared-over))
	{
		for my $large ($round++ % 2)
		{
			my $was = all_equal("before $point");
			sql(($round % 2 ? 'BEGIN ISOLATION LEVEL SERIALIZABLE;' : 'BEGIN;') . step_work($large) . "PREPARE TRANSACTION 'step'");
			sql('CHECKPOINT') if $round % 3;
			with_fault("$point:killall", "$end PREPARED 'step'");
			wait_death();
			$node->start;
			my $is = all_equal("$end, $point: all or nothing");
			if ($point eq 'prepared-claimed')
			{
				is($is, $was, '... not committed yet');
				is(prepared(), '1', '... still prepared');
				# (who writes has it restored; ROLLBACK PREPARED does not)
				sql("BEGIN; INSERT INTO step_f VALUES (100000, 0, 'x'); ROLLBACK");
				with_fault("$point:error", "$end PREPARED 'step'");
				is(prepared(), '1', '... an error leaves it so');
				sql("$end PREPARED 'step'");
				$is = all_equal("$end, $point: once more");
			}
			is($is eq $was ? 'ROLLBACK' : 'COMMIT', $end, '... it is what was asked for');
			is(prepared(), '0', '... and done with');
			sql("UPDATE step_$_ SET v = v + 1") for qw(o f h);
			all_equal("$end, $point: rows can be changed");
		}
	}
}

# checkpoints die, with one that is prepared; and so does who restores it
my $was = all_equal('before checkpoints');
sql('BEGIN;' . step_work(1) . "PREPARE TRANSACTION 'large'");
sql('BEGIN; ' . join('', map { "UPDATE step_$_ SET v = v + 7 WHERE id = 7;" } qw(o f h)) . "PREPARE TRANSACTION 'small'");
# (from 17 on an assertion of the server's own fails at start if a checkpoint has left its files of
# such transactions behind without being complete, and the one before it did not know of them)
sql('CHECKPOINT') if $node->pg_version >= 17;
for my $point (qw(checkpoint-gate checkpoint-line checkpoint-manifest checkpoint-rename checkpoint-renamed prepared-restore writable-restored writable-marked load-sorted load-end replay-end))
{
	$node->append_conf('postgresql.conf', "mot.fault = '$point:killall'");
	if ($point =~ /^check/)
	{
		$node->reload;
		$node->psql('postgres', 'CHECKPOINT');
	}
	else
	{
		$node->stop('immediate');
		system_log('pg_ctl', '-W', '-D', $node->data_dir, '-l', $node->logfile, 'start');
		for (1 .. 100)
		{
			# (psql may end before it has been told what to run)
			eval { $node->psql('postgres', 'UPDATE step_o SET v = v WHERE id = 9') };
			last if slurp_file($node->logfile) =~ /fault point "$point" reached/;
			usleep(100_000);
		}
		$node->_update_pid(-1);
	}
	wait_death();
	like(slurp_file($node->logfile), qr/fault point "$point" reached/, "$point is reached");
	$node->append_conf('postgresql.conf', "mot.fault = ''");
	$node->start;
	is(prepared(), '2', "$point: both are prepared");
	is(all_equal("$point: all agree"), $was, "$point: nothing is seen");
	fails("SELECT 1 FROM step_$_ WHERE id = 7 FOR UPDATE NOWAIT", qr/could not obtain lock/, "$point: a row of step_$_ is locked") for qw(o f h);
}
sql("COMMIT PREPARED 'small'");
sql("COMMIT PREPARED 'large'");
isnt(all_equal('both committed'), $was, 'both committed');

# a checkpoint between the server's commit and the installation
for my $point (qw(prepared-claimed prepared-decided prepared-left))
{
	unlink $node->data_dir . '/mot.fault.go';
	sql('BEGIN;' . step_work(0) . "PREPARE TRANSACTION 'step'");
	my $committer = $node->background_psql('postgres');
	$committer->query_safe("SET mot.fault = '$point:wait'");
	my $from = -s $node->logfile;
	$committer->query_until(qr/started/, "\\echo started\nCOMMIT PREPARED 'step';\n");
	$node->wait_for_log(qr/fault point "$point" reached/, $from);
	my $reader = $node->background_psql('postgres');
	$reader->query_until(qr/started/, "\\echo started\nSELECT (SELECT sum(v) FROM step_o), (SELECT sum(v) FROM step_f), (SELECT sum(v) FROM step_h);\n");
	# another one who would end it
	my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '" . ($point eq 'prepared-claimed' ? '1min' : '300ms') . "'; ROLLBACK PREPARED 'step'");
	like($err, $point eq 'prepared-claimed' ? qr/prepared transaction with identifier "step" is busy/ : qr/canceling statement due to statement timeout|does not exist/, "$point: others cannot end it");
	my $checkpointer = $node->background_psql('postgres');
	$checkpointer->query_until(qr/started/, "\\echo started\nCHECKPOINT;\n");
	usleep(1_500_000);
	append_to_file($node->data_dir . '/mot.fault.go', '');
	$committer->query_safe('SELECT 1');
	my $seen = $reader->query_safe('SELECT 1');
	$checkpointer->query_safe('SELECT 1');
	$_->quit for $committer, $reader, $checkpointer;
	my $is = all_equal("$point: a checkpoint comes meanwhile");
	$node->stop('immediate');
	$node->start;
	is(all_equal("$point: after a crash"), $is, "$point: it is applied once");
	unlink $node->data_dir . '/mot.fault.go';
}

# its locks have gone, and it is not installed yet: who gets the tables finds all of it, or takes
# them away after it
for my $ddl ('ALTER TABLE step_X ALTER v TYPE numeric', 'CREATE INDEX step_X_t ON step_X (t)', 'TRUNCATE step_X', 'DROP TABLE step_X')
{
	unlink $node->data_dir . '/mot.fault.go';
	sql('BEGIN;' . step_work(1) . "PREPARE TRANSACTION 'step'");
	my $committer = $node->background_psql('postgres');
	$committer->query_safe("SET mot.fault = 'prepared-decided:wait'");
	my $from = -s $node->logfile;
	$committer->query_until(qr/started/, "\\echo started\nCOMMIT PREPARED 'step';\n");
	$node->wait_for_log(qr/fault point "prepared-decided" reached/, $from);
	my $other = $node->background_psql('postgres');
	$other->query_until(qr/started/, "\\echo started\n" . join('', map { my $s = $ddl =~ s/_X/_$_/gr; $s =~ s/TABLE/FOREIGN TABLE/ if $_ eq 'f' && $s !~ /INDEX|TRUNCATE/; "$s;" } qw(o f h)) . "\n");
	usleep(500_000);
	append_to_file($node->data_dir . '/mot.fault.go', '');
	$committer->query_safe('SELECT 1');
	$other->query_safe('SELECT 1');
	$_->quit for $committer, $other;
	all_equal("$ddl while it is committed") if $ddl !~ /DROP/;
	is(sql("SELECT sum(problems) FROM (SELECT (mot_verify(o)).problems FROM unnest(ARRAY['step_o', 'step_f']::regclass[]) o) x"), '0', '... and nothing is missing') if $ddl !~ /DROP/;
	sql("INSERT INTO step_$_ SELECT i, 0 FROM generate_series(1, 10) i") for $ddl =~ /TRUNCATE/ ? qw(o f h) : ();
}
$node->stop('immediate');
$node->start;
is(sql("SELECT count(*) FROM pg_class WHERE relname LIKE 'step%'"), '0', '... after a crash, too');

$node->stop;
done_testing();
