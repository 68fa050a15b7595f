# Loading builds indexes from sorted keys, one for each process: of a table in
# several files and of small ones, in memory and in temporary files, with keys
# of many shapes.  What they take is no more than before; a process that dies
# while it builds one, or whose memory is out, leaves nothing behind.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../doors";
use Served;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $node = PostgreSQL::Test::Cluster->new('loaded');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '512MB'
mot.load_workers = 2
maintenance_work_mem = '1MB'
restart_after_crash = off
mot.fault = ''
});
$node->start;
sub query { return $node->safe_psql('postgres', $_[0]) }

query(
	q{
	CREATE EXTENSION mot;
	CREATE FOREIGN TABLE large (id int PRIMARY KEY, r int, few int, word text, path text, filler text) SERVER mot_server;
	INSERT INTO large SELECT i::bigint * 7919 % 1000003, hashint4(i), nullif(i % 7, 3), md5(i::text), '/some/where/' || repeat('deeper/', i % 9) || i % 500, repeat('x', 900)
		FROM generate_series(1, 90000) i;
	CREATE INDEX ON large (r);
	CREATE INDEX ON large (few, word);
	CREATE INDEX ON large (path);
	CREATE UNIQUE INDEX ON large (few, id);
	CREATE FOREIGN TABLE small (id int PRIMARY KEY, t text) SERVER mot_server;
	INSERT INTO small VALUES (1, 'one'), (2, repeat('two', 800));
	CREATE INDEX ON small (t);
	CREATE FOREIGN TABLE none (id int PRIMARY KEY) SERVER mot_server;
});

sub content
{
	return query(
		q{
	SELECT count(*), sum(id), sum(r), md5(string_agg(word, '' ORDER BY id)) FROM large;
	SET enable_seqscan = off;
	SELECT count(*) FROM large WHERE path = '/some/where/deeper/deeper/11';
	SELECT count(*), sum(length(word)) FROM large WHERE few IS NULL;
	SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM large ORDER BY few, word) s;
	SELECT count(*) FROM small WHERE t = repeat('two', 800);
	SELECT count(*) FROM none});
}

sub problems
{
	return query(q{SELECT sum(problems) FROM unnest(ARRAY['large', 'small', 'none']) t, mot_verify(t::regclass)});
}

my $content = content();
$node->restart;
is(content(), $content, 'all is there');
is(problems(), '0', '... and rows and indexes agree');
# Compared with what CREATE INDEX makes of the same rows: numbers of rows, which
# are part of keys, depend on which process has loaded what.
query('CREATE INDEX again_r_idx ON large (r); CREATE INDEX again_few_word_idx ON large (few, word); CREATE INDEX again_path_idx ON large (path);
	CREATE UNIQUE INDEX again_few_id_idx ON large (few, id)');
my %bytes = map { split /\|/ } split /\n/, query("SELECT indexrelname, used_bytes FROM mot_stat_indexes WHERE relname = 'large'");
for my $index (map { /^again_(.*)/ ? $1 : () } sort keys %bytes)
{
	cmp_ok($bytes{"large_$index"}, '<=', $bytes{"again_$index"}, "... $index takes no more than one that is created");
}
query('DROP INDEX again_r_idx, again_few_word_idx, again_path_idx, again_few_id_idx');
cmp_ok(scalar(glob($node->data_dir . '/mot/*/*.1')) ? 1 : 0, '==', 1, 'the table is in several files');

query('INSERT INTO large SELECT -i, i, i, i FROM generate_series(1, 1000) i; DELETE FROM large WHERE id % 5 = 0; UPDATE large SET path = word WHERE id % 5 = 1');
is(problems(), '0', 'changes go into them');
my ($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO large SELECT * FROM large LIMIT 1');
like($err, qr/duplicate key value violates unique constraint/, '... and none that must not');
$content = content();

# ------------------------------------------------- somebody dies while at it
for my $fault ('load-index:killall:3', 'load-index:kill:2', 'load-index:fatal:2', 'load-index:error:2')
{
	$node->stop('fast') if $node->{_pid};
	$node->adjust_conf('postgresql.conf', 'mot.fault', "'$fault'");
	my $from = -s $node->logfile;
	$node->start(fail_ok => 1);
	ok($node->wait_for_log(qr/fault point "load-index" reached/, $from), "$fault: reached");
	sleep 0.5;
	$node->stop('immediate', fail_ok => 1);
	gone($node) or die;
	$node->adjust_conf('postgresql.conf', 'mot.fault', "''");
	$node->start;
	is(content(), $content, '... and all is there the next time');
	is(problems(), '0', '... sound');
	is(scalar(glob($node->data_dir . '/base/pgsql_tmp/*')), undef, '... without files left over');
}

$node->stop;
done_testing();
