"""Measures the cost of starting and stopping, and any slowdown that remains afterwards."""

import os
import statistics
import sys
import threading
import time

import child
import peers
import workloads
from calls import time_run
from report import Table, at_most, say

THREADS = 50
DEPTH = 10
LOOPS = [
    ("function", workloads.python_function),
    ("recursion", workloads.recursion),
    ("len(x)", workloads.c_len),
    ("d.get(k)", workloads.c_get),
]


def timed_ms(function):
    begin = time.perf_counter_ns()
    function()
    return (time.perf_counter_ns() - begin) / 1e6


def make_tool(name):
    kinds = [peers.Vestige, peers.VizTracer, peers.CProfile, peers.Torch]
    return {kind.name: kind for kind in kinds}.get(name, peers.Off)()


# ---- stop() ----------------------------------------------------------------


def stop_after_calls(name, calls, times):
    """Returns how long stop() takes after this many calls, in ms, for each run."""
    taken = []
    for _ in range(times):
        tool = make_tool(name)
        tool.start()
        for _ in range(calls // workloads.CALLS):
            workloads.python_function()
        taken.append(timed_ms(tool.stop))
        tool.clear()
    return taken


def stop_table(quick):
    names = ["vestige", *(["VizTracer"] if peers.is_installed("viztracer") else [])]
    calls = 100_000 if quick else 1_000_000
    table = Table(f"stop() after {calls:,} calls", [*names, *(["torch"] if peers.torch() else [])], unit="ms")
    taken = {name: child.run(stop_after_calls, name=name, calls=calls, times=10) for name in names}
    if peers.torch():
        taken["torch"] = child.run(stop_after_calls, name="torch", calls=calls, times=1)
    middle = {name: statistics.median(times) for name, times in taken.items()}
    table.add("median", middle, [at_most("ms", middle["vestige"], 10)], digits=2)
    table.add("longest", {name: max(times) for name, times in taken.items()}, digits=2)
    return table


# ---- start() ---------------------------------------------------------------


def wait_deep(depth, ready, done):
    if depth:
        wait_deep(depth - 1, ready, done)
    else:
        ready.release()
        done.wait()


def start_with_threads(threads, times):
    """Returns how long start() of a new profile takes while threads wait in nested calls, in ms, for each run."""
    from vestige import profile

    ready, done = threading.Semaphore(0), threading.Event()
    waiting = [threading.Thread(target=wait_deep, args=(DEPTH, ready, done)) for _ in range(threads)]
    for thread in waiting:
        thread.start()
        ready.acquire()
    taken = []
    for _ in range(times):
        prof = profile()
        taken.append(timed_ms(prof.start))
        workloads.nothing()
        prof.stop()
    done.set()
    for thread in waiting:
        thread.join()
    return taken


def start_table(quick):
    table = Table("start() of a new profile", ["1 thread", f"{THREADS + 1} threads"], unit="ms")
    times = 10 if quick else 50
    alone = child.run(start_with_threads, threads=0, times=times)
    among = child.run(start_with_threads, threads=THREADS, times=times)
    both = list(zip(table.columns, (alone, among)))
    middle = {name: statistics.median(taken) for name, taken in both}
    table.add("median", middle, [at_most("ms", middle[table.columns[1]], 1)], digits=3)
    table.add("first in the process", {name: taken[0] for name, taken in both}, digits=3)
    return table


# ---- import ----------------------------------------------------------------


def cpu_ms(code):
    """Returns the CPU time of an interpreter that runs the code; unlike elapsed time, CPU time hardly depends on other
    processes.
    """
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
    _, status, usage = os.wait4(process, 0)
    assert status == 0, code
    return (usage.ru_utime + usage.ru_stime) * 1e3


def import_table(quick):
    codes = {
        "bare": "pass",
        "import vestige": "import vestige",
        "from vestige import profile": "from vestige import profile",
    }
    best = dict.fromkeys(codes, float("inf"))
    for _ in range(10 if quick else 60):
        for name, code in codes.items():
            best[name] = min(best[name], cpu_ms(code))
    table = Table("Import, CPU time of the process", ["bare", "beyond"], unit="ms, fastest")
    bare = best.pop("bare")
    for name, taken in best.items():
        table.add(name, {"bare": bare, "beyond": taken - bare}, [at_most("ms", taken - bare, 15)], digits=1)
    return table


# ---- afterwards ------------------------------------------------------------


def fastest_runs(times):
    best = dict.fromkeys((label for label, _ in LOOPS), float("inf"))
    for _ in range(times):
        for label, loop in LOOPS:
            best[label] = min(best[label], time_run(loop))
    return best


def speed_after_stop(name, times):
    """Returns each loop's time after a profiler stopped, divided by its time before the first start."""
    fastest_runs(20)
    before = fastest_runs(times)
    tool = make_tool(name)
    tool.start()
    fastest_runs(20)
    tool.stop()
    fastest_runs(20)
    after = fastest_runs(times)
    return {label: after[label] / before[label] for label in before}


def after_table(quick):
    """The bar is the original speed, with 5 % for noise; the peers' remaining slowdowns are shown, too."""
    names = ["none", "vestige", *(["VizTracer"] if peers.is_installed("viztracer") else []), "cProfile"]
    table = Table("Time of a loop after stop() over that before any profiling (median)", names)
    ratios = {name: [] for name in names}
    for _ in range(3 if quick else 9):
        for name in names:
            ratios[name].append(child.run(speed_after_stop, name=name, times=100 if quick else 400))
    for label, _ in LOOPS:
        middle = {name: statistics.median(ratio[label] for ratio in ratios[name]) for name in names}
        table.add(label, middle, [at_most("x", middle["vestige"], 1.05)], digits=3)
    return table


def measure(quick):
    tables = []
    for make_table in (stop_table, start_table, import_table, after_table):
        say(make_table.__name__.removesuffix("_table"))
        tables.append(make_table(quick))
    return tables
