"""The last seconds of a program, added up from the looks that fell into them. Nothing older is kept."""

from __future__ import annotations

from collections import deque

from vestige.cli.report.causes import COST_ELSE, COSTS
from vestige.cli.report.data import shown_name
from vestige.reading.kinds import GC, NATIVE
from vestige.reading.waits import waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vestige._core import Tally
    from vestige.reading.libraries import Function

UNKNOWN = (0, "(not defined)", "", "", 0)


class Row:
    """A function in the last seconds."""

    def __init__(self, number: int, function: Function) -> None:
        self.number = number
        self.kind = function[0]
        self.shown = shown_name(function)
        self.waits = waits_for(function[1]) if self.kind == NATIVE else ""
        self.calls = self.own_ns = self.total_ns = self.bytes = 0
        self.passed_ns = 0  # in it alone, whether its thread ran or not


class Window:
    """What looks say together, as long as they are not older than `last_ns`."""

    def __init__(self, last_ns: int, engine: str) -> None:
        self._last_ns = last_ns
        self._engine = engine
        self._looks: deque[dict[str, Any]] = deque()
        self._functions: dict[int, Function] = {}
        self.threads: list[dict[str, Any]] = []

    def add(self, look: dict[str, Any], tally: Tally) -> None:
        self._looks.append(look)
        while self._looks[0]["to_ns"] <= look["to_ns"] - self._last_ns:
            self._looks.popleft()
        wanted = {row[0] for each in self._looks for row in each["functions"]}
        wanted.update(thread["id"] for thread in look["threads"])
        # A function is defined once: what is known of it stays, but only as long as it is shown.
        known = self._functions
        self._functions = {one: known.get(one) or tally.function(one) or UNKNOWN for one in wanted if one}
        self.threads = look["threads"]

    @property
    def ns(self) -> int:
        """How long the looks are together: a little more or less than was asked for."""
        return max(int(self._looks[-1]["to_ns"]) - int(self._looks[0]["from_ns"]), 1)

    @property
    def knows_running(self) -> bool:
        """Whether rows have the time that functions ran, and not the time that passed in them."""
        return bool(self._looks[-1]["knows_running"])

    @property
    def records(self) -> int:
        return sum(int(look["records"]) for look in self._looks)

    @property
    def lost(self) -> int:
        return sum(int(look["lost"]) for look in self._looks)

    def rows(self) -> list[Row]:
        """Every function that was in a call."""
        rows: dict[int, Row] = {}
        running = self.knows_running
        for look in self._looks:
            for number, calls, own_ns, total_ns, count, own_running_ns, total_running_ns in look["functions"]:
                row = rows.get(number)
                if row is None:
                    row = rows[number] = Row(number, self._functions[number])
                row.calls += calls
                row.own_ns += own_running_ns if running else own_ns
                row.total_ns += total_running_ns if running else total_ns
                row.passed_ns += own_ns
                row.bytes += count
        return list(rows.values())

    def name(self, number: int) -> str:
        return shown_name(self._functions.get(number, UNKNOWN)) if number else ""

    def waits(self, number: int) -> str:
        """What a function that only waits waits for."""
        function = self._functions.get(number, UNKNOWN)
        return waits_for(function[1]) if function[0] == NATIVE else ""

    def cost_ns(self, rows: list[Row]) -> int:
        """What recording took, by what a call takes about."""
        return sum(row.calls * COSTS.get((self._engine, row.kind), COST_ELSE) for row in rows)

    @staticmethod
    def collections(rows: list[Row]) -> tuple[int, int]:
        """How many garbage collections began, and how long they took."""
        gc = [row for row in rows if row.kind == GC]
        return sum(row.calls for row in gc), sum(row.total_ns for row in gc)
