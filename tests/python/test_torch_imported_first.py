"""install() after modules have imported torch's profiler: vestige records, whichever names the modules use."""

import inspect
import subprocess
import sys
import textwrap
import warnings
from types import ModuleType

import pytest

import vestige
from vestige.recording import standard_error
from vestige.torch import dropin

torch = pytest.importorskip("torch", reason="torch is not installed for this Python")

from torch.autograd import profiler as autograd

FORMS = {
    "from torch.profiler import profile": "profile",
    "from torch.profiler.profiler import profile as record": "record",
    "import torch.profiler as p": "p.profile",
    "from torch import profiler": "profiler.profile",
}
# Recorders as in frameworks: names taken at import, kept in classes, in defaults and in tables.
LIGHTNING = """
    import inspect
    import torch
    from torch.autograd.profiler import record_function
    from torch.profiler import ProfilerAction, ProfilerActivity, profile, schedule

    class PyTorchProfiler:
        def __init__(self, **kwargs):
            known = {**inspect.signature(profile.__init__).parameters, **inspect.signature(profile).parameters}
            unknown = set(kwargs) - set(known)
            assert not unknown, unknown
            self.kwargs, self.profiler, self.spans = kwargs, None, {}

        def start(self, action):
            if self.profiler is None:
                self.profiler = self._create(profile)
                self.profiler.__enter__()
            self.spans[action] = record_function("[pl][profile]" + action)
            self.spans[action].__enter__()

        def _create(self, kind: type):
            accepted = inspect.signature(kind.__init__).parameters
            return kind(**{name: value for name, value in self.kwargs.items() if name in accepted})

        def stop(self, action):
            self.spans.pop(action).__exit__(None, None, None)

        def summary(self):
            assert isinstance(self.profiler, profile)
            self.profiler.__exit__(None, None, None)
            return self.profiler

    def train(work):
        recorder = PyTorchProfiler(activities=[ProfilerActivity.CPU], record_shapes=True)
        recorder.start("training_step")
        work()
        recorder.stop("training_step")
        return recorder.summary()
"""
TRANSFORMERS = """
    from contextlib import contextmanager
    from dataclasses import dataclass, field
    from torch import profiler

    @dataclass
    class ProfileKwargs:
        record_shapes: bool = False
        kind: type = profiler.profile

        def build(self):
            return self.kind(activities=[profiler.ProfilerActivity.CPU], record_shapes=self.record_shapes)

    class Callback:
        def __init__(self, prof):
            self.prof = prof

        def on_step_end(self):
            self.prof.step()

    @contextmanager
    def profiled(handler):
        with handler.build() as prof:
            yield prof

    def train(work):
        with profiled(ProfileKwargs(record_shapes=True)) as prof:
            callback = Callback(prof)
            work()
            callback.on_step_end()
        return prof
"""
TORCHVISION = """
    import torch.profiler
    from torch.profiler import profile, record_function

    class Recorded(profile):
        '''A class of the program's.'''

        def __init__(self, *activities, **options):
            super().__init__(activities=activities, **options)
            self.starts = []

        def start(self):
            self.starts.append("start")
            super().start()

    def train(work, make=Recorded):
        with make(torch.profiler.ProfilerActivity.CPU) as prof, record_function("evaluate"):
            work()
        assert prof.starts == ["start"] and isinstance(prof, Recorded) and type(prof).__name__ == "Recorded"
        return prof
"""


@pytest.fixture
def put_back():
    yield
    vestige.uninstall()


def work():
    return torch.ones(3).add(1)


def written(text):
    """Returns a module as if the program had imported it before."""
    module = ModuleType("written")
    sys.modules["written"] = module
    try:
        exec(textwrap.dedent(text), vars(module))
    finally:
        del sys.modules["written"]
    return module


def is_ours(prof):
    return isinstance(prof, vestige.torch.profiles.profile)


@pytest.mark.parametrize("form", FORMS)
def test_a_name_that_was_imported_before_records_with_vestige(form, put_back, tmp_path):
    names = {}
    exec(form, names)
    kind = eval(FORMS[form], names)
    vestige.install()
    with kind(record_shapes=True) as prof:
        work()
    assert is_ours(prof) and isinstance(prof, kind)
    assert {"aten::ones", "aten::add"} <= {event.key for event in prof.key_averages()}
    path = tmp_path / "t.json"
    prof.export_chrome_trace(str(path))
    assert '"aten::add"' in path.read_text()
    vestige.uninstall()
    with kind() as prof:
        work()
    assert type(prof) is kind and kind is torch.profiler.profile


def test_vestiges_options_are_taken_by_a_name_of_before(put_back, tmp_path):
    kind = torch.profiler.profile
    signature = inspect.signature(kind)
    vestige.install()
    with kind(output=str(tmp_path / "t.vst")) as prof:
        work()
    assert is_ours(prof) and (tmp_path / "t.vst").exists()
    assert inspect.signature(kind) == signature


@pytest.mark.parametrize(
    "style", [LIGHTNING, TRANSFORMERS, TORCHVISION], ids=["lightning", "transformers", "torchvision"]
)
def test_code_of_a_framework_that_imported_first_records_with_vestige(style, put_back):
    module = written(style)
    vestige.install()
    prof = module.train(work)
    assert is_ours(prof)
    keys = {event.key for event in prof.key_averages()}
    assert "aten::add" in keys
    if style is not TRANSFORMERS:
        assert keys & {"[pl][profile]training_step", "evaluate"}
    vestige.uninstall()
    prof = module.train(work)
    assert not is_ours(prof)
    assert {event.key for event in prof.key_averages()} == keys


def test_an_execution_trace_observer_imported_before_writes_vestiges_trace(put_back, tmp_path):
    kind = torch.profiler.ExecutionTraceObserver
    vestige.install()
    observer = kind().register_callback(str(tmp_path / "et.json"))
    assert isinstance(observer, kind) and isinstance(observer, vestige.ExecutionTraceObserver)
    with torch.profiler.profile(execution_trace_observer=observer):
        work()
    observer.unregister_callback()
    assert "aten::add" in (tmp_path / "et.json").read_text()
    vestige.uninstall()
    assert type(kind()) is kind


def test_an_autograd_profile_imported_before_records_with_vestige_on_request(put_back):
    kind = autograd.profile
    vestige.install()
    assert type(kind()) is kind
    vestige.install(autograd=True)
    with kind() as prof:
        work()
    assert isinstance(prof, vestige.torch.profiles.AutogradProfile)
    assert "aten::add" in {event.key for event in prof.key_averages()}
    vestige.uninstall()
    assert type(kind()) is kind


def test_a_class_that_cannot_be_adopted_stays_torchs_and_one_line_says_so(put_back, capfd):
    class Closed(torch.profiler.profile):
        def __init_subclass__(cls):
            raise TypeError("no more classes")

    vestige.install()
    standard_error.note()
    with Closed() as prof:
        work()
    assert type(prof) is Closed and prof.key_averages()
    assert "torch records for" in capfd.readouterr().err


def test_a_deprecated_option_ends_as_in_torch_and_its_warning_names_the_programs_line(put_back):
    kind = torch.profiler.profile

    def outcome():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                kind(use_cuda=False)
            except TypeError as error:  # from torch 2.14 on
                return str(error)
        return [(each.category, str(each.message), each.filename, each.lineno) for each in caught]

    theirs = outcome()
    vestige.install()
    assert outcome() == theirs != []


def test_where_torchs_class_is_not_known_modules_that_hold_it_are_named(monkeypatch, put_back):
    class Unknown:
        pass

    monkeypatch.setattr(torch.profiler, "profile", Unknown)
    module = ModuleType("held_before")
    module.record = Unknown
    monkeypatch.setitem(sys.modules, "held_before", module)
    with pytest.warns(RuntimeWarning, match=r"before install\(\): .*held_before") as caught:
        vestige.install()
    assert caught[0].filename == __file__
    vestige.uninstall()
    assert torch.profiler.profile is Unknown
    monkeypatch.delitem(sys.modules, "held_before")
    module = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropin.install()


def test_a_script_that_imports_first_gets_vestiges_table(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nfrom torch.profiler import profile, ProfilerActivity\nimport vestige\nvestige.install()\n"
        "with profile(activities=[ProfilerActivity.CPU]) as prof:\n    torch.ones(3).add(1)\n"
        "print(prof.key_averages().table())\nprint(type(prof).__module__)\n"
    )
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "aten::add" in done.stdout
    assert done.stdout.endswith("vestige.torch.profiles\n")
