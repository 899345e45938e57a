"""Finds out which tensors of a recording share memory, and numbers tensors and memory as torch does.

An allocation has an address until it is freed. A tensor has an impl, which may get other memory (resize_, set_). All
memory that one impl ever had gets one id.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def number(seen: Iterable[tuple[Any, int, int, object, bool]]) -> None:
    """Sets id and allocation_id of tensors and allocations. `seen` gives each in order of time: the object, the address
    of its impl (0 for an allocation), the address of its memory, its device, and whether its memory is freed.
    """
    kept = list(seen)
    blocks: dict[tuple[int, object], int] = {}
    count = 0
    for each, _, address, device, is_freed in kept:
        place = address, device
        if place not in blocks:
            count += 1
            blocks[place] = count
        each.allocation_id = blocks[place]
        if is_freed:
            del blocks[place]
    of_tensors = {each.allocation_id for each, impl, *_ in kept if impl}
    kept = [entry for entry in kept if entry[0].allocation_id in of_tensors]
    ids = _groups(kept)
    for each, *_ in kept:
        each.id = ids[each.allocation_id]


def _groups(kept: list[tuple[Any, int, int, object, bool]]) -> dict[int, int]:
    """Returns the id of each allocation."""
    first: dict[int, int] = {}  # the first allocation of each impl
    pairs = set()
    for each, impl, *_ in kept:
        if impl:
            one, other = first.setdefault(impl, each.allocation_id), each.allocation_id
            pairs.add((min(one, other), max(one, other)))
    ids: dict[int, int] = {}
    count = 0
    for one, other in sorted(pairs):
        if one not in ids:
            ids[one] = count
            count += 1
        ids.setdefault(other, ids[one])
    return ids
