"""A fact has equal numbers in every place where it can be read: report (text, JSON, CSV), diff, MCP, notebook,
findings, `Trace`, sums that grow, tables as Arrow, Parquet and SQL, exported files.

FACTS lists for each fact how each reader is asked. An answer is a dict. Readers for people round their numbers, so
their answers are compared with the first reader's answer, rounded in the same way.
"""

import csv
import gzip
import io
import json
import pstats
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import vestige
from arrow_reader import rows_of
from conftest import COMMAND
from handmade_devices import COPY, OPERATOR, Work, device
from in_process import vestige as command
from vestige._core import Growing, Lanes, Trace
from vestige.base.quantities import duration
from vestige.cli.mcp import calls as mcp
from vestige.cli.mcp.folder import Folder
from vestige.cli.report import data
from vestige.reading import overview
from vestige.reading.kinds import ANNOTATION

pytestmark = pytest.mark.any_python

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "traces"
TRACES = (
    "plain.vst",
    "threads.vst",
    "windows.vst",
    "bounded.vst.gz",
    "operators.vst",
    "sched.vst",
    "short.vst",
    "cut.vst",
)
ASYNC, RECURSIVE, RESUMED = 64, 128, 16  # flags of a span
ALL = ("--no-children", "--all")
REASONS = ("lock", "io", "sleep", "child")
PROGRAM = """\
import asyncio, gc, threading, time

def work(count):
    return sum(leaf(number) for number in range(count))

def leaf(number):
    if number % 7 == 3:
        try:
            raise ValueError(number)
        except ValueError:
            pass
    return number

def recursive(depth):
    return recursive(depth - 1) if depth else work(20)

async def blocking():
    time.sleep(0.06)

async def child(number):
    await asyncio.sleep(0.001)
    work(10)

async def main():
    await asyncio.gather(*(child(number) for number in range(5)), blocking())

def other():
    with lock:
        work(30)

lock = threading.Lock()
with lock:
    thread = threading.Thread(target=other, name="other")
    thread.start()
    work(50)
    time.sleep(0.01)
thread.join()
recursive(5)
gc.collect()
asyncio.run(main())
"""


class Place:
    """A trace that each reader reads once."""

    def __init__(self, path, profile=None):
        self.path = path
        self.profile = profile
        self.trace = Trace(str(path))
        self.names = [function and data.shown_name(function) for function in self.trace.functions()]
        self._answers = {}

    def report(self, *options):
        return self._once(options, lambda: json.loads(self._say("report", *options, "--format", "json")))

    def report_csv(self, *options):
        return list(csv.DictReader(io.StringIO(self._say("report", *options, "--format", "csv"))))

    def _say(self, *words):
        said = command(words[0], str(self.path), *words[1:])
        assert said.code in (None, 0), said.err
        return said.out

    def table(self, name):
        """Returns the rows of a table."""

        def read():
            with vestige.open(str(self.path)) as traces:
                return rows_of(traces.tables[name])

        return self._once(("table", name), read)

    def tables(self, name):
        return self._once(("tables", name), lambda: self.trace.tables([name], marks=self._marks())[name])

    def _marks(self):
        collects = {
            number for number, function in enumerate(self.trace.functions()) if function and function[0] == data.GC
        }
        return bytes(data.COLLECTS if number in collects else 0 for number in range(len(self.names)))

    def _once(self, key, read):
        if key not in self._answers:
            self._answers[key] = read()
        return self._answers[key]


# ---- functions: name -> calls, self, total ----------------------------------


def as_shown(name):
    """Returns a function's name as reports show it; torch's form, `path(line): name`, is that of programs."""
    return re.sub(r"^([^ ].*)\((\d+)\): ", r"\1:\2: ", name) if isinstance(name, str) else name


def added(rows):
    """Adds up rows with the same name."""
    sums = {}
    for name, *values in rows:
        name = as_shown(name)
        before = sums.get(name, (0,) * len(values))
        sums[name] = tuple(a + b for a, b in zip(before, values, strict=True))
    return sums


def functions_in_growing(place):
    rows = Growing(str(place.path), 1 << 61).read(False)["functions"]
    return added((place.names[row.func], row.calls, row.self_ns, row.total_ns) for row in rows)


def functions_in_spans(rows):
    return added(
        (
            row["name"],
            0 if row["flags"] & RESUMED else 1,
            row["self_ns"],
            0 if row["flags"] & RECURSIVE else row["duration_ns"],
        )
        for row in rows
        if not row["flags"] & ASYNC
    )


def functions_in_diff(place):
    said = command("diff", str(place.path), str(place.path), "--format", "json")
    rows = json.loads(said.out)["functions"]
    for row in rows:
        assert row["calls_before"] == row["calls_after"] and row["self_ns_before"] == row["self_ns_after"]
    return added((row["function"], row["calls_before"], row["self_ns_before"]) for row in rows)


def own(functions):
    return {name: values[:2] for name, values in functions.items()}


def sums_of(functions):
    """Adds up all functions; files contain rounded numbers."""
    return {"calls": sum(row.calls for row in functions), "us": sum(row.self_ns for row in functions) // 1000}


def called(place, name):
    """Returns rows of a table except annotations, which may lie off the stack."""
    functions = place.trace.functions()
    return [row for row in place.tables(name) if functions[row.func] is None or functions[row.func][0] != ANNOTATION]


def functions_in_pstats(place):
    path = place.path.with_suffix(".pstats")
    place.trace.export(str(path), all_windows=True)
    annotations = {function[1] for function in place.trace.functions() if function and function[0] == ANNOTATION}
    rows = [row[1:3] for (_, _, name), row in pstats.Stats(str(path)).stats.items() if name not in annotations]
    return {"calls": sum(calls for calls, _ in rows), "us": int(sum(self for _, self in rows) * 1e6 + 1e-4)}


def functions_in_rows(place):
    rows = place.tables("functions")
    return added((place.names[row.func], row.calls, row.self_ns, row.total_ns) for row in rows)


def functions_in_json(place):
    rows = place.report(*ALL)["functions"]
    return added((row["function"], row["calls"], row["self_ns"], row["total_ns"]) for row in rows)


def functions_in_csv(place):
    rows = place.report_csv(*ALL)
    return added((row["function"], int(row["calls"]), int(row["self_ns"]), int(row["total_ns"])) for row in rows)


def functions_in_overview(shown):
    return added((row.shown, row.calls, row.self_ns, row.total_ns) for row in shown.rows)


def functions_in_notebook(place):
    return functions_in_overview(overview.of_traces([place.trace]))


def functions_in_arrow(place):
    return functions_in_spans(place.table("span"))


def functions_shown(place):
    """Returns the functions of a report for people, except functions with equal names, which have separate lines."""
    rows = [(place.names[row.func], row) for row in place.tables("functions")]
    names = Counter(name for name, _ in rows)
    return {
        name: (f"{row.calls:,}", duration(row.self_ns), duration(row.total_ns))
        for name, row in rows
        if names[name] == 1 and row.calls
    }


def found(pattern, text, place):
    """Returns lines by the name at their end. An answer of limited length may lack some."""
    lines = re.findall(pattern, text, re.MULTILINE)
    names = Counter(place.names[row.func] for row in place.tables("functions"))
    there = {line[-1]: line[:-1] for line in lines if names[line[-1]] < 2}
    assert there
    return {**functions_shown(place), **there}


def functions_in_text(place):
    text = place._say("report", *ALL, "-n", "100000")
    return found(r"^ *([\d,]+) +([\d.]+ \w+|0) +\d+% +([\d.]+ \w+|0)  (\S.*)$", text, place)


def functions_in_mcp(place):
    text = mcp.functions(Folder(str(place.path.parent)), place.path.name, "self", "", 10**7)
    pattern = r"^ *(?P<own>[\d.]+ \w+|0) +[\d.]+% +(?P<total>[\d.]+ \w+|0) +(?P<calls>[\d,]+)  (?P<name>\S.*)$"
    lines = "\n".join(
        "{calls}|{own}|{total}|{name}".format(**line.groupdict()) for line in re.finditer(pattern, text, re.MULTILINE)
    )
    return found(r"^(.*?)\|(.*?)\|(.*?)\|(.*)$", lines, place)


# ---- and others --------------------------------------------------------------


def tids(place):
    return {each["number"]: each["tid"] for each in place.trace.threads()}


def threads_in_spans(place):
    sums = Counter()
    for row in place.table("span"):
        if not row["flags"] & (ASYNC | RESUMED):
            sums[tids(place)[row["thread"]]] += 1
    return dict(sums)


def collections_in_spans(place):
    found = [row["duration_ns"] for row in place.table("span") if row["kind"] == "gc"]
    return {"count": len(found), "ns": sum(found)}


def collections_in_json(place):
    rows = place.report("--gc", *ALL)["generations"]
    return {"count": sum(row["count"] for row in rows), "ns": sum(row["time_ns"] for row in rows)}


def collections_in_callers(place):
    rows = place.report("--gc", *ALL)["began_in"]
    return {"count": sum(row["count"] for row in rows), "ns": sum(row["time_ns"] for row in rows)}


def collections_in_rows(place):
    rows = place.tables("collections")
    return {"count": sum(rows["collections"]), "ns": sum(rows["total_ns"])}


def exceptions_in_rows(place):
    return added((place.names[row.func], row.exceptions) for row in place.tables("exceptions"))


def tasks_in_table(place):
    sums = defaultdict(lambda: [0, 0, 0, 0])
    for row in place.table("task"):
        values = 1, row["steps"], row["step_ns"], row["awaiting_ns"]
        name = as_shown(row["name"])
        sums[name] = [a + b for a, b in zip(sums[name], values, strict=True)]
    return {name: tuple(values) for name, values in sums.items()}


def tasks_in_json(place):
    rows = place.report("--tasks", *ALL)["tasks"]
    return {row["function"]: (row["tasks"], row["steps"], row["running_ns"], row["awaiting_ns"]) for row in rows}


def calls_that_wait(place):
    return {
        reason: ns
        for reason, (ns,) in added((row["reason"], row["duration_ns"]) for row in place.table("wait")).items()
    }


def waits(place):
    """Returns waits without the time that the thread ran meanwhile, where this time is known."""
    rows = [row for row in place.table("wait") if row["reason"] in REASONS]
    sums = added((row["reason"], row["duration_ns" if row["waiting_ns"] is None else "waiting_ns"]) for row in rows)
    return {reason: ns for reason, (ns,) in sums.items() if ns}


def waits_of_threads(rows):
    return {reason: ns for reason in REASONS if (ns := sum(int(row[f"{reason}_ns"]) for row in rows))}


def functions_in_events(events):
    """Memory allocated in a function that calls itself counts at each open call, as in torch."""
    return added((event.key, event.count, round(event.self_cpu_time_total * 1000)) for event in events)


def activities_in_json(place):
    rows = place.report("--devices")["activities"]
    return added(((row["kind"], row["name"]), row["count"], row["time_ns"], row["bytes"]) for row in rows)


def activities_in_table(place):
    return added(
        ((row["kind"], row["name"]), 1, row["duration_ns"], row["bytes"] or 0) for row in place.table("activity")
    )


def streams_in_lanes(place):
    lanes = Lanes(place.trace, "devices").lanes()
    return {lane["stream"]: (lane["items"], lane["busy_ns"]) for lane in lanes if not lane["thread"]}


def allocations_in_json(place):
    (process,) = json.loads(place._say("memory-report", "--format", "json"))["processes"]
    return process["total"]


FUNCTIONS = {
    "the table `functions`": functions_in_rows,
    "report as JSON": functions_in_json,
    "report as CSV": functions_in_csv,
    "notebook": functions_in_notebook,
    "sums that grow": functions_in_growing,
    "Arrow": functions_in_arrow,
}
FUNCTIONS_COMPARED = {
    "the table `functions`": lambda place: own(functions_in_rows(place)),
    "diff with itself": functions_in_diff,
}
FUNCTIONS_PROFILED = {
    **FUNCTIONS_COMPARED,
    "key_averages()": lambda place: functions_in_events(place.profile.key_averages()),
    "events()": lambda place: functions_in_events(place.profile.events()),
    "notebook, of a profile": lambda place: own(functions_in_overview(overview.of_profile(place.profile))),
}
FUNCTIONS_SHOWN = {
    "the table `functions`": functions_shown,
    "report as text": functions_in_text,
    "MCP": functions_in_mcp,
}
FUNCTIONS_EXPORTED = {
    "the table `functions`": lambda place: sums_of(called(place, "functions")),
    "the table `calls`": lambda place: sums_of(called(place, "calls")),
    "pstats": functions_in_pstats,
}
CALLS = {
    "the table `functions`": lambda place: {"calls": sum(place.tables("functions")["calls"])},
    "the table `threads`": lambda place: {"calls": sum(place.tables("threads")["calls"])},
    "report": lambda place: {"calls": place.report(*ALL)["calls"]},
    "processes of report": lambda place: {"calls": sum(each["calls"] for each in place.report(*ALL)["processes"])},
}
THREADS = {
    "the table `threads`": lambda place: {tids(place)[row.thread]: row.calls for row in place.tables("threads")},
    "report": lambda place: {row["tid"]: row["calls"] for row in place.report("--threads")["threads"]},
    "report as CSV": lambda place: {int(row["tid"]): int(row["calls"]) for row in place.report_csv("--threads")},
    "Arrow": threads_in_spans,
}
TIMES = {
    "the table `threads`": lambda place: {"ns": sum(place.tables("threads")["self_ns"])},
    "the table `functions`": lambda place: {"ns": sum(place.tables("functions")["self_ns"])},
    "report": lambda place: {"ns": place.report(*ALL)["threads_ns"]},
    "threads of report": lambda place: {"ns": sum(row["time_ns"] for row in place.report("--threads")["threads"])},
}
COLLECTIONS = {
    "the table `collections`": collections_in_rows,
    "report": collections_in_json,
    "what they began in": collections_in_callers,
    "Arrow": collections_in_spans,
    "head of the report": lambda place: {**collections_in_rows(place), "ns": place.report(*ALL)["gc_ns"]},
    "notebook": lambda place: {**collections_in_rows(place), "ns": overview.of_traces([place.trace]).gc_ns},
    "notebook, of one": lambda place: {**collections_in_rows(place), "ns": overview.of_trace(place.trace, {}).gc_ns},
    "threads of report": lambda place: {
        **collections_in_rows(place),
        "ns": sum(row["gc_ns"] for row in place.report("--threads")["threads"]),
    },
}
EXCEPTIONS = {
    "the table `exceptions`": exceptions_in_rows,
    "report": lambda place: added(
        (row["exception"], row["count"]) for row in place.report("--exceptions", *ALL)["exceptions"]
    ),
    "Arrow": lambda place: added((row["name"], 1) for row in place.table("instant")),
}
TASKS = {"report": tasks_in_json, "Arrow": tasks_in_table}
CALLS_THAT_WAIT = {
    "report": lambda place: place.report(*ALL)["waiting_ns"],
    "Arrow": calls_that_wait,
}
WAITS = {
    "threads of report": lambda place: waits_of_threads(place.report("--threads")["threads"]),
    "threads of report as CSV": lambda place: waits_of_threads(place.report_csv("--threads")),
    "Arrow": waits,
}
ACTIVITIES = {"report": activities_in_json, "Arrow": activities_in_table}
STREAMS = {
    "report": lambda place: {
        row["stream"]: (row["works"], row["busy_ns"]) for row in place.report("--devices")["streams"]
    },
    "lanes": streams_in_lanes,
}
ALLOCATIONS = {
    "memory report": allocations_in_json,
    "Arrow": lambda place: {
        "count": len(place.table("alloc")),
        "bytes": sum(row["size"] for row in place.table("alloc")),
    },
}
FACTS = {
    "functions": FUNCTIONS,
    "functions compared": FUNCTIONS_COMPARED,
    "functions of a profile": FUNCTIONS_PROFILED,
    "functions as they are shown": FUNCTIONS_SHOWN,
    "functions in files": FUNCTIONS_EXPORTED,
    "calls": CALLS,
    "calls of threads": THREADS,
    "time": TIMES,
    "collections": COLLECTIONS,
    "exceptions": EXCEPTIONS,
    "tasks": TASKS,
    "calls that wait": CALLS_THAT_WAIT,
    "waits": WAITS,
    "activities": ACTIVITIES,
    "streams": STREAMS,
    "allocations": ALLOCATIONS,
}
RECORDED = "t"  # PROGRAM
DEVICES = "devices"
PROFILED = "profiled"
MEMORY = ("memory", "memory_native")
CALLS_OF = (*(name.partition(".")[0] for name in TRACES), RECORDED)
# Traces with a fact, for facts that not every trace of CALLS_OF has, or whose reports have other columns there.
HAVE = {
    "functions as they are shown": tuple(name for name in CALLS_OF if name not in ("operators", "sched")),
    "functions of a profile": (PROFILED,),
    "exceptions": (RECORDED,),
    "waits": ("sched",),
    "activities": (DEVICES,),
    "streams": (DEVICES,),
    "allocations": MEMORY,
}
ASKED = [(fact, trace) for fact in FACTS for trace in HAVE.get(fact, CALLS_OF)]


def differences(readers, place):
    """Returns the readers whose answers differ from the first reader's."""
    answers = {reader: ask(place) for reader, ask in readers.items()}
    first = next(iter(answers.values()))
    return {
        reader: {
            key: (first.get(key), answer.get(key)) for key in {*first, *answer} if first.get(key) != answer.get(key)
        }
        for reader, answer in answers.items()
        if answer != first
    }


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    for name in (*TRACES, *(f"{name}.vst" for name in MEMORY)):
        whole = (GOLDEN / name).read_bytes()
        (folder / name.removesuffix(".gz")).write_bytes(gzip.decompress(whole) if name.endswith(".gz") else whole)
    (folder / "program.py").write_text(PROGRAM)
    words = [COMMAND, "run", "-q", "--exceptions", "-o", str(folder / "t.vst"), str(folder / "program.py")]
    subprocess.run(words, check=True, timeout=60)
    work = Work()
    work.span(OPERATOR, "aten::mm", 200, 800)
    work.launch("gemm", 300, 1000, 3000, correlation=1)
    work.launch("relu", 310, 2000, 3500, correlation=2, stream=20)
    work.launch("Memcpy HtoD", 850, 8500, 9000, correlation=3, kind=COPY, size=4_000_000, stream=20)
    (folder / f"{DEVICES}.vst").write_bytes(work.trace(device()))
    with vestige.profile(output=str(folder / f"{PROFILED}.vst")) as prof:
        exec(compile(PROGRAM, "program.py", "exec"), {"__name__": "program"})
    return {path.stem: Place(path, prof) for path in sorted(folder.glob("*.vst"))}


@pytest.mark.parametrize(("fact", "trace"), ASKED)
def test_a_fact_is_the_same_wherever_it_is_read(places, fact, trace):
    assert differences(FACTS[fact], places[trace]) == {}


@pytest.mark.parametrize(("fact", "reader"), [(fact, reader) for fact in FACTS for reader in list(FACTS[fact])[1:]])
def test_a_reader_that_says_something_else_is_found(places, fact, reader):
    """Proves that no fact is empty, and that every reader's answer is compared."""
    place = places[HAVE.get(fact, CALLS_OF)[-1]]

    def says_less(place):
        answer = dict(FACTS[fact][reader](place))
        answer.pop(min(answer, key=str))
        return answer

    assert set(differences({**FACTS[fact], reader: says_less}, place)) == {reader}


SQL = """
    select name, count(*) filter (where flags & 16 = 0), sum(self_ns)::bigint,
        coalesce(sum(duration_ns) filter (where flags & 128 = 0), 0)::bigint
    from span where flags & 64 = 0 group by name
"""


@pytest.mark.sql
@pytest.mark.parametrize("trace", CALLS_OF)
def test_sql_has_the_same_functions_in_traces_and_in_parquet_files(places, trace, tmp_path):
    place = places[trace]
    assert command("export", str(place.path), "--to", "parquet", "-o", str(tmp_path / "tables")).code in (None, 0)
    for source in (str(place.path), str(tmp_path / "tables")):
        said = command("query", SQL, source, "--format", "csv", "--rows", "0")
        rows = list(csv.reader(io.StringIO(said.out)))[1:]
        assert added((name, *map(int, values)) for name, *values in rows) == functions_in_rows(place), said.err
