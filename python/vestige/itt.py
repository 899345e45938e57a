"""torch.profiler.itt's names, for programs that call them: vestige has no such collector, so they do nothing."""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether ranges are collected: they are not."""
    return False


def range_push(msg: str) -> int:
    """Would begin a range; returns its depth, which is always 0."""
    return 0


def range_pop() -> int:
    """Would end the newest range; returns its depth, which is always 0."""
    return 0


def mark(msg: str) -> None:
    """Would mark this moment."""


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """Would be a range around a block or a function; further arguments are put into the message."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
