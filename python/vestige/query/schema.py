"""The tables and their columns, as text. docs/reference/tables.md explains their meaning."""

from __future__ import annotations

from vestige._core import Table, table_names

WIDTH = 88
# The table that `vestige query` adds.
RUN = ("run", [("process", "int32", False), ("run", "int32", False), ("path", "text", False)])
ABOUT = {
    "process": "one row per process; `process` is its number in this query",
    "thread": "its threads",
    "func": "functions, annotations, operators … that spans refer to",
    "stack": "nodes of the call tree; `parent` is the node of the caller",
    "span": "every call, annotation and collection",
    "op": "a framework's operators, with their arguments",
    "alloc": "allocations, where memory was recorded",
    "counter": "values of counters",
    "instant": "moments",
    "lost": "stretches in which records are missing",
    "wait": "waits: for the GIL, if recorded, and in calls that only wait",
    "task": "asyncio's tasks",
    "device": "devices (GPUs …) that were recorded, and how well their clocks are known",
    "activity": "activities of devices, and the calls that launched them",
    "duration": "how long calls, requests and tasks took: a row for each function, with a histogram",
    "run": "which of the command's paths a process came from: 0, 1, …",
}


def lines() -> list[str]:
    """Yields the lines. A `?` follows the type of a column that may be null."""
    text = []
    for name, columns in [*((name, Table(name, ()).columns) for name in table_names), RUN]:
        text.append(f"{name}: {ABOUT.get(name, '')}")
        line = "   "
        for column, kind, nullable in columns:
            word = f" {column} {kind}{'?' if nullable else ''},"
            if len(line) + len(word) > WIDTH:
                text.append(line)
                line = "   "
            line += word
        text.append(line.rstrip(","))
    return text
