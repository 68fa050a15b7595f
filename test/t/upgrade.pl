# pg_upgrade: definitions go with it, rows by mot_upgrade.  To this release of the server, or to
# that in UPGRADE_TO=prefix, where mot is installed.  (What 15.20's pg_dump says of columns takes a
# server of the same month.)

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init;
$old->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\n");
$old->start;
$old->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
	CREATE DOMAIN positive AS int CHECK (VALUE > 0);
	CREATE TABLE parent (id bigint PRIMARY KEY, m mood, p positive, t text, n numeric(10, 2), j jsonb, a int[]) USING mot;
	CREATE TABLE child (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, parent bigint REFERENCES parent ON DELETE CASCADE, gone int, t text) USING mot;
	CREATE INDEX child_lower ON child (lower(t));
	CREATE INDEX child_partial ON child (parent) WHERE parent > 50;
	CREATE TABLE on_heap (id int PRIMARY KEY, parent bigint REFERENCES parent);
	CREATE FOREIGN TABLE f (id int PRIMARY KEY, t text COLLATE "C", CHECK (id > 0)) SERVER mot_server;
	CREATE COLLATION mine FROM "C";
	CREATE TABLE collated (t text COLLATE mine PRIMARY KEY) USING mot;
	CREATE UNLOGGED TABLE u (id int PRIMARY KEY) USING mot;
	INSERT INTO parent SELECT g, 'ok', g, 't' || g, g / 3.0, jsonb_build_object('g', g), ARRAY[g, -g] FROM generate_series(1, 100) g;
	INSERT INTO child (parent, gone, t) SELECT g, g, 'T' || g FROM generate_series(1, 100) g;
	INSERT INTO parent VALUES (200, 'sad', 1, repeat('x', 100000));
	ALTER TABLE child DROP gone;
	ALTER TABLE child ADD extra int DEFAULT 7;
	INSERT INTO on_heap SELECT g, g FROM generate_series(1, 100) g;
	INSERT INTO f SELECT g, 'f' || g FROM generate_series(1, 100) g;
	INSERT INTO collated SELECT 'c' || g FROM generate_series(1, 100) g;
	INSERT INTO u SELECT generate_series(1, 100);
});
my $contents = q{SELECT (SELECT md5(string_agg(p::text, ',' ORDER BY id)) FROM parent p), (SELECT md5(string_agg(c::text, ',' ORDER BY id)) FROM child c),
	(SELECT md5(string_agg(f::text, ',' ORDER BY id)) FROM f), (SELECT count(*) FROM collated WHERE t > 'c5'), (SELECT count(*) FROM child WHERE lower(t) = 't70'),
	(SELECT count(*) FROM child WHERE parent = 70)};
my $before = $old->safe_psql('postgres', $contents);
$old->stop;


my @to = $ENV{UPGRADE_TO} ? (install_path => $ENV{UPGRADE_TO}) : ();
my $bin = $old->config_data('--bindir');
my $new_bin = $ENV{UPGRADE_TO} ? "$ENV{UPGRADE_TO}/bin" : $bin;
my $tool = "$new_bin/mot_upgrade";

sub settings
{
	my ($node) = @_;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\n");
}

# ---------------------------------------------------------------- before it

sub refused
{
	my ($what, $why, @arguments) = @_;
	command_fails_like([ $tool, @arguments ], $why, $what);
}

$old->start;
$old->safe_psql('postgres', "UPDATE f SET t = t");
refused('a server that is running', qr/is running, or was killed/, '--check', $old->data_dir);
$old->stop('immediate');
my $pid = $old->data_dir . '/postmaster.pid';
unlink $pid;
refused('a server that was killed', qr/not shut down with a checkpoint/, '--check', $old->data_dir);
$old->start;
$old->stop;
command_like([ $tool, '--check', $old->data_dir ], qr/can be taken over/, 'a server that was stopped');

# ---------------------------------------------------------------- the upgrade

my $new = PostgreSQL::Test::Cluster->new('new', @to);
$new->init(allows_streaming => 1, $new->pg_version >= 18 ? (extra => ['--no-data-checksums']) : ());
settings($new);
command_like([ $tool, '--check', $new->data_dir ], qr/has no memory-optimized tables/, 'a server without any');
chdir $PostgreSQL::Test::Utils::tmp_check;
command_ok([ "$new_bin/pg_upgrade", '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $bin, '-B', $new_bin,
		'-p', $old->port, '-P', $new->port, '-s', $new->host ], 'pg_upgrade')
  or diag(map { substr slurp_file($_), -2000 } glob $new->data_dir . '/pg_upgrade_output.d/*/log/pg_upgrade_dump*');

# (in between nobody takes the tables for empty)
$new->start;
my ($rc, $out, $err) = $new->psql('postgres', 'SELECT count(*) FROM parent');
like($err, qr/has no storage/, 'before mot_upgrade there are no rows, and that is said');
$new->stop;

command_like([ $tool, $old->data_dir, $new->data_dir ], qr/has the rows/, 'mot_upgrade');
command_like([ $tool, $old->data_dir, $new->data_dir ], qr/has the rows already/, 'and once more');
$new->start;
is($new->safe_psql('postgres', $contents), $before, 'all rows are there, and are found');
is($new->safe_psql('postgres', 'SELECT count(*) FROM u'), 0, 'but for unlogged ones, as after any start');
is($new->safe_psql('postgres', 'SELECT count(DISTINCT c.oid), sum(v.problems) FROM pg_class c JOIN pg_am a ON a.oid = c.relam, mot_verify(c.oid) v WHERE amname = $$mot$$'),
	'4|0', 'and mot_verify finds nothing');
$new->restart;
is($new->safe_psql('postgres', $contents), $before, 'also after another start');
is(join(' ', map { s/.*\.//r } glob($new->data_dir . '/mot/*')), 'upgraded', 'from the same files, as long as nobody writes');

# a standby of the new server, from before its first change
$new->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby', @to);
$standby->init_from_backup($new, 'backup', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', $contents), $before, 'on a standby, too');

$new->safe_psql('postgres', q{INSERT INTO child (parent, t) VALUES (99, 'new'); UPDATE parent SET t = 'changed' WHERE id = 50; DELETE FROM f WHERE id = 7; DELETE FROM parent WHERE id = 3 AND false});
($rc, $out, $err) = $new->psql('postgres', 'INSERT INTO f VALUES (-1)');
like($err, qr/check constraint/, 'constraints hold');
($rc, $out, $err) = $new->psql('postgres', 'INSERT INTO child (parent) VALUES (1000)');
like($err, qr/foreign key constraint/, 'foreign keys as well');
my $changed = $new->safe_psql('postgres', $contents);
isnt($changed, $before, 'it can be changed');
$new->wait_for_catchup($standby);
is($standby->safe_psql('postgres', $contents), $changed, 'and the standby follows');
$new->stop('immediate');
$new->start;
is($new->safe_psql('postgres', $contents), $changed, 'a crash loses nothing');
$new->safe_psql('postgres', q{UPDATE f SET t = t WHERE id = 8; CHECKPOINT; UPDATE f SET t = t WHERE id = 8; CHECKPOINT});
is(scalar(grep { /upgraded/ } glob($new->data_dir . '/mot/*')), 0, 'the files of the old cluster are not needed any more');
$standby->promote;
is($standby->safe_psql('postgres', $contents), $changed, 'nor by the standby, promoted');

$new->stop;
refused('a cluster that has rows of its own', qr/has memory-optimized tables of its own/, $old->data_dir, $new->data_dir);
done_testing();
