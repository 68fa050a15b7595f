CREATE TABLE owner (id bigserial PRIMARY KEY, name varchar(80) NOT NULL UNIQUE, phones text[] NOT NULL DEFAULT '{}');
CREATE TABLE pet (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner bigint NOT NULL REFERENCES owner ON DELETE CASCADE,
    name  text NOT NULL CHECK (name <> ''),
    data  jsonb NOT NULL DEFAULT '{}',
    born  date
);
CREATE UNIQUE INDEX one_favourite ON pet (owner) WHERE (data ->> 'favourite') = 'yes';
CREATE INDEX pet_name ON pet (lower(name));
INSERT INTO owner (name) SELECT 'owner ' || i FROM generate_series(1, 100) i;
INSERT INTO pet (owner, name) SELECT id, 'pet of ' || name FROM owner;
