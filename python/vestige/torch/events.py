"""What was recorded, event by event: FunctionEvent with torch.profiler's fields.

The extension gives every span as a row of one block of memory (see python/ext/read/trace_events.c). An event holds the
number of its row; a field is read, or made, when a program asks for it. Events have the ids of the exported file.
"""

from __future__ import annotations

import sys

from vestige.base.printable import printable
from vestige.reading.kinds import ANNOTATION, GC, MODULE, NATIVE, OPERATOR, PYTHON

from .event_defaults import PLAIN
from .table import FormattedTimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

LOOSE = 0, "[memory]"  # of the id 0: what a framework allocated outside of all spans, as torch names it
CALLS = (PYTHON, NATIVE, GC, MODULE)
ASYNC, RESUMED = 64, 16  # flags of spans
REPORTED = 2048  # by a backend of torch
WORDS, HALVES = 11, 22  # of a row, in 8 and 4 bytes
START, END, SELF, ARGS_AT, SELF_BYTES, TOTAL_BYTES = range(6)  # words
SERIAL, ID, PARENT, FIRST, NEXT, THREAD, FLAGS, ARGS_LENGTH = range(12, 20)  # halves
COMPENSATED = 10  # word
STEP = "ProfilerStep#"
USER_SCOPE = 7
SCOPE_SHIFT = 24  # in the flags of an operator
REPR_MAX = 20  # children


def torchs(cls: type[Any]) -> type[Any]:
    """The class of the same name that inherits from torch's, if torch is loaded."""
    found = _inherited.get(cls)
    if found is None:
        if "torch.autograd.profiler_util" not in sys.modules:
            return cls
        from . import inherited

        found = _inherited[cls] = getattr(inherited, cls.__name__)
    return found


_inherited: dict[type[Any], type[Any]] = {}  # torch stays loaded; an import costs more than a row of a table


class Interval:
    """A stretch of time in µs."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval({self.start}, {self.end})"


class Store:
    """The rows of a recording, what they refer to, and the events that were made of them."""

    def __init__(
        self,
        block: memoryview,
        text: memoryview,
        timed_out: bool,
        definitions: list[tuple[int, str] | None],
        threads: dict[int, int],
        pid: int,
        base_ns: int | None = None,
        as_torch: Collection[str] = (),
    ) -> None:
        """as_torch names what events have only in torch's place: "shapes" counts a span's text as an input, as torch
        does with record_shapes; "metadata" gives them metadata_json; "gradients" numbers arrows in the order of
        gradients, "unlinked" leaves them out."""
        self.words = block.cast("q")
        self.halves = block.cast("i")
        self.text = text
        self.timed_out = timed_out
        self.pid = pid
        self.count = len(self.words) // WORDS
        first_ns: int = self.words[START] if self.count else 0
        self.base_ns = first_ns if base_ns is None else min(base_ns, first_ns) if self.count else base_ns
        self.definitions = definitions
        self.threads = threads
        self.as_torch = as_torch
        self._rows: dict[int, int] = {}  # by serial
        self._events: list[FunctionEvent] | None = None
        self._stacks: dict[int, list[str]] = {}
        self._flows: dict[int, tuple[int, int, bool]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy needs neither the trace nor its file."""
        known = self.definitions, self.threads, self.pid, self.base_ns, tuple(self.as_torch)
        return _restored_store, (self.words.tobytes(), bytes(self.text), self.timed_out, *known)

    @property
    def events(self) -> list[FunctionEvent]:
        if self._events is None:
            make = torchs(FunctionEvent)._of
            self._events = [make(self, row) for row in range(self.count)]
        return self._events

    def row_of(self, serial: int) -> int | None:
        if not self._rows:
            serials = self.halves[SERIAL::HALVES]
            self._rows = {number: row for row, number in enumerate(serials)}
        return self._rows.get(serial)

    def definition(self, row: int) -> tuple[int, str]:
        number = self.halves[row * HALVES + ID]
        if number == 0:
            return LOOSE
        known = self.definitions[number] if number < len(self.definitions) else None
        return known or (NATIVE, f"unknown function {number}")

    def children(self, row: int) -> list[int]:
        found = []
        child = self.halves[row * HALVES + FIRST]
        while child >= 0:
            found.append(child)
            child = self.halves[child * HALVES + NEXT]
        return found

    def args_text(self, row: int) -> str:
        """The members of a JSON object."""
        length = self.halves[row * HALVES + ARGS_LENGTH]
        at = self.words[row * WORDS + ARGS_AT]
        return bytes(self.text[at : at + length]).decode(errors="replace")

    def args(self, row: int) -> dict[str, Any]:
        return read_members(self.args_text(row)) if self.halves[row * HALVES + ARGS_LENGTH] else {}

    @property
    def flows(self) -> dict[int, tuple[int, int, bool]]:
        """Id, type and side of the arrows from operators to those that compute their gradients, by row. As in the
        exported file: from the last forward operator of a sequence number to the first of the backward pass."""
        if "unlinked" in self.as_torch:
            return {}
        if self._flows is None:
            forward: dict[int, int] = {}
            backward: dict[int, int] = {}
            for row in range(self.count):
                if self.definition(row)[0] != OPERATOR or self.halves[row * HALVES + FLAGS] >> SCOPE_SHIFT > 1:
                    continue
                args = self.args(row)
                number = args.get("Sequence number", -1)
                if number < 0:
                    continue
                if self.halves[row * HALVES + FLAGS] >> SCOPE_SHIFT == 1 and args.get("Fwd thread id"):
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
        """The calls that an event runs in, innermost first. The stack of a call begins with the call itself."""
        above: list[int] = []
        while row >= 0 and row not in self._stacks:
            above.append(row)
            row = self.halves[row * HALVES + PARENT]
        stack = self._stacks[row] if row >= 0 else []
        for each in reversed(above):
            kind, name = self.definition(each)
            stack = [name, *stack] if kind in CALLS else stack
            self._stacks[each] = stack
        return stack


def _restored_store(block: bytes, text: bytes, *rest: Any) -> Store:
    return Store(memoryview(block), memoryview(text), *rest)


def read_members(text: str) -> dict[str, Any]:
    from vestige.reading.metadata import load_json

    members = load_json("{" + text + "}")
    return members if isinstance(members, dict) else {}


def flat_shapes(dims: Sequence[Any]) -> list[Any]:
    """Shapes as input_shapes has them: a list of tensors is []."""
    shapes = [shape if isinstance(shape, list) else [] for shape in dims]
    return [[] if any(isinstance(part, list) for part in shape) else shape for shape in shapes]


def rewrite(name: str) -> str:
    """All steps have one name in tables."""
    return "ProfilerStep*" if name.startswith(STEP) else name


class FunctionEvent(FormattedTimes):
    """One call, operator or annotation, with the fields that torch.profiler gives it. Times are in µs.

    Differences from torch: id is the event's number in the exported file ("Ev Idx"), self_cpu_time_total is
    never negative, stack begins with the function itself, and thread is the system's number.
    """

    __slots__ = ("__dict__", "_row", "_store")

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
        """A copy of one that was read has its own row alone; its fields are made again. Without the relatives that were
        made so far, since each has its own row, too."""
        kept = {name: value for name, value in self.__dict__.items() if name not in ("cpu_parent", "cpu_children")}
        if self._store is None:
            return _restored_event, (None, -1), self.__dict__
        return _restored_event, (self._store, self._row), kept

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, field: str) -> Any:
        """Called for fields that were not asked for before."""
        make = FIELDS.get(field)
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
            return self.time_range.elapsed_us()  # type: ignore[no-any-return]
        at = self._row * WORDS
        return (self._store.words[at + END] - self._store.words[at + START]) / 1000

    @property
    def compensated_time_total(self) -> float | None:
        """What cpu_time_total would have been without the recording (profile(compensate=True)); None: not known."""
        ns = -1 if self._store is None else self._store.words[self._row * WORDS + COMPENSATED]
        return None if ns < 0 else ns / 1000

    @property
    def self_cpu_time_total(self) -> float:
        if self._store is not None:
            return self._store.words[self._row * WORDS + SELF] / 1000  # 0 for what is async
        if self.is_async:
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
        return self._store.words[self._row * WORDS + SELF_BYTES]

    device_time_total = self_device_time_total = self_device_memory_usage = 0
    cuda_time_total = self_cuda_time_total = self_cuda_memory_usage = 0

    @property
    def metadata_json(self) -> str:
        import warnings

        message = "`metadata_json` is deprecated. Use `event_metadata` instead."
        warnings.warn(message, FutureWarning, stacklevel=2)
        if self._store is None or "metadata" not in self._store.as_torch or self.is_python_function:
            return ""
        return f'"Ev Idx": {self.id}'

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """For callers that add work of a device; vestige records none."""
        from collections import namedtuple

        Kernel = namedtuple("Kernel", "name device duration")
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


# ---- fields ------------------------------------------------------------------


def _half(field: int) -> Any:
    return lambda store, row: store.halves[row * HALVES + field]


def _arg(name: str, missing: Any) -> Any:
    return lambda store, row: store.args(row).get(name, missing() if callable(missing) else missing)


def _input(name: str, text: Any) -> Any:
    """A list with one item for each input. A span's text is an input, too, where torch counts it."""

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
    at = row * WORDS
    return Interval(
        (store.words[at + START] - store.base_ns) / 1000,
        (store.words[at + END] - store.base_ns) / 1000,
    )


def _thread(store: Store, row: int) -> int:
    number = store.halves[row * HALVES + THREAD]
    return store.threads.get(number, number)


def _parent(store: Store, row: int) -> FunctionEvent | None:
    parent = store.halves[row * HALVES + PARENT]
    return store.events[parent] if parent >= 0 else None


def _python_parent(store: Store, row: int) -> int:
    if store.definition(row)[0] not in CALLS:
        return -1
    while (row := store.halves[row * HALVES + PARENT]) >= 0:
        if store.definition(row)[0] in CALLS:
            return store.halves[row * HALVES + SERIAL]
    return -1


def _scope(store: Store, row: int) -> int:
    kind = store.definition(row)[0]
    if kind == ANNOTATION:
        return USER_SCOPE
    return store.halves[row * HALVES + FLAGS] >> SCOPE_SHIFT


OTHER_KEYWORDS = "Keyword inputs"  # those that JSON cannot hold, as Python writes a dict
OWN_ARGS = frozenset(  # of operators; others are keyword inputs
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
    if store.definition(row)[0] in CALLS or store.halves[row * HALVES + FLAGS] & REPORTED:
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
    """What the text of an input stands for; None for a tensor."""
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
    "id": _half(SERIAL),
    "name": lambda store, row: rewrite(store.definition(row)[1]),
    "trace_name": _trace_name,
    "overload_name": _arg("Overload name", ""),
    "time_range": _time_range,
    "thread": _thread,
    "device_resource_id": _thread,
    "fwd_thread": _arg("Fwd thread id", 0),
    "count": lambda store, row: int(not store.halves[row * HALVES + FLAGS] & RESUMED),
    "cpu_children": lambda store, row: [store.events[child] for child in store.children(row)],
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
    "cpu_memory_usage": lambda store, row: store.words[row * WORDS + TOTAL_BYTES],
    "is_async": lambda store, row: bool(store.halves[row * HALVES + FLAGS] & ASYNC),
    "sequence_nr": _arg("Sequence number", -1),
    "flops": _arg("Flops", 0),
    "is_user_annotation": _kind_is(ANNOTATION),
    "is_python_function": _kind_is(*CALLS),
    "activity_type": _activity,
    "external_id": lambda store, row: 0 if store.definition(row)[0] in CALLS else store.halves[row * HALVES + SERIAL],
    "python_id": lambda store, row: store.halves[row * HALVES + SERIAL] if store.definition(row)[0] in CALLS else -1,
    "python_parent_id": _python_parent,
    "python_module_id": _module_id,
}
