"""A small set of tables written by hand, in the form of docs/reference/tables.md: a training of three ranks on two
hosts. A person can work out the answers to the ready questions. Rank 1 has a device with two streams.

Each rank runs steps 2 and 3. A step is `ProfilerStep#N`, in it `train.py(10): train` calls `train.py(20): load` and
`<built-in sleep>`; load calls itself once. Rank 2 is slow in step 3. Times are in milliseconds of the wall clock from START on.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq

MS = 10**6
START = 1_700_000_000 * 10**9
I32, I64, TEXT = pa.int32(), pa.int64(), pa.string()
NAME = pa.dictionary(pa.int32(), TEXT)
SCHEMAS = {
    "process": pa.schema(
        [("process", I32), ("pid", I64), ("parent_pid", I64), ("rank", I32), ("world_size", I32), ("host", TEXT),
         ("name", TEXT), ("command", TEXT), ("file", TEXT), ("trace_id", TEXT), ("start_ns", I64), ("end_ns", I64),
         ("ended", TEXT), ("records", I64), ("lost", I64), ("dropped", I64)]
    ),
    "thread": pa.schema([("process", I32), ("thread", I32), ("tid", I64), ("name", TEXT), ("records", I64)]),
    "func": pa.schema(
        [("process", I32), ("func", I32), ("kind", NAME), ("name", NAME), ("qualname", TEXT), ("file", NAME),
         ("line", I32)]
    ),
    "stack": pa.schema(
        [("process", I32), ("stack", I32), ("parent", I32), ("func", I32), ("name", NAME), ("depth", I32),
         ("recursive", pa.bool_())]
    ),
    "span": pa.schema(
        [("process", I32), ("thread", I32), ("span", I64), ("parent", I64), ("func", I32), ("name", NAME),
         ("kind", NAME), ("start_ns", I64), ("duration_ns", I64), ("self_ns", I64), ("depth", I32), ("stack", I32),
         ("flags", I32), ("args", TEXT)]
    ),
    "op": pa.schema(
        [("process", I32), ("span", I64), ("name", NAME), ("start_ns", I64), ("duration_ns", I64), ("self_ns", I64),
         ("flags", I32), ("self_bytes", I64)]
    ),
    "alloc": pa.schema(
        [("process", I32), ("framework", pa.bool_()), ("size", I64), ("weight", pa.float64()), ("freed_ns", I64),
         ("name", NAME)]
    ),
    "lost": pa.schema(
        [("process", I32), ("thread", I32), ("kind", NAME), ("start_ns", I64), ("duration_ns", I64), ("records", I64)]
    ),
    "device": pa.schema([("process", I32), ("device", I32), ("platform", TEXT), ("ordinal", I64), ("name", TEXT)]),
    "activity": pa.schema(
        [("process", I32), ("device", I32), ("stream", I64), ("kind", NAME), ("name", NAME), ("start_ns", I64),
         ("duration_ns", I64), ("bytes", I64), ("launch_start_ns", I64), ("op_name", NAME), ("annotation_name", NAME)]
    ),
}  # fmt: skip
STEP_2, STEP_3, TRAIN, LOAD, SLEEP, GC = range(1, 7)
FUNCS = {
    STEP_2: ("annotation", "ProfilerStep#2", None, None),
    STEP_3: ("annotation", "ProfilerStep#3", None, None),
    TRAIN: ("python", "train.py(10): train", "train.py", 10),
    LOAD: ("python", "train.py(20): load", "train.py", 20),
    SLEEP: ("native", "<built-in function sleep>", None, None),
    GC: ("gc", "Python GC", None, None),
}
RECURSIVE = 128
# stack: (parent, func); a step, train in it, load in that, load in load, sleep in train, gc in load
STACKS = {
    1: (None, STEP_2), 2: (1, TRAIN), 3: (2, LOAD), 4: (3, LOAD), 5: (2, SLEEP), 6: (4, GC),
    7: (None, STEP_3), 8: (7, TRAIN), 9: (8, LOAD), 10: (9, LOAD), 11: (8, SLEEP), 12: (10, GC),
}  # fmt: skip
DEPTHS = [0, 1, 2, 3, 2, 3]
HOSTS = ["alpha", "alpha", "beta"]
# stream, kind, name, start and duration in ms, bytes, time of the launch, operator of the launch
ACTIVITIES = [
    (None, "runtime", "cudaLaunchKernel", 5, 1, None, None, None),
    (7, "kernel", "gemm", 10, 20, None, 5, "aten::mm"),
    (7, "copy", "Memcpy HtoD", 60, 10, 4000, 50, "aten::copy_"),
    (7, "set", "Memset (Device)", 80, 1, 100, None, None),
    (8, "kernel", "gemm", 20, 15, None, 6, "aten::mm"),
]


def write(folder, *, slow_ms=40, scale=1):
    """Rank 2's sleep in step 3 takes `slow_ms` more than the others'; all times are multiplied by `scale`."""
    rows = {name: [] for name in SCHEMAS}
    for process, host in enumerate(HOSTS):
        rows["process"].append(
            [process, 100 + process, None, process, 3, host, "train.py", "python train.py", f"r{process}.vst",
             f"{process:032x}", START, START + 1000 * MS, "clean", 24, process, 0]
        )  # fmt: skip
        rows["thread"].append([process, 0, 1000 + process, "MainThread", 24])
        rows["func"] += [[process, number, kind, name, name.rpartition(": ")[2], file, line]
                         for number, (kind, name, file, line) in FUNCS.items()]  # fmt: skip
        rows["stack"] += [[process, stack, parent, func, FUNCS[func][1], DEPTHS[(stack - 1) % 6], (stack - 1) % 6 == 3]
                          for stack, (parent, func) in STACKS.items()]  # fmt: skip
        rows["op"] += [
            [process, 50 + at, "aten::add" if at else "aten::mm", START, 2 * MS, MS, 0, 64] for at in range(3)
        ]
        rows["alloc"] += [[process, False, 1000, 2.0, None if at else START, "train.py(20): load" if at < 2 else None]
                          for at in range(3)]  # fmt: skip
        serial = 0
        for step in (2, 3):
            sleep = 10 + (slow_ms if (process, step) == (2, 3) else 0)
            serial = _step(rows["span"], process, step, sleep, serial, scale)
        if process:
            rows["lost"].append([process, 0, "records", START + 500 * MS, 10 * MS, process])
    rows["device"].append([1, 1, "cuda", 0, "A GPU"])
    for stream, kind, name, start, ms, size, launch, op in ACTIVITIES:
        rows["activity"].append(
            [1, 1, stream, kind, name, START + start * MS, ms * MS, size,
             None if launch is None else START + launch * MS, op, None]
        )  # fmt: skip
    folder.mkdir(exist_ok=True)
    for name, schema in SCHEMAS.items():
        columns = zip(*rows[name])
        table = pa.table([pa.array(column, field.type) for column, field in zip(columns, schema)], schema=schema)
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def _step(spans, process, step, sleep, serial, scale):
    """train takes 5 ms itself; load 2 + 4 ms, of which the inner call spends 1 in the collector; sleep the rest."""
    first = 0 if step == 2 else 6
    train = 5 + 6 + sleep
    begin = START + step * 100 * MS
    times = [(0, train + 1, 1), (0, train, 5), (1, 6, 2), (2, 4, 3), (7, sleep, sleep), (3, 1, 1)]
    parents = [None, 1, 2, 3, 2, 4]
    for place, (after, duration, own) in enumerate(times):
        stack = first + place + 1
        func = STACKS[stack][1]
        parent = parents[place]
        spans.append(
            [process, 0, serial + place + 1, None if parent is None else serial + parent, func, FUNCS[func][1],
             FUNCS[func][0], begin + after * MS * scale, duration * MS * scale, own * MS * scale, DEPTHS[place], stack,
             RECURSIVE if place == 3 else 0, json.dumps({"step": step}) if func == TRAIN else None]
        )  # fmt: skip
    return serial + len(times)
