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
    from .sites import Sites

TABLE = "lines"
WORTH = 0.1  # of the time of the calls between two functions: a line with less is not named
MOST = 3  # lines that are named
TAKES = ("__enter__", "acquire")  # by which a lock is taken
# members of a finding's `where`: a function, and another that it calls
PAIRS = (
    ("function", "calls"),
    ("function", "waits_in"),
    ("function", "inside"),
    ("called_by", "through"),
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


def name_line(finding: Finding, lines: Lines, sites: Sites) -> None:
    """Says from which line a finding's function makes the calls that the finding is about: as measured, or as its
    source has it; where other functions are in between, from which lines it makes most calls. Of some functions, other
    lines say more.
    """
    where = finding.where
    more = {"computes": sites.loop, "spends": lines.within, "raises": sites.raises, "tries": sites.tries}
    for member, find in more.items():
        if where.get(member):
            _write(finding, "function", find(where[member]))
    takes = [place for name in TAKES for place in lines.between(where.get("waiter", ""), name)]
    if takes and where["waiter"] != where["function"]:
        _write(finding, "waiter", takes)
        takes = []
    for caller, called in PAIRS:
        if not where.get(caller) or not where.get(called):
            continue
        name, other = where[caller], where[called]
        places = lines.between(name, other) or sites.calls(name, other) or lines.within(name)
        if _write(finding, caller, list(dict.fromkeys([*takes, *places]))):
            return
    _write(finding, "function", takes)


def _write(finding: Finding, member: str, places: Sequence[tuple[str, int]]) -> bool:
    """Writes the lines instead of the line in which a function of `where` begins."""
    if not places:
        return False
    name = finding.where[member]
    shown = " and ".join(f"{file}:{line}" for file, line in places)
    finding.text = finding.text.replace(name, f"{shown}: {name.rpartition(': ')[2]}", 1)
    finding.where[f"{member}_calls_at"] = [line for _, line in places]
    return True
