"""Measures reports in the terminal for 10 million records: CPU time and the largest resident set of the whole command,
Python's own start included; the least of three.

Two programs. "mixed" is that of the family export: few functions, called from few places. "wide" has 2,000 functions that
call one another at random, up to 12 deep, so that hardly two calls come from the same place: the tree has some 100,000
places, which is more than programs have. The report after `vestige run` is made inside the program: what is counted
there is what it adds.
"""

import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time

import child
import peers
import workloads
from report import Table, at_most, say

CALLS = 5_000_000  # calls, with two records each
ROUNDS = 3
SECONDS, MIB = 2, 300
VIEWS = ["--flat", "--tree", "--threads", "--gc", "--flat --format json", "--tree --format csv"]
BARS = ["--flat", "--tree"]  # views with a bar


def record(path, program, calls):
    tool = peers.Vestige(output=path)
    work = workloads.mixed if program == "mixed" else make_wide(calls)
    tool.start()
    work(calls)
    tool.stop()


def make_wide(calls, functions=2000, depth=12):
    """Makes a function with this many calls."""
    choose = random.Random(1)
    namespace = {}
    for i in range(functions):
        below = [choose.randrange(functions) for _ in range(2)]
        source = f"def f{i}(n):\n    if n:\n        f{below[0]}(n - 1)\n        f{below[1]}(n - 1)\n"
        exec(compile(source, f"wide{i % 50}.py", "exec"), namespace)
    tree = 2 ** (depth + 1) - 1

    def work(count):
        for i in range(max(count // tree, 1)):
            namespace[f"f{i * 7 % 20}"](depth)

    return work


def in_program(path):
    """Returns the CPU seconds and MiB that the report after `vestige run` adds. Runs in a new process."""
    import io

    from vestige import Trace
    from vestige.cli.report.end import show

    before = child.forget_memory_peak()
    begun = time.process_time()
    show(Trace(path), {}, io.StringIO())
    return time.process_time() - begun, child.memory_mib("VmHWM") - before


def run_command(*words):
    """Returns CPU seconds and MiB of a command."""
    vestige = os.path.join(sysconfig.get_path("scripts"), "vestige")
    process = subprocess.Popen([vestige, *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"vestige {' '.join(words)} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def least(function, rounds):
    results = [function() for _ in range(rounds)]
    return min(seconds for seconds, _ in results), max(mib for _, mib in results)


def tabulate(program, path, rounds, scale):
    table = Table(f"Reports of {int(2 * CALLS * scale):,} records, {program}", ["CPU, s", "MiB"])
    rows = {f"report {view}": lambda view=view: run_command("report", path, *view.split()) for view in VIEWS}
    rows["at the end of run"] = lambda: child.run(in_program, path=path)
    rows["diff with itself"] = lambda: run_command("diff", path, path)
    for label, function in rows.items():
        seconds, mib = least(function, rounds)
        bars = label.removeprefix("report ") in BARS or label == "at the end of run"
        checks = [at_most("s", seconds / scale, SECONDS), at_most("MiB", mib, MIB)] if bars else []
        table.add(label, {"CPU, s": seconds, "MiB": mib}, checks, digits=2)
    return table


def measure(quick):
    scale = 0.1 if quick else 1
    tables = []
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        for program in ("mixed", "wide"):
            say(f"reports of the program {program}")
            path = os.path.join(folder, f"{program}.vst")
            child.run(record, path=path, program=program, calls=int(CALLS * scale))
            tables.append(tabulate(program, path, 1 if quick else ROUNDS, scale))
    return tables
