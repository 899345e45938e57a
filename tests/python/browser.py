"""Chromium without a window, driven through a pipe by its own protocol: for tests, benchmarks and pictures of pages.

No package is needed for it. One browser has many pages; `Page.wait` runs until an expression of the page is true.
"""

import base64
import json
import os
import shutil
import subprocess
import time
import zlib
from itertools import count
from pathlib import Path
from select import select

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "--enable-precise-memory-info",
    "--force-color-profile=srgb",
]
KEYS = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}


class Browser:
    """A browser in its own process, ended by `close`."""

    def __init__(self, folder: Path, width: int = 1366, height: int = 768) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = [BROWSER, *OPTIONS, f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank"]
        # The browser reads from descriptor 3 and writes to descriptor 4; a shell opens both.
        script = f'exec "$@" 3</proc/self/fd/{to_read} 4>/proc/self/fd/{to_write}'
        self._process = subprocess.Popen(
            ["sh", "-c", script, "sh", *command],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._numbers = count(1)
        self._rest = b""
        self.events: list[dict] = []

    def send(self, method: str, session: str | None = None, **params: object) -> dict:
        """Calls a method of the protocol and waits for the answer; keeps events that arrive meanwhile."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, timeout: float = 60) -> dict:
        end = time.monotonic() + timeout
        while b"\0" not in self._rest:
            if not select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("the browser ended")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def open(self, url: str = "about:blank", *, dark: bool = False) -> "Page":
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        page.send("Page.enable")
        page.send("Runtime.enable")
        page.set_dark(dark)
        page.go(url)
        return page

    def close(self) -> None:
        try:
            self.send("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target

    def send(self, method: str, **params: object) -> dict:
        return self.browser.send(method, self.session, **params)

    def go(self, url: str) -> None:
        self.send("Page.navigate", url=url)

    def set_dark(self, dark: bool) -> None:
        scheme = "dark" if dark else "light"
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def set_size(self, width: int, height: int, ratio: float = 1) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False
        )

    def eval(self, expression: str) -> object:
        """Returns the value of an expression; for a promise, the value that the promise resolves to."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait(self, expression: str, timeout: float = 20) -> object:
        """Waits until the expression is true, and returns its value."""
        end = time.monotonic() + timeout
        while True:
            try:
                value = self.eval(expression)
            except AssertionError as error:
                value, why = None, str(error)
            else:
                why = repr(value)
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"never true: {expression} ({why})")
            time.sleep(0.02)

    def errors(self) -> list[str]:
        """Returns the errors that the page's scripts threw or wrote to the console."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            if event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append(str(event["params"]["args"]))
        return found

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float, *, shift: bool = False) -> None:
        self.drag([(x, y)], shift=shift)

    def drag(self, places: list[tuple[float, float]], *, shift: bool = False) -> None:
        held = {"button": "left", "modifiers": 8 if shift else 0}
        self.mouse("mouseMoved", *places[0])
        self.mouse("mousePressed", *places[0], clickCount=1, **held)
        for place in places[1:]:
            self.mouse("mouseMoved", *place, buttons=1, **held)
        self.mouse("mouseReleased", *places[-1], clickCount=1, **held)

    def wheel(self, x: float, y: float, delta: float, *, shift: bool = False) -> None:
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta, modifiers=8 if shift else 0)

    def pinch(self, before: list[tuple[float, float]], after: list[tuple[float, float]]) -> None:
        """Moves two fingers from two places to two others."""
        for kind, places in (("touchStart", before), ("touchMove", after), ("touchEnd", [])):
            points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
            self.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def key(self, key: str, *, shift: bool = False) -> None:
        code = KEYS.get(key, ord(key.upper()[0]))
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def screenshot(self) -> "Picture":
        return Picture(self._capture(optimizeForSpeed=True))

    def save_screenshot(self, path: Path) -> None:
        path.write_bytes(self._capture(optimizeForSpeed=False))

    def _capture(self, **options: object) -> bytes:
        return base64.b64decode(self.send("Page.captureScreenshot", format="png", **options)["data"])

    def tree(self) -> list[tuple[str, str]]:
        """Returns the role and name of each node that a screen reader reads."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")
        ]

    def close(self) -> None:
        self.browser.send("Target.closeTarget", targetId=self.target)


class Picture:
    """Decodes a PNG as a browser writes screenshots: 8 bits of RGB, each line stored as the difference from the line
    above.
    """

    def __init__(self, data: bytes) -> None:
        at, packed = 8, b""
        while at < len(data):
            length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
            body = data[at + 8 : at + 8 + length]
            if kind == b"IHDR":
                self.width, self.height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
                self._channels = {2: 3, 6: 4}[body[9]]
            if kind == b"IDAT":
                packed += body
            at += 12 + length
        self._raw = zlib.decompress(packed)
        self._line = self.width * self._channels + 1
        assert set(self._raw[:: self._line]) <= {0, 2}, "lines of this PNG are packed in a way that is not read here"

    def at(self, x: float, y: float) -> tuple[int, int, int]:
        first = int(x) * self._channels + 1
        values = [0, 0, 0]
        for line in range(0, (int(y) + 1) * self._line, self._line):
            keep = self._raw[line] == 2
            for channel in range(3):
                values[channel] = (keep * values[channel] + self._raw[line + first + channel]) & 255
        return values[0], values[1], values[2]
