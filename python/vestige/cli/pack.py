"""`vestige pack`: compresses stored traces to a tenth of their size or less. Every command reads packed traces
directly.
"""

from __future__ import annotations

import os

from vestige._core import TraceError, pack, unpack
from vestige.base.failure import Failure, explain
from vestige.base.quantities import size
from vestige.base.terminal import Progress
from vestige.reading.inputs import Source, find_traces, is_open_in

from .console import Parser, add_files, check_absent, exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  vestige pack t.vst                 replaces t.vst by a packed file
  vestige pack t.vst -o small.vst
  vestige pack folder --level 9
  vestige pack --undo t.vst
"""
LEVELS = (1, 19)


def main(argv: list[str]) -> int:
    parser = Parser(
        "pack",
        "Compress traces with zstd. Other commands read packed traces directly. --undo\n"
        "restores the original file, byte for byte. A file is replaced only after its\n"
        "successor is complete and on disk.",
        "FILE … [-o OUT] [--undo] [--level N] [options]",
        EXAMPLES,
    )
    add_files(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="write OUT, and do not change FILE")
    parser.add_argument("--undo", action="store_true", help="unpack")
    parser.add_argument(
        "--level", metavar="N", type=int, default=3, help="level of compression: 1 (fast) to 19 (small); default: 3"
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    options = parser.parse_args(argv)

    if not LEVELS[0] <= options.level <= LEVELS[1]:
        raise Failure(f"--level must be from {LEVELS[0]} to {LEVELS[1]}, not {options.level}", code=2)
    several = Failure("-o is for one trace; several are packed in place", code=2)
    if options.output is not None and len(options.files) > 1:
        raise several
    inputs = find_traces(options.files, children=not options.no_children)
    if options.output is not None and len(inputs.sources) > 1:
        raise several
    for source in inputs.sources:
        try:
            print(f"{source.path}: {_convert(source, options)}", flush=True)
        except Failure as failure:
            if len(inputs.sources) == 1:
                raise
            inputs.tell(str(failure))
    return int(inputs.failed)


def _convert(source: Source, options: argparse.Namespace) -> str:
    """Converts a trace; returns the text to print after its name."""
    path, facts = source.path, source.facts
    if facts["packed"] != options.undo:
        return "packed already" if facts["packed"] else "not packed"
    if is_open_in(facts["pid"], path):
        raise Failure(
            f"{path}: process {facts['pid']} is still recording into this file; pack it after the recording has ended"
        )
    target = options.output or os.path.realpath(path)  # a link stays a link
    check_absent(options.output, force=options.force)
    before = facts["packed_bytes"] if options.undo else facts["bytes"]
    overwrite = options.output is None or options.force
    try:
        with Progress(f"{'unpacking' if options.undo else 'packing'} {path}") as progress:
            if options.undo:
                unpack(path, target, overwrite=overwrite, progress=progress)
            else:
                pack(path, target, overwrite=overwrite, progress=progress, level=options.level)
        after = os.stat(target).st_size
    except FileExistsError:
        raise exists(target) from None
    except OSError as error:
        raise Failure(explain(target if options.output else path, error)) from None
    except TraceError as error:
        raise Failure(explain(path, error)) from None
    text = f"{size(before)} → {size(after)}"
    return text if options.undo else text + _each(after, facts["records"])


def _each(packed: int, records: int) -> str:
    return f", {packed / records:.1f} bytes a record" if records else ""
