"""`vestige et check`: reports the defects of execution traces, one per line."""

from __future__ import annotations

import json
import re
import sys
from functools import partial

from vestige.base.failure import Failure, explain
from vestige.base.printable import one_line as clean
from vestige.base.quantities import plural
from vestige.base.terminal import Progress
from vestige.cli.console import Parser, check_least

from .graph import Graph
from .node import check_node
from .stream import Broken, Document, without_collector
from .timeline import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "1.1.1-chakra.0.0.4"
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
LINES = 50
EXAMPLES = """\
  vestige et check et.json                  a line for each defect
  vestige et check et.json --timeline t.json   also compares both files' nodes
  vestige et check *.json --max 5           the first five of each file
  vestige et check et.json --format json    for programs
"""


def main(argv: list[str]) -> int:
    parser = Parser(
        "et check",
        "Check execution traces, ours or torch's (.json, .json.gz): that they are JSON,\n"
        "that every node has its fields and attributes and can be reached from the root,\n"
        "that ids are unique and exist, that values, shapes, strides and types agree.\n"
        "Prints a line for each defect. Exit code 0 if there are none, 1 if there are.",
        "FILE… [--timeline T] [--max N] [--format text|json]",
        EXAMPLES,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="execution traces (.json, .json.gz)")
    parser.add_argument(
        "--timeline",
        metavar="T",
        action="append",
        help="Chrome JSON of the same run, whose ids, names and nesting must be equal; repeat for each window",
    )
    parser.add_argument(
        "--max", metavar="N", type=int, default=LINES, help=f"lines to print for a file (default: {LINES}; 0: all)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="output format")
    options = parser.parse_args(argv)
    check_least("--max", options.max, 0)
    if options.timeline is not None and len(options.files) > 1:
        raise Failure("--timeline belongs to one run: give one FILE with it", code=2)
    reports = [Report(path, options.max) for path in options.files]
    for report in reports:
        _check(report, options.timeline)
        if options.format == "text":
            report.print()
    if options.format == "json":
        json.dump({"files": [report.document() for report in reports]}, sys.stdout, indent=1)
        print()
    return int(any(report.count for report in reports))


class Report:
    """The defects of a file: the first defects, and how many there are."""

    def __init__(self, path: str, most: int) -> None:
        self.path = path
        self.count = 0
        self.graph = Graph()
        self._most = most or sys.maxsize
        self._defects: list[tuple[str, int | None, str]] = []

    def say(self, node: int | None, what: str) -> None:
        """Notes a defect of a node, or of the file if `node` is None."""
        self.say_in(self.path, node, what)

    def say_in(self, path: str, node: int | None, what: str) -> None:
        self.count += 1
        if len(self._defects) < self._most:
            self._defects.append((path, node, what))

    def print(self) -> None:
        for path, node, what in self._defects:
            print(clean(f"{path}: node {node}: {what}" if node is not None else f"{path}: {what}"))
        if self.count > len(self._defects):
            print(f"{self.path}: … {self.count - len(self._defects):,} more; --max 0 prints all")
        found = plural(self.count, "defect") if self.count else "no defects"
        if self.count and not self.graph.ids:
            print(f"{self.path}: {found}")
            return
        nodes, threads = plural(len(self.graph.ids), "node"), plural(self.graph.threads, "thread")
        tensors = plural(len(self.graph.tensors - {0}), "id")
        print(f"{self.path}: {nodes}, {threads}, {tensors} of tensors and storages; {found}")

    def document(self) -> dict[str, Any]:
        defects = [
            {"file": path, **({} if node is None else {"node": node}), "what": what}
            for path, node, what in self._defects
        ]
        return {
            "file": self.path,
            "nodes": len(self.graph.ids),
            "threads": self.graph.threads,
            "count": self.count,
            "defects": defects,
        }


def _check(report: Report, timelines: list[str] | None) -> None:
    whole = _read(report)
    if whole:
        report.graph.check(report.say)
        if timelines is not None:
            _compare(report, timelines)


def _read(report: Report) -> bool:
    """Reads a file, and checks each node by itself. Returns whether the whole file could be read."""
    graph, identities = report.graph, report.graph.tensors
    try:
        with (
            Progress(f"checking {report.path}") as progress,
            without_collector(),
            Document(report.path, progress) as document,
        ):
            for index, node in enumerate(document.elements("nodes")):
                number = node.get("id") if type(node) is dict else None
                known = type(number) is int and number >= 0
                say = partial(report.say, number) if known else partial(_say_of_place, report, index)
                graph.add(check_node(node, say, identities), report.say)
            _check_fields(document.fields, report)
            identities.discard(0)
    except (OSError, Broken) as error:
        report.say(None, explain(report.path, error).removeprefix(f"{report.path}: "))
        return False
    return "nodes" in document.fields


def _say_of_place(report: Report, index: int, what: str) -> None:
    """Notes a defect of a node that has no id."""
    report.say(None, f"nodes[{index}] {what}")


def _check_fields(fields: dict[str, Any], report: Report) -> None:
    """Checks the fields of the file other than its nodes."""
    if "traceEvents" in fields and "nodes" not in fields:
        report.say(None, "is a timeline, not an execution trace: name it after --timeline")
        return
    schema = fields.get("schema")
    if schema != SCHEMA:
        report.say(None, f"schema is {schema!r}, not {SCHEMA!r}" if "schema" in fields else "has no schema")
    for name in ("pid", "start_ts", "finish_ts"):
        if type(fields.get(name)) is not int or fields[name] < 0:
            report.say(None, f"{name} is not an unsigned integer" if name in fields else f"has no {name}")
    time = fields.get("time")
    if type(time) is not str or not TIME.fullmatch(time):
        report.say(None, f"time {time!r} is not YYYY-MM-DD HH:MM:SS" if "time" in fields else "has no time")
    if type(fields.get("nodes")) is not list:
        report.say(None, "nodes is not an array" if "nodes" in fields else "has no nodes")
        fields.pop("nodes", None)
    try:
        if fields["finish_ts"] < fields["start_ts"]:
            report.say(None, f"finish_ts {fields['finish_ts']} is before start_ts {fields['start_ts']}")
    except (KeyError, TypeError):
        pass


def _compare(report: Report, paths: list[str]) -> None:
    timeline = Timeline()
    for path in paths:
        try:
            with Progress(f"reading {path}") as progress, without_collector():
                good = timeline.read(path, progress)
            what = "has no traceEvents: it is not a timeline"
        except (OSError, Broken) as error:
            good = False
            what = explain(path, error).removeprefix(f"{path}: ")
        if not good:
            report.say_in(path, None, what)
            return
    timeline.compare(report.graph, report.say, report.say_in)
