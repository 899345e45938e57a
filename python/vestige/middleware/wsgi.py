"""Requests of WSGI applications as spans. If the length of the response is known, the span lasts as long as the call
of the application. Such a span is on its thread's stack, with the calls of the request in it. Any other body is
generated while it is sent: its span lasts until the server closes the body. Our own frames are not recorded, so such a
span is on the stack too if a server calls the application and closes the body in one function. Any thread.
"""

from __future__ import annotations

from vestige._core import recording

from .demand import TRACE_HEADER
from .requests import Middleware, Request
from .routes import wsgi_route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class WSGIMiddleware(Middleware):
    """`app = WSGIMiddleware(app)`: each request of a WSGI application becomes a span `GET /orders/{id}` with a status.

    The arguments are those of ASGIMiddleware. The application gets what the server gave, and the server what the
    application gave: only the response to a request for its own trace has one header more, X-Vestige-Trace.
    """

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        query = environ.get("QUERY_STRING", "")
        if not recording() if self._demand is None else self._is_idle(query):
            return self.app(environ, start_response)
        request = self._begin(
            self._name(environ.get("REQUEST_METHOD", ""), environ, self._find_route),
            environ.get("PATH_INFO", ""),
            query,
            environ.get("HTTP_X_VESTIGE_SECRET"),
        )
        try:
            body = self.app(environ, _noting(request, start_response))
        except BaseException as error:
            request.fail(error)
            request.end()
            raise
        if request.has_length or _is_whole(body, environ):
            request.end()
            return body
        return Body(body, request)

    def _find_route(self, environ: dict[str, Any]) -> str | None:
        return wsgi_route(self.app, environ)


def _noting(request: Request, start_response: Callable[..., Any]) -> Callable[..., Any]:
    """start_response() that notes the status, and adds the header to the response of a request with its own trace."""

    def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
        try:
            request.status = int(status[:3])
            request.has_length = any(name.lower() == "content-length" for name, _ in headers)
            if request.header is not None:
                headers = [*headers, (TRACE_HEADER, request.header)]
        except Exception:  # an invalid status or list of headers concerns only the application and the server
            pass
        return start_response(status, headers, *exc_info)

    return start


def _is_whole(body: Any, environ: dict[str, Any]) -> bool:
    """Returns whether the body is complete already, or must reach the server unchanged: servers look at its length,
    and send a file's bytes themselves.
    """
    wrapper = environ.get("wsgi.file_wrapper")
    is_file = isinstance(wrapper, type) and isinstance(body, wrapper)
    # the last test is for Django
    return is_file or hasattr(body, "__len__") or getattr(body, "streaming", None) is False


class Body:
    """The body of a response, whose request ends when the server closes it."""

    __slots__ = ("_body", "_iterator", "_request")

    def __init__(self, body: Any, request: Request) -> None:
        self._body = body
        self._iterator: Iterator[bytes] | None = None
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            if self._iterator is None:
                self._iterator = iter(self._body)
            return next(self._iterator)
        except StopIteration:
            raise
        except BaseException as error:
            self._request.fail(error)
            raise

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._request.end()

    def __del__(self) -> None:
        self._request.end()  # the server did not close it
