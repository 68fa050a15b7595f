# OnItsOwn.pm
#	  A test file that bails out ends itself, not those beside and behind it: prove goes on, and
#	  names it in the end.

package OnItsOwn;

use strict;
use warnings;

use Test::Builder;

{
	no warnings 'redefine';
	*Test::Builder::BAIL_OUT = sub {
		my ($self, $why) = @_;
		$self->diag("bailed out: $why");
		exit 255;
	};
}

1;
