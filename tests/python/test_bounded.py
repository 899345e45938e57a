"""Bounded recordings: the newest records stay, without gaps and with their names; dropped records are counted."""

import gc
import subprocess
import threading
import time
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bounded import (
    COUNT,
    MIB,
    assert_contiguous,
    dropped_marks,
    export,
    fill,
    numbered,
    numbers_of,
    run_and_fill,
    run_in_turn,
)
from conftest import PYTHON
from traces import totals
from tree import calls, load, read, short
from vestige import Trace, profile, record_function

# ---- by size -----------------------------------------------------------


@pytest.mark.any_python
def test_a_file_keeps_the_newest_within_its_bound(tmp_path):
    path, functions = tmp_path / "t.vst", numbered()

    def outer():
        run_in_turn(functions, 3000)

    with profile(output=path, max_size="1M"):
        outer()
    assert path.stat().st_size <= MIB
    facts = Trace(str(path)).info()
    assert facts["clean"] and facts["lost"] == 0
    assert facts["dropped"] + facts["records"] >= 600_000
    trace = export(path)
    (numbers,) = numbers_of(trace).values()
    assert len(numbers) > 50_000 and numbers[-1] == COUNT - 1
    assert_contiguous(numbers)
    (mark,) = dropped_marks(trace)
    assert mark["args"]["records"] == facts["dropped"]
    first = min(event["ts"] for event in calls(trace))
    assert abs(mark["ts"] - first) < 1  # microsecond: the mark does not stretch the timeline
    (span,) = [event for event in calls(trace) if short(event["name"]) == "outer"]
    assert span["args"]["open at start"] == 1 and span["ts"] - first < 1


@pytest.mark.any_python
@pytest.mark.parametrize("bound", [1 << 20, "1MiB", "1024k"])
def test_without_a_file_the_bound_holds_for_the_temporary_one(bound):
    functions = numbered()
    with profile(max_size=bound) as prof:
        run_and_fill(functions, 200)
    facts = prof._session.trace().info()
    assert facts["bytes"] <= MIB and facts["dropped"] > 0
    (numbers,) = numbers_of(load(prof)).values()
    assert_contiguous(numbers)
    assert numbers[-1] == COUNT - 1


def test_what_fits_is_all_there(tmp_path):
    path, functions = tmp_path / "t.vst", numbered()
    with profile(output=path, max_size="64M", last="1h"):
        run_in_turn(functions, 300)
    trace = export(path)
    (numbers,) = numbers_of(trace).values()
    assert len(numbers) == 300 * COUNT
    assert Trace(str(path)).info()["dropped"] == 0 and not dropped_marks(trace)


def test_deep_recursion_stays_nested(tmp_path):
    path, functions = tmp_path / "t.vst", numbered()

    def deeper(depth):
        if depth:
            deeper(depth - 1)
        else:
            run_and_fill(functions, 200)

    with profile(output=path, max_size="1M") as prof:
        deeper(700)
    trace = load(prof)  # also checks that the spans nest
    (numbers,) = numbers_of(trace).values()
    assert_contiguous(numbers)
    assert sum(short(event["name"]) == "deeper" for event in calls(trace)) == 701


def test_annotations_that_began_before_are_there(tmp_path):
    functions = numbered()
    with profile(max_size="1M") as prof, record_function("around"):
        with record_function("over before"):
            run_in_turn(functions, 10)
        run_and_fill(functions, 200)
    trace = load(prof)
    named = {event["name"]: event for event in trace["traceEvents"] if event.get("cat") == "user_annotation"}
    assert "over before" not in named
    assert named["around"]["args"]["open at start"] == 1
    (numbers,) = numbers_of(trace).values()
    assert_contiguous(numbers)


def test_generators_and_coroutines_are_resumed_in_what_is_kept():
    def generate(functions):
        while True:
            run_and_fill(functions, 1)
            yield

    functions = numbered()
    with profile(max_size="1M") as prof:
        generator = generate(functions)
        for _ in range(200):
            next(generator)
        generator.close()
    (numbers,) = numbers_of(load(prof)).values()
    assert_contiguous(numbers)
    assert numbers[-1] == COUNT - 1


def test_greenlets_that_wait_are_known_when_they_go_on():
    greenlet = pytest.importorskip("greenlet")
    functions = numbered()

    def waiting():
        waits()
        leave()

    def waits():
        main.switch()

    def leave():
        pass

    def outer():
        nonlocal main
        main = greenlet.getcurrent()
        other = greenlet.greenlet(waiting)
        other.switch()
        run_and_fill(functions, 200)
        other.switch()

    main = None
    with profile(max_size="1M") as prof:
        outer()
    trace = load(prof)
    spans = {short(event["name"]): event for event in calls(trace)}
    (numbers,) = numbers_of(trace).values()
    assert_contiguous(numbers)
    assert spans["waits"]["args"]["open at start"] == 1
    assert spans["waiting"]["args"]["open at start"] == 1
    assert spans["leave"]["args"]["Python parent id"] == spans["waiting"]["args"]["Python id"]


def test_each_thread_keeps_its_newest(tmp_path):
    path = tmp_path / "t.vst"
    threads = [threading.Thread(target=run_and_fill, args=[numbered(), 150], name=f"thread {n}") for n in range(4)]
    with profile(output=path, max_size="2M"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert path.stat().st_size <= 2 * MIB
    trace = export(path)
    for numbers in numbers_of(trace).values():
        assert_contiguous(numbers)
    assert sum(map(len, numbers_of(trace).values())) > 6_000
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert any(name.startswith("thread ") for name in names)


@pytest.mark.any_python
def test_two_thousand_threads_lose_nothing(workplace):
    """Each thread lives through the whole recording and records little; no thread needs its own slot."""
    workplace.write(
        "p.py",
        """
        import threading

        def leaf(number):
            return number + 1

        def work():
            ready.release()
            go.wait()
            for number in range(50):
                leaf(number)

        threading.stack_size(256 * 1024)
        ready, go = threading.Semaphore(0), threading.Event()
        threads = [threading.Thread(target=work) for _ in range(2000)]
        for thread in threads:
            thread.start()
        for _ in threads:
            ready.acquire()
        go.set()
        for thread in threads:
            thread.join()
        """,
    )
    result = workplace.vestige("run", "-q", "--max-size", "64M", "--no-c", "-o", "t.vst", "p.py")
    assert (result.returncode, result.stderr) == (0, "")
    trace = Trace(str(workplace.path / "t.vst"))
    facts = trace.info()
    assert (facts["lost"], facts["dropped"], facts["threads"]) == (0, 0, 2001)
    assert facts["clean"]
    assert facts["bytes"] <= 64 * MIB


def test_new_functions_all_along_keep_their_names(tmp_path):
    path = tmp_path / "t.vst"
    with profile(output=path, max_size="1M"):
        for number in range(3000):
            space = {}
            exec(f"def made_{number}(): pass", space)
            made = space[f"made_{number}"]
            for _ in range(30):
                made()
    trace = export(path)
    made = [short(event["name"]) for event in calls(trace) if "made_" in event["name"]]
    assert made[-1] == "made_2999"
    assert all(event["name"] for event in calls(trace))


# ---- by time -----------------------------------------------------------


BY_TIME = """
import os, sys, time
from vestige import profile
space = {}
exec("\\n".join(f"def f{n}(): pass" for n in range(100)), space)
functions = [space[f"f{n}"] for n in range(100)]
count = 0
with profile(output=sys.argv[1], last="20ms"):
    until = time.monotonic() + 0.4
    # However slow it is here: until most of it is dropped, or plainly never will be.
    while time.monotonic() < until or (os.stat(sys.argv[1]).st_size >= count * 8 and count < 10_000_000):
        for function in functions:
            function()
        count += 100
    size = os.stat(sys.argv[1]).st_size
print(count, size)
"""


@pytest.mark.any_python
def test_only_the_last_moments_are_shown(tmp_path):
    path = tmp_path / "t.vst"
    result = subprocess.run([PYTHON, "-c", BY_TIME, str(path)], capture_output=True, text=True, check=True)
    told, size = map(int, result.stdout.split())
    facts = Trace(str(path)).info()
    assert facts["end_ns"] - facts["start_ns"] >= 20e6
    trace = export(path)
    (numbers,) = numbers_of(trace).values()
    assert_contiguous(numbers)
    ends = [round((event["ts"] + event["dur"]) * 1000) for event in calls(trace) if short(event["name"])[0] == "f"]
    assert max(ends) - min(ends) <= 20e6
    assert len(numbers) < told / 2
    assert dropped_marks(trace)
    assert size <= told * 16 / 2 + MIB


@pytest.mark.any_python
@pytest.mark.parametrize("keep", ["1m", 60, 60.0, timedelta(minutes=1)])
def test_how_long_is_kept_can_be_said_in_several_ways(tmp_path, keep):
    path = tmp_path / "t.vst"
    with profile(output=path, last=keep):
        run_in_turn(numbered(), 20)
    assert Trace(str(path)).info()["dropped"] == 0
    (numbers,) = numbers_of(export(path)).values()
    assert len(numbers) == 20 * COUNT


@pytest.mark.any_python
def test_a_report_of_the_end_alone(tmp_path):
    """Works with any trace; calls that are open at the beginning are in the report."""
    path, functions = tmp_path / "t.vst", numbered()
    half = 0

    def outer():
        nonlocal half
        run_in_turn(functions, 150)
        half = time.time_ns()
        run_in_turn(functions, 150)

    with profile(output=path):
        outer()
    trace = Trace(str(path))
    facts = trace.info()
    whole = {name.rpartition(": ")[2]: calls for name, calls, *_ in totals(trace, all_windows=True)}
    trace.set_range(half)
    found = totals(trace, all_windows=True)
    part = {each.name.rpartition(": ")[2]: each.calls for each in found}
    assert all(each.self_ns >= 0 and each.total_ns >= 0 for each in found)
    assert whole["f7"] == 300 and 0 < part["f7"] < 300
    assert any(name.endswith("outer") for name in part)
    out = tmp_path / "end.json"
    trace.export(str(out), all_windows=True)
    (numbers,) = numbers_of(read(out)).values()
    assert_contiguous(numbers)
    trace.set_range()
    assert trace.info() == facts  # the trace still has all records


# ---- against the whole -------------------------------------------------


def a(steps):
    walk(steps)


def b(steps):
    walk(steps)


def c(steps):
    try:
        walk(steps)
        raise ValueError
    except ValueError:
        pass


def walk(steps):
    for function, inner in steps:
        function(inner)


steps = st.recursive(
    st.just([]), lambda inner: st.lists(st.tuples(st.sampled_from([a, b, c]), inner), max_size=4), max_leaves=12
)


def size_of(program):
    return 1 + sum(1 + size_of(inner) for _, inner in program)


def recorded(program, **bounds):
    """Returns the names of the calls in the order in which they ended, without the calls that were open at the end."""
    size = size_of(program)
    gc.disable()
    try:
        with profile(**bounds) as prof:
            for number in range(10_000 // size):
                walk(program)
                for _ in range(max(1, size // 25) if number % max(1, 25 // size) == 0 else 0):
                    fill()
    finally:
        gc.enable()
    return [short(event["name"]) for event in calls(load(prof)) if "open at end" not in event["args"]]


@pytest.mark.any_python
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from([a, b, c]), steps), min_size=1, max_size=6))
def test_a_bounded_recording_is_the_tail_of_the_whole_one(program):
    recorded(program)  # warm-up: later runs record equal calls
    whole, part = recorded(program), recorded(program, max_size="1M")
    assert 2_000 < len(part) < len(whole)
    assert part == whole[len(whole) - len(part) :]
