"""Memory in use over time, in the forms that torch.profiler's export_memory_timeline writes: numbers by category as
JSON, single events, and a page with a plot. What a block was for is torch's knowledge; here one that was freed while
recording went on is TEMPORARY, and the others are unknown."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

CATEGORIES = (
    "PARAMETER",
    "OPTIMIZER_STATE",
    "INPUT",
    "TEMPORARY",
    "ACTIVATION",
    "GRADIENT",
    "AUTOGRAD_DETAIL",
    "UNKNOWN",
)
TEMPORARY, UNKNOWN = 3, 7
PREEXISTING, CREATE, INCREMENT_VERSION, DESTROY = 1, 2, 3, 4
FREES = 4  # a flag of memory's events
FRAMEWORK = "framework"
POINTS_MAX = 2000  # of a plot
PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>Memory timeline</title>
<style>body {{ font: 14px sans-serif; margin: 2em }} svg {{ width: 100%; height: 70vh; border: 1px solid #ccc }}</style>
</head><body>
<h1>Memory in use on {device}</h1>
<p>Peak: {peak} bytes after {peak_ms:.3f} ms, of {length_ms:.3f} ms. Below: freed while recording went on (TEMPORARY);
above: not freed, or not known.</p>
<svg viewBox="0 0 1000 500" preserveAspectRatio="none">
<polygon fill="#e07b39" points="{all}"/><polygon fill="#4c78a8" points="{temporary}"/>
</svg>
</body></html>
"""


def raw_events(events: Iterable[Sequence[Any]]) -> list[tuple[int, int, int, int]]:
    """[time in ns, action, bytes, category], in order of time. Where a framework told of its blocks, these alone are
    counted: the others hold them."""
    events = list(events)
    of_framework = [event for event in events if str(event[0]).startswith(FRAMEWORK)]
    events = of_framework or events
    freed = {event[7] for event in events if event[5] & FREES}
    found: list[tuple[int, int, int, int]] = []
    known: set[int] = set()
    for _, _, size, time_ns, _, flags, _, serial, *_ in events:
        if not flags & FREES:
            known.add(serial)
            found.append((time_ns, CREATE, size, TEMPORARY if serial in freed else UNKNOWN))
        elif serial in known:
            found.append((time_ns, DESTROY, size, TEMPORARY))
    return found


def coalesce(events: Iterable[tuple[int, int, int, int]]) -> tuple[list[int], list[list[int]]]:
    """Times in µs, and the bytes of each category from then on, after a 0."""
    times: list[int] = []
    rows: list[list[int]] = []
    now = [0] * (len(CATEGORIES) + 1)
    for time_ns, action, size, category in events:
        now[1 + category] += size if action == CREATE else -size
        if times and times[-1] == time_ns // 1000:
            rows[-1] = list(now)
        else:
            times.append(time_ns // 1000)
            rows.append(list(now))
    return times, rows


def write_timeline(path: str, events: Iterable[Sequence[Any]], device: str) -> None:
    import gzip
    import json

    raw = raw_events(events) if device == "cpu" else []
    if path.endswith(".html"):
        text = page(*coalesce(raw), device)
    elif path.endswith("raw.json.gz"):
        text = json.dumps(raw)
    else:
        text = json.dumps(coalesce(raw))
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(text)
    else:
        with open(path, "w", encoding="utf-8") as plain:
            plain.write(text)


def page(times: Sequence[int], rows: Sequence[Sequence[int]], device: str) -> str:
    import html

    totals = [sum(row) for row in rows]
    peak = max(totals, default=0)
    at = totals.index(peak) if totals else 0
    first = times[0] if times else 0
    length = max((times[-1] - first) if times else 0, 1)
    steps = range(0, len(times), max(1, len(times) // POINTS_MAX))

    def area(values: Sequence[int]) -> str:
        points = ["0,500"]
        for step in steps:
            x = (times[step] - first) * 1000 / length
            points.append(f"{x:.2f},{500 - values[step] * 490 / max(peak, 1):.2f}")
        return " ".join([*points, "1000,500"])

    return PAGE.format(
        device=html.escape(device),
        peak=f"{peak:,}",
        peak_ms=(times[at] - first) / 1000 if times else 0.0,
        length_ms=length / 1000,
        all=area(totals),
        temporary=area([row[1 + TEMPORARY] for row in rows]),
    )
