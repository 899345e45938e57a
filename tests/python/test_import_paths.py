"""Where names were once, they still are: programs import them from there, and pickles on disk name them."""

import importlib
import pickle
import subprocess
import sys

import pytest

import vestige

pytestmark = pytest.mark.any_python

PLACES = {
    "vestige.activity": ["ProfilerActivity", "supported_activities"],
    "vestige.annotate": ["counter", "instant"],
    "vestige.averages": ["FunctionEventAvg"],
    "vestige.event_list": ["EventList"],
    "vestige.events": ["FunctionEvent", "Interval"],
    "vestige.execution_trace": ["ExecutionTraceObserver"],
    "vestige.experimental": ["_ExperimentalConfig"],
    "vestige.itt": ["range_push"],
    "vestige.memory": ["start", "stop", "track"],
    "vestige.profiler": ["profile"],
    "vestige.steps": ["KinetoStepTracker", "ProfilerAction", "schedule"],
    "vestige.tables": ["open", "write"],
    "vestige.torch_build": ["main"],
    "vestige.traceback": ["CapturedTraceback"],
}


@pytest.mark.parametrize("module", PLACES)
def test_a_name_is_found_where_it_always_was(module):
    place = importlib.import_module(module)
    for name in PLACES[module]:
        assert getattr(place, name) is getattr(vestige, name, getattr(place, name))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("activity", "ProfilerActivity"),
        ("events", "Interval"),
        ("experimental", "_ExperimentalConfig"),
        ("steps", "ProfilerAction"),
    ],
)
def test_a_pickle_of_before_is_loaded(module, name):
    kind = pickle.loads(f"cvestige.{module}\n{name}\n.".encode())
    assert kind.__name__ == name
    assert pickle.loads(pickle.dumps(kind)) is kind


# Loaded only where torch is.
WITH_TORCH = [
    f"vestige.torch.{name}"
    for name in ("inherited", "profiles", "tree", "tree_autograd", "tree_devices", "tree_fields")
]

IMPORT_EACH = """
import os, pkgutil, sys, vestige
found = [each.name for each in pkgutil.walk_packages(vestige.__path__, "vestige.")]
names = [name for name in found if "__main__" not in name and ".libvestige" not in name]  # that is a library in C
for name in names:
    if os.fork() == 0:
        try:
            __import__(name)
        except BaseException as error:
            if name not in sys.argv or getattr(error, "name", "") != "torch":
                print(name, repr(error), flush=True)
        os._exit(0)
    os.wait()
print(len(names))
"""


def test_every_module_can_be_imported_first():
    """No room needs another to be loaded before it."""
    result = subprocess.run([sys.executable, "-c", IMPORT_EACH, *WITH_TORCH], capture_output=True, text=True)
    assert (result.stderr, result.stdout.count("\n")) == ("", 1), result.stdout
    assert int(result.stdout) > 100
