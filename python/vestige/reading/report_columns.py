"""The columns of reports. Each column is one line below; text, JSON, CSV, --columns, --sort, --help, completion and the
reference are made from it. A row is any object; a column reads one attribute of it. The report after `vestige run` uses
this file, too, so it imports little.
"""

from __future__ import annotations

from operator import attrgetter

from vestige.base.quantities import duration, percent, signed, size
from vestige.base.terminal import exact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TextIO

# ---- what a column is ----------------------------------------------------------


class Unit:
    """How values are written for people, and how many columns they take."""

    __slots__ = ("is_text", "name", "text", "width")

    def __init__(self, name: str, width: int, text: Callable[[Any], str], *, is_text: bool = False) -> None:
        self.name, self.width, self.text, self.is_text = name, width, text, is_text


def _known(text: Callable[[Any], str], unknown: str = "?") -> Callable[[Any], str]:
    return lambda value: unknown if value is None else text(value)


def _counted(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """Writes a count; -1 stands for an unknown count."""
    return lambda value: "?" if value is None or value < 0 else text(value)


def _listed(waits: Sequence[dict[str, Any]]) -> str:
    return " ".join(f"{each['for']}:{each['time_ns']}" for each in waits)


def _longer(change: Any) -> str:
    return f"{_doubt(change) or ' '}{signed(duration(change.difference), change.difference):>10}"


def _slower(change: Any) -> str:
    is_there = change.after > 0 and change.known_share is not None
    return f"{_doubt(change)}{percent(change.share)}" if is_there else "-"


def _doubt(change: Any) -> str:
    """Marks a change within the noise."""
    return "" if change.is_significant else "~"


def _more(calls: Any) -> str:
    if calls.before == calls.after:
        return "="
    return "new" if not calls.before else "gone" if not calls.after else percent(calls.share)


COUNT = Unit("", 9, _counted("{:,}".format))
ID = Unit("", 7, lambda value: "" if value is None else str(value))
NUMBER = Unit("", 10, _counted(str))  # names a row; -1: unknown
TIME = Unit("ns", 8, _known(duration))
SPENT = Unit("ns", 8, _known(lambda ns: duration(ns) if ns else "-"))
LATENCY = Unit("ns", 8, _known(duration, "-"))  # of calls or tasks, of which there may be none
MOMENT = Unit("ns", 8, duration)  # for people, counted from the start
BYTES = Unit("bytes", 8, size)
MOVED = Unit("bytes", 9, lambda count: size(count) if count else "")
SHARE = Unit("share", 4, lambda share: "" if share is None else f"{share:.0%}")
PART = Unit("share", 6, lambda share: "" if share is None else f"{share:.1%}")  # share of the thing's own whole
SHARE_EXACT = Unit("share", 6, lambda share: "" if share is None else f"{share:.1%}")
MEAN = Unit("", 6, lambda value: "-" if value is None else f"{value:.1f}")
FLAG = Unit("true or false", 5, str)
WORD = Unit("text", 9, lambda value: "" if value is None else str(value), is_text=True)
NAME = Unit("text", 20, WORD.text, is_text=True)
OPTIONAL = Unit("text", 20, WORD.text, is_text=True)  # left out of JSON if empty
WAITS = Unit("list", 20, _listed, is_text=True)
LONGER = Unit("ns", 11, _longer)  # for changes of vestige diff
NOISE = Unit("ns", 9, lambda change: f"±{duration(change.noise)}")
SLOWER = Unit("share", 9, _slower)
MORE = Unit("share", 7, _more)
ADDED = Unit("", 11, "{:+,}".format)
SHARES = (SHARE, SHARE_EXACT)


class Column:
    """A column. `key` is its name in --columns and --sort, `name` its name in JSON and CSV. `of` is the attribute with
    its value, `shown` the one for people, `by` the one to sort by. Unless --columns chooses, a column is shown always,
    never, or if what was read has the feature `when`; `text` and `files` override that for text and for files. `merge`
    makes one value of the values of several traces. `reads` is a table that is read only if the column is chosen.
    """

    # fmt: off
    __slots__ = ("about", "by", "files", "get", "heading", "key", "look", "merge", "name", "of", "reads", "shown",
                 "text", "unit", "width")
    # fmt: on

    def __init__(
        self,
        key: str,
        name: str,
        unit: Unit,
        about: str,
        *,
        heading: str = "",
        of: str = "",
        shown: str = "",
        by: str = "",
        when: bool | str = True,
        text: bool | str | None = None,
        files: bool | str | None = None,
        width: int = 0,
        merge: Callable[[list[Any]], Any] = sum,
        reads: str = "",
    ) -> None:
        self.key, self.name, self.unit, self.about = key, name, unit, about
        self.heading = heading or (name.replace("_", " ") if unit.is_text else key)
        self.of = of or name
        self.shown = shown or self.of
        self.get, self.look, self.by = attrgetter(self.of), attrgetter(self.shown), attrgetter(by or self.of)
        self.text = when if text is None else text
        self.files = when if files is None else files
        self.width = max(width or unit.width, len(self.heading))
        self.merge = merge
        self.reads = reads

    def value(self, row: Any, whole_ns: int) -> Any:
        """Returns the value for programs."""
        value = self.get(row)
        return value if self.unit not in SHARES or value is None else value / (whole_ns or 1)

    def order(self, row: Any) -> Any:
        """Returns a key to sort by: the largest number first, names in alphabetical order."""
        value = self.by(row)
        return self.unit.text(value) if self.unit.is_text else -(value or 0)


class Table:
    """The columns of a view. The column with the key `name`, or else the first, is always shown. Rows are sorted by the
    column `by` unless --sort chooses another; rows with equal values are sorted by `ties`.
    """

    def __init__(self, name: str, *columns: Column, by: str = "", ties: Callable[[Any], Any] | None = None) -> None:
        self.name = name  # the table's name in JSON
        self.columns = columns
        self.naming = next((column for column in columns if column.key == "name"), columns[0])
        self.by = by
        self.merges = {column.of: column.merge for column in columns}
        self._ties = ties

    def find(self, word: str) -> Column | None:
        """Returns the column with this key, or with this name in JSON and CSV."""
        return next((column for column in self.columns if word in (column.key, column.name)), None)

    def choose(self, columns: Sequence[Column]) -> list[Column]:
        """Returns the columns, followed by the column that names the row."""
        return [*columns] if self.naming in columns else [*columns, self.naming]

    def pick(self, *words: str) -> list[Column]:
        """Returns the columns with these keys, in this order."""
        return [column for word in words for column in self.columns if column.key == word]

    def in_text(self, features: Iterable[str]) -> list[Column]:
        """Returns the columns for people: figures first, then numbers that name something, then names."""
        there = [column for column in self.columns if _is_there(column.text, features)]
        return sorted(there, key=lambda column: (column.unit is ID) + 2 * column.unit.is_text)

    def in_files(self, features: Iterable[str]) -> list[Column]:
        return [column for column in self.columns if _is_there(column.files, features)]

    def sorted(self, rows: Iterable[Any], by: Column | None = None) -> list[Any]:
        """Sorts rows by the table's default order, or by a column."""
        column = by or self.find(self.by)
        if column is None:
            return list(rows)
        is_named = column.unit.is_text or self._ties is None
        return sorted(rows if is_named else sorted(rows, key=self._ties), key=column.order)


def _is_there(condition: bool | str, features: Iterable[str]) -> bool:
    return condition in features if isinstance(condition, str) else condition


def records(columns: Sequence[Column], rows: Iterable[Any], whole_ns: int = 1) -> list[dict[str, Any]]:
    """Returns rows for JSON."""
    optional = [column.name for column in columns if column.unit is OPTIONAL]
    made = [{column.name: column.value(row, whole_ns) for column in columns} for row in rows]
    for name in optional:
        for each in made:
            if not each[name]:
                del each[name]
    return made


def write_csv(columns: Sequence[Column], rows: Iterable[Any], out: TextIO, whole_ns: int = 1) -> None:
    import csv

    writer = csv.writer(exact(out), lineterminator="\n")
    writer.writerow(column.name for column in columns)
    for row in rows:
        values = [column.value(row, whole_ns) for column in columns]
        # CSV has no lists, so a list becomes text.
        writer.writerow(c.unit.text(value) if isinstance(value, list) else value for c, value in zip(columns, values))


# ---- the columns -----------------------------------------------------------------

FUNCTION = "the function, with its file and line"
CALLS = "calls that began"
SELF = "time in the function itself, without the calls that it made"
TOTAL = "time in the function, including the calls that it made"
RUNNING = "the part of total in which the thread had a processor (vestige run --sched)"
SELF_BYTES = "bytes that the function itself allocated, minus the bytes that it freed"
TOTAL_BYTES = "bytes allocated including the calls that it made, minus the freed bytes"
ALLOCATIONS = "allocations of the function itself"
WAITS_FOR = "the reason, if the function only waits: lock, io, sleep, child"
LIBRARY = "the library that the function belongs to; empty for the program's own functions"

FUNCTIONS = Table(
    "functions",
    Column("name", "function", NAME, FUNCTION, of="shown"),
    Column("kind", "kind", WORD, "the kind: python, c, annotation, gc, operator, module", text=False, of="kind_name"),
    Column("file", "file", NAME, "the file that defines the function", text=False),
    Column("line", "line", ID, "the first line of the function", text=False),
    Column("library", "library", WORD, LIBRARY, text=False),
    Column("calls", "calls", COUNT, CALLS, width=11),
    Column("self", "self_ns", TIME, SELF),
    Column("share", "self_share", SHARE, "self as a share of the time of all threads", heading="%", of="self_ns",
           files=False),
    Column("total", "total_ns", TIME, TOTAL + "; recursive calls count once"),
    Column("p50", "p50_ns", LATENCY, "half of the calls took longer; for a generator, a call lasts from yield to yield",
           when=False, reads="duration"),
    Column("p99", "p99_ns", LATENCY, "a hundredth of the calls took longer", when=False, reads="duration"),
    Column("max", "max_ns", TIME, "the longest call; for a generator, a call lasts from yield to yield",
           when=False, merge=max),
    Column("running", "running_ns", TIME, RUNNING, when="switches"),
    Column("self-memory", "self_bytes", BYTES, SELF_BYTES, heading="self mem", when="memory"),
    Column("memory", "total_bytes", BYTES, TOTAL_BYTES, heading="all mem", when="memory"),
    Column("allocations", "allocations", COUNT, ALLOCATIONS, text=False, files="memory"),
    Column("waits", "waits_for", WORD, WAITS_FOR, text=False),
    Column("error", "compensated_error_ns", TIME, "the largest error of total (--compensated)", heading="±",
           of="error_ns", when="compensated"),
    Column("estimate-error", "estimate_error_ns", TIME, "the largest error of total if a budget left calls out",
           heading="±", of="error_ns", when="estimated"),
    Column("reduced", "estimate_reduced", FLAG, "whether the estimate was limited to the time that there was",
           of="is_reduced", text=False, files="budget"),
    by="self", ties=lambda entry: (-entry.self_ns, entry.shown),
)  # fmt: skip

TREE = Table(
    "tree",
    Column("id", "id", ID, "the number of the line", text=False),
    Column("parent", "parent", ID, "the number of the caller's line; -1: none", text=False),
    Column("depth", "depth", ID, "number of calls around this call", text=False),
    Column("name", "function", NAME, FUNCTION, of="node.function", shown="node.shown", by="node.shown"),
    Column("import", "import", OPTIONAL, "the imported module, if the call is an import",
           of="module", text=False, files="imports"),
    Column("library", "library", WORD, LIBRARY, of="library_name", text=False),
    Column("calls", "calls", COUNT, CALLS, shown="count", text=False),
    Column("self", "self_ns", TIME, SELF, text=False),
    Column("total", "total_ns", TIME, TOTAL, shown="time_ns", by="reach_ns"),
    Column("share", "total_share", SHARE, "share of the time of all threads", heading="%",
           of="total_ns", shown="share_ns", files=False, width=5),
    Column("awaiting", "awaiting_ns", TIME, "how long tasks waited below", text=False, files="tasks"),
    Column("running", "running_ns", TIME, RUNNING, of="node.running_ns", when="switches"),
    Column("self-memory", "self_bytes", BYTES, SELF_BYTES, heading="self mem", of="node.self_bytes", text=False),
    Column("memory", "total_bytes", BYTES, TOTAL_BYTES, heading="all mem", of="node.total_bytes", text=False),
    Column("allocations", "allocations", COUNT, ALLOCATIONS, of="node.allocations", text=False),
    Column("waits", "waits_for", WORD, WAITS_FOR, text=False),
    by="total",
)  # fmt: skip

THREADS = Table(
    "threads",
    Column("name", "thread", NAME, "the name of the thread", of="name"),
    Column("pid", "pid", ID, "the process of the thread", text="processes"),
    Column("tid", "tid", ID, "the system's number of the thread", text=False),
    Column("calls", "calls", COUNT, CALLS, text="work", width=11),
    Column("time", "time_ns", TIME, "the time of all calls of the thread", of="self_ns"),
    Column("share", "time_share", SHARE, "share of the time that passed", heading="%", of="self_ns",
           text="work", files=False),
    Column("running", "running_ns", SPENT, "the part of time in which the thread had a processor", when="switches"),
    Column("gil", "gil_ns", SPENT, "time of waiting for the GIL", heading="GIL", text="gil", files="switches"),
    Column("object", "object_ns", SPENT, "without the GIL: time of waiting for locks of objects", when="pauses"),
    Column("world", "world_ns", SPENT, "without the GIL: time in which all threads were stopped", when="pauses"),
    Column("lock", "lock_ns", SPENT, "time of waiting for a lock or another thread", when="switches"),
    Column("io", "io_ns", SPENT, "time of waiting for input or output", heading="I/O", when="switches"),
    Column("sleep", "sleep_ns", SPENT, "time in sleep", when="switches"),
    Column("child", "child_ns", SPENT, "time of waiting for a child process", text="children", files="switches"),
    Column("preempted", "preempted_ns", SPENT, "time in which other threads had the processor", when="switches"),
    Column("waiting", "waiting_ns", SPENT, "time in calls that only wait", text="work"),
    Column("gc", "gc_ns", SPENT, "time in garbage collections", heading="GC", text="work"),
    Column("first", "first_ns", MOMENT, "when the first call of the thread began", text=False),
    Column("last", "last_ns", MOMENT, "when the last call of the thread ended", text=False),
    Column("most", "most_in", NAME, "the function with most own time in the thread", heading="most time in",
           shown="top_shown", text="work"),
    by="time", ties=lambda thread: thread.first_ns,
)  # fmt: skip

IMPORTS = Table(
    "imports",
    Column("name", "module", NAME, "the module", of="module", shown="name", by="name", width=36),
    Column("named", "named", FLAG, "false: the trace has no name for the module", of="is_named", text=False),
    Column("failed", "failed", FLAG, "whether the import failed", text=False),
    Column("calls", "times", COUNT, "imports that began", heading="times", of="calls", width=6),
    Column("self", "self_ns", TIME, "time without the modules that it imports"),
    Column("total", "total_ns", TIME, "time including the modules that it imports"),
    Column("by", "first_imported_by", NAME, "the first importer of the module", of="first_by"),
    by="self", ties=lambda module: module.name,
)  # fmt: skip

TASKS = Table(
    "tasks",
    Column("name", "function", NAME, "the coroutine function", heading="coroutine function", of="shown"),
    Column("file", "file", NAME, "the file that defines the function", text=False),
    Column("line", "line", ID, "the first line of the function", text=False),
    Column("library", "library", WORD, LIBRARY, text=False),
    Column("calls", "tasks", COUNT, "number of tasks that ran the function", heading="tasks", width=8),
    Column("open", "open", COUNT, "tasks that were still open when the recording ended", text=False),
    Column("raised", "raised", COUNT, "tasks that an exception ended", text=False),
    Column("steps", "steps", COUNT, "number of times that a task was resumed", text=False),
    Column("running", "running_ns", TIME, "time of all steps"),
    Column("awaiting", "awaiting_ns", TIME, "time between the steps"),
    Column("median", "latency_median_ns", LATENCY, "from first step to end: half of the tasks took longer"),
    Column("p99", "latency_p99_ns", LATENCY, "from first step to end: a hundredth of the tasks took longer",
           heading="99%"),
    Column("max", "latency_max_ns", LATENCY, "from first step to end: the longest task", when=False),
    Column("total", "latency_ns", TIME, "from first step to end, summed over all tasks", when=False),
    Column("longest", "longest_step_ns", TIME, "the longest step"),
    Column("awaits", "awaits", WAITS, "the kinds of things that tasks waited for: function, number and time",
           text=False),
    Column("kind", "kind", WORD, "task, greenlet or hub", text=False),
    by="running", ties=lambda group: group.shown,
)  # fmt: skip

DURATIONS = Table(
    "durations",
    Column("name", "name", NAME, "the function, request, other annotation, or coroutine function of tasks", of="shown"),
    Column("kind", "kind", WORD, "function, async (not on its thread's stack, such as a request) or task", width=8),
    Column("library", "library", WORD, LIBRARY, text=False),
    Column("calls", "count", COUNT, "number of calls; for a generator, a call lasts from yield to yield"),
    Column("total", "total_ns", TIME, "time of all calls"),
    Column("p50", "p50_ns", TIME, "half of the calls took longer"),
    Column("p99", "p99_ns", TIME, "a hundredth of the calls took longer"),
    Column("max", "max_ns", TIME, "the longest call"),
    Column("slow", "slow_count", COUNT, "number of calls that took ten times p50 or longer", width=7),
    Column("slow-time", "slow_ns", TIME, "time of the slow calls", heading="in these"),
    Column("histogram", "histogram", OPTIONAL, "distribution of the durations, in OpenTelemetry's form", text=False,
           files="json"),
    by="slow-time", ties=lambda one: (-one.total_ns, one.shown),
)  # fmt: skip

EXCEPTIONS = Table(
    "exceptions",
    Column("name", "exception", NAME, "the type of the exception"),
    Column("file", "file", NAME, "the file in which the exception was raised"),
    Column("line", "line", ID, "the line in which the exception was raised"),
    Column("raised", "raised_in", NAME, "the function in which the exception was raised"),
    Column("caught", "caught_in", NAME, "the function that caught the exception"),
    Column("end", "end", WORD, "how the exception ended: caught, not caught, unknown"),
    Column("count", "count", COUNT, "number of such exceptions"),
    Column("library", "library", FLAG, "whether the exception stayed inside a library"),
)

GENERATIONS = Table(
    "generations",
    Column("generation", "generation", NUMBER, "the generation; -1: not known", width=11),
    Column("count", "count", COUNT, "number of collections"),
    Column("time", "time_ns", TIME, "time of all collections", of="total_ns"),
    Column("longest", "longest_ns", TIME, "time of the longest collection"),
    Column("collected", "collected", COUNT, "objects that the collections freed"),
    Column(
        "uncollectable", "uncollectable", COUNT, "objects that the collections could not free", text="uncollectable"
    ),
)

BEGAN_IN = Table(
    "began_in",
    Column("name", "function", NAME, "the function in which the collections began", heading="they began in", of="name"),
    Column("count", "count", COUNT, "number of collections", width=11),
    Column("time", "time_ns", TIME, "time of all collections", of="total_ns"),
    by="time", ties=lambda sums: sums.name,
)  # fmt: skip

COLLECTIONS = Table(
    "longest",
    Column("after", "start_ns", MOMENT, "when the collection began", width=11),
    Column("time", "time_ns", TIME, "time of the collection", of="duration_ns"),
    Column("thread", "thread", NAME, "the thread of the collection", of="thread_name"),
    Column("generation", "generation", NUMBER, "the generation; -1: not known"),
    Column("collected", "collected", COUNT, "objects that the collection freed; -1: not known", width=10),
)

ACTIVITIES = Table(
    "activities",
    Column("pid", "pid", ID, "the process", text=False),
    Column("device", "device", NAME, "the device", text=False),
    Column("kind", "kind", WORD, "kernel, copy, set, or another kind of activity", text=False),
    Column("name", "name", NAME, "the kernel, or the kind of copy", heading="kernel, copy, set, or what else",
           shown="shown"),
    Column("count", "count", COUNT, "number of activities", of="activities"),
    Column("time", "time_ns", TIME, "time of all these activities", of="total_ns", width=10),
    Column("share", "time_share", SHARE_EXACT, "share of the time of all work", heading="%", of="work_ns", files=False),
    Column("longest", "longest_ns", TIME, "time of the longest activity"),
    Column("bytes", "bytes", MOVED, "bytes that were copied or set", heading="copied"),
)  # fmt: skip

OF_DEVICE = (
    Column("pid", "pid", ID, "the process", text=False),
    Column("device", "device", NAME, "the device", text=False),
)
USE = (
    Column("works", "works", COUNT, "kernels, copies and sets"),
    Column("span", "span_ns", TIME, "from the begin of the first work to the end of the last", text=False),
    Column("busy", "busy_ns", TIME, "time in which at least one work ran"),
    Column("share", "busy_share", PART, "busy as a share of span", heading="%", files=False),
    Column("idle", "idle_ns", TIME, "the rest of span"),
    Column("gaps", "gaps", COUNT, "number of idle stretches", width=7),
    Column("longest", "longest_gap_ns", TIME, "the longest idle stretch"),
    Column(
        "unlaunched",
        "until_launch_ns",
        TIME,
        "idle time before the next launch was called",
        of="unlaunched_ns",
        text=False,
    ),
    Column("launched", "launched", COUNT, "works whose launches are in the trace", text=False),
    Column("delay", "launch_delay_ns", LATENCY, "mean time from a launch to the begin of its work"),
)
DEVICES = Table(
    "devices", *OF_DEVICE, Column("error", "clock_error_ns", TIME, "the largest error of the device's times"), *USE
)
STREAMS = Table(
    "streams",
    *OF_DEVICE,
    Column("stream", "stream", NUMBER, "the number of the stream"),
    *USE,
    Column("queue-max", "queue_max", COUNT, "the largest number of works in the queue", text=False),
    Column("queue", "queue_mean", MEAN, "mean number of works in the queue when a work was launched"),
)
GAPS = Table(
    "gaps",
    *OF_DEVICE,
    Column("from", "start_ns", MOMENT, "when the device became idle", width=10),
    Column("idle", "idle_ns", TIME, "how long the device was idle"),
    Column(
        "unlaunched",
        "until_launch_ns",
        LATENCY,
        "the part of idle before the next launch was called",
        of="unlaunched_ns",
    ),
    Column("stream", "stream", ID, "the stream of the work that ended the idle time", text=False),
    Column("next", "next", NAME, "the work that ended the idle time", heading="until", shown="shown"),
    Column("thread", "thread", NAME, "the thread that launched that work", text=False),
    Column("op", "op", NAME, "the operator around the launch", text=False),
    Column("annotation", "annotation", NAME, "the annotation around the launch", text=False),
)

PROCESSES = Table(
    "processes",
    Column("file", "file", NAME, "the trace of the process", of="path", text=False),
    Column("pid", "pid", ID, "the number of the process"),
    Column("rank", "rank", ID, "the rank of the process in a distributed program", width=4),
    Column("host", "host", WORD, "the machine of the process", text=False),
    Column("command", "command", WORD, "the command line of the process", text=False),
    Column("ended", "ended", WORD, "how the recording ended"),
    Column("time", "duration_ns", TIME, "how long the process was recorded"),
    Column("calls", "calls", COUNT, CALLS, width=11),
    Column("name", "name", NAME, "the trace and the command line of the process", heading="process", files=False),
)

FINDINGS = Table(
    "findings",
    Column("kind", "kind", WORD, "the cause", text=False),
    Column("text", "text", NAME, "the sentence: cause, place and figures"),
    Column("where", "where", NAME, "the function, file, thread and so on", text=False, files="json"),
    Column("numbers", "numbers", NAME, "the figures behind the sentence", text=False, files="json"),
    Column("next", "next", NAME, "the command that shows more", text=False),
)


def _change(key: str, name: str, of: str, about: str) -> list[Column]:
    return [
        Column(f"{key}-before", f"{name}_before", TIME, f"{about}: before", of=f"{of}.before", text=False),
        Column(f"{key}-after", f"{name}_after", TIME, f"{about}: after", of=f"{of}.after", text=False),
        Column(
            f"{key}-change", f"{name}_change", PART, f"{about}: relative change", of=f"{of}.known_share", text=False
        ),
        Column(
            f"{key}-noise", f"{name}_noise", TIME, f"{about}: change that chance explains", of=f"{of}.noise", text=False
        ),
        Column(
            f"{key}-significant",
            f"{name}_significant",
            FLAG,
            f"{about}: whether the change is more than chance",
            of=f"{of}.is_significant",
            text=False,
        ),
    ]


# A column without a name is left out of JSON and CSV, where the columns behind it have its parts.
DIFF = Table(
    "functions",
    Column("name", "function", NAME, FUNCTION, of="name"),
    Column("calls-before", "calls_before", COUNT, "calls before", of="calls_change.before", text=False),
    Column("calls-after", "calls_after", COUNT, "calls after", of="calls_change.after", text=False),
    Column("effect", "effect_ns", TIME, "how much the function's change adds to the whole",
           of="effect", by="effect_size", text=False),
    Column("significant", "significant", FLAG, "whether the change is more than chance",
           of="is_significant", text=False),
    Column("time", "self_time", LONGER, "change of the function's self time", heading="self time", by="self_time.size",
           files=False),
    Column("noise", "self_time", NOISE, "the part of that change that chance explains",
           by="self_time.noise", files=False),
    Column("calls", "calls_change", MORE, "change of the number of calls", by="calls_change.size", files=False),
    Column("self", "self_call", SLOWER, "change of the self time of the median call",
           heading="self/call", by="self_call.size", files=False),
    Column("total", "total_call", SLOWER, "change of the total time of the median call",
           heading="total/call", by="total_change.size", files=False),
    *_change("self", "self_ns", "self_time", "time in the function itself, without the calls that it made"),
    *_change("self-call", "self_ns_per_call", "self_call", "self time of the median call"),
    *_change("total-call", "total_ns_per_call", "total_call", "total time of the median call"),
    by="effect", ties=lambda row: row.name,
)  # fmt: skip

# ---- counts of vestige diff

DIFF_COUNTS = Table(
    "counts",
    Column("change", "change", ADDED, "how many more there are in B", of="difference", by="size"),
    Column("before", "before", COUNT, "the count in A"),
    Column("after", "after", COUNT, "the count in B"),
    Column("what", "what", WORD, "the kind of the count: calls, queries, …"),
    Column("doubt", "doubt", OPTIONAL, "why the count is not judged", text=False),
    Column("name", "function", NAME, "the function, with its file", of="name"),
    by="change", ties=lambda row: row.name,
)  # fmt: skip
