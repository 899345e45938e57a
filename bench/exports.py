"""Measures the cost of turning a million recorded calls into each format of `vestige export`.

The program is that of the family export: half of the calls are of a Python function and half of a C function. One
process records it into a file and exports that several times in each format, in turn; the least CPU time counts, the
kernel's included. The table also has the ratio to a copy of the file by read and write, measured the same way, and the
ratio to the CPU time of VizTracer's .json (dump_raw) of the same program. Formats of sums are small: for them a copy
says nothing.
"""

import os
import tempfile
import time

import child
import export
import peers
import workloads
from report import Table, at_most, say

CALLS = 1_000_000
# The formats, with the largest allowed CPU seconds and bytes per call.
FORMATS = {
    ".json": (0.15, None),
    ".json.gz": (0.3, None),
    ".pftrace": (0.08, 30),
    ".pftrace.gz": (None, None),
    ".speedscope.json": (None, None),
    ".folded": (None, None),
    ".svg": (None, None),
    ".pb.gz": (None, None),
    ".pstats": (None, None),
    ".callgrind": (None, None),
}
TIMELINES = [".json", ".json.gz", ".pftrace", ".pftrace.gz", ".speedscope.json"]


def export_all(folder, calls, rounds):
    """Returns {suffix: [CPU seconds, bytes, CPU seconds of a copy]}. Runs in a new process."""
    from vestige import Trace
    from vestige._core import export_traces

    tool = peers.Vestige(output=os.path.join(folder, "t.vst"))
    tool.start()
    workloads.mixed(calls)
    tool.stop()
    trace = Trace(os.path.join(folder, "t.vst"))
    found = {}
    for _ in range(rounds):
        for suffix in FORMATS:
            path = os.path.join(folder, "out" + suffix)
            seconds = cpu(export_traces, [trace], path, all_windows=True)
            copying = cpu(copy, path, path + ".copy")
            best = found.setdefault(suffix, [seconds, os.path.getsize(path), copying])
            best[0], best[2] = min(best[0], seconds), min(best[2], copying)
            os.unlink(path)
            os.unlink(path + ".copy")
    return found


def copy(source, target):
    with open(source, "rb", 0) as reading, open(target, "wb", 0) as writing:
        while data := reading.read(1 << 19):
            writing.write(data)


def cpu(function, *arguments, **options):
    begun = time.process_time()
    function(*arguments, **options)
    return time.process_time() - begun


def tabulate(calls, found, theirs):
    table = Table(f"Exports of {calls:,} calls", ["CPU, s", "bytes a call", "x a copy", "x VizTracer's .json"])
    for suffix, (seconds, size, copying) in found.items():
        most_seconds, most_bytes = FORMATS[suffix]
        checks = []
        if most_seconds:
            checks.append(at_most("s a million", seconds * 1e6 / calls, most_seconds))
        if most_bytes:
            checks.append(at_most("bytes a call", size / calls, most_bytes))
        values = {"CPU, s": seconds, "bytes a call": size / calls}
        if suffix in TIMELINES:
            values["x a copy"] = seconds / copying
        if theirs:
            values["x VizTracer's .json"] = seconds / theirs
        table.add(suffix, values, checks, digits=3)
    return table


def measure(quick):
    calls = CALLS // 10 if quick else CALLS
    theirs = None
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        say(f"{calls:,} calls to every format")
        found = child.run(export_all, folder=folder, calls=calls, rounds=2 if quick else 7)
        if peers.is_installed("viztracer"):
            say("the same program by VizTracer")
            path = os.path.join(folder, "viztracer.json")
            theirs = child.run(export.export_viztracer, path=path, calls=calls, times=1 if quick else 3)["cpu"]
    return [tabulate(calls, found, theirs)]
