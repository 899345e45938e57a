"""vestige.middleware in real frameworks: each request is a span named by its route, with its status."""

import asyncio
import io
import sys
import threading
import time
from pathlib import Path
from urllib.request import Request, urlopen
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from traces import totals
from vestige import Trace, profile
from vestige.middleware import ASGIMiddleware, WSGIMiddleware, aiohttp_middleware
from web_clients import SECRET, asgi, requests, spans, wsgi


def recorded(folder, work):
    path = folder / "t.vst"
    with profile(output=path, overwrite=True):
        work()
    return requests(path, folder)


# ---- Flask ------------------------------------------------------------------


@pytest.fixture
def flask_app():
    flask = pytest.importorskip("flask")
    app = flask.Flask("shop")
    shop = flask.Blueprint("shop", "shop", url_prefix="/shop")

    @app.route("/orders/<int:id>", methods=["GET", "POST"])
    def order(id):
        return {"id": id}, 201 if flask.request.method == "POST" else 200

    @app.route("/broken")
    def broken():
        raise ValueError("a planted mistake")

    @app.route("/lines")
    def lines():
        return flask.Response((f"{n}\n" for n in range(3)), mimetype="text/plain")

    @shop.route("/<any(shoes, hats):kind>/<path:rest>")
    def wares(kind, rest):
        return kind + rest

    app.register_blueprint(shop)
    app.wsgi_app = WSGIMiddleware(app.wsgi_app, secret=SECRET, folder=app.instance_path + "-traces")
    return app


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_flask(flask_app, tmp_path):
    answers = []

    def work():
        for path, method in [
            ("/orders/7", "GET"),
            ("/orders/7", "POST"),
            ("/orders/7", "DELETE"),
            ("/orders/seven", "GET"),
            ("/broken", "GET"),
            ("/lines", "GET"),
            ("/shop/hats/a/b", "GET"),
        ]:
            answers.append(wsgi(flask_app, path, method, **{"wsgi.errors": sys.stderr})["body"])

    assert recorded(tmp_path, work) == [
        ("GET /orders/{id}", 200),
        ("POST /orders/{id}", 201),
        ("DELETE", 405),
        ("GET", 404),
        ("GET /broken", 500),
        ("GET /lines", 200),
        ("GET /shop/{kind}/{rest}", 200),
    ]
    assert answers[5:] == [b"0\n1\n2\n", b"hatsa/b"]
    # The request's span contains its calls.
    trace = Trace(str(tmp_path / "t.vst"))
    names, rows = trace.definitions(), trace.tables(("contexts",))["contexts"]
    [at] = [row.parent for row in rows if names[row.func].name.endswith("wares")]
    above = []
    while at is not None:
        above.append(names[rows[at].func].name)
        at = rows[at].parent
    assert "GET /shop/{kind}/{rest}" in above


# ---- Django -----------------------------------------------------------------


@pytest.fixture
def django_urls():
    django = pytest.importorskip("django")
    from django.conf import settings

    if not settings.configured:
        settings.configure(
            ROOT_URLCONF="django_urls", SECRET_KEY="of a test", ALLOWED_HOSTS=["*"], MIDDLEWARE=[], LOGGING_CONFIG=None
        )
        django.setup()
    from django.http import HttpResponse, StreamingHttpResponse
    from django.urls import include, path, re_path

    async def order_async(request, id):
        await asyncio.sleep(0)
        return HttpResponse(str(id))

    module = type(sys)("django_urls")
    module.urlpatterns = [
        path("orders/<int:id>/", lambda request, id: HttpResponse(str(id))),
        path("async/<int:id>/", order_async),
        re_path(r"^old/(?P<year>[0-9]{4})/$", lambda request, year: HttpResponse(year, status=410)),
        path("shop/", include([path("<slug:kind>", lambda request, kind: HttpResponse(kind))])),
        path("lines", lambda request: StreamingHttpResponse(iter([b"one", b"two"]))),
    ]
    sys.modules["django_urls"] = module


def test_django_by_wsgi(django_urls, tmp_path):
    from django.core.wsgi import get_wsgi_application

    app = WSGIMiddleware(get_wsgi_application())

    def work():
        for path in ("/orders/7/", "/old/1999/", "/shop/hats", "/lines", "/nowhere"):
            wsgi(app, path, **{"wsgi.input": io.BytesIO()})

    assert recorded(tmp_path, work) == [
        ("GET /orders/{id}/", 200),
        ("GET /old/{year}/", 410),
        ("GET /shop/{kind}", 200),
        ("GET /lines", 200),
        ("GET", 404),
    ]


def test_django_by_asgi(django_urls, tmp_path):
    from django.core.asgi import get_asgi_application

    app = ASGIMiddleware(get_asgi_application())

    async def all_paths():
        for path in ("/orders/7/", "/async/7/", "/nowhere"):
            await asgi(app, path)

    assert recorded(tmp_path, lambda: asyncio.run(all_paths())) == [
        ("GET /orders/{id}/", 200),
        ("GET /async/{id}/", 200),
        ("GET", 404),
    ]


# ---- Starlette and FastAPI --------------------------------------------------


def test_starlette(tmp_path):
    pytest.importorskip("starlette")
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, StreamingResponse
    from starlette.routing import Mount, Route, WebSocketRoute

    async def order(request):
        await asyncio.sleep(0)
        return PlainTextResponse(str(request.path_params["id"]))

    async def lines(request):
        async def parts():
            for part in ("one", "two"):
                await asyncio.sleep(0)
                yield part

        return StreamingResponse(parts())

    async def chat(socket):
        await socket.accept()
        await socket.close()

    app = Starlette(
        routes=[
            Route("/orders/{id:int}", order, methods=["GET"]),
            Mount("/shop", routes=[Mount("/{kind}", routes=[Route("/lines", lines)])]),
            WebSocketRoute("/chat/{room}", chat),
        ]
    )
    app.add_middleware(ASGIMiddleware)

    async def all_paths(app):
        await asgi(app, "/orders/7")
        await asgi(app, "/orders/7", "DELETE")
        await asgi(app, "/shop/hats/lines")
        await asgi(app, "/nowhere")
        await asgi(app, "/chat/9", kind="websocket")

    expected = [
        ("GET /orders/{id}", 200),
        ("DELETE /orders/{id}", 405),
        ("GET /shop/{kind}/lines", 200),
        ("GET", 404),
        ("WEBSOCKET /chat/{room}", None),
    ]
    assert recorded(tmp_path, lambda: asyncio.run(all_paths(app))) == expected
    app.user_middleware.clear()
    app.middleware_stack = None
    assert recorded(tmp_path, lambda: asyncio.run(all_paths(ASGIMiddleware(app)))) == expected


def test_fastapi(tmp_path):
    fastapi = pytest.importorskip("fastapi")
    app = fastapi.FastAPI()
    router = fastapi.APIRouter(prefix="/shop")

    @app.get("/orders/{id}")
    def order(id: int):  # runs in a thread of the pool
        return {"id": id}

    @router.get("/{kind}")
    async def wares(kind: str):
        raise fastapi.HTTPException(418)

    app.include_router(router)
    app.add_middleware(ASGIMiddleware, secret=SECRET, folder=tmp_path / "own")

    async def all_paths():
        await asgi(app, "/orders/7")
        await asgi(app, "/orders/seven")
        await asgi(app, "/shop/hats")

    assert recorded(tmp_path, lambda: asyncio.run(all_paths())) == [
        ("GET /orders/{id}", 200),
        ("GET /orders/{id}", 422),
        ("GET /shop/{kind}", 418),
    ]
    headers = [(b"x-vestige-secret", SECRET.encode())]
    start, *_ = asyncio.run(asgi(app, "/orders/7", query=b"vestige=1", headers=headers))
    [path] = (tmp_path / "own").iterdir()
    assert (b"x-vestige-trace", path.name.encode()) in start["headers"]
    assert requests(path, tmp_path) == [("GET /orders/{id}", 200)]
    # The pool's thread is part of the request, too.
    assert any(name.endswith("order") for name, *_ in totals(Trace(str(path))))


# ---- aiohttp ----------------------------------------------------------------


def test_aiohttp(tmp_path):
    pytest.importorskip("aiohttp")
    from aiohttp import web
    from aiohttp.test_utils import TestClient, TestServer

    async def order(request):
        await asyncio.sleep(0)
        return web.json_response({"id": request.match_info["id"]})

    async def gone(request):
        raise web.HTTPGone

    async def broken(request):
        raise ValueError("a planted mistake")

    app = web.Application(middlewares=[aiohttp_middleware(secret=SECRET, folder=tmp_path / "own")])
    app.router.add_get("/orders/{id:\\d+}", order)
    app.router.add_get("/gone", gone)
    app.router.add_get("/broken", broken)

    async def all_paths():
        async with TestClient(TestServer(app)) as client:
            with profile(output=tmp_path / "t.vst"):
                seen = [(await client.get(path)).status for path in ("/orders/7", "/gone", "/broken", "/nowhere")]
            answer = await client.get("/orders/7?vestige=1", headers={"X-Vestige-Secret": SECRET})
            refused = await client.get("/gone?vestige=1", headers={"X-Vestige-Secret": SECRET})
            return seen, answer.headers["X-Vestige-Trace"], refused.headers["X-Vestige-Trace"]

    seen, name, refused = asyncio.run(all_paths())
    assert seen == [200, 410, 500, 404]
    found = spans(tmp_path / "t.vst", tmp_path)
    assert [(name, args.get("status"), args.get("error")) for name, args, *_ in found] == [
        ("GET /orders/{id}", 200, None),
        ("GET /gone", 410, None),
        ("GET /broken", None, "ValueError"),
        ("GET", 404, None),
    ]
    assert refused.startswith("none: wait")
    assert requests(tmp_path / "own" / name, tmp_path) == [("GET /orders/{id}", 200)]


# ---- through real servers ----------------------------------------------------


def test_starlette_behind_uvicorn(tmp_path):
    uvicorn = pytest.importorskip("uvicorn")
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def order(request):
        await asyncio.sleep(0.001)
        return PlainTextResponse(str(request.path_params["id"]))

    app = ASGIMiddleware(Starlette(routes=[Route("/orders/{id:int}", order)]))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        with profile(output=tmp_path / "t.vst"):
            for number in range(3):
                with urlopen(f"http://localhost:{port}/orders/{number}") as response:
                    assert response.read().decode() == str(number)
    finally:
        server.should_exit = True
        thread.join()
    found = spans(tmp_path / "t.vst", tmp_path)
    assert [(name, args["args"], phase) for name, args, phase, *_ in found] == [
        ("GET /orders/{id}", f"/orders/{number}", "b") for number in range(3)
    ]
    assert all(end - start >= 900 for *_, start, end in found)  # us
    # A client gets its response before the application has finished the request.
    assert [args.get("status") for _, args, *_ in found[:2]] == [200, 200]


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def test_flask_behind_a_server_in_another_thread(flask_app, tmp_path):
    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    with make_server("localhost", 0, flask_app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://localhost:{server.server_port}/orders/7"
            with profile(output=tmp_path / "t.vst"):
                with urlopen(url) as response:
                    assert response.status == 200 and response.headers["X-Vestige-Trace"] is None
            with urlopen(Request(url + "?vestige=1", headers={"X-Vestige-Secret": SECRET})) as response:
                own = response.headers["X-Vestige-Trace"]
        finally:
            server.shutdown()
            thread.join()
    assert requests(tmp_path / "t.vst", tmp_path) == [("GET /orders/{id}", 200)]
    [folder] = tmp_path.glob("instance-traces")
    assert requests(folder / own, tmp_path) == [("GET /orders/{id}", 200)]
