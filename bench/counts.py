#!/usr/bin/env python3
"""Counts instructions by callgrind, and fails if a count is more than 3 % above the committed figure.

    python bench/counts.py PYTHON               beside bench/counts.json
    python bench/counts.py PYTHON --against OLD beside another Python with vestige, say the one before a change
    python bench/counts.py PYTHON --write       writes the figures of this environment into bench/counts.json; with
                                                --parts, only these

Each Python has vestige installed. instructions.py defines what is counted; this file runs the parts that are
repeatable: the record path with its hooks, starts, and reading and exporting the traces of count_traces.py.

The surroundings do not matter. A copy of the package and its runner are in a separate folder, which the process always
knows as /proc/self/cwd. The interpreter starts without site, so it sees no other package and no .pth file; the hash
seed is fixed, the caller's environment variables are removed, and valgrind lays out the addresses. With even_malloc.c,
an allocation always takes the same number of instructions. With the C library's malloc, other packages alone changed
the count of reading by up to 4 %.

Counts do not depend on the machine's load, but on the compiler, the interpreter, the C library, and on the processor,
for which libraries choose functions. So figures belong to an environment, which counts.json names. In another
environment nothing is compared, and one line says why; `make bench-counts BASE=main` builds the commit to compare with
on the same machine, which works anywhere.
"""

import argparse
import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import count_traces
from instructions import count, figures, make_marks, run_alone

FIGURES = Path(__file__).with_name("counts.json")
ALLOWED = 0.03
LEAST = 3  # instructions: smaller changes are not caused by vestige
PARTS = ["turbo", "safe", "start", "reading"]
HERE = "/proc/self/cwd"
START = f"import sys; sys.path[0] = {HERE!r}; "
# Allocate everything with malloc: the interpreter's own allocator takes 15 instructions more when a call frees the last
# block of a pool.
VARIABLES = {"LD_PRELOAD": "./marks.so", "PYTHONMALLOC": "malloc"}
OPTIONS = ("buildtype", "optimization", "b_lto", "b_ndebug", "c_args", "c_link_args")
FACTS = """
import ctypes, json, os, platform
from vestige import _core
text = ctypes.create_string_buffer(500)
ctypes.CDLL(os.environ["CALLGRIND_MARKS"]).mark_processor(text, 500)
files = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if " r-xp " in line and "/" in line}
python = f"{platform.python_version()}, {platform.python_compiler()}"
print(json.dumps({"python": python, "processor": text.value.decode(), "files": sorted(files)}))
"""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def digest(data):
    return hashlib.sha256(data).hexdigest()[:12]


def build_options(python):
    """Finds how the vestige of .venv/3.12/bin/python was built: by build/3.12 of the same clone."""
    venv = Path(python).parent.parent
    path = venv.parent.parent / "build" / venv.name / "meson-info" / "intro-buildoptions.json"
    if not path.exists():
        return "unknown"
    values = {option["name"]: option["value"] for option in json.loads(path.read_text())}
    return ", ".join(f"{name} {values.get(name)}" for name in OPTIONS if values.get(name))


class Counted:
    """Copies the vestige of a Python to a folder where it can be counted."""

    def __init__(self, python, folder):
        self._python, self._folder = python, folder
        code = "import sys, vestige; print(vestige.__path__[0], getattr(sys, '_base_executable', sys.executable), sep='\\n')"
        package, interpreter = run(python, "-c", code).splitlines()
        # Without site, the interpreter finds only its own modules; without a user folder, not the user's either.
        self._start = [interpreter, "-S", "-s", "-c"]
        make_marks(folder, "even_malloc.c")
        for script in ("instructions.py", "workloads.py"):
            shutil.copy(Path(__file__).with_name(script), folder)
        left_out = shutil.ignore_patterns("__pycache__", "prebuilt")
        shutil.copytree(package, folder / "vestige", ignore=left_out)
        if (libraries := Path(package).with_name("vestige.libs")).exists():
            shutil.copytree(libraries, folder / "vestige.libs")
        count_traces.write(folder)
        compiling = "import compileall; compileall.compile_dir('.', quiet=2)"
        subprocess.run([*self._start, compiling], cwd=folder, check=True)

    def environment(self):
        """Returns {name: version} of everything that the figures depend on besides vestige."""
        done = run_alone(["valgrind", "--tool=none", "-q", *self._start, START + FACTS], self._folder, **VARIABLES)
        if done.returncode:
            raise OSError(f"valgrind does not run this Python: {done.stderr.strip().splitlines()[-1:]}")
        facts = json.loads(done.stdout)
        found = {
            "python": facts["python"],
            "compiler": run("cc", "--version").partition("\n")[0],
            "options": build_options(self._python),
            "valgrind": run("valgrind", "--version"),
            "processor": digest(facts["processor"].encode()),
        }
        for path in map(Path, facts["files"]):
            if not path.is_relative_to(self._folder) and path.parent.name not in ("valgrind", "lib-dynload"):
                found[path.name] = digest(path.read_bytes())
        return found

    def measure(self, parts):
        """Returns {part: {row: instructions}}."""
        command = [*self._start, START + "import instructions; instructions.main()"]
        return {part: figures(part, count(command, part, self._folder, **VARIABLES)) for part in parts}


@contextlib.contextmanager
def prepared(python):
    with tempfile.TemporaryDirectory(prefix="vestige-counts-") as name:
        yield Counted(python, Path(name).resolve())


def least(one, other):
    return {part: {row: min(value, other[part][row]) for row, value in rows.items()} for part, rows in one.items()}


def known_figures():
    """A list of {"environment": …, "instructions": …}."""
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else []


def write(here, now):
    rounded = {part: {row: round(value, 1) for row, value in rows.items()} for part, rows in now.items()}
    others = [each for each in known_figures() if each["environment"] != here]
    before = [each["instructions"] for each in known_figures() if each["environment"] == here]
    figures_now = {**(before[0] if before else {}), **rounded}
    FIGURES.write_text(json.dumps([*others, {"environment": here, "instructions": figures_now}], indent=1) + "\n")


def compare(now, before):
    """Returns rows (part, name, before, now, change); leaves out a row that only one of them has."""
    for part, rows in now.items():
        for name, value in rows.items():
            old = before.get(part, {}).get(name)
            if old:
                yield part, name, old, value, value / old - 1


def show(rows):
    """Prints the rows, and returns the names of those that fail."""
    print("| | before | now | change |\n|---|---:|---:|---:|")
    worse = []
    for part, name, old, new, change in rows:
        mark = ""
        if change > ALLOWED and new - old > LEAST:
            worse.append(f"{part}, {name}: {100 * change:+.1f} %")
            mark = " **more**"
        print(f"| {part}, {name} | {old:,.1f} | {new:,.1f} | {100 * change:+.1f} %{mark} |")
    return worse


def difference(here, known):
    """Returns the differences from the most similar environment of counts.json."""
    if not known:
        return "counts.json has no figures"
    nearest = max(known, key=lambda each: len(here.items() & each["environment"].items()))["environment"]
    names = [name for name in {**nearest, **here} if here.get(name) != nearest.get(name)]
    differ = [f"{name} ({nearest.get(name, 'none')} there, {here.get(name, 'none')} here)" for name in names]
    return f"counts.json is of another environment: {', '.join(differ)}"


def check(counted, against, parts):
    """Compares, and returns the exit code."""
    known = []
    try:
        here = counted.environment()
        known = [each["instructions"] for each in known_figures() if each["environment"] == here]
        reason = difference(here, known_figures())
    except OSError as error:
        reason = str(error)
    if not known and against is None:
        print(f"SKIPPED [1] bench/counts.py:1: instructions were not compared: {reason}")
        return 0
    now = counted.measure(parts)
    before = against.measure(parts) if against else known[0]
    if any(change > ALLOWED for *_, change in compare(now, before)):
        now = least(now, counted.measure(parts))
    rows = list(compare(now, before))
    worse = show(rows)
    for line in worse:
        print(f"# more instructions: {line}")
    if worse and not against:
        print("# if they are worth it: `make bench-counts ARGS=--write` writes the figures anew, which are committed")
    print(f"{len(rows) - len(worse)} checks passed, {len(worse)} failed")
    return 1 if worse else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("python", metavar="PYTHON")
    parser.add_argument("--against", metavar="OLD", help="a Python with the vestige to compare with")
    parser.add_argument("--write", action="store_true", help="write the figures of this environment into counts.json")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        counted = stack.enter_context(prepared(options.python))
        if options.write:
            write(counted.environment(), counted.measure(options.parts))
            return 0
        against = stack.enter_context(prepared(options.against)) if options.against else None
        return check(counted, against, options.parts)


if __name__ == "__main__":
    sys.exit(main())
