"""`vestige view` as a command: the life of the server, the page in one file, wrong usage."""

import base64
import gzip
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from itertools import pairwise

import pytest

import vestige
from conftest import COMMAND
from traces import family, patch, record
from vestige import Trace, record_function
from vestige.cli import Failure, view
from vestige.reading.inputs import find_traces
from vestige.viewer import embed
from vestige.viewer.traces import Traces
from viewing import Client, name_alone, serving

pytestmark = pytest.mark.any_python


def leaf(n):
    return abs(n)


def work():
    for n in range(20):
        leaf(n)
    with record_function("load", "the first"):
        leaf(1)
    vestige.counter("queue", 4.0)
    vestige.counter("queue", 7.0)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return record(tmp_path_factory.mktemp("view") / "t.vst", work)


# ---- the server


def test_it_prints_its_address_and_serves_until_it_is_interrupted(path, tmp_path):
    copy = tmp_path / "t.vst"
    copy.write_bytes(path.read_bytes())
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([COMMAND, "view", "t.vst"], cwd=tmp_path, env=environment, **pipes)
    try:
        said, address = process.stdout.readline(), process.stdout.readline().strip()
        assert said == "vestige: showing t.vst to this machine only, until Ctrl-C:\n"
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32,}", address)
        page = urllib.request.urlopen(address).read()
        assert b"<html" in page
        base, _, token = address.partition("?token=")
        request = urllib.request.Request(f"{base}api/info", headers={"X-Vestige-Token": token})
        assert json.load(urllib.request.urlopen(request))["traces"][0]["file"] == "t.vst"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{base}api/info")
        for _ in range(1000):
            if opened.exists():
                break
            time.sleep(0.02)
        assert opened.read_text().strip() == address
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30)
    assert rest == ("", "") and process.returncode == 0


def test_it_ends_like_that_when_it_is_told_to_terminate(path, tmp_path):
    (tmp_path / "t.vst").write_bytes(path.read_bytes())
    command = [COMMAND, "view", str(tmp_path / "t.vst"), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.terminate()
    assert process.communicate(timeout=30)[1] == b"" and process.returncode == 0


@pytest.mark.parametrize(
    "arguments, line",
    [
        ([], "the following arguments are required: FILE"),
        (["t.vst", "--port", "70000"], "--port 70000: a port is a number up to 65535"),
        (["t.vst", "--port", "x"], "argument --port: invalid int value: 'x'"),
        (["t.vst", "--html", "there.html"], "there.html: already exists; --force overwrites it"),
    ],
)
def test_wrong_usage_is_told_in_a_line(arguments, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.html").touch()
    with pytest.raises(Failure, match=re.escape(line)) as failure:
        view.main(arguments)
    assert failure.value.code == 2


def test_a_port_that_is_taken_is_told_of(path, tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Failure, match=f"port {port}: Address already in use; without --port") as failure:
            view.main([str(path), "--no-browser", "--port", str(port)])
    assert failure.value.code == 2


def test_files_that_are_no_traces_are_told_of(tmp_path):
    (tmp_path / "t.vst").write_text("text")
    for file, line in [("t.vst", "not a vestige trace"), ("missing.vst", "No such file")]:
        with pytest.raises(Failure, match=line) as failure:
            view.main([str(tmp_path / file)])
        assert failure.value.code == 1


# ---- one page


def opened(*paths, fold_imports=False, **options):
    sources = find_traces([str(path) for path in paths], **options).sources
    traces = Traces(sources, keep=False, fold_imports=fold_imports)
    traces.build()
    return traces


def unpack(data):
    """Returns the JSON and the binary part of an answer."""
    data = gzip.decompress(data)
    (length,) = struct.unpack_from("<I", data)
    return json.loads(data[4 : 4 + length]), data[(4 + length + 7) // 8 * 8 :]


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            yield value
            value = shift = 0


def read_rows(trace, blob):
    """Returns {(thread, depth): [(start, end, id, flags)]} of the spans."""
    return {rank: [span for span, _ in row] for rank, row in read_calls(trace, blob).items()}


def read_calls(trace, blob):
    """Returns the spans of read_rows(), each with its facts: its arguments, and the memory that it allocated itself and
    in all.
    """
    rows, calls = {}, trace["lanes"]["calls"]
    for thread, depth, _, count, offset, length in calls["rows"]:
        numbers, at, row = varints(blob[offset : offset + length]), 0, []
        for gap, duration, word, idle, one, facts in zip(*[numbers] * 6):
            assert (idle, one) == (0, 1)
            at += gap
            told = dict(zip((name for name, _ in calls["facts"]), [next(numbers) for _ in range(facts)]))
            told["args"] = calls["texts"][told.get("args", 0)]
            row.append(((at, at + duration, word & 0xFFFFFF, word >> 24), told))
        assert len(row) == count and next(numbers, None) is None
        rows[thread, depth] = row
    return rows


def exported(path, folder):
    """Returns start, end and name of each span in the exported file."""
    output = folder / "t.json"
    Trace(str(path)).export(str(output), all_windows=True)
    document = json.loads(output.read_text())
    found = [event for event in document["traceEvents"] if event.get("ph") == "X" and event.get("cat") != "Trace"]
    base = min(round(event["ts"] * 1000) for event in found)
    starts = [round(event["ts"] * 1000) - base for event in found]
    return sorted((start, start + round(event["dur"] * 1000), event["name"]) for start, event in zip(starts, found))


def test_the_data_of_a_page_has_every_span_exactly(path, tmp_path):
    data, blob = unpack(embed.pack(opened(path)))
    (trace,) = data["traces"]
    rows = read_rows(trace, blob)
    names = trace["names"]["names"]
    spans = sorted((start, end, names[number][1]) for row in rows.values() for start, end, number, _ in row)
    first = spans[0][0]
    expected = exported(path, tmp_path)
    assert [(start - first, end - first) for start, end, _ in spans] == [(start, end) for start, end, _ in expected]
    assert all(
        one[2].endswith(name_alone(other[2])) for one, other in zip(sorted(expected), sorted(spans)) if one[0] != one[1]
    )
    assert len(spans) == data["info"]["traces"][0]["spans"]
    depths = {thread["number"]: thread["depth"] for thread in data["info"]["traces"][0]["threads"]}
    assert all(depth < depths[thread] for thread, depth in rows)
    for (thread, depth), row in rows.items():
        assert all(before[1] <= after[0] for before, after in pairwise(row))  # none overlaps
        for start, end, _, _ in row if depth else ():
            assert any(one[0] <= start and end <= one[1] for one in rows[thread, depth - 1])


def test_the_data_of_a_page_has_what_the_server_would_tell(path):
    data, blob = unpack(embed.pack(opened(path)))
    (trace,) = data["traces"]
    assert data["info"]["traces"][0]["ready"] and data["info"]["traces"][0]["ended"] == "clean"
    assert trace["lanes"]["losses"]["lanes"] == []
    ids = {entry[1]: number for number, entry in enumerate(trace["names"]["names"]) if entry is not None}
    assert trace["sources"][str(ids["leaf"])]["lines"] == ["def leaf(n):", "    return abs(n)"]
    calls = [call for row in read_calls(trace, blob).values() for call in row]
    ((span, told),) = [call for call in calls if "the first" in json.dumps(call[1])]
    assert span[2] == ids["load"] and set(told) == {"args"}  # nothing allocated
    counters = trace["lanes"]["counters"]
    (counter,) = [lane for lane in counters["lanes"] if lane["what"] == "counter"]
    assert counter["id"] == ids["queue"]
    ((_, _, _, count, offset, length),) = [row for row in counters["rows"] if row[0] == counter["lane"]]
    least, most, last = struct.unpack("<3d", blob[offset + length - 24 : offset + length])
    assert count == counter["items"] and least == most == last == 7.0


def test_the_data_of_a_page_folds_imports_as_the_server_does(tmp_path):
    (tmp_path / "app.py").write_text("import xml.dom.minidom, _multibytecodec\nxml.dom.minidom.parseString('<a/>')\n")
    subprocess.run([COMMAND, "run", "-q", "-o", "t.vst", "app.py"], cwd=tmp_path, check=True)
    traces = opened(tmp_path / "t.vst", fold_imports=True)
    data, blob = unpack(embed.pack(traces))
    (trace,), (shown,) = data["traces"], traces
    names = [entry and entry[1] for entry in trace["names"]["names"]]
    rows = read_rows(trace, blob)
    told = {names[number] for row in rows.values() for _, _, number, _ in row}
    assert {"import xml.dom.minidom", "import _multibytecodec"} <= told and "_find_and_load" not in told
    assert sum(map(len, rows.values())) == shown.facts["spans"] == data["info"]["traces"][0]["spans"]
    assert data["info"]["imports_folded"] and 1 + max(depth for _, depth in rows) == shown.threads[0]["levels"]
    for (thread, depth), row in rows.items():
        for start, end, number, _ in row[:: len(row) // 20 + 1]:
            if end > start:
                found = shown.view.span_at(thread, depth, start + traces.start_ns)
                assert (found["id"], found["end_ns"] - traces.start_ns) == (number, end)


def test_spans_that_overlap_lie_in_rows_of_their_own(tmp_path):
    def overlapping():
        first, second = record_function("first"), record_function("second")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        leaf(1)
        second.__exit__(None, None, None)

    data, blob = unpack(embed.pack(opened(record(tmp_path / "t.vst", overlapping))))
    (trace,) = data["traces"]
    names = trace["names"]["names"]
    rows = read_rows(trace, blob)
    for row in rows.values():
        assert all(before[1] <= after[0] for before, after in pairwise(row))
    found = [names[span[2]][1] for row in rows.values() for span in row]
    assert found.count("first") == found.count("second") == 1
    (thread,) = data["info"]["traces"][0]["threads"]
    assert thread["depth"] == 1 + max(depth for _, depth in rows)
    assert [names[span[2]][1] for span in rows[1, thread["depth"] - 1]] == ["first"]  # below all rows of the stack


def test_the_data_of_a_page_has_all_processes(tmp_path):
    paths = family(tmp_path, 1001, 1002)
    data, blob = unpack(embed.pack(opened(paths[0])))
    assert [trace["pid"] for trace in data["info"]["traces"]] == [1000, 1001, 1002]
    assert all(read_rows(trace, blob) for trace in data["traces"])
    data, _ = unpack(embed.pack(opened(paths[0], children=False)))
    assert [trace["pid"] for trace in data["info"]["traces"]] == [1000]


def test_large_numbers_survive(tmp_path, path):
    later = tmp_path / "later.vst"
    later.write_bytes(path.read_bytes())
    patch(later, shift_ns=10**14, pid=2, trace_id="2" * 32)
    data, blob = unpack(embed.pack(opened(path, later)))
    first, second = (min(row[0][0] for row in read_rows(trace, blob).values()) for trace in data["traces"])
    assert second - first == 10**14


def test_traces_of_clocks_that_differ_can_be_aligned(tmp_path):
    first = record(tmp_path / "first.vst", work)
    second = tmp_path / "second.vst"
    second.write_bytes(first.read_bytes())
    patch(second, shift_ns=3_000_000, pid=2, trace_id="2" * 32)
    inputs = find_traces([str(first), str(second)])
    offsets = view.find_offsets(inputs, "load")
    assert offsets == [0, -3_000_000]
    traces = Traces(inputs.sources, keep=False, offsets_ns=offsets)
    traces.build()
    data, blob = unpack(embed.pack(traces))
    one, other = (read_rows(trace, blob) for trace in data["traces"])
    assert one == other
    with serving(traces) as server:
        client = Client(server)
        spans = [client.window(0, data["info"]["duration_ns"], trace=number) for number in (0, 1)]
        assert spans[0] == spans[1] != []
        half = data["info"]["duration_ns"] // 2
        got = [client.ask(f"/api/export?to=speedscope&traces={number}&to_ns={half}").body for number in (0, 1)]
        profiles = [json.loads(body)["profiles"] for body in got]
        assert [len(one["events"]) for one in profiles[0]] == [len(one["events"]) for one in profiles[1]]


def test_html_writes_one_page_that_needs_nothing_else(path, tmp_path, monkeypatch, capsys):
    output = tmp_path / "out.html"
    assert view.main([str(path), "--html", str(output)]) == 0
    page = output.read_text()
    assert re.match(rf"{output}: \d+ spans, \d+(\.\d+)? KiB\n", capsys.readouterr().out)
    found = re.search(r'<script type="application/gzip\+base64" id="vestige-data">(.*?)</script>', page, re.DOTALL)
    data, _ = unpack(base64.b64decode(found[1]))
    assert data["info"]["traces"][0]["file"] == str(path)
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page) and "Content-Security-Policy" in page
    assert os.listdir(path.parent) == [path.name]  # no index file stays
    assert view.main([str(path), "--html", str(output), "--force"]) == 0


@pytest.mark.parametrize("limit, line", [("SPANS_MAX", "more than 3 spans"), ("BYTES_MAX", "more than 3 B")])
def test_what_is_too_large_for_a_page_is_not_written(path, tmp_path, monkeypatch, limit, line):
    monkeypatch.setattr(embed, limit, 3)
    with pytest.raises(Failure, match=line) as failure:
        view.main([str(path), "--html", str(tmp_path / "out.html")])
    assert f"vestige view {path}" in str(failure.value) and not os.listdir(tmp_path) and failure.value.code == 1


def test_a_page_that_cannot_be_written_is_told_of(path, tmp_path):
    with pytest.raises(Failure, match="No such file or directory"):
        view.main([str(path), "--html", str(tmp_path / "missing" / "out.html")])


def test_help_shows_what_there_is():
    done = subprocess.run(
        [sys.executable, "-m", "vestige", "view", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    for option in ("--port N", "--no-browser", "--html OUT", "--no-children"):
        assert option in done.stdout


def test_imports_are_folded_unless_all_frames_are_asked_for(path, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "vestige.cli.view.serve", lambda traces, port, browser, follower: shown.append(traces.fold_imports)
    )
    for words in ([], ["--all"]):
        assert view.main([str(path), *words]) == 0
    assert shown == [True, False]
