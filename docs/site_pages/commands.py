"""The reference of the command line, from the parsers of the commands."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator

from vestige import cli
from vestige.cli.project import OPTIONS as PROJECT
from vestige.cli.report.command import VIEWS
from vestige.reading.report_columns import DIFF, Column, Table
from vestige.recording.option_table import OPTIONS


def commands() -> str:
    return "\n".join(section(name, parser) for name, parser in cli.parsers().items())


def options() -> str:
    """Returns the table of the options of a recording, with each option's names."""
    rows = ["| on the command line | in `[tool.vestige]` | of `profile()` | what it does |", "|---|---|---|---|"]
    keys = {option.name: key for key, option in PROJECT.items()}
    for option in OPTIONS:
        flags = ", ".join(f"`{flag}`" for flag in f"{option.flags} {option.off}".split())
        words = f"`{option.name}={option.default!r}`" if option.python is not None else ""
        key = f"`{keys[option.name]}`" if option.name in keys else ""
        text = [option.help or option.python or ""]
        text += [f"not with {', '.join(option.against)}"] if option.against else []
        text += [f"on Pythons {option.pythons}"] if option.pythons else []
        rows.append(f"| {flags} | {key} | {words} | {quoted('; '.join(text))} |")
    return "\n".join(rows)


def columns() -> str:
    """Returns the columns of every table of a report."""
    views: dict[Table, list[str]] = {}
    for name, view in VIEWS.items():
        views.setdefault(view.table, []).append(f"`--{name}`")
    titles = {table: f"`vestige report` {', '.join(flags)}" for table, flags in views.items()}
    parts = []
    for table, title in {**titles, DIFF: "`vestige diff`"}.items():
        parts += [f"### {title}\n", "| column | in JSON and CSV | unit | what it is |", "|---|---|---|---|"]
        for column in table.columns:
            name = f"`{column.name}`" if column.files is not False or table is not DIFF else ""
            about = f"{cell(column.about)}{_when(column)}"
            parts.append(f"| `{column.key}` | {name} | {column.unit.name} | {about} |")
        parts.append("")
    return "\n".join(parts)


def _when(column: Column) -> str:
    """Says where the column is not shown by default."""
    if column.text is False and column.files is False:
        return "; only if it is asked for"
    return "; not in text unless asked for" * (column.text is False) + "; not in JSON and CSV unless asked for" * (
        column.files is False
    )


def overview() -> str:
    """Returns the output of `vestige --help`."""
    command = [sys.executable, "-m", "vestige", "--help"]
    return "```text\n" + subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip() + "\n```"


def section(name: str, parser: argparse.ArgumentParser) -> str:
    formatter = parser.formatter_class(prog=parser.prog, width=100)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    parts = [f"## vestige {name}\n", *described(parser.description or "")]
    parts.append(f"```text\n{formatter.format_help().strip()}\n```\n")
    for group in parser._action_groups:
        rows = [row(action) for action in group._group_actions if action.help != argparse.SUPPRESS]
        if rows:
            parts += ["| " + (group.title or "options") + " | |", "|---|---|", *rows, ""]
    parts += described(parser.epilog or "")
    return "\n".join(parts)


def row(action: argparse.Action) -> str:
    words = action.option_strings or [action.metavar or action.dest]
    value = argument(action) if action.option_strings else ""
    left = ", ".join(f"`{word}{value}`" for word in words)
    text = " ".join((action.help or "").replace("%%", "%").replace("%(default)s", str(action.default)).split())
    return f"| {left} | {cell(text)} |"


def argument(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    name = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    name = name if isinstance(name, str) else " ".join(name)
    return f" [{name}]" if action.nargs == "?" else f" {name} …" if action.nargs in ("+", "*") else f" {name}"


def cell(text: str) -> str:
    """Formats text for a cell of a table, unchanged."""
    return re.sub(r"([<>*_|\[\]])", r"\\\1", text)


def described(text: str) -> Iterator[str]:
    """Formats paragraphs as text; indented text, and the line that introduces it, stay unchanged."""
    for paragraph in re.split(r"\n\n+", text.strip("\n")):
        lines = paragraph.splitlines()
        heading = lines[0] if lines and lines[0].endswith(":") and any(line.startswith(" ") for line in lines) else ""
        if heading:
            yield f"{cell(heading)}\n"
            lines = lines[1:]
        if lines and all(line.startswith(" ") for line in lines):
            yield "```text\n" + "\n".join(line[2:] for line in lines) + "\n```\n"
        elif lines:
            yield quoted(" ".join(lines)) + "\n"


def quoted(text: str) -> str:
    """Formats a paragraph of plain text: code in backticks stays code, and other markup is escaped."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") and part.endswith("`") else cell(part) for part in parts)
