"""Writes vestige's lines to standard error, inside a program that may close or replace it. The lines go past
sys.stderr, to the descriptor: a line that could not be written would stay in the stream's buffer, and make the
interpreter fail when it flushes that at its end. And they go only to the descriptor that was there when the recording
began: a program that closed it may have opened a file of its own since, which then has its number.
"""

from __future__ import annotations

import os
import sys
import time

from vestige.base.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

NUMBER = 2
PATIENCE_S = 5.0  # patience for a pipe that nobody reads
PAUSE_S = 0.01


def note() -> None:
    """Remembers the descriptor's current file; lines go only there."""
    global _first
    _first = _identity()


def is_there() -> bool:
    return _first is not None and _identity() == _first


def say(line: str) -> None:
    """Writes one line, if possible."""
    put(f"vestige: {printable(line)}\n")


def put(text: str) -> None:
    """Writes text that is fit for a terminal, if possible; never raises."""
    if not is_there():
        return
    encoding = getattr(sys.__stderr__, "encoding", None) or "utf-8"
    left = text.encode(encoding, "backslashreplace")
    until = time.monotonic() + PATIENCE_S
    while left:
        try:
            left = left[os.write(NUMBER, left) :]
        except BlockingIOError:
            if time.monotonic() > until:
                return
            time.sleep(PAUSE_S)
        except OSError:
            return


def flush(stream: TextIO | None) -> None:
    """Flushes the program's output, so that it comes before ours. If that fails, the interpreter reports it later."""
    try:
        stream.flush()  # type: ignore[union-attr]
    except Exception:
        pass


def _identity() -> tuple[int, int, int] | None:
    try:
        found = os.fstat(NUMBER)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_rdev


_first = _identity()


class Draft:
    """Collects text for standard error and writes it in one piece. print(), and code that asks for the width, use it
    as a stream.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []

    def write(self, text: str) -> None:
        self._parts.append(text)

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        return NUMBER

    def isatty(self) -> bool:
        return os.isatty(NUMBER)

    @property
    def text(self) -> str:
        return "".join(self._parts)
