"""The options of the table (recording/option_table.py) on command lines: adds them to the parsers of `vestige run`,
`attach` and `memory`, and converts them to words and to keywords of profile(). This module runs inside the program's
process, so it loads nothing.
"""

from __future__ import annotations

from vestige.recording.option_table import DEPTH, GROUPS, KEYWORDS, NAMES, SNAPSHOTS, WAITS, Option
from vestige.recording.options import check_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from .console import Parser


def add_options(parser: Parser, command: str) -> None:
    """Adds the table's options for a command, in groups."""
    for title, options in GROUPS.items():
        for option in options:
            if command in option.commands:
                _add(parser, title, option)


def _add(parser: Parser, title: str, option: Option) -> None:
    how: dict[str, Any] = {"dest": option.name, "help": option.help.replace("%", "%%")}
    group = parser.group(title)
    if option.metavar is None:
        how["action"] = "store_false" if option.turns_off else "store_true"
    else:
        how |= {"metavar": option.metavar, "default": option.default}
        if option.kind in (NAMES, WAITS):
            how["action"] = "append"
        elif option.kind in (DEPTH, SNAPSHOTS):
            how["type"] = int
    action = group.add_argument(*option.flags.split(), **how)
    if "often" in option.traits:
        parser.often.append(action)
    if option.off:
        group.add_argument(option.off, dest=option.name, action="store_false", help=f"undo {option.flag} (default)")


def recorded(options: Namespace) -> dict[str, Any]:
    """Returns the keywords of profile() for parsed options. Raises ValueError, which names the flag, for an invalid
    value.
    """
    given = {option.name: getattr(options, option.name) for option in KEYWORDS if option.name in options}
    for option in KEYWORDS:
        value = given.get(option.name)
        if value is not None and option.kind.read is not None:
            option.kind.read(option.flag, value)
    if getattr(options, "collector", None):
        given["devices"] = options.collector
    check_together(given, by_flag=True)
    return given


def words(option: Option, value: Any) -> list[str]:
    """Returns the words of a command line for a value."""
    if option.metavar is None:
        return [option.flag] * bool(value)
    return [f"{option.flag}={one}" for one in (value if isinstance(value, (list, tuple)) else [value])]
