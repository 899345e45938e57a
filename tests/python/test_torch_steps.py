"""Schedules and steps, cycles, metadata and ids of a profile, with torch.profiler's names and behaviour."""

import json
import os
import subprocess
import sys
import textwrap
import time
import warnings

import pytest

import vestige
from vestige import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from vestige.torch.profile import TorchProfile

pytestmark = pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")

NONE, WARMUP, RECORD, SAVE = (
    ProfilerAction.NONE,
    ProfilerAction.WARMUP,
    ProfilerAction.RECORD,
    ProfilerAction.RECORD_AND_SAVE,
)


def work(number=0):
    return len("x" * number)


def names(prof, cat=None):
    return [event.trace_name for event in prof.events() if cat is None or event.activity_type == cat]


def steps_of(prof):
    return [name for name in names(prof, "user_annotation") if name.startswith("ProfilerStep#")]


def document(prof, path):
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_bytes())


# ---- schedule() ----------------------------------------------------------


def test_a_schedule_repeats_its_cycle():
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    actions = [plan(step) for step in range(11)]
    assert actions == [NONE, NONE, WARMUP, RECORD, SAVE, NONE, WARMUP, RECORD, SAVE, NONE, NONE]


def test_the_first_wait_can_be_skipped():
    plan = schedule(wait=3, warmup=1, active=1, skip_first=1, skip_first_wait=1)
    assert [plan(step) for step in range(8)] == [NONE, WARMUP, SAVE, NONE, NONE, NONE, WARMUP, SAVE]


def test_one_active_step_is_saved_at_once():
    plan = schedule(wait=0, warmup=1, active=1)
    assert [plan(step) for step in range(4)] == [WARMUP, SAVE, WARMUP, SAVE]


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -1}])
def test_numbers_that_make_no_schedule_are_refused(wrong):
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
        schedule(**{"wait": 0, "warmup": 1, "active": 1, **wrong})


def test_a_schedule_without_warmup_warns():
    with pytest.warns(UserWarning, match="won't be using warmup"):
        plan = schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError, match="Step must be non-negative"):
        plan(-1)


# ---- steps ---------------------------------------------------------------


def run_steps(count, **options):
    ready = []

    def note(prof):
        ready.append((steps_of(prof), sum(event.trace_name.endswith(": work") for event in prof.events())))

    prof = profile(on_trace_ready=note, with_stack=True, **options)
    with prof:
        for number in range(count):
            work(number)
            prof.step()
    return prof, ready


def test_each_cycle_holds_its_active_steps_and_no_others():
    _, ready = run_steps(8, schedule=schedule(wait=1, warmup=1, active=2))
    assert ready == [(["ProfilerStep#2", "ProfilerStep#3"], 2), (["ProfilerStep#6", "ProfilerStep#7"], 2)]


def test_a_cycle_that_is_cut_short_is_ready_at_the_end():
    _, ready = run_steps(3, schedule=schedule(wait=1, warmup=1, active=3))
    assert ready == [(["ProfilerStep#2", "ProfilerStep#3"], 1)]


def test_warming_up_alone_leaves_an_empty_recording():
    prof, ready = run_steps(1, schedule=schedule(wait=1, warmup=1, active=3))
    assert ready == []
    assert [event.name for event in prof.events() if event.trace_name.endswith(": work")] == []


def test_accumulated_cycles_are_all_there(tmp_path):
    prof, ready = run_steps(8, schedule=schedule(wait=1, warmup=1, active=2), acc_events=True)
    assert [len(found) for found, _ in ready] == [2, 4]
    assert steps_of(prof) == [f"ProfilerStep#{number}" for number in (2, 3, 6, 7)]
    steps = {event["name"] for event in document(prof, tmp_path / "t.json")["traceEvents"] if "#" in event["name"]}
    assert len(steps) == 4


def test_all_cycles_are_in_one_file(tmp_path):
    path = tmp_path / "t.vst"
    prof, _ = run_steps(8, schedule=schedule(wait=1, warmup=1, active=2), output=str(path))
    trace = vestige.Trace(str(path))
    assert trace.info()["windows"] == 2
    found = {name for _, name in filter(None, trace.definitions()) if name.startswith("ProfilerStep#")}
    assert found == {f"ProfilerStep#{number}" for number in (2, 3, 6, 7)}
    exported = document(prof, tmp_path / "t.json")["traceEvents"]
    assert sorted(e["name"] for e in exported if "#" in e["name"]) == ["ProfilerStep#6", "ProfilerStep#7"]


def test_without_a_schedule_stopping_is_ready_once_and_steps_leave_no_mark():
    prof, ready = run_steps(3)
    assert ready == [([], 3)]
    assert prof.step_num == 3
    assert prof.current_action is RECORD


def test_starting_again_without_a_schedule_goes_on():
    prof = profile()
    for _ in range(2):
        prof.start()
        work()
        prof.stop()
    assert sum(name.endswith(": work") for name in names(prof)) == 2


def test_torch_keeps_the_last_cycle_only(tmp_path):
    vestige.install()
    try:
        prof = profile(with_stack=True)
    finally:
        vestige.uninstall()
    for _ in range(3):
        prof.start()
        work()
        prof.stop()
    assert sum(name.endswith(": work") for name in names(prof)) == 1
    exported = document(prof, tmp_path / "t.json")["traceEvents"]
    assert sum(event["name"].endswith(": work") for event in exported) == 1


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([RECORD, NONE], "RECORD followed by NONE"),
        ([RECORD, WARMUP], "RECORD followed by WARMUP"),
        ([WARMUP, NONE], "WARMUP followed by NONE"),
    ],
)
def test_transitions_that_lose_records_warn(plan, message):
    prof = profile(schedule=lambda step: plan[step])
    prof.start()
    with pytest.warns(UserWarning, match=f"Incorrect schedule: {message}") as caught:
        prof.step()
    prof.stop()
    assert caught[0].filename == __file__


STATES = [NONE, WARMUP, RECORD, SAVE]


@pytest.mark.parametrize("first", STATES)
@pytest.mark.parametrize("second", STATES)
@pytest.mark.filterwarnings("ignore:Incorrect schedule")
def test_between_any_two_actions_recording_is_what_the_second_says(first, second):
    ready = []
    prof = profile(schedule=lambda step: [first, second][step], on_trace_ready=ready.append)
    recording = (RECORD, SAVE)
    with prof:
        assert prof._session.recording is (first in recording)
        prof.step()
        assert prof._session.recording is (second in recording)
        assert len(ready) == (first is SAVE)
    assert not prof._session.recording
    assert len(ready) == (first is SAVE) + (second in recording)


def test_a_schedule_may_not_stop_the_device():
    with pytest.raises(ValueError, match="DEVICE_STOPPED is set internally"):
        profile(schedule=lambda step: ProfilerAction.DEVICE_STOPPED)
    prof = profile(schedule=lambda step: ProfilerAction.DEVICE_STOPPED if step else RECORD)
    prof.start()
    with pytest.raises(ValueError, match="DEVICE_STOPPED is set internally"):
        prof.step()
    assert prof.step_num == 0
    prof.stop()


def test_a_schedule_must_give_actions():
    with pytest.raises(TypeError, match="a schedule must return a ProfilerAction, not 3"):
        profile(schedule=lambda step: 3)


def test_programs_may_set_the_step_and_the_schedule():
    """Lightning does."""
    prof = profile(schedule=schedule(wait=1, warmup=1, active=1))
    with prof:
        prof.step_num = 10
        prof.schedule = lambda step: RECORD
        prof.step()
        work()
    assert steps_of(prof) == ["ProfilerStep#11"]


def test_a_step_is_one_row_of_the_table():
    prof, _ = run_steps(2, schedule=schedule(wait=0, warmup=1, active=2))
    (row,) = [row for row in prof.key_averages() if row.key == "ProfilerStep*"]
    assert row.count == 2


def test_steps_are_counted_for_all_who_have_some():
    from vestige import KinetoStepTracker as tracker

    start = tracker.current_step()
    tracker.init_step_count("a")
    tracker.init_step_count("b")
    assert tracker.increment_step("a") == start + 1
    assert tracker.increment_step("b") == start + 1
    assert tracker.increment_step("b") == start + 2
    assert tracker.erase_step_count("a") and tracker.erase_step_count("b")
    assert not tracker.erase_step_count("a")


# ---- handlers, ids, metadata ----------------------------------------------


def test_the_handler_writes_a_file_for_each_cycle(tmp_path):
    handler = vestige.tensorboard_trace_handler(str(tmp_path / "new"), "worker", use_gzip=True)
    prof = profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=handler)
    with prof:
        for _ in range(4):
            prof.step()
    files = sorted(os.listdir(tmp_path / "new"))
    assert len(files) == 2
    for name in files:
        worker, digits, *rest = name.split(".")
        assert (worker, rest) == ("worker", ["pt", "trace", "json", "gz"])
        assert digits.isdigit()


def test_a_worker_is_named_after_its_machine_and_process(tmp_path):
    with profile(on_trace_ready=vestige.tensorboard_trace_handler(str(tmp_path))):
        pass
    (name,) = os.listdir(tmp_path)
    assert name.startswith(f"{os.uname().nodename}_{os.getpid()}.") and name.endswith(".pt.trace.json")


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path):
    (tmp_path / "file").write_text("")
    prof = profile(on_trace_ready=vestige.tensorboard_trace_handler(str(tmp_path / "file" / "x")))
    prof.start()
    with pytest.raises(RuntimeError, match="Can't create directory"):
        prof.stop()


def test_each_cycle_has_an_id(tmp_path):
    ids = []
    prof = profile(
        schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=lambda prof: ids.append(prof.get_trace_id())
    )
    assert prof.get_trace_id() is None
    with prof:
        for _ in range(4):
            prof.step()
    assert len(set(ids)) == 2
    assert all(len(each) == 32 and int(each, 16) for each in ids)


def test_ids_may_be_given(tmp_path):
    numbers = iter("abc")
    prof = profile(custom_trace_id_callback=lambda: f'id "{next(numbers)}"')
    prof.start()
    assert prof.get_trace_id() == 'id "a"'
    prof.stop()
    assert document(prof, tmp_path / "t.json")["trace_id"] == 'id "a"'
    prof.set_custom_trace_id_callback(lambda: "other")
    prof.start()
    prof.stop()
    assert prof.get_trace_id() == "other"
    assert document(prof, tmp_path / "t.json")["trace_id"] == "other"


def test_metadata_may_come_before_while_and_after(tmp_path):
    prof = profile(record_shapes=True, with_flops=True, with_modules=True, profile_memory=True)
    prof.preset_metadata_json("preset", '{"a": [1, 2]}')
    prof.add_metadata("before", 'a "quoted" text')
    with prof:
        prof.add_metadata_json("while", "[1.5]")
    prof.add_metadata("after", "x")
    found = document(prof, tmp_path / "t.json")
    assert found["preset"] == {"a": [1, 2]}
    assert found["before"] == 'a "quoted" text'
    assert (found["while"], found["after"]) == ([1.5], "x")
    flags = ("record_shapes", "with_flops", "with_modules", "profile_memory", "with_stack")
    assert [found[flag] for flag in flags] == [1] * 5


def test_what_is_not_json_is_refused_when_it_is_preset():
    with pytest.raises(ValueError, match="not JSON"):
        profile().preset_metadata_json("key", "{")


# ---- activities and the experimental config --------------------------------


def test_activities_are_checked_as_torch_checks_them():
    cpu = ProfilerActivity.CPU
    with pytest.raises(ValueError, match="Activity ProfilerActivity.CPU specified more than once"):
        profile(activities=[cpu, cpu])
    with pytest.raises(ValueError, match="specified more than once"):
        profile(activities=[{cpu: ["x"]}, cpu])
    for nothing in ([], set(), ["CPU"]):
        with pytest.raises(AssertionError, match="No valid profiler activities found"):
            profile(activities=nothing)
    with pytest.raises(TypeError, match="Expected ProfilerActivity or dict, got <class 'str'>"):
        profile(activities=[cpu, "CUDA"])
    assert vestige.supported_activities() == {cpu}


def test_reading_can_be_forbidden_for_the_sake_of_the_file(tmp_path):
    prof = profile(with_stack=False, experimental_config=vestige._ExperimentalConfig(trace_only=True))
    with prof, record_function("x"):
        pass
    for read in (prof.events, prof.key_averages):
        with pytest.raises(RuntimeError, match="trace_only=True"):
            read()
    assert any(event["name"] == "x" for event in document(prof, tmp_path / "t.json")["traceEvents"])
    with pytest.warns(UserWarning, match="trace_only=True is incompatible with with_stack=True"):
        prof = profile(with_stack=True, experimental_config=vestige._ExperimentalConfig(trace_only=True))
    with prof:
        work()
    assert len(prof.events())


def test_fields_of_devices_are_named_in_one_warning():
    code = """
        import warnings, vestige
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                config = vestige._ExperimentalConfig(["metric"], enable_cuda_sync_events=True, verbose=True)
                vestige.profile(experimental_config=config)
        assert len(caught) == 1, caught
        assert "profiler_metrics, enable_cuda_sync_events have no effect" in str(caught[0].message)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


def test_garbage_collections_are_recorded_on_request():
    import gc

    def collect(**options):
        with profile(with_stack=True, **options) as prof:
            gc.collect()
        return any(name == "Python GC" for name in names(prof))

    config = vestige._ExperimentalConfig(record_python_gc_info=True)
    assert collect()
    vestige.install()
    try:
        assert not collect()
        assert collect(experimental_config=config)
    finally:
        vestige.uninstall()


# ---- the rest ---------------------------------------------------------------


class Observer:
    def __init__(self):
        self.calls = []

    def start(self):
        self.calls.append("start")

    def stop(self):
        self.calls.append("stop")

    def cleanup(self):
        self.calls.append("cleanup")


def test_an_observer_is_started_and_stopped_with_each_cycle():
    observer = Observer()
    prof = profile(schedule=schedule(wait=1, warmup=1, active=1), execution_trace_observer=observer)
    with prof:
        for _ in range(6):
            prof.step()
    assert observer.calls == ["start", "stop"] * 2 + ["cleanup"]


def test_pauses_are_part_of_their_cycle(tmp_path):
    plan = schedule(wait=0, warmup=1, active=2, repeat=1)
    prof = profile(schedule=plan, with_stack=True)
    with prof:
        prof.step()
        work(1)
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        work(2)
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        work(3)
    assert sum(name.endswith(": work") for name in names(prof)) == 2


def test_a_child_that_is_forked_in_the_block_ends(tmp_path):
    code = """
        import os, vestige
        prof = vestige.profile(schedule=vestige.schedule(wait=0, warmup=1, active=5))
        with prof:
            prof.step()
            child = os.fork()
            if child == 0:
                prof.step()
                prof.stop()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        assert any(event.name == "ProfilerStep*" for event in prof.events())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


def test_itt_does_nothing():
    from vestige import itt

    assert itt.is_available() is False
    with itt.range("a {}", 1):
        itt.mark("b")
    assert (itt.range_push("c"), itt.range_pop()) == (0, 0)

    @itt.range("d")
    def function():
        return 5

    assert function() == 5


def test_a_future_ends_the_span_that_waits_for_it():
    import asyncio

    async def main():
        with profile(with_stack=False, gc=False) as prof:
            future = asyncio.get_running_loop().create_future()
            with record_function("waiting") as span:
                assert span._call_end_callbacks_on_future(future) is future
                with pytest.raises(RuntimeError, match="only be called once"):
                    span._call_end_callbacks_on_future(future)
            with record_function("after"):
                pass
            future.set_result(5)
            await asyncio.sleep(0)
            with record_function("last"):
                pass
        return prof

    prof = asyncio.run(main())
    found = {event.name: event for event in prof.events()}
    assert found["waiting"].time_range.end > found["after"].time_range.end
    assert found["waiting"].time_range.end < found["last"].time_range.start


def test_a_future_that_another_thread_finishes_ends_a_span_of_the_main_thread():
    from concurrent.futures import ThreadPoolExecutor

    def wait():
        time.sleep(0.02)
        return 7

    with profile(with_stack=False, gc=False) as prof, ThreadPoolExecutor(1) as pool:
        with record_function("waiting") as span:
            future = span._call_end_callbacks_on_future(pool.submit(wait))
        assert future.result() == 7
        pool.shutdown()  # the thread has called the future's callbacks, too
        with record_function("last"):
            pass
    found = {event.name: event for event in prof.events()}
    assert 15_000 < found["waiting"].cpu_time_total
    assert found["waiting"].time_range.end < found["last"].time_range.start


def test_the_new_names_cost_nothing_to_import():
    code = """
        import sys
        import vestige
        loaded = {name for name in sys.modules if name.startswith("vestige.")}
        assert loaded == {"vestige._core", "vestige.annotate", "vestige.render"}, loaded
        prof = vestige.profile()
        prof.start()
        prof.stop()
        assert "vestige.torch.events" not in sys.modules and "vestige.torch.steps" not in sys.modules
        for name in vestige.__all__:
            getattr(vestige, name)
        assert callable(vestige.schedule)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


def test_the_profile_has_all_of_torchs_methods():
    wanted = """start stop step events key_averages export_chrome_trace export_stacks toggle_collection_dynamic
        add_metadata add_metadata_json preset_metadata_json get_trace_id set_custom_trace_id_callback"""
    assert all(callable(getattr(profile, name)) for name in wanted.split())
    assert issubclass(profile, TorchProfile)


def test_cycles_that_are_cleared_are_told_of_once():
    import vestige.torch.profile

    vestige.torch.profile._told_of_cycles = False
    prof = profile(schedule=schedule(wait=0, warmup=1, active=1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with prof:
            for _ in range(7):
                prof.step()
    assert [str(each.message)[:40] for each in caught] == ["Warning: Profiler clears events at the e"]
