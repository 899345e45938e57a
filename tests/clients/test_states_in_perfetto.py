"""When threads ran, read by Perfetto's trace_processor: its table thread_state, and a track of slices in Chrome's
format. Both agree with the trace.
"""

import json
import subprocess
import sys

import pytest

import vestige

from .perfetto import ClientMissing, TraceProcessor, find_engine, find_node, problems

PROGRAM = """\
import threading
import time


def naps():
    for _ in range(5):
        time.sleep(0.02)


thread = threading.Thread(target=naps, name="napper")
thread.start()
thread.join()
sum(range(2_000_000))
"""


def run(*words, cwd):
    result = subprocess.run([sys.executable, "-m", "vestige", *words], cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    try:
        find_node(), find_engine()
    except ClientMissing as missing:
        pytest.skip(str(missing))
    if vestige._core.can_see_switches() != 0:
        pytest.skip("the system does not tell when threads run")
    folder = tmp_path_factory.mktemp("states")
    (folder / "naps.py").write_text(PROGRAM)
    run("run", "-q", "--sched", "-o", "t.vst", "naps.py", cwd=folder)
    for name in ("t.pftrace", "t.json"):
        run("export", "t.vst", "-o", name, cwd=folder)
    return folder


def times(tp, sql):
    """Returns ms by thread and state."""
    return {(row["thread"], row["state"]): row["ns"] / 1e6 for row in tp.query(sql)}


def test_the_states_of_threads_are_those_of_the_trace(folder):
    with TraceProcessor.open(folder / "t.pftrace") as tp:
        assert problems(tp) == []
        found = times(
            tp,
            "SELECT thread.name AS thread, state, sum(dur) AS ns FROM thread_state JOIN thread USING (utid) "
            "WHERE dur > 0 GROUP BY 1, 2",
        )
    assert found["napper", "S"] > 90  # ms: the thread slept for 100
    rows = json.loads(run("report", "t.vst", "--threads", "--format", "json", cwd=folder))["threads"]
    for row in rows:
        ran = found[row["thread"], "Running"]
        # A report adds up calls, which begin after their thread begins and end before it ends.
        assert row["running_ns"] / 1e6 <= ran + 0.1
        assert ran < row["running_ns"] / 1e6 + 50


def test_chrome_has_the_same_as_slices(folder):
    with TraceProcessor.open(folder / "t.json") as tp:
        assert problems(tp) == []
        slices = times(
            tp,
            "SELECT thread.name AS thread, slice.name AS state, sum(dur) AS ns FROM slice JOIN thread_track ON "
            "slice.track_id = thread_track.id JOIN thread USING (utid) WHERE slice.category = 'thread_state' "
            "GROUP BY 1, 2",
        )
    with TraceProcessor.open(folder / "t.pftrace") as tp:
        states = times(
            tp,
            "SELECT thread.name AS thread, state, sum(dur) AS ns FROM thread_state JOIN thread USING (utid) "
            "WHERE dur > 0 GROUP BY 1, 2",
        )
    for thread in ("MainThread", "napper"):
        assert slices[f"states of {thread}", "running"] == pytest.approx(states[thread, "Running"], abs=0.01)
    assert slices["states of napper", "waiting"] > 90
