# Reads of a hot standby while replay goes on: statements see whole
# transactions and a prefix of the commits; remote_apply means visible; a
# standby that cannot keep up says why it stops.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
max_connections = 40
wal_keep_size = '64MB'
});
$primary->start;
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE TABLE cold (id int PRIMARY KEY, v int);
	CREATE FOREIGN TABLE hot (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE FOREIGN TABLE pairs (id int PRIMARY KEY, v int) SERVER mot_server;
	CREATE FOREIGN TABLE log (n int) SERVER mot_server;
	CREATE FOREIGN TABLE emptied (n int PRIMARY KEY) SERVER mot_server;
	CREATE TABLE cold_emptied (n int PRIMARY KEY);
	INSERT INTO cold SELECT i, 100 FROM generate_series(1, 20) i;
	INSERT INTO hot SELECT i, 100 FROM generate_series(1, 20) i;
	INSERT INTO pairs SELECT i, 0 FROM generate_series(1, 20) i;
	CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		RETURN (SELECT (SELECT sum(v) FROM cold) + (SELECT sum(v) FROM hot));
	END $$;
});

# somebody for whom old rows of heap tables are kept: replay is not to wait for readers of the
# standby
my $keeper = $primary->background_psql('postgres');
$keeper->query_safe('BEGIN; SELECT pg_current_xact_id()');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

# ------------------------------------------------------------- concurrent reads

# Writers on the primary in the background, readers on the standby.
my $scripts = $primary->basedir;
append_to_file("$scripts/mixed.sql", q{
\set x random(1, 20)
\set y random(1, 20)
BEGIN;
UPDATE cold SET v = v - 1 WHERE id = :x;
UPDATE hot SET v = v + 1 WHERE id = :y;
COMMIT;
});
append_to_file("$scripts/hot.sql", q{
\set x random(1, 10)
\set y random(11, 20)
BEGIN;
UPDATE pairs SET v = v - 5 WHERE id = :x;
UPDATE pairs SET v = v + 5 WHERE id = :y;
DELETE FROM log WHERE n = :x;
INSERT INTO log VALUES (:x);
COMMIT;
});
append_to_file("$scripts/ddl.sql", q{
BEGIN;
TRUNCATE emptied, cold_emptied;
INSERT INTO emptied SELECT generate_series(1, 50);
INSERT INTO cold_emptied SELECT generate_series(1, 50);
COMMIT;
\sleep 20 ms
});

sub write_in_background
{
	my ($seconds) = @_;
	return map {
		my ($out, $err);
		my $h = IPC::Run::start(
			[ 'pgbench', '--no-vacuum', '--client=' . $_->[1], "--time=$seconds", '--max-tries=10', "--file=$scripts/$_->[0].sql", $primary->connstr('postgres') ],
			'>', \$out, '2>', \$err);
		[ $h, \$err ]
	} ([ 'mixed', 3 ], [ 'hot', 2 ], [ 'ddl', 1 ]);
}

my $half = q{
\if :half
SELECT 'half of a transaction: ' || :s / 0;
\endif
};
my %readers = (
	'01_statement@4' => q{
SELECT s, s <> 4000 AS half FROM (SELECT (SELECT sum(v) FROM cold) + (SELECT sum(v) FROM hot) AS s) q \gset
} . $half,
	'02_function@2' => q{
SELECT s, s <> 4000 AS half FROM (SELECT total() AS s) q \gset
} . $half,
	'03_join@2' => q{
SELECT sum(c.v + h.v) AS s, sum(c.v + h.v) <> 4000 AS half FROM cold c JOIN hot h USING (id) \gset
} . $half,
	'04_repeatable@2' => q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT sum(v) AS cold FROM cold \gset
SELECT sum(v) + :cold AS s, sum(v) + :cold <> 4000 AS half FROM hot \gset
COMMIT;
} . $half,
	'05_hot_only@2' => q{
SELECT sum(v) AS s, sum(v) <> 0 AS half FROM pairs \gset
} . $half,
	'06_emptied@2' => q{
SELECT s, s <> 0 AS half FROM (SELECT (SELECT count(*) FROM emptied) - (SELECT count(*) FROM cold_emptied) AS s) q \gset
} . $half);

# (A thread for each client: one that waits for a lock while it prepares a
# statement would keep others' transactions open, and replay would wait for them.)
for my $protocol ('simple', 'prepared')
{
	my @writers = write_in_background(6);
	$standby->pgbench(
		"--no-vacuum --client=6 --jobs=6 --time=4 --max-tries=100 --protocol=$protocol",
		0,
		[ qr{number of failed transactions: 0 } ],
		[ qr{^$} ],
		"reads of the standby, $protocol protocol",
		{ map { ($protocol . $_ => $readers{$_}) } keys %readers });
	foreach my $w (@writers)
	{
		$w->[0]->finish;
		is(${ $w->[1] }, '', 'a writer had no trouble');
	}
}
$primary->wait_for_catchup($standby, 'replay');
my $sums = 'SELECT (SELECT sum(v) FROM cold), (SELECT md5(string_agg(h::text, \' \' ORDER BY id)) FROM hot h), (SELECT md5(string_agg(p::text, \' \' ORDER BY id)) FROM pairs p), (SELECT count(*) || \' \' || sum(n) FROM log)';
is($standby->safe_psql('postgres', $sums), $primary->safe_psql('postgres', $sums), 'in the end both have the same');
cmp_ok($standby->safe_psql('postgres', 'SELECT max(v) FROM pairs'), '>', 50, 'and something was done');

# --------------------------------------------------- a snapshot stays what it is

my $reader = IPC::Run::start(
	[ 'psql', '-XAtq', '-d', $standby->connstr('postgres') ],
	'<', \my $in, '>', \my $out, '2>', \my $err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

sub ask
{
	my ($sql) = @_;
	$out = '';
	$in .= "$sql; SELECT 'done';\n";
	$reader->pump until $out =~ /done\n/;
	return $out =~ s/done\n//r =~ s/\n$//r;
}

my $before = ask('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v), (SELECT count(*) FROM log) FROM hot');
$primary->safe_psql('postgres', 'DELETE FROM hot WHERE id < 5; UPDATE hot SET v = 0; INSERT INTO log VALUES (1)') for 1 .. 3;
$primary->safe_psql('postgres', 'DELETE FROM log');
$primary->wait_for_catchup($standby, 'replay');
is(ask('SELECT sum(v), (SELECT count(*) FROM log) FROM hot'), $before, 'REPEATABLE READ keeps its snapshot while replay goes on');
ask('COMMIT');
is(ask('SELECT sum(v), (SELECT count(*) FROM log) FROM hot'), '0|0', '... and then sees what was replayed');
$in .= "\\q\n";
$reader->finish;

# -------------------------------------------------------------- a keyless table

# finding rows of a large table without a key must not take a walk for each
$primary->safe_psql('postgres', 'INSERT INTO log SELECT i % 20000 FROM generate_series(1, 60000) i');
$primary->safe_psql('postgres', 'UPDATE log SET n = n + 1');
$primary->safe_psql('postgres', 'DELETE FROM log WHERE n % 2 = 0');
$primary->wait_for_catchup($standby, 'replay');
is( $standby->safe_psql('postgres', 'SELECT count(*), sum(n), min(n), max(n) FROM log'),
	$primary->safe_psql('postgres', 'SELECT count(*), sum(n), min(n), max(n) FROM log'),
	'a large table without a key');
$primary->safe_psql('postgres', 'TRUNCATE log; INSERT INTO log SELECT 7 FROM generate_series(1, 40000)');
$primary->safe_psql('postgres', 'DELETE FROM log WHERE ctid IN (SELECT ctid FROM log LIMIT 30000)');
$primary->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', 'SELECT count(*), sum(n) FROM log'), '10000|70000', '... of equal rows');

# --------------------------------------------------------------------- verifying

my $verify = q{SELECT object, entries, problems, first_problem FROM unnest('{hot,pairs,log}'::regclass[]) t, mot_verify(t)};
is($standby->safe_psql('postgres', $verify), $primary->safe_psql('postgres', $verify), 'mot_verify on a standby');
my @verified_writers = write_in_background(1);
$standby->pgbench(
	'--no-vacuum --client=1 --time=1', 0, [ qr{number of failed transactions: 0 } ], [ qr{^$} ],
	'... beside replay', { '10_verify' => q{
SELECT sum(problems) AS n, sum(problems) <> 0 AS half FROM mot_verify('hot') \gset
\if :half
SELECT 'problems: ' || :n / 0;
\endif
} });
$_->[0]->finish foreach @verified_writers;
is(${ $_->[1] }, '', 'a writer had no trouble') foreach @verified_writers;
$primary->wait_for_catchup($standby, 'replay');

# ------------------------------------------------------------------ remote_apply

$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'\nsynchronous_commit = remote_apply\n");
$primary->reload;
$primary->poll_query_until('postgres', "SELECT sync_state = 'sync' FROM pg_stat_replication");
my ($missed, $mixed_missed) = (0, 0);
for my $i (1 .. 30)
{
	$primary->safe_psql('postgres', "INSERT INTO hot VALUES (1000 + $i, 0)");
	$missed++ if $standby->safe_psql('postgres', "SELECT count(*) FROM hot WHERE id = 1000 + $i") != 1;
	$primary->safe_psql('postgres', "BEGIN; INSERT INTO hot VALUES (2000 + $i, 0); INSERT INTO cold VALUES (2000 + $i, 0); COMMIT");
	$mixed_missed++ if $standby->safe_psql('postgres', "SELECT count(*) FROM hot h JOIN cold c USING (id) WHERE id = 2000 + $i") != 1;
}
is($missed, 0, 'remote_apply: what was acknowledged is visible on the standby');
is($mixed_missed, 0, '... also of transactions on both kinds of tables');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = ''\nsynchronous_commit = on\n");
$primary->reload;

# ---------------------------------------------------- a reader who cannot catch up

my $late = $standby->background_psql('postgres', on_error_stop => 0);
$late->query_safe("SET mot.fault = 'replay-settle:error'");
# (once, if no checkpoint of the standby comes before the reader)
for (1 .. 10)
{
	$primary->safe_psql('postgres', 'BEGIN; UPDATE hot SET v = v + 1; UPDATE cold SET v = v - 1; COMMIT');
	$primary->wait_for_catchup($standby, 'replay');
	$late->query('SELECT sum(v) FROM hot');
	last if $late->{stderr} =~ /ERROR/;
}
like($late->{stderr}, qr/ERROR:.*replay-settle/, 'a reader fails as it applies what has been committed');
$late->{stderr} = '';
$late->query_safe('SET mot.fault = DEFAULT');
is($late->query('SELECT sum(v) FROM hot'), $primary->safe_psql('postgres', 'SELECT sum(v) FROM hot'), '... and finds the table the next time');
$late->quit;

# ------------------------------------------------------ a reader that holds memory

$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 1s\n");
$standby->reload;
$primary->safe_psql('postgres', "CREATE FOREIGN TABLE wide (id int PRIMARY KEY, v int, t text) SERVER mot_server;
	INSERT INTO wide SELECT i, 0, repeat('x', 1000) FROM generate_series(1, 10000) i");
$primary->wait_for_catchup($standby, 'replay');
($out, $err, $in) = ('', '', '');
$reader = IPC::Run::start(
	[ 'psql', '-XAtq', '-d', $standby->connstr('postgres') ],
	'<', \$in, '>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
is(ask('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM wide'), '0', 'a reader has a snapshot');
$primary->safe_psql('postgres', 'UPDATE wide SET v = v + 1') for 1 .. 15;
$primary->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', 'SELECT sum(v), sum(length(t)) FROM wide'), '150000|10000000', 'replay went on when the reader was in its way');
$in .= "SELECT sum(v) FROM wide;\n\\q\n";
$reader->finish;
like($err, qr/due to conflict with recovery/, '... which was cancelled, as a reader of heap tables is');
like(slurp_file($standby->logfile), qr/LOG:  replay waits for memory that is full of old versions/, '... and the log says so');

# ------------------------------------------------- a standby with too little memory

# the server ends by itself; its file goes last
sub has_given_up
{
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last if !-e $standby->data_dir . '/postmaster.pid';
		select(undef, undef, undef, 0.1);
	}
	$standby->_update_pid(-1);
}

$standby->stop;
$standby->append_conf('postgresql.conf', "mot.max_memory = '64MB'\n");
$standby->start;
my $seen = -s $standby->logfile;
$primary->safe_psql('postgres', "CREATE FOREIGN TABLE large (id int PRIMARY KEY, t text) SERVER mot_server;
	INSERT INTO large SELECT i, repeat('x', 1000) FROM generate_series(1, 80000) i");
$primary->wait_for_catchup($standby, 'replay');
# (a commit with an xid, whose fate is asked for when more comes or when somebody reads)
my $asked = time;
$standby->psql('postgres', 'SELECT count(*) FROM large');
cmp_ok(time - $asked, '<', 30, 'who reads does not wait for room that he stands in the way of');
like( slurp_file($standby->logfile, $seen),
	qr/LOG:  memory for memory-optimized tables is full: going on without.*HINT: .*mot\.max_memory/s,
	'a standby with too little memory goes on without a table and says so');
$standby->stop;
$standby->append_conf('postgresql.conf', "mot.max_memory = '128MB'\n");
$standby->start;
$primary->wait_for_catchup($standby, 'replay');
$standby->poll_query_until('postgres', 'SELECT count(*) = 0 FROM mot_stat_left_out') or die 'it does not come back';
is($standby->safe_psql('postgres', 'SELECT count(*), sum(length(t)) FROM large'), '80000|80000000', 'with more memory it is there');

# --------------------------------------------- a standby that does not preload mot

$standby->stop;
$standby->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$seen = -s $standby->logfile;
$standby->start(fail_ok => 1);
$primary->safe_psql('postgres', 'UPDATE hot SET v = v + 1');
has_given_up();
like( slurp_file($standby->logfile, $seen), qr/HINT:  Include the extension module that implements this resource manager in "?shared_preload_libraries"?/,
	'without the module a standby stops with an instruction');
$standby->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\n");
$standby->start;
$primary->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $sums), $primary->safe_psql('postgres', $sums), '... and goes on when it is told to');

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . "'s log is clean") foreach $primary, $standby;
$standby->stop;
$primary->stop;
done_testing();
