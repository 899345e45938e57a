"""The results of a profile: events, averages and stacks of its last cycle, or of all cycles."""

from __future__ import annotations

from vestige.reading.activities import Activities
from vestige.reading.kinds import OPERATOR

from .devices import name_of
from .event_list import EventList, LazyEvents
from .event_rows import Events
from .events import Store, torchs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from vestige import _core
    from vestige._core import Rows


class Results:
    """A selection of a trace's windows. Everything is read on first use."""

    def __init__(
        self,
        trace: _core.Trace,
        selection: dict[str, Any],
        *,
        export: Callable[[Any], None],
        verbose: bool,
        profile_memory: bool,
        with_flops: bool,
        timeout: float | None,
        framework: bool = False,
        with_calls: bool | None = None,
        base_ns: int | None = None,
        log: str = "vestige",
        as_torch: Collection[str] = (),
        syncs: bool = False,
    ) -> None:
        self.trace = trace
        # the selected windows, and whether bytes are those that a framework's allocator reported
        self.selection: dict[str, Any] = {"all_windows": False, **selection, "framework": framework}
        self._with_calls = with_calls
        self._log = log  # the name of the logger that reports a timeout
        self._base_ns = base_ns  # the start of events' time; None: the first event
        self._as_torch = as_torch  # see Store
        self._syncs = syncs  # synchronisations of devices are events too
        self.export = export
        self.timeout = timeout
        self.definitions = trace.definitions()
        self.threads: dict[int, int] = {thread["number"]: thread["tid"] for thread in trace.threads()}
        self._verbose = verbose
        self._devices: list[dict[str, Any]] = trace.info().get("devices", [])
        self._shown: dict[str, Any] = {"profile_memory": profile_memory, "with_flops": with_flops}
        if self._devices:
            self._shown["use_device"] = name_of(self._devices[0]["platform"])
        self._store: Store | None = None
        self._events: LazyEvents | None = None

    @property
    def pid(self) -> int:
        return int(self.trace.info()["pid"])

    @property
    def has_operators(self) -> bool:
        return any(known is not None and known.kind == OPERATOR for known in self.definitions)

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = self._store_of("events", self.timeout)
            if self._store.timed_out:
                self._tell_timeout(self._store.count)
        return self._store

    def contexts(self, **options: Any) -> Rows:
        """The table `contexts` of the selection."""
        return self.trace.tables(["contexts"], timeout=self.timeout, **options, **self.selection)["contexts"]

    def tree_store(self) -> Store:
        """The events in the form of torch's tree: with each allocation, and with addresses of tensors."""
        return self._store_of("tree_events")

    def _store_of(self, table: str, timeout: float | None = None) -> Store:
        rows = self.trace.tables([table], timeout=timeout, **self.selection)[table]
        known = self.definitions, self.threads, self.pid, self._base_ns, self._as_torch
        return Store(Events.of(rows), rows.is_cut, *known, self._read_devices())

    def _read_devices(self) -> tuple[Any, ...] | None:
        """Returns the devices for a Store."""
        if not self._devices:
            return None
        rows = self.trace.tables(["activities"], **self.selection)["activities"]
        return Activities.of(rows), self._devices, self._syncs

    @property
    def events(self) -> LazyEvents:
        if self._events is None:
            self._events = torchs(LazyEvents)(self, **self._shown)
        return self._events

    def key_averages(
        self, by_shapes: bool = False, by_stack: int = 0, by_overload: bool = False, with_calls: bool | None = None
    ) -> EventList:
        from .averages import average_events, average_names, average_stacks

        if with_calls is None:
            with_calls = self._with_calls
        if with_calls is None:
            with_calls = self._verbose or not self.has_operators
        rows: list[Any]
        if by_stack > 0 and by_overload:  # contexts do not distinguish overloads
            events = [event for event in self.events if with_calls or not event.is_python_function]
            rows = average_events(events, by_shapes, by_stack, by_overload)
        else:
            if by_stack > 0:
                rows = average_stacks(self, with_calls, by_shapes, by_stack)
            else:
                rows = average_names(self, with_calls, by_shapes, by_overload)
            if self._devices:
                from .device_averages import add_devices

                rows = add_devices(self.store, rows, with_calls, by_shapes, by_stack, by_overload)
        averages: EventList = torchs(EventList)(rows, **self._shown)
        return averages

    def export_stacks(self, path: Any, metric: str) -> None:
        from .stacks import check_metric, device_stacks_of, stacks_of, write_stacks

        check_metric(metric)
        if metric == "self_cpu_time_total":
            write_stacks(path, stacks_of(self))
        else:
            write_stacks(path, device_stacks_of(self.store) if self._devices else ())

    def _tell_timeout(self, count: int) -> None:
        import logging

        logging.getLogger(self._log).warning(
            "reading what was recorded timed out after %.3f seconds, returning partial results with %d events",
            self.timeout,
            count,
        )
