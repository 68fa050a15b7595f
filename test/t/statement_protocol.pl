# The extended protocol on statements that run without the executor, and that
# are machine code: portals fetched in pieces, several of one statement, binary
# results, errors in the middle of a pipeline, cancel requests.  A heap table
# says what a client has to get (by the same plans).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Protocol;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('protocol');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
shared_preload_libraries = 'mot'
mot.max_memory = '64MB'
plan_cache_mode = force_generic_plan
mot.jit_prepare_above_executions = 0
jit = off
enable_hashjoin = off
enable_mergejoin = off
enable_material = off
enable_sort = off
enable_seqscan = off
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE mot_t (id int PRIMARY KEY, v int NOT NULL, t text) SERVER mot_server;
	CREATE TABLE heap_t (id int PRIMARY KEY, v int NOT NULL, t text);
	INSERT INTO mot_t SELECT i, i * 10, 'row ' || i FROM generate_series(1, 20) i;
	INSERT INTO heap_t SELECT * FROM mot_t ORDER BY id;
	CREATE DOMAIN small AS int CHECK (VALUE < 100);
	CREATE TYPE mood AS ENUM ('calm', 'cross');
	CREATE TYPE pair AS (a int, b text);
	CREATE TABLE heap_types (id int PRIMARY KEY, i2 int2, i8 int8, b bool, n numeric, f4 float4, f8 float8, c char(7), vc varchar(9),
		ch "char", na name, d date, ts timestamp, tz timestamptz, iv interval, u uuid, by bytea, j jsonb, o oid, bits varbit, long text);
	INSERT INTO heap_types VALUES
		(1, -32768, -9223372036854775808, false, 'NaN', '-Infinity', 1e-300, 'ab', '', 'x', 'name', '-infinity', '2026-11-21 1:2:3.4',
			'2026-11-21 1:2:3.4+05', '-1 year 3 days', '7d444840-9dc0-11d1-b245-5ffdce74fad2', '\x00ff', '{"a": [1, null]}', 4294967295, '1010', repeat('e', 100000)),
		(2, 32767, 9223372036854775807, true, -0.00012300, 0.1, 0.1, '', E'\u00e4\u00f6', '', '', '4713-01-01 BC', 'infinity',
			'1900-01-01', '0', '00000000-0000-0000-0000-000000000000', '', '"x"', 0, '', E'\u00fcber');
	INSERT INTO heap_types (id) VALUES (2147483647), (-2147483648);
	INSERT INTO heap_types (id, i2, i8, n, vc) SELECT i, i, i::int8 * i * 1000000, i / 7.0, 'v' || i FROM generate_series(10, 60) i;
	CREATE FOREIGN TABLE mot_types (LIKE heap_types) SERVER mot_server;
	ALTER FOREIGN TABLE mot_types ADD PRIMARY KEY (id);
	INSERT INTO mot_types SELECT * FROM heap_types;
	CREATE TABLE heap_made (id int PRIMARY KEY, s small, m mood, a int[], p pair);
	INSERT INTO heap_made VALUES (1, 5, 'cross', '{1,NULL}', '(1,x)'), (2, NULL, NULL, NULL, NULL);
	CREATE FOREIGN TABLE mot_made (LIKE heap_made) SERVER mot_server;
	ALTER FOREIGN TABLE mot_made ADD PRIMARY KEY (id);
	INSERT INTO mot_made SELECT * FROM heap_made;
});

# ------------------------------------------------------------- conversations

sub prepare_all
{
	my ($c, $table) = @_;
	parse($c, 'range', "SELECT id, v * 2, t FROM $table WHERE id >= \$1::int4 AND v % 20 = 0 ORDER BY id");
	parse($c, 'whole', "SELECT * FROM $table WHERE id = \$1::int4");
	parse($c, 'pair', "SELECT a.id, b.v FROM $table a JOIN $table b ON b.id = a.id + 1 WHERE a.id > \$1::int4 ORDER BY a.id");
	parse($c, 'fails', "SELECT 100 / (v - 120) FROM $table WHERE id > \$1::int4 ORDER BY id");
	parse($c, 'sums', "SELECT sum(v), count(*), avg(v) FROM $table WHERE id < \$1::int4");
	parse($c, 'change', "UPDATE $table SET v = v + \$2::int4 WHERE id <= \$1::int4");
	parse($c, 'returns', "UPDATE $table SET t = t || '!' WHERE id < \$1::int4 RETURNING id, t");
	parse($c, 'adds', "INSERT INTO $table VALUES (\$1::int4, 1, 'new') RETURNING id");
	(my $types = $table) =~ s/_t/_types/;
	(my $made = $table) =~ s/_t/_made/;
	parse($c, 'types', "SELECT * FROM $types WHERE id <= \$1::int4 ORDER BY id");
	parse($c, 'few', "SELECT i8, i2, id, vc, n FROM $types WHERE id >= \$1::int4 ORDER BY id");
	parse($c, 'none', "SELECT FROM $types WHERE id < \$1::int4 ORDER BY id");
	parse($c, 'made', "SELECT * FROM $made WHERE id <= \$1::int4 ORDER BY id");
	parse($c, 'locks', "SELECT id FROM $table WHERE id > \$1::int4 ORDER BY id LIMIT 4 FOR UPDATE");
	sync_it($c);
	return;
}

my %conversations = (
	'everything at once' => sub {
		my ($c) = @_;
		for (1 .. 3)
		{
			bind_portal($c, '', 'range', 0, 15); describe($c, 'P', ''); execute($c, ''); sync_it($c);
			bind_portal($c, '', 'whole', 1, 3); execute($c, ''); sync_it($c);
			bind_portal($c, '', 'whole', 0, undef); execute($c, ''); sync_it($c);
			bind_portal($c, '', 'sums', 1, 10); execute($c, ''); sync_it($c);
		}
	},
	'in pieces, and once more after the end' => sub {
		my ($c) = @_;
		for my $rows (1, 2, 3, 5, 6)
		{
			bind_portal($c, 'p', 'range', 0, 9); execute($c, 'p', $rows); execute($c, 'p', $rows); execute($c, 'p', 100);
			execute($c, 'p', 1); close_it($c, 'P', 'p'); sync_it($c);
		}
	},
	'portals of one statement, in turns' => sub {
		my ($c) = @_;
		simple($c, 'BEGIN');
		bind_portal($c, 'a', 'pair', 0, 14); bind_portal($c, 'b', 'pair', 0, 15); bind_portal($c, 'c', 'range', 0, 0); sync_it($c);
		for (1 .. 3)
		{
			execute($c, 'a', 2); execute($c, 'b', 1); execute($c, 'c', 3); sync_it($c);
		}
		close_it($c, 'P', 'a'); bind_portal($c, 'a', 'pair', 0, 17); execute($c, 'a', 1); sync_it($c);
		execute($c, 'b', 0); execute($c, 'a', 0); sync_it($c);
		simple($c, 'COMMIT');
		execute($c, 'c', 1); sync_it($c);
	},
	'changes while a portal is open' => sub {
		my ($c) = @_;
		simple($c, 'BEGIN');
		bind_portal($c, 'a', 'range', 0, 1); execute($c, 'a', 2); sync_it($c);
		bind_portal($c, '', 'change', 0, 20, 20); execute($c, ''); sync_it($c);
		execute($c, 'a', 2); bind_portal($c, '', 'whole', 0, 6); execute($c, ''); execute($c, 'a'); sync_it($c);
		bind_portal($c, 'l', 'locks', 0, 15); execute($c, 'l', 2); execute($c, 'l', 0); sync_it($c);
		simple($c, 'ROLLBACK');
		bind_portal($c, '', 'whole', 0, 6); execute($c, ''); sync_it($c);
	},
	'an error ends the pipeline, not the statement' => sub {
		my ($c) = @_;
		for (1 .. 2)
		{
			bind_portal($c, '', 'fails', 0, 12); execute($c, '', 2);
			bind_portal($c, '', 'fails', 0, 9); execute($c, '', 2); execute($c, '', 2); execute($c, '', 2);
			bind_portal($c, '', 'change', 0, 20, 1); execute($c, ''); sync_it($c);
			bind_portal($c, '', 'adds', 0, 3); execute($c, ''); sync_it($c);
			bind_portal($c, '', 'change', 0, 1, 2147483647); execute($c, ''); sync_it($c);
			bind_portal($c, '', 'range', 0, 'x'); execute($c, ''); sync_it($c);
			bind_portal($c, '', 'range', 0, 18); execute($c, ''); sync_it($c);
		}
	},
	'columns of many types, as text and binary' => sub {
		my ($c) = @_;
		for my $format (0, 1, [ map { $_ % 2 } 1 .. 21 ], 1, 0)
		{
			bind_portal($c, '', 'types', $format, 2); execute($c, ''); sync_it($c);
			bind_portal($c, '', 'types', $format, 2147483647); execute($c, '', 5); execute($c, '', 70); sync_it($c);
		}
		for my $format (0, [ 1, 0, 1, 0, 1 ], [ 0, 1, 0, 1, 0 ], 1)
		{
			bind_portal($c, '', 'few', $format, -2147483648); execute($c, ''); sync_it($c);
		}
		bind_portal($c, '', 'none', 0, 12); execute($c, ''); sync_it($c);
		bind_portal($c, '', 'made', $_, 2), execute($c, ''), sync_it($c) for 0, 1;
	},
	'a format there is not, for one row and for none' => sub {
		my ($c) = @_;
		bind_portal($c, '', 'whole', $_, 3), execute($c, ''), sync_it($c) for 2, [ 0, 1, 7 ], 0, [ 0, 1 ], 1;
		bind_portal($c, '', 'whole', 2, 300); execute($c, ''); sync_it($c);
	},
	'another encoding, other styles' => sub {
		my ($c) = @_;
		for my $set ("client_encoding = 'LATIN1'", "datestyle = 'German, DMY'", "bytea_output = 'escape'", 'extra_float_digits = -3', "timezone = 'Asia/Tokyo'")
		{
			simple($c, "SET $set");
			bind_portal($c, '', 'types', $_, 2), execute($c, ''), sync_it($c) for 0, 1;
		}
		simple($c, "SET client_encoding = 'SJIS'");
		bind_portal($c, '', 'types', 0, 1), execute($c, ''), sync_it($c);
		bind_portal($c, '', 'types', 0, 2), execute($c, ''), sync_it($c);
		simple($c, "UPDATE " . $c->{types} . " SET vc = E'\\u1234' WHERE id = 1");
		simple($c, "SET client_encoding = 'LATIN1'");
		bind_portal($c, '', 'types', 0, 2), execute($c, ''), sync_it($c);
		simple($c, "UPDATE " . $c->{types} . " SET vc = '' WHERE id = 1");
		bind_portal($c, '', 'types', 0, 2), execute($c, ''), sync_it($c);
	},
	'pieces of what a change returns' => sub {
		my ($c) = @_;
		simple($c, 'BEGIN');
		bind_portal($c, 'r', 'returns', 0, 5); execute($c, 'r', 1); execute($c, 'r', 2); sync_it($c);
		bind_portal($c, '', 'whole', 0, 4); execute($c, ''); execute($c, 'r', 0); sync_it($c);
		bind_portal($c, '', 'adds', 0, 77); execute($c, '', 1); sync_it($c);
		simple($c, 'ROLLBACK');
	},
	'large rows of several portals, in turns' => sub {
		my ($c) = @_;
		simple($c, 'BEGIN');
		bind_portal($c, 'a', 'types', 0, 60); bind_portal($c, 'b', 'types', 1, 60); bind_portal($c, 'c', 'few', [ 0, 1, 0, 1, 1 ], 0);
		for my $rows (2, 1, 3, 0)
		{
			execute($c, 'a', $rows); execute($c, 'c', 1); execute($c, 'b', $rows); execute($c, 'c', $rows); sync_it($c);
		}
		simple($c, 'COMMIT');
	},
	'settings and definitions change between pieces' => sub {
		my ($c) = @_;
		simple($c, 'BEGIN');
		bind_portal($c, 'a', 'types', 0, 60); bind_portal($c, 'b', 'range', 0, 0); execute($c, 'a', 2); execute($c, 'b', 1); sync_it($c);
		for my $set ("client_encoding = 'LATIN1'", "datestyle = 'German, DMY'", "bytea_output = 'escape'", 'extra_float_digits = -3', "timezone = 'Asia/Tokyo'")
		{
			simple($c, "SET $set");
			execute($c, 'a', 1); bind_portal($c, '', 'types', 0, 2); execute($c, ''); sync_it($c);
		}
		$node->safe_psql('postgres', 'CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$SELECT 1$$; DROP FUNCTION f(); ANALYZE heap_t, mot_t');
		bind_portal($c, '', 'range', 0, 15); execute($c, ''); execute($c, 'b', 2); sync_it($c);
		simple($c, 'SAVEPOINT s');
		execute($c, 'b', 1); bind_portal($c, '', 'fails', 0, 0); execute($c, ''); sync_it($c);
		simple($c, 'ROLLBACK TO s');
		execute($c, 'a', 3); execute($c, 'a', 0); sync_it($c);
		execute($c, 'b', 1); sync_it($c);
		simple($c, 'ROLLBACK');
	},
	'a pipeline of many' => sub {
		my ($c) = @_;
		for my $i (1 .. 30)
		{
			bind_portal($c, '', 'change', 0, $i % 5, 1); execute($c, '');
			bind_portal($c, '', 'whole', 0, $i); describe($c, 'P', ''); execute($c, '');
		}
		sync_it($c);
	});

for my $name (sort keys %conversations)
{
	my %heard;
	for my $kind ('heap', 'executor', 'tier 1', 'machine code')
	{
		my $table = $kind eq 'heap' ? 'heap_t' : 'mot_t';
		my $c = connect_raw($node, 'mot.jit' => $kind eq 'executor' ? 'off' : 'on',
			'mot.jit_above_executions' => $kind eq 'machine code' ? 0 : -1);
		$node->safe_psql('postgres', "UPDATE $table SET v = id * 10, t = 'row ' || id");
		$c->{types} = $table =~ s/_t/_types/r;
		prepare_all($c, $table);
		$conversations{$name}->($c);
		$heard{$kind} = $c->{transcript} =~ s/(heap|mot)_(types|t)/table/gr;
		$c->{socket}->close;
	}
	is($heard{$_}, $heard{heap}, "$name: $_") for 'executor', 'tier 1', 'machine code';
	like($heard{heap}, qr/^D /m, "$name: there are rows");
}

# --------------------------------------------------------------- cancellation

$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE many (id int PRIMARY KEY, v int, t text) SERVER mot_server;
	INSERT INTO many SELECT i, i, repeat('0123456789', 40) FROM generate_series(1, 20000) i;
	ANALYZE many;
});

sub begin_execution
{
	my ($c, $name, @values) = @_;
	$c->{transcript} = '';
	bind_portal($c, '', $name, 0, @values);
	execute($c, '');
	message($c, 'S', '');
	flush_out($c);
	return;
}

my $c = connect_raw($node, 'mot.jit_above_executions' => 0);
parse($c, 'long', 'SELECT count(*) FROM many a, many b WHERE a.v + b.v < $1::int4');
parse($c, 'tier', "SELECT max(tier) FROM mot_stat_jit WHERE query ~ 'FROM many a'");
parse($c, 'rows', 'SELECT id, t, id * 2 FROM many WHERE id > $1::int4 ORDER BY id');
parse($c, 'large', "SELECT id, repeat(t, \$1::int4), E'\\u1234' || repeat(t, \$1::int4) FROM many WHERE id > 19998 ORDER BY id");
parse($c, 'memory', q{
	SELECT name, total_bytes < 150000 FROM pg_backend_memory_contexts WHERE name = 'MOT rows sent'
	UNION ALL SELECT name, total_bytes - $1::int8 < 150000 FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext'});
parse($c, 'top', "SELECT total_bytes FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext'");
sync_it($c);
for (1 .. 2)
{
	begin_execution($c, 'long', 0);
	$node->poll_query_until('postgres', "SELECT state = 'active' FROM pg_stat_activity WHERE pid = $c->{pid}");
	cancel($c);
	until_ready($c);
	like($c->{transcript}, qr/^E 57014 canceling statement due to user request$/m, 'a cancel request reaches a loop of machine code');
}
$c->{transcript} = '';
bind_portal($c, '', 'tier', 0);
execute($c, '');
sync_it($c);
like($c->{transcript}, qr/^C SELECT 1$/m, 'and the session goes on');

# The client does not read, so that the server cannot go on sending.  Whole
# messages have come when it does: the first so many rows, and the error.
sub stopped_rows
{
	my ($c, $error, $what) = @_;
	my @lines = split(/\n/, $c->{transcript});
	my $t = '0123456789' x 40;
	my ($n, $wrong) = (0, '');

	is(shift @lines, '2', "$what: bound");
	while (@lines && $lines[0] =~ /^D/)
	{
		my $line = shift @lines;
		$n++;
		$wrong ||= $line if $line ne "D $n $t " . 2 * $n;
	}
	is($wrong, '', "$what: rows are whole, and in order");
	cmp_ok($n, '<', 20000, "$what: not all of them");
	like(join("\n", @lines), qr/^E $error.*\nZ I$/, "$what: then the error, and nothing else");
	return;
}

my $blocked = 'SELECT wait_event = \'ClientWrite\' FROM pg_stat_activity WHERE pid = ';
for my $execution (1 .. 2)
{
	begin_execution($c, 'rows', 0);
	ok($node->poll_query_until('postgres', $blocked . $c->{pid}), 'the server waits for its client');
	cancel($c);
	until_ready($c);
	stopped_rows($c, '57014 canceling statement due to user request', "cancelled among its rows, $execution");
	simple($c, "SET statement_timeout = '100ms'");
	begin_execution($c, 'rows', 0);
	$node->poll_query_until('postgres', "SELECT now() - query_start > interval '200ms' AND wait_event = 'ClientWrite' FROM pg_stat_activity WHERE pid = $c->{pid}");
	until_ready($c);
	stopped_rows($c, '57014 canceling statement due to statement timeout', "out of time among its rows, $execution");
	simple($c, 'SET statement_timeout = 0');
	$c->{transcript} = '';
	bind_portal($c, '', 'rows', 0, 19998);
	execute($c, '');
	sync_it($c);
	my $t = '0123456789' x 40;
	is($c->{transcript}, "2\nD 19999 $t 39998\nD 20000 $t 40000\nC SELECT 2\nZ I\n", 'and all rows come the next time');
}
is($node->safe_psql('postgres', "SELECT count(*) FROM mot_stat_snapshots WHERE pid = $c->{pid}"), '0', 'no snapshot is held');

# what an error leaves of a row goes with it
simple($c, "SET client_encoding = 'LATIN1'");
bind_portal($c, '', 'large', 0, 1); execute($c, ''); sync_it($c);
$c->{transcript} = '';
bind_portal($c, '', 'top', 0); execute($c, ''); sync_it($c);
my ($top) = $c->{transcript} =~ /^D (\d+)$/m;
$c->{transcript} = '';
bind_portal($c, '', 'large', 0, 10000); execute($c, ''); sync_it($c);
like($c->{transcript}, qr/^2\nE 22P05 .*\nZ I$/, 'a row that cannot be converted');
$c->{transcript} = '';
bind_portal($c, '', 'memory', 0, $top); execute($c, ''); sync_it($c);
is($c->{transcript}, "2\nD MOT rows sent t\nD TopMemoryContext t\nC SELECT 2\nZ I\n", 'leaves no memory');

# who is terminated then
begin_execution($c, 'rows', 0);
ok($node->poll_query_until('postgres', $blocked . $c->{pid}), 'the server waits for its client once more');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($c->{pid})");
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $c->{pid}"), 'and can be terminated');
is($node->safe_psql('postgres', "SELECT count(*) FROM mot_stat_snapshots WHERE pid = $c->{pid}"), '0', 'with its snapshot');
$c->{socket}->close;

# and who just goes away
$c = connect_raw($node, );
parse($c, 'rows', 'SELECT id, t, id * 2 FROM many WHERE id > $1::int4 ORDER BY id');
sync_it($c);
begin_execution($c, 'rows', 0);
$node->poll_query_until('postgres', $blocked . $c->{pid});
$c->{socket}->close;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $c->{pid}"), 'a client may leave among its rows');
is($node->safe_psql('postgres', "SELECT (SELECT count(*) FROM many), (SELECT count(*) FROM mot_stat_snapshots WHERE pid = $c->{pid})"), '20000|0', 'and nothing is left of it');

# COPY FREEZE that cannot be is refused before the client is asked for rows
$node->safe_psql('postgres', q{
	CREATE TABLE parts (id int, v int) PARTITION BY LIST (v);
	CREATE FOREIGN TABLE part PARTITION OF parts DEFAULT SERVER mot_server;
});
$c = connect_raw($node, );
for my $table ('mot_t', 'part', 'parts')
{
	my $type = '';
	$c->{transcript} = '';
	simple($c, 'BEGIN');
	message($c, 'Q', "COPY $table FROM STDIN (FREEZE)\0");
	flush_out($c);
	$type = one_message($c) while $type ne 'Z' && $type ne 'G';
	is($type, 'Z', "COPY $table FREEZE is refused at once");
	like($c->{transcript}, qr/^E (0A000|55000) cannot perform COPY FREEZE/m, 'and why');
	if ($type eq 'G')
	{
		message($c, 'f', "no rows\0");
		flush_out($c);
		until_ready($c);
	}
	simple($c, 'ROLLBACK');
}

# a pipeline goes on in the transaction of a REINDEX that gives keys anew: it sees and changes
# nothing that was committed while that waited
$node->safe_psql('postgres', q{
	CREATE TABLE ranked (id int PRIMARY KEY, a int[]) USING mot;
	CREATE INDEX ranked_a ON ranked (a);
	INSERT INTO ranked SELECT i, ARRAY[i] FROM generate_series(1, 5) i;
});
my $writer = connect_raw($node, );
$c = connect_raw($node, 'default_transaction_isolation' => 'repeatable read');
simple($writer, 'BEGIN');
simple($writer, 'UPDATE ranked SET a = ARRAY[9 - id] WHERE id < 3; INSERT INTO ranked VALUES (6, ARRAY[3, 3])');
$c->{transcript} = '';
for my $query ('REINDEX INDEX ranked_a', 'SELECT count(*) FROM ranked', 'UPDATE ranked SET a = a || 0 WHERE id = 1')
{
	parse($c, '', $query); bind_portal($c, '', '', 0); execute($c, '');
}
message($c, 'S', '');
flush_out($c);
ok($node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $c->{pid}"), 'REINDEX waits');
simple($writer, 'COMMIT');
until_ready($c);
is($c->{transcript}, "1\n2\nE 40001 could not serialize access due to concurrent update\nZ I\n", 'fails where more may follow it');
is($node->safe_psql('postgres', 'SELECT a FROM ranked WHERE id = 1'), '{8}', 'and nothing is lost');
$c->{transcript} = '';
parse($c, '', 'REINDEX INDEX ranked_a'); bind_portal($c, '', '', 0); execute($c, ''); sync_it($c);
is($c->{transcript}, "1\n2\nC REINDEX\nZ I\n", 'and is done when it is repeated');

# Nor does what else follows such a command, or CLUSTER or SET TABLESPACE, in its transaction, however
# that comes about.  Where nothing can, they are done.
$node->safe_psql('postgres', q{SET allow_in_place_tablespaces = on; CREATE TABLESPACE other LOCATION ''});
$node->safe_psql('postgres', q{
	CREATE FUNCTION background(text) RETURNS void AS 'mot', 'mot_test_background' LANGUAGE C;
	ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'});

my $change = 0;

# what becomes of commands of which one has waited for a change that commits
sub behind_writer
{
	my ($what, $send) = @_;

	# (a value that has been there has its label again)
	$change++;
	simple($writer, "BEGIN; DELETE FROM ranked WHERE id > 6; UPDATE ranked SET a = ARRAY[id * 10, a[1]] WHERE id < 3; INSERT INTO ranked VALUES (7, ARRAY[7, $change])");
	$c->{transcript} = '';
	$send->();
	flush_out($c);
	ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"), "$what waits");
	simple($writer, 'COMMIT');
	until_ready($c);
	return join(', ', map { s/^C // ? $_ : substr($_, 2, 5) } $c->{transcript} =~ /^[CE] .*$/mg);
}

sub pipeline
{
	for my $query (@_)
	{
		parse($c, '', $query); bind_portal($c, '', '', 0); execute($c, '');
	}
	message($c, 'S', '');
	return;
}

for my $command ('CLUSTER ranked USING ranked_pkey', 'ALTER TABLE ranked SET TABLESPACE other', 'REINDEX INDEX ranked_a')
{
	my $tag = $command =~ /^(ALTER TABLE|\w+)/ ? $1 : '';
	my $follows = 'UPDATE ranked SET a = a || 0 WHERE id < 3';
	my $kept = sub {
		is($node->safe_psql('postgres', 'SELECT id, a FROM ranked WHERE id < 3 ORDER BY id'), "1|{10,10}\n2|{20,20}", '... and nothing is changed');
	};

	parse($c, 'prepared', $command); sync_it($c);
	is(behind_writer($command, sub { message($c, 'Q', "$command\0") }), $tag, '... and is done if nothing follows it');
	$node->safe_psql('postgres', 'ALTER TABLE ranked SET TABLESPACE pg_default');
	is(behind_writer($command, sub { message($c, 'Q', "SELECT 1; $command; $follows\0") }), 'SELECT 1, 40001', '... fails before another one of the same query');
	is(behind_writer($command, sub { pipeline('SELECT 1', $command, $follows) }), 'SELECT 1, 40001', '... in a pipeline');
	$kept->();
	is(behind_writer($command, sub { pipeline('EXECUTE prepared', $follows) }), '40001', '... in one that names it');
	$kept->();

	my $offset = -s $node->logfile;
	behind_writer($command, sub { message($c, 'Q', "SELECT background('SELECT 1; $command; $follows')\0") });
	like(slurp_file($node->logfile, $offset), qr/ERROR:  could not serialize access due to concurrent update/, '... in a background worker, which may go on');
	$kept->();
	close_it($c, 'S', 'prepared'); sync_it($c);
}

# nor does an event trigger, which may look at it (17)
$node->safe_psql('postgres', q{
	CREATE TABLE looked (rows int);
	CREATE FUNCTION looks() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO looked SELECT count(*) FROM ranked; END';
	CREATE EVENT TRIGGER looks ON ddl_command_end EXECUTE FUNCTION looks();
});
simple($writer, 'BEGIN');
simple($writer, 'INSERT INTO ranked SELECT i, ARRAY[i % 3, i] FROM generate_series(10, 15) i');
$c->{transcript} = '';
message($c, 'Q', "REINDEX INDEX ranked_a\0");
flush_out($c);
ok($node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $c->{pid}"), 'REINDEX waits');
simple($writer, 'COMMIT');
until_ready($c);
is($c->{transcript}, "E 40001 could not serialize access due to concurrent update\nZ I\n", 'and fails where event triggers may follow it');

$node->stop;
done_testing();
