"""Answers about the calls of a trace for agents: as a tree, or by function. A line of the tree has an id, which stands
for its place in the tree: the names of all calls from the root to this one. Equal questions about a trace always give
equal ids.
"""

from __future__ import annotations

from zlib import crc32

from vestige._core import TraceError
from vestige.base.failure import Failure, explain
from vestige.base.quantities import duration, plural
from vestige.cli.report.data import Data, Node, copy_node, merge_nodes
from vestige.cli.report.notes import span_of, within_budget
from vestige.cli.report.tree import Line, choose, fold, walk
from vestige.reading.inputs import find_traces
from vestige.reading.layout import Layout
from vestige.reading.report_columns import FUNCTIONS, TREE

from .bounded import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .folder import Folder

LINE = 90  # approximate bytes of a line of the tree
SMALLEST = 0.001  # share of the shown time; calls that took less get no line
CALLERS = 5


class Calls:
    """The calls of a trace and of its children's traces."""

    def __init__(self, folder: Folder, trace: str, tables: Sequence[str], **options: Any) -> None:
        self.path = folder.trace(trace)
        self.id = folder.id_of(self.path)
        self.data = Data()
        inputs = find_traces([self.path], children=True)
        facts = [source.facts for source in inputs.sources]
        self.span_ns = span_of(facts)
        self.lost = sum(each["lost"] + each["dropped"] for each in facts)
        self.processes = len(facts)
        for source in inputs.sources:
            try:
                self.data.add(source.open(), source.metadata, tables, together=True, **options)
            except (OSError, TraceError) as error:
                raise Failure(explain(folder.id_of(source.path), error)) from None

    def head(self) -> str:
        """Returns a line about all calls."""
        threads = plural(len(self.data.threads), "thread")
        processes = f", {self.processes:,} processes" if self.processes > 1 else ""
        lost = f"; {self.lost:,} records are missing" if self.lost else ""
        return f"{self.id}: {duration(self.span_ns)}, {self.data.calls:,} calls, {threads}{processes}{lost}"


# ---- a tree -----------------------------------------------------------------


def tree(folder: Folder, trace: str, function: str, node: str, libraries: bool, max_tokens: int) -> str:
    """Answers with the tree of calls, or the part below a function or a place."""
    calls = Calls(folder, trace, ["calls"], fold_imports=not libraries, awaits=True)
    whole = calls.data.threads_ns
    answer = Answer(max_tokens)
    answer.add(calls.head())
    if function:
        root, callers = _below(calls.data.tree, function)
        answer.add(f"called from: {callers}")
    else:
        root = calls.data.tree
    lines = fold(root, whole, libraries=not libraries)
    ids = _ids(lines, f"{int(libraries)}{function}")
    if node:
        lines = [line for line in walk(lines) if ids[id(line)] == node]
        if not lines:
            raise Failure(f"there is no node {node} in this tree: ids hold for the same trace, function and libraries")
    _draw(answer, lines, ids, whole)
    return answer.text("ask for the tree of a node, or with a larger max_tokens")


def _draw(answer: Answer, lines: list[Line], ids: dict[int, str], whole: int) -> None:
    least = SMALLEST * sum(line.total_ns for line in lines)
    chosen = choose(lines, max(answer.max_tokens * 3 // LINE, 1), least)
    columns = TREE.pick("total", "share", "self", "calls", "name")
    figures = Layout(columns, whole_ns=whole, headings={"name": "node       function"})
    answer.add(figures.head)
    work = [(line, 0) for line in reversed(lines) if id(line) in chosen]
    while work:
        line, depth = work.pop()
        notes = [f"{line.hidden} frames of libraries folded"] if line.hidden else []
        notes += ["recursive"] if line.recursive else []
        folded = sum(id(child) not in chosen for child in line.children)
        notes += [f"{folded} more inside"] if folded else []
        note = f"  [{', '.join(notes)}]" if notes else ""
        answer.add(f"{figures.before(line)}  {ids[id(line)]}  {'  ' * depth}{line.node.shown}{note}")
        inside = [child for child in line.children if id(child) in chosen]
        work.extend((child, depth + 1) for child in reversed(inside))


def _ids(lines: list[Line], kind: str) -> dict[int, str]:
    """Returns the id of each line's place, by the line's Python id()."""
    found: dict[int, str] = {}
    work = [(line, crc32(kind.encode())) for line in lines]
    while work:
        line, above = work.pop()
        number = crc32(line.node.shown.encode("utf-8", "replace") + b"\0", above)
        found[id(line)] = f"n{number:08x}"
        work.extend((child, number) for child in line.children)
    return found


def matches(shown: str, name: str, asked: str) -> bool:
    """Returns whether `asked` means a function: its shown name, its qualified name, or the last part of that. The name
    of a module means an import: `import pandas`.
    """
    if shown.startswith("import "):
        return asked == shown or (asked.startswith("import ") and shown.endswith(f".{asked[7:]}"))
    return asked in (shown, name) or name.endswith(f".{asked}")


def _below(root: Node, function: str) -> tuple[Node, str]:
    """Returns a root above all outermost calls of a function, merged into one, and a sentence about its callers."""
    top = Node()
    callers: dict[str, list[int]] = {}
    work = list(root.children.values())
    above = {id(child): "the program" for child in work}
    while work:
        node = work.pop()
        if matches(node.shown, node.name, function):
            sums = callers.setdefault(above[id(node)], [0, 0])
            sums[0] += node.calls
            sums[1] += node.total_ns
            _add(top, node)
        else:
            for child in node.children.values():
                above[id(child)] = node.shown
                work.append(child)
    if not callers:
        raise Failure(f"no function is called {function}; `functions` lists them, as `f`, `Class.f` or `file.py:3: f`")
    ranked = sorted(callers.items(), key=lambda item: -item[1][1])
    words = [f"{name} ({plural(calls, 'call')}, {duration(ns)})" for name, (calls, ns) in ranked[:CALLERS]]
    more = f", {len(ranked) - CALLERS:,} more" if len(ranked) > CALLERS else ""
    return top, ", ".join(words) + more


def _add(top: Node, node: Node) -> None:
    if node.shown in top.children:
        merge_nodes(top.children[node.shown], node)
    else:
        top.children[node.shown] = copy_node(node)


# ---- functions --------------------------------------------------------------


SORTS = ("self", "total", "calls")


def functions(folder: Folder, trace: str, sort: str, contains: str, max_tokens: int) -> str:
    """Answers with functions, sorted by their times or calls."""
    calls = Calls(folder, trace, ["functions"])
    entries = [entry for entry in calls.data.functions.values() if entry.calls and contains in entry.shown]
    answer = Answer(max_tokens)
    answer.add(calls.head())
    for line in (line for budget in calls.data.budgets for line in within_budget(budget)):
        answer.add(line)
    table = Layout(FUNCTIONS.pick("self", "share", "total", "calls", "name"), whole_ns=calls.data.threads_ns)
    answer.add(table.head)
    for entry in FUNCTIONS.sorted(entries, FUNCTIONS.find(sort)):
        answer.add(table.line(entry))
    return answer.text("ask with `contains`, another `sort`, or a larger max_tokens")
