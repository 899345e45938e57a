"""Writes what proofs/compensated.py measured as a page."""

import json
import os

VERSIONS = ("3.11", "3.12", "3.13")
ENGINES = ("turbo", "safe")


def load(folder, part, version):
    path = os.path.join(folder, f"{part}-{version}.json")
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {name: found for name, found in json.load(file).items() if found}


def totals(folder):
    columns = [(version, engine) for version in VERSIONS for engine in ENGINES]
    read = {version: load(folder, "totals", version) for version in VERSIONS}
    names = [key.split()[1] for key in read["3.12"] if key.startswith("turbo")]
    yield "| | " + " | ".join(f"{version} {engine}" for version, engine in columns) + " |"
    yield "|---|" + "---:|" * len(columns)
    off = {column: [] for column in columns}
    for name in names:
        cells = []
        for version, engine in columns:
            found = read[version].get(f"{engine} {name}")
            if found is None:
                cells.append("–")
                continue
            change = found["compensated"] / found["bare"] - 1
            off[version, engine].append(abs(change))
            cells.append(f"{found['recorded'] / found['bare'] - 1:+.0%} → {change:+.0%}")
        yield f"| {name} | " + " | ".join(cells) + " |"
    for bound in (0.05, 0.10):
        counts = (f"{sum(each <= bound for each in off[c])} of {len(off[c])}" for c in columns)
        yield f"| within {bound:.0%} | " + " | ".join(counts) + " |"


def functions(folder):
    yield "| | functions | the bar contains the truth | recorded, median | compensated, median |"
    yield "|---|---:|---:|---:|---:|"
    for version in VERSIONS:
        for engine, rows in load(folder, "functions", version).items():
            inside = sum(abs(compensated - bare) <= error for _, bare, _, compensated, error in rows)
            before = sorted(recorded / bare - 1 for _, bare, recorded, _, _ in rows)[len(rows) // 2]
            after = sorted(compensated / bare - 1 for _, bare, _, compensated, _ in rows)[len(rows) // 2]
            share = f"{inside} ({inside / len(rows):.0%})"
            yield f"| {version} {engine} | {len(rows)} | {share} | {before:+.0%} | {after:+.0%} |"


def peers(folder):
    for version in VERSIONS:
        bare = load(folder, "totals", version)
        other = load(folder, "peers", version)
        if not other:
            continue
        yield f"| {version}, beyond the bare run | vestige | compensated | cProfile | VizTracer |"
        yield "|---|---:|---:|---:|---:|"
        for key, found in bare.items():
            engine, name = key.split()
            if engine != "turbo":
                continue
            of = [other.get(f"{peer} {name}") for peer in ("cProfile", "VizTracer")]
            cells = [found["recorded"], found["compensated"], *(each and each["recorded"] for each in of)]
            shown = ("–" if cell is None else f"{cell / found['bare'] - 1:+.0%}" for cell in cells)
            yield f"| {name} | " + " | ".join(shown) + " |"
        yield ""


HEAD = """# Compensated durations

Made by `proofs/compensated.py`. CPU time on a shared machine of two processors, which other work kept busy: the least of a
few runs, bare and recorded in turns.

## Totals

How much longer than the bare run the recorded run took, and the compensated total of it. The aim, within 5 % for ten of
the twelve programs and within 10 % for all, is not reached: so `--compensated` is not the default.
"""

BETWEEN = """
## Functions

Functions of the standard library, each also run bare by itself, in a loop. The median of a function's recorded calls
is compared. The aim was 90 % of the error bars.
"""

PEERS = """
## Beside other profilers

What each shows of a run is what the run took: cProfile and VizTracer do not compensate.
"""


def write(folder, path):
    lines = [HEAD, *totals(folder), BETWEEN, *functions(folder)]
    compared = list(peers(folder))
    if compared:
        lines += [PEERS, *compared]
    with open(path, "w") as file:
        file.write("\n".join(lines).rstrip() + "\n")
