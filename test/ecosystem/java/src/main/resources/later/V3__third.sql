DROP VIEW pets;
ALTER TABLE pet RENAME COLUMN weight TO kilos;
ALTER TABLE owner ALTER COLUMN name TYPE text, ADD CONSTRAINT some_name CHECK (length(name) > 1);
CREATE VIEW pets AS SELECT o.name AS owner, p.name, kilos FROM pet p JOIN owner o ON o.id = p.owner;
CREATE INDEX ON pet (born DESC, id) INCLUDE (name);
DELETE FROM owner WHERE id > 90;
