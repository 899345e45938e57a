"""The fields of device events, and of calls of device runtimes, filled like torch.profiler's."""

from __future__ import annotations

from vestige.reading import activities as of

from .devices import device_type
from .event_defaults import PLAIN
from .event_rows import rewrite
from .interval import Interval

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .device_events import Devices

NO_THREAD = (1 << 64) - 1  # torch's value for activities that run on a device
CPU_TO_DEVICE = 2  # torch's number for arrows from calls to the activities that they launched
ANNOTATION = "gpu_user_annotation"
TYPES = {  # kinds by Kineto's names
    of.KERNEL: "kernel",
    of.COPY: "gpu_memcpy",
    of.SET: "gpu_memset",
    of.SYNC: "cuda_sync",
    of.OVERHEAD: "overhead",
    of.RUNTIME: "cuda_runtime",
    of.DRIVER: "cuda_driver",
}
EMPTY: dict[str, Any] = {
    "overload_name": "",
    "fwd_thread": 0,
    "input_shapes": list,
    "concrete_inputs": list,
    "kwinputs": dict,
    "stack": list,
    "flops": 0,
    "structured_input_shapes": list,
    "structured_input_strides": list,
    "input_dtypes": list,
}


def raw_name(devices: Devices, row: int) -> str:
    span = devices.annotation(row)
    return span.name if span is not None else devices.name_of(devices.rows.func[row])


def times(devices: Devices, row: int) -> tuple[int, int]:
    span = devices.annotation(row)
    if span is not None:
        return span.start, span.end
    return devices.rows.start_ns[row], devices.rows.end_ns[row]


def is_call(devices: Devices, row: int) -> bool:
    return row < devices.rows.count and devices.rows.kind[row] in of.ON_THREAD


def kineto_args(devices: Devices, row: int) -> dict[str, Any]:
    """Returns arguments by the names that Kineto writes to files."""
    rows = devices.rows
    if row >= rows.count:
        return {}
    op, kind = rows.op_span[row], rows.kind[row]
    args: dict[str, Any] = {"External id": op} if op else {}
    if kind not in of.ON_THREAD:
        ordinal = devices.device_of(rows.device[row])["ordinal"]
        args |= {
            "device": ordinal,
            "context": rows.context[row],
            "stream": of.stream_number(rows.stream[row]),
        }
    args["correlation"] = rows.correlation[row]
    if kind in (of.COPY, of.SET):
        start, end = times(devices, row)
        size = rows.bytes[row]
        args |= {"bytes": size, "memory bandwidth (GB/s)": of.bandwidth(size, end - start)}
    return {**args, **rows.attributes(row)}


def _time_range(devices: Devices, row: int) -> Interval:
    start, end = times(devices, row)
    base = devices.store.base_ns
    return Interval((start - base) / 1000, (end - base) / 1000)


def _thread(devices: Devices, row: int) -> int:
    if not is_call(devices, row):
        return NO_THREAD
    number = devices.rows.thread[row]
    return devices.store.threads.get(number, number)


def _place(call: Callable[[Devices, int], Any], field: str) -> Any:
    """Makes a reader of a field: a call takes the field from its thread; an activity takes it from a column of its row,
    or from the span of its annotation.
    """

    def get(devices: Devices, row: int) -> Any:
        if is_call(devices, row):
            return call(devices, row)
        span = devices.annotation(row)
        number = getattr(devices.rows, field)[row] if span is None else getattr(span, field)
        return of.stream_number(number) if field == "stream" else number

    return get


_device_number = _place(lambda devices, row: -1, "device")


def _device_index(devices: Devices, row: int) -> int:
    number = _device_number(devices, row)
    return devices.store.pid if number < 0 else int(devices.device_of(number)["ordinal"])


def _device_type(devices: Devices, row: int) -> Any:
    number = _device_number(devices, row)
    return device_type() if number < 0 else devices.type_of(number)


def _column(name: str) -> Any:
    return lambda devices, row: getattr(devices.rows, name)[row] if row < devices.rows.count else 0


def _activity_type(devices: Devices, row: int) -> str:
    return ANNOTATION if row >= devices.rows.count else TYPES[devices.rows.kind[row]]


def _parent(devices: Devices, row: int) -> Any:
    if not is_call(devices, row):
        return None
    above, call = devices.parent_of(row)
    if call >= 0:
        return devices.event(call)
    return devices.store.events[above] if above >= 0 else None


def _children(devices: Devices, row: int) -> list[Any]:
    """Returns the calls that a call made, mostly calls of the driver."""
    if not is_call(devices, row):
        return []
    return [devices.event(call) for call in devices.calls_in_call(row)]


def _launches(devices: Devices, row: int) -> bool:
    return is_call(devices, row) and devices.rows.correlation[row] != 0


def _flow_type(devices: Devices, row: int) -> int:
    return CPU_TO_DEVICE if row < devices.rows.count and devices.rows.correlation[row] else 0


def _plain(make: Any) -> Any:
    return lambda devices, row: make() if callable(make) else make


FIELDS: dict[str, Any] = {
    **{field: _plain(make) for field, make in {**PLAIN, **EMPTY}.items()},
    "id": _column("correlation"),
    "name": lambda devices, row: rewrite(raw_name(devices, row)),
    "trace_name": raw_name,
    "time_range": _time_range,
    "thread": _thread,
    "cpu_parent": _parent,
    "cpu_children": _children,
    "use_device": lambda devices, row: devices.use_device,
    "device_type": _device_type,
    "device_index": _device_index,
    "device_resource_id": _place(_thread, "stream"),
    "is_user_annotation": lambda devices, row: row >= devices.rows.count,
    "activity_type": _activity_type,
    "external_id": _column("op_span"),
    "linked_correlation_id": _column("op_span"),
    "flow_id": _column("correlation"),
    "flow_type": _flow_type,
    "flow_start": _launches,
}
