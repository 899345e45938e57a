"""The cause `slow worker`: one of several workers takes much longer than the others, which wait for this worker."""

from __future__ import annotations

from vestige.base.quantities import duration
from vestige.reading.labels import plain_name
from vestige.reading.libraries import OWN

from .data import Named
from .findings import Finding, heaviest, place
from .tails import idle_shares

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige.reading.durations import Durations

    from .data import Node
    from .findings import Evidence

MS = 1_000_000
FEWEST, MOST, TIMES, SHARE, LEAST_NS = 3, 200, 4, 0.25, 100 * MS
IDLE_SHARE = 0.5


class Call:
    """One of the calls that are compared."""

    def __init__(self, pid: int, thread: int, start_ns: int, ns: int) -> None:
        self.pid, self.thread, self.start_ns, self.ns = pid, thread, start_ns, ns


def slow_worker(evidence: Evidence) -> Finding | None:
    """Fires if several threads or processes made at least three calls of a function, or there were at least three
    tasks, and the longest took four times the median and a quarter of the program's time more than the median.
    """
    wall_ns = max(each["end_ns"] for each in evidence.facts) - min(each["start_ns"] for each in evidence.facts)
    idle = idle_shares(evidence)
    best, most = None, 0
    for (shown, _), those in _by_name(evidence).items():
        count = sum(each.count for each in those)
        if not FEWEST <= count <= MOST or those[0].kind == "async" or idle.get(shown, 0) >= IDLE_SHARE:
            continue
        if shown.endswith(": <module>"):
            continue  # a process that was forked or spawned runs it for other reasons
        longest = max(each.max_ns for each in those)
        if longest < max(SHARE * wall_ns, LEAST_NS) or shown in evidence.explained:
            continue
        slow = _slow_call(evidence, shown, those)
        if slow is None:
            continue
        call, median_ns = slow
        extra = call.ns - median_ns
        # If the caller of the worker's function took as long, prefer the function inside.
        if extra >= max(SHARE * wall_ns, LEAST_NS) and 10 * extra >= 9 * most:
            best, most = (shown, those, call, median_ns, count), max(extra, most)
    return _finding(evidence, *best) if best is not None else None


def _by_name(evidence: Evidence) -> dict[tuple[str, str], list[Durations]]:
    """Returns the durations of all processes by function and kind."""
    found: dict[tuple[str, str], list[Durations]] = {}
    for one in evidence.data.durations.values():
        found.setdefault((one.shown, one.kind), []).append(one)
    return found


def _slow_call(evidence: Evidence, shown: str, those: list[Durations]) -> tuple[Call, int] | None:
    """Returns the longest call and the median, if it took four times the median and other threads made calls."""
    if those[0].kind == "task":
        (row,) = those[0].rows if len(those) == 1 and len(those[0].rows) == 1 else (None,)
        if row is None or row.max_ns < TIMES * row.p50_ns:
            return None
        return Call(evidence.facts[0]["pid"], row.longest_thread, row.longest_start_ns, row.max_ns), row.p50_ns
    calls = [
        Call(pid, thread, start, ns)
        for pid, rows in evidence.calls_of(shown)
        for thread, start, ns in zip(rows["thread"], rows["start_ns"], rows["duration_ns"])
    ]
    by_worker: dict[tuple[int, int], int] = {}
    for call in calls:
        worker = (call.pid, call.thread)
        by_worker[worker] = by_worker.get(worker, 0) + 1
    calls.sort(key=lambda call: call.ns)
    if len(by_worker) < 2 or len(calls) < FEWEST:
        return None
    median = calls[(len(calls) - 1) // 2].ns
    return (calls[-1], median) if calls[-1].ns >= TIMES * median else None


def _finding(evidence: Evidence, shown: str, those: list[Durations], call: Call, median_ns: int, count: int) -> Finding:
    names = {(thread.pid, thread.thread): thread.name for thread in evidence.data.threads}
    name = names.get((call.pid, call.thread), "")
    inside = ""
    where: dict[str, object] = {"function": shown, "file": those[0].file, "line": those[0].line}
    is_task = those[0].kind == "task"
    if is_task:
        function, awaited = _awaits_most(evidence, shown)
        if function is not None and awaited is not None:
            where |= {**place(function), "inside": awaited.shown}
            inside = _inside(function, None, shown)
    elif evidence.look is not None:
        step = Named(None, start_ns=call.start_ns, duration_ns=call.ns, pid=call.pid, thread=call.thread)
        function, leaf = heaviest(evidence.look(step), call.ns)
        inside = _inside(function, leaf, shown)
        where |= place(function) if function is not None else {}
        where["inside"] = leaf.shown if leaf is not None else ""
    if not where.get("inside"):
        where["computes"] = evidence.computes(str(where["function"]))
        where["called_by"] = evidence.caller_of(str(where["function"]))
        inside += f", called by {where['called_by']}" if where["called_by"] else ""
    evidence.explained.add(shown)
    noun = "tasks" if is_task else "calls"
    by = f" in {name}" if name and not is_task else ""
    begin = min(each["start_ns"] for each in evidence.facts)
    return Finding(
        "slow worker",
        f"One of {count} {noun} of {shown} took {duration(call.ns)}{by}{inside}; half of the {noun} took less than "
        f"{duration(median_ns)}, and the others wait for the slowest.",
        where=where,
        numbers={"calls": count, "longest_ns": call.ns, "median_ns": median_ns, "passed_ns": evidence.passed_ns},
        look=f"report --tree --from {(call.start_ns - begin) / 1e9:.6f}s --until "
        f"{(call.start_ns + call.ns - begin) / 1e9:.6f}s",
        ns=call.ns - median_ns,
    )


def _awaits_most(evidence: Evidence, shown: str) -> tuple[Node | None, Node | None]:
    """Returns the function of the user's own code in which a task waited longest, and what this function awaits."""
    tasks = [node for node in evidence.places.nodes if node.shown == shown and node.awaiting_ns]
    function = max(tasks, key=lambda node: node.awaiting_ns, default=None)
    awaited = None
    while function is not None:
        awaited = max(function.children.values(), key=lambda node: node.awaiting_ns, default=None)
        if awaited is None or not awaited.kind or awaited.owner != OWN:
            break
        function = awaited
    return function, awaited


def _inside(function: Node | None, leaf: Node | None, shown: str) -> str:
    parts = [function.shown] if function is not None and function.shown != shown else []
    parts += [f"({plain_name(leaf.name)})"] if leaf is not None else []
    return f", most of it in {' '.join(parts)}" if parts else ""
