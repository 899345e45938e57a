"""The route of a request, such as `/orders/{id}`, from the framework's own router, before the request runs. A path
itself never becomes a name, because there are too many. Only public functions of routers are called; they raise if no
route fits, and the caller then uses no route. Frameworks are looked for among the modules that the program has loaded.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOUNTS_MAX = 20  # applications mounted inside one another


def plain(route: str) -> str:
    """Writes a route with `{id}` for each part that varies: Flask and Django write <int:id>, Starlette {id:int}."""
    route = re.sub(r"<(?:[^<>:]+(?:\([^<>]*\))?:)?([^<>:]+)>", r"{\1}", route)
    return re.sub(r"\{(\w+):[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", r"{\1}", route)


# ---- WSGI -------------------------------------------------------------------


def wsgi_route(app: Any, environ: dict[str, Any]) -> str | None:
    owner = getattr(app, "__self__", app)  # Flask's wsgi_app is a method
    path = environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace") or "/"
    if _is(owner, "flask", "Flask"):
        return _flask_route(owner, environ, path)
    if _is(owner, "django.core.handlers.base", "BaseHandler"):
        return _django_route(path)
    return None


def _flask_route(app: Any, environ: dict[str, Any], path: str) -> str | None:
    urls = app.url_map.bind(environ.get("HTTP_HOST") or "localhost")
    rule, _ = urls.match(path, method=environ["REQUEST_METHOD"], return_rule=True)
    return plain(rule.rule)


def _django_route(path: str) -> str | None:
    from django.urls import resolve

    return "/" + plain(_without_groups(resolve(path).route))


def _without_groups(route: str) -> str:
    """Django's re_path() has regular expressions: `^orders/(?P<id>[0-9]+)/$` becomes `orders/{id}/`."""
    if "(" not in route and not route.startswith("^"):
        return route
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(route):
        if letter == "(" and route[at - 1 : at] != "\\":
            if depth == 0:
                parts.append(route[start:at])
                named = re.match(r"\(\?P<(\w+)>", route[at:])
                parts.append("{" + named[1] + "}" if named is not None else "{}")
            depth += 1
        elif letter == ")" and depth and route[at - 1 : at] != "\\":
            depth -= 1
            start = at + 1
    parts.append(route[start:] if depth == 0 else "")
    return re.sub(r"\\[AZ]|[\^$\\]", "", "".join(parts))


# ---- ASGI -------------------------------------------------------------------


def asgi_route(app: Any, scope: dict[str, Any]) -> str | None:
    if _is(app, "django.core.handlers.base", "BaseHandler"):
        path = scope["path"]
        root = scope.get("root_path", "")
        return _django_route(path.removeprefix(root) or "/")
    found = scope.get("app", app)  # Starlette stores the application there before its middleware runs
    routes = getattr(found, "routes", None)
    return plain(_starlette_route(routes, scope)) if isinstance(routes, list) else None


def _starlette_route(routes: list[Any], scope: dict[str, Any]) -> str:
    """Joins the paths of the mounts and of the route that match."""
    prefix = ""
    for _ in range(MOUNTS_MAX):
        route, child = _first_match(routes, scope)
        route = getattr(route, "starlette_route", None) or route
        path = getattr(route, "path", "")
        inner = getattr(route, "routes", None)
        if not isinstance(inner, list) or not inner:
            return prefix + path or "/"
        prefix += path
        routes, scope = inner, {**scope, **child}
    raise LookupError


def _first_match(routes: list[Any], scope: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Chooses as Starlette's router does: a route that matches except for the method counts if no other matches."""
    partial: tuple[Any, dict[str, Any]] | None = None
    for route in _candidates(routes):
        match, child = _included(route, scope) if hasattr(route, "original_route") else _match(route, scope)
        if match == "FULL":
            return route, child
        if match == "PARTIAL" and partial is None:
            partial = route, child
    if partial is None:
        raise LookupError
    return partial


def _candidates(routes: list[Any]) -> Iterator[Any]:
    """Yields the routes, including those of routers that FastAPI includes without copying their routes."""
    for route in routes:
        if hasattr(route, "effective_route_contexts"):
            yield from route.effective_route_contexts()
        else:
            yield route


def _match(route: Any, scope: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    match, child = route.matches(dict(scope))
    return match.name, child


def _included(context: Any, scope: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """For a route of a router that FastAPI includes: its context's path has the prefix, its own path has not."""
    if context.starlette_route is not None:
        return _match(context.starlette_route, scope)
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if scope["type"] != "http" or context.path_regex.match(path) is None:
        return "NONE", {}
    return ("FULL" if scope["method"] in context.methods else "PARTIAL"), {}


def _is(thing: object, module: str, name: str) -> bool:
    """Returns whether this is an instance of a class of a module, if the program has loaded the module."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(thing, kind)
