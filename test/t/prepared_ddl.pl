# Tables that a prepared transaction has made, emptied or dropped: across crashes, checkpoints,
# restarts, promotion, and at any step, in tables of all kinds.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../prepared";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prepared;
use Test::More;
use Time::HiRes qw(usleep);

my $node = make_node('ddl');

# the same for all three; % is the kind, and "of %" what follows a table's columns
sub each_kind
{
	my ($sql) = @_;
	return join ';', map {
		my $s = $sql =~ s/\bof %/{ o => 'USING mot', f => 'SERVER mot_server', h => '' }->{$_}/ger;
		$s =~ s/(CREATE|DROP) TABLE/$1 FOREIGN TABLE/g if $_ eq 'f';
		$s =~ s/%/$_/gr
	} qw(o f h);
}

sub make
{
	sql(each_kind(q{
		CREATE TABLE a_% (id int PRIMARY KEY, v int, t text) of %; CREATE INDEX a_%_v ON a_% (v);
		CREATE TABLE k_% (id int, v int, t text) of %;
		CREATE TABLE r_% (id int PRIMARY KEY, v int, t text) of %;
		CREATE TABLE d_% (id int PRIMARY KEY, v int, t text) of %;
		CREATE TABLE c_% (id int PRIMARY KEY, v int, t text) of %; CREATE INDEX c_%_v ON c_% (v);
		CREATE TABLE m_% (id int PRIMARY KEY, v int, t text) of %;
		INSERT INTO a_% SELECT i, i, repeat('a', 50) FROM generate_series(1, 200) i;
		INSERT INTO k_% SELECT i, mod(i, 3), 'same' FROM generate_series(1, 30) i;
		INSERT INTO r_% SELECT i, i, 'r' FROM generate_series(1, 30) i;
		INSERT INTO d_% SELECT i, i, 'd' FROM generate_series(1, 30) i;
		INSERT INTO c_% SELECT i, i, 'c' FROM generate_series(1, 30) i;
		INSERT INTO m_% SELECT i, i, 'm' FROM generate_series(1, 30) i
	}));
	return;
}

sub unmake { return sql('SET client_min_messages = error;' . each_kind(join ';', map { "DROP TABLE IF EXISTS ${_}_%" } qw(a k r d n c m))) }

# what there is, for each kind; all alike
sub state
{
	my ($name) = @_;
	my %is = (o => '', f => '', h => '');
	my @tables = split /\n/, sql("SELECT relname FROM pg_class WHERE relname ~ '^[akrdncm]_[ofh]\$' ORDER BY 1");
	for (split /\n/, sql(join ' UNION ALL ', map { "SELECT '$_' || count(*) || md5(coalesce(string_agg(id || ' ' || v || t, ',' ORDER BY id), '')) FROM $_" } @tables))
	{
		/^(.)_(.)(.*)/;
		$is{$2} .= " $1 $3";
	}
	ok($is{o} eq $is{f} && $is{f} eq $is{h}, "$name: all agree") or diag(join "\n", map { "$_: $is{$_}" } sort keys %is);
	is(sql("SELECT coalesce(sum(problems), 0) FROM (SELECT (mot_verify(c.oid)).problems FROM pg_class c LEFT JOIN pg_am a ON a.oid = relam WHERE relname ~ '^[akrdncm]_[ofh]\$' AND (relkind = 'f' OR amname = 'mot')) x"), '0', '... and nothing is missing');
	return $is{o};
}

my $work = each_kind(q{
	INSERT INTO a_% VALUES (1001, 1, 'before'); UPDATE a_% SET v = v + 1 WHERE id < 5;
	TRUNCATE a_%; INSERT INTO a_% SELECT i, i + 5, 'new' FROM generate_series(1, 20) i; DELETE FROM a_% WHERE id = 3; UPDATE a_% SET id = 30 WHERE id = 4;
	TRUNCATE k_%; INSERT INTO k_% VALUES (1, 1, 'x'), (1, 1, 'x'); TRUNCATE k_%; INSERT INTO k_% VALUES (2, 2, 'y'), (2, 2, 'y');
	SAVEPOINT s; TRUNCATE r_%; INSERT INTO r_% VALUES (1, 0, 'undone'); ROLLBACK TO s;
	UPDATE r_% SET v = v + 100 WHERE id <= 3; DELETE FROM r_% WHERE id = 4;
	CREATE TABLE n_% (id int PRIMARY KEY, v int, t text) of %; INSERT INTO n_% SELECT i, i, 'n' FROM generate_series(1, 40) i; CREATE INDEX n_%_v ON n_% (v);
	DROP TABLE d_%
}) . q{;
	INSERT INTO c_o VALUES (100, 100, 'own'); ALTER TABLE c_o ALTER v TYPE bigint; UPDATE c_o SET v = v + 1 WHERE id < 3;
	INSERT INTO c_f VALUES (100, 100, 'own'); UPDATE c_f SET v = v + 1 WHERE id < 3;
	INSERT INTO c_h VALUES (100, 100, 'own'); ALTER TABLE c_h ALTER v TYPE bigint; UPDATE c_h SET v = v + 1 WHERE id < 3;
	ALTER TABLE m_o SET ACCESS METHOD heap; ALTER TABLE m_h SET ACCESS METHOD mot;
	UPDATE m_o SET v = 0 WHERE id = 5; UPDATE m_f SET v = 0 WHERE id = 5; UPDATE m_h SET v = 0 WHERE id = 5
};

sub check_prepared
{
	my ($when) = @_;
	is(prepared(), '1', "$when: it is prepared");
	my $locked = sql(q{SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_locks l JOIN pg_class c ON c.oid = relation WHERE pid IS NULL AND mode = 'AccessExclusiveLock' AND relname ~ '^._[ofh]$'});
	is($locked, 'a_f a_h a_o c_h c_o d_f d_h d_o k_f k_h k_o m_h m_o', '... tables are locked');
	fails("SET lock_timeout = '50ms'; SELECT 1 FROM a_o", qr/canceling statement due to lock timeout/, '... against readers');
	is(sql('SELECT ' . join ',', map { "(SELECT count(*) FROM (SELECT 1 FROM r_$_ FOR UPDATE SKIP LOCKED) x)" } qw(o f h)), '26|26|26', '... and rows of others');
	is(sql("SELECT count(*) FROM pg_class WHERE relname ~ '^[nd]_[ofh]\$'"), '3', '... what it has made is not seen, nor what it has dropped gone');
	# (who looks for tables that no catalogue knows)
	is(sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'mot catalogue check' AND wait_event_type = 'Lock'"), '0', '... and no worker waits for its end');
	return;
}

# "ddl" is ended, and between the server's end of it and ours another session does something, which
# may have to wait; before: what that has done before; look: what is looked at meanwhile
sub meanwhile
{
	my ($end, $before, $sql, $look) = @_;
	unlink $node->data_dir . '/mot.fault.go';
	my ($ender, $other) = map { $node->background_psql('postgres') } 1 .. 2;
	$other->query_safe($before) if $before;
	$ender->query_safe("SET mot.fault = 'prepared-decided:wait'");
	my $from = -s $node->logfile;
	$ender->query_until(qr/started/, "\\echo started\n$end PREPARED 'ddl';\n");
	$node->wait_for_log(qr/fault point "prepared-decided" reached/, $from);
	my $seen = $other->query_until(qr/started\n/, "\\echo started\n" . join('', map { "$_;\n" } split /;\s*/, $sql));
	usleep(300_000);
	$look->() if $look;
	append_to_file($node->data_dir . '/mot.fault.go', '');
	$ender->query_safe('SELECT 1');
	$seen .= $other->query_safe("\\echo ended");
	$_->quit for $ender, $other;
	unlink $node->data_dir . '/mot.fault.go';
	$seen =~ s/^started\n|\n?ended$//g;
	return $seen;
}

# ------------------------------------------------------- from one end to another

for my $end ('ROLLBACK', 'COMMIT')
{
	for my $between ('nothing', 'a crash', ($end eq 'COMMIT' ? 'a checkpoint and more' : ()))
	{
		my $name = "$end after $between";
		make();
		my $was = state($name);
		sql("BEGIN; $work; PREPARE TRANSACTION 'ddl'");
		check_prepared($name) if $between eq 'nothing';
		if ($between ne 'nothing')
		{
			sql('CHECKPOINT') if $between =~ /checkpoint/;
			$node->stop('immediate');
			$node->start;
			check_prepared("$name, crashed");
			# who writes has it made again
			sql('CREATE TABLE other (i int) USING mot; INSERT INTO other VALUES (1); DROP TABLE other');
			check_prepared("$name, made again");
		}
		if ($between =~ /more/)
		{
			sql('CHECKPOINT');
			$node->restart;
			check_prepared("$name, restarted");
		}
		sql("$end PREPARED 'ddl'");
		my $is = state("$name, ended");
		is($is eq $was ? 'ROLLBACK' : 'COMMIT', $end, '... it is what was asked for');
		sql(each_kind(q{INSERT INTO a_% VALUES (2000, 1, 'later'); INSERT INTO k_% VALUES (3, 3, 'later'); UPDATE r_% SET v = v + 1; UPDATE c_% SET v = v + 1; UPDATE m_% SET v = v + 1 WHERE id > 5}) . ($end eq 'COMMIT' ? ';' . each_kind(q{UPDATE n_% SET v = v + 1; DELETE FROM n_% WHERE v = 20}) : ''));
		$is = state("$name, changed");
		$node->stop('immediate');
		$node->start;
		is(state("$name, after another crash"), $is, '... so it stays');
		unmake();
	}
}
ok($node->poll_query_until('postgres', 'SELECT retired_objects = 0 FROM mot_stat_memory'), 'nothing is owed');
is(sql('SELECT count(*) FROM mot_stat_tables'), '0', '... and no table left');

# ---------------------------------------------------------------------- refusals

make();
for ('ALTER TABLE a_o ADD COLUMN x int', 'ALTER FOREIGN TABLE a_f ALTER v TYPE bigint', 'CREATE INDEX ON a_o (t)', 'CREATE INDEX ON a_f (t)', 'DROP INDEX a_o_v', 'CLUSTER a_o USING a_o_v',
	'ALTER FOREIGN TABLE a_f ADD COLUMN x int', 'TRUNCATE a_o; CREATE INDEX ON r_o (v)')
{
	fails("BEGIN; $_; PREPARE TRANSACTION 'no'", qr/ERROR:  cannot PREPARE a transaction that has altered, or made indexes of, memory-optimized tables/, "refused: $_");
}
fails("BEGIN ISOLATION LEVEL SERIALIZABLE; TRUNCATE a_o; PREPARE TRANSACTION 'no'", qr/ERROR:  cannot PREPARE a SERIALIZABLE transaction that has created, altered, emptied or dropped memory-optimized tables/, 'refused: at SERIALIZABLE');
is(prepared(), '0', 'none of them is prepared');
my $was = state('refused');

# nothing but TRUNCATE; who has known the tables before, and who has an older snapshot
my $knows = $node->background_psql('postgres');
my $older = $node->background_psql('postgres');
my $counts = 'SELECT ' . join ' || $$ $$ || ', map { "(SELECT count(*) FROM k_$_)" } qw(o f h);
$knows->query_safe("PREPARE p AS $counts;" . 'EXECUTE p;' x 5);
for my $end ('ROLLBACK', 'COMMIT')
{
	is($knows->query_safe('EXECUTE p'), '30 30 30', "$end, TRUNCATE only: before");
	$older->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM r_o, r_h LIMIT 1');
	$knows->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; TRUNCATE k_o, k_f, k_h; EXECUTE p; PREPARE TRANSACTION 'ddl'");
	sql("$end PREPARED 'ddl'");
	my $n = $end eq 'COMMIT' ? 0 : 30;
	is($knows->query_safe('EXECUTE p'), "$n $n $n", '... who has known them sees what is');
	is($older->query_safe("$counts; COMMIT"), "$n $n $n", '... who has an older snapshot what heap shows');
}
$_->quit for $knows, $older;
isnt(state('TRUNCATE only'), $was, 'TRUNCATE only, committed');
unmake();

# ------------------------------------------------------------------- at any step

SKIP:
{
	skip 'not a build with fault points', 1 unless $ENV{MOT_FAULT_POINTS};

	for my $case (['PREPARE', qw(prepare-logged prepare-decided)], ['COMMIT', qw(prepared-claimed prepared-decided prepared-installed ddl-settled prepared-left)], ['ROLLBACK', qw(prepared-decided prepared-undone)])
	{
		my ($end, @points) = @$case;
		for my $point (@points)
		{
			my $name = "$end, killed at $point";
			make();
			my $was = state("before $name");
			sql("BEGIN; $work; PREPARE TRANSACTION 'ddl'") if $end ne 'PREPARE';
			with_fault("$point:killall", $end eq 'PREPARE' ? "BEGIN; $work; PREPARE TRANSACTION 'ddl'" : "$end PREPARED 'ddl'");
			wait_death();
			$node->start;
			my $there = $point =~ /claimed|prepare-decided/ ? 1 : 0;
			is(prepared(), $there, "$name: it is " . ($there ? 'prepared' : 'not prepared, or not any more'));
			sql("COMMIT PREPARED 'ddl'") if $there;
			is(state($name) eq $was ? 'ROLLBACK' : 'COMMIT', $end eq 'ROLLBACK' || $point eq 'prepare-logged' ? 'ROLLBACK' : 'COMMIT', "$name: all or nothing");
			unmake();
		}
	}

	# an error before it is prepared leaves nothing
	make();
	my $before = state('before an error');
	with_fault('prepare-logged:error', "BEGIN; $work; PREPARE TRANSACTION 'ddl'");
	is(state('an error'), $before, 'an error takes it back');

	# the server has let go of its locks, and its storage is not in place yet
	for my $end ('COMMIT', 'ROLLBACK')
	{
		for my $next ('SELECT count(*) FROM a_%; SELECT count(*) FROM k_%', 'TRUNCATE a_%; INSERT INTO a_% VALUES (77, 7, \'x\')', 'DROP TABLE a_%')
		{
			sql("BEGIN; $work; PREPARE TRANSACTION 'ddl'");
			my $seen = meanwhile($end, '', each_kind($next));
			if ($next =~ /SELECT/)
			{
				my @n = split /\n/, $seen;
				is("@n[0 .. 5]", "@n[4, 5, 4, 5, 4, 5]", "$end, read meanwhile: as heap");
			}
			state("$end, then $next");
			unmake();
			make();
		}
	}

	# ... likewise, but nobody who takes a snapshot waits for that
	my $older = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM r_o, r_h LIMIT 1';
	for my $end ('COMMIT', 'ROLLBACK')
	{
		my $n = $end eq 'COMMIT' ? 0 : 30;
		sql(each_kind("BEGIN; TRUNCATE k_%; INSERT INTO k_% VALUES (1, 1, 'unseen')") . "; PREPARE TRANSACTION 'ddl'");
		my $seen = meanwhile($end, $older, each_kind(q{SELECT count(*) FROM k_%; INSERT INTO k_% VALUES (500, 5, 'of an older one')}) . '; COMMIT');
		is($seen, "$n\n$n\n$n", "$end, read with an older snapshot: as heap");
		$node->stop('immediate');
		$node->start;
		is(sql("SELECT count(*) FROM k_o WHERE id = 500 UNION ALL SELECT count(*) FROM k_f WHERE id = 500"), "1\n1", '... what was inserted then is there after a crash');
		state("$end, an older snapshot");
		unmake();
		make();
	}

	# an index is taken away from what is settled
	sql("BEGIN; DROP INDEX a_o_v; TRUNCATE a_o; PREPARE TRANSACTION 'ddl'");
	meanwhile('ROLLBACK', $older, "INSERT INTO a_o VALUES (1001, 1001, 'x'); COMMIT");
	sql("INSERT INTO a_f VALUES (1001, 1001, 'x'); INSERT INTO a_h VALUES (1001, 1001, 'x')");
	is(sql('SET enable_seqscan = off; SELECT id FROM a_o WHERE v > 1000'), '1001', 'ROLLBACK, an index put back has what was inserted meanwhile');
	state('ROLLBACK, an index put back');

	# another prepared transaction's end must not come first
	sql("BEGIN; TRUNCATE k_o; INSERT INTO k_o VALUES (1, 1, 'gone'); PREPARE TRANSACTION 'ddl'");
	my $waited = meanwhile('COMMIT', 'BEGIN; UPDATE r_o SET v = 0 WHERE id = 1', q{DROP TABLE k_o; PREPARE TRANSACTION 'next'; SELECT 'there'}, sub {
			is(prepared(), '0', 'who drops what it has made is prepared after its end') });
	is($waited, 'there', '... and is prepared then');
	sql("COMMIT PREPARED 'next'; UPDATE r_f SET v = 0 WHERE id = 1; UPDATE r_h SET v = 0 WHERE id = 1; DROP FOREIGN TABLE k_f; DROP TABLE k_h");
	state('dropped by another');
	unlink $node->data_dir . '/mot.fault.go';
	unmake();
}

# ---------------------------------------------------------------------- promotion

make();
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
my $primary = $node;
sql("BEGIN; TRUNCATE d_o, d_f, d_h; PREPARE TRANSACTION 'first'");
sql("COMMIT PREPARED 'first'");
$was = state('primary');
sql("BEGIN; $work; PREPARE TRANSACTION 'ddl'");
$node->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
$standby->promote;
$node = use_node($standby);
check_prepared('promoted');
sql("COMMIT PREPARED 'ddl'");
isnt(state('promoted'), $was, 'promoted: committed there');
my $is = state('promoted');
$node->stop('immediate');
$node->start;
is(state('promoted, crashed'), $is, '... so it stays');
$node->stop;
done_testing();
