"""Calls outside the scope of a recording (max_depth, only): the tree equals the tree of a whole recording, without
calls that are too deep or outside the functions. Each engine, with generators, exceptions, threads and greenlets.
"""

import asyncio
import threading

import pytest

import vestige
from tree import calls, load, record, short
from tree import threads as roots
from vestige import profile, record_function

ENGINES = vestige._core.engines


def leaf():
    return len("")


def middle():
    leaf()
    return sorted([2, 1], key=lambda n: leaf())


def fails(depth):
    if depth:
        fails(depth - 1)
    raise KeyError


def resumed():
    for _ in range(2):
        middle()
        yield leaf()


def target(depth):
    middle()
    if depth:
        target(depth - 1)
    return list(resumed())


def catches():
    try:
        fails(3)
    except KeyError:
        middle()


def program():
    middle()
    target(1)
    catches()
    numbers = resumed()
    next(numbers)
    target(0)
    next(numbers)
    numbers.close()
    leaf()


def lines(spans):
    return [line for span in spans for line in span.lines()]


def cut(line_list, depth):
    """Returns the lines of a whole tree down to a depth, at two spaces per level."""
    return [line for line in line_list if len(line) - len(line.lstrip(" ")) < 2 * depth]


def inside(line_list, name):
    """Returns the lines of the trees whose roots are the outermost calls of this function."""
    kept, root = [], None
    for line in line_list:
        level = len(line) - len(line.lstrip(" "))
        if root is not None and level <= root:
            root = None
        if root is None and line.split()[0] == name:
            root = level
        if root is not None:
            kept.append(line[root:])
    return kept


def below(trace, name="program"):
    """Returns every call inside a call of this name, and this call, outermost first."""
    return [
        line
        for spans in roots(trace).values()
        for span in spans
        for one in span.walk()
        if short(one.name) == name
        for line in one.lines()
    ]


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("engine", ENGINES)
def test_calls_are_recorded_to_a_depth(engine, depth):
    whole = below(record(program, engine=engine))
    assert max(len(line) - len(line.lstrip(" ")) for line in whole) >= 2 * 5
    assert below(record(program, engine=engine, max_depth=depth)) == cut(whole, depth)


@pytest.mark.parametrize("name", ["target", "resumed", "fails", "leaf"])
@pytest.mark.parametrize("engine", ENGINES)
def test_calls_are_recorded_only_inside_of_a_function(engine, name):
    whole = below(record(program, engine=engine))
    found = record(program, engine=engine, only=[name])
    (spans,) = roots(found).values()
    assert lines(spans) == inside(whole, name)


@pytest.mark.parametrize("engine", ENGINES)
def test_with_both_the_depth_counts_from_the_function(engine):
    whole = below(record(program, engine=engine))
    (spans,) = roots(record(program, engine=engine, only=["nothing", "targ*"], max_depth=2)).values()
    assert lines(spans) == cut(inside(whole, "target"), 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_short_calls_are_left_out_of_what_is_recorded(engine):
    """The end of an inner call that is too deep is not taken for the end of an outer call of the same function."""

    def again(depth):
        if depth:
            again(depth - 1)

    def outer():
        again(2)
        again(0)
        with record_function("stays"):
            pass

    with profile(engine=engine, only=["outer"], max_depth=2, min_duration=3600, c_functions=False, gc=False) as prof:
        outer()
    assert [short(event["name"]) for event in calls(load(prof))] == ["outer"]
    assert prof._session.trace().info()["left_out"] == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_calls_that_are_open_at_the_start_do_not_count(engine):
    profiles = []

    def starts():
        profiles.append(profile(engine=engine, max_depth=1, c_functions=False))
        profiles[0].start()

    def opens():
        starts()
        middle()

    opens()
    middle()
    profiles[0].stop()
    trace = load(profiles[0])
    names = [short(event["name"]) for event in calls(trace)]
    assert names.count("middle") == 2 and "leaf" not in names and "opens" in names


@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_that_is_open_at_the_start_is_recorded(engine):
    def wanted(prof):
        prof.start()
        leaf()

    def outer(prof):
        wanted(prof)
        leaf()

    prof = profile(engine=engine, only=["wanted"], c_functions=False)
    outer(prof)
    prof.stop()
    trace = load(prof)
    assert sorted(short(event["name"]) for event in calls(trace)) == ["leaf", "wanted"]


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_are_on_their_own(engine):
    barrier = threading.Barrier(2)

    def one():
        barrier.wait()
        target(0)
        leaf()

    def other():
        barrier.wait()
        middle()

    def both():
        threads = [threading.Thread(target=function) for function in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    whole = below(record(target, 0, engine=engine), "target")
    found = roots(record(both, engine=engine, only=["target"]))
    assert [lines(spans) for spans in found.values() if spans] == [whole]


@pytest.mark.parametrize("engine", ENGINES)
def test_greenlets_keep_their_depths(engine):
    greenlet = pytest.importorskip("greenlet")

    def waits():
        middle()
        main.switch()
        middle()

    def outer():
        waits()

    def run():
        nonlocal main
        main = greenlet.getcurrent()
        first, second = greenlet.greenlet(outer), greenlet.greenlet(waits)
        for one in (first, second, first, second):
            one.switch()
        middle()

    main = None
    whole = record(run, engine=engine, c_functions=False)
    found = record(run, engine=engine, c_functions=False, only=["waits"], max_depth=2)
    spans = [span for each in roots(whole).values() for span in each]
    wanted = sorted(
        short(one.name)
        for root in spans
        for span in root.walk()
        if short(span.name) == "waits"
        for one in (span, *span.children)
    )
    assert sorted(short(event["name"]) for event in calls(found)) == wanted


@pytest.mark.parametrize("engine", ENGINES)
def test_a_coroutine_is_recorded_each_time_it_goes_on(engine):
    async def wanted():
        leaf()
        await asyncio.sleep(0)
        middle()

    async def main():
        await asyncio.gather(wanted(), wanted())
        leaf()

    trace = record(asyncio.run, main(), engine=engine, only=["wanted"], c_functions=False)
    names = [short(event["name"]) for event in calls(trace)]
    assert names.count("wanted") == 4 and names.count("middle") == 2 and names.count("leaf") == 8
    assert "main" not in names and "run" not in names


@pytest.mark.parametrize("engine", ENGINES)
def test_arguments_and_annotations_stay_where_they_belong(engine):
    def named(number):
        with record_function("load", number):
            leaf()

    def outer():
        named(1)

    trace = record(outer, engine=engine, max_depth=1, record_args=["outer", "named"], c_functions=False)
    events = {short(event["name"]): event.get("args", {}) for event in trace["traceEvents"] if event.get("ph") == "X"}
    assert events["outer"]["arguments"] == {} and "named" not in events and "leaf" not in events
    assert "load" in events


@pytest.mark.parametrize("engine", ENGINES)
def test_each_window_begins_anew(engine):
    prof = profile(engine=engine, only=["target"], c_functions=False)
    for _ in range(2):
        prof.start()
        target(0)
        leaf()
        prof.stop()
    names = [short(event["name"]) for event in calls(load(prof))]
    assert names.count("target") == 2
    with profile(engine=engine, c_functions=False) as other:
        leaf()
    assert "leaf" in [short(event["name"]) for event in calls(load(other))]


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"max_depth": 0}, "max_depth must be from 1 to 1,000,000,000, not 0"),
        ({"max_depth": "5"}, "max_depth must be an int, not str"),
        ({"max_depth": True}, "max_depth must be an int, not bool"),
        ({"only": "f"}, "only must be a list of str, not str"),
        ({"only": [f"{1}", 2]}, "only must be a list of str, not of int"),
    ],
)
def test_bad_options_are_refused(option, error):
    with pytest.raises((TypeError, ValueError), match=error):
        profile(**option)


PROGRAM = """
    def leaf(): return 1
    def wanted(): return leaf()
    def outer(): return wanted()
    outer()
"""


def test_the_command_says_what_is_not_recorded(workplace):
    program = workplace.write("p.py", PROGRAM)
    ended = workplace.vestige("run", "-o", "t.vst", "--only", "want*", "--max-depth", "1", program)
    told = [
        "calls outside of this function are not recorded: --only want*",
        "deeper calls are not recorded: --max-depth 1",
    ]
    assert all(line in ended.stderr.splitlines() for line in told)
    report = workplace.vestige("report", "t.vst").stdout
    assert all(line in report.splitlines() for line in told) and "wanted" in report and "leaf" not in report
    assert "; ".join(told) in workplace.vestige("info", "t.vst").stdout
    refused = workplace.vestige("run", "--max-depth", "0", program)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "max-depth must be" in refused.stderr


def test_names_that_nothing_has_are_said(workplace):
    program = workplace.write("p.py", PROGRAM)
    names = ("wanted", "lea?", "nothing", "no\x1b*")
    ended = workplace.vestige("run", "-o", "t.vst", *(f"--only={name}" for name in names), program)
    for text in (ended.stderr, workplace.vestige("report", "t.vst").stdout):
        lines = [line for line in text.splitlines() if "was called" in line]
        assert lines == [f"no function named {name} was called while recording" for name in ("nothing", "no\ufffd*")]


def test_a_project_may_choose(workplace):
    program = workplace.write("p.py", PROGRAM)
    workplace.write("pyproject.toml", "[tool.vestige]\nonly = 'wanted'\nmax-depth = 1\n")
    assert workplace.trace(program).returncode == 0
    assert "deeper calls are not recorded: --max-depth 1" in workplace.vestige("info", "t.vst").stdout


def test_child_processes_record_the_same(workplace):
    child = workplace.write("p.py", PROGRAM)
    parent = workplace.write("q.py", f"import subprocess, sys; subprocess.run([sys.executable, {str(child)!r}])")
    assert workplace.trace("--only", "wanted", parent).returncode == 0
    report = workplace.vestige("report", "t.vst").stdout
    assert "wanted" in report and "outer" not in report
