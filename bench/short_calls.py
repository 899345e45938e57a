"""Short calls left out (min_duration of 10 us): the cost of a call, and the size of the trace of a program with many
short calls.

Costs are measured as `calls` measures them; VizTracer has its own min_duration=10. The sizes are of traces of the same
program recorded with and without, in bytes of the .vst file.
"""

import os
import tempfile

import calls
import peers
import workloads
from report import Table

LIMIT_US = 10


def tools():
    found = [peers.Off(), peers.Vestige(min_duration=f"{LIMIT_US}us")]
    if peers.is_installed("viztracer"):
        found.append(peers.VizTracer(min_duration=LIMIT_US))
    return found


def size_of(program, **options):
    """Returns the bytes of the trace, and the number of calls left out of it."""
    from vestige import Trace, profile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.vst")
        with profile(output=path, gc=False, **options) as prof:
            program()
        prof.finish()
        return os.path.getsize(path), Trace(path).info()["left_out"]


def chatty():
    for _ in range(300):
        workloads.python_function()
        workloads.recursion()


def measure(quick):
    best = calls.alternate(tools(), calls.PYTHON + calls.NATIVE, 30 if quick else 200)
    sizes = Table("Trace of a chatty program", ["all calls", "with the limit", "left out"], unit="bytes; calls")
    whole, _ = size_of(chatty)
    part, left_out = size_of(chatty, min_duration=f"{LIMIT_US}us")
    sizes.add("functions and recursion", {"all calls": whole, "with the limit": part, "left out": left_out}, digits=0)
    return [
        calls.tabulate(f"Python call, those under {LIMIT_US} us left out, extra cost", best, calls.PYTHON, {}),
        calls.tabulate(f"C call, those under {LIMIT_US} us left out, extra cost", best, calls.NATIVE, {}),
        sizes,
    ]
