"""The stretches in which a budget left functions out, for the page. A stretch names its set of functions by number."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .traces import Shown

STRETCHES_MAX = 20_000
NAMES_MAX = 50  # the most names of a set


def describe_left_out(shown: Shown, base: int) -> dict[str, Any]:
    """Describes the stretches. `sets` have the ids of functions, or null if every function was left out."""
    numbers: dict[tuple[int | None, ...] | None, int] = {}
    stretches: list[list[int]] = []
    found: dict[tuple[int, int], list[int | None]] = {}
    for row in shown.open().tables(["left_out"])["left_out"]:
        found.setdefault((row.start_ns, row.end_ns), []).append(row.func)
    near = (shown.end_ns - shown.start_ns) // STRETCHES_MAX if len(found) > STRETCHES_MAX else 0
    for (start, end), ids in found.items():
        which = numbers.setdefault(None if None in ids else tuple(ids[:NAMES_MAX]), len(numbers))
        start, end = start - base, end - base
        last = stretches[-1] if stretches else None
        if last and (start - last[1] < near or (start == last[1] and which == last[2])):
            last[1] = end
        else:
            stretches.append([start, end, which])
    return {"sets": list(numbers), "stretches": stretches}
