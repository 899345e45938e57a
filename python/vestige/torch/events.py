"""The events of a recording: FunctionEvent with torch.profiler's fields.

The extension gives every span as a row of one block of memory (see python/ext/read/trace_events.c). An event holds the
number of its row; a field is made when a program reads it. Events have the ids of the exported file.
"""

from __future__ import annotations

import sys

from vestige.base.printable import printable
from vestige.reading.kinds import NATIVE, OPERATOR

from .devices import is_on_cpu
from .event_defaults import PLAIN
from .event_fields import FIELDS
from .event_rows import CALLS, LOOSE, SCOPE_SHIFT, read_members
from .interval import Interval
from .table import FormattedTimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from vestige._core import Definition

    from .device_events import Devices
    from .event_rows import Events

REPR_MAX = 20  # the most children that a repr shows


def torchs(cls: type[Any]) -> type[Any]:
    """Returns our class that inherits from torch's class of equal name, if torch is loaded; else `cls`."""
    found = _inherited.get(cls)
    if found is None:
        if "torch.autograd.profiler_util" not in sys.modules:
            return cls
        from . import inherited

        found = _inherited[cls] = getattr(inherited, cls.__name__)
    return found


_inherited: dict[type[Any], type[Any]] = {}  # torch stays loaded; an import costs more than a row of a table


class Store:
    """The rows of a recording, the tables that rows refer to, and the events made from rows."""

    def __init__(
        self,
        rows: Events,
        timed_out: bool,
        definitions: list[Definition | None],
        threads: dict[int, int],
        pid: int,
        base_ns: int | None = None,
        as_torch: Collection[str] = (),
        devices: tuple[Any, ...] | None = None,
    ) -> None:
        """`as_torch` names properties that events have only in torch's place: "shapes" counts a span's text as an
        input, as torch does with record_shapes; "metadata" gives events metadata_json; "gradients" numbers arrows in
        the order of gradients; "unlinked" leaves arrows out. `devices` are the arguments of device_events.Devices, if
        the trace has devices.
        """
        self.rows = rows
        self.timed_out = timed_out
        self.pid = pid
        self.count = len(rows.start_ns)
        first_ns: int = rows.start_ns[0] if self.count else 0
        self.base_ns = first_ns if base_ns is None else min(base_ns, first_ns) if self.count else base_ns
        self.definitions = definitions
        self.threads = threads
        self.as_torch = as_torch
        self._rows: dict[int, int] = {}  # by number of the span
        self._events: list[FunctionEvent] | None = None
        self._stacks: dict[int, list[str]] = {}
        self._flows: dict[int, tuple[int, int, bool]] | None = None
        self.devices: Devices | None = None
        if devices is not None:
            from .device_events import Devices

            self.devices = Devices(self, *devices)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the rows, so that a copy needs neither the trace nor its file."""
        devices = None if self.devices is None else self.devices.given
        known = self.definitions, self.threads, self.pid, self.base_ns, tuple(self.as_torch), devices
        return Store, (self.rows, self.timed_out, *known)

    @property
    def events(self) -> list[FunctionEvent]:
        if self._events is None:
            make = torchs(FunctionEvent)._of
            self._events = [make(self, row) for row in range(self.count)]
        return self._events

    @property
    def size(self) -> int:
        """The number of events."""
        return self.count + (0 if self.devices is None else len(self.devices.events))

    @property
    def all_events(self) -> list[FunctionEvent]:
        """The events of threads and of devices, in order of time."""
        if self.devices is None:
            return self.events
        both = [*self.events, *self.devices.events]
        return sorted(both, key=lambda event: (event.time_range.start, -event.time_range.end))

    @property
    def use_device(self) -> str | None:
        return None if self.devices is None else self.devices.use_device

    def children_of(self, row: int) -> list[FunctionEvent]:
        """Returns the events that were called in a row, including calls of devices' runtimes."""
        own = [self.events[child] for child in self.children(row)]
        calls = () if self.devices is None else self.devices.calls_in(row)
        if self.devices is None or not calls:
            return own
        both = [*own, *map(self.devices.event, calls)]
        return sorted(both, key=lambda event: (event.time_range.start, -event.time_range.end))

    def row_of(self, serial: int) -> int | None:
        if not self._rows:
            self._rows = {number: row for row, number in enumerate(self.rows.span)}
        return self._rows.get(serial)

    def definition(self, row: int) -> tuple[int, str]:
        number = self.rows.func[row]
        if number == 0:
            return LOOSE
        known = self.definitions[number] if number < len(self.definitions) else None
        return known or (NATIVE, f"unknown function {number}")

    def children(self, row: int) -> list[int]:
        found = []
        child = self.rows.first[row]
        while child >= 0:
            found.append(child)
            child = self.rows.next[child]
        return found

    def args_text(self, row: int) -> str:
        """Returns the members of a JSON object, without braces."""
        text: str = self.rows.args[row]
        return text

    def args(self, row: int) -> dict[str, Any]:
        text = self.rows.args[row]
        return read_members(text) if text else {}

    @property
    def flows(self) -> dict[int, tuple[int, int, bool]]:
        """Id, type and side of the arrows from operators to the operators that compute their gradients, by row. As in
        the exported file, an arrow goes from the last forward operator of a sequence number to the first operator of
        the backward pass.
        """
        if "unlinked" in self.as_torch:
            return {}
        if self._flows is None:
            forward: dict[int, int] = {}
            backward: dict[int, int] = {}
            for row in range(self.count):
                if self.definition(row)[0] != OPERATOR or self.rows.flags[row] >> SCOPE_SHIFT > 1:
                    continue
                args = self.args(row)
                number = args.get("Sequence number", -1)
                if number < 0:
                    continue
                if self.rows.flags[row] >> SCOPE_SHIFT == 1 and args.get("Fwd thread id"):
                    backward.setdefault(number, row)
                elif not args.get("Fwd thread id"):
                    forward[number] = row
            self._flows = {}
            pairs = [(forward[number], row) for number, row in backward.items() if forward.get(number, row) < row]
            if "gradients" in self.as_torch:
                pairs.sort(key=lambda pair: pair[1])
            else:
                pairs.sort()
            for number, (start, end) in enumerate(pairs, 1):
                self._flows[start] = (number, 1, True)
                self._flows[end] = (number, 1, False)
        return self._flows

    def stack(self, row: int) -> list[str]:
        """Returns the calls around an event, innermost first. The stack of a call begins with the call itself."""
        above: list[int] = []
        while row >= 0 and row not in self._stacks:
            above.append(row)
            row = self.rows.parent[row]
        stack = self._stacks[row] if row >= 0 else []
        for each in reversed(above):
            kind, name = self.definition(each)
            stack = [name, *stack] if kind in CALLS else stack
            self._stacks[each] = stack
        return stack


class FunctionEvent(FormattedTimes):
    """One call, operator or annotation, with the fields that torch.profiler gives it. Times are in µs.

    Differences from torch: id is the event's number in the exported file ("Ev Idx"), self_cpu_time_total is
    never negative, stack begins with the function itself, and thread is the system's number.
    """

    __slots__ = ("__dict__", "_row", "_store")
    _fields = FIELDS

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float, **fields: Any) -> None:
        unknown = [field for field in fields if field not in FIELDS]
        if unknown:
            raise TypeError(f"FunctionEvent() got an unexpected keyword argument {unknown[0]!r}")
        self._store: Store | None = None
        self._row = -1
        self.__dict__.update({field: make() if callable(make) else make for field, make in PLAIN.items()})
        self.__dict__.update(id=id, name=name, thread=thread, time_range=Interval(start_us, end_us), **fields)
        self.__dict__.setdefault("device_resource_id", thread)

    @classmethod
    def _of(cls, store: Store | None, row: int) -> FunctionEvent:
        event = cls.__new__(cls)
        event._store = store
        event._row = row
        return event

    def __reduce_ex__(self, protocol: object) -> Any:
        """Pickles an event of a recording as its row, from which a copy makes its fields again. Relatives are left
        out, because they have rows of their own.
        """
        kept = {name: value for name, value in self.__dict__.items() if name not in ("cpu_parent", "cpu_children")}
        if self._store is None:
            return _restored_event, (None, -1), self.__dict__
        return _restored_event, (self._store, self._row), kept

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, field: str) -> Any:
        """Makes a field when it is first read."""
        make = self._fields.get(field)
        if make is None or self._store is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {field!r}")
        value = make(self._store, self._row)
        self.__dict__[field] = value
        return value

    @property
    def key(self) -> str:
        name: str = self.name
        return name

    @property
    def cpu_time_total(self) -> float:
        if self._store is None:
            return self.time_range.elapsed_us() if is_on_cpu(self) else 0
        rows = self._store.rows
        ns: int = rows.end_ns[self._row] - rows.start_ns[self._row]
        return ns / 1000

    @property
    def compensated_time_total(self) -> float | None:
        """The value that cpu_time_total would have without recording (profile(compensate=True)); None if unknown."""
        ns = None if self._store is None else self._store.rows.compensated_ns[self._row]
        return None if ns is None else ns / 1000

    @property
    def self_cpu_time_total(self) -> float:
        if self._store is not None:
            own_ns = self._store.rows.self_ns[self._row]  # 0 for an asynchronous span
            devices = self._store.devices
            return (own_ns if devices is None or not own_ns else own_ns - devices.call_ns(self._row)) / 1000
        if self.is_async or not is_on_cpu(self):
            return 0.0
        own: float = self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)
        return max(0.0, own)

    @property
    def self_cpu_memory_usage(self) -> int:
        if self.is_async:
            return 0
        if self._store is None:
            own: int = self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)
            return own
        return self._store.rows.self_bytes[self._row]

    @property
    def device_time_total(self) -> float:
        """The device time of the event and of everything that it called."""
        if self._store is not None:
            devices = self._store.devices
            return 0 if devices is None or self.is_async else devices.total_ns(self._row) / 1000
        if self.is_async or not self.use_device:
            return 0
        if not is_on_cpu(self):
            return self.time_range.elapsed_us()  # type: ignore[no-any-return]
        own: float = sum(kernel.duration for kernel in self.kernels)
        return own if self.is_legacy else own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        if self._store is not None:
            devices = self._store.devices
            return 0 if devices is None or self.is_async else devices.own_ns(self._row) / 1000
        if self.is_async or not self.use_device or not is_on_cpu(self):
            return self.device_time_total
        inside: float = sum(child.device_time_total for child in self.cpu_children)
        return self.device_time_total - inside

    @property
    def cuda_time_total(self) -> float:
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        return self.self_device_time_total

    self_device_memory_usage = self_cuda_memory_usage = 0

    @property
    def metadata_json(self) -> str:
        import warnings

        message = "`metadata_json` is deprecated. Use `event_metadata` instead."
        warnings.warn(message, FutureWarning, stacklevel=2)
        if self._store is None or "metadata" not in self._store.as_torch or self.is_python_function:
            return ""
        return f'"Ev Idx": {self.id}'

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        from .device_events import Kernel

        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        self.cpu_parent = parent

    def __repr__(self) -> str:
        children = ", ".join(str(child.id) for child in self.cpu_children[:REPR_MAX])
        more = ", …" if len(self.cpu_children) > REPR_MAX else ""
        device = self.use_device
        return printable(
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children=[{children}{more}] {device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


def _restored_event(store: Store | None, row: int) -> FunctionEvent:
    if store is not None:
        return store.events[row]
    event: FunctionEvent = torchs(FunctionEvent)._of(store, row)
    return event
