"""Measures the cost of reading a million recorded calls as a table, and of writing them as Parquet and Arrow files.

The program is that of the family export: half of the calls are of a Python function and half of a C function. One
process records it into a file, then reads its spans as a bare stream, as a whole pyarrow.Table, and writes them in each
format several times, in turn; the least CPU time counts, the kernel's included. The table also has the ratios to a copy
of the file by read and write, to VizTracer's .json (dump_raw) of the same program and, where torch is installed, to
torch.profiler's .json of a tenth of it, taken times ten.
"""

import os
import tempfile

import child
import export
import peers
import workloads
from exports import copy, cpu
from report import Table, at_most, say

CALLS = 1_000_000
TORCH_PART = 10  # torch.profiler gets a tenth of the work
# The outputs, with the largest allowed CPU seconds and bytes per call.
FORMATS = {".parquet": (0.25, 12), ".arrow": (None, None)}


def read_and_write(folder, calls, rounds):
    """Returns {output: [CPU seconds, bytes, CPU seconds of a copy]}. Runs in a new process."""
    import pyarrow

    import vestige
    from vestige.tables import write

    path = os.path.join(folder, "t.vst")
    tool = peers.Vestige(output=path)
    tool.start()
    workloads.mixed(calls)
    tool.stop()
    span = vestige.open(path).span
    found = {}
    for _ in range(rounds):
        readings = {
            "a bare stream": lambda: sum(batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(span)),
            "a pyarrow.Table": lambda: pyarrow.table(span),
        }
        for what, reading in readings.items():
            best = found.setdefault(what, [cpu(reading), None, None])
            best[0] = min(best[0], cpu(reading))
        for suffix in FORMATS:
            output = os.path.join(folder, "out" + suffix)
            seconds = cpu(write, path, output)
            copying = cpu(copy, output, output + ".copy")
            best = found.setdefault(suffix, [seconds, os.path.getsize(output), copying])
            best[0], best[2] = min(best[0], seconds), min(best[2], copying)
            os.unlink(output)
            os.unlink(output + ".copy")
    return found


def export_torch(path, calls):
    """Returns the CPU seconds of torch.profiler's export, with stacks. Runs in a new process."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        workloads.mixed(calls)
    return cpu(prof.export_chrome_trace, path)


def tabulate(calls, found, peers_seconds):
    columns = ["CPU, s", "million rows/s", "bytes a row", "x a copy", *(f"x {name}" for name in peers_seconds)]
    table = Table(f"Tables of {calls:,} spans", columns)
    for what, (seconds, size, copying) in found.items():
        values = {"CPU, s": seconds, "million rows/s": calls / seconds / 1e6}
        checks = []
        if size is not None:
            most_seconds, most_bytes = FORMATS[what]
            values |= {"bytes a row": size / calls, "x a copy": seconds / copying}
            values |= {f"x {name}": seconds / theirs for name, theirs in peers_seconds.items()}
            if most_seconds:
                checks.append(at_most("s a million", seconds * 1e6 / calls, most_seconds))
            if most_bytes:
                checks.append(at_most("bytes a row", size / calls, most_bytes))
        table.add(what, values, checks, digits=3)
    return table


def measure(quick):
    if not peers.is_installed("pyarrow"):
        say("pyarrow is not installed: no tables")
        return []
    calls = CALLS // 10 if quick else CALLS
    theirs = {}
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        say(f"{calls:,} calls as tables")
        found = child.run(read_and_write, folder=folder, calls=calls, rounds=2 if quick else 7)
        if peers.is_installed("viztracer"):
            say("the same program by VizTracer")
            path = os.path.join(folder, "viztracer.json")
            seconds = child.run(export.export_viztracer, path=path, calls=calls, times=1 if quick else 3)["cpu"]
            theirs["VizTracer's .json"] = seconds
        if peers.is_installed("torch"):
            say("a part of it by torch.profiler")
            path = os.path.join(folder, "torch.json")
            seconds = child.run(export_torch, path=path, calls=calls // TORCH_PART)
            theirs["torch's .json"] = seconds * TORCH_PART
    return [tabulate(calls, found, theirs)]
