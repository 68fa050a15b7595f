-- shards.sql
--	  What TPC-C needs besides when its warehouses are on several servers.
--
-- Nobody finds out that transactions wait for each other in a circle that goes
-- over two servers.  So all take stock in one order; whatever else they lock
-- on another server they lock last.
CREATE PROCEDURE shards_new_order(w integer, d integer, c integer, ol_cnt integer,
	items integer[], suppliers integer[], quantities integer[])
LANGUAGE plpgsql AS $$
BEGIN
	SELECT array_agg(i ORDER BY s, i, q), array_agg(s ORDER BY s, i, q), array_agg(q ORDER BY s, i, q)
	INTO items, suppliers, quantities
	FROM unnest(items[:ol_cnt], suppliers[:ol_cnt], quantities[:ol_cnt]) t (i, s, q);
	CALL tpcc_new_order(w, d, c, ol_cnt, items, suppliers, quantities);
END $$;
