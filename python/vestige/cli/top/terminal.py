"""The terminal while it shows a live table: uses the alternate screen, reads keys without echo, and restores everything
at the end. rich is not used: this package has no dependencies, rich reads no keys and does not handle Ctrl-Z, and
formatting its table takes 10 ms instead of 0.1 ms.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty

from vestige.base.terminal import Screen, is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, NoReturn

BEGIN, END = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"
HOME, CLEAR_LINE, CLEAR_REST = "\033[H", "\033[K", "\033[J"
SMALLEST = (20, 4)  # columns and rows; a smaller terminal is treated as if it had these
LOOKS = 0.2  # seconds between checks of the terminal's size


def can_be_live() -> bool:
    """Returns whether a table can be drawn again and again on stdout."""
    return is_terminal(sys.stdout) and os.environ.get("TERM", "dumb") != "dumb"


class Live:
    """A context in which the table is live. Keys come from stdin, if stdin is a terminal."""

    def __init__(self) -> None:
        self._raw: Any = sys.stdout.stream if isinstance(sys.stdout, Screen) else sys.stdout
        self._keys = sys.stdin.fileno() if is_terminal(sys.stdin) else None
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Live:
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._handlers[number] = signal.signal(number, _interrupt)
        self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._suspend)
        self._begin()
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._end()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def _begin(self) -> None:
        if self._keys is not None:
            self._before = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys)
        self._write(BEGIN)

    def _end(self) -> None:
        if self._keys is not None and self._before is not None:
            termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)
        self._write(END)

    def _suspend(self, number: int, frame: FrameType | None) -> None:
        """Handles Ctrl-Z: gives the shell its screen back; after `fg`, draws ours again."""
        self._end()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._begin()

    def _write(self, text: str) -> None:
        try:
            self._raw.write(text)
            self._raw.flush()
        except (OSError, ValueError):  # the terminal is gone
            pass

    @property
    def size(self) -> tuple[int, int]:
        """Returns the current columns and rows."""
        try:
            columns, rows = os.get_terminal_size(self._raw.fileno())
        except (OSError, ValueError):
            columns, rows = 0, 0
        return max(columns or 80, SMALLEST[0]), max(rows or 24, SMALLEST[1])

    def draw(self, lines: Sequence[str], last: str) -> None:
        """Draws lines from the top, and a line in the last row. The lines go through the Screen of stdout, which cleans
        them.
        """
        rows = self.size[1]
        self._raw.write(HOME)
        for line in lines[: rows - 1]:
            sys.stdout.write(line)
            self._raw.write(f"{CLEAR_LINE}\n")
        self._raw.write(f"{CLEAR_REST}\033[{rows};1H")
        sys.stdout.write(last)
        self._raw.write(CLEAR_LINE)
        self._raw.flush()

    def wait(self, until: float) -> str:
        """Returns pressed keys immediately; "" at the time `until` (of time.monotonic()), or when the size
        has changed.
        """
        size = self.size
        while True:
            left = until - time.monotonic()
            if left <= 0 or size != self.size:
                return ""
            if self._keys is None:
                time.sleep(min(left, LOOKS))
            elif select.select([self._keys], [], [], min(left, LOOKS))[0]:
                keys = os.read(self._keys, 64)
                if not keys:  # the terminal is gone
                    raise KeyboardInterrupt
                return keys.decode(errors="ignore")


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
