"""`vestige view` seen from outside: the time to the first picture, and how long a pan or zoom waits for its rectangles,
over HTTP like the page. Without a browser; view_browser.py measures drawing.
"""

import contextlib
import http.client
import json
import random
import signal
import subprocess
import sys
import time

PIXELS = 1600


class Viewer:
    """A server in a new process, and one connection to it."""

    def __init__(self, path, *options):
        self.begun = time.perf_counter()
        command = [sys.executable, "-m", "vestige", "view", str(path), "--no-browser", *map(str, options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.address = self.process.stdout.readline().strip()
        base, _, self.token = self.address.partition("/?token=")
        self.connection = http.client.HTTPConnection(base.removeprefix("http://"))

    def ask(self, path):
        self.connection.request("GET", path, headers={"X-Vestige-Token": self.token})
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {body[:200]!r}")
        return body

    def get(self, path):
        return json.loads(self.ask(path))

    def close(self):
        self.connection.close()
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()


@contextlib.contextmanager
def viewer(path, *options):
    viewer = Viewer(path, *options)
    try:
        yield viewer
    finally:
        viewer.close()


def window(viewer, start, end):
    return viewer.ask(f"/api/window?trace=0&from={start}&to={end}&pixels={PIXELS}")


def first_picture(viewer):
    """Returns the seconds from the command to the rectangles of the whole trace, including the page's earlier requests."""
    viewer.ask("/")
    while not viewer.get("/api/progress?wait=1")["ready"]:
        pass
    info = viewer.get("/api/info")
    viewer.ask("/api/names?trace=0")
    window(viewer, 0, info["duration_ns"] + 1)
    return time.perf_counter() - viewer.begun


def moves(viewer, count=200, seed=1):
    """Returns ms of windows at all zooms: each is zoomed to at random, then moved by a tenth of its width."""
    duration = viewer.get("/api/info")["duration_ns"]
    chance = random.Random(seed)
    times = []
    for _ in range(count // 2):
        width = max(int(duration * 10 ** -chance.uniform(0, 6)), 1000)
        start = chance.randrange(max(duration - width, 1))
        for moved in (start, start + width // 10):
            begun = time.perf_counter()
            window(viewer, moved, moved + width)
            times.append((time.perf_counter() - begun) * 1000)
    return sorted(times)


def percentile(times, share):
    return times[min(int(len(times) * share), len(times) - 1)]


def main(path):
    with viewer(path) as one:
        print(f"first picture       {first_picture(one):8.2f} s")
    with viewer(path) as one:
        print(f"with the index      {first_picture(one):8.2f} s")
        times = moves(one)
    for share in (0.5, 0.95, 1):
        print(f"a move, {share:4.0%}       {percentile(times, share):8.1f} ms")


if __name__ == "__main__":
    main(sys.argv[1])
