"""What reports of memory say beside allocations: what of the process was in RAM, what was only reserved."""

from __future__ import annotations

from vestige.base.quantities import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Summary = dict[str, Any]


def short(summaries: list[Summary]) -> str:
    """`resident at most 155 MiB; 1.00 GiB more only reserved`; empty where nothing is known."""
    known = [summary["resident"]["peak"] for summary in summaries if summary["resident"]]
    total = sum(summary["views"]["reserved"].bytes for summary in summaries)
    parts = [f"resident at most {size(sum(known))}"] if known else []
    return "; ".join([*parts, *([f"{size(total)} more only reserved"] if total else [])])


def resident(summaries: list[Summary]) -> str:
    """One line on the resident set, and what it was made of when it was highest; empty where it was not recorded."""
    known = [summary["resident"] for summary in summaries if summary["resident"]]
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
    """What the highest sample was made of."""
    files, before, live = one["files"], one["before"], one["live"]
    others = one["sampled"] - files - before - live
    parts = [f"{size(live)} allocated", f"{size(files)} files (the interpreter, libraries)"]
    parts.append(f"{size(before)} there before")
    if others >= 0:
        return [*parts, f"{size(others)} others (stacks, allocators, the recording)"]
    return [*parts, f"less {size(-others)} that was not touched"]


def reserved(summaries: list[Summary]) -> str:
    """One line on address space that was never in use; empty where there was none."""
    total = sum(summary["views"]["reserved"].bytes for summary in summaries)
    return f"reserved {size(total)} of address space beside, not in use" if total else ""
