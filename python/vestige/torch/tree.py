"""kineto_results.experimental_event_tree(): the recording as torch's tree of events, made on first use.

Operators, allocations and calls come from the trace. What modules and optimizers hold was noted while recording
(noted_tensors.c). Loaded only where torch is.
"""

from __future__ import annotations

import json
import re

from torch._C import _profiler as theirs

from vestige.reading.kinds import ANNOTATION, GC, MODULE, NATIVE, OPERATOR

from . import tensor_ids
from .event_rows import CALLS, SCOPE_SHIFT, USER_SCOPE
from .tree_autograd import Autograd
from .tree_devices import add_device_nodes
from .tree_fields import (
    Allocation,
    Kineto,
    NNModuleInfo,
    Node,
    OptimizerInfo,
    PyCall,
    PyCCall,
    PyFrameState,
    TensorMetadata,
    TorchOp,
    device_of,
)
from .tree_rows import late_threads, parent_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .events import Store

CPU = 0  # torch's number for the device type CPU
OPEN_AT_END = 2  # a flag of spans
STEP_CODE = "_optimizer_step_code"
OF_OBJECT = re.compile(r"^<built-in method .* of .* object>$")
BY_SYNTAX = re.compile(r"^<built-in (function|method) __\w+__( of |>)")  # mostly called by operators and statements
NOWHERE: Any = PyFrameState.make(line_number=0, file_name="", function_name="")
TAGS = theirs._EventType
PYTHON_CALLS = TAGS.PyCall, TAGS.PyCCall
SCOPES = {int(scope): scope for scope in theirs.RecordScope.__members__.values()}


class Tree:
    """The tree of events in some windows of a recording."""

    def __init__(
        self,
        store: Store,
        functions: list[Any],
        notes: list[Any],
        *,
        before: int = 0,
        earlier_ids: int = 0,
        all_natives: bool = True,
        numbered: bool = True,
    ) -> None:
        """`functions` are those of Trace.functions(). `notes` say what modules and optimizers held. `before` is how
        many bytes were allocated before. `earlier_ids` are the correlation ids of other results. `all_natives` shows
        every C function; otherwise only those that Python code calls by name, because the interpreter reports no others
        to torch. `numbered` gives tensors ids, which needs a recording of memory.
        """
        self._store = store
        self._functions = functions
        self._earlier_ids = earlier_ids
        self._all_natives = all_natives
        self._is_numbered = not numbered
        self._frames: dict[int, PyFrameState] = {}
        self._allocated = max(before, 0)
        self._modules = {note[1]: self._module(note) for note in notes if note[0] == "module"}
        self._steps = _Steps([note for note in notes if note[0] == "optimizer"], self._optimizer)
        self._autograd = Autograd()
        by_row = [self._node(row) for row in range(store.count)]
        self._autograd.finish()
        self.roots, self.nodes = self._link(by_row)
        if store.devices is not None:
            add_device_nodes(store.devices, by_row, self.roots, self.nodes)

    # ---- nodes ---------------------------------------------------------------

    def _node(self, row: int) -> Any:
        store = self._store
        kind, name = store.definition(row)
        tag, fields = self._fields(row, kind, name)
        return Node.make(
            name=_shown(name) if kind == NATIVE else name,
            overload_name="",
            tag=tag,
            extra_fields=fields,
            parent=None,
            children=[],
            start_time_ns=store.rows.start_ns[row],
            end_time_ns=store.rows.end_ns[row],
            start_tid=store.threads.get(store.rows.thread[row], 0),
            correlation_id=store.rows.span[row] + self._earlier_ids if tag == TAGS.TorchOp else 0,
        )

    def _fields(self, row: int, kind: int, name: str) -> tuple[Any, Any]:
        if kind in (OPERATOR, ANNOTATION):
            return TAGS.TorchOp, self._operator(row, kind, name)
        if kind == 0:
            return TAGS.Allocation, self._allocation(row)
        if kind == NATIVE:
            return TAGS.PyCCall, PyCCall.make(caller=None)
        if kind == GC or kind not in CALLS:
            return TAGS.Kineto, Kineto.make()
        number = self._store.rows.func[row]
        step = self._steps.next(self._thread(row)) if self._is_step(number) else None
        module = self._modules.get(number) if kind == MODULE else None
        return TAGS.PyCall, PyCall.make(callsite=self._frame(number), caller=None, module=module, optimizer=step)

    def _thread(self, row: int) -> int:
        return self._store.threads.get(self._store.rows.thread[row], 0)

    def _operator(self, row: int, kind: int, name: str) -> Any:
        args = self._store.args(row)
        scope = USER_SCOPE if kind == ANNOTATION else self._store.rows.flags[row] >> SCOPE_SHIFT
        fields = TorchOp.make(
            name=name,
            scope=SCOPES.get(scope, theirs.RecordScope.FUNCTION),
            sequence_number=args.get("Sequence number", -1),
            allow_tf32_cublas=False,
            _inputs=lambda: self._inputs(self._store.args(row)),
        )
        self._autograd.add(self._thread(row), fields, args)
        return fields

    def _inputs(self, args: dict[str, Any]) -> list[Any]:
        places = iter(args.get("Tensors", ()))
        described = zip(
            args.get("Input type", ()),
            args.get("Concrete Inputs", ()),
            args.get("Input Dims", ()),
            args.get("Input Strides", ()),
            strict=False,
        )
        return [self._input(places, *each) for each in described]

    def _input(self, places: Iterator[list[int]], kind: str, value: str, sizes: list[Any], strides: list[Any]) -> Any:
        if kind == "Scalar":
            return _number(value)
        if kind == "TensorList":
            if not sizes:
                return []
            found = [self._tensor(places, *each) for each in zip(sizes, strides, strict=False)]
            return None if None in found else found
        return self._tensor(places, sizes, strides) if kind and kind != "ScalarList" else None

    def _tensor(self, places: Iterator[list[int]], sizes: list[int], strides: list[int]) -> Any:
        place = next(places, None)
        return None if place is None else TensorMetadata.of(self._number, place, sizes, strides)

    def _allocation(self, row: int) -> Any:
        size = self._store.rows.self_bytes[row]
        self._allocated += size
        return Allocation.make(
            ptr=self._store.rows.address[row],
            alloc_size=size,
            total_allocated=max(0, self._allocated),
            device=device_of(CPU, -1),
            _numbers=self._number,
            _id=None,
            _allocation_id=None,
        )

    # ---- calls ---------------------------------------------------------------

    def _frame(self, number: int) -> PyFrameState:
        if number not in self._frames:
            known = self._functions[number] if number < len(self._functions) else None
            name, file, line = (known.name, known.shown_file, known.line) if known else ("", "", 0)
            self._frames[number] = PyFrameState.make(line_number=line, file_name=file, function_name=name)
        return self._frames[number]

    def _is_step(self, number: int) -> bool:
        return str(self._frame(number).function_name).endswith(STEP_CODE)

    def _described(self, text: str | None) -> Any:
        if text is None:
            return None
        *place, sizes, strides = json.loads(text)
        return TensorMetadata.of(self._number, place, sizes, strides)

    def _module(self, note: Any) -> Any:
        _, _, self_ptr, cls_ptr, cls_name, tensors = note
        parameters = [(name, self._described(own), self._described(gradient)) for name, own, gradient in tensors]
        return NNModuleInfo.make(self_ptr=self_ptr, cls_ptr=cls_ptr, cls_name=cls_name, parameters=parameters)

    def _optimizer(self, note: Any) -> Any:
        parameters = [
            (self._described(own), self._described(gradient), [(name, self._described(text)) for name, text in state])
            for own, gradient, state in note[5]
        ]
        return OptimizerInfo.make(self_ptr=note[2], parameters=parameters)

    # ---- the tree --------------------------------------------------------------

    def _link(self, by_row: list[Node]) -> tuple[list[Node], list[Node]]:
        """Returns the roots, and all nodes in order of time. Nodes inside a call that is not shown move to that call's
        parent.
        """
        roots: list[Node] = []
        nodes: list[Node] = []
        parents = parent_rows(self._store)
        late = late_threads(self._store)
        for row, node in enumerate(by_row):
            above = by_row[parents[row]] if parents[row] >= 0 else None
            if above is not None and above.extra_fields is None:
                above = above.parent
            node.parent = above
            is_late = self._store.rows.thread[row] in late
            if node.tag in PYTHON_CALLS and not self._is_shown(node, is_late):
                node.extra_fields = None
                continue
            if above is None:
                node.parent = above = self._autograd.parent_of(node)
            self._autograd.note(node)
            nodes.append(node)
            if above is not None and self._store.rows.flags[row] & OPEN_AT_END:
                node.end_time_ns = min(node.end_time_ns, above.end_time_ns)
            (roots if above is None else above.children).append(node)
            if node.tag in PYTHON_CALLS:
                node.extra_fields.caller = _caller(node)
        return roots, nodes

    def _is_shown(self, node: Node, is_late: bool) -> bool:
        """Returns whether a call is in the tree. torch does not see calls of threads that start while it records, and
        programs expect its tree here. events() and exported files have these calls.
        """
        if is_late:
            return False
        if self._all_natives or node.tag == TAGS.PyCall:
            return True
        return node.parent is None or (node.parent.tag != TAGS.PyCCall and not BY_SYNTAX.match(node.name))

    # ---- which tensor is which ---------------------------------------------------

    def _number(self) -> None:
        if not self._is_numbered:
            self._is_numbered = True
            tensor_ids.number(self._seen())

    def _seen(self) -> Iterator[tuple[Any, int, int, object, bool]]:
        """Yields tensors and allocations in order of time. The tensors of a module or optimizer come when its first
        call comes, because they were noted then.
        """
        holders: set[int] = set()
        for node in self.nodes:
            fields = node.extra_fields
            if node.tag == TAGS.Allocation:
                yield fields, 0, fields.ptr, fields.device, fields.alloc_size < 0
            elif node.tag == TAGS.TorchOp:
                for tensor in _tensors_in(fields.inputs):
                    yield _entry(tensor)
            elif node.tag == TAGS.PyCall:
                for holder in (fields.module, fields.optimizer):
                    if holder is not None and holder.self_ptr not in holders:
                        holders.add(holder.self_ptr)
                        for tensor in _held(holder):
                            yield _entry(tensor)


class _Steps:
    """The optimizer of each call of the function that all optimizers share. The notes of a thread are in the order of
    its calls.
    """

    def __init__(self, notes: list[Any], make: Any) -> None:
        self._made: dict[int, OptimizerInfo] = {}
        self._waiting: dict[int, list[int]] = {}
        for note in notes:
            self._waiting.setdefault(note[1], []).append(note[2])
            if note[5] is not None:
                self._made[note[2]] = make(note)

    def next(self, thread: int) -> OptimizerInfo | None:
        waiting = self._waiting.get(thread)
        return self._made.get(waiting.pop(0)) if waiting else None


def _caller(node: Node) -> Any:
    """Returns the innermost Python function around a call."""
    above = node.parent
    while above is not None and above.tag != TAGS.PyCall:
        above = above.parent
    return NOWHERE if above is None else above.extra_fields.callsite


def _entry(tensor: TensorMetadata) -> tuple[Any, int, int, object, bool]:
    return tensor, tensor.impl_ptr, tensor.storage_data_ptr, tensor.device, False


def _tensors_in(inputs: list[Any]) -> Iterator[TensorMetadata]:
    for each in inputs:
        if isinstance(each, TensorMetadata):
            yield each
        elif isinstance(each, list):
            yield from each


def _held(holder: Any) -> Iterator[TensorMetadata]:
    if isinstance(holder, NNModuleInfo):
        tensors = [tensor for _, *both in holder.parameters for tensor in both]
    else:
        tensors = [
            tensor
            for own, gradient, state in holder.parameters
            for tensor in (own, gradient, *(each for _, each in state))
        ]
    yield from (tensor for tensor in tensors if tensor is not None)


def _shown(name: str) -> str:
    """Returns the name that torch shows, with a zero address: torch writes the address of the object with which a
    built-in method was first called, but one function stands for many objects.
    """
    if not OF_OBJECT.match(name):
        return name
    return f"{name[:-1]} at 0x0>".replace(" of torch._C.TensorBase object", " of Tensor object")


def _number(text: str) -> Any:
    """Returns the number that a text stands for."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            pass
    return None
