"""Tests that packages bring along, bare and under vestige's engines: every test must come out the same.

    python proofs/packages.py                           every Python here, both engines
    python proofs/packages.py --python 3.12 --engine turbo --packages numpy-arrays

What is run is in packages.txt, differences that are known and why in packages_known.txt, the results are
results/packages-<version>.md. The packages are installed into build/proofs/venv-<version>, to which what
`make develop` installed is added. Exit code 1 if there is a difference that is not known.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys

import ways
from report import tell_found, write
from ways import ENGINES, HERE, INSIDE, KEPT, ROOT, Python, Suite

LIST = HERE / "packages.txt"
REQUIREMENTS = HERE / "packages-requirements.txt"
PROGRAM = INSIDE / "pytest_outcomes.py"
KNOWN = HERE / "packages_known.txt"
HEAD = """\
# Packages on Python {version}: the tests they bring along, bare and traced

A row is a part of a package's tests, run by pytest in one process, bare and under `vestige run --engine …`, and how
they came out bare. "same": every test came out as it did bare, the process ended the same way, its trace can be read
and has lost nothing, and nothing of vestige's was left in the interpreter.

With {packages}.
"""


def listed(version: str) -> dict[str, list[str]]:
    """By the name of a part, what pytest is told; without those that are for other versions."""
    parts = {}
    for line in LIST.read_text().splitlines():
        words = shlex.split(line, comments=True)
        if words:
            name, _, versions = words[0].partition("@")
            if version in (versions or version).split(","):
                parts[name] = words[1:]
    return parts


def environment(version: str) -> Python:
    """Where the packages are: made if it is not there, or if other packages are asked for by now."""
    folder = KEPT / f"venv-{version}"
    done = folder / "requirements"
    if not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        print(f"installing packages for Python {version}", flush=True)
        base = ROOT / ".venv" / version
        subprocess.run([base / "bin" / "python", "-m", "venv", "--clear", folder], check=True)
        pip = [folder / "bin" / "pip", "install", "-qq", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, "-r", REQUIREMENTS], check=True, stderr=subprocess.DEVNULL)
        place = f"lib/python{version}/site-packages"
        (folder / place / "vestige-base.pth").write_text(f"{base / place}\n")
        done.write_text(REQUIREMENTS.read_text())
    return Python(version, str(folder / "bin" / "python"))


def versions(python: Python) -> str:
    """Of the packages that are tested."""
    wanted = [line.split(";")[0] for line in REQUIREMENTS.read_text().split("# tested")[1].split("#")[0].split()]
    code = "import sys, importlib.metadata as m\nfor name in sys.argv[1:]: print(name, m.version(name))"
    command = [python.path, "-c", code, *wanted]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return ", ".join(lines)


def prove(version: str, options: argparse.Namespace) -> int:
    """Returns how many differences are not known."""
    parts = listed(version)
    names = [name for name in options.packages or parts if name in parts]
    if not names:
        print(f"{version}: no such part is listed")
        return 0
    python = environment(version)
    suite = Suite("packages", python, lambda name, out: [PROGRAM, out, *parts[name]], [PROGRAM, REQUIREMENTS])
    suite.engines = options.engine or ENGINES
    found = ways.prove(suite, names, options.jobs)
    bad = tell_found(found, KNOWN, version, options.why)
    if not options.packages:
        path = HERE / "results" / f"packages-{version}.md"
        write(path, HEAD.format(version=python.full, packages=versions(python)), suite, names, found)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests that packages bring along, bare and traced.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="only this engine (may be repeated)")
    parser.add_argument("--packages", nargs="+", metavar="NAME", help="only these parts; no results are written")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="at a time (default: 2)")
    parser.add_argument("--why", action="store_true", help="show what a differing test said")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would pass on that it is ignored

    bad = sum([prove(version, options) for version in options.python or ways.supported()])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
