"""The terminal: colours, widths of text, and progress. Imports little: the report after `vestige run` is made inside the
program's own process, where a module's name may be that of one of the program's.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

WIDTH = 80
WIDTH_MIN, WIDTH_MAX = 60, 120
# No colour but red and green, which every palette has dark enough for white and light enough for black.
STYLES = {"head": "1", "strong": "1", "hot": "1;31", "dim": "2", "worse": "31", "better": "32"}


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (ValueError, AttributeError):  # closed, or not quite a stream
        return False


def wants_colours(stream: TextIO | None) -> bool:
    """NO_COLOR goes before CLICOLOR_FORCE, and that before what the stream is."""
    env = os.environ
    if env.get("NO_COLOR"):
        return False
    if env.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return is_terminal(stream) and env.get("TERM", "dumb") != "dumb" and env.get("CLICOLOR", "1") != "0"


def width_of(stream: TextIO | None) -> int:
    """Columns to fill: 80, or those of the terminal within reason."""
    if not is_terminal(stream):
        return WIDTH
    assert stream is not None
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return WIDTH
    return min(max(columns, WIDTH_MIN), WIDTH_MAX) if columns else WIDTH


class Paint:
    """paint("text", "hot") for one stream: coloured, or as it was."""

    def __init__(self, stream: TextIO | None) -> None:
        self.on = wants_colours(stream)

    def __call__(self, text: str, style: str | None) -> str:
        if not self.on or not style or not text:
            return text
        return f"\033[{STYLES[style]}m{text}\033[0m"


# ---- text ------------------------------------------------------------------


def cells(text: str) -> int:
    """How many columns it takes: two for wide characters, none for those that combine."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    from unicodedata import category, east_asian_width

    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def clean(text: str) -> str:
    """On one line, and nothing in it that a terminal would obey."""
    text = " ".join(text.split())
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def cut(text: str, width: int) -> str:
    """Its beginning."""
    text = clean(text)
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return text + "…"


def cut_front(text: str, width: int) -> str:
    """Its end."""
    text = clean(text)
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[1:]
    return "…" + text


def fit(name: str, width: int) -> str:
    """A long name loses the part that tells least: a path its beginning, a C function's `… object>`."""
    return cut(name, width) if name.startswith("<built-in") else cut_front(name, width)


def pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


# ---- progress ----------------------------------------------------------------


class Progress:
    """A line on the terminal for what takes longer than a second; nothing elsewhere. Where rich is installed, its bar."""

    def __init__(self, what: str, before: float = 0, part: float = 1, *, rich: bool = True) -> None:
        """What is done is `part` of a whole of which `before` was done before."""
        self._what = clean(what)
        self._before = before
        self._part = part
        self._begun = time.monotonic()
        self._shown = False
        self._terminal = is_terminal(sys.stderr)
        self._rich = rich
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, share: float) -> None:
        if not self._terminal or time.monotonic() - self._begun < 1:
            return
        share = min(max(self._before + self._part * share, 0), 1)
        if not self._shown:
            self._shown = True
            self._begin_bar()
        if self._bar is not None:
            self._bar.update(self._task, completed=share)
            self._bar.refresh()
            return
        self._print(f" … {share:4.0%}")

    def tell(self, text: str) -> None:
        """Where nobody knows the share: what was done so far."""
        if self._terminal and self._bar is None and time.monotonic() - self._begun >= 1:
            self._shown = True
            self._print(f" … {text}")

    def _print(self, end: str) -> None:
        line = cut(self._what, width_of(sys.stderr) - len(end) - 1) + end
        print(f"\r{line}", end="", file=sys.stderr, flush=True)

    def _begin_bar(self) -> None:
        """rich's own thread is not needed: we are called often enough."""
        if not self._rich or os.environ.get("TERM", "dumb") == "dumb":
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
        except ImportError:
            return
        columns = [TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()]
        console = Console(stderr=True)
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, auto_refresh=False)
        self._bar.start()
        self._task = self._bar.add_task(cut(self._what, 40), total=1.0)

    def clear(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        self._shown = False
