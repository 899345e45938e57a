"""Shows source code around a line or of a function, from files in the folder only."""

from __future__ import annotations

import os

from vestige.base.failure import Failure, explain
from vestige.reading.kinds import PYTHON

from .bounded import Answer
from .calls import matches
from .folder import open_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .folder import Folder

BYTES_MAX = 4 << 20  # limit for the size of a file
BEFORE = 2  # lines that are shown before a function


def source(folder: Folder, trace: str, place: str, context: int, max_tokens: int) -> str:
    """Answers with source code. `place` is `file.py:12`, or a function of the trace. The answer begins with the trace,
    if one is given.
    """
    file, colon, number = place.rpartition(":")
    is_line = bool(colon) and number.strip().isdigit()
    about = f"{folder.id_of(folder.trace(trace))}: " if trace or not is_line else ""
    if is_line:
        line = int(number)
        path = folder.resolve(file)
        first = line - context
    else:
        path, line = _find(folder, trace, place)
        first = line - BEFORE
    lines = _read(folder, path)
    if not 0 < line <= len(lines):
        raise Failure(f"{folder.id_of(path)} has {len(lines):,} lines, and no line {line:,}")
    answer = Answer(max_tokens)
    answer.add(f"{about}{folder.id_of(path)}, {len(lines):,} lines")
    first = max(first, 1)
    for at, text in enumerate(lines[first - 1 : line + context], first):
        answer.add(f"{at:>6}{'>' if at == line else ' '} {text.expandtabs(4)}")
    return answer.text("ask for a later line, or with a larger max_tokens")


def _find(folder: Folder, trace: str, function: str) -> tuple[str, int]:
    """Returns the file and the line of a function, according to the trace."""
    trace_path = folder.trace(trace)
    found: dict[tuple[str, int], str] = {}
    for known in open_source(folder, trace_path).open().functions():
        if known is None or known.kind != PYTHON:
            continue
        if matches(f"{known.shown_file}:{known.line}: {known.name}", known.name, function):
            found[os.path.realpath(known.file), known.line] = known.name
    inside = {place: name for place, name in found.items() if folder.holds(place[0])}
    if not inside:
        where = "is outside of the folder that this server may read" if found else "is not in the trace"
        raise Failure(f"the source of {function} {where}")
    if len(inside) > 1:
        places = ", ".join(f"{folder.id_of(path)}:{line}" for path, line in sorted(inside)[:10])
        raise Failure(f"several functions are called {function}: ask for one of {places}")
    return next(iter(inside))


def _read(folder: Folder, path: str) -> list[str]:
    try:
        if not os.path.isfile(path):
            raise Failure(f"{folder.id_of(path)} is no file")
        with open(path, "rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise Failure(explain(folder.id_of(path), error)) from None
    if len(data) > BYTES_MAX or b"\0" in data:
        raise Failure(f"{folder.id_of(path)} is no source code")
    return data.decode("utf-8", "replace").splitlines()
