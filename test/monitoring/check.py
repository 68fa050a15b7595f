#!/usr/bin/env python3
"""
Do the files of monitoring/ fit the server, and each other?

Each query of postgres_exporter.yml is asked as the role "exporter", which has pg_monitor and
nothing else: its columns are exactly the metrics that are described, a value that is no label is a
number.  And whatever metric dashboard and alert rules name, a query brings.  Prints TAP.
"""

import json
import os
import re
import sys

import psycopg2

top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "monitoring")
tests = 0
failed = 0


def ok(good, what, *why):
    global tests, failed
    tests += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {tests} - {what}")
    for line in why if not good else ():
        print(f"# {line}")


def blocks(path):
    """name, query and metrics ({column: usage}) of each block of the file, which is as plain as YAML can be"""
    name, query, metrics, column, in_query = None, [], {}, None, False
    for line in open(path, encoding="utf-8"):
        line = line.rstrip("\n")
        if re.match(r"\w+:$", line):
            if name:
                yield name, " ".join(query), metrics
            name, query, metrics, in_query = line[:-1], [], {}, False
        elif line == "  query: >":
            in_query = True
        elif line == "  metrics:":
            in_query = False
        elif in_query:
            query.append(line.strip())
        elif match := re.match(r"    - (\w+):$", line):
            column = match[1]
        elif match := re.match(r'        usage: "(\w+)"$', line):
            metrics[column] = match[1]
    yield name, " ".join(query), metrics


def named(text):
    """metrics in expressions; (a pattern of names begins with one, too)"""
    return set(re.findall(r"\bmot_[a-z]\w*", text))


brought = set()
connection = psycopg2.connect("user=exporter")
connection.autocommit = True
cursor = connection.cursor()
for name, query, metrics in blocks(os.path.join(top, "postgres_exporter.yml")):
    cursor.execute(query)
    rows = cursor.fetchall()
    columns = [c.name for c in cursor.description]
    ok(columns == list(metrics), f"{name} has the columns that are described", columns, list(metrics))
    ok(all(usage in ("LABEL", "GAUGE", "COUNTER") for usage in metrics.values()), f"{name} says what each is for", metrics)
    wrong = [(c, v) for row in rows for c, v in zip(columns, row)
             if metrics.get(c) != "LABEL" and not (v is not None and float(v) >= 0)]
    ok(not wrong, f"{name} has numbers", wrong)
    # what the test has made is in each but mot_left_out and mot_snapshots, whose sums are there all the same
    ok(len(rows) > 0, f"{name} has rows")
    brought |= {f"{name}_{c}" for c in columns if metrics.get(c) != "LABEL"}

for file in ("alerts.yml", "grafana.json"):
    text = open(os.path.join(top, file), encoding="utf-8").read()
    if file == "alerts.yml":
        # expressions, also those of several lines
        used = named("\n".join(re.findall(r"^        expr: (?:>\n((?:          .*\n)+)|.*)", text, re.M)) +
                     "\n".join(re.findall(r"^        expr: (.*)", text, re.M)))
        patterns = re.findall(r'__name__=~"([^"]*)"', text)
        rules = text.count("- alert:")
        ok(rules == text.count("        expr: ") == text.count("          severity: ") > 0, "each alert has an expression and a severity")
    else:
        dashboard = json.loads(text)
        used = named(" ".join(t["expr"] for p in dashboard["panels"] for t in p["targets"]) +
                     " ".join(v["query"] for v in dashboard["templating"]["list"]))
        patterns = []
        ok(len({p["id"] for p in dashboard["panels"]}) == len(dashboard["panels"]), "panels have numbers of their own")
    for pattern in patterns:
        ok(any(re.fullmatch(pattern, m) for m in brought), f"{file}: some metric is {pattern}")
        used -= named(pattern)
    ok(len(used) > 8 and used <= brought, f"{file} names metrics that there are", used - brought)

print(f"1..{tests}")
sys.exit(failed > 0)
