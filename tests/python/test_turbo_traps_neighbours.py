"""Other users of the interpreter's hooks, tried with every engine: debuggers, coverage, other profilers, other users of
PEP 523, compilers.
"""

import cProfile
import io
import os
import pdb
import re
import subprocess
import sys

import pytest

import compiled
import hooked
import vestige
from tree import calls, load, names, record
from vestige import profile

pytestmark = pytest.mark.parametrize("engine", vestige._core.engines)
MONITORING = sys.version_info >= (3, 12)


def leaf():
    pass


def numbers(count):
    for number in range(count):
        yield number


def work():
    found = []
    for number in numbers(3):
        leaf()
        found.append(len(str(number)))
    try:
        found.index("missing")
    except ValueError:
        leaf()
    return sorted(found, key=abs)


def shares_hooks(engine):
    """Returns whether another profile function and ours see the same calls."""
    return MONITORING or engine == "turbo"


def inside(engine, function, *args):
    """Returns the function's result under a recording, and the counts of recorded calls."""
    result = None

    def run():
        nonlocal result
        result = function(*args)

    trace = record(run, engine=engine)
    if shares_hooks(engine):  # otherwise handing over the hook cuts calls
        assert not [event for event in calls(trace) if event["args"].get("cut")]
    return result, names(trace)


# ---- debuggers ---------------------------------------------------------------


def trace_lines():
    seen = []

    def tracer(frame, event, argument):
        if frame.f_globals is globals() and frame.f_code.co_name in ("work", "leaf", "numbers"):
            seen.append((frame.f_code.co_name, event, frame.f_lineno))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    work()
    sys.settrace(before)
    return seen


def test_settrace_inside_sees_every_event_that_it_sees_alone(engine):
    alone = trace_lines()
    seen, counts = inside(engine, trace_lines)
    assert seen == alone
    assert len(alone) > 20
    assert counts["leaf"] == 4


def test_settrace_from_before_goes_on_over_start_and_stop(engine):
    hooks = hooked.Hooks()
    seen = []

    def tracer(frame, event, argument):
        if frame.f_code in (leaf.__code__, work.__code__):
            seen.append(event)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        work()
        alone, seen[:] = list(seen), []
        prof = profile(engine=engine)
        prof.start()
        work()
        prof.stop()
        assert seen == alone
        seen.clear()
        work()
        assert seen == alone
    finally:
        sys.settrace(before)
    assert names(load(prof))["leaf"] == 4
    assert hooks.trouble() == ""


def debugged():
    """Returns pdb's output when it steps through work(), without breakpoint numbers and the stack below."""
    out = io.StringIO()
    orders = ["n", "n", "s", "p count", "r", "n", "tbreak leaf", "c", "w", "p 1 + 1", "r", "n", "p found", "s", "c"]
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join(orders) + "\n"), stdout=out, readrc=False, nosigint=True)
    debugger.use_rawinput = False
    result = debugger.runcall(work)
    lines = [line.removeprefix("(Pdb) ") for line in out.getvalue().splitlines()]
    return result, [line for line in lines if re.search(r"\)(work|leaf|numbers)\(\)|^\[|^\d", line)]


def test_pdb_inside_says_what_it_says_alone(engine):
    alone = debugged()
    said, counts = inside(engine, debugged)
    assert said == alone
    assert alone[0] == [1, 1, 1]
    assert len(alone[1]) > 10
    assert counts["leaf"] == 4


# ---- other profilers -----------------------------------------------------------


def profiled():
    """Returns {function: calls}, counted by cProfile."""
    profiler = cProfile.Profile()
    profiler.enable()
    work()
    profiler.disable()
    return {
        getattr(entry.code, "co_name", entry.code): entry.callcount
        for entry in profiler.getstats()
        if "disable" not in str(entry.code)
    }


def test_cprofile_inside_counts_what_it_counts_alone(engine):
    alone = profiled()
    seen, counts = inside(engine, profiled)
    assert seen == alone
    assert counts.get("leaf", 0) == (4 if shares_hooks(engine) else 0)


def hook_events():
    seen = []

    def mine(frame, event, argument):
        if frame.f_code in (leaf.__code__, work.__code__, numbers.__code__):
            seen.append((frame.f_code.co_name, event, getattr(argument, "__name__", None)))

    sys.setprofile(mine)
    work()
    sys.setprofile(None)
    return seen


def test_setprofile_inside_sees_every_event_that_it_sees_alone(engine):
    alone = hook_events()
    seen, counts = inside(engine, hook_events)
    assert seen == alone
    assert ("work", "c_call", "append") in seen and ("work", "c_exception", "index") in seen
    assert counts.get("leaf", 0) == (4 if shares_hooks(engine) else 0)


@pytest.mark.skipif(not MONITORING, reason="there is monitoring from 3.12 on")
def test_another_monitoring_tool_beside_us_sees_what_it_sees_alone(engine):
    monitoring = sys.monitoring
    kinds = ("PY_START", "PY_RETURN", "PY_YIELD", "PY_RESUME", "CALL", "C_RETURN", "C_RAISE", "LINE", "RAISE", "JUMP")

    def measured():
        seen = []
        ours = (work.__code__, leaf.__code__, numbers.__code__)

        def callback(kind):
            def called(code, *args):
                if code in ours:
                    seen.append((kind, code.co_name))

            return called

        monitoring.use_tool_id(3, "another")
        events = 0
        for kind in kinds:
            event = getattr(monitoring.events, kind)
            monitoring.register_callback(3, event, callback(kind))
            events |= event
        monitoring.set_events(3, events)
        work()
        monitoring.set_events(3, 0)
        for kind in kinds:
            monitoring.register_callback(3, getattr(monitoring.events, kind), None)
        monitoring.free_tool_id(3)
        return seen

    alone = measured()
    seen, counts = inside(engine, measured)
    assert seen == alone == measured()
    assert {kind for kind, _ in seen} == set(kinds)
    assert counts["leaf"] == 4


COVERED = """
import sys
sys.path.insert(0, sys.argv[2])

def leaf(flag):
    if flag:
        return len("1")
    return 2

def work():
    for flag in (True, True):
        leaf(flag)

def measured():
    measure = coverage.Coverage(data_file=None, include=[__file__], branch=True)
    measure.start()
    work()
    measure.stop()
    data = measure.get_data()
    return sorted(data.lines(__file__)), sorted(data.arcs(__file__))

import coverage
from vestige import profile
measured()
print(measured())
with profile(engine=sys.argv[1]) as prof:
    print(measured())
print(measured())
before = coverage.Coverage(data_file=None, include=[__file__])
before.start()
with profile(engine=sys.argv[1]):
    work()
before.stop()
print(len(before.get_data().lines(__file__)) > 3)
from tree import load, names
print(names(load(prof)).get("leaf", 0))
"""


def test_coverage_inside_and_around_measures_what_it_measures_alone(engine, tmp_path):
    pytest.importorskip("coverage")
    script = tmp_path / "covered.py"
    script.write_text(COVERED)
    command = [sys.executable, str(script), engine, os.path.dirname(__file__)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.stderr == ""
    alone, during, after, around, leaves = result.stdout.splitlines()
    assert alone == during == after != "([], [])"
    assert (around, leaves) == ("True", "2")


# ---- other users of PEP 523 ------------------------------------------------------


@pytest.fixture(scope="module")
def evaluator():
    return compiled.module("frame_evaluator", (compiled.HERE / "frame_evaluator.c").read_text())


def frames_alone(evaluator):
    evaluator.install(False)
    work()
    return evaluator.uninstall()


def recorded(prof):
    trace = load(prof)
    assert not [event for event in calls(trace) if event["args"].get("cut")]
    return names(trace)


def test_an_evaluator_from_before_has_every_frame_and_so_have_we(engine, evaluator):
    hooks = hooked.Hooks()
    alone = frames_alone(evaluator)
    prof = profile(engine=engine)
    evaluator.install(False)
    prof.start()
    work()
    prof.stop()
    assert evaluator.installed()
    frames = evaluator.uninstall()
    assert recorded(prof)["leaf"] == 4
    # start() and stop() are frames, too, and more frames if VESTIGE_ENGINE is set.
    assert alone <= frames < alone + 200
    assert hooks.trouble() == ""


def test_an_evaluator_that_comes_and_goes_inside_has_every_frame_and_so_have_we(engine, evaluator):
    hooks = hooked.Hooks()
    alone = frames_alone(evaluator)
    prof = profile(engine=engine)
    prof.start()
    for _ in range(3):
        evaluator.install(False)
        work()
        assert evaluator.uninstall() == alone
        work()
    prof.stop()
    assert recorded(prof)["leaf"] == 24
    assert hooks.trouble() == ""


def test_an_evaluator_that_comes_inside_and_goes_after(engine, evaluator):
    """The other evaluator calls ours although we have stopped, and restores ours when it is removed."""
    hooks = hooked.Hooks()
    alone = frames_alone(evaluator)
    prof = profile(engine=engine)
    prof.start()
    evaluator.install(False)
    work()
    prof.stop()
    assert evaluator.installed()
    right = work()
    second = profile(engine=engine)
    second.start()
    work()
    second.stop()
    assert evaluator.uninstall() >= alone * 2
    assert work() == right
    assert hooks.trouble() == ""
    assert (recorded(prof)["leaf"], recorded(second)["leaf"]) == (4, 4)
    assert names(record(work, engine=engine))["leaf"] == 4
    assert hooks.trouble() == ""


def test_an_evaluator_from_before_that_goes_inside_throws_us_out_and_nobody_is_hurt(engine, evaluator):
    hooks = hooked.Hooks()
    prof = profile(engine=engine)
    evaluator.install(False)
    prof.start()
    work()
    evaluator.uninstall()
    right = work()
    prof.stop()
    assert 4 <= recorded(prof)["leaf"] <= 8
    assert work() == right
    assert hooks.trouble() == ""
    assert names(record(work, engine=engine))["leaf"] == 4


def test_an_evaluator_that_calls_nobody_takes_the_frames_and_nobody_is_hurt(engine, evaluator):
    hooks = hooked.Hooks()
    prof = profile(engine=engine)
    prof.start()
    work()
    evaluator.install(True)
    work()
    evaluator.uninstall()
    work()
    prof.stop()
    assert 8 <= recorded(prof)["leaf"] <= 12
    assert hooks.trouble() == ""


# ---- torch.compile -----------------------------------------------------------------

COMPILED = '''
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[3])
import torch
import vestige
from vestige import profile
from tree import load, names

graphs = []

def backend(graph, inputs):
    graphs.append(len(list(graph.graph.nodes)))
    return graph.forward

SOURCE = """
def inner(x):
    return torch.sin(x) + 1

def function(x, flag):
    if flag:
        x = inner(x)
    return (x * 2).sum()
"""

def make():
    # Of new code each time: what was compiled of a code object is kept with it.
    space = {"torch": torch}
    exec(SOURCE, space)
    return torch.compile(space["function"], backend=backend)

def leaf():
    len("leaf")

x = torch.arange(4.0)

def use(function):
    return [round(float(function(x, flag)), 3) for flag in (True, False, True)]

def counted(work):
    graphs.clear()
    result = work()
    return result, list(graphs)

engine = sys.argv[1]
alone = counted(lambda: use(make()))
print(alone)
before = make()
use(before)
during = None
with profile(engine=engine) as prof:
    leaf()
    print(counted(lambda: use(before)) == (alone[0], []))   # compiled before: not again
    during = make()
    print(counted(lambda: use(during)) == alone)            # compiled while recording
    leaf()
print(counted(lambda: use(before)) == (alone[0], []))
print(counted(lambda: use(during)) == (alone[0], []))
print(counted(lambda: use(make())) == alone)                # compiled after
with profile(engine=engine) as second:
    leaf()
    print(counted(lambda: use(during)) == (alone[0], []))
    torch._dynamo.reset()
    print(counted(lambda: use(make())) == alone)
    leaf()
print(counted(lambda: use(make())) == alone)
for each in (prof, second):
    print(names(load(each))["leaf"])
print(vestige._core.hooks_in_place())
'''


def test_torch_compile_before_during_and_after(engine, tmp_path):
    pytest.importorskip("torch")
    if engine != "turbo":
        pytest.skip("nobody else evaluates frames")
    command = [sys.executable, "-X", "faulthandler", "-c", COMPILED, engine, str(tmp_path), os.path.dirname(__file__)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    alone, *checks = result.stdout.splitlines()
    assert alone.count("[") == 2 and "[]" not in alone
    assert checks == ["True"] * 8 + ["2", "2", "0"], result.stdout
