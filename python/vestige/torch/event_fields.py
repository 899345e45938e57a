"""The fields of events that were read. Each value is made from a row of the recording when a program reads the
field.
"""

from __future__ import annotations

from vestige.reading.kinds import ANNOTATION, MODULE, OPERATOR

from .event_defaults import PLAIN
from .event_rows import ASYNC, CALLS, RESUMED, SCOPE_SHIFT, USER_SCOPE, flat_shapes, rewrite
from .interval import Interval

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .events import FunctionEvent, Store


def _column(name: str) -> Any:
    return lambda store, row: getattr(store.rows, name)[row]


def _arg(name: str, missing: Any) -> Any:
    return lambda store, row: store.args(row).get(name, missing() if callable(missing) else missing)


def _input(name: str, text: Any) -> Any:
    """Returns a list with one item per input. A span's text counts as an input if torch counts it so."""

    def read(store: Store, row: int) -> list[Any]:
        args = store.args(row)
        if "shapes" in store.as_torch and "args" in args and store.definition(row)[0] == ANNOTATION:
            return [text() if callable(text) else text]
        found: list[Any] = args.get(name, [])
        return found

    return read


def _kind_is(*kinds: int) -> Any:
    return lambda store, row: store.definition(row)[0] in kinds


def _time_range(store: Store, row: int) -> Interval:
    return Interval(
        (store.rows.start_ns[row] - store.base_ns) / 1000,
        (store.rows.end_ns[row] - store.base_ns) / 1000,
    )


def _thread(store: Store, row: int) -> int:
    number = store.rows.thread[row]
    return store.threads.get(number, number)


def _parent(store: Store, row: int) -> FunctionEvent | None:
    parent = store.rows.parent[row]
    return store.events[parent] if parent >= 0 else None


def _python_parent(store: Store, row: int) -> int:
    if store.definition(row)[0] not in CALLS:
        return -1
    while (row := store.rows.parent[row]) >= 0:
        if store.definition(row)[0] in CALLS:
            return store.rows.span[row]
    return -1


def _scope(store: Store, row: int) -> int:
    kind = store.definition(row)[0]
    if kind == ANNOTATION:
        return USER_SCOPE
    return store.rows.flags[row] >> SCOPE_SHIFT


OTHER_KEYWORDS = "Keyword inputs"  # keyword inputs that JSON cannot hold, in the form in which Python prints a dict
OWN_ARGS = frozenset(  # arguments of operators; all others are keyword inputs
    (
        "Call stack",
        "Concrete Inputs",
        "Flops",
        "Fwd thread id",
        "Input Dims",
        "Input Strides",
        "Input type",
        "Inputs",
        "Module Hierarchy",
        "Overload name",
        "Sequence number",
        "args",
    )
)


def _keywords(store: Store, row: int) -> dict[str, Any]:
    if store.definition(row)[0] in CALLS:
        return {}
    args = store.args(row)
    others = _value(args.pop(OTHER_KEYWORDS, "{}"))
    return {**{name: value for name, value in args.items() if name not in OWN_ARGS}, **others}


def _module_id(store: Store, row: int) -> int:
    kind, name = store.definition(row)
    return int(name.rpartition("_")[2]) if kind == MODULE else -1


def _trace_name(store: Store, row: int) -> str | None:
    kind, name = store.definition(row)
    return name if kind else None


def _flow(part: int) -> Any:
    return lambda store, row: store.flows.get(row, (0, 0, False))[part]


def _value(text: str) -> Any:
    """Returns the value of an input's text; None for a tensor."""
    from ast import literal_eval

    try:
        return literal_eval(text) if text else None
    except (ValueError, SyntaxError):
        return text


def _activity(store: Store, row: int) -> str:
    return {ANNOTATION: "user_annotation", OPERATOR: "cpu_op"}.get(store.definition(row)[0], "python_function")


_shapes = _input("Input Dims", list)
_concrete = _input("Concrete Inputs", "")


def _plain(make: Any) -> Any:
    return lambda store, row: make() if callable(make) else make


FIELDS: dict[str, Any] = {
    **{field: _plain(make) for field, make in PLAIN.items()},
    "id": _column("span"),
    "name": lambda store, row: rewrite(store.definition(row)[1]),
    "trace_name": _trace_name,
    "overload_name": _arg("Overload name", ""),
    "time_range": _time_range,
    "thread": _thread,
    "device_resource_id": _thread,
    "fwd_thread": _arg("Fwd thread id", 0),
    "count": lambda store, row: int(not store.rows.flags[row] & RESUMED),
    "cpu_children": lambda store, row: store.children_of(row),
    "kernels": lambda store, row: [] if store.devices is None else store.devices.kernels(row),
    "use_device": lambda store, row: store.use_device,
    "cpu_parent": _parent,
    "input_shapes": lambda store, row: flat_shapes(_shapes(store, row)),
    "structured_input_shapes": _shapes,
    "structured_input_strides": _input("Input Strides", list),
    "input_dtypes": _input("Input type", ""),
    "concrete_inputs": lambda store, row: [_value(text) for text in _concrete(store, row)],
    "kwinputs": _keywords,
    "flow_id": _flow(0),
    "flow_type": _flow(1),
    "flow_start": _flow(2),
    "device_index": lambda store, row: store.pid if store.definition(row)[0] else 0,
    "stack": lambda store, row: list(store.stack(row)),
    "scope": _scope,
    "cpu_memory_usage": _column("total_bytes"),
    "is_async": lambda store, row: bool(store.rows.flags[row] & ASYNC),
    "sequence_nr": _arg("Sequence number", -1),
    "flops": _arg("Flops", 0),
    "is_user_annotation": _kind_is(ANNOTATION),
    "is_python_function": _kind_is(*CALLS),
    "activity_type": _activity,
    "external_id": lambda store, row: 0 if store.definition(row)[0] in CALLS else store.rows.span[row],
    "python_id": lambda store, row: store.rows.span[row] if store.definition(row)[0] in CALLS else -1,
    "python_parent_id": _python_parent,
    "python_module_id": _module_id,
}
