"""Where boxes go: in layers, so that every arrow leads down, with few arrows that cross.

Layers are those of the longest path. An arrow over several layers goes through points in those between, so that it
passes between boxes. The order within layers follows the middle of the neighbours', a few times down and up.
"""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .draw import Box, Drawing

GAP_X, GAP_Y = 22, 46
WIDE = 9  # boxes of a layer; more go to a layer of their own
BEFORE_MAX = 4  # layers that the first box of a path may lie above the operator before it
POINTS_MAX = 40000
SWEEPS = 6


class Place:
    """Where a box is or, if `box` is None, a point that an arrow passes."""

    __slots__ = ("above", "below", "box", "height", "layer", "width", "x", "y")

    def __init__(self, box: Box | None, width: float, height: float, layer: int) -> None:
        self.box = box
        self.width = width
        self.height = height
        self.layer = layer
        self.x = 0.0  # its middle
        self.y = 0.0  # its top
        self.above: list[Place] = []
        self.below: list[Place] = []


class Layout:
    """Places of a drawing's boxes, and the arrows as the places that they pass."""

    def __init__(self, drawing: Drawing, size: object) -> None:
        """`size(box)` is its width and height."""
        self.places: dict[Box, Place] = {}
        self.arrows: list[tuple[list[Place], list[str]]] = []
        layers = _assign(drawing)
        for box, layer in layers.items():
            width, height = size(box)  # type: ignore[operator]
            self.places[box] = Place(box, width, height, layer)
        self._rows: list[list[Place]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
        for place in self.places.values():
            self._rows[place.layer].append(place)
        self._route(drawing)
        self._order()
        self._align()
        self.width = max((place.x + place.width / 2 for row in self._rows for place in row), default=0)
        self.height = max((place.y + place.height for row in self._rows for place in row), default=0)

    def _route(self, drawing: Drawing) -> None:
        points = 0
        for box in drawing.boxes:
            for other, tensors in box.edges.items():
                path = [self.places[box]]
                end = self.places[other]
                between = range(path[0].layer + 1, end.layer)
                points += len(between)
                if points <= POINTS_MAX:
                    for layer in between:
                        point = Place(None, 4, 0, layer)
                        self._rows[layer].append(point)
                        path.append(point)
                path.append(end)
                for first, second in pairwise(path):
                    first.below.append(second)
                    second.above.append(first)
                self.arrows.append((path, tensors))

    def _order(self) -> None:
        rank: dict[Place, float] = {}
        for row in self._rows:
            for index, place in enumerate(row):
                rank[place] = index
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            for row in self._rows if down else reversed(self._rows):
                for place in row:
                    near = place.above if down else place.below
                    if near:
                        rank[place] = sum(rank[one] for one in near) / len(near)
                row.sort(key=lambda place: rank[place])
                for index, place in enumerate(row):
                    rank[place] = index

    def _align(self) -> None:
        y = 0.0
        for row in self._rows:
            x = 0.0
            height = max((place.height for place in row), default=0)
            for place in row:
                place.x = x + place.width / 2
                x += place.width + GAP_X
                place.y = y + (height - place.height) / 2
            y += height + GAP_Y
        widest = max((row[-1].x for row in self._rows if row), default=0)
        for row in self._rows:
            shift = (widest - row[-1].x) / 2 if row else 0
            for place in row:
                place.x += shift
        for sweep in range(2 * SWEEPS):
            for row in self._rows if sweep % 2 == 0 else reversed(self._rows):
                _settle(row)
        left = min((place.x - place.width / 2 for row in self._rows for place in row), default=0)
        for row in self._rows:
            for place in row:
                place.x -= left


def _settle(row: list[Place]) -> None:
    """Moves each place towards the middle of its neighbours, as far as its order and the gaps allow: the mean of what
    a pass from the left and one from the right come to."""
    wished = []
    for place in row:
        near = [one.x for one in place.above] + [one.x for one in place.below]
        wished.append(sum(near) / len(near) if near else place.x)
    left, right = wished[:], wished[:]
    for k in range(1, len(row)):
        left[k] = max(left[k], left[k - 1] + _apart(row[k - 1], row[k]))
    for k in range(len(row) - 2, -1, -1):
        right[k] = min(right[k], right[k + 1] - _apart(row[k], row[k + 1]))
    for place, one, other in zip(row, left, right):
        place.x = (one + other) / 2


def _apart(first: Place, second: Place) -> float:
    points = first.box is None and second.box is None
    return (first.width + second.width) / 2 + (8 if points else GAP_X)


def _assign(drawing: Drawing) -> dict[Box, int]:
    """A layer for each box, one below all that it uses. One without arrows stays with the operator before it, and one
    that uses nothing is not much above it: time goes down. An arrow that would lead up (of threads that run at once) is
    left out."""
    layers = dict.fromkeys(drawing.boxes, 0)
    used: set[Box] = set()
    for box in drawing.boxes:
        for other in [other for other in box.edges if other.order <= box.order]:
            del box.edges[other]
        used.update(box.edges)
    latest = 0
    for box in drawing.boxes:
        if box not in used:
            layers[box] = max(latest - BEFORE_MAX, 0) if box.edges else latest
        for other in box.edges:
            layers[other] = max(layers[other], layers[box] + 1)
        latest = layers[box]
    for box in reversed(drawing.boxes):  # the first box of a path lies as near as it can to the first that uses it
        if box not in used and box.edges:
            layers[box] = max(layers[box], min(layers[other] for other in box.edges) - 1)
    return _narrow(layers)


def _narrow(layers: dict[Box, int]) -> dict[Box, int]:
    """Numbers layers from 0 on; one that is too wide becomes several."""
    rows: dict[int, list[Box]] = {}
    for box, layer in layers.items():
        rows.setdefault(layer, []).append(box)
    result: dict[Box, int] = {}
    number = 0
    for layer in sorted(rows):
        row = sorted(rows[layer], key=lambda box: box.order)
        for begin in range(0, len(row), WIDE):
            for box in row[begin : begin + WIDE]:
                result[box] = number
            number += 1
    return result
