"""vestige._core.View: pictures of a trace, requested from Python."""

import os
import struct
import threading
from itertools import pairwise

import pytest

from traces import record
from vestige import Trace, TraceError, record_function
from vestige._core import Lanes, Session, View

pytestmark = pytest.mark.any_python  # the core gives equal answers for every engine


def leaf(n):
    return sum(range(n))


def work():
    with record_function("outer", "x=1"):
        for i in range(40):
            leaf(i)
    thread = threading.Thread(target=leaf, args=(9,), name="helper")
    thread.start()
    thread.join()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return str(record(tmp_path_factory.mktemp("view") / "t.vst", work))


def names(path):
    return {id: entry[1] for id, entry in enumerate(Trace(path).definitions()) if entry}


def ids_of(path, name):
    return [id for id, known in names(path).items() if name in known]


def rectangles(window):
    """Returns (thread, depth, start, end, id, busy, count) of each rectangle."""
    magic, rows, rects, *_ = struct.unpack_from("<4s3Iqq", window)
    assert magic == b"VWIN" and len(window) == 32 + 16 * (rows + rects)
    found = []
    for row in range(rows):
        thread, depth, first, count = struct.unpack_from("<4I", window, 32 + 16 * row)
        for i in range(first, first + count):
            rect = struct.unpack_from("<IIIHH", window, 32 + 16 * (rows + i))
            found.append((thread, depth, *rect))
    assert len(found) == rects
    return found


def test_a_view_knows_its_trace_and_keeps_its_index(trace):
    view = View(trace)
    info, known = view.info(), Trace(trace).info()
    assert info["built"] and info["index_path"] == trace + ".view"
    assert info["index_bytes"] == os.path.getsize(trace + ".view")
    assert all(info[name] == known[name] for name in ("start_ns", "end_ns", "pid", "clean", "lost", "dropped"))
    assert {thread["name"] for thread in view.threads()} >= {"MainThread", "helper"}
    assert sum(thread["spans"] for thread in view.threads()) == info["spans"]
    again = View(trace)
    assert not again.info()["built"]
    assert not View(trace.encode(), index=trace + ".view").info()["built"]
    assert View(trace, keep=False).info()["index_path"] is None


def test_a_window_shows_every_call_once(trace):
    view = View(trace)
    info = view.info()
    rects = rectangles(view.window(info["start_ns"] - 10**6, info["end_ns"] + 10**6, 60_000))
    assert sum(rect[6] for rect in rects) == info["spans"]
    main = next(thread["number"] for thread in view.threads() if thread["name"] == "MainThread")
    only = rectangles(view.window(info["start_ns"], info["end_ns"], 500, threads=[main], max_depth=1))
    assert {rect[:2] for rect in only} == {(main, 0)}
    assert rectangles(view.window(0, 1000, 500)) == []


def test_a_span_tells_where_it_is_and_what_it_was_given(trace):
    view = View(trace)
    info = view.info()
    [outer] = ids_of(trace, "outer")
    found = view.next([outer], None, 0)
    span = view.span_at(found["thread"], found["depth"], found["start_ns"])
    assert span["id"] == outer and "x=1" in span["args"]
    assert (span["start_ns"], span["end_ns"]) == (found["start_ns"], found["end_ns"])
    assert 0 < span["self_ns"] < span["end_ns"] - span["start_ns"]
    assert len(span["parents"]) == span["depth"]
    assert "work" in names(trace)[span["parents"][-1]["id"]]
    assert view.span_at(found["thread"], found["depth"], info["end_ns"] + 5) is None
    assert view.span_at(99, 0, found["start_ns"]) is None
    assert view.next([outer], found["thread"], found["start_ns"]) is None
    assert view.next([outer], None, info["end_ns"], back=True) == found


def test_spans_are_found_and_summed(trace):
    view = View(trace)
    info = view.info()
    from_ns, to_ns = info["start_ns"] - 10**6, info["end_ns"] + 10**6
    leafs = ids_of(trace, "leaf")
    counts = struct.unpack("<100I", view.find(leafs, from_ns, to_ns, 100))
    assert sum(counts) == 41
    rows, left_out = view.flame(from_ns, to_ns)
    assert left_out == 0
    assert sum(row.calls for row in rows if row.id in leafs) == 41
    assert all(row.parent < i for i, row in enumerate(rows))
    roots = sum(row.total_ns for row in rows if row.parent == -1)
    assert sum(row.self_ns for row in rows) == roots


def test_an_offset_moves_all_of_it(trace):
    view = View(trace)
    info, [outer] = view.info(), ids_of(trace, "outer")
    before = view.next([outer], None, 0)
    view.set_offset(10**9)
    after = view.next([outer], None, 0)
    assert after["start_ns"] == before["start_ns"] + 10**9
    assert view.info()["start_ns"] == info["start_ns"] + 10**9
    assert view.span_at(after["thread"], after["depth"], after["start_ns"])["id"] == outer


def test_memory_has_a_curve(tmp_path):
    path = str(tmp_path / "m.vst")
    session = Session(path, memory=True)
    session.start()
    kept = [bytes(100_000) for _ in range(20)]
    session.stop()
    session.finish()
    view = View(path)
    info = view.info()
    curves = Lanes(view, "counters")
    [memory] = [lane for lane in curves.lanes() if lane["what"] == "memory"]
    assert memory["name"] == "memory" and memory["thread"] == 0
    assert memory["most"] >= sum(map(len, kept))
    count, items = curves.between(memory["lane"], 0, info["start_ns"], info["end_ns"] + 1, 100_000)
    assert count == len(items) == memory["items"]
    assert (
        memory["least"]
        <= min(item["value"] for item in items)
        <= max(item["value"] for item in items)
        <= memory["most"]
    )
    assert all(before["end_ns"] == after["start_ns"] for before, after in pairwise(items))
    assert Lanes(view, "losses").lanes() == []


def test_lanes_are_read_from_a_trace_or_a_view(trace):
    view = View(trace)
    for source, kind in ((view, "marks"), (view, "no kind"), (Trace(trace), "losses"), (Trace(trace), "counters")):
        with pytest.raises(ValueError):
            Lanes(source, kind)
    with pytest.raises(TypeError):
        Lanes(trace, "marks")


def test_what_cannot_be_is_said(trace, tmp_path):
    with pytest.raises(FileNotFoundError):
        View(tmp_path / "none.vst")
    (tmp_path / "text.vst").write_text("no trace")
    with pytest.raises(TraceError, match="not a vestige trace"):
        View(tmp_path / "text.vst")
    view = View(trace)
    with pytest.raises(ValueError, match="end after its beginning"):
        view.window(10, 10, 5)
    with pytest.raises(ValueError, match="pixels must be"):
        view.window(0, 10, 0)
    with pytest.raises(OverflowError):
        view.find([2**40], 0, 10, 5)
    with pytest.raises(TypeError):
        view.window(0, 10, 5, threads=3)


def test_progress_may_stop_a_long_answer(trace):
    class Stop(Exception):
        pass

    def stop(done):
        raise Stop

    view, info = View(trace), View(trace).info()
    with pytest.raises(Stop):
        view.flame(info["start_ns"], info["end_ns"], progress=stop)
    with pytest.raises(Stop):
        view.find([1], info["start_ns"], info["end_ns"], 5, progress=stop)


def test_several_threads_ask_at_once(trace):
    view = View(trace)
    info = view.info()
    expected = view.window(info["start_ns"], info["end_ns"], 300)
    answers = []

    def ask():
        answers.extend(view.window(info["start_ns"], info["end_ns"], 300) for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 80 and set(answers) == {expected}
