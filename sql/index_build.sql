--
-- Indexes on rows that are there already: keys of many shapes, sorted in memory
-- and in files, against an index that the same rows were put into one by one.
--
SET maintenance_work_mem = '1MB';
CREATE FOREIGN TABLE build_mot (id int, r int, few int, big bigint, word text, path text, long text, num numeric, b bytea, maybe int) SERVER mot_server;
INSERT INTO build_mot
SELECT i, hashint4(i), i % 7, hashint8extended(i, 1),
	md5(i::text), '/home/someone/' || repeat('directory/', i % 20) || i % 1000,
	repeat('a rather long beginning that they have in common ', i % 5) || hashint4(i) % 100,
	(hashint4(i)::numeric / 1000) ^ 2, decode(repeat('00', i % 30), 'hex'),
	CASE WHEN i % 3 = 0 THEN i % 50 END
FROM generate_series(1, 12000) i;

-- one by one: the table is empty when they are made
CREATE FOREIGN TABLE build_twin (LIKE build_mot) SERVER mot_server;
CREATE FUNCTION build_indexes(t regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	cols text;
BEGIN
	FOREACH cols IN ARRAY ARRAY['r', 'few', 'big', 'word', 'path', 'long', 'num', 'b', 'maybe', 'few, long DESC, b', 'maybe NULLS FIRST, word', 'path, num'] LOOP
		EXECUTE format('CREATE INDEX %I ON %s (%s)', t || ' ' || cols, t, cols);
	END LOOP;
	EXECUTE format('CREATE UNIQUE INDEX %I ON %s (id)', t || ' id', t);
	EXECUTE format('CREATE UNIQUE INDEX %I ON %s (maybe, id)', t || ' maybe, id', t);
	EXECUTE format('CREATE UNIQUE INDEX %I ON %s (path, id)', t || ' path, id', t);
END $$;
SELECT build_indexes('build_twin');
INSERT INTO build_twin SELECT * FROM build_mot;
SELECT build_indexes('build_mot');
SELECT object, problems FROM mot_verify('build_mot') ORDER BY object::text COLLATE "C";

-- the same rows in the same order, and no more memory than what grew
SET enable_seqscan = off;
SET enable_sort = off;
CREATE FUNCTION build_same(cols text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	a text;
	b text;
BEGIN
	EXECUTE format('SELECT md5(string_agg(x::text, '','')) FROM (SELECT %s x FROM build_mot ORDER BY %1$s) s', 'ROW(' || cols || ')', cols) INTO a;
	EXECUTE format('SELECT md5(string_agg(x::text, '','')) FROM (SELECT %s x FROM build_twin ORDER BY %1$s) s', 'ROW(' || cols || ')', cols) INTO b;
	RETURN a = b;
END $$;
SELECT cols, build_same(cols) FROM unnest(ARRAY['r', 'few', 'big', 'word', 'path', 'long', 'num', 'b', 'maybe', 'path, num', 'maybe, id']) cols;
EXPLAIN (COSTS OFF) SELECT count(*) FROM build_mot WHERE path = '/home/someone/directory/directory/42';
SELECT count(*) FROM build_mot WHERE path = '/home/someone/directory/directory/42';
SELECT count(*) FROM build_twin WHERE path = '/home/someone/directory/directory/42';
SELECT count(*) FROM build_mot WHERE few = 3 AND long LIKE 'a rather long beginning%';
SELECT count(*) FROM build_twin WHERE few = 3 AND long LIKE 'a rather long beginning%';
SELECT count(*) FROM build_mot WHERE maybe IS NULL;
SELECT replace(a.index::text, 'build_mot', '') AS index
FROM (SELECT indexrelname AS index, * FROM mot_stat_indexes WHERE relname = 'build_mot') a
JOIN (SELECT indexrelname AS index, * FROM mot_stat_indexes WHERE relname = 'build_twin') b
	ON replace(a.index::text, 'build_mot', 'build_twin') = b.index::text
WHERE a.used_bytes > b.used_bytes * 1.3;

-- they go on as other indexes do
UPDATE build_mot SET r = r + 1, path = path || 'x', maybe = id % 10 WHERE id % 10 = 0;
DELETE FROM build_mot WHERE id % 10 = 1;
INSERT INTO build_mot SELECT id + 100000, r, few, big, word, path, long, num, b, maybe FROM build_twin WHERE id % 10 = 2;
SELECT sum(problems) FROM mot_verify('build_mot');

-- duplicates, in memory and in files
CREATE UNIQUE INDEX build_dup ON build_mot (path);
CREATE UNIQUE INDEX build_dup ON build_mot (maybe);
-- nulls are none
UPDATE build_mot SET maybe = NULL WHERE id % 3 = 0;
UPDATE build_mot SET maybe = id;
UPDATE build_mot SET maybe = NULL WHERE id % 3 = 0;
CREATE UNIQUE INDEX build_dup ON build_mot (maybe);
SELECT count(*) FROM build_mot WHERE maybe = 100;
INSERT INTO build_mot (id, maybe) VALUES (1000000, 100);
SELECT sum(problems) FROM mot_verify('build_mot');

-- more than fits into memory: into files, and files of files
CREATE FOREIGN TABLE build_large (id int, t text) SERVER mot_server;
INSERT INTO build_large SELECT i, repeat(chr(97 + i % 26), 2000 + i % 30) || i FROM generate_series(1, 16000) i;
CREATE UNIQUE INDEX build_large_t ON build_large (t);
INSERT INTO build_large SELECT i::bigint * 7919 % 1000003 + 20000 FROM generate_series(1, 100000) i;
CREATE UNIQUE INDEX build_large_id ON build_large (id);
SELECT sum(problems) FROM mot_verify('build_large');
SELECT count(*) FROM build_large WHERE id = 20000 + 7919;
SELECT id, length(t) FROM build_large WHERE t = repeat('e', 2016) || '10456';
DROP INDEX build_large_id;
UPDATE build_large SET id = 55 WHERE id = 20000 + 7919;
CREATE UNIQUE INDEX build_large_id ON build_large (id);
SET maintenance_work_mem = '64MB';
CREATE UNIQUE INDEX build_large_id ON build_large (id);
SET maintenance_work_mem = '1MB';
SET temp_file_limit = '1MB';
CREATE INDEX build_large_t2 ON build_large (t);
RESET temp_file_limit;
RESET maintenance_work_mem;
SELECT sum(problems) FROM mot_verify('build_large');

-- a table without rows, with one, and with a transaction's own
CREATE FOREIGN TABLE build_few (a int, t text) SERVER mot_server;
CREATE INDEX ON build_few (a);
INSERT INTO build_few VALUES (1, repeat('x', 3000));
CREATE INDEX ON build_few (t);
BEGIN;
INSERT INTO build_few SELECT i, repeat('x', 3000 + i % 100) FROM generate_series(2, 300) i;
DELETE FROM build_few WHERE a = 1;
CREATE INDEX ON build_few (t, a);
SELECT count(*) FROM build_few WHERE t = repeat('x', 3007);
COMMIT;
SELECT sum(problems) FROM mot_verify('build_few');
SELECT count(*) FROM build_few WHERE t = repeat('x', 3007);

DROP FUNCTION build_indexes, build_same;
DROP FOREIGN TABLE build_mot, build_twin, build_large, build_few;
