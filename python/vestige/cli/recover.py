"""`vestige recover`: a finished copy of a trace whose process died. No other command needs it."""

from __future__ import annotations

import os

from vestige._core import TraceError, recover

from . import Failure
from .console import Parser, explain, open_trace

EXAMPLES = """\
  vestige recover t.vst -o whole.vst
  vestige recover t.vst -o t.vst --force
"""


def main(argv: list[str]) -> None:
    parser = Parser(
        "recover",
        "Write a finished copy of a trace whose process died, with all that can be read\n"
        "of it. The other commands read such a trace as it is.",
        "FILE -o OUT [--force]",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="a trace (.vst)")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the trace to write (.vst)")
    parser.add_argument("--force", action="store_true", help="overwrite OUT, which may be FILE")
    options = parser.parse_args(argv)

    exists = Failure(f"{options.output}: already exists; --force overwrites it", code=2)
    if os.path.lexists(options.output) and not options.force:
        raise exists
    open_trace(options.file)
    try:
        recover(options.file, options.output, overwrite=options.force)
    except FileExistsError:
        raise exists from None
    except OSError as error:
        raise Failure(explain(options.output, error)) from None
    except TraceError as error:
        raise Failure(explain(options.file, error)) from None
