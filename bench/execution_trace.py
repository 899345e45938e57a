"""The execution trace: the cost of its observer in a small training step, the time to write a .json.gz at the end, and
the memory, compared with torch's observer.

The step is that of torch_ops, with the observers alternating in one process; the result is the 10th percentile of the
steps. The end is stop() and unregister_callback() after 30,000 nodes of such steps, the fastest of several in turns.
Memory is VmHWM less VmRSS before, over recording and writing a million nodes in a fresh process.
"""

import os
import tempfile
import time

import child
import peers
from report import Table, at_most
from torch_ops import make_step, time_steps

STEP_BAR, END_BAR, MEMORY_BAR = 0.2, 0.3, 32
NODES = 30_000


def observers():
    """Makes both observers by name. torch's prints to stderr when it starts and stops."""
    from torch.profiler import ExecutionTraceObserver

    import vestige

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return {"vestige": vestige.ExecutionTraceObserver, "torch": ExecutionTraceObserver}


def step_ns(turns, count):
    """Returns ns of a step: without an observer, under vestige's, under torch's."""
    step = make_step()
    times = {"without": [], "vestige": [], "torch": []}
    time_steps(step, 50, [])
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(turns):
            time_steps(step, count, times["without"])
            for name, observer in observers().items():
                observed = observer().register_callback(f"{folder}/{name}.json")
                observed.start()
                time_steps(step, 3, [])
                time_steps(step, count, times[name])
                observed.unregister_callback()
    return {name: sorted(values)[len(values) // 10] for name, values in times.items()}


def end_ms(turns, nodes):
    """Returns ms from the call of stop() until the .json.gz is written, and its size in MB."""
    step = make_step()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(turns):
            for name, observer in observers().items():
                path = f"{folder}/{name}.json.gz"
                observed = observer().register_callback(path)
                observed.start()
                for _ in range(nodes // 117):  # nodes of a step
                    step()
                stdout = os.dup(1)
                os.dup2(2, 1)  # torch's observer reports the compression there
                begin = time.perf_counter()
                observed.stop()
                observed.unregister_callback()
                elapsed = (time.perf_counter() - begin) * 1000
                os.dup2(stdout, 1)
                best = min(elapsed, found.get(name, (elapsed, 0))[0])
                found[name] = best, os.path.getsize(path) / 1e6
    return found


def memory_mib(nodes):
    """Returns the largest growth of the process in MiB."""
    import torch

    tensor = torch.zeros(4)
    with tempfile.TemporaryDirectory() as folder:
        for warm in (True, False):
            observed = observers()["vestige"]().register_callback(f"{folder}/{warm}.json.gz")
            before = child.forget_memory_peak()
            observed.start()
            for _ in range(1000 if warm else nodes):
                tensor.neg_()
            observed.stop()
            observed.unregister_callback()
    return child.memory_mib("VmHWM") - before


def measure(quick):
    table = Table("Execution trace", ["vestige", "torch"])
    if not peers.torch():
        table.add("torch is not installed", {})
        return [table]
    best = child.run(step_ns, turns=5 if quick else 20, count=30 if quick else 60)
    cost = {tool: (best[tool] - best["without"]) / 1000 for tool in ("vestige", "torch")}
    share = cost["vestige"] / cost["torch"]
    table.add("extra of a step, µs", cost, [at_most(f"{share:.2f} x torch", share, STEP_BAR)])
    ends = child.run(end_ms, turns=2 if quick else 6, nodes=NODES)
    share = ends["vestige"][0] / ends["torch"][0]
    ended = {tool: figures[0] for tool, figures in ends.items()}
    table.add("the end of 30,000 nodes, ms", ended, [at_most(f"{share:.2f} x torch", share, END_BAR)])
    table.add("its .json.gz, MB", {tool: figures[1] for tool, figures in ends.items()}, digits=2)
    grown = child.run(memory_mib, nodes=100_000 if quick else 1_000_000)
    table.add("memory of a million nodes, MiB", {"vestige": grown}, [at_most("MiB", grown, MEMORY_BAR)])
    return [table]
