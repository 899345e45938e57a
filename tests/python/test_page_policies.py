"""The policies of the pages that vestige writes: a page runs and loads only its own parts, and in a real browser it
works without anything else.
"""

import re

import pytest

import vestige
from browser import BROWSER
from traces import record, steps
from vestige import Trace
from vestige.cli import view
from vestige.cli.diff import command as diff
from vestige.cli.memory import report as memory_report
from viewing import serving

pytestmark = [
    pytest.mark.any_python,
    pytest.mark.skipif(not BROWSER, reason="no Chromium is installed (Debian's package chromium)"),
]
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", event =>
    violations.push([event.effectiveDirective, event.blockedURI, event.sourceFile, event.lineNumber, event.sample]));
"""
INTRUDER = "<script>window.intruded = 1</script><img src=x onerror='window.intruded = 2'><style>h1{color:red}</style>"


def memory_page(folder):
    with vestige.memory.track(folder / "m.vst"):
        kept = [bytes(5000) for _ in range(20)]
    assert len(kept) == 20 and memory_report.main([str(folder / "m.vst"), "-o", str(folder / "p.html")]) == 0


def view_page(folder):
    record(folder / "t.vst", steps(5))
    assert view.main([str(folder / "t.vst"), "--html", str(folder / "p.html")]) == 0


def diff_page(folder):
    path = str(record(folder / "t.vst", steps(5)))
    assert diff.main([path, path, "--html", str(folder / "p.html")]) == 0


def timeline_page(folder):
    trace = Trace(str(record(folder / "t.vst", steps(5))))
    trace.export(str(folder / "p.html"), all_windows=True, format="memory-timeline")


# By the function that writes a page: a condition that holds once the page's script has run, and an action to try then.
PAGES = {
    memory_page: ("module_stacks.graph.boxes.length > 0", "document.getElementById('flame').click()"),
    diff_page: ("module_flame_file.graph.boxes.length > 0", "document.querySelector('canvas').click()"),
    view_page: ("document.getElementById('loading').hidden", "document.getElementById('help').click()"),
    timeline_page: ("getComputedStyle(document.querySelector('.y5')).bottom !== 'auto'", "0"),
}


def opened(browser, address):
    page = browser.open()
    page.send("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    page.go(address)
    return page


@pytest.mark.parametrize("write", PAGES, ids=lambda write: write.__name__)
def test_a_page_works_and_asks_for_nothing_that_its_policy_forbids(browser, tmp_path, write):
    write(tmp_path)
    ready, use = PAGES[write]
    page = opened(browser, (tmp_path / "p.html").as_uri())
    page.wait(ready)
    page.eval(use)
    assert page.eval("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(violations), 50)))") == []
    assert page.errors() == []
    page.close()


@pytest.mark.parametrize("write", PAGES, ids=lambda write: write.__name__)
def test_in_a_page_nothing_else_runs(browser, tmp_path, write):
    write(tmp_path)
    path = tmp_path / "p.html"
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', path.read_text())[1]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    path.write_text(path.read_text().replace("</body>", INTRUDER + "</body>"))
    page = opened(browser, path.as_uri())
    page.wait(PAGES[write][0])
    page.wait("violations.length >= 3")
    assert page.eval("window.intruded") is None
    page.close()


def test_the_viewer_works_and_asks_for_nothing_that_its_policy_forbids(browser, tmp_path):
    with serving(record(tmp_path / "t.vst", steps(5))) as server:
        page = opened(browser, server.address)
        page.wait("document.getElementById('loading').hidden")
        page.eval("document.getElementById('help').click()")
        assert page.eval("violations") == []
        assert page.errors() == []
        page.close()
