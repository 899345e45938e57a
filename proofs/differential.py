"""Generated programs, recorded by every engine of every Python here, against an oracle that uses no hooks.

    python proofs/differential.py                                 2,500 programs on each Python, results/differential.md
    python proofs/differential.py --python 3.12 --programs 100    no results are written
    python proofs/differential.py --seed 7                        other programs

Programs, oracle and the table of differences that are let pass are those of tests/python/differential. What fails is
shrunk and printed, with both trees. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "differential.md"
LAST = ROOT / "build" / f"differential-{sys.version_info[0]}.{sys.version_info[1]}.py"  # shown if it crashes us
BATCH = 250  # hypothesis looks for new programs better in pieces

HEAD = """\
# Generated programs, recorded by every engine

Each program is drawn by hypothesis (functions, recursion, generators driven from several places, throw and close,
coroutines by hand and under asyncio, exceptions, classes, callbacks out of C, exec and eval, threads that meet at
barriers), run as a twin that logs its own calls, and recorded by each engine, a third of them after a few runs that
warmed its code up. Compared are, for each thread, names, nesting, order, and which calls were left by an exception.
Made by `make check-differential`; the differences that are let pass are the table in
`tests/python/differential/compare.py`, each with its sentence of `docs/how/accuracy.md`.

| Python | engine | programs | calls compared | differences |
|---|---|---|---|---|
"""


def work(programs: int, seed_of_all: int) -> None:
    """Prints what one Python finds, again after each batch. Runs in that Python."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    import vestige
    from differential import compare, generate

    LAST.parent.mkdir(exist_ok=True)
    found = {
        "version": platform.python_version(),
        "programs": 0,
        "calls": dict.fromkeys(vestige._core.engines, 0),
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
        @given(generate.programs(), st.sampled_from([0, 0, 3]))
        def same(program: str, warm: int) -> None:
            LAST.write_text(program)
            for engine, calls in compare.check(program, warm=warm).items():
                found["calls"][engine] += calls
            found["programs"] += 1

        try:
            same()
        except compare.Different as error:
            found["wrong"].append(str(error))

    for number, start in enumerate(range(0, programs, BATCH)):
        batch(min(BATCH, programs - start), seed_of_all * 1000 + number)
        print(json.dumps(found), flush=True)


def pythons() -> list[str]:
    command = [ROOT / "scripts" / "find_python.sh", "--all"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()


def ask(python: str, programs: int, number: int) -> dict[str, Any]:
    command = [ROOT / ".venv" / python / "bin" / "python", "-W", "ignore", "-X", "faulthandler", __file__]
    command += ["--worker", "--programs", str(programs), "--seed", str(number)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        last = LAST.with_name(f"differential-{python}.py").read_text()
        sys.exit(f"Python {python} ended with {done.returncode}:\n{done.stderr[-4000:]}\nin the program\n{last}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description="Generated programs, recorded by every engine.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--programs", type=int, default=2500, metavar="N", help="on each Python (2500)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which programs (1)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.programs, options.seed)
        return 0

    rows, failures = [], []
    for python in options.python or pythons():
        started = time.monotonic()
        found = ask(python, options.programs, options.seed)
        for engine, calls in found["calls"].items():
            wrong = [text for text in found["wrong"] if text.startswith(f"engine {engine} ")]
            rows.append(
                f"| {found['version']} | `{engine}` | {found['programs']:,} | {calls:,} | {len(wrong) or 'none'} |"
            )
        failures += found["wrong"]
        print("\n".join(rows[-len(found["calls"]) :]), f"{time.monotonic() - started:.0f} s", flush=True)
    print("\n\n".join(failures))
    if not options.python and options.programs >= 2000:
        seed = f"\nSeed {options.seed}; {platform.system()} on {platform.machine()}.\n"
        RESULTS.write_text(HEAD + "\n".join(rows) + "\n" + seed)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
