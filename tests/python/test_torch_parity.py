"""Side by side with torch.profiler, if torch is installed: schedules, tables, errors, and programs that use vestige
unchanged after install().
"""

import itertools
import subprocess
import sys
import textwrap
import warnings

import pytest

import vestige
from vestige.torch.event_list import EventList
from vestige.torch.events import FunctionEvent
from vestige.torch.experimental import FIELDS

torch = pytest.importorskip("torch")

from torch.autograd import profiler_util

pytestmark = [
    pytest.mark.filterwarnings("ignore:Profiler won't be using warmup"),
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events"),
]


def test_schedules_are_torchs():
    numbers = itertools.product(range(3), range(3), range(1, 4), range(3), range(3), range(2))
    for wait, warmup, active, repeat, skip_first, skip_first_wait in numbers:
        options = {
            "wait": wait,
            "warmup": warmup,
            "active": active,
            "repeat": repeat,
            "skip_first": skip_first,
            "skip_first_wait": skip_first_wait,
        }
        ours, theirs = vestige.schedule(**options), torch.profiler.schedule(**options)
        assert [ours(step).name for step in range(30)] == [theirs(step).name for step in range(30)]


def failure(function, *args, **kwargs):
    with pytest.raises(Exception) as caught:
        function(*args, **kwargs)
    return caught.type, str(caught.value)


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"active": 0}, {"repeat": -2}, {"skip_first": -1}, {"warmup": -1}])
def test_schedules_fail_as_torchs_do(wrong):
    options = {"wait": 0, "warmup": 1, "active": 1, **wrong}
    assert failure(vestige.schedule, **options) == failure(torch.profiler.schedule, **options)
    assert failure(vestige.schedule(wait=0, warmup=1, active=1), -1) == failure(
        torch.profiler.schedule(wait=0, warmup=1, active=1), -1
    )


@pytest.mark.parametrize("names", [[], ["CPU", "CPU"], ["x"], ["CPU", "x"], ["CPU", {"CPU": ["y"]}]])
def test_activities_fail_as_torchs_do(names):
    def build(kind):
        def member(name):
            return (
                {member(key): value for key, value in name.items()}
                if isinstance(name, dict)
                else (kind[name] if name in kind.__members__ else name)
            )

        return [member(name) for name in names]

    class Theirs:
        __members__ = torch.profiler.ProfilerActivity.__members__

        def __class_getitem__(cls, name):
            return cls.__members__[name]

    ours = failure(vestige.profile, activities=build(vestige.ProfilerActivity))
    theirs = failure(torch.profiler.profile, activities=build(Theirs))
    if names == ["x"] and theirs[0] is TypeError:  # torch 2.15 checks the names first
        assert ours[0] is AssertionError
    else:
        assert ours == theirs


def test_torchs_own_activities_count_as_ours():
    prof = vestige.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    assert prof.activities == {vestige.ProfilerActivity.CPU}


def test_torchs_own_config_and_actions_count_as_ours():
    config = torch.profiler._ExperimentalConfig(verbose=True, trace_only=True)
    prof = vestige.profile(with_stack=False, experimental_config=config)
    assert prof._experiment["verbose"] is True and prof._experiment["trace_only"] is True
    assert tuple(prof._experiment) == tuple(FIELDS)
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1)
    prof = vestige.profile(schedule=plan)
    with prof:
        prof.step()
    assert [event.trace_name for event in prof.events() if event.is_user_annotation] == ["ProfilerStep#1"]


# ---- tables ----------------------------------------------------------------

MADE = [  # name, start, end, shapes, stack, operations, bytes
    ("aten::mm", 0, 1500.5, [[2, 3], [3, 4]], ["a.py(3): f" * 9, "b.py(1): g"], 768_000, 2048),
    ("x" * 80, 2000, 2001.25, [], [], 0, -5),
    ("b", 3000, 2_003_000, [[1]], ["q"], 0, 3 << 30),
    ("aten::mm", 3001, 3002, [[2, 3], [3, 4]], ["c.py(3): h"], 1, 10),
]
TABLES = [
    {},
    {"sort_by": "cpu_time_total"},
    {"sort_by": "self_cuda_time_total"},
    {"row_limit": 1},
    {"row_limit": -1, "header": "a header"},
    {"top_level_events_only": True},
    {"time_unit": "ms"},
    {"time_unit": "s", "max_name_column_width": 20, "max_src_column_width": 15, "max_shapes_column_width": 8},
    {"max_name_column_width": None, "max_src_column_width": None, "max_shapes_column_width": None},
]


def make(event, many, stacks=True, **options):
    made = [
        event(
            id=number,
            name=name,
            thread=1,
            start_us=start,
            end_us=end,
            input_shapes=shapes,
            stack=stack if stacks else [],
            overload_name="",
            flops=flops,
            cpu_memory_usage=size,
        )
        for number, (name, start, end, shapes, stack, flops, size) in enumerate(MADE)
    ]
    events = many(made, **options)
    events._tree_built = True
    return events


def both(**options):
    theirs = make(profiler_util.FunctionEvent, profiler_util.EventList, **options)
    return make(FunctionEvent, EventList, **options), theirs


@pytest.mark.parametrize("options", [{}, {"profile_memory": True}, {"with_flops": True, "stacks": False}])
@pytest.mark.parametrize("table", TABLES)
def test_tables_are_torchs(options, table):
    """Tables are equal, except operations in tables with stacks, which torch puts under wrong titles."""
    ours, theirs = both(**options)
    assert ours.table(**table) == theirs.table(**table)
    for grouping in ({}, {"group_by_input_shapes": True}, {"group_by_stack_n": 1}):
        ours_by, theirs_by = ours.key_averages(**grouping), theirs.key_averages(**grouping)
        assert ours_by.table(**table) == theirs_by.table(**table)
    assert ours.total_average().self_cpu_time_total == theirs.total_average().self_cpu_time_total


def test_an_average_has_torchs_fields():
    ours, theirs = both()
    mine, other = ours.key_averages()[0], theirs.key_averages()[0]
    missing = [name for name in vars(other) if not hasattr(mine, name)]
    assert missing == []
    for name in ("count", "cpu_time_total", "self_cpu_time_total", "cpu_time", "flops", "cpu_time_str"):
        assert getattr(mine, name) == getattr(other, name)


def test_an_event_has_torchs_fields():
    ours, theirs = both()
    missing = [name for name in vars(theirs[0]) if not hasattr(ours[0], name) and name != "_metadata_json"]
    assert missing == []
    for name, value in vars(theirs[0]).items():
        if name not in ("time_range", "_metadata_json"):
            assert getattr(ours[0], name) == value, name


# ---- programs that know torch.profiler only --------------------------------


def run(code, *command):
    command = [sys.executable, *command] if command else [sys.executable, "-c", textwrap.dedent(code)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_training_loop_runs_unchanged(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        textwrap.dedent("""
        import os, sys
        import torch
        from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
        from torch.profiler.profiler import ProfilerAction

        folder = sys.argv[1]
        steps = []

        def ready(prof):
            tensorboard_trace_handler(folder, "w")(prof)
            steps.append(prof.step_num)

        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2),
            on_trace_ready=ready,
            record_shapes=True,
            with_stack=True,
        ) as prof:
            for number in range(10):
                with record_function("forward"):
                    sum(range(100))
                prof.step()
        assert schedule(wait=1, warmup=1, active=1)(2) is ProfilerAction.RECORD_AND_SAVE
        assert len(os.listdir(folder)) == 2
        print(type(prof).__module__, steps)
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5))
        """)
    )
    shown = run("", "-m", "vestige", "run", "--torch-profiler", str(program), str(tmp_path / "log"))
    assert shown.startswith("vestige.torch.profiles [4, 8]")
    assert "Self CPU %" in shown


def test_lightnings_and_transformers_use_of_it_works():
    run("""
        import warnings
        warnings.simplefilter("ignore")
        import torch
        import vestige
        vestige.install()
        from torch.autograd.profiler import EventList, record_function  # torch's, as Lightning imports them
        from torch.profiler import ProfilerAction, ProfilerActivity, kineto_available, tensorboard_trace_handler

        class Wrapper:  # as Lightning's ScheduleWrapper
            def __init__(self, schedule):
                self.schedule = schedule
                self.num_step = 0
            def __call__(self, step):
                action = self.schedule(self.num_step)
                assert isinstance(action, ProfilerAction)
                return action

        wrapper = Wrapper(torch.profiler.schedule(wait=1, warmup=1, active=3))
        prof = torch.profiler.profile(
            activities=[ProfilerActivity.CPU] if kineto_available() else None,
            schedule=wrapper, with_stack=False, record_shapes=False,
        )
        assert isinstance(prof, torch.profiler.profile)
        prof.__enter__()
        for number in range(1, 5):
            wrapper.num_step = number
            prof.on_trace_ready = lambda prof: None
            prof.step_num = wrapper.num_step - 1
            prof.step()
            prof.add_metadata("Framework", "pytorch-lightning")
            with torch.profiler.record_function("training_step"):
                pass
        prof.schedule = torch.profiler.profiler._default_schedule_fn
        prof.step()
        with torch.profiler.record_function("training_step"):
            pass
        prof.__exit__(None, None, None)
        events = prof.events()
        table = events.key_averages(group_by_input_shapes=False).table(sort_by="cpu_time_total", row_limit=20)
        assert "training_step" in table and "ProfilerStep*" in table, table

        options = dict(activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
                       with_stack=False, with_flops=False, with_modules=False)  # as accelerate builds it
        with torch.profiler.profile(**options) as prof:
            with torch.profiler.record_function("step"):
                pass
        assert any(row.key == "step" for row in prof.key_averages())
        vestige.uninstall()
        assert torch.profiler.profile.__module__ == "torch.profiler.profiler"
        assert torch.profiler.profiler.ProfilerAction is torch.profiler.ProfilerAction
        assert torch.profiler.ProfilerAction.__module__ == "torch.profiler.profiler"
        """)


def test_torchs_observer_is_driven(tmp_path):
    path = tmp_path / "et.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with vestige.profile(with_stack=False, execution_trace_observer=observer):
            torch.ones(3) + 1
    assert '"aten::add"' in path.read_text()


def test_a_torch_future_ends_its_span():
    future = torch.futures.Future()
    with vestige.profile(with_stack=False, gc=False) as prof:
        with vestige.record_function("waiting") as span:
            span._call_end_callbacks_on_future(future)
        with vestige.record_function("after"):
            pass
        future.set_result(1)
    found = {event.name: event for event in prof.events()}
    assert found["waiting"].time_range.end > found["after"].time_range.end


# ---- operators ---------------------------------------------------------------


def counted(averages):
    return {(row.key, str(row.input_shapes), row.overload_name, row.is_user_annotation): row.count for row in averages}


def test_operators_are_averaged_as_torch_does():
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    data = torch.randn(2, 8)

    def run_with(module, **options):
        with module.profile(record_shapes=True, with_flops=True, **options) as prof:
            with module.record_function("forward"):
                loss = net(data).sum()
            loss.backward()
        return prof

    run_with(vestige)  # first run: one-time work happens here
    ours, theirs = run_with(vestige), run_with(torch.profiler)
    for grouping in ({}, {"group_by_input_shape": True}):
        assert counted(ours.key_averages(**grouping)) == counted(theirs.key_averages(**grouping))
    mine, other = ({row.key: row.flops for row in prof.key_averages() if row.flops} for prof in (ours, theirs))
    assert mine == other and mine
    fields = ("name", "scope", "input_shapes", "structured_input_strides", "input_dtypes", "concrete_inputs", "flops")

    def facts(prof):
        found = [event for event in prof.events() if event.name == "aten::addmm"]
        return [[getattr(event, field) for field in fields] for event in found]

    assert facts(ours) == facts(theirs)
    stacked = ours.key_averages(group_by_stack_n=2)
    (row, *_) = [row for row in stacked if row.key == "aten::linear"]
    assert all("linear" in frame for frame in row.stack)
    assert all(row.self_cpu_time_total >= 0 for row in stacked)
    assert ours.key_averages().self_cpu_time_total == pytest.approx(stacked.self_cpu_time_total)
    assert any(row.key.startswith("nn.Module: ") for row in ours.key_averages(include_python_functions=True))


def test_events_and_lists_of_them_are_torchs_classes_too():
    run("""
        import pickle
        import torch
        import vestige
        from torch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg

        with vestige.profile(record_shapes=True) as prof:
            torch.ones(2, 3).add(1)
        for events in (prof.events(), pickle.loads(pickle.dumps(prof.events()))):
            assert isinstance(events, EventList)
            assert all(isinstance(event, FunctionEvent) for event in events)
            add = next(event for event in events if event.name == "aten::add")
            assert add.input_shapes[0] == [2, 3]
            assert add.device_type is torch.autograd.DeviceType.CPU or add.device_type == torch.autograd.DeviceType.CPU
        for averages in (prof.key_averages(), pickle.loads(pickle.dumps(prof.key_averages())), events.key_averages()):
            assert isinstance(averages, EventList)
            assert all(isinstance(row, FunctionEventAvg) for row in averages)
            assert "aten::add" in averages.table()
        assert isinstance(averages.total_average(), FunctionEventAvg)
    """)
