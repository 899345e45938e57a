"""Eight threads that do everything in parallel while recordings start and stop, on a Python without the GIL.

    python proofs/free_threads.py --seconds 600

Two kinds of windows alternate. In a counted window, the recording spans the whole work of all threads, and the trace
must have every call, as often as it was made. In a free window, the threads work all the time while a recording starts
and stops: the file must be whole, without a lost record. Meant to run under the thread sanitizer
(scripts/check_tsan.sh), which reports races; without it, wrong counts are still reported.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vestige import profile, record_function
from vestige._core import Trace, gather_traceback
from vestige.reading.sums import called_functions

THREADS = 8
ROUNDS = 40  # calls of each thread in a counted window

# ---- what the threads do; `called` counts the calls that a trace must have -----------------------


def leaf(number: int) -> int:
    return number + 1


def calls(called: Counter[str]) -> None:
    for number in range(20):
        leaf(number)
        len("x" * number)
    called["leaf"] += 20


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def generates(called: Counter[str]) -> None:
    called["resumed"] += 6  # five items and the end
    assert sum(numbers(5)) == 10


class Refused(Exception):
    pass


def refuses() -> None:
    raise Refused


def raises(called: Counter[str]) -> None:
    called["refuses"] += 3
    for _ in range(3):
        try:
            refuses()
        except Refused:
            pass


def defines(called: Counter[str]) -> None:
    """Runs new code objects at addresses of old ones."""
    space: dict[str, Callable[[], int]] = {}
    exec("def fresh():\n    return 1\n", space)
    called["fresh"] += 1
    assert space["fresh"]() == 1


def imports(called: Counter[str]) -> None:
    name = f"imported_{random.randrange(200)}"
    module = importlib.import_module(name)
    called["from_import"] += 1
    assert module.from_import() == name
    sys.modules.pop(name, None)


def allocates(called: Counter[str]) -> None:
    blocks = [bytearray(size) for size in range(0, 4000, 400)]
    kept = {number: [number] for number in range(50)}
    assert len(blocks) + len(kept) == 60


def collects(called: Counter[str]) -> None:
    circle: list[object] = []
    circle.append(circle)
    del circle
    if random.random() < 0.1:
        gc.collect(0)


def annotates(called: Counter[str]) -> None:
    with record_function("named"):
        leaf(1)
    called["leaf"] += 1


async def awaited(number: int) -> int:
    await asyncio.sleep(0)
    return number


async def tasks() -> int:
    return sum(await asyncio.gather(*(awaited(number) for number in range(3))))


def awaits(called: Counter[str]) -> None:
    if random.random() < 0.2:
        assert asyncio.run(tasks()) == 3


def takes_tracebacks(called: Counter[str]) -> None:
    taken = [gather_traceback(True, False, False) for _ in range(3)]
    del taken


def starts_threads(called: Counter[str]) -> None:
    if random.random() < 0.2:
        called["leaf"] += 1
        thread = threading.Thread(target=leaf, args=(1,))
        thread.start()
        thread.join()


ACTIONS = [
    calls,
    generates,
    raises,
    defines,
    imports,
    allocates,
    collects,
    annotates,
    awaits,
    takes_tracebacks,
    starts_threads,
]


def work(rounds: int, called: Counter[str], goes_on: Callable[[], bool]) -> None:
    done = 0
    while done < rounds and goes_on():
        for action in random.sample(ACTIONS, len(ACTIONS)):
            action(called)
        done += 1


# ---- windows -------------------------------------------------------------------------------------


WAYS: list[dict[str, Any]] = [
    {},
    {"exceptions": True},
    {"profile_memory": True},
    {"sched": True},
    {"c_functions": False, "triggers": ["slow:leaf>1s", "raise:Refused"], "max_snapshots": 1},
]


def options(number: int) -> dict[str, Any]:
    """Each window records with other options."""
    return WAYS[number % len(WAYS)]


def count_calls(path: Path) -> Counter[str]:
    """Returns how often each function was called, by its own name."""
    found: Counter[str] = Counter()
    for known, row in called_functions(Trace(str(path))):
        found[known.name.rpartition(": ")[2]] += row.calls
    return found


def check_counts(path: Path, called: Counter[str]) -> list[str]:
    found = count_calls(path)
    found["resumed"] = found["numbers"]
    return [
        f"{name}: called {made:,} times, recorded {found[name]:,}"
        for name, made in called.items()
        if found[name] != made
    ]


def counted_window(folder: Path, number: int) -> list[str]:
    path = folder / "counted.vst"
    counts = [Counter[str]() for _ in range(THREADS)]
    with profile(output=str(path), overwrite=True, **options(number)) as prof:
        threads = [threading.Thread(target=work, args=(ROUNDS, counts[i], lambda: True)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    del prof
    return check_counts(path, sum(counts, Counter()))


def free_windows(folder: Path, number: int) -> list[str]:
    path = folder / "free.vst"
    over = threading.Event()
    called: Counter[str] = Counter()
    threads = [
        threading.Thread(target=work, args=(sys.maxsize, called, lambda: not over.is_set())) for _ in range(THREADS)
    ]
    wrong = []
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            with profile(output=str(path), overwrite=True, **options(number)):
                time.sleep(random.random() / 20)
            lost = Trace(str(path)).info()["lost"]
            if lost:
                wrong.append(f"a recording lost {lost:,} records")
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return wrong


# ---- all of it -----------------------------------------------------------------------------------


def make_modules(folder: Path) -> None:
    for number in range(200):
        name = f"imported_{number}"
        (folder / f"{name}.py").write_text(f"def from_import():\n    return {name!r}\n")
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()


def has_gil() -> bool:
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    if has_gil():
        print("this Python runs with the GIL", file=sys.stderr)
        return 2
    random.seed(arguments.seed)
    until = time.monotonic() + arguments.seconds
    windows: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        make_modules(Path(folder))
        while time.monotonic() < until and not wrong:
            wrong += counted_window(Path(folder), windows["counted"])
            windows["counted"] += 1
            wrong += free_windows(Path(folder), windows["free"])
            windows["free"] += 1
    if has_gil():
        wrong.append("something has turned the GIL on")
    for line in wrong:
        print(line)
    print(
        f"{windows['counted']} counted windows, {5 * windows['free']} free ones, {THREADS} threads, pid {os.getpid()}"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
