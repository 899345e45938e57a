"""Finding out why some calls are slow: `report --slow`, the finding `tail`, and the viewer opened at one call."""

import json
from types import SimpleNamespace

import pytest

from conftest import Workplace
from handmade import define, definitions, enter, leave, records, thread, trace
from in_process import vestige
from vestige._core import Trace
from vestige.cli.report import tails
from vestige.cli.report.data import FOR_FINDINGS, Data
from vestige.cli.report.findings import Evidence

pytestmark = pytest.mark.any_python
MS = 1_000_000

PROGRAM = """\
import asyncio, gc, time
import vestige
from vestige import record_function


def lookup(number):
    if number % 20 == 0:
        time.sleep(0.02)
    elif number == 1:
        import wave
    elif number == 70:
        gc.collect()


async def answer(number):
    with record_function("GET /orders"):
        await asyncio.sleep(0.05 if number == 7 else 0)


async def main():
    for number in range(20):
        await asyncio.create_task(answer(number))


with vestige.profile(output="t.vst"):
    for number in range(100):
        lookup(number)
    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("slow"))
    place.write("work.py", PROGRAM)
    done = place.python("work.py")
    assert done.returncode == 0, done.stderr
    return place.path / "t.vst"


def compared(path, name):
    said = vestige("report", path, "--slow", name, "--format", "json")
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_what_only_slow_calls_wait_for_is_named(recorded):
    found = compared(recorded, "lookup")
    assert (found["kind"], found["count"], found["slow_count"]) == ("call", 100, 10)
    assert found["max_ns"] >= 20 * MS > found["p50_ns"]
    sleep = next(row for row in found["only_slow"] if "sleep" in row["name"])
    assert sleep["slow_in"] >= 5 and sleep["rest_in"] == 0 and sleep["slow_ns"] >= 10 * MS
    assert found["inside"][0]["name"] == "sleep"


def test_the_slowest_call_is_shown_with_the_command_that_opens_it(recorded):
    slowest = compared(recorded, "lookup")["slowest"]
    assert slowest["thread"] == "MainThread" and slowest["duration_ns"] >= 20 * MS
    command = slowest["command"].split()
    assert command[:3] == ["vestige", "view", str(recorded)]
    begin, end = (float(command[command.index(word) + 1].rstrip("s")) for word in ("--from", "--until"))
    assert end - begin == pytest.approx(slowest["duration_ns"] / 1e9, abs=2e-6)
    text = vestige("report", recorded, "--slow", "lookup").out
    assert slowest["command"] in text and "of 16 others, have waiting in sleep" in text


def test_requests_and_tasks_are_compared_as_a_whole(recorded):
    for name, kind in (("GET *", "request"), ("answer", "task")):
        found = compared(recorded, name)
        assert (found["kind"], found["count"]) == (kind, 20)
        assert found["max_ns"] >= 50 * MS > found["p50_ns"]


def test_a_name_must_be_one_of_a_function_that_was_called(recorded):
    assert vestige("report", recorded, "--slow", "lokup").err.endswith("nothing is called that, did you mean lookup?\n")
    said = vestige("report", recorded, "--slow", "*o*")
    assert said.code == 2 and "there are several" in said.err
    assert "was called once" in vestige("report", recorded, "--slow", "main").err
    for other in (["--tree"], ["--format", "csv"], ["--from", "1s"], ["--sort", "self"]):
        said = vestige("report", recorded, "--slow", "lookup", *other)
        assert said.code == 2 and "--slow goes with" in said.err


# ---- the finding -------------------------------------------------------------------


def found_in(path, *times, kinds=((2, "f"),)):
    """Returns the finding of a trace with one call of f for each duration in ns."""
    words = [word for ns in times for word in (enter(2, 5), leave(2, ns))]
    named = define(1, "main"), *(define(number, name) for number, name in kinds), thread()
    path.write_bytes(trace(definitions(*named), records(enter(1, 10), *words, leave(1, 30))))
    data, opened = Data(), Trace(str(path))
    data.add(opened, {}, FOR_FINDINGS, only_own=True)
    return tails.tail(Evidence(data, [opened.info()]))


def test_a_tail_is_found_where_a_few_calls_take_most_of_the_time(tmp_path):
    found = found_in(tmp_path / "t.vst", *[MS] * 195, *[30 * MS] * 5)
    assert found.kind == "tail"
    assert found.where["function"].endswith(": f")
    assert found.numbers["calls"] == 200 and found.numbers["slow_calls"] == 5
    assert found.numbers["p50_ns"] == pytest.approx(MS, rel=0.05)
    assert found.numbers["p99_ns"] == pytest.approx(30 * MS, rel=0.05)
    assert found.numbers["slow_ns"] == pytest.approx(150 * MS, rel=0.05)
    assert found.look.startswith("report --slow ")


@pytest.mark.parametrize(
    "times",
    [
        [MS] * 50 + [60 * MS] * 5,  # too few calls
        [MS] * 195 + [8 * MS] * 5,  # not ten times the median
        [MS] * 399 + [30 * MS],  # less than a hundredth
        [10_000] * 195 + [MS] * 5,  # too short to matter
        [MS] * 200,
    ],
)
def test_calls_that_differ_little_or_seldom_are_no_tail(tmp_path, times):
    assert found_in(tmp_path / "t.vst", *times) is None


def test_slow_calls_that_take_little_of_their_threads_time_are_no_tail(tmp_path):
    times = [MS] * 195 + [11 * MS] * 5
    assert found_in(tmp_path / "t.vst", *times) is not None
    data, opened = Data(), Trace(str(tmp_path / "t.vst"))
    data.add(opened, {}, FOR_FINDINGS, only_own=True)
    for one in data.durations.values():
        one.rows = [SimpleNamespace(**{**as_dict(row), "threads_ns": 10_000 * MS}) for row in one.rows]
    assert tails.tail(Evidence(data, [opened.info()])) is None


def as_dict(row):
    return {name: getattr(row, name) for name in type(row).__match_args__}


def test_the_viewer_begins_with_the_range_that_is_asked_for(recorded):
    from vestige.reading.inputs import find_traces
    from vestige.viewer.api import describe
    from vestige.viewer.traces import Traces

    traces = Traces(find_traces([str(recorded)]).sources, keep=False)
    assert describe(traces)["first_shown_ns"] is None
    traces.first_shown_ns = 5, 9
    assert describe(traces)["first_shown_ns"] == (5, 9)
    said = vestige("view", recorded, "--from", "1ms", "--html", "page.html")
    assert said.code == 2 and "do not go with --html" in said.err
