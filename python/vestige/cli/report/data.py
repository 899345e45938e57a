"""What a report shows: read from one trace or several, put together, chosen by thread and by function. The extension
adds up; nothing here goes over records. The report after `vestige run` uses it too, so it imports little.
"""

from __future__ import annotations

from vestige.reading.kinds import GC, NATIVE, PYTHON
from vestige.reading.libraries import FOLLOWS, LIBRARY, OWN, classify
from vestige.reading.waits import waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from vestige._core import Trace
    from vestige.reading.libraries import Function

LEFT_OUT, WAITS, COLLECTS, NO_TIME = 1, 2, 4, 8  # marks, as Trace.report() takes them


def shown_name(function: Function) -> str:
    """As in every table: `work.py(3): f`."""
    kind, name, _, file, line = function
    return f"{file}({line}): {name}" if kind == PYTHON else name


def plain_name(name: str) -> str:
    """`acquire` of `<built-in method acquire of _thread.lock object>`"""
    words = name.split(" ", 3)
    return words[2].rstrip(">") if name.startswith("<built-in ") and len(words) > 2 else name


def _short_name(function: Function) -> str:
    return plain_name(function[1]) if function[0] == NATIVE else function[1]


class Entry:
    """A function's sums over all that was read."""

    # fmt: off
    __slots__ = ("allocations", "calls", "file", "kind", "library", "line", "name", "outer", "self_bytes", "self_ns",
                 "shown", "total_bytes", "total_ns")
    # fmt: on

    def __init__(self, function: Function, library: str) -> None:
        self.kind, self.name, self.file, _, self.line = function
        self.shown = shown_name(function)
        self.library = library
        self.calls = self.outer = self.self_ns = self.total_ns = 0
        self.self_bytes = self.total_bytes = self.allocations = 0

    def add(self, calls: int, outer: int, self_ns: int, total_ns: int, *memory: int) -> None:
        self.calls += calls
        self.outer += outer
        self.self_ns += self_ns
        self.total_ns += total_ns
        self.self_bytes += memory[0]
        self.total_bytes += memory[1]
        self.allocations += memory[2]


class Node:
    """A function, called from one place in the tree."""

    # fmt: off
    __slots__ = ("allocations", "calls", "children", "file", "kind", "library", "line", "name", "owner", "self_bytes",
                 "self_ns", "shown", "total_bytes", "total_ns")
    # fmt: on

    def __init__(self, function: Function | None = None, owner: str = OWN, library: str = "") -> None:
        self.kind, self.name, self.file, _, self.line = function or (0, "", "", "", 0)
        self.shown = shown_name(function) if function else ""
        self.owner = owner
        self.library = library
        self.calls = self.self_ns = self.total_ns = self.self_bytes = self.total_bytes = self.allocations = 0
        self.children: dict[str, Node] = {}

    def child(self, function: Function, owner: str, library: str) -> Node:
        key = shown_name(function)
        if owner == FOLLOWS:
            owner, library = (self.owner, self.library) if self.shown else (LIBRARY, "")
        node = self.children.get(key)
        if node is None:
            node = self.children[key] = Node(function, owner, library)
        return node


class Thread:
    """`self_ns` is all of its time, or, where waiting is left out, the time it worked."""

    __slots__ = ("calls", "first_ns", "gc_ns", "last_ns", "name", "pid", "self_ns", "tid", "top", "waiting_ns")

    def __init__(self, pid: int, facts: dict[str, Any], sums: Sequence[int]) -> None:
        _, self.calls, self.self_ns, self.waiting_ns, self.gc_ns, self.first_ns, self.last_ns = sums
        self.pid = pid
        self.tid = facts.get("tid", 0)
        self.name = facts.get("name") or "(unnamed)"
        self.top = ""


class Data:
    """All that was read. What was not asked for is empty."""

    def __init__(self) -> None:
        self.functions: dict[Any, Entry] = {}
        self.tree = Node()
        self.threads: list[Thread] = []
        self.generations: dict[int, list[int]] = {}
        self.longest: list[tuple[int, int, str, int, int]] = []
        self.gc_in: dict[str, list[int]] = {}
        self.waits: dict[str, int] = {}  # ns by what was waited for, of all threads
        self.without_waits = False
        self.calls = 0
        self.traces = 0

    @property
    def gc_ns(self) -> int:
        return sum(sums[1] for sums in self.generations.values())

    @property
    def waiting_ns(self) -> int:
        return sum(self.waits.values())

    @property
    def threads_ns(self) -> int:
        """The time of all threads added up, which shares are of. Where waiting is left out, without that."""
        return sum(thread.self_ns for thread in self.threads)

    def add(
        self,
        trace: Trace,
        metadata: dict[str, Any],
        *,
        choose: Callable[[Sequence[Function | None]], Iterable[int]] | None = None,
        only_threads: Sequence[int] | None = None,
        together: bool = False,
        waits: bool = True,
        **wanted: Any,
    ) -> int:
        """Reads a trace; gives the calls of it. `choose` names ids to leave out; `together`: functions of the same name
        in several traces are one; without `waits`, calls that only wait are left out with their time.
        """
        functions = trace.functions()
        marks = bytearray(_mark(function, waits) for function in functions)
        self.without_waits |= not waits
        for number in choose(functions) if choose else ():
            if not marks[number] & NO_TIME:
                marks[number] |= LEFT_OUT
        read = trace.report(marks=bytes(marks), only_threads=only_threads, threads=True, gc=True, **wanted)
        owners, libraries = classify(functions, metadata)
        pid = trace.info()["pid"]
        self.traces += 1
        self._add_functions(read.get("functions", ()), functions, libraries, 0 if together else self.traces)
        self._add_tree(read.get("tree", ()), functions, owners, libraries)
        self._add_collections(read, functions, trace.threads())
        calls = self._add_threads(read, functions, trace.threads(), pid)
        self.calls += calls
        for number, _, ns in read["waits"]:
            function = functions[number]
            kind = waits_for(function[1]) if function else ""
            self.waits[kind] = self.waits.get(kind, 0) + ns
        return calls

    def _add_functions(
        self, rows: Iterable[tuple[Any, ...]], functions: Sequence[Function | None], libraries: list[str], part: int
    ) -> None:
        for number, *sums in rows:
            function = functions[number]
            if function is None:
                continue
            key = (part, number) if part else shown_name(function)
            entry = self.functions.get(key)
            if entry is None:
                entry = self.functions[key] = Entry(function, libraries[number])
            entry.add(*sums[:7])

    def _add_tree(
        self,
        rows: Iterable[tuple[int, ...]],
        functions: Sequence[Function | None],
        owners: list[str],
        libraries: list[str],
    ) -> None:
        nodes: list[Node] = []
        for parent, number, calls, self_ns, total_ns, self_bytes, total_bytes, allocations in rows:
            function = functions[number] or (NATIVE, "?", "", "", 0)
            above = nodes[parent] if parent >= 0 else self.tree
            node = above.child(function, owners[number], libraries[number])
            nodes.append(node)
            node.calls += calls
            node.self_ns += self_ns
            node.total_ns += total_ns
            node.self_bytes += self_bytes
            node.total_bytes += total_bytes
            node.allocations += allocations
            if parent < 0:
                self.tree.total_ns += total_ns

    def _add_threads(
        self, read: dict[str, Any], functions: Sequence[Function | None], facts: list[dict[str, Any]], pid: int
    ) -> int:
        """The calls of all threads."""
        by_number = {thread["number"]: thread for thread in facts}
        for *sums, top in read["threads"]:
            thread = Thread(pid, by_number.get(sums[0], {}), sums)
            function = functions[top]
            thread.top = _short_name(function) if function else ""
            self.threads.append(thread)
        return sum(sums[1] for sums in read["threads"])

    def _add_collections(
        self, read: dict[str, Any], functions: Sequence[Function | None], facts: list[dict[str, Any]]
    ) -> None:
        names = {thread["number"]: thread["name"] or "(unnamed)" for thread in facts}
        for generation, count, ns, longest, collected, uncollectable in read["gc"]["generations"]:
            sums = self.generations.setdefault(generation, [0, 0, 0, 0, 0])
            sums[0] += count
            sums[1] += ns
            sums[2] = max(sums[2], longest)
            sums[3] += collected
            sums[4] += uncollectable
        for start, ns, thread, generation, collected in read["gc"]["longest"]:
            self.longest.append((start, ns, names.get(thread, "?"), generation, collected))
        self.longest.sort(key=lambda one: -one[1])
        for number, count, ns in read.get("gc_in", ()):
            function = functions[number]
            sums = self.gc_in.setdefault(shown_name(function) if function else "(no function)", [0, 0])
            sums[0] += count
            sums[1] += ns


def _mark(function: Function | None, waits: bool) -> int:
    if function is None:
        return 0
    kind, name = function[:2]
    if kind == GC:
        return COLLECTS
    if kind != NATIVE:
        return 0
    return 0 if not waits_for(name) else WAITS if waits else WAITS | NO_TIME
