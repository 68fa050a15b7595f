-- tatp.sql
--	  TATP (Telecom Application Transaction Processing): its four tables and
--	  their first population; psql -v subscribers=100000.

CREATE TABLE subscriber (
	s_id integer PRIMARY KEY, sub_nbr varchar(15) NOT NULL UNIQUE,
	bit_1 smallint, bit_2 smallint, bit_3 smallint, bit_4 smallint, bit_5 smallint,
	bit_6 smallint, bit_7 smallint, bit_8 smallint, bit_9 smallint, bit_10 smallint,
	hex_1 smallint, hex_2 smallint, hex_3 smallint, hex_4 smallint, hex_5 smallint,
	hex_6 smallint, hex_7 smallint, hex_8 smallint, hex_9 smallint, hex_10 smallint,
	byte2_1 smallint, byte2_2 smallint, byte2_3 smallint, byte2_4 smallint, byte2_5 smallint,
	byte2_6 smallint, byte2_7 smallint, byte2_8 smallint, byte2_9 smallint, byte2_10 smallint,
	msc_location integer, vlr_location integer
);

CREATE TABLE access_info (
	s_id integer NOT NULL, ai_type smallint NOT NULL, data1 smallint, data2 smallint, data3 char(3), data4 char(5),
	PRIMARY KEY (s_id, ai_type)
);

CREATE TABLE special_facility (
	s_id integer NOT NULL, sf_type smallint NOT NULL, is_active smallint NOT NULL,
	error_cntrl smallint, data_a smallint, data_b char(5),
	PRIMARY KEY (s_id, sf_type)
);

CREATE TABLE call_forwarding (
	s_id integer NOT NULL, sf_type smallint NOT NULL, start_time smallint NOT NULL, end_time smallint, numberx varchar(15),
	PRIMARY KEY (s_id, sf_type, start_time)
);

SELECT setseed(0.5) \g /dev/null

-- "bits" gives each column a number of its own
INSERT INTO subscriber
SELECT i, lpad(i::text, 15, '0'),
	b & 1, b >> 1 & 1, b >> 2 & 1, b >> 3 & 1, b >> 4 & 1, b >> 5 & 1, b >> 6 & 1, b >> 7 & 1, b >> 8 & 1, b >> 9 & 1,
	b & 15, b >> 1 & 15, b >> 2 & 15, b >> 3 & 15, b >> 4 & 15, b >> 5 & 15, b >> 6 & 15, b >> 7 & 15, b >> 8 & 15, b >> 9 & 15,
	b & 255, b >> 1 & 255, b >> 2 & 255, b >> 3 & 255, b >> 4 & 255,
	b >> 5 & 255, b >> 6 & 255, b >> 7 & 255, b >> 8 & 255, b >> 9 & 255,
	b, b + 1
FROM (SELECT i, (random() * 2000000000)::integer AS b FROM generate_series(1, :subscribers) i) t;

-- one to four of each, types 1 to 4 in turn
INSERT INTO access_info
SELECT i, n, i % 256, n * 17, 'ABC', 'ABCDE' FROM generate_series(1, :subscribers) i, generate_series(1, 4) n
WHERE n <= 1 + i % 4;

INSERT INTO special_facility
SELECT i, n, CASE WHEN random() < 0.85 THEN 1 ELSE 0 END, n * 31, i % 256, 'ABCDE'
FROM generate_series(1, :subscribers) i, generate_series(1, 4) n
WHERE n <= 1 + (i / 4) % 4;

-- none to three of each facility, as often each, beginning at 0, 8 or 16 and
-- lasting one to eight hours
INSERT INTO call_forwarding
SELECT s_id, sf_type, t * 8, t * 8 + 1 + floor(random() * 8)::integer, lpad((random() * 1000000)::integer::text, 15, '0')
FROM (SELECT s_id, sf_type, floor(random() * 4)::integer AS rows, floor(random() * 3)::integer AS first FROM special_facility) f,
	generate_series(0, 2) t
WHERE (t + first) % 3 < rows;

CREATE TABLE tatp_loaded (subscribers bigint, accesses bigint, facilities bigint);
INSERT INTO tatp_loaded SELECT (SELECT count(*) FROM subscriber), (SELECT count(*) FROM access_info),
	(SELECT count(*) FROM special_facility);

-- what has to hold at any moment, and how often it does not
CREATE FUNCTION tatp_check() RETURNS TABLE (what text, violations bigint)
LANGUAGE sql STABLE AS $$
SELECT 'subscribers, accesses and facilities are those loaded', count(*) FROM tatp_loaded
	WHERE (subscribers, accesses, facilities) IS DISTINCT FROM ((SELECT count(*) FROM subscriber),
		(SELECT count(*) FROM access_info), (SELECT count(*) FROM special_facility))
UNION ALL SELECT 'a number is that of its subscriber', count(*) FROM subscriber WHERE sub_nbr <> lpad(s_id::text, 15, '0')
UNION ALL SELECT 'what is changed stays in its range', count(*) FROM subscriber
	WHERE bit_1 NOT IN (0, 1) OR vlr_location < 0
UNION ALL SELECT 'data stays in its range', count(*) FROM special_facility WHERE data_a NOT BETWEEN 0 AND 255
UNION ALL SELECT 'a call is forwarded by a facility that is there', count(*)
	FROM call_forwarding c LEFT JOIN special_facility f USING (s_id, sf_type) WHERE f.s_id IS NULL
UNION ALL SELECT 'a call is forwarded at a time that there is', count(*) FROM call_forwarding
	WHERE start_time NOT IN (0, 8, 16) OR end_time NOT BETWEEN 1 AND 24 OR length(numberx) <> 15
$$;

ANALYZE;
