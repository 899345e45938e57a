"""Counts of a run, which do not depend on the clock: calls, queries, exceptions, imports, operators and allocations, by
function. Two runs of a program have the same counts, except where threads, timers or hash seeds decide. Such functions
are shown, but no verdict depends on them: those whose counts differ between the runs of a side, and those that by their
file serve threads.
"""

from __future__ import annotations

import re

from vestige.cli.report.data import shown_name
from vestige.reading.kinds import ANNOTATION, NATIVE, OPERATOR, PYTHON
from vestige.reading.libraries import OWN
from vestige.reading.memory import read_memory

from .data import keys_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vestige.cli.report.data import Node
    from vestige.reading.inputs import Source

    from .data import Key, Run

FIGURES = ("calls", "queries", "exceptions", "imports", "operators", "allocations", "bytes")
EXCEPTIONS, STACK = "vestige.exceptions", "with_stack"  # metadata of recordings that have exceptions, or calls
EVENTS = (PYTHON, NATIVE, ANNOTATION, OPERATOR)  # kinds whose spans count
# Modules of database drivers, and the functions that send a statement.
DRIVERS = {"sqlite3", "psycopg", "psycopg2", "asyncpg", "pymysql", "MySQLdb", "mysql", "pyodbc", "oracledb", "duckdb"}
QUERIES = {"execute", "executemany", "executescript", "callproc", "fetch", "fetchrow", "fetchval"}
NATIVE_METHOD = re.compile(r"<(?:built-in )?method (\w+) of ([\w.]+) object")
# How often these run depends on the order in which threads run, and on timers.
SERVES_THREADS = re.compile(
    r"^(?:_thread|_queue|_imp|select|_asyncio|_weakref)\b|(?:^|/)(?:threading|queue|selectors|_weakrefset|weakref)\.py$"
    r"|(?:^|/)(?:concurrent/futures|multiprocessing|asyncio)/|^<frozen importlib"
)
# Parts of names that another run of the same program has otherwise.
CHANGING = (
    (re.compile(r"0x[0-9a-fA-F]{4,}"), "0x*"),
    (re.compile(r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}"), "*"),  # a UUID
    (re.compile(r"(^|/)tmp[a-z0-9_]{8}(?=/)"), r"\1tmp*"),  # of tempfile
    (re.compile(r"(^|/)(pytest|ipykernel)[-_]\d+(?=/)"), r"\1\2-*"),
    (re.compile(r"(^|/)proc/\d+(?=/)"), r"\1proc/*"),
)


def steady_name(name: str) -> str:
    """Removes addresses, ids and temporary folders from a name."""
    for pattern, instead in CHANGING:
        name = pattern.sub(instead, name)
    return name


class Around:
    """The functions around a call: the nearest of the user's own, and whether one is a query, or the caller serves
    threads.
    """

    __slots__ = ("is_query", "near", "serves")

    def __init__(self, near: str = "", is_query: bool = False, serves: bool = False) -> None:
        self.near, self.is_query, self.serves = near, is_query, serves


class Counts:
    """The counts of one run by (what, function). `near` has each count by the user's own function that is nearest
    around it, and `shown` how a function is shown, with its line.
    """

    def __init__(self, run: Run) -> None:
        self.own: dict[tuple[str, str], int] = {}
        self.near: dict[tuple[str, str], int] = {}
        self.shown: dict[str, str] = {}
        self.unsteady: set[str] = set()
        self._owned: set[str] = set()  # the user's own functions
        self._run = run
        work: list[tuple[Node, Around]] = [(child, Around()) for child in run.tree.children.values()]
        while work:
            node, around = work.pop()
            around = self._take(node, around)
            work += [(child, around) for child in node.children.values()]
        for source in run.sources:
            self._take_exceptions(source)
            if source.facts["memory"]:
                self._take_allocations(source)

    def _take_exceptions(self, source: Source) -> None:
        """Counts the exceptions that each function raised, if they were recorded."""
        trace = source.open()
        functions = trace.functions()
        keys = keys_of(functions)
        for row in trace.tables(["exceptions"])["exceptions"]:
            function = functions[row.raised_in] if row.raised_in is not None else None
            if function is not None:
                name = steady_name(_name_of(keys[row.raised_in]))
                self.shown.setdefault(name, shown_name(function))
                self._add("exceptions", name, name if name in self._owned else "", row.exceptions)

    def _take_allocations(self, source: Source) -> None:
        """Counts the allocations of each function, which are known without calls, too."""
        for amount, frame in read_memory(source.open(), rows=-1, stacks=False).lines["total"]:
            name = steady_name(f"{frame.shown_file}: {frame.function}")
            self.shown.setdefault(name, f"{frame.shown_file}:{frame.line}: {frame.function}")
            if SERVES_THREADS.search(frame.shown_file):
                self.unsteady.add(name)
            self._add("allocations", name, name, amount.count)
            self._add("bytes", name, name, amount.bytes)

    def _take(self, node: Node, around: Around) -> Around:
        """Counts a node; returns what is around the calls inside."""
        key = self._run.keys.get(node.function)
        if not node.imports and (key is None or node.kind not in EVENTS):
            return around
        name = steady_name(node.imports or _name_of(key))
        is_own = node.owner == OWN and node.kind == PYTHON and not node.imports
        serves = not node.imports and key is not None and bool(SERVES_THREADS.search(key[1] or _module_of(node)))
        if around.serves and not serves and not is_own:  # called as often as the functions that serve threads like
            name, serves = f"{name}, for threads", True
        if serves:
            self.unsteady.add(name)
        self.shown.setdefault(name, node.shown)
        near = around.near
        if is_own:
            self._owned.add(name)
            near = name
        is_query = not around.is_query and _is_query(node)
        counted = "imports" if node.imports else "operators" if node.kind == OPERATOR else "calls"
        self._add(counted, name, near, node.calls)
        self._add("queries", name, near, node.calls * is_query)
        return Around(near, around.is_query or is_query, serves)

    def _add(self, what: str, name: str, near: str, count: int) -> None:
        if count:
            self.own[what, name] = self.own.get((what, name), 0) + count
            if name not in self.unsteady:
                self.near[what, near] = self.near.get((what, near), 0) + count


def _name_of(key: Key | None) -> str:
    if key is None:
        return ""
    _, file, name, number = key
    again = f" #{number + 1}" if number else ""
    return f"{file}: {name}{again}" if file else f"{name}{again}"


def _module_of(node: Node) -> str:
    found = NATIVE_METHOD.match(node.name)
    return found[2] if found else node.library or node.file


def _is_query(node: Node) -> bool:
    if node.kind == NATIVE:
        found = NATIVE_METHOD.match(node.name)
        return bool(found) and found[1] in QUERIES and found[2].partition(".")[0] in DRIVERS  # type: ignore[index]
    return node.kind == PYTHON and node.library in DRIVERS and node.name.rpartition(".")[2] in QUERIES


def inexact(runs: Iterable[Run], figures: Iterable[str]) -> list[str]:
    """Returns a sentence for each reason why counts of these kinds are not those of the program."""
    found: list[str] = []
    wanted = set(figures)
    for run in runs:
        for source in run.sources:
            facts, metadata = source.facts, source.metadata
            missing = facts["lost"] + facts["dropped"]
            if missing:
                found.append(f"{source.path}: {missing:,} records are missing")
            if facts["left_out"] or run.budgets:
                found.append(f"{source.path}: calls were left out by their times")
            if wanted & {"allocations", "bytes"} and not facts["memory"]:
                found.append(f"{source.path}: allocations were not recorded; vestige memory records them")
            if "exceptions" in wanted and EXCEPTIONS not in metadata:
                found.append(f"{source.path}: exceptions were not recorded; --exceptions records them")
            if wanted & {"calls", "queries", "imports", "operators"} and STACK not in metadata:
                found.append(f"{source.path}: calls were not recorded")
    return found


class Count:
    """One count before and after. `doubt`: why no verdict depends on the count, or ""."""

    def __init__(self, what: str, name: str, before: Sequence[int], after: Sequence[int], doubt: str) -> None:
        self.what, self.name = what, name
        self.before, self.after = _usual(before), _usual(after)
        self.doubt = doubt

    @property
    def difference(self) -> int:
        return self.after - self.before

    @property
    def size(self) -> int:
        return abs(self.difference)


def _usual(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2]


class CountsComparison:
    """The counts of both sides."""

    def __init__(self, before: Sequence[Run], after: Sequence[Run]) -> None:
        self._sides = [[Counts(run) for run in runs] for runs in (before, after)]
        keys = dict.fromkeys(key for side in self._sides for counts in side for key in counts.own)
        self.counts = [self._count(*key) for key in keys]
        self.totals = {what: self._total(what) for what in FIGURES if any(key[0] == what for key in keys)}

    def _count(self, what: str, name: str) -> Count:
        sides = [[counts.own.get((what, name), 0) for counts in side] for side in self._sides]
        doubt = ""
        if any(len(set(side)) > 1 for side in sides):
            doubt = "differs between runs of a side"
        elif any(name in counts.unsteady for side in self._sides for counts in side):
            doubt = "depends on threads"
        return Count(what, name, sides[0], sides[1], doubt)

    def _total(self, what: str) -> Count:
        known = [count for count in self.counts if count.what == what and not count.doubt]
        return Count(what, "", [sum(count.before for count in known)], [sum(count.after for count in known)], "")

    def changed(self) -> list[Count]:
        """Returns the counts that differ, the largest difference of each kind first; those in doubt come last."""
        found = [count for count in self.counts if count.difference or count.doubt.startswith("differs")]
        return sorted(found, key=lambda one: (bool(one.doubt), FIGURES.index(one.what), -one.size, one.name))

    def cause(self, what: str) -> str:
        """Returns a sentence about the user's own function that is nearest to most of what was added."""
        near = dict.fromkeys(
            name for side in self._sides for counts in side for key, name in counts.near if key == what
        )
        grown = {name: self._change("near", what, name) for name in near}
        name = max(grown, key=lambda one: grown[one][1] - grown[one][0], default="")
        before, after = grown.get(name, (0, 0))
        if after <= before or not name:
            return ""
        called_before, called = self._change("own", "calls", name)
        more = f"+{after - before:,} {what}"
        shown = self._shown(name)
        if called == called_before:
            return f"{shown}: {more}" + (f" in {called:,} call{'s' * (called != 1)}" if called else "")
        return f"{shown} is called {_times(called)}, was {called_before:,}: {more}"

    def _change(self, of: str, what: str, name: str) -> tuple[int, int]:
        values = [[getattr(counts, of).get((what, name), 0) for counts in side] for side in self._sides]
        return _usual(values[0]), _usual(values[1])

    def _shown(self, name: str) -> str:
        known: Iterable[Counts] = (*self._sides[1], *self._sides[0])
        return next(counts.shown[name] for counts in known if name in counts.shown)


def _times(calls: int) -> str:
    return "once" if calls == 1 else f"{calls:,} times"
