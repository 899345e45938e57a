"""The cause `GIL` where waits for the GIL were not recorded: several threads computed at the same time."""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import NATIVE, PYTHON

from .findings import Finding, heaviest, place

TYPE_CHECKING = False
if TYPE_CHECKING:
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
            return _finding(evidence, max(busy, key=lambda one: one[0])[2], len(busy), whole, max(lasted, 1))
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


def _finding(evidence: Evidence, tree: Node, threads: int, whole: int, lasted: int) -> Finding:
    function, _ = heaviest(tree, tree.total_ns)
    where: dict[str, object] = {}
    most = ""
    if function is not None:
        called = max(function.children.values(), key=lambda node: node.total_ns, default=None)
        where = {**place(function), "calls": called.shown if called is not None else ""}
        most = f", most in {function.shown}"
        if called is None:
            where["called_by"] = evidence.caller_of(function.shown)
            most += f", called by {where['called_by']}" if where["called_by"] else ""
    return Finding(
        "GIL",
        f"{plural(threads, 'thread')} computed at the same time{most}, and took turns on the GIL: {duration(whole)} in "
        f"{duration(lasted)}. `vestige run --sched` records who held it.",
        where=where,
        numbers={"threads": threads, "worked_ns": whole, "passed_ns": lasted},
        look="report --threads",
        ns=lasted,
    )
