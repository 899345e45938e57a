"""The ready questions: the .sql files in `ready`, their descriptions and parameters.

A file begins with comments: a sentence about the question, then a line for each parameter, `-- rows = 20: how many`. A
parameter without a default must be given. `-- runs: 2` is the number of runs that the question compares. In the SQL,
`:rows` stands for the value. The value never becomes text of the SQL: engines get it separately.
"""

from __future__ import annotations

import os
import re

from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Value = int | float | str

FOLDER = os.path.join(os.path.dirname(__file__), "ready")
PARAMETER = re.compile(r"-- (\w+)(?: = ?([^:]*))?: (.*)")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Parameter:
    """A parameter of a question. `default` is None if a value must be given."""

    def __init__(self, name: str, default: str | None, about: str) -> None:
        self.name = name
        self.default = default
        self.about = about

    def value(self, text: str) -> Value:
        """Returns the value of a text: a number if the default is a number."""
        if self.default is None or not NUMBER.fullmatch(self.default):
            return text
        if not NUMBER.fullmatch(text):
            raise Failure(f"{self.name} is a number ({self.about}), not {text!r}", code=2)
        if "." in self.default:
            return float(text)
        if not text.isdigit():
            raise Failure(f"{self.name} is a whole number ({self.about}), not {text!r}", code=2)
        return int(text)


class Question:
    """A ready question, read from its file."""

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

    def values(self, given: Mapping[str, str]) -> dict[str, Value]:
        """Returns the values of all parameters: the given values, else the defaults."""
        for name in given:
            if name not in self.parameters:
                there = ", ".join(self.parameters) or "none"
                raise Failure(f"{self.name} has no parameter {name!r}; it has {there}", code=2)
        values = {}
        for name, parameter in self.parameters.items():
            text = given.get(name, parameter.default)
            if text is None:
                raise Failure(f"{self.name} needs a value for {name} ({parameter.about}): -p {name}=…", code=2)
            values[name] = parameter.value(text)
        return values


def load() -> dict[str, Question]:
    """Returns all ready questions, by name."""
    found = {}
    for file in sorted(os.listdir(FOLDER)):
        name, suffix = os.path.splitext(file)
        if suffix == ".sql":
            with open(os.path.join(FOLDER, file), encoding="utf-8") as stream:
                found[name] = Question(name, stream.read())
    return found


def own_values(given: Mapping[str, str]) -> dict[str, Value]:
    """Returns values for the user's own SQL. A text that looks like a number becomes a number."""
    return {name: to_number(text) if NUMBER.fullmatch(text) else text for name, text in given.items()}


def to_number(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def check_used(values: Mapping[str, Value], used: set[str]) -> None:
    """Raises Failure for a value that the query does not use, because its name is probably misspelt."""
    for name in values:
        if name not in used:
            raise Failure(f"-p {name}=…: there is no :{name} in the query", code=2)
