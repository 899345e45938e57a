"""The page of a memory history in a real browser: Chromium without a window, no server and no network."""

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.any_python,
    pytest.mark.skipif(not BROWSER, reason="no Chromium is installed (Debian's package chromium)"),
]

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1200,900"
).split()
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&amp;"
PROGRAM = f"""\
    keep = []


    def leak():
        for _ in range(30):
            keep.append(bytes(9000))


    def hostile():
        keep.append(bytes(40_000))


    def big():
        return len(bytes(2_000_000))


    code = hostile.__code__
    names = {{"co_name": {HOSTILE!r}}}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = names["co_name"]
    hostile.__code__ = code.replace(**names)
    leak()
    hostile()
    big()
    """
# Runs after the page's own script; the test examines its result.
ACTIONS = """
<script>
const result = {};
const $ = id => document.getElementById(id);
const $$ = selector => [...document.querySelectorAll(selector)];
const texts = selector => $$(selector).map(one => one.textContent);
const pick = value => { const input = document.querySelector(`input[value=${value}]`); input.click(); };
const {graph} = module_stacks;
const frames = () => graph.boxes.map(box => box.node.one.title);
const click = name => {
  const box = graph.boxes.find(one => one.node.one.title.startsWith(name)), {left, top} = graph.canvas.getBoundingClientRect();
  graph.canvas.dispatchEvent(new MouseEvent("click", {clientX: left + box.x + 2, clientY: top + box.row * 20 + 5}));
};
const key = (element, name) => element.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
try {
  result.title = document.title;
  result.cards = texts(".card b");
  result.peakFrames = frames();
  result.peakTold = $("told").textContent;
  click("big");
  result.zoomed = {frames: frames(), reset: !$("reset").hidden, told: $("told").textContent};
  key($("flame"), "Escape");
  result.afterEscape = frames().length;
  key($("flame"), "ArrowDown");
  key($("flame"), "ArrowDown");
  result.down = $("told").textContent;
  key($("flame"), "Enter");
  result.entered = $("reset").hidden;
  $("reset").click();
  pick("leaks");
  result.leakFrames = frames();
  $("search").value = "LEAK";
  $("search").dispatchEvent(new Event("input"));
  result.matched = $("matched").textContent;
  result.highlighted = graph.boxes.map(box => box.node.one).filter(graph.look.matches).map(one => one.title);
  result.rows = $$("table tr").length;
  $("search").value = "";
  $("search").dispatchEvent(new Event("input"));
  result.lines = texts("td:last-child");
  pick("stacks");
  result.stacks = texts("td:last-child");
  pick("sizes");
  result.sizes = $$("table tr").length;
  pick("temporary");
  pick("total");
  $("usage").dispatchEvent(new PointerEvent("pointermove", {clientX: 600, clientY: 100}));
  result.hover = $("usage-told").textContent;
  key($("usage"), "Home");
  result.home = $("usage-told").textContent;
  const canvas = $("usage"), pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  result.painted = pixels.some(value => value !== 0);
  result.images = $$("img").length;
} catch (error) { result.error = String(error.stack); }
const told = document.createElement("pre");
told.id = "result";
told.textContent = JSON.stringify(result);
document.body.replaceChildren(told);
</script>
"""


def with_script(text, script):
    """Adds a script to the page that its policy does not allow."""
    inside = re.search("<script>(.*?)</script>", script, re.DOTALL)[1]
    allowed = "sha256-" + base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
    assert text.count("script-src '") == 1
    return text.replace("script-src '", f"script-src '{allowed}' '").replace("</body>", script + "</body>")


def open_page(path, folder, *extra):
    """Returns the page's document as text, after a moment."""
    command = [BROWSER, *OPTIONS, f"--user-data-dir={folder / 'profile'}", *extra, "--dump-dom", path.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Returns how the page reacts to a user."""
    from conftest import Workplace

    workplace = Workplace(tmp_path_factory.mktemp("page"))
    workplace.write("app.py", PROGRAM)
    assert workplace.vestige("memory", "-q", "-o", "m.vst", "app.py").returncode == 0
    assert workplace.vestige("memory-report", "m.vst", "-o", "m.html").returncode == 0
    text = (workplace.path / "m.html").read_text()
    used = workplace.path / "used.html"
    used.write_text(with_script(text, ACTIONS))
    shown = open_page(used, workplace.path)
    found = re.search(r'<pre id="result">(.*?)</pre>', shown, re.DOTALL)
    assert found, shown[-2000:]
    result = json.loads(html.unescape(found[1]))
    assert "error" not in result, result["error"]
    return text, result


def test_nothing_is_fetched_from_elsewhere(page):
    text, _ = page
    assert not re.search(r"(src|href)\s*=|https?:|@import|fetch\(", text.split('id="data"')[0])
    assert "default-src 'none'" in text


def test_the_peak_is_shown_first(page):
    _, result = page
    assert result["title"] == "Memory of app.py"
    assert result["painted"]
    assert any(frame.startswith("big") and "app.py:14" in frame for frame in result["peakFrames"])
    assert result["peakTold"].startswith("All: ")
    assert len(result["cards"]) == 5  # the resident set, and the four series of allocations


def test_a_click_zooms_in_and_escape_out(page):
    _, result = page
    assert result["zoomed"]["reset"]
    assert result["zoomed"]["told"].startswith("big")
    assert [frame.split("  ")[0] for frame in result["zoomed"]["frames"]] == ["(all)", "<module>", "big"]
    assert result["afterEscape"] == len(result["peakFrames"])


def test_the_keyboard_reaches_the_frames_and_the_curve(page):
    _, result = page
    assert result["down"].startswith("<module>")
    assert not result["entered"]
    assert "after" in result["hover"]
    assert result["home"].endswith("after 0 ns")


def test_search_highlights_and_tells_the_share(page):
    _, result = page
    share = re.match(r"matches (\d+(?:\.\d)?) % · ", result["matched"])
    assert 50 < float(share[1]) < 100
    assert [name.split("  ")[0] for name in result["highlighted"]] == ["leak"]
    assert result["rows"] == 2


def test_leaks_lines_stacks_and_sizes_are_listed(page):
    _, result = page
    assert not any(frame.startswith("big") for frame in result["leakFrames"])
    assert result["lines"][0] == "app.py:6 leak"
    assert result["stacks"][0].startswith("leak  app.py:6<module>  app.py:")
    assert result["sizes"] > 3


def test_names_cannot_break_out_of_the_page(page):
    text, result = page
    assert HOSTILE not in text
    assert result["images"] == 0
    assert any(HOSTILE in line for line in result["lines"])
