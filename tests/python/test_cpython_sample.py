"""A few modules of CPython's own tests give equal results bare and traced, and the comparison notices differences.

`make check NAME=cpython` runs hundreds of modules in this way.
"""

import gc
import sys
import types
from pathlib import Path

import pytest

import vestige

PROOFS = Path(__file__).resolve().parents[2] / "proofs"
sys.path[:0] = [str(PROOFS), str(PROOFS / "inside")]

import hooks

import ways

MODULES = (
    "test_call test_yield_from test_exception_variations test_unpack test_threading_local test_contextlib "
    "test_importlib.extension.test_loader"
)
PROGRAM = """
import sys
sys.path.insert(0, {inside!r})
import unittest_outcomes
if __name__ == "__main__":
    path = sys.argv.pop(1)
    unittest_outcomes.prepare()
    result = unittest_outcomes.Outcomes(path)
    for module in {modules!r}.split():
        unittest_outcomes.run(module, result)
    sys.exit(not result.all_good)
"""


def suite_of(folder, source):
    program = folder / "program.py"
    program.write_text(source)
    python = ways.Python("{}.{}".format(*sys.version_info), sys.executable)
    return ways.Suite("sample", python, lambda name, out: [program, out], [program], kept=folder)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return suite_of(tmp_path_factory.mktemp("sample"), PROGRAM.format(inside=str(ways.INSIDE), modules=MODULES))


@pytest.mark.parametrize("engine", ways.ENGINES)
def test_modules_of_cpython_give_the_same_results_with_and_without_us(sample, engine):
    pytest.importorskip("test.test_call")
    bare = sample.run("sample", "bare")
    traced = sample.run("sample", engine)
    assert len(bare.outcomes) > 300
    assert ways.compare("sample", engine, bare, traced) == []


DIFFERENT = """
import json, os, sys
traced = "vestige" in sys.modules
with open(sys.argv[1], "w") as file:
    for test, outcome in {{"a": "fail" if traced else "ok", "b": "ok", "c" if traced else "d": "ok"}}.items():
        print(json.dumps([test, outcome, "because"]), file=file)
{more}
"""
MORE = "import sys, signal; os.kill(os.getpid(), signal.SIGKILL) if traced else None"


def test_what_differs_is_found_and_one_that_differs_each_time_is_no_unsteady_one(tmp_path):
    suite = suite_of(tmp_path, DIFFERENT.format(more=MORE))
    found = ways.compare("x", "safe", suite.run("x", "bare"), suite.run("x", "safe"))
    assert {difference.test: (difference.bare, difference.traced) for difference in found} == {
        "a": ("ok", "fail"),
        "c": ("not run", "ok"),
        "d": ("ok", "not run"),
        ways.END: ("exit 0", "signal SIGKILL"),
        ways.TRACE: ("ok", "ended torn"),
        ways.HOOKS: ("ok", "unknown"),
    }
    ways.judge(suite, found[0])
    assert found[0].kind == ""


def test_hooks_are_seen_while_recording_and_none_after():
    assert hooks.left() == []
    for engine in vestige._core.engines:
        with vestige.profile(engine=engine):
            during = hooks.left()
        assert during
        assert hooks.left() == []


def objects_made_by_counting_them():
    before = len(gc.get_objects())
    after = len(gc.get_objects())
    return after - before


@pytest.mark.parametrize("engine", vestige._core.engines)
def test_the_collector_shows_the_program_no_object_of_ours(engine):
    # code that never ran before
    count = types.FunctionType(objects_made_by_counting_them.__code__.replace(), globals())
    with vestige.profile(engine=engine):
        made = count()
    assert made == 0
