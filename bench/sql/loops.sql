-- loops.sql
--	  One statement many times inside the server; each function returns
--	  microseconds a statement, loop included.

-- Keys in an order that is neither ascending nor random each time, so that
-- both engines do the same accesses and the loop itself costs little.
CREATE FUNCTION bench_select(loops int, keys int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
	balance int;
BEGIN
	FOR i IN 1 .. loops LOOP
		SELECT abalance INTO STRICT balance FROM pgbench_accounts
			WHERE aid = (i * 7919::bigint % keys)::int + 1;
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / loops;
END $$;

CREATE FUNCTION bench_update(loops int, keys int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
BEGIN
	FOR i IN 1 .. loops LOOP
		UPDATE pgbench_accounts SET abalance = abalance + 1
			WHERE aid = (i * 7919::bigint % keys)::int + 1;
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
