"""`vestige export`: a trace in a format that other programs read, chosen by the name's suffix."""

from __future__ import annotations

import os

from vestige._core import TraceError

from . import Failure
from .console import Parser, Progress, explain, open_trace

SUFFIXES = (".json", ".json.gz")
EXAMPLES = """\
  vestige export t.vst                    writes t.json.gz
  vestige export t.vst -o t.json --force
"""


def main(argv: list[str]) -> None:
    parser = Parser(
        "export",
        f"Write a trace as Chrome JSON ({', '.join(SUFFIXES)}), for ui.perfetto.dev or\nchrome://tracing.",
        "FILE [-o OUT] [--force]",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="a trace (.vst)")
    parser.add_argument("-o", "--output", metavar="OUT", help="default: FILE's name with .json.gz")
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    options = parser.parse_args(argv)

    output = options.output or os.path.splitext(options.file)[0] + ".json.gz"
    if not output.endswith(SUFFIXES):
        raise Failure(f"{output}: no format has this suffix; there are {' and '.join(SUFFIXES)}", code=2)
    if os.path.lexists(output) and not options.force:
        raise Failure(f"{output}: already exists; --force overwrites it", code=2)
    trace = open_trace(options.file)
    progress = Progress(f"writing {output}")
    try:
        trace.export(output, all_windows=True, progress=progress)
    except OSError as error:
        raise Failure(explain(output, error)) from None
    except TraceError as error:
        raise Failure(explain(options.file, error)) from None
    finally:
        progress.clear()
