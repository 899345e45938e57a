"""The calls that only one side of a `vestige diff` makes, grouped below the first function of the user's own code that
both sides have: `parse now also calls json.dumps, json.loads, re.compile: +1.2 s`. The time is that by which the
functions below changed, each counted once, so moving calls elsewhere adds nothing.
"""

from __future__ import annotations

from vestige.base.quantities import duration, signed
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.labels import plain_name
from vestige.reading.libraries import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from vestige.cli.report.data import Node

    from .data import Comparison, Row, Run

NAMES_MAX = 3  # calls that a sentence names


class Group:
    """Calls that one function makes on one side only. `through`: the function that makes them for it, if any."""

    def __init__(self, caller: Node, through: Node | None, imports: bool) -> None:
        self.caller, self.through, self.imports = caller, through, imports
        self.entries: dict[str, tuple[Node, float]] = {}  # the outermost new calls, with their time
        self.own: dict[Any, float] = {}  # own times of the functions below, by key: mean ns of a run
        self.parts: dict[Any, float] = {}  # how much of each function's change these calls explain
        self.noise = 0.0

    @property
    def effect(self) -> float:
        return sum(self.parts.values())

    def enter(self, node: Node, weight: float) -> None:
        ns = self.entries.get(node.shown, (node, 0.0))[1]
        self.entries[node.shown] = node, ns + weight * node.total_ns

    @property
    def called(self) -> list[Node]:
        return [node for node, _ in sorted(self.entries.values(), key=lambda entry: -entry[1])]

    def take(self, rows: dict[Any, Row], left: dict[Any, float], sign: int) -> None:
        """Takes from each function's change what these calls explain."""
        squares = 0.0
        for key, ns in self.own.items():
            row = rows.get(key)
            if row is None or not (row.is_new or row.is_gone or row.self_time.is_significant):
                continue
            part = min(ns, max(sign * left.get(key, row.self_time.difference), 0.0))
            if part:
                self.parts[key] = sign * part
                left[key] = left.get(key, row.self_time.difference) - sign * part
                squares += min(row.self_time.noise, part) ** 2  # no more can be chance
        self.noise = squares**0.5

    def text(self, runs: Sequence[Run], is_new: bool) -> str:
        """Returns the sentence, with the lines of the calls where side B makes them."""
        called = self.called
        names = [_name(node) for node in called[:NAMES_MAX]]
        if len(called) > NAMES_MAX:
            names.append(f"{len(called) - NAMES_MAX} more")
        verb = "now also" if is_new else "no longer"
        action = "imports" if self.imports else "calls"
        through = f" in {_name(self.through)}" if self.through is not None else ""
        who = self.caller.shown
        inner = [self.through] if self.through is not None else called[:NAMES_MAX]
        places = [place for node in inner for place in runs[0].lines.between(self.caller.shown, node.function)]
        if is_new and places and not self.imports:
            lines = " and ".join(str(line) for line in sorted({line for _, line in places[:NAMES_MAX]}))
            who = f"{places[0][0]}:{lines}: {self.caller.name}"
        effect = signed(duration(self.effect), self.effect)
        return f"{who} {verb} {action} {', '.join(names)}{through}: {effect}."


def _name(node: Node) -> str:
    """Returns `json.dumps`, `app.clean` as `clean`, `sorted`, or the module of an import."""
    if node.imports:
        return node.imports.removeprefix("import ")
    if node.kind == NATIVE:
        return plain_name(node.name)
    return f"{node.library}.{node.name}" if node.owner != OWN and node.library else node.name


def find_groups(comparison: Comparison) -> list[tuple[Group, str]]:
    """Returns the groups of both sides whose time is more than chance, each with its sentence."""
    found = []
    before, after = comparison.before, comparison.after
    for is_new, runs, others in ((True, after, before), (False, before, after)):
        left: dict[Any, float] = {}
        for group in sorted(_groups(runs, others), key=lambda one: -sum(one.own.values())):
            group.take(comparison.by_key, left, 1 if is_new else -1)
            if abs(group.effect) > group.noise:
                found.append((group, group.text(runs, is_new)))
    return found


def _groups(runs: Sequence[Run], others: Sequence[Run]) -> list[Group]:
    """Returns the calls that only these runs make, and none of the others."""
    known: set[tuple[Any, Any]] = set()
    for run in others:
        known |= _edges(run)
    there = {inner for _, inner in known}
    found: dict[Any, Group] = {}
    for run in runs:
        _walk(run, known, there, found, 1 / len(runs))
    return list(found.values())


def _edges(run: Run) -> set[tuple[Any, Any]]:
    """Returns pairs of functions: one calls the other."""
    found = set()
    work: list[tuple[Node, Any]] = [(child, None) for child in run.tree.children.values()]
    while work:
        node, above = work.pop()
        key = _key(run, node)
        found.add((above, key))
        work += [(child, key) for child in node.children.values()]
    return found


def _walk(run: Run, known: set[tuple[Any, Any]], there: set[Any], found: dict[Any, Group], weight: float) -> None:
    """Adds the new calls of a run. On the way down, `own` is the nearest function of the user's own code that the other
    side has, too; `through` is the function that `own` calls on this way; `group` has the new calls around.
    """
    work: list[tuple[Node, Any, Node | None, Node | None, Group | None]] = [
        (child, None, None, None, None) for child in run.tree.children.values()
    ]
    while work:
        node, above, own, through, group = work.pop()
        key = _key(run, node)
        if key is None:
            continue
        is_known = node.owner == OWN and node.kind == PYTHON and not node.imports and key in there
        if group is not None and is_known:
            group = None  # what the function calls is compared by itself
        elif group is None and own is not None and above in there and (above, key) not in known:
            of = (_key(run, own), through and through.shown, bool(node.imports))
            group = found.setdefault(of, Group(own, through, bool(node.imports)))
            group.enter(node, weight)
        if group is not None:
            group.own[key] = group.own.get(key, 0.0) + weight * node.self_ns
        below = (node, None) if is_known else (own, through or node if own is not None else None)
        work += [(child, key, *below, group) for child in node.children.values()]


def _key(run: Run, node: Node) -> Any:
    """Returns what identifies a function on both sides; None for waits, which are no calls."""
    return node.imports or run.keys.get(node.function)
