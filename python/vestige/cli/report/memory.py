"""`vestige report --memory`: the functions that allocated most, or where no calls were recorded the lines."""

from __future__ import annotations

from vestige.base.quantities import size
from vestige.base.terminal import Paint, fit, width_of

from .tables import show_functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from .command import Reading


def sums(reading: Reading) -> dict[str, Any]:
    """Of all processes together; high-water marks are added up."""
    views = [summary["views"] for _, summary in reading.memory]
    return {
        "peak_bytes": sum(view["peak"][1] for view in views),
        "allocated_bytes": sum(view["total"][1] for view in views),
        "allocations": sum(view["total"][0] for view in views),
        "not_freed_bytes": sum(view["leaks"][1] for view in views),
        "sampled": any(summary["sampled"] for _, summary in reading.memory),
    }


def lines(reading: Reading) -> list[dict[str, Any]]:
    """Lines that allocated, those that allocated most first; empty where calls were recorded."""
    found: dict[str, dict[str, Any]] = {}
    for _, summary in reading.memory:
        rows: dict[int, dict[str, Any]] = {}
        for view in ("total", "peak", "leaks"):
            rows.update({id(row): row for row in summary["lines"][view][1]})
        seen = set()
        for row in rows.values():
            function, file, shown, line, _ = row["frame"]
            place = f"{shown}({line}): {function}" if shown else function
            if (file, line, function) in seen:
                continue
            seen.add((file, line, function))
            sums = found.setdefault(
                place, {"line": place, "self_bytes": 0, "allocations": 0, "peak_bytes": 0, "not_freed_bytes": 0}
            )
            amounts = row["amounts"]
            sums["self_bytes"] += amounts["total"][1]
            sums["allocations"] += amounts["total"][0]
            sums["peak_bytes"] += amounts["peak"][1]
            sums["not_freed_bytes"] += amounts["leaks"][1]
    return sorted(found.values(), key=lambda row: (-row["self_bytes"], row["line"]))


def show_memory(reading: Reading, rows: int, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    all_ = sums(reading)
    print(
        f"peak {size(all_['peak_bytes'])}, in all {size(all_['allocated_bytes'])} in "
        f"{all_['allocations']:,} allocations; {size(all_['not_freed_bytes'])} not freed"
        + (" (estimates)" if all_["sampled"] else ""),
        file=out,
    )
    functions = reading.functions()
    if functions:
        show_functions(functions, sum(entry.self_ns for entry in functions), rows, out, memory=True)
        return
    found = lines(reading)
    head = f"{'allocated':>10} {'count':>11} {'at peak':>9} {'not freed':>9}"
    print(paint(f"{head}  line", "head"), file=out)
    for row in found[:rows]:
        numbers = f"{size(row['self_bytes']):>10} {row['allocations']:>11,} {size(row['peak_bytes']):>9}"
        print(f"{numbers} {size(row['not_freed_bytes']):>9}  {fit(row['line'], width - len(head) - 2)}", file=out)
    if len(found) > rows:
        print(paint(f"{'':>10} and {len(found) - rows:,} more lines", "dim"), file=out)
