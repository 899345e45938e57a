"""A program under `vestige run` or `vestige memory` finds nothing of vestige: not on its stack, not in its command
line, and not where other programs look to start it again.
"""

import os
import re

import pytest

from conftest import COMMAND, PYTHON
from traces import totals
from vestige import Trace
from vestige.reading.memory import read_memory

ENGINES = ["safe", "turbo", "memory"]


@pytest.fixture(params=ENGINES)
def record(request, workplace):
    """Runs a program under an engine, or under `vestige memory`."""

    def run(*args, **options):
        command = "memory" if request.param == "memory" else "run"
        engine = [] if request.param == "memory" else ["--engine", request.param]
        return workplace.vestige(command, "-q", *engine, "-o", "t.vst", "--force", *args, **options)

    return run


# ---- the stack -----------------------------------------------------------

DEEP = """\
    import atexit, inspect, sys, threading, traceback, warnings

    def by_calls(n=1):
        try:
            return by_calls(n + 1)
        except RecursionError:
            return n

    def by_natives(n=1):
        try:
            return list(map(by_natives, [n + 1]))[0]
        except RecursionError:
            return n

    def by_generators():
        yield from by_generators()

    def nested(n):
        found = []
        for _ in range(n):
            found = [found]
        return found

    def in_c(low=1, high=12_000):
        while high - low > 1:
            middle = (low + high) // 2
            try:
                repr(nested(middle))
                low = middle
            except RecursionError:
                high = middle
        return low

    print(by_calls(), by_natives(), in_c(), sys.getrecursionlimit())
    try:
        list(by_generators())
    except RecursionError as error:
        print(len(traceback.extract_tb(error.__traceback__)))
    sys.setrecursionlimit(500)
    print(by_calls())
    sys.setrecursionlimit(1500)
    print(by_calls())
    print([(frame.filename, frame.function) for frame in inspect.stack()])
    thread = threading.Thread(target=lambda: print(by_calls()))
    thread.start()
    thread.join()
    warnings.warn("of whoever called the module", stacklevel=3)
    atexit.register(lambda: print(by_calls(), len(inspect.stack())))
    """


@pytest.mark.parametrize("way", [["deep.py"], ["-m", "deep"]])
def test_a_program_is_at_the_bottom_of_the_stack_as_without_us(workplace, record, way):
    workplace.write("deep.py", DEEP)
    plain = workplace.python(*way)
    traced = record(*way)
    assert (traced.stdout, traced.stderr, traced.returncode) == (plain.stdout, plain.stderr, 0)


def test_python_m_vestige_leaves_the_stack_alone_too(workplace):
    workplace.write("deep.py", DEEP)
    workplace.write("folder/__main__.py", DEEP)
    for way in (["deep.py"], ["folder"]):
        plain = workplace.python(*way)
        traced = workplace.python("-m", "vestige", "run", "-q", "-o", "t.vst", "--force", *way)
        assert (traced.stdout, traced.stderr, traced.returncode) == (plain.stdout, plain.stderr, 0)


def test_what_runs_a_module_is_on_its_stack_but_not_in_the_trace(workplace):
    workplace.write("work.py", "import runpy\ndef work(): pass\nwork()\nrunpy.run_path('inner.py')")
    workplace.write("inner.py", "def inner(): pass\ninner()")
    workplace.trace("-m", "work")
    calls = {name: count for name, count, *_ in totals(Trace(str(workplace.path / "t.vst")), all_windows=True)}
    assert not [name for name in calls if name.endswith(": _run_module_as_main")]
    # The program's own call of runpy counts, ours does not.
    assert [count for name, count in calls.items() if name.endswith(": _run_code")] == [1]
    assert calls["work.py(2): work"] == calls["inner.py(1): inner"] == 1


# ---- the command line ----------------------------------------------------


@pytest.mark.parametrize("way", [["show.py"], ["-m", "show"], ["-c", "import show"], ["-cimport show"], ["folder"]])
def test_the_original_command_line_is_the_one_without_us(workplace, same, way):
    workplace.write("show.py", "import sys; print(sys.orig_argv)")
    workplace.write("folder/__main__.py", "import sys; print(sys.orig_argv)")
    way = ["-c", "import show"] if way == ["-cimport show"] else way
    same(*way, "-m", "an argument")


@pytest.mark.parametrize(
    ("options", "module"),
    [
        (["-B", "-X", "dev"], ["-m", "vestige"]),
        (["-B"], ["-mvestige"]),
        ([], ["-Bm", "vestige"]),
        ([], ["-Bmvestige"]),
        (["-B"], ["-c", "from vestige.cli import main; main()"]),
        (["-Wignore::m", "-B"], [COMMAND]),
    ],
)
def test_options_of_the_interpreter_stay_in_the_original_command_line(workplace, options, module):
    workplace.write("show.py", "import sys; print(sys.orig_argv)")
    plain = workplace.python(*(options or ["-B"]), "show.py", "x")
    traced = workplace.python(*options, *module, "run", "-q", "-o", "t.vst", "--force", "show.py", "x")
    assert (traced.stdout, traced.returncode) == (plain.stdout, 0)


def test_a_command_written_in_python_is_found_by_its_name(workplace):
    tool = workplace.write("bin/tool", f"#!{PYTHON}\nimport sys\nprint(sys.argv, sys.orig_argv)\n")
    tool.chmod(0o755)
    other = workplace.write("bin/other", "#!/bin/sh\necho ran\n")
    other.chmod(0o755)
    env = {**os.environ, "PATH": f"{workplace.path}/bin:{os.environ['PATH']}"}
    result = workplace.trace("tool", "x", env=env)
    assert result.stdout == f"{[str(tool), 'x']} {[PYTHON, str(tool), 'x']}\n"
    result = workplace.trace("other", env=env)
    assert (result.returncode, result.stdout) == (2, "")
    workplace.write("tool", "print('the file that is here')")
    assert workplace.trace("tool", env=env).stdout == "the file that is here\n"


# ---- programs that start themselves again --------------------------------

AGAIN = """\
    import os, subprocess, sys

    def work(): pass

    def command():
        if sys.argv[1] == "orig_argv":
            return [sys.executable, *sys.orig_argv[1:]]
        with open("/proc/self/cmdline") as file:
            return file.read().split("\\0")[:-1]

    generation = int(os.environ.get("GENERATION", "0"))
    print("generation", generation, flush=True)
    for _ in range(generation + 1):
        work()
    if generation < 2:
        os.environ["GENERATION"] = str(generation + 1)
        if sys.argv[2] == "exec":
            os.execv(command()[0], command())
        sys.exit(subprocess.call(command()))
    sys.exit(7)
    """
OUTPUT = "generation 0\ngeneration 1\ngeneration 2\n"


def calls_by_file(folder):
    found = {}
    for path in sorted(folder.glob("*.vst")):
        rows = totals(Trace(str(path)), all_windows=True)
        found[path.name] = sum(row.calls for row in rows if row.name.endswith(": work"))
    return found


@pytest.mark.parametrize(
    ("source", "how", "options"),
    [
        ("orig_argv", "start", ["-o", "t.vst"]),
        ("orig_argv", "exec", ["-o", "t.vst", "--force"]),
        ("cmdline", "start", ["-o", "t.vst"]),
        ("cmdline", "start", ["-o", "t.vst", "--force"]),
        ("cmdline", "start", []),
        ("cmdline", "exec", ["-o", "t.vst", "--force"]),
    ],
)
def test_a_program_that_starts_itself_again_is_followed_into_files_of_its_own(workplace, source, how, options):
    workplace.write("again.py", AGAIN)
    result = workplace.vestige("run", "-q", *options, "again.py", source, how)
    assert (result.stdout, result.stderr, result.returncode) == (OUTPUT, "", 7)
    calls = calls_by_file(workplace.path)
    assert sorted(calls.values()) == [1, 2, 3]
    root = min(calls, key=len)
    assert calls[root] == 1
    assert len({str(Trace(str(workplace.path / name)).metadata().get("vestige.root")) for name in calls}) == 2
    if how == "start":
        assert all(Trace(str(workplace.path / name)).info()["clean"] for name in calls)


def test_one_that_is_started_again_without_its_children_runs_unrecorded(workplace):
    workplace.write("again.py", AGAIN)
    for source in ("orig_argv", "cmdline"):
        result = workplace.vestige("run", "-q", "-o", "t.vst", "--force", "--no-children", "again.py", source, "start")
        assert (result.stdout, result.stderr, result.returncode) == (OUTPUT, "", 7)
        assert calls_by_file(workplace.path) == {"t.vst": 1}


def test_memory_of_a_program_that_starts_itself_again_is_followed(workplace):
    workplace.write("again.py", AGAIN)
    result = workplace.vestige("memory", "-q", "-o", "t.vst", "--force", "again.py", "cmdline", "start")
    assert (result.stdout, result.stderr, result.returncode) == (OUTPUT, "", 7)
    traces = [Trace(str(path)) for path in workplace.path.glob("*.vst")]
    assert [trace.info()["clean"] for trace in traces] == [True] * 3
    assert all(read_memory(trace, rows=0).facts["records"] for trace in traces)


def test_a_recording_that_the_program_asks_for_elsewhere_is_its_own(workplace):
    workplace.write("inner.py", "def work(): pass\nwork()")
    workplace.write(
        "outer.py",
        f"""\
        import subprocess, sys
        def work(): pass
        work()
        for file in ("u.vst", "t.vst"):
            print(subprocess.call([{COMMAND!r}, "run", "-q", "-o", file, "--force", "inner.py"]), flush=True)
        """,
    )
    result = workplace.vestige("run", "-q", "-o", "t.vst", "outer.py")
    assert (result.stdout, result.stderr) == ("0\n0\n", "")
    calls = calls_by_file(workplace.path)
    assert len(calls) == 3  # the recording to the parent's file name goes to a child's file
    assert set(calls.values()) == {1}
    own = Trace(str(workplace.path / "u.vst"))
    assert "vestige.root" not in own.metadata()
    assert "outer.py" in Trace(str(workplace.path / "t.vst")).metadata()["vestige.command"]


def test_a_command_that_is_started_again_in_vain_leaves_no_file(workplace):
    workplace.write(
        "outer.py",
        f"""\
        import subprocess
        print(subprocess.call([{COMMAND!r}, "run", "-q", "-o", "t.vst", "-m", "absent"]))
        """,
    )
    result = workplace.vestige("run", "-q", "-o", "t.vst", "outer.py")
    assert result.stdout == "1\n"
    assert "No module named absent" in result.stderr
    assert [path.name for path in workplace.path.glob("*.vst")] == ["t.vst"]


def test_the_environment_is_what_it_was_when_the_recording_is_over(workplace):
    workplace.write(
        "show.py",
        """\
        import atexit, os
        from vestige.recording import endings
        told = endings._closing
        def show():
            print(sorted(name for name in os.environ if name.startswith("VESTIGE_")))
        endings.close_with(lambda: (told(), show())[0])
        os._exit(0)
        """,
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("VESTIGE_")}
    env["PYTHONUNBUFFERED"] = "1"
    for options in ([], ["--no-children"]):
        assert workplace.trace(*options, "show.py", env=env).stdout == "[]\n"


# ---- pytest --------------------------------------------------------------

TESTS = """\
    import warnings, pytest

    @pytest.mark.parametrize("number", range(3))
    def test_number(number):
        assert number < 9

    def test_failing():
        value = {"a": 1}
        assert value == {"a": 2}
    """
SECONDS = re.compile(r"in \d+\.\d+s")


def shown(result):
    """Returns pytest's output without durations, and without the padding of the line that has them."""
    return re.sub("=+", "=", SECONDS.sub("in no time", result.stdout)), result.stderr, result.returncode


@pytest.mark.any_python
@pytest.mark.parametrize("command", ["run", "memory"])
@pytest.mark.any_python
@pytest.mark.parametrize(
    "way",
    [
        ["-m", "pytest", "-v"],
        ["-m", "pytest", "-n1"],
        ["-m", "coverage", "run", "-m", "pytest"],
        ["pytest"],
    ],
)
def test_pytest_prints_what_it_prints_without_us(workplace, command, way):
    workplace.write("test_some.py", TESTS)
    workplace.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    bare = [os.path.join(os.path.dirname(PYTHON), "pytest")] if way == ["pytest"] else way
    plain = workplace.python(*bare, "-p", "no:cacheprovider")
    traced = workplace.vestige(command, "-q", "-o", "t.vst", *way, "-p", "no:cacheprovider")
    assert shown(traced) == shown(plain)
    assert plain.returncode == 1
    assert "1 failed, 3 passed" in plain.stdout


@pytest.mark.any_python
def test_pytest_without_docstrings_prints_what_it_prints_without_us(workplace):
    workplace.write("test_some.py", "def test_it(): pass")
    workplace.write("pytest.ini", "[pytest]\nfilterwarnings = error::pytest.PytestAssertRewriteWarning\n")
    plain = workplace.python("-OO", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    traced = workplace.python("-OO", COMMAND, "run", "-q", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert shown(traced) == shown(plain)
    assert "1 passed" in plain.stdout
