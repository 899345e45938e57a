"""The cause `waiting`, where the program waits for child processes that are not recorded."""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.awaits import CHILD as AWAITS_CHILD
from vestige.reading.kinds import NATIVE
from vestige.reading.labels import plain_name
from vestige.reading.waits import CHILD, IO, SLEEP

from .findings import Finding, place, waits
from .requests import WAITS_FOR_EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .data import Node
    from .findings import Evidence

MS = 1_000_000
SHARE, LEAST_NS, POLLS = 0.5, 100 * MS, 3
# Functions of the module subprocess that return when a child has ended, or has written all that it writes.
UNTIL_END = ("Popen.communicate", "Popen.wait", "Popen._wait")
POLL = "Popen.poll"
AWAITED = {
    f"[await] {name}" for name in (AWAITS_CHILD, "Process.wait", "Process.communicate", "BaseSubprocessTransport._wait")
}


class Waited:
    """How often and how long a function waited for children."""

    def __init__(self, caller: Node, name: str, called: str) -> None:
        self.caller, self.name = caller, name
        self.called = called  # the function through which it waited
        self.calls = self.ns = 0
        self.unknown_ns = 0  # the part that is no known wait
        self.in_thread = False  # whether a thread waited that the program started


def children(evidence: Evidence) -> Finding | None:
    """Fires if a function waited for children for half of the time without imports, while no thread worked for half of
    the time. Where
    children are recorded, they are part of the time.
    """
    if evidence.data.traces > 1:
        return None
    found = _found(evidence)
    if _serves(evidence):
        found = {key: one for key, one in found.items() if not one.in_thread}
    waited = max(found.values(), key=lambda one: one.ns, default=None)
    imports_ns = evidence.places.imports_ns()
    rest_ns = max(evidence.passed_ns - imports_ns, 1)
    if waited is None or waited.ns < max(SHARE * rest_ns, LEAST_NS):
        return None
    if evidence.worked_ns - imports_ns - waited.unknown_ns > SHARE * rest_ns:
        return None
    evidence.explained.add(waited.caller.shown)
    return Finding(
        "waiting",
        f"{waited.caller.shown} waited {duration(waited.ns)} ({evidence.share(waited.ns)}) for child processes in "
        f"{waited.name}, {plural(waited.calls, 'call')}.",
        where={**place(waited.caller), "calls": waited.called, "waits_in": waited.name},
        numbers={"wait_ns": waited.ns, "calls": waited.calls, "passed_ns": evidence.passed_ns},
        look="report --tree",
        ns=waited.ns,
    )


def _serves(evidence: Evidence) -> bool:
    """Returns whether the first thread waited for events for half of the time: a server, which a thread may start a
    child for.
    """
    places = evidence.places
    events = (
        ns
        for node, ns, started in zip(places.nodes, places.waited, places.started)
        if not started and node.waits_for == IO and plain_name(node.name) in WAITS_FOR_EVENTS
    )
    return sum(events) >= SHARE * (evidence.passed_ns - places.imports_ns())


def _found(evidence: Evidence) -> dict[tuple[str, str], Waited]:
    places = evidence.places
    known = places.add_up(lambda node: node.total_ns if waits(node) else 0)
    inside: list[bool] = []
    found: dict[tuple[str, str], Waited] = {}
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        around = parent >= 0 and inside[parent]
        is_one = _waits_for_child(node, places.nodes[parent] if parent >= 0 else None)
        inside.append(is_one or around)
        if not is_one or around or places.importing[at]:
            continue
        caller = places.caller(at)
        name = plain_name(node.name) if node.kind == NATIVE else node.name
        one = found.setdefault((caller.shown, name), Waited(caller, name, places.called(at)))
        is_await = not node.kind
        one.in_thread |= places.started[at] and not is_await
        one.calls += node.waits if is_await else node.calls
        one.ns += node.awaiting_ns if is_await else node.total_ns
        one.unknown_ns += 0 if is_await else max(node.total_ns - known[at], 0)
    return found


def _waits_for_child(node: Node, parent: Node | None) -> bool:
    if node.kind == NATIVE:
        if waits(node) == SLEEP and parent is not None:  # looks again and again
            return any(each.name == POLL and each.calls >= POLLS for each in parent.children.values())
        return waits(node) == CHILD or node.name == "<built-in function system>"
    return (node.library == "subprocess" and node.name in UNTIL_END) or node.name in AWAITED
