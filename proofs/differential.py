"""Generated programs, recorded by every engine of every Python here, against an oracle that uses no hooks.

    python proofs/differential.py                                 2,500 programs on each Python, results/differential.md
    python proofs/differential.py --python 3.12                   replaces the rows of that Python
    python proofs/differential.py --python 3.12 --programs 100    no results are written
    python proofs/differential.py --seed 7                        other programs
    python proofs/differential.py --python 3.15 --jit             only with the JIT on

Programs, oracle and the table of differences that are let pass are those of tests/python/differential. What fails is
shrunk and printed, with both trees. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "differential.md"
ABI = "t" * ("t" in sys.abiflags)  # Pythons without the GIL
# printed if the program crashes this process
LAST = ROOT / "build" / f"differential-{sys.version_info[0]}.{sys.version_info[1]}{ABI}.py"
BATCH = 250  # hypothesis finds new programs better in batches
AT_ONCE = "monitoring, 8 copies at once"  # programs that run in parallel where there is no GIL
JIT = {  # 3.15 can be told to compile a loop after a few rounds; 3.14 needs programs that ran some hundred times before
    "PYTHON_JIT": "1",
    "PYTHON_JIT_JUMP_BACKWARD_INITIAL_VALUE": "7",
    "PYTHON_JIT_RESUME_INITIAL_VALUE": "7",
}
WARM = [0, 0, 3]
WARM_JIT = [0] * 12 + [3] * 7 + [400]

HEAD = """\
# Generated programs, recorded by every engine

Hypothesis generates the programs. They have functions, recursion, generators driven from several places, throw and
close, coroutines by hand and under asyncio, exceptions, classes, callbacks out of C, exec and eval, and threads that
meet at barriers. A copy of each program logs its own calls. Each engine records the program itself, and the test
compares the recording with the log: for each thread the names, the nesting, the order, and which calls ended by an
exception. A third of the programs first run a few times, so that the interpreter has specialised their code.
With the JIT, one program in twenty first runs 400 times, and 3.15 compiles a loop after a few rounds.

A table in `tests/python/differential/compare.py` lists the differences that are accepted, each with the sentence of
`docs/how/accuracy.md` that describes it. `make check NAME=differential` makes this page.

| Python | engine | programs | calls compared | differences |
|---|---|---|---|---|
"""


def work(programs: int, seed_of_all: int) -> None:
    """Prints the results of one Python after each batch. Runs in that Python."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    from differential import compare, generate
    from usable import usable_engines

    LAST.parent.mkdir(exist_ok=True)
    compiles = hasattr(sys, "_jit") and sys._jit.is_enabled()
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    ways = usable_engines() if has_gil else [*usable_engines(), AT_ONCE]
    found: dict[str, Any] = {
        "version": platform.python_version() + ABI + (", JIT" if compiles else ""),
        "programs": 0,
        "calls": dict.fromkeys(ways, 0),
        "wrong": [],
    }

    def batch(count: int, number: int) -> None:
        @seed(number)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )
        @given(generate.programs(), st.sampled_from(WARM_JIT if compiles else WARM))
        def same(program: str, warm: int) -> None:
            LAST.write_text(program)
            for engine, calls in compare.check(program, warm=warm).items():
                found["calls"][engine] += calls
            if not has_gil:
                found["calls"][AT_ONCE] += compare.check_at_once(program)
            found["programs"] += 1

        try:
            same()
        except compare.Different as error:
            found["wrong"].append(str(error))

    for number, start in enumerate(range(0, programs, BATCH)):
        batch(min(BATCH, programs - start), seed_of_all * 1000 + number)
        print(json.dumps(found), flush=True)


def pythons() -> list[str]:
    found = []
    for which in ("--all", "--free-threaded"):
        command = [ROOT / "scripts" / "find_python.sh", which]
        found += subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    return found


def has_jit(python: str) -> bool:
    code = "import sys; sys.exit(not (hasattr(sys, '_jit') and sys._jit.is_available()))"
    return subprocess.run([ROOT / ".venv" / python / "bin" / "python", "-c", code]).returncode == 0


def ask(python: str, programs: int, number: int, jit: bool) -> dict[str, Any]:
    command = [ROOT / ".venv" / python / "bin" / "python", "-W", "ignore", "-X", "faulthandler", __file__]
    command += ["--worker", "--programs", str(programs), "--seed", str(number)]
    variables = {**os.environ, **JIT} if jit else None
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=variables)
    if done.returncode:
        last = LAST.with_name(f"differential-{python}.py").read_text()
        sys.exit(f"Python {python} ended with {done.returncode}:\n{done.stderr[-4000:]}\nin the program\n{last}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def rows_of_page(rows: list[str]) -> list[str]:
    """Returns the rows of the page with these in place of those of the same Pythons."""

    def python(row: str) -> tuple[bool, str]:
        version = row.split("|")[1].partition(",")[0].strip()
        return version.endswith("t"), version.rpartition(".")[0]

    new = {python(row) for row in rows}
    kept = [line for line in RESULTS.read_text().splitlines() if line.startswith("| 3.") and python(line) not in new]
    return sorted([*kept, *rows], key=python)


def main() -> int:
    parser = argparse.ArgumentParser(description="Generated programs, recorded by every engine.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--programs", type=int, default=2500, metavar="N", help="programs on each Python (2500)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the programs (1)")
    parser.add_argument("--jit", action="store_true", help="only with the JIT on, on Pythons that have one")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.programs, options.seed)
        return 0

    rows, failures = [], []
    ways = [(python, jit) for python in options.python or pythons() for jit in (False, True)]
    for python, jit in ways:
        if (options.jit and not jit) or (jit and not has_jit(python)):
            continue
        started = time.monotonic()
        found = ask(python, options.programs, options.seed, jit)
        for engine, calls in found["calls"].items():
            wrong = [text for text in found["wrong"] if text.startswith(f"engine {engine} ")]
            rows.append(
                f"| {found['version']} | `{engine}` | {found['programs']:,} | {calls:,} | {len(wrong) or 'none'} |"
            )
        failures += found["wrong"]
        print("\n".join(rows[-len(found["calls"]) :]), f"{time.monotonic() - started:.0f} s", flush=True)
    print("\n\n".join(failures))
    if not options.jit and options.programs >= 2000:
        seed = f"\nSeed {options.seed}; {platform.system()} on {platform.machine()}.\n"
        RESULTS.write_text(HEAD + "\n".join(rows_of_page(rows)) + "\n" + seed)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
