"""The flame graph of a difference: the calls of both sides, each in a box as wide as the longer side's time. A box is
red where a function's own time grew, blue where it shrank. In a browser, flame_file.js of the viewer's page draws the
boxes of the picture, by itself and in the page around it (page.html).
"""

from __future__ import annotations

import os
import re

from vestige.base.content_hash import content_hash
from vestige.base.new_files import writing
from vestige.base.printable import one_line
from vestige.base.quantities import duration, percent, signed
from vestige.reading.kinds import NATIVE
from vestige.viewer.modules import join_modules
from vestige.viewer.pages import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vestige.cli.report.data import Node

    from .data import Run

WIDTH, ROW, LEFT, TOP = 1180, 18, 10, 64
LEAST = 1.0  # pixels: narrower boxes are left out
ROWS_MAX = 400
SCRIPT = "flame_file.js"
FULL = 0.5  # share of a box's time; a change of this much has the full colour


class Box:
    """A place in the tree of calls, with its times on both sides: mean ns of a run."""

    def __init__(self, name: str, label: str) -> None:
        self.name, self.label = name, label
        self.own = [0.0, 0.0]
        self.total = [0.0, 0.0]
        self.width = 0.0
        self.children: dict[str, Box] = {}


def build(before: Sequence[Run], after: Sequence[Run]) -> Box:
    root = Box("all", "all threads")
    for side, runs in enumerate((before, after)):
        for run in runs:
            _add(root, run.tree, side, 1 / len(runs))
    root.total = [sum(child.total[side] for child in root.children.values()) for side in (0, 1)]
    order = [root]
    for box in order:  # the list grows in the loop: parents come before children
        order.extend(box.children.values())
    for box in reversed(order):  # children that only one side has need room, too
        box.width = max(*box.total, sum(child.width for child in box.children.values()))
    return root


def _add(root: Box, tree: Node, side: int, weight: float) -> None:
    work = [(root, node) for node in tree.children.values()]
    while work:
        above, node = work.pop()
        name = _name(node)
        box = above.children.get(name)
        if box is None:
            box = above.children[name] = Box(name, _label(name) if node.kind == NATIVE else name)
        box.own[side] += weight * node.self_ns
        box.total[side] += weight * node.total_ns
        work.extend((box, child) for child in node.children.values())


def _name(node: Node) -> str:
    """Returns the shown name without the line, which changes when code above it changes."""
    if node.imports or not node.line:
        return node.shown
    return node.shown.replace(f":{node.line}: ", ": ", 1)


def _label(name: str) -> str:
    """Returns `str.join` for `<built-in method join of str object>`, `len` for `<built-in function len>`."""
    found = re.fullmatch(r"<built-in (?:method|function|type) (\S+)(?: of (\S+) object)?>", name)
    if found is None:
        return name
    return f"{found[2]}.{found[1]}" if found[2] else found[1]


def draw(root: Box, title: str) -> str:
    """Returns an SVG document without the script."""
    scale = WIDTH / (root.width or 1)
    boxes: list[str] = []
    deepest = 0
    work = [(root, 0.0, 0)]
    while work:
        box, left, depth = work.pop()
        wide = box.width * scale
        if wide < LEAST or depth >= ROWS_MAX:
            continue
        deepest = max(deepest, depth)
        place = f'data-x="{left / WIDTH:.12g}" data-w="{wide / WIDTH:.12g}" data-d="{depth}"'
        boxes.append(_draw_box(box, place, LEFT + left, TOP + depth * ROW, wide))
        at = left
        for child in sorted(box.children.values(), key=lambda one: one.name):
            work.append((child, at, depth + 1))
            at += child.width * scale
    height = TOP + (deepest + 1) * ROW + 10
    a, b = root.total
    change = percent(b / a - 1) if a else "new"
    head = f"all threads: {duration(a)} → {duration(b)}, {change}; red: its own time grew, blue: it shrank"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 2 * LEFT}" height="{height}" '
        f'viewBox="0 0 {WIDTH + 2 * LEFT} {height}" font-family="monospace" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n'
        f'<text x="{LEFT}" y="22" font-size="15">{_escape(title)}</text>\n'
        f'<text x="{LEFT}" y="44">{_escape(head)}</text>\n' + "\n".join(boxes) + "\n</svg>"
    )


def _draw_box(box: Box, place: str, x: float, y: int, wide: float) -> str:
    a, b = box.total
    change = box.own[1] - box.own[0]
    told = f"{box.name} ({duration(a)} → {duration(b)}"
    told += f", {signed(duration(b - a), b - a)}; own time {signed(duration(change), change)})"
    return (
        f'<svg {place} x="{x:.2f}" y="{y}" width="{max(wide - 0.5, 0.5):.2f}" height="{ROW - 1}" '
        f'fill="{_colour(change, max(a, b))}"><title>{_escape(told)}</title><rect width="100%" height="100%"/>'
        f'<text x="3" y="12" fill="#000">{_escape(box.label)}</text></svg>'
    )


def _colour(change: float, total: float) -> str:
    strength = min(abs(change) / (FULL * total), 1.0) if total else 0.0
    faded = round(235 - 135 * strength)
    if strength < 0.01:
        return "#ebebeb"
    return f"#f5{faded:02x}{faded:02x}" if change > 0 else f"#{faded:02x}{faded:02x}f5"


def _escape(text: str) -> str:
    return one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def alone(picture: str) -> str:
    """Returns the picture as a file of its own, with the script."""
    script = f"<script><![CDATA[\n{join_modules([FOLDER], SCRIPT)}]]></script>"
    return f"{picture.removesuffix('</svg>')}{script}</svg>\n"


def page(picture: str, title: str, findings: Sequence[str]) -> str:
    """Returns the picture in a page, below sentences about the changes."""
    with open(os.path.join(os.path.dirname(__file__), "page.html"), encoding="utf-8") as file:
        template = file.read()
    style = re.findall("<style>(.*?)</style>", template, re.DOTALL)[0]
    script = join_modules([FOLDER], SCRIPT)
    parts = {
        "policy": f"default-src 'none'; script-src '{content_hash(script)}'; style-src '{content_hash(style)}'; "
        "base-uri 'none'; form-action 'none'",
        "title": _escape(title),
        "findings": "".join(f"<li>{_escape(finding)}</li>" for finding in findings) or "<li>no finding</li>",
        "picture": picture,
        "script": script,
    }
    return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], template)


def write(path: str, text: str) -> None:
    with writing(path, encoding="utf-8") as file:
        file.write(text)
