"""The time interval of an event."""

from __future__ import annotations


class Interval:
    """A time interval in µs."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval({self.start}, {self.end})"
