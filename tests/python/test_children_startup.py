"""The start-up module in Pythons that a recorded program starts: it never changes the program, and it does nothing
where it cannot record.
"""

import glob
import os
import subprocess
import sys

import pytest

from conftest import PYTHON
from family import family, write_programs
from vestige.recording import children

SHOW = """
import sys
print(sys.path, sys.argv, sys.flags, sys.orig_argv[1:])
print([getattr(hook, '__name__', type(hook)) for hook in [*sys.meta_path, *sys.path_hooks]])
print(sys.modules.get("sitecustomize"), sys.modules.get("usercustomize"))
try:
    import sitecustomize
    print(sitecustomize.__file__, sorted(vars(sitecustomize)))
except ImportError as error:
    print(repr(error), error.name)
import site
print(site.ENABLE_USER_SITE, site.execusercustomize.__module__)
"""
RUN = "import subprocess, sys\nsys.exit(subprocess.run({command!r}).returncode)"


@pytest.fixture
def launch(workplace, same):
    """Runs a program that starts another; checks that output and exit code are the same with and without vestige.
    Returns the traces of children.
    """

    def launch(*command, **options):
        write_programs(workplace)
        workplace.write("launch.py", RUN.format(command=list(map(str, command))))
        plain = same("launch.py", **options)
        return plain, family(workplace.path)[1]

    return launch


def other_pythons():
    """Returns the installed Pythons: supported versions and some old ones."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = {}
    for path in sorted(glob.glob(f"{root}/versions/*/bin/python")):
        version = ".".join(path.split("/")[-3].split(".")[:2])
        if version != own and version not in ("3.7", "3.8", "3.9"):
            found[version] = path
    return found


# ---- a child is as without us --------------------------------------------


def test_a_child_sees_what_it_would_without_us(workplace, launch):
    workplace.write("show.py", SHOW)
    _, [child] = launch(PYTHON, "show.py", "x")
    assert child.name == "show"


@pytest.mark.any_python
@pytest.mark.parametrize("path", ["one:two", ":one", "one:", ""])
def test_the_search_path_of_the_user_is_kept(workplace, launch, path):
    workplace.write("show.py", SHOW)
    _, others = launch(PYTHON, "show.py", env={**os.environ, "PYTHONPATH": path})
    assert len(others) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nprint('customized', __name__, __file__)\nsys.customized = True",
        "raise RuntimeError('the site is broken')",
        "import a_module_that_is_not_there",
        "raise ImportError('sitecustomize', name='sitecustomize')",
        "import sys; sys.modules.pop('sitecustomize')",
        "def of_the_site(): pass\nof_the_site()",
    ],
)
def test_the_sitecustomize_of_the_user_is_loaded_in_our_place(workplace, launch, source):
    workplace.write("site/sitecustomize.py", source)
    workplace.write("show.py", SHOW)
    # Unbuffered, so that output that the parent printed first comes first, recorded or not.
    env = {**os.environ, "PYTHONPATH": str(workplace.path / "site"), "PYTHONUNBUFFERED": "1"}
    plain, [child] = launch(PYTHON, "show.py", env=env)
    assert ("Error in sitecustomize" in plain.stderr) is ("broken" in source or "a_module" in source or "pop" in source)
    assert not [name for name in child.calls if "of_the_site" in name or "vestige" in name]


def test_a_sitecustomize_that_ends_the_process_ends_it(workplace, launch):
    workplace.write("site/sitecustomize.py", "import os, sys\nif sys.argv[-1] == 'leave': os._exit(5)")
    env = {**os.environ, "PYTHONPATH": str(workplace.path / "site")}
    plain, others = launch(PYTHON, "-c", "print('not reached')", "leave", env=env)
    assert (plain.stdout, plain.returncode, others) == ("", 5, [])


def test_a_usercustomize_is_loaded_where_python_would_load_it(workplace, tmp_path):
    """Uses the interpreter below the environment, because environments ignore the user's folder."""
    base = os.path.realpath(PYTHON)
    code = "import site; print(site.ENABLE_USER_SITE, site.getusersitepackages())"
    env = {**os.environ, "PYTHONUSERBASE": str(tmp_path / "user")}
    answer = subprocess.run([base, "-c", code], env=env, capture_output=True, text=True).stdout.split()
    if answer[0] != "True":
        pytest.skip("this Python has no folder of the user's")
    os.makedirs(answer[1])
    workplace.write(f"{answer[1]}/usercustomize.py", "def of_the_user(): print('of the user')\nof_the_user()")
    workplace.write("show.py", SHOW)
    write_programs(workplace)
    workplace.write("launch.py", RUN.format(command=[base, "show.py"]))
    plain = workplace.python("launch.py", env=env)
    traced = workplace.trace("launch.py", env=env)
    assert (traced.stdout, traced.stderr) == (plain.stdout, plain.stderr)
    assert plain.stdout.startswith("of the user\n")
    [child] = family(workplace.path)[1]
    assert not [name for name in child.calls if "customize" in name or "site.py" in name]


def test_a_child_in_another_environment_is_recorded_by_the_parent_s_vestige(workplace, launch):
    """The environment has the same Python but no vestige."""
    subprocess.run([os.path.realpath(PYTHON), "-m", "venv", "--without-pip", workplace.path / "venv"], check=True)
    python = workplace.path / "venv/bin/python"
    workplace.write("show.py", SHOW)
    _, [child] = launch(python, "show.py")
    assert child.clean
    assert child.metadata["vestige.command"][0] == str(python)


def test_modules_that_a_child_has_besides_are_few(workplace):
    code = "import sys; print(*sorted(sys.modules))"
    workplace.write("launch.py", RUN.format(command=[PYTHON, "-c", code]))
    plain = set(workplace.python("launch.py").stdout.split())
    traced = set(workplace.trace("launch.py").stdout.split())
    foreign = {name for name in traced - plain if name.partition(".")[0] != "vestige"}
    assert foreign <= {"__future__", "_json", "atexit", "errno", "gc"}


# ---- where it is not followed --------------------------------------------


@pytest.mark.any_python
@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-IS"])
def test_a_child_that_ignores_the_environment_runs_as_without_us(workplace, launch, flag):
    workplace.write("show.py", "import sys; print(sys.argv, 'site' in sys.modules, 'vestige' in sys.modules)")
    _, others = launch(PYTHON, flag, "show.py")
    assert others == []


def test_an_emptied_environment_is_not_followed(workplace, launch):
    workplace.write("show.py", SHOW)
    _, others = launch("env", "-i", PYTHON, "show.py")
    assert others == []


@pytest.mark.any_python
@pytest.mark.parametrize("version", other_pythons() or [pytest.param("", marks=pytest.mark.skip(reason="no others"))])
def test_another_python_runs_as_without_us(workplace, launch, version):
    python = other_pythons()[version]
    code = "import sys; print(sys.path, sorted(sys.modules), 'x'); sys.stderr.write('err'); sys.exit(3)"
    plain, others = launch(python, "-c", code)
    assert (plain.returncode, others) == (3, [])
    workplace.write("site/sitecustomize.py", "print('customized')\nraise RuntimeError('broken')")
    launch(python, "-c", "import sys; print(sys.path)", env={**os.environ, "PYTHONPATH": str(workplace.path / "site")})


def test_children_that_are_not_python_run_as_without_us(launch):
    plain, others = launch("sh", "-c", "echo out; echo err >&2; exit 7")
    assert (plain.stdout, plain.stderr, plain.returncode, others) == ("out\n", "err\n", 7, [])


@pytest.mark.any_python
@pytest.mark.parametrize("value", ["", "{", "null", '{"abi": "%s", ', '{"abi": "%s", "root": 3}', '{"abi": "other", '])
def test_a_variable_that_makes_no_sense_is_passed_over(workplace, value):
    workplace.write("show.py", "print('ran')")
    value = value.replace("%s", children.ABI)
    env = {**os.environ, "PYTHONPATH": children.STARTUP, "VESTIGE_CHILDREN": value, "VESTIGE_PARENT": "x"}
    result = workplace.python("show.py", env=env)
    assert (result.stdout, result.stderr, result.returncode) == ("ran\n", "", 0)
    assert not list(workplace.path.glob("*.vst"))


def test_a_folder_that_cannot_be_written_leaves_children_unrecorded(workplace):
    workplace.write(
        "main.py",
        """\
        import os, shutil, subprocess, sys
        shutil.move("traces", "gone")
        child = os.fork()
        if child == 0:
            print("forked", flush=True)
            os._exit(2)
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
        sys.exit(subprocess.run([sys.executable, "-c", "print('started')"]).returncode)
        """,
    )
    for run in (workplace.python, lambda *args: workplace.vestige("run", "-q", "-o", "traces/t.vst", *args)):
        (workplace.path / "traces").mkdir()
        result = run("main.py")
        assert (result.stdout, result.stderr, result.returncode) == ("forked\n2\nstarted\n", "", 0)
        [left] = [list((workplace.path / "gone").iterdir())]
        assert [path.name for path in left] in ([], ["t.vst"])
        subprocess.run(["rm", "-r", workplace.path / "gone"], check=True)


def test_a_command_of_vestige_s_in_a_child_works_and_is_not_recorded(workplace, launch):
    workplace.write("inner.py", "import os\nif os.fork() == 0: os._exit(0)\nos.wait()")
    _, others = launch(PYTHON, "-m", "vestige", "run", "-q", "-o", "inner.vst", "--force", "inner.py")
    assert others == []
    inner, [child] = family(workplace.path, "inner.vst")
    assert child.parent["pid"] == inner.pid


def test_the_resource_tracker_is_left_out(workplace):
    workplace.write(
        "main.py",
        """\
        from multiprocessing import resource_tracker
        resource_tracker.ensure_running()
        """,
    )
    assert workplace.vestige("run", "-q", "-o", "t.vst", "main.py").stderr == ""
    assert family(workplace.path)[1] == []


def test_sub_interpreters_of_a_child_run_on(workplace, launch):
    code = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
number = interpreters.create()
interpreters.run_string(number, "import sys; print('vestige' in sys.modules)")
"""
    workplace.write("main.py", code)
    _, [child] = launch(PYTHON, "main.py")
    assert child.clean
