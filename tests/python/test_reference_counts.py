"""Debug builds count every reference: starting, stopping and reading give all references back."""

import gc
import sys
import threading
import warnings

import pytest

import vestige
from arrow_reader import rows_of
from vestige import Trace, TraceError, _core, memory, profile, record_function
from vestige.reading.memory import read_memory
from vestige.traceback import CapturedTraceback

pytestmark = pytest.mark.skipif(not hasattr(sys, "gettotalrefcount"), reason="only debug builds count references")

STARTS = 1000
READINGS = 100
TABLES = (
    "events",
    "tree_events",
    "activities",
    "gil_holders",
    "lock_waits",
    "averages",
    "contexts",
    "left_out",
    "device_uses",
    "functions",
    "calls",
    "threads",
    "waits",
    "collections",
    "long_collections",
    "collection_callers",
    "steps",
    "long_steps",
    "repeats",
    "exceptions",
    "task",
    "task_awaits",
    "task_steps",
    "blocked_steps",
    "blocked_calls",
    "budget",
    "reduced_estimates",
)
WARM_UP = 20
A_FEW = 20  # the two counts themselves keep 3


@pytest.fixture(autouse=True)
def without_greenlet(monkeypatch):
    """greenlet's wheel is not a debug build: references that greenlet takes are not counted, but references that we
    drop are.
    """
    monkeypatch.delitem(sys.modules, "greenlet", raising=False)


def count():
    """Returns the number of references and of memory blocks, without the interpreter's attribute cache, which keeps
    names.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        sys._clear_type_cache()
    gc.collect()
    return sys.gettotalrefcount(), sys.getallocatedblocks()


def count_kept(scene, rounds):
    """Returns how many references and blocks `rounds` rounds of the scene keep."""
    for _ in range(WARM_UP):
        scene()
    count()
    before = count()
    for _ in range(rounds):
        scene()
    return [now - then for now, then in zip(count(), before)]


def assert_flat(scene, rounds):
    references, blocks = count_kept(scene, rounds)
    assert abs(references) < A_FEW, f"{references:+,} references in {rounds:,} rounds"
    assert blocks < A_FEW, f"{blocks:+,} blocks in {rounds:,} rounds"


def test_the_counts_see_one_reference_a_round():
    kept = []
    references, _ = count_kept(lambda: kept.append(kept), 100)
    assert 100 <= references < 110


# ---- what programs do ----------------------------------------------------------


def leaf(value=0):
    return value


def generate():
    yield len("ab")
    yield isinstance(1, int)


def fail():
    raise ValueError("x")


class Thing:
    def method(self, *args):
        return [].append(args)

    def __del__(self):
        leaf()


def work():
    for value in generate():
        leaf(value)
    try:
        fail()
    except ValueError:
        pass
    next(generate())
    thing = Thing()
    thing.method(1, 2)
    space = {}
    exec("def made(x): return sorted([x, 1])\nmade(2)", space)  # the function's code object ends with it
    sum(map(leaf, range(3)))


def annotate():
    with record_function("plain"):
        leaf()
    with record_function("text", "x=1", stack=True):
        leaf()
    with record_function("values", [1, 2.0, "a", None], leaf):
        leaf()

    @record_function("decorated")
    def decorated():
        return leaf()

    decorated()
    _core.instant("instant", '"a": 1')
    _core.counter("counter", 1.5)
    generator = generate()
    with record_function("left open"):
        next(generator)


def run_threads():
    threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def collect():
    cycle = [Thing()]
    cycle.append(cycle)
    del cycle
    gc.collect(0)


# ---- starting and stopping -------------------------------------------------------


@pytest.mark.parametrize("scene", [work, annotate, run_threads, collect], ids=lambda scene: scene.__name__)
def test_a_start_and_a_stop_keep_nothing(tmp_path, scene):
    def record():
        with profile(output=str(tmp_path / "t.vst"), overwrite=True):
            scene()

    assert_flat(record, STARTS)


def test_the_windows_of_one_session_keep_nothing(tmp_path):
    session = _core.Session(str(tmp_path / "t.vst"))

    def record():
        session.start()
        work()
        session.stop()

    assert_flat(record, STARTS)
    session.finish()


@pytest.mark.parametrize(
    "options",
    [
        {"include": [str(__file__)], "record_args": ["leaf", "Thing.method"]},
        {"exclude": ["*/nowhere/*"], "min_duration": "10us"},
        {"max_size": "1M"},
        {"exceptions": True, "only": ["work"], "max_depth": 3},
    ],
    ids=str,
)
def test_a_start_and_a_stop_with_options_keep_nothing(tmp_path, options):
    def record():
        with profile(output=str(tmp_path / "t.vst"), overwrite=True, **options):
            work()

    assert_flat(record, STARTS // 4)


@pytest.mark.parametrize("native", [False, True])
def test_tracing_memory_keeps_nothing(tmp_path, native):
    def record():
        memory.start(tmp_path / "t.vst", overwrite=True, native=native)
        kept = [bytearray(5000) for _ in range(5)]
        work()
        memory.stop()
        del kept

    assert_flat(record, STARTS // (10 if native else 1))


def test_a_refused_start_keeps_nothing(tmp_path):
    (tmp_path / "t.vst").write_text("")

    def refused():
        with pytest.raises(FileExistsError):
            profile(output=str(tmp_path / "t.vst")).start()
        with pytest.raises(ValueError):
            _core.Session(str(tmp_path / "u.vst"), engine="none such")
        with pytest.raises(TypeError):
            _core.Session(str(tmp_path / "u.vst"), include=3)

    assert_flat(refused, STARTS // 4)


def test_annotations_and_tracebacks_without_a_recording_keep_nothing():
    def scene():
        annotate()
        taken = CapturedTraceback.extract(cpp=True)
        other = CapturedTraceback.extract()
        CapturedTraceback.format_all([taken, other, taken])
        taken.summary()
        other.cleanup()

    assert_flat(scene, STARTS)


# ---- reading ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("counts") / "t.vst"
    with profile(output=str(path), profile_memory=True):
        for scene in (work, annotate, run_threads, collect):
            scene()
    return str(path)


def test_a_trace_that_is_read_keeps_nothing(trace):
    def read():
        t = Trace(trace)
        info = t.info()
        t.set_range(info["start_ns"], info["end_ns"])
        t.threads(), t.metadata(), t.definitions(), t.functions(), t.names(), t.has_memory()
        t.spans("leaf")
        marks = bytes([4]) * len(t.definitions())
        tables = t.tables(
            TABLES,
            progress=lambda _: None,
            spread=True,
            awaits=True,
            marks=marks,
            threads=[0, 1],
            shapes=True,
            timeout=100,
        )
        for table in tables.values():
            list(table), [table[name] for name in table.columns]
        read_memory(t, rows=-1), t.tables(["memory_events", "recorded_stacks"])
        t.count_nodes(), _core.node_ids([t])

    assert_flat(read, READINGS)


def test_a_trace_that_cannot_be_read_keeps_nothing(trace, tmp_path):
    (tmp_path / "bad.vst").write_bytes(b"x" * 5000)

    def fail_to_read():
        for path in ("bad.vst", "none.vst"):
            with pytest.raises((TraceError, OSError)):
                Trace(str(tmp_path / path))
            with pytest.raises((TraceError, OSError)):
                _core.View(str(tmp_path / path))
        with pytest.raises(ZeroDivisionError):
            Trace(trace).tables(["functions"], progress=lambda _: 1 // 0)
        with pytest.raises(TypeError):
            Trace(trace).tables(["calls"], threads=3)
        with pytest.raises(ValueError, match="there is no table nothing"):
            Trace(trace).tables(["calls", "nothing"])
        with pytest.raises((TraceError, OSError)):
            _core.pack(str(tmp_path / "none.vst"), str(tmp_path / "none.packed"))

    assert_flat(fail_to_read, READINGS)


def test_tables_keep_nothing(trace):
    def read():
        traces = vestige.open(trace)
        for name in _core.table_names:
            table = getattr(traces, name)
            assert table.columns and rows_of(table) is not None
            table.__arrow_c_schema__()
            table.__arrow_c_stream__()  # never read
        traces.close()

    assert_flat(read, READINGS)


def test_views_keep_nothing(trace):
    def look():
        view = _core.View(trace, keep=False, progress=lambda _: None)
        info = view.info()
        start, end = info["start_ns"], info["end_ns"]
        numbers = [thread["number"] for thread in view.threads()]
        view.window(start, end, 100, threads=numbers)
        for at in range(start, end, (end - start) // 10 + 1):
            view.span_at(numbers[0], 0, at)
        view.flame(start, end, threads=numbers, limit=3)
        view.find([1, 2, 3], start, end, 100)
        view.next([1, 2, 3], None, start)
        _core.Lanes(view, "counters").draw(start, end, 100, [0])
        _core.Lanes(view, "losses").lanes()
        with pytest.raises(TypeError):
            view.find(["x"], start, end, 100)
        with pytest.raises(TypeError):
            view.window(start, end, 100, threads=3)

    assert_flat(look, READINGS)


def test_copies_and_exports_keep_nothing(trace, tmp_path):
    def copy():
        packed, plain = str(tmp_path / "t.vstz"), str(tmp_path / "u.vst")
        _core.pack(trace, packed, overwrite=True, progress=lambda _: None)
        _core.unpack(packed, plain, overwrite=True)
        _core.recover(trace, plain, overwrite=True)
        t = Trace(packed)
        for suffix in "json json.gz folded svg pb pstats callgrind pftrace speedscope.json".split():
            t.export(str(tmp_path / f"t.{suffix}"), progress=lambda _: None)
        with pytest.raises(ValueError):
            t.export(str(tmp_path / "t.unknown"))
        _core.export_memory([t], str(tmp_path / "m.folded"))

    assert_flat(copy, READINGS // 4)
