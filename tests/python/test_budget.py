"""Budgets: functions that are called most are left out and estimated, recorded calls stay whole, and a stop restores
everything.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest

import vestige
from vestige import _core
from vestige.recording.flight import parse_trigger

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
ENGINES = [engine for engine in _core.engines if engine != "profile"]

pytestmark = pytest.mark.skipif(not HAS_GIL, reason="a Python without the GIL refuses a budget, which is tested below")


def leaf(x):
    return x + 1


def loop(count):
    total = 0
    for _ in range(count):
        total = leaf(total)
        abs(total)
    return total


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def numbers(count):
    yield from range(count)


def failing(x):
    raise ValueError(x)


def mixed(count):
    done = 0
    for number in numbers(count):
        try:
            failing(number)
        except ValueError:
            done += fib(4)
    return done


def run_for(seconds, work):
    """Runs `work` for this much CPU time; returns the number of runs."""
    end = time.process_time() + seconds
    times = 0
    while time.process_time() < end:
        work()
        times += 1
    return times


def recorded(work, engine, share=0.03, ns=50.0, triggers=()):
    """Returns the trace of work(), with a call's cost set to `ns`, so that a function that is called all the time is
    left out.
    """
    session = _core.Session(None, engine=engine, gc=False)
    session.set_budget(share, ns, ns)
    if triggers:
        parsed = tuple(parse_trigger(text) for text in triggers)
        session.arm("unused", parsed, signal=(0, ""), overwrite=False, max_snapshots=1, window_ns=0)
    session.create()
    session.set_metadata("vestige.budget", str(share))
    session.start()
    try:
        result = work()
    finally:
        session.stop()
    trace = session.trace()
    return result, trace, session


def rows(trace):
    names = trace.functions()
    return {names[row.func][1]: row for row in trace.tables(["functions"])["functions"]}


def budget_of(trace):
    [row] = trace.tables(["budget"])["budget"]
    return row


def nested(trace, name):
    """Returns the greatest number of nested calls of a function. A row's parent is always an earlier row."""
    names = trace.functions()
    depths = []
    for row in trace.tables(["calls"])["calls"]:
        depths.append((names[row.func][1] == name) + (0 if row.parent is None else depths[row.parent]))
    return max(depths)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_called_most_is_left_out_and_estimated(engine):
    times, trace, session = recorded(lambda: run_for(0.5, lambda: loop(5000)), engine)
    told = budget_of(trace)
    assert told.functions >= 2
    assert told.windows >= 1
    records = trace.info()["records"]
    assert records < times * 5000  # each call has four
    found = rows(trace)
    assert found["leaf"].calls > records / 4  # more calls than were recorded
    assert times * 5000 / 2.5 < found["leaf"].calls < times * 5000 * 2.5  # tolerance for a busy machine
    session.finish()
    assert _core.hooks_in_place() == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("work", [lambda: fib(15), lambda: mixed(50), lambda: loop(300)], ids=["fib", "mixed", "loop"])
def test_calls_that_are_open_when_their_function_is_left_out_end_where_they_did(engine, work):
    expected = work()
    results = set()

    for seconds in (0.4, 1, 3):  # on a very busy machine, the first window may come late

        def several(seconds=seconds):
            return run_for(seconds, lambda: results.add(work()))

        _, trace, session = recorded(several, engine)
        if budget_of(trace).windows >= 1:
            break
        session.finish()
    assert results == {expected}
    assert budget_of(trace).windows >= 1
    for name, most in {"fib": 15, "mixed": 1, "failing": 1, "leaf": 1, "loop": 1, "<lambda>": 3}.items():
        assert nested(trace, name) <= most  # if an end were missing, the next call would be inside the call
    found = rows(trace)
    assert found["run_for"].calls == 1  # the outermost call is recorded as one call, to its end
    assert found["run_for"].total_ns >= 0.9 * (trace.info()["end_ns"] - trace.info()["start_ns"])
    session.finish()


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_are_left_out_together_and_compute_what_they_did(engine):
    results = []

    def several():
        threads = [threading.Thread(target=lambda: results.append(run_for(0.3, lambda: fib(12)))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    _, trace, session = recorded(several, engine)
    assert len(results) == 3
    assert budget_of(trace).functions >= 1
    assert nested(trace, "fib") <= 12
    session.finish()
    assert _core.hooks_in_place() == 0


async def answer(x):
    return leaf(x)


async def ask(count):
    total = 0
    for number in range(count):
        total = await answer(total)
        if number % 100 == 0:
            await asyncio.sleep(0)
    return total


async def ask_all():
    return sum(await asyncio.gather(*(ask(500) for _ in range(5))))


@pytest.mark.parametrize("engine", ENGINES)
def test_coroutines_are_left_out_and_their_tasks_stay_whole(engine):
    results = set()
    times, trace, session = recorded(lambda: run_for(0.5, lambda: results.add(asyncio.run(ask_all()))), engine)
    assert results == {2500}
    names = trace.functions()
    if sys.version_info >= (3, 12):  # on older Pythons, the hook itself may be removed
        rows = trace.tables(["left_out"])["left_out"]
        left_out = {names[row.func][1] for row in rows if row.func is not None}
        assert "answer" in left_out
    assert trace.info()["records"] < times * 2500 * 2
    assert nested(trace, "answer") <= 1
    assert nested(trace, "ask") <= 1
    for steps in trace.tables(["task"])["task"]["steps"]:
        assert steps <= 6  # a task that took another task's step, or a call in a step, for its own step would have more
    session.finish()
    assert _core.hooks_in_place() == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_burst_is_followed_after_some_thousand_calls(engine):
    """At 1 %, a hundred milliseconds of credit last for 16,000 calls of 62 ns."""

    def rest(turns):
        return sum(range(turns))

    def work():
        run_for(0.3, lambda: rest(10_000))
        for _ in range(20):
            loop(20_000)

    _, trace, session = recorded(work, engine, share=0.01)
    leaf_id = next(number for number, entry in enumerate(trace.functions()) if entry and entry[1] == "leaf")
    first = min(start for start, _ in trace.spans("leaf"))
    followed = min(
        row.start_ns
        for row in trace.tables(["left_out"])["left_out"]
        if row.start_ns > first and row.func in (None, leaf_id)
    )
    assert sum(start < followed for start, _ in trace.spans("leaf")) < 25_000
    session.finish()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_that_costs_little_is_recorded_whole(engine):
    def work():
        return [loop(10) for _ in range(100)]

    _, trace, session = recorded(work, engine, share=0.5, ns=1.0)
    told = budget_of(trace)
    assert told.functions == 0
    assert rows(trace)["leaf"].calls == 1000
    session.finish()


def test_a_fork_is_followed_and_warns_of_nothing(tmp_path):
    program = tmp_path / "forks.py"
    program.write_text(
        "import os, sys, warnings\n"
        "warnings.simplefilter('error')\n"
        "def leaf(x): return x + 1\n"
        "def work():\n"
        "    for i in range(300000): leaf(i)\n"
        "work()\n"
        "pid = os.fork()\n"
        "work()\n"
        "if not pid: os._exit(0)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    words = [sys.executable, "-m", "vestige", "run", "--budget", "2%", "-o", str(tmp_path / "t.vst"), str(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert re.search(r"^budget 2% of the CPU time, \d+\.\d% used: ", done.stderr, re.MULTILINE), done.stderr
    assert len(list(tmp_path.glob("t*.vst"))) == 2


def test_the_budget_is_said_in_a_line_of_the_report(tmp_path, capsys):
    path = tmp_path / "t.vst"
    profile = vestige.profile(output=path, with_stack=True, budget="2%")
    with profile:
        run_for(0.3, lambda: loop(2000))
    done = subprocess.run(
        [sys.executable, "-m", "vestige", "report", str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    line = r"budget 2% of the CPU time, \d+\.\d% used: \d+ functions left out for up to \d+% of it; tables estimate"
    assert re.search(line, done.stdout), done.stdout
    assert " ± " in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": "5x"}, "budget: not a share: '5x'"),
        ({"budget": 0}, "budget must be from 0.1% to 100%"),
        ({"budget": 200}, "budget must be from 0.1% to 100%"),
        ({"budget": 5}, "budget: 5 is more than all of the CPU time; 5 % is written 5%"),
        ({"budget": "5"}, "budget: 5 is more than all of the CPU time; 5 % is written 5%"),
        ({"budget": 0.1, "max_depth": 3}, "budget and max_depth cannot be used together"),
        ({"budget": 0.1, "profile_memory": True}, "budget and profile_memory cannot be used together"),
        ({"budget": 0.1, "with_stack": False}, "budget needs with_stack=True"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        vestige.profile(**options)


def test_a_budget_is_a_number():
    with pytest.raises(TypeError, match="budget must be a number or a str, not list"):
        vestige.profile(budget=[5])


def test_the_command_says_what_is_wrong_with_a_budget(tmp_path):
    words = [sys.executable, "-m", "vestige", "run", "--budget", "much", "-c", "pass"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "--budget: not a share: 'much'; write a percentage, such as 5%" in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif("profile" not in _core.engines, reason="its safe engine can keep a budget")
def test_the_profile_engine_is_refused():
    with pytest.raises(ValueError, match="on this Python, a budget needs the engine turbo"):
        vestige.profile(budget=0.05, engine="safe")


def test_a_bounded_file_says_what_is_left_out_all_the_while(tmp_path):
    """The file also says this for decisions made before the kept time."""
    path = tmp_path / "t.vst"
    with vestige.profile(output=path, with_stack=True, budget=0.001, last="0.4s"):
        run_for(1.2, lambda: (loop(500), [vestige.instant("mark") for _ in range(50)]))
    trace = vestige.Trace(path)
    budget = budget_of(trace)
    assert trace.info()["dropped"] > 0
    assert budget.functions > 0
    assert budget.out_cpu_ns > 0.5 * budget.cpu_ns


@pytest.mark.skipif("profile" not in _core.engines, reason="budgets take no hook away")
@pytest.mark.parametrize(
    ("triggers", "rests"),
    [
        ((), True),
        (["GET *>9s"], True),
        (["spans>9s"], True),
        (["loop>9s"], False),
        (["never_called>9s"], False),
        (["spans>9s", "never_called>9s"], False),
    ],
)
def test_a_trigger_keeps_the_hook_only_where_it_may_name_a_function(triggers, rests):
    def annotated():
        with vestige.record_function("spans"):
            loop(1000)

    _, trace, session = recorded(lambda: run_for(1, annotated), "turbo", share=0.001, triggers=triggers)
    assert any(row.func is None for row in trace.tables(["left_out"])["left_out"]) == rests
    session.finish()


def report_of(path, *options):
    words = [sys.executable, "-m", "vestige", "report", "--format", "json", *options, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return {row["function"]: row for row in json.loads(done.stdout)["functions"]}


def test_what_a_budget_costs_is_compensated(tmp_path):
    """The cost of calls, of changes, and on 3.11 of calls that are left out: all are subtracted."""
    path = tmp_path / "t.vst"
    with vestige.profile(output=path, with_stack=True, budget=0.05, compensate=True):
        run_for(0.2, lambda: loop(400))
    model = json.loads(vestige.Trace(path).metadata()["vestige.costs"])
    assert (102 in model[1::4]) == (sys.version_info < (3, 12))
    recorded, compensated = report_of(path), report_of(path, "--compensated")
    mine = [name for name in recorded if name.endswith("loop")]
    assert mine
    for name in mine:
        error = compensated[name]["compensated_error_ns"]
        assert error > 0
        # From 3.12 on, a call that is left out costs nothing; other costs are far below the error of the estimates.
        assert 0 < compensated[name]["total_ns"] < recorded[name]["total_ns"] + error * (102 not in model[1::4])
    assert {name: row["calls"] for name, row in compensated.items()} == {
        name: row["calls"] for name, row in recorded.items()
    }
