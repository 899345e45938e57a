"""Exceptions and instants in the viewer: marks above the rows of their thread, from the core to the page."""

import json
import struct

import pytest

from conftest import Workplace
from vestige import Trace
from vestige._core import Marks
from view_page import WAYS, close_to, settle, shown, text, x_of
from viewing import Client, serving

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
LOST = "Lost"  # the exception that nobody catches; others follow when it is told


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


def test_marks_are_counted_by_thread(trace):
    marks = Marks(trace)
    assert marks.left_out() == 0
    found = {thread: counts for thread, *counts in marks.threads()}
    worker = next(each["number"] for each in trace.threads() if each["name"] == "worker")
    start, end = span(trace, "works")
    assert marks.between(worker, start, end, 10)[0] == 1
    main_marks, exceptions, lost = found[1]
    assert main_marks == exceptions + 1 and exceptions > BURST and lost >= 1


def test_a_mark_tells_where_it_was_raised_and_caught(trace):
    marks, functions = Marks(trace), trace.functions()
    count, rows = marks.between(1, *span(trace, "burst"), 5)
    assert count == BURST and len(rows) == 5
    for thread, _, number, end, raised_in, caught_in, args in rows:
        assert (thread, end, args) == (1, "caught", None)
        assert functions[number][1] == "ValueError" and functions[number][4] == 11
        assert (functions[raised_in][1], functions[caught_in][1]) == ("fails", "tries")
    start, end = span(trace, "dies")
    ((_, _, number, became, *_),) = marks.between(1, start, end, 5)[1]
    assert functions[number][1] == LOST and became == "not caught"


def test_parts_of_a_range_add_up_to_its_marks(trace):
    marks, (start, end) = Marks(trace), span(trace, "burst")
    cells = marks.draw(1, start, end, 50)
    assert [cell[0] for cell in cells] == sorted({cell[0] for cell in cells}) and cells[-1][0] < 50
    assert sum(cell[1] for cell in cells) == sum(cell[2] for cell in cells) == BURST
    assert marks.draw(99, start, end, 50) == [] == marks.draw(1, start - 10**12, start - 10**11, 50)


def test_marks_are_found_by_their_ids(trace):
    marks, info = Marks(trace), trace.info()
    start, end = info["start_ns"], info["end_ns"] + 1
    lost = ids_of(trace, LOST)
    counts = struct.unpack("<40I", marks.find([*lost, 5], start, end, 40))
    assert sum(counts) == 1
    after = marks.next(lost, start, False)
    assert after[2] in lost and marks.next(lost, after[1], False) is None
    assert marks.next(lost, end, True) == after and marks.next([], end, True) is None


def test_what_cannot_be_drawn_is_refused(trace):
    marks = Marks(trace)
    for asked in ((1, 5, 5, 10), (1, 0, 5, 0), (1, 0, 5, 1 << 20), (1, -(1 << 62), 5, 10)):
        with pytest.raises(ValueError, match="no such picture"):
            marks.draw(*asked)
    with pytest.raises(TypeError):
        Marks("t.vst")
    with pytest.raises(ValueError, match="not made"):
        Marks.__new__(Marks).threads()


# ---- the server -------------------------------------------------------------------


def test_the_server_tells_of_marks_and_finds_them(place):
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        info = client.get("info")
        assert info["traces"][0]["marks"]
        length = int(info["duration_ns"]) + 1
        (drawn,) = client.get("marks/draw", from_=0, to=length, pixels=200, threads="1")
        (thread, count, *_), *_ = client.get("marks")["threads"]
        assert thread == 1 and sum(cell[1] for cell in drawn) == count
        at = client.get("marks/at", thread=1, from_=0, to=length)
        assert at["count"] == count > len(at["marks"])
        names = client.get("names")["names"]
        (half,) = [number for number, name in enumerate(names) if name and name[1] == "half <b>way</b>"]
        found = client.post("next", ids=[half], after=0, back=False)
        assert found["mark"] and found["id"] == half
        (mark,) = client.get("marks/at", thread=1, from_=found["start_ns"], to=found["start_ns"] + 1)["marks"]
        assert mark["args"] == {"file": "<img src=x onerror=alert(1)>"} and mark["end"] == ""
        searched = client.post("find", ids=[half], from_=0, to=length, pixels=10)
        assert searched["total"] == 1
        client.connection.close()


def test_bad_questions_get_a_line(place):
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        assert client.error("/api/marks/at?thread=1&from=5&to=5") == (400, "from must be less than to")
        assert client.error("/api/marks/draw?from=0&to=5&pixels=0&threads=1")[0] == 400
        assert client.error("/api/marks/at?thread=x&from=0&to=5") == (400, "thread: not an integer")
        client.connection.close()
    with serving(place.path / "plain.vst") as server:
        client = Client(server)
        assert not client.get("info")["traces"][0]["marks"]
        assert client.get("marks") == {"threads": [], "left_out": 0}
        assert client.get("marks/at", thread=1, from_=0, to=5) == {"count": 0, "marks": []}
        client.connection.close()


# ---- the page ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=WAYS)
def page(place, tmp_path_factory, request):
    ready = "document.getElementById('loading').hidden && vestige.timeline.marks.size > 0"
    with shown(request.param, place.path, tmp_path_factory.mktemp("profile"), ready) as page:
        settle_marks(page)
        yield page


def settle_marks(page):
    page.wait("vestige.windows.settled && vestige.marks.settled && vestige.stage.pending === null")
    settle(page)


def show_all(page):
    page.eval("vestige.view.selectSpan(null), vestige.panel.close(), vestige.view.reset()")
    settle_marks(page)


def strip_of(page, thread):
    """The middle of the strip above the rows of a thread."""
    rows = "document.getElementById('rows').getBoundingClientRect().top - vestige.stage.rows.scrollTop"
    return page.eval(f"{rows} + vestige.timeline.thread(0, {thread}).top") + STRIP / 2


def colour(page, name):
    packed = page.eval(f"vestige.colors.{name}")
    return packed & 255, packed >> 8 & 255, packed >> 16 & 255


def moment(page, name):
    """When the first mark of this name was."""
    found = page.eval(
        f"""(() => {{ const ids = vestige.names.table(0).map((one, id) => one?.kind === 'instant' && one.name === {json.dumps(name)} ? id : 0);
        return vestige.source.next(0, ids.filter(Boolean), -1, false); }})()"""
    )
    return found["thread"], found["start_ns"]


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


def test_very_many_are_a_few_bars_until_zoomed_in(page):
    show_all(page)
    cells = page.eval("[...vestige.marks.held.get(0).threads.get(1)]")
    assert len(cells) < BURST / 2 and max(cell[1] for cell in cells) > 3
    _, time = moment(page, "ValueError")
    page.eval(f"vestige.view.show({time} - 2000, {time} + 3000)")
    settle_marks(page)
    cells = page.eval("[...vestige.marks.held.get(0).threads.get(1)]")
    assert 1 <= len(cells) < BURST and {cell[1] for cell in cells} == {1}
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
    assert "raise Lost" in shown  # its line of source
    page.eval("document.querySelector('#details button[data-call]').click()")
    page.wait("document.getElementById('details').innerText.includes('Python function')")
    assert text(page, "#details").startswith("dies")


def test_a_click_on_many_lists_them(page):
    show_all(page)
    _, time = moment(page, "ValueError")
    page.click(x_of(page, time) + 3, strip_of(page, 1))
    page.wait("document.querySelector('#details .marks') !== null")
    shown = text(page, "#details")
    assert "ValueError at app.py:11" in shown and "caught in tries" in shown
    # An import of the program may have raised within the same pixels.
    buttons = "[...document.querySelectorAll('#details button[data-mark]')]"
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
    page.wait("vestige.view.span?.isMark")
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
