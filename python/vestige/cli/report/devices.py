"""`vestige report --devices`: what devices did, how much of the time they were busy, and why they were not.

The sums are made in C (src/tables/device_sums.c). Used by the report after `vestige run`, so it imports little.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural, size
from vestige.base.terminal import Paint, cut, fit, width_of
from vestige.reading.devices import clock, label
from vestige.reading.kinds import PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from vestige._core import Trace
    from vestige.base.terminal import Progress

WORK = ("kernel", "copy", "set")
GAPS = 5  # in the text
SECOND = 1_000_000_000


class Device:
    """A device of a trace, and what it did."""

    def __init__(self, facts: dict[str, Any], pid: int) -> None:
        self.facts = facts
        self.pid = pid
        self.label = label(facts)
        self.use: Any = None  # of the whole device, a row of device_uses; None: it did no work
        self.streams: list[Any] = []  # the same of each
        self.named: list[dict[str, Any]] = []
        self.gaps: list[dict[str, Any]] = []

    @property
    def busy(self) -> float:
        return _share(self.use)

    @property
    def work(self) -> list[dict[str, Any]]:
        return [row for row in self.named if row["kind"] in WORK]

    def moved(self) -> tuple[int, int]:
        """The bytes of copies, and how long those took."""
        copies = [row for row in self.named if row["kind"] == "copy"]
        return sum(row["bytes"] for row in copies), sum(row["time_ns"] for row in copies)


def _share(use: Any) -> float:
    return float(use.busy_ns / (use.span_ns or 1))


def read(trace: Trace, progress: Progress | None = None) -> list[Device]:
    """The devices of a trace; none costs no reading."""
    info = trace.info()
    if not info.get("devices"):
        return []
    read = trace.tables(["device_sums", "device_uses", "device_gaps"], progress=progress)
    names = _names(trace)
    threads = {thread["number"]: thread["name"] or "(unnamed)" for thread in trace.threads()}
    devices = {facts["number"]: Device(facts, info["pid"]) for facts in info["devices"]}
    for use in read["device_uses"]:
        if use.device in devices and use.stream is None:
            devices[use.device].use = use
        elif use.device in devices:
            devices[use.device].streams.append(use)
    for row in read["device_sums"]:
        if row.device in devices:
            devices[row.device].named.append(
                {
                    "kind": row.kind,
                    "name": names(row.func),
                    "count": row.activities,
                    "time_ns": row.total_ns,
                    "longest_ns": row.longest_ns,
                    "bytes": row.bytes,
                }
            )
    for gap in read["device_gaps"]:
        if gap.device in devices:
            devices[gap.device].gaps.append(
                {
                    "start_ns": gap.start_ns,
                    "idle_ns": gap.end_ns - gap.start_ns,
                    "until_launch_ns": gap.unlaunched_ns,
                    "stream": gap.stream,
                    "next": names(gap.func),
                    "thread": threads.get(gap.thread),
                    "thread_number": gap.thread,
                    "op": None if gap.op is None else names(gap.op),
                    "annotation": None if gap.annotation is None else names(gap.annotation),
                }
            )
    for device in devices.values():
        device.named.sort(key=lambda row: (-row["time_ns"], row["name"]))
    return list(devices.values())


def _names(trace: Trace) -> Any:
    functions = trace.functions()

    def name(id: int) -> str:
        function = functions[id] if id < len(functions) else None
        if function is None:
            return "?"
        kind, name, _, file, line = function
        return f"{file}({line}): {name}" if kind == PYTHON else name

    return name


# ---- for programs --------------------------------------------------------------

COLUMNS = ["pid", "device", "kind", "name", "count", "time_ns", "longest_ns", "bytes"]
USE = (
    "works", "span_ns", "busy_ns", "idle_ns", "gaps", "longest_gap_ns", "until_launch_ns", "launched",
    "launch_delay_ns", "queue_max", "queue_mean",
)  # fmt: skip
USE_OF_DEVICE = tuple(name for name in USE if not name.startswith("queue"))


def _use(use: Any) -> dict[str, Any]:
    values = {
        "until_launch_ns": use.unlaunched_ns,
        "launch_delay_ns": use.delay_ns / use.launched if use.launched else None,
        "queue_mean": use.queue_sum / use.launched if use.launched else None,
    }
    names = USE if use.stream is not None else USE_OF_DEVICE
    return {name: values[name] if name in values else getattr(use, name) for name in names}


def as_rows(devices: Sequence[Device]) -> dict[str, list[dict[str, Any]]]:
    """What they did comes first, which is what CSV has."""
    tables: dict[str, list[dict[str, Any]]] = {"activities": [], "devices": [], "streams": [], "gaps": []}
    for device in devices:
        of = {"pid": device.pid, "device": device.label}
        tables["activities"] += [{**of, **row} for row in device.named]
        error = device.facts["error_ns"]
        facts = {"clock_error_ns": None if error < 0 else error}
        tables["devices"].append({**of, **facts, **(_use(device.use) if device.use else {})})
        tables["streams"] += [{**of, "stream": use.stream, **_use(use)} for use in device.streams]
        tables["gaps"] += [
            {**of, **{key: value for key, value in gap.items() if key != "thread_number"}} for gap in device.gaps
        ]
    return tables


# ---- for people ----------------------------------------------------------------


def show_devices(devices: Sequence[Device], start_ns: int, rows: int, out: TextIO) -> None:
    if not devices:
        print("no device was recorded; see vestige run --help", file=out)
        return
    together = len({device.pid for device in devices}) > 1
    for number, device in enumerate(devices):
        print(end="\n" if number else "", file=out)
        _show_device(device, start_ns, rows, f" (pid {device.pid})" if together else "", out)


def _show_device(device: Device, start_ns: int, rows: int, whose: str, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    known = clock(device.facts)
    print(paint(cut(f"{device.label}{whose}{'; ' if known else ''}{known}", width), "head"), file=out)
    if not device.use:
        print("  it did nothing", file=out)
    else:
        for line in _summary(device):
            print("  " + cut(line, width - 2), file=out)
        _show_streams(device, out)
    _show_named(device, rows, out)
    _show_gaps(device, start_ns, out)


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


def _show_streams(device: Device, out: TextIO) -> None:
    paint = Paint(out)
    head = f"{'stream':>10} {'works':>9} {'busy':>8} {'%':>6} {'idle':>8} {'gaps':>7} {'longest':>8}"
    print(paint(f"{head} {'delay':>8} {'queue':>6}", "head"), file=out)
    for use in device.streams:
        launched = use.launched
        delay = duration(use.delay_ns / launched) if launched else "-"
        queue = f"{use.queue_sum / launched:.1f}" if launched else "-"
        busy = f"{duration(use.busy_ns):>8} {_share(use):>6.1%}"
        idle = f"{duration(use.idle_ns):>8} {use.gaps:>7,} {duration(use.longest_gap_ns):>8}"
        print(f"{use.stream:>10} {use.works:>9,} {busy} {idle} {delay:>8} {queue:>6}", file=out)


def _show_named(device: Device, rows: int, out: TextIO) -> None:
    if not device.named:
        return
    paint, width = Paint(out), width_of(out)
    head = f"{'time':>10} {'%':>6} {'count':>9} {'longest':>8} {'copied':>9}  "
    print(paint(f"{head}kernel, copy, set, or what else it did", "head"), file=out)
    whole = sum(row["time_ns"] for row in device.work) or 1
    ranked = [*device.work, *(row for row in device.named if row["kind"] not in WORK)]
    for row in ranked[:rows]:
        is_work = row["kind"] in WORK
        share = f"{row['time_ns'] / whole:.1%}" if is_work else ""
        moved = size(row["bytes"]) if row["bytes"] else ""
        name = row["name"] if is_work else f"{row['name']} ({row['kind']})"
        times = f"{duration(row['time_ns']):>10} {share:>6} {row['count']:>9,} {duration(row['longest_ns']):>8}"
        line = f"{times} {moved:>9}  "
        print(line + paint(fit(name, width - len(line)), None if is_work else "dim"), file=out)
    if len(ranked) > rows:
        print(paint(f"{'':>10} and {len(ranked) - rows:,} more", "dim"), file=out)


def _show_gaps(device: Device, start_ns: int, out: TextIO) -> None:
    if not device.gaps:
        return
    paint, width = Paint(out), width_of(out)
    print(paint(f"{'idle':>10} {'from':>9} {'unlaunched':>10}  until", "head"), file=out)
    for gap in device.gaps[:GAPS]:
        late = gap["until_launch_ns"]
        around = " in ".join(name for name in (gap["next"], gap["op"], gap["annotation"]) if name)
        unlaunched = "-" if late is None else duration(late)
        line = f"{duration(gap['idle_ns']):>10} {duration(gap['start_ns'] - start_ns):>9} {unlaunched:>10}  "
        print(line + cut(around, width - len(line)), file=out)
