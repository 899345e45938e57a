"""Tables of events and averages, printed like torch.profiler's."""

from __future__ import annotations

from vestige.base.printable import printable

from .devices import is_on_cpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

WIDTH = 12  # of a column of numbers
GAP = "  "
UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
SIZES = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))
FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
SAME_HERE = ("cuda", "xpu", "privateuse1")  # names of fields that mean the same as `device`


def format_time(us: float, unit: str | None = None) -> str:
    """Returns `1.234ms`, in the given unit, or else in the largest unit that gives at least 1."""
    if unit not in UNITS:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us / UNITS[unit]:.3f}{unit}"


def format_share(us: float, total_us: float) -> str:
    return "NaN" if total_us == 0 else f"{us * 100.0 / total_us:.2f}%"


def format_memory(count: int) -> str:
    for name, size in SIZES:
        if abs(count) >= size:
            return f"{count / size:.2f} {name}"
    return f"{count} B"


def _as_text(field: str) -> Any:
    """Returns a property: a time of the object as text."""
    return property(lambda event: format_time(getattr(event, field)))


class FormattedTimes:
    """Times as text, and averages per call, for classes with cpu_time_total and count."""

    __slots__ = ()

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0  # type: ignore[attr-defined]

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0  # type: ignore[attr-defined]

    cuda_time = device_time

    cpu_time_str = _as_text("cpu_time")
    cpu_time_total_str = _as_text("cpu_time_total")
    self_cpu_time_total_str = _as_text("self_cpu_time_total")
    device_time_str = _as_text("device_time")
    device_time_total_str = _as_text("device_time_total")
    self_device_time_total_str = _as_text("self_device_time_total")


class Columns:
    """Titles, widths and alignments of the columns; rows are formatted lines."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self._forms: list[str] = []
        self._widths: list[int] = []

    def add(self, title: str, width: int = WIDTH, side: str = ">") -> None:
        self.titles.append(title)
        self._forms.append(f"{{:{side}{width}}}{GAP}")
        self._widths.append(width)

    def row(self, values: Sequence[object]) -> str:
        return "".join(form.format(value) for form, value in zip(self._forms, map(_text, values), strict=True))

    @property
    def rule(self) -> str:
        return "".join("-" * width + GAP for width in self._widths)

    @property
    def width(self) -> int:
        return sum(self._widths) + len(GAP) * (len(self._widths) - 1)


def _text(value: object) -> str:
    return printable(str(value))


def _widest(texts: Sequence[str], most: int | None) -> int:
    width = max(map(len, texts)) + 4
    return width if most is None else min(width, most)


def _cut_name(name: str, most: int | None) -> str:
    return f"{name[: most - 3]}..." if most is not None and len(name) >= most - 3 else name


def _cut_path(path: str, width: int) -> str:
    if len(path) <= width:
        return path
    path = path[len(path) - width :]
    return f"...{path[3:]}" if len(path) > 3 else path


def sort_field(name: str) -> str:
    for device in SAME_HERE:
        name = name.replace(device, "device")
    return name


def flops_scale(events: Sequence[Any]) -> tuple[float, str] | None:
    """Returns the factor and the unit for numbers of operations; None if no event has such a number."""
    counts = [event.flops for event in events if event.flops and event.flops > 0]
    if not counts:
        return None
    step, least = 0, min(counts)
    while least >= 1000 and step < len(FLOPS) - 1:
        least /= 1000
        step += 1
    return 1000.0**-step, FLOPS[step]


def _device_shown(events: Sequence[Any]) -> str:
    """Returns the device name for column titles; "" if no event has device time."""
    if not any(event.self_device_time_total > 0 for event in events):
        return ""
    if not events[0].use_device:
        raise RuntimeError("use_device is None, but there is device performance data.")
    return str(events[0].use_device).upper()


def _is_work(event: Any) -> bool:
    """Returns whether a table's sum of device times includes the event. An operator's device time is that of kernels,
    which are events themselves.
    """
    if is_on_cpu(event):
        return bool(event.is_legacy)
    return not event.is_user_annotation


class Layout:
    """The columns for a table of these events, and the lines of each event."""

    def __init__(
        self,
        events: Sequence[Any],
        *,
        time_unit: str | None,
        profile_memory: bool,
        with_flops: bool,
        name_width: int | None,
        shapes_width: int | None,
        source_width: int | None,
    ) -> None:
        places = [place for event in events for place in event.stack or ()]
        self.total = sum(event.self_cpu_time_total for event in events)
        self.device = _device_shown(events)
        self.device_total = sum(event.self_device_time_total for event in events if _is_work(event))
        self._unit = time_unit
        self._name_most = name_width
        self._memory = profile_memory
        self._overloads = any(event.overload_name for event in events)
        self._nodes = any(event.node_id != -1 for event in events)
        self._shapes = any(event.input_shapes for event in events)
        self._shapes_width = _widest([str(event.input_shapes) for event in events], shapes_width)
        self._places_width = _widest(places, source_width) if places else 0
        self._scale = flops_scale(events) if with_flops else None
        self.columns = self._make_columns(_widest([event.key for event in events], name_width))

    def _make_columns(self, name_width: int) -> Columns:
        columns = Columns()
        columns.add("Name", name_width)
        if self._overloads:
            columns.add("Overload Name", name_width)
        for title in ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"):
            columns.add(title)
        if self.device:
            for title in (f"Self {self.device}", f"Self {self.device} %", f"{self.device} total"):
                columns.add(title)
            columns.add(f"{self.device} time avg")
        if self._memory:
            columns.add("CPU Mem")
            columns.add("Self CPU Mem")
        columns.add("# of Calls")
        if self._nodes:
            columns.add("Node ID")
        if self._shapes:
            columns.add("Input Shapes", self._shapes_width)
        if self._places_width:
            columns.add("Source Location", self._places_width, "<")
        if self._scale is not None:
            columns.add(f"Total {self._scale[1]}")
        return columns

    def lines(self, event: Any) -> list[str]:
        """Returns the line of an event. If sources are shown, adds a line for each further frame of its stack, and an
        empty line.
        """
        event.self_cpu_percent = format_share(event.self_cpu_time_total, self.total)
        event.total_cpu_percent = 0 if event.is_async else format_share(event.cpu_time_total, self.total)
        before, after = self._cells(event), self._last_cells(event)
        if not self._places_width:
            return [self.columns.row(before + after)]
        first, *others = [_cut_path(place, self._places_width) for place in event.stack or ()] or [""]
        empty, end = [""] * len(before), [""] * len(after)
        lines = [self.columns.row([*before, first, *after])]
        lines += [self.columns.row([*empty, place, *end]) for place in others]
        return [*lines, self.columns.row([*empty, "", *end])]

    def _cells(self, event: Any) -> list[object]:
        """Returns the cells before the source."""
        cells: list[object] = [_cut_name(event.key, self._name_most)]
        if self._overloads:
            cells.append(_cut_name(event.overload_name or "", self._name_most))
        cells += [
            event.self_cpu_percent,
            format_time(event.self_cpu_time_total, self._unit),
            event.total_cpu_percent,
            format_time(event.cpu_time_total, self._unit),
            format_time(event.cpu_time, self._unit),
        ]
        if self.device:
            event.total_device_percent = format_share(event.self_device_time_total, self.device_total)
            cells += [
                format_time(event.self_device_time_total, self._unit),
                event.total_device_percent,
                format_time(event.device_time_total, self._unit),
                format_time(event.device_time, self._unit),
            ]
        if self._memory:
            cells += [format_memory(event.cpu_memory_usage), format_memory(event.self_cpu_memory_usage)]
        cells.append(event.count)
        if self._nodes:
            cells.append(event.node_id)
        if self._shapes:
            cells.append(str(event.input_shapes)[: self._shapes_width])
        return cells

    def _last_cells(self, event: Any) -> list[object]:
        """Returns the cells after the source."""
        if self._scale is None:
            return []
        return ["--" if not event.flops or event.flops <= 0 else f"{event.flops * self._scale[0]:8.3f}"]


def format_table(
    events: Sequence[Any],
    *,
    sort_by: str | None,
    row_limit: int,
    max_src_column_width: int | None,
    max_name_column_width: int | None,
    max_shapes_column_width: int | None,
    header: str | None,
    top_level_events_only: bool,
    time_unit: str | None,
    profile_memory: bool,
    with_flops: bool,
) -> str:
    if len(events) == 0:
        return ""
    if sort_by is not None:
        field = sort_field(sort_by)
        events = sorted(events, key=lambda event: getattr(event, field), reverse=True)
    layout = Layout(
        events,
        time_unit=time_unit,
        profile_memory=profile_memory,
        with_flops=with_flops,
        name_width=max_name_column_width,
        shapes_width=max_shapes_column_width,
        source_width=max_src_column_width,
    )
    columns = layout.columns
    lines: list[str] = []
    if header is not None:
        lines += ["=" * columns.width, header]
    if top_level_events_only:
        lines += ["=" * columns.width, "This report only display top-level ops statistics"]
    lines += [columns.rule, columns.row(columns.titles), columns.rule]
    shown = [event for event in events if not (top_level_events_only and event.cpu_parent is not None)]
    for event in shown[:row_limit] if row_limit >= 0 else shown:
        lines += layout.lines(event)
    lines += [columns.rule, f"Self CPU time total: {format_time(layout.total, time_unit)}"]
    if layout.device:
        lines.append(f"Self {layout.device} time total: {format_time(layout.device_total, time_unit)}")
    lines.append("")
    return "\n".join(lines)
