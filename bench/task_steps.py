"""Measures the cost of recording the steps of asyncio's tasks: nanoseconds per step, in addition to recording the
calls.

    python bench/task_steps.py [--engine turbo] [--rounds 40]
    python bench/task_steps.py [--engine turbo] --instructions
    python bench/task_steps.py [--engine turbo] [--rounds 8] --beside OTHER/.venv/3.12/bin/python

Two coroutines make many steps: one gives up its turn (`sleep(0)`), one awaits a future inside of a second coroutine. A
third one begins tasks and awaits each: that is two steps, the name of a task and its end, and is told by the task. Each
runs without a recording, in a recording that knows nothing of tasks, and in one as it always is, turn by turn in one
process. The least of many short stretches is shown, and as the difference the median of those of all rounds: in a
round the least of one kind follows on that of the other, so that a machine that is faster for a minute changes neither.
A recording knows nothing of tasks where the check of the interpreter's inside says so, so the flag that this check sets
is changed here: that needs the extension's symbols (`make develop` keeps them) and nm. `--instructions` counts them by
callgrind instead, which is the same on a busy machine. `--beside` compares what a recording costs in all with another
build of vestige, say one of before tasks were recorded: processes of the two alternate.
"""

import argparse
import asyncio
import ctypes
import gc
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import vestige
from instructions import Marks, counts_of, make_marks

STEPS = 100  # steps of a stretch: short enough that some stretches have a processor to themselves on a busy machine
STRETCHES = 50  # stretches of a round
ROOT = Path(__file__).resolve().parent.parent
MODES = ("off", "without tasks", "with tasks")


async def turns():
    for _ in range(STEPS):
        await asyncio.sleep(0)


async def inside(future):
    return await future


async def futures():
    loop = asyncio.get_running_loop()
    for _ in range(STEPS):
        future = loop.create_future()
        loop.call_soon(future.set_result, None)
        await inside(future)


async def nothing():
    pass


async def tasks():
    for _ in range(STEPS):
        await asyncio.ensure_future(nothing())


TOLD = {turns: "a step, sleep(0)", futures: "a step, a future", tasks: "a new task"}


async def timed(make):
    least = float("inf")
    for _ in range(STRETCHES):
        start = time.perf_counter_ns()
        await make()
        least = min(least, (time.perf_counter_ns() - start) / STEPS)
    return least


def find_flag():
    """The extension's flag for tasks, in memory."""
    file = vestige._core.__file__
    parts = re.findall(r"^    VPY_PART_(\w+),", (ROOT / "python/ext/base/inside.h").read_text(), re.MULTILINE)
    symbols = subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^(\w+) \w vpy_part_works$", symbols, re.MULTILINE)
    if found is None:
        sys.exit(f"{file} has no symbols: make develop builds one that has")
    with open("/proc/self/maps") as maps:
        base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(file))
    flag = ctypes.c_bool.from_address(base + int(found[1], 16) + parts.index("TASKS"))
    if not flag.value:
        sys.exit("on this Python nothing is known of tasks")
    return flag


async def counted(make, mode, marks):
    name = f"{TOLD[make]}; {mode}".encode()
    await make()
    marks.begin()
    await make()
    marks.end(name)


def start(mode, engine, flag, path):
    recording = None
    flag.value = mode != "without tasks"
    if mode != "off":
        recording = vestige.profile(output=path, overwrite=True, engine=engine, gc=False)
        recording.start()
    return recording


def end(recording, flag):
    if recording is not None:
        recording.stop()
        recording.finish()
    flag.value = True


def run_round(mode, engine, flag, path, best):
    recording = start(mode, engine, flag, path)
    for make in TOLD:
        best.setdefault((make, mode), []).append(asyncio.run(timed(make)))
    end(recording, flag)


def count_all(engine, folder):
    """Runs in the process that callgrind counts."""
    flag, marks = find_flag(), Marks()
    for mode in MODES:
        recording = start(mode, engine, flag, os.path.join(folder, "t.vst"))
        for make in TOLD:
            for _ in range(3):
                asyncio.run(counted(make, mode, marks))
        end(recording, flag)


def instructions(engine):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_marks(folder)
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind"]
        variables = {**os.environ, "CALLGRIND_MARKS": str(folder / "marks.so"), "PYTHONHASHSEED": "0"}
        command = [*valgrind, sys.executable, __file__, "--engine", engine, "--count", name]
        subprocess.run(command, check=True, env=variables, capture_output=True)
        counts = counts_of(folder)
    return {(make, mode): [counts[f"{TOLD[make]}; {mode}"] / STEPS] for make in TOLD for mode in MODES}


def measure(engine, rounds):
    flag, best = find_flag(), {}
    gc.disable()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for _ in range(rounds):
            for mode in MODES:
                run_round(mode, engine, flag, os.path.join(folder, "t.vst"), best)
    return best


def tell_costs(engine):
    """Returns what recording adds to a step, including everything that this build records."""
    best = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for _ in range(3):
            for mode in ("off", "with tasks"):
                run_round(mode, engine, ctypes.c_bool(), os.path.join(folder, "t.vst"), best)
    print(json.dumps([min(best[make, "with tasks"]) - min(best[make, "off"]) for make in TOLD]))


def compare(engine, other, rounds):
    costs = {sys.executable: [], other: []}
    for number in range(rounds):
        for python in sorted(costs, reverse=number % 2 == 1):
            command = [python, __file__, "--engine", engine, "--costs"]
            costs[python].append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    print(f"CPython {sys.version.split()[0]}, engine {engine}; ns that recording adds, median of {rounds} processes")
    print(f"{'':<18}{'other':>8}{'this':>8}{'more':>8}")
    for number, told in enumerate(TOLD.values()):
        here, there = (statistics.median(cost[number] for cost in costs[one]) for one in (sys.executable, other))
        print(f"{told:<18}{there:>8.0f}{here:>8.0f}{here - there:>8.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--beside", metavar="PYTHON", help="one that has another build of vestige")
    parser.add_argument("--count", help=argparse.SUPPRESS)
    parser.add_argument("--costs", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.beside:
        return compare(options.engine, options.beside, options.rounds)
    if options.costs:
        gc.disable()
        return tell_costs(options.engine)
    if options.count:
        gc.disable()
        return count_all(options.engine, options.count)
    best = instructions(options.engine) if options.instructions else measure(options.engine, options.rounds)
    unit = "instructions" if options.instructions else "ns, least of many; more: median of all rounds"
    print(f"CPython {sys.version.split()[0]}, engine {options.engine}, {asyncio.Task.__module__}; {unit}")
    print(f"{'':<18}{'off':>8}{'without tasks':>16}{'with tasks':>13}{'more':>8}")
    for make in TOLD:
        off, without, with_ = (best[make, mode] for mode in MODES)
        more = statistics.median(b - a for a, b in zip(without, with_))
        print(f"{TOLD[make]:<18}{min(off):>8.0f}{min(without):>16.0f}{min(with_):>13.0f}{more:>8.0f}")


if __name__ == "__main__":
    main()
