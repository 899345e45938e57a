"""Activities of devices as rows, and the names of their kinds."""

from __future__ import annotations

from .columns import Columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

DEFINITION = 10  # the kind of a definition, which names an activity
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


class Activities(Columns):
    """The columns of the table `activities`."""

    start_ns: memoryview[int]
    end_ns: memoryview[int]
    correlation: memoryview[int]
    external: memoryview[int]
    bytes: memoryview[int]
    op_span: memoryview[int]
    annotation_span: memoryview[int]
    stream: memoryview[int]
    context: memoryview[int]
    args: Sequence[str]
    kind: memoryview[int]
    func: memoryview[int]
    device: memoryview[int]
    thread: memoryview[int]
    launch: memoryview[int]
    op: memoryview[int]
    annotation: memoryview[int]

    @property
    def count(self) -> int:
        return len(self.kind)

    def attributes(self, row: int) -> dict[str, Any]:
        return read_attributes(self.args[row])


def read_attributes(text: str) -> dict[str, Any]:
    """Parses attributes, which are the members of a JSON object."""
    from .metadata import load_json

    members = load_json("{" + text + "}") if text else {}
    return members if isinstance(members, dict) else {"args": text}


def stream_number(stream: int) -> int:
    """Returns the number that Kineto writes: -1 for an activity that is on no stream."""
    return -1 if stream == NO_STREAM else stream


def bandwidth(size: int, ns: int) -> float:
    """Returns GB per second, as Kineto writes it: bytes copied per nanosecond."""
    return size / ns if ns > 0 else 0.0
