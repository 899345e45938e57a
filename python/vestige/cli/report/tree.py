"""The tree of calls as text: libraries folded, recursion too, the rest by what took most time. Used by the report after
`vestige run`, so it imports little.
"""

from __future__ import annotations

from vestige.base.terminal import cells, cut, fit
from vestige.reading.kinds import ANNOTATION, NATIVE
from vestige.reading.layout import HOT, Layout
from vestige.reading.libraries import LIBRARY
from vestige.reading.report_columns import TREE
from vestige.reading.sums import Sums
from vestige.reading.waits import waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vestige.base.terminal import Paint
    from vestige.reading.report_columns import Column

    from .data import Node

THROUGH = 0.95  # of a call's time in one call that it made: it only passes on
PASSES = 0.8  # the same inside of a library, which matters less
HIDDEN_MAX = 0.25  # of the time: no line hides more inside of a library, if it can be split
BRANCH = 0.03  # of the time: what part of a library is then worth a line
FIGURES = 17  # columns of time and share
NAME_MIN = 24  # columns that a name gets, however deep it is
LIBRARIES = 3  # names of libraries in a line


class Line:
    """A line of the tree: a call, and what is folded into it."""

    __slots__ = (
        "awaiting_ns",
        "beside",
        "calls",
        "children",
        "depth",
        "hidden",
        "id",
        "library",
        "node",
        "packages",
        "parent",
        "recursive",
        "self_ns",
        "total_ns",
    )

    def __init__(self, node: Node) -> None:
        self.node = node
        self.calls = node.calls
        self.self_ns = node.self_ns
        self.total_ns = node.total_ns
        self.awaiting_ns = node.awaiting_ns
        self.library = node.owner == LIBRARY
        self.recursive = False
        self.hidden = 0  # frames folded into it
        self.id = self.parent = self.depth = 0  # its place in a list of all
        self.packages: dict[str, int] = {}  # and the libraries of those, with their own times
        self.children: list[Line] = []
        # An annotation that is no part of a thread's stack, as those of tasks: many may be open at once.
        self.beside = node.kind == ANNOTATION and not node.self_ns and not node.children and node.total_ns > 0

    @property
    def reach_ns(self) -> int:
        return max(self.total_ns, self.awaiting_ns)

    @property
    def time_ns(self) -> int:
        """For people: a leaf that stands for waits has no other time."""
        return self.awaiting_ns if self.node.waits else self.total_ns

    @property
    def share_ns(self) -> int | None:
        """None: its time is not in that of the threads, or in that of other lines, too."""
        return None if self.beside or self.node.waits else self.total_ns

    @property
    def count(self) -> int:
        return self.node.waits or self.calls

    @property
    def module(self) -> str:
        return self.node.imports.removeprefix("import ")

    @property
    def library_name(self) -> str:
        return self.node.library if self.library else ""

    @property
    def waits_for(self) -> str:
        return waits_for(self.node.name)


def fold(root: Node, whole_ns: int, *, libraries: bool = True) -> list[Line]:
    """What the threads run, as lines; all of it unless `libraries` are to be folded.

    A call of a library is one line, with what it calls back of the user's own below it. Where that would hide much of
    the time, the library is shown as far as its time goes separate ways: frames that only pass on stay folded.
    """
    top = Line(root)
    work: list[tuple[Line, Node, set[str]]] = [(top, root, set())]
    while work:
        line, node, seen = work.pop()
        branches: set[int] = set()
        if libraries and line.library:
            branches, seen = _branches(node, whole_ns, seen)
        for child in _children(line, node, libraries, branches):
            made = Line(child)
            line.children.append(made)
            work.append((made, child, seen if made.library else set()))
    lines = _without_plumbing(top.children) if libraries else top.children
    sort(lines)
    return lines


def _branches(node: Node, whole_ns: int, seen: set[str]) -> tuple[set[int], set[str]]:
    """The ids of nodes of libraries below a call of one that get lines of their own, none where little is hidden; and
    the names that were passed on the way, with those `seen` before, which no line has to repeat.
    """
    if node.total_ns - _own_ns(node) < HIDDEN_MAX * whole_ns:
        return set(), seen
    seen = {*seen, node.shown}
    at, calls = node, _large(node, whole_ns)
    while len(calls) == 1 and calls[0].total_ns >= PASSES * at.total_ns:
        at = calls[0]
        seen.add(at.shown)
        calls = _large(at, whole_ns)
    if not calls:
        return ({id(at)} if at is not node else set()), seen
    return {id(_first_telling(call, seen)) for call in calls}, seen


def _large(node: Node, whole_ns: int) -> list[Node]:
    return [child for child in _calls(node) if child.owner == LIBRARY and child.total_ns >= BRANCH * whole_ns]


def _first_telling(node: Node, seen: set[str]) -> Node:
    """The node, or if that says nothing new, the one that it passes on to."""
    while node.shown in seen or node.kind == NATIVE:
        calls = [child for child in _calls(node) if child.total_ns >= PASSES * node.total_ns]
        if not calls or calls[0].owner != LIBRARY:
            break
        node = calls[0]
    return node


def _own_ns(node: Node) -> int:
    """The time of the outermost calls of the user's own code below a call of a library."""
    total = 0
    work = list(node.children.values())
    while work:
        child = work.pop()
        if child.owner == LIBRARY:
            work.extend(child.children.values())
        else:
            total += child.total_ns
    return total


def _calls(node: Node) -> list[Node]:
    """What it calls, looking through recursion."""
    found = []
    work = list(node.children.values())
    while work:
        child = work.pop()
        if child.shown == node.shown:
            work.extend(child.children.values())
        else:
            found.append(child)
    return found


def _children(line: Line, node: Node, libraries: bool, branches: set[int]) -> list[Node]:
    """Those that get lines of their own. What is folded on the way is noted in the line."""
    found: dict[str, Node] = {}
    work = list(node.children.values())
    while work:
        child = work.pop()
        branch = id(child) in branches
        if child.shown == node.shown and node.shown and not branch:
            line.recursive = True
            line.calls += child.calls
            line.self_ns += child.self_ns
            work.extend(child.children.values())
        elif libraries and line.library and child.owner == LIBRARY and not branch:
            line.hidden += 1
            line.packages[child.library] = line.packages.get(child.library, 0) + child.self_ns
            work.extend(child.children.values())
        elif child.shown in found:
            merge_nodes(found[child.shown], child)
        else:
            found[child.shown] = copy_node(child)
    return list(found.values())


def copy_node(node: Node) -> Node:
    """Its own sums and list of children; those are shared until one is changed, which copies it first."""
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


def _without_plumbing(lines: list[Line]) -> list[Line]:
    """A thread begins in a library that calls the thread's own function: begins the tree there."""
    found = []
    for line in lines:
        passed_on = sum(child.total_ns for child in line.children)
        if line.library and line.children and passed_on >= THROUGH * line.total_ns:
            found.extend(line.children)
        else:
            found.append(line)
    return found


def sort(lines: list[Line], by: Column | None = None) -> None:
    """Siblings by their time, or by another column."""
    key = by.order if by is not None else lambda line: -line.reach_ns
    work = [lines]
    while work:
        family = work.pop()
        family.sort(key=key)
        work.extend(line.children for line in family)


def walk(lines: list[Line]) -> Iterator[Line]:
    """Every line, and those below."""
    work = list(lines)
    while work:
        line = work.pop()
        yield line
        work.extend(line.children)


def choose(lines: list[Line], count: int, min_ns: float) -> set[int]:
    """The ids of at most so many lines, those of the longest calls; each with its parent."""
    chosen: set[int] = set()
    waiting = [line for line in lines if line.reach_ns >= min_ns]
    while waiting and len(chosen) < count:
        waiting.sort(key=lambda line: line.reach_ns)
        line = waiting.pop()
        chosen.add(id(line))
        waiting.extend(child for child in line.children if child.reach_ns >= min_ns)
    return chosen


def shorten(lines: list[Line]) -> None:
    """Of calls that only pass on to the next, the first and the last are shown."""
    work = list(lines)
    while work:
        line = work.pop()
        at, passed = line, []
        while at.children and at.children[0].total_ns >= THROUGH * at.total_ns:
            at = at.children[0]
            passed.append(at)
        if len(passed) > 2:
            for hidden in passed[:-1]:
                line.hidden += 1 + hidden.hidden
                for name, ns in hidden.packages.items():
                    line.packages[name] = line.packages.get(name, 0) + ns
            line.children = [passed[-1]]
        work.extend(line.children)


def draw(
    lines: list[Line], whole_ns: int, chosen: set[int], width: int, paint: Paint, columns: Sequence[Column] = ()
) -> list[str]:
    """The lines that were chosen, behind these columns; above them a head, if they are not the usual two."""
    usual = TREE.in_text(())
    shown = [column for column in columns or usual if column is not TREE.naming]
    layout = Layout([*shown, TREE.naming], [line for line in walk(lines) if id(line) in chosen], whole_ns=whole_ns)
    drawn = [paint(layout.head, "head")] if [*shown, TREE.naming] != usual else []
    work: list[tuple[Line, str, str]] = [(line, "", "") for line in reversed(lines) if id(line) in chosen]
    while work:
        line, before, branch = work.pop()
        hot = line.total_ns >= HOT * (whole_ns or 1)
        numbers = layout.before(line)
        room = width - cells(numbers) - 2 - cells(before + branch)
        style = "hot" if hot and not line.library else "dim" if line.library else None
        drawn.append(
            f"{paint(numbers, 'strong' if hot else None)}  {paint(before + branch, 'dim')}"
            f"{_label(line, room, paint, style)}"
        )
        children = [child for child in line.children if id(child) in chosen]
        below = before + ("" if not branch else "   " if branch == "└─ " else "│  ")
        if cells(below) + 3 > width - FIGURES - NAME_MIN:  # too deep to indent any more
            below = before
        work.extend((child, below, "└─ " if child is children[-1] else "├─ ") for child in reversed(children))
    return drawn


def _label(line: Line, room: int, paint: Paint, style: str | None) -> str:
    """Its name, and what was folded."""
    notes = []
    if line.beside:
        notes.append("beside the stack")
    if line.recursive:
        notes.append("recursive")
    if line.hidden:
        notes.append(f"{line.hidden} frame{'s' * (line.hidden > 1)} hidden")
    note = f"  [{', '.join(notes)}]" if notes else ""
    names = [name for name in sorted(line.packages, key=lambda name: -line.packages[name]) if name]
    names = [name for name in names if name != line.node.library][:LIBRARIES]
    if names:
        longer = f"{note}  {', '.join(names)}"
        note = longer if len(longer) <= room - NAME_MIN else note
    room = max(room, NAME_MIN)
    name = fit(line.node.shown, room - cells(note)) if room - cells(note) >= 12 else cut(line.node.shown, 12)
    return f"{paint(name, style)}{paint(note, 'dim')}"


def unfolded(root: Node) -> list[Line]:
    """The whole tree for programs: parents before their children, nothing folded."""
    rows: list[Line] = []
    work = [(child, -1, 0) for child in reversed(list(root.children.values()))]
    while work:
        node, parent, depth = work.pop()
        line = Line(node)
        line.id, line.parent, line.depth = len(rows), parent, depth
        rows.append(line)
        work.extend((child, line.id, depth + 1) for child in reversed(list(node.children.values())))
    return rows
