#!/usr/bin/python3
"""interleave.py: interleavings of two sessions, on twins of a table.

    interleave.py [options]         (the connection is libpq's: PGHOST, ...)

Each session runs a short transaction: one or two of the steps below, then
COMMIT or ROLLBACK.  All pairs of such transactions in all interleavings are
run on a heap table and on its memory-optimized twin, and what happens must be
the same: rows, errors, who waits, and until when.  (isolationtester cannot do
that: it has to be told beforehand which steps will wait.  Here the later steps
of a session that waits wait with it.)  Families of steps:

    locks       exclusive row locks, with NOWAIT and SKIP LOCKED, against each
                other and against changes
    strengths   FOR SHARE and FOR KEY SHARE against all of those
    upserts     INSERT ... ON CONFLICT in its forms, against changes
    unique      who takes, leaves or moves to a unique key

Options: --families "locks strengths upserts unique"
    --sample N  only N interleavings of each family, drawn by --seed
    --two N     also N interleavings with transactions of two steps (default 0)

A difference counts if it shows again when the interleaving is repeated (a
deadlock's victim depends on who looked first; and that a deadlock is over is
noticed by both sessions, in either order).  One difference is right: where
heap finds a deadlock there may be none.  An INSERT on a heap table stands in
the table while it waits for somebody else's key; on a memory-optimized one it
takes back what it has put into the indexes, waits, and begins anew.  And
heap has two ways of its own where the lock in the way is on a later version
of the row than the one that was found: it waits there in spite of NOWAIT and
SKIP LOCKED, and FOR KEY SHARE then goes on with the version that was found,
though it goes on with the newest one if that lock was on the version found.
A memory-optimized row is locked whole: there, both are the same.  Last, an
INSERT ... ON CONFLICT that has waited for a key that is not its arbiter fails in
heap, which has looked at the arbiter before; a memory-optimized table looks at it
again, since it begins anew, and has to do what heap does if the INSERT comes after
whom it has waited for.
"""

import argparse
import itertools
import random
import select
import sys

import psycopg2
import psycopg2.extensions

READ = "SELECT * FROM t ORDER BY id;"

LOCKS = {
    "%s%s" % (short, suffix): "SELECT * FROM t WHERE id = 1 %s%s;" % (lock, clause)
    for short, lock in (("fu", "FOR UPDATE"), ("nku", "FOR NO KEY UPDATE"))
    for suffix, clause in (("", ""), ("_nowait", " NOWAIT"), ("_skip", " SKIP LOCKED"))
}
SHARED = {
    "%s%s" % (short, suffix): "SELECT * FROM t WHERE id = 1 %s%s;" % (lock, clause)
    for short, lock in (("sh", "FOR SHARE"), ("ks", "FOR KEY SHARE"))
    for suffix, clause in (("", ""), ("_nowait", " NOWAIT"), ("_skip", " SKIP LOCKED"))
}
LOCKS.update({
    "fuall": "SELECT * FROM t ORDER BY id FOR UPDATE;",
    "job": "SELECT * FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;",
    "fujoin": "SELECT a.id, b.v FROM t a JOIN t b ON b.id = a.id + 1 ORDER BY a.id FOR UPDATE OF a;",
    "fuold": "SELECT * FROM t WHERE v = 10 FOR UPDATE;",
    "upd": "UPDATE t SET v = v + 1 WHERE id = 1 RETURNING *;",
    "updold": "UPDATE t SET v = v + 100 WHERE v = 10 RETURNING *;",
    "updkey": "UPDATE t SET id = 5 WHERE id = 1 RETURNING *;",
    "updall": "UPDATE t SET v = v + 1;",
    "del": "DELETE FROM t WHERE id = 1 RETURNING *;",
})

UPSERTS = {
    "ins1": "INSERT INTO t VALUES (1, 100, 100);",
    "ins3": "INSERT INTO t VALUES (3, 30, 3);",
    "no1": "INSERT INTO t VALUES (1, 100, 100) ON CONFLICT DO NOTHING RETURNING *;",
    "no3": "INSERT INTO t VALUES (3, 31, 31) ON CONFLICT DO NOTHING RETURNING *;",
    "no3id": "INSERT INTO t VALUES (3, 32, 3) ON CONFLICT (id) DO NOTHING RETURNING *;",
    "up1": "INSERT INTO t VALUES (1, 100, 100) ON CONFLICT (id) DO UPDATE SET v = t.v + EXCLUDED.v RETURNING *;",
    "up3": "INSERT INTO t VALUES (3, 33, 33) ON CONFLICT (id) DO UPDATE SET v = t.v + EXCLUDED.v RETURNING *;",
    "up1where": "INSERT INTO t VALUES (1, 7, 100) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v WHERE t.v <= 10 RETURNING *;",
    "up3where": "INSERT INTO t VALUES (3, 7, 34) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v WHERE t.v > 30 RETURNING *;",
    "upu": "INSERT INTO t VALUES (9, 90, 1) ON CONFLICT (u) DO UPDATE SET v = EXCLUDED.v, id = EXCLUDED.id RETURNING *;",
    "upname": "INSERT INTO t VALUES (3, 35, 3) ON CONFLICT ON CONSTRAINT t_u DO UPDATE SET v = t.v + 1 RETURNING *;",
    "upmany": "INSERT INTO t VALUES (3, 36, 36), (1, 37, 37), (2, 38, 38) ON CONFLICT (id) "
              "DO UPDATE SET v = t.v + EXCLUDED.v RETURNING *;",
    "upd": "UPDATE t SET v = v + 1 WHERE id = 1 RETURNING *;",
    "updkey": "UPDATE t SET id = 3 WHERE id = 1 RETURNING *;",
    "updu": "UPDATE t SET u = 3 WHERE id = 1 RETURNING *;",
    "del": "DELETE FROM t WHERE id = 1 RETURNING *;",
    "fu": "SELECT * FROM t WHERE id = 1 FOR UPDATE;",
}

UNIQUE = {
    "ins1": "INSERT INTO t VALUES (1, 100, 100);",
    "ins3": "INSERT INTO t VALUES (3, 30, 3);",
    "ins3u": "INSERT INTO t VALUES (4, 40, 3);",
    "insnull": "INSERT INTO t VALUES (3, 41, NULL);",
    "many": "INSERT INTO t SELECT i, 0, i FROM generate_series(3, 5) i;",
    "key13": "UPDATE t SET id = 3 WHERE id = 1 RETURNING *;",
    "key23": "UPDATE t SET id = 3 WHERE id = 2 RETURNING *;",
    "key31": "UPDATE t SET id = 1 WHERE id = 3 RETURNING *;",
    "u13": "UPDATE t SET u = 3 WHERE id = 1 RETURNING *;",
    "u1null": "UPDATE t SET u = NULL WHERE id = 1 RETURNING *;",
    "u21": "UPDATE t SET u = 1 WHERE id = 2 RETURNING *;",
    "upd": "UPDATE t SET v = v + 1 WHERE id = 1 RETURNING *;",
    "del1": "DELETE FROM t WHERE id = 1 RETURNING *;",
    "del3": "DELETE FROM t WHERE id = 3 RETURNING *;",
    "shift": "UPDATE t SET id = id + 10;",
}

# Not in transactions of two steps: what changes several rows in no particular
# order (which of them waits first is not the same), and with shared locks a
# change of the key (it takes the row as any change does and then waits for
# sharers of the key, where heap knows before what it is going to change; so
# it can be in the way of a sharer that wants more).
NOT_IN_TWO = {"locks": ("updall",), "strengths": ("updall", "updkey"), "upserts": ("upmany",), "unique": ("many", "shift")}

# interleavings that once were different
OF_OLD = {"strengths": ["s1_ks s2_upd s2_fu s1_c s2_c", "s1_fujoin s1_upd s2_ks s1_c s2_c",
                        "s1_fu s1_upd s2_ks s1_c s2_c"],
          "upserts": ["s1_up3 s2_upname s1_updu s1_c s2_c", "s1_up3where s2_upname s2_no1 s1_updu s1_c s2_c"]}

# change row 1, but not its key
CHANGES = ("upd", "updold", "updall")

FAMILIES = {"locks": LOCKS, "strengths": dict(SHARED, **LOCKS), "upserts": UPSERTS, "unique": UNIQUE}


def interleavings(a, b):
    """all ways to merge two sequences"""
    for places in itertools.combinations(range(len(a) + len(b)), len(a)):
        merged, i, j = [], 0, 0
        for n in range(len(a) + len(b)):
            if n in places:
                merged.append(a[i])
                i += 1
            else:
                merged.append(b[j])
                j += 1
        yield merged


def of_one_step(steps):
    """s1 goes first: the other order is that of another pair"""
    for x, y, end in itertools.product(steps, steps, ("c", "r")):
        for p in interleavings(["s1_" + x, "s1_" + end], ["s2_" + y, "s2_c"]):
            if p[0].startswith("s1"):
                yield p


def of_two_steps(family, n, rng):
    names = [name for name in FAMILIES[family] if name not in NOT_IN_TWO[family]]
    for _ in range(n):
        a = ["s1_" + x for x in rng.choices(names, k=2)] + ["s1_" + rng.choice("ccr")]
        b = ["s2_" + x for x in rng.choices(names, k=rng.randint(1, 2))] + ["s2_" + rng.choice("ccr")]
        yield rng.choice(list(interleavings(a, b)))


def locked_later(p):
    """does a session change the row and lock it for more afterwards?"""
    changed = set()
    for session, step in (x.split("_", 1) for x in p):
        if step in CHANGES:
            changed.add(session)
        elif session in changed and step.startswith(("fu", "job", "del", "updkey")):
            return True
    return False


def heaps_own_way(p, log):
    """is what heap has done one of its ways with later versions?"""
    waits = [line.split()[0] for line in log if line.endswith(" waits")]
    return any(step.endswith("_nowait") for step in waits) or \
        (locked_later(p) and any(step[3:].startswith("ks") for step in waits))


def arbiter_first(p, log):
    """the interleaving in which the INSERT that has failed for another key comes later, or None"""
    waits = [line.split()[0] for line in log if line.endswith(" waits")]
    for step in waits:
        if step[3:].startswith(("up", "no")) and any(line.startswith(step + ": 23505 ") for line in log):
            i = p.index(step)
            rest = [x for x in p[i:] if x[:2] == step[:2]]
            return p[:i] + [x for x in p[i:] if x[:2] != step[:2]] + rest
    return None


def without_waits(log):
    return [line for line in log if not line.endswith(" waits")]


def deadlock(log):
    return any(" 40P01 " in line for line in log)


class Session:
    """One connection; at most one statement is on its way."""

    def __init__(self, name):
        self.name = name
        self.conn = psycopg2.connect("", async_=1)
        self.settle()
        self.cur = self.conn.cursor()
        self.step = None
        self.pending = []

    def settle(self):
        while self.poll() is None:
            pass

    def poll(self, wait=1.0):
        """None, or "done", after waiting a little"""
        state = self.conn.poll()
        if state == psycopg2.extensions.POLL_OK:
            return "done"
        reading = state == psycopg2.extensions.POLL_READ
        select.select([self.conn] if reading else [], [] if reading else [self.conn], [], wait)
        return None

    def send(self, step, sql):
        self.step = step
        self.cur.execute(sql)

    def result(self, wait):
        """what came of the step, or None"""
        try:
            if self.poll(wait) is None:
                return None
            rows = self.cur.fetchall() if self.cur.description else None
            text = self.cur.statusmessage + ("" if rows is None else " " + str(rows))
        except psycopg2.Error as e:
            text = "%s %s" % (e.pgcode, e.pgerror.splitlines()[0])
        self.step = None
        return text

    def run(self, sql):
        """a statement that does not wait for long"""
        self.send("", sql)
        while self.step is not None:
            self.result(1.0)


class Runner:
    def __init__(self):
        self.sessions = {s: Session(s) for s in ("s1", "s2")}
        self.control = psycopg2.connect("")
        self.control.autocommit = True
        self.cur = self.control.cursor()

    def waits(self, session):
        self.cur.execute("SELECT pg_blocking_pids(%d) <> '{}'" % session.conn.get_backend_pid())
        return self.cur.fetchone()[0]

    def follow(self, log, session, steps, may_wait):
        """until the step is done, or waits (twice in a row)"""
        waited = 0
        while session.step is not None:
            step = session.step
            text = session.result(0.002)
            if text is not None:
                log.append("%s: %s" % (step, text))
                if session.pending:
                    next_step = session.pending.pop(0)
                    session.send(next_step, steps[next_step.split("_", 1)[1]])
            elif may_wait:
                waited = waited + 1 if self.waits(session) else 0
                if waited == 2:
                    return

    def run(self, schema, steps, permutation):
        """what happens, line by line"""
        log = []
        self.cur.execute("SET search_path = %s; DELETE FROM t; INSERT INTO t VALUES (1, 10, 1), (2, 20, 2)" % schema)
        for s in self.sessions.values():
            s.run("SET search_path = %s; SET deadlock_timeout = '100ms'" % schema)
            s.run("BEGIN")
        for step in permutation:
            session = self.sessions[step[:2]]
            if session.step is not None:
                session.pending.append(step)
                continue
            session.send(step, steps[step.split("_", 1)[1]])
            self.follow(log, session, steps, True)
            if session.step is not None:
                log.append("%s waits" % session.step)
            for other in self.sessions.values():
                if other is not session:
                    self.follow(log, other, steps, True)
        for n in range(2000):
            for s in self.sessions.values():
                self.follow(log, s, steps, True)
            if not any(s.step for s in self.sessions.values()):
                break
        else:
            raise RuntimeError("nobody goes on: %s\n%s" % (permutation, "\n".join(log)))
        for s in self.sessions.values():
            s.run("ROLLBACK")
        self.cur.execute(READ)
        log.append("at the end: %s" % self.cur.fetchall())
        return log

    def differences(self, steps, permutations):
        for p in permutations:
            for _ in range(3):
                heap, mot = self.run("heap_twin", steps, p), self.run("mot_twin", steps, p)
                if heap == mot or (deadlock(heap) and (sorted(heap) == sorted(mot) or not deadlock(mot))):
                    break
                if heaps_own_way(p, heap):
                    break
                later = arbiter_first(p, heap)
                if later and without_waits(self.run("heap_twin", steps, later)) == without_waits(mot):
                    break
            else:
                yield p, heap, mot


def setup(cur):
    sql = "\n".join("CREATE SCHEMA {0}; CREATE {1} TABLE {0}.t (id int PRIMARY KEY, v int, u int, "
                    "CONSTRAINT t_u UNIQUE (u)){2};".format(*twin)
                    for twin in (("heap_twin", "", ""), ("mot_twin", "FOREIGN", " SERVER mot_server")))
    cur.execute("DROP SCHEMA IF EXISTS heap_twin, mot_twin CASCADE")
    cur.execute(sql)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", default=" ".join(FAMILIES))
    parser.add_argument("--sample", type=int)
    parser.add_argument("--two", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    runner = Runner()
    setup(runner.cur)
    number = bad = 0
    for family in args.families.split():
        steps = FAMILIES[family]
        rng = random.Random(args.seed)
        permutations = [p for p in of_one_step(steps)
                        if family != "strengths" or any(step[3:] in SHARED for step in p)]
        if args.sample is not None and args.sample < len(permutations):
            permutations = rng.sample(permutations, args.sample)
        permutations += [p.split() for p in OF_OLD.get(family, [])]
        permutations += list(of_two_steps(family, args.two, rng))
        sql = dict(steps, c="COMMIT", r="ROLLBACK")
        different = list(runner.differences(sql, permutations))
        number += 1
        bad += bool(different)
        print("%sok %d - %s: %d interleavings do the same on both kinds of tables"
              % ("not " if different else "", number, family, len(permutations)))
        for p, heap, mot in different[:10]:
            print("# " + " ".join(p))
            print("\n".join("#   heap: " + line for line in heap))
            print("\n".join("#   mot:  " + line for line in mot))
        if len(different) > 10:
            print("# and %d more:" % (len(different) - 10))
            print("\n".join("#   " + " ".join(p) for p, _, _ in different[10:60]))
        sys.stdout.flush()
    runner.cur.execute("DROP SCHEMA heap_twin, mot_twin CASCADE")
    print("1..%d" % number)
    sys.exit(1 if bad else 0)


main()
