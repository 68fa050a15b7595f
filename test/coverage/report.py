#!/usr/bin/env python3
"""Lines that a run with gcov's counters has reached, by room.

report.py TOP OBJECTS UNCOVERED PREFIX ...: of the sources of TOP below the prefixes, by the
.gcno and .gcda files below OBJECTS.  Prints a table, and writes what was not reached to
UNCOVERED.  A line counts as reached if it was in any object that has it (headers are in many).
"""
import collections
import json
import os
import subprocess
import sys


def read_counts(top, objects, prefixes):
    """{file: {line: count}}; an object that no program ran counts with zeros."""
    counts = collections.defaultdict(dict)
    for directory, _, names in os.walk(objects):
        notes = [os.path.join(directory, n) for n in sorted(names) if n.endswith(".gcno")]
        if not notes:
            continue
        out = subprocess.run(["gcov", "--json-format", "--stdout"] + notes, check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for document in out.splitlines():
            if not document.startswith("{"):
                continue
            run = json.loads(document)
            for file in run["files"]:
                path = os.path.join(run["current_working_directory"], file["file"])
                path = os.path.relpath(os.path.realpath(path), top)
                if not path.startswith(tuple(p + "/" for p in prefixes)):
                    continue
                lines = counts[path]
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, 0) + line["count"]
    return counts


def main():
    top, objects, uncovered = os.path.realpath(sys.argv[1]), sys.argv[2], sys.argv[3]
    counts = read_counts(top, objects, sys.argv[4:])
    if not counts:
        sys.exit("coverage: no counters below " + objects)
    rooms = collections.defaultdict(lambda: [0, 0])
    with open(uncovered, "w", encoding="utf-8") as out:
        for path in sorted(counts):
            lines = counts[path]
            missed = sorted(n for n in lines if not lines[n])
            for room in (os.path.dirname(path), "all"):
                rooms[room][0] += len(lines)
                rooms[room][1] += len(lines) - len(missed)
            if not missed:
                continue
            with open(os.path.join(top, path), encoding="utf-8") as source:
                text = source.read().splitlines()
            out.write(f"{path}: {len(missed)} of {len(lines)}\n")
            for number in missed:
                out.write(f"{number:6}  {text[number - 1]}\n")
    print(f"{'room':<24} {'lines':>7} {'reached':>8} {'per cent':>9}")
    for room in sorted(rooms, key=lambda r: (r == "all", r)):
        total, reached = rooms[room]
        # (rounded down, so that 100 means all)
        print(f"{room:<24} {total:7} {reached:8} {reached * 1000 // total / 10:9.1f}")


main()
