"""Answers as text: an aligned table, CSV, JSON. Rows are written as they arrive; a table chooses its widths from the
first rows.
"""

from __future__ import annotations

import csv
import json
import math
import time

from vestige.base.printable import one_line
from vestige.base.quantities import duration
from vestige.base.terminal import fit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TextIO

    from .answer import Answer

    Style = Callable[[str], str]  # paints the line of titles

CLOCK_MIN = 10**17  # nanoseconds (about three years); larger values are times of day
DATE = len("2026-01-31 ")
LEAST_WIDTH = 12  # a column of text is cut to this width at least
GAP = "  "
IDS = frozenset("process pid parent_pid tid thread span parent func stack line rank run step address".split())


def write_table(answer: Answer, out: TextIO, *, limit: int, width: int | None, style: Style = str) -> None:
    """Writes at most `limit` rows (0: all), then how many more there are, in lines no longer than `width`. Columns
    named …_ns are shown as times.
    """
    rows: list[tuple[Any, ...]] = []
    more = 0
    for batch in answer.batches():
        room = len(batch) if not limit else max(0, limit - len(rows))
        rows += batch[:room]
        more += len(batch) - len(batch[:room])
    if not answer.columns:
        return
    for line in table(answer.columns, rows, width=width, style=style):
        print(line, file=out)
    if more:
        print(f"… {more:,} more row{'s' if more > 1 else ''}; -n 0 shows all", file=out)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, width: int | None, style: Style = str) -> list[str]:
    numeric = [
        all(_is_number(row[at]) or row[at] is None for row in rows) and any(row[at] is not None for row in rows)
        for at in range(len(columns))
    ]
    times = [name.endswith("_ns") and number for name, number in zip(columns, numeric)]
    titles = [name.removesuffix("_ns") if time else name for name, time in zip(columns, times)]
    cells = [[_cell(value, is_time, name in IDS) for value, is_time, name in zip(row, times, columns)] for row in rows]
    for at in (at for at, is_time in enumerate(times) if is_time):
        _drop_date(cells, rows, at)
    widths = [max([len(title), *(len(row[at]) for row in cells)]) for at, title in enumerate(titles)]
    if width is not None:
        _narrow(widths, titles, numeric, width)
    head = _line(titles, widths, numeric)
    lines = [style(head)]
    lines += [_line(row, widths, numeric) for row in cells]
    return lines


def _drop_date(cells: list[list[str]], rows: Sequence[Sequence[Any]], at: int) -> None:
    """Removes the date from a column whose times are all on one day."""
    dates = {row[at][:DATE] for row, values in zip(cells, rows) if values[at] is not None}
    if len(dates) == 1 and all(values[at] is None or _is_clock(values[at]) for values in rows):
        for row in cells:
            row[at] = row[at][DATE:]


def _is_clock(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= CLOCK_MIN


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any, is_time: bool, is_id: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        if is_time and not math.isnan(value):
            return duration(round(value))
        return number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if is_time:
            return clock(value) if _is_clock(value) else duration(value)
        return f"{value:,}" if abs(value) >= 10_000 and not is_id else str(value)
    return one_line(str(value))


def number(value: float) -> str:
    """Returns a number with enough digits to compare numbers."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e15:
        return f"{value:,.{0 if abs(value) >= 1e4 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3}f}"
    return f"{value:.3g}"


def clock(ns: int) -> str:
    """Returns the local date and time, to the microsecond."""
    seconds, rest = divmod(ns, 10**9)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds)) + f".{rest // 1000:06}"


def _narrow(widths: list[int], titles: Sequence[str], numeric: Sequence[bool], width: int) -> None:
    """Narrows the widest column of text until lines fit, or all columns are as narrow as allowed."""
    while sum(widths) + len(GAP) * (len(widths) - 1) > width:
        text = [at for at in range(len(widths)) if not numeric[at] and widths[at] > max(LEAST_WIDTH, len(titles[at]))]
        if not text:
            return
        widest = max(text, key=lambda at: widths[at])
        others = sum(widths) - widths[widest] + len(GAP) * (len(widths) - 1)
        second = max((widths[at] for at in text if at != widest), default=0)
        widths[widest] = max(LEAST_WIDTH, len(titles[widest]), width - others, min(second, widths[widest] - 1))


def _line(cells: Iterable[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = []
    for cell, width, right in zip(cells, widths, numeric):
        cell = fit(cell, width)
        parts.append(cell.rjust(width) if right else cell.ljust(width))
    return GAP.join(parts).rstrip()


def write_csv(answer: Answer, out: TextIO, *, limit: int) -> int:
    """CSV with a line of column names. Returns how many rows were left out."""
    writer = csv.writer(out, lineterminator="\n")
    state = _Limited(limit)
    for batch in answer.batches():
        if not state.begun:
            writer.writerow(answer.columns)
        writer.writerows(state.take(batch))
    if not state.begun and answer.columns:
        writer.writerow(answer.columns)
    return state.more


def write_json(answer: Answer, out: TextIO, *, limit: int) -> int:
    """A JSON list of objects, one per line. Returns how many rows were left out."""
    state = _Limited(limit)
    out.write("[")
    between = "\n"
    for batch in answer.batches():
        for row in state.take(batch):
            out.write(between + json.dumps(dict(zip(answer.columns, map(_plain, row))), default=str))
            between = ",\n"
    out.write("]\n" if between == "\n" else "\n]\n")
    return state.more


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Limited:
    """Passes on `limit` rows (0: all) and counts the others."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._passed = 0
        self.begun = False
        self.more = 0

    def take(self, batch: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        self.begun = True
        kept = batch if not self._limit else batch[: max(0, self._limit - self._passed)]
        self._passed += len(kept)
        self.more += len(batch) - len(kept)
        return kept
