-- loops.sql
--	  One statement many times inside the server; each function returns
--	  microseconds a statement, loop included.

-- The keys jump about the table (7919 has no factor in common with its size),
-- the same ones for both engines, and cost the loop little.
CREATE FUNCTION bench_select(loops int, keys int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
	key int := 0;
	balance int;
BEGIN
	FOR i IN 1 .. loops LOOP
		key := (key + 7919) % keys;
		SELECT abalance INTO balance FROM pgbench_accounts WHERE aid = key;
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / loops;
END $$;

CREATE FUNCTION bench_update(loops int, keys int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
	key int := 0;
BEGIN
	FOR i IN 1 .. loops LOOP
		key := (key + 7919) % keys;
		UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = key;
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / loops;
END $$;

-- into the empty table bench_insert_target (id, value)
CREATE FUNCTION bench_insert(loops int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
BEGIN
	FOR i IN 1 .. loops LOOP
		INSERT INTO bench_insert_target VALUES (i, i);
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / loops;
END $$;

-- what bench_insert left
CREATE FUNCTION bench_delete(loops int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
BEGIN
	FOR i IN 1 .. loops LOOP
		DELETE FROM bench_insert_target WHERE id = i;
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / loops;
END $$;

CREATE FUNCTION bench_range(loops int, keys int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
	key int := 0;
	total bigint;
BEGIN
	FOR i IN 1 .. loops LOOP
		key := (key + 7919) % (keys - 20);
		SELECT sum(abalance) INTO total FROM pgbench_accounts WHERE aid BETWEEN key AND key + 19;
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / loops;
END $$;
