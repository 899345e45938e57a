"""Numbers in as few bytes as they need: 7 bits each, low first."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def varints(values: Iterable[int]) -> bytearray:
    packed = bytearray()
    for each in values:
        value = max(each, 0)  # in a damaged trace, times may be anything
        while value > 127:
            packed.append(value & 127 | 128)
            value >>= 7
        packed.append(value)
    return packed
