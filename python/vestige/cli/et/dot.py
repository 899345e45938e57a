"""A part of an execution trace as a graph in Graphviz's language: boxes for operators, arrows for tensors between them.
A large graph is folded: a box then stands for an operator and everything below it.
"""

from __future__ import annotations

import sys

from .node import THREAD, USER
from .tree import shown_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from .tree import Operator, Tree


ENGINE = "autograd::engine::evaluate_function: "


class Box:
    """An operator with everything below it."""

    __slots__ = ("before", "below", "caption", "edges", "operator", "order")

    def __init__(self, order: int, operator: Operator, caption: str, below: int) -> None:
        self.order = order
        self.operator = operator
        self.caption = caption  # the thread or annotation that contains the operator
        self.below = below  # the number of further operators that the box stands for
        self.before: dict[int, str] = {}  # tensors that the box uses and no box made
        self.edges: dict[Box, list[str]] = {}  # boxes that use tensors of this box → these tensors


class Drawing:
    """The boxes and arrows for some operators of a tree."""

    def __init__(self, tree: Tree, tops: list[Operator], depth: int | None, most: int) -> None:
        self.tree = tree
        self.notes: list[str] = []
        self.boxes: list[Box] = []
        self._of: dict[int, Box] = {}  # a node's id → its box
        deepest = sys.maxsize
        chosen = _choose(tops, depth or sys.maxsize, plain=depth is not None)
        while depth is None and len(chosen) > most and deepest > 1:
            deepest = max(level for _, level, _ in chosen) - 1
            chosen = _choose(tops, deepest, plain=False)
        for operator, _, caption in chosen[:most]:
            self._add(operator, caption)
        folded = sum(box.below for box in self.boxes)
        self._connect(tops)
        every = sum(operator.name != THREAD for top in tops for operator in top.subtree())
        self.title = f"{tree.path}: {len(self.boxes):,} operators drawn of {every:,}"
        if folded:
            self.notes.append(
                f"folded: boxes marked +N stand for {folded:,} more operators that these called; --depth N unfolds"
            )
        if len(chosen) > most:
            self.notes.append(
                f"the first {most:,} of {len(chosen):,} operators; --max draws more, --name and --thread choose"
            )

    def _add(self, operator: Operator, caption: str) -> None:
        below = operator.subtree()
        caption = caption.removeprefix(ENGINE)
        box = Box(len(self.boxes), operator, "" if caption == operator.name else caption, len(below) - 1)
        self.boxes.append(box)
        for one in below:
            self._of[one.id] = box

    def _connect(self, tops: list[Operator]) -> None:
        """Finds the operator that made each tensor last before its use. Operators begin in the order of their ids. An
        operator ends before the next one begins, unless that one is below it.
        """
        moments: list[tuple[int, int, int, Operator]] = []
        for top in tops:
            for operator in top.subtree():
                if operator.name != THREAD:
                    moments.append((operator.id, 0, 0, operator))
                    moments.append((operator.last, 1, -operator.depth, operator))
        moments.sort(key=lambda moment: moment[:3])
        makers: dict[int, Box] = {}
        latest: Box | None = None
        for _, ends, _, operator in moments:
            box = self._of.get(operator.id)
            if box is None:  # an unfolded operator: its children are drawn
                if ends and latest is not None:
                    for number, _ in operator.tensors(gave=True):
                        makers.setdefault(number, latest)
                continue
            latest = box
            if ends:
                for number, _ in operator.tensors(gave=True):
                    makers[number] = box
            else:
                _read(operator, box, makers)


def _choose(tops: list[Operator], depth: int, *, plain: bool) -> list[tuple[Operator, int, str]]:
    """Chooses the operators to draw, with their depth and container. Unfolds threads, annotations and operators without
    tensors of their own; with `plain`, unfolds everything above the depth.
    """
    chosen = []
    stack = [(top, 0 if top.name == THREAD else 1, "") for top in reversed(tops)]
    while stack:
        operator, level, caption = stack.pop()
        opens = plain or operator.scope == USER or not any(number for number, _ in (*operator.given, *operator.gave))
        if level == 0 or (level < depth and operator.children and opens):
            inside = "" if level == 0 else operator.name
            stack.extend((child, level + 1, inside) for child in reversed(operator.children))
        else:
            chosen.append((operator, level, caption))
    return chosen


def _read(operator: Operator, box: Box, makers: dict[int, Box]) -> None:
    """Adds arrows to the box from the boxes that made the inputs of operators in it. Leaves out a tensor that no known
    operator made and that only the inside of the box uses.
    """
    own = operator is box.operator or not any(number for number, _ in box.operator.given)
    for number, text in operator.tensors(gave=False):
        maker = makers.get(number)
        if maker is None:
            if own and not text.startswith("undefined"):
                box.before[number] = text
        elif maker is not box:
            tensors = maker.edges.setdefault(box, [])
            if text not in tensors:
                tensors.append(text)


# ---- the file ------------------------------------------------------------


def write_dot(drawing: Drawing, file: TextIO) -> None:
    names = {box: f"b{index}" for index, box in enumerate(drawing.boxes)}
    file.write(f"digraph {_quoted(drawing.title)} {{\n")
    file.write('  node [shape=box, style="rounded,filled", fillcolor="#eef2f7", fontname="Helvetica", fontsize=10];\n')
    file.write('  edge [fontname="Helvetica", fontsize=8, color="#7a8797"];\n')
    for note in drawing.notes:
        file.write(f"  // {note}\n")
    for box, name in names.items():
        operator = box.operator
        label = [operator.name, f"#{operator.id}" + (f" +{box.below}" if box.below else "")]
        gave = ", ".join(text for _, text in operator.gave)
        label += [text for text in (gave, shown_time(operator.duration)) if text]
        colour = {1: ', fillcolor="#efe6fb"', 7: ', fillcolor="#fdf1d6"'}.get(operator.scope, "")
        file.write(f"  {name} [label={_quoted(chr(10).join(label))}{colour}];\n")
    for box, name in names.items():
        for other, tensors in box.edges.items():
            file.write(f"  {name} -> {names[other]} [label={_quoted(_edge_text(tensors))}];\n")
    file.write("}\n")


def _edge_text(tensors: list[str]) -> str:
    """Returns the name of one tensor, and how many more there are."""
    return tensors[0] + (f" +{len(tensors) - 1}" if len(tensors) > 1 else "")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
