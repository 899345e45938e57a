"""Reads a large JSON document in pieces: the elements of one array, and the document's other fields.

Stricter than Python's json: NaN, Infinity and bytes that are not UTF-8 are errors, and an error says where it is. This
module does not know the meaning of elements.
"""

from __future__ import annotations

import codecs
import gc
import gzip
import json
import os
import re
import zlib
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

CHUNK = 1 << 20
SPACE = re.compile(r"[ \t\n\r]*")
STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


@contextmanager
def without_collector() -> Iterator[None]:
    """Elements are many objects, and none is in a reference cycle."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Broken(Exception):
    """Raised for a document that is not valid JSON; says where and why."""


class _Constant(Exception):
    """NaN or an infinity."""


def _refuse(name: str) -> Any:
    raise _Constant(name)


class Document:
    """A JSON object with a field that is a long array."""

    def __init__(self, path: str, progress: Callable[[float], None]) -> None:
        """`path` may be gzipped, whatever its name."""
        self.fields: dict[str, Any] = {}  # the fields read so far, without the array
        self._progress = progress
        self._raw = open(path, "rb")  # noqa: SIM115 (closed by close())
        self._size = os.fstat(self._raw.fileno()).st_size or 1
        packed = self._raw.read(2) == b"\x1f\x8b"
        self._raw.seek(0)
        self._file: Any = gzip.GzipFile(fileobj=self._raw) if packed else self._raw
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._decode = json.JSONDecoder(parse_constant=_refuse).raw_decode
        self._text = ""
        self._at = 0
        self._ended = False
        self._bytes = 0  # bytes decoded so far
        self._line = 1  # line of the text's beginning
        self._column = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._raw.close()

    def elements(self, name: str) -> Iterator[Any]:
        """Yields the elements of the array `name`. Text after the document is an error."""
        if self._next() != "{":
            raise self._error("the document is not an object")
        self._at += 1
        more = self._next() != "}"
        while more:
            key = self._value()
            if not isinstance(key, str):
                raise self._error("a field's name is not a string")
            self._expect(":")
            if key == name and self._next() == "[":
                self.fields[key] = []
                yield from self._array()
            else:
                self.fields[key] = self._value()
            more = self._next() == ","
            self._at += more
        self._expect("}")
        if self._next():
            raise self._error("there is more after the end of the document")

    def _array(self) -> Iterator[Any]:
        self._at += 1
        if self._next() == "]":
            self._at += 1
            return
        while True:
            yield self._value()
            after = self._next()
            if after not in ("", ",", "]"):
                raise self._error("expecting ',' or ']'")
            self._expect(after or "]")
            if after == "]":
                return
            self._next()

    def _next(self) -> str:
        """Returns the character after white space; "" at the end."""
        while True:
            self._at = SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _expect(self, character: str) -> None:
        found = self._next()
        if found != character:
            raise self._error(f"expecting {character!r}") if found else self._cut()
        self._at += 1

    def _value(self) -> Any:
        self._next()
        wanted = CHUNK
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._ended and self._may_be_cut(error):
                    while len(self._text) - self._at < wanted and self._more():
                        pass
                    wanted *= 2
                    continue
                if self._may_be_cut(error):
                    raise self._cut() from None
                raise self._error(error.msg[0].lower() + error.msg[1:], error.pos) from None
            except _Constant as constant:
                raise self._error(f"{constant} is not JSON", self._find_constant()) from None
            except RecursionError:
                raise self._error("nested too deeply") from None
            except ValueError as error:  # a number with thousands of digits
                raise self._error(str(error)) from None
            if end < len(self._text) or not self._more():  # a number may continue in the next chunk
                self._at = end
                return value

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Returns whether more text could resolve the error."""
        return error.pos + 12 >= len(self._text) or error.msg.startswith("Unterminated string")

    def _more(self) -> bool:
        """Drops the text that was read and adds a chunk. Returns false at the end of the file, and then moves
        nothing.
        """
        if self._ended:
            return False
        try:
            data = self._file.read(CHUNK)
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
                raise
            cut = isinstance(error, EOFError)
            raise self._error(
                "the compressed file " + ("is cut off" if cut else f"is damaged: {error}"), None
            ) from None
        try:
            text = self._decoder.decode(data, not data)
        except UnicodeDecodeError as error:
            where = self._bytes + error.start - len(error.object) + len(data)
            raise Broken(f"byte {where}: not UTF-8") from None
        self._bytes += len(data)
        self._ended = not data
        self._progress(min(self._raw.tell() / self._size, 1.0))
        if not text:
            return False if self._ended else self._more()
        self._line, self._column = self._place(self._at)
        self._text = self._text[self._at :] + text
        self._at = 0
        return True

    def _place(self, at: int) -> tuple[int, int]:
        line = self._line + self._text.count("\n", 0, at)
        newline = self._text.rfind("\n", 0, at)
        return line, at - newline if newline >= 0 else self._column + at

    def _find_constant(self) -> int:
        for match in STRING_OR_CONSTANT.finditer(self._text, self._at):
            if not match.group().startswith('"'):
                return match.start()
        return self._at

    def _error(self, what: str, at: int | None = None) -> Broken:
        line, column = self._place(self._at if at is None else at)
        return Broken(f"line {line}, column {column}: {what}")

    def _cut(self) -> Broken:
        line, column = self._place(len(self._text))
        return Broken(f"line {line}, column {column}: the file is cut off")
