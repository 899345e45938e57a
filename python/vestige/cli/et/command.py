"""`vestige et`: execution traces, checked or shown."""

from __future__ import annotations

from vestige.cli.console import run_part

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
    return run_part("vestige.cli.et", PARTS, USAGE, argv)
