"""Findings: at most five sentences that name a cause and a place, each with numbers that a user can check, and a clause
that says what people do about such a cause.

A finding is made by a cause (causes.py) from the evidence below, which is read together with the rest of a report. No
finding is made without its evidence: the thresholds are next to each cause, and in docs/guides/findings.md. Used by the
report after `vestige run`, so it imports little.
"""

from __future__ import annotations

from vestige.base.terminal import point
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.libraries import OWN
from vestige.reading.waits import SPIN

from .advice import ADVICE, PAGE
from .lines import name_line
from .notes import beyond_scope, passed_of
from .sites import Sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from vestige._core import Rows, Trace

    from .data import Data, Named, Node
    from .devices import Device

MOST = 5
USUAL_WIDTH = 80
# Roughly the cost of recording a call, in ns: see docs/how/performance.md.
COSTS = {("turbo", PYTHON): 45, ("turbo", NATIVE): 28}
COST_ELSE = 100


class Finding:
    """`ns` is the time that the finding explains; findings are sorted by it."""

    def __init__(
        self, kind: str, text: str, *, where: dict[str, Any], numbers: dict[str, Any], look: str, ns: float
    ) -> None:
        self.kind = kind
        self.text = f"{text} {advice_on(kind)}"
        self.where = where
        self.numbers = numbers
        self.look = look  # a command that shows more, without the file
        self.files: Sequence[str] = ()
        self.ns = ns

    @property
    def next(self) -> str:
        """Returns the command that shows more."""
        from shlex import join

        command, _, options = self.look.partition(" ")
        return f"vestige {command} {join(self.files)}{' ' * bool(options)}{options}"


def advice_on(kind: str) -> str:
    """Returns advice such as `Fetch all rows by one query (docs/guides/findings.md#many-requests).`"""
    return f"{ADVICE[kind]} ({PAGE}#{kind.lower().replace(' ', '-')})."


class Evidence:
    """The facts that causes look at. The tree has waits and folds imports."""

    def __init__(
        self,
        data: Data,
        facts: Sequence[dict[str, Any]],
        engine: str = "",
        look: Callable[[Named], Node] | None = None,
        traces: Callable[[], Iterable[Trace]] = tuple,
        devices: Sequence[Device] = (),
    ) -> None:
        self.data = data
        self.facts = facts
        self.engine = engine
        self.look = look  # returns the tree of what a step's thread did during the step
        self.traces = traces  # opens the traces again
        self.devices = devices
        self.passed_ns = sum(map(passed_of, facts)) or 1  # time of all processes added up
        self.wall_ns = _wall_ns(facts)  # from the start of the first process to the end of the last
        self.imports_ns = 0  # time of imports, if a finding is about imports; other causes explain the rest of the time
        self.places = Places(data.tree)
        self.explained: set[str] = set()  # functions whose waits another finding is about

    @property
    def tells_imports(self) -> bool:
        return self.imports_ns > 0

    @property
    def rest_ns(self) -> int:
        """The time without imports, if a finding is about imports; else all time."""
        return max(self.passed_ns - self.imports_ns, 1)

    def metadata(self, key: str) -> Any:
        """Returns the checked value of a key from the first trace that has it, or None."""
        from vestige.reading.metadata import SHAPES, load_json

        for trace in self.traces():
            text = trace.metadata().get(key)
            if text is not None:
                return SHAPES[key](load_json(text))
        return None

    def is_unchanged(self, file: str) -> bool:
        """Returns whether a source file has not changed since the recording ended; False if the trace does not say."""
        from os import stat

        from vestige.reading.metadata import SHAPES, load_json

        for trace in self.traces():
            functions = trace.functions()
            noted = SHAPES["vestige.sources"](load_json(trace.metadata().get("vestige.sources", ""))) or {}
            for number, (modified_ns, size) in noted.items():
                function = functions[number] if 0 <= number < len(functions) else None
                if function is not None and function.file == file:
                    try:
                        now = stat(file)
                    except (OSError, ValueError):
                        return False
                    return (now.st_mtime_ns, now.st_size) == (modified_ns, size)
        return False

    @property
    def worked_ns(self) -> int:
        """The time in which threads did not wait, summed over threads."""
        return sum(map(self.data.work_of, self.data.threads))

    def cost_of(self, kind: int, calls: int) -> int:
        """Returns roughly how long recording these calls took."""
        return COSTS.get((self.engine, kind), COST_ELSE) * calls

    @property
    def recording_ns(self) -> int:
        """Returns the cost of recording, summed over all threads. The tree lacks short calls."""
        others = self.data.calls - sum(node.calls for node in self.places.nodes)
        cost = sum(self.cost_of(node.kind, node.calls) for node in self.places.nodes)
        return cost + self.cost_of(PYTHON, max(others, 0))

    @property
    def busy_ns(self) -> int:
        """How long a thread waited for a processor that others used; the longest such wait of a thread."""
        return max(self.data.processor_waits.values(), default=0)

    def undisturbed(self, ns: float) -> float:
        """Returns how long many calls would have taken if no thread had waited for a processor, assuming that such
        waits are spread evenly.
        """
        return ns * (1 - min(self.busy_ns / self.passed_ns, 1))

    def alone(self, ns: float) -> float:
        """Returns how long work would have taken if no thread had waited for a processor, assuming that such waits are
        spread evenly over the work of all threads.
        """
        return ns * (1 - min(sum(self.data.processor_waits.values()) / max(self.worked_ns, 1), 1))

    def calls_of(self, shown: str) -> Iterator[tuple[int, Rows]]:
        """Yields each process with the calls of all functions of this name, as rows of the table `span`."""
        from .data import CHOSEN, shown_name

        for trace in self.traces():
            functions = trace.functions()
            marks = bytes(CHOSEN if each is not None and shown_name(each) == shown else 0 for each in functions)
            if any(marks):
                yield trace.info()["pid"], trace.tables(["chosen_spans"], marks=marks)["chosen_spans"]

    def caller_of(self, shown: str) -> str:
        """Returns the name of the function that calls another one, where that takes most time; "" if none does."""
        places = self.places
        found = [at for at, node in enumerate(places.nodes) if node.shown == shown and places.outer[at]]
        at = max(found, key=lambda at: places.nodes[at].total_ns, default=-1)
        above = places.above(at) if at >= 0 else -1
        return places.nodes[above].shown if above >= 0 else ""

    def computes(self, shown: str) -> str:
        """Returns the name of a function that takes most of its time itself; "" if what it calls takes more."""
        nodes = [node for node in self.places.nodes if node.shown == shown and node.kind == PYTHON]
        own, whole = sum(node.self_ns for node in nodes), sum(node.total_ns for node in nodes)
        return shown if whole and 2 * own > whole else ""

    def share(self, ns: float) -> str:
        return f"{min(ns / self.passed_ns, 1):.0%}"


def _wall_ns(facts: Sequence[dict[str, Any]]) -> int:
    end_ns = max((each["end_ns"] for each in facts), default=0)
    return max(end_ns - min((each["end_ns"] - passed_of(each) for each in facts), default=0), 1)


class Places:
    """Every place of a tree, parents first, with the nearest function of the user's own code around it."""

    def __init__(self, root: Node) -> None:
        self.nodes: list[Node] = []
        self.parents: list[int] = []  # -1: none
        self.own: list[int] = []  # index of the place itself, or of the nearest around it; -1: none
        self.importing: list[bool] = []
        self.started: list[bool] = []  # whether the place is in a thread that the program started by threading
        self.outer: list[bool] = []  # whether no place around it has the same function
        self.spins: list[bool] = []  # whether the place is part of a loop that spins
        self.waited: list[int] = []  # how long the calls waited, without the calls inside them
        work = [(child, -1) for child in reversed(list(root.children.values()))]
        around: list[int] = []  # the places that are open, and how often each function is among them
        depths: dict[str, int] = {}
        while work:
            node, parent = work.pop()
            while around and around[-1] != parent:
                depths[self.nodes[around.pop()].shown] -= 1
            mine = len(self.nodes)
            self.outer.append(not depths.get(node.shown))
            inside_spin = parent >= 0 and self.spins[parent]
            self.spins.append(inside_spin or node.waits_for == SPIN)
            self.waited.append(0 if inside_spin else node.waited_ns)
            around.append(mine)
            depths[node.shown] = depths.get(node.shown, 0) + 1
            self.nodes.append(node)
            self.parents.append(parent)
            is_own = node.owner == OWN and node.kind != NATIVE
            self.own.append(mine if is_own else self.own[parent] if parent >= 0 else -1)
            self.importing.append(bool(node.imports) or (parent >= 0 and self.importing[parent]))
            self.started.append(self.started[parent] if parent >= 0 else node.name.endswith("_bootstrap"))
            work.extend((child, mine) for child in reversed(list(node.children.values())))

    def caller(self, at: int) -> Node:
        """Returns the nearest function of the user's own code around a call; else the nearest Python function around
        it; else the nearest call around it; else the call itself.
        """
        parent = around = self.parents[at]
        if parent < 0 or self.own[parent] >= 0:
            return self.nodes[at if parent < 0 else self.own[parent]]
        while around >= 0 and self.nodes[around].kind == NATIVE:
            around = self.parents[around]
        return self.nodes[around if around >= 0 else parent]

    def above(self, at: int) -> int:
        """Returns the nearest place of a Python function around a call; -1 if there is none."""
        at = self.parents[at]
        while at >= 0 and self.nodes[at].kind == NATIVE:
            at = self.parents[at]
        return at

    def called(self, at: int) -> str:
        """Returns the name of the function that caller() calls itself, on the way to a call; "" if it does not."""
        around = self.own[self.parents[at]] if self.parents[at] >= 0 else -1
        while around >= 0 and at >= 0 and self.parents[at] != around:
            at = self.parents[at]
        return self.nodes[at].shown if around >= 0 else ""

    def add_up(self, takes: Callable[[Node], int]) -> list[int]:
        """Returns for each place the sum over it and all places below."""
        sums = [takes(node) for node in self.nodes]
        for at in range(len(sums) - 1, -1, -1):
            if self.parents[at] >= 0:
                sums[self.parents[at]] += sums[at]
        return sums

    def imports_ns(self) -> int:
        """Returns the time of imports, whether or not a finding is about them."""
        outer = (not self.importing[parent] if parent >= 0 else True for parent in self.parents)
        return sum(
            node.total_ns
            for node, importing, is_outer in zip(self.nodes, self.importing, outer)
            if importing and is_outer
        )

    def within(self, functions: set[str]) -> list[bool]:
        """Returns for each place whether it is one of these functions, or inside one."""
        inside: list[bool] = []
        for node, parent in zip(self.nodes, self.parents):
            inside.append(node.shown in functions or (parent >= 0 and inside[parent]))
        return inside


def waits(node: Node) -> str:
    """Returns why calls wait; "" if they did not wait, or only calls inside them did."""
    return node.waits_for if node.waited_ns else ""


def heaviest(root: Node, ns: int) -> tuple[Node | None, Node | None]:
    """Follows the calls that took half of the time. Returns the last function of the user's own code on this path, else
    the last function of a package, else the last Python function; and the C function below it.
    """
    from sys import stdlib_module_names

    own = package = python = leaf = None
    at = root
    while at.children:
        at = max(at.children.values(), key=lambda child: child.total_ns)
        if 2 * at.total_ns < ns:
            break
        if at.kind == NATIVE:
            leaf = at
        elif at.owner == OWN:
            own, leaf = at, None
        elif own is None:
            python, leaf = at, None
            package = at if at.library not in stdlib_module_names else package
    return own or package or python, leaf


def place(node: Node) -> dict[str, Any]:
    return {"function": node.shown, "file": node.file, "line": node.line}


def find(evidence: Evidence) -> list[Finding]:
    """Returns the findings, the most important first."""
    from .causes import CAUSES

    found: list[Finding] = []
    for cause in CAUSES:
        made = cause(evidence)
        found += made if isinstance(made, list) else [made] if made is not None else []
    sites = Sites(evidence)
    for finding in found:
        name_line(finding, evidence.data.lines, sites)
    return sorted(found, key=lambda finding: -finding.ns)[:MOST]


def engine_of(trace: Any) -> str:
    return str(trace.metadata().get("vestige.engine", "")).strip('"')


def not_examined(facts: Sequence[dict[str, Any]], metadata: Sequence[dict[str, Any]]) -> list[str]:
    """Returns what the traces lack and may hide a cause, with the options that record it."""
    found = list(dict.fromkeys(line for each in metadata for line in beyond_scope(each)))
    if any(each["left_out"] for each in facts):
        found.append("short calls (--min-duration)")
    if not any(each.get("c_functions", True) for each in facts):
        found.append("functions in C (--no-c)")
    if not all(each["switches"] for each in facts):
        found.append("running times (--sched)")
    if not any(each["memory"] for each in facts):
        found.append("memory")
    found.append("arguments")
    return found


def lines(findings: Sequence[Finding], width: int, missing: Iterable[str] = ()) -> list[str]:
    """Returns the lines of findings, at most `width` wide. `missing`: what was not examined."""
    if not findings:
        return point("No cause stands out. Not examined: " + ", ".join(missing), min(width, USUAL_WIDTH), "")
    return [line for finding in findings for line in point(finding.text, width)]
