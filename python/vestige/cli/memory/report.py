"""`vestige memory-report`: the memory at its highest, memory that was never freed, memory that was freed immediately;
by stack and by line.
"""

from __future__ import annotations

import sys

from vestige._core import TraceError, export_memory
from vestige.base.failure import Failure, explain
from vestige.base.terminal import Progress, exact
from vestige.cli.console import Parser, add_files, check_absent, check_least
from vestige.reading.exports import MEMORY_SUFFIXES
from vestige.reading.inputs import Inputs, find_traces
from vestige.reading.memory import read_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable
    from typing import Any

    from vestige.reading.inputs import Source
    from vestige.reading.memory import Amount, Frame, MemorySummary

    Read = list[tuple[Source, MemorySummary]]

SECTIONS = ("peak", "leaks", "temporary", "reserved", "histogram", "lines", "threads", "allocators")
STACKS = ("peak", "leaks", "temporary", "reserved")
OVERVIEW = ("peak", "leaks", "temporary", "histogram", "lines")
TEMPORARY_MAX = 65536
EXAMPLES = """\
  vestige memory-report m.vst                    all of it on one screen
  vestige memory-report m.vst --leaks -n 50      more of one part
  vestige memory-report m.vst -o m.html          a page: over time, flame graphs
  vestige memory-report m.vst -o m.pickle        for torch's memory visualizer
  vestige memory-report m.vst --format json      the report for programs
"""


def main(argv: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(_join_temporary(argv))
    _check(options)
    return tell(find_traces(options.files, children=not options.no_children), options)


def usual(rows: int | None, format: str) -> Namespace:
    """Returns the options of a report that is not asked for anything else."""
    words = ["", "--format", format] + ([] if rows is None else ["-n", str(rows)])
    options: Namespace = _parser().parse_args(words)
    _check(options)
    return options


def tell(inputs: Inputs, options: Namespace) -> int:
    _keep_those_with_memory(inputs)
    if options.output is not None:
        _write(inputs, options)
        return int(inputs.failed)
    read = _read_all(inputs, options)
    if not read:
        return 1
    if options.format == "json":
        _print_json(read, options)
    elif options.format == "csv":
        _print_csv(read, options)
    else:
        from .tables import show

        asked = _sections(options)
        show(read, asked or OVERVIEW, options.n or (20 if asked else 5), sys.stdout, draws_curve=not asked)
    return int(inputs.failed)


def _parser() -> Parser:
    parser = Parser(
        "memory-report",
        "Sum up a recording of allocations: memory at the high-water mark, memory that\n"
        "was never freed or was freed soon, sizes, and the lines that allocate most; or\n"
        "write the recording as a file in another format. The traces of FILE's child\n"
        "processes are read too. FILE may be a folder of traces.",
        "FILE… [--peak] [--leaks] [--temporary [K]]\n"
        "                             [--reserved] [--histogram] [--lines]\n"
        "                             [--threads] [--allocators] [-n ROWS]\n"
        "                             [--format text|json|csv] [-o OUT] [--force]",
        EXAMPLES,
    )
    add_files(parser)
    parser.add_argument("--peak", action="store_true", help="memory that was held at the high-water mark")
    parser.add_argument("--leaks", action="store_true", help="memory that was not freed by the end")
    parser.add_argument(
        "--temporary",
        metavar="K",
        nargs="?",
        const="1",
        help="memory that a thread freed while it was among the thread's last K allocations (default: 1)",
    )
    parser.add_argument("--reserved", action="store_true", help="address space that was reserved but not in use")
    parser.add_argument("--histogram", action="store_true", help="number of allocations by size")
    parser.add_argument("--lines", action="store_true", help="lines that allocated most")
    parser.add_argument("--threads", action="store_true", help="memory that each thread allocated and freed")
    parser.add_argument("--allocators", action="store_true", help="memory from each allocator")
    parser.add_argument(
        "-n", metavar="ROWS", type=int, help="stacks or lines to list (default: 5; 20 if one part is shown)"
    )
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text", help="output format")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help=f"write a file instead: {', '.join(MEMORY_SUFFIXES)}, also with .gz"
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    return parser


def _join_temporary(argv: list[str]) -> list[str]:
    """Makes argparse accept `--temporary` without a number: it takes the next word only if that is a number, because
    the word may be a file.
    """
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] == "--temporary" and word.isdigit():
            joined[-1] = f"--temporary={word}"
        else:
            joined.append(word)
    return ["--temporary=1" if word == "--temporary" else word for word in joined]


def _check(options: Namespace) -> None:
    check_least("-n", options.n, 1)
    k = options.temporary or "1"
    if not k.isdigit() or not 1 <= int(k) <= TEMPORARY_MAX:
        raise Failure(f"--temporary must be from 1 to {TEMPORARY_MAX}, not {k}", code=2)
    options.k = int(k)
    if options.output is None:
        return
    if not options.output.removesuffix(".gz").endswith(MEMORY_SUFFIXES):
        raise Failure(f"{options.output}: no format has this suffix; there are {', '.join(MEMORY_SUFFIXES)}", code=2)
    check_absent(options.output, force=options.force)


def _sections(options: Namespace) -> tuple[str, ...]:
    """Returns the requested sections."""
    return tuple(name for name in SECTIONS if getattr(options, name))


def _keep_those_with_memory(inputs: Inputs) -> None:
    """Leaves out processes of a family that recorded no memory. If no process recorded memory, that is an error."""
    found = []
    for source in inputs.sources:
        try:
            if source.open().has_memory():
                found.append(source)
        except (OSError, TraceError) as error:
            inputs.fail(source, error)
    if not found and not inputs.failed:
        one = len(inputs.sources) == 1
        what = f"{inputs.sources[0].path}: there are no records of memory in it"
        what = what if one else "there are no records of memory in any of these traces"
        raise Failure(f"{what}; `vestige memory script.py` records them")
    inputs.sources = found


def _read_all(inputs: Inputs, options: Namespace) -> Read:
    read: Read = []
    rows = options.n or (20 if _sections(options) else 5)
    if len(inputs.sources) > 1 or options.format == "csv":
        rows = -1  # all rows, because processes are merged, or because all were requested

    def add(source: Source, progress: Progress) -> None:
        read.append((source, read_memory(source.open(), rows=rows, temporary=options.k, progress=progress)))

    inputs.read_each(add)
    return read


def _write(inputs: Inputs, options: Namespace) -> None:
    """Writes the file. Folded stacks show the requested view."""
    views = [view for view in STACKS if getattr(options, view)]
    view = views[0] if views else "total" if options.lines else "peak"
    try:
        with Progress(f"writing {options.output}") as progress:
            traces = [source.open() for source in inputs.sources]
            cut = export_memory(traces, options.output, view=view, temporary=options.k, progress=progress)
    except (OSError, TraceError) as error:
        raise Failure(explain(options.output, error)) from None
    if cut:
        inputs.tell(f"{options.output}: stacks of more than {cut:,} frames are cut", failed=False)


# ---- for programs --------------------------------------------------------


def _amount(summary: MemorySummary, amount: Amount) -> dict[str, int]:
    error = {"bytes_error": amount.error} if summary.facts["sampled"] else {}
    return {"count": amount.count, "bytes": amount.bytes, **error}


def _frame(frame: Frame) -> dict[str, Any]:
    return {"function": frame.function, "file": frame.file, "line": frame.line, "native": frame.native}


def _views(summary: MemorySummary) -> list[str]:
    """Returns the views to report: `temporary` only if every allocation was recorded, `reserved` only if address space
    was reserved.
    """
    left_out = {"temporary": summary.facts["sampled"], "reserved": not summary.views["reserved"].count}
    return [view for view in summary.views if not left_out.get(view)]


def _points(timeline: Iterable[Any]) -> list[dict[str, int]]:
    return [
        {"max_ns": at.max_ns, "max_bytes": at.max_bytes, "last_ns": at.last_ns, "last_bytes": at.last_bytes}
        for at in timeline
    ]


def _document(source: Source, summary: MemorySummary) -> dict[str, Any]:
    """Returns one process as a document for JSON, with names instead of tuples."""
    views = _views(summary)
    facts = summary.facts | {"file": source.path, "pid": source.facts["pid"], "complete": source.facts["clean"]}
    for view in views:
        facts[view] = _amount(summary, summary.views[view])
        if summary.facts["sampled"]:
            facts[view]["count_error"] = summary.count_errors[view]
    facts["allocators"] = {name: _amount(summary, amount) for name, amount in summary.allocators.items()}
    facts["sizes"] = [{"from": one.least, "count": one.count, "bytes": one.bytes} for one in summary.sizes]
    facts["threads"] = [
        {
            "thread": thread.number,
            "tid": thread.tid,
            "name": thread.name,
            "allocated": _amount(summary, thread.allocated),
            "freed": _amount(summary, thread.freed),
        }
        for thread in summary.threads
    ]
    facts["timeline"] = _points(summary.timeline)
    if resident := summary.resident:
        facts["resident"] = {**resident, "timeline": _points(summary.resident_timeline)}
    facts["stacks"] = {
        view: [
            {**_amount(summary, amount), "frames": [*map(_frame, frames)]} for amount, frames in summary.stacks[view]
        ]
        for view in views
    }
    facts["lines"] = {
        view: [{**_amount(summary, amount), **_frame(frame)} for amount, frame in summary.lines[view]] for view in views
    }
    return facts


def _print_json(read: Read, options: Namespace) -> None:
    import json

    parts = {*STACKS, "total"} & set(_sections(options))
    documents = [_document(source, summary) for source, summary in read]
    for document in documents:
        for table in ("stacks", "lines"):
            document[table] = {view: rows for view, rows in document[table].items() if not parts or view in parts}
    json.dump({"processes": documents}, sys.stdout, indent=1)
    print()


def _print_csv(read: Read, options: Namespace) -> None:
    """Prints all stacks as CSV, or with --lines all lines."""
    import csv

    out = csv.writer(exact(sys.stdout), lineterminator="\n")
    parts = [view for view in STACKS if getattr(options, view)]
    out.writerow(["process", "part", "count", "bytes", "bytes_error", "line", *([] if options.lines else ["stack"])])
    for source, summary in read:
        for view in parts or _views(summary):
            lines = [(amount, [frame]) for amount, frame in summary.lines[view]]
            for amount, frames in (lines if options.lines else summary.stacks[view])[: options.n]:
                line = next((frame for frame in frames if not frame.native), frames[0])
                cells = [source.facts["pid"], view, amount.count, amount.bytes, amount.error, _place(line)]
                out.writerow(cells if options.lines else [*cells, ";".join(map(_place, reversed(frames)))])


def _place(frame: Frame) -> str:
    """Returns `file:line function`, as the .csv file has it."""
    if not frame.file:
        return str(frame.function)
    return f"{frame.file}:{frame.line} {frame.function}" if frame.line else f"{frame.file} {frame.function}"
