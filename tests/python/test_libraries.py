"""Distinguishes the user's own code from libraries, in the usual layouts of programs."""

import sys
import zipfile

import pytest

from conftest import PYTHON
from vestige import Trace
from vestige._core import Function
from vestige.base.library_files import library_of
from vestige.reading.libraries import FOLLOWS, LIBRARY, OWN, classify

pytestmark = pytest.mark.any_python


@pytest.mark.parametrize(
    ("file", "library"),
    [
        # the standard library, in any place
        ("/usr/lib/python3.12/json/decoder.py", "json"),
        ("/usr/lib64/python3.12/threading.py", "threading"),
        ("/home/me/.pyenv/versions/3.12.1/lib/python3.12/asyncio/events.py", "asyncio"),
        ("/opt/conda/envs/x/lib/python3.13/collections/__init__.py", "collections"),
        ("/usr/lib/python3.13t/threading.py", "threading"),
        ("/usr/lib/python312.zip/json/decoder.py", "json"),
        ("<frozen importlib._bootstrap>", "importlib"),
        ("<frozen runpy>", "runpy"),
        # installed packages, in any place
        ("/project/.venv/lib/python3.12/site-packages/numpy/core/numeric.py", "numpy"),
        ("/project/.venv/lib/python3.12/site-packages/six.py", "six"),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", "yaml"),
        ("/home/me/.local/lib/python3.12/site-packages/rich/table.py", "rich"),
        ("/home/me/.pex/unzipped/abc/site-packages/click/core.py", "click"),
        ("/x/site-packages/old-1.0-py3.12.egg/old/module.py", "old"),
        # the user's
        ("/project/main.py", ""),
        ("/project/lib/python_tools/x.py", ""),
        ("/project/lib/pythonic/x.py", ""),
        ("/home/me/.pyenv/versions/3.12.1/src/mine.py", ""),
        ("/usr/src/app/main.py", ""),
        ("/project/app.zip/package/module.py", ""),
        ("main.py", ""),
        ("<string>", ""),
    ],
)
def test_a_file_is_a_librarys_by_where_it_lies(file, library):
    assert library_of(file) == library


def test_the_trace_knows_where_its_standard_library_is():
    assert library_of("/home/me/cpython/Lib/json/decoder.py", "/home/me/cpython/Lib") == "json"
    assert library_of("/home/me/cpython/Library/mine.py", "/home/me/cpython/Lib") == ""


def python(name, file):
    return Function((1, name, file, file, 1))


def test_c_functions_and_generated_code_are_of_who_called_them():
    native = Function((2, "<built-in function len>", "builtins", "builtins", 0))
    others = [Function((3, "load", "", "", 0)), Function((4, "Python GC", "", "", 0))]
    functions = [None, native, python("__init__", "<string>"), python("f", "<ipython-input-3>"), *others]
    functions += [python("main", "/p/main.py")]
    kinds, _ = classify(functions, {"vestige.command": ["main.py"]})
    assert kinds == [FOLLOWS, FOLLOWS, FOLLOWS, OWN, OWN, OWN, OWN]
    kinds, _ = classify(functions, {"vestige.command": ["-c", "pass"]})
    assert kinds[2] == OWN


def test_a_program_that_is_installed_is_the_users_own_if_nothing_else_is():
    place = "/v/lib/python3.12/site-packages"
    tool, other = python("main", f"{place}/tool/cli.py"), python("f", f"{place}/other/x.py")
    launcher, stdlib = python("<module>", "/v/bin/tool"), python("run", "/v/lib/python3.12/runpy.py")
    mine = python("test", "/project/test.py")
    assert classify([stdlib, tool, other], {"vestige.command": ["-m", "tool.cli"]})[0] == [LIBRARY, OWN, LIBRARY]
    assert classify([launcher, tool, other], {"vestige.command": ["/v/bin/tool"]})[0] == [FOLLOWS, OWN, LIBRARY]
    script = [python("<module>", "/v/bin/own"), python("work", "/v/bin/own"), other]
    assert classify(script, {"vestige.command": ["/v/bin/own"]})[0] == [OWN, OWN, LIBRARY]
    assert classify([launcher, mine, other], {"vestige.command": ["/v/bin/tool"]})[0] == [FOLLOWS, OWN, LIBRARY]
    assert classify([stdlib, tool, mine], {"vestige.command": ["-m", "tool"]})[0] == [LIBRARY, LIBRARY, OWN]
    assert classify([stdlib], {"vestige.command": ["-m", "runpy"]})[0] == [OWN]


def test_real_layouts_are_told_apart(workplace):
    """A project with a venv inside, a package installed from another folder, archives of both kinds, the standard
    library, and a module run with -m.
    """
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = f"project/.venv/lib/{version}/site-packages"
    workplace.write(f"{site}/installed/__init__.py", "def installed(f): return f()")
    workplace.write("elsewhere/src/editable.py", "def editable(f): return f()")
    workplace.write(f"{site}/__editable__.editable.pth", str(workplace.path / "elsewhere/src"))
    with zipfile.ZipFile(workplace.path / "mine.zip", "w") as archive:
        archive.writestr("zipped.py", "def zipped(f): return f()")
    with zipfile.ZipFile(workplace.path / site / "egg-1.0.egg", "w") as archive:
        archive.writestr("egg/__init__.py", "def egg(f): return f()")
    workplace.write("project/tool/__init__.py", "")
    workplace.write(
        "project/tool/__main__.py",
        f"""\
        import json, site, sys
        sys.path.append({str(workplace.path / "mine.zip")!r})
        sys.path.append({str(workplace.path / site / "egg-1.0.egg")!r})
        site.addsitedir({str(workplace.path / site)!r})
        from installed import installed
        from editable import editable
        from zipped import zipped
        from egg import egg

        def own():
            return json.loads("[1]")

        installed(lambda: editable(lambda: zipped(lambda: egg(own))))
        """,
    )
    result = workplace._run(
        [PYTHON, "-m", "vestige", "run", "-o", "../t.vst", "-m", "tool"], cwd=workplace.path / "project"
    )
    assert result.returncode == 0, result.stderr
    trace = Trace(str(workplace.path / "t.vst"))
    functions = trace.functions()
    import json

    kinds, libraries = classify(functions, {key: json.loads(text) for key, text in trace.metadata().items()})
    found = {f[1].rpartition(".")[2]: (kinds[i], libraries[i]) for i, f in enumerate(functions) if f and f[0] == 1}
    for name in ("editable", "zipped", "own", "<lambda>"):
        assert found[name] == (OWN, ""), name
    assert found["installed"] == (LIBRARY, "installed")
    assert found["egg"] == (LIBRARY, "egg")
    assert found["loads"] == (LIBRARY, "json")
    # The report shows the user's functions, and folds the frames between them.
    lines = [line for line in result.stderr.splitlines() if "frames hidden" in line or "frame hidden" in line]
    assert lines
