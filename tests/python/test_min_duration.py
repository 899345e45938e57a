"""Short calls left out (min_duration): leaves that took less are not in the trace, their time counts for their caller,
and their number is known. Durations depend on the machine: a limit of an hour leaves out every leaf, a limit of a
nanosecond none. With limits between, a call that slept stays, and no call that stays is short.
"""

import gc
import threading
import time
from datetime import timedelta

import pytest

import vestige
from tree import calls, load, short
from tree import threads as roots
from vestige import Trace, profile, record_function

ENGINES = vestige._core.engines
LIMIT_NS = 20_000_000
SLEEPS = 3


def leaf():
    pass


def middle():
    leaf()
    len("")


def fails():
    raise KeyError


def resumed():
    yield 1
    yield 2


def sleeps():
    middle()
    time.sleep(LIMIT_NS / 1e9)
    leaf()


def program():
    for _ in range(500):
        middle()
    for _ in range(SLEEPS):
        sleeps()
    try:
        fails()
    except KeyError:
        pass
    for _ in resumed():
        pass


def recorded(function, **options):
    """Returns the facts and the exported trace of a run of the function."""
    gc.collect()
    gc.disable()
    try:
        with profile(gc=False, **options) as prof:
            function()
    finally:
        gc.enable()
    return prof._session.trace(), load(prof)


def counts(trace):
    found = {}
    for event in calls(trace):
        found[short(event["name"])] = found.get(short(event["name"]), 0) + 1
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_calls_that_stay_and_calls_left_out_are_all_calls(engine):
    plain, full = recorded(program, engine=engine)
    assert (plain.info()["left_out"], plain.info()["min_duration_ns"]) == (0, 0)
    assert "calls_left_out" not in full

    read, kept = recorded(program, engine=engine, min_duration="20ms")
    info = read.info()
    before, after = counts(full), counts(kept)
    assert before["middle"] == 500 + SLEEPS and before["resumed"] == 3
    assert info["min_duration_ns"] == LIMIT_NS
    assert info["left_out"] == sum(before.values()) - sum(after.values()) > 1000
    assert info["left_out"] == sum(thread["left_out"] for thread in read.threads())
    assert kept["calls_left_out"] == info["left_out"] and kept["min_duration_ns"] == LIMIT_NS
    assert after["program"] == 1 and after["sleeps"] == SLEEPS and after["<sleep>"] == SLEEPS
    for spans in roots(kept).values():
        check_leaves(spans, LIMIT_NS)


def check_leaves(spans, least):
    for span in spans:
        check_leaves(span.children, least)
        if not span.children and not span.marks:
            assert span.end - span.start >= least * 0.99, span.name


@pytest.mark.parametrize("engine", ENGINES)
def test_a_limit_that_nothing_reaches_leaves_out_what_has_nothing_in_it(engine):
    def around():
        middle()
        with record_function("kept"):
            middle()
        try:
            fails()
        except KeyError:
            pass

    def outer():
        middle()
        around()

    read, trace = recorded(outer, engine=engine, min_duration=3600, record_args=["leaf"])
    names = [short(event["name"]) for event in calls(trace)]
    # leaf has its arguments recorded, so leaf and its callers stay.
    assert names.count("leaf") == names.count("middle") == 3
    assert names.count("around") == names.count("outer") == 1
    assert "fails" not in names and "<len>" not in names
    assert any(event["name"] == "kept" for event in trace["traceEvents"])
    assert read.info()["left_out"] >= 4

    read, trace = recorded(outer, engine=engine, min_duration="1h")
    names = [short(event["name"]) for event in calls(trace)]
    assert "leaf" not in names and "middle" not in names
    assert names.count("around") == names.count("outer") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_every_thread_counts_its_own_and_ranges_of_time_add_up(engine):
    def work():
        for _ in range(100):
            leaf()

    def together():
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    prof = profile(gc=False, engine=engine, min_duration="1h")
    prof.start()
    together()
    prof.stop()
    first = prof._session.trace().info()["left_out"]
    prof.start()
    together()
    prof.stop()
    trace = prof._session.trace()
    assert trace.info()["left_out"] >= 2 * first - 50 and first >= 300
    each = sorted(thread["left_out"] for thread in trace.threads())
    assert sum(each) == trace.info()["left_out"]
    assert len([count for count in each if count >= 100]) >= 6


@pytest.mark.parametrize("engine", ENGINES)
def test_bounded_recordings_and_scheduled_ones_leave_out_too(engine):
    def busy():
        for _ in range(2000):
            leaf()
        gc.collect(0)

    with profile(engine=engine, min_duration="1h", max_size="1M", last="1h") as prof:
        busy()
    info = prof._session.trace().info()
    assert info["left_out"] >= 2000 and info["records"] < 200 and info["dropped"] == 0

    cycle = vestige.schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(engine=engine, min_duration="1h", schedule=cycle, acc_events=True) as prof:
        for _ in range(4):
            busy()
            prof.step()
    assert prof._session.trace().info()["left_out"] >= 4000


def test_a_snapshot_of_a_recording_says_how_many_are_missing(tmp_path):
    with profile(output=str(tmp_path / "t.vst"), min_duration="1h", triggers=["late>1ns"], gc=False):
        for _ in range(640):
            leaf()
        with record_function("late"):
            leaf()
        deadline = time.monotonic() + 20
        while not (tmp_path / "t-snapshot1.vst").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    info = Trace(str(tmp_path / "t-snapshot1.vst")).info()
    assert info["left_out"] >= 576 and info["min_duration_ns"] == 3600 * 10**9


def test_children_have_the_same_limit(workplace):
    workplace.write(
        "family.py",
        """
        import os, subprocess, sys

        def leaf():
            pass

        def many():
            for _ in range(300):
                leaf()

        many()
        if len(sys.argv) == 1:
            subprocess.run([sys.executable, "family.py", "child"], check=True)
            child = os.fork()
            if child == 0:
                many()
                sys.exit()
            os.waitpid(child, 0)
        """,
    )
    result = workplace.vestige("run", "--min-duration", "1h", "-o", "t.vst", "family.py")
    assert result.returncode == 0, result.stderr
    files = sorted(workplace.path.glob("t*.vst"))
    assert len(files) == 3
    traces = [Trace(str(path)) for path in files]
    assert [trace.info()["min_duration_ns"] for trace in traces] == [3600 * 10**9] * 3
    assert all(trace.info()["left_out"] >= 300 for trace in traces)
    # A forked child has its own file and its own count.
    assert min(trace.info()["left_out"] for trace in traces) < 2000

    total = sum(trace.info()["left_out"] for trace in traces)
    shown = workplace.vestige("info", "t.vst").stdout
    assert f"  short    {total:,} calls shorter than 3600 s left out\n" in shown
    shown = workplace.vestige("report", "t.vst").stdout
    assert shown.endswith(f"{total:,} calls shorter than 3600 s left out\n")
    assert f"\n{total:,} calls shorter than 3600 s left out\n" in result.stderr


def test_a_killed_process_leaves_a_count_that_is_nearly_right(workplace):
    workplace.write(
        "dies.py",
        """
        import os, signal

        def leaf():
            pass

        for _ in range(1000):
            leaf()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    workplace.trace("--min-duration", "1h", "dies.py")
    trace = Trace(str(workplace.path / "t.vst"))
    assert not trace.info()["clean"]
    assert 1000 - 64 < trace.info()["left_out"]
    names = workplace.vestige("report", "t.vst", "--tree", "--min", "0").stdout
    assert "kill" in names and "leaf" not in names


@pytest.mark.parametrize(
    ("value", "ns"), [("10us", 10_000), (0.5, 500_000_000), (timedelta(milliseconds=2), 2_000_000), ("250ns", 250)]
)
def test_times_are_written_as_elsewhere(value, ns):
    with profile(min_duration=value) as prof:
        pass
    assert prof._session.trace().info()["min_duration_ns"] == ns


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ("soon", ValueError, "min_duration: not a time: 'soon'; write a number and us, ms, s, m or h, such as 30s"),
        (0, ValueError, "min_duration must be more than 0, not 0"),
        ("-1us", ValueError, "min_duration must be more than 0, not '-1us'"),
        (True, TypeError, "min_duration must be a str such as '30s', a number of seconds or a timedelta, not bool"),
    ],
)
def test_what_is_no_time_is_refused(value, error, text):
    with pytest.raises(error) as caught:
        profile(min_duration=value)
    assert str(caught.value) == text


def test_the_command_refuses_in_one_line(workplace):
    result = workplace.vestige("run", "--min-duration", "10q", "-c", "pass")
    expected = "vestige: --min-duration: not a time: '10q'; write a number and us, ms, s, m or h, such as 30s\n"
    assert (result.returncode, result.stderr) == (2, expected)
