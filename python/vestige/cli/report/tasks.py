"""`vestige report --tasks`: asyncio's tasks by their coroutine functions, and the steps that blocked an event loop.

Greenlets are listed the same way, by the functions that they run.
"""

from __future__ import annotations

from vestige.base.quantities import chosen_time, duration, plural
from vestige.base.terminal import Paint, cut, fit, width_of
from vestige.reading.awaits import SWITCH, WRAPPERS, awaits
from vestige.reading.labels import plain_name
from vestige.reading.libraries import classify

from .data import shown_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

    from vestige._core import Rows, Trace
    from vestige.reading.inputs import Source
    from vestige.reading.libraries import Function

BLOCKED = "50ms"  # a step that takes longer keeps the other tasks waiting
STACK_ROWS = 8  # of the calls that blocked the loop, in the text
AWAITS_SHOWN = 4


class Group:
    """The tasks of a coroutine function, or the greenlets that run a function."""

    def __init__(self, function: Function, library: str, shown: str, kind: str) -> None:
        self.file, self.line = function[2], function[4]
        self.shown = shown
        self.kind = kind  # task, greenlet or hub
        self.library = library
        self.tasks = self.steps = self.running_ns = self.awaiting_ns = self.longest_ns = self.open = self.raised = 0
        self.latencies: list[int] = []  # of tasks that ended
        self.awaits: dict[tuple[str, str], list[int]] = {}  # what for, in which function: count, ns

    def add(self, row: Any) -> None:
        """A row of the table `task`."""
        self.tasks += 1
        self.steps += row.steps
        self.running_ns += row.step_ns
        self.awaiting_ns += row.awaiting_ns
        self.longest_ns = max(self.longest_ns, row.longest_step_ns)
        self.open += row.ended == "open"
        self.raised += row.ended == "raised"
        if row.ended != "open":
            self.latencies.append(row.duration_ns)

    def latency(self, share: float) -> int | None:
        """That of a task with so many others below it: 0.5 is the median."""
        ranked = sorted(self.latencies)
        return ranked[min(int(share * len(ranked)), len(ranked) - 1)] if ranked else None

    def ranked_awaits(self) -> list[tuple[tuple[str, str], list[int]]]:
        return sorted(self.awaits.items(), key=lambda item: (-item[1][1], item[0]))


class Tasks:
    """Those of all traces that are read."""

    def __init__(self, blocked_ns: int) -> None:
        self.blocked_ns = blocked_ns
        self.groups: dict[tuple[str, str], Group] = {}
        self.blocked: list[dict[str, Any]] = []

    def add(
        self,
        source: Source,
        trace: Trace,
        read: dict[str, Rows],
        left_out: Iterable[int],
        only_threads: Sequence[int] | None,
    ) -> None:
        """`read`: the tables `task`, `task_awaits`, `blocked_steps` and `blocked_calls`."""
        functions = trace.functions()
        libraries = classify(functions, source.metadata)[1]
        hidden = set(left_out)
        groups: dict[tuple[int, bool], Group] = {}  # of this trace, by the function's id, and whether a loop runs it
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
                sums = group_of.awaits.setdefault(key, [0, 0])
                sums[0] += row.waits
                sums[1] += row.awaiting_ns
        self._add_blocked(source, trace, functions, named, read)

    def _group(self, function: Function | None, library: str, name: str, kind: str) -> Group:
        function = function or (0, "?", "", "?", 0)
        shown = name if function[1] in WRAPPERS and name else shown_name(function)
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
                {
                    "task": name,
                    "function": group.shown,
                    "pid": source.facts["pid"],
                    "thread": threads.get(row.thread, "?"),
                    "start_ns": row.start_ns,
                    "time_ns": row.duration_ns,
                    "stack": stacks.get(number, []),
                }
            )
        self.blocked.sort(key=lambda step: -step["time_ns"])

    def in_order(self, by: str | None) -> list[Group]:
        if by == "name":
            return sorted(self.groups.values(), key=lambda group: group.shown)
        if by == "calls":
            return sorted(self.groups.values(), key=lambda group: (-group.tasks, group.shown))
        if by == "total":
            return sorted(self.groups.values(), key=lambda group: (-sum(group.latencies), group.shown))
        return sorted(self.groups.values(), key=lambda group: (-group.running_ns, group.shown))


def _call(trace: Trace, functions: Sequence[Function | None], row: Any) -> dict[str, Any]:
    """A row of the table `blocked_calls`."""
    function = functions[row.func] or (0, "?", "", "?", 0)
    call: dict[str, Any] = {"function": shown_name(function), "time_ns": row.duration_ns}
    if row.imported is not None:
        call["import"] = trace.import_name(row.imported, row.module or 0).removeprefix("import ")
    return {**call, "folded": True} if row.machinery else call


# ---- for programs --------------------------------------------------------------

COLUMNS = [
    "function", "file", "line", "library", "tasks", "open", "raised", "steps", "running_ns", "awaiting_ns",
    "latency_median_ns", "latency_p99_ns", "longest_step_ns", "awaits", "kind",
]  # fmt: skip


def as_rows(tasks: Tasks, by: str | None, csv: bool) -> dict[str, list[dict[str, Any]]]:
    rows = []
    for group in tasks.in_order(by):
        waited: Any = [
            {"for": what, "in": function, "count": count, "time_ns": ns}
            for (what, function), (count, ns) in group.ranked_awaits()
        ]
        if csv:
            waited = " ".join(f"{each['for']}:{each['time_ns']}" for each in waited)
        values = (
            group.shown, group.file, group.line, group.library, group.tasks, group.open, group.raised, group.steps,
            group.running_ns, group.awaiting_ns, group.latency(0.5), group.latency(0.99), group.longest_ns, waited,
            group.kind,
        )  # fmt: skip
        rows.append(dict(zip(COLUMNS, values)))
    return {"tasks": rows, "blocked": tasks.blocked}


# ---- for people ----------------------------------------------------------------


def show_tasks(tasks: Tasks, by: str | None, start_ns: int, rows: int, out: TextIO) -> None:
    of_loops = [group for group in tasks.in_order(by) if group.kind == "task"]
    greenlets = [group for group in tasks.in_order(by) if group.kind != "task"]
    if not tasks.groups:
        print("no task of asyncio was recorded, and no greenlet", file=out)
        return
    print("median and 99%: from a task's first step to its end; longest: of one step", file=out)
    if of_loops:
        _show_groups(of_loops, rows, out)
        _show_blocked(tasks, start_ns, rows, out)
    if greenlets:
        print(end="\n" if of_loops else "", file=out)
        _show_groups(greenlets, rows, out)


def _show_groups(groups: Sequence[Group], rows: int, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    are_tasks = groups[0].kind == "task"
    what, away = ("tasks", "awaiting") if are_tasks else ("greenlets", "out")
    indent = max(8, len(what))
    head = f"{what:>{indent}} {'running':>8} {away:>8} {'median':>8} {'99%':>8} {'longest':>8}"
    print(paint(f"{head}  {'coroutine function' if are_tasks else 'function'}", "head"), file=out)
    for group in groups[:rows]:
        times = (group.running_ns, group.awaiting_ns, group.latency(0.5), group.latency(0.99), group.longest_ns)
        figures = " ".join(f"{'-' if ns is None else duration(ns):>8}" for ns in times)
        name = paint(fit(group.shown, width - len(head) - 2), "dim" if group.library else None)
        print(f"{group.tasks:>{indent},} {figures}  {name}", file=out)
        waited = _awaits(group)
        if group.kind == "hub":
            waited = "for others; while nobody can run, its loop waits"
        if waited:
            told = f"{'awaiting' if are_tasks else 'switched out:'} {waited}"
            print(" " * (indent + 2) + paint(cut(told, width - indent - 2), "dim"), file=out)
    if len(groups) > rows:
        print(paint(f"{'':>{indent}} and {len(groups) - rows:,} more functions", "dim"), file=out)


def _awaits(group: Group) -> str:
    """`queue 39.4 ms (Queue.get), sleep 71.7 us (sleep)`"""
    ranked = group.ranked_awaits()
    parts = [
        f"{what} {duration(ns)}" + (f" ({name})" if name and not group.shown.endswith(f": {name}") else "")
        for (what, name), (_, ns) in ranked[:AWAITS_SHOWN]
    ]
    more = f", {len(ranked) - AWAITS_SHOWN:,} more" if len(ranked) > AWAITS_SHOWN else ""
    return ", ".join(parts) + more


def _show_blocked(tasks: Tasks, start_ns: int, rows: int, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    least = chosen_time(tasks.blocked_ns)
    if not tasks.blocked:
        print(f"\nno step took {least} or more", file=out)
        return
    count = plural(len(tasks.blocked), "step")
    print("\n" + paint(f"{count} blocked the event loop for {least} or more", "head"), file=out)
    for step in tasks.blocked[:rows]:
        which = f"{step['task']}, {step['function']}" if step["task"] else step["function"]
        head = f"{duration(step['time_ns']):>9} after {duration(step['start_ns'] - start_ns)} in "
        print(f"{paint(head, 'hot')}{fit(which, width - len(head))}", file=out)
        shown = [call for call in step["stack"] if not call.get("folded")]
        for number, call in enumerate(shown[-STACK_ROWS:]):
            name = f"import {call['import']}" if "import" in call else plain_name(call["function"])
            indent = " " * (10 + 2 * number)
            print(indent + cut(f"{duration(call['time_ns'])} {name}", width - len(indent)), file=out)
    if len(tasks.blocked) > rows:
        print(paint(f"{'':>9} and {len(tasks.blocked) - rows:,} more steps", "dim"), file=out)
