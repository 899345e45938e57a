"""The viewer's page in Chromium without a window: from an input event to the frame that shows the new rectangles, and the
memory of the page's process.

A place of the trace at a random zoom is shown first; then one turn of the wheel, or one drag, is given to the browser as a
mouse would. Time runs from the event's own time stamp, through the request, the answer and the drawing, to just after the
frame in which nothing is outstanding any more. Skipped where there is no Chromium.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests" / "python"))

from browser import BROWSER, Browser  # noqa: E402
from view_server import percentile, viewer  # noqa: E402

MOVES = 160
PAGE_MB_MOST = 500
P95_MOST, MOST = 60, 150  # ms
# Notes when an event came, and when the frame was done that answers it.
WATCH = """
window.taken = [];
window.begun = null;
const channel = new MessageChannel();
channel.port1.onmessage = () => { if (begun !== null) { taken.push(performance.now() - begun); begun = null; } };
const note = event => { begun = event.timeStamp; };
window.watch = kind => window.addEventListener(kind, note, { capture: true, once: true });
document.addEventListener('vestige-settled', () => { if (begun !== null) channel.port2.postMessage(0); });
"""


def measure(address, moves=MOVES, seed=1):
    """Milliseconds of each move in order of size, and the most memory of the page's process in MB."""
    folder = tempfile.TemporaryDirectory()
    browser = Browser(Path(folder.name))
    try:
        begun = time.perf_counter()
        page = browser.open(address)
        page.set_size(1366, 768)
        page.wait("document.getElementById('loading').hidden && vestige.windows.settled", 600)
        opened = time.perf_counter() - begun
        page.eval(WATCH)
        times = [_move(page, random.Random(seed * 1000 + at), at % 2 == 0) for at in range(moves)]
        return {"times": sorted(times), "memory_mb": _memory_mb(browser), "opened_s": opened}
    finally:
        browser.close()
        folder.cleanup()


def _move(page, chance, is_zoom):
    duration = page.eval("vestige.view.duration")
    width = max(duration * 10 ** -chance.uniform(0, 6), 1000)
    start = chance.uniform(0, max(duration - width, 1))
    page.eval(f"vestige.view.show({start}, {start + width})")
    page.wait("vestige.windows.settled && vestige.stage.pending === null")
    before = page.eval("taken.length")
    x, y = chance.randrange(300, 1200), chance.randrange(200, 600)
    if is_zoom:
        page.mouse("mouseMoved", x, y)
        page.eval("watch('wheel')")
        page.wheel(x, y, chance.choice([-120, 120]))
    else:
        page.mouse("mouseMoved", x, y)
        page.mouse("mousePressed", x, y, button="left", clickCount=1)
        page.eval("watch('pointermove')")
        page.mouse("mouseMoved", x - 90 if x > 700 else x + 90, y, button="left", buttons=1)
        page.mouse("mouseReleased", x, y, button="left", clickCount=1)
    page.wait(f"taken.length > {before} && vestige.windows.settled", 10)
    return page.eval(f"taken[{before}]")


def _memory_mb(browser):
    """The most that any page's process ever had in memory, code and libraries left out."""
    most = 0.0
    for one in browser.send("SystemInfo.getProcessInfo")["processInfo"]:
        if one["type"] != "renderer":
            continue
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{one['id']}/status").read_text().splitlines())
        peak, files = (int(fields[name].split()[0]) for name in ("VmHWM", "RssFile"))
        most = max(most, (peak - files) / 1000)
    return most


def main(path):
    if not BROWSER:
        print("no Chromium is installed: the page is not measured")
        return
    with viewer(path) as one:
        found = measure(one.address)
    times = found["times"]
    print(f"page opened         {found['opened_s']:8.2f} s")
    for share in (0.5, 0.95, 1):
        print(f"move to pixels {share:4.0%} {percentile(times, share):8.1f} ms")
    print(f"the page's memory   {found['memory_mb']:8.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1])
