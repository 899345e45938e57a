"""Answers of the server, and one-line problems."""

from __future__ import annotations

import json
import math
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

JSON = "application/json; charset=utf-8"
RANGE_AT = 16  # position of the range in the head of a picture that the core drew
BINARY = "application/octet-stream"


class Answer:
    """The bytes of an answer, or a file that is read while it is sent."""

    def __init__(
        self,
        body: bytes = b"",
        type: str = BINARY,
        *,
        status: int = 200,
        headers: Iterable[tuple[str, str]] = (),
        is_page: bool = False,
        file: str | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        self.status = status
        self.type = type
        self.headers = list(headers)
        self.is_page = is_page
        self._body = body
        self._file = open(file, "rb") if file is not None else None  # noqa: SIM115 (closed by close())
        self.length = len(body) if self._file is None else os.fstat(self._file.fileno()).st_size
        self._close = close

    def pieces(self, size: int) -> Iterator[bytes | memoryview]:
        if self._file is None:
            body = memoryview(self._body)
            for at in range(0, len(body), size):
                yield body[at : at + size]
            return
        left = self.length
        while left > 0 and (piece := self._file.read(min(size, left))):
            left -= len(piece)
            yield piece

    def close(self) -> None:
        """Called when the answer was sent, or nobody waits for it."""
        if self._file is not None:
            self._file.close()
        if self._close is not None:
            self._close()


class Problem(Exception):
    """The reason why there is no answer, in one line for the user."""

    def __init__(self, status: int, message: str, *, headers: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.headers = list(headers)

    def answer(self) -> Answer:
        return as_json({"error": str(self)}, status=self.status, headers=self.headers)


def as_json(value: Any, *, status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> Answer:
    return Answer(to_json(value).encode(), JSON, status=status, headers=headers)


def as_picture(drawn: bytes, start: int, end: int) -> Answer:
    """Converts a picture that the core drew to times that begin at the page's beginning."""
    picture = bytearray(drawn)
    struct.pack_into("<qq", picture, RANGE_AT, start, end)
    return Answer(bytes(picture))


def to_json(value: Any) -> str:
    """Returns JSON that JavaScript can parse: NaN and infinities become null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    return [_finite(member) for member in value] if isinstance(value, (list, tuple)) else value
