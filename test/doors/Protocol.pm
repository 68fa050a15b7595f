# Protocol.pm
#	  A client of the extended protocol, as far as tests need one.
#
# connect_raw($node, setting => value ...) connects; functions named after messages put these into a
# buffer, which sync_it() sends, with a Sync, and flush_out() as it is; until_ready() reads on, and
# what has come is in $client->{transcript}, a message a line, in words.

package Protocol;

use strict;
use warnings;

use Exporter qw(import);
use IO::Socket::UNIX;

our @EXPORT = qw(connect_raw message flush_out one_message until_ready parse bind_portal describe execute
  close_it sync_it simple cancel);

sub connect_raw
{
	my ($node, %settings) = @_;
	my $peer = $node->host . '/.s.PGSQL.' . $node->port;
	my $self = { socket => IO::Socket::UNIX->new(Peer => $peer), peer => $peer, transcript => '' };
	my $user = $ENV{PGUSER} || getpwuid($<);
	my $start = pack('N', 196608) . join('', map { "$_\0" } 'user', $user, 'database', 'postgres', %settings) . "\0";
	$self->{socket}->print(pack('N', length($start) + 4) . $start);
	$self->{socket}->flush;
	until_ready($self);
	$self->{transcript} = '';
	return $self;
}

sub message
{
	my ($self, $type, $body) = @_;
	$self->{out} .= $type . pack('N', length($body) + 4) . $body;
	return;
}

sub flush_out
{
	my ($self) = @_;
	$self->{socket}->print($self->{out} // '');
	$self->{socket}->flush;
	$self->{out} = '';
	return;
}

sub take
{
	my ($self, $n) = @_;
	my $bytes = '';
	while (length($bytes) < $n)
	{
		$self->{socket}->read($bytes, $n - length($bytes), length($bytes)) or die 'the server closed the connection';
	}
	return $bytes;
}

# a message in words
sub one_message
{
	my ($self) = @_;
	my $type = take($self, 1);
	my $body = take($self, unpack('N', take($self, 4)) - 4);
	my $text = $type;

	if ($type eq 'D')
	{
		my $n = unpack('n', substr($body, 0, 2, ''));
		for (1 .. $n)
		{
			my $length = unpack('l>', substr($body, 0, 4, ''));
			my $value = $length < 0 ? 'null' : substr($body, 0, $length, '');
			$value = unpack('H*', $value) if $value =~ /[^\x20-\x7e]/;
			$text .= " $value";
		}
	}
	elsif ($type eq 'C')
	{
		$text .= ' ' . substr($body, 0, -1);
	}
	elsif ($type eq 'E')
	{
		my %fields = map { substr($_, 0, 1) => substr($_, 1) } grep { length } split(/\0/, $body);
		$text .= " $fields{C} $fields{M}";
	}
	elsif ($type eq 'Z')
	{
		$text .= " $body";
	}
	elsif ($type eq 'T')
	{
		$text .= ' ' . unpack('n', $body);
	}
	elsif ($type eq 'K')
	{
		@{$self}{qw(pid key)} = unpack('NN', $body);
	}
	$self->{transcript} .= "$text\n";
	return $type;
}

sub until_ready
{
	my ($self) = @_;
	while (one_message($self) ne 'Z') { }
	return;
}

sub parse { my ($self, $name, $query) = @_; return message($self, 'P', "$name\0$query\0" . pack('n', 0)); }

sub bind_portal
{
	my ($self, $portal, $name, $format, @values) = @_;
	return message($self, 'B',
		"$portal\0$name\0" . pack('n', 0) . pack('n', scalar(@values))
		  . join('', map { defined $_ ? pack('N', length $_) . $_ : pack('l>', -1) } @values)
		  . (ref $format ? pack('n*', scalar(@$format), @$format) : pack('nn', 1, $format)));
}
sub describe { my ($self, $what, $name) = @_; return message($self, 'D', "$what$name\0"); }
sub execute { my ($self, $portal, $rows) = @_; return message($self, 'E', "$portal\0" . pack('N', $rows // 0)); }
sub close_it { my ($self, $what, $name) = @_; return message($self, 'C', "$what$name\0"); }

sub sync_it
{
	my ($self) = @_;
	message($self, 'S', '');
	flush_out($self);
	return until_ready($self);
}

sub simple
{
	my ($self, $query) = @_;
	message($self, 'Q', "$query\0");
	flush_out($self);
	return until_ready($self);
}

# the same as a client library: by a connection of its own
sub cancel
{
	my ($c) = @_;
	my $request = IO::Socket::UNIX->new(Peer => $c->{peer});
	$request->print(pack('NNNN', 16, 80877102, $c->{pid}, $c->{key}));
	$request->flush;
	# it is over when the server closes it
	$request->read(my $nothing, 1);
	$request->close;
	return;
}

1;
