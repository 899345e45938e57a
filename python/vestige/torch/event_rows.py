"""The rows of the table `events`: their meaning, and how their names and arguments are written."""

from __future__ import annotations

from vestige.reading.columns import Columns
from vestige.reading.kinds import GC, MODULE, NATIVE, PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LOOSE = 0, "[memory]"  # the id 0: memory that a framework allocated outside all spans, by torch's name
CALLS = (PYTHON, NATIVE, GC, MODULE)
ASYNC, RESUMED = 64, 16  # flags of spans
STEP = "ProfilerStep#"
USER_SCOPE = 7
SCOPE_SHIFT = 24  # position of the scope in the flags of an operator


class Events(Columns):
    """The columns of the table `events`. The table `tree_events` also has addresses."""

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
    """Returns shapes as input_shapes has them: a list of tensors becomes []."""
    shapes = [shape if isinstance(shape, list) else [] for shape in dims]
    return [[] if any(isinstance(part, list) for part in shape) else shape for shape in shapes]


def rewrite(name: str) -> str:
    """Returns the name for tables, where all steps have one name."""
    return "ProfilerStep*" if name.startswith(STEP) else name
