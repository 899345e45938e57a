"""Lanes in a page made by `vestige view --html`: the items of each row as columns of varints, which the core packs.
Calls are lanes too: each thread has a lane with the thread's number, whose rows are the depths of the stack.

Except for calls, the number of items per kind is limited, so that the page stays small. The latest items of all lanes
are left out, and the page says so. States of threads and curves are drawn coarser instead.
"""

from __future__ import annotations

from vestige._core import Lanes

from .lanes import KINDS, describe_kind, list_lanes, read_members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .embed import Blob
    from .traces import Shown, Traces

ITEMS_MAX = {"counters": 100_000, "devices": 300_000, "marks": 300_000, "states": 400_000, "tasks": 2_000_000}
COARSER = {"counters", "states"}
PARTS_MAX = 1 << 14  # the time of a coarser row is divided into at most this many parts
TEXTS_MAX = 8 << 20  # bytes of all texts
EVER = (1 << 62) - 1


def pack_lanes(shown: Shown, traces: Traces, blob: Blob) -> dict[str, Any]:
    packed = {kind: _pack_kind(kind, shown.lanes(kind), shown, traces, blob) for kind in KINDS if shown.has_lanes(kind)}
    calls = _pack_kind("calls", Lanes(shown.open(), "calls", fold_imports=traces.fold_imports), shown, traces, blob)
    threads = [each["thread"] for each in calls["lanes"]]
    calls["lanes"] = [{"lane": each["thread"], "rows": each["rows"]} for each in calls["lanes"]]
    calls["rows"] = [[threads[lane], *row] for lane, *row in calls["rows"]]
    return {**packed, "calls": calls}


def _pack_kind(kind: str, lanes: Lanes, shown: Shown, traces: Traces, blob: Blob) -> dict[str, Any]:
    base, most = traces.start_ns, ITEMS_MAX.get(kind, EVER)
    listed = list_lanes(lanes, base)
    places = [(each["lane"], row) for each in listed for row in range(each["rows"])]
    width, before = 0, EVER
    if sum(each["items"] for each in listed) > most:
        if kind in COARSER:
            width = (traces.end_ns - base) // max(256, min(PARTS_MAX, most // len(places))) + 1
        else:
            before = _time_of(lanes, places, most, base, traces.end_ns)
    rows, (left_out, texts_left_out) = [], lanes.left_out()
    for lane, row in places:
        first, count, packed = lanes.pack(lane, row, base, before, width)
        if before < EVER and not listed[lane]["members"]:
            left_out += lanes.between(lane, row, before + 1, EVER, 0)[0]
        rows.append([lane, row, first, count, *blob.add(packed)])
    texts, more_left_out = _texts(lanes)
    facts = lanes.facts()
    return {
        "lanes": listed,
        "rows": rows,
        "facts": facts,
        "texts": texts,
        "left_out": [left_out, texts_left_out + more_left_out],
        "exact": not width,
        **describe_kind(shown, kind),
    }


def _time_of(lanes: Lanes, places: list[tuple[int, int]], most: int, start: int, end: int) -> int:
    """Returns the latest time up to which all rows together have at most `most` items."""
    while end - start > 1:
        middle = (start + end) // 2
        if sum(lanes.between(lane, row, -EVER, middle + 1, 0)[0] for lane, row in places) <= most:
            start = middle
        else:
            end = middle
    return start


def _texts(lanes: Lanes) -> tuple[list[dict[str, Any] | None], int]:
    """Returns the texts by number, with None for texts that do not fit, and how many do not fit."""
    texts: list[dict[str, Any] | None] = []
    left, left_out = TEXTS_MAX, 0
    while (text := lanes.text(len(texts))) is not None:
        is_kept = len(text) <= left
        left -= len(text) if is_kept else 0
        left_out += 0 if is_kept else 1
        texts.append(read_members(text) if is_kept else None)
    return texts, left_out
