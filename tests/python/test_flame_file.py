"""An exported flame graph in a real browser: without a script, the picture is complete; with the script, users can
search, zoom and move by keys.
"""

import pytest

from browser import BROWSER
from traces import record
from vestige import Trace

pytestmark = [
    pytest.mark.any_python,
    pytest.mark.skipif(not BROWSER, reason="no Chromium is installed (Debian's package chromium)"),
]
HOSTILE = "]]></script><img src=x onerror='window.intruded = 1'>&amp;"
GRAPH = "module_flame_file.graph"


def work():
    """Calls a function whose name contains markup, and another function."""
    for _ in range(50):
        hostile()
        plain()


def hostile():
    return sum(range(50_000))


def plain():
    return sum(range(1000))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flame")
    code, names = hostile.__code__, {"co_name": HOSTILE}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = HOSTILE
    hostile.__code__ = code.replace(**names)
    Trace(str(record(folder / "t.vst", work))).export(str(folder / "t.svg"))
    return folder / "t.svg"


@pytest.fixture
def page(path, browser):
    page = browser.open(path.as_uri())
    page.wait(f"typeof module_flame_file !== 'undefined' && {GRAPH}.boxes.length > 2")
    yield page
    assert page.errors() == []
    page.close()


def names(page):
    return page.eval(f"{GRAPH}.boxes.map((box) => box.node.one.name)")


def test_names_are_text_however_they_look(page):
    assert any(HOSTILE in name for name in names(page))
    assert page.eval("window.intruded") is None and page.eval("document.querySelectorAll('img').length") == 0


def test_a_search_tells_the_share_of_what_matches(page):
    page.key("/")
    page.type("plain|sum")
    page.wait("/^[\\d.]+ % matches$/.test(document.querySelector('span').textContent)")
    matched = page.eval(f"{GRAPH}.boxes.map((box) => box.node.one).filter({GRAPH}.look.matches).map((one) => one.name)")
    assert {name.rpartition(": ")[2] for name in matched} == {"plain", "<built-in function sum>"}
    page.type("(")
    page.wait("document.querySelector('span').textContent === 'invalid regular expression'")


def test_keys_walk_zoom_and_show_all_again(page):
    before = names(page)
    page.eval("document.querySelector('canvas').focus()")
    told = ""
    for _ in before:  # down, always to the heaviest frame
        if HOSTILE in told:
            break
        page.key("ArrowDown")
        told = page.eval("document.querySelectorAll('p')[1].textContent")
    assert told.endswith(" 50 calls)")
    page.key("Enter")
    assert [name.rpartition(": ")[2] for name in names(page)][-3:] == ["work", HOSTILE, "<built-in function sum>"]
    assert not page.eval("document.querySelector('button').hidden")
    page.eval("document.querySelector('button').click()")
    assert names(page) == before and page.eval("document.querySelector('button').hidden")


def test_as_an_image_it_is_a_picture(path, browser, tmp_path):
    """Images run no scripts, but show the boxes."""
    (tmp_path / "i.html").write_text(f"<style>*{{margin:0}}</style><img src='{path.as_uri()}'>")
    page = browser.open((tmp_path / "i.html").as_uri())
    page.wait("document.images[0].complete && document.images[0].naturalWidth === 1200")
    red, green, blue = page.screenshot().at(600, 48)
    assert red > green > blue  # the colour of Python functions
    page.close()
