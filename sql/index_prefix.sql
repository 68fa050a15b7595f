--
-- Keys that are alike for long: how much memory an index of them takes, when
-- they came one by one and when it was built on them; and that it finds them.
--
CREATE TABLE prefix_heap (kind text, id int, k text COLLATE "C");
-- in pairs, in tens, all alike; parting at any place; paths and addresses
INSERT INTO prefix_heap
SELECT 'pairs', i, md5((i / 2)::text) || repeat('y', 7900) || i FROM generate_series(1, 300) i
UNION ALL
SELECT 'tens', i, md5((i / 10)::text) || repeat('y', 7900) || i FROM generate_series(1, 300) i
UNION ALL
SELECT 'all', i, repeat('x', 8000) || i FROM generate_series(1, 300) i
UNION ALL
SELECT 'anywhere', i, md5((i / 8)::text) || repeat('z', i % 8 * 1000) || 'a' || repeat('z', 7100 - i % 8 * 1000) FROM generate_series(1, 300) i
UNION ALL
SELECT 'prefixes', i, repeat('ab', i * 13) FROM generate_series(1, 300) i
UNION ALL
SELECT 'paths', i, '/srv/data/' || md5((i / 2)::text) || '/' || repeat(md5((i / 2)::text), 3) || '/' || i % 2 FROM generate_series(1, 2000) i
UNION ALL
SELECT 'urls', i, 'https://www.example.com/shop/category-' || i % 40 || '/product-' || i || '?ref=newsletter' FROM generate_series(1, 2000) i;

CREATE FOREIGN TABLE prefix_grown (kind text, id int, k text COLLATE "C") SERVER mot_server;
CREATE FOREIGN TABLE prefix_built (kind text, id int, k text COLLATE "C") SERVER mot_server;
CREATE FUNCTION prefix_used(index text) RETURNS bigint LANGUAGE sql AS
	'SELECT used_bytes FROM mot_stat_indexes WHERE indexrelname = $1';

-- bytes of the index for each byte of its keys, less what an empty one takes
CREATE FUNCTION prefix_measure(of text) RETURNS TABLE (kind text, grown boolean, built boolean) LANGUAGE plpgsql AS $$
DECLARE
	empty bigint;
	bytes bigint;
BEGIN
	SELECT sum(length(h.k)) INTO bytes FROM prefix_heap h WHERE h.kind = of;
	TRUNCATE prefix_grown, prefix_built;
	DROP INDEX IF EXISTS prefix_grown_k, prefix_built_k;
	CREATE INDEX prefix_grown_k ON prefix_grown (k);
	empty := prefix_used('prefix_grown_k');
	INSERT INTO prefix_grown SELECT * FROM prefix_heap h WHERE h.kind = of ORDER BY hashint4(id);
	INSERT INTO prefix_built SELECT * FROM prefix_heap h WHERE h.kind = of ORDER BY hashint4(id);
	CREATE INDEX prefix_built_k ON prefix_built (k);
	RETURN QUERY SELECT of, prefix_used('prefix_grown_k') - empty < 3 * bytes, prefix_used('prefix_built_k') - empty < 2.3 * bytes;
END $$;
SELECT m.* FROM unnest(ARRAY['pairs', 'tens', 'all', 'anywhere', 'prefixes', 'paths', 'urls']) kind, prefix_measure(kind) m;
-- least of all where all are alike
SELECT prefix_used('prefix_grown_k') > 0 AS known FROM prefix_measure('all');
SELECT prefix_used('prefix_grown_k') < 100000 AS grown, prefix_used('prefix_built_k') < 100000 AS built;

-- all of them, in order, forward and backward, ranges that begin and end anywhere
TRUNCATE prefix_grown, prefix_built;
INSERT INTO prefix_grown SELECT * FROM prefix_heap;
DROP INDEX prefix_built_k;
INSERT INTO prefix_built SELECT * FROM prefix_heap;
CREATE INDEX prefix_built_k ON prefix_built (k);
SET enable_seqscan = off;
SET enable_sort = off;
CREATE FUNCTION prefix_same(rest text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	answers text[] := '{}';
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['prefix_heap', 'prefix_grown', 'prefix_built'] LOOP
		EXECUTE format('SELECT md5(string_agg(md5(k) || length(k), '','')) FROM (SELECT k FROM %I %s) x', t, rest) INTO answer;
		answers := answers || coalesce(answer, 'none');
	END LOOP;
	RETURN answers[1] = answers[2] AND answers[1] = answers[3];
END $$;
SELECT rest, prefix_same(rest) AS same FROM unnest(ARRAY[
	'ORDER BY k', 'ORDER BY k DESC',
	'WHERE k >= repeat(''x'', 4000) ORDER BY k', 'WHERE k < repeat(''x'', 8100) ORDER BY k DESC',
	'WHERE k > repeat(''x'', 5000) || ''a'' AND k < repeat(''y'', 10) ORDER BY k',
	'WHERE k >= repeat(''ab'', 1000) AND k < repeat(''ab'', 2000) || ''a'' ORDER BY k',
	'WHERE k BETWEEN ''/srv/data/a'' AND ''/srv/data/b'' ORDER BY k DESC',
	'WHERE k LIKE ''https://www.example.com/shop/category-17/%'' ORDER BY k']) rest;
SELECT count(*) AS missing FROM prefix_heap h WHERE NOT EXISTS (SELECT FROM prefix_grown g WHERE g.k = h.k);
SELECT count(*) AS missing FROM prefix_heap h WHERE NOT EXISTS (SELECT FROM prefix_built b WHERE b.k = h.k);
SELECT count(*) AS found FROM prefix_grown WHERE k IN (repeat('x', 8000), repeat('x', 7999) || 'y', repeat('ab', 13) || 'c', '/srv/data/');

-- and when most of them have gone
DELETE FROM prefix_heap WHERE id % 3 > 0;
DELETE FROM prefix_grown WHERE id % 3 > 0;
DELETE FROM prefix_built WHERE id % 3 > 0;
SELECT rest, prefix_same(rest) AS same FROM unnest(ARRAY['ORDER BY k', 'ORDER BY k DESC']) rest;
SELECT sum(problems) AS problems FROM (SELECT * FROM mot_verify('prefix_grown') UNION ALL SELECT * FROM mot_verify('prefix_built')) v;
RESET enable_seqscan;
RESET enable_sort;
DROP FUNCTION prefix_same, prefix_measure, prefix_used;
DROP FOREIGN TABLE prefix_grown, prefix_built;
DROP TABLE prefix_heap;
