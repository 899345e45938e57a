"""events(), key_averages(), tables and stacks agree with each other and with the exported file."""

import array
import copy
import gc
import json
import os
import pickle
import random
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vestige
from vestige import _core, profile, record_function
from vestige.torch.event_list import EventList
from vestige.torch.events import FunctionEvent


def inner(count):
    return sum(range(count))


def outer(count):
    with record_function("block"):
        inner(count)
    return inner(count)


def recursive(depth):
    return recursive(depth - 1) if depth else 0


def exported(prof, path):
    prof.export_chrome_trace(str(path))
    document = json.loads(path.read_bytes())
    return document, [event for event in document["traceEvents"] if event["ph"] == "X" and event["cat"] != "Trace"]


def rows_of(averages):
    return {row.key: row for row in averages}


def ending(averages, name):
    (row,) = [row for row in averages if row.key.endswith(name)]
    return row


@pytest.fixture(scope="module")
def recording():
    def threaded():
        outer(50)

    with profile() as prof:
        thread = threading.Thread(target=threaded)
        thread.start()
        for number in range(20):
            outer(number)
            recursive(number)
        with record_function("shaped", array.array("d", [1, 2]), memoryview(b"12345678").cast("h")):
            gc.collect()
        thread.join()
    return prof


# ---- events --------------------------------------------------------------


def test_events_are_those_of_the_file_with_their_ids_and_places(recording, tmp_path):
    document, slices = exported(recording, tmp_path / "t.json")
    base = document["baseTimeNanoseconds"]
    events = {event.id: event for event in recording.events()}
    assert len(events) == len(recording.events()) == len(slices)
    start = min(round(one["ts"] * 1000) for one in slices)
    for one in slices:
        event = events[one["args"]["Ev Idx"]]
        assert event.trace_name == one["name"]
        assert event.activity_type == one["cat"]
        assert event.thread == one["tid"]
        assert round(event.cpu_time_total * 1000) == round(one["dur"] * 1000)
        assert round(event.time_range.start * 1000) == round(one["ts"] * 1000) - start
        if one["cat"] == "python_function":
            assert event.python_id == one["args"]["Python id"]
            parent = one["args"]["Python parent id"]
            assert event.python_parent_id == (-1 if parent is None else parent)
        else:
            assert event.external_id == one["args"]["External id"]
    assert base > 0


def test_parents_and_children_are_those_that_the_file_shows(recording, tmp_path):
    """Parents as a viewer finds them: by time, on each thread."""
    _, slices = exported(recording, tmp_path / "t.json")
    events = {event.id: event for event in recording.events()}
    by_thread = {}
    for one in slices:
        begin = round(one["ts"] * 1000)
        entry = (begin, -round(one["dur"] * 1000), one["args"]["Ev Idx"])
        by_thread.setdefault(one["tid"], []).append(entry)
    for entries in by_thread.values():
        stack = []
        for begin, minus, number in sorted(entries):
            while stack and begin >= stack[-1][0]:
                stack.pop()
            parent = events[number].cpu_parent
            assert (parent.id if parent else None) == (stack[-1][1] if stack else None)
            if parent:
                assert events[number] in parent.cpu_children
            stack.append((begin - minus, number))


def test_children_are_in_order_and_know_their_parent(recording):
    for event in recording.events():
        starts = [child.time_range.start for child in event.cpu_children]
        assert starts == sorted(starts)
        assert all(child.cpu_parent is event for child in event.cpu_children)


def test_own_times_are_what_children_leave(recording):
    for event in recording.events():
        children = sum(child.cpu_time_total for child in event.cpu_children)
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - children, abs=0.001)
        assert event.self_cpu_time_total >= 0


def test_an_event_has_torchs_fields(recording):
    wanted = """id node_id name overload_name trace_name time_range thread fwd_thread kernels count cpu_children cpu_parent
        input_shapes concrete_inputs kwinputs stack scope use_device cpu_memory_usage device_memory_usage is_async
        is_remote sequence_nr device_type device_index device_resource_id is_legacy flops is_user_annotation
        is_python_function activity_type self_cpu_percent total_cpu_percent total_device_percent flow_id flow_type
        flow_start external_id linked_correlation_id event_metadata structured_input_shapes structured_input_strides
        input_dtypes python_id python_parent_id python_module_id cpu_time_total self_cpu_time_total device_time_total
        self_device_time_total self_cpu_memory_usage self_device_memory_usage cpu_time device_time key cpu_time_str
        device_time_str cpu_time_total_str self_cpu_time_total_str"""
    for event in (recording.events()[0], FunctionEvent(1, "x", 2, 0.0, 5.0)):
        for field in wanted.split():
            getattr(event, field)
        with pytest.raises(AttributeError, match="'FunctionEvent' object has no attribute 'nothing'"):
            event.nothing
        assert repr(event).startswith("<FunctionEvent id=")


def test_fields_can_be_set(recording):
    event = recording.events()[3]
    event.flops = 12
    assert recording.events()[3].flops == 12
    event.flops = 0


def test_annotations_and_calls_are_told_apart(recording):
    kinds = {(e.activity_type, e.is_user_annotation, e.is_python_function) for e in recording.events()}
    assert kinds == {("user_annotation", True, False), ("python_function", False, True)}
    assert {e.scope for e in recording.events() if e.is_user_annotation} == {7}


def test_stacks_go_from_the_inside_out(recording):
    event = next(e for e in recording.events() if e.name.endswith(": inner") and e.cpu_parent.name == "block")
    parts = [frame.rpartition(": ")[2] for frame in event.stack[:2]]
    assert parts == ["inner", "outer"]
    block = event.cpu_parent
    assert block.stack == event.stack[1:]


def test_the_list_of_events_is_made_when_it_is_needed():
    with profile() as prof:
        inner(3)
    events = prof.events()
    assert isinstance(events, list)
    assert len(events) > 0 and bool(events)
    assert list.__len__(events) == 0
    assert events[0] is events[0]
    assert list.__len__(events) == len(events)
    assert prof.events() is events
    assert events[0] in events and events[:2] == [events[0], events[1]]
    assert list(reversed(events))[-1] is events[0]
    assert [*events] == sorted(events, key=lambda event: event.time_range.start)


def test_time_that_is_up_leaves_what_was_read(caplog):
    prof = profile(post_processing_timeout_s=0)
    with prof:
        for number in range(10):
            inner(number)
    assert len(prof.events()) == 0
    assert prof.key_averages() == [] and prof.key_averages(group_by_stack_n=1) == []
    assert "timed out after 0.000 seconds" in caplog.text
    prof.post_processing_timeout_s = 1000
    prof._results = None
    assert len(prof.events()) > 10
    with pytest.raises(ValueError, match="must be non-negative"):
        profile(post_processing_timeout_s=-1)


def test_nothing_can_be_read_before_the_end():
    prof = profile()
    for read in (prof.events, prof.key_averages, lambda: prof.export_stacks("x")):
        with pytest.raises(RuntimeError, match="nothing was recorded"):
            read()
    prof.start()
    with pytest.raises(RuntimeError, match="stop\\(\\) it before"):
        prof.events()
    prof.stop()
    prof.events()


# ---- averages --------------------------------------------------------------


def test_averages_are_sums_of_events(recording):
    sums = {}
    for event in recording.events():
        own, total, count = sums.get(event.name, (0, 0, 0))
        sums[event.name] = (own + event.self_cpu_time_total, total + event.cpu_time_total, count + event.count)
    averages = recording.key_averages()
    assert {row.key for row in averages} == set(sums)
    for row in averages:
        own, total, count = sums[row.key]
        assert row.count == count
        assert row.self_cpu_time_total == pytest.approx(own)
        assert row.cpu_time_total == pytest.approx(total)
        assert row.cpu_time == pytest.approx(total / count)
    assert rows_of(averages)["block"].count == 21
    assert ending(averages, ": recursive").count == sum(range(21))


def test_the_list_gives_the_same_averages_as_the_profile(recording):
    def values(averages):
        return [(row.key, row.count, row.self_cpu_time_total, row.cpu_time_total, row.input_shapes) for row in averages]

    events = recording.events()
    assert values(events.key_averages()) == values(recording.key_averages())
    # a list without a recording computes its own sums
    by_shape = EventList(events).key_averages(group_by_input_shapes=True)
    for mine, theirs in zip(
        sorted(values(by_shape)), sorted(values(recording.key_averages(group_by_input_shape=True))), strict=True
    ):
        assert mine[:2] == theirs[:2] and mine[4] == theirs[4]
        assert mine[2:4] == pytest.approx(theirs[2:4])


@pytest.mark.parametrize("depth", [1, 2, 3, 10])
def test_stacks_group_as_events_say(recording, depth):
    sums = {}
    for event in recording.events():
        key = (event.name, tuple(event.stack[:depth]))
        own, total, count = sums.get(key, (0, 0, 0))
        sums[key] = (own + event.self_cpu_time_total, total + event.cpu_time_total, count + 1)
    averages = recording.key_averages(group_by_stack_n=depth)
    assert {(row.key, tuple(row.stack)) for row in averages} == set(sums)
    for row in averages:
        own, total, count = sums[(row.key, tuple(row.stack))]
        assert row.count == count
        assert row.self_cpu_time_total == pytest.approx(own)
        assert row.cpu_time_total == pytest.approx(total)


def test_calls_that_are_left_out_leave_their_time(recording):
    for options in ({}, {"group_by_stack_n": 2}):
        averages = recording.key_averages(include_python_functions=False, **options)
        assert {row.key for row in averages} == {"block", "shaped"}
        assert all(row.self_cpu_time_total == pytest.approx(row.cpu_time_total) for row in averages)


def test_shapes_are_apart_if_wanted():
    with profile(with_stack=False, gc=False) as prof:
        for size in (1, 2, 2):
            with record_function("op", bytearray(size)):
                pass
    (row,) = prof.key_averages()
    assert (row.count, row.input_shapes) == (3, "")
    first, second = prof.key_averages(group_by_input_shape=True)
    assert (first.count, first.input_shapes, second.count, second.input_shapes) == (1, [[1]], 2, [[2]])
    assert "Input Shapes" in prof.key_averages(group_by_input_shape=True).table()


def test_a_total_is_the_sum_of_all(recording):
    total = recording.key_averages().total_average()
    assert total.key == "Total"
    assert total.count == len(recording.events())
    assert total.self_cpu_time_total == pytest.approx(recording.events().self_cpu_time_total)
    assert recording.total_average().count == total.count


def test_the_first_event_tells_of_top_levels(recording):
    averages = recording.key_averages()
    top = {row.key for row in averages if row.cpu_parent is None}
    roots = {event.name for event in recording.events() if event.cpu_parent is None}
    assert top <= roots and top
    table = averages.table(top_level_events_only=True, row_limit=-1, max_name_column_width=None)
    assert all(name in table for name in top)
    assert ": inner" not in table


# ---- shapes --------------------------------------------------------------


class Interface:
    __array_interface__ = {"shape": (3, 4), "typestr": "<f4", "version": 3, "data": (0, False)}


class Size:
    def __index__(self):
        Emptied.__array_interface__.clear()
        return int("4")  # a C call: in a debug build, an exception that is set would abort here


class Emptied:
    __array_interface__ = {"shape": (3, Size()), "typestr": "<f4", "version": 3, "data": (0, False)}


class NoSize:
    __array_interface__ = {"shape": ("x", Size()), "version": 3}


class Failing:
    @property
    def __array_interface__(self):
        raise KeyError("no")


class FailingPack:
    def __dlpack__(self, stream=None):
        raise ValueError("no")


@pytest.mark.parametrize(
    ("values", "shapes", "types"),
    [
        ((array.array("i", [1, 2, 3]),), [[3]], ["int"]),
        ((memoryview(bytes(24)).cast("B", (2, 3, 4)),), [[2, 3, 4]], ["unsigned char"]),
        ((memoryview(bytes(24)).cast("q"), 5, None, True), [[3], [], [], []], ["long int", "Scalar", "", "Scalar"]),
        ((Interface(),), [[3, 4]], ["float"]),
        ((Emptied(),), [[3, 4]], ["float"]),
        ((NoSize(),), [[]], [""]),
        ((Failing(), FailingPack(), object), [[], [], []], ["", "", ""]),
        (("a", "b"), [[], []], ["", ""]),
        ((bytes(1),) * 40, [[1]] * 32, ["unsigned char"] * 32),
    ],
)
def test_arrays_are_noted_by_their_shapes(values, shapes, types, tmp_path):
    with profile(with_stack=False, gc=False) as prof, record_function("op", *values):
        pass
    (event,) = prof.events()
    assert event.structured_input_shapes == event.input_shapes == shapes
    assert event.input_dtypes == types
    _, (one,) = exported(prof, tmp_path / "t.json")
    assert one["args"]["Input Dims"] == shapes


def test_arrays_given_to_a_decorator_are_noted_too():
    @record_function("decorated", bytearray(7))
    def function():
        return 5

    with profile(with_stack=False, gc=False) as prof:
        assert function() == 5
    assert prof.events()[0].input_shapes == [[7]]


def test_dlpack_is_understood():
    numpy = pytest.importorskip("numpy")

    class Packed:
        def __init__(self, inner):
            self.inner = inner

        def __dlpack__(self):
            return self.inner.__dlpack__()

    with profile(with_stack=False, gc=False) as prof, record_function("op", Packed(numpy.zeros((2, 5), "complex64"))):
        pass
    assert prof.events()[0].input_shapes == [[2, 5]]
    assert prof.events()[0].input_dtypes == ["c10::complex<float>"]


# ---- stacks ----------------------------------------------------------------


def read_stacks(path):
    found = {}
    for line in path.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        assert int(number) > 0 and " " not in stack and stack not in found
        found[stack] = int(number)
    return found


def test_exported_stacks_have_the_own_times_of_contexts(tmp_path):
    def slow():
        time.sleep(0.01)

    with profile() as prof, record_function("around"):
        slow()
        slow()
    prof.export_stacks(tmp_path / "s.txt")
    found = read_stacks(tmp_path / "s.txt")
    (stack,) = [stack for stack in found if stack.endswith("<built-in_function_sleep>")]
    assert found[stack] >= 20_000
    assert stack.split(";")[-2].endswith("slow")
    assert "around" not in stack
    total = prof.key_averages().self_cpu_time_total
    assert sum(found.values()) == pytest.approx(total, abs=len(prof.events()))


def test_exported_stacks_are_never_empty(tmp_path):
    path = tmp_path / "s.txt"
    with profile() as prof:
        pass
    prof.export_stacks(path)
    assert read_stacks(path)


def test_stacks_need_calls_and_a_metric_that_there_is(tmp_path):
    with profile(with_stack=False, gc=False) as prof:
        pass
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks(tmp_path / "s.txt")
    with profile() as prof:
        inner(1)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "s.txt", "cpu_time")
    prof.export_stacks(tmp_path / "s.txt", "self_cuda_time_total")
    assert (tmp_path / "s.txt").read_text() == ""
    prof.events().export_stacks(str(tmp_path / "s.txt"), "self_cpu_time_total")
    assert read_stacks(tmp_path / "s.txt")


# ---- tables ----------------------------------------------------------------


def test_a_table_has_a_row_for_each_and_their_sum(recording):
    averages = recording.key_averages()
    lines = averages.table(sort_by="self_cpu_time_total", row_limit=3).splitlines()
    assert lines[1].split()[:3] == ["Name", "Self", "CPU"]
    assert len(lines) == 3 + 3 + 2
    assert lines[-1].startswith("Self CPU time total: ")
    own = sorted((row.self_cpu_time_total for row in averages), reverse=True)
    assert [row.self_cpu_time_total for row in sorted(averages, key=lambda row: -row.self_cpu_time_total)] == own
    assert str(recording.events()[:0]) == "[]" and EventList().table() == ""


@pytest.mark.parametrize(("unit", "factor"), [("s", 1e6), ("ms", 1e3), ("us", 1)])
def test_a_table_can_have_one_unit(recording, unit, factor):
    averages = recording.key_averages()
    table = averages.table(time_unit=unit, row_limit=1)
    assert f"{averages[0].cpu_time_total / factor:.3f}{unit}" in table
    assert table.rstrip().endswith(f"{averages.self_cpu_time_total / factor:.3f}{unit}")


def test_shares_add_up(recording):
    averages = recording.key_averages()
    averages.table(row_limit=-1)
    assert sum(float(row.self_cpu_percent.rstrip("%")) for row in averages) == pytest.approx(100, abs=1)


def test_bytes_have_their_columns():
    with profile(profile_memory=True) as prof:
        bytearray(3_000_000)
    table = prof.key_averages().table(sort_by="self_cpu_memory_usage")
    assert "CPU Mem" in table and "Self CPU Mem" in table
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages()) >= 3_000_000
    events = prof.events()
    assert sum(event.self_cpu_memory_usage for event in events) == sum(
        row.self_cpu_memory_usage for row in prof.key_averages()
    )


# ---- threads, and anything at all ------------------------------------------


def test_threads_before_and_during_are_all_there():
    ready, go = threading.Event(), threading.Event()

    def early():
        ready.set()
        go.wait()
        inner(5)

    def late():
        inner(6)

    first = threading.Thread(target=early)
    first.start()
    ready.wait()
    with profile() as prof:
        go.set()
        second = threading.Thread(target=late)
        second.start()
        first.join()
        second.join()
        inner(7)
    threads = {event.thread for event in prof.events() if event.name.endswith(": inner")}
    assert threads == {first.native_id, second.native_id, threading.get_native_id()}
    assert ending(prof.key_averages(), ": inner").count == 3


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_any_program_adds_up_in_every_view(seed, overlap):
    chance = random.Random(seed)
    open_spans = []

    def grow(depth):
        for _ in range(chance.randrange(4)):
            if overlap and chance.random() < 0.2:
                span = record_function(f"open{chance.randrange(3)}")
                span.__enter__()
                open_spans.append(span)
            if overlap and open_spans and chance.random() < 0.3:
                open_spans.pop(chance.randrange(len(open_spans))).__exit__(None, None, None)
            if depth and chance.random() < 0.6:
                grow(depth - 1)
            else:
                with record_function(f"leaf{chance.randrange(3)}"):
                    kept.append([[] for _ in range(5)])

    kept = []
    thresholds = gc.get_threshold()
    gc.set_threshold(3)  # collections everywhere, also while the profile starts
    try:
        with profile() as prof:
            grow(4)
    finally:
        gc.set_threshold(*thresholds)
    events = prof.events()
    for calls in (True, False):
        flat = prof.key_averages(include_python_functions=calls)
        deep = prof.key_averages(group_by_stack_n=100, include_python_functions=calls)
        assert flat.self_cpu_time_total == pytest.approx(deep.self_cpu_time_total, abs=0.001)
        assert all(row.self_cpu_time_total >= 0 for row in [*flat, *deep])
        assert sum(row.count for row in flat) == sum(row.count for row in deep)
    assert sum(row.count for row in prof.key_averages()) == len(events)
    assert events.self_cpu_time_total == pytest.approx(prof.key_averages().self_cpu_time_total)
    roots = sum(e.cpu_time_total for e in events if e.cpu_parent is None and not e.is_async)
    assert events.self_cpu_time_total == pytest.approx(roots, abs=0.001)
    for event in events:
        inside = sum(child.cpu_time_total for child in event.cpu_children)
        if event.is_async:
            assert not event.cpu_children
        else:
            assert event.self_cpu_time_total + inside == pytest.approx(event.cpu_time_total, abs=0.001)


def test_the_rows_say_what_the_extension_has():
    with profile() as prof:
        inner(1)
    trace = prof._session.trace()
    rows = trace.tables(["events"])["events"]
    assert isinstance(trace, _core.Trace) and not rows.is_cut
    assert set(rows["args"]) == {""}
    assert [row.start_ns for row in rows] == sorted(rows["start_ns"])
    assert len(rows) == len(prof.events())
    assert vestige.Trace is _core.Trace


# ---- memory over time -------------------------------------------------------


def timeline(prof, path):
    import gzip

    prof.export_memory_timeline(str(path))
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.name.endswith(".gz") else data)


@pytest.fixture(scope="module")
def allocations():
    kept = []
    with profile(profile_memory=True) as prof:
        bytearray(5_000_000)
        kept.append(bytearray(3_000_000))
    return prof


def test_single_events_tell_what_was_freed(allocations, tmp_path):
    raw = timeline(allocations, tmp_path / "t.raw.json.gz")
    large = [(action, size, category) for _, action, size, category in raw if abs(size) >= 3_000_000]
    assert [action for action, *_ in large] == [2, 4, 2]  # created, destroyed, created
    assert [category for *_, category in large] == [3, 3, 7]  # TEMPORARY, and unknown
    assert [time_ns for time_ns, *_ in raw] == sorted(time_ns for time_ns, *_ in raw)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_the_timeline_has_bytes_by_category(allocations, tmp_path, name):
    times, rows = timeline(allocations, tmp_path / name)
    assert len(times) == len(rows) and times == sorted(times)
    assert all(len(row) == 9 and row[0] == 0 and min(row) >= 0 for row in rows)
    assert max(row[4] for row in rows) >= 5_000_000
    assert rows[-1][8] >= 3_000_000 and rows[-1][4] == 0


def test_the_timeline_is_a_page_too(allocations, tmp_path):
    allocations.export_memory_timeline(tmp_path / "t.html", device="cpu")
    text = (tmp_path / "t.html").read_text()
    assert text.startswith("<!DOCTYPE html>") and text.count("<path") == 2 and "://" not in text


def test_other_devices_formats_and_memory_that_was_not_recorded_are_refused(allocations, tmp_path):
    with pytest.raises(ValueError, match="device 'cuda:0': only the memory of \"cpu\" is recorded"):
        allocations.export_memory_timeline(tmp_path / "t.json", device="cuda:0")
    with pytest.raises(ValueError, match=r"t.csv: unknown format; .* ends in .html, .json, .json.gz or .raw.json.gz"):
        allocations.export_memory_timeline(tmp_path / "t.csv")
    with pytest.raises(OSError, match="nowhere"):
        allocations.export_memory_timeline(tmp_path / "nowhere" / "t.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(IsADirectoryError, match="folder.json is a directory"):
        allocations.export_memory_timeline(tmp_path / "folder.json")
    assert os.listdir(tmp_path) == ["folder.json"]
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        profile(profile_memory=True).export_memory_timeline(tmp_path / "t.json")
    with profile() as prof:
        pass
    with pytest.raises(ValueError, match="profile_memory=True required"):
        prof.export_memory_timeline(tmp_path / "t.json")


FIELDS_OF_A_COPY = ("name", "id", "thread", "cpu_time_total", "self_cpu_time_total", "input_shapes", "stack", "scope")


def fields_of(event):
    relatives = [child.id for child in event.cpu_children], event.cpu_parent and event.cpu_parent.id
    return [getattr(event, field) for field in FIELDS_OF_A_COPY], relatives


@pytest.mark.parametrize(
    "duplicate", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_copies_of_events_and_averages_say_the_same_once_the_trace_is_gone(duplicate):
    with profile(with_stack=True) as prof:
        outer(3)
    events, averages = prof.events(), prof.key_averages()
    one = next(event for event in events if event.cpu_children and event.cpu_parent)
    wanted = [fields_of(event) for event in events], averages.table(), fields_of(one), events.table()
    copies = duplicate(events), duplicate(averages), duplicate(one)
    del prof, events, averages, one
    gc.collect()
    assert [fields_of(event) for event in copies[0]] == wanted[0]
    assert copies[1].table() == wanted[1]
    assert fields_of(copies[2]) == wanted[2]
    assert copies[0].table() == wanted[3]
    assert rows_of(copies[0].key_averages()).keys() == rows_of(copies[1]).keys()
    assert {row.scope for row in copies[1]} == {0, 7}


def test_a_copy_of_an_event_that_was_changed_keeps_the_change():
    made = FunctionEvent(7, "mine", 3, 1.0, 2.5, flops=12)
    made.append_cpu_child(FunctionEvent(8, "child", 3, 1.5, 2.0))
    again = pickle.loads(pickle.dumps(made))
    assert (again.id, again.name, again.flops, again.cpu_time_total) == (7, "mine", 12, 1.5)
    assert [child.name for child in again.cpu_children] == ["child"]
    with profile() as prof:
        inner(1)
    event = prof.events()[0]
    event.name = "renamed"
    assert copy.deepcopy(event).name == "renamed"
