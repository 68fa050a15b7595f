# What is released: PGXN's metadata fits the extension, and who updates the extension from any
# version of which a script is kept has the same objects as who creates it anew.

use strict;
use warnings;

use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = '..';
my ($version) = slurp_file("$top/mot.control") =~ /^default_version = '([0-9.]+)'$/m;

# by PGXN's specification (1.0.0)
my $meta = decode_json(slurp_file("$top/META.json"));
my $semver = qr/^\d+\.\d+\.\d+$/;
ok(!(grep { !defined $meta->{$_} } qw(name version abstract maintainer license provides meta-spec)), 'what has to be there is');
like($meta->{version}, $semver, 'the version is a semantic one');
is($meta->{version}, "$version.0", 'that of the extension');
is($meta->{license}, 'postgresql', 'the license is one of those that have a name');
like($meta->{release_status}, qr/^(stable|testing|unstable)$/, 'the status, too');
is_deeply($meta->{'meta-spec'}, { version => '1.0.0', url => 'https://pgxn.org/meta/spec.txt' }, 'the specification is named');
for my $name (sort keys %{ $meta->{provides} })
{
	my $provided = $meta->{provides}{$name};
	like($provided->{version}, $semver, "$name: the version is a semantic one");
	ok(-f "$top/$provided->{$_}", "$name: $provided->{$_} is there") for qw(file docfile);
}
like($_, $semver, 'what is required is a version') for values %{ $meta->{prereqs}{runtime}{requires} };
ok(!(grep { ref || !/^[^\/\\\p{Cntrl}]{1,255}$/ } @{ $meta->{tags} }), 'tags are as they have to be');
like(slurp_file("$top/debian/changelog"), qr/^postgresql-mot \(\Q$meta->{version}\E-\d+\)/, "Debian's version is the same");

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '64MB'\nfsync = off\n");
$node->start;

# every object, with all that is said of it
my $objects = q{
	SELECT pg_describe_object(classid, objid, 0) || ' ' || coalesce(
		(SELECT pg_get_functiondef(oid) || coalesce(proacl::text, '') FROM pg_proc WHERE oid = objid AND classid = 'pg_proc'::regclass AND prokind IN ('f', 'p')),
		(SELECT pg_get_viewdef(oid) || coalesce(relacl::text, '') FROM pg_class WHERE oid = objid AND classid = 'pg_class'::regclass), '')
		|| coalesce(obj_description(objid, classid::regclass::text), '')
	FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'mot') ORDER BY 1};

$node->safe_psql('postgres', 'CREATE EXTENSION mot');
is($node->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'mot'}), $version, 'the newest version is created');
my $expected = $node->safe_psql('postgres', $objects);
cmp_ok(scalar(split /\n/, $expected), '>', 20, 'it has objects');
my @scripts = map { m{mot--([0-9.]+)\.sql$} ? $1 : () } sort glob("$top/mot--*.sql");
is($scripts[0], '1.0', 'the script of the first version is kept');
for my $from (@scripts)
{
	$node->safe_psql('postgres', "DROP EXTENSION mot CASCADE; CREATE EXTENSION mot VERSION '$from'");
	$node->safe_psql('postgres', 'ALTER EXTENSION mot UPDATE');
	is($node->safe_psql('postgres', $objects), $expected, "version $from is updated to $version");
}

# A script of the next version, as whoever writes one would: it is applied beside tables that are in
# use, with whatever engine is the default, and undone with its transaction.
my $share = $node->config_data('--sharedir') . '/extension';
my $script = "$share/mot--$version--next.sql";
append_to_file($script, <<'SQL');
\echo Use "ALTER EXTENSION mot UPDATE" to load this file. \quit
CREATE TABLE mot_next_settings (name text PRIMARY KEY);
CREATE VIEW mot_next AS SELECT state FROM mot_stat_recovery;
CREATE OR REPLACE VIEW mot_stat_recovery AS SELECT *, 1 AS next FROM mot_stat_get_recovery();
GRANT SELECT ON mot_next TO PUBLIC;
SQL
END { unlink $script if defined $script }
$node->safe_psql('postgres', q{CREATE TABLE o (id int PRIMARY KEY, t text) USING mot; CREATE FOREIGN TABLE f (id int PRIMARY KEY) SERVER mot_server;
	INSERT INTO o SELECT g, g FROM generate_series(1, 100) g; INSERT INTO f SELECT generate_series(1, 100)});
my $session = $node->background_psql('postgres');
$session->query_safe('PREPARE p AS SELECT count(*) FROM o JOIN f USING (id); BEGIN; INSERT INTO o VALUES (0)');
$session->query_safe('EXECUTE p') for 1 .. 8;
$node->safe_psql('postgres', "SET default_table_access_method = mot; BEGIN; ALTER EXTENSION mot UPDATE TO 'next'; ROLLBACK");
is($node->safe_psql('postgres', $objects), $expected, 'an update that is rolled back leaves nothing');
$node->safe_psql('postgres', "SET default_table_access_method = mot; SET mot.default_engine = mot; ALTER EXTENSION mot UPDATE TO 'next'");
is($node->safe_psql('postgres', q{SELECT extversion, (SELECT count(*) FROM mot_next), (SELECT next FROM mot_stat_recovery),
	(SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'mot_next_settings') FROM pg_extension WHERE extname = 'mot'}), 'next|1|1|heap', 'an update script is applied');
is($session->query_safe('EXECUTE p; COMMIT') =~ /100/ ? 'yes' : 'no', 'yes', 'a session that uses tables goes on');
$session->quit;
is($node->safe_psql('postgres', 'SELECT (SELECT count(*) FROM o), (SELECT count(*) FROM f), (SELECT sum(problems) FROM mot_verify($$o$$))'), '101|100|0', 'rows are what they were');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', q{SELECT extversion, (SELECT count(*) FROM o), (SELECT count(*) FROM f) FROM pg_extension WHERE extname = 'mot'}), 'next|101|100', 'also after a crash');
unlink $script;

done_testing();
