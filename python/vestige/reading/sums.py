"""Sums of calls: those of a function, of a place in a tree, of a name in a notebook."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def sum_if_known(one: int | None, other: int | None) -> int | None:
    """Running times may not be known."""
    return None if one is None or other is None else one + other


class Sums:
    __slots__ = ("allocations", "calls", "running_ns", "self_bytes", "self_ns", "total_bytes", "total_ns")

    def __init__(self) -> None:
        self.calls = self.self_ns = self.total_ns = self.self_bytes = self.total_bytes = self.allocations = 0
        self.running_ns: int | None = 0

    def add(self, row: Any) -> None:
        """A row of the tables `functions` or `calls`, or other sums."""
        self.calls += row.calls
        self.self_ns += row.self_ns
        self.total_ns += row.total_ns
        self.self_bytes += row.self_bytes
        self.total_bytes += row.total_bytes
        self.allocations += row.allocations
        self.running_ns = sum_if_known(self.running_ns, row.running_ns)
