#!/usr/bin/python3
"""ahead.py: what is sent ahead (mot.pipeline), by hand.

Messages with wrong lengths, of all sizes, and cut anywhere; waiting for a
lock with timeouts, cancelled; a client that goes in the middle; the unnamed
statement in all its states; many parameters.  What is said with and without
mot.pipeline must be equal.  (The connection is libpq's: PGHOST ...)
"""

import socket
import struct
import sys
import time

from pipelines import Raw

TEXTS = {'one': 'SELECT v, t FROM ahead WHERE id = $1', 'upd': 'UPDATE ahead SET v = v + 1 WHERE id = $1', 'set': 'UPDATE ahead SET t = $2 WHERE id = $1',
         'wait': 'SELECT v FROM ahead WHERE id = $1 FOR UPDATE', 'len': 'SELECT length(t) FROM ahead WHERE id = $1',
         'when': 'SELECT statement_timestamp() > $2::timestamptz, v FROM ahead WHERE id = $1'}
OPTIONS = '-c jit=off -c plan_cache_mode=force_generic_plan -c mot.jit_prepare_above_executions=0 -c mot.pipeline='


def message(kind, body=b'', length=None):
    return kind + struct.pack('!i', len(body) + 4 if length is None else length) + body


def parse(name, text):
    return message(b'P', name.encode() + b'\0' + text.encode() + b'\0\0\0')


def bind(name, *values, portal=''):
    body = portal.encode() + b'\0' + name.encode() + b'\0' + struct.pack('!HH', 0, len(values))
    for value in values:
        body += struct.pack('!I', len(value)) + value
    return message(b'B', body + b'\0\0')


def execute(portal='', rows=0):
    return message(b'E', portal.encode() + b'\0' + struct.pack('!I', rows))


def run(name, *values):
    return bind(name, *values) + execute()


DESCRIBE, SYNC, FLUSH = message(b'D', b'P\0'), message(b'S'), message(b'H')


class Client(Raw):
    def __init__(self, pipeline, more='', names=TEXTS):
        super().__init__(OPTIONS + pipeline + more)
        self.socket.settimeout(60)
        self.socket.sendall(b''.join(parse(n, TEXTS[n]) for n in names) + SYNC)
        self.until_ready()
        # plans are known from the second time on
        for _ in range(2):
            self.say(*(run(n, b'1', *([b'x'] if n == 'set' else [b'2000-01-01'] if n == 'when' else [])) for n in names), SYNC)
        self.said = []

    def say(self, *pieces, pause=0):
        for piece in pieces:
            self.socket.sendall(piece)
            if pause:
                time.sleep(pause)
        self.until_ready()

    def end(self):
        """What is said until the connection has gone."""
        self.last = True
        try:
            self.socket.shutdown(socket.SHUT_WR)
            self.until_ready(1 << 60)
        except (EOFError, ConnectionError):
            pass
        self.socket.close()
        return self.said


def lengths(pipeline):
    said = []
    for kind in b'B', b'D', b'E', b'S', b'P', b'C', b'H', b'Q':
        for length in -2 ** 31, -10 ** 6, -5, -1, 0, 1, 3, 4, 5, 6, 9, 10001, 2 ** 20, 2 ** 30 - 2, 2 ** 30, 2 ** 31 - 1:
            for before in b'', bind('one', b'1'):
                c = Client(pipeline, names=['one', 'upd'])
                c.socket.sendall(run('upd', b'1') + run('upd', b'1') + before + message(kind, b'\0one\0\0\0\0\0', length))
                said.append(c.end())
    return said


def cuts(pipeline):
    """Anywhere, and the client goes, or goes on."""
    whole = run('upd', b'1') + run('upd', b'1') + DESCRIBE + bind('one', b'2') + DESCRIBE + execute() + run('set', b'3', b'y') + SYNC
    said = []
    for at in range(1, len(whole), 3):
        c = Client(pipeline, names=['one', 'upd', 'set'])
        c.socket.sendall(whole[:at])
        said.append(c.end())
        c = Client(pipeline, names=['one', 'upd', 'set'])
        c.say(whole[:at], whole[at:], pause=0.002)
        said.append(c.end())
    return said


def timeouts(pipeline):
    said = []
    holder = Client('off')
    for more in ' -c statement_timeout=200ms', ' -c lock_timeout=200ms':
        for ahead in 0, 1, 5:
            holder.simple('BEGIN; SELECT v FROM ahead WHERE id = 5 FOR UPDATE')
            c = Client(pipeline, more)
            for waits in 'upd', 'wait':
                c.say(run('upd', b'1') * ahead + run(waits, b'5') + run('upd', b'1') + SYNC)
            holder.simple('ROLLBACK')
            c.say(run('upd', b'5') * 3 + SYNC)
            said.append(c.end())
    holder.end()
    return said


def sizes(pipeline):
    said = []
    c = Client(pipeline)
    for size in 0, 1, 8180, 8192, 100000, 1 << 20, 30 << 20:
        c.say(run('upd', b'1') + run('set', b'2', b'z' * size) + run('len', b'2') + run('upd', b'1') + SYNC)
    c.say(run('set', b'2', b'z') + SYNC)
    said.append(c.end())
    return said


def many(pipeline):
    n = 65535
    c = Client(pipeline)
    c.socket.sendall(parse('many', 'SELECT id FROM ahead WHERE id IN (%s) ORDER BY id' % ', '.join('$%d' % (i + 1) for i in range(n))) + SYNC)
    c.until_ready()
    for _ in range(3):
        c.say(run('upd', b'1') * 2 + run('many', *[b'%d' % (i % 7) for i in range(n)]) * 2 + run('upd', b'1') + SYNC)
    return c.end()


def unnamed(pipeline):
    """Parsed, dropped, replaced, parsed anew because of DDL, its memory reused."""
    c = Client(pipeline)
    twice = run('upd', b'1') * 2
    use = twice + run('', b'2') * 2 + SYNC
    for text in 'one', 'upd', 'len':
        c.say(use)
        c.say(parse('', TEXTS[text]) + SYNC)
        c.say(use)
        c.say(use)
        c.simple('SELECT 1')
        c.say(use)
        c.say(parse('', TEXTS[text]) + run('', b'2') * 3 + use)
        c.say(twice + message(b'C', b'S\0') + SYNC)
        c.say(use)
        c.simple('PREPARE other AS SELECT 1')
        c.say(use)
        c.say(parse('', TEXTS[text]) + run('', b'2') * 3 + SYNC)
        other = Client('off')
        other.simple('ALTER TABLE ahead ALTER t SET DEFAULT 5')
        other.end()
        c.say(use)
        c.say(use)
        c.say(twice + parse('', 'BOGUS') + SYNC)
        c.say(use)
        c.simple('DO $$ DECLARE n int; BEGIN FOR i IN 1..3 LOOP SELECT v FROM ahead WHERE id = i INTO n; END LOOP; END $$')
        c.say(use)
        c.say(parse('', 'PREPARE p%s AS SELECT 2' % text) + message(b'B', b'\0\0\0\0\0\0\0\0') + execute() + SYNC)
        c.say(use)
        c.say(twice + parse('named' + text, TEXTS[text]) + run('named' + text, b'2') * 2 + run('', b'2') + SYNC)
        c.say(parse('', TEXTS[text]) + SYNC)
        c.simple('BEGIN')
        c.say(use)
        c.say(parse('', TEXTS[text]) + use)
        c.say(use)
        c.say(twice + run('absent') + SYNC)
        c.say(parse('', 'ROLLBACK') + SYNC)
        c.say(message(b'B', b'\0\0\0\0\0\0\0\0') + execute() + SYNC)
        c.say(use)
        c.simple('DISCARD ALL')
        c.say(b''.join(parse(n, TEXTS[n]) for n in TEXTS) + SYNC)
        c.simple('SET plan_cache_mode = force_generic_plan')
    return c.end()


def counters(pipeline):
    """In and out of blocks, with and without a portal made afterwards."""
    c = Client(pipeline)
    for _ in range(3):
        c.say(run('one', b'1') * 5 + SYNC)
        c.say(run('one', b'1') * 5 + FLUSH + run('upd', b'1') * 3 + FLUSH + execute() + SYNC)
        c.simple('BEGIN')
        c.say(run('one', b'1') * 5 + SYNC)
        c.say(run('upd', b'1') * 5 + DESCRIBE + execute() + SYNC)
        c.simple('SELECT name, statement FROM pg_cursors')
        c.simple('COMMIT')
        c.simple('SELECT name, generic_plans, custom_plans FROM pg_prepared_statements ORDER BY 1')
    return c.end()


def main():
    ddl = Raw('')
    ddl.simple('CREATE EXTENSION IF NOT EXISTS mot')
    only = sys.argv[1:]
    for story in lengths, cuts, timeouts, sizes, many, unnamed, counters:
        if only and story.__name__ not in only:
            continue
        said = []
        for pipeline in 'on', 'off':
            for text in ('DROP TABLE IF EXISTS ahead', 'CREATE TABLE ahead (id int PRIMARY KEY, v int, t text) USING mot',
                         "INSERT INTO ahead SELECT i, 0, 'text' FROM generate_series(1, 10) i"):
                ddl.simple(text)
            ddl.said = []
            result = story(pipeline)
            ddl.simple('SELECT id, v, length(t) FROM ahead ORDER BY id')
            said.append(result + ddl.said)
        if said[0] != said[1]:
            at = next((i for i, (a, b) in enumerate(zip(*said)) if a != b), min(len(said[0]), len(said[1])))
            print('%s, answer %d\non: %s\noff: %s' % (story.__name__, at, said[0][max(at - 2, 0):at + 2], said[1][max(at - 2, 0):at + 2]))
            sys.exit(1)
        print('%s: %d answers, no difference' % (story.__name__, len(said[0])))


if __name__ == '__main__':
    main()
