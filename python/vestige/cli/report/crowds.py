"""The cause `oversubscribed`: more processes compute than there are processors, or more threads need a thing than there
are such things, for example connections of a pool.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import NATIVE
from vestige.reading.labels import plain_name

from .findings import Finding, heaviest, place, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .data import Node
    from .findings import Evidence


def oversubscribed(evidence: Evidence) -> Finding | None:
    """Fires if there are more workers than processors, or than things that the workers share."""
    return _processors(evidence) or _shared(evidence)


TAKES = ("Semaphore.acquire", "BoundedSemaphore.acquire", "Queue.get", "LifoQueue.get")
GIVES = ("Semaphore.release", "BoundedSemaphore.release", "Semaphore.__exit__", "Queue.put")
SHARED_WAIT, SHARED_SHARE, ALIKE = 0.5, 1.0, 0.1


def _shared(evidence: Evidence) -> Finding | None:
    """Fires if threads waited half of the time of a function for a thing that the function gives back, such as a
    connection of a pool, and together at least as long as the program ran. A worker that waits for its next job gives
    nothing back.
    """
    places = evidence.places
    waited = places.add_up(lambda node: node.total_ns if waits(node) else 0)
    sums: dict[str, list[int]] = {}
    nodes: dict[str, tuple[Node, Node]] = {}
    around_calls: dict[str, int] = {}
    given: dict[str, dict[str, int]] = {}
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        name = plain_name(node.name)
        if parent < 0 or node.kind == NATIVE or name not in (*TAKES, *GIVES):
            continue
        # A generator takes in one step and gives back in another, which are different places.
        around = places.nodes[parent]
        if name in GIVES:
            gives = given.setdefault(around.shown, {})
            gives[name] = gives.get(name, 0) + node.calls
            continue
        one = sums.setdefault(around.shown, [0, 0, 0])
        one[0] += waited[at]
        one[1] += around.total_ns
        one[2] += node.calls
        around_calls[around.shown] = around_calls.get(around.shown, 0) + around.calls
        nodes[around.shown] = (around, node)
    for each in list(sums):
        count = sums[each][2]
        gives_back = max(given.get(each, {}).values(), default=0)
        if abs(gives_back - count) > ALIKE * count or around_calls[each] < count:
            del sums[each]
    shown = max(sums, key=lambda each: sums[each][0], default="")
    if not shown:
        return None
    ns, whole, count = sums[shown]
    if ns < SHARED_WAIT * whole or ns < SHARED_SHARE * evidence.rest_ns:
        return None
    around, node = nodes[shown]
    evidence.explained.add(shown)
    return Finding(
        "oversubscribed",
        f"Threads waited {duration(ns)} in {shown}, {ns / whole:.0%} of its time, for something of which there are too "
        f"few: they take it by {plain_name(node.name)} and give it back, {plural(count, 'time')}.",
        where={**place(around), "calls": node.shown},
        numbers={"wait_ns": ns, "total_ns": whole, "calls": count, "passed_ns": evidence.passed_ns},
        look="report --tree",
        ns=min(ns, evidence.passed_ns),
    )


CROWD, WORKED = 1.5, 0.5


def _processors(evidence: Evidence) -> Finding | None:
    """Fires if there are at least twice as many computing processes as processors, and together they would have needed
    one and a half times the processors that there are.
    """
    processors = evidence.metadata("vestige.processors") if evidence.data.traces > 1 else None
    if not processors or evidence.data.traces < 2 * processors:
        return None
    work: dict[int, int] = {}
    for thread in evidence.data.threads:
        work[thread.pid] = work.get(thread.pid, 0) + max(thread.self_ns - thread.waiting_ns, 0)
    wall_ns = max(each["end_ns"] for each in evidence.facts) - min(each["start_ns"] for each in evidence.facts)
    busy = {each["pid"]: work.get(each["pid"], 0) for each in evidence.facts}
    least = {each["pid"]: WORKED * (each["end_ns"] - each["start_ns"]) for each in evidence.facts}
    workers = [pid for pid in busy if busy[pid] >= least[pid]]
    whole = sum(busy[pid] for pid in workers)
    if len(workers) < 2 * processors or whole < CROWD * processors * wall_ns:
        return None
    tops = [thread for thread in evidence.data.threads if thread.pid in workers and thread.top_shown]
    top = max(tops, key=lambda thread: thread.self_ns, default=None)
    starter, called = _starter(evidence)
    by = f" for {starter.shown}" if starter is not None else ""
    return Finding(
        "oversubscribed",
        f"{len(workers)} processes computed at the same time on {plural(processors, 'processor')}{by}, most in "
        f"{top.top_shown if top else '?'}: each had a processor for about {processors / len(workers):.0%} of the time.",
        where={**(place(starter) if starter is not None else {}), "calls": called},
        numbers={"processes": len(workers), "processors": processors, "worked_ns": whole, "wall_ns": wall_ns},
        look="report --threads",
        ns=whole / len(workers),
    )


def _starter(evidence: Evidence) -> tuple[Node | None, str]:
    """Returns the function of the user's own in which the first process spent most of its time, and what it called."""
    pid = evidence.facts[0]["pid"]
    trees = [tree for (each, _), tree in evidence.data.trees.items() if each == pid]
    tree = max(trees, key=lambda tree: tree.total_ns, default=None)
    function = heaviest(tree, tree.total_ns)[0] if tree is not None else None
    called = max(function.children.values(), key=lambda node: node.total_ns, default=None) if function else None
    return function, called.shown if called is not None else ""
