"""The summary of a recording of allocations: the rows of its tables, which one reading of the history fills."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from vestige._core import Progress, Trace

TABLES = (
    "memory_process",
    "memory_resident",
    "memory_timeline",
    "resident_timeline",
    "memory_views",
    "memory_allocators",
    "memory_sizes",
    "memory_threads",
    "memory_frames",
    "memory_lines",
)
STACKS = ("memory_nodes", "memory_stacks")
# A stack with more frames is cut to this many at its two ends; otherwise, the lists of a recursion would grow with the
# square of its depth.
INNER_MAX, OUTER_MAX = 192, 64


# A number of allocations and their bytes; `error` is the standard error of the bytes, 0 unless sampled.
Amount = namedtuple("Amount", "count bytes error")
Frame = namedtuple("Frame", "function file shown_file line native")  # line 0: unknown
Thread = namedtuple("Thread", "number tid name allocated freed")  # two amounts
CUT = Frame("[frames left out]", "", "", 0, False)


class MemorySummary:
    """facts: the columns of `memory_process`. views and allocators: Amount by name. stacks and lines: by view, the
    largest first, (amount, frames from the innermost on) or (amount, frame); stack_counts and line_counts say how many
    there are. resident: None if the resident set was not recorded.
    """

    def __init__(self, tables: dict[str, Any]) -> None:
        self._frames = tables["memory_frames"]
        self._nodes = tables.get("memory_nodes")
        self._made: dict[int, Frame] = {}
        self._stacks: dict[int, list[Frame]] = {}  # views share stacks
        self.facts = _only(tables["memory_process"]) or {}
        views = list(tables["memory_views"])
        self.views = {row.view: _amount(row) for row in views}
        self.count_errors = {row.view: row.count_error for row in views}
        self.stack_counts = {row.view: row.stacks for row in views}
        self.line_counts = {row.view: row.lines for row in views}
        self.allocators = {row.allocator: _amount(row) for row in tables["memory_allocators"]}
        self.sizes: Sequence[Any] = tables["memory_sizes"]
        self.timeline: Sequence[Any] = tables["memory_timeline"]
        self.resident = _only(tables["memory_resident"])
        self.resident_timeline: Sequence[Any] = tables["resident_timeline"]
        sums = iter(tables["memory_threads"])
        self.threads = [
            Thread(own.thread, own.tid, own.name, _amount(own), _amount(freed)) for own, freed in zip(sums, sums)
        ]
        self.lines: dict[str, list[tuple[Amount, Frame]]] = {view: [] for view in self.views}
        for view, number, amount in _firsts(tables["memory_lines"]):
            self.lines[view].append((amount, self._frame(number)))
        self.stacks: dict[str, list[tuple[Amount, list[Frame]]]] = {view: [] for view in self.views}
        for view, number, amount in _firsts(tables["memory_stacks"]) if self._nodes is not None else ():
            self.stacks[view].append((amount, self._stack(number)))

    def _frame(self, number: int) -> Frame:
        if number not in self._made:
            self._made[number] = Frame._make(self._frames[number])
        return self._made[number]

    def _stack(self, node: int) -> list[Frame]:
        """Returns a stack's frames, innermost first."""
        if node not in self._stacks:
            numbers = self._numbers(node)
            frames = [*map(self._frame, numbers[:INNER_MAX])]
            if len(numbers) > INNER_MAX + OUTER_MAX:
                frames.append(CUT)
                numbers = numbers[-OUTER_MAX:]
            else:
                numbers = numbers[INNER_MAX:]
            self._stacks[node] = [*frames, *map(self._frame, numbers)]
        return self._stacks[node]

    def _numbers(self, node: int) -> list[int]:
        assert self._nodes is not None
        parents, frames, numbers = self._nodes["parent"], self._nodes["frame"], []
        while node:
            numbers.append(frames[node])
            node = parents[node]
        return numbers


def _only(rows: Any) -> dict[str, Any] | None:
    """Returns the only row of a table by name, or None if the table is empty."""
    return {name: rows[name][0] for name in rows.columns} if len(rows) else None


def _firsts(rows: Any) -> Iterator[tuple[str, int, Amount]]:
    amounts = map(Amount, rows["count"], rows["bytes"], rows["error"])
    return zip(rows["view"], rows["of"], amounts)


def _amount(row: Any) -> Amount:
    return Amount(row.count, row.bytes, row.error)


def read_memory(
    trace: Trace, *, rows: int = 100, temporary: int = 1, progress: Progress | None = None, stacks: bool = True
) -> MemorySummary:
    """Returns the summary with the first `rows` stacks and lines of each view, or all if rows is -1. Without `stacks`,
    it has lines only.
    """
    names = [*TABLES, *(STACKS if stacks else ())]
    return MemorySummary(trace.tables(names, memory_rows=rows, temporary=temporary, progress=progress))
