#!/usr/bin/python3
"""pipelines.py [--rounds N] [--seed N] [--settings "name=value ..."]: random pipelines of the extended protocol.

Statements with and without names, portals that are described, fetched in
pieces, executed again, closed or forgotten, errors of all kinds in the middle,
simple queries, savepoints and DDL in between, sent in pieces of any length.
The same bytes go to a heap table and to memory-optimized tables of both kinds,
whose pipelines are read ahead (mot.pipeline): byte for byte the answers must be
equal, but for the tables' oids.  (The connection is libpq's: PGHOST ...)
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
    'heap': 'CREATE TABLE pip (%s)' % COLUMNS,
    'mot': 'CREATE TABLE pip (%s) USING mot' % COLUMNS,
    'foreign': 'CREATE FOREIGN TABLE pip (%s) SERVER mot_server' % COLUMNS,
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
    'time': ('SELECT statement_timestamp() >= transaction_timestamp() FROM pip WHERE id = $1', 'k'),
}
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
          'EXECUTE one(3)', 'BOGUS')


class Raw(Client):
    """As it is said, but for oids of tables."""

    def until_ready(self):
        kind = b''
        while kind != b'Z':
            kind = self.read(1)
            body = self.read(struct.unpack('!I', self.read(4))[0] - 4)
            if kind == b'T':
                columns, at = [], 2
                for _ in range(struct.unpack('!H', body[:2])[0]):
                    end = body.index(b'\0', at)
                    columns.append((body[at:end], body[end + 5:end + 19]))
                    at = end + 19
                assert at == len(body)
                body = columns
            elif kind in (b'E', b'N'):
                body = b'|'.join(field for field in body.split(b'\0') if field[:1] in (b'S', b'C', b'M', b'D', b'H', b'P', b'W', b'n', b'c'))
                body = body.replace(b'foreign table', b'table')
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

    def step():
        statement = r.choice(COMMON) if r.random() < 0.9 else r.choice(list(STATEMENTS))
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
    rounds.append((out[:], 1))
    out.clear()
    for _ in range(r.randint(5, 25)):
        if r.random() < 0.35:
            message(b'Q', r.choice(SIMPLE).encode() + b'\0')
            rounds.append((out[:], 1))
            out.clear()
        same = r.choice(COMMON) if r.random() < 0.5 else None
        for _ in range(r.choice((1, 2, 3, 8, 20, 60))):
            if same and r.random() < 0.9:
                bind('', same, same)
                if r.random() < 0.5:
                    describe(b'P', '')
                execute('')
            else:
                step()
        message(b'S', b'')
        rounds.append((out[:], r.choice((1, 1, 1, 2, 5))))
        out.clear()
    for end in 'ROLLBACK', 'RESET ALL', 'RESET ROLE', 'SELECT * FROM pip ORDER BY id':
        message(b'Q', end.encode() + b'\0')
        rounds.append((out[:], 1))
        out.clear()
    return rounds


def tell(rounds, c, r):
    for messages, pieces in rounds:
        data = b''.join(messages)
        cuts = sorted(r.randint(0, len(data)) for _ in range(pieces - 1))
        for at, end in zip([0] + cuts, cuts + [len(data)]):
            c.socket.sendall(data[at:end])
            if end < len(data):
                time.sleep(0.001)
        c.said.append(data)
        c.until_ready()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--settings', default='')
    args = parser.parse_args()
    options = '-c search_path=%s,public -c jit=off ' + ' '.join('-c ' + s for s in args.settings.split())
    ddl = Raw('')
    ddl.simple('CREATE EXTENSION IF NOT EXISTS mot')
    ddl.simple("DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lesser') THEN CREATE ROLE lesser; END IF; END $$")
    answers = 0
    for number in range(args.rounds):
        r = random.Random(args.seed * 1000003 + number)
        rounds = make(r)
        said = {}
        for kind, create in KINDS.items():
            for text in ('DROP SCHEMA IF EXISTS twin CASCADE', 'DROP DOMAIN IF EXISTS small', 'CREATE SCHEMA twin', 'GRANT USAGE ON SCHEMA twin TO lesser'):
                ddl.simple(text)
            for text in (create, 'CREATE TABLE beside (a int)', 'CREATE DOMAIN small AS int CHECK (VALUE < 100)', 'GRANT ALL ON pip, beside TO lesser',
                         "CREATE FUNCTION looks(k int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(v) FROM pip); END $$",
                         "INSERT INTO pip SELECT i, i * 10, 'row ' || i, i / 7.0, i + 1000 FROM generate_series(1, 50) i"):
                ddl.simple('SET search_path = twin, public')
                ddl.simple(text)
            errors = [s for s in ddl.said if s[0] == b'E']
            if errors:
                sys.exit('%s: %s' % (kind, errors))
            ddl.said = []
            c = Raw(options % 'twin' + (' -c mot.pipeline=on -c mot.jit_prepare_above_executions=0' if kind != 'heap' else ''))
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
