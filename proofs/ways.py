"""Runs a test suite bare and traced, and compares the outcome of every test.

A suite is a list of names and a way to run one of them, by a program that writes [test, outcome, why] in lines of JSON.
It runs in ways: "bare"; "safe" and "turbo", under `vestige run` with that engine; and "setprofile", under a profile
function that does nothing, to show the effects of any profiler. Outcomes are kept in build/proofs, under the version of
the interpreter, the way, and a hash of the files that ran: an interrupted proof continues where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from started import ending, started, text_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
INSIDE = HERE / "inside"
KEPT = ROOT / "build" / "proofs"
ENGINES = ("safe", "turbo")
TIMEOUT = 300.0  # seconds for one name; a traced run gets three times as long
TIMED_OUT = "timeout"
RUNS = 3  # runs in each way, where two ways differ
END, TRACE, HOOKS = "(the end)", "(the trace)", "(the hooks)"  # compared like tests


@dataclass
class Run:
    """The outcomes of one run of one name: by test, and for END, TRACE and HOOKS."""

    outcomes: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    output: str = ""
    arguments: str = ""  # vestige's command line; another name of the trace would be another run


@dataclass
class Python:
    """An interpreter with vestige installed in it."""

    version: str  # 3.11
    path: str

    def __post_init__(self) -> None:
        code = """
import sys, vestige._core as core
trouble = core.engine_choices()
print(sys.version.split()[0] + "t" * ("t" in sys.abiflags), core.__file__)
print(*(engine for engine in core.engines if trouble[engine] is None))
"""
        words = subprocess.run([self.path, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        self.full, core, self.safe, *others = words
        self.engines = ("safe", *others)  # the engines that record there
        self.has_gil = not self.full.endswith("t")
        files = [Path(core), *sorted(Path(core).parent.rglob("*.py"))]
        self.build = digest(files)

    @classmethod
    def find(cls, version: str) -> Python:
        path = ROOT / ".venv" / version / "bin" / "python"
        if not path.exists():
            sys.exit(f"vestige is not installed for Python {version}: make develop PY={version}")
        return cls(version, str(path))


def digest(files: list[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        total.update(file.read_bytes())
    return total.hexdigest()[:12]


def supported(which: str = "--all") -> list[str]:
    """Returns the installed versions; "--free-threaded": those without the GIL."""
    words = subprocess.run([ROOT / "scripts" / "find_python.sh", which], capture_output=True, text=True, check=True)
    return words.stdout.split()


Program = Callable[[str, Path], list[object]]


class Suite:
    """Runs names in ways. `program` returns the words after `python` that run a name and write outcomes to a file;
    `files` are the program's files. For engines that are not to run now, the last outcomes are used.
    """

    engines: Sequence[str] = ENGINES  # the engines to run

    def __init__(self, name: str, python: Python, program: Program, files: list[Path], kept: Path = KEPT) -> None:
        self.python = python
        self._program = program
        self._kept = kept / name / python.full
        self._bare_key = digest(files)
        self._traced_key = digest([*files, INSIDE / "traced.py", INSIDE / "hooks.py"])

    def run(self, name: str, way: str, number: int = 0) -> Run | None:
        """Returns the stored outcome, otherwise a run's; None if there is no stored outcome and the way is not to run."""
        kept = self._kept / f"{way}-{self._key(way)}" / f"{name}.{number}.json"
        if not kept.exists() and way in ENGINES and way not in self.engines:
            older = list(self._kept.glob(f"{way}-*/{name}.{number}.json"))
            if not older:
                return None
            kept = max(older, key=os.path.getmtime)
        arguments = " ".join(map(str, self._program(name, Path("outcomes"))[1:]))
        if kept.exists():
            run = Run(**json.loads(kept.read_text()))
            if run.arguments in ("", arguments):
                return run
        # Not below the project, because the path of a socket may have only a hundred characters.
        with tempfile.TemporaryDirectory(prefix="proof-", ignore_cleanup_errors=True) as work:
            run = self._run(name, way, Path(work))
        run.arguments = arguments
        if run.outcomes[END] != TIMED_OUT:  # perhaps the machine's fault: not kept, so that the next run tries again
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(asdict(run), indent=0))
        return run

    def _key(self, way: str) -> str:
        return f"{self.python.build}-{self._traced_key}" if way in ENGINES else self._bare_key

    def _run(self, name: str, way: str, work: Path) -> Run:
        outcomes, hooked, trace, place = (work / part for part in ("outcomes", "hooked", "t.vst", "place"))
        place.mkdir()
        words = [str(word) for word in self._program(name, outcomes)]
        if way in ENGINES:
            engine = self.python.safe if way == "safe" else way
            words = [str(INSIDE / "traced.py"), str(hooked), "run", "-q", "-o", str(trace), "--engine", engine, *words]
        variables = {**os.environ, "PYTHONHASHSEED": "0", "TMPDIR": str(place), "LC_ALL": "C.UTF-8"}
        for variable in [v for v in variables if v.startswith("PYTHON") and v != "PYTHONHASHSEED"]:
            del variables[variable]
        if way == "setprofile":
            variables["PROOF_SETPROFILE"] = "1"
        end, output = execute([self.python.path, *words], place, variables, TIMEOUT * (3 if way != "bare" else 1))

        run = Run(output=output[-20_000:])
        if outcomes.exists():
            for line in outcomes.read_text().splitlines():
                test, outcome, why = json.loads(line)
                run.outcomes[test] = outcome
                if outcome != "ok":
                    run.why[test] = why
        run.outcomes[END] = end
        if way in ENGINES:
            run.outcomes[TRACE], run.why[TRACE] = self._look_at_trace(trace, engine)
            run.outcomes[HOOKS], run.why[HOOKS] = look_at_hooks(hooked)
        return run

    def _look_at_trace(self, trace: Path, engine: str) -> tuple[str, str]:
        """Returns whether `vestige info` can read the trace and its children's, no record is lost, and the right engine
        recorded.
        """
        command = [self.python.path, "-m", "vestige", "info", "--json", str(trace)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            return "unreadable", result.stderr
        facts = json.loads(result.stdout)
        processes = facts.get("processes", [facts])
        lost = sum(process["lost"] for process in processes)
        used = processes[0]["metadata"].get("vestige.engine")
        told = f"{len(processes)} processes, {sum(process['records'] for process in processes)} records"
        if not processes[0]["records"]:
            return "empty", told
        if lost:
            return f"{lost} records lost", told
        if used != engine:
            return f"recorded by {used}", told
        if processes[0]["ended"] != "clean":
            return f"ended {processes[0]['ended']}", told
        return "ok", told


def look_at_hooks(path: Path) -> tuple[str, str]:
    try:
        left = json.loads(path.read_text())
    except (OSError, ValueError):
        return "unknown", "the process did not come to its end"
    return ("hooked", "\n".join(left)) if left else ("ok", "")


def execute(command: list[str], place: Path, variables: dict[str, str], timeout: float) -> tuple[str, str]:
    """Returns how the process ended, and its output. All processes that it started end with it."""
    with open(place.parent / "output", "w+b") as output:
        with started(command, place, variables, output, output) as process:
            try:
                end = ending(process.wait(timeout))
            except subprocess.TimeoutExpired:
                end = TIMED_OUT
        return end, text_of(output)


# ---- comparing ----------------------------------------------------------


@dataclass
class Difference:
    name: str
    test: str
    way: str
    bare: str
    traced: str
    kind: str = ""  # "", "timed out", "unsteady", "now and then" or "every profiler"
    why: str = ""
    reason: str = ""  # the reason why the difference is known


EXPECTED = {TRACE: "ok", HOOKS: "ok"}


def compare(name: str, way: str, bare: Run, traced: Run) -> list[Difference]:
    if TIMED_OUT in (bare.outcomes[END], traced.outcomes[END]):  # a test that did not run is no difference
        return [
            Difference(name, END, way, bare.outcomes[END], traced.outcomes[END], "timed out", traced.output[-3000:])
        ]
    wanted = {**bare.outcomes, **EXPECTED}
    found = []
    for test in {**wanted, **traced.outcomes}:
        before, now = wanted.get(test, "not run"), traced.outcomes.get(test, "not run")
        if before != now:
            found.append(Difference(name, test, way, before, now, why=tell(test, bare, traced)))
    return found


def tell(test: str, bare: Run, traced: Run) -> str:
    if test == END:
        return traced.output[-3000:]
    return traced.why.get(test) or bare.why.get(test, "")


def judge(suite: Suite, difference: Difference) -> None:
    """Runs both ways again to see whether each gives equal outcomes every time, and also runs the profile function that
    does nothing.
    """
    test = difference.test

    def outcomes(way: str, runs: int) -> set[str]:
        all_runs = (suite.run(difference.name, way, number) for number in range(runs))
        ended = [run for run in all_runs if run is not None and run.outcomes[END] != TIMED_OUT]
        return {run.outcomes.get(test, EXPECTED.get(test, "not run")) for run in ended}

    if difference.kind:
        return
    bare = outcomes("bare", RUNS)
    if len(bare) > 1:
        difference.kind = "unsteady"
    elif test not in (TRACE, HOOKS) and outcomes("setprofile", 1) != bare:
        difference.kind = "every profiler"
    elif len(outcomes(difference.way, RUNS)) > 1:
        difference.kind = "now and then"


def prove(suite: Suite, names: list[str], jobs: int) -> list[Difference]:
    """Runs everything that has not run yet, and returns all differences."""
    found: list[Difference] = []
    lock = threading.Lock()
    done = 0

    def one(name: str) -> None:
        nonlocal done
        bare = suite.run(name, "bare")
        runs = {way: suite.run(name, way) for way in ENGINES}
        mine = [d for way, run in runs.items() if run is not None for d in compare(name, way, bare, run)]
        for difference in mine:
            judge(suite, difference)
        with lock:
            found.extend(mine)
            done += 1
            tests = sum(counts(bare).values())
            said = f"{len(mine)} differ" if mine else "the same"
            print(f"{suite.python.version} {done}/{len(names)} {name}: {tests} tests, {said}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, names))
    return sorted(found, key=lambda d: (names.index(d.name), d.test, d.way))


# ---- what is known ------------------------------------------------------


def explain(differences: list[Difference], known: Path, version: str) -> list[Difference]:
    """Gives each difference its reason from the file of known ones; returns the differences without a reason."""
    from fnmatch import fnmatchcase

    entries = []
    for line in known.read_text().splitlines():
        if line and not line.startswith("#"):
            versions, way, name, test, reason = line.split(maxsplit=4)
            entries.append((versions.split(","), way, name, test, reason))
    for difference in differences:
        for versions, way, name, test, reason in entries:
            if (
                version in versions
                and way in ("*", difference.way)
                and fnmatchcase(difference.name, name)
                and fnmatchcase(difference.test.replace(" ", "_"), test)
            ):
                difference.reason = reason
                break
    for difference in differences:
        if difference.test == END and difference.bare.startswith("exit") and difference.traced.startswith("exit"):
            same = [d for d in differences if (d.name, d.way) == (difference.name, difference.way) and d.test != END]
            if same and all(d.reason or d.kind == "unsteady" for d in same):
                difference.reason = "The failed test causes it."
    return [d for d in differences if not d.reason and d.kind != "unsteady"]


def counts(run: Run) -> dict[str, int]:
    """Counts the tests by outcome; a test with different subtests counts as the worst of them."""
    total = {"ok": 0, "skip": 0, "fail": 0}
    for test, outcome in run.outcomes.items():
        if test in (END, TRACE, HOOKS):
            continue
        bad = any(word in outcome for word in ("fail", "error", "unexpected")) and outcome != "expected failure"
        total["fail" if bad else "skip" if "skip" in outcome else "ok"] += 1
    return total
