"""Runs the tests of the extension on builds of CPython that differ in how they were made, and writes the results.

    python proofs/builds.py 3.13-dbg 3.14      # environments that `make develop PY=...` made
    python proofs/builds.py 3.11-static 3.14-shared    # libpython in the program, or apart from it
    python proofs/builds.py 3.13+dev 3.13+malloc       # under -X dev, and with PYTHONMALLOC=debug

A debug build checks conditions that an ordinary build assumes: that no error is set when the interpreter is called,
that objects are whole, and that references are given back (tests/python/test_reference_counts.py).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
RESULTS = TOP / "proofs" / "results" / "builds.md"

# Tests that depend on the interpreter's internals. Debug builds run all tests, including slow ones.
HOOKS = """
embedded engines forked gc greenlets inside memory_api memory_hooks memory_stacks min_duration other_builds stack_room
threads traceback traceback_native tree_* turbo_*
""".split()
ALL = ["*"]
AT_ONCE = 2

# Options that make the interpreter check itself, by the name behind the +.
CHECKS = {
    "": ("", {}),
    "dev": ("`-X dev`", {"PYTHONDEVMODE": "1"}),
    "malloc": ("`PYTHONMALLOC=debug`", {"PYTHONMALLOC": "debug"}),
}

FACTS = """
import json, sys, sysconfig, vestige
with open("/proc/self/maps") as maps:
    shared = any("/libpython" in line for line in maps)
with vestige.profile() as prof:
    pass
print(json.dumps({
    "python": ".".join(map(str, sys.version_info[:3])),
    "debug": hasattr(sys, "gettotalrefcount"),
    "shared": shared,
    "compiler": sys.version[sys.version.index("[") + 1:].rstrip("]"),
    "debian": "--with-wheel-pkg-dir" in (sysconfig.get_config_var("CONFIG_ARGS") or ""),
    "engine": json.loads(prof._session.trace().metadata()["vestige.engine"]),
}))
"""

TITLE = """# Builds

The tests of the hooks (`proofs/builds.py` names them), and on debug builds all tests, on builds of CPython that differ
in how they were made. `make check NAME=debug` makes the lines of the debug builds, `make check NAME=builds` the others. There,
tests that take long are left out; `make test` runs them on ordinary builds.

- Debug builds check what an ordinary build takes for granted, and count references: 1,000 starts and stops, and 100
  readings of a trace in every way that there is, kept none. The turbo engine refuses them, and `vestige info` says so.
- Debian's ordinary builds are made with PGO and LTO. pyenv's, which are the others, are made without. Where libpython
  is not where the build has it, the program was linked from the library that the build brings
  (`scripts/link_python.py`).
- Tests that a build cannot run are skipped, with the reason (`tests/python/other_builds.txt`).
- The tail-calling interpreter, which needs a recent clang, is in no package. It was tried once, by hand, in CPython 3.14.2
  built by clang 19 with `--with-tail-call-interp`: 574 tests passed with turbo and 278 with the safe engine, those of native
  tracebacks among them. 21 of `test_inside.py` failed for one reason: before 3.14.5 the collector is another, so `vestige
  info` names one part that does without.

| Python | build | compiler | checks | engine | passed | skipped | failed |
|---|---|---|---|---|--:|--:|--:|
"""


def describe(facts: dict[str, object]) -> str:
    words = ["debug"] if facts["debug"] else ["PGO and LTO"] if facts["debian"] else []
    words.append("libpython apart (`--enable-shared`)" if facts["shared"] else "libpython in the program")
    return ", ".join(words)


def learn_facts(python: Path, env: dict[str, str]) -> dict[str, object]:
    command = [python, "-W", "ignore", "-c", FACTS]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(told))


def run_tests(python: Path, env: dict[str, str], names: list[str], log: Path) -> tuple[int, int, list[str]]:
    """Returns how many tests passed and were skipped, and which failed. Each of several processes runs a part of the
    files.
    """
    files = sorted({path for name in names for path in (TOP / "tests" / "python").glob(f"test_{name}.py")})
    files.sort(key=lambda path: path.stat().st_size)
    command = [python, "-m", "pytest", "-q", "-rfEs", "-m", "not sql"]
    running = []
    for part in range(min(AT_ONCE, len(files))):
        report = log.with_suffix(f".{part}.xml")
        report.unlink(missing_ok=True)
        with log.with_suffix(f".{part}.log").open("w") as output:
            words = [*command, f"--junitxml={report}", *files[part::AT_ONCE]]
            running.append((report, subprocess.Popen(words, cwd=TOP, env=env, stdout=output, stderr=subprocess.STDOUT)))
    for _, process in running:
        process.wait()
    return sum_up([report for report, _ in running])


def sum_up(reports: list[Path]) -> tuple[int, int, list[str]]:
    failed = [f"{report.stem}: pytest did not come to its end" for report in reports if not report.exists()]
    cases = [case for path in reports if path.exists() for case in ElementTree.parse(path).iter("testcase")]
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    failed += [f"{case.get('classname')}::{case.get('name')}" for case in bad]
    return len(cases) - skipped - len(bad), skipped, failed


def put_line(line: str) -> None:
    """The file has one line for each Python, build, set of checks and engine."""
    old = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    lines = {key_of(text): text for text in old if text.startswith("| 3.")}
    lines[key_of(line)] = line
    RESULTS.write_text(TITLE + "\n".join(lines[key] for key in sorted(lines)) + "\n")


def key_of(line: str) -> tuple[object, ...]:
    python, build, _, checks, engine, *_ = (cell.strip() for cell in line.split("|")[1:])
    return tuple(int(part) for part in python.split(".")), build, checks, engine


def try_build(name: str, engine: str) -> bool:
    """Returns whether all tests passed on one build with one engine; "": the only engine there."""
    environment, _, checks = name.partition("+")
    python = TOP / ".venv" / environment / "bin" / "python"
    under, settings = CHECKS[checks]
    env = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", **settings}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # a debug build takes long to compile
    if engine:
        env["VESTIGE_ENGINE"] = engine
    title = " ".join([name, engine]).strip()
    log = TOP / "build" / "builds" / title.replace(" ", "-").replace(".", "_")
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"tests on Python {title}, see {log.relative_to(TOP)}.*.log", flush=True)
    facts = learn_facts(python, env)
    if not facts["debug"]:
        env["VESTIGE_QUICK"] = "1"
    passed, skipped, failed = run_tests(python, env, ALL if facts["debug"] else HOOKS, log)
    for test in failed:
        print(f"FAILED on {title}: {test}")
    print(f"{title}: {passed} passed, {skipped} skipped, {len(failed)} failed", flush=True)
    cells = [facts["python"], describe(facts), facts["compiler"], under, facts["engine"], passed, skipped, len(failed)]
    put_line(f"| {' | '.join(map(str, cells))} |")
    return passed > 0 and not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs="+", help="names of environments in .venv; +dev and +malloc add checks")
    good = [try_build(name, engine) for name in parser.parse_args().builds for engine in engines_on(name)]
    return int(not all(good))


def engines_on(name: str) -> tuple[str, ...]:
    """Returns the engines to test: only one if there is only one, or if the engine hardly matters."""
    if name.endswith("-dbg"):
        return ("",)
    return ("turbo",) if "+" in name else ("turbo", "safe")


if __name__ == "__main__":
    sys.exit(main())
