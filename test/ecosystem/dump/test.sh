# pg_dump, pg_restore -j and pg_dumpall, without any flag: rows, keys, all.

psql -X -q -v ON_ERROR_STOP=1 -f "$HERE/schema.sql"
contents()
{
	psql -X -At -d "$1" -c "SELECT 'p', md5(string_agg(p::text, ' ' ORDER BY id)), count(*) FROM place p" \
		-c "SELECT 'v', md5(string_agg(v::text, ' ' ORDER BY id)), count(*) FROM visit v" \
		-c "SELECT 'm', md5(string_agg(m::text, ' ' ORDER BY id)), count(*) FROM measured m" \
		-c "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'mot' AND relkind = 'r'" \
		-c "SELECT string_agg(conname, ' ' ORDER BY conname) FROM pg_constraint WHERE conrelid <> 0"
}
defined() { pg_dump -s "$1" | grep -vE '^.(un)?restrict '; }
before=$(contents dump)

for format in custom directory; do
	createdb dump_$format
	ok "pg_dump in $format format" pg_dump -F${format:0:1} -f "$SANDBOX/tmp/dump.$format" dump
	ok "pg_restore -j 4 of it" pg_restore -j 4 -d dump_$format "$SANDBOX/tmp/dump.$format"
	is "$(contents dump_$format)" "$before" "everything is there"
	is "$(defined dump_$format)" "$(defined dump)" "... as it was defined"
done
createdb dump_one
ok "as one script, in one transaction" bash -c 'pg_dump dump | psql -X -q -v ON_ERROR_STOP=1 -1 -d dump_one'
is "$(contents dump_one)" "$before" "everything is there"

export PGPORT=$((PGPORT + 1))
box=$SANDBOX
. "$HERE/../../sandbox.sh"
SANDBOX=$box
SANDBOX_USER=$(stat -c %U "$SANDBOX") PGBIN=$(dirname "$(command -v postgres)")
cluster_init second <<<"shared_preload_libraries = 'mot'"
cluster_start second
ok "pg_dumpall into another cluster" bash -c "pg_dumpall -p $((PGPORT - 1)) | grep -v '^CREATE ROLE postgres' | psql -X -q -v ON_ERROR_STOP=1 -d postgres"
is "$(contents dump)" "$before" "everything is there"
ok "a foreign key holds there" bash -c "! psql -X -q -d dump -c 'INSERT INTO visit (place) VALUES (-1)'"
cluster_stop second
export PGPORT=$((PGPORT - 1))
