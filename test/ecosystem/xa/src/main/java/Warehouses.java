import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;

/*
 * TPC-C's new orders, payments and deliveries over several servers, as bench/shards.sh lays the tables out: each has a
 * range of the warehouses.  A statement goes to the server that has its warehouse, to that server's own tables; a third of
 * new orders and half of payments touch two servers or more.
 */
class Warehouses implements Transfers.Work {
	final int shards;
	final int warehouses;
	final int items;
	final int customers;

	Warehouses(int shards, int warehouses, int items, int customers) {
		this.shards = shards;
		this.warehouses = warehouses;
		this.items = items;
		this.customers = customers;
	}

	static int random(int low, int high) {
		return ThreadLocalRandom.current().nextInt(low, high + 1);
	}

	int shard(int warehouse) {
		return (warehouse - 1) / (warehouses / shards);
	}

	/* one row's first column; "%" is the server's suffix of tables' names */
	Object ask(Transfers.Branches branches, int warehouse, String sql, Object... args) throws Exception {
		int shard = shard(warehouse);

		try (PreparedStatement s = branches.on(shard).prepareStatement(sql.replace("%", "_" + (shard + 1)))) {
			for (int i = 0; i < args.length; i++)
				s.setObject(i + 1, args[i]);
			if (!s.execute()) {
				if (s.getUpdateCount() == 0 && !sql.startsWith("CALL"))
					throw new IllegalArgumentException("no row: " + sql);
				return null;
			}
			try (ResultSet r = s.getResultSet()) {
				if (!r.next())
					throw new IllegalArgumentException("no row: " + sql);
				return r.getObject(1);
			}
		}
	}

	public String run(Transfers.Branches branches, long number) throws Exception {
		int w = random(1, warehouses);
		int kind = random(1, 100);

		if (kind <= 45)
			return order(branches, w);
		if (kind <= 95)
			return pay(branches, number, w);
		ask(branches, w, "CALL tpcc_delivery(?, ?)", w, random(1, 10));
		return "delivered " + number;
	}

	/* stock is taken in one order by all, so nobody waits in a circle over servers */
	String order(Transfers.Branches branches, int w) throws Exception {
		int d = random(1, 10);
		int[][] lines = new int[random(5, 15)][];

		for (int n = 0; n < lines.length; n++)
			lines[n] = new int[] {random(1, 100) <= 4 ? random(1, warehouses) : w, random(1, items), random(1, 10)};
		Arrays.sort(lines, Arrays::compare);
		int o = (Integer) ask(branches, w,
			"UPDATE district% SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ? RETURNING d_next_o_id - 1", w, d);
		ask(branches, w, "INSERT INTO orders% (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) "
			+ "VALUES (?, ?, ?, ?, localtimestamp, ?, ?)", o, d, w, random(1, customers), lines.length,
			Arrays.stream(lines).allMatch(line -> line[0] == w) ? 1 : 0);
		ask(branches, w, "INSERT INTO new_order% VALUES (?, ?, ?)", o, d, w);
		for (int n = 0; n < lines.length; n++) {
			int supplier = lines[n][0], item = lines[n][1], quantity = lines[n][2];
			Object info = ask(branches, supplier, "UPDATE stock% SET s_quantity = s_quantity - ? + CASE WHEN s_quantity - ? < 10 THEN 91 ELSE 0 END, "
				+ "s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ? RETURNING s_dist_01",
				quantity, quantity, quantity, supplier == w ? 0 : 1, supplier, item);
			ask(branches, w, "INSERT INTO order_line% SELECT ?, ?, ?, ?, i_id, ?, NULL, ?, ? * i_price, ? FROM item WHERE i_id = ?",
				o, d, w, n + 1, supplier, quantity, quantity, info, item);
		}
		return "ordered " + w + " " + d + " " + o;
	}

	String pay(Transfers.Branches branches, long number, int w) throws Exception {
		int d = random(1, 10), c = random(1, customers), cd = random(1, 10);
		int cw = random(1, 100) <= 75 ? random(1, warehouses) : w;
		Object amount = new java.math.BigDecimal(random(100, 500000)).movePointLeft(2);

		ask(branches, w, "UPDATE warehouse% SET w_ytd = w_ytd + ? WHERE w_id = ?", amount, w);
		ask(branches, w, "UPDATE district% SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", amount, w, d);
		ask(branches, w, "INSERT INTO history% VALUES (?, ?, ?, ?, ?, localtimestamp, ?, ?)", c, cd, cw, d, w, amount, "" + number);
		ask(branches, cw, "UPDATE customer% SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, "
			+ "c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", amount, amount, cw, cd, c);
		return "paid " + number;
	}
}
