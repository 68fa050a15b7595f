-- What CREATE EXTENSION mot leaves in the catalogue, and what a MOT table
-- looks like to tools that read it there.
BEGIN;
SELECT plan(47);

SELECT has_extension('mot');
SELECT is(extversion, default_version, 'the installed version is the default one')
	FROM pg_extension e JOIN pg_available_extensions a ON a.name = e.extname WHERE extname = 'mot';

-- wrapper, server, access method
SELECT is(fdwname, 'mot_fdw', 'mot_server is of wrapper mot_fdw')
	FROM pg_foreign_server s JOIN pg_foreign_data_wrapper w ON w.oid = srvfdw WHERE srvname = 'mot_server';
SELECT has_function('mot_fdw_handler');
SELECT has_function('mot_fdw_validator');
SELECT is(amtype, 'i', 'mot_index is an index access method') FROM pg_am WHERE amname = 'mot_index';
CREATE ROLE mot_somebody;
SELECT server_privs_are('mot_server', 'mot_somebody', ARRAY['USAGE'], 'everybody may use mot_server');
SELECT fdw_privs_are('mot_fdw', 'mot_somebody', '{}', 'the wrapper is the superuser''s');

-- a default operator class for every type that can be indexed
SELECT ok(EXISTS (SELECT FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod
		WHERE amname = 'mot_index' AND opcdefault AND opcintype = t::regtype),
	'operator class for ' || t)
FROM unnest(ARRAY['bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'text', 'bpchar', 'date', 'time',
	'timestamp', 'timestamptz', 'interval', 'uuid', 'bytea', 'oid', 'name', 'inet', 'anyenum']) t;

-- views
SELECT has_view('mot_stat_tables');
SELECT has_view('mot_stat_indexes');
SELECT has_view('mot_stat_memory');
SELECT has_view('mot_stat_nodes');
SELECT has_view('mot_stat_jit');
SELECT has_view('mot_stat_transactions');
SELECT has_view('mot_stat_snapshots');
SELECT has_view('mot_stat_workers');
SELECT has_view('mot_islands');
SELECT has_view('mot_island_decisions');

-- a table, to tools
CREATE FOREIGN TABLE tool (id int PRIMARY KEY, name text NOT NULL, part int, CONSTRAINT name_once UNIQUE (name, part))
	SERVER mot_server;
CREATE INDEX tool_part ON tool (part);
SELECT has_foreign_table('tool');
SELECT has_pk('tool');
SELECT col_is_pk('tool', 'id');
SELECT col_is_unique('tool', ARRAY['name', 'part']);
SELECT col_not_null('tool', 'name');
SELECT has_index('tool', 'tool_part', 'part');
SELECT index_is_type('tool', 'tool_part', 'mot_index');
SELECT index_is_unique('tool', 'tool_pkey');
SELECT is(pg_get_constraintdef(oid), 'UNIQUE (name, part)', 'the constraint reads as it was written')
	FROM pg_constraint WHERE conname = 'name_once';

SELECT * FROM finish();
ROLLBACK;
