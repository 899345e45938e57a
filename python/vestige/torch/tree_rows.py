"""Which event another one is in, by torch's rule: what runs on the thread when it begins.

The extension knows the parent of each row, but for annotations that end later than what they began in: those are
beside the stack and have none. A thread that has one is gone through by time.
"""

from __future__ import annotations

from heapq import heappop, heappush

from .event_rows import ASYNC, CALLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .events import Store

OPEN_AT_START = 1  # flag of spans


def late_threads(store: Store) -> set[int]:
    """Threads that began to run Python code while it was recorded: none of their calls was open at the start."""
    rows = store.rows
    calls: set[int] = set()
    early: set[int] = set()
    for row in range(store.count):
        if store.definition(row)[0] in CALLS:
            thread = rows.thread[row]
            (early if rows.flags[row] & OPEN_AT_START else calls).add(thread)
    return calls - early


def parent_rows(store: Store) -> list[int]:
    """The row that each row is in; -1: none."""
    parents = store.rows.parent.tolist()
    flags = store.rows.flags.tolist()
    threads = {store.rows.thread[row] for row in range(store.count) if flags[row] & ASYNC}
    for thread in threads:
        rows = [row for row in range(store.count) if store.rows.thread[row] == thread]
        for row, parent in _by_time(store, rows).items():
            parents[row] = parent
    return parents


def _by_time(store: Store, rows: Iterable[int]) -> dict[int, int]:
    parents: dict[int, int] = {}
    ended: set[int] = set()
    ends: list[tuple[int, int]] = []  # of what is open: when, and which
    top = -1
    for row in rows:
        start, end = store.rows.start_ns[row], store.rows.end_ns[row]
        while ends and ends[0][0] < start:
            top = _end(heappop(ends)[1], top, parents, ended)
        parents[row] = top
        if end > start:
            top = row
            heappush(ends, (end, row))
    return parents


def _end(row: int, top: int, parents: dict[int, int], ended: set[int]) -> int:
    """What is on top after this row has ended, and all that is on it with it."""
    if row in ended:
        return top
    while top != row:
        ended.add(top)
        top = parents[top]
    ended.add(row)
    return parents[row]
