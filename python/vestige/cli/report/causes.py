"""The causes that findings name. Each cause is a function, with its thresholds above it. Shares are shares of the time
that passed, added up over several processes. A new cause is a function of the evidence, and a place in CAUSES: earlier
causes may have explained the same time (`explained`).
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import GC, NATIVE, PYTHON
from vestige.reading.labels import plain_name
from vestige.reading.report_columns import IMPORTS
from vestige.reading.waits import CHILD, KINDS, LOCK

from .caches import cache
from .crowds import oversubscribed
from .data import gil_holders
from .findings import Finding, heaviest, place, waits
from .growing import growing
from .idle_devices import idle_device
from .imports import Imports
from .output import logging
from .raised import exceptions, retry
from .tails import tail
from .workers import slow_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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


IMPORTS_SHARE, IMPORTS_NS = 0.2, 50 * MS


def slow_imports(evidence: Evidence) -> Finding | None:
    imports = Imports(evidence.data.tree)
    if imports.total_ns < IMPORTS_SHARE * evidence.passed_ns or evidence.undisturbed(imports.total_ns) < IMPORTS_NS:
        return None
    modules = IMPORTS.sorted(imports.modules.values())
    # An import without a name failed or is from an older trace; naming it says nothing.
    link = next((link for link in imports.chain if link.is_named), imports.chain[0])
    slowest, ns = link.name, link.total_ns
    which = "the slowest" if slowest == imports.chain[0].name else "the slowest that has a name"
    worst = next((module for module in modules if module.is_named), modules[0])
    evidence.tells_imports = True
    inside = "" if worst.name == slowest else f"; by itself {worst.name} took most, {duration(worst.self_ns)}"
    return Finding(
        "imports",
        f"Imports took {duration(imports.total_ns)} ({evidence.share(imports.total_ns)}): {which} is {slowest}, "
        f"{duration(ns)}, imported by {imports.chain_by}{inside}." + _beside_others(evidence, evidence.busy_ns, "A"),
        where={"module": slowest, "imported_by": imports.chain_by, "slowest_alone": worst.name},
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


SITE_CALLS, SITE_SHARE, SITE_OUTSIDE = 1000, 0.25, 0.5
# Event loops and servers wait in these, but request nothing.
WAITS_FOR_EVENTS = ("select", "poll", "control", "accept", "_accept")
OUTSIDE = ("execute", "executemany", "fetchone", "fetchmany", "fetchall", "send", "sendall", "open", "stat", "request")


def _asks_outside(node: Node) -> int:
    """Returns the time of a call that asks something outside of the program: a file, a database, another machine. A
    call that waits for a lock, such as the lock of a queue, waits for another thread.
    """
    if node.kind != NATIVE:
        return 0
    name, kind = plain_name(node.name), waits(node)
    return node.total_ns if name in OUTSIDE or (kind not in ("", LOCK) and name not in WAITS_FOR_EVENTS) else 0


def many_requests(evidence: Evidence) -> Finding | None:
    """Fires for a call site with 1,000 or more calls per call of the function around it (N+1), if these calls take a
    quarter of the time, and half of their time is spent outside of the program.
    """
    places = evidence.places
    outside = places.add_up(_asks_outside)
    best = -1
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        if parent < 0 or places.importing[at] or node.calls < SITE_CALLS * max(places.nodes[parent].calls, 1):
            continue
        if node.total_ns < SITE_SHARE * evidence.passed_ns or outside[at] < SITE_OUTSIDE * node.total_ns:
            continue
        if best < 0 or node.total_ns > places.nodes[best].total_ns:
            best = at
    if best < 0:
        return None
    node, around = places.nodes[best], places.nodes[places.parents[best]]
    name = plain_name(node.name) if node.kind == NATIVE else node.shown
    evidence.explained.add(around.shown)
    each = node.calls // max(around.calls, 1)
    return Finding(
        "many requests",
        f"{around.shown} calls {name} {each:,} times each time it runs: {duration(node.total_ns)} "
        f"({evidence.share(node.total_ns)}), of which {outside[best] / node.total_ns:.0%} is outside of the program.",
        where={**place(around), "calls": node.shown},
        numbers={
            "calls": node.calls,
            "calls_of_caller": around.calls,
            "total_ns": node.total_ns,
            "outside_ns": outside[best],
            "passed_ns": evidence.passed_ns,
        },
        look="report --tree",
        ns=node.total_ns,
    )


BUSY_SHARE = 0.1
LOOP_STEPS, LOOP_SHARE, LOOP_OFTEN, LOOP_MEAN_NS = 20, 0.1, 5, 5 * MS


def blocked_loop(evidence: Evidence) -> Finding | None:
    """Fires for steps of an event loop that took 50 ms or more, together a tenth of the time, in a loop of at least 20
    steps. A step may be long because a busy machine ran another program. So the longest step must have waited for
    something, or be in a function whose calls take 5 ms or more on average, or there must be five such steps. If the
    longest step did not wait, the steps must take a tenth of the time even without the time that their thread waited
    for a processor.
    """
    steps = evidence.data.steps
    if steps.count < LOOP_STEPS or steps.blocking_ns < LOOP_SHARE * evidence.passed_ns or not steps.longest:
        return None
    step = steps.longest[0]
    start, ns = step.start_ns, step.duration_ns
    where: dict[str, object] = {"thread": step.thread_name, "start_ns": start}
    inside = ""
    waited, function, leaf = False, None, None
    busy_ns = evidence.data.processor_waits.get(step.tid, 0)
    if evidence.look is not None:
        function, leaf = heaviest(evidence.look(step), ns)
        waited = leaf is not None and bool(waits(leaf))
        if not waited and steps.blocking < LOOP_OFTEN and _mean_ns(evidence, function) < LOOP_MEAN_NS:
            return None
    if not waited and steps.blocking_ns - busy_ns < LOOP_SHARE * evidence.passed_ns:
        return None
    if function is not None:
        where |= place(function)
        inside = f" in {function.shown}" + (f" ({plain_name(leaf.name)})" if leaf is not None else "")
        evidence.explained.add(function.shown)
    begin = min(each["start_ns"] for each in evidence.facts)
    times = "once" if steps.blocking == 1 else f"{steps.blocking:,} times"
    return Finding(
        "blocked loop",
        f"The event loop was blocked {times} for 50 ms or more, {duration(steps.blocking_ns)} in all "
        f"({evidence.share(steps.blocking_ns)}); the longest step took {duration(ns)}{inside}."
        + _beside_others(evidence, busy_ns),
        where=where,
        numbers={
            "steps": steps.count,
            "blocking": steps.blocking,
            "blocking_ns": steps.blocking_ns,
            "longest_ns": ns,
            "processor_wait_ns": busy_ns,
            "passed_ns": evidence.passed_ns,
        },
        look=f"report --tree --from {(start - begin) / 1e9:.6f}s --until {(start + ns - begin) / 1e9:.6f}s",
        ns=steps.blocking_ns,
    )


def _beside_others(evidence: Evidence, busy_ns: int, whose: str = "Its") -> str:
    """Returns a sentence if a thread waited for a processor for a tenth of the time, else ""."""
    if busy_ns < BUSY_SHARE * evidence.passed_ns:
        return ""
    return f" {whose} thread waited {duration(busy_ns)} for a processor, which may be a part of that."


def _mean_ns(evidence: Evidence, function: Node | None) -> float:
    same = [node for node in evidence.places.nodes if function is not None and node.shown == function.shown]
    return sum(node.total_ns for node in same) / (sum(node.calls for node in same) or 1)


WAITING_SHARE, WAITING_NS = 0.5, 100 * MS


def waiting(evidence: Evidence) -> Finding | None:
    """Fires if no thread worked for half of the time, apart from the time that other findings explain."""
    places = evidence.places
    told = places.within(evidence.explained)
    sums: dict[tuple[str, str], list[int]] = {}
    nodes: dict[tuple[str, str], Node] = {}
    first: dict[tuple[str, str], int] = {}  # the part of that in threads that the program did not start
    explained = 0
    for at, node in enumerate(places.nodes):
        if not waits(node):
            continue
        # The child that the call waits for is among the traces, too.
        is_here = waits(node) == CHILD and evidence.data.traces > 1
        if told[at] or places.importing[at] or is_here:
            explained += node.total_ns
            continue
        caller = places.caller(at)
        key = (caller.shown, node.name)
        nodes[key] = caller
        one = sums.setdefault(key, [0, 0])
        one[0] += node.total_ns
        one[1] += node.calls
        first[key] = first.get(key, 0) + (0 if places.started[at] else node.total_ns)
    # A thread that could run, but got no processor, did not wait for anything that the program asks for.
    busy_ns = evidence.busy_ns
    idle = evidence.passed_ns - evidence.worked_ns - explained - busy_ns
    if idle < max(WAITING_SHARE * evidence.passed_ns, WAITING_NS) or not sums:
        return None
    # Threads without work wait for locks, so another reason explains more. The first thread's waits explain most:
    # threads of libraries sleep until they have something to look after.
    from vestige.reading.waits import waits_for

    others = [key for key in sums if waits_for(key[1]) != LOCK]
    firsts = [key for key in others if first[key] >= WAITING_SHARE * idle]
    long_ones = [key for key in others if sums[key][0] >= WAITING_SHARE * idle]
    some = firsts or long_ones or [key for key in others if first[key]] or sums
    key = max(some, key=lambda one: sums[one][0])
    caller, kind, (ns, calls) = nodes[key], waits_for(key[1]), sums[key]
    return Finding(
        "waiting",
        f"No thread worked for {duration(idle)} ({evidence.share(idle)}): {caller.shown} waits in "
        f"{plain_name(key[1])} ({KINDS.get(kind, kind)}), {plural(calls, 'call')}, {duration(ns)}.",
        where={**place(caller), "waits_in": plain_name(key[1])},
        numbers={
            "idle_ns": idle,
            "worked_ns": evidence.worked_ns,
            "processor_wait_ns": busy_ns,
            "wait_ns": ns,
            "calls": calls,
            "passed_ns": evidence.passed_ns,
        },
        look="report --threads",
        ns=idle,
    )


GC_SHARE, GC_NS = 0.1, 10 * MS


def collections(evidence: Evidence) -> Finding | None:
    """Fires for garbage collections, without those inside imports if a finding about imports has counted them."""
    data, places = evidence.data, evidence.places
    inside = [
        node
        for node, importing in zip(places.nodes, places.importing)
        if node.kind == GC and importing and evidence.tells_imports
    ]
    gc_ns = data.gc_ns - sum(node.total_ns for node in inside)
    if gc_ns < GC_SHARE * evidence.passed_ns or evidence.undisturbed(gc_ns) < GC_NS:
        return None
    count = data.collections - sum(node.calls for node in inside)
    collected = sum(sums.collected for sums in data.generations.values())
    began: dict[str, list[int]] = {}
    nodes: dict[str, Node] = {}
    for at, node in enumerate(places.nodes):
        if node.kind == GC and not (places.importing[at] and evidence.tells_imports):
            around = places.caller(at)
            nodes[around.shown] = around
            sums = began.setdefault(around.shown, [0, 0])
            sums[0] += node.calls
            sums[1] += node.total_ns
    if not began:
        return None
    name, (times, ns) = max(began.items(), key=lambda item: item[1][1])
    took = f"took {duration(gc_ns)} ({evidence.share(gc_ns)})"
    took = f", beside those in imports, {took}" if inside else f" {took} and freed {plural(collected, 'object')}"
    return Finding(
        "garbage collection",
        f"{plural(count, 'garbage collection')}{took}; {plural(times, 'collection')} began in {name}, {duration(ns)}.",
        where=place(nodes[name]),
        numbers={
            "collections": count,
            "gc_ns": gc_ns,
            "collected": collected,
            "began_here": times,
            "began_here_ns": ns,
            "processor_wait_ns": evidence.busy_ns,
            "passed_ns": evidence.passed_ns,
        },
        look="report --gc",
        ns=gc_ns,
    )


REPEATED_CALLS, REPEATED_SHARE = 100, 0.1


def same_arguments(evidence: Evidence) -> Finding | None:
    """Fires if a function is called 100 times or more with equal arguments, and the repetitions take a tenth of the
    time. Needs recorded arguments.
    """
    best, saved = None, 0
    for repeat in evidence.data.repeats:
        ns = repeat.total_ns - repeat.total_ns // repeat.calls if repeat.calls else 0
        if repeat.calls >= REPEATED_CALLS and ns >= REPEATED_SHARE * evidence.passed_ns and (not best or ns > saved):
            best, saved = repeat, ns
    if best is None:
        return None
    evidence.explained.add(best.shown)
    return Finding(
        "same arguments",
        f"{best.shown} is called {best.calls:,} times with the same arguments, {best.arguments}: "
        f"{duration(best.total_ns)} ({evidence.share(best.total_ns)}); "
        f"all but the first, {duration(saved)}, could be remembered.",
        where={"function": best.shown, "file": best.file, "line": best.line},
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


SHORT_CALLS, SHORT_NS, SHORT_SHARE = 100_000, 2_000, 0.2
# Approximate cost of recording a call, in ns: see docs/how/performance.md.
COSTS = {("turbo", PYTHON): 45, ("turbo", NATIVE): 28}
COST_ELSE = 100


def short_calls(evidence: Evidence) -> Finding | None:
    """Fires for 100,000 or more calls of one function, each shorter than 2 µs, if they take a fifth of the time
    together with the cost of recording them; half of that cost counts for the caller.
    """
    places = evidence.places
    sums: dict[str, list[int]] = {}
    first: dict[str, int] = {}
    for at, node in enumerate(places.nodes):
        if node.kind not in (PYTHON, NATIVE) or waits(node):
            continue
        one = sums.setdefault(node.shown, [0, 0])
        one[0] += node.calls
        one[1] += node.self_ns + sum(child.total_ns for child in node.children.values() if child.shown != node.shown)
        if node.shown not in first or node.calls > places.nodes[first[node.shown]].calls:
            first[node.shown] = at
    short = {
        shown: ns
        for shown, (calls, ns) in sums.items()
        if calls >= SHORT_CALLS
        and ns < SHORT_NS * calls
        and ns + _cost(evidence, places.nodes[first[shown]], calls) >= SHORT_SHARE * evidence.passed_ns
        and shown not in evidence.explained
    }
    if not short:
        return None
    shown = max(short, key=lambda one: short[one])
    at = first[shown]
    node, around = places.nodes[at], places.nodes[places.parents[at]] if places.parents[at] >= 0 else None
    calls, ns = sums[shown]
    cost = _cost(evidence, node, calls)
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


def _cost(evidence: Evidence, node: Node, calls: int) -> int:
    return COSTS.get((evidence.engine, node.kind), COST_ELSE) * calls


GIL_SHARE = 0.1


def gil(evidence: Evidence) -> Finding | None:
    """Fires for threads that waited for the GIL for a tenth of their time. Needs recorded switches (--sched)."""
    lasted = {thread: max(thread.last_ns - thread.first_ns, 1) for thread in evidence.data.threads}
    waited = {
        thread: thread.gil_ns for thread in lasted if thread.gil_ns and thread.gil_ns >= GIL_SHARE * lasted[thread]
    }
    if not waited:
        return None
    ns = sum(waited.values())
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


ALONE_SHARE, ALONE_THREADS, ALONE_NS, ALONE_THERE = 0.95, 2, 100 * MS, 0.5


def one_thread(evidence: Evidence) -> Finding | None:
    """Fires if one thread did 95% of the work, while at least two other threads existed for half of the time, and there
    was work for half of the time.
    """
    least_ns = ALONE_THERE * evidence.passed_ns
    threads = [thread for thread in evidence.data.threads if thread.last_ns - thread.first_ns >= least_ns]
    work = {thread: max(thread.self_ns - thread.waiting_ns, 0) for thread in evidence.data.threads}
    whole = sum(work.values())
    if len(threads) < ALONE_THREADS + 1 or whole < max(evidence.passed_ns / 2, ALONE_NS) or evidence.data.traces > 1:
        return None
    busy = max(threads, key=lambda thread: work[thread])
    if work[busy] < ALONE_SHARE * whole:
        return None
    others = len(evidence.data.threads) - 1
    return Finding(
        "one thread",
        f"{busy.name} did {work[busy] / whole:.0%} of the work, {duration(work[busy])}, most in {busy.top_shown}; the "
        f"{others:,} other threads did {duration(whole - work[busy])} together.",
        where={"thread": busy.name, "function": busy.top_shown},
        numbers={
            "worked_ns": work[busy],
            "others_ns": whole - work[busy],
            "other_threads": others,
            "passed_ns": evidence.passed_ns,
        },
        look="report --threads",
        ns=work[busy] / 2,
    )


CAUSES: tuple[Callable[[Evidence], Finding | None], ...] = (
    lost_records,
    slow_imports,
    many_requests,
    blocked_loop,
    idle_device,
    retry,
    slow_worker,
    oversubscribed,
    waiting,
    gil,
    collections,
    same_arguments,
    cache,
    exceptions,
    logging,
    growing,
    short_calls,
    one_thread,
    tail,
)
