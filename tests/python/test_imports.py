"""Imports are recognised among the calls on each Python: one span per module, for every way in which a program imports."""

import json
import subprocess
import sys
import zipfile

import pytest

from conftest import COMMAND
from handmade import define, definitions, enter, escape, leave, records, thread, trace
from in_process import vestige
from vestige import Trace
from vestige._core import View

IMPORT = 28  # the escape that has a module's name

PROGRAM = """\
import importlib, importlib.util, sys
sys.path.insert(0, "packed.zip")
import top.middle.leaf
from top import sibling
__import__("by_function")
importlib.import_module("by_name")
importlib.import_module("by_name")  # is there: no import
import zipped
import namespace.inside
import _multibytecodec
import xxsubtype
import broken_parent
try:
    import not_there
except ImportError:
    pass

def lazily(name):
    spec = importlib.util.find_spec(name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

lazy = lazily("lazy")
lazy.value
importlib.reload(sys.modules["by_function"])
if sys.version_info >= (3, 15):
    exec("lazy import lazy_statement; lazy_statement.value")
"""
FILES = {
    "top/__init__.py": "import by_top\n",
    "top/middle/__init__.py": "",
    "top/middle/leaf.py": "def work():\n    return sum(range(1000))\nwork()\n",
    "top/sibling.py": "",
    "by_top.py": "",
    "by_function.py": "",
    "by_name.py": "",
    "lazy.py": "value = 1\n",
    "lazy_statement.py": "value = 1\n",
    "namespace/inside.py": "",
    "broken_parent.py": "try:\n    import broken\nexcept ZeroDivisionError:\n    pass\n",
    "broken.py": "1 / 0\n",
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imports")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with zipfile.ZipFile(folder / "packed.zip", "w") as packed:
        packed.writestr("zipped.py", "")
    (folder / "program.py").write_text(PROGRAM)
    subprocess.run([COMMAND, "run", "-q", "-o", "t.vst", "program.py"], cwd=folder, check=True)
    return folder / "t.vst"


def report(path, *words):
    said = vestige("report", path, *words)
    assert said.code == 0, said.err
    return said.out


def imports(path):
    return {row["module"]: row for row in json.loads(report(path, "--imports", "--format", "json"))["imports"]}


def test_every_way_to_import_gives_a_span_with_the_name_of_the_module(recorded):
    found = imports(recorded)
    named = {"top", "top.middle", "top.middle.leaf", "top.sibling", "by_top", "by_function", "by_name", "zipped"}
    named |= {"namespace.inside", "lazy", "broken", "broken_parent"}
    if sys.version_info >= (3, 15):
        named.add("lazy_statement")
    assert named <= set(found)
    for name in named - {"by_function"}:
        assert found[name]["times"] == 1 and found[name]["named"], name
    assert found["by_function"]["times"] == 2  # reloaded


def test_modules_without_code_have_their_names(recorded):
    """Modules in a shared library, in the interpreter, and a namespace package."""
    found = imports(recorded)
    assert found["_multibytecodec"]["first_imported_by"] == "program.py:1: <module>"
    for name in ("_multibytecodec", "xxsubtype", "namespace"):
        assert found[name]["named"] and found[name]["times"] == 1
    assert not any(name.startswith("(") for name in found)


def test_a_module_that_its_parent_imports_meanwhile_is_one_import_with_its_name(tmp_path):
    (tmp_path / "eager").mkdir()
    (tmp_path / "eager/__init__.py").write_text("import eager.part\n")
    (tmp_path / "eager/part.py").touch()
    (tmp_path / "program.py").write_text("import eager.part\n")
    subprocess.run([COMMAND, "run", "-q", "-o", "t.vst", "program.py"], cwd=tmp_path, check=True)
    found = imports(tmp_path / "t.vst")
    assert found["eager.part"]["times"] == 1 and found["eager.part"]["first_imported_by"] == "eager"
    tree = report(tmp_path / "t.vst", "--tree", "--min", "0", "-n", "10000")
    shown = [line.split("import ")[1] for line in tree.splitlines() if "import eager" in line]
    assert shown == ["eager.part", "eager", "eager.part"]


def test_an_import_whose_parent_is_not_found_has_its_name(tmp_path):
    (tmp_path / "program.py").write_text("try:\n    import not_there.deeper\nexcept ImportError:\n    pass\n")
    subprocess.run([COMMAND, "run", "-q", "-o", "t.vst", "program.py"], cwd=tmp_path, check=True)
    found = imports(tmp_path / "t.vst")
    assert found["not_there"]["failed"] and found["not_there.deeper"]["failed"]


def test_an_import_that_fails_says_of_what_module_and_that_it_failed(recorded):
    found = imports(recorded)
    assert found["not_there"]["failed"] and found["not_there"]["named"] and not found["by_name"]["failed"]
    assert "import not_there (failed)" in report(recorded, "--tree", "--min", "0", "-n", "10000")


def test_a_name_is_no_call(recorded):
    """The record with a module's name is neither a span nor a function in any table, exporter or total."""
    trace = Trace(str(recorded))
    named = {number for number, entry in enumerate(trace.functions()) if entry and entry[1] == "<module> not_there"}
    assert named
    assert not named & {row.func for row in trace.tables(["functions"])["functions"]}
    vestige("export", recorded, "-o", recorded.with_suffix(".json"))
    assert '"<module> ' not in recorded.with_suffix(".json").read_text()


@pytest.mark.parametrize("options", [["--no-c"], ["--engine", "safe"], ["--min-duration", "50us"]])
def test_modules_without_code_have_names_however_it_is_recorded(tmp_path, options):
    (tmp_path / "program.py").write_text("import _multibytecodec, xxsubtype\n")
    subprocess.run([COMMAND, "run", "-q", *options, "-o", "t.vst", "program.py"], cwd=tmp_path, check=True)
    assert {"_multibytecodec", "xxsubtype"} <= set(imports(tmp_path / "t.vst"))


@pytest.mark.parametrize("options", [[], ["--no-c"], ["--engine", "safe"]])
def test_an_import_has_its_name_where_all_inside_of_it_is_too_deep(tmp_path, options):
    """The depth ends at _find_and_load: its inner calls are left out, including imports inside."""
    (tmp_path / "outer.py").write_text("import inner\n")
    (tmp_path / "inner.py").touch()
    (tmp_path / "program.py").write_text(
        "import outer, _multibytecodec\ntry:\n    import not_there\nexcept ImportError:\n    pass\n"
        "def f():\n    import importlib\nf()\n"
    )
    subprocess.run(
        [COMMAND, "run", "-q", *options, "--max-depth", "2", "-o", "t.vst", "program.py"], cwd=tmp_path, check=True
    )
    found = imports(tmp_path / "t.vst")
    assert set(found) == {"outer", "_multibytecodec", "not_there"}
    assert [name for name, row in found.items() if row["failed"]] == ["not_there"]
    assert all(row["times"] == 1 for row in found.values())
    tree = report(tmp_path / "t.vst", "--tree", "--min", "0", "-n", "10000")
    assert "import outer" in tree and "_find_and_load" not in tree


def test_who_imported_a_module_first_is_told(recorded):
    found = imports(recorded)
    assert found["by_top"]["first_imported_by"] == "top"
    assert found["broken"]["first_imported_by"] == "broken_parent"
    assert found["by_name"]["first_imported_by"] == "program.py:1: <module>"


def test_the_times_of_modules_are_the_times_of_their_spans(recorded):
    document = json.loads(report(recorded, "--imports", "--format", "json"))
    rows = document["imports"]
    assert sum(row["self_ns"] for row in rows) == document["imports_ns"] <= document["threads_ns"]
    assert all(0 <= row["self_ns"] <= row["total_ns"] for row in rows)
    chain = document["chain"]
    assert 0 < chain[0]["total_ns"] <= max(row["total_ns"] for row in rows)
    assert all(a["total_ns"] >= b["total_ns"] for a, b in zip(chain, chain[1:]))


def test_the_tree_folds_the_import_system_away_unless_all_is_asked_for(recorded):
    folded = report(recorded, "--tree", "--min", "0", "-n", "10000")
    assert "import top.middle.leaf" in folded
    assert "_find_and_load" not in folded and "_call_with_frames_removed" not in folded
    assert "top/middle/leaf.py:1: <module>" not in folded
    assert "top/middle/leaf.py:1: work" in folded
    whole = report(recorded, "--tree", "--min", "0", "-n", "100000", "--all")
    assert "import top.middle.leaf" in whole
    assert "_find_and_load_unlocked" in whole and "top/middle/leaf.py:1: <module>" in whole


def test_folding_changes_no_time(recorded):
    both = []
    for fold in (False, True):
        times = Trace(str(recorded)).tables(["calls"], fold_imports=fold)["calls"]["self_ns"]
        both.append(sum(times))
        assert min(times) >= 0
    assert both[0] == both[1]


def test_files_for_programs_keep_every_frame_and_mark_imports(recorded):
    rows = json.loads(report(recorded, "--tree", "--format", "json"))["tree"]
    leaf = next(row for row in rows if row.get("import") == "top.middle.leaf")
    assert leaf["function"].endswith(": _find_and_load")
    assert any(row["parent"] == leaf["id"] and row["function"].endswith("_find_and_load_unlocked") for row in rows)
    made = recorded.with_suffix(".json")
    assert vestige("export", recorded, "-o", made, "--force").code == 0
    events = json.loads(made.read_text())["traceEvents"]
    marked = [event for event in events if event.get("args", {}).get("imports") == "top.middle.leaf"]
    assert [event["name"].rpartition(" ")[2] for event in marked] == ["_find_and_load"]


def test_a_module_of_an_older_trace_is_called_what_is_known_of_it(tmp_path):
    entries = [
        define(1, "_find_and_load", FROZEN, 1),
        define(2, "_find_and_load_unlocked", FROZEN, 2),
        define(3, "<built-in function create_dynamic>", "_imp", kind=2),
    ]
    path = tmp_path / "made.vst"
    words = [enter(1), enter(2), enter(3), leave(3), leave(2), leave(1)]
    path.write_bytes(trace(definitions(thread(), *entries), records(*words)))
    assert not imports(path)["(extension module)"]["named"]


FROZEN = "<frozen importlib._bootstrap>"


def handmade(tmp_path, *words, **files):
    entries = [
        define(1, "main"),
        define(2, "_find_and_load", FROZEN, 1),
        define(3, "_find_and_load_unlocked", FROZEN, 2),
        define(4, "exec_module", "<frozen importlib._bootstrap_external>", 3),
        *(define(10 + at, "<module>", file) for at, file in enumerate(files.values())),
    ]
    path = tmp_path / "made.vst"
    path.write_bytes(trace(definitions(thread(), *entries), records(*words)))
    return path


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/home/me/env/site-packages/pkg/mod.py", "pkg.mod"),
        ("/home/me/env/site-packages/pkg/__init__.py", "pkg"),
        ("/opt/plugins/one.py", "/opt/plugins/one.py"),
        ("/home/me/tool.zip/pkg/mod.py", "pkg.mod"),
        ("my-plugins/one.py", "one"),
        ("<frozen os>", "os"),
        ("pkg/tool", "pkg/tool"),
        ("<string>", "(unknown module)"),
    ],
)
def test_a_module_is_named_by_its_file(tmp_path, file, name):
    words = [enter(1), enter(2), enter(3), enter(4), enter(10), leave(10), leave(4), leave(3), leave(2), leave(1)]
    assert list(imports(handmade(tmp_path, *words, file=file))) == [name]


def test_what_was_imported_already_is_an_ordinary_call(tmp_path):
    path = handmade(tmp_path, enter(1), enter(2), leave(2), leave(1))
    assert imports(path) == {}
    assert "_find_and_load" in report(path, "--tree", "--min", "0", "--all")
    assert "no import was recorded" in report(path, "--imports")


def test_an_import_that_was_going_on_when_the_trace_ends_is_there(tmp_path):
    words = [enter(1), enter(2), enter(3), enter(10), enter(2), enter(3), enter(11)]
    found = imports(handmade(tmp_path, *words, one="one.py", two="two.py"))
    assert set(found) == {"one", "two"} and found["two"]["first_imported_by"] == "one"


def test_code_that_a_module_executes_does_not_name_it(tmp_path):
    words = [enter(1), enter(2), enter(3), enter(4), enter(10), enter(11), leave(11)]
    words += [leave(10), leave(4), leave(3), leave(2), leave(1)]
    assert set(imports(handmade(tmp_path, *words, module="one.py", executed="two.py"))) == {"one"}


@pytest.mark.parametrize("named", [0, 1, 5000, 2**40], ids=["nothing", "no module", "not defined", "no id"])
def test_a_damaged_name_of_an_import_names_nothing(tmp_path, named):
    """Also ignores a name outside any import, and a name without words."""
    words = [*escape(IMPORT, 10), enter(1), *escape(IMPORT, 10), *escape(IMPORT), enter(2), enter(3)]
    words += [*escape(IMPORT, named), leave(3), leave(2), leave(1)]
    path = handmade(tmp_path, *words, one="one.py")
    assert list(imports(path)) == ["(unknown module)"]
    view = View(str(path), keep=False, fold_imports=True)
    assert view.info()["spans"] == 2


def test_the_code_of_a_module_names_it_rather_than_what_the_import_system_is_given(tmp_path):
    """The module's file can then be shown."""
    words = [enter(1), enter(2), enter(3), *escape(IMPORT, 11), enter(4), enter(10), leave(10), leave(4)]
    path = handmade(tmp_path, *words, leave(3), leave(2), leave(1), one="one.py", two="two.py")
    assert list(imports(path)) == ["one"]
