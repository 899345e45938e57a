"""Differences that users of torch.profiler could notice, with vestige and torch's own profiler in one process."""

import json
import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch.autograd import profiler, profiler_util

import vestige
from beside import beside

pytestmark = pytest.mark.filterwarnings("ignore")
Tracker = profiler.KinetoStepTracker
Fast = torch._C._profiler._RecordFunctionFast
Event = profiler_util.FunctionEvent


def test_keyword_inputs_keep_their_values_and_types(tmp_path):
    named = {
        "integers": [1, -2, 3],
        "none": [],
        "texts": ["a", "b"],
        "text": "s",
        "number": 2.5,
        "truth": True,
        "nothing": None,
        "pair": (1, 2.5),
        "single": (3,),
        "floats": [1.0, 0.1],
        "bools": [True, False],
        "nested": [[1], [2, 3]],
        "quoted": 'a"b\\',
        "most": float("inf"),
        "stream": "s",
    }

    def run():
        with torch.profiler.profile(record_shapes=True) as prof, Fast("named", [], named):
            pass
        return prof, next(event.kwinputs for event in prof.events() if event.name == "named")

    (_, theirs), (prof, ours) = beside(run)
    assert ours == theirs == named
    assert [type(value) for value in ours.values()] == [type(named[name]) for name in ours]
    # Our files have the same keys as torch's, in the same form.
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_bytes())["traceEvents"]
    args = next(event["args"] for event in events if event["name"] == "named")
    shown = {name: args[name] for name in named if name in args}
    plain = ("texts", "text", "number", "truth")
    assert shown == {**{name: named[name] for name in plain}, "quoted": "None", "most": "inf"}


# ---- steps ----------------------------------------------------------------------


def overlap(one, other):
    first, second = sorted((event["ts"], event["ts"] + event["dur"]) for event in (one, other))
    return first[0] < second[0] < first[1] < second[1]


def paired(events):
    """Yields events with a duration. A begin event and its end event are joined."""
    for event in events:
        if event["ph"] == "b":
            end = next(each for each in events if each["ph"] == "e" and each["id"] == event["id"])
            event = {**event, "dur": end["ts"] - event["ts"]}
        if "dur" in event:
            yield event


def test_a_step_begins_with_the_call_that_it_ends_in_if_asked_for(tmp_path):
    def helper(prof):
        torch.ones(2).sin()
        prof.step()

    def run():
        found = []
        for adjusts in (False, True):
            config = torch._C._profiler._ExperimentalConfig(adjust_profiler_step=adjusts)
            plan = torch.profiler.schedule(wait=0, warmup=0, active=4, repeat=1)
            with torch.profiler.profile(with_stack=True, schedule=plan, experimental_config=config) as prof:
                for _ in range(4):
                    helper(prof)
            prof.export_chrome_trace(str(tmp_path / "trace.json"))
            events = list(paired(json.loads((tmp_path / "trace.json").read_bytes())["traceEvents"]))
            steps = [event for event in events if event["name"].startswith("ProfilerStep")]
            calls = [event for event in events if event["name"].endswith(": helper")]
            assert len(steps) == len(calls) == 4
            found.append(any(overlap(step, call) for step in steps for call in calls))
        return found

    theirs, ours = beside(run)
    assert ours == theirs  # torch 2.15 ignores the option
    if not hasattr(torch._C._profiler._ExperimentalConfig, "adjust_profiler_step"):
        assert theirs == [True, False]


@pytest.fixture
def tracker(monkeypatch):
    """torch's counter of steps, which its profile uses if a daemon may request traces."""
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    kept = Tracker._current_step, dict(Tracker._step_dict)
    yield Tracker
    Tracker._current_step = kept[0]
    Tracker._step_dict.clear()
    Tracker._step_dict.update(kept[1])


def test_steps_are_counted_by_torchs_own_tracker(tracker):
    def counts():
        return tracker.current_step(), dict(tracker._step_dict)

    def run():
        tracker._current_step = 0
        tracker._step_dict.clear()
        assert torch.profiler.KinetoStepTracker is tracker
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = []
        prof = torch.profiler.profile()
        seen.append(counts())
        with prof:
            for _ in range(3):
                prof.step()
                seen.append(counts())
        seen.append(counts())
        for plan in (None, torch.profiler.schedule(wait=1, warmup=1, active=2)):
            held = torch.profiler.profile()
            with torch.profiler.profile(schedule=plan) as prof:
                for _ in range(5):
                    net(torch.ones(1, 2)).sum().backward()
                    optimizer.step()
                    tracker.increment_step("Optimizer")
                    prof.step()
            seen.append(counts())
            del held
            seen.append(counts())
        return seen

    theirs, ours = beside(run)
    assert ours == theirs
    assert ours[0] == (0, {"ProfilerStep": 0})
    assert ours[4][1] == {}


# ---- where torch goes on, and where it raises ------------------------------------------


def outcome(function):
    """Returns the result or exception of a function, and its warnings with the files that they name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function()
        except Exception as error:
            result = type(error), str(error)
    return result, [(each.category, str(each.message), each.filename) for each in caught]


def names(prof):
    return [event.name for event in prof.events()]


def started_twice():
    prof = torch.profiler.profile()
    prof.start()
    torch.ones(1)
    prof.start()
    torch.ones(2) + 1
    prof.stop()
    return names(prof)


def started_again_after_stop():
    prof = torch.profiler.profile()
    prof.start()
    torch.ones(1)
    prof.stop()
    prof.start()
    torch.ones(2) + 1
    prof.stop()
    return names(prof)


def begun_while_another_is_held():
    held = torch.profiler.profile()
    held.start()
    torch.ones(1)
    with torch.profiler.profile() as prof:
        torch.ones(2) + 1
    held.stop()
    return names(prof)


def nested():
    with torch.profiler.profile(), torch.profiler.profile() as inner:
        torch.ones(2) + 1
    return names(inner)


def stopped_twice():
    prof = torch.profiler.profile()
    prof.start()
    torch.ones(1)
    prof.stop()
    seen = names(prof)
    prof.stop()
    return seen


def read_inside():
    with torch.profiler.profile() as prof:
        torch.ones(1)
        inside = len(prof.key_averages()), len(prof.events()), prof.key_averages().table()
    return inside, names(prof)


def read_in_every_step():
    seen = []
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)) as prof:
        for _ in range(6):
            torch.ones(1)
            seen.append(outcome(lambda: len(prof.key_averages()))[0])
            prof.step()
    return seen


def body_that_raises():
    with pytest.raises(KeyError), torch.profiler.profile():
        raise KeyError
    with torch.profiler.profile() as prof:
        torch.ones(1)
    return names(prof)


def handler_that_raises():
    def fail(_):
        raise ValueError("handler")

    def run():
        with torch.profiler.profile(on_trace_ready=fail):
            torch.ones(1)

    failed = outcome(run)
    with torch.profiler.profile() as prof:
        torch.ones(1)
    return failed, names(prof)


def flags_that_are_no_bools():
    with torch.profiler.profile(record_shapes=1, with_flops="yes", profile_memory=None, with_modules=0) as prof:
        torch.ones(1)
    return names(prof)


@pytest.mark.parametrize(
    "program",
    [
        started_twice,
        started_again_after_stop,
        begun_while_another_is_held,
        nested,
        stopped_twice,
        read_inside,
        read_in_every_step,
        body_that_raises,
        handler_that_raises,
        flags_that_are_no_bools,
    ],
)
def test_a_program_goes_on_where_torch_does(program):
    theirs, ours = beside(lambda: outcome(program))
    assert ours == theirs


EARLY = {
    "stop": lambda prof: prof.stop(),
    "events": lambda prof: prof.events(),
    "key_averages": lambda prof: prof.key_averages(),
    "export_chrome_trace": lambda prof: prof.export_chrome_trace("unused.json"),
    "export_stacks": lambda prof: prof.export_stacks("unused.txt"),
    "export_memory_timeline": lambda prof: prof.export_memory_timeline("unused.json"),
    "step": lambda prof: prof.step(),
    "add_metadata": lambda prof: prof.add_metadata("key", "value"),
}


@pytest.mark.parametrize("call", EARLY)
def test_a_call_before_the_start_ends_as_with_torch(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    theirs, ours = beside(lambda: outcome(lambda: EARLY[call](torch.profiler.profile())))
    assert ours == theirs


WRONG = [{"activities": []}, {"activities": ["x"]}, {"schedule": 3}, {"nope": 1}, {"experimental_config": 3}]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_wrong_options_are_refused_as_torch_refuses_them(options):
    theirs, ours = beside(lambda: outcome(lambda: torch.profiler.profile(**options)))
    assert ours == theirs
    assert isinstance(ours[0][1], str)


def test_a_file_that_cannot_be_written_does_not_end_the_program(tmp_path, capfd):
    def run(name):
        with torch.profiler.profile() as prof:
            torch.ones(1)
        return outcome(lambda: prof.export_chrome_trace(str(tmp_path / "no such folder" / name)))

    theirs, ours = beside(lambda: run("t.json"))
    assert ours == theirs == (None, [])
    assert "no such folder" in capfd.readouterr().err
    theirs, ours = beside(lambda: run("t.json.gz"))
    assert ours[0][0] is theirs[0][0] is FileNotFoundError


def test_a_profile_of_another_thread_is_refused_in_words():
    vestige.install()
    try:
        with torch.profiler.profile() as prof:
            torch.ones(1)
            found = []
            thread = threading.Thread(target=lambda: found.append(outcome(torch.profiler.profile().start)[0]))
            thread.start()
            thread.join()
            torch.zeros(1)
    finally:
        vestige.uninstall()
    ((kind, message),) = found
    assert kind is RuntimeError
    assert "already" in message
    assert {"aten::ones", "aten::zeros"} <= set(names(prof))


def test_the_warning_of_cleared_events_is_torchs():
    def run():
        torch.profiler.profiler._WARNINGS_SHOWN.clear()
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1)) as prof:
            for _ in range(6):
                prof.step()

    theirs, ours = beside(lambda: outcome(run))
    assert ours == theirs
    assert any("clears events" in message for _, message, _ in ours[1])


# ---- small things ----------------------------------------------------------------


def test_names_of_torch_profiler_stay_torchs_own():
    def run():
        kept = torch.profiler, torch.profiler.profiler
        names = "ProfilerAction ProfilerActivity _ExperimentalConfig itt schedule supported_activities".split()
        return [getattr(place, name, None) for place in kept for name in (*names, "tensorboard_trace_handler")]

    theirs, ours = beside(run)
    assert all(mine is its for mine, its in zip(ours, theirs, strict=True))
    assert torch.profiler.itt.is_available() == torch._C._itt.is_available()


def test_profiles_and_events_are_instances_of_torchs_classes():
    def run():
        with torch.profiler.profile() as prof:
            torch.ones(1)
        pairs = [
            (prof, torch.profiler._KinetoProfile),
            (prof, torch.profiler.profile),
            (prof.profiler, profiler.profile),
            (prof.events(), profiler_util.EventList),
            (prof.events()[0], profiler_util.FunctionEvent),
            (prof.key_averages(), profiler_util.EventList),
            (prof.key_averages()[0], profiler_util.FunctionEventAvg),
        ]
        return [isinstance(thing, kind) for thing, kind in pairs]

    theirs, ours = beside(run)
    assert ours == theirs == [True] * 7


@pytest.mark.parametrize("shapes", [True, False])
def test_a_spans_text_counts_as_an_input_as_in_torch(shapes):
    fields = "name input_shapes concrete_inputs kwinputs structured_input_shapes structured_input_strides input_dtypes"

    def run():
        with torch.profiler.profile(record_shapes=shapes) as prof:
            with torch.profiler.record_function("text", "args"):
                pass
            with torch.profiler.record_function("none"):
                pass
        return [[getattr(event, field) for field in fields.split()] for event in prof.events()]

    theirs, ours = beside(run)
    assert ours == theirs


@pytest.mark.skipif(hasattr(Event, "event_metadata"), reason="this torch has no metadata_json")
@pytest.mark.parametrize("exposed", [True, False])
def test_metadata_json_has_the_number_of_an_event_in_the_file(exposed, tmp_path):
    def run():
        config = torch._C._profiler._ExperimentalConfig(expose_kineto_event_metadata=exposed)
        with torch.profiler.profile(record_shapes=True, experimental_config=config) as prof:
            torch.ones(2) + 1
            with torch.profiler.record_function("span"):
                pass
        said, warned = outcome(lambda: [(event.name, event.metadata_json) for event in prof.events()])
        return [(name, text in numbers_in(prof, tmp_path) if text else text) for name, text in said], warned

    theirs, ours = beside(run)
    assert ours == theirs
    assert all(found is (True if exposed else "") for _, found in ours[0])


def numbers_in(prof, folder):
    """Returns the numbers of events from metadata_json."""
    path = folder / f"{prof.get_trace_id()}.json"
    if not path.exists():  # torch writes the file once
        prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    return [f'"Ev Idx": {each["args"]["Ev Idx"]}' for each in events if "Ev Idx" in each.get("args", {})]


def test_operators_have_their_overloads_in_the_file_as_in_torchs(tmp_path):
    def run():
        config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
        with torch.profiler.profile(experimental_config=config) as prof:
            torch.ones(2) + 1
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        return sorted(each["name"] for each in events if each.get("cat") == "cpu_op")

    theirs, ours = beside(run)
    assert ours == theirs
    assert "aten::add.Tensor" in ours


@pytest.mark.parametrize("links", [True, False])
def test_arrows_to_gradients_have_torchs_numbers_and_can_be_turned_off(links, tmp_path):
    def run():
        with torch.profiler.profile() as prof:
            x = torch.ones(1, requires_grad=True)
            (x * 2 + 1).sigmoid().backward()
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        begun = {each["ts"]: each["name"] for each in events if each.get("cat") == "cpu_op"}
        arrows = sorted((each["id"], each["ph"], begun[each["ts"]]) for each in events if each.get("cat") == "fwdbwd")
        return arrows, [(event.name, event.flow_id, event.flow_start) for event in prof.events() if event.flow_id]

    torch._C._profiler._set_fwd_bwd_enabled_val(links)
    try:
        theirs, ours = beside(run)
    finally:
        torch._C._profiler._set_fwd_bwd_enabled_val(True)
    assert ours == theirs
    assert len(ours[0]) == (6 if links else 0)
