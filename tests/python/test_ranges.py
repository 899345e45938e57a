"""A range of a trace: --from and --until, and that every command shows only the range."""

import json
import time
from argparse import Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces import patch, record, totals
from vestige import Trace, record_function
from vestige.cli import Failure, export, ranges

pytestmark = pytest.mark.any_python

START, END = 1_700_000_000_000_000_000, 1_700_000_004_000_000_000


def said(from_time=None, until_time=None):
    from_ns, to_ns = ranges.read(Namespace(from_time=from_time, until_time=until_time), START, END)
    return (from_ns - START) / 1e9, (to_ns - START) / 1e9


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ((None, None), (0, 4)),
        (("1.5s", None), (1.5, 4)),
        (("200ms", "0.25"), (0.2, 0.25)),
        (("25%", "50%"), (1, 2)),
        (("-1s", None), (3, 4)),
        (("-50%", "-500ms"), (2, 3.5)),
        (("-1m", None), (0, 4)),  # the last minute of a shorter trace
        ((None, "1h"), (0, 3600)),
        (("0", "0s"), (0, 0)),
    ],
)
def test_a_time_counts_from_the_start_or_the_end(given, means):
    assert said(*given) == means


@pytest.mark.parametrize("text", ["", "s", "1x", "1.2.3s", "%", "ten", "5 %%", "--1s"])
def test_what_is_no_time_is_told(text):
    with pytest.raises(Failure, match="not a time") as caught:
        said(text)
    assert caught.value.code == 2


@pytest.mark.parametrize("given", [("5s", None), ("2s", "1s"), (None, "-5s"), ("60%", "-3s"), ("1e9h", None)])
def test_a_range_without_anything_in_it_is_told(given):
    with pytest.raises(Failure) as caught:
        said(*given)
    assert caught.value.code == 2


@given(st.text(alphabet="0123456789.-+%smh e", max_size=12))
def test_no_text_makes_another_error(text):
    try:
        from_s, _ = said(text)
        assert 0 <= from_s <= 4
    except Failure:
        pass


# ---- what is shown -----------------------------------------------------


def work():
    for number in range(4):
        with record_function(f"step {number}"):
            for _ in range(50):
                nothing(number)
        time.sleep(0.002)


def nothing(number):
    return [number] * 1000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return record(tmp_path_factory.mktemp("ranges") / "t.vst", work)


@pytest.fixture(scope="module")
def step(path):
    """Returns the start and end of the third step."""
    ((start_ns, end_ns),) = Trace(str(path)).spans("step 2")
    return start_ns, end_ns


def calls(trace):
    return {name.rpartition(": ")[2]: count for name, count, *_ in totals(trace, all_windows=True)}


def steps_of(path):
    return [e["name"] for e in json.loads(path.read_text())["traceEvents"] if e["name"].startswith("step")]


def test_a_trace_shows_its_range_in_every_reading(path, step, tmp_path):
    trace = Trace(str(path))
    whole = trace.info()
    trace.set_range(*step)
    facts = trace.info()
    assert step[0] - 1 <= facts["start_ns"] <= step[0] + 1 and facts["end_ns"] == step[1]
    totals = calls(trace)
    assert totals["step 2"] == 1 and totals["nothing"] == 50 and "step 1" not in totals and "step 3" not in totals
    assert totals["work"] == 1  # open during the whole range
    assert trace.spans("step 1") == [] and len(trace.spans("step 2")) == 1
    for suffix in (".json", ".speedscope.json", ".folded", ".pftrace", ".pb"):
        trace.export(str(tmp_path / f"t{suffix}"), all_windows=True)
    assert steps_of(tmp_path / "t.json") == ["step 2"]
    folded = (tmp_path / "t.folded").read_text()
    assert "step 2" in folded and "step 1" not in folded
    assert b"step 2" in (tmp_path / "t.pftrace").read_bytes()
    trace.set_range(to_ns=step[0] - 1)
    assert set(calls(trace)) >= {"step 0", "step 1"} and "step 2" not in calls(trace)
    trace.set_range()
    assert trace.info() == whole and calls(trace)["nothing"] == 200


def test_an_export_of_a_range(path, step, tmp_path):
    facts = Trace(str(path)).info()
    out = tmp_path / "part.json"
    begin = f"{(step[0] - facts['start_ns']) / 1e6}ms"
    end = f"{step[1] - facts['start_ns']}ns"
    assert export.main([str(path), "-o", str(out), "--from", begin, "--until", end]) == 0
    assert steps_of(out) == ["step 2"]
    # Counts from the end; the option's value is a separate word.
    last = f"-{facts['end_ns'] - step[1] - 1}ns"
    assert export.main([str(path), "-o", str(out), "--force", "--from", last]) == 0
    assert steps_of(out) == ["step 3"]
    with pytest.raises(Failure, match="nothing of the"):
        export.main([str(path), "-o", str(out), "--force", "--from", "9h"])


def test_traces_together_have_one_range(path, tmp_path):
    """The second trace begins one second after the first."""
    first, second = tmp_path / "a.vst", tmp_path / "b.vst"
    for copy in (first, second):
        copy.write_bytes(path.read_bytes())
    patch(second, shift_ns=10**9, pid=7)
    out = tmp_path / "both.json"
    assert export.main([str(first), str(second), "-o", str(out), "--until", "900ms"]) == 0
    pids = {e["pid"] for e in json.loads(out.read_text())["traceEvents"] if e["name"].startswith("step")}
    assert pids == {Trace(str(first)).info()["pid"]}
    assert export.main([str(first), str(second), "-o", str(out), "--force", "--from", "900ms"]) == 0
    pids = {e["pid"] for e in json.loads(out.read_text())["traceEvents"] if e["name"].startswith("step")}
    assert pids == {7}
