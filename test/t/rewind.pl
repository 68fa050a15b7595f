# pg_rewind of an old primary with memory-optimized tables: its commits that
# never arrived are gone, those of the new primary are there, in both kinds of
# tables; whatever the old primary was doing when it ended, and whatever
# checkpoints the source takes while its files are copied.  pg_rewind copies
# all of mot/ from the source, file by file, by a list that it has made first.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../crash";
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

# tables by both doors, and of heap
my @kinds = (
	[ 'a', 'TABLE', 'USING mot' ],
	[ 'b', 'TABLE', 'USING heap' ],
	[ 'c', 'FOREIGN TABLE', 'SERVER mot_server' ]);
my %conf;
my ($old, $new);	# the servers of a round
my $round = 0;

# on all of them the same
sub change
{
	my ($node, $sql) = @_;
	my $all = 'BEGIN;';
	$all .= $sql =~ s/\bT\b/t_$_->[0]/gr . ';' for @kinds;
	$node->safe_psql('postgres', "$all COMMIT");
	return;
}

sub rows
{
	my ($node, $kind) = @_;
	return $node->safe_psql('postgres', "SELECT count(*), sum(id), md5(string_agg(id || ' ' || v, ',' ORDER BY id)) FROM t_$kind");
}

sub both
{
	$round++;
	$old = PostgreSQL::Test::Cluster->new("old$round");
	$old->init(allows_streaming => 1);
	$old->append_conf('postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
wal_log_hints = on
wal_keep_size = '512MB'
max_prepared_transactions = 5
});
	$old->start;
	$old->safe_psql('postgres', 'CREATE EXTENSION mot;' . join('', map { "CREATE $_->[1] t_$_->[0] (id int PRIMARY KEY, v text) $_->[2];" } @kinds));
	change($old, "INSERT INTO T SELECT i, 'first ' || i FROM generate_series(1, 2000) i");
	$old->backup('base');
	$new = PostgreSQL::Test::Cluster->new("new$round");
	$new->init_from_backup($old, 'base', has_streaming => 1);
	$new->start;
	change($old, "UPDATE T SET v = 'second ' || id WHERE id % 3 = 0");
	$conf{ $_->name } = slurp_file($_->data_dir . '/postgresql.conf') for $old, $new;
	return;
}

# The standby takes over without what the primary does from now on.
sub diverge
{
	my ($how, $meanwhile) = @_;
	$old->wait_for_catchup($new, 'replay');
	$new->promote;
	change($old, "DELETE FROM T WHERE id % 5 = 0");
	change($old, "INSERT INTO T SELECT i, 'lost' FROM generate_series(3001, 4000) i");
	$old->safe_psql('postgres', 'CREATE TABLE lost (v int) USING mot; INSERT INTO lost VALUES (1)');
	$meanwhile->() if $meanwhile;
	if ($how eq 'crash') { $old->stop('immediate') }
	else { $old->stop('fast') }
	change($new, "UPDATE T SET v = 'new ' || id WHERE id % 7 = 0");
	$new->safe_psql('postgres', 'CHECKPOINT');
	return;
}

sub rewind
{
	my (@more) = @_;
	return [ 'pg_rewind', '--source-server', $new->connstr('postgres'), '--target-pgdata', $old->data_dir,
		'--config-file', $old->data_dir . '/postgresql.conf', @more ];
}

# the old primary, rewound, follows
sub follow
{
	my ($what) = @_;
	open(my $fh, '>', $old->data_dir . '/postgresql.conf') or die;
	print $fh $conf{ $old->name };
	close $fh;
	unlink $old->data_dir . '/postgresql.auto.conf';
	$old->enable_streaming($new);
	$old->start;
	change($new, "UPDATE T SET v = 'after ' || id WHERE id % 11 = 0");
	$new->wait_for_catchup($old, 'replay', $new->lsn('insert'));
	for (map { $_->[0] } @kinds)
	{
		is(rows($old, $_), rows($new, $_), "$what: t_$_ has what the new primary has");
		is(rows($old, $_), rows($new, 'b'), "$what: ... and what heap has");
	}
	is($old->safe_psql('postgres', "SELECT to_regclass('lost')"), '', "$what: a table that was lost is gone");

	# it leads, and its own checkpoints are right
	$old->promote;
	change($old, "INSERT INTO T SELECT 9000, 'leads'");
	$old->stop('immediate');
	$old->start;
	is(rows($old, $_), rows($old, 'b'), "$what: t_$_ after it was promoted and crashed") for 'a', 'c';
	like(rows($old, 'b'), qr/^2001\|/, "$what: ... whole");
	is($old->safe_psql('postgres', "SELECT sum(problems) FROM mot_verify('t_a')"), '0', "$what: ... with its indexes");
	unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ' has no crash in its log') for $old, $new;
	$_->stop('immediate') for $old, $new;
	return;
}

# ------------------------------------------------- stopped, and crashed

for my $how ('stop', 'crash')
{
	for my $checkpoint (0, 1)
	{
		both();
		diverge($how, $checkpoint ? sub { $old->safe_psql('postgres', 'CHECKPOINT') } : undef);
		command_ok(rewind(), "pg_rewind after: $how, checkpoint $checkpoint");
		follow("$how, checkpoint $checkpoint");
	}
}

# ------------------------------- with transactions that were prepared, and lost

both();
$old->safe_psql('postgres', "BEGIN; UPDATE t_a SET v = 'kept' WHERE id = 1; UPDATE t_b SET v = 'kept' WHERE id = 1; PREPARE TRANSACTION 'kept'");
diverge('crash', sub {
	$old->safe_psql('postgres', "BEGIN; UPDATE t_a SET v = 'lost' WHERE id = 2; UPDATE t_b SET v = 'lost' WHERE id = 2; PREPARE TRANSACTION 'lost'; CHECKPOINT");
});
command_ok(rewind(), 'pg_rewind with prepared transactions');
$new->safe_psql('postgres', "COMMIT PREPARED 'kept'; UPDATE t_c SET v = 'kept' WHERE id = 1");
follow('prepared');

# --------------------------- checkpoints of the source while files are copied

both();
diverge('stop');
# What comes before mot/ takes a while: when it is there the list has been made.
# (pg_rewind is held from outside, where it may be in a statement or between two.)
my $filler = $new->data_dir . '/aaa_filler';
open(my $fh, '>', $filler) or die;
truncate($fh, 300 * 1024 * 1024) or die;
close $fh;
my ($copying) = grep { $_ } map { s{.*/}{}r } glob($new->data_dir . '/mot/*0*');
my ($out, $err) = ('', '');
my $rewind = IPC::Run::start(rewind('--no-sync'), '>', \$out, '2>', \$err);
my $pid = $rewind->{KIDS}[0]{PID};
for (1 .. 30000)
{
	last if -s $old->data_dir . '/aaa_filler' || !$rewind->pumpable;
	sleep 0.001;
}
kill 'STOP', $pid;
ok(-s $old->data_dir . '/aaa_filler' && ! -s $old->data_dir . "/mot/$copying/manifest", 'pg_rewind is at its copying, before mot/');
for (1 .. 3)
{
	change($new, "UPDATE T SET v = 'meanwhile $_ ' || id WHERE id % 13 = $_");
	$new->safe_psql('postgres', 'SELECT pg_switch_wal(); CHECKPOINT');
}
ok(-d $new->data_dir . "/mot/$copying", 'the checkpoint that it is to copy is kept');
kill 'CONT', $pid;
ok($rewind->finish, 'pg_rewind beside checkpoints') or diag($err);
change($new, "UPDATE T SET v = 'and then ' || id WHERE id % 17 = 0");
$new->safe_psql('postgres', 'CHECKPOINT');
ok(! -d $new->data_dir . "/mot/$copying", '... which goes when that is done');
unlink $filler, $old->data_dir . '/aaa_filler';
follow('beside checkpoints');

# -------------------------------------------------- from a standby of the source

both();
my $cascade = PostgreSQL::Test::Cluster->new('cascade');
$cascade->init_from_backup($old, 'base');
$cascade->enable_streaming($new);
$cascade->start;
diverge('crash', sub { $old->safe_psql('postgres', 'CHECKPOINT') });
change($new, "UPDATE T SET v = 'more ' || id WHERE id % 2 = 0");
$new->safe_psql('postgres', 'CHECKPOINT');
$new->wait_for_catchup($cascade, 'replay');
$cascade->safe_psql('postgres', 'CHECKPOINT');
change($new, "UPDATE T SET v = 'yet more ' || id WHERE id % 19 = 0");
$new->wait_for_catchup($cascade, 'replay');
command_ok([ map { $_ eq $new->connstr('postgres') ? $cascade->connstr('postgres') : $_ } @{ rewind() } ], 'pg_rewind from a standby');
$cascade->stop('immediate');
follow('from a standby');

done_testing();
