"""A soak: starts and stops the profiler over and over, while scenes of usual programs run (soak_scenes.py).

    python proofs/soak.py --engine turbo --starts 100000 --results proofs/results/soak.md
    python proofs/soak.py --engine all --seconds 12

After each stop nothing may be hooked: no profile or trace function of any thread, no monitoring tool, the evaluation
function and every C function's pointer as they were. Every scene computes what it computed the first time. After a
warm-up neither memory nor descriptors, threads and mappings may grow. `--engine none` records nothing: any growth is
then not caused by the profiler. The exit status is 0 if no check failed.
"""

from __future__ import annotations

import argparse
import faulthandler
import fcntl
import gc
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))

import hooked
import soak_program
import soak_scenes
from usable import usable_engines
from vestige import profile

MIB = 1 << 20
RSS_LIMIT = 8 * MIB
MAPPINGS_LIMIT = 48  # arenas of malloc and Python come and go
WINDOWS = 20  # starts of one profile, then comes the next profile

# Options of the profiles, used one after the other.
OPTIONS: list[dict[str, Any]] = [
    {},
    {"c_functions": False},
    {"gc": False},
    {"record_args": ["fails", "Point.of"]},
    {"exclude": ["*/threading.py"]},
    {"max_size": "1M"},
    {"exceptions": True, "max_depth": 3},
    {"only": ["fails"]},
]


class Trouble(Exception):
    """A check failed."""


class Recorder:
    """The profiler as scenes see it: start() starts the current profile, or a new one with other options."""

    def __init__(self, engines: list[str], hooks: hooked.Hooks, folder: str) -> None:
        self.engines = engines
        self.hooks = hooked.state
        self.folder = folder
        self.starts = 0
        self.number = 0  # of the current scene
        self.started = dict.fromkeys(engines, 0)
        self._trouble = hooks.trouble
        self._profile: profile | None = None
        self._made = 0
        self._windows = 0

    def start(self, **options: Any) -> None:
        if self._profile is None:
            self._engine = self.engines[self._made % len(self.engines)]
            options = options or OPTIONS[self._made // len(self.engines) % len(OPTIONS)]
            self._made += 1
            self._windows = 0
            if self._engine != "none":
                self._profile = profile(engine=self._engine, **options)
        if self._profile is not None:
            self._profile.start()
        self.starts += 1
        self.started[self._engine] += 1

    def stop(self) -> None:
        if self._profile is not None:
            self._profile.stop()
        self._windows += 1
        if self._windows >= WINDOWS:
            self._profile = None

    def finish(self) -> None:
        if self._profile is not None:
            self._profile.finish()
        self._profile = None

    def fresh(self) -> None:
        """The next start uses a new profile."""
        self._profile = None

    def export(self, path: str) -> None:
        if self._profile is not None:
            self._profile.export_chrome_trace(path)
        else:
            Path(path).write_text("soak_program.py")

    def nothing_is_hooked(self) -> None:
        trouble = self._trouble()
        if trouble:
            raise Trouble(trouble)


class Sizes:
    """The resources that a process uses."""

    def __init__(self) -> None:
        gc.collect()
        self.rss = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
        self.fds = len(os.listdir("/proc/self/fd"))
        self.threads = len(os.listdir("/proc/self/task"))
        self.mappings = len(Path("/proc/self/maps").read_text().splitlines())

    def text(self) -> str:
        return f"{self.rss / MIB:.1f} MiB, {self.fds} fds, {self.threads} threads, {self.mappings} mappings"


class Soak:
    def __init__(self, arguments: argparse.Namespace, folder: str) -> None:
        self.arguments = arguments
        self.hooks = hooked.Hooks()
        self.company = soak_program.Company()
        engines = usable_engines() if arguments.engine == "all" else [arguments.engine]
        self.run = Recorder(engines, self.hooks, folder)
        self.random = random.Random(arguments.seed)
        self.right: dict[str, Any] = {}
        self.began = time.monotonic()
        self.told = self.began

    def share(self) -> float:
        """Returns how much of the soak is done."""
        if self.arguments.seconds:
            return (time.monotonic() - self.began) / self.arguments.seconds
        return self.run.starts / self.arguments.starts

    def scene(self, scene: Any) -> None:
        result = scene(self.run)
        self.run.nothing_is_hooked()
        if self.company.resume():
            raise Trouble("a generator that was suspended meanwhile gave something else")
        right = self.right.setdefault(scene.__name__, result)
        if result != right:
            raise Trouble(f"the scene {scene.__name__} computed {result}, before it was {right}")
        if self.company.trouble:
            raise Trouble(self.company.trouble[0])
        self.run.number += 1

    def tell(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:6.0f} s] {self.run.starts:7,} starts: {text}", flush=True)

    def sizes(self) -> Sizes:
        self.run.fresh()
        return Sizes()

    def whole(self) -> dict[str, Any]:
        """Runs until the soak is done; returns the results."""
        scenes = list(soak_scenes.SCENES)
        weights = list(soak_scenes.SCENES.values())
        for scene in scenes:
            self.scene(scene)
        self.hooks.note()
        first: Sizes | None = None
        most = 0
        while self.share() < 1:
            for scene in self.random.choices(scenes, weights, k=100):
                self.scene(scene)
            if first is None and self.share() >= self.arguments.warm_up:
                first = self.sizes()
                self.tell(f"warm: {first.text()}")
            elif time.monotonic() > self.told + 10:
                now = self.sizes()
                most = max(most, now.rss) if first else 0
                self.tell(now.text())
                self.told = time.monotonic()
        last = self.sizes()
        assert first is not None
        self.compare(first, last)
        return {
            "starts": self.run.starts,
            "growth": last.rss - first.rss,
            "peak": max(most, last.rss) - first.rss,
            "fds": last.fds - first.fds,
            "threads": last.threads - first.threads,
            "mappings": last.mappings - first.mappings,
            "seconds": time.monotonic() - self.began,
            "functions": self.hooks.count,
            "turns": self.company.turns,
        }

    def compare(self, first: Sizes, last: Sizes) -> None:
        self.tell(f"end: {last.text()}")
        if last.rss - first.rss > RSS_LIMIT:
            raise Trouble(f"memory grew by {(last.rss - first.rss) / MIB:.1f} MiB")
        if last.fds > first.fds:
            raise Trouble(f"there are {last.fds - first.fds} more file descriptors")
        if last.threads > first.threads:
            raise Trouble(f"there are {last.threads - first.threads} more threads")
        if last.mappings > first.mappings + MAPPINGS_LIMIT:
            raise Trouble(f"there are {last.mappings - first.mappings} more mappings")


# ---- results -------------------------------------------------------------------

TITLE = """# Soak

For each row one process starts and stops the profiler, over and over, while it plays the scenes of
`proofs/soak_scenes.py`: threads that run, begin, end or wait in C, forks (followed and not), imports, freed functions,
garbage collections, suspended generators and coroutines, exceptions, greenlets, memory tracing, other profilers and
debuggers, sub-interpreters. After every stop, each pointer that the profiler had changed must have its old value, and
every scene must compute what it computed the first time. The columns of growth compare the end with the end of a
warm-up, which is the first tenth. The engine `none` does the same without the profiler. `make check NAME=soak` makes this
table.

| Python | engine | starts | RSS growth, MiB (highest) | descriptors | threads | mappings | C functions compared | seconds | result |
|---|---|---|---|---|---|---|---|---|---|
"""


def put_line(path: Path, engine: str, found: dict[str, Any]) -> None:
    """The file has one line for each Python and engine."""
    python = ".".join(map(str, sys.version_info[:3])) + "t" * ("t" in sys.abiflags)  # a build without the GIL
    line = (
        f"| {python} | {engine} | {found['starts']:,} | {found['growth'] / MIB:+.1f} ({found['peak'] / MIB:+.1f}) "
        f"| {found['fds']:+d} | {found['threads']:+d} | {found['mappings']:+d} | {found['functions']:,} "
        f"| {found['seconds']:.0f} | clean |"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # several soaks may end at the same time
        file.seek(0)
        lines = {tuple(text.split("|")[1:3]): text for text in file.read().splitlines() if text.startswith("| 3.")}
        lines[tuple(line.split("|")[1:3])] = line
        rows = sorted(lines.values(), key=lambda text: (int(text.split(".")[1]), text))
        file.truncate(0)
        file.write(TITLE + "\n".join(rows) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--engine", default="all", help="an engine of vestige; all: one after the other; none: no recording"
    )
    parser.add_argument("--starts", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, help="run this long instead of counting starts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warm-up", type=float, default=0.1, help="share of the soak after which nothing may grow")
    parser.add_argument("--results", type=Path, help="file that gets a line with the results")
    arguments = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("error", RuntimeWarning)  # an engine that falls back to another is an error
    warnings.simplefilter("ignore", DeprecationWarning)  # warnings about forks of processes with threads
    with tempfile.TemporaryDirectory(prefix="vestige-soak-") as folder:
        soak = Soak(arguments, folder)
        try:
            found = soak.whole()
        except BaseException as error:
            soak.tell(f"FAILED with seed {arguments.seed}: {error!r}")
            raise
        finally:
            soak.company.leave()
    if arguments.results:
        put_line(arguments.results, arguments.engine, found)
    print("clean:", ", ".join(f"{count:,} starts of {name}" for name, count in soak.run.started.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
