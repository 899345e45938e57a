"""The part of _core.pyi that is about pictures of traces. There is no such module: import these from vestige._core."""

from collections.abc import Iterable, Sequence
from typing import Any, final

from ._core import Function, Progress, Rows, Trace

@final
class Lanes:
    """What a picture of a trace shows, of one kind ("calls", "devices", "marks", "states", "tasks"), kept in memory
    (src/view/lanes.h). Any thread may ask. A lane has rows, a row has items: dicts with number, lane, row, start_ns,
    end_ns, id and the facts of their kind."""

    def __init__(
        self,
        trace: Trace,
        kind: str,
        *,
        wrappers: Sequence[int] = (),
        progress: Progress | None = None,
        fold_imports: bool = False,
    ) -> None:
        """Tasks of one of the functions `wrappers` are told apart by their names. Of calls, `fold_imports` leaves
        out the frames of the import system."""
    def lanes(self, first: int = 0, count: int = ..., /) -> list[dict[str, Any]]:
        """lane, thread and device (0: of none), stream (-1: none), id (of the function that all of it is of), first and
        members (lanes that are shown as one in this), rows, items, steps, start_ns, end_ns, busy_ns, awaiting_ns,
        bytes, name, what ("task", "greenlet", "hub", None), end (of a task, or None): of so many lanes from one on."""
    def left_out(self) -> tuple[int, int]:
        """Items, and texts of items, that were not kept, because there were too many."""
    def facts(self) -> list[tuple[str, str]]:
        """Name and unit of what is known of each item: a "number", 1 + the number of an "item" (0: none) or of its
        "origin", the number of a "text"."""
    def text(self, number: int, /) -> str | None: ...
    def at(self, lane: int, row: int, time_ns: int, /) -> dict[str, Any] | None:
        """The item that a row shows at a time."""
    def item(self, number: int, /) -> dict[str, Any] | None: ...
    def linked(self, number: int, most: int, /) -> tuple[list[dict[str, Any]], int]:
        """The items that came from one, up to so many; and how many there are."""
    def between(self, lane: int, row: int, from_ns: int, to_ns: int, most: int, /) -> tuple[int, list[dict[str, Any]]]:
        """The items of a row that begin in a range: how many there are, and the first of them."""
    def busy(self, lane: int, from_ns: int, to_ns: int, /) -> list[int]:
        """Of each row of a lane, how much of a range its items cover."""
    def draw(self, from_ns: int, to_ns: int, pixels: int, lanes: Sequence[int], /) -> bytes:
        """A window as View.window gives it; a row's thread is its lane."""
    def pack(self, lane: int, row: int, base_ns: int, before_ns: int, width_ns: int = 0, /) -> tuple[int, int, bytes]:
        """The items of a row that begin up to a time: the number of the first, how many there are, and varints
        (src/view/lanes.h)."""
    def find(self, ids: Sequence[int], from_ns: int, to_ns: int, parts: int, /) -> bytes:
        """How many items with these ids begin in each part of a range: `<I` each."""
    def next(self, ids: Sequence[int], time_ns: int, back: bool, /) -> dict[str, Any] | None:
        """The first item with one of these ids that begins after a time, or the last before it."""

@final
class Growing:
    """Sums of a trace that is read while it is recorded (src/tables/growing.h): they begin `before_ns` before the end
    that the trace has at the first reading. One thread at a time may ask."""

    def __init__(self, path: str | bytes, before_ns: int = 0) -> None: ...
    def read(self, alive: bool, /) -> dict[str, Any]:
        """Reads what is new. from_ns and to_ns of the sums; records, lost: that were new; finished, knows_running;
        functions: Rows as of the table `functions`; threads: Rows of thread, tid, name, records (new), depth, func (the
        innermost open call, 0: none) and since_ns."""
    def function(self, number: int, /) -> Function | None: ...
    def info(self) -> dict[str, Any]:
        """pid, bytes, records, lost, dropped, clean, start_ns, end_ns, damaged_at."""

@final
class View:
    """Pictures of a trace, from an index that is built once and kept beside the file (src/view/view.h). Any thread may
    ask, several at once. Progress is called about every 50 ms; an exception from it ends the answer."""

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
        """Takes in what was recorded since, if it follows. Waits for those who ask, and they for it."""
    def functions(self, first: int, /) -> list[Function | None]:
        """By id, from one on."""
    def info(self) -> dict[str, Any]:
        """start_ns, end_ns, records, spans, has_tasks, index_bytes, index_path (None: in memory), built (now; else it
        was found), clean, damaged_at, lost, dropped, pid."""
    def threads(self) -> list[dict[str, Any]]:
        """number, tid, name, depth (rows: `levels` of the stack, then those of spans beside it), start_ns, end_ns,
        spans, records."""
    def set_offset(self, ns: int) -> None:
        """Adds so many ns to all times, as the trace's own clock has them. Not while other threads ask."""
    def window(
        self, from_ns: int, to_ns: int, pixels: int, *, threads: Sequence[int] | None = None, max_depth: int = 0
    ) -> bytes: ...
    def span_at(self, thread: int, depth: int, time_ns: int) -> dict[str, Any] | None:
        """id, thread, start_ns, end_ns, self_ns, depth, flags, args (JSON members), self_bytes (None: not known, of
        spans of very many records), total_bytes, allocations, parents: (id, start_ns, end_ns), outermost first."""
    def flame(
        self,
        from_ns: int,
        to_ns: int,
        *,
        threads: Sequence[int] | None = None,
        limit: int = 0,
        progress: Progress | None = None,
    ) -> tuple[Rows, int]:
        """The tree of calls: parent (a row before it, or -1), id, calls, self_ns, total_ns, self_bytes, of spans
        clipped to the range; with `limit` only so many, those with the largest totals, and how many there are besides
        these."""
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
    def counters(
        self, from_ns: int, to_ns: int, pixels: int, *, progress: Progress | None = None
    ) -> list[dict[str, Any]]:
        """kind (counter, memory, framework), id, thread, unit, before (the value at from_ns, None: not known), points:
        `<I4xddd` each, in order: pixel, least, most, last."""
    def losses(self, from_ns: int, to_ns: int) -> list[dict[str, Any]]: ...
