"""`vestige report`: where the time went, by function, as a tree, by thread; garbage collections; memory."""

from __future__ import annotations

import sys

from vestige.base.failure import Failure
from vestige.base.quantities import duration, parse_time, plural, size
from vestige.base.terminal import UNBOUNDED, Paint, line_width, width_of
from vestige.cli import ranges
from vestige.cli.console import Parser, add_files, did_you_mean
from vestige.cli.patterns import Patterns, add_patterns
from vestige.reading import report_columns as columns
from vestige.reading.inputs import Inputs, find_traces
from vestige.reading.layout import show
from vestige.reading.memory import read_memory

from . import compensated, memory
from .data import FOR_FINDINGS, FOR_TREE, SMALLER, Data
from .devices import read as read_devices
from .devices import show_devices
from .findings import Evidence, engine_of, find, lines, not_examined
from .imports import Imports
from .notes import show_head, show_left_out, span_of, torn_ends
from .tree import unfolded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from vestige._core import Trace
    from vestige.base.terminal import Progress
    from vestige.reading.inputs import Source
    from vestige.reading.memory import MemorySummary
    from vestige.reading.report_columns import Column, Table

    from .data import Named, Node
    from .devices import Device
    from .exceptions import Exceptions
    from .findings import Finding
    from .tasks import Tasks

__all__ = ["duration", "main", "plural", "size"]

EXAMPLES = """\
  vestige report t.vst                   functions by their own time
  vestige report t.vst --findings        what to look at first
  vestige report t.vst --tree            who called whom, libraries folded
  vestige report t.vst --tree --all --min 0.1%
  vestige report t.vst --threads         what each thread did and waited for
  vestige report t.vst --imports         how long imports took
  vestige report t.vst --tasks           asyncio's tasks, and what they awaited
  vestige report t.vst --durations       how long calls, requests and tasks took
  vestige report t.vst --slow 'GET /*'   what slow requests have and others lack
  vestige report t.vst --exceptions      what was raised, and who caught it
  vestige report t.vst --devices         kernels, copies, and idle times of GPUs
  vestige report t.vst --no-waits        without calls that only wait
  vestige report t.vst --cpu             running time, not elapsed time
  vestige report t.vst --from 1.5s --until 2s --thread 'worker*'
  vestige report t.vst --exclude '*/site-packages/*' -n 40
  vestige report t.vst --format json | jq '.functions[0]'
  vestige report traces/ --sort total --columns calls,total,share

The time of functions that --include and --exclude leave out counts as their
callers' own time. PATTERN matches a file, as in `vestige run`, or a function's
name ('parse*').
--no-waits leaves out calls that only wait, for locks, input, output, sleep or
child processes; no function gets their time.
"""
ROWS = 30
EXCEPTIONS = "vestige.exceptions"  # key of the metadata: whether exceptions were recorded
NEEDS = {  # for a feature of columns: the line that says that it was not recorded
    "memory": "no memory was recorded here; see vestige memory --help",
    "switches": "this trace does not say when threads ran; record with `vestige run --sched`",
}


class View:
    """A view: its description for --help, its columns, and the tables that it reads in addition to those of
    all views.
    """

    def __init__(self, about: str, table: Table, *reads: str) -> None:
        self.about, self.table, self.reads = about, table, reads


VIEWS = {
    "findings": View("at most five sentences: the causes of lost time, and their places",
                     columns.FINDINGS, *FOR_FINDINGS),
    "flat": View("functions, sorted by their own time (default)", columns.FUNCTIONS, "functions"),
    "tree": View("the tree of calls, with libraries folded", columns.TREE, *FOR_TREE),
    "threads": View("what each thread did, and how long it waited", columns.THREADS),
    "imports": View("modules by import time, the importer of each, and the slowest chain",
                    columns.IMPORTS, "calls"),
    "tasks": View("asyncio's tasks by coroutine function, and the steps that blocked an event loop",
                  columns.TASKS, "task", "task_awaits", "blocked_steps", "blocked_calls", "steps",
                  "long_steps"),
    "durations": View("durations of calls, requests and tasks: median, 99th percentile, longest, slow ones",
                      columns.DURATIONS, "duration"),
    "exceptions": View("exceptions by type and place, and who caught them (vestige run --exceptions)",
                       columns.EXCEPTIONS, "exceptions"),
    "devices": View("what devices (GPUs) did, how busy each stream was, and when a device was idle and why",
                    columns.ACTIVITIES),
    "gc": View("garbage collections: how many, how long, where", columns.GENERATIONS, "collection_callers"),
    "memory": View("functions that allocated most, if memory was recorded", columns.FUNCTIONS, "functions"),
}  # fmt: skip


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    _check(options)
    if options.view == "findings" and options.no_waits:
        raise Failure("--findings: waiting is among what is looked for; leave out --no-waits", code=2)
    inputs = find_traces(options.files, children=not options.no_children)
    there = {name for source in inputs.sources for name in NEEDS if source.facts[name]}
    for asked, need in _needs(options):
        if need in NEEDS and need not in there:
            raise Failure(f"{asked}: {NEEDS[need]}")
    if options.view == "exceptions" and not any(EXCEPTIONS in source.metadata for source in inputs.sources):
        raise Failure("--exceptions: exceptions were not recorded here; see vestige run --exceptions")
    if options.view == "devices" and not any(source.facts.get("devices") for source in inputs.sources):
        raise Failure("--devices: no device was recorded here; vestige info tells what a trace has")
    if options.compensated:
        compensated.check(inputs.sources)
    if options.lines is not None:
        from .source_lines import show_lines

        return show_lines(inputs, options)
    if options.slow is not None:
        from .slow import show_slow

        return show_slow(inputs, options, find_threads(inputs, options.thread))
    reading = Reading(inputs, options)
    if not reading.read:
        return 1
    if reading.is_of_memory_alone:
        from vestige.cli.memory import report as memory_report

        return memory_report.tell(inputs, memory_report.usual(options.n, options.format))
    if options.format == "text":
        _show(reading, options)
    else:
        from .files import write

        write(reading, options, sys.stdout)
    return int(inputs.failed)


def _parser() -> Parser:
    parser = Parser(
        "report",
        "Show where the time went: by function, as a tree of calls, by thread, by asyncio\n"
        "task; the time of the garbage collector; and, if memory was recorded, which\n"
        "functions allocated. A recording of memory alone is shown as by memory-report.\n"
        "The traces of FILE's child processes are read too. FILE may be a folder of\n"
        "traces. The figures of several traces are added up.",
        "FILE… [--findings | --tree | --threads | …] [options]",
        EXAMPLES + _columns_of_views(),
    )
    add_files(parser)
    views = parser.add_mutually_exclusive_group()
    for name, view in VIEWS.items():
        views.add_argument(f"--{name}", dest="view", action="store_const", const=name, default="flat", help=view.about)
    parser.add_argument(
        "-n", metavar="N", type=int, help="lines to show (default: 30; trees: as after a run; json, csv: all)"
    )
    parser.add_argument("--sort", metavar="BY", help="the column to sort by (default: self; trees: total)")
    parser.add_argument("--columns", metavar="LIST", help="the columns to show, in this order: calls,self,share")
    keys = list(dict.fromkeys(column.key for view in VIEWS.values() for column in view.table.columns))
    parser.words |= {"--sort": keys, "--columns": keys}
    parser.add_argument("--all", action="store_true", help="fold nothing: show libraries and the import system, too")
    parser.add_argument("--no-waits", action="store_true", help="leave out calls that only wait, and their time")
    parser.add_argument("--cpu", action="store_true", help="count running time, not elapsed time (vestige run --sched)")
    parser.add_argument(
        "--compensated", action="store_true", help="subtract the cost of recording (vestige run --compensate)"
    )
    parser.add_argument(
        "--lines", metavar="FUNC", help="show the source of a function, with the calls and the time of each line"
    )
    parser.add_argument(
        "--slow",
        metavar="NAME",
        help="compare the slowest tenth of the calls of a function, of requests or tasks with the others",
    )
    parser.add_argument("--blocked", metavar="TIME", help="with --tasks: list steps of at least TIME (default: 50ms)")
    parser.add_argument("--min", metavar="SHARE", help="leave out smaller branches of the tree (default: 1%%)")
    parser.add_argument(
        "--thread", metavar="NAME", action="append", help="only threads of this name (a pattern) or id; may be repeated"
    )
    ranges.add_arguments(parser)
    add_patterns(parser)
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text", help="output format")
    return parser


def _columns_of_views() -> str:
    """Returns the columns of each view, for --help."""
    from textwrap import fill

    tables = {view.table: [name for name in VIEWS if VIEWS[name].table is view.table] for view in VIEWS.values()}
    text = "\ncolumns, for --columns and --sort:\n"
    for table, names in tables.items():
        flags = f"{', '.join(f'--{name}' for name in names)}:"
        words = ", ".join(column.key for column in table.columns)
        text += fill(f"  {flags:<18} {words}", 78, subsequent_indent=" " * 21, break_on_hyphens=False) + "\n"
    return text


def _find_columns(options: Namespace) -> None:
    """Sets `options.columns` to the requested columns, and `options.sort` to the column to sort by."""
    table = VIEWS[options.view].table

    def find(option: str, word: str) -> Column:
        column = table.find(word)
        if column is None:
            keys = [column.key for column in table.columns]
            there = f"--{options.view} has {', '.join(keys)}{did_you_mean(word, keys)}"
            raise Failure(f"{option}: no column is called {word!r}; {there}", code=2)
        return column

    if options.view == "findings" and options.format == "text" and (options.columns or options.sort):
        raise Failure("--columns and --sort: not with --findings, which are sentences", code=2)
    asked = [] if options.columns is None else options.columns.split(",")
    options.columns = table.choose([find("--columns", word.strip()) for word in asked]) if asked else []
    by = options.sort or ("memory" if options.view == "memory" else None)
    options.sort = None if by is None else find("--sort", by)


def _needs(options: Namespace) -> Iterator[tuple[str, bool | str]]:
    """Yields the requested columns and sections, each with the feature that a trace must have."""
    yield "--memory", "memory" if options.view == "memory" else ""
    yield "--cpu", "switches" if options.cpu else ""
    asked = [("--sort", options.sort)] if options.sort is not None else []
    for option, column in [*asked, *(("--columns", column) for column in options.columns)]:
        yield f"{option} {column.key}", column.text
        yield f"{option} {column.key}", column.files


def _check(options: Namespace) -> None:
    _find_columns(options)
    if options.n is not None and options.n < 1:
        raise Failure(f"-n must be at least 1, not {options.n}", code=2)
    if options.cpu and options.view in ("threads", "gc", "memory"):
        raise Failure(f"--cpu: not with --{options.view}, which shows it beside the rest", code=2)
    if options.cpu and options.view == "devices":
        raise Failure("--cpu: not with --devices, which have no processor of ours", code=2)
    if options.compensated and options.view in ("threads", "gc", "memory", "tasks", "exceptions", "devices"):
        raise Failure(f"--compensated: not with --{options.view}", code=2)
    if options.slow is not None:
        others = [options.view != "flat", options.format == "csv", ranges.is_given(options)]
        others += [options.columns, options.sort, options.include, options.exclude]
        if any([*others, options.cpu, options.compensated, options.no_waits]):
            raise Failure("--slow goes with --thread, -n, --no-children and --format json alone", code=2)
    if options.blocked is not None and options.view != "tasks":
        raise Failure("--blocked belongs to --tasks", code=2)
    options.blocked_ns = _blocked(options.blocked) if options.view == "tasks" else 0
    options.min = 0.01 if options.min is None else share("--min", options.min)
    if options.format != "text":
        options.rows = options.n  # None: all rows
    else:
        options.rows = options.n or ROWS


def _blocked(text: str | None) -> int:
    from .tasks import BLOCKED

    try:
        return parse_time("--blocked", text or BLOCKED)
    except ValueError as error:
        raise Failure(str(error), code=2) from None


def find_causes(files: list[str]) -> list[Finding]:
    """Returns the findings of traces and of their child processes' traces, for other commands."""
    options = _parser().parse_args([*files, "--findings"])
    _check(options)
    reading = Reading(find_traces(files), options)
    if not reading.read:
        raise Failure("no trace could be read to its end")
    return reading.findings()


def share(option: str, text: str) -> float:
    """Returns `10%` as 0.1."""
    try:
        value = float(text.removesuffix("%").strip()) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise Failure(f"{option}: not a share: {text!r}; write 10% or 0.5%", code=2)
    return value


def _tasks(options: Namespace) -> Tasks | None:
    if options.view != "tasks":
        return None
    from .tasks import Tasks

    return Tasks(options.blocked_ns)


def _exceptions(options: Namespace) -> Exceptions | None:
    if options.view != "exceptions":
        return None
    from .exceptions import Exceptions

    return Exceptions()


class Reading:
    """Everything that the options request, from all traces that can be read."""

    def __init__(self, inputs: Inputs, options: Namespace) -> None:
        self.data = Data()
        self.read: list[Source] = []
        self.memory: list[tuple[Source, MemorySummary]] = []
        self.tasks = _tasks(options)
        self.exceptions = _exceptions(options)
        self.devices: list[Device] = []
        self._inputs = inputs
        self._options = options
        self._between = self._range()
        self._patterns = Patterns(options.include, options.exclude)
        self._threads = find_threads(inputs, options.thread)
        inputs.read_each(self._add)
        if self.read:
            self._patterns.check(inputs)

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Returns facts about each trace that was read; times are those of the range."""
        facts = [dict(source.facts) for source in self.read]
        if self._between is not None:
            for each in facts:
                each["start_ns"], each["end_ns"] = self._between
                each["dropped"] = 0
        return facts

    @property
    def has_memory(self) -> bool:
        return any(source.facts["memory"] for source in self.read)

    @property
    def table(self) -> Table:
        return VIEWS[self._options.view].table

    @property
    def columns(self) -> list[Column]:
        """Returns the requested columns, or the usual ones."""
        options = self._options
        usual = self.table.in_text if options.format == "text" else self.table.in_files
        return options.columns or usual(self.features)

    @property
    def features(self) -> set[str]:
        """Returns the features of the traces for which there are extra columns."""
        data, options = self.data, self._options
        there = {
            "memory": self.has_memory,
            "switches": self.has_switches,
            "work": not self.has_switches,
            "compensated": options.compensated,
            "budget": bool(data.budgets),
            "estimated": bool(data.budgets) and not options.compensated,
            "tasks": data.tree.awaiting_ns > 0,
            "imports": data.has_imports,
            "processes": len({thread.pid for thread in data.threads}) > 1,
            "gil": self.has_switches and any(thread.object_ns is None for thread in data.threads),
            "pauses": self.has_switches and any(thread.object_ns is not None for thread in data.threads),
            "children": self.has_switches and any(thread.child_ns for thread in data.threads),
            "uncollectable": any(sums.uncollectable for sums in data.generations.values()),
            "json": options.format == "json",
        }
        return {name for name, is_there in there.items() if is_there}

    @property
    def is_of_memory_alone(self) -> bool:
        """True if only allocations were recorded, and no range or filter is requested."""
        options = self._options
        chosen = self._between is not None or options.thread or options.include or options.exclude or options.columns
        return options.view in ("flat", "memory") and self.has_memory and not self.data.calls and not chosen

    @property
    def has_switches(self) -> bool:
        return any(source.facts["switches"] for source in self.read)

    @property
    def whole_ns(self) -> int:
        """The time that is 100%: for functions, the sum over all threads; for threads, the time that passed; for
        garbage collections, the sum over all processes. So no share is above 100%.
        """
        if self._options.view == "threads":
            return span_of(self.facts)
        if self._options.view == "gc":
            return sum(span_of([each]) for each in self.facts)
        if self._options.view == "memory":
            return sum(entry.self_ns for entry in self.data.functions.values())
        return self.data.threads_ns

    def _range(self) -> tuple[int, int] | None:
        if not ranges.is_given(self._options):
            return None
        facts = [source.facts for source in self._inputs.sources]
        start, end = min(each["start_ns"] for each in facts), max(each["end_ns"] for each in facts)
        between = ranges.read(self._options, start, end)
        return between[0], min(between[1], end)

    def _add(self, source: Source, progress: Progress) -> None:
        trace = source.open()
        if self._between is not None:
            trace.set_range(*self._between)
        options, view = self._options, self._options.view
        trace.set_by_running(options.cpu)
        trace.set_compensated(options.compensated)
        text = options.format == "text"
        span = span_of([source.facts]) if self._between is None else self._between[1] - self._between[0]
        # Every call may be shorter than that, because few functions were recorded.
        if "vestige.only" in source.metadata:
            span = 0
        read = self.data.add(
            trace,
            source.metadata,
            (*VIEWS[view].reads, *self._read_for_columns()),
            choose=self._patterns.left_out,
            threads=self._threads.get(source.path) if options.thread else None,
            together=len(self._inputs.sources) > 1,
            waits=not options.no_waits,
            only_own=view == "findings",
            awaits=view in ("tree", "findings"),
            fold_imports=view in ("findings", "imports") or (text and not options.all),
            **({"by_thread": True} if (text and view == "tree") or view == "findings" else {}),
            blocked_ns=self.tasks.blocked_ns if self.tasks is not None else 0,
            min_ns=int(options.min * span / SMALLER) if (text and view == "tree") or view == "findings" else 0,
            progress=progress,
        )
        if view == "memory" and source.facts["memory"]:
            self.memory.append((source, read_memory(trace, rows=0, stacks=False)))
        if self.tasks is not None:
            only_threads = self._threads.get(source.path) if options.thread else None
            self.tasks.add(source, trace, read, self._patterns.left_out(trace.functions()), only_threads)
        if self.exceptions is not None:
            self.exceptions.add(source, trace, read["exceptions"], self._patterns.left_out(trace.functions()))
        if view in ("devices", "findings"):
            self.devices += read_devices(trace, progress)
        source.calls = sum(read["threads"]["calls"])
        self.read.append(source)

    def _read_for_columns(self) -> set[str]:
        """Returns tables that are read only because a chosen column needs them."""
        options = self._options
        chosen = (*options.columns, *(() if options.sort is None else (options.sort,)))
        return {column.reads for column in chosen if column.reads}

    # ---- in order --------------------------------------------------------------

    def rows(self) -> list[Any]:
        """Returns the rows of the view's table."""
        data, view = self.data, self._options.view
        rows: Iterable[Any] = ()
        if view in ("flat", "memory"):
            rows = [entry for entry in data.functions.values() if entry.calls]
        elif view == "tree":
            return unfolded(data.tree)
        elif view == "threads":
            rows = data.threads
        elif view == "imports":
            rows = Imports(data.tree).modules.values()
        elif self.tasks is not None:
            rows = self.tasks.groups.values()
        elif view == "durations":
            rows = data.durations.values()
        elif self.exceptions is not None:
            rows = self.exceptions.rows()
        elif view == "devices":
            rows = [row for device in self.devices for row in device.named]
        elif view == "gc":
            rows = [sums for _, sums in sorted(data.generations.items())]
        else:
            rows = self.findings()
            for finding in rows:
                finding.files = [source.path for source in self.read]
        return self.table.sorted(rows, self._options.sort)

    def findings(self) -> list[Finding]:
        engine = engine_of(self.read[0].open()) if self.read else ""
        return find(Evidence(self.data, self.facts, engine, self._look, self._traces, self.devices))

    def _traces(self) -> Iterator[Trace]:
        return (source.open() for source in self.read)

    def _look(self, step: Named) -> Node:
        """Returns the tree of what the step's thread did during the step."""
        inside = Data()
        end_ns = step.start_ns + step.duration_ns
        for source in self.read:
            facts = source.facts
            if facts["pid"] == step.pid and facts["start_ns"] <= step.start_ns and end_ns <= facts["end_ns"]:
                trace = source.open()
                trace.set_range(step.start_ns, end_ns)
                inside.add(trace, source.metadata, ["calls"], fold_imports=True, threads=[step.thread])
                break
        return inside.tree


def find_threads(inputs: Inputs, names: Sequence[str] | None) -> dict[str, list[int]]:
    """Returns the numbers of the threads with these names or ids, by the path of their trace."""
    from fnmatch import fnmatchcase

    found: dict[str, list[int]] = {}
    for asked in names or ():
        matched = False
        for source in inputs.sources:
            numbers = found.setdefault(source.path, [])
            for thread in source.threads:
                if asked == str(thread["tid"]) or fnmatchcase(thread["name"] or "(unnamed)", asked):
                    numbers.append(thread["number"])
                    matched = True
        if not matched:
            names = [thread["name"] or "(unnamed)" for source in inputs.sources for thread in source.threads]
            there = ", ".join(dict.fromkeys(names[:100]))
            there = there if len(there) < 200 else there[:200] + "…"
            raise Failure(f"--thread {asked!r}: no thread has this name or id; there are {there}", code=2)
    return found


def _show(reading: Reading, options: Namespace) -> None:
    out, data = sys.stdout, reading.data
    if options.cpu:
        print(f"times are those in which threads had a processor{_unknown(data)}", file=out)
    if options.compensated:
        print(compensated.note(reading.read, data), file=out)
    show_head(
        reading.facts,
        data,
        out,
        every_thread=not options.thread,
        shares=options.view in ("flat", "imports"),
        ends=torn_ends(reading.read),
    )
    start_ns = min(each["start_ns"] for each in reading.facts)
    if options.view == "findings":
        width = line_width(out) if width_of(out) < UNBOUNDED else UNBOUNDED
        missing = not_examined(reading.facts, [source.metadata for source in reading.read])
        for line in lines(reading.findings(), width, missing):
            print(line, file=out)
    elif options.view == "tree":
        _show_tree(reading, options)
    elif options.view == "threads":
        of_times = "; what is in no column was waiting of another kind" if reading.has_switches else ""
        print(f"{'of' if of_times else '% is of'} the {duration(reading.whole_ns)} that passed{of_times}", file=out)
        show(reading.columns, reading.rows(), options.rows, out, more="more threads", whole_ns=reading.whole_ns)
    elif options.view == "imports":
        from .imports import show_imports

        show_imports(Imports(data.tree), reading, options.rows, out)
    elif reading.tasks is not None:
        from .tasks import show_tasks

        show_tasks(reading.tasks, reading, start_ns, options.rows, out)
    elif reading.exceptions is not None:
        from .exceptions import show_exceptions

        show_exceptions(reading.exceptions, reading, options, out)
    elif options.view == "devices":
        show_devices(reading.devices, reading.columns, start_ns, options, out)
    elif options.view == "gc":
        from .garbage import show_collections

        show_collections(reading, start_ns, options.rows, out)
    else:
        if options.view == "memory":
            print(memory.summary(reading), file=out)
        show(reading.columns, reading.rows(), options.rows, out, more="more functions", whole_ns=reading.whole_ns)
    if len(reading.read) > 1:
        print(file=out)
        show(columns.PROCESSES.in_text(()), reading.read, len(reading.read), out)
    show_left_out(reading.facts, [source.metadata for source in reading.read], data, out)
    if reading.has_memory and not data.calls and options.view != "memory":
        print(memory.pointer(source.path for source in reading.read), file=out)


def _unknown(data: Data) -> str:
    """Returns a line about calls whose running time is not known: they count as 0."""
    unknown = sum(entry.running_ns is None for entry in data.functions.values())
    return f"; of {plural(unknown, 'function')} they are not known for every call" if unknown else ""


def _show_tree(reading: Reading, options: Namespace) -> None:
    from .sections import Sections

    out, columns = sys.stdout, reading.columns
    is_usual = columns == reading.table.in_text(())
    sections = Sections(reading.data, reading.facts, by_cpu=options.cpu or options.compensated)
    drawn = sections.lines(() if is_usual else columns, width_of(out), Paint(out), options)
    for line in drawn:
        print(line, file=out)
    if not drawn and reading.data.calls:
        print(f"nothing took {options.min:.1%} of the time; --min 0 shows all", file=out)
