"""The cause `garbage collection`: how long the collector took, and how much it freed."""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import GC

from .findings import Finding, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .data import Collections, Node
    from .findings import Evidence

MS = 1_000_000
GC_SHARE, GC_NS = 0.1, 30 * MS
LONG_NS = 100 * MS  # a collection that takes this long is reported, whatever its share


class Begun:
    """The garbage collections that began in one function."""

    def __init__(self, function: Node, called: str) -> None:
        self.function = function
        self.called = called  # what it called when they began
        self.count = self.ns = 0


def _begun(evidence: Evidence) -> list[Begun]:
    """Returns the collections by function, those with the most time first. Leaves out collections in imports if a
    finding is about imports.
    """
    places = evidence.places
    found: dict[str, Begun] = {}
    for at, node in enumerate(places.nodes):
        if node.kind == GC and not (places.importing[at] and evidence.tells_imports):
            around = places.caller(at)
            one = found.setdefault(around.shown, Begun(around, places.called(at)))
            one.count += node.calls
            one.ns += node.total_ns
    return sorted(found.values(), key=lambda one: -one.ns)


def _freed(sums: Collections) -> str:
    """Returns `freed nothing` or similar, with the number of examined objects if it was recorded."""
    examined = f" of {sums.examined:,} objects examined" if sums.examined else ""
    if not sums.collected:
        return f"freed nothing{examined}"
    return f"freed {plural(sums.collected, 'object')}{examined}"


def collections(evidence: Evidence) -> Finding | None:
    """Fires if collections took a tenth of the time, or one collection took at least 100 ms."""
    data, begun = evidence.data, _begun(evidence)
    gc_ns = sum(one.ns for one in begun)
    longest = max((sums.longest_ns for sums in data.generations.values()), default=0)
    is_long = longest >= LONG_NS and gc_ns >= LONG_NS and evidence.alone(longest) >= LONG_NS
    is_much = gc_ns >= GC_SHARE * evidence.rest_ns and evidence.undisturbed(gc_ns) >= GC_NS
    if not begun or not (is_long or is_much):
        return None
    worst = max(data.generations.values(), key=lambda sums: sums.total_ns)
    of = f" of generation {worst.generation}" if worst.generation >= 0 else ""
    most = begun[0]
    text = (
        f"{plural(worst.count, 'collection')}{of} took {duration(worst.total_ns)} ({evidence.share(worst.total_ns)}) "
        f"and {_freed(worst)}; the longest took {duration(longest)}; {most.count:,} began in {most.function.shown}, "
        f"{duration(most.ns)}."
    )
    return Finding(
        "garbage collection",
        text,
        where={**place(most.function), "calls": most.called},
        numbers={
            "collections": sum(one.count for one in begun),
            "gc_ns": gc_ns,
            "collected": sum(sums.collected for sums in data.generations.values()),
            "examined": sum(sums.examined for sums in data.generations.values()),
            "longest_ns": longest,
            "generation": worst.generation,
            "began_here": most.count,
            "began_here_ns": most.ns,
            "processor_wait_ns": evidence.busy_ns,
            "passed_ns": evidence.passed_ns,
        },
        look="report --gc",
        ns=gc_ns,
    )
