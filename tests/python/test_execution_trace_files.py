"""`vestige export` and `vestige info` for recordings with an execution trace; torch is not needed."""

import gzip
import json
import os
import subprocess
import sys

import pytest

from conftest import COMMAND

pytestmark = pytest.mark.any_python

KILLED = """
import os, signal, sys
from vestige import ExecutionTraceObserver, record_function
observer = ExecutionTraceObserver().register_callback("et.json.gz")
observer.start()
with record_function("outer \\"q\\"", 1, [2.5]):
    with record_function("inner"):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
"""
PROFILED = """
from vestige import ExecutionTraceObserver, profile, record_function
with profile(output="t.vst", execution_trace_observer=ExecutionTraceObserver().register_callback("o.json")):
    with record_function("step"):
        pass
with profile(output="none.vst"):
    with record_function("step"):
        pass
"""


def vestige(*arguments, cwd):
    return subprocess.run([COMMAND, *arguments], cwd=cwd, capture_output=True, text=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("et")
    clean = {name: value for name, value in os.environ.items() if "EXECUTION_TRACE" not in name}
    for program, code in ((KILLED, -9), (PROFILED, 0)):
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=clean, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    return folder


def names(text):
    document = json.loads(text)
    assert document["schema"] == "1.1.1-chakra.0.0.4"
    return [node["name"] for node in document["nodes"] if not node["name"].startswith("[pytorch|")]


def test_what_a_killed_program_recorded_is_an_execution_trace_by_itself(place):
    done = vestige("export", "et.json.gz.vst", cwd=place)
    assert done.returncode == 0, done.stderr
    assert names(gzip.open(place / "et.json.gz", "rt").read()) == ["inner", 'outer "q"']


def test_the_name_or_the_format_asks_for_one(place):
    for arguments in (["-o", "et.json"], ["-o", "a.et.json"], ["-o", "x.json", "--to", "execution-trace"]):
        done = vestige("export", "t.vst", *arguments, cwd=place)
        assert done.returncode == 0, done.stderr
        assert "step" in names((place / arguments[1]).read_text())
    done = vestige("export", "t.vst", "-o", "t.json", cwd=place)
    assert done.returncode == 0 and "traceEvents" in json.loads((place / "t.json").read_text())


def test_without_nodes_there_is_none(place):
    done = vestige("export", "none.vst", "-o", "n.json", "--to", "execution-trace", cwd=place)
    assert done.returncode == 1 and "no nodes of an execution trace were recorded" in done.stderr
    assert not (place / "n.json").exists()
    done = vestige("export", "none.vst", "-o", "n.et.json", cwd=place)
    assert done.returncode == 0 and "traceEvents" in json.loads((place / "n.et.json").read_text())


def test_several_processes_are_an_error(place):
    done = vestige("export", "t.vst", "et.json.gz.vst", "-o", "m.json", "--to", "execution-trace", cwd=place)
    assert done.returncode == 2 and "shows one process, but these are 2" in done.stderr


def test_info_counts_the_nodes(place):
    assert "2 of an execution trace" in vestige("info", "et.json.gz.vst", cwd=place).stdout
    assert json.loads(vestige("info", "none.vst", "--json", cwd=place).stdout)["nodes"] == 0
