# What can be done wrong, and go wrong, with pg_upgrade and mot_upgrade: all modes of pg_upgrade,
# wrong arguments, a wrong order, processes that are killed, too little disk and memory.  No row is
# lost, and what to do is said.  From the server that is tested to the last one of UPGRADE_PATH.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../upgrade";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use Upgrade;

my ($first, @servers) = servers();
my $server = $servers[-1];
my $turn = 0;

sub copy_of
{
	my ($node, $version) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($node->name . '_' . ++$turn, defined $version ? (install_path => $version) : ());
	system_or_bail('mkdir', '-p', $copy->basedir);
	system_or_bail('cp', '-a', $node->data_dir, $copy->data_dir);
	$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\n");
	return $copy;
}

my $old = cluster('old', $first, checksums => 0);
$old->start;
fill($old);
$old->safe_psql('postgres', 'CREATE TABLE weight (id int PRIMARY KEY, t text) USING mot; INSERT INTO weight SELECT g, repeat($$w$$, 1000) FROM generate_series(1, 65000) g');
my $contents = contents($old);
my $new = cluster('new', $server, checksums => 0);
my $tool = bin_of($new) . '/mot_upgrade';

sub refused
{
	my ($what, $why, @arguments) = @_;
	command_fails_like([ $tool, @arguments ], $why, $what);
}

sub error_of
{
	my ($node, $sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);
	return $rc == 0 ? "no error: $out" : $err;
}

# ---------------------------------------------------------------- before pg_upgrade

refused('a server that is running', qr/is running, or was killed\n.*Stop it cleanly/, '--check', $old->data_dir);
refused('a server that is running, as the old one', qr/is running, or was killed/, $old->data_dir, $new->data_dir);
$old->stop('immediate');
unlink $old->data_dir . '/postmaster.pid';
refused('a server that was killed', qr/not shut down with a checkpoint.*\n.*Start it with mot, wait until its tables are loaded/, '--check', $old->data_dir);
# (unlogged rows have gone by this)
$old->start;
is(contents($old), $contents, 'it is started once more');
$old->stop;
command_like([ $tool, '--check', $old->data_dir ], qr/can be taken over/, 'a server that was stopped');
command_like([ $tool, '--check', $new->data_dir ], qr/has no memory-optimized tables/, 'a server without any');
refused('the same cluster twice', qr/are the same cluster\n.*Name the old cluster first/, $old->data_dir, $old->data_dir . '/.');
refused('no data directory', qr/is no data directory/, $old->data_dir, $old->basedir);
refused('pg_upgrade forgotten', qr/has not been made from .* by pg_upgrade\n.*Run pg_upgrade first/, $old->data_dir, $new->data_dir);
refused($_->[0], qr/usage: mot_upgrade/, @{ $_->[1] }) for [ 'one directory', [ $old->data_dir ] ], [ 'three', [ ('/tmp') x 3 ] ], [ 'none', [] ], [ 'an option that is not known', [ '--clone', '/a', '/b' ] ];
refused('older into newer', qr/is of a newer version/, $new->data_dir, $old->data_dir) if $new->pg_version > $old->pg_version;

# pg_upgrade's own check finds that mot is not loaded, or not there
my $bare = cluster('bare', $server, checksums => 0);
$bare->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
my $checked = [ bin_of($new) . '/pg_upgrade', '--check', '-d', $old->data_dir, '-D', $bare->data_dir, '-b', bin_of($old), '-B', bin_of($new),
	'-p', $old->port, '-P', $bare->port, '-s', $bare->host ];
chdir work();
command_fails_like_on_stdout($checked, qr/loadable librar/, 'pg_upgrade --check, with mot not in shared_preload_libraries');
like(join('', map { slurp_file($_) } glob($bare->data_dir . '/pg_upgrade_output.d/*/loadable_libraries.txt')), qr/mot was not loaded at server start/, 'which says why');

sub command_fails_like_on_stdout
{
	my ($command, $expected, $what) = @_;
	my ($out, $err) = ('', '');
	my $done = IPC::Run::run($command, '<', \undef, '>', \$out, '2>', \$err);
	ok(!$done, "$what: refused");
	return like($out . $err, $expected, $what);
}

# what means something else in another server is refused of foreign tables as pg_upgrade refuses it
# of ordinary ones
{
	my $from = copy_of($old, $first);
	my $to = cluster('to' . ++$turn, $server, checksums => 0);
	$from->start;
	$from->safe_psql('postgres', 'CREATE TYPE of_functions AS (a int, p regproc[]); CREATE DOMAIN over AS of_functions; CREATE FOREIGN TABLE functions (id int, o over) SERVER mot_server');
	$from->stop;
	ok(!upgrade($from, $to), 'a column with numbers of functions');
	like(join('', map { slurp_file($_) } glob $to->data_dir . '/pg_upgrade_output.d/*/log/pg_upgrade_dump_*'),
		qr/column "o" of memory-optimized table "functions" is of type public\.over, which pg_upgrade cannot take over/, 'is refused');
	$_->clean_node for $from, $to;
}

# ------------------------------------------------------------------------ modes

my $help = qx("@{[bin_of($new)]}/pg_upgrade" --help);
my @modes = ('--copy', grep { $help =~ /$_\b/ } '--clone', '--copy-file-range', '--link', '--swap');
for my $mode (@modes)
{
	my $from = copy_of($old, $first);
	my $to = cluster('to' . ++$turn, $server, checksums => 0);
	my @mode = $mode eq '--copy' ? () : ($mode);
	if ($mode eq '--clone' || $mode eq '--copy-file-range')
	{
		my ($out, $err) = ('', '');
		next if !IPC::Run::run([ 'cp', $mode eq '--clone' ? '--reflink=always' : '--reflink=auto', $from->data_dir . '/PG_VERSION', $from->basedir . '/try' ], '>', \$out, '2>', \$err);
	}
	ok(upgrade($from, $to, @mode), "pg_upgrade $mode");

	# in between nobody takes the tables for empty, or writes beside them
	$to->start;
	for my $sql ('SELECT count(*) FROM parent', 'SELECT count(*) FROM f', 'INSERT INTO labelled VALUES (0)', 'TRUNCATE collated', 'CREATE TABLE more (id int) USING mot', 'ANALYZE parent')
	{
		like(error_of($to, $sql), qr/rows of memory-optimized tables have not been brought from the old cluster\.\n.*run mot_upgrade/s, "before mot_upgrade: $sql");
	}
	is($to->safe_psql('postgres', 'SELECT count(*) FROM on_heap'), 100, 'heap tables are served');
	$to->stop($mode eq '--copy' ? 'immediate' : 'fast');
	$to->start;
	$to->stop;
	refused('the wrong way round', qr/has not got its rows\n.*Name the old cluster first/, $to->data_dir, $from->data_dir) if $from->pg_version == $to->pg_version;
	command_like([ $tool, $mode eq '--link' ? '--link' : (), $from->data_dir, $to->data_dir ], qr/has the rows, and loads/, 'mot_upgrade');
	command_like([ $tool, $from->data_dir, $to->data_dir ], qr/has the rows already/, 'and once more');
	$to->start;
	check_contents($to, $contents, "pg_upgrade $mode");
	$to->safe_psql('postgres', 'UPDATE f SET t = t || $$!$$; CHECKPOINT');
	$to->stop;
	refused('a cluster that has rows of its own', qr/has memory-optimized tables of its own\n.*into a new cluster/, $from->data_dir, $to->data_dir);

	# what is linked is not what is changed
	command_like([ $tool, '--check', $from->data_dir ], qr/can be taken over/, 'the old cluster has its rows');
	if ($mode eq '--copy')
	{
		$from->start;
		is(contents($from), $contents, 'and can still be used');
		$from->stop;
	}
	$_->clean_node for $from, $to;
}

# ------------------------------------------------------------------ killed, and again

# pg_upgrade itself, while it makes the new cluster's tables; the old one goes on
{
	my $from = copy_of($old, $first);
	my $to = cluster('to' . ++$turn, $server, checksums => 0);
	# (it does not get through before it is killed)
	$to->append_conf('postgresql.conf', "mot.fault = 'ddl-commit:wait'\n");
	my $running = IPC::Run::start([ bin_of($to) . '/pg_upgrade', '--link', '-d', $from->data_dir, '-D', $to->data_dir, '-b', bin_of($from), '-B', bin_of($to),
			'-p', $from->port, '-P', $to->port, '-s', $to->host ], '<', \undef, '>', \my $out, '2>&1');
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	while (!-e $to->data_dir . '/mot/awaited' && time < $until) { $running->pump_nb; sleep 0.01 }
	$running->signal('KILL');
	ok(-e $to->data_dir . '/mot/awaited', 'pg_upgrade was killed among its tables');
	# (its pg_restore goes when its server does)
	system(bin_of($_) . '/pg_ctl', '-D', $_->data_dir, '-m', 'immediate', '-w', 'stop') for $from, $to;
	eval { $running->finish };
	$from->start;
	is(contents($from), $contents, 'the old cluster has its rows, and can be used');
	$from->stop;
	$to->clean_node;

	$to = cluster('to' . ++$turn, $server, checksums => 0);
	ok(upgrade($from, $to, '--link'), 'pg_upgrade once more, into a new cluster');

	# mot_upgrade before and after each command that it runs
	my $tools = PostgreSQL::Test::Utils::tempdir;
	for my $command (qw(mkdir chmod cp sync mv rm))
	{
		my ($real) = grep { -x } map { "$_/$command" } split /:/, $ENV{PATH};
		append_to_file("$tools/$command", <<"EOF");
#!/bin/bash
n=\$(( \$(cat "$tools/n.$command" 2>/dev/null || echo 0) + 1 ))
echo \$n >"$tools/n.$command"
[ "\$KILL" != "before $command \$n" ] || { kill -9 \$PPID; exit 1; }
if [ "\$KILL" = "within $command \$n" ]; then
	mkdir "\${\@: -1}"; "$real" "\$(ls -d "\${\@: -2:1}"/* | head -n 3 | tail -n 1)" "\${\@: -1}"; kill -9 \$PPID; exit 1
fi
"$real" "\$\@" || exit
[ "\$KILL" != "after $command \$n" ] || kill -9 \$PPID
EOF
		chmod 0755, "$tools/$command";
	}
	my $seen = 0;
	for my $kill ('before mkdir 1', 'before chmod 1', 'before cp 1', 'within cp 1', 'after cp 1', 'after sync 1', 'before mv 1', 'after mv 1', 'after sync 2', 'before rm 2', 'after rm 2')
	{
		my $again = copy_of($to, $server);
		my ($o, $e) = ('', '');
		unlink glob "$tools/n.*";
		my $done = do {
			local $ENV{KILL} = $kill;
			local $ENV{PATH} = "$tools:$ENV{PATH}";
			IPC::Run::run([ $tool, $from->data_dir, $again->data_dir ], '<', \undef, '>', \$o, '2>', \$e);
		};
		ok(!$done, "mot_upgrade was killed $kill");
		$again->start;
		my $state = error_of($again, 'SELECT count(*) FROM parent');
		like($state, $kill eq 'after rm 2' ? qr/^no error: 101$/ : qr/have not been brought from the old cluster/, 'the tables are refused until it is through');
		$seen++ if $state !~ /^no error/;
		$again->stop;
		command_like([ $tool, $from->data_dir, $again->data_dir ], qr/has the rows/, 'it is run again');
		$again->start;
		is(contents($again), $contents, 'and all rows are there');
		$again->stop;
		is(scalar(() = glob($again->data_dir . '/mot/*.tmp')), 0, 'nothing is left of the first time');
		$again->clean_node;
	}
	cmp_ok($seen, '>=', 9, 'most of them were in time');

	# a full disk
  SKIP:
	{
		skip 'no small disk', 4 if !$ENV{MOT_SMALL_DISK};
		my $small = "$ENV{MOT_SMALL_DISK}/upgrade_modes";
		my $again = copy_of($to, $server);
		my $mot = $again->data_dir . '/mot';
		system_or_bail('mv', $mot, "$small/mot");
		symlink "$small/mot", $mot;
		system('dd', 'if=/dev/zero', "of=$small/filler", 'bs=64k', 'status=none');
		truncate "$small/filler", (-s "$small/filler") - 300000;
		refused('no room', qr/No space left.*the rows could not be copied\n.*Run it again/s, $from->data_dir, $again->data_dir);
		is(join(' ', map { s{.*/}{}r } glob("$mot/*")), 'awaited', 'nothing is left of it');
		refused('links to another disk', qr/could not be linked\n.*without --link they are copied/s, '--link', $from->data_dir, $again->data_dir);
		unlink "$small/filler";
		command_like([ $tool, $from->data_dir, $again->data_dir ], qr/has the rows, and loads/, 'with room it is run again');
		$again->start;
		is(contents($again), $contents, 'and all rows are there');
		$again->stop;
		$again->clean_node;
		system_or_bail('rm', '-r', "$small/mot");
	}

	# a new cluster with too little memory serves what has room, and gets the rest with more
	command_like([ $tool, '--link', $from->data_dir, $to->data_dir ], qr/has the rows, and loads/, 'mot_upgrade --link');
	$to->append_conf('postgresql.conf', "mot.max_memory = '64MB'\n");
	$to->start;
	like(error_of($to, 'SELECT count(*) FROM weight'), qr/HINT:.*mot\.max_memory/s, 'too little memory: a table that has no room says so, and what to do');
	is($to->safe_psql('postgres', 'SELECT tab FROM mot_stat_left_out'), 'weight', 'and is left out');
	is($to->safe_psql('postgres', 'SELECT count(*) FROM labelled'), 10, 'others are there');
	$to->stop;
	$to->append_conf('postgresql.conf', "mot.max_memory = '128MB'\n");

	# the new server without mot: no row is touched
	$to->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
	$to->start;
	like(error_of($to, 'SELECT count(*) FROM parent'), qr/must be loaded at server start.*shared_preload_libraries = 'mot'/s, 'a new server without mot says what it lacks');
	$to->stop;
	$to->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\n");
	$to->start;
	check_contents($to, $contents, 'with memory, and mot');
	$to->stop;
	$to->clean_node;
}

# ------------------------------------------ standbys by rsync, as pg_upgrade's manual says

SKIP:
{
	skip 'no rsync', 3 if system('rsync --version >/dev/null 2>&1') != 0;
	my $from = copy_of($old, $first);
	$from->start;
	$from->backup('b');
	my @after;
	my $standby = PostgreSQL::Test::Cluster->new('standby', defined $first ? (install_path => $first) : ());
	$standby->init_from_backup($from, 'b', has_streaming => 1);
	$standby->start;
	$from->safe_psql('postgres', 'UPDATE f SET t = t || 5; CHECKPOINT; UPDATE f SET t = left(t, -1)');
	$from->wait_for_catchup($standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
	$from->stop;
	$standby->stop;
	my $to = cluster('to' . ++$turn, $server, checksums => 0);
	ok(upgrade($from, $to, '--link'), 'pg_upgrade of a primary');
	command_like([ $tool, '--link', $from->data_dir, $to->data_dir ], qr/has the rows/, 'mot_upgrade of it');

	# docs/upgrading.md: what is run on the standby's machine, and on the primary's
	my ($remove, $rsync) = slurp_file("$FindBin::Bin/../../docs/upgrading.md") =~ /```sh by-hand\n(rm -r .*?)```.*?```sh by-hand\n(rsync .*?)```/s;
	my ($here, $there) = map { my $dir = PostgreSQL::Test::Utils::tempdir; $dir } 1, 2;
	rename $from->data_dir, "$here/old";
	rename $to->data_dir, "$here/new";
	for my $forgotten (0, 1)
	{
		system_or_bail('rm', '-rf', "$there/old");
		system_or_bail('cp', '-a', $standby->data_dir, "$there/old");
		local $ENV{OLD} = "$there/old";
		system_or_bail('bash', '-euc', $remove) if !$forgotten;
		local ($ENV{OLD}, $ENV{NEW}, $ENV{STANDBY}) = ("$here/old", "$here/new", $there);
		system_or_bail('bash', '-euc', $rsync);
		my $after = PostgreSQL::Test::Cluster->new("after_$forgotten", defined $server ? (install_path => $server) : ());
		system_or_bail('mkdir', '-p', $after->basedir);
		rename "$there/new", $after->data_dir;
		$after->append_conf('postgresql.conf', 'port = ' . $after->port . "\n");
		$after->enable_streaming($to);
		push @after, $after;
	}
	rename "$here/new", $to->data_dir;
	$to->start;
	$_->start for @after;
	check_contents($after[0], $contents, 'a standby by rsync');

	# who forgot that has them, or is told that files of two checkpoints are mixed: one is damaged,
	# or rsync has taken the standby's manifest, of the same size and second, for the primary's.
	# Such a standby ends with the first record that concerns memory-optimized tables.
	# It may have ended by now; why, is in its log.
	my $other = error_of($after[1], 'SELECT digests()');
	$other = slurp_file($after[1]->logfile) if $other =~ /could not connect|connection to server|server closed the connection|shutting down/;
	my ($digests) = split /\nft /, $contents;
	like($other, qr/^no error: \Q$digests\E$|damaged|was not made as its server was shut down/, 'without removing mot/ of the old standby nothing wrong is shown');
	note($other =~ /^no error/ ? 'they were the same' : $other);

	$to->safe_psql('postgres', q{INSERT INTO child (parent, t) VALUES (99, 'new'); UPDATE parent SET t = 'changed' WHERE id = 50});
	$to->wait_for_catchup($after[0]);
	my $changed = contents($to);
	is(contents($after[0]), $changed, 'follows');
	$to->stop;
	$after[1]->stop('fast', fail_ok => 1);
	$after[0]->promote;
	check_contents($after[0], $changed, 'and is promoted');
}

done_testing();
