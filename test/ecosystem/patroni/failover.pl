# Three nodes of Patroni's with one etcd, and the clients of the crash tests
# (crash/Ledger.pm): failover.pl PORT, from which on ports are taken.
#
# The leader's postgres, its Patroni or both are killed under load; it is asked
# to hand over; all that with the slot "mot" left to mot, and once more while
# Patroni drops it.  After each round nothing is lost that a client waited
# for, in either kind of table, and three nodes have the same rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HTTP::Tiny;
use JSON::PP;
use Ledger;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $dir = $FindBin::Bin;
my $first_port = shift @ARGV;
my $seed = int($ENV{SEED} || 1);
my $bin = $ENV{PATH} =~ s/:.*//r;
my $etcd;
my %patroni;	# name => pid of the daemon that we started
my @names = map { "node$_" } 1 .. 3;
my $http = HTTP::Tiny->new(timeout => 5);
srand($seed);

# ------------------------------------------------- what Ledger.pm asks of a server

package Member;

sub new
{
	my ($class, $name, @ports) = @_;
	return bless { name => $name, ports => \@ports }, $class;
}

sub name { return $_[0]->{name} }
sub data_dir { return "$dir/$_[0]->{name}" }
sub start { return }

sub connstr
{
	my ($self, $database) = @_;
	my @ports = @{ $self->{ports} };
	my $attrs = @ports > 1 ? ' target_session_attrs=read-write' : '';
	return "host=" . join(',', ('127.0.0.1') x @ports) . " port=" . join(',', @ports) . " user=postgres dbname=$database connect_timeout=5$attrs";
}

sub psql
{
	my ($self, $database, $sql) = @_;
	my ($out, $err);
	my $good = IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $self->connstr($database), '-f', '-' ],
		'<', \$sql, '>', \$out, '2>', \$err);
	chomp($out, $err);
	return ($good ? 0 : 1, $out, $err);
}

sub safe_psql
{
	my ($self, @what) = @_;
	my ($ret, $out, $err) = $self->psql(@what);
	die "$self->{name}: $what[1]: $err" if $ret;
	return $out;
}

package main;

my %port = map { $names[$_] => $first_port + $_ } 0 .. 2;
my %rest = map { $names[$_] => $first_port + 3 + $_ } 0 .. 2;
my ($etcd_client, $etcd_peer) = ($first_port + 6, $first_port + 7);
my %member = map { $_ => Member->new($_, $port{$_}) } @names;
my $all = Member->new('cluster', map { $port{$_} } @names);

# ----------------------------------------------------------------- processes

sub daemon
{
	my ($log, @command) = @_;
	my $pid = fork;
	die "fork: $!" unless defined $pid;
	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>>', $log);
		open(STDERR, '>>', $log);
		exec(@command) or POSIX::_exit(127);
	}
	return $pid;
}

sub start_patroni
{
	my ($name) = @_;
	$patroni{$name} = daemon("$dir/patroni-$name.log", 'patroni', "$dir/$name.yml");
	return;
}

sub kill_patroni
{
	my ($name) = @_;
	kill 'KILL', $patroni{$name};
	waitpid($patroni{$name}, 0);
	return;
}

# the server with all of its processes
sub kill_postgres
{
	my ($name) = @_;
	my $server = bless { node => $member{$name} }, 'Ledger';
	my @pids = $server->processes;
	kill 'STOP', @pids;
	kill 'KILL', @pids;
	return Ledger::wait_gone(30, @pids);
}

END
{
	my $status = $?;
	kill 'KILL', values %patroni, $etcd // ();
	kill_postgres($_) for @names;
	$? = $status;
}

# ---------------------------------------------------------- what Patroni says

sub get
{
	my ($name, $path) = @_;
	my $answer = $http->get("http://127.0.0.1:$rest{$name}/$path");
	return $answer->{status} < 599 ? eval { decode_json($answer->{content}) } : undef;
}

# what all members are at, by the word of one that answers
sub members
{
	for (@names)
	{
		my $cluster = get($_, 'cluster') or next;
		return map { $_->{name} => $_ } @{ $cluster->{members} };
	}
	return;
}

sub leader
{
	my %now = members();
	my ($name) = grep { $now{$_}{role} eq 'leader' && ($now{$_}{state} // '') eq 'running' } keys %now;
	return $name;
}

sub wait_for
{
	my ($what, $seconds, $test) = @_;
	my $until = time + $seconds;
	while (time < $until)
	{
		my $answer = $test->();
		return $answer if $answer;
		sleep 0.2;
	}
	diag("waited $seconds s for: $what");
	return;
}

# another one, or anybody, takes writes
sub wait_leader
{
	my ($not) = @_;
	return wait_for('a leader', 60, sub {
		my $name = leader() or return;
		return if $not && $name eq $not;
		my ($ret, $out) = $member{$name}->psql('postgres', 'SELECT pg_is_in_recovery()');
		return $ret == 0 && $out eq 'f' ? $name : undef;
	});
}

# three of them, on one timeline, one of the replicas synchronous
sub wait_three
{
	return wait_for('three nodes', 90, sub {
		my $name = leader() or return;
		my %now = members();
		return if keys %now < 3;
		my %timeline = map { ($_->{timeline} // '?') => 1 } values %now;
		return if keys %timeline > 1 || grep { $_->{state} !~ /^(running|streaming)$/ } values %now;
		return unless grep { $_->{role} eq 'sync_standby' } values %now;
		my ($ret, $n) = $member{$name}->psql('postgres', "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'");
		return $ret == 0 && $n eq '2' ? $name : undef;
	});
}

sub slots
{
	my ($name) = @_;
	return $member{$name}->safe_psql('postgres', "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'mot'");
}

sub configure
{
	my ($settings) = @_;
	my $answer = $http->request('PATCH', "http://127.0.0.1:$rest{$names[0]}/config", { content => encode_json($settings) });
	die "PATCH: $answer->{content}" unless $answer->{success};
	return;
}

# -------------------------------------------------------------------- set up

$etcd = daemon("$dir/etcd.log", 'etcd', '--data-dir', "$dir/etcd", '--name', 'one', '--unsafe-no-fsync',
	'--listen-client-urls', "http://127.0.0.1:$etcd_client", '--advertise-client-urls', "http://127.0.0.1:$etcd_client",
	'--listen-peer-urls', "http://127.0.0.1:$etcd_peer", '--initial-advertise-peer-urls', "http://127.0.0.1:$etcd_peer",
	'--initial-cluster', "one=http://127.0.0.1:$etcd_peer");

# the documents' configuration, at a test's pace
my ($dynamic) = slurp_file("$dir/scale-out.md") =~ /^```yaml\n(.*?)^```/ms or die;
my %pace = (ttl => 10, loop_wait => 1, retry_timeout => 4, 'mot.max_memory' => '256MB');
for my $key (keys %pace) { $dynamic =~ s/^( *\Q$key\E: ).*/$1$pace{$key}/m or die "$key is not in the documents" }
$dynamic =~ s/^/    /gm;

for my $name (@names)
{
	open(my $fh, '>', "$dir/$name.yml") or die;
	print $fh qq{
scope: mot
name: $name
restapi: {listen: "127.0.0.1:$rest{$name}", connect_address: "127.0.0.1:$rest{$name}"}
etcd3: {host: "127.0.0.1:$etcd_client"}
bootstrap:
  dcs:
$dynamic
  initdb: [encoding: UTF8, locale: C]
postgresql:
  listen: 127.0.0.1:$port{$name}
  connect_address: 127.0.0.1:$port{$name}
  data_dir: $dir/$name
  bin_dir: $bin
  pgpass: $dir/$name.pgpass
  authentication:
    superuser: {username: postgres}
    replication: {username: postgres}
  parameters: {unix_socket_directories: $dir, shared_buffers: 32MB, max_connections: 60, autovacuum: "off",
    log_destination: stderr, logging_collector: "off"}
  pg_hba: [host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust, local all all trust]
};
	close $fh;
}
start_patroni($names[0]);
ok(wait_leader(), 'the first node leads');
start_patroni($_) for @names[1, 2];
my $leader = wait_three();
ok($leader, 'the two others follow') or BAIL_OUT('no cluster');

my $ledger = bless {
	node => $all, engine => Ledger::default_engine(), cycle => 0, pids => [], writers => 4, dir => "$dir/notes" }, 'Ledger';
mkdir $ledger->{dir};
$ledger->begin;

# ------------------------------------------------------------------- rounds

# clients write, something happens to the leader, and somebody leads afterwards
sub round
{
	my ($what, $happens, %expect) = @_;
	my $old = $leader;
	my @wrong;

	$ledger->start_clients($seed + $ledger->{cycle});
	sleep 2 + rand(1);
	$member{$leader}->safe_psql('postgres', 'CHECKPOINT') if rand() < 0.5;
	sleep 1;
	my $began = time;
	$happens->($old);
	my $new = wait_leader($expect{another} ? $old : undef) or push @wrong, 'nobody leads';
	my $gap = time - $began;
	if ($new && !@wrong)
	{
		# A Patroni that finds its server still running takes synchronous_standby_names away from it
		# before it stops it: what waits for a standby is acknowledged then.  So do a watchdog's
		# part.
		if (!kill 0, $patroni{$old})
		{
			kill_postgres($old);
			start_patroni($old);
		}
		$leader = wait_three() or push @wrong, 'it does not come back';
	}
	$ledger->wait_clients;
	push @wrong, $ledger->verify unless @wrong;
	push @wrong, compare() unless @wrong;
	is(join("\n", @wrong), '', sprintf('%s: %d commits, another leads after %.0f s', $what, $ledger->committed, $gap));
	if (@wrong)
	{
		diag(`tail -n 40 $dir/patroni-*.log`);
		BAIL_OUT("SEED=$seed");
	}
	$ledger->settle;
	return;
}

# all have what the leader has
sub compare
{
	my $lsn = $member{$leader}->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	my $want = Ledger::content($member{$leader});
	my @wrong;

	for my $name (grep { $_ ne $leader } @names)
	{
		wait_for("$name to replay", 60, sub {
			return $member{$name}->safe_psql('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't' }) or push @wrong, "$name lags";
		my $has = Ledger::content($member{$name});
		push @wrong, "$leader:\n$want\n$name:\n$has" if $has ne $want;
		push @wrong, map { "$name: $_" } $ledger->verify_content($member{$name});
	}
	return @wrong;
}

my $kill_both = sub { kill_patroni($_[0]); kill_postgres($_[0]) };
round('postgres and Patroni of the leader killed', $kill_both, another => 1);
round('postgres of the leader killed', sub { kill_postgres($_[0]) });
round('Patroni of the leader killed', sub { kill_patroni($_[0]) }, another => 1);
round('a switchover', sub {
	my ($old) = @_;
	my $answer = $http->post("http://127.0.0.1:$rest{$old}/switchover", { content => encode_json({ leader => $old }) });
	diag("switchover: $answer->{status} $answer->{content}") unless $answer->{success};
}, another => 1);

# ------------------------------------------------------------------- the slot

# what Patroni says that it has dropped
sub dropped
{
	return join(' ', grep { slurp_file("$dir/patroni-$_.log") =~ /Dropped unknown replication slot 'mot'/ } @names);
}

is(join(' ', map { slots($_) } @names), '1 1 1', 'with ignore_slots each has the slot of memory-optimized tables');
is(dropped(), '', '... which Patroni has left alone');
configure({ ignore_slots => undef });
round('postgres and Patroni of the leader killed, without ignore_slots', $kill_both, another => 1);
like(dropped(), qr/\b$leader\b/, '... Patroni drops it where it promotes');
$member{$leader}->safe_psql('postgres', 'CHECKPOINT');
is(slots($leader), '1', '... and the next checkpoint makes it anew');

my $rewound = () = map { slurp_file("$dir/patroni-$_.log") =~ /^.* INFO: running pg_rewind from dbname=.*$/mg } @names;
cmp_ok($rewound, '>=', 2, "old leaders were rewound: $rewound times");
done_testing();
