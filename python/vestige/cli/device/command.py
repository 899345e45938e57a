"""`vestige device`: its only command is `check`."""

from __future__ import annotations

from vestige.cli.console import run_part

PARTS = ("check",)  # commands of their own
USAGE = """\
usage: vestige device check [options]    compare with torch.profiler, on a GPU

  vestige device check
  vestige device check --keep files

`vestige device check --help` explains the options.
"""


def main(argv: list[str]) -> int:
    return run_part("vestige.cli.device", PARTS, USAGE, argv)
