"""Memory histories for tests: recorded here, and read event by event."""

import contextlib
import os
import sys
from collections import namedtuple

import vestige
from vestige import _core, memory

UNLOCKED, STALE, FREES, UNKNOWN, TOUCHED = 1, 2, 4, 8, 32
IS_ENTRY, IS_CUT = 1, 2

Event = namedtuple("Event", "kind address size time_ns thread flags stack serial live_bytes weight")
Frame = namedtuple("Frame", "function file line flags")


# What the block of a bytearray holds beside its bytes: a zero, from 3.15 on the rest of a bytes object.
BEYOND = sys.getsizeof(bytearray(1)) - sys.getsizeof(bytearray()) - 1

OURS = os.path.dirname(vestige.__file__) + os.sep


def is_ours(file):
    """Whether a frame's file is of the installed package: the folder of the clone may be called vestige, too."""
    return file.startswith(OURS)


class History:
    """What a trace knows of memory."""

    def __init__(self, trace, min_size=0):
        self.trace = trace
        self.events = [Event(*event) for event in _core.memory_events(trace, min_size)]
        self._stacks = _core.memory_stacks(trace)

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
            kind, flags, parent, function, file, line, _ = self._stacks[number]
            if kind == 1:
                found.append(Frame(function, file, line, flags))
            number = parent
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
