"""Measures how long a snapshot delays a program: the longest pause of a program that only calls a function.

A process records into a file of bounded size until that is full, and looks at the clock between short runs of calls.
The longest time between two clock reads is measured while nothing else happens, or while a snapshot of the whole
recording is written: requested by a signal, by a trigger, or by another thread's call of snapshot(). Each case runs
several times, in fresh processes; the longest of all is shown.
"""

import os
import shutil
import signal
import tempfile
import threading
import time

import child
import workloads
from report import Table, at_most, say

SIZE = 256 << 20
WAYS = ["nothing", "signal", "trigger", "call in a thread"]


def watch(until):
    """Returns the longest gap in ms between two clock reads, and how long it took until until() was true."""
    begin = last = time.perf_counter_ns()
    longest = 0
    looked = begin
    while True:
        workloads.python_function()
        now = time.perf_counter_ns()
        longest = max(longest, now - last)
        last = now
        if now - looked > 1_000_000:  # checking the folder is a system call, so do it rarely
            looked = now
            if until(now - begin):
                return longest / 1e6, (now - begin) / 1e6


def ask(way, folder):
    """Requests a snapshot; returns a function that says whether the snapshot is written."""
    import vestige

    path = os.path.join(folder, "t-snapshot1.vst")
    if way == "signal":
        os.kill(os.getpid(), signal.SIGUSR2)
    elif way == "trigger":
        with vestige.record_function("slow"):
            time.sleep(0.002)
    elif way == "call in a thread":
        threading.Thread(target=vestige.snapshot, args=(path,)).start()
    else:
        return lambda ns: ns > 1_000_000_000
    return lambda ns: os.path.exists(path)


def stand_still(way, size):
    from vestige import profile

    folder = tempfile.mkdtemp(prefix="vestige-bench-")
    output = os.path.join(folder, "t.vst")
    try:
        with profile(output=output, max_size=size, triggers=["slow>1ms"], snapshot_signal="USR2", gc=False):
            for _ in range(size // 16 // workloads.CALLS + 1000):
                workloads.python_function()
            return watch(ask(way, folder))
    finally:
        shutil.rmtree(folder)


def own_call(size, wait):
    """Returns how long snapshot() takes in the calling thread, in ms."""
    import vestige

    folder = tempfile.mkdtemp(prefix="vestige-bench-")
    try:
        with vestige.profile(output=os.path.join(folder, "t.vst"), max_size=size, gc=False):
            for _ in range(size // 16 // workloads.CALLS + 1000):
                workloads.python_function()
            begin = time.perf_counter_ns()
            vestige.snapshot(os.path.join(folder, "s.vst"), wait=wait)
            return (time.perf_counter_ns() - begin) / 1e6
    finally:
        shutil.rmtree(folder)


def measure(quick):
    size = SIZE // 8 if quick else SIZE
    times = 2 if quick else 5
    table = Table(f"While a snapshot of {size >> 20} MiB is written", WAYS, unit="ms")
    gaps, taken = {}, {}
    for way in WAYS:
        say(way)
        runs = [child.run(stand_still, way=way, size=size) for _ in range(times)]
        gaps[way] = max(gap for gap, _ in runs)
        taken[way] = min(time for _, time in runs) if way != "nothing" else None
    worst = max(gaps[way] for way in WAYS[1:])
    table.add("the program stands still", gaps, [at_most("ms", worst, 50)], digits=2)
    table.add("until the file is there", taken)
    say("the calling thread")
    for wait in (False, True):
        taken = max(child.run(own_call, size=size, wait=wait) for _ in range(times))
        table.add(f"snapshot(wait={wait}) itself", {WAYS[-1]: taken}, [] if wait else [at_most("ms", taken, 50)])
    return [table]
