# Damage to the files of a table that memory had no room for: its rows and the redo that has come
# since.  It is noticed when the table is brought back, at a start or at work, and named; what was
# put back is as good as before, and at work others come back nevertheless.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
autovacuum = off
fsync = off
checkpoint_timeout = 1h
shared_preload_libraries = 'mot'
mot.max_memory = 256MB
});
$node->start;

# (of "other" and one more there is no room in 64 MB)
my %n = (other => 70000, large => 80000, larger => 84000);
$node->safe_psql('postgres', join '', 'CREATE EXTENSION mot; CREATE TABLE heap (v int) USING heap;',
	map { "CREATE FOREIGN TABLE $_ (id int PRIMARY KEY, v int, filler text) SERVER mot_server;
	INSERT INTO $_ SELECT i, i, repeat('x', 400) FROM generate_series(1, $n{$_}) i;" } sort keys %n);
$node->safe_psql('postgres', 'CHECKPOINT; UPDATE large SET v = v + 1 WHERE id <= 100; UPDATE larger SET v = v + 1 WHERE id <= 100');
my %sum = map { $_ => sum($_) } keys %n;
my ($db, $oid) = split /\|/, $node->safe_psql('postgres', q{SELECT d.oid, 'large'::regclass::oid FROM pg_database d WHERE datname = 'postgres'});

sub sum { return $node->safe_psql('postgres', "SELECT count(*), sum(v) FROM $_[0]") }
sub left_out { return $node->safe_psql('postgres', 'SELECT tab FROM mot_stat_left_out ORDER BY tab::text') }

sub begin
{
	my ($memory, $ignore) = @_;
	$node->append_conf('postgresql.conf', "mot.max_memory = ${memory}MB\nmot.ignore_damaged = $ignore\n");
	$node->start;
	$node->poll_query_until('postgres', q{SELECT state IN ('ready', 'refused') FROM mot_stat_recovery}) or die;
	return;
}

sub error_of
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	return $rc == 0 ? "no error: $out" : $err;
}

$node->stop('immediate');
begin(64, 'off');
is(left_out(), "large\nlarger", 'two tables have no room');
$node->stop;

my ($dir) = glob($node->data_dir . '/mot/' . '[0-9A-F]' x 24);
my ($redo) = grep { -s $_ < 1000000 } glob("$dir/$db.$oid.*");
my ($rows) = grep { -s $_ > 1000000 } glob("$dir/$db.$oid.*");
ok(defined $redo && defined $rows, 'a checkpoint has the rows of one, and its redo');

sub damaged
{
	my ($file, $at) = @_;
	my $bytes = slurp_file($file);
	my $changed = $bytes;
	substr($changed, $at, 1) = chr(ord(substr($changed, $at, 1)) ^ 1);
	unlink $file or die;
	append_to_file($file, $changed);
	return $bytes;
}

sub put_back
{
	my ($file, $bytes) = @_;
	unlink $file or die;
	append_to_file($file, $bytes);
	return;
}

for my $case (
	[ 'the beginning of its redo', $redo, 0, 'redo does not match its checksum' ],
	[ 'its last byte', $redo, -1, 'redo does not match its checksum' ],
	[ 'the rows', $rows, 500000, 'checksum of a block does not match' ])
{
	my ($what, $file, $at, $why) = @$case;
	my ($name) = $file =~ m{([^/]+)$};
	my $bytes = damaged($file, $at);
	begin(256, 'off');
	like(error_of('SELECT * FROM other'), qr/XX001: memory-optimized tables could not be recovered\nDETAIL:  checkpoint file "mot\/\S*\Q$name\E" is damaged at offset \d+: $why.*\nHINT:  .*mot\.ignore_damaged/, "$what: noticed at a start");
	is($node->safe_psql('postgres', 'INSERT INTO heap VALUES (1); CHECKPOINT; SELECT count(*) > 0 FROM heap'), 't', '... and heap tables are served');
	$node->stop;
	put_back($file, $bytes);
}

# at work: as soon as there is room for one of them
my $bytes = damaged($redo, -1);
begin(64, 'off');
is(left_out(), "large\nlarger", 'what there is no room for is not looked at');
my $from = -s $node->logfile;
$node->safe_psql('postgres', 'DELETE FROM other');
$node->wait_for_log(qr/ERROR:  (XX001: )?checkpoint file "mot\/\S+" is damaged at offset \d+: redo does not match its checksum/, $from);
ok($node->poll_query_until('postgres', "SELECT string_agg(tab::text, ',') = 'large' FROM mot_stat_left_out"), 'one whose redo is damaged stays, the other is back');
is(sum('larger'), $sum{larger}, '... as it was');
like(error_of('SELECT * FROM large'), qr/is not in memory/, '... and that one is not there');
is($node->safe_psql('postgres', 'CHECKPOINT; SELECT count(*) FROM other'), '0', 'checkpoints are written');
$node->stop;

# all of it is in the checkpoint still
($dir) = glob($node->data_dir . '/mot/' . '[0-9A-F]' x 24);
$redo =~ s{.*/}{$dir/};
put_back($redo, $bytes);
begin(256, 'off');
is(left_out(), '', 'what was put back comes back');
is(sum('large'), $sum{large}, '... with all that it had');
$node->safe_psql('postgres', "INSERT INTO other SELECT i, i, repeat('x', 400) FROM generate_series(1, $n{other}) i; CHECKPOINT; UPDATE large SET v = v + 1 WHERE id <= 100");
$node->stop('immediate');
begin(64, 'off');
$node->stop;

# ignored
($dir) = glob($node->data_dir . '/mot/' . '[0-9A-F]' x 24);
($redo) = grep { -s $_ < 1000000 } glob("$dir/$db.$oid.*");
damaged($redo, -1);
$from = -s $node->logfile;
begin(256, 'on');
like(slurp_file($node->logfile, $from), qr/WARNING:  (XX001: )?memory-optimized table with OID $oid of database with OID $db is damaged and not available\n.*DETAIL:  checkpoint file .*redo does not match its checksum/, 'with mot.ignore_damaged the log says so');
is(sum('larger'), $sum{larger}, '... the others are there');
like(error_of('SELECT * FROM large'), qr/XX001: memory-optimized table with OID $oid is damaged/, '... and that one is not');
$node->safe_psql('postgres', "INSERT INTO heap VALUES (2); DELETE FROM other WHERE id = $_; CHECKPOINT") for 1 .. 3;
ok((grep { -s $_ > 1000000 } glob($node->data_dir . "/mot/*.damaged/$db.$oid.*")), '... the checkpoint with its rows is put aside');
$node->safe_psql('postgres', 'TRUNCATE large; INSERT INTO large VALUES (1, 1)');
$node->stop;
begin(256, 'off');
is(sum('large'), '1|1', 'it can be filled anew');

# what cannot be read at work for other reasons is no more in the way of others, and is tried again
$node->safe_psql('postgres', "TRUNCATE large; INSERT INTO large SELECT i, i, repeat('x', 400) FROM generate_series(1, $n{large}) i");
$sum{large} = sum('large');
$node->stop;
begin(64, 'off');
is(left_out(), "large\nlarger", 'two tables have no room again');
my ($own) = grep { -s $_ > 1000000 } glob($node->data_dir . "/mot/*_left_out/*/$db.$oid.*");
chmod 0, $own or die;
$from = -s $node->logfile;
$node->safe_psql('postgres', 'DELETE FROM other');
$node->wait_for_log(qr{ERROR:  (58P01: )?could not open file "\S+_left_out/}, $from);
ok($node->poll_query_until('postgres', "SELECT string_agg(tab::text, ',') = 'large' FROM mot_stat_left_out"), 'one whose rows cannot be read stays, the other is back');
is(sum('larger'), $sum{larger}, '... as it was');
chmod 0600, $own or die;
$bytes = damaged($own, 500000);
$from = -s $node->logfile;
$node->safe_psql('postgres', 'DELETE FROM larger');
$node->wait_for_log(qr/is damaged at offset \d+: checksum of a block does not match/, $from);
my $worker = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'");
# (it tries again and again)
my @open;
for (1 .. 100)
{
	last unless @open = grep { m{_left_out/} } map { readlink($_) // '' } glob("/proc/$worker/fd/*");
	sleep 0.1;
}
is(join("\n", @open), '', 'no file is left open');
put_back($own, $bytes);
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM mot_stat_left_out"), 'when they are as they should be, it comes back');
is(sum('large'), $sum{large}, '... with all that it had');

done_testing();
