"""Callables of every kind, recorded by both engines: do they record the same calls, and which share of the CPU time?

    python proofs/callables.py                  # on every Python here
    python proofs/callables.py --python 3.12

The packages of callables-requirements.txt go into build/proofs/callables; those without a wheel for a Python are left out
there and named. callables_inside.py makes the calls.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSIDE = Path(__file__).with_name("callables_inside.py")
REQUIREMENTS = Path(__file__).with_name("callables-requirements.txt").read_text().split()
RESULTS = Path(__file__).parent / "results" / "callables.md"
TOOLS = ["VizTracer", "cProfile", "torch.profiler"]
WORK = ROOT / "build" / "proofs" / "callables"
HEAD = """\
# Callables of every kind

A function calls what a package brings; both engines record the calls that the function makes itself. The last columns say how many of their
names other tools record, as calls in C: `–` where a tool does not install. `make check NAME=callables` makes this page.

"""


def install(version):
    """Installs the packages, those with a wheel for this Python, and returns their folder."""
    folder = WORK / version / "packages"
    stamp = WORK / version / f"{'-'.join(REQUIREMENTS)}.tried"
    if not stamp.exists() and not pip(version, folder, REQUIREMENTS):
        for one in REQUIREMENTS:
            pip(version, folder, [one])
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()
    return folder


def pip(version, folder, packages):
    print(f"{version}: installing {' '.join(packages)}", flush=True)
    python = ROOT / ".venv" / version / "bin" / "python"
    command = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--only-binary", ":all:"]
    command += ["--target", folder, "--upgrade", *packages]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


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


def row_of_kind(version, kind, found):
    """Returns the row, and whether both engines record the same calls."""
    if "error" in found:
        return f"| {version} | {kind} | not tried: {found['error']} | | | |", True
    first, *others = found["calls"].values()
    is_same = all(one == first for one in others)
    both = "the same" if is_same else f"differs: {found['calls']}"
    seen = [found["seen"].get(tool) for tool in TOOLS]
    names = set(found["names"])
    cells = ["–" if each is None else f"{len(names & set(each))} of {len(names)}" for each in seen]
    return f"| {version} | {kind} | {len(first)}, {both} | {' | '.join(cells)} |", is_same


def main():
    parser = argparse.ArgumentParser(description="Callables of every kind, recorded by both engines.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    here = subprocess.run([ROOT / "scripts" / "find_python.sh", "--all"], capture_output=True, text=True, check=True)
    lines, shares, differs = [], [], False
    for version in args.python or here.stdout.split():
        packages = install(version)
        by_torch = inside(version, "torch", packages) | inside(version, "torch-pyside6", packages)
        for kind in inside(version, "names", packages):
            found = inside(version, kind, packages)
            if kind in by_torch:
                found.setdefault("seen", {})["torch.profiler"] = by_torch[kind]
            row, is_same = row_of_kind(version, kind, found)
            print(row, flush=True)
            lines.append(row)
            differs |= not is_same
        for program, found in inside(version, "numeric", packages).items():
            cells = [found["error"], ""] if "error" in found else [f"{share:.0%}" for share in found["shares"]]
            shares.append(f"| {version} | {program} | {' | '.join(cells)} |")
            print(shares[-1], flush=True)
    text = (
        HEAD + f"| Python | kind | direct calls, with both engines | {' | '.join(TOOLS)} |\n|---|---|---|---|---|---|\n"
    )
    text += "\n".join(lines) + "\n\n## Ten numeric programs\n\n"
    text += "The share of the time of the program that lies in calls of C with a span of their own (turbo): functions alone, and with\n"
    text += "classes, ufuncs, operators of arrays and other callables.\n\n"
    text += "| Python | program | functions alone | all callables |\n|---|---|---|---|\n" + "\n".join(shares) + "\n"
    args.results.write_text(text)
    return differs


if __name__ == "__main__":
    sys.exit(main())
