"""FunctionEventAvg: sums over the events of one name, with torch.profiler's fields. The lists are made from the
extension's sums or from events.
"""

from __future__ import annotations

from vestige.base.printable import printable
from vestige.reading.kinds import ANNOTATION, NATIVE, OPERATOR
from vestige.reading.metadata import load_json

from .devices import device_type
from .event_rows import CALLS, LOOSE, flat_shapes, rewrite
from .events import torchs
from .table import FormattedTimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .results import Results

FIRST = (  # fields copied from the first event
    "node_id",
    "is_async",
    "is_remote",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
    "is_python_function",
)
SUMS = (
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "count",
)


class FunctionEventAvg(FormattedTimes):
    """Sums over events, in µs and bytes. cpu_time is the average per call."""

    _results: Results | None = None
    _serial = 0  # the number of the first event

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.compensated_time_total: float | None = 0.0  # None if it is unknown for some event
        self.self_device_time_total: float = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] | None = None
        self._scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.device_type = device_type()
        self.is_legacy = False
        self.flops: int = 0
        self.is_user_annotation: bool | None = False
        self.is_python_function = False
        self.self_cpu_percent: Any = -1
        self.total_cpu_percent: Any = -1
        self.total_device_percent: Any = -1
        self._first: Any = None

    @property
    def scope(self) -> int | None:
        """The scope of the first event."""
        if self._scope is None and (first := self._first_event()) is not None:
            self._scope = first.scope
        return self._scope

    @scope.setter
    def scope(self, scope: int | None) -> None:
        self._scope = scope

    @property
    def cuda_time_total(self) -> float:
        return self.device_time_total

    @property
    def cpu_parent(self) -> Any:
        """The parent of the first event; calls that the list leaves out are skipped."""
        first = self._first_event()
        parent = None if first is None else first.cpu_parent
        if self._results is not None and not self._with_calls:
            while parent is not None and parent.is_python_function:
                parent = parent.cpu_parent
        return parent

    @property
    def cpu_children(self) -> Any:
        """The children of the first event."""
        first = self._first_event()
        return None if first is None else first.cpu_children

    _with_calls = True

    def _first_event(self) -> Any:
        if self._first is None and self._results is not None:
            row = self._results.store.row_of(self._serial)
            self._first = None if row is None else self._results.store.events[row]
        return self._first

    def __getstate__(self) -> dict[str, Any]:
        """A copy contains its first event, because it has no trace to look it up in."""
        self._first_event()
        return {**self.__dict__, "_results": None}

    def add(self, other: Any) -> FunctionEventAvg:
        """Adds an event, or another sum, of an equal key."""
        if self.key is None:
            self.key = other.key
            for field in FIRST:
                setattr(self, field, getattr(other, field, None))
            self._first = other
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for field in SUMS:
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.flops += other.flops or 0
        self._add_compensated(getattr(other, "compensated_time_total", None))
        return self

    __iadd__ = add

    def _add_sums(self, found: Any, own_ns: int) -> None:
        """`found` is a row of the table `averages` or `contexts`."""
        self.count += found.calls
        self.self_cpu_time_total += own_ns / 1000
        self.cpu_time_total += found.total_ns / 1000
        self._add_compensated(None if found.compensated_ns is None else found.compensated_ns / 1000)
        self.cpu_memory_usage += found.total_bytes
        self.self_cpu_memory_usage += found.self_bytes

    def _add_compensated(self, us: float | None) -> None:
        before = self.compensated_time_total
        self.compensated_time_total = None if us is None or before is None else before + us

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return printable(
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


def _parse_shapes(text: str | None) -> list[Any]:
    shapes = load_json(text or "[]")
    return flat_shapes(shapes) if isinstance(shapes, list) else []


def _overload(text: str | None) -> str:
    return str(load_json(text)) if text else ""


def _make(results: Results, kind: int, name: str, serial: int, with_calls: bool) -> FunctionEventAvg:
    row: FunctionEventAvg = torchs(FunctionEventAvg)()
    row.key = name
    row.node_id = -1
    row.stack = []
    row.input_shapes = row.overload_name = ""
    row._scope = 7 if kind == ANNOTATION else None if kind == OPERATOR else 0
    row.is_user_annotation = kind == ANNOTATION
    row.is_python_function = kind in CALLS
    row._results = results
    row._serial = serial
    row._with_calls = with_calls
    return row


def _known(results: Results, number: int) -> tuple[int, str]:
    if number == 0:
        return LOOSE
    known = results.definitions[number] if number < len(results.definitions) else None
    return known or (NATIVE, f"unknown function {number}")


def average_names(results: Results, with_calls: bool, by_shapes: bool, by_overload: bool) -> list[FunctionEventAvg]:
    """Returns averages by name, and if wanted by shapes and overload. The extension computes the sums."""
    rows: dict[tuple[Any, ...], FunctionEventAvg] = {}
    sums = results.trace.tables(
        ["averages"],
        calls=with_calls,
        shapes=by_shapes,
        overloads=by_overload,
        timeout=results.timeout,
        **results.selection,
    )["averages"]
    for found in sums:
        kind, name = _known(results, found.func)
        name = rewrite(name)
        key = (name, kind == ANNOTATION, found.shapes, found.overload, found.is_async)
        row = rows.get(key)
        if row is None:
            row = rows[key] = _make(results, kind, name, found.span, with_calls)
            row.is_async = found.is_async
            if by_shapes:
                row.input_shapes = _parse_shapes(found.shapes)
            if by_overload:
                row.overload_name = _overload(found.overload)
        row._add_sums(found, found.self_ns)
        row.flops += found.flops
    return list(rows.values())


def average_stacks(results: Results, with_calls: bool, by_shapes: bool, depth: int) -> list[FunctionEventAvg]:
    """Returns averages by name and innermost callers, from the tree of contexts."""
    nodes = list(results.contexts(shapes=by_shapes))
    known = [_known(results, node.func) for node in nodes]
    stacks: list[tuple[str, ...]] = []
    for (kind, name), node in zip(known, nodes, strict=True):
        outer = stacks[node.parent] if node.parent is not None else ()
        stacks.append((name, *outer[: depth - 1]) if kind in CALLS else outer)
    own = [node.self_ns for node in nodes]
    if not with_calls:  # the time of a call that is left out counts for its caller
        for at in range(len(nodes) - 1, -1, -1):
            if known[at][0] in CALLS and nodes[at].parent is not None:
                own[nodes[at].parent] += own[at]
    rows: dict[tuple[Any, ...], FunctionEventAvg] = {}
    for at in sorted(range(len(nodes)), key=lambda at: nodes[at].first_ns):
        kind, name = known[at]
        if kind in CALLS and not with_calls:
            continue
        found = nodes[at]
        name = rewrite(name)
        key = (name, kind == ANNOTATION, found.shapes, stacks[at])
        row = rows.get(key)
        if row is None:
            row = rows[key] = _make(results, kind, name, found.span, with_calls)
            row.stack = list(stacks[at])
            if by_shapes:
                row.input_shapes = _parse_shapes(found.shapes)
        row._add_sums(found, own[at])
    return list(rows.values())


def average_events(events: Iterable[Any], by_shapes: bool, depth: int, by_overload: bool) -> list[FunctionEventAvg]:
    """Returns the averages of any list of events."""
    rows: dict[tuple[Any, ...], FunctionEventAvg] = {}
    for event in events:
        key: tuple[Any, ...] = (event.key, event.node_id, event.is_user_annotation, int(event.device_type))
        key += (event.overload_name,) if by_overload else ()
        key += (str(event.input_shapes),) if by_shapes else ()
        key += tuple(event.stack[:depth]) if depth > 0 else ()
        rows.setdefault(key, torchs(FunctionEventAvg)()).add(event)
    for row in rows.values():
        row.stack = (row.stack or [])[:depth]
        if not by_shapes:
            row.input_shapes = ""
        if not by_overload:
            row.overload_name = ""
    return list(rows.values())
