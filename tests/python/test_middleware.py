"""vestige.middleware with applications that need no framework: the records of a request, and that the application
behaves as before.
"""

import asyncio
import os
import stat

import pytest

from traces import totals
from vestige import Trace, profile
from vestige._core import View
from vestige.middleware import ASGIMiddleware, WSGIMiddleware
from vestige.middleware.requests import NAMES_MAX
from vestige.middleware.routes import _without_groups, plain
from web_clients import SECRET, asgi, requests, spans, wsgi

pytestmark = pytest.mark.any_python


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


async def hello_async(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"hello"})


def route(request):
    return "/orders/{id}"


def recorded(folder, work, **options):
    path = folder / "t.vst"
    with profile(output=path, overwrite=True, **options):
        work()
    return path


# ---- WSGI -------------------------------------------------------------------


def test_a_request_is_a_span_around_its_calls_with_route_path_and_status(tmp_path):
    app = WSGIMiddleware(hello, route=route)
    path = recorded(tmp_path, lambda: wsgi(app, "/orders/7"))
    [(name, args, phase, _, _)] = spans(path, tmp_path)
    assert (name, phase) == ("GET /orders/{id}", "X")
    assert args["status"] == 200 and args["args"] == "/orders/7"
    names = {name.rpartition(" ")[2]: callers for name, callers in callers_of(path).items()}
    assert names["hello"] == {"GET /orders/{id}"}


def test_the_viewer_shows_the_status_of_a_request_on_the_stack_and_beside_it(tmp_path):
    async def waits(scope, receive, send):
        await asyncio.sleep(0)
        await hello_async(scope, receive, send)

    def work():
        wsgi(WSGIMiddleware(hello))
        asyncio.run(asgi(ASGIMiddleware(waits)))

    path = recorded(tmp_path, work)
    view = View(str(path), keep=False)
    [get] = [number for number, known in enumerate(Trace(str(path)).definitions()) if known and known[1] == "GET"]
    at, told = view.info()["start_ns"], []
    while (found := view.next([get], None, at)) is not None:
        at = found["start_ns"]
        told.append(view.span_at(found["thread"], found["depth"], at)["args"])
    assert [phase for _, _, phase, *_ in spans(path, tmp_path)] == ["X", "b"]
    assert told == ['"args": "/", "status": 200'] * 2


def callers_of(path):
    """Returns, by name of a function, the names of its callers."""
    trace = Trace(str(path))
    definitions = trace.definitions()
    rows = trace.tables(["contexts"])["contexts"]
    found = {}
    for row in rows:
        above = definitions[rows[row.parent].func][1] if row.parent is not None else None
        found.setdefault(definitions[row.func][1], set()).add(above)
    return found


def test_a_request_without_a_known_route_is_named_by_its_method_and_never_by_its_path(tmp_path):
    app = WSGIMiddleware(hello)

    def work():
        wsgi(app, "/orders/7")
        wsgi(app, "/", "BREW")

    assert requests(recorded(tmp_path, work), tmp_path) == [("GET", 200), ("HTTP", 200)]


def test_a_route_function_that_fails_or_makes_up_names_costs_only_the_name(tmp_path):
    routes = iter([*map(str, range(NAMES_MAX + 5))])

    def odd(environ):
        return environ["route"]()

    def work():
        app = WSGIMiddleware(hello, route=odd)
        wsgi(app, route=lambda: 1 / 0)
        wsgi(app, route=lambda: 5)
        for _ in range(NAMES_MAX + 5):
            wsgi(app, route=lambda: next(routes))

    found = requests(recorded(tmp_path, work, with_stack=False), tmp_path)
    assert found[:3] == [("GET", 200), ("GET", 200), ("GET 0", 200)]
    assert len(found) == NAMES_MAX + 7
    assert len({name for name, _ in found}) <= NAMES_MAX + 1
    assert found[-1] == ("GET", 200)


class Odd(str):
    """A str subclass of the program that fails in every method that names need."""

    def __fail__(self, *args):
        raise RuntimeError

    __eq__ = __hash__ = __str__ = __format__ = __len__ = __fail__


class Disguised:
    @property
    def __class__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ["/a"], "GET"),
        (lambda: {"a": 1}, "GET"),
        (lambda: b"/a", "GET"),
        (Disguised, "GET"),
        (lambda: Odd("/odd"), "GET /odd"),
    ],
    ids=["list", "dict", "bytes", "disguised", "odd"],
)
def test_no_value_that_a_route_function_returns_reaches_the_application(tmp_path, make, name):
    def work():
        app = WSGIMiddleware(hello, route=lambda environ: make())
        assert [wsgi(app)["body"] for _ in range(2)] == [b"hello"] * 2
        asyncio.run(asgi(ASGIMiddleware(hello_async, route=lambda scope: make())))

    assert requests(recorded(tmp_path, work), tmp_path) == [(name, 200)] * 3


def test_a_body_that_is_made_later_belongs_to_the_request(tmp_path):
    def lines(environ, start_response):
        start_response("206 Partial Content", [])
        yield b"one"
        yield b"two"

    app = WSGIMiddleware(lines)
    answers = []
    path = recorded(tmp_path, lambda: answers.append(wsgi(app)["body"]))
    assert answers == [b"onetwo"]
    [(_, args, phase, _, _)] = spans(path, tmp_path)
    assert (args["status"], phase) == (206, "X")
    generators = [above for name, above in callers_of(path).items() if name.endswith("lines")]
    assert generators == [{"GET"}]


def test_the_server_gets_the_very_body_where_it_looks_at_its_length_or_type(tmp_path):
    class Wrapper:
        def __iter__(self):
            return iter([b"file"])

    bodies = [[b"a"], (b"a", b"b"), Wrapper()]
    for body in bodies:

        def app(environ, start_response, body=body):
            start_response("200 OK", [])
            return body

        with profile(output=tmp_path / "t.vst", overwrite=True):
            got = WSGIMiddleware(app)({"wsgi.file_wrapper": Wrapper}, lambda *args: None)
        assert got is body


def test_what_the_application_raises_reaches_the_server_and_is_noted(tmp_path):
    class Odd(BaseException):
        pass

    def at_once(environ, start_response):
        raise Odd

    def later(environ, start_response):
        start_response("200 OK", [])
        yield b"one"
        raise Odd

    def work():
        for app in (at_once, later):
            with pytest.raises(Odd):
                wsgi(WSGIMiddleware(app))

    found = spans(recorded(tmp_path, work), tmp_path)
    assert [(args.get("status"), args["error"]) for _, args, *_ in found] == [(None, "Odd"), (200, "Odd")]


def test_a_body_that_no_server_closes_ends_with_itself(tmp_path):
    def lines(environ, start_response):
        start_response("200 OK", [])
        yield b"one"

    def work():
        body = WSGIMiddleware(lines)({}, lambda *args: None)
        assert next(body) == b"one"

    [(_, args, *_)] = spans(recorded(tmp_path, work), tmp_path)
    assert args["status"] == 200 and "open at end" not in args


def test_responses_are_the_same_with_and_without(tmp_path):
    def lines(environ, start_response):
        start_response("200 OK", [("X", "1")])
        yield from (b"one", b"two")

    for app in (hello, lines):
        plainly = wsgi(app)
        assert wsgi(WSGIMiddleware(app)) == plainly
        assert wsgi(WSGIMiddleware(app, secret=SECRET, folder=tmp_path / "own"), query="vestige=1") == plainly
        with profile(output=tmp_path / "t.vst", overwrite=True):
            assert wsgi(WSGIMiddleware(app)) == plainly
    plainly = asyncio.run(asgi(hello_async))
    assert asyncio.run(asgi(ASGIMiddleware(hello_async))) == plainly
    with profile(output=tmp_path / "t.vst", overwrite=True):
        assert asyncio.run(asgi(ASGIMiddleware(hello_async))) == plainly


# ---- ASGI -------------------------------------------------------------------


def test_requests_that_take_turns_keep_their_own_times(tmp_path):
    """The first begins, the second begins and ends, the first ends."""
    second_done = asyncio.Event

    async def app(scope, receive, send):
        if scope["path"] == "/first":
            scope["begun"].set()
            await scope["done"].wait()
        await hello_async(scope, receive, send)

    async def both():
        begun, done = second_done(), second_done()
        watched = ASGIMiddleware(app, route=lambda scope: scope["path"])
        first = asyncio.ensure_future(asgi(watched, "/first", begun=begun, done=done))
        await begun.wait()
        await asgi(watched, "/second")
        done.set()
        await first

    first, second = spans(recorded(tmp_path, lambda: asyncio.run(both())), tmp_path)
    assert [first[0], second[0]] == ["GET /first", "GET /second"]
    assert first[1]["status"] == second[1]["status"] == 200
    assert first[3] < second[3] and second[4] < first[4]
    assert [first[2], second[2]] == ["b", "X"]  # the second never waited


def test_lifespans_pass_and_web_sockets_are_spans(tmp_path):
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    async def both():
        watched = ASGIMiddleware(app, route=route)
        await asgi(watched, kind="lifespan")
        await asgi(watched, kind="websocket")

    assert requests(recorded(tmp_path, lambda: asyncio.run(both())), tmp_path) == [("WEBSOCKET /orders/{id}", None)]
    assert seen == ["lifespan", "websocket"]


def test_a_cancelled_request_ends_and_stays_cancelled(tmp_path):
    async def app(scope, receive, send):
        await asyncio.Event().wait()

    async def go():
        task = asyncio.ensure_future(asgi(ASGIMiddleware(app)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    [(_, args, *_)] = spans(recorded(tmp_path, lambda: asyncio.run(go())), tmp_path)
    assert args["error"] == "CancelledError" and "open at end" not in args


# ---- a request's own trace --------------------------------------------------


def own(app, **environ):
    return wsgi(app, "/orders/7", query="a=2&vestige=1", **environ)


def told(response):
    return dict(response["headers"]).get("X-Vestige-Trace")


def test_a_request_with_the_secret_gets_a_trace_of_its_own(tmp_path):
    app = WSGIMiddleware(hello, route=route, secret=SECRET, folder=tmp_path / "own")
    name = told(own(app, HTTP_X_VESTIGE_SECRET=SECRET))
    assert name.endswith("GET-orders-id.vst")
    [path] = (tmp_path / "own").iterdir()
    assert path.name == name
    assert requests(path, tmp_path) == [("GET /orders/{id}", 200)]
    assert Trace(str(path)).info()["clean"]
    assert any(name.endswith("hello") for name, *_ in totals(Trace(str(path))))
    assert stat.S_IMODE(os.stat(tmp_path / "own").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_an_asgi_request_gets_one_too(tmp_path):
    app = ASGIMiddleware(hello_async, route=route, secret=SECRET, folder=tmp_path / "own")
    headers = [(b"x-vestige-secret", SECRET.encode())]
    start, _ = asyncio.run(asgi(app, query=b"vestige=1", headers=headers))
    [path] = (tmp_path / "own").iterdir()
    assert dict(start["headers"])[b"x-vestige-trace"].decode() == path.name
    assert requests(path, tmp_path) == [("GET /orders/{id}", 200)]


@pytest.mark.parametrize("secret", [None, "", "a wrong secret of the same", SECRET + "x", "ü" * 16])
def test_without_the_secret_nothing_is_recorded_and_nothing_told(tmp_path, secret):
    app = WSGIMiddleware(hello, secret=SECRET, folder=tmp_path / "own")
    given = {} if secret is None else {"HTTP_X_VESTIGE_SECRET": secret}
    assert own(app, **given) == wsgi(hello)
    assert list((tmp_path / "own").iterdir()) == []


def test_it_is_off_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told(own(WSGIMiddleware(hello), HTTP_X_VESTIGE_SECRET=SECRET)) is None
    assert list(tmp_path.iterdir()) == []


def test_other_queries_do_not_ask_for_it(tmp_path):
    app = WSGIMiddleware(hello, secret=SECRET, folder=tmp_path / "own")
    for query in ("", "vestige=0", "vestige=10", "xvestige=1", "vestige"):
        assert told(wsgi(app, query=query, HTTP_X_VESTIGE_SECRET=SECRET)) is None


def test_they_are_limited_in_rate_and_number(tmp_path):
    rare = WSGIMiddleware(hello, secret=SECRET, folder=tmp_path / "own", every="1h")
    assert told(own(rare, HTTP_X_VESTIGE_SECRET=SECRET)).endswith(".vst")
    assert told(own(rare, HTTP_X_VESTIGE_SECRET=SECRET)).startswith("none: wait ")
    few = WSGIMiddleware(hello, secret=SECRET, folder=tmp_path / "few", every="1ns", max_traces=2)
    said = [told(own(few, HTTP_X_VESTIGE_SECRET=SECRET)) for _ in range(3)]
    assert [text.endswith(".vst") for text in said] == [True, True, False]
    assert len(list((tmp_path / "few").iterdir())) == 2


def test_while_something_else_is_recorded_there_is_none(tmp_path):
    app = WSGIMiddleware(hello, route=route, secret=SECRET, folder=tmp_path / "own")
    with profile(output=tmp_path / "t.vst"):
        assert told(own(app, HTTP_X_VESTIGE_SECRET=SECRET)) == "none: something is recorded already"
    assert requests(tmp_path / "t.vst", tmp_path) == [("GET /orders/{id}", 200)]
    assert list((tmp_path / "own").iterdir()) == []


def test_a_trace_that_cannot_be_written_does_not_reach_the_application(tmp_path):
    app = WSGIMiddleware(hello, secret=SECRET, folder=tmp_path / "own")
    (tmp_path / "own").rmdir()
    response = own(app, HTTP_X_VESTIGE_SECRET=SECRET)
    assert response["body"] == b"hello" and told(response) == "none: the recording could not be started"


@pytest.mark.parametrize(
    "options, said",
    [
        ({"secret": "short"}, "at least 16 characters"),
        ({"secret": b"bytes of a secret"}, "secret must be a str"),
        ({"secret": SECRET, "every": "soon"}, "every"),
        ({"secret": SECRET, "max_traces": 0}, "max_traces"),
        ({"secret": SECRET, "max_size": "1"}, "max_size"),
        ({"route": "/orders"}, "route must be a function"),
    ],
)
def test_wrong_options_are_said_when_the_application_starts(tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError), match=said):
        WSGIMiddleware(hello, **options)


# ---- triggers ---------------------------------------------------------------


def test_a_trigger_with_a_star_takes_a_snapshot_of_slow_requests(tmp_path):
    app = WSGIMiddleware(hello, route=route)
    options = {"output": tmp_path / "t.vst", "triggers": ["POST *>1ns", "GET */{id}>1ns", "GET /other*>1ns"]}
    with profile(**options) as prof:
        wsgi(app, "/orders/7")
    assert [reason for _, reason, *_ in prof.snapshots] == ["GET */{id}>1ns"]


# ---- routes -----------------------------------------------------------------


@pytest.mark.parametrize(
    "route, shown",
    [
        ("/orders/<int:id>", "/orders/{id}"),
        ("/<lang>/<any(a, b):kind>/x", "/{lang}/{kind}/x"),
        ("/files/{path:path}", "/files/{path}"),
        (r"/n/{id:\d{1,3}}/x", "/n/{id}/x"),
        ("/orders/{id}", "/orders/{id}"),
        ("/", "/"),
    ],
)
def test_routes_of_all_frameworks_look_the_same(route, shown):
    assert plain(route) == shown


@pytest.mark.parametrize(
    "route, shown",
    [
        (r"^orders/(?P<id>[0-9]+)/$", "orders/{id}/"),
        (r"^a/(?P<x>(b|c)\))/(\d+)$", "a/{x}/{}"),
        (r"shop/^old/([^/]+)/\Z", "shop/old/{}/"),
        ("orders/<int:id>/", "orders/<int:id>/"),
    ],
)
def test_regular_expressions_of_django_become_routes(route, shown):
    assert _without_groups(route) == shown
