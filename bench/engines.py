"""vestige's engines compared with each other and with other profilers: loops of calls, six programs, a training step.

Loops and programs: one process alternates the profilers, each in blocks of a few runs, the first of which is not
counted. What counts is CPU time of the process; starting and stopping is not in it. vestige records to a new file in
each block, with all other settings at their defaults, and VizTracer is a new one with the memory that it makes by
default: each as in a program that it is used in. "VizTracer again" is cleared, and goes on in memory that it has used
before, the least that it can cost; no bar compares with it. cProfile is cleared too: it adds up and needs next to no
memory. What a call costs is a run's time less that without a profiler, divided by the calls; the slowdown of a program
is the one time over the other.

Of a loop the least of all runs counts. A run is 200,000 calls: it takes several pieces of the trace's file, so fresh
memory is in its time. A run of a short program writes less than a piece, and the fastest of its runs are those that
need no fresh memory. So a block of a program is eight runs in one recording, and their mean is what it took; the least
of all blocks counts.

torch.profiler keeps kilobytes of a call, and its start and stop take seconds: it gets shorter runs of the loops,
no uncounted first run of a program, and fewer runs of both.

The training step is that of torch_ops.
"""

import gc
import statistics
import time

import child
import peers
import programs
import workloads
from report import Table, at_most, say

PYTHON = {
    "function": (workloads.python_function, workloads.CALLS),
    "method": (workloads.python_method, workloads.CALLS),
    "recursion (fib)": (workloads.recursion, workloads.FIB_CALLS),
}
GENERATOR = {"generator, a resumption": (workloads.generator, workloads.RESUMPTIONS)}
NATIVE = {
    "len(x)": (workloads.c_len, workloads.CALLS),
    "abs(x)": (workloads.c_abs, workloads.CALLS),
    "x.append(1)": (workloads.c_append, workloads.CALLS),
    "d.get(k)": (workloads.c_get, workloads.CALLS),
}
KEYWORDS = {"sum(x), takes keywords": (workloads.c_sum, workloads.CALLS)}
LOOPS = PYTHON | GENERATOR | NATIVE | KEYWORDS

# The limits for turbo: the largest share of the peer's cost, or multiple of the program's own time.
PYTHON_BARS = {"VizTracer": 0.45 if peers.NEW else 0.3, "torch": 0.2}
NATIVE_BARS = {"VizTracer": 0.25}
SLOWDOWN_BAR = 1.5 if peers.NEW else 1.6
PROGRAM_RUNS = 8  # runs in one recording
STEP_BARS = {"torch": 0.5}


class Repeat:
    """Calls a function this many times."""

    def __init__(self, function, times):
        self.function = function
        self.times = range(times)

    def __call__(self):
        function = self.function
        for _ in self.times:
            function()


def cpu_ns(function):
    begin = time.process_time_ns()
    function()
    return time.process_time_ns() - begin


def run_block(tool, function, runs, warm=True, of_runs=min):
    """Returns the CPU time of a run under the tool, in ns: the least of the runs, or their mean."""
    gc.collect()  # so that no tool pays for another's garbage
    tool.start()
    if warm:
        function()  # the first run places hooks, fills caches and defines names
    taken = of_runs([cpu_ns(function) for _ in range(runs)])
    tool.stop()
    tool.clear()
    return taken


def alternate(tools, functions, rounds, runs, warm=True, of_runs=min):
    """Returns {tool: {function: ns}}, the least of all blocks."""
    best = {tool.name: dict.fromkeys(functions, float("inf")) for tool in tools}
    for number in range(rounds):
        if number % max(1, rounds // 4) == 0:
            say(f"round {number + 1} of {rounds}: {', '.join(best)}; {len(functions)} of them")
        for name, function in functions.items():
            for tool in tools:
                taken = run_block(tool, function, runs, warm, of_runs)
                best[tool.name][name] = min(best[tool.name][name], taken)
    return best


def everybody():
    viztracer = [peers.VizTracerAnew()] if peers.is_installed("viztracer") else []
    return [peers.Off(), *peers.engines(), *viztracer, peers.CProfile()]


def again():
    if not peers.is_installed("viztracer"):
        return []
    tool = peers.VizTracer()
    tool.name = "VizTracer again"
    return [tool]


def loops_ns(rounds, repeat, torch_rounds, torch_repeat):
    """Returns ns per call of each loop: without a profiler (off), and the additional time of each tool."""

    def cost(best, times):
        off = best.pop("off")
        per_call = {
            tool: {loop: (ns - off[loop]) / LOOPS[loop][1] / times for loop, ns in taken.items()}
            for tool, taken in best.items()
        }
        return {"off": {loop: ns / LOOPS[loop][1] / times for loop, ns in off.items()}} | per_call

    many = {name: Repeat(loop, repeat) for name, (loop, _) in LOOPS.items()}
    result = cost(alternate([*everybody(), *again()], many, rounds, runs=3), repeat)
    torch = peers.torch()
    if torch:
        few = {name: Repeat(loop, torch_repeat) for name, (loop, _) in LOOPS.items()}
        result["torch"] = cost(alternate([peers.Off(), torch], few, torch_rounds, runs=5), torch_repeat)["torch"]
    return result


def alternate_programs(tools, rounds, **block):
    """Returns {tool: {program: ns of a run}}."""
    six = {name: make() for name, make in programs.SIX.items()}
    return alternate(tools, six, rounds, **{"runs": PROGRAM_RUNS, **block}, of_runs=statistics.fmean)


def programs_ns(rounds, torch_rounds):
    best = alternate_programs(everybody(), rounds)
    torch = peers.torch()
    if torch:
        best |= alternate_programs([torch], torch_rounds, runs=2, warm=False)
    return best


# ---- tables ----------------------------------------------------------------


def check_against(bars, cost):
    """Compares turbo's cost with each peer's, against the bar."""
    ratios = {peer: cost["turbo"] / cost[peer] for peer in bars if peer in cost and "turbo" in cost}
    return [at_most(f"{ratio:.2f} x {peer}", ratio, bars[peer]) for peer, ratio in ratios.items()]


def loop_table(title, costs, loops, others, bars):
    """A table with the loops, their mean, and the other loops below."""
    table = Table(title, list(costs), unit="ns a call")
    rows = {loop: {tool: cost[loop] for tool, cost in costs.items()} for loop in loops | others}
    for loop in loops:
        table.add(loop, rows[loop], check_against(bars, rows[loop]))
    mean = {tool: statistics.fmean(rows[loop][tool] for loop in loops) for tool in costs}
    table.add("mean", mean, check_against(bars, mean))
    for loop in others:
        table.add(loop, rows[loop], check_against(bars, rows[loop]))
    return table


def program_table(best):
    off = best["off"]
    slowdowns = {tool: {name: ns / off[name] for name, ns in taken.items()} for tool, taken in best.items()}
    del slowdowns["off"]
    table = Table("Programs, times as long as without a profiler", ["off, ms", *slowdowns])
    for name in off:
        figures = {tool: slowdown[name] for tool, slowdown in slowdowns.items()}
        table.add(name, {"off, ms": off[name] / 1e6} | figures, digits=2)
    mean = {tool: statistics.geometric_mean(slowdown.values()) for tool, slowdown in slowdowns.items()}
    checks = [at_most(f"{mean['turbo']:.2f} x", mean["turbo"], SLOWDOWN_BAR)] if "turbo" in mean else []
    table.add("geometric mean", mean, checks, digits=2)
    return table


def step_table(quick):
    import torch_ops

    names = {tool.name: tool.engine for tool in peers.engines()}
    best = child.run(
        torch_ops.step_ns,
        settings={"with_stack": True},
        turns=5 if quick else 20,
        count=30 if quick else 60,
        engines=list(names.values()),
    )
    cost = {name: (best[engine] - best["without"]) / 1000 for name, engine in names.items()}
    cost["torch"] = (best["torch"] - best["without"]) / 1000
    table = Table("Training step with_stack, extra cost", ["off", *cost], unit="µs")
    table.add("step", {"off": best["without"] / 1000} | cost, check_against(STEP_BARS, cost))
    return table


def measure(quick):
    costs = child.run(
        loops_ns,
        rounds=3 if quick else 15,
        repeat=20 if quick else 200,
        torch_rounds=1 if quick else 3,
        torch_repeat=10,
    )
    best = child.run(programs_ns, rounds=2 if quick else 12, torch_rounds=1 if quick else 2)
    tables = [
        loop_table("Python call, extra cost", costs, PYTHON, GENERATOR, PYTHON_BARS),
        loop_table("C call, extra cost", costs, NATIVE, KEYWORDS, NATIVE_BARS),
        program_table(best),
    ]
    return [*tables, step_table(quick)] if peers.torch() else tables
