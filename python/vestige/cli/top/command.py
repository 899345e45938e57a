"""`vestige top`: shows what a recorded program is doing now."""

from __future__ import annotations

import os
import re
import signal
import sys
import time

from vestige._core import TraceError
from vestige.base.failure import Failure
from vestige.base.quantities import duration, parse_time, size
from vestige.base.terminal import Paint
from vestige.cli.console import Parser

from .picture import SORTS, Choice, Facts, Picture
from .target import find_target
from .terminal import Live, can_be_live
from .window import Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .target import Target

EXAMPLES = """\
  vestige top 1234             a process that is being recorded
  vestige top t.vst            the process that writes t.vst
  vestige top t.vst | head     one table, and the end
"""
ARROWS = re.compile(r"\033(\[[0-9;]*[A-Za-z~]|O.)")  # arrow keys and similar keys, which have no function here
ESCAPE, ENTER, ERASE = "\033", ("\n", "\r"), ("\x7f", "\b")


def main(argv: list[str]) -> int:
    parser = Parser(
        "top",
        "Show what a recorded program is doing now: functions by their time in the last\n"
        "seconds, threads, GC, memory, and the cost of recording. Reads the trace as it\n"
        "grows and does not disturb the program. Prints one table into a pipe. Ends when\n"
        "the recording ends.",
        "PID|FILE [options]",
        EXAMPLES,
    )
    parser.add_argument("what", metavar="PID|FILE", help="number of a recorded process, or its trace (.vst)")
    parser.add_argument("--last", metavar="TIME", default="5s", help="the last seconds to show (default: 5s)")
    parser.add_argument("--every", metavar="TIME", default="1s", help="time between two updates (default: 1s)")
    parser.add_argument(
        "--sort", choices=[name.split()[0] for _, name in SORTS.values()], default="own", help="order of the functions"
    )
    parser.add_argument("--filter", metavar="TEXT", default="", help="only functions whose name or file has TEXT")
    parser.add_argument("--waits", action="store_true", help="include functions that only wait")
    options = parser.parse_args(argv)
    try:
        last_ns, every_ns = parse_time("--last", options.last), parse_time("--every", options.every)
    except ValueError as error:
        raise Failure(str(error), code=2) from None
    if every_ns < 10**8:
        raise Failure(f"--every {options.every}: at least 100ms", code=2)
    choice = Choice()
    choice.sort = next(key for key, (_, name) in SORTS.items() if name.split()[0] == options.sort)
    choice.filter, choice.waits = options.filter, options.waits
    live = can_be_live()
    top = Top(find_target(options.what), choice, last_ns, first_ns=min(every_ns, last_ns) if live else last_ns)
    if live:
        top.watch(every_ns / 1e9)
    return top.print()


class Top:
    """Reads one trace again and again, and shows its last seconds."""

    def __init__(self, target: Target, choice: Choice, last_ns: int, *, first_ns: int) -> None:
        self._target = target
        self._choice = choice
        self._window = Window(last_ns, str(target.source.metadata.get("vestige.engine", "")))
        self._picture = Picture(Paint(sys.stdout))
        self._picture.budget = target.source.metadata.get("vestige.budget")
        self._facts: Facts | None = None
        self._ended = ""  # why
        self._problem = ""  # the reason of the end, if it was an error
        self._growing = target.open(first_ns)
        # The first reading reads the whole recording, to find the open calls. Ctrl-C ends it immediately.

        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            self._look()
        finally:
            signal.signal(signal.SIGINT, before)

    def _look(self) -> None:
        """Adds the records since the last reading."""
        target = self._target
        alive = target.is_alive()
        try:
            now: dict[str, Any] = self._growing.read(alive)
        except (OSError, TraceError, ValueError) as error:
            if self._facts is None:
                raise Failure(target.explain(error)) from None
            self._ended = "its file cannot be read any more"
            self._problem = target.explain(error)
            self._picture.title = self._title()
            return
        self._window.add(now, self._growing)
        self._facts = Facts(target, self._window.threads, self._facts, now["to_ns"])
        if now["finished"]:
            self._ended = "the recording ended"
        elif not alive:
            self._ended = "the process is gone, its recording ends here"
        self._picture.title = self._title()

    def _title(self) -> str:
        target, facts = self._target, self._growing.info()
        state = self._ended or f"recording for {duration(facts['end_ns'] - facts['start_ns'])}"
        where = "deleted" if target.is_deleted() else size(facts["bytes"])
        name = os.path.basename(target.name)
        return f"{target.source.name}, process {target.pid}: {state} ({name}, {where})"

    # ---- in a pipe, and at the end

    def print(self) -> int:
        """Prints the last seconds once. Returns the exit code."""
        assert self._facts is not None
        for line in self._picture.plain(self._window, self._facts, self._choice):
            print(line)
        if self._problem:
            print(f"vestige: {self._problem}", file=sys.stderr)
        return int(bool(self._problem))

    # ---- on a terminal

    def watch(self, every: float) -> None:
        """Draws until the user or the recording ends it."""
        with Live() as live:
            try:
                due = time.monotonic() + every
                while not self._ended:
                    self._draw(live)
                    keys = live.wait(due)
                    if keys and not self._press(keys):
                        return
                    if not keys and time.monotonic() >= due:
                        due = max(due + every, time.monotonic())
                        if not self._choice.frozen:
                            self._look()
                        elif not self._target.is_alive():
                            self._ended = "the process is gone, its recording ends here"
            except KeyboardInterrupt:
                return

    def _draw(self, live: Live) -> None:
        assert self._facts is not None
        columns, rows = live.size
        lines = self._picture.lines(self._window, self._facts, self._choice, columns, rows)
        live.draw(lines, self._picture.help(self._choice, columns - 1))

    def _press(self, keys: str) -> bool:
        """Handles keys. Returns false if the user wants to leave."""
        choice = self._choice
        choice.message = ""
        for key in ARROWS.sub("", keys):
            if choice.typing:
                self._type(key)
            elif key in ("q", "Q"):
                return False
            elif key in SORTS:
                choice.sort = key
            elif key == "w":
                choice.waits = not choice.waits
            elif key == " ":
                choice.frozen = not choice.frozen
            elif key == "/":
                choice.typing = True
            elif key == ESCAPE:
                choice.filter = ""
            elif key == "s":
                self._snapshot()
        return True

    def _type(self, key: str) -> None:
        choice = self._choice
        if key in ENTER:
            choice.typing = False
        elif key == ESCAPE:
            choice.typing, choice.filter = False, ""
        elif key in ERASE:
            choice.filter = choice.filter[:-1]
        elif key.isprintable():
            choice.filter += key

    def _snapshot(self) -> None:
        try:
            path = self._target.snapshot()
            self._choice.message = f"snapshot: {path}, {size(os.path.getsize(path))}"
        except (Failure, OSError) as error:
            self._choice.message = f"no snapshot: {error}"
