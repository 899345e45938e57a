"""The findings and the flame graph of a notebook's cell, and places in cells written as `In [2]:3`. IPython's own
functions around the cell, and threads from before the cell, are left out.
"""

from __future__ import annotations

import re

from vestige.base.printable import one_line
from vestige.base.quantities import duration, plural
from vestige.base.terminal import UNBOUNDED
from vestige.reading.kinds import NATIVE
from vestige.reading.labels import MODULE_CODE, plain_name
from vestige.reading.metadata import check_shapes, load_json

from .data import FOR_FINDINGS, Data, Node
from .findings import Evidence, engine_of, find, lines, not_examined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from vestige._core import Trace
    from vestige.reading.overview import Overview

ROW, LEAST, DEPTH = 16, 1.0, 60  # of the picture: height of a box, least width, and most rows
PIXELS = 900


class Places:
    """Writes the files of cells as `In [2]`. `numbers` are those of all cells, by the files that IPython gives them."""

    def __init__(self, trace: Trace, numbers: Mapping[str, int]) -> None:
        shown = {
            function.shown_file: numbers[function.file]
            for function in trace.functions()
            if function and function.file in numbers
        }
        self._cells = {file: f"In [{number}]" for file, number in shown.items()}
        files = "|".join(sorted(map(re.escape, shown), key=len, reverse=True))
        self._pattern = re.compile(rf"({files})(?::(\d+)|\((\d+)\))") if files else None

    def text(self, text: str) -> str:
        """Returns the text with `In [2]:3` for `<ipython-input-2-…>:3` and for `<ipython-input-2-…>(3)`."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"{self._cells[found[1]]}:{found[2] or found[3]}", text)


def explain(
    overview: Overview,
    trace: Trace,
    selection: dict[str, Any],
    cell: str,
    threads: Collection[int],
    places: Places,
) -> None:
    """Adds findings and the flame graph to an overview. `cell`: the file of the cell; `threads`: the ids of the threads
    that were there before, and are not the cell's.
    """
    metadata = check_shapes({key: load_json(text) for key, text in trace.metadata().items()})
    numbers = [thread["number"] for thread in trace.threads() if thread["tid"] not in threads]
    if not numbers:
        return
    data = Data()
    options = {name: value for name, value in selection.items() if name != "framework"}
    data.add(trace, metadata, FOR_FINDINGS, fold_imports=True, awaits=True, by_thread=True, threads=numbers, **options)
    data.tree = _below(data.tree, cell)
    facts = [trace.info()]
    found = find(Evidence(data, facts, engine_of(trace), traces=lambda: [trace]))
    for finding in found:
        finding.text = places.text(finding.text)
    overview.findings = lines(found, UNBOUNDED, not_examined(facts, [metadata]))
    overview.picture = _draw(data.tree, places)


def _below(tree: Node, cell: str) -> Node:
    """Returns the tree without the notebook's calls around the cell."""
    root = Node()
    for key, child in tree.children.items():
        inside: list[tuple[str, Node]] = []
        work = [(key, child)]
        while work:
            name, node = work.pop()
            if node.file == cell and node.name == MODULE_CODE:
                inside.append((name, node))
            else:
                work += node.children.items()
        root.children.update(inside or [(key, child)])
    root.total_ns = sum(child.total_ns for child in root.children.values())
    return root


def _draw(tree: Node, places: Places) -> str:
    """Returns a flame graph as SVG, each box with its figures as a title; "" if there are no calls."""
    scale = PIXELS / tree.total_ns if tree.total_ns > 0 else 0.0
    boxes: list[str] = []
    deepest = 0
    work = [(tree, 0.0, -1)]
    while work:
        node, left, depth = work.pop()
        if depth >= 0:
            boxes.append(_box(node, left, depth, node.total_ns * scale, places, tree.total_ns))
            deepest = max(deepest, depth)
        for child in sorted(node.children.values(), key=lambda child: -child.total_ns):
            if child.total_ns * scale >= LEAST and depth + 1 < DEPTH:
                work.append((child, left, depth + 1))
            left += child.total_ns * scale
    if not boxes:
        return ""
    high = (deepest + 1) * ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PIXELS} {high}" width="100%" '
        f'style="max-width:{PIXELS}px" font-family="monospace" font-size="11" role="img" '
        f'aria-label="flame graph">{"".join(boxes)}</svg>'
    )


def _box(node: Node, left: float, depth: int, wide: float, places: Places, whole: int) -> str:
    from html import escape

    name = one_line(places.text(plain_name(node.shown) if node.kind == NATIVE else node.shown))
    title = f"{name} ({duration(node.total_ns)}, {node.total_ns / whole:.0%}, {plural(node.calls, 'call')})"
    shade = 60 + sum(name.encode()) % 25
    return (
        f'<svg x="{left:.1f}" y="{depth * ROW}" width="{max(wide - 0.5, 0.5):.1f}" height="{ROW - 1}">'
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="hsl(30,80%,{shade}%)"/>'
        f'<text x="3" y="11" fill="#000">{escape(name) if wide > 30 else ""}</text></svg>'
    )
