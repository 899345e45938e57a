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


# What the block of a bytearray holds beside its bytes: a zero, from 3.15 on the rest of a bytes object.
BEYOND = sys.getsizeof(bytearray(1)) - sys.getsizeof(bytearray()) - 1

OURS = os.path.dirname(vestige.__file__) + os.sep


def is_ours(file):
    """Whether a frame's file is of the installed package: the folder of the clone may be called vestige, too."""
    return file.startswith(OURS)


def events_of(path):
    """Every allocation and free of a trace, in order of time."""
    return [*_core.Trace(os.fspath(path)).tables(["memory_events"])["memory_events"]]


class History:
    """What a trace knows of memory."""

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
        """Innermost first; native frames are left out."""
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
        """Allocations whose innermost frame is in a file, by its line: lists of them."""
        lines = {}
        for event in self.allocations:
            frames = self.frames(event)
            if frames and frames[0].file == file:
                lines.setdefault(frames[0].line, []).append(event)
        return lines

    def live(self):
        """Allocations that no free ended."""
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
        """The blocks of bytearrays of a length."""
        return self.sized(length + BEYOND)


@contextlib.contextmanager
def recording(path=None, min_size=0, **options):
    """Gives a list that holds the history, or its larger blocks, when the block is left."""
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
