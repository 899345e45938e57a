"""What `--budget` promises: overhead by CPU time beside bare runs in the same process, turn by turn; and how far its
estimates are from a full recording. Writes results/budget.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
BUDGETS = (0.02, 0.05, 0.10)
FLOOR = 0.001  # the least budget: nearly everything is left out
RATES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
POINT = 0.01  # what the overhead may exceed the budget by

# ---- the programs, in the process that is measured -----------------------------------------------------------------


def leaf(x):
    return x + 1


def spin(turns):
    x = 0
    for i in range(turns):
        x += i & 3
    return x


def calls(count, between):
    """Calls with so many turns of a loop between them."""
    x = 0
    if not between:
        for _ in range(count):
            x = leaf(x)
    else:
        for _ in range(count):
            x = leaf(x)
            spin(between)
    return x


def bursts(count):
    """Ten million a second for some milliseconds, then none."""
    for _ in range(count):
        calls(40_000, 0)
        spin(60_000)


def steady_turns(per_second):
    """How many turns of spin() make so many calls a second; two calls a turn."""
    begin = time.process_time()
    spin(300_000)
    one = (time.process_time() - begin) / 300_000
    return int(max(0.0, 2 / per_second) / one) if per_second < 5_000_000 else 0


def programs(seconds):
    """By name: work that takes about so long, and how many calls it makes."""
    found = {}
    for rate in RATES:
        turns = steady_turns(rate)
        begin = time.process_time()
        calls(max(rate // 100, 3), turns)
        count = max(3, int(max(rate // 100, 3) * seconds / (time.process_time() - begin)))
        found[f"{rate:.0e} calls a second".replace("e+0", "e")] = lambda count=count, turns=turns: calls(count, turns)
    begin = time.process_time()
    bursts(2)
    times = max(3, int(2 * seconds / (time.process_time() - begin)))
    found["bursts"] = lambda: bursts(times)
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


def timed(work):
    begin = time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID)
    work()
    return time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) - begin


def overhead(engine, seconds, rounds):
    import vestige

    result = {}
    for name, work in programs(seconds).items():
        work()
        bare, kept = [], {share: [] for share in (*BUDGETS, FLOOR)}
        for _ in range(rounds):
            for share, times in kept.items():
                bare.append(timed(work))
                with vestige.profile(with_stack=True, engine=engine, budget=share, gc=False):
                    times.append(timed(work))
        best = min(bare)
        result[name] = {str(share): min(times) / best - 1 for share, times in kept.items()}
    return result


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
    """By function: its share of the whole, recorded in full and estimated at 5 %."""
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


# ---- all of them ---------------------------------------------------------------------------------------------------


def table(python, engine, told):
    lines = [f"\n## Python {python}, engine {engine}\n"]
    lines.append("| program | " + " | ".join(f"{share:.0%}" for share in BUDGETS) + " | floor (0.1%) |")
    lines.append("|---|" + "---|" * (len(BUDGETS) + 1))
    for name, kept in told["overhead"].items():
        cells = []
        for share in BUDGETS:
            over = kept[str(share)]
            cells.append(f"{over:+.1%}" + ("" if over <= share + POINT else " **above**"))
        lines.append(f"| {name} | {' | '.join(cells)} | {kept[str(FLOOR)]:+.1%} |")
    near = [name for name, (full, kept) in told["estimates"].items() if abs(kept - full) <= 0.15 * full]
    count = len(told["estimates"])
    lines.append(f"\nOf the {count} largest functions, {len(near)} have a time within 15 % of a full recording's.")
    far = [
        f"{name.rpartition(': ')[2]} {kept / full - 1:+.0%}"
        for name, (full, kept) in told["estimates"].items()
        if name not in near and full
    ]
    if far:
        lines.append("Further off: " + ", ".join(far) + ".")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument("--engine", nargs="+", default=["auto"])
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time of a run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", metavar="ENGINE", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", default=os.path.join(HERE, "results", "budget.md"))
    options = parser.parse_args()
    if options.child:
        told = {
            "overhead": overhead(options.child, options.seconds, options.rounds),
            "estimates": estimates(options.child, 4 * options.seconds),
        }
        print(json.dumps(told))
        return
    head = f"""# Budgets

Overhead of `--budget` over bare runs of the same work in the same process, by CPU time, turn by turn: least of
{options.rounds} runs of about {options.seconds:g} s each. Learning what calls cost (0.2 s, once) is not in it. A figure above
the budget and {POINT:.0%} is marked. The floor is what is left with the least budget.

Times of functions are compared as shares of the time of the program, since a full recording slows the whole program
down: thirty functions, the full recording for {options.seconds:g} s, that with a budget of 5 % for {4 * options.seconds:g} s."""
    lines = [head]
    for python in options.python:
        for engine in options.engine:
            words = ["--child", engine, "--seconds", str(options.seconds), "--rounds", str(options.rounds)]
            path = os.path.join(os.path.dirname(HERE), ".venv", python, "bin", "python")
            done = subprocess.run(
                [path, os.path.abspath(__file__), *words], stdout=subprocess.PIPE, text=True, check=True
            )
            lines += table(python, engine, json.loads(done.stdout))
            print(*lines[-12:], sep="\n", flush=True)
    with open(options.output, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
