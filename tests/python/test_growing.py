"""Sums that are updated while a file grows, compared with one pass over the file at that time: golden traces and files
of the fuzz corpus, which grow chunk by chunk and record by record.
"""

import gzip
import random
import struct
from pathlib import Path

import pytest

from vestige._core import Growing, Trace, TraceError

pytestmark = pytest.mark.any_python

ROOT = Path(__file__).resolve().parents[2]
TRACES = sorted((ROOT / "tests" / "golden" / "traces").glob("*.vst*"))
CORPUS = sorted((ROOT / "fuzz" / "corpus" / "reader").iterdir())
HEADER, CHUNK = 4096, 64  # src/store/format.h
STATE, SIZE, SLOT_SIZE = 80, 96, 120  # size of the file's header
RECORDS, ESCAPE = 1, 3
FIXED, FIXED_WORDS = 128, (1, 3, 1, 2, 0)  # escapes with a fixed number of words
RUNNING = ("running_ns", "self_running_ns")
COMPENSATED = {"error_ns"}  # columns that growing sums lack


def words_of(word):
    """Returns the number of words of the record that begins with this word (include/vestige/wire.h)."""
    if word & 3 != ESCAPE:
        return 1
    kind = word >> 2 & 0xFF
    return 1 + (word >> 10 & 0x3FFFFF if kind < FIXED else FIXED_WORDS[kind - FIXED])


class GrowingFile:
    """A file with some chunks of another file. A chunk that a thread still writes has some of its records."""

    def __init__(self, path, whole, seed):
        self.path, self.whole, self.random = path, whole, random.Random(seed)
        self.chunks, at = [], HEADER
        while at + CHUNK <= len(whole):
            kind, size, thread = struct.unpack_from("<4xH2xII", whole, at)
            if size < CHUNK or at + size > len(whole):
                break
            self.chunks.append((at, kind, size, thread))
            at += size
        self.shown, self.words = 0, [0] * len(self.chunks)
        self.grow()

    @property
    def is_whole(self):
        return self.shown == len(self.chunks)

    def grow(self):
        self.shown = min(self.shown + self.random.randrange(3), len(self.chunks))
        now = bytearray(self.whole[:HEADER])
        struct.pack_into("<I", now, STATE, 0)
        struct.pack_into("<Q", now, SIZE, 0)
        for number, (at, kind, size, thread) in enumerate(self.chunks[: self.shown]):
            later = self.chunks[number + 1 : self.shown]
            chunk = bytearray(self.whole[at : at + size])
            if kind == RECORDS and not any(other[1] == RECORDS and other[3] == thread for other in later):
                self.hide(number, chunk)
            now += chunk
        self.path.write_bytes(now) if not self.path.exists() else self.overwrite(now)

    def hide(self, number, chunk):
        """Unseals the chunk and shows some more of its records."""
        words = memoryview(chunk)[CHUNK:].cast("Q")
        at, more = self.words[number], self.random.randrange(400)
        while at < len(words) and words[at] and more:
            at, more = at + words_of(words[at]), more - 1
        self.words[number] = at
        for hidden in range(at, len(words)):
            words[hidden] = 0
        struct.pack_into("<I", chunk, 48, 0)
        struct.pack_into("<Q", chunk, 56, 0)

    def overwrite(self, content):
        with open(self.path, "r+b") as file:
            file.write(content)

    def finish(self):
        self.overwrite(self.whole)


def differences(growing, path, *, but=()):
    """Returns the columns whose values differ in one pass. The length of a tick may become known a little better later."""
    rows, truth = growing.read(False)["functions"], Trace(str(path)).tables(["functions"])["functions"]
    if list(rows["func"]) != list(truth["func"]):
        return {"func": (list(rows["func"]), list(truth["func"]))}
    return {
        name: (list(rows[name]), list(truth[name]))
        for name in set(rows.columns) - COMPENSATED - set(but)
        if any(
            (a is None) != (b is None) or abs((a or 0) - (b or 0)) > (100 + 1e-6 * abs(b or 0)) * name.endswith("_ns")
            for a, b in zip(rows[name], truth[name])
        )
    }


def bytes_of(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def can_grow(whole):
    """Returns whether the file can grow: it is not packed, and has no slots that are used again."""
    return len(whole) > HEADER and not struct.unpack_from("<I", whole, SLOT_SIZE)[0]


@pytest.mark.parametrize("trace", [each for each in TRACES if can_grow(bytes_of(each))], ids=lambda path: path.stem)
def test_sums_of_a_golden_trace_are_those_of_one_pass_however_it_grows(tmp_path, trace):
    """Compares everything except how long functions ran: switches are reported late, and tests/c/test_growing_running.c
    tests them exactly.
    """
    whole = bytes_of(trace)
    for seed in range(6):
        file = GrowingFile(tmp_path / f"{seed}.vst", whole, seed)
        growing = Growing(str(file.path), 1 << 61)
        while not file.is_whole:
            assert differences(growing, file.path, but=RUNNING) == {}
            file.grow()
        file.finish()
        assert differences(growing, file.path, but=RUNNING) == {}


@pytest.mark.parametrize("trace", CORPUS, ids=lambda path: path.name)
def test_sums_of_a_damaged_file_are_those_of_one_pass_or_refused(tmp_path, trace):
    whole = trace.read_bytes()
    if not can_grow(whole):
        return
    path = tmp_path / "t.vst"
    path.write_bytes(whole)
    try:
        growing = Growing(str(path), 1 << 61)
        found = differences(growing, path)
    except TraceError:
        return
    # If a file ends in the middle of a record, growing sums wait for the rest.
    assert found == {} or growing.info()["records"] < Trace(str(path)).info()["records"]
