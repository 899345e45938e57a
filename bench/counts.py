#!/usr/bin/env python3
"""Counts instructions by callgrind, and fails where there are more than 3 % above the figures that are committed.

    python bench/counts.py PYTHON               beside bench/counts.json
    python bench/counts.py PYTHON --against OLD beside another Python with vestige, say the one before a change
    python bench/counts.py PYTHON --write       writes the figures of this environment into bench/counts.json

Each Python has vestige installed. What is counted stands in instructions.py; here are the parts that repeat to within
a thousandth: the record path with its hooks, and what reads and exports the traces of count_traces.py. Where the clone
lies does not matter: what runs is copied to a folder whose name has always the same length.

An instruction is the same on a busy machine, but not with another compiler, interpreter or C library, nor on a
processor for which the C library has other functions. So figures belong to an environment, which counts.json names. In
one that it does not know nothing is compared, and one line says so; `make bench-counts BASE=main` builds the commit to
compare with on the same machine, which works anywhere.
"""

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import count_traces
from instructions import MARKS, count, figures

FIGURES = Path(__file__).with_name("counts.json")
ALLOWED = 0.03
LEAST = 3  # instructions: less than that is not a change of ours
PARTS = ["turbo", "safe", "reading"]
LEVELS = ("avx2", "avx", "sse4_2")  # what the C library's functions are chosen by; valgrind knows no newer ones


def environment(python):
    """What the figures depend on, besides vestige."""
    code = "import platform as p; print(p.python_version(), p.python_compiler(), ' '.join(p.libc_ver()), sep='; ')"
    interpreter, built_by, libc = run(python, "-c", code).split("; ")
    try:
        flags = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        flags = []
    return {
        "python": f"{interpreter}, {built_by}",
        "compiler": run("cc", "--version").partition("\n")[0],
        "libc": libc,
        "machine": " ".join([platform.machine(), *[level for level in LEVELS if level in flags][:1]]),
    }


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def measure(python, parts):
    """{part: {row: instructions}}."""
    with tempfile.TemporaryDirectory(prefix="vestige-counts-", dir="/tmp") as name:
        folder = Path(name)
        marks = folder / "marks.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-xc", "-", "-o", marks], input=MARKS, text=True, check=True)
        for script in ("instructions.py", "workloads.py"):
            shutil.copy(Path(__file__).with_name(script), folder)
        script = folder / "instructions.py"
        count_traces.write(folder)
        # The interpreter's own allocator takes 15 instructions more where a call frees the last block of a pool.
        return {
            part: figures(part, count(python, part, folder, marks, script, PYTHONMALLOC="malloc")) for part in parts
        }


def least(one, other):
    return {part: {row: min(value, other[part][row]) for row, value in rows.items()} for part, rows in one.items()}


def known_figures():
    """A list of {"environment": …, "instructions": …}."""
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else []


def write(here, now):
    rounded = {part: {row: round(value, 1) for row, value in rows.items()} for part, rows in now.items()}
    others = [each for each in known_figures() if each["environment"] != here]
    FIGURES.write_text(json.dumps([*others, {"environment": here, "instructions": rounded}], indent=1) + "\n")


def compare(now, before):
    """Rows (part, name, before, now, change); a row that only one of them has is left out."""
    for part, rows in now.items():
        for name, value in rows.items():
            old = before.get(part, {}).get(name)
            if old:
                yield part, name, old, value, value / old - 1


def show(rows):
    """Prints them, and returns the names of those that are red."""
    print("| | before | now | change |\n|---|---:|---:|---:|")
    worse = []
    for part, name, old, new, change in rows:
        mark = ""
        if change > ALLOWED and new - old > LEAST:
            worse.append(f"{part}, {name}: {100 * change:+.1f} %")
            mark = " **more**"
        print(f"| {part}, {name} | {old:,.1f} | {new:,.1f} | {100 * change:+.1f} %{mark} |")
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("python", metavar="PYTHON")
    parser.add_argument("--against", metavar="OLD", help="a Python with the vestige to compare with")
    parser.add_argument("--write", action="store_true", help="write the figures of this environment into counts.json")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    options = parser.parse_args()
    here = environment(options.python)
    if options.write:
        write(here, measure(options.python, PARTS))
        return 0
    known = [each["instructions"] for each in known_figures() if each["environment"] == here]
    if not known and not options.against:
        listed = ", ".join(here.values())
        print(f"SKIPPED [1] bench/counts.py:1: counts.json has no figures for {listed}; give BASE=<commit>")
        return 0
    now = measure(options.python, options.parts)
    before = measure(options.against, options.parts) if options.against else known[0]
    if any(change > ALLOWED for *_, change in compare(now, before)):
        now = least(now, measure(options.python, options.parts))  # what ran for the first time leaves more behind
    rows = list(compare(now, before))
    worse = show(rows)
    for line in worse:
        print(f"# more instructions: {line}")
    if worse and not options.against:
        print("# if they are worth it: `make bench-counts ARGS=--write` writes the figures anew, which are committed")
    print(f"{len(rows) - len(worse)} checks passed, {len(worse)} failed")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
