"""Code that commands share: a parser with our help and one-line errors. Progress and colours are in terminal.py."""

from __future__ import annotations

import argparse
import os
import sys

from vestige.base.failure import Failure
from vestige.base.terminal import WIDTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, NoReturn


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Formats help as wide as the terminal. argparse's own class would import shutil to find the width, and shutil
    imports three modules for compression. It would do so for each added option, in the process of every program that
    `vestige run` runs.
    """

    def __init__(self, prog: str, **options: Any) -> None:
        options.setdefault("width", _columns() - 2)
        super().__init__(prog, **options)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(1).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser._is_short = False  # type: ignore[attr-defined]
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Reports errors in one line and suggests similar words. Options cannot be abbreviated. The help ends with
    examples.
    """

    asked: type[Asked] | None = None  # if set, every parser raises it instead of parsing

    def __init__(self, command: str, summary: str, usage: str, examples: str) -> None:
        super().__init__(
            prog=f"vestige {command}",
            usage=f"vestige {command} {usage}",
            description=summary,
            epilog=f"examples:\n{examples}",
            allow_abbrev=False,
            formatter_class=_Formatter,
        )
        self.often: list[argparse.Action] = []  # the options that --help shows, if there is --help-all
        # Words that completion offers for options that check their values themselves; for a LIST, several of them.
        self.words: dict[str, list[str]] = {}
        self._is_short = False

    def group(self, title: str) -> argparse._ArgumentGroup:
        """Returns the group of options with this title."""
        there = [group for group in self._action_groups if group.title == title]
        return there[0] if there else self.add_argument_group(title)

    def shorten_help(self) -> None:
        """Makes --help explain only the options in `often`, and --help-all all options."""
        self._is_short = True
        self.add_argument("--help-all", action=_HelpAll, nargs=0, help="explain all options")

    def format_help(self) -> str:
        if not self._is_short:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, [])
        formatter.add_text(self.description)
        formatter.start_section("options")
        formatter.add_arguments(self.often)
        formatter.end_section()
        formatter.add_text("more options, which --help-all explains:\n" + "\n".join(self._others()))
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _others(self) -> Iterator[str]:
        """Returns lines with the flags that the short help does not explain, by group."""
        import textwrap

        for group in self._action_groups[2:]:  # after argparse's own two groups
            words = [action.option_strings[-1] for action in group._group_actions if action not in self.often]
            if words:
                text = f"{f'{group.title}:':<24}{', '.join(words)}"
                yield from textwrap.wrap(
                    text, _columns() - 2, initial_indent="  ", subsequent_indent=" " * 26, break_on_hyphens=False
                )

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        if Parser.asked is not None:
            raise Parser.asked(self)
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            near = [did_you_mean(word.partition("=")[0], self._option_string_actions) for word in unknown]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{next(filter(None, near), '')}")
        return options

    def options_with_value(self) -> set[str]:
        """Returns the options that are followed by a value."""
        return {name for action in self._actions if action.nargs != 0 for name in action.option_strings}

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message}; see {self.prog} --help", code=2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raises an error that suggests the nearest choice."""
        if action.choices is not None and value not in action.choices:
            there = ", ".join(map(str, action.choices))
            near = did_you_mean(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"invalid choice: {value!r} (choose from {there}){near}")


def ask(call: Callable[[list[str]], object], argv: list[str]) -> Parser:
    """Calls a command and returns the parser that it makes. The command ends where it would have parsed."""
    Parser.asked = Asked
    try:
        call(argv)
    except Asked as asked:
        return asked.parser
    finally:
        Parser.asked = None
    raise AssertionError(f"{call.__module__} did not make a parser")


class Asked(Exception):
    """Raised with a parser, instead of parsing."""

    def __init__(self, parser: Parser) -> None:
        super().__init__()
        self.parser = parser


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns `, did you mean X?`, or "" if no word is similar."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.7) if word.startswith("--") or word.isalnum() else []
    return f", did you mean {near[0]}?" if near else ""


def check_least(option: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise Failure(f"{option} must be at least {least}, not {value}", code=2)


def exists(path: str) -> Failure:
    return Failure(f"{path}: already exists; --force overwrites it", code=2)


def check_absent(path: str | None, *, force: bool) -> None:
    """Raises Failure if the file to write exists and must not be overwritten."""
    if path is not None and os.path.lexists(path) and not force:
        raise exists(path)


def run_part(home: str, parts: Sequence[str], usage: str, argv: list[str]) -> int:
    """Runs a command of two words. Its second word is a module of the package `home`."""
    command, name = home.rpartition(".")[2], argv[0] if argv else ""
    if name in parts:
        code: int = __import__(f"{home}.{name}", fromlist=["main"]).main(argv[1:])
        return code
    if name in ("-h", "--help"):
        print(usage, end="")
        return 0
    if not argv:
        print(usage, end="", file=sys.stderr)
        return 2
    known = " and ".join(f"'{command} {part}'" for part in parts)
    raise Failure(f"no command '{command} {name}'; there {'are' if len(parts) > 1 else 'is'} {known}", code=2)


def add_files(parser: Parser, nargs: str = "+") -> None:
    """Adds FILE … and --no-children, for commands that read traces."""
    parser.add_argument("files", metavar="FILE", nargs=nargs, help="traces (.vst), or folders of traces")
    parser.add_argument(
        "--no-children", action="store_true", help="read only FILE itself, not the traces of its child processes"
    )
