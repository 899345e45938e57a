"""The durations of calls, requests and tasks of one name: rows of the table `duration`, of one or several traces."""

from __future__ import annotations

from vestige._core import merge_histograms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TABLE = "duration"
KINDS = {"call": "function", "async": "async", "task": "task"}  # names of the rows' kinds in reports


class Durations:
    """The durations of one name. The attributes are the columns of a report."""

    __slots__ = ("file", "kind", "library", "line", "rows", "shown")

    def __init__(self, kind: str, shown: str, file: str, line: int, library: str) -> None:
        self.kind, self.shown = kind, shown
        self.file, self.line = file, line
        self.library = library
        self.rows: list[Any] = []

    def add(self, row: Any) -> None:
        self.rows.append(row)

    def _sum(self, name: str) -> int:
        return sum(getattr(row, name) for row in self.rows)

    def _quantile(self, share: float, name: str) -> int:
        if len(self.rows) == 1:
            value: int = getattr(self.rows[0], name)
            return value
        return merge_histograms([row.histogram for row in self.rows], [share])[1][0]

    @property
    def count(self) -> int:
        return self._sum("count")

    @property
    def total_ns(self) -> int:
        return self._sum("total_ns")

    @property
    def p50_ns(self) -> int:
        return self._quantile(0.5, "p50_ns")

    @property
    def p99_ns(self) -> int:
        return self._quantile(0.99, "p99_ns")

    @property
    def max_ns(self) -> int:
        return int(max(row.max_ns for row in self.rows))

    @property
    def slow_count(self) -> int:
        return self._sum("slow_count")

    @property
    def slow_ns(self) -> int:
        return self._sum("slow_ns")

    @property
    def whole_ns(self) -> int:
        """The time of which slow calls take a share: the time of the threads that made the calls; for requests and
        tasks, which overlap on a thread, the sum of all durations.
        """
        own = [row.total_ns if row.threads_ns is None else row.threads_ns for row in self.rows]
        return sum(own) or 1

    @property
    def histogram(self) -> str:
        """Returns the histogram in the form of the table `duration`."""
        return merge_histograms([row.histogram for row in self.rows], [])[0]
