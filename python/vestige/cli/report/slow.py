"""`vestige report --slow NAME`: the slowest tenth of the calls of a function, of requests or of tasks, compared with
the rest. Reads some calls of both kinds: what their thread did while they ran.
"""

from __future__ import annotations

import json
import sys
from fnmatch import fnmatchcase
from shlex import quote
from types import SimpleNamespace

from vestige._core import merge_histograms
from vestige.base.failure import Failure
from vestige.base.quantities import duration, plural
from vestige.base.terminal import Paint, fit, point, width_of
from vestige.cli.console import did_you_mean
from vestige.reading.kinds import GC, NATIVE, PYTHON
from vestige.reading.labels import plain_name
from vestige.reading.waits import KINDS

from .data import CHOSEN, Data, gil_holders, is_named, shown_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from vestige._core import Function
    from vestige.reading.inputs import Inputs, Source

    from .data import Node

SLOWEST = 0.9  # quantile above which calls count as slow
READ = 16  # number of calls of each kind whose insides are read
ROWS = 12  # rows about functions inside
LEAST = 0.05  # share of the difference; smaller differences get no line
RECURSIVE, RESUMED = 128, 16  # flags of spans
LONGER = 1.5  # factor by which arguments of slow calls must be longer than those of other calls


class Call:
    def __init__(self, source: Source, row: Any) -> None:
        self.source = source
        self.start_ns, self.ns, self.thread = row.start_ns, row.duration_ns, row.thread
        self.arguments: str = getattr(row, "args", None) or ""


class Inside:
    """The calls inside one call: how often and how long, by name."""

    def __init__(self, call: Call, shown: str) -> None:
        self.call = call
        self.found: dict[str, list[int]] = {}  # count and ns
        self.only: dict[str, list[int]] = {}  # causes that can make any call slow: collections, waits, imports
        data, trace = Data(), call.source.open()
        trace.set_range(call.start_ns, call.start_ns + call.ns)
        read = data.add(
            trace, call.source.metadata, ["calls"], threads=[call.thread], fold_imports=True, awaits=True
        )  # fmt: skip
        for root in _roots(data.tree, shown):
            self._add(root)
        for thread in read["threads"]:
            if thread.gil_ns:
                holder = max(gil_holders(trace), key=lambda one: one.held_ns, default=None)
                held = f", held by {holder.function} in {holder.thread}" if holder is not None else ""
                _count(self.only, f"waiting for the GIL{held}", 1, thread.gil_ns)
            if thread.preempted_ns:
                _count(self.only, "another process or thread on the processor", 1, thread.preempted_ns)

    def _add(self, root: Node) -> None:
        work = [(child, False) for child in root.children.values()]
        while work:
            node, known = work.pop()
            name = plain_name(node.shown) if node.kind == NATIVE else node.shown
            kind = node.waits_for if node.waited_ns else ""
            if node.kind == GC:
                _count(self.only, "garbage collections", node.calls, node.total_ns)
            elif node.imports and not known:
                _count(self.only, node.imports, node.calls, node.total_ns)
                known = True
            elif kind:
                _count(self.only, f"waiting in {name} ({KINDS.get(kind, kind)})", node.calls, node.total_ns)
            _count(self.found, name, node.calls or node.waits, node.self_ns or (node.awaiting_ns if node.waits else 0))
            work.extend((child, known) for child in node.children.values())


def _count(sums: dict[str, list[int]], key: str, count: int, ns: int) -> None:
    one = sums.setdefault(key, [0, 0])
    one[0] += count
    one[1] += ns


def _roots(tree: Node, shown: str) -> list[Node]:
    """Returns the places of the function. For spans off the stack, returns everything that their thread did."""
    found, work = [], list(tree.children.values())
    while work:
        node = work.pop()
        if node.shown == shown:
            found.append(node)
        else:
            work.extend(node.children.values())
    is_inside = any(node.children or node.self_ns for node in found)
    return found if is_inside else [tree]


# ---- the calls -------------------------------------------------------------------


def _matches(function: Function, name: str) -> bool:
    shown = shown_name(function)
    if name in (function.name, shown) or fnmatchcase(shown, name):
        return True
    return is_named(function, name) if function.kind == PYTHON else fnmatchcase(plain_name(function.name), name)


def find_calls(inputs: Inputs, name: str, threads: dict[str, list[int]]) -> tuple[str, str, list[Call]]:
    """Returns the name, its kind (calls, requests or tasks), and every call."""
    spans: dict[str, list[Call]] = {}
    tasks: dict[str, list[Call]] = {}
    names: set[str] = set()
    beside: set[str] = set()

    def add(source: Source, progress: Any) -> None:
        trace = source.open()
        functions = trace.functions()
        chosen = {number for number, one in enumerate(functions) if one is not None and _matches(one, name)}
        names.update(plain_name(one.name) for one in functions if one is not None)
        if not chosen:
            return
        marks = bytes(CHOSEN if number in chosen else 0 for number in range(len(functions)))
        read = trace.tables(["chosen_spans", "task"], marks=marks, progress=progress)
        only = threads.get(source.path)
        for row in read["chosen_spans"]:
            if not row.flags & RECURSIVE and (only is None or row.thread in only):
                shown = shown_name(functions[row.func])
                spans.setdefault(shown, []).append(Call(source, row))
                if row.flags & 64:
                    beside.add(shown)
        for row in read["task"]:
            if row.func in chosen and row.ended != "open" and (only is None or row.thread in only):
                shown = shown_name(functions[row.func])
                tasks.setdefault(shown, []).append(Call(source, row))

    inputs.read_each(add)
    found = spans | tasks  # a task includes everything that its coroutine function did
    if not found:
        raise Failure(f"--slow {name!r}: nothing is called that{did_you_mean(name, sorted(names))}", code=2)
    if len(found) > 1:
        there = ", ".join(sorted(found)[:8])
        raise Failure(f"--slow {name!r}: there are several: {there}; write one of them", code=2)
    shown, calls = found.popitem()
    return shown, "task" if shown in tasks else "request" if shown in beside else "call", calls


# ---- the comparison --------------------------------------------------------------


def _spaced(calls: Sequence[Call]) -> list[Call]:
    """Returns some of the calls, evenly spread from the shortest to the longest: the calls to read."""
    step = max(len(calls) / READ, 1)
    return [calls[int(at * step)] for at in range(min(len(calls), READ))]


class Comparison:
    """`slow` and `rest` are the calls whose insides were read."""

    def __init__(self, shown: str, kind: str, calls: list[Call]) -> None:
        self.shown, self.kind = shown, kind
        ranked = sorted(calls, key=lambda call: call.ns)
        if len(ranked) < 2:
            raise Failure(f"--slow: {shown} was called once; there is nothing to compare")
        at = min(max(int(SLOWEST * len(ranked)), 1), len(ranked) - 1)
        self.count, self.slow_count = len(ranked), len(ranked) - at
        self.slowest = ranked[-1]
        self.from_ns = ranked[at].ns
        self.total_ns = sum(call.ns for call in ranked)
        self.slow_ns = sum(call.ns for call in ranked[at:])
        texts = [f'{{"values": [{", ".join(str(call.ns) for call in ranked)}]}}']
        self.p50_ns, self.p99_ns, self.max_ns = merge_histograms(texts, (0.5, 0.99, 1))[1]
        self.slow = [Inside(call, shown) for call in _spaced(ranked[at:])]
        self.rest = [Inside(call, shown) for call in _spaced(ranked[:at])]
        self.slow_lengths = _mean(len(call.arguments) for call in ranked[at:])
        self.rest_lengths = _mean(len(call.arguments) for call in ranked[:at])

    def means(self, of: Callable[[Inside], dict[str, list[int]]]) -> list[SimpleNamespace]:
        """Returns what calls did inside, on average, sorted by how much more time slow calls spent there."""
        keys = dict.fromkeys(key for one in (*self.slow, *self.rest) for key in of(one))
        rows = []
        for key in keys:
            row = SimpleNamespace(name=key)
            for side in ("slow", "rest"):
                found = [of(one).get(key, (0, 0)) for one in getattr(self, side)]
                setattr(row, f"{side}_ns", _mean(ns for _, ns in found))
                setattr(row, f"{side}_calls", _mean(count for count, _ in found))
                setattr(row, f"{side}_in", sum(count > 0 for count, _ in found))
            rows.append(row)
        least = LEAST * (_mean(one.call.ns for one in self.slow) - _mean(one.call.ns for one in self.rest))
        rows = [row for row in rows if row.slow_ns - row.rest_ns >= max(least, 1)]
        return sorted(rows, key=lambda row: row.rest_ns - row.slow_ns)

    @property
    def inside(self) -> list[SimpleNamespace]:
        return self.means(lambda one: one.found)

    @property
    def only(self) -> list[SimpleNamespace]:
        """Returns collections, waits and imports that slow calls have more often than other calls."""
        twice = 2 * len(self.slow) / len(self.rest)
        return [row for row in self.means(lambda one: one.only) if row.rest_in * twice <= row.slow_in]

    @property
    def command(self) -> str:
        """Returns the command that shows the slowest call in the viewer."""
        call = self.slowest
        start = (call.start_ns - call.source.facts["start_ns"]) / 1e9
        between = f"--from {start:.6f}s --until {start + call.ns / 1e9:.6f}s"
        return f"vestige view {quote(call.source.path)} --no-children {between}"

    @property
    def thread(self) -> str:
        names = {thread["number"]: thread["name"] for thread in self.slowest.source.threads}
        return names.get(self.slowest.thread) or "(unnamed)"


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


# ---- as people and programs read it ------------------------------------------------


def show_slow(inputs: Inputs, options: Namespace, threads: dict[str, list[int]]) -> int:
    compared = Comparison(*find_calls(inputs, options.slow, threads))
    if options.format == "json":
        json.dump(_document(compared), sys.stdout, indent=1)
        print()
    else:
        for line in _lines(compared, options.n or ROWS):
            print(line)
    return int(inputs.failed)


def _lines(c: Comparison, rows: int) -> Iterable[str]:
    width, paint = width_of(sys.stdout), Paint(sys.stdout)
    yield f"{c.shown}: {plural(c.count, c.kind)}"
    yield f"half took {duration(c.p50_ns)} or longer, 1% {duration(c.p99_ns)}, the longest {duration(c.max_ns)}"
    share = c.slow_ns / (c.total_ns or 1)
    yield (
        f"the slowest tenth took {duration(c.from_ns)} or longer, {share:.0%} of the time; "
        f"on average, of {len(c.slow)} of them and of {len(c.rest)} of the others:"
    )
    yield paint(f"{'slow':>9}{'others':>10}{'calls':>16}  inside", "head")
    whole = SimpleNamespace(
        slow_ns=_mean(one.call.ns for one in c.slow), rest_ns=_mean(one.call.ns for one in c.rest), name="(all of it)"
    )
    yield f"{duration(whole.slow_ns):>9}{duration(whole.rest_ns):>10}{'':>16}  {whole.name}"
    for row in c.inside[:rows]:
        calls = f"{row.slow_calls:,.4g} / {row.rest_calls:,.4g}"
        yield f"{duration(row.slow_ns):>9}{duration(row.rest_ns):>10}{calls:>16}  {fit(row.name, max(width - 37, 20))}"
    for row in c.only:
        text = (
            f"{row.slow_in} of {len(c.slow)} slow ones, and {row.rest_in} of {len(c.rest)} others, have {row.name}: "
            f"{duration(row.slow_ns)} on average, others {duration(row.rest_ns)}."
        )
        yield from point(text, width)
    if c.slow_lengths > LONGER * c.rest_lengths:
        text = f"Arguments of the slow ones are {c.slow_lengths:,.0f} characters long, of others {c.rest_lengths:,.0f}."
        yield from point(text, width)
    after = duration(c.slowest.start_ns - c.slowest.source.facts["start_ns"])
    yield f"the slowest: {duration(c.max_ns)}, {after} after the start, in {c.thread}"
    yield f"  {c.command}"


def _document(c: Comparison) -> dict[str, Any]:
    return {
        "view": "slow",
        "name": c.shown,
        "kind": c.kind,
        "count": c.count,
        "p50_ns": c.p50_ns,
        "p99_ns": c.p99_ns,
        "max_ns": c.max_ns,
        "total_ns": c.total_ns,
        "slow_count": c.slow_count,
        "slow_from_ns": c.from_ns,
        "slow_ns": c.slow_ns,
        "compared": {"slow": len(c.slow), "rest": len(c.rest)},
        "inside": [vars(row) for row in c.inside],
        "only_slow": [vars(row) for row in c.only],
        "arguments": {"slow": c.slow_lengths, "rest": c.rest_lengths},
        "slowest": {
            "file": c.slowest.source.path,
            "thread": c.thread,
            "start_ns": c.slowest.start_ns,
            "duration_ns": c.slowest.ns,
            "arguments": c.slowest.arguments,
            "command": c.command,
        },
    }
