"""The viewer's page in a real browser: Chromium without a window, with a real server, and as one file."""

import functools
import http.server
import json
import re
import sys
import threading
from collections import Counter

import pytest

from browser import BROWSER
from conftest import Workplace
from view_page import (
    GUTTER,
    PROGRAM,
    READY,
    Served,
    calls_of,
    close_to,
    fill_of,
    length_in_tip,
    select,
    settle,
    span_of,
    text,
    thread_named,
    x_of,
    y_of,
)

pytestmark = [
    pytest.mark.any_python,
    pytest.mark.skipif(not BROWSER, reason="no Chromium is installed (Debian's package chromium)"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    workplace = Workplace(tmp_path_factory.mktemp("view"))
    workplace.write("app.py", PROGRAM)
    common = ["run", "-q", "--record-args", "outer"]
    assert workplace.vestige(*common, "-o", "t.vst", "app.py").returncode == 0
    assert workplace.vestige(*common, "-o", "torn.vst", "app.py", "die").returncode != 0
    nothing = ["run", "-q", "--no-c", "--no-gc", "--include", "nothing", "-o", "empty.vst", "-c", "pass"]
    assert workplace.vestige(*nothing).returncode == 0
    hold = ["-c", "kept = [bytearray(10_000_000) for _ in range(3)]"]
    assert workplace.vestige("memory", "-q", "-o", "memory.vst", *hold).returncode == 0
    return workplace


@pytest.fixture(scope="module")
def server(place):
    server = Served(place.path, "t.vst")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def opened(browser, server):
    page = browser.open(server.url)
    page.set_size(1366, 768)
    page.wait(READY)
    yield page
    page.close()


@pytest.fixture
def page(opened):
    """The trace as if just opened."""
    opened.mouse("mouseMoved", 400, 20)  # away from the spans, because the tip at the pointer would cover some
    opened.eval(
        """document.getElementById('query').value = ''; vestige.search.run(); vestige.view.selectRange(null);
        vestige.view.selectSpan(null); vestige.panel.close(); vestige.view.reset(); vestige.view.past = [];
        vestige.flame.key = ''; vestige.flame.root = vestige.flame.one = null; vestige.stage.rows.scrollTop = 0;
        vestige.stage.rows.focus()"""
    )
    settle(opened)
    yield opened
    assert opened.errors() == []


def test_spans_are_where_their_times_say(page, place):
    picture = page.screenshot()
    helper = thread_named(page, "helper")
    below_run = 2 + (sys.version_info >= (3, 14))  # from 3.14 on Context.run calls a thread's run()
    for thread, which, deeper in ((1, -1, 0), (helper, 0, below_run)):
        start, end = span_of(place, "linger", which)
        x0, x1, y = x_of(page, start), x_of(page, end), y_of(page, thread, 3 + deeper)
        assert x1 - x0 > 100
        colour = fill_of(page, "linger")
        assert close_to(picture.at(x0 + 3, y + 5), colour), (picture.at(x0 + 3, y + 5), colour)
        assert close_to(picture.at(x1 - 4, y + 5), colour)
        if thread == 1:  # which slept before
            assert close_to(picture.at(x_of(page, span_of(place, "outer", -1)[0]) - 8, y + 5), (255, 255, 255))
        # An annotation has its own colour, and a line above it.
        y = y_of(page, thread, 2 + deeper)
        assert close_to(picture.at(x0 + 60, y + 5), fill_of(page, "phase"))
        assert close_to(picture.at(x0 + 60, y - 9), (0xA2, 0x1C, 0xAF))


def test_threads_and_counters_are_listed(page):
    assert page.eval("[...document.querySelectorAll('.track .name')].map(one => one.textContent)")[1:] == [
        "MainThread",
        "helper",
        "queue · MainThread",
        "queue · helper",
    ]
    tree = page.tree()
    assert any(name.startswith("MainThread") for role, name in tree if role in ("button", "DisclosureTriangle")), tree
    assert any(role == "searchbox" and name == "Search names of spans" for role, name in tree)
    assert page.eval("document.title") == "app.py · vestige"


def test_the_wheel_zooms_at_the_pointer_and_u_goes_back(page, place):
    start, _ = span_of(place, "busy", -1)
    before = page.eval("[vestige.view.from, vestige.view.to]")
    x = round(x_of(page, start))
    left, right, width = page.eval("[vestige.view.from, vestige.view.to, vestige.stage.width]")
    start = left + (x - GUTTER) / width * (right - left)  # the time at this pixel
    for _ in range(12):
        page.wheel(x, 300, -240)
    settle(page)
    left, right = page.eval("[vestige.view.from, vestige.view.to]")
    assert right - left < (before[1] - before[0]) / 100
    assert abs(x_of(page, start) - x) < 2  # the time at the pointer stays there
    # After zooming in a hundred times, the edge of the span is still at its time.
    edge = span_of(place, "busy", -1)[0]
    page.eval(f"vestige.view.pan({edge} - (vestige.view.from + vestige.view.to) / 2)")
    settle(page)
    x, y = x_of(page, edge), y_of(page, 1, 3) + 5
    picture = page.screenshot()
    assert close_to(picture.at(x + 4, y), fill_of(page, "busy"))
    assert not close_to(picture.at(x - 4, y), fill_of(page, "busy"))
    page.key("u")
    settle(page)
    assert page.eval("[vestige.view.from, vestige.view.to]") == pytest.approx(before)


def test_keys_and_drags_pan(page):
    page.key("w")
    page.key("w")
    settle(page)
    left, right = page.eval("[vestige.view.from, vestige.view.to]")
    page.drag([(900, 300), (850, 300), (700, 300)])
    settle(page)
    moved, end = page.eval("[vestige.view.from, vestige.view.to]")
    width = page.eval("vestige.stage.width")
    assert abs(moved - left - 200 * (right - left) / width) < (right - left) / width
    assert abs((end - moved) - (right - left)) < 1
    page.key("a")
    settle(page)
    assert page.eval("vestige.view.from") < moved
    page.key("0")
    settle(page)
    assert page.eval("vestige.view.from < 0 && vestige.view.to > vestige.view.duration")


def test_two_fingers_zoom_and_what_is_under_them_stays(page):
    left, right, width = page.eval("[vestige.view.from, vestige.view.to, vestige.stage.width]")
    under = [left + (x - GUTTER) / width * (right - left) for x in (500, 700)]
    page.pinch([(500, 300), (700, 300)], [(300, 300), (900, 300)])
    settle(page)
    assert page.eval("vestige.view.width") == pytest.approx((right - left) / 3, rel=0.02)
    assert [x_of(page, ns) for ns in under] == pytest.approx([300, 900], abs=3)


def test_many_short_calls_are_drawn_as_runs_that_count_them(page, place):
    start, end = span_of(place, "busy", -1)
    depth, thread = 4, 1
    runs = page.eval(
        f"""(() => {{ const data = vestige.windows.of(0).exact, found = [];
        for (const [depth, first, count] of data.threads.get({thread})) if (depth === {depth})
          for (let rect = first; rect < first + count; rect++)
            if (data.start(rect) >= {start} - 1e5 && data.end(rect) <= {end} + 1e5)
              found.push([data.start(rect), data.end(rect), data.count(rect)]);
        return found; }})()"""
    )
    assert sum(count for *_, count in runs) == 3000
    assert len(runs) < 1000
    # The widest run: elsewhere, the pointer may hit a gap in which the machine delayed the program.
    start, end, _ = max(runs, key=lambda run: run[1] - run[0])
    page.mouse("mouseMoved", x_of(page, (start + end) / 2), y_of(page, thread, depth))
    page.wait("!document.getElementById('tip').hidden")
    assert "tiny" in text(page, "#tip")


def test_a_tip_tells_the_length_of_a_span_that_is_only_partly_shown(page, place):
    start, end = span_of(place, "linger", -1)
    for left, right in ((0.4, 0.6), (-0.5, 0.6), (0.4, 1.5)):
        page.eval(f"vestige.view.show({start + left * (end - start)}, {start + right * (end - start)})")
        settle(page)
        page.mouse("mouseMoved", x_of(page, start + 0.5 * (end - start)), y_of(page, 1, 3))
        page.wait("document.getElementById('tip').innerText.startsWith('linger')")
        assert length_in_tip(page) == pytest.approx(end - start, rel=0.01)
        assert page.eval("vestige.stage.hover.start") == pytest.approx(start, abs=2)
        page.mouse("mouseMoved", 400, 20)
        page.eval("vestige.stage.whole = null")  # each part must load its own code


def under_pointer(page):
    """Returns the name in the tip at the pointer, and the framed span."""
    settle(page)
    framed = page.eval("vestige.stage.hover && vestige.names.get(0, vestige.stage.hover.id).name")
    shown = page.eval("document.getElementById('tip').hidden ? null : document.querySelector('#tip b').textContent")
    return shown, framed


def test_the_tip_and_the_frame_are_about_what_moves_under_the_pointer(page, place):
    start, end = span_of(place, "linger", -1)
    half = (end - start) / 2
    shown = f"vestige.view.show({start - 1.5 * half}, {start + 2.5 * half})"
    page.eval(shown)
    settle(page)
    x = x_of(page, start + 0.2 * half)
    page.mouse("mouseMoved", x, y_of(page, 1, 3))
    assert under_pointer(page) == ("linger", "linger")
    for _ in range(2):  # moves right, until the sleep before is under the pointer
        page.key("a")
    assert under_pointer(page) == (None, None)
    assert x_of(page, start) > x + 20
    page.eval(shown)
    assert under_pointer(page) == ("linger", "linger")
    page.eval(f"vestige.view.zoom(0.2, {start - half})")
    assert under_pointer(page) == (None, None)
    page.eval(shown)
    assert under_pointer(page) == ("linger", "linger")
    # The rows scroll, too: then a lower row is at the pointer.
    page.eval("document.getElementById('content').style.height = '5000px', vestige.stage.rows.scrollTop = 18")
    page.wait("vestige.stage.rows.scrollTop === 18")
    name, framed = under_pointer(page)
    assert name == framed and name != "linger"


def test_a_span_tells_all_about_itself(page, place):
    select(page, place, "outer")
    start, end = span_of(place, "outer", -1)
    told = text(page, "#details")
    assert "outer" in told and "app.py:23" in told and "Python function" in told
    assert f"{end - start}" in re.sub(r"\D", "", told)
    assert re.search(r"mode\s+'main'", told) and re.search(r"level\s+3", told)
    assert "<module>" in text(page, "#details .parents")
    assert text(page, "#details .line.here").split() == ["23", "def", "outer(mode,", "level=3):"]
    assert text(page, "#status").startswith("outer, ")
    page.key("ArrowDown", shift=True)
    page.wait("document.querySelector('#details h2')?.textContent === 'phase'")
    page.key("ArrowUp", shift=True)
    page.wait("document.querySelector('#details h2')?.textContent === 'outer'")
    assert page.eval("document.images.length") == 0


def test_search_marks_matches_and_goes_through_them(page, place):
    page.key("/")
    page.type("LINGER")
    page.wait("vestige.search.ids?.get(0).size === 1 && vestige.stage.ruler.marks")
    settle(page)
    start, end = span_of(place, "linger", -1)
    picture = page.screenshot()
    x = x_of(page, (start + end) / 2)
    assert close_to(picture.at(x, y_of(page, 1, 3) + 5), (0xFF, 0xD5, 0x4D))
    assert not close_to(picture.at(x, y_of(page, 1, 2) + 5), fill_of(page, "phase"), 6)  # spans that do not match fade
    assert text(page, "#matches") == "2 here"
    found = []
    for _ in range(3):
        page.key("Enter")
        page.wait(f"vestige.view.span && vestige.view.span.start !== {found[-1] if found else -1}")
        found.append(page.eval("vestige.view.span.start"))
    assert found == [span_of(place, "linger", 0)[0], start, span_of(place, "linger", 0)[0]]
    assert text(page, "#details h2") == "linger"
    page.eval("document.getElementById('query').value = '/^l.nger$/'; vestige.search.run()")
    page.wait("document.getElementById('matches').textContent.endsWith('here')")
    page.eval("document.getElementById('query').value = '/(/'; vestige.search.run()")
    assert text(page, "#matches") == "invalid pattern"


def test_the_flame_graph_is_of_the_selected_range(page, place):
    start, end = span_of(place, "linger", -1)
    y = y_of(page, 1, 3)
    page.drag([(x_of(page, start) + 4, y), (600, y), (x_of(page, end) - 4, y)], shift=True)
    page.wait("vestige.flame.root && vestige.flame.canvas.boxes.length")
    boxes = page.eval("vestige.flame.canvas.boxes.map(box => [box.node.one?.name ?? 'all', box.level, box.node.total])")
    names = [name for name, *_ in boxes]
    assert names == ["all", "<module> app", "outer", "phase", "linger", "sleep"]
    chosen = page.eval("vestige.view.scope().to - vestige.view.scope().from")
    assert all(total == chosen for _, _, total in boxes)
    assert 0.9 * (end - start) < chosen < end - start
    assert text(page, "#flame-summary").startswith("All: ")
    box = page.eval(
        "(() => { const box = document.getElementById('flame-canvas').getBoundingClientRect(); return [box.x, box.y]; })()"
    )
    page.click(box[0] + 300, box[1] + 4 * 20 + 10)  # the fifth row
    assert text(page, "#flame-summary").startswith("linger app.py:16")
    colour = page.screenshot().at(box[0] + 300, box[1] + 4 * 20 + 15)
    assert close_to(colour, fill_of(page, "linger"))
    # The tip describes the span that the new range has at the pointer.
    assert page.eval("document.querySelector('#tip b').textContent") == "linger"
    start, end = span_of(place, "busy", -1)
    page.eval(f"vestige.view.selectRange({{ from: {start + 1000}, to: {end - 1000} }})")
    page.wait("vestige.flame.canvas.boxes.some(box => box.node.one?.name === 'busy')")
    assert page.eval("document.querySelector('#tip b').textContent") == "busy"
    page.mouse("mouseMoved", 400, 20)


def test_the_flame_graph_tells_the_share_of_what_a_search_matches(page):
    page.key("g")
    page.wait("vestige.flame.root && vestige.flame.canvas.boxes.length > 1")
    page.key("/")
    page.type("/outer|tiny/")
    page.wait("/^All: .* · [\\d.]+ % in matches/.test(document.getElementById('flame-summary').textContent)")
    share = float(re.search(r"([\d.]+) % in matches", text(page, "#flame-summary"))[1])
    outer, root = page.eval(
        "(({root, canvas}) => [canvas.boxes.find(b => b.node.one?.name === 'outer').node.value, root.value])(vestige.flame)"
    )
    assert share >= round(100 * outer / root, 1) - 0.1 and share <= 100  # calls of tiny inside outer count once


def test_the_sandwich_shows_callers_and_callees(page, place):
    page.key("c")
    page.wait("document.querySelectorAll('#functions tr[data-one]').length > 5")
    page.eval(
        "[...document.querySelectorAll('#functions tr[data-one]')]"
        ".find(row => row.lastChild.textContent === 'phase').click()"
    )
    rows = page.eval("vestige.flame.both.boxes.map(box => [box.row, box.node.one.name])")
    centre = next(row for row, name in rows if name == "phase")
    assert {name for row, name in rows if row == centre - 1} == {"outer"}
    assert {"linger", "busy", "fail"} <= {name for row, name in rows if row == centre + 1}
    assert calls_of(page, "tiny") == 6000
    # Also opens it from the details of a span. A zoom in the flame graph stays while the range stays.
    select(page, place, "linger")
    page.eval("document.querySelector('button[data-to=sandwich]').click()")
    page.wait("document.querySelector('#functions tr[aria-selected=true]')?.lastChild.textContent === 'linger'")
    page.key("g")
    page.wait("vestige.flame.root !== null && vestige.flame.canvas.boxes.length > 1")
    page.eval("vestige.flame.canvas.zoom([...vestige.flame.root.children.values()][0]); vestige.flame.update()")
    assert page.eval("vestige.flame.canvas.focus !== null")


def ground_of(page):
    """Returns the background's colour below the rows, where lines of the grid may be."""
    picture = page.screenshot()
    return Counter(picture.at(x, 700) for x in range(1280, 1330)).most_common(1)[0][0]


def test_dark_and_light_are_followed_and_chosen(page):
    page.set_dark(True)
    try:
        page.wait("document.documentElement.dataset.theme === 'dark'")
        settle(page)
        assert ground_of(page) == (0x15, 0x19, 0x1E)
        page.key("t")
        page.wait("document.documentElement.dataset.theme === 'light'")
        settle(page)
        assert ground_of(page) == (255, 255, 255)
    finally:
        page.eval("localStorage.clear(); vestige.theme.chosen = null")
        page.set_dark(False)


def test_text_on_every_span_can_be_read(page):
    """The contrast is at least 4.5, in both themes and for all shades."""
    least = page.eval(
        """(() => {
        const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
          .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
        const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
        const parse = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
        const found = [];
        for (let turn = 0; turn < 2; turn++) {
          const { palette, colors } = vestige.theme;
          for (const fills of Object.values(palette.fills)) for (const fill of fills)
            found.push([contrast([fill & 255, fill >> 8 & 255, fill >> 16 & 255], parse(colors.text)), fill.toString(16)]);
          const style = getComputedStyle(document.documentElement);
          const css = name => parse(style.getPropertyValue('--' + name).trim());
          for (const [text, back] of [['text', 'back'], ['faint', 'back'], ['faint', 'bar'], ['note-text', 'note'], ['error-text', 'error'],
            ['match-text', 'match'], ['on-accent', 'accent'], ['accent', 'back'], ['text', 'here']]) found.push([contrast(css(text), css(back)), text, back]);
          vestige.theme.toggle();
        }
        localStorage.clear();
        vestige.theme.chosen = null;
        return found.sort((a, b) => a[0] - b[0])[0];
        })()"""
    )
    assert least[0] >= 4.5, least


def test_help_lists_the_keys(page):
    page.key("?")
    page.wait("document.getElementById('keys').open")
    assert "zoom at the pointer" in text(page, "#keys")
    page.key("Escape")
    page.wait("!document.getElementById('keys').open")


def test_perfetto_is_handed_the_bytes_after_it_answered(page):
    page.eval(
        """window.open = () => ({ closed: false, postMessage(data, origin) {
          if (data === 'PING') window.dispatchEvent(new MessageEvent('message', { data: 'PONG', origin: 'https://ui.perfetto.dev' }));
          else window.handed = { origin, title: data.perfetto.title, bytes: data.perfetto.buffer.byteLength };
        } }); document.getElementById('open-in').click()"""
    )
    items = page.eval("[...document.querySelectorAll('#menu [role=menuitem]')].map(one => one.textContent)")
    assert items[:2] == ["Perfetto, whole trace", "speedscope, whole trace"]
    page.eval("document.querySelector('#menu [role=menuitem]').click()")
    handed = page.wait("window.handed")
    assert handed["origin"] == "https://ui.perfetto.dev" and handed["title"] == "app.py" and handed["bytes"] > 1000


def test_speedscope_is_given_an_address_and_files_can_be_saved(page):
    page.eval("window.open = address => { window.opened = address; return {}; }; vestige.view.zoom(0.5, 1e6)")
    page.eval("document.getElementById('open-in').click()")
    items = page.eval("[...document.querySelectorAll('#menu [role=menuitem]')].map(one => one.textContent)")
    assert "speedscope, shown range" in items and "speedscope, whole trace" in items
    saved = page.eval("[...document.querySelectorAll('#menu a')].map(one => one.getAttribute('href'))")
    assert len(saved) == 3 and all(address.startswith("/api/export?to=") and "to_ns=" in address for address in saved)
    page.eval("[...document.querySelectorAll('#menu button')].at(-1).click()")
    assert page.wait("window.opened").startswith("https://www.speedscope.app/#profileURL=http%3A%2F%2F127.0.0.1")


def test_lost_records_are_hatched_and_told(page, place):
    start, _ = span_of(place, "linger", -1)
    page.eval(
        f"""vestige.stage.losses.set(0, [{{ thread: 1, row: 0, start_ns: {start} - 15e6, end_ns: {start} - 5e6, records: 12345 }}]);
        vestige.stage.invalidate()"""
    )
    settle(page)
    picture = page.screenshot()
    y, x0, x1 = y_of(page, 1, 4), x_of(page, start - 14e6), x_of(page, start - 6e6)
    inside = {picture.at(x, y) for x in range(int(x0), int(x1))}
    assert any(close_to(pixel, (255, 255, 255)) for pixel in inside)
    assert any(pixel[0] > pixel[2] + 40 for pixel in inside)  # reddish lines on the background
    page.mouse("mouseMoved", (x0 + x1) / 2, y)
    page.wait("!document.getElementById('tip').hidden")
    assert text(page, "#tip").startswith("12 345 records could not be kept")
    page.eval("vestige.stage.losses.clear()")


def test_the_building_of_the_index_is_told(page):
    """The trace is ready at the third request. Opened parts stay open."""
    told = page.eval(
        """(async () => {
          const source = vestige.source, told = [];
          let looks = 0;
          vestige.source = { info: async () => ({ ready: looks > 2 }), progress: async () => {
            if (looks++) told.push(document.getElementById('loading').textContent.replace(/\\s+/g, ' ').trim());
            return { ready: looks > 2, share: looks / 4, what: 'indexing t.vst', traces: [] }; } };
          await vestige.awaitIndex();
          vestige.source = source;
          return told;
        })()"""
    )
    assert told == ["Indexing the trace, onceindexing t.vst · 25 %", "Indexing the trace, onceindexing t.vst · 50 %"]


def test_a_torn_file_and_several_processes(browser, place):
    server = Served(place.path, "t.vst", "torn.vst")
    try:
        page = browser.open(server.url, dark=True)
        page.set_size(1366, 768)
        page.wait(READY.replace("> 0", "=== 2"))
        banner = text(page, "#banners")
        assert banner.count("did not end its recording") == 1
        assert page.eval("vestige.timeline.tracks.filter(one => one.type === 'process').length") == 2
        rows = page.eval("vestige.timeline.tracks.filter(one => one.type === 'thread').map(one => one.thread.name)")
        assert rows == ["MainThread", "helper"] * 2
        page.key("c")
        page.wait("document.querySelectorAll('#functions tr[data-one]').length > 5")
        assert calls_of(page, "tiny") == 12000  # of both processes
        page.wait("vestige.lanes.lists.has('counters1') && vestige.stage.pending === null")  # the names stay now
        folded = page.eval("document.querySelector('.track.process button').click(); vestige.timeline.tracks.length")
        assert folded == 1 + 5  # the folded header, and the other process with two threads and two counters
    finally:
        server.stop()
    # Fetched data stay, and the page says that the server is gone.
    page.eval("vestige.view.zoom(0.5, 1e6)")
    page.wait("document.querySelector('.banner.error') !== null")
    assert "server does not answer" in text(page, "#banners")
    assert page.eval("vestige.windows.of(1).exact.rects") > 10
    page.close()


def test_an_empty_trace_says_so(browser, place):
    server = Served(place.path, "empty.vst")
    try:
        page = browser.open(server.url)
        page.set_size(1366, 768)
        page.wait("document.getElementById('loading').hidden")
        assert "Nothing was recorded" in text(page, "#banners")
        page.key("g")
        page.wait("document.getElementById('flame-summary').textContent === 'Nothing ran here.'")
        assert page.errors() == []
        page.close()
    finally:
        server.stop()


def test_the_token_leaves_the_address_and_the_page_can_be_loaded_again(browser, server):
    page = browser.open(server.url)
    page.wait(READY)
    bare = server.url.split("?")[0]
    assert page.eval("location.href") == bare
    assert page.eval("history.length") == 2  # the empty page and this page: going back does not show the token
    assert page.eval("document.cookie") == ""
    page.eval("window.isOld = true")
    page.send("Page.reload")
    page.wait(f"!window.isOld && {READY}")
    assert page.eval("location.href") == bare
    page.close()
    other = browser.open(bare)  # another tab, which has no token
    other.wait("document.getElementById('loading-what').textContent.includes('the token is missing')")
    other.close()


def test_a_wrong_token_is_said_plainly(browser, server):
    page = browser.open(server.url.split("?")[0] + "?token=wrong")
    page.wait("document.getElementById('loading-text').textContent === 'The trace cannot be shown'")
    page.close()


CURVES = """vestige.timeline.counters.get(0).map((counter) => {
    const { least, most } = vestige.counters.scaleOf({ trace: { trace: 0 }, counter });
    return [counter.name, least, most];
})"""
FOREIGN = """\
(async () => {
  const [, base, token] = %s.match(/(.*)\\/\\?token=(.*)/);
  const tried = {};
  const attempt = async (name, how) => { try { tried[name] = String(await how()); } catch (error) { tried[name] = 'refused'; } };
  const load = (tag, address) => new Promise((done, fail) => {
    const one = document.createElement(tag);
    one.onload = () => done('loaded');
    one.onerror = fail;
    one.src = address;
    document.body.append(one);
  });
  const data = `${base}/api/info?token=${token}`;
  await attempt('header', async () => (await fetch(`${base}/api/info`, { headers: { 'X-Vestige-Token': token } })).text());
  await attempt('query', async () => (await fetch(data)).text());
  await attempt('opaque', async () => (await fetch(data, { mode: 'no-cors' })).text());
  await attempt('script', () => load('script', data));
  await attempt('image', () => load('img', `${base}/api/export?to=flamegraph&token=${token}`));
  await attempt('frame', async () => { const one = document.createElement('iframe'); one.src = `${base}/?token=${token}`;
    document.body.append(one); await new Promise((done) => { one.onload = done; }); return one.contentDocument.title; });
  await attempt('module', () => import(`${base}/app.js`));
  return tried;
})()"""


def test_a_page_of_another_origin_gets_nothing_even_with_the_token(browser, server, place):
    """A page of a server on another port belongs to the same site for browsers, but must get no data."""
    (place.path / "foreign.html").write_text("<!doctype html><body>")
    foreign = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(place.path)))
    thread = threading.Thread(target=foreign.serve_forever, args=(0.02,))
    thread.start()
    try:
        page = browser.open(f"http://127.0.0.1:{foreign.server_port}/foreign.html")
        page.wait("document.body !== null && location.href.startsWith('http')")
        tried = page.eval(FOREIGN % json.dumps(server.url))
        page.close()
    finally:
        foreign.shutdown()
        foreign.server_close()
        thread.join()
    assert tried.pop("opaque") in ("", "refused")  # all that the page could read
    assert len(tried) == 6 and set(tried.values()) == {"refused"}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.parametrize("frames", [[], ["--all"]])
def test_one_file_shows_the_same_as_a_server(browser, place, frames):
    assert place.vestige("view", "t.vst", "--html", "t.html", "--force", *frames).returncode == 0
    whole = (place.path / "t.html").read_text()
    assert not re.search(r'(src|href)\s*=\s*"(?!data:)', whole) and "default-src 'none'" in whole
    told = []
    server = Served(place.path, "t.vst", *frames)
    for url in (server.url, (place.path / "t.html").as_uri()):
        page = browser.open(url)
        page.set_size(1366, 768)
        page.wait(READY)
        settle(page)
        select(page, place, "outer")
        details = text(page, "#details")
        page.key("c")
        page.wait("document.querySelectorAll('#functions tr[data-one]').length > 5")
        table = text(page, "#functions")
        page.key("/")
        page.type("tiny")
        page.wait("document.getElementById('matches').textContent.endsWith('here')")
        curve = page.eval(CURVES)
        told.append((details, table, text(page, "#matches"), curve))
        assert page.errors() == []
        page.close()
    server.stop()
    assert told[0] == told[1]
    assert told[0][2].startswith("6") and told[0][3] == [["queue", 2, 5]] * 2


def test_a_button_folds_imports(browser, server, place):
    page = browser.open(server.url)
    page.wait(READY)
    pressed = "document.getElementById('imports')?.getAttribute('aria-pressed')"
    drawn = "vestige.names.functions.some(one => one.name === 'import signal')"
    assert page.eval(pressed) == "true" and page.eval(drawn)  # there is a name for the span, even if it is not drawn
    rows = page.eval("vestige.info.traces[0].threads[0].spans")
    for state, compare in (("false", int.__gt__), ("true", int.__eq__)):
        page.eval("document.getElementById('imports').click()")
        page.wait(f"{READY} && {pressed} === '{state}'")
        settle(page)
        assert compare(page.eval("vestige.info.traces[0].threads[0].spans"), rows)
    assert page.errors() == []
    page.close()


def test_a_recording_of_memory_alone_shows_its_curve_and_names_its_report(place, browser):
    server = Served(place.path, "memory.vst")
    try:
        page = browser.open(server.url)
        page.set_size(1366, 768)
        page.wait(READY)
        said = text(page, "#banners")
        assert "Memory alone was recorded" in said and "vestige memory-report" in said and "memory.vst" in said
        curves = dict(page.eval("vestige.lanes.list('counters', 0).map(one => [one.name, one.most])"))
        assert curves["memory"] > 30_000_000
        assert page.eval("vestige.timeline.tracks.some(one => one.counter?.name === 'memory')")
        assert page.errors() == []
        page.close()
    finally:
        server.stop()
