# Other modules with hooks in the executor, before and behind mot in
# shared_preload_libraries: whoever keeps something from the start of an
# execution to its end sees both or neither.  Those that are not installed are
# left out.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $libdir = `pg_config --pkglibdir`;
chomp $libdir;
my @known = (
	[ 'pgaudit', "pgaudit.log = 'all'\npgaudit.log_catalog = off\n" ],
	[ 'pg_stat_statements', "pg_stat_statements.track = 'all'\n" ],
	[ 'auto_explain', "auto_explain.log_min_duration = 0\nauto_explain.log_analyze = on\nauto_explain.log_nested_statements = on\n" ],
	[ 'pg_qualstats', "pg_qualstats.sample_rate = 1\n" ],
	[ 'pg_stat_statements, pg_stat_kcache', "pg_stat_kcache.track = 'all'\n" ],
	[ 'pg_wait_sampling', '' ],
	[ 'set_user', '' ],
	# (it does not call others' shmem_request_hook, so nobody can be before it)
	[ 'plprofiler', '', 'only before' ],
	[ 'plugin_debugger', '' ],
	[ 'plpgsql_check', '' ],
	[ 'pg_stat_statements, pgaudit, auto_explain', "pgaudit.log = 'all'\n" ]);

my $node = PostgreSQL::Test::Cluster->new('beside');
$node->init;
$node->append_conf('postgresql.conf', "mot.max_memory = '64MB'\ninclude 'modules.conf'\n");

sub preload
{
	my ($list, $conf) = @_;
	my $file = $node->data_dir . '/modules.conf';
	$node->stop if -f $file;
	unlink $file;
	append_to_file($file, "shared_preload_libraries = '$list'\n$conf");
	$node->start;
}
preload('mot', '');

# the same on both kinds of table, each statement often enough to be run in every way there is
sub script
{
	my ($kind) = @_;
	my $create = $kind eq 'mot' ? "FOREIGN TABLE t (id integer PRIMARY KEY, v integer, w text) SERVER mot_server" : "TABLE t (id integer PRIMARY KEY, v integer, w text)";
	my $sql = <<SQL;
CREATE SCHEMA $kind;
SET search_path = $kind, public;
SET plan_cache_mode = force_generic_plan;
CREATE $create;
CREATE FUNCTION bump(i integer) RETURNS integer LANGUAGE plpgsql AS \$\$
DECLARE
	n integer;
BEGIN
	FOR j IN 1 .. 6 LOOP
		UPDATE t SET v = v + 1 WHERE id = i RETURNING v INTO n;
		BEGIN
			INSERT INTO t VALUES (i, 0);
		EXCEPTION WHEN unique_violation THEN
			n := n + 0;
		END;
		PERFORM count(*) FROM t a JOIN t b ON a.id = b.v;
	END LOOP;
	RETURN n;
END
\$\$;
PREPARE ins (integer) AS INSERT INTO t VALUES (\$1, \$1, 'w');
PREPARE sel (integer) AS SELECT v, w FROM t WHERE id = \$1;
PREPARE upd (integer) AS UPDATE t SET v = v + 1 WHERE id = \$1;
PREPARE del (integer) AS DELETE FROM t WHERE id = \$1;
PREPARE agg AS SELECT count(*), sum(v) FROM t;
PREPARE ups (integer) AS INSERT INTO t VALUES (\$1, 0) ON CONFLICT (id) DO UPDATE SET v = 7 RETURNING xmax = 0;
SQL
	for my $i (1 .. 8)
	{
		$sql .= "BEGIN; EXECUTE ins ($i); EXECUTE sel ($i); SAVEPOINT s; EXECUTE upd ($i); ROLLBACK TO s; EXECUTE upd ($i); COMMIT;\n";
		$sql .= "EXECUTE ins ($i); EXECUTE agg; EXECUTE ups ($i + 4);\n";
		$sql .= "BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id; FETCH 2 FROM c; EXECUTE ins (1); ROLLBACK;\n";
	}
	$sql .= "SELECT bump(3); SELECT bump(4); EXECUTE del (5); EXECUTE del (5); EXECUTE del (6); EXECUTE del (7); EXECUTE del (8); EXECUTE agg;\n";
	$sql .= "ALTER TABLE t ADD COLUMN x integer DEFAULT 5; EXECUTE agg; SELECT * FROM t ORDER BY id; CREATE INDEX ON t (v); TRUNCATE t; EXECUTE agg;\n";
	$sql .= "COPY t FROM STDIN;\n1\t1\ta\t1\n2\t2\tb\t2\n\\.\nSELECT * FROM t ORDER BY id; DROP TABLE t;\n";
	$sql .= "DROP SCHEMA $kind CASCADE;\n";
	return $sql;
}

# a driver's way to prepare: no utility statement is around the executions
my $transaction = "$PostgreSQL::Test::Utils::tmp_check/transaction.sql";
append_to_file($transaction, "BEGIN;\nSELECT v FROM pairs WHERE id = 1;\nUPDATE pairs SET v = v + 1 WHERE id = 2 RETURNING v;\nINSERT INTO pairs VALUES (3, 0) ON CONFLICT (id) DO UPDATE SET v = 1;\nCOMMIT;\n");

sub run_prepared
{
	my ($out, $err);
	$node->safe_psql('postgres', 'CREATE FOREIGN TABLE pairs (id integer PRIMARY KEY, v integer) SERVER mot_server; INSERT INTO pairs VALUES (1, 1), (2, 2)');
	IPC::Run::run([ 'pgbench', '-n', '-M', 'prepared', '-t', 20, '-f', $transaction, '-h', $node->host, '-p', $node->port, 'postgres' ], '>', \$out, '2>', \$err);
	my $v = $node->safe_psql('postgres', 'SELECT v FROM pairs WHERE id = 2; DROP FOREIGN TABLE pairs');
	return join(', ', $out =~ /processed: (\S+)/, $v, $err =~ /(ERROR:.*)/);
}

sub run_script
{
	my ($kind) = @_;
	my ($out, $err) = ('', '');
	$node->psql('postgres', script($kind), stdout => \$out, stderr => \$err, on_error_stop => 0);
	$err =~ s/^psql:<stdin>:\d+: //mg;
	$err =~ s/foreign table/table/g;
	$err =~ s/^(LINE|DETAIL|CONTEXT|NOTICE|HINT).*\n//mg;
	return "$out\n$err";
}

$node->safe_psql('postgres', 'CREATE EXTENSION mot');
my $expected = run_script('heap');
like($expected, qr/duplicate key value/, 'the script');
is(run_script('mot'), $expected, 'mot alone');
for my $known (@known)
{
	my ($names, $conf, $only_before) = @$known;
  SKIP:
	{
		my @missing = grep { !-f "$libdir/$_.so" } split(/, /, $names);
		skip "@missing is not installed", 4 if @missing;
		my %audited;
		for my $list ($only_before ? () : "mot, $names", "$names, mot")
		{
			preload($list, $conf);
			my $logged = -s $node->logfile;
			is(run_script('mot'), $expected, $list);
			if ($names =~ /pgaudit/)
			{
				# which statements, of which class, at which nesting (DDL is in steps of our own)
				my $log = slurp_file($node->logfile, $logged);
				for my $line ($log =~ /AUDIT: (\S+,\S+,\S+,(?:READ|WRITE),.*)/g)
				{
					$line =~ s/^\w+,\d+,\d+,//;
					$line =~ s/\b(heap|mot)\b/KIND/g;
					$audited{$list}{$line}++;
				}
				$logged = -s $node->logfile;
				run_script('heap');
				$log = slurp_file($node->logfile, $logged);
				for my $line ($log =~ /AUDIT: (\S+,\S+,\S+,(?:READ|WRITE),.*)/g)
				{
					$line =~ s/^\w+,\d+,\d+,//;
					$line =~ s/\b(heap|mot)\b/KIND/g;
					$audited{"$list heap"}{$line}++;
				}
				is_deeply($audited{$list}, $audited{"$list heap"}, 'what is audited is what is of heap tables');

				# with its event triggers, which want to be within its hook
				$logged = -s $node->logfile;
				$node->safe_psql('postgres', <<SQL);
CREATE EXTENSION pgaudit;
CREATE TABLE others (id integer) PARTITION BY LIST (id);
CREATE TABLE other PARTITION OF others DEFAULT;
ALTER TABLE others ADD v integer;
DROP EXTENSION pgaudit;
DROP TABLE others;
SQL
				like(slurp_file($node->logfile, $logged), qr/DDL,CREATE TABLE,TABLE,public.other,.*DDL,ALTER TABLE,TABLE,public.others,/s,
					'... also with its event triggers');
			}
			is(run_prepared(), '20/20, 22', '... and prepared by a driver');
		}
	}
}
$node->stop;
done_testing();
