"""When threads ran, in the viewer: the server's answers, and how the page draws them."""

import struct

import pytest

import vestige
from conftest import Workplace
from other_builds import HERE
from vestige import Trace
from vestige._core import Lanes
from view_page import READY, WAYS, fill_of, settle, shown, text, thread_named, x_of, y_of
from viewing import Client, read_window, serving

pytestmark = [
    pytest.mark.any_python,
    pytest.mark.skipif(vestige._core.can_see_switches() != 0, reason="the system does not tell when threads run"),
]
PIXELS = 200
PROGRAM = """\
import threading
import time


def naps():
    time.sleep(0.06)


def keeps():
    sum(range(4_000_000))


def worker():
    keeps()
    done.append(True)


done = []
naps()
thread = threading.Thread(target=worker, name="keeper")
thread.start()
while not done:
    pass
thread.join()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A thread that sleeps, and then waits while another thread does not release the GIL."""
    workplace = Workplace(tmp_path_factory.mktemp("states"))
    workplace.write("app.py", PROGRAM)
    assert workplace.trace("--sched", "app.py").returncode == 0
    return workplace


@pytest.fixture(scope="module")
def trace(place):
    return Trace(str(place.path / "t.vst"))


def where(trace, name):
    """Returns start and end of the only span with this name."""
    ((start, end),) = trace.spans(name)
    return start, end


WAITS, PREEMPTED, GIL = range(3)  # rows of a lane, see src/view/lanes_states.c


def lane_of(states, thread):
    (lane,) = [each["lane"] for each in states.lanes() if each["thread"] == thread]
    return lane


def test_pictures_show_when_a_thread_was_off_the_processor(trace):
    start, end = where(trace, "naps")
    states = Lanes(trace, "states")
    lane = lane_of(states, 1)
    sums = states.busy(lane, start, end)
    assert 50_000_000 < sums[WAITS] + sums[PREEMPTED] <= end - start  # the thread slept for 60 ms
    data = bytearray(states.draw(start, end, PIXELS, [lane]))
    struct.pack_into("<qq", data, 16, 0, end - start)  # a float cannot hold wall-clock times exactly
    rects = read_window(data)
    for row, ns in enumerate(sums):
        drawn = sum((rect.end - rect.start) * rect.busy for rect in rects if rect.depth == row)
        assert drawn / 65535 / (end - start) == pytest.approx(ns / (end - start), abs=0.02)
    assert states.busy(99, start, end) == []
    assert read_window(states.draw(start - 10**12, start - 10**11, 7, [lane])) == []


def test_waits_for_the_gil_are_among_them(trace):
    start, end = where(trace, "keeps")
    states = Lanes(trace, "states")
    assert states.busy(lane_of(states, 1), start, end)[GIL] > (end - start) / 4


def test_the_server_tells_of_spans_and_draws(place, trace):
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        info = client.get("info")
        assert info["traces"][0]["states"]
        start, end = (each - int(info["start_ns"]) for each in where(trace, "naps"))
        depth = next(
            depth
            for depth in range(20)
            if (span := client.get("span", thread=1, depth=depth, time=(start + end) // 2)) and "naps" in span["name"]
        )
        span = client.get("span", thread=1, depth=depth, time=(start + end) // 2)
        assert span["waiting_ns"] + span["preempted_ns"] > 50_000_000
        assert ("object_ns" if HERE["nogil"] else "gil_ns") in span
        assert span["running_ns"] + span["waiting_ns"] + span["preempted_ns"] == end - start
        client.connection.close()


@pytest.fixture(scope="module", params=WAYS)
def page(place, browser, request):
    ready = READY.replace(" && vestige.lanes.lists.has('counters0')", "")
    ready += " && vestige.lanes.list('states', 0).length > 0"
    with shown(request.param, place.path, browser, ready) as page:
        page.wait("vestige.lanes.settled && vestige.stage.pending === null")
        settle(page)
        yield page


def at(page, trace, name, thread, share=0.5):
    """Returns a place in the middle of a span: x and y on the page."""
    start, end = where(trace, name)
    base = int(page.eval("vestige.info.start_ns"))
    time_ns = start + (end - start) * share - base
    depth = next(
        depth
        for depth in range(20)
        if (told := page.eval(f"vestige.source.span(0, {thread}, {depth}, {time_ns}).then(one => one && one.name)"))
        and name in told
    )
    return x_of(page, time_ns), y_of(page, thread, depth), depth


def test_what_waited_is_paler_and_a_legend_says_so(page, trace):
    assert not page.eval("document.getElementById('legend').hidden")
    assert "off the processor" in text(page, "#legend") and "waits for the GIL" in text(page, "#legend")
    x, y, _ = at(page, trace, "naps", 1, 0.75)
    colour = fill_of(page, "naps")
    pixel = page.screenshot().at(x, y + 5)
    assert all(one > other + 5 or one >= 250 for one, other in zip(pixel, colour)), (pixel, colour)


def test_waits_for_the_gil_are_hatched(page, trace):
    start, end = where(trace, "keeps")
    base = int(page.eval("vestige.info.start_ns"))
    thread = thread_named(page, "keeper")
    assert thread > 1
    left, right = x_of(page, start - base), x_of(page, end - base)
    x, y = (left + right) / 2, y_of(page, 1, 0)
    picture = page.screenshot()
    seen = {picture.at(x + step, y + 5) for step in range(-7, 8)}
    assert len(seen) > 1, seen  # colours of lines, and of the space between


def test_details_list_running_and_waiting(page, trace):
    x, y, _ = at(page, trace, "naps", 1)
    page.click(x, y)
    page.wait("document.getElementById('details').innerText.includes('Running')")
    shown = text(page, "#details")
    assert "Running" in shown and "Waiting" in shown and "Preempted" in shown
    assert ("For locks of objects" if HERE["nogil"] else "For the GIL") in shown


def test_a_trace_without_them_has_no_legend(place):
    assert place.vestige("run", "-q", "-o", "plain.vst", "-c", "pass").returncode == 0
    with serving(place.path / "plain.vst") as server:
        client = Client(server)
        assert not client.get("info")["traces"][0]["states"]
        client.connection.close()
