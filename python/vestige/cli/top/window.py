"""The last seconds of a program: how much the sums of its functions grew between readings. Older readings are
dropped.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from vestige._core import Function
from vestige.cli.report.data import shown_name
from vestige.cli.report.findings import COST_ELSE, COSTS
from vestige.reading.kinds import GC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vestige._core import Growing

COLUMNS = ("calls", "self_ns", "total_ns", "self_bytes", "self_running_ns", "running_ns")
UNKNOWN = Function((0, "(not defined)", "", "", 0))


class Growth(NamedTuple):
    """How much a function's sums grew, by COLUMNS; None: unknown. A sum may also shrink, because an open call may turn
    out to have ended earlier.
    """

    calls: int
    own_ns: int
    total_ns: int
    bytes: int
    own_running_ns: int | None
    total_running_ns: int | None


class Look(NamedTuple):
    from_ns: int
    to_ns: int
    records: int
    lost: int
    knows_running: bool
    functions: dict[int, Growth]


class Row:
    """The sums of a function in the last seconds."""

    def __init__(self, number: int, function: Function) -> None:
        self.number = number
        self.kind = function.kind
        self.shown = shown_name(function)
        self.waits = (function.waits_for if function.only_waits else "") or ""
        self.calls = self.own_ns = self.total_ns = self.bytes = 0
        self.passed_ns = 0  # own time, including time in which the thread did not run

    def add(self, grown: Growth, *, running: bool) -> None:
        """Adds growth; by running time if that is wanted and known."""
        own_ns = grown.own_running_ns if running else None
        total_ns = grown.total_running_ns if running else None
        self.calls += grown.calls
        self.own_ns += grown.own_ns if own_ns is None else own_ns
        self.total_ns += grown.total_ns if total_ns is None else total_ns
        self.passed_ns += grown.own_ns
        self.bytes += grown.bytes


class Window:
    """The sums of the readings that are no older than `last_ns`."""

    def __init__(self, last_ns: int, engine: str) -> None:
        self._last_ns = last_ns
        self._engine = engine
        self._looks: deque[Look] = deque()
        self._sums: dict[int, tuple[int | None, ...]] = {}  # sums at the last reading
        self._functions: dict[int, Function] = {}
        self.threads: list[Any] = []

    def add(self, now: dict[str, Any], growing: Growing) -> None:
        """Adds the result of a reading."""
        rows, to_ns = now["functions"], int(now["to_ns"])
        from_ns = self._looks[-1].to_ns if self._looks else int(now["from_ns"])
        sums = dict(zip(rows["func"], zip(*(rows[name] for name in COLUMNS), strict=True), strict=True))
        grown = {
            one: _difference(all_, self._sums.get(one)) for one, all_ in sums.items() if all_ != self._sums.get(one)
        }
        self._sums = sums
        self._looks.append(Look(from_ns, to_ns, now["records"], now["lost"], now["knows_running"], grown))
        while self._looks[0].to_ns <= to_ns - self._last_ns:
            self._looks.popleft()
        self.threads = list(now["threads"])
        wanted = {one for look in self._looks for one in look.functions}
        wanted.update(thread.func for thread in self.threads)
        # A definition never changes, so it is kept as long as its function is shown.
        known = self._functions
        self._functions = {one: known.get(one) or growing.function(one) or UNKNOWN for one in wanted if one}

    @property
    def ns(self) -> int:
        """Returns the time that all readings cover: a little more or less than requested."""
        return max(self._looks[-1].to_ns - self._looks[0].from_ns, 1)

    @property
    def knows_running(self) -> bool:
        """Returns whether rows have the time that functions ran, instead of the time that passed in them."""
        return self._looks[-1].knows_running

    @property
    def records(self) -> int:
        return sum(look.records for look in self._looks)

    @property
    def lost(self) -> int:
        return sum(look.lost for look in self._looks)

    def rows(self) -> list[Row]:
        """Returns every function that was in a call."""
        rows: dict[int, Row] = {}
        running = self.knows_running
        for look in self._looks:
            for number, grown in look.functions.items():
                row = rows.get(number)
                if row is None:
                    row = rows[number] = Row(number, self._functions[number])
                row.add(grown, running=running)
        return list(rows.values())

    def name(self, number: int) -> str:
        return shown_name(self._functions.get(number, UNKNOWN)) if number else ""

    def waits(self, number: int) -> str:
        """Returns the kind of thing for which a function waits."""
        function = self._functions.get(number, UNKNOWN)
        return (function.waits_for if function.only_waits else "") or ""

    def cost_ns(self, rows: list[Row]) -> int:
        """Returns the approximate cost of recording, from the cost of a call."""
        return sum(row.calls * COSTS.get((self._engine, row.kind), COST_ELSE) for row in rows)

    @staticmethod
    def collections(rows: list[Row]) -> tuple[int, int]:
        """Returns how many garbage collections began, and how long they took."""
        gc = [row for row in rows if row.kind == GC]
        return sum(row.calls for row in gc), sum(row.total_ns for row in gc)


def _difference(now: tuple[int | None, ...], before: tuple[int | None, ...] | None) -> Growth:
    if before is None:
        return Growth(*now)  # type: ignore[arg-type]  # only later members may be None
    return Growth(*(None if a is None else max(a - (b or 0), 0) for a, b in zip(now, before, strict=True)))  # type: ignore[arg-type]
