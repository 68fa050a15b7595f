# Prepared.pm
#	  What the tests of prepared transactions share: a server, and tables of three kinds
#	  (ordinary, foreign, heap) to which all is done alike.

package Prepared;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(make_node use_node sql fails prepared make_steps all_equal step_work with_fault wait_death);

my $node;
my $number = 100;

sub use_node { $node = $_[0]; return $node }

sub make_node
{
	my ($name, $conf) = @_;
	use_node(PostgreSQL::Test::Cluster->new($name));
	$node->init(allows_streaming => 1);
	$node->append_conf(
		'postgresql.conf', q{
autovacuum = off
shared_preload_libraries = 'mot'
mot.max_memory = '128MB'
max_prepared_transactions = 20
checkpoint_timeout = '1h'
fsync = off
} . ($conf // ''));
	$node->start;
	sql('CREATE EXTENSION mot');
	return $node;
}

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub fails
{
	my ($sql, $like, $name) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $sql);
	like($err, $like, $name);
	return;
}

sub prepared { return sql('SELECT count(*) FROM pg_prepared_xacts') }

sub make_steps
{
	sql(q{
		CREATE TABLE step_o (id int PRIMARY KEY, v bigint, t text) USING mot;
		CREATE FOREIGN TABLE step_f (id int PRIMARY KEY, v bigint, t text) SERVER mot_server;
		CREATE TABLE step_h (id int PRIMARY KEY, v bigint, t text);
		INSERT INTO step_o SELECT i, 0 FROM generate_series(1, 10) i;
		INSERT INTO step_f SELECT i, 0 FROM generate_series(1, 10) i;
		INSERT INTO step_h SELECT i, 0 FROM generate_series(1, 10) i;
	});
	return;
}

# what all three have, in one statement
sub all_equal
{
	my ($name, $on) = @_;
	my @all = split /\n/, ($on // $node)->safe_psql('postgres', join(' UNION ALL ',
		map { "SELECT count(*), sum(v), md5(string_agg(id || ' ' || v || coalesce(t, ''), ',' ORDER BY id)) FROM step_$_" } qw(o f h)));
	ok($all[0] eq $all[1] && $all[1] eq $all[2], $name) or diag(join("\n", @all));
	return $all[0];
}

# the same in all three; large: more than a piece of the log
sub step_work
{
	my ($large) = @_;
	$number++;
	my $sql = '';
	for (qw(o f h))
	{
		$sql .= "UPDATE step_$_ SET v = v + $number WHERE id <= 3; UPDATE step_$_ SET id = id + 1000 WHERE id = (SELECT max(id) FROM step_$_ WHERE id < 1000 AND id > 10);";
		$sql .= "INSERT INTO step_$_ VALUES ($number, 1, 'new'); DELETE FROM step_$_ WHERE id = 4; INSERT INTO step_$_ VALUES (4, $number);";
		$sql .= "INSERT INTO step_$_ SELECT $number * 10000 + i, 1, repeat('x', 1000) FROM generate_series(1, 1500) i;" if $large;
	}
	return $sql;
}

sub with_fault
{
	my ($fault, $sql) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', "SET mot.fault = '$fault'; $sql");
	return $err;
}

# the postmaster, which may have to be waited for by somebody, and all its children
sub wait_death
{
	my $data = $node->data_dir;
	my $pid = -f "$data/postmaster.pid" ? (split /\n/, slurp_file("$data/postmaster.pid"))[0] : undef;
	for (1 .. 1200)
	{
		my @there = grep { (readlink("/proc/$_/cwd") // '') eq $data } map { m{(\d+)} } glob('/proc/[0-9]*');
		last unless (defined $pid && kill 0, $pid) || @there;
		usleep(50_000);
		# (the server's checkpointer waits for a checkpoint of ours that died)
		kill 9, @there if $_ % 20 == 0;
	}
	$node->{_pid} = undef;
	unlink "$data/postmaster.pid";
	return;
}

1;
