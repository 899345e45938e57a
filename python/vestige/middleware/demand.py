"""A trace of one request on demand: the request has `?vestige=1` in its URL, and a secret that proves its right. The
process is recorded from the beginning of this request to its end. Only one such recording runs at a time: while
another one runs, and until some time has passed since the last one, the request is handled as usual, and the response
says that there is no trace. Any thread.
"""

from __future__ import annotations

import hmac
import os
import re
import time
from threading import Lock

from vestige import _core
from vestige.base.new_files import private_folder
from vestige.base.quantities import parse_file_bound, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta

    from vestige.profiler import profile

SECRET_MIN = 16  # characters
SECRET_HEADER = "X-Vestige-Secret"  # noqa: S105 (this is its name, not its value)
TRACE_HEADER = "X-Vestige-Trace"


class Demand:
    """Decides which requests get a trace of their own."""

    def __init__(
        self,
        secret: str,
        folder: str | os.PathLike[str],
        every: str | float | timedelta,
        max_traces: int,
        max_size: str | int,
    ) -> None:
        if not isinstance(secret, str):
            raise TypeError(f"secret must be a str, not {type(secret).__name__}")
        if len(secret) < SECRET_MIN:
            raise ValueError(f"secret must have at least {SECRET_MIN} characters, so that nobody can guess it")
        if isinstance(max_traces, bool) or not isinstance(max_traces, int) or max_traces < 1:
            raise ValueError(f"max_traces must be a number above 0, not {max_traces!r}")
        self._secret = secret.encode()
        self._folder = os.path.abspath(os.fspath(folder))
        self._every_s = parse_time("every", every) / 1e9
        self._max_size = parse_file_bound("max_size", max_size)
        self._left = max_traces
        self._next_s = 0.0
        self._lock = Lock()  # guards the two attributes above
        private_folder(self._folder)

    def is_asked_for(self, query: str | bytes) -> bool:
        if isinstance(query, bytes):
            return b"vestige=1" in query and b"vestige=1" in query.split(b"&")
        return "vestige=1" in query and "vestige=1" in query.split("&")

    def begin(self, name: str, secret: str | bytes | None) -> OwnTrace | None:
        """Starts the recording. Returns None if the secret is wrong; the response does not say so."""
        if secret is None:
            return None
        given = secret if isinstance(secret, bytes) else secret.encode("latin-1", "replace")
        if not hmac.compare_digest(given, self._secret):
            return None
        if _core.recording():
            return OwnTrace("none: something is recorded already")
        refusal = self._take_turn()
        if refusal is not None:
            return OwnTrace(refusal)
        return self._start(name)

    def _take_turn(self) -> str | None:
        now = time.monotonic()
        with self._lock:
            if self._left == 0:
                return "none: this process has written as many as it may"
            if now < self._next_s:
                return f"none: wait {self._next_s - now:.0f} s"
            self._left -= 1
            self._next_s = now + self._every_s
        return None

    def _start(self, name: str) -> OwnTrace:
        from vestige.profiler import profile

        words = re.sub(r"[^A-Za-z0-9]+", "-", name)[:60].strip("-")
        file = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{self._left}-{words}.vst"
        try:
            prof = profile(output=os.path.join(self._folder, file), max_size=self._max_size)
            prof.start()
        except Exception:  # another thread began to record, or the disk is full
            return OwnTrace("none: the recording could not be started")
        return OwnTrace(file, prof)


class OwnTrace:
    """The trace of one request, or the reason why there is none."""

    __slots__ = ("_profile", "told")

    def __init__(self, told: str, prof: profile | None = None) -> None:
        self.told = told
        self._profile = prof

    def end(self) -> None:
        prof, self._profile = self._profile, None
        if prof is None:
            return
        try:
            prof.__exit__(None, None, None)
        except Exception:  # the records up to this moment are in the file
            pass
