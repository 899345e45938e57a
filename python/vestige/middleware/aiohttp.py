"""Requests of aiohttp's own server as spans, which behave like those of asgi.py."""

from __future__ import annotations

from .demand import SECRET_HEADER, TRACE_HEADER
from .requests import Middleware
from .routes import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def aiohttp_middleware(**options: Any) -> Callable[..., Any]:
    """`web.Application(middlewares=[aiohttp_middleware()])`: each request becomes a span `GET /orders/{id}` with its
    status. The arguments are those of ASGIMiddleware, without `app`."""
    shared = Middleware(None, **options)

    async def vestige_middleware(request: Any, handler: Callable[..., Any]) -> Any:
        query = request.query_string
        if shared._is_idle(query):
            return await handler(request)
        name = shared._name(request.method, request, aiohttp_route)
        seen = shared._begin(name, request.path, query, request.headers.get(SECRET_HEADER))
        answer: Any = None
        try:
            answer = await handler(request)
            return answer
        except BaseException as error:
            if hasattr(error, "status") and hasattr(error, "headers"):
                answer = error  # aiohttp's HTTPException is itself a response
            else:
                seen.fail(error)
            raise
        finally:
            seen.status = getattr(answer, "status", None)
            if seen.header is not None and answer is not None and not getattr(answer, "prepared", True):
                answer.headers[TRACE_HEADER] = seen.header
            seen.end()

    from aiohttp import web

    made: Callable[..., Any] = web.middleware(vestige_middleware)
    return made


def aiohttp_route(request: Any) -> str | None:
    resource = request.match_info.route.resource
    return None if resource is None else plain(resource.canonical)
