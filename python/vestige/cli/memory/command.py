"""`vestige memory`: runs a program and records every allocation, from its first line until after its atexit functions.

It is `vestige run` with another recording and another report.
"""

from __future__ import annotations

from vestige.cli.recording_options import add_options
from vestige.cli.run import USAGE, Recording, parse, runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, TextIO

    from vestige.cli.console import Parser

EXAMPLES = """\
  vestige memory script.py --its --own options
  vestige memory --native -o m.vst -m pytest -x
  vestige memory --sample 512K server.py

Everything after the script, module or code is passed to the program.
"""
HOLDERS = 3  # the lines that hold the most memory
WORDS_TO_REPORT = 20_000_000  # a longer trace gets no summary on exit, because that would take too long


def prepare(argv: list[str]) -> Callable[[], None]:
    """Checks everything that can be checked before the program runs. Returns a function that runs the program."""
    _, options, program = parse(_parser, argv)
    return runner(MemoryRecording, options, program)


def _parser() -> Parser:
    from vestige.cli.console import Parser

    parser = Parser("memory", "Run a program and record every allocation it makes.", USAGE, EXAMPLES)
    add_options(parser, "memory")
    return parser


def _place(frame: Any) -> str:
    from vestige.base.printable import printable

    at = f"{frame.shown_file}:{frame.line}: " if frame.line else ""
    return printable(f"{at}{frame.function}")


class MemoryRecording(Recording):
    """Records the memory of a whole run into a trace file."""

    _fixed: ClassVar[dict[str, Any]] = {"with_stack": False, "gc": False, "profile_memory": True}

    def report(self, out: TextIO) -> None:
        from shlex import quote

        from vestige._core import Trace
        from vestige.base.quantities import size
        from vestige.reading.memory import read_memory

        from .resident import short

        trace = Trace(self._read) if self._read else None
        info = trace.info() if trace is not None else {}
        if trace is not None and info["records"] <= WORDS_TO_REPORT:
            sums = read_memory(trace, rows=HOLDERS)
            peak, total, leaks = (sums.views[view] for view in ("peak", "total", "leaks"))
            held = f"peak {size(peak.bytes)}, in all {size(total.bytes)} in {total.count:,} allocations; "
            held += f"{size(leaks.bytes)} not freed"
            print(held + (" (estimates)" if sums.facts["sampled"] else ""), file=out)
            if beside := short([sums]):
                print(beside, file=out)
            print(f"{sums.facts['records']:,} records in {self._shown}  ({size(info['bytes'])})", file=out)
            for amount, frame in sums.lines["peak"]:
                print(f"{size(amount.bytes):>9} of the peak: {_place(frame)}", file=out)
        self._tell_children(self._children(trace), out)
        print(f"vestige memory-report {quote(self._shown)}", file=out)
