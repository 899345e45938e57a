"""Damaged inputs for the command line: traces, execution traces, timelines and tables, damaged in every way that we
know.

A seed decides everything, so a failure can be repeated.
"""

import copy
import json
import re
import struct
import zlib

from vestige import profile, record_function
from vestige.reading.metadata import SHAPES

EXTREMES = [0, 1, 7, 0x7F, 0xFF, 1 << 15, (1 << 16) - 1, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40]
EXTREMES += [(1 << 62) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
HEADERS = ((0, 76),)  # byte ranges that the checksum behind them covers, in a plain trace
TEXT = re.compile(rb"[\x20-\x7e]{4,}")
SIGNS = b'[]{}",:0123456789eE.-+\\untrfalse \x00\x1b\xc3\xff'
ODD_VALUES = [
    None, True, False, 0, 1, -1, 1 << 31, 1 << 63, 1 << 64, 10**400, -(10**30), 0.5, 1e308, -0.0, "", "x", "\x1b[2J",
    "\ud800", "0", "<None>", "Tensor(float)", "GenericList[", "Tensor(", "nan", [], [[]], [None], [1, "x"], {}, {"a": 1},
    {"name": {}}, {"pid": "x"}, {"rank": 1e99}, {"rank": True}, {"sample_bytes": "many"}, {"covered": [1]}, [[[[[[]]]]]],
]  # fmt: skip
DEEP = [60, 70, 200, 900, 3000, 100_000]


# ---- bytes -------------------------------------------------------------------


def damage_bytes(random, data):
    """Makes a few changes of any kind."""
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 3, 8, 30])):
        change = random.choice([_flip, _set_word, _set_text, _set_text, _cut, _copy, _clear, _insert])
        change(random, data)
        if not data:
            break
    if random.random() < 0.7:
        mend_header(data)
    return bytes(data)


def mend_header(data):
    """Corrects the header's checksum, so that readers accept the changed header."""
    for start, end in HEADERS:
        if len(data) >= end + 4 and data[:7] == b"vestige":
            struct.pack_into("<I", data, end, zlib.crc32(bytes(data[start:end])))


def _place(random, data):
    """Returns a place, mostly one with data: traces consist mostly of zeros."""
    for _ in range(20):
        at = random.randrange(len(data))
        if data[at]:
            return at
    return random.randrange(len(data))


def _flip(random, data):
    data[_place(random, data)] ^= 1 << random.randrange(8)


def _set_word(random, data):
    size = random.choice([1, 2, 4, 8])
    at = _place(random, data) // size * size
    value = random.choice(EXTREMES) & ((1 << 8 * size) - 1)
    data[at : at + size] = value.to_bytes(size, "little")[: len(data) - at]


def _set_text(random, data):
    """Changes names, files and metadata, and keeps their length."""
    found = list(TEXT.finditer(data))
    if not found:
        return
    at, end = random.choice(found).span()
    if random.random() < 0.3:
        data[at:end] = (random.choice([b"[", b'{"a":', b"9", b"\x1b"]) * (end - at))[: end - at]
        return
    for _ in range(random.randint(1, 4)):
        data[random.randrange(at, end)] = random.choice(SIGNS)


def _cut(random, data):
    del data[random.randrange(len(data)) :]


def _copy(random, data):
    size = random.choice([8, 64, 4096, 16384])
    source, target = random.randrange(len(data)), random.randrange(len(data))
    piece = data[source : source + size]
    data[target : target + len(piece)] = piece


def _clear(random, data):
    at = random.randrange(len(data))
    end = min(len(data), at + random.choice([8, 512, 4096]))
    data[at:end] = bytes([random.choice([0, 0, 0xFF])]) * (end - at)


def _insert(random, data):
    at = random.randrange(len(data))
    data[at:at] = bytes(random.randrange(256) for _ in range(random.choice([1, 8, 100])))


# ---- metadata ----------------------------------------------------------------


def deep(random):
    depth = random.choice(DEEP)
    opening, closing = random.choice([("[", "]"), ('{"a":', "}")])
    return opening * depth + "1" + closing * depth


def odd_json(random):
    """Returns text that is mostly valid JSON, but hardly ever of the expected shape."""
    kind = random.random()
    if kind < 0.15:
        return deep(random)
    if kind < 0.2:
        return random.choice(["", "{", "[1,", "NaN", "-Infinity", "9" * 5000, '"' + "x" * 100_000 + '"', "\udcff"])
    value = random.choice(ODD_VALUES)
    if kind < 0.5:
        names = ("pid", "tid", "time_ns", "how", "rank", "world_size", "sample_bytes", "covered", "overflow", "pauses")
        value = {name: random.choice(ODD_VALUES) for name in names if random.random() < 0.5}
    elif kind < 0.6:
        value = [random.choice(ODD_VALUES) for _ in range(random.randrange(4))]
    return json.dumps(value)


def odd_trace(random, path, **options):
    """Makes a small valid trace whose metadata and arguments are random."""
    prof = profile(output=str(path), overwrite=True, with_stack=True, **options)
    for key in SHAPES:
        if random.random() < 0.5:
            text = odd_json(random)
            prof._set_metadata(key, text.encode("utf-8", "replace").decode())
    with prof:
        for _ in range(3):
            with record_function(json.dumps(random.choice(ODD_VALUES)), odd_json(random)[:2000]):
                held = bytearray(1 << 12)
        del held
    return path


# ---- JSON --------------------------------------------------------------------


def damage_json(random, document):
    """Returns a changed document as text: values replaced, removed, repeated or moved; or damaged bytes."""
    if random.random() < 0.15:
        return damage_bytes(random, json.dumps(document).encode())
    document = copy.deepcopy(document)
    for _ in range(random.choice([1, 1, 2, 5])):
        _change(random, document)
    text = json.dumps(document)
    if random.random() < 0.1:
        text = text.replace("1", deep(random), 1)
    return text.encode("utf-8", "backslashreplace")


def _change(random, document):
    places = list(_places(document))
    if not places:
        return
    holder, key = random.choice(places)
    action = random.random()
    if action < 0.6:
        holder[key] = copy.deepcopy(random.choice(ODD_VALUES))
    elif action < 0.8:
        del holder[key]
    elif action < 0.9 and isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    else:
        other, name = random.choice(places)
        holder[key] = copy.deepcopy(other[name])


def _places(value):
    work = [value]
    while work:
        one = work.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            yield one, key
            work.append(one[key])
