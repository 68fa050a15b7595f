#!/usr/bin/python3
"""pipelines.py [--rounds N] [--seed N] [--settings "name=value ..."] [--flip]: random pipelines of the extended protocol.

Statements with and without names, portals that are described, fetched in
pieces, executed again, closed or forgotten, errors of all kinds in the middle,
simple queries, savepoints and DDL in between, sent in pieces of any length.
The same bytes go to a heap table and to memory-optimized tables of both kinds,
whose pipelines are read ahead (mot.pipeline): byte for byte the answers must be
equal, but for the tables' oids.  (The connection is libpq's: PGHOST ...)

--flip: bytes of what is sent are changed, taken away or sent twice, and then the
client hangs up.  The answers of a memory-optimized table with mot.pipeline are
compared with those without it, and so are the rows that are left.
"""

import argparse
import random
import socket
import struct
import sys
import time

from messages import Client

COLUMNS = 'id int PRIMARY KEY, v int NOT NULL, t text, n numeric, u int UNIQUE'
KINDS = {
    'heap': 'CREATE TABLE %s (%s)',
    'mot': 'CREATE TABLE %s (%s) USING mot',
    'foreign': 'CREATE FOREIGN TABLE %s (%s) SERVER mot_server',
}
# of a name: text, and what parameters are
STATEMENTS = {
    'one': ('SELECT v, t FROM pip WHERE id = $1', 'k'),
    'range': ('SELECT id, v, n FROM pip WHERE id BETWEEN $1 AND $1 + 3 ORDER BY id', 'k'),
    'upd': ('UPDATE pip SET v = v + $2 WHERE id = $1', 'ki'),
    'set': ('UPDATE pip SET t = $2, n = $3 WHERE id = $1', 'ktn'),
    'ret': ('UPDATE pip SET v = v + 1 WHERE id = $1 RETURNING id, v, t', 'k'),
    'ins': ('INSERT INTO pip VALUES ($1, $2, $3, $4, $5)', 'kitni'),
    'ups': ('INSERT INTO pip (id, v, t) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET v = excluded.v, t = pip.t || excluded.t', 'kit'),
    'nothing': ('INSERT INTO pip (id, v) VALUES ($1, $2) ON CONFLICT DO NOTHING', 'ki'),
    'del': ('DELETE FROM pip WHERE id = $1', 'k'),
    'lock': ('SELECT id, t FROM pip WHERE id = $1 FOR UPDATE', 'k'),
    'div': ('SELECT v / $2 FROM pip WHERE id = $1', 'ki'),
    'cnt': ('SELECT count(*), sum(v), max(t) FROM pip', ''),
    'calls': ('SELECT looks(id) FROM pip WHERE id = $1', 'k'),
    'dom': ('UPDATE pip SET v = $2::small WHERE id = $1', 'ki'),
    'arr': ('SELECT id FROM pip WHERE id = ANY ($1::int[]) ORDER BY id', 'a'),
    'arow': ('SELECT id, ARRAY[v, id] FROM pip WHERE id = $1', 'k'),
    'other': ('SELECT count(*) FROM beside WHERE a = $1', 'k'),
    'put': ('INSERT INTO beside VALUES ($1)', 'k'),
    'save': ('SAVEPOINT s', ''),
    'back': ('ROLLBACK TO s', ''),
    'begin': ('BEGIN', ''),
    'commit': ('COMMIT', ''),
    'roll': ('ROLLBACK', ''),
    'level': ('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ', ''),
    'void': ('', ''),
    'tenths': ('SELECT id, 100 / (v - $2) FROM pip WHERE id BETWEEN $1 AND $1 + 5 ORDER BY id', 'ki'),
    'some': ('SELECT * FROM pip WHERE id > $1 ORDER BY id LIMIT 2', 'k'),
    'kin': ('INSERT INTO pip (id, v, t) VALUES ($1, $2, $3) RETURNING *', 'kit'),
    'kinder': ('INSERT INTO pip (id, v, u) VALUES ($1, $2, 7) ON CONFLICT (id) DO UPDATE SET v = pip.v + 1 RETURNING id, v', 'ki'),
    'gone': ('DELETE FROM pip WHERE id = $1 RETURNING id, t', 'k'),
    'whole': ('SELECT pip FROM pip WHERE id = $1', 'k'),
    'kinds': ('SELECT * FROM kinds WHERE id = $1', 'k'),
    'kind_in': ('INSERT INTO kinds VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)', 'kfghjlmopqrsuvwxyi'),
    'kind_up': ('UPDATE kinds SET b = $2, d = $3, e = $4, ea = $5, c = $6, j = $7 WHERE id = $1 RETURNING *', 'kgquvwm'),
    'kind_dom': ('SELECT id, dm, e FROM kinds WHERE id = $1 AND (e = $2 OR e IS NULL)', 'ku'),
    'fired': ('UPDATE fired SET v = v + 1 WHERE id = $1', 'k'),
    'grow': ('INSERT INTO serial (v) VALUES ($1) RETURNING id', 'i'),
    'call': ('CALL works($1)', 'k'),
    'listen': ('LISTEN pipes', ''),
    'notify': ("NOTIFY pipes, 'word'", ''),
    'local': ("SET LOCAL plan_cache_mode = force_generic_plan", ''),
    'generic': ("SET plan_cache_mode = force_generic_plan", ''),
    'lesser': ('SET ROLE lesser', ''),
    'reset': ('RESET ROLE', ''),
    'revoke': ('REVOKE SELECT ON pip FROM lesser', ''),
    'grant': ('GRANT SELECT ON pip TO lesser', ''),
    'latin': ('SET client_encoding = latin1', ''),
    'sjis': ('SET client_encoding = sjis', ''),
    'gbk': ('SET client_encoding = gbk', ''),
    'utf8': ('SET client_encoding = utf8', ''),
    'readonly': ('SET TRANSACTION READ ONLY', ''),
    'prepare': ('PREPARE made(int) AS SELECT v FROM pip WHERE id = $1', ''),
    'use': ('EXECUTE made(4)', ''),
    'unmake': ('DEALLOCATE made', ''),
    'unone': ('DEALLOCATE one', ''),
    'discard': ('DISCARD PLANS', ''),
    'alter': ('ALTER TABLE pip ALTER v SET DEFAULT 3', ''),
    'retype': ('ALTER TABLE pip ALTER v TYPE bigint', ''),
    'dropsmall': ('ALTER DOMAIN small DROP CONSTRAINT IF EXISTS small_check', ''),
    'addlabel': ("ALTER TYPE mood ADD VALUE IF NOT EXISTS 'odd'", ''),
    'cursor': ('DECLARE cur CURSOR FOR SELECT id FROM pip ORDER BY id', ''),
    'holds': ('DECLARE held CURSOR WITH HOLD FOR SELECT id FROM pip ORDER BY id', ''),
    'fetch': ('FETCH 2 FROM cur', ''),
    'fetchheld': ('FETCH 2 FROM held', ''),
    'portals': ('SELECT name, statement FROM pg_cursors ORDER BY 1, 2', ''),
    'plans': ("SELECT name, generic_plans + custom_plans FROM pg_prepared_statements WHERE name IN ('one', 'upd', 'ret', 'ins') ORDER BY 1", ''),
    'copy': ('COPY beside FROM STDIN', ''),
    'copyout': ('COPY (SELECT v FROM pip WHERE id < 4 ORDER BY id) TO STDOUT', ''),
    'time': ('SELECT statement_timestamp() >= transaction_timestamp() FROM pip WHERE id = $1', 'k'),
}
ANY = [name for name in STATEMENTS if name != 'copy']
COMMON = 'one', 'one', 'one', 'range', 'upd', 'upd', 'set', 'ret', 'ins', 'ups', 'nothing', 'del', 'lock'
SIMPLE = ('SELECT sum(v), count(*), sum(length(t)), sum(n) FROM pip', 'BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT s', 'ROLLBACK TO s',
          'ALTER TABLE pip ADD COLUMN extra int DEFAULT 7', 'ALTER TABLE pip DROP COLUMN IF EXISTS extra', 'DISCARD PLANS',
          'SET plan_cache_mode = force_generic_plan', 'RESET plan_cache_mode', "SET statement_timeout = '10s'", 'RESET statement_timeout',
          'SELECT v FROM pip WHERE id = 5', 'SELECT 1; SELECT v FROM pip WHERE id = 6; SELECT 2', 'ANALYZE pip', 'CREATE INDEX ON pip (v)',
          'SET ROLE lesser', 'RESET ROLE', 'REVOKE UPDATE ON pip FROM lesser', 'GRANT UPDATE ON pip TO lesser', 'SET client_encoding = latin1',
          'RESET client_encoding', 'SELECT name, statement, generic_plans > 0 FROM pg_prepared_statements WHERE name IN ($$one$$) ORDER BY 1',
          'DEALLOCATE one', 'SET default_transaction_isolation = serializable', 'RESET default_transaction_isolation',
          'SET default_transaction_read_only = on', 'RESET default_transaction_read_only', 'SELECT name FROM pg_cursors ORDER BY 1',
          'DECLARE held CURSOR WITH HOLD FOR SELECT id FROM pip ORDER BY id', 'CLOSE held', 'SET search_path = nearer, public', 'RESET search_path',
          'EXECUTE one(3)', 'BOGUS', 'DISCARD ALL', 'DEALLOCATE ALL', 'CALL works(3)', 'LISTEN pipes', 'NOTIFY pipes', 'FETCH 1 FROM held',
          'SET client_encoding = sjis', 'SET client_encoding = gbk', 'ALTER TYPE mood RENAME TO mode', 'ALTER TYPE mode RENAME TO mood',
          "ALTER TYPE both_of ADD ATTRIBUTE z int", 'ALTER TABLE kinds ALTER dm TYPE int', 'ALTER DOMAIN small ADD CHECK (VALUE < 50) NOT VALID',
          'VACUUM pip', 'TRUNCATE beside', 'SELECT name, generic_plans + custom_plans FROM pg_prepared_statements ORDER BY 1')
# 'kinds' has columns of more types, in both formats as they come
TYPES = (('f', 's', 'smallint', (b'1', b'-7', b'70000')), ('g', 'b', 'bigint', (b'1', b'9223372036854775807', b'x')),
         ('h', 'o', 'boolean', (b't', b'off', b'maybe')), ('j', 'f', 'float8', (b'1.5', b'NaN', b'1e999')),
         ('l', 'ts', 'timestamptz', (b'2020-01-01 00:00:00+00', b'infinity', b'never')), ('m', 'j', 'jsonb', (b'{"a": [1, 2]}', b'null', b'{')),
         ('o', 'uu', 'uuid', (b'00000000-0000-0000-0000-000000000001', b'no')), ('p', 'y', 'bytea', (b'\\x00ff', b'abc', b'\\x0')),
         ('q', 'd', 'date', (b'2020-02-29', b'2021-02-29')), ('r', 'vc', 'varchar(5)', (b'abc', b'abcdefgh', 'äö'.encode())),
         ('s', 'bp', 'char(3)', (b'a', b'abcd')), ('u', 'e', 'mood', (b'sad', b'odd', b'glad')), ('v', 'ea', 'mood[]', (b'{sad,ok}', b'{}', b'{no}')),
         ('w', 'c', 'both_of', (b'(1,a)', b'(,)', b'(1,2,3)')), ('x', 'dm', 'small', (b'5', b'77', b'100')),
         ('y', 'r', 'int4range', (b'[1,5)', b'empty', b'[5,1)')))
VALUES = {letter: values for letter, _, _, values in TYPES}
BINARY = {'f': '!h', 'g': '!q', 'h': '!?', 'j': '!d', 'l': '!q', 'q': '!i'}


# all but the tables, and what is in them; for each story
AROUND = ('DROP SCHEMA IF EXISTS twin CASCADE', 'CREATE SCHEMA twin', 'GRANT USAGE ON SCHEMA twin TO lesser', 'SET search_path = twin, public',
          'CREATE TABLE beside (a int)', 'CREATE DOMAIN small AS int CHECK (VALUE < 100)', "CREATE TYPE mood AS ENUM ('sad', 'ok')",
          'CREATE TYPE both_of AS (a int, b text)')
INSIDE = ("INSERT INTO pip SELECT i, i * 10, 'row ' || i, i / 7.0, i + 1000 FROM generate_series(1, 50) i", 'INSERT INTO kinds (id, s, e) VALUES (1, 1, $$ok$$)',
          'INSERT INTO fired SELECT generate_series(1, 20), 0', 'GRANT ALL ON pip, beside, kinds, fired, serial TO lesser',
          'CREATE FUNCTION looks(k int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(v) FROM pip); END $$',
          'CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE pip SET v = v + 1 WHERE id = new.id; RETURN new; END $$',
          'CREATE TRIGGER t BEFORE UPDATE ON fired FOR EACH ROW EXECUTE FUNCTION fires()',
          'CREATE PROCEDURE works(k int) LANGUAGE plpgsql AS $$ BEGIN UPDATE pip SET v = v + 1 WHERE id = k; COMMIT; UPDATE pip SET v = v + 1 WHERE id = k; END $$')
OTHERS = {'kinds': 'id int PRIMARY KEY, ' + ', '.join('%s %s' % (name, kind) for _, name, kind, _ in TYPES) + ', last int',
          'fired': 'id int PRIMARY KEY, v int', 'serial': 'id serial PRIMARY KEY, v int'}


class Raw(Client):
    """As it is said, but for oids of tables and types."""

    types, last = (), False

    def read(self, n):
        data = b''
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                if self.last:
                    raise EOFError
                print('the server closed the connection')
                sys.exit(2)
            data += more
        return data

    def until_ready(self, times=1):
        """So many times in a row."""
        seen = 0
        while seen < times:
            kind = self.read(1)
            seen = seen + 1 if kind == b'Z' else 0
            body = self.read(struct.unpack('!I', self.read(4))[0] - 4)
            if kind == b'T':
                columns, at = [], 2
                for _ in range(struct.unpack('!H', body[:2])[0]):
                    end = body.index(b'\0', at)
                    kind_of = struct.unpack('!I', body[end + 7:end + 11])[0]
                    columns.append((body[at:end], body[end + 5:end + 7], kind_of if kind_of < 16384 else 0, body[end + 11:end + 19]))
                    at = end + 19
                assert at == len(body)
                body = columns
            elif kind in (b'E', b'N'):
                body = b'|'.join(field for field in body.split(b'\0') if field[:1] in (b'S', b'C', b'M', b'D', b'H', b'P', b'W', b'n', b'c'))
                body = body.replace(b'foreign table', b'table')
            elif kind == b'A':
                body = body[4:]
            elif kind in b'tD':
                # (of parameters; of an array's elements, after its flags)
                for place, oid in enumerate(self.types):
                    for before in (b'',) if kind == b't' else (b'\0\0\0\0', b'\0\0\0\1'):
                        body = body.replace(before + oid, before + b'typ%d' % place)
            if kind not in b'RSK':
                self.said.append((kind, body))


def make(r):
    """A story: what is sent in each round, and in what pieces."""
    def value(kind, binary):
        if kind == 'k':
            n = r.choice((r.randint(1, 60), r.randint(1, 8)))
        elif kind == 'i':
            n = r.choice((0, 1, 5, 99, 101, 2147483647, None, r.randint(1, 10 ** 6)))
        elif kind == 'n':
            return r.choice((b'1.50', b'NaN', b'-7e3', None)), False
        elif kind == 'a':
            return r.choice((b'{1,2,3}', b'{5,NULL,7}', b'{', None)), False
        elif kind in VALUES:
            if binary and kind in BINARY:
                return struct.pack(BINARY[kind], r.choice((0, 1))), True
            return (r.choice((None, VALUES[kind][1])) if r.random() < 0.3 else VALUES[kind][0] if r.random() < 0.97 else r.choice(VALUES[kind])), False
        else:
            return r.choice((b'a', b'text', b'', None, b'x' * r.choice((10, 3000, 9000)), 'ä'.encode(), b'\xff')), False
        if n is None or r.random() < 0.02:
            return r.choice((None, b'bad', b'99999999999')), False
        return (struct.pack('!i', n), True) if binary else (str(n).encode(), False)

    out = []

    def message(kind, body):
        out.append(kind + struct.pack('!I', len(body) + 4) + body)

    def name_of(statement):
        return r.choice((statement,) * 12 + ('', 'absent'))

    def parse(name, statement):
        message(b'P', name.encode() + b'\0' + STATEMENTS[statement][0].encode() + b'\0\0\0')

    def bind(portal, name, statement):
        values = [value(kind, r.random() < 0.5) for kind in STATEMENTS[statement][1]]
        body = portal.encode() + b'\0' + name.encode() + b'\0'
        formats = [int(binary) for _, binary in values]
        if len(set(formats)) == 1 and r.random() < 0.5:
            formats = formats[:1]
        elif not any(formats):
            formats = r.choice(([], formats))
        body += struct.pack('!H', len(formats)) + b''.join(struct.pack('!H', f) for f in formats)
        body += struct.pack('!H', len(values))
        for v, _ in values:
            body += struct.pack('!i', -1) if v is None else struct.pack('!I', len(v)) + v
        results = r.choice(([], [], [], [0], [1], [0, 1], [1, 1, 0], [2] if r.random() < 0.05 else []))
        message(b'B', body + struct.pack('!H', len(results)) + b''.join(struct.pack('!H', f) for f in results))

    def describe(kind, name):
        message(b'D', kind + name.encode() + b'\0')

    def execute(portal, rows=0):
        message(b'E', portal.encode() + b'\0' + struct.pack('!I', rows))

    def odd():
        """What is rare in a pipeline."""
        dice = r.randint(0, 6)
        if dice == 0:
            message(b'F', struct.pack('!IHHHIIIIH', 177, 1, 1, 2, 4, 40, 4, 2, 1))
        elif dice == 1:
            message(b'Q', r.choice(SIMPLE).encode() + b'\0')
        elif dice == 2:
            message(b'S', b'')
            bind('', 'one', 'one')
            execute('')
        elif dice == 3:
            bind('', 'copy', 'copy')
            execute('')
            message(b'd', b'%d\n' % r.randint(1, 50))
            message(*r.choice(((b'c', b''), (b'f', b'no\0'))))
        elif dice == 4:
            message(b'C', b'S' + r.choice(('', 'one', 'upd', 'absent')).encode() + b'\0')
        elif dice == 5:
            name = r.choice(ANY)
            parse(name if r.random() < 0.3 else '', name)
        else:
            message(b'H', b'')
        return dice < 3

    def step():
        statement = r.choice(COMMON) if r.random() < 0.9 else r.choice(ANY)
        portal = '' if r.random() < 0.93 else r.choice('pq')
        name = name_of(statement)
        if r.random() < 0.03 or (name == '' and r.random() < 0.6):
            parse(name, statement)
        bind(portal, name, statement)
        if r.random() < 0.3:
            describe(b'P', portal)
        dice = r.random()
        if dice < 0.9:
            execute(portal)
        elif dice < 0.94:
            execute(portal, r.choice((1, 2, 100)))
            if r.random() < 0.7:
                execute(portal)
        elif dice < 0.96:
            describe(r.choice((b'P', b'S', b'X') if r.random() < 0.1 else (b'P', b'S')), r.choice(('', 'p', statement, 'absent')))
            execute(portal)
        elif dice < 0.98:
            execute(r.choice(('', 'p', 'q', 'absent', 'held')))
        if r.random() < 0.05:
            r.choice((lambda: execute(''), lambda: describe(b'P', ''), lambda: message(b'C', b'P\0'), lambda: message(b'H', b''),
                      lambda: message(b'C', b'S\0'), lambda: describe(b'S', r.choice(('one', 'ret', '')))))()

    rounds = []
    for name in STATEMENTS:
        parse(name, name)
    message(b'S', b'')
    rounds.append((out[:], 1, 1))
    out.clear()
    rare = r.choice((0, 0, 0.02, 0.1))
    for _ in range(r.randint(5, 25)):
        if r.random() < 0.35:
            message(b'Q', r.choice(SIMPLE).encode() + b'\0')
            rounds.append((out[:], 1, 1))
            out.clear()
        several = False
        same = r.choice(COMMON) if r.random() < 0.5 else None
        for _ in range(r.choice((1, 2, 3, 8, 20, 60))):
            if same and r.random() < 0.9:
                bind('', same, same)
                if r.random() < 0.5:
                    describe(b'P', '')
                execute('')
            else:
                step()
            if r.random() < rare:
                several |= odd()
        message(b'S', b'')
        if several:
            message(b'S', b'')
            message(b'C', b'Sabsent\0')
            for _ in range(3):
                message(b'S', b'')
        rounds.append((out[:], r.choice((1, 1, 1, 2, 5)), 3 if several else 1))
        out.clear()
    for end in ('ROLLBACK', 'RESET ALL', 'RESET ROLE', 'RESET client_encoding', 'SELECT * FROM pip ORDER BY id', 'SELECT * FROM kinds ORDER BY id',
                'SELECT * FROM beside', 'SELECT * FROM fired ORDER BY id', 'SELECT * FROM serial ORDER BY id'):
        message(b'Q', end.encode() + b'\0')
        rounds.append((out[:], 1, 1))
        out.clear()
    return rounds


def tell(rounds, c, r):
    for messages, pieces, times in rounds:
        data = b''.join(messages)
        cuts = sorted(r.randint(0, len(data)) for _ in range(pieces - 1))
        for at, end in zip([0] + cuts, cuts + [len(data)]):
            c.socket.sendall(data[at:end])
            if end < len(data):
                time.sleep(0.001)
        c.said.append(data)
        c.until_ready(times)


def prepare(ddl, create):
    """Everything anew; the oids of its types."""
    for text in AROUND + (create % ('pip', COLUMNS),) + tuple(create % item for item in OTHERS.items()) + INSIDE:
        ddl.simple(text)
    errors = [s for s in ddl.said if s[0] == b'E']
    if errors:
        sys.exit('%s: %s' % (create, errors))
    ddl.said = []
    ddl.simple("SELECT oid FROM pg_type WHERE typnamespace = 'twin'::regnamespace ORDER BY typname COLLATE \"C\"")
    types = [struct.pack('!I', int(body[6:])) for kind, body in ddl.said if kind == b'D']
    ddl.said = []
    return types


def flipped(rounds, r):
    """All of it at once, not as it should be."""
    data = bytearray(b''.join(b''.join(messages) for messages, _, _ in rounds))
    first = len(b''.join(rounds[0][0]))
    ends, at = [], 0
    while at < len(data):
        at += 1 + struct.unpack('!I', data[at + 1:at + 5])[0]
        ends.append(at)
    for _ in range(r.choice((1, 1, 2, 5, 20))):
        if len(data) <= first:
            break
        at = r.randint(first, len(data) - 1)
        dice = r.random()
        if dice < 0.3:
            data[at] ^= 1 << r.randint(0, 7)
        elif dice < 0.5:
            data[at] = r.choice((0, 255, 1, ord('B'), ord('E'), ord('S')))
        elif dice < 0.6:
            del data[at:at + r.choice((1, 1, 2, 50))]
        elif dice < 0.7:
            data[at:at] = data[at:at + r.choice((1, 2, 50))]
        elif dice < 0.75:
            del data[at:]
        else:
            # a message's length stays right, and only its inside does not
            end = next((e for e in ends if e > at), len(data))
            start = max([0] + [e for e in ends if e <= at])
            if end - start > 5 and end <= len(data):
                inside = r.randint(start + 5, end - 1)
                data[inside] = r.choice((data[inside] ^ 1 << r.randint(0, 7), 0, 255, data[inside] + 1 & 255))
    return bytes(data)


def flip(args, options):
    ddl = Raw('')
    for number in range(args.first, args.rounds):
        r = random.Random(args.seed * 1000003 + number)
        data = flipped(make(r), r)
        kind = r.choice(('mot', 'foreign'))
        pieces = r.choice((1, 1, 3))
        said = []
        for pipeline in 'on', 'off':
            types = prepare(ddl, KINDS[kind])
            c = Raw(options % 'twin' + ' -c mot.jit_prepare_above_executions=0 -c mot.pipeline=' + pipeline)
            c.types, c.last = types, True
            c.socket.settimeout(60)
            try:
                for at in range(pieces):
                    c.socket.sendall(data[len(data) * at // pieces:len(data) * (at + 1) // pieces])
                c.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            try:
                c.until_ready(1 << 60)
            except (EOFError, ConnectionError):
                pass
            c.socket.close()
            for text in 'SELECT * FROM pip ORDER BY id', 'SELECT * FROM kinds ORDER BY id', 'SELECT * FROM beside', 'SELECT * FROM fired':
                ddl.simple(text)
            said.append(c.said + ddl.said)
            ddl.said = []
        if said[0] != said[1]:
            at = next((i for i, (a, b) in enumerate(zip(*said)) if a != b), min(len(said[0]), len(said[1])))
            print('flipped story %d of seed %d, answer %d\non: %s\noff: %s' %
                  (number, args.seed, at, said[0][max(at - 3, 0):at + 3], said[1][max(at - 3, 0):at + 3]))
            sys.exit(1)
    print('%d flipped stories, no difference' % args.rounds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--settings', default='')
    parser.add_argument('--flip', action='store_true')
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    options = '-c search_path=%s,public -c jit=off ' + ' '.join('-c ' + s for s in args.settings.split())
    ddl = Raw('')
    ddl.simple('CREATE EXTENSION IF NOT EXISTS mot')
    ddl.simple("DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lesser') THEN CREATE ROLE lesser; END IF; END $$")
    if args.flip:
        flip(args, options)
        return
    answers = 0
    for number in range(args.first, args.rounds):
        r = random.Random(args.seed * 1000003 + number)
        rounds = make(r)
        said = {}
        for kind, create in KINDS.items():
            types = prepare(ddl, create)
            c = Raw(options % 'twin' + (' -c mot.pipeline=on -c mot.jit_prepare_above_executions=0' if kind != 'heap' else ''))
            c.types = types
            tell(rounds, c, random.Random(number))
            said[kind] = c.said
            c.socket.close()
        answers += len(said['heap'])
        for kind in 'mot', 'foreign':
            if said[kind] != said['heap']:
                at = next(i for i, (a, b) in enumerate(zip(said['heap'], said[kind])) if a != b)
                sent = [s for s in said['heap'][:at + 1] if isinstance(s, bytes)]
                print('story %d of seed %d, answer %d\nheap: %s\n%s: %s\nsent: %s' %
                      (number, args.seed, at, said['heap'][max(at - 3, 0):at + 3], kind, said[kind][max(at - 3, 0):at + 3], sent[-1][:3000]))
                sys.exit(1)
    print('%d pipelined stories, %d answers, no difference' % (args.rounds, answers))


if __name__ == '__main__':
    main()
