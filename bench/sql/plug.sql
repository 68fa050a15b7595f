-- Payments among a thousand accounts, for the demo that kills its server:
-- accounts and payments in memory, receipts in a heap table, all three changed
-- by each transaction.

CREATE TABLE demo_account (id int PRIMARY KEY, balance bigint NOT NULL) USING mot;
CREATE TABLE demo_payment (payer int, number bigint, giver int NOT NULL, taker int NOT NULL,
	PRIMARY KEY (payer, number)) USING mot;
CREATE TABLE demo_receipt (payer int, number bigint, PRIMARY KEY (payer, number)) USING heap;
-- what the clients noted, filled in afterwards
CREATE TABLE demo_told (payer int, number bigint) USING heap;

INSERT INTO demo_account SELECT i, 1000 FROM generate_series(0, 999) i;

-- payment "number" of a client, 1 from one account to another; returns what the
-- client notes when the server has acknowledged it
CREATE FUNCTION demo_pay(payer int, number bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	giver int := random() * 999;
	taker int := random() * 999;
BEGIN
	-- in one order, so that clients do not wait for each other in a circle
	UPDATE demo_account SET balance = balance + CASE WHEN giver < taker THEN -1 ELSE 1 END
		WHERE id = least(giver, taker);
	UPDATE demo_account SET balance = balance + CASE WHEN giver < taker THEN 1 ELSE -1 END
		WHERE id = greatest(giver, taker);
	INSERT INTO demo_payment VALUES (payer, number, giver, taker);
	INSERT INTO demo_receipt VALUES (payer, number);
	RETURN payer || '|' || number;
END
$$;

-- the books: all must be 0 but the first two
CREATE FUNCTION demo_books(OUT acknowledged bigint, OUT found bigint, OUT lost bigint, OUT halves bigint,
	OUT wrong_balances bigint) LANGUAGE sql AS $$
	SELECT (SELECT count(*) FROM demo_told),
		(SELECT count(*) FROM demo_payment),
		(SELECT count(*) FROM demo_told t LEFT JOIN demo_payment p USING (payer, number) WHERE p.giver IS NULL),
		(SELECT count(*) FROM demo_payment p FULL JOIN demo_receipt r USING (payer, number)
			WHERE p.* IS NULL OR r.* IS NULL),
		(SELECT count(*) FROM demo_account a
			LEFT JOIN (SELECT giver AS id, count(*) AS n FROM demo_payment GROUP BY giver) g USING (id)
			LEFT JOIN (SELECT taker AS id, count(*) AS n FROM demo_payment GROUP BY taker) t USING (id)
			WHERE a.balance <> 1000 - coalesce(g.n, 0) + coalesce(t.n, 0))
$$;
