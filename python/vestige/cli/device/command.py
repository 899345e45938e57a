"""`vestige device`: its only command is `check`."""

from __future__ import annotations

import sys

from vestige.base.failure import Failure

PARTS = ("check",)  # commands of their own
USAGE = """\
usage: vestige device check [options]    compare with torch.profiler, on a GPU

  vestige device check
  vestige device check --keep files

`vestige device check --help` explains the options.
"""


def main(argv: list[str]) -> int:
    name = argv[0] if argv else ""
    if name == "check":
        from .check import main as check

        return check(argv[1:])
    if name in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if not argv:
        print(USAGE, end="", file=sys.stderr)
        return 2
    raise Failure(f"no command 'device {name}'; there is 'device check'", code=2)
