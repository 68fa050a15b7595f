# Damage to the log that recovery of memory-optimized tables needs and the
# server's does not: what lies between our checkpoint and the server's redo.
# Bits that change, files cut off, of another place, or gone: either everything
# comes, or it is refused with the position.  And log that ends before the
# position of the checkpoint, whose rows would then be ahead of all else.
#
# MOT_DAMAGE_PLACES=n has n random places damaged.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = int($ENV{SEED} || 1);
srand($seed);
diag("SEED=$seed");
my $random_places = $ENV{MOT_DAMAGE_PLACES} // 12;

use constant SEGMENT => 1024 * 1024;
use constant PAGE => 8192;

my $node = PostgreSQL::Test::Cluster->new('log');
$node->init(allows_streaming => 1, extra => ['--wal-segsize=1']);
$node->append_conf('postgresql.conf', qq{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
restart_after_crash = off
max_wal_size = '1GB'
wal_keep_size = '1GB'
});
$node->start;
my $data = $node->data_dir;

sub query { return $node->safe_psql('postgres', $_[0]) }

sub number
{
	my ($hi, $lo) = split m{/}, $_[0];
	return hex($hi) * 2**32 + hex($lo);
}

sub wal_file
{
	my ($lsn) = @_;
	return sprintf('%s/pg_wal/%08X%08X%08X', $data, 1, $lsn / 2**32, ($lsn % 2**32) / SEGMENT);
}

sub keep_state { system_or_bail('rm', '-rf', "$data.kept"); system_or_bail('cp', '-a', $data, "$data.kept"); return }
sub reset_state { system_or_bail('rm', '-rf', $data); system_or_bail('cp', '-a', "$data.kept", $data); return }

my $seen = 0;

sub new_log
{
	my $log = slurp_file($node->logfile, $seen);
	$seen = -s $node->logfile;
	return $log;
}

# 'started', or what the log says if tables are refused: by a server that serves
# others (and is stopped again), or that does not start
sub started
{
	new_log();
	if ($node->start(fail_ok => 1))
	{
		return 'started' if ($node->psql('postgres', 'SELECT count(*) FROM still'))[2] !~ /memory-optimized tables could not be recovered/;
		return 'heap tables are not served' if query('SELECT count(*) > 0 FROM cold') ne 't';
		$node->stop('immediate');
	}
	my ($refusal) = new_log() =~ /((?:FATAL|ERROR):  (?!memory-optimized tables could not).*(?:\n.*(?:DETAIL|HINT): .*)*)/;
	return $refusal // 'no message';
}

sub change
{
	my ($lsn, $how) = @_;
	my $file = wal_file($lsn);
	open(my $fh, '+<:raw', $file) or die "$file: $!";
	seek($fh, $lsn % SEGMENT, 0);
	read($fh, my $byte, 1) == 1 or die;
	seek($fh, $lsn % SEGMENT, 0);
	print $fh $how->($byte);
	close $fh;
	return;
}

query(q{
	CREATE EXTENSION mot;
	CREATE TABLE cold (id int PRIMARY KEY, t text);
	CREATE FOREIGN TABLE hot (id int PRIMARY KEY, t text) SERVER mot_server;
	CREATE FOREIGN TABLE still (id int PRIMARY KEY) SERVER mot_server;
	INSERT INTO still SELECT generate_series(1, 100);
	CREATE PROCEDURE work(first int, last int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN first .. last LOOP
			INSERT INTO hot VALUES (i, repeat(md5(i::text), 1 + i % 20));
			IF i % 10 = 0 THEN
				INSERT INTO cold VALUES (i, md5(i::text));
			END IF;
			COMMIT;
		END LOOP;
	END $$;
	CHECKPOINT;
});
my $everything = q{SELECT count(*), sum(id), md5(string_agg(t, ',' ORDER BY id)) FROM hot UNION ALL SELECT count(*), sum(id), md5(string_agg(t, ',' ORDER BY id)) FROM cold UNION ALL SELECT count(*), sum(id), NULL FROM still};

# ------------------------------------------ between checkpoint and redo

query('CALL work(1, 8000)');
$node->stop('immediate');
$node->start;
query('CALL work(8001, 8200)');
my ($from, $to) = map { number($_) } split /\|/, query('SELECT checkpoint_lsn, (pg_control_checkpoint()).redo_lsn FROM mot_stat_checkpoint');
cmp_ok($to - $from, '>', 2_300_000, 'recovery has left log between our checkpoint and the redo of the server');
my $before = query($everything);
$node->stop('immediate');
keep_state();

my %wrong;
my ($refused, $whole) = (0, 0);

# try it; what was changed is put back
sub try
{
	my ($what, $at) = @_;
	my $answer = started();
	if ($answer eq 'started')
	{
		$answer .= ":\n" . (($node->psql('postgres', $everything))[1] // '');
		$node->stop('immediate');
		$answer eq "started:\n$before" ? $whole++ : ($wrong{$what} = $answer);
		reset_state();
	}
	else
	{
		$refused++;
		my $segment = substr(wal_file($at), -24);
		$wrong{$what} = $answer
		  unless $answer =~ m{ERROR:  (?:.*log .*at [0-9A-F]+/[0-9A-F]+ in segment|.*log segment [0-9A-F]{24})} && $answer =~ /HINT:  /;
		$wrong{"$what, its segment"} = $answer unless $answer =~ /$segment/;
		reset_state();
	}
	return;
}

my $first_segment = $from - $from % SEGMENT + SEGMENT;
my @places = map { int($from + rand($to - $from)) } 1 .. $random_places;
# headers of pages and of a segment, what follows them, and both ends
push @places, $first_segment + $_ for 0, 8, 16, 24, 32, 40, PAGE + 2, PAGE + 17, PAGE + 24;
push @places, $from, $from + 8, $to - 60;
for my $at (@places)
{
	my $bit = 1 << int(rand(8));
	change($at, sub { chr(ord($_[0]) ^ $bit) });
	try(sprintf('bit %d at %X', $bit, $at), $at);
}
cmp_ok($refused, '>', $random_places / 2, "most are refused ($refused), or mean nothing ($whole)");

# the file
my $in_gap = wal_file($first_segment);
for my $size (0, 100, PAGE, SEGMENT - PAGE, SEGMENT - 1)
{
	truncate($in_gap, $size) or die;
	try("segment cut to $size", $first_segment);
}
unlink $in_gap or die;
try('segment gone', $first_segment);
system_or_bail('cp', wal_file($from), $in_gap);
try('another segment in its place', $first_segment);
open(my $fh, '>:raw', $in_gap) or die;
print $fh "\0" x SEGMENT;
close $fh;
try('a segment of zeroes', $first_segment);
unlink wal_file($from) or die;
try('the first one gone', $from);
is(join("\n", map { "$_: $wrong{$_}" } sort keys %wrong), '', 'damaged log before the redo is refused with the position, or nothing is missing');
reset_state();
is(started(), 'started', 'with everything as it was it is as good as before');
is(query($everything), $before, '... everything is there');
$node->stop('immediate');

# behind the redo it ends the log, for all tables alike: durability_damage

# with mot.ignore_damaged the server comes up, and no table pretends
reset_state();
unlink $in_gap or die;
$node->append_conf('postgresql.conf', 'mot.ignore_damaged = on');
is(started(), 'started', 'with mot.ignore_damaged the server starts');
like(new_log(), qr/WARNING:  log segment [0-9A-F]{24}, which memory-optimized tables need for recovery, is missing\n.*DETAIL:  Going on without/, '... and says so');
is(query('SELECT count(*) FROM cold'), '820', '... heap tables are there');
for my $table ('hot', 'still')
{
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT count(*) FROM $table");
	like($err, qr/ERROR:  XX001: memory-optimized table .*is damaged\nDETAIL:  log segment [0-9A-F]{24}/, "... $table says what is the matter");
}
query('TRUNCATE still; INSERT INTO still VALUES (1); DROP FOREIGN TABLE hot; CREATE FOREIGN TABLE new (id int) SERVER mot_server; CHECKPOINT; INSERT INTO still VALUES (2)');
$node->stop('immediate');
$node->append_conf('postgresql.conf', 'mot.ignore_damaged = off');
is(started(), 'started', '... given up, they are needed no more');
is(query('SELECT sum(id) FROM still; SELECT count(*) FROM new; SELECT damaged_tables FROM mot_stat_recovery'), "3\n0\n0", '... and work');
$node->stop('immediate');

# ---------------------------- read by a server that is up, after a clean stop

# The last checkpoint cannot be written, so the log is left to the next start,
# which has no redo of its own.
reset_state();
$node->start;
query('CALL work(8201, 8300)');
chmod 0500, "$data/mot" or die;
$node->stop;
chmod 0700, "$data/mot" or die;
ok(-e "$data/mot/open", 'a clean stop without a checkpoint of ours');
system_or_bail('cp', '-a', $data, "$data.stopped");

sub told
{
	$node->start;
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$everything");
	my $cold = query('SELECT count(*) FROM cold');
	$node->stop;
	system_or_bail('rm', '-rf', $data);
	system_or_bail('cp', '-a', "$data.stopped", $data);
	return $ret == 0 ? "no error: $out" : "$err, and $cold other rows";
}

my $place = $first_segment + 3 * PAGE + 1000;
change($place + $_, sub { chr(ord($_[0]) ^ 16) }) for 0, 7;
like(told(), qr{ERROR:  XX001: memory-optimized tables could not be recovered\nDETAIL:  log that memory-optimized tables need for recovery is damaged at [0-9A-F]+/[0-9A-F]+ in segment [0-9A-F]{24}.*\nHINT:  .*830 other rows}s,
	'damaged log: a session is told where; heap tables can be used');
unlink $in_gap or die;
like(told(), qr{ERROR:  XX001: memory-optimized tables could not be recovered\nDETAIL:  log segment [0-9A-F]{24}, which memory-optimized tables need for recovery, is missing.*\nHINT:  }s, 'log that is gone: so it is');
like(told(), qr/^no error: 8300\|/, 'undamaged: everything is there');
system_or_bail('rm', '-rf', "$data.stopped");

# -------------------------------------- log that ends before the checkpoint

# The worker is stopped while the server's checkpoint begins, so that there is
# log between its redo and our position.
reset_state();
$node->start;
query(q{TRUNCATE hot, cold});
my ($worker) = query(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot checkpointer'});
my $old = query('SELECT checkpoint_lsn FROM mot_stat_checkpoint');
kill 'STOP', $worker or die;
my $checkpoint = $node->background_psql('postgres');
my $redo = query('SELECT redo_lsn FROM pg_control_checkpoint()');
$checkpoint->query_until(qr/begun/, "\\echo begun\nCHECKPOINT;\n");
# its redo pointer does not show before it has been completed
sleep 0.5;
query('CALL work(9001, 9400)');
kill 'CONT', $worker;
ok($node->poll_query_until('postgres', "SELECT m.checkpoint_lsn > '$old' AND c.redo_lsn > '$redo' FROM mot_stat_checkpoint m, pg_control_checkpoint() c"), 'checkpoints of both');
$checkpoint->quit;
($to, $from) = map { number($_) } split /\|/, query('SELECT m.checkpoint_lsn, c.redo_lsn FROM mot_stat_checkpoint m, pg_control_checkpoint() c');
cmp_ok($to - $from, '>', 50_000, 'there is log between the redo of the server and our position');
query('CALL work(9401, 9500)');
$before = query($everything);
$node->stop('immediate');
keep_state();
my $at = int(($from + $to) / 2);
change($at + $_, sub { chr(ord($_[0]) ^ 4) }) for 0, 7;
like(started(), qr{FATAL:  log ends at [0-9A-F]+/[0-9A-F]+, before checkpoint "mot/[0-9A-F]{24}" of memory-optimized tables at [0-9A-F]+/[0-9A-F]+\n.*HINT:  }s, 'log that ends before the checkpoint is refused');
like(started(), qr{FATAL:  log ends at [0-9A-F]+/[0-9A-F]+, before checkpoint}, '... again');
$node->append_conf('postgresql.conf', 'mot.ignore_damaged = on');
is(started(), 'started', '... with mot.ignore_damaged it is not');
for my $table ('hot', 'still')
{
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT count(*) FROM $table");
	like($err, qr/ERROR:  XX001: memory-optimized table .*is damaged\nDETAIL:  log ends at/, "... $table says what is the matter");
}
query('TRUNCATE hot; TRUNCATE still; INSERT INTO still VALUES (7)');
$node->stop('immediate');
$node->append_conf('postgresql.conf', 'mot.ignore_damaged = off');
is(started(), 'started', '... given up, they are needed no more');
is(query('SELECT sum(id) FROM still; SELECT count(*) FROM hot'), "7\n0", '... and what was written since is there');
$node->stop('immediate');
reset_state();
is(started(), 'started', 'undamaged');
is(query($everything), $before, '... everything is there');
$node->stop;

done_testing();
