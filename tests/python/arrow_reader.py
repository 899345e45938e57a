"""A small reader of Arrow's C stream interface, with ctypes: reads a table's capsule without pyarrow. Its functions are
called with the GIL held.
"""

import ctypes
import struct

P, I64 = ctypes.c_void_p, ctypes.c_int64


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", P),
    ("flags", I64),
    ("n_children", I64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.PYFUNCTYPE(None, ctypes.POINTER(Schema))),
    ("private_data", P),
]
Array._fields_ = [
    ("length", I64),
    ("null_count", I64),
    ("offset", I64),
    ("n_buffers", I64),
    ("n_children", I64),
    ("buffers", ctypes.POINTER(P)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.PYFUNCTYPE(None, ctypes.POINTER(Array))),
    ("private_data", P),
]
GET_NEXT = (ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
Stream._fields_ = [
    ("get_schema", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.PYFUNCTYPE(*GET_NEXT)),
    ("get_last_error", ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.PYFUNCTYPE(None, ctypes.POINTER(Stream))),
    ("private_data", P),
]
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = P
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
WIDTHS = {b"i": ("i", 4), b"l": ("q", 8), b"g": ("d", 8)}


class StreamError(Exception):
    pass


def stream_of(capsule):
    return Stream.from_address(get_pointer(capsule, b"arrow_array_stream"))


def schema_of(capsule):
    return Schema.from_address(get_pointer(capsule, b"arrow_schema"))


def rows_of(table):
    """Returns the rows as a list of dicts."""
    capsule = table.__arrow_c_stream__()
    stream = stream_of(capsule)
    schema, rows = Schema(), []
    assert stream.get_schema(stream, schema) == 0
    while True:
        array = Array()
        failed = stream.get_next(stream, array)
        if failed:
            raise StreamError(failed, stream.get_last_error(stream).decode())
        if not array.release:
            break
        columns = {
            schema.children[i][0].name.decode(): values_of(schema.children[i][0], array.children[i][0])
            for i in range(schema.n_children)
        }
        rows += [dict(zip(columns, row)) for row in zip(*columns.values())]
        array.release(array)
    schema.release(schema)
    stream.release(stream)
    return rows


def count_rows(table):
    """Reads all rows and keeps none."""
    capsule = table.__arrow_c_stream__()
    stream, count = stream_of(capsule), 0
    while True:
        array = Array()
        failed = stream.get_next(stream, array)
        if failed:
            raise StreamError(failed, stream.get_last_error(stream).decode())
        if not array.release:
            return count
        count += array.length
        array.release(array)


def values_of(schema, array):
    assert array.offset == 0
    count = array.length
    if schema.dictionary:
        names = dict(enumerate(texts(array.dictionary[0])))  # the index of a null may be any number
        values = [names.get(index) for index in numbers("i", 4, array)]
    elif schema.format == b"u":
        values = texts(array)
    elif schema.format == b"b":
        values = bits(array.buffers[1], count)
    else:
        values = numbers(*WIDTHS[schema.format], array)
    if not array.buffers[0]:
        assert array.null_count == 0
        return values
    there = bits(array.buffers[0], count)
    assert array.null_count == there.count(False)
    return [value if valid else None for value, valid in zip(values, there)]


def numbers(code, width, array, more=0):
    count = array.length + more
    return list(struct.unpack(f"{count}{code}", ctypes.string_at(array.buffers[1], count * width)))


def texts(array):
    ends = numbers("i", 4, array, more=1)
    data = ctypes.string_at(array.buffers[2], ends[-1])
    return [data[begin:end].decode() for begin, end in zip(ends, ends[1:])]


def bits(address, count):
    data = ctypes.string_at(address, (count + 7) // 8)
    return [bool(data[i // 8] >> i % 8 & 1) for i in range(count)]
