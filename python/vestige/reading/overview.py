"""A short summary of a recording, for notebooks, as HTML and as text: the functions that took the most time. Functions
of the core sum up while they read; no event objects are made.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.base.terminal import WIDTH

from .kinds import GC, PYTHON
from .layout import Layout
from .report_columns import FUNCTIONS, SHARE
from .sums import Sums, called_functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from vestige._core import Trace

ROWS = 12
# The page's own colours stay visible, so the summary is readable on light and on dark pages.
STYLE = (
    "<style>.vestige{font-size:12px;line-height:1.4;color:inherit}.vestige table{border-collapse:collapse;"
    "color:inherit;background:none;margin:.4em 0}.vestige th,.vestige td{text-align:right;padding:1px 10px 1px 0;"
    "border:0;background:none;white-space:nowrap;font-variant-numeric:tabular-nums}.vestige th{opacity:.7;"
    "font-weight:600}.vestige th:last-child,.vestige td:last-child{text-align:left;font-family:monospace}"
    ".vestige i{display:inline-block;height:.7em;background:#d9822b;vertical-align:middle;margin-left:6px;"
    "border-radius:1px}.vestige b{font-weight:600}.vestige small{opacity:.7}</style>"
)
RECORDS_MAX = 20_000_000  # the most records that are read for a summary
BAR = 60  # width in pixels of the bar for 100 %
# files whose functions the notebook's own threads run
NOTEBOOK = ("IPython/", "ipykernel/", "zmq/", "tornado/", "jupyter_client/")


class Name(Sums):
    """The sums of a function's name, in the columns of report_columns.FUNCTIONS."""

    __slots__ = ("shown",)

    def __init__(self, shown: str) -> None:
        super().__init__()
        self.shown = shown

    def count(self, calls: int, self_ns: int, total_ns: int, self_bytes: int = 0, total_bytes: int = 0) -> None:
        self.calls += calls
        self.self_ns += self_ns
        self.total_ns += total_ns
        self.self_bytes += self_bytes
        self.total_bytes += total_bytes


class Overview:
    def __init__(self, rows: Iterable[Name], *, duration_ns: int, memory: bool) -> None:
        self.rows = sorted(rows, key=lambda row: (-row.self_ns, row.shown))
        self.columns = FUNCTIONS.in_text(("memory",) if memory else ())
        self.duration_ns = duration_ns
        self.gc_ns = 0
        self.threads = 0
        self.processes = 1
        self.lost = 0
        self.dropped = 0
        self.title = ""  # shown instead of the duration
        self.note = ""  # a sentence from the caller, shown below the table
        self.findings: list[str] = []  # lines shown above the table
        self.picture = ""  # a flame graph in SVG, shown below the table

    @property
    def whole_ns(self) -> int:
        return sum(row.self_ns for row in self.rows)

    @property
    def head(self) -> str:
        """`16.0 ms, 6,815 calls, 4 threads, 23% garbage collection`."""
        if self.title:
            return self.title
        parts = [duration(self.duration_ns), plural(sum(row.calls for row in self.rows), "call")]
        if self.processes > 1:
            parts.append(plural(self.processes, "process", "processes"))
        if self.threads > 1:
            parts.append(plural(self.threads, "thread"))
        if self.gc_ns and self.whole_ns:
            parts.append(f"{self.gc_ns / self.whole_ns:.0%} garbage collection")
        if self.lost:
            parts.append(f"{self.lost:,} records lost")
        if self.dropped:
            parts.append(f"{self.dropped:,} older records dropped")
        return ", ".join(parts)

    def html(self, count: int = ROWS) -> str:
        """Returns an HTML fragment that needs no other files."""
        from html import escape

        whole = self.whole_ns or 1
        layout = Layout(self.columns, whole_ns=whole)
        lines = [f'<div class="vestige">{STYLE}<b>{escape(self.head)}</b>']
        if self.findings:
            lines.append(f"<div>{'<br>'.join(map(escape, self.findings))}</div>")
        if self.rows:
            heads = "".join(f"<th>{escape(column.heading)}</th>" for column in self.columns)
            lines.append(f"<table><tr>{heads}</tr>")
        for row in self.rows[:count]:
            bar = f'<i style="width:{row.self_ns / whole * BAR:.0f}px"></i>'
            cells = [escape(layout.text(column, row)) + bar * (column.unit is SHARE) for column in self.columns]
            lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        if self.rows:
            lines.append("</table>")
        lines += [f"<small>{escape(note)}</small>" for note in self._notes(count)]
        return "".join(lines) + self.picture + "</div>"

    def text(self, count: int = ROWS) -> str:
        """Returns the table as text, like `vestige report`."""
        from textwrap import wrap

        layout = Layout(self.columns, self.rows[:count], WIDTH, whole_ns=self.whole_ns)
        found = [wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in self.findings]
        lines = [self.head, *(line for each in found for line in each)]
        if self.rows:
            lines.append(layout.head)
        lines += [layout.line(row) for row in self.rows[:count]]
        return "\n".join([*lines, *self._notes(count)])

    def _notes(self, count: int) -> list[str]:
        more = len(self.rows) - count
        notes = [f"and {plural(more, 'more function')}"] if more > 0 else []
        return [*notes, self.note] if self.note else notes


def of_trace(trace: Trace, selection: dict[str, Any], *, memory: bool = False, cell: str | None = None) -> Overview:
    """Sums up the selected part of a trace. With `cell`, a file's name, sums up the code of that file and the calls of
    other threads after it began.
    """
    tree = list(trace.tables(["contexts"], **{"all_windows": False, **selection})["contexts"])
    definitions = trace.definitions()
    kept = _since(tree, definitions, cell) if cell is not None else [True] * len(tree)
    sums: dict[str, Name] = {}
    gc_ns = first = last = 0
    for place, each in enumerate(tree):
        if not kept[place]:
            continue
        known = definitions[each.func] if each.func < len(definitions) else None
        kind, name = known or (0, f"unknown function {each.func}")
        outer = not _is_below_itself(tree, each.parent, each.func)
        row = sums.setdefault(name, Name(name))
        row.count(each.calls, each.self_ns, each.total_ns * outer, each.self_bytes, each.total_bytes * outer)
        gc_ns += each.self_ns if kind == GC else 0
        first = min(first or each.first_ns, each.first_ns)
        last = max(last, each.first_ns + each.total_ns)
    facts = trace.info()
    whole = facts["end_ns"] - facts["start_ns"] if cell is None else last - first
    overview = Overview(sums.values(), duration_ns=whole, memory=memory)
    overview.gc_ns = gc_ns
    overview.threads = facts["threads"] if cell is None else 0
    overview.lost, overview.dropped = facts["lost"], facts["dropped"]
    return overview


def _is_below_itself(tree: Sequence[Any], place: int | None, number: int) -> bool:
    while place is not None:
        if tree[place].func == number:
            return True
        place = tree[place].parent
    return False


def _since(tree: Sequence[Any], definitions: Sequence[Any], cell: str) -> list[bool]:
    """Returns which places of the tree are below code of the cell, or began after the cell on another thread. A parent
    comes before its children in `tree`.
    """
    roots: list[int] = []
    below: list[bool] = []
    others: list[bool] = []  # whether the place belongs to the notebook itself
    begun = mine = None
    for place, each in enumerate(tree):
        above = each.parent
        kind, name = (definitions[each.func] if each.func < len(definitions) else None) or (0, "")
        is_cell = kind == PYTHON and f"{cell}(" in name and name.endswith(": <module>")
        roots.append(place if above is None else roots[above])
        below.append(is_cell or (above is not None and below[above]))
        others.append(name.startswith(NOTEBOOK) or (above is not None and others[above]))
        if is_cell and (begun is None or each.first_ns < begun):
            begun, mine = each.first_ns, roots[place]
    if begun is None:
        return [True] * len(tree)
    return [
        under or (root != mine and not other and each.first_ns >= begun)
        for under, root, other, each in zip(below, roots, others, tree)
    ]


def of_traces(traces: Iterable[Trace], *, memory: bool = False) -> Overview:
    """Sums up several traces as one."""
    sums: dict[str, Name] = {}
    facts = []
    gc_ns = 0
    for trace in traces:
        facts.append(trace.info())
        for known, row in called_functions(trace):
            found = sums.setdefault(known.name, Name(known.name))
            found.count(row.calls, row.self_ns, row.total_ns, row.self_bytes, row.total_bytes)
            gc_ns += row.self_ns if known.kind == GC else 0
    start = min((each["start_ns"] for each in facts), default=0)
    end = max((each["end_ns"] for each in facts), default=0)
    overview = Overview(sums.values(), duration_ns=end - start, memory=memory)
    overview.gc_ns = gc_ns
    overview.processes = len(facts)
    overview.threads = sum(each["threads"] for each in facts)
    overview.lost = sum(each["lost"] for each in facts)
    overview.dropped = sum(each["dropped"] for each in facts)
    return overview


def of_sources(sources: Sequence[Any]) -> Overview:
    """Sums up traces as one. If they hold too many records, takes only the first traces."""
    taken: list[Any] = []
    records = 0
    for source in sources:
        records += source.facts["records"]
        if taken and records > RECORDS_MAX:
            break
        taken.append(source)
    overview = of_traces((source.open() for source in taken), memory=any(each.facts["memory"] for each in taken))
    if len(taken) < len(sources):
        overview.note = f"the first {len(taken):,} of {len(sources):,} traces"
    return overview


def of_profile(prof: Any) -> Overview:
    """Sums up the part of a stopped profile that it would export."""
    results = prof._read()
    return of_trace(results.trace, results.selection, memory=prof.profile_memory)


def of_events(events: Any) -> Overview:
    """Sums up an EventList: the averages of its events, or its rows if it already holds averages."""
    if events and not hasattr(events[0], "key_averages") and hasattr(events[0], "time_range"):
        events = events.key_averages(include_python_functions=True)
    rows = [Name(str(event.key)) for event in events]
    for row, event in zip(rows, events):
        row.count(
            event.count,
            round(event.self_cpu_time_total * 1000),
            round(event.cpu_time_total * 1000),
            event.self_cpu_memory_usage,
            event.cpu_memory_usage,
        )
    overview = Overview(rows, duration_ns=0, memory=events._profile_memory)
    overview.title = f"{sum(row.calls for row in rows):,} events of {len(rows):,} names"
    return overview
