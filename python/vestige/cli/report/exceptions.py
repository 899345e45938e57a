"""`vestige report --exceptions`: which exceptions were raised, where, how often, and who caught them."""

from __future__ import annotations

from types import SimpleNamespace

from vestige.base.quantities import plural
from vestige.base.terminal import Paint, fit, width_of
from vestige.reading.layout import show
from vestige.reading.libraries import LIBRARY, OWN, classify

from .data import shown_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable
    from typing import Any, TextIO

    from vestige._core import Rows, Trace
    from vestige.reading.inputs import Source

    from .command import Reading

COUNT = 9  # columns of a number


class Exceptions:
    """The exceptions of all traces that are read."""

    def __init__(self) -> None:
        # By type, file, line, shown place, raised in, caught in, end; and whether it stayed inside a library.
        self._counts: dict[tuple[str, str, int, str, str, str, str, bool], int] = {}
        self.notes: dict[str, None] = {}

    def add(self, source: Source, trace: Trace, rows: Rows, left_out: Iterable[int]) -> None:
        """Adds rows of the table `exceptions`."""
        functions = trace.functions()
        kinds = classify(functions, source.metadata)[0]
        names = ["" if function is None else shown_name(function) for function in functions]
        hidden = set(left_out)
        for row in rows:
            what = functions[row.func] if row.func < len(functions) else None
            raised_in, caught_in = row.raised_in or 0, row.caught_in or 0
            if what is None or raised_in in hidden:
                continue
            _, name, file, shown, line = what
            inside = kinds[raised_in] == LIBRARY and row.end == "caught" and kinds[caught_in] != OWN
            place = (name, file, line, f"{shown}:{line}", names[raised_in], names[caught_in], row.end, inside)
            self._counts[place] = self._counts.get(place, 0) + row.exceptions
        if _sees_late(source.metadata):
            self.notes["turbo sees only those that left a function on this Python; --engine safe sees all"] = None

    def rows(self) -> list[SimpleNamespace]:
        """Returns the rows: exceptions of the program first, then by frequency."""
        ranked = sorted(self._counts.items(), key=lambda item: (item[0][7], -item[1], item[0]))
        return [
            SimpleNamespace(
                exception=name,
                file=file,
                line=line,
                raised_in=raised_in or None,
                caught_in=caught_in or None,
                end=end,
                count=count,
                library=inside,
            )
            for (name, file, line, _, raised_in, caught_in, end, inside), count in ranked
        ]

    def places(self, *, libraries: bool) -> list[tuple[str, int, list[tuple[str, int]]]]:
        """Returns which exceptions were raised where, how often, and how they ended; the most frequent first."""
        found: dict[str, dict[str, int]] = {}
        for (name, _, _, shown, raised_in, caught_in, end, inside), count in self._counts.items():
            if inside and not libraries:
                continue
            where = f"{name} at {shown}" + (f" in {raised_in.rpartition(': ')[2]}" if raised_in else "")
            became = {"caught": f"caught in {caught_in or '?'}", "not caught": "not caught"}.get(
                end, "not known by whom"
            )
            ends = found.setdefault(where, {})
            ends[became] = ends.get(became, 0) + count
        ranked = sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0]))
        return [(where, sum(e.values()), sorted(e.items(), key=lambda i: (-i[1], i[0]))) for where, e in ranked]

    def kept_by_libraries(self) -> int:
        return sum(count for key, count in self._counts.items() if key[7])


def _sees_late(metadata: dict[str, Any]) -> bool:
    """Returns whether the engine saw exceptions only when they left a function: turbo, before sys.monitoring."""
    version = tuple(int(part) for part in metadata.get("vestige.python", "").split(".")[:2] if part.isdigit())
    return metadata.get("vestige.engine") == "turbo" and () < version < (3, 12)


def show_exceptions(exceptions: Exceptions, reading: Reading, options: Namespace, out: TextIO) -> None:
    """Shows exceptions by place, with their ends; or a table of the requested columns."""
    paint, rows, everything = Paint(out), options.rows, options.all
    if options.columns or options.sort is not None:
        found = [row for row in reading.rows() if everything or not row.library]
        show(reading.columns, found, rows, out, more="more exceptions")
    else:
        _show_places(exceptions, rows, everything, out)
    kept = exceptions.kept_by_libraries()
    if kept and not everything:
        print(f"{kept:,} more that libraries raised and caught by themselves; --all shows them", file=out)
    for note in exceptions.notes:
        print(paint(note, "dim"), file=out)


def _show_places(exceptions: Exceptions, rows: int, everything: bool, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    places = exceptions.places(libraries=everything)
    if places:
        print(paint(f"{'count':>{COUNT}}  exception, where it was raised, and who caught it", "head"), file=out)
    for where, count, ends in places[:rows]:
        print(f"{count:>{COUNT},}  {fit(where, width - COUNT - 2)}", file=out)
        for became, times in ends:
            number = f"{times:,}" if len(ends) > 1 else ""
            print(f"{number:>{COUNT}}    {fit(became, width - COUNT - 4)}", file=out)
    if not places:
        print("none was raised" if not exceptions.kept_by_libraries() else "none of the program's own", file=out)
    if places[rows:]:
        print(f"{plural(len(places) - rows, 'more place')}; -n shows more", file=out)
