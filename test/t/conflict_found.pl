# INSERT ... ON CONFLICT DO UPDATE has found the row in the way, and before it locks it another
# transaction gives that another key, or changes it, or deletes it: only a row that has the key is
# updated.  (specs/conflict-moved has this for the server's executor.)

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = 96MB\nautovacuum = off\nfsync = off\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION mot;
CREATE FOREIGN TABLE foreign_one (id int PRIMARY KEY, t text) SERVER mot_server;
CREATE TABLE ordinary (id int PRIMARY KEY, t text) USING mot;
});
my $go = $node->data_dir . '/mot.fault.go';

my %rows = (
	'SET id = 11 WHERE id = 1' => '1|new;11|old',
	q{SET t = 'changed' WHERE id = 1} => '1|changed and new',
	'delete' => '1|new');
for my $table ('foreign_one', 'ordinary')
{
	for my $change (sort keys %rows)
	{
		# the second of two rows is looked up first, since the one before it was a duplicate
		for my $nth (1, 2)
		{
			$node->safe_psql('postgres', "DELETE FROM $table; INSERT INTO $table VALUES (1, 'old'), (2, 'other')");
			my $session = $node->background_psql('postgres');
			my $from = -s $node->logfile;
			$session->query_safe("SET mot.fault = 'conflict-found:wait:$nth'");
			my $values = $nth == 1 ? q{(1, 'new')} : q{(2, 'new'), (1, 'new')};
			$session->{stdin} .= "INSERT INTO $table VALUES $values ON CONFLICT (id) DO UPDATE SET t = $table.t || ' and ' || excluded.t;\n";
			$session->{run}->pump_nb;
			ok($node->wait_for_log(qr/fault point "conflict-found" reached/, $from), "$table, row $nth: it has been found");
			$node->safe_psql('postgres', $change eq 'delete' ? "DELETE FROM $table WHERE id = 1" : "UPDATE $table $change");
			append_to_file($go, '');
			$session->query_safe('SELECT 1');
			$session->quit;
			unlink $go;
			my ($first, @rest) = split /;/, $rows{$change};
			is($node->safe_psql('postgres', "SELECT string_agg(id || '|' || t, ';' ORDER BY id) FROM $table"),
				join(';', $first, $nth == 1 ? '2|other' : '2|other and new', @rest), "... $change");
		}
	}
}
done_testing();
