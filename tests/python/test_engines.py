"""Engines and other users of the interpreter's hooks: tool ids, other hooks, second profiles, sub-interpreters."""

import bdb
import cProfile
import dis
import io
import os
import pstats
import subprocess
import sys
import threading

import pytest

import vestige
from tree import calls, load, names, record, short
from vestige import ProfilerActivity, profile

MONITORING = sys.version_info >= (3, 12)
needs_monitoring = pytest.mark.skipif(not MONITORING, reason="there are tool ids from 3.12 on")
needs_profile = pytest.mark.skipif(MONITORING, reason="hooks are set thread by thread until 3.11")


def leaf():
    pass


def work():
    for _ in range(3):
        leaf()
    sorted([2, 1], key=abs)


def tools():
    return {number: sys.monitoring.get_tool(number) for number in range(6)}


# ---- choosing an engine ------------------------------------------------


def test_auto_and_safe_pick_an_engine_of_this_python():
    assert vestige._core.engines[0] == ("monitoring" if MONITORING else "profile")
    for engine in ("auto", "safe", vestige._core.engines[0]):
        assert names(record(leaf, engine=engine)) == {"leaf": 1}


def test_an_engine_of_another_python_is_refused_by_name():
    other = "profile" if MONITORING else "monitoring"
    with pytest.raises(ValueError, match=other):
        profile(engine=other)


@pytest.mark.parametrize("engine", vestige._core.engines)
def test_a_profile_that_is_dropped_while_another_one_records_is_nothing_that_the_program_called(engine):
    kept = []
    with profile() as prof:
        leaf()
    kept.append(prof)
    del prof

    def outer():
        kept[:] = ()

    assert names(record(outer, engine=engine)) == {"outer": 1}


# ---- tool ids ----------------------------------------------------------


@needs_monitoring
def test_our_tool_has_id_4_while_profiling_and_none_after():
    before = tools()
    with profile():
        during = tools()
    assert during == {**before, 4: "vestige"}
    assert tools() == before


@needs_monitoring
def test_id_3_is_taken_when_4_is_not_free():
    sys.monitoring.use_tool_id(4, "somebody")
    try:
        with profile() as prof:
            assert sys.monitoring.get_tool(3) == "vestige"
            leaf()
    finally:
        sys.monitoring.free_tool_id(4)
    assert sys.monitoring.get_tool(3) is None
    assert names(load(prof))["leaf"] == 1


@needs_monitoring
@pytest.mark.parametrize("engine", vestige._core.engines)
def test_places_that_an_earlier_holder_of_our_id_disabled_are_recorded(engine):
    """A tool with another id is called once more at the places that it disabled."""
    monitoring, seen = sys.monitoring, []
    events = [monitoring.events.PY_START, monitoring.events.PY_RETURN, monitoring.events.CALL]

    def disable(tool):
        def answer(code, *rest):
            if code is leaf.__code__:
                seen.append(tool)
            return monitoring.DISABLE

        monitoring.use_tool_id(tool, "somebody")
        for event in events:
            monitoring.register_callback(tool, event, answer)
        monitoring.set_events(tool, sum(events))

    def free(tool):
        monitoring.set_events(tool, 0)
        for event in events:
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)

    disable(4)
    disable(1)
    monitoring.restart_events()  # with another engine, this test disabled the tool at these places
    try:
        leaf()
        once = seen.count(1)
        free(4)
        found = names(record(leaf, engine=engine))
        leaf()
    finally:
        free(1)
    assert found["leaf"] == 1
    assert seen.count(1) == 2 * once


@needs_monitoring
def test_with_4_and_3_taken_there_is_a_clear_error_and_other_ids_stay_free():
    sys.monitoring.use_tool_id(4, "somebody")
    sys.monitoring.use_tool_id(3, "somebody else")
    try:
        before = tools()
        with pytest.raises(RuntimeError, match="tool id"):
            profile().start()
        assert tools() == before
    finally:
        sys.monitoring.free_tool_id(4)
        sys.monitoring.free_tool_id(3)
    assert names(record(leaf)) == {"leaf": 1}


@needs_monitoring
def test_torch_mode_takes_id_2_on_3_12_before_3_12_5_only():
    vestige.install()
    try:
        with profile(with_stack=True):
            during = tools()
    finally:
        vestige.uninstall()
    if sys.version_info < (3, 12, 5):
        assert during[2] == "PyTorch Profiler"
        assert during[4] is None
    else:
        assert during[2] is None
        assert during[4] == "vestige"
    with profile():
        assert tools()[2] is None
        assert tools()[4] == "vestige"


def test_install_and_uninstall_may_be_repeated():
    vestige.install()
    vestige.install()
    vestige.uninstall()
    vestige.uninstall()
    assert names(record(leaf)) == {"leaf": 1}


# ---- other tools inside a traced program -------------------------------


def cprofile_counts(function):
    """Returns {function name: number of calls} of our functions, counted by cProfile."""
    profiler = cProfile.Profile()
    profiler.enable()
    function()
    profiler.disable()
    stats = pstats.Stats(profiler, stream=io.StringIO()).stats
    return {name: values[1] for (_, _, name), values in stats.items() if "disable" not in name}


@pytest.mark.safe_engine
def test_cprofile_started_and_stopped_inside_gives_what_it_gives_alone():
    alone = cprofile_counts(work)
    inside = []

    def outer():
        leaf()
        inside.append(cprofile_counts(work))
        leaf()

    counts = names(record(outer))
    assert inside == [alone]
    # Until 3.11, a thread has only one hook; cProfile has the hook while it runs.
    assert counts["leaf"] == (5 if MONITORING else 2)


def test_ours_resumes_after_cprofile_at_the_right_place():
    def outer():
        leaf()
        cprofile_counts(work)
        inner()

    def inner():
        leaf()

    trace = record(outer)
    (span,) = [event for event in calls(trace) if short(event["name"]) == "inner"]
    (parent,) = [event for event in calls(trace) if short(event["name"]) == "outer"]
    assert span["args"]["Python parent id"] == parent["args"]["Python id"]
    assert not parent["args"].get("cut")


@pytest.mark.safe_engine
@needs_profile
def test_the_gap_that_another_hook_leaves_is_marked():
    def outer():
        cprofile_counts(work)

    trace = record(outer)
    gaps = [event for event in trace["traceEvents"] if event["name"] == "hooks away"]
    assert len(gaps) == 1
    assert gaps[0]["args"]["duration"] > 0


@pytest.mark.safe_engine
def test_a_user_s_setprofile_hook_inside_works_and_ours_resumes():
    seen = []

    def mine(frame, event, argument):
        if frame.f_code.co_name in ("leaf", "work"):
            seen.append((frame.f_code.co_name, event))

    def outer():
        leaf()
        sys.setprofile(mine)
        work()
        sys.setprofile(None)
        leaf()

    outer()
    alone, seen[:] = list(seen), []
    counts = names(record(outer))
    assert seen == alone
    assert counts["leaf"] == (5 if MONITORING else 2)


@pytest.mark.parametrize("engine", vestige._core.engines)
def test_a_profile_function_of_the_program_does_not_see_sys_setprofile_return(engine):
    seen = []

    def mine(frame, event, argument):
        seen.append((event, frame.f_code.co_name, getattr(argument, "__name__", None)))

    def outer():
        sys.setprofile(mine)
        work()
        abs(-1)
        sys.setprofile(mine)
        sys.setprofile(None)

    outer()
    outer()
    alone, seen[:] = list(seen), []
    with profile(engine=engine):
        outer()
        outer()
    assert seen == alone
    assert seen[0] == ("call", "work", None)


@pytest.mark.safe_engine
def test_a_user_s_hook_from_before_gets_back_what_it_had():
    seen = []

    def mine(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    sys.setprofile(mine)
    try:
        leaf()
        with profile() as prof:
            assert sys.getprofile() is mine
            leaf()
        assert sys.getprofile() is mine
        leaf()
    finally:
        sys.setprofile(None)
    assert names(load(prof))["leaf"] == 1
    assert seen == ["call", "return"] * (3 if MONITORING else 2)


def test_a_running_cprofile_gets_back_what_it_had():
    def before():
        pass

    def after():
        pass

    profiler = cProfile.Profile()
    profiler.enable()
    before()
    with profile() as prof:
        leaf()
    after()
    profiler.disable()
    found = {name for _, _, name in pstats.Stats(profiler, stream=io.StringIO()).stats}
    assert {"before", "after"} <= found
    assert names(load(prof))["leaf"] == 1


def test_settrace_inside_sees_what_it_sees_alone():
    lines = []

    def tracer(frame, event, argument):
        if frame.f_code in (work.__code__, leaf.__code__):
            lines.append((event, frame.f_lineno))
        return tracer

    def outer():
        sys.settrace(tracer)
        work()
        sys.settrace(None)

    outer()
    alone, lines[:] = list(lines), []
    counts = names(record(outer))
    assert lines == alone
    assert counts["leaf"] == 3


def test_settrace_from_before_goes_on():
    lines = []

    def tracer(frame, event, argument):
        if frame.f_code is leaf.__code__:
            lines.append(event)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with profile() as prof:
            leaf()
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert "call" in lines and "return" in lines
    assert names(load(prof))["leaf"] == 1


def test_a_debugger_inside_stops_at_the_same_lines():
    class Recorder(bdb.Bdb):
        def __init__(self):
            super().__init__()
            self.stops = []

        def user_line(self, frame):
            if frame.f_code in (work.__code__, leaf.__code__):
                self.stops.append(frame.f_lineno)
            self.set_step()

    def debug():
        debugger = Recorder()
        debugger.runcall(work)
        return debugger.stops

    alone = debug()
    inside = []
    counts = names(record(lambda: inside.append(debug())))
    assert inside == [alone]
    assert len(alone) > 3
    assert counts["leaf"] == 3


@pytest.mark.safe_engine
def test_a_hook_on_another_thread_is_that_thread_s_own():
    seen = []

    def mine(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    def body():
        sys.setprofile(mine)
        leaf()
        sys.setprofile(None)
        leaf()

    def outer():
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        leaf()

    counts = names(record(outer))
    assert seen == ["call", "return"]
    assert counts["leaf"] == (3 if MONITORING else 2)


def test_threading_setprofile_works_inside():
    seen = []

    def mine(frame, event, argument):
        if frame.f_code is leaf.__code__:
            seen.append(event)

    def outer():
        threading.setprofile(mine)
        thread = threading.Thread(target=leaf)
        thread.start()
        thread.join()
        threading.setprofile(None)

    record(outer)
    assert seen == ["call", "return"]


COVERED = """
import sys

def leaf(flag):
    if flag:
        return 1
    return 2

def work():
    for flag in (True, True):
        leaf(flag)

def measured():
    import coverage
    measure = coverage.Coverage(data_file=None, include=[__file__])
    measure.start()
    work()
    measure.stop()
    data = measure.get_data()
    return sorted(data.lines(__file__))

measured()
print(measured())
from vestige import profile
with profile() as prof:
    print(measured())
print(measured())
from tree import load, names
print(names(load(prof)).get("leaf", 0))
"""


def test_coverage_started_and_stopped_inside_gives_what_it_gives_alone(tmp_path):
    pytest.importorskip("coverage")
    script = tmp_path / "covered.py"
    script.write_text(COVERED)
    result = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.path.dirname(__file__)},
    )
    assert result.stderr == ""
    alone, inside, after, leaves = result.stdout.splitlines()
    assert alone == inside == after != "[]"
    assert leaves == "2"


# ---- two at once, sub-interpreters, devices ----------------------------


def test_a_second_profile_inside_a_first_is_refused_and_the_first_goes_on():
    def outer():
        leaf()
        with pytest.raises(RuntimeError, match="already"):
            with profile():
                raise AssertionError("not reached")
        leaf()

    assert names(record(outer))["leaf"] == 2


def test_a_second_profile_in_another_thread_is_refused_too():
    errors = []

    def second():
        try:
            profile().start()
        except RuntimeError as error:
            errors.append(str(error))

    def outer():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        leaf()

    assert names(record(outer))["leaf"] == 1
    assert len(errors) == 1


@pytest.mark.parametrize("body", ["import vestige", "import vestige._core"])
def test_a_sub_interpreter_gets_a_clear_error(body):
    program = f"""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import sys
import vestige
other = interpreters.create()
result = None
code = '''
try:
    {body}
    vestige.profile().start()
except (ImportError, RuntimeError) as error:
    print(type(error).__name__, error, flush=True)
else:
    print("no error", flush=True)
'''
result = interpreters.run_string(other, code)
if result is not None:
    print(result)
interpreters.destroy(other)
with vestige.profile() as prof:
    len([])
prof.export_chrome_trace(sys.argv[1])
print("fine")
"""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([sys.executable, "-c", program, f"{folder}/t.json"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    said, fine = result.stdout.splitlines()
    assert "interpreter" in said
    assert fine == "fine"


def test_a_sub_interpreter_that_runs_while_we_record_hurts_nobody():
    program = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import sys
import vestige
def leaf():
    pass
with vestige.profile() as prof:
    leaf()
    other = interpreters.create()
    interpreters.run_string(other, "def f(): return len([])\\nfor _ in range(100): f()\\n")
    interpreters.destroy(other)
    leaf()
prof.export_chrome_trace(sys.argv[1])
print("fine")
"""
    import tempfile

    from tree import assert_nests, read

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.json"
        result = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (0, "fine\n"), result.stderr
        trace = read(path)
    assert_nests(trace)
    assert names(trace)["leaf"] == 2


def test_cuda_is_accepted_with_one_warning():
    program = """
import warnings
from vestige import profile, ProfilerActivity
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
            pass
print(len(caught), caught[0].category.__name__, caught[0].filename)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, category, file = result.stdout.split()
    assert (count, category, file) == ("1", "UserWarning", "<string>")
    assert ProfilerActivity.CUDA.name == "CUDA"


def test_after_stop_nothing_of_ours_is_left_in_the_interpreter():
    import gc

    def state():
        hooks = tools() if MONITORING else None
        return hooks, sys.getprofile(), sys.gettrace(), len(gc.callbacks), sys.flags

    before = state()
    for _ in range(3):
        record(work)
    assert state() == before


@needs_profile
def test_hooks_of_threads_are_set_without_the_programs_audit_hooks():
    program = """
import sys, threading, time
from vestige import profile

seen = []
def audit(event, args):
    if event == "sys.setprofile":
        seen.append(event)
        time.sleep(0.001)  # lets another thread in

def leaf():
    pass

sys.addaudithook(audit)
with profile():
    for _ in range(20):
        threads = [threading.Thread(target=leaf) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
print(len(seen))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr) == ("0\n", "")


# ---- code that is left out -----------------------------------------------

EXCLUDED = """
def silent(n):
    try:
        raise KeyError
    except KeyError:
        pass
    return [abs(x) for x in range(n)]

def numbers():
    yield abs(1)
    yield abs(2)
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="events are disabled from 3.14 on")
@pytest.mark.parametrize("engine", vestige._core.engines)
def test_code_that_is_left_out_has_no_events_while_recording_and_all_of_them_after(engine):
    code, seen = {}, []
    exec(compile(EXCLUDED, "excluded.py", "exec"), code)
    functions = [code["silent"], code["numbers"]]

    def run():
        code["silent"](2)
        list(code["numbers"]())

    def events():
        found = [instruction.opname for f in functions for instruction in dis.get_instructions(f, adaptive=True)]
        return [name for name in found if name.startswith("INSTRUMENTED")]

    run()
    before = events()  # another tool may have left events enabled
    with vestige.profile(engine=engine, exclude=["excluded.py"]) as prof:
        run()
        assert events() == before
        run()
    assert "silent" not in names(load(prof))
    # Another tool that then gets our id sees all events, and so do we in the next recording.
    tool, monitoring = 4, sys.monitoring
    monitoring.use_tool_id(tool, "another")
    monitoring.register_callback(tool, monitoring.events.PY_START, lambda code, offset: seen.append(code.co_name))
    monitoring.set_events(tool, monitoring.events.PY_START)
    run()
    monitoring.set_events(tool, 0)
    monitoring.free_tool_id(tool)
    assert [name for name in seen if name in ("silent", "numbers")] == ["silent", "numbers"]
    found = names(record(run, engine=engine))
    assert (found["silent"], found["numbers"], found["<abs>"]) == (1, 3, 4)


FAILING = """
def fail():
    raise KeyError

def through(function):
    return function()
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="events are disabled from 3.14 on")
@pytest.mark.parametrize("engine", vestige._core.engines)
def test_exceptions_end_recorded_calls_where_other_code_is_left_out(engine):
    """Includes events of calls that were open before, and of suspended generators. From 3.15 on, functions that are
    left out have no event when an exception leaves them.
    """
    left_out = {}
    exec(compile(FAILING, "left_out.py", "exec"), left_out)
    prof = profile(engine=engine, exclude=["left_out.py"])
    locally = sys.version_info >= (3, 15)

    def recorded():
        left_out["through"](left_out["fail"])

    def waits():
        try:
            yield 1
        except ValueError:
            yield 2

    def opened():
        prof.start()
        recorded()

    generator = waits()
    next(generator)
    with pytest.raises(KeyError):
        opened()
    generator.throw(ValueError)
    with pytest.raises(KeyError):
        left_out["through"](recorded)
    tool, unwind = 4, sys.monitoring.events.PY_UNWIND
    assert bool(sys.monitoring.get_events(tool) & unwind) != locally
    codes = [function.__code__ for function in (recorded, opened, waits, left_out["fail"], left_out["through"])]
    local = [bool(sys.monitoring.get_local_events(tool, code) & unwind) for code in codes]
    assert local == [locally] * 3 + [False] * 2
    prof.stop()
    seen = []
    sys.monitoring.use_tool_id(tool, "another")
    sys.monitoring.register_callback(tool, unwind, lambda *event: seen.append(event))
    with pytest.raises(KeyError):
        recorded()
    sys.monitoring.free_tool_id(tool)
    assert seen == []  # the next owner of our id gets no event that it did not ask for
    spans = {}
    for span in calls(load(prof)):
        spans.setdefault(short(span["name"]), []).append(span)
    assert "fail" not in spans
    assert [len(spans[name]) for name in ("opened", "recorded", "waits")] == [1, 2, 1]
    ends = {name: max(span["ts"] + span["dur"] for span in found) for name, found in spans.items()}
    assert ends["opened"] <= min(span["ts"] for span in spans["waits"])
    assert ends["waits"] <= max(span["ts"] for span in spans["recorded"])
