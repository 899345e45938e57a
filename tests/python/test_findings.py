"""Findings: programs with one known cause each, which must be named at its place, and programs without one, of which
nothing must be said. Thresholds are tried on traces made by hand.
"""

import asyncio
import gc
import json
import os
import runpy
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest

from conftest import COMMAND
from handmade import define, definitions, enter, leave, records, thread, trace
from in_process import vestige
from vestige import profile
from vestige.cli.report import causes
from vestige.cli.report.data import Data
from vestige.cli.report.findings import Evidence, find

pytestmark = pytest.mark.any_python

LOADED = (asyncio, sqlite3, subprocess, threading)
HERE = Path(__file__).parent
# What each program is to be told: the kind, and what its place has.
PLANTED = {
    "import_that_sleeps": ("imports", {"module": "slow_to_import", "imported_by": "start"}),
    "import_deep_inside": ("imports", {"module": "outer_package", "slowest_alone": "outer_package.heavy"}),
    "poll": ("waiting", {"function": "poll", "waits_in": "sleep"}),
    "child_process": ("waiting", {"function": "build"}),
    "collects": ("garbage collection", {"function": "churn"}),
    "one_request_each": ("many requests", {"function": "<listcomp>|make_report", "calls": "fetch"}),
    "one_query_each": ("many requests", {"function": "load_orders", "calls": "execute"}),
    "tiny_function": ("short calls", {"function": "tiny", "called_by": "loop"}),
    "tiny_method": ("short calls", {"function": "split", "called_by": "collect"}),
    "blocks_the_loop": ("blocked loop", {"function": "handler"}),
    "idle_pool": ("one thread", {"thread": "MainThread"}),
    "asks_again": ("same arguments", {"function": "lookup"}),
}
INNOCENT = sorted(path.stem for path in (HERE / "innocent").glob("*.py"))


DISTURBED = 3
TRIES = 5


def waited_for_a_processor():
    """The seconds that the main thread was ready to run and did not."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def record_once(program, path):
    """In a process of its own, where what programs import is there already (LOADED), and what the tests hold is not
    looked through by the garbage collector. Gives its exit code: DISTURBED where other processes had the processor
    for half of the time, so that the trace tells of them, too.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            gc.freeze()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            began, waited = time.monotonic(), waited_for_a_processor()
            with profile(with_stack=True, output=str(path), record_args=["lookup"]):
                runpy.run_path(str(program))
            waited = waited_for_a_processor() - waited
            code = DISTURBED if waited > 0.5 * (time.monotonic() - began) else 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def record(program, path):
    """The findings of a program, at a moment when the machine had time for it if there is one."""
    for attempt in range(TRIES):
        path.unlink(missing_ok=True)
        code = record_once(program, path)
        if code == 0:
            break
        assert code == DISTURBED, attempt
    said = vestige("report", path, "--findings", "--format", "json")
    assert said.code == 0, said.err
    return json.loads(said.out)["findings"]


def test_there_are_twelve_programs_of_each_sort():
    assert len(INNOCENT) == len(PLANTED) == 12
    assert {path.stem for path in (HERE / "planted").glob("*.py")} == set(PLANTED)


@pytest.mark.parametrize("name", PLANTED)
def test_a_cause_is_named_at_its_place(tmp_path, name):
    kind, where = PLANTED[name]
    found = record(HERE / "planted" / f"{name}.py", tmp_path / "t.vst")
    assert [finding["kind"] for finding in found] == [kind], found
    (finding,) = found
    assert set(finding) == {"kind", "text", "where", "numbers", "next"}
    for key, wanted in where.items():
        assert any(part in finding["where"][key] for part in wanted.split("|")), finding["where"]
    assert finding["next"].startswith("vestige report ") and str(tmp_path / "t.vst") in finding["next"]
    assert all(isinstance(value, (int, str)) for value in finding["numbers"].values())


@pytest.mark.parametrize("name", INNOCENT)
def test_nothing_is_said_of_a_program_without_a_cause(tmp_path, name):
    assert record(HERE / "innocent" / f"{name}.py", tmp_path / "t.vst") == []


def test_a_blocked_loop_is_told_of_its_own_thread(tmp_path):
    program = tmp_path / "beside.py"
    program.write_text(
        "import threading\n"
        "def bystander():\n"
        "    done.wait()\n"
        "done = threading.Event()\n"
        "threading.Thread(target=bystander).start()\n"
        + (HERE / "planted" / "blocks_the_loop.py").read_text()
        + "done.set()\n"
    )
    found = {finding["kind"]: finding for finding in record(program, tmp_path / "t.vst")}
    assert "handler" in found["blocked loop"]["where"]["function"]


# ---- what is told, and of what ---------------------------------------------------


def made(tmp_path, *words, entries=()):
    path = tmp_path / "made.vst"
    path.write_bytes(trace(definitions(thread(), define(1, "main"), *entries), records(*words)))
    return path


def evidence(path, **facts):
    from vestige import Trace

    opened = Trace(str(path))
    data = Data()
    data.add(opened, {}, tree=True, notable=True, fold_imports=True)
    return Evidence(data, [{**opened.info(), **facts}])


def test_a_program_without_a_finding_is_told_so(tmp_path):
    path = made(tmp_path, enter(1), leave(1, delta=1000))
    assert "no finding" in vestige("report", path, "--findings").out
    assert json.loads(vestige("report", path, "--findings", "--format", "json").out) == {"findings": []}
    assert vestige("report", path, "--findings", "--format", "csv").out == "kind,text,next\n"


def test_lost_records_come_first(tmp_path):
    path = made(tmp_path, enter(1), leave(1, delta=1000))
    (finding,) = find(evidence(path, lost=12_000))
    assert finding.kind == "lost records" and finding.numbers == {"lost": 12_000}
    assert finding.text.startswith("12,000 records could not be kept")
    assert finding.as_json(["t.vst"])["next"] == "vestige info t.vst"


SLEEP = define(2, "<built-in function sleep>", "time", 0, kind=2)


@pytest.mark.parametrize(("slept", "kinds"), [(499_000_000, []), (501_000_000, ["waiting"])])
def test_waiting_is_told_from_half_of_the_time_on(tmp_path, slept, kinds):
    work = 1_000_000_000 - slept
    path = made(tmp_path, enter(1, delta=0), enter(2, delta=work), leave(2, delta=slept), leave(1, 1), entries=[SLEEP])
    found = find(evidence(path, start_ns=0, end_ns=1_000_000_000))
    assert [finding.kind for finding in found] == kinds
    assert all(finding.where["waits_in"] == "sleep" for finding in found)


def test_at_most_five_are_told(tmp_path, monkeypatch):
    path = made(tmp_path, enter(1), leave(1))
    one = causes.lost_records
    monkeypatch.setattr(causes, "CAUSES", (one,) * 7)
    assert len(find(evidence(path, lost=1))) == 5


def test_findings_look_at_waiting(tmp_path):
    path = made(tmp_path, enter(1), leave(1))
    said = vestige("report", path, "--findings", "--no-waits")
    assert said.code == 2 and "--no-waits" in said.err and said.err.count("\n") == 1


def test_the_report_after_a_run_begins_with_findings(tmp_path):
    program = HERE / "planted" / "poll.py"
    run = subprocess.run(
        [COMMAND, "run", "-o", "t.vst", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    told = [line for line in run.stderr.splitlines() if "poll" in line]
    assert told[0].startswith("• No thread worked for") and "poll waits in sleep (sleep), 6 calls" in told[0]
    assert any(line.endswith("poll.py(4): poll") for line in told[1:])  # the tree
