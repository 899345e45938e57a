"""What HTA and TensorBoard make of a trace whose device did a known work: the answers follow from the times in it."""

import sys
from pathlib import Path

import pytest

import vestige

pytest.importorskip("hta")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import handmade as h
from handmade_devices import ANNOTATION, COPY, METADATA, OPERATOR, Work, device

from .test_in_hta import analyse

STEPS = 3
STEP = 10_000  # microseconds from one to the next


def write_step(work, number):
    """Busy from 1,000 to 5,500: a kernel, a shorter one, communication beside both, and a copy."""
    at, correlation = 1000 + STEP * number, 10 * number
    work.span(ANNOTATION, f"ProfilerStep#{number}", at, at + 9000)
    work.span(OPERATOR, "aten::mm", at + 100, at + 300)
    work.span(OPERATOR, "aten::copy_", at + 400, at + 500)
    work.launch("gemm", at + 150, at + 1000, at + 3000, correlation=correlation + 1)
    work.launch("relu", at + 200, at + 3500, at + 4000, correlation=correlation + 2)
    work.launch("ncclDevKernel_AllReduce", at + 220, at + 2000, at + 5000, correlation=correlation + 3, stream=20)
    name = "Memcpy HtoD (Pageable -> Device)"
    work.launch(name, at + 420, at + 5000, at + 5500, correlation=correlation + 4, kind=COPY, size=4_000_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device")
    rank = h.entry(METADATA, a="distributedInfo", b='{"backend": "nccl", "rank": 0, "world_size": 1}')
    work = Work()
    for number in range(STEPS):
        write_step(work, number)
    path = folder / "device.vst"
    path.write_bytes(work.trace(device(attributes='"numSms": 108'), rank))
    trace = vestige.Trace(str(path))
    (folder / "files").mkdir()
    trace.export(str(folder / "files" / "rank0.pt.trace.json"))
    return folder / "files"


@pytest.fixture(scope="module")
def analysis(folder):
    return analyse(folder, include_last_profiler_step=True)


def test_idle_and_busy_time_are_those_of_the_device(analysis):
    (row,) = analysis.get_temporal_breakdown(visualize=False).to_dict("records")
    assert row["kernel_time(us)"] == 2 * STEP + 4500  # from the first kernel's start to the last copy's end
    assert row["compute_time(us)"] == STEPS * 2500
    assert row["non_compute_time(us)"] == STEPS * 2000
    assert row["idle_time(us)"] == 2 * (STEP - 4500)
    idle = analysis.get_idle_time_breakdown(visualize=False)[0]
    assert set(idle["stream"]) == {7, 20}
    waits = idle[(idle["idle_category"] == "host_wait") & (idle["stream"] == 7)]
    assert list(waits["idle_time"]) == [2 * (STEP - 4500)]


def test_kernels_are_told_apart_by_what_they_do(analysis):
    kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
    assert dict(zip(kinds["kernel_type"], kinds["sum"])) == {
        "COMPUTATION": STEPS * 1000,
        "COMMUNICATION": STEPS * 1500,
        "MEMORY": STEPS * 500,
        "COMPUTATION overlapping COMMUNICATION": STEPS * 1500,
        "COMMUNICATION overlapping MEMORY": 0,
    }
    assert dict(zip(kernels["name"], kernels["sum (us)"])) == {
        "gemm": STEPS * 2000,
        "relu": STEPS * 500,
        "ncclDevKernel_AllReduce": STEPS * 3000,
        "Memcpy HtoD (Pageable -> Device)": STEPS * 500,
    }


def test_communication_overlaps_computation_by_half(analysis):
    assert list(analysis.get_comm_comp_overlap(visualize=False)["comp_comm_overlap_pctg"]) == [50]


def test_launches_wait_in_queues(analysis):
    summary = analysis.get_queue_length_summary()["queue_length"]
    assert list(summary["max"]) == [3, 1]
    delays = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
    assert list(delays["launch_delay"]) == [840, 3290, 1770, 4570] * STEPS
    assert set(delays["cpu_duration"]) == {10}


def test_copies_have_their_bandwidth(analysis):
    summary = analysis.get_memory_bw_summary()["memory_bw_gbps"]
    assert list(summary["mean"]) == [8]


def test_tensorboard_finds_the_kernels_and_the_device(folder):
    data = pytest.importorskip("torch_tb_profiler.profiler.data")
    path = folder / "rank0.pt.trace.json"
    run = data.RunProfileData.parse("rank0", "1", str(path), str(folder))
    assert run.has_kernel and run.has_memcpy_or_memset
    assert run.device_props == [{"id": 0, "name": "A GPU", "numSms": 108}]
    kernels = run.kernel_stat
    assert dict(zip(kernels.index, kernels["count"])) == {
        "gemm": STEPS,
        "relu": STEPS,
        "ncclDevKernel_AllReduce": STEPS,
    }
    assert dict(zip(kernels.index, kernels["sum"])) == {
        "gemm": STEPS * 2000,
        "relu": STEPS * 500,
        "ncclDevKernel_AllReduce": STEPS * 3000,
    }
    assert run.gpu_metrics_parser.gpu_ids == {0}
