"""`vestige view`: traces in the browser, or as one page in a file."""

from __future__ import annotations

import os
import signal
import sys
from threading import Thread

from vestige._core import TraceError
from vestige.base.failure import Failure, explain
from vestige.base.new_files import writing
from vestige.base.quantities import plural, size
from vestige.base.terminal import Progress
from vestige.reading.inputs import find_traces

from . import ranges
from .console import Parser, add_files, check_absent
from .export import _allow_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from vestige.reading.inputs import Inputs
    from vestige.viewer.follow import Follower
    from vestige.viewer.server import Server
    from vestige.viewer.traces import Traces

EXAMPLES = """\
  vestige view t.vst                  opens the browser; Ctrl-C ends it
  vestige view rank0.vst rank1.vst    side by side, on one timeline
  vestige view traces/ --no-browser   only prints the address
  vestige view t.vst --follow         shows new records while t.vst is recorded
  vestige view t.vst --html t.html    one page to keep or send, without a server
"""


def main(argv: list[str]) -> int:
    parser = Parser(
        "view",
        "Show traces in the browser: their timeline at any zoom, search, flame graphs of\n"
        "a range, memory. Serves only this machine, at an address that nobody can guess.\n"
        "The traces of FILE's child processes are shown on the same timeline. FILE may be\n"
        "a folder of traces. An index is built once and kept next to FILE (FILE.view).",
        "FILE… [options]",
        EXAMPLES,
    )
    add_files(parser)
    parser.add_argument("--align", metavar="NAME", help="align clocks so that the spans NAME end together")
    parser.add_argument("--all", action="store_true", help="show all frames of imports, the import system's included")
    parser.add_argument("--follow", action="store_true", help="follow traces that are still being recorded")
    ranges.add_arguments(parser, before="begin with the range from TIME selected", after="end of that range")
    parser.add_argument("--port", metavar="N", type=int, default=0, help="port of the server (default: any free port)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, but open no browser")
    parser.add_argument("--html", metavar="OUT", help="write one page that needs no server, for smaller traces")
    parser.add_argument(
        "--source",
        action="store_true",
        help="put source files into OUT even if they changed, or were not noted by the recording",
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    options = parser.parse_args(argv)
    if not 0 <= options.port <= 65535:
        raise Failure(f"--port {options.port}: a port is a number up to 65535", code=2)
    check_absent(options.html, force=options.force)
    if options.follow and (options.html is not None or options.align is not None):
        other = "--html" if options.html is not None else "--align"
        raise Failure(f"--follow and {other} contradict each other", code=2)
    if options.source and options.html is None:
        raise Failure("--source needs --html; the viewer itself always shows source", code=2)
    if ranges.is_given(options) and options.html is not None:
        raise Failure("--from and --until are where the served page begins; they do not go with --html", code=2)
    inputs = find_traces(options.files, children=not options.no_children)
    traces = open_traces(
        inputs,
        keep=options.html is None,
        align=options.align,
        fold_imports=not options.all,
        follow=options.follow,
    )
    if ranges.is_given(options):
        start, end = ranges.read(options, traces.start_ns, traces.end_ns)
        traces.first_shown_ns = start - traces.start_ns, min(end, traces.end_ns) - traces.start_ns
    if options.html is not None:
        write_page(inputs, traces, options.html, every_source=options.source)
        return int(inputs.failed)
    follower = follow(traces, options.files, children=not options.no_children) if options.follow else None
    serve(traces, options.port, browser=not options.no_browser, follower=follower)
    return int(inputs.failed)


def open_traces(
    inputs: Inputs,
    *,
    keep: bool,
    align: str | None,
    fold_imports: bool = False,
    follow: bool = False,
) -> Traces:
    from vestige.viewer.traces import Traces

    _allow_files(3 * len(inputs.sources) + 128)
    offsets = None if align is None else find_offsets(inputs, align)
    return Traces(inputs.sources, keep=keep, offsets_ns=offsets, fold_imports=fold_imports, follow=follow)


def follow(traces: Traces, paths: list[str], *, children: bool) -> Follower:
    from vestige.viewer.follow import Follower

    if not any(shown.source.ended == "recording" for shown in traces):
        print("vestige: none of these traces is still being recorded", file=sys.stderr)
    return Follower(traces, paths, children=children)


def find_offsets(inputs: Inputs, name: str) -> list[int]:
    """Returns by how many ns to move each trace, so that the spans of this name end together."""
    from .align import align_traces

    traces = [source.open() for source in inputs.sources]
    for line in align_traces(inputs.sources, traces, name):
        print(line)
    return [trace.info()["start_ns"] - source.facts["start_ns"] for trace, source in zip(traces, inputs.sources)]


# ---- the server


def serve(traces: Traces, port: int, *, browser: bool, follower: Follower | None = None) -> None:
    """Serves the page until Ctrl-C."""
    from vestige.viewer.api import Api
    from vestige.viewer.pages import read_pages
    from vestige.viewer.server import Server

    api = Api(traces, follower)
    try:
        server = Server(api, read_pages(), port)
    except OSError as error:
        raise Failure(f"port {port}: {error.strerror}; without --port, vestige uses a free port", code=2) from None
    api.base = server.base
    watcher = Thread(target=_watch, args=(traces,), name="vestige-progress", daemon=True)
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        traces.build_in_background()
        watcher.start()
        _announce(traces, server)
        if browser:
            _open_browser(server.address)
        server.serve_forever(poll_interval=0.5)
    except KeyboardInterrupt:
        pass  # Ctrl-C ends the server
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server is ending already
        server.end()
        traces.stop()
        for line in follower.troubles if follower is not None else ():
            print(f"vestige: {line}", file=sys.stderr)


def _announce(traces: Traces, server: Server) -> None:
    paths = [shown.source.path for shown in traces]
    what = paths[0] if len(paths) == 1 else f"{len(paths)} traces"
    print(f"vestige: showing {what} to this machine only, until Ctrl-C:\n{server.address}", flush=True)


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _watch(traces: Traces) -> None:
    """Prints a line on the terminal while indexes are built, and one for each index that cannot be built."""
    progress = Progress("building the index")
    while not traces.finished and not traces.stopping:
        traces.wait(1)
        progress(traces.share)
    progress.clear()
    for shown in traces:
        if shown.error is not None:
            print(f"vestige: {shown.error}", file=sys.stderr, flush=True)


def _open_browser(address: str) -> None:
    """Opens a browser that has a window. A text browser would take over this terminal."""
    there = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in there):
        return
    import webbrowser

    Thread(target=webbrowser.open, args=(address,), name="vestige-browser", daemon=True).start()


# ---- one page


def write_page(inputs: Inputs, traces: Traces, output: str, *, every_source: bool) -> None:
    from vestige.viewer import embed
    from vestige.viewer.onefile import one_file
    from vestige.viewer.sources import Sources

    sources = Sources(only_noted=not every_source)
    build(traces)
    for shown in traces:
        if shown.error is not None:
            inputs.tell(shown.error)
    if not any(shown.ready for shown in traces):
        raise Failure("none of the traces can be read")
    try:
        page = one_file(embed.pack(traces, sources), os.path.basename(traces.all[0].source.path)).encode()
        if len(page) > embed.BYTES_MAX:
            raise embed.TooLarge(f"more than {size(embed.BYTES_MAX)}")
    except embed.TooLarge as error:
        files = " ".join(shown.source.path for shown in traces if shown.source.is_root)
        raise Failure(f"{output}: {error}, too much for one page; to see everything: vestige view {files}") from None
    except (OSError, TraceError, ValueError) as error:  # a damaged trace that is read again
        raise Failure(explain(traces.all[0].source.path if len(traces) == 1 else output, error)) from None
    with writing(output, "wb") as file:
        file.write(page)
    spans = sum(shown.facts["spans"] for shown in traces if shown.ready)
    print(f"{output}: {spans:,} spans, {size(len(page))}")
    if sources.left_out:
        count = len(sources.left_out)
        print(
            f"without the source of {plural(count, 'file')}, not noted by the recording or changed since: "
            "--source adds it"
        )


def build(traces: Traces) -> None:
    """Builds the indexes and shows the progress; Ctrl-C ends it."""
    traces.build_in_background()
    try:
        _watch(traces)
    finally:
        traces.stop()
