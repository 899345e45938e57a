"""Memory histories for tests: recorded here, and read event by event."""

import contextlib
import os
import sys
from collections import namedtuple

import vestige
from vestige import _core, memory

UNLOCKED, STALE, FREES, UNKNOWN, TOUCHED = 1, 2, 4, 8, 32
IS_ENTRY, IS_CUT = 1, 2

Frame = namedtuple("Frame", "function file line flags")


# The bytes of a bytearray's block besides its contents: a final zero; from 3.15 on the header of a bytes object.
BEYOND = sys.getsizeof(bytearray(1)) - sys.getsizeof(bytearray()) - 1

OURS = os.path.dirname(vestige.__file__) + os.sep


def is_ours(file):
    """Returns whether a frame's file belongs to the installed package. The clone's folder may be called vestige, too."""
    return file.startswith(OURS)


def events_of(path):
    """Returns every allocation and free of a trace, in order of time."""
    return [*_core.Trace(os.fspath(path)).tables(["memory_events"])["memory_events"]]


class History:
    """The memory history of a trace."""

    def __init__(self, trace, min_size=0):
        self.trace = trace
        tables = trace.tables(["memory_events", "recorded_stacks"])
        self.events = [event for event in tables["memory_events"] if event.size >= min_size]
        self.stacks = {each.stack: each for each in tables["recorded_stacks"]}

    @property
    def allocations(self):
        return [event for event in self.events if not event.flags & FREES]

    @property
    def frees(self):
        return [event for event in self.events if event.flags & FREES]

    def frames(self, event):
        """Returns the frames, innermost first, without native frames."""
        found = []
        number = event.stack
        while number:
            stack = self.stacks[number]
            if stack.kind == 1:
                found.append(Frame(stack.function, stack.file, stack.line, stack.flags))
            number = stack.parent
        return found

    def names(self, event):
        return [frame.function for frame in self.frames(event)]

    def of_file(self, file):
        """Returns lists of allocations whose innermost frame is in this file, by line."""
        lines = {}
        for event in self.allocations:
            frames = self.frames(event)
            if frames and frames[0].file == file:
                lines.setdefault(frames[0].line, []).append(event)
        return lines

    def live(self):
        """Returns the allocations that were not freed."""
        live = {}
        for event in self.events:
            if event.flags & FREES:
                live.pop(event.serial, None)
            else:
                live[event.serial] = event
        return list(live.values())

    def sized(self, size):
        return [event for event in self.allocations if event.size == size]

    def bytearrays(self, length):
        """Returns the blocks of bytearrays of this length."""
        return self.sized(length + BEYOND)


@contextlib.contextmanager
def recording(path=None, min_size=0, **options):
    """Yields a list. When the with block ends, appends the history with its blocks of `min_size` bytes and more."""
    result = []
    memory.start(path, overwrite=True, **options)
    try:
        yield result
    finally:
        memory.stop()
    result.append(History(memory._last._session.trace(), min_size))


def record(work, **options):
    with recording(**options) as result:
        work()
    return result[0]


def history_of(path):
    return History(_core.Trace(os.fspath(path)))
