-- What is known of the machine, and suggested; on machines that hwloc makes up, with loads that were recorded.

CREATE FUNCTION mot_test_machine(what text, readings text) RETURNS void AS 'mot' LANGUAGE C;

-- the one that is there
SELECT count(*) FILTER (WHERE usable) >= 1 AS some, bool_and(usable = (why_not IS NULL)) AS reasons,
       bool_and(others BETWEEN 0 AND 100 AND ours BETWEEN 0 AND 100) IS NOT FALSE AS shares
FROM mot_machine;
SELECT cpus >= 1 AS cpus, usable BETWEEN 1 AND cpus AS usable, free BETWEEN 0 AND cpus AS free, nodes >= 1 AS nodes,
       memory_bytes > 0 AS memory, coalesce(cpu_pressure, 0) >= 0 AS pressure
FROM mot_stat_machine;
SELECT (SELECT partitions FROM mot_suggest_partitions(1 << 30, 'compute')) BETWEEN 1 AND (SELECT cpus FROM mot_stat_machine) AS partitions,
       coalesce(mot_cache_size(1), 1) > 0 AS cache;
-- the maintenance worker looks at it
DO $$ BEGIN FOR i IN 1..1800 LOOP EXIT WHEN (SELECT readings > 0 FROM mot_stat_machine); PERFORM pg_sleep(0.1); END LOOP; END $$;
SELECT readings > 0 AS read FROM mot_stat_machine;

-- the paper's: 4 nodes of 4 cores, one of these busy with others and one with us
SELECT mot_test_machine('node:4(memory=8589934592) l3:1(size=6291456) l2:4(size=524288) l1d:1(size=65536) core:1 pu:1',
    'at 0' || string_agg(format(E'\ncpu%s 0 0 0 0 0 0 0 0', c), '') ||
    E'\nat 1' || string_agg(format(E'\ncpu%s %s 0 0 %s 0 0 0 0', c, busy, 100 - busy), '') ||
    E'\nours 9 500000\n')
FROM (SELECT c, CASE c WHEN 3 THEN 84 WHEN 9 THEN 50 ELSE 0 END AS busy FROM generate_series(0, 15) c) q;
SELECT * FROM mot_machine ORDER BY cpu;
SELECT cpus, usable, cpu_limit, free, nodes, readings FROM mot_stat_machine;
SELECT level, mot_cache_size(level) FROM generate_series(0, 6) level;
SELECT * FROM mot_suggest_partitions(7::bigint << 30, 'compute');
SELECT * FROM mot_suggest_partitions(7::bigint << 30, 'Memory');
SELECT * FROM mot_suggest_partitions(1 << 20, 'memory');
SELECT * FROM mot_suggest_placement(15, (7::bigint << 30) / 15, 'memory', false);
SELECT node, count(*), array_agg(cpu ORDER BY cpu) AS cpus FROM mot_suggest_placement(6, 1 << 20, 'compute', true) GROUP BY node;
SELECT partition, cpu, node, why FROM mot_suggest_placement(16, 1 << 30, 'compute', false) WHERE partition > 14;

-- two threads a core, and a control group's limit
SELECT mot_test_machine('node:1 core:2 pu:2', E'at 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\ncpu2 0 0 0 0\ncpu3 0 0 0 0\n'
    'at 1\ncpu0 0 0 0 100\ncpu1 0 0 0 100\ncpu3 0 0 0 100\nallowed 1 3\nlimit 1.5\n');
SELECT * FROM mot_machine ORDER BY cpu;
SELECT cpus, usable, cpu_limit, free, nodes FROM mot_stat_machine;
SELECT * FROM mot_suggest_partitions(7::bigint << 30, 'compute');
SELECT mot_cache_size(2) AS none;

-- what is none
SELECT * FROM mot_suggest_partitions(-1, 'compute');
SELECT * FROM mot_suggest_partitions(1, 'disk');
SELECT * FROM mot_suggest_placement(0, 1, 'memory', false);
SELECT mot_test_machine('nonsense', NULL);
SELECT mot_test_machine('node:1 core:1 pu:1', 'nonsense');
SELECT mot_test_machine(NULL, NULL);

-- how many processes help: a number, or auto
SHOW mot.load_workers;
SHOW mot.checkpoint_workers;
ALTER SYSTEM SET mot.load_workers = 'many';
ALTER SYSTEM SET mot.checkpoint_workers = 65;
SET mot.load_workers = 3;
DROP FUNCTION mot_test_machine;
