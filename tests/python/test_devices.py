"""Activities of devices in a trace made by hand: `vestige info` shows them, exports and other commands read them."""

import gzip
import json

import pytest

import handmade as h
import vestige
from handmade_devices import ANNOTATION, METADATA, OPERATOR, Work, device, pair
from in_process import vestige as run

pytestmark = pytest.mark.any_python


@pytest.fixture
def path(tmp_path):
    work = Work()
    work.span(ANNOTATION, "step", 100, 900)
    work.span(OPERATOR, "aten::mm", 200, 800)
    work.launch("gemm", 300, 1000, 2000, correlation=5)
    work.launch("gemm", 850, 2000, 2500, correlation=6)
    path = tmp_path / "device.vst"
    path.write_bytes(
        work.trace(device("A \x1b[31mGPU", ticks_per_second=5e8), pair(10, 1000, 40), pair(90, 1160, 70)),
    )
    return path


def test_info_tells_of_devices_and_how_well_their_clocks_are_known(path):
    (line,) = [line for line in run("info", path).out.splitlines() if line.startswith("  devices")]
    assert "\x1b" not in line
    assert line.split(maxsplit=1)[1].startswith("cuda 0: A ")
    assert line.endswith("GPU, its times are right to 70 ns")
    (told,) = json.loads(run("info", "--json", path).out)["devices"]
    assert (told["platform"], told["pairs"], told["error_ns"]) == ("cuda", 2, 70)


def test_info_says_that_the_collector_for_cuda_is_unproven_and_what_it_told(tmp_path):
    told = h.entry(METADATA, a="vestige.collector.cuda", b='"3 activities were \\u001b[31mlost"')
    work = Work()
    path = tmp_path / "device.vst"
    path.write_bytes(work.trace(device("A GPU"), told))
    lines = [line.strip() for line in run("info", path).out.splitlines()]
    (line,) = [line for line in lines if line.startswith("cuda ")]
    assert "has not yet run on a GPU" in line and line.endswith("[31mlost") and "\x1b" not in line
    assert "cuda" in json.loads(run("info", "--json").out)


def test_a_trace_without_devices_says_nothing_of_them(tmp_path):
    path = tmp_path / "plain.vst"
    path.write_bytes(h.trace(h.definitions(h.thread(), h.define(1)), h.records(h.enter(1), h.leave(1))))
    assert "devices" not in vestige.Trace(str(path)).info()


def test_kernels_have_the_id_of_the_operator_that_launched_them(path, tmp_path):
    vestige.Trace(str(path)).export(str(tmp_path / "device.json"))
    events = json.loads((tmp_path / "device.json").read_text())["traceEvents"]
    ids = {
        event["name"]: event["args"]["External id"]
        for event in events
        if event.get("cat") in ("cpu_op", "user_annotation")
    }
    kernels = [event["args"]["External id"] for event in events if event.get("cat") == "kernel"]
    assert kernels == [ids["aten::mm"], ids["step"]]


SUMS = ["folded", "svg", "speedscope.json", "pstats", "pb.gz", "callgrind"]


@pytest.mark.parametrize("suffix", SUMS)
def test_formats_that_do_not_show_devices_read_such_files(path, tmp_path, suffix):
    vestige.Trace(str(path)).export(str(tmp_path / f"device.{suffix}"))
    written = (tmp_path / f"device.{suffix}").read_bytes()
    assert b"gemm" not in (gzip.decompress(written) if suffix == "pb.gz" else written)
    assert len(written) > 0


# ---- other commands ------------------------------------------------------------


def kernels(document):
    return [event for event in document["traceEvents"] if event.get("cat") == "kernel"]


def test_one_timeline_has_the_devices_of_every_trace(path, tmp_path):
    other = tmp_path / "other.vst"
    other.write_bytes(path.read_bytes())
    assert run("export", path, other, "-o", tmp_path / "both.json").code == 0
    document = json.loads((tmp_path / "both.json").read_text())
    assert len({event["pid"] for event in kernels(document)}) == 2
    assert len(kernels(document)) == 4
    ids = [event["id"] for event in document["traceEvents"] if event.get("cat") == "ac2g" and event["ph"] == "f"]
    assert len(set(ids)) == 4


def test_packing_and_recovering_keep_what_devices_did(path, tmp_path):
    def told(file):
        return json.loads(run("report", file, "--devices", "--format", "json").out)["activities"]

    before = told(path)
    packed, whole = tmp_path / "packed.vst", tmp_path / "whole.vst"
    assert run("pack", path, "-o", packed).code == 0
    assert told(packed) == before
    assert run("recover", packed, "-o", whole).code == 0
    assert told(whole) == before


def test_an_export_of_a_range_has_the_kernels_in_it(path, tmp_path):
    assert run("export", path, "--until", "500us", "-o", tmp_path / "early.json").code == 0
    assert kernels(json.loads((tmp_path / "early.json").read_text())) == []
    assert run("export", path, "--from", "2.2ms", "-o", tmp_path / "late.json").code == 0
    (kernel,) = kernels(json.loads((tmp_path / "late.json").read_text()))
    assert kernel["dur"] == 500
