#!/usr/bin/env python3
"""Instructions that vestige takes, counted by callgrind: the same on a busy machine as on a quiet one.

    python bench/instructions.py .venv/3.12/bin/python [OTHER/.venv/3.12/bin/python]

Each argument is a Python with vestige installed; two Pythons are compared, for example before and after a change. Each
part runs in a process of its own under valgrind, which must be installed, and a C compiler too. callgrind counts the
whole process between two marks, including the interpreter's instructions. The count of a loop without a profiler (the
lower of both builds) is subtracted, because it is the interpreter's alone; the rest is divided by the calls or records.
Both builds read the recording of one build.

Counts of one build differ by less than a thousandth from run to run, except where the interpreter's own allocator
takes another way. An instruction is not a time: a read of the clock is one.
"""

import argparse
import ctypes
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 2  # counted rounds of each loop
TIMES = 3  # repetitions; the least counts, because now and then the store makes room for more records
ALLOCATIONS = 500
LEFT_OUT = ["workloads.py", "instructions.py"]  # all code of the loops


# ---- in the process that is counted -------------------------------------------


class Marks:
    def __init__(self):
        marks = ctypes.PyDLL(os.environ["CALLGRIND_MARKS"])
        self.begin, self.end = marks.mark_begin, marks.mark_end  # end() takes the name as bytes

    def count(self, name, function, runs=1, warm=1, times=1):
        for _ in range(warm):
            function()
        name = name.encode()
        for _ in range(times):
            self.begin()
            for _ in range(runs):
                function()
            self.end(name)


def raising():
    import workloads

    def fail():
        raise KeyError

    for _ in range(workloads.CALLS):
        try:
            fail()
        except KeyError:
            pass


def loops():
    """Returns {name: (function, calls)}; a call that raises counts, too."""
    import workloads as w

    return {
        "function": (w.python_function, w.CALLS),
        "method": (w.python_method, w.CALLS),
        "recursion (fib)": (w.recursion, w.FIB_CALLS),
        "generator, a resumption": (w.generator, w.RESUMPTIONS),
        "a call that raises": (raising, w.CALLS),
        "len(x)": (w.c_len, w.CALLS),
        "abs(x)": (w.c_abs, w.CALLS),
        "x.append(1)": (w.c_append, w.CALLS),
        "d.get(k)": (w.c_get, w.CALLS),
        "sum(x)": (w.c_sum, w.CALLS),
        "bytes(3)": (w.c_class, w.CALLS),
        "itemgetter(0)(x)": (w.c_object, w.CALLS),
    }


def count_calls(marks, folder, engine, exclude=None):
    import vestige
    from vestige.recording.option_table import BY_NAME

    # Threads look lines up after a certain time, which differs between runs.
    options = {"lines": False} if "lines" in BY_NAME else {}

    def count(state):
        for name, (function, _) in loops().items():
            marks.count(f"{state}{name}", function, RUNS, warm=8, times=TIMES)

    count("off ")
    path = os.path.join(folder, "calls.vst")
    profile = vestige.profile(output=path, overwrite=True, engine=engine, gc=False, exclude=exclude, **options)
    profile.start()
    count("")
    profile.stop()


def one_line():
    for _ in range(ALLOCATIONS):
        bytes(40), bytes(41), bytes(42), bytes(43)


def leaf():
    return bytes(40)


def in_a_function():
    for _ in range(ALLOCATIONS):
        leaf()
        leaf()
        leaf()
        leaf()


def by_malloc():
    for _ in range(ALLOCATIONS):
        bytes(4000), bytes(4100), bytes(4200), bytes(4300)


MEMORY = {"one line": one_line, "a call for each": in_a_function, "by malloc": by_malloc}


def at_depth(depth, function):
    return function() if depth <= 1 else at_depth(depth - 1, function)


def count_memory(marks, folder):
    from vestige import memory

    def count(state):
        for name, function in MEMORY.items():
            marks.count(f"{state}{name}", function, 2, warm=4)

    at_depth(5, lambda: count("off "))
    for state, native, depth in (("", False, 5), ("depth 30, ", False, 30), ("native, ", True, 5)):
        memory.start(os.path.join(folder, "memory.vst"), native=native, overwrite=True)
        at_depth(depth, lambda state=state: count(state))
        memory.stop()


def count_tracebacks(marks, folder):
    from vestige.traceback import CapturedTraceback, gather_traceback, symbolize_tracebacks

    kept = []

    def captures(depth):
        marks.count(f"gather, depth {depth}", lambda: gather_traceback(True, False, False), 200, warm=50)
        marks.count(f"extract, depth {depth}", CapturedTraceback.extract, 200, warm=50)
        marks.count(f"gather with native frames, depth {depth}", lambda: gather_traceback(True, False, True), 200, 50)

    for depth in (10, 50):
        at_depth(depth, lambda depth=depth: captures(depth))
    for number in range(300):
        code = compile("\n" * number + "kept.append(gather_traceback(True, False, False))", "kept.py", "exec")
        at_depth(20 + number % 30, lambda code=code: exec(code, {"kept": kept, "gather_traceback": gather_traceback}))
    marks.count("naming 300", lambda: symbolize_tracebacks(kept), warm=0)


def record(folder):
    """The recording that count_reading reads: calls of all kinds in three threads, and allocations."""
    import threading

    import vestige
    import workloads as w
    from vestige import memory

    def work():
        for _ in range(10):
            w.python_function(), w.c_len(), w.recursion(), w.c_append(), w.generator()
        for _ in range(3):
            raising()
        for number in range(1000):
            with vestige.record_function("block", str(number)):
                w.nothing()

    def allocate():
        kept = [bytes(size % 500) for size in range(20_000)]
        del kept
        for _ in range(5000):
            bytearray(5000)

    with vestige.profile(output=os.path.join(folder, "read.vst")) as profile:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        work()
        profile.step()
    memory.start(os.path.join(folder, "read_memory.vst"))
    allocate()
    memory.stop()


def count_reading(marks, folder):
    from vestige import _core
    from vestige.reading.memory import read_memory

    path, out = os.path.join(folder, "read.vst"), os.path.join(folder, "out")
    marks.count("open", lambda: _core.Trace(path))
    trace = _core.Trace(path)
    for suffix in ("json", "json.gz", "pftrace", "folded", "pb.gz", "pstats"):
        marks.count(f"export .{suffix}", lambda suffix=suffix: trace.export(f"{out}.{suffix}"))
    marks.count("functions()", lambda: trace.tables(["functions"], all_windows=False))
    for name in ("events", "averages"):
        marks.count(f"{name}()", lambda name=name: trace.tables([name], all_windows=False))
    marks.count("report()", lambda: [*map(list, trace.tables(["functions", "calls", "threads", "waits"]).values())])
    marks.count("duration", lambda: [*trace.tables(["duration"])["duration"]])
    marks.count("index of a view", lambda: _core.View(path, index=f"{out}.index", keep=False, workers=1))
    view = _core.View(path, index=f"{out}.index", keep=False, workers=1)
    middle = sum(view.info()[edge] for edge in ("start_ns", "end_ns")) // 2
    marks.count("a short window of a view", lambda: view.window(middle, middle + 1000, 1600))
    marks.count("pack", lambda: _core.pack(path, f"{out}.packed", overwrite=True))
    history = _core.Trace(os.path.join(folder, "read_memory.vst"))
    marks.count("memory()", lambda: read_memory(history))
    marks.count("memory, export .json", lambda: history.export(f"{out}.memory.json"))


def count_imports(marks, folder):
    def import_profile():
        from vestige import profile

        return profile

    marks.count("import vestige", lambda: __import__("vestige"), warm=0)
    marks.count("from vestige import profile", import_profile, warm=0)
    profile = import_profile()
    marks.count("profile()", lambda: profile(output=os.path.join(folder, "unused.vst")), warm=0)
    marks.count("import vestige.cli.run", lambda: __import__("vestige.cli.run"), warm=0)


def count_starts(marks, folder):
    from vestige import profile
    from vestige.cli import run

    def start_and_stop():
        recording = profile(output=os.path.join(folder, "start.vst"), overwrite=True)
        recording.start()
        recording.stop()

    marks.count("first start and stop", start_and_stop, warm=0)
    marks.count("start and stop", start_and_stop, times=TIMES)
    words = ["-q", "--force", "-o", os.path.join(folder, "run.vst"), "-c", "pass"]
    marks.count("vestige run, until its end", lambda: run.prepare(words)(), warm=0)


PARTS = {
    "turbo": lambda marks, folder: count_calls(marks, folder, "turbo"),
    "safe": lambda marks, folder: count_calls(marks, folder, "safe"),
    "turbo, code left out": lambda marks, folder: count_calls(marks, folder, "turbo", LEFT_OUT),
    "safe, code left out": lambda marks, folder: count_calls(marks, folder, "safe", LEFT_OUT),
    "memory": count_memory,
    "tracebacks": count_tracebacks,
    "reading": count_reading,
    "imports": count_imports,
    "start": count_starts,
}


# ---- outside -------------------------------------------------------------------


def counts_of(folder):
    """Returns {name of the mark: instructions}; if a mark was counted several times, the least."""
    found = {}
    for path in sorted(folder.glob("callgrind.*"), key=lambda path: int(path.suffix[1:])):
        name = total = None
        with open(path, errors="replace") as lines:
            for line in lines:
                if line.startswith("desc: Trigger: Client Request: "):
                    name = line.split("Client Request: ")[1].strip()
                elif line.startswith("totals:"):
                    total = int(line.split()[1])
        if name is not None:
            found[name] = min(total, found.get(name, total))
    return found


def count(command, part, folder, **variables):
    """Counts one part. The command runs this file; the folder has the result of make_marks()."""
    with tempfile.TemporaryDirectory(prefix="vestige-callgrind-") as out:
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}/callgrind"]
        done = run_alone([*valgrind, *command, "--part", part, "."], folder, **variables)
        if done.returncode:
            sys.exit(f"{part} failed:\n{done.stdout}{done.stderr[-4000:]}")
        return counts_of(Path(out))


def run_alone(command, folder, **variables):
    """Removes the environment: the number of variables moves the stack, which changes what allocators do."""
    program = shutil.which(command[0])
    variables = {"PATH": os.defpath, "CALLGRIND_MARKS": "./marks.so", "PYTHONHASHSEED": "0", **variables}
    return subprocess.run([program, *command[1:]], cwd=folder, env=variables, capture_output=True, text=True)


def make_marks(folder, *more):
    here = Path(__file__).parent
    sources = [here / name for name in ("marks.c", *more)]
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-fno-builtin", *sources, "-o", folder / "marks.so"], check=True)


def compile_package(python):
    """Importing modules that are not compiled yet leaves another heap."""
    code = "import os, vestige, compileall; compileall.compile_dir(os.path.dirname(vestige.__file__), quiet=2)"
    subprocess.run([python, "-c", code], check=True)


def figures(part, counts):
    """Returns {row: instructions per call, per record, or in all}, without the loop's own instructions."""
    if part.startswith(("turbo", "safe")):
        return {name: (counts[name] - counts[f"off {name}"]) / calls / RUNS for name, (_, calls) in loops().items()}
    if part == "memory":
        records = 2 * 8 * ALLOCATIONS
        states = ("", "depth 30, ", "native, ")
        return {
            state + name: (counts[state + name] - counts[f"off {name}"]) / records
            for state in states
            for name in MEMORY
        }
    if part == "tracebacks":
        return {name: total / (1 if name.startswith("naming") else 200) for name, total in counts.items()}
    return counts


def show(part, pythons, found):
    print(f"\n**{part}**\n\n| | {' | '.join(pythons)} |{' change |' if len(found) == 2 else ''}")
    print("|---|" + "---:|" * (len(found) + (len(found) == 2)))
    for name in found[0]:
        values = [each[name] for each in found]
        cells = [f"{value:,.1f}" if value < 100_000 else f"{value / 1e6:,.2f} M" for value in values]
        if len(values) == 2:
            cells.append(f"{100 * (values[1] / values[0] - 1):+.1f} %")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="one with vestige installed, or two")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "record":
        record(options.pythons[0])
        return
    if options.part:
        gc.disable()  # a collection depends on earlier ones, and its time depends on all objects
        PARTS[options.part](Marks(), options.pythons[0])
        return
    with tempfile.TemporaryDirectory(prefix="vestige-instructions-") as name:
        make_marks(Path(name))
        for python in options.pythons:
            compile_package(python)
        if "reading" in options.parts:
            subprocess.run([options.pythons[0], __file__, "--part", "record", name], check=True)
        script = Path(__file__).resolve()
        for part in options.parts:
            counts = [count([os.path.abspath(python), script], part, name) for python in options.pythons]
            off = {name: min(each[name] for each in counts) for name in counts[0] if name.startswith("off ")}
            show(part, options.pythons, [figures(part, each | off) for each in counts])


if __name__ == "__main__":
    main()
