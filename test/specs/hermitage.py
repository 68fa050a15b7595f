#!/usr/bin/python3
"""hermitage.py: write the isolation specs of the Hermitage catalogue.

    test/specs/hermitage.py            writes specs/hermitage-*.spec
    test/specs/hermitage.py --check    only says whether they are as it would write them

One file for each isolation level and each place where the two rows may be:

    heap       both in a heap table: the control, PostgreSQL's own answers
    mot        both in a memory-optimized table
    mot-heap   row 1 in a memory-optimized table, row 2 and new rows in a heap table
    heap-mot   the other way round

All of them read through the same name and write the same rows in the same
interleavings, so "diff expected/hermitage-heap-rc.out
expected/hermitage-mot-rc.out" shows what differs in behaviour beside the
names of tables.  Where the answer differs from heap's, NOTES says why that is
right, and the note stands in the spec before its permutation.

The anomalies and their interleavings are those of
https://github.com/ept/hermitage (Martin Kleppmann); the names are Adya's.
"""

import os
import sys

LEVELS = {"rc": "READ COMMITTED", "rr": "REPEATABLE READ", "ser": "SERIALIZABLE"}
PLACES = ["heap", "mot", "mot-heap", "heap-mot"]

# ------------------------------------------------------------------ anomalies
#
# name, what it is, steps.  A step is "<session><what>"; STEPS has the SQL.
# Every session begins before the first step and ends in the one named.

ANOMALIES = [
    ("G0", "write cycles: two transactions' writes interleave",
     "1a11 2a12 1b21 1c 1all 2b22 2c 1all"),
    ("G1a", "aborted reads", "1a101 2all 1r 2all 2c"),
    ("G1b", "intermediate reads", "1a101 2all 1a11 1c 2all 2c"),
    ("G1c", "circular information flow", "1a11 2b22 1getb 2geta 1c 2c 1all"),
    ("OTV", "observed transaction vanishes",
     "1a11 1b19 2a12 1c 3geta 2b18 3getb 2c 3getb 3geta 3c"),
    ("PMP", "predicate-many-preceders, by a read", "1by30 2new30 2c 1mod3 1c"),
    ("PMP-write", "predicate-many-preceders, by a write", "1plus10 2del20 1c 2by20 2c 1all"),
    ("P4", "lost update", "1geta 2geta 1a11 2a12 1c 2c 1all"),
    ("P4-add", "lost update, computed in the statement", "1geta 2geta 1adda 2adda 1c 2c 1all"),
    ("G-single", "read skew", "1geta 2geta 2getb 2a12 2b18 2c 1getb 1c"),
    ("G-single-predicate", "read skew, by predicates", "1mod5 2set12 2c 1mod3 1c"),
    ("G-single-write", "read skew, by a write that follows the commit",
     "1geta 2all 2a12 2b18 2c 1del20 1c 1all"),
    ("G-single-write-wait", "read skew, by a write that meets the other's",
     "1geta 2all 2a12 2b18 1del20 2c 1c 1all"),
    ("G2-item", "write skew", "1both 2both 1a11 2b21 1c 2c 1all"),
    ("G2-item-reverse", "write skew, the other one commits first", "1both 2both 1a11 2b21 2c 1c 1all"),
    ("G2-item-cross", "write skew, each reads only what the other writes", "1geta 2getb 1b21 2a11 1c 2c 1all"),
    ("G2-item-cross-reverse", "the same, the other one commits first", "1geta 2getb 1b21 2a11 2c 1c 1all"),
    ("G2-item-late", "write skew, one reads and commits after the other's commit",
     "1getb 2geta 2b22 1a11 2c 1c 1all"),
    ("G2", "anti-dependency cycle by predicates: each inserts what the other looked for",
     "1mod3 2mod3 1new30 2new42 1c 2c 1mod3"),
    ("G2-reverse", "the same, the other one commits first", "1mod3 2mod3 1new30 2new42 2c 1c 1mod3"),
    ("G2-two-edges", "anti-dependency cycle through a transaction that only reads",
     "1all 2addb 2c 3all 3c 1a0 1c 1all"),
]

A = "WHERE id = 1"
B = "WHERE id = 2"
STEPS = {
    "all": "SELECT * FROM {t} ORDER BY id;",
    "both": "SELECT * FROM {t} WHERE id IN (1, 2) ORDER BY id;",
    "geta": "SELECT value FROM {t} " + A + ";",
    "getb": "SELECT value FROM {t} " + B + ";",
    "by20": "SELECT * FROM {t} WHERE value = 20 ORDER BY id;",
    "by30": "SELECT * FROM {t} WHERE value = 30 ORDER BY id;",
    "mod3": "SELECT * FROM {t} WHERE value % 3 = 0 ORDER BY id;",
    "mod5": "SELECT * FROM {t} WHERE value % 5 = 0 ORDER BY id;",
    "a0": "UPDATE {a} SET value = 0 " + A + ";",
    "a11": "UPDATE {a} SET value = 11 " + A + ";",
    "a12": "UPDATE {a} SET value = 12 " + A + ";",
    "a101": "UPDATE {a} SET value = 101 " + A + ";",
    "adda": "UPDATE {a} SET value = value + 1 " + A + ";",
    "addb": "UPDATE {b} SET value = value + 5 " + B + ";",
    "b18": "UPDATE {b} SET value = 18 " + B + ";",
    "b19": "UPDATE {b} SET value = 19 " + B + ";",
    "b21": "UPDATE {b} SET value = 21 " + B + ";",
    "b22": "UPDATE {b} SET value = 22 " + B + ";",
    "new30": "INSERT INTO {b} VALUES (3, 30);",
    "new42": "INSERT INTO {b} VALUES (4, 42);",
    "plus10": "UPDATE {each} SET value = value + 10;",
    "del20": "DELETE FROM {each} WHERE value = 20;",
    "set12": "UPDATE {each} SET value = 12 WHERE value = 10;",
    "c": "COMMIT;",
    "r": "ROLLBACK;",
}

# ---------------------------------------------------- differences from heap

FIRST_COMMITTER = ("at this level memory-optimized rows are locked by the commit, not by the statement, so nobody "
                   "waits for a client's transaction. %s Either way the first committer wins and the other one "
                   "gets 40001, so no update is lost.")
AT_COMMIT = FIRST_COMMITTER % "The second writer does not wait, and is told at its own commit."
AT_ONCE = FIRST_COMMITTER % "The second writer does not wait, and is told when it meets the next changed row."
NOTES = {}


def note(places, levels, anomalies, text):
    for place in places.split():
        for level in levels.split():
            for anomaly in anomalies.split():
                NOTES[place, level, anomaly] = text


note("mot mot-heap", "rr ser", "G0 OTV", AT_ONCE)
note("mot mot-heap", "rr ser", "P4 P4-add", AT_COMMIT)
note("mot heap-mot", "rr ser", "PMP-write G-single-write-wait", AT_COMMIT)
note("mot mot-heap heap-mot", "ser", "G2-two-edges",
     "what was read is validated by the commit, so that is where the error comes, not the update.")


# ------------------------------------------------------------------- writing

def tables(place):
    if place == "heap":
        return {"t": "ht", "a": "ht", "b": "ht"}
    if place == "mot":
        return {"t": "mt", "a": "mt", "b": "mt"}
    if place == "mot-heap":
        return {"t": "rows", "a": "mt", "b": "ht"}
    return {"t": "rows", "a": "ht", "b": "mt"}


def sql(what, place):
    names = tables(place)
    text = STEPS[what]
    if "{each}" in text:
        both = [names["a"]] if names["a"] == names["b"] else [names["a"], names["b"]]
        return " ".join(text.replace("{each}", t) for t in both)
    return text.format(**names)


def wrap(text, width=100):
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) + 1 > width:
            lines.append(line)
            line = word
        else:
            line = (line + " " + word).strip()
    return lines + [line]


def spec(place, level):
    names = tables(place)
    kinds = {"ht": "CREATE TABLE ht (id int PRIMARY KEY, value int);",
             "mt": "CREATE FOREIGN TABLE mt (id int PRIMARY KEY, value int) SERVER mot_server;"}
    used = sorted({names["a"], names["b"]})
    out = ["# Written by test/specs/hermitage.py: change that, not this.",
           "#",
           "# The Hermitage catalogue of anomalies at " + LEVELS[level] + ", "
           + {"heap": "heap table (the control)", "mot": "memory-optimized table",
              "mot-heap": "row 1 memory-optimized, the others heap",
              "heap-mot": "row 1 heap, the others memory-optimized"}[place] + ".",
           "", "setup", "{"]
    out += ["\t" + kinds[t] for t in used]
    out += ["\tINSERT INTO %s VALUES (1, 10);" % names["a"],
            "\tINSERT INTO %s VALUES (2, 20);" % names["b"]]
    if names["t"] == "rows":
        out += ["\tCREATE VIEW rows AS SELECT * FROM ht UNION ALL SELECT * FROM mt;"]
    out += ["}", "teardown", "{"]
    if names["t"] == "rows":
        out += ["\tDROP VIEW rows;"]
    out += ["\tDROP %s %s;" % ("TABLE" if t == "ht" else "FOREIGN TABLE", t) for t in used]
    out += ["}"]

    for s in "123":
        out += ["", "session s" + s,
                "step s%sbegin\t{ BEGIN ISOLATION LEVEL %s; }" % (s, LEVELS[level])]
        did = []
        for _, _, steps in ANOMALIES:
            for step in steps.split():
                if step[0] == s and step[1:] not in did:
                    did.append(step[1:])
        out += ["step s%s%s\t{ %s }" % (s, what, sql(what, place)) for what in did]

    for name, what, steps in ANOMALIES:
        out += ["", "# %s: %s" % (name, what)]
        if (place, level, name) in NOTES:
            out += ["# " + line for line in wrap("Unlike heap: " + NOTES[place, level, name])]
        list_ = steps.split()
        sessions = sorted({s[0] for s in list_})
        out += ["permutation " + " ".join(["s%sbegin" % s for s in sessions] + ["s" + step for step in list_])]
    return "\n".join(out) + "\n"


def main():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    stale = []
    for place in PLACES:
        for level in LEVELS:
            path = os.path.join(top, "specs", "hermitage-%s-%s.spec" % (place, level))
            text = spec(place, level)
            if "--check" in sys.argv[1:]:
                if not os.path.exists(path) or open(path).read() != text:
                    stale.append(os.path.basename(path))
            else:
                with open(path, "w") as f:
                    f.write(text)
    if stale:
        print("not as written by hermitage.py: " + " ".join(stale))
        sys.exit(1)


main()
