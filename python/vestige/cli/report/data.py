"""The data of a report: read from one or several traces, merged, and filtered by thread and by function. The extension
adds up; this file never goes over records. The report after `vestige run` uses it too, so it imports little.
"""

from __future__ import annotations

from vestige._core import Function, merge_histograms
from vestige.reading.awaits import awaits, names_wait
from vestige.reading.durations import KINDS, TABLE, Durations
from vestige.reading.kinds import GC, NATIVE, PYTHON, REPORT_NAMES
from vestige.reading.labels import plain_name, short_name
from vestige.reading.libraries import FOLLOWS, LIBRARY, OWN, classify
from vestige.reading.report_columns import FUNCTIONS
from vestige.reading.sums import Sums
from vestige.reading.waits import SPIN, WAITED_NS

from .lines import TABLE as LINES
from .lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from vestige._core import Rows, Trace

LEFT_OUT, WAITS, COLLECTS, NO_TIME, STEP, AWAITED, UNTIMED, CHOSEN = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
)  # marks for Trace.tables()
BUDGET = ("budget", "reduced_estimates")
ALWAYS = ("threads", "waits", "collections", "long_collections", *BUDGET)  # tables that every report reads
UNKNOWN = -1
FOR_TREE = ("calls", "steps", "long_steps", LINES)
FOR_FINDINGS = (*FOR_TREE, "repeats", "lock_waits", TABLE)
# Functions whose calls findings count, however short they are.
COUNTED = {
    "BoundedSemaphore.release", "Popen.poll", "Queue.get", "Queue.put", "Semaphore.__exit__", "Semaphore.acquire",
    "Semaphore.release",
}  # fmt: skip
COUNTED_OF_DICTIONARIES = {"popitem", "pop", "clear"}
SMALLER = 64  # when a tree is read, no share is known: calls are kept that are this many times shorter than those shown


def shown_name(function: Function) -> str:
    """Returns the name that every table shows: `work.py:3: f`."""
    if function.kind != PYTHON:
        return function.name
    return f"{function.shown_file}:{function.line}: {function.name}"


class Named:
    """A row of a table of the core, with names and other facts added here."""

    _row: Any = None

    def __init__(self, row: Any, **more: Any) -> None:
        self._row = row
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)

    if TYPE_CHECKING:  # any attribute may be added

        def __setattr__(self, name: str, value: Any) -> None: ...


def budget_of(read: dict[str, Rows], metadata: dict[str, Any], functions: Sequence[Function | None]) -> list[Named]:
    """Returns a row for a recording with a budget, from the tables BUDGET; empty without a budget. `reduced`: functions
    whose estimates were larger than the time that their threads had.
    """
    rows = sorted(read["reduced_estimates"], key=lambda row: -row.reduced_ns)
    found = [functions[row.func] for row in rows]
    reduced = [shown_name(function) for function in found if function is not None]
    return [Named(row, share=metadata.get("vestige.budget", 0.0), reduced=reduced) for row in read["budget"]]


def gil_holders(trace: Trace) -> list[Named]:
    """Returns the threads that held the GIL while others waited for it, each with the function that it was in for
    longest.
    """
    functions = trace.functions()
    names = {thread["number"]: thread["name"] or "(unnamed)" for thread in trace.threads()}
    found = []
    for row in trace.tables(["gil_holders"])["gil_holders"]:
        function = functions[row.func]
        shown = short_name(trace, row.func, function) if function else "?"
        found.append(Named(row, thread=names.get(row.thread, "?"), function=shown))
    return found


class Entry:
    """A function, over all traces that were read. Its other attributes are the columns of its rows in the table
    `functions`.
    """

    # fmt: off
    __slots__ = ("_rows", "durations", "file", "is_reduced", "kind", "library", "line", "name", "shown", "waits_for")
    # fmt: on

    def __init__(self, function: Function, library: str) -> None:
        self.kind, self.name = function.kind, function.name
        self.file, self.line = function.file, function.line
        self.shown = shown_name(function)
        self.waits_for = (function.waits_for if function.only_waits else "") or ""
        self.library = library
        self.is_reduced = False  # the estimate would be larger if the threads had had more time
        self.durations: Durations | None = None  # None: the table was not read
        self._rows: list[Any] = []  # rows of the table `functions`, one for each trace

    @property
    def kind_name(self) -> str:
        return REPORT_NAMES.get(self.kind, "?")

    @property
    def p50_ns(self) -> int | None:
        return self.durations.p50_ns if self.durations is not None else None

    @property
    def p99_ns(self) -> int | None:
        return self.durations.p99_ns if self.durations is not None else None

    def add(self, row: Any) -> None:
        self._rows.append(row)

    def __getattr__(self, name: str) -> Any:
        values = [getattr(row, name) for row in self._rows]
        if len(values) == 1:
            return values[0]
        return None if None in values else FUNCTIONS.merges.get(name, sum)(values)


class Node(Sums):
    """A function, called from one place in the tree."""

    # fmt: off
    __slots__ = ("awaiting_ns", "called_at", "caller", "children", "file", "function", "imports", "kind", "library",
                 "line", "name", "only_waits", "owner", "shown", "waits", "waits_for")
    # fmt: on

    def __init__(
        self, function: Function | None = None, owner: str = OWN, library: str = "", imports: str = ""
    ) -> None:
        super().__init__()
        self.kind, self.name = (function.kind, function.name) if function else (0, "")
        self.file, self.line = (function.file, function.line) if function else ("", 0)
        self.function = shown_name(function) if function else ""
        self.waits_for: str = (function.waits_for if function else "") or ""
        self.only_waits = bool(function and function.only_waits)
        self.imports = imports  # such as `import pandas`; `function` is then a function of the import system
        self.shown = imports or self.function
        self.owner = owner
        self.library = library
        self.awaiting_ns = 0  # how long tasks waited, in this node and below; not part of the other times
        self.caller = ""  # the nearest Python function around it, and the line there: `app.py:17`
        self.called_at = ""
        self.waits = 0  # for a leaf that stands for waits: their number
        self.children: dict[str, Node] = {}

    @property
    def waited_ns(self) -> int:
        """How long the calls waited, without the calls inside them. The whole time of a loop that spins is waiting."""
        if self.only_waits or self.waits_for == SPIN:
            return self.total_ns
        return self.self_ns if self.waits_for and self.self_ns >= WAITED_NS * max(self.calls, 1) else 0

    @property
    def reach_ns(self) -> int:
        """The time by which the node is ranked: its own, or that of the waits below."""
        return max(self.total_ns, self.awaiting_ns)

    def child(self, function: Function, owner: str, library: str, imports: str = "") -> Node:
        key = imports or shown_name(function)
        if owner == FOLLOWS:
            owner, library = (self.owner, self.library) if self.shown else (LIBRARY, "")
        node = self.children.get(key)
        if node is None:
            node = self.children[key] = Node(function, owner, library, imports)
            node.caller = self.function if self.kind == PYTHON else self.caller
        return node

    def wait(self, what: str) -> Node:
        """Returns the leaf that stands for waits of tasks."""
        shown = f"[await] {what}"
        if shown not in self.children:
            node = self.children[shown] = Node()
            node.shown = node.function = node.name = shown
        return self.children[shown]


class Loop:
    """The event loop of a thread: the number of its steps, and the steps that block it, the longest first."""

    def __init__(self, pid: int, thread: int, thread_name: str, tid: int) -> None:
        self.pid, self.thread, self.thread_name, self.tid = pid, thread, thread_name, tid
        self.count = self.blocking = self.blocking_ns = 0
        self.longest: list[Named] = []


class Steps:
    """The steps of all event loops."""

    def __init__(self) -> None:
        self.count = 0
        self.loops: dict[tuple[int, int], Loop] = {}  # by process and thread
        self._histograms: list[str] = []

    def quantile(self, share: float) -> int:
        """Returns the time below which this share of the steps stayed."""
        return merge_histograms(self._histograms, [share])[1][0]

    def add(self, sums: Rows, longest: Rows, pid: int, threads: dict[int, tuple[str, int]]) -> None:
        """Adds the tables of a trace. `threads` has names and tids by the numbers of threads."""
        for row in sums:
            name, tid = threads.get(row.thread, ("?", 0))
            loop = self.loops.setdefault((pid, row.thread), Loop(pid, row.thread, name, tid))
            self.count += row.steps
            loop.count += row.steps
            loop.blocking += row.blocking
            loop.blocking_ns += row.blocking_ns
            self._histograms.append(row.histogram)
        for row in longest:
            loop = self.loops[pid, row.thread]
            loop.longest.append(Named(row, pid=pid, thread_name=loop.thread_name, tid=loop.tid))
            loop.longest.sort(key=lambda step: -step.duration_ns)


class LockWaits:
    """Waits for one lock. Spans do not identify locks, so equal waiters and holders count as one lock."""

    def __init__(self, waiter: Node, holder: Node) -> None:
        self.waiter, self.holder = waiter, holder
        self.inside: Node | None = None  # the function that took most time while the lock was held
        self.holder_thread = ""
        self.waits = self.wait_ns = 0
        self.threads: set[tuple[int, int]] = set()  # process and number of each thread that waited
        self._most_ns = 0

    def add(self, row: Any, pid: int, inside: Node | None, holder_thread: str) -> None:
        self.waits += row.waits
        self.wait_ns += row.wait_ns
        self.threads.add((pid, row.thread))
        if row.wait_ns > self._most_ns:
            self._most_ns = row.wait_ns
            self.inside, self.holder_thread = inside, holder_thread


# files whose functions take locks for their callers
TAKES_FOR_OTHERS = ("/threading.py", "/multiprocessing/synchronize.py")


class Collections:
    """Sums of garbage collections: of one generation, or of those that began in one function."""

    __slots__ = ("collected", "count", "examined", "generation", "longest_ns", "name", "total_ns", "uncollectable")

    def __init__(self, generation: int = UNKNOWN, name: str = "") -> None:
        self.generation, self.name = generation, name
        self.count = self.total_ns = self.longest_ns = self.collected = self.uncollectable = self.examined = 0


def is_named(function: Function, name: str) -> bool:
    """Returns whether a name means a function, by the recorder's rules: a name matches the end of the qualified name; a
    pattern matches all of it, or its last part.
    """
    full = function.name
    if function.kind != PYTHON:
        return False
    if full == name or full.endswith(f".{name}") or not set("*?[") & set(name):
        return full == name or full.endswith(f".{name}")
    from fnmatch import fnmatchcase

    return fnmatchcase(full, name) or fnmatchcase(full.rpartition(".")[2], name)


class Data:
    """Everything that was read. Parts that were not requested are empty."""

    def __init__(self) -> None:
        self.functions: dict[Any, Entry] = {}
        self.durations: dict[Any, Durations] = {}
        self.tree = Node()  # the tree of all threads
        self.lines = Lines(shown_name)
        self.trees: dict[
            tuple[int, int], Node
        ] = {}  # by process and thread, if read by thread; thread 0: all further threads
        self.has_imports = False  # whether the tree has imports
        self.threads: list[Named] = []
        self.generations: dict[int, Collections] = {}
        self.long_collections: list[Named] = []
        self.gc_in: dict[str, Collections] = {}  # count and time, by the function that they began in
        self.waits: dict[str, int] = {}  # ns by reason, over all threads
        self.without_waits = False
        self.steps = Steps()
        self.repeats: list[Named] = []
        self.locks: dict[tuple[str, str], LockWaits] = {}
        self.calls = 0
        self.traces = 0
        # By tid: how long the thread waited for a processor, if the trace knows it.
        self.processor_waits: dict[int, int] = {}
        self.budgets: list[Named] = []
        self.only: dict[str, bool] = {}  # names given to --only: whether a function of that name was called

    @property
    def gc_ns(self) -> int:
        return sum(sums.total_ns for sums in self.generations.values())

    @property
    def collections(self) -> int:
        return sum(sums.count for sums in self.generations.values())

    @property
    def waiting_ns(self) -> int:
        return sum(self.waits.values())

    def lasted(self, pid: int, number: int) -> int:
        """Returns the time from a thread's first call to its last."""
        return sum(one.last_ns - one.first_ns for one in self.threads if (one.pid, one.thread) == (pid, number))

    def work_of(self, thread: Named) -> int:
        """Returns how long a thread did not wait."""
        return max(int(thread.self_ns - (0 if self.without_waits else thread.waiting_ns)), 0)

    @property
    def threads_ns(self) -> int:
        """The sum of all threads' time, of which shares are shares. Without waiting, if waiting is left out."""
        return sum(thread.self_ns for thread in self.threads)

    def add(
        self,
        trace: Trace,
        metadata: dict[str, Any],
        tables: Sequence[str] = (),
        *,
        choose: Callable[[Sequence[Function | None]], Iterable[int]] | None = None,
        together: bool = False,
        waits: bool = True,
        only_own: bool = False,
        **options: Any,
    ) -> dict[str, Rows]:
        """Reads a trace, with these tables in addition; returns all tables that it read. `choose` returns ids to leave
        out; `together`: functions with one name in several traces are merged; without `waits`, calls that only wait are
        left out with their time; `only_own`: reads durations only of the user's own functions. Other options are those
        of Trace.tables().
        """
        functions = trace.functions()
        marks = bytearray(_mark(function, waits) for function in functions)
        self.without_waits |= not waits
        for number in choose(functions) if choose else ():
            if not marks[number] & NO_TIME:
                marks[number] |= LEFT_OUT
        owners, libraries = classify(functions, metadata)
        for number, function in enumerate(functions) if only_own else ():
            if function is None or owners[number] != OWN or function.kind == NATIVE:
                marks[number] |= UNTIMED
        read = trace.tables((*ALWAYS, *tables), marks=bytes(marks), **options)
        pid = trace.info()["pid"]
        self.traces += 1
        waits_of = metadata.get("vestige.processor_waits", {})
        self.processor_waits |= {int(tid): ns for tid, ns in waits_of.items() if tid.isdecimal() and ns > 0}
        self.budgets += budget_of(read, metadata, functions)
        for name in metadata.get("vestige.only", ()):
            self.only[name] = self.only.get(name, False) or any(f and is_named(f, name) for f in functions)
        part = 0 if together else self.traces
        self.lines.add(read.get(LINES, ()), functions)
        self._add_durations(read.get(TABLE, ()), functions, libraries, part)
        self._add_functions(read, functions, libraries, part)
        self._add_tree(trace, read.get("calls", ()), functions, owners, libraries, by_thread="by_thread" in options)
        self._add_collections(read, functions, trace.threads())
        self._add_threads(trace, read["threads"], functions, pid)
        self._add_notable(read, functions, trace, pid)
        self._add_locks(read.get("lock_waits", ()), functions, owners, libraries, trace)
        for row in read["waits"]:
            function = functions[row.func]
            kind = (function.waits_for if function else "") or ""
            self.waits[kind] = self.waits.get(kind, 0) + row.self_ns
        return read

    def _add_notable(self, read: dict[str, Rows], functions: Sequence[Function | None], trace: Trace, pid: int) -> None:
        if "long_steps" in read:
            threads = {one["number"]: (one["name"] or "(unnamed)", one.get("tid", 0)) for one in trace.threads()}
            self.steps.add(read["steps"], read["long_steps"], pid, threads)
        for row in read.get("repeats", ()):
            function = functions[row.func]
            if function is not None:
                self.repeats.append(Named(row, shown=shown_name(function), file=function.file, line=function.line))

    def _add_locks(
        self,
        rows: Iterable[Any],
        functions: Sequence[Function | None],
        owners: list[str],
        libraries: list[str],
        trace: Trace,
    ) -> None:
        pid = trace.info()["pid"]
        names = {thread["number"]: thread["name"] or "(unnamed)" for thread in trace.threads()}

        def node(number: int) -> Node | None:
            function = functions[number] if number else None
            return Node(function, owners[number], libraries[number]) if function else None

        def place(inner: int, outer: int) -> Node | None:
            found = node(inner)
            return node(outer) or found if found is None or found.file.endswith(TAKES_FOR_OTHERS) else found

        for row in rows:
            waiter = place(row.waiter, row.waiter_outer)
            holder = place(row.holder, row.holder_outer)
            if waiter is not None and holder is not None:
                made = LockWaits(waiter, holder)
                key = (waiter.shown, holder.shown)
                self.locks.setdefault(key, made).add(row, pid, node(row.inside), names.get(row.holder_thread, "?"))

    def _add_durations(
        self,
        rows: Iterable[Any],
        functions: Sequence[Function | None],
        libraries: list[str],
        part: int,
    ) -> None:
        for row in rows:
            function = functions[row.func]
            if function is None:
                continue
            shown = shown_name(function)
            made = Durations(KINDS[row.of], shown, function.file, function.line, libraries[row.func])
            key = ((part, row.func) if part else shown, "task" if row.of == "task" else "call")
            self.durations.setdefault(key, made).add(row)

    def _add_functions(
        self, read: dict[str, Rows], functions: Sequence[Function | None], libraries: list[str], part: int
    ) -> None:
        reduced = set(read["reduced_estimates"]["func"])
        for row in read.get("functions", ()):
            function = functions[row.func]
            if function is None:
                continue
            key = (part, row.func) if part else shown_name(function)
            entry = self.functions.get(key)
            if entry is None:
                entry = self.functions[key] = Entry(function, libraries[row.func])
                entry.durations = self.durations.get((key, "call"))
            entry.add(row)
            entry.is_reduced |= row.func in reduced

    def _add_tree(
        self,
        trace: Trace,
        rows: Iterable[Any],
        functions: Sequence[Function | None],
        owners: list[str],
        libraries: list[str],
        *,
        by_thread: bool,
    ) -> None:
        nodes: list[Node] = []
        chain: list[int | None] = []  # the parent of each node
        pid = trace.info()["pid"]
        read: dict[int, Node] = {}  # by thread
        for row in rows:
            function = functions[row.func] or Function((NATIVE, "?", "", "", 0))
            number = (row.thread or 0) if by_thread else 0
            root = self.tree if not by_thread else read.setdefault(number, Node())
            above = root if row.parent is None else nodes[row.parent]
            chain.append(row.parent)
            if row.awaits is not None:
                nodes.append(above.wait(function.name if names_wait(function) else awaits(row.awaits, function)))
                nodes[-1].waits += row.calls
                at: int | None = len(nodes) - 1
                while at is not None:
                    nodes[at].awaiting_ns += row.total_ns
                    at = chain[at]
                root.awaiting_ns += row.total_ns
                continue
            imports = "" if row.imported is None else trace.import_name(row.imported, row.module or 0)
            self.has_imports |= bool(imports)
            whose = row.module or row.func  # an import belongs to the user or a library like the imported module
            nodes.append(above.child(function, owners[whose], libraries[whose], imports))
            nodes[-1].add(row)
            nodes[-1].called_at = nodes[-1].called_at or self.lines.text(nodes[-1].caller, nodes[-1].function)
            if row.parent is None:
                root.total_ns += row.total_ns
        for number, root in read.items():
            self.trees[pid, number] = root
            merge_nodes(self.tree, root)

    def _add_threads(self, trace: Trace, rows: Rows, functions: Sequence[Function | None], pid: int) -> None:
        by_number = {thread["number"]: thread for thread in trace.threads()}
        for row in rows:
            facts = by_number.get(row.thread, {})
            thread = Named(row, pid=pid, tid=facts.get("tid", 0), name=facts.get("name") or "(unnamed)")
            function = None if row.top is None else functions[row.top]
            # The function with most own time in the thread: its full name, and the short name that reports show.
            thread.most_in = thread.top_shown = ""
            if function:
                thread.most_in = plain_name(function.name) if function.kind == NATIVE else function.name
                thread.top_shown = short_name(trace, row.top, function)
            if row.running_ns is None:  # during calls that wait, a thread may run or wait for the GIL
                thread.lock_ns = thread.io_ns = thread.sleep_ns = thread.child_ns = None
            self.threads.append(thread)
            self.calls += row.calls

    def _add_collections(
        self, read: dict[str, Rows], functions: Sequence[Function | None], facts: list[dict[str, Any]]
    ) -> None:
        names = {thread["number"]: thread["name"] or "(unnamed)" for thread in facts}
        for row in read["collections"]:
            generation = UNKNOWN if row.generation is None else row.generation
            sums = self.generations.setdefault(generation, Collections(generation))
            sums.count += row.collections
            sums.total_ns += row.total_ns
            sums.longest_ns = max(sums.longest_ns, row.longest_ns)
            sums.collected += row.collected
            sums.uncollectable += row.uncollectable
            sums.examined += row.examined
        for row in read["long_collections"]:
            unknown = {name: UNKNOWN for name in ("generation", "collected") if getattr(row, name) is None}
            self.long_collections.append(Named(row, thread_name=names.get(row.thread, "?"), **unknown))
        self.long_collections.sort(key=lambda one: -one.duration_ns)
        for row in read.get("collection_callers", ()):
            function = None if row.func is None else functions[row.func]
            name = shown_name(function) if function else "(no function)"
            sums = self.gc_in.setdefault(name, Collections(name=name))
            sums.count += row.collections
            sums.total_ns += row.total_ns


def copy_node(node: Node) -> Node:
    """Copies a node's sums and its list of children. The children are shared until one of them changes, which is then
    copied first.
    """
    made = type(node)()
    for name in (*Sums.__slots__, *node.__slots__):
        setattr(made, name, getattr(node, name))
    made.children = dict(node.children)
    return made


def merge_nodes(into: Node, other: Node) -> None:
    work = [(into, other)]
    while work:
        a, b = work.pop()
        a.add(b)
        a.awaiting_ns += b.awaiting_ns
        a.waits += b.waits
        for key, child in b.children.items():
            if key in a.children:
                a.children[key] = copy_node(a.children[key])
                work.append((a.children[key], child))
            else:
                a.children[key] = child


def _mark(function: Function | None, waits: bool) -> int:
    if function is None:
        return 0
    kind, name, file = function.kind, function.name, function.file
    if kind == GC:
        return COLLECTS
    if kind == PYTHON and name.endswith("_run") and file.endswith("/asyncio/events.py"):
        return STEP
    mark = AWAITED if kind == PYTHON and names_wait(function) else 0
    if name in COUNTED or (kind == NATIVE and plain_name(name) in COUNTED_OF_DICTIONARIES and "ict object" in name):
        mark |= CHOSEN
    if not function.waits_for:
        return mark
    return mark | WAITS | (NO_TIME if function.only_waits and not waits else 0)
