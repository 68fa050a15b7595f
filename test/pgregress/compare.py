#!/usr/bin/python3
"""compare.py: the server's regression files, statement by statement.

    compare.py mark SQL TO              each file of SQL with a mark behind each statement
    compare.py compare OUT CAUSES file ... -- [shown ...]
                                        OUT/heap/*.out against OUT/mot/*.out

A mark is psql's \\echo where nothing is under way: no statement, no quote, no
parenthesis.  So what was printed between two marks is one statement's answer (or those of
the few that share a line), and an answer too much or too little moves nobody else's.

An answer that differs is "explained" if the first rule of CAUSES that fits says so
and "wrong" if none does.  A rule is a line of its table,

    | cause | where | pattern | why |

where "where" says what the pattern (a regular expression) is looked for in: "statement",
"mot" (the lines that only mot has), "heap" (those that only heap has), "file" (its name); "order" and "plan"
have no pattern: the same lines in another order without ORDER BY; an EXPLAIN.
"""

import collections
import difflib
import os
import re
import sys

MARK = "\\echo ~~~ "

TOKEN = re.compile(r"""
    (?P<comment>--[^\n]*)
  | (?P<open>/\*)
  | (?P<estring>\b[eE]'(?:[^'\\]|\\.|'')*')
  | (?P<string>'(?:[^']|'')*')
  | (?P<ident>"(?:[^"]|"")*")
  | (?P<dollar>\$(?:[A-Za-z_\x80-\uffff][A-Za-z_0-9\x80-\uffff]*)?\$)
  | (?P<word>[A-Za-z_\x80-\uffff][A-Za-z_0-9$\x80-\uffff]*)
  | (?P<meta>\\[^\n]*)
  | (?P<other>.)
""", re.X | re.S)


def statements(text):
    """Parts of the text behind each of which psql has nothing under way."""
    start = pos = 0
    depth = begin = 0
    words = []
    pending = False             # something is in psql's query buffer
    while pos < len(text):
        m = TOKEN.match(text, pos)
        kind, tok = m.lastgroup, m.group()
        pos = m.end()
        if kind == "open":
            level = 1
            while level and pos < len(text):
                if text.startswith("/*", pos):
                    level += 1
                    pos += 2
                elif text.startswith("*/", pos):
                    level -= 1
                    pos += 2
                else:
                    pos += 1
        elif kind == "dollar":
            end = text.find(tok, pos)
            pos = len(text) if end < 0 else end + len(tok)
            pending = True
        elif kind == "word":
            word = tok.lower()
            words.append(word)
            pending = True
            if words[0] == "create" and re.match(r"create (or replace )?(function|procedure)", " ".join(words[:4])):
                if word == "begin":
                    begin += 1
                elif word == "case" and begin:
                    begin += 1
                elif word == "end" and begin:
                    begin -= 1
        elif kind == "meta":
            if tok.startswith("\\;"):
                pos = m.start() + 2
                continue
            if re.match(r"\\(g|gx|gset|gexec|gdesc|crosstabview|watch|r|reset|p)\b", tok) and "\\p" not in tok[:2]:
                pending, depth, begin, words = False, 0, 0, []
        elif kind == "other":
            if tok == ";" and depth == 0 and begin == 0:
                copy = words[:1] == ["copy"] and words[-6:].count("stdin") or \
                    words[:1] == ["copy"] and "from" in words and words[words.index("from"):][1:2] == ["stdin"]
                pending, words = False, []
                if copy:
                    data = re.compile(r"[^\n]*\n(?:(?!\\\.)(?!(?:copy|select|drop|begin|rollback|set|reset|alter|create|truncate|insert|grant)\b|--)"
                                      r"[^\n]*\n)*\\\.\n", re.I).match(text, pos)
                    if data:
                        pos = data.end() - 1
            elif tok in "([":
                depth += tok == "("
                pending = True
            elif tok == ")":
                depth = max(0, depth - 1)
                pending = True
            elif not tok.isspace():
                pending = True
        elif kind != "comment":
            pending = True
        if not pending and pos < len(text) and text[pos] == "\n" and text[start:pos].strip():
            pos += 1
            yield text[start:pos]
            start = pos
    if start < len(text):
        yield text[start:]


def mark(src, to):
    for name in sorted(os.listdir(src)):
        if not name.endswith(".sql"):
            continue
        text = open(os.path.join(src, name), encoding="latin-1").read()
        with open(os.path.join(to, name), "w", encoding="latin-1") as out:
            n = 0
            for part in statements(text):
                n += 1
                # (psql as of 15.19 or so takes what follows for data although the server has refused)
                if re.search(r"(?:^|\n)\s*copy\b[^;']*\bfrom\s+stdin\b[^;']*(?:'[^']*'[^;']*)*;[^\n]*\n$", part, re.I):
                    part += "\\.\n"
                out.write(part + ("" if part.endswith("\n") else "\n") + "%s%d\n" % (MARK, n))


def answers(path):
    """number -> what psql printed up to that mark"""
    found, lines = {}, []
    for line in open(path, encoding="latin-1").read().split("\n"):
        if line.startswith(MARK):
            found[int(line[len(MARK):])] = lines
            lines = []
        elif not line.startswith("~~~ "):
            lines.append(line)
    found[0] = lines
    return found


def normal(lines):
    """what differs from run to run"""
    text = "\n".join(lines)
    text = re.sub(r"\b(pg_toast(_temp_\d+)?)[._]+(pg_toast_)?\d+", r"\1", text)
    text = re.sub(r"\(actual time=[^)]*\)|Planning Time: .*|Execution Time: .*|Buffers: .*", "", text)
    text = re.sub(r"base/\d+/[t\d_]+", "base/", text)
    return text.split("\n")


def rules(path):
    found = []
    for line in open(path):
        m = re.match(r"\| ([^|]+) \| (statement|mot|heap|file|order|plan) \| (?:`(.*)`)? *\| (.*) \|$", line)
        if m:
            found.append((m.group(1), m.group(2), re.compile(m.group(3).replace(r"\|", "|"), re.I | re.M) if m.group(3) else None))
    return found


def cause(rules, name, heap, mot):
    diff = list(difflib.ndiff(heap, mot)) if len(heap) + len(mot) < 2000 else \
        ["- " + x for x in heap if x not in set(mot)] + ["+ " + x for x in mot if x not in set(heap)]
    only = {"heap": "\n".join(d[2:] for d in diff if d.startswith("- ")),
            "mot": "\n".join(d[2:] for d in diff if d.startswith("+ ")),
            "file": name, "statement": "\n".join(heap)}
    for what, where, pattern in rules:
        if where == "order":
            if sorted(heap) == sorted(mot):
                return what
        elif where == "plan":
            if re.search(r"^\s*explain\b|QUERY PLAN", "\n".join(heap), re.I | re.M) and "ERROR" not in only["mot"]:
                return what
        elif pattern.search(only[where]):
            return what
    return None


def compare(out, causes, names, shown):
    table = rules(causes)
    same = 0
    explained = collections.Counter()
    wrong = collections.Counter()
    for name in names:
        heap = answers(os.path.join(out, "heap", name + ".out"))
        mot = answers(os.path.join(out, "mot", name + ".out"))
        with open(os.path.join(out, name + ".diff"), "w", encoding="latin-1") as diff:
            for n in sorted(heap.keys() | mot.keys()):
                h, m = normal(heap.get(n, ["(not reached)"])), normal(mot.get(n, ["(not reached)"]))
                if n == 0 and not "".join(h + m).strip():
                    continue
                if h == m:
                    same += 1
                    continue
                why = cause(table, name, h, m)
                if why is None:
                    wrong[name] += 1
                else:
                    explained[why] += 1
                diff.write("=== %s %d: %s\n" % (name, n, why or "WRONG"))
                diff.write("\n".join(difflib.unified_diff(h, m, "heap", "mot", n=100, lineterm="")) + "\n")
        if not "".join(open(os.path.join(out, name + ".diff"), encoding="latin-1")):
            os.remove(os.path.join(out, name + ".diff"))
        elif name in shown:
            print(open(os.path.join(out, name + ".diff"), encoding="latin-1").read())
    total = same + sum(explained.values()) + sum(wrong.values())
    print("statements %d, same %d (%.2f %%; but for the order of rows %.2f %%), explained %d, wrong %d" %
          (total, same, 100.0 * same / total, 100.0 * (same + explained["order of rows"]) / total,
           sum(explained.values()), sum(wrong.values())))
    for what, count in explained.most_common():
        print("%6d  %s" % (count, what))
    for what, count in wrong.most_common():
        print("%6d  WRONG in %s" % (count, what))
    return 1 if wrong else 0


if sys.argv[1] == "mark":
    mark(sys.argv[2], sys.argv[3])
else:
    at = sys.argv.index("--")
    sys.exit(compare(sys.argv[2], sys.argv[3], sys.argv[4:at], sys.argv[at + 1:]))
