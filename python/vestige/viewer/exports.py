"""Files for other viewers: the whole traces or a range. A file is written on request and deleted after it was sent.

The page hands Perfetto its file, as https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui describes.
speedscope fetches its file from an address (`#profileURL=`). A ticket opens such an address for one file and a limited
time; the only other origin that may read the file is https://www.speedscope.app.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import time
from urllib.parse import quote

from vestige._core import TraceError, export_traces
from vestige.reading.exports import FORMATS

from .answers import BINARY, JSON, Answer, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .traces import Shown

# The formats that can be requested, and the media types of their files.
TYPES = {
    "perfetto": BINARY,
    "speedscope": JSON,
    "chrome": "application/gzip",
    "flamegraph": "image/svg+xml",
    "folded": "text/plain; charset=utf-8",
    "pprof": "application/gzip",
    "callgrind": BINARY,
}
SPEEDSCOPE = "https://www.speedscope.app"
TICKET_SECONDS = 600
TICKETS_MAX = 16


class Wanted:
    """A requested file."""

    def __init__(self, format: str, traces: Sequence[Shown], start_ns: int | None, end_ns: int | None) -> None:
        """Times are absolute; None stands for the beginning or the end."""
        if format not in TYPES:
            raise Problem(400, f"no format {format!r}; there are {', '.join(TYPES)}")
        self.format = format
        self.traces = traces
        self.start_ns = start_ns
        self.end_ns = end_ns

    @property
    def name(self) -> str:
        stem = os.path.splitext(os.path.basename(self.traces[0].source.path))[0]
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._-") or "trace"
        part = "" if self.start_ns is None and self.end_ns is None else "-range"
        return f"{stem}{part}{FORMATS[self.format].default}"

    def write(self, check: Callable[[float], None]) -> Answer:
        """Writes the file into a folder that is removed together with the answer."""
        folder = tempfile.mkdtemp(prefix="vestige-")
        try:
            path = os.path.join(folder, self.name)
            traces = [shown.open() for shown in self.traces]
            if self.start_ns is not None or self.end_ns is not None:
                for trace in traces:
                    trace.set_range(self.start_ns, self.end_ns)
            export_traces(traces, path, all_windows=True, progress=check, format=self.format)
            disposition = "Content-Disposition", f'attachment; filename="{self.name}"'
            return Answer(
                type=TYPES[self.format],
                headers=[disposition],
                file=path,
                close=lambda: shutil.rmtree(folder, True),
            )
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, (OSError, TraceError, ValueError)):
                raise Problem(500, f"{self.name} cannot be written: {error}") from None
            raise


class Tickets:
    """Files that another origin may fetch."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[float, Wanted]] = {}

    def give(self, wanted: Wanted, base: str) -> dict[str, str]:
        """Returns the address of the file, and the address to open so that speedscope fetches it."""
        now = time.monotonic()
        alive = [(key, value) for key, value in self._waiting.items() if value[0] > now]
        key = secrets.token_urlsafe(24)
        self._waiting = dict([*alive[-TICKETS_MAX + 1 :], (key, (now + TICKET_SECONDS, wanted))])
        url = f"{base}/handover/{key}/{wanted.name}"
        return {
            "url": url,
            "open": f"{SPEEDSCOPE}/#profileURL={quote(url, safe='')}&title={quote(wanted.name, safe='')}",
        }

    def redeem(self, method: str, path: str, origin: str | None) -> Callable[[Callable[[float], None]], Answer]:
        """Checks a request for /handover/KEY/NAME. Returns a function that makes the answer. Browsers first ask by
        OPTIONS whether a public page may ask a local server.
        """
        if origin is not None and origin != SPEEDSCOPE:
            raise Problem(403, "requests from pages of other sites are refused")
        key, _, name = path.removeprefix("/handover/").partition("/")
        until, wanted = self._waiting.get(key, (0.0, None))
        if wanted is None or until < time.monotonic() or name != wanted.name:
            raise Problem(404, "this address has expired or is wrong: open the file from the viewer again")
        if method not in ("GET", "OPTIONS"):
            raise Problem(405, f"{method} is not supported at this address")
        headers = [("Vary", "Origin"), ("Cross-Origin-Resource-Policy", "cross-origin")]
        if origin is not None:
            headers.append(("Access-Control-Allow-Origin", origin))

        def answer(check: Callable[[float], None]) -> Answer:
            if method == "OPTIONS":
                private = ("Access-Control-Allow-Private-Network", "true")
                return Answer(status=204, headers=[*headers, ("Access-Control-Allow-Methods", "GET"), private])
            file = wanted.write(check)
            file.headers += headers
            return file

        return answer
