#!/usr/bin/python3
"""workload.py: run clients against a server and record what they saw.

    workload.py --level rc|rr|ser --place heap|table|foreign|mixed [options] FILE

The connection is libpq's (PGHOST, PGPORT, ...).  Clients run transactions of
one to five operations on a few keys that all of them use: appends to lists,
writes to registers (rows that count their versions), rows added to sets, and
reads of all three, singly and several keys at once, with row locks, with
savepoints that are rolled back, and some transactions that end in ROLLBACK.
Keys that have grown are replaced by new ones.  At the end everything is read
once more.  checker.py says what FILE means, and whether it may be so.

table and foreign: memory-optimized tables of one kind.  mixed: keys with even
numbers are in heap tables, the others by turns in memory-optimized ones of
both kinds.

Options: --seconds N, --clients N, --seed N
    --standby DSN   two more clients that only read, there
    --crash kill|immediate|server|any   now and then kill -9 a backend, so that
                    the server starts its processes anew; or stop the server
                    that way; or kill -9 all of it (PGDATA names its directory,
                    CLUSTER_LOG its log, pg_ctl is in the PATH)
    --async         synchronous_commit = off: what was acknowledged may be lost
    --stall         most commits of every third client wait for a standby that is not
                    there, until somebody cancels that, while the others go on beside
                    them with short transactions; fewer keys
    --prepare       half of the transactions end in PREPARE TRANSACTION, and a little later in
                    COMMIT PREPARED or ROLLBACK PREPARED; who finds one of his own after a
                    crash commits it
    --procedures    most operations on one key are functions in PL/pgSQL, which are machine code
    --failover DSN  halfway the server is stopped at once, the standby in
                    STANDBY_DATA is promoted, and all goes on there

With --async or --failover there are no registers: the numbers of lost
versions would be given again.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import psycopg2

LEVELS = {"rc": "READ COMMITTED", "rr": "REPEATABLE READ", "ser": "SERIALIZABLE"}
ACTIVE = 4                      # keys of each kind in use at a time
GROWN = 40                      # changes after which a key is replaced
RETRY = ("40001", "40P01")

LOCKS = ["FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE"]

SCHEMA = "".join("""
CREATE {0} TABLE history_list_{1} (k int PRIMARY KEY, v int[]) {2};
CREATE {0} TABLE history_register_{1} (k int PRIMARY KEY, v int, version int) {2};
CREATE {0} TABLE history_set_{1} (k int, v int, PRIMARY KEY (k, v)) {2};
""".format(*place) for place in (("", "heap", "USING heap"), ("", "table", "USING mot"), ("FOREIGN", "foreign", "SERVER mot_server")))
SCHEMA += "".join("""
CREATE VIEW history_{0} AS SELECT * FROM history_{0}_heap UNION ALL SELECT * FROM history_{0}_table UNION ALL SELECT * FROM history_{0}_foreign;
""".format(kind) for kind in ("list", "register", "set"))
FUNCTIONS = "".join("""
CREATE FUNCTION history_append_{0}(key int, value int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    UPDATE history_list_{0} SET v = v || value WHERE k = key;
    RETURN FOUND;
END $$;
CREATE FUNCTION history_write_{0}(key int, value int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
    UPDATE history_register_{0} SET v = value, version = version + 1 WHERE k = key RETURNING version INTO n;
    RETURN n;
END $$;
CREATE FUNCTION history_add_{0}(key int, value int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO history_set_{0} VALUES (key, value);
END $$;
CREATE FUNCTION history_look_list_{0}(key int, lock text) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE x int[];
BEGIN
    IF lock = '' THEN SELECT v INTO x FROM history_list_{0} WHERE k = key;
    {1}
    END IF;
    RETURN x;
END $$;
CREATE FUNCTION history_look_register_{0}(key int, lock text) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE x int; n int;
BEGIN
    IF lock = '' THEN SELECT v, version INTO x, n FROM history_register_{0} WHERE k = key;
    {2}
    END IF;
    RETURN ARRAY[x, n];
END $$;
""".format(place,
           "\n    ".join("ELSIF lock = '%s' THEN SELECT v INTO x FROM history_list_%s WHERE k = key %s;" % (lock, place, lock)
                         for lock in LOCKS),
           "\n    ".join("ELSIF lock = '%s' THEN SELECT v, version INTO x, n FROM history_register_%s WHERE k = key %s;" % (lock, place, lock)
                         for lock in LOCKS)) for place in ("heap", "table", "foreign"))
CLEANUP = "".join("""
DROP FUNCTION IF EXISTS history_append_{0}, history_write_{0}, history_add_{0}, history_look_list_{0}, history_look_register_{0};
""".format(place) for place in ("heap", "table", "foreign")) + """
DROP VIEW IF EXISTS history_list, history_register, history_set;
DROP TABLE IF EXISTS history_list_heap, history_register_heap, history_set_heap, history_list_table, history_register_table, history_set_table;
DROP FOREIGN TABLE IF EXISTS history_list_foreign, history_register_foreign, history_set_foreign;
"""


def children(postmaster):
    """The numbers of a process's children (a bare system has no pgrep)."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, errors="replace") as f:
                # the name, in parentheses, may hold anything
                if f.read().rpartition(") ")[2].split()[1] == postmaster:
                    found.append(name)
        except OSError:
            pass
    return found


class Keys:
    """The keys in use; numbers are never used again."""

    def __init__(self, active_keys):
        self.lock = threading.Lock()
        self.active_keys = active_keys
        self.next_key = {kind: 0 for kind in ("list", "register", "set")}
        self.next_value = 0
        self.active = {kind: [self.new(kind) for _ in range(active_keys)] for kind in self.next_key}

    def new(self, kind):
        self.next_key[kind] += 1
        return [self.next_key[kind], 0]

    def pick(self, kind, rng, n=1):
        with self.lock:
            return sorted(k for k, _ in rng.sample(self.active[kind], n))

    def change(self, kind, rng):
        """a key to change and a value nobody has written"""
        with self.lock:
            keys = self.active[kind]
            i = rng.randrange(len(keys))
            keys[i][1] += 1
            key = keys[i][0]
            if keys[i][1] >= GROWN:
                keys[i] = self.new(kind)
            self.next_value += 1
            return key, self.next_value


class Client(threading.Thread):
    def __init__(self, run, number, dsn="", standby=False):
        super().__init__()
        self.run_ = run
        self.number = number
        self.dsn = dsn
        self.standby = standby
        self.rng = random.Random(run.args.seed * 1000 + number)
        self.history = []
        self.problem = None
        self.counts = {"ok": 0, "fail": 0, "info": 0}
        self.era = None
        self.stalls = run.args.stall and number % 3 == 0

    # ------------------------------------------------------------ operations

    def level(self):
        """the server has no SERIALIZABLE on a standby"""
        return "rr" if self.standby and self.run_.args.level == "ser" else self.run_.args.level

    def table(self, kind, key):
        place = self.run_.args.place
        if place == "mixed":
            place = ("heap", "table", "heap", "foreign")[key % 4]
        return "history_%s_%s" % (kind, place)

    def source(self, kind):
        place = self.run_.args.place
        return "history_" + kind + ("" if place == "mixed" else "_" + place)

    def by_procedure(self, cur, name, kind, key, argument):
        """what history_NAME_PLACE(key, argument) returns; None: it is to be done otherwise"""
        if not self.run_.args.procedures or self.rng.random() < 0.2:
            return None
        cur.execute("SELECT history_%s_%s(%d, '%s')" % (name, self.table(kind, key).split("_")[-1], key, argument))
        return cur.fetchone()[0]

    def append(self, cur, ops):
        key, value = self.run_.keys.change("list", self.rng)
        t = self.table("list", key)
        if self.by_procedure(cur, "append", "list", key, value):
            ops.append(["append", key, value])
            return
        if self.rng.random() < 0.5:
            cur.execute("UPDATE %s SET v = v || %d WHERE k = %d" % (t, value, key))
            if cur.rowcount == 1:
                ops.append(["append", key, value])
                return
        cur.execute("INSERT INTO {0} VALUES ({1}, ARRAY[{2}]) "
                    "ON CONFLICT (k) DO UPDATE SET v = {0}.v || EXCLUDED.v".format(t, key, value))
        ops.append(["append", key, value])

    def write(self, cur, ops):
        key, value = self.run_.keys.change("register", self.rng)
        t = self.table("register", key)
        version = self.by_procedure(cur, "write", "register", key, value)
        if version is not None:
            ops.append(["write", "r%d" % key, value, version])
            return
        cur.execute("INSERT INTO {0} VALUES ({1}, {2}, 1) ON CONFLICT (k) DO UPDATE "
                    "SET v = EXCLUDED.v, version = {0}.version + 1 RETURNING version".format(t, key, value))
        ops.append(["write", "r%d" % key, value, cur.fetchone()[0]])

    def add(self, cur, ops):
        key, value = self.run_.keys.change("set", self.rng)
        if self.by_procedure(cur, "add", "set", key, value) is None:
            cur.execute("INSERT INTO %s VALUES (%d, %d)" % (self.table("set", key), key, value))
        ops.append(["add", "s%d" % key, value])

    def read(self, cur, ops, n=1, lock=False):
        kind = self.rng.choice(self.run_.kinds)
        keys = self.run_.keys.pick(kind, self.rng, n)
        if n == 1:
            source, where = self.table(kind, keys[0]), "k = %d" % keys[0]
        elif self.rng.random() < 0.5:
            source, where = self.source(kind), "k IN (%s)" % ", ".join(str(k) for k in keys)
        else:
            source, where = self.source(kind), "k BETWEEN %d AND %d" % (keys[0], keys[-1])
            keys = list(range(keys[0], keys[-1] + 1))
        # (rows of a view of two tables cannot be locked; a set's later rows would not be)
        suffix = self.rng.choice(LOCKS) if lock and kind != "set" and not source.endswith(kind) else ""
        if n == 1 and kind != "set":
            found = self.by_procedure(cur, "look_" + kind, kind, keys[0], suffix)
            if found is not None:
                ops.extend([["lock"]] if suffix not in ("", "FOR KEY SHARE") else [])
                ops.append(["list", keys[0], found] if kind == "list" else
                           ["register", "r%d" % keys[0], *((0, 0) if found[0] is None else found)])
                return
        self.read_keys(cur, ops, kind, source, where, keys, suffix)

    def read_keys(self, cur, ops, kind, source, where, keys, lock=""):
        cur.execute("SELECT * FROM %s WHERE %s %s" % (source, where, lock))
        rows = cur.fetchall()
        # FOR KEY SHARE lets the rest of the row change
        mark = [["lock"]] if lock not in ("", "FOR KEY SHARE") else []
        if kind == "list":
            found = {k: v for k, v in rows}
            for k in keys:
                ops.extend(mark + [["list", k, found.get(k, [])]])
        elif kind == "register":
            found = {k: (v, version) for k, v, version in rows}
            for k in keys:
                ops.extend(mark + [["register", "r%d" % k, *found.get(k, (0, 0))]])
        else:
            for k in keys:
                ops.append(["set", "s%d" % k, sorted(v for key, v in rows if key == k)])
        if len(rows) != len(set(r[:2] for r in rows) if kind == "set" else {r[0] for r in rows}):
            self.problem = "a key was returned twice: %s" % rows

    def some_change(self, cur, ops):
        self.rng.choice([self.append, self.append, self.add]
                        + [self.write] * ("register" in self.run_.kinds))(cur, ops)

    # ---------------------------------------------------------- transactions

    def statement(self, cur, txn):
        """one statement, in a transaction of its own"""
        txn["snap"] = True
        self.read(cur, txn["ops"], n=self.rng.randint(2, self.run_.keys.active_keys))

    def transaction(self, cur, txn):
        rng, ops = self.rng, txn["ops"]
        only_read = self.standby or rng.random() < 0.2
        cur.execute("BEGIN ISOLATION LEVEL " + LEVELS[self.level()]
                    + (" READ ONLY" if only_read and rng.random() < 0.5 else ""))
        for _ in range(rng.randint(1, 2 if self.run_.args.stall and not self.stalls else 5)):
            what = rng.random()
            if only_read or what < 0.4:
                self.read(cur, ops, n=rng.choice([1, 1, 2, self.run_.keys.active_keys]))
            elif what < 0.55:
                self.read(cur, ops, n=rng.choice([1, 1, 2]), lock=True)
            elif what < 0.65:
                cur.execute("SAVEPOINT s")
                ops.append(["savepoint"])
                for _ in range(rng.randint(1, 2)):
                    self.some_change(cur, ops)
                if rng.random() < 0.5:
                    self.read(cur, ops)
                if rng.random() < 0.5:
                    cur.execute("ROLLBACK TO s")
                    ops.append(["undo"])
            else:
                self.some_change(cur, ops)
        if rng.random() < 0.1:
            cur.execute("ROLLBACK")
            txn["status"] = "fail"
        else:
            if self.stalls and rng.random() < 0.7:
                cur.execute("SET LOCAL synchronous_commit = on")
            if self.run_.args.prepare and rng.random() < 0.5:
                self.prepare(cur, txn)
                return
            txn["committing"] = True
            cur.execute("COMMIT")
            txn["status"] = "ok"

    def prepare(self, cur, txn):
        """two-phase commit"""
        gid = "history.%d.%d" % (self.number, len(self.history))
        commits = self.rng.random() < 0.9
        txn["committing"] = True
        cur.execute("PREPARE TRANSACTION '%s'" % gid)
        if self.rng.random() < 0.5:
            time.sleep(self.rng.random() * 0.02)
        cur.execute("%s PREPARED '%s'" % ("COMMIT" if commits else "ROLLBACK", gid))
        txn["status"] = "ok" if commits else "fail"

    def one(self, conn, what):
        txn = {"id": "%d.%d" % (self.number, len(self.history)), "client": self.number,
               "start": time.monotonic_ns(), "status": "info", "ops": []}
        if self.standby:
            txn["standby"] = True
        else:
            txn["era"] = self.era
        cur = conn.cursor()
        try:
            what(cur, txn)
            if txn["status"] == "info":
                txn["status"] = "ok"
        except psycopg2.Error as e:
            # (whom a cancel was not meant for any more)
            if e.pgcode in RETRY or (e.pgcode == "57014" and self.run_.args.stall):
                txn["status"] = "fail"
                self.rollback(conn)
            elif conn.closed or e.pgcode in ("57P01", "57P02", "57P03") or e.pgcode is None:
                # only who had asked for the commit may have it
                txn["status"] = "info" if txn.get("committing") else "fail"
                if not self.run_.args.crash and not (self.standby and e.pgcode == "57P01"):
                    self.problem = "lost the connection: %s" % e
            else:
                self.problem = "%s %s" % (e.pgcode, e)
                txn["status"] = "fail"
                self.rollback(conn)
        txn.pop("committing", None)
        txn["end"] = time.monotonic_ns()
        self.counts[txn["status"]] += 1
        self.history.append(txn)

    def rollback(self, conn):
        try:
            if not conn.closed:
                conn.cursor().execute("ROLLBACK")
        except psycopg2.Error:
            if not self.run_.args.crash:
                raise

    def end_prepared(self, cur):
        """those that a crash has left: whoever ran them does not know of their end"""
        cur.execute("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'history.%d.%%'" % self.number)
        for gid, in cur.fetchall():
            cur.execute("COMMIT PREPARED '%s'" % gid)

    def connect(self):
        args = self.run_.args
        options = "-c deadlock_timeout=20ms -c default_transaction_isolation=" + LEVELS[self.level()].replace(" ", "\\ ")
        if args.async_:
            options += " -c synchronous_commit=off"
        elif args.stall:
            options += " -c synchronous_commit=local"
        for _ in range(1800):
            try:
                conn = psycopg2.connect(self.dsn or self.run_.dsn, application_name="history", options=options)
                conn.autocommit = True
                # whoever talks to the same checkpointer talks to a server without a crash in between
                cur = conn.cursor()
                cur.execute("SELECT current_setting('port'), pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
                self.era = str(cur.fetchall())
                if args.prepare:
                    self.end_prepared(cur)
                return conn
            except psycopg2.Error:
                if not args.crash:
                    raise
                time.sleep(0.1)
        raise RuntimeError("the server does not come back")

    def run(self):
        try:
            conn = self.connect()
            while time.monotonic() < self.run_.until and self.problem is None:
                if conn.closed:
                    conn = self.connect()
                self.one(conn, self.statement if self.rng.random() < 0.2 else self.transaction)
            conn.close()
        except Exception as e:  # a thread's exception would be lost
            self.problem = "%s: %s" % (type(e).__name__, e)


class Run:
    def __init__(self, args):
        self.args = args
        self.keys = Keys(2 if args.stall else ACTIVE)
        self.until = 0
        self.dsn = ""
        self.clients = []
        self.kinds = ["list", "set"] if args.async_ else ["list", "register", "set"]

    def wait_for_standby(self):
        conn = psycopg2.connect(self.args.standby)
        conn.autocommit = True
        cur = conn.cursor()
        for _ in range(1800):
            cur.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'history_set%'")
            if cur.fetchone()[0] >= 3:
                break
            time.sleep(0.1)
        conn.close()

    def final(self, number):
        """read all there is, as a transaction that follows every other"""
        # (nobody has left anything prepared, but who died with the last crash)
        for client in self.clients if self.args.prepare else ():
            client.connect().close()
        reader = Client(self, number)
        conn = reader.connect()

        def read_all(cur, txn):
            txn["snap"] = txn["final"] = True
            cur.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            for kind in self.kinds:
                keys = range(1, self.keys.next_key[kind] + 1)
                reader.read_keys(cur, txn["ops"], kind, reader.source(kind), "true", keys)
            cur.execute("COMMIT")
            txn["status"] = "ok"

        reader.one(conn, read_all)
        return reader

    def crash(self):
        while time.monotonic() < self.until:
            time.sleep(1 + random.random() * 1.5)
            if time.monotonic() > self.until:
                break
            how = self.args.crash if self.args.crash != "any" else random.choice(["kill", "immediate", "server"])
            if how == "kill":
                try:
                    conn = psycopg2.connect("")
                    cur = conn.cursor()
                    cur.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'history' "
                                "ORDER BY random() LIMIT 1")
                    for (pid,) in cur.fetchall():
                        os.kill(pid, signal.SIGKILL)
                    conn.close()
                except psycopg2.Error:
                    pass
            elif how == "immediate":
                self.pg_ctl("-m", "immediate", "stop")
                self.start()
            else:
                # the postmaster first: it would tell the others to leave in order
                with open(os.path.join(os.environ["PGDATA"], "postmaster.pid")) as f:
                    postmaster = f.readline().strip()
                for pid in [postmaster] + children(postmaster):
                    try:
                        os.kill(int(pid), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                self.start()

    def pg_ctl(self, *args):
        return subprocess.run(["pg_ctl", "-s", "-w", *args], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode

    def start(self):
        log = os.environ.get("CLUSTER_LOG", os.path.join(os.environ["PGDATA"], "log"))
        for _ in range(60):
            if self.pg_ctl("-l", log, "start") == 0:
                return
            time.sleep(0.5)     # processes that lived on hold the shared memory

    def failover(self):
        time.sleep(self.args.seconds / 2)
        self.pg_ctl("-m", "immediate", "stop")
        self.pg_ctl("-D", os.environ["STANDBY_DATA"], "promote")
        self.dsn = self.args.failover

    def let_go(self):
        """cancel the waits of commits that wait for a standby, each at its time"""
        conn = psycopg2.connect("")
        conn.autocommit = True
        cur = conn.cursor()
        # (clients may wait for each other with their last transactions)
        while any(client.is_alive() for client in self.clients):
            cur.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
                        "WHERE wait_event = 'SyncRep' AND random() < 0.3")
            time.sleep(0.01)
        conn.close()

    def set_absent(self, name):
        conn = psycopg2.connect("")
        conn.autocommit = True
        cur = conn.cursor()
        cur.execute("ALTER SYSTEM SET synchronous_standby_names = '%s'" % name)
        cur.execute("SELECT pg_reload_conf()")
        for _ in range(600):
            cur.execute("SELECT pg_sleep(0.05)")
            cur.execute("SHOW synchronous_standby_names")
            if cur.fetchone()[0] == name:
                break
        conn.close()

    def go(self):
        conn = psycopg2.connect("")
        conn.autocommit = True
        conn.cursor().execute(CLEANUP + SCHEMA + FUNCTIONS)
        conn.close()
        if self.args.stall:
            self.set_absent("nobody")
        if self.args.standby:
            self.wait_for_standby()
        self.until = time.monotonic() + self.args.seconds
        clients = [Client(self, n) for n in range(self.args.clients)]
        if self.args.standby:
            clients += [Client(self, self.args.clients + n, self.args.standby, True) for n in range(2)]
        self.clients = clients
        threads = list(clients)
        if self.args.stall:
            threads.append(threading.Thread(target=self.let_go))
        if self.args.failover:
            threads.append(threading.Thread(target=self.failover))
        elif self.args.crash:
            threads.append(threading.Thread(target=self.crash))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if self.args.stall:
            self.set_absent("")
        clients.append(self.final(len(clients)))
        conn = psycopg2.connect(self.dsn)
        conn.autocommit = True
        conn.cursor().execute(CLEANUP)
        conn.close()
        return clients


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", choices=LEVELS, required=True)
    parser.add_argument("--place", choices=["heap", "table", "foreign", "mixed"], required=True)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    parser.add_argument("--standby")
    parser.add_argument("--crash", choices=["kill", "immediate", "server", "any"])
    parser.add_argument("--async", action="store_true", dest="async_")
    parser.add_argument("--stall", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--procedures", action="store_true")
    parser.add_argument("--failover")
    parser.add_argument("file")
    args = parser.parse_args()
    if args.failover:
        args.crash = "failover"
        args.async_ = True
    if args.procedures:
        os.environ["PGOPTIONS"] = " ".join("-c " + setting for setting in (
            "mot.jit_procedures=on", "mot.jit_procedures_above_executions=2", "mot.jit_prepare_above_executions=0",
            "plan_cache_mode=force_generic_plan"))
    random.seed(args.seed)
    clients = Run(args).go()
    txns = [txn for client in clients for txn in client.history]
    eras = {}
    for txn in sorted(txns, key=lambda txn: txn["start"]):
        if "era" in txn:
            txn["era"] = eras.setdefault(txn["era"], len(eras))
    with open(args.file, "w") as f:
        f.write(json.dumps({"level": args.level, "strict": args.place in ("table", "foreign"), "place": args.place,
                            "seed": args.seed, "async": args.async_}) + "\n")
        for txn in txns:
            f.write(json.dumps(txn) + "\n")
    counts = {s: sum(c.counts[s] for c in clients) for s in ("ok", "fail", "info")}
    print("seed %d: %d committed, %d rolled back, %d unknown, %d crashes"
          % (args.seed, counts["ok"], counts["fail"], counts["info"], len(eras) - 1))
    problems = {c.problem for c in clients if c.problem}
    for problem in problems:
        print("problem: " + problem.strip())
    sys.exit(1 if problems or counts["ok"] < 10 or (args.crash and len(eras) < 2) else 0)


main()
