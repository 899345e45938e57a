"""The tree of calls as text: libraries and recursion are folded, calls are sorted by time. Used by the report after
`vestige run`, so it imports little.
"""

from __future__ import annotations

from vestige.base.quantities import duration
from vestige.base.terminal import cells, cut, fit
from vestige.reading.kinds import ANNOTATION, NATIVE
from vestige.reading.layout import HOT, Layout
from vestige.reading.libraries import LIBRARY
from vestige.reading.report_columns import TREE
from vestige.reading.waits import KINDS, SPIN

from .data import copy_node, merge_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vestige.base.terminal import Paint
    from vestige.reading.report_columns import Column

    from .data import Node

THROUGH = 0.95  # share of a call's time; a call that spends this much in one call only passes on
PASSES = 0.8  # the same share for calls inside a library, which matter less
HIDDEN_MAX = 0.25  # share of the whole time; a line that hides more of it inside a library is split, if possible
BRANCH = 0.03  # share of the whole time; a smaller part of a library gets no line of its own
FIGURES = 17  # columns for time and share
NAME_MIN = 24  # least columns for a name, however deep the line is
LIBRARIES = 3  # names of libraries in a line


class Line:
    """A line of the tree: a call, and the calls that are folded into it."""

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
        "spun_ns",
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
        # time that spun in this line and in calls folded into it
        self.spun_ns = node.total_ns if node.waits_for == SPIN else 0
        self.hidden = 0  # number of frames that are folded into this line
        self.id = self.parent = self.depth = 0  # place in the list of all lines
        self.packages: dict[str, int] = {}  # libraries of these frames, with their own times
        self.children: list[Line] = []
        # An annotation that is on no thread's stack, such as a task's: many may be open at one time.
        self.beside = node.kind == ANNOTATION and not node.self_ns and not node.children and node.total_ns > 0

    @property
    def reach_ns(self) -> int:
        return max(self.total_ns, self.awaiting_ns)

    @property
    def time_ns(self) -> int:
        """The time that a report shows: for a leaf that stands for waits, the time of these waits."""
        return self.awaiting_ns if self.node.waits else self.total_ns

    @property
    def share_ns(self) -> int | None:
        """None if the time is not part of the threads' time, or is part of other lines, too."""
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
        return self.node.waits_for if self.node.only_waits else ""


def fold(root: Node, whole_ns: int, *, libraries: bool = True) -> list[Line]:
    """Returns the tree as lines. With `libraries`, folds libraries: a call of a library is one line, with the user's
    own functions that the library calls below it. If that would hide much of the time, the line is split at the frame
    in which the library's time divides; frames with only one important call stay folded.
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
    """Returns the ids of library nodes below a call of a library that get lines of their own, none if little is hidden;
    and the names that were passed on the way, added to `seen`: no line has to repeat these.
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
    """Returns the node, or, if its name says nothing new, the node to which it passes on."""
    while node.shown in seen or node.kind == NATIVE:
        calls = [child for child in _calls(node) if child.total_ns >= PASSES * node.total_ns]
        if not calls or calls[0].owner != LIBRARY:
            break
        node = calls[0]
    return node


def _own_ns(node: Node) -> int:
    """Returns the time of the outermost calls of the user's own code below a call of a library."""
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
    """Returns the calls that a node makes; a recursive call stands for its own calls."""
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
    """Returns the children that get lines of their own, and notes the folded frames in the line."""
    found: dict[str, Node] = {}
    work = list(node.children.values())
    while work:
        child = work.pop()
        branch = id(child) in branches
        if libraries and node.shown and _is_look(child, node):
            line.spun_ns += 0 if node.waits_for == SPIN else child.total_ns
            line.hidden += 1
        elif child.shown == node.shown and node.shown and not branch:
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


LOOK_NS = 100_000  # a single look of a loop that spins takes less


def _is_look(child: Node, node: Node) -> bool:
    """Whether a call is one of the looks of a loop that spins, rather than the loop."""
    is_short = child.total_ns < LOOK_NS * max(child.calls, 1)
    return child.waits_for == SPIN and (is_short or node.waits_for == SPIN)


def _without_plumbing(lines: list[Line]) -> list[Line]:
    """Returns the lines without the library code in which a thread begins: the tree begins at the thread's own
    function.
    """
    found = []
    for line in lines:
        passed_on = sum(child.total_ns for child in line.children)
        if line.library and line.children and passed_on >= THROUGH * line.total_ns:
            found.extend(line.children)
        else:
            found.append(line)
    return found


def sort(lines: list[Line], by: Column | None = None) -> None:
    """Sorts siblings by their time, or by another column."""
    key = by.order if by is not None else lambda line: -line.reach_ns
    work = [lines]
    while work:
        family = work.pop()
        family.sort(key=key)
        work.extend(line.children for line in family)


def walk(lines: list[Line]) -> Iterator[Line]:
    """Yields every line, and the lines below."""
    work = list(lines)
    while work:
        line = work.pop()
        yield line
        work.extend(line.children)


def choose(lines: list[Line], count: int, min_ns: float) -> set[int]:
    """Returns the ids of at most `count` lines: those of the longest calls, each with its parent."""
    chosen: set[int] = set()
    waiting = [line for line in lines if line.reach_ns >= min_ns]
    while waiting and len(chosen) < count:
        waiting.sort(key=lambda line: line.reach_ns)
        line = waiting.pop()
        chosen.add(id(line))
        waiting.extend(child for child in line.children if child.reach_ns >= min_ns)
    return chosen


def shorten(lines: list[Line]) -> None:
    """Folds chains of calls that only pass on: only the first and the last call of a chain stay."""
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
    """Returns the chosen lines of the tree, each behind its columns, below a head unless the columns are the
    usual two.
    """
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
        if cells(below) + 3 > width - FIGURES - NAME_MIN:  # too deep to indent further
            below = before
        work.extend((child, below, "└─ " if child is children[-1] else "├─ ") for child in reversed(children))
    return drawn


def _label(line: Line, room: int, paint: Paint, style: str | None) -> str:
    """Returns the name of a line, and notes about what is folded."""
    notes = []
    if line.beside:
        notes.append("beside the stack")
    if line.recursive:
        notes.append("recursive")
    if line.spun_ns:
        notes.append(f"spun {duration(line.spun_ns)}")
    elif line.node.waited_ns:
        kind = KINDS.get(line.node.waits_for, line.node.waits_for)
        notes.append(f"waits: {kind}" if line.node.only_waits else f"waited {duration(line.node.waited_ns)}: {kind}")
    if line.hidden:
        notes.append(f"{line.hidden} frame{'s' * (line.hidden > 1)} hidden")
    note = f"  [{', '.join(notes)}]" if notes else ""
    at = f"  {line.node.called_at}" if not line.children and not line.node.imports else ""
    if cells(note + at) <= room - NAME_MIN:
        note += at.rstrip()
    names = [name for name in sorted(line.packages, key=lambda name: -line.packages[name]) if name]
    names = [name for name in names if name != line.node.library][:LIBRARIES]
    if names:
        longer = f"{note}  {', '.join(names)}"
        note = longer if len(longer) <= room - NAME_MIN else note
    room = max(room, NAME_MIN)
    name = fit(line.node.shown, room - cells(note)) if room - cells(note) >= 12 else cut(line.node.shown, 12)
    return f"{paint(name, style)}{paint(note, 'dim')}"


def unfolded(root: Node) -> list[Line]:
    """Returns the whole tree for programs: parents before their children, nothing folded."""
    rows: list[Line] = []
    work = [(child, -1, 0) for child in reversed(list(root.children.values()))]
    while work:
        node, parent, depth = work.pop()
        line = Line(node)
        line.id, line.parent, line.depth = len(rows), parent, depth
        rows.append(line)
        work.extend((child, line.id, depth + 1) for child in reversed(list(node.children.values())))
    return rows
