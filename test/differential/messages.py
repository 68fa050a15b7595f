#!/usr/bin/python3
"""messages.py: what a client of the extended protocol can do with statements that nobody has prepared,
and with CALL.

Portals of several at a time, fetched row by row, open while a savepoint is
rolled back or their table is altered, never executed, or closed with their
statement; errors in the middle of a pipeline.  The same messages on a heap
table, and on memory-optimized tables planned each time, and with plans
remembered: the answers must be equal.  Procedures are called by prepared
statements, with and without mot.jit, which has the server evaluate arguments.
(The connection is libpq's: PGHOST, a socket's directory, ...)
"""

import os
import socket
import struct
import sys


class Client:
    def __init__(self, options):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect('%s/.s.PGSQL.%s' % (os.environ['PGHOST'], os.environ.get('PGPORT', '5432')))
        self.out, self.said = b'', []
        start = {'user': os.environ.get('PGUSER', 'postgres'), 'database': os.environ.get('PGDATABASE', 'postgres'),
                 'options': options}
        body = struct.pack('!I', 196608) + b''.join(('%s\0%s\0' % item).encode() for item in start.items()) + b'\0'
        self.socket.sendall(struct.pack('!I', len(body) + 4) + body)
        self.until_ready()

    def message(self, kind, body):
        self.out += kind + struct.pack('!I', len(body) + 4) + body

    def parse(self, name, text):
        self.message(b'P', ('%s\0%s\0' % (name, text)).encode() + b'\0\0')

    def bind(self, portal, name, *values):
        sent = b''.join(struct.pack('!i', -1) if v is None else struct.pack('!I', len(str(v))) + str(v).encode() for v in values)
        self.message(b'B', ('%s\0%s\0' % (portal, name)).encode() + struct.pack('!HH', 0, len(values)) + sent + b'\0\0')

    def describe(self, portal):
        self.message(b'D', b'P' + portal.encode() + b'\0')

    def execute(self, portal, rows=0):
        self.message(b'E', portal.encode() + b'\0' + struct.pack('!I', rows))

    def close_statement(self, name):
        self.message(b'C', b'S' + name.encode() + b'\0')

    def send(self):
        self.socket.sendall(self.out)
        self.out = b''
        self.until_ready()

    def sync(self):
        self.message(b'S', b'')
        self.send()

    def simple(self, text):
        self.message(b'Q', text.encode() + b'\0')
        self.send()

    def once(self, text, *values):
        """An unnamed statement, executed once."""
        self.parse('', text)
        self.bind('', '', *values)
        self.describe('')
        self.execute('')

    def read(self, n):
        data = b''
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                print('the server closed the connection')
                sys.exit(2)
            data += more
        return data

    def until_ready(self):
        kind = b''
        while kind != b'Z':
            kind = self.read(1)
            body = self.read(struct.unpack('!I', self.read(4))[0] - 4)
            if kind == b'T':
                body = body[:2]
            elif kind == b'E':
                body = b'|'.join(field for field in body.split(b'\0') if field[:1] in (b'C', b'M', b'P'))
            if kind not in b'RSK':
                self.said.append((kind, body))


def story(c):
    c.simple('CREATE TABLE raw (id int PRIMARY KEY, v int, t text)')
    c.simple("INSERT INTO raw SELECT i, i * 10, 'row ' || i FROM generate_series(1, 100) i")
    for end in 'COMMIT', 'ROLLBACK', 'ROLLBACK':
        c.simple('BEGIN')
        for i in range(1, 8):
            c.parse('', 'SELECT v, t FROM raw WHERE id = $1')
            c.bind('p%d' % i, '', i)
            c.describe('p%d' % i)
            c.execute('p%d' % i, 1)
            if i == 4:
                c.sync()
        c.sync()
        c.simple('SAVEPOINT a')
        for i in range(1, 8):
            c.execute('p%d' % i, 1)
        c.sync()
        c.simple('ROLLBACK TO a')
        for i in range(8, 12):
            c.parse('', 'SELECT v, t FROM raw WHERE id = %d AND t = $1' % i)
            c.bind('p%d' % i, '', 'row %d' % i)
            c.execute('p%d' % i, 1)
        c.sync()
        c.simple('FETCH ALL FROM p9')
        c.simple('MOVE BACKWARD ALL FROM p9')
        c.simple(end)

    # parsed once, bound often, while the table changes
    c.parse('s', 'SELECT v FROM raw WHERE id = 5')
    for change in 'SELECT 1', 'ALTER TABLE raw ADD COLUMN z int DEFAULT 3', 'ALTER TABLE raw ALTER v TYPE bigint':
        c.simple(change)
        for _ in range(5):
            c.bind('', 's')
            c.describe('')
            c.execute('')
            c.sync()

    for i in range(6):
        c.once('UPDATE raw SET v = v + $1 WHERE id = $2 RETURNING v, t', i, i)
        c.once('INSERT INTO raw (id, v, t) VALUES ($1, $2, $3)', 200 + i, None if i % 2 else i, 't%d' % i)
        c.sync()
    for i in range(6):
        # (half of them fail, and the rest of the pipeline with them)
        c.once('INSERT INTO raw (id, v, t) VALUES ($1, $2, $3)', 203 + i, i, 'x' * i * 5000)
        c.once('SELECT id, v, length(t) FROM raw WHERE id = $1', 203 + i)
        c.sync()
    for value in 'abc', '5', '9999999999', None, '-7', ' 8 ':
        c.once('SELECT id FROM raw WHERE id = $1', value)
        c.sync()

    # ranges, of few rows and of many
    c.simple("INSERT INTO raw (id, v, t) SELECT i, i, 'row ' || i FROM generate_series(1000, 3000) i")
    c.simple('ANALYZE raw')
    for low, high in (1, 5), (7, 9), (2, 2), (9, 2), (1000, 1100), (1000, 2500), (None, 5), (5, 'x'), (1500, 1510):
        c.once('SELECT id, v FROM raw WHERE id BETWEEN $1 AND $2 ORDER BY id', low, high)
        c.sync()
        c.simple('BEGIN')
        c.parse('', 'SELECT id, t FROM raw WHERE id >= $1 AND id < $2 ORDER BY t')
        c.bind('r', '', low, high)
        c.describe('r')
        c.execute('r', 3)
        c.sync()
        c.simple('DELETE FROM raw WHERE id BETWEEN 1001 AND 1003')
        c.execute('r', 2)
        c.execute('r')
        c.sync()
        c.simple('ROLLBACK')
        for _ in range(3):
            c.parse('', 'SELECT id FROM raw WHERE id > $1 ORDER BY id LIMIT 3')
            c.bind('', '', high)
            c.execute('')
            c.sync()

    # open portals, whose table is altered, and whose statement is closed
    for i in range(4):
        c.simple('BEGIN')
        c.parse('', 'SELECT v FROM raw WHERE id = $1')
        c.bind('k', '', i + 1)
        c.execute('k', 1)
        c.sync()
        c.simple('ALTER TABLE raw ADD COLUMN y%d int' % i)
        c.execute('k', 1)
        c.sync()
        c.simple('ROLLBACK')
    for i in range(30):
        c.parse('', 'SELECT v FROM raw WHERE id = %d' % (i + 1))
        c.bind('', '')
    c.sync()
    c.simple('BEGIN')
    for i in range(5):
        c.parse('w', 'SELECT v FROM raw WHERE id = %d' % (i + 1))
        c.bind('z%d' % i, 'w')
        c.close_statement('w')
    c.sync()
    for i in range(5):
        c.execute('z%d' % i)
    c.sync()
    c.simple('COMMIT')

    c.simple('SELECT v FROM raw WHERE id = 7; SELECT t FROM raw WHERE id = 8; SELECT v FROM raw WHERE id = 9; BOGUS')
    c.simple('SELECT v FROM raw WHERE id = 7; SELECT t FROM raw WHERE id = 8; SELECT 1/0; SELECT v FROM raw WHERE id = 9')
    c.simple('SELECT sum(v), count(*), max(length(t)) FROM raw')
    c.simple('DROP TABLE raw')
    return c.said


LETS_GO = """
CREATE OR REPLACE PROCEDURE lets_go(a text, b int[], how text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE how;
    ROLLBACK;
    PERFORM repeat(md5(i::text), 10) FROM generate_series(1, 1000) i;
    RAISE NOTICE '% %', a, b;
    COMMIT;
    RAISE NOTICE '% %', a || b[1], b || 5;
END $$;
"""

PROCEDURES = LETS_GO + """
CREATE TABLE said (id serial, what text);
CREATE TABLE toasted (id int, what text);
INSERT INTO toasted SELECT i, repeat('x', (10 ^ i)::int) FROM generate_series(1, 5) i;
CREATE DOMAIN tiny AS int CHECK (VALUE < 10);
CREATE TYPE pair AS (a int, b text);
CREATE PROCEDURE plain(a int, b text, c int[], d numeric) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO said (what) VALUES (concat_ws('|', a, b, c, d, array_ndims(c), array_lower(c, 1), pg_typeof(b)));
    c[2] := 7;
    b := b || c::text;
    RAISE NOTICE '% % %', a, length(b), c;
END $$;
CREATE PROCEDURE several(a int, b text DEFAULT upper('x'), VARIADIC c text[] DEFAULT '{}') LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% % %', a, b, c; END $$;
CREATE PROCEDURE any_type(a anyelement, b anyarray) LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% % %', a, b, pg_typeof(b); END $$;
CREATE PROCEDURE typed(a tiny, b varchar(3), c pair, d char(2)) LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% % % %', a, b, c, d; END $$;
CREATE PROCEDURE gives(INOUT a int, OUT b text, c int[]) LANGUAGE plpgsql AS $$
BEGIN b := a || c::text; a := a + 1; END $$;
CREATE PROCEDURE ends(a text, b int[]) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO said (what) VALUES (a || 'one');
    COMMIT;
    INSERT INTO said (what) VALUES (a || 'two');
    ROLLBACK;
    FOR i IN 1 .. 3 LOOP INSERT INTO said (what) VALUES (a || b::text || i); COMMIT; END LOOP;
    a := a || '.';
    RAISE NOTICE '% %', a, b;
END $$;
CREATE PROCEDURE fails(a int, b int[]) LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '%', b; RAISE NOTICE '%', b[1] / a; END $$;
CREATE PROCEDURE nested(a int, b int[]) LANGUAGE plpgsql AS $$
DECLARE t text;
BEGIN CALL gives(a, t, b); CALL plain(a, t, b, 1.5); CALL fails(a - 2, b); END $$;
CREATE PROCEDURE guarded(a int, b int[]) LANGUAGE plpgsql SECURITY DEFINER SET work_mem = '1MB' AS $$
BEGIN RAISE NOTICE '% % %', current_setting('work_mem'), a, b; COMMIT; END $$;
CREATE PROCEDURE in_sql(a int, b text) LANGUAGE sql AS $$ INSERT INTO said (what) VALUES (b || a) $$;
CREATE PROCEDURE lengths(a text, b text[]) LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% % % %', pg_column_size(a), pg_column_compression(a), pg_column_size(b), array_length(b, 1); END $$;
CREATE FUNCTION of_length(n int) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT what FROM toasted WHERE id = n $$;
CREATE FUNCTION calling(a text) RETURNS void LANGUAGE sql AS $$ CALL lengths(a, ARRAY[a, NULL]) $$;
CREATE PROCEDURE needs(a text[]) LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT sum(total_bytes) FROM pg_backend_memory_contexts) > 60e6 THEN RAISE EXCEPTION 'too much'; END IF;
END $$;
CREATE FUNCTION needing(a text) RETURNS void LANGUAGE sql AS $$ CALL needs(ARRAY[a, a]) $$;
CREATE PROCEDURE refused(a text[]) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', length(a[1]); END $$;
REVOKE EXECUTE ON PROCEDURE refused FROM public;
CREATE PROCEDURE changing(a int, b text) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'first %', a; END $$;
CREATE ROLE called_by;
"""

CALLS = (
    ('plain($1, $2, ARRAY[$3, $4, 5], $5)', (1, 'a', 2, 3, '1.50'), (None, None, None, None, None), (2, 'b' * 100000, 1, None, 'NaN'), ('x', 'a', 1, 2, 3),
     (7, '', -1, 2147483647, '1e100')),
    ('plain($1, $2, $3, $4)', (1, 'a', '{1,2,NULL}', 0), (1, 'b', '[3:4]={5,6}', 1), (1, 'c', '{{1,2},{3,4}}', 1), (1, None, None, None), (1, 'd', '{', 1)),
    ("plain(5, 'it', ARRAY[1, 2], 2.5)", (), ()),
    ('plain($1, $2, ARRAY[]::int[], $3)', (1, 'a', 1)),
    ('plain($1, $2, ARRAY[ARRAY[$3::int], ARRAY[4]], $4)', (1, 'a', 1, 2), (None, 'b', None, None)),
    ('plain(d => $1, b => $2, a => $3, c => ARRAY[$3::int, $3])', (1, 'a', 1), (2, 'b', 2)),
    ('plain($1 + 1, $2 || $2, ARRAY[$1, $1 + 1], 1 / $3)', (1, 'a', 1), (2, 'b', 0), (2147483647, 'c', 1)),
    ('plain($1::text::int, $2, $3::int[], $4)', (1, 'a', '{1}', 1), ('y', 'a', '{1}', 1)),
    ('several($1)', (1,), (None,)),
    ('several($1, $2, $3, $4)', (1, 'a', 'b', None)),
    ('several($1, $2, VARIADIC $3)', (1, 'a', '{x,y}'), (1, 'a', None)),
    ('any_type($1::int, ARRAY[$1, $2])', (1, 2), (None, None), (1, None)),
    ('any_type($1::text, ARRAY[$2, $1])', (1, 2), (None, 'q')),
    ('any_type($1::date, $2)', ('2026-11-29', '{2026-11-29}')),
    ('typed($1, $2, $3, $4)', (1, 'abcdef', '(1,x)', 'z'), (10, 'a', None, None), (None, None, '(,)', 'long'), (3, 'abc   ', '(1)', '')),
    ('typed($1::int, $2::varchar, ROW($1, $2)::pair, $2)', (1, 'ab'), (11, 'ab')),
    ('gives($1, NULL, ARRAY[$2::int])', (1, 2), (None, None), (2147483647, 1)),
    ('gives($1, $2, $3)', (1, 'in', '{1}'), (5, None, None)),
    ('ends($1, ARRAY[$2::int, $3])', ('a' * 3000, 1, 2), (None, 1, 2)),
    ('ends($1, $2)', ('b', '{4}')),
    ('fails($1, ARRAY[$2, 2])', (1, 1), (0, 1), (0, None), (2, 9)),
    ('nested($1, ARRAY[$2, 2])', (1, 1), (2, 1), (3, 8)),
    ('guarded($1, ARRAY[$1::int])', (1,)),
    ('in_sql($1, $2)', (1, 'sql'), (2, None)),
    ('in_sql($1, $2, $3)', (1, 'sql', 1)),
    ('absent($1)', (1,)),
)


def calls(c):
    c.simple(PROCEDURES)
    assert not [said for said in c.said if said[0] == b'E'], c.said
    for number, (text, *values) in enumerate(CALLS):
        name = 's%d' % number
        c.parse(name, 'CALL ' + text)
        c.sync()
        for block in False, True:
            # more often than a plan is a custom one anyway
            for value in values * 4:
                if block:
                    c.simple('BEGIN')
                c.bind('', name, *value)
                c.describe('')
                c.execute('')
                c.sync()
                if block:
                    c.simple('SELECT count(*) FROM said')
                    c.simple('COMMIT')
        c.parse('', 'CALL ' + text)
        for value in values:
            c.bind('', '', *value)
            c.execute('')
            c.sync()

    # what it is the plan of changes, in between, after it was bound, and while it runs
    c.parse('changes', 'CALL changing($1, $2)')
    c.sync()
    for change in ("CREATE OR REPLACE PROCEDURE changing(a int, b text) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'second %', b; END $$",
                   'DROP PROCEDURE changing', "CREATE PROCEDURE changing(a bigint, b text) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'third %', pg_typeof(a); END $$",
                   "CREATE PROCEDURE changing(a int, b text) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'fourth'; END $$",
                   'CREATE SCHEMA nearer', 'SET search_path = nearer, public',
                   "CREATE PROCEDURE nearer.changing(a int, b text) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'fifth'; END $$",
                   'RESET search_path', 'REVOKE EXECUTE ON ROUTINE changing(int, text) FROM public', 'SET ROLE called_by', 'RESET ROLE',
                   'GRANT EXECUTE ON PROCEDURE changing(int, text) TO called_by', 'SET ROLE called_by', 'RESET ROLE', 'SET transaction_read_only = on',
                   'SET default_transaction_read_only = off', "SET plan_cache_mode = 'force_custom_plan'", 'RESET plan_cache_mode', 'DISCARD PLANS'):
        for _ in range(7):
            c.bind('', 'changes', 5, 'five')
            c.execute('')
            c.sync()
        c.bind('', 'changes', 6, 'six')
        c.sync()
        c.simple(change)
        c.bind('', 'changes', 6, 'six')
        c.execute('')
        c.sync()
        c.simple('BEGIN')
        c.bind('p', 'changes', 7, 'seven')
        c.sync()
        c.simple('SAVEPOINT a')
        c.simple(change)
        c.execute('p')
        c.sync()
        c.simple('ROLLBACK TO a')
        c.execute('p')
        c.sync()
        c.simple('ROLLBACK')
    c.parse('goes', 'CALL lets_go($1, ARRAY[$2, 3], $3)')
    c.sync()
    for how in ('SELECT 1', 'DEALLOCATE ALL', 'DISCARD PLANS',
                "CREATE OR REPLACE PROCEDURE lets_go(a text, b int[], how text) LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'never'; END $$",
                'DROP PROCEDURE lets_go', 'DROP PROCEDURE lets_go; DEALLOCATE ALL'):
        for _ in range(8):
            c.bind('', 'goes', 'x' * 2000, 4, how)
            c.execute('')
            c.sync()
            if 'DEALLOCATE' in how:
                c.parse('goes', 'CALL lets_go($1, ARRAY[$2, 3], $3)')
                c.sync()
    # ... and so does what its arguments are constants of
    for how in 'SELECT 1', 'DEALLOCATE ALL', 'DROP PROCEDURE lets_go', 'DROP PROCEDURE lets_go; DEALLOCATE ALL':
        c.simple('DEALLOCATE ALL')
        c.simple(LETS_GO)
        c.parse('goes', "CALL lets_go('%s', '{1,2}', $1)" % ('constant' * 300))
        for _ in range(3):
            c.bind('', 'goes', how)
            c.execute('')
            c.sync()
    # a portal whose statement has another text by then
    for text in 'CALL in_sql($1, $2)', 'SELECT $1::int, $2', 'INSERT INTO said VALUES ($1, $2)':
        c.simple('BEGIN')
        for _ in range(7):
            c.parse('twice', 'CALL changing($1, $2)')
            c.bind('p', 'twice', 8, 'eight')
            c.close_statement('twice')
            c.parse('twice', text)
            c.execute('p')
            c.bind('q', 'twice', 9000, 'nine')
            c.execute('q')
            c.close_statement('twice')
            c.sync()
            c.simple('CLOSE ALL')
        c.simple('ROLLBACK')
    # arguments as they are stored, and many
    c.simple('SELECT calling(what), calling(NULL) FROM toasted')
    c.simple("SELECT count(needing(repeat('x', 100000))) FROM generate_series(1, 500)")
    c.parse('lengths', 'CALL lengths($1, ARRAY[$1, $2])')
    c.sync()
    for i in range(1, 6):
        c.simple('EXECUTE lengths(of_length(%d), NULL)' % i)
        c.bind('', 'lengths', 'x' * 10 ** i, 5)
        c.execute('')
        c.sync()
    # what is checked first
    c.parse('refused', 'CALL refused(ARRAY[%s])' % ', '.join(['$1'] * 12))
    c.sync()
    for value in 'small', 'x' * 100000000:
        for role in 'called_by', 'none':
            c.simple('SET ROLE %s' % role)
            c.bind('', 'refused', value)
            c.execute('')
            c.sync()
    c.simple('RESET ROLE')
    c.simple('BEGIN')
    c.simple("CREATE TYPE mood AS ENUM ('well')")
    c.parse('moods', 'CALL any_type($1::mood, ARRAY[$1])')
    c.bind('p', 'moods', 'well')
    c.sync()
    c.simple('DROP TYPE mood; REVOKE EXECUTE ON PROCEDURE any_type FROM public; SET LOCAL ROLE called_by')
    c.execute('p')
    c.sync()
    c.simple('ROLLBACK')
    c.simple('SELECT what FROM said ORDER BY id')
    c.simple('DROP SCHEMA nearer CASCADE')
    c.simple('DROP TABLE toasted; DROP FUNCTION of_length, calling, needing')
    c.simple("DO $$ DECLARE p regprocedure; BEGIN FOR p IN SELECT oid FROM pg_proc WHERE prokind = 'p' AND pronamespace = 'public'::regnamespace "
             "AND oid >= 16384 LOOP EXECUTE 'DROP PROCEDURE ' || p; END LOOP; END $$")
    c.simple('DROP TABLE said')
    c.simple('DROP DOMAIN tiny; DROP TYPE pair; DROP ROLE called_by')
    return c.said


def main():
    common = '-c client_min_messages=error -c mot.jit_prepare_above_executions=0 '
    status = compare(story, (('heap', common + '-c mot.default_engine=heap'), ('planned', common + '-c mot.default_engine=mot -c mot.remember_plans=off'),
                             ('remembered', common + '-c mot.default_engine=mot')))
    common = '-c client_min_messages=notice -c mot.default_engine=mot '
    return compare(calls, (('server', common + '-c mot.jit=off'), ('evaluated', common),
                           ('compiled', common + '-c mot.jit_procedures=on -c mot.jit_procedures_above_executions=2'))) or status


def compare(tell, ways):
    """The same said and answered each way: 1 if something differs from the first."""
    said = {}
    for name, options in ways:
        client = Client(options)
        client.said = []
        said[name] = list(tell(client))
    first, *others = said
    status = 0
    for name in others:
        for ours, right in zip(said[name], said[first]):
            if ours != right:
                print('%s: %s, %s: %s' % (name, ours, first, right))
                status = 1
        if len(said[name]) != len(said[first]):
            print('%s: %d messages, %s: %d' % (name, len(said[name]), first, len(said[first])))
            status = 1
    print('# %d messages' % len(said[first]))
    return status


if __name__ == '__main__':
    sys.exit(main())
