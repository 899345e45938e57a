"""kineto_results, the results that a stopped torch profile holds, read from the recording.

torch has these classes in C++. Programs call their methods; torch's own Python modules (_memory_profiler,
_pattern_matcher, _utils, _chrome_trace_export) build on them.
"""

from __future__ import annotations

import json

from .adapter import allocated_before, tell
from .device_fields import kineto_args, times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .events import FunctionEvent, Store
    from .recorder import Recorder
    from .results import Results
    from .tree import Tree

_numbers = 0  # how many events of this process have a number, so that no two results share a correlation id


class KinetoResults:
    """One cycle of a recording. Everything is read on first use."""

    def __init__(self, recorder: Recorder, first_window: int, started_ns: int) -> None:
        self._recorder = recorder
        self._session = recorder._session
        self._notes = recorder.notes
        self._allocated_before = allocated_before()
        self._before = -1  # correlation ids up to this number belong to earlier results; -1: not known yet
        self._tree: Tree | None = None
        self._first_window = first_window
        self._started_ns = started_ns
        self._stopped_ns = recorder._stopped_ns
        self._results: Results | None = None
        self._events: list[KinetoEvent] | None = None

    @property
    def results(self) -> Results:
        if self._results is None:
            self._results = self.read(self._first_window)
        return self._results

    def read(self, first_window: int) -> Results:
        """Reads the cycles from this window to the end of this cycle."""
        return self._recorder.results(self._session, first_window, self._started_ns, self._stopped_ns)

    def events(self) -> list[KinetoEvent]:
        """Returns all recorded events, in order of time."""
        if self._events is None:
            store = self.results.store
            before = self._ids_before(store)
            self._events = [
                KinetoEvent(event, store, before) if event._store is store else DeviceKinetoEvent(event, store, before)
                for event in store.all_events
            ]
        return self._events

    def _ids_before(self, store: Store) -> int:
        global _numbers
        if self._before < 0:
            self._before = _numbers
            _numbers += max(store.rows.span, default=0)
        return self._before

    def experimental_event_tree(self) -> list[Any]:
        """Returns the outermost events, each with the events inside it."""
        if self._tree is None:
            from .tree import Tree

            results = self.results
            store = results.tree_store()
            self._tree = Tree(
                store,
                results.trace.functions(),
                self._notes,
                before=self._allocated_before,
                earlier_ids=self._ids_before(store),
                all_natives=self._session.engine != "turbo",
                numbered=self._recorder.profile_memory and self._recorder.record_shapes,
            )
        return self._tree.roots

    trace_activities = events

    def trace_start_ns(self) -> int:
        """Returns when the recording began, by the system's clock."""
        return self.results.store.base_ns

    def save(self, path: str) -> None:
        """Writes Chrome JSON, gzipped if the name ends in .gz. As in torch, an unwritable plain file does not end the
        program.
        """
        try:
            self.results.export(path)
        except OSError as error:
            if path.endswith(".gz"):
                raise
            tell(f"{path}: the trace is not written: {error.strerror or error}")


class KinetoEvent:
    """One event, with the methods of torch's _KinetoEvent and _ITraceActivity."""

    __slots__ = ("_before", "_event", "_store")

    def __init__(self, event: FunctionEvent, store: Store, before: int) -> None:
        self._event = event
        self._store = store
        self._before = before  # correlation ids up to this number belong to earlier results

    def name(self) -> str:
        name: str = self._store.definition(self._event._row)[1]
        return name

    def start_ns(self) -> int:
        return self._store.rows.start_ns[self._event._row]

    def end_ns(self) -> int:
        return self._store.rows.end_ns[self._event._row]

    def duration_ns(self) -> int:
        return self.end_ns() - self.start_ns()

    def correlation_id(self) -> int:
        event = self._event
        return 0 if event.is_python_function or not event.id else event.id + self._before

    def external_id(self) -> int:
        return self.correlation_id()

    def nbytes(self) -> int:
        return self._event.cpu_memory_usage  # type: ignore[no-any-return]

    def metadata_json(self) -> str:
        return self._store.args_text(self._event._row)

    def extra_meta(self) -> dict[str, str]:
        return {}

    def typed_metadata(self) -> dict[str, Any]:
        return {}

    def is_hidden_event(self) -> bool:
        return False

    def cuda_elapsed_us(self) -> int:
        return -1

    def privateuse1_elapsed_us(self) -> int:
        return -1

    def linked_activity(self) -> None:
        return None

    def device_id(self) -> int:
        return self._store.pid

    def __repr__(self) -> str:
        return f"<{self._event.activity_type} {self.name()}>"


class DeviceKinetoEvent(KinetoEvent):
    """An activity of a device, or a call of its runtime, with the methods of KinetoEvent."""

    __slots__ = ()

    @property
    def _devices(self) -> Any:
        return self._store.devices

    def name(self) -> str:
        name: str = self._event.trace_name
        return name

    def start_ns(self) -> int:
        return times(self._devices, self._event._row)[0]

    def end_ns(self) -> int:
        return times(self._devices, self._event._row)[1]

    def correlation_id(self) -> int:
        return self._event.id  # type: ignore[no-any-return]

    def linked_correlation_id(self) -> int:
        """Returns the correlation id of the operator that launched the activity."""
        serial: int = self._event.linked_correlation_id
        return serial + self._before if serial else 0

    def external_id(self) -> int:
        return self.linked_correlation_id()

    def nbytes(self) -> int:
        return 0

    def metadata_json(self) -> str:
        return json.dumps(kineto_args(self._devices, self._event._row))[1:-1]

    def extra_meta(self) -> dict[str, str]:
        args = kineto_args(self._devices, self._event._row)
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in args.items()}

    def device_id(self) -> int:
        return self._event.device_index  # type: ignore[no-any-return]


def _field(name: str) -> Any:
    def get(self: KinetoEvent) -> Any:
        return getattr(self._event, name)

    get.__name__ = name
    return get


for _method, _name in {
    "activity_type": "activity_type",
    "concrete_inputs": "concrete_inputs",
    "device_index": "device_index",
    "device_resource_id": "device_resource_id",
    "device_type": "device_type",
    "dtypes": "input_dtypes",
    "end_thread_id": "thread",
    "flops": "flops",
    "flow_id": "flow_id",
    "flow_start": "flow_start",
    "flow_type": "flow_type",
    "fwd_thread_id": "fwd_thread",
    "is_async": "is_async",
    "is_python_function": "is_python_function",
    "is_user_annotation": "is_user_annotation",
    "kwinputs": "kwinputs",
    "linked_correlation_id": "linked_correlation_id",
    "overload_name": "overload_name",
    "python_id": "python_id",
    "python_module_id": "python_module_id",
    "python_parent_id": "python_parent_id",
    "resource_id": "device_resource_id",
    "scope": "scope",
    "sequence_nr": "sequence_nr",
    "shapes": "input_shapes",
    "stack": "stack",
    "start_thread_id": "thread",
    "structured_input_shapes": "structured_input_shapes",
    "structured_input_strides": "structured_input_strides",
}.items():
    setattr(KinetoEvent, _method, _field(_name))
for _cls in (KinetoEvent, DeviceKinetoEvent):
    _cls.timestamp = _cls.start_ns  # type: ignore[attr-defined]
    _cls.duration = _cls.duration_ns  # type: ignore[attr-defined]
KinetoEvent.type = KinetoEvent.activity_type  # type: ignore[attr-defined]
