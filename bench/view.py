"""The viewer's index and its answers, on a trace of 100 million records by four threads (view_trace.c).

Building is timed in this process, with the file in the page cache, and compared with reading the file once: least of
three each. On a busy machine, the CPU time says what two free processors would do. Memory is how much more the
process had touched at its peak, pages of the index too, in a process of its own. The first picture is opening the trace,
with or without its index there, and drawing all of it. Windows are random: from a hundred-thousandth of the trace to
all of it, 1,600 pixels wide.
"""

import os
import random
import subprocess
import sys
import tempfile
import time

from report import Table, at_most, say

RECORDS = 100_000_000
PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build/bench/bench/view_trace")
PIXELS = 1600

GROWTH = """
import sys
from vestige._core import View

def kib(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field))

before = kib("VmRSS")
View(sys.argv[1])
print((kib("VmHWM") - before) / 1024)
"""


def take_time(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def take_cpu(function):
    """Returns the CPU time of all threads, which hardly depends on a busy machine."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def read_once(path):
    buffer = bytearray(1 << 18)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def build(path):
    from vestige._core import View

    if os.path.exists(path + ".view"):
        os.unlink(path + ".view")
    return View(path)


def draw_all(path):
    from vestige._core import View

    view = View(path)
    info = view.info()
    view.window(info["start_ns"], info["end_ns"], PIXELS)


def window_times(view, count):
    info, dice = view.info(), random.Random(1)
    start, all_ns = info["start_ns"], info["end_ns"] - info["start_ns"]
    times = []
    for _ in range(count):
        width = max(1000, int(all_ns * 10 ** (-5 * dice.random())))
        at = start + int((all_ns - width) * dice.random())
        times.append(take_time(lambda at=at, width=width: view.window(at, at + width, PIXELS))[0])
    return sorted(times)


def measure(quick):
    records = RECORDS // 20 if quick else RECORDS
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        path = os.path.join(folder, "big.vst")
        say(f"recording {records:,} records")
        subprocess.run([PROGRAM, str(records), "4", path], check=True, stdout=subprocess.DEVNULL)
        return [measure_index(path), measure_pictures(path, 100 if quick else 500)]


def measure_index(path):
    reading = min(take_time(lambda: read_once(path))[0] for _ in range(3))
    builds = [take_time(lambda: take_cpu(lambda: build(path))) for _ in range(3)]
    took, cpu = min(wall for wall, _ in builds), min(pair[0] for _, pair in builds)
    info = builds[0][1][1].info()
    os.unlink(path + ".view")
    printed = subprocess.run([sys.executable, "-c", GROWTH, path], check=True, capture_output=True, text=True).stdout
    growth = float(printed)
    ns, size = took / info["records"] * 1e9, info["index_bytes"] / info["records"]
    table = Table(f"The index of {info['records']:,} records", ["measured"])
    bar = at_most(f"{1000 / ns:.1f} million records a second", ns, 1000 / 60, "16.7 ns, 60 million a second")
    table.add("ns a record", {"measured": ns}, [bar])
    of_one = cpu / info["records"] * 1e9
    bar = at_most("ns", of_one, 2000 / 60, "33.3, that is 60 million a second by two processors")
    table.add("CPU time, ns a record", {"measured": of_one}, [bar])
    table.add("times as long as reading the file once", {"measured": took / reading})
    table.add("bytes a record", {"measured": size}, [at_most("bytes", size, 1)], 2)
    table.add("growth of memory, MiB", {"measured": growth}, [at_most("MiB", growth, 256)])
    return table


def measure_pictures(path, count):
    build_and_draw = take_time(lambda: (build(path), draw_all(path)))[0]
    with_index = take_time(lambda: draw_all(path))[0]
    times = window_times(build(path), count)
    table = Table("Pictures from it", ["measured"])
    table.add("first, without the index, s", {"measured": build_and_draw}, [at_most("s", build_and_draw, 4)], 2)
    table.add("first, with it, s", {"measured": with_index}, [at_most("s", with_index, 1)], 3)
    for name, share in (("half of them within, ms", 0.5), ("95 in 100, ms", 0.95), ("all, ms", 1)):
        table.add(f"a window, {name}", {"measured": times[int(share * (count - 1))] * 1000})
    return table
