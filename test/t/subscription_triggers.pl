# What a subscription applies to memory-optimized tables is what it does to heap tables, beside
# triggers that see old and new rows, rows that their own transaction has made, and sessions that
# change the same rows.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('node');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '128MB'\nautovacuum = off\nwal_retrieve_retry_interval = '200ms'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE there');
$node->safe_psql($_, 'CREATE EXTENSION mot') for 'postgres', 'there';

sub twins
{
	return join ';', map { my $am = $_; map { s/\bS_(\w+)/${1}_$am/gr =~ s/\bXAM\b/$am/gr } @_ } 'heap', 'mot';
}

my @tables = ('CREATE TABLE S_keyed (id int PRIMARY KEY, u int UNIQUE, v text) USING XAM', 'CREATE TABLE S_bare (id int, v text) USING XAM', 'ALTER TABLE S_bare REPLICA IDENTITY FULL');
$node->safe_psql('postgres', twins(@tables) . ";CREATE PUBLICATION pub FOR ALL TABLES; SELECT pg_create_logical_replication_slot('sub', 'pgoutput')");
$node->safe_psql('there', twins(@tables, 'CREATE TABLE S_log (n serial, what text) USING XAM',
	q{CREATE FUNCTION S_told() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.S_log (what) VALUES (TG_OP || TG_WHEN || coalesce(OLD::text, '') || coalesce(NEW::text, '')); RETURN coalesce(NEW, OLD); END $$},
	map { ("CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON S_$_ FOR EACH ROW EXECUTE FUNCTION S_told()", "ALTER TABLE S_$_ ENABLE ALWAYS TRIGGER a") } 'keyed', 'bare'));
my $connstr = $node->connstr =~ s/'//gr;
$node->safe_psql('there', "CREATE SUBSCRIPTION sub CONNECTION '$connstr dbname=postgres' PUBLICATION pub WITH (create_slot = false, copy_data = false)");
$node->poll_query_until('there', "SELECT count(*) >= 4 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel") or die 'no subscription';

sub is_same
{
	my ($name) = @_;

	$node->wait_for_catchup('sub');
	for my $t ('keyed', 'bare')
	{
		my $sql = "SELECT coalesce(string_agg(x::text, ' ' ORDER BY x::text), 'none') FROM ${t}_mot x";
		is($node->safe_psql('there', $sql), $node->safe_psql('postgres', $sql), "$name: $t");
	}
	# (the rows of a statement come in the order in which its scan finds them)
	my $log = "SELECT string_agg(what, E'\\n' ORDER BY what) FROM log_heap";
	is($node->safe_psql('there', $log =~ s/heap/mot/r), $node->safe_psql('there', $log), "$name: what triggers have seen");
}

$node->safe_psql('postgres', $_) for
  twins("INSERT INTO S_keyed VALUES (1, 1, 'a'), (2, 2, 'b')", "INSERT INTO S_bare VALUES (1, 'a'), (1, 'a'), (2, 'b')"),
  twins("UPDATE S_keyed SET v = 'c' WHERE id = 1", "UPDATE S_bare SET v = 'c' WHERE id = 1");
is_same('one by one');
$node->safe_psql('postgres', 'BEGIN;' . twins("INSERT INTO S_keyed VALUES (3, 3, 'd')", "UPDATE S_keyed SET v = 'e' WHERE id = 3", "UPDATE S_keyed SET id = 4, u = 5 WHERE id = 3", "UPDATE S_keyed SET v = 'f'", "DELETE FROM S_keyed WHERE id = 2",
	"INSERT INTO S_bare VALUES (5, 'd')", "UPDATE S_bare SET v = 'e' WHERE id = 5", "UPDATE S_bare SET v = v || 'f'", "DELETE FROM S_bare WHERE id = 5") . '; COMMIT');
is_same('rows of the same transaction');

# the worker waits for a session that changes the row, and goes on with what that has made of it
for my $am ('heap', 'mot')
{
	my $session = $node->background_psql('there');
	$session->query_safe("BEGIN; UPDATE keyed_$am SET v = v || 'here' WHERE id = 1; UPDATE bare_$am SET v = v || '' WHERE id = 2");
	$node->safe_psql('postgres', "BEGIN; UPDATE keyed_$am SET u = 7 WHERE id = 1; UPDATE bare_$am SET v = 'there' WHERE id = 2; COMMIT");
	$node->poll_query_until('there', "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%' AND wait_event_type = 'Lock'") or die 'nobody waits';
	$session->query_safe('COMMIT');
	$session->quit;
}
is_same('rows that a session was changing');
unlike(slurp_file($node->logfile), qr/ERROR:|FATAL:/, 'nothing had to be tried again');

$node->safe_psql('there', 'DROP SUBSCRIPTION sub');
$node->stop;
done_testing();
