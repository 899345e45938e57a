"""`vestige export`: traces in a format that other programs read, chosen by the suffix of the file name."""

from __future__ import annotations

import os
import sys

from vestige._core import Trace, TraceError, export_traces, table_names
from vestige.base.failure import Failure, explain
from vestige.base.printable import printable
from vestige.base.quantities import size
from vestige.base.terminal import Progress
from vestige.reading.exports import (
    CHROME,
    EXECUTION_TRACE,
    FORMATS,
    MEMORY_TIMELINE,
    Format,
    adds_up,
    help_table,
    named_by,
    suffixes,
    tables_format,
)
from vestige.reading.inputs import Inputs, find_traces
from vestige.reading.table_files import is_folder

from . import ranges
from .console import Parser, add_files, check_absent, exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

EXAMPLES = """\
  vestige export t.vst                    writes t.json.gz
  vestige export t.vst -o t.pftrace --force
  vestige export t.vst --to perfetto      writes t.pftrace
  vestige export t.vst --no-children      without its child processes
  vestige export rank0.vst rank1.vst -o all.json.gz      one timeline
  vestige export hostA/ hostB/ --align barrier -o all.json.gz
  vestige export t.vst --from 2s --until 3s -o third.json.gz
  vestige export t.vst --cpu -o t.svg     CPU time instead of wall time
  vestige export t.vst -o et.json         the execution trace, if there is one
  vestige export t.vst --to memory-timeline -o t.html
  vestige export traces/ -o spans.parquet
  vestige export traces/ --to parquet -o tables/
"""


def main(argv: list[str]) -> int:
    parser = Parser(
        "export",
        "Write traces as a file for other programs, in the format of OUT's suffix.\n"
        "Several traces become one timeline, with arrows from processes to children.\n"
        "FILE includes its child processes; a folder includes all of its traces.\n"
        f"Formats (each but the last two also with .gz appended):\n\n{help_table()}",
        "FILE… [-o OUT] [options]",
        EXAMPLES,
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help=f"the file to write (default: FILE's name with {CHROME.default} or the format's suffix)",
    )
    parser.add_argument(
        "--to", metavar="FORMAT", choices=FORMATS, help="a format from the list above (default: by OUT's suffix)"
    )
    parser.add_argument(
        "--cpu", action="store_true", help="count CPU time instead of wall time (in formats that hold sums)"
    )
    add_files(parser)
    ranges.add_arguments(parser)
    parser.add_argument("--align", metavar="NAME", help="align clocks so that the spans NAME end together")
    parser.add_argument(
        "--no-memory-events",
        action="store_true",
        help="leave out the events of allocations and frees, 300 bytes of JSON each; the curve of live memory stays",
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    options = parser.parse_args(argv)
    if options.output is None and (len(options.files) > 1 or os.path.isdir(options.files[0])):
        raise Failure("several traces need a name for the file to write: -o OUT", code=2)
    output = options.output or default_output(options.files[0], options.to)
    _check_output(output, options.to, force=options.force)
    if options.cpu and not adds_up(output, options.to):
        sums = ", ".join(name for name, each in FORMATS.items() if each.sums)
        raise Failure(f"--cpu: {output} shows when spans were; formats that add up are {sums}", code=2)
    inputs = find_traces(options.files, children=not options.no_children)
    if options.cpu and not any(source.facts["switches"] for source in inputs.sources):
        raise Failure("--cpu: this trace does not say when threads ran; record with `vestige run --sched`")
    if options.to == MEMORY_TIMELINE.name and len(inputs.sources) > 1:
        raise Failure("a memory timeline shows one process: name one file, with --no-children", code=2)
    _report_written(output, _write(inputs, output, options))
    return int(inputs.failed)


def default_output(file: str, format: str | None) -> str:
    """Returns the default name of the file. An observer for et.json records into et.json.vst."""
    stem = os.path.splitext(file)[0]
    if format in (None, EXECUTION_TRACE.name) and stem.endswith((".json", ".json.gz")):
        return stem
    return stem + FORMATS[format or CHROME.name].default


def _check_output(output: str, format: str | None, *, force: bool) -> None:
    named = named_by(output)
    if format is None and named is None:
        raise Failure(f"{output}: no format has this suffix; there are {suffixes()}", code=2)
    if format is not None and named is not None and not FORMATS[format].may_be(output):
        raise Failure(
            f"{output}: the suffix stands for {named.name}, but --to asks for {format}, whose files end in "
            f"{FORMATS[format].default}",
            code=2,
        )
    if format == MEMORY_TIMELINE.name and not output.endswith((".html", ".json", ".json.gz")):
        raise Failure(f"{output}: a memory timeline ends in .html, .json, .json.gz or .raw.json.gz", code=2)
    if tables_format(output, format) and is_folder(output):
        check_folder(output, f".{format}", force=force)
    else:
        check_absent(output, force=force)


def check_folder(folder: str, suffix: str, *, force: bool) -> None:
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise Failure(f"{folder}: not a folder", code=2)
    there = [name + suffix for name in table_names if os.path.lexists(os.path.join(folder, name + suffix))]
    if there and not force:
        raise exists(os.path.join(folder, there[0]))


def _report_written(output: str, format: Format) -> None:
    """Reports on stderr the written file or folder, its size, and the program that opens it. Does nothing for a pipe or
    device.
    """
    if os.path.isdir(output):
        written = sum(entry.stat().st_size for entry in os.scandir(output))
    elif os.path.isfile(output):
        written = os.path.getsize(output)
    else:
        return
    opens = "" if format is MEMORY_TIMELINE and not output.endswith(".html") else f"; {format.opens} opens it"
    print(printable(f"vestige: wrote {output} ({size(written)}){opens}"), file=sys.stderr)


def _write(inputs: Inputs, output: str, options: Namespace) -> Format:
    """Writes all inputs as one document. Returns its format."""
    format = options.to
    tables = tables_format(output, format)
    if tables:
        require_pyarrow()
    traces = _open_all(inputs)
    if options.align is not None:
        from .align import align_traces

        for line in align_traces(inputs.sources, traces, options.align):
            print(line)
    if tables:
        _write_tables(inputs, traces, output, tables.name, options)
        return tables
    ranges.apply(options, traces)
    for trace in traces:
        trace.set_by_running(options.cpu)
    if format is None and _is_execution_trace(output, inputs):
        format = EXECUTION_TRACE.name if any(trace.count_nodes() for trace in traces) else None
    if format == EXECUTION_TRACE.name:
        _check_nodes(inputs, traces)
    try:
        with Progress(f"writing {output}") as progress:
            cut = export_traces(
                traces,
                output,
                all_windows=True,
                progress=progress,
                memory_events=not options.no_memory_events,
                format=format,
            )
    except OSError as error:
        raise Failure(explain(output, error)) from None
    except TraceError as error:
        raise Failure(explain(inputs.sources[0].path if len(traces) == 1 else output, error)) from None
    if cut:
        inputs.tell(f"{output}: calls deeper than {cut - 1:,} are summed up as [deeper calls]", failed=False)
    return FORMATS[format] if format is not None else named_by(output) or CHROME


def require_pyarrow() -> None:
    from vestige.reading import table_files

    try:
        table_files.require_pyarrow()
    except ImportError as error:
        raise Failure(str(error)) from None


def _write_tables(inputs: Inputs, traces: list[Trace], output: str, format: str, options: Namespace) -> None:
    """Writes tables by pyarrow; their reader opens the files itself."""
    from vestige.tables import Traces
    from vestige.tables import write as write_tables

    facts = [trace.info() for trace in traces]
    offsets = [info["start_ns"] - source.facts["start_ns"] for info, source in zip(facts, inputs.sources)]
    between = (0, 0)
    if ranges.is_given(options):
        start, end = min(each["start_ns"] for each in facts), max(each["end_ns"] for each in facts)
        between = ranges.read(options, start, end)
    traces.clear()  # closes the files of the traces too
    try:
        with Progress(f"writing {output}") as progress:
            shown = Traces(inputs.sources, offsets=offsets, from_ns=between[0], to_ns=between[1])
            write_tables(shown, output, format=format, progress=progress)
    except (OSError, TraceError) as error:
        raise Failure(explain(output, error)) from None


def _open_all(inputs: Inputs) -> list[Trace]:
    """Opens all traces; each keeps a file open."""
    _allow_files(len(inputs.sources) + 64)
    traces = []
    for source in list(inputs.sources):
        try:
            traces.append(source.open())
        except (OSError, TraceError) as error:
            inputs.fail(source, error)
            inputs.sources.remove(source)
    if not traces:
        raise Failure("none of the traces can be read")
    return traces


def _allow_files(count: int) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        limit = hard if hard != resource.RLIM_INFINITY and hard < count else count
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _is_execution_trace(output: str, inputs: Inputs) -> bool:
    """Returns whether the output is an execution trace: its name says so, or the input is a recording that an observer
    began for itself.
    """
    return EXECUTION_TRACE.fits(output) or "vestige.execution_trace" in inputs.sources[0].metadata


def _check_nodes(inputs: Inputs, traces: list[Trace]) -> None:
    pids = {source.facts["pid"] for source in inputs.sources}
    if len(pids) > 1:
        raise Failure(
            f"an execution trace shows one process, but these are {len(pids)}: export them one at a time, with "
            "--no-children",
            code=2,
        )
    if not any(trace.count_nodes() for trace in traces):
        raise Failure(
            f"{inputs.sources[0].path}: no nodes of an execution trace were recorded; an ExecutionTraceObserver "
            "records them, and so does VESTIGE_EXECUTION_TRACE=1"
        )
