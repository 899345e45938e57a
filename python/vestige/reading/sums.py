"""Sums of calls, for a place in the call tree or for a name in a notebook."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from vestige._core import Definition, Trace


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


def called_functions(trace: Trace, *, all_windows: bool = True) -> Iterator[tuple[Definition, Any]]:
    """Yields each function that was called: its definition, and its row of the table `functions`."""
    definitions = trace.definitions()
    for row in trace.tables(["functions"], all_windows=all_windows)["functions"]:
        known = definitions[row.func]
        if known is not None and row.calls:
            yield known, row
