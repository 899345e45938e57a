"""`vestige report --format json|csv`: every view for programs, with plain numbers in nanoseconds and bytes."""

from __future__ import annotations

from vestige.reading.report_columns import BEGAN_IN, COLLECTIONS, PROCESSES, records, write_csv

from .devices import tables as device_tables
from .imports import Imports
from .notes import span_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence
    from typing import Any, TextIO

    from .command import Reading


def write(reading: Reading, options: Namespace, out: TextIO) -> None:
    """Writes a view. JSON is a document with facts and the tables of the view; CSV is the first of these tables."""
    columns, rows = reading.columns, reading.rows()[: options.rows]
    if options.format == "csv":
        write_csv(columns, rows, out, reading.whole_ns)
        return
    import json

    tables: dict[str, Any] = {reading.table.name: records(columns, rows, reading.whole_ns)}
    for name, more in _more_tables(reading, options):
        tables[name] = more[: options.rows]
    # A list of findings stands alone, for programs that act on findings.
    head = {} if options.view == "findings" else _head(reading, options)
    json.dump({**head, **tables}, out, indent=1)
    print(file=out)


def _more_tables(reading: Reading, options: Namespace) -> Iterator[tuple[str, Sequence[Any]]]:
    if reading.tasks is not None:
        yield "blocked", [vars(step) for step in reading.tasks.blocked]
    elif options.view == "imports":
        yield "chain", [{"module": link.name, "total_ns": link.total_ns} for link in Imports(reading.data.tree).chain]
    elif options.view == "devices":
        for table, rows in device_tables(reading.devices):
            yield table.name, records(table.in_files(()), rows)
    elif options.view == "gc":
        yield BEGAN_IN.name, records(BEGAN_IN.in_files(()), BEGAN_IN.sorted(reading.data.gc_in.values()))
        yield COLLECTIONS.name, records(COLLECTIONS.in_files(()), reading.data.long_collections)


def _head(reading: Reading, options: Namespace) -> dict[str, Any]:
    facts = reading.facts
    head: dict[str, Any] = {
        "view": options.view,
        "start_ns": min(each["start_ns"] for each in facts),
        "end_ns": max(each["end_ns"] for each in facts),
        "duration_ns": span_of(facts),
        "calls": reading.data.calls,
        "threads_ns": reading.data.threads_ns,
        "waiting_ns": reading.data.waits,
        "without_waits": reading.data.without_waits,
        "gc_ns": reading.data.gc_ns,
        "lost": sum(each["lost"] for each in facts),
        "dropped": sum(source.facts["dropped"] for source in reading.read),
        "left_out": sum(each["left_out"] for each in facts),
        "processes": records(PROCESSES.in_files(()), reading.read),
    }
    if options.view == "memory":
        from .memory import sums

        head["memory"] = sums(reading)
    if options.view == "imports":
        head["imports_ns"] = Imports(reading.data.tree).total_ns
    return head
