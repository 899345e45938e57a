"""Autograd in the event tree: numbers of the functions that its engine evaluates, and gradients that are computed on
another thread than their forward operators.

If nothing on its own thread encloses an operator of the backward pass, its parent is the event that runs at that time
on the thread of its forward operator. torch has its own numbers of threads.
"""

from __future__ import annotations

from torch._C import _profiler as theirs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .tree_fields import Node, TorchOp

ENGINE = "autograd::engine::evaluate_function: "
FUNCTION, BACKWARD = theirs.RecordScope.FUNCTION, theirs.RecordScope.BACKWARD_FUNCTION


class Autograd:
    def __init__(self) -> None:
        # by thread: operators, each with the thread of its forward operator
        self._operators: dict[int, list[tuple[TorchOp, int]]] = {}
        self._forward: dict[int, int] = {}  # forward threads, by the id() of an operator's fields
        self._threads: dict[int, int] = {}  # by torch's number of the thread
        self._newest: dict[int, Node] = {}  # by thread: the newest node with a duration
        self._above: dict[int, Node] = {}  # by thread: the node of another thread that encloses its operators

    def add(self, thread: int, fields: TorchOp, args: dict[str, Any]) -> None:
        """Adds an operator. Operators come in order of time."""
        self._operators.setdefault(thread, []).append((fields, args.get("Fwd thread id", 0)))
        if args.get("Thread id"):
            self._threads[args["Thread id"]] = thread

    def finish(self) -> None:
        """Call after the last operator. Gives each evaluation of the engine the sequence number of the function inside
        it.
        """
        for operators in self._operators.values():
            for (fields, forward), (inner, inner_forward) in zip(
                operators, operators[1:] + operators[-1:], strict=True
            ):
                found = forward
                if fields.scope == FUNCTION and inner.scope == BACKWARD and fields.name.startswith(ENGINE):
                    fields.sequence_number = inner.sequence_number
                    found = inner_forward
                if found in self._threads:
                    self._forward[id(fields)] = self._threads[found]
        self._operators.clear()

    def parent_of(self, node: Node) -> Node | None:
        """Returns the parent of a node that nothing on its own thread encloses."""
        thread: int = node.start_tid
        forward = self._forward.get(id(node.extra_fields), thread)
        above = _open_at(self._newest.get(forward), node.start_time_ns) if forward != thread else None
        if above is None:
            above = _open_at(self._above.get(thread), node.start_time_ns)
        if above is None:
            self._above.pop(thread, None)
        else:
            self._above[thread] = above
        return above

    def note(self, node: Node) -> None:
        """Notes a node of the tree. Nodes come in order of time."""
        if node.end_time_ns > node.start_time_ns:
            self._newest[node.start_tid] = node


def _open_at(node: Node | None, time_ns: int) -> Node | None:
    """Returns the innermost unfinished node among a node and its ancestors on its thread."""
    while node is not None and node.end_time_ns < time_ns:
        parent = node.parent
        node = parent if parent is not None and parent.start_tid == node.start_tid else None
    return node
