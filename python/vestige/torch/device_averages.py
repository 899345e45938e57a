"""Averages with times of devices: the device time of operators, and rows for kernels, copies and calls of runtimes.

The sums of threads come from the extension, which does not know which row launched which activity; few rows launch any.
"""

from __future__ import annotations

from .averages import FunctionEventAvg
from .device_fields import times
from .devices import is_on_cpu
from .events import torchs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .device_events import Devices
    from .events import Store


class _Rows:
    """Rows of averages, keyed by the event they summarise."""

    def __init__(self, rows: list[FunctionEventAvg], with_calls: bool, by_shapes: bool, depth: int, by_overload: bool):
        self._with_calls = with_calls
        self._by_shapes, self._depth, self._by_overload = by_shapes, depth, by_overload
        self._rows: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for row in rows:
            self._rows.setdefault(self._key(row, row.stack or ()), row)

    def _key(self, one: Any, stack: Any) -> tuple[Any, ...]:
        key: tuple[Any, ...] = (one.key, bool(one.is_user_annotation))
        key += (str(one.input_shapes),) if self._by_shapes else ()
        key += (one.overload_name,) if self._by_overload else ()
        return (*key, *stack[: self._depth]) if self._depth else (*key, bool(one.is_async))

    def find(self, store: Store, row: int) -> FunctionEventAvg | None:
        """Returns the average that a row of a thread counts for; None if the row is a call and calls are left out."""
        event = store.events[row]
        if event.is_python_function and not self._with_calls:
            return None
        return self._rows.get(self._key(event, event.stack or ()))


def add_devices(
    store: Store, rows: list[FunctionEventAvg], with_calls: bool, by_shapes: bool, depth: int, by_overload: bool
) -> list[FunctionEventAvg]:
    """Returns all averages, in the order of their first events."""
    devices = store.devices
    assert devices is not None
    for row in rows:
        row.use_device = devices.use_device
    _add_times(store, devices, _Rows(rows, with_calls, by_shapes, depth, by_overload))
    others = _average(devices, by_shapes)
    places = [_first_of(store, row) for row in rows]
    places += [_order(*times(devices, row._first._row)) for row in others]
    both = [*rows, *others]
    return [both[at] for at in sorted(range(len(both)), key=places.__getitem__)]


def _average(devices: Devices, by_shapes: bool) -> list[FunctionEventAvg]:
    """Returns averages by name and device. Activities of devices have neither shapes nor stacks."""
    groups: dict[tuple[Any, ...], list[int]] = {}  # first row, its start and end, count, ns, ns of calls inside
    for key, row, start, end, inner in devices.timed():
        found = groups.get(key)
        if found is None:
            groups[key] = [row, start, end, 1, end - start, inner]
            continue
        if (start, -end) < (found[1], -found[2]):
            found[:3] = row, start, end
        found[3] += 1
        found[4] += end - start
        found[5] += inner
    averages = []
    for row, _, _, count, ns, inner in groups.values():
        average: FunctionEventAvg = torchs(FunctionEventAvg)().add(devices.event(row))
        average.count = count
        if is_on_cpu(average):
            average.cpu_time_total, average.self_cpu_time_total = ns / 1000, (ns - inner) / 1000
        else:
            average.device_time_total = average.self_device_time_total = ns / 1000
        average.overload_name = ""
        if not by_shapes:
            average.input_shapes = ""
        averages.append(average)
    return averages


def _order(start: int, end: int) -> tuple[int, int]:
    """A key to sort events by: an event comes before the events inside it."""
    return start, -end


def _add_times(store: Store, devices: Devices, rows: _Rows) -> None:
    for number in range(store.count):
        total, calls = devices.total_ns(number), devices.call_ns(number)
        if not total and not calls:
            continue
        found = rows.find(store, number)
        if found is not None and not store.events[number].is_async:
            found.device_time_total += total / 1000
            found.self_device_time_total += devices.own_ns(number) / 1000
        while found is None and number >= 0:  # the time of a call that is left out counts for its caller
            number = store.rows.parent[number]
            found = rows.find(store, number) if number >= 0 else None
        if found is not None:
            found.self_cpu_time_total -= calls / 1000


def _first_of(store: Store, row: FunctionEventAvg) -> tuple[int, int]:
    number = store.row_of(row._serial)
    if number is None:
        return 0, 0
    return _order(store.rows.start_ns[number], store.rows.end_ns[number])
