"""Runs each libFuzzer target for some minutes, goes on past what it finds, and writes down how it went.

    python proofs/fuzz.py --seconds 600
    python proofs/fuzz.py --seconds 60 --targets export view
    python proofs/fuzz.py --minimize

Inputs that break a target go to build/fuzz/broken/<target>, those that reach something new to build/fuzz/found/<target>.
With --minimize no target runs: the smallest inputs of those found that reach all that they reach become the target's
min_... in fuzz/corpus. The exit status is 0 if nothing broke. It needs clang, as `make fuzz` does.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
CORPUS = ROOT / "fuzz" / "corpus"
RESULTS = ROOT / "proofs" / "results" / "fuzz.md"

TARGETS = {
    "reader": "files as they are, packed ones too: opened, asked, replayed, exported",
    "matcher": "events: in batches and one by one they give the same spans, and these nest",
    "export": "a trace in each of 20 formats: JSON, protocol buffers and text come out as such",
    "graph": "nodes of execution traces and what memory was for: an id is given once, rows are in order",
    "limit": "a trace read in each of 30 ways: the memory it takes is bounded by its size",
    "memory": "the history of memory and its summary: they add up",
    "pack": "packed, unpacked, recovered, damaged: the same bytes and spans come back",
    "tables": "each table as Arrow gives it out: offsets, indexes and nulls are right",
    "view": "pictures and the index, which is changed under them: they agree with every span",
}
OF_FILES = ("reader", "matcher")  # targets whose input is not a trace_input.h input
SIZE_MAX = {"reader": 8500, "export": 8000}  # bytes of an input that is kept; 4096 for the others
HEAD = """# Fuzzing

libFuzzer runs each target of `fuzz/` with the address and undefined-behaviour sanitizers. It starts from the target's
corpus and goes on after an input that breaks something. "inputs kept" is the size of the corpus, with the seeds;
"edges" counts the branches of the code that these inputs reach. `make check NAME=fuzz` makes this table.

| target | what it does with an input | seconds | executions | inputs kept | edges | crashes | out of memory | too slow |
|---|---|--:|--:|--:|--:|--:|--:|--:|
"""
STATUS = re.compile(r"^#(\d+): cov: .* oom/timeout/crash: (\d+)/(\d+)/(\d+) time: (\d+)s", re.MULTILINE)


def corpora(target: str) -> list[Path]:
    names = [target] if target in OF_FILES else [target, "trace"]
    return [CORPUS / name for name in names if (CORPUS / name).is_dir()]


def program(target: str) -> str:
    return str(BUILD / "fuzz" / f"fuzz_{target}")


def environment() -> dict[str, str]:
    return {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=32"}


def run(target: str, seconds: int) -> None:
    """The log of the run is build/fuzz/log/<target>."""
    found, broken, log = BUILD / "found" / target, BUILD / "broken" / target, BUILD / "log" / target
    for folder in (found, broken, log.parent):
        folder.mkdir(parents=True, exist_ok=True)
    command = [program(target), "-fork=1", "-ignore_crashes=1", "-ignore_ooms=1", "-ignore_timeouts=1"]
    command += [f"-max_total_time={seconds}", "-max_len=32768", "-timeout=20"]
    command += ["-rss_limit_mb=512", "-malloc_limit_mb=256", f"-artifact_prefix={broken}/"]
    with open(log, "w") as out:
        subprocess.run([*command, found, *corpora(target)], stdout=out, stderr=out, env=environment(), check=False)


def minimize(target: str) -> None:
    kept = CORPUS / target
    kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        base, more = Path(folder, "base"), Path(folder, "more")
        base.mkdir()
        more.mkdir()
        for file in [file for one in corpora(target) for file in one.iterdir()]:
            if not file.name.startswith("min_"):
                shutil.copy(file, base)
        for file in [*kept.glob("min_*"), *(BUILD / "found" / target).glob("*")]:
            if file.stat().st_size <= SIZE_MAX.get(target, 4096):
                shutil.copy(file, more)
        before = {file.name for file in base.iterdir()}
        subprocess.run(
            [program(target), "-merge=1", "-use_counters=0", "-max_len=32768", "-rss_limit_mb=1024", base, more],
            stderr=subprocess.DEVNULL,
            env=environment(),
            check=True,
        )
        for file in kept.glob("min_*"):
            file.unlink()
        for file in base.iterdir():
            if file.name not in before:
                shutil.copy(file, kept / f"min_{file.name.removeprefix('min_')[:8]}")


def edges(target: str) -> int:
    done = subprocess.run(
        [program(target), "-runs=0", *corpora(target)], stderr=subprocess.PIPE, text=True, env=environment(), check=True
    )
    return int(re.findall(r"DONE +cov: (\d+)", done.stderr)[-1])


def row_of_before(target: str) -> str:
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    none = f"| `{target}` | {TARGETS[target]} | not run | | | | | | |"
    return next((line for line in lines if line.startswith(f"| `{target}` |")), none) + "\n"


def row(target: str) -> tuple[str, int]:
    """Returns the target's line, and how often it broke. A target that did not run keeps its line."""
    log = BUILD / "log" / target
    states = STATUS.findall(log.read_text()) if log.exists() else []
    if not states:
        return row_of_before(target), 0
    runs, oom, slow, crashes, seconds = (int(number) for number in states[-1])
    kept = sum(len(list(folder.iterdir())) for folder in corpora(target))
    line = f"| `{target}` | {TARGETS[target]} | {seconds} | {runs:,} | {kept:,} | {edges(target):,} "
    return line + f"| {crashes} | {oom} | {slow} |\n", crashes + oom + slow


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="seconds for each target (default: 600)")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS), metavar="NAME")
    parser.add_argument("--minimize", action="store_true", help="add the smallest inputs found to the corpora")
    options = parser.parse_args()
    os.chdir(ROOT)
    subprocess.run(["scripts/fuzz_build.sh", *TARGETS], check=True)
    for target in options.targets:
        print(f"{target}: {'minimizing' if options.minimize else f'{options.seconds} s'}", flush=True)
        if options.minimize:
            minimize(target)
        else:
            run(target, options.seconds)
    rows = [row(target) for target in TARGETS]
    RESULTS.write_text(HEAD + "".join(line for line, _ in rows))
    print(f"see {RESULTS.relative_to(ROOT)}")
    return int(any(broken for _, broken in rows))


if __name__ == "__main__":
    sys.exit(main())
