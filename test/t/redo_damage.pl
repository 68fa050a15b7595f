# Redo that is damaged: records whose bytes are in order, but not what they say.  Each is refused
# where it is met, with its position, what is wrong and what can be done; nothing that it is beside
# is applied by halves, and heap tables are served.  With mot.ignore_damaged the others are there:
# all tables but that one, or, where nobody knows of which it is, none.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

use constant { COMMIT => 0x10, MIXED => 0x20, PIECE => 0x30, FORGET => 0x40 };

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1, extra => ['--encoding=UTF8', '--locale=C']);
$node->append_conf('postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
log_error_verbosity = verbose
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE FUNCTION mot_test_log(int, bytea) RETURNS pg_lsn LANGUAGE c AS 'mot';
	CREATE COLLATION english (provider = libc, locale = 'en_US.UTF-8');
	CREATE TABLE heap (v int) USING heap;
	CREATE TABLE keyed (id int PRIMARY KEY, v int UNIQUE) USING mot;
	CREATE TABLE plain (id int, v int) USING mot;
	CREATE FOREIGN TABLE named (s text COLLATE english PRIMARY KEY) SERVER mot_server;
	CREATE TABLE beside (id int PRIMARY KEY, v int) USING mot;
});
my @tables = qw(keyed plain named beside);
my $fill = q{
	TRUNCATE keyed, plain, beside; TRUNCATE named;
	INSERT INTO keyed SELECT i, -i FROM generate_series(1, 3) i;
	INSERT INTO plain SELECT i, i FROM generate_series(1, 3) i;
	INSERT INTO named VALUES ('one'), ('two');
	INSERT INTO beside SELECT i, i FROM generate_series(1, 3) i;};
my %digest = (
	keyed => 'SELECT string_agg(id || $$,$$ || v, $$ $$ ORDER BY id) FROM keyed',
	plain => 'SELECT string_agg(id || $$,$$ || v, $$ $$ ORDER BY id) FROM plain',
	named => 'SELECT string_agg(s, $$ $$ ORDER BY s COLLATE "C") FROM named',
	beside => 'SELECT string_agg(id || $$,$$ || v, $$ $$ ORDER BY id) FROM beside');
my %rows = (keyed => '1,-1 2,-2 3,-3', plain => '1,1 2,2 3,3', named => 'one two', beside => '1,1 2,2 3,3');

sub query { return $node->safe_psql('postgres', $_[0]) }

sub error_of
{
	my ($server, $sql) = @_;
	my ($rc, $out, $err) = $server->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	return $rc == 0 ? "no error: $out" : $err;
}

# ------------------------------------------------------------------- records

my $db = query(q{SELECT oid FROM pg_database WHERE datname = 'postgres'});

sub storage { return query("SELECT CASE relkind WHEN 'r' THEN relfilenode ELSE oid END FROM pg_class WHERE relname = '$_[0]'") }

sub varint
{
	my ($n) = @_;
	my $bytes = '';
	for (; $n >= 128; $n >>= 7) { $bytes .= chr($n % 128 | 128) }
	return $bytes . chr($n);
}
sub bytes { return varint(length $_[0]) . $_[0] }
sub int_key { return bytes(pack('N', ($_[0] + 2**31) % 2**32)) }
sub row { return varint(2) . bytes(pack('l<l<', @_)) }
sub table { return pack('CVV', 1, $db, storage($_[0])) }
sub create { return chr(2) . bytes($_[0]) }
sub define { return chr(3) . bytes($_[0]) }
sub index_of { return pack('CV', 4, $_[0]) }
sub drop_database { return pack('CV', 6, $_[0]) }
sub insert { return chr(7) . row(@_) }
sub raw { return chr(7) . varint($_[0]) . bytes($_[1]) }
sub delete_by { return chr(9) . $_[0] }
sub long { return chr(10) . $_[0] }
sub prepared { return chr(11) . bytes('gid') }
sub content { return varint(0) . row(@_) }

# the whole row anew; or what is to be kept of the old one, and more
sub update { my ($identity, @row) = @_; return chr(8) . $identity . varint(2) . varint(8) . varint(0) . bytes(pack('l<l<', @row)) }
sub update_keeping { my ($identity, $size, $kept) = @_; return chr(8) . $identity . varint(2) . varint($size) . varint($kept) . bytes('x' x ($size - $kept)) }

sub record { return chr(2) . varint($_[1] // 0) . pack('q<', 0) . $_[0] }

sub log_record
{
	my ($kind, $bytes) = @_;
	return query("SELECT mot_test_log($kind, '\\x" . unpack('H*', $bytes) . "')");
}

# ------------------------------------------------------- what there is then

# each table, as it should be or "damaged"
sub tables_are
{
	my ($what, %damaged) = @_;
	my @are;
	my @should;
	for my $table (@tables)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$digest{$table}");
		push @are, "$table: " . ($rc == 0 ? $out : $err =~ /XX001: memory-optimized table with OID \d+ is damaged/ ? 'damaged' : $err);
		push @should, "$table: " . ($damaged{$table} ? 'damaged' : $rows{$table});
	}
	return is(join("\n", @are), join("\n", @should), $what);
}

sub start_ignoring
{
	my $from = -s $node->logfile;
	$node->append_conf('postgresql.conf', "mot.ignore_damaged = on\n");
	$node->start;
	$node->append_conf('postgresql.conf', "mot.ignore_damaged = off\n");
	$node->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") or die 'not loaded';
	return slurp_file($node->logfile, $from);
}

my $ROW = 'redo at [0-9A-F]+/[0-9A-F]+ does not fit memory-optimized table';
my $LOG = 'redo of memory-optimized tables at [0-9A-F]+/[0-9A-F]+ is damaged:';
my $BACKUP = 'Restore the server from a backup';

# of: the table that is given up, if it is ignored; none: all
sub refused
{
	my ($what, $kind, $make, $why, $of, %ignored) = @_;
	my $heap = query("$fill; CHECKPOINT; INSERT INTO heap VALUES (1); SELECT count(*) FROM heap");

	# what comes before it, and behind it, counts as soon as it can be read
	query('INSERT INTO beside VALUES (4, 4)');
	log_record(FORGET, record('', 0x1000));
	log_record($kind, $make->());
	query('INSERT INTO beside VALUES (5, 5); INSERT INTO heap VALUES (2)');
	$node->stop('immediate');
	$node->start;
	my $expected = defined $of ? qr/$ROW "public\.$of": $why\.\n.*HINT:  $BACKUP.*mot\.ignore_damaged/s : qr/$why\.\n(.*\n)?HINT:  $BACKUP/;
	like(error_of($node, "SELECT * FROM beside"), qr/ERROR:  XX001: memory-optimized tables could not be recovered\nDETAIL:  $expected/, "$what: refused");
	is(query('INSERT INTO heap VALUES (3); CHECKPOINT; SELECT count(*) FROM heap'), $heap + 2, '... heap tables are served');
	like(error_of($node, 'TRUNCATE keyed'), qr/XX001/, '... and nothing is put in the place of what cannot be read');
	$node->stop;

	local $rows{beside} = '1,1 2,2 3,3 4,4 5,5';
	my @damaged = exists $ignored{but} ? () : defined $of ? $of : @tables;
	my $log = start_ignoring();
	like($log, qr/WARNING:  XX001: .*\n.*(given up|Going on without any memory-optimized table), as mot\.ignore_damaged/, '... ignored, as the log says') if @damaged;
	tables_are('... what has been given up is told apart', map { $_ => 1 } @damaged);
	return;
}

for my $case (
	# what cannot be taken apart: nobody knows what else it says
	[ 'a record without a header', COMMIT, sub { '' }, "$LOG too short" ],
	[ 'a header cut off', COMMIT, sub { substr(record(''), 0, 5) }, "$LOG too short" ],
	[ 'a record of another kind', 0x70, sub { record('') }, "$LOG unknown kind 112" ],
	[ 'another operation', COMMIT, sub { record(table('keyed') . insert(4, 4) . chr(99)) }, "$LOG there is an unknown operation" ],
	[ 'a row cut off', COMMIT, sub { record(table('keyed') . substr(insert(4, 4), 0, 8)) }, "$LOG an operation is longer than what there is of it" ],
	[ 'changes of no table', COMMIT, sub { record(insert(4, 4)) }, "$LOG no table is named" ],
	[ 'changes of none any more', COMMIT, sub { record(table('keyed') . drop_database(1) . insert(4, 4)) }, "$LOG no table is named" ],
	[ 'a long operation cut off', COMMIT, sub { record(table('keyed') . long(varint(100) . insert(4, 4))) }, "$LOG a long operation is not complete" ],
	[ 'a long operation in another', COMMIT, sub { record(table('keyed') . long(bytes(long(bytes(insert(4, 4)))))) }, "$LOG a long operation holds none" ],
	[ 'a long operation and more', COMMIT, sub { record(table('keyed') . long(bytes(insert(4, 4) . 'x'))) }, "$LOG a long operation is followed by something else" ],
	[ 'a definition that is none', COMMIT, sub { record(table('keyed') . create('x')) }, 'definition of a memory-optimized table is damaged: [^\n]+' ],
	[ 'one that takes the place of another', COMMIT, sub { record(table('keyed') . define('x')) }, 'definition of a memory-optimized table is damaged: [^\n]+' ],
	[ 'the end of what was not begun', COMMIT, sub { record(table('keyed') . insert(4, 4), 0x1000) },
		'redo of memory-optimized tables at [0-9A-F/]+ goes on what began at 0/1000, which was not read' ],
	[ 'a piece of it', PIECE, sub { record(table('keyed') . insert(4, 4), 0x1000) },
		'redo of memory-optimized tables at [0-9A-F/]+ goes on what began at 0/1000, which was not read', undef, but => 'its end' ],

	# what does not fit a table
	[ 'a key that is there', COMMIT, sub { record(table('keyed') . insert(1, 9)) }, 'a key is there already', 'keyed' ],
	[ 'a row changed to a key that is there', COMMIT, sub { record(table('keyed') . update(int_key(1), 1, -2)) }, 'a key is there already', 'keyed' ],
	[ 'a change of a row that is not there', COMMIT, sub { record(table('keyed') . update(int_key(9), 9, 9)) }, 'a row is not there', 'keyed' ],
	[ 'a delete of one', COMMIT, sub { record(table('keyed') . delete_by(int_key(9))) }, 'a row is not there', 'keyed' ],
	[ 'the same by its content', COMMIT, sub { record(table('plain') . update(content(9, 9), 1, 1)) }, 'a row is not there', 'plain' ],
	[ 'a delete by that', COMMIT, sub { record(table('plain') . delete_by(content(9, 9))) }, 'a row is not there', 'plain' ],
	[ 'one that does not go together with itself', COMMIT, sub { record(table('plain') . update_keeping(content(9, 9), 20, 16)) }, 'a row is not there', 'plain' ],
	[ 'a key of a table that has none', COMMIT, sub { record(table('plain') . delete_by(int_key(1))) }, 'the index by which rows are told apart is not there', 'plain' ],
	[ 'a name that is none', COMMIT, sub { record(table('named') . delete_by(bytes('o'))) }, "a row's name is no key", 'named' ],
	[ 'more kept of a row than it has', COMMIT, sub { record(table('keyed') . update_keeping(int_key(1), 20, 16)) },
		'a changed row does not go together with the row that is there', 'keyed' ],
	[ 'a row that is shorter than its columns', COMMIT, sub { record(table('keyed') . raw(2, 'xx')) }, 'a row is not whole', 'keyed' ],
	[ 'one of more columns than there are', COMMIT, sub { record(table('keyed') . raw(3, 'x' x 12)) }, 'a row is not whole', 'keyed' ],
	[ 'a text that goes beyond its row', COMMIT, sub { record(table('named') . raw(1, pack('V', 0x3fffffff << 2) . 'text')) }, 'a row is not whole', 'named' ],
	[ 'one that lies elsewhere', COMMIT, sub { record(table('named') . raw(1, chr(1) . chr(18) . 'x' x 16)) }, 'a row is not whole', 'named' ],
	[ 'a row that becomes one', COMMIT, sub { record(table('keyed') . chr(8) . int_key(1) . varint(2) . varint(4) . varint(0) . bytes('xxxx')) }, 'a row is not whole', 'keyed' ],
	[ "keys of a row's own that go beyond it", COMMIT, sub { record(table('keyed') . raw(0x1002, pack('l<l<V', 4, 4, 1 << 30))) }, 'a row is not whole', 'keyed' ],
	[ 'the same of one that is to be deleted', COMMIT, sub { record(table('plain') . delete_by(varint(0) . varint(0x1002) . bytes(pack('l<l<V', 4, 4, 1 << 30)))) }, 'a row is not whole', 'plain' ],
	[ 'an index of another table', COMMIT, sub { record(table('keyed') . index_of(1)) }, 'index 1 is not in the definition', 'keyed' ],
	[ 'a name of a prepared transaction in the midst', COMMIT, sub { record(table('keyed') . insert(4, 4) . prepared()) }, 'unexpected operation', 'keyed' ])
{
	refused(@$case);
}

# ------------------------------------------------------------------ standbys

$node->safe_psql('postgres', "$fill; CHECKPOINT");
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
query('INSERT INTO beside VALUES (4, 4); INSERT INTO heap VALUES (4)');
$node->wait_for_catchup($standby, 'replay');

# who has read the tables could go on to read them as of now, beside heap tables of later
my ($reader, $pid);
sub reads
{
	my ($table) = @_;
	$reader = $standby->background_psql('postgres', on_error_stop => 0);
	$pid = $reader->query_safe('SELECT pg_backend_pid()');
	$reader->query_safe("BEGIN; SELECT count(*) FROM $table");
	return;
}
sub is_ended
{
	is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid"), '0', $_[0]);
	eval { $reader->quit };
	return;
}
reads('beside');
my $from = -s $standby->logfile;
my $damage = log_record(COMMIT, record(table('keyed') . insert(9, 9) . delete_by(int_key(8))));
query('INSERT INTO heap VALUES (5); INSERT INTO beside VALUES (5, 5)');
$node->wait_for_catchup($standby, 'replay');
like(slurp_file($standby->logfile, $from), qr/ERROR:  XX001: $ROW "public\.keyed": a row is not there\n.*\n.*HINT:  $BACKUP.*replay goes on without memory-optimized tables/s, 'a standby says what it refuses');
is_ended('... ends sessions that have read its tables');

sub refuses
{
	my ($server, $why, $what) = @_;
	is($server->safe_psql('postgres', 'SELECT count(*) FROM heap'), query('SELECT count(*) FROM heap'), "$what: heap tables are served");
	like(error_of($server, 'SELECT * FROM beside'), qr/XX001: memory-optimized tables could not be recovered\nDETAIL:  $why\.\n(.*\n)?HINT:  $BACKUP/, '... and no others');
	is($server->safe_psql('postgres', 'SELECT state FROM mot_stat_recovery'), 'refused', '... as the view says');
	return;
}

refuses($standby, qr/$ROW "public\.keyed": a row is not there/, 'a standby goes on without memory-optimized tables');
is($standby->safe_psql('postgres', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) > 0 FROM heap'), 't', '... at any isolation level');
query('INSERT INTO heap VALUES (6); CHECKPOINT');
$node->wait_for_catchup($standby, 'replay');
$standby->safe_psql('postgres', 'CHECKPOINT');
is($standby->safe_psql('postgres', "SELECT checkpoint_lsn < '$damage' FROM mot_stat_recovery"), 't', '... without another checkpoint');

# the next start finds what this one has found, whether it meets it before or after it has loaded
for my $point ('', 'load-begin')
{
	$standby->stop('immediate');
	$standby->append_conf('postgresql.conf', "mot.fault = '" . ($point ? "$point:wait" : '') . "'\n");
	$from = -s $standby->logfile;
	$standby->start;
	if ($point)
	{
		$standby->wait_for_log(qr/fault point "$point" reached/, $from);
		query('INSERT INTO heap VALUES (7)');
		$node->wait_for_catchup($standby, 'replay');
		append_to_file($standby->data_dir . '/mot.fault.go', '');
	}
	$node->wait_for_catchup($standby, 'replay');
	$standby->poll_query_until('postgres', "SELECT state IN ('ready', 'refused') FROM mot_stat_recovery") or die;
	$standby->wait_for_log(qr/$ROW "public\.keyed": a row is not there/, $from);
	refuses($standby, qr/$ROW "public\.keyed": a row is not there/, 'at the next start, too');
}
$standby->append_conf('postgresql.conf', "mot.fault = ''\n");
$standby->stop;
$standby->append_conf('postgresql.conf', "mot.ignore_damaged = on\n");
$standby->start;
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $digest{beside}), '1,1 2,2 3,3 4,4 5,5', 'with mot.ignore_damaged others are there');
like(error_of($standby, 'SELECT * FROM keyed'), qr/XX001: memory-optimized table with OID \d+ is damaged/, '... but that table');

# ... and so are those behind it
reads('plain');
$from = -s $standby->logfile;
log_record(COMMIT, record(table('plain') . insert(9, 9) . delete_by(content(8, 8)) . table('beside') . insert(6, 6)));
$standby->wait_for_log(qr/WARNING:  XX001: $ROW "public\.plain": a row is not there\n.*DETAIL:  The table is given up/, $from);
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $digest{beside}), '1,1 2,2 3,3 4,4 5,5 6,6', 'what a transaction did beside it is applied');
like(error_of($standby, 'SELECT * FROM plain'), qr/XX001: memory-optimized table with OID \d+ is damaged/, '... of that table nothing');
is_ended('... by who had it open, either');
query("$fill; INSERT INTO keyed VALUES (4, 4)");
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', "$digest{keyed}"), "$rows{keyed} 4,4", 'TRUNCATE makes it whole');

# a session that meets it leaves it to who replays, who ends the others first
reads('keyed');
my $bytes = unpack('H*', record(table('keyed') . delete_by(int_key(9))));
query("BEGIN; INSERT INTO heap VALUES (6); SELECT mot_test_log(${\ MIXED}, '\\x$bytes'); COMMIT");
$node->wait_for_catchup($standby, 'replay');
like(error_of($standby, 'SELECT * FROM beside'), qr/ERROR:  XX001: $ROW "public\.keyed": a row is not there/, 'a session gives up no table that others may have read');
query('INSERT INTO beside VALUES (4, 4)');
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $digest{beside}), '1,1 2,2 3,3 4,4', '... who replays does, and others are there');
like(error_of($standby, 'SELECT * FROM keyed'), qr/XX001: memory-optimized table with OID \d+ is damaged/, '... but that table');
is_ended('... of which nothing is read any more');
$standby->stop;

# what cannot be taken apart is met by who replays, whether somebody loads meanwhile or has done so;
# what is in doubt, by who finds it committed: a session, or the end of recovery.  When the standby
# is promoted it is a server of heap tables, also if that is while they are loaded.
for my $case (
	[ 'another kind', '', 0x70, sub { record('') }, qr/$LOG unknown kind 112/ ],
	[ 'a value that is none', '', COMMIT, sub { record(table('named') . raw(1, pack('VV', 100 << 2 | 2, 0x3fffffff) . "\xff" x 92)) }, qr/invalid memory alloc request size \d+/ ],
	[ 'no header', 'load-begin', COMMIT, sub { '' }, qr/$LOG too short/ ],
	[ 'a mixed transaction', '', MIXED, sub { record(table('keyed') . delete_by(int_key(9))) }, qr/$ROW "public\.keyed": a row is not there/ ])
{
	my ($what, $point, $kind, $bytes, $why) = @$case;
	query("$fill; CHECKPOINT");
	my $name = 'standby_' . $what =~ s/ /_/gr;
	$node->backup($name);
	my $other = PostgreSQL::Test::Cluster->new($name);
	$other->init_from_backup($node, $name, has_streaming => 1);
	$other->append_conf('postgresql.conf', "mot.fault = '" . ($point ? "$point:wait" : '') . "'\n");
	$other->start;
	$other->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") unless $point;
	my $is_refused = "SELECT state = 'refused' FROM mot_stat_recovery";
	if ($kind == MIXED)
	{
		query("BEGIN; INSERT INTO heap VALUES (8); SELECT mot_test_log($kind, '\\x" . unpack('H*', $bytes->()) . "'); COMMIT");
		$node->wait_for_catchup($other, 'replay');
		like(error_of($other, 'SELECT * FROM beside'), qr/ERROR:  XX001: $why/, "$what: who finds it committed says so");
	}
	else
	{
		log_record($kind, $bytes->());
		query('INSERT INTO beside VALUES (4, 4); INSERT INTO heap VALUES (8); CHECKPOINT');
		$node->wait_for_catchup($other, 'replay');
	}
	if (!$point && $kind != MIXED)
	{
		refuses($other, $why, $what);
		# behind a restart point it is read by who loads
		$other->safe_psql('postgres', 'CHECKPOINT');
		$other->stop('immediate');
		$other->start;
		$other->poll_query_until('postgres', $is_refused) or die;
		refuses($other, $why, '... started behind it');
	}
	$other->promote;
	append_to_file($other->data_dir . '/mot.fault.go', '');
	$other->wait_for_log(qr/ERROR:  XX00[01]: $why/);
	$other->poll_query_until('postgres', $is_refused) or die;
	$other->append_conf('postgresql.conf', "mot.fault = ''\n");
	for my $how ("$what: once it is promoted", '... and started again')
	{
		refuses($other, $why, $how);
		query('INSERT INTO heap VALUES (9)');
		is($other->safe_psql('postgres', "SET statement_timeout = '60s'; INSERT INTO heap VALUES (9); CHECKPOINT; SELECT 1"), '1', '... with checkpoints of the server');
		$other->stop('immediate');
		$other->start;
		$other->poll_query_until('postgres', $is_refused) or die;
	}
	$other->stop;
}

# where nothing keeps the log, which the next start needs, replay stops
query("$fill; CHECKPOINT");
$node->backup('without');
my $without = PostgreSQL::Test::Cluster->new('without');
$without->init_from_backup($node, 'without', has_streaming => 1);
$without->append_conf('postgresql.conf', "max_replication_slots = 0\n");
$without->start;
$without->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") or die;
log_record(COMMIT, record(table('keyed') . delete_by(int_key(9))));
$without->wait_for_log(qr/FATAL:  XX001: $ROW "public\.keyed": a row is not there\n.*\n.*HINT:  $BACKUP.*database system is shut down/s);
$without->_update_pid(0);
$without->append_conf('postgresql.conf', "mot.ignore_damaged = on\n");
$without->start;
$node->wait_for_catchup($without, 'replay');
is($without->safe_psql('postgres', $digest{beside}), '1,1 2,2 3,3', 'without a slot a standby stops, and others are there with mot.ignore_damaged');
$without->stop;

done_testing();
