#!/usr/bin/python3
"""test_checker.py: the checker of histories on histories with known anomalies.

Each anomaly has to be found at the levels that forbid it and passed at those
that allow it; clean histories have to pass.  Prints TAP.
"""

import random

from checker import check

number = 0
failed = 0


def ok(good, what, detail=""):
    global number, failed
    number += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", number, what))
    if not good and detail:
        print("# " + detail)


def T(name, ops, start=None, end=None, status="ok", **more):
    """a transaction; without times all overlap"""
    return dict(id=name, client=name, start=0 if start is None else start, end=100 if end is None else end,
                status=status, ops=ops, **more)


def kinds(level, txns, strict=False, lossy=False):
    return sorted({a.kind for a in check({"level": level, "strict": strict, "async": lossy}, txns)})


def expect(what, txns, rc=(), rr=(), ser=(), strict=None, lossy=False):
    """the kinds of anomalies that each level has to report; strict: if other than ser"""
    for level, want, is_strict in (("rc", rc, False), ("rr", rr, False), ("ser", ser, False),
                                   ("ser", ser if strict is None else strict, True)):
        got = kinds(level, txns, is_strict, lossy)
        ok(got == sorted(want), "%s, %s%s" % (what, level, " strict" if is_strict else ""),
           "found %s, expected %s" % (got, sorted(want)))


def all_levels(*found):
    return {"rc": found, "rr": found, "ser": found}


def snapshots(*found):
    return {"rr": found, "ser": found}


def r(key, *elements):
    return ["list", key, list(elements)]


def a(key, element):
    return ["append", key, element]


def final(*ops):
    return T("final", list(ops), start=200, end=201, snap=True, final=True)


# ---------------------------------------------------------------------- clean

expect("nothing happened", [])
expect("one after the other", [
    T("t1", [a(1, 1), r(1, 1)], 0, 1), T("t2", [r(1, 1), a(1, 2), r(1, 1, 2)], 2, 3),
    T("t3", [r(1, 1, 2)], 4, 5), final(r(1, 1, 2))])
expect("a read beside a write, from before it", [T("t1", [a(1, 1)]), T("t2", [r(1)]), final(r(1, 1))])
expect("a rolled back change that nobody saw", [T("t1", [a(1, 1)], status="fail"), final(r(1))])
expect("an unknown change that nobody saw", [T("t1", [a(1, 1)], status="info"), final(r(1))])
expect("an unknown change that was made", [T("t1", [a(1, 1)], status="info"), T("t2", [r(1, 1)]), final(r(1, 1))])
expect("a change undone by a savepoint", [
    T("t1", [a(1, 1), ["savepoint"], a(1, 2), r(1, 1, 2), ["undo"], r(1, 1), a(1, 3)]), final(r(1, 1, 3))])
expect("registers", [
    T("t1", [["write", "r", 7, 1]], 0, 1), T("t2", [["register", "r", 7, 1], ["write", "r", 8, 2]], 2, 3),
    final(["register", "r", 8, 2])])
expect("sets", [
    T("t1", [["add", "s", 1], ["set", "s", [1]]], 0, 1), T("t2", [["set", "s", [1]], ["add", "s", 2]], 2, 3),
    final(["set", "s", [1, 2]])])
expect("two blind appends", [T("t1", [a(1, 1)]), T("t2", [a(1, 2)]), final(r(1, 2, 1))])

# ------------------------------------------------------------------ anomalies

expect("G0: writes of two keys in two orders", [
    T("t1", [a(1, 1), a(2, 1)]), T("t2", [a(1, 2), a(2, 2)]), final(r(1, 1, 2), r(2, 2, 1))],
    **all_levels("G0"))
expect("G0 of registers", [
    T("t1", [["write", "x", 1, 1], ["write", "y", 2, 2]]), T("t2", [["write", "x", 3, 2], ["write", "y", 4, 1]])],
    **all_levels("G0"))
expect("G1a: read of a rolled back append", [
    T("t1", [a(1, 1)], status="fail"), T("t2", [r(1, 1)]), final(r(1))],
    **all_levels("G1a"))
expect("G1a of a register", [
    T("t1", [["write", "x", 5, 1]], status="fail"), T("t2", [["register", "x", 5, 1]])], **all_levels("G1a"))
expect("G1a of a set", [
    T("t1", [["add", "s", 5]], status="fail"), T("t2", [["set", "s", [5]]])], **all_levels("G1a"))
expect("G1a: read of what a savepoint undid", [
    T("t1", [["savepoint"], a(1, 1), ["undo"]]), T("t2", [r(1, 1)])], **all_levels("G1a"))
expect("G1a: a rolled back append stays in the list", [
    T("t1", [a(1, 1)], status="fail"), T("t2", [a(1, 2)]), final(r(1, 1, 2))], **all_levels("G1a"))
expect("G1b: read in the middle of a transaction", [
    T("t1", [a(1, 1), a(1, 2)]), T("t2", [r(1, 1)]), final(r(1, 1, 2))],
    rc=["G1b"], rr=["G1b", "G-single"], ser=["G1b", "G-single"])
expect("G1b of a register", [
    T("t1", [["write", "x", 1, 1], ["write", "x", 2, 2]]), T("t2", [["register", "x", 1, 1]])],
    rc=["G1b"], rr=["G1b", "G-single"], ser=["G1b", "G-single"])
expect("G1c: each reads the other's write", [
    T("t1", [a(1, 1), r(2, 2)]), T("t2", [a(2, 2), r(1, 1)]), final(r(1, 1), r(2, 2))], **all_levels("G1c"))
expect("G1c by a write and a read", [
    T("t1", [a(1, 1), r(2, 2)]), T("t2", [a(1, 3), a(2, 2)]), final(r(1, 1, 3), r(2, 2))], **all_levels("G1c"))
expect("P4: lost update of a list", [
    T("t1", [r(1), a(1, 1)]), T("t2", [r(1), a(1, 2)]), final(r(1, 1, 2))], **snapshots("G-single"))
expect("lost append: committed and not there", [
    T("t1", [a(1, 1)]), T("t2", [a(1, 2)]), final(r(1, 2))], **all_levels("lost"))
expect("lost element of a set", [
    T("t1", [["add", "s", 1]]), final(["set", "s", []])],
    rc=["G-single-realtime", "lost"], rr=["G-single-realtime", "lost"], ser=["G-single-realtime", "lost"])
expect("lost update of a register: one version twice", [
    T("t1", [["write", "x", 1, 1]]), T("t2", [["write", "x", 2, 1]])], **all_levels("lost-update"))
expect("G-single: read skew", [
    T("t1", [r(1), r(2, 2)]), T("t2", [a(1, 1), a(2, 2)]), final(r(1, 1), r(2, 2))], **snapshots("G-single"))
expect("read skew inside one statement", [
    T("t1", [r(1), r(2, 2)], snap=True), T("t2", [a(1, 1), a(2, 2)]), final(r(1, 1), r(2, 2))],
    **all_levels("G-single"))
expect("read skew through two writers", [
    T("t1", [r(1), r(2, 2)]), T("t2", [a(1, 1)]), T("t3", [r(1, 1), a(2, 2)]), final(r(1, 1), r(2, 2))],
    **snapshots("G-single"))
expect("two readers see two writers in two orders (long fork)", [
    T("w1", [a(1, 1)]), T("w2", [a(2, 2)]), T("r1", [r(1, 1), r(2)]), T("r2", [r(1), r(2, 2)])],
    rr=["G-nonadjacent"], ser=["G-nonadjacent", "G2"])
expect("the same in statements", [
    T("w1", [a(1, 1)]), T("w2", [a(2, 2)]), T("r1", [r(1, 1), r(2)], snap=True), T("r2", [r(1), r(2, 2)], snap=True),
    final(r(1, 1), r(2, 2))],
    rc=["G2"], rr=["G-nonadjacent"], ser=["G-nonadjacent", "G2"])
expect("G2-item: write skew", [
    T("t1", [r(1), a(2, 2)]), T("t2", [r(2), a(1, 1)]), final(r(1, 1), r(2, 2))], ser=["G2"])
expect("G2: write skew by ranges", [
    T("t1", [["set", "s", []], ["add", "t", 1]]), T("t2", [["set", "t", []], ["add", "s", 2]]),
    final(["set", "s", [2]], ["set", "t", [1]])], ser=["G2"])
expect("G2: the same range", [
    T("t1", [["set", "s", []], ["add", "s", 1]]), T("t2", [["set", "s", []], ["add", "s", 2]]),
    final(["set", "s", [1, 2]])], ser=["G2"])
expect("G2 through a transaction that only reads", [
    T("t1", [r(1), r(2), a(1, 1)]), T("t2", [r(2), a(2, 2)]), T("t3", [r(1), r(2, 2)]), final(r(1, 1), r(2, 2))],
    ser=["G2"])
expect("a transaction that does not see what had ended before it", [
    T("t1", [a(1, 1)], 0, 1), T("t2", [r(1)], 2, 3), final(r(1, 1))], **snapshots("G-single-realtime"))
expect("a statement that does not see what had ended before it", [
    T("t1", [a(1, 1)], 0, 1), T("t2", [r(1)], 2, 3, snap=True), final(r(1, 1))], **all_levels("G-single-realtime"))
expect("the same on a standby is allowed", [
    T("t1", [a(1, 1)], 0, 1), T("t2", [r(1)], 2, 3, snap=True, standby=True), final(r(1, 1))])
expect("a standby that sees half a transaction", [
    T("t1", [a(1, 1), a(2, 2)], 0, 1), T("t2", [r(1), r(2, 2)], 2, 3, snap=True, standby=True),
    final(r(1, 1), r(2, 2))], **all_levels("G-single"))
expect("a standby that does not show a prefix", [
    T("t1", [a(1, 1)], 0, 1), T("t2", [a(2, 2)], 2, 3), T("r", [r(1), r(2, 2)], 0, 9, snap=True, standby=True),
    final(r(1, 1), r(2, 2))], **all_levels("G-single-realtime"))
expect("a standby that does not show what a transaction that it shows had read", [
    T("t1", [a(1, 1)]), T("t2", [r(1, 1), a(2, 2)]), T("r", [r(1), r(2, 2)], snap=True, standby=True),
    final(r(1, 1), r(2, 2))], **all_levels("G-single"))
expect("a standby that shows less than before", [
    T("t1", [a(1, 1)]), T("r1", [r(1, 1)], 0, 1, snap=True, standby=True), T("r2", [r(1)], 2, 3, snap=True, standby=True),
    final(r(1, 1))], **all_levels("G-single-realtime"))
expect("a standby that sees what nobody has begun", [
    T("r1", [r(1, 1)], 0, 1, snap=True, standby=True), T("t1", [a(1, 1)], 2, 3), final(r(1, 1))],
    **all_levels("G1c-realtime"))
expect("two readers of a standby see two orders", [
    T("w1", [a(1, 1)]), T("w2", [a(2, 2)]), T("r1", [r(1, 1), r(2)], snap=True, standby=True),
    T("r2", [r(1), r(2, 2)], snap=True, standby=True), final(r(1, 1), r(2, 2))], **all_levels("G2"))
expect("a standby's transaction that reads twice, with a commit in between", [
    T("t1", [a(1, 1), a(2, 2)]), T("r1", [r(1), r(2, 2)], standby=True), final(r(1, 1), r(2, 2))], **snapshots("G-single"))
expect("a standby's reader sees another order than the primary's", [
    T("w1", [a(1, 1)]), T("w2", [a(2, 2)]), T("r1", [r(1, 1), r(2)], snap=True),
    T("r2", [r(1), r(2, 2)], snap=True, standby=True), final(r(1, 1), r(2, 2))])
expect("write skew seen halfway from a standby", [
    T("t1", [r(1), r(2), a(1, 1)]), T("t2", [r(2), a(2, 2)]), T("t3", [r(1), r(2, 2)], standby=True),
    final(r(1, 1), r(2, 2))])
expect("serial, but not in the order of the clock", [
    T("t1", [r(2), a(1, 1)], 0, 10), T("t2", [a(2, 2)], 0, 2), T("t3", [r(1), r(3), a(4, 1)], 3, 10),
    final(r(1, 1), r(2, 2), r(4, 1))], strict=["G2-realtime"])
expect("an unknown change that some saw, and others later did not", [
    T("t1", [a(1, 1)], status="info"), T("t2", [r(1, 1)], 1, 2, snap=True), T("t3", [r(1)], 3, 4, snap=True),
    final(r(1, 1))], **all_levels("G-single-realtime"))

# ------------------------------------------------------- inside a transaction

expect("own append is not seen", [T("t1", [a(1, 1), r(1)]), final(r(1, 1))],
       **all_levels("internal"))
expect("own append is not last", [T("t1", [a(1, 1), r(1, 1, 2)]), T("t2", [a(1, 2)]), final(r(1, 1, 2))],
       rc=["G1c", "internal"], rr=["G1c", "internal"], ser=["G1c", "internal"])
expect("own register is not seen", [
    T("t1", [["write", "x", 1, 1], ["register", "x", 0, 0]])], **all_levels("internal"))
expect("own element of a set is not seen", [
    T("t1", [["add", "s", 1], ["set", "s", []]]), final(["set", "s", [1]])], **all_levels("internal"))
expect("what a savepoint undid is still seen", [
    T("t1", [a(1, 1), ["savepoint"], a(1, 2), ["undo"], r(1, 1, 2)]), final(r(1, 1))],
    **all_levels("internal"))
expect("a locked row changes", [
    T("t1", [["lock"], r(1, 1), r(1, 1, 2)]), T("t0", [a(1, 1)]), T("t2", [a(1, 2)]), final(r(1, 1, 2))],
    rc=["internal"], rr=["G-single", "internal"], ser=["G-single", "internal"])
expect("a read that is not repeatable", [
    T("t1", [r(1), r(1, 1)]), T("t2", [a(1, 1)]), final(r(1, 1))], **snapshots("G-single", "internal"))
expect("a phantom in a set", [
    T("t1", [["set", "s", []], ["set", "s", [1]]]), T("t2", [["add", "s", 1]]), final(["set", "s", [1]])],
    **snapshots("G-single", "internal"))

# ----------------------------------------------------------------- other finds

expect("an element twice", [T("t1", [a(1, 1)]), final(r(1, 1, 1))], **all_levels("duplicate"))
expect("an element that nobody wrote", [T("t1", [r(1, 9)])], **all_levels("garbage"))
expect("two orders of one list", [
    T("t1", [a(1, 1)]), T("t2", [a(1, 2)]), T("t3", [r(1, 2)]), final(r(1, 1, 2))],
    rc=["incompatible-order"], rr=["incompatible-order"], ser=["incompatible-order"])
expect("a register's value and version do not belong together", [
    T("t1", [["write", "x", 1, 1]], 0, 1), T("t2", [["write", "x", 2, 2]], 2, 3),
    T("t3", [["register", "x", 1, 2]], 0, 9)], **all_levels("wrong-value"))


# ------------------------------------------- crashes that lose what came last

def crashed(what, txns, *found):
    expect(what, txns, lossy=True, **all_levels(*found))


def E(name, era, ops, start=None, end=None, **more):
    """times follow the eras"""
    return T(name, ops, 20 * era + (start or 0), 20 * era + (19 if end is None else end), era=era, **more)


crashed("nothing was lost", [E("t1", 0, [a(1, 1)]), E("t2", 1, [r(1, 1), a(1, 2)]), final(r(1, 1, 2))])
crashed("the last one was lost", [
    E("t1", 0, [a(1, 1)], 0, 1), E("t2", 0, [r(1, 1), a(1, 2), a(2, 2)], 2, 3), E("t3", 0, [r(1, 1, 2), r(2, 2)], 4, 5),
    E("t4", 1, [r(1, 1), r(2), a(1, 3)]), final(r(1, 1, 3), r(2))])
crashed("an unknown one was lost after it had been seen", [
    E("t1", 0, [a(1, 1)], status="info"), E("t2", 0, [r(1, 1)]), E("t3", 1, [r(1)]), final(r(1))])
crashed("one that was kept had seen its own that it undid", [
    E("t1", 0, [a(1, 1), ["savepoint"], a(1, 2), r(1, 1, 2), ["undo"]], 0, 1), E("t2", 0, [a(1, 3)], 2, 3),
    E("t3", 1, [r(1, 1)]), final(r(1, 1))])
crashed("an unknown one was kept", [
    E("t1", 0, [a(1, 1)], status="info"), E("t2", 1, [r(1, 1)]), final(r(1, 1))])
crashed("losses of two crashes", [
    E("t1", 0, [a(1, 1)], 0, 1), E("t2", 0, [a(1, 2)], 2, 3), E("t3", 1, [a(1, 3)], 0, 1), E("t4", 1, [a(1, 4)], 2, 3),
    E("t5", 2, [r(1, 1, 3)]), final(r(1, 1, 3))])
crashed("half of a transaction was lost", [
    E("t1", 0, [a(1, 1), a(2, 2)]), E("t2", 1, [r(2)]), final(r(1, 1), r(2))], "torn", "G1a")
crashed("one was lost, and one that read it was not", [
    E("t1", 0, [a(1, 1)]), E("t2", 0, [r(1, 1), a(2, 2)]), E("t3", 1, []), final(r(1), r(2, 2))],
    "G1a", "not-a-prefix")
crashed("one was lost, and one that wrote over it was not", [
    E("t1", 0, [a(1, 1)]), E("t2", 0, [a(1, 2), a(2, 2)]), E("t0", 0, [r(1, 1, 2)]), E("t3", 1, []), final(r(1, 2), r(2, 2))],
    "not-a-prefix")
crashed("one was lost, and one that began later was not", [
    E("t1", 0, [a(1, 1)], 0, 1), E("t2", 0, [a(2, 2)], 2, 3), E("t3", 1, []), final(r(1), r(2, 2))], "not-a-prefix")
crashed("one was lost, and one that began after somebody had seen it was not", [
    E("t1", 0, [a(1, 1)], 0, 10), E("r", 0, [r(1, 1)], 1, 2), E("t2", 0, [a(2, 2)], 3, 4), E("t3", 1, []),
    final(r(1), r(2, 2))], "not-a-prefix")
crashed("what was lost is seen after the crash", [
    E("t1", 0, [a(1, 1)]), E("t2", 1, [r(1, 1)]), E("t3", 2, []), final(r(1))], "G1a")
crashed("what was lost is seen in the last era", [
    E("t1", 0, [a(1, 1)]), E("t2", 1, [r(1, 1)], 0, 1), final(r(1))], "G1a")
crashed("what a standby has seen is lost", [
    E("t1", 0, [a(1, 1)]), T("r", [r(1, 1)], 0, 9, standby=True), E("t2", 1, []), final(r(1))], "G1a")
crashed("without a crash nothing is lost", [E("t1", 0, [a(1, 1)]), final(r(1))], "lost")
crashed("lost ones had read each other", [
    E("t1", 0, [a(1, 1), r(2, 2)]), E("t2", 0, [a(2, 2), r(1, 1)]), E("t3", 1, []), final(r(1), r(2))], "G1c")

# --------------------------------------------- long histories, made and spoilt

def serial_history(rng, length):
    """a serial execution; times overlap a little"""
    lists = {k: [] for k in range(4)}
    txns, value = [], 0
    for n in range(length):
        ops = []
        for _ in range(rng.randint(1, 4)):
            k = rng.randrange(4)
            if rng.random() < 0.5:
                value += 1
                lists[k].append(value)
                ops.append(a(k, value))
            else:
                ops.append(r(k, *lists[k]))
        txns.append(T(str(n), ops, 10 * n, 10 * n + 12))
    txns.append(T("final", [r(k, *lists[k]) for k in lists], 10 * length + 20, 10 * length + 30, final=True))
    return txns


for seed in range(20):
    rng = random.Random(seed)
    txns = serial_history(rng, 200)
    got = [kinds("rc", txns), kinds("rr", txns), kinds("ser", txns), kinds("ser", txns, True)]
    ok(got == [[]] * 4, "serial history %d is clean" % seed, str(got))
    # let one read of a key miss the last element, which had long been there
    spoilt = [(t, op) for t in txns[50:-1] for n, op in enumerate(t["ops"])
              if op[0] == "list" and len(op[2]) > 4 and not any(o[1] == op[1] for o in t["ops"] if o is not op)
              and not any(op[2][-1] in o for u in txns for o in u["ops"]
                          if o[0] == "append" and u["start"] > t["start"] - 30)]
    if spoilt:
        t, op = rng.choice(spoilt)
        op[2].pop()
        got = kinds("rr", txns)
        ok(any(k.startswith("G-") for k in got), "a stale read in history %d is found" % seed, str(got))

print("1..%d" % number)
raise SystemExit(1 if failed else 0)
