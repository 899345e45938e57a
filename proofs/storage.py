#!/usr/bin/env python3
"""Programs recorded into files on disks that stall, fail, lose data or vanish: the program must not notice.

    python proofs/storage.py --python 3.11 3.14 --results proofs/results/storage.md
    python proofs/storage.py --python 3.12 --runs 2 --stall 3

The program counts in a loop and reports its longest pause. It runs bare and recorded in turns. The exit status is 0 if
all held: output and exit code as bare, no pause over a second, the median of the pauses within 20 ms of the bare runs,
and whatever a trace lacks is counted or lies in the local file that vestige names.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))

from disks import Disk

PAUSE_MOST_S = 1.0
MEDIAN_MORE_S = 0.020
SHARE_MOST = 0.02
CODE = 3
PROGRAM = """\
import sys, time

def leaf():
    pass

def main(seconds):
    last = time.perf_counter()
    end, longest = last + seconds, 0.0
    while last < end:
        leaf()
        now = time.perf_counter()
        if now - last > longest:
            longest = now - last
        last = now
        if now % 0.01 < 0.005:  # half of the time, so that records come at some million a second
            time.sleep(0.001)
            last = time.perf_counter()
    return longest

longest = main(float(sys.argv[1]))
print("done")
print(f"longest pause {longest:.6f}", file=sys.stderr)
sys.exit(3)
"""
# A million records a second, and the share of a processor that the copier takes.
STEADY = """\
import os, sys, time

def leaf():
    pass

begin, calls = time.perf_counter(), 0
while time.perf_counter() - begin < float(sys.argv[1]):
    for _ in range(5000):
        leaf()
    calls += 5000
    ahead = calls / 500_000 - (time.perf_counter() - begin)
    if ahead > 0:
        time.sleep(ahead)
elapsed = time.perf_counter() - begin
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            words = file.read()
        with open(f"/proc/{pid}/schedstat") as file:
            ns = int(file.read().split()[0])
    except OSError:
        continue
    if words.startswith("vestige-copier") and f"-{os.getpid()}-" in words:
        print(f"records {calls * 2 / elapsed:.0f} share {ns / 1e9 / elapsed:.5f}")
"""


class Run:
    """A program that has ended."""

    def __init__(self, words: list[Any], before: Any = None) -> None:
        begin = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if before is not None:
            before()
        self.out, self.errors = process.communicate()
        self.took = time.monotonic() - begin
        self.code = process.returncode
        found = re.search(r"longest pause ([0-9.]+)", self.errors)
        self.pause = float(found[1]) if found else float("inf")


class Proof:
    def __init__(self, python: str, seconds: float, place: Path) -> None:
        self.python = HERE.parent / ".venv" / python / "bin" / "python"
        self.seconds, self.place = seconds, place
        self.program = place / "program.py"
        self.program.write_text(PROGRAM)
        self.troubles: list[str] = []
        self.number = 0

    def bare(self) -> Run:
        return Run([self.python, self.program, self.seconds])

    def recorded(self, target: Path, *options: str, before: Any = None) -> Run:
        words = [self.python, "-m", "vestige", "run", "-q", *options, "-o", target]
        return Run([*words, self.program, self.seconds], before)

    def check(self, what: str, run: Run) -> None:
        if (run.out, run.code) != ("done\n", CODE):
            self.troubles.append(f"{what}: output or exit code differ: {run.out!r}, {run.code}, {run.errors}")
        if run.pause > PAUSE_MOST_S:
            self.troubles.append(f"{what}: a pause of {run.pause:.3f} s")

    def info(self, path: Path) -> str:
        done = subprocess.run(
            [self.python, "-m", "vestige", "info", "--no-children", path], capture_output=True, text=True
        )
        return done.stdout + done.stderr

    def new_name(self) -> str:
        self.number += 1
        return f"t{self.number}.vst"

    # ---- the cases -------------------------------------------------------

    def stalls(self, runs: int, stall_s: float) -> str:
        """Stalls from the start in every second run, else from the middle of the program on."""
        bare, recorded, clean = [], [], 0
        for number in range(runs):
            disk = Disk(self.place / f"stall{number}", self.python)
            try:
                bare.append(self.bare().pause)
                name = self.new_name()
                stalls = f"stall {stall_s:g}"
                if number % 2:
                    disk.feel(stalls)
                    run = self.recorded(disk.folder / name)
                else:
                    run = self.recorded(
                        disk.folder / name, before=lambda d=disk, s=stalls: (time.sleep(0.5), d.feel(s))
                    )
                self.check(f"stall {number}", run)
                recorded.append(run.pause)
                disk.feel("fine")
                clean += self._becomes_clean(disk.folder / name, f"stall {number}", stall_s)
            finally:
                disk.close()
        more = statistics.median(recorded) - statistics.median(bare)
        if more > MEDIAN_MORE_S:
            self.troubles.append(f"stalls: the median pause is {more * 1000:.1f} ms longer than bare")
        return (
            f"{runs} runs, stalls of {stall_s:g} s: longest pause {max(recorded) * 1000:.1f} ms (bare "
            f"{max(bare) * 1000:.1f}), median {statistics.median(recorded) * 1000:.1f} ms (bare "
            f"{statistics.median(bare) * 1000:.1f}); {clean} of {runs} traces complete, without a loss"
        )

    def _becomes_clean(self, path: Path, what: str, patience_s: float) -> bool:
        until = time.monotonic() + 3 * patience_s + 30
        text = ""
        while time.monotonic() < until:
            text = self.info(path)
            if "ended    clean" in text and " 0 lost" in text:
                return True
            time.sleep(0.5)
        self.troubles.append(f"{what}: the trace did not become complete: {text}")
        return False

    def fails(self, number: int) -> str:
        """Writing fails from the middle on; when the disk works again, the next reader completes the trace."""
        name = errno.errorcode[number]
        disk = Disk(self.place / name, self.python)
        try:
            run = self.recorded(disk.folder / "t.vst", before=lambda: (time.sleep(0.8), disk.feel(f"fail {number}")))
            self.check(name, run)
            if "/vestige-copies-" not in run.errors.rpartition("not complete yet")[2]:
                self.troubles.append(f"{name}: the local file is not named: {run.errors}")
            disk.feel("fine")
            clean = self._becomes_clean(disk.folder / "t.vst", name, 10)
        finally:
            disk.close()
        return f"writing fails with {name}: longest pause {run.pause * 1000:.1f} ms; {self._then(clean)}"

    def unmounted(self) -> str:
        disk = Disk(self.place / "unmounted", self.python)
        try:
            run = self.recorded(disk.folder / "t.vst", before=lambda: (time.sleep(0.8), disk.unmount()))
            self.check("unmounted", run)
            local = re.search(r"it is in (/\S+)", run.errors)
            text = self.info(Path(local[1])) if local else ""
            if "ended    clean" not in text or " 0 lost" not in text:
                self.troubles.append(f"unmounted: no complete local file: {run.errors} {text}")
            if local:
                Path(local[1]).unlink(missing_ok=True)
        finally:
            disk.close()
        return f"unmounted midway: longest pause {run.pause * 1000:.1f} ms; the local file is complete, without a loss"

    def truncates(self) -> str:
        disk = Disk(self.place / "truncates", self.python)
        try:
            disk.feel("truncate 65536")
            run = self.recorded(disk.folder / "t.vst", before=lambda: (time.sleep(self.seconds), disk.feel("fine")))
            self.check("truncates", run)
            clean = self._becomes_clean(disk.folder / "t.vst", "truncates", 10)
        finally:
            disk.close()
        return f"every second write truncates: longest pause {run.pause * 1000:.1f} ms; {self._then(clean)}"

    @staticmethod
    def _then(clean: bool) -> str:
        return "complete when the disk works again, without a loss" if clean else "NOT COMPLETE"

    def copier(self) -> str:
        """Measures the CPU time of the copier at a million records a second."""
        disk = Disk(self.place / "copier", self.python)
        steady = self.place / "steady.py"
        steady.write_text(STEADY)
        try:
            words = [self.python, "-m", "vestige", "run", "-q", "-o", disk.folder / "t.vst", steady, 10]
            run = Run(words)
            found = re.search(r"records (\d+) share ([0-9.]+)", run.out)
        finally:
            disk.close()
        if not found or float(found[2]) > SHARE_MOST:
            self.troubles.append(f"the copier takes too much, or was not found: {run.out} {run.errors}")
            return "copier: not measured"
        records = round(int(found[1]) / 1e5) / 10
        return f"at {records:g} million records a second the copier takes {float(found[2]):.2%} of a processor"


def prove(python: str, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    with tempfile.TemporaryDirectory(prefix="vestige-storage-") as folder:
        os.environ["VESTIGE_TMPDIR"] = folder  # so that no local file is left behind
        proof = Proof(python, options.seconds, Path(folder))
        lines = [proof.stalls(options.runs, options.stall)]
        lines += [proof.fails(number) for number in (errno.EIO, errno.ENOSPC, errno.EDQUOT)]
        lines += [proof.unmounted(), proof.truncates(), proof.copier()]
        return lines, proof.troubles


HEAD = """\
# Slow, broken and vanishing disks

A program is recorded by `vestige run` into a file on a FUSE file system that misbehaves (`tests/python/slow_disk.py`), and
runs bare in between. Its output and exit code are those of the bare runs; its longest pause must stay below a second,
and the median of its longest pauses within 20 ms of the bare runs. When the disk works again, the next reader completes
the trace, and no record may be lost. `make check NAME=storage` makes this page.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="+", default=["3.11", "3.14"])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--stall", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    text, failed = HEAD, False
    for python in options.python:
        lines, troubles = prove(python, options)
        failed |= bool(troubles)
        text += f"\n## Python {python}\n\n" + "".join(f"- {line}\n" for line in lines)
        print("\n".join([f"Python {python}", *lines, *(f"TROUBLE {line}" for line in troubles)]), flush=True)
    if options.results and not failed:
        options.results.write_text(text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
