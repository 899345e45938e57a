"""Lines of source: those of a function that a trace names.

A request names a definition of the trace, never a path. Only files of Python source are read: what a trace claims to be
the file of a function may be anything.
"""

from __future__ import annotations

import inspect
import io
import os
import stat
import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LINES_MAX = 200  # of a function
FILE_MAX = 4 << 20
FILES_KEPT = 64
SUFFIXES = (".py", ".pyw")
CHANGED = "the file was changed after the recording"
LONGER = f"the function goes on; the first {LINES_MAX} lines of it"


class Sources:
    """Reads each file once, as long as it does not change."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[tuple[int, int], list[str]]] = {}

    def lines(self, file: str | None, first: int, recorded_ns: int, folder: str = ".") -> dict[str, Any] | None:
        """The function that begins on that line; None where its source is not at hand. A file that is not named in
        full is looked for in `folder`."""
        if file is None or first < 1:
            return None
        path = file if os.path.isabs(file) else os.path.join(folder, file)
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_MAX:
                return None
            text = self._read(path, status)
        except (OSError, SyntaxError, ValueError, LookupError):  # no such encoding, or one of bytes to bytes
            return None
        if first > len(text):
            return None
        lines = block(text[first - 1 :])
        notes = [CHANGED] * (status.st_mtime_ns > recorded_ns) + [LONGER] * (len(lines) > LINES_MAX)
        return {
            "file": file,
            "first": first,
            "lines": lines[:LINES_MAX],
            "line": first,
            "note": "; ".join(notes) or None,
        }

    def _read(self, path: str, status: os.stat_result) -> list[str]:
        state = status.st_mtime_ns, status.st_size
        known = self._files.get(path)
        if known is not None and known[0] == state:
            return known[1]
        with open(path, "rb") as file:
            data = file.read(FILE_MAX + 1)
        if not path.endswith(SUFFIXES) and not is_script(data):
            raise ValueError("not a file of Python source")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        lines = data.decode(encoding, "replace").splitlines()
        if len(self._files) >= FILES_KEPT:
            self._files.clear()
        self._files[path] = state, lines
        return lines


def is_script(data: bytes) -> bool:
    """Whether its first line says that Python runs it."""
    line = data[:200].partition(b"\n")[0]
    return line.startswith(b"#!") and b"python" in line


def block(lines: Sequence[str]) -> list[str]:
    """The first lines, up to the end of the function or class that they begin with."""
    some = [line + "\n" for line in lines[: LINES_MAX + 1]]
    try:
        found = inspect.getblock(some)
    except (SyntaxError, IndentationError, tokenize.TokenError):
        found = some[:1]
    return [line.rstrip("\n") for line in found]
