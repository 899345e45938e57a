"""Requirements of torch's own tests of its profiler, applied to ours where they make sense without torch: counts of
schedules, steps, threads around a recording, collections, time limits, units, forks, spans that end on other threads.
"""

import asyncio
import copy
import gc
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import vestige
from vestige import KinetoStepTracker, ProfilerActivity, profile, record_function, schedule

pytestmark = [
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events"),
    pytest.mark.filterwarnings("ignore:Profiler won't be using warmup"),
]


def exported(prof, path):
    prof.export_chrome_trace(path)
    return json.loads(path.read_bytes())["traceEvents"]


def named(prof, name):
    return [event for event in prof.events() if event.name == name]


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


# ---- schedules and steps ---------------------------------------------------------


@pytest.mark.parametrize(
    ("warmup", "active", "repeat", "acc_events", "expected"),
    [
        (0, 1, 1, True, 1),
        (0, 5, 0, True, 100),
        (0, 5, 10, True, 50),
        (1, 5, 0, True, 83),
        (10, 10, 4, True, 40),
        (50, 1, 0, True, 1),
        (0, 5, 0, False, 0),
        (10, 10, 4, False, 10),
    ],
)
def test_a_hundred_steps_leave_as_many_calls_as_the_schedule_records(warmup, active, repeat, acc_events, expected):
    plan = schedule(wait=0, warmup=warmup, active=active, repeat=repeat)
    with profile(schedule=plan, acc_events=acc_events, with_stack=False, gc=False) as prof:
        for _ in range(100):
            with record_function("add"):
                pass
            prof.step()
    assert sum(row.count for row in prof.key_averages() if row.key == "add") == expected


def test_the_handler_is_called_after_each_cycle_and_steps_are_counted_for_a_daemon(monkeypatch):
    tables = []
    first = KinetoStepTracker.current_step()
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda prof: tables.append(prof.key_averages().table(sort_by="self_cpu_time_total")),
    ) as prof:
        for _ in range(8):
            prof.step()
    assert len(tables) == 2
    assert KinetoStepTracker.current_step() == first + 8
    monkeypatch.delenv("KINETO_USE_DAEMON")
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as prof:
        prof.step()
    assert KinetoStepTracker.current_step() == first + 8


# ---- what may be asked for -------------------------------------------------------


def test_names_of_activities_that_nobody_knows_are_refused_at_the_start():
    cpu = ProfilerActivity.CPU
    for known in (["CPU_OP"], ["PYTHON_FUNCTION", "USER_ANNOTATION"], []):
        with profile(activities=[{cpu: known}]):
            pass
    with pytest.raises(RuntimeError, match="Unknown or non-member activity type name: 'NONEXISTENT'"):
        with profile(activities=[{cpu: ["CPU_OP", "NONEXISTENT"]}]):
            pass
    with profile(activities=iter([cpu])) as prof:  # an iterator can be read only once
        pass
    assert prof.activities == {cpu}


def test_a_config_can_be_pickled_and_copied():
    config = vestige._ExperimentalConfig(verbose=True, performance_events=["a"], custom_profiler_config="x")
    for other in (pickle.loads(pickle.dumps(config)), copy.deepcopy(config), copy.copy(config)):
        assert isinstance(other, vestige._ExperimentalConfig) and vars(other) == vars(config)


@pytest.mark.parametrize(("seconds", "complete"), [(None, True), (60.0, True), (0.0, False)])
def test_reading_has_a_time_limit(seconds, complete, caplog):
    with profile(post_processing_timeout_s=seconds) as prof:
        for number in range(5000):
            abs(number)
    with caplog.at_level(logging.WARNING, logger="vestige"):
        count = len(prof.events())
    assert (count >= 5000) == complete
    assert any("timed out" in text and "partial results" in text for text in caplog.messages) != complete


def test_a_time_limit_below_zero_is_refused():
    with pytest.raises(ValueError, match="post_processing_timeout_s must be non-negative"):
        profile(post_processing_timeout_s=-1.0)


def test_a_table_in_one_unit_has_no_other():
    with profile(with_stack=False) as prof:
        for _ in range(3):
            with record_function("a"), record_function("b"):
                pass
    for unit in ("s", "ms", "us"):
        table = prof.key_averages().table(time_unit=unit)
        assert set(re.findall(r"\.\d{3}([a-z]+)", table)) == {unit}


def test_what_torch_has_below_its_profile_is_there():
    prof = profile(with_stack=False, gc=False)  # a collection would be another event
    assert prof.profiler is None
    with prof, record_function("x"):
        pass
    assert [event.name for event in prof.profiler.function_events] == ["x"]
    assert prof.profiler.self_cpu_time_total == prof.events().self_cpu_time_total > 0
    assert "Self CPU time total" in prof.profiler.table(row_limit=1)
    assert prof.profiler.total_average().count == 1


def test_calls_are_averaged_where_with_stack_was_asked_for():
    for options, expected in (({"with_stack": True}, True), ({}, True), ({"with_stack": False}, False)):
        with profile(**options) as prof, record_function("x"):
            abs(1)
        assert any(row.is_python_function for row in prof.key_averages()) is expected


# ---- collections -------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [True, False])
def test_a_collection_lies_between_the_annotations_around_it(wanted, tmp_path):
    vestige.install()
    try:
        config = vestige._ExperimentalConfig(record_python_gc_info=wanted)
        with profile(experimental_config=config, with_stack=True) as prof:
            with record_function("before"):
                pass
            gc.collect()
            with record_function("after"):
                pass
    finally:
        vestige.uninstall()
    events = exported(prof, tmp_path / "t.json")
    collections = [e for e in events if e["name"] == "Python GC"]
    assert bool(collections) is wanted
    if wanted:
        (before,) = [e for e in events if e["name"] == "before"]
        (after,) = [e for e in events if e["name"] == "after"]
        between = [
            e for e in collections if e["ts"] > before["ts"] + before["dur"] and e["ts"] + e["dur"] < after["ts"]
        ]
        assert between


# ---- threads around a recording ------------------------------------------------------


def known_before(started, go, ended, leave):
    started.set()
    go.wait()
    called_during()
    ended.set()
    leave.wait()


def called_during():
    return abs(-1)


@pytest.mark.parametrize("starts_inside", [False, True])
@pytest.mark.parametrize("ends_inside", [False, True])
def test_threads_may_begin_and_end_inside_a_recording_or_outside_of_it(starts_inside, ends_inside):
    events = [[threading.Event() for _ in range(4)] for _ in range(3)]
    threads = [threading.Thread(target=known_before, args=args) for args in events]

    def start():
        for thread, (started, *_) in zip(threads, events, strict=True):
            thread.start()
            started.wait()

    def end():
        for thread, (*_, leave) in zip(threads, events, strict=True):
            leave.set()
            thread.join()

    if not starts_inside:
        start()
    with profile() as prof:
        if starts_inside:
            start()
        for _, go, ended, _ in events:
            go.set()
            ended.wait()
        called_during()
        if ends_inside:
            end()
    if not ends_inside:
        end()
    ids = {thread.native_id for thread in threads}
    during = [event for event in prof.events() if event.name.endswith(": called_during")]
    assert sorted(event.thread for event in during) == sorted(ids | {threading.get_native_id()})
    before = [event for event in prof.events() if event.name.endswith(": known_before")]
    assert sorted(event.thread for event in before) == sorted(ids)


def test_a_forked_child_profiles_itself_after_its_parent_did(tmp_path):
    with profile():
        abs(1)
    path = tmp_path / "child.json"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with profile() as prof, record_function("in child"):
                abs(1)
            (event,) = [e for e in exported(prof, path) if e["name"] == "in child"]
            code = 0 if event["pid"] == os.getpid() == event["tid"] else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


# ---- spans that end on other threads ----------------------------------------------------


@pytest.mark.parametrize("stack", [False, True])
def test_a_span_that_another_thread_ends_is_one_with_its_true_times(stack, tmp_path):
    with profile(with_stack=stack) as prof:
        span = record_function("waits", b"123")
        span.__enter__()
        with record_function("before"):
            pass
        in_thread(lambda: span.__exit__(None, None, None))
        with record_function("after"):
            pass
    (event,) = named(prof, "waits")
    assert event.is_async and event.input_shapes == [[3]]
    assert event.thread == threading.get_native_id()
    assert named(prof, "before")[0].time_range.end <= event.time_range.end
    assert event.time_range.end <= named(prof, "after")[0].time_range.start
    pair = [e for e in exported(prof, tmp_path / "t.json") if e["name"] == "waits"]
    assert [e["ph"] for e in pair] == ["b", "e"]
    assert "open at end" not in pair[0]["args"]
    (row,) = [row for row in prof.key_averages() if row.key == "waits"]
    assert (row.count, row.self_cpu_time_total) == (1, 0)
    assert row.cpu_time_total == pytest.approx(event.cpu_time_total)


def test_futures_of_all_kinds_end_spans_in_all_threads():
    plain = Future()

    def begin():
        with record_function("plain") as span:
            assert span._call_end_callbacks_on_future(plain) is plain

    async def task():
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with record_function("asyncio") as span:
            span._call_end_callbacks_on_future(future)
        loop.call_later(0.01, future.set_result, 1)
        await future

    with profile(with_stack=False, gc=False) as prof:
        in_thread(begin)
        with ThreadPoolExecutor(1) as pool:
            with record_function("pool") as span:
                span._call_end_callbacks_on_future(pool.submit(lambda: threading.Event().wait(0.01)))
        with record_function("before"):
            pass
        in_thread(lambda: plain.set_result(1))
        with record_function("after"):
            pass
        asyncio.run(task())
    (event,) = named(prof, "plain")
    assert named(prof, "before")[0].time_range.end <= event.time_range.end
    assert event.time_range.end <= named(prof, "after")[0].time_range.start
    for name in ("pool", "asyncio"):
        assert 9_000 < named(prof, name)[0].cpu_time_total
    assert named(prof, "pool")[0].time_range.end <= named(prof, "before")[0].time_range.start


def test_what_nobody_ends_is_open_at_the_end_and_may_be_ended_later(tmp_path):
    with profile(with_stack=False) as prof:
        span = record_function("waits")
        span.__enter__()
    in_thread(lambda: span.__exit__(None, None, None))
    with prof:
        in_thread(lambda: span.__exit__(None, None, None))
    (event,) = [e for e in exported(prof, tmp_path / "t.json") if e["name"] == "waits"]
    assert event["args"]["open at end"] == 1


def test_a_file_knows_such_ends_when_it_is_read_again(tmp_path):
    """With a bounded file, and with a torn one."""
    code = """
import os, threading
from vestige import profile, record_function
prof = profile(with_stack=False, output="t.vst", max_size="2M")
prof.start()
span = record_function("waits")
span.__enter__()
thread = threading.Thread(target=span.__exit__, args=(None, None, None))
thread.start()
thread.join()
with record_function("after"):
    pass
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
    export = [sys.executable, "-m", "vestige", "export", "t.vst", "-o", "t.json"]
    subprocess.run(export, cwd=tmp_path, check=True, timeout=60, capture_output=True)
    events = json.loads((tmp_path / "t.json").read_bytes())["traceEvents"]
    begin, end = [e for e in events if e["name"] == "waits"]
    (after,) = [e for e in events if e["name"] == "after"]
    assert begin["ts"] <= end["ts"] <= after["ts"]
