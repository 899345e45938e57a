"""Callables of every kind, recorded by both engines: do they record the same calls, and which share of the CPU time?

    python proofs/callables.py                  # on every Python here
    python proofs/callables.py --python 3.12

The packages of callables-requirements.txt go into build/proofs/callables; those without a wheel for a Python are left out
there and named. callables_inside.py makes the calls.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSIDE = Path(__file__).with_name("callables_inside.py")
REQUIREMENTS = Path(__file__).with_name("callables-requirements.txt").read_text().split()
RESULTS = Path(__file__).parent / "results" / "callables.md"
WORK = ROOT / "build" / "proofs" / "callables"
HEAD = """\
# Callables of every kind

A function calls what a package brings; both engines record the calls that the function makes itself. `make check NAME=callables` makes this page.

"""


def install(version):
    """Returns the folder of the packages."""
    folder = WORK / version / "packages"
    python = ROOT / ".venv" / version / "bin" / "python"
    for one in REQUIREMENTS:
        stamp = WORK / version / f"{one}.tried"
        if stamp.exists():
            continue
        print(f"{version}: installing {one}", flush=True)
        command = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--only-binary", ":all:"]
        subprocess.run([*command, "--target", folder, "--upgrade", one], check=False, stderr=subprocess.DEVNULL)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    return folder


def inside(version, what, packages):
    folder = WORK / version / "made"
    folder.mkdir(parents=True, exist_ok=True)
    python = ROOT / ".venv" / version / "bin" / "python"
    env = {**os.environ, "PYTHONPATH": str(packages)}
    ran = subprocess.run(
        [python, INSIDE, what, folder], env=env, capture_output=True, text=True, timeout=900, check=False
    )
    if ran.returncode:
        raise SystemExit(f"{version}: {what} ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def rows_of_kinds(version, found):
    for kind, calls in found.items():
        if "error" in calls:
            yield f"| {version} | {kind} | not tried: {calls['error']} | |", None
            continue
        seen = calls.pop("cProfile")
        first, second = calls.values()
        both = "the same" if first == second else f"differs: {first} / {second}"
        names = [name.split()[2].rstrip(">") for name in second]
        by_cprofile = sum(any(re.search(rf"\b{name}\b", one) for one in seen) for name in names)
        yield f"| {version} | {kind} | {len(second)}, {both} | {by_cprofile} |", first == second


def main():
    parser = argparse.ArgumentParser(description="Callables of every kind, recorded by both engines.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    found = subprocess.run([ROOT / "scripts" / "find_python.sh", "--all"], capture_output=True, text=True, check=True)
    lines, shares, differs = [], [], False
    for version in args.python or found.stdout.split():
        packages = install(version)
        for row, is_same in rows_of_kinds(version, inside(version, "kinds", packages)):
            print(row, flush=True)
            lines.append(row)
            differs |= is_same is False
        for program, (before, after) in inside(version, "numeric", packages).items():
            shares.append(f"| {version} | {program} | {before:.0%} | {after:.0%} |")
            print(shares[-1], flush=True)
    text = HEAD + "| Python | kind | direct calls, with both engines | of these, cProfile sees |\n|---|---|---|---|\n"
    text += "\n".join(lines) + "\n\n## Ten numeric programs\n\n"
    text += "The share of the time of the program that lies in calls of C with a span of their own (turbo): functions alone, and with\n"
    text += "classes, ufuncs, operators of arrays and other callables.\n\n"
    text += "| Python | program | functions alone | all callables |\n|---|---|---|---|\n" + "\n".join(shares) + "\n"
    args.results.write_text(text)
    return differs


if __name__ == "__main__":
    sys.exit(main())
