"""Measures a long recording: ten million calls into a trace file, each time in a fresh process.

CPU time is the whole process's, kernel time for the file included, less that of the same run without a profiler.
VizTracer is given room for all of the calls, so that like ours its trace is complete. cProfile keeps only sums.
Memory is all that the process has mapped and touched, pages of files too.
"""

import os
import tempfile
import time

import child
import peers
import workloads
from report import Table, at_most, say

CALLS = 10_000_000


def make_tool(name, path):
    if name == "vestige":
        return peers.Vestige(output=path)
    if name == "VizTracer":
        return peers.VizTracer(tracer_entries=CALLS + 1000)
    return peers.CProfile() if name == "cProfile" else peers.Off()


def record(name, path, calls):
    """Records this many calls. Runs in a new process."""
    tool = make_tool(name, path)
    before = child.forget_memory_peak()
    sampled = []
    tool.start()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(10):
        for _ in range(calls // 10 // workloads.CALLS):
            workloads.python_function()
        sampled.append(child.memory_mib())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    tool.stop()
    result = {
        "cpu_ns": cpu * 1e9 / calls,
        "wall_ns": wall * 1e9 / calls,
        "growth_mib": max(*sampled, child.memory_mib("VmHWM")) - before,
    }
    if name == "vestige":
        result.update(finish_file(tool, path))
    return result


def finish_file(tool, path):
    from vestige import Trace

    tool.profile.finish()
    info = Trace(path).info()
    return {
        "bytes": os.path.getsize(path) / info["records"],
        "mib": os.path.getsize(path) / 2**20,
        "records": info["records"],
        "lost": info["lost"],
    }


def best_of(name, folder, calls, times):
    """Returns the run with the least CPU time, with the most memory of all runs."""
    results = []
    say(f"{calls:,} calls, {times} times: {name}")
    for number in range(times):
        path = os.path.join(folder, f"{number}.vst")
        results.append(child.run(record, name=name, path=path, calls=calls))
        if os.path.exists(path):
            os.unlink(path)
    best = min(results, key=lambda result: result["cpu_ns"])
    best["growth_mib"] = max(result["growth_mib"] for result in results)
    best["wall_ns"] = min(result["wall_ns"] for result in results)
    return best


def measure(quick):
    calls = CALLS // 10 if quick else CALLS
    names = ["off", "vestige", *(["VizTracer"] if peers.is_installed("viztracer") else []), "cProfile"]
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        runs = {name: best_of(name, folder, calls, 2 if quick else 5) for name in names}
    ours, off = runs["vestige"], runs["off"]
    assert ours["lost"] == 0 and ours["records"] >= 2 * calls, ours

    table = Table(f"Recording {calls:,} Python calls", names)
    cpu = {name: runs[name]["cpu_ns"] - off["cpu_ns"] for name in names[1:]}
    wall = {name: runs[name]["wall_ns"] - off["wall_ns"] for name in names[1:]}
    growth = {name: runs[name]["growth_mib"] for name in names}
    table.add("CPU, ns a call", {"off": off["cpu_ns"], **cpu})
    table.add("CPU, ns a record", {"vestige": cpu["vestige"] / 2})
    table.add("elapsed, ns a call", {"off": off["wall_ns"], **wall})
    table.add("memory growth, MiB", growth, [at_most("MiB", growth["vestige"], 64)])
    table.add("file, MiB", {"vestige": ours["mib"]})
    # The whole file: the header, the definitions and the heads of chunks come on top of the records' 8 bytes.
    check = at_most("bytes", ours["bytes"], 8)
    table.add("file, bytes a record", {"vestige": ours["bytes"]}, [check], digits=3)
    return [table]
