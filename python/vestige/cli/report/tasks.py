"""`vestige report --tasks`: asyncio's tasks by their coroutine functions, and the steps that blocked an event loop.

Greenlets are listed the same way, by the functions that they run.
"""

from __future__ import annotations

from types import SimpleNamespace

from vestige._core import Function
from vestige.base.quantities import chosen_time, duration, plural
from vestige.base.terminal import Paint, cut, fit, width_of
from vestige.reading.awaits import SWITCH, WRAPPERS, awaits
from vestige.reading.labels import plain_name
from vestige.reading.layout import show
from vestige.reading.libraries import classify

from .data import shown_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

    from vestige._core import Rows, Trace
    from vestige.reading.inputs import Source

    from .command import Reading
    from .data import Steps

BLOCKED = "50ms"  # a longer step keeps other tasks waiting
UNKNOWN = Function((0, "?", "", "?", 0))
STACK_ROWS = 8  # the most calls that the text lists, of those that blocked the loop
AWAITS_SHOWN = 4
INDENT = 10  # columns before the waits of a group


class Group:
    """The tasks of a coroutine function, or the greenlets that run a function."""

    def __init__(self, function: Function, library: str, shown: str, kind: str) -> None:
        self.file, self.line = function.file, function.line
        self.shown = shown
        self.kind = kind  # task, greenlet or hub
        self.library = library
        self.tasks = self.steps = self.open = self.raised = 0
        self.running_ns = self.awaiting_ns = self.longest_step_ns = 0
        self.latencies: list[int] = []  # durations of tasks that ended
        self.awaited: dict[tuple[str, str], list[int]] = {}  # count and ns, by kind of object and function

    def add(self, row: Any) -> None:
        """Adds a row of the table `task`."""
        self.tasks += 1
        self.steps += row.steps
        self.running_ns += row.step_ns
        self.awaiting_ns += row.awaiting_ns
        self.longest_step_ns = max(self.longest_step_ns, row.longest_step_ns)
        self.open += row.ended == "open"
        self.raised += row.ended == "raised"
        if row.ended != "open":
            self.latencies.append(row.duration_ns)

    def latency(self, share: float) -> int | None:
        """Returns a quantile of the tasks' durations: 0.5 is the median."""
        ranked = sorted(self.latencies)
        return ranked[min(int(share * len(ranked)), len(ranked) - 1)] if ranked else None

    @property
    def latency_median_ns(self) -> int | None:
        return self.latency(0.5)

    @property
    def latency_p99_ns(self) -> int | None:
        return self.latency(0.99)

    @property
    def latency_max_ns(self) -> int | None:
        return max(self.latencies, default=None)

    @property
    def latency_ns(self) -> int:
        return sum(self.latencies)

    @property
    def awaits(self) -> list[dict[str, Any]]:
        return [
            {"for": what, "in": function, "count": count, "time_ns": ns}
            for (what, function), (count, ns) in self.ranked_awaits()
        ]

    def ranked_awaits(self) -> list[tuple[tuple[str, str], list[int]]]:
        return sorted(self.awaited.items(), key=lambda item: (-item[1][1], item[0]))


class Tasks:
    """The tasks of all traces that are read."""

    def __init__(self, blocked_ns: int) -> None:
        self.blocked_ns = blocked_ns
        self.groups: dict[tuple[str, str], Group] = {}
        self.blocked: list[SimpleNamespace] = []

    def add(
        self,
        source: Source,
        trace: Trace,
        read: dict[str, Rows],
        left_out: Iterable[int],
        only_threads: Sequence[int] | None,
    ) -> None:
        """Adds a trace. `read` has the tables `task`, `task_awaits`, `blocked_steps` and `blocked_calls`."""
        functions = trace.functions()
        libraries = classify(functions, source.metadata)[1]
        hidden = set(left_out)
        # the groups of this trace: by the id of the function, and by whether an event loop runs it
        groups: dict[tuple[int, bool], Group] = {}
        named: dict[int, tuple[str, Group]] = {}
        for task in read["task"]:
            if task.func in hidden or (only_threads is not None and task.thread not in only_threads):
                continue
            name = task.task_name or ""
            group = self._group(functions[task.func], libraries[task.func], name, task.kind)
            groups[task.func, task.kind == "task"] = group
            named[task.task] = name, group
            group.add(task)
        for row in read["task_awaits"]:
            group_of = groups.get((row.func, row.awaits != SWITCH))
            if group_of:
                inner = functions[row.awaiting or 0]
                key = awaits(row.awaits, inner), inner[1] if inner else ""
                sums = group_of.awaited.setdefault(key, [0, 0])
                sums[0] += row.waits
                sums[1] += row.awaiting_ns
        self._add_blocked(source, trace, functions, named, read)

    def _group(self, function: Function | None, library: str, name: str, kind: str) -> Group:
        function = function or UNKNOWN
        shown = name if function.name in WRAPPERS and name else shown_name(function)
        return self.groups.setdefault((kind, shown), Group(function, library, shown, kind))

    def _add_blocked(
        self,
        source: Source,
        trace: Trace,
        functions: Sequence[Function | None],
        named: dict[int, tuple[str, Group]],
        read: dict[str, Rows],
    ) -> None:
        threads = {thread["number"]: thread["name"] or "(unnamed)" for thread in trace.threads()}
        stacks: dict[int, list[dict[str, Any]]] = {}
        for call in read["blocked_calls"]:
            stacks.setdefault(call.step, []).append(_call(trace, functions, call))
        for number, row in enumerate(read["blocked_steps"]):
            if row.task not in named:
                continue
            name, group = named[row.task]
            self.blocked.append(
                SimpleNamespace(
                    task=name,
                    function=group.shown,
                    pid=source.facts["pid"],
                    thread=threads.get(row.thread, "?"),
                    start_ns=row.start_ns,
                    time_ns=row.duration_ns,
                    stack=stacks.get(number, []),
                )
            )
        self.blocked.sort(key=lambda step: -step.time_ns)


def _call(trace: Trace, functions: Sequence[Function | None], row: Any) -> dict[str, Any]:
    """Returns a row of the table `blocked_calls` for the report."""
    function = functions[row.func] or UNKNOWN
    call: dict[str, Any] = {"function": shown_name(function), "time_ns": row.duration_ns}
    if row.imported is not None:
        call["import"] = trace.import_name(row.imported, row.module or 0).removeprefix("import ")
    return {**call, "folded": True} if row.machinery else call


# ---- for people ----------------------------------------------------------------


def show_tasks(tasks: Tasks, reading: Reading, start_ns: int, rows: int, out: TextIO) -> None:
    groups = reading.rows()
    of_loops = [group for group in groups if group.kind == "task"]
    greenlets = [group for group in groups if group.kind != "task"]
    if not groups:
        print("no task of asyncio was recorded, and no greenlet", file=out)
        return
    width = width_of(out)
    print("median and 99%: from a task's first step to its end; longest: of one step", file=out)
    if of_loops:
        below = lambda group: _below(group, "awaiting", width)  # noqa: E731
        show(reading.columns, of_loops, rows, out, more="more functions", below=below)
        _show_steps(reading.data.steps, out)
        _show_blocked(tasks, start_ns, rows, out)
    if greenlets:
        print(end="\n" if of_loops else "", file=out)
        below = lambda group: _below(group, "switched out:", width)  # noqa: E731
        headings = {"calls": "greenlets", "awaiting": "out", "name": "function"}
        show(reading.columns, greenlets, rows, out, more="more functions", below=below, headings=headings)


def _below(group: Group, away: str, width: int) -> list[str]:
    waited = "for others; while nobody can run, its loop waits" if group.kind == "hub" else _awaits(group)
    return [" " * INDENT + cut(f"{away} {waited}", width - INDENT)] if waited else []


def _awaits(group: Group) -> str:
    """Returns `queue 39.4 ms (Queue.get), sleep 71.7 us (sleep)`."""
    ranked = group.ranked_awaits()
    parts = [
        f"{what} {duration(ns)}" + (f" ({name})" if name and not group.shown.endswith(f": {name}") else "")
        for (what, name), (_, ns) in ranked[:AWAITS_SHOWN]
    ]
    more = f", {len(ranked) - AWAITS_SHOWN:,} more" if len(ranked) > AWAITS_SHOWN else ""
    return ", ".join(parts) + more


def _show_steps(steps: Steps, out: TextIO) -> None:
    """Shows the steps of event loops whose calls the trace has."""
    if steps.count:
        p50, p99, longest = (duration(steps.quantile(share)) for share in (0.5, 0.99, 1))
        count = plural(steps.count, "step")
        print(f"\n{count} of event loops: half took {p50} or longer, 1% {p99}, the longest {longest}", file=out)


def _show_blocked(tasks: Tasks, start_ns: int, rows: int, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    least = chosen_time(tasks.blocked_ns)
    if not tasks.blocked:
        print(f"\nno step took {least} or more", file=out)
        return
    count = plural(len(tasks.blocked), "step")
    print("\n" + paint(f"{count} blocked the event loop for {least} or more", "head"), file=out)
    for step in tasks.blocked[:rows]:
        which = f"{step.task}, {step.function}" if step.task else step.function
        head = f"{duration(step.time_ns):>9} after {duration(step.start_ns - start_ns)} in "
        print(f"{paint(head, 'hot')}{fit(which, width - len(head))}", file=out)
        shown = [call for call in step.stack if not call.get("folded")]
        for number, call in enumerate(shown[-STACK_ROWS:]):
            name = f"import {call['import']}" if "import" in call else plain_name(call["function"])
            indent = " " * (10 + 2 * number)
            print(indent + cut(f"{duration(call['time_ns'])} {name}", width - len(indent)), file=out)
    if len(tasks.blocked) > rows:
        print(paint(f"{'':>9} and {len(tasks.blocked) - rows:,} more steps", "dim"), file=out)
