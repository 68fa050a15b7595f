--
-- CREATE FOREIGN TABLE with keys
--
CREATE FOREIGN TABLE ddl_t (
    id bigint PRIMARY KEY,
    a int UNIQUE,
    b text CONSTRAINT ddl_t_b UNIQUE,
    c int NOT NULL DEFAULT 5 CHECK (c > 0),
    CONSTRAINT ddl_t_ca UNIQUE (c, a)
) SERVER mot_server;
\d ddl_t
SELECT conname, contype, convalidated, conindid::regclass
    FROM pg_constraint WHERE conrelid = 'ddl_t'::regclass AND contype <> 'n' ORDER BY conname;
SELECT indexrelid::regclass, indisprimary, indisunique, indisvalid, indkey
    FROM pg_index WHERE indrelid = 'ddl_t'::regclass ORDER BY indexrelid::regclass::text;
INSERT INTO ddl_t VALUES (1, 1, 'one'), (2, NULL, NULL), (3, NULL, NULL);
INSERT INTO ddl_t VALUES (1, 9, 'nine');
INSERT INTO ddl_t VALUES (9, 1, 'nine');
INSERT INTO ddl_t VALUES (9, 9, 'one');
INSERT INTO ddl_t VALUES (NULL, 9, 'nine');
INSERT INTO ddl_t VALUES (9, 9, 'nine', 0);
SELECT * FROM ddl_t ORDER BY id;

-- nothing happens to a table that is there
CREATE FOREIGN TABLE IF NOT EXISTS ddl_t (x int PRIMARY KEY, y int UNIQUE) SERVER mot_server;
CREATE FOREIGN TABLE ddl_t (x int PRIMARY KEY) SERVER mot_server;
\d ddl_t
DROP FOREIGN TABLE ddl_t;

-- equal keys become one, the primary key goes first
CREATE FOREIGN TABLE ddl_t (a int UNIQUE PRIMARY KEY, b int NULL, UNIQUE (a), CONSTRAINT two UNIQUE (b, a),
    c int UNIQUE NOT DEFERRABLE INITIALLY IMMEDIATE) SERVER mot_server;
\d ddl_t
DROP FOREIGN TABLE ddl_t;

-- several columns, nullable until the key says otherwise
CREATE FOREIGN TABLE ddl_t (a int NULL, b text, PRIMARY KEY (b, a)) SERVER mot_server;
\d ddl_t
DROP TABLE ddl_t;

-- without keys; with no columns
CREATE FOREIGN TABLE ddl_t () SERVER mot_server;
INSERT INTO ddl_t DEFAULT VALUES;
SELECT count(*) FROM ddl_t;
DROP TABLE ddl_t;

-- what cannot be
CREATE TABLE ddl_heap (id int PRIMARY KEY);
\set VERBOSITY sqlstate
CREATE FOREIGN TABLE ddl_bad (a int REFERENCES ddl_heap) SERVER mot_server;
\set VERBOSITY default
CREATE FOREIGN TABLE ddl_bad (a int, FOREIGN KEY (a) REFERENCES ddl_heap) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int PRIMARY KEY DEFERRABLE) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int, UNIQUE (a) DEFERRABLE INITIALLY DEFERRED) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int, EXCLUDE (a WITH =)) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int, b int, PRIMARY KEY (a) INCLUDE (b)) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int UNIQUE NULLS NOT DISTINCT) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int PRIMARY KEY, b int PRIMARY KEY) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int, PRIMARY KEY (a, a)) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int, UNIQUE (b)) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int) SERVER mot_server;
INSERT INTO ddl_bad VALUES (NULL);
-- before rows are looked at
ALTER TABLE ddl_bad ADD PRIMARY KEY (a, nosuch);
DROP TABLE ddl_bad;
CREATE FOREIGN TABLE ddl_bad (a json PRIMARY KEY) SERVER mot_server;
CREATE FOREIGN TABLE ddl_bad (a int, UNIQUE (a) USING INDEX TABLESPACE nowhere) SERVER mot_server;
-- nothing of them was left behind
SELECT count(*) FROM pg_class WHERE relname ~ 'ddl_bad';
SELECT count(*) FROM mot_stat_tables;

-- a heap table cannot point at one of ours
CREATE FOREIGN TABLE ddl_t (id int PRIMARY KEY, v int) SERVER mot_server;
CREATE TABLE ddl_bad (a int REFERENCES ddl_t);
CREATE TABLE ddl_bad (a int, FOREIGN KEY (a) REFERENCES ddl_t (id));
ALTER TABLE ddl_heap ADD FOREIGN KEY (id) REFERENCES ddl_t;
ALTER TABLE ddl_heap ADD COLUMN x int REFERENCES ddl_t;
ALTER TABLE ddl_t ADD FOREIGN KEY (id) REFERENCES ddl_heap;
ALTER TABLE ddl_t ADD COLUMN x int REFERENCES ddl_heap;

-- the primary key is known to the parser
CREATE VIEW ddl_view AS SELECT id, v, count(*) FROM ddl_t GROUP BY id;
ALTER TABLE ddl_t DROP CONSTRAINT ddl_t_pkey;
ALTER TABLE ddl_t DROP CONSTRAINT ddl_t_pkey CASCADE;
DROP TABLE ddl_t, ddl_heap;

-- LIKE
CREATE TABLE ddl_source (
    id int GENERATED ALWAYS AS IDENTITY (START 100) PRIMARY KEY,
    a text COLLATE "C" DEFAULT 'x' NOT NULL,
    b int CHECK (b > 0),
    g int GENERATED ALWAYS AS (b * 2) STORED,
    UNIQUE (a, b)
);
CREATE INDEX ddl_source_b ON ddl_source (b DESC NULLS LAST);
COMMENT ON COLUMN ddl_source.a IS 'the a';
COMMENT ON INDEX ddl_source_b IS 'the index on b';
CREATE FOREIGN TABLE ddl_like (x int, LIKE ddl_source INCLUDING ALL, y int) SERVER mot_server;
\d ddl_like
SELECT col_description('ddl_like'::regclass, 3), obj_description('ddl_like_b_idx'::regclass);
INSERT INTO ddl_like (b) VALUES (1), (2);
SELECT * FROM ddl_like ORDER BY id;
CREATE FOREIGN TABLE ddl_like2 (LIKE ddl_source) SERVER mot_server;
\d ddl_like2
CREATE TABLE ddl_like3 (LIKE ddl_like INCLUDING ALL);
\d ddl_like3
CREATE INDEX ddl_source_part ON ddl_source (a) WHERE b > 3;
CREATE FOREIGN TABLE ddl_like4 (LIKE ddl_source INCLUDING INDEXES) SERVER mot_server;
DROP TABLE ddl_like, ddl_like2, ddl_like3, ddl_source;

-- all or nothing
BEGIN;
CREATE FOREIGN TABLE ddl_t (id int PRIMARY KEY) SERVER mot_server;
INSERT INTO ddl_t VALUES (1);
SAVEPOINT s;
CREATE FOREIGN TABLE ddl_u (id int PRIMARY KEY) SERVER mot_server;
INSERT INTO ddl_u SELECT id FROM ddl_t;
SELECT relname FROM mot_stat_tables ORDER BY relname;
ROLLBACK TO s;
SELECT * FROM ddl_u;
ROLLBACK TO s;
SELECT relname FROM mot_stat_tables;
COMMIT;
SELECT relname, rows FROM mot_stat_tables;
BEGIN;
DROP TABLE ddl_t;
CREATE FOREIGN TABLE ddl_t (id text) SERVER mot_server;
INSERT INTO ddl_t VALUES ('another');
SELECT * FROM ddl_t;
ROLLBACK;
SELECT * FROM ddl_t;

-- DDL in functions, more than once
CREATE FUNCTION ddl_make(n int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    CREATE FOREIGN TABLE ddl_f (id int PRIMARY KEY, v text UNIQUE) SERVER mot_server;
    CREATE INDEX ON ddl_f (v, id);
    INSERT INTO ddl_f SELECT i, 'v' || i FROM generate_series(1, n) i;
    ALTER TABLE ddl_f ADD COLUMN w int DEFAULT 3;
    n := (SELECT sum(w) FROM ddl_f);
    DROP TABLE ddl_f;
    RETURN n;
END $$;
SELECT ddl_make(3);
SELECT ddl_make(4);
DROP FUNCTION ddl_make;
DROP TABLE ddl_t;
SELECT count(*) FROM mot_stat_tables;

-- the schema of temporary tables takes none
CREATE FOREIGN TABLE pg_temp.ddl_temp (a int PRIMARY KEY) SERVER mot_server;
SET search_path = pg_temp;
CREATE FOREIGN TABLE ddl_temp (a int) SERVER mot_server;
RESET search_path;
