"""profile in use: start and stop, windows, metadata, wrong use, and as a replacement for torch.profiler."""

import gc
import json
import os
import subprocess
import sys
import textwrap
import threading
import types
import warnings
from pathlib import Path

import pytest

import vestige
from traces import totals
from tree import load, names
from vestige import ProfilerActivity, Trace, profile


def work():
    return len("x")


def run_python(code, *args, **options):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


# ---- recording ---------------------------------------------------------


def test_a_block_records_python_and_c_calls():
    with profile() as prof:
        work()
    counts = names(load(prof))
    assert counts["work"] == 1
    assert counts["<len>"] == 1


def test_start_and_stop_do_what_a_block_does():
    prof = profile()
    work()
    prof.start()
    work()
    prof.stop()
    work()
    assert names(load(prof))["work"] == 1


def test_a_trace_is_exported_as_often_as_wanted(tmp_path):
    with profile() as prof:
        work()
    for name in ("a.json", "b.json", "a.json"):
        prof.export_chrome_trace(str(tmp_path / name))
    assert json.loads((tmp_path / "a.json").read_bytes())["traceEvents"]
    a, b = (json.loads((tmp_path / name).read_bytes()) for name in ("a.json", "b.json"))
    assert a["traceEvents"] == b["traceEvents"]


@pytest.mark.parametrize("name", ["t", "t.txt", "t.json.gz", "t.gz"])
def test_the_name_only_decides_about_compression(tmp_path, name):
    with profile() as prof:
        work()
    path = tmp_path / name
    prof.export_chrome_trace(path)
    data = path.read_bytes()
    if name.endswith(".gz"):
        import gzip

        data = gzip.decompress(data)
    assert json.loads(data)["schemaVersion"] == 1
    assert os.listdir(tmp_path) == [name]


def test_starting_again_goes_on_in_the_same_recording():
    prof = profile()
    for _ in range(3):
        prof.start()
        work()
        prof.stop()
        work()
    assert names(load(prof))["work"] == 3


def test_collection_can_be_paused_within_a_recording():
    with profile() as prof:
        work()
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        work()
        prof.toggle_collection_dynamic(False)
        prof.toggle_collection_dynamic(True)
        prof.toggle_collection_dynamic(True)
        work()
        prof.toggle_collection_dynamic(False)
    assert names(load(prof))["work"] == 2
    prof.toggle_collection_dynamic(True)
    assert not vestige._core.recording()


def test_options_leave_things_out():
    with profile(c_functions=False, gc=False) as prof:
        work()
        gc.collect()
    counts = names(load(prof))
    assert counts["work"] == 1
    assert not {"<len>", "<gc.collect>", "<collect>", "Python GC"} & set(counts)


def test_files_are_included_and_excluded_by_pattern():
    with profile(exclude=[Path(__file__).name]) as prof:
        work()
        json.loads("1")
    counts = names(load(prof))
    assert "work" not in counts
    assert counts["loads"] == 1
    with profile(include=[__file__]) as prof:
        work()
        json.loads("1")
    counts = names(load(prof))
    assert counts["work"] == 1
    assert "loads" not in counts


def test_arguments_and_results_are_recorded_for_named_functions():
    def add(x, y=2, *more, key="k"):
        return x + y

    with profile(record_args=["add"]) as prof:
        add(1, 2, 3)
    [call] = [event for event in load(prof)["traceEvents"] if event["name"].endswith("add")]
    assert call["args"]["arguments"] == {"x": "1", "y": "2", "more": "(3,)", "key": "'k'"}
    assert call["args"]["return"] == "3"


RECORDS_ALL_ARGUMENTS = """
import json, os, sys
from vestige import profile

with profile(output="t.vst", record_args=["*"]):
    sys.path.insert(0, "")
    import plain
    json.dumps([plain.twice(1)])
"""


def test_recording_all_arguments_does_not_take_every_module_for_torch(workplace):
    workplace.write("plain.py", "def twice(n):\n    return 2 * n\n")
    result = workplace.python("-c", RECORDS_ALL_ARGUMENTS)
    assert (result.returncode, result.stderr) == (0, "")


def test_without_stacks_only_annotations_are_recorded():
    with profile(with_stack=False) as prof:
        with vestige.record_function("block"):
            work()
        vestige.instant("moment")
        vestige.counter("number", 1)
    trace = load(prof)
    assert {"block", "moment", "number"} <= {event["name"] for event in trace["traceEvents"]}
    assert not {"work", "<len>"} & set(names(trace))
    assert "with_stack" not in trace


def test_an_exception_in_the_block_passes_and_the_trace_is_kept():
    with pytest.raises(KeyError), profile() as prof:
        work()
        raise KeyError
    assert names(load(prof))["work"] == 1


def test_one_thread_may_start_and_another_stop():
    prof = profile()
    thread = threading.Thread(target=prof.start)
    thread.start()
    thread.join()
    work()
    thread = threading.Thread(target=prof.stop)
    thread.start()
    thread.join()
    assert names(load(prof))["work"] == 1


# ---- the file ----------------------------------------------------------


def test_an_output_file_is_complete_when_the_block_ends(tmp_path):
    path = tmp_path / "t.vst"
    with profile(output=path) as prof:
        assert path.exists()
        work()
    trace = Trace(str(path))
    assert trace.info()["clean"]
    assert "work" in " ".join(name for name, *_ in totals(trace))
    assert names(load(prof))["work"] == 1


def test_an_existing_file_is_kept_unless_told_to_overwrite(tmp_path):
    path = tmp_path / "t.vst"
    path.write_text("precious")
    prof = profile(output=str(path))
    with pytest.raises(FileExistsError, match=r"t\.vst"):
        prof.start()
    assert path.read_text() == "precious"
    with profile(output=bytes(path), overwrite=True):
        work()
    assert Trace(bytes(path)).info()["clean"]


def test_a_finished_recording_cannot_go_on(tmp_path):
    path = tmp_path / "t.vst"
    with profile(output=path) as prof:
        work()
    with pytest.raises(RuntimeError, match=r"the recording in .*t\.vst is finished"):
        prof.start()
    with pytest.raises(RuntimeError, match="add metadata before"):
        prof.add_metadata("key", "value")
    prof.finish()


def test_a_recording_that_nobody_stopped_is_finished_at_exit(tmp_path):
    code = """
        import atexit, sys, vestige
        prof = vestige.profile(output=sys.argv[1])
        prof.start()
        len("x")
        """
    result = run_python(code, tmp_path / "t.vst")
    assert (result.returncode, result.stderr) == (0, "")
    assert Trace(str(tmp_path / "t.vst")).info()["clean"]


def test_a_recording_that_was_dropped_stops(tmp_path):
    prof = profile(output=tmp_path / "t.vst")
    prof.start()
    del prof
    gc.collect()
    assert not vestige._core.recording()
    assert Trace(str(tmp_path / "t.vst")).info()["clean"]
    with profile() as prof:
        work()
    assert names(load(prof))["work"] == 1


# ---- metadata ----------------------------------------------------------


def test_metadata_is_in_the_trace_however_odd_it_is():
    strings = {"plain": "x", 'quo"ted': 'a "quote"\\\n\0', "über": "π \ud800"}
    prof = profile()
    prof.add_metadata("before", "start")
    with prof:
        for key, value in strings.items():
            prof.add_metadata(key, value)
        prof.add_metadata_json("list", '[1, {"a": null}]')
        prof.add_metadata_json("replaced", "1")
        prof.add_metadata_json("replaced", "2")
    prof.add_metadata("after", "stop")
    trace = load(prof)
    strings["über"] = "π ?"  # a surrogate without a character is not written as a character
    assert {key: trace[key] for key in strings} == strings
    assert trace["list"] == [1, {"a": None}]
    assert (trace["before"], trace["after"], trace["replaced"]) == ("start", "stop", 2)


def test_a_trace_says_where_it_comes_from():
    with profile() as prof:
        work()
    trace = load(prof)
    assert trace["host_name"] == os.uname().nodename
    assert trace["with_stack"] == 1
    metadata = prof._session.trace().metadata()
    assert json.loads(metadata["vestige.python"]) == sys.version.split()[0]
    assert json.loads(metadata["vestige.command"]) == sys.orig_argv


@pytest.mark.parametrize("text", ["", "{", "nan", "NaN", "[1,]", "'x'", '"\ud800"', "[" * 100_000])
def test_metadata_that_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match="add_metadata_json: the value is not JSON"):
        profile().add_metadata_json("key", text)


def test_metadata_of_a_wrong_type_is_refused():
    prof = profile()
    with pytest.raises(TypeError, match="add_metadata: value must be a str, not int"):
        prof.add_metadata("key", 1)
    with pytest.raises(TypeError, match="add_metadata_json: value must be a str of JSON, not dict"):
        prof.add_metadata_json("key", {})
    with pytest.raises(TypeError, match="a metadata key must be a str, not NoneType"):
        prof.add_metadata(None, "x")
    with pytest.raises(ValueError, match="not a metadata key"):
        prof.add_metadata("", "x")


# ---- wrong use ---------------------------------------------------------


def test_a_second_profile_is_refused_and_the_first_goes_on():
    with profile() as prof:
        with pytest.raises(RuntimeError, match="a recording is already running"), profile():
            pass
        work()
    assert names(load(prof))["work"] == 1
    with profile() as second:
        work()
    assert names(load(second))["work"] == 1


def test_steps_out_of_order_are_refused(tmp_path):
    prof = profile()
    with pytest.raises(RuntimeError, match="not recording"):
        prof.stop()
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        prof.export_chrome_trace(tmp_path / "t.json")
    prof.start()
    with pytest.raises(RuntimeError, match="recording already"):
        prof.start()
    with pytest.raises(RuntimeError, match=r"stop\(\) it before exporting"):
        prof.export_chrome_trace(tmp_path / "t.json")
    prof.stop()
    with pytest.raises(RuntimeError, match="not recording"):
        prof.stop()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activities": 5}, "activities must be a list or set of ProfilerActivity, not int"),
        ({"activities": [ProfilerActivity.CPU, "CPU"]}, "Expected ProfilerActivity or dict, got <class 'str'>"),
        ({"with_stack": 1}, "with_stack must be True or False, not int"),
        ({"overwrite": None}, "overwrite must be True or False, not NoneType"),
        ({"c_functions": "yes"}, "c_functions must be True or False, not str"),
        ({"gc": 0}, "gc must be True or False, not int"),
        ({"engine": None}, "engine must be a str, not NoneType"),
        ({"include": "*.py"}, "include must be a list of str, not str"),
        ({"exclude": 3}, "exclude must be a list of str, not int"),
        ({"record_args": [len]}, "record_args must be a list of str, not of builtin_function_or_method"),
        ({"output": 7}, "expected str, bytes or os.PathLike object, not int"),
        ({"record_shapes": 1}, "record_shapes must be True or False, not int"),
        ({"schedule": 5}, "schedule must be a function, not int"),
        ({"experimental_config": 5}, "experimental_config must be an _ExperimentalConfig, not int"),
        ({"record_shape": True}, "unexpected keyword argument 'record_shape'"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(options, message):
    with pytest.raises(TypeError) as caught:
        profile(**options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_engine_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match=f"no engine 'steam' on this Python: use one of auto, safe, {vestige._core.engines[0]}"
    ):
        profile(engine="steam")


def test_the_engine_can_be_named():
    for engine in ("safe", *vestige._core.engines):
        with profile(engine=engine) as prof:
            work()
        assert names(load(prof))["work"] == 1
        assert prof._session.engine == (vestige._core.engines[0] if engine == "safe" else engine)


def test_export_to_a_bad_place_raises_the_fitting_error(tmp_path):
    with profile() as prof:
        work()
    with pytest.raises(FileNotFoundError):
        prof.export_chrome_trace(tmp_path / "no/such/t.json")
    with pytest.raises(FileNotFoundError):
        prof.export_chrome_trace(tmp_path / "no/such/t")
    with pytest.raises(IsADirectoryError):
        prof.export_chrome_trace(tmp_path)
    with pytest.raises(TypeError):
        prof.export_chrome_trace(None)
    (tmp_path / "t.json").mkdir()
    with pytest.raises(IsADirectoryError):
        prof.export_chrome_trace(tmp_path / "t.json")
    prof.export_chrome_trace(tmp_path / "good.json")


def test_a_trace_to_a_bad_place_raises_the_fitting_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        profile(output=tmp_path / "no/such/t.vst").start()
    with pytest.raises(NotADirectoryError):
        profile(output=Path(__file__) / "t.vst").start()
    with pytest.raises(vestige.VestigeError, match="not a vestige trace"):
        Trace(__file__)
    with profile() as prof:
        work()
    assert names(load(prof))["work"] == 1


# ---- activities --------------------------------------------------------


def test_other_activities_are_accepted_with_one_warning():
    code = """
        import warnings
        from vestige import ProfilerActivity, profile
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
                    pass
            profile(activities={ProfilerActivity.XPU})
        print([(str(w.message), w.category.__name__, w.filename) for w in caught])
        """
    result = run_python(code)
    message = "vestige: no CUDA activity is collected: there is no CUDA driver here (libcuda.so.1)"
    assert result.stdout.strip() == str([(message, "UserWarning", "<string>")])


def test_no_activities_are_the_default_ones():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for activities in (None, [ProfilerActivity.CPU], {ProfilerActivity.CPU}, [{ProfilerActivity.CPU: []}]):
            assert profile(activities=activities).activities == {ProfilerActivity.CPU}


def test_members_are_those_of_torch():
    assert set(ProfilerActivity.__members__) == {"CPU", "XPU", "CUDA", "HPU", "MTIA", "PrivateUse1"}


# ---- in torch.profiler's place -----------------------------------------


@pytest.fixture
def torch(monkeypatch):
    """A stand-in for torch.profiler, already loaded."""
    package, module = types.ModuleType("torch"), types.ModuleType("torch.profiler")
    module.profile, module.record_function, module.ProfilerActivity = object(), object(), object()
    package.profiler = module
    monkeypatch.setitem(sys.modules, "torch", package)
    monkeypatch.setitem(sys.modules, "torch.profiler", module)
    yield package
    vestige.uninstall()


def test_install_puts_our_names_into_torch_and_uninstall_takes_them_back(torch):
    before = dict(vars(torch.profiler))
    vestige.install()
    vestige.install()
    assert torch.profiler.profile is profile
    assert torch.profiler.record_function is vestige.record_function
    assert torch.profiler.ProfilerActivity is ProfilerActivity
    assert not profile().with_stack
    vestige.uninstall()
    vestige.uninstall()
    assert vars(torch.profiler) == before
    assert profile().with_stack


def test_a_torch_that_is_loaded_later_gets_our_names_too(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("from torch import profiler")
    (package / "profiler.py").write_text(
        "def profile(): pass\ndef record_function(): pass\nclass ProfilerActivity: pass\n"
    )
    code = """
        import sys, vestige
        meta_path = list(sys.meta_path)
        vestige.install()
        assert "torch" not in sys.modules
        import torch.profiler
        assert torch.profiler.profile is vestige.profile
        assert sys.meta_path == meta_path
        spec = torch.profiler.__spec__
        assert spec.loader is torch.profiler.__loader__ and type(spec.loader).__name__ == "SourceFileLoader"
        vestige.uninstall()
        assert torch.profiler.profile.__module__ == "torch.profiler"
        vestige.install()
        assert torch.profiler.profile is vestige.profile
        """
    result = run_python(code, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (result.returncode, result.stderr) == (0, "")


def test_install_works_without_torch(tmp_path):
    code = """
        import sys, vestige
        meta_path = list(sys.meta_path)
        vestige.install()
        assert not vestige.profile().with_stack
        with vestige.profile(with_stack=True):
            if (3, 12) <= sys.version_info < (3, 12, 5):
                assert sys.monitoring.get_tool(2) == "PyTorch Profiler"
        sys.modules["torch"] = None  # it cannot be imported, wherever it may be installed
        try:
            import torch.profiler
        except ModuleNotFoundError:
            print("as without us")
        vestige.uninstall()
        assert vestige.profile().with_stack
        assert sys.meta_path == meta_path
        """
    result = run_python(code, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "as without us\n", "")


def test_without_torch_the_names_of_its_profiler_can_be_imported(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("from torch import profiler")
    (package / "profiler.py").write_text("def profile(): pass\nown = 5\n")
    code = """
        import importlib.util, sys
        sys.modules["torch"] = None  # as where it is not installed
        import vestige
        before, meta_path = set(sys.modules), list(sys.meta_path)
        vestige.install()
        from torch.profiler import *
        from torch.profiler import ProfilerActivity, itt, kineto_available, profile, record_function, schedule
        from torch.profiler.profiler import ProfilerAction, _default_schedule_fn
        assert profile is vestige.profile and record_function is vestige.record_function and itt is vestige.itt
        assert schedule(wait=0, warmup=1, active=1)(0) is ProfilerAction.WARMUP and kineto_available()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof, record_function("step", b"123"):
            pass
        assert [event.name for event in prof.events()] == ["step"] and not prof.with_stack
        try:  # a program that asks whether there is torch is told the truth
            import torch
        except ImportError:
            print("no torch")
        assert importlib.util.find_spec("torch") is None
        vestige.uninstall()
        assert not [name for name in set(sys.modules) - before if name.startswith("torch")]
        assert sys.meta_path == meta_path

        vestige.install()  # and it may come after all
        del sys.modules["torch"]
        sys.path.insert(0, sys.argv[1])
        import torch.profiler
        assert torch.profiler.own == 5 and torch.profiler.profile is vestige.profile
        vestige.uninstall()
        assert torch.profiler.profile is not vestige.profile and sys.modules["torch.profiler"].own == 5
        """
    result = run_python(code, str(tmp_path), cwd=tmp_path.parent)
    assert (result.returncode, result.stdout, result.stderr) == (0, "no torch\n", "")


# ---- importing ---------------------------------------------------------


def test_importing_vestige_loads_little():
    code = """
        import sys
        before = set(sys.modules)
        import vestige
        print(sorted(name for name in set(sys.modules) - before if not name.startswith("vestige")))
        """
    assert set(eval(run_python(code).stdout)) <= {"__future__", "_json", "atexit", "gc"}


def test_a_profile_without_sizes_and_times_loads_no_reader_of_them(tmp_path):
    code = f"""
        import sys
        import vestige
        vestige.profile(output={str(tmp_path / "t.vst")!r})
        print("vestige.base.quantities" in sys.modules)
        vestige.profile(output={str(tmp_path / "t.vst")!r}, max_size="1M")
        print("vestige.base.quantities" in sys.modules)
        """
    assert run_python(code).stdout.split() == ["False", "True"]


def test_the_names_of_the_package_are_listed_and_others_are_not_there():
    assert set(vestige.__all__) <= set(dir(vestige))
    for name in vestige.__all__:
        assert getattr(vestige, name) is not None
    with pytest.raises(AttributeError, match="module 'vestige' has no attribute 'absent'"):
        vestige.absent
