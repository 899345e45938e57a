"""The ways to record devices: an activity of torch.profiler's, an option, or a library that the program names. The
library is the device made of threads (examples/c/device).
"""

import ctypes
import json
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

import compiled
import vestige
import vestige.torch.activity
from conftest import COMMAND, PYTHON
from vestige import ProfilerActivity, profile


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)


def run_python(code, *words):
    result = run(PYTHON, "-c", textwrap.dedent(code), *words)
    assert (result.returncode, result.stderr) == (0, "")


EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "c" / "device"
NO_DRIVER = "there is no CUDA driver here (libcuda.so.1)"


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


without_driver = pytest.mark.skipif(has_driver(), reason="a CUDA driver is here")

# The library's work, started from Python: three kernels on each of two streams, and a copy.
PROGRAM = """
    import ctypes, sys
    library = ctypes.CDLL(sys.argv[1])
    nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)
    def work():
        for number in range(3):
            library.worker_launch(0, b"gemm", nothing, None)
            library.worker_launch(1, b"relu", nothing, None)
        target = ctypes.create_string_buffer(100)
        library.worker_copy(0, target, target, 100)
        library.worker_synchronize()
"""


@pytest.fixture(scope="module")
def device():
    """The library, compiled as its first comment says."""
    source = "".join(f'#include "{EXAMPLE / name}"\n' for name in ("library/loaded.c", "worker_device.c"))
    return compiled.library(source)


def exported(prof_or_path, tmp_path):
    vestige.Trace(str(prof_or_path)).export(str(tmp_path / "t.json"))
    return json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def kernels(events):
    return sorted((event["name"], event["tid"]) for event in events if event.get("cat") == "kernel")


EXPECTED = [("gemm", 0)] * 3 + [("relu", 1)] * 3


def test_a_library_that_the_program_names_collects_what_its_device_does(device, tmp_path):
    code = f"""{PROGRAM}
    import vestige
    with vestige.profile(devices=[sys.argv[1]], output=sys.argv[2]):
        with vestige.record_function("step"):
            work()
    """
    run_python(code, device, tmp_path / "t.vst")
    events = exported(tmp_path / "t.vst", tmp_path)
    assert kernels(events) == EXPECTED
    (step,) = [event for event in events if event.get("cat") == "user_annotation"]
    outer = {event["args"]["External id"] for event in events if event.get("cat") == "kernel"}
    assert outer == {step["args"]["External id"]}
    heads = [event["id"] for event in events if event.get("ph") == "f"]
    tails = [event["id"] for event in events if event.get("ph") == "s"]
    assert sorted(heads) == sorted(tails) and len(heads) == 7


def test_the_command_takes_the_library_by_an_option(device, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM) + "work()\n")
    result = run(COMMAND, "run", "-q", "--collector", device, "-o", tmp_path / "t.vst", script, device)
    assert (result.returncode, result.stderr) == (0, "")
    assert kernels(exported(tmp_path / "t.vst", tmp_path)) == EXPECTED


def test_children_use_the_library_too(device, tmp_path):
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(PROGRAM) + "work()\n")
    code = """
    import subprocess, sys, vestige
    with vestige.profile(devices=[sys.argv[1]], output=sys.argv[2], children=True):
        subprocess.run([sys.executable, sys.argv[3], sys.argv[1]], check=True)
    """
    run_python(code, device, tmp_path / "t.vst", script)
    (child,) = [path for path in tmp_path.glob("t.*.vst")]
    assert kernels(exported(child, tmp_path)) == EXPECTED


@pytest.mark.parametrize(
    ("library", "why"),
    [
        ("nowhere.so", "nowhere.so: cannot open shared object file"),
        (None, "undefined symbol: vestige_collector_load"),
        ("vst_status vestige_collector_load(const vst_api *api) { return VST_E_VERSION; }", "not registered"),
    ],
)
def test_a_library_that_cannot_be_used_is_an_error_that_says_why(library, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if library is None or "(" in library:
        library = str(compiled.library(f"#include <vestige/api.h>\n{library or ''}"))
    with pytest.raises(ValueError, match=re.escape(why)) as raised:
        profile(devices=[library])
    assert str(raised.value).count(str(Path(library).name)) == 1


@pytest.mark.parametrize("devices", ["libx.so", 1, [1], None])
def test_devices_is_a_flag_or_a_list_of_paths(devices):
    with pytest.raises(TypeError, match="devices must be"):
        profile(devices=devices)


@without_driver
def test_without_a_driver_one_line_says_so_and_all_else_is_recorded(tmp_path):
    result = run(COMMAND, "run", "--devices", "-o", tmp_path / "t.vst", "-c", "print(len('abc'))")
    assert result.stdout == "3\n"
    assert [line for line in result.stderr.splitlines() if "CUDA" in line or "devices" in line] == [
        f"vestige: no CUDA activity is collected: {NO_DRIVER}"
    ]
    trace = vestige.Trace(str(tmp_path / "t.vst"))
    assert "devices" not in trace.info() and trace.info()["records"] > 2


@without_driver
def test_what_is_supported_does_not_include_what_cannot_be_collected():
    assert vestige.torch.activity.supported_activities() == {ProfilerActivity.CPU}
