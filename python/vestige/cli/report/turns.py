"""The cause `GIL` where waits for the GIL were not recorded: several threads computed at the same time."""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.libraries import OWN

from .findings import Finding, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .data import Node
    from .findings import Evidence

MS = 1_000_000
SHARE, TOGETHER, LEAST_NS = 0.1, 1.4, 100 * MS
SHORT_NS = MS  # a longer call in C may have given the GIL to others meanwhile


def turns(evidence: Evidence) -> Finding | None:
    """Fires if at least two threads of a process did work in Python, each for a tenth of the time that they were there,
    and together for 1.4 times the time from the first of their calls to the last: then they took turns. Only where
    waits for the GIL were not recorded.
    """
    if any(thread.gil_ns for thread in evidence.data.threads) or _is_free_threaded(evidence):
        return None
    for facts in evidence.facts:
        busy = []
        for thread in evidence.data.threads:
            tree = evidence.data.trees.get((facts["pid"], thread.thread)) if thread.pid == facts["pid"] else None
            if tree is None:
                continue
            ns = _work(tree)
            if ns and ns >= SHARE * (thread.last_ns - thread.first_ns):
                busy.append((ns, thread, tree))
        if len(busy) < 2:
            continue
        whole = sum(ns for ns, _, _ in busy)
        lasted = max(one.last_ns for _, one, _ in busy) - min(one.first_ns for _, one, _ in busy)
        if whole >= max(TOGETHER * lasted, LEAST_NS):
            return _finding(evidence, [tree for _, _, tree in busy], whole, max(lasted, 1))
    return None


def _is_free_threaded(evidence: Evidence) -> bool:
    return str(evidence.metadata("vestige.stdlib") or "").endswith("t")


def _work(root: Node) -> int:
    """The time in functions of Python, and in short calls of C."""
    total, work = 0, list(root.children.values())
    while work:
        node = work.pop()
        work.extend(node.children.values())
        is_short = node.kind == NATIVE and not node.waited_ns and node.self_ns <= SHORT_NS * max(node.calls, 1)
        if is_short or (node.kind == PYTHON and not node.waited_ns):
            total += node.self_ns
    return total


def _busiest(trees: Sequence[Node]) -> tuple[Node | None, Node | None]:
    """Returns the function of the user's own code in which threads worked most, in the function itself and in the
    functions of libraries that it calls, else the Python function; and the function that it calls for most of this.
    """
    work: dict[str, list[int]] = {}
    nodes: dict[str, Node] = {}
    called: dict[str, dict[str, tuple[int, Node]]] = {}
    todo: list[tuple[Node, Node | None, Node | None]] = [
        (child, None, None) for tree in trees for child in tree.children.values()
    ]
    while todo:
        node, around, through = todo.pop()
        if node.kind == PYTHON and (around is None or node.owner == OWN or around.owner != OWN):
            around, through = node, None
        elif through is None:
            through = node
        if around is not None and not node.waited_ns:
            nodes[around.shown] = around
            one = work.setdefault(around.shown, [0, 0])
            one[around is not node] += node.self_ns
            if through is not None:
                ns = called.setdefault(around.shown, {}).get(through.shown, (0, through))[0]
                called[around.shown][through.shown] = (ns + node.self_ns, through)
        todo.extend((child, around, through) for child in node.children.values())
    own = [shown for shown, node in nodes.items() if node.owner == OWN]
    shown = max(own or nodes, key=lambda each: sum(work[each]), default="")
    if not shown:
        return None, None
    most, leaf = max(called.get(shown, {}).values(), key=lambda one: one[0], default=(0, None))
    return nodes[shown], leaf if most > work[shown][0] else None


def _finding(evidence: Evidence, trees: Sequence[Node], whole: int, lasted: int) -> Finding:
    function, called = _busiest(trees)
    where: dict[str, object] = {}
    most = ""
    if function is not None:
        where = {**place(function), "calls": called.shown if called is not None else ""}
        most = f", most in {function.shown}"
        if called is None:
            where["computes"] = function.shown
            where["called_by"] = evidence.caller_of(function.shown)
            most += f", called by {where['called_by']}" if where["called_by"] else ""
    return Finding(
        "GIL",
        f"{plural(len(trees), 'thread')} computed at the same time{most}, and took turns on the GIL: {duration(whole)} "
        f"in {duration(lasted)}. `vestige run --sched` records who held it.",
        where=where,
        numbers={"threads": len(trees), "worked_ns": whole, "passed_ns": lasted},
        look="report --threads",
        ns=lasted,
    )
