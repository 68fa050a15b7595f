# Damaged checkpoints: in every file of one, bits that change anywhere, files
# that are cut off, longer, empty, another table's, or gone.  All of it is
# noticed and named, by a server that was stopped and by one that crashed, and
# nothing comes up with less than it had; what was put back is as good as
# before.  With mot.ignore_damaged everything else comes up.
#
# MOT_DAMAGE_PLACES=n has n more random places in each file damaged.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = int($ENV{SEED} || 1);
srand($seed);
diag("SEED=$seed");
my $random_places = $ENV{MOT_DAMAGE_PLACES} // 1;

my $node = PostgreSQL::Test::Cluster->new('damage');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
restart_after_crash = off
});
$node->start;

sub query { return $node->safe_psql('postgres', $_[0]) }

sub write_file
{
	my ($file, $bytes) = @_;
	open(my $fh, '>:raw', $file) or die "$file: $!";
	print $fh $bytes;
	close $fh;
	return;
}

# what the server's log says from here on
my $seen = 0;

sub new_log
{
	my $log = slurp_file($node->logfile, $seen);
	$seen = -s $node->logfile;
	return $log;
}

my $setup = q{
	CREATE EXTENSION mot;
	CREATE TABLE cold (id int PRIMARY KEY);
	CREATE FOREIGN TABLE good (id int PRIMARY KEY) SERVER mot_server;
	CREATE FOREIGN TABLE bad (id int PRIMARY KEY, t text) SERVER mot_server;
	INSERT INTO cold VALUES (1);
	INSERT INTO good SELECT generate_series(1, 1000);
	INSERT INTO bad SELECT i, md5(i::text) FROM generate_series(1, 15000) i;
};
query($setup);
my $everything = 'SELECT (SELECT count(*) FROM good), (SELECT sum(id) FROM good), (SELECT count(*) FROM bad), (SELECT md5(string_agg(t, $$,$$ ORDER BY id)) FROM bad)';

# what a table's storage is called by
sub number { return "(SELECT CASE relkind WHEN 'r' THEN relfilenode ELSE oid END FROM pg_class WHERE relname = '$_[0]')" }
my ($db, $bad_oid, $good_oid) = split /\|/, query("SELECT d.oid, @{[number('bad')]}, @{[number('good')]} FROM pg_database d WHERE datname = 'postgres'");

sub checkpoints { return sort glob($node->data_dir . '/mot/' . '[0-9A-F]' x 24) }

# name in a message
sub name_of { return $_[0] =~ s/.*\/(mot\/)/$1/r }

# ------------------------------------------------------------ ways to damage

# where the blocks of a row file begin
sub block_starts
{
	my ($bytes) = @_;
	my @starts;
	for (my $at = 0; $at < length $bytes; $at += 32 + unpack('L', substr($bytes, $at + 24, 4)))
	{
		push @starts, $at;
	}
	return @starts;
}

sub places
{
	my ($file, $bytes) = @_;
	my $size = length $bytes;
	my @places = $file =~ /manifest$/ ? (0, 8, 16, 24, $size - 12, $size - 1) : map { ($_, $_ + 28, $_ + 32) } block_starts($bytes);
	push @places, $size - 1, map { int(rand($size)) } 1 .. $random_places;
	my %once = map { $_ => 1 } grep { $_ < $size } @places;
	return sort { $a <=> $b } keys %once;
}

# [what, the damaged bytes], ...
sub damages
{
	my ($file, $bytes) = @_;
	my $size = length $bytes;
	my @damages;
	for my $at (places($file, $bytes))
	{
		my $changed = $bytes;
		my $bit = int(rand(8));
		substr($changed, $at, 1) = chr(ord(substr($changed, $at, 1)) ^ (1 << $bit));
		push @damages, ["bit $bit at $at", $changed];
	}
	my %lengths = map { $_ => 1 } (0, 10, $size - 1, int(rand($size)), $file =~ /manifest$/ ? () : (block_starts($bytes))[-1]);
	push @damages, ["cut to $_", substr($bytes, 0, $_)] for sort { $a <=> $b } keys %lengths;
	push @damages, ['followed by a byte', $bytes . 'x'], ['twice', $bytes . $bytes];
	push @damages, ['zeroes', "\0" x $size];
	return @damages;
}

# --------------------------------------------------- a server that was stopped

query('CHECKPOINT');
my $earlier = slurp_file((checkpoints())[-1] . "/$db.$bad_oid.0");
query(q{UPDATE bad SET t = md5('another') WHERE id = 7; CHECKPOINT});
my $before = query($everything);
$node->stop;
my ($dir) = checkpoints();
my %whole = map { $_ => slurp_file($_) } glob("$dir/*");
is(join(' ', sort keys %whole), join(' ', sort "$dir/$db.$good_oid.0", "$dir/$db.$bad_oid.0", "$dir/manifest"), 'the files of a checkpoint');
cmp_ok(scalar(block_starts($whole{"$dir/$db.$bad_oid.0"})), '>=', 3, 'one has several blocks');

# start, ask, stop: what a session is told
sub told
{
	$node->start;
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$everything");
	$node->stop;
	return $ret == 0 ? "no error: $out" : $err;
}

my %wrong;
my $tried = 0;
for my $file (sort keys %whole)
{
	my $name = name_of($file);
	for my $damage (damages($file, $whole{$file}))
	{
		my ($what, $bytes) = @$damage;
		write_file($file, $bytes);
		my $answer = told();
		$tried++;
		$wrong{"$name, $what"} = $answer
		  unless $answer =~ /ERROR:  XX001: memory-optimized tables could not be recovered\nDETAIL:  checkpoint file "\Q$name\E" is damaged at offset \d+: .*\nHINT:  .*mot\.ignore_damaged/;
	}
	unlink $file;
	my $answer = told();
	$wrong{"$name, gone"} = $answer
	  unless $answer =~ /ERROR:  XX001: .*\nDETAIL:  checkpoint file "\Q$name\E" is missing.*\nHINT:  .*mot\.ignore_damaged/;
	write_file($file, $whole{$file});
}
is(join("\n", map { "$_: $wrong{$_}" } sort keys %wrong), '', "each of $tried damages to a stopped server is noticed, and its place named");

# files that are all in order by themselves
write_file("$dir/$db.$bad_oid.0", $whole{"$dir/$db.$good_oid.0"});
like(told(), qr/checkpoint file "[^"]+$bad_oid\.0" is damaged at offset/, "another table's file is not taken for it");
is(length $earlier, length $whole{"$dir/$db.$bad_oid.0"}, 'it has been as long before');
write_file("$dir/$db.$bad_oid.0", $earlier);
like(told(), qr/checkpoint file "[^"]+$bad_oid\.0" is damaged at offset \d+: the file is not the one that the manifest names/, 'nor one of an earlier checkpoint');
write_file("$dir/$db.$bad_oid.0", $whole{"$dir/$db.$bad_oid.0"});
(my $elsewhere = $dir) =~ s/(.)$/$1 eq '8' ? '0' : '8'/e;
rename $dir, $elsewhere or die;
like(told(), qr/checkpoint file "[^"]+manifest" belongs to another checkpoint.*HINT:  .*mot\.ignore_damaged/s, 'nor another checkpoint for one');
rename $elsewhere, $dir or die;

# of a server that has done the same, so that all its numbers are the same
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init(allows_streaming => 1);
$other->append_conf('postgresql.conf', "autovacuum = off\nshared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\n");
$other->start;
$other->safe_psql('postgres', $setup);
$other->safe_psql('postgres', 'DELETE FROM good WHERE id > 10; CHECKPOINT');
$other->stop;
rename $dir, $node->data_dir . '/aside' or die;
system_or_bail('cp', '-a', glob($other->data_dir . '/mot/' . '[0-9A-F]' x 24), $node->data_dir . '/mot/');
like(told(), qr/checkpoint file "[^"]+manifest" belongs to another database system.*HINT:  .*mot\.ignore_damaged/s, "nor another server's");
system_or_bail('rm', '-r', checkpoints());
rename $node->data_dir . '/aside', $dir or die;
is(told(), "no error: $before", 'what was put back is as good as before');

# the whole directory
rename $node->data_dir . '/mot', $node->data_dir . '/gone' or die;
like(told(), qr/ERROR:  55000: memory-optimized table "good" has no storage.*HINT:  Restore it from a backup/s, 'without any checkpoint no table comes up empty');
rename $node->data_dir . '/gone', $node->data_dir . '/mot' or die;
is(told(), "no error: $before", '... nor is one lost by the attempt');

# ------------------------------------------------------- a server that crashed

my $data = $node->data_dir;

sub keep_state { system_or_bail('rm', '-rf', "$data.kept"); system_or_bail('cp', '-a', $data, "$data.kept"); return }
sub reset_state { system_or_bail('rm', '-rf', $data); system_or_bail('cp', '-a', "$data.kept", $data); return }

# 'started', or what the log says if tables are refused: by a server that serves
# others (and is stopped again), or that does not start
sub started
{
	new_log();
	if ($node->start(fail_ok => 1))
	{
		return 'started' if ($node->psql('postgres', $everything))[2] !~ /memory-optimized tables could not be recovered/;
		return 'heap tables are not served' if query('SELECT count(*) > 0 FROM cold') ne 't';
		$node->stop('immediate');
	}
	my ($refusal) = new_log() =~ /((?:FATAL|ERROR):  (?!memory-optimized tables could not).*(?:\n.*(?:DETAIL|HINT): .*)*)/;
	return $refusal // 'no message';
}

$node->start;
query(q{INSERT INTO good VALUES (1001); CHECKPOINT; INSERT INTO good VALUES (1002); UPDATE bad SET t = 'changed' WHERE id = 7; INSERT INTO cold VALUES (2)});
$before = query($everything);
$node->stop('immediate');
keep_state();
($dir) = checkpoints();
%whole = map { $_ => slurp_file($_) } glob("$dir/*");
%wrong = ();
$tried = 0;
for my $file (sort keys %whole)
{
	my $name = name_of($file);
	my @damages = damages($file, $whole{$file});
	# a few each: what reads them is the same
	@damages = @damages[ grep { $_ < 6 || $random_places > 1 } sort { rand() <=> 0.5 } 0 .. $#damages ];
	for my $damage (@damages, ['gone', undef])
	{
		my ($what, $bytes) = @$damage;
		defined $bytes ? write_file($file, $bytes) : unlink $file;
		my $answer = started();
		$tried++;
		if ($answer eq 'started')
		{
			$answer .= ': ' . join('', $node->psql('postgres', $everything));
			$node->stop('immediate');
			reset_state();
		}
		my $expected = defined $bytes ? qr/is damaged at offset \d+: / : qr/is missing/;
		$wrong{"$name, $what"} = $answer unless $answer =~ /ERROR:  checkpoint file "\Q$name\E" $expected.*\n.*HINT:  .*mot\.ignore_damaged/s;
	}
	write_file($file, $whole{$file});
}
is(join("\n", map { "$_: $wrong{$_}" } sort keys %wrong), '', "each of $tried damages to a crashed server is noticed, and its place named");

# without any checkpoint, the log alone is not taken for all there is
reset_state();
rename "$data/mot", "$data/gone" or die;
like(started(), qr/FATAL:  the log has changes of memory-optimized tables, and there is no checkpoint of them\n.*HINT:  Restore/s, 'without a checkpoint, log for its tables is refused');
rename "$data/gone", "$data/mot" or die;

# the mark that says there is log to be read
unlink "$data/mot/open" or die;
is(started(), 'started', 'without the mark that log follows ...');
is(query($everything), $before, '... it is read');
$node->stop('immediate');
reset_state();
is(started(), 'started', 'what was put back is as good as before');
is(query($everything), $before, '... with all that was logged');

# ------------------------------------------------------------ an older one

# a backup that is running keeps it
my $session = $node->background_psql('postgres');
$session->query_safe(q{SELECT pg_backup_start('older', true)});
my $older = join(' ', checkpoints());
query(q{INSERT INTO good VALUES (2001); UPDATE bad SET t = 'again' WHERE id = 8; CHECKPOINT; INSERT INTO good VALUES (2002); CHECKPOINT; INSERT INTO good VALUES (2003)});
$before = query($everything);
$node->stop('immediate');
eval { $session->quit };
cmp_ok(scalar(my @both = checkpoints()), '>=', 2, 'two checkpoints are there');
keep_state();
my $newest = (checkpoints())[-1];
unlink "$newest/$db.$bad_oid.0" or die;
is(started(), 'started', 'a checkpoint of which a file is missing, and an older one');
is(query($everything), $before, '... from which everything comes');
like(new_log(), qr/LOG:  checkpoint file "\Q@{[name_of($newest)]}\E\/$db\.$bad_oid\.0" is missing/, '... and the log says so');
$node->stop('immediate');
reset_state();
damage_middle("$newest/manifest");
like(started(), qr/ERROR:  checkpoint file "\Q@{[name_of($newest)]}\E\/manifest" is damaged.*HINT:  Restore/s, 'one with a damaged manifest is refused, older one or not');
rename $newest, "$data/aside" or die;
is(started(), 'started', '... until somebody moves it away');
is(query($everything), $before, '... then everything comes from the older one');
$node->stop('immediate');
reset_state();
unlink "$newest/manifest" or die;
is(started(), 'started', 'the same without its manifest');
is(query($everything), $before, '... everything comes');
# ... with log behind it that a clean stop ends
query('INSERT INTO good VALUES (2004)');
$before = query($everything);
$node->restart;
is(query($everything), $before, '... and goes on from there');
$node->stop('immediate');

# --------------------------------------------------------- mot.ignore_damaged

$node->start;
query('CHECKPOINT');
$before = query($everything);
query('INSERT INTO good VALUES (3001); INSERT INTO bad VALUES (30001); INSERT INTO cold VALUES (3)');
$node->stop('immediate');
$node->append_conf('postgresql.conf', 'mot.ignore_damaged = on');
keep_state();
($dir) = checkpoints();
my $rows = "$dir/$db.$bad_oid.0";

sub damage_middle
{
	my ($file) = @_;
	my $bytes = slurp_file($file);
	substr($bytes, length($bytes) / 2, 1) ^= "\x10";
	write_file($file, $bytes);
	return;
}

sub error_of
{
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$_[0]");
	return $ret == 0 ? "no error: $out" : $err;
}

damage_middle($rows);
is(started(), 'started', 'with mot.ignore_damaged the server starts');
like(new_log(), qr/WARNING:  memory-optimized table with OID $bad_oid of database with OID $db is damaged and not available\n.*DETAIL:  checkpoint file "\Q@{[name_of($rows)]}\E" is damaged at offset \d+/, '... and says what it leaves out');
is(query('SELECT count(*), (SELECT count(*) FROM cold) FROM good WHERE id > 3000'), '1|3', 'the other tables are whole');
for my $sql ('SELECT count(*) FROM bad', 'SELECT * FROM bad WHERE id = 7', q{INSERT INTO bad VALUES (0, '')}, 'UPDATE bad SET t = NULL', 'DELETE FROM bad')
{
	like(error_of($sql), qr/ERROR:  XX001: memory-optimized table .*is damaged\nDETAIL:  checkpoint file "[^"]+" is damaged at offset \d+.*\nHINT:  .*TRUNCATE or DROP TABLE/, "the damaged one says what is the matter: $sql");
}
is(query('SELECT state, damaged_tables FROM mot_stat_recovery'), 'ready|1', '... as does the view');
query('INSERT INTO good VALUES (3002); CHECKPOINT');
like(join(' ', glob("$data/mot/*")), qr/[0-9A-F]{24}\.damaged\b/, 'its files are put aside');
$node->restart;
like(error_of('SELECT count(*) FROM bad'), qr/ERROR:  55000: memory-optimized table "bad" has no storage/, 'it does not come up empty later');
query(q{TRUNCATE bad; INSERT INTO bad VALUES (1, 'one')});
is(query('SELECT count(*) FROM bad'), '1', 'TRUNCATE gives it up');
$node->stop('immediate');
$node->start;
is(query('SELECT (SELECT count(*) FROM bad), (SELECT count(*) FROM good WHERE id > 3000)'), '1|2', '... for good');
$node->stop('immediate');

# TRUNCATE and DROP at once, before any checkpoint
for my $way ('TRUNCATE', 'DROP')
{
	reset_state();
	damage_middle($rows);
	is(started(), 'started', "$way of a damaged table");
	query($way eq 'DROP' ? 'DROP FOREIGN TABLE bad; CREATE FOREIGN TABLE bad (id int PRIMARY KEY, t text) SERVER mot_server' : 'TRUNCATE bad');
	query(q{INSERT INTO bad VALUES (1, 'one')});
	is(query('SELECT damaged_tables FROM mot_stat_recovery'), '0', '... there is no damaged one any more');
	$node->stop('immediate');
	is(started(), 'started', '... a crash at once');
	is(query('SELECT (SELECT count(*) FROM bad), (SELECT count(*) FROM good WHERE id > 3000)'), '1|1', '... and it is as it was left');
	is(query('SELECT damaged_tables FROM mot_stat_recovery'), '0', '... not damaged');
	$node->stop('immediate');
}

# nothing can be said of any table without the manifest
reset_state();
damage_middle("$dir/manifest");
is(started(), 'started', 'a damaged manifest, ignored: the server starts');
like(new_log(), qr/WARNING:  checkpoint file "\Q@{[name_of($dir)]}\E\/manifest" is damaged at offset \d+/, '... and says so');
is(query('SELECT count(*) FROM cold'), '3', '... heap tables are there');
like(error_of("SELECT count(*) FROM $_"), qr/ERROR:  (?:55000: memory-optimized table "$_" has no storage|XX001: memory-optimized table .*is damaged)/, "... $_ is not") for 'good', 'bad';
query('TRUNCATE good, bad; INSERT INTO good VALUES (1); CHECKPOINT');
ok(-e "$dir.damaged/manifest", '... its files are put aside, all of them');
$node->stop('immediate');
is(started(), 'started', '... a crash');
is(query($everything), '1|1|0|', '... tables emptied work');
$node->stop;

done_testing();
