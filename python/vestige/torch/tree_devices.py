"""Activities of devices in torch's tree of events. As in torch, a call of a runtime is inside the operator that made
it, and an activity is inside the call that launched it. Loaded only if torch is.
"""

from __future__ import annotations

from torch._C import _profiler as theirs

from .device_fields import is_call, raw_name, times
from .tree_fields import Kineto, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .device_events import Devices


def add_device_nodes(devices: Devices, by_row: list[Node], roots: list[Node], nodes: list[Node]) -> None:
    """Adds nodes for devices. `by_row` has the nodes of the threads' rows."""
    made = {event._row: _node(devices, event._row) for event in devices.events if event._row < devices.rows.count}
    for row, node in made.items():
        node.parent = above = _above(devices, row, made, by_row)
        (roots if above is None else above.children).append(node)
    parents = {id(node.parent): node.parent for node in made.values() if node.parent is not None}
    for children in (roots, *(parent.children for parent in parents.values())):
        children.sort(key=lambda node: node.start_time_ns)
    nodes.extend(made.values())
    nodes.sort(key=lambda node: node.start_time_ns)


def _node(devices: Devices, row: int) -> Node:
    start, end = times(devices, row)
    event = devices.event(row)
    made: Node = Node.make(
        name=raw_name(devices, row),
        overload_name="",
        tag=theirs._EventType.Kineto,
        extra_fields=Kineto.make(),
        parent=None,
        children=[],
        start_time_ns=start,
        end_time_ns=end,
        start_tid=event.thread,
        correlation_id=event.id,
    )
    return made


def _above(devices: Devices, row: int, made: dict[int, Node], by_row: list[Node]) -> Node | None:
    launch = devices.rows.launch[row]
    if launch and launch - 1 in made:
        return made[launch - 1]
    serial = devices.rows.op_span[row]
    above = devices.store.row_of(serial) if serial else None
    if above is None and is_call(devices, row):
        above, call = devices.parent_of(row)
        if call >= 0:
            return made[call]
    node = by_row[above] if above is not None and above >= 0 else None
    while node is not None and node.extra_fields is None:  # a call that is not shown
        node = node.parent
    return node
