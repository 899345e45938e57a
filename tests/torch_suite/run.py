"""Runs torch's own tests of its profiler against torch and against vestige.

    python tests/torch_suite/run.py FOLDER            FOLDER has test_profiler.py and its neighbours; or TORCH_TESTS=FOLDER
    python tests/torch_suite/run.py FOLDER --files test_profiler_tree.py --engines turbo -k nested
    python tests/torch_suite/run.py FOLDER -o proofs/results/torch-suite.md

The tests are torch's and are not part of vestige: take them from a checkout of the torch version that is installed.
Each file runs in a new process, once with torch's profiler and once for each engine with vestige installed in its
place. Vestige must pass every test that torch passes. A test "reached" vestige if the test, or a process that it
started, made a recording. The exit code is 1 if a test differs that known.txt does not name.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KNOWN = HERE / "known.txt"
LONGEST = 1800  # seconds for one file
NO_TESTS = 5  # pytest's exit code for a file without tests


def run_file(folder: Path, file: str, engine: str, only: str | None, autograd: bool) -> dict[str, list]:
    """Returns the outcomes of a file's tests by name."""
    with tempfile.TemporaryDirectory(prefix="torch-suite-") as place:
        outcomes = Path(place) / "outcomes.json"
        environment = {
            **os.environ,
            "PYTHONPATH": f"{HERE}{os.pathsep}{folder.parent}",
            "VESTIGE_SUITE_ENGINE": engine,
            "VESTIGE_SUITE_OUTCOMES": str(outcomes),
            "VESTIGE_SUITE_RECORDINGS": str(Path(place) / "recordings"),
            "VESTIGE_SUITE_INSTALL": json.dumps({"autograd": autograd}),
            "TMPDIR": place,
        }
        if engine != "torch":
            environment["VESTIGE_ENGINE"] = engine
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "reached",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(folder),
        ]
        if only:
            command += ["-k", only]
        done = subprocess.run(
            [*command, str(folder / file)],
            env=environment,
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
        if done.returncode == NO_TESTS:
            return {}
        if not outcomes.exists():
            sys.exit(f"{file}: no test ran:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        found = json.loads(outcomes.read_text())
    return {name.split("/")[-1]: entry for name, entry in found.items()}


def known_differences() -> dict[str, str]:
    """Returns the tests that vestige does not pass, and the reasons."""
    if not KNOWN.exists():
        return {}
    lines = [line for line in KNOWN.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in (line.partition("  ") for line in lines)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", nargs="?", default=os.environ.get("TORCH_TESTS"), help="folder of torch's test/profiler"
    )
    parser.add_argument("--files", nargs="*", help="only these files")
    parser.add_argument("--engines", default="turbo,safe", help="default: turbo,safe")
    parser.add_argument("-k", dest="only", help="only tests whose names match, as in pytest")
    parser.add_argument("--autograd", action="store_true", help="install(autograd=True): more tests reach vestige")
    parser.add_argument("-o", dest="results", type=Path, help="write the table here too")
    given = parser.parse_args()
    if not given.folder or not Path(given.folder).is_dir():
        parser.error("name the folder of torch's profiler tests, or set TORCH_TESTS")
    folder = Path(given.folder).resolve()
    files = given.files or sorted(path.name for path in folder.glob("test_*.py"))
    engines = given.engines.split(",")
    known = known_differences()
    rows, differing = [], []
    for file in files:
        torch = run_file(folder, file, "torch", given.only, False)
        passed = {name for name, entry in torch.items() if entry[0] == "passed"}
        cells = [file, str(len(torch)), str(len(passed))]
        for engine in engines:
            ours = run_file(folder, file, engine, given.only, given.autograd)
            reached = {name for name in passed if ours.get(name, ["", 0])[1]}
            same = {name for name in passed if ours.get(name, [""])[0] == "passed"}
            cells += [str(len(reached)), str(len(same)), str(len(same & reached))]
            differing += [(engine, name, *ours.get(name, ["missing", 0, ""])) for name in sorted(passed - same)]
            for name in sorted(passed - reached):
                print(f"{engine} {name}: makes no recording")
        rows.append(cells)
        print("  ".join(cells), flush=True)
    print(table(rows, engines))
    for engine, name, outcome, _, error in differing:
        print(f"{engine} {name}: {outcome}: {known.get(name, error)}")
    if given.results:
        installed = "`install(autograd=True)`" if given.autograd else "`install()`"
        given.results.write_text(page(rows, engines, differing, known, installed))
    return 1 if any(row[1] not in known for row in differing) else 0


def page(
    rows: list[list[str]], engines: list[str], differing: list[tuple], known: dict[str, str], installed: str
) -> str:
    """Returns the results as a page for proofs/results."""
    import torch

    versions = f"torch {torch.__version__}, CPython {sys.version.split()[0]}"
    lines = [
        "# torch's own tests of its profiler",
        "",
        f"{versions}: tests/torch_suite/run.py ran each file with torch's profiler, and with vestige installed in its place",
        f"({installed}) with each engine. A test reaches vestige if it, or a process that it starts, makes a recording.",
        "",
        table(rows, engines),
        "Tests that pass with torch and not with vestige:"
        if differing
        else "What passes with torch passes with vestige.",
        "",
    ]
    names = sorted({row[1] for row in differing})
    for name in names:
        where = " and ".join(row[0] for row in differing if row[1] == name)
        error = next(row[4] for row in differing if row[1] == name)
        lines.append(f"- `{name}` ({where}): {known.get(name, error)}")
    return "\n".join(lines).rstrip() + "\n"


def table(rows: list[list[str]], engines: list[str]) -> str:
    """Returns the results as Markdown."""
    heads = ["file", "tests", "pass with torch"]
    for engine in engines:
        heads += [f"reach {engine}", f"pass with {engine}", "of those, reached"]
    sums = ["all", *(str(sum(int(row[i]) for row in rows)) for i in range(1, len(heads)))]
    lines = [heads, ["---"] * len(heads), *rows, sums]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
