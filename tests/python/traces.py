"""Trace files for tests: recorded here, and changed to come from another process, machine or time."""

import json
import os
import struct
import zlib
from typing import NamedTuple

from vestige import Trace, profile, record_function
from vestige.reading.sums import called_functions

REALTIME, TRACE_ID, PID, CHECKSUM = 48, 56, 72, 76  # offsets in the file header, see src/store/format.h


class Total(NamedTuple):
    """The sums of one function."""

    name: str
    calls: int
    self_ns: int
    total_ns: int


def totals(trace, *, all_windows=False):
    """Returns the sums of each function that was called."""
    return [
        Total(known.name, row.calls, row.self_ns, row.total_ns)
        for known, row in called_functions(trace, all_windows=all_windows)
    ]


def record(path, work=None, **metadata):
    """Records a call of work() with these metadata: vestige_x in a name stands for vestige.x, and values are converted
    to JSON.
    """
    prof = profile(output=str(path), overwrite=True)
    for name, value in metadata.items():
        prof._set_metadata(name.replace("vestige_", "vestige."), json.dumps(value))
    with prof:
        (work or nothing)()
    return path


def record_alone(path, work):
    """Like record(), in a process without threads of other tests."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            record(path, work)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    return path


def nothing():
    pass


def steps(count, name="step"):
    """Returns a function with this many annotations."""

    def work():
        for _ in range(count):
            with record_function(name):
                nothing()

    return work


def patch(path, *, shift_ns=0, pid=None, trace_id=None):
    """Changes the file as if another process, or a clock with this error, had recorded it."""
    data = bytearray(path.read_bytes())
    (realtime,) = struct.unpack_from("q", data, REALTIME)
    struct.pack_into("q", data, REALTIME, realtime + shift_ns)
    if pid is not None:
        struct.pack_into("I", data, PID, pid)
    if trace_id is not None:
        data[TRACE_ID : TRACE_ID + 16] = bytes.fromhex(trace_id)
    struct.pack_into("I", data, CHECKSUM, zlib.crc32(data[:CHECKSUM]))
    path.write_bytes(data)
    return path


def trace_id(path):
    return Trace(str(path)).info()["trace_id"]


def family(folder, *pids, name="t"):
    """Makes a root and its children, each forked by the root; returns their paths."""
    root = patch(record(folder / f"{name}.vst"), pid=1000)
    paths = [root]
    for pid in pids:
        parent = {"pid": 1000, "tid": 1000, "time_ns": Trace(str(root)).info()["start_ns"], "how": "fork"}
        path = record(folder / f"{name}.{pid}.vst", vestige_parent=parent, vestige_root=trace_id(root))
        paths.append(patch(path, pid=pid))
    return paths
