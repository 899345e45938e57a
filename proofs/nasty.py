"""Generated nasty programs, bare and recorded: each must print the same.

    python proofs/nasty.py                       # all, on every Python here: some minutes
    python proofs/nasty.py --python 3.12 --programs 20

tests/python/nasty_programs.py makes the programs. A difference is known if KNOWN has it, with the reason.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
import nasty_programs

RESULTS = Path(__file__).parent / "results" / "nasty.md"
WORK = ROOT / "build" / "proofs" / "nasty"
ENGINES = ("turbo", "safe")
Values = dict[str, list[str]]
Pair = tuple[list[str], list[str]]
Differences = dict[str, Pair]

HEAD = """\
# Nasty programs, bare and recorded

150 generated programs (`tests/python/nasty_programs.py`) look at frames, tracebacks, reference counts, weak references,
destructors, what the collector and tracemalloc count, how deep a recursion through each slot and many C functions goes,
and what they see with `sys.setprofile`, `sys.settrace` and `sys.monitoring` hooks of their own. Each runs bare and under
`vestige run` with both engines. What it prints, its errors and how it ends are compared. `make check NAME=nasty` makes this
page.

"""


class Known:
    """A known difference: the lines that differ, the engine, the Pythons, and the reason. With `event`, only a line
    that this pattern removes from one of the two outputs.
    """

    def __init__(self, pattern: str, engine: str, pythons: Iterable[str], reason: str, event: str = "") -> None:
        self.pattern, self.engine, self.pythons, self.reason = pattern, engine, set(pythons), reason
        self.event = event

    def holds(self, name: str, engine: str, python: str, pair: Pair) -> bool:
        if engine != self.engine or python not in self.pythons or not fnmatchcase(name, self.pattern):
            return False
        without = [[re.sub(self.event, "", line, count=1) for line in lines] for lines in pair] if self.event else pair
        return not self.event or without[0] == pair[1] or without[1] == pair[0]


ALL = ("3.11", "3.12", "3.13", "3.14", "3.15")
MONITORED = ALL[1:]

BEGINS = (
    "An automatic collection begins a few objects earlier or later. While `gc.callbacks` has an entry the interpreter "
    "makes objects for it, and later takes others from its free lists. What an automatic collection has freed, "
    "`gc.collect()` does not find."
)
CALLBACKS = "`gc.callbacks` has one more entry, which records collections; there is none with `--no-gc`."
TABLES = (
    "tracemalloc counts the tables that `sys.monitoring` keeps of each function that is watched, as allocated in the "
    "function's first line."
)
FRAME_OBJECTS = "tracemalloc counts the frame objects that the interpreter makes for a profile function."
SUBSCRIPT = (
    "`d[key]` with a `__getitem__` in Python: once the interpreter has specialized it, it enters the function in its "
    "loop. It does not with an evaluation hook or a profile function. The caller then keeps `d` and `key` until the "
    "function returns, and its `f_lasti` is 8 less."
)
PRECALL = (
    "`f_lasti` and `tb_lasti` of a frame that called C are 4 more: with a profile function the interpreter does not "
    "specialize calls, and a specialized call is made from the instruction before."
)
AS_CPROFILE = (
    "A C function that calls Python takes one level more of the recursion limit: the interpreter specializes its call "
    "only where nobody watches, and a specialized call takes no level. The depth is the one that cProfile leaves, too."
)
LEN_GIVES = (
    "`len` takes no level of the recursion limit anywhere. Bare, it takes one in code that is not specialized yet, "
    "which is up to eight times."
)
INIT_IS_CALLED = (
    "A class that is called takes one level less: bare, the interpreter specializes the call and then enters "
    "`__init__` from a frame of its own, which counts."
)
INIT_LATER = "A class that is called is specialized one call earlier or later, see the line above."
SET_EVENTS = (
    "A tool of the program's own that starts to watch calls of C sees `sys.monitoring.set_events` itself return: the "
    "interpreter reports the return since we watch the call."
)
STAYS = (
    "Bare, calls sometimes stay watched after a profile function is gone (on 3.12 after `sys.setprofile(None)`, later "
    "after a thread that ended with one), and the interpreter then reports the return of the next `sys.setprofile`. We "
    "keep that event from the program."
)
REFERENTS = (
    "`gc.get_referents` of a generator that runs: with an evaluation hook the interpreter does not say how far its "
    "stack goes, so its variables are not among them; with a profile function its frame object is."
)
STAR = (
    "`f(*args)` is not entered in the interpreter's loop while calls of C are watched: the tuple of arguments lives "
    "until the call returns."
)

DEEP_BOTH = ["__len__", "__iter__", "__next__", "__str__", "__format__", "__getattr__ by getattr", "__setattr__"]
DEEP_BOTH += ["__round__", "__divmod__", "__pow__", "sorted", "cmp_to_key", "iter with sentinel", "sum", "isinstance"]


def deep(names: list[str], engine: str, pythons: tuple[str, ...], reason: str) -> list[Known]:
    return [Known(f"depth, {name}, *", engine, pythons, reason) for name in names]


KNOWN = [
    *[Known("collector callbacks", engine, ALL, CALLBACKS) for engine in ENGINES],
    *[Known("collector counts, *", engine, ALL, BEGINS) for engine in ENGINES],
    *[Known("collector young", engine, ALL, BEGINS) for engine in ENGINES],
    *[Known("tracemalloc*", engine, MONITORED, TABLES) for engine in ENGINES],
    Known("tracemalloc*", "safe", ["3.11"], FRAME_OBJECTS),
    *[Known("*, subscript", engine, ["3.11"], SUBSCRIPT) for engine in ENGINES],
    *[Known(name, "safe", ["3.11"], PRECALL) for name in ("*, from C, *", "*, sent", "generator", "generator thrown")],
    *deep([*DEEP_BOTH, "exec", "eval", "re.sub"], "safe", ("3.11",), AS_CPROFILE),
    *deep([*DEEP_BOTH, "__dir__"], "safe", ("3.12",), AS_CPROFILE),
    *deep(["__len__"], "turbo", ("3.11", "3.12"), LEN_GIVES),
    *deep(["__init__"], "safe", MONITORED[1:], INIT_IS_CALLED),
    *deep(["__init__"], "turbo", MONITORED[1:], INIT_LATER),
    Known("monitoring, *", "safe", MONITORED, SET_EVENTS, r"\('C_RETURN', 'all_of_it', \d+, 'set_events', 2\), "),
    Known("setprofile, *", "safe", MONITORED, STAYS, r"\('c_return', 'all_of_it', 'setprofile'\), "),
    *[Known("running generator, *", engine, ["3.11"], REFERENTS) for engine in ENGINES],
    *[Known(name, "safe", MONITORED[1:], STAR) for name in ("*, by [*]", "*, through [*]")],
]


def run(command: Sequence[str | Path], folder: Path) -> tuple[int, Values]:
    """Returns how a program ends, and its output by name; its errors have a name, too."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)
    found: Values = defaultdict(list)
    for line in done.stdout.splitlines():
        name, _, value = line.partition(": ")
        found[name].append(value)
    found["stderr"] = done.stderr.splitlines()
    found["exit code"] = [str(done.returncode)]
    return done.returncode, found


def differences(python: Path, engine: str, seed: int, folder: Path) -> tuple[int, Differences]:
    """Returns how many lines were compared, and {name: difference}. Lines that differ between bare runs are not
    compared.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "program.py"
    path.write_text(nasty_programs.program(seed))
    recording: list[str | Path] = ["-m", "vestige", "run", "-q", "--force", "-o", folder / "t.vst", "--engine", engine]
    _, bare = run([python, path], folder)
    _, recorded = run([python, *recording, path], folder)
    names = [name for name in {**bare, **recorded} if bare.get(name) != recorded.get(name)]
    if names:
        again = [run([python, path], folder)[1] for _ in range(2)]
        names = [name for name in names if all(other.get(name) == bare.get(name) for other in again)]
    return sum(map(len, bare.values())), {name: (bare.get(name, []), recorded.get(name, [])) for name in names}


def all_differences(python: Path, engine: str, seeds: range, version: str) -> list[tuple[int, Differences]]:
    def one(seed: int) -> tuple[int, Differences]:
        return differences(python, engine, seed, WORK / version / str(seed))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, seeds))


def reason_of(name: str, engine: str, python: str, pair: Pair) -> str | None:
    for known in KNOWN:
        if known.holds(name, engine, python, pair):
            return known.reason
    return None


def first_unlike(pair: Pair) -> str:
    for bare, recorded in zip(*pair, strict=False):
        if bare != recorded:
            return f"{bare} bare, {recorded} recorded"
    return f"{len(pair[0])} lines bare, {len(pair[1])} recorded"


def pythons() -> list[str]:
    command: list[str | Path] = [ROOT / "scripts" / "find_python.sh", "--all"]
    found: str = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return found.split()


def main() -> int:
    parser = argparse.ArgumentParser(description="Generated nasty programs, bare and recorded.")
    parser.add_argument("--python", action="append", metavar="3.12", help="only this version (may be repeated)")
    parser.add_argument("--programs", type=int, default=len(nasty_programs.SEEDS), metavar="N")
    options = parser.parse_args()
    rows, unknown = [], []
    known: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for version in options.python or pythons():
        python = ROOT / ".venv" / version / "bin" / "python"
        full = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
        for engine in ENGINES:
            compared, with_known, with_unknown = 0, 0, 0
            seeds = nasty_programs.SEEDS[: options.programs]
            for seed, (lines, found) in zip(seeds, all_differences(python, engine, seeds, version), strict=True):
                compared += lines
                reasons = {name: reason_of(name, engine, version, pair) for name, pair in found.items()}
                for name, reason in reasons.items():
                    if reason is None:
                        unknown.append(f"{version} {engine}, program {seed}, {name}: {first_unlike(found[name])}")
                    else:
                        known[reason].setdefault(f"{version} `{engine}`: {name}", []).append(first_unlike(found[name]))
                with_unknown += None in reasons.values()
                with_known += any(reasons.values())
            row = f"| {full} | `{engine}` | {options.programs} | {compared:,} | {with_known or 'none'} | {with_unknown or 'none'} |"
            rows.append(row)
            print(row, flush=True)
    print("\n".join(unknown))
    if not options.python and options.programs == len(nasty_programs.SEEDS):
        write(rows, known, unknown)
    return 1 if unknown else 0


def write(rows: list[str], known: dict[str, dict[str, list[str]]], unknown: list[str]) -> None:
    text = HEAD + "| Python | engine | programs | lines compared | programs with a known difference | with another |\n"
    text += "|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n## Every known difference\n"
    for reason, where in known.items():
        text += f"\n{reason}\n\n" + "".join(f"- {name}: {examples[0]}\n" for name, examples in sorted(where.items()))
    if unknown:
        text += "\n## Differences without a reason\n\n" + "".join(f"- {line}\n" for line in unknown)
    RESULTS.write_text(text + f"\n{platform.system()} on {platform.machine()}.\n")


if __name__ == "__main__":
    sys.exit(main())
