"""What the rows of the table `events` mean, and what their names and arguments become."""

from __future__ import annotations

from vestige.reading.columns import Columns
from vestige.reading.kinds import GC, MODULE, NATIVE, PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LOOSE = 0, "[memory]"  # of the id 0: what a framework allocated outside of all spans, as torch names it
CALLS = (PYTHON, NATIVE, GC, MODULE)
ASYNC, RESUMED = 64, 16  # flags of spans
STEP = "ProfilerStep#"
USER_SCOPE = 7
SCOPE_SHIFT = 24  # in the flags of an operator


class Events(Columns):
    """The columns of the table `events`, and of `tree_events`, which has addresses."""

    start_ns: memoryview[int]
    end_ns: memoryview[int]
    self_ns: memoryview[int]
    self_bytes: memoryview[int]
    total_bytes: memoryview[int]
    compensated_ns: Sequence[int | None]
    args: Sequence[str]
    span: memoryview[int]
    func: memoryview[int]
    parent: memoryview[int]
    first: memoryview[int]
    next: memoryview[int]
    thread: memoryview[int]
    flags: memoryview[int]
    address: memoryview[int]


def read_members(text: str) -> dict[str, Any]:
    from vestige.reading.metadata import load_json

    members = load_json("{" + text + "}")
    return members if isinstance(members, dict) else {}


def flat_shapes(dims: Sequence[Any]) -> list[Any]:
    """Shapes as input_shapes has them: a list of tensors is []."""
    shapes = [shape if isinstance(shape, list) else [] for shape in dims]
    return [[] if any(isinstance(part, list) for part in shape) else shape for shape in shapes]


def rewrite(name: str) -> str:
    """All steps have one name in tables."""
    return "ProfilerStep*" if name.startswith(STEP) else name
