"""Addresses of functions in a library or program that another process has mapped: reads the necessary parts of ELF. gdb
would find the addresses too, but reads all symbols of all libraries first, while the process stands still.
"""

from __future__ import annotations

import mmap
import struct

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
PAGE = 4096
LOADED, SYMBOLS = 1, 11  # kinds of segments and sections


class NotElf(Exception):
    """Raised for a file that this module cannot read."""


class Library:
    """A mapped file. `start` is the address of the file's beginning."""

    def __init__(self, path: str, start: int) -> None:
        self.path = path
        self.start = start
        with open(path, "rb") as file:
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._read_tables()
            except (ValueError, struct.error, IndexError):
                raise NotElf(path) from None
        first = min((vaddr - offset for offset, vaddr, _ in self._segments), default=0)
        self._bias = start - first

    def _read_tables(self) -> None:
        facts = HEADER.unpack_from(self._data, 0)
        magic, segments_at, sections_at = facts[0], facts[5], facts[6]
        if not magic.startswith(b"\x7fELF\x02\x01"):  # 64 bits, little-endian
            raise ValueError(magic)
        segment_count, section_count = facts[10], facts[12]
        self._segments = []  # offset, address and size in the file
        for index in range(segment_count):
            kind, _, offset, vaddr, _, size, _, _ = SEGMENT.unpack_from(self._data, segments_at + index * SEGMENT.size)
            if kind == LOADED:
                self._segments.append((offset, vaddr, size))
        sections = [SECTION.unpack_from(self._data, sections_at + i * SECTION.size) for i in range(section_count)]
        self._symbols: dict[str, tuple[int, int]] = {}  # values and sizes
        for section in sections:
            if section[1] == SYMBOLS:
                self._read_symbols(section[4], section[5], sections[section[6]][4])

    def _read_symbols(self, at: int, size: int, names_at: int) -> None:
        for name, _, _, section, value, length in SYMBOL.iter_unpack(self._data[at : at + size]):
            if section and value:
                end = self._data.find(b"\0", names_at + name)
                text = self._data[names_at + name : end].decode("ascii", "replace")
                self._symbols.setdefault(text, (value, length))

    def address(self, name: str) -> int:
        """Returns the address of a function or variable in the process; 0 if there is none of this name."""
        return self.place(name)[0]

    def place(self, name: str) -> tuple[int, int]:
        """Returns the begin and end of a function or variable in the process; (0, 0) if there is none of this name."""
        value, size = self._symbols.get(name, (0, 0))
        return (self._bias + value, self._bias + value + size) if value else (0, 0)

    def read(self, name: str, size: int) -> bytes | None:
        """Returns the bytes of a variable or function in the file."""
        value, _ = self._symbols.get(name, (0, 0))
        for offset, vaddr, length in self._segments if value else ():
            if vaddr <= value and value + size <= vaddr + length:
                return self._data[offset + value - vaddr : offset + value - vaddr + size]
        return None

    def code(self, name: str) -> bytes:
        """Returns the code of a function that this library is known to have."""
        begin, end = self.place(name)
        found = self.read(name, end - begin)
        assert found, name
        return found

    def head(self) -> bytes:
        """Returns the first page of the file, which contains the build id and is mapped at `start`."""
        return self._data[:PAGE]
