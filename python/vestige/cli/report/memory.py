"""`vestige report --memory`: the figures above the table of functions."""

from __future__ import annotations

from vestige.base.quantities import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .command import Reading


def sums(reading: Reading) -> dict[str, Any]:
    """Returns sums over all processes; high-water marks are added up."""
    views = [summary.views for _, summary in reading.memory]
    return {
        "peak_bytes": sum(view["peak"].bytes for view in views),
        "allocated_bytes": sum(view["total"].bytes for view in views),
        "allocations": sum(view["total"].count for view in views),
        "not_freed_bytes": sum(view["leaks"].bytes for view in views),
        "sampled": any(summary.facts["sampled"] for _, summary in reading.memory),
    }


def summary(reading: Reading) -> str:
    all_ = sums(reading)
    return (
        f"peak {size(all_['peak_bytes'])}, in all {size(all_['allocated_bytes'])} in "
        f"{all_['allocations']:,} allocations; {size(all_['not_freed_bytes'])} not freed"
        + (" (estimates)" if all_["sampled"] else "")
    )


def pointer(paths: Iterable[str]) -> str:
    """Returns the command that shows a recording of memory alone."""
    from shlex import join

    return f"memory alone was recorded here: {join(['vestige', 'memory-report', *paths])}"
