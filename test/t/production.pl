# What is built for production has nothing of what only tests use.

use strict;
use warnings;

use Test::More;

my $module = $ENV{MOT_PRODUCTION_MODULE} or plan skip_all => 'which module is the production build was not said';
open(my $fh, '<:raw', $module) or die "$module: $!";
local $/;
my $bytes = <$fh>;
ok(length $bytes > 100_000, 'the module is there');
for my $string ('mot.fault', 'fault point', split(' ', $ENV{MOT_FAULT_POINTS}))
{
	ok(index($bytes, $string) < 0, "no \"$string\" in it");
}
done_testing();
