"""Bounded recordings: the newest records stay, contiguous and with their names; what was dropped is counted."""

import gc
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import PYTHON
from tree import calls, load, read, short
from vestige import Trace, profile, record_function
from vestige._core import instant
from vestige.base.quantities import parse_file_bound, parse_size, parse_time

MIB = 1 << 20
COUNT = 100  # functions that are called in turn
TEXT = '"text": "' + 4000 * "x" + '"'


def numbered(count=COUNT):
    """Functions f0, f1, f2 …"""
    space = {}
    exec("\n".join(f"def f{number}(): pass" for number in range(count)), space)
    return [space[f"f{number}"] for number in range(count)]


def run_in_turn(functions, rounds):
    for _ in range(rounds):
        for function in functions:
            function()


def fill():
    """As many bytes as 250 calls take: files are full, and their slots in use again, after calls that are soon read."""
    instant("filler", TEXT)


def run_and_fill(functions, rounds):
    """A round takes 18 KiB."""
    for _ in range(rounds):
        for number, function in enumerate(functions):
            function()
            if number % 25 == 0:
                fill()


def numbers_of(trace, prefix="f"):
    """The numbers of the calls, in the order in which they ended, by thread."""
    found = {}
    for event in calls(trace):
        name = short(event["name"])
        if name[0] == prefix and name[1:].isdigit():
            found.setdefault(event["tid"], []).append(int(name[1:]))
    return found


def assert_contiguous(numbers, count=COUNT):
    assert all((b - a) % count == 1 for a, b in zip(numbers, numbers[1:], strict=False))


def dropped_marks(trace):
    return [event for event in trace["traceEvents"] if event["name"] == "dropped records"]


def export(path):
    out = path.with_suffix(".json")
    Trace(str(path)).export(str(out), all_windows=True)
    return read(out)


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
    assert abs(mark["ts"] - first) < 1  # microsecond: it does not stretch the timeline
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
    with profile(output=path, max_size="64M", keep_last="1h"):
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
    trace = load(prof)  # checks that it nests
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
    # Parts of slots are dropped with their neighbours: a thread may lose some of its middle before its oldest.
    for numbers in numbers_of(trace).values():
        gaps = sum((b - a) % COUNT != 1 for a, b in zip(numbers, numbers[1:], strict=False))
        assert not gaps or dropped_marks(trace)
    assert sum(map(len, numbers_of(trace).values())) > 6_000
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert any(name.startswith("thread ") for name in names)


@pytest.mark.any_python
def test_two_thousand_threads_lose_nothing(workplace):
    """Each is there all along, and records little: none of them needs a slot of its own."""
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
with profile(output=sys.argv[1], keep_last="20ms"):
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
    with profile(output=path, keep_last=keep):
        run_in_turn(numbered(), 20)
    assert Trace(str(path)).info()["dropped"] == 0
    (numbers,) = numbers_of(export(path)).values()
    assert len(numbers) == 20 * COUNT


@pytest.mark.any_python
def test_a_report_of_the_end_alone(tmp_path):
    """Of any trace; what is open then is there."""
    path, functions = tmp_path / "t.vst", numbered()

    def outer():
        run_in_turn(functions, 300)

    with profile(output=path):
        outer()
    trace = Trace(str(path))
    facts = trace.info()
    whole = {name.rpartition(": ")[2]: calls for name, calls, *_ in trace.totals(all_windows=True)}
    half = (facts["end_ns"] - facts["start_ns"]) // 2
    trace.set_range(facts["end_ns"] - half)
    totals = trace.totals(all_windows=True)
    part = {name.rpartition(": ")[2]: calls for name, calls, *_ in totals}
    assert all(self_ns >= 0 and total_ns >= 0 for _, _, self_ns, total_ns in totals)
    assert whole["f7"] == 300 and 0 < part["f7"] < 300
    assert any(name.endswith("outer") for name in part)
    out = tmp_path / "end.json"
    trace.export(str(out), all_windows=True)
    (numbers,) = numbers_of(read(out)).values()
    assert_contiguous(numbers)
    trace.set_range()
    assert trace.info() == facts  # and all of it is there again


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
    """The names of the calls in the order in which they ended, without those that end with the recording."""
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
    recorded(program)  # what is new is so once
    whole, part = recorded(program), recorded(program, max_size="1M")
    assert 2_000 < len(part) < len(whole)
    assert part == whole[len(whole) - len(part) :]


# ---- endless, and killed -----------------------------------------------

ENDLESS = """
import os, sys
from vestige import profile

def leaf():
    pass

def go(n):
    for _ in range(n):
        leaf()

def memory():
    with open("/proc/self/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return [int(fields[name].split()[0]) * 1024 for name in ("Anonymous", "Rss")]

with profile(output=sys.argv[1], max_size="4M") as prof:
    go(300_000)
    before = memory()
    go(2_500_000)
    after = memory()
    size = os.stat(sys.argv[1]).st_size
print(after[0] - before[0], after[1] - before[1], size)
"""


@pytest.mark.any_python
def test_five_million_records_leave_file_and_memory_bounded(tmp_path):
    path = tmp_path / "t.vst"
    result = subprocess.run([PYTHON, "-c", ENDLESS, str(path)], capture_output=True, text=True, check=True)
    anonymous, resident, size = map(int, result.stdout.split())
    assert size <= 4 * MIB and path.stat().st_size <= 4 * MIB
    assert anonymous <= MIB and resident <= 2 * MIB
    facts = Trace(str(path)).info()
    assert facts["dropped"] > 4_400_000 and facts["lost"] == 0


KILLED = """
import os, sys
from vestige import profile
from vestige._core import instant
space = {}
exec("\\n".join(f"def f{n}(): pass" for n in range(100)), space)
functions = [space[f"f{n}"] for n in range(100)]
text = '"text": "' + 4000 * "x" + '"'

def work(pipe):
    count = 0
    while True:
        for number, function in enumerate(functions):
            function()
            if number % 25 == 0:
                instant("filler", text)
        count += 100
        os.write(pipe, b"%d\\n" % count)

with profile(output=sys.argv[1], max_size=sys.argv[2]):
    work(int(sys.argv[3]))
"""


@pytest.mark.any_python
@pytest.mark.parametrize("tries", range(3))
def test_killed_at_any_moment_the_newest_records_are_there(tmp_path, tries):
    path = tmp_path / "t.vst"
    pipe, theirs = os.pipe()
    process = subprocess.Popen([PYTHON, "-c", KILLED, str(path), "1M", str(theirs)], pass_fds=[theirs])
    os.close(theirs)
    told = b""
    while told.count(b"\n") < 300 + 37 * tries:
        told += os.read(pipe, 4096)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while more := os.read(pipe, 65536):
        told += more
    os.close(pipe)
    count = int(told.split()[-1])
    assert path.stat().st_size <= MIB
    facts = Trace(str(path)).info()
    assert not facts["clean"] and facts["damaged_at"] == 0 and facts["dropped"] > 0
    trace = export(path)
    (numbers,) = numbers_of(trace).values()
    assert_contiguous(numbers)
    assert len(numbers) > 3_000
    # All that it told of is there, and no more than can have been under way.
    extra = len(numbers) - 1 - max(at for at, number in enumerate(numbers) if number == COUNT - 1)
    assert 0 <= extra < COUNT and count >= 30_000
    work = [event for event in calls(trace) if short(event["name"]) == "work"]
    assert [event["args"]["open at start"] for event in work] == [1]


@pytest.mark.any_python
def test_a_recovered_copy_says_the_same(tmp_path):
    from vestige._core import recover

    path, copy = tmp_path / "t.vst", tmp_path / "copy.vst"
    pipe, theirs = os.pipe()
    process = subprocess.Popen([PYTHON, "-c", KILLED, str(path), "1M", str(theirs)], pass_fds=[theirs])
    os.close(theirs)
    told = 0
    while told < 240:
        told += os.read(pipe, 4096).count(b"\n")
    process.kill()
    process.wait()
    os.close(pipe)
    recover(str(path), str(copy))
    before, after = Trace(str(path)).info(), Trace(str(copy)).info()
    assert after["clean"]
    same = ("records", "dropped", "lost", "start_ns", "complete_ns", "end_ns", "threads")
    assert {key: before[key] for key in same} == {key: after[key] for key in same}
    assert numbers_of(export(path)) == numbers_of(export(copy))


# ---- the command -------------------------------------------------------

LOOP = """\
    def leaf():
        pass

    def main():
        for _ in range(200_000):
            leaf()

    main()
    """


@pytest.mark.any_python
def test_the_command_bounds_the_file_and_tells(workplace):
    workplace.write("loop.py", LOOP)
    result = workplace.vestige("run", "--max-size", "1M", "-o", "t.vst", "loop.py")
    assert result.returncode == 0
    assert "older records were dropped to stay within the bound; the last" in result.stderr
    assert (workplace.path / "t.vst").stat().st_size <= MIB
    info = workplace.vestige("info", "t.vst").stdout
    assert "dropped to stay within the bound, 0 lost" in info
    report = workplace.vestige("report", "t.vst").stdout
    assert "older records were dropped" in report
    assert workplace.vestige("run", "-q", "--last", "1h", "-o", "u.vst", "loop.py").returncode == 0
    assert Trace(str(workplace.path / "u.vst")).info()["dropped"] == 0
    assert "dropped" not in workplace.vestige("report", "u.vst").stdout


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-size", "12Q"], "--max-size: not a size: '12Q'; write a number and K, M or G, such as 256M"),
        (["--max-size", "100K"], "--max-size must be at least 1M, not '100K'"),
        (["--last", "soon"], "--last: not a time: 'soon'; write a number and us, ms, s, m or h, such as 30s"),
        (["--last", "0"], "--last must be more than 0, not '0'"),
    ],
)
def test_a_bound_that_cannot_be_is_one_clear_line(workplace, options, message):
    workplace.write("loop.py", LOOP)
    result = workplace.vestige("run", *options, "loop.py")
    assert (result.returncode, result.stderr) == (2, f"vestige: {message}\n")
    assert not list(workplace.path.glob("*.vst"))


# ---- units -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1B", 1), ("2k", 2048), ("2KB", 2048), ("2KiB", 2048), ("1.5M", 3 << 19), (" 3 G ", 3 << 30), (7, 7)],
)
def test_sizes(text, size):
    assert parse_size("x", text) == size


@pytest.mark.parametrize(
    ("text", "time"),
    [("30s", 30e9), ("30", 30e9), ("500ms", 5e8), ("2m", 120e9), ("1.5h", 5400e9), (2.5, 25e8), (timedelta(0, 1), 1e9)],
)
def test_times(text, time):
    assert parse_time("x", text) == time


@pytest.mark.parametrize("text", ["", "M", "-1M", "1e3", "0x10", "1M M", 0, -1, 1 << 63])
def test_no_sizes(text):
    with pytest.raises(ValueError, match="^x"):
        parse_size("x", text)


@pytest.mark.parametrize("value", ["", "s", "-1s", "1d", 0, -2, float("nan"), float("inf"), timedelta(0)])
def test_no_times(value):
    with pytest.raises(ValueError, match="^x"):
        parse_time("x", value)


def test_what_is_neither_text_nor_number_is_a_type_error():
    for value in (None, [], True, b"1M"):
        with pytest.raises(TypeError, match="^x must be"):
            parse_size("x", value)
        with pytest.raises(TypeError, match="^x must be"):
            parse_time("x", value)
    with pytest.raises(ValueError, match="^max_size must be at least 1M"):
        profile(max_size=1000)
    assert parse_file_bound("x", "1M") == MIB
    assert sys.modules["vestige.base.quantities"].__doc__
