"""Exceptions and instants in the viewer: marks above the rows of their thread, from the core to the page."""

import json
import struct

import pytest

from conftest import Workplace
from vestige import Trace
from vestige._core import Lanes
from view_page import WAYS, close_to, settle, shown, text, x_of
from viewing import Client, read_window, serving

pytestmark = pytest.mark.any_python
BURST = 300
PROGRAM = f"""\
import threading
import time

import vestige


Lost = type("Lost", (Exception,), {{}})  # without a call of that name


def fails():
    raise ValueError


def tries():
    try:
        fails()
    except ValueError:
        pass


def burst():
    for _ in range({BURST}):
        tries()


def works():
    tries()
    time.sleep(0.02)


def dies():
    time.sleep(0.02)
    raise Lost


burst()
time.sleep(0.05)
vestige.instant("half <b>way</b>", file="<img src=x onerror=alert(1)>")
time.sleep(0.05)
thread = threading.Thread(target=works, name="worker")
thread.start()
thread.join()
dies()
"""
STRIP = 13
LOST = "Lost"  # the exception that nobody catches; reporting it raises others


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    workplace = Workplace(tmp_path_factory.mktemp("marks"))
    workplace.write("app.py", PROGRAM)
    assert workplace.trace("--exceptions", "app.py").returncode == 1
    assert workplace.vestige("run", "-q", "-o", "plain.vst", "-c", "pass").returncode == 0
    return workplace


@pytest.fixture(scope="module")
def trace(place):
    return Trace(str(place.path / "t.vst"))


def ids_of(trace, name):
    return [number for number, entry in enumerate(trace.functions()) if entry and entry[1] == name]


def span(trace, name):
    ((start, end),) = trace.spans(name)
    return start, end


# ---- the core ---------------------------------------------------------------------

INSTANTS, EXCEPTIONS, NOT_CAUGHT = range(3)  # rows of a lane, see src/view/lanes_marks.c
CAUGHT, LEFT = 1, 2  # how an exception ended


def lane_of(marks, thread):
    (lane,) = [each["lane"] for each in marks.lanes() if each["thread"] == thread]
    return lane


def count(marks, thread, row, start, end):
    return marks.between(lane_of(marks, thread), row, start, end, 0)[0]


def test_marks_are_counted_by_thread(trace):
    marks = Lanes(trace, "marks")
    assert marks.left_out() == (0, 0)
    worker = next(each["number"] for each in trace.threads() if each["name"] == "worker")
    assert count(marks, worker, EXCEPTIONS, *span(trace, "works")) == 1
    first = next(each for each in marks.lanes() if each["thread"] == 1)
    rows = [count(marks, 1, row, first["start_ns"], first["end_ns"] + 1) for row in range(first["rows"])]
    assert sum(rows) == first["items"] and rows[INSTANTS] == 1 and rows[EXCEPTIONS] >= BURST and rows[NOT_CAUGHT] >= 1


def test_a_mark_tells_where_it_was_raised_and_caught(trace):
    marks, functions = Lanes(trace, "marks"), trace.functions()
    lane = lane_of(marks, 1)
    found, rows = marks.between(lane, EXCEPTIONS, *span(trace, "burst"), 5)
    assert found == BURST and len(rows) == 5
    for one in rows:
        assert (one["end"], one["args"], one["start_ns"]) == (CAUGHT, "", one["end_ns"])
        assert functions[one["id"]][1] == "ValueError" and functions[one["id"]][4] == 11
        assert (functions[one["raised_in"]][1], functions[one["caught_in"]][1]) == ("fails", "tries")
    assert marks.at(lane, EXCEPTIONS, rows[2]["start_ns"]) == rows[2]
    ((lost,),) = marks.between(lane, NOT_CAUGHT, *span(trace, "dies"), 5)[1:]
    assert functions[lost["id"]][1] == LOST and lost["end"] == LEFT


def test_a_picture_has_all_marks_of_a_range(trace):
    marks, (start, end) = Lanes(trace, "marks"), span(trace, "burst")
    lane = lane_of(marks, 1)
    rects = read_window(marks.draw(start, end, 50, [lane]))
    assert len(rects) < 60 and sum(rect.count for rect in rects if rect.depth == EXCEPTIONS) == BURST
    assert read_window(marks.draw(start, end, 50, [99])) == []
    assert read_window(marks.draw(start - 10**12, start - 10**11, 50, [lane])) == []


def test_marks_are_found_by_their_ids(trace):
    marks, info = Lanes(trace, "marks"), trace.info()
    start, end = info["start_ns"], info["end_ns"] + 1
    lost = ids_of(trace, LOST)
    counts = struct.unpack("<40I", marks.find([*lost, 5], start, end, 40))
    assert sum(counts) == 1
    after = marks.next(lost, start, False)
    assert after["id"] in lost and marks.next(lost, after["start_ns"], False) is None
    assert marks.next(lost, end, True) == after and marks.next([], end, True) is None


@pytest.mark.parametrize("kind", ["devices", "marks", "states", "tasks"])
def test_what_cannot_be_drawn_is_refused(trace, kind):
    lanes = Lanes(trace, kind)
    for asked in ((5, 5, 10, [0]), (0, 5, 0, [0]), (0, 5, 1 << 20, [0]), (-(1 << 62), 5, 10, [0])):
        with pytest.raises(ValueError, match="are not valid"):
            lanes.draw(*asked)
    with pytest.raises(ValueError, match="are not valid"):
        lanes.find([1], 0, 5, 0)
    with pytest.raises(ValueError, match="are not valid"):
        lanes.pack(1 << 31, 0, 0, 5)
    with pytest.raises((TypeError, OverflowError)):
        lanes.draw(0, 5, 10, [-1])
    with pytest.raises(TypeError):
        Lanes("t.vst", kind)
    with pytest.raises(ValueError, match="not made"):
        Lanes.__new__(Lanes).lanes()
    assert read_window(lanes.draw(0, 5, 10, [1 << 31])) == [] and lanes.text(1 << 31) is None
    assert (
        lanes.at(1 << 31, 0, 5) is None and lanes.between(0, 99, 0, 5, 9) == (0, []) and lanes.busy(1 << 31, 0, 5) == []
    )
    assert lanes.item(1 << 31) is None and lanes.linked(1 << 31, 5) == ([], 0)


def test_a_kind_that_is_not_known_is_refused(trace):
    with pytest.raises(ValueError, match="argument"):
        Lanes(trace, "no such kind")


# ---- the server -------------------------------------------------------------------


def test_the_server_tells_of_marks_and_finds_them(place):
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        info = client.get("info")
        assert info["traces"][0]["marks"]
        length = int(info["duration_ns"]) + 1
        lane = next(each for each in client.get("lanes", kind="marks")["lanes"] if each["thread"] == 1)
        drawn = client.ask(f"/api/lanes/window?kind=marks&from=0&to={length}&pixels=200&lanes={lane['lane']}")
        assert sum(rect.count for rect in read_window(drawn.body)) == lane["items"]
        at = client.get("lanes/between", kind="marks", lanes=lane["lane"], from_=0, to=length)
        assert at["count"] == lane["items"] > len(at["items"]) == 50
        assert at["items"] == sorted(at["items"], key=lambda each: each["start_ns"])
        names = client.get("names")["names"]
        (half,) = [number for number, name in enumerate(names) if name and name[1] == "half <b>way</b>"]
        found = client.post("next", ids=[half], after=0, back=False)
        assert found["lanes"] == "marks" and found["id"] == half
        mark = client.get("lanes/at", kind="marks", lane=found["lane"], row=found["row"], time=found["start_ns"])
        assert mark["args"] == {"file": "<img src=x onerror=alert(1)>"} and mark["end"] == 0
        searched = client.post("find", ids=[half], from_=0, to=length, pixels=10)
        assert searched["total"] == 1
        raised = [number for number, name in enumerate(names) if name and name[1] == LOST]
        lost = client.post("next", ids=raised, after=0, back=False)
        call = client.get("call", thread=1, time=lost["start_ns"], id=lost["raised_in"])
        assert names[call["id"]][1] == "dies" and call["start_ns"] < lost["start_ns"] <= call["end_ns"]
        assert client.get("call", thread=99, time=5) is None
        client.connection.close()


def test_bad_questions_get_a_line(place):
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        between = "/api/lanes/between?kind=marks"
        assert client.error(f"{between}&lanes=0&from=5&to=5") == (400, "from must be less than to")
        assert client.error("/api/lanes/window?kind=marks&from=0&to=5&pixels=0&lanes=1")[0] == 400
        assert client.error(f"{between}&lanes=x&from=0&to=5") == (400, "lanes: not an integer")
        assert client.error("/api/lanes?kind=x") == (
            400,
            "kind: not one of counters, devices, left_out, losses, marks, states, tasks",
        )
        assert client.error("/api/lanes") == (400, "kind is missing")
        client.connection.close()
    with serving(place.path / "plain.vst") as server:
        client = Client(server)
        assert not client.get("info")["traces"][0]["marks"]
        assert client.get("lanes", kind="marks") == {"lanes": [], "left_out": [0, 0]}
        assert client.error(f"{between}&lanes=0&from=0&to=5") == (404, "the trace has no marks")
        client.connection.close()


# ---- the page ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=WAYS)
def page(place, browser, request):
    ready = "document.getElementById('loading').hidden && vestige.timeline.marks.size > 0"
    with shown(request.param, place.path, browser, ready) as page:
        settle_marks(page)
        yield page


def settle_marks(page):
    page.wait("vestige.windows.settled && vestige.lanes.settled && vestige.stage.pending === null")
    settle(page)


def show_all(page):
    page.eval("vestige.view.selectSpan(null), vestige.panel.close(), vestige.view.reset()")
    settle_marks(page)


def strip_of(page, thread):
    """Returns the middle of the strip above the rows of a thread."""
    rows = "document.getElementById('rows').getBoundingClientRect().top - vestige.stage.rows.scrollTop"
    return page.eval(f"{rows} + vestige.timeline.thread(0, {thread}).top") + STRIP / 2


def colour(page, name):
    packed = page.eval(f"vestige.colors.{name}")
    return packed & 255, packed >> 8 & 255, packed >> 16 & 255


def moment(page, name):
    """Returns the time of the first mark with this name."""
    found = page.eval(
        f"""(() => {{ const ids = vestige.names.table(0).map((one, id) => one?.kind === 'instant' && one.name === {json.dumps(name)} ? id : 0);
        return vestige.source.next(0, ids.filter(Boolean), -1, false); }})()"""
    )
    return page.eval(f"vestige.lanes.list('marks', 0)[{found['lane']}].thread"), found["start_ns"]


def is_drawn(page, thread, time, of):
    x, y = x_of(page, time), strip_of(page, thread)
    picture = page.screenshot()
    return any(close_to(picture.at(x + step, y + 1), of) for step in range(-4, 5))


def test_marks_lie_above_the_rows_of_their_thread(page):
    show_all(page)
    assert is_drawn(page, *moment(page, "ValueError"), colour(page, "raised"))
    assert is_drawn(page, *moment(page, LOST), colour(page, "raised"))
    assert is_drawn(page, *moment(page, "half <b>way</b>"), colour(page, "annotation"))
    track = page.eval(
        "(({ top, inset, height, rows }) => ({ top, inset, height, rows }))(vestige.timeline.thread(0, 1))"
    )
    assert track["inset"] == STRIP and track["height"] == STRIP + track["rows"] * 18
    assert "exception" in text(page, "#legend") and "off the processor" not in text(page, "#legend")


def counts_of(page):
    """Returns how many marks each rectangle of the main thread's strip stands for."""
    return page.eval(
        "(() => { const counts = []; vestige.marks.each(vestige.timeline.thread(0, 1), "
        "(x, row, data, rect) => counts.push(data.count(rect))); return counts; })()"
    )


def test_very_many_are_a_few_bars_until_zoomed_in(page):
    show_all(page)
    counts = counts_of(page)
    assert len(counts) < BURST / 2 and max(counts) > 3
    _, time = moment(page, "ValueError")
    page.eval(f"vestige.view.show({time} - 2000, {time} + 3000)")
    settle_marks(page)
    counts = counts_of(page)
    assert 1 <= len(counts) < BURST and set(counts) == {1}
    assert is_drawn(page, 1, time, colour(page, "raised"))


def test_a_click_tells_of_an_exception(page):
    show_all(page)
    thread, time = moment(page, LOST)
    page.eval(f"vestige.view.show({time} - 2000, {time} + 2000)")
    settle_marks(page)
    page.mouse("mouseMoved", x_of(page, time), strip_of(page, thread))
    assert LOST in text(page, "#tip") and "app.py:33" in text(page, "#tip") and "nobody" in text(page, "#tip")
    page.click(x_of(page, time), strip_of(page, thread))
    page.wait("document.getElementById('details').innerText.includes('Caught in')")
    shown = text(page, "#details")
    assert "app.py:33" in shown and "it left the outermost call" in shown and "dies" in shown
    assert "raise Lost" in shown  # the source line of the mark
    page.eval("document.querySelector('#details button[data-to=call]').click()")
    page.wait("document.getElementById('details').innerText.includes('Python function')")
    assert text(page, "#details").startswith("dies")


def test_a_click_on_many_lists_them(page):
    show_all(page)
    _, time = moment(page, "ValueError")
    page.click(x_of(page, time) + 3, strip_of(page, 1))
    page.wait("document.querySelector('#details .marks') !== null")
    shown = text(page, "#details")
    assert "ValueError at app.py:11" in shown and "caught in tries" in shown
    # An import of the program may have raised an exception within the same pixels.
    buttons = "[...document.querySelectorAll('#details button[data-to=mark]')]"
    page.eval(f"{buttons}.find((button) => button.innerText.includes('ValueError')).click()")
    page.wait("document.getElementById('details').innerText.includes('Raised in')")
    assert "fails" in text(page, "#details")


def test_an_instant_shows_its_arguments_as_text(page):
    show_all(page)
    thread, time = moment(page, "half <b>way</b>")
    page.click(x_of(page, time), strip_of(page, thread))
    page.wait("document.getElementById('details').innerText.includes('half')")
    shown = text(page, "#details")
    assert "half <b>way</b>" in shown and "<img src=x onerror=alert(1)>" in shown and "instant" in shown


def test_search_finds_marks(page):
    show_all(page)
    page.eval("vestige.search.query.value = '/^Lost$/', vestige.search.run()")
    page.wait("document.getElementById('matches').textContent === '1 here'")
    page.eval("vestige.search.go(false)")
    page.wait("vestige.view.span?.kind === 'marks'")
    assert page.eval("vestige.view.span.start") == moment(page, LOST)[1]
    page.eval("vestige.search.query.value = '', vestige.search.run()")
    show_all(page)


def test_folded_threads_keep_their_marks(page):
    show_all(page)
    page.eval("vestige.foldAll()")
    settle_marks(page)
    thread, time = moment(page, LOST)
    assert is_drawn(page, thread, time, colour(page, "raised"))
    page.eval("vestige.foldAll()")
    show_all(page)
