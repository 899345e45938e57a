"""Writes the results of proofs/compensated.py as a page."""

import json
import os

import compensated_figure

VERSIONS = ("3.11", "3.12", "3.13")
ENGINES = ("turbo", "safe")


def load(folder, part, version):
    path = os.path.join(folder, f"{part}-{version}.json")
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {name: found for name, found in json.load(file).items() if found}


def totals(folder):
    columns = [(version, engine) for version in VERSIONS for engine in ENGINES]
    read = {version: load(folder, "totals", version) for version in VERSIONS}
    names = [key.split()[1] for key in read["3.12"] if key.startswith("turbo")]
    yield "| | " + " | ".join(f"{version} {engine}" for version, engine in columns) + " |"
    yield "|---|" + "---:|" * len(columns)
    off = {column: [] for column in columns}
    for name in names:
        cells = []
        for version, engine in columns:
            found = read[version].get(f"{engine} {name}")
            if found is None:
                cells.append("–")
                continue
            change = found["compensated"] / found["bare"] - 1
            off[version, engine].append(abs(change))
            cells.append(f"{found['recorded'] / found['bare'] - 1:+.0%} → {change:+.0%}")
        yield f"| {name} | " + " | ".join(cells) + " |"
    for bound in (0.05, 0.10):
        counts = (f"{sum(each <= bound for each in off[c])} of {len(off[c])}" for c in columns)
        yield f"| within {bound:.0%} | " + " | ".join(counts) + " |"


def functions(folder):
    yield "| | functions | the bar contains the truth | the bar, median | recorded, median | compensated, median |"
    yield "|---|---:|---:|---:|---:|---:|"
    for version in VERSIONS:
        for engine, rows in load(folder, "functions", version).items():
            inside = sum(abs(compensated - bare) <= error for _, bare, _, compensated, error in rows)
            before = sorted(recorded / bare - 1 for _, bare, recorded, _, _ in rows)[len(rows) // 2]
            after = sorted(compensated / bare - 1 for _, bare, _, compensated, _ in rows)[len(rows) // 2]
            share = f"{inside} ({inside / len(rows):.0%})"
            wide = sorted(error / bare for _, bare, _, _, error in rows)[len(rows) // 2]
            yield f"| {version} {engine} | {len(rows)} | {share} | ±{wide:.0%} | {before:+.0%} | {after:+.0%} |"


def others(folder):
    yield "| | programs | recorded, median | compensated, median | nine of ten within |"
    yield "|---|---:|---:|---:|---:|"
    for version in VERSIONS:
        read = load(folder, "others", version)
        for engine in ENGINES:
            found = [each for key, each in read.items() if key.startswith(engine)]
            if not found:
                continue
            before = sorted(each["recorded"] / each["bare"] - 1 for each in found)[len(found) // 2]
            after = sorted(each["compensated"] / each["bare"] - 1 for each in found)
            within = sorted(map(abs, after))[len(found) * 9 // 10]
            yield f"| {version} {engine} | {len(found)} | {before:+.0%} | {after[len(found) // 2]:+.0%} | {within:.0%} |"


def compared(folder, version):
    """Rows: the program, then multiples of the bare run: compensated, recorded by vestige, cProfile, VizTracer."""
    other = load(folder, "peers", version)
    for key, found in load(folder, "totals", version).items():
        engine, name = key.split()
        if engine != "turbo" or not other:
            continue
        of = [other.get(f"{peer} {name}") for peer in ("cProfile", "VizTracer")]
        cells = [found["compensated"], found["recorded"], *(each and each["recorded"] for each in of)]
        yield name, *(cell and cell / found["bare"] for cell in cells)


def peers(folder):
    for version in VERSIONS:
        rows = list(compared(folder, version))
        if not rows:
            continue
        yield f"| {version}, beyond the bare run | vestige | compensated | cProfile | VizTracer |"
        yield "|---|---:|---:|---:|---:|"
        for name, after, before, *of in rows:
            shown = ("–" if cell is None else f"{cell - 1:+.0%}" for cell in (before, after, *of))
            yield f"| {name} | " + " | ".join(shown) + " |"
        yield ""


HEAD = """# Compensated durations

Made by `proofs/compensated.py`. CPU time on a machine of two processors that had nothing else to do: the least of a few
runs, bare and recorded in turns, in one process for each program. Of the runs in a recording the first does not count.
Every recording learns its costs anew, in about a third of a second; a program that runs for less gains little by it.

## Totals

How much longer than the bare run the recorded run took, and the compensated total of it. The aim, within 5 % for ten of
the twelve programs and within 10 % for all, is not reached: so `--compensated` is not the default.
"""

IDEAS = """
What is left is of two kinds. Hooks cost less where the same few functions are called over and over (hexiom), and more
in programs of hundreds of functions (sqlglot). And some code runs slower while it is recorded although it makes no calls:
nbody by a few percent, and with the safe engine on 3.11, where the interpreter does not specialise its instructions then,
up to three times as long. The share of that is taken of all time in Python functions; where a type in C that has no span
takes most of it (json_dumps), that is far too much.

The figures move by some percent from one measurement to the next: another of 3.12 with turbo, an hour later and beside
other work, had 6 programs within 5 % and 12 within 10 %; there hexiom was 8 % above the bare run instead of 9 % below. The
table is from before the ends of functions counted (see "Functions"), which changes the totals of seven programs by less than
0.2 %.

## How far each idea came

3.12 with turbo, on the same programs, with nothing else running. The first four are worked out from one measurement of
eleven or all of the programs with the costs that the idea gives.

| idea | within 5 % | within 10 % | furthest off |
|---|---:|---:|---|
| costs of loops of empty calls | 2 of 11 | 8 of 11 | async_tree +28 % |
| calls among other code, each run in a recording's window of its own: its start, after which the interpreter specialises anew, counts as the recorder's | 5 of 12 | 9 of 12 | async_tree +45 % |
| the same, runs in one window | 6 of 11 | 9 of 11 | async_tree +23 % |
| costs fitted to twenty other programs instead of those that are learned from | 6 of 11 | 9 of 11 | async_tree +23 % |
| the same, and more where there was more time since the last record, or since the last call of the same function, or where there are more functions (ten forms of it, fitted to the others) | 5 to 7 of 10 | 8 of 10 | async_tree +21 % |
| learned by least squares from four programs, and tasks counted: as it is | see above | | |
| the same from two or three of the four, but for the two that mostly call C functions | 7 to 8 of 12 | 9 to 11 of 12 | deltablue +22 % |
| the same from the four and the loops | 4 of 12 | 9 of 12 | async_tree +15 % |

What more than the number of calls could explain the costs was looked for once more, on all versions: costs were fitted to
the twenty programs below, and applied to one measurement of the twelve. A cell has how many of the twelve come within 5 %,
within 10 %, and how far off the furthest is.

| explained by | 3.11 turbo | 3.12 turbo | 3.13 turbo | 3.11 safe | 3.12 safe | 3.13 safe |
|---|---:|---:|---:|---:|---:|---:|
| costs as they are learned, not fitted | 9, 11, 13% | 8, 11, 11% | 10, 12, 8% | 7, 8, 42% | 6, 9, 19% | 5, 7, 18% |
| calls of each kind, tasks; with the safe engine on 3.11 also the time of Python code | 6, 12, 10% | 9, 11, 14% | 10, 11, 13% | 4, 5, 50% | 4, 9, 19% | 6, 10, 15% |
| and calls of functions that were not among the last 4 calls | 7, 11, 10% | 8, 11, 11% | 8, 12, 9% | 4, 5, 49% | 4, 10, 15% | 5, 11, 11% |
| … the last 16, of Python and C functions each | 7, 12, 9% | 8, 11, 11% | 9, 12, 9% | 3, 5, 51% | 6, 9, 14% | 7, 11, 12% |
| … the last 64 | 7, 12, 9% | 9, 11, 14% | 10, 11, 13% | 2, 4, 53% | 3, 8, 19% | 6, 8, 14% |
| … the last 256 | 6, 11, 11% | 9, 11, 17% | 10, 11, 16% | 3, 5, 50% | 4, 8, 22% | 7, 11, 20% |
| and calls of functions that were not called for 3 µs, Python and C each | 7, 12, 9% | 8, 11, 12% | 9, 12, 10% | 5, 5, 51% | 7, 9, 12% | 7, 10, 14% |
| and calls that do not follow the last two as they did before | 8, 11, 11% | 9, 11, 14% | 8, 11, 13% | 4, 5, 50% | 1, 8, 18% | 6, 10, 15% |
| and how functions are called: by an instruction CALL, resumed or as a special method, to make an object | 9, 11, 12% | 7, 11, 14% | 7, 11, 12% | 4, 6, 44% | 4, 7, 22% | 5, 8, 33% |
| and the time of Python code | 6, 10, 14% | 8, 11, 11% | 10, 12, 7% | see above | 4, 9, 23% | 5, 9, 19% |

Nothing of it is better than the costs as they are learned for all versions with turbo. How long ago a function was called
last helps the safe engine a little on 3.12 and 3.13, by less than what a second measurement changes. How functions are
called explains the twenty (11 of them within 5 % on 3.12 with the safe engine, instead of 7) and not the twelve. Even in loops
of one function the cost of a call differs by a third (3.12 with turbo, 27 to 38 ns), by what the function is and how it
returns, which a trace does not tell. What the safe engine costs on 3.11 is in proportion to the instructions that run. Time
in a C type that has no span cannot be told from them, and nothing that was tried separates the two.

Not landed either: hooks that at random stretches do their work twice, so that the slowdown tells what they cost in the
program itself. On a busy machine it came no nearer, and was not measured on one with nothing else to do.

A new task takes the recorder as long as some twenty calls (12 to 32, by version and engine), since its name is asked for. A
function's first call takes about a microsecond more than the others, which is not compensated, and not counted above.
"""

OTHERS = """
## Other programs

Twenty programs more (`proofs/compensated_others.py`). On them it was tried what explains the costs, and how wide the error
bars must be; the costs were not fitted to the twelve above or the functions below. One number is less sure: that the time of
Python's own code may differ by 3 % comes from two programs without calls, but was settled when the functions had been seen.
"""

FUNCTIONS = """
## Functions

Functions of the standard library, each also run bare by itself, in a loop; bare and recorded runs take turns. The median
of a function's recorded calls is compared. From the bare run is taken off what the clock takes and passing the arguments,
but for what a plain call does, by calling a function that takes the same arguments and does nothing. The aim, 90 % of
the error bars, is reached. Bars are given in the share of the duration. The machine had other work meanwhile, as it had when
cProfile and VizTracer were measured.

The exit of a Python function is recorded before the interpreter frees the function's variables, so spans lack up to 70 ns of
what the call takes. That was found on the functions whose bars did not hold. How much it is, is not fitted to them: the
learner measures the most of it with four functions of its own, and half of that is added to a span, with an error of as
much. Without it 85, 89 and 87 % of the bars hold with turbo on 3.11, 3.12 and 3.13, at ±16 to ±17 %. Functions that make
code at every call (`dataclasses.make_dataclass`, `gettext.c2py`) still take longer than the bars say: every new code object
has to be introduced.
"""

PEERS = """
## Beside other profilers

What each shows of a run is what the run took: cProfile and VizTracer do not compensate.
"""


def write(folder, path, figure):
    lines = [HEAD, *totals(folder), IDEAS, OTHERS, *others(folder), FUNCTIONS, *functions(folder)]
    beside = list(peers(folder))
    if beside:
        lines += [PEERS, *beside]
    with open(path, "w") as file:
        file.write("\n".join(lines).rstrip() + "\n")
    rows = list(compared(folder, "3.12"))
    if rows:
        with open(figure, "w") as file:
            file.write(compensated_figure.draw(rows, "3.12"))
