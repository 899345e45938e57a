"""What devices did, row by row, as Trace.activities() gives it, and the names of its kinds."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFINITION = 10  # the kind of what names an activity
KERNEL, COPY, SET, SYNC, OVERHEAD, RUNTIME, DRIVER = range(1, 8)  # see <vestige/device.h>
NO_STREAM = (1 << 32) - 1
WORK = (KERNEL, COPY, SET)
ON_THREAD = (OVERHEAD, RUNTIME, DRIVER)
NAMES = {
    KERNEL: "kernel",
    COPY: "copy",
    SET: "set",
    SYNC: "synchronisation",
    OVERHEAD: "overhead",
    RUNTIME: "runtime call",
    DRIVER: "driver call",
}
WORDS, HALVES = 14, 28  # of a row, in 8 and 4 bytes: see python/ext/read/trace_devices.c
START, END, CORRELATION, EXTERNAL, BYTES, OP, ANNOTATION, ARGS_AT = range(8)  # words
KIND, ID, DEVICE, STREAM, THREAD, CONTEXT, ARGS_LENGTH, LAUNCH = range(16, 24)  # halves
ANNOTATION_ID, LANE, ROW = range(25, 28)  # 24 has the id of the operator


class Activities:
    """The rows of a recording: columns, and the text of attributes."""

    def __init__(self, block: memoryview, text: bytes) -> None:
        self.words = block.cast("q")
        self.halves = block.cast("I")
        self.text = text
        self.count = len(self.words) // WORDS

    def word(self, row: int, field: int) -> int:
        return self.words[row * WORDS + field]

    def half(self, row: int, field: int) -> int:
        return self.halves[row * HALVES + field]

    def column(self, field: int) -> list[int]:
        """Of all rows, a word or a half."""
        if field < WORDS and field <= ARGS_AT:
            return self.words[field::WORDS].tolist()
        return self.halves[field::HALVES].tolist()

    def attributes_text(self, row: int) -> str:
        at = self.word(row, ARGS_AT)
        return self.text[at : at + self.half(row, ARGS_LENGTH)].decode(errors="replace")

    def attributes(self, row: int) -> dict[str, Any]:
        return read_attributes(self.attributes_text(row))


def read_attributes(text: str) -> dict[str, Any]:
    """Attributes are members of a JSON object."""
    from .metadata import load_json

    members = load_json("{" + text + "}") if text else {}
    return members if isinstance(members, dict) else {"args": text}


def stream_number(stream: int) -> int:
    """As Kineto writes it: -1 of what is on no stream."""
    return -1 if stream == NO_STREAM else stream


def bandwidth(size: int, ns: int) -> float:
    """GB a second, as Kineto writes it: what was copied a nanosecond."""
    return size / ns if ns > 0 else 0.0
