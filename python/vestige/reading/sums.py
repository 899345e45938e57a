"""Sums of calls, for a place in the call tree or for a name in a notebook."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Sums:
    __slots__ = ("allocations", "calls", "raised", "running_ns", "self_bytes", "self_ns", "total_bytes", "total_ns")

    def __init__(self) -> None:
        self.calls = self.self_ns = self.total_ns = self.self_bytes = self.total_bytes = self.allocations = 0
        self.raised = 0  # calls that an exception left
        self.running_ns: int | None = 0

    def add(self, row: Any) -> None:
        """Adds a row of the table `calls`, or other sums."""
        self.calls += row.calls
        self.raised += row.raised
        self.self_ns += row.self_ns
        self.total_ns += row.total_ns
        self.self_bytes += row.self_bytes
        self.total_bytes += row.total_bytes
        self.allocations += row.allocations
        if self.running_ns is not None:  # running time is kept only if every call so far has one
            self.running_ns = None if row.running_ns is None else self.running_ns + row.running_ns
