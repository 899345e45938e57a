"""Traces made by hand in which a device did a known work, as include/vestige/device.h specifies it. Times are in
microseconds since the recording began.
"""

import struct

import handmade as h

ANNOTATION, OPERATOR, ACTIVITY, METADATA, DEVICE = 3, h.OPERATOR, 10, 17, 25
KERNEL, COPY, SET, SYNC, OVERHEAD, RUNTIME = range(1, 7)
HOST_TIME, HAS_THREAD, HAS_BYTES, HAS_ATTRIBUTES = 1, 2, 8, 16
TOLD = 999_000  # time at which all activities are delivered: at the end, like a device's library


def ticks(us):
    return h.START + round(us * 1000)


def device(name="A GPU", attributes="", platform=b"cuda", ordinal=0, ticks_per_second=0.0):
    rate = struct.unpack("<Q", struct.pack("<d", ticks_per_second))[0]
    platform = int.from_bytes(platform, "little")
    return h.entry(DEVICE, 1, name, attributes, numbers=(ordinal | 1 << 32, rate if ticks_per_second else 0, platform))


def pair(theirs, ours, width):
    return h.entry(DEVICE, 1, line=2, numbers=(theirs, ours, width))


class Work:
    """The work of one thread and one device."""

    def __init__(self):
        self._ids = {}
        self._events = []  # (ticks, words)

    def _define(self, kind, name):
        return self._ids.setdefault((kind, name), len(self._ids) + 1)

    def span(self, kind, name, start, end):
        id = self._define(kind, name)
        self._events += [(ticks(start), (h.enter(id, 0),)), (ticks(end), (h.leave(id, 0),))]

    def activity(self, kind, name, start, end, *, correlation, stream=0, size=0, attributes=""):
        text = attributes.encode()
        flags, more = HOST_TIME, []
        if kind == RUNTIME:
            flags, more = flags | HAS_THREAD, [4242]
        if size:
            flags, more = flags | HAS_BYTES, [*more, size]
        if text:
            words = (len(text) + 7) // 8
            flags, more = (
                flags | HAS_ATTRIBUTES,
                [*more, len(text), *struct.unpack(f"<{words}Q", text.ljust(8 * words, b"\0"))],
            )
        head = kind | flags << 8 | 1 << 16 | stream << 32
        payload = head, self._define(ACTIVITY, name) | 1 << 32, correlation, ticks(start), ticks(end) - ticks(start)
        self._events.append((ticks(TOLD), h.escape(DEVICE, *payload, *more, delta=0)))

    def launch(self, name, called, start, end, *, correlation, stream=7, kind=KERNEL, **more):
        """Adds a kernel or a copy, and the call that launched it, which takes ten microseconds."""
        call = "cudaLaunchKernel" if kind == KERNEL else "cudaMemcpyAsync"
        self.activity(RUNTIME, call, called, called + 10, correlation=correlation, attributes='"cbid": 211')
        self.activity(kind, name, start, end, correlation=correlation, stream=stream, **more)

    def trace(self, *entries):
        """Returns the file, with these entries."""
        words, now = [], h.START
        for time, (first, *payload) in sorted(self._events, key=lambda event: event[0]):
            words += [first | (time - now) << 32, *payload]
            now = time
        names = [h.define(id, name, "", 0, kind) for (kind, name), id in self._ids.items()]
        return h.trace(h.definitions(h.thread(), *names, *entries), h.records(*words))
