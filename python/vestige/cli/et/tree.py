"""An execution trace as a tree of operators to show: inputs, outputs and times. Reads files with defects too, and shows
as much of them as possible.
"""

from __future__ import annotations

from vestige.base.quantities import duration

from .node import PROCESS, THREAD
from .stream import Document, without_collector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .timeline import Timeline


class Operator:
    """An operator of the tree, made from a node."""

    __slots__ = (
        "begin", "children", "depth", "duration", "gave", "given", "id", "last", "name", "parent", "rf_id", "schema",
        "scope", "seq_id", "tid",
    )  # fmt: skip

    def __init__(self, node: dict[str, Any]) -> None:
        attributes = _attributes(node.get("attrs"))
        self.id: int = node["id"]
        self.name = str(node.get("name", "?"))
        self.parent = _number(node.get("ctrl_deps"), -1)
        self.given = list(_arguments(node.get("inputs")))
        self.gave = list(_arguments(node.get("outputs")))
        self.rf_id = _number(attributes.get("rf_id"), 0)
        self.scope = _number(attributes.get("scope"), 0)
        self.tid = _number(attributes.get("tid"), 0)
        self.seq_id = _number(attributes.get("seq_id"), -1)
        self.schema = str(attributes.get("op_schema", ""))
        self.children: list[Operator] = []
        self.depth = 0  # 1 directly below a thread
        self.last = self.id  # the largest id in its subtree
        self.begin: float | None = None  # in µs on the timeline
        self.duration: float | None = None

    @property
    def is_root(self) -> bool:
        return self.name in (PROCESS, THREAD)

    def subtree(self) -> list[Operator]:
        """Returns the operator and everything below it, parents first."""
        order = [self]
        for operator in order:  # the list grows in the loop
            order += operator.children
        return order

    def tensors(self, gave: bool) -> Iterator[tuple[int, str]]:
        """Returns the ids and descriptions of the tensors among the inputs, or with `gave` among the outputs."""
        for number, text in self.gave if gave else self.given:
            if number:
                yield number, text


class Tree:
    """The nodes of a file below their threads. Raises the errors of Document."""

    def __init__(self, path: str, progress: Callable[[float], None]) -> None:
        self.path = path
        self.threads: list[Operator] = []
        self.stray: list[Operator] = []  # operators without an existing parent
        nodes: dict[int, Operator] = {}
        with without_collector(), Document(path, progress) as document:
            for node in document.elements("nodes"):
                if type(node) is dict and type(node.get("id")) is int:
                    nodes[node["id"]] = Operator(node)
        self.is_one = "nodes" in document.fields
        self.count = len(nodes)
        self._link(nodes)

    def _link(self, nodes: dict[int, Operator]) -> None:
        for number in sorted(nodes):
            operator = nodes[number]
            parent = nodes.get(operator.parent)
            if operator.name == THREAD:
                self.threads.append(operator)
            elif operator.name != PROCESS:
                if parent is None or parent is operator or parent.name == PROCESS:
                    self.stray.append(operator)
                else:
                    parent.children.append(operator)
        seen = 0
        for top in (*self.threads, *self.stray):
            order = top.subtree()
            for operator in order:
                for child in operator.children:
                    child.depth = operator.depth + 1
            for operator in reversed(order):
                operator.last = max([operator.id, *(child.last for child in operator.children)])
            seen += len(order)
        self.unreachable = self.count - seen - sum(operator.name == PROCESS for operator in nodes.values())

    def add_times(self, timeline: Timeline) -> None:
        for operator in self.walk():
            event = timeline.events.get(operator.rf_id)
            if event is not None:
                operator.begin, operator.duration = event.begin, event.end - event.begin

    def walk(self) -> Iterator[Operator]:
        """Yields all operators, parents first."""
        stack = [*reversed(self.stray), *reversed(self.threads)]
        while stack:
            operator = stack.pop()
            if operator.name != THREAD:
                yield operator
            stack.extend(reversed(operator.children))


def _number(value: Any, otherwise: int) -> int:
    return value if type(value) is int else otherwise


def _attributes(entries: Any) -> dict[str, Any]:
    """Returns the attributes by name, without invalid entries."""
    found = [entry for entry in _list(entries) if type(entry) is dict]
    return {entry["name"]: entry.get("value") for entry in found if type(entry.get("name")) is str}


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _arguments(side: Any) -> Iterator[tuple[int, str]]:
    """Returns for each value its tensor's id, or 0, and a text."""
    if type(side) is not dict:
        return
    values, shapes, kinds = (_list(side.get(part)) for part in ("values", "shapes", "types"))
    for value, shape, kind in zip(values, shapes, kinds):
        yield from _argument(value, shape, str(kind))


def _argument(value: Any, shape: Any, kind: str) -> Iterator[tuple[int, str]]:
    if kind.startswith("Tensor("):
        number = value[0] if type(value) is list and value and type(value[0]) is int else 0
        yield number, describe(kind, shape)
    elif kind.startswith(("GenericList[Tensor", "Tuple[Tensor")) and type(value) is list and type(shape) is list:
        inner = kind[kind.index("[") + 1 : -1]
        kinds = inner.split("),")
        for one, size, name in zip(value, shape, kinds):
            yield from _argument(one, size, name.rstrip(")") + ")")
    else:
        text = "None" if value == "<None>" else repr(value) if type(value) is str and kind == "String" else str(value)
        yield 0, text if len(text) <= 32 else text[:31] + "…"


def describe(kind: str, shape: Any) -> str:
    """Returns `float[2,16]`."""
    name = kind[len("Tensor(") : -1].removeprefix("c10::").removesuffix(" int")
    return ("undefined" if name.startswith("nullptr") else name) + str(shape).replace(" ", "")


def shown_time(microseconds: float | None) -> str:
    """Returns how long an operator took; "" if no timeline shows it."""
    return "" if microseconds is None else duration(microseconds * 1000)
