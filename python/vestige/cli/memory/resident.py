"""Lines of memory reports about other things than allocations: how much of the process was in RAM, and address space
that was only reserved.
"""

from __future__ import annotations

from vestige.base.quantities import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vestige.reading.memory import MemorySummary


def short(summaries: list[MemorySummary]) -> str:
    """Returns `resident at most 155 MiB; 1.00 GiB more only reserved`; "" if nothing is known."""
    known = [summary.resident["peak"] for summary in summaries if summary.resident]
    total = sum(summary.views["reserved"].bytes for summary in summaries)
    parts = [f"resident at most {size(sum(known))}"] if known else []
    return "; ".join([*parts, *([f"{size(total)} more only reserved"] if total else [])])


def resident(summaries: list[MemorySummary]) -> str:
    """Returns a line about the resident set, and its parts when it was highest; "" if it was not recorded."""
    known = [summary.resident for summary in summaries if summary.resident]
    if not known:
        return ""
    if len(known) > 1:
        return f"resident at most {size(sum(one['peak'] for one in known))}, the peaks of all processes together"
    [one] = known
    text = f"resident at most {size(one['peak'])}"
    if not one["sampled"]:
        return text
    return f"{text}: {'; '.join(_parts(one))}"


def _parts(one: dict[str, Any]) -> list[str]:
    """Returns the parts of the highest sample."""
    files, before, live = one["files"], one["before"], one["live"]
    others = one["sampled"] - files - before - live
    parts = [f"{size(live)} allocated", f"{size(files)} files (the interpreter, libraries)"]
    parts.append(f"{size(before)} there before")
    if others >= 0:
        return [*parts, f"{size(others)} others (stacks, allocators, the recording)"]
    return [*parts, f"less {size(-others)} that was not touched"]


def reserved(summaries: list[MemorySummary]) -> str:
    """Returns a line about address space that was never in use; "" if there was none."""
    total = sum(summary.views["reserved"].bytes for summary in summaries)
    return f"reserved {size(total)} of address space beside, not in use" if total else ""
