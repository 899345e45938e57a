"""CPython's own regression tests, bare and under vestige's engines: every test must come out the same.

    python proofs/cpython.py                            every Python here, both engines
    python proofs/cpython.py --python 3.12 --engine turbo --modules test_gc test_descr

The modules are those of cpython_modules.txt, differences that are known and why those of cpython_known.txt, the results
results/cpython-<version>.md. Exit code 1 if there is a difference that is not known.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys

import ways
from report import tell_found, write
from ways import ENGINES, HERE, INSIDE, Python, Suite

MODULES = HERE / "cpython_modules.txt"
PROGRAM = INSIDE / "unittest_outcomes.py"
KNOWN = HERE / "cpython_known.txt"
HEAD = """\
# CPython {full}: its own tests, bare and traced

Each module of the `test` package runs in a process of its own: bare, and under `vestige run` with each engine. A row
counts the tests of a module and their outcomes in the bare run. Its last columns compare the recorded runs with the bare run;
modules without a difference have no row.
"same" means that every test had the same outcome as in the bare run, the process ended in the same way, its trace can
be read and lost no record, and vestige left nothing behind in the interpreter.
"""
NO_TURBO = "The turbo engine does not record on this build.\n"


def listed(all_of_them: bool, has_gil: bool) -> list[str]:
    """Returns the modules to run. A line that begins with a plus has modules that take longer, with a star modules for
    Pythons without the GIL, with a dash modules that are left out.
    """
    lines = (line.split("#")[0].strip() for line in MODULES.read_text().splitlines())
    skipped = ["-"] + ["+"] * (not all_of_them) + ["*"] * has_gil
    return [name for line in lines if not line.startswith(tuple(skipped)) for name in line.lstrip("+* ").split()]


def those_of(python: Python, names: list[str]) -> list[str]:
    """Returns the modules that exist in this version."""
    code = """
import os, sys, test
for name in sys.argv[1:]:
    path = os.path.join(os.path.dirname(test.__file__), *name.split("."))
    if os.path.exists(path + ".py") or os.path.exists(os.path.join(path, "__init__.py")):
        print(name)
"""
    command = [python.path, "-c", code, *names]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def main() -> int:
    parser = argparse.ArgumentParser(description="CPython's own tests, bare and traced.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="only this engine (may be repeated)")
    parser.add_argument("--modules", nargs="+", metavar="NAME", help="only these modules; no results are written")
    parser.add_argument("--all", action="store_true", help="also modules that take longer")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="number of modules at a time (default: 2)")
    parser.add_argument("--why", action="store_true", help="show the messages of differing tests")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would pass on ignored interrupts

    bad = 0
    for version in options.python or [*ways.supported(), *ways.supported("--free-threaded")]:
        python = Python.find(version)
        suite = Suite("cpython", python, lambda name, out: [PROGRAM, out, name], [PROGRAM])
        suite.engines = [engine for engine in options.engine or ENGINES if engine in python.engines]
        names = those_of(python, options.modules or listed(options.all, python.has_gil))
        found = ways.prove(suite, names, options.jobs)
        bad += tell_found(found, KNOWN, version, options.why)
        if not options.modules:
            path = HERE / "results" / f"cpython-{version}.md"
            head = HEAD.format(full=python.full) + NO_TURBO * (python.engines == ("safe",))
            write(path, head, suite, names, found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
