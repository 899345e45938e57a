"""The lines from which functions are called, for the tree and for findings. The report after `vestige run` uses this,
so it imports little.
"""

from __future__ import annotations

from vestige.reading.kinds import NATIVE
from vestige.reading.labels import plain_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from vestige._core import Function

    from .findings import Finding

TABLE = "lines"
WORTH = 0.1  # of the time of the calls between two functions: a line with less is not named
MOST = 3  # lines that are named
# members of a finding's `where`: a function, and another that it calls
PAIRS = (
    ("function", "calls"),
    ("function", "waits_in"),
    ("function", "inside"),
    ("called_by", "function"),
    ("imported_by", "module"),
)


class Lines:
    """The lines of each function from which another is called, with the time of the calls whose line is known."""

    def __init__(self, shown_name: Callable[[Function], str]) -> None:
        self._shown_name = shown_name
        self._found: dict[tuple[str, str], dict[tuple[str, int], int]] = {}
        self._within: dict[str, dict[tuple[str, int], int]] = {}

    def add(self, rows: Iterable[Any], functions: Sequence[Function | None]) -> None:
        for row in rows:
            caller, function = functions[row.caller], functions[row.func]
            if caller is None or function is None or row.line <= 0:
                continue
            names = [self._shown_name(function)]
            if function.kind == NATIVE:
                names.append(plain_name(function.name))
            for name in names:
                lines = self._found.setdefault((self._shown_name(caller), name), {})
                place = caller.shown_file, row.line
                lines[place] = lines.get(place, 0) + row.total_ns + row.calls
            if not row.through:
                lines = self._within.setdefault(self._shown_name(caller), {})
                place = caller.shown_file, row.line
                lines[place] = lines.get(place, 0) + row.total_ns + row.calls

    def between(self, caller: str, function: str) -> list[tuple[str, int]]:
        """Returns the files and lines where a function is called by another; most time first, all that matter."""
        return _most(self._found.get((caller, function), {}))

    def within(self, caller: str) -> list[tuple[str, int]]:
        """Returns the files and lines where a function calls anything, likewise."""
        return _most(self._within.get(caller, {}))

    def text(self, caller: str, function: str) -> str:
        """Returns `app.py:17`, or `app.py:17 and 21`; "" if no line is known."""
        return _text(self.between(caller, function))


def _most(lines: dict[tuple[str, int], int]) -> list[tuple[str, int]]:
    least = WORTH * sum(lines.values())
    return sorted((place for place, ns in lines.items() if ns >= least), key=lambda place: -lines[place])[:MOST]


def _text(places: Sequence[tuple[str, int]]) -> str:
    return f"{places[0][0]}:{' and '.join(str(line) for _, line in places)}" if places else ""


def name_line(finding: Finding, lines: Lines) -> None:
    """Says from which line a finding's function makes the calls that the finding is about; where other functions are in
    between, from which lines it makes most calls.
    """
    where = finding.where
    for caller, called in PAIRS:
        if not where.get(caller) or not where.get(called):
            continue
        name = where[caller]
        places = lines.between(name, where[called]) or lines.within(name)
        if not places:
            continue
        finding.text = finding.text.replace(name, f"{_text(places)}: {name.rpartition(': ')[2]}", 1)
        where[f"{caller}_calls_at"] = [line for _, line in places]
        return
