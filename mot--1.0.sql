/* mot--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION mot" to load this file. \quit

-- A server that has not preloaded the module could not use what follows:
-- this raises the error that says what to do about it.

CREATE FUNCTION mot_require_preload() RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C;
SELECT mot_require_preload();
DROP FUNCTION mot_require_preload();

-- ---------------------------------------------------------------- wrapper

CREATE FUNCTION mot_fdw_handler() RETURNS fdw_handler
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION mot_fdw_validator(text[], oid) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FOREIGN DATA WRAPPER mot_fdw
    HANDLER mot_fdw_handler VALIDATOR mot_fdw_validator;

CREATE SERVER mot_server FOREIGN DATA WRAPPER mot_fdw;

GRANT USAGE ON FOREIGN SERVER mot_server TO PUBLIC;

-- --------------------------------------------------------- access methods

CREATE FUNCTION mot_am_handler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD mot_index TYPE INDEX HANDLER mot_am_handler;

CREATE FUNCTION mot_table_am_handler(internal) RETURNS table_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD mot TYPE TABLE HANDLER mot_table_am_handler;

COMMENT ON ACCESS METHOD mot IS 'memory-optimized tables';
COMMENT ON ACCESS METHOD mot_index IS 'indexes of memory-optimized tables that are foreign tables';

-- ------------------------------------------------------- operator classes

-- Those of btree, for the types that have a key encoding: same names, same
-- operators under the same strategy numbers, so that DDL naming an operator
-- class works unchanged and the planner finds the btree family whose order
-- these have by their "<" operators.  Support function 1, btree's comparison
-- function, selects the encoding (src/relation/keycodec.c).
-- sql/operator_classes.sql checks that nothing of btree's is missing.

CREATE OPERATOR FAMILY bit_ops USING mot_index;
CREATE OPERATOR CLASS bit_ops DEFAULT FOR TYPE bit USING mot_index FAMILY bit_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 bitcmp(bit, bit);

CREATE OPERATOR FAMILY bool_ops USING mot_index;
CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE bool USING mot_index FAMILY bool_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btboolcmp(bool, bool);

CREATE OPERATOR FAMILY bpchar_ops USING mot_index;
CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar USING mot_index FAMILY bpchar_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 bpcharcmp(bpchar, bpchar);

CREATE OPERATOR FAMILY bpchar_pattern_ops USING mot_index;
CREATE OPERATOR CLASS bpchar_pattern_ops FOR TYPE bpchar USING mot_index FAMILY bpchar_pattern_ops AS
    OPERATOR 1 ~<~, OPERATOR 2 ~<=~, OPERATOR 3 =, OPERATOR 4 ~>=~, OPERATOR 5 ~>~,
    FUNCTION 1 btbpchar_pattern_cmp(bpchar, bpchar);

CREATE OPERATOR FAMILY bytea_ops USING mot_index;
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING mot_index FAMILY bytea_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 byteacmp(bytea, bytea);

CREATE OPERATOR FAMILY char_ops USING mot_index;
CREATE OPERATOR CLASS char_ops DEFAULT FOR TYPE "char" USING mot_index FAMILY char_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btcharcmp("char", "char");

CREATE OPERATOR FAMILY datetime_ops USING mot_index;
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING mot_index FAMILY datetime_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 date_cmp(date, date);
CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING mot_index FAMILY datetime_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 timestamp_cmp(timestamp, timestamp);
CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz USING mot_index FAMILY datetime_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 timestamptz_cmp(timestamptz, timestamptz);
ALTER OPERATOR FAMILY datetime_ops USING mot_index ADD
    OPERATOR 1 < (date, timestamp), OPERATOR 2 <= (date, timestamp), OPERATOR 3 = (date, timestamp),
    OPERATOR 4 >= (date, timestamp), OPERATOR 5 > (date, timestamp),
    FUNCTION 1 (date, timestamp) date_cmp_timestamp(date, timestamp),
    OPERATOR 1 < (date, timestamptz), OPERATOR 2 <= (date, timestamptz), OPERATOR 3 = (date, timestamptz),
    OPERATOR 4 >= (date, timestamptz), OPERATOR 5 > (date, timestamptz),
    FUNCTION 1 (date, timestamptz) date_cmp_timestamptz(date, timestamptz),
    OPERATOR 1 < (timestamp, date), OPERATOR 2 <= (timestamp, date), OPERATOR 3 = (timestamp, date),
    OPERATOR 4 >= (timestamp, date), OPERATOR 5 > (timestamp, date),
    FUNCTION 1 (timestamp, date) timestamp_cmp_date(timestamp, date),
    OPERATOR 1 < (timestamp, timestamptz), OPERATOR 2 <= (timestamp, timestamptz), OPERATOR 3 = (timestamp, timestamptz),
    OPERATOR 4 >= (timestamp, timestamptz), OPERATOR 5 > (timestamp, timestamptz),
    FUNCTION 1 (timestamp, timestamptz) timestamp_cmp_timestamptz(timestamp, timestamptz),
    OPERATOR 1 < (timestamptz, date), OPERATOR 2 <= (timestamptz, date), OPERATOR 3 = (timestamptz, date),
    OPERATOR 4 >= (timestamptz, date), OPERATOR 5 > (timestamptz, date),
    FUNCTION 1 (timestamptz, date) timestamptz_cmp_date(timestamptz, date),
    OPERATOR 1 < (timestamptz, timestamp), OPERATOR 2 <= (timestamptz, timestamp), OPERATOR 3 = (timestamptz, timestamp),
    OPERATOR 4 >= (timestamptz, timestamp), OPERATOR 5 > (timestamptz, timestamp),
    FUNCTION 1 (timestamptz, timestamp) timestamptz_cmp_timestamp(timestamptz, timestamp);

CREATE OPERATOR FAMILY enum_ops USING mot_index;
CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum USING mot_index FAMILY enum_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 enum_cmp(anyenum, anyenum);

CREATE OPERATOR FAMILY float_ops USING mot_index;
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE float4 USING mot_index FAMILY float_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btfloat4cmp(float4, float4);
CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE float8 USING mot_index FAMILY float_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btfloat8cmp(float8, float8);
ALTER OPERATOR FAMILY float_ops USING mot_index ADD
    OPERATOR 1 < (float4, float8), OPERATOR 2 <= (float4, float8), OPERATOR 3 = (float4, float8),
    OPERATOR 4 >= (float4, float8), OPERATOR 5 > (float4, float8),
    FUNCTION 1 (float4, float8) btfloat48cmp(float4, float8),
    OPERATOR 1 < (float8, float4), OPERATOR 2 <= (float8, float4), OPERATOR 3 = (float8, float4),
    OPERATOR 4 >= (float8, float4), OPERATOR 5 > (float8, float4),
    FUNCTION 1 (float8, float4) btfloat84cmp(float8, float4);

CREATE OPERATOR FAMILY integer_ops USING mot_index;
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE int2 USING mot_index FAMILY integer_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btint2cmp(int2, int2);
CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE int4 USING mot_index FAMILY integer_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btint4cmp(int4, int4);
CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE int8 USING mot_index FAMILY integer_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btint8cmp(int8, int8);
ALTER OPERATOR FAMILY integer_ops USING mot_index ADD
    OPERATOR 1 < (int2, int4), OPERATOR 2 <= (int2, int4), OPERATOR 3 = (int2, int4),
    OPERATOR 4 >= (int2, int4), OPERATOR 5 > (int2, int4),
    FUNCTION 1 (int2, int4) btint24cmp(int2, int4),
    OPERATOR 1 < (int2, int8), OPERATOR 2 <= (int2, int8), OPERATOR 3 = (int2, int8),
    OPERATOR 4 >= (int2, int8), OPERATOR 5 > (int2, int8),
    FUNCTION 1 (int2, int8) btint28cmp(int2, int8),
    OPERATOR 1 < (int4, int2), OPERATOR 2 <= (int4, int2), OPERATOR 3 = (int4, int2),
    OPERATOR 4 >= (int4, int2), OPERATOR 5 > (int4, int2),
    FUNCTION 1 (int4, int2) btint42cmp(int4, int2),
    OPERATOR 1 < (int4, int8), OPERATOR 2 <= (int4, int8), OPERATOR 3 = (int4, int8),
    OPERATOR 4 >= (int4, int8), OPERATOR 5 > (int4, int8),
    FUNCTION 1 (int4, int8) btint48cmp(int4, int8),
    OPERATOR 1 < (int8, int2), OPERATOR 2 <= (int8, int2), OPERATOR 3 = (int8, int2),
    OPERATOR 4 >= (int8, int2), OPERATOR 5 > (int8, int2),
    FUNCTION 1 (int8, int2) btint82cmp(int8, int2),
    OPERATOR 1 < (int8, int4), OPERATOR 2 <= (int8, int4), OPERATOR 3 = (int8, int4),
    OPERATOR 4 >= (int8, int4), OPERATOR 5 > (int8, int4),
    FUNCTION 1 (int8, int4) btint84cmp(int8, int4);

CREATE OPERATOR FAMILY interval_ops USING mot_index;
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING mot_index FAMILY interval_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 interval_cmp(interval, interval);

CREATE OPERATOR FAMILY macaddr8_ops USING mot_index;
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING mot_index FAMILY macaddr8_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 macaddr8_cmp(macaddr8, macaddr8);

CREATE OPERATOR FAMILY macaddr_ops USING mot_index;
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING mot_index FAMILY macaddr_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 macaddr_cmp(macaddr, macaddr);

CREATE OPERATOR FAMILY money_ops USING mot_index;
CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money USING mot_index FAMILY money_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 cash_cmp(money, money);

CREATE OPERATOR FAMILY network_ops USING mot_index;
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING mot_index FAMILY network_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 network_cmp(inet, inet);
CREATE OPERATOR CLASS cidr_ops FOR TYPE inet USING mot_index FAMILY network_ops AS
    STORAGE inet;

CREATE OPERATOR FAMILY numeric_ops USING mot_index;
CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING mot_index FAMILY numeric_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 numeric_cmp(numeric, numeric);

CREATE OPERATOR FAMILY oid_ops USING mot_index;
CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid USING mot_index FAMILY oid_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btoidcmp(oid, oid);

CREATE OPERATOR FAMILY pg_lsn_ops USING mot_index;
CREATE OPERATOR CLASS pg_lsn_ops DEFAULT FOR TYPE pg_lsn USING mot_index FAMILY pg_lsn_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 pg_lsn_cmp(pg_lsn, pg_lsn);

CREATE OPERATOR FAMILY text_ops USING mot_index;
CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING mot_index FAMILY text_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btnamecmp(name, name);
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING mot_index FAMILY text_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 bttextcmp(text, text);
CREATE OPERATOR CLASS varchar_ops FOR TYPE text USING mot_index FAMILY text_ops AS
    STORAGE text;
ALTER OPERATOR FAMILY text_ops USING mot_index ADD
    OPERATOR 1 < (name, text), OPERATOR 2 <= (name, text), OPERATOR 3 = (name, text),
    OPERATOR 4 >= (name, text), OPERATOR 5 > (name, text),
    FUNCTION 1 (name, text) btnametextcmp(name, text),
    OPERATOR 1 < (text, name), OPERATOR 2 <= (text, name), OPERATOR 3 = (text, name),
    OPERATOR 4 >= (text, name), OPERATOR 5 > (text, name),
    FUNCTION 1 (text, name) bttextnamecmp(text, name);

CREATE OPERATOR FAMILY text_pattern_ops USING mot_index;
CREATE OPERATOR CLASS text_pattern_ops FOR TYPE text USING mot_index FAMILY text_pattern_ops AS
    OPERATOR 1 ~<~, OPERATOR 2 ~<=~, OPERATOR 3 =, OPERATOR 4 ~>=~, OPERATOR 5 ~>~,
    FUNCTION 1 bttext_pattern_cmp(text, text);
CREATE OPERATOR CLASS varchar_pattern_ops FOR TYPE text USING mot_index FAMILY text_pattern_ops AS
    STORAGE text;

CREATE OPERATOR FAMILY tid_ops USING mot_index;
CREATE OPERATOR CLASS tid_ops DEFAULT FOR TYPE tid USING mot_index FAMILY tid_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 bttidcmp(tid, tid);

CREATE OPERATOR FAMILY time_ops USING mot_index;
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING mot_index FAMILY time_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 time_cmp(time, time);

CREATE OPERATOR FAMILY timetz_ops USING mot_index;
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz USING mot_index FAMILY timetz_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 timetz_cmp(timetz, timetz);

CREATE OPERATOR FAMILY uuid_ops USING mot_index;
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING mot_index FAMILY uuid_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 uuid_cmp(uuid, uuid);

CREATE OPERATOR FAMILY varbit_ops USING mot_index;
CREATE OPERATOR CLASS varbit_ops DEFAULT FOR TYPE varbit USING mot_index FAMILY varbit_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 varbitcmp(varbit, varbit);

CREATE OPERATOR FAMILY xid8_ops USING mot_index;
CREATE OPERATOR CLASS xid8_ops DEFAULT FOR TYPE xid8 USING mot_index FAMILY xid8_ops AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 xid8cmp(xid8, xid8);

-- ------------------------------------------------------------- monitoring


CREATE FUNCTION mot_stat_get_tables(
    OUT relid oid, OUT rows bigint, OUT row_bytes bigint, OUT used_bytes bigint,
    OUT index_bytes bigint, OUT inserts bigint, OUT updates bigint, OUT deletes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 20;

-- also those that are not in memory: still loading, damaged, or without storage
CREATE VIEW mot_stat_tables AS
    SELECT n.nspname AS schemaname, c.relname, c.oid AS relid, s.rows,
           s.row_bytes, s.used_bytes, s.index_bytes, s.row_bytes + s.index_bytes AS total_bytes,
           s.inserts, s.updates, s.deletes, s.relid IS NOT NULL AS loaded
    FROM pg_class c
         LEFT JOIN mot_stat_get_tables() s ON s.relid = c.oid
         LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'm') AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'mot')
       OR c.oid IN (SELECT f.ftrelid FROM pg_foreign_data_wrapper w
                       JOIN pg_foreign_server v ON v.srvfdw = w.oid
                       JOIN pg_foreign_table f ON f.ftserver = v.oid
                    WHERE w.fdwname = 'mot_fdw');

COMMENT ON VIEW mot_stat_tables IS 'memory-optimized tables of this database: rows, memory, changes';

CREATE FUNCTION mot_stat_get_indexes(
    OUT relid oid, OUT indexrelid oid, OUT is_unique boolean, OUT bytes bigint,
    OUT used_bytes bigint, OUT stale_entries bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 40;

CREATE VIEW mot_stat_indexes AS
    SELECT n.nspname AS schemaname, c.relname, i.relname AS indexrelname, s.relid, s.indexrelid,
           s.is_unique, s.bytes, s.used_bytes, s.stale_entries
    FROM mot_stat_get_indexes() s
         JOIN pg_class c ON c.oid = s.relid
         JOIN pg_class i ON i.oid = s.indexrelid
         LEFT JOIN pg_namespace n ON n.oid = c.relnamespace;

COMMENT ON VIEW mot_stat_indexes IS 'indexes of memory-optimized tables of this database';

CREATE FUNCTION mot_stat_get_memory(
    OUT max_bytes bigint, OUT used_bytes bigint, OUT rows bigint, OUT row_bytes bigint,
    OUT index_bytes bigint, OUT engine_bytes bigint, OUT descriptor_bytes bigint,
    OUT system_bytes bigint, OUT node_bytes bigint[], OUT retired_objects bigint,
    OUT clock bigint, OUT horizon bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

CREATE VIEW mot_stat_memory AS SELECT * FROM mot_stat_get_memory();

COMMENT ON VIEW mot_stat_memory IS 'memory of all memory-optimized tables of the server';

-- of tables in memory, of databases to which the user may connect
CREATE FUNCTION mot_stat_get_all_tables(
    OUT datid oid, OUT rows bigint, OUT row_bytes bigint, OUT index_bytes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 100;

-- of a row of pg_database or pg_authid: what counts towards its limit, and that
CREATE FUNCTION mot_stat_get_quota(catalog regclass, id oid, OUT counted_bytes bigint, OUT max_bytes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

CREATE VIEW mot_stat_memory_databases AS
    SELECT s.*, q.counted_bytes, q.max_bytes
    FROM (SELECT d.oid AS datid, d.datname, count(*) AS tables, sum(t.rows)::bigint AS rows, sum(t.row_bytes)::bigint AS row_bytes,
                 sum(t.index_bytes)::bigint AS index_bytes, sum(t.row_bytes + t.index_bytes)::bigint AS total_bytes
          FROM mot_stat_get_all_tables() t JOIN pg_database d ON d.oid = t.datid
          GROUP BY d.oid, d.datname) s,
         mot_stat_get_quota('pg_database', s.datid) q;

COMMENT ON VIEW mot_stat_memory_databases IS 'memory of memory-optimized tables by database';

CREATE VIEW mot_stat_memory_roles AS
    SELECT s.*, q.counted_bytes, q.max_bytes
    FROM (SELECT r.oid AS roleid, r.rolname, count(*) AS tables, sum(t.rows)::bigint AS rows, sum(t.row_bytes)::bigint AS row_bytes,
                 sum(t.index_bytes)::bigint AS index_bytes, sum(t.row_bytes + t.index_bytes)::bigint AS total_bytes
          FROM mot_stat_get_tables() t JOIN pg_class c ON c.oid = t.relid JOIN pg_roles r ON r.oid = c.relowner
          GROUP BY r.oid, r.rolname) s,
         mot_stat_get_quota('pg_authid', s.roleid) q;

COMMENT ON VIEW mot_stat_memory_roles IS 'memory of memory-optimized tables of this database by their owners';

CREATE FUNCTION mot_stat_get_jit(
    OUT query_id bigint, OUT query text, OUT tier integer, OUT shape text, OUT executions bigint,
    OUT prepare_ms double precision, OUT compile_ms double precision, OUT code_bytes bigint,
    OUT memory_bytes bigint, OUT why_not text, OUT why_not_compiled text,
    OUT unplanned bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 50;

CREATE VIEW mot_stat_jit AS SELECT * FROM mot_stat_get_jit();

CREATE FUNCTION mot_jit_dump(part_of_query text) RETURNS text
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON VIEW mot_stat_jit IS 'statements of this session on memory-optimized tables, and how they are run';

CREATE FUNCTION mot_stat_get_procedures(
    OUT function regprocedure, OUT executions bigint, OUT compiled_executions bigint,
    OUT statements integer, OUT interpreted_statements integer,
    OUT expressions integer, OUT interpreted_expressions integer,
    OUT compile_ms double precision, OUT code_bytes bigint,
    OUT why_not text, OUT why_interpreted text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 20;

CREATE VIEW mot_stat_procedures AS SELECT * FROM mot_stat_get_procedures();

COMMENT ON VIEW mot_stat_procedures IS 'functions in PL/pgSQL of this session, and what of them is machine code';

CREATE FUNCTION mot_stat_get_nodes(
    OUT node integer, OUT chunk_bytes bigint, OUT page_bytes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 2;

CREATE VIEW mot_stat_nodes AS SELECT * FROM mot_stat_get_nodes();

COMMENT ON VIEW mot_stat_nodes IS 'memory of memory-optimized tables by NUMA node';

CREATE FUNCTION mot_stat_get_transactions(
    OUT commits bigint, OUT aborts bigint, OUT waits bigint, OUT deadlocks bigint,
    OUT conflict_changed bigint, OUT conflict_deleted bigint,
    OUT conflict_read bigint, OUT conflict_phantom bigint,
    OUT conflict_mixed bigint, OUT conflict_held bigint, OUT conflict_snapshot bigint,
    OUT stats_reset timestamptz)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

CREATE VIEW mot_stat_transactions AS SELECT * FROM mot_stat_get_transactions();

COMMENT ON VIEW mot_stat_transactions IS 'transactions that used memory-optimized tables, since stats_reset';

CREATE FUNCTION mot_stat_reset() RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
REVOKE EXECUTE ON FUNCTION mot_stat_reset() FROM PUBLIC;

COMMENT ON FUNCTION mot_stat_reset() IS
    'make the counters of mot_stat_transactions, mot_stat_checkpoint and mot_stat_workers begin anew';

CREATE FUNCTION mot_stat_get_snapshots(
    OUT pid integer, OUT snapshot bigint, OUT commits_since bigint, OUT seconds double precision, OUT kept_bytes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 10;

CREATE VIEW mot_stat_snapshots AS
    SELECT pid, snapshot, commits_since, make_interval(secs => seconds) AS age, kept_bytes FROM mot_stat_get_snapshots();

COMMENT ON VIEW mot_stat_snapshots IS 'snapshots of memory-optimized tables that sessions hold; superseded rows are kept for the oldest one';

CREATE FUNCTION mot_stat_get_workers(
    OUT processors double precision, OUT hint double precision, OUT active integer, OUT blocked integer,
    OUT most integer, OUT running integer, OUT parked integer, OUT asked bigint, OUT granted bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

CREATE VIEW mot_stat_workers AS SELECT * FROM mot_stat_get_workers();

COMMENT ON VIEW mot_stat_workers IS 'processors, and the parallel workers of queries on memory-optimized tables';

-- what queries that ask for sizes are given instead of pg_relation_size() and its like
CREATE FUNCTION mot_relation_size(regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
CREATE FUNCTION mot_relation_size(regclass, text) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
CREATE FUNCTION mot_table_size(regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
CREATE FUNCTION mot_indexes_size(regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
CREATE FUNCTION mot_total_relation_size(regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION mot_verify(
    tab regclass,
    OUT object regclass, OUT entries bigint, OUT problems bigint, OUT first_problem text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE ROWS 3;

COMMENT ON FUNCTION mot_verify(regclass) IS
    'check that a memory-optimized table and its indexes agree; keeps writers out until the end of the transaction';

CREATE FUNCTION mot_to_table(tab regclass) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION mot_to_table(regclass) IS
    'make an ordinary table of a memory-optimized foreign table; its rows stay where they are';

CREATE FUNCTION mot_stat_get_checkpoint(
    OUT checkpoint_lsn pg_lsn, OUT redo_lsn pg_lsn, OUT rows bigint, OUT bytes bigint,
    OUT seconds double precision, OUT finished_at timestamptz,
    OUT completed bigint, OUT failed bigint, OUT last_error text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

CREATE VIEW mot_stat_checkpoint AS SELECT * FROM mot_stat_get_checkpoint();

COMMENT ON VIEW mot_stat_checkpoint IS 'newest checkpoint of memory-optimized tables, and how many succeeded and failed';

CREATE FUNCTION mot_stat_get_recovery(
    OUT state text, OUT checkpoint_lsn pg_lsn, OUT replayed_lsn pg_lsn,
    OUT tables_total bigint, OUT tables_loaded bigint, OUT rows_loaded bigint, OUT bytes_loaded bigint,
    OUT load_seconds double precision, OUT records_applied bigint, OUT in_doubt bigint, OUT damaged_tables bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

CREATE VIEW mot_stat_recovery AS SELECT * FROM mot_stat_get_recovery();

COMMENT ON VIEW mot_stat_recovery IS 'loading of memory-optimized tables at server start, and replay';

CREATE FUNCTION mot_stat_get_left_out(
    OUT datid oid, OUT relid oid, OUT rows bigint, OUT redo_bytes bigint, OUT needed_bytes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

CREATE VIEW mot_stat_left_out AS
    SELECT d.datname, c.oid::regclass AS tab, l.* FROM mot_stat_get_left_out() l
    LEFT JOIN pg_database d ON d.oid = l.datid
    LEFT JOIN pg_class c ON c.oid = l.relid AND d.datname = current_database();

COMMENT ON VIEW mot_stat_left_out IS
    'memory-optimized tables that memory has no room for: they are kept in files, and brought back when there is room';

-- ---------------------------------------------------------------- machine

CREATE FUNCTION mot_stat_get_cpus(
    OUT cpu integer, OUT node integer, OUT core integer, OUT shared_caches text, OUT others real, OUT ours real,
    OUT usable boolean, OUT why_not text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 16;

CREATE VIEW mot_machine AS SELECT * FROM mot_stat_get_cpus();

COMMENT ON VIEW mot_machine IS 'processors: what they consist of, how busy they are with others and with us, and whether they are of use';

CREATE FUNCTION mot_stat_get_machine(
    OUT cpus integer, OUT usable integer, OUT cpu_limit real, OUT free real, OUT nodes integer, OUT memory_bytes bigint,
    OUT cpu_pressure real, OUT memory_pressure real, OUT io_pressure real, OUT readings bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

CREATE VIEW mot_stat_machine AS SELECT * FROM mot_stat_get_machine();

COMMENT ON VIEW mot_stat_machine IS 'the machine, or what the control group has of it, and what others leave of that';

CREATE FUNCTION mot_cache_size(level integer) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION mot_cache_size(integer) IS 'bytes of a processor cache of that level; null if there is none';

CREATE FUNCTION mot_suggest_partitions(bytes bigint, bound text, OUT partitions integer, OUT why text)
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION mot_suggest_partitions(bigint, text) IS
    'into how many parts to divide work on so many bytes, bound by compute or memory, to be done at the same time';

CREATE FUNCTION mot_suggest_placement(
    partitions integer, bytes bigint, bound text, share_cache boolean,
    OUT partition integer, OUT cpu integer, OUT node integer, OUT why text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 16;

COMMENT ON FUNCTION mot_suggest_placement(integer, bigint, text, boolean) IS
    'where parts of so many bytes each are best kept and worked on';

-- ---------------------------------------------------------------- islands

CREATE FUNCTION mot_islands_get(
    OUT relid oid, OUT range integer, OUT low bytea, OUT node integer, OUT heat double precision, OUT wanted_node integer,
    OUT cost_before double precision, OUT cost_after double precision)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW mot_islands AS
    SELECT c.oid::regclass AS tab, i.range, i.low, i.node, i.heat, i.wanted_node, i.cost_before, i.cost_after
    FROM mot_islands_get() i JOIN pg_class c ON c.oid = i.relid;

COMMENT ON VIEW mot_islands IS
    'ranges of the keys of this database''s memory-optimized tables, how much they are worked on, and the node where they had better live';

CREATE FUNCTION mot_island_decisions_get(
    OUT decided_at timestamptz, OUT why text, OUT done boolean, OUT splits integer, OUT merges integer, OUT moves integer,
    OUT actions text[], OUT milliseconds double precision, OUT cost_before double precision, OUT cost_after double precision)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW mot_island_decisions AS SELECT * FROM mot_island_decisions_get();

COMMENT ON VIEW mot_island_decisions IS 'the newest decisions to move ranges to other nodes';

GRANT SELECT ON mot_islands, mot_island_decisions TO PUBLIC;

-- ---------------------------------------------------------------- adviser
--
-- Which heap tables of this database would gain, the first most.  What a
-- statement by key costs less, in microseconds of the server's processor
-- time, is what "make bench" measures (docs/benchmarks.md, statements in a
-- function): 4 a look-up, 6.5 an update, 2 an insert or a delete.  A key has an
-- encoding if an operator class of mot_index has its comparison.

CREATE FUNCTION mot_statements_ms(named name) RETURNS double precision
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    statements text := (SELECT format('%I.pg_stat_statements', nspname)
                        FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'pg_stat_statements');
    sum double precision;
BEGIN
    IF statements IS NOT NULL AND 'pg_stat_statements' = ANY (regexp_split_to_array(current_setting('shared_preload_libraries'), '[ ,]+')) THEN
        EXECUTE format('SELECT sum(total_exec_time) FROM %s JOIN pg_database d ON d.oid = dbid
                        WHERE datname = current_database() AND query ~ $1', statements)
            INTO sum USING '\m' || regexp_replace(named, '([^[:alnum:]_])', '\\\1', 'g') || '\M';
    END IF;
    RETURN sum;
END $$;

COMMENT ON FUNCTION mot_statements_ms(name) IS
    'time of statements that name a table, from pg_stat_statements; null without it';

CREATE FUNCTION mot_advise(
    OUT place bigint, OUT tab regclass, OUT bytes bigint, OUT fits boolean, OUT saves_ms_per_s numeric,
    OUT lookups bigint, OUT changes bigint, OUT updates_per_row numeric, OUT waiting bigint,
    OUT statements_ms double precision, OUT obstacles text[], OUT remarks text[])
    RETURNS SETOF record
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    WITH seconds AS (
        SELECT greatest(1, extract(epoch FROM now() - coalesce(stats_reset, pg_postmaster_start_time()))) AS n
        FROM pg_stat_database WHERE datname = current_database()),
    heap AS (
        SELECT c.oid, c.relpersistence, s.*, pg_total_relation_size(c.oid) AS size,
               (coalesce(s.idx_scan, 0) * 4 + s.n_tup_upd * 6.5 + (s.n_tup_ins + s.n_tup_del) * 2) / 1000.0
                   / (SELECT n FROM seconds) AS saves
        FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_stat_user_tables s ON s.relid = c.oid
        WHERE c.relkind IN ('r', 'm') AND a.amname = 'heap'
          AND c.relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\_%')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                                                    AND d.deptype = 'e')),
    columns AS (   -- of indexes, with the comparison that orders them
        SELECT i.indrelid, i.indexrelid, k.n, i.indkey[k.n - 1] AS attnum, i.indcollation[k.n - 1] AS collid,
               p.amproc, i.indkey[k.n - 1] = 0 OR i.indpred IS NOT NULL AS computed
        FROM pg_index i JOIN heap ON heap.oid = i.indrelid
             CROSS JOIN generate_series(1, i.indnkeyatts) AS k(n)
             JOIN pg_opclass o ON o.oid = i.indclass[k.n - 1]
             LEFT JOIN pg_amproc p ON p.amprocfamily = o.opcfamily AND p.amproclefttype = o.opcintype
                                  AND p.amprocrighttype = o.opcintype AND p.amprocnum = 1),
    found AS (     -- what ALTER TABLE ... SET ACCESS METHOD mot would say
        SELECT i.indrelid AS relid, 1 AS kind, format('index %s is %s: only btree is there', i.indexrelid::regclass, a.amname) AS what
        FROM pg_index i JOIN heap ON heap.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
             JOIN pg_am a ON a.oid = x.relam AND a.amname <> 'btree'
        UNION ALL
        SELECT k.indrelid, 1, format('index %s: nondeterministic collation %s', k.indexrelid::regclass, c.collname)
        FROM columns k JOIN pg_collation c ON c.oid = k.collid AND NOT c.collisdeterministic
             JOIN pg_proc p ON p.oid = k.amproc AND p.proname IN ('bttextcmp', 'bpcharcmp', 'btnamecmp')
             JOIN pg_database d ON d.datname = current_database()
        WHERE k.computed OR p.proname = 'btnamecmp' OR d.encoding <> pg_char_to_encoding('UTF8')
        UNION ALL
        SELECT k.indrelid, 2, format('index %s: serves equality only in the collation of %s', k.indexrelid::regclass,
                                     string_agg(pg_get_indexdef(k.indexrelid, k.n, true), ', ' ORDER BY k.n))
        FROM columns k JOIN pg_proc p ON p.oid = k.amproc AND p.proname IN ('bttextcmp', 'bpcharcmp', 'btnamecmp')
             LEFT JOIN pg_collation c ON c.oid = k.collid AND c.oid <> 100
             JOIN pg_database d ON d.datname = current_database()
        WHERE (k.computed OR p.proname = 'btnamecmp' OR
               coalesce(c.collprovider, d.datlocprovider) = 'i' AND d.encoding <> pg_char_to_encoding('UTF8')) AND
              CASE WHEN c.oid IS NULL THEN d.datlocprovider <> 'c' OR d.datcollate NOT IN ('C', 'POSIX', 'C.UTF-8', 'C.utf8')
                   ELSE c.collprovider NOT IN ('c', 'd') OR c.collcollate NOT IN ('C', 'POSIX', 'C.UTF-8', 'C.utf8') END
        GROUP BY k.indrelid, k.indexrelid
        UNION ALL
        SELECT heap.oid, 2, 'it is unlogged, and would be empty after each start' FROM heap WHERE relpersistence = 'u'
        UNION ALL
        SELECT heap.oid, 2, 'it is mostly read as a whole'
        FROM heap WHERE seq_tup_read > 100 * (coalesce(idx_tup_fetch, 0) + n_tup_upd + n_tup_ins + n_tup_del + 1000)
        UNION ALL
        SELECT heap.oid, 2, 'nothing has been counted yet' FROM heap
        WHERE coalesce(idx_scan, 0) + n_tup_upd + n_tup_ins + n_tup_del + seq_scan = 0),
    said AS (
        SELECT heap.*, ARRAY(SELECT what FROM found WHERE relid = heap.oid AND kind = 1 ORDER BY what) AS no,
               ARRAY(SELECT what FROM found WHERE relid = heap.oid AND kind = 2 ORDER BY what) AS but,
               (SELECT count(*) FROM pg_locks l WHERE NOT l.granted AND l.locktype = 'tuple' AND l.relation = heap.oid
                    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS waits
        FROM heap),
    ranked AS (
        SELECT said.*, row_number() OVER (ORDER BY no <> '{}', saves DESC, size, oid) AS n,
               sum(CASE WHEN no = '{}' THEN size ELSE 0 END) OVER (ORDER BY no <> '{}', saves DESC, size, oid) AS sum
        FROM said)
    SELECT n, oid::regclass, size,
           CASE WHEN no = '{}' THEN sum <= (SELECT max_bytes - used_bytes FROM @extschema@.mot_stat_memory) END,
           round(saves, 3), coalesce(idx_scan, 0), n_tup_ins + n_tup_upd + n_tup_del,
           round(n_tup_upd::numeric / greatest(n_live_tup, 1), 2), waits,
           @extschema@.mot_statements_ms(relname), no, but
    FROM ranked ORDER BY n
$$;

COMMENT ON FUNCTION mot_advise() IS 'heap tables of this database, ranked by what they would gain in memory';

-- the arithmetic of docs/memory.md
CREATE FUNCTION mot_estimate(
    tab regclass, sample_rows integer DEFAULT 30000,
    OUT leaf regclass, OUT object regclass, OUT part text, OUT entries bigint, OUT bytes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE ROWS 6
    SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION mot_estimate(regclass, integer) IS
    'memory that a table with its indexes would take, from its rows or as many blocks and rows of a sample';

GRANT SELECT ON mot_stat_left_out, mot_stat_tables, mot_stat_indexes, mot_stat_memory, mot_stat_memory_databases, mot_stat_memory_roles, mot_stat_jit, mot_stat_procedures, mot_stat_nodes, mot_stat_transactions, mot_stat_snapshots, mot_stat_workers, mot_stat_checkpoint, mot_stat_recovery TO PUBLIC;
