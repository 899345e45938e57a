"""Tracebacks that are cheap to take: capturing takes nanoseconds, and frames get names when the traceback is read.

    from vestige.traceback import CapturedTraceback

    tb = CapturedTraceback.extract()           # keep as many as wanted: equal stacks share their frames
    print("".join(tb.format()))                # like traceback.format_stack()
    CapturedTraceback.format_all(many)         # cheaper than one by one

The names are those of torch.utils._traceback and torch._C._profiler. With cpp=True native frames are taken too, and
Python frames stand among them, each just inside of the C function that evaluates it. `script` is accepted and has no
effect: it means TorchScript, whose frames only torch knows.

A traceback may be dropped on any thread and under any lock. Its frames are released when the next traceback is
taken, or by free_dead_captured_tracebacks().
"""

from __future__ import annotations

import traceback

from ._core import CapturedTraceback as _CapturedTraceback
from ._core import (
    Traceback,
    free_dead_captured_tracebacks,
    gather_traceback,
    register_extra_frames,
    symbolize_tracebacks,
    unregister_extra_frames,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Frame = dict[str, Any]

__all__ = [
    "CapturedTraceback",
    "Traceback",
    "free_dead_captured_tracebacks",
    "gather_traceback",
    "register_extra_frames",
    "symbolize_tracebacks",
    "unregister_extra_frames",
]

SHOWN_REPEATS = 3  # the same limit as in traceback


class CapturedTraceback(_CapturedTraceback):
    """A traceback that can be released: extract() takes it, the other methods name it.

    Taking it costs a fraction of a microsecond, so it may stay in a program for good. It does not keep the source
    lines: like traceback, summary() and format() read them from the files when they are called.
    """

    __slots__ = ()

    def summary(self, positions: bool = False) -> traceback.StackSummary:
        """Returns what traceback.extract_stack() would: outermost frame first; empty after cleanup().

        positions  include columns, so that formatted lines have carets
        """
        taken = self.tb
        if taken is None:
            return traceback.StackSummary()
        [frames] = symbolize_tracebacks([taken], positions)
        return traceback.StackSummary(map(_summarize, frames[: self.skip - 1 if self.skip else None : -1]))

    def format(self, positions: bool = False) -> list[str]:
        """Returns the lines that traceback.format_list() would. For many tracebacks, format_all() is cheaper."""
        return traceback.format_list(self.summary(positions))

    @staticmethod
    def format_all(tbs: Iterable[CapturedTraceback], positions: bool = False) -> list[list[str]]:
        """Returns the result of format() for each traceback. Names and formats equal frames only once."""
        taken = [(tb.tb, tb.skip) for tb in tbs]  # in one step, because other threads may call cleanup() meanwhile
        named = iter(symbolize_tracebacks([tb for tb, _ in taken if tb is not None], positions))
        formatter = _Formatter()
        return [[] if tb is None else formatter.format(next(named), skip) for tb, skip in taken]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles an empty copy, because frames stay in their process."""
        return type(self), (None, self.skip)

    def __repr__(self) -> str:
        return f"<CapturedTraceback at {id(self):#x}{'' if self.tb else ', empty'}>"


def _summarize(frame: Frame) -> traceback.FrameSummary:
    line = frame["line"] or None
    if "column" in frame:
        return traceback.FrameSummary(
            frame["filename"],
            line,
            frame["name"],
            lookup_line=False,
            end_lineno=frame["end_line"],
            colno=frame["column"],
            end_colno=frame["end_column"],
        )
    return traceback.FrameSummary(frame["filename"], line, frame["name"], lookup_line=False)


class _Formatter:
    """StackSummary.format() for many stacks that share frames, which symbolize_tracebacks gives as the same dicts."""

    def __init__(self) -> None:
        self._frames: dict[int, tuple[tuple[str, int, str], str]] = {}
        self._stacks: dict[tuple[int, int], list[str]] = {}

    def format(self, frames: list[Frame], skip: int) -> list[str]:
        done = self._stacks.get((id(frames), skip))
        if done is None:
            done = self._stacks[id(frames), skip] = self._format(frames, skip)
        return done.copy()

    def _format(self, frames: list[Frame], skip: int) -> list[str]:
        known = self._frames
        lines: list[str] = []
        last, repeats = None, 0
        for frame in frames[: skip - 1 if skip else None : -1]:
            place, text = known.get(id(frame)) or self._format_frame(frame)
            if place == last:
                repeats += 1
                if repeats > SHOWN_REPEATS:
                    continue
            else:
                _close_repeats(lines, repeats)
                last, repeats = place, 1
            lines.append(text)
        _close_repeats(lines, repeats)
        return lines

    def _format_frame(self, frame: Frame) -> tuple[tuple[str, int, str], str]:
        [text] = traceback.format_list([_summarize(frame)])
        made = self._frames[id(frame)] = (frame["filename"], frame["line"], frame["name"]), text
        return made


def _close_repeats(lines: list[str], repeats: int) -> None:
    more = repeats - SHOWN_REPEATS
    if more > 0:
        lines.append(f"  [Previous line repeated {more} more time{'s' if more > 1 else ''}]\n")
