"""`vestige view --follow`: the viewer shows a trace during its recording, over HTTP and in a real browser."""

import contextlib
import os
import subprocess

import pytest

from browser import BROWSER
from conftest import COMMAND
from golden import TRACES
from vestige._core import Trace, View
from vestige.reading.inputs import find_traces
from vestige.viewer.follow import Follower
from vestige.viewer.traces import Traces
from view_page import READY, Served
from viewing import Client, serving

pytestmark = pytest.mark.any_python

# Reads words and performs the action that each names.
PROGRAM = """\
import subprocess, sys, threading, time
import vestige
def tiny():
    pass
def busy(count):
    for _ in range(count):
        tiny()
def fresh(name):
    code = {}
    exec(f"def {name}(): busy(50)", {"busy": busy}, code)
    code[name]()
def stay():
    leave.wait()
leave = threading.Event()
busy(3000)
print("ready", flush=True)
for word in sys.stdin:
    word = word.strip()
    if word == "thread":
        threading.Thread(target=stay, name="a late one").start()
    elif word == "process":
        subprocess.run([sys.executable, "-c", "sorted([3, 1, 2])"], check=True)
    elif word == "busy":
        busy(20000)
    else:
        fresh(word)
    print("done", flush=True)
leave.set()
"""
PATIENCE = 240  # seconds: enough for busy machines


class Program:
    def __init__(self, folder, *options):
        (folder / "app.py").write_text(PROGRAM)
        self.process = subprocess.Popen(
            [COMMAND, "run", "-q", *options, "-o", "t.vst", "app.py"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n"

    def do(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            assert self.process.wait() == 0
        self.process.stdout.close()


@pytest.fixture
def program(tmp_path):
    started = Program(tmp_path)
    yield started
    started.end()


@contextlib.contextmanager
def following(path):
    traces = Traces(find_traces([path]).sources, keep=False, follow=True)
    follower = Follower(traces, [path])
    with serving(traces, follower=follower) as server:
        yield Client(server), follower


def follow(client, follower):
    """Follows immediately, even if the last request was recent."""
    follower._read_at = follower._looked_at = 0.0
    return client.get("follow")


def names(client, trace=0):
    return {row[1] for row in client.get("names", trace=trace)["names"] if row}


# ---- over HTTP


def test_what_is_recorded_meanwhile_is_shown(program, tmp_path):
    with following(str(tmp_path / "t.vst")) as (client, follower):
        first = client.get("info")
        assert first["follows"] and not first["imports_folded"]
        assert first["traces"][0]["ended"] == "recording"
        program.do("busy")
        program.do("late_function")
        second = follow(client, follower)
        assert second["duration_ns"] > first["duration_ns"]
        assert second["traces"][0]["spans"] > first["traces"][0]["spans"] + 20000
        assert "late_function" in names(client)
        rects = client.window(0, second["duration_ns"])
        assert sum(rect.count for rect in rects) > 20000
        tail = client.window(first["duration_ns"], second["duration_ns"], pixels=3000)
        assert {rect.depth for rect in tail} >= {0, 1, 2}
        program.do("thread")
        assert "a late one" in {thread["name"] for thread in follow(client, follower)["traces"][0]["threads"]}
        program.end()
        last = follow(client, follower)
        assert not last["follows"]
        assert last["traces"][0]["ended"] == "clean"
        assert follow(client, follower) == last


def test_processes_that_begin_meanwhile_appear(program, tmp_path):
    with following(str(tmp_path / "t.vst")) as (client, follower):
        assert len(client.get("info")["traces"]) == 1
        program.do("process")
        traces = follow(client, follower)["traces"]
        assert len(traces) == 2
        assert "sorted([3, 1, 2])" in traces[1]["name"]
        assert traces[1]["spans"] > 0
        assert client.window(0, traces[1]["end_ns"], trace=1)


def test_a_bounded_recording_is_followed_past_its_bound(tmp_path):
    program = Program(tmp_path, "--max-size", "1M")
    with following(str(tmp_path / "t.vst")) as (client, follower):
        for _ in range(12):
            program.do("busy")
            info = follow(client, follower)
            end = info["duration_ns"]
            assert client.window(0, end)
            assert client.window(max(end - 10**6, 0), end)
        assert info["traces"][0]["dropped"] > 0
        assert not follower.troubles
        program.end()
        assert not follow(client, follower)["follows"]


def test_a_file_that_is_cut_stays_as_it_was_read(program, tmp_path):
    with following(str(tmp_path / "t.vst")) as (client, follower):
        spans = client.get("info")["traces"][0]["spans"]
        os.truncate(tmp_path / "t.vst", 5000)
        info = follow(client, follower)
        assert not info["follows"]
        assert info["traces"][0]["spans"] == spans
        assert len(follower.troubles) == 1


def test_what_is_not_followed_says_so(program, tmp_path):
    program.end()
    with following(str(tmp_path / "t.vst")) as (client, follower):
        assert not follow(client, follower)["follows"]
    traces = Traces(find_traces([str(tmp_path / "t.vst")]).sources, keep=False)
    with serving(traces) as server:
        assert Client(server).error("/api/follow")[0] == 404
    done = subprocess.run([COMMAND, "view", "t.vst", "--follow", "--html", "x.html"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


def test_golden_traces_look_the_same_when_they_are_followed():
    for path in TRACES.rglob("*.vst"):
        if Trace(str(path)).info()["packed"]:
            continue
        followed, plain = View(str(path), follow=True), View(str(path), keep=False)
        assert followed.threads() == plain.threads(), path
        for key in ("spans", "records", "start_ns", "end_ns", "clean", "damaged_at"):
            assert followed.info()[key] == plain.info()[key], (path, key)
        followed.refresh()
        assert followed.threads() == plain.threads(), path


# ---- in a browser


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed (Debian's package chromium)")
def test_the_page_stays_at_the_end_until_the_user_pans(program, browser, tmp_path):
    server = Served(tmp_path, "t.vst", "--follow")
    try:
        page = browser.open(server.url)
        page.wait(READY, PATIENCE)
        before = page.eval("vestige.view.duration")
        page.eval("vestige.view.show(vestige.view.duration * 0.8, vestige.view.most)")
        program.do("busy")
        page.wait(f"vestige.view.duration > {before}", PATIENCE)
        assert page.eval("vestige.follow.atEnd && vestige.view.from > 0")
        page.eval("vestige.view.show(0, vestige.view.duration / 10)")
        seen = page.eval("[vestige.view.from, vestige.view.to, vestige.view.duration]")
        program.do("late_function")
        program.do("thread")
        program.do("process")
        page.wait(f"vestige.view.duration > {seen[2]} && vestige.timeline.traces.length === 2", PATIENCE)
        page.wait("vestige.timeline.traces[0].threads.some((thread) => thread.name === 'a late one')", PATIENCE)
        page.wait("vestige.names.functions.some((one) => one.name === 'late_function')", PATIENCE)
        assert page.eval("[vestige.view.from, vestige.view.to]") == seen[:2]
        page.eval("document.getElementById('follow').click()")
        assert page.eval("vestige.follow.atEnd")
        program.end()
        page.wait("vestige.info.follows === false && document.getElementById('follow').hidden", PATIENCE)
        assert page.errors() == []
        page.close()
    finally:
        server.stop()
