"""What recording the steps of asyncio's tasks costs: nanoseconds a step, beside calls that are recorded anyway.

    python bench/task_steps.py [--engine turbo] [--rounds 40]

Two coroutines make many steps: one gives up its turn (`sleep(0)`), one awaits a future inside of a second coroutine. A
third one begins tasks and awaits each: that is two steps, the name of a task and its end, and is told by the task. Each runs without a recording, in a recording that knows nothing of tasks, and in one as it
always is, turn by turn in one process; the least of many short stretches is shown. A recording knows nothing of tasks
where the check of the interpreter's inside says so, so the flag that this check sets is changed here: that needs the
extension's symbols (`make develop` keeps them) and nm.
"""

import argparse
import asyncio
import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import vestige

STEPS = 200  # of a stretch
STRETCHES = 25  # of a round
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
    start = time.perf_counter_ns()
    await make()
    return (time.perf_counter_ns() - start) / STEPS


def find_flag():
    """The extension's flag for tasks, as it lies in memory."""
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


def run_round(mode, engine, flag, path, best):
    recording = None
    flag.value = mode != "without tasks"
    if mode != "off":
        recording = vestige.profile(output=path, overwrite=True, engine=engine, gc=False)
        recording.start()
    for make in TOLD:
        asyncio.run(timed(make))  # everything gets its id
        least = min(asyncio.run(timed(make)) for _ in range(STRETCHES))
        best[make, mode] = min(best.get((make, mode), least), least)
    if recording is not None:
        recording.stop()
        recording.finish()
    flag.value = True


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    flag, best = find_flag(), {}
    gc.disable()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for _ in range(options.rounds):
            for mode in MODES:
                run_round(mode, options.engine, flag, os.path.join(folder, "t.vst"), best)
    print(f"CPython {sys.version.split()[0]}, engine {options.engine}, {asyncio.Task.__module__}; ns, least of many")
    print(f"{'':<18}{'off':>8}{'without tasks':>16}{'with tasks':>13}{'more':>8}")
    for make in TOLD:
        off, without, with_ = (best[make, mode] for mode in MODES)
        print(f"{TOLD[make]:<18}{off:>8.0f}{without:>16.0f}{with_:>13.0f}{with_ - without:>8.0f}")


if __name__ == "__main__":
    main()
