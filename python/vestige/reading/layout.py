"""Tables of columns as text. Lines are as wide as the terminal, or as wide as the names if the output is not a
terminal.
"""

from __future__ import annotations

from vestige.base.terminal import UNBOUNDED, Paint, cells, cut, fit, pad, width_of

from .report_columns import MOMENT, SHARES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TextIO

    from .report_columns import Column

HOT = 0.25  # rows with at least this share of the time have a strong colour
LEAST = 8  # the least width of the last column
NOTHING: Mapping[str, str] = {}


class Layout:
    """Formats rows as lines. A text column has a fixed width unless it is the last, which takes the rest of the line.
    Shares are relative to `whole_ns`, and moments are counted from `start_ns`. `headings` replaces headings by key;
    `style` returns the style of a cell.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Sequence[Any] = (),
        width: int = UNBOUNDED,
        *,
        whole_ns: int = 1,
        start_ns: int = 0,
        headings: Mapping[str, str] = NOTHING,
        style: Callable[[Any, Column], str | None] | None = None,
    ) -> None:
        self._columns = columns
        self._whole_ns = whole_ns or 1
        self._start_ns = start_ns
        self._style = style or self._usual_style
        self._widths = []
        for column in columns:
            room = max(column.width, len(headings.get(column.key, column.heading)))
            if column.unit.is_text and width >= UNBOUNDED and column is not columns[-1]:
                room = max([room, *(cells(self.text(column, row)) for row in rows)])
            self._widths.append(room)
        self._share = next((column for column in columns if column.unit in SHARES), None)
        before = self._join([" " * room for room in self._widths[:-1]])
        self._room = max(width - len(before) - 2, LEAST)
        heads = [headings.get(column.key, column.heading) for column in columns]
        self.head = self._join([self._placed(at, head) for at, head in enumerate(heads)])

    def text(self, column: Column, row: Any) -> str:
        value = column.look(row)
        if column.unit in SHARES and value is not None:
            value = min(value / self._whole_ns, 1.0)
        elif column.unit is MOMENT:
            value -= self._start_ns
        return column.unit.text(value)

    def line(self, row: Any, paint: Paint | None = None) -> str:
        texts = self._texts(row)
        if paint is not None and paint.on:
            texts = [paint(text, self._style(row, column)) for column, text in zip(self._columns, texts)]
        return self._join(texts)

    def _usual_style(self, row: Any, column: Column) -> str | None:
        """Returns "hot" for rows with a quarter of the time or more, "dim" for functions of a library."""
        ns = self._share.look(row) if self._share is not None else None
        if ns is not None and ns >= HOT * self._whole_ns:
            return "hot" if column.unit.is_text or (self._share and column.shown == self._share.shown) else None
        return "dim" if column.unit.is_text and getattr(row, "library", None) else None

    def before(self, row: Any) -> str:
        """Returns the line without its last column."""
        return self._join(self._texts(row)[:-1])

    def _texts(self, row: Any) -> list[str]:
        return [self._placed(at, self.text(column, row)) for at, column in enumerate(self._columns)]

    def _placed(self, at: int, text: str) -> str:
        """Returns the text of a cell, padded or cut to the width of its column."""
        room, is_last = self._widths[at], at == len(self._columns) - 1
        if not self._columns[at].unit.is_text:
            return f"{text:>{room}}"
        return fit(text, self._room) if is_last else pad(cut(text, room), room)

    def _join(self, parts: Sequence[str]) -> str:
        line = ""
        for at, part in enumerate(parts):
            is_first_name = at and self._columns[at].unit.is_text and not self._columns[at - 1].unit.is_text
            line += part if not at else f"  {part}" if is_first_name else f" {part}"
        return line


def show(
    columns: Sequence[Column],
    rows: Sequence[Any],
    most: int,
    out: TextIO,
    *,
    more: str = "functions",
    below: Callable[[Any], Sequence[str]] | None = None,
    **layout: Any,
) -> None:
    """Writes a table of at most `most` rows, each followed by its lines from `below`."""
    if not rows:
        return
    paint = Paint(out)
    table = Layout(columns, rows[:most], width_of(out), **layout)
    print(paint(table.head, "head"), file=out)
    for row in rows[:most]:
        print(table.line(row, paint), file=out)
        for line in below(row) if below is not None else ():
            print(line, file=out)
    if len(rows) > most:
        print(paint(f"{'':>11} and {len(rows) - most:,} {more}", "dim"), file=out)
