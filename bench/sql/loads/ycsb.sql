-- ycsb.sql
--	  YCSB's table, ten columns a row, and a table of keys and values as Redis
--	  has them; bench/keyvalue fills them.

CREATE TABLE usertable (
	ycsb_key text PRIMARY KEY,
	field0 text, field1 text, field2 text, field3 text, field4 text,
	field5 text, field6 text, field7 text, field8 text, field9 text
);

CREATE TABLE kv (key text PRIMARY KEY, value text NOT NULL);
