"""Packed traces: the size and speed of `vestige pack` for traces of the programs measured here.

Each program is recorded in a process of its own. Packing and unpacking are timed as CPU time, the least of several, in
megabytes of the plain file; beside them stands zstd's own command at the same level, on the plain file, where it is
installed. Bytes a record are of the whole file. How small that is depends on the clock too, whose steps are 10 ns on some
machines and a tick on others: a second figure is for the same trace with noise in place of the lowest bits of the time.
"""

import array
import os
import random
import resource
import shutil
import struct
import subprocess
import tempfile
import time

import child
import peers
import workloads
from report import Table, at_most

RECORDS = 4_000_000
LEVEL = 3
NOISE = 32  # ticks, about 10 ns


def run_calls():
    for _ in range(100):
        workloads.python_function()


def run_recursion():
    for _ in range(100):
        workloads.recursion()


def run_c_calls():
    for _ in range(25):
        workloads.c_len(), workloads.c_abs(), workloads.c_append(), workloads.c_get()


def run_mixed():
    workloads.mixed(100_000)


def run_threads():
    import threading

    threads = [threading.Thread(target=workloads.recursion) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_library():
    """Ordinary code: parses and prints a module, converts a value to JSON and back."""
    import ast
    import json

    with open(ast.__file__) as file:
        tree = ast.parse(file.read())
    ast.unparse(tree)
    value = {"items": [{"key": i, "values": [str(i)] * 3} for i in range(300)]}
    json.loads("".join(json.JSONEncoder(indent=2).iterencode(value)))


PROGRAMS = {
    "Python calls": run_calls,
    "recursion": run_recursion,
    "C calls": run_c_calls,
    "both": run_mixed,
    "8 threads": run_threads,
    "ast, json": run_library,
}


def record(name, path, records):
    """Runs a program until its trace has this many records. Runs in a new process."""
    tool = peers.Vestige(output=path)
    program = PROGRAMS[name]
    tool.start()
    while os.path.getsize(path) < 8 * records:
        program()
    tool.stop()
    tool.profile.finish()


def convert(path, packed, times):
    """Returns the least CPU seconds to pack and to unpack. Runs in a new process."""
    from vestige._core import pack, unpack

    again = path + ".again"
    before = child.forget_memory_peak()
    seconds = {"pack": [], "unpack": []}
    for _ in range(times):
        for name, function, source, target in (("pack", pack, path, packed), ("unpack", unpack, packed, again)):
            started = time.process_time()
            function(source, target, overwrite=True)
            seconds[name].append(time.process_time() - started)
    growth = child.memory_mib("VmHWM") - before
    with open(path, "rb") as first, open(again, "rb") as second:
        assert first.read() == second.read()
    os.unlink(again)
    return {**{name: min(values) for name, values in seconds.items()}, "growth_mib": growth}


def zstd(path, times):
    """Returns the size that zstd's command gives, and its least CPU time."""
    out = path + ".zst"
    seconds = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["zstd", f"-{LEVEL}", "-q", "-f", path, "-o", out], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    size = os.path.getsize(out)
    os.unlink(out)
    return size, min(seconds)


def make_noisy(path, noisy):
    """Copies a trace; each delta is longer by 0 to NOISE - 1 random ticks. The order of the records stays."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    offset = 4096
    while offset + 64 <= len(data):  # chunks as specified in src/store/format.h
        magic, kind, _, size = struct.unpack_from("IHHI", data, offset)
        if magic != 0x6B6E6863:
            break
        if kind == 1:
            add_noise(memoryview(data)[offset + 64 : offset + size])
        offset += size
    with open(noisy, "wb") as file:
        file.write(data)


def add_noise(payload):
    words = array.array("Q", payload.cast("Q"))
    noise = random.randbytes(len(words))
    for i, word in enumerate(words):
        if word:
            words[i] = (word + (noise[i] % NOISE << 32)) & 0xFFFF_FFFF_FFFF_FFFF
    payload[:] = words.tobytes()


def measure_program(name, folder, records, times):
    path, packed = os.path.join(folder, "t.vst"), os.path.join(folder, "packed.vst")
    child.run(record, name=name, path=path, records=records)
    from vestige import Trace
    from vestige._core import pack

    info = Trace(path).info()
    mb = info["bytes"] / 1e6
    seconds = child.run(convert, path=path, packed=packed, times=times)
    result = {
        "bytes": os.path.getsize(packed) / info["records"],
        "before": info["bytes"] / info["records"],
        "pack": mb / seconds["pack"],
        "unpack": mb / seconds["unpack"],
        "growth": seconds["growth_mib"],
    }
    if shutil.which("zstd"):
        size, cpu = zstd(path, times)
        result |= {"zstd": size / info["records"], "zstd_speed": mb / cpu}
    make_noisy(path, path)
    pack(path, packed, overwrite=True)
    result["noisy"] = os.path.getsize(packed) / info["records"]
    os.unlink(path), os.unlink(packed)
    return result


def measure(quick):
    records, times = (RECORDS // 8, 2) if quick else (RECORDS, 5)
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        results = {name: measure_program(name, folder, records, times) for name in PROGRAMS}
    table = Table(f"Packing traces of {records:,} records, zstd level {LEVEL}", list(results))
    rows = {
        "bytes a record, before": ("before", 2),
        "bytes a record, packed": ("bytes", 2),
        "the same, noise in the clock": ("noisy", 2),
        "bytes a record, zstd": ("zstd", 2),
        "packing, MB/s": ("pack", 0),
        "zstd, MB/s": ("zstd_speed", 0),
        "unpacking, MB/s": ("unpack", 0),
        "memory beyond, MiB": ("growth", 1),
    }
    for label, (key, digits) in rows.items():
        values = {name: result[key] for name, result in results.items() if key in result}
        checks = [at_most("bytes", max(values.values()), 3)] if key in ("bytes", "noisy") else []
        table.add(label, values, checks, digits=digits)
    return [table]
