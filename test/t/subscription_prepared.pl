# A subscription made with two_phase: its worker prepares and ends transactions without a statement.
# Each is done alike on tables of both kinds, on both ends, and on the subscriber all agree at any
# time: beside readers and writers, killed at any step, on a standby that is promoted.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared qw(use_node wait_death);
use Test::More;
use Time::HiRes qw(usleep);

sub make_node
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 'logical');
	$node->append_conf(
		'postgresql.conf', q{
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
autovacuum = off
fsync = off
checkpoint_timeout = '1h'
max_prepared_transactions = 20
wal_retrieve_retry_interval = '100ms'
});
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION mot');
	return $node;
}

my $publisher = make_node('publisher');
my $subscriber = make_node('subscriber');

# where it is kept: at the publisher, and here; "l" is written here only
my @names = qw(heap_heap heap_mot mot_mot mot_heap);
$publisher->safe_psql('postgres', join(';', map { my ($am) = split /_/; ("CREATE TABLE $_ (id int PRIMARY KEY, v bigint, t text) USING $am", "INSERT INTO $_ SELECT i, 0 FROM generate_series(1, 10) i", "CREATE TABLE ${_}_once (n int) USING $am") } @names));
$subscriber->safe_psql('postgres', join(';', map { my (undef, $am) = split /_/; ("CREATE TABLE $_ (id int PRIMARY KEY, v bigint, t text, l int NOT NULL DEFAULT 0) USING $am", "CREATE TABLE ${_}_once (n int) USING $am") } @names));
$publisher->safe_psql('postgres', 'CREATE PUBLICATION pub FOR ALL TABLES');

my $number = 100;

sub work
{
	my ($large) = @_;
	$number++;
	return join '', map { "UPDATE $_ SET v = v + $number WHERE id <= 3; INSERT INTO $_ VALUES ($number, 1, 'new'); DELETE FROM $_ WHERE id = 4; INSERT INTO $_ VALUES (4, $number); INSERT INTO ${_}_once VALUES ($number);"
		. ($large ? "INSERT INTO $_ SELECT $number * 10000 + i, 1, repeat('x', 1000) FROM generate_series(1, 500) i;" : '') } @names;
}

sub prepare { return $publisher->safe_psql('postgres', 'BEGIN;' . work($_[1]) . "PREPARE TRANSACTION '$_[0]'") }
sub end { return $publisher->safe_psql('postgres', "$_[1] PREPARED '$_[0]'") }
sub prepared { return $subscriber->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts') }

sub set_fault
{
	$subscriber->safe_psql('postgres', "ALTER SYSTEM SET mot.fault = '$_[0]'");
	$subscriber->reload;
	# (who gets a connection now gets it when the server has told the worker, too)
	$subscriber->safe_psql('postgres', 'SELECT 1');
	usleep(300_000);
	return;
}

# all tables, in one statement
my $l = '0';
sub query { return join(' UNION ALL ', map { "SELECT count(*), sum(v), sum($l), md5(string_agg(id || ' ' || v || coalesce(t, ''), ',' ORDER BY id)), (SELECT count(*) || ' ' || sum(n) FROM ${_}_once) FROM $_" } @names) }

sub agree
{
	my ($name) = @_;
	my @all = split /\n/, $subscriber->safe_psql('postgres', query());
	ok((grep { $_ eq $all[0] } @all) == @names, "$name: all agree") or diag(join("\n", @all));
	return $all[0];
}

sub same
{
	my ($name) = @_;
	$publisher->wait_for_catchup('sub');
	my $is = agree($name);
	is($is, (split /\n/, $publisher->safe_psql('postgres', query()))[0], "$name: as at the publisher");
	return $is;
}

sub locked
{
	my ($name) = @_;
	for (@names)
	{
		my (undef, undef, $err) = $subscriber->psql('postgres', "SELECT 1 FROM $_ WHERE id = 1 FOR UPDATE NOWAIT");
		like($err, qr/could not obtain lock/, "$name: a row of $_ is locked");
	}
	return;
}

sub restarted { $subscriber->stop($_[0]); $subscriber->start; return }

# ------------------------------------------------------------- the initial copy

my $connstr = $publisher->connstr('postgres') =~ s/'//gr;
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connstr' PUBLICATION pub WITH (two_phase = on)");
# (a slot waits for those that are prepared already; two_phase begins when all tables have been
# copied)
prepare('meanwhile', 1);
sleep 1;
end('meanwhile', 'COMMIT');
$subscriber->poll_query_until('postgres', "SELECT count(*) = 8 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel") or die 'not copied';
$subscriber->poll_query_until('postgres', "SELECT subtwophasestate = 'e' FROM pg_subscription") or die 'no two_phase';
my $was = same('copied, with what was prepared meanwhile');

# ------------------------------------------------------------------- one by one

for my $end ('COMMIT', 'ROLLBACK')
{
	for my $between ('nothing', ($end eq 'COMMIT' ? ('a restart', 'a crash') : ()), 'a checkpoint and a crash', 'the end while it is down')
	{
		my $name = "$end after $between";
		prepare('one', $end eq 'COMMIT');
		$publisher->wait_for_catchup('sub');
		is(prepared(), '1', "$name: it is prepared");
		$subscriber->safe_psql('postgres', 'CHECKPOINT') if $between =~ /checkpoint/;
		if ($between =~ /down/)
		{
			$subscriber->stop('immediate');
			end('one', $end);
			$subscriber->start;
		}
		else
		{
			restarted('fast') if $between =~ /restart/;
			restarted('immediate') if $between =~ /crash/;
			is(agree($name), $was, "$name: it is not seen");
			locked($name);
			end('one', $end);
		}
		my $is = same($name);
		is($is eq $was ? 'ROLLBACK' : 'COMMIT', $end, "$name: it is what was asked for");
		is(prepared(), '0', "$name: and done with");
		$subscriber->safe_psql('postgres', join ';', map { "UPDATE $_ SET l = l + 1" } @names);
		$was = agree("$name, changed here");
	}
}
restarted('immediate');
is(same('after a crash'), $was, 'so it stays after a crash');

# tables emptied in it
for my $end ('ROLLBACK', 'COMMIT')
{
	$publisher->safe_psql('postgres', 'BEGIN; ' . join('', map { "INSERT INTO $_ VALUES (90, 1, 'before'); TRUNCATE $_; INSERT INTO $_ SELECT i, 5 FROM generate_series(1, 10) i; UPDATE $_ SET v = 6 WHERE id = 7;" } @names) . "PREPARE TRANSACTION 'truncate'");
	$publisher->wait_for_catchup('sub');
	is(prepared(), '1', "$end, TRUNCATE: it is prepared");
	restarted('immediate') if $end eq 'COMMIT';
	end('truncate', $end);
	my $is = same("$end, TRUNCATE");
	is($is eq $was ? 'ROLLBACK' : 'COMMIT', $end, "$end, TRUNCATE: it is what was asked for");
	$subscriber->safe_psql('postgres', join ';', map { "UPDATE $_ SET l = l + 1" } @names);
	$was = same("$end, TRUNCATE, changed here");
}

# by hand, as when the subscription is given up
prepare('hand');
$publisher->wait_for_catchup('sub');
my $gid = $subscriber->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub DISABLE');
$subscriber->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_subscription WHERE pid IS NOT NULL");
$subscriber->safe_psql('postgres', "ROLLBACK PREPARED '$gid'");
is(agree('ended by hand'), $was, 'what is rolled back by hand is gone');
end('hand', 'ROLLBACK');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub ENABLE; ' . join ';', map { "UPDATE $_ SET l = l + 1" } @names);
is(same('ended by hand'), $was, '... at the other end, too');

# ----------------------------------------------------------- at any of its steps

SKIP:
{
	skip 'not a build with fault points', 1 unless $ENV{MOT_FAULT_POINTS};

	# the worker has ended it, and has not come to what is ours
	for my $end ('COMMIT', 'ROLLBACK')
	{
		prepare('stop');
		$publisher->wait_for_catchup('sub');
		my $old = $subscriber->background_psql('postgres');
		$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
		my $then = $old->query_safe(query());
		my $writer = $subscriber->background_psql('postgres');
		$writer->query_until(qr/started/, "\\echo started\nUPDATE heap_mot SET l = l + 1 WHERE id = 1;\n");
		my $from = -s $subscriber->logfile;
		set_fault('prepared-served:wait');
		end('stop', $end);
		$subscriber->wait_for_log(qr/fault point "prepared-served" reached/, $from);
		is(prepared(), '0', "$end: the server has done with it");
		$writer->query_safe('SELECT 1');
		pass("$end: who has waited for a row goes on");
		my $is = agree("$end: the worker stands still");
		is($is eq $was ? 'ROLLBACK' : 'COMMIT', $end, '... it is seen');
		is($old->query_safe(query()), $then, '... not by who had a snapshot before');
		$subscriber->safe_psql('postgres', join ';', map { "UPDATE $_ SET l = l + 1" } grep { !/heap_mot/ } @names);
		$subscriber->safe_psql('postgres', 'UPDATE heap_mot SET l = l + 1 WHERE id <> 1');
		append_to_file($subscriber->data_dir . '/mot.fault.go', '');
		set_fault('');
		$was = same("$end: the worker goes on");
		unlink $subscriber->data_dir . '/mot.fault.go';
		$_->quit for $old, $writer;
	}

	# nobody has looked
	prepare('idle');
	$publisher->wait_for_catchup('sub');
	set_fault('prepared-served:wait');
	end('idle', 'COMMIT');
	$subscriber->safe_psql('postgres', join ';', map { "ALTER TABLE $_ ALTER l TYPE bigint" } @names);
	isnt(agree('tables rewritten while the worker stands still'), $was, '... with what it has committed');
	append_to_file($subscriber->data_dir . '/mot.fault.go', '');
	set_fault('');
	$was = same('idle');
	unlink $subscriber->data_dir . '/mot.fault.go';

	# as many can be prepared as the server has room for, nobody having told of the end of one
	$subscriber->safe_psql('postgres', 'CREATE TABLE here (n int) USING mot');
	prepare('many');
	$publisher->wait_for_catchup('sub');
	$subscriber->safe_psql('postgres', join '', map { "BEGIN; INSERT INTO here VALUES ($_); PREPARE TRANSACTION 'here$_';" } 1 .. 18);
	my @open = map { my $session = $subscriber->background_psql('postgres', on_error_stop => 0); $session->query_safe('BEGIN; INSERT INTO here VALUES (0)'); $session } 19, 20;
	my $maintenance = $subscriber->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot maintenance'");
	kill 'STOP', $maintenance;
	my $log_from = -s $subscriber->logfile;
	set_fault('prepared-served:wait');
	end('many', 'COMMIT');
	$subscriber->wait_for_log(qr/fault point "prepared-served" reached/, $log_from);
	$open[$_ - 19]->query("PREPARE TRANSACTION 'here$_'") for 19, 20;
	is(prepared(), '20', 'as many are prepared as can be');
	kill 'CONT', $maintenance;
	$_->quit for @open;
	$subscriber->safe_psql('postgres', "COMMIT PREPARED 'here$_'") for 1 .. 20;
	is($subscriber->safe_psql('postgres', 'SELECT count(*), sum(n) FROM here'), '20|171', '... and committed');
	append_to_file($subscriber->data_dir . '/mot.fault.go', '');
	set_fault('');
	$was = same('many');
	unlink $subscriber->data_dir . '/mot.fault.go';

	my $round = 0;
	for my $point (qw(prepare-packed prepare-logged prepare-decided prepare-handed prepare-done prepared-served prepared-decided prepared-installed prepared-undone prepared-left prepared-over))
	{
		my $end = $point eq 'prepared-undone' || ($round++ % 3 == 2 && $point ne 'prepared-installed') ? 'ROLLBACK' : 'COMMIT';
		my $from = -s $subscriber->logfile;
		if ($point =~ /^prepared/)
		{
			prepare('step');
			$publisher->wait_for_catchup('sub');
			$subscriber->safe_psql('postgres', 'CHECKPOINT') if $round % 2;
			set_fault("$point:killall");
			end('step', $end);
		}
		else
		{
			set_fault("$point:killall");
			prepare('step', $round % 2);
		}
		$subscriber->wait_for_log(qr/fault point "$point" reached/, $from);
		like(slurp_file($subscriber->logfile, $from), qr/fault point "$point" reached/, "$point is reached");
		use_node($subscriber);
		wait_death();
		unlink $subscriber->data_dir . '/postgresql.auto.conf';
		append_to_file($subscriber->data_dir . '/postgresql.auto.conf', '');
		$subscriber->start;
		if ($point !~ /^prepared/)
		{
			$publisher->wait_for_catchup('sub');
			is(prepared(), '1', "$point: it is prepared");
			is(agree($point), $was, "$point: and not seen");
			end('step', $end);
		}
		my $is = same("$point, $end");
		is($is eq $was ? 'ROLLBACK' : 'COMMIT', $end, "$point: it is what was asked for");
		$subscriber->safe_psql('postgres', join ';', map { "UPDATE $_ SET l = l + 1" } @names);
		$was = agree("$point, changed here");
	}
}

# ------------------------------------------------------------ beside others

# rows of all tables, prepared, and ended two ways; here somebody reads all the time, and somebody
# else writes
my $script = $publisher->basedir . '/load.sql';
append_to_file($script, '\set id random(1, 10)' . "\n" . '\set n random(1, 1000000000)' . "\nBEGIN;\n"
		. join('', map { "UPDATE $_ SET v = v + 1 WHERE id = :id;\nINSERT INTO ${_}_once VALUES (1);\n" } @names) . "PREPARE TRANSACTION 'load:client_id';\n\\sleep 2 ms\n" . "\\set end random(1, 4)\n\\if :end = 1\nROLLBACK PREPARED 'load:client_id';\n\\else\nCOMMIT PREPARED 'load:client_id';\n\\endif\n");
my $here = $subscriber->basedir . '/here.sql';
append_to_file($here, '\set id random(1, 10)' . "\nBEGIN;\n" . join('', map { "UPDATE $_ SET l = l + 1 WHERE id = :id;\n" } @names) . "COMMIT;\n\\sleep 1 ms\n");

sub bench
{
	my ($node, $file, $clients) = @_;
	return IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-j', 1, '-T', 600, '--max-tries=1000', '-f', $file, '-h', $node->host, '-p', $node->port, 'postgres' ],
		'>', '/dev/null', '2>', '/dev/null');
}
my @loads = (bench($publisher, $script, 4), bench($subscriber, $here, 1));
my $differ = 0;
my $reads = 0;
my $reader = $subscriber->background_psql('postgres');
my $until = time + 6;
while (time < $until || $reads <= 20)
{
	my @all = split /\n/, $reader->query_safe(join(' UNION ALL ', map { "SELECT sum(v), sum(l), (SELECT count(*) FROM ${_}_once) FROM $_ WHERE id <= 10" } @names));
	$differ++ if grep { $_ ne $all[0] } @all;
	$reads++;
}
$reader->quit;
$_->signal('INT'), $_->finish for @loads;
$_->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'}) or die for $publisher, $subscriber;
cmp_ok($reads, '>', 20, "somebody has read ($reads times)");
is($differ, 0, '... what is of one moment');
$publisher->safe_psql('postgres', "ROLLBACK PREPARED '$_'") for split /\n/, $publisher->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
$l = 'l';
$publisher->wait_for_catchup('sub');
agree('after the load, with what was written here');
$l = '0';
$was = same('after the load');
cmp_ok((split /\|/, $was)[1], '>', 1000, 'there was a load');
is(prepared(), '0', '... and nothing is left of it');
is($subscriber->safe_psql('postgres', "SELECT sum(problems) FROM (SELECT (mot_verify(o)).problems FROM unnest(ARRAY['heap_mot', 'mot_mot']::regclass[]) o) x"), '0', '... nor missing');

# -------------------------------------------------------------- what is refused

my $from = -s $subscriber->logfile;
my $name = $subscriber->safe_psql('postgres', 'SELECT current_user');
$subscriber->safe_psql('postgres', "ALTER ROLE $name SET default_transaction_isolation = 'serializable'; ALTER SUBSCRIPTION sub DISABLE");
$subscriber->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_subscription WHERE pid IS NOT NULL');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub ENABLE');
prepare('serial');
$subscriber->wait_for_log(qr/cannot PREPARE a SERIALIZABLE/, $from);
like(slurp_file($subscriber->logfile, $from), qr/ERROR:  cannot PREPARE a SERIALIZABLE transaction of a subscription/, 'refused: SERIALIZABLE');
$subscriber->safe_psql('postgres', "ALTER ROLE $name RESET default_transaction_isolation");
end('serial', 'COMMIT');
$was = same('no longer SERIALIZABLE');

# ------------------------------------------------------------------- a standby

$subscriber->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($subscriber, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby = on\n");
$standby->start;
prepare('both', 1);
$publisher->wait_for_catchup('sub');
$subscriber->wait_for_catchup($standby, 'replay', $subscriber->lsn('insert'));
$subscriber->stop('immediate');
$subscriber = $standby;
is(agree('a standby'), $was, 'a standby does not see it');
$standby->promote;
is(prepared(), '1', '... and has it prepared, promoted');
locked('promoted');
end('both', 'COMMIT');
isnt(same('promoted'), $was, 'its worker commits it');
$subscriber->safe_psql('postgres', join ';', map { "UPDATE $_ SET l = l + 1" } @names);

$subscriber->stop;
$publisher->stop;
done_testing();
