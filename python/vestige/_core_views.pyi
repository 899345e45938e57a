"""The part of _core.pyi that is about pictures of traces. There is no such module: import these from vestige._core."""

from collections.abc import Iterable, Sequence
from typing import Any, final

from ._core import Function, Progress, Rows, Trace

@final
class Lanes:
    """The lanes of one kind in a picture of a trace, kept in memory (src/view/lanes.h). Any thread may call the
    methods. A lane has rows, a row has items: dicts with number, lane, row, start_ns, end_ns, id, the facts of their
    kind, and of a counter the value."""

    def __init__(
        self,
        source: Trace | View,
        kind: str,
        *,
        wrappers: Sequence[int] = (),
        progress: Progress | None = None,
        fold_imports: bool = False,
    ) -> None:
        """Kinds of a Trace are "calls", "devices", "left_out", "marks", "states" and "tasks"; those of a View are
        "counters" and "losses". Tasks of the functions `wrappers` are distinguished by their names. `fold_imports`
        leaves frames of the import system out of calls."""
    def lanes(self, first: int = 0, count: int = ..., /) -> list[dict[str, Any]]:
        """Returns a dict for each of `count` lanes from number `first` on: lane, thread and device (0: none), stream
        (-1: none), id (of the function to which the whole lane belongs), first and members (lanes that are shown as one
        in this lane), rows, items, steps, start_ns, end_ns, busy_ns, awaiting_ns, bytes, name, what ("task",
        "greenlet", "hub"; "counter", "memory", "framework"; or None), end (of a task, or None); of a counter also least
        and most."""
    def left_out(self) -> tuple[int, int]:
        """How many items, and texts of items, were not kept, because there were too many."""
    def facts(self) -> list[tuple[str, str]]:
        """Name and unit of each fact of items. The unit says what a value is: a "number", 1 + the number of an "item"
        or of its "origin" (0: none), or the number of a "text"."""
    def text(self, number: int, /) -> str | None: ...
    def at(self, lane: int, row: int, time_ns: int, /) -> dict[str, Any] | None:
        """The item that a row shows at a time, or None."""
    def item(self, number: int, /) -> dict[str, Any] | None: ...
    def linked(self, number: int, most: int, /) -> tuple[list[dict[str, Any]], int]:
        """The items that an item has caused, at most `most`, and how many there are."""
    def between(self, lane: int, row: int, from_ns: int, to_ns: int, most: int, /) -> tuple[int, list[dict[str, Any]]]:
        """The items of a row that begin in a range: how many there are, and the first of them."""
    def busy(self, lane: int, from_ns: int, to_ns: int, /) -> list[int]:
        """How much of a range the items of each row of a lane cover, in ns."""
    def draw(self, from_ns: int, to_ns: int, pixels: int, lanes: Sequence[int], /) -> bytes:
        """A picture in the format of View.window(), where `thread` is the lane, with values if items have them."""
    def pack(self, lane: int, row: int, base_ns: int, before_ns: int, width_ns: int = 0, /) -> tuple[int, int, bytes]:
        """The items of a row that begin up to a time: the number of the first, how many there are, and varints
        (src/view/lanes.h)."""
    def find(self, ids: Sequence[int], from_ns: int, to_ns: int, parts: int, /) -> bytes:
        """How many items with these ids begin in each part of a range: `<I` each."""
    def next(self, ids: Sequence[int], time_ns: int, back: bool, /) -> dict[str, Any] | None:
        """The first item with one of these ids that begins after a time, or with `back` the last before it."""

@final
class Growing:
    """Sums of a trace that is read while it is recorded (src/tables/growing.h). They begin `before_ns` before the end
    of the trace at the first reading. One thread at a time may call the methods."""

    def __init__(self, path: str | bytes, before_ns: int = 0) -> None: ...
    def read(self, alive: bool, /) -> dict[str, Any]:
        """Reads the new records. Returns from_ns and to_ns of the sums; records and lost (new ones); finished;
        knows_running; functions: Rows like those of the table `functions`; threads: Rows of thread, tid, name, records
        (new), depth, func (the innermost open call, 0: none) and since_ns."""
    def function(self, number: int, /) -> Function | None: ...
    def info(self) -> dict[str, Any]:
        """pid, bytes, records, lost, dropped, clean, start_ns, end_ns, damaged_at."""

@final
class View:
    """Pictures of a trace, from an index that is built once and kept in a file next to the trace (src/view/view.h). Any
    threads may call the methods at the same time. `progress` is called about every 50 ms; an exception from it cancels
    the method."""

    def __init__(
        self,
        path: str | bytes,
        *,
        index: str | bytes | None = None,
        keep: bool = True,
        progress: Progress | None = None,
        workers: int = 0,
        fold_imports: bool = False,
        follow: bool = False,
    ) -> None: ...
    def refresh(self) -> None:
        """Reads the records that were written since, if the view follows. Waits for other methods, which wait for
        this."""
    def functions(self, first: int, /) -> list[Function | None]:
        """The functions whose id is `first` or later, by id."""
    def info(self) -> dict[str, Any]:
        """start_ns, end_ns, records, spans, has_tasks, index_bytes, index_path (None: in memory), built (now; otherwise
        the index was found), clean, damaged_at, lost, dropped, pid."""
    def threads(self) -> list[dict[str, Any]]:
        """number, tid, name, depth (rows: `levels` of the stack, then rows of spans that are not on the stack),
        start_ns, end_ns, spans, records."""
    def set_offset(self, ns: int) -> None:
        """Adds ns to all times, which are times of the trace's own clock. Not while another thread calls a method."""
    def window(
        self, from_ns: int, to_ns: int, pixels: int, *, threads: Sequence[int] | None = None, max_depth: int = 0
    ) -> bytes: ...
    def span_at(self, thread: int, depth: int, time_ns: int) -> dict[str, Any] | None:
        """id, thread, start_ns, end_ns, self_ns, depth, flags, args (JSON members), self_bytes (None: not known, for
        spans with very many records), total_bytes, allocations, parents: (id, start_ns, end_ns), outermost first."""
    def flame(
        self,
        from_ns: int,
        to_ns: int,
        *,
        threads: Sequence[int] | None = None,
        limit: int = 0,
        progress: Progress | None = None,
    ) -> tuple[Rows, int]:
        """The tree of calls, from spans clipped to the range: parent (an earlier row, or -1), id, calls, self_ns,
        total_ns, self_bytes. With `limit`, only this many rows, with the largest totals. Also returns how many rows
        were left out."""
    def find(
        self,
        ids: Iterable[int],
        from_ns: int,
        to_ns: int,
        pixels: int,
        *,
        threads: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> bytes: ...
    def next(
        self,
        ids: Iterable[int],
        thread: int | None,
        after_ns: int,
        *,
        back: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any] | None: ...
