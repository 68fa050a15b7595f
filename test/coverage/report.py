#!/usr/bin/env python3
"""Lines that runs with gcov's counters have reached, by room.

report.py TOP OUT EXPLAINED PREFIX ...: of the sources of TOP below the prefixes, by the .gcno
and .gcda files below OUT; OUT/module has a copy of the sources.  Prints a table, and writes what
was not reached to OUT/uncovered.txt, or to OUT/explained.txt, if EXPLAINED accounts for it.  A
line counts as reached if it was in any object that has it (headers are in many).

EXPLAINED has paragraphs: lines with "#" say why, the others name what it is true of, as
"path: function()", all of a function that was never called, or "path: text", statements not
reached that have the text, each with the plain ones beside it that were not reached either ("*" as
path: in any file).  What names nothing, or something that was reached, is printed, and is to be
taken out.
"""
import collections
import json
import os
import re
import subprocess
import sys

CONTROL = re.compile(r"\s*(if|else|for|foreach_\w+|while|do|switch|PG_\w+)\b")


class File:
    def __init__(self):
        self.counts = {}        # line: how often
        self.functions = {}     # name: [first line, last line, how often]

    def runs(self):
        """Lines not reached, those together that no reached line divides, and where one does."""
        run = []
        for line in sorted(self.counts):
            if not self.counts[line]:
                run.append(line)
            elif run:
                yield run, line
                run = []
        if run:
            yield run, run[-1] + 1


def depth(line):
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip()) if line.strip() else None


def blocks(run, until, source, text):
    """Of a run of lines, those of statements that have the text, and of plain ones beside them"""
    for number in range(run[0], until):
        if text not in source[number - 1]:
            continue
        ends = []
        begin = max(n for n in run if n <= number)
        least = depth(source[begin - 1])
        for beside in (range(begin, run[0] - 1, -1), range(begin, run[-1] + 1)):
            end = begin
            for n in beside:
                deep = depth(source[n - 1])
                if deep is not None and deep < least or \
                   deep == least and n != begin and CONTROL.match(source[n - 1]):
                    break
                if deep == least or beside.step > 0:
                    end = n
            ends.append(end)
        yield [n for n in run if ends[0] <= n <= ends[1]]


def read_counts(top, out, prefixes):
    """{path: File}; an object that no program ran counts with zeros."""
    files = collections.defaultdict(File)
    copy = os.path.join(out, "module") + os.sep
    for directory, _, names in os.walk(out):
        notes = [os.path.join(directory, n) for n in sorted(names) if n.endswith(".gcno")]
        if not notes:
            continue
        gcov = subprocess.run(["gcov", "--json-format", "--stdout"] + notes, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if gcov.returncode != 0:
            # (spoiled by a process that was killed: it counts with zeros)
            print("\n".join(line for line in gcov.stderr.splitlines() if ".gcda:" in line and "cannot open" not in line))
        for document in gcov.stdout.splitlines():
            if not document.startswith("{"):
                continue
            read = json.loads(document)
            for part in read["files"]:
                path = os.path.realpath(os.path.join(read["current_working_directory"], part["file"]))
                path = path[len(copy):] if path.startswith(copy) else os.path.relpath(path, top)
                if not path.startswith(tuple(p + "/" for p in prefixes)):
                    continue
                file = files[path]
                for line in part["lines"]:
                    number = line["line_number"]
                    file.counts[number] = file.counts.get(number, 0) + line["count"]
                for f in part["functions"]:
                    known = file.functions.setdefault(f["name"], [f["start_line"], f["end_line"], 0])
                    known[2] += f["execution_count"]
    return files


def read_explained(path):
    """[(path, what)]"""
    entries = []
    with open(path, encoding="utf-8") as text:
        for line in text.read().splitlines():
            if line and not line.startswith("#"):
                entries.append(tuple(line.split(": ", 1)))
    return entries


def explain(files, sources, entries):
    """{path: lines not reached that are accounted for}; entries that account for none are printed"""
    explained = collections.defaultdict(set)
    for where, what in entries:
        found = False
        for path in files if where == "*" else [where] if where in files else []:
            file = files[path]
            if what.endswith("()"):
                first, last, count = file.functions.get(what[:-2], (1, 0, 0))
                lines = [n for n in file.counts if first <= n <= last and not count]
                explained[path].update(lines)
                found = found or bool(lines)
                continue
            for run, until in file.runs():
                for block in blocks(run, until, sources[path], what):
                    explained[path].update(block)
                    found = True
        if not found:
            print(f"explained, but reached or not there: {where}: {what}")
    return explained


def main():
    top, out = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    files = read_counts(top, out, sys.argv[4:])
    if not files:
        sys.exit("coverage: no counters below " + out)
    sources = {}
    for path in files:
        counted = os.path.join(out, "module", path)
        with open(counted if os.path.exists(counted) else os.path.join(top, path), encoding="utf-8") as text:
            sources[path] = text.read().splitlines() + [""]
    explained = explain(files, sources, read_explained(sys.argv[3]))

    rooms = collections.defaultdict(lambda: [0, 0, 0])
    with open(os.path.join(out, "uncovered.txt"), "w", encoding="utf-8") as uncovered, \
         open(os.path.join(out, "explained.txt"), "w", encoding="utf-8") as accounted:
        for path in sorted(files):
            counts = files[path].counts
            missed = {n for n in counts if not counts[n]}
            known = missed & explained[path]
            parts = path.split("/")
            for room in {"/".join(parts[:2]), os.path.dirname(path), "~all"}:
                rooms[room][0] += len(counts)
                rooms[room][1] += len(counts) - len(missed)
                rooms[room][2] += len(known)
            for lines, to in ((missed - known, uncovered), (known, accounted)):
                if lines:
                    to.write(f"{path}: {len(lines)} of {len(counts)}\n")
                    to.writelines(f"{n:6}  {sources[path][n - 1]}\n" for n in sorted(lines))
    print(f"{'room':<24} {'lines':>7} {'reached':>8} {'per cent':>9} {'explained':>10} {'with them':>10}")
    for room in sorted(rooms):
        total, reached, known = rooms[room]
        # (rounded down, so that 100 means all)
        print(f"{room.strip('~'):<24} {total:7} {reached:8} {reached * 1000 // total / 10:9.1f} "
              f"{known:10} {(reached + known) * 1000 // total / 10:10.1f}")


main()
