#!/usr/bin/python3
"""messages.py: what a client of the extended protocol can do with statements that nobody has prepared.

Portals of several at a time, fetched row by row, open while a savepoint is
rolled back or their table is altered, never executed, or closed with their
statement; errors in the middle of a pipeline.  The same messages on a heap
table, and on memory-optimized tables planned each time, and with plans
remembered: the answers must be equal.  (The connection is libpq's: PGHOST, a
socket's directory, ...)
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


def main():
    common = '-c client_min_messages=error -c mot.jit_prepare_above_executions=0 '
    said = {}
    for name, options in (('heap', '-c mot.default_engine=heap'), ('planned', '-c mot.default_engine=mot -c mot.remember_plans=off'),
                          ('remembered', '-c mot.default_engine=mot')):
        client = Client(common + options)
        client.said = []
        said[name] = list(story(client))
        client.said.clear()
    status = 0
    for name in 'planned', 'remembered':
        for ours, heap in zip(said[name], said['heap']):
            if ours != heap:
                print('%s: %s, heap: %s' % (name, ours, heap))
                status = 1
        if len(said[name]) != len(said['heap']):
            print('%s: %d messages, heap: %d' % (name, len(said[name]), len(said['heap'])))
            status = 1
    print('# %d messages' % len(said['heap']))
    return status


if __name__ == '__main__':
    sys.exit(main())
