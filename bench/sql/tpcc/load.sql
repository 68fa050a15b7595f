-- load.sql
--	  TPC-C's first population (clause 4.3.3): psql -v warehouses=4
--	  [-v items=100000] [-v customers=3000].  Fewer items and fewer customers
--	  (and orders) a district make a small one for tests.

\if :{?items}
\else
\set items 100000
\endif
\if :{?customers}
\else
\set customers 3000
\endif

SELECT setseed(0.5) \g /dev/null

-- A customer's last name: three syllables for the three digits of a number.
-- It is the terminal that has the name in the standard; pgbench cannot make
-- one, so the server does, by what costs it least (a function in SQL would be
-- parsed and planned anew for each CALL, for more than the rest of a payment).
CREATE FUNCTION tpcc_name(number integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
	RETURN ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[number / 100 + 1]
		|| ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[number / 10 % 10 + 1]
		|| ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[number % 10 + 1];
END $$;

-- a number from low to high
CREATE FUNCTION tpcc_random(low integer, high integer) RETURNS integer
LANGUAGE sql VOLATILE PARALLEL RESTRICTED AS $$
	SELECT low + floor(random() * (high - low + 1))::integer
$$;

-- the same, but some more often than others (clause 2.1.6)
CREATE FUNCTION tpcc_nurand(a integer, low integer, high integer) RETURNS integer
LANGUAGE sql VOLATILE PARALLEL RESTRICTED AS $$
	SELECT ((tpcc_random(0, a) | tpcc_random(low, high)) + 42) % (high - low + 1) + low
$$;

-- low to high characters
CREATE FUNCTION tpcc_text(low integer, high integer) RETURNS text
LANGUAGE sql VOLATILE PARALLEL RESTRICTED AS $$
	SELECT left(repeat(md5(random()::text), high / 32 + 1), tpcc_random(low, high))
$$;

-- data of items and stock: one in ten is "original"
CREATE FUNCTION tpcc_data() RETURNS text
LANGUAGE sql VOLATILE PARALLEL RESTRICTED AS $$
	SELECT CASE WHEN random() < 0.1 THEN overlay(d PLACING 'ORIGINAL' FROM tpcc_random(1, 18)) ELSE d END
	FROM (SELECT tpcc_text(26, 50) AS d) t
$$;

-- for a database that gets the rows of another one
\if :{?only_functions}
\q
\endif

INSERT INTO loaded VALUES (:warehouses, :items, :customers, :customers * 7 / 10);

INSERT INTO item
SELECT i, tpcc_random(1, 10000), tpcc_text(14, 24), tpcc_random(100, 10000) / 100.0, tpcc_data()
FROM generate_series(1, :items) i;

INSERT INTO warehouse
SELECT w, tpcc_text(6, 10), tpcc_text(10, 20), tpcc_text(10, 20), tpcc_text(10, 20), tpcc_text(2, 2),
	lpad(tpcc_random(0, 9999)::text, 4, '0') || '11111', tpcc_random(0, 2000) / 10000.0, 10 * 10.00 * :customers
FROM generate_series(1, :warehouses) w;

INSERT INTO stock
SELECT i, w, tpcc_random(10, 100),
	left(md5(random()::text), 24), left(md5(random()::text), 24), left(md5(random()::text), 24),
	left(md5(random()::text), 24), left(md5(random()::text), 24), left(md5(random()::text), 24),
	left(md5(random()::text), 24), left(md5(random()::text), 24), left(md5(random()::text), 24),
	left(md5(random()::text), 24), 0, 0, 0, tpcc_data()
FROM generate_series(1, :warehouses) w, generate_series(1, :items) i;

INSERT INTO district
SELECT d, w, tpcc_text(6, 10), tpcc_text(10, 20), tpcc_text(10, 20), tpcc_text(10, 20), tpcc_text(2, 2),
	lpad(tpcc_random(0, 9999)::text, 4, '0') || '11111', tpcc_random(0, 2000) / 10000.0, 10.00 * :customers, :customers + 1
FROM generate_series(1, :warehouses) w, generate_series(1, 10) d;

INSERT INTO customer
SELECT c, d, w, tpcc_text(8, 16), 'OE',
	tpcc_name(CASE WHEN c <= 1000 THEN c - 1 ELSE tpcc_nurand(255, 0, 999) END),
	tpcc_text(10, 20), tpcc_text(10, 20), tpcc_text(10, 20), tpcc_text(2, 2),
	lpad(tpcc_random(0, 9999)::text, 4, '0') || '11111', left(md5(random()::text), 16), localtimestamp,
	CASE WHEN random() < 0.1 THEN 'BC' ELSE 'GC' END, 50000.00, tpcc_random(0, 5000) / 10000.0,
	-10.00, 10.00, 1, 0, tpcc_text(300, 500)
FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) c;

INSERT INTO history
SELECT c, d, w, d, w, localtimestamp, 10.00, tpcc_text(12, 24)
FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) c;

-- each customer has one order, in no order
INSERT INTO orders
SELECT row_number() OVER (PARTITION BY w, d ORDER BY random()), d, w, c, localtimestamp, NULL, tpcc_random(5, 15), 1
FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) c;
UPDATE orders SET o_carrier_id = tpcc_random(1, 10) WHERE o_id <= :customers * 7 / 10;

INSERT INTO order_line
SELECT o_id, o_d_id, o_w_id, n, tpcc_random(1, :items), o_w_id, CASE WHEN o_carrier_id IS NOT NULL THEN o_entry_d END, 5,
	CASE WHEN o_carrier_id IS NOT NULL THEN 0 ELSE tpcc_random(1, 999999) / 100.0 END, left(md5(random()::text), 24)
FROM orders, LATERAL generate_series(1, o_ol_cnt) n;

INSERT INTO new_order
SELECT o_id, o_d_id, o_w_id FROM orders WHERE o_carrier_id IS NULL;

ANALYZE;
