"""The cause `cache`: a cache that is too small, so that values are made again and again."""

from __future__ import annotations

from vestige.base.quantities import duration
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.labels import plain_name

from .findings import Finding, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .data import Node
    from .findings import Evidence

SHARE, MADE, FOUND = 0.2, 100, 0.3
PATTERNS, PATTERNS_ROOM = 513, 512  # more patterns than the module re keeps; how many it keeps


def cache(evidence: Evidence) -> Finding | None:
    """Fires if the values of a cache were made at least 100 times, which took a fifth of the time, and fewer than three
    in ten requests found their value. The cache is an lru_cache, which counts this itself; a dictionary that the
    program clears, or from which it removes entries; or the patterns that the module re keeps.
    """
    return _of_functools(evidence) or _of_re(evidence) or _of_dictionary(evidence)


def _of_functools(evidence: Evidence) -> Finding | None:
    nodes: dict[tuple[str, int], list[Node]] = {}
    for node in evidence.places.nodes:
        if node.kind == PYTHON:
            nodes.setdefault((node.file, node.line), []).append(node)
    best = None
    for file, line, _, room, hits, misses in evidence.metadata("vestige.caches") or ():
        those = nodes.get((file, line), ())
        ns = sum(node.total_ns for node in those)
        if not those or ns < SHARE * evidence.rest_ns or misses < MADE or hits >= FOUND * (hits + misses):
            continue
        if best is None or ns > best[1]:
            caller = evidence.caller_of(those[0].shown)
            found = (
                f"{those[0].shown}, called by {caller}, has an lru_cache with room for {room:,}, which had the value "
                f"{hits:,} times and lacked it {misses:,} times: {duration(ns)} ({evidence.share(ns)}) to make "
                "values again."
            )
            numbers = {"room": room, "found": hits, "made": misses, "total_ns": ns, "passed_ns": evidence.passed_ns}
            finding = Finding(
                "cache",
                found,
                where={**place(those[0]), "called_by": caller},
                numbers=numbers,
                look="report --sort calls",
                ns=ns,
            )
            best = (finding, ns)
    return best[0] if best is not None else None


def _of_re(evidence: Evidence) -> Finding | None:
    places = evidence.places
    sums: dict[str, list[int]] = {}
    callers: dict[str, tuple[Node, str]] = {}
    for at, node in enumerate(places.nodes):
        if node.name == "compile" and node.file.endswith("/re/_compiler.py") and not places.importing[at]:
            caller = places.caller(at)
            callers[caller.shown] = caller, places.called(at)
            one = sums.setdefault(caller.shown, [0, 0])
            one[0] += node.calls
            one[1] += node.total_ns
    if not sums:
        return None
    shown = max(sums, key=lambda each: sums[each][1])
    count, ns = sums[shown]
    if count < PATTERNS or ns < SHARE * evidence.rest_ns:
        return None
    return Finding(
        "cache",
        f"{shown} had {count:,} patterns compiled, which are more than the {PATTERNS_ROOM} that re remembers: "
        f"{duration(ns)} ({evidence.share(ns)}).",
        where={**place(callers[shown][0]), "calls": callers[shown][1]},
        numbers={"made": count, "room": PATTERNS_ROOM, "total_ns": ns, "passed_ns": evidence.passed_ns},
        look="report --tree",
        ns=ns,
    )


def _of_dictionary(evidence: Evidence) -> Finding | None:
    """Finds a function that calls another function to make values, and removes entries from a dictionary."""
    best: tuple[Node, Node, Node] | None = None
    for around, importing in zip(evidence.places.nodes, evidence.places.importing):
        if around.kind != PYTHON or importing or around.calls < MADE:
            continue
        taken = [node for node in around.children.values() if _takes_out(node)]
        made = max(
            (node for node in around.children.values() if node.kind == PYTHON),
            key=lambda node: node.total_ns,
            default=None,
        )
        if not taken or made is None or not MADE <= made.calls <= around.calls:
            continue
        if made.calls < (1 - FOUND) * around.calls or made.total_ns < SHARE * evidence.rest_ns:
            continue
        node = max(taken, key=lambda node: node.calls)
        is_all = plain_name(node.name) == "clear"
        # The first values need no room, so the program removes fewer values than it makes.
        if not (3 <= node.calls <= made.calls / 2 if is_all else made.calls / 2 <= node.calls < made.calls):
            continue
        if best is None or made.total_ns > best[1].total_ns:
            best = (around, made, node)
    if best is None:
        return None
    around, made, node = best
    return Finding(
        "cache",
        f"{around.shown} is a cache without room: for {around.calls:,} values it called {made.shown} {made.calls:,} "
        f"times, {duration(made.total_ns)} ({evidence.share(made.total_ns)}), and it took others out by "
        f"{plain_name(node.name)}, {node.calls:,} times.",
        where={**place(around), "calls": made.shown},
        numbers={
            "asked": around.calls,
            "made": made.calls,
            "taken_out": node.calls,
            "total_ns": made.total_ns,
            "passed_ns": evidence.passed_ns,
        },
        look="report --tree",
        ns=made.total_ns,
    )


def _takes_out(node: Node) -> bool:
    name = plain_name(node.name)
    is_dictionary = " dict object" in node.name or "OrderedDict object" in node.name
    return node.kind == NATIVE and is_dictionary and name in ("popitem", "clear", "pop")
