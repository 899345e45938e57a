"""The report after `vestige run`: one screen of 80 columns. It is made inside the program's process, at its very end,
so it imports little, starts no thread, and is done in one reading of the trace.
"""

from __future__ import annotations

from vestige._core import Trace
from vestige.base.quantities import duration, plural
from vestige.base.terminal import UNBOUNDED, Paint, Progress, cells, cut, width_of

from .data import FOR_FINDINGS, Data
from .devices import read as read_devices
from .findings import Evidence, engine_of, find, lines
from .notes import WORTH_A_WORD, has_all_calls, show_head, show_left_out, span_of
from .tree import choose, draw, fold, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from .data import Named, Node
    from .devices import Device

ROWS = 14  # rows of the tree
THREAD_NAME = 20  # longest name of a thread, in characters
THREADS = 8  # threads in the line about threads, if the terminal has room
MIN_SHARE = 0.01
PROCESSOR_WAITS = "vestige.processor_waits"  # key of the metadata


def show(path: str, metadata: dict[str, Any], out: TextIO) -> None:
    """Writes the report: findings; the tree of calls; threads; garbage collections; what is missing."""
    trace = Trace(path)
    facts = trace.info()
    metadata = {**metadata, PROCESSOR_WAITS: _waits(trace)}
    whole = span_of([facts])
    data = Data()
    progress = Progress("making the report", rich=False)
    try:
        # Every call may be shorter than that, because few functions were recorded.
        min_ns = 0 if "vestige.only" in metadata else int(MIN_SHARE * whole / 64)
        data.add(
            trace,
            metadata,
            FOR_FINDINGS,
            only_own=True,
            min_ns=min_ns,
            progress=progress,
            fold_imports=True,
            awaits=True,
        )
    finally:
        progress.clear()

    def look(step: Named) -> Node:
        inside = Data()
        again = Trace(path)
        again.set_range(step.start_ns, step.start_ns + step.duration_ns)
        inside.add(again, metadata, ["calls"], threads=[step.thread], fold_imports=True, awaits=True)
        return inside.tree

    devices = read_devices(trace)
    found = find(Evidence(data, [facts], engine_of(trace), look, lambda: [trace], devices))
    if facts["threads"] > 1:  # otherwise threads that wait for work would come first
        data.leave_out_waits()
    show_head([facts], data, out)
    paint, width = Paint(out), width_of(out)
    for line in lines(found, width, all_calls=has_all_calls([facts], [metadata])):
        print(line, file=out)
    for line in _tree(data, data.threads_ns, width, paint):
        print(line, file=out)
    for line in (_threads(data, width), _devices(devices, width), _collections(data, whole)):
        if line:
            print(line, file=out)
    show_left_out([facts], [metadata], data, out)


def _waits(trace: Trace) -> dict[str, int]:
    """Returns how long threads waited for a processor. This process wrote the metadata just now, so no JSON parser is
    needed.
    """
    pairs = trace.metadata().get(PROCESSOR_WAITS, "").strip("{}").replace('"', "").split(",")
    return {tid.strip(): int(ns) for tid, colon, ns in (pair.partition(":") for pair in pairs) if colon}


def _tree(data: Data, whole: int, width: int, paint: Paint) -> list[str]:
    lines = fold(data.tree, whole)
    chosen = choose(lines, ROWS, MIN_SHARE * whole)
    if len(chosen) == ROWS:  # there are more lines than rows: leave out calls that only pass on
        shorten(lines)
        chosen = choose(lines, ROWS, MIN_SHARE * whole)
    return draw(lines, whole, chosen, width, paint)


def _threads(data: Data, width: int) -> str:
    """Returns `4 threads: MainThread 16 ms (7 ms waiting), worker 0 5 ms, …`."""
    if len(data.threads) < 2:
        return ""
    times = {thread: thread.self_ns + (thread.waiting_ns if data.without_waits else 0) for thread in data.threads}
    ranked = sorted(data.threads, key=lambda thread: (-times[thread], thread.first_ns))
    line = "threads:"
    for number, thread in enumerate(ranked):
        time = times[thread]
        waiting = f" ({duration(thread.waiting_ns)} waiting)" if thread.waiting_ns >= WORTH_A_WORD * time else ""
        name = cut(thread.name, THREAD_NAME) if width < UNBOUNDED else thread.name
        part = f"{',' if number else ''} {name} {duration(time)}{waiting}"
        more = f", {len(ranked) - number:,} more"
        room = width if number == len(ranked) - 1 else width - len(more)
        if number == THREADS or cells(line + part) > room:
            return line + more
        line += part
    return line


def _devices(devices: Sequence[Device], width: int) -> str:
    """Returns `cuda 0: NVIDIA H100 busy 43% of 2.1 s; …`."""
    worked = [device for device in devices if device.use]
    told = [f"{device.label} busy {device.busy:.0%} of {duration(device.use.span_ns)}" for device in worked]
    return cut(f"devices: {'; '.join(told)}", width) if told else ""


def _collections(data: Data, whole: int) -> str:
    if not data.collections:
        return ""
    share = data.gc_ns / (whole or 1)
    return f"{plural(data.collections, 'garbage collection')}: {duration(data.gc_ns)}, {share:.1%} of the time"
