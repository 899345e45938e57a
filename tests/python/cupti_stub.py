"""Loads the stub of libcupti (tests/cupti/stub.c), and makes the records that a test lets the stub deliver, with
NVIDIA's offsets written down independently of the collector. A process uses the stub once, before it records devices:

    stub = Stub(path, version=28)
    with vestige.profile(devices=True): stub.launch(...)
"""

import ctypes
import os
import struct
import threading
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "cupti" / "stub.c"
MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, OVERHEAD, PEER, SYNC, EXTERNAL = 1, 2, 4, 5, 10, 17, 22, 38, 39
LAUNCH, COPY, SET = 211, 41, 51  # callback ids
NO_STREAM = 0xFFFFFFFF

_FIELDS = {  # offset and struct format
    KERNEL: {
        "registers": (6, "H"), "start": (16, "Q"), "end": (24, "Q"), "device": (40, "I"), "context": (44, "I"),
        "stream": (48, "I"), "grid": (52, "3i"), "block": (64, "3i"), "static": (76, "i"), "dynamic": (80, "i"),
        "correlation": (92, "I"), "name": (104, "P"), "queued": (120, "Q"), "node": (144, "Q"), "graph": (156, "I"),
        "channel": (168, "I"), "channel_type": (172, "i"), "priority": (216, "i"),
    },
    MEMCPY: {
        "copy": (4, "3B"), "bytes": (8, "Q"), "start": (16, "Q"), "end": (24, "Q"), "device": (32, "I"),
        "context": (36, "I"), "stream": (40, "I"), "correlation": (44, "I"), "node": (64, "Q"), "graph": (72, "I"),
        "channel": (76, "I"), "channel_type": (80, "i"),
    },
    MEMSET: {
        "bytes": (8, "Q"), "start": (16, "Q"), "end": (24, "Q"), "device": (32, "I"), "context": (36, "I"),
        "stream": (40, "I"), "correlation": (44, "I"), "memory": (50, "H"), "node": (64, "Q"), "graph": (72, "I"),
        "channel": (76, "I"), "channel_type": (80, "i"),
    },
    RUNTIME: {
        "callback": (4, "I"), "start": (8, "Q"), "end": (16, "Q"), "process": (24, "I"), "thread": (28, "I"),
        "correlation": (32, "I"),
    },
    SYNC: {
        "type": (4, "i"), "start": (8, "Q"), "end": (16, "Q"), "correlation": (24, "I"), "context": (28, "I"),
        "stream": (32, "I"), "event": (36, "I"),
    },
    OVERHEAD: {"overhead": (4, "i"), "start": (24, "Q"), "end": (32, "Q")},
    EXTERNAL: {"external_kind": (4, "i"), "external": (8, "Q"), "correlation": (16, "I")},
}  # fmt: skip
_FIELDS[DRIVER] = _FIELDS[RUNTIME]
SIZE = 248  # size of the longest record


def build():
    """Returns the library's path. The library has the driver's name, so the loader finds the library under this name
    once it is loaded.
    """
    import compiled  # import here, not in the process that loads the stub

    source = f'#include "{SOURCE}"\n'
    return compiled.library(source, "-Wl,-soname,libcuda.so.1")


class _Control(ctypes.Structure):
    _fields_ = [
        ("reset", ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_int)),
        ("fail", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int)),
        ("add", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)),
        ("hold", ctypes.CFUNCTYPE(None)),
        ("release", ctypes.CFUNCTYPE(None)),
        ("keep", ctypes.CFUNCTYPE(None, ctypes.c_int)),
        ("now", ctypes.CFUNCTYPE(ctypes.c_uint64)),
        ("calls", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("enabled", ctypes.CFUNCTYPE(ctypes.c_uint64)),
        ("walk_by", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)),
        ("complete_foreign", ctypes.CFUNCTYPE(None)),
    ]


class Stub:
    def __init__(self, path, version=28, *, walk_by=None):
        os.environ["VESTIGE_LIBCUPTI"] = str(path)
        library = ctypes.CDLL(str(path))
        library.stub_get.restype = ctypes.POINTER(_Control)
        self.control = library.stub_get().contents
        self.control.reset(version, 1)
        if walk_by is not None:
            assert self.control.walk_by(str(walk_by).encode())
        self._names = {}  # CUPTI keeps names as long as it lives

    def add(self, kind, **fields):
        """Adds a record. Times are now, unless they are given."""
        record = bytearray(SIZE)
        struct.pack_into("i", record, 0, kind)
        if "start" in _FIELDS[kind]:
            fields.setdefault("start", self.control.now())
            fields.setdefault("end", self.control.now())
        if "name" in fields:
            name = self._names.setdefault(fields["name"], ctypes.create_string_buffer(fields["name"].encode()))
            fields["name"] = ctypes.addressof(name)
        for field, value in fields.items():
            offset, form = _FIELDS[kind][field]
            struct.pack_into(form, record, offset, *(value if isinstance(value, tuple) else (value,)))
        return self.control.add(bytes(record), SIZE)

    def call(self, kind, callback, correlation):
        thread = threading.get_native_id()
        return self.add(kind, callback=callback, process=os.getpid(), thread=thread, correlation=correlation)

    def launch(self, name, correlation, **fields):
        """Adds a kernel, and the call that launched the kernel."""
        self.call(RUNTIME, LAUNCH, correlation)
        return self.add(KERNEL, name=name, correlation=correlation, **fields)
