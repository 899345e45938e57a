"""After install(), torch's own classes use vestige; compared with torch's recorder in one process."""

import copy
import gc
import inspect
import json
import logging
import pickle
import threading
import warnings

import pytest

import vestige

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch.autograd import profiler as autograd
from torch.autograd import profiler_util

pytestmark = pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")

CPU = torch.profiler.ProfilerActivity.CPU
Theirs = torch.profiler.profile


@pytest.fixture
def installed():
    vestige.install()
    yield torch.profiler.profile
    vestige.uninstall()


def both(work):
    """Returns the results of `work` with torch's profile and with ours."""
    theirs = work(Theirs)
    vestige.install()
    try:
        return work(torch.profiler.profile), theirs
    finally:
        vestige.uninstall()


def attempt(function):
    try:
        return function()
    except Exception as error:
        return type(error), str(error)


def names(prof):
    return [event.name for event in prof.events()]


def document(prof, path):
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_bytes())["traceEvents"]


# ---- classes ---------------------------------------------------------------


def test_what_a_program_gets_is_of_torchs_classes(installed):
    with installed(activities=[CPU]) as prof:
        torch.ones(2)
    assert vestige.profiler.profile not in type(prof).__mro__
    assert isinstance(prof, Theirs) and isinstance(prof, torch.profiler._KinetoProfile)
    assert isinstance(prof.profiler, autograd.profile)
    assert isinstance(prof.events(), profiler_util.EventList)
    assert isinstance(prof.events()[0], profiler_util.FunctionEvent)
    assert isinstance(prof.key_averages(), profiler_util.EventList)
    assert isinstance(prof.key_averages()[0], profiler_util.FunctionEventAvg)


def test_names_that_are_not_exchanged_stay_torchs(installed):
    assert torch.profiler.ProfilerActivity is torch._C._profiler.ProfilerActivity
    assert torch.profiler._ExperimentalConfig is torch._C._profiler._ExperimentalConfig
    assert torch.profiler.schedule.__module__ == torch.profiler.ProfilerAction.__module__ == "torch.profiler.profiler"
    assert torch.profiler.itt.is_available() == torch._C._itt.is_available()
    with autograd.profile(experimental_config=torch.profiler._ExperimentalConfig()):
        torch.ones(2)


def test_options_can_be_found_by_their_signature(installed):
    found = inspect.signature(installed).parameters
    assert set(inspect.signature(Theirs).parameters) < set(found)
    assert {"output", "engine", "qualified_names"} <= set(found)
    with pytest.raises(TypeError, match="nonsense"):
        installed(nonsense=1)


def test_a_subclass_is_asked_to_prepare_start_and_stop(installed):
    calls = []

    class Mine(installed):
        def prepare_trace(self):
            calls.append("prepare")
            super().prepare_trace()

        def start_trace(self):
            calls.append("start")
            super().start_trace()

        def stop_trace(self):
            calls.append("stop")
            super().stop_trace()

    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with Mine(activities=[CPU], schedule=plan) as prof:
        for _ in range(3):
            torch.ones(2)
            prof.step()
    assert calls == ["prepare", "start", "stop"]
    assert "aten::ones" in names(prof)


def test_its_parts_can_be_called_one_by_one():
    def work(profile):
        prof = profile(activities=[CPU])
        prof.prepare_trace()
        torch.zeros(2)
        prof.start_trace()
        torch.ones(2)
        prof.stop_trace()
        return names(prof)

    ours, theirs = both(work)
    assert ours == theirs


def test_events_survive_pickling_and_copying(installed):
    with installed(activities=[CPU], record_shapes=True) as prof:
        torch.ones(2) + 1
    events, averages = prof.events(), prof.key_averages()
    expected = [(event.name, event.input_shapes) for event in events]
    rows, one = [(row.key, row.count) for row in averages], events[1]
    copies = [
        [pickle.loads(pickle.dumps(each)), copy.deepcopy(each)]  # the recorded data are gone when copies are read
        for each in (events, averages, one)
    ]
    del prof, events, averages, one
    gc.collect()
    assert [[(event.name, event.input_shapes) for event in each] for each in copies[0]] == [expected] * 2
    assert [[(row.key, row.count) for row in each] for each in copies[1]] == [rows] * 2
    assert [(each.name, each.input_shapes) for each in copies[2]] == [expected[1]] * 2


# ---- starting and stopping ---------------------------------------------------


def test_a_second_start_begins_anew():
    def work(profile):
        prof = profile(activities=[CPU])
        prof.start()
        torch.ones(2)
        prof.start()
        torch.zeros(2)
        prof.stop()
        return names(prof)

    ours, theirs = both(work)
    assert ours == theirs == ["aten::zeros", "aten::empty", "aten::zero_"]


def test_a_profile_that_is_held_unstopped_is_in_nobodys_way():
    def work(profile):
        held = profile(activities=[CPU])
        held.start()
        with profile(activities=[CPU]) as prof:
            torch.ones(2)
        found = names(prof)
        held.stop()
        return found

    ours, theirs = both(work)
    assert ours == theirs == ["aten::ones", "aten::empty", "aten::fill_"]


def test_a_profile_that_was_interrupted_keeps_what_it_had(installed):
    with installed(activities=[CPU]) as outer:
        torch.ones(2)
        with installed(activities=[CPU]) as inner:
            torch.zeros(2)
        torch.full((2,), 1)
    assert names(outer) == ["aten::ones", "aten::empty", "aten::fill_"]
    assert names(inner) == ["aten::zeros", "aten::empty", "aten::zero_"]


def test_a_profile_of_another_thread_is_an_error(installed):
    found = []
    with installed(activities=[CPU]):
        thread = threading.Thread(target=lambda: found.append(attempt(installed(activities=[CPU]).start)))
        thread.start()
        thread.join()
    assert found[0][0] is RuntimeError and "already running" in found[0][1]


@pytest.mark.parametrize(
    "early",
    [
        lambda prof: prof.stop(),
        lambda prof: prof.events(),
        lambda prof: prof.key_averages(),
        lambda prof: prof.export_chrome_trace("none.json"),
        lambda prof: prof.export_stacks("none.txt"),
        lambda prof: prof._memory_profile(),
        lambda prof: prof._stats(),
        lambda prof: prof.get_trace_id(),
    ],
)
def test_what_is_asked_too_early_ends_as_in_torch(early):
    ours, theirs = both(lambda profile: attempt(lambda: early(profile(activities=[CPU]))))
    assert ours == theirs


def test_inside_the_block_there_is_nothing_yet():
    def work(profile):
        with profile(activities=[CPU]) as prof:
            torch.ones(2)
            inside = len(prof.events()), len(prof.key_averages()), repr(prof.profiler)
        return inside, len(prof.events())

    ours, theirs = both(work)
    assert ours == theirs


def test_an_earlier_cycle_can_still_be_read(installed):
    kept = []
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with installed(activities=[CPU], schedule=plan, on_trace_ready=lambda prof: kept.append(prof.profiler)) as prof:
        for number in range(5):
            torch.ones(2) if number < 2 else torch.zeros(2)
            prof.step()
    first, second = ([event.name for event in each.function_events] for each in kept)
    assert "aten::ones" in first and "aten::zeros" not in first
    assert "aten::zeros" in second and "aten::ones" not in second


def test_cycles_accumulate_as_in_torch():
    def work(profile):
        plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
        with profile(activities=[CPU], schedule=plan, acc_events=True) as prof:
            for _ in range(5):
                torch.ones(2)
                prof.step()
        return sorted(names(prof)), {row.key: row.count for row in prof.key_averages()}

    ours, theirs = both(work)
    assert ours == theirs


def test_the_warning_about_cycles_names_torchs_line(installed):
    torch.profiler.profiler._WARNINGS_SHOWN.clear()
    prof = installed(activities=[CPU])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            prof.start()
            prof.stop()
    assert [(warning.filename, "clears events" in str(warning.message)) for warning in caught] == [
        (torch.profiler.profiler.__file__, True)
    ]


@pytest.mark.skipif("use_cuda" not in inspect.signature(Theirs).parameters, reason="this torch has no use_cuda")
def test_a_deprecated_option_warns_of_the_programs_line(installed):
    with pytest.warns(FutureWarning, match="`use_cuda` is deprecated") as caught:
        installed(use_cuda=False, activities=[CPU])
    assert [warning.filename for warning in caught] == [__file__]


def test_an_option_that_torch_does_not_have_is_an_error():
    refused, theirs = both(lambda profile: attempt(lambda: profile(activities=[CPU], no_such_option=1))[0])
    assert refused is theirs is TypeError


# ---- what was recorded -------------------------------------------------------


class Model(torch.nn.Module):
    def forward(self, x):
        def inner():
            return x + 1

        return inner()


def test_python_names_are_torchs_unless_qualified_ones_are_asked_for():
    def work(profile, **options):
        with profile(activities=[CPU], with_stack=True, **options) as prof:
            Model()(torch.ones(2))
        return {name.rpartition(": ")[2] for name in names(prof) if "test_torch_dropin.py" in name}

    ours, theirs = both(work)
    assert {"forward", "inner"} <= ours == theirs
    vestige.install()
    try:
        qualified = work(torch.profiler.profile, qualified_names=True)
    finally:
        vestige.uninstall()
    assert {"Model.forward"} <= qualified and "inner" not in qualified


def test_windows_have_torchs_names_and_metadata_their_time(tmp_path):
    def work(profile):
        with profile(activities=[CPU]) as prof:
            torch.ones(2)
        return document(prof, tmp_path / f"{profile.__module__}.json")

    ours, theirs = both(work)
    for name in ("PyTorch Profiler (0)", "Iteration Start: PyTorch Profiler", "Record Window End"):
        assert [event["name"] for event in ours].count(name) == [event["name"] for event in theirs].count(name) == 1
    for events in (ours, theirs):  # clients count from the end
        assert [events[-4]["name"], events[-2]["name"], events[-1]["name"]] == [
            "PyTorch Profiler (0)",
            "Iteration Start: PyTorch Profiler",
            "Record Window End",
        ]
    start = next(event["ts"] for event in ours if event["name"] == "PyTorch Profiler (0)")
    assert all(event["ts"] >= start for event in ours)


def test_overloads_are_part_of_exported_names(tmp_path):
    config = torch.profiler._ExperimentalConfig(capture_overload_names=True)

    def work(profile):
        with profile(activities=[CPU], experimental_config=config, record_shapes=True) as prof:
            torch.ones(2) + torch.ones(2)
        exported = document(prof, tmp_path / f"{profile.__module__}.json")
        shown = [event["name"] for event in exported if event.get("cat") == "cpu_op"]
        return shown, [(event.name, event.overload_name) for event in prof.events()]

    ours, theirs = both(work)
    assert sorted(ours[0]) == sorted(theirs[0]) and "aten::add.Tensor" in ours[0]
    assert ours[1] == theirs[1]


def test_running_out_of_time_is_logged_as_in_torch(installed, caplog):
    with installed(activities=[CPU], post_processing_timeout_s=0.0) as prof:
        torch.ones(2)
    with caplog.at_level(logging.WARNING, logger="torch.autograd.profiler"):
        prof.events()
    assert [(record.name, "partial results" in record.getMessage()) for record in caplog.records] == [
        ("torch.autograd.profiler", True)
    ]


def test_kineto_events_are_those_of_torch():
    def work(profile):
        with profile(activities=[CPU], record_shapes=True) as prof:
            torch.ones(2, 3) @ torch.ones(3, 2)
        results = prof.profiler.kineto_results
        events = results.events()
        assert all(event.start_ns() >= results.trace_start_ns() for event in events)
        assert len({event.correlation_id() for event in events}) == len(events)
        methods = ("name", "shapes", "dtypes", "concrete_inputs", "sequence_nr", "scope", "activity_type", "is_async")
        return [[getattr(event, method)() for method in methods] for event in events]

    ours, theirs = both(work)
    assert ours == theirs


def test_every_method_of_a_kineto_event_is_there(installed):
    with installed(activities=[CPU]) as prof:
        torch.ones(2)
    event = prof.profiler.kineto_results.events()[0]
    for kind in (torch._C._autograd._KinetoEvent, torch._C._autograd._ITraceActivity):
        for method in (name for name in dir(kind) if name[0] != "_"):
            getattr(event, method)()


def test_torchs_own_reader_makes_the_same_events(installed):
    with installed(activities=[CPU], record_shapes=True, profile_memory=True) as prof:
        torch.ones(2) + 1
    parsed = prof.profiler._parse_kineto_results(prof.profiler.kineto_results)
    assert [event.name for event in parsed if event.name != "[memory]"] == [
        event.name for event in prof.events() if event.name != "[memory]"
    ]


def test_torchs_export_in_python_has_the_same_events(installed, tmp_path):
    with installed(activities=[CPU]) as prof:
        torch.ones(2)
    expected = sorted(event["name"] for event in document(prof, tmp_path / "t.json") if event.get("cat") == "cpu_op")
    prof.export_chrome_trace(str(tmp_path / "python.json"), use_python_export=True)
    found = json.loads((tmp_path / "python.json").read_text())["traceEvents"]
    assert sorted(event["name"] for event in found if event.get("cat") == "cpu_op") == expected


def test_events_are_counted_when_they_are_read():
    def work(profile):
        with profile(activities=[CPU]) as prof:
            torch.ones(2)
        stats = prof._stats()
        before = stats.number_of_events
        prof.events()
        assert min(value for value in vars(stats).values()) > 0
        return before, stats.number_of_events

    ours, theirs = both(work)
    assert ours == theirs == (0, 3)


def test_torch_says_that_a_profiler_is_active():
    def work(profile):
        answers = [torch._C._autograd._profiler_type()]
        with profile(activities=[CPU]):
            answers += [torch._C._autograd._profiler_type(), autograd._is_profiler_enabled]
        return [*answers, torch._C._autograd._profiler_type(), autograd._is_profiler_enabled]

    ours, theirs = both(work)
    assert ours == theirs


def test_metadata_and_ids_are_exported(installed, tmp_path):
    prof = installed(activities=[CPU], with_stack=True, custom_trace_id_callback=lambda: "mine")
    prof.preset_metadata_json("preset", "[1]")
    with prof:
        prof.add_metadata("text", 'a "word"')
        prof.add_metadata_json("broken", "{")
        torch.ones(2)
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    exported = json.loads((tmp_path / "t.json").read_text())
    assert prof.get_trace_id() == exported["trace_id"] == "mine"
    found = [exported[key] for key in ("preset", "text", "broken", "with_stack")]
    assert found == [[1], 'a "word"', "{", 1]


def test_a_name_of_an_activity_that_torch_does_not_know_is_refused():
    def work(profile):
        return attempt(profile(activities=[{CPU: ["NO_SUCH_TYPE"]}]).start)[0]

    ours, theirs = both(work)
    assert ours is theirs is RuntimeError


# ---- torch.autograd.profiler.profile -------------------------------------------


def test_the_autograd_profile_is_ours_on_request():
    theirs = autograd.profile
    vestige.install()
    assert autograd.profile is theirs
    vestige.install(autograd=True)
    try:
        assert autograd.profile is not theirs and issubclass(autograd.profile, theirs)
        with autograd.profile(use_kineto=True, record_shapes=True) as prof:
            torch.ones(2) + 1
        assert type(prof.kineto_results).__module__ == "vestige.torch.kineto"
        assert "aten::add" in {event.name for event in prof.function_events}
        assert "aten::add" in prof.key_averages().table()
        with torch.profiler.profile(activities=[CPU]) as outer:
            torch.ones(2)
        assert names(outer) == ["aten::ones", "aten::empty", "aten::fill_"]
        with autograd.profile(enabled=False) as nothing:
            torch.ones(2)
        assert nothing is None
        with autograd.emit_itt(enabled=False), autograd.emit_nvtx(enabled=False):
            torch.ones(2)
    finally:
        vestige.uninstall()
    assert autograd.profile is theirs


def test_the_autograd_profile_records_what_torch_records():
    def work():
        with autograd.profile(record_shapes=True, with_flops=True) as prof:
            torch.ones(2, 3) @ torch.ones(3, 2)
        return [(event.name, event.input_shapes, event.flops) for event in prof.function_events]

    theirs = work()
    vestige.install(autograd=True)
    try:
        assert work() == theirs
    finally:
        vestige.uninstall()


# ---- memory ----------------------------------------------------------------


def test_the_memory_in_use_over_time_is_written(installed, tmp_path):
    path = tmp_path / "t.json"
    with installed(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        torch.ones(1000, 1000).sum()
    with pytest.warns(FutureWarning, match="deprecated"):
        prof.export_memory_timeline(str(path))
    times, sizes = json.loads(path.read_text())
    assert len(times) == len(sizes) > 1
    assert max(sum(by_category) for by_category in sizes) >= 4 * 1000 * 1000
    with installed() as prof:
        pass
    with pytest.raises(ValueError, match="profile_memory=True"), pytest.warns(FutureWarning, match="deprecated"):
        prof.export_memory_timeline(str(path))
