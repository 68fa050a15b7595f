#!/usr/bin/python3
"""checker.py: does a history keep what its isolation level promises?

    checker.py FILE ...        one line for each anomaly, status 1 if there was one

A history is a file of JSON objects, one a line.  The first describes the run:

    {"level": "rc" | "rr" | "ser", "strict": true | false}

strict: SERIALIZABLE also keeps the order in which transactions followed one
another on the clock (memory-optimized tables do, PostgreSQL's own SSI does
not).  "async": true: what was acknowledged may be lost by a crash, see below.
Each other line is a transaction as its client saw it:

    id       any name; client: who ran it
    start    when its BEGIN was sent, end: when the answer to its COMMIT came
             (any unit, one clock)
    status   ok (committed), fail (rolled back), info (nobody knows: the
             connection broke)
    snap     true: one statement only, so even at READ COMMITTED one snapshot
    standby  true: read from a standby, which may be behind
    era      how many crashes the server had behind it (async only)
    ops      what it did, in order:
             ["append", key, element]    to a list
             ["list", key, [elements]]   the list as read
             ["write", key, value, version]   a register and the number its row
                                         gave to this write (from 1; 0 is "no row")
             ["register", key, value, version]
             ["add", key, element]       to a set, one row for each element
             ["set", key, [elements]]    the set as read, by a range of rows
             ["lock"]                    the read that follows has locked its row
             ["savepoint"], ["undo"]     what lies between was rolled back

Every element or value is written once in a history, so it names its writer.
Lists show the order of their versions themselves, registers count them, and
the recorder ends with transactions that read all there is.

The theory is Adya's (PhD thesis, 1999), the way lists show versions is
Elle's (Kingsbury and Alvaro, VLDB 2020).  Transactions are nodes; edges are

    ww   the second overwrote what the first had written
    wr   the second read what the first had written
    rw   the second overwrote (or added to) what the first had read
    rt   the first had ended when the second began

READ COMMITTED forbids cycles of ww, wr and rt, and of rw from a statement
that is a transaction of its own.  REPEATABLE READ is snapshot isolation:
every cycle has two rw edges in a row, so all others are forbidden
(a lost update is one).  SERIALIZABLE forbids all.

A standby shows prefixes of the log, at every level.  The log has transactions
in an order that keeps ww, wr and rt between those of the primary, but for two
that do not know of each other it need not be the one in which the primary's
readers came to see them.  So the readers of the standby are judged apart from
those of the primary, with the primary's rw edges left out: then every cycle
is forbidden.  What one of them has seen, those that begin later see, too.

With asynchronous commits, a crash takes what was acknowledged last, but what
is left is again a prefix of the log: whole transactions, none of which comes
after a lost one by ww, wr and rt.  What happened up to a crash, with the lost
transactions and on top of what had been left by the crashes before, is one
history each, and keeps all rules; and what is left at the end is one.
"""

import json
import sys
from collections import defaultdict


class Anomaly:
    def __init__(self, kind, text):
        self.kind = kind
        self.text = text

    def __str__(self):
        return "%s: %s" % (self.kind, self.text)


# --------------------------------------------------------- inside transactions

def kept_ops(txn):
    """the operations that were not rolled back to a savepoint"""
    kept, marks = [], []
    for op in txn["ops"]:
        if op[0] == "savepoint":
            marks.append(len(kept))
        elif op[0] == "undo":
            del kept[marks.pop():]
        else:
            kept.append(op)
    return kept


def check_internal(txn, level):
    """A transaction sees its own changes, nothing of others' changes to rows
    it has changed or locked, and from REPEATABLE READ on always one state."""
    known = {}      # key -> (what it is known to be, or None), own elements after that
    marks = []
    locking = False
    for op in txn["ops"]:
        kind = op[0]
        if kind == "savepoint":
            marks.append({k: (b, list(o)) for k, (b, o) in known.items()})
        elif kind == "undo":
            known = marks.pop()
        elif kind == "lock":
            locking = True
        elif kind in ("append", "add", "write"):
            base, own = known.get(op[1], (None, []))
            if kind == "write":
                known[op[1]] = ((op[2], op[3]), [])
            else:
                known[op[1]] = (base, own + [op[2]])
        else:
            seen = (op[2], op[3]) if kind == "register" else op[2]
            base, own = known.get(op[1], (None, []))
            if kind == "register":
                good = base is None or seen == base
            elif kind == "set":
                good = set(own) <= set(seen)
                good = good and (base is None or level == "rc" or set(seen) == set(base) | set(own))
            else:
                good = seen[len(seen) - len(own):] == own if base is None else seen == base + own
            if not good:
                yield Anomaly("internal", "transaction %s read %s of %s, but had %s and then made %s"
                              % (txn["id"], seen, op[1], base, own))
            # at READ COMMITTED only what is locked cannot change; a row that
            # is not there is not locked
            locking = locking and (op[3] > 0 if kind == "register" else seen != [])
            if level != "rc" or locking or (own and kind == "list"):
                known[op[1]] = (seen, [])
            locking = False


# ------------------------------------------------------------------- versions

class Versions:
    """Who wrote what, and in which order."""

    def __init__(self):
        self.writer = {}            # (key, element) -> transaction's index
        self.aborted = {}           # the same for what was rolled back
        self.order = {}             # key -> elements in the order of versions
        self.place = {}             # (key, element) -> place in that order
        self.anomalies = []
        self.read_by = defaultdict(list)    # key -> [(reader, elements)]

    def collect(self, txns):
        for i, txn in enumerate(txns):
            kept = kept_ops(txn) if txn["status"] != "fail" else []
            for op in txn["ops"]:
                if op[0] in ("append", "add", "write"):
                    where = self.writer if op in kept else self.aborted
                    where[op[1], op[2]] = i
            if txn["status"] == "fail":
                continue
            for op in kept:
                if op[0] in ("list", "set"):
                    self.read_by[op[1]].append((i, op))
                elif op[0] == "register":
                    self.read_by[op[1]].append((i, op))

    def say(self, kind, text):
        self.anomalies.append(Anomaly(kind, text))

    def order_lists(self, txns):
        for key, reads in self.read_by.items():
            lists = [(i, op[2]) for i, op in reads if op[0] == "list"]
            if not lists:
                continue
            longest = max((elements for _, elements in lists), key=len)
            self.order[key] = longest
            if len(set(longest)) != len(longest):
                self.say("duplicate", "key %s has an element twice: %s" % (key, longest))
            for i, elements in lists:
                if elements != longest[:len(elements)]:
                    self.say("incompatible-order", "transaction %s read %s of key %s, others %s"
                             % (txns[i]["id"], elements, key, longest))

    def order_registers(self, txns):
        versions = defaultdict(dict)
        for i, txn in enumerate(txns):
            if txn["status"] == "fail":
                continue
            for op in kept_ops(txn):
                if op[0] != "write":
                    continue
                other = versions[op[1]].setdefault(op[3], op[2])
                if other != op[2]:
                    self.say("lost-update", "%s and %s (transaction %s) are both version %s of key %s"
                             % (other, op[2], txn["id"], op[3], op[1]))
        for key, values in versions.items():
            self.order[key] = [values[n] for n in sorted(values)]
        for key, reads in self.read_by.items():
            for i, op in reads:
                if op[0] == "register" and op[3] > 0 and versions[key].get(op[3], op[2]) != op[2]:
                    self.say("wrong-value", "transaction %s read %s as version %s of key %s, written was %s"
                             % (txns[i]["id"], op[2], op[3], key, versions[key][op[3]]))

    def look_for_aborted(self, txns):
        for key, reads in self.read_by.items():
            for i, op in reads:
                for element in (op[2] if op[0] != "register" else [op[2]] if op[3] > 0 else []):
                    if (key, element) in self.writer:
                        continue
                    if (key, element) not in self.aborted:
                        self.say("garbage", "transaction %s read %s of key %s, which nobody wrote"
                                 % (txns[i]["id"], element, key))
                    elif self.aborted[key, element] != i:
                        self.say("G1a", "transaction %s read %s of key %s, which transaction %s rolled back"
                                 % (txns[i]["id"], element, key, txns[self.aborted[key, element]]["id"]))

    def look_for_intermediate(self, txns):
        for i, txn in enumerate(txns):
            if txn["status"] == "fail":
                continue
            writes = defaultdict(list)
            for op in kept_ops(txn):
                if op[0] in ("append", "write", "add"):
                    writes[op[1]].append(op[2])
            for key, elements in writes.items():
                if len(elements) < 2:
                    continue
                for reader, op in self.read_by[key]:
                    if reader == i:
                        continue
                    if op[0] == "list":
                        seen = [e for e in elements if e in set(op[2])]
                        part = 0 < len(seen) < len(elements)
                    elif op[0] == "set":
                        part = 0 < len([e for e in elements if e in op[2]]) < len(elements)
                    else:
                        part = op[2] in elements[:-1]
                    if part:
                        self.say("G1b", "transaction %s read %s of key %s in the middle of transaction %s"
                                 % (txns[reader]["id"], op[2], key, txn["id"]))

    def look_for_lost(self, txns):
        """What was committed is there at the end (the last reads saw all)."""
        final = {}
        for key, reads in self.read_by.items():
            for i, op in reads:
                if op[0] in ("list", "set") and txns[i].get("final"):
                    final[key] = set(op[2])
        for (key, element), i in self.writer.items():
            if key in final and txns[i]["status"] == "ok" and element not in final[key]:
                self.say("lost", "%s of key %s, which transaction %s committed, is not there at the end"
                         % (element, key, txns[i]["id"]))


# ---------------------------------------------------------------------- graph

def build_edges(txns, v, level):
    """(kind, from, to) -> why; unknown transactions count when they were seen"""
    edges = {}

    def edge(kind, a, b, why):
        if a is not None and b is not None and a != b:
            edges.setdefault((kind, a, b), why)

    for key, order in v.order.items():
        writers = [v.writer.get((key, e)) for e in order]
        v.place.update({(key, e): n for n, e in enumerate(order)})
        for n in range(1, len(order)):
            edge("ww", writers[n - 1], writers[n], "%s before %s in key %s" % (order[n - 1], order[n], key))

    sets = defaultdict(list)
    for (key, element), i in v.writer.items():
        if key not in v.order:
            sets[key].append((element, i))

    for key, reads in v.read_by.items():
        order = v.order.get(key, [])
        for i, op in reads:
            if op[0] == "set":
                seen = set(op[2])
                for element, writer in sets[key]:
                    if element in seen:
                        edge("wr", writer, i, "%s in set %s" % (element, key))
                    elif txns[writer]["status"] == "ok" or (key, element) in v.seen:
                        edge("rw", i, writer, "%s not yet in set %s" % (element, key))
                continue
            if op[0] == "list":
                n = len(op[2])
            else:
                n = v.place[key, op[2]] + 1 if (key, op[2]) in v.place else 0
            # own changes in between: what was read of others lies before them
            while n > 0 and v.writer.get((key, order[n - 1])) == i:
                n -= 1
            if n > 0:
                edge("wr", v.writer.get((key, order[n - 1])), i, "%s of key %s" % (order[n - 1], key))
            while n < len(order) and v.writer.get((key, order[n])) == i:
                n += 1
            if n < len(order) and (level != "rc" or txns[i].get("snap")):
                edge("rw", i, v.writer.get((key, order[n])), "read key %s before %s" % (key, order[n]))
    if level == "rc":
        edges = {e: why for e, why in edges.items() if e[0] != "rw" or txns[e[1]].get("snap")}
    return edges


def time_edges(txns, first, begins):
    """Real-time order with few edges: through nodes that stand for moments.
    begins: which ones come after what had ended before them"""
    events = []
    for i, txn in enumerate(txns):
        if txn["status"] == "fail":
            continue
        if begins(txn):
            events.append((txn["start"], 0, i))
        if txn["status"] == "ok":
            events.append((txn["end"], 1, i))
    # a start and an end of one moment are not in order: starts first
    events.sort()
    node = None
    for _, ended, i in events:
        if ended:
            if node is not None:
                yield ("rt", node, first + 1)
            first += 1
            node = first
            yield ("rt", i, node)
        elif node is not None:
            yield ("rt", node, i)


def with_time(txns, edges):
    """the primary's transactions come after all that had ended, the standby's
    after those of the standby"""
    timed = dict(edges)
    timed.update({e: None for e in time_edges(txns, len(txns), lambda txn: not txn.get("standby"))})
    if any(txn.get("standby") for txn in txns):
        only = [txn if txn.get("standby") else dict(txn, status="fail") for txn in txns]
        timed.update({e: None for e in time_edges(only, 3 * len(txns), lambda txn: True)})
    return timed


def components(graph):
    """strongly connected components of more than one node (Tarjan, no recursion)"""
    index, low, on, stack, found = {}, {}, set(), [], []
    for root in list(graph):
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, targets = work[-1]
            for t in targets:
                if t not in index:
                    index[t] = low[t] = len(index)
                    stack.append(t)
                    on.add(t)
                    work.append((t, iter(graph.get(t, ()))))
                    break
                if t in on:
                    low[node] = min(low[node], index[t])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        t = stack.pop()
                        on.discard(t)
                        part.append(t)
                        if t == node:
                            break
                    if len(part) > 1:
                        found.append(set(part))
    return found


def shortest_cycle(graph, part):
    best = None
    for start in list(part)[:50]:
        before, queue = {start: None}, [start]
        for node in queue:
            if start in graph[node]:
                path = [node]
                while before[path[-1]] is not None:
                    path.append(before[path[-1]])
                path.reverse()
                if best is None or len(path) < len(best):
                    best = path
                break
            for t in graph[node]:
                if t in part and t not in before:
                    before[t] = node
                    queue.append(t)
    return best


def find_cycles(txns, edges, adjacent):
    """Cycles; adjacent: such with two rw edges in a row count, too.  A node is
    (transaction, came here by rw)."""
    graph = defaultdict(dict)
    for (kind, a, b), why in edges.items():
        for by_rw in (False,) if adjacent else (False, True):
            if adjacent or not (by_rw and kind == "rw"):
                target = (b, kind == "rw" and not adjacent)
                graph[a, by_rw].setdefault(target, (kind, why))
    for part in components(graph):
        cycle = shortest_cycle(graph, part)
        steps, kinds = [], []
        for n, (i, by_rw) in enumerate(cycle):
            kind, why = graph[i, by_rw][cycle[(n + 1) % len(cycle)]]
            kinds.append(kind)
            if i < len(txns):
                steps.append("%s -%s-> %s" % (txns[i]["id"], kind, "(%s) " % why if why else ""))
        rw = kinds.count("rw")
        if rw == 0:
            name = "G0" if "wr" not in kinds else "G1c"
        elif rw == 1:
            name = "G-single"
        else:
            name = "G2" if adjacent else "G-nonadjacent"
        if "rt" in kinds:
            name += "-realtime"
        yield Anomaly(name, " ".join(steps) + str(txns[cycle[0][0]]["id"] if cycle[0][0] < len(txns) else ""))


def changed(txn):
    """what it has left behind, if it committed"""
    return {(op[1], op[2]) for op in kept_ops(txn) if op[0] in ("append", "write", "add")}


def seen_by(txns):
    """every element that one of these has read"""
    seen = set()
    for txn in txns:
        for op in txn["ops"] if txn["status"] == "ok" else ():
            if op[0] in ("list", "set"):
                seen.update((op[1], e) for e in op[2])
            elif op[0] == "register":
                seen.add((op[1], op[2]))
    return seen


def decide_unknown(txns, seen):
    """A transaction of unknown outcome is one that committed if somebody saw
    its changes; else it does not matter, and counts as failed."""
    return [dict(txn, status="fail") if txn["status"] == "info" and not changed(txn) & seen else txn
            for txn in txns]


def check_history(header, txns):
    """all anomalies of a history in which nothing was lost"""
    level = header["level"]
    txns = decide_unknown(txns, seen_by(txns))
    found = []
    for txn in txns:
        if txn["status"] != "fail":
            found += check_internal(txn, level)
    v = Versions()
    v.collect(txns)
    v.seen = {(key, e) for key, reads in v.read_by.items() for _, op in reads
              if op[0] == "set" for e in op[2]}
    v.order_lists(txns)
    v.order_registers(txns)
    v.look_for_aborted(txns)
    v.look_for_intermediate(txns)
    v.look_for_lost(txns)
    found += v.anomalies

    standby = {i for i, txn in enumerate(txns) if txn.get("standby")}
    edges = build_edges(txns, v, level)
    here = {e: why for e, why in edges.items() if not standby & set(e[1:])}
    timed = with_time([dict(txn, status="fail") if txn.get("standby") else txn for txn in txns], here)
    if level == "rc":
        found += find_cycles(txns, timed, True)
    else:
        # SERIALIZABLE is snapshot isolation, too
        found += find_cycles(txns, timed, False)
        if level == "ser":
            found += find_cycles(txns, timed if header.get("strict") else here, True)
    if standby:
        there = {e: why for e, why in edges.items() if e[0] != "rw" or e[1] in standby}
        known = {str(a) for a in found}
        found += [a for a in find_cycles(txns, with_time(txns, there), True) if str(a) not in known]
    return found


def log_order(txns, header):
    """who has to come after whom in the log: from -> [to]"""
    v = Versions()
    v.collect(txns)
    v.seen = set()
    v.order_lists(txns)
    graph = defaultdict(list)
    for _, a, b in with_time(txns, {e: None for e in build_edges(txns, v, header["level"]) if e[0] != "rw"}):
        graph[a].append(b)
    return graph


def check_lossy(header, txns):
    """a history of eras, each of which may have lost its last commits"""
    found = []
    final = [txn for txn in txns if txn.get("final")]
    kept = seen_by(final)
    survived = {}
    for txn in txns:
        changes = changed(txn) if txn["status"] != "fail" else set()
        survived[txn["id"]] = changes <= kept
        if changes & kept and not changes <= kept:
            found.append(Anomaly("torn", "a crash left %s of transaction %s and took %s"
                                 % (sorted(changes & kept), txn["id"], sorted(changes - kept))))
    # what these have seen has to stay
    standby = [txn for txn in txns if txn.get("standby")]
    eras = sorted({txn["era"] for txn in txns if "era" in txn})
    before = []
    for era in eras:
        these = [txn for txn in txns if txn.get("era") == era and not txn.get("final")]
        these = decide_unknown(these, seen_by(these) | kept)
        if era == eras[-1]:
            before += these
        else:
            # lost ones of eras before count as failed, so whoever sees them sees too much
            found += check_history(header, before + these)
            graph = log_order(these, header)
            lost = [i for i, txn in enumerate(these) if txn["status"] != "fail" and not survived[txn["id"]]]
            gone = {change for i in lost for change in changed(these[i])}
            because = {i: i for i in lost}
            for i in lost:
                for to in graph[i]:
                    if to not in because:
                        because[to] = because[i]
                        lost.append(to)
                if i < len(these) and i != because[i] and these[i]["status"] == "ok" and \
                        survived[these[i]["id"]] and changed(these[i]):
                    found.append(Anomaly("not-a-prefix", "transaction %s was lost and %s, which followed it, was not"
                                         % (these[because[i]]["id"], these[i]["id"])))
            before += [txn if txn["status"] != "ok" or survived[txn["id"]] and not seen_by([txn]) & gone
                       else dict(txn, status="fail") for txn in these]
    return found + check_history(header, before + standby + final)


def check(header, txns):
    """all anomalies of a history"""
    return check_lossy(header, txns) if header.get("async") else check_history(header, txns)


def load(path):
    with open(path) as f:
        lines = [json.loads(line) for line in f if line.strip()]
    return lines[0], lines[1:]


def main():
    bad = False
    for path in sys.argv[1:]:
        for anomaly in check(*load(path)):
            print("%s: %s" % (path, anomaly))
            bad = True
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
