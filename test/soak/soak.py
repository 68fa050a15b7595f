#!/usr/bin/python3
"""soak.py: hours of everything at once, with crashes; no commit is lost, twins
stay twins, and memory, descriptors and disk are as they were an hour ago.

    soak.py --seconds N --data DIRECTORY --log FILE --results DIRECTORY [--writers 1000]
            [--churn 500] [--threads 30] [--seed N]

Writers are connections that stay, each with rows of its own in an ordinary and
a foreign MOT table and a heap table.  A transaction does the same to all three,
and writes down here, outside the server, what was acknowledged; whoever has lost
his connection looks for that when he is back.  Churning connections come, work
on tables that all share, and go in many ways.  Beside them: DDL of all kinds,
checkpoints, long readers, cancelling and terminating, and two crashes in each
quarter of the time, in its first part; what is measured in its last two fifths is judged.
Prints TAP; a line a sample, and all that was measured in DIRECTORY/samples.json.
"""

import argparse
import collections
import json
import os
import random
import resource
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import traceback

import psycopg2
import psycopg2.extensions

IDLE = psycopg2.extensions.TRANSACTION_STATUS_IDLE
ACCOUNTS = 2000
ITEMS = 2000
WINDOW = 30                     # rows of a writer, beside his counter at k = COUNTER
COUNTER = -1000
TWINS = ("soak_ord", "soak_for", "soak_heap")
COLUMNS = "(w int, k int, n bigint NOT NULL, t text, PRIMARY KEY (w, k))"
SETUP = """
CREATE TABLE soak_ord %(c)s USING mot;
CREATE FOREIGN TABLE soak_for %(c)s SERVER mot_server;
CREATE TABLE soak_heap %(c)s USING heap WITH (fillfactor = 80);
CREATE INDEX ON soak_ord (n); CREATE INDEX ON soak_for (n); CREATE INDEX ON soak_heap (n);
CREATE TABLE soak_acc_ord (id int PRIMARY KEY, v bigint NOT NULL) USING mot;
CREATE FOREIGN TABLE soak_acc_for (id int PRIMARY KEY, v bigint NOT NULL) SERVER mot_server;
CREATE TABLE soak_acc_heap (id int PRIMARY KEY, v bigint NOT NULL) USING heap WITH (fillfactor = 50);
CREATE TABLE soak_item (id int PRIMARY KEY, t text, n int) USING mot;
CREATE INDEX ON soak_item (n);
CREATE FUNCTION soak_step(w0 int, s bigint, t0 text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE soak_ord SET n = s, t = t0 WHERE w = w0 AND k = %(k)d;
    UPDATE soak_for SET n = s, t = t0 WHERE w = w0 AND k = %(k)d;
    UPDATE soak_heap SET n = s, t = t0 WHERE w = w0 AND k = %(k)d;
    INSERT INTO soak_ord VALUES (w0, s, s, t0);
    INSERT INTO soak_for VALUES (w0, s, s, t0);
    INSERT INTO soak_heap VALUES (w0, s, s, t0);
    DELETE FROM soak_ord WHERE w = w0 AND k = s - %(window)d;
    DELETE FROM soak_for WHERE w = w0 AND k = s - %(window)d;
    DELETE FROM soak_heap WHERE w = w0 AND k = s - %(window)d;
END $$;
""" % {"c": COLUMNS, "k": COUNTER, "window": WINDOW}
PREPARE = "".join("""
PREPARE u%(i)d(int, bigint, text) AS UPDATE %(t)s SET n = $2, t = $3 WHERE w = $1 AND k = %(k)d;
PREPARE i%(i)d(int, bigint, text) AS INSERT INTO %(t)s VALUES ($1, $2, $2, $3);
PREPARE d%(i)d(int, bigint) AS DELETE FROM %(t)s WHERE w = $1 AND k = $2;
""" % {"i": i, "t": t, "k": COUNTER} for i, t in enumerate(TWINS))
# (its own bodies of all three at one moment)
TWIN_SUMS = " UNION ALL ".join(
    "SELECT count(*), sum(hashtextextended(w || ' ' || k || ' ' || n || ' ' || t, 0)) FROM %s" % t for t in TWINS)
TOTAL = "SELECT (SELECT sum(v) FROM soak_acc_ord) + (SELECT sum(v) FROM soak_acc_for) + (SELECT sum(v) FROM soak_acc_heap)"
EXPECTED = {
    "57014",                    # cancelled
    "57P01", "57P02", "57P03",  # terminated, a crash, not yet up
    "40001", "40P01", "55P03",  # conflict, deadlock, lock_timeout
    "23505",                    # two inserted one key
    "42P03",                    # a second cursor
    "25P02",                    # the transaction has failed already
    "53300",                    # too many clients
}


class Lost(Exception):
    """what must not be"""


def connect(name):
    conn = psycopg2.connect("", application_name=name)
    conn.autocommit = True
    return conn


def rows(conn, sql):
    cur = conn.cursor()
    cur.execute(sql)
    return cur.fetchall()


def run(conn, sql):
    conn.cursor().execute(sql)


def leave_transaction(conn):
    """a ROLLBACK can be cancelled, too, and leaves the transaction where it was"""
    while not conn.closed and conn.info.transaction_status != IDLE:
        try:
            run(conn, "ROLLBACK")
        except psycopg2.Error:
            pass


class Writer:
    """a connection and its page of the ledger"""

    def __init__(self, soak, w):
        self.soak = soak
        self.w = w
        self.rng = random.Random(soak.args.seed * 7919 + w)
        self.conn = None
        self.acked = 0
        self.pending = None     # COMMIT was sent, and nothing said
        self.gid = None         # ... or PREPARE TRANSACTION, or what ends it
        self.prepared = False   # and it was acknowledged
        self.epoch = -1         # when it came
        self.async_ = w % 20 == 19
        self.lock = threading.Lock()    # of who works for it

    def come(self):
        epoch = self.soak.epoch
        conn = connect("soak writer")
        run(conn, PREPARE)
        if self.async_:
            run(conn, "SET synchronous_commit = off")
        if self.w % 50 == 7:
            run(conn, "SET mot.jit_above_executions = 5; SET mot.jit_procedures = on; SET mot.jit_above_rows = 0")
        self.end_prepared(conn)
        # one who had sent COMMIT may be at it still, but that his row cannot be locked then
        found = rows(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; " + " UNION ALL ".join(
            "SELECT n, (SELECT count(*) FROM %s WHERE w = %d) FROM %s WHERE w = %d AND k = %d"
            % (t, self.w, t, self.w, COUNTER) for t in TWINS))
        run(conn, "COMMIT")
        good = {self.acked, self.acked if self.pending is None else self.pending}
        if len(found) != 3 or len(set(found)) != 1 or found[0][1] != WINDOW + 1:
            raise Lost("writer %d: twins differ: %s" % (self.w, found))
        n = found[0][0]
        if n not in good and not (self.async_ and epoch != self.epoch and n < max(good)):
            raise Lost("writer %d: has %s, acknowledged were %s" % (self.w, n, good))
        self.acked, self.pending = n, None
        self.epoch = epoch
        self.conn = conn

    def end_prepared(self, conn):
        """what was left by a crash"""
        if self.gid is None:
            return
        there = rows(conn, "SELECT count(*) FROM pg_prepared_xacts WHERE gid = '%s'" % self.gid)[0][0] == 1
        if self.prepared and not there and self.pending is None and not self.async_:
            raise Lost("writer %d: prepared transaction %s is gone" % (self.w, self.gid))
        if there:
            seq = int(self.gid.split("_")[2])
            self.pending = seq
            run(conn, "COMMIT PREPARED '%s'" % self.gid)
            self.acked, self.pending = seq, None
            self.soak.count("prepared found again")
        self.gid = None
        self.prepared = False

    def work(self):
        rng, w = self.rng, self.w
        seq = self.acked + 1
        text = "x" * (rng.randrange(10, 600) if rng.random() < 0.99 else rng.randrange(3000, 40000))
        sql = ["BEGIN ISOLATION LEVEL " + rng.choice(["READ COMMITTED"] * 3 + ["REPEATABLE READ", "SERIALIZABLE"])]
        how = rng.randrange(10)
        if how < 4:
            for i in range(3):
                sql += ["EXECUTE u%d(%d, %d, '%s')" % (i, w, seq, text), "EXECUTE i%d(%d, %d, '%s')" % (i, w, seq, text),
                        "EXECUTE d%d(%d, %d)" % (i, w, seq - WINDOW)]
        elif how < 7:
            sql.append("SELECT soak_step(%d, %d, '%s')" % (w, seq, text))
        else:
            for t in TWINS:
                sql += ["UPDATE %s SET n = %d, t = '%s' WHERE w = %d AND k = %d" % (t, seq, text, w, COUNTER),
                        "INSERT INTO %s VALUES (%d, %d, %d, '%s')" % (t, w, seq, seq, text),
                        "DELETE FROM %s WHERE w = %d AND k = %d" % (t, w, seq - WINDOW)]
        if rng.random() < 0.2:
            at = rng.randrange(1, len(sql) + 1)
            sql[at:at] = ["SAVEPOINT s"] + ["UPDATE %s SET n = -n, k = -k WHERE w = %d AND k < %d" % (t, w, seq - 5) for t in TWINS] + \
                ["ROLLBACK TO s"]
        prepare = rng.random() < 0.03
        if not prepare and rng.random() < 0.5:
            a, b = sorted(rng.sample(range(1, ACCOUNTS + 1), 2))
            t, u = rng.choice(["ord", "for", "heap"]), rng.choice(["ord", "for", "heap"])
            sql += ["UPDATE soak_acc_%s SET v = v - 1 WHERE id = %d" % (t, a), "UPDATE soak_acc_%s SET v = v + 1 WHERE id = %d" % (u, b)]
        conn = self.conn
        run(conn, "; ".join(sql))
        if rng.random() < 0.02:
            time.sleep(rng.random() * 3)
        if rng.random() < 0.05:
            run(conn, "ROLLBACK")
            return
        self.pending = seq
        if prepare:
            self.gid, self.prepared = "soak_%d_%d" % (w, seq), False
            run(conn, "PREPARE TRANSACTION '%s'" % self.gid)
            self.pending, self.prepared = None, True
            self.soak.count("prepared")
            if rng.random() < 0.3:
                time.sleep(rng.random() * 3)
            if rng.random() < 0.7:
                self.pending = seq
                run(conn, "COMMIT PREPARED '%s'" % self.gid)
                self.acked = seq
            else:
                self.prepared = False   # (it may be gone)
                run(conn, "ROLLBACK PREPARED '%s'" % self.gid)
            self.pending, self.gid, self.prepared = None, None, False
        else:
            run(conn, "COMMIT")
            self.acked, self.pending = seq, None
        self.soak.count("writers' commits")

    def step(self):
        if self.conn is None:
            self.come()
        try:
            self.work()
        except psycopg2.Error as e:
            self.soak.note(e)
            # what has come of a COMMIT that was cancelled or conflicted is told: nothing, or else only that
            # the wait was ended; asking is simplest
            leave_transaction(self.conn)
            if self.pending is not None or self.gid is not None or self.conn.closed:
                self.go()

    def go(self):
        if self.conn is not None:
            self.conn.close()
            self.conn = None


class Visitor:
    """a churning connection"""

    def __init__(self, soak, rng):
        self.soak = soak
        self.rng = rng
        self.conn = connect("soak visitor")
        self.left = rng.randint(1, 12)
        self.did = []           # in its transaction

    def work(self):
        rng, conn = self.rng, self.conn
        a, b = sorted(rng.sample(range(1, ACCOUNTS + 1), 2))
        what = rng.randrange(12)
        self.did.append((what, a, b))
        if what < 3:
            t, u = rng.choice(["ord", "for", "heap"]), rng.choice(["ord", "for", "heap"])
            run(conn, "UPDATE soak_acc_%s SET v = v - 7 WHERE id = %d; UPDATE soak_acc_%s SET v = v + 7 WHERE id = %d" % (t, a, u, b))
        elif what == 3:
            run(conn, "INSERT INTO soak_item SELECT i, repeat('y', %d), %d FROM generate_series(%d, %d) i "
                "ON CONFLICT (id) DO UPDATE SET t = EXCLUDED.t, n = soak_item.n + 1"
                % (rng.randrange(300), rng.randrange(10), a, min(b, a + 20)))
        elif what == 4:
            run(conn, "DELETE FROM soak_item WHERE id BETWEEN %d AND %d" % (a, a + 8))
        elif what == 5:
            run(conn, "SELECT * FROM soak_acc_%s WHERE id IN (%d, %d) ORDER BY id FOR %s" % (
                rng.choice(["ord", "for"]), a, b, rng.choice(["UPDATE", "SHARE", "KEY SHARE", "NO KEY UPDATE SKIP LOCKED", "UPDATE NOWAIT"])))
        elif what == 6:
            run(conn, "SAVEPOINT s; UPDATE soak_acc_ord SET v = v + 1000, id = -id WHERE id = %d; "
                "UPDATE soak_acc_for SET v = v + 1000, id = -id WHERE id = %d; ROLLBACK TO s" % (a, a))
        elif what == 7:
            run(conn, "DECLARE c CURSOR FOR SELECT * FROM soak_item ORDER BY n; FETCH 20 FROM c")
        elif what == 8:
            total = rows(conn, TOTAL)[0][0]
            if rows(conn, "SHOW transaction_isolation")[0][0] != "read committed" and total != self.soak.total:
                raise Lost("the sum is %s, and not %s" % (total, self.soak.total))
        elif what == 9:
            run(conn, "SELECT n %% 7, count(*), max(length(t)) FROM soak_item GROUP BY 1; "
                "SELECT count(*) FROM soak_ord o JOIN soak_for f USING (w, k) WHERE w = %d" % rng.randrange(self.soak.args.writers))
        elif what == 10:
            run(conn, "SELECT * FROM soak_ord WHERE n > %d ORDER BY n LIMIT 5" % rng.randrange(1000))
        else:
            run(conn, "DROP TABLE IF EXISTS soak_temp; CREATE TEMP TABLE soak_temp ON COMMIT DROP AS SELECT * FROM soak_item WHERE id < %d" % (a % 100))

    def transaction(self):
        level = self.rng.choice(["READ COMMITTED"] * 2 + ["REPEATABLE READ", "SERIALIZABLE"])
        self.did = [level]
        run(self.conn, "BEGIN ISOLATION LEVEL " + level)
        for _ in range(self.rng.randint(1, 3)):
            self.work()
            if self.rng.random() < 0.03:
                self.left = 0
                if self.rng.random() < 0.5:
                    # as a network does: nothing is said
                    with socket.socket(fileno=os.dup(self.conn.fileno())) as s:
                        s.shutdown(socket.SHUT_RDWR)
                self.conn.close()
                return
        run(self.conn, "COMMIT" if self.rng.random() < 0.9 else "ROLLBACK")
        self.soak.count("visitors' transactions")

    def step(self):
        """false: gone"""
        self.left -= 1
        try:
            self.transaction()
        except psycopg2.Error as e:
            self.soak.note(e, self.did)
            leave_transaction(self.conn)
        if self.left <= 0 or self.conn.closed:
            self.conn.close()
            return False
        return True


class Soak:
    def __init__(self, args):
        self.args = args
        self.rng = random.Random(args.seed)
        self.number = 0
        self.failed = False
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.errors = collections.Counter()
        self.problems = []
        self.samples = []
        self.crashes = []
        self.epoch = 0          # goes on before and after a crash
        self.down = False       # one is under way
        self.began = 0
        self.stopping = False
        self.total = 3 * ACCOUNTS * 1000
        self.writers = [Writer(self, w) for w in range(args.writers)]

    # what all do

    def now(self):
        return time.monotonic() - self.began

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] += n

    def note(self, e, did=""):
        code = e.pgcode or "connection"
        with self.lock:
            self.errors[code] += 1
        if e.pgcode is not None and e.pgcode not in EXPECTED:
            self.problem("%s %s %s" % (e.pgcode, str(e).strip(), did))

    def problem(self, what):
        with self.lock:
            self.problems.append((int(self.now()), what))
            n = len(self.problems)
        if n <= 50:
            print("# %6d PROBLEM %s" % (self.now(), str(what).strip()), flush=True)

    def ok(self, good, what, detail=""):
        self.number += 1
        self.failed |= not good
        print("%sok %d - %s" % ("" if good else "not ", self.number, what), flush=True)
        if not good:
            print("# " + str(detail), flush=True)

    def pause(self, seconds):
        until = self.now() + seconds
        while not self.stopping and self.now() < until:
            time.sleep(min(0.5, max(0, until - self.now())))

    def guarded(self, what):
        """a thread: until all stop, whatever becomes of the server"""
        def loop():
            while not self.stopping:
                try:
                    what()
                except psycopg2.Error as e:
                    self.note(e)
                    self.pause(0.5)
                except Lost as e:
                    self.problem("LOST: %s" % e)
                    self.pause(5)
                except Exception:
                    self.problem(traceback.format_exc())
                    self.pause(5)
        return threading.Thread(target=loop, daemon=True)

    # threads

    def write(self, writers):
        """has a part of the writers, each of whom comes back again and again"""
        rng = random.Random(writers[0].w)

        def use(writer, anew=False):
            with writer.lock:
                try:
                    if anew:
                        writer.go()
                    writer.step()
                except BaseException:
                    writer.go()
                    raise

        def some():
            use(rng.choice(writers))
        # all of them first
        todo = list(writers)

        def step():
            while todo and not self.stopping:
                use(todo[-1])
                todo.pop()
            # nobody stays away for long after a crash
            absent = [w for w in writers if w.conn is None or w.epoch != self.epoch]
            if absent:
                use(absent[0], True)
            else:
                some()
        return self.guarded(step)

    def churn(self, number, visitors):
        rng = random.Random(self.args.seed * 31 + number)
        inside = []

        def step():
            try:
                if len(inside) < visitors:
                    inside.append(Visitor(self, rng))
                    self.count("connections")
                else:
                    visitor = rng.choice(inside)
                    if not visitor.step():
                        inside.remove(visitor)
            except psycopg2.OperationalError:
                # the server is away, and with it all of them
                for v in inside:
                    v.conn.close()
                inside.clear()
                raise
        return self.guarded(step)

    def checkpoints(self):
        self.pause(self.rng.uniform(5, 60))
        conn = connect("soak checkpoints")
        try:
            run(conn, "CHECKPOINT")
            self.count("checkpoints")
        finally:
            conn.close()

    def manage(self):
        """as transaction managers do: what is prepared at SERIALIZABLE, and has lost its session, keeps others waiting"""
        conn = connect("soak manager")
        try:
            while not self.stopping:
                self.pause(1)
                for gid, in rows(conn, "SELECT gid FROM pg_prepared_xacts"):
                    writer = self.writers[int(gid.split("_")[1])]
                    # (else its own thread sees to it)
                    if writer.lock.acquire(blocking=False):
                        try:
                            writer.end_prepared(conn)
                        finally:
                            writer.lock.release()
        finally:
            conn.close()

    def disturb(self):
        conn = connect("soak disturbs")
        try:
            while not self.stopping:
                what = "cancel" if self.rng.random() < 0.7 else "terminate"
                run(conn, "SELECT pg_%s_backend(pid) FROM pg_stat_activity WHERE application_name IN ('soak writer', 'soak visitor') "
                    "AND state <> 'idle' ORDER BY random() LIMIT 1" % what)
                self.count(what)
                self.pause(self.rng.uniform(0, 4))
        finally:
            conn.close()

    def twins(self, conn, what):
        """in one snapshot"""
        run(conn, "SET statement_timeout = 0; BEGIN ISOLATION LEVEL REPEATABLE READ")
        sums = rows(conn, TWIN_SUMS)
        total = rows(conn, TOTAL)[0][0]
        if len(set(sums)) != 1 or sums[0][0] != self.args.writers * (WINDOW + 1):
            raise Lost("%s: twins differ: %s" % (what, sums))
        if total != self.total:
            raise Lost("%s: the sum is %s, and not %s" % (what, total, self.total))
        return sums

    def read_long(self):
        conn = connect("soak reader")
        try:
            sums = self.twins(conn, "a long reader")
            self.pause(self.rng.uniform(0.2, 1) * min(240, self.args.seconds / 12))
            again = rows(conn, TWIN_SUMS)
            if again != sums:
                raise Lost("a long reader sees %s, and then %s" % (sums, again))
            run(conn, "COMMIT")
            self.count("long readers")
        finally:
            conn.close()

    def read_twins(self):
        self.pause(20)
        conn = connect("soak compares")
        try:
            self.twins(conn, "a snapshot")
            run(conn, "COMMIT")
            self.count("comparisons")
        finally:
            conn.close()

    def define(self):
        """DDL, on tables of its own in three kinds, and on everybody's"""
        rng = self.rng
        conn = connect("soak defines")
        try:
            run(conn, "SET lock_timeout = '3s'; SET statement_timeout = '60s'; SET client_min_messages = warning")
            if rng.random() < 0.25:
                t = rng.choice(["soak_ord", "soak_for", "soak_item", "soak_acc_ord"])
                column = "v" if "acc" in t else "n"
                try:
                    # (of foreign tables on columns only)
                    on = [column] + ([] if t == "soak_for" else ["(%s %% 10)" % column, column + " DESC) WHERE (%s %% 3 = 0" % column])
                    run(conn, "DROP INDEX IF EXISTS soak_more")
                    run(conn, "CREATE INDEX %s soak_more ON %s (%s)" % ("CONCURRENTLY" if rng.random() < 0.5 else "", t, rng.choice(on)))
                except psycopg2.Error as e:
                    self.note(e)
                self.pause(rng.uniform(0, 3))
                run(conn, "DROP INDEX IF EXISTS soak_more")
                if t != "soak_for" and rng.random() < 0.2:
                    run(conn, "REINDEX TABLE " + t)
                self.count("DDL")
                return
            run(conn, "DROP FOREIGN TABLE IF EXISTS soak_f; DROP TABLE IF EXISTS soak_o, soak_o2, soak_h, soak_p")
            run(conn, "CREATE FOREIGN TABLE soak_f (id int PRIMARY KEY, v int, t text) SERVER mot_server; "
                "CREATE TABLE soak_o (id int PRIMARY KEY, v int, t text) USING mot; "
                "CREATE TABLE soak_h (id int PRIMARY KEY, v int, t text) USING heap")
            size = rng.choice([10, 1000, 20000])

            def each(sql):
                for t in ("soak_f", "soak_o", "soak_h"):
                    run(conn, sql.replace("TABLE @", "FOREIGN TABLE @" if t == "soak_f" else "TABLE @").replace("@", t))

            def same(what):
                found = rows(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; " + " UNION ALL ".join(
                    "SELECT count(*), sum(hashtextextended(x::text, 0)) FROM %s x" % t for t in ("soak_f", "soak_o", "soak_h")))
                run(conn, "COMMIT")
                if len(set(found)) != 1:
                    raise Lost("DDL: twins differ after %s: %s" % (what, found))
            each("INSERT INTO @ SELECT i, i %% 100, repeat('t', i %% 50) FROM generate_series(1, %d) i" % size)
            for _ in range(rng.randint(2, 8)):
                what = rng.choice([
                    "ALTER TABLE @ ADD COLUMN c%d int DEFAULT 5" % rng.randrange(10**6),
                    "ALTER TABLE @ ADD COLUMN d%d text" % rng.randrange(10**6),
                    "ALTER TABLE @ ALTER COLUMN v TYPE bigint",
                    "ALTER TABLE @ ALTER COLUMN v TYPE int",
                    "CREATE INDEX ON @ (v)", "CREATE INDEX ON @ (t, v)",
                    "UPDATE @ SET v = v + 1 WHERE id % 3 = 0", "DELETE FROM @ WHERE id % 5 = 0",
                    "INSERT INTO @ (id, v) SELECT max(id) + 1, 1 FROM @ HAVING max(id) IS NOT NULL",
                    "TRUNCATE @", "BEGIN; TRUNCATE @; ROLLBACK", "BEGIN; DROP TABLE @; ROLLBACK", "ANALYZE @",
                    "BEGIN; ALTER TABLE @ ADD COLUMN e int DEFAULT 1; INSERT INTO @ (id, v) VALUES (-1, 1); ROLLBACK"])
                each(what)
                same(what)
            what = rng.randrange(5)
            if what == 0:
                run(conn, "ALTER TABLE soak_o SET ACCESS METHOD heap; ALTER TABLE soak_h SET ACCESS METHOD mot")
            elif what == 1:
                run(conn, "CREATE TABLE soak_o2 USING mot AS TABLE soak_o")
            elif what == 2:
                run(conn, "REINDEX TABLE soak_o")
                run(conn, "VACUUM FULL soak_o")
            elif what == 3:
                run(conn, "CREATE TABLE soak_p (LIKE soak_o) PARTITION BY HASH (id); "
                    "CREATE TABLE soak_p0 PARTITION OF soak_p FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING mot; "
                    "CREATE TABLE soak_p1 PARTITION OF soak_p FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING heap; "
                    "INSERT INTO soak_p TABLE soak_o")
            same("the last")
            self.pause(rng.uniform(0, 6))
            run(conn, "DROP FOREIGN TABLE soak_f; DROP TABLE IF EXISTS soak_o, soak_o2, soak_h, soak_p")
            self.count("DDL")
        finally:
            conn.close()

    # crashes

    def children(self):
        """the server's processes: pid, title"""
        postmaster = self.postmaster()
        found = []
        for pid in os.listdir("/proc"):
            if not pid.isdigit():
                continue
            try:
                with open("/proc/%s/stat" % pid) as f:
                    if int(f.read().rsplit(")", 1)[1].split()[1]) != postmaster:
                        continue
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    found.append((int(pid), f.read().replace(b"\0", b" ").decode(errors="replace").strip()))
            except (OSError, IndexError):
                pass
        return found

    def postmaster(self):
        with open(os.path.join(self.args.data, "postmaster.pid")) as f:
            return int(f.readline())

    def pg_ctl(self, *what):
        return subprocess.run(["pg_ctl", "-s", "-w", "-t", "300", "-D", self.args.data, "-l", self.args.log] + list(what),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def crash(self, kind):
        with self.lock:
            self.down = True
            self.epoch += 1
        began = time.monotonic()
        while True:
            try:
                victim = self.postmaster()
                if kind in ("backend", "worker"):
                    victim, title = self.rng.choice([c for c in self.children() if ("[local]" in c[1]) == (kind == "backend")])
                    if kind == "worker":
                        kind += " (%s)" % title.replace("postgres: ", "")
                if kind in ("immediate", "fast"):
                    self.pg_ctl("-m", kind, "stop")
                else:
                    os.kill(victim, signal.SIGKILL)
                break
            except (ProcessLookupError, IndexError):
                # (it has gone by itself)
                kind = kind.split(" ")[0]
        if kind in ("immediate", "fast", "postmaster"):
            # (while processes of the one before are there it refuses)
            while self.pg_ctl("start") != 0 and time.monotonic() < began + 300:
                time.sleep(1)
        conn = None
        while conn is None:
            try:
                time.sleep(0.5)
                conn = connect("soak crashes")
                rows(conn, "SELECT count(*) FROM soak_ord")
            except psycopg2.Error:
                conn = None
                if time.monotonic() > began + 600:
                    raise Lost("the server does not come up after %s" % kind)
        seconds = time.monotonic() - began
        self.crashes.append({"at": round(self.now()), "kind": kind, "seconds": round(seconds, 1)})
        print("# %6d crash %d: %s, up and loaded after %.1f s" % (self.now(), len(self.crashes), kind, seconds), flush=True)
        with self.lock:
            self.down = False
            self.epoch += 1
        conn.close()

    def kill(self):
        """two in each quarter, at a tenth and a quarter of it"""
        kinds = ["backend", "postmaster", "worker", "immediate", "postmaster", "backend", "fast", "backend"]
        while not self.stopping:
            n = len(self.crashes)
            if n >= len(kinds):
                self.pause(1)
                continue
            self.pause((n // 2 + (0.1, 0.25)[n % 2]) * self.args.seconds / 4 - self.now())
            if not self.stopping:
                self.crash(kinds[n])

    def quiet(self, at):
        """in the last part of a quarter, when all are back for a while"""
        return at / (self.args.seconds / 4) % 1 > 0.6

    # measuring

    def processes(self):
        """the background, and a hundred backends that stand for all: the kernel walks each one's pages"""
        children = self.children()
        backends = [c for c in children if "[local]" in c[1]]
        looked = random.sample(backends, min(100, len(backends)))
        found = []
        for pid, title in looked + [c for c in children if "[local]" not in c[1]] + [(self.postmaster(), "postmaster")]:
            try:
                with open("/proc/%d/smaps_rollup" % pid) as f:
                    m = {line.split(":")[0]: int(line.split()[1]) for line in f if line.rstrip().endswith("kB")}
                found.append({"pid": pid, "title": title, "pss": m["Pss"], "anon": m["Pss_Anon"], "shmem": m["Pss_Shmem"],
                              "fds": len(os.listdir("/proc/%d/fd" % pid)), "weight": len(backends) / len(looked) if "[local]" in title else 1})
            except (OSError, KeyError):
                pass
        return found, len(backends)

    def disk(self):
        sizes = collections.Counter()
        for directory, _, files in os.walk(self.args.data):
            top = os.path.relpath(directory, self.args.data).split(os.sep)[0]
            for name in files:
                try:
                    s = os.lstat(os.path.join(directory, name)).st_blocks * 512
                except OSError:
                    continue
                sizes["total"] += s
                sizes["files"] += 1
                if top in ("pg_wal", "mot", "base"):
                    sizes[top] += s
                    sizes[top + "_files"] += 1
        return dict(sizes)

    def sample(self):
        if self.down:
            return
        epoch = self.epoch
        try:
            conn = connect("soak samples")
            cur = conn.cursor()
            cur.execute("SELECT to_jsonb(m) FROM mot_stat_memory m")
            memory = cur.fetchone()[0]
            cur.execute("SELECT to_jsonb(m) - 'last_error' FROM mot_stat_checkpoint m")
            checkpoint = cur.fetchone()[0]
            cur.execute("SELECT last_error FROM mot_stat_checkpoint")
            error = cur.fetchone()[0]
            cur.execute("SELECT application_name, count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' GROUP BY 1")
            clients = dict(cur.fetchall())
            cur.execute("SELECT pid, extract(epoch FROM now() - xact_start)::int, state, wait_event, left(query, 80) FROM pg_stat_activity "
                        "WHERE application_name IN ('soak writer', 'soak visitor') AND state <> 'idle' AND xact_start < now() - interval '5 min'")
            stuck = cur.fetchall()
            cur.execute("SELECT relname, rows, row_bytes, index_bytes FROM mot_stat_tables ORDER BY 1")
            tables = cur.fetchall()
            cur.execute("SELECT coalesce(max(kept_bytes), 0) FROM mot_stat_snapshots")
            kept = cur.fetchone()[0]
            conn.close()
        except psycopg2.Error as e:
            self.note(e)
            return
        if error is not None:
            self.problem("a checkpoint failed: %s" % error)
        if stuck:
            self.problem("stuck: %s" % stuck)
        procs, clients_there = self.processes()
        backends = [p for p in procs if "[local]" in p["title"]]
        others = [p for p in procs if "[local]" not in p["title"] and "autovacuum worker" not in p["title"] and "parallel" not in p["title"]]
        if not backends or epoch != self.epoch:
            return
        s = {
            "at": round(self.now()), "commits": self.counts["writers' commits"], "visits": self.counts["connections"],
            "writers": clients.get("soak writer", 0), "visitors": clients.get("soak visitor", 0),
            "clients": clients_there, "memory": memory, "checkpoint": checkpoint, "kept": int(kept), "tables": tables,
            "disk": self.disk(), "pss_mb": sum(p["pss"] * p["weight"] for p in procs) / 1024, "shared_mb": sum(p["shmem"] * p["weight"] for p in procs) / 1024,
            "private_kb_each": sum(p["anon"] for p in backends) / len(backends),
            "private_kb_most": max(p["anon"] for p in backends),
            "background_mb": sum(p["anon"] for p in others) / 1024,
            "background": {p["title"].replace("postgres: ", ""): [p["anon"], p["fds"]] for p in others},
            "postmaster_kb": procs[-1]["anon"], "postmaster_fds": procs[-1]["fds"],
            "background_fds": sum(p["fds"] for p in others), "fds_each": statistics.mean(p["fds"] for p in backends),
            "load": os.getloadavg()[0],
        }
        self.samples.append(s)
        print("# %6d commits %d (waits %s) visits %d | clients %d+%d | engine %.1f MB used, %s retired | shared %.0f private %.2f a client, "
              "background %.1f MB | fds postmaster %d background %d client %.1f | disk %.0f (wal %.0f mot %.0f base %.0f) files %d | load %.1f"
              % (s["at"], s["commits"], self.errors["40001"], s["visits"], s["writers"], s["visitors"], memory["used_bytes"] / 2**20,
                 memory["retired_objects"], s["shared_mb"], s["private_kb_each"] / 1024, s["background_mb"], s["postmaster_fds"],
                 s["background_fds"], s["fds_each"], s["disk"]["total"] / 2**20, s["disk"].get("pg_wal", 0) / 2**20,
                 s["disk"].get("mot", 0) / 2**20, s["disk"].get("base", 0) / 2**20, s["disk"]["files"], s["load"]), flush=True)
        with open(os.path.join(self.args.results, "samples.json"), "w") as f:
            json.dump({"samples": self.samples, "crashes": self.crashes, "counts": self.counts, "errors": self.errors,
                       "problems": self.problems}, f)

    # all of it

    def set_up(self):
        conn = connect("soak")
        run(conn, SETUP)
        for t in TWINS:
            run(conn, "INSERT INTO %s SELECT w, k, 0, repeat('x', 300) FROM generate_series(0, %d) w, generate_series(%d, 0) k"
                % (t, self.args.writers - 1, 1 - WINDOW))
            run(conn, "INSERT INTO %s SELECT w, %d, 0, 'x' FROM generate_series(0, %d) w" % (t, COUNTER, self.args.writers - 1))
        for t in ("ord", "for", "heap"):
            run(conn, "INSERT INTO soak_acc_%s SELECT i, 1000 FROM generate_series(1, %d) i" % (t, ACCOUNTS))
        run(conn, "INSERT INTO soak_item SELECT i, repeat('x', i %% 100), i %% 10 FROM generate_series(1, %d) i" % ITEMS)
        conn.close()

    def go(self):
        self.set_up()
        self.began = time.monotonic()
        n = self.args.threads
        threads = [self.write(self.writers[i::n]) for i in range(n)]
        threads += [self.churn(i, self.args.churn // n) for i in range(n)]
        threads += [self.guarded(f) for f in (self.checkpoints, self.disturb, self.manage, self.read_long, self.read_twins, self.define, self.kill)]
        for t in threads:
            t.start()
        every = min(60, self.args.seconds / 40)
        next_ = every
        while self.now() < self.args.seconds:
            time.sleep(min(1, max(0.01, next_ - self.now())))
            if self.now() >= next_:
                next_ = max(next_ + every, self.now() + every / 2)
                try:
                    self.sample()
                except Exception:
                    self.problem(traceback.format_exc())
        self.stopping = True
        for t in threads:
            t.join(120)
        alive = [t for t in threads if t.is_alive()]
        self.ok(not alive, "all threads ended", "%d are stuck" % len(alive))
        if not alive:
            self.last_words()
        self.judge()
        print("1..%d" % self.number)
        sys.exit(1 if self.failed else 0)

    def last_words(self):
        """one crash more, and then everybody looks"""
        self.crash("immediate")
        missing = []
        for w in self.writers:
            w.go()
            try:
                w.come()
            except Lost as e:
                missing.append(str(e))
            except psycopg2.Error as e:
                missing.append("writer %d: %s" % (w.w, e))
            w.go()
        self.ok(not missing, "%d writers find all that was acknowledged" % len(self.writers), missing[:10])
        conn = connect("soak")
        try:
            self.twins(conn, "the end")
            run(conn, "COMMIT")
            self.ok(True, "twins are twins")
        except Lost as e:
            self.ok(False, "twins are twins", e)
            run(conn, "ROLLBACK")
        found = rows(conn, "SELECT t, v.object::text, v.first_problem FROM unnest(ARRAY['soak_ord', 'soak_for', 'soak_acc_ord', "
                     "'soak_acc_for', 'soak_item']::regclass[]) t, mot_verify(t) v WHERE v.problems <> 0")
        self.ok(not found, "tables and indexes agree", found)
        found = rows(conn, "SELECT gid FROM pg_prepared_xacts")
        self.ok(not found, "no prepared transaction is left", found)
        # rows that the tables have, and nothing else
        run(conn, "DROP FOREIGN TABLE IF EXISTS soak_f; DROP TABLE IF EXISTS soak_o, soak_o2, soak_h, soak_p")
        for _ in range(60):
            memory = rows(conn, "SELECT retired_objects FROM mot_stat_memory")[0][0]
            if memory == 0:
                break
            time.sleep(0.5)
        self.ok(memory == 0, "nothing waits for reclamation", memory)

    def judge(self):
        """the second half beside the first, in times of measuring; the first of these is the warm-up"""
        self.ok(not self.problems, "nothing happened that must not", "%d problems: %s" % (len(self.problems), self.problems[:5]))
        quiet = [s for s in self.samples if self.quiet(s["at"])]
        half = self.args.seconds / 2
        first = [s for s in quiet if s["at"] < half]
        second = [s for s in quiet if s["at"] >= half]
        self.ok(len(first) > 2 and len(second) > 2, "%d samples of each half" % min(len(first), len(second)))
        self.table()
        if not first or not second:
            return
        # Tolerances.  What is in memory changes with what DDL has made at the moment (20,000 rows a table), and
        # what the long reader keeps; private memory with how old backends are; heap's files with what
        # autovacuum has got to; pg_wal goes up to max_wal_size, and the files of a checkpoint are
        # there twice while one is written.
        for what, get, factor, more in (
                ("the engine's memory, MB", lambda s: (s["memory"]["used_bytes"] - s["kept"]) / 2**20, 1.10, 8),
                ("shared memory, MB", lambda s: s["shared_mb"], 1.10, 16),
                ("private memory of a client, kB", lambda s: s["private_kb_each"], 1.05, 100),
                ("private memory of the background, MB", lambda s: s["background_mb"], 1.10, 4),
                ("private memory of the postmaster, kB", lambda s: s["postmaster_kb"], 1.05, 200),
                ("descriptors of the postmaster", lambda s: s["postmaster_fds"], 1, 2),
                ("descriptors of the background", lambda s: s["background_fds"], 1.1, 6),
                ("descriptors of a client", lambda s: s["fds_each"], 1.1, 1),
                ("disk but pg_wal, MB", lambda s: (s["disk"]["total"] - s["disk"].get("pg_wal", 0)) / 2**20, 1.10, 32),
                ("pg_wal, MB", lambda s: s["disk"].get("pg_wal", 0) / 2**20, 1.10, 128),
                ("files", lambda s: s["disk"]["files"], 1.05, 60)):
            a, b = statistics.median(map(get, first)), statistics.median(map(get, second))
            self.ok(b <= a * factor + more, "%s: %.1f, then %.1f (most: * %.2f + %d)" % (what, a, b, factor, more))

    def table(self):
        print("# minutes   commits  visits clients  engine  shared  private/client background  fds: pm  bg  client   disk   wal   mot  files")
        part = self.args.seconds / 8
        for i in range(8):
            in_it = [s for s in self.samples if i * part <= s["at"] < (i + 1) * part]
            if not in_it:
                continue
            m = lambda get: statistics.median(map(get, in_it))
            print("# %3d-%3d %10d %7d %7d %7.1f %7.0f %11.2f MB %7.1f MB %7d %4d %6.1f %7.0f %5.0f %5.0f %6d" % (
                i * part / 60, (i + 1) * part / 60, in_it[-1]["commits"], in_it[-1]["visits"], m(lambda s: s["clients"]),
                m(lambda s: s["memory"]["used_bytes"]) / 2**20, m(lambda s: s["shared_mb"]), m(lambda s: s["private_kb_each"]) / 1024,
                m(lambda s: s["background_mb"]), m(lambda s: s["postmaster_fds"]), m(lambda s: s["background_fds"]),
                m(lambda s: s["fds_each"]), m(lambda s: s["disk"]["total"]) / 2**20, m(lambda s: s["disk"].get("pg_wal", 0)) / 2**20,
                m(lambda s: s["disk"].get("mot", 0)) / 2**20, m(lambda s: s["disk"]["files"])))
        for c in self.crashes:
            print("# crash at %(at)d s: %(kind)s, up after %(seconds)s s" % c)
        print("# %s" % dict(self.counts))
        print("# errors: %s" % dict(self.errors), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--writers", type=int, default=1000)
    parser.add_argument("--churn", type=int, default=500)
    parser.add_argument("--threads", type=int, default=30)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    args = parser.parse_args()
    print("# seed %d" % args.seed, flush=True)
    threading.stack_size(512 * 1024)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    Soak(args).go()


main()
