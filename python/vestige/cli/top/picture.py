"""Formats the last seconds as lines of text: for a terminal of some columns and rows, or for a pipe, in which no line
is cut.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural, size
from vestige.base.terminal import UNBOUNDED, cells, cut, fit, pad
from vestige.reading.waits import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from vestige.base.terminal import Paint

    from .target import Target
    from .window import Row, Window

SORTS: dict[str, tuple[str, str]] = {  # by key: the column, and its name
    "o": ("own_ns", "own time"),
    "t": ("total_ns", "total time"),
    "c": ("calls", "calls"),
    "b": ("bytes", "allocated bytes"),
}
HOT = 0.25  # share of the time from which a row has a strong colour
THREAD_NAME = 24
THREADS_SHARE = 3  # threads take at most this part of the rows: a third
PLAIN_ROWS = 20  # rows of a table in a pipe
HELP = "o t c b sort · / filter · w waits · space freeze · s snapshot · q quit"


class Choice:
    """The user's choices of what to see."""

    def __init__(self) -> None:
        self.sort = "o"
        self.filter = ""
        self.typing = False  # the user is typing the filter
        self.waits = False  # show functions that only wait, too
        self.frozen = False
        self.message = ""


class Facts:
    """The system's facts about the process, at one moment."""

    def __init__(self, target: Target, threads: Sequence[Any], before: Facts | None, now_ns: int) -> None:
        self.now_ns = now_ns
        self.resident = target.resident()
        self._ran = {None: target.cpu_ns(), **{each.tid: target.cpu_ns(each.tid) for each in threads}}
        self.states = {each.tid: target.state(each.tid) for each in threads}
        self._before = before
        if before is not None:
            before._before = None  # only one earlier object is needed

    def busy(self, tid: int | None = None) -> float | None:
        """Returns the share of the time since the previous moment that the process, or a thread, ran; None if
        unknown.
        """
        before, now = (self._before._ran.get(tid) if self._before else None), self._ran.get(tid)
        if before is None or now is None or self._before is None or self.now_ns <= self._before.now_ns:
            return None
        return (now - before) / (self.now_ns - self._before.now_ns)


class Picture:
    """Formats lines, which Paint has coloured."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self.title = ""
        self.budget: float | None = None  # the share of the CPU time that recording may take

    def lines(self, window: Window, facts: Facts, choice: Choice, columns: int, rows: int) -> list[str]:
        """Returns the lines for a terminal of this size, without its last row."""
        every = window.rows()
        shown = self._choose(every, choice)
        lines = self._head(window, facts, every, choice, columns)
        room = max(rows - len(lines) - 1, 0)  # the last row has the help
        threads = self._threads(window, facts, columns)
        if len(threads) > max(room // THREADS_SHARE, 2):
            threads = threads[: max(room // THREADS_SHARE, 2)]
        room -= len(threads) + 1
        lines += self._table(shown, window, max(room, 0), columns)
        lines += ["", *threads]
        return lines[: max(rows - 1, 1)]

    def plain(self, window: Window, facts: Facts, choice: Choice) -> list[str]:
        """Returns one table, for a pipe."""
        every = window.rows()
        lines = self._head(window, facts, every, choice, UNBOUNDED)
        lines += self._table(self._choose(every, choice), window, PLAIN_ROWS + 1, UNBOUNDED)
        return [*lines, "", *self._threads(window, facts, UNBOUNDED)]

    def help(self, choice: Choice, columns: int) -> str:
        if choice.typing:
            return cut(f"filter: {choice.filter}_   (enter: done, escape: none)", columns)
        return self._paint(cut(choice.message or HELP, columns), None if choice.message else "dim")

    # ---- parts

    def _choose(self, rows: list[Row], choice: Choice) -> list[Row]:
        attribute = SORTS[choice.sort][0]
        wanted = choice.filter.casefold()
        kept = [row for row in rows if (choice.waits or not row.waits) and wanted in row.shown.casefold()]
        return sorted(kept, key=lambda row: (-getattr(row, attribute), -row.own_ns, row.shown))

    def _head(self, window: Window, facts: Facts, rows: list[Row], choice: Choice, columns: int) -> list[str]:
        ns = window.ns
        collections, gc_ns = window.collections(rows)
        busy = facts.busy()
        parts = [
            f"{window.records * 10**9 / ns:,.0f} records/s",
            f"recording costs about {window.cost_ns(rows) / ns:.1%} of a core{self._allowed()}",
            *([f"the process runs {busy:.0%}"] if busy is not None else []),
            f"GC {gc_ns / ns:.1%} ({collections * 1e9 / ns:.3g}/s)",
            *([f"memory {size(facts.resident)}"] if facts.resident is not None else []),
            *([f"{window.lost:,} records lost"] if window.lost else []),
        ]
        sort = SORTS[choice.sort][1].replace(" time", " running time" if window.knows_running else " time")
        state = f"last {duration(ns)}, by {sort}"
        state += f", filter {choice.filter!r}" if choice.filter else ""
        state += self._waiting(rows, choice)
        state += "  [frozen]" if choice.frozen else ""
        return [
            self._paint(cut(self.title, columns), "head"),
            *_filled(parts, columns),
            cut(state, columns),
        ]

    def _allowed(self) -> str:
        return "" if self.budget is None else f", budget {self.budget * 100:.3g}% of what the process runs"

    def _waiting(self, rows: list[Row], choice: Choice) -> str:
        sums: dict[str, int] = {}
        for row in rows:
            if row.waits:
                sums[row.waits] = sums.get(row.waits, 0) + row.passed_ns
        if not sums or choice.waits:
            return ""
        kinds = sorted(sums.items(), key=lambda item: -item[1])
        return f"; without waiting ({', '.join(f'{KINDS.get(kind, kind)} {duration(ns)}' for kind, ns in kinds)})"

    def _table(self, rows: list[Row], window: Window, room: int, columns: int) -> list[str]:
        """Returns the table with its head, at most `room` lines."""
        if room < 1:
            return []
        ns = window.ns
        with_bytes = any(row.bytes for row in rows)
        width = max(columns - (46 if with_bytes else 33), 8)
        head = f"{'own':>7} {'total':>7} {'calls/s':>9} {'per call':>9}"
        head += f" {'allocated/s':>12}" if with_bytes else ""
        lines = [self._paint(_clip(f"{head}  function", columns), "head")]
        for row in rows[: room - 1]:
            each = duration(row.total_ns / row.calls) if row.calls else "open"
            line = f"{row.own_ns / ns:>7.1%} {row.total_ns / ns:>7.1%} {row.calls * 1e9 / ns:>9,.0f} {each:>9}"
            line += f" {size(row.bytes * 1e9 / ns):>12}" if with_bytes else ""
            hot = "hot" if row.own_ns >= HOT * ns and not row.waits else "dim" if row.waits else None
            lines.append(self._paint(_clip(line, columns), hot) + self._place(row.shown, width, columns))
        if not rows:
            lines.append(_clip("  nothing was called", columns))
        return lines[:room]

    @staticmethod
    def _place(shown: str, width: int, columns: int) -> str:
        return f"  {fit(shown, width)}" if columns > 40 else ""

    def _threads(self, window: Window, facts: Facts, columns: int) -> list[str]:
        there = [each for each in window.threads if facts.states.get(each.tid) or each.depth or each.records]
        there.sort(key=lambda each: (-(facts.busy(each.tid) or 0), -each.records, each.thread))
        lines = [self._paint(cut(plural(len(there), "thread"), columns), "head")]
        for each in there:
            name = pad(cut(each.name or f"thread {each.thread}", THREAD_NAME), THREAD_NAME)
            busy = facts.busy(each.tid)
            share = f"{busy:>5.0%}" if busy is not None else "     "
            state = facts.states.get(each.tid, "") or "ended"
            reason = window.waits(each.func)
            if reason and state in ("waits", "runs"):
                state = f"waits: {KINDS.get(reason, reason)}"
            inside = window.name(each.func)
            since = duration(max(facts.now_ns - each.since_ns, 0)) if each.func else ""
            line = f"  {name} {share} {pad(state, 22)} "
            room = max(columns - cells(line) - len(since) - 8, 8)
            line += f"in {fit(inside, room)} ({since})" if inside else "in no call"
            lines.append(_clip(line, columns))
        return lines


def _filled(parts: Sequence[str], columns: int) -> list[str]:
    """Fills as many lines as needed; does not cut a part that fits into a line."""
    lines: list[str] = []
    for part in parts:
        if lines and cells(lines[-1]) + 3 + cells(part) <= columns:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return [cut(line, columns) for line in lines]


def _clip(text: str, columns: int) -> str:
    """Returns the beginning of a formatted line; unlike cut(), keeps spaces."""
    while cells(text) > columns:
        text = text[: max(columns - 1, 0)] if text.isascii() else text[:-1]
    return text
