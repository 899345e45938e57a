"""Difficult depths, tried with every engine: as many frames as the bare interpreter allows, on every stack. Also turbo
where it cannot run because another engine records: this is reported once.
"""

import functools
import json
import os
import subprocess
import sys

import pytest

import vestige
from traces import totals
from tree import assert_nests, calls, load, names, read, record
from vestige import Trace, profile

SAFE = vestige._core.engines[0]
every_engine = pytest.mark.parametrize("engine", vestige._core.engines)
needs_turbo = pytest.mark.skipif("turbo" not in vestige._core.engines, reason="there is no such engine here")

# As deep as the bare interpreter gets, with some room left.
DEEP = 100_000
DEEP_IN_256K = 20_000


def leaf():
    pass


# ---- frames --------------------------------------------------------------------

DEEP_PROGRAM = """
import sys, threading
from vestige import profile
sys.setrecursionlimit(1_000_000)
engine, main_depth, thread_depth = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def leaf():
    len("leaf")

def down(n):
    if n == 0:
        leaf()
        return 0
    return down(n - 1) + 1

def beside():
    while not ended.wait(0.001):
        leaf()

def thread(function, size):
    threading.stack_size(size)
    made = threading.Thread(target=function)
    made.start()
    threading.stack_size(0)
    return made

def small():
    results.append(down(thread_depth))
    leaf()
    results.append(down(thread_depth))

ended = threading.Event()
results = []
other = thread(beside, 0)
with profile(engine=engine, output="t.vst") as prof:
    leaf()
    results.append(down(main_depth))
    leaf()
    thread(small, 256 * 1024).join()
    down(50)
    ended.set()
    other.join()
with profile(engine=engine, output="again.vst"):
    results.append(down(main_depth))
    leaf()
print(results)
"""


@every_engine
def test_a_hundred_thousand_frames_and_small_stacks_are_no_trouble(engine, tmp_path):
    command = [sys.executable, "-X", "faulthandler", "-c", DEEP_PROGRAM, engine, str(DEEP), str(DEEP_IN_256K)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == [DEEP, DEEP_IN_256K, DEEP_IN_256K, DEEP]
    first, again = (Trace(str(tmp_path / name)) for name in ("t.vst", "again.vst"))
    whole = (DEEP + 1) + 2 * (DEEP_IN_256K + 1) + 51
    found = counted(first, "down"), counted(again, "down")
    if engine != "turbo" or sys.version_info >= (3, 12):
        assert found == (whole, DEEP + 1)
        return
    # Calls too deep for the hook are a gap that the trace shows; all calls around the gap are recorded.
    for trace, number, all_of_it in ((first, found[0], whole), (again, found[1], DEEP + 1)):
        pauses = json.loads(trace.metadata()["vestige.turbo"])["pauses"]
        assert number == all_of_it or (pauses > 0 and number > 2000)
        trace.export(str(tmp_path / "t.json"))
        exported = read(tmp_path / "t.json")
        assert_nests(exported)
        assert not pauses or [event for event in exported["traceEvents"] if event["name"] == "hooks away"]
        assert not [event for event in calls(exported) if event["name"].endswith(": leaf") and event["args"].get("cut")]


def counted(trace, name):
    return sum(calls for label, calls, *_ in totals(trace) if label.endswith(f": {name}"))


def ways_down():
    """Functions that recurse in different ways until the interpreter refuses; each returns its depth."""
    depth = 0

    def plain():
        nonlocal depth
        depth += 1
        plain()

    def through_c():
        nonlocal depth
        depth += 1
        sorted([1], key=lambda _: through_c())

    def through_map():
        nonlocal depth
        depth += 1
        list(map(lambda _: through_map(), [1]))

    def through_reduce():
        nonlocal depth
        depth += 1
        functools.reduce(lambda *_: through_reduce(), [1, 2])

    class Attributes:
        def __getattr__(self, name):
            nonlocal depth
            depth += 1
            return getattr(self, name + "x")

    def generator():
        nonlocal depth
        depth += 1
        yield from generator()

    class Compares:
        def __eq__(self, other):
            nonlocal depth
            depth += 1
            return [self].index(Compares()) == 0

    def far(function, *args):
        nonlocal depth
        depth = 0
        try:
            function(*args)
        except RecursionError:
            return depth
        return None

    return [
        far(plain),
        far(through_c),
        far(through_map),
        far(through_reduce),
        far(getattr, Attributes(), "x"),
        far(list, generator()),
        far([Compares()].index, Compares()),
    ]


@every_engine
def test_recursion_errors_come_at_the_same_depth_as_bare(engine):
    """Started and stopped in one frame, so that the stack below is equal."""
    limit = sys.getrecursionlimit()
    prof = profile(engine=engine)
    found = []
    try:
        for sometimes in (400, 1000):
            sys.setrecursionlimit(sometimes)
            for _ in range(4):
                bare = ways_down()  # the last time, all code is hot
            prof.start()
            traced = ways_down()
            prof.stop()
            found.append((bare, traced))
    finally:
        sys.setrecursionlimit(limit)
    for bare, traced in found:
        assert min(bare) > 50
        if engine == "turbo":
            assert traced == bare
        else:
            # With events of C calls, the interpreter counts one level more for some calls.
            assert (traced[0], None in traced) == (bare[0], False)
    trace = load(prof)
    assert not [event for event in calls(trace) if event["args"].get("cut")]


@every_engine
def test_a_recursion_error_ends_as_many_calls_as_began(engine):
    def plain():
        plain()

    def outer():
        try:
            plain()
        except RecursionError:
            leaf()

    counts = names(record(outer, engine=engine))
    assert counts["plain"] == names(record(outer, engine=SAFE))["plain"]
    assert counts["leaf"] == 1


# ---- where it cannot be ---------------------------------------------------------

FALLS_BACK = """
import sys, warnings
import vestige
from vestige import profile

def leaf():
    len("leaf")

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for number in range(3):
        with profile(engine="turbo", output=f"t{number}.vst") as prof:
            leaf()
print(len(caught))
for warning in caught:
    print(warning.category.__name__, warning.filename, warning.message)
print(vestige._core.hooks_in_place())
"""


def without_turbo():
    return {**os.environ, "VESTIGE_TURBO_SELF_TEST": "fail"}


@needs_turbo
def test_a_self_test_that_fails_gives_way_to_the_safe_engine_and_says_so_once(workplace):
    program = workplace.write("main.py", FALLS_BACK)
    result = workplace.python(program, env=without_turbo())
    assert (result.returncode, result.stderr) == (0, "")
    count, warning, hooks = result.stdout.splitlines()
    assert (count, hooks) == ("1", "0")
    category, file, message = warning.split(" ", 2)
    assert (category, os.path.basename(file)) == ("RuntimeWarning", "main.py")
    assert message.startswith("vestige: engine turbo is not usable here: its self test")
    assert message.endswith(f"; recording with {SAFE}")
    for number in range(3):
        trace = Trace(str(workplace.path / f"t{number}.vst"))
        assert json.loads(trace.metadata()["vestige.engine"]) == SAFE
        assert "vestige.turbo" not in trace.metadata()
        assert [calls for name, calls, *_ in totals(trace) if name.endswith(": leaf")] == [1]


@needs_turbo
def test_the_command_says_it_in_one_line_and_the_program_s_output_stays(workplace):
    program = workplace.write("main.py", "import sys\nprint(len(sys.argv))\n")
    result = workplace.vestige("run", "-q", "--engine", "turbo", "-o", "t.vst", program, env=without_turbo())
    assert (result.returncode, result.stdout) == (0, "1\n")
    (line,) = result.stderr.splitlines()
    assert line.startswith("vestige: engine turbo is not usable here: its self test")
    assert line.endswith(f"; recording with {SAFE}")
    shown = workplace.vestige("info", "t.vst")
    assert SAFE in shown.stdout


@needs_turbo
def test_auto_says_nothing_when_it_gives_way(workplace):
    program = workplace.write("main.py", "print(len('x'))\n")
    result = workplace.vestige("run", "-q", "-o", "t.vst", program, env=without_turbo())
    assert (result.returncode, result.stdout, result.stderr) == (0, "1\n", "")
    assert json.loads(Trace(str(workplace.path / "t.vst")).metadata()["vestige.engine"]) == SAFE


@needs_turbo
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a trace function is needed until 3.11 alone")
def test_a_raise_trigger_needs_a_trace_function_and_so_the_safe_engine(workplace):
    program = workplace.write(
        "main.py",
        """
        import os, warnings
        from vestige import profile
        warnings.simplefilter("always")
        with profile(engine="turbo", output="t.vst", triggers=["raise:KeyError"]) as prof:
            try:
                {}.pop("missing")
            except KeyError:
                pass
        print(len(prof.snapshots))
        """,
    )
    result = workplace.python(program)
    assert (result.returncode, result.stdout) == (0, "1\n")
    assert f"recording with {SAFE}" in result.stderr


@needs_turbo
def test_info_says_which_engine_recorded_and_what_it_could_not_cover(workplace):
    program = workplace.write("main.py", "import json\nprint(json.dumps([1]))\n")
    workplace.vestige("run", "-q", "--engine", "turbo", "-o", "t.vst", program)
    counts = json.loads(Trace(str(workplace.path / "t.vst")).metadata()["vestige.turbo"])
    assert counts["covered"] > 1000
    assert counts["overflow"] == 0
    assert all(type(count) is int and count >= 0 for count in counts.values())
    shown = workplace.vestige("info", "t.vst").stdout
    assert "turbo" in shown
    assert f"{counts['covered']:,}" in shown
