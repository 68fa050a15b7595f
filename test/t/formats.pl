# Formats of what lies on disk (src/format.h): all that there have been are read, and one
# that is not known is refused with its number, loses nothing, and costs heap tables
# nothing: checkpoints at a start, records after a crash and on a standby.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fixtures";
use Fixtures;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $NEWEST = 3;
my $RECORDS = 2;
my $READS = "reads formats 1 to $NEWEST";
my $READS_RECORDS = "reads formats 1 to $RECORDS";

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\nfsync = off\nlog_error_verbosity = verbose\nmax_connections = 20\n");
$node->start;
Fixtures::make_tables($node);
$node->safe_psql('postgres', 'CREATE TABLE heap (v int) USING heap; INSERT INTO heap VALUES (1)');
my $data = $node->data_dir;

sub error_of
{
	my ($server, $sql) = @_;
	my ($rc, $out, $err) = $server->psql('postgres', $sql);
	return $rc == 0 ? "no error: $out" : $err;
}

sub manifest { return Fixtures::checkpoint_of($data) . '/manifest' }

# ----------------------------------------------------------- what there has been

$node->safe_psql('postgres', Fixtures::ROWS);
my $digest = $node->safe_psql('postgres', Fixtures::DIGEST);
$node->safe_psql('postgres', 'DELETE FROM ordinary; DELETE FROM distant');
for my $format (1 .. $NEWEST)
{
	$node->stop;
	Fixtures::put_checkpoint($data, $format);
	$node->start;
	is($node->safe_psql('postgres', Fixtures::DIGEST), $digest, "a checkpoint of format $format is loaded");
	is($node->safe_psql('postgres', q{SELECT count(*), sum(v.problems) FROM unnest(ARRAY['ordinary', 'distant']::regclass[]) c, mot_verify(c) v}), '5|0', 'its indexes fit');
	$node->safe_psql('postgres', 'BEGIN; UPDATE ordinary SET late = 8 WHERE id = 1; DELETE FROM distant; COMMIT');
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', 'SELECT late, (SELECT count(*) FROM distant) FROM ordinary WHERE id = 1'), '8|0', 'and changed, and recovered');
	$node->stop;
	is(substr(Fixtures::read_file(manifest()), 6, 2), sprintf('%02d', $NEWEST), 'the next one is of the newest format');
	$node->start;
}

$node->safe_psql('postgres', "CREATE FUNCTION mot_test_log(int, bytea) RETURNS pg_lsn LANGUAGE c AS 'mot'");
for my $format (1 .. $RECORDS)
{
	$node->safe_psql('postgres', 'DELETE FROM ordinary; CHECKPOINT');
	$node->safe_psql('postgres', "SELECT mot_test_log(16, '\\x$_->[1]')") for Fixtures::records($format);
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', 'SELECT id, name, price, late FROM ordinary ORDER BY id'), "101|b|1.50|7\n102|||7", "the log's records of format $format are replayed");
}

# ---------------------------------------------------- records that do not fit the tables

# what says so; and with mot.ignore_damaged all but that table is there
sub misfit
{
	my ($record, $why) = @_;
	$node->safe_psql('postgres', "CHECKPOINT; SELECT mot_test_log(16, '\\x$record')");
	$node->stop('immediate');
	$node->start;
	like(error_of($node, "\\set VERBOSITY verbose\nSELECT * FROM ordinary"), qr/XX001: .*could not be recovered\n.*does not fit memory-optimized table "[^"]+": $why/s, "$why: refused");
	is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM heap'), 't', '... and heap tables are served');
	$node->append_conf('postgresql.conf', "mot.ignore_damaged = on\n");
	$node->restart;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM distant'), 1, '... with mot.ignore_damaged others are there');
	$node->append_conf('postgresql.conf', "mot.ignore_damaged = off\n");
	$node->reload;
	return;
}

$node->safe_psql('postgres', q{DELETE FROM distant; INSERT INTO distant VALUES (1, 'one')});
my $deleted = (Fixtures::records($RECORDS))[-1][1];
(my $nowhere = $deleted) =~ s/60ea0000/61ea0000/;
misfit($nowhere, 'there is no such table');
is($node->safe_psql('postgres', 'SELECT string_agg(id::text, $$,$$ ORDER BY id) FROM ordinary'), '101,102', '... so is the one beside it');
misfit($deleted, 'a row is not there');
like(error_of($node, 'SELECT * FROM ordinary'), qr/damaged/, '... but the table');
$node->safe_psql('postgres', 'TRUNCATE ordinary; INSERT INTO ordinary (id) VALUES (101), (102)');

# -------------------------------------------------------- a checkpoint that is newer

sub with_manifest
{
	my ($what, $change, $template, $expected, $hint, @stops) = @_;
	my $code = $hint eq 'Restore' ? 'XX001' : '0A000';
	for my $stop (@stops)
	{
		$node->stop;
		my $good = Fixtures::read_file(manifest());
		my $bad = Fixtures::sealed($good, $change, $template);
		my $file = manifest();
		if ($stop eq 'immediate')
		{
			# with log behind it
			$node->start;
			$node->safe_psql('postgres', 'INSERT INTO distant VALUES (5, $$five$$) ON CONFLICT DO NOTHING');
			my @all = sort glob("$data/mot/*/manifest");
			$node->stop('immediate');
			$file = $all[-1];
			$good = Fixtures::read_file($file);
			$bad = Fixtures::sealed($good, $change, $template);
		}
		Fixtures::write_file($file, $bad);
		for my $ignore ('off', 'on')
		{
			next if $ignore eq 'on' && ($stop eq 'immediate' || $what ne 'a newer checkpoint');
			$node->append_conf('postgresql.conf', "mot.ignore_damaged = $ignore\n");
			$node->start;
			my $error = error_of($node, "\\set VERBOSITY verbose\nSELECT * FROM ordinary");
			like($error, qr/$code: .*could not be recovered\nDETAIL:  $expected.*\nHINT:  $hint/s, "$what ($stop, ignore_damaged $ignore) is refused");
			is($node->safe_psql('postgres', 'INSERT INTO heap VALUES (2); CHECKPOINT; SELECT count(*) > 1 FROM heap'), 't', 'heap tables are served');
			$node->stop;
		}
		$node->append_conf('postgresql.conf', "mot.ignore_damaged = off\n");
		ok(Fixtures::read_file($file) eq $bad, 'the file is as it was');
		Fixtures::write_file($file, $good);
		$node->start;
		is($node->safe_psql('postgres', 'SELECT count(*) FROM ordinary'), 2, 'nothing is lost');
	}
	return;
}

with_manifest('a newer checkpoint', sub { substr($_[0], 6, 2) = sprintf '%02d', $NEWEST + 1 }, 'V',
	"checkpoint file \"[^\"]+\" is of format " . ($NEWEST + 1) . ", and this version of mot $READS", 'Install the version of mot', 'fast', 'immediate');
with_manifest('one of another byte order', sub { substr($_[0], 0, 8) = reverse substr($_[0], 0, 8) }, 'N',
	'checkpoint file "[^"]+" is of another kind of machine', 'Files cannot be moved', 'fast');
with_manifest('one of other blocks', sub { substr($_[0], 8, 4) = pack('V', 32768) }, 'V',
	'checkpoint file "[^"]+" is of another kind of machine', 'Files cannot be moved', 'fast');

with_manifest('one of another database system', sub { substr($_[0], 20, 1) ^= "\1" }, 'V',
	'checkpoint file "[^"]+" belongs to another database system', 'Restore', 'fast');

# a copy of it, as a standby
$node->stop;
my $copy = PostgreSQL::Test::Cluster->new('copy');
system_or_bail('cp', '-a', $data, $copy->data_dir);
$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\n");
Fixtures::write_file(Fixtures::checkpoint_of($copy->data_dir) . '/manifest',
	Fixtures::sealed(Fixtures::read_file(manifest()), sub { substr($_[0], 6, 2) = sprintf '%02d', $NEWEST + 1 }));
$copy->set_standby_mode;
$copy->start;
like(error_of($copy, 'SELECT * FROM ordinary'), qr/checkpoint file "[^"]+" is of format 4, and this version of mot $READS/, 'a standby whose checkpoint is newer refuses it');
ok($copy->safe_psql('postgres', 'SELECT count(*) FROM heap'), 'and serves heap tables');
$copy->stop;

# ----------------------------------------------- a primary that is newer, and its log

$node->start;
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', q{INSERT INTO ordinary (id, name) VALUES (200, 'before')});
$node->wait_for_catchup($standby, 'replay');

# as the newer one would begin to write (START), and then go on
my $from = -s $standby->logfile;
my $record = sprintf '\x%02x0000', $RECORDS + 1;
$node->safe_psql('postgres', "SELECT mot_test_log(80, '$record')");
$node->safe_psql('postgres', q{INSERT INTO heap VALUES (3); INSERT INTO ordinary (id, name) VALUES (201, 'behind')});
$standby->wait_for_log(qr/recovery has paused: redo of memory-optimized tables at \S+ is of format 3, and this version of mot $READS_RECORDS/, $from);
is($standby->safe_psql('postgres', 'SELECT count(*), (SELECT count(*) FROM heap WHERE v = 3) FROM ordinary'), '3|0', 'a standby pauses in front of it, and is read');
isnt($standby->safe_psql('postgres', 'SELECT pg_get_wal_replay_pause_state()'), 'not paused', 'and shows that');
$standby->safe_psql('postgres', 'SELECT pg_promote(false)');
$standby->wait_for_log(qr/promotion is not possible/, $from);
$standby->psql('postgres', 'SELECT pg_wal_replay_resume()');
$standby->wait_for_log(qr/FATAL:  0A000: redo of memory-optimized tables at \S+ is of format 3, and this version of mot $READS_RECORDS/, $from);
$standby->wait_for_log(qr/database system is shut down/, $from);
$standby->_update_pid(0);
is($standby->start(fail_ok => 1), 0, 'it does not go on without it');

# an older version on the primary itself
$node->stop('immediate');
for my $ignore ('off', 'on')
{
	$from = -s $node->logfile;
	$node->append_conf('postgresql.conf', "mot.ignore_damaged = $ignore\n");
	my $started = $node->start(fail_ok => 1);
	if ($ignore eq 'off')
	{
		like(error_of($node, "\\set VERBOSITY verbose\nSELECT * FROM ordinary"),
			qr/0A000: .*DETAIL:  redo of memory-optimized tables at \S+ is of format 3, and this version of mot $READS_RECORDS/s, 'log that is newer is refused at a start');
		is($node->safe_psql('postgres', 'CHECKPOINT; SELECT count(*) FROM heap WHERE v = 3'), 1, 'heap tables are served');
		$node->stop('immediate');
	}
	else
	{
		ok(!$started, 'it is not taken for damage');
		like(slurp_file($node->logfile, $from), qr/redo of memory-optimized tables at \S+ is of format 3, and this version of mot $READS_RECORDS/, 'and the log says so');
	}
}

done_testing();
