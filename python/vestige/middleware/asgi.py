"""Requests of ASGI applications as spans. A span lasts as long as the application handles the request, including its
work after the response, such as background tasks. Requests share one thread: once a request has waited for something,
its span leaves the stack and is shown separately, with its true times. A request that never waited is on the stack,
with its calls in it. Runs in the threads of event loops.
"""

from __future__ import annotations

from .demand import SECRET_HEADER, TRACE_HEADER
from .requests import Middleware
from .routes import asgi_route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .requests import Request


class ASGIMiddleware(Middleware):
    """`app.add_middleware(ASGIMiddleware)` or `app = ASGIMiddleware(app)`: each request of an ASGI application becomes
    a span `GET /orders/{id}` with its status, each web socket a span `WEBSOCKET /chat/{room}`.

    route         a function of the request (WSGI's environ, ASGI's scope, aiohttp's Request) that returns its route,
                  such as `/orders/{id}`, or None. Default: the router of Django, Flask, FastAPI, Starlette or aiohttp
                  returns the route
    secret        allows a trace of a single request, which is recorded if the URL has `?vestige=1` and the header
                  X-Vestige-Secret has this text. At least 16 characters; None: no such traces
    folder        the folder for these traces; nobody but this user may enter it
    every         the least time between two traces of a process: "10s", seconds or a timedelta
    max_traces    the largest number of traces that each process writes
    max_size      the largest size of a trace; of a larger trace, only the end is kept

    Messages are passed on unchanged, except that the response to a request that was recorded alone gets a header
    X-Vestige-Trace.
    """

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        query = scope.get("query_string", b"")
        if scope["type"] not in ("http", "websocket") or self._is_idle(query):
            await self.app(scope, receive, send)
            return
        method = scope.get("method", "") if scope["type"] == "http" else "WEBSOCKET"
        request = self._begin(
            self._name(method, scope, self._find_route), scope.get("path", ""), query, _secret_of(scope)
        )
        try:
            await self.app(scope, receive, _noting(request, send))
        except BaseException as error:
            request.fail(error)
            raise
        finally:
            request.end()

    def _find_route(self, scope: dict[str, Any]) -> str | None:
        return asgi_route(self.app, scope)


def _secret_of(scope: dict[str, Any]) -> bytes | None:
    wanted = SECRET_HEADER.lower().encode()
    return next((value for name, value in scope.get("headers", ()) if name == wanted), None)


def _noting(request: Request, send: Callable[..., Any]) -> Callable[..., Any]:
    """send() that notes the status, and adds the header to the response of a request with its own trace."""

    async def note_and_send(message: dict[str, Any]) -> None:
        if message.get("type") == "http.response.start":
            request.status = message.get("status")
            if request.header is not None:
                header = (TRACE_HEADER.lower().encode(), request.header.encode())
                message = {**message, "headers": [*message.get("headers", ()), header]}
        await send(message)

    return note_and_send
