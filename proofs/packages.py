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
from pathlib import Path

import ways
from report import tell_found, write
from ways import ENGINES, HERE, INSIDE, KEPT, ROOT, Python, Suite

LIST = HERE / "packages.txt"
REQUIREMENTS = HERE / "packages-requirements.txt"
PROGRAM = INSIDE / "pytest_outcomes.py"
KNOWN = HERE / "packages_known.txt"
HEAD = """\
# Packages on Python {version}: the tests they bring along, bare and traced

A row is a part of a package's tests. pytest runs it in one process: bare, and under `vestige run` with each engine. The
row counts the tests and their outcomes in the bare run. Its last columns compare the recorded runs with the bare run; parts without a
difference have no row.
"same" means that every test had the same outcome as in the bare run, the process ended in the same way, its trace can
be read and lost no record, and vestige left nothing behind in the interpreter.

With {packages}.
"""


def listed(version: str) -> dict[str, list[str]]:
    """Returns pytest's arguments for each part; leaves out parts for other versions."""
    parts = {}
    for line in LIST.read_text().splitlines():
        words = shlex.split(line, comments=True)
        if words:
            name, _, versions = words[0].partition("@")
            if version in (versions or version).split(","):
                parts[name] = words[1:]
    return parts


def tested() -> list[str]:
    """Returns the packages whose tests are run."""
    return [line.split(";")[0] for line in REQUIREMENTS.read_text().split("# tested")[1].split("#")[0].split()]


def install(base: Path, folder: Path) -> None:
    """Installs the requested packages, or as many as are available. Tested packages are not built from source."""
    pip = [base / "bin" / "python", "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"]
    pip += ["install", "-qq", "--no-compile", "--only-binary", ",".join(tested())]
    if not subprocess.run([*pip, "-r", REQUIREMENTS], stderr=subprocess.DEVNULL).returncode:
        return
    for line in REQUIREMENTS.read_text().splitlines():
        if line and not line.startswith("#"):
            subprocess.run([*pip, line], stderr=subprocess.DEVNULL)


def environment(version: str) -> Python:
    """Returns the environment of the packages. Makes it if it does not exist, or if the list of packages has changed."""
    folder = KEPT / f"venv-{version}"
    done = folder / "requirements"
    if not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        print(f"installing packages for Python {version}", flush=True)
        base = ROOT / ".venv" / version
        # Debian's builds have no ensurepip: use the pip of the environment that `make develop` made.
        subprocess.run([base / "bin" / "python", "-m", "venv", "--clear", "--without-pip", folder], check=True)
        install(base, folder)
        place = f"lib/python{version}/site-packages"
        (folder / place / "vestige-base.pth").write_text(f"{base / place}\n")
        done.write_text(REQUIREMENTS.read_text())
    return Python(version, str(folder / "bin" / "python"))


def versions(python: Python) -> dict[str, str]:
    """Returns the versions of the tested packages; "" for a package that is not available."""
    code = """
import sys, importlib.metadata as m
for name in sys.argv[1:]:
    print(name, next((found.version for found in m.distributions(name=name)), ""))
"""
    command = [python.path, "-c", code, *tested()]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: version for name, _, version in (line.partition(" ") for line in lines)}


def tell_packages(python: Python, found: dict[str, str]) -> str:
    missing = ", ".join(name for name, version in found.items() if not version)
    text = ", ".join(f"{name} {version}" for name, version in found.items() if version)
    return f"{text}.\n\nNot run, as there is no wheel for Python {python.version}: {missing}" if missing else text


def prove(version: str, options: argparse.Namespace) -> int:
    """Returns the number of unknown differences."""
    python = environment(version)
    packages = versions(python)
    parts = {name: words for name, words in listed(version).items() if packages[name.partition("-")[0]]}
    names = [name for name in options.packages or parts if name in parts]
    if not names:
        print(f"{version}: no such part is listed")
        return 0
    suite = Suite("packages", python, lambda name, out: [PROGRAM, out, *parts[name]], [PROGRAM, REQUIREMENTS])
    suite.engines = options.engine or ENGINES
    found = ways.prove(suite, names, options.jobs)
    bad = tell_found(found, KNOWN, version, options.why)
    if not options.packages:
        path = HERE / "results" / f"packages-{version}.md"
        write(path, HEAD.format(version=python.full, packages=tell_packages(python, packages)), suite, names, found)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests that packages bring along, bare and traced.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="only this engine (may be repeated)")
    parser.add_argument("--packages", nargs="+", metavar="NAME", help="only these parts; no results are written")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="number of parts at a time (default: 2)")
    parser.add_argument("--why", action="store_true", help="show the messages of differing tests")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would pass on ignored interrupts

    bad = sum([prove(version, options) for version in options.python or ways.supported()])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
