"""Requirements of torch's own tests for its Python tracer (test_python_tracer.py), applied to ours."""

import json
import subprocess
import sys
import time

import pytest

import vestige
from vestige import ProfilerActivity, profile

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


@pytest.fixture
def torch_mode():
    vestige.install()
    yield
    vestige.uninstall()


@pytest.mark.filterwarnings("ignore:vestige. no CUDA activity")
def test_method_with_c_function(tmp_path):
    class A:
        method_with_c_function = classmethod(repr)

    def get_key(x):
        A().method_with_c_function()
        time.sleep(1.2)
        return len(x)

    names = ["Alice", "Bob"]

    with profile(activities=BOTH, with_stack=True) as prof:
        sorted(names, key=get_key)

    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    found = False
    for event in events:
        if event.get("cat", "") == "python_function" and event.get("name", "") == "<built-in function sorted>":
            duration = event.get("dur", 0)
            if duration >= 2000000:
                found = True
                break
    assert found
    assert len([e for e in events if e.get("name") == "<built-in function repr>"]) == 2


@pytest.mark.skipif(sys.version_info[:2] != (3, 12), reason="the rule for tool id 2 is 3.12's")
@pytest.mark.filterwarnings("ignore:vestige. no CUDA activity")
def test_monitoring_callback(torch_mode):
    from sys import monitoring

    with profile(activities=BOTH, with_stack=True):
        name = monitoring.get_tool(2)
        if sys.version_info.micro < 5:
            assert name == "PyTorch Profiler"
        else:
            assert name is None
    name = monitoring.get_tool(2)
    assert name is None


def test_unexpected_c_return_events():
    code = """
import threading
import time
import vestige

from threading import Event, Lock

lock = Lock()
lock.acquire()
event1 = Event()
event2 = Event()
event3 = Event()

def run():
    event1.set()
    event2.wait()
    lock.acquire()
    event3.set()

threading.Thread(target=run).start()

with vestige.profile(activities=[vestige.ProfilerActivity.CPU], with_stack=True):
    event1.wait()
    event2.set()
    time.sleep(1)

with vestige.profile(activities=[vestige.ProfilerActivity.CPU], with_stack=True):
    lock.release()
    event3.wait()
    """

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "Python replay stack is empty during pop operation" not in result.stderr
    assert result.stderr == ""
