#!/usr/bin/python3
"""churn.py: many clients come, work and go, and are cancelled and terminated
at any moment; afterwards nothing of them is left.

    churn.py [--clients N] [--seconds N] [--seed N]    (the connection is libpq's)

Clients connect, run a few transactions on two memory-optimized tables and a
heap table (transfers that keep a sum, upserts, deletes, row locks, savepoints,
cursors, scans, all isolation levels, now and then DDL), and leave: properly, or
in the middle of a transaction.  Meanwhile one connection cancels and
terminates them at random.  Then, with all of them gone, the sum is right, no
row is locked, tables and indexes agree, every key can be taken again, nothing
waits for reclamation, and the memory is what it was before.  Prints TAP.
"""

import argparse
import random
import sys
import threading
import time

import psycopg2
import psycopg2.extensions

ACCOUNTS = 200
ITEMS = 300
EXPECTED = {
    "57014",                    # cancelled
    "57P01",                    # terminated
    "40001", "40P01", "55P03",  # conflict, deadlock, NOWAIT
    "23505",                    # two inserted one key
    "42P01", "42P07",           # somebody's DDL
    "42P03",                    # a second cursor
    "53300", "57P03",           # too many clients
}
TABLES = """
CREATE FOREIGN TABLE churn_account (id int PRIMARY KEY, v int NOT NULL, u int UNIQUE) SERVER mot_server;
CREATE FOREIGN TABLE churn_item (id int PRIMARY KEY, t text, n int) SERVER mot_server;
CREATE INDEX ON churn_item (n);
CREATE TABLE churn_heap (id int PRIMARY KEY, v int NOT NULL);
"""
FILL = """
INSERT INTO churn_account SELECT i, 100, i FROM generate_series(1, %d) i;
INSERT INTO churn_heap SELECT i, 100 FROM generate_series(1, %d) i;
INSERT INTO churn_item SELECT i, repeat('x', i %% 100), i %% 10 FROM generate_series(1, %d) i;
""" % (ACCOUNTS, ACCOUNTS, ITEMS)
DROP = """
DROP FOREIGN TABLE IF EXISTS churn_account, churn_item;
DROP TABLE IF EXISTS churn_heap;
"""


class Client(threading.Thread):
    def __init__(self, run, number):
        super().__init__()
        self.run_ = run
        self.number = number
        self.rng = random.Random(run.args.seed * 1000 + number)
        self.done = 0
        self.errors = {}
        self.problem = None

    def work(self, cur):
        rng = self.rng
        a, b = sorted(rng.sample(range(1, ACCOUNTS + 1), 2))
        what = rng.randrange(11)
        if what < 3:
            cur.execute("UPDATE churn_account SET v = v - 1 WHERE id = %d" % a)
            if rng.random() < 0.3:
                cur.execute("UPDATE churn_heap SET v = v + 1 WHERE id = %d" % b)
            else:
                cur.execute("UPDATE churn_account SET v = v + 1 WHERE id = %d" % b)
        elif what == 3:
            cur.execute("INSERT INTO churn_item SELECT i, repeat('y', %d), %d FROM generate_series(%d, %d) i "
                        "ON CONFLICT (id) DO UPDATE SET t = EXCLUDED.t, n = churn_item.n + 1"
                        % (rng.randrange(200), rng.randrange(10), a, min(b, a + 10)))
        elif what == 4:
            cur.execute("DELETE FROM churn_item WHERE id BETWEEN %d AND %d" % (a, a + 3))
        elif what == 5:
            cur.execute("SELECT * FROM churn_account WHERE id IN (%d, %d) ORDER BY id FOR %s" % (a, b, rng.choice(
                ["UPDATE", "SHARE", "KEY SHARE", "NO KEY UPDATE SKIP LOCKED", "UPDATE NOWAIT"])))
        elif what == 6:
            cur.execute("SAVEPOINT s")
            cur.execute("UPDATE churn_account SET v = v + 1000, u = -u WHERE id = %d" % a)
            cur.execute("ROLLBACK TO s")
        elif what == 7:
            cur.execute("UPDATE churn_account SET u = %d WHERE id = %d AND u IS NOT NULL" % (1000 + rng.randrange(300), a))
        elif what == 8:
            cur.execute("DECLARE c CURSOR FOR SELECT * FROM churn_item ORDER BY n")
            cur.execute("FETCH 20 FROM c")
        elif what == 9:
            cur.execute("SELECT sum(v) FROM churn_account")
        elif rng.random() < 0.2:
            cur.execute("CREATE FOREIGN TABLE churn_of_%d (id int PRIMARY KEY, t text) SERVER mot_server" % self.number)
            cur.execute("INSERT INTO churn_of_%d SELECT i, 'z' FROM generate_series(1, 500) i" % self.number)
            cur.execute("DROP FOREIGN TABLE churn_of_%d" % self.number)

    def transaction(self, conn):
        cur = conn.cursor()
        cur.execute("BEGIN ISOLATION LEVEL " + self.rng.choice(
            ["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]))
        for _ in range(self.rng.randint(1, 3)):
            self.work(cur)
            if self.rng.random() < 0.03:
                conn.close()    # with the transaction open
                return
        cur.execute("COMMIT" if self.rng.random() < 0.9 else "ROLLBACK")
        self.done += 1

    def visit(self):
        conn = psycopg2.connect("", application_name="churn")
        conn.autocommit = True
        for _ in range(self.rng.randint(1, 40)):
            if conn.closed or time.monotonic() > self.run_.until:
                break
            try:
                self.transaction(conn)
            except psycopg2.Error as e:
                self.note(e)
                # a ROLLBACK can be cancelled, too, and leaves the transaction where it was
                while not conn.closed and conn.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE:
                    try:
                        conn.cursor().execute("ROLLBACK")
                    except psycopg2.Error as again:
                        self.note(again)
        conn.close()

    def note(self, e):
        code = e.pgcode or "connection"
        self.errors[code] = self.errors.get(code, 0) + 1
        # a lost connection has no code
        if e.pgcode is not None and e.pgcode not in EXPECTED:
            self.problem = "%s %s" % (e.pgcode, e)

    def run(self):
        while time.monotonic() < self.run_.until and self.problem is None:
            try:
                self.visit()
            except psycopg2.Error as e:
                self.note(e)
                time.sleep(0.01)


class Run:
    def __init__(self, args):
        self.args = args
        self.until = 0
        self.number = 0
        self.failed = False
        self.conn = psycopg2.connect("")
        self.conn.autocommit = True
        self.cur = self.conn.cursor()

    def ok(self, good, what, detail=""):
        self.number += 1
        self.failed |= not good
        print("%sok %d - %s" % ("" if good else "not ", self.number, what), flush=True)
        if not good:
            print("# " + str(detail))

    def get(self, sql):
        self.cur.execute(sql)
        return self.cur.fetchone()[0]

    def all_gone(self):
        for _ in range(1800):
            if self.get("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'churn'") == 0:
                return True
            time.sleep(0.1)
        return False

    def memory(self, most=0):
        """what is used, and what is still owed, when reclamation has caught up; a maintenance worker does it"""
        memory = None
        for _ in range(600):
            last = memory
            self.cur.execute("SELECT used_bytes, engine_bytes, retired_objects FROM mot_stat_memory")
            memory = self.cur.fetchone()
            if memory[2] == 0 and (memory[0] <= most or (most == 0 and memory == last)):
                break
            time.sleep(0.3)
        return memory

    def disturb(self):
        """until the time is up: cancel and terminate"""
        rng = random.Random(self.args.seed)
        counts = {"cancel": 0, "terminate": 0}
        while time.monotonic() < self.until:
            what = "cancel" if rng.random() < 0.7 else "terminate"
            self.cur.execute("SELECT pg_%s_backend(pid) FROM pg_stat_activity "
                             "WHERE application_name = 'churn' AND state <> 'idle' ORDER BY random() LIMIT %d"
                             % (what, rng.randint(1, 3)))
            counts[what] += len(self.cur.fetchall())
            time.sleep(rng.random() * 0.02)
        return counts

    def round(self, seconds, disturbed):
        self.cur.execute(TABLES + FILL)
        self.until = time.monotonic() + seconds
        clients = [Client(self, n) for n in range(self.args.clients)]
        for c in clients:
            c.start()
        counts = self.disturb() if disturbed else {}
        for c in clients:
            c.join()
        problems = {c.problem for c in clients if c.problem}
        errors = {}
        for c in clients:
            for code, n in c.errors.items():
                errors[code] = errors.get(code, 0) + n
        print("# %d transactions; disturbed: %s; errors: %s" % (sum(c.done for c in clients), counts, errors))
        self.ok(not problems, "%d clients met no error that is not to be expected" % len(clients), problems)
        self.ok(self.all_gone(), "all of them are gone")

    def check(self):
        total = "(SELECT sum(v) FROM churn_account) + (SELECT sum(v) FROM churn_heap)"
        self.ok(self.get("SELECT " + total) == 2 * ACCOUNTS * 100, "the sum is right", self.get("SELECT " + total))
        try:
            self.cur.execute("BEGIN; SELECT * FROM churn_account FOR UPDATE NOWAIT; "
                             "SELECT * FROM churn_item FOR UPDATE NOWAIT; ROLLBACK")
            self.ok(True, "no row is locked")
        except psycopg2.Error as e:
            self.ok(False, "no row is locked", e)
            self.cur.execute("ROLLBACK")
        self.cur.execute("SELECT t::text, v.object::text, v.first_problem FROM unnest("
                         "ARRAY['churn_account', 'churn_item']::regclass[]) t, mot_verify(t) v WHERE v.problems <> 0")
        self.ok(self.cur.rowcount == 0, "tables and indexes agree", self.cur.fetchall())
        self.cur.execute("SELECT relname FROM pg_class WHERE relname LIKE 'churn_of%' AND relkind = 'f'")
        left = self.cur.fetchall()
        self.ok(not left, "no table of a client is left", left)
        self.cur.execute("DELETE FROM churn_account; DELETE FROM churn_item; DELETE FROM churn_heap; " + FILL)
        self.ok(self.get("SELECT count(*) FROM churn_account") == ACCOUNTS, "every key can be taken again")
        memory = self.memory()
        self.ok(memory[2] == 0, "nothing waits for reclamation", memory)
        stale = self.get("SELECT coalesce(sum(stale_entries), 0) FROM mot_stat_indexes WHERE relname LIKE 'churn%'")
        self.ok(stale == 0, "no index has stale entries", stale)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    args = parser.parse_args()
    print("# seed %d" % args.seed)
    run = Run(args)
    run.cur.execute(DROP)

    # what a slot keeps for its next owner is there after everybody came once
    run.round(min(3, args.seconds), False)
    run.cur.execute(DROP)
    before = run.memory()

    run.round(args.seconds, True)
    run.check()
    run.cur.execute(DROP)
    # a slot's magazines of free objects (src/engine/memory/cache.c) fill to a few KB, as often as all clients wait at once
    most = before[0] + (512 << 10) + args.clients * (8 << 10)
    after = run.memory(most)
    print("# memory before and after, bytes: %s, %s; engine's own: %s, %s" % (before[0], after[0], before[1], after[1]))
    run.ok(after[0] <= most, "the memory is what it was before", (before, after))
    locks = run.get("SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid() AND pid NOT IN "
                    "(SELECT pid FROM pg_stat_activity)")
    run.ok(locks == 0, "nobody who is gone holds a lock of the server", locks)
    print("1..%d" % run.number)
    sys.exit(1 if run.failed else 0)


main()
