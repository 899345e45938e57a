"""Shared by tests of the viewer: a server in this process, and clients that behave well or badly."""

import contextlib
import http.client
import json
import socket
import struct
import threading
from collections import namedtuple

from vestige.reading.inputs import find_traces
from vestige.viewer import server as transport
from vestige.viewer.api import Api
from vestige.viewer.pages import read_pages
from vestige.viewer.traces import Traces

Got = namedtuple("Got", "status headers body")
Rect = namedtuple("Rect", "thread depth start end id flags busy count")


class Client:
    """Sends requests like the page, over one connection."""

    def __init__(self, server):
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

    def ask(self, path, method="GET", body=None, **headers):
        headers = {"X-Vestige-Token": self.server.token, **{name.replace("_", "-"): v for name, v in headers.items()}}
        body = json.dumps(body) if body is not None else None
        self.connection.request(
            method, path, body, {name: value for name, value in headers.items() if value is not None}
        )
        response = self.connection.getresponse()
        return Got(response.status, dict(response.getheaders()), response.read())

    def get(self, call, **fields):
        """Returns the JSON of an answer; the request must succeed."""
        got = self.ask(f"/api/{call}?" + "&".join(f"{name.strip('_')}={value}" for name, value in fields.items()))
        assert got.status == 200, got.body
        return json.loads(got.body)

    def post(self, call, **members):
        got = self.ask(f"/api/{call}", "POST", {name.strip("_"): value for name, value in members.items()})
        assert got.status == 200, got.body
        return json.loads(got.body)

    def window(self, start, end, pixels=1000, **fields):
        """Returns the rectangles, with times in nanoseconds."""
        more = "".join(f"&{name}={value}" for name, value in fields.items())
        got = self.ask(f"/api/window?from={start}&to={end}&pixels={pixels}{more}")
        assert got.status == 200, got.body
        return read_window(got.body)

    def curve(self, lane, **fields):
        """Returns the least, the greatest and the last value of each rectangle of a counter's lane."""
        asked = "&".join(f"{name.strip('_')}={value}" for name, value in fields.items())
        data = self.ask(f"/api/lanes/window?kind=counters&lanes={lane}&{asked}").body
        rows, rects = struct.unpack_from("<II", data, 4)
        assert rows == 1 and len(data) == 32 + 16 * rows + 40 * rects
        return list(struct.iter_unpack("<3d", data[-24 * rects :]))

    def error(self, path, method="GET", body=None, **headers):
        """Returns the status and the message of a refused request."""
        got = self.ask(path, method, body, **headers)
        return got.status, json.loads(got.body)["error"]


def name_alone(name):
    """Removes the part that distinguishes functions: `<lambda> app.py:12` becomes `<lambda>`."""
    alone = name.partition("> ")[0] + ">"
    return (
        alone
        if alone.endswith(("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"))
        else name
    )


def read_window(data):
    magic, rows, rects, _level, start, end = struct.unpack_from("<4sIIIqq", data)
    assert magic == b"VWIN" and len(data) == 32 + 16 * (rows + rects)
    unit = (end - start) / ((1 << 32) - 1)
    found = []
    for at in range(rows):
        thread, depth, first, count = struct.unpack_from("<IIII", data, 32 + 16 * at)
        for rect in range(first, first + count):
            begin, stop, word, busy, merged = struct.unpack_from("<IIIHH", data, 32 + 16 * (rows + rect))
            times = start + begin * unit, start + stop * unit
            found.append(Rect(thread, depth, *times, word & 0xFFFFFF, word >> 24, busy, merged))
    return found


@contextlib.contextmanager
def serving(*paths, build=True, keep=False, pages=None, follower=None):
    """Starts a server for traces (paths or Traces). With `build`, builds the indexes first."""
    traces = paths[0]
    if not isinstance(traces, Traces):
        traces = Traces(find_traces([str(path) for path in paths]).sources, keep=keep)
    if build and not traces.finished:
        traces.build()
    api = Api(traces, follower)
    server = transport.Server(api, pages if pages is not None else read_pages())
    api.base = server.base
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.end()
        traces.stop()
        thread.join()
    assert not server.faults


def raw(server, data, *, close=False):
    """Sends raw bytes, and returns everything that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(data)
            if close:
                connection.shutdown(socket.SHUT_WR)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(1 << 16):
                got += piece
        return got
