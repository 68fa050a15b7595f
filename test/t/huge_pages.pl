# Huge pages for memory-optimized tables: what is said when they cannot be had,
# what is shown, and that everything works with them where there are some.
# Alone: it looks at how many huge pages the machine has, which any server takes.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('huge_pages');
$node->init;
$node->append_conf('postgresql.conf', "autovacuum = off\nrestart_after_crash = on\nshared_preload_libraries = 'mot'\n");

my $log_seen = 0;

sub new_log
{
	my $log = slurp_file($node->logfile, $log_seen);
	$log_seen = -s $node->logfile;
	return $log;
}

sub setting { return $node->safe_psql('postgres', "SHOW $_[0]") }

# more than all the memory there is, so whatever is reserved is too little
my ($installed) = slurp_file('/proc/meminfo') =~ /^MemTotal:\s+(\d+) kB/m;
my $mb = 2 * int($installed / 1024 + 1);
# beside it the hints: 4 bytes for 256 bytes, or for less than twice as many
my $hints = 1;
$hints *= 2 while $hints * 2 <= $mb * 4096;
my $pages = $mb / 2 + $hints * 4 / 2**21;
$node->append_conf('postgresql.conf', "mot.max_memory = '${mb}MB'\n");
$node->start;
is(setting('mot.huge_pages'), 'try', 'huge pages are tried');
is(setting('mot.huge_pages_status'), 'off', '... and this machine has not so many');
is(setting('mot.memory_in_huge_pages'), $pages, 'how many they would be is shown');
my $server = setting('shared_memory_size_in_huge_pages');
my $all = $pages + ($server > 0 ? $server : 0);
my $log = new_log();
like(
	$log,
	qr/LOG:  memory-optimized tables go without huge pages: \S.*\n.*HINT:  They take $pages huge pages, .* vm\.nr_hugepages has to be at least $all\./,
	'the log tells what is missing');
$node->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE FOREIGN TABLE t (id int PRIMARY KEY, v text) SERVER mot_server');
$node->safe_psql('postgres', "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i");
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 20000, 'tables work without');

# off says nothing
$node->append_conf('postgresql.conf', "mot.huge_pages = off\n");
$node->restart;
unlike(new_log(), qr/huge pages/, 'nothing is logged where they are not asked for');
is(setting('mot.huge_pages_status'), 'off', '... and none are used');

# on goes without tables
$node->append_conf('postgresql.conf', "mot.huge_pages = on\n");
$node->restart;
$log = new_log();
like($log, qr/LOG:  could not reserve $mb MB for memory-optimized tables: the server starts without them.*DETAIL:  \S.* huge pages/s,
	'where they have to be had, the server starts without tables');
my ($ret, $out, $err) = $node->psql('postgres', 'SELECT count(*) FROM t');
like($err, qr/ERROR:  memory-optimized tables are not available/, '... which statements say');

for my $name ('mot.huge_pages_status', 'mot.memory_in_huge_pages')
{
	($ret, $out, $err) = $node->psql('postgres', "SET $name = 1");
	like($err, qr/ERROR:  parameter "$name" cannot be changed/, "$name only shows");
}

# with them
SKIP:
{
	my ($free) = slurp_file('/proc/meminfo') =~ /^HugePages_Free:\s+(\d+)/m;
	my ($kept) = slurp_file('/proc/meminfo') =~ /^HugePages_Rsvd:\s+(\d+)/m;
	my ($size) = slurp_file('/proc/meminfo') =~ /^Hugepagesize:\s+(\d+) kB/m;
	$free = 0 unless defined $free && $size == 2048;
	skip 'this machine has not 33 free huge pages of 2 MB', 7 if $free < 33 + ($kept || 0);

	$node->append_conf('postgresql.conf', "huge_pages = off\nmot.max_memory = '64MB'\n");
	$node->restart;
	is(setting('mot.huge_pages_status'), 'on', 'huge pages are used where there are enough');
	is($node->safe_psql('postgres', 'SELECT system_bytes FROM mot_stat_memory'), 64 << 20, '... all of them from the start');
	is($node->safe_psql('postgres', 'SELECT count(*), sum(length(v)) FROM t'), '20000|10000000', 'rows come back');

	# all of the memory used and given back, several times
	my $rounds = $node->safe_psql(
		'postgres', q{
		DO $$
		BEGIN
			FOR i IN 1..4 LOOP
				DELETE FROM t;
				COMMIT;
				BEGIN
					INSERT INTO t SELECT i, repeat('y', 20000) FROM generate_series(1, 10000) i;
					RAISE 'there was room';
				EXCEPTION WHEN out_of_memory THEN
					NULL;
				END;
				TRUNCATE t;
				INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i;
				COMMIT;
			END LOOP;
		END $$;
		SELECT count(*), sum(length(v)) FROM t});
	is($rounds, '20000|10000000', 'memory is used again');

	# a crash: what was there is not taken for anything
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'mot maintenance'");
	new_log();
	kill 'KILL', $pid;
	$log = '';
	for (1 .. 600)
	{
		$log .= new_log();
		last if $log =~ /database system is ready to accept connections/;
		select(undef, undef, undef, 0.1);
	}
	like($log, qr/database system is ready to accept connections/, 'the server starts over after a crash');
	is($node->safe_psql('postgres', 'SELECT count(*), sum(length(v)) FROM t'), '20000|10000000', 'rows come back');
	is(setting('mot.huge_pages_status'), 'on', '... to huge pages');
}

$node->stop;
done_testing();
