"""`vestige device check`: its results for two made-up files, for a recording by the stub of libcupti, and on a machine
without a GPU.
"""

import copy
import json

import pytest

import cupti_stub
from in_process import vestige as run
from test_collectors import without_driver
from test_cupti import record

pytestmark = pytest.mark.any_python


def document(rounds=3, streams=(7, 20), shift=0.0):
    """Each round launches two kernels on two streams inside an operator, and a copy outside any operator."""
    events = []
    for number in range(rounds):
        at, first = 1000.0 * number + shift, 10 * number
        events.append(event("cpu_op", "aten::mm", at, 100, {"External id": first + 1}))
        for place, (name, stream, operator) in enumerate(
            [("gemm", streams[0], first + 1), ("relu", streams[1], first + 1), ("Memcpy HtoD", streams[0], None)]
        ):
            correlation = {"correlation": first + place}
            external = {} if operator is None else {"External id": operator}
            call = "cudaMemcpyAsync" if operator is None else "cudaLaunchKernel"
            start = at + (10 if operator else 200) + 10 * place
            events.append(event("cuda_runtime", call, start, 5, {**correlation, **external}))
            category = "gpu_memcpy" if operator is None else "kernel"
            events.append(event(category, name, start + 20, 50, {**correlation, **external}, pid=0, tid=stream))
    return {"traceEvents": events}


def event(category, name, ts, dur, args, pid=1234, tid=1234):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


@pytest.fixture
def compare(tmp_path):
    def check(theirs, ours, *words):
        for name, content in (("torch.json", theirs), ("vestige.json", ours)):
            (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return run("device", "check", "--files", tmp_path / "torch.json", tmp_path / "vestige.json", *words)

    return check


def test_the_same_work_is_the_same_whatever_its_streams_are_called(compare):
    said = compare(document(), document(streams=(13, 14), shift=5.5))
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert sum(line.startswith("the same") for line in lines) == 6
    assert "the same   9 kernels, copies and sets, by name" in lines
    assert "verdict    the same" in lines
    assert lines[-1].startswith("Please send this")


def lose_a_kernel(events):
    events.remove([e for e in events if e["name"] == "relu"][1])


def exchange_two(events):
    first, second = [e for e in events if e["tid"] == 7][:2]
    first["ts"], second["ts"] = second["ts"], first["ts"]


def lose_the_operator(events):
    del next(e for e in events if e["name"] == "gemm")["args"]["External id"]


def begin_too_early(events):
    next(e for e in events if e["name"] == "gemm")["ts"] = 0.5


def last_longer(events):
    for each in events:
        if each["name"] == "gemm":
            each["dur"] = 70


def lose_a_call(events):
    events.remove(next(e for e in events if e["name"] == "cudaMemcpyAsync"))


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (lose_a_kernel, ["kernel relu: torch.profiler has 3, vestige 2"]),
        (exchange_two, ["stream 1 of 2: from the 1. on"]),
        (lose_the_operator, ["gemm from cudaLaunchKernel in no operator: torch.profiler has 0, vestige 1"]),
        (begin_too_early, ["gemm does"]),
        (last_longer, ["gemm: torch.profiler 50.0 us, vestige 70.0 us"]),
        (lose_a_call, ["cudaMemcpyAsync: torch.profiler has 3, vestige 2", "Memcpy HtoD from no call in no operator"]),
    ],
)
def test_each_kind_of_difference_is_named(compare, change, lines):
    ours = copy.deepcopy(document())
    change(ours["traceEvents"])
    said = compare(document(), ours)
    assert (said.code, said.err) == (1, "")
    for line in lines:
        assert line in said.out
    assert " of 6 differ" in said.out
    told = json.loads(compare(document(), ours, "--json").out)
    assert told["different"] >= 1 and any(
        line.startswith(lines[0]) for each in told["compared"].values() for line in each
    )


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"traceEvents": [{"ph": "X", "cat": "kernel"}]}', "3"])
def test_a_file_that_is_none_is_one_line(compare, content):
    said = compare(content, document())
    assert said.code == 1
    assert len((said.err or said.out).splitlines()) >= 1 and "Traceback" not in said.err


def test_a_recording_by_the_stub_is_compared_with_what_torch_would_have_written(compare, tmp_path):
    ours = record(cupti_stub.build(), tmp_path / "t.vst")
    theirs = copy.deepcopy(ours)
    assert compare(theirs, ours).code == 0
    kernel = next(event for event in theirs["traceEvents"] if event.get("cat") == "kernel")
    kernel["name"] = "another"
    said = compare(theirs, ours)
    assert said.code == 1 and "kernel another: torch.profiler has 1, vestige 0" in said.out


@without_driver
def test_without_a_gpu_it_is_one_line_and_exit_code_3():
    said = run("device", "check")
    assert (said.code, said.out) == (3, "")
    assert said.err == ("vestige: device check: there is no CUDA driver here (libcuda.so.1); nothing was compared\n")
    assert run("device").code == 2
    assert run("device", "chek").code == 2
