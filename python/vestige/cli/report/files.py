"""`vestige report --format json|csv`: every view for programs, with plain numbers in nanoseconds and bytes."""

from __future__ import annotations

from vestige.base.terminal import exact
from vestige.reading.kinds import REPORT_NAMES
from vestige.reading.waits import waits_for

from .devices import COLUMNS as DEVICE_COLUMNS
from .devices import as_rows as devices_as_rows
from .exceptions import COLUMNS as EXCEPTION_COLUMNS
from .imports import Imports, as_tables
from .tables import span_of
from .tasks import COLUMNS as TASK_COLUMNS
from .tasks import as_rows as tasks_as_rows
from .tree import as_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any, TextIO

    from .command import Reading
    from .data import Entry, Thread


def write(reading: Reading, options: Namespace, out: TextIO) -> None:
    """JSON is a document of what was read and the tables of the view; CSV is the first of these tables."""
    if options.view == "findings":
        _write_findings(reading, options, out)
        return
    tables = _tables(reading, options)
    tables = {name: rows if options.rows is None else rows[: options.rows] for name, rows in tables.items()}
    if options.format == "json":
        import json

        json.dump({**_head(reading, options), **tables}, out, indent=1)
        print(file=out)
        return
    import csv

    rows = next(iter(tables.values()))
    writer = csv.writer(exact(out), lineterminator="\n")
    writer.writerow(rows[0] if rows else COLUMNS[next(iter(tables))])
    writer.writerows(row.values() for row in rows)


COLUMNS = {
    "functions": ["function", "kind", "file", "line", "library", "calls", "self_ns", "total_ns", "waits_for"],
    "tree": ["id", "parent", "depth", "function", "library", "calls", "self_ns", "total_ns", "waits_for"],
    "threads": ["thread", "pid", "tid", "calls", "time_ns", "waiting_ns", "gc_ns", "first_ns", "last_ns", "most_in"],
    "imports": ["module", "named", "times", "self_ns", "total_ns", "first_imported_by"],
    "tasks": TASK_COLUMNS,
    "exceptions": EXCEPTION_COLUMNS,
    "activities": DEVICE_COLUMNS,
    "generations": ["generation", "count", "time_ns", "longest_ns", "collected", "uncollectable"],
    "lines": ["line", "self_bytes", "allocations", "peak_bytes", "not_freed_bytes"],
}


def _write_findings(reading: Reading, options: Namespace, out: TextIO) -> None:
    """These alone: who reads them acts by them."""
    files = [source.path for source, _ in reading.read]
    rows = [finding.as_json(files) for finding in reading.findings()]
    if options.format == "json":
        import json

        json.dump({"findings": rows}, out, indent=1)
        print(file=out)
        return
    import csv

    writer = csv.writer(exact(out), lineterminator="\n")
    writer.writerow(["kind", "text", "next"])
    writer.writerows([row["kind"], row["text"], row["next"]] for row in rows)


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
        "dropped": sum(source.facts["dropped"] for source, _ in reading.read),
        "left_out": sum(each["left_out"] for each in facts),
        "processes": [
            {
                "file": source.path,
                "pid": source.facts["pid"],
                "rank": source.rank,
                "host": source.host,
                "command": source.command,
                "ended": source.ended,
                "duration_ns": source.facts["end_ns"] - source.facts["start_ns"],
                "calls": calls,
            }
            for source, calls in reading.read
        ],
    }
    if options.view == "memory":
        from .memory import sums

        head["memory"] = sums(reading)
    if options.view == "imports":
        head["imports_ns"] = Imports(reading.data.tree).total_ns
    return head


def _tables(reading: Reading, options: Namespace) -> dict[str, list[dict[str, Any]]]:
    if options.view == "tree":
        return {"tree": as_rows(reading.data.tree, switches=reading.has_switches)}
    if options.view == "threads":
        return {"threads": [_thread(thread, reading.has_switches) for thread in reading.threads()]}
    if reading.tasks is not None:
        return tasks_as_rows(reading.tasks, options.sort, options.format == "csv")
    if reading.exceptions is not None:
        return {"exceptions": reading.exceptions.rows()}
    if options.view == "devices":
        return devices_as_rows(reading.devices)
    if options.view == "gc":
        return _collections(reading)
    if options.view == "imports":
        imports = Imports(reading.data.tree)
        return as_tables(imports, imports.sorted(options.sort or "self"))
    functions = [_function(entry, reading.has_memory, reading.has_switches) for entry in reading.functions()]
    if options.compensated or reading.data.budgets:
        column = "compensated_error_ns" if options.compensated else "estimate_error_ns"
        for row, entry in zip(functions, reading.functions(), strict=True):
            row[column] = entry.error_ns
            if reading.data.budgets:
                row["estimate_reduced"] = entry.is_reduced
    return {"functions": functions}


def _function(entry: Entry, memory: bool, switches: bool) -> dict[str, Any]:
    row = {
        "function": entry.shown,
        "kind": REPORT_NAMES.get(entry.kind, "?"),
        "file": entry.file,
        "line": entry.line,
        "library": entry.library,
        "calls": entry.calls,
        "self_ns": entry.self_ns,
        "total_ns": entry.total_ns,
    }
    if switches:
        row["running_ns"] = entry.running_ns
    if memory:
        row |= {
            "self_bytes": entry.self_bytes,
            "total_bytes": entry.total_bytes,
            "allocations": entry.allocations,
        }
    row["waits_for"] = waits_for(entry.name)
    return row


def _thread(thread: Thread, switches: bool) -> dict[str, Any]:
    return {
        "thread": thread.name,
        "pid": thread.pid,
        "tid": thread.tid,
        "calls": thread.calls,
        "time_ns": thread.self_ns,
        **(_times(thread) if switches else {}),
        "waiting_ns": thread.waiting_ns,
        "gc_ns": thread.gc_ns,
        "first_ns": thread.first_ns,
        "last_ns": thread.last_ns,
        "most_in": thread.top,
    }


def _times(thread: Thread) -> dict[str, int | None]:
    return {
        "running_ns": thread.running_ns,
        "gil_ns": thread.gil_ns,
        **{f"{kind}_ns": ns for kind, ns in thread.paused.items()},
        **{f"{kind}_ns": thread.waited_ns(kind) for kind in thread.waited},
        "preempted_ns": thread.preempted_ns,
    }


def _collections(reading: Reading) -> dict[str, list[dict[str, Any]]]:
    data = reading.data
    callers = sorted(data.gc_in.items(), key=lambda item: (-item[1].total_ns, item[0]))
    return {
        "generations": [
            {
                "generation": generation,
                "count": sums.count,
                "time_ns": sums.total_ns,
                "longest_ns": sums.longest_ns,
                "collected": sums.collected,
                "uncollectable": sums.uncollectable,
            }
            for generation, sums in sorted(data.generations.items())
        ],
        "began_in": [{"function": name, "count": sums.count, "time_ns": sums.total_ns} for name, sums in callers],
        "longest": [
            {
                "start_ns": one.start_ns,
                "time_ns": one.ns,
                "thread": one.thread_name,
                "generation": one.generation,
                "collected": one.collected,
            }
            for one in data.long_collections
        ],
    }
