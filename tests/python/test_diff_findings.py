"""The first lines of `vestige diff`, and its flame graph, on traces made by hand with exact times."""

import json
import xml.dom.minidom

import pytest

from browser import BROWSER
from handmade import define, definitions, enter, leave, records, thread, trace
from in_process import vestige

pytestmark = pytest.mark.any_python

MS = 1_000_000
# parse, load, new <and> gone; names may contain anything.
ENTRIES = [define(1, "main"), define(2, "parse", "app.py", 3), define(3, "load", "app.py", 9), define(4, "<new & odd>")]


def made(path, parses, load_ns, new=0):
    words = [enter(1)]
    for _ in range(parses):
        words += [enter(2), leave(2, delta=MS)]
    for _ in range(40):
        words += [enter(3), leave(3, delta=load_ns)]
    for _ in range(new):
        words += [enter(4), leave(4, delta=50 * MS)]
    path.write_bytes(trace(definitions(thread(), *ENTRIES), records(*words, leave(1))))
    return path


@pytest.fixture
def sides(tmp_path):
    return (
        made(tmp_path / "a.vst", parses=100, load_ns=2 * MS),
        made(tmp_path / "b.vst", parses=300, load_ns=8 * MS, new=3),
    )


def test_what_changed_is_told_in_sentences(sides):
    said = vestige("diff", *sides).out
    told = [line for line in said.splitlines() if line.startswith("•")]
    assert len(told) == 3
    assert "• app.py:9: load takes 4 times as long a call (2.00 ms → 8.00 ms), +240 ms." in told
    assert "• app.py:3: parse is called 3 times as often (100 → 300 calls), +200 ms." in told
    assert "• a.py:1: main now also calls <new & odd>: +150 ms." in told


def test_the_other_way_round_it_got_better(sides):
    said = vestige("diff", *sides[::-1]).out
    assert "load takes 0.25 times as long a call" in said
    assert "parse is called 0.33 times as often (300 → 100 calls), -200 ms" in said
    assert "main no longer calls <new & odd>: -150 ms" in said


def test_findings_are_in_json_too(sides):
    document = json.loads(vestige("diff", *sides, "--format", "json").out)
    kinds = {finding["where"]["function"]: finding["kind"] for finding in document["findings"]}
    assert kinds == {"app.py:9: load": "time", "app.py:3: parse": "calls", "a.py:1: main": "new"}
    (new,) = [finding for finding in document["findings"] if finding["kind"] == "new"]
    assert new["where"]["calls"] == ["a.py:1: <new & odd>"]
    assert all(finding["numbers"]["effect_ns"] > 0 for finding in document["findings"])


def test_without_a_change_there_is_no_finding(sides):
    assert "no finding" in vestige("diff", sides[0], sides[0]).out
    assert json.loads(vestige("diff", sides[0], sides[0], "--format", "json").out)["findings"] == []


JSON, RE = "/usr/lib/python3.12/json/__init__.py", "/usr/lib/python3.12/re.py"
LIBRARY = [
    define(1, "main"),
    define(2, "parse", "app.py", 3),
    define(3, "dumps", JSON, 183),
    define(4, "encode", "/usr/lib/python3.12/json/encoder.py", 183),
    define(5, "compile", RE, 9),
    define(6, "clean", "app.py", 9),
    define(7, "retry", "app.py", 20),
]


def with_calls(path, *inside):
    """Writes a trace in which main calls parse 40 times; each of them takes 1 ms, and makes the calls `inside`."""
    words = [enter(1)]
    for _ in range(40):
        words += [enter(2), *inside, leave(2, delta=MS)]
    path.write_bytes(trace(definitions(thread(), *LIBRARY), records(*words, leave(1))))
    return path


def sentences(*words):
    return [line for line in vestige("diff", *words).out.splitlines() if line.startswith("•")]


def call(number, ms, *inside):
    return [enter(number), *inside, leave(number, delta=ms * MS)]


def test_all_that_is_new_is_one_sentence_about_the_users_function_that_calls(tmp_path):
    before = with_calls(tmp_path / "a.vst")
    after = with_calls(tmp_path / "b.vst", *call(3, 2, *call(4, 4)), *call(5, 1))
    assert sentences(before, after) == ["• app.py:3: parse now also calls json.dumps, re.compile: +280 ms."]
    assert sentences(after, before) == ["• app.py:3: parse no longer calls json.dumps, re.compile: -280 ms."]


def test_calls_that_a_library_makes_anew_name_the_users_call_of_the_library(tmp_path):
    before = with_calls(tmp_path / "a.vst", *call(3, 2))
    after = with_calls(tmp_path / "b.vst", *call(3, 2, *call(4, 4)))
    assert sentences(before, after) == ["• app.py:3: parse now also calls json.encode in json.dumps: +160 ms."]


def test_time_that_was_there_before_is_not_that_of_a_new_caller(tmp_path):
    before = with_calls(tmp_path / "a.vst", *call(6, 5), *call(3, 5))
    after = with_calls(tmp_path / "b.vst", *call(7, 2, *call(6, 5), *call(3, 5)))
    assert sentences(before, after) == ["• app.py:3: parse now also calls retry: +80.0 ms."]


def boxes(text):
    document = xml.dom.minidom.parseString(text)
    found = {}
    for box in document.getElementsByTagName("svg")[1:]:
        title = box.getElementsByTagName("title")[0].firstChild.data
        name, _, told = title.removesuffix(")").rpartition(" (")
        found[name] = (told, float(box.getAttribute("width")), box.getAttribute("fill"))
    return found


def test_the_flame_graph_shows_both_sides(sides, tmp_path):
    assert vestige("diff", *sides, "-o", tmp_path / "d.svg").code == 0
    found = boxes((tmp_path / "d.svg").read_text())
    assert set(found) == {"all", "a.py: main", "app.py: parse", "app.py: load", "a.py: <new & odd>"}
    told, wide, colour = found["app.py: parse"]
    assert told == "100 ms → 300 ms, +200 ms; own time +200 ms" and colour == "#f56464"
    assert wide == pytest.approx(found["all"][1] * 300 / 770, rel=0.01)
    assert vestige("diff", *sides[::-1], "-o", tmp_path / "back.svg").code == 0
    assert boxes((tmp_path / "back.svg").read_text())["app.py: parse"][2] == "#6464f5"
    assert boxes((tmp_path / "d.svg").read_text())["a.py: main"][2] == "#ebebeb"


def test_the_page_has_the_findings_and_the_picture(sides, tmp_path):
    assert vestige("diff", *sides, "--html", tmp_path / "d.html").code == 0
    page = (tmp_path / "d.html").read_text()
    assert "parse is called 3 times as often" in page and "<svg " in page
    assert "<new & odd>" not in page and "&lt;new &amp; odd&gt;" in page


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed (Debian's package chromium)")
def test_a_click_in_the_page_zooms_in_and_escape_out_again(sides, browser, tmp_path):
    assert vestige("diff", *sides, "--html", tmp_path / "d.html").code == 0
    page = browser.open((tmp_path / "d.html").as_uri())
    box = "module_flame_file.graph.boxes.find((one) => one.node.one.name === 'app.py: parse')"
    page.wait(f"document.readyState === 'complete' && Boolean({box})")
    canvas, wide = "document.querySelector('canvas')", page.eval("document.querySelector('canvas').clientWidth")
    before = page.eval(f"{box}.width")
    left, top = page.eval(f"(({{x, y}}) => [x, y])({canvas}.getBoundingClientRect())")
    x, row = page.eval(f"[{box}.x, {box}.row]")
    page.click(left + x + 5, top + row * 20 + 5)
    names = "module_flame_file.graph.boxes.map((one) => one.node.one.name)"
    assert page.eval(names) == ["all threads", "a.py: main", "app.py: parse"] and page.eval(f"{box}.width") == wide
    assert "100 ms → 300 ms" in page.eval("document.body.textContent")
    page.key("Escape")
    assert len(page.eval(names)) == 5 and page.eval(f"{box}.width") == pytest.approx(before, abs=1)
    assert page.errors() == []
    page.close()


def test_view_opens_the_page(sides, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = vestige("diff", *sides, "--view")
    (page,) = tmp_path.glob("diff-*.html")
    assert opened == [page.as_uri()] and page.as_uri() in said.err
    assert "parse is called 3 times as often" in page.read_text()


def test_the_function_around_those_that_are_called_as_often_is_named(tmp_path):
    def made_with(times):
        entries = [define(1, "main", "a.py", 1), define(2, "parse", "app.py", 3), define(3, "split", "re.py", 9)]
        words = [enter(1)]
        for _ in range(times):
            words += [enter(2), enter(3), leave(3, delta=MS), leave(2)]
        path = tmp_path / f"{times}.vst"
        path.write_bytes(trace(definitions(thread(), *entries), records(*words, leave(1))))
        return path

    said = vestige("diff", made_with(100), made_with(300)).out
    told = [line for line in said.splitlines() if line.startswith("•")]
    assert told == ["• app.py:3: parse is called 3 times as often (100 → 300 calls), +200 ms in re.py:9: split."]


def test_a_deep_stack_is_drawn(tmp_path):
    depth = 5000
    words = [enter(1, delta=1)] * depth + [leave(1, delta=1)] * depth
    path = tmp_path / "deep.vst"
    path.write_bytes(trace(definitions(thread(), *ENTRIES), records(*words)))
    assert vestige("diff", path, path, "-o", tmp_path / "d.svg").code == 0
    assert (tmp_path / "d.svg").read_text().count("<svg data-") <= 401


def test_wrong_files_are_told_in_a_line(sides, tmp_path):
    (tmp_path / "there.svg").write_text("mine")
    for words, said in [
        (["-o", tmp_path / "d.png"], "the picture is an .svg"),
        (["-o", tmp_path / "there.svg"], "already exists; --force overwrites it"),
        (["--html", tmp_path / "none" / "d.html"], "No such file or directory"),
    ]:
        ran = vestige("diff", *sides, *words)
        assert ran.code in (1, 2) and said in ran.err and ran.err.count("\n") == 1, words
    assert (tmp_path / "there.svg").read_text() == "mine"
    assert vestige("diff", *sides, "-o", tmp_path / "there.svg", "--force").code == 0
