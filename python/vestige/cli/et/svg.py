"""A drawing of an execution trace as SVG: one file, no fonts or styles from elsewhere."""

from __future__ import annotations

from itertools import pairwise
from xml.sax.saxutils import escape

from .draw import ENGINE, edge_text
from .layout import Layout
from .tree import shown_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from .draw import Box, Drawing
    from .layout import Place

LETTER, SMALL = 6.65, 5.45  # widths of a letter of 11 and 9 px
NAME_MAX = 38
MARGIN = 28
KINDS = {0: "op", 1: "backward", 2: "script", 7: "user"}
LEGEND = (("op", "operator"), ("backward", "backward"), ("user", "annotation"), ("script", "TorchScript"))
STYLE = """
.page { fill: #fbfcfd }
text { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 11px; fill: #1c2733 }
.title { font-size: 15px; font-weight: 600 } .note { fill: #9a5b00 } .small { font-size: 9px; fill: #5d6b7a }
.box rect { stroke-width: 1 } .box .name { font-weight: 600 }
.op rect.body { fill: #eaf1fb; stroke: #86a9d6 } .backward rect.body { fill: #f2eafc; stroke: #b294dc }
.user rect.body { fill: #fdf3dc; stroke: #dcb25c } .script rect.body { fill: #e3f5f1; stroke: #72bcae }
.other rect.body { fill: #eef0f2; stroke: #a9b2bc }
.under { fill: none; stroke: #b9c3ce } .badge { font-size: 9px; fill: #34516f; font-weight: 600 }
.track { fill: #d5dde6 } .time { fill: #e0603a }
.edge { fill: none; stroke: #9aa8b6; stroke-width: 1.1 }
.label { font-size: 8.5px; fill: #6a7785; paint-order: stroke; stroke: #fbfcfd; stroke-width: 3px }
.arrow { fill: #9aa8b6 }
"""


def write_svg(drawing: Drawing, file: TextIO) -> None:
    write_picture(drawing, file, standalone=True)


def write_picture(drawing: Drawing, file: TextIO, *, standalone: bool) -> None:
    """The picture; in a page it has no background of its own."""
    layout = Layout(drawing, _size)
    lines = [drawing.title, *drawing.notes]
    top = MARGIN + 22 * len(lines) + 30
    width = max(layout.width + 2 * MARGIN, max(len(line) for line in lines) * 8 + 2 * MARGIN, 640)
    height = layout.height + top + MARGIN
    left = (width - layout.width) / 2
    size = f'width="{width:.0f}" height="{height:.0f}" ' if standalone else ""
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" {size}viewBox="0 0 {width:.0f} {height:.0f}">\n')
    file.write(f"<style>{STYLE}</style>\n")
    file.write(
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="arrow" d="M0 0.8 L8 4 L0 7.2 z"/></marker></defs>\n'
    )
    if standalone:
        file.write('<rect class="page" width="100%" height="100%"/>\n')
    for index, line in enumerate(lines):
        style = "note" if index else "title"
        file.write(f'<text class="{style}" x="{MARGIN}" y="{MARGIN + 6 + 22 * index}">{_text(line)}</text>\n')
    _write_legend(drawing, file, MARGIN + 22 * len(lines))
    file.write(f'<g transform="translate({left:.1f} {top})">\n')
    numbers = {box: index for index, box in enumerate(drawing.boxes)}
    for path, tensors in layout.arrows:
        _write_arrow(path, tensors, numbers, file)
    for box, place in layout.places.items():
        _write_box(box, place, numbers[box], drawing.longest, file)
    file.write("</g>\n</svg>\n")


def _size(box: Box) -> tuple[float, float]:
    name, *rest = _texts(box)
    widest = max(len(name) * LETTER, *(len(text) * SMALL for text in rest))
    badge = (len(str(box.below)) + 3) * SMALL if box.below else 0
    return max(widest + 20 + badge, 96), 20 + 12 * len(rest) + (8 if box.operator.duration is not None else 3)


def _texts(box: Box) -> list[str]:
    """The lines of a box: its name; its number, time and what it gave; what it uses from before; what it is in."""
    operator = box.operator
    gave = ", ".join(text for _, text in operator.gave)
    facts = "  ".join(text for text in (f"#{operator.id}", shown_time(operator.duration), gave and f"→ {gave}") if text)
    lines = [_short(operator.name.removeprefix(ENGINE)), _short(facts, 46)]
    if box.before:
        lines.append(_short("uses " + ", ".join(box.before.values()), 46))
    return [*lines, *([f"in {_short(box.caption, 42)}"] if box.caption else [])]


def _write_legend(drawing: Drawing, file: TextIO, y: float) -> None:
    kinds = {_kind(box) for box in drawing.boxes}
    x = float(MARGIN)
    for kind, text in LEGEND:
        if kind in kinds:
            file.write(f'<g class="{kind}"><rect class="body" x="{x}" y="{y}" width="14" height="11" rx="3"/></g>')
            file.write(f'<text class="small" x="{x + 19}" y="{y + 9}">{text}</text>\n')
            x += 19 + len(text) * SMALL + 18
    if drawing.longest:
        file.write(f'<rect class="time" x="{x}" y="{y + 4}" width="14" height="4" rx="2"/>')
        text = f"time; a whole bar is {shown_time(drawing.longest)}"
        file.write(f'<text class="small" x="{x + 19}" y="{y + 9}">{text}</text>\n')


def _kind(box: Box) -> str:
    return KINDS.get(box.operator.scope, "other")


def _write_box(box: Box, place: Place, number: int, longest: float, file: TextIO) -> None:
    x, y, width, height = place.x - place.width / 2, place.y, place.width, place.height
    file.write(f'<g class="box {_kind(box)}" id="b{number}" transform="translate({x:.1f} {y:.1f})">')
    operator = box.operator
    file.write(f"<title>{_text(_tip(box))}</title>")
    if box.below:
        file.write(f'<rect class="under" x="3.5" y="3.5" width="{width:.1f}" height="{height:.1f}" rx="5"/>')
    file.write(f'<rect class="body" width="{width:.1f}" height="{height:.1f}" rx="5"/>')
    name, *rest = _texts(box)
    file.write(f'<text class="name" x="10" y="15">{_text(name)}</text>')
    for index, text in enumerate(rest):
        file.write(f'<text class="small" x="10" y="{27 + 12 * index}">{_text(text)}</text>')
    if box.below:
        text = f"+{box.below}"
        x = width - len(text) * SMALL - 8
        file.write(f'<text class="badge" x="{x:.1f}" y="27">{text}</text>')
    if operator.duration is not None and longest:
        bar = width - 16
        file.write(f'<rect class="track" x="8" y="{height - 7:.1f}" width="{bar:.1f}" height="3" rx="1.5"/>')
        long = max(bar * operator.duration / longest, 1)
        file.write(f'<rect class="time" x="8" y="{height - 7:.1f}" width="{long:.1f}" height="3" rx="1.5"/>')
    file.write("</g>\n")


def _tip(box: Box) -> str:
    operator = box.operator
    rows = [operator.name, f"node {operator.id}, thread {operator.tid}"]
    rows += [f"uses from before: #{number} {text}" for number, text in box.before.items()]
    rows += [f"given: {text}" for _, text in operator.given] + [f"gave: {text}" for _, text in operator.gave]
    if operator.duration is not None:
        rows.append(f"took {shown_time(operator.duration)}")
    return "\n".join([*rows, *([f"{box.below} operators below it"] if box.below else [])])


def _write_arrow(path: list[Place], tensors: list[str], numbers: dict[Box, int], file: TextIO) -> None:
    first, last = path[0], path[-1]
    assert first.box is not None and last.box is not None
    points = [(first.x, first.y + first.height)]
    points += [(place.x, place.y) for place in path[1:-1]]
    points.append((last.x, last.y - 1))
    shape = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = (y1 - y0) / 2
        shape += f"C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
    ends = f"e{numbers[first.box]} e{numbers[last.box]}"
    text = _text(", ".join(tensors))
    file.write(f'<path class="edge {ends}" d="{shape}" marker-end="url(#arrow)"><title>{text}</title></path>')
    (x0, y0), (x1, y1) = points[0], points[1]
    label = edge_text(tensors)
    x = x0 + (x1 - x0) / 2 - len(label) * 2.4
    file.write(f'<text class="label {ends}" x="{x:.1f}" y="{y0 + (y1 - y0) / 2 + 3:.1f}">{_text(label)}</text>')
    file.write("\n")


def _short(text: str, most: int = NAME_MAX) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() or c == "\n" else "�" for c in text), {'"': "&quot;"})
