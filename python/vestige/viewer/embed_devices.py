"""What devices did, in a page made by `vestige view --html`: activities by lane and row, as columns of varints."""

from __future__ import annotations

from vestige.reading.activities import (
    ANNOTATION_ID,
    BYTES,
    CONTEXT,
    CORRELATION,
    DEVICE,
    END,
    EXTERNAL,
    ID,
    KIND,
    LANE,
    LAUNCH,
    NAMES,
    OP_ID,
    ROW,
    START,
    Activities,
    read_attributes,
)

from .devices import describe_devices, describe_lanes
from .varints import varints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .embed import Blob
    from .traces import Shown

ACTIVITIES_MAX = 300_000
TEXTS_MAX = 4 << 20  # bytes of attributes


def pack_devices(shown: Shown, base: int, blob: Blob) -> dict[str, Any]:
    """Where there are too many, the first of them."""
    rows = Activities(*shown.open().activities(all_windows=True))
    starts = rows.column(START)
    last = sorted(starts)[ACTIVITIES_MAX] if rows.count > ACTIVITIES_MAX else None
    kept = [number for number in range(rows.count) if last is None or starts[number] < last]
    texts = _Texts()
    packed = _pack_rows(rows, kept, texts, base, blob)
    lanes = shown.device_lanes()
    left_out, texts_left_out = lanes.left_out()
    return {
        "devices": describe_devices(shown),
        "lanes": describe_lanes(shown, lanes, base),
        "left_out": [left_out + rows.count - len(kept), texts_left_out + texts.left_out],
        "kinds": {str(number): name for number, name in NAMES.items()},
        "texts": texts.all,
        "rows": packed,
    }


class _Texts:
    """Attributes, of which equal ones are kept once; the first is none."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = [{}]
        self.left_out = 0
        self._known: dict[str, int] = {"": 0}
        self._left = TEXTS_MAX

    def add(self, text: str) -> int:
        known = self._known.get(text)
        if known is None and len(text) > self._left:
            self.left_out += 1
            return 0
        if known is None:
            self._left -= len(text)
            known = self._known[text] = len(self.all)
            self.all.append(read_attributes(text))
        return known


def _pack_rows(rows: Activities, kept: list[int], texts: _Texts, base: int, blob: Blob) -> list[list[int]]:
    """Of each row: lane, row, number of its first activity, how many, and where the columns are."""
    places = {number: place for place, number in enumerate(kept)}
    fields = [rows.column(field) for field in (KIND, DEVICE, CONTEXT, BYTES)]
    causes = [rows.column(field) for field in (OP_ID, ANNOTATION_ID)]
    numbers = [rows.column(field) for field in (CORRELATION, EXTERNAL)]
    starts, ends, ids, launches = (rows.column(field) for field in (START, END, ID, LAUNCH))
    lanes, depths = rows.column(LANE), rows.column(ROW)
    groups: dict[tuple[int, int], list[int]] = {}
    for number in kept:
        groups.setdefault((lanes[number], depths[number]), []).append(number)
    packed = []
    for (lane, depth), members in groups.items():
        values: list[int] = []
        before = base
        for number in members:
            launch = places.get(launches[number] - 1)
            values += (starts[number] - before, ends[number] - starts[number], ids[number])
            values += (column[number] for column in fields)
            values.append(0 if launch is None else launch + 1)
            values += (column[number] for column in causes)
            values.append(texts.add(rows.attributes_text(number)))
            values += (column[number] for column in numbers)
            before = max(starts[number], before)
        packed.append([lane, depth, places[members[0]], len(members), *blob.add(varints(values))])
    return packed
