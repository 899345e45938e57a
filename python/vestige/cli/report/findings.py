"""Findings: at most five sentences that name a cause and a place, each with numbers that a user can check.

A cause (causes.py) makes a finding from the evidence below, which is read together with the rest of a report. A cause
does not fire without its evidence: the thresholds are next to each cause, and in docs/guides/findings.md. Used by the
report after `vestige run`, so it imports little.
"""

from __future__ import annotations

from vestige.base.terminal import point
from vestige.reading.kinds import NATIVE
from vestige.reading.libraries import OWN
from vestige.reading.waits import waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from vestige._core import Rows, Trace

    from .data import Data, Named, Node
    from .devices import Device

MOST = 5


class Finding:
    """`ns` is the time that the finding explains; findings are sorted by it."""

    def __init__(
        self, kind: str, text: str, *, where: dict[str, Any], numbers: dict[str, Any], look: str, ns: float
    ) -> None:
        self.kind = kind
        self.text = text
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


class Evidence:
    """The data that causes read. The tree contains waits, and folds imports."""

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
        self.passed_ns = sum(each["end_ns"] - each["start_ns"] for each in facts) or 1
        self.places = Places(data.tree)
        self.explained: set[str] = set()  # functions whose waits another finding explains
        self.tells_imports = False  # whether another finding explains the time of imports

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
        return sum(max(thread.self_ns - thread.waiting_ns, 0) for thread in self.data.threads)

    @property
    def busy_ns(self) -> int:
        """How long a thread waited for a processor that others used; the longest such wait of a thread."""
        return max(self.data.processor_waits.values(), default=0)

    def undisturbed(self, ns: float) -> float:
        """Returns how long many calls would have taken if no thread had waited for a processor, assuming that such
        waits are spread evenly.
        """
        return ns * (1 - min(self.busy_ns / self.passed_ns, 1))

    def calls_of(self, shown: str) -> Iterator[tuple[int, Rows]]:
        """Yields each process with the calls of all functions of this name, as rows of the table `span`."""
        from .data import CHOSEN, shown_name

        for trace in self.traces():
            functions = trace.functions()
            marks = bytes(CHOSEN if each is not None and shown_name(each) == shown else 0 for each in functions)
            if any(marks):
                yield trace.info()["pid"], trace.tables(["chosen_spans"], marks=marks)["chosen_spans"]

    def share(self, ns: float) -> str:
        return f"{min(ns / self.passed_ns, 1):.0%}"


class Places:
    """Every place of a tree, parents first, with the nearest function of the user's own code around it."""

    def __init__(self, root: Node) -> None:
        self.nodes: list[Node] = []
        self.parents: list[int] = []  # -1: none
        self.own: list[int] = []  # index of the place itself, or of the nearest around it; -1: none
        self.importing: list[bool] = []
        self.started: list[bool] = []  # whether a thread runs it that the program started by threading
        work = [(child, -1) for child in reversed(list(root.children.values()))]
        while work:
            node, parent = work.pop()
            mine = len(self.nodes)
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

    def add_up(self, takes: Callable[[Node], int]) -> list[int]:
        """Returns for each place the sum over it and all places below."""
        sums = [takes(node) for node in self.nodes]
        for at in range(len(sums) - 1, -1, -1):
            if self.parents[at] >= 0:
                sums[self.parents[at]] += sums[at]
        return sums

    def within(self, functions: set[str]) -> list[bool]:
        """Returns for each place whether it is one of these functions, or inside one."""
        inside: list[bool] = []
        for node, parent in zip(self.nodes, self.parents):
            inside.append(node.shown in functions or (parent >= 0 and inside[parent]))
        return inside


def waits(node: Node) -> str:
    return waits_for(node.name) if node.kind == NATIVE else ""


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

    found = [finding for cause in CAUSES for finding in (cause(evidence),) if finding is not None]
    return sorted(found, key=lambda finding: -finding.ns)[:MOST]


def engine_of(trace: Any) -> str:
    return str(trace.metadata().get("vestige.engine", "")).strip('"')


def lines(findings: Sequence[Finding], width: int, *, all_calls: bool = True) -> list[str]:
    """Returns findings as lines, folded at the screen's width. Without all calls, a cause may be among the calls that
    were left out.
    """
    if not findings:
        return [f"no finding{'' if all_calls else ' in what was recorded'}: no cause stands out"]
    return [line for finding in findings for line in point(finding.text, width)]
