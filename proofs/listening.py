"""Counts what listening costs a program to which nobody attaches: no instructions.

    python proofs/listening.py --results proofs/results/listening.md

A loop of calls runs under callgrind (valgrind) for two numbers of rounds, in a process that calls vestige.listen() and
in one that does not. The difference of the two is what the rounds cost, without the start of the interpreter.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROUNDS = (20_000, 60_000)
PROGRAM = """
import sys
import vestige

def leaf(n):
    return len([n])

def rounds(count):
    for n in range(count):
        leaf(n)

if sys.argv[1] == "listens":
    vestige.listen()
rounds(int(sys.argv[2]))
"""
TEXT = """# Listening

Instructions of a round (a call of a Python function, a list, a call of a C function), counted by callgrind in a process
that called `vestige.listen()` and in one that did not. `python proofs/listening.py` makes this table.

| Python | does not listen | listens |
|---|---|---|
| {python} | {silent:.2f} | {listens:.2f} |
"""


def instructions(how, count):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHON_JIT": "0"}
    result = subprocess.run([*command, how, str(count)], env=environment, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", result.stderr)[1])


def per_round(how):
    few, many = (instructions(how, count) for count in ROUNDS)
    return (many - few) / (ROUNDS[1] - ROUNDS[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    silent, listens = per_round("silent"), per_round("listens")
    text = TEXT.format(python=platform.python_version(), silent=silent, listens=listens)
    print(text)
    if options.results:
        options.results.write_text(text)
    return 0 if abs(listens - silent) < 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
