"""Running time as the measure of reports and exports, and the states of threads in a Chrome trace (sched)."""

import json

import pytest

import vestige

pytestmark = pytest.mark.any_python
needs_switches = pytest.mark.skipif(
    vestige._core.can_see_switches() != 0, reason="the system does not tell when threads run"
)

PROGRAM = """\
import time


def naps():
    time.sleep(0.05)


naps()
"""


@needs_switches
def test_running_time_can_be_the_measure_of_everything(workplace):
    workplace.write("naps.py", PROGRAM)
    workplace.trace("--sched", "naps.py")
    shown = workplace.vestige("report", "t.vst", "--cpu").stdout
    assert shown.startswith("times are those in which threads had a processor")
    rows = json.loads(workplace.vestige("report", "t.vst", "--cpu", "--format", "json").stdout)["functions"]
    (naps,) = [row for row in rows if row["function"].endswith(": naps")]
    assert naps["total_ns"] == naps["running_ns"] < 50_000_000
    assert all(row["total_ns"] == row["running_ns"] and row["self_ns"] <= row["total_ns"] for row in rows)
    tree = json.loads(workplace.vestige("report", "t.vst", "--cpu", "--tree", "--format", "json").stdout)["tree"]
    assert all(row["total_ns"] == row["running_ns"] for row in tree)
    assert workplace.vestige("export", "t.vst", "--to", "folded-ns", "-o", "all.folded").returncode == 0
    assert workplace.vestige("export", "t.vst", "--cpu", "--to", "folded-ns", "-o", "cpu.folded").returncode == 0

    def whole(name):
        return sum(int(line.rpartition(" ")[2]) for line in (workplace.path / name).read_text().splitlines())

    root = [row for row in tree if row["parent"] == -1]
    assert whole("cpu.folded") == sum(row["total_ns"] for row in root) < whole("all.folded") - 40_000_000


def test_what_cannot_be_measured_so_is_refused(workplace):
    workplace.write("naps.py", PROGRAM)
    workplace.trace("naps.py")
    refused = workplace.vestige("report", "t.vst", "--cpu")
    assert refused.returncode == 1
    assert (
        refused.stderr
        == "vestige: --cpu: this trace does not say when threads ran; record with `vestige run --sched`\n"
    )
    assert workplace.vestige("report", "t.vst", "--cpu", "--threads").returncode == 2
    refused = workplace.vestige("export", "t.vst", "--cpu", "-o", "t.json")
    assert refused.returncode == 2 and "t.json shows when spans were" in refused.stderr
    refused = workplace.vestige("export", "t.vst", "--cpu", "-o", "t.svg")
    assert refused.returncode == 1 and "record with `vestige run --sched`" in refused.stderr


@needs_switches
def test_a_chrome_trace_has_a_track_of_states_for_each_thread(workplace):
    workplace.write("naps.py", PROGRAM)
    workplace.trace("--sched", "naps.py")
    assert workplace.vestige("export", "t.vst", "-o", "t.json").returncode == 0
    events = json.loads((workplace.path / "t.json").read_text())["traceEvents"]
    tracks = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
    states = [event for event in events if event.get("cat") == "thread_state"]
    assert {event["tid"] for event in states} == {tracks["states of MainThread"]}
    assert {event["name"] for event in states} <= {"running", "waiting", "preempted"}
    # microseconds: the thread slept for 50 ms
    assert max(event["dur"] for event in states if event["name"] == "waiting") > 40_000
    for one, other in zip(states, states[1:]):
        assert one["ts"] + one["dur"] <= other["ts"] + 0.001 and one["name"] != other["name"]


@needs_switches
def test_states_and_tasks_have_tracks_apart(workplace):
    workplace.write("tasks.py", "import asyncio\nasyncio.run(asyncio.sleep(0.01))\n")
    workplace.trace("--sched", "tasks.py")
    assert workplace.vestige("export", "t.vst", "-o", "t.json").returncode == 0
    events = json.loads((workplace.path / "t.json").read_text())["traceEvents"]
    tracks = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
    shown = {kind: {event["tid"] for event in events if event.get("cat") == kind} for kind in ("task", "thread_state")}
    assert shown["task"] and shown["thread_state"] == {tracks["states of MainThread"]}
    assert not shown["task"] & shown["thread_state"]
