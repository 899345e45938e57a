"""Lines of source code of the functions that a trace names.

A request names a definition of the trace, never a path. Only files of Python source are read, because a trace may name
any file. The server shows lines only on this machine, to the user, who may read the file anyway. A page in a file may
be sent to others: it gets lines only of files that the recording noted (see recording/metadata.py) and that have not
changed since.
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

    State = tuple[int, int]  # state of a file: time of its last change in ns, and its size

LINES_MAX = 200  # the most lines of a function
AROUND = 6  # lines shown before and after a mark's line
FILE_MAX = 4 << 20
FILES_KEPT = 64
SUFFIXES = (".py", ".pyw")
CHANGED = "the file was changed after the recording"
LONGER = f"only the first {LINES_MAX} lines of the function are shown"


class Sources:
    """Reads each file once, unless it changes."""

    def __init__(self, *, only_noted: bool = False) -> None:
        self._only_noted = only_noted
        self._files: dict[str, tuple[State, list[str]]] = {}
        self.left_out: set[str] = set()  # readable files that differ from the recording's note

    def lines(
        self,
        file: str | None,
        line: int,
        recorded_ns: int,
        folder: str = ".",
        noted: State | None = None,
        *,
        around: bool = False,
    ) -> dict[str, Any] | None:
        """Returns the function that begins on a line, or the lines around it; None if the source is not available. A
        relative path is looked up in `folder`.
        """
        if file is None or line < 1:
            return None
        path = file if os.path.isabs(file) else os.path.join(folder, file)
        try:
            state, text = self._read(path, noted)
        except (OSError, SyntaxError, ValueError, LookupError):  # LookupError: unknown encoding
            return None
        if line > len(text):
            return None
        first = max(line - AROUND, 1) if around else line
        lines = text[first - 1 : line + AROUND] if around else block(text[first - 1 :])
        notes = [CHANGED] * (state[0] > recorded_ns) + [LONGER] * (len(lines) > LINES_MAX)
        return {
            "file": file,
            "first": first,
            "lines": lines[:LINES_MAX],
            "line": line,
            "note": "; ".join(notes) or None,
        }

    def _read(self, path: str, noted: State | None) -> tuple[State, list[str]]:
        """Opens the file, then checks and reads the opened file, because its name may lead to another file later."""
        with open(path, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            state = status.st_mtime_ns, status.st_size
            if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_MAX:
                raise ValueError("not a file of source")
            if not path.endswith(SUFFIXES) and not is_script(file.read(200)):
                raise ValueError("not a file of Python source")
            if self._only_noted and state != noted:
                self.left_out.add(path)
                raise ValueError("changed since the recording, or not noted by it")
            known = self._files.get(path)
            if known is not None and known[0] == state:
                return known
            file.seek(0)
            data = file.read(FILE_MAX + 1)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        lines = data.decode(encoding, "replace").splitlines()
        if len(self._files) >= FILES_KEPT:
            self._files.clear()
        self._files[path] = state, lines
        return state, lines


def _open_without_waiting(path: str, flags: int) -> int:
    """Opens a file without waiting if the path is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def is_script(data: bytes) -> bool:
    """Returns whether the first line says that Python runs the script."""
    line = data[:200].partition(b"\n")[0]
    return line.startswith(b"#!") and b"python" in line


def block(lines: Sequence[str]) -> list[str]:
    """Returns the lines up to the end of the function or class with which they begin."""
    some = [line + "\n" for line in lines[: LINES_MAX + 1]]
    try:
        found = inspect.getblock(some)
    except (SyntaxError, IndentationError, tokenize.TokenError):
        found = some[:1]
    return [line.rstrip("\n") for line in found]
