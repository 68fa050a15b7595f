-- check.sql
--	  What has to hold at any moment (clause 3.3.2), and what of ours tells more
--	  of lost updates: SELECT * FROM tpcc_check() gives for each condition how
--	  many violations there are.
--
-- One statement, so that it sees one moment even while others write.

CREATE FUNCTION tpcc_check() RETURNS TABLE (condition text, meaning text, violations bigint)
LANGUAGE sql STABLE AS $$
WITH
	new_orders AS (
		SELECT no_w_id AS w, no_d_id AS d, count(*) AS n, min(no_o_id) AS low, max(no_o_id) AS high
		FROM new_order GROUP BY 1, 2),
	all_orders AS (
		SELECT o_w_id AS w, o_d_id AS d, count(*) AS n, max(o_id) AS high, sum(o_ol_cnt) AS lines
		FROM orders GROUP BY 1, 2),
	lines AS (
		SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*) AS n, count(ol_delivery_d) AS delivered,
			sum(ol_amount) AS amount
		FROM order_line GROUP BY 1, 2, 3),
	payments AS (
		SELECT h_c_w_id AS w, h_c_d_id AS d, h_c_id AS c, count(*) AS n, sum(h_amount) AS amount
		FROM history GROUP BY 1, 2, 3),
	received AS (
		SELECT h_w_id AS w, h_d_id AS d, sum(h_amount) AS amount
		FROM history GROUP BY 1, 2),
	deliveries AS (
		SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, sum(amount) AS amount, count(*) AS n
		FROM orders JOIN lines ON w = o_w_id AND d = o_d_id AND o = o_id
		WHERE o_carrier_id IS NOT NULL GROUP BY 1, 2, 3),
	ordered AS (
		SELECT ol_supply_w_id AS w, ol_i_id AS i, count(*) AS n, sum(ol_quantity) AS quantity,
			count(*) FILTER (WHERE ol_supply_w_id <> ol_w_id) AS remote
		FROM order_line, loaded WHERE ol_o_id > customers GROUP BY 1, 2)
SELECT '3.3.2.1', 'w_ytd = sum(d_ytd)', count(*)
	FROM warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY 1) t ON d_w_id = w_id
	WHERE w_ytd IS DISTINCT FROM ytd
UNION ALL SELECT '3.3.2.2', 'd_next_o_id - 1 = max(o_id) = max(no_o_id)', count(*)
	FROM district LEFT JOIN all_orders a ON a.w = d_w_id AND a.d = d_id LEFT JOIN new_orders n ON n.w = d_w_id AND n.d = d_id
	WHERE d_next_o_id - 1 IS DISTINCT FROM a.high OR n.high <> a.high
UNION ALL SELECT '3.3.2.3', 'new orders have no gaps', count(*)
	FROM new_orders WHERE high - low + 1 <> n
UNION ALL SELECT '3.3.2.4', 'sum(o_ol_cnt) = lines of the district', count(*)
	FROM all_orders a LEFT JOIN (SELECT w, d, sum(n) AS n FROM lines GROUP BY 1, 2) l USING (w, d)
	WHERE a.lines IS DISTINCT FROM l.n
UNION ALL SELECT '3.3.2.5', 'an order without a carrier is a new order', count(*)
	FROM orders FULL JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
	WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)
UNION ALL SELECT '3.3.2.6', 'o_ol_cnt = lines of the order', count(*)
	FROM orders FULL JOIN lines ON w = o_w_id AND d = o_d_id AND o = o_id
	WHERE o_ol_cnt IS DISTINCT FROM n
UNION ALL SELECT '3.3.2.7', 'a line is delivered if its order has a carrier', count(*)
	FROM orders JOIN lines ON w = o_w_id AND d = o_d_id AND o = o_id
	WHERE delivered <> CASE WHEN o_carrier_id IS NULL THEN 0 ELSE n END
UNION ALL SELECT '3.3.2.8', 'w_ytd = sum(h_amount)', count(*)
	FROM warehouse LEFT JOIN (SELECT w, sum(amount) AS amount FROM received GROUP BY 1) t ON w = w_id
	WHERE w_ytd IS DISTINCT FROM amount
UNION ALL SELECT '3.3.2.9', 'd_ytd = sum(h_amount)', count(*)
	FROM district LEFT JOIN received ON w = d_w_id AND d = d_id
	WHERE d_ytd IS DISTINCT FROM amount
UNION ALL SELECT '3.3.2.10', 'c_balance = sum(ol_amount) - sum(h_amount)', count(*)
	FROM customer LEFT JOIN deliveries t ON t.w = c_w_id AND t.d = c_d_id AND t.c = c_id
		LEFT JOIN payments p ON p.w = c_w_id AND p.d = c_d_id AND p.c = c_id
	WHERE c_balance <> coalesce(t.amount, 0) - coalesce(p.amount, 0)
UNION ALL SELECT '3.3.2.11', 'orders - new orders = delivered', count(*)
	FROM loaded, all_orders a LEFT JOIN new_orders n USING (w, d)
		LEFT JOIN (SELECT c_w_id AS w, c_d_id AS d, sum(c_delivery_cnt) AS cnt FROM customer GROUP BY 1, 2) c USING (w, d)
	WHERE a.n - coalesce(n.n, 0) IS DISTINCT FROM delivered + c.cnt
UNION ALL SELECT '3.3.2.12', 'c_balance + c_ytd_payment = sum(ol_amount)', count(*)
	FROM customer LEFT JOIN deliveries t ON t.w = c_w_id AND t.d = c_d_id AND t.c = c_id
	WHERE c_balance + c_ytd_payment <> coalesce(t.amount, 0)
UNION ALL SELECT 'stock', 's_ytd, s_order_cnt and s_remote_cnt are those of the lines', count(*)
	FROM stock FULL JOIN ordered ON w = s_w_id AND i = s_i_id
	WHERE (s_ytd, s_order_cnt, s_remote_cnt) IS DISTINCT FROM (coalesce(quantity, 0), coalesce(n, 0), coalesce(remote, 0))
UNION ALL SELECT 'payments', 'c_payment_cnt and c_ytd_payment are those of the history', count(*)
	FROM customer FULL JOIN payments ON w = c_w_id AND d = c_d_id AND c = c_id
	WHERE (c_payment_cnt, c_ytd_payment) IS DISTINCT FROM (n, amount)
UNION ALL SELECT 'orphans', 'what each foreign key of the schema leads to is there', sum(n)::bigint
	FROM (SELECT count(*) FROM district WHERE NOT EXISTS (SELECT FROM warehouse WHERE w_id = d_w_id)
		UNION ALL SELECT count(*) FROM customer WHERE NOT EXISTS (SELECT FROM district WHERE d_w_id = c_w_id AND d_id = c_d_id)
		UNION ALL SELECT count(*) FROM history WHERE NOT EXISTS
			(SELECT FROM customer WHERE c_w_id = h_c_w_id AND c_d_id = h_c_d_id AND c_id = h_c_id)
		UNION ALL SELECT count(*) FROM history WHERE NOT EXISTS (SELECT FROM district WHERE d_w_id = h_w_id AND d_id = h_d_id)
		UNION ALL SELECT count(*) FROM orders WHERE NOT EXISTS
			(SELECT FROM customer WHERE c_w_id = o_w_id AND c_d_id = o_d_id AND c_id = o_c_id)
		UNION ALL SELECT count(*) FROM new_order WHERE NOT EXISTS
			(SELECT FROM orders WHERE o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id)
		UNION ALL SELECT count(*) FROM order_line WHERE NOT EXISTS
			(SELECT FROM orders WHERE o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id)
		UNION ALL SELECT count(*) FROM order_line WHERE NOT EXISTS
			(SELECT FROM stock WHERE s_w_id = ol_supply_w_id AND s_i_id = ol_i_id)
		UNION ALL SELECT count(*) FROM stock WHERE NOT EXISTS (SELECT FROM warehouse WHERE w_id = s_w_id)
		UNION ALL SELECT count(*) FROM stock WHERE NOT EXISTS (SELECT FROM item WHERE i_id = s_i_id)) t (n)
UNION ALL SELECT 'population', 'as many rows as were loaded where none come and go', count(*)
	FROM loaded
	WHERE warehouses <> (SELECT count(*) FROM warehouse) OR warehouses * 10 <> (SELECT count(*) FROM district)
		OR warehouses * 10 * customers <> (SELECT count(*) FROM customer)
		OR items <> (SELECT count(*) FROM item) OR warehouses * items <> (SELECT count(*) FROM stock)
$$;
