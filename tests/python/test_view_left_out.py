"""Functions that a budget left out, in the viewer: a band above the rows of every thread, and names in tips and
details.
"""

import pytest

from conftest import Workplace
from vestige import Trace
from view_page import WAYS, settle, shown, text, x_of
from viewing import Client, serving

pytestmark = pytest.mark.any_python
PROGRAM = """\
from vestige import _core


def leaf(x):
    return x + 1


def loop():
    x = 0
    for _ in range(400_000):
        x = leaf(x)


session = _core.Session("t.vst", gc=False)
session.set_budget(0.01, 50.0, 50.0)
session.create()
session.set_metadata("vestige.budget", "0.01")
session.start()
for _ in range(3):
    loop()
session.stop()
session.finish()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    workplace = Workplace(tmp_path_factory.mktemp("left_out"))
    workplace.write("app.py", PROGRAM)
    done = workplace.python("app.py")
    assert done.returncode == 0, done.stderr
    return workplace


@pytest.fixture(scope="module")
def trace(place):
    return Trace(str(place.path / "t.vst"))


def stretches_of(trace):
    found = {}
    for row in trace.tables(["left_out"])["left_out"]:
        found.setdefault((row.start_ns, row.end_ns), []).append(row.func)
    return [(start, end, None in ids, ids) for (start, end), ids in found.items()]


def test_the_trace_tells_when_functions_were_left_out(trace):
    found, info = stretches_of(trace), trace.info()
    names = trace.functions()
    assert found and all(before[1] <= after[0] for before, after in zip(found, found[1:]))
    for start, end, everything, ids in found:
        assert info["start_ns"] <= start <= end <= info["end_ns"]
        assert everything or "leaf" in {names[number][1] for number in ids}
    calls = [start for start, _ in trace.spans("leaf")]
    for start, end, everything, ids in found:
        # Calls near the beginning of a window may be recorded. The first stretch may be without an import alone.
        if everything or "leaf" in {names[number][1] for number in ids}:
            assert not [call for call in calls if start < call < end - 1_000_000]


def test_the_server_answers_with_sets_of_functions(place, trace):
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        facts = client.get("info")["traces"][0]
        told = client.get(
            "lanes/between", trace=0, kind="left_out", lanes="0", to=facts["end_ns"] + 1, most=1000, **{"from": 0}
        )
        assert facts["left_out"]
    base, found, items = trace.info()["start_ns"], stretches_of(trace), told["items"]
    assert len(items) == told["count"]
    assert items[0]["start_ns"] == found[0][0] - base
    assert items[-1]["end_ns"] == found[-1][1] - base
    for item in items:
        ids = item["functions"]["ids"]
        assert ids is None or "leaf" in {trace.functions()[number][1] for number in ids}


@pytest.fixture(params=WAYS)
def page(place, browser, request):
    ready = "document.getElementById('loading').hidden && vestige.windows.settled && vestige.leftOut.held.size > 0"
    with shown(request.param, place.path, browser, ready) as page:
        settle(page)
        yield page


def test_a_band_says_when_and_the_details_say_what(trace, page):
    found, base = stretches_of(trace), trace.info()["start_ns"]
    start, end, *_ = max(found, key=lambda row: row[1] - row[0])
    middle = (start + end) / 2 - base
    rows = "document.getElementById('rows').getBoundingClientRect().top - vestige.stage.rows.scrollTop"
    y = page.eval(f"{rows} + vestige.timeline.thread(0, 1).top") + 2
    reddish, _, blue, *_ = page.screenshot().at(x_of(page, middle), y)
    assert reddish > blue + 20
    line = page.eval(f"vestige.leftOut.lineOf(0, {middle - 1000}, {middle + 1000})")
    assert line.startswith("left out inside, to stay within the budget: ")
    assert "leaf" in line or "every function" in line
    assert page.eval(f"vestige.leftOut.lineOf(0, {found[0][0] - base - 2000}, {found[0][0] - base - 1000})") == ""
    depth = page.eval(
        f"(async () => {{ for (let d = 5; d >= 0; d--) if (await vestige.details.load(0, 1, d, {middle})) return d; return -1 }})()"
    )
    assert depth >= 0
    page.wait("document.getElementById('details').textContent.includes('Left out inside')")
    assert "A band above the rows marks these stretches" in text(page, "#banners")
