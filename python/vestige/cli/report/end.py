"""The report after `vestige run`: one screen of 80 columns, about the process and its recorded children. It is made
inside the program's process, at its very end, so it imports little, starts no thread, and is done in one reading of
each trace.
"""

from __future__ import annotations

from vestige._core import Trace, TraceError
from vestige.base.quantities import duration, plural
from vestige.base.terminal import Paint, Progress, cut, width_of

from .data import FOR_FINDINGS, SMALLER, Data
from .devices import read as read_devices
from .findings import Evidence, engine_of, find, lines, not_examined
from .notes import cost_of_recording, show_head, show_left_out, span_of
from .sections import MIN_SHARE, Sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from .data import Named, Node
    from .devices import Device

PROCESSOR_WAITS = "vestige.processor_waits"  # key of the metadata
PROCESSES_MAX = 64  # no more processes are read; the report says how many there are


class Part:
    """The trace of one process."""

    def __init__(self, path: str, metadata: dict[str, Any]) -> None:
        self.path = path
        trace = Trace(path)
        self.facts: dict[str, Any] = trace.info()
        self.engine = engine_of(trace)
        self.metadata = {**metadata, PROCESSOR_WAITS: _waits(trace)}

    def open(self) -> Trace:
        return Trace(self.path)


def show(path: str, metadata: dict[str, Any], out: TextIO, children: Sequence[str] = ()) -> None:
    """Writes the report: findings; the tree of calls; threads; garbage collections; what is missing."""
    parts = [Part(path, metadata), *_children(children, metadata)]
    facts = [part.facts for part in parts]
    data = _read(parts)
    devices = [device for part in parts for device in read_devices(part.open())]

    def look(step: Named) -> Node:
        inside = Data()
        for part in parts:
            if part.facts["pid"] == step.pid:
                again = part.open()
                again.set_range(step.start_ns, step.start_ns + step.duration_ns)
                inside.add(again, part.metadata, ["calls"], threads=[step.thread], fold_imports=True, awaits=True)
                break
        return inside.tree

    show_head(facts, data, out, shares=False)
    paint, width = Paint(out), width_of(out)
    metadatas = [part.metadata for part in parts]
    evidence = Evidence(data, facts, parts[0].engine, look, lambda: (part.open() for part in parts), devices)
    for line in lines(find(evidence), width, not_examined(facts, metadatas)):
        print(line, file=out)
    for line in Sections(data, facts).lines((), width, paint):
        print(line, file=out)
    for line in (_devices(devices, width), _collections(data, span_of(facts)), cost_of_recording(evidence)):
        if line:
            print(line, file=out)
    running = len(children) - len([part for part in parts[1:] if part.facts["clean"]])
    if running:
        is_are = "is" if running == 1 else "are"
        print(f"{plural(running, 'child process', 'child processes')} {is_are} still running or did not end", file=out)
    show_left_out(facts, metadatas, data, out)


def _children(paths: Sequence[str], metadata: dict[str, Any]) -> list[Part]:
    """Returns the children's traces that can be read, with the recording's metadata."""
    found = []
    for path in paths[:PROCESSES_MAX]:
        try:
            found.append(Part(path, metadata))
        except (OSError, TraceError):
            continue
    return found


def _read(parts: Sequence[Part]) -> Data:
    data = Data()
    for part in parts:
        progress = Progress("making the report", rich=False)
        # With --only, all calls may be shorter than this limit.
        whole = part.facts["end_ns"] - part.facts["start_ns"]
        least_ns = 0 if "vestige.only" in part.metadata else int(MIN_SHARE * whole / SMALLER)
        try:
            data.add(
                part.open(),
                part.metadata,
                FOR_FINDINGS,
                together=len(parts) > 1,
                only_own=True,
                min_ns=least_ns,
                progress=progress,
                fold_imports=True,
                awaits=True,
                by_thread=True,
            )
        finally:
            progress.clear()
    return data


def _waits(trace: Trace) -> dict[str, int]:
    """Returns how long threads waited for a processor, by tid. This process wrote the text itself, so no JSON parser is
    needed."""
    pairs = trace.metadata().get(PROCESSOR_WAITS, "").strip("{}").replace('"', "").split(",")
    return {tid.strip(): int(ns) for tid, colon, ns in (pair.partition(":") for pair in pairs) if colon}


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
