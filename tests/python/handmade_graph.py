"""Execution traces for tests, made by hand: a model of two layers on two threads, and the timeline of the same run."""

import copy

PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
NOTHING = {"values": [], "shapes": [], "types": [], "strides": []}


def attributes(rf_id=0, fw_parent=0, seq_id=-1, scope=0, tid=1, fw_tid=0, op_schema="", tensor_range=""):
    numbers = {"rf_id": rf_id, "fw_parent": fw_parent, "seq_id": seq_id, "scope": scope, "tid": tid, "fw_tid": fw_tid}
    texts = {"op_schema": op_schema, "kernel_backend": "", "kernel_file": "", "tensor_range": tensor_range}
    return [
        *({"name": n, "type": "int64" if n == "seq_id" else "uint64", "value": v} for n, v in numbers.items()),
        *({"name": n, "type": "string", "value": v} for n, v in texts.items()),
    ]


def side(*values):
    """Returns inputs from tuples (value, shape, type, strides) or (value, type)."""
    rows = [value if len(value) == 4 else (value[0], [], value[1], []) for value in values]
    return {name: [row[k] for row in rows] for k, name in enumerate(("values", "shapes", "types", "strides"))}


def tensor(number, storage, shape, offset=0, kind="float", strides=None):
    elements, steps = 1, []
    for size in reversed(shape):
        steps.insert(0, elements)
        elements *= size
    itemsize = {"float": 4, "long int": 8}[kind]
    return [number, storage, offset, elements, itemsize, "cpu"], list(shape), f"Tensor({kind})", strides or steps


def node(number, name, parent, inputs=NOTHING, outputs=NOTHING, **numbers):
    return {
        "id": number,
        "name": name,
        "ctrl_deps": parent,
        "inputs": copy.deepcopy(inputs),
        "outputs": copy.deepcopy(outputs),
        "attrs": attributes(**numbers),
    }


def listed(*tensors):
    """Returns a list of tensors as an input."""
    values, shapes, types, strides = zip(*tensors)
    return list(values), list(shapes), f"GenericList[{','.join(types)}]", list(strides)


def good_document():
    """Returns a valid document: children before their parents and the root last, as torch writes them."""
    x, w, y = tensor(30, 31, (2, 8)), tensor(32, 33, (16, 8)), tensor(34, 35, (2, 16))
    row, z = tensor(36, 35, (16,), offset=16), tensor(37, 38, (18,))
    across = tensor(41, 33, (8, 16), strides=[1, 8])
    index = tensor(39, 40, (3,), kind="long int")
    scalars = (
        (True, "Bool"),
        (2.5, "Double"),
        ("inf", "Double"),
        ("<None>", "None"),
        ("cpu", "Device"),
        ('a"b', "String"),
    )
    nodes = [
        node(2, THREAD, 1, scope=7, tid=1),
        node(12, "aten::t", 11, side(w), side(across), rf_id=3, op_schema="aten::t(…)"),
        node(13, "aten::addmm", 11, side(x, w, (1, "Int")), side(y), rf_id=4, seq_id=7),
        node(11, "aten::linear", 10, side(x, w), side(y), rf_id=2),
        node(14, "aten::select", 10, side(y, (0, "Int"), (1, "Int")), side(row), rf_id=5),
        node(15, "aten::cat", 10, side(listed(row, tensor(42, 43, (2,))), (0, "Int")), side(z), rf_id=6),
        node(16, "aten::index", 10, side(x, index), side(z), rf_id=7, tensor_range='{"1":[0,4]}'),
        node(10, "## forward ##", 2, side(*scalars), rf_id=1, scope=7),
        node(3, THREAD, 1, scope=7, tid=2),
        node(20, "evaluate: AddmmBackward0", 3, rf_id=8, tid=2),
        node(21, "AddmmBackward0", 20, side(y), rf_id=9, seq_id=7, scope=1, tid=2, fw_tid=1, fw_parent=20),
        node(1, PROCESS, 1, scope=7, tid=0),
    ]
    return {
        "schema": "1.1.1-chakra.0.0.4",
        "pid": 4711,
        "time": "2026-11-15 18:05:06",
        "start_ts": 1000,
        "nodes": nodes,
        "finish_ts": 1024,
    }


# rf_id: tid, begin, duration
TIMES = {
    1: (100, 0, 100), 2: (100, 5, 40), 3: (100, 6, 4), 4: (100, 12, 30), 5: (100, 50, 5), 6: (100, 56, 6), 7: (100, 70, 20),
    8: (200, 120, 30), 9: (200, 121, 20),
}  # fmt: skip


def timeline_of(document):
    """Returns Chrome JSON of the same run."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}]
    for one in document["nodes"]:
        rf_id = attribute(one, "rf_id")["value"]
        if rf_id in TIMES:
            tid, begin, duration = TIMES[rf_id]
            events.append(
                {"ph": "X", "cat": "cpu_op", "name": one["name"], "pid": 1, "tid": tid, "ts": begin, "dur": duration}
                | {"args": {"External id": rf_id, "Record function id": rf_id}}
            )
    return {"schemaVersion": 1, "traceEvents": events}


def find(document, number):
    return next(one for one in document["nodes"] if one["id"] == number)


def attribute(one, name):
    return next(entry for entry in one["attrs"] if entry["name"] == name)
