"""Questions that are ready: the .sql files in `ready`, what they are about and their parameters.

A file begins with comments: what it answers, then a line for each parameter, `-- rows = 20: how many`; without a value
it must be given. `-- runs: 2` is how many runs it compares. In the SQL `:rows` stands for the value. Values become
literals here, because engines differ in how they take parameters.
"""

from __future__ import annotations

import os
import re

from vestige.cli import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = os.path.join(os.path.dirname(__file__), "ready")
PARAMETER = re.compile(r"-- (\w+)(?: = ?([^:]*))?: (.*)")
# Strings, quoted names and comments are passed over; `a::int` is a cast.
TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|::|:([A-Za-z_]\w*)", re.DOTALL)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Parameter:
    """`default` is None where a value must be given."""

    def __init__(self, name: str, default: str | None, about: str) -> None:
        self.name = name
        self.default = default
        self.about = about

    def literal(self, value: str, *, backslashes: bool) -> str:
        """A number where the default is one."""
        if self.default is not None and NUMBER.fullmatch(self.default):
            if not NUMBER.fullmatch(value):
                raise Failure(f"{self.name} is a number ({self.about}), not {value!r}", code=2)
            if "." not in self.default and not value.isdigit():
                raise Failure(f"{self.name} is a whole number ({self.about}), not {value!r}", code=2)
            return f"{value}e0" if "." in self.default and "e" not in value.lower() else value
        return quote(value, backslashes=backslashes)


class Question:
    """One of the files."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.parameters: dict[str, Parameter] = {}
        self.runs = 1
        lines = text.splitlines()
        self.about = lines[0].removeprefix("-- ")
        for line in lines[1:]:
            match = PARAMETER.fullmatch(line)
            if match is None:
                break
            key, default, about = match.groups()
            if key == "runs":
                self.runs = int(about)
            else:
                self.parameters[key] = Parameter(key, default, about)
        self.text = text

    def sql(self, values: Mapping[str, str], *, backslashes: bool = False) -> str:
        """With the values in their places; `backslashes` is whether the engine takes \\ in strings for an escape."""
        for name in values:
            if name not in self.parameters:
                there = ", ".join(self.parameters) or "none"
                raise Failure(f"{self.name} has no parameter {name!r}; it has {there}", code=2)
        literals = {}
        for name, parameter in self.parameters.items():
            value = values.get(name, parameter.default)
            if value is None:
                raise Failure(f"{self.name} needs to know {name} ({parameter.about}): -p {name}=…", code=2)
            literals[name] = parameter.literal(value, backslashes=backslashes)
        return fill(self.text, literals)


def load() -> dict[str, Question]:
    """All of them, by name."""
    found = {}
    for file in sorted(os.listdir(FOLDER)):
        name, suffix = os.path.splitext(file)
        if suffix == ".sql":
            with open(os.path.join(FOLDER, file), encoding="utf-8") as stream:
                found[name] = Question(name, stream.read())
    return found


def fill_own(sql: str, values: Mapping[str, str], *, backslashes: bool) -> str:
    """The user's own SQL: what looks like a number is one."""
    literals = {
        name: value if NUMBER.fullmatch(value) else quote(value, backslashes=backslashes)
        for name, value in values.items()
    }
    used = {match[1] for match in TOKEN.finditer(sql) if match[1]}
    for name in values:
        if name not in used:
            raise Failure(f"-p {name}=…: there is no :{name} in the query", code=2)
    return fill(sql, literals)


def fill(sql: str, literals: Mapping[str, str]) -> str:
    return TOKEN.sub(lambda match: literals.get(match[1], match[0]) if match[1] else match[0], sql)


def quote(text: str, *, backslashes: bool) -> str:
    """A string literal."""
    if backslashes:
        text = text.replace("\\", "\\\\").replace("'", "\\'")
    else:
        text = text.replace("'", "''")
    return f"'{text}'"
