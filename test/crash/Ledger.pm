# Ledger.pm
#	  What the crash tests share: the tables that their clients (ledger.c) work
#	  on, the clients, ways to die, and what has to hold afterwards.
#
# All tables exist twice, on the engine under test (.._a) and on heap (.._b).
# With ENGINE=heap the first are heap tables, too: that tests the tests.

package Ledger;

use strict;
use warnings;

use Cwd ();
use File::Basename qw(basename dirname);
use POSIX qw(:sys_wait_h);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $program = dirname(__FILE__) . '/ledger';

# numbers of a cycle's entries: from cycle * EPOCH
use constant EPOCH => 1_000_000;

sub default_engine { return $ENV{ENGINE} // 'mot' }

sub new
{
	my ($class, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($params{name});
	my $self = bless {
		node => $node,
		engine => $params{engine} // default_engine(),
		cycle => 0,
		pids => [],
		writers => $params{writers} // 5,
		# (of this test: others run beside it)
		dir => "$PostgreSQL::Test::Utils::tmp_check/" . basename($0, '.pl') . "_$params{name}_notes",
	}, $class;
	mkdir $self->{dir};
	$node->init(allows_streaming => $params{allows_streaming} // 1, extra => $params{initdb} // []);
	$node->append_conf(
		'postgresql.conf', q{
shared_preload_libraries = 'mot'
mot.max_memory = '512MB'
max_connections = 40
log_min_messages = log
log_statement = none
autovacuum = off
shared_buffers = 32MB
wal_writer_delay = 20ms
restart_after_crash = on
});
	$node->append_conf('postgresql.conf', $params{conf}) if $params{conf};
	$node->append_conf('postgresql.conf', "cluster_name = '$params{name}'\n");
	$node->append_conf('postgresql.conf', "include_if_exists = 'cycle.conf'\n");
	return $self;
}

sub node { return $_[0]->{node} }

# the same tests, on another server of these tables
sub on
{
	my ($self, $node) = @_;
	return bless { %$self, node => $node }, ref($self);
}

# Start it and make the tables.
sub begin
{
	my ($self) = @_;
	my $e = $self->{engine};
	my $sql = 'CREATE EXTENSION mot;';
	# both doors: accounts are ordinary tables, the others foreign ones
	my @foreign = $e eq 'mot' ? ('FOREIGN TABLE', 'SERVER mot_server') : ('TABLE', "USING $e");
	for ([ 'a', "USING $e", @foreign ], [ 'b', 'USING heap', 'TABLE', 'USING heap' ])
	{
		my ($s, $using, $table_foreign, $using_foreign) = @$_;
		$sql .= qq{
		CREATE $table_foreign ledger_$s (client int, n bigint, kind text, acc_from int, acc_to int, amount int,
			payload text, sum text, PRIMARY KEY (client, n)) $using_foreign;
		CREATE INDEX ledger_${s}_from ON ledger_$s (acc_from, amount);
		CREATE TABLE accounts_$s (id int PRIMARY KEY, balance bigint, base bigint) $using;
		INSERT INTO accounts_$s SELECT i, 1000, 1000 FROM generate_series(0, 19) i;
		CREATE $table_foreign twin_$s (k int, variant int, v int, t text, PRIMARY KEY (k, variant)) $using_foreign;
		CREATE INDEX twin_${s}_v ON twin_$s (v);
		};
	}
	$sql .= q{
		CREATE TABLE ddl_state (name text PRIMARY KEY, n bigint, total numeric) USING heap;
		CREATE TABLE noted (client int, n bigint, kind text, status text) USING heap;
		CREATE TABLE shown (client int, n bigint) USING heap;
	};
	$self->{node}->start;
	$self->{node}->safe_psql('postgres', $sql);
	$self->{settled} = $self->entries_before(1);
	if ($self->{databases})
	{
		$self->{node}->safe_psql('postgres', 'CREATE DATABASE db_template');
		$self->{node}->safe_psql(
			'db_template', qq{
			CREATE EXTENSION mot;
			CREATE $foreign[0] t (id int PRIMARY KEY, v text) $foreign[1];
			CREATE INDEX t_v ON t (v);
			INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 500) i;
		});
	}
	return;
}

# ---------------------------------------------------------------- clients

# synchronous_commit of a client: odd ones do not wait; how the others do can be chosen
sub sync_of { return $_[1] % 2 ? 'off' : $_[0]->{sync} // 'on' }

sub start_clients
{
	my ($self, $seed) = @_;
	my @roles = (map({ [ 'writer', $_ ] } 1 .. $self->{writers}), [ 'ddl', 20 ], [ 'reader', 30 ]);
	push @roles, [ 'ddl', 21 ], [ 'nuisance', 31 ] if $self->{nuisance};
	push @roles, [ 'database', 40 ] if $self->{databases};

	unlink glob("$self->{dir}/*");
	$self->{cycle}++;
	$self->{pids} = [];
	my $conninfo = $self->{node}->connstr('postgres');
	for (@roles)
	{
		my ($role, $client) = @$_;
		my $pid = fork;
		die "fork: $!" unless defined $pid;
		if ($pid == 0)
		{
			open(STDERR, '>>', "$self->{dir}/errors");
			exec($program, $conninfo, $role, $client, $self->{cycle} * EPOCH, $seed, "$self->{dir}/$client",
				$self->{engine}, $self->sync_of($client))
			  or POSIX::_exit(127);
		}
		push @{ $self->{pids} }, $pid;
	}
	return;
}

# They end when they lose their connections; whoever is idle gets a push.
sub wait_clients
{
	my ($self) = @_;
	my $until = time + 20;
	for my $pid (@{ $self->{pids} })
	{
		while (waitpid($pid, WNOHANG) == 0)
		{
			if (time > $until)
			{
				kill 'KILL', $pid;
				waitpid($pid, 0);
				last;
			}
			sleep 0.01;
		}
	}
	$self->{pids} = [];
	return;
}

sub stop_clients
{
	my ($self) = @_;
	kill 'KILL', $_ for @{ $self->{pids} };
	waitpid($_, 0) for @{ $self->{pids} };
	$self->{pids} = [];
	return;
}

sub committed
{
	my ($self) = @_;
	my $n = 0;
	for my $file (glob("$self->{dir}/[0-9]*"))
	{
		$n += grep { /^c / } split(/\n/, slurp_file($file));
	}
	return $n;
}

# ------------------------------------------------------------- ways to die

sub children
{
	my ($pid) = @_;
	my @found;
	for my $stat (glob('/proc/[0-9]*/stat'))
	{
		open(my $fh, '<', $stat) or next;
		my $line = <$fh> // next;
		push @found, $1 if $line =~ /^(\d+) \(.*\) \S $pid /;
	}
	return @found;
}

# all that work in the data directory, orphans included
sub processes
{
	my ($self) = @_;
	my $data = Cwd::abs_path($self->{node}->data_dir);
	my @found;
	for my $cwd (glob('/proc/[0-9]*/cwd'))
	{
		push @found, $1 if (readlink($cwd) // '') eq $data && $cwd =~ /(\d+)/;
	}
	return @found;
}

sub postmaster
{
	my ($self) = @_;
	open(my $fh, '<', $self->{node}->data_dir . '/postmaster.pid') or return;
	my ($pid) = <$fh> =~ /^(\d+)/;
	return $pid;
}

sub wait_gone
{
	my ($seconds, @pids) = @_;
	my $until = time + $seconds;
	while (time < $until)
	{
		@pids = grep { kill(0, $_) && slurp_state($_) ne 'Z' } @pids;
		return 1 unless @pids;
		sleep 0.01;
	}
	return 0;
}

# Where nobody collects dead processes, a server would take the postmaster's
# number for a living one.
sub forget_postmaster
{
	my ($self) = @_;
	$self->{node}->{_pid} = undef;
	unlink $self->{node}->data_dir . '/postmaster.pid', $self->{node}->host . '/.s.PGSQL.' . $self->{node}->port . '.lock';
	return 1;
}

sub slurp_state
{
	my ($pid) = @_;
	open(my $fh, '<', "/proc/$pid/stat") or return 'Z';
	my $line = <$fh> // '';
	return $line =~ /^\d+ \(.*\) (\S)/ ? $1 : 'Z';
}

# everything at once, as when the machine fails (what the system was given stays)
sub kill_all
{
	my ($self) = @_;
	my $pid = $self->postmaster or return 1;
	kill 'STOP', $pid;

	# the postmaster last: without it, whoever waits for a standby waits no longer
	my @all = (children($pid), $pid);
	kill 'STOP', @all;
	kill 'KILL', @all;
	return wait_gone(30, @all) && $self->forget_postmaster;
}

sub kill_postmaster
{
	my ($self) = @_;
	my $pid = $self->postmaster or return 1;
	my @all = ($pid, children($pid));
	kill 'KILL', $pid;

	# (who asks for a checkpoint when the checkpointer has gone asks for a minute)
	if (!wait_gone(10, @all))
	{
		diag(join("\n", 'processes outlive the postmaster:', map { "$_ " . title($_) } grep { slurp_state($_) ne 'Z' } @all));
		kill 'KILL', @all;
	}
	return wait_gone(30, @all) && $self->forget_postmaster;
}

# the server has died, or is about to, without our doing
sub wait_death
{
	my ($self, $seconds) = @_;
	my $pid = $self->{node}->{_pid};
	return 0 unless wait_gone($seconds, $pid);

	# a checkpoint may be waiting for one who died with the postmaster
	if (!wait_gone(1, $self->processes))
	{
		kill 'KILL', $self->processes;
	}
	return wait_gone(30, $self->processes) && $self->forget_postmaster;
}

# one process: of those whose title matches, or of all
sub kill_one
{
	my ($self, $signal, $random, $title) = @_;
	my $pid = $self->postmaster;
	my @all = children($pid);
	my @some = grep { title($_) =~ $title } @all if $title;
	@all = @some if @some;
	my $victim = $all[ $random % @all ];
	kill $signal, $victim;
	return $victim;
}

sub title
{
	my ($pid) = @_;
	open(my $fh, '<', "/proc/$pid/cmdline") or return '';
	return <$fh> // '';
}

# ------------------------------------------------------------- fault points

# mot.fault and other settings of the moment are in a file of their own
sub configure
{
	my ($self, %settings) = @_;
	my $conf = $self->{node}->data_dir . '/cycle.conf';

	my $all = $self->{settings}{ $self->{node}->name } //= {};
	$all->{$_} = $settings{$_} for keys %settings;
	open(my $fh, '>', "$conf.new") or die;
	for (sort keys %$all)
	{
		print $fh "$_ = '$all->{$_}'\n" if defined $all->{$_};
	}
	close $fh;
	rename "$conf.new", $conf or die;
	kill 'HUP', $self->{node}->{_pid} if $self->{node}->{_pid};
	return;
}

sub reached
{
	my ($self, $from) = @_;
	return slurp_file($self->{node}->logfile, $from) =~ /fault point "\S+" reached/;
}

sub in_background
{
	my ($self, @command) = @_;
	my $pid = fork;
	die "fork: $!" unless defined $pid;
	if ($pid == 0)
	{
		open(STDOUT, '>', '/dev/null');
		open(STDERR, '>', '/dev/null');
		exec(@command) or POSIX::_exit(127);
	}
	push @{ $self->{pids} }, $pid;
	return $pid;
}

sub start_without_waiting
{
	my ($self) = @_;
	my $node = $self->{node};

	# as PostgreSQL::Test::Cluster: a standby's name is cluster_name
	delete local $ENV{PGAPPNAME};
	system_log('pg_ctl', '-W', '-D', $node->data_dir, '-l', $node->logfile, 'start');
	for (1 .. 100 * $PostgreSQL::Test::Utils::timeout_default) { last if $self->postmaster; sleep 0.01 }
	$node->{_pid} = $self->postmaster;
	return;
}

# (nothing is written to a psql that may have no connection)
sub answers
{
	my ($self) = @_;
	my ($out) = run_command([ 'psql', '-X', '-A', '-t', '-c', 'SELECT 1', $self->{node}->connstr('postgres') ]);
	return $out eq '1';
}

# Whatever was done to it, it comes back.
sub ensure_up
{
	my ($self) = @_;
	my $node = $self->{node};
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;

	while (time < $until)
	{
		return 1 if $node->{_pid} && slurp_state($node->{_pid}) ne 'Z' && $self->answers;
		if (!$node->{_pid} || slurp_state($node->{_pid}) eq 'Z')
		{
			kill 'KILL', $self->processes if !wait_gone(1, $self->processes);
			wait_gone(30, $self->processes) or return 0;
			$self->forget_postmaster;
			$self->start_without_waiting;
		}
		sleep 0.02;
	}
	return 0;
}

# What "what" finds on the running server.  Who has begun with a fault point may come to it when the
# server answers already, and everybody ends with him: then once more.  No other death since
# "from", a place in the log, is forgiven.
sub undisturbed
{
	my ($self, $from, $what) = @_;

	while (1)
	{
		my ($reached_before, $deaths_before) = $self->deaths($from);
		return 'the server does not come back' unless $self->ensure_up;
		my @found = eval { $what->() };
		push @found, $@ if $@;
		return () unless @found;
		sleep 0.5;
		my ($reached, $deaths) = $self->deaths($from);
		return @found if $deaths > $reached || ($reached == $reached_before && $deaths == $deaths_before);
		diag("once more, $deaths have died at a fault point: ", explain(\@found));
	}
}

# how often a fault point was reached, and how many were ended by a signal, since "from"
sub deaths
{
	my ($self, $from) = @_;
	my $log = slurp_file($self->{node}->logfile, $from);
	my $reached = () = $log =~ /fault point "\S+" reached/g;
	my $deaths = () = $log =~ /was terminated by signal/g;
	return ($reached, $deaths);
}

# --------------------------------------------------------------- what holds

# number and digest of the entries of the cycles before "cycle"
sub entries_before
{
	my ($self, $cycle) = @_;
	my $first = $cycle * EPOCH;
	return $self->{node}->safe_psql(
		'postgres', join(' UNION ALL ', map {
				"SELECT count(*), md5(string_agg(client || ':' || n || ':' || sum, ',' ORDER BY client, n))
				 FROM ledger_$_ WHERE n < $first" } ('a', 'b')));
}

# A list of what does not hold; empty when all is well.
sub verify
{
	my ($self) = @_;
	my @wrong;

	# (the server's last words may come before a client is ready to ignore them)
	push @wrong, map { "a client says: $_" } grep { !/^(FATAL|WARNING|DETAIL|HINT):/ } split(/\n/, slurp_file("$self->{dir}/errors"))
	  if -s "$self->{dir}/errors";
	push @wrong, $self->verify_notes;
	push @wrong, $self->verify_content;
	my $settled = $self->entries_before($self->{cycle});
	push @wrong, "entries of earlier cycles: $settled, before $self->{settled}" if $settled ne $self->{settled};
	return @wrong;
}

# what a query finds wrong
sub check
{
	my ($node, $what, $sql) = @_;
	my ($ret, $found, $err) = $node->psql('postgres', $sql);
	my @lines = split /\n/, $ret ? $err : $found;
	splice(@lines, 5) if @lines > 5;
	return $ret || @lines ? "$what: " . join('; ', @lines) : ();
}

# What clients noted against what is there.
sub verify_notes
{
	my ($self) = @_;
	my $first = $self->{cycle} * EPOCH;
	my %shown;

	open(my $out, '>', "$self->{dir}/noted.copy") or die;
	open(my $seen, '>', "$self->{dir}/shown.copy") or die;
	for my $file (glob("$self->{dir}/[0-9]*"))
	{
		my ($client) = $file =~ m{(\d+)$};
		my (%last, %kind);
		open(my $in, '<', $file) or die;
		while (<$in>)
		{
			chomp;
			my ($what, $n, $more) = split / /;
			if ($what eq 's') { $shown{$n} = $more if $more > ($shown{$n} // -1) && $more >= $first }
			else { $last{$n} = $what; $kind{$n} = $more }
		}
		print $out "$client\t$_\t$kind{$_}\t$last{$_}\n" for keys %last;
	}
	print $seen "$_\t$shown{$_}\n" for keys %shown;
	close $out;
	close $seen;

	return check($self->{node}, 'notes', qq{
		TRUNCATE noted, shown;
		\\copy noted FROM '$self->{dir}/noted.copy'
		\\copy shown FROM '$self->{dir}/shown.copy'
		ANALYZE noted;
		CREATE TEMP VIEW present AS
			SELECT client, n, kind, 'a' AS t FROM ledger_a WHERE n >= $first UNION ALL
			SELECT client, n, kind, 'b' FROM ledger_b WHERE n >= $first;
		CREATE TEMP TABLE missing AS
			SELECT d.client, d.n, d.kind FROM noted d
			WHERE d.status = 'c' AND
				((d.kind IN ('a', 'x') AND NOT EXISTS (SELECT FROM ledger_a l WHERE l.client = d.client AND l.n = d.n)) OR
				 (d.kind IN ('b', 'x') AND NOT EXISTS (SELECT FROM ledger_b l WHERE l.client = d.client AND l.n = d.n)));
		SELECT 'acknowledged and missing: ', * FROM missing WHERE client % 2 = 0 ORDER BY 1, 2;
		SELECT 'missing before one that is there: ', m.*, max(p.n) FROM missing m JOIN present p ON p.client = m.client AND p.n > m.n
			GROUP BY m.client, m.n, m.kind;
		SELECT 'rolled back, and there: ', p.* FROM present p JOIN noted d ON d.client = p.client AND d.n = p.n WHERE d.status = 'f';
		SELECT 'there, and never tried: ', p.* FROM present p LEFT JOIN noted d ON d.client = p.client AND d.n = p.n
			WHERE d.client IS NULL OR d.kind <> p.kind;
		SELECT 'shown to a reader, and missing: ', s.* FROM shown s WHERE s.client % 2 = 0
			AND NOT EXISTS (SELECT FROM present p WHERE p.client = s.client AND p.n = s.n);
	});
}

# What has to hold at any time, on any copy of the server.
sub verify_content
{
	my ($self, $node) = @_;
	$node //= $self->{node};
	my @wrong;

	push @wrong, check($node, 'halves', q{
		SELECT 'only in ledger_a: ', client, n FROM ledger_a a WHERE kind = 'x' AND NOT EXISTS (SELECT FROM ledger_b b WHERE b.client = a.client AND b.n = a.n);
		SELECT 'only in ledger_b: ', client, n FROM ledger_b b WHERE kind = 'x' AND NOT EXISTS (SELECT FROM ledger_a a WHERE a.client = b.client AND a.n = b.n);
		SELECT 'of a savepoint rolled back: ', client, n FROM ledger_a WHERE n < 0 OR kind = 'j';
		SELECT 'of a savepoint rolled back: ', client, n FROM ledger_b WHERE n < 0 OR kind = 'j';
		SELECT 'payload: ', client, n FROM ledger_a WHERE md5(payload) <> sum;
	});
	push @wrong, check($node, 'balances', q{
		WITH moved AS (
			SELECT 'a' AS t, acc_from AS id, -amount AS amount FROM ledger_a WHERE kind IN ('a', 'x') UNION ALL
			SELECT 'a', acc_to, amount FROM ledger_a WHERE kind = 'a' UNION ALL
			SELECT 'b', acc_from, -amount FROM ledger_b WHERE kind = 'b' UNION ALL
			SELECT 'b', acc_to, amount FROM ledger_b WHERE kind IN ('b', 'x')),
		account AS (SELECT 'a' AS t, * FROM accounts_a UNION ALL SELECT 'b', * FROM accounts_b)
		SELECT a.t, a.id, a.balance, a.base + coalesce(sum(m.amount), 0) FROM account a LEFT JOIN moved m ON m.t = a.t AND m.id = a.id
		GROUP BY a.t, a.id, a.balance, a.base HAVING a.balance <> a.base + coalesce(sum(m.amount), 0);
		SELECT 'accounts: ', count(*) FROM accounts_a HAVING count(*) <> 20;
		SELECT 'sum: ', s FROM (SELECT (SELECT sum(balance) FROM accounts_a) + (SELECT sum(balance) FROM accounts_b) AS s) s WHERE s <> 40000;
	});
	push @wrong, check($node, 'twins', q{
		SELECT 'only in twin_a: ', k, variant, v FROM (TABLE twin_a EXCEPT TABLE twin_b) d;
		SELECT 'only in twin_b: ', k, variant, v FROM (TABLE twin_b EXCEPT TABLE twin_a) d;
		SELECT 'by index: ', k, variant, v FROM (SELECT * FROM twin_a WHERE v >= 0 EXCEPT TABLE twin_b) d;
	});
	push @wrong, check($node, 'definitions', q{
		SELECT 'there, and not known: ', relname FROM pg_class WHERE relname LIKE 'dt\_%' AND relkind IN ('r', 'f')
			AND relname NOT IN (SELECT name FROM ddl_state);
		SELECT 'known, and not there: ', name FROM ddl_state WHERE to_regclass(name) IS NULL;
		SELECT format('SELECT %L, %s, %s, count(*), sum(n) FROM %I HAVING count(*) <> %s OR coalesce(sum(n), 0) <> %s',
			name, n, total, name, n, total) FROM ddl_state \gexec
	});
	push @wrong, verify_copies($node) if $self->{databases};
	push @wrong, check($node, 'mot_verify', q{
		CREATE TEMP VIEW ours AS SELECT ftrelid AS oid FROM pg_foreign_table
			UNION ALL SELECT c.oid FROM pg_class c JOIN pg_am m ON m.oid = c.relam WHERE m.amname = 'mot' AND c.relkind = 'r';
		SELECT v.object, v.problems, v.first_problem FROM ours, mot_verify(ours.oid) v WHERE v.problems > 0;
		SELECT 'tables in memory and in the catalogue: ', m, c FROM
			(SELECT count(*) AS m FROM mot_stat_get_tables()) m, (SELECT count(*) AS c FROM ours) c WHERE m <> c;
	}) if $self->{engine} eq 'mot' && $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 'f';
	return @wrong;
}

# A copy of a database is whole, or it is not there; or it was being dropped.
sub verify_copies
{
	my ($node) = @_;
	my $content = content($node, 'db_template');
	my @wrong;

	push @wrong, "db_template: $content" if $content !~ /^t\|500\|/;
	for (split /\n/, $node->safe_psql('postgres', q{SELECT datname FROM pg_database WHERE datname ~ '^db_\d' AND datconnlimit <> -2}))
	{
		my $copy = content($node, $_);
		push @wrong, "$_: $copy" if $copy ne $content;
		push @wrong, map { "$_: $_" } split(/\n/, $node->safe_psql($_, q{SELECT v.* FROM mot_verify('t') v WHERE v.problems > 0}))
		  if $content =~ /^t\|500\|/ && default_engine() eq 'mot';
	}
	return @wrong;
}

# All that is in the tables of a database, a line for each table.
sub content
{
	my ($node, $database) = @_;
	return $node->safe_psql(
		$database // 'postgres', q{
		SELECT format('SELECT %L, count(*), md5(string_agg(t::text, chr(10) ORDER BY t::text COLLATE "C")) FROM %s t', relname, oid::regclass)
		FROM pg_class WHERE relkind IN ('r', 'f') AND relnamespace = 'public'::regnamespace ORDER BY relname \gexec
	});
}

# What is there now is what has to be there from now on.  Now and then the
# ledgers start anew.
sub settle
{
	my ($self) = @_;
	$self->{node}->safe_psql(
		'postgres', q{
		BEGIN;
		UPDATE accounts_a SET base = balance;
		UPDATE accounts_b SET base = balance;
		TRUNCATE ledger_a;
		TRUNCATE ledger_b;
		COMMIT;
	}) if $self->{cycle} % 4 == 0;
	$self->{settled} = $self->entries_before($self->{cycle} + 1);
	return;
}

1;
