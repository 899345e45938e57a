"""What a page made by `vestige view --html` has beside spans: marks, when threads ran, the lanes of tasks and of
devices.

Columns are varints, as embed.py has them. Each part has a most, so that the page stays small; what is above it is left
out or drawn coarser, and the page says so.
"""

from __future__ import annotations

import struct

from vestige.reading.awaits import awaits

from .embed_devices import pack_devices
from .marks import read_members
from .tasks import UNNAMED, describe_groups
from .varints import varints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from vestige._core import States

    from .embed import Blob
    from .traces import Shown, Traces

MARKS_MAX = 300_000
MARKS_ARGS_MAX = 2 << 20  # bytes of text
STRETCHES_MAX = 400_000
PARTS_MAX = 1 << 14  # of a thread's time, where there are more stretches
STEPS_MAX = 500_000
ENDS = ["", "caught", "not caught", "unknown"]  # of exceptions
STRETCH = struct.Struct("<qqI4x")
WAITS, PREEMPTED, GIL = range(3)  # see <vestige/states.h>


def pack_beside(shown: Shown, traces: Traces, blob: Blob) -> dict[str, Any]:
    return {
        "marks": _pack_marks(shown, traces.start_ns, blob) if shown.has_marks else None,
        "states": _pack_states(shown, traces, blob) if shown.has_states else None,
        "tasks": _pack_tasks(shown, traces.start_ns, blob) if shown.facts.get("has_tasks") else None,
        "devices": pack_devices(shown, traces.start_ns, blob) if shown.has_devices else None,
    }


# ---- marks


def _pack_marks(shown: Shown, base: int, blob: Blob) -> dict[str, Any]:
    """Of each thread a row: time since the mark before, id, end, raised in, caught in."""
    marks = shown.marks()
    threads = marks.threads()
    all_marks = sum(row[1] for row in threads)
    share = min(1.0, MARKS_MAX / max(all_marks, 1))
    rows, args, left, kept = [], [], MARKS_ARGS_MAX, 0
    for number, (thread, count, exceptions, lost) in enumerate(threads):
        _, found = marks.between(thread, -(1 << 62), 1 << 62, max(1, int(count * share)))
        values: list[int] = []
        before = base
        for at, (_, time, what, end, raised_in, caught_in, text) in enumerate(found):
            values += (time - before, what, ENDS.index(end), raised_in, caught_in)
            before = max(time, before)
            if text and len(text) <= left:
                left -= len(text)
                args.append([number, at, read_members(text)])
        kept += len(found)
        rows.append([thread, exceptions, lost, len(found), *blob.add(varints(values))])
    return {"threads": rows, "args": args, "left_out": all_marks - kept + marks.left_out()}


# ---- when threads ran


def _pack_states(shown: Shown, traces: Traces, blob: Blob) -> dict[str, Any]:
    """Of each kind and thread a row: time since the stretch before, length, share of it (of 255)."""
    states, facts = shown.states, shown.source.facts
    kinds = [states.stretches(kind) for kind in (WAITS, PREEMPTED, GIL)]
    exact = sum(len(kind) for kind in kinds) <= STRETCHES_MAX * STRETCH.size
    rows = _exact_rows(kinds) if exact else _drawn_rows(states, shown, traces)
    packed = [
        [
            [thread, len(stretches), *blob.add(varints(_gaps(stretches, traces.start_ns)))]
            for thread, stretches in kind.items()
        ]
        for kind in rows
    ]
    waits = {"gil": bool(facts["gil_waits"]), "objects": bool(facts.get("object_waits"))}
    return {"exact": exact, "kinds": packed, "switches": bool(facts["switches"]), **waits}


def _gaps(stretches: list[tuple[int, int, int]], base: int) -> Iterable[int]:
    before = base
    for start, end, share in stretches:
        yield start - before
        yield end - start
        yield share
        before = end


def _exact_rows(kinds: list[bytes]) -> list[dict[int, list[tuple[int, int, int]]]]:
    rows: list[dict[int, list[tuple[int, int, int]]]] = [{}, {}, {}]
    for kind, found in enumerate(kinds):
        for start, end, thread in STRETCH.iter_unpack(found):
            rows[kind].setdefault(thread, []).append((start, end, 255))
    return rows


def _drawn_rows(states: States, shown: Shown, traces: Traces) -> list[dict[int, list[tuple[int, int, int]]]]:
    """Shares of equal parts of the time, in place of stretches; neighbours that are equal are one."""
    start, end = traces.start_ns, max(traces.end_ns, traces.start_ns + 1)
    parts = max(256, min(PARTS_MAX, STRETCHES_MAX // (2 * max(len(shown.threads), 1))))
    length = (end - start) / parts
    rows: list[dict[int, list[tuple[int, int, int]]]] = [{}, {}, {}]
    for thread in shown.threads:
        for kind, drawn in zip((WAITS, GIL), states.draw(thread["number"], start, end, parts)):
            runs: list[tuple[int, int, int]] = []
            for part, share in enumerate(drawn):
                begins, ends = start + int(part * length), start + int((part + 1) * length)
                if share and runs and runs[-1][1:] == (begins, share):
                    runs[-1] = (runs[-1][0], ends, share)
                elif share:
                    runs.append((begins, ends, share))
            if runs:
                rows[kind][thread["number"]] = runs
    return rows


# ---- tasks


def _pack_tasks(shown: Shown, base: int, blob: Blob) -> dict[str, Any]:
    """Of each lane a row: its task, and of each step the time since the one before, its length, 1 + what it awaits,
    the function that waits, the lane of the task that is awaited, and what woke it: 0, or 1 + its lane, thread, id and
    how long before.
    """
    lanes = shown.task_lanes(lambda share: None)
    groups = describe_groups(shown, lanes, base)
    words: set[tuple[int, int]] = set()
    rows, steps_left, left_out = [], STEPS_MAX, lanes.left_out()
    for group in groups:
        for at, task in enumerate(lanes.tasks(group["first"], group["tasks"])):
            name, start, end, steps, running, awaiting, became, _ = task
            found = lanes.steps(group["first"] + at)
            left_out += max(0, len(found) - steps_left)
            found = found[:steps_left]
            steps_left -= len(found)
            place = [len(found), *blob.add(varints(_steps(found, base)))]
            rows.append([name or UNNAMED, start - base, end - base, steps, running, awaiting, became, *place])
            words.update((step[2], step[3]) for step in found if step[2] >= 0)
    told = {f"{kind} {function}": awaits(kind, _function(shown, function)) for kind, function in sorted(words)}
    return {"groups": groups, "left_out": left_out, "lanes": rows, "awaits": told, "end_ns": shown.end_ns - base}


def _function(shown: Shown, number: int) -> tuple[int, str, str, str, int] | None:
    return shown.functions[number] if 0 < number < len(shown.functions) else None


def _steps(steps: list[tuple[int, int, int, int, int, tuple[int, int, int, int] | None]], base: int) -> Iterable[int]:
    before = base
    for start, end, kind, awaiting, awaited, waker in steps:
        yield from (start - before, end - start, 1 + kind, awaiting, awaited)
        if waker is None:
            yield 0
        else:
            lane, thread, number, time = waker
            yield from (1 + lane, thread, number, start - time)
        before = end
