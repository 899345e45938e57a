"""Middleware for web applications: each request becomes a span `GET /orders/{id}` with its status.

    app = WSGIMiddleware(app)                         # Django, or any WSGI application
    app.wsgi_app = WSGIMiddleware(app.wsgi_app)       # Flask
    app.add_middleware(ASGIMiddleware)                # FastAPI, Starlette
    web.Application(middlewares=[aiohttp_middleware()])

An application may keep its middleware for good: while nothing is recorded, requests only pass through. A class is
loaded on first use, and loads only the framework that the application has.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .aiohttp import aiohttp_middleware as aiohttp_middleware
    from .asgi import ASGIMiddleware as ASGIMiddleware
    from .wsgi import WSGIMiddleware as WSGIMiddleware
else:
    _HOMES = {"ASGIMiddleware": "asgi", "WSGIMiddleware": "wsgi", "aiohttp_middleware": "aiohttp"}

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = __import__(f"{__name__}.{_HOMES[name]}", fromlist=[name])
        return globals().setdefault(name, getattr(home, name))


__all__ = ["ASGIMiddleware", "WSGIMiddleware", "aiohttp_middleware"]
