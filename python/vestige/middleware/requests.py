"""Shared code for the middleware of every kind of server: the name of a request's span, its beginning and its end.
Nothing here raises into an application: a request that cannot be named or recorded is handled as if vestige were not
there.
"""

from __future__ import annotations

from vestige import _core
from vestige.render import members

from .demand import Demand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from os import PathLike
    from typing import Any

    from .demand import OwnTrace

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "WEBSOCKET")
OTHER = "HTTP"  # stands for any other method, because clients may send anything
NAMES_MAX = 1000  # names of spans; a trace keeps every name, so clients must not be able to invent new ones


class Middleware:
    """The options, and what is remembered from one request to the next.

    app           the application that answers, which the classes for WSGI and ASGI call
    route         a function of the request (WSGI's environ, ASGI's scope, aiohttp's Request) that returns its route,
                  such as `/orders/{id}`, or None. Default: the router of a known framework returns the route
    secret        allows a trace of a single request, which is recorded if the URL has `?vestige=1` and the header
                  X-Vestige-Secret has this text. At least 16 characters; None: no such traces
    folder        the folder for these traces; nobody but this user may enter it
    every         the least time between two traces of a process: "10s", seconds or a timedelta
    max_traces    the largest number of traces that each process writes
    max_size      the largest size of a trace; of a larger trace, only the end is kept
    """

    def __init__(
        self,
        app: Any,
        *,
        route: Callable[[Any], str | None] | None = None,
        secret: str | None = None,
        folder: str | PathLike[str] = "vestige-traces",
        every: str | float | timedelta = "10s",
        max_traces: int = 100,
        max_size: str | int = "256M",
    ) -> None:
        if route is not None and not callable(route):
            raise TypeError(f"route must be a function, not {type(route).__name__}")
        self.app = app
        self._route = route
        self._names: dict[tuple[str, str | None], str] = {}
        self._demand = None if secret is None else Demand(secret, folder, every, max_traces, max_size)

    def _is_idle(self, query: str | bytes) -> bool:
        """Returns whether there is nothing to do for a request with this query string."""
        if self._demand is not None and self._demand.is_asked_for(query):
            return False
        return not _core.recording()

    def _name(self, method: str, request: Any, find_route: Callable[[Any], str | None]) -> str:
        try:
            route = self._route(request) if self._route is not None else find_route(request)
            route = str.__str__(route) if issubclass(type(route), str) else None  # ignores methods of a subclass of str
        except Exception:  # no such route, or a mistake in the function: the application will meet the same error
            route = None
        if method not in METHODS:
            method = OTHER
        name = self._names.get((method, route))
        if name is not None:
            return name
        if route is not None and len(self._names) >= NAMES_MAX:
            return self._name(method, None, _nowhere)
        # Returns the same str object each time, because record_function finds ids of names by their address.
        return self._names.setdefault((method, route), method if route is None else f"{method} {route}")

    def _begin(self, name: str, path: str, query: str | bytes, secret: str | bytes | None) -> Request:
        """Begins the span of a request, and its own trace if the request asks for one and may."""
        own: OwnTrace | None = None
        if self._demand is not None and self._demand.is_asked_for(query):
            own = self._demand.begin(name, secret)
        return Request(name, path, own)


def _nowhere(request: object) -> None:
    return None


class Request:
    """A request that is being handled."""

    __slots__ = ("_own", "_span", "error", "has_length", "status")

    def __init__(self, name: str, path: str, own: OwnTrace | None) -> None:
        self._own = own
        self._span: _core.record_function | None = None
        self.status: int | None = None
        self.error: str | None = None
        self.has_length = False
        try:
            span = _core.record_function(name, path)
            span.__enter__()
            self._span = span
        except Exception:
            pass

    @property
    def header(self) -> str | None:
        """Returns the value of the response's header X-Vestige-Trace; None if the response gets no such header."""
        return None if self._own is None else self._own.told

    def fail(self, error: BaseException) -> None:
        """Notes the exception that the application raised."""
        self.error = type(error).__name__

    def end(self) -> None:
        """Ends the span and the request's own trace; a second call does nothing."""
        span, self._span = self._span, None
        own, self._own = self._own, None
        try:
            if span is not None:
                self._end_span(span)
        except Exception:
            pass
        finally:
            if own is not None:
                own.end()

    def _end_span(self, span: _core.record_function) -> None:
        if span._theirs is not None:  # torch has the span now, see ext/annotate/framework_spans.c
            span.__exit__(None, None, None)
            return
        facts: dict[str, object] = {}
        if self.status is not None:
            facts["status"] = self.status
        if self.error is not None:
            facts["error"] = self.error
        span._end(members(facts))
