"""The cause `growing`: in each round, a loop copies or searches everything that it has collected, so rounds take longer
and longer.

There are two kinds of evidence. Calls that take longer and longer are measured. If an operator copies
(`rows = rows + [row]`), no call is recorded; then the evidence is that the function's own time is much of the program's
time and that its source has such a statement.
"""

from __future__ import annotations

from itertools import pairwise

from vestige.base.quantities import duration
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.labels import plain_name
from vestige.reading.libraries import OWN

from .findings import Finding, place, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .data import Node
    from .findings import Evidence

MS = 1_000_000
CALLS, MOST_CALLS, SHARE, LEAST_NS = 500, 400_000, 0.25, 50 * MS
PARTS, GROWTH, STEADY, JUMP = 8, 5, 0.7, 0.5
# Functions whose time depends on the size of a container that exists for long; and functions whose arguments may be
# made for each call, which count where the source says that their caller changes the container.
WHOLE = {
    "insert", "pop", "remove", "index", "copy", "deepcopy", "dumps", "dump", "append", "concatenate",
}  # fmt: skip
OF_ARGUMENTS = {"min", "max", "sum", "sorted", "any", "all", "join"}


def grows(times: Sequence[int]) -> tuple[int, int] | None:
    """Divides calls into eighths by their order, and returns the means of the first and the last eighth, if the means
    grow steadily, without a jump, and the last is five times the first; else None.
    """
    if len(times) < CALLS:
        return None
    size = len(times) // PARTS
    # Leave out the longest calls of each eighth: these may have waited for a processor.
    least = size - size // 20
    means = [sum(sorted(times[at * size : (at + 1) * size])[:least]) / least for at in range(PARTS)]
    if means[-1] < GROWTH * max(means[0], 1):
        return None
    steady = all(later >= STEADY * max(means[: at + 1]) for at, later in enumerate(means[1:]))
    jumps = max(later - earlier for earlier, later in pairwise(means)) > JUMP * (means[-1] - means[0])
    return (int(means[0]), int(means[-1])) if steady and not jumps else None


def growing(evidence: Evidence) -> Finding | None:
    """Fires if at least 500 calls took a quarter of the time and longer and longer, see grows(); or if a function's own
    time is two fifths of the time and it has a loop that copies.
    """
    return _calls_that_grow(evidence) or _sum_of_lists(evidence) or _loop_that_copies(evidence)


class Candidate:
    """Calls of one function from one caller."""

    def __init__(self, node: Node, caller: Node) -> None:
        self.node, self.caller = node, caller
        self.calls = self.ns = 0


def _calls_that_grow(evidence: Evidence) -> Finding | None:
    places = evidence.places
    found: dict[tuple[str, str], Candidate] = {}
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        if node.kind not in (NATIVE, PYTHON) or waits(node) or places.importing[at] or parent < 0:
            continue
        is_own = node.owner == OWN and node.kind == PYTHON
        around = places.nodes[parent]
        name = plain_name(node.name).rpartition(".")[2]
        if not is_own and (around.owner != OWN or name not in WHOLE | OF_ARGUMENTS):
            continue
        one = found.setdefault((node.shown, around.shown), Candidate(node, around))
        one.calls += node.calls
        one.ns += node.self_ns if is_own else node.total_ns
    ranked = sorted(found.values(), key=lambda one: -one.ns)
    for one in ranked[:3]:
        if not CALLS <= one.calls <= MOST_CALLS or one.ns < max(SHARE * evidence.rest_ns, LEAST_NS):
            continue
        is_own = one.node.kind == PYTHON and one.node.owner == OWN
        if is_own and _has_loop(evidence, one.node):
            continue  # its arguments may have become larger
        name = plain_name(one.node.name)
        if name in OF_ARGUMENTS and not is_own and not _changes_argument(evidence, one.caller, name):
            continue
        means = _growth(evidence, one.node, "self_ns" if is_own else "duration_ns")
        if means is not None:
            return _finding_of_calls(evidence, one, means)
    return None


def _growth(evidence: Evidence, node: Node, column: str) -> tuple[int, int] | None:
    for _, rows in evidence.calls_of(node.shown):
        times: dict[int, list[tuple[int, int]]] = {}
        for parent, start, ns in zip(rows["parent"], rows["start_ns"], rows[column]):
            times.setdefault(parent or 0, []).append((start, ns))
        if len(times) * CALLS > len(rows["parent"]):  # many calls of the caller made these calls
            times = {0: [one for part in times.values() for one in part]}
        longest = max(times.values(), key=len)
        in_order = [ns for _, ns in sorted(longest)]
        means = grows(in_order)
        if means is None and node.kind == NATIVE:  # a call that removes items makes its container smaller
            means = grows(in_order[::-1])
            means = means[::-1] if means is not None else None
        if means is not None:
            return means
    return None


def _finding_of_calls(evidence: Evidence, one: Candidate, means: tuple[int, int]) -> Finding:
    name = plain_name(one.node.name) if one.node.kind == NATIVE else one.node.shown
    return Finding(
        "growing",
        f"Calls of {name} by {one.caller.shown} take longer the more there is, {duration(means[0])} at first and "
        f"{duration(means[1])} at the end: {one.calls:,} calls took {duration(one.ns)} ({evidence.share(one.ns)}).",
        where={**place(one.caller), "calls": one.node.shown},
        numbers={
            "calls": one.calls,
            "total_ns": one.ns,
            "first_ns": means[0],
            "last_ns": means[1],
            "passed_ns": evidence.passed_ns,
        },
        look="report --tree",
        ns=one.ns,
    )


# ---- by the source --------------------------------------------------------------

COPY_SHARE, COPY_NS = 0.4, 100 * MS


def _has_loop(evidence: Evidence, node: Node) -> bool:
    from .source import code_of, has_loop

    code = code_of(evidence, node)
    return code is None or has_loop(code)


def _changes_argument(evidence: Evidence, caller: Node, name: str) -> bool:
    from .source import changes_argument, code_of

    code = code_of(evidence, caller) if caller.kind == PYTHON else None
    return code is not None and changes_argument(code, name)


def _sum_of_lists(evidence: Evidence) -> Finding | None:
    """Finds a call sum(lists, []), which copies the list that it has so far for each of the lists."""
    places = evidence.places
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        around = places.nodes[parent] if parent >= 0 else None
        if around is None or around.kind != PYTHON or around.owner != OWN or plain_name(node.name) != "sum":
            continue
        ns = node.self_ns
        if node.kind != NATIVE or ns < max(COPY_SHARE * evidence.rest_ns, COPY_NS):
            continue
        from .source import code_of, line_of_sum

        code = code_of(evidence, around)
        line = line_of_sum(code) if code is not None else 0
        if line:
            return Finding(
                "growing",
                f"{around.shown} adds up lists by sum(), {duration(ns)} ({evidence.share(ns)}): it copies all that it "
                "has so far for each of them.",
                where={**place(around), "calls": node.shown, "copies_at": line},
                numbers={"calls": node.calls, "total_ns": ns, "passed_ns": evidence.passed_ns},
                look="report --tree",
                ns=ns,
            )
    return None


def _loop_that_copies(evidence: Evidence) -> Finding | None:
    own: dict[str, int] = {}
    nodes: dict[str, Node] = {}
    for node, importing in zip(evidence.places.nodes, evidence.places.importing):
        if node.kind == PYTHON and node.owner == OWN and not importing:
            own[node.shown] = own.get(node.shown, 0) + node.self_ns
            nodes[node.shown] = node
    shown = max(own, key=lambda each: own[each], default="")
    if not shown or own[shown] < max(COPY_SHARE * evidence.rest_ns, COPY_NS):
        return None
    from .source import code_of, copies

    code = code_of(evidence, nodes[shown])
    found = copies(code) if code is not None else None
    if found is None:
        return None
    line, text = found
    node, ns = nodes[shown], own[shown]
    return Finding(
        "growing",
        f"{shown} took {duration(ns)} by itself ({evidence.share(ns)}): its loop copies or searches all that it has so "
        f"far in each round, {node.file.rpartition('/')[2]}:{line}: {text}",
        where={**place(node), "copies_at": line},
        numbers={"self_ns": ns, "passed_ns": evidence.passed_ns},
        look="report --sort self",
        ns=ns,
    )
