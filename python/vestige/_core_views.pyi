"""The part of _core.pyi that is about pictures of traces. There is no such module: import these from vestige._core."""

from collections.abc import Iterable, Sequence
from typing import Any, final

from ._core import Progress, Trace

@final
class States:
    """When the threads of a trace did not run: their stretches, kept in memory. Any thread may ask."""

    def __init__(self, trace: Trace) -> None: ...
    def draw(self, thread: int, from_ns: int, to_ns: int, pixels: int, /) -> tuple[bytes, bytes]:
        """A byte a pixel: the part that the thread was off the processor, and that it waited for the GIL."""
    def sums(self, thread: int, from_ns: int, to_ns: int, /) -> tuple[int, int, int]:
        """For how long the thread waited off the processor, was preempted, and waited for the GIL."""

    def stretches(self, state: int, /) -> bytes:
        """All in which threads waited off the processor (0), were preempted (1) or waited for the GIL (2): `<qqI4x`
        each, start_ns, end_ns and thread, by thread, then time."""

@final
class Marks:
    """The instants of a trace as marks of a picture, kept in memory (<vestige/marks.h>). Any thread may ask. A mark is
    (thread, time_ns, id, end, raised_in, caught_in, args as JSON members)."""

    def __init__(self, trace: Trace, *, progress: Progress | None = None) -> None: ...
    def threads(self) -> list[tuple[int, int, int, int]]:
        """thread, marks, exceptions, those not caught: of the threads that have any."""
    def left_out(self) -> int:
        """Marks that were not kept, because there were too many."""
    def between(
        self, thread: int, from_ns: int, to_ns: int, most: int, /
    ) -> tuple[int, list[tuple[int, int, int, str, int, int, str | None]]]:
        """The marks of a thread in a range: how many there are, and the first of them."""
    def draw(self, thread: int, from_ns: int, to_ns: int, parts: int, /) -> list[tuple[int, int, int, int, int]]:
        """Of those equal parts of a range that have marks: part, marks, exceptions, not caught, id of the first."""
    def find(self, ids: Sequence[int], from_ns: int, to_ns: int, parts: int, /) -> bytes:
        """How many marks with these ids are in each part of a range: `<I` each."""
    def next(
        self, ids: Sequence[int], time_ns: int, back: bool, /
    ) -> tuple[int, int, int, str, int, int, str | None] | None:
        """The first mark with one of these ids after a time, or the last before it."""

@final
class TaskLanes:
    """The tasks of a trace as lanes of a picture, kept in memory (<vestige/task_lanes.h>). Any thread may ask."""

    def __init__(self, trace: Trace, *, wrappers: Sequence[int] = (), progress: Progress | None = None) -> None: ...
    def groups(self) -> list[tuple[int, int, int, int, int, int, int, int, int]]:
        """thread, function, first lane of its tasks, tasks, steps, start_ns, end_ns, running_ns, awaiting_ns: the tasks
        of a coroutine function on a thread; of `wrappers`, those with the same name. A group's lane is its index."""
    def tasks(self, first: int, count: int, /) -> list[tuple[str, int, int, int, int, int, str, str]]:
        """name, start_ns, end_ns, steps, running_ns, awaiting_ns, end, what it is ("task", "greenlet" or "hub"): of so
        many lanes from one on."""
    def left_out(self) -> int:
        """Steps that were not kept, because there were too many."""
    def draw(self, from_ns: int, to_ns: int, pixels: int, lanes: Sequence[int], /) -> bytes:
        """A window as View.window gives it; a row's thread is its lane."""
    def steps(self, lane: int, /) -> list[tuple[int, int, int, int, int, tuple[int, int, int, int] | None]]:
        """start_ns, end_ns, awaits, awaiting, awaited, waker: of a task's lane, as at() tells them."""
    def at(self, lane: int, time_ns: int, /) -> dict[str, Any] | None:
        """The step or wait that a lane shows at a time: lane (of the task), wait, first, turn, open, start_ns, end_ns,
        id, awaits (-1: not known), awaiting, awaited (a lane), waker (None: not known; lane, thread, id, time_ns)."""
    def wakes(self, from_ns: int, to_ns: int, lanes: Sequence[int], most: int, /) -> tuple[list[dict[str, Any]], int]:
        """Steps of tasks' lanes that begin in a range and before which the task waited for something; none if there are
        more than most. And how many there are."""

@final
class DeviceLanes:
    """What the devices of a trace did as lanes of a picture, kept in memory (<vestige/device_lanes.h>). Any thread may
    ask. An activity is a dict: number, lane, row, kind, id, context, device, start_ns, end_ns, correlation, external,
    bytes, op and annotation (serial and id, 0: none), launch (1 + the number of the call; 0: none), args (JSON
    members)."""

    def __init__(self, trace: Trace, *, progress: Progress | None = None) -> None: ...
    def lanes(self) -> list[tuple[int, int, int, int, int, int, int, int, int, int]]:
        """device (0: the lane is a thread's), stream, thread, rows, number of the first activity, activities, start_ns,
        end_ns, busy_ns, bytes."""
    def left_out(self) -> tuple[int, int]:
        """Activities, and texts of their attributes, that were not kept, because there were too many."""
    def draw(self, from_ns: int, to_ns: int, pixels: int, lanes: Sequence[int], /) -> bytes:
        """A window as View.window gives it; a row's thread is its lane."""
    def at(self, lane: int, row: int, time_ns: int, /) -> dict[str, Any] | None:
        """The activity that a row shows at a time."""
    def get(self, number: int, /) -> dict[str, Any] | None:
        """An activity by its number."""
    def launched(self, call: int, most: int, /) -> tuple[list[int], int]:
        """The numbers of what came from a call, up to so many; and how many there are."""
    def find(self, ids: Sequence[int], from_ns: int, to_ns: int, parts: int, /) -> bytes:
        """How many activities with these ids begin in each part of a range: `<I` each."""
    def next(self, ids: Sequence[int], time_ns: int, back: bool, lane: int | None = None, /) -> dict[str, Any] | None:
        """The first activity with one of these ids that begins after a time, or the last before it, in a lane or in
        any."""

@final
class Tally:
    """A trace that is read while it is recorded, added up since the last look (<vestige/tally.h>). One thread at a time
    may ask."""

    def __init__(self, path: str | bytes, before_ns: int = 0) -> None: ...
    def next(self, alive: bool, /) -> dict[str, Any]:
        """from_ns, to_ns, records, lost, finished, knows_running; functions [(id, calls, own_ns, total_ns, bytes,
        own_running_ns, total_running_ns)]; threads [{number, tid, name, records, in_calls_ns, depth, id, since_ns}];
        counters [(id, value)]."""
    def function(self, number: int, /) -> tuple[int, str, str, str, int] | None:
        """kind, name, file, what is shown of the file, line."""
    def info(self) -> dict[str, Any]:
        """pid, bytes, records, lost, dropped, clean, start_ns, end_ns, damaged_at."""

@final
class View:
    """Pictures of a trace, from an index that is built once and kept beside the file (<vestige/view.h>). Any thread may
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
    def functions(self, first: int, /) -> list[tuple[int, str, str, str, int] | None]:
        """By id, from one on: kind, name, file, what is shown of the file, line."""
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
    ) -> tuple[list[tuple[int, int, int, int, int, int]], int]:
        """The tree of calls: (parent row or -1, id, count, self_ns, total_ns, self_bytes), spans clipped to the range;
        with `limit` only so many, those with the largest totals, and how many there are besides."""
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
