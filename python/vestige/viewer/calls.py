"""Finds the call in a thread that encloses a mark or an activity of a device."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .traces import Shown


def call_around(shown: Shown, thread: int, time: int, wanted: int, base: int) -> dict[str, Any] | None:
    """Returns the call of function `wanted` that is open at an absolute time, or else the innermost open call; wanted
    0: the innermost.
    """
    levels = next((each["levels"] for each in shown.threads if each["number"] == thread), 0)
    depth = _deepest(lambda depth: shown.view.span_at(thread, depth, time) is not None, levels)
    calls = (shown.view.span_at(thread, each, time) for each in range(depth, -1, -1))
    inner = None
    for call in calls:
        if call is None:
            continue
        inner = inner or call
        if not wanted or call["id"] == wanted:
            inner = call
            break
    if inner is None:
        return None
    return {
        "id": inner["id"],
        "depth": inner["depth"],
        "start_ns": inner["start_ns"] - base,
        "end_ns": inner["end_ns"] - base,
    }


def _deepest(is_there: Callable[[int], bool], levels: int) -> int:
    """Returns the greatest depth that exists; -1 if none does. Searches by halving, because all depths above it exist
    too.
    """
    low, high = -1, levels - 1
    while low < high:
        middle = (low + high + 1) // 2
        if is_there(middle):
            low = middle
        else:
            high = middle - 1
    return low
