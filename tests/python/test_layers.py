"""The checks of layers find violations, in a copy of the sources; .pre-commit-config.yaml lists all checks."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.any_python


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Copies the sources that check_layers.py reads, and the script itself, because it checks the folder that contains
    its folder.
    """
    root = tmp_path_factory.mktemp("layers")
    for name in ("include", "src", "python", "adapters"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (root / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "check_layers.py", root / "scripts")
    spec = importlib.util.spec_from_file_location("check_layers_copy", root / "scripts" / "check_layers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found(copied, check, name, line):
    """Returns a check's messages after a line was put before the other lines of a file; checks that there were none
    before.
    """
    path = copied.ROOT / name
    text = path.read_text()
    assert problems_of(copied, check) == []
    path.write_text(f"{line}\n{text}")
    try:
        return problems_of(copied, check)
    finally:
        path.write_text(text)


def problems_of(copied, check):
    copied.problems.clear()
    getattr(copied, check)()
    return list(copied.problems)


@pytest.mark.parametrize(
    "name, header",
    [
        ("read/trace.c", "calls/engine.h"),
        ("read/trace.c", "memory/memory.h"),
        ("calls/engine.c", "read/read.h"),
        ("program/gc.c", "read/read.h"),
        ("thunks/thunks.c", "program/program.h"),
        ("traceback/traceback.c", "calls/engine.h"),
        ("memory/allocator_hooks.c", "session/session.h"),
        ("annotate/annotation.c", "read/read.h"),
        ("calls/budget.c", "py311/py311.h"),
    ],
)
def test_a_room_of_the_extension_must_not_include_one_that_it_may_not_know(copied, name, header):
    own, _, _ = name.partition("/")
    assert (copied.EXT / header).exists()
    (line,) = found(copied, "check_extension", f"python/ext/{name}", f'#include "{header}"')
    assert line.startswith(f"python/ext/{name}:1: {own} must not include {header}: it may know ")


def test_a_header_for_all_rooms_of_the_extension_includes_none_of_them(copied):
    (line,) = found(copied, "check_extension", "python/ext/vpy.h", '#include "read/read.h"')
    assert line == "python/ext/vpy.h:1: vpy.h is for all folders and must not include read/read.h"


def test_a_new_room_of_the_extension_must_say_what_it_may_know(copied):
    room = copied.EXT / "attic"
    room.mkdir()
    (room / "attic.c").touch()
    try:
        (line,) = problems_of(copied, "check_extension")
    finally:
        shutil.rmtree(room)
    assert line == "python/ext/attic/attic.c: EXT_KNOWS does not say what python/ext/attic may include"


def test_what_lies_beside_the_rooms_may_include_all_of_them(copied):
    assert found(copied, "check_extension", "python/ext/core_module.c", '#include "read/read.h"') == []


@pytest.mark.parametrize(
    "check, name, line, what",
    [
        ("check_core", "src/base/fold.c", '#include "store/format.h"', "base must not include store/format.h"),
        ("check_core", "src/base/fold.c", "#include <Python.h>", "the core must not know Python"),
        ("check_core", "src/record/buffer.c", '#include "store/format.h"', "record must not include store/format.h"),
        ("check_core", "include/vestige/wire.h", '#include "store/format.h"', "a public header must not include"),
        (
            "check_outside",
            "python/ext/core_module.c",
            '#include "store/format.h"',
            "store/format.h must be a public header",
        ),
        (
            "check_outside",
            "python/ext/base/text.c",
            '#include "view/lanes.h"',
            "view/lanes.h must be a public header",
        ),
        ("check_versions", "src/base/fold.c", "/* PY_VERSION_HEX */", "PY_VERSION_HEX belongs in python/ext/compat.h"),
        ("check_311", "src/base/fold.c", "/* up to 3.11 */", "3.11 belongs in python/ext/py311"),
        ("check_311", "python/ext/base/inside.c", "#if PY_VERSION >= 0x030B0000", "0x030B belongs in python/ext/py311"),
        ("check_311", "python/vestige/reading/kinds.py", "IS_OLD = (3, 11)", "3, 11 belongs in python/ext/py311"),
        ("check_rooms", "python/vestige/reading/kinds.py", "import vestige.cli", "reading must not import cli"),
    ],
)
def test_layers_that_do_not_hold_are_named(copied, check, name, line, what):
    (problem,) = found(copied, check, name, line)
    assert problem.startswith(f"{name}:1: ")
    assert what in problem


def test_the_hooks_of_pre_commit_run_every_check():
    lint = (ROOT / "scripts" / "lint.sh").read_text()
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    checks = set(re.search(r"^checks=\$\{\*:-(.*)\}$", lint, re.MULTILINE)[1].split())
    named = {check for group in re.findall(r"CHECKS=('[^']*'|\w+)", hooks) for check in group.strip("'").split()}
    assert len(checks) > 8
    assert named == checks
    assert "scripts/check_layers.py" in hooks


def test_a_header_of_the_core_that_a_folder_of_the_extension_stopped_including_is_found(copied, monkeypatch):
    header = copied.CORE / "view" / "view.h"
    monkeypatch.setitem(copied.EXT_CORE, header, f"{copied.EXT_CORE[header]} calls")
    assert problems_of(copied, "check_outside") == ["EXT_CORE: python/ext/calls does not include view/view.h"]
