# Memory is refused anywhere in redo: in the midst of a transaction, of a definition, of an index.
# What it has done is taken back, tables are left out and come back, on a standby while it replays
# and while it loads, and after a crash.  In the end all is as in heap tables that did the same.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'not a build with fault points' unless $ENV{MOT_FAULT_POINTS};

my $seed = $ENV{SEED} || 1;
my $rounds = $ENV{ROUNDS} || 8;
srand($seed);

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', q{
autovacuum = off
fsync = off
checkpoint_timeout = 1h
max_prepared_transactions = 5
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
mot.load_workers = 0
});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION mot;
	CREATE SCHEMA m;
	CREATE SCHEMA h;
	CREATE FUNCTION same(OUT tab text, OUT same bool) RETURNS SETOF record LANGUAGE plpgsql AS $$
	DECLARE a text; b text;
	BEGIN
		FOR tab IN SELECT relname FROM pg_class WHERE relnamespace = 'h'::regnamespace AND relkind = 'r' ORDER BY 1 LOOP
			EXECUTE format('SELECT md5(string_agg(x::text, $1 ORDER BY x::text)) FROM h.%I x', tab) INTO a USING ',';
			EXECUTE format('SELECT md5(string_agg(x::text, $1 ORDER BY x::text)) FROM m.%I x', tab) INTO b USING ',';
			same := a IS NOT DISTINCT FROM b;
			RETURN NEXT;
		END LOOP;
	END $$});

# ---------------------------------------------------------------- statements

sub one_of { return $_[ int(rand(@_)) ] }

my %tables;    # name: has a key
my $made = 0;

sub make
{
	my $name = 't' . ++$made;
	$tables{$name} = rand() < 0.7;
	return "CREATE TABLE S.$name (id int NOT NULL, v int, t text);"
	  . ($tables{$name} ? "ALTER TABLE S.$name ADD PRIMARY KEY (id);" : '')
	  . (rand() < 0.5 ? "CREATE INDEX ${name}_v ON S.$name (v, id);" : '')
	  . "INSERT INTO S.$name SELECT i, i % 7, repeat('x', i % 50) FROM generate_series(1, 20 + $made) i;";
}

# S is the schema, T a table
my @statements = (
	q{INSERT INTO S.T SELECT n + i, i, 'new' FROM (SELECT coalesce(max(id), 0) n FROM S.T) m, generate_series(1, 5) i},
	q{UPDATE S.T SET v = v + 1 WHERE id % 5 = 1},
	q{UPDATE S.T SET t = repeat(t, 2) || 'y' WHERE id % 11 = 3 AND length(t) < 2000},
	q{UPDATE S.T x SET id = new FROM (SELECT id old, (SELECT max(id) FROM S.T) + row_number() OVER (ORDER BY id) new FROM S.T WHERE id % 13 = 2) y WHERE id = old},
	q{DELETE FROM S.T WHERE id % 17 = 4},
	q{DELETE FROM S.T WHERE id IN (SELECT max(id) FROM S.T)},
	q{TRUNCATE S.T},
	q{CREATE INDEX IF NOT EXISTS T_w ON S.T (t, v)},
	q{DROP INDEX IF EXISTS S.T_w},
	q{ALTER TABLE S.T ADD COLUMN IF NOT EXISTS n int DEFAULT 7},
	q{ALTER TABLE S.T DROP COLUMN IF EXISTS n},
	q{REINDEX TABLE S.T});

sub transaction
{
	my @done;
	for (1 .. 1 + int(rand(6)))
	{
		if (!%tables || (rand() < 0.15 && keys %tables < 8)) { push @done, make() }
		elsif (rand() < 0.05)
		{
			my $name = one_of(sort keys %tables);
			delete $tables{$name};
			push @done, "DROP TABLE S.$name";
		}
		else
		{
			my $name = one_of(sort keys %tables);
			my $statement = $statements[ rand() < 0.6 ? int(rand(5)) : int(rand(@statements)) ];
			push @done, $statement =~ s/\bT(?=\b|_)/$name/gr;
		}
	}
	my $sql = join(';', @done);
	my ($m, $h) = map { "SET LOCAL default_table_access_method = " . ($_ eq 'm' ? 'mot;' : 'heap;') . $sql =~ s/\bS\./$_./gr } 'm', 'h';
	my $how = rand();
	return "BEGIN; $m; COMMIT; BEGIN; $h; COMMIT;" if $how < 0.5;
	return "BEGIN; $m; $h; COMMIT;" if $how < 0.8 || $sql =~ /CREATE|ALTER|DROP|TRUNCATE|REINDEX/;
	return "BEGIN; $m; $h; PREPARE TRANSACTION 'one'; COMMIT PREPARED 'one';";
}

sub work
{
	$primary->safe_psql('postgres', join("\n", map { transaction() } 1 .. 8));
	return;
}

# the nth time that the engine does something for redo, it has no memory
sub refuse
{
	my ($node, $point, $n, $upto) = @_;
	my $list = join(',', map { "$point:skip:" . (1 + int(rand($upto))) } 1 .. $n);
	$node->append_conf('postgresql.conf', "mot.fault = '$list'\n");
	return;
}

# (on a standby who reads may be the one who applies, and is refused, too)
sub asked
{
	my ($node, $sql) = @_;
	my ($rc, $out, $err);
	for (1 .. 1800)
	{
		($rc, $out, $err) = $node->psql('postgres', $sql);
		last if $rc == 0 || $err !~ /is not in memory/;
		sleep 0.1;
	}
	return $rc == 0 ? $out : $err;
}

my $left_out = 0;

sub all_is_there
{
	my ($node, $what, $from) = @_;
	$node->poll_query_until('postgres', "SELECT state = 'ready' FROM mot_stat_recovery") or die 'not ready';
	$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM mot_stat_left_out') or die 'tables stay left out';
	is(asked($node, 'SELECT tab FROM same() WHERE NOT same'), '', $what);
	is(asked($node, 'SELECT count(*) FROM same()'), scalar(keys %tables), '... of all tables');
	my $n = () = slurp_file($node->logfile, $from) =~ /going on without/g;
	$left_out += $n;
	return $n;
}

# ------------------------------------------------------------------- replay

work();
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
for my $round (1 .. $rounds)
{
	refuse($standby, 'standby-redo-full', 4, 300);
	$standby->reload;
	my $from = -s $standby->logfile;
	work();
	$primary->wait_for_catchup($standby);
	my $n = all_is_there($standby, "round $round: what replay was refused memory for is there", $from);
	note("$n tables left out");
}
cmp_ok($left_out, '>', 0, 'tables were left out meanwhile');

# ------------------------------------------- loading, on a standby and after a crash

for my $round (1 .. $rounds / 2)
{
	$standby->stop(one_of('fast', 'immediate'));
	work();
	refuse($standby, 'standby-redo-full', 4, 300);
	my $from = -s $standby->logfile;
	$standby->start;
	work();
	$primary->wait_for_catchup($standby);
	all_is_there($standby, "round $round: what a standby was refused memory for while it loaded is there", $from);

	refuse($primary, 'load-redo-full', 4, 200);
	$from = -s $primary->logfile;
	$primary->stop('immediate');
	$primary->start;
	all_is_there($primary, '... and after a crash', $from);
	$primary->safe_psql('postgres', 'CHECKPOINT') if $round % 2;
}
refuse($standby, 'standby-redo-full', 4, 100);
$standby->reload;
my $from = -s $standby->logfile;
work();
$primary->stop;
$standby->promote;
all_is_there($standby, 'after a promotion', $from);
is($standby->safe_psql('postgres', "SELECT sum(problems) FROM pg_class c, mot_verify(c.oid) WHERE relnamespace = 'm'::regnamespace AND relkind = 'r'"), '0', '... and in order');
$standby->stop('immediate');
$standby->start;
all_is_there($standby, '... and after it crashed', $from);

done_testing();
