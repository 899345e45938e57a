"""The parent of each event, by torch's rule: the event that is open on the thread when this one begins.

The extension knows the parent of each row, except for annotations that end later than the event in which they began:
these are not on the stack and have no parent. Threads with such annotations are searched by time.
"""

from __future__ import annotations

from heapq import heappop, heappush

from .event_rows import ASYNC, CALLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .events import Store

OPEN_AT_START = 1  # a flag of spans


def late_threads(store: Store) -> set[int]:
    """Returns the threads that began to run Python code during the recording: none of their calls was open at its
    start.
    """
    rows = store.rows
    calls: set[int] = set()
    early: set[int] = set()
    for row in range(store.count):
        if store.definition(row)[0] in CALLS:
            thread = rows.thread[row]
            (early if rows.flags[row] & OPEN_AT_START else calls).add(thread)
    return calls - early


def parent_rows(store: Store) -> list[int]:
    """Returns the parent row of each row; -1 if it has none."""
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
    ends: list[tuple[int, int]] = []  # end and number of open rows
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
    """Ends a row and the rows above it. Returns the row that is on top then."""
    if row in ended:
        return top
    while top != row:
        ended.add(top)
        top = parents[top]
    ended.add(row)
    return parents[row]
