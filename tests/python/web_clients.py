"""Small servers for tests of middleware: each passes one request to an application and returns the response."""

import asyncio
import json

from vestige import Trace

SECRET = "a secret of the tests"


def wsgi(app, path="/", method="GET", query="", **environ):
    """Like a WSGI server: returns status, headers and body together."""
    seen = {}

    def start_response(status, headers, exc_info=None):
        seen.update(status=status, headers=headers)
        return lambda data: None

    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": None,
        **environ,
    }
    body = app(environ, start_response)
    try:
        seen["body"] = b""
        for part in body:
            seen["body"] += part
    finally:
        if hasattr(body, "close"):
            body.close()
    return seen


async def asgi(app, path="/", method="GET", query=b"", headers=(), kind="http", **scope):
    """Returns the messages that the application sent."""
    sent = []
    waiting = [{"type": "http.request", "body": b"", "more_body": False}]
    if kind == "websocket":
        waiting = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}]

    async def receive():
        if not waiting:
            await asyncio.Event().wait()  # the client stays connected
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind,
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": list(headers),
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("localhost", 1),
        **scope,
    }
    if kind == "websocket":
        del scope["method"]
        scope["subprotocols"] = []
    await app(scope, receive, send)
    return sent


def spans(path, folder):
    """Returns the annotations of a trace in order: name, arguments, "X" (on the stack) or "b" (off the stack), start
    and end.
    """
    Trace(str(path)).export(str(folder / "spans.json"))
    events = json.loads((folder / "spans.json").read_text())["traceEvents"]
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    found = []
    for event in events:
        if event.get("cat") == "user_annotation" and event["ph"] in "Xb":
            end = event["ts"] + event["dur"] if event["ph"] == "X" else ends[event["id"]]
            found.append((event["ts"], event["name"], event["args"], event["ph"], end))
    return [(name, args, phase, start, end) for start, name, args, phase, end in sorted(found, key=lambda one: one[0])]


def requests(path, folder):
    """Returns name and status of each request."""
    return [(name, args.get("status")) for name, args, *_ in spans(path, folder)]
