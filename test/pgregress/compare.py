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

where "where" says what is checked, and what the pattern (a regular expression) is looked for in:

    refused, error  each error and warning that only mot has; with "refused" what the statement was to make or change
                    is lacking from now on (class History)
    follows         no error but that such a thing is not there, or the transaction has failed for such a reason; or no
                    error, and the statement (or what only heap answers) names it
    order           the same lines in another order; under an ORDER BY the columns shown that it names have the same values in each row
    frames          as many rows, a column with the same values, and the statement has the pattern
    plan            a statement with the pattern shows a plan; which kind of node heap has for it is counted
    statement, heap, mot, file
                    the answer; the lines that only heap, or only mot has; the file's name: not if only mot has an error or a
                    warning, unless there is a "!" behind
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
    text = re.sub(r"/tmp/mot-pgregress\.\w+", "", text)
    text = re.sub(r"base/\d+/[t\d_]+", "base/", text)
    return text.split("\n")


Rule = collections.namedtuple("Rule", "cause where pattern")
KINDS = ("refused", "error", "order", "frames", "plan", "follows", "statement", "heap", "mot", "file")
# what an error is, and what ends a connection
ALARM = re.compile(r"(?:psql:\S+ )?(?:ERROR|WARNING|FATAL|PANIC|TRAP)\b|.*(?:server closed|connection to server)", re.I)
NAME = r'(?:only\s+|if\s+(?:not\s+)?exists\s+)*((?:[\w$]+|"[^"]+")(?:\.(?:[\w$]+|"[^"]+"))?)'
MAKES = re.compile(r"\bcreate\s+(?:or\s+replace\s+|temp(?:orary)?\s+|unlogged\s+|unique\s+)*"
                   r"(?:table|(?:materialized\s+)?view|type|domain|index|sequence|rule|statistics|access\s+method|operator\s+class)\s+(?:concurrently\s+)?" + NAME, re.I)
INDEX_ON = re.compile(r"\bcreate\s+(?:unique\s+)?index\b[^;]*?\bon\s+" + NAME, re.I)
CHANGES = re.compile(r"\b(?:insert\s+into|(?<!for )(?<!do )(?<!on )update|delete\s+from|merge\s+into|truncate(?:\s+table)?|copy|alter\s+table|drop\s+table|"
                     r"alter\s+index|drop\s+access\s+method|drop\s+index(?:\s+concurrently)?|alter\s+type|alter\s+domain|as\s+on\s+\w+\s+to)\s+" + NAME, re.I)
DROPS = re.compile(r"\b(?:drop\s+(?:table|view|type|domain|index)|truncate(?:\s+table)?)\s+" + NAME, re.I)
INTO = re.compile(r"\bselect\b[^;]*?\binto\s+" + NAME + r"\s+from\b", re.I)
GID = re.compile(r"\bprepare\s+transaction\s+'([^']+)'", re.I)
ENDS = re.compile(r"^\s*(?:commit|rollback|end|abort|prepare\s+transaction)\b(?!\s+to\b)", re.I | re.M)


def rules(path):
    found = []
    for line in open(path):
        m = re.match(r"\| ([^|]+) \| (\w+!?) \| (?:`(.*)`)? *\| (.*) \|$", line)
        if m and m.group(2).rstrip("!") in KINDS:
            found.append(Rule(m.group(1), m.group(2), re.compile(m.group(3).replace(r"\|", "|"), re.I | re.M) if m.group(3) else None))
    return found


def plain(name):
    return name.split(".")[-1].strip('"').lower()


def top_level_order(sql):
    """what the outermost ORDER BY says, or None"""
    sql = re.sub(r"--[^\n]*|'(?:[^']|'')*'", " ", sql)
    depth = 0
    found = None
    for m in re.finditer(r"[()]|\border\s+by\b|\bunion\b|\bwindow\b", sql, re.I):
        if m.group() == "(":
            depth += 1
        elif m.group() == ")":
            depth -= 1
        elif depth == 0 and m.group().lower().startswith("order"):
            found = m.end()
    if found is None:
        return None
    text, keys, depth = "", [], 0
    for m in re.finditer(r"[(),;]|\b(?:limit|offset|fetch|for)\b|.", sql[found:], re.I | re.S):
        token = m.group()
        depth += (token == "(") - (token == ")")
        if depth < 0 or depth == 0 and (token == ";" or len(token) > 1):
            break
        if depth == 0 and token == ",":
            keys.append(text)
            text = ""
        else:
            text += token
    return keys + [text]


def sorted_alike(heap, mot):
    """The same lines; and where rows were asked for in an order, in it but for equal keys."""
    if sorted(heap) != sorted(mot):
        return False
    ruler = [i for i, line in enumerate(heap) if re.match(r"-+(?:\+-+)*$", line)]
    keys = top_level_order("\n".join(heap[:ruler[0] - 1] if ruler else heap))
    if keys is None:
        return True
    if not ruler:
        return False
    header = [c.strip() for c in heap[ruler[0] - 1].split("|")]
    columns = []
    for key in keys:
        key = re.sub(r"\s+(asc|desc|nulls\s+(first|last)|using\s+\S+)", "", key.strip(), flags=re.I | re.S).strip()
        column = plain(re.sub(r'\s+collate\s+\S+$', "", key, flags=re.I))
        if key.isdigit() and int(key) <= len(header):
            columns.append(int(key) - 1)
        elif column in header:
            columns.append(header.index(column))
        else:
            break                   # an expression, of whose values nothing is shown
    return bool(columns) and all(
        [[row.split("|")[c].strip() if row.count("|") >= c else row for c in columns] for row in side[ruler[0] + 1:]] ==
        [[row.split("|")[c].strip() if row.count("|") >= c else row for c in columns] for row in heap[ruler[0] + 1:]]
        for side in (heap, mot))


def same_columns(heap, mot):
    """as many rows, and a column of which both have the same values"""
    ruler = [i for i, line in enumerate(heap) if re.match(r"-+(?:\+-+)*$", line)]
    if len(ruler) != 1 or heap[:ruler[0]] != mot[:ruler[0]] or len(heap) != len(mot):
        return False
    cells = [[[cell.strip() for cell in row.split("|")] for row in side[ruler[0] + 1:] if "|" in row] for side in (heap, mot)]
    return any(sorted(row[c:c + 1] for row in cells[0]) == sorted(row[c:c + 1] for row in cells[1]) for c in range(heap[ruler[0]].count("+") + 1))


class History:
    """What a database lacks on mot's side, and why: what was refused, and what came of it."""

    def __init__(self, table):
        self.rules = table
        self.lacks = {}             # name -> cause
        self.aborted = None         # the present transaction, why
        self.block = []             # what it has made and changed

    def names(self, text):
        found = [n for pattern in (MAKES, INTO, GID, CHANGES) for n in pattern.findall(text)]
        return {plain(n) for n in found} - {"set", "of", "on", "select"}

    def spread(self, text, cause):
        for name in self.names(text):
            self.lacks.setdefault(name, cause)
        # (it may have been given no name)
        for name in MAKES.findall(text) + INDEX_ON.findall(text) + (CHANGES.findall(text) if re.search(r"\bexclude\b|\bunique\b|\bprimary\b", text, re.I) else []):
            self.lacks.setdefault(plain(name) + "_*", cause)

    def lack(self, text):
        """why, if something that the text names is not there, or not as heap has it"""
        for word in re.findall(r"[\w$]+", text.lower()) + re.findall(r"\w+(?:-\w+)+", text.lower()):
            if word in self.lacks:
                return self.lacks[word]
            if word.endswith(("_idx", "_key", "_excl", "_index", "_pkey")) or re.search(r"_(?:idx|key|excl|index)\d+$", word):
                at = word.find("_")
                while at > 0:
                    if word[:at] + "_*" in self.lacks:
                        return self.lacks[word[:at] + "_*"]
                    at = word.find("_", at + 1)
        return None

    def passed(self, text, cause):
        """after each statement, with why it differed or None"""
        if cause is None:
            for name in DROPS.findall(text) + MAKES.findall(text):
                self.lacks.pop(plain(name), None)
                self.lacks.pop(plain(name) + "_*", None)
            if re.search(r"\b(?:insert\s+into|create\s[\w\s]*?(?:table|view))\b.*\b(?:select|table)\b|\bselect\b.*\binto\b", text, re.I | re.S) and self.lack(text):
                self.spread(text, self.lack(text))
        if re.search(r"^\s*(?:begin|start\s+transaction)\b", text, re.I | re.M):
            self.aborted, self.block = None, []
        self.block.append(text)
        if ENDS.search(text):
            if self.aborted:
                for each in self.block:
                    self.spread(each, self.aborted)
            self.aborted, self.block = None, []

    def error(self, line, statement):
        for rule in self.rules:
            if rule.where in ("refused", "error") and rule.pattern.search(line):
                return rule.cause
        if self.aborted and re.search(r"current transaction is aborted|25P02", line):
            return "follows: " + self.aborted
        lack = self.lack(line) if re.search(r"does not exist|not found|already exists|is not an index|violates", line) else None
        return "follows: " + lack if lack else None

    def cause(self, name, heap, mot):
        diff = list(difflib.ndiff(heap, mot)) if len(heap) + len(mot) < 2000 else \
            ["- " + x for x in heap if x not in set(mot)] + ["+ " + x for x in mot if x not in set(heap)]
        only_heap = [d[2:] for d in diff if d.startswith("- ")]
        only_mot = [d[2:] for d in diff if d.startswith("+ ")]
        statement = "\n".join(heap)
        text = "\n".join(d[2:] for d in diff if d.startswith("  "))
        alarms = [line for line in only_mot if ALARM.match(line)]
        found = None
        for rule in self.rules:
            allowed = rule.where.endswith("!")
            where = rule.where.rstrip("!")
            if where in ("statement", "heap", "mot", "file") and (allowed or not alarms) and \
                    rule.pattern.search({"statement": statement, "heap": "\n".join(only_heap), "mot": "\n".join(only_mot),
                                         "file": name}[where]):
                found = rule.cause
            elif where in ("refused", "error") and alarms:
                causes = [self.error(line, statement) for line in alarms]
                if None not in causes:
                    found = causes[0]
            elif where == "order" and not alarms and sorted_alike(heap, mot):
                found = rule.cause
            elif where == "frames" and not alarms and rule.pattern.search(statement) and same_columns(heap, mot):
                found = rule.cause
            elif where == "plan" and not alarms and rule.pattern.search(statement):
                lack = self.lack("\n".join(only_heap))
                gone = "\n".join(only_heap)
                kind = "an index that was refused" if lack else "parallel" if re.search(r"Parallel|Gather|Workers", gone) else \
                    "bitmap" if "Bitmap" in gone else "index-only" if "Index Only" in gone else "costs"
                found = rule.cause + ": " + kind
            elif where == "follows" and not alarms:
                lack = self.lack(text + "\n" + "\n".join(only_heap))
                found = "follows: " + lack if lack else None
            if found:
                break
        if found and (alarms or any(ALARM.match(line) for line in only_heap)):
            root = found.replace("follows: ", "")
            self.spread(text, root)
            if alarms:
                self.aborted = self.aborted or root
        return found


def compare(out, causes, names, shown):
    table = rules(causes)
    same = 0
    explained = collections.Counter()
    wrong = collections.Counter()
    history = History(table)
    database = ""
    for name in names:
        if "." in name and not name.startswith("collate.") and name.partition(".")[0] != database:
            database = name.partition(".")[0]
            history = History(table)
        heap = answers(os.path.join(out, "heap", name + ".out"))
        mot = answers(os.path.join(out, "mot", name + ".out"))
        with open(os.path.join(out, name + ".diff"), "w", encoding="latin-1") as diff:
            for n in sorted(heap.keys() | mot.keys(), key=lambda n: n or sys.maxsize):
                h, m = normal(heap.get(n, ["(not reached)"])), normal(mot.get(n, ["(not reached)"]))
                if n == 0 and not "".join(h + m).strip():
                    continue
                if h == m:
                    same += 1
                    history.passed("\n".join(h), None)
                    continue
                why = history.cause(name, h, m)
                history.passed("\n".join(h), why or "wrong")
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
