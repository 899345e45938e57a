"""The viewer's page in Chromium without a window: from an input event to the frame that shows the new rectangles, and
the memory of the page's process, on a generated trace.

A place of the trace at a random zoom is shown first; then one turn of the wheel, or one drag, is given to the browser
as a mouse would. Time runs from the event's own time stamp, through the request, the answer and the drawing, to just after
the frame in which nothing is outstanding any more. Beside it stands the same for an event that the page has no use for
and a frame in which nothing changes: what the browser and the machine take by themselves. Left out where there is no
Chromium.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests" / "python"))

from browser import BROWSER, Browser
from report import Table, at_most, say
from view_server import percentile, viewer

PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build/bench/bench/view_trace")
RECORDS, THREADS = 100_000_000, 8
MOVES = 160
PAGE_MB_MOST = 500
P95_MOST, MOST = 60, 150  # ms
# Notes the time of an event, and of the finished frame that answers it.
WATCH = """
window.taken = [];
window.begun = null;
const channel = new MessageChannel();
channel.port1.onmessage = () => { if (begun !== null) { taken.push(performance.now() - begun); begun = null; } };
const done = () => { if (begun !== null) channel.port2.postMessage(0); };
const begin = event => { begun = event.timeStamp; };
window.watch = kind => window.addEventListener(kind, begin, { capture: true, once: true });
document.addEventListener('vestige-settled', done);
document.getElementById('status').addEventListener('wheel', () => requestAnimationFrame(done), { passive: true });
"""


def measure(quick):
    table = Table("the viewer's page in Chromium", ["p50", "p95", "most"], "ms")
    if not BROWSER:
        say("no Chromium is installed: the viewer's page is left out")
        return []
    if not os.path.exists(PROGRAM):
        sys.exit("build/bench has no view_trace; `make bench` builds it")
    records = RECORDS // 20 if quick else RECORDS
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.vst")
        subprocess.run([PROGRAM, str(records), str(THREADS), path], check=True, stdout=subprocess.DEVNULL)
        with viewer(path) as one:
            found = drive(one.address, MOVES // 4 if quick else MOVES)
    bars = [(0.95, P95_MOST), (1, MOST)]
    checks = [at_most("ms", percentile(found["moves"], share), bar) for share, bar in bars]
    checks.append(at_most("MB in the page's process", found["memory_mb"], PAGE_MB_MOST))
    for label, times, its in (
        (f"a move, {records / 1e6:g} million records", found["moves"], checks),
        ("an idle frame", found["idle"], []),
    ):
        table.add(label, {name: percentile(times, share) for name, share in zip(table.columns, (0.5, 0.95, 1))}, its)
    return [table]


def drive(address, moves=MOVES, seed=1):
    """Returns ms of moves and of idle frames, sorted, and the most memory of the page's process in MB."""
    folder = tempfile.TemporaryDirectory()
    browser = Browser(Path(folder.name))
    try:
        begun = time.perf_counter()
        page = browser.open(address)
        page.set_size(1366, 768)
        page.wait("document.getElementById('loading').hidden && vestige.windows.settled", 600)
        opened = time.perf_counter() - begun
        page.eval(WATCH)
        times, idle = [], []
        for at in range(moves):
            times.append(_move(page, random.Random(seed * 1000 + at), at % 2 == 0))
            if at % 4 == 0:
                idle.append(_idle(page))
        return {"moves": sorted(times), "idle": sorted(idle), "memory_mb": _memory_mb(browser), "opened_s": opened}
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
    page.mouse("mouseMoved", x, y)
    if is_zoom:
        page.eval("watch('wheel')")
        page.wheel(x, y, chance.choice([-120, 120]))
    else:
        page.mouse("mousePressed", x, y, button="left", clickCount=1)
        page.eval("watch('pointermove')")
        page.mouse("mouseMoved", x - 90 if x > 700 else x + 90, y, button="left", buttons=1)
        page.mouse("mouseReleased", x, y, button="left", clickCount=1)
    page.wait(f"taken.length > {before} && vestige.windows.settled", 10)
    return page.eval(f"taken[{before}]")


def _idle(page):
    before = page.eval("taken.length")
    page.eval("watch('wheel')")
    page.wheel(400, 760, 120)  # the status line of the page
    page.wait(f"taken.length > {before}", 10)
    return page.eval(f"taken[{before}]")


def _memory_mb(browser):
    """Returns the largest memory of a page's process, without code and libraries."""
    most = 0.0
    for one in browser.send("SystemInfo.getProcessInfo")["processInfo"]:
        if one["type"] != "renderer":
            continue
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{one['id']}/status").read_text().splitlines())
        peak, files = (int(fields[name].split()[0]) for name in ("VmHWM", "RssFile"))
        most = max(most, (peak - files) / 1000)
    return most
