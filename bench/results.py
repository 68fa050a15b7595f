"""What bench/plot and bench/figures have in common: the JSON files that the
benchmarks write, and how what is in them is called.
"""

import json
import statistics

# in the order in which they are shown
ENGINES = {"heap": "heap", "unlogged": "unlogged heap", "mot": "MOT", "foreign": "MOT, foreign", "mixed": "mixed", "compiled": "MOT, procedures compiled", "uncompiled": "MOT, not compiled", "unhinted": "MOT, without hint",
           "redis": "Redis", "redis-aof": "Redis with a file"}

# what belongs to another work
DETAILS = (": server's time", ": 99 of 100 within", ": tries again")


def load(path):
    with open(path) as file:
        return json.load(file)


def works(run):
    """The works, and of each its details by their names."""
    found = []
    for work, data in run["works"].items():
        if not work.endswith(DETAILS):
            details = {d[2:]: run["works"][work + d] for d in DETAILS if work + d in run["works"]}
            found.append((work, data, details))
    return found


def engines(datas):
    """Those that any of the works has been measured on."""
    names = [e for data in datas for e in data["engines"]]
    return [e for e in ENGINES if e in names] + sorted(set(names) - set(ENGINES))


def ratio(data, of="mot", to="heap"):
    """How much better: the median of the rounds' ratios (of medians, if a round
    is not whole), as lib.sh's ratio has it."""
    values = data["engines"]
    if of not in values or to not in values:
        return None
    a, b = values[of]["values"], values[to]["values"]
    if min(a + b) <= 0:
        return None
    if len(a) != len(b):
        a, b = [statistics.median(a)], [statistics.median(b)]
    return statistics.median(x / y if data["better"] == "more" else y / x for x, y in zip(a, b))


def rounds(run):
    """How many there were of each work, and how long."""
    numbers = sorted({len(e["values"]) for data in run["works"].values() for e in data["engines"].values()})
    told = "%d" % numbers[0] if len(numbers) == 1 else "%d to %d" % (numbers[0], numbers[-1])
    return told + (" of %s s" % run["seconds"] if "seconds" in run else "")


def conditions(run):
    """What else there is to say of a run, in the order in which it was said."""
    known = ("date", "commit", "machine", "server", "settings", "works", "rounds", "seconds")
    return ["%s: %s" % (key.replace("_", " "), value) for key, value in run.items() if key not in known]
