"""Pictures that the core draws, converted for the page: times begin at the page's beginning."""

from __future__ import annotations

import struct

from .answers import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige._core import Lanes

    from .fields import Fields

RANGE_AT = 16  # position of the range in a picture's head


def as_picture(drawn: bytes, start: int, end: int) -> Answer:
    """Converts a picture of a range, which is from `start` to `end` in the page's times."""
    picture = bytearray(drawn)
    struct.pack_into("<qq", picture, RANGE_AT, start, end)
    return Answer(bytes(picture))


def draw_lanes(lanes: Lanes, fields: Fields, base_ns: int) -> Answer:
    """Draws the lanes and the range that the fields name. The page's times begin at `base_ns`."""
    start, end = fields.range()
    numbers = fields.numbers("lanes") or []
    return as_picture(lanes.draw(base_ns + start, base_ns + end, fields.pixels(), numbers), start, end)
