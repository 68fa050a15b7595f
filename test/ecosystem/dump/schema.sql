CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE place (
    id   bigserial PRIMARY KEY,
    name text NOT NULL,
    "at" point,
    tags text[] NOT NULL DEFAULT '{}',
    open boolean NOT NULL DEFAULT true
);
CREATE UNIQUE INDEX open_places ON place (name) WHERE open;
CREATE TABLE visit (
    id    uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    place bigint NOT NULL REFERENCES place ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    mood  mood DEFAULT 'glad',
    data  jsonb CHECK (data IS NULL OR jsonb_typeof(data) = 'object'),
    made  timestamptz NOT NULL DEFAULT now(),
    big   text
);
CREATE INDEX ON visit (place, made DESC);
CREATE INDEX ON visit ((data ->> 'who'));
CREATE TABLE measured (id int, day date, value float8, twice float8 GENERATED ALWAYS AS (value * 2) STORED, PRIMARY KEY (id, day))
    PARTITION BY RANGE (day);
CREATE TABLE measured_1 PARTITION OF measured FOR VALUES FROM ('2026-01-01') TO ('2026-07-01');
CREATE TABLE measured_2 PARTITION OF measured DEFAULT;
CREATE MATERIALIZED VIEW visits AS SELECT place, count(*) FROM visit GROUP BY place;
CREATE VIEW sad AS SELECT * FROM visit WHERE mood = 'sad';
CREATE ROLE reader;
GRANT SELECT (id, name) ON place TO reader;
ALTER TABLE visit ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON visit TO reader USING (mood = 'glad');
COMMENT ON TABLE place IS 'somewhere';
INSERT INTO place (name, "at", tags) SELECT 'place ' || i, point(i, -i), ARRAY['t' || i % 3, NULL] FROM generate_series(1, 1000) i;
INSERT INTO visit (place, mood, data, made, big)
    SELECT i % 1000 + 1, (ARRAY['sad', 'glad', NULL]::mood[])[i % 3 + 1], jsonb_build_object('who', 'w' || i), '2026-01-01'::timestamptz + i * interval '1 min',
           CASE WHEN i % 500 = 0 THEN repeat(md5(i::text), 5000) END
    FROM generate_series(1, 5000) i;
INSERT INTO measured (id, day, value) SELECT i, '2026-01-01'::date + i % 365, i / 7.0 FROM generate_series(1, 2000) i;
REFRESH MATERIALIZED VIEW visits;
