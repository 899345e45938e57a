"""The functions of torch.profiler.itt, for programs that call them. They do nothing, because vestige has no collector
for ITT.
"""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Returns False: vestige collects no ranges of ITT."""
    return False


def range_push(msg: str) -> int:
    """Does nothing. Returns 0, the depth of the range."""
    return 0


def range_pop() -> int:
    """Does nothing. Returns 0, the depth of the range."""
    return 0


def mark(msg: str) -> None:
    """Does nothing."""


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """Does nothing around a block or a function."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
