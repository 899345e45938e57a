"""Recordings of the collector for CUDA, exported with the words of torch.profiler's files. A stub replaces libcupti,
because the tests run without a GPU (tests/cupti/stub.h); in tests/clients/test_cupti.py, the real libcupti reads the
stub's buffers.
"""

import json
import os
import subprocess
import textwrap
from pathlib import Path

import pytest

import compiled
import cupti_stub
import vestige
from conftest import COMMAND, PYTHON

pytestmark = pytest.mark.any_python

# An activity of each kind, inside an operator and outside.
PROGRAM = """
    import sys
    import cupti_stub as c
    import vestige

    path, version, output, real = sys.argv[1:]
    stub = c.Stub(path, int(version), walk_by=real or None)
    with vestige.profile(activities=[vestige.ProfilerActivity.CPU, vestige.ProfilerActivity.CUDA], output=output):
        with vestige.record_function("step"):
            where = dict(device=1, context=7, stream=13)
            graph = dict(graph=3, node=17179869187, channel=9, channel_type=1)
            stub.launch("_Z4gemmPfi", 1, registers=32, grid=(216, 1, 1), block=(256, 1, 1), static=1000, dynamic=24,
                        priority=-5, queued=0, **where, **graph)
            stub.call(c.RUNTIME, c.COPY, 2)
            stub.add(c.MEMCPY, copy=(1, 1, 3), bytes=4096, correlation=2, **where, **graph)
            stub.call(c.RUNTIME, c.SET, 3)
            stub.add(c.MEMSET, bytes=100, memory=3, correlation=3, **where)
        stub.call(c.RUNTIME, 165, 4)
        stub.add(c.SYNC, type=4, correlation=4, context=7, stream=c.NO_STREAM, event=c.NO_STREAM)
        stub.call(c.DRIVER, 307, 5)
        stub.call(c.RUNTIME, 17, 6)
        stub.add(c.OVERHEAD, overhead=1 << 16)
"""


@pytest.fixture(scope="module")
def library():
    return cupti_stub.build()


def run_python(code, *words, **variables):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), **variables}
    command = [PYTHON, "-c", textwrap.dedent(code), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def record(library, path, version=28, real=""):
    """Returns the events of an exported recording of the program."""
    result = run_python(PROGRAM, library, version, path, real)
    assert (result.returncode, result.stderr) == (0, "")
    vestige.Trace(str(path)).export(str(path.with_suffix(".json")))
    return json.loads(path.with_suffix(".json").read_text())


def by_category(document):
    found = {}
    for event in document["traceEvents"]:
        if event.get("ph") == "X" and "cat" in event:
            found.setdefault(event["cat"], []).append(event)
    return found


def test_events_are_those_of_torch_profiler_field_by_field(library, tmp_path):
    document = record(library, tmp_path / "t.vst", 130101)
    events = by_category(document)
    (step,) = events["user_annotation"]
    external = step["args"]["External id"]
    process, thread = step["pid"], step["tid"]
    (kernel,) = events["kernel"]
    # the name stays mangled, because no C++ library is loaded
    assert (kernel["pid"], kernel["tid"], kernel["name"]) == (1, 13, "_Z4gemmPfi")
    assert kernel["args"] == {
        "External id": external,
        "queued": 0,
        "device": 1,
        "context": 7,
        "stream": 13,
        "correlation": 1,
        "registers per thread": 32,
        "shared memory": 1024,
        "blocks per SM": 2,
        "warps per SM": 16,
        "grid": [216, 1, 1],
        "block": [256, 1, 1],
        "est. achieved occupancy %": 25,
        "graph id": 3,
        "graph node id": 17179869187,
        "priority": -5,
        "channel": 9,
        "channel_type": 1,
    }
    (copy,) = events["gpu_memcpy"]
    assert (copy["pid"], copy["tid"], copy["name"]) == (1, 13, "Memcpy HtoD (Pageable -> Device)")
    bandwidth = copy["args"].pop("memory bandwidth (GB/s)")
    assert bandwidth == pytest.approx(4096 / (copy["dur"] * 1000), rel=0.01)
    assert copy["args"] == {
        "External id": external,
        "device": 1,
        "context": 7,
        "stream": 13,
        "correlation": 2,
        "bytes": 4096,
        "graph id": 3,
        "graph node id": 17179869187,
        "channel": 9,
        "channel_type": 1,
    }
    (filled,) = events["gpu_memset"]
    assert (filled["name"], filled["args"]["bytes"]) == ("Memset (Device)", 100)
    calls = events["cuda_runtime"]
    assert [call["name"] for call in calls] == [
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "cudaMemsetAsync",
        "cudaDeviceSynchronize",
    ]
    assert {(call["pid"], call["tid"]) for call in calls} == {(process, thread)}
    assert calls[0]["args"] == {"External id": external, "cbid": 211, "correlation": 1}
    assert calls[3]["args"] == {"cbid": 165, "correlation": 4}
    (driver,) = events["cuda_driver"]
    assert driver["args"] == {"cbid": 307, "correlation": 5} and driver["name"] == "cuLaunchKernel"
    (waited,) = events["cuda_sync"]
    assert waited["tid"] == -1
    assert waited["args"] == {
        "cuda_sync_kind": "Context Sync",
        "stream": -1,
        "correlation": 4,
        "device": 1,
        "context": 7,
    }
    (overhead,) = events["overhead"]
    assert (overhead["pid"], overhead["name"]) == (-1, "Buffer Flush")
    (annotated,) = events["gpu_user_annotation"]
    assert (annotated["pid"], annotated["tid"], annotated["name"]) == (1, 13, "step")
    assert annotated["ts"] == kernel["ts"]
    assert annotated["ts"] + annotated["dur"] == pytest.approx(filled["ts"] + filled["dur"], abs=0.002)


def test_arrows_tracks_and_properties_are_those_of_torch_profiler(library, tmp_path):
    document = record(library, tmp_path / "t.vst")
    events = document["traceEvents"]
    arrows = [event for event in events if event.get("cat") == "ac2g"]
    assert sorted((event["ph"], event["id"]) for event in arrows) == [(ph, id) for ph in "fs" for id in (1, 2, 3)]
    assert {event.get("bp") for event in arrows if event["ph"] == "f"} == {"e"}
    named = {(event["name"], event["pid"], event["tid"]): event["args"] for event in events if event.get("ph") == "M"}
    assert named["thread_name", 1, 13] == {"name": "stream 13"}
    assert named["process_labels", 1, 0] == {"labels": "GPU 1"}
    own = [args for (name, pid, _), args in named.items() if name == "process_sort_index" and pid > 1]
    assert named["process_sort_index", 1, 0]["sort_index"] > max(args["sort_index"] for args in own)
    (first, second) = document["deviceProperties"]
    assert (first["id"], second["id"], second["name"]) == (0, 1, "Stub GPU 1")
    assert second.keys() >= {
        *("totalGlobalMem", "computeMajor", "computeMinor", "maxThreadsPerBlock", "maxThreadsPerMultiprocessor"),
        *("regsPerBlock", "warpSize", "sharedMemPerBlock", "numSms", "regsPerMultiprocessor"),
        *("sharedMemPerBlockOptin", "sharedMemPerMultiprocessor"),
    }
    assert (second["numSms"], second["computeMajor"]) == (108, 8)


# Properties of an A100, from files of torch.profiler that Holistic Trace Analysis has published.
PUBLISHED = [
    ((122, 12544, (8, 16, 5), (128, 1, 1)), (5.925926, 23.703703, 25)),
    ((16, 0, (1, 1, 1), (128, 1, 1)), (0.009259, 0.037037, 0)),
]


def test_kernels_fill_the_device_as_published_files_say(library, tmp_path):
    code = f"""
    import sys
    import cupti_stub as c
    import vestige
    stub = c.Stub(sys.argv[1])
    with vestige.profile(devices=True, output=sys.argv[2]):
        for number, ((registers, shared, grid, block), _) in enumerate({PUBLISHED!r}, 1):
            stub.launch("kernel", number, registers=registers, dynamic=shared, grid=grid, block=block)
    """
    result = run_python(code, library, tmp_path / "t.vst")
    assert (result.returncode, result.stderr) == (0, "")
    vestige.Trace(str(tmp_path / "t.vst")).export(str(tmp_path / "t.json"))
    kernels = by_category(json.loads((tmp_path / "t.json").read_text()))["kernel"]
    for kernel, (_, expected) in zip(kernels, PUBLISHED, strict=True):
        args = kernel["args"]
        assert args.keys() >= {
            *("block", "blocks per SM", "context", "correlation", "device", "est. achieved occupancy %", "grid"),
            *("queued", "registers per thread", "shared memory", "stream", "warps per SM"),
        }
        filled = args["blocks per SM"], args["warps per SM"], args["est. achieved occupancy %"]
        assert filled == pytest.approx(expected, rel=1e-4)


def test_a_kernel_has_its_demangled_name_where_the_program_has_a_c_plus_plus_library(library, tmp_path):
    code = "import ctypes\nctypes.CDLL('libstdc++.so.6')\n" + textwrap.dedent(PROGRAM)
    result = run_python(code, library, 28, tmp_path / "t.vst", "")
    assert (result.returncode, result.stderr) == (0, "")
    vestige.Trace(str(tmp_path / "t.vst")).export(str(tmp_path / "t.json"))
    (kernel,) = by_category(json.loads((tmp_path / "t.json").read_text()))["kernel"]
    assert kernel["name"] == "gemm(float*, int)"


def test_info_and_the_closing_report_say_that_it_has_not_run_on_a_gpu(library, tmp_path):
    record(library, tmp_path / "t.vst")
    said = subprocess.run([COMMAND, "info", str(tmp_path / "t.vst")], capture_output=True, text=True).stdout
    assert "has not yet run on a GPU" in said and "cuda 1: Stub GPU 1" in said
    script = tmp_path / "program.py"
    script.write_text("len('')\n")
    environment = {**os.environ, "LD_PRELOAD": str(library), "VESTIGE_LIBCUPTI": str(library)}
    command = [COMMAND, "run", "--devices", "-o", tmp_path / "r.vst", script]
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    assert result.returncode == 0 and "not yet run on a GPU" in result.stderr


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("cuptiActivityRegisterTimestampCallback", "no CUDA activity is collected"),
        ("cuptiActivityFlushAll", "records in buffers are lost"),
    ],
)
def test_what_fails_is_one_warning_and_the_program_goes_on(library, tmp_path, function, line):
    code = f"""
    import sys, warnings
    import cupti_stub as c
    import vestige
    stub = c.Stub(sys.argv[1])
    stub.control.fail({function.encode()!r}, 0)
    with vestige.profile(devices=True, output=sys.argv[2]):
        stub.launch("kernel", 1)
    print("done")
    """
    result = run_python(code, library, tmp_path / "t.vst")
    assert (result.returncode, result.stdout) == (0, "done\n")
    told = [each for each in result.stderr.splitlines() if "vestige:" in each]
    assert len(told) == 1 and function in told[0] and line in told[0]


def test_a_library_of_the_user_that_cannot_be_loaded_is_named(library, tmp_path):
    code = """
    import ctypes, sys, vestige.recording.devices
    ctypes.CDLL(sys.argv[1])
    print(vestige.recording.devices.cuda_trouble())
    """
    result = run_python(code, library, VESTIGE_LIBCUPTI=str(tmp_path / "nowhere.so"))
    assert result.stdout.startswith(f"VESTIGE_LIBCUPTI cannot be loaded: {tmp_path}/nowhere.so")
    result = run_python(code, library, VESTIGE_LIBCUPTI=str(compiled.library("int nothing;")))
    assert result.stdout.startswith("this libcupti has no cuptiGetVersion")
