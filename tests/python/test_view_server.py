"""`vestige view`: the server's answers, and who gets them."""

import contextlib
import errno
import json
import os
import random
import struct
import threading
import time
from collections import Counter, defaultdict

import pytest

import vestige
from traces import patch, record
from vestige import Trace, record_function
from vestige._core import TraceError
from vestige.viewer import server as transport
from vestige.viewer import traces as shown_traces
from vestige.viewer.answers import Answer
from viewing import Client, name_alone, raw, serving

pytestmark = pytest.mark.any_python

ORIGIN = "https://www.speedscope.app"


def leaf(n):
    return sum(range(n))


def branch(n):
    for _ in range(n):
        leaf(3)


def raising():
    raise ValueError


def work():
    branch(5)
    with record_function("load", "the first"):
        branch(2)
    for value in (1.0, 5.0, 3.0):
        vestige.counter("queue", value)
    thread = threading.Thread(target=branch, args=(4,), name="helper")
    thread.start()
    thread.join()
    try:
        raising()
    except ValueError:
        pass


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return record(tmp_path_factory.mktemp("view") / "t.vst", work)


@pytest.fixture(scope="module")
def events(path, tmp_path_factory):
    """Returns the spans of the exported file."""
    output = tmp_path_factory.mktemp("export") / "t.json"
    Trace(str(path)).export(str(output), all_windows=True)
    found = json.loads(output.read_text())["traceEvents"]
    return [event for event in found if event.get("ph") == "X" and event.get("cat") != "Trace"]


@pytest.fixture(scope="module")
def server(path):
    with serving(path) as server:
        yield server


@pytest.fixture
def client(server):
    client = Client(server)
    yield client
    client.connection.close()


@pytest.fixture
def ids(client):
    """Returns the name without its place."""
    names = client.get("names")["names"]
    return {entry[1]: number for number, entry in enumerate(names) if entry is not None}


@pytest.fixture
def whole(client):
    return {"from_": 0, "to": client.get("info")["duration_ns"] + 1}


# ---- what is answered


def test_info_tells_what_there_is_before_anything_is_drawn(client, path):
    info = client.get("info")
    facts = Trace(str(path)).info()
    assert info["version"] == vestige.__version__
    assert int(info["start_ns"]) == facts["start_ns"] and info["duration_ns"] == facts["end_ns"] - facts["start_ns"]
    (trace,) = info["traces"]
    assert trace["ready"] and trace["error"] is None and trace["ended"] == "clean"
    assert (trace["start_ns"], trace["records"], trace["pid"]) == (0, facts["records"], os.getpid())
    assert {thread["name"] for thread in trace["threads"]} == {"MainThread", "helper"}
    assert all(thread["depth"] > 0 and thread["spans"] > 0 for thread in trace["threads"])


def test_names_are_those_of_the_trace(client, path):
    table = client.get("names", trace=0)
    definitions = Trace(str(path)).definitions()
    assert len(table["names"]) == len(definitions)
    for entry, definition in zip(table["names"], definitions):
        assert (entry is None) == (definition is None)
        if entry is not None:
            kind, name, file, line = entry
            plain = name_alone(name)
            assert kind == definition[0] and definition[1].endswith(plain)
            assert definition[1].endswith(f"({line}): {plain}") == (file is not None)


def test_a_window_has_a_rectangle_for_each_span_that_is_wide_enough(client, events, whole, ids):
    rects = client.window(*whole.values(), pixels=4000)
    names = {number: name for name, number in ids.items()}
    assert sum(rect.count for rect in rects) == len(events) == client.get("info")["traces"][0]["spans"]
    longest = max(events, key=lambda event: event["dur"])
    rect = max(rects, key=lambda rect: rect.end - rect.start)
    assert longest["name"].endswith(name_alone(names[rect.id]))
    assert rect.end - rect.start == pytest.approx(longest["dur"] * 1000, abs=2)


def test_a_window_shows_the_threads_and_depths_that_are_asked_for(client, whole):
    numbers = {thread["name"]: thread["number"] for thread in client.get("info")["traces"][0]["threads"]}
    rects = client.window(*whole.values(), threads=numbers["helper"])
    assert {rect.thread for rect in rects} == {numbers["helper"]}
    assert {rect.depth for rect in client.window(*whole.values(), depth=2)} == {0, 1}


def test_windows_may_reach_past_both_ends(client, whole, events):
    rects = client.window(-(10**9), 10**9, pixels=16384)
    assert sum(rect.count for rect in rects) == len(events)
    assert client.window(10**12, 10**12 + 5) == []


def test_a_span_is_told_with_its_parents_source_and_arguments(client, whole, ids):
    found = client.post("next", ids=[ids["leaf"]], after=0)
    span = client.get("span", thread=found["thread"], depth=found["depth"], time=found["start_ns"])
    assert (span["name"], span["kind"], span["start_ns"]) == ("leaf", "python", found["start_ns"])
    assert [parent["name"] for parent in span["parents"]][-2:] == ["work", "branch"]
    assert all(one["start_ns"] <= span["start_ns"] and span["end_ns"] <= one["end_ns"] for one in span["parents"])
    assert span["source"]["lines"] == ["def leaf(n):", "    return sum(range(n))"]
    assert span["source"]["file"] == __file__ and span["source"]["first"] == leaf.__code__.co_firstlineno
    inside = client.post("next", ids=[ids["<built-in function sum>"]], after=span["start_ns"])
    assert span["self_ns"] == span["end_ns"] - span["start_ns"] - (inside["end_ns"] - inside["start_ns"])
    found = client.post("next", ids=[ids["load"]], after=0)
    span = client.get("span", thread=found["thread"], depth=found["depth"], time=found["start_ns"])
    assert (span["kind"], span["source"]) == ("annotation", None)
    assert "the first" in json.dumps(span["args"])
    found = client.post("next", ids=[ids["raising"]], after=0)
    span = client.get("span", thread=found["thread"], depth=found["depth"], time=found["start_ns"])
    assert span["flags"] == ["raised"]
    assert client.get("span", thread=1, depth=999, time=0) is None
    assert client.get("source", id=ids["leaf"])["lines"] == ["def leaf(n):", "    return sum(range(n))"]
    assert client.get("source", id=ids["load"]) is None


def rows_of(flame):
    return [dict(zip(flame["rows"], row)) for row in zip(*flame["rows"].values())]


def test_a_flame_graph_adds_up_to_what_was_exported(client, events, whole):
    names = client.get("names")["names"]
    flame = client.get("flame", **whole)
    assert flame["left_out"] == 0
    calls, times = Counter(), Counter()
    for at, row in enumerate(rows_of(flame)):
        calls[name_alone(names[row["id"]][1])] += row["calls"]
        times[name_alone(names[row["id"]][1])] += row["total_ns"]
        assert 0 <= row["self_ns"] <= row["total_ns"] and row["parent"] < at
    exported, durations = Counter(), Counter()
    for event in events:
        name = event["name"].rpartition("): ")[2]
        exported[name] += 1
        durations[name] += round(event["dur"] * 1000)
    assert calls == exported
    assert times == durations


def test_a_flame_graph_that_is_too_large_keeps_its_largest_parts(client, whole):
    totals = client.get("flame", **whole)["rows"]["total_ns"]
    flame = client.get("flame", **whole, limit=3)
    assert len(flame["rows"]["id"]) == 3 and flame["left_out"] == len(totals) - 3
    assert sorted(flame["rows"]["total_ns"]) == sorted(totals)[-3:]
    assert all(parent < at for at, parent in enumerate(flame["rows"]["parent"]))


def test_a_flame_graph_of_a_range_has_what_ran_then(client, ids):
    found = client.post("next", ids=[ids["load"]], after=0)
    flame = client.get("flame", from_=found["start_ns"], to=found["end_ns"])
    names = client.get("names")["names"]
    by_name = {names[row["id"]][1]: row for row in rows_of(flame)}
    assert by_name["leaf"]["calls"] == 2
    assert by_name["work"]["total_ns"] == found["end_ns"] - found["start_ns"]


def test_search_finds_every_span_of_a_name_in_order(client, events, whole, ids):
    there = [event for event in events if event["name"].endswith(": leaf")]
    found = client.post("find", ids=[ids["leaf"]], pixels=50, **whole)
    assert found["total"] == sum(found["counts"]) == len(there) == 11 and len(found["counts"]) == 50
    assert client.post("find", ids=[], pixels=50, **whole)["total"] == 0
    forth, back, at = [], [], -1
    while (one := client.post("next", ids=[ids["leaf"]], after=at)) is not None:
        forth.append(one)
        at = one["start_ns"]
    at = whole["to"]
    while (one := client.post("next", ids=[ids["leaf"]], after=at, back=True)) is not None:
        back.append(one)
        at = one["start_ns"]
    assert forth == back[::-1] and len(forth) == len(there)
    base = min(event["ts"] for event in there) * 1000 - forth[0]["start_ns"]
    assert [one["start_ns"] for one in forth] == sorted(round(event["ts"] * 1000 - base) for event in there)
    helper = {one["thread"] for one in forth} - {1}
    in_helper = client.post("next", ids=[ids["leaf"]], after=-1, thread=helper.pop())
    assert in_helper in forth


def test_counters_are_curves_over_the_pixels(client, whole):
    names = client.get("names")["names"]
    (curve,) = [lane for lane in client.get("lanes", kind="counters")["lanes"] if names[lane["id"]][1] == "queue"]
    assert (curve["what"], curve["least"], curve["most"]) == ("counter", 1.0, 5.0)
    values = client.curve(curve["lane"], pixels=100, **whole)
    assert min(least for least, _, _ in values) == 1.0
    assert max(most for _, most, _ in values) == 5.0
    assert values[-1][2] == 3.0


def test_an_undamaged_trace_has_no_losses(client, whole):
    assert client.get("lanes", kind="losses")["lanes"] == []


@pytest.mark.parametrize("format, suffix", [("perfetto", ".pftrace"), ("speedscope", ".speedscope.json")])
def test_an_export_is_the_file_that_vestige_export_writes(client, path, tmp_path, format, suffix):
    got = client.ask(f"/api/export?to={format}")
    assert got.status == 200, got.body
    assert got.headers["Content-Disposition"] == f'attachment; filename="t{suffix}"'
    expected = tmp_path / f"t{suffix}"
    Trace(str(path)).export(str(expected), all_windows=True, format=format)
    assert strip_name(got.body) == strip_name(expected.read_bytes())


def test_files_of_exports_go_away_however_it_went(path, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with serving(path) as server:
        client = Client(server)
        assert client.ask("/api/export?to=perfetto").status == 200
        monkeypatch.setattr("vestige.viewer.exports.export_traces", no_room)
        status, line = client.error("/api/export?to=perfetto")
        assert (status, line) == (500, "t.pftrace cannot be written: [Errno 28] No space left on device")
    assert os.listdir(tmp_path) == []


def no_room(traces, output, **options):
    with open(output, "w") as file:
        file.write("a part")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def strip_name(data):
    """Removes the name, because a speedscope file contains its own path."""
    return b"\n".join(line for line in data.split(b"\n") if not line.startswith(b'"name"'))


def test_the_export_of_a_range_has_what_ran_then(client, ids):
    found = client.post("next", ids=[ids["load"]], after=0)
    got = client.ask(f"/api/export?to=speedscope&from={found['start_ns']}&to_ns={found['end_ns']}")
    document = json.loads(got.body)
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    opened = Counter(
        frames[event["frame"]]
        for profile in document["profiles"]
        for event in profile["events"]
        if event["type"] == "O"
    )
    assert sum(count for name, count in opened.items() if name.endswith("leaf")) == 2
    assert "t-range.speedscope.json" in got.headers["Content-Disposition"]


# ---- who may ask


@pytest.mark.parametrize("token", [None, "", "wrong", "é" * 20])
@pytest.mark.parametrize("call", ["info", "names", "window?from=0&to=1&pixels=1", "export?to=perfetto", "nothing"])
def test_without_the_token_there_is_no_data(client, call, token):
    status, line = client.error(f"/api/{call}", X_Vestige_Token=token and token.encode("utf-8"))
    assert status == 403 and "token" in line


def test_the_token_may_stand_in_the_address(client, server):
    assert client.ask(f"/api/info?token={server.token}", X_Vestige_Token=None).status == 200
    assert client.error("/api/info?token=wrong", X_Vestige_Token=None)[0] == 403


def test_every_server_has_a_token_of_its_own(path, server):
    with serving(path) as other:
        assert other.token != server.token and len(other.token) >= 32
        assert Client(other).error("/api/info", X_Vestige_Token=server.token)[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}"]
)
def test_by_a_foreign_name_there_is_nothing(client, server, host):
    for path in ("/", "/api/info"):
        status, line = client.error(path, Host=host.format(port=server.port))
        assert status == 403 and "ssh -L" in line


def test_by_its_own_names_there_is(client, server):
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", f"LOCALHOST:{server.port}"):
        assert client.ask("/api/info", Host=host).status == 200


def test_a_request_has_one_host(server):
    token = f"X-Vestige-Token: {server.token}\r\n"
    host = f"Host: 127.0.0.1:{server.port}\r\n"
    assert b" 403 " in raw(server, f"GET /api/info HTTP/1.1\r\n{token}\r\n".encode(), close=True)
    assert b" 403 " in raw(server, f"GET /api/info HTTP/1.1\r\n{host}{host}{token}\r\n".encode(), close=True)
    assert b" 200 " in raw(server, f"GET /api/info HTTP/1.1\r\n{host}{token}\r\n".encode(), close=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://ui.perfetto.dev"},
        {"Origin": ORIGIN},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"},
    ],
)
def test_a_foreign_page_cannot_read_a_trace(client, headers):
    got = client.ask("/api/info", **headers)
    assert got.status == 403 and b"other sites" in got.body
    assert not any(name.lower().startswith("access-control") for name in got.headers)


def test_the_own_page_can(client, server):
    for origin in server.origins:
        assert client.ask("/api/info", Origin=origin, Sec_Fetch_Site="same-origin").status == 200


def test_a_link_on_a_foreign_page_may_open_ours_but_a_frame_or_script_may_not(client):
    assert client.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200
    assert client.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
    assert client.ask("/", Origin="https://evil.example").status == 403


def test_answers_say_what_browsers_may_do_with_them(client):
    for path in ("/", "/api/info", "/nothing", "/api/window"):
        headers = client.ask(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
        assert headers["X-Frame-Options"] == "DENY" and headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert not any(name.lower().startswith("access-control") for name in headers)
    assert "script-src 'self';" in client.ask("/").headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "target",
    [
        "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2fapi.py",
        "/page/index.html",
        "//etc/passwd",
        "/etc/passwd",
        "/api/../api/info",
        "/api/source/etc/passwd",
        "/api/",
        "/app.js%00.html",
        "/handover/x/etc/passwd",
        "/handover/../api/info",
    ],
)
def test_no_path_leads_out(client, target):
    assert client.error(target)[0] == 404


def test_an_address_of_another_server_is_not_ours(server):
    head = f"Host: 127.0.0.1:{server.port}\r\nX-Vestige-Token: {server.token}\r\n\r\n"
    for target in ("http://evil.example/api/info", "*", "evil.example:80"):
        assert b" 404 " in raw(server, f"GET {target} HTTP/1.1\r\n{head}".encode(), close=True)


def test_source_is_named_by_definitions_alone(client, ids):
    assert client.get("source", id=ids["leaf"], path="/etc/passwd", file="/etc/passwd")["file"] == __file__
    assert client.get("source", id=10**6) is None


def test_only_python_source_is_read_and_changes_are_noted(tmp_path):
    (tmp_path / "secret.txt").write_text("def secret():\n    pass\n")
    (tmp_path / "script").write_text("#!/usr/bin/env python\ndef script():\n    pass\n")
    (tmp_path / "broken.py").write_text("def broken(\n\n")
    (tmp_path / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\ndef latin():\n    return '\xe9'\n")
    os.mkfifo(tmp_path / "pipe.py")

    def make(name, first):
        path = str(tmp_path / name)
        exec(compile("\n" * (first - 1) + "def f(): pass\nf()", path, "exec"), {})

    def work():
        for name, first in [("secret.txt", 1), ("script", 2), ("broken.py", 1), ("latin.py", 2), ("pipe.py", 1)]:
            make(name, first)
        make("missing.py", 1)
        make("latin.py", 900)

    path = record(tmp_path / "t.vst", work)
    later = time.time() + 100
    os.utime(tmp_path / "latin.py", (later, later))
    with serving(path) as server:
        client = Client(server)
        found = defaultdict(list)
        for number, entry in enumerate(client.get("names")["names"]):
            if entry is not None and entry[2] is not None and entry[1] == "f":
                found[os.path.basename(entry[2])].append(client.get("source", id=number))
    assert found["secret.txt"] == found["pipe.py"] == found["missing.py"] == [None]
    assert found["script"][0]["lines"] == ["def script():", "    pass"] and found["script"][0]["note"] is None
    assert found["broken.py"][0]["lines"] == ["def broken("]
    latin = [lines for lines in found["latin.py"] if lines is not None]
    assert len(latin) == 1 and latin[0]["lines"][1] == "    return 'é'" and "changed" in latin[0]["note"]


# ---- hand-over


def test_speedscope_may_fetch_the_file_of_a_ticket_and_nothing_else(client, server, path):
    ticket = client.get("handover", to="speedscope")
    assert ticket["url"].startswith(f"{server.base}/handover/") and ticket["url"].endswith("/t.speedscope.json")
    assert server.token not in ticket["open"]
    assert ticket["open"].startswith(f"{ORIGIN}/#profileURL=http%3A%2F%2F127.0.0.1%3A{server.port}%2Fhandover%2F")
    target = ticket["url"].removeprefix(server.base)
    foreign = {"X_Vestige_Token": None, "Origin": ORIGIN, "Sec_Fetch_Site": "cross-site"}
    asked = client.ask(target, "OPTIONS", **foreign, Access_Control_Request_Private_Network="true")
    assert asked.status == 204 and asked.headers["Access-Control-Allow-Private-Network"] == "true"
    got = client.ask(target, **foreign)
    assert got.status == 200 and got.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert json.loads(got.body)["exporter"] == "vestige"
    assert client.error("/api/info", **foreign)[0] == 403
    assert client.error(target, **{**foreign, "Origin": "https://evil.example"})[0] == 403
    assert client.error(target, **foreign, Host="evil.example")[0] == 403
    assert client.error(target.replace("t.speedscope", "x"), **foreign)[0] == 404
    assert client.error(target, "POST", {}, **foreign)[0] == 405


def test_a_ticket_ends(client, monkeypatch):
    monkeypatch.setattr("vestige.viewer.exports.TICKET_SECONDS", -1)
    ticket = client.get("handover", to="speedscope")
    assert client.error("/handover" + ticket["url"].partition("/handover")[2])[0] == 404


# ---- requests that are wrong


@pytest.mark.parametrize(
    "query",
    [
        "window",
        "window?from=0&to=10",
        "window?from=0&to=10&pixels=0",
        "window?from=0&to=10&pixels=99999999",
        "window?from=10&to=10&pixels=5",
        "window?from=10&to=0&pixels=5",
        "window?from=0.5&to=10&pixels=5",
        "window?from=nan&to=10&pixels=5",
        "window?from=0&to=99999999999999999999&pixels=5",
        "window?from=0&to=9007199254740993&pixels=5",
        "window?from=0&to=1%D9%A3&pixels=5",
        "window?from=0&to=10&pixels=5&threads=1,,2",
        "window?from=0&to=10&pixels=5&threads=-1",
        "window?from=0&to=10&pixels=5&depth=-1",
        "window?from=0&from=1&to=10&pixels=5",
        "window?trace=x&from=0&to=10&pixels=5",
        "span?thread=1&depth=0",
        "span?thread=1&depth=0&time=1e9",
        "flame?from=0&to=10&limit=0",
        "flame?" + "&".join(f"a{n}=1" for n in range(100)),
        "export",
        "export?to=exe",
        "export?to=perfetto&from=5&to_ns=5",
        "source",
    ],
)
def test_wrong_numbers_get_one_clear_line(client, query):
    status, line = client.error(f"/api/{query}")
    assert status == 400 and line and "\n" not in line


@pytest.mark.parametrize(
    "call", ["window?trace=7&from=0&to=1&pixels=1", "names?trace=7", "export?to=perfetto&traces=9"]
)
def test_a_trace_that_is_not_there_is_not_found(client, call):
    assert client.error(f"/api/{call}")[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        None,
        "text",
        [],
        {},
        {"ids": "x", "from": 0, "to": 1, "pixels": 1},
        {"ids": [1.5], "from": 0, "to": 1, "pixels": 1},
        {"ids": [True], "from": 0, "to": 1, "pixels": 1},
        {"ids": [-1], "from": 0, "to": 1, "pixels": 1},
        {"ids": [1 << 32], "from": 0, "to": 1, "pixels": 1},
        {"ids": {"1": 2}, "from": 0, "to": 1, "pixels": 1},
        {"ids": [1], "from": "0", "to": None, "pixels": 1},
        {"ids": [1], "from": 0, "to": 1, "pixels": 1, "threads": [[]]},
    ],
)
def test_wrong_bodies_get_one_clear_line(client, body):
    status, line = client.error("/api/find", "POST", body)
    assert status == 400 and line


def test_a_call_is_asked_by_its_own_method(client):
    assert client.error("/api/find")[0] == 405
    assert client.error("/api/info", "POST", {})[0] == 405
    assert client.error("/", "POST", {})[0] == 405
    for method in ("PUT", "DELETE", "TRACE", "CONNECT", "BREW"):
        assert client.ask("/api/info", method).status == 501
    assert client.ask("/", "HEAD").body == b""
    assert client.ask("/api/info", "OPTIONS", Origin="https://evil.example").status == 403


POST = b"POST /api/find HTTP/1.1\r\n<own>"
MALFORMED = {
    "garbage": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n\r\n"),
    "one word": (400, b"GET\r\n\r\n"),
    "version": (505, b"GET / HTTP/9.9\r\n\r\n"),
    "version of letters": (400, b"GET / HTTP/x\r\n\r\n"),
    "long address": (431, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n"),
    "long header": (431, b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n"),
    "many headers": (431, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n"),
    "large head": (431, b"GET / HTTP/1.1\r\n" + (b"X: " + b"y" * 900 + b"\r\n") * 90 + b"\r\n"),
    "no colon": (403, b"GET / HTTP/1.1\r\nno colon at all\r\n\r\n"),
    "two lengths": (400, POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nabc"),
    "negative length": (400, POST + b"Content-Length: -1\r\n\r\n"),
    "length of letters": (400, POST + b"Content-Length: 0x10\r\n\r\n"),
    "vast length": (413, POST + b"Content-Length: 99999999999\r\n\r\n"),
    "endless length": (400, POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    "chunked": (400, POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "no length": (400, POST + b"\r\n"),
    "deep JSON": (400, POST + b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000),
    "no text": (400, POST + b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc"),
}


def own(server):
    """Returns the headers of an authorised request."""
    return f"Host: 127.0.0.1:{server.port}\r\nX-Vestige-Token: {server.token}\r\n".encode()


@pytest.mark.parametrize("which", MALFORMED)
def test_a_malformed_request_is_refused_and_the_server_lives_on(server, client, which):
    status, request = MALFORMED[which]
    got = raw(server, request.replace(b"<own>", own(server)), close=True)
    head, _, body = got.rpartition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert list(json.loads(body)) == ["error"]
    assert client.get("info")["ready"]


def test_requests_that_are_a_little_wrong_all_get_an_answer(server, client):
    whole = POST.replace(b"<own>", own(server)) + b"Content-Length: 47\r\n\r\n"
    whole += json.dumps({"ids": [1, 2], "from": 0, "to": 10, "pixels": 4}).encode()
    chance = random.Random(7)
    for _ in range(100):
        request = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(request))
            request[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
        got = raw(server, bytes(request), close=True)
        # nothing: the request announced more bytes than came
        assert got == b"" or b'"error":' in got or b'"total":' in got
    assert client.get("info")["ready"]


def test_what_follows_an_unread_body_is_not_taken_for_a_request(server):
    second = f"GET /api/info HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX-Vestige-Token: {server.token}\r\n\r\n"
    for target in ("/", "/nothing", "/api/nothing", "/api/info"):
        head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {len(second)}\r\n\r\n"
        assert raw(server, (head + second).encode(), close=True).count(b"HTTP/1.1") == 1


def test_many_requests_go_through_one_connection(server, path):
    client = Client(server)
    client.get("info")
    connection = client.connection.sock
    for _ in range(20):
        client.get("info")
    assert client.error("/api/nothing")[0] == 404
    assert client.connection.sock is connection
    head = f"GET /api/info HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX-Vestige-Token: {server.token}\r\n\r\n"
    assert raw(server, head.encode() * 5, close=True).count(b"HTTP/1.1 200 OK") == 5  # sent without waiting for answers


# ---- clients that misbehave


def wait_until(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.005)


@pytest.fixture
def own_server(path, monkeypatch):
    """A server for one test, with short timeouts."""
    monkeypatch.setattr(transport, "RECEIVE", 0.2)
    monkeypatch.setattr(transport, "SEND", 0.2)
    with serving(path) as server:
        yield server
        client = Client(server)
        assert client.get("info")["ready"]  # after any damaged request, the server still works
        client.connection.close()
        wait_until(lambda: not server._handlers)


@pytest.mark.parametrize("sent", [b"G", b"GET / HTTP/1.1\r\n<own>", POST + b"Content-Length: 9\r\n\r\n{"])
def test_a_request_that_does_not_arrive_is_given_up(own_server, sent):
    assert raw(own_server, sent.replace(b"<own>", own(own_server))).startswith(b"HTTP/1.1 408 ")


def test_a_connection_without_requests_is_closed_after_a_while(own_server, monkeypatch):
    monkeypatch.setattr(transport, "IDLE", 0.1)
    assert raw(own_server, b"") == b""


def test_a_client_that_stops_reading_is_cut_off(own_server):
    import socket

    own_server.pages["/large"] = Answer(bytes(64 << 20), is_page=True)
    with socket.create_connection(("127.0.0.1", own_server.port), timeout=20) as connection:
        connection.sendall(f"GET /large HTTP/1.1\r\nHost: 127.0.0.1:{own_server.port}\r\n\r\n".encode())
        wait_until(lambda: own_server._handlers)
        wait_until(lambda: not own_server._handlers)


def test_a_client_that_goes_away_ends_what_is_computed_for_it(own_server):
    import socket

    begun, ended = threading.Event(), threading.Event()

    def slow(request, fields):
        begun.set()
        try:
            while True:
                request.check(0.5)
                time.sleep(0.005)
        finally:
            ended.set()

    own_server.api._calls["GET", "flame"] = slow
    head = f"Host: 127.0.0.1:{own_server.port}\r\nX-Vestige-Token: {own_server.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", own_server.port)) as connection:
        connection.sendall(f"GET /api/flame HTTP/1.1\r\n{head}".encode())
        assert begun.wait(20) and not ended.wait(0.3)  # longer than a request or an answer may take
    assert ended.wait(20)


def test_an_error_of_ours_is_an_answer_too(own_server):
    own_server.api._calls["GET", "flame"] = lambda request, fields: 1 / 0
    assert Client(own_server).error("/api/flame") == (500, "ZeroDivisionError: division by zero")


def test_idle_connections_make_room_and_busy_ones_do_not(own_server, monkeypatch):
    monkeypatch.setattr(transport, "CONNECTIONS", 4)
    clients = [Client(own_server) for _ in range(12)]
    for client in clients:
        assert client.get("info")["ready"]
    wait_until(lambda: len(own_server._handlers) <= 4)
    release = threading.Event()

    def slow(request, fields):
        release.wait(20)
        return Answer(b"done")

    own_server.api._calls["GET", "flame"] = slow
    busy = [Client(own_server) for _ in range(4)]
    answers = []
    threads = [threading.Thread(target=lambda c=c: answers.append(c.ask("/api/flame"))) for c in busy]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(not handler.idle for handler in own_server._handlers) == 4)
    assert b" 503 " in raw(own_server, b"GET / HTTP/1.1\r\n\r\n")
    release.set()
    for thread in threads:
        thread.join()
    assert [answer.body for answer in answers] == [b"done"] * 4
    for client in clients + busy:
        client.connection.close()


HALVES = {  # incomplete requests without the token
    "nothing": b"",
    "a line": b"GET /api/info HT",
    "a head": b"GET /api/info HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept",
    "a page that is not read": b"GET /large HTTP/1.1\r\nHost: <host>\r\n\r\n",
}


@pytest.mark.parametrize("half", HALVES)
def test_the_owner_is_answered_whatever_strangers_begin(path, half):
    """With the real limits: strangers come before the owner and between the owner's requests, and stay connected."""
    import socket

    def strangers(count):
        begun = []
        for _ in range(count):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(HALVES[half].replace(b"<host>", f"127.0.0.1:{server.port}".encode()))
            begun.append(connection)
        return begun

    with serving(path) as server:
        server.pages["/large"] = Answer(bytes(64 << 20), is_page=True)
        crowd = strangers(200)
        clients = [Client(server) for _ in range(6)]  # as many as a browser opens
        assert all(client.get("info")["ready"] for client in clients)
        kept = [client.connection.sock for client in clients]
        crowd += strangers(200)
        assert all(client.get("info")["ready"] for client in clients)
        assert [client.connection.sock for client in clients] == kept  # strangers ended each other's connections
        for connection in (*crowd, *kept):
            connection.close()
        wait_until(lambda: not server._handlers)


BODY = b"Content-Length: 8000000\r\n\r\n"
# Requests whose body the server does not read: no ticket, a foreign origin, no token, a body where none is allowed.
REFUSED = {
    "no ticket": (404, b"POST /handover/x/t.json HTTP/1.1\r\n<host>" + BODY),
    "foreign ticket": (403, b"POST /handover/x/t.json HTTP/1.1\r\n<host>Origin: https://evil.example\r\n" + BODY),
    "foreign": (403, b"POST /api/find HTTP/1.1\r\n<own>Origin: https://evil.example\r\n" + BODY),
    "no token": (403, b"POST /api/find HTTP/1.1\r\n<host>" + BODY),
    "a GET": (413, b"GET /api/info HTTP/1.1\r\n<own>" + BODY),
    "a ticket": (413, b"GET <ticket> HTTP/1.1\r\n<host>" + BODY),
}


@pytest.mark.parametrize("which", REFUSED)
def test_a_body_is_not_read_before_its_sender_may_ask(server, client, which):
    status, request = REFUSED[which]
    ticket = client.get("handover", to="speedscope")["url"].removeprefix(server.base)
    request = request.replace(b"<own>", own(server)).replace(b"<ticket>", ticket.encode())
    request = request.replace(b"<host>", f"Host: 127.0.0.1:{server.port}\r\n".encode())
    got = raw(server, request)  # the body never comes: a server that waited for it would answer 408
    assert got.startswith(f"HTTP/1.1 {status} ".encode()), got


def test_the_bodies_of_all_connections_together_are_bounded(own_server, monkeypatch):
    monkeypatch.setattr(transport, "RECEIVE", 20)
    import socket

    half = POST.replace(b"<own>", own(own_server)) + f"Content-Length: {transport.BODIES_MAX - 50}\r\n\r\n".encode()
    small = {"ids": list(range(40)), "from": 0, "to": 10, "pixels": 4}
    client = Client(own_server)
    with socket.create_connection(("127.0.0.1", own_server.port)) as connection:
        connection.sendall(half)  # and no body, for now
        wait_until(lambda: own_server._bodies)
        assert client.error("/api/find", "POST", small) == (503, "too many bytes of requests at the moment: try again")
        assert client.get("info")["ready"]
    wait_until(lambda: not own_server._bodies)
    assert client.post("find", **{f"{name}_": value for name, value in small.items()})["total"] >= 0


# ---- indexes


def test_the_page_opens_while_the_index_is_built(path, monkeypatch):
    go_on, begun = threading.Event(), threading.Event()
    real = shown_traces.View

    def slow(*args, progress, **options):
        progress(0.25)
        begun.set()
        assert go_on.wait(20)
        return real(*args, progress=progress, **options)

    monkeypatch.setattr(shown_traces, "View", slow)
    with serving(path, build=False) as server:
        client = Client(server)
        server.api.traces.build_in_background()
        assert begun.wait(20)
        assert client.ask("/").status == 200
        info = client.get("info")
        assert not info["ready"] and info["traces"][0]["threads"][0]["depth"] == 0 and info["duration_ns"] > 0
        progress = client.get("progress")
        assert (progress["share"], progress["ready"], progress["what"]) == (0.25, False, "indexing t.vst")
        got = client.ask("/api/window?from=0&to=10&pixels=5")
        assert got.status == 503 and got.headers["Retry-After"] == "1"
        go_on.set()
        while not (progress := client.get("progress", wait=1))["ready"]:
            pass
        assert progress["share"] == 1 and progress["what"] == ""
        assert client.get("info")["traces"][0]["threads"][0]["depth"] > 0


def test_a_trace_that_cannot_be_indexed_says_why_and_the_others_are_shown(path, tmp_path, monkeypatch):
    real = shown_traces.View
    other = tmp_path / "other.vst"
    other.write_bytes(path.read_bytes())

    def failing(path, **options):
        if path == str(other):
            raise TraceError("the trace is damaged")
        return real(path, **options)

    monkeypatch.setattr(shown_traces, "View", failing)
    with serving(path, other) as server:
        client = Client(server)
        states = {row["file"]: row for row in client.get("info")["traces"]}
        broken, whole = states[str(other)], states[str(path)]
        assert broken["error"] == f"{other}: the trace is damaged" and whole["ready"]
        assert client.get("progress")["ready"]
        query = "from=0&to=9007199254740991&pixels=5"
        assert client.error(f"/api/window?trace={broken['trace']}&{query}") == (500, broken["error"])
        assert client.window(0, 1 << 52, trace=whole["trace"])


def test_the_end_of_the_server_ends_the_building(path, monkeypatch):
    begun = threading.Event()

    def endless(*args, progress, **options):
        while True:
            begun.set()
            progress(0.5)
            time.sleep(0.001)

    monkeypatch.setattr(shown_traces, "View", endless)
    with serving(path, build=False) as server:
        server.api.traces.build_in_background()
        assert begun.wait(20)
    assert not server.api.traces._thread.is_alive()


def test_the_index_is_kept_and_used_again_until_the_file_changes(path, tmp_path):
    copy = tmp_path / "t.vst"
    copy.write_bytes(path.read_bytes())

    def index(**options):
        with serving(copy, **options) as server:
            return Client(server).get("info")["traces"][0]["index"]

    first = index(keep=True)
    assert first["built"] and first["path"] == str(copy) + ".view" and os.path.getsize(first["path"]) == first["bytes"]
    assert not index(keep=True)["built"]
    record(copy, lambda: branch(100))
    assert index(keep=True)["built"]
    os.remove(first["path"])
    assert index(keep=False)["path"] is None and os.listdir(tmp_path) == ["t.vst"]


# ---- several traces, and what is left of one


def test_several_traces_share_a_timeline(path, tmp_path):
    later = tmp_path / "later.vst"
    later.write_bytes(path.read_bytes())
    patch(later, shift_ns=5_000_000_000, pid=77, trace_id="1" * 32)
    with serving(path, later) as server:
        client = Client(server)
        info = client.get("info")
        first, second = info["traces"]
        start = {str(one): Trace(str(one)).info()["start_ns"] for one in (path, later)}
        assert int(info["start_ns"]) == start[str(path)] and (first["start_ns"], first["file"]) == (0, str(path))
        assert second["start_ns"] == start[str(later)] - start[str(path)] > 4_000_000_000
        assert info["duration_ns"] == second["end_ns"] and second["pid"] == 77
        rects = client.window(second["start_ns"], second["end_ns"] + 1, trace=1, pixels=16384)
        assert sum(rect.count for rect in rects) == second["spans"] > 0
        assert client.window(second["start_ns"], second["end_ns"], trace=0) == []
        document = json.loads(client.ask("/api/export?to=speedscope&traces=1").body)
        both = json.loads(client.ask("/api/export?to=speedscope").body)
        assert len(both["profiles"]) == 2 * len(document["profiles"]) == 4


def test_an_empty_trace_is_shown_as_such(tmp_path):
    session = vestige._core.Session(str(tmp_path / "t.vst"))
    session.create()
    session.finish()
    with serving(tmp_path / "t.vst") as server:
        client = Client(server)
        info = client.get("info")
        assert info["ready"] and info["traces"][0]["spans"] == 0 and info["duration_ns"] >= 0
        assert client.window(0, 1000) == []
        assert client.get("flame", from_=0, to=1000)["rows"]["id"] == []
        assert client.get("lanes", kind="counters")["lanes"] == []
        assert client.post("next", ids=[1], after=0) is None
        assert client.ask("/api/export?to=perfetto").status == 200


def test_memory_is_shown_as_a_curve_and_of_spans(tmp_path):
    def allocate():
        return [bytearray(1 << 20) for _ in range(4)]

    path = tmp_path / "t.vst"
    with vestige.profile(output=str(path), profile_memory=True):
        allocate()
    with serving(path) as server:
        client = Client(server)
        info = client.get("info")
        end = info["duration_ns"] + 1
        assert all(0 <= thread["start_ns"] <= thread["end_ns"] <= end for thread in info["traces"][0]["threads"])
        curves = {lane["what"]: lane for lane in client.get("lanes", kind="counters")["lanes"]}
        assert curves["memory"]["most"] >= 4 << 20
        assert (
            max(most for _, most, _ in client.curve(curves["memory"]["lane"], from_=0, to=end, pixels=500)) >= 4 << 20
        )
        names = [entry and entry[1] for entry in client.get("names")["names"]]
        number = next(number for number, name in enumerate(names) if name and name.endswith("allocate"))
        found = client.post("next", ids=[number], after=-1)
        span = client.get("span", thread=found["thread"], depth=found["depth"], time=found["start_ns"])
        assert span["total_bytes"] >= 4 << 20 and span["allocations"] >= 4


def test_a_torn_file_is_shown_up_to_where_it_ends(path, tmp_path):
    torn = tmp_path / "torn.vst"
    data = bytearray(path.read_bytes())
    struct.pack_into("I", data, 80, 0)  # state: still recording, see src/store/format.h
    torn.write_bytes(data[: len(data) - 64])
    with serving(torn) as server:
        client = Client(server)
        trace = client.get("info")["traces"][0]
        assert trace["ready"] and trace["ended"] in ("torn", "damaged") and trace["spans"] > 0
        rects = client.window(0, client.get("info")["duration_ns"] + 1, pixels=16384)
        assert sum(rect.count for rect in rects) == trace["spans"]


def test_imports_can_be_folded_and_shown_again(tmp_path):
    """The rows, ids and names of a picture belong to the indexes that are being built again."""
    record(tmp_path / "t.vst", import_something)
    with serving(tmp_path / "t.vst") as served:
        client = Client(served)
        names = client.get("names", trace=0)["names"]
        before = client.get("info")
        assert not before["imports_folded"]
        assert client.post("imports", all=False) == {"folded": True}
        while not client.get("progress", wait=1)["ready"]:
            pass
        info = client.get("info")
        assert info["imports_folded"]
        assert info["traces"][0]["spans"] < before["traces"][0]["spans"]
        shown = {rect.id for rect in client.window(0, int(info["duration_ns"]) + 1, trace=0)}
        assert any(names[number][1] == "import this_module_is_not_there (failed)" for number in shown)
        assert client.post("imports", all=True) == {"folded": False}
        while not client.get("progress", wait=1)["ready"]:
            pass
        assert client.get("info")["traces"][0]["threads"] == before["traces"][0]["threads"]


def import_something():
    with contextlib.suppress(ImportError):
        import this_module_is_not_there  # noqa: F401
