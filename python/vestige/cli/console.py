"""What the commands share: argparse in our manner, errors in a line, and a progress line."""

from __future__ import annotations

import argparse
import sys
import time

from . import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Errors are one line, nothing is abbreviated, examples close the help."""

    def __init__(self, command: str, summary: str, usage: str, examples: str) -> None:
        super().__init__(
            prog=f"vestige {command}",
            usage=f"vestige {command} {usage}",
            description=summary,
            epilog=f"examples:\n{examples}",
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message}; see {self.prog} --help", code=2)


def explain(path: str, error: Exception) -> str:
    """`t.vst: No such file or directory`, whichever way the error puts it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{path}: {error.strerror}"
    return str(error) if path in str(error) else f"{path}: {error}"


class Progress:
    """A line on the terminal for what takes longer than a second; nothing elsewhere."""

    def __init__(self, what: str, before: float = 0, part: float = 1) -> None:
        """What is done is `part` of a whole of which `before` was done before."""
        self._what = what
        self._before = before
        self._part = part
        self._begun = time.monotonic()
        self._shown = False
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, share: float) -> None:
        if self._terminal and time.monotonic() - self._begun > 1:
            self._shown = True
            share = self._before + self._part * share
            print(f"\r{self._what} … {share:4.0%}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
