"""The turbo engine's own business: which engine records, and Python frames that no other engine loses sight of."""

import json
import os
import subprocess
import sys
import threading

import pytest

import vestige
from tree import calls_of, load, names, record, short, threads
from vestige import profile

EVALUATES = sys.version_info < (3, 12)
evaluates = pytest.mark.skipif(not EVALUATES, reason="frames are evaluated by us until 3.11")
SAFE = vestige._core.engines[0]


def leaf():
    pass


def engine_of(prof):
    return prof._session.engine


def test_the_environment_says_what_auto_means_and_a_name_says_more(monkeypatch):
    monkeypatch.setenv("VESTIGE_ENGINE", "turbo")
    assert engine_of(profile()) == "turbo"
    assert engine_of(profile(engine=SAFE)) == SAFE
    monkeypatch.setenv("VESTIGE_ENGINE", "warp")
    with pytest.raises(ValueError, match="'warp'.*VESTIGE_ENGINE"):
        profile()
    monkeypatch.setenv("VESTIGE_ENGINE", "")
    assert engine_of(profile()) in vestige._core.engines


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
    assert "C functions covered" in turbo
    metadata = json.loads(workplace.vestige("info", "t.vst", "--json").stdout)["metadata"]
    assert metadata["vestige.engine"] == "turbo"
    assert metadata["vestige.turbo"]["covered"] > 100


def test_a_failing_self_test_is_told_once_and_the_safe_engine_records(workplace):
    script = workplace.write("p.py", "def f():\n    pass\n\nf()\n")
    env = {**os.environ, "VESTIGE_TURBO_SELF_TEST": "fail"}
    done = workplace.trace("--engine", "turbo", script, env=env)
    assert done.stderr.splitlines() == [
        "vestige: engine turbo is not usable here: its self test fails, as VESTIGE_TURBO_SELF_TEST asks for; "
        f"recording with {SAFE}"
    ]
    assert f"engine {SAFE}" in workplace.vestige("info", "t.vst").stdout


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

    def called_by(name):  # beside whose functions the collector calls, hypothesis's among them
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
    # One more frame calls it here.
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
events = json.load(open("t.json"))["traceEvents"]
named = [event["name"] for event in events]
print(sum("leaf" in name for name in named), named.count("hooks away"), sum(": down" in name for name in named) > 10_000)
"""


@evaluates
@pytest.mark.skipif(sys.version_info < (3, 11), reason="3.10 itself needs the C stack")
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
