"""The terminal: which text may be written to it, colours, widths of text, and progress. Imports little, because the
report after `vestige run` is made inside the program's own process, where a module of the program may have the name of
one that we would import.
"""

from __future__ import annotations

import os
import sys
import time

from vestige.base.failure import Failure

from .printable import one_line as clean
from .printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, TextIO

WIDTH = 80
WIDTH_MIN, WIDTH_MAX = 60, 120
UNBOUNDED = 1 << 20  # columns where a program reads the output, or a pager that scrolls
# Only red and green: every palette has them dark enough for a white background and light enough for a black one.
STYLES = {"head": "1", "strong": "1", "hot": "1;31", "dim": "2", "worse": "31", "better": "32"}


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (ValueError, AttributeError):  # the stream is closed, or not quite a stream
        return False


def wants_colours(stream: TextIO | None) -> bool:
    """NO_COLOR wins over CLICOLOR_FORCE, which wins over the kind of stream."""
    env = os.environ
    if env.get("NO_COLOR"):
        return False
    if env.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return is_terminal(stream) and env.get("TERM", "dumb") != "dumb" and env.get("CLICOLOR", "1") != "0"


def width_of(stream: TextIO | None) -> int:
    """Returns how many columns a line may have: those of the terminal, within limits. Other output is not cut."""
    return line_width(stream) if is_terminal(stream) else UNBOUNDED


def line_width(stream: TextIO | None) -> int:
    """Returns how many columns a list or prose should fill: those of the terminal, within limits, else 80."""
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
        self.on = isinstance(stream, Screen) and wants_colours(stream)  # other streams do not understand our marks

    def __call__(self, text: str, style: str | None) -> str:
        if not self.on or not style or not text:
            return text
        return f"{_MARK}{style}\0{text}{_MARK}\0"


# ---- output ------------------------------------------------------------------

_MARK = f"\0{os.urandom(8).hex()}:"  # begins a style; random in each process, so no trace can contain it


class Screen:
    """A stream that passes on only text and our own colours. In the command, sys.stdout and sys.stderr are screens.
    Output that must not change, such as CSV for another program, goes to `exact(stream)`.
    """

    def __init__(self, stream: TextIO | None, name: str = "stderr", *, exact: bool = False) -> None:
        self.stream = stream
        self.name = name
        self._exact = exact

    def write(self, text: str) -> int:
        safe = text if self._exact or text.isprintable() or text == "\n" else _screened(text)
        try:
            if self.stream is None:
                raise OSError(9, "it is closed")
            self.stream.write(safe)
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:  # a ValueError means that it was closed meanwhile
            self._fail(error)
        return len(text)

    def flush(self) -> None:
        try:
            if self.stream is not None:
                self.stream.flush()
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Errors on stderr are ignored, because there is no other place to report them."""
        if self.name != "stderr":
            raise Failure(f"{self.name} cannot be written: {getattr(error, 'strerror', None) or error}") from None

    def isatty(self) -> bool:
        return is_terminal(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Screens:
    """Makes sys.stdout and sys.stderr screens while the block runs."""

    def __enter__(self) -> None:
        self._before = sys.stdout, sys.stderr
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")
        sys.stdout, sys.stderr = Screen(sys.stdout, "stdout"), Screen(sys.stderr)

    def __exit__(self, *exc: object) -> None:
        sys.stdout, sys.stderr = self._before


def exact(stream: TextIO) -> TextIO:
    """Returns where to write output that a program reads byte for byte. On a terminal, where people read, this stays a
    screen.
    """
    if not isinstance(stream, Screen) or stream.isatty():
        return stream
    return Screen(stream.stream, stream.name, exact=True)  # type: ignore[return-value]


def _screened(text: str) -> str:
    """Escapes control characters except newlines, and translates style marks to ANSI."""
    first, *styled = text.split(_MARK)
    parts = [_lines(first)]
    for part in styled:
        style, _, rest = part.partition("\0")
        parts.append(f"\033[{STYLES.get(style, '0')}m{_lines(rest)}")
    return "".join(parts)


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


# ---- text ------------------------------------------------------------------


def cells(text: str) -> int:
    """Returns how many columns a character takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    from unicodedata import category, east_asian_width

    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Returns as much of the beginning of a text as fits."""
    text = clean(text)
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return text + "…"


def cut_front(text: str, width: int) -> str:
    """Returns as much of the end of a text as fits."""
    text = clean(text)
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[1:]
    return "…" + text


def fit(name: str, width: int) -> str:
    """Cuts a name where it says least: a name in several parts (a path, a function with its file, a module in a
    package) at the beginning, other names at the end.
    """
    in_parts = "/" in name or "): " in name or ("." in name and not name.startswith("<"))
    return cut_front(name, width) if in_parts else cut(name, width)


def point(text: str, width: int, sign: str = "•") -> list[str]:
    """Yields the lines of a point in a list, folded between words at the screen's width."""
    lines, line = [], sign
    for word in text.split():
        if len(line) + 1 + len(word) > width and line.strip() not in (sign, ""):
            lines.append(line)
            line = " "
        line += f" {word}" if line else word
    return [*lines, line]


def pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


# ---- progress ----------------------------------------------------------------


class Progress:
    """Shows a line on the terminal for jobs that take longer than a second, or rich's bar if it is installed. Shows
    nothing elsewhere. As a context manager, clears the line at its end.
    """

    def __init__(self, what: str, before: float = 0, part: float = 1, *, rich: bool = True) -> None:
        """This job is the share `part` of a whole, of which the share `before` is already done."""
        self._what = clean(what)
        self._before = before
        self._part = part
        self._begun = time.monotonic()
        self._shown = False
        # the cursor must move, so the stream itself is used
        self._stream: Any = sys.stderr.stream if isinstance(sys.stderr, Screen) else sys.stderr
        self._terminal = is_terminal(self._stream)
        self._rich = rich
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

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

    def count(self, text: str) -> None:
        """Shows how much is done, for jobs whose whole is unknown."""
        if self._terminal and self._bar is None and time.monotonic() - self._begun >= 1:
            self._shown = True
            self._print(f" … {text}")

    def _print(self, end: str) -> None:
        line = cut(self._what, width_of(self._stream) - len(end) - 1) + end
        print(f"\r{line}", end="", file=self._stream, flush=True)

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
        console = Console(file=self._stream)
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, auto_refresh=False)
        self._bar.start()
        self._task = self._bar.add_task(cut(self._what, 40), total=1.0)

    def clear(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self._shown:
            print("\r\033[K", end="", file=self._stream, flush=True)
        self._shown = False
