"""What a report shows: read from one trace or several, put together, chosen by thread and by function. The extension
adds up; nothing here goes over records. The report after `vestige run` uses it too, so it imports little.
"""

from __future__ import annotations

from vestige.reading.awaits import awaits, names_wait
from vestige.reading.kinds import GC, NATIVE, PYTHON
from vestige.reading.labels import plain_name, short_name
from vestige.reading.libraries import FOLLOWS, LIBRARY, OWN, classify
from vestige.reading.waits import CHILD, IO, LOCK, OBJECT, SLEEP, WORLD, waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from vestige._core import Trace
    from vestige.reading.libraries import Function

LEFT_OUT, WAITS, COLLECTS, NO_TIME, STEP, AWAITED = 1, 2, 4, 8, 16, 32  # marks, as Trace.report() takes them
IMPORT_BITS = 3  # of the last item of a row of the tree: what was imported; above them is the module's code
IS_WAIT = 7  # in these bits: a task waited; above them is for what kind of object


def shown_name(function: Function) -> str:
    """As in every table: `work.py(3): f`."""
    kind, name, _, file, line = function
    return f"{file}({line}): {name}" if kind == PYTHON else name


def budget_of(
    read: dict[str, Any], metadata: dict[str, Any], functions: Sequence[Function | None]
) -> list[tuple[float, dict[str, Any]]]:
    """The share that recording might take, and what was left out, from Trace.report(). Without a budget: nothing."""
    if "budget" not in read:
        return []
    told = read["budget"]
    found = [functions[number] for number in sorted(told["reduced"], key=told["reduced"].__getitem__, reverse=True)]
    reduced = [shown_name(function) for function in found if function is not None]
    return [(metadata.get("vestige.budget", 0.0), {**told, "reduced": reduced})]


def gil_holders(trace: Trace) -> list[tuple[str, str, int]]:
    """Threads that held the GIL while others waited for it: a name, the function that it was in for longest, and ns."""
    functions = trace.functions()
    names = {thread["number"]: thread["name"] or "(unnamed)" for thread in trace.threads()}
    found = []
    for number, place, ns in trace.gil_holders():
        function = functions[place]
        found.append((names.get(number, "?"), short_name(trace, place, function) if function else "?", ns))
    return found


def sum_if_known(one: int | None, other: int | None) -> int | None:
    """Running times may not be known."""
    return None if one is None or other is None else one + other


class Entry:
    """A function's sums over all that was read."""

    # fmt: off
    __slots__ = ("allocations", "calls", "error_ns", "file", "is_reduced", "kind", "library", "line", "name", "outer",
                 "running_ns", "self_bytes", "self_ns", "shown", "total_bytes", "total_ns")
    # fmt: on

    def __init__(self, function: Function, library: str) -> None:
        self.kind, self.name, self.file, _, self.line = function
        self.shown = shown_name(function)
        self.library = library
        self.calls = self.outer = self.self_ns = self.total_ns = 0
        self.self_bytes = self.total_bytes = self.allocations = 0
        self.running_ns: int | None = 0
        self.error_ns: int | None = 0  # of total_ns, if that is compensated or estimated
        self.is_reduced = False  # the estimate would be more, but there was no more time

    def add(
        self, known: Sequence[int | None], calls: int, outer: int, self_ns: int, total_ns: int, *memory: int
    ) -> None:
        self.running_ns = sum_if_known(self.running_ns, known[0])
        self.error_ns = sum_if_known(self.error_ns, known[1])
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
    __slots__ = ("allocations", "awaiting_ns", "calls", "children", "file", "function", "imports", "kind", "library",
                 "line", "name", "owner", "running_ns", "self_bytes", "self_ns", "shown", "total_bytes", "total_ns",
                 "waits")
    # fmt: on

    def __init__(
        self, function: Function | None = None, owner: str = OWN, library: str = "", imports: str = ""
    ) -> None:
        self.kind, self.name, self.file, _, self.line = function or (0, "", "", "", 0)
        self.function = shown_name(function) if function else ""
        self.imports = imports  # `import pandas`: then the function is the import system's
        self.shown = imports or self.function
        self.owner = owner
        self.library = library
        self.calls = self.self_ns = self.total_ns = self.self_bytes = self.total_bytes = self.allocations = 0
        self.running_ns: int | None = 0
        self.awaiting_ns = 0  # how long tasks waited, here and below; not among the other times
        self.waits = 0  # of a leaf that stands for waits: how many
        self.children: dict[str, Node] = {}

    @property
    def reach_ns(self) -> int:
        """What it is ranked by: its time, or that of the waits below."""
        return max(self.total_ns, self.awaiting_ns)

    def child(self, function: Function, owner: str, library: str, imports: str = "") -> Node:
        key = imports or shown_name(function)
        if owner == FOLLOWS:
            owner, library = (self.owner, self.library) if self.shown else (LIBRARY, "")
        node = self.children.get(key)
        if node is None:
            node = self.children[key] = Node(function, owner, library, imports)
        return node

    def wait(self, what: str) -> Node:
        """The leaf that stands for waits of tasks."""
        shown = f"[await] {what}"
        if shown not in self.children:
            node = self.children[shown] = Node()
            node.shown = node.function = node.name = shown
        return self.children[shown]


class Thread:
    """`self_ns` is all of its time, or, where waiting is left out, the time it worked."""

    # fmt: off
    __slots__ = ("calls", "first_ns", "gc_ns", "gil_ns", "last_ns", "name", "paused", "pid", "preempted_ns",
                 "running_ns", "self_ns", "tid", "top", "top_shown", "waited", "waiting_ns")
    # fmt: on

    def __init__(self, pid: int, facts: dict[str, Any], sums: Sequence[Any]) -> None:
        self.calls, self.self_ns, self.waiting_ns, self.gc_ns = sums[1:5]
        self.first_ns: int = sums[5]
        self.last_ns: int = sums[6]
        self.running_ns: int | None = sums[7]
        self.gil_ns: int | None = sums[8]
        self.preempted_ns: int | None = sums[9]
        self.waited: dict[str, int] = dict(zip((LOCK, IO, SLEEP, CHILD), sums[10]))  # where running_ns is known
        self.paused: dict[str, int] = dict(zip((OBJECT, WORLD), sums[10][4:]))  # empty where it is not known
        self.pid = pid
        self.tid = facts.get("tid", 0)
        self.name = facts.get("name") or "(unnamed)"
        self.top = self.top_shown = ""  # the function that took most of its time; the latter for people

    def waited_ns(self, kind: str) -> int | None:
        """How long it waited in calls that wait for this, without what it ran or waited for the GIL there."""
        return None if self.running_ns is None else self.waited[kind]


class Step:
    """A step of an event loop; `thread` is the number that its thread has in the trace."""

    __slots__ = ("ns", "pid", "start_ns", "thread", "thread_name", "tid")

    def __init__(self, start_ns: int, ns: int, pid: int, thread: int, thread_name: str, tid: int) -> None:
        self.start_ns, self.ns = start_ns, ns
        self.pid, self.thread, self.thread_name, self.tid = pid, thread, thread_name, tid


class Steps:
    """Steps of event loops, and those that block one, the longest first."""

    def __init__(self) -> None:
        self.count = self.blocking = self.blocking_ns = 0
        self.longest: list[Step] = []

    def add(
        self, steps: tuple[int, int, int, list[tuple[int, int, int]]], pid: int, threads: dict[int, tuple[str, int]]
    ) -> None:
        """`threads`: the names and tids of their numbers."""
        count, blocking, ns, longest = steps
        self.count += count
        self.blocking += blocking
        self.blocking_ns += ns
        self.longest += [
            Step(start, took, pid, thread, *threads.get(thread, ("?", 0))) for start, took, thread in longest
        ]
        self.longest.sort(key=lambda step: -step.ns)


def _is_named(function: Function, name: str) -> bool:
    """As the recorder matches names: by the end of the qualified name; a pattern by all of it, or by its last part."""
    full = function[1]
    if function[0] != PYTHON:
        return False
    if full == name or full.endswith(f".{name}") or not set("*?[") & set(name):
        return full == name or full.endswith(f".{name}")
    from fnmatch import fnmatchcase

    return fnmatchcase(full, name) or fnmatchcase(full.rpartition(".")[2], name)


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
        self.steps = Steps()
        # Function, as it is shown, its file and line, arguments, calls, ns.
        self.repeats: list[tuple[str, str, str, int, str, int, int]] = []
        self.calls = 0
        self.traces = 0
        self.processor_waits: dict[int, int] = {}  # by tid: how long the thread waited for a processor, if that is told
        self.budgets: list[tuple[float, dict[str, Any]]] = []  # see budget_of()
        self.only: dict[str, bool] = {}  # names that --only was given, and whether such a function was called

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
        waits_of = metadata.get("vestige.processor_waits", {})
        self.processor_waits |= {int(tid): ns for tid, ns in waits_of.items() if tid.isdecimal() and ns > 0}
        self.budgets += budget_of(read, metadata, functions)
        for name in metadata.get("vestige.only", ()):
            self.only[name] = self.only.get(name, False) or any(f and _is_named(f, name) for f in functions)
        self._add_functions(read, functions, libraries, 0 if together else self.traces)
        self._add_tree(trace, read.get("tree", ()), functions, owners, libraries)
        self._add_collections(read, functions, trace.threads())
        calls = self._add_threads(trace, read, functions, pid)
        self.calls += calls
        self._add_notable(read, functions, trace, pid)
        for number, _, ns in read["waits"]:
            function = functions[number]
            kind = waits_for(function[1]) if function else ""
            self.waits[kind] = self.waits.get(kind, 0) + ns
        return calls

    def _add_notable(self, read: dict[str, Any], functions: Sequence[Function | None], trace: Trace, pid: int) -> None:
        if "steps" in read:
            threads = {one["number"]: (one["name"] or "(unnamed)", one.get("tid", 0)) for one in trace.threads()}
            self.steps.add(read["steps"], pid, threads)
        for number, arguments, calls, ns in read.get("repeats", ()):
            function = functions[number]
            if function is not None:
                _, name, file, _, line = function
                self.repeats.append((name, shown_name(function), file, line, arguments, calls, ns))

    def leave_out_waits(self) -> None:
        """As if `add` had been told to: takes calls that only wait, and their time, out of the tree and the threads."""
        self.without_waits = True
        for thread in self.threads:
            thread.self_ns -= thread.waiting_ns
        order = [self.tree]
        parents: dict[int, Node] = {}
        for node in order:  # grows meanwhile: parents first
            order.extend(node.children.values())
            parents.update((id(child), node) for child in node.children.values())
        gone: dict[int, int] = {}  # ns, by id of a node
        for node in reversed(order):
            ns = gone.get(id(node), 0)
            if node.kind == NATIVE and waits_for(node.name):
                ns = node.total_ns
                del parents[id(node)].children[node.shown]
            node.total_ns -= ns
            if id(node) in parents:
                above = id(parents[id(node)])
                gone[above] = gone.get(above, 0) + ns

    def _add_functions(
        self, read: dict[str, Any], functions: Sequence[Function | None], libraries: list[str], part: int
    ) -> None:
        reduced = set(read["budget"]["reduced"]) if "budget" in read else set()
        for number, *sums in read.get("functions", ()):
            function = functions[number]
            if function is None:
                continue
            key = (part, number) if part else shown_name(function)
            entry = self.functions.get(key)
            if entry is None:
                entry = self.functions[key] = Entry(function, libraries[number])
            entry.add(sums[-2:], *sums[:7])
            entry.is_reduced |= number in reduced

    def _add_tree(
        self,
        trace: Trace,
        rows: Iterable[tuple[Any, ...]],
        functions: Sequence[Function | None],
        owners: list[str],
        libraries: list[str],
    ) -> None:
        nodes: list[Node] = []
        chain: list[int] = []  # the parent of each
        for parent, number, calls, self_ns, total_ns, self_bytes, total_bytes, allocations, running_ns, key in rows:
            function = functions[number] or (NATIVE, "?", "", "", 0)
            above = nodes[parent] if parent >= 0 else self.tree
            chain.append(parent)
            if key & IS_WAIT == IS_WAIT:
                what = function[1] if names_wait(function) else awaits(key >> IMPORT_BITS, function)
                leaf = above.wait(what)
                leaf.waits += calls
                nodes.append(leaf)
                at = len(nodes) - 1
                while at >= 0:
                    nodes[at].awaiting_ns += total_ns
                    at = chain[at]
                self.tree.awaiting_ns += total_ns
                continue
            imports = trace.import_name(key) if key else ""
            whose = key >> IMPORT_BITS or number  # an import is the module's own, or a library's
            node = above.child(function, owners[whose], libraries[whose], imports)
            nodes.append(node)
            node.calls += calls
            node.self_ns += self_ns
            node.total_ns += total_ns
            node.self_bytes += self_bytes
            node.total_bytes += total_bytes
            node.allocations += allocations
            node.running_ns = sum_if_known(node.running_ns, running_ns)
            if parent < 0:
                self.tree.total_ns += total_ns

    def _add_threads(self, trace: Trace, read: dict[str, Any], functions: Sequence[Function | None], pid: int) -> int:
        """The calls of all threads."""
        by_number = {thread["number"]: thread for thread in trace.threads()}
        for *sums, top in read["threads"]:
            thread = Thread(pid, by_number.get(sums[0], {}), sums)
            function = functions[top]
            if function:
                thread.top = plain_name(function[1]) if function[0] == NATIVE else function[1]
                thread.top_shown = short_name(trace, top, function)
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
    kind, name, file = function[:3]
    if kind == GC:
        return COLLECTS
    if kind == PYTHON and name.endswith("_run") and file.endswith("/asyncio/events.py"):
        return STEP
    if kind == PYTHON and names_wait(function):
        return AWAITED
    if kind != NATIVE:
        return 0
    return 0 if not waits_for(name) else WAITS if waits else WAITS | NO_TIME
