"""Causes that are waits: a blocked event loop, a lock, and time in which no thread worked."""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import NATIVE
from vestige.reading.labels import plain_name
from vestige.reading.libraries import OWN
from vestige.reading.waits import CHILD, IO, KINDS, LOCK, SLEEP

from .findings import Finding, heaviest, place, waits
from .requests import WAITS_FOR_EVENTS, serves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .data import LockWaits, Loop, Named, Node
    from .findings import Evidence

MS = 1_000_000
BUSY_SHARE = 0.1

# ---- blocked loop ----------------------------------------------------------------

LOOP_STEPS, LOOP_SHARE, LOOP_OFTEN, LOOP_MEAN_NS = 10, 0.1, 5, 5 * MS
LOOP_LOOKED_AT = 4  # of the longest steps
LOOP_NS = 25 * MS  # so long the longest step must be without the waits for a processor


def blocked_loop(evidence: Evidence) -> Finding | None:
    """Fires if steps of at least 50 ms took a tenth of the time, in an event loop of at least ten steps.

    A step may be long because a busy machine ran something else. So one of these must hold, too: the longest step
    waited; it is in a function whose calls take at least 5 ms on average; or there are five such steps. If the longest
    step did not wait, the steps must take a tenth of the time even without the part in which the thread waited for a
    processor.
    """
    loops = sorted(evidence.data.steps.loops.values(), key=lambda loop: -loop.blocking_ns)
    for loop in loops:
        if loop.count < LOOP_STEPS or loop.blocking_ns < LOOP_SHARE * evidence.rest_ns or not loop.longest:
            continue
        # If the longest step may have waited for a processor, another may say more.
        for step in loop.longest[: LOOP_LOOKED_AT if evidence.look is not None else 1]:
            finding = _blocked(evidence, loop, step)
            if finding is not None:
                return finding
    return None


def _blocked(evidence: Evidence, loop: Loop, step: Named) -> Finding | None:
    start, ns = step.start_ns, step.duration_ns
    where: dict[str, object] = {"thread": step.thread_name, "start_ns": start}
    inside = ""
    waited, function, leaf = False, None, None
    busy_ns = evidence.data.processor_waits.get(step.tid, 0)
    if evidence.look is not None:
        tree = evidence.look(step)
        if evidence.tells_imports and _imports_ns(tree) >= ns / 2:
            return None  # the finding about imports explains this
        function, leaf = heaviest(tree, ns)
        # A call that usually returns at once did not wait, but had no processor.
        waited = leaf is not None and bool(waits(leaf)) and not 0 < _mean_ns(evidence, leaf) < LOOP_MEAN_NS
        if not waited and loop.blocking < LOOP_OFTEN and _mean_ns(evidence, function) < LOOP_MEAN_NS:
            return None
    alone = _alone(evidence, loop, busy_ns)
    if not waited and alone < max(LOOP_SHARE * max(evidence.rest_ns - busy_ns, 1), LOOP_NS * loop.blocking_ns / ns):
        return None
    if function is not None:
        where |= place(function) | ({"calls": leaf.shown} if leaf is not None else {})
        inside = f" in {function.shown}" + (f" ({plain_name(leaf.name)})" if leaf is not None else "")
        where["inside"] = leaf.shown if leaf is not None else ""
        where["called_by"] = evidence.caller_of(function.shown) if leaf is None else ""
        where["computes"] = evidence.computes(function.shown) if leaf is None else ""
        where["spends"] = function.shown if leaf is None and not where["computes"] else ""
        inside += f", called by {where['called_by']}" if where["called_by"] else ""
        evidence.explained.add(function.shown)
    begin = min(each["start_ns"] for each in evidence.facts)
    which = "the longest step" if step is loop.longest[0] else "one step"
    times = "once" if loop.blocking == 1 else f"{loop.blocking:,} times"
    whose = f" of {loop.thread_name}" if len(evidence.data.steps.loops) > 1 else ""
    return Finding(
        "blocked loop",
        f"The event loop{whose} was blocked {times} for 50 ms or more, {duration(loop.blocking_ns)} in all "
        f"({evidence.share(loop.blocking_ns)}); {which} took {duration(ns)}{inside}."
        + beside_others(evidence, busy_ns),
        where=where,
        numbers={
            "steps": loop.count,
            "blocking": loop.blocking,
            "blocking_ns": loop.blocking_ns,
            "longest_ns": ns,
            "processor_wait_ns": busy_ns,
            "passed_ns": evidence.passed_ns,
        },
        look=f"report --tree --from {(start - begin) / 1e9:.6f}s --until {(start + ns - begin) / 1e9:.6f}s",
        ns=loop.blocking_ns,
    )


def _alone(evidence: Evidence, loop: Loop, busy_ns: int) -> float:
    """How long the blocking steps would have taken if their thread had not waited for a processor, assuming that such
    waits are spread evenly over its work.
    """
    threads = [one for one in evidence.data.threads if (one.pid, one.thread) == (loop.pid, loop.thread)]
    work = max(sum(evidence.data.work_of(thread) for thread in threads), loop.blocking_ns)
    return loop.blocking_ns * (1 - min(busy_ns / max(work, 1), 1))


def _imports_ns(root: Node) -> int:
    """Returns the time of imports, without counting imports inside imports again."""
    total, work = 0, list(root.children.values())
    while work:
        node = work.pop()
        if node.imports:
            total += node.total_ns
        else:
            work.extend(node.children.values())
    return total


def beside_others(evidence: Evidence, busy_ns: int, whose: str = "Its") -> str:
    """Returns a sentence if a thread waited for a processor for a tenth of the time; else ""."""
    if busy_ns < BUSY_SHARE * evidence.passed_ns:
        return ""
    return f" {whose} thread waited {duration(busy_ns)} for a processor, which may be a part of that."


def _mean_ns(evidence: Evidence, function: Node | None) -> float:
    same = [node for node in evidence.places.nodes if function is not None and node.shown == function.shown]
    return sum(node.total_ns for node in same) / (sum(node.calls for node in same) or 1)


# ---- locks -------------------------------------------------------------------------

LOCK_SHARE, LOCK_NS = 0.2, 50 * MS


def lock(evidence: Evidence) -> Finding | None:
    """Fires if threads waited for one lock for a fifth of the time from their first to their last call, while others
    held it.
    """
    best: LockWaits | None = None
    for one in evidence.data.locks.values():
        lasted = sum(evidence.data.lasted(*thread) for thread in one.threads)
        if one.wait_ns >= max(LOCK_SHARE * lasted, LOCK_NS) and one.wait_ns - evidence.busy_ns >= LOCK_NS:
            best = one if best is None or one.wait_ns > best.wait_ns else best
    if best is None:
        return None
    evidence.explained |= {best.waiter.shown, best.holder.shown}
    lasted = sum(evidence.data.lasted(*thread) for thread in best.threads) or 1
    inside = best.inside
    did = "computed"
    if inside is not None:
        kind, name = inside.waits_for, plain_name(inside.name) if inside.kind == NATIVE else inside.shown
        verb = {"sleep": "slept", "lock": "waited for another lock", "child": "waited for a child process"}.get(kind)
        verb = verb or ("waited for input or output" if kind else "wrote" if "write" in name else "computed")
        did = f"{verb} ({name})"
    same = best.holder.shown == best.waiter.shown
    held = "a thread in the same function held it" if same else f"{best.holder.shown} held it"
    return Finding(
        "lock",
        f"{plural(len(best.threads), 'thread')} waited {min(best.wait_ns / lasted, 1):.0%} of the time for one lock in "
        f"{best.waiter.shown}: {plural(best.waits, 'wait')}, {duration(best.wait_ns)} added up, while {held} and "
        f"{did}.",
        where={
            **place(best.holder),
            "waiter": best.waiter.shown,
            "held_by": best.holder_thread,
            "inside": inside.shown if inside is not None else "",
        },
        numbers={
            "threads": len(best.threads),
            "waits": best.waits,
            "wait_ns": best.wait_ns,
            "threads_ns": lasted,
            "passed_ns": evidence.passed_ns,
        },
        look="report --threads",
        ns=min(best.wait_ns / len(best.threads), evidence.passed_ns),
    )


# ---- nobody works ------------------------------------------------------------------

WAITING_SHARE, WAITING_NS = 0.5, 100 * MS
UNKNOWN_NS = 100 * MS  # least time of a call in C that hardly ran and so waited for an unknown reason
UNKNOWN_RAN = 0.1
UNKNOWN = "something that the trace does not name"


class Wait:
    """The calls in which one function waits in another."""

    def __init__(self, caller: Node, node: Node, kind: str) -> None:
        self.caller, self.name, self.kind = caller, node.name, kind
        self.is_around = not node.only_waits and bool(node.waits_for)  # an event loop: calls run inside
        self.ns = self.calls = 0
        self.first_ns = 0  # time in threads that the program did not start


def _hardly_ran(node: Node) -> bool:
    """Returns whether calls in C hardly had a processor, so that they must have waited, whatever their name. False if
    running times are unknown.
    """
    ran = node.running_ns
    return (
        node.kind == NATIVE
        and not node.children
        and ran is not None
        and node.total_ns >= UNKNOWN_NS
        and node.total_ns >= MS * node.calls
        and ran <= UNKNOWN_RAN * node.total_ns
    )


def _waits(evidence: Evidence) -> tuple[dict[tuple[str, str], Wait], int, int]:
    """Returns the waits that no other finding explains, the time of the explained waits, and the time of waits whose
    reason is unknown.
    """
    places = evidence.places
    told = places.within(evidence.explained)
    found: dict[tuple[str, str], Wait] = {}
    explained = unknown = 0
    knows_gil = not any(thread.gil_ns for thread in evidence.data.threads)
    for at, node in enumerate(places.nodes):
        ns, kind = places.waited[at], node.waits_for
        if not ns and knows_gil and _hardly_ran(node):
            ns, kind = node.total_ns, ""
            unknown += ns
        if not ns:
            continue
        if kind == CHILD and evidence.data.traces > 1:
            continue  # the child is here, too: what it did counts
        if told[at] or places.importing[at]:
            explained += ns
            continue
        caller = places.caller(at)
        wait = found.setdefault((caller.shown, node.name), Wait(caller, node, kind))
        wait.ns += ns
        wait.calls += node.calls or 1
        wait.first_ns += 0 if places.started[at] else ns
    return found, explained, unknown


MESSAGES = " of zmq."  # sockets of messages, from which workers receive their work


def _is_for_events(evidence: Evidence, wait: Wait) -> bool:
    """Returns whether an event loop or a server waits for the next event, because there is nothing to do."""
    if wait.kind != IO:
        return False
    if plain_name(wait.name) in WAITS_FOR_EVENTS or wait.is_around:
        return True
    around = [node for node in evidence.places.nodes if node.shown == wait.caller.shown]
    return any(serves(node, sends=MESSAGES not in wait.name) for node in around)


def _choose(waits_found: dict[tuple[str, str], Wait], idle: int) -> Wait:
    """Returns the wait that best explains why no thread worked. Prefers waits other than for locks, because threads
    that wait for work wait for locks; then waits in the user's own functions; then waits in threads that the program
    did not start, because helper threads mostly sleep.
    """
    every = list(waits_found.values())
    others = [wait for wait in every if wait.kind != LOCK]
    own = [wait for wait in others if wait.caller.owner == OWN]
    for group in (own, others):
        firsts = [wait for wait in group if wait.first_ns >= WAITING_SHARE * idle]
        long_ones = [wait for wait in group if wait.ns >= WAITING_SHARE * idle]
        some = firsts or long_ones
        if some:
            return max(some, key=lambda wait: wait.ns)
    some = [wait for wait in others if wait.first_ns] or every
    return max(some, key=lambda wait: wait.ns)


ALONE = 1.2
PACED, PACED_WORK, UNLIKE = 10, 0.05, 0.2


def _paces(evidence: Evidence, wait: Wait) -> bool:
    """Returns whether a loop sleeps after each piece of work, at least ten times: it has a pace of its own."""
    if wait.kind != SLEEP or wait.calls < PACED:
        return False
    for around in evidence.places.nodes:
        if around.shown != wait.caller.shown:
            continue
        sleep = next((node for node in around.children.values() if node.name == wait.name), None)
        if sleep is None or sleep.calls < PACED * around.calls:
            continue
        work = [
            node
            for node in around.children.values()
            if node is not sleep and abs(node.calls - sleep.calls) <= UNLIKE * sleep.calls and not node.raised
        ]
        if sum(node.total_ns for node in work) >= PACED_WORK * sleep.total_ns:
            return True
    return False


def _keeps_alive(evidence: Evidence, wait: Wait) -> bool:
    """Returns whether the first thread only sleeps while others wait for something to do: it keeps a service going."""
    places = evidence.places
    idle = sum(
        ns
        for node, ns, started in zip(places.nodes, places.waited, places.started)
        if started and (node.waits_for == LOCK or (node.waits_for == IO and plain_name(node.name) in WAITS_FOR_EVENTS))
    )
    return wait.kind == SLEEP and wait.first_ns > 0 and idle >= WAITING_SHARE * wait.first_ns


def _is_asked_for(evidence: Evidence, wait: Wait, found: dict[tuple[str, str], Wait], idle: int) -> bool:
    """Whether the program chose to wait. Workers wait until there is something to do, and several threads that sleep or
    read wait at the same time, as they should.
    """
    if wait.kind == LOCK or _paces(evidence, wait) or _keeps_alive(evidence, wait):
        return False
    in_threads = sum(each.ns - each.first_ns for each in found.values() if each.kind != LOCK)
    return wait.first_ns >= WAITING_SHARE * idle or in_threads <= ALONE * idle


def waiting(evidence: Evidence) -> Finding | None:
    """Fires if no thread of any process worked for half of the time, without the time that other findings explain, and
    without the waits of servers and workers.
    """
    found, explained, unknown = _waits(evidence)
    events = [key for key, wait in found.items() if _is_for_events(evidence, wait)]
    explained += sum(found.pop(key).ns for key in events)
    # Waiting for a processor is not the program's own waiting.
    busy_ns = evidence.busy_ns
    worked = max(evidence.worked_ns - unknown, 0)
    wall = max(evidence.wall_ns - evidence.imports_ns, 1)
    idle = min(wall, evidence.wall_ns - worked - explained - busy_ns)
    if idle < max(WAITING_SHARE * wall, WAITING_NS) or not found:
        return None
    wait = _choose(found, idle)
    if not _is_asked_for(evidence, wait, found, idle):
        return None
    kind = KINDS.get(wait.kind, UNKNOWN)
    return Finding(
        "waiting",
        f"No thread worked for {duration(idle)} ({min(idle / evidence.wall_ns, 1):.0%}): {wait.caller.shown} waits in "
        f"{plain_name(wait.name)} ({kind}), {plural(wait.calls, 'call')}, {duration(wait.ns)}.",
        where={**place(wait.caller), "waits_in": plain_name(wait.name)},
        numbers={
            "idle_ns": idle,
            "worked_ns": worked,
            "processor_wait_ns": busy_ns,
            "wait_ns": wait.ns,
            "calls": wait.calls,
            "passed_ns": evidence.passed_ns,
        },
        look="report --threads",
        ns=idle,
    )
