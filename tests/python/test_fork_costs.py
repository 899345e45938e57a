"""What a fork costs while recording: a child goes on with what its parent knows of the interpreter."""

import pytest

from vestige import Trace
from vestige.base.child_files import find_children

# More types and modules than a child could look at without copying their pages.
COUNT_FAULTS = """
import asyncio, decimal, gc, http.client, json, multiprocessing, os, sqlite3, sys, unittest, xml.dom.minidom

def fork():
    child = os.fork()
    if child == 0:
        json.dumps([1])
        os._exit(0)
    return os.wait4(child, 0)[2].ru_minflt

gc.collect()
print(min(fork() for _ in range(8)))
"""


@pytest.mark.parametrize("engine", ["turbo", "safe"])
def test_a_recorded_child_copies_few_pages_of_its_parent(workplace, engine):
    workplace.write("main.py", COUNT_FAULTS)
    bare = int(workplace.python("main.py").stdout)
    result = workplace.vestige("run", "-q", "-o", "t.vst", "--engine", engine, "main.py")
    assert (result.returncode, result.stderr) == (0, "")
    assert int(result.stdout) < 4 * bare  # 6 times with turbo, if it looks for all functions
    children = find_children(str(workplace.path / "t.vst"), Trace(str(workplace.path / "t.vst")).info()["trace_id"])
    assert len(children) == 8
    for path in children:
        assert any("json" in known[1] for known in Trace(path).definitions() if known)


COUNT_HOOKS = """
import os, sys
from vestige import _core, profile

os.mkdir("gone")
with profile(output="gone/t.vst", engine={engine!r}, children={children}) as prof:
    if {children}:
        os.rename("gone", "elsewhere")
    before = _core.hooks_in_place()
    child = os.fork()
    if child == 0:
        os.write(1, b"%d %d" % (before > 0, _core.hooks_in_place()))
        hash(len), {{}}.get(1), sorted([2, 1])
        os._exit(0)
    os.waitpid(child, 0)
    assert _core.hooks_in_place() == before
"""


@pytest.mark.parametrize("engine", ["turbo", "safe"])
@pytest.mark.parametrize("children", [False, True], ids=["not followed", "no file"])
def test_a_child_that_is_not_recorded_has_no_hooks(workplace, engine, children):
    workplace.write("main.py", COUNT_HOOKS.format(engine=engine, children=children))
    result = workplace.python("main.py")
    assert (result.returncode, result.stdout) == (0, "1 0"), result.stderr
