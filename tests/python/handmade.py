"""Trace files made by hand, byte by byte, as src/store/format.h specifies; also files that no writer would produce."""

import struct
import zlib

PAGE = 4096
EPOCH = 1_700_000_000_000_000_000
START = 1000  # ticks, which are nanoseconds
RECORDS, DEFINITIONS = 1, 2
ENTER, EXIT = 0, 1
PYTHON, OPERATOR, THREAD, STACK, MEMORY = 1, 7, 16, 20, 22
LANGUAGE = 1
SWITCH, ALLOC_LARGE = 11, 0x81
MALLOC = 1


def trace(*chunks, version=1):
    """Returns a finished file."""
    body, clock = b"", struct.pack("<QqQ", START, START, EPOCH + START)
    for sequence, (kind, payload, *threads) in enumerate(chunks):
        size = (64 + len(payload) + PAGE - 1) // PAGE * PAGE
        head = struct.pack("<IHHII", 0x6B6E6863, kind, 0, size, *threads or (0,)) + clock
        head += struct.pack("<I", sequence)
        head += struct.pack("<IIIQ", zlib.crc32(head), len(payload) // 8, 1, START + 1_000_000_000)
        body += (head + payload).ljust(size, b"\0")
    head = b"vestige\n" + struct.pack("<IIIId", version, 0x01020304, PAGE, 0, 1e9) + clock + bytes(range(16))
    head += struct.pack("<I", 4242)
    head += struct.pack("<IIIQQ", zlib.crc32(head), 2, 1, 0, PAGE + len(body))
    return head.ljust(PAGE, b"\0") + body


def definitions(*entries):
    return DEFINITIONS, b"".join(entries)


def records(*words, thread=1):
    return RECORDS, struct.pack(f"<{len(words)}Q", *words), thread


# ---- entries -------------------------------------------------------------------


def entry(kind, id=0, a="", b="", line=0, numbers=(0, 0, 0)):
    texts = a.encode() + b.encode()
    size = (48 + len(texts) + 7) // 8 * 8
    head = struct.pack("<IHHIiIIQQQ", size, kind, 0, id, line, len(a.encode()), len(b.encode()), *numbers)
    return (head + texts).ljust(size, b"\0")


def define(id, name="f", file="a.py", line=1, kind=PYTHON):
    return entry(kind, id, name, file, line)


def thread(number=1, tid=4242, name="MainThread"):
    return entry(THREAD, number, name, numbers=(tid, 0, 0))


def has_memory():
    return entry(MEMORY)


def stack(id, parent, function, line=1):
    return struct.pack("<IHHIIQ", 24, STACK, LANGUAGE, id, parent, function << 32 | line)


# ---- words ---------------------------------------------------------------------


def enter(id, delta=10):
    return delta << 32 | id << 2 | ENTER


def leave(id, delta=10):
    return delta << 32 | id << 2 | EXIT


def escape(type, *payload, delta=10):
    return (delta << 32 | len(payload) << 10 | type << 2 | 3, *payload)


def allocate(address, size, stack, delta=10):
    return (delta << 32 | MALLOC << 10 | ALLOC_LARGE << 2 | 3, address, size, stack)
