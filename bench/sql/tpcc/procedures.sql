-- procedures.sql
--	  TPC-C's five transactions (clauses 2.4 to 2.8) as procedures.
--
-- What the terminal would have been shown is computed and thrown away.

-- The items of one order come as arrays of 15 of which the first ol_cnt count.
-- An item that does not exist, always the last one, takes the order back.
CREATE PROCEDURE tpcc_new_order(w integer, d integer, c integer, ol_cnt integer,
	items integer[], suppliers integer[], quantities integer[])
LANGUAGE plpgsql AS $$
DECLARE
	w_tax_ numeric;
	d_tax_ numeric;
	discount numeric;
	last_name varchar;
	credit char(2);
	o integer;
	all_local integer := 1;
	remote integer;
	price numeric;
	name varchar;
	i_data_ varchar;
	in_stock integer;
	info char(24);
	s_data_ varchar;
	amount numeric;
	total numeric := 0;
BEGIN
	SELECT c_discount, c_last, c_credit, w_tax INTO discount, last_name, credit, w_tax_
	FROM customer, warehouse WHERE w_id = w AND c_w_id = w_id AND c_d_id = d AND c_id = c;
	UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d
	RETURNING d_next_o_id - 1, d_tax INTO o, d_tax_;
	FOR n IN 1 .. ol_cnt LOOP
		IF suppliers[n] <> w THEN
			all_local := 0;
		END IF;
	END LOOP;
	INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
	VALUES (o, d, w, c, localtimestamp, ol_cnt, all_local);
	INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (o, d, w);
	FOR n IN 1 .. ol_cnt LOOP
		SELECT i_price, i_name, i_data INTO price, name, i_data_ FROM item WHERE i_id = items[n];
		IF NOT FOUND THEN
			ROLLBACK;
			RETURN;
		END IF;
		SELECT s_quantity, s_data, CASE d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
			WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07
			WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
		INTO in_stock, s_data_, info
		FROM stock WHERE s_i_id = items[n] AND s_w_id = suppliers[n] FOR UPDATE;
		in_stock := in_stock - quantities[n];
		IF in_stock < 10 THEN
			in_stock := in_stock + 91;
		END IF;
		remote := CASE WHEN suppliers[n] = w THEN 0 ELSE 1 END;
		UPDATE stock SET s_quantity = in_stock, s_ytd = s_ytd + quantities[n],
			s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + remote
		WHERE s_i_id = items[n] AND s_w_id = suppliers[n];
		amount := quantities[n] * price;
		total := total + amount;
		INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
		VALUES (o, d, w, n, items[n], suppliers[n], quantities[n], amount, info);
	END LOOP;
	total := total * (1 - discount) * (1 + w_tax_ + d_tax_);
END $$;

-- The customer is named by number, or, if that is null, by last name.
CREATE PROCEDURE tpcc_payment(w integer, d integer, cw integer, cd integer, c integer, last_name text, amount numeric)
LANGUAGE plpgsql AS $$
DECLARE
	named integer;
	w_name_ varchar;
	d_name_ varchar;
	credit char(2);
	data varchar;
BEGIN
	UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w RETURNING w_name INTO w_name_;
	UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d RETURNING d_name INTO d_name_;
	IF c IS NULL THEN
		SELECT count(*) INTO named FROM customer WHERE c_w_id = cw AND c_d_id = cd AND c_last = last_name;
		SELECT c_id INTO c FROM customer WHERE c_w_id = cw AND c_d_id = cd AND c_last = last_name
		ORDER BY c_first LIMIT 1 OFFSET (named - 1) / 2;
	END IF;
	UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount, c_payment_cnt = c_payment_cnt + 1
	WHERE c_w_id = cw AND c_d_id = cd AND c_id = c
	RETURNING c_credit, c_data INTO credit, data;
	IF credit = 'BC' THEN
		UPDATE customer SET c_data = left(concat_ws(' ', c, cd, cw, d, w, amount, data), 500)
		WHERE c_w_id = cw AND c_d_id = cd AND c_id = c;
	END IF;
	INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
	VALUES (c, cd, cw, d, w, localtimestamp, amount, w_name_ || '    ' || d_name_);
END $$;

CREATE PROCEDURE tpcc_order_status(w integer, d integer, c integer, last_name text)
LANGUAGE plpgsql AS $$
DECLARE
	named integer;
	customer_ record;
	order_ record;
	line record;
	lines integer := 0;
BEGIN
	IF c IS NULL THEN
		SELECT count(*) INTO named FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last_name;
		SELECT c_id INTO c FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last_name
		ORDER BY c_first LIMIT 1 OFFSET (named - 1) / 2;
	END IF;
	SELECT c_balance, c_first, c_middle, c_last INTO customer_ FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = c;
	SELECT o_id, o_carrier_id, o_entry_d INTO order_ FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = c
	ORDER BY o_id DESC LIMIT 1;
	FOR line IN
		SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
		WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = order_.o_id
	LOOP
		lines := lines + 1;
	END LOOP;
	IF lines = 0 THEN
		RAISE EXCEPTION 'order % of district % of warehouse % has no lines', order_.o_id, d, w;
	END IF;
END $$;

-- The oldest new order of each district; a district may have none.
CREATE PROCEDURE tpcc_delivery(w integer, carrier integer)
LANGUAGE plpgsql AS $$
DECLARE
	o integer;
	c integer;
	amount numeric;
BEGIN
	FOR d IN 1 .. 10 LOOP
		SELECT no_o_id INTO o FROM new_order WHERE no_w_id = w AND no_d_id = d ORDER BY no_o_id LIMIT 1 FOR UPDATE;
		CONTINUE WHEN NOT FOUND;
		DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = o;
		UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = o RETURNING o_c_id INTO c;
		UPDATE order_line SET ol_delivery_d = localtimestamp WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
		SELECT sum(ol_amount) INTO amount FROM order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = o;
		UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
		WHERE c_w_id = w AND c_d_id = d AND c_id = c;
	END LOOP;
END $$;

CREATE PROCEDURE tpcc_stock_level(w integer, d integer, threshold integer)
LANGUAGE plpgsql AS $$
DECLARE
	next_o integer;
	low bigint;
BEGIN
	SELECT d_next_o_id INTO next_o FROM district WHERE d_w_id = w AND d_id = d;
	SELECT count(DISTINCT s_i_id) INTO low FROM order_line, stock
	WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id >= next_o - 20 AND ol_o_id < next_o
		AND s_w_id = w AND s_i_id = ol_i_id AND s_quantity < threshold;
END $$;
