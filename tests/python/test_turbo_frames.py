"""Properties of the turbo engine alone: where it is selected, and Python frames that other engines see, too."""

import json
import os
import subprocess
import sys
import threading
import warnings

import pytest

import vestige
from tree import calls_of, load, names, record, short, threads
from vestige import profile

EVALUATES = sys.version_info < (3, 12)
evaluates = pytest.mark.skipif(not EVALUATES, reason="frames are evaluated by us until 3.11")
monitors = pytest.mark.skipif(EVALUATES, reason="frames are told of by monitoring from 3.12 on")
SAFE = vestige._core.engines[0]


def leaf():
    pass


def engine_of(prof):
    return prof._session.engine


def test_the_environment_says_what_auto_means_and_a_name_says_more(monkeypatch):
    monkeypatch.setenv("VESTIGE_ENGINE", "turbo")
    assert engine_of(profile()) == "turbo"
    assert engine_of(profile(engine=SAFE)) == SAFE
    monkeypatch.setenv("VESTIGE_ENGINE", "safe")
    assert engine_of(profile()) == SAFE
    assert engine_of(profile(engine="turbo")) == "turbo"
    monkeypatch.setenv("VESTIGE_ENGINE", "warp")
    with pytest.raises(ValueError, match="'warp'.*VESTIGE_ENGINE"):
        profile()
    monkeypatch.setenv("VESTIGE_ENGINE", "")
    # the versions for which turbo is tested
    assert engine_of(profile()) == ("turbo" if sys.version_info < (3, 16) else SAFE)


def test_each_recording_says_which_engine_made_it():
    made = []
    for engine in ("turbo", SAFE, "turbo"):
        with profile(engine=engine) as prof:
            leaf()
        made.append(prof)
    assert [engine_of(prof) for prof in made] == ["turbo", SAFE, "turbo"]
    assert vestige._core.hooks_in_place() == 0


def test_info_tells_the_engine_and_what_it_covered(workplace):
    script = workplace.write("p.py", "def f():\n    return len('abc')\n\nf()\n")
    workplace.trace("--engine", "turbo", script)
    lines = workplace.vestige("info", "t.vst").stdout.splitlines()
    assert any(line.split()[0] == "python" and line.endswith("engine turbo") for line in lines)
    (turbo,) = [line for line in lines if line.split()[0] == "turbo"]
    assert " C functions and " in turbo and " other callables covered" in turbo
    metadata = json.loads(workplace.vestige("info", "t.vst", "--json").stdout)["metadata"]
    assert metadata["vestige.engine"] == "turbo"
    assert metadata["vestige.turbo"]["covered"] > 100


def test_a_failing_self_test_is_told_once_and_the_safe_engine_records(workplace):
    script = workplace.write("p.py", "def f():\n    pass\n\nf()\n")
    env = {**os.environ, "VESTIGE_TURBO_SELF_TEST": "fail"}
    done = workplace.trace("--engine", "turbo", script, env=env)
    assert done.stderr.splitlines() == [
        (
            "vestige: engine turbo is not usable here: its self test fails, as VESTIGE_TURBO_SELF_TEST asks for; "
            f"recording with {SAFE}"
        )
    ]
    assert f"engine {SAFE}" in workplace.vestige("info", "t.vst").stdout


def test_a_debug_build_is_told_by_what_it_has_and_the_safe_engine_records(monkeypatch):
    """This system has no such build. The test loads an extension built for an ordinary Python, and recognises it by
    this function.
    """
    if not hasattr(sys, "gettotalrefcount"):
        with profile(engine="turbo") as prof:
            leaf()
        assert engine_of(prof) == "turbo"
        monkeypatch.setattr(sys, "gettotalrefcount", lambda: 0, raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(engine="turbo") as prof:
            leaf()
    assert engine_of(prof) == SAFE
    assert all("this is a debug build of Python" in str(each.message) for each in caught)


EVENTS_GO_WRONG = """
import os, sys
from vestige import profile

monitoring = sys.monitoring
register = monitoring.register_callback
events = {name: getattr(monitoring.events, f"PY_{name}") for name in
          ("START", "RESUME", "THROW", "RETURN", "YIELD", "UNWIND")}

def leaf():
    len("leaf")

def engine():
    with profile(engine="turbo") as prof:
        leaf()
    assert [monitoring.get_tool(id) for id in (3, 4)] == [None, None]
    return prof._session.engine

def show(what, change):
    # In a child, for the test is made once: its events are changed, the recording's are not.
    def changed(tool, event, function):
        nonlocal left
        if function is not None and left:
            left -= 1
            event, function = change(event, function)
        return register(tool, event, function)

    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return
    left = len(events)
    monitoring.register_callback = changed
    print(what, engine(), engine(), flush=True)
    os._exit(0)

def only(name, wrapped):
    return lambda event, function: (event, wrapped(function) if event == events[name] else function)

swapped = {events["RETURN"]: events["UNWIND"], events["UNWIND"]: events["RETURN"]}
show("right", lambda event, function: (event, function))
for name in events:
    show(f"no {name}", only(name, lambda function: None))
show("swapped", lambda event, function: (swapped.get(event, event), function))
show("short", only("RETURN", lambda function: lambda *args: function(*args[:2])))
show("twice", only("START", lambda function: lambda *args: (function(*args), function(*args))[0]))
"""


@monitors
def test_events_that_are_not_what_they_must_be_make_the_safe_engine_record(workplace):
    done = workplace.python("-W", "ignore", "-c", EVENTS_GO_WRONG)
    assert done.stderr == ""
    right, *wrong = done.stdout.splitlines()
    assert right == "right turbo turbo"
    assert len(wrong) == 9
    assert [line for line in wrong if not line.endswith(f" {SAFE} {SAFE}")] == []


MEDDLES = """
import os, signal, sys, threading
from vestige import profile

monitoring = sys.monitoring
set_events = monitoring.set_events

def leaf():
    pass

def meddled(tool, events):  # in the middle of the self test
    monitoring.set_events = set_events
    set_events(tool, events)
    if not os.fork():
        assert monitoring.get_tool(tool) is None, "the child goes on with the test"
        os._exit(0)
    assert os.wait()[1] == 0
    signal.raise_signal(signal.SIGUSR1)
    leaf()
    starts = threading.Thread(target=first.start)
    starts.start()
    starts.join()

def raises(number, frame):
    raise LookupError("of the handler")

signal.signal(signal.SIGUSR1, raises)
first, second = profile(engine="monitoring"), profile(engine="turbo")
monitoring.set_events = meddled
try:
    second._session.engine_note()
    leaf()
except LookupError as error:
    print(error)
try:
    second.start()
except RuntimeError as error:
    print(error)
leaf()
first.stop()
print([monitoring.get_tool(id) for id in (3, 4)])
with second:
    leaf()
print(second._session.engine)
for each in (first, second):
    each.export_chrome_trace("t.json")
    with open("t.json") as file:
        print(file.read().count(": leaf"))
"""


@monitors
def test_a_fork_a_signal_and_a_start_in_the_middle_of_the_self_test_hurt_nobody(workplace):
    done = workplace.python("-W", "ignore", "-c", MEDDLES)
    assert done.stderr == ""
    handler, busy, *rest = done.stdout.splitlines()
    assert handler == "of the handler"
    assert "already" in busy
    assert rest == ["[None, None]", "turbo", "1", "1"]


SELF_TEST_LEAVES = """
import sys
import vestige
from vestige import profile

monitoring = sys.monitoring
E = monitoring.events
OTHERS = {0: E.PY_START | E.PY_RETURN, 1: E.LINE, 2: E.CALL, 5: E.PY_UNWIND}
seen = []

def leaf():
    len("leaf")

def started(code, offset):
    if code is leaf.__code__:
        seen.append("started")

def line(code, number):
    if code is leaf.__code__:
        seen.append("line")
    return monitoring.DISABLE

def others():
    return [(monitoring.get_tool(id), monitoring.get_events(id)) for id in OTHERS]

for id, wanted in OTHERS.items():
    monitoring.use_tool_id(id, f"tool {id}")
    monitoring.set_events(id, wanted)
monitoring.register_callback(0, E.PY_START, started)
monitoring.register_callback(1, E.LINE, line)
leaf()
before = others()
prof = profile(engine="turbo")

def after_the_test():
    assert others() == before
    assert [monitoring.get_tool(id) for id in (3, 4)] == [None, None]
    assert vestige._core.hooks_in_place() == 0
    monitoring.use_tool_id(4, "look")
    assert monitoring.get_events(4) == 0
    singly = {event for event in vars(E).values() if isinstance(event, int) and event.bit_count() == 1}
    assert {monitoring.register_callback(4, event, None) for event in singly - {E.C_RETURN, E.C_RAISE}} == {None}
    monitoring.free_tool_id(4)
    leaf()

# With 3 and 4 taken nothing can be tested, nor recorded: both engines say why.
for id in (3, 4):
    monitoring.use_tool_id(id, f"tool {id}")
try:
    prof.start()
except RuntimeError as error:
    assert "tool id is free" in str(error), error
else:
    raise AssertionError("it started")
assert monitoring.get_tool(3) == "tool 3" and monitoring.get_tool(4) == "tool 4"
monitoring.free_tool_id(3)
monitoring.free_tool_id(4)
assert prof._session.engine_note() is None  # runs the test now
after_the_test()
with prof:
    leaf()
assert prof._session.engine == "turbo"
after_the_test()
print(*seen)
prof.export_chrome_trace("t.json")
with open("t.json") as file:
    text = file.read()
print(text.count(": leaf"), text.count("<vestige>"))
"""


@monitors
def test_the_self_test_leaves_nothing_and_other_tools_alone(workplace):
    done = workplace.python("-W", "ignore", "-c", SELF_TEST_LEAVES)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["started line started started line started", "1 0"]


def test_calls_that_were_open_at_the_start_end_where_the_next_call_is():
    prof = profile(engine="turbo")

    def inner():
        prof.start()
        leaf()

    def middle():
        inner()
        leaf()

    def outer():
        middle()
        leaf()
        prof.stop()

    outer()
    main = threads(load(prof))["MainThread"]
    spans = {short(span.name): span for root in main for span in root.walk() if "open at start" in span.marks}

    def called_by(name):  # the collector also calls functions of others, such as hypothesis's
        return [short(span.name) for span in spans[name].children if short(span.name) in ("middle", "inner", "leaf")]

    assert called_by("outer") == ["middle", "leaf"]
    assert called_by("middle") == ["inner", "leaf"]
    assert called_by("inner") == ["leaf"]


def depth_of_recursion_error():
    def down(depth):
        nonlocal deepest
        deepest = depth
        down(depth + 1)

    deepest = 0
    with pytest.raises(RecursionError):
        down(1)
    return deepest


def test_the_recursion_limit_is_where_it_was_and_the_refused_call_has_no_span():
    alone = depth_of_recursion_error()
    found = []
    counts = names(record(lambda: found.append(depth_of_recursion_error()), engine="turbo"))
    # One more frame is on the stack here.
    assert found[0] in (alone - 1, alone - 2)
    assert counts["down"] == found[0]


DEEP = """
import sys, threading
import vestige

def down(n):
    return 0 if n == 0 else 1 + down(n - 1)

def leaf():
    pass

def deep(n):
    assert down(n) == n

sys.setrecursionlimit(200_000)
with vestige.profile(engine="turbo") as prof:
    deep(100_000)
    leaf()
    deep(100_000)
    leaf()
    threading.stack_size(256 * 1024)
    thread = threading.Thread(target=deep, args=(20_000,))
    thread.start()
    thread.join()
    leaf()
prof.export_chrome_trace("t.json")
assert vestige._core.hooks_in_place() == 0
import json
with open("t.json") as file:
    events = json.load(file)["traceEvents"]
named = [event["name"] for event in events]
print(sum("leaf" in name for name in named), named.count("hooks away"), sum(": down" in name for name in named) > 10_000)
"""


@evaluates
def test_a_hundred_thousand_frames_leave_a_gap_and_no_more(tmp_path):
    done = subprocess.run([sys.executable, "-c", DEEP], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    leaves, gaps, many = done.stdout.split()
    assert (leaves, many) == ("3", "True")
    assert int(gaps) >= 3


def test_a_thread_that_was_there_before_shows_its_calls_at_their_place():
    go, ready = threading.Event(), threading.Event()

    def body():
        ready.set()
        go.wait()
        leaf()

    thread = threading.Thread(target=body, name="before")
    thread.start()
    ready.wait()

    def outer():
        go.set()
        thread.join()

    trace = record(outer, engine="turbo")
    assert "leaf" in calls_of(trace, "before").split()


class Items:
    def __getitem__(self, index):
        return index


def called_get(self, index):
    return index


class Aliased:
    __getitem__ = called_get


def make_items():
    class Made:
        def __getitem__(self, index):
            return index

    return Made()


def ask_often(items):
    for index in range(200):
        items[index]


def test_every_getitem_is_seen_however_often_it_was_called_before():
    """Some patch releases of 3.11 enter the function without the hook once obj[i] is specialised."""
    items, aliased = Items(), Aliased()
    for _ in range(3):  # specialised before, and again after a recording
        ask_often(items)
        ask_often(aliased)

        def program():
            ask_often(items)
            ask_often(aliased)
            for _ in range(3):  # three functions that share a code object
                ask_often(make_items())

        found = names(record(program, engine="turbo"))
        assert (found["__getitem__"], found["called_get"]) == (200 + 3 * 200, 200)
    assert [items[index] for index in range(3)] == [0, 1, 2]


def test_arguments_of_a_getitem_are_recorded_only_if_they_are_asked_for():
    trace = record(ask_often, Items(), engine="turbo")
    assert not [call for call in trace["traceEvents"] if "arguments" in call.get("args", {})]
