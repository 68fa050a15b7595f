# A subscription's worker has found the row that it is to change by its key, or by all that it has,
# and before it locks it a session gives that another key, changes it or deletes it: only the
# row that is meant is changed, as on the heap table beside it.  And one that is not committed when
# he looks is waited for.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('node');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '96MB'\nautovacuum = off\nfsync = off\nmax_prepared_transactions = 5\nwal_retrieve_retry_interval = '200ms'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE there');
$node->safe_psql($_, 'CREATE EXTENSION mot') for 'postgres', 'there';
my @tables = map { my $am = $_; ("${am}_keyed", "${am}_full") } 'heap', 'mot';
for my $db ('postgres', 'there')
{
	for my $t (@tables)
	{
		my ($am, $kind) = split /_/, $t;
		$node->safe_psql($db, "CREATE TABLE $t (id int" . ($kind eq 'keyed' ? ' PRIMARY KEY' : '') . ", t text) USING $am");
		$node->safe_psql($db, "ALTER TABLE $t REPLICA IDENTITY FULL") if $kind eq 'full';
	}
}
$node->safe_psql('postgres', "CREATE PUBLICATION pub FOR ALL TABLES; SELECT pg_create_logical_replication_slot('sub', 'pgoutput')");
my $connstr = $node->connstr =~ s/'//gr;
$node->safe_psql('there', "CREATE SUBSCRIPTION sub CONNECTION '$connstr dbname=postgres' PUBLICATION pub WITH (create_slot = false, copy_data = false)");
my $go = $node->data_dir . '/mot.fault.go';
my $worker = "SELECT pid FROM pg_stat_activity WHERE backend_type ~ '^logical replication (apply )?worker\$' AND datname = 'there'";

my $waits = "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = ($worker) AND wait_event_type = 'Lock'";

sub rows { return $node->safe_psql('there', "SELECT string_agg(id || '|' || t, ';' ORDER BY id, t) FROM $_[0]") }

# two rows on both sides, or without the first one there
sub anew
{
	my ($t, $missing) = @_;
	$node->safe_psql($_, "SET session_replication_role = replica; TRUNCATE $t") for 'postgres', 'there';
	$node->safe_psql('postgres', "INSERT INTO $t VALUES (1, 'old'), (2, 'other')");
	$node->wait_for_catchup('sub');
	$node->safe_psql('there', "DELETE FROM $t WHERE id = 1") if $missing;
	return;
}

# a worker that stops at its nth row (0: never)
sub restart_worker
{
	my ($nth) = @_;
	$node->safe_psql('there', $nth ? "ALTER DATABASE there SET mot.fault = 'conflict-found:wait:$nth'" : 'ALTER DATABASE there RESET mot.fault');
	my $old = $node->safe_psql('there', $worker);
	$node->safe_psql('there', "SELECT pg_terminate_backend($old)") if $old ne '';
	$node->poll_query_until('there', "SELECT count(*) = 1 FROM ($worker) w WHERE pid::text <> '$old'") or die 'no worker';
}

# What the worker does, and the session meanwhile.  Where the worker waits is not known to heap
# tables; they say what comes of the session's change when it comes first.
my @does = (q{UPDATE T SET t = 'there' WHERE id = 1}, q{DELETE FROM T WHERE id = 1});
my @meanwhile = (
	q{UPDATE T SET id = 11 WHERE id = 1}, q{UPDATE T SET t = 'here' WHERE id = 1}, q{DELETE FROM T WHERE id = 1},
	q{UPDATE T SET id = 11 WHERE id = 1; INSERT INTO T VALUES (1, 'old')});
for my $kind ('keyed', 'full')
{
	for my $does (@does)
	{
		for my $meanwhile (@meanwhile)
		{
			my %came;
			for my $t ("heap_$kind", "mot_$kind")
			{
				my ($do, $change) = map { s/\bT\b/$t/gr } $does, $meanwhile;
				anew($t);
				if ($t =~ /^heap/)
				{
					$node->safe_psql('there', $change);
					$node->safe_psql('postgres', $do);
				}
				else
				{
					restart_worker(1);
					my $from = -s $node->logfile;
					$node->safe_psql('postgres', $do);
					ok($node->wait_for_log(qr/fault point "conflict-found" reached/, $from), "$t: it has been found");
					$node->safe_psql('there', $change);
					append_to_file($go, '');
				}
				$node->wait_for_catchup('sub');
				unlink $go;
				$came{$t} = rows($t);
				restart_worker(0) if $t =~ /^mot/;
			}
			is($came{"mot_$kind"}, $came{"heap_$kind"}, "... $does, and meanwhile $meanwhile");
		}
	}
}

# what is meant is there, but not committed
for my $does (@does)
{
	for my $case ([ q{INSERT INTO T VALUES (1, 'old')}, 'COMMIT' ], [ q{INSERT INTO T VALUES (1, 'old')}, 'ROLLBACK' ],
		[ q{UPDATE T SET id = 1, t = 'old' WHERE id = 2}, 'COMMIT' ], [ q{UPDATE T SET id = 1, t = 'old' WHERE id = 2}, 'ROLLBACK' ])
	{
		my ($here, $end) = @$case;
		my %came;
		for my $t (map { ("heap_$_", "mot_$_") } 'keyed', 'full')
		{
			my ($do, $change) = map { s/\bT\b/$t/gr } $does, $here;
			anew($t, 1);
			my $session = $node->background_psql('there');
			$session->query_safe("BEGIN; $change");
			$node->safe_psql('postgres', $do);
			ok($node->poll_query_until('there', $waits), "$t: $does waits for $here");
			$session->query_safe($end);
			$session->quit;
			$node->wait_for_catchup('sub');
			$came{$t} = rows($t);
		}
		is($came{"mot_$_"}, $came{"heap_$_"}, "... $_, $end: as heap") for 'keyed', 'full';
	}
}
# ... and its transaction's savepoints come and go meanwhile
for my $case ([ 'RELEASE s', 'SAVEPOINT s; I' ], [ 'ROLLBACK TO s', q{I; SAVEPOINT s; INSERT INTO T VALUES (5, 'x')} ],
	[ 'RELEASE s', q{I; SAVEPOINT s; INSERT INTO T VALUES (5, 'x')} ], [ 'ROLLBACK TO s', 'I; SAVEPOINT s; DELETE FROM T WHERE id = 1' ])
{
	my ($end, $here) = @$case;
	my %came;
	for my $t ('heap_full', 'mot_full')
	{
		my $change = $here =~ s/\bI\b/INSERT INTO T VALUES (1, 'old')/r =~ s/\bT\b/$t/gr;
		anew($t, 1);
		my $session = $node->background_psql('there');
		$session->query_safe("BEGIN; $change");
		$node->safe_psql('postgres', "UPDATE $t SET t = 'there' WHERE id = 1");
		ok($node->poll_query_until('there', $waits), "$t: it waits for $here");
		$session->query_safe($end);
		usleep(300_000);
		ok($node->poll_query_until('there', $waits), "... still after $end");
		$session->query_safe('COMMIT');
		$session->quit;
		$node->wait_for_catchup('sub');
		$came{$t} = rows($t);
	}
	is($came{mot_full}, $came{heap_full}, "... $here, $end: as heap");
}

# what the worker itself has prepared, it does not wait for: it is who ends that
$node->safe_psql('there', 'ALTER SUBSCRIPTION sub DISABLE; ALTER SUBSCRIPTION sub SET (slot_name = NONE); DROP SUBSCRIPTION sub');
$node->poll_query_until('postgres', q{SELECT NOT active FROM pg_replication_slots WHERE slot_name = 'sub'});
$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('sub'); SELECT pg_create_logical_replication_slot('sub', 'pgoutput', false, true)});
$node->safe_psql('there', "CREATE SUBSCRIPTION sub CONNECTION '$connstr dbname=postgres' PUBLICATION pub WITH (create_slot = false, copy_data = false, two_phase = true)");
for my $restarted (0, 1)
{
	anew('mot_full', 1);
	$node->safe_psql('postgres', q{BEGIN; INSERT INTO mot_full VALUES (7, 'prepared'); PREPARE TRANSACTION 'p'});
	$node->wait_for_catchup('sub');
	is($node->safe_psql('there', 'SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()'), '1', 'the worker has prepared one');
	if ($restarted)
	{
		$node->stop('immediate');
		$node->start;
	}
	$node->safe_psql('postgres', q{UPDATE mot_full SET t = 'there' WHERE id = 1; COMMIT PREPARED 'p'});
	ok($node->poll_query_until('there', 'SELECT count(*) = 2 FROM mot_full'), '... and goes past it, where a row is not there, to its end');
	is(rows('mot_full'), '2|other;7|prepared', '... with its rows');
}
# nor does he wait for those who apply a large transaction beside him, who wait for what he brings
SKIP:
{
	skip 'one process applies all before PostgreSQL 16', 4 if $node->safe_psql('postgres', 'SHOW server_version_num') < 160000;
	$node->safe_psql('postgres', $_) for "ALTER SYSTEM SET logical_decoding_work_mem = '64kB'", 'SELECT pg_reload_conf()';
	$node->safe_psql('there', 'ALTER SUBSCRIPTION sub SET (streaming = parallel)');
	anew('mot_full', 1);
	my $large = $node->background_psql('postgres');
	$large->query_safe(q{BEGIN; INSERT INTO mot_full SELECT i, 'large' FROM generate_series(101, 5100) i});
	$node->safe_psql('postgres', q{INSERT INTO heap_full VALUES (0, 'flushes')});
	ok($node->poll_query_until('there', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'logical replication parallel worker' AND backend_xid IS NOT NULL"), 'a large transaction is applied beside it');
	my $from = -s $node->logfile;
	$node->safe_psql('postgres', q{UPDATE mot_full SET t = 'there' WHERE id = 1});
	ok($node->wait_for_log(qr/logical replication (did not find row to be updated|target relation .* conflict)|conflict detected on relation|deadlock detected/, $from), '... a row is not found');
	$large->query_safe('COMMIT');
	$large->quit;
	$node->wait_for_catchup('sub');
	is($node->safe_psql('there', 'SELECT count(*) FROM mot_full'), '5001', '... and comes to its end');
	unlike(slurp_file($node->logfile, $from), qr/deadlock detected/, '... without a deadlock');
}
$node->safe_psql('there', 'ALTER SUBSCRIPTION sub DISABLE; ALTER SUBSCRIPTION sub SET (slot_name = NONE); DROP SUBSCRIPTION sub');
$node->stop;
done_testing();
