"""Lines of source: those of a function that a trace names.

A request names a definition of the trace, never a path. Only files of Python source are read: what a trace claims to be
the file of a function may be anything. What the server shows stays on this machine, with the user who may read the file
anyway. A page in a file is made to be sent: it gets lines only of files that the recording noted (see
recording/metadata.py) and that are still as they were, since a trace made by somebody else may name any file here.
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

    State = tuple[int, int]  # of a file: when it was written, in ns, and its size

LINES_MAX = 200  # of a function
AROUND = 6  # lines before and behind one
FILE_MAX = 4 << 20
FILES_KEPT = 64
SUFFIXES = (".py", ".pyw")
CHANGED = "the file was changed after the recording"
LONGER = f"only the first {LINES_MAX} lines of the function are shown"


class Sources:
    """Reads each file once, as long as it does not change."""

    def __init__(self, *, only_noted: bool = False) -> None:
        self._only_noted = only_noted
        self._files: dict[str, tuple[State, list[str]]] = {}
        self.left_out: set[str] = set()  # files that could be read, and are not as was noted

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
        """The function that begins on that line, or the lines `around` it; None where the source is not at hand. A file
        that is not named in full is looked for in `folder`."""
        if file is None or line < 1:
            return None
        path = file if os.path.isabs(file) else os.path.join(folder, file)
        try:
            state, text = self._read(path, noted)
        except (OSError, SyntaxError, ValueError, LookupError):  # LookupError: no such encoding of text
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
        """Checks and reads the file that was opened, whatever its name leads to by then."""
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            state = status.st_mtime_ns, status.st_size
            if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_MAX:
                raise ValueError("not a file of source")
            if not path.endswith(SUFFIXES) and not is_script(file.read(200)):
                raise ValueError("not a file of Python source")
            if self._only_noted and state != noted:
                self.left_out.add(path)
                raise ValueError("not as the recording noted it")
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


def _open_at_once(path: str, flags: int) -> int:
    """Does not wait where the path is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


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
