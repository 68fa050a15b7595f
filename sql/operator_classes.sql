-- Operator classes of access method mot: those of btree, as far as there are
-- key encodings.

-- operator classes of btree that mot lacks: none but these
SELECT b.opcname, b.opcintype::regtype
FROM pg_opclass b JOIN pg_am ba ON ba.oid = b.opcmethod AND ba.amname = 'btree'
WHERE b.oid < 16384 AND NOT EXISTS (
    SELECT FROM pg_opclass m JOIN pg_am ma ON ma.oid = m.opcmethod AND ma.amname = 'mot_index'
    WHERE (m.opcname, m.opcintype, m.opcdefault) = (b.opcname, b.opcintype, b.opcdefault))
ORDER BY opcname;

-- the other way round: none
SELECT m.opcname
FROM pg_opclass m JOIN pg_am ma ON ma.oid = m.opcmethod AND ma.amname = 'mot_index'
WHERE NOT EXISTS (
    SELECT FROM pg_opclass b JOIN pg_am ba ON ba.oid = b.opcmethod AND ba.amname = 'btree'
    WHERE (m.opcname, m.opcintype, m.opcdefault) = (b.opcname, b.opcintype, b.opcdefault));

-- families and their members: the differences, none
CREATE TEMP VIEW members AS
SELECT am.amname, f.opfname, 'operator' AS kind, amoplefttype::regtype AS lefttype,
    amoprighttype::regtype AS righttype, amopstrategy AS number, amopopr::regoperator::text AS member
FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am am ON am.oid = f.opfmethod
WHERE f.opfname IN (SELECT opfname FROM pg_opfamily JOIN pg_am m ON m.oid = opfmethod WHERE amname = 'mot_index')
UNION ALL
SELECT am.amname, f.opfname, 'function', amproclefttype::regtype, amprocrighttype::regtype, amprocnum, amproc::regprocedure::text
FROM pg_amproc JOIN pg_opfamily f ON f.oid = amprocfamily JOIN pg_am am ON am.oid = f.opfmethod
WHERE amprocnum = 1
    AND f.opfname IN (SELECT opfname FROM pg_opfamily JOIN pg_am m ON m.oid = opfmethod WHERE amname = 'mot_index');
SELECT opfname, kind, lefttype, righttype, number, member FROM members WHERE amname = 'btree'
EXCEPT
SELECT opfname, kind, lefttype, righttype, number, member FROM members WHERE amname = 'mot_index';
SELECT opfname, kind, lefttype, righttype, number, member FROM members WHERE amname = 'mot_index'
EXCEPT
SELECT opfname, kind, lefttype, righttype, number, member FROM members WHERE amname = 'btree';
SELECT count(*) > 200 AS there_are_members FROM members WHERE amname = 'mot_index';
DROP VIEW members;

-- what the access method finds wrong with them: nothing
SELECT opcname FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE amname = 'mot_index' AND NOT amvalidate(c.oid);
