# Tables that memory has no room for: the server goes on without them, keeps
# their rows and what is changed in them, and brings them back when there is
# room.  With less memory than before, and on a standby that has less.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

sub configure
{
	my ($node, $memory) = @_;
	$node->append_conf('postgresql.conf', "mot.max_memory = '${memory}MB'\n");
}

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
checkpoint_timeout = 1h
wal_keep_size = '1GB'
shared_preload_libraries = 'mot'
mot.load_workers = 2
});
configure($node, 256);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION mot');
$node->backup('empty');

my $small_standby = PostgreSQL::Test::Cluster->new('standby');
$small_standby->init_from_backup($node, 'empty', has_streaming => 1);
configure($small_standby, 64);
$small_standby->append_conf('postgresql.conf', "mot.fault = 'left-out-table:killall'\n");
$small_standby->start;

my %columns = (
	small => 'id int PRIMARY KEY, v int',
	large => 'id int PRIMARY KEY, v int, filler text',
	bare => 'id int, filler text');
$node->safe_psql('postgres', "CREATE FOREIGN TABLE $_ ($columns{$_}) SERVER mot_server") for sort keys %columns;
$node->safe_psql(
	'postgres', q{
	CREATE TABLE heap (a int);
	CREATE INDEX ON large (v);
	INSERT INTO small SELECT i, i FROM generate_series(1, 1000) i;
	INSERT INTO large SELECT i, i, repeat('x', 300) FROM generate_series(1, 130000) i;
	INSERT INTO bare SELECT i % 20000, repeat('y', 300) FROM generate_series(1, 90000) i;
	CHECKPOINT});
change($node, 1);

# changes of all kinds, rows without identity and definitions among them
sub change
{
	my ($where, $n) = @_;
	$where->safe_psql(
		'postgres', qq{
		INSERT INTO heap VALUES ($n);
		UPDATE small SET v = v + 1;
		UPDATE large SET v = v + 1 WHERE id % 10 = $n;
		DELETE FROM large WHERE id % 100 = 10 + $n;
		DELETE FROM bare WHERE id = $n;
		BEGIN;
		UPDATE bare SET filler = 'changed $n' WHERE id = 10 + $n;
		INSERT INTO heap VALUES ($n + 1);
		INSERT INTO large SELECT 1000000 * $n + i, i, 'new' FROM generate_series(1, 1000) i;
		COMMIT;
		ALTER FOREIGN TABLE large ADD COLUMN c$n int DEFAULT 7;
		CREATE INDEX ON large (c$n);
		UPDATE large SET c$n = id WHERE id < 100});
}

sub sums
{
	my ($where, @tables) = @_;
	return join('; ',
		map { $where->safe_psql('postgres', "SELECT '$_', count(*), sum(hashtext(t::text)::numeric) FROM $_ t") } @tables);
}

sub left_out
{
	my ($where) = @_;
	$where->poll_query_until('postgres', q{SELECT state = 'ready' FROM mot_stat_recovery}) or die 'not loaded';
	return $where->safe_psql('postgres', 'SELECT tab FROM mot_stat_left_out ORDER BY tab::text');
}

sub fails
{
	my ($where, $sql, $what) = @_;
	my ($ret, $out, $err) = $where->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	like($err, qr/ERROR:  53200: .* is not in memory.*HINT: .*mot.max_memory/s, $what);
}

# the standby dies while it leaves a table out; there is no harm in that
my $standby_log = $small_standby->logfile;
my $dead = 0;
for (1 .. 600)
{
	last if $dead = slurp_file($standby_log) =~ /"left-out-table" reached/;
	usleep(100_000);
}
ok($dead, 'a crash while a table is left out');
$small_standby->stop('immediate', fail_ok => 1);
$small_standby->append_conf('postgresql.conf', "mot.fault = ''\n");
$small_standby->start;

my @all = ('small', 'large', 'bare');
my $before = sums($node, @all);
$node->wait_for_catchup($small_standby);

# ---- less memory after a crash
$node->stop('immediate');
configure($node, 64);
ok($node->start(fail_ok => 1), 'with less memory the server starts');
is($node->safe_psql('postgres', 'SELECT count(*) FROM heap'), '2', 'heap tables are there');
is($node->safe_psql('postgres', 'SELECT sum(v) FROM small'), '501500', 'so is what fits');
is(left_out($node), 'large', 'what does not fit is named');
fails($node, 'SELECT count(*) FROM large', 'it cannot be read');
fails($node, "INSERT INTO large (id) VALUES (-1)", 'nor written');
fails($node, 'ALTER FOREIGN TABLE large ADD COLUMN d int', 'nor defined otherwise');
fails($node, 'ALTER FOREIGN TABLE large RENAME COLUMN v TO w', 'nor its columns named otherwise');
my ($ret, $out, $err) = $node->psql('postgres', 'CREATE DATABASE copy TEMPLATE postgres');
like($err, qr/cannot be copied/, 'nor can its database be copied');
like(slurp_file($node->logfile), qr/going on without table "public.large"/, 'the log tells of it');

# what is written meanwhile is there after another crash, with and without a checkpoint in between
$node->safe_psql('postgres', 'UPDATE small SET v = v + 1');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT sum(v) FROM small'), '502500', 'a crash meanwhile');
is(left_out($node), 'large', 'nothing has changed');
$node->safe_psql('postgres', 'CHECKPOINT; UPDATE small SET v = v + 1; CHECKPOINT');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT sum(v) FROM small'), '503500', 'a crash behind checkpoints');
is(left_out($node), 'large', 'which have taken it along');

# a base backup meanwhile has everything
$node->backup('meanwhile');
{
	my $copy = PostgreSQL::Test::Cluster->new('copy');
	$copy->init_from_backup($node, 'meanwhile');
	configure($copy, 256);
	$copy->start;
	is(sums($copy, 'large', 'bare'), substr($before, index($before, 'large')), 'a base backup has all rows');
	$copy->stop('immediate');
}

# a clean stop, and there is room again, but for a crash
$node->stop;
configure($node, 256);
my $size = -s $node->logfile;
$node->append_conf('postgresql.conf', "mot.fault = 'left-out-back:killall'\n");
$node->start(fail_ok => 1);
for (1 .. 600)
{
	last if $dead = slurp_file($node->logfile, $size) =~ /"left-out-back" reached/;
	usleep(100_000);
}
ok($dead, 'a crash while it is brought back');
$node->stop('immediate', fail_ok => 1);
$node->append_conf('postgresql.conf', "mot.fault = ''\n");
$node->start;
$node->safe_psql('postgres', 'UPDATE small SET v = v - 2');
is(sums($node, @all), $before, 'with more memory all rows are back');
is(left_out($node), '', 'and nothing is left out');
is($node->safe_psql('postgres', "SELECT sum(problems) FROM (SELECT (mot_verify(t)).* FROM unnest(ARRAY['small', 'large', 'bare']::regclass[]) t) x"),
	'0', 'the indexes agree');

# ---- a standby with less memory goes on
change($node, 3);
$before = sums($node, @all);
$node->wait_for_catchup($small_standby);
is(left_out($small_standby), 'large', 'a standby with less memory goes on without what does not fit');
is(sums($small_standby, 'small', 'bare'), sums($node, 'small', 'bare'), 'and has everything else');
fails($small_standby, 'SELECT count(*) FROM large', 'the large table cannot be read there');
$small_standby->safe_psql('postgres', 'CHECKPOINT');
$small_standby->stop('fast');
$small_standby->start;
change($node, 5);
$node->safe_psql(
	'postgres', q{
	BEGIN;
	CREATE FOREIGN TABLE huge (id int PRIMARY KEY, filler text) SERVER mot_server;
	INSERT INTO huge SELECT i, repeat('z', 1000) FROM generate_series(1, 60000) i;
	COMMIT;
	DELETE FROM huge WHERE id % 100 = 0});
$before = sums($node, @all, 'huge');
$node->wait_for_catchup($small_standby);
is(left_out($small_standby), "huge\nlarge", 'so after a restart, and without one that is made too large');
is($small_standby->safe_psql('postgres', 'SELECT count(*) FROM mot_stat_left_out WHERE needed_bytes > 1000000'), '2', '... which say what they need');
$small_standby->safe_psql('postgres', 'CHECKPOINT');
$small_standby->stop('immediate');
configure($small_standby, 256);
$small_standby->start;
$node->wait_for_catchup($small_standby);
$small_standby->poll_query_until('postgres', 'SELECT count(*) = 0 FROM mot_stat_left_out') or die 'it does not come back';
is(sums($small_standby, @all, 'huge'), $before, 'with more memory the standby has all rows');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE huge');
is($small_standby->safe_psql('postgres', "SELECT sum(problems) FROM (SELECT (mot_verify(t)).* FROM unnest(ARRAY['small', 'large', 'bare']::regclass[]) t) x"),
	'0', 'and its indexes agree');
change($node, 7);
$before = sums($node, @all);
$node->wait_for_catchup($small_standby);
is(sums($small_standby, @all), $before, 'and goes on with them');
$small_standby->stop;

# ---- room that others make
$node->stop('immediate');
configure($node, 80);
$node->start;
is(left_out($node), 'large', 'left out again');
my $needed = $node->safe_psql('postgres', 'SELECT needed_bytes / 1048576 FROM mot_stat_left_out');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE bare');
cmp_ok($needed, '<', 75, 'it would fit alone');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM mot_stat_left_out'), 'it comes back when others make room');
is(sums($node, 'large'), (split /; /, $before)[1], 'with all rows');

# ---- giving it up
$node->stop;
configure($node, 256);
$node->start;
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE bare (id int, filler text) SERVER mot_server; INSERT INTO bare SELECT i, repeat('y', 300) FROM generate_series(1, 90000) i});
$node->stop;
configure($node, 64);
$node->start;
is(left_out($node), 'large', 'left out once more');
$node->safe_psql('postgres', 'TRUNCATE large; INSERT INTO large (id) VALUES (1)');
is(left_out($node), '', 'TRUNCATE gives it up');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM large'), '1', 'for good');
$node->stop;
done_testing();
