#!/usr/bin/python3
"""progress.py: do SERIALIZABLE transactions in conflict get on?

    progress.py [options]           (the connection is libpq's: PGHOST, ...)

What a correct history does not show is whether anybody gets through.  Of the
transactions that meet at one place some have to fail, but one has to commit,
and nobody is to fail for ever.  The places:

    range       all count a range of an index, and insert into it
    value       the same by an index that is not unique
    absent      all look a key up, and create it if it is not there
    missed      each inserts the key that its neighbour has missed
    skew        each changes the row that its neighbour has read
    wiki        several tables: pages that are read and changed, with keys that
                change, revisions, a watch list, a counter; in no order

Rounds (default): N clients begin, do their part, and commit all at the same
time.  There is to be no round without a commit; nothing depends on timing.

Loops (--seconds): N clients try again and again, each transaction until it gets
through.  Printed for heap and memory-optimized tables in turns: commits, failures
by SQLSTATE, the worst client's commits, and how often in a row anybody failed.

    --works "range value ..."   (default: all)
    --clients "2 4 8"
    --rounds N      of each work and number of clients (10)
    --think MS      between what is read and what is written (0)
    --seconds N     loops instead of rounds
    --turns N       (1)
    --kinds "heap mot"
"""

import argparse
import random
import sys
import threading
import time

import psycopg2
import psycopg2.extensions

ROUNDS = {'heap': 0, 'mot': 0}          # so far
RETRIES = ('40001', '40P01')

TABLES = """
CREATE %(foreign)s TABLE hot (id bigint PRIMARY KEY, v int, n int NOT NULL) %(server)s;
CREATE INDEX ON hot (v);
INSERT INTO hot SELECT i, 1, 0 FROM generate_series(1, 1000) i;
CREATE %(foreign)s TABLE page (id int PRIMARY KEY, touched bigint, latest bigint, views int) %(server)s;
CREATE INDEX ON page (touched);
INSERT INTO page SELECT i, i, 0, 0 FROM generate_series(1, 20) i;
CREATE %(foreign)s TABLE revision (id bigint PRIMARY KEY, page int, author int) %(server)s;
CREATE INDEX ON revision (page);
CREATE %(foreign)s TABLE watch (page int, author int, seen bigint, PRIMARY KEY (page, author)) %(server)s;
INSERT INTO watch SELECT p, a, 0 FROM generate_series(1, 20) p, generate_series(1, 16) a;
CREATE %(foreign)s TABLE author (id int PRIMARY KEY, edits int) %(server)s;
INSERT INTO author SELECT i, 0 FROM generate_series(1, 16) i;
ANALYZE;
"""


def connect(kind):
    connection = psycopg2.connect("")
    connection.set_isolation_level(psycopg2.extensions.ISOLATION_LEVEL_AUTOCOMMIT)
    cursor = connection.cursor()
    cursor.execute("SET search_path = progress_%s" % kind)
    cursor.execute("SET enable_seqscan = off")
    return connection, cursor


def make_tables(kind):
    connection, cursor = connect(kind)
    schema = "progress_" + kind
    cursor.execute("SET client_min_messages = error")
    cursor.execute("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s" % (schema, schema))
    mot = kind == "mot"
    cursor.execute(TABLES % {"foreign": "FOREIGN" if mot else "", "server": "SERVER mot_server" if mot else ""})
    connection.close()


class Part:
    """What one client does in one transaction: its reads, then its writes."""

    def __init__(self, work, me, clients, number, rng):
        self.work, self.me, self.clients, self.number, self.rng = work, me, clients, number, rng

    def read(self, cursor):
        key, me, clients = 10000 * (1 + self.number), self.me, self.clients
        if self.work == "range":
            # (of a loop everybody's range is the same)
            low, high = (0, 2 ** 60) if self.number == 0 else (key, key + 999)
            cursor.execute("SELECT count(*) FROM hot WHERE id >= %d AND id <= %d AND n > 0" % (low, high))
        elif self.work == "value":
            cursor.execute("SELECT count(*) FROM hot WHERE v = 2")
        elif self.work == "absent":
            cursor.execute("SELECT v FROM hot WHERE id = %d" % (key + self.rng.randrange(3) if self.number == 0 else key))
        elif self.work == "missed":
            cursor.execute("SELECT v FROM hot WHERE id = %d" % (key + me))
        elif self.work == "skew":
            cursor.execute("SELECT n FROM hot WHERE id = %d" % (1 + me))
        else:
            self.pages = self.rng.sample(range(1, 21), 2)
            cursor.execute("SELECT id, latest FROM page WHERE id = ANY (%s)", (self.pages,))
            cursor.execute("SELECT count(*) FROM revision WHERE page = %d" % self.pages[0])

    def write(self, cursor):
        key, me, clients = 10000 * (1 + self.number), self.me, self.clients
        if self.work in ("range", "value"):
            new = key + me if self.number else self.rng.randrange(2 ** 40)
            cursor.execute("INSERT INTO hot VALUES (%d, 2, 1)" % new)
        elif self.work == "absent":
            if cursor.rowcount == 0:
                cursor.execute("INSERT INTO hot VALUES (%d, 3, 1)" % (key + self.rng.randrange(3) if self.number == 0 else key))
            elif self.number == 0:
                cursor.execute("DELETE FROM hot WHERE id BETWEEN %d AND %d" % (key, key + 2))
        elif self.work == "missed":
            new = key + (me + 1) % clients
            if self.number == 0:
                cursor.execute("DELETE FROM hot WHERE id = %d" % new)
                if cursor.rowcount > 0:
                    return
            cursor.execute("INSERT INTO hot VALUES (%d, 3, 1)" % new)
        elif self.work == "skew":
            cursor.execute("UPDATE hot SET n = n + 1 WHERE id = %d" % (1 + (me + 1) % clients))
        else:
            revision = self.rng.randrange(2 ** 40)
            steps = [
                "UPDATE author SET edits = edits + 1 WHERE id = %d" % (1 + me % 16),
                "UPDATE page SET views = views + 1 WHERE id = %d" % self.pages[1],
                "UPDATE page SET touched = %d, latest = %d WHERE id = %d" % (revision, revision, self.pages[0]),
                "INSERT INTO revision VALUES (%d, %d, %d)" % (revision, self.pages[0], me),
                "UPDATE watch SET seen = %d WHERE page = %d AND author = %d" % (revision, self.pages[0],
                                                                               self.rng.randrange(1, 17)),
                "SELECT id FROM page WHERE id = %d FOR UPDATE" % self.rng.randrange(1, 21),
            ]
            for step in self.rng.sample(steps, 4):
                cursor.execute(step)


def attempt(cursor, part, think, barrier=None):
    """The SQLSTATE of a transaction, or None if it has committed."""
    def meet():
        if barrier is not None:
            barrier.wait()

    state = None
    try:
        cursor.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        part.read(cursor)
    except psycopg2.Error as error:
        state = error.pgcode
    meet()
    if think:
        time.sleep(think)
    # (who waits for another's key in its write does not come here before that one has committed)
    if state is None:
        try:
            part.write(cursor)
            if barrier is not None and part.work not in ("absent", "wiki"):
                meet()
            cursor.execute("COMMIT")
            return None
        except psycopg2.Error as error:
            state = error.pgcode
            if barrier is not None and part.work not in ("absent", "wiki"):
                barrier.abort()
        except threading.BrokenBarrierError:
            try:
                cursor.execute("COMMIT")
                return None
            except psycopg2.Error as error:
                state = error.pgcode
    cursor.execute("ROLLBACK")
    if state not in RETRIES and state != '23505':
        raise RuntimeError("%s: SQLSTATE %s" % (part.work, state))
    return state


def rounds(options, kind, work, clients, think):
    """Is there a commit in each round?  (Each has keys of its own.)"""
    if not ROUNDS[kind]:
        make_tables(kind)
    connections = [connect(kind) for _ in range(clients)]
    without = 0
    commits = 0
    states = {}
    for _ in range(options.rounds):
        ROUNDS[kind] += 1
        number = ROUNDS[kind]
        barrier = threading.Barrier(clients)
        results = [None] * clients

        def run(me):
            part = Part(work, me, clients, number, random.Random(number * 100 + me))
            try:
                results[me] = attempt(connections[me][1], part, think * random.random(), barrier)
            except Exception as error:      # pylint: disable=broad-except
                results[me] = repr(error)
                barrier.abort()

        threads = [threading.Thread(target=run, args=(me,)) for me in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for state in results:
            states[state] = states.get(state, 0) + 1
        commits += results.count(None)
        without += results.count(None) == 0
    for connection, _ in connections:
        connection.close()
    bad = [s for s in states if s is not None and s not in ('40001', '23505')]
    print("%-5s %-7s %2d clients, %3d ms: %d rounds, %d commits, %d rounds without one%s" % (
        kind, work, clients, think * 1000, options.rounds, commits, without,
        "; " + ", ".join("%s x %s" % (states[s], s) for s in bad) if bad else ""), flush=True)
    return without == 0 and not (bad and kind == "mot")


def loops(options, kind, work, clients, think):
    make_tables(kind)
    connections = [connect(kind) for _ in range(clients)]
    commits = [0] * clients
    longest = [0] * clients
    failures = {}
    lock = threading.Lock()
    end = time.monotonic() + options.seconds

    def run(me):
        rng = random.Random(me)
        mine = {}
        inarow = 0
        while time.monotonic() < end:
            state = attempt(connections[me][1], Part(work, me, clients, 0, rng), think)
            if state is None or state == '23505':
                commits[me] += 1
                inarow = 0
            else:
                mine[state] = mine.get(state, 0) + 1
                inarow += 1
                longest[me] = max(longest[me], inarow)
        with lock:
            for state, n in mine.items():
                failures[state] = failures.get(state, 0) + n

    threads = [threading.Thread(target=run, args=(me,)) for me in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection, _ in connections:
        connection.close()
    print("%-5s %-7s %2d clients, %3d ms: %7.1f commits/s, worst client %6.1f, failed at most %d times in a row; %s" % (
        kind, work, clients, think * 1000, sum(commits) / options.seconds, min(commits) / options.seconds,
        max(longest), ", ".join("%d x %s" % (n, s) for s, n in sorted(failures.items())) or "no failures"), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--works", default="range value absent missed skew wiki")
    parser.add_argument("--clients", default="2 4 8")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--think", default="0")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--kinds", default="heap mot")
    options = parser.parse_args()
    good = True
    for work in options.works.split():
        for clients in map(int, options.clients.split()):
            for think in map(float, options.think.split()):
                for _ in range(options.turns):
                    for kind in options.kinds.split():
                        if options.seconds:
                            loops(options, kind, work, clients, think / 1000)
                        else:
                            good &= rounds(options, kind, work, clients, think / 1000)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
