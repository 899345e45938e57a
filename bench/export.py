"""Measures how long it takes to turn a million recorded calls into a file for viewers.

Half of the calls are of a Python function and half of a C function. A process records them and exports them several
times; the fastest counts, in elapsed time, and the CPU time is shown, too, which depends less on the machine's other
load. VizTracer writes .json from C when asked to (dump_raw), and .json.gz by Python's json and gzip modules. Both write
to the same folder and are run in turn.
"""

import os
import tempfile
import time

import child
import peers
import workloads
from report import Table, at_most, say

CALLS = 1_000_000


def export_ours(path, calls, times):
    """Returns the seconds of each export, and the largest additional memory. Runs in a new process."""
    tool = peers.Vestige()
    tool.start()
    workloads.mixed(calls)
    tool.stop()
    before = child.forget_memory_peak()
    seconds = [timed(tool.profile.export_chrome_trace, path) for _ in range(times)]
    return {
        "seconds": min(elapsed for elapsed, _ in seconds),
        "cpu": min(cpu for _, cpu in seconds),
        "growth_mib": child.memory_mib("VmHWM") - before,
        "file_mib": os.path.getsize(path) / 2**20,
    }


def export_viztracer(path, calls, times):
    """Measures VizTracer, which forgets its records after writing: records again for each export."""
    options = {"output_file": path, "tracer_entries": calls + 1000, "dump_raw": path.endswith(".json")}
    seconds, growth = [], 0
    for _ in range(times):
        tool = peers.VizTracer(**options)
        tool.start()
        workloads.mixed(calls)
        tool.stop()
        before = child.forget_memory_peak()
        seconds.append(timed(tool.tracer.save))
        growth = max(growth, child.memory_mib("VmHWM") - before)
        del tool
    return {
        "seconds": min(elapsed for elapsed, _ in seconds),
        "cpu": min(cpu for _, cpu in seconds),
        "growth_mib": growth,
        "file_mib": os.path.getsize(path) / 2**20,
    }


def timed(function, *arguments):
    elapsed, cpu = time.perf_counter(), time.process_time()
    function(*arguments)
    return time.perf_counter() - elapsed, time.process_time() - cpu


def compare(exporters, suffix, folder, calls, rounds):
    """Runs the exporters alternately; returns the fastest time of each, and the most memory."""
    results = {name: [] for name in exporters}
    for _ in range(rounds):
        for name, (function, times) in exporters.items():
            say(f"{calls:,} calls to {suffix}: {name}")
            path = os.path.join(folder, name + suffix)
            results[name].append(child.run(function, path=path, calls=calls, times=times))
            os.unlink(path)
    return {
        name: {
            "seconds": min(run["seconds"] for run in runs),
            "cpu": min(run["cpu"] for run in runs),
            "growth_mib": max(run["growth_mib"] for run in runs),
            "file_mib": runs[0]["file_mib"],
        }
        for name, runs in results.items()
    }


def tabulate(title, results, bar, shown):
    table = Table(title, list(results))
    seconds = {name: result["seconds"] for name, result in results.items()}
    checks = []
    if "VizTracer" in seconds:
        ratio = seconds["vestige"] / seconds["VizTracer"]
        checks = [at_most(f"{ratio:.3f} x VizTracer", ratio, bar, shown)]
    table.add("elapsed, s", seconds, checks, digits=3)
    cpu = {name: result["cpu"] for name, result in results.items()}
    table.add("CPU, s", cpu, digits=3)
    growth = {name: result["growth_mib"] for name, result in results.items()}
    table.add("memory beyond before, MiB", growth, [at_most("MiB", growth["vestige"], 100)])
    table.add("file, MiB", {name: result["file_mib"] for name, result in results.items()})
    return table


def measure(quick):
    calls = CALLS // 10 if quick else CALLS
    plain, zipped = {"vestige": (export_ours, 3)}, {"vestige": (export_ours, 3)}
    if peers.is_installed("viztracer"):
        plain["VizTracer"] = (export_viztracer, 2)
        zipped["VizTracer"] = (export_viztracer, 1)
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        json = compare(plain, ".json", folder, calls, 1 if quick else 3)
        gz = compare(zipped, ".json.gz", folder, calls, 1 if quick else 2)
    return [
        tabulate(f"Export of {calls:,} calls to .json (VizTracer: dump_raw)", json, 0.4, "0.4"),
        tabulate(f"Export of {calls:,} calls to .json.gz", gz, 1 / 15, "1/15"),
    ]
