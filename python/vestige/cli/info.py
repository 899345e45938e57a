"""`vestige info`: what a trace file holds, and how it ended."""

from __future__ import annotations

import json
import os
import time

from .console import Parser, open_trace
from .report import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXAMPLES = """\
  vestige info t.vst
  vestige info t.vst --json | jq .lost
"""
ENDS = {
    "clean": "clean",
    "torn": "torn, the process died; everything up to then is here",
    "recording": "not yet, the process is recording; everything up to now is here",
    "damaged": "damaged, nothing from byte {damaged_at:,} on can be read",
}


def main(argv: list[str]) -> None:
    parser = Parser("info", "Tell what a trace holds, and how it ended.", "FILE [--json]", EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="a trace (.vst)")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    options = parser.parse_args(argv)

    trace = open_trace(options.file)
    facts = trace.info()
    threads = trace.threads()
    facts["ended"] = _ended(options.file, facts)
    metadata = {key: _load(text) for key, text in trace.metadata().items()}
    if options.json:
        print(json.dumps({**facts, "thread_list": threads, "metadata": metadata}, indent=2))
    else:
        _show(options.file, facts, threads, metadata)


def _show(path: str, facts: dict[str, Any], threads: list[dict[str, Any]], metadata: dict[str, Any]) -> None:
    command = metadata.get("vestige.command", "")
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(facts["start_ns"] / 1e9))
    lines = {
        "ended": ENDS[facts["ended"]].format(**facts),
        "command": _shell(command) if isinstance(command, list) else command,
        "python": f"{metadata.get('vestige.python', '?')}, engine {metadata.get('vestige.engine', '?')}",
        "process": f"{facts['pid']} on {metadata.get('host_name', '?')}",
        "started": started,
        "span": _windows(facts),
        "records": f"{facts['records']:,}, {_dropped(facts)}{facts['lost']:,} lost",
        "size": f"{facts['bytes']:,} bytes",
    }
    print(path)
    for name, text in lines.items():
        print(f"  {name:<8} {text}")
    print(f"  threads  {len(threads):,}")
    for thread in threads:
        print(f"    {thread['tid']:>8}  {thread['records']:>12,} records  {thread['name'] or '(unnamed)'}")


def _ended(path: str, facts: dict[str, Any]) -> str:
    """One of ENDS."""
    if facts["clean"]:
        return "clean"
    if facts["damaged_at"]:
        return "damaged"
    return "recording" if _is_open_in(facts["pid"], path) else "torn"


def _is_open_in(pid: int, path: str) -> bool:
    """Whether the process that records has the file; one that merely has its number does not."""
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return False
    return any(_is_same(path, f"{folder}/{number}") for number in numbers)


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _windows(facts: dict[str, Any]) -> str:
    span = duration(facts["end_ns"] - facts["start_ns"])
    return span if facts["windows"] == 1 else f"{span} in {facts['windows']} windows"


def _dropped(facts: dict[str, Any]) -> str:
    return f"{facts['dropped']:,} dropped to stay within the bound, " if facts["dropped"] else ""


def _shell(command: list[Any]) -> str:
    from shlex import join

    return join(map(str, command))


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
