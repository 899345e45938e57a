"""`vestige report --devices` and the finding about idle devices, on traces made by hand: every number follows from the
times in the traces.
"""

import csv
import io
import json

import pytest

import handmade as h
import vestige
from handmade_devices import ANNOTATION, COPY, KERNEL, OPERATOR, Work, device, pair
from in_process import vestige as run
from vestige.cli.report import end

pytestmark = pytest.mark.any_python
ROUNDS = 50


def write(path, work, *entries):
    path.write_bytes(work.trace(device(), *entries))
    return path


@pytest.fixture
def path(tmp_path):
    """Busy from 1,000 to 3,500 and from 6,000 to 7,000; then idle until 8,500, although the copy was launched at 850."""
    work = Work()
    work.span(ANNOTATION, "step", 100, 9000)
    work.span(OPERATOR, "aten::mm", 200, 800)
    work.launch("gemm", 300, 1000, 3000, correlation=1)
    work.launch("relu", 310, 2000, 3500, correlation=2, stream=20)
    work.launch("Memcpy HtoD", 850, 8500, 9000, correlation=3, kind=COPY, size=4_000_000, stream=20)
    work.span(OPERATOR, "aten::add", 5400, 5600)
    work.launch("gemm", 5500, 6000, 7000, correlation=4)
    return write(tmp_path / "device.vst", work)


def told(path, *options):
    return json.loads(run("report", path, "--devices", "--format", "json", *options).out)


def test_a_device_is_busy_while_any_stream_works(path):
    (row,) = told(path)["devices"]
    assert row["device"] == "cuda 0: A GPU"
    assert (row["works"], row["launched"]) == (4, 4)
    assert row["span_ns"] == 8_000_000
    assert row["busy_ns"] == 4_000_000
    assert row["idle_ns"] == 4_000_000
    assert (row["gaps"], row["longest_gap_ns"]) == (2, 2_500_000)
    assert row["until_launch_ns"] == 2_000_000  # from 3,500 to the launch at 5,500; the copy was launched earlier


def test_streams_have_their_own_gaps_delays_and_queues(path):
    seven, twenty = told(path)["streams"]
    assert (seven["stream"], seven["busy_ns"], seven["idle_ns"], seven["gaps"]) == (7, 3_000_000, 3_000_000, 1)
    assert (twenty["stream"], twenty["busy_ns"], twenty["idle_ns"], twenty["gaps"]) == (20, 2_000_000, 5_000_000, 1)
    assert seven["launch_delay_ns"] == (690_000 + 490_000) / 2
    assert (seven["queue_max"], seven["queue_mean"]) == (1, 1)
    assert (twenty["queue_max"], twenty["queue_mean"]) == (2, 1.5)


def test_kernels_are_added_up_by_name_and_copies_have_their_bytes(path):
    rows = {row["name"]: row for row in told(path)["activities"]}
    assert (rows["gemm"]["kind"], rows["gemm"]["count"], rows["gemm"]["time_ns"]) == ("kernel", 2, 3_000_000)
    assert rows["gemm"]["longest_ns"] == 2_000_000
    assert (rows["Memcpy HtoD"]["kind"], rows["Memcpy HtoD"]["bytes"]) == ("copy", 4_000_000)
    assert (rows["cudaLaunchKernel"]["kind"], rows["cudaLaunchKernel"]["count"]) == ("runtime", 3)


def test_a_gap_says_what_ended_it_and_in_which_operator_that_was_launched(path):
    longest, other = told(path)["gaps"]
    assert (longest["idle_ns"], longest["until_launch_ns"]) == (2_500_000, 2_000_000)
    assert (longest["next"], longest["op"], longest["annotation"]) == ("gemm", "aten::add", "step")
    assert longest["thread"] == "MainThread"
    assert (other["idle_ns"], other["until_launch_ns"], other["op"]) == (1_500_000, 0, None)


def test_people_read_the_same_numbers(path):
    text = run("report", path, "--devices").out
    assert "cuda 0: A GPU\n" in text
    assert "busy 50.0%: 4.00 ms of 8.00 ms between its first and last work" in text
    assert "idle 4.00 ms in 2 gaps; 2.00 ms of that before the next launch was called" in text
    assert "copied 3.81 MiB in 500 us, 7.45 GiB/s" in text
    assert "gemm in aten::add in step" in text


def test_csv_has_a_line_for_each_name(path):
    rows = list(csv.DictReader(io.StringIO(run("report", path, "--devices", "--format", "csv").out)))
    assert {row["name"] for row in rows} == {"gemm", "relu", "Memcpy HtoD", "cudaLaunchKernel", "cudaMemcpyAsync"}


def test_a_range_cuts_what_a_device_did(path):
    (row,) = told(path, "--from", "2.5ms", "--until", "6.5ms")["devices"]
    assert (row["span_ns"], row["busy_ns"], row["idle_ns"]) == (4_000_000, 1_500_000, 2_500_000)


def test_the_error_of_its_clock_is_told(tmp_path):
    work = Work()
    work.launch("gemm", 300, 1000, 3000, correlation=1)
    path = tmp_path / "clock.vst"
    path.write_bytes(work.trace(device(ticks_per_second=5e8), pair(10, 1000, 40), pair(90, 1160, 70)))
    assert "cuda 0: A GPU; its times are right to 70 ns" in run("report", path, "--devices").out
    assert told(path)["devices"][0]["clock_error_ns"] == 70


def test_a_trace_without_devices_is_refused_in_a_line(tmp_path):
    path = tmp_path / "plain.vst"
    path.write_bytes(h.trace(h.definitions(h.thread(), h.define(1)), h.records(h.enter(1), h.leave(1))))
    result = run("report", path, "--devices")
    assert result.code == 1
    assert result.err.strip().endswith("--devices: no device was recorded here; vestige info tells what a trace has")


@pytest.mark.parametrize("option", ["--cpu", "--compensated"])
def test_times_of_threads_do_not_go_with_devices(path, option):
    result = run("report", path, "--devices", option)
    assert result.code == 2 and f"{option}: not with --devices" in result.err


def test_a_device_that_did_nothing_says_so(tmp_path):
    work = Work()
    work.span(OPERATOR, "aten::mm", 200, 800)
    assert "it did nothing" in run("report", write(tmp_path / "t.vst", work), "--devices").out


# ---- findings ------------------------------------------------------------------


def rounds(launched, started, busy=4_000):
    """Adds a kernel every 10 ms; launch and start lie this many microseconds after the round's beginning."""
    work = Work()
    for number in range(ROUNDS):
        at = 10_000 * number
        work.span(OPERATOR, "load", at + 100, at + launched - 100)
        work.launch("gemm", at + launched, at + started, at + started + busy, correlation=number + 1)
    return work


def findings(path):
    return json.loads(run("report", path, "--findings", "--format", "json").out)["findings"]


def idle(path):
    return [finding for finding in findings(path) if finding["kind"] == "idle device"]


def test_a_device_that_waits_for_launches_is_a_finding_with_the_place(tmp_path):
    path = write(tmp_path / "t.vst", rounds(5_000, 5_500))
    (finding,) = idle(path)
    assert finding["text"].startswith(
        "cuda 0: A GPU had nothing to do for 60% of the 494 ms between its first and last work (294 ms in 49 gaps); for "
        "270 ms of that the program had launched nothing, in the longest gap (6.00 ms) MainThread was in load"
    )
    assert finding["numbers"]["until_launch_ns"] == 49 * 5_500_000
    assert finding["next"] == f"vestige report {path} --devices"


def test_works_that_begin_late_are_not_blamed_on_the_program(tmp_path):
    (finding,) = idle(write(tmp_path / "t.vst", rounds(200, 5_500)))
    assert "most of it after the next launch was called, works began 5.29 ms later on average." in finding["text"]


def test_a_device_without_launches_is_idle_without_a_reason(tmp_path):
    work = Work()
    for number in range(ROUNDS):
        work.activity(KERNEL, "gemm", 10_000 * number, 10_000 * number + 4_000, correlation=0)
    (finding,) = idle(write(tmp_path / "t.vst", work))
    assert "; its launches are not in the trace." in finding["text"]


@pytest.mark.parametrize(
    "work",
    [
        rounds(1_000, 1_100, busy=5_500),  # the device is busy for more than half of the time
        rounds(5_000, 5_500, busy=5_500),
    ],
    ids=["often late", "late"],
)
def test_a_busy_device_is_no_finding(tmp_path, work):
    assert idle(write(tmp_path / "t.vst", work)) == []


def test_a_few_works_are_no_finding(tmp_path):
    work = Work()
    for number in range(19):
        work.launch("gemm", 40_000 * number, 40_000 * number + 100, 40_000 * number + 200, correlation=number + 1)
    assert idle(write(tmp_path / "t.vst", work)) == []


def test_the_closing_report_has_a_line_about_devices_and_the_finding(tmp_path):
    out = io.StringIO()
    end.show(str(write(tmp_path / "t.vst", rounds(5_000, 5_500))), {}, out)
    assert "devices: cuda 0: A GPU busy 40% of 494 ms\n" in out.getvalue()
    assert "• cuda 0: A GPU had nothing to do for 60%" in out.getvalue()


def test_the_closing_report_of_a_program_without_devices_says_nothing_of_them(tmp_path):
    path, out = tmp_path / "plain.vst", io.StringIO()
    path.write_bytes(h.trace(h.definitions(h.thread(), h.define(1)), h.records(h.enter(1), h.leave(1))))
    end.show(str(path), {}, out)
    assert "device" not in out.getvalue()


def test_diff_and_flame_graphs_are_about_threads(path, tmp_path):
    assert run("diff", path, path).code == 0
    vestige.Trace(str(path)).export(str(tmp_path / "t.folded"))
    assert "gemm" not in (tmp_path / "t.folded").read_text()
