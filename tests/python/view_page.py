"""Helpers of the tests of the viewer's page: the program that they show, a server for its traces, places on the page."""

import json
import re
import signal
import subprocess
from contextlib import contextmanager

from conftest import COMMAND

PROGRAM = """\
    import os
    import signal
    import sys
    import threading
    import time

    import vestige

    def tiny():
        pass

    def busy(count):
        for _ in range(count):
            tiny()

    def linger(seconds):
        time.sleep(seconds)

    def fail():
        time.sleep(0.004)
        raise ValueError

    def outer(mode, level=3):
        with vestige.record_function("phase"):
            linger(0.03)
            vestige.counter("queue", 5)
            busy(3000)
            vestige.counter("queue", 2)
            try:
                fail()
            except ValueError:
                pass

    thread = threading.Thread(target=outer, args=("<img src=x onerror=alert(1)>",), name="helper")
    thread.start()
    thread.join()
    time.sleep(0.02)
    outer("main")
    if sys.argv[1:] == ["die"]:
        os.kill(os.getpid(), signal.SIGKILL)
    """
GUTTER, ROW, PROCESS = 200, 18, 26
READY = "document.getElementById('loading').hidden && vestige.windows.settled && vestige.lanes.lists.has('counters0')"


class Served:
    """A running `vestige view`."""

    def __init__(self, folder, *files):
        command = [COMMAND, "view", *files, "--no-browser"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+/\S*", line)
            if found:
                self.url = found[0]
                return
        raise AssertionError("the server gave no address")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=20)


class Written:
    """A page written by `vestige view --html`, with the interface of Served."""

    def __init__(self, folder, *files):
        page = folder / "page.html"
        command = [COMMAND, "view", *files, "--html", page, "--force"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
        self.url = page.as_uri()

    def stop(self):
        pass


WAYS = {"served": Served, "written": Written}  # both must show equal pages


def span_of(place, name, which=0):
    """Returns start and end of a span according to the trace, relative to its first record."""
    from vestige._core import Trace, View

    trace = Trace(str(place.path / "t.vst"))
    start, end = trace.spans(name)[which]
    base = View(str(place.path / "t.vst"), keep=False).info()["start_ns"]
    return start - base, end - base


def x_of(page, ns):
    """Returns the x of a moment on the page."""
    left, right, width = page.eval("[vestige.view.from, vestige.view.to, vestige.stage.width]")
    return GUTTER + (ns - left) / (right - left) * width


def y_of(page, thread, depth, trace=0):
    """Returns the y of the middle of a row, from the top of the page."""
    top = page.eval(
        f"document.getElementById('rows').getBoundingClientRect().top + vestige.timeline.thread({trace}, {thread}).top"
        " - vestige.stage.rows.scrollTop"
    )
    return top + depth * ROW + ROW / 2


def thread_named(page, name):
    return page.eval(f"vestige.info.traces[0].threads.find(one => one.name === {json.dumps(name)}).number")


def fill_of(page, name):
    """Returns the colour of spans of a function."""
    packed = page.eval(
        "(() => { const one = vestige.names.functions.find(one => one.name === "
        f"{json.dumps(name)}); return vestige.theme.palette.fill(one.family, one.shade); }})()"
    )
    return packed & 255, packed >> 8 & 255, packed >> 16 & 255


def close_to(pixel, colour, most=12):
    """Returns whether a colour is this colour; faint lines of the ruler may lie over spans."""
    return all(abs(a - b) <= most for a, b in zip(pixel, colour, strict=True))


def settle(page):
    """Waits until all data are fetched and the page is drawn."""
    page.wait("vestige.windows.settled && vestige.stage.pending === null")
    page.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def text(page, selector):
    return re.sub("[ \xa0]+", " ", page.eval(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))


def length_in_tip(page):
    """Returns the duration in the tip at the pointer, in ns, once the tip is about the whole span; 0: there is no tip."""
    page.wait("!document.getElementById('tip').innerText.includes('at least')")
    found = re.search(r"^([\d.]+) (ns|µs|ms|s)\b", text(page, "#tip"), re.MULTILINE)
    return float(found[1]) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[found[2]] if found else 0


def calls_of(page, name):
    """Returns how often a function was called, from the sandwich table."""
    row = f".find(row => row.lastChild.textContent === {json.dumps(name)})"
    return int(
        re.sub(
            r"\D",
            "",
            page.eval(f"[...document.querySelectorAll('#functions tr[data-one]')]{row}.cells[3].textContent"),
        )
    )


def select(page, place, name):
    """Clicks a span of the main thread."""
    start, end = span_of(place, name, -1)
    depth = {"outer": 1, "phase": 2, "linger": 3, "busy": 3, "fail": 3}[name]
    page.click(x_of(page, (start + end) / 2), y_of(page, 1, depth))
    page.wait("vestige.view.span && !document.getElementById('panel').hidden")


@contextmanager
def shown(way, folder, browser, ready):
    """Opens the page of t.vst in a folder, and waits until an expression of the page is true. The page must have no
    errors.
    """
    server = WAYS[way](folder, "t.vst")
    page = browser.open(server.url)
    page.set_size(1366, 768)
    page.wait(ready)
    yield page
    assert page.errors() == []
    page.close()
    server.stop()
