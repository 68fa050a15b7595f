# Damage: bits that flip and files that end early, in the log and in
# checkpoints.  In the log, recovery ends where the damage is, for heap and MOT
# tables alike; a checkpoint that is damaged is never taken for a good one.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Doors;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = int($ENV{SEED} || 1);
srand($seed);
diag("SEED=$seed");

use constant SEGMENT => 1024 * 1024;

my $ledger = Ledger->new(name => 'damage', initdb => ['--wal-segsize=1'],
	conf => "max_wal_size = '1GB'\nfull_page_writes = off\nsynchronous_commit = on\n");
my $node = $ledger->node;
my $data = $node->data_dir;
my $engine = $ledger->{engine};
my ($foreign, $server) = $engine eq 'mot' ? ('FOREIGN TABLE', 'SERVER mot_server') : ('TABLE', "USING $engine");
$node->start;
$node->safe_psql(
	'postgres', qq{
	CREATE EXTENSION mot;
	CREATE TABLE odd (n int PRIMARY KEY, v text) USING heap;
	CREATE $foreign even (n int PRIMARY KEY, v text) $server;
	CREATE INDEX ON even (v);
	CREATE TABLE kept USING $engine AS SELECT i, md5(i::text) AS v FROM generate_series(1, 20000) i;
	CREATE $foreign kept2 (i int PRIMARY KEY, v text) $server;
	INSERT INTO kept2 SELECT i, repeat(md5(i::text), 10) FROM generate_series(1, 5000) i;
	CHECKPOINT;
	CREATE PROCEDURE work(last int) LANGUAGE plpgsql AS \$\$
	BEGIN
		FOR i IN 1 .. last LOOP
			IF i % 2 = 1 THEN
				INSERT INTO odd VALUES (i, md5(i::text));
			ELSE
				INSERT INTO even VALUES (i, repeat(md5(i::text), 1 + i % 10));
			END IF;
			COMMIT;
		END LOOP;
	END \$\$;
});
my $kept = $node->safe_psql('postgres', "SELECT md5(string_agg(v, ',' ORDER BY i)) FROM kept UNION ALL SELECT md5(string_agg(v, ',' ORDER BY i)) FROM kept2");
my $from = lsn();
$node->safe_psql('postgres', 'CALL work(6000)');
my $to = lsn();
$ledger->kill_all or die;

sub lsn
{
	my ($hi, $lo) = split m{/}, $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
	return hex($hi) * 2**32 + hex($lo);
}

# the state to start each trial from
system_or_bail('cp', '-a', $data, "$data.good");

sub restore
{
	system_or_bail('rm', '-rf', $data);
	system_or_bail('cp', '-a', "$data.good", $data);
	return;
}

sub change_byte
{
	my ($file, $offset, $change) = @_;
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	seek($fh, $offset, 0);
	read($fh, my $byte, 1) == 1 or die "$file, $offset";
	seek($fh, $offset, 0);
	print $fh $change->($byte);
	close $fh;
	return;
}

sub flip
{
	my ($file, $offset) = @_;
	my $bit = 1 << int(rand(8));
	change_byte($file, $offset, sub { chr(ord($_[0]) ^ $bit) });
	return;
}

sub wal_file
{
	my ($lsn) = @_;
	return sprintf('%s/pg_wal/%08X%08X%08X', $data, 1, $lsn / 2**32, ($lsn % 2**32) / SEGMENT);
}

# starts, maybe not; what the log says
sub try_start
{
	my $seen = -s $node->logfile;
	my $started = $node->start(fail_ok => 1);
	return ($started, substr(slurp_file($node->logfile), $seen));
}

# all up to some number, and nothing after it, from both tables
sub prefix
{
	my ($what) = @_;
	my ($n, $max) = split /\|/, $node->safe_psql('postgres', 'SELECT count(*), coalesce(max(n), 0) FROM (SELECT n FROM odd UNION ALL SELECT n FROM even) x');
	is($n, $max, "$what: a prefix of $n");
	is( $node->safe_psql('postgres', "SELECT md5(string_agg(v, ',' ORDER BY i)) FROM kept UNION ALL SELECT md5(string_agg(v, ',' ORDER BY i)) FROM kept2"),
		$kept, "$what: what was checkpointed is there");
	is($node->safe_psql('postgres', "SELECT count(*) FROM odd WHERE v <> md5(n::text)"), '0', "$what: heap rows");
	is($node->safe_psql('postgres', "SELECT count(*) FROM even WHERE v <> repeat(md5(n::text), 1 + n % 10)"), '0', "$what: other rows");
	is($node->safe_psql('postgres', "SELECT string_agg(first_problem, ', ') FROM mot_verify('even')"), '', "$what: mot_verify") if $engine eq 'mot';
	return $n;
}

restore();
$node->start;
is(prefix('undamaged'), 6000, 'everything is there when nothing is damaged');

# it writes on after the end that it found
sub goes_on
{
	my ($n) = @_;
	$node->safe_psql('postgres', 'INSERT INTO odd VALUES (100001, md5($$100001$$)); INSERT INTO even VALUES (100000, repeat(md5($$100000$$), 1))');
	$ledger->kill_all or die;
	$node->start;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT n FROM odd UNION ALL SELECT n FROM even) x'), $n + 2, '... and it goes on from there');
	$ledger->kill_all or die;
	return;
}
$ledger->kill_all or die;

for my $trial (1 .. 5)
{
	my $at = $from + int(rand($to - $from));
	restore();
	# (two of them: up to seven bytes between two records mean nothing)
	$at -= 8 if $at % SEGMENT > SEGMENT - 8;
	flip(wal_file($at), $at % SEGMENT + $_) for 0, 7;
	my ($started, $log) = try_start();
	ok($started, sprintf('bits flipped at %X/%X: the server starts', $at / 2**32, $at % 2**32)) or diag($log);
	next unless $started;
	my $n = prefix('... recovered');
	cmp_ok($n, '<', 6000, '... not more than the log vouches for');
	my $share = ($at - $from) / ($to - $from) * 6000;
	# (a record at a segment's end may take a whole page along)
	ok(abs($n - $share) < 400, sprintf('... and not less, %d of about %d', $n, $share));
	goes_on($n);
}

for my $trial (1 .. 3)
{
	# the file ends; the rest of the log is not there
	my $at = $from + int(rand($to - $from));
	restore();
	my $offset = $at % SEGMENT;
	open(my $fh, '+<:raw', wal_file($at)) or die;
	truncate($fh, $offset);
	truncate($fh, SEGMENT) if $trial > 1;
	close $fh;
	if ($trial != 2)
	{
		for (my $next = $at - $offset + SEGMENT; $next <= $to; $next += SEGMENT)
		{
			unlink wal_file($next);
		}
	}
	my ($started, $log) = try_start();
	if ($trial == 1 && !$started)
	{
		# a file that is too short is one that the server does not read, either
		like($log, qr/could not read file|invalid/, 'a log file cut off: refused');
		next;
	}
	ok($started, 'the log cut off: the server starts') or diag($log);
	next unless $started;
	my $n = prefix('... recovered');
	cmp_ok($n, '<', 6000, '... not more than the log has');
	goes_on($n);
}

# checkpoint files: each one, a bit anywhere, and cut off anywhere
SKIP:
{
	skip 'heap tables have no checkpoint files', 1 if $engine eq 'heap';

	my @files = grep { -f $_ } glob("$data.good/mot/*/*");
	cmp_ok(scalar(@files), '>=', 3, 'there are checkpoint files: ' . scalar(@files));
	for my $file (@files)
	{
		for my $way ('bit', 'cut', 'gone')
		{
			next if $way eq 'gone' && $file =~ /manifest/;
			restore();
			(my $victim = $file) =~ s/^\Q$data\E\.good/$data/;
			my $size = -s $victim;
			my $at = int(rand($size));
			if ($way eq 'bit') { flip($victim, $at) }
			elsif ($way eq 'cut') { truncate($victim, $at) or die }
			else { unlink $victim or die }
			my ($name) = $victim =~ m{([^/]+)$};
			my ($started, $log) = try_start();
			my $what = "$name, $way at $at of $size";
			if (!$started)
			{
				like($log, qr/(?:FATAL|PANIC|ERROR|LOG):.*\Q$name\E/, "$what: refused, with the name");
				like($log, qr/HINT:/, '... and a hint');
			}
			else
			{
				my ($ret, $out, $err) = $node->psql('postgres',
					q{SELECT md5(string_agg(v, ',' ORDER BY i)) FROM kept UNION ALL SELECT md5(string_agg(v, ',' ORDER BY i)) FROM kept2; SELECT count(*) FROM even});
				isnt($ret, 0, "$what: noticed") or diag("it says $out");
				ok(index($err, $name) >= 0 || index($log, $name) >= 0, '... with the name') or diag("$err $log");
				$ledger->kill_all or die;
			}
		}
	}

	# checkpoints of another timeline only: never as if there had been none
	restore();
	for my $dir (glob "$data/mot/????????????????????????")
	{
		(my $other = $dir) =~ s{/mot/.{8}}{/mot/00000009};
		rename($dir, $other) or die "$dir: $!";
	}
	{
		my ($started, $log) = try_start();
		ok($started, 'checkpoints of another timeline: heap tables are served') or diag($log);
		my ($ret, $out, $err) = $node->psql('postgres', 'SELECT count(*) FROM even');
		isnt($ret, 0, '... the others are refused');
		like($err, qr/no checkpoint of memory-optimized tables is in the history of timeline 1/, '... and it is said why');
		$ledger->kill_all or die;
	}

	# the rest of the server can be started nevertheless
	my ($victim) = grep { !/manifest/ } @files;
	restore();
	(my $damaged = $victim) =~ s/^\Q$data\E\.good/$data/;
	flip($damaged, int((-s $damaged) / 2));
	$node->append_conf('postgresql.conf', "mot.ignore_damaged = on\n");
	my ($started, $log) = try_start();
	ok($started, 'with mot.ignore_damaged the server starts') or diag($log);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM odd'), '3000', '... heap tables are there');
	my $good = 0;
	my $bad = 0;
	for my $table ('kept', 'kept2', 'even')
	{
		my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT count(*) FROM $table");
		$good++ if $ret == 0;
		$bad++ if $ret != 0 && $err =~ /XX001/;
	}
	is("$good good, $bad bad", '2 good, 1 bad', '... one table is marked damaged, and says so');
	$ledger->kill_all or die;
}

system('rm', '-rf', "$data.good");
done_testing();
