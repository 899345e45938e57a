"""Activities of devices as torch.profiler's events. Kernels, copies and sets are events of the device; calls of its
runtime are events of threads; operators have the device time of the activities launched inside them.

The extension gives rows (reading/activities.py). An event holds the number of its row; a field is made when a program
reads it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import namedtuple

from vestige.reading import activities as of
from vestige.reading.activities import Activities

from .device_fields import FIELDS
from .devices import name_of, type_of
from .event_rows import ASYNC, rewrite
from .events import FunctionEvent, torchs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .events import Store

Kernel = namedtuple("Kernel", "name device duration")
Span = namedtuple("Span", "name serial device stream start end")  # an annotation, as shown on a device


class Devices:
    """Activities of the devices of a recording, in addition to the rows of its threads."""

    def __init__(self, store: Store, rows: Activities, known: list[dict[str, Any]], syncs: bool):
        """`known` are the devices from Trace.info(). With `syncs`, synchronisations are events too."""
        self.store = store
        self.rows = rows
        self.known = {device["number"]: device for device in known}
        self.use_device = name_of(known[0]["platform"]) if known else None
        self._given = known, syncs
        kinds = rows.kind.tolist()
        self._shown = [row for row, kind in enumerate(kinds) if syncs or kind != of.SYNC]
        self.annotations = self._annotate([row for row in self._shown if kinds[row] in of.WORK])
        self._events: list[DeviceEvent] | None = None
        self._parents: dict[int, tuple[int, int]] | None = None
        self._own: dict[int, int] | None = None
        self._totals: list[int] = []
        self._kernels: dict[int, list[int]] = {}
        self._calls: dict[int, list[int]] = {}  # by the row of a thread that made them
        self._inner: dict[int, list[int]] = {}  # by the call that made them

    @property
    def given(self) -> tuple[Any, ...]:
        """The constructor arguments of a copy."""
        known, syncs = self._given
        return self.rows, known, syncs

    # ---- events

    @property
    def events(self) -> list[DeviceEvent]:
        """Events of the shown rows, then of annotations, which are numbered after the last row."""
        if self._events is None:
            make = torchs(DeviceEvent)._of
            spans = range(self.rows.count, self.rows.count + len(self.annotations))
            self._events = [make(self, row) for row in (*self._shown, *spans)]
            self._places = {event._row: place for place, event in enumerate(self._events)}
        return self._events

    def event(self, row: int) -> DeviceEvent:
        events = self.events
        return events[self._places[row]]

    def annotation(self, row: int) -> Span | None:
        """Returns the annotation of an event; None if the event is a row."""
        return self.annotations[row - self.rows.count] if row >= self.rows.count else None

    def _annotate(self, work: list[int]) -> list[Span]:
        """Makes a span for each device, stream and annotation, from the first to the last activity that the annotation
        launched.
        """
        rows = self.rows
        found: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        for row in work:
            serial = rows.annotation_span[row]
            if not serial:
                continue
            key = rows.device[row], rows.stream[row], serial
            start, end = rows.start_ns[row], rows.end_ns[row]
            before = found.get(key)
            if before is not None:
                start, end = min(start, before[1]), max(end, before[2])
            found[key] = rows.annotation[row], start, end
        return [
            Span(self.name_of(number), serial, device, stream, start, end)
            for (device, stream, serial), (number, start, end) in found.items()
        ]

    def timed(self) -> Iterator[tuple[tuple[Any, ...], int, int, int, int]]:
        """Yields for each event: the key of its average, its number, start and end, and the time of the calls inside
        it.
        """
        rows = self.rows
        columns = rows.start_ns, rows.end_ns, rows.kind, rows.func, rows.device
        starts, ends, kinds, ids, devices = (column.tolist() for column in columns)
        names = {number: rewrite(self.name_of(number)) for number in set(ids)}
        types = {number: int(self.type_of(number)) for number in set(devices)}
        inner = {
            call: sum(ends[each] - starts[each] for each in inside) for call, inside in self._calls_in_calls().items()
        }
        for row in self._shown:
            device = 0 if kinds[row] in of.ON_THREAD else types[devices[row]]
            yield (names[ids[row]], device, False), row, starts[row], ends[row], inner.get(row, 0)
        for at, span in enumerate(self.annotations, rows.count):
            yield (rewrite(span.name), int(self.type_of(span.device)), True), at, span.start, span.end, 0

    def name_of(self, number: int) -> str:
        known = self.store.definitions[number] if number < len(self.store.definitions) else None
        return known.name if known else f"unknown activity {number}"

    def device_of(self, number: int) -> dict[str, Any]:
        return self.known.get(number) or {"platform": "", "ordinal": number}

    def type_of(self, number: int) -> Any:
        return type_of(self.device_of(number)["platform"])

    # ---- operators

    def kernels(self, row: int) -> list[Any]:
        """Returns the kernels launched in a row of a thread but not in a row inside it."""
        self._add_up_launches()
        events = map(self.event, self._kernels.get(row, ()))
        return [Kernel(each.name, each.device_index, each.time_range.elapsed_us()) for each in events]

    def own_ns(self, row: int) -> int:
        self._add_up_launches()
        assert self._own is not None
        return self._own.get(row, 0)

    def total_ns(self, row: int) -> int:
        self._add_up_launches()
        return self._totals[row]

    def _add_up_launches(self) -> None:
        """Finds the activities that each row launched, and adds up their times from the innermost row outwards: parents
        come before children.
        """
        if self._own is not None:
            return
        store, rows = self.store, self.rows
        self._own = {}
        self._totals = [0] * store.count
        for number in sorted(self._shown, key=lambda number: rows.start_ns[number]):
            serial = rows.op_span[number]
            row = store.row_of(serial) if serial and rows.kind[number] not in of.ON_THREAD else None
            if row is None or store.rows.flags[row] & ASYNC:
                continue
            ns = rows.end_ns[number] - rows.start_ns[number]
            self._kernels.setdefault(row, []).append(number)
            self._own[row] = self._own.get(row, 0) + ns
            self._totals[row] += ns
        parents = store.rows.parent
        for row in range(store.count - 1, -1, -1):
            if self._totals[row] and parents[row] >= 0:
                self._totals[parents[row]] += self._totals[row]

    # ---- calls

    def calls_in(self, row: int) -> list[int]:
        """Returns the calls of runtimes that a row of a thread made directly."""
        self._place_calls()
        return self._calls.get(row, [])

    def calls_in_call(self, call: int) -> list[int]:
        return self._calls_in_calls().get(call, [])

    def _calls_in_calls(self) -> dict[int, list[int]]:
        self._place_calls()
        return self._inner

    def call_ns(self, row: int) -> int:
        """Returns the time of the calls that a row of a thread made directly."""
        return sum(self.rows.end_ns[call] - self.rows.start_ns[call] for call in self.calls_in(row))

    def parent_of(self, call: int) -> tuple[int, int]:
        """Returns the row of a thread that made a call, and the call around it; -1 where there is none."""
        return self._place_calls().get(call, (-1, -1))

    def _place_calls(self) -> dict[int, tuple[int, int]]:
        if self._parents is None:
            self._parents = {}
            by_thread: dict[int, list[int]] = {}
            for row in self._shown:
                if self.rows.kind[row] in of.ON_THREAD and self.rows.thread[row]:
                    by_thread.setdefault(self.rows.thread[row], []).append(row)
            for thread, calls in by_thread.items():
                self._place_on_thread(thread, calls)
        return self._parents

    def _place_on_thread(self, thread: int, calls: list[int]) -> None:
        """Finds the parent of each call: the innermost row that is open during the whole call, or another call in that
        row.
        """
        assert self._parents is not None
        store, rows = self.store, self.rows
        spans = store.rows
        own = [
            row for row, of_thread in enumerate(spans.thread) if of_thread == thread and not spans.flags[row] & ASYNC
        ]
        starts = [spans.start_ns[row] for row in own]
        open_calls: list[int] = []
        for call in sorted(calls, key=lambda call: (rows.start_ns[call], -rows.end_ns[call])):
            start, end = rows.start_ns[call], rows.end_ns[call]
            while open_calls and rows.end_ns[open_calls[-1]] < end:
                open_calls.pop()
            at = bisect_right(starts, start) - 1
            row = own[at] if at >= 0 else -1
            while row >= 0 and spans.end_ns[row] < end:
                row = spans.parent[row]
            around = open_calls[-1] if open_calls and rows.end_ns[open_calls[-1]] >= end else -1
            if around >= 0 and row >= 0 and spans.start_ns[row] > rows.start_ns[around]:
                around = -1  # the call around it is outside the row
            self._parents[call] = row, around
            if around >= 0:
                self._inner.setdefault(around, []).append(call)
            elif row >= 0:
                self._calls.setdefault(row, []).append(call)
            open_calls.append(call)


class DeviceEvent(FunctionEvent):
    """An activity of a device, or a call of its runtime, with the fields of any event."""

    __slots__ = ()
    _fields = FIELDS

    def __reduce_ex__(self, protocol: object) -> Any:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("cpu_parent", "cpu_children")}
        devices: Any = self._store
        return _restored_event, (devices.store, self._row), kept

    @property
    def _ns(self) -> int:
        devices: Any = self._store
        span = devices.annotation(self._row)
        if span is not None:
            return int(span.end - span.start)
        return int(devices.rows.end_ns[self._row] - devices.rows.start_ns[self._row])

    @property
    def _is_call(self) -> bool:
        devices: Any = self._store
        return self._row < devices.rows.count and devices.rows.kind[self._row] in of.ON_THREAD

    @property
    def cpu_time_total(self) -> float:
        return self._ns / 1000 if self._is_call else 0

    @property
    def compensated_time_total(self) -> float | None:
        return None

    @property
    def self_cpu_time_total(self) -> float:
        if not self._is_call:
            return 0
        inside: int = sum(child._ns for child in self.cpu_children)
        return (self._ns - inside) / 1000

    @property
    def self_cpu_memory_usage(self) -> int:
        return 0

    @property
    def device_time_total(self) -> float:
        return 0 if self._is_call else self._ns / 1000

    @property
    def self_device_time_total(self) -> float:
        return self.device_time_total


def _restored_event(store: Store, row: int) -> DeviceEvent:
    assert store.devices is not None
    return store.devices.event(row)
