"""`vestige memory`: runs a program and records every allocation, from its first line until after its atexit functions.

It is `vestige run` with another recording and another report.
"""

from __future__ import annotations

from vestige.cli.run import USAGE, Recording, parse, runner
from vestige.cli.what import add_bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import TextIO

    from vestige import profile
    from vestige.cli.console import Parser

EXAMPLES = """\
  vestige memory script.py --its --own options
  vestige memory --native -o m.vst -m pytest -x
  vestige memory --sample 512K server.py

All that follows the script, module or code belongs to the program.
"""
WORDS_TO_REPORT = 20_000_000  # beyond that, a summary on exit would take too long


def prepare(argv: list[str]) -> Callable[[], None]:
    """Checks what can be checked before the program runs; the result runs it."""
    _, options, program = parse(_parser, argv)
    return runner(MemoryRecording, options, program)


def _parser() -> Parser:
    from vestige.cli.console import Parser

    parser = Parser("memory", "Run a program and record every allocation it makes.", USAGE, EXAMPLES)
    parser.add_argument("-o", "--output", metavar="FILE", help="trace to write (default: <name>.<pid>.vst)")
    parser.add_argument("--force", "--overwrite", action="store_true", help="overwrite FILE")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary at the end")
    parser.add_argument("--native", action="store_true", help="record native frames too, of C and C++")
    parser.add_argument("--sample", metavar="SIZE", help="record about one allocation in SIZE bytes (512K)")
    parser.add_argument(
        "--python-only", action="store_true", help="only Python's own allocators, not malloc and its kin"
    )
    add_bounds(parser)
    parser.add_argument("--no-children", action="store_true", help="leave out child processes")
    return parser


class MemoryRecording(Recording):
    """The memory of a whole run as a trace file."""

    def _make(self, options: Namespace) -> profile:
        from vestige import profile
        from vestige.base.quantities import parse_size

        if options.sample is not None:
            parse_size("--sample", options.sample)
        return profile(
            with_stack=False,
            gc=False,
            profile_memory=True,
            memory_native_stacks=options.native,
            memory_native_allocators=not options.python_only,
            memory_sample=options.sample,
            output=self._path,
            overwrite=options.force,
            max_size=options.max_size,
            keep_last=options.last,
            children=not options.no_children,
        )

    def report(self, out: TextIO) -> None:
        from shlex import quote

        from vestige._core import Trace
        from vestige.base.quantities import size

        from .resident import short

        trace = Trace(self._path)
        info = trace.info()
        if info["records"] <= WORDS_TO_REPORT:
            sums = trace.memory(rows=0)
            views = {name: (round(count), size(held)) for name, (count, held, _) in sums["views"].items()}
            count, total = views["total"]
            held = f"peak {views['peak'][1]}, in all {total} in {count:,} allocations; {views['leaks'][1]} not freed"
            print(held + (" (estimates)" if sums["sampled"] else ""), file=out)
            if beside := short([sums]):
                print(beside, file=out)
            print(f"{sums['records']:,} records in {self._shown}  ({size(info['bytes'])})", file=out)
        self._tell_children(trace, out)
        print(f"vestige memory-report {quote(self._shown)}", file=out)
