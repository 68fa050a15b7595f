ALTER TABLE pet ADD COLUMN weight numeric(5, 2) NOT NULL DEFAULT 1, ALTER COLUMN born SET DEFAULT current_date;
CREATE VIEW pets AS SELECT o.name AS owner, p.name, weight FROM pet p JOIN owner o ON o.id = p.owner;
CREATE FUNCTION pet_added() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name = trim(NEW.name); RETURN NEW; END';
CREATE TRIGGER pet_added BEFORE INSERT ON pet FOR EACH ROW EXECUTE FUNCTION pet_added();
INSERT INTO pet (owner, name, data) VALUES (1, ' Rex ', '{"favourite": "yes"}');
