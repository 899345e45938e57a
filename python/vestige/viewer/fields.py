"""The fields of a request. Checks the type and range of each value, or reports in one line what is wrong."""

from __future__ import annotations

import re

from .answers import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT = 1 << 53  # JavaScript's numbers are exact below this
PIXELS_MAX = 1 << 14
NUMBERS_MAX = 1 << 20  # the most numbers in a list
INTEGER = re.compile(r"-?[0-9]{1,16}", re.ASCII)


class Fields:
    """The fields of a query, or the members of a JSON body."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise Problem(400, "the body is not a JSON object")
        self._values = values

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if not isinstance(value, str):
            raise Problem(400, f"{name} is missing")
        return value

    def flag(self, name: str) -> bool:
        return self._values.get(name) in (True, 1, "1", "true")

    def optional(self, name: str, least: int = -LIMIT, most: int = LIMIT) -> int | None:
        """Returns a number, or None if it is not given."""
        value = self._values.get(name)
        return None if value is None or value == "" else number(name, value, least, most)

    def number(self, name: str, least: int = -LIMIT, most: int = LIMIT, default: int | None = None) -> int:
        value = self.optional(name, least, most)
        if value is None:
            value = default
        if value is None:
            raise Problem(400, f"{name} is missing")
        return value

    def numbers(self, name: str, most: int = (1 << 32) - 1) -> list[int] | None:
        """Returns a list, which a query separates by commas; None if it is not given."""
        value = self._values.get(name)
        if value is None or value == "":
            return None
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list) or len(parts) > NUMBERS_MAX:
            raise Problem(400, f"{name}: not a list of at most {NUMBERS_MAX:,} numbers")
        return [number(name, part, 0, most) for part in parts]

    def range(self) -> tuple[int, int]:
        """Returns from and to, in nanoseconds from the beginning of the timeline."""
        start, end = self.number("from"), self.number("to")
        if start >= end:
            raise Problem(400, "from must be less than to")
        return start, end

    def pixels(self) -> int:
        return self.number("pixels", 1, PIXELS_MAX)


def number(name: str, value: Any, least: int, most: int) -> int:
    """Accepts an integer, or the text of an integer."""
    if isinstance(value, str) and INTEGER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Problem(400, f"{name}: not an integer")
    if not least <= value <= most:
        raise Problem(400, f"{name}: not between {least} and {most}")
    return value
