"""The cost of a hook per call: the additional time of loops of calls while a profiler records them.

One process alternates the profilers in short blocks. A block runs each loop several times; a run takes 0.1 to 0.3 ms,
short enough that some are undisturbed on a busy machine. The fastest run of all counts; the fastest one without a
profiler is taken off, the rest divided by the calls. The time does not include starting and stopping.

The result is the cost of the hook on memory that is already mapped; `file` measures long recordings. The column "bare"
is the cost of the interpreter's events without a hook.
"""

import gc
import time

import peers
import workloads
from report import Table, at_most, say

PYTHON = [
    ("function", workloads.python_function, workloads.CALLS),
    ("method", workloads.python_method, workloads.CALLS),
    ("recursion (fib)", workloads.recursion, workloads.FIB_CALLS),
]
NATIVE = [
    ("len(x)", workloads.c_len, workloads.CALLS),
    ("abs(x)", workloads.c_abs, workloads.CALLS),
    ("x.append(1)", workloads.c_append, workloads.CALLS),
    ("d.get(k)", workloads.c_get, workloads.CALLS),
]
RUNS = 4  # calls of a loop in a block
TORCH_RUNS = 12

# The largest allowed share of the peer's cost.
PYTHON_BARS = {"VizTracer": 0.65 if peers.NEW else 0.85, "torch": 0.55}
NATIVE_BARS = {"VizTracer": 0.5 if peers.NEW else 0.85}
PYTHON_ONLY_BARS = {"VizTracer": 0.6} if peers.NEW else {}


def time_run(loop, clock=time.perf_counter_ns):
    begin = clock()
    loop()
    return clock() - begin


def run_block(tool, loops, runs, best):
    """Runs every loop under the tool and keeps each loop's fastest time in `best`."""
    tool.start()
    for label, loop, _ in loops:
        loop()  # the first run places hooks and fills caches
        for _ in range(runs):
            taken = time_run(loop)
            if taken < best[label]:
                best[label] = taken
    tool.stop()
    tool.clear()


def alternate(tools, loops, rounds, slow_tool=None):
    """Returns the fastest time of each loop under each tool, in ns."""
    best = {tool.name: dict.fromkeys((label for label, _, _ in loops), float("inf")) for tool in tools}
    slow_every = max(1, rounds // 12)
    if slow_tool:
        best[slow_tool.name] = dict.fromkeys(best["off"], float("inf"))
    gc.disable()
    for number in range(rounds):
        if number % (rounds // 4) == 0:
            say(f"round {number + 1} of {rounds}: {', '.join(best)}")
        for tool in tools:
            run_block(tool, loops, RUNS, best[tool.name])
        if slow_tool and number % slow_every == 0:
            run_block(slow_tool, loops, TORCH_RUNS, best[slow_tool.name])
            gc.collect()
    gc.enable()
    return best


def check_against(bars, extra):
    """Compares our cost with each peer's, against the bar."""
    ratios = {peer: extra["vestige"] / extra[peer] for peer in bars if peer in extra}
    return [at_most(f"{ratio:.2f} x {peer}", ratio, bars[peer]) for peer, ratio in ratios.items()]


def tabulate(title, best, loops, bars):
    names = [name for name in best if name != "off"]
    table = Table(title, ["off", *names], unit="ns a call")
    rows = []
    for label, _, count in loops:
        off = best["off"][label]
        rows.append({"off": off / count} | {name: (best[name][label] - off) / count for name in names})
        table.add(label, rows[-1], check_against(bars, rows[-1]))
    mean = {name: sum(row[name] for row in rows) / len(rows) for name in best}
    table.add("mean", mean, check_against(bars, mean))
    return table


def measure(quick):
    rounds = 30 if quick else 200
    with_c = alternate(peers.all_functions(), PYTHON + NATIVE, rounds, peers.torch())
    python_only = alternate(peers.python_functions(), PYTHON, rounds)
    return [
        tabulate("Python call, extra cost", with_c, PYTHON, PYTHON_BARS),
        tabulate("C call, extra cost", with_c, NATIVE, NATIVE_BARS),
        tabulate("Python call, C functions left out, extra cost", python_only, PYTHON, PYTHON_ONLY_BARS),
    ]
