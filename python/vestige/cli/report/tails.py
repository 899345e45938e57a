"""The finding `tail`: a few calls of a function, requests or tasks take much longer than most, and much of the time."""

from __future__ import annotations

from shlex import quote

from vestige.base.quantities import duration, plural
from vestige.reading.waits import CHILD, LOCK

from .findings import Finding, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige.reading.durations import Durations

    from .data import Node
    from .findings import Evidence

CALLS = 100  # with fewer calls, a hundredth is less than one call
TIMES, SHARE, FEW = 10, 0.1, 0.1
P99_NS = 5_000_000  # shorter calls are not worth a sentence
IDLE_SHARE = 0.5
LOOKED_AT, MOST_CALLS = 3, 400_000  # the most functions, and the most calls of a function, that are read again
FIRST, NEARLY_ALL = 0.2, 0.9
EVENTS = ("select", "poll", "control", "accept", "_accept", "recv", "get", "wait")  # may be waiting for work
NOUNS = {"function": "call", "async": "request", "task": "task"}


def _idles(node: Node) -> int:
    """Returns the time of a call that may wait because there is nothing to do."""
    kind = waits(node)
    is_event = kind and node.name.split(" ", 3)[2:3] and node.name.split(" ", 3)[2].rstrip(">") in EVENTS
    return node.total_ns if kind in (LOCK, CHILD) or is_event else 0


def idle_shares(evidence: Evidence) -> dict[str, float]:
    """Returns for each function the share of its time in which it may have waited for something to do."""
    places = evidence.places
    idle: dict[str, int] = {}
    total: dict[str, int] = {}
    for node, ns in zip(places.nodes, places.add_up(_idles)):
        idle[node.shown] = idle.get(node.shown, 0) + ns
        total[node.shown] = total.get(node.shown, 0) + node.total_ns
    return {shown: ns / max(total[shown], 1) for shown, ns in idle.items()}


def _warms_up(evidence: Evidence, one: Durations) -> bool:
    """Returns whether nearly all slow calls are among the first calls, for example because a cache was empty."""
    if one.count > MOST_CALLS:
        return False
    slow_ns = first_ns = 0
    for _, rows in evidence.calls_of(one.shown):
        calls = sorted(zip(rows["start_ns"], rows["duration_ns"]))
        slow = [ns if ns >= TIMES * one.p50_ns else 0 for _, ns in calls]
        slow_ns += sum(slow)
        first_ns += sum(slow[: max(int(FIRST * len(slow)), 1)])
    return 0 < NEARLY_ALL * slow_ns <= first_ns


def tail(evidence: Evidence) -> Finding | None:
    """Fires if a hundredth of the calls takes ten times the median or longer, and these calls take a tenth of the time
    of their threads, requests or tasks. Does not fire for functions that mostly wait for something to do, nor if the
    first calls are the slow ones.
    """
    idle = idle_shares(evidence)
    found: list[Durations] = []
    for one in evidence.data.durations.values():
        slow_ns = one.slow_ns - evidence.busy_ns  # any call becomes slow while its thread waits for a processor
        if one.count < CALLS or slow_ns < SHARE * one.whole_ns or one.shown in evidence.explained:
            continue
        if one.p99_ns < max(TIMES * one.p50_ns, P99_NS) or not 2 <= one.slow_count <= FEW * one.count or not one.file:
            continue
        if one.kind == "function" and idle.get(one.shown, 0) >= IDLE_SHARE:
            continue
        found.append(one)
    found.sort(key=lambda one: -one.slow_ns)
    best = next((one for one in found[:LOOKED_AT] if one.kind != "function" or not _warms_up(evidence, one)), None)
    if best is None:
        return None
    noun = NOUNS[best.kind]
    whose = "their threads" if best.kind == "function" else f"all {noun}s"
    share = min(best.slow_ns / best.whole_ns, 1)
    return Finding(
        "tail",
        f"{best.shown}: half of {plural(best.count, noun)} took less than {duration(best.p50_ns)}, but 1% took "
        f"{duration(best.p99_ns)} or longer; {best.slow_count:,} took ten times the median or longer, "
        f"{duration(best.slow_ns)} in all, {share:.0%} of the time of {whose}.",
        where={"function": best.shown, "file": best.file, "line": best.line},
        numbers={
            "calls": best.count,
            "p50_ns": best.p50_ns,
            "p99_ns": best.p99_ns,
            "max_ns": best.max_ns,
            "slow_calls": best.slow_count,
            "slow_ns": best.slow_ns,
            "whole_ns": best.whole_ns,
        },
        look=f"report --slow {quote(best.shown)}",
        ns=min(best.slow_ns, evidence.passed_ns) * share,
    )
