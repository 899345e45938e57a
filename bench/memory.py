"""Memory: the cost of recording an allocation, compared with memray and tracemalloc, and the size of the records.

Costs: one process alternates the tools in short blocks, as in `calls`; the fastest run of each loop counts, the fastest
one without a tool is taken off, the rest divided by the allocations and frees. memray traces Python's allocators too,
as we do, and does not compress its file then. Slowdowns are of loops that call and hardly allocate. Sizes are of whole
files, memray's as it leaves them, compressed; an allocation is a record, and so is a free. Reading is that of a fresh
process, elapsed, with its own start.
"""

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time

import child
import peers
import workloads
from report import Table, at_most, say

DEPTHS = {5: 0.4, 30: 0.8}  # the largest allowed share of memray's cost
NATIVE_BAR = 0.6
SLOWDOWN_BAR = 0.7
LOOPS = 500  # rounds of a run; each makes eight records
RUNS = 4
READ = 10_000_000


# ---- the tools ---------------------------------------------------------------


class Vestige:
    name = "vestige"

    def __init__(self, folder, native=False):
        self._path = os.path.join(folder, "bench.vst")
        self._native = native

    def start(self):
        from vestige import memory

        memory.start(self._path, native=self._native, overwrite=True)

    def stop(self):
        from vestige import memory

        memory.stop()


class Memray:
    name = "memray"

    def __init__(self, folder, native=False):
        self._path = os.path.join(folder, "bench.bin")
        self._native = native

    def start(self):
        import memray

        target = memray.FileDestination(self._path, overwrite=True, compress_on_exit=False)
        self._tracker = memray.Tracker(destination=target, native_traces=self._native, trace_python_allocators=True)
        self._tracker.__enter__()

    def stop(self):
        self._tracker.__exit__(None, None, None)


class Tracemalloc:
    def __init__(self, frames):
        self.name = f"tracemalloc {frames}"
        self._frames = frames

    def start(self):
        import tracemalloc

        tracemalloc.start(self._frames)

    def stop(self):
        import tracemalloc

        tracemalloc.stop()


def make_tools(folder, native):
    found = [peers.Off(), Vestige(folder, native)]
    if peers.is_installed("memray"):
        found.append(Memray(folder, native))
    if not native:
        found += [Tracemalloc(1), Tracemalloc(30)]
    return found


# ---- the cost of a record ----------------------------------------------------


def one_line():
    for _ in range(LOOPS):
        bytes(40), bytes(41), bytes(42), bytes(43)


def four_lines():
    for _ in range(LOOPS):
        bytes(40)
        bytes(41)
        bytes(42)
        bytes(43)


def leaf():
    return bytes(40)


def in_a_function():
    for _ in range(LOOPS):
        leaf()
        leaf()
        leaf()
        leaf()


COSTS = {
    "one line": (one_line, 8 * LOOPS),
    "four lines in turn": (four_lines, 8 * LOOPS),
    "a call for each": (in_a_function, 8 * LOOPS),
}


def at_depth(depth, function):
    return function() if depth <= 1 else at_depth(depth - 1, function)


def run_block(tool, depth, loops, runs, best):
    def work():
        for name, loop in loops.items():
            loop()
            for _ in range(runs):
                begin = time.perf_counter_ns()
                loop()
                taken = time.perf_counter_ns() - begin
                if taken < best[name]:
                    best[name] = taken

    tool.start()
    try:
        at_depth(depth, work)
    finally:
        tool.stop()


def alternate(loops, depth, rounds, native):
    """Returns the fastest time of each loop under each tool, in ns. Runs in a new process."""
    import gc

    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        tools = make_tools(folder, native)
        best = {tool.name: dict.fromkeys(loops, float("inf")) for tool in tools}
        gc.disable()
        for _ in range(rounds):
            for tool in tools:
                run_block(tool, depth, loops, RUNS, best[tool.name])
    return best


def cost_ns(depth, rounds, native):
    return alternate({name: loop for name, (loop, _) in COSTS.items()}, depth, rounds, native)


def cost_table(quick, native):
    names = [tool.name for tool in make_tools("", native)]
    title = "Recording an allocation or a free" + (", with native frames" if native else "")
    table = Table(title, names, unit="ns")
    for depth, bar in DEPTHS.items():
        say(f"depth {depth}" + (", native" if native else ""))
        best = child.run(cost_ns, depth=depth, rounds=8 if quick else 60, native=native)
        for label, (_, count) in COSTS.items():
            off = best["off"][label]
            row = {name: (best[name][label] - off) / count for name in names[1:]} | {"off": off / count}
            checks = []
            if "memray" in row:
                checks = [at_most("x memray", row["vestige"] / row["memray"], NATIVE_BAR if native else bar)]
            table.add(f"depth {depth}, {label}", row, checks)
    return table


# ---- programs that call ------------------------------------------------------

CALLS = {
    "function": workloads.python_function,
    "method": workloads.python_method,
    "recursion (fib)": workloads.recursion,
    "len(x)": workloads.c_len,
}


def calls_ns(rounds):
    return alternate(CALLS, 1, rounds, False)


def slowdown_table(quick):
    names = [tool.name for tool in make_tools("", False)][1:]
    table = Table("Slowdown of loops that call and hardly allocate", names, unit="times")
    best = child.run(calls_ns, rounds=8 if quick else 40)
    rows = []
    for label in CALLS:
        rows.append({name: best[name][label] / best["off"][label] for name in names})
        table.add(label, rows[-1], digits=2)
    mean = {name: sum(row[name] for row in rows) / len(rows) for name in names}
    checks = [at_most("x memray", mean["vestige"] / mean["memray"], SLOWDOWN_BAR)] if "memray" in mean else []
    table.add("mean", mean, checks, digits=2)
    return table


# ---- the file ----------------------------------------------------------------


class Particle:
    def __init__(self, number):
        self.place = (number, number + 0.5, number * 0.25)
        self.name = f"particle {number}"
        self.neighbours = []


def instances(rounds):
    for _ in range(rounds):
        particles = [Particle(number) for number in range(1000)]
        for before, after in zip(particles, particles[1:]):
            before.neighbours.append(after)


def json_parsing(rounds):
    import json

    orders = [
        {"id": number, "items": [{"sku": f"A{k}", "price": k * 1.25, "tags": ["x", "y"]} for k in range(5)]}
        for number in range(200)
    ]
    text = json.dumps(orders)
    for _ in range(rounds):
        parsed = json.loads(text)
        json.dumps([order for order in parsed if order["id"] % 3])


def small_arrays(rounds):
    import numpy as np

    base = np.arange(100.0)
    for _ in range(rounds):
        for number in range(200):
            shifted = base[number % 50 :] * 2.0 + number
            shifted.reshape(-1, 1).sum(axis=0)
            np.sqrt(shifted).astype("f4")


PROGRAMS = {
    "JSON parsing": ("json_parsing", 60),
    "class instances": ("instances", 60),
    "small numpy arrays": ("small_arrays", 60),
}


def sizes(program, rounds):
    """Returns the file of a program, plain and packed, and its number of records. Runs in a new process."""
    from vestige import Trace, memory
    from vestige._core import pack

    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        path = os.path.join(folder, "t.vst")
        globals()[program](1)
        with memory.track(path):
            globals()[program](rounds)
        records = count_records(Trace(path))
        plain = os.path.getsize(path)
        pack(path, path + ".packed")
        packed = os.path.getsize(path + ".packed")
        result = {"records": records, "plain": plain / records, "packed": packed / records}
        if peers.is_installed("memray"):
            with memray_file(os.path.join(folder, "t.bin")):
                globals()[program](rounds)
            result["memray"] = os.path.getsize(os.path.join(folder, "t.bin")) / records
    return result


@contextlib.contextmanager
def memray_file(path):
    import memray

    with memray.Tracker(destination=memray.FileDestination(path), trace_python_allocators=True):
        yield


def count_records(trace):
    return trace.tables(["memory_process"])["memory_process"][0].records


def size_table(quick):
    table = Table("The file of a recording of memory", ["plain", "packed", "memray"], unit="bytes a record of ours")
    for label, (program, rounds) in PROGRAMS.items():
        if program == "small_arrays" and not peers.is_installed("numpy"):
            continue
        got = child.run(sizes, program=program, rounds=rounds // 4 if quick else rounds)
        checks = [at_most("plain", got["plain"], 16), at_most("packed", got["packed"], 5)]
        table.add(f"{label}, {got.pop('records'):,}", got, checks, digits=2)
    return table


# ---- reading -----------------------------------------------------------------


def record_many(path, records):
    """Returns the allocations and frees of a program that also keeps some blocks. Runs in a new process."""
    from vestige import memory

    kept = []
    with memory.track(path):
        for number in range(records // 8):
            four_lines_once()
            if number % 100 == 0:
                kept.append(bytes(100))
    return len(kept)


def four_lines_once():
    bytes(40)
    bytes(410)
    bytes(4200)
    bytes(43)


def read_table(quick):
    records = READ // 10 if quick else READ
    table = Table(f"vestige memory-report of {records:,} records", ["s", "MiB"])
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        path = os.path.join(folder, "t.vst")
        say(f"recording {records:,} records")
        child.run(record_many, path=path, records=records)
        taken, memory = [], []
        for _ in range(1 if quick else 3):
            got = child.run(report_once, path=path)
            taken.append(got["s"])
            memory.append(got["MiB"])
    values = {"s": min(taken), "MiB": max(memory)}
    table.add("report", values, [at_most("s", values["s"], 10), at_most("MiB", values["MiB"], 1024)], digits=2)
    return table


def report_once(path):
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "vestige", "memory-report", path], check=True, stdout=subprocess.DEVNULL)
    taken = time.perf_counter() - begin
    return {"s": taken, "MiB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}


def measure(quick):
    return [
        cost_table(quick, native=False),
        cost_table(quick, native=True),
        slowdown_table(quick),
        size_table(quick),
        read_table(quick),
    ]
