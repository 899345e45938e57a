"""Runs the Python tests on an emulated aarch64, and writes the results of these and of the C tests.

scripts/check_aarch64.sh builds what it needs and starts it; `make check NAME=aarch64` does both. With --again, only the
named files run again (`make check NAME=aarch64 ARGS='--again stack_room'`); the rest of the page keeps the results of
the last run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from builds import TOP, run_tests

RESULTS = TOP / "proofs" / "results" / "aarch64.md"
LOG = TOP / "build" / "aarch64" / "python"

# Tests that depend on the processor: its memory order, its registers or its instructions. These are tests of hooks,
# thunks, C stacks, allocators, native frames, threads, processes that fork or end, and files that are read while they
# are written. The C tests cover reading traces.
FILES = """
annotations children engines gc inside memory_hooks memory_stacks stack_room threads traceback tree_exceptions
tree_functions tree_generators tree_native turbo_frames turbo_natives
""".split()

FACTS = """
import platform, vestige
with vestige.profile() as prof:
    pass
print(platform.python_version(), prof._session.engine)
"""

PAGE = """# aarch64

vestige was cross-built for aarch64 with warnings as errors, and its tests were run under qemu-user on x86-64.
`make check NAME=aarch64` does both and writes this page.

| what | version |
|---|---|
| qemu-user | {qemu} |
| compiler | {compiler} |
| CPython | {python} of Debian 13, arm64 |
| engine that `auto` chose | {engine} |

| tests | passed | skipped | failed |
|---|--:|--:|--:|
| in C, all | {c} |
{files}

Tests in Python that take long are left out; `proofs/aarch64.py` says why these files. The tests in C of the hooks of malloc are not
built for aarch64: libraries that are loaded later get no hooks there.

{failed}## What was skipped, and why

{reasons}

## What is not claimed

- Speed. Emulation shows nothing about it.
- The order in which a processor's stores are seen by another: qemu on x86-64 keeps x86-64's order. For that there is a test that makes
  reads see too little (`tests/c/test_read_order.c`), and the table in `ARCHITECTURE.md`.
- Native frames below a signal handler: they may end early, with libunwind 1.8.1.
- Other Pythons than the one above, torch, and the tests that are not listed.
- A kernel for aarch64, and pages that are larger than 4 KiB: system calls are those of the machine that emulates.
"""


def cases_of(reports: list[Path]) -> list[ElementTree.Element]:
    return [case for path in reports if path.exists() for case in ElementTree.parse(path).iter("testcase")]


def file_of(case: ElementTree.Element) -> str:
    return next((part for part in case.get("classname", "").split(".") if part.startswith("test_")), "?")


def is_bad(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def cells_of(cases: list[ElementTree.Element]) -> str:
    skipped = sum(case.find("skipped") is not None for case in cases)
    failed = sum(map(is_bad, cases))
    return f"{len(cases) - skipped - failed} | {skipped} | {failed}"


def rows_of(cases: list[ElementTree.Element]) -> str:
    files: dict[str, list[ElementTree.Element]] = {}
    for case in cases:
        files.setdefault(file_of(case), []).append(case)
    rows = [f"| `{file}.py` | {cells_of(files[file])} |" for file in sorted(files)]
    return "\n".join([f"| in Python, of these files | {cells_of(cases)} |", *rows])


def reasons_of(cases: list[ElementTree.Element]) -> str:
    skipped = [mark for case in cases if (mark := case.find("skipped")) is not None]
    reasons = Counter(mark.get("message", "") for mark in skipped)
    return "\n".join(f"- {count} skipped: {reason}" for reason, count in sorted(reasons.items()))


def ask(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run_here(python: Path, env: dict[str, str], again: list[str]) -> tuple[list[ElementTree.Element], list[str]]:
    """Returns the counts of outcomes, and the failed tests."""
    before = cases_of(sorted(LOG.parent.glob(f"{LOG.name}.*.xml"))) if again else []
    log = LOG.with_name("python-again") if again else LOG
    _, _, failed = run_tests(python, env, again or FILES, log)
    kept = [case for case in before if file_of(case).removeprefix("test_") not in again]
    failed += [f"{case.get('classname')}::{case.get('name')}" for case in kept if is_bad(case)]
    return kept + cases_of(sorted(log.parent.glob(f"{log.name}.*.xml"))), failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, required=True, help="Python with vestige, which qemu runs")
    parser.add_argument("--qemu", required=True)
    parser.add_argument("--in-c", type=Path, required=True, help="what Meson wrote of the tests in C")
    parser.add_argument("--again", nargs="+", default=[], help="files to run again, of those that ran")
    args = parser.parse_args()

    env = {**os.environ, "PATH": f"{args.python.parent}:{os.environ['PATH']}", "VESTIGE_QUICK": "1"}
    env["VESTIGE_EMULATED"] = "1"  # tests/python/emulated.py
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    python, engine = ask(args.python, "-W", "ignore", "-c", FACTS).split()
    print(f"tests in Python, see {LOG.relative_to(TOP)}.*.log", flush=True)
    cases, failed = run_here(args.python, env, args.again)
    in_c = cases_of([args.in_c])
    failed += [f"{case.get('classname')}::{case.get('name')}" for case in in_c if is_bad(case)]
    RESULTS.write_text(
        PAGE.format(
            qemu=ask(args.qemu, "--version").split()[2],
            compiler=ask("aarch64-linux-gnu-gcc", "--version").splitlines()[0],
            python=python,
            engine=engine,
            c=cells_of(in_c),
            files=rows_of(cases),
            failed="".join(["## What failed\n\n", *(f"- `{test}`\n" for test in failed), "\n"] if failed else []),
            reasons=reasons_of(cases),
        )
    )
    for test in failed:
        print(f"FAILED on aarch64: {test}")
    print(
        f"aarch64: {len(in_c)} tests in C, {len(cases)} in Python: {len(failed)} failed, see {RESULTS.relative_to(TOP)}"
    )
    return int(bool(failed) or not cases or not in_c)


if __name__ == "__main__":
    sys.exit(main())
