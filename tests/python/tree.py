"""Prints a recording as readable text: the calls of a thread, indented by depth.

    outer
      inner (raised)
      <list.append>

A Python function has its own name, a C function is in angle brackets. Behind the name stand marks if the call did not
begin by an ordinary call or did not end by an ordinary return. The calls are read from an exported Chrome trace, which
is checked first (assert_nests), so tests see what Perfetto shows.
"""

import gc
import json
import re
import sys
import textwrap
from pathlib import Path

from vestige import profile

PROGRAM = "python_function"
GC_NAME = "Python GC"

# Members of an event's args, and the marks that show them in a tree.
MARKS = {
    "open at start": "open at start",
    "open at end": "open at stop",
    "raised": "raised",
    "cut": "cut",
    "resumed": "resumed",
    "suspended": "suspended",
}


# ---- recording ---------------------------------------------------------


def record(function, *args, **options):
    """Runs the function under a profile and returns the trace. The collector is off, because nobody knows when it would
    run.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with profile(**options) as prof:
            function(*args)
    finally:
        if collecting:
            gc.enable()
    return load(prof)


def load(prof, folder=None):
    """Returns the trace of a stopped profile, after checking the trace."""
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        path = Path(folder or temporary) / "trace.json"
        prof.export_chrome_trace(str(path))
        trace = read(path)
    assert_nests(trace)
    return trace


def read(path):
    """Parses strictly valid JSON; checks for repeated members only in small files, because the check takes time."""
    data = Path(path).read_bytes().decode("utf-8")
    hook = _unique_members if len(data) < 4_000_000 else None
    return json.loads(data, parse_constant=_refuse_constant, object_pairs_hook=hook)


def _refuse_constant(text):
    raise AssertionError(f"{text} is not JSON")


def _unique_members(pairs):
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member occurs twice in {pairs}"
    return members


def tree(function, *args, **options):
    """Returns the calls of a function, itself included, in the thread that calls the function."""
    return calls_of(record(function, *args, **options))


def expected(text):
    """Removes the indentation of a golden tree in a test."""
    return textwrap.dedent(text).strip("\n")


def by_version(**trees):
    """Returns the golden tree of this Python: in by_version(v311=…, v312=…), each tree is valid from its version on."""
    fitting = [name for name in sorted(trees) if (3, int(name[2:])) <= sys.version_info[:2]]
    return expected(trees[fitting[-1]])


# ---- spans -------------------------------------------------------------


class Span:
    """An X event as a node of its thread's tree."""

    __slots__ = ("event", "name", "args", "start", "end", "children", "parent")

    def __init__(self, event):
        self.event = event
        self.name = event["name"]
        self.args = event.get("args", {})
        self.start = _ns(event["ts"])
        self.end = self.start + _ns(event["dur"])
        self.children = []
        self.parent = None

    @property
    def marks(self):
        return [text for member, text in MARKS.items() if self.args.get(member)]

    @property
    def label(self):
        return " ".join([short(self.name), *(f"({mark})" for mark in self.marks)])

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    def lines(self, depth=0):
        pending = [(self, depth)]
        while pending:
            span, level = pending.pop()
            yield "  " * level + span.label
            pending.extend((child, level + 1) for child in reversed(span.children))


def short(name):
    """`a/b.py(3): f.<locals>.C.m` is `m`; `<built-in method append of list object>` is `<list.append>`."""
    if match := re.fullmatch(r"<built-in method (.+) of (.+) object>", name):
        return f"<{match[2]}.{match[1]}>"
    if match := re.fullmatch(r"<built-in function (.+)>", name):
        return f"<{match[1]}>"
    if match := re.fullmatch(r".*\(\d+\): (.+)", name, re.DOTALL):
        return match[1].rpartition(".")[2]
    return name


def _ns(microseconds):
    """Exact: times have a resolution of a nanosecond, and a float is exact for a hundred days of nanoseconds."""
    return round(microseconds * 1000)


def calls(trace):
    """Returns the X events of the program's calls."""
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event.get("cat") == PROGRAM]


def names(trace):
    """Counts the calls by short name, in the order in which the names first occur among calls that began during the
    recording.
    """
    counts = {}
    for event in calls(trace):
        args = event.get("args", {})
        if not args.get("open at start") and not args.get("resumed"):
            counts[short(event["name"])] = counts.get(short(event["name"]), 0) + 1
    return counts


def threads(trace):
    """Returns {thread name: [root spans]}; threads with equal names share an entry."""
    named = _thread_names(trace)
    tracks = {}
    for event in calls(trace):
        tracks.setdefault((event["pid"], event["tid"]), []).append(Span(event))
    found = {}
    for track, spans in tracks.items():
        found.setdefault(named.get(track, ""), []).extend(_nest(spans))
    return found


def _thread_names(trace):
    return {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in trace["traceEvents"]
        if event["ph"] == "M" and event["name"] == "thread_name"
    }


def _nest(spans):
    """Returns the roots in order of time, with children below their parents."""
    spans.sort(key=lambda span: (span.start, -span.end))
    roots, stack = [], []
    for span in spans:
        while stack and stack[-1].end <= span.start and not _encloses(stack[-1], span):
            stack.pop()
        if stack:
            span.parent = stack[-1]
            stack[-1].children.append(span)
        else:
            roots.append(span)
        stack.append(span)
    return roots


def _encloses(outer, inner):
    """Decides which span contains which, if a span without a duration lies at the end of another."""
    parent = inner.args.get("Python parent id")
    return parent is not None and parent == outer.args.get("Python id")


def text(roots):
    return "\n".join(line for root in roots for line in root.lines())


def calls_of(trace, thread=None):
    """Returns the tree of a thread (the recording thread) without the calls that were open when recording began."""
    return text(spans_of(trace, thread))


def spans_of(trace, thread=None):
    """Returns the roots of one thread that began during the recording."""
    found = threads(trace)
    roots = found[thread if thread is not None else recording_thread(trace)] if found else []
    return list(_without_open(roots))


def _without_open(roots):
    for root in roots:
        if "open at start" in root.marks:
            yield from _without_open(root.children)
        else:
            yield root


def recording_thread(trace):
    """Returns the thread in which record() was open at the start, or else the main thread."""
    named = _thread_names(trace)
    for event in calls(trace):
        if event["name"].endswith(f"tree.py({record.__code__.co_firstlineno}): record"):
            return named.get((event["pid"], event["tid"]), "")
    return "MainThread"


# ---- the checker -------------------------------------------------------


def assert_nests(trace):
    """Checks that on every track X events nest perfectly, and that no duration is negative."""
    tracks = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            start, duration = _ns(event["ts"]), _ns(event["dur"])
            assert duration >= 0, event
            assert type(event["tid"]) is int and type(event["pid"]) is int, event
            tracks.setdefault((event["pid"], event["tid"]), []).append((start, -start - duration, event["name"]))
    for spans in tracks.values():
        spans.sort()
        stack = []
        for start, end, name in spans:
            while stack and -stack[-1][1] <= start:
                stack.pop()
            assert not stack or -end <= -stack[-1][1], f"{name} [{start}, {-end}] overlaps {stack[-1]}"
            stack.append((start, end, name))
