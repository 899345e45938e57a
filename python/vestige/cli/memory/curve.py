"""The curve of the memory in use, as a line of text for memory reports."""

from __future__ import annotations

from vestige.base.quantities import duration, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from vestige.reading.inputs import Source
    from vestige.reading.memory import MemorySummary

HEIGHTS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # characters, each with the maximum of its stretch of time


def curve(read: Sequence[tuple[Source, MemorySummary]]) -> list[str]:
    """Returns a line with the scale and a line with the curve: of the process whose peak is the highest; none if
    nothing was allocated.
    """
    drawn = [each for each in read if each[1].timeline and each[1].views["peak"].bytes > 0]
    if not drawn:
        return []
    source, summary = max(drawn, key=lambda each: each[1].views["peak"].bytes)
    first, last, most = summary.facts["first_ns"], summary.facts["last_ns"], summary.views["peak"].bytes
    whose = f" by process {source.facts['pid']}" if len(read) > 1 else ""
    heights = _heights(summary.timeline, first, max(last - first, 1))
    line = "".join(HEIGHTS[min(max(height, 0) * len(HEIGHTS) // most, len(HEIGHTS) - 1)] for height in heights)
    return [f"in use{whose}, over {duration(last - first)}, at most {size(most)}:", f"  {line}"]


def _heights(points: Sequence[Any], first: int, span: int) -> list[int]:
    """Returns the maximum of each stretch of time; a stretch without a point has the value before it."""
    found: list[int | None] = [None] * WIDTH
    last: list[int | None] = [None] * WIDTH
    for point in points:
        for at_ns, value in ((point.max_ns, point.max_bytes), (point.last_ns, point.last_bytes)):
            at = min(max(at_ns - first, 0) * WIDTH // span, WIDTH - 1)
            before = found[at]
            found[at] = value if before is None else max(before, value)
            last[at] = value
    heights, value = [], 0
    for height, end in zip(found, last):
        heights.append(value if height is None else height)
        value = value if end is None else end
    return heights
