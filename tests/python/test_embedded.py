"""A program that embeds the interpreter, linked in either way, is recorded like python itself."""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest

from conftest import PYTHON
from usable import usable_engines
from vestige import _core

spec = importlib.util.spec_from_file_location("link_python", Path(__file__).parents[2] / "scripts" / "link_python.py")
link_python = importlib.util.module_from_spec(spec)
spec.loader.exec_module(link_python)

HOST = """
#include <Python.h>

int main(int count, char **words)
{
    PyConfig config;
    PyStatus status;
    int failed;

    (void)count;
    PyConfig_InitPythonConfig(&config);
    PyConfig_SetBytesString(&config, &config.program_name, words[1]);
    status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status);
    failed = PyRun_SimpleString(words[2]);
    return Py_FinalizeEx() < 0 || failed;
}
"""

PROGRAM = """
import json, sys
import vestige
from vestige.reading.sums import called_functions
from vestige.traceback import CapturedTraceback

def leaf():
    return len("ab")

found = {}
for engine in vestige._core.engines:
    with vestige.profile(engine=engine, profile_memory=True) as prof:
        for _ in range(100):
            leaf()
        kept = bytearray(54321)
        stack = CapturedTraceback.extract(cpp=True)
    trace = prof._session.trace()
    calls = {known.name.split(": ")[-1]: row.calls for known, row in called_functions(trace)}
    found[engine] = {
        "engine": json.loads(trace.metadata()["vestige.engine"]),
        "leaf": calls["leaf"],
        "len": calls["<built-in function len>"],
        "blocks": max(row.size for row in trace.tables(["alloc"])["alloc"]) >= 54321,
        "stack": "<module>" in "".join(stack.format()),
        "left": vestige._core.hooks_in_place(),
    }
    del kept
print(json.dumps(found))
"""


@pytest.fixture(scope="module", params=["shared", "static"])
def host(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "host"
    try:
        link_python.link(request.param, HOST, path)
    except OSError as trouble:
        pytest.skip(str(trouble))
    return path


def test_a_program_that_embeds_python_is_recorded_by_every_engine(host, tmp_path):
    done = subprocess.run(
        [host, PYTHON, PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    usable = usable_engines()
    assert json.loads(done.stdout) == {
        engine: {
            "engine": engine if engine in usable else usable[0],
            "leaf": 100,
            "len": 100,
            "blocks": True,
            "stack": True,
            "left": 0,
        }
        for engine in _core.engines
    }
