"""Annotations, which the program makes itself: named spans, instants and counters.

They may stay in a program for good: while nothing is recorded, a call costs one comparison.
"""

from __future__ import annotations

from . import _core
from ._core import record_function
from .render import members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200  # the values of inspect's constants


def instant(name: str, /, **args: object) -> None:
    """Marks this moment in the calling thread. Reports show the arguments with the mark."""
    if not isinstance(name, str):
        raise TypeError(f"instant: name must be a str, not {type(name).__name__}")
    if _core.recording():
        _core.instant(name, members(args) if args else "")


def counter(name: str, value: float, /) -> None:
    """Records the value of a number from now on, such as a queue's length, a loss, or bytes in use."""
    if not isinstance(name, str):
        raise TypeError(f"counter: name must be a str, not {type(name).__name__}")
    if _core.recording():
        _core.counter(name, value)


def _decorate(span: record_function, function: F) -> F:
    """Wraps a function that record_function("name") decorates."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_decorate(span, function.__func__))
    if not callable(function):
        raise TypeError(f"record_function decorates functions, not {type(function).__name__}")
    from functools import update_wrapper

    return update_wrapper(_wrap(function, type(span), span), function)  # type: ignore[return-value]


def _on_future(span: record_function, future: Any) -> Any:
    """Makes the span last until the future is done. The future is asyncio's, concurrent.futures' or torch's."""
    if span._theirs is not None:
        return span._theirs._call_end_callbacks_on_future(future)
    if not hasattr(future, "add_done_callback"):
        raise TypeError(f"expected a future with add_done_callback(), not {type(future).__name__}")
    span._leave_open()
    future.add_done_callback(lambda _: span._end())
    return future


def _flags(function: Callable[..., Any]) -> int:
    """Returns co_flags of the function that a call reaches through partial() and methods; 0 if it is not written in
    Python.
    """
    inner: Any = function
    while not hasattr(inner, "__code__"):
        inner = getattr(inner, "__func__", None) or getattr(inner, "func", None)
        if inner is None:
            return 0
    flags: int = inner.__code__.co_flags
    return flags


def _wrap(function: Callable[..., Any], span: type[record_function], like: record_function) -> Callable[..., Any]:
    name, stack = like.name, like.stack
    given = like._values if like._values is not None else (like.args,)

    def call(*args: Any, **kwargs: Any) -> Any:
        with span(name, *given, stack=stack):
            return function(*args, **kwargs)

    async def call_coroutine(*args: Any, **kwargs: Any) -> Any:
        with span(name, *given, stack=stack):
            return await function(*args, **kwargs)

    def call_generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with span(name, *given, stack=stack):
            return (yield from function(*args, **kwargs))

    async def call_async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with span(name, *given, stack=stack):
            inner = function(*args, **kwargs)
            try:
                value = await inner.__anext__()
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as error:
                        value = await inner.athrow(error)
                    else:
                        value = await inner.asend(sent)
            except StopAsyncIteration:
                return

    flags = _flags(function)
    if flags & CO_COROUTINE:
        return call_coroutine
    if flags & CO_ASYNC_GENERATOR:
        return call_async_generator
    if flags & CO_GENERATOR:
        return call_generator
    return call
