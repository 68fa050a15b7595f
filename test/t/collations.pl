# Keys in the order of a collation.  It is the order of the library that is there: after a restart
# with another definition of the locale, after a crash, and on a standby that has another one.
# Nobody works with an index that was made by another definition than his.  And where sort keys are
# not what strcoll says, answers are right.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

# a locale of our own, which is one of two: Danish has capitals first, and "aa" last
my $locales = PostgreSQL::Test::Utils::tempdir();
my $theirs = $ENV{LOCPATH};
system('localedef', '-i', 'da_DK', '-f', 'UTF-8', "$locales/da_DK.utf8") if !-d "$locales/da_DK.utf8";
ok(-f "$locales/da_DK.utf8/LC_COLLATE", 'there is a second locale');

sub locpath
{
	my ($name, $which) = @_;
	my $dir = "$locales/$name";
	mkdir $dir;
	system("rm -rf $dir/*; cp -r $theirs/* $dir/; cp -r $which $dir/xx_XX.utf8") == 0 or die;
	return $dir;
}
my $english = "$theirs/en_US.utf8";
my $danish = "$locales/da_DK.utf8";

$ENV{LOCPATH} = locpath('primary', $english);
my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1, extra => [ '--locale=en_US.UTF-8', '--encoding=UTF8' ]);
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '256MB'
restart_after_crash = off
});
$node->start;
sub query { return $node->safe_psql('postgres', $_[0]) }

my $rows = q{SELECT i, (ARRAY['aa','Aa','A','a','b','B','ab','az','å','-a','a-a','zz','Ø','o','ae','æ'])[1 + i % 16] || (ARRAY['','x','X',' ','-'])[1 + i / 16 % 5] || CASE WHEN i % 3 = 0 THEN i::text ELSE '' END, i % 4 FROM generate_series(1, 400) i};
query(
	qq{
	CREATE EXTENSION mot;
	CREATE COLLATION xx (provider = libc, locale = 'xx_XX.UTF-8');
	CREATE COLLATION icu (provider = icu, locale = 'en');
	CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE TABLE heap (id int PRIMARY KEY, s text COLLATE xx, n int);
	CREATE TABLE t (id int, s text COLLATE xx, n int, d text GENERATED ALWAYS AS (s || id) STORED, u text COLLATE icu, PRIMARY KEY (s, id)) USING mot;
	CREATE FOREIGN TABLE f (id int, s text COLLATE xx, n int, PRIMARY KEY (s, id)) SERVER mot_server;
	CREATE INDEX t_ns ON t (n, s DESC);
	CREATE INDEX t_d ON t (d);
	CREATE INDEX t_u ON t (u);
	CREATE TABLE names (s text COLLATE ci PRIMARY KEY, v int) USING mot;
	INSERT INTO names SELECT 'Name ' || i, i FROM generate_series(1, 50) i;
	INSERT INTO heap $rows;
	CREATE TABLE broken AS SELECT s FROM heap;
	CREATE INDEX ON broken (s);
	INSERT INTO t (id, s, n, u) SELECT id, s, n, s FROM heap;
	INSERT INTO f SELECT * FROM heap;
	ANALYZE t;
	ANALYZE f;
	CHECKPOINT;
});

# what is asked of all three, by index where there is one; heap has none, and sorts
sub same
{
	my ($name, $server, %other) = @_;
	my @queries = (
		'SELECT id, s FROM {t} ORDER BY s, id',
		'SELECT id, s FROM {t} WHERE s > \'ab\' AND s <= \'b\' ORDER BY s DESC, id DESC',
		'SELECT id, n, s FROM {t} WHERE n = 1 AND s < \'az\' ORDER BY n, s DESC, id',
		'SELECT id FROM {t} WHERE s = \'aax\' ORDER BY id',
		'SELECT min(s), max(s) FROM {t}',
		'SELECT id FROM {t} WHERE s LIKE \'a%\' ORDER BY id',
		'SELECT id FROM {t} WHERE s < \'A\' OR s > \'zy\' OR (s = \'b\' AND id > 3) ORDER BY id',
		'SELECT id FROM {t} WHERE (s, id) > (\'lie:az\', 100) ORDER BY s, id LIMIT 20',
		'SELECT id, n, s FROM {t} WHERE n IN (1, 2) AND s BETWEEN \'a\' AND \'lie:b\' ORDER BY id',
		'SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.s = b.s AND a.n = 1 AND b.n < 2 ORDER BY a.s, a.id, b.id',
		'SELECT id, s FROM {t} WHERE s >= \'lie:aa\' ORDER BY s, id LIMIT 10');
	my $good = 1;
	foreach my $q (@queries)
	{
		my %answer;
		foreach my $table ('heap', 't', 'f')
		{
			my $asked = $q;
			$asked =~ s/\{t\}/$table/g;
			my $plans = $table eq 'heap' ? 'SET enable_indexscan = off;' : 'SET enable_seqscan = off; SET enable_sort = off;';
			$answer{$table} = $server->safe_psql('postgres', "$plans $asked");
		}
		foreach my $table ('t', 'f')
		{
			next if $answer{$table} eq $answer{heap};
			$good = 0;
			diag("$name: $q of $table\n$answer{$table}\nheap:\n$answer{heap}");
		}
	}
	ok($good, $name);
	return;
}

sub plan_of { return $_[0]->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN (COSTS off) $_[1]") }
sub change
{
	my ($some) = @_;
	query("UPDATE $_ SET s = s || '$some', n = n + 1 WHERE id % 5 = 0; DELETE FROM $_ WHERE id % 17 = 3 AND s > 'a-'; UPDATE $_ SET n = n + 2 WHERE s = 'aax'") foreach ('heap', 't', 'f');
	query("UPDATE names SET v = v + 1 WHERE s = 'NAME 7'; UPDATE names SET s = 'NAME 8', v = 0 WHERE s = 'name 8'");
	query(qq{INSERT INTO heap SELECT nextval('more'), 'new$some' || i, 1 FROM generate_series(1, 3) i;
		INSERT INTO t (id, s, n) SELECT h.id, h.s, h.n FROM heap h WHERE s LIKE 'new$some%'; INSERT INTO f SELECT * FROM heap WHERE s LIKE 'new$some%'});
	return;
}
query('CREATE SEQUENCE more START 1000');

same('as it was made', $node);
unlike(plan_of($node, 'SELECT s FROM t ORDER BY s, id LIMIT 3'), qr/Sort/, 'the index brings the order');
unlike(plan_of($node, 'SELECT d FROM t ORDER BY d LIMIT 3'), qr/Sort/, 'also in the order of the database');
unlike(plan_of($node, 'SELECT u FROM t ORDER BY u LIMIT 3'), qr/Sort/, "and in ICU's");

# a standby with another definition of the locale
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$ENV{LOCPATH} = locpath('standby', $danish);
$standby->start;
$ENV{LOCPATH} = "$locales/primary";
change('x');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
same('on the primary', $node);
same('on a standby whose library has another order', $standby);
isnt($standby->safe_psql('postgres', 'SELECT string_agg(s, \',\') FROM (SELECT s FROM t ORDER BY s, id) x'),
	query('SELECT string_agg(s, \',\') FROM (SELECT s FROM t ORDER BY s, id) x'), 'the orders are different');
is($standby->safe_psql('postgres', "SELECT v FROM names WHERE s = 'nAmE 7'; SELECT s FROM names WHERE s = 'name 8'"),
	"8\nNAME 8", 'and equal strings of a nondeterministic collation are found');

# heap's index is as it was made, which is not the order any more
my $of_index = 'SET enable_seqscan = off; SET enable_sort = off; SELECT string_agg(s, $$,$$) FROM (SELECT s FROM broken ORDER BY s) x';
my $sorted = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT string_agg(s, $$,$$) FROM (SELECT s FROM broken ORDER BY s) x';
is(query($of_index), query($sorted), q{an index of heap's is in order});
isnt($standby->safe_psql('postgres', $of_index), $standby->safe_psql('postgres', $sorted), '... and not with another library');

# a crash: rows of the checkpoint, and of the log behind it
$node->stop('immediate');
$node->start;
same('after a crash', $node);
change('y');

# another definition at the next start
$node->stop;
locpath('primary', $danish);
$node->start;
same('started with another definition', $node);
unlike(plan_of($node, 'SELECT s FROM t ORDER BY s, id LIMIT 3'), qr/Sort/, 'the index brings this order, too');
like(query('SELECT string_agg(s, \',\') FROM (SELECT s FROM t WHERE s IN (\'A\', \'a\', \'Aa\', \'zz\') ORDER BY s, id) x'), qr/^A,.*a,.*zz,Aa(,Aa)*$/s, 'which is the new one');
change('z');
$node->stop('immediate');
locpath('primary', $english);
$node->start;
same('and back, after a crash', $node);
is(query('SELECT sum(problems) FROM (SELECT (mot_verify(o)).problems FROM unnest(ARRAY[\'t\', \'f\', \'names\']::regclass[]) o) x'), '0', 'nothing is missing');

# replaced below a running server
locpath('primary', $danish);
my ($result, $out, $err) = $node->psql('postgres', 'SELECT s FROM t WHERE s > \'a\' ORDER BY s LIMIT 1');
like($err, qr/collation of an index is not what it was when the server was started/, 'a definition that was replaced meanwhile is noticed');
locpath('primary', $english);
same('with the old one it goes on', $node);

# and a locale that is gone
$node->stop;
system("rm -r $locales/primary/xx_XX.utf8");
$node->start;
is(query('SELECT count(*) > 100 FROM t; SELECT count(*) FROM f WHERE n < 0; SELECT count(*) FROM names'), "t\n0\n50", 'without the locale rows are there');
$node->stop;
locpath('primary', $english);
$node->start;
same('with the locale again', $node);

# What fits by a definition whose sort keys are short fits by others, and so does what came without
# one.
my ($long, $longer) = ("repeat(chr(96 + i), 1900)", "repeat(chr(96 + i), 2100)");
$node->stop;
locpath('primary', "$theirs/C.utf8");
$node->start;
query("CREATE TABLE wide (a text COLLATE xx, b text COLLATE xx, c int, PRIMARY KEY (a, b)) USING mot; INSERT INTO wide SELECT $long, $long, i FROM generate_series(1, 9) i");
($result, $out, $err) = $node->psql('postgres', "INSERT INTO wide SELECT $longer, $longer, i FROM generate_series(10, 10) i");
like($err, qr/index row size exceeds maximum 4062 for index "wide_pkey"/, 'a text that would not fit by another definition is refused');
$node->stop;
system("rm -r $locales/primary/xx_XX.utf8");
$node->start;
query("INSERT INTO wide SELECT $long, $long, i FROM generate_series(11, 12) i");
($result, $out, $err) = $node->psql('postgres', "INSERT INTO wide SELECT $longer, $longer, i FROM generate_series(10, 10) i");
like($err, qr/index row size exceeds maximum 4062 for index "wide_pkey"/, 'without the locale, too');
$node->stop;
locpath('primary', $english);
$node->start;
is(query("SET enable_seqscan = off; SELECT string_agg(c::text, ' ' ORDER BY c) FROM wide; SELECT c FROM wide WHERE a = repeat('k', 1900) AND b = repeat('k', 1900); SELECT sum(problems) FROM mot_verify('wide')"),
	"1 2 3 4 5 6 7 8 9 11 12\n11\n0", 'with longer sort keys all rows are loaded');
same('as are those of other tables', $node);

# Sort keys that strcoll does not agree with: those of strings that begin with "lie:" are of what
# follows.
same('before a lie', $node);
unlike(plan_of($node, 'SELECT s FROM t ORDER BY s, id LIMIT 3'), qr/Sort/, 'bounds that lie say nothing of the index');
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT s FROM t ORDER BY s, id; SET enable_seqscan = off; PREPARE p AS SELECT s FROM t WHERE s > $1 ORDER BY s, id LIMIT 5;');
$session->query_safe("FETCH 5 FROM c; EXECUTE p ('o')") foreach (1 .. 3);
foreach my $table ('heap', 't', 'f')
{
	my ($columns, $values) = ('id, s, n', "(5000, 'lie:zzzz', 1), (5001, 'lie:aaa', 1)");
	query("BEGIN; INSERT INTO $table ($columns) VALUES $values; ROLLBACK; INSERT INTO $table ($columns) VALUES $values");
}
same('with a lie', $node);
is($session->query_safe("EXECUTE p ('o')"), query("SET enable_indexscan = off; SELECT s FROM heap WHERE s > 'o' ORDER BY s, id LIMIT 5"), 'also by a plan from before');
my $rest = $session->query_safe('FETCH ALL FROM c; COMMIT');
unlike($rest, qr/lie:/, 'a cursor from before sees none');
$session->quit;
like(plan_of($node, 'SELECT s FROM t ORDER BY s, id LIMIT 3'), qr/Sort/, 'the planner knows');
like(plan_of($node, 'SELECT s FROM f ORDER BY s, id LIMIT 3'), qr/Sort/, 'of foreign tables, too');
like(plan_of($node, "SELECT n FROM t WHERE s = 'b' AND id = 4"), qr/Index Cond: \(\(s = 'b'::text\) AND \(id = 4\)\)/, 'equality is served');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
same('and a standby', $standby);
query("DELETE FROM $_ WHERE s = 'lie:zzzz'; UPDATE $_ SET s = 'truth' WHERE s = 'lie:aaa'") foreach ('heap', 't', 'f');
same('when it is gone', $node);
query("INSERT INTO heap VALUES (6000, 'lie:b', 1); INSERT INTO t (id, s, n) VALUES (6000, 'lie:b', 1); INSERT INTO f VALUES (6000, 'lie:b', 1)");
$node->restart;
same('a lie that is loaded', $node);
like(plan_of($node, 'SELECT s FROM t ORDER BY s, id LIMIT 3'), qr/Sort/, 'is noticed then');
query("DELETE FROM $_ WHERE s = 'lie:b'") foreach ('heap', 't', 'f');
$node->restart;
same('without it', $node);
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t WHERE s = \'truth\''), '1', 'the standby follows');

$standby->stop;
$node->stop;
done_testing();
