# The snapshots of logical slots, exported or used by a transaction: they see memory-optimized
# tables as they see heap tables, as of the moment at which the slot's changes begin.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\nmax_prepared_transactions = 2\nautovacuum = off");
$publisher->start;
$publisher->safe_psql('postgres', 'CREATE EXTENSION mot');

# changed in the same transactions, and one alone
my @names = ('heap', 'mot', 'alone');
$publisher->safe_psql('postgres', join ';', map { my $am = $_ eq 'heap' ? 'heap' : 'mot'; ("CREATE TABLE ${_}_once (client int, n int) USING $am", "CREATE TABLE ${_}_sum (id int PRIMARY KEY, v bigint) USING $am", "INSERT INTO ${_}_sum SELECT i, 0 FROM generate_series(1, 200) i") } @names);
# slowly, since of a process's commits the latest 1024 are known
my $script = $publisher->basedir . '/load.sql';
append_to_file(
	$script, q{
\set id random(1, 200)
\set v random(1, 9)
\sleep 10 ms
BEGIN;
} . join('', map { "INSERT INTO ${_}_once VALUES (:client_id, :v);\nUPDATE ${_}_sum SET v = v + :v WHERE id = :id;\n" } 'heap', 'mot') . "COMMIT;\nINSERT INTO alone_once VALUES (:client_id, :v);\nUPDATE alone_sum SET v = v + :v WHERE id = :id;\n");

sub load
{
	my ($seconds) = @_;
	return IPC::Run::start([ 'pgbench', '-n', '-M', 'prepared', '-c', 3, '-T', $seconds, '--max-tries=100', '-f', $script, '-h', $publisher->host, '-p', $publisher->port, 'postgres' ],
		'>', '/dev/null', '2>', '/dev/null');
}

sub walsender
{
	return $publisher->background_psql('postgres', replication => 'database', on_error_stop => 0);
}

my $sender = walsender();
my $create = "CREATE_REPLICATION_SLOT e LOGICAL test_decoding (SNAPSHOT 'export')";
my ($exported) = $sender->query($create) =~ /([0-9A-F]{8}-[0-9A-F]{8}-\d+)/;
my $what = join ', ', map { "(SELECT count(*) || ' ' || sum(v) FROM ${_}_sum), (SELECT count(*) FROM ${_}_once)" } @names;
my $was = $publisher->safe_psql('postgres', "SELECT $what");
my $read = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$exported'; SELECT $what; COMMIT";
is($publisher->safe_psql('postgres', $read), $was, 'an exported one, nobody having committed');
$publisher->safe_psql('postgres', join ';', map { ("INSERT INTO ${_}_once VALUES (0, 0)", "UPDATE ${_}_sum SET v = v + 1", "DELETE FROM ${_}_sum WHERE id = 7", "INSERT INTO ${_}_sum VALUES (7, 7)") } @names);
load(2)->finish;
is($publisher->safe_psql('postgres', $read), $was, '... and others having');
my $reader = $publisher->background_psql('postgres', on_error_stop => 0);
$reader->query("BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$exported'");
$publisher->safe_psql('postgres', 'DELETE FROM mot_sum WHERE id = 8; UPDATE heap_sum SET v = 0 WHERE id = 8');
$sender->query('DROP_REPLICATION_SLOT e');
$publisher->safe_psql('postgres', 'UPDATE mot_sum SET v = v + 1; UPDATE mot_sum SET v = v + 1');
is($reader->query("SELECT $what"), $was, '... and the slot having gone after the import');
$reader->quit;
(undef, undef, my $gone) = $publisher->psql('postgres', $read);
like($gone, qr/invalid snapshot identifier|could not|does not exist/, 'it goes with the next command of the walsender');

# what is superseded goes as soon as nobody needs it: of a commit that has just been installed, by a
# statement that has no snapshot any more, and by COMMIT PREPARED
SKIP:
{
	skip 'not a build with fault points', 2 unless $ENV{MOT_FAULT_POINTS};
	my $go = $publisher->data_dir . '/mot.fault.go';
	for my $end ('COMMIT', "PREPARE TRANSACTION 'p'")
	{
		my $seen = -s $publisher->logfile;
		$was = $publisher->safe_psql('postgres', "SELECT $what");
		($exported) = $sender->query($create) =~ /([0-9A-F]{8}-[0-9A-F]{8}-\d+)/;
		my $writer = $publisher->background_psql('postgres');
		$writer->query_safe($_) for "BEGIN", (map { ("DELETE FROM ${_}_sum WHERE id = 9", "UPDATE ${_}_sum SET v = v + 1", "INSERT INTO ${_}_sum VALUES (9, 9)") } @names);
		$writer->query_safe($end) if $end ne 'COMMIT';
		$writer->query_safe("SET mot.fault = 'decoded-installed:wait'");
		$writer->query_until(qr/begun/, "\\echo begun\n" . ($end eq 'COMMIT' ? $end : "COMMIT PREPARED 'p'") . ";\n");
		$publisher->wait_for_log(qr/fault point "decoded-installed" reached/, $seen);
		$publisher->safe_psql('postgres', 'VACUUM ' . join ', ', map { "${_}_sum" } @names);
		append_to_file($go, '');
		$writer->query_safe("SET mot.fault = ''");
		$writer->quit;
		unlink $go;
		$read = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$exported'; SELECT $what; COMMIT";
		# (who reads what has gone may never come to an end)
		my (undef, $is) = $publisher->psql('postgres', $read, timeout => 60, timed_out => \my $timed_out);
		is($is, $was, "... and what was superseded when it was installed, $end");
		$sender->query('DROP_REPLICATION_SLOT e');
	}
}

# beside writers: what it has, and what the slot has, is what there is
for my $round (1 .. 5)
{
	my $load = load(3);
	select undef, undef, undef, 0.3 + rand;
	($exported) = $sender->query($create) =~ /([0-9A-F]{8}-[0-9A-F]{8}-\d+)/;
	select undef, undef, undef, rand() / 2;
	my @counts = map { "SELECT '$_', count(*), sum(n) FROM ${_}_once" } @names;
	my $copied = $publisher->safe_psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$exported';" . join(' UNION ALL ', @counts) . ';COMMIT');
	$load->finish;
	my %streamed = map { my ($name, $n, $sum) = split /\|/; ($name => [ $n, $sum ]) } split /\n/, $publisher->safe_psql('postgres', "SELECT t, count(*), sum(n::int) FROM pg_logical_slot_get_changes('e', NULL, NULL), regexp_matches(data, '^table public\\.(\\w+)_once: INSERT: .* n\\[integer\\]:(\\d+)') m, LATERAL (SELECT m[1], m[2]) x (t, n) GROUP BY 1");
	my $sum = join "\n", map { my ($name, $n, $sum) = split /\|/; "$name|" . ($n + ($streamed{$name}[0] // 0)) . '|' . ($sum + ($streamed{$name}[1] // 0)) } split /\n/, $copied;
	is($sum, $publisher->safe_psql('postgres', join(' UNION ALL ', @counts)), "an exported one beside writers, and what follows, round $round");
	$sender->query('DROP_REPLICATION_SLOT e');
}
$sender->quit;

# used by a transaction, however much later, up to what is remembered
$sender = walsender();
$sender->query('BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ');
$sender->query("CREATE_REPLICATION_SLOT u TEMPORARY LOGICAL test_decoding (SNAPSHOT 'use')");
my $before = $publisher->safe_psql('postgres', 'SELECT sum(v) FROM mot_sum');
$publisher->safe_psql('postgres', 'UPDATE mot_sum SET v = v + 1; DELETE FROM mot_sum WHERE id = 7; UPDATE mot_sum SET v = v + 1');
is($sender->query('SELECT count(*), sum(v) FROM mot_sum'), "199|$before", 'a transaction that uses one sees nothing of what came later');
$sender->query('COMMIT');
$sender->query('BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ');
$sender->query("CREATE_REPLICATION_SLOT v TEMPORARY LOGICAL test_decoding (SNAPSHOT 'use')");
$publisher->safe_psql('postgres', 'UPDATE mot_sum SET v = v + 1 WHERE id = 1;' x 1100);
$sender->query('SELECT count(*) FROM mot_sum');
like($sender->{stderr}, qr/could not serialize access due to a concurrent commit/, '... and is told if too much has');
$sender->quit;

$publisher->stop;
done_testing();
