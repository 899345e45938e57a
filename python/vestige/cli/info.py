"""`vestige info`: the contents and the ends of traces. Without a trace, how vestige records on this Python."""

from __future__ import annotations

import json
import sys
import time

from vestige import _core
from vestige._core import TraceError
from vestige.base.printable import one_line as clean
from vestige.base.quantities import duration, plural
from vestige.reading.devices import clock, label
from vestige.reading.inputs import STORAGE, find_traces
from vestige.recording.devices import UNPROVEN, cuda_trouble

from .console import Parser, add_files, check_least
from .report.notes import beyond_scope, short_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vestige.reading.inputs import Source

EXAMPLES = """\
  vestige info t.vst
  vestige info t.vst --json | jq .lost
  vestige info traces/
  vestige info
"""
ROWS = 20  # the most threads or processes
COLLECTOR = "vestige.collector."  # prefix of metadata keys: notes of a collector of devices
COLLECTORS_MAX = 8
NODES_MAX_BYTES = 1 << 28
ENDS = {
    "clean": "clean",
    "torn": "torn, the process was killed, crashed or called os.exec*; everything up to that moment is here",
    "recording": "not yet, the process is still recording; everything up to now is here",
    "damaged": "damaged at byte {damaged_at:,}; everything readable is here",
}
REPLACED = "torn, the process became another program by os.exec*; everything up to that moment is here"


def main(argv: list[str]) -> int:
    parser = Parser(
        "info",
        "Show what traces contain, and how they ended. The traces of FILE's child\n"
        "processes are listed too. FILE may be a folder of traces. Without FILE, show how\n"
        "vestige records on this Python, which of its parts do not work here, and why.",
        "[FILE…] [--no-children] [-n N] [--json]",
        EXAMPLES,
    )
    add_files(parser, "*")
    parser.add_argument(
        "-n", metavar="N", type=int, default=ROWS, help=f"threads or processes to list (default: {ROWS})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    options = parser.parse_args(argv)
    check_least("-n", options.n, 1)

    if not options.files:
        _show_python(options.json)
        return 0
    inputs = find_traces(options.files, children=not options.no_children)
    sources = inputs.sources
    if options.json and len(sources) == 1:
        print(json.dumps(_as_json(sources[0]), indent=2))
    elif options.json:
        print(json.dumps({"processes": [{"file": s.path, **_as_json(s)} for s in sources]}, indent=2))
    elif len(sources) == 1:
        _show(sources[0], options.n)
    else:
        _show_all(sources, options.n)
    return int(inputs.failed)


# The consequences when a part of vestige does not recognize this Python's internals.
INSTEAD = {
    "recording": "vestige cannot record",
    "turbo": "vestige records with the safe engine",
    "entries": "the turbo engine leaves calls of Python functions to the interpreter, which takes longer",
    "tracebacks": "tracebacks come from Python's own functions, and native frames are not placed among Python's",
    "memory": "allocations have no Python stack",
    "arguments": "arguments of calls and names of modules are not recorded",
    "bottom": "stacks of programs contain the command's frames",
    "exits": "after os._exit a trace ends as after a crash",
    "array operators": "operators of numpy's arrays have no span",
    "callables": "calls of classes and of objects that are no functions have no span",
    "collector": "vestige's objects count for the program's garbage collections",
}


def _show_python(as_json: bool) -> None:
    """Shows how vestige records on this Python."""
    inside = _core.inside()
    choices = _core.engine_choices()
    auto = choices.pop("auto") or ""
    engine = auto if choices[auto] is None else _core.engines[0]
    fallbacks = {part: why for part, why in inside["parts"].items() if why}
    fallbacks.update({name: why for name, why in choices.items() if why})
    python = sys.version.split()[0]
    sched = _describe_sched()
    cuda = cuda_trouble()
    if as_json:
        facts = {"python": python, "built_on": inside["built_on"], "auto": auto, "engine": engine, "engines": choices}
        print(
            json.dumps(
                {"version": _core.__version__, **facts, "sched": sched, "cuda": cuda, "fallbacks": fallbacks}, indent=2
            )
        )
        return
    lines = {
        "python": f"{python}; vestige was built on {inside['built_on']}",
        "engine": engine if engine == auto else f"{engine}, as {auto} is not usable here",
        "engines": ", ".join(name if why is None else f"{name} (not usable here)" for name, why in choices.items()),
        "sched": "; ".join(f"{what}: {why}" if why else what for what, why in sched.items()),
        "cuda": f"not collected: {cuda}" if cuda else UNPROVEN,
    }
    _show_lines(f"vestige {_core.__version__}", lines)
    _show_fallbacks(fallbacks)


def _describe_sched() -> dict[str, str]:
    """Returns what --sched records, or why it cannot."""
    from vestige.recording.options import why_refused

    error = _core.can_see_switches()
    waits = {"waits for the GIL": _core.gil_waits_trouble()}
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        waits = {"waits for locks of objects": _core.object_waits_trouble()}
    return {"running times": why_refused(error) if error else "", **waits}


def _show_fallbacks(fallbacks: dict[str, str]) -> None:
    for part, why in fallbacks.items():
        print(f"  not {clean(part)}: {clean(why)}; {INSTEAD.get(part, 'vestige does without')}")


def _as_json(source: Source) -> dict[str, Any]:
    return {
        **source.facts,
        "nodes": _nodes(source),
        "ended": source.ended,
        "thread_list": source.threads,
        "metadata": source.written,
    }


def _show(source: Source, rows: int) -> None:
    facts, metadata = source.facts, source.metadata
    lines = {
        "ended": _ended(source),
        "command": source.command,
        "python": f"{metadata.get('vestige.python', '?')}, engine {metadata.get('vestige.engine', '?')}",
        **_turbo(metadata),
        "process": f"{facts['pid']} on {source.host}{_relations(source)}",
        "started": _clock(facts["start_ns"]),
        "span": _windows(facts),
        "records": f"{facts['records']:,}, {_dropped(facts)}{facts['lost']:,} lost",
        **_storage(source),
        **_left_out(facts),
        **_scope(metadata),
        **_running(facts, metadata),
        **_devices(facts, metadata),
        "size": _size(facts),
    }
    nodes = _nodes(source)
    if nodes:
        lines["nodes"] = f"{nodes:,} of an execution trace"
    _show_lines(source.path, lines)
    _show_fallbacks(metadata.get("vestige.fallbacks", {}))
    print(f"  threads  {len(source.threads):,}")
    _show_threads(source.threads, rows)


def _ended(source: Source) -> str:
    text = REPLACED if source.was_replaced() else ENDS[source.ended].format(**source.facts)
    left = source.metadata.get("vestige.exit")
    if isinstance(left, dict) and isinstance(left.get("code"), int):
        text += f", by os._exit({left['code']})"
    return text


def _storage(source: Source) -> dict[str, str]:
    """Where a copied trace was written first, and what it may lack."""
    storage = source.metadata.get(STORAGE)
    if not isinstance(storage, dict):
        return {}
    text = f"copied from {clean(str(storage.get('local')))} on {source.host}"
    if source.ended != "clean":
        text += "; until that file is copied, up to a second may be missing, and all that the disk did not take"
    return {"storage": text}


def _show_threads(threads: list[dict[str, Any]], rows: int) -> None:
    """Shows the threads with the most records, in the order in which they began, and a sum of the others."""
    ranked = sorted(threads, key=lambda thread: -thread["records"])
    shown = {thread["number"] for thread in ranked[:rows]}
    for thread in threads:
        if thread["number"] in shown:
            print(f"    {thread['tid']:>8}  {thread['records']:>12,} records  {clean(thread['name'] or '(unnamed)')}")
    rest = ranked[rows:]
    if rest:
        records = sum(thread["records"] for thread in rest)
        print(f"    {'':>8}  {records:>12,} records  in {plural(len(rest), 'more thread')}; -n lists more")


def _show_all(sources: list[Source], rows: int) -> None:
    """Shows all traces in a few lines, then a few lines for each of the first traces."""
    start = min(source.facts["start_ns"] for source in sources)
    end = max(source.facts["end_ns"] for source in sources)
    ends = [source.ended for source in sources]
    total = {
        key: sum(source.facts[key] for source in sources)
        for key in ("records", "lost", "dropped", "bytes", "threads", "left_out")
    }
    total["min_duration_ns"] = max(source.facts["min_duration_ns"] for source in sources)
    lines = {
        "ended": ", ".join(f"{ends.count(how):,} {how}" for how in ENDS if how in ends),
        "started": _clock(start),
        "span": duration(end - start),
        "records": f"{total['records']:,}, {_dropped(total)}{total['lost']:,} lost",
        **_left_out(total),
        "size": f"{total['bytes']:,} bytes",
        "threads": f"{total['threads']:,}",
    }
    _show_lines(plural(len(sources), "process", "processes"), lines)
    for source in sources[:rows]:
        facts = source.facts
        records = (
            f"{facts['records']:,}, {_dropped(facts)}{facts['lost']:,} lost, in {plural(facts['threads'], 'thread')}"
        )
        _show_lines(
            source.path,
            {
                "ended": _ended(source),
                "command": source.command,
                "process": f"{facts['pid']} on {source.host}{_relations(source)}",
                "span": f"{_windows(facts)}, {duration(facts['start_ns'] - start)} after the first",
                "records": records,
                **_left_out(facts),
            },
        )
    rest = sources[rows:]
    if rest:
        records = sum(source.facts["records"] for source in rest)
        print(f"and {plural(len(rest), 'more process', 'more processes')}, {records:,} records; -n lists more")


LEFT_OUT = {
    "overflow": "because the table was full",
    "read_only": "in read-only memory",
    "excluded": "because the interpreter compares their address",
    "foreign": "because other code has hooked them",
}


def _turbo(metadata: dict[str, Any]) -> dict[str, str]:
    """Returns the line about C functions that the turbo engine covered, and did not cover."""
    counts = metadata.get("vestige.turbo")
    if counts is None:
        return {}
    names = metadata.get("vestige.not_covered", {})
    left_out = [
        f"{counts[name]:,} {why}" + (f" ({names[name]})" if names.get(name) else "")
        for name, why in LEFT_OUT.items()
        if counts.get(name)
    ]
    text = f"{plural(counts.get('covered', 0), 'C function')}"
    if counts.get("callables"):
        text += f" and {plural(counts['callables'], 'other callable')}"
    text += f" covered; left out: {', '.join(left_out) or 'none'}"
    if counts.get("pauses"):
        text += f"; {plural(counts['pauses'], 'gap')} where the C stack was used up"
    return {"turbo": text}


def _nodes(source: Source) -> int:
    """Returns the number of nodes. Reads every record, but skips files that take long to read."""
    try:
        return source.open().count_nodes() if source.facts["bytes"] < NODES_MAX_BYTES else 0
    except (OSError, TraceError):
        return 0


def _show_lines(head: str, lines: dict[str, str]) -> None:
    print(clean(head))
    for name, text in lines.items():
        print(f"  {name:<8} {clean(text)}")


def _relations(source: Source) -> str:
    """Returns the rank of a process, and which process started it."""
    text = "" if source.rank is None else f", rank {source.rank}"
    if source.parent_pid == source.facts["pid"]:
        text += ", after a program of this process that called os.exec*"
    elif source.parent_pid is not None:
        parent = source.metadata["vestige.parent"]
        text += f", {'forked' if parent.get('how') == 'fork' else 'started'} by {source.parent_pid}"
    return text


def _clock(ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ns / 1e9))


def _windows(facts: dict[str, Any]) -> str:
    span = duration(facts["end_ns"] - facts["start_ns"])
    return span if facts["windows"] == 1 else f"{span} in {facts['windows']} windows"


def _size(facts: dict[str, Any]) -> str:
    size = f"{facts['bytes']:,} bytes"
    return f"{size}, packed into {facts['packed_bytes']:,}" if facts["packed"] else size


def _left_out(facts: dict[str, Any]) -> dict[str, str]:
    return {"short": short_calls(facts)} if facts["min_duration_ns"] else {}


def _scope(metadata: dict[str, Any]) -> dict[str, str]:
    lines = beyond_scope(metadata)
    return {"calls": "; ".join(lines)} if lines else {}


def _running(facts: dict[str, Any], metadata: dict[str, Any]) -> dict[str, str]:
    """Returns whether running times are known, if they were requested."""
    told = metadata.get("vestige.switches")
    if isinstance(told, dict) and told.get("refused"):
        from vestige.recording.options import why_refused

        of = f"{told['refused']:,} of {plural(told.get('threads', 0), 'thread')}"
        return {"running": f"not known for {of}: {why_refused(told.get('errno', 0))}", **_gil(metadata)}
    return {"running": "known for all threads", **_gil(metadata)} if facts["switches"] else {}


def _devices(facts: dict[str, Any], metadata: dict[str, Any]) -> dict[str, str]:
    """Returns lines about devices: the accuracy of their clocks, and the notes of their collectors."""
    lines = {}
    devices = facts.get("devices", ())
    if devices:
        lines["devices"] = "; ".join(", ".join(filter(None, (label(each), clock(each)))) for each in devices)
    if any(device["platform"] == "cuda" for device in devices):
        lines["cuda"] = UNPROVEN
    for key in sorted(key for key in metadata if key.startswith(COLLECTOR))[:COLLECTORS_MAX]:
        name = clean(key[len(COLLECTOR) :])
        lines[name] = f"{lines[name]}; {metadata[key]}" if name in lines else str(metadata[key])
    return lines


def _gil(metadata: dict[str, Any]) -> dict[str, str]:
    """Returns whether waits for the GIL are known."""
    if metadata.get("vestige.object_waits") is True:
        return {"gil": "there is none; waits for locks of objects are known"}
    told = metadata.get("vestige.gil")
    if told is True:
        return {"gil": "waits for it are known"}
    return {"gil": f"waits for it are not known: {clean(told)}"} if isinstance(told, str) else {}


def _dropped(facts: dict[str, Any]) -> str:
    return f"{facts['dropped']:,} dropped to stay within the limit of size or time, " if facts["dropped"] else ""
