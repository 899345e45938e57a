"""Results of HTA, TensorBoard and DuckDB for a trace whose device did known work: all answers follow from the trace's
times.
"""

import sys
from pathlib import Path

import pytest

import vestige

pytest.importorskip("hta")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import handmade as h
from handmade_devices import ANNOTATION, COPY, METADATA, OPERATOR, Work, device

from .tensorboard_server import Server
from .test_in_hta import analyse
from .test_query import ask as query

STEPS = 3
STEP = 10_000  # microseconds from one step to the next
PROPERTIES = '"numSms": 108, "totalGlobalMem": 85899345920, "computeMajor": 9, "computeMinor": 0'


def write_step(work, number):
    """Busy from 1,000 to 5,500: two kernels, communication that overlaps both, and a copy."""
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
    path.write_bytes(work.trace(device(attributes=PROPERTIES), rank))
    trace = vestige.Trace(str(path))
    files = folder / "runs" / "files"
    files.mkdir(parents=True)
    trace.export(str(files / "rank0.1700000000.pt.trace.json"))
    return files


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
    path = folder / "rank0.1700000000.pt.trace.json"
    run = data.RunProfileData.parse("rank0", "1", str(path), str(folder))
    assert run.has_kernel and run.has_memcpy_or_memset
    assert [(each["id"], each["name"], each["numSms"]) for each in run.device_props] == [(0, "A GPU", 108)]
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


# ---- tables --------------------------------------------------------------------


@pytest.mark.parametrize("how", ["trace", "parquet"])
def test_ready_questions_have_the_same_answers_of_a_trace_and_of_parquet(folder, tmp_path, how):
    pytest.importorskip("duckdb")
    path = folder.parents[1] / "device.vst"
    if how == "parquet":
        vestige.tables.write(path, tmp_path / "tables", format="parquet")
        path = tmp_path / "tables"
    kernels = query("kernels", path)
    assert [(row[6], row[0], row[1]) for row in kernels] == [
        ("ncclDevKernel_AllReduce", STEPS, STEPS * 3_000_000),
        ("gemm", STEPS, STEPS * 2_000_000),
        ("Memcpy HtoD (Pageable -> Device)", STEPS, STEPS * 500_000),
        ("relu", STEPS, STEPS * 500_000),
    ]
    gaps = query("device-gaps", path)
    assert [(row[0], row[1], row[6], row[7]) for row in gaps] == [(5_500_000, 4_650_000, "gemm", "aten::mm")] * 2
    ((*_, activities, span, idle, until_launch),) = query("launch-bound", path)
    assert (activities, span, idle) == (4 * STEPS, (2 * STEP + 4500) * 1000, 2 * 5_500_000)
    assert until_launch == 2 * 4_650_000


# ---- TensorBoard itself --------------------------------------------------------


@pytest.fixture(scope="module")
def board(folder):
    pytest.importorskip("torch_tb_profiler")
    with Server(folder.parent) as server:
        yield server


def ask(board, route, **arguments):
    return board.ask(route, run="files", worker="rank0", span="1", **arguments)


def test_tensorboard_has_a_view_of_kernels_and_takes_the_worker_for_one_with_a_gpu(board):
    assert board.ask("views", run="files") == ["Overview", "Operator", "Kernel", "Trace"]
    assert {"title": "Device Type", "value": "GPU"} in ask(board, "overview")["environments"]


def test_tensorboards_pie_of_kernels_has_their_times(board):
    rows = ask(board, "kernel", group_by="Kernel")["total"]["rows"]
    assert dict(rows) == {"ncclDevKernel_AllReduce": STEPS * 3000, "gemm": STEPS * 2000, "relu": STEPS * 500}


def test_tensorboards_kernels_take_as_long_as_the_device_says(board):
    table = ask(board, "kernel/table")["data"]
    columns = [column["name"] for column in table["columns"]]
    rows = [dict(zip(columns, row)) for row in table["rows"]]
    assert {row["Name"]: (row["Mean Duration (us)"], row["Max Duration (us)"]) for row in rows} == {
        "ncclDevKernel_AllReduce": (3000, 3000),
        "gemm": (2000, 2000),
        "relu": (500, 500),
    }


def test_tensorboards_steps_are_made_of_kernels_copies_and_operators(board):
    """TensorBoard also takes torch.profiler's spans of a step on each stream for steps; the program's own steps come
    first.
    """
    steps = ask(board, "overview")["steps"]
    kinds = [column["name"] for column in steps["columns"][1::2]]
    own = {row[0]: dict(zip(kinds, row[1::2])) for row in reversed(steps["rows"])}
    for number in range(STEPS):
        assert (own[str(number)]["Kernel"], own[str(number)]["Memcpy"]) == (4000, 500)
        assert own[str(number)]["CPU Exec"] == 300


def test_tensorboards_summary_names_the_gpu(board):
    summary = {row["title"]: row["value"] for row in ask(board, "overview")["gpu_metrics"]["data"]}
    assert (summary["Name"], summary["Memory"], summary["Compute Capability"]) == ("A GPU", "80.0 GB", "9.0")
    assert 0 < float(summary["GPU Utilization"].split()[0]) < 100


def test_tensorboard_complains_about_nothing(board):
    assert board.complaints() == []
