"""Programs that nobody would write on purpose: recording survives them."""

import cProfile
import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import vestige
from tree import Span, assert_nests, calls, load, names, read, record, short
from vestige import profile

MONITORING = sys.version_info >= (3, 12)


def leaf():
    pass


# ---- names -------------------------------------------------------------


@pytest.mark.parametrize("name", ["x" * 100_000, "é" * 3000, "☃", "x" * 511, "x" * 512, "x" * 513, "x" * 1000])
def test_a_long_or_strange_function_name_is_kept(name):
    space = {}
    exec("def made(): pass", space)
    code = space["made"].__code__.replace(co_name=name, co_qualname=name)
    made = type(leaf)(code, {})
    counts = names(record(lambda: made()))
    (found,) = [text for text in counts if text != "<lambda>"]
    assert found == name or (len(found) > 500 and name.startswith(found.rstrip("…")))


def test_a_long_file_name_is_kept():
    code = compile("def f(): pass\nf()", "/" + "d" * 50_000 + "/file.py", "exec")
    assert names(record(lambda: exec(code, {})))["f"] == 1


def test_twenty_thousand_different_functions_have_their_names():
    source = "\n".join(f"def f{n}(): pass" for n in range(20_000))
    space = {}
    exec(compile(source, "many.py", "exec"), space)
    functions = [space[f"f{n}"] for n in range(20_000)]

    def outer():
        for function in functions:
            function()

    counts = names(record(outer))
    assert {name: n for name, n in counts.items() if name != "outer"} == {f"f{n}": 1 for n in range(20_000)}


# ---- time --------------------------------------------------------------


def test_times_are_those_of_the_clock():
    def sleeps():
        time.sleep(0.05)

    before = time.time_ns()
    started = time.perf_counter_ns()
    trace = record(sleeps)
    took = time.perf_counter_ns() - started
    after = time.time_ns()
    (span,) = [Span(event) for event in calls(trace) if short(event["name"]) == "sleeps"]
    assert 50_000_000 <= span.end - span.start <= took
    start = int(trace["baseTimeNanoseconds"]) + span.start
    assert before - 2_000_000 <= start <= after + 2_000_000


@pytest.mark.any_python
def test_a_pause_longer_than_a_record_can_count_is_kept():
    def sleeps():
        time.sleep(2.5)  # more than 2^32 ticks of any clock above 1.7 GHz
        leaf()

    started = time.perf_counter_ns()
    trace = record(sleeps, c_functions=False)
    took = time.perf_counter_ns() - started
    (outer,) = [Span(event) for event in calls(trace) if short(event["name"]) == "sleeps"]
    (inner,) = [Span(event) for event in calls(trace) if short(event["name"]) == "leaf"]
    assert 2_500_000_000 <= inner.start - outer.start <= took


# ---- hooks that are taken away -----------------------------------------


def test_a_program_that_takes_the_hook_away_gets_nowhere():
    def outer():
        leaf()
        sys.setprofile(None)
        threading.setprofile(None)
        leaf()

    assert names(record(outer))["leaf"] == 2


def test_a_hook_of_the_program_that_is_there_at_the_stop_stays():
    def mine(frame, event, argument):
        pass

    prof = profile()
    prof.start()
    sys.setprofile(mine)
    prof.stop()
    try:
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)
    load(prof)
    assert names(record(leaf)) == {"leaf": 1}


def test_a_cprofile_from_before_that_ends_inside_leaves_ours():
    profiler = cProfile.Profile()
    profiler.enable()
    prof = profile()
    prof.start()
    leaf()
    profiler.disable()
    leaf()
    prof.stop()
    assert names(load(prof))["leaf"] == 2
    assert sys.getprofile() is None


def test_a_cprofile_that_begins_inside_and_ends_after():
    profiler = cProfile.Profile()
    prof = profile()
    prof.start()
    leaf()
    profiler.enable()
    prof.stop()
    leaf()
    profiler.disable()
    assert names(load(prof))["leaf"] == 1
    assert "leaf" in {entry.code.co_name for entry in profiler.getstats() if hasattr(entry.code, "co_name")}


@pytest.mark.safe_engine
def test_a_cprofile_as_a_context_manager_and_a_subclass_of_it():
    class Mine(cProfile.Profile):
        pass

    def outer():
        for kind in (cProfile.Profile, Mine):
            with kind():
                leaf()
            leaf()

    assert names(record(outer))["leaf"] == (4 if MONITORING else 2)


@pytest.mark.skipif(not MONITORING, reason="there are tool ids from 3.12 on")
def test_a_program_that_frees_our_tool_id_ends_the_recording_not_itself():
    prof = profile()
    prof.start()
    leaf()
    sys.monitoring.free_tool_id(4)
    leaf()
    prof.stop()
    assert names(load(prof))["leaf"] >= 1
    assert sys.monitoring.get_tool(4) is None
    sys.monitoring.use_tool_id(4, "look")
    left = sys.monitoring.get_events(4)
    sys.monitoring.free_tool_id(4)
    assert left == 0
    assert names(record(leaf)) == {"leaf": 1}


@pytest.mark.skipif(not MONITORING, reason="there are tool ids from 3.12 on")
def test_a_tool_that_took_our_id_meanwhile_keeps_it():
    seen = []
    prof = profile()
    prof.start()
    sys.monitoring.free_tool_id(4)
    sys.monitoring.use_tool_id(4, "vestige")
    try:
        sys.monitoring.register_callback(4, sys.monitoring.events.PY_START, lambda code, at: seen.append(code.co_name))
        sys.monitoring.set_events(4, sys.monitoring.events.PY_START)
        prof.stop()
        del seen[:]
        leaf()
        assert seen == ["leaf"]
        assert sys.monitoring.get_tool(4) == "vestige"
        for event in range(1, 17):  # none of our callbacks is left under our id
            old = sys.monitoring.register_callback(4, 1 << event, None)
            assert old is None, old
    finally:
        sys.monitoring.set_events(4, 0)
        sys.monitoring.register_callback(4, sys.monitoring.events.PY_START, None)
        sys.monitoring.free_tool_id(4)


@pytest.mark.skipif(not MONITORING, reason="there are tool ids from 3.12 on")
def test_restarting_everybody_s_events_changes_nothing():
    def outer():
        leaf()
        sys.monitoring.restart_events()
        leaf()

    assert names(record(outer))["leaf"] == 2


# ---- starting and stopping in strange places ---------------------------


def test_a_profile_dropped_while_recording_takes_its_hooks_with_it():
    prof = profile()
    prof.start()
    leaf()
    del prof
    gc.collect()
    assert names(record(leaf)) == {"leaf": 1}


def test_stop_inside_an_except_block_keeps_the_exception():
    prof = profile()
    prof.start()
    try:
        raise KeyError("kept")
    except KeyError as error:
        prof.stop()
        assert sys.exc_info()[1] is error
    load(prof)


def test_stop_inside_a_finalizer_and_inside_a_callback_from_c():
    prof = profile()

    class Last:
        def __del__(self):
            prof.stop()

    prof.start()
    last = Last()
    del last
    load(prof)

    prof = profile()

    def key(item):
        if item == 2:
            prof.stop()
        return item

    prof.start()
    sorted([1, 2, 3], key=key)
    trace = load(prof)
    assert names(trace)["key"] == 2
    (span,) = [event for event in calls(trace) if event["name"] == "<built-in function sorted>"]
    assert span["args"]["open at end"]


def test_start_inside_a_callback_from_c():
    prof = profile()

    def key(item):
        if item == 2:
            prof.start()
        return item

    sorted([1, 2, 3], key=key)
    leaf()
    prof.stop()
    trace = load(prof)
    assert names(trace) == {"key": 1, "leaf": 1}
    assert not [event for event in calls(trace) if event["args"].get("cut")]


def test_start_and_stop_inside_a_garbage_collection():
    prof = profile()

    def callback(phase, info):
        if phase == "start":
            prof.start()

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)
    prof.stop()
    load(prof)


def test_start_and_stop_inside_trace_and_profile_functions():
    prof = profile()
    done = []

    def tracer(frame, event, argument):
        if frame.f_code is leaf.__code__ and not done:
            done.append(1)
            prof.start()
            prof.stop()

    sys.settrace(tracer)
    leaf()
    sys.settrace(None)
    assert done
    load(prof)


def test_a_repr_that_calls_and_stops_and_raises():
    prof = profile(record_args=["target"])

    class Nasty:
        def __repr__(self):
            leaf()
            prof.stop()
            raise SystemExit

    def target(x):
        leaf()

    prof.start()
    target(Nasty())
    load(prof)
    assert names(record(leaf)) == {"leaf": 1}


# ---- signals -----------------------------------------------------------


def test_signal_handlers_at_random_moments_nest():
    seen = 0

    def handler(number, frame):
        nonlocal seen
        seen += 1
        leaf()

    def work(n):
        return sorted(range(n), key=lambda item: -item)

    def outer():
        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        while seen < 30:
            work(20)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    trace = record(outer)
    assert names(trace)["handler"] == seen
    assert names(trace)["leaf"] == seen
    assert not [event for event in calls(trace) if event["args"].get("cut")]


def test_exceptions_out_of_signal_handlers_never_mis_nest():
    """A signal may come before busy() or right at its start, so the program keeps its own count."""
    begun = early = 0

    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop

    def busy():
        nonlocal begun
        begun += 1
        while True:
            leaf()
            len([])

    def outer():
        nonlocal early
        before = signal.signal(signal.SIGALRM, handler)
        for _ in range(20):
            known = begun
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005)
                busy()
            except Stop:
                early += begun == known
        signal.signal(signal.SIGALRM, before)

    trace = record(outer)
    assert begun + early == 20
    assert begun <= names(trace).get("busy", 0) <= begun + early
    assert not [event for event in calls(trace) if event["args"].get("cut")]


# ---- forks -------------------------------------------------------------


def in_child(work):
    """Runs work in a forked child, which must end normally."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def busy_child():
    """Writes everything that a trace can have: new functions, threads, names, annotations, metadata."""
    for number in range(200):
        space = {}
        exec(f"def only_in_child_{number}(): pass", space)
        space[f"only_in_child_{number}"]()
    with vestige.record_function("in child"):
        vestige.instant("in child", x=1)
        vestige.counter("in child", 1)
    thread = threading.Thread(target=leaf, name="child's")
    thread.start()
    thread.join()
    gc.collect()


def test_what_a_child_does_is_nowhere_in_its_parent_s_trace(tmp_path):
    path = tmp_path / "t.vst"

    def first():
        pass

    def second():
        pass

    def outer():
        first()
        in_child(busy_child)
        second()

    with profile(output=str(path)) as prof:
        outer()
    counts = names(load(prof))
    assert counts["first"] == counts["second"] == 1
    assert not [name for name in counts if name.startswith("only_in_child_") or "unknown" in name]
    vestige.Trace(str(path)).export(str(tmp_path / "t.json"))
    assert b"in child" not in (tmp_path / "t.json").read_bytes()


def test_a_child_that_stops_or_finishes_or_drops_the_profile_leaves_the_file_alone(tmp_path):
    path = tmp_path / "t.vst"
    prof = profile(output=str(path))

    def child():
        busy_child()
        prof.stop()
        prof.finish()

    def after():
        pass

    prof.start()
    in_child(child)
    after()
    prof.stop()
    prof.finish()
    assert names(load(prof))["after"] == 1
    assert vestige.Trace(str(path)).info()["clean"]


def test_a_child_forked_by_c_runs_on_and_leaves_the_file_alone():
    libc = ctypes.PyDLL(None)

    def second():
        pass

    def outer():
        child = libc.fork()
        if child == 0:
            code = 1
            try:
                for number in range(50):
                    exec(f"def only_in_child_{number}(): pass\nonly_in_child_{number}()", {})
                code = 0
            finally:
                libc._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        second()

    counts = names(record(outer))
    assert counts["second"] == 1
    assert not [name for name in counts if name.startswith("only_in_child_") or "unknown" in name]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_other_threads_record():
    stop = False

    def spin():
        while not stop:
            leaf()
            time.sleep(0.0005)

    def outer():
        nonlocal stop
        crowd = [threading.Thread(target=spin) for _ in range(2)]
        for thread in crowd:
            thread.start()
        for _ in range(5):
            in_child(busy_child)
        stop = True
        for thread in crowd:
            thread.join()

    assert "spin" in names(record(outer))


def test_a_child_that_ends_normally_inside_a_block_says_nothing(tmp_path):
    program = """
import os, sys
from vestige import profile
path = sys.argv[1]
with profile(output=path) as prof:
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
if child:
    prof.export_chrome_trace(path + ".json")
    print("parent")
"""
    path = tmp_path / "t.vst"
    result = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, timeout=30)
    assert (result.returncode, result.stdout, result.stderr) == (0, "parent\n", "")
    trace = read(f"{path}.json")
    assert_nests(trace)
    assert names(trace)["<fork>"] == 1


# ---- stops from inside ---------------------------------------------------


@pytest.mark.parametrize("engine", vestige._core.engines)
def test_a_finalizer_that_stops_us_may_run_at_any_allocation(engine):
    class Last:
        def __del__(self):
            prof.stop()

    def calls_some():
        gc.enable()
        return len("abc") + len([isinstance(1, int), ord("a")])

    thresholds = gc.get_threshold()
    gc.collect()
    gc.disable()
    prof = profile(engine=engine)
    prof.start()
    last = Last()
    last.me = last
    del last
    gc.set_threshold(1)
    try:
        assert calls_some() == 5
        gc.collect()
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()
    assert_nests(load(prof))


@pytest.mark.parametrize("engine", vestige._core.engines)
def test_the_class_of_a_module_may_stop_us_when_it_is_asked_its_name(engine):
    class Meta(type):
        @property
        def __name__(cls):
            prof.stop()
            return "Stops"

    class Module(metaclass=Meta):
        def __call__(self):
            return leaf()

    prof = profile(engine=engine)
    try:
        with prof:  # the start also sets torch's state, if torch was imported
            vestige._core.set_framework_code(Module.__call__.__code__, None, None)
            Module()()
        trace = load(prof)
        assert_nests(trace)
        assert "leaf" not in names(trace)
    finally:
        vestige._core.set_framework_code(None, None, None)
