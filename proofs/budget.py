"""Checks the promises of `--budget`: the overhead in CPU time, compared with bare processes that alternate with
recorded processes on one processor; and how far estimates are from a full recording. Writes results/budget.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
BUDGETS = (0.02, 0.05, 0.10)
FLOOR = 0.001  # the least budget: nearly everything is left out
RATES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
POINT = 0.01  # the overhead may exceed the budget by this much
PIECE = 0.0015  # CPU time of a piece of work
ALL_CPUS = os.sched_getaffinity(0)

# ---- the programs, in the process that is measured -----------------------------------------------------------------


def leaf(x):
    return x + 1


def spin(turns):
    x = 0
    for i in range(turns):
        x += i & 3
    return x


def calls(count, between):
    """Calls with this many loop iterations between them."""
    x = 0
    if not between:
        for _ in range(count):
            x = leaf(x)
    else:
        for _ in range(count):
            x = leaf(x)
            spin(between)
    return x


def burst():
    """Makes ten million calls a second for some milliseconds, then none."""
    calls(40_000, 0)
    spin(60_000)


def turns_between(per_second):
    """Returns how many iterations of spin() make this many calls a second, at two calls per iteration."""
    times = []
    for _ in range(9):
        begin = time.process_time()
        spin(100_000)
        times.append((time.process_time() - begin) / 100_000)
    return int(2 / per_second / min(times)) if per_second < 5_000_000 else 0


def pieces():
    """Returns, by name, how many calls, and iterations between them, make a piece of work of some milliseconds. All
    processes use equal numbers.
    """
    found = {}
    for rate in RATES:
        found[f"{rate:.0e} calls a second".replace("e+0", "e")] = (max(1, int(rate * PIECE / 2)), turns_between(rate))
    found["bursts"] = (0, 0)
    return found


def make_functions():
    """Thirty functions, each of which calls the next; every fifth calls it twice."""
    lines = ["def f0(n):\n    x = 0\n    for i in range(4): x += i\n    return x\n"]
    for number in range(1, 30):
        again = f"    f{number - 1}(n)\n" * (2 if number % 5 == 0 else 1)
        lines.append(
            f"def f{number}(n):\n    x = abs(n)\n    for i in range({4 + 5 * number}): x += i\n{again}    return x\n"
        )
    space = {}
    exec("".join(lines), space)
    return space


def tree(seconds):
    f = make_functions()["f29"]
    end = time.process_time() + seconds
    number = 0
    while time.process_time() < end:
        f(number)
        number += 1
    return number


class Process:
    """A fork of this process that does pieces of work, and reports its CPU time so far. share 0: bare."""

    def __init__(self, piece, share, engine):
        self.asks, self.times = os.pipe(), os.pipe()
        self.used = []
        self.pid = os.fork()
        if self.pid == 0:
            os.sched_setaffinity(0, {max(ALL_CPUS)})
            os.close(self.asks[1])
            self.run(piece, share, engine)
            os._exit(0)
        os.close(self.asks[0])
        os.close(self.times[1])

    def run(self, piece, share, engine):
        if share == 0:
            self.work(piece)
            return
        import vestige

        with vestige.profile(with_stack=True, engine=engine, budget=share, gc=False):
            self.work(piece)

    def work(self, piece):
        while os.read(self.asks[0], 1) != b"0":
            if piece == (0, 0):
                burst()
            else:
                calls(*piece)
            os.write(self.times[1], struct.pack("d", time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID)))

    def turn(self):
        os.write(self.asks[1], b"1")
        self.used.append(struct.unpack("d", os.read(self.times[0], 8))[0])

    def end(self):
        os.write(self.asks[1], b"0")
        os.close(self.asks[1])
        os.waitpid(self.pid, 0)
        os.close(self.times[0])
        return self.used[-1] - self.used[0]


def overhead(engine, piece, shares, seconds):
    """Returns, by share, the overhead over bare processes; by "bare", the difference of two bare processes. Every
    second process is bare, so that disturbances longer than some milliseconds affect all.
    """
    order = []
    for number, share in enumerate(shares):
        order += [Process(piece, 0, engine)] if number < 2 else []
        order += [Process(piece, share, engine)]
    for process in order:  # in the first piece, vestige learns the cost of calls
        process.turn()
    begin = order[0].used[0]
    while order[0].used[-1] - begin < seconds:
        for process in order:
            process.turn()
    bare, kept, other, *rest = [process.end() for process in order]
    both = (bare + other) / 2
    result = {str(share): time / both - 1 for share, time in zip(shares, [kept, *rest])}
    return {**result, "bare": bare / other - 1}


def overheads(engine, seconds, rounds):
    """Returns the results of every round by program."""
    burst(), calls(100_000, 10)  # warm up here, so that every fork is warm
    found = {}
    for name, piece in pieces().items():
        found[name] = []
        for _ in range(rounds):
            told = overhead(engine, piece, BUDGETS[:2], seconds)
            more = overhead(engine, piece, (*BUDGETS[2:], FLOOR), seconds)
            found[name].append({**told, **more, "bare": [told["bare"], more["bare"]]})
    return found


def totals(path):
    done = subprocess.run(
        [sys.executable, "-m", "vestige", "report", path, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    functions = json.loads(done.stdout)["functions"]
    return {row["function"]: (row["total_ns"], row["self_ns"], row["calls"]) for row in functions}


def estimates(engine, seconds):
    """Returns each function's share of the whole, recorded in full and estimated at 5 %."""
    import vestige

    folder = tempfile.mkdtemp()
    found = []
    for name, options in {"full": {}, "kept": {"budget": 0.05}}.items():
        path = os.path.join(folder, f"{name}.vst")
        with vestige.profile(output=path, with_stack=True, engine=engine, gc=False, **options):
            tree(seconds if options else seconds / 4)
        found.append(totals(path))
        os.unlink(path)
    full, kept = found

    def share(of, function):
        whole = next(row[0] for name, row in of.items() if name.endswith(": tree"))
        return of.get(function, (0, 0, 0))[0] / whole

    largest = sorted(full, key=lambda function: -full[function][0])
    largest = [function for function in largest if "budget.py" in function or "<string>" in function][:20]
    return {function: (share(full, function), share(kept, function)) for function in largest}


def followed(engine, share, bursts):
    """Returns the milliseconds from the first call of each burst until the function is left out; null: it was left out
    from the beginning.
    """
    import vestige

    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "bursts.vst")
    begins = []
    with vestige.profile(output=path, with_stack=True, engine=engine, budget=share, gc=False):
        for _ in range(bursts):
            spin(5_000_000)
            begins.append(time.time_ns())
            calls(1_000_000, 0)
    trace = vestige.Trace(path)
    leaf_id = next(number for number, entry in enumerate(trace.functions()) if entry and entry[1] == "leaf")
    rows = trace.tables(["left_out"])["left_out"]
    out = [(row.start_ns, row.end_ns) for row in rows if row.func in (None, leaf_id)]
    os.unlink(path)
    os.rmdir(folder)
    return [
        None
        if any(start <= begin < end for start, end in out)
        else min(start - begin for start, _ in out if start > begin) / 1e6
        for begin in begins
    ]


# ---- all of them ---------------------------------------------------------------------------------------------------


def rows(python, engine, told):
    lines = [f"\n## Python {python}, engine {engine}\n"]
    lines.append(
        "| program | " + " | ".join(f"{share:.0%}" for share in BUDGETS) + " | floor (0.1%) | bare beside bare |"
    )
    lines.append("|---|" + "---|" * (len(BUDGETS) + 2))
    for name, rounds in told["overheads"].items():
        cells = []
        for share in (*BUDGETS, FLOOR):
            all_rounds = [told[str(share)] for told in rounds]
            over = statistics.median(all_rounds)
            spread = f" ({min(all_rounds):+.1%} to {max(all_rounds):+.1%})" if len(rounds) > 1 else ""
            is_within = share == FLOOR or over <= share + POINT
            cells.append(f"{over:+.1%}{spread}" + ("" if is_within else " **above**"))
        noise = max(abs(one) for told in rounds for one in told["bare"])
        lines.append(f"| {name} | {' | '.join(cells)} | {noise:.1%} |")
    known = [ms for ms in told["followed"] if ms is not None]
    lines.append(
        f"\nOf {len(told['followed'])} bursts at 5 %, {len(told['followed']) - len(known)} were left out from their begin on, "
        f"as the burst before had been. The others were followed within {max(known, default=0):.1f} ms."
    )
    lines += estimate_lines(told["estimates"])
    return lines


def estimate_lines(estimated):
    near = [name for name, (full, kept) in estimated.items() if abs(kept - full) <= 0.15 * full]
    lines = [f"\nOf the {len(estimated)} largest functions, {len(near)} have a time within 15 % of a full recording's."]
    far = [
        f"{name.rpartition(': ')[2]} {kept / full - 1:+.0%}"
        for name, (full, kept) in estimated.items()
        if name not in near and full
    ]
    if far:
        lines.append("Further off: " + ", ".join(far) + ".")
    return lines


HEAD = """# Budgets

Overhead of `--budget` over the same work bare, by the CPU time of the process. Four processes, two of them bare, are
forks of one and take turns on one processor: a piece of work of 1.5 ms each, until each has used {seconds:g} s. So they are
equal but for the budget, and what disturbs the machine disturbs all. Each figure is the median of {rounds} such rounds; in
brackets the least and the greatest. The last column is the noise: how far the two bare processes were apart at most.
Learning what calls cost (0.3 s, once) is not in it. Since four processes take turns, the thread of a budget wakes up four
times as often as it would alone, for the same CPU time. A figure above the budget and one percentage point is marked. The
floor is what is left with the least budget.

Times of functions are compared as shares of the time of the program, since a full recording slows the whole program
down: thirty functions, the full recording for {seconds:g} s, that with a budget of 5 % for {longer:g} s."""


def measure(python, engine, options):
    words = ["--child", engine, "--seconds", str(options.seconds), "--rounds", str(options.rounds)]
    path = os.path.join(os.path.dirname(HERE), ".venv", python, "bin", "python")
    done = subprocess.run([path, os.path.abspath(__file__), *words], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument("--engine", nargs="+", default=["auto"])
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU time of a process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", metavar="ENGINE", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", default=os.path.join(HERE, "results", "budget.md"))
    options = parser.parse_args()
    if options.child:
        told = {
            "overheads": overheads(options.child, options.seconds, options.rounds),
            "followed": followed(options.child, 0.05, 20),
            "estimates": estimates(options.child, 4 * options.seconds),
        }
        print(json.dumps(told))
        return
    lines = [HEAD.format(seconds=options.seconds, rounds=options.rounds, longer=4 * options.seconds)]
    for python in options.python:
        for engine in options.engine:
            lines += rows(python, engine, measure(python, engine, options))
            print(*lines[-12:], sep="\n", flush=True)
    with open(options.output, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
