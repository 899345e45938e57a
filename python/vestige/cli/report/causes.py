"""The causes that findings name. Each cause is a function, with its thresholds above it. Shares are shares of the time
that passed, added up over several processes. A new cause is a function of the evidence, and a place in CAUSES: earlier
causes may have explained the same time (`explained`).
"""

from __future__ import annotations

from sys import stdlib_module_names

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.labels import plain_name
from vestige.reading.libraries import OWN
from vestige.reading.report_columns import IMPORTS

from .caches import cache
from .children import children
from .collector import collections
from .crowds import oversubscribed
from .data import gil_holders
from .findings import Finding, heaviest, place, waits
from .growing import growing
from .idle_devices import idle_device
from .imports import Imports
from .output import logging
from .raised import exceptions, retry
from .requests import many_requests, work_in_a_loop
from .tails import tail
from .turns import turns
from .waiting import beside_others, blocked_loop, lock, waiting
from .workers import slow_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .data import Node
    from .findings import Evidence

MS = 1_000_000


def lost_records(evidence: Evidence) -> Finding | None:
    """Fires for any record that could not be kept."""
    lost = sum(each["lost"] for each in evidence.facts)
    if not lost:
        return None
    return Finding(
        "lost records",
        f"{plural(lost, 'record')} could not be kept, so times and calls here are less than they were.",
        where={},
        numbers={"lost": lost},
        look="info",
        ns=float("inf"),
    )


IMPORTS_SHARE, IMPORTS_NS = 0.2, 80 * MS
MOST_SHARE, MOST_NS = 0.5, 40 * MS  # imports that are most of the program
STDLIB_NS = 250 * MS  # of a module of the standard library, which hardly anybody can avoid


def _undisturbed(evidence: Evidence, ns: int) -> float:
    """Returns the time of imports without their waits for a processor; their other waits count."""
    places = evidence.places
    waited = min(sum(waited for waited, importing in zip(places.waited, places.importing) if importing), ns)
    return waited + evidence.alone(ns - waited)


def _in_imports(evidence: Evidence, ns: int) -> tuple[Node | None, Node | None]:
    """Returns the function in which the slowest import spent half of its time, and the function in C that it called."""
    places = evidence.places
    nodes = [node for node, importing in zip(places.nodes, places.importing) if importing and node.imports]
    slowest = next((node for node in nodes if node.total_ns >= ns), None)
    function, leaf = heaviest(slowest, ns) if slowest is not None else (None, None)
    return (None, None) if function is None or function.imports or function.owner != OWN else (function, leaf)


def slow_imports(evidence: Evidence) -> Finding | None:
    imports = Imports(evidence.data.tree)
    alone_ns = _undisturbed(evidence, imports.total_ns)
    is_most = imports.total_ns >= MOST_SHARE * evidence.passed_ns
    if imports.total_ns < IMPORTS_SHARE * evidence.passed_ns or alone_ns < (MOST_NS if is_most else IMPORTS_NS):
        return None
    modules = IMPORTS.sorted(imports.modules.values())
    # An import without a name failed, or is from an older trace. Such a name would not help the user.
    link = next((link for link in imports.chain if link.is_named), imports.chain[0])
    slowest, ns = link.name, link.total_ns
    if slowest.partition(".")[0] in stdlib_module_names and alone_ns < STDLIB_NS:
        return None
    which = "the slowest" if slowest == imports.chain[0].name else "the slowest that has a name"
    worst = next((module for module in modules if module.is_named), modules[0])
    evidence.imports_ns = imports.total_ns
    inside = "" if worst.name == slowest else f"; by itself {worst.name} took most, {duration(worst.self_ns)}"
    function, leaf = _in_imports(evidence, ns)
    site: dict[str, Any] = {}
    if function is not None:
        site = {**place(function), "inside": leaf.shown if leaf is not None else ""}
        inside += f", and most of it is in {function.shown}"
        inside += f" ({plain_name(leaf.name)})" if leaf is not None else ""
    return Finding(
        "imports",
        f"Imports took {duration(imports.total_ns)} ({evidence.share(imports.total_ns)}): {which} is {slowest}, "
        f"{duration(ns)}, imported by {imports.chain_by}{inside}." + beside_others(evidence, evidence.busy_ns, "A"),
        where={"module": slowest, "imported_by": imports.chain_by, "slowest_alone": worst.name, **site},
        numbers={
            "imports_ns": imports.total_ns,
            "slowest_ns": ns,
            "alone_ns": worst.self_ns,
            "imports": sum(module.calls for module in modules),
            "processor_wait_ns": evidence.busy_ns,
            "passed_ns": evidence.passed_ns,
        },
        look="report --imports",
        ns=imports.total_ns,
    )


REPEATED_CALLS, REPEATED_SHARE = 100, 0.1


def same_arguments(evidence: Evidence) -> Finding | None:
    """Fires if a function is called 100 times or more with equal arguments, and the repetitions take a tenth of the
    time. Needs recorded arguments.
    """
    best, saved = None, 0
    for repeat in evidence.data.repeats:
        ns = repeat.total_ns - repeat.total_ns // repeat.calls if repeat.calls else 0
        if repeat.calls >= REPEATED_CALLS and ns >= REPEATED_SHARE * evidence.rest_ns and (not best or ns > saved):
            best, saved = repeat, ns
    if best is None:
        return None
    caller, wrapper = _caller(evidence, best.shown)
    through = f" through {wrapper}" if wrapper else ""
    return Finding(
        "same arguments",
        f"{best.shown} is called by {caller}{through} {best.calls:,} times with the same arguments, {best.arguments}: "
        f"{duration(best.total_ns)} ({evidence.share(best.total_ns)}); "
        f"all but the first, {duration(saved)}, could be remembered.",
        where={
            "function": best.shown,
            "file": best.file,
            "line": best.line,
            "called_by": caller,
            "through": wrapper,
        },
        numbers={
            "calls": best.calls,
            "arguments": best.arguments,
            "total_ns": best.total_ns,
            "repeated_ns": saved,
            "passed_ns": evidence.passed_ns,
        },
        look="report --sort calls",
        ns=saved,
    )


def _caller(evidence: Evidence, shown: str) -> tuple[str, str]:
    """Returns the function that calls another one most often, and the decorator's wrapper in between, or ""."""
    places = evidence.places
    calls: dict[int, int] = {}
    for at, node in enumerate(places.nodes):
        above = places.above(at) if node.shown == shown else -1
        if above >= 0:
            calls[above] = calls.get(above, 0) + node.calls
    at = max(calls, key=lambda each: calls[each], default=-1)
    if at < 0:
        return "", ""
    node, above = places.nodes[at], places.above(at)
    # A wrapper is made by another function, and calls the function once each time.
    if (
        above >= 0
        and "<locals>" in node.name
        and node.shown != shown
        and 10 * abs(calls[at] - node.calls) <= node.calls
    ):
        return places.nodes[above].shown, node.shown
    return node.shown, ""


SHORT_CALLS, SHORT_NS, SHORT_SHARE = 100_000, 2_000, 0.2
SHORT_IN_C = 0.3  # without the cost of recording: less is what such work takes
INLINE = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")  # loops that Python makes functions of


def short_calls(evidence: Evidence) -> Finding | None:
    """Fires for 100,000 or more calls of one function, each shorter than 2 µs, if they take a fifth of the time
    together with the cost of recording them; half of that cost counts for the caller.
    """
    places = evidence.places
    sums: dict[str, list[int]] = {}
    first: dict[str, int] = {}
    for at, node in enumerate(places.nodes):
        if node.kind not in (PYTHON, NATIVE) or waits(node) or node.name.endswith(INLINE) or _is_cached(node):
            continue
        one = sums.setdefault(node.shown, [0, 0])
        one[0] += node.calls
        one[1] += node.total_ns if places.outer[at] else 0
        if node.shown not in first or node.calls > places.nodes[first[node.shown]].calls:
            first[node.shown] = at
    short = {
        shown: ns
        for shown, (calls, ns) in sums.items()
        if calls >= SHORT_CALLS
        and ns < SHORT_NS * calls
        and _is_much(evidence, places.nodes[first[shown]].kind, calls, ns)
        and shown not in evidence.explained
    }
    if not short:
        return None
    shown = max(short, key=lambda one: short[one])
    at = first[shown]
    node, above = places.nodes[at], places.above(at)
    around = places.nodes[above] if above >= 0 else None
    calls, ns = sums[shown]
    cost = evidence.cost_of(node.kind, calls)
    by = f", most of them from {around.shown}" if around is not None and around.shown != shown else ""
    name = plain_name(node.name) if node.kind == NATIVE else shown
    return Finding(
        "short calls",
        f"{name} is called {calls:,} times{by}, {duration(ns / calls)} each: {duration(ns)} ({evidence.share(ns)}). "
        f"Recording the calls took about {duration(cost)} of the run, here and in what calls it.",
        where={**place(node), "called_by": around.shown if around is not None else ""},
        numbers={
            "calls": calls,
            "total_ns": ns,
            "each_ns": round(ns / calls),
            "recording_ns": cost,
            "passed_ns": evidence.passed_ns,
        },
        look="report --sort calls",
        ns=ns,
    )


def _is_cached(node: Node) -> bool:
    """Returns whether a node is a function's lru_cache, below which the function is that makes values."""
    if node.kind != NATIVE:
        return False
    name = plain_name(node.name)
    return any(
        one.kind == PYTHON and one.name.endswith(name) and one.calls <= node.calls for one in node.children.values()
    )


def _is_much(evidence: Evidence, kind: int, calls: int, ns: int) -> bool:
    if kind == NATIVE:
        return ns >= SHORT_IN_C * evidence.rest_ns
    return ns + evidence.cost_of(kind, calls) >= SHORT_SHARE * evidence.rest_ns


GIL_SHARE, GIL_NS = 0.1, 50 * MS


def gil(evidence: Evidence) -> Finding | None:
    """Fires for threads that waited for the GIL for a tenth of their time. Needs recorded switches (--sched)."""
    lasted = {thread: max(thread.last_ns - thread.first_ns, 1) for thread in evidence.data.threads}
    waited = {
        thread: thread.gil_ns for thread in lasted if thread.gil_ns and thread.gil_ns >= GIL_SHARE * lasted[thread]
    }
    ns = sum(waited.values())
    if ns < GIL_NS:
        return None
    share = ns / sum(lasted[thread] for thread in waited)
    holders = [holder for trace in evidence.traces() for holder in gil_holders(trace)]
    held = max(holders, key=lambda holder: holder.held_ns, default=None)
    by = f", mostly held by {held.function} in {held.thread}" if held is not None else ""
    return Finding(
        "GIL",
        f"{plural(len(waited), 'thread')} waited {share:.0%} of the time for the GIL{by}.",
        where={"thread": held.thread, "function": held.function} if held is not None else {},
        numbers={"threads": len(waited), "gil_ns": ns, "held_ns": held.held_ns if held is not None else 0},
        look="report --threads",
        ns=ns / len(waited),
    )


CAUSES: tuple[Callable[[Evidence], Finding | list[Finding] | None], ...] = (
    lost_records,
    slow_imports,
    many_requests,
    work_in_a_loop,
    blocked_loop,
    idle_device,
    retry,
    slow_worker,
    oversubscribed,
    lock,
    children,
    waiting,
    gil,
    turns,
    collections,
    same_arguments,
    cache,
    exceptions,
    logging,
    growing,
    short_calls,
    tail,
)
