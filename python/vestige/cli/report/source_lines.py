"""`vestige report --lines FUNC`: the source of a function, with the calls and the time of each line that makes calls.

Calls of a function that is called from one line are all of that line. Of a function that several lines call, the trace
knows the line of the long calls and of a part of the short ones; the others are estimated by these, and marked.
"""

from __future__ import annotations

import json
import os
import sys

from vestige.base.failure import Failure
from vestige.base.quantities import duration
from vestige.base.terminal import Paint, cut, width_of
from vestige.reading.kinds import NATIVE, PYTHON
from vestige.reading.labels import plain_name
from vestige.viewer.sources import Sources

from .data import is_named, shown_name
from .lines import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable
    from typing import Any

    from vestige._core import Function
    from vestige.reading.inputs import Inputs, Source


class Called:
    """The calls of one function by one line."""

    def __init__(self, line: int, name: str, calls: int, ns: int, is_estimate: bool) -> None:
        self.line, self.name, self.calls, self.ns, self.is_estimate = line, name, calls, ns, is_estimate


class Chosen:
    """A function, and what its lines call."""

    def __init__(self, function: Function, source: Source) -> None:
        self.function, self.source = function, source
        self.found: list[Called] = []

    def add(self, name: str, calls: int, ns: int, lines: dict[int, list[int]]) -> None:
        """Adds calls of a function: `lines` has the calls and the time whose lines are known."""
        weights = {line: max(known[1], 1) for line, known in lines.items()}
        whole = sum(weights.values())
        for line, weight in weights.items():
            is_estimate = len(lines) > 1 and sum(known[0] for known in lines.values()) < calls
            if is_estimate or len(lines) == 1:
                line_calls, line_ns = round(calls * weight / whole), round(ns * weight / whole)
            else:
                line_calls, line_ns = lines[line]
            self.found.append(Called(line, name, line_calls, line_ns, is_estimate))


def _read(source: Source, name: str, progress: Any) -> list[Chosen]:
    trace = source.open()
    functions = trace.functions()
    chosen = {
        number: Chosen(one, source)
        for number, one in enumerate(functions)
        if one is not None and one.kind == PYTHON and (is_named(one, name) or shown_name(one) == name)
    }
    if not chosen:
        return []
    read = trace.tables(["calls", TABLE], progress=progress)
    sums: dict[tuple[int, int], list[int]] = {}
    rows = list(read["calls"])
    for row in rows:
        caller = None if row.parent is None else rows[row.parent].func
        if caller in chosen and row.awaits is None:
            one = sums.setdefault((caller, row.func), [0, 0])
            one[0] += row.calls
            one[1] += row.total_ns
    lines: dict[tuple[int, int], dict[int, list[int]]] = {}
    for row in read[TABLE]:
        if row.caller in chosen and not row.through:
            known = lines.setdefault((row.caller, row.func), {}).setdefault(row.line, [0, 0])
            known[0] += row.calls
            known[1] += row.total_ns
    for (caller, called), (calls, ns) in sums.items():
        function = functions[called]
        if function is not None and (caller, called) in lines:
            shown = plain_name(function.name) if function.kind == NATIVE else function.name
            chosen[caller].add(shown, calls, ns, lines[caller, called])
    return list(chosen.values())


def show_lines(inputs: Inputs, options: Namespace) -> int:
    found: list[Chosen] = []
    for source in inputs.sources:
        found += _read(source, options.lines, None)
    if not found:
        raise Failure(f"--lines {options.lines}: no Python function of this name was called", code=2)
    if options.format == "json":
        json.dump({"functions": [_document(one) for one in found]}, sys.stdout, indent=1)
        print()
        return int(inputs.failed)
    width, paint = width_of(sys.stdout), Paint(sys.stdout)
    for one in found:
        for line in _text(one, width, paint):
            print(line)
    return int(inputs.failed)


def _document(one: Chosen) -> dict[str, Any]:
    lines = [
        {"line": c.line, "calls": c.name, "count": c.calls, "total_ns": c.ns, "estimated": c.is_estimate}
        for c in sorted(one.found, key=lambda c: (c.line, -c.ns))
    ]
    return {"function": one.function.name, "file": one.function.file, "line": one.function.line, "lines": lines}


def _text(one: Chosen, width: int, paint: Paint) -> Iterable[str]:
    function = one.function
    by_line: dict[int, list[Called]] = {}
    for called in sorted(one.found, key=lambda called: -called.ns):
        by_line.setdefault(called.line, []).append(called)
    yield paint(shown_name(function), "strong")
    yield paint(f"{'calls':>10}{'time':>10}  line", "head")
    folder = os.path.dirname(one.source.path) or "."
    text = Sources().lines(function.file, function.line, one.source.facts["end_ns"], folder)
    if text is None:
        for line, those in sorted(by_line.items()):
            yield _row(those, line, ", ".join(called.name for called in those), width)
        yield f"the source of {function.file} cannot be read here"
        return
    for at, words in enumerate(text["lines"]):
        yield _row(by_line.get(text["first"] + at, []), text["first"] + at, words.expandtabs(4), width)
    if text["note"]:
        yield text["note"]


def _row(those: list[Called], line: int, words: str, width: int) -> str:
    indent = " " * min(len(words) - len(words.lstrip()), width // 2)
    head = f"{_figures(those)}  {line:>4}  {indent}"
    return head + cut(words.strip(), max(width - len(head), 12))


def _figures(those: list[Called]) -> str:
    if not those:
        return " " * 20
    about = "~" if any(called.is_estimate for called in those) else ""
    calls, ns = sum(called.calls for called in those), sum(called.ns for called in those)
    return f"{about + format(calls, ','):>10}{about + duration(ns):>10}"
