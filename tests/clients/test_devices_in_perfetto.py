"""Activities of devices in Perfetto's own format, read by its trace_processor: a trace made by hand with known times,
and a trace of the device made of threads (examples/c/device) with a known order.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import vestige
from vestige.cli import export as export_command

from .perfetto import ClientMissing, TraceProcessor, find_engine, find_node, problems

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "python"))
from handmade_devices import ANNOTATION, COPY, KERNEL, OPERATOR, SYNC, Work, device

DEVICE = REPOSITORY / "build" / "c" / "examples" / "c" / "device"
ROUNDS = 20  # streams of the example
TRACKS = "SELECT t.name, t.id, p.name AS parent FROM track t LEFT JOIN track p ON t.parent_id = p.id"
SLICES = """
SELECT s.id, s.ts, s.dur, s.name, s.category, s.depth, t.name AS track, p.name AS parent,
    extract_arg(s.arg_set_id, 'debug.correlation') AS correlation, extract_arg(s.arg_set_id, 'debug.stream') AS stream,
    extract_arg(s.arg_set_id, 'debug.bytes') AS bytes, extract_arg(s.arg_set_id, 'debug.External id') AS external
FROM slice s JOIN track t ON s.track_id = t.id LEFT JOIN track p ON t.parent_id = p.id
"""
WORK = f"{SLICES} WHERE s.category IN ('kernel', 'gpu_memcpy', 'gpu_memset') ORDER BY s.ts"
FLOWS = """
SELECT o.name AS call, o.category, i.name AS kernel, i.ts - o.ts AS ns,
    extract_arg(o.arg_set_id, 'debug.correlation') AS calls, extract_arg(i.arg_set_id, 'debug.correlation') AS kernels
FROM flow JOIN slice o ON flow.slice_out = o.id JOIN slice i ON flow.slice_in = i.id ORDER BY i.ts
"""


@pytest.fixture(scope="module", autouse=True)
def engine():
    try:
        find_node(), find_engine()
    except ClientMissing as missing:
        pytest.skip(str(missing))


def export(path):
    vestige.Trace(str(path)).export(str(path.with_suffix(".pftrace")))
    return path.with_suffix(".pftrace")


@pytest.fixture(scope="module")
def handmade(tmp_path_factory):
    """One call launches two kernels, which overlap; another call copies; a synchronisation overlaps this copy."""
    work = Work()
    work.span(ANNOTATION, "step", 100, 900)
    work.span(OPERATOR, "aten::mm", 200, 800)
    work.launch("gemm", 300, 1000, 2000, correlation=5, attributes='"grid": [1, 2, 3]')
    work.activity(KERNEL, "tail", 1500, 2500, correlation=5, stream=7)
    work.launch("Memcpy HtoD", 850, 3000, 3500, correlation=6, kind=COPY, size=4_000_000)
    work.activity(SYNC, "Stream Wait Event", 3400, 3900, correlation=8, stream=7)
    path = tmp_path_factory.mktemp("handmade") / "device.vst"
    path.write_bytes(work.trace(device()))
    with TraceProcessor.open(export(path)) as tp:
        yield tp


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """The example's pipeline: each round copies on stream 0, then sums on streams 1 and 2 in parallel."""
    assert DEVICE.exists(), f"{DEVICE} is not there: make build/c/.core builds it"
    folder = tmp_path_factory.mktemp("workers")
    subprocess.run([DEVICE, folder / "t.json", folder / "t.vst"], check=True, capture_output=True, timeout=60)
    with TraceProcessor.open(export(folder / "t.vst")) as tp:
        yield tp


def test_a_device_is_a_group_and_a_stream_a_track_of_it(handmade):
    assert problems(handmade) == []
    tracks = {(row["parent"], row["name"]) for row in handmade.query(TRACKS)}
    assert ("GPU 0: A GPU", "stream 7") in tracks
    assert ("GPU 0: A GPU", "annotations of stream 7") in tracks


def test_activities_have_their_times_and_arguments_and_none_is_lost(handmade):
    rows = handmade.query(f"{SLICES} WHERE p.name = 'GPU 0: A GPU' ORDER BY s.ts, s.dur")
    start = rows[0]["ts"] - 1_000_000
    found = [((row["ts"] - start) // 1000, row["dur"] // 1000, row["category"], row["name"]) for row in rows]
    assert found == [
        (1000, 1000, "kernel", "gemm"),
        (1000, 2500, "gpu_user_annotation", "step"),
        (1500, 1000, "kernel", "tail"),
        (3000, 500, "gpu_memcpy", "Memcpy HtoD"),
        (3400, 500, "cuda_sync", "Stream Wait Event"),
    ]
    assert {row["depth"] for row in rows} == {0}
    copy = next(row for row in rows if row["category"] == "gpu_memcpy")
    assert (copy["bytes"], copy["correlation"], copy["stream"]) == (4_000_000, 6, 7)
    bandwidth = "extract_arg(arg_set_id, 'debug.memory bandwidth (GB/s)') AS gbs"
    assert handmade.query(f"SELECT {bandwidth} FROM slice WHERE category = 'gpu_memcpy'") == [{"gbs": 8.0}]
    grid = "extract_arg(arg_set_id, 'debug.grid[2]') AS z"
    assert handmade.query(f"SELECT {grid} FROM slice WHERE name = 'gemm'") == [{"z": 3}]


def test_a_kernel_has_the_id_of_the_operator_that_launched_it(handmade):
    ids = {row["name"]: row["external"] for row in handmade.query(SLICES)}
    assert ids["gemm"] == ids["tail"] == ids["aten::mm"] == ids["cudaLaunchKernel"]
    assert ids["Memcpy HtoD"] == ids["step"] != ids["aten::mm"]


def test_an_arrow_leads_from_a_call_to_each_of_its_kernels(handmade):
    found = [(row["call"], row["kernel"], row["ns"] // 1000) for row in handmade.query(FLOWS)]
    assert found == [
        ("cudaLaunchKernel", "gemm", 700),
        ("cudaLaunchKernel", "tail", 1200),
        ("cudaMemcpyAsync", "Memcpy HtoD", 2150),
    ]


def test_calls_are_under_the_thread_that_made_them(handmade):
    rows = handmade.query(f"{SLICES} WHERE s.category = 'cuda_runtime'")
    assert {row["track"] for row in rows} == {"device calls"}
    threads = handmade.query("""
        SELECT DISTINCT thread.name AS name FROM slice s JOIN thread_track t ON s.track_id = t.id
        JOIN thread USING (utid) WHERE s.category = 'cuda_runtime'
    """)
    assert threads == [{"name": "MainThread"}]


def test_the_schedule_of_a_device_made_of_threads_is_in_the_file(workers):
    assert problems(workers) == []
    rows = workers.query(WORK)
    assert {row["parent"] for row in rows} == {"workers 0: threads of this process"}
    copies = [row for row in rows if row["category"] == "gpu_memcpy"]
    even = [row for row in rows if row["name"] == "sum_even"]
    odd = [row for row in rows if row["name"] == "sum_odd"]
    assert len(copies) == len(even) == len(odd) == ROUNDS and len(rows) == 3 * ROUNDS
    assert {row["track"] for row in copies} == {"worker 0"}
    assert {row["track"] for row in even} == {"worker 1"}
    assert {row["track"] for row in odd} == {"worker 2"}
    assert {row["bytes"] for row in copies} == {1 << 18}
    for copy, first, second in zip(copies, even, odd):
        assert copy["ts"] + copy["dur"] <= min(first["ts"], second["ts"])
    for first, second, copy in zip(even, odd, copies[1:]):
        assert max(first["ts"] + first["dur"], second["ts"] + second["dur"]) <= copy["ts"]


def test_every_kernel_of_that_device_has_its_launch(workers):
    flows = workers.query(FLOWS)
    assert len(flows) == 3 * ROUNDS
    assert all(row["calls"] == row["kernels"] for row in flows)
    assert len({row["kernels"] for row in flows}) == 3 * ROUNDS
    assert {row["call"] for row in flows if "sum" in row["kernel"]} == {"workerLaunchKernel"}


def test_devices_and_arrows_of_merged_traces_are_told_apart(tmp_path):
    work = Work()
    work.launch("gemm", 300, 1000, 2000, correlation=5)
    for name in ("one.vst", "two.vst"):
        (tmp_path / name).write_bytes(work.trace(device()))
    merged = tmp_path / "both.pftrace"
    assert export_command.main([str(tmp_path / "one.vst"), str(tmp_path / "two.vst"), "-o", str(merged)]) == 0
    with TraceProcessor.open(merged) as tp:
        assert problems(tp) == []
        assert [row["parent"] for row in tp.query(WORK)] == ["GPU 0: A GPU"] * 2
        flows = tp.query("""
            SELECT ot.upid AS caller, it.upid AS device FROM flow
            JOIN slice o ON flow.slice_out = o.id JOIN thread_track t ON o.track_id = t.id
            JOIN thread ot USING (utid)
            JOIN slice i ON flow.slice_in = i.id JOIN process_track it ON i.track_id = it.id
        """)
    assert len(flows) == 2
    assert all(row["caller"] == row["device"] for row in flows)
    assert len({row["device"] for row in flows}) == 2
