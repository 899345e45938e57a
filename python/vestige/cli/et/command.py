"""`vestige et`: execution traces, checked or shown."""

from __future__ import annotations

import sys

from vestige.base.failure import Failure

PARTS = ("check", "show")  # commands of their own
USAGE = """\
usage: vestige et check FILE… [options]    the defects of execution traces
       vestige et show FILE [options]      the tree of operators, or Graphviz

  vestige et check et.json --timeline t.json
  vestige et show et.json --depth 2
  vestige et show et.json --name 'ProfilerStep*' -o et.dot

`vestige et check --help` and `vestige et show --help` explain the options.
"""


def main(argv: list[str]) -> int:
    name = argv[0] if argv else ""
    if name == "check":
        from .check import main as check

        return check(argv[1:])
    if name == "show":
        from .show import main as show

        return show(argv[1:])
    if name in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if not argv:
        print(USAGE, end="", file=sys.stderr)
        return 2
    raise Failure(f"no command 'et {name}'; there are 'et check' and 'et show'", code=2)
