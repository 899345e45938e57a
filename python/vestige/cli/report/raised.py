"""Two causes that exceptions show: functions that raise thousands of exceptions, and functions that sleep and try
again.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.labels import plain_name
from vestige.reading.libraries import OWN
from vestige.reading.waits import SLEEP

from .data import shown_name
from .findings import Finding, place, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige._core import Function

    from .data import Node
    from .findings import Evidence, Places

MS = 1_000_000
ENDS = ("__next__", "__anext__")  # iterators end by an exception
ENDS_IN_C = (*ENDS, "next", "anext", "send", "throw", "asend", "athrow")


class Caught:
    """The exceptions that left calls of one function and were caught by its caller."""

    def __init__(self, caller: Node, node: Node) -> None:
        self.caller, self.node = caller, node
        self.count = self.ns = 0

    def add(self, node: Node) -> None:
        self.count += node.raised
        self.ns += node.total_ns * node.raised // max(node.calls, node.raised)


def caught_in(places: Places) -> dict[tuple[str, str], Caught]:
    """Returns the exceptions by the caller and the function that they left."""
    found: dict[tuple[str, str], Caught] = {}
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        if not node.raised or parent < 0 or places.importing[at]:
            continue
        if plain_name(node.name).rpartition(".")[2] in (ENDS_IN_C if node.kind == NATIVE else ENDS):
            continue
        around = places.nodes[parent]
        if 2 * around.raised > node.raised:  # the exceptions left the caller, too
            continue
        if OWN not in (around.owner, node.owner) or (node.kind == NATIVE and around.owner != OWN):
            continue  # the exceptions stay inside a library
        key = (around.shown, node.shown)
        found.setdefault(key, Caught(around, node)).add(node)
    return found


STORM, STORM_SHARE, STORM_EACH_NS = 5_000, 0.1, 1_000


def exceptions(evidence: Evidence) -> Finding | None:
    """Fires if at least 5,000 exceptions were raised in one place (if recorded), or left one function,
    and the failed calls, or raising and catching at about 1 µs each, took a tenth of the time.
    """
    return _by_place(evidence) or _by_function(evidence) or _by_count(evidence)


def _own_ns(evidence: Evidence) -> int:
    """Returns the time that passed without waits for a processor, because the cost of an exception does not include
    such waits.
    """
    return max(evidence.passed_ns - evidence.busy_ns, 0)


def _by_place(evidence: Evidence) -> Finding | None:
    """Looks at exceptions that were recorded (--exceptions), and raised or caught in the user's own code."""
    if not evidence.metadata("vestige.exceptions"):
        return None
    own = {node.shown for node in evidence.places.nodes if node.owner == OWN and node.kind != NATIVE}
    counts: dict[tuple[Function, str, str], int] = {}
    for trace in evidence.traces():
        functions = trace.functions()
        names = ["" if function is None else shown_name(function) for function in functions]
        for row in trace.tables(["exceptions"])["exceptions"]:
            what, raised_in, caught_in = functions[row.func], names[row.raised_in or 0], names[row.caught_in or 0]
            if what is not None and own & {raised_in, caught_in}:
                key = (what, raised_in, caught_in)
                counts[key] = counts.get(key, 0) + row.exceptions
    if not counts:
        return None
    what, raised_in, caught_in = worst = max(counts, key=lambda key: counts[key])
    count, ns = counts[worst], STORM_EACH_NS * counts[worst]
    if count < STORM or ns < STORM_SHARE * _own_ns(evidence):
        return None
    caught = f" and caught in {caught_in}" if caught_in not in ("", raised_in) else ""
    return Finding(
        "exceptions",
        f"{what.name} was raised {plural(count, 'time')} at {what.shown_file}:{what.line} in {raised_in}{caught}, "
        f"which took about {duration(ns)} ({evidence.share(ns)}).",
        where={"function": raised_in, "file": what.file, "line": what.line, "caught_in": caught_in},
        numbers={"exceptions": count, "passed_ns": evidence.passed_ns},
        look="report --exceptions",
        ns=ns,
    )


def _counts(evidence: Evidence) -> dict[str, int]:
    """Returns how many exceptions reached each function of the user's own code, where Python tells and exceptions were
    not recorded.
    """
    from vestige.reading.metadata import SHAPES, load_json

    found: dict[str, int] = {}
    for trace in evidence.traces():
        functions = trace.functions()
        for number, count in (
            SHAPES["vestige.raised"](load_json(trace.metadata().get("vestige.raised", ""))) or {}
        ).items():
            function = functions[int(number)] if number.isdecimal() and int(number) < len(functions) else None
            if function is not None:
                shown = shown_name(function)
                found[shown] = found.get(shown, 0) + count
    return found


def _by_count(evidence: Evidence) -> Finding | None:
    """Looks at functions that raise and catch exceptions by themselves: more reach them than leave them."""
    left: dict[str, int] = {}
    nodes: dict[str, Node] = {}
    for node, importing in zip(evidence.places.nodes, evidence.places.importing):
        if node.owner == OWN and node.kind == PYTHON and not importing:
            left[node.shown] = left.get(node.shown, 0) + node.raised
            nodes[node.shown] = node
    caught = {shown: count - left[shown] for shown, count in _counts(evidence).items() if shown in nodes}
    shown = max(caught, key=lambda each: caught[each], default="")
    count = caught.get(shown, 0)
    ns = STORM_EACH_NS * count
    if count < STORM or ns < STORM_SHARE * _own_ns(evidence):
        return None
    evidence.explained.add(shown)
    caller = evidence.caller_of(shown)
    return Finding(
        "exceptions",
        f"{shown} raised {plural(count, 'exception')} that it caught by itself"
        f"{f', called by {caller}' if caller else ''}: about {duration(ns)} ({evidence.share(ns)}).",
        where={**place(nodes[shown]), "tries": shown, "called_by": caller},
        numbers={"exceptions": count, "passed_ns": evidence.passed_ns},
        look="report --exceptions",
        ns=ns,
    )


def _by_function(evidence: Evidence) -> Finding | None:
    storms = [
        caught
        for caught in caught_in(evidence.places).values()
        if caught.count >= STORM
        and (
            caught.ns >= STORM_SHARE * evidence.rest_ns
            or STORM_EACH_NS * caught.count >= STORM_SHARE * _own_ns(evidence)
        )
    ]
    if not storms:
        return None
    worst = max(storms, key=lambda caught: (caught.ns + STORM_EACH_NS * caught.count, caught.count))
    name = plain_name(worst.node.name) if worst.node.kind == NATIVE else worst.node.shown
    evidence.explained |= {worst.node.shown, worst.caller.shown}
    return Finding(
        "exceptions",
        f"{name} raised {plural(worst.count, 'exception')}, which {worst.caller.shown} caught: {duration(worst.ns)} "
        f"({evidence.share(worst.ns)}) in calls that failed, and what catching took.",
        where={
            **place(worst.node),
            "raises": worst.node.shown if worst.node.kind == PYTHON else "",
            "called_by": worst.caller.shown,
        },
        numbers={
            "exceptions": worst.count,
            "calls": worst.node.calls,
            "failed_ns": worst.ns,
            "passed_ns": evidence.passed_ns,
        },
        look="report --sort calls",
        ns=worst.ns + STORM_EACH_NS * worst.count,
    )


RETRIES, RETRY_SHARE, RETRY_NS, RETRY_UNLIKE = 2, 0.2, 100 * MS, 0.5


def retry(evidence: Evidence) -> Finding | None:
    """Fires if a function slept about as often as it caught an exception: at least twice, for a fifth of the time."""
    places = evidence.places
    raised: dict[str, Caught] = {}
    for caught in caught_in(places).values():
        raised.setdefault(caught.caller.shown, caught)
        if caught.count > raised[caught.caller.shown].count:
            raised[caught.caller.shown] = caught
    slept = _sleeps(places, raised)
    best, most = "", (0, 0)
    for shown, (times, ns) in slept.items():
        count = raised[shown].count
        if times < RETRIES or abs(count - times) > max(RETRY_UNLIKE * times, 1) or count < RETRIES:
            continue
        if ns >= max(RETRY_SHARE * evidence.rest_ns, RETRY_NS) and ns > most[1]:
            best, most = shown, (times, ns)
    if not best:
        return None
    caught, (times, ns) = raised[best], most
    name = plain_name(caught.node.name) if caught.node.kind == NATIVE else caught.node.shown
    evidence.explained.add(best)
    return Finding(
        "retry",
        f"{best} tried again after an exception: {name} failed {plural(caught.count, 'time')}, and it slept "
        f"{plural(times, 'time')}, {duration(ns)} ({evidence.share(ns)}).",
        where={**place(caught.caller), "calls": caught.node.shown},
        numbers={"failed": caught.count, "sleeps": times, "slept_ns": ns, "passed_ns": evidence.passed_ns},
        look="report --tree",
        ns=ns,
    )


def _sleeps(places: Places, functions: dict[str, Caught]) -> dict[str, list[int]]:
    """Returns how often and how long each function slept, in its calls or as a task. Does not count sleeps inside the
    calls that failed.
    """
    slept: dict[str, list[int]] = {}
    for at, node in enumerate(places.nodes):
        is_await = node.shown == f"[await] {SLEEP}"
        if not is_await and waits(node) != SLEEP:
            continue
        below, up = at, places.parents[at]
        while up >= 0 and places.nodes[up].shown not in functions:
            below, up = up, places.parents[up]
        if up < 0 or places.nodes[below].shown == functions[places.nodes[up].shown].node.shown:
            continue
        one = slept.setdefault(places.nodes[up].shown, [0, 0])
        one[0] += node.waits if is_await else node.calls
        one[1] += node.awaiting_ns if is_await else node.total_ns
    return slept
