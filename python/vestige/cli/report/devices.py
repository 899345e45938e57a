"""`vestige report --devices`: the activities of devices, how much of the time devices were busy, and why they were
idle. The sums are made in C (src/tables/device_sums.c). Used by the report after `vestige run`, so it imports little.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural, size
from vestige.base.terminal import Paint, cut, width_of
from vestige.reading.devices import clock, label
from vestige.reading.layout import show
from vestige.reading.report_columns import ACTIVITIES, DEVICES, GAPS, STREAMS

from .data import Named, shown_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from typing import Any, TextIO

    from vestige._core import Trace
    from vestige.base.terminal import Progress
    from vestige.reading.report_columns import Column, Table

WORK = ("kernel", "copy", "set")
GAPS_SHOWN = 5  # idle times that the text shows
SECOND = 1_000_000_000


class Device:
    """A device of a trace, with its activities."""

    def __init__(self, facts: dict[str, Any], pid: int) -> None:
        self.facts = facts
        self.pid = pid
        self.label = label(facts)
        self.use: Any = None  # how the whole device was used; None: it did no work
        self.streams: list[Named] = []  # rows of report_columns.STREAMS
        self.named: list[Named] = []  # rows of report_columns.ACTIVITIES
        self.gaps: list[Named] = []  # rows of report_columns.GAPS

    @property
    def busy(self) -> float:
        return float(self.use.busy_share)

    @property
    def work_ns(self) -> int:
        return sum(row.total_ns for row in self.named if row.is_work)

    def moved(self) -> tuple[int, int]:
        """Returns the bytes of copies, and how long the copies took."""
        copies = [row for row in self.named if row.kind == "copy"]
        return sum(row.bytes for row in copies), sum(row.total_ns for row in copies)


def read(trace: Trace, progress: Progress | None = None) -> list[Device]:
    """Returns the devices of a trace. A trace without devices is not read."""
    info = trace.info()
    if not info.get("devices"):
        return []
    read = trace.tables(["device_sums", "device_uses", "device_gaps"], progress=progress)
    names = _names(trace)
    threads = {thread["number"]: thread["name"] or "(unnamed)" for thread in trace.threads()}
    devices = {facts["number"]: Device(facts, info["pid"]) for facts in info["devices"]}
    for row in read["device_uses"]:
        if row.device in devices:
            device = devices[row.device]
            use = Named(row, **_of(device), busy_share=row.busy_ns / (row.span_ns or 1))
            use.launch_delay_ns = row.delay_ns / row.launched if row.launched else None
            use.queue_mean = row.queue_sum / row.launched if row.launched else None
            if row.stream is None:
                device.use = use
            else:
                device.streams.append(use)
    for row in read["device_sums"]:
        if row.device in devices:
            name, is_work = names(row.func), row.kind in WORK
            named = Named(row, **_of(devices[row.device]), name=name, is_work=is_work)
            named.work_ns, named.shown = (row.total_ns, name) if is_work else (None, f"{name} ({row.kind})")
            devices[row.device].named.append(named)
    for row in read["device_gaps"]:
        if row.device in devices:
            gap = Named(row, **_of(devices[row.device]), idle_ns=row.end_ns - row.start_ns, next=names(row.func))
            gap.thread, gap.thread_number = threads.get(row.thread), row.thread
            gap.op = None if row.op is None else names(row.op)
            gap.annotation = None if row.annotation is None else names(row.annotation)
            gap.shown = " in ".join(name for name in (gap.next, gap.op, gap.annotation) if name)
            devices[row.device].gaps.append(gap)
    for device in devices.values():
        device.named.sort(key=lambda row: (-row.total_ns, row.name))
    return list(devices.values())


def _of(device: Device) -> dict[str, Any]:
    return {"pid": device.pid, "device": device.label}


def _names(trace: Trace) -> Any:
    functions = trace.functions()

    def name(id: int) -> str:
        function = functions[id] if id < len(functions) else None
        return "?" if function is None else shown_name(function)

    return name


def tables(devices: Sequence[Device]) -> list[tuple[Table, list[Named]]]:
    """Returns all tables except that of activities, for programs."""
    nothing = Named(None, **dict.fromkeys(column.of for column in DEVICES.columns))
    errors = {device: device.facts["error_ns"] for device in devices}
    return [
        (DEVICES, [Named(device.use or nothing, **_of(device), clock_error_ns=None if error < 0 else error)
                   for device, error in errors.items()]),
        (STREAMS, [use for device in devices for use in device.streams]),
        (GAPS, [gap for device in devices for gap in device.gaps]),
    ]  # fmt: skip


# ---- for people ----------------------------------------------------------------


def show_devices(
    devices: Sequence[Device], columns: Sequence[Column], start_ns: int, options: Namespace, out: TextIO
) -> None:
    if not devices:
        print("no device was recorded; see vestige run --help", file=out)
        return
    together = len({device.pid for device in devices}) > 1
    for number, device in enumerate(devices):
        print(end="\n" if number else "", file=out)
        _show_device(device, f" (pid {device.pid})" if together else "", out)
        ranked = sorted(device.named, key=lambda row: not row.is_work)
        ranked = ranked if options.sort is None else ACTIVITIES.sorted(ranked, options.sort)
        show(columns, ranked, options.rows, out, more="more", whole_ns=device.work_ns)
        show(GAPS.in_text(()), device.gaps[:GAPS_SHOWN], GAPS_SHOWN, out, start_ns=start_ns)


def _show_device(device: Device, whose: str, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    known = clock(device.facts)
    print(paint(cut(f"{device.label}{whose}{'; ' if known else ''}{known}", width), "head"), file=out)
    if not device.use:
        print("  it did nothing", file=out)
    else:
        for line in _summary(device):
            print("  " + cut(line, width - 2), file=out)
        show(STREAMS.in_text(()), device.streams, len(device.streams), out)


def _summary(device: Device) -> list[str]:
    use = device.use
    busy, span = duration(use.busy_ns), duration(use.span_ns)
    lines = [f"busy {device.busy:.1%}: {busy} of {span} between its first and last work"]
    if use.idle_ns:
        told = f"idle {duration(use.idle_ns)} in {plural(use.gaps, 'gap')}"
        if use.launched:
            told += f"; {duration(use.unlaunched_ns)} of that before the next launch was called"
        lines.append(told)
    moved, ns = device.moved()
    if moved:
        lines.append(f"copied {size(moved)} in {duration(ns)}, {_rate(moved, ns)}")
    return lines


def _rate(moved: int, ns: int) -> str:
    return f"{size(moved * SECOND / ns)}/s" if ns else "-"
