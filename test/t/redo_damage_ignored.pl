# Tables that are given up with mot.ignore_damaged, since redo does not fit them: from the next
# checkpoint on nothing is left of them that a start without the setting would stumble over, a
# prepared transaction's changes least of all; no VACUUM or ANALYZE ends at them; nobody who knows
# one can still change it; that it is dropped is told to standbys; and however many there are, none
# is served, nor by a standby.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q{
autovacuum = off
fsync = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
max_prepared_transactions = 5
max_locks_per_transaction = 512
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE DATABASE other;
	CREATE EXTENSION mot;
	CREATE FUNCTION mot_test_log(int, bytea) RETURNS pg_lsn LANGUAGE c AS 'mot';
	CREATE TABLE heap (v int) USING heap;
	CREATE TABLE beside (v int PRIMARY KEY) USING mot;
	CREATE TABLE one (v int PRIMARY KEY, w int) USING mot;
	CREATE TABLE two (v int PRIMARY KEY, w int) USING mot;
	CREATE FOREIGN TABLE three (v int PRIMARY KEY, w int) SERVER mot_server;
	INSERT INTO one VALUES (1, 1), (2, 2);
	INSERT INTO two VALUES (1, 1), (2, 2);
	INSERT INTO three VALUES (1, 1), (2, 2);
	CREATE FUNCTION low(number oid) RETURNS bytea LANGUAGE sql AS $$
		SELECT decode(string_agg(lpad(to_hex((number::int8 >> 8 * i) & 255), 2, '0'), '' ORDER BY i), 'hex')
		FROM generate_series(0, 3) i $$;
	-- a row that is not there is deleted
	CREATE FUNCTION damage(damaged regclass, key int DEFAULT 255) RETURNS pg_lsn LANGUAGE sql AS $$
		SELECT mot_test_log(16 /* COMMIT */, '\x02000000000000000000'::bytea || '\x01'::bytea || low(d.oid) ||
			low(CASE relkind WHEN 'f' THEN c.oid ELSE c.relfilenode END) || '\x0904800000'::bytea || set_byte('\x00', 0, key))
		FROM pg_class c, pg_database d WHERE c.oid = damaged AND datname = current_database() $$});
$node->safe_psql('other', q{
	CREATE EXTENSION mot;
	CREATE TABLE elsewhere (v int PRIMARY KEY) USING mot;
	INSERT INTO elsewhere VALUES (1);});

sub query { return $node->safe_psql('postgres', $_[0]) }

sub error_of
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	return $rc == 0 ? "no error: $out" : $err;
}

sub starts
{
	my ($ignoring) = @_;
	$node->stop('immediate');
	$node->append_conf('postgresql.conf', "mot.ignore_damaged = $ignoring\n");
	$node->start;
	$node->poll_query_until('postgres', "SELECT state IN ('ready', 'refused') FROM mot_stat_recovery") or die 'not loaded';
	return query('SELECT state FROM mot_stat_recovery');
}

sub damaged_tables { return query('SELECT damaged_tables FROM mot_stat_recovery') }

# ------------------------------------------------- prepared transactions that have changed them

query('CHECKPOINT');
query("BEGIN; UPDATE one SET w = 3 WHERE v = 1; INSERT INTO beside VALUES (1); INSERT INTO heap VALUES (1); PREPARE TRANSACTION 'first'");
query("BEGIN; INSERT INTO beside VALUES (2); UPDATE two SET w = 3; UPDATE one SET w = 3 WHERE v = 2; DELETE FROM three; INSERT INTO beside VALUES (3); INSERT INTO beside SELECT generate_series(1001, 4000); PREPARE TRANSACTION 'second'");
query("SELECT damage('one'), damage('two'), damage('three')");
query('INSERT INTO beside VALUES (4)');
is(starts('off'), 'refused', 'redo that does not fit is refused');
is(starts('on'), 'ready', '... or ignored');
is(damaged_tables(), 3, '... which costs three tables');
like(error_of("SELECT * FROM $_"), qr/XX001/, "... $_ says so") for qw(one two three);
my ($rc, $out, $err) = $node->psql('postgres', 'VACUUM; ANALYZE; VACUUM ANALYZE one, two');
is($rc, 0, '... and they end no VACUUM of the database') or diag($err);
query('INSERT INTO beside VALUES (5)');

query('CHECKPOINT; INSERT INTO beside VALUES (6); CHECKPOINT');
my @aside = glob($node->data_dir . '/mot/*.damaged/*');
cmp_ok(scalar(@aside), '>', 1, 'the checkpoint that has their rows as they were is put aside');

is(starts('off'), 'ready', 'behind a checkpoint the setting is not needed');
query('INSERT INTO beside VALUES (7)');
query("COMMIT PREPARED 'first'");
is(starts('off'), 'ready', '... nor is it when a prepared transaction has been committed');
query("COMMIT PREPARED 'second'");
is(starts('off'), 'ready', '... and another');
is(query(q{SELECT string_agg(v::text, ' ' ORDER BY v) FROM beside WHERE v < 1000}), '1 2 3 4 5 6 7', '... what they did elsewhere is there');
is(query('SELECT count(*) FROM beside WHERE v > 1000'), 3000, '... all of it');
is(query('SELECT count(*) FROM heap'), 1, '... and in heap tables');
like(error_of("SELECT * FROM $_"), qr/55000: memory-optimized table "$_" has no storage/, "... $_ has no storage") for qw(one two three);
# (the heap table comes last)
query('CREATE TABLE last (v int) USING heap; INSERT INTO last VALUES (1)');
($rc, $out, $err) = $node->psql('postgres', 'VACUUM; ANALYZE; VACUUM ANALYZE; ANALYZE one, three');
is($rc, 0, '... and they end no VACUUM or ANALYZE of the database') or diag($err);
like($err, qr/skipping analyze of "one" --- it is not in memory.*skipping "three" --- cannot analyze this foreign table/s, '... which says that it has passed them by');
is(query("SELECT reltuples FROM pg_class WHERE relname = 'last'"), 1, '... and goes on behind them');

# -------------------------------------------------------------------------------- made anew

query('TRUNCATE one, two; TRUNCATE three; INSERT INTO one VALUES (8, 8); CHECKPOINT');
query("SELECT damage('two')");
is(starts('on'), 'ready', 'ignored');
is(damaged_tables(), 1, '... which costs one');
query('BEGIN; SAVEPOINT a; TRUNCATE two; INSERT INTO two VALUES (1, 1); ROLLBACK TO a; INSERT INTO beside VALUES (8); COMMIT');
like(error_of('SELECT * FROM two'), qr/XX001/, '... one emptied in vain is so still');
query('TRUNCATE two; INSERT INTO two VALUES (9, 9); CHECKPOINT');
is(damaged_tables(), 0, '... one emptied is whole');
is(starts('off'), 'ready', '... after a crash, too');
is(query('SELECT * FROM one UNION ALL SELECT * FROM two'), "8|8\n9|9", '... with what has come since');

# ------------------------------------------------ a prepared transaction is what does not fit

# found when somebody is about to make the first change, and tables are served
query("CHECKPOINT; CREATE TABLE four (v int PRIMARY KEY, w int) USING mot; CREATE INDEX four_w ON four (w); INSERT INTO four SELECT i, i FROM generate_series(1, 9) i; CREATE TABLE five (v int PRIMARY KEY) USING mot");
query("BEGIN; DELETE FROM four WHERE v = 3; INSERT INTO five VALUES (3); PREPARE TRANSACTION 'third'");
query("SELECT damage('four', 3)");
is(starts('on'), 'ready', 'a prepared transaction that does not fit');
my @session = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
is($_->query('SELECT count(*) FROM four'), 8, '... the table is read') for @session;
$session[0]->query('INSERT INTO four VALUES (11, 1)');
like($session[0]->{stderr}, qr/memory-optimized table with OID \d+ is damaged/, '... but who knows it cannot change it, to lose that');
$_->query('SELECT count(*) FROM four') for @session;
like($session[1]->{stderr}, qr/memory-optimized table with OID \d+ is damaged/, '... nor read it any more');
$session[1]->query('INSERT INTO five VALUES (11)');
$_->quit for @session;
query("CHECKPOINT");
query("COMMIT PREPARED 'third'");
for my $sql ('DROP INDEX four_w', 'ALTER TABLE four RENAME TO renamed')
{
	like(error_of($sql), qr/XX001: memory-optimized table with OID \d+ is damaged/, "... nor is it defined otherwise, of which the next start would read in the log: $sql");
}
like(error_of('CREATE DATABASE copied TEMPLATE postgres'), qr/XX001: memory-optimized tables in database "postgres" cannot be copied/, '... nor is it copied with its database');
is(starts('off'), 'ready', '... without the setting');
is(query('SELECT string_agg(v::text, $$ $$ ORDER BY v) FROM five'), '3 11', '... others have what was done to them');
like(error_of('SELECT * FROM four'), qr/55000: memory-optimized table "four" has no storage/, '... and it has no storage');
query('DROP TABLE four, five, last');

# --------------------------------------------------------------------- a database that is dropped

$node->safe_psql('other', q{CREATE FUNCTION mot_test_log(int, bytea) RETURNS pg_lsn LANGUAGE c AS 'mot'});
my ($db, $table) = split /\|/, $node->safe_psql('other', q{SELECT d.oid, relfilenode FROM pg_database d, pg_class WHERE datname = 'other' AND relname = 'elsewhere'});
$node->safe_psql('other', 'CHECKPOINT');
$node->safe_psql('other', "SELECT mot_test_log(16 /* COMMIT */, '\\x" . unpack('H*', chr(2) . chr(0) . pack('q<', 0) . pack('CVV', 1, $db, $table) . chr(9) . chr(4) . pack('N', 9 + 2**31)) . "')");
is(starts('on'), 'ready', 'ignored in another database');
is(damaged_tables(), 1, '... which costs one');
query('DROP DATABASE other');
is(damaged_tables(), 0, '... until that is dropped');

# ----------------------------------------------- killed before the old checkpoint is put aside

query('CREATE TABLE six (v int PRIMARY KEY) USING mot; INSERT INTO six VALUES (1); CHECKPOINT');
query("SELECT damage('six')");
$node->append_conf('postgresql.conf', "mot.fault = 'checkpoint-begin:error'\n");
is(starts('on'), 'ready', 'ignored once more');
@aside = glob($node->data_dir . '/mot/*.damaged');
$node->append_conf('postgresql.conf', "mot.fault = 'checkpoint-renamed:kill'\n");
$node->reload;
$node->psql('postgres', 'CHECKPOINT');
for (1 .. 300)
{
	last unless -e $node->data_dir . '/postmaster.pid';
	select(undef, undef, undef, 0.1);
}
$node->append_conf('postgresql.conf', "mot.fault = ''\nmot.ignore_damaged = off\n");
$node->_update_pid(0);
$node->start;
$node->poll_query_until('postgres', "SELECT state IN ('ready', 'refused') FROM mot_stat_recovery") or die 'not loaded';
is(query('SELECT state FROM mot_stat_recovery'), 'ready', '... killed behind the new checkpoint');
query('CHECKPOINT; INSERT INTO beside VALUES (8000); CHECKPOINT; DELETE FROM beside WHERE v = 8000; CHECKPOINT');
is(scalar(my @now = glob($node->data_dir . '/mot/*.damaged')), @aside + 1, '... the old one is put aside nevertheless');
query('DROP TABLE six');

# -------------------------------------------------------------------------- on a standby that is read

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "mot.ignore_damaged = on\n");
$standby->start;
$standby->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") or die 'not loaded';
my $reader = $standby->background_psql('postgres', on_error_stop => 0);
my $pid = $reader->query_safe('SELECT pg_backend_pid()');
is($reader->query_safe('BEGIN; SELECT * FROM one'), '8|8', 'a standby that ignores damage: a session reads the table');
query("SELECT damage('one')");
query('INSERT INTO beside VALUES (9); INSERT INTO heap VALUES (2)');
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid"), '0', '... which is ended');
eval { $reader->quit };
($rc, $out, $err) = $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM one");
like($err, qr/XX001: memory-optimized table with OID \d+ is damaged/, '... the table is not read any more');
is($standby->safe_psql('postgres', 'SELECT * FROM two UNION ALL SELECT max(v), count(*) FROM beside WHERE v < 100'), "9|9\n9|9", '... the others are');
# (on a server that runs there may be more later, each with a checkpoint that has its rows; those of
# the primary have come with its backup)
my $put_aside = sub { my @damaged = glob($standby->data_dir . '/mot/*.damaged'); return scalar(@damaged) };
my $were = $put_aside->();
for my $i (1, 2)
{
	for (1 .. 2)
	{
		query('INSERT INTO heap VALUES (3); CHECKPOINT');
		$node->wait_for_catchup($standby, 'replay');
		$standby->safe_psql('postgres', 'CHECKPOINT');
	}
	for (1 .. 300)
	{
		last if $put_aside->() >= $were + $i;
		select(undef, undef, undef, 0.1);
	}
	is($put_aside->(), $were + $i, "... the checkpoint that has its rows is put aside, $i");
	query("SELECT damage('two')") if $i == 1;
}

# the primary has both and goes on to change them: started without the setting, a standby knows
# which it has given up, and refuses no others
query("BEGIN; UPDATE two SET w = 10; INSERT INTO beside VALUES (21); PREPARE TRANSACTION 'fourth'");
query("CHECKPOINT; INSERT INTO one VALUES (11, 11)");
my $error_there = sub { my ($r, $o, $e) = $standby->psql('postgres', "\\set VERBOSITY verbose\n$_[0]"); return $r == 0 ? "no error: $o" : $e };
my $starts_there = sub {
	my ($ignoring) = @_;
	$standby->stop('immediate');
	$standby->append_conf('postgresql.conf', "mot.ignore_damaged = $ignoring\n");
	$standby->start;
	$standby->poll_query_until('postgres', "SELECT state IN ('ready', 'refused') FROM mot_stat_recovery") or die 'not loaded';
	return $standby->safe_psql('postgres', 'SELECT state FROM mot_stat_recovery');
};
for my $i (1, 2)
{
	$node->wait_for_catchup($standby, 'replay');
	# (which does not wait for ours there)
	$standby->safe_psql('postgres', 'CHECKPOINT');
	$standby->poll_query_until('postgres', 'SELECT checkpoint_lsn >= (pg_control_checkpoint()).redo_lsn FROM mot_stat_checkpoint') or die 'no checkpoint';
	is($starts_there->('off'), 'ready', "a standby that has given up tables starts without the setting, $i");
	query("COMMIT PREPARED 'fourth'") if $i == 1;
	query("INSERT INTO one VALUES (11 + $i, 11); UPDATE one SET w = 12; INSERT INTO two VALUES (11 + $i, 11); INSERT INTO beside VALUES (21 + $i)");
	query("BEGIN; INSERT INTO one VALUES (13 + $i, 11); INSERT INTO beside VALUES (23 + $i); INSERT INTO heap VALUES (4); COMMIT");
	$node->wait_for_catchup($standby, 'replay');
	is($standby->safe_psql('postgres', 'SELECT state, damaged_tables FROM mot_stat_recovery'), 'ready|2', '... and goes on where those are changed');
	like($error_there->("SELECT * FROM $_"), qr/XX001: memory-optimized table with OID \d+ is damaged\nDETAIL:  redo at .* does not fit: a row is not there\./, "... $_ says why") for qw(one two);
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM beside WHERE v BETWEEN 21 AND 25'), 1 + 2 * $i, '... others have all');
}
$standby->backup('of_standby');
query('DELETE FROM beside WHERE v BETWEEN 21 AND 25');
query('TRUNCATE one, two; INSERT INTO one VALUES (10, 10)');
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', 'SELECT damaged_tables FROM mot_stat_recovery'), 0, '... until they are emptied');
$standby->safe_psql('postgres', 'CHECKPOINT');
is($starts_there->('on'), 'ready', 'it starts once more');
is($standby->safe_psql('postgres', 'SELECT damaged_tables FROM mot_stat_recovery'), 0, '... and takes them for whole');

# what is restored from its backup is promoted, and crashes before there is a checkpoint of its own
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($standby, 'of_standby', has_streaming => 1);
$restored->append_conf('postgresql.conf', "mot.ignore_damaged = off\nprimary_conninfo = ''\nlog_min_messages = debug1\nmot.fault = 'checkpoint-begin:error'\n");
$restored->start;
$restored->poll_query_until('postgres', "SELECT state IN ('ready', 'refused') FROM mot_stat_recovery") or die 'not loaded';
$restored->promote;
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
for my $i (1, 2)
{
	is($restored->safe_psql('postgres', 'SELECT state, damaged_tables, (SELECT count(*) FROM beside WHERE v BETWEEN 21 AND 25) FROM mot_stat_recovery'), 'ready|2|5', "a backup of the standby, promoted, has the same, $i");
	$restored->stop('immediate');
	$restored->start;
	$restored->poll_query_until('postgres', "SELECT state IN ('ready', 'refused') FROM mot_stat_recovery") or die 'not loaded';
}
$restored->append_conf('postgresql.conf', "mot.fault = ''");
$restored->restart;
$restored->safe_psql('postgres', 'TRUNCATE two; INSERT INTO two VALUES (1, 1); CHECKPOINT');
$restored->restart;
is($restored->safe_psql('postgres', 'SELECT * FROM two'), '1|1', '... and what is emptied there is whole');
$restored->stop;
$node->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', 'SELECT * FROM one'), '10|10', '... and so is it once it has been emptied');
query("SELECT damage('one')");
query('CHECKPOINT');
$node->wait_for_catchup($standby, 'replay');
$standby->safe_psql('postgres', 'CHECKPOINT');
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
$standby->safe_psql('postgres', 'VACUUM; INSERT INTO beside VALUES (10); CHECKPOINT');
$standby->append_conf('postgresql.conf', "mot.ignore_damaged = off\n");
$standby->stop('immediate');
$standby->start;
is($standby->safe_psql('postgres', 'SELECT count(*) FROM beside'), 3010, '... promoted, without the setting, it has the others');
($rc, $out, $err) = $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM one");
like($err, qr/55000: memory-optimized table "one" has no storage/, '... and this one has no storage');
$standby->stop;
query('TRUNCATE one');

# ------------------------------------------ tables that the primary has lost, and a standby has not

query(q{
	CREATE TABLE lost_1 (v int PRIMARY KEY) USING mot;
	CREATE TABLE lost_2 (v int PRIMARY KEY) USING mot;
	CREATE FOREIGN TABLE lost_3 (v int PRIMARY KEY) SERVER mot_server;
	CREATE MATERIALIZED VIEW lost_4 USING mot AS SELECT 1 AS v;
	CREATE TABLE lost_5 (v int PRIMARY KEY) USING mot;
	INSERT INTO lost_1 VALUES (1); INSERT INTO lost_2 VALUES (1); INSERT INTO lost_3 VALUES (1); INSERT INTO lost_5 VALUES (1)});
query('CHECKPOINT');
my @files = split /\n/, query(q{SELECT CASE relkind WHEN 'f' THEN oid ELSE relfilenode END FROM pg_class WHERE relname ~ '^lost_.$'});
$node->backup('lost');
my $whole = PostgreSQL::Test::Cluster->new('whole');
$whole->init_from_backup($node, 'lost', has_streaming => 1);
$whole->append_conf('postgresql.conf', "mot.ignore_damaged = off\n");
$whole->start;
$whole->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") or die 'not loaded';
my $stored = 'SELECT count(*) FROM mot_stat_get_tables()';
my $there = $whole->safe_psql('postgres', $stored);
$node->stop('immediate');
for my $file (map { glob($node->data_dir . "/mot/*/*.$_.0") } @files)
{
	open(my $fh, '+>:raw', $file) or die "$file: $!";
	close $fh;
}
$node->append_conf('postgresql.conf', "mot.ignore_damaged = on\n");
$node->start;
is(damaged_tables(), 5, 'five tables are lost on a primary');
query('CHECKPOINT; INSERT INTO beside VALUES (12); CHECKPOINT');
is(starts('off'), 'ready', '... and not known to have been there, after another start');
like(error_of('SELECT * FROM lost_1'), qr/55000/, '... have no storage');
query('BEGIN; DROP TABLE lost_1; ROLLBACK; BEGIN; SAVEPOINT a; DROP TABLE lost_1; TRUNCATE lost_2; ROLLBACK TO a; COMMIT');
$node->wait_for_catchup($whole, 'replay');
is($whole->safe_psql('postgres', "$stored; SELECT * FROM lost_1, lost_2"), "$there\n1|1", 'a standby has them');
query('DROP TABLE lost_1; TRUNCATE lost_2; DROP FOREIGN TABLE lost_3; DROP MATERIALIZED VIEW lost_4; INSERT INTO lost_2 VALUES (2)');
$node->wait_for_catchup($whole, 'replay');
is($whole->safe_psql('postgres', "$stored; SELECT * FROM lost_2, lost_5"), ($there - 3) . "\n2|1", '... until they are dropped, or emptied');
is(starts('off'), 'ready', '... which recovery understands');
is(query('SELECT * FROM lost_2'), 2, '... with what has come since');
query('DROP TABLE lost_2, lost_5; DELETE FROM beside WHERE v IN (12)');
$node->wait_for_catchup($whole, 'replay');
is($whole->safe_psql('postgres', $stored), $there - 5, '... and nothing of them is left');
$whole->stop;

# ------------------------------------------------------------------------------------------ many

my $MANY = 1030;
query("DO \$\$ BEGIN FOR i IN 1 .. $MANY LOOP EXECUTE format('CREATE TABLE many_%s (v int) USING mot', i); END LOOP; END \$\$");
query("DO \$\$ BEGIN FOR i IN 1 .. $MANY LOOP EXECUTE format('ALTER TABLE many_%s ADD PRIMARY KEY (v)', i); EXECUTE format('INSERT INTO many_%s VALUES (1)', i); END LOOP; END \$\$");
query('CHECKPOINT');
query("SELECT count(damage(('many_' || i)::regclass)) FROM generate_series(1, $MANY) i");
is(starts('on'), 'ready', 'ignored in many tables');
query(q{CREATE FUNCTION is_served(name text) RETURNS bool LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE 'SELECT FROM ' || name;
		RETURN true;
	EXCEPTION WHEN data_corrupted OR object_not_in_prerequisite_state THEN
		RETURN false;
	END $$});
for my $ignoring ('on', 'off')
{
	is(query("SELECT count(*) FROM generate_series(1, $MANY) i WHERE is_served('many_' || i)"), 0, "... none is served, $ignoring");
	is(query('SELECT count(*) FROM beside'), 3009, '... the others are');
	query('CHECKPOINT');
	is(starts('off'), 'ready', '... nor after the next start') if $ignoring eq 'on';
}
query('TRUNCATE many_1030; INSERT INTO many_1030 VALUES (2)');
is(starts('off'), 'ready', 'without the setting');
is(query('SELECT * FROM many_1030'), 2, '... one that was emptied is there');

$node->stop;
done_testing();
